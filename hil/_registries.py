"""Tables of kinds that files of a user's own add to, restored if such a file fails."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

T = TypeVar("T")

_TABLES: list[tuple[dict[str, Any], dict[str, Any]]] = []
"""All tables, each with its first entries."""


def registry(entries: dict[str, T]) -> dict[str, T]:
    """Make a table of kinds with these entries."""
    _TABLES.append((entries, dict(entries)))
    return entries


@contextmanager
def restored_on_error() -> Iterator[None]:
    """Take back what is added to any table inside, if that raises."""
    before = [dict(table) for table, _ in _TABLES]
    try:
        yield
    except BaseException:
        # A table that was made inside keeps its first entries.
        before += [first for _, first in _TABLES[len(before) :]]
        for (table, _), kept in zip(_TABLES, before, strict=True):
            table.clear()
            table.update(kept)
        raise
