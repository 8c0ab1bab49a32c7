"""Worlds inside a statement: points of a product of balls become starts, inertias and errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from concur._polynomials import Floats
from concur.control import Servo
from concur.errors import OutputError
from concur.outputs import ReferenceSample
from concur.proofs._bases import Base
from concur.proofs._declared_motion import true_errors
from concur.proofs._statement import Statement
from concur.simulation import Plant, Program

ITERATIONS = 30
"""Steps of Newton for the configuration at the start; a few suffice near the declared one."""

REACHED = 1e-11
"""Largest error of the outputs at the start, of positions and velocities (SI units)."""


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
    def of(
        statement: Statement,
        sizes: Sequence[int],
        base: int,
        bodies: int,
        controls: int,
        read: Sequence[float] = (),
    ) -> Balls:
        """Balls of a statement about outputs with the given sizes, and a base with its own.

        `read` are the errors of measured angles and speeds.
        """
        parts = [
            (name, size, radius)
            for name, radii in (("x", statement.place), ("ve", statement.speed))
            for size, radius in zip(sizes, radii, strict=True)
        ]
        parts += [("base", base, statement.heading)] + [("masses", 1, statement.masses)] * bodies
        parts += [("momentum", 3, radius) for radius in statement.momentum_error]
        errors = statement.torque_error or (0.0,) * controls
        parts += [("torque", 1, radius) for radius in errors]
        pushes = statement.push or (0.0,) * len(sizes)
        parts += [("push", *part) for part in zip(sizes, pushes, strict=True)]
        if statement.reading is not None:
            parts += [("read", 2, statement.reading.place), ("read", 1, statement.reading.heading)]
            parts += [("read", 1, error) for error in read]
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
    worlds = {}
    for k, body in enumerate(plant.tree.bodies):
        for part in ("inertia.mass", "inertia.moments"):
            value = plant.tree.numbers[name := f"{body.name}.{part}"]
            worlds[name] = shares[:, k].reshape(-1, *(1,) * value.ndim) * value
    return plant.numbers(worlds)


class Starts:
    """States at the start for errors of the outputs and deviations of the base.

    By Newton on the servo's outputs, and not by the kinematics of the proof.
    """

    def __init__(
        self, servo: Servo, program: Program, base: Base, sample: ReferenceSample, near: Floats
    ) -> None:
        self.program, self.base, self.near = program, base, near
        self._speeds = list(servo.model.shape)
        q, v = ca.SX.sym("q", servo.nq), ca.SX.sym("v", servo.nv)
        x, ve = true_errors(servo, q, v, ca.DM(sample.flat_pose), ca.DM(sample.twist))
        slopes = ca.densify(ca.jacobian(x, q))
        own = range(servo.nq)[base.rows]
        self.free = [k for k in range(servo.nq) if k not in own and ca.jacobian(x, q[k]).nnz()]
        """Coordinates that follow from outputs and base."""
        decoupling = ca.densify(servo.decoupling(q))
        self._place = ca.Function("place", [q], [x, slopes[:, self.free]], {"cse": True})
        self._speed = ca.Function("speed", [q, v], [ve, decoupling], {"cse": True})

    def __call__(
        self,
        x: Floats,
        ve: Floats,
        deviations: Floats,
        numbers: Floats,
        momentum: Floats | float = 0.0,
    ) -> Floats:
        """States (B, nx) for errors (B, size), deviations (B, base.size) and numbers of robots.

        Of a floater the true momentum differs by (B, 6) from the declared one.
        """
        q = np.tile(self.near, (len(x), 1))
        q[:, self.base.rows] = self.base.moved(self.near, deviations)
        s = np.zeros((len(x), len(self._speeds)))
        momentum = momentum if self.program.momentum.size else 0.0

        def reach(target: Floats, found: Floats, columns: Any, values: Any) -> bool:
            """A step of Newton towards a target; whether it was reached before."""
            value, slopes = values
            off = np.array(value).T - target
            if np.abs(off).max() < REACHED:
                return True
            found[:, columns] -= np.linalg.solve(_stacked(slopes, len(x)), off[..., None])[..., 0]
            return False

        for _ in range(ITERATIONS):
            if reach(x, q, self.free, self._place.call([ca.DM(q.T)])):
                break
        else:
            raise OutputError(
                "worlds inside the statement of a proof",
                expected="starts within reach of the arm, away from singular configurations",
                came=f"no configuration after {ITERATIONS} steps",
                cure="Reduce `place` and `heading` of the statement.",
            )
        # The velocity of a robot with other masses is affine in s; J H is that of the model.
        for _ in range(ITERATIONS):
            states = self.program.start(q, s, self.program.momentum + momentum, numbers)
            v = self.program.state(states, "v")
            if reach(ve, s, slice(None), self._speed.call([ca.DM(q.T), ca.DM(v.T)])):
                break
        return states


def _stacked(matrix: ca.DM, count: int) -> Floats:
    """Matrices side by side as an array with a leading axis."""
    found = np.array(matrix)
    return found.reshape(len(found), count, -1).transpose(1, 0, 2)
