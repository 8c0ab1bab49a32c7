"""Worlds inside a statement: points of a product of balls become starts, inertias and errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np

from concur.control import Servo
from concur.errors import OutputError
from concur.proofs._models import Floats
from concur.proofs._statement import Statement
from concur.simulation import Plant

ITERATIONS = 30
"""Steps of Newton for the configuration at the start; a few suffice near the declared one."""

REACHED = 1e-11
"""Largest error of the outputs at the start (m)."""


@dataclass(frozen=True, eq=False)
class Balls:
    """A product of balls; a point has one coordinate for each of their directions.

    Parameters
    ----------
    parts : tuple of (str, int, float)
        Name, dimension and radius of each ball.
    """

    parts: tuple[tuple[str, int, float], ...]

    @staticmethod
    def of(statement: Statement, sizes: Sequence[int], bodies: int, controls: int) -> Balls:
        """Balls of a statement about outputs with the given sizes."""
        parts = [
            (name, size, radius)
            for name, radii in (("x", statement.place), ("ve", statement.speed))
            for size, radius in zip(sizes, radii, strict=True)
        ]
        parts += [("heading", 1, statement.heading)] + [("masses", 1, statement.masses)] * bodies
        errors = statement.torque_error or (0.0,) * controls
        parts += [("torque", 1, radius) for radius in errors]
        pushes = statement.push or (0.0,) * len(sizes)
        parts += [("push", *part) for part in zip(sizes, pushes, strict=True)]
        return Balls((*parts, ("flip", 1, 1.0)))

    @property
    def size(self) -> int:
        """Number of coordinates."""
        return sum(size for _, size, _ in self.parts)

    def draw(self, rng: np.random.Generator, count: int) -> Floats:
        """Random points (count, size) of unit balls; in each ball half of them on the edge."""
        found = []
        for _, size, _ in self.parts:
            way = rng.normal(size=(count, size))
            way /= np.linalg.norm(way, axis=1, keepdims=True)
            far = np.where(rng.uniform(size=count) < 0.5, 1.0, rng.uniform(size=count))
            found.append(way * far[:, None])
        return np.hstack(found)

    def inside(self, points: Floats) -> dict[str, Floats]:
        """Coordinates by name with their radii; points beyond a ball move to its edge."""
        found: dict[str, list[Floats]] = {}
        at = 0
        for name, size, radius in self.parts:
            own = points[:, at : at + size]
            far = np.maximum(1.0, np.linalg.norm(own, axis=1, keepdims=True))
            found.setdefault(name, []).append(radius * own / far)
            at += size
        return {name: np.hstack(columns) for name, columns in found.items()}


def scaled_masses(plant: Plant, shares: Floats) -> Floats:
    """Numbers of a plant whose bodies have masses, first and second moments by (1 + shares)."""
    pairs = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))
    worlds = {}
    for k, body in enumerate(plant.tree.bodies):
        tensor = np.asarray(body.inertia.tensor)
        worlds[body.name] = {
            "mass": shares[:, k] * body.inertia.mass,
            "moments": shares[:, k : k + 1] * [tensor[pair] for pair in pairs],
        }
    return plant.numbers(worlds)


class Starts:
    """Configuration and shape velocities for errors of the outputs and a heading.

    By Newton on the servo's outputs, and not by the kinematics of the proof.
    """

    def __init__(self, servo: Servo, pose: Floats, twist: Floats, near: Floats) -> None:
        self.pose, self.twist, self.near = pose, twist, near
        q = ca.SX.sym("q", servo.nq)
        wanted = ca.vertcat(servo.output(q), q[2])
        slopes = ca.densify(ca.jacobian(wanted, q))
        self.free = [k for k in range(servo.nq) if ca.jacobian(wanted, q[k]).nnz()]
        self._place = ca.Function("place", [q], [wanted, slopes[:, self.free]], {"cse": True})
        self._speed = ca.Function("speed", [q], [ca.densify(servo.decoupling(q))], {"cse": True})

    def __call__(self, x: Floats, ve: Floats, heading: Floats) -> tuple[Floats, Floats]:
        """Configurations (B, nq) and shape velocities (B, ns) for errors (B, size) and angles."""
        count = len(x)
        target = np.column_stack([self.pose - x, heading])
        q = np.tile(self.near, (count, 1))
        for _ in range(ITERATIONS):
            place, slopes = self._place.call([ca.DM(q.T)])
            off = np.array(place).T - target
            if np.abs(off).max() < REACHED:
                break
            q[:, self.free] -= np.linalg.solve(_stacked(slopes, count), off[..., None])[..., 0]
        else:
            raise OutputError(
                "worlds inside the statement of a proof",
                expected="starts within reach of the arm, away from singular configurations",
                came=f"an error of {np.abs(off).max():.3g} m of the outputs",
                cure="Reduce `place` and `heading` of the statement.",
            )
        rate = (self.twist + ve)[..., None]
        speeds = np.linalg.solve(_stacked(self._speed(ca.DM(q.T)), count), rate)
        return q, np.asarray(speeds[..., 0])


def _stacked(matrix: ca.DM, count: int) -> Floats:
    """Matrices side by side as an array with a leading axis."""
    found = np.array(matrix)
    return found.reshape(len(found), count, -1).transpose(1, 0, 2)
