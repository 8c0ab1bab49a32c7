"""Tables of wheels, in robot files and in sidecars of URDF files."""

from __future__ import annotations

from collections.abc import Iterable
from os import PathLike

from concur.formats.tables import Number, Table, Text, Vector3, located, unknown
from concur.mechanism import Wheel


class WheelTable(Table):
    """Fields of a wheel."""

    body: Text
    radius: Number
    kind: Text | None = None
    roller_angle: Number | None = None
    axis: Vector3 | None = None
    center: Vector3 | None = None
    ground: Number | None = None


def wheel_of(table: WheelTable, names: Iterable[str], path: str | PathLike[str]) -> Wheel:
    """Build the wheel of a table, whose body must be among the names."""
    label = f'[[wheels]] "{table.body}"'
    if table.body not in names:
        raise unknown(path, label, "body", "a body", table.body, names)
    with located(path, label):
        return Wheel(**table.given())
