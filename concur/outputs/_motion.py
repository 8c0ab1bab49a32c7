"""How outputs move: the one place in this package that uses the kinematics of bodies.

A law asks for poses, velocity, Jacobian and drift of its outputs, all by `output_motion`. Frames on
bodies move by the recursion from link to link; outputs that are functions by derivatives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import casadi as ca
import numpy as np

from concur.codegen import Array, constant
from concur.outputs._functions import FunctionOutput, function_following, function_motion
from concur.outputs._output import Output
from concur.outputs.groups import AXES, Direction, OutputGroup, Pose, Product, Rotation, Vector
from concur.reduction import along
from concur.robot import (
    Mechanism,
    Placed,
    Posture,
    Twist,
    as_tree,
    bracket,
    compose,
    cross,
    invert,
    jacobian,
    motion_from,
    twist_to_child,
)
from concur.system import System

_FOLLOWED = (Rotation, Vector, Pose, Direction)
"""Groups whose rates along another motion the recursion over the links gives."""


@dataclass(frozen=True, eq=False)
class Part:
    """Motion of a part of the outputs: velocity, acceleration (k,) and Jacobian (k, nv).

    The turn is the rotation (3, 3) from the Jacobian's axes to the output's, which acts on each
    three rows; None where they are the same.
    """

    velocity: Array
    acceleration: Array
    jacobian: Array
    turn: Array | None = None


@dataclass(frozen=True, eq=False)
class OutputMotion:
    """Motion of the outputs at one configuration, velocity and acceleration of the joints.

    `poses` are those of the outputs' frames, in the inertial frame or that of `relative_to`, and
    `coordinates` the flat ones, (pose_size,).
    """

    poses: list[Placed]
    coordinates: Array
    parts: list[Part]
    nv: int

    @property
    def velocity(self) -> Array:
        """Output velocity r^-1 rdot, shape (size,)."""
        return ca.vertcat(ca.SX(0, 1), *[part.velocity for part in self.parts])

    @property
    def acceleration(self) -> Array:
        """Its rate; the drift where the joint accelerations are zero, shape (size,)."""
        return ca.vertcat(ca.SX(0, 1), *[part.acceleration for part in self.parts])

    @property
    def jacobian(self) -> Array:
        """Joint velocities to output velocities along the axes of `turned`, shape (size, nv)."""
        return ca.vertcat(ca.SX(0, self.nv), *[part.jacobian for part in self.parts])

    def turned(self, values: Array) -> Array:
        """Components (size, k) along the outputs' axes, along those of the Jacobian."""
        return self._turned(values, lambda turn: turn.T)

    def unturned(self, values: Array) -> Array:
        """Components (size, k) along the Jacobian's axes, along the outputs'."""
        return self._turned(values, lambda turn: turn)

    def _turned(self, values: Array, rotation: Callable[[Array], Array]) -> Array:
        moved, start = [values[:0, :]], 0
        for part in self.parts:
            rows = values[start : start + part.velocity.shape[0], :]
            start += part.velocity.shape[0]
            if part.turn is None:
                moved.append(rows)
            else:
                moved += [rotation(part.turn) @ own for own in ca.vertsplit(rows, 3)]
        return ca.vertcat(*moved)


def output_motion(
    robot: System,
    outputs: Sequence[Output],
    q: Array,
    v: Array | None = None,
    vdot: Array | None = None,
    base_axes: bool = False,
) -> OutputMotion:
    """Motion of outputs at q (nq,), joint velocities v (nv,) and their rates vdot; default zero.

    With `base_axes` the Jacobian is along the axes of the base where an output takes all three
    components of a velocity. To an equation ``J H sdot = nu - b`` axes do not matter: its right
    side is turned instead of the matrix, and scales and margins stay the same.
    """
    still = ca.SX(robot.nv, 1)
    state = q, still if v is None else v, still if vdot is None else vdot
    tree: _Tree | None = None
    poses, coordinates, parts = list[Placed](), [ca.SX(0, 1)], list[Part]()
    for output in outputs:
        if isinstance(output, FunctionOutput):
            pose, found, *moved = function_motion(robot, output, *state)
            own = [Part(*moved)]
        else:
            bodies = as_tree(robot, "outputs")
            if output.relative_to is None and base_axes:
                tree = tree or _Tree(bodies, *state, gravity=bodies.gravity)
                sight = tree.sight(output)
                pose, own = sight.pose, sight.parts(output.lie)
            else:
                pose, *moved = _own_motion(bodies, output, *state)
                own = [Part(*moved)]
            found = output.lie.coordinates(pose)
        poses.append(pose)
        coordinates.append(found)
        parts += own
    return OutputMotion(poses, ca.vertcat(*coordinates), parts, robot.nv)


def following_rate(
    system: System, outputs: Sequence[Output], q: Array, v: Array, w: Array
) -> Array:
    """Rate along a motion v (nv,) of the output velocity of constant w (nv,), shape (size,)."""
    rates = []
    tree: _Tree | None = None
    for output in outputs:
        factors = output.lie.factors if isinstance(output.lie, Product) else (output.lie,)
        if isinstance(output, FunctionOutput):
            rates.append(function_following(system, output, q, v, w))
        elif output.relative_to is None and all(isinstance(lie, _FOLLOWED) for lie in factors):
            tree = tree or _Tree(as_tree(system, "outputs"), q, v, ca.SX(system.nv, 1), w=w)
            sight = tree.sight(output)
            rates += [sight.following(lie, w) for lie in factors]
        elif isinstance(output.lie, Direction):
            # Of the angular velocity the rate is known, its normals do not count.
            whole = replace(output, group="SO3", axis=AXES["z"])
            pose, spin, *_ = _own_motion(
                as_tree(system, "outputs"), whole, q, v, ca.SX(system.nv, 1)
            )
            turning = partial(_velocity, system, whole, w)
            rate = along(turning, q, system.rate(q, v)) + cross(spin, turning(q))
            rates.append(output.lie.following(pose, spin, turning(q), rate))
        else:
            rates.append(along(partial(_velocity, system, output, w), q, system.rate(q, v)))
    return ca.vertcat(*rates)


def _velocity(system: System, output: Output, w: Array, q: Array) -> Array:
    return output_motion(system, (output,), q, w).velocity


def twist_rows(output: Output, pose: Placed) -> Array:
    """Map (dim, 6) from the twist of an output's frame to its velocity; rows are orthonormal."""
    return _columns(output.lie, pose, (ca.SX.eye(6)[:3, :], ca.SX.eye(6)[3:, :]))


def _columns(lie: OutputGroup, pose: Placed, twists: Twist) -> Array:
    """Output velocities of several twists, one a column."""
    count = twists[0].shape[1]
    return ca.horzcat(
        *[lie.velocity(pose, (twists[0][:, k], twists[1][:, k])) for k in range(count)]
    )


@dataclass(frozen=True, eq=False)
class _Sight:
    """Motion of one output's frame.

    Its pose and attitude in the base, Jacobian along the base's axes; along its own axes angular
    velocity with rate, acceleration of its origin, and the rate of the angular velocity of the
    constant joint velocities of `following_rate`.
    """

    root: Array
    pose: Placed
    attitude: Array
    columns: Twist
    v: Array
    turning: Twist
    pulled: Array
    led: Array | None

    def parts(self, lie: OutputGroup) -> list[Part]:
        """Motion in a group, by its factors."""
        if isinstance(lie, Product):
            return [part for factor in lie.factors for part in self.parts(factor)]
        spin, spun = self.turning
        linear, angular = self.columns
        if isinstance(lie, Rotation):
            return [Part(spin, spun, angular, self.attitude.T)]
        moving = linear @ self.v
        if isinstance(lie, Vector):
            rows = constant([AXES[axis] for axis in lie.axes])
            velocity = rows @ (self.root @ moving)
            acceleration = rows @ (self.pose[0] @ self.pulled)
            if lie.axes == ("x", "y", "z"):
                return [Part(velocity, acceleration, linear, self.root)]
            return [Part(velocity, acceleration, rows @ self.root @ linear)]
        twist = self.attitude.T @ moving, spin
        rate = self.pulled - cross(spin, twist[0]), spun
        if isinstance(lie, Pose):
            velocity, acceleration, jacobian = (ca.vertcat(*x) for x in (twist, rate, self.columns))
            return [Part(velocity, acceleration, jacobian, self.attitude.T)]
        own = self.attitude.T @ linear, self.attitude.T @ angular
        velocity = lie.velocity(self.pose, twist)
        acceleration = lie.acceleration(self.pose, twist, rate)
        return [Part(velocity, acceleration, _columns(lie, self.pose, own))]

    def following(self, lie: OutputGroup, w: Array) -> Array:
        """Rate of the velocity of constant joint velocities w (nv,) in a group."""
        if isinstance(lie, Vector):
            return constant([AXES[axis] for axis in lie.axes]) @ (self.pose[0] @ self.pulled)
        spin, spun = self.turning
        if isinstance(lie, Direction):
            return lie.following(self.pose, spin, self.led, spun)
        spun -= cross(spin, self.led)
        if isinstance(lie, Rotation):
            return spun
        moving = self.attitude.T @ (self.columns[0] @ w)
        return ca.vertcat(self.pulled - cross(spin, moving), spun)


class _Tree:
    """Motion of a robot's links, in frames that suit the recursion, at q, v and vdot.

    With `gravity` the ground is accelerated against it, so that the law shares these expressions
    with the bias. With `w` the accelerations are rates, along the motion v, of velocities of
    constant joint velocities w.
    """

    def __init__(
        self,
        robot: Mechanism,
        q: Array,
        v: Array,
        vdot: Array,
        gravity: Sequence[float] = (0.0, 0.0, 0.0),
        w: Array | None = None,
    ) -> None:
        self.robot, self.v, self.gravity, self.follows = robot, v, gravity, w is not None
        posture = Posture.of(robot, q)
        self.links, self.seats = posture.links, robot.terms.seats
        self.frames, self.root = posture.frames(), posture.root
        self.motions = posture.motions(v, vdot, tuple(gravity), w)

    def sight(self, output: Output) -> _Sight:
        """Motion of an output's frame."""
        seat = self.seats[self.robot.index(output.body)]
        frame = constant(seat.rotation @ output.frame.rotation_matrix)
        way = constant(seat.rotation @ np.array(output.point) + seat.translation)
        attitude, origin = compose(self.frames[seat.link], (frame, way))
        linear, angular = ca.SX(3, self.robot.nv), ca.SX(3, self.robot.nv)
        at: int | None = seat.link
        while at is not None:
            rotation, place = self.frames[at]
            axes, span = rotation @ self.links[at].basis[1], self.links[at].span
            linear[:, span] = rotation @ self.links[at].basis[0] - cross(origin - place, axes)
            angular[:, span] = axes
            at = self.links[at].parent
        motion = self.motions[seat.link]
        turning = frame.T @ motion.angular, frame.T @ motion.rate
        pose = compose(self.root, (attitude, origin))
        pulled = frame.T @ (motion.linear + motion.changed(way)) + pose[0].T @ constant(
            self.gravity
        )
        led = frame.T @ motion.followed if self.follows else None
        return _Sight(self.root[0], pose, attitude, (linear, angular), self.v, turning, pulled, led)


def _own_motion(
    robot: Mechanism, output: Output, q: Array, v: Array, vdot: Array
) -> tuple[Placed, Array, Array, Array]:
    """Pose, velocity, acceleration and Jacobian along an output's own axes.

    An output relative to a body is seen from the nearest body that carries both, so that neither
    its motion nor gravity occurs in the result.
    """
    carrier, lie = None, output.lie
    if output.relative_to is not None:
        way, other = (robot.path(robot.index(b)) for b in (output.body, output.relative_to))
        carrier = robot.bodies[max(set(way) & set(other), key=way.index)].name

    def seen(body: str) -> tuple[Placed, list[Twist]]:
        pose, *moved = motion_from(robot, q, v, vdot, body, carrier)
        linear, angular = ca.vertsplit(jacobian(robot, q, body, carrier), 3)
        return pose, [*moved, (linear, angular)]

    pose, moved = seen(output.body)
    pose, (twist, rate, columns) = output.placed(pose), map(output.moved, moved)
    if output.relative_to is not None:
        frame, carried = seen(output.relative_to)
        pose = compose(invert(frame), pose)
        taken = [twist_to_child(pose, part) for part in carried]
        twist, rate, columns = map(_less, (twist, rate, columns), taken)
        # The carried twist is constant in the axes of the other body, not in the output's.
        turning = bracket(twist, taken[0])
        rate = rate[0] + turning[0], rate[1] + turning[1]
    acceleration = lie.acceleration(pose, twist, rate)
    return pose, lie.velocity(pose, twist), acceleration, lie.velocity(pose, columns)


def _less(one: Twist, other: Twist) -> Twist:
    return one[0] - other[0], one[1] - other[1]
