"""What outputs do not determine of a configuration: a heading, or the pose of a free base."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import casadi as ca
import numpy as np
from scipy.spatial.transform import Rotation

from concur._polynomials import Floats
from concur.control import Servo
from concur.errors import OutputError
from concur.robot import joints


class Base(ABC):
    """A part of the configuration, with deviations in a ball.

    Attributes
    ----------
    name, unit : str
        What it is, and the unit of its deviation.
    size : int
        Dimension of the ball.
    rows : slice
        Its coordinates in a configuration.
    """

    name: ClassVar[str]
    unit: ClassVar[str]
    size: ClassVar[int]
    rows: ClassVar[slice]

    @abstractmethod
    def moved(self, q: Floats, deviations: Floats) -> Floats:
        """Coordinates of the configuration (nq,) after deviations (B, size), (B, rows)."""

    @abstractmethod
    def distance(self, q: ca.SX, centre: ca.SX) -> ca.SX:
        """Size of the deviation of a configuration from coordinates `centre` (rows,)."""


class Heading(Base):
    """Angle of a planar base."""

    name, unit, size, rows = "heading", "rad", 1, slice(2, 3)

    def moved(self, q: Floats, deviations: Floats) -> Floats:
        """As of `Base`."""
        return np.asarray(q[self.rows] + deviations)

    def distance(self, q: ca.SX, centre: ca.SX) -> ca.SX:
        """As of `Base`."""
        return ca.fabs(q[self.rows] - centre)


class FreePose(Base):
    """Pose of a free base: deviations [p; w] in its axes, with the quaternion (w / 2, ...)."""

    name, unit, size, rows = "base pose", "(m, rad)", 6, slice(0, 7)

    def moved(self, q: Floats, deviations: Floats) -> Floats:
        """As of `Base`."""
        turn, half = Rotation.from_quat(q[3:7]), deviations[:, 3:] / 2
        side = np.sqrt(1.0 - (half**2).sum(axis=1, keepdims=True))
        turned = turn * Rotation.from_quat(np.hstack([half, side]))
        return np.hstack([q[:3] + turn.apply(deviations[:, :3]), turned.as_quat()])

    def distance(self, q: ca.SX, centre: ca.SX) -> ca.SX:
        """As of `Base`."""
        own, other = q[3:7], centre[3:7]
        size = ca.sqrt(ca.dot(own, own) * ca.dot(other, other))
        # Vector part of the quaternion from the centre: the sign does not count.
        turned = other[3] * own[:3] - own[3] * other[:3] - ca.cross(other[:3], own[:3])
        return ca.norm_2(ca.vertcat(q[:3] - centre[:3], 2.0 * turned / size))


def base_of(servo: Servo) -> Base:
    """Base of a robot whose proofs exist; others are rejected."""
    joint = servo.model.robot.base.joint
    if isinstance(joint, joints.Planar):
        return Heading()
    if isinstance(joint, joints.Free) and servo.model.takes_momentum:
        return FreePose()
    raise OutputError(
        f"worlds of `{servo.name}`",
        expected="a planar base with wheels, or a free base with constant momentum",
        came=str(joint),
        cure="Sample this robot in a campaign, `concur verify`.",
    )
