"""Layout of rows and ring for code in C that writes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hil.record.ring import header_numbers

if TYPE_CHECKING:
    from hil.record.rows import Layout


def rows_in_c(layout: Layout) -> str:
    """Places of the quantities in a row, and of the numbers of a ring, in C.

    Parameters
    ----------
    layout : Layout
        Layout of the rows.

    Returns
    -------
    str
        A header.
    """
    lines = ["/* Rows of a record, and the ring that has them. */", ""]
    lines += [f"#define RIG_RING_{name} {value}" for name, value in header_numbers().items()]
    lines += [f"#define RIG_ROW {layout.width}"]
    for name, span in layout.spans.items():
        lines += [f"#define RIG_ROW_{name.upper()} {span.start}"]
        lines += [f"#define RIG_ROW_{name.upper()}_SIZE {span.stop - span.start}"]
    return "\n".join([*lines, ""])
