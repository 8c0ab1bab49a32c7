"""Motors that are not one by one on joints, and joints that follow others."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from concur.errors import ConcurError, DescriptionError, shown
from concur.robot._pose import scalar, vector


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
        Gear ratio of each joint that the motor moves, by the name of its freedom (that of the body,
        if the joint has one): force or torque of the joint = ratio times that of the motor. Joints
        with a common motor share its torque as a differential does; two motors with two
        joints each are a coupled wrist.
    body : str, optional
        Body on which a thruster acts, in place of `joints`.
    wrench : sequence of float, optional
        Its wrench per unit of the control in the axes of the body, [force; moment], shape (6,),
        1 and m for a control in N.
    point : sequence of float
        Point of the body at which the wrench acts, shape (3,), m.
    torque_limit : float, optional
        Largest torque or force of the motor, either way. It is part of the verdict of a run.

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
    wrench: Sequence[float] | None = None
    point: Sequence[float] = (0.0, 0.0, 0.0)
    torque_limit: float = math.inf

    def __post_init__(self) -> None:
        where = f"drive `{self.name}`"
        if not isinstance(self.name, str) or not self.name.strip():
            raise _refusal("Drive, `name`", "a name (text that is not empty)", shown(self.name))
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
            if not isinstance(self.body, str):
                raise _refusal(f"{where}, `body`", "the name of a body", shown(self.body))
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
        where = f"mimic `{self.body}`"
        for attribute in ("multiplier", "offset"):
            value = scalar(getattr(self, attribute), f"{where}, `{attribute}`")
            object.__setattr__(self, attribute, value)
        if self.of == self.body:
            raise _refusal(f"{where}, `of`", "another joint", f"`{self.of}`")


def _refusal(where: str, expected: str, came: str) -> ConcurError:
    return DescriptionError(
        where, expected=expected, came=came, cure="See the documentation of the constructor."
    )
