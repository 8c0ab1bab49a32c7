"""How outputs move: the one place in this package that uses the kinematics of bodies.

A law asks for poses, velocity, Jacobian and drift of its outputs, all behind `output_motion`. What
answers is an `OutputMotion`. Robots made of bodies have two: along the outputs' own axes, and, for
the law, along the base's, where that costs least.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import casadi as ca
import numpy as np

from concur.codegen import Array, constant
from concur.outputs._functions import FunctionMotion, FunctionOutput
from concur.outputs._output import Output
from concur.outputs.groups import AXES, OutputGroup, Pose, Product, Rotation, Vector
from concur.reduction import along
from concur.robot import (
    Mechanism,
    Placed,
    Twist,
    as_tree,
    body_accelerations,
    body_poses,
    body_twists,
    bracket,
    compose,
    cross,
    invert,
    jacobian,
    joint_poses,
    link_bases,
    link_frames,
    link_motions,
    link_steps,
    motion_from,
    root_axes,
    twist_to_child,
)
from concur.system import System


class OutputMotion(Protocol):
    """Motion of the outputs at one configuration, velocity and acceleration of the joints."""

    @property
    def poses(self) -> list[Placed]:
        """Pose of each output's frame, in the inertial frame or that of `relative_to`."""

    @property
    def coordinates(self) -> Array:
        """Flat coordinates of the outputs, shape (pose_size,)."""

    @property
    def velocity(self) -> Array:
        """Output velocity r^-1 rdot, shape (size,)."""

    @property
    def acceleration(self) -> Array:
        """Its rate; the drift where the joint accelerations are zero, shape (size,)."""

    @property
    def jacobian(self) -> Array:
        """Joint velocities to output velocities along the axes of `turned`, shape (size, nv)."""

    def turned(self, values: Array) -> Array:
        """Components (size, k) along the outputs' axes, along those of the Jacobian."""

    def unturned(self, values: Array) -> Array:
        """Components (size, k) along the Jacobian's axes, along the outputs'."""


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
    moving = still if v is None else v
    change = still if vdot is None else vdot
    functions = any(isinstance(output, FunctionOutput) for output in outputs)
    if functions or not isinstance(robot, Mechanism):
        return _Together(
            robot.nv,
            [
                FunctionMotion.of(robot, output, q, moving, change)
                if isinstance(output, FunctionOutput)
                else _InOutputAxes(as_tree(robot, "outputs"), (output,), q, moving, change)
                for output in outputs
            ],
        )
    kind = _InBaseAxes if base_axes else _InOutputAxes
    return kind(robot, tuple(outputs), q, moving, change)


def following_rate(
    system: System, outputs: Sequence[Output], q: Array, v: Array, w: Array
) -> Array:
    """Rate along a motion v (nv,) of the output velocity of constant w (nv,), shape (size,)."""
    functions = any(isinstance(output, FunctionOutput) for output in outputs)
    if functions or not isinstance(system, Mechanism):
        return _by_derivative(system, outputs, q, v, w)
    return _InBaseAxes(system, tuple(outputs), q, v, ca.SX(system.nv, 1)).following(w)


def _by_derivative(
    system: System, outputs: Sequence[Output], q: Array, v: Array, w: Array
) -> Array:
    return along(lambda x: output_motion(system, outputs, x, w).velocity, q, system.rate(q, v))


@dataclass(frozen=True, eq=False)
class _Together:
    """Motion of outputs of different kinds, one after the other, each along its own axes."""

    nv: int
    parts: Sequence[OutputMotion]

    @property
    def poses(self) -> list[Placed]:
        return [pose for part in self.parts for pose in part.poses]

    @property
    def coordinates(self) -> Array:
        return ca.vertcat(ca.SX(0, 1), *[part.coordinates for part in self.parts])

    @property
    def velocity(self) -> Array:
        return ca.vertcat(ca.SX(0, 1), *[part.velocity for part in self.parts])

    @property
    def acceleration(self) -> Array:
        return ca.vertcat(ca.SX(0, 1), *[part.acceleration for part in self.parts])

    @property
    def jacobian(self) -> Array:
        return ca.vertcat(ca.SX(0, self.nv), *[part.jacobian for part in self.parts])

    def turned(self, values: Array) -> Array:
        return values

    unturned = turned


def twist_rows(output: Output, pose: Placed) -> Array:
    """Map (dim, 6) from the twist of an output's frame to its velocity; rows are orthonormal."""
    unit = ca.SX.eye(6)
    return ca.horzcat(*[output.lie.velocity(pose, (unit[:3, k], unit[3:, k])) for k in range(6)])


@dataclass(frozen=True, eq=False)
class _OfBodies(ABC):
    """Motion of outputs that are frames on bodies."""

    robot: Mechanism
    outputs: tuple[Output, ...]
    q: Array
    v: Array
    vdot: Array

    @property
    @abstractmethod
    def poses(self) -> list[Placed]: ...

    @cached_property
    def _relatives(self) -> list[_Relative | None]:
        """Motion of each output that is relative to a body."""
        moving = self.q, self.v, self.vdot
        return [
            None if o.relative_to is None else _Relative.of(self.robot, o, o.relative_to, *moving)
            for o in self.outputs
        ]

    @property
    def coordinates(self) -> Array:
        placed = zip(self.outputs, self.poses, strict=True)
        return ca.vertcat(*[output.lie.coordinates(pose) for output, pose in placed])


class _InOutputAxes(_OfBodies):
    """Recursions from body to body, in the frames of the description."""

    @cached_property
    def poses(self) -> list[Placed]:
        poses = body_poses(self.robot, self.q)
        return [
            output.placed(poses[self.robot.index(output.body)]) if seen is None else seen.pose
            for output, seen in zip(self.outputs, self._relatives, strict=True)
        ]

    @cached_property
    def _moved(self) -> list[tuple[Twist, Twist]]:
        """Twist of each output's frame, and its rate."""
        robot, relative = self.robot, joint_poses(self.robot, self.q)
        twists = body_twists(robot, relative, self.v)
        rates = body_accelerations(robot, relative, twists, self.v, self.vdot)
        at = [robot.index(output.body) for output in self.outputs]
        return [
            (output.moved(twists[i]), output.moved(rates[i]))
            if seen is None
            else (seen.twist, seen.rate)
            for output, i, seen in zip(self.outputs, at, self._relatives, strict=True)
        ]

    @property
    def velocity(self) -> Array:
        parts = zip(self.outputs, self.poses, self._moved, strict=True)
        return ca.vertcat(*[o.lie.velocity(pose, twist) for o, pose, (twist, _) in parts])

    @property
    def acceleration(self) -> Array:
        parts = zip(self.outputs, self.poses, self._moved, strict=True)
        return ca.vertcat(*[o.lie.acceleration(pose, *moved) for o, pose, moved in parts])

    @property
    def jacobian(self) -> Array:
        rows = []
        for output, pose, seen in zip(self.outputs, self.poses, self._relatives, strict=True):
            columns = (
                output.moved(_split(jacobian(self.robot, self.q, output.body)))
                if seen is None
                else seen.columns
            )
            rows.append(twist_rows(output, pose) @ ca.vertcat(*columns))
        return ca.vertcat(ca.SX(0, self.robot.nv), *rows)

    def turned(self, values: Array) -> Array:
        return values

    unturned = turned


@dataclass(frozen=True, eq=False)
class _Part:
    """Motion of a part of the outputs: velocity, acceleration (k,) and Jacobian (k, nv).

    The turn is the rotation (3, 3) from the Jacobian's axes to the output's, which acts on each
    three rows; none where they are the same.
    """

    velocity: ca.SX
    acceleration: Array
    jacobian: Array
    turn: Array | None


@dataclass(frozen=True, eq=False)
class _Sight:
    """Motion of one output's frame.

    Its pose and attitude in the base, Jacobian along the base's axes, angular velocity with rate
    and acceleration of its origin along its own.
    """

    root: Array
    pose: Placed
    attitude: Array
    columns: Twist
    v: Array
    turning: Twist
    pulled: Array

    def parts(self, lie: OutputGroup) -> list[_Part]:
        if isinstance(lie, Product):
            return [part for factor in lie.factors for part in self.parts(factor)]
        spin, spun = self.turning
        linear, angular = self.columns
        if isinstance(lie, Rotation):
            return [_Part(spin, spun, angular, self.attitude.T)]
        moving = linear @ self.v
        if isinstance(lie, Vector):
            rows = constant([AXES[axis] for axis in lie.axes])
            velocity = rows @ (self.root @ moving)
            acceleration = rows @ (self.pose[0] @ self.pulled)
            if lie.axes == ("x", "y", "z"):
                return [_Part(velocity, acceleration, linear, self.root)]
            return [_Part(velocity, acceleration, rows @ self.root @ linear, None)]
        twist = self.attitude.T @ moving, spin
        rate = self.pulled - cross(spin, twist[0]), spun
        if isinstance(lie, Pose):
            jacobian = ca.vertcat(linear, angular)
            return [
                _Part(ca.vertcat(*twist), ca.vertcat(*rate), jacobian, self.attitude.T),
            ]
        turned = self.attitude.T @ linear, self.attitude.T @ angular
        jacobian = [
            lie.velocity(self.pose, (turned[0][:, k], turned[1][:, k]))
            for k in range(linear.shape[1])
        ]
        return [
            _Part(
                lie.velocity(self.pose, twist),
                lie.acceleration(self.pose, twist, rate),
                ca.horzcat(*jacobian),
                None,
            )
        ]


@dataclass(frozen=True, eq=False)
class _Relative:
    """Motion of an output's frame in the frame of another body.

    Twist, rate of the twist and columns of the Jacobian are along the output's axes.
    """

    pose: Placed
    twist: Twist
    rate: Twist
    columns: Twist

    @staticmethod
    def of(
        robot: Mechanism, output: Output, origin: str, q: Array, v: Array, vdot: Array
    ) -> _Relative:
        """Motion in the frame of the body `origin`.

        Both bodies are seen from the nearest body that carries them, so that neither its motion
        nor gravity occurs in the result.
        """
        ways = [robot.path(robot.index(name)) for name in (output.body, origin)]
        carrier = robot.bodies[max(set(ways[0]) & set(ways[1]), key=ways[0].index)].name
        pose, *moved = motion_from(robot, q, v, vdot, output.body, carrier)
        moved.append(_split(jacobian(robot, q, output.body, carrier)))
        seen, *carried = motion_from(robot, q, v, vdot, origin, carrier)
        carried.append(_split(jacobian(robot, q, origin, carrier)))
        pose = compose(invert(seen), output.placed(pose))
        own = [output.moved(part) for part in moved]
        taken = [twist_to_child(pose, part) for part in carried]
        twist, rate, columns = ((a[0] - b[0], a[1] - b[1]) for a, b in zip(own, taken, strict=True))
        # The carried twist is constant in the origin's axes, not in the output's.
        turning = bracket(twist, taken[0])
        return _Relative(pose, twist, (rate[0] + turning[0], rate[1] + turning[1]), columns)

    def parts(self, lie: OutputGroup) -> list[_Part]:
        return [
            _Part(
                lie.velocity(self.pose, self.twist),
                lie.acceleration(self.pose, self.twist, self.rate),
                lie.velocity(self.pose, self.columns),
                None,
            )
        ]


def _split(twist: Array) -> Twist:
    linear, angular = ca.vertsplit(twist, 3)
    return linear, angular


class _InBaseAxes(_OfBodies):
    """Recursions from link to link, in frames that suit them."""

    @cached_property
    def _sights(self) -> list[_Sight | _Relative]:
        robot, v = self.robot, self.v
        links, seats = link_frames(robot)
        steps = link_steps(robot, links, self.q)
        frames, bases = root_axes(links, steps), link_bases(links)
        motions = link_motions(links, steps, v, self.vdot, robot.gravity)
        root = steps[0].extended(ca.SX.eye(3)), steps[0].offset
        sights: list[_Sight | _Relative] = []
        for output, relative in zip(self.outputs, self._relatives, strict=True):
            if relative is not None:
                sights.append(relative)
                continue
            seat = seats[robot.index(output.body)]
            frame = constant(seat.rotation @ output.frame.rotation_matrix)
            way = constant(seat.rotation @ np.array(output.point) + seat.translation)
            attitude, origin = compose(frames[seat.link], (frame, way))
            columns = ca.SX(3, robot.nv), ca.SX(3, robot.nv)
            at: int | None = seat.link
            while at is not None:
                rotation, place = frames[at]
                angular = rotation @ bases[at][1]
                columns[0][:, links[at].span] = rotation @ bases[at][0] - cross(
                    origin - place, angular
                )
                columns[1][:, links[at].span] = angular
                at = links[at].parent
            motion = motions[seat.link]
            spin, spun = frame.T @ motion.angular, frame.T @ motion.rate
            pulled = frame.T @ (motion.linear + motion.changed(way))
            pose = compose(root, (attitude, origin))
            # The motions count gravity as an acceleration of the ground against it.
            pulled += pose[0].T @ constant(robot.gravity)
            sights.append(_Sight(root[0], pose, attitude, columns, v, (spin, spun), pulled))
        return sights

    @property
    def poses(self) -> list[Placed]:
        return [sight.pose for sight in self._sights]

    @cached_property
    def _parts(self) -> list[_Part]:
        seen = zip(self.outputs, self._sights, strict=True)
        return [part for output, sight in seen for part in sight.parts(output.lie)]

    @property
    def velocity(self) -> Array:
        return ca.vertcat(*[part.velocity for part in self._parts])

    @property
    def acceleration(self) -> Array:
        return ca.vertcat(*[part.acceleration for part in self._parts])

    @property
    def jacobian(self) -> Array:
        return ca.vertcat(*[part.jacobian for part in self._parts])

    def following(self, w: Array) -> Array:
        """Rate of the output velocity of constant joint velocities w (nv,), shape (size,)."""
        links, seats = link_frames(self.robot)
        steps = link_steps(self.robot, links, self.q)
        still = ca.SX(self.robot.nv, 1)
        motions = link_motions(links, steps, self.v, still, (0.0, 0.0, 0.0), w)
        rates = []
        for output, sight in zip(self.outputs, self._sights, strict=True):
            factors = output.lie.factors if isinstance(output.lie, Product) else (output.lie,)
            if isinstance(sight, _Relative) or not all(
                isinstance(lie, (Rotation, Vector, Pose)) for lie in factors
            ):
                rates.append(_by_derivative(self.robot, (output,), self.q, self.v, w))
                continue
            seat = seats[self.robot.index(output.body)]
            frame = constant(seat.rotation @ output.frame.rotation_matrix)
            way = constant(seat.rotation @ np.array(output.point) + seat.translation)
            motion = motions[seat.link]
            spin, led = frame.T @ motion.angular, frame.T @ motion.followed
            pulled = frame.T @ (motion.linear + motion.changed(way))
            spun = frame.T @ motion.rate - cross(spin, led)
            for lie in factors:
                if isinstance(lie, Vector):
                    rates.append(
                        constant([AXES[axis] for axis in lie.axes]) @ (sight.pose[0] @ pulled)
                    )
                    continue
                if isinstance(lie, Pose):
                    moving = sight.attitude.T @ (sight.columns[0] @ w)
                    rates.append(pulled - cross(spin, moving))
                rates.append(spun)
        return ca.vertcat(*rates)

    def turned(self, values: Array) -> Array:
        return self._turned(values, inwards=True)

    def unturned(self, values: Array) -> Array:
        return self._turned(values, inwards=False)

    def _turned(self, values: Array, inwards: bool) -> Array:
        moved, start = [], 0
        for part in self._parts:
            for _ in range(1 if part.turn is None else part.velocity.numel() // 3):
                size = part.velocity.numel() if part.turn is None else 3
                own = values[start : start + size, :]
                if part.turn is not None:
                    own = (part.turn.T if inwards else part.turn) @ own
                moved.append(own)
                start += size
        return ca.vertcat(*moved)
