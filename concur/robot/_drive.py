"""Motors that are not one by one on joints, joints that follow others, and what moves which."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from concur.errors import ConcurError, DescriptionError, entries, shown
from concur.robot._bodies import BodyTree, unknown_name
from concur.robot._body import Body
from concur.robot._pose import check_name, scalar, vector
from concur.tables import Positive, Vector3, Vector6


@dataclass(frozen=True)
class Drive:
    """A control that acts on several joints through gears, or on a body as a thruster.

    It is one column of the actuation matrix B in ``M vdot + bias = B u + ...``: the ratios on the
    rows of the joints, or the wrench of the thruster, moved to the joints.

    Parameters
    ----------
    name : str
        Name of the control.
    joints : mapping of str to float
        Gear ratio of each joint that the motor moves: force or torque of the joint = ratio times
        that of the motor. A joint has the name of its body; one with several freedoms has their
        names, such as `"ball[wx]"`. Joints with a common motor share its torque as a differential
        does; two motors with two joints each are a coupled wrist. Default: none, with `body`.
    body : str, optional
        Body on which a thruster acts, in place of `joints`. Default: none.
    wrench : sequence of float, optional
        Its wrench per unit of the control in the axes of the body, [force; moment], shape (6,),
        1 and m for a control in N. Default: none, with `joints`.
    point : sequence of float
        Point of the body at which the wrench acts, shape (3,), m.
    torque_limit : float, optional
        Largest torque or force of the motor in both directions, N m or N; part of the verdict of a
        run. Default: that of its joints divided by the ratio, if no other drive moves them.

    Raises
    ------
    DescriptionError
        If the drive has neither joints nor a wrench, or both, or a ratio is zero.
    ShapeError, NonFiniteError
        If a number is not finite or an array has another shape.

    Examples
    --------
    >>> import concur as cc
    >>> differential = cc.robot.Drive("rear", {"left_wheel": 4.0, "right_wheel": 4.0})
    >>> differential.joints["left_wheel"]
    4.0
    """

    name: str
    joints: Mapping[str, float] | None = None
    body: str | None = None
    wrench: Vector6 | None = None
    point: Vector3 = (0.0, 0.0, 0.0)
    torque_limit: Positive = math.inf
    _cures: ClassVar[Mapping[str, str]] = {
        "ratio": "Write the ratio behind each joint: joints = { left = 4.0, right = 4.0 }."
    }

    def __post_init__(self) -> None:
        where = f"drive `{self.name}`"
        check_name(self.name, "Drive, `name`")
        geared = self.joints is not None
        if geared == (self.wrench is not None) or geared == (self.body is not None):
            came = [n for n in ("joints", "body", "wrench") if getattr(self, n) is not None]
            expected = "either `joints`, or `body` and `wrench`"
            raise _refusal(where, expected, ", ".join(f"`{n}`" for n in came) or "neither")
        if self.joints is not None:
            place = f"{where}, `joints`"
            if not isinstance(self.joints, Mapping) or not self.joints:
                expected = "a ratio for each joint, by its name"
                raise _refusal(place, expected, shown(self.joints))
            ratios = {name: scalar(value, place) for name, value in self.joints.items()}
            if not all(ratios.values()):
                raise _refusal(place, "ratios other than zero", shown(ratios))
            object.__setattr__(self, "joints", ratios)
        if self.wrench is not None:
            check_name(self.body, f"{where}, `body`")
            wrench = vector(self.wrench, 6, f"{where}, `wrench`")
            if not any(wrench):
                raise _refusal(f"{where}, `wrench`", "a wrench other than zero", str(wrench))
            object.__setattr__(self, "wrench", wrench)
            object.__setattr__(self, "point", vector(self.point, 3, f"{where}, `point`"))
        limit = self.torque_limit
        if limit != math.inf and not scalar(limit, f"{where}, `torque_limit`") > 0.0:
            raise _refusal(f"{where}, `torque_limit`", "a number above zero", shown(limit))
        object.__setattr__(self, "torque_limit", float(limit))

    def __hash__(self) -> int:
        return hash(self.name)

    @property
    def at_origin(self) -> np.ndarray:
        """Wrench of a thruster about the origin of its body, shape (6,)."""
        wrench = np.array(self.wrench, dtype=float)
        moment = wrench[3:] + np.cross(self.point, wrench[:3])
        return np.concatenate([wrench[:3], moment])


@dataclass(frozen=True)
class Mimic:
    """A joint that follows another: ``q = multiplier q_other + offset``.

    Both joints have one coordinate. The coupling is a constraint of the velocities with constant
    coefficients, ``v - multiplier v_other = 0``; its reaction does no work.

    Parameters
    ----------
    body : str
        Body whose joint follows.
    of : str
        Body whose joint it follows.
    multiplier : float
        Ratio of the velocities.
    offset : float
        Coordinate of the joint where the other one is at zero, rad or m.

    Raises
    ------
    DescriptionError
        If a joint follows itself.
    ShapeError, NonFiniteError
        If a number is not finite.

    Examples
    --------
    >>> import concur as cc
    >>> cc.robot.Mimic("right_finger", of="left_finger", multiplier=-1.0).offset
    0.0
    """

    body: str
    of: str
    multiplier: float = 1.0
    offset: float = 0.0

    def __post_init__(self) -> None:
        where = f"mimic `{shown(self.body)}`"
        for name in ("body", "of"):
            check_name(getattr(self, name), f"{where}, `{name}`")
        for attribute in ("multiplier", "offset"):
            value = scalar(getattr(self, attribute), f"{where}, `{attribute}`")
            object.__setattr__(self, attribute, value)
        if self.of == self.body:
            raise _refusal(f"{where}, `of`", "another joint", f"`{self.of}`")


def check_drives(
    where: str, tree: BodyTree, drives: Sequence[Drive], floats: bool
) -> dict[str, str]:
    """Check drives of a tree; by body, the drive that moves its joint.

    A base that `floats` has no motor.
    """
    names = tree.freedom_names
    spans = zip(tree.bodies, tree.v_spans, strict=True)
    bodies = {name: body.name for body, span in spans for name in names[span]}
    geared: dict[str, str] = {}
    given = [drive.name for drive in drives]
    for drive in drives:
        place = f"{where}, drive `{drive.name}`"
        own = drive.name in (drive.joints or ())  # a gear on one joint may have its name
        if given.count(drive.name) > 1 or (drive.name in names and not own):
            raise DescriptionError(
                place,
                expected="a name that no joint and no other drive has",
                came=f"`{drive.name}` twice",
                cure="Rename the drive.",
            )
        if drive.body is not None:
            tree.index(drive.body, f"drive `{drive.name}`, `body`")
        for name in drive.joints or ():
            if name not in names:
                raise unknown_name(f"{place}, `joints`", "joint", name, names)
            if bodies[name] == tree.base.name and floats:
                raise DescriptionError(
                    f"{place}, `joints`",
                    expected="joints other than the base",
                    came=f"the base `{tree.base.name}`",
                    cure="A floating base has no motor: describe a thruster by `body` and "
                    "`wrench`.",
                )
            geared[bodies[name]] = drive.name
    return geared


def actuated_bodies(
    where: str,
    tree: BodyTree,
    given: Any,
    geared: Mapping[str, str],
    platforms: Collection[int],
    floats: bool,
) -> tuple[str, ...]:
    """Check which joints of a tree have a motor each: none that something else moves."""
    place, omit = f"{where}, `actuated`", "Remove it from the list."
    names = None if isinstance(given, str) else entries(given, str)
    if names is None:
        raise DescriptionError(
            place,
            expected="a list of body names",
            came=f"{type(given).__name__} {shown(given)}",
            cure='Write ["left", "right"].',
        )
    for name in names:
        index = tree.index(name, "`actuated`")
        if index == 0 and floats:
            raise DescriptionError(
                place,
                expected="joints other than the base",
                came=f"the base `{name}`",
                cure="A floating base is unactuated: its pose follows from the wheels or from "
                f"momentum. {omit}",
            )
        if index in platforms:
            raise DescriptionError(
                place,
                expected="joints other than those of bodies that stand on wheels",
                came=f"`{name}`",
                cure=f"Its pose follows from the wheels. {omit}",
            )
        if name in geared:
            raise DescriptionError(
                place,
                expected="joints without a drive",
                came=f"`{name}`, which the drive `{geared[name]}` moves",
                cure="Remove it from the list, or give its own motor as a drive too.",
            )
        if tree.bodies[index].joint.nv == 0:
            raise DescriptionError(
                place,
                expected="joints that can move",
                came=f"the fixed joint of `{name}`",
                cure=omit,
            )
    if len(set(names)) != len(names):
        raise DescriptionError(
            place,
            expected="each joint once",
            came=", ".join(names),
            cure="Remove the repeated name.",
        )
    return names


def ordered_mimics(
    where: str, bodies: Sequence[Body], mimics: Sequence[Mimic]
) -> tuple[Mimic, ...]:
    """Check joints that follow others; each comes after the one that it follows."""
    names = [body.name for body in bodies]
    followers = [mimic.body for mimic in mimics]
    for mimic in mimics:
        place = f"{where}, mimic `{mimic.body}`"
        for attribute in ("body", "of"):
            name = getattr(mimic, attribute)
            if name not in names:
                raise unknown_name(f"{place}, `{attribute}`", "body", name, names)
            joint = bodies[names.index(name)].joint
            if joint.nv != 1 or name == names[0]:
                base = "the base" if name == names[0] else f"with {joint.nv}"
                raise DescriptionError(
                    f"{place}, `{attribute}`",
                    expected="a joint with one coordinate, not that of the base",
                    came=f"`{name}`, {base}",
                    cure="Couple joints of type Revolute, Prismatic or Helical.",
                )
        if followers.count(mimic.body) > 1:
            raise DescriptionError(
                place,
                expected="a joint that follows one other",
                came=f"{followers.count(mimic.body)} that it follows",
                cure="Keep one of them.",
            )
    ordered, waiting = list[Mimic](), list(mimics)
    while waiting:
        pending = {mimic.body for mimic in waiting}
        ready = next((mimic for mimic in waiting if mimic.of not in pending), None)
        if ready is None:
            raise DescriptionError(
                f"{where}, `mimics`",
                expected="a joint at the start of each chain that follows no other",
                came=f"a cycle of {', '.join(f'`{mimic.body}`' for mimic in waiting)}",
                cure="Remove one of the couplings.",
            )
        ordered.append(ready)
        waiting.remove(ready)
    return tuple(ordered)


def _refusal(where: str, expected: str, came: str) -> ConcurError:
    return DescriptionError(
        where, expected=expected, came=came, cure="See the documentation of the constructor."
    )
