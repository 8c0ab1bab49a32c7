"""Check of a TOML table field by field, with errors that name file, table and field."""

from __future__ import annotations

import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from os import PathLike
from typing import Any, ClassVar, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.fields import FieldInfo

from concur.tables._faults import fault, show, suggest, unknown
from concur.tables._types import Expected


class Table(BaseModel):
    """Base of the tables of a description: no unknown fields, exact types."""

    # Remedies for fields that users may expect but do not exist, by name.
    cures: ClassVar[Mapping[str, str]] = {}
    # Constructor of what the table describes.
    makers: ClassVar[tuple[Callable[..., Any], ...]] = ()
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, frozen=True)

    def given(self) -> dict[str, Any]:
        """Fields in the file with tables as dictionaries; for the others defaults apply.

        Returns
        -------
        dict
            Plain values by name.
        """
        return self.model_dump(exclude_none=True)


T = TypeVar("T", bound=Table)


def values(table: Table) -> dict[str, Any]:
    """Fields in the file, as arguments; for the others the constructors' defaults apply.

    Parameters
    ----------
    table : Table
        The table.

    Returns
    -------
    dict
        Values by name, in the order of the fields.
    """
    names = [name for name in type(table).model_fields if name in table.model_fields_set]
    return {name: getattr(table, name) for name in names}


def check(
    model: type[T],
    data: Mapping[str, Any],
    path: str | PathLike[str],
    whole: Mapping[str, Any] | None = None,
    at: tuple[str | int, ...] = (),
) -> T:
    """Validate a table field by field.

    Parameters
    ----------
    model : type
        Fields and types of the table.
    data : mapping
        The table.
    path : path
        File of the table.
    whole : mapping, optional
        The whole file, if the table is only a part.
    at : tuple
        Position of the table in the file.

    Returns
    -------
    Table
        The validated table.

    Raises
    ------
    DescriptionError
        At the first unknown field or else at the first field that is missing or of the wrong
        type. Unknown fields come first since a misspelt field is also missing.
    """
    try:
        return model.model_validate(dict(data))
    except ValidationError as error:
        faults = error.errors(include_url=False)
    first = next((f for f in faults if f["type"] == "extra_forbidden"), faults[0])
    known = first["type"] not in ("extra_forbidden", "missing")
    loc = at + _written(first["loc"], data, known)
    owner, info = _field_at(model, first["loc"])
    expected, came, cure = _expected(info), show(first["input"]), _cure(first["input"])
    if first["type"] == "extra_forbidden":
        name = str(first["loc"][-1])
        expected = "one of " + ", ".join(f"`{field}`" for field in owner.model_fields)
        came, cure = f"an unknown field `{name}`", _cure_of(owner, name)
    elif first["type"] == "missing":
        came, cure = "no value", f"Add the field `{first['loc'][-1]}`."
    elif first["type"].startswith("union_tag"):
        loc = (*loc, "type")
        kinds = _nested(info.annotation) if info else []
        names = [kind.__name__ for kind in kinds]
        tag = first["input"].get("type")
        expected = f"one of {', '.join(names)}"
        came = "no value" if tag is None else f"`{tag}`" if isinstance(tag, str) else show(tag)
        cure = suggest(str(tag), names, f'Write for example type = "{names[-1]}".')
        cure = _cures(kinds[0]).get(str(tag), cure)
    elif first["type"] == "expected":
        expected, names = first["ctx"]["text"], first["ctx"]["names"]
        if names and isinstance(first["input"], str):
            came, cure = f"`{first['input']}`", suggest(first["input"], names, cure)
    elif loc[-1:] == first["loc"][-1:] and _inside_list(loc, info):
        expected = _element(first)
    place = split(loc, data if whole is None else whole)
    raise fault(path, *place, expected=expected, came=came, cure=cure) from None


def check_kind(
    kinds: Mapping[str, type[T]],
    data: Mapping[str, Any],
    path: str | PathLike[str],
    whole: Mapping[str, Any],
    at: tuple[str | int, ...],
    what: str,
) -> T:
    """Validate a table with the fields of its `kind`.

    Parameters
    ----------
    kinds : mapping of str to type
        Table of each kind.
    data : mapping
        The table.
    path : path
        File of the table.
    whole : mapping
        The whole file.
    at : tuple
        Position of the table in the file.
    what : str
        Words for a kind, for errors: "a kind of requirement".

    Returns
    -------
    Table
        The validated table.

    Raises
    ------
    DescriptionError
        If there is no such kind, and as of `check`.
    """
    kind = data.get("kind")
    if not isinstance(kind, str):
        raise fault(
            path,
            *split((*at, "kind"), whole),
            expected=f"{what}: {', '.join(kinds)}",
            came="no value" if kind is None else show(kind),
            cure=f'Write for example kind = "{next(iter(kinds))}".',
        )
    if kind not in kinds:
        raise unknown(path, *split((*at, "kind"), whole), what, kind, kinds)
    return check(kinds[kind], data, path, whole, at)


def _written(loc: tuple[str | int, ...], data: Any, known: bool) -> tuple[str | int, ...]:
    """Part of a position that the file has: without the tags of choices.

    Behind the choice between types there is no field to name. The last part of an unknown or
    missing field is kept.
    """
    found: list[str | int] = []
    for k, part in enumerate(loc):
        if not known and k == len(loc) - 1:
            return (*found, part)
        if isinstance(data, Mapping) and data.get("type") == part:
            continue
        try:
            data = data[part]
        except (KeyError, IndexError, TypeError):
            if isinstance(data, Mapping) and part == 0:  # one table for a list of one
                continue
            break
        found.append(part)
    return tuple(found)


def _cures(owner: type[BaseModel]) -> Mapping[str, str]:
    found: Mapping[str, str] = getattr(owner, "cures", {})
    return found


def _cure_of(owner: type[BaseModel], field: str) -> str:
    cures = _cures(owner)
    return cures[field] if field in cures else suggest(field, owner.model_fields, "Remove it.")


def _cure(value: object) -> str:
    if isinstance(value, str):
        try:
            float(value)
        except ValueError:
            pass
        else:
            return "Write the number without quotes."
    return "Correct the entry."


def split(loc: tuple[str | int | None, ...], whole: Mapping[str, Any]) -> tuple[str, str]:
    """Split a position into its table, as written in the file, and the field in the table."""
    numbered = next((k for k, part in enumerate(loc) if isinstance(part, int)), 0)
    entry: Any = whole if numbered else None
    for part in loc[: numbered + 1]:
        fits = isinstance(entry, dict if isinstance(part, str) else list)
        entry = entry[part] if fits else None
    if isinstance(entry, Mapping):
        names = (entry[field] for field in ("name", "body", "wheel") if field in entry)
        name, number = next(names, None), int(loc[numbered] or 0) + 1
        label = f'"{name}"' if isinstance(name, str) else f"number {number}"
        return f"[[{_dotted(loc[:numbered])}]] {label}", _dotted(loc[numbered + 1 :])
    depth, value = 0, whole.get(str(loc[0])) if loc else None
    while depth < len(loc) - 1 and isinstance(value, Mapping):
        depth += 1
        value = value.get(str(loc[depth]))
    return (f"[{_dotted(loc[:depth])}]" if depth else ""), _dotted(loc[depth:])


def _dotted(loc: tuple[str | int | None, ...]) -> str:
    text = ""
    for part in (part for part in loc if part is not None):
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def _field_at(
    model: type[BaseModel], loc: tuple[str | int, ...]
) -> tuple[type[BaseModel], FieldInfo | None]:
    """Find the innermost table and the field of a position."""
    owner: type[BaseModel] = model
    info: FieldInfo | None = None
    for part in loc:
        nested = _nested(info.annotation) if info is not None else []
        if nested and isinstance(part, str):
            named = [table for table in nested if table.__name__ == part]
            owner, info = (named or nested)[0], None
        if isinstance(part, str) and part in owner.model_fields:
            info = owner.model_fields[part]
    return owner, info


def _nested(annotation: Any) -> list[type[BaseModel]]:
    """Tables within a type."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for part in typing.get_args(annotation) for model in _nested(part)]


def _expected(info: FieldInfo | None) -> str:
    if info is None:
        return "an entry of the right type"
    parts = (*info.metadata, *_parts(info.annotation))
    return next((part.text for part in parts if isinstance(part, Expected)), "a table")


def _parts(annotation: Any) -> Iterator[Any]:
    yield annotation
    arguments = typing.get_args(annotation)
    if arguments and typing.get_origin(arguments[0]) in (list, Sequence):
        # The text of a list precedes that of its entries.
        arguments = tuple(sorted(arguments, key=lambda a: not isinstance(a, Expected)))
    for argument in arguments:
        yield from _parts(argument)


def _element(first: Mapping[str, Any]) -> str:
    """Valid elements of a list, for an error."""
    if first["type"] in ("too_short", "too_long"):
        limits = first["ctx"]
        return f"{limits.get('min_length', limits.get('max_length'))} numbers"
    if first["type"] in ("less_than_equal", "greater_than_equal"):
        limit = first["ctx"].get("le", first["ctx"].get("ge"))
        return f"a number {'up to' if 'le' in first['ctx'] else 'from'} {limit:g}"
    return {
        "string_type": "text",
        **dict.fromkeys(("string_too_long", "string_too_short"), "text of fitting length"),
        "int_type": "a whole number",
        "list_type": "a list of numbers",
    }.get(first["type"], "a number")


def _inside_list(loc: tuple[str | int, ...], info: FieldInfo | None) -> bool:
    return isinstance(loc[-1], int) and info is not None and not _nested(info.annotation)
