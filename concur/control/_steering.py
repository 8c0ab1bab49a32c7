"""How the outputs move, in axes in which that costs least.

Where an output takes all three components of a velocity, it does not matter to the equation
``J H sdot = nu - b`` along which axes they are: it is solved along those of the base, so that the
right side is turned instead of the matrix. Scales and margins are the same along all axes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np

from concur.codegen import Array
from concur.control._output import Output
from concur.control._output_groups import AXES, OutputGroup, Pose, Product, Rotation, Vector
from concur.kinematics import (
    Placed,
    Twist,
    compose,
    constant,
    cross,
    link_bases,
    link_frames,
    link_motions,
    link_steps,
    root_axes,
)
from concur.multibody import Mechanism


@dataclass(frozen=True, eq=False)
class Steered:
    """How a part of the outputs moves.

    Parameters
    ----------
    velocity : casadi.SX
        Output velocity r^-1 rdot, shape (k,).
    acceleration : casadi.SX
        Its rate at zero joint accelerations, shape (k,).
    jacobian : casadi.SX
        Joint velocities to output velocities, shape (k, nv); along other axes where there is a
        turn.
    turn : casadi.SX or None
        Rotation (3, 3) from those axes to the output's, which acts on each three rows.
    """

    velocity: Array
    acceleration: Array
    jacobian: Array
    turn: Array | None


@dataclass(frozen=True, eq=False)
class Steering:
    """Pose and motion of all outputs.

    Parameters
    ----------
    poses : list of tuple
        Pose of each output's frame in the inertial frame.
    parts : list of Steered
        The outputs' parts, in order.
    """

    poses: list[Placed]
    parts: list[Steered]

    @property
    def velocity(self) -> Array:
        """Output velocity, shape (size,)."""
        return ca.vertcat(*[part.velocity for part in self.parts])

    @property
    def acceleration(self) -> Array:
        """Rate of the output velocity at zero joint accelerations, shape (size,)."""
        return ca.vertcat(*[part.acceleration for part in self.parts])

    @property
    def jacobian(self) -> Array:
        """Joint velocities to turned output velocities, shape (size, nv)."""
        return ca.vertcat(*[part.jacobian for part in self.parts])

    def turned(self, values: Array) -> Array:
        """Components (size,) along the outputs' axes, along those of the Jacobian."""
        return self._turned(values, inwards=True)

    def unturned(self, values: Array) -> Array:
        """Components (size,) along the Jacobian's axes, along the outputs'."""
        return self._turned(values, inwards=False)

    def _turned(self, values: Array, inwards: bool) -> Array:
        moved, start = [], 0
        for part in self.parts:
            for _ in range(1 if part.turn is None else part.velocity.numel() // 3):
                size = part.velocity.numel() if part.turn is None else 3
                own = values[start : start + size, :]
                if part.turn is not None:
                    own = (part.turn.T if inwards else part.turn) @ own
                moved.append(own)
                start += size
        return ca.vertcat(*moved)


def steering(robot: Mechanism, outputs: Sequence[Output], q: Array, v: Array) -> Steering:
    """Motion of the outputs at a configuration (nq,) and velocity (nv,)."""
    links, seats = link_frames(robot)
    steps = link_steps(robot, links, q)
    frames, bases = root_axes(links, steps), link_bases(links)
    motions = link_motions(links, steps, v, ca.SX(robot.nv, 1), robot.gravity)
    root = steps[0].extended(ca.SX.eye(3)), steps[0].offset
    poses, parts = [], []
    for output in outputs:
        seat = seats[robot.index(output.body)]
        frame = constant(seat.rotation @ output.frame.rotation_matrix)
        way = constant(seat.rotation @ np.array(output.point) + seat.translation)
        attitude, origin = compose(frames[seat.link], (frame, way))
        jacobian = ca.SX(3, robot.nv), ca.SX(3, robot.nv)
        at: int | None = seat.link
        while at is not None:
            rotation, place = frames[at]
            angular = rotation @ bases[at][1]
            jacobian[0][:, links[at].span] = rotation @ bases[at][0] - cross(
                origin - place, angular
            )
            jacobian[1][:, links[at].span] = angular
            at = links[at].parent
        motion = motions[seat.link]
        spin, spun = frame.T @ motion.angular, frame.T @ motion.rate
        pulled = frame.T @ (motion.linear + motion.changed(way))
        pose = compose(root, (attitude, origin))
        # The motions count gravity as an acceleration of the ground against it.
        pulled += pose[0].T @ constant(robot.gravity)
        sight = _Sight(root[0], pose, attitude, jacobian, v, (spin, spun), pulled)
        poses.append(pose)
        parts += sight.parts(output.lie)
    return Steering(poses, parts)


@dataclass(frozen=True, eq=False)
class _Sight:
    """What is known of one output's frame.

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

    def parts(self, lie: OutputGroup) -> list[Steered]:
        if isinstance(lie, Product):
            return [part for factor in lie.factors for part in self.parts(factor)]
        spin, spun = self.turning
        linear, angular = self.columns
        if isinstance(lie, Rotation):
            return [Steered(spin, spun, angular, self.attitude.T)]
        moving = linear @ self.v
        if isinstance(lie, Vector):
            rows = constant([AXES[axis] for axis in lie.axes])
            velocity = rows @ (self.root @ moving)
            acceleration = rows @ (self.pose[0] @ self.pulled)
            if lie.axes == ("x", "y", "z"):
                return [Steered(velocity, acceleration, linear, self.root)]
            return [Steered(velocity, acceleration, rows @ self.root @ linear, None)]
        twist = self.attitude.T @ moving, spin
        rate = self.pulled - cross(spin, twist[0]), spun
        if isinstance(lie, Pose):
            jacobian = ca.vertcat(linear, angular)
            return [
                Steered(ca.vertcat(*twist), ca.vertcat(*rate), jacobian, self.attitude.T),
            ]
        turned = self.attitude.T @ linear, self.attitude.T @ angular
        jacobian = [
            lie.velocity(self.pose, (turned[0][:, k], turned[1][:, k]))
            for k in range(linear.shape[1])
        ]
        return [
            Steered(
                lie.velocity(self.pose, twist),
                lie.acceleration(self.pose, twist, rate),
                ca.horzcat(*jacobian),
                None,
            )
        ]
