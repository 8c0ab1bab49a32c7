"""Old names that lead to new ones, with a warning."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def moved(module: str, names: Mapping[str, tuple[str, str]]) -> Callable[[str], Any]:
    """Make the `__getattr__` of a module: old names, each with its place and what to use now."""

    def find(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        place, instead = names[name]
        message = f"`{module}.{name}` is deprecated: use `{instead}`"
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        owner, _, own = place.rpartition(".")
        return getattr(import_module(owner), own)

    return find
