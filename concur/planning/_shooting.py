"""Shooting on the Fourier coefficients of a loop, with exact derivatives, and the first guess.

Unknowns are the rows a_1, b_1, a_2, b_2, ... of a `Loop`. The guess has the least kinetic
energy that the area rule allows, with the reduced mass matrix at the start; the solver takes the
smallest steps from there to the wanted displacement.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from concur.codegen import Array
from concur.groups import se3
from concur.outputs.references import Loop
from concur.planning._fibre import Fibre, transport

GRID = 24
"""Points per harmonic at which the limits hold."""

INSIDE = 0.01
"""Part of the room to a limit that is kept free, for the curve between those points."""

FINE = 200
"""Points per harmonic at which limits of a finished loop are checked."""

EXACT = 1e-11
"""Norm of the residuals at which the solver ends."""

ITERATIONS = 150
"""Largest number of steps of the solver."""

STALLED = 30
"""Steps in which the residuals have to fall by a tenth."""

SOLVED = 1e-7
"""Largest entry of the remaining displacement of a solution, m and rad."""


@dataclass(frozen=True, eq=False)
class Shooting:
    """Loops from a start inside limits of the shape, for displacements of a fibre.

    `turning` has the rows of the rotation in the basis of the joint, or None for whole
    displacements. `low` and `high` are infinite where there is no limit. The displacement takes
    `steps` steps per harmonic.
    """

    fibre: Fibre
    start: np.ndarray
    low: np.ndarray
    high: np.ndarray
    harmonics: int
    turning: np.ndarray | None
    steps: int = 24

    @property
    def size(self) -> int:
        """Number of unknowns."""
        return 2 * self.harmonics * self.start.size

    def coefficients(self, unknowns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Rows a_k and b_k of a loop, shape (harmonics, ns)."""
        table = unknowns.reshape(self.harmonics, 2, -1)
        return table[:, 0], table[:, 1]

    def missed(self, pose: Any, wanted: Any) -> Any:
        """Remaining displacement in the basis of the joint, or its rotation, over SX."""
        basis = self.fibre.joint.basis
        if self.turning is None:
            rest = se3.log(se3.inverse(se3.exp(ca.SX(ca.DM(basis)) @ wanted)) @ pose)
            return ca.SX(ca.DM(np.linalg.pinv(basis))) @ rest
        twist = ca.SX(6, 1)
        twist[3:] = ca.SX(ca.DM(basis[3:] @ self.turning.T)) @ wanted
        rest = se3.log(se3.inverse(se3.exp(twist)) @ pose)[3:]
        return ca.SX(ca.DM(np.linalg.pinv(basis[3:] @ self.turning.T))) @ rest

    def missed_by(self, pose: np.ndarray, wanted: np.ndarray) -> np.ndarray:
        """Remaining displacement of a pose, in numbers."""
        rest = self.missed(ca.SX(ca.DM(pose)), ca.SX(ca.DM(wanted)))
        return np.array(ca.DM(rest))[:, 0]

    def solve(
        self, wanted: np.ndarray, guess: np.ndarray, nearest: bool = False
    ) -> tuple[np.ndarray, float]:
        """Unknowns of a loop inside the limits, and the largest entry of what it misses.

        It is infinite if the loop leaves the limits. With `nearest` the loop is then smaller.
        """
        scale = self._scale
        unknowns, damping = self._room(guess) * guess, 1e-3
        value, slopes = (np.array(x) for x in self._residuals(unknowns, wanted))
        sizes = [float(np.linalg.norm(value))]
        while sizes[-1] > EXACT and len(sizes) < ITERATIONS:
            if len(sizes) > STALLED and sizes[-1] > 0.9 * sizes[-STALLED]:
                break
            scaled = slopes * scale
            trial = unknowns + scale * self._step(scaled, value, damping, unknowns)
            after, slopes_after = (np.array(x) for x in self._residuals(trial, wanted))
            size = float(np.linalg.norm(after))
            if size < sizes[-1]:
                unknowns, value, slopes, damping = trial, after, slopes_after, damping / 5
            else:
                damping *= 5
            damping = min(max(damping, 1e-12), 1e3)
            sizes.append(min(size, sizes[-1]))
        missed = float(np.abs(value[: wanted.size]).max())
        room = self._room(unknowns)
        if room < 1.0:
            return (room * unknowns, missed) if nearest else (unknowns, np.inf)
        return unknowns, missed

    def energy(self, unknowns: np.ndarray) -> float:
        """Kinetic energy of the path at a constant rate, to a factor."""
        rows = unknowns.reshape(self.harmonics, -1, self.start.size)
        orders = np.arange(1, self.harmonics + 1)
        return float(np.einsum("k,kpi,ij,kpj->", orders**2, rows, self._mass(), rows))

    def _room(self, unknowns: np.ndarray) -> float:
        """Factor, at most 1, by which a loop has to shrink to its start to be inside the limits."""
        loop = Loop(self.start, *self.coefficients(unknowns))
        away = loop.places(np.arange(FINE * self.harmonics + 2) / (FINE * self.harmonics))
        away -= self.start
        # Between two points a curve is at most an eighth of its second difference further.
        away += np.copysign(np.abs(np.diff(away, 2, axis=0)).max(axis=0) / 8.0, away)
        with np.errstate(divide="ignore", invalid="ignore"):
            room = np.where(away > 0.0, self.high - self.start, self.low - self.start) / away
        return float(min(1.0, np.nanmin(np.where(away == 0.0, np.inf, room))))

    def guess(self, wanted: np.ndarray, rng: np.random.Generator, first: bool) -> np.ndarray:
        """First unknowns by the area rule: loops whose areas times the curvature are as wanted.

        The curvature is that at the start, or at a random shape inside the limits, towards which
        the loop then extends.
        """
        ns = self.start.size
        mass = np.asarray(self._mass())
        root = np.linalg.cholesky(mass)
        away = np.zeros(ns)
        if not first:
            span = np.maximum(self.low, self.start - 1.5), np.minimum(self.high, self.start + 1.5)
            away = rng.uniform(*span) - self.start
        curvature = np.array(self.fibre.curvature(self.start + away))
        rows = curvature if self.turning is None else self.turning @ curvature
        # In coordinates z = root^T r, in which the kinetic energy of the path is a plain square.
        inverse = np.linalg.inv(root).T
        pairs = self.fibre.pairs
        minors = np.array(
            [
                [inverse[i, a] * inverse[j, b] - inverse[i, b] * inverse[j, a] for a, b in pairs]
                for i, j in pairs
            ]
        ).reshape(len(pairs), len(pairs))
        areas = np.linalg.lstsq(rows @ minors, wanted, rcond=1e-6)[0]
        form = np.zeros((ns, ns))
        for (i, j), area in zip(pairs, areas, strict=True):
            form[i, j], form[j, i] = area, -area
        unknowns = np.zeros((self.harmonics, 2, ns))
        sizes, planes = np.linalg.eigh(1j * form)
        order = [k for k in np.argsort(-sizes) if sizes[k] > 1e-9 * max(abs(sizes))]
        for k, index in enumerate(order[: self.harmonics]):
            radius = np.sqrt(sizes[index] / (np.pi * (k + 1)))
            plane = planes[:, index] * np.sqrt(2.0) * radius
            # Turned within its plane, so that the loop extends from the start towards `away`.
            phase = np.angle(np.conj(plane) @ (root.T @ -away)) if away.any() else 0.0
            plane = plane * np.exp(1j * phase)
            unknowns[k, 0] = inverse @ plane.real
            unknowns[k, 1] = inverse @ plane.imag
        spread = 0.05 * np.sqrt(np.abs(areas).max(initial=0.0)) or 0.5
        noise = rng.standard_normal(unknowns.shape) @ inverse.T
        return (unknowns + (0.02 if first else 0.1) * spread * noise).ravel()

    def _mass(self) -> np.ndarray:
        q = np.array(self.fibre.model.system.neutral())
        q[list(self.fibre.model.shape_coordinates)] = self.start
        return np.asarray(self.fibre.model.mass_matrix(q))

    def _step(
        self, slopes: np.ndarray, value: np.ndarray, damping: float, unknowns: np.ndarray
    ) -> np.ndarray:
        """Damped Gauss-Newton step of the scaled unknowns that stays inside the limits."""
        square = slopes.T @ slopes
        square += damping * np.trace(square) / len(slopes) * np.eye(self.size)
        rows, low, high = self._limits
        if not len(rows):
            return np.asarray(np.linalg.solve(square, -slopes.T @ value)[:, 0])
        size = np.trace(square) / self.size
        at = rows @ unknowns
        solver, gradient = self._program, slopes.T @ value / size
        bounds = {"lba": np.minimum(low - at, 0.0), "uba": np.maximum(high - at, 0.0)}
        found = solver(h=square / size, g=gradient, a=rows * self._scale, **bounds)
        return np.array(found["x"])[:, 0]

    @cached_property
    def _program(self) -> ca.Function:
        """Quadratic program of a step."""
        rows, _, _ = self._limits
        sparsities = {"h": ca.Sparsity.dense(self.size, self.size)}
        sparsities["a"] = ca.Sparsity.dense(*rows.shape)
        return ca.conic("step", "daqp", sparsities, {"error_on_fail": False})

    @cached_property
    def _scale(self) -> np.ndarray:
        """Scales of the unknowns: the smallest scaled step has the least energy, masses apart."""
        orders = np.repeat(np.arange(1, self.harmonics + 1), 2 * self.start.size)
        sizes = np.tile(1.0 / np.sqrt(np.diag(self._mass())), 2 * self.harmonics)
        return np.asarray(sizes / orders)

    @cached_property
    def _limits(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Rows of the limited coordinates on a grid, from the unknowns, and their bounds."""
        turn = 2.0 * np.pi * np.arange(1, GRID * self.harmonics) / (GRID * self.harmonics)
        orders = np.arange(1, self.harmonics + 1)
        angles = turn[:, None] * orders
        series = np.stack([np.cos(angles) - 1.0, np.sin(angles)], axis=2).reshape(len(turn), -1)
        chosen = np.flatnonzero(np.isfinite(self.low) | np.isfinite(self.high))
        rows = np.concatenate(
            [np.kron(series, np.eye(self.start.size)[k]) for k in chosen] or [series[:0]]
        )
        room = [(1.0 - INSIDE) * (x - self.start)[chosen] for x in (self.low, self.high)]
        return rows, np.repeat(room[0], len(turn)), np.repeat(room[1], len(turn))

    @cached_property
    def _residuals(self) -> ca.Function:
        """Remaining displacement of a loop and its Jacobian, from unknowns and the wanted one."""
        count = self.fibre.dim if self.turning is None else len(self.turning)
        unknowns, wanted = ca.MX.sym("x", self.size), ca.MX.sym("d", count)
        symbols = ca.SX.sym("x", self.size)
        place, goal = ca.SX.sym("g", 4, 4), ca.SX.sym("d", count)
        steps = self.steps * self.harmonics
        pose = transport(self.fibre, lambda x: self._curve(symbols, x), symbols, steps)(unknowns)
        missed = ca.Function("missed", [place, goal], [self.missed(place, goal)])(pose, wanted)
        results = [missed, ca.densify(ca.jacobian(missed, unknowns))]
        return ca.Function("residuals", [unknowns, wanted], results)

    def _curve(self, unknowns: Array, x: Array) -> tuple[Array, Array]:
        """Shape and its slope over SX at the path parameter."""
        ns = self.start.size
        r, slope = ca.SX(ca.DM(self.start)), ca.SX(ns, 1)
        for k in range(self.harmonics):
            a, b = (unknowns[(2 * k + i) * ns : (2 * k + i + 1) * ns] for i in range(2))
            order = 2 * np.pi * (k + 1)
            c, s = ca.cos(order * x), ca.sin(order * x)
            r = r + a * (c - 1) + b * s
            slope = slope + order * (b * c - a * s)
        return r, slope
