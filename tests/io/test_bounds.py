"""Every number of robot, task and rig files has finite bounds."""

from __future__ import annotations

import importlib
import typing
from types import ModuleType
from typing import Any

import pytest

from concur.tables import Table

MODULES = {
    "hil.rig._schema": 11,
}
"""Where tables are described, and how many at least."""


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


def tables(module: ModuleType) -> list[type[Table]]:
    found = [t for t in vars(module).values() if isinstance(t, type) and issubclass(t, Table)]
    return [table for table in found if table.__module__ == module.__name__]


@pytest.mark.parametrize("name", MODULES)
def test_no_number_is_without_bounds(name: str) -> None:
    found = tables(importlib.import_module(name))
    assert len(found) >= MODULES[name]
    for table in found:
        for field, hint in typing.get_type_hints(table, include_extras=True).items():
            if field in ("cures", "model_config"):
                continue
            for limits in numbers(hint):
                told = "".join(type(limit).__name__ for limit in limits)
                bounded = ("Ge" in told or "Gt" in told) and ("Le" in told or "Lt" in told)
                assert bounded or "AfterValidator" in told, f"{table.__name__}.{field}"
