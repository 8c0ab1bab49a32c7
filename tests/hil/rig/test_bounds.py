"""Both sides of each bound of a rig file agree with the manual."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

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
