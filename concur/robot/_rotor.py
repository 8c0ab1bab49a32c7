"""Rotors of motors: contributions to the energy, the momentum and the forces of a robot.

A rotor of the inertia J turns at the speed w relative to the link that carries it, about an axis a
that is fixed in the link. It is a body of revolution, and the mass of the link includes it at rest.
With the link's angular velocity omega it adds J w^2 / 2 + J w a^T omega to the kinetic energy and
J w a to the angular momentum. Without an axis only J w^2 / 2 remains, as for `armature` in MJCF.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np

from concur.codegen import Array, Vector, constant
from concur.errors import InertiaError
from concur.robot._bodies import BodyTree
from concur.robot._frames import Seat
from concur.robot._motor import Motor
from concur.robot._spatial import cross
from concur.robot.joints import Revolute

ACROSS = 1e-12
"""Cosine of the angle between a shaft and an axis below which they are perpendicular."""


@dataclass(frozen=True, eq=False)
class Rotor:
    """A rotor as the recursions use it.

    Parameters
    ----------
    motor : int
        Index of the motor.
    link : int
        Index of the link that carries it.
    axis : casadi.SX or None
        Its axis in the link frame, a unit vector, shape (3,); none for its reflected inertia only.
    places : tuple of int
        Indices in v of the freedoms that the motor moves.
    inertia : float or casadi.SX
        Moment about the axis, kg m^2.
    ratios : casadi.SX
        Gear ratios of the freedoms, shape (len(places),).
    carried : bool
        Whether joints can turn the link about the axis: else the shaft does not feel the link.
    """

    motor: int
    link: int
    axis: Array | None
    places: tuple[int, ...]
    inertia: float | Array
    ratios: Array
    carried: bool

    def speed(self, v: Vector) -> Array:
        """Speed relative to the link for velocities v (nv,), rad/s, or accelerations."""
        return self.ratios.T @ v[list(self.places), :]

    def gears(self, nv: int) -> Array:
        """Speeds of unit velocities of the joints, shape (1, nv)."""
        row = ca.SX(1, nv)
        row[0, list(self.places)] = self.ratios.T
        return row

    def momentum(self, v: Vector) -> Array:
        """Angular momentum beside that of a rotor at rest, along the link's axes, (3,)."""
        return ca.SX(3, 1) if self.axis is None else self.inertia * self.speed(v) * self.axis

    def energy(self, v: Vector, angular: Array) -> Array:
        """Kinetic energy beside that of a rotor at rest, for the link's angular velocity, J."""
        speed = self.speed(v)
        carried = ca.dot(self.axis, angular) if self.carried else 0.0
        return self.inertia * speed * (speed / 2 + carried)

    def moment_of_motion(self, v: Vector, w: Vector, turning: tuple[Array, Array]) -> Array:
        """Contribution to the integral of v x w dm; `turning` are the link's angular velocities."""
        if self.axis is None:
            return ca.SX(3, 1)
        angular, other = turning
        across = self.speed(w) * cross(angular, self.axis)
        across += self.speed(v) * cross(self.axis, other)
        return self.inertia / 2 * across

    def wrench(
        self, turning: tuple[Array, Array, Array], v: Vector, vdot: Vector, followed: Vector
    ) -> tuple[Array, Array]:
        """Moment on the link, (3,), and on the shaft, that make the rotor move so.

        Beside those of a rotor at rest. The rate of `followed`, (nv,), is vdot; `turning` are
        `angular`, `followed` and `rate` of the link's `Motion`.
        """
        angular, led, change = turning
        rate = self.speed(vdot)
        if self.axis is None:
            return ca.SX(3, 1), self.inertia * rate
        across = self.speed(followed) * cross(angular, self.axis)
        shaft = ca.dot(self.axis, change) if self.carried else 0.0
        if followed is not v:
            across = (across + self.speed(v) * cross(led, self.axis)) / 2
            shaft -= ca.dot(self.axis, cross(angular, led)) / 2 if self.carried else 0.0
        return self.inertia * (self.axis * rate + across), self.inertia * (shaft + rate)


def rotors(tree: BodyTree, motors: Sequence[Motor], seats: Sequence[Seat]) -> tuple[Rotor, ...]:
    """Find the rotors of the motors of a tree, whose bodies have these seats in their links."""
    found = []
    names = tree.freedom_names
    for k, motor in enumerate(motors):
        if not motor.rotor:
            continue
        places = tuple(names.index(name) for name in motor.ratios)
        stator, shaft = _mounted(tree, motor, places)
        seat = seats[stator]
        axis = None if shaft is None else constant(seat.rotation @ shaft)
        ratios = constant(list(motor.ratios.values()))
        carried = shaft is not None and _turns(tree, stator, shaft)
        found.append(Rotor(k, seat.link, axis, places, motor.rotor, ratios, carried))
    return tuple(found)


def check_rotors(where: str, tree: BodyTree, motors: Sequence[Motor]) -> None:
    """Refuse rotors with more inertia about their shaft than the bodies that carry them."""
    names = tree.freedom_names
    for motor in motors:
        if motor.stator is not None:
            tree.index(motor.stator, f"motor `{motor.name}`, `stator`")
        if not motor.rotor:
            continue
        stator, shaft = _mounted(tree, motor, tuple(names.index(n) for n in motor.ratios))
        if shaft is None or not _turns(tree, stator, shaft):
            continue
        most = _moment(tree, stator, shaft)
        if motor.rotor > most:
            raise InertiaError(
                f"{where}, motor `{motor.name}`, `rotor`",
                expected=f"at most {most:.6g} kg m^2, the moment about the shaft of "
                f"`{tree.bodies[stator].name}` with all that is fixed to it",
                came=f"{motor.rotor:.6g}",
                cure="The inertia of the body that carries a motor includes the rotor: correct one "
                "of them, name another `stator`, or write shaft = [0, 0, 0] for the reflected "
                "inertia alone.",
            )


def _mounted(
    tree: BodyTree, motor: Motor, places: tuple[int, ...]
) -> tuple[int, np.ndarray | None]:
    """Index of the body that carries a motor, and the axis of its shaft in that body's frame."""
    moved = next(i for i, span in enumerate(tree.v_spans) if span.start <= places[0] < span.stop)
    own = tree.parents[moved] or 0
    stator = own if motor.stator is None else tree.index(motor.stator)
    joint = tree.bodies[moved].joint
    shaft = None if motor.shaft is None else np.array(motor.shaft)
    if shaft is None and len(places) == 1 and stator == own and isinstance(joint, Revolute):
        shaft = tree.bodies[moved].placement.rotation_matrix @ np.array(joint.axis)
    return stator, shaft if np.any(shaft) else None


def _turns(tree: BodyTree, body: int, shaft: np.ndarray) -> bool:
    """Whether joints can turn a body about a shaft: not a vehicle on a plane about an axle."""
    path = tree.paths[body]
    turning = [i for i in path if np.any(tree.bodies[i].joint.basis[3:])]
    if len(turning) != 1:
        return bool(turning)
    rotation = np.eye(3)
    for i in path[path.index(turning[0]) + 1 :]:
        rotation = rotation @ tree.bodies[i].placement.rotation_matrix
    along = rotation @ shaft @ tree.bodies[turning[0]].joint.basis[3:]
    return bool(np.abs(along).max() > ACROSS)


def _moment(tree: BodyTree, stator: int, shaft: np.ndarray) -> float:
    """Moment of a body with all that is fixed to it, about the axis through their common centre."""
    path = tree.paths[stator]
    top = next(i for i in (*reversed(path), path[0]) if tree.bodies[i].joint.nv or i == path[0])
    poses = tree.welded(top)
    shaft = poses[stator][:3, :3] @ shaft
    masses, places, turned = [], [], 0.0
    for i, pose in poses.items():
        inertia, axis = tree.bodies[i].inertia, pose[:3, :3].T @ shaft
        turned += float(axis @ np.array(inertia.tensor) @ axis)
        masses.append(inertia.mass)
        places.append(pose[:3, 3] + pose[:3, :3] @ np.array(inertia.com))
    whole = sum(masses)
    if not whole:
        return turned
    away = np.array(places) - np.average(places, axis=0, weights=masses)
    across = away - np.outer(away @ shaft, shaft)
    return turned + float(np.array(masses) @ np.sum(across**2, axis=1))
