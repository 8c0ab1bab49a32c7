"""A robot on a body of another: an arm on a spacecraft or on a vehicle."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from concur.errors import DescriptionError, shown
from concur.robot._body import Body
from concur.robot._keyframe import Keyframe
from concur.robot._mechanism import Mechanism
from concur.robot._motor import Motor
from concur.robot._pose import Pose
from concur.robot._spring import Spring
from concur.robot.joints import Fixed


def mount(
    base: Mechanism, arm: Mechanism, on: str | None = None, at: Pose | None = None, prefix: str = ""
) -> Mechanism:
    """Fix a robot to a body of another.

    The joint of the arm's base gives way to a fixed one; bodies, motors and joints that follow
    others keep their names, with a prefix.

    Parameters
    ----------
    base : Mechanism
        The robot that carries the other; its name, gravity, wheels and supports remain.
    arm : Mechanism
        The robot that is mounted, without wheels.
    on : str, optional
        Body of `base` that carries it. Default: its base.
    at : Pose, optional
        Pose of the arm's base in the frame of that body; of a base on a `Fixed` joint: of the frame
        in which it is placed. Default: the frame itself.
    prefix : str
        Text before all names of the arm, such as `"left_"`.

    Returns
    -------
    Mechanism
        Both as one robot.

    Raises
    ------
    DescriptionError
        If a name would stand twice, or the arm has wheels.
    UnknownNameError
        If the base has no body of the name.

    Examples
    --------
    >>> import concur as cc
    >>> foot = cc.Body("foot", cc.joints.Fixed(), inertia=cc.Inertia(1.0))
    >>> turn = cc.joints.Revolute((0, 0, 1))
    >>> link = cc.Body("link", turn, "foot", inertia=cc.Inertia(2.0, (1, 0, 0)))
    >>> arm = cc.Mechanism("arm", [foot, link])
    >>> hull = cc.Body("bus", cc.joints.Free(), inertia=cc.Inertia.box(500.0, (1, 1, 2)))
    >>> one = cc.mount(cc.Mechanism("bus", [hull]), arm, prefix="left_")
    >>> cc.mount(one, arm, at=cc.Pose((0, 0, 1)), prefix="right_").control_names
    ('left_link', 'right_link')
    """
    given: tuple[tuple[str, Any], ...] = (("base", base), ("arm", arm))
    for name, value in given:
        if not isinstance(value, Mechanism):
            came = f"{type(value).__name__} {shown(value)}"
            raise _refusal(f"`{name}`", "a robot", came, "Load it by `load`.")
    if arm.wheels or arm.supports:
        cure = "Mount the arm on the robot with wheels, not the other way round."
        raise _refusal(f"robot `{arm.name}`", "a robot without wheels and supports", "wheels", cure)
    on = base.base.name if on is None else on
    base.index(on, "mount, `on`")
    names = {name: prefix + name for name in (body.name for body in arm.bodies)}
    taken = {*base.joints, *(motor.name for motor in base.motors)}
    mine = [prefix + name for name in (*arm.joints, *(motor.name for motor in arm.motors))]
    twice = next((name for name in mine if name in taken), None)
    if twice is not None:
        cure = 'Give the names of the arm a prefix, such as prefix = "arm_".'
        came = f"`{twice}` twice"
        raise _refusal(f"robot `{arm.name}`", "names that the base has not", came, cure)
    return replace(
        base,
        bodies=[
            *base.bodies,
            *(_body(body, prefix, on, at or Pose(), names) for body in arm.bodies),
        ],
        motors=[*base.motors, *(_motor(motor, prefix, names) for motor in arm.motors)],
        actuated=[*(base.actuated or ()), *(prefix + name for name in arm.actuated or ())],
        mimics=[
            *base.mimics,
            *(replace(m, body=names[m.body], of=names[m.of]) for m in arm.mimics),
        ],
        springs=[*base.springs, *(_spring(spring, prefix, names) for spring in arm.springs)],
        keyframes=_states(base, arm, prefix),
        unread=[*base.unread, *(line for line in arm.unread if line not in base.unread)],
    )


def _body(body: Body, prefix: str, on: str, at: Pose, names: Mapping[str, str]) -> Body:
    """A body of the arm under its new name; its base is fixed to the body that carries it."""
    name, label = names[body.name], prefix + body.joint_label
    if body.parent is not None:
        return replace(body, name=name, parent=names[body.parent], joint_name=label)
    inner = body.placement if isinstance(body.joint, Fixed) else Pose()
    if inner == Pose():
        return Body(name, Fixed(), on, at, body.inertia, shape=body.shape, joint_name=label)
    turn = Rotation.from_quat(at.rotation) * Rotation.from_quat(inner.rotation)
    place = at.rotation_matrix @ np.array(inner.translation) + np.array(at.translation)
    placement = Pose(tuple(place.tolist()), tuple(turn.as_quat().tolist()))
    return Body(name, Fixed(), on, placement, body.inertia, shape=body.shape, joint_name=label)


def _states(base: Mechanism, arm: Mechanism, prefix: str) -> dict[str, Keyframe]:
    """Stored states of both; those of one name are one."""
    found, fixed = dict(base.keyframes), {arm.base.name, *arm.freedom_names[arm.v_spans[0]]}
    fixed.add(arm.base.joint_label)
    for name, state in arm.keyframes.items():
        parts = ({n: x for n, x in part.items() if n not in fixed} for part in (state.q, state.v))
        mine, other = Keyframe(*parts).renamed(prefix), found.get(prefix + name, Keyframe())
        found[prefix + name] = Keyframe({**other.q, **mine.q}, {**other.v, **mine.v})
    return found


def _spring(spring: Spring, prefix: str, names: Mapping[str, str]) -> Spring:
    """A spring of the arm under its new names."""
    if spring.joint is not None:
        return replace(spring, joint=prefix + spring.joint)
    return replace(spring, body=names[str(spring.body)], other=names[str(spring.other)])


def _motor(motor: Motor, prefix: str, names: Mapping[str, str]) -> Motor:
    """A motor of the arm under its new name."""
    joints = motor.joints
    if isinstance(joints, str):
        joints = prefix + joints
    elif joints is not None:
        joints = {prefix + name: factor for name, factor in joints.items()}
    return replace(
        motor,
        name=prefix + motor.name,
        joints=joints,
        stator=None if motor.stator is None else names[motor.stator],
        body=None if motor.body is None else names[motor.body],
    )


def _refusal(place: str, expected: str, came: str, cure: str) -> DescriptionError:
    return DescriptionError(f"mount, {place}", expected=expected, came=came, cure=cure)
