"""Recording of runs: one row per cycle, written through a ring and another process to a file.

`Record` is imported at first use: the process that writes the file does not need it and must start
fast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hil.record._record import Record

__all__ = ["Record"]


def __getattr__(name: str) -> object:
    """Import `Record` at first use."""
    if name != "Record":
        raise AttributeError(f"module `{__name__}` has no attribute `{name}`")
    from hil.record._record import Record

    return Record
