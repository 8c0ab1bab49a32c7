"""Tables of drives and of joints that follow others, in robot files and in sidecars."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from os import PathLike
from typing import Annotated, ClassVar

from pydantic import Field

from concur.formats.tables import (
    MOST_BODIES,
    Number,
    Positive,
    Table,
    Text,
    Vector3,
    Vector6,
    located,
    unknown,
)
from concur.mechanism import Drive, Mimic

_RATIOS = "a table with a gear ratio for each joint"


class DriveTable(Table):
    """Fields of a drive."""

    cures: ClassVar[dict[str, str]] = {
        "ratio": "Write the ratio behind each joint: joints = { left = 4.0, right = 4.0 }."
    }
    name: Text
    joints: Annotated[dict[str, Number], Field(description=_RATIOS)] | None = None
    body: Text | None = None
    wrench: Vector6 | None = None
    point: Vector3 | None = None
    torque_limit: Positive | None = None


class MimicTable(Table):
    """Fields of a joint that follows another."""

    body: Text
    of: Text
    multiplier: Number | None = None
    offset: Number | None = None


Drives = Annotated[
    list[DriveTable],
    Field(max_length=MOST_BODIES, description=f"tables [[drives]], at most {MOST_BODIES}"),
]
Mimics = Annotated[
    list[MimicTable],
    Field(max_length=MOST_BODIES, description=f"tables [[mimics]], at most {MOST_BODIES}"),
]


def drive_of(
    table: DriveTable,
    bodies: Iterable[str],
    joints: Sequence[str],
    path: str | PathLike[str],
    freedom: Callable[[str], str] = str,
) -> Drive:
    """Build the drive of a table; `freedom` is the name in the robot of a joint in the file."""
    label = f'[[drives]] "{table.name}"'
    for name in table.joints or ():
        if name not in joints:
            raise unknown(path, label, "joints", "a joint", name, joints)
    if table.body is not None and table.body not in bodies:
        raise unknown(path, label, "body", "a body", table.body, bodies)
    given = table.given()
    if table.joints is not None:
        given["joints"] = {freedom(name): ratio for name, ratio in table.joints.items()}
    with located(path, label):
        return Drive(**given)


def mimic_of(table: MimicTable, bodies: Sequence[str], path: str | PathLike[str]) -> Mimic:
    """Build the coupling of a table."""
    label = f'[[mimics]] "{table.body}"'
    for field in ("body", "of"):
        if getattr(table, field) not in bodies:
            raise unknown(path, label, field, "a body", getattr(table, field), bodies)
    with located(path, label):
        return Mimic(**table.given())
