"""Robots of other files in a robot file: the tables [[mount]]."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Annotated, Any

from concur.errors import DescriptionError
from concur.robot import Mechanism, Mimic, Motor, Pose, mount
from concur.tables import FileName, OneOrMore, Text, located, variant


@dataclass(frozen=True)
class Mount:
    """A robot of another file on a body of this one.

    Parameters
    ----------
    file : str
        Robot file of any format, relative to this one.
    on : str, optional
        Body that carries it. Default: the base.
    at : Pose
        Pose of its base in the frame of that body. Default: the frame itself.
    prefix : str
        Text before all its names, such as `"left_"`. Default: none.
    sidecar : str, optional
        Sidecar of a URDF or MJCF file. Default: that beside it.
    """

    file: FileName
    on: Text | None = None
    at: Pose = field(default_factory=Pose)
    prefix: Annotated[str, Text] = ""
    sidecar: FileName | None = None


@dataclass(frozen=True)
class Mounts:
    """Fields of a robot file beside those of a robot.

    Parameters
    ----------
    mount : Mount or sequence of Mount, optional
        Robots of other files that are fixed to bodies. Default: none.
    """

    mount: Annotated[Any, OneOrMore(Mount)] = ()


ROBOT = variant(Mechanism, "Mechanism", Mounts)
"""Table of a robot file."""


def take_mounted(given: dict[str, Any]) -> dict[str, Any]:
    """Take the motors and mimics that name bodies or joints of mounted robots out of a robot.

    What is left makes a robot that carries the others.
    """
    mine = {name for body in given["bodies"] for name in (body.name, body.joint_label)}
    later = {}
    for table in ("motors", "mimics"):
        entries = given.get(table, [])
        later[table] = [entry for entry in entries if not _named(entry) <= mine]
        given[table] = [entry for entry in entries if _named(entry) <= mine]
    return later


def _named(entry: Motor | Mimic) -> set[str]:
    """Bodies and joints that a motor or a mimic names."""
    if isinstance(entry, Mimic):
        return {entry.body, entry.of}
    joints = {name.partition("[")[0] for name in entry.ratios}  # of freedoms such as ball[wx]
    return joints | {name for name in (entry.stator, entry.body) if name is not None}


def with_motors(robot: Mechanism, later: Mapping[str, Any], stated: Collection[str]) -> Mechanism:
    """A robot with mounted ones, and the motors and mimics that name their parts.

    Their joints no longer have a motor each, but those whose motor the file has `stated`.
    """
    if not any(later.values()):
        return robot
    names = {name.partition("[")[0] for motor in later["motors"] for name in motor.ratios}
    names |= {mimic.body for mimic in later["mimics"]}
    driven = {robot.joints[name] for name in names if name in robot.joints}
    return replace(
        robot,
        motors=[*robot.motors, *later["motors"]],
        mimics=[*robot.mimics, *later["mimics"]],
        actuated=[
            name
            for name in robot.actuated or ()
            if name in stated or robot.joints[name] not in driven
        ],
    )


def mounted(
    robot: Mechanism,
    mounts: Mount | Sequence[Mount],
    path: str | PathLike[str],
    load: Callable[..., Mechanism],
    trail: tuple[Path, ...],
) -> Mechanism:
    """A robot with those of other files, which `load` reads."""
    for one in [mounts] if isinstance(mounts, Mount) else mounts:
        file = Path(path).parent / one.file
        with located(path, f'[[mount]] "{one.file}"'):
            if file.resolve() in trail:
                raise DescriptionError(
                    "`file`",
                    expected="a file that does not mount this one",
                    came=f"`{one.file}`, whose mounts lead back to it",
                    cure="Remove one of the mounts.",
                )
            beside = None if one.sidecar is None else Path(path).parent / one.sidecar
            arm = load(file, beside, trail=trail)
            robot = mount(robot, arm, one.on, one.at, one.prefix)
    return robot
