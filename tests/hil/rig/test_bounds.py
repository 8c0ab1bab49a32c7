"""Every number of a rig file has finite bounds, and both sides of each are as the manual says."""

from __future__ import annotations

import typing
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from concur.formats._toml import Table
from hil.rig import _schema

BOUNDS: dict[str, tuple[Any, Any, Any, Any]] = {  # below, least, most, above
    "Torque": (0.9e-6, 1e-6, 1e6, 1.1e6),
    "Speed": (0.9e-4, 1e-4, 1e3, 1.1e3),
    "Ratio": (0.9e-4, 1e-4, 1e6, 1.1e6),
    "Counts": (0, 1, 2**30, 2**30 + 1),
    "Cycles": (0, 1, 10_000, 10_001),
    "Natural": (-1, 0, 2**31 - 1, 2**31),
    "Place": (-1.1e6, -1e6, 1e6, 1.1e6),
    "Seconds": (0.9e-6, 1e-6, 1e3, 1.1e3),
    "Delay": (-1e-9, 0.0, 10.0, 10.1),
    "StopTime": (0.9e-3, 1e-3, 10.0, 10.1),
    "Deviation": (0.9e-9, 1e-9, 10.0, 10.1),
    "Step": (0.9e-5, 1e-5, 1.0, 1.1),
    "Rate": (-1e-9, 0.0, 1e4, 1.1e4),
    "NotNegative": (-1e-9, 0.0, 1e9, 1.1e9),
    "Positive": (0.9e-12, 1e-12, 1e9, 1.1e9),
}


@pytest.mark.parametrize("name", BOUNDS)
def test_both_sides_of_each_bound(name: str) -> None:
    adapter = TypeAdapter(getattr(_schema, name))
    below, least, most, above = BOUNDS[name]
    for value in (least, most):
        assert adapter.validate_python(value) == value
    for value in (below, above):
        with pytest.raises(ValidationError):
            adapter.validate_python(value)


def numbers(annotation: Any, limits: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Bounds of every number within a type."""
    if annotation in (int, float):
        return [limits]
    found, own = [], limits
    arguments = typing.get_args(annotation)
    for extra in arguments[1:] if hasattr(annotation, "__metadata__") else ():
        own = (*own, *getattr(extra, "metadata", ()), extra)
    for argument in arguments:
        if isinstance(argument, type) and issubclass(argument, Table):
            continue
        found += numbers(argument, own)
    return found


def test_no_number_is_without_bounds() -> None:
    tables = [t for t in vars(_schema).values() if isinstance(t, type) and issubclass(t, Table)]
    assert len(tables) > 10
    for table in tables:
        for name, hint in typing.get_type_hints(table, include_extras=True).items():
            if name in ("cures", "model_config"):
                continue
            for limits in numbers(hint):
                told = "".join(type(limit).__name__ for limit in limits)
                bounded = ("Ge" in told or "Gt" in told) and ("Le" in told or "Lt" in told)
                assert bounded or "AfterValidator" in told, f"{table.__name__}.{name}"
