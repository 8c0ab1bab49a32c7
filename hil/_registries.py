"""Registries of kinds to which files of a user add entries; restored if such a file fails."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

T = TypeVar("T")

_TABLES: list[tuple[dict[str, Any], dict[str, Any]]] = []
"""All registries, each with its initial entries."""


def registry(entries: dict[str, T]) -> dict[str, T]:
    """Make a registry with initial entries."""
    _TABLES.append((entries, dict(entries)))
    return entries


@contextmanager
def restored_on_error() -> Iterator[None]:
    """Restore all registries if this context raises."""
    before = [dict(table) for table, _ in _TABLES]
    try:
        yield
    except BaseException:
        # A registry that was made in this context keeps its initial entries.
        before += [first for _, first in _TABLES[len(before) :]]
        for (table, _), kept in zip(_TABLES, before, strict=True):
            table.clear()
            table.update(kept)
        raise
