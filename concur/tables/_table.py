"""Check of a TOML table field by field, with errors that name file, table and field."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from os import PathLike
from typing import Any, ClassVar, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from concur.tables._faults import fault, show, suggest, unknown
from concur.tables._types import Expected


class Table(BaseModel):
    """Base of the tables of a description: no unknown fields, exact types."""

    # Remedies for fields that users may expect but do not exist, by name.
    cures: ClassVar[Mapping[str, str]] = {}
    # Constructor of what the table describes.
    makers: ClassVar[tuple[Callable[..., Any], ...]] = ()
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _have_names(cls, data: Any) -> Any:
        """Refuse an unknown field, or else the lack of a required one."""
        fields = cls.model_fields
        names = data if isinstance(data, dict) else fields
        for name in names:
            if name not in fields:
                expected = "one of " + ", ".join(f"`{field}`" for field in fields)
                cure = cls.cures.get(name) or suggest(name, fields, "Remove it.")
                raise wrong(name, expected, f"an unknown field `{name}`", cure, "unknown")
        for name, info in fields.items():
            if info.is_required() and name not in names:
                texts = (part.text for part in info.metadata if isinstance(part, Expected))
                raise wrong(name, next(texts, "a table"), "no value", f"Add the field `{name}`.")
        return data


def wrong(
    field: str, expected: str, came: str, cure: str, kind: str = "field"
) -> PydanticCustomError:
    """Build the error of a field for a validator of its table."""
    facts = {"field": field, "expected": expected, "came": came, "cure": cure}
    return PydanticCustomError(kind, "{expected}", facts)


T = TypeVar("T", bound=Table)

WORDS = {
    "a valid dictionary": "a table",
    "a valid integer": "a whole number",
    "a valid string": "text",
}
"""Words for types, by those of the validator."""


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
    first = next((f for f in faults if f["type"] == "unknown"), faults[0])
    given, facts = first["input"], first.get("ctx", {})
    loc = at + _written(first["loc"], data)
    if "field" in facts:
        loc = (*loc, facts["field"])
    else:
        text = first["msg"].removeprefix("Input should be ")
        text = WORDS.get(text, text)
        facts = {"expected": text, "came": show(given), "cure": _cure(given, text, facts)}
    place = split(loc, data if whole is None else whole)
    told = {name: facts[name] for name in ("expected", "came", "cure")}
    raise fault(path, *place, **told) from None


def of_kind(
    kinds: Mapping[str, type[T]],
    data: Mapping[str, Any],
    path: str | PathLike[str],
    whole: Mapping[str, Any],
    at: tuple[str | int, ...],
    what: str,
) -> type[T]:
    """Find the fields of a table by its `kind`.

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
    type
        The fields.

    Raises
    ------
    DescriptionError
        If there is no such kind.
    """
    kind = data.get("kind")
    if isinstance(kind, str) and kind in kinds:
        return kinds[kind]
    raise unknown(path, *split((*at, "kind"), whole), what, kind, kinds)


def _written(loc: tuple[str | int, ...], data: Any) -> tuple[str | int, ...]:
    """Part of a position that the file has: without the types of choices."""
    found: list[str | int] = []
    for part in loc:
        if isinstance(data, dict) and part not in data and part in (data.get("type"), 0):
            continue  # one table for a list of one has no number either
        found.append(part)
        inner: Any = data if isinstance(data, dict if isinstance(part, str) else list) else {}
        data = inner[part] if inner else None
    return tuple(found)


def _cure(value: object, expected: str, facts: Mapping[str, Any]) -> str:
    if isinstance(value, float) and value.is_integer() and "whole" in expected:
        return f"Write {int(value)}, without a decimal point."
    if not isinstance(value, str):
        return "Correct the entry."
    try:
        float(value)
    except ValueError:
        return suggest(value, map(str, facts.get("names") or ()), "Correct the entry.")
    return "Write the number without quotes."


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
