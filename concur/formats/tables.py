"""Reader of TOML tables, with errors that name file, table and field."""

from __future__ import annotations

import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from os import PathLike
from typing import Annotated, Any, ClassVar, TypeAlias, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
)
from pydantic.fields import FieldInfo
from pydantic_core import PydanticCustomError

from concur.formats._faults import (
    Refusal,
    fault,
    file_named,
    located,
    missing_file,
    show,
    suggest,
    suggest_file,
    unknown,
)
from concur.formats._toml_file import DEEPEST, LARGEST_TOML, read_toml

__all__ = [
    "DEEPEST",
    "LARGEST",
    "LARGEST_TOML",
    "MOST_BODIES",
    "NUMBER",
    "PAIR",
    "Expected",
    "FileName",
    "Number",
    "NumberOrList",
    "Numbers",
    "Positive",
    "Quaternion",
    "Refusal",
    "Rows",
    "Table",
    "Text",
    "Truth",
    "Vector3",
    "Vector6",
    "any_of",
    "check",
    "fault",
    "file_named",
    "is_number",
    "is_numbers",
    "list_of",
    "located",
    "missing_file",
    "read_toml",
    "show",
    "suggest",
    "suggest_file",
    "table_of",
    "unknown",
]

MOST_BODIES = 500
"""Largest number of bodies, and of wheels: graphs grow with its square."""

LARGEST = 1e9
"""Largest magnitude of a number without other bounds, in SI units.

Products of four such numbers, with the squares and inverses that models compute from them, stay
far within double precision. Real robots stay far below it.
"""


Shape: TypeAlias = dict[str, Any]
"""Part of a JSON schema."""


def any_of(*shapes: Shape) -> Shape:
    """Shape of a value with one of several shapes.

    Parameters
    ----------
    *shapes : dict
        The shapes.

    Returns
    -------
    dict
        Their union.
    """
    return {"anyOf": list(shapes)}


def list_of(shape: Shape, least: int = 0, most: int | None = None) -> Shape:
    """Shape of a list.

    Parameters
    ----------
    shape : dict
        Shape of the entries.
    least, most : int, optional
        Limits of their number.

    Returns
    -------
    dict
        The shape.
    """
    limits = {"minItems": least} if most is None else {"minItems": least, "maxItems": most}
    return {"type": "array", "items": shape, **limits}


def table_of(shape: Shape) -> Shape:
    """Shape of a table with free names.

    Parameters
    ----------
    shape : dict
        Shape of the entries.

    Returns
    -------
    dict
        The shape.
    """
    return {"type": "object", "additionalProperties": shape}


NUMBER: Shape = {"type": "number"}
PAIR = list_of(NUMBER, 2, 2)


class Table(BaseModel):
    """Base of the tables of a description: no unknown fields, exact types."""

    # Remedies for fields that users may expect but do not exist, by name.
    cures: ClassVar[Mapping[str, str]] = {}
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, frozen=True)

    def given(self, only: set[str] | None = None) -> dict[str, Any]:
        """Fields in the file, as arguments; for the others the constructors' defaults apply.

        Parameters
        ----------
        only : set of str, optional
            Names of the fields to return.

        Returns
        -------
        dict
            Plain values by name.
        """
        return self.model_dump(include=only, exclude_none=True)


T = TypeVar("T", bound=Table)


def is_number(value: object) -> bool:
    """Check whether a TOML value is a number up to `LARGEST`, or infinite.

    Parameters
    ----------
    value : object
        The value.

    Returns
    -------
    bool
        Also False for true and false, which are numbers in Python.
    """
    known = isinstance(value, (int, float)) and not isinstance(value, bool)
    return known and not LARGEST < abs(value) < float("inf")  # type: ignore[arg-type]


def is_numbers(value: object) -> bool:
    """Check whether a TOML value is a number, a list of numbers, or a list of such lists.

    Parameters
    ----------
    value : object
        The value.

    Returns
    -------
    bool
        True if it contains only numbers.
    """
    return is_number(value) or (isinstance(value, list) and all(map(is_numbers, value)))


def _number_or_list(value: Any) -> Any:
    if is_number(value) or (isinstance(value, list) and all(map(is_number, value))):
        return value
    raise PydanticCustomError("number_or_list", "number or list expected")


def _plain(value: str) -> str:
    if not value.isprintable():
        raise PydanticCustomError("plain", "text without control characters expected")
    return value


@dataclass(frozen=True)
class Expected:
    """Annotation of a type: how an error names its valid values.

    The description of a field is its meaning, which schemas and the manual give.

    Parameters
    ----------
    text : str
        The valid values, without a full stop: "3 numbers".
    """

    text: str


Text = Annotated[
    str,
    Field(min_length=1, max_length=255),  # limit of the names of files and columns
    AfterValidator(_plain),
    Expected("text of at most 255 characters, without control characters"),
]

FileName = Annotated[
    str,
    Field(min_length=1, max_length=1024),  # limit of paths on some systems
    AfterValidator(_plain),
    Expected("text, a path of at most 1024 characters without control characters"),
]

Truth = Annotated[bool, Expected("true or false")]

Number = Annotated[float, Field(ge=-LARGEST, le=LARGEST), Expected("a number within 1e9")]

Positive = Annotated[
    float, Field(ge=1e-12, le=LARGEST), Expected("a number above zero, from 1e-12 to 1e9")
]

Numbers = Annotated[
    list[Number], Field(max_length=100_000), Expected("a list of numbers within 1e9")
]

Rows = Annotated[
    list[Numbers], Field(max_length=100_000), Expected("a list of lists of numbers within 1e9")
]

Vector3 = Annotated[list[Number], Field(min_length=3, max_length=3), Expected("3 numbers")]

Vector6 = Annotated[list[Number], Field(min_length=6, max_length=6), Expected("6 numbers")]

Quaternion = Annotated[
    list[Number], Field(min_length=4, max_length=4), Expected("4 numbers: x, y, z, w")
]

NumberOrList = Annotated[
    Any,
    AfterValidator(_number_or_list),
    Field(json_schema_extra=any_of(NUMBER, list_of(NUMBER))),
    Expected("a number or a list of numbers"),
]


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
    table, field = _split(at + tuple(first["loc"]), data if whole is None else whole)
    owner, info = _field_at(model, tuple(first["loc"]))
    if first["type"] == "extra_forbidden":
        raise fault(
            path,
            table,
            field,
            expected="one of " + ", ".join(f"`{name}`" for name in owner.model_fields),
            came=f"an unknown field `{first['loc'][-1]}`",
            cure=_cure_of(owner, str(first["loc"][-1])),
        ) from None
    if first["type"] == "missing":
        raise fault(
            path,
            table,
            field,
            expected=_expected(info),
            came="no value",
            cure=f"Add the field `{first['loc'][-1]}`.",
        ) from None
    raise fault(
        path,
        table,
        field,
        expected=_element(first) if _inside_list(first["loc"], info) else _expected(info),
        came=show(first["input"]),
        cure=_cure(first["input"]),
    ) from None


def _cure_of(owner: type[BaseModel], field: str) -> str:
    cures: Mapping[str, str] = getattr(owner, "cures", {})
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


def _split(loc: tuple[str | int, ...], whole: Mapping[str, Any]) -> tuple[str, str]:
    """Split a position into its table, as written in the file, and the field in the table."""
    if len(loc) > 1 and isinstance(loc[1], int):
        entries = whole.get(str(loc[0]))
        entry = entries[loc[1]] if isinstance(entries, list) else None
        if isinstance(entry, Mapping):
            name = entry.get("name", entry.get("body"))
            label = f'"{name}"' if isinstance(name, str) else f"number {loc[1] + 1}"
            return f"[[{loc[0]}]] {label}", _dotted(loc[2:])
        return "", _dotted(loc)
    depth, value = 0, whole.get(str(loc[0])) if loc else None
    while depth < len(loc) - 1 and isinstance(value, Mapping):
        depth += 1
        value = value.get(str(loc[depth]))
    return (f"[{_dotted(loc[:depth])}]" if depth else ""), _dotted(loc[depth:])


def _dotted(loc: tuple[str | int, ...]) -> str:
    text = ""
    for part in loc:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def _field_at(
    model: type[BaseModel], loc: tuple[str | int, ...]
) -> tuple[type[BaseModel], FieldInfo | None]:
    """Find the innermost table and the field of a position."""
    owner: type[BaseModel] = model
    info: FieldInfo | None = None
    for part in loc:
        nested = _nested(info.annotation) if info is not None else None
        if nested is not None and isinstance(part, str):
            owner, info = nested, None
        if isinstance(part, str) and part in owner.model_fields:
            info = owner.model_fields[part]
    return owner, info


def _nested(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type):
        return annotation if issubclass(annotation, BaseModel) else None
    found = (_nested(argument) for argument in typing.get_args(annotation))
    return next((model for model in found if model is not None), None)


def _expected(info: FieldInfo | None) -> str:
    if info is None:
        return "an entry of the right type"
    parts = (*info.metadata, *_parts(info.annotation))
    return next((part.text for part in parts if isinstance(part, Expected)), "a table")


def _parts(annotation: Any) -> Iterator[Any]:
    yield annotation
    arguments = typing.get_args(annotation)
    if arguments and typing.get_origin(arguments[0]) is list:
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
        **dict.fromkeys(("string_too_long", "string_too_short", "plain"), "text of fitting length"),
        "int_type": "a whole number",
        "list_type": "a list of numbers",
        "number_or_list": "a number or a list of numbers",
    }.get(first["type"], "a number")


def _inside_list(loc: tuple[str | int, ...], info: FieldInfo | None) -> bool:
    return isinstance(loc[-1], int) and info is not None and _nested(info.annotation) is None
