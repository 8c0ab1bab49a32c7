"""What is kept of a run: a row for each cycle, through a ring and another process to a file.

`Record` is imported when it is asked for: the process that writes the file needs little, and
starts soon.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hil.record._record import Record

__all__ = ["Record"]


def __getattr__(name: str) -> object:
    """Import `Record` when it is asked for."""
    if name != "Record":
        raise AttributeError(f"module `{__name__}` has no attribute `{name}`")
    from hil.record._record import Record

    return Record
