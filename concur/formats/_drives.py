"""Tables of drives and of joints that follow others, in robot files and in sidecars."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from os import PathLike
from typing import Annotated, ClassVar

from pydantic import Field

from concur.formats.tables import (
    MOST_BODIES,
    Expected,
    Number,
    Positive,
    Table,
    Text,
    Vector3,
    Vector6,
    located,
    unknown,
)
from concur.robot import Drive, Mimic


class DriveTable(Table):
    """A control that acts on several joints, on one joint through a gear, or on a body."""

    cures: ClassVar[dict[str, str]] = {
        "ratio": "Write the ratio behind each joint: joints = { left = 4.0, right = 4.0 }."
    }
    name: Text = Field(description="Name of the control.")
    joints: (
        Annotated[dict[str, Number], Expected("a table with a gear ratio for each joint")] | None
    ) = Field(
        default=None,
        description="Gear ratio of each joint: force or torque of the joint = ratio times that of "
        "the motor. A joint with several DOFs has the names of its freedoms, such as "
        '`"ball[wx]"`. Default: none, with `body`.',
    )
    body: Text | None = Field(
        default=None,
        description="Body on which a thruster acts, in place of `joints`. Default: none.",
    )
    wrench: Vector6 | None = Field(
        default=None,
        description="Wrench of the thruster per unit of the control in the axes of the body: "
        "force, N, then moment, N m. Default: none, with `joints`.",
    )
    point: Vector3 | None = Field(
        default=None,
        description="Point of the body at which the wrench acts, m. Default: its origin.",
    )
    torque_limit: Positive | None = Field(
        default=None,
        description="Largest torque or force of the motor in both directions, N m or N. Default: "
        "that of its joints divided by the ratio, if no other drive moves them.",
    )


class MimicTable(Table):
    """A joint that follows another: q = multiplier q_other + offset."""

    body: Text = Field(description="Body whose joint follows.")
    of: Text = Field(description="Body whose joint it follows.")
    multiplier: Number | None = Field(
        default=None, description="Ratio of the velocities. Default: `1.0`."
    )
    offset: Number | None = Field(
        default=None,
        description="Coordinate of the joint where the other one is at zero, rad or m. "
        "Default: `0.0`.",
    )


Drives = Annotated[
    list[DriveTable],
    Field(max_length=MOST_BODIES),
    Expected(f"tables [[drives]], at most {MOST_BODIES}"),
]
Mimics = Annotated[
    list[MimicTable],
    Field(max_length=MOST_BODIES),
    Expected(f"tables [[mimics]], at most {MOST_BODIES}"),
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
