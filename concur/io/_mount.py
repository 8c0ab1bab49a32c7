"""Robots of other files in a robot file: the tables [[mount]]."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Annotated, Any

from concur.errors import DescriptionError
from concur.robot import Body, Keyframe, Mechanism, Pose, mount
from concur.robot.joints import Fixed
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


@dataclass(frozen=True)
class Mounted:
    """Robots that a file mounts.

    Parameters
    ----------
    robot : Mechanism
        The mounted robots on the bodies of the file, which here have neither joints nor masses.
    bodies : tuple of frozenset of str
        Names of the bodies of each mounted robot.
    """

    robot: Mechanism
    bodies: tuple[frozenset[str], ...]


def mounted(
    given: Mapping[str, Any],
    mounts: Mount | Sequence[Mount],
    path: str | PathLike[str],
    load: Callable[..., Mechanism],
    trail: tuple[Path, ...],
) -> Mounted:
    """Read the robots that a file mounts by `load`, and put them on its bodies."""
    base = next((b for b in given["bodies"] if b.parent is None), given["bodies"][0])
    parents = {body.name: None if body is base else base.name for body in given["bodies"]}
    frames = [
        Body(body.name, Fixed(), parents[body.name], joint_name=body.joint_label)
        for body in given["bodies"]
    ]
    robot, found = Mechanism(given["name"], frames), list[frozenset[str]]()
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
            before = {body.name for body in robot.bodies}
            robot = mount(robot, load(file, beside, trail=trail), one.on, one.at, one.prefix)
            found.append(frozenset(body.name for body in robot.bodies) - before)
    return Mounted(robot, tuple(found))


def assembled(given: Mapping[str, Any], arms: Mounted) -> Mechanism:
    """A robot with those that it mounts; its tables name parts of all of them.

    A joint of a mounted robot has a motor as in its file, unless a motor, a mimic or a steering of
    this file moves it. Where `actuated` names a joint of a mounted robot, it lists all of them.
    """
    mine, own = {body.name for body in given["bodies"]}, given.get("keyframes", {})
    states = {**arms.robot.keyframes, **own}
    for name in arms.robot.keyframes.keys() & own.keys():
        theirs = arms.robot.keyframes[name]
        moved = {arms.robot.joints.get(joint) for joint in own[name].q}
        q = {joint: x for joint, x in theirs.q.items() if arms.robot.joints[joint] not in moved}
        states[name] = Keyframe({**q, **own[name].q}, {**theirs.v, **own[name].v})
    whole = {
        **given,
        "bodies": [*given["bodies"], *(b for b in arms.robot.bodies if b.name not in mine)],
        "motors": [*given.get("motors", ()), *arms.robot.motors],
        "mimics": [*given.get("mimics", ()), *arms.robot.mimics],
        "springs": [*given.get("springs", ()), *arms.robot.springs],
        "keyframes": states,
        "unread": arms.robot.unread,
    }
    robot = Mechanism(**{**whole, "actuated": None})
    listed = given.get("actuated")
    named = {robot.bodies[robot.joints[name]].name for name in listed or () if name in robot.joints}
    driven = [arms.robot.joints[name] for name in arms.robot.actuated or ()]
    kept = {arms.robot.bodies[i].name for i in driven}
    for bodies in arms.bodies:
        kept -= bodies if bodies & named else set()
    if listed is None:
        kept |= mine
    free = [name for name in robot.actuated or () if robot.bodies[robot.joints[name]].name in kept]
    return Mechanism(**{**whole, "actuated": [*(listed or ()), *free]})
