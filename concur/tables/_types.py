"""Types of fields: annotations of constructors with bounds, and the words of their errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias

from annotated_types import Ge, Le, Len

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


def is_pair(value: object) -> bool:
    """Check whether a TOML value is a list of two numbers.

    Parameters
    ----------
    value : object
        The value.

    Returns
    -------
    bool
        True if it is.
    """
    return isinstance(value, list) and len(value) == 2 and all(map(is_number, value))


def is_number_or_list(value: object) -> bool:
    """Check whether a TOML value is a number or a list of numbers.

    Parameters
    ----------
    value : object
        The value.

    Returns
    -------
    bool
        True if it is.
    """
    return is_number(value) or (isinstance(value, list) and all(map(is_number, value)))


@dataclass(frozen=True, eq=False)
class Expected:
    """Annotation of a type: its valid values, for errors and for schemas.

    The description of a field is its meaning, which schemas and the manual give.

    Parameters
    ----------
    text : str
        The valid values, without a full stop: "3 numbers".
    test : callable, optional
        Whether a value of the type is valid.
    shape : dict, optional
        JSON schema of the values. Default: that of the type.
    """

    text: str
    test: Callable[[Any], bool] | None = None
    shape: Mapping[str, Any] | None = None

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        """Validate the type, then make the test; errors of entries stay with these."""
        from pydantic_core import PydanticCustomError, ValidationError, core_schema

        def read(value: Any, inner: Any) -> Any:
            try:
                found = inner(value)
                if self.test is None or self.test(found):
                    return found
            except ValidationError as error:
                if all(fault["loc"] for fault in error.errors(include_url=False)):
                    raise
            facts = {"names": (self.shape or {}).get("enum")}
            raise PydanticCustomError("expected", self.text, facts)

        return core_schema.no_info_wrap_validator_function(read, handler(source))

    def __get_pydantic_json_schema__(self, core: Any, handler: Any) -> Any:
        """Schema of the type, or the own one."""
        return handler(core) if self.shape is None else dict(self.shape)


def one_of(names: Sequence[str | int]) -> Expected:
    """Annotation of a name or number with fixed values.

    Parameters
    ----------
    names : sequence of str or int
        The values.

    Returns
    -------
    Expected
        The annotation.
    """
    quoted = (f'"{name}"' if isinstance(name, str) else str(name) for name in names)
    text = "one of " * (len(names) > 1) + ", ".join(quoted)
    return Expected(text, lambda value: value in names, {"enum": list(names)})


@dataclass(frozen=True, eq=False)
class Choice:
    """Annotation of a name: the values that schemas offer; the constructor refuses others.

    Parameters
    ----------
    names : sequence of str
        The values.
    """

    names: Sequence[str]

    def __get_pydantic_json_schema__(self, core: Any, handler: Any) -> Any:
        """Schema of the type with the values."""
        return {**handler(core), "enum": list(self.names)}


@dataclass(frozen=True, eq=False)
class OneOrMore:
    """Annotation of a parameter: an object, or a list of such objects.

    Parameters
    ----------
    kind : type
        Class of the objects.
    """

    kind: type


@dataclass(frozen=True, eq=False)
class InFiles:
    """Annotation of a parameter: the type of its field in files.

    Parameters
    ----------
    kind : object
        An annotation, a class or a function that makes the value.
    """

    kind: Any


INTERNAL = "not a field of files"
"""Annotation of a parameter that files do not have."""

Text = Annotated[
    str,
    Len(1, 255),  # limit of the names of files and columns
    Expected("text of at most 255 characters, without control characters", str.isprintable),
]

FileName = Annotated[
    str,
    Len(1, 1024),  # limit of paths on some systems
    Expected("text, a path of at most 1024 characters without control characters", str.isprintable),
]

Truth = Annotated[bool, Expected("true or false")]

Number = Annotated[float, Ge(-LARGEST), Le(LARGEST), Expected("a number within 1e9")]

Positive = Annotated[
    float, Ge(1e-12), Le(LARGEST), Expected("a number above zero, from 1e-12 to 1e9")
]

Numbers = Annotated[Sequence[Number], Len(0, 100_000), Expected("a list of numbers within 1e9")]

Rows = Annotated[
    Sequence[Numbers], Len(0, 100_000), Expected("a list of lists of numbers within 1e9")
]

Vector3 = Annotated[Sequence[Number], Len(3, 3), Expected("3 numbers")]

Vector6 = Annotated[Sequence[Number], Len(6, 6), Expected("6 numbers")]

Quaternion = Annotated[Sequence[Number], Len(4, 4), Expected("4 numbers: x, y, z, w")]

Matrix3 = Annotated[Sequence[Vector3], Len(3, 3), Expected("3 rows of 3 numbers")]

NotNegative = Annotated[
    float, Ge(0.0), Le(LARGEST), Expected("a number of zero or more, up to 1e9")
]

Time = Annotated[float, Ge(0.0), Le(LARGEST), Expected("a time of zero or more, s")]


def _is_by_name(value: object) -> bool:
    entries: list[Any] = list(value.values()) if isinstance(value, dict) else [value]
    return all(is_number(entry) and entry >= 0.0 for entry in entries)


_FROM_ZERO = {"type": "number", "minimum": 0}

ByName = Annotated[
    Any,
    Expected(
        "a number of zero or more, or a table of them by name",
        _is_by_name,
        any_of(_FROM_ZERO, table_of(_FROM_ZERO)),
    ),
]

Pair = Annotated[Any, Expected("a lower and an upper end", is_pair, PAIR)]

NumberOrList = Annotated[
    Any,
    Expected("a number or a list of numbers", is_number_or_list, any_of(NUMBER, list_of(NUMBER))),
]
