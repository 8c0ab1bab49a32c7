"""From a table to an object: the constructor is the schema of the table."""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import is_dataclass
from enum import Enum
from functools import cache, partial, reduce
from operator import or_
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from annotated_types import Len
from pydantic import AfterValidator, BeforeValidator, Field, create_model

from concur.errors import ConcurError
from concur.tables._docstrings import meanings, summary
from concur.tables._faults import located, named, suggest
from concur.tables._table import Table, check, split, wrong
from concur.tables._types import (
    INTERNAL,
    MOST_BODIES,
    Expected,
    FileName,
    InFiles,
    Number,
    Numbers,
    OneOrMore,
    Text,
    Truth,
    one_of,
)

T = TypeVar("T")

PLAIN: dict[Any, Any] = {
    float: Number,
    str: Text,
    bool: Truth,
    Path: Annotated[FileName, AfterValidator(lambda name: Path(name))],
    Sequence[float]: Numbers,
    Sequence[str]: Annotated[list[Text], Expected("a list of names")],
}
"""Types of fields whose annotation states no bounds."""

LISTS = (tuple, list, Sequence)


def build(
    make: Callable[..., T],
    table: Mapping[str, Any],
    path: str | PathLike[str],
    whole: Mapping[str, Any] | None = None,
    at: tuple[str | int, ...] = (),
    maker: Callable[..., Any] | None = None,
) -> Any:
    """Make an object from a table.

    Parameters
    ----------
    make : type or callable
        Class with annotated parameters, a function, or a table; of a class with a method
        `from_table` the fields are the parameters of this method. Parameters annotated with
        `INTERNAL` are no fields; if the constructor of a table inside requires one, a
        `functools.partial` that takes it stands for the object. An abstract class stands for those
        of its module that are derived from it: the field `type` names one.
    table : mapping
        The table.
    path : path
        File of the table.
    whole : mapping, optional
        The whole file, if the table is only a part.
    at : tuple
        Position of the table in the file.
    maker : callable, optional
        What is called with the arguments in place of `make`, such as `dict`.

    Returns
    -------
    object
        The object.

    Raises
    ------
    DescriptionError
        If a field is unknown, missing or of the wrong type.
    ConcurError
        As of the constructors, with file, table and field before the place.
    """
    is_table = isinstance(make, type) and issubclass(make, Table)
    fields: type[Table] = make if is_table else model_of(make)  # type: ignore[assignment]
    checked = check(fields, table, path, whole, at)
    with placed(path, table if whole is None else whole, at):
        return _made(checked, maker)


@contextmanager
def placed(
    path: str | PathLike[str], whole: Mapping[str, Any], at: tuple[str | int, ...] = ()
) -> Iterator[None]:
    """Put file, table and field of a position in a file before the place of errors.

    Parameters
    ----------
    path : path
        The file.
    whole : mapping
        Its content.
    at : tuple
        Position of a table in it; errors of `refused` have that of their entry in the table.

    Yields
    ------
    None
        Nothing.
    """
    try:
        yield
    except ConcurError as error:
        inner = (*at, *error.data.pop("at", (None,)))
        with located(path, *split(inner, whole)):
            raise


def _holds_tables(value: list[Any] | tuple[Any, ...]) -> bool:
    kinds = set(map(type, value))
    if list in kinds:
        return any(type(entry) is not list or _holds_tables(entry) for entry in value)
    return any(issubclass(kind, (Table, dict)) for kind in kinds)


def _made(value: Any, maker: Callable[..., Any] | None = None) -> Any:
    """Make the objects of a table, or of the entries of a list; an error gets the way to it."""
    if isinstance(value, list | tuple) and not _holds_tables(value):
        return value  # of numbers, maybe many
    parts: Iterable[tuple[Any, Any]]
    if isinstance(value, Table):
        # Fields that are absent, or null in JSON, have their defaults.
        parts = [
            (name, entry)
            for name, field in type(value).model_fields.items()
            if (entry := getattr(value, name)) is not None or field.is_required()
        ]
    else:
        parts = value.items() if isinstance(value, dict) else enumerate(value)
    made: dict[Any, Any] = {}
    for part, entry in parts:
        try:
            made[part] = _made(entry) if isinstance(entry, Table | list | tuple | dict) else entry
        except ConcurError as error:
            error.data["at"] = (part, *error.data.get("at", ()))
            raise
    if isinstance(value, Table):
        try:
            return (maker or value.makers[0])(**made)
        except ConcurError as error:
            error.data.setdefault("at", (None,))  # the table as a whole
            raise
    return made if isinstance(value, dict) else type(value)(made.values())


def source_of(make: Any) -> Callable[..., Any]:
    """The callable whose parameters are the fields."""
    found: Callable[..., Any] = getattr(make, "from_table", make)
    return found


@cache
def model_of(make: Callable[..., Any]) -> type[Table]:
    """Table whose fields are the parameters of a constructor.

    Parameters
    ----------
    make : type or callable
        As of `build`, or a table.

    Returns
    -------
    type
        Table, made once for each constructor.
    """
    if inspect.isclass(make) and issubclass(make, Table):
        return make
    return _model(make, {}, source_of(make))


def variant(
    make: Callable[..., Any],
    name: str,
    base: Callable[..., Any],
    omit: Collection[str] = (),
    required: Collection[str] = (),
    more: Mapping[str, tuple[Any, str]] = types.MappingProxyType({}),
) -> type[Table]:
    """Table of some parameters of a function, behind those of a class.

    Parameters
    ----------
    make : callable
        The function.
    name : str
        Name of the table.
    base : type
        Class whose fields come first.
    omit, required : collection of str
        Parameters that are no fields, and optional ones that the table requires.
    more : mapping of str to (type, str)
        Type and meaning of further fields, which are optional.

    Returns
    -------
    type
        The table.
    """
    fields = _fields(make, omit, required)
    for field, (kind, text) in more.items():
        fields[field] = (kind | None, Field(None, description=text))
    return create_model(name, __base__=model_of(base), __doc__=summary(make), **fields)


def _model(make: Any, tag: Mapping[str, Any], maker: Callable[..., Any]) -> type[Table]:
    fields = _fields(source_of(make))
    model = create_model(_name(make), __base__=Table, __doc__=summary(make), **tag, **fields)
    model.cures = getattr(make, "_cures", {})
    waits = any(
        _is_internal(parameter.annotation) and parameter.default is parameter.empty
        for parameter in _parameters(source_of(make))
    )
    model.makers = (partial(partial, maker) if waits else maker,)
    return model


def _fields(
    source: Any, omit: Collection[str] = (), required: Collection[str] = ()
) -> dict[str, Any]:
    """Type and description of each field."""
    texts, found = meanings(source), dict[str, Any]()
    for parameter in _parameters(source):
        name, default = parameter.name, parameter.default
        if _is_internal(parameter.annotation) or name in omit:
            continue
        kind, text = _kind(parameter.annotation, name), texts.get(name, "")
        if default is parameter.empty or name in required:
            found[name] = (kind, Field(description=text))
        else:
            plain = _is_plain(default) and " Default: " not in text
            stated = {"default": _plain(default)} if plain else None
            found[name] = (kind | None, Field(None, description=text, json_schema_extra=stated))
    return found


@cache
def _parameters(source: Any) -> tuple[inspect.Parameter, ...]:
    """Parameters with their annotations evaluated; not `self`, which has none."""
    own = source if is_dataclass(source) or not inspect.isclass(source) else source.__init__
    hints = typing.get_type_hints(own, include_extras=True)
    found = inspect.signature(source).parameters.items()
    return tuple(p.replace(annotation=hints[name]) for name, p in found if name in hints)


def _is_internal(hint: Any) -> bool:
    return INTERNAL in getattr(hint, "__metadata__", ())


@cache
def _choice(base: type) -> Any:
    """Tables of the classes of a module that are derived from an abstract one, by `type`."""
    found = [
        kind
        for kind in vars(inspect.getmodule(base)).values()
        if inspect.isclass(kind) and issubclass(kind, base) and not inspect.isabstract(kind)
    ]
    kinds = {kind.__name__: kind for kind in sorted(set(found), key=lambda kind: kind.__name__)}
    last, cures = list(kinds)[-1], getattr(base, "_cures", {})

    def typed(value: Any) -> Any:
        given = value.get("type") if isinstance(value, dict) else last
        if isinstance(given, str) and given in kinds:
            return value
        cure = suggest(str(given), kinds, f'Write for example type = "{last}".')
        cure = cures.get(str(given), cure)
        raise wrong("type", f"one of {', '.join(kinds)}", named(given), cure)

    return Annotated[
        reduce(or_, map(_tagged, kinds.values())),
        Field(discriminator="type"),
        Expected(f'a table like {{ type = "{last}", ... }}'),
        BeforeValidator(typed),
    ]


def _tagged(kind: type) -> type[Table]:
    tag = (Literal[kind.__name__], Field(description=f"Type: `{kind.__name__}`."))
    return _model(kind, {"type": tag}, lambda type, **given: kind(**given))


def _name(make: Any) -> str:
    """Name of a class, or of the class of a method that makes it."""
    name: str = getattr(make, "__self__", make).__name__
    return name.lstrip("_")


def _kind(hint: Any, name: str) -> Any:
    """Type of a field from an annotation: classes become tables, sequences lists."""
    if hint in PLAIN:
        return PLAIN[hint]
    if hasattr(hint, "__metadata__"):
        return _annotated(hint, name)
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return reduce(or_, [_kind(part, name) for part in parts if part is not type(None)])
    if origin is Literal:
        return Annotated[type(parts[0]), one_of(parts)]
    if inspect.isclass(hint) and issubclass(hint, Enum):
        names = [entry.name.lower() for entry in hint]
        return Annotated[str, one_of(names), AfterValidator(lambda text: hint[text.upper()])]
    if origin in (dict, Mapping):
        return dict[str, _kind(parts[1], name)]  # type: ignore[misc]
    if origin in LISTS:
        entries: Any = list[_kind(parts[0], name)]  # type: ignore[misc]
        if origin is tuple:
            size = [Len(len(parts), len(parts))] * (parts[-1] is not ...)
            entries = Annotated[(entries, *size, AfterValidator(tuple))]
        text = f"tables [[{name}]], at most {MOST_BODIES}"
        tables = _is_table(parts[0])
        return Annotated[entries, Len(0, MOST_BODIES), Expected(text)] if tables else entries
    if inspect.isabstract(hint):
        return _choice(hint)
    return model_of(hint) if _is_table(hint) else hint


def _annotated(hint: Any, name: str) -> Any:
    for form in hint.__metadata__:
        if isinstance(form, OneOrMore):
            return _one_or_more(model_of(form.kind))
        if isinstance(form, InFiles):
            return _kind(form.kind, name)
    stated = any(isinstance(form, Expected) for form in hint.__metadata__)
    kind = hint.__origin__
    if stated and typing.get_origin(kind) in LISTS[1:]:
        kind = list[_kind(typing.get_args(kind)[0], name)]  # type: ignore[misc]
    elif not stated or kind not in PLAIN:
        kind = _kind(kind, name)
    return Annotated[(kind, *hint.__metadata__)]


def _one_or_more(table: Any) -> Any:
    return Annotated[
        list[table],
        BeforeValidator(lambda value: [value] if isinstance(value, dict) else value),
        Field(json_schema_extra=_or_one),
        Expected("a table, or a list of tables"),
    ]


def _or_one(shape: dict[str, Any]) -> None:
    """Let one entry stand for a list of one."""
    several = {"type": shape.pop("type"), "items": shape.pop("items")}
    shape["anyOf"] = [several["items"], several]


def _is_table(hint: Any) -> bool:
    own = inspect.isclass(hint) and hint.__module__ not in ("builtins", "typing")
    return own or inspect.isroutine(hint)


def _is_plain(value: Any) -> bool:
    if isinstance(value, (tuple, list)):
        return bool(value) and all(map(_is_plain, value))
    return isinstance(value, (bool, int, float, str)) and value != float("inf")


def _plain(value: Any) -> Any:
    return [_plain(entry) for entry in value] if isinstance(value, (tuple, list)) else value
