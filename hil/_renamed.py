"""Deprecated names of fields and arguments, which still work with a warning."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T", bound=type)
F = TypeVar("F", bound=Callable[..., Any])


def warn(old: str, new: str, level: int = 2) -> None:
    """Warn the caller's caller that a name is deprecated."""
    message = f"`{old}` is deprecated: use `{new}`"
    warnings.warn(message, DeprecationWarning, stacklevel=level + 1)


def renamed_arguments(**names: str) -> Callable[[F], F]:
    """Make a function accept arguments by their old names too, given as old="new"."""

    def renamed(function: F) -> F:
        @functools.wraps(function)
        def call(*args: Any, **options: Any) -> Any:
            for old in names.keys() & options.keys():
                warn(old, names[old])
                options[names[old]] = options.pop(old)
            return function(*args, **options)

        return call  # type: ignore[return-value]

    return renamed


def renamed_fields(**names: str) -> Callable[[T], T]:
    """Make fields of a dataclass accessible by their old names too, given as old="new"."""

    def renamed(cls: T) -> T:
        cls.__init__ = renamed_arguments(**names)(cls.__init__)  # type: ignore[misc]
        for old, new in names.items():
            setattr(cls, old, _old_field(old, new))
        return cls

    return renamed


def _old_field(old: str, new: str) -> property:
    def value(self: object) -> Any:
        warn(old, new)
        return getattr(self, new)

    return property(value, doc=f"Deprecated name of `{new}`.")
