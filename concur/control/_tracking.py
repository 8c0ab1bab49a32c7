"""Errors, transported references and feedback of the law, each product of them formed once.

The formulas are those of the output groups; here the exponential of the error is the quaternion
it was taken from, and matrices of the algebra act on vectors instead of being formed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import pairwise
from typing import TypeAlias

import casadi as ca
import numpy as np

from concur.codegen import Array, Vector, constant
from concur.control._error_dynamics import ErrorDynamics
from concur.groups import quaternion
from concur.groups.along_matrix import along_matrix
from concur.groups.stumpff import INVERSE_SERIES, horner
from concur.outputs.groups import Direction, OutputGroup, Pose, Product, Rotation
from concur.robot import Placed

NEAR = 0.04
"""Squared angle, rad^2, below which the coefficients come from their series."""

TERMS = 5
"""Terms of the series: the first left out is NEAR / (2 pi)^2 to this power."""

TINY = 1e-300
"""Keeps the square root of a sum of squares from zero."""

Act: TypeAlias = Callable[[Array], Array]
Pull: TypeAlias = Callable[[Array, bool], Array]


class Tracked:
    """Error of one output against its reference pose, with what follows from it.

    The `error` is x = log(r^-1 gamma), (dim,); `transport` applies Ad of r^-1 gamma to a vector
    (dim,); `push` applies B(x), and `pull` B(x)^T, which takes whether each three components of the
    vector are known to be a multiple of those of x, as with one gain for all axes. `spin` takes a
    twist of the reference, and a vector to its rate under turns of the tangent plane with the
    reference, zero on groups.
    """

    error: ca.SX
    transport: Act
    push: Act
    pull: Pull

    def __init__(self, group: OutputGroup, pose: Placed, desired: Vector) -> None:
        self.group = group
        self.direction: Array | None = None
        if isinstance(group, Direction):
            self.direction = direction = group.coordinates(pose)
            self.error = x = group.error(direction, desired)
            self.transport = lambda values: group.transport(x, direction) @ values
            self.push = lambda values: group.error_map(x) @ values
            self.pull = lambda values, _: values
        elif isinstance(group, Rotation):
            turned = _Turned(pose[0], desired)
            self.error = turned.vector
            self.transport = lambda values: turned.matrix @ values
            self.push, self.pull = turned.push, turned.pull
        elif isinstance(group, Pose):
            self._of_pose(pose, desired)
        else:
            x = group.error(group.coordinates(pose), desired)
            self.error = x
            self.transport = lambda values: group.transport(x) @ values
            self.push = lambda values: group.error_map(x) @ values
            self.pull = lambda values, _: group.error_map(x).T @ values

    def _of_pose(self, pose: Placed, desired: Vector) -> None:
        turned = _Turned(pose[0], desired[3:])
        w = turned.vector
        offset = pose[0].T @ (desired[:3] - pose[1])
        once = ca.cross(w, offset)
        x = offset - once / 2 + turned.square * ca.cross(w, once)
        self.error = ca.vertcat(x, w)

        def transport(values: Array) -> Array:
            angular = turned.matrix @ values[3:]
            return ca.vertcat(turned.matrix @ values[:3] + ca.cross(offset, angular), angular)

        def pull(values: Array, proportional: bool) -> Array:
            linear, angular = values[:3], values[3:]
            first = ca.cross(w, linear)
            second = ca.cross(w, first)
            own = linear + first / 2 + turned.square * second
            other = turned.pull(angular, proportional)
            if not proportional:
                side = ca.cross(x, linear)
                other += side / 2 + turned.square * ca.cross(w, side)
            other += turned.square * ca.cross(x, first)
            other += 2 * ca.dot(w, x) * turned.slope * second
            return ca.vertcat(own, other)

        def push(values: Array) -> Array:
            linear, angular = values[:3], values[3:]
            first, side = ca.cross(w, linear), ca.cross(x, angular)
            second = ca.cross(w, ca.cross(w, angular))
            own = linear - (first + side) / 2 + turned.square * ca.cross(w, first + side)
            own += turned.square * ca.cross(x, ca.cross(w, angular))
            own += 2 * ca.dot(w, x) * turned.slope * second
            return ca.vertcat(own, turned.push(angular))

        self.transport, self.push, self.pull = transport, push, pull

    def spin(self, values: Array, twist: Array) -> Array:
        if self.direction is None:
            return ca.SX(*values.shape)
        return ca.dot(self.direction, twist) * ca.vertcat(-values[1], values[0])

    def change(self, velocity: Array, twist: Array) -> Array:
        """Rate of the transported twist of a reference that does not accelerate."""
        if self.direction is None:
            return -(self.group.ad(velocity) @ self.transport(twist))
        return self.spin(velocity, twist)


class TrackedOutputs:
    """Errors of outputs, group and pose of each, against flat reference poses (pose_size,).

    The `error` is that of all outputs, (size,).
    """

    def __init__(self, poses: Iterable[tuple[OutputGroup, Placed]], desired: Vector) -> None:
        self._parts: list[Tracked] = []
        for group, pose in poses:
            for factor in group.factors if isinstance(group, Product) else (group,):
                self._parts.append(Tracked(factor, pose, desired[: factor.pose_size, :]))
                desired = desired[factor.pose_size :, :]
        self.error = ca.vertcat(*[part.error for part in self._parts])
        self._ends = np.cumsum([0, *[part.error.numel() for part in self._parts]]).tolist()
        twists = [0, *[part.group.paths.dim for part in self._parts]]
        self._twist_ends = np.cumsum(twists).tolist()

    def _each(self, values: Array) -> Iterator[tuple[Tracked, Array]]:
        return zip(self._parts, ca.vertsplit(values, self._ends), strict=True)

    def _twists(self, twist: Array) -> Iterator[tuple[Tracked, Array]]:
        return zip(self._parts, ca.vertsplit(twist, self._twist_ends), strict=True)

    def transport(self, twist: Array) -> Array:
        """Apply Ad of r^-1 gamma to a twist of the reference (twist_size,)."""
        return ca.vertcat(*[part.transport(piece) for part, piece in self._twists(twist)])

    def ahead(self, velocity: Array, twist: Array, acceleration: Array) -> Array:
        """Rate (size,) of the transported twist, at an output velocity (size,)."""
        pieces = zip(self._each(velocity), self._twists(twist), strict=True)
        changes = [part.change(own, piece) for (part, own), (_, piece) in pieces]
        return self.transport(acceleration) + ca.vertcat(*changes)

    def spin(self, values: Array, twist: Array) -> Array:
        """Rate of a vector (size,) that turns with the tangent planes of the reference."""
        pieces = zip(self._each(values), self._twists(twist), strict=True)
        return ca.vertcat(*[part.spin(own, piece) for (part, own), (_, piece) in pieces])

    def push(self, values: Array) -> Array:
        """Apply B(x) to a vector (size,)."""
        return ca.vertcat(*[part.push(piece) for part, piece in self._each(values)])

    def pull(self, stiffness: np.ndarray) -> Array:
        """Force of springs: B(x)^T KP x, shape (size,)."""
        alike = [
            (end - start) % 3 == 0 and proportional(stiffness, start, end - start)
            for start, end in pairwise(self._ends)
        ]
        pieces = zip(self._each(constant(stiffness) @ self.error), alike, strict=True)
        return ca.vertcat(*[part.pull(piece, one) for (part, piece), one in pieces])


def command(
    dynamics: ErrorDynamics,
    poses: Iterable[tuple[OutputGroup, Placed]],
    velocity: Vector,
    given: Mapping[str, Array],
) -> tuple[Array, Array]:
    """Commanded rate nu (size,) of the output velocity, (5.4.30)-(5.4.33), and pose error (size,).

    From group and pose of each output, its velocity (size,), and the law's inputs by name: the flat
    reference and, where the law has one, the integral z (size,) of the pose error.
    """
    tracked, twist = TrackedOutputs(poses, given["pose"]), given["twist"]
    behind = velocity - tracked.transport(twist)
    scale = np.linalg.inv(dynamics.inertia)
    force = constant(scale) @ tracked.pull(dynamics.stiffness)
    force -= constant(scale @ dynamics.damping) @ behind
    if dynamics.integral is not None:
        force += constant(scale @ dynamics.integral) @ given["z"]
    ahead = tracked.ahead(velocity, twist, given["acceleration"]) + tracked.spin(behind, twist)
    return force + ahead, tracked.error


class _Turned:
    """Error of an orientation: rotation vector, matrix, and coefficients of its differentials."""

    def __init__(self, actual: Vector, desired: Vector) -> None:
        here = along_matrix(actual)
        error = quaternion.multiply(quaternion.conjugate(here), desired)
        # Both quaternions may be of any norm, and of either sign.
        unit = error * (ca.if_else(error[3] < 0, -1.0, 1.0) / ca.sqrt(ca.sumsqr(error)))
        sine = ca.sqrt(ca.sumsqr(unit[:3]) + TINY)
        half = ca.atan2(sine, unit[3]) / sine
        self.vector = 2 * half * unit[:3]
        self.matrix = quaternion.to_matrix(unit)
        square = (2 * half * sine) ** 2
        near, far = square < NEAR, ca.fmax(square, NEAR)
        slopes = [n * c for n, c in enumerate(INVERSE_SERIES)][1:]
        large = (1 - half * unit[3]) / far
        self.square = ca.if_else(near, horner(INVERSE_SERIES[:TERMS], square), large)
        # Riccati's equation of the cotangent gives the slope from the coefficient.
        steep = (0.25 + large * (far * large - 3)) / (2 * far)
        self.slope = ca.if_else(near, horner(slopes[:TERMS], square), steep)

    def push(self, values: Array) -> Array:
        first = ca.cross(self.vector, values)
        return values - first / 2 + self.square * ca.cross(self.vector, first)

    def pull(self, values: Array, proportional: bool) -> Array:
        if proportional:
            return values
        first = ca.cross(self.vector, values)
        return values + first / 2 + self.square * ca.cross(self.vector, first)


def proportional(stiffness: np.ndarray, start: int, size: int) -> bool:
    """Whether KP multiplies each three components of an output by one number."""
    rows = stiffness[start : start + size].copy()
    for k in range(0, size, 3):
        rows[k : k + 3, start + k : start + k + 3] -= rows[k, start + k] * np.eye(3)
    return not rows.any()
