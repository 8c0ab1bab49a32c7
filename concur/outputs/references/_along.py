"""Poses that move along the exponential of a path: start exp(x(t)) on the group of the output."""

from __future__ import annotations

from functools import cache
from typing import Any

import casadi as ca

from concur.codegen import Array, Vector
from concur.groups import quaternion, se3, so3
from concur.outputs._sample import Part
from concur.outputs.references._columns import Floats, column_function
from concur.outputs.references._expression import Motion, Reader
from concur.outputs.references._poses import LIE
from concur.outputs.references._reference import Expression, Path, Reference


class Along(Expression):
    """start exp(x(t)) in "R3xSO3", "SE3" or "SO3": x(t) is a path in the logarithms."""

    def __init__(self, start: Floats, path: Reference, group: str) -> None:
        self.pose_size, self.size = LIE[group].pose_size, LIE[group].dim
        self._start, self._path, self._group = start, path, group

    @property
    def groups(self) -> tuple[Part, ...]:
        """One part, in the group."""
        return ((self.pose_size, self.size, self._group),)

    def _motion(self, t: Array, read: Reader) -> Motion:
        way, rate, second = self._path._motion(t, read)
        pose, twist, change = exponential(ca.SX(self._start), (way, rate, second), self._group)
        if isinstance(self._path, Straight):
            return pose, rate, second  # Along a one-parameter subgroup these are exact.
        return pose, twist, change


class Straight(Path):
    """A fixed direction (n,) times the time, or times a reference in R."""

    def __init__(self, direction: Floats, progress: Reference | None = None) -> None:
        self.pose_size = self.size = direction.size
        self._direction, self._progress = direction, progress

    def _motion(self, t: Array, read: Reader) -> Motion:
        parts: Motion = (t, ca.SX(1), ca.SX(0))
        if self._progress is not None:
            parts = self._progress._motion(t, read)
        way, rate, second = (part * ca.SX(self._direction) for part in parts)
        return way, rate, second


def exponential(start: Array, path: Motion, group: str) -> Motion:
    """Pose start exp(x) with twist D(x) xdot (2.1.4) and its time derivative.

    Of a starting pose, and x with its first and second rate.
    """
    pose, twist, change = _exponential(group)(start, *path)
    return pose, twist, change


@cache
def _exponential(group: str) -> ca.Function:
    lie = LIE[group]

    def along(start: Vector, x: Vector, rate: Array, second: Array) -> Any:
        twist = _differential(group, x) @ rate
        symbols, changes = ca.vertcat(x, rate), ca.vertcat(rate, second)
        return _moved(group, start, x), twist, ca.jtimes(twist, symbols, changes)

    return column_function(f"exponential_{group}", along, (lie.pose_size, *[lie.dim] * 3))


def _moved(group: str, start: Vector, x: Vector) -> Array:
    if group == "SO3":
        return quaternion.multiply(start, quaternion.exp(x))
    attitude = quaternion.multiply(start[3:], quaternion.exp(x[3:]))
    if group == "R3xSO3":
        return ca.vertcat(start[:3] + x[:3], attitude)
    offset = quaternion.rotate(start[3:], so3.dexp_spatial(x[3:]) @ x[:3])
    return ca.vertcat(start[:3] + offset, attitude)


def _differential(group: str, x: Vector) -> Array:
    if group == "SO3":
        return so3.dexp_body(x)
    if group == "R3xSO3":
        return ca.diagcat(ca.SX.eye(3), so3.dexp_body(x[3:]))
    return se3.dexp_body(x)
