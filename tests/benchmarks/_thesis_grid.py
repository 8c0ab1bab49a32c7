"""Theorem 5.4.2 where its bounds have no closed form: values on a grid, which prove nothing."""

from __future__ import annotations

from collections.abc import Callable

import casadi as ca
import numpy as np
from scipy.special import ndtri
from scipy.stats import qmc

from concur.certify import Channel, ThesisConstants, split, thesis_constants
from concur.certify._bounds import float_below, rational, smallest_eigenvalue
from concur.certify._region import region_radius
from concur.certify._suprema import CLOSED, Suprema
from concur.certify._thesis import constants_of
from concur.codegen import Evaluator, constant
from concur.control import ErrorDynamics

Objective = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
"""Values (k,) of N and T, each (k, n, n), at points (k, m) of the unit ball."""


def thesis_rate(dynamics: ErrorDynamics, angle: float) -> float:
    """Rate by the theorem for all channels of a loop, 1/s; from a grid where it must be."""
    return min(constants(channel, angle).rate for channel in split(dynamics))


def constants(channel: Channel, angle: float, distance: float | None = None) -> ThesisConstants:
    """Constants of a channel: in closed form where there is one, else from a grid."""
    if channel.kind in CLOSED:
        return thesis_constants(channel, angle, distance)
    bounds = suprema(channel, region_radius(channel, angle, distance))
    return constants_of(channel, angle, distance, bounds)


def suprema(channel: Channel, radius: float) -> Suprema:
    """Largest (and smallest) values on a grid and around its best points; may be exceeded."""
    search = _Search(channel, radius)
    damping, inertia = rational(channel.damping), rational(channel.inertia)
    return Suprema(
        W12=search.largest(lambda N, T, y: np.linalg.norm(N, 2, axis=(1, 2))),
        W3=search.largest(lambda N, T, y: -np.linalg.norm(N, -2, axis=(1, 2))) ** 2,
        W5=search.largest(lambda N, T, y: _size(T) / np.linalg.norm(y, axis=1)),
        W6=search.largest(lambda N, T, y: np.linalg.norm(N @ search.drag, 2, axis=(1, 2))),
        W7=float_below(smallest_eigenvalue(damping, inertia)),
        exact=False,
    )


def _size(matrices: np.ndarray) -> np.ndarray:
    """Largest absolute eigenvalue of the symmetric part, shape (k,)."""
    symmetric = (matrices + matrices.transpose(0, 2, 1)) / 2
    return np.asarray(np.abs(np.linalg.eigvalsh(symmetric)).max(axis=1))


class _Search:
    """Largest values of functions of N and T on a ball, by a grid and steps from its best points.

    Points y of the unit ball stand for x = radius KP^(-1/2) y, with a Cholesky factor for the
    root. With isotropic gains rotations and reflections of space turn every x of SE(3) into
    one with phi along z and rho in the x-z plane, and change no norm.
    """

    batch = 64
    starts = 4
    smallest_step = 1e-6

    def __init__(self, channel: Channel, radius: float) -> None:
        self._size = channel.size
        chosen = [0, 2, 5] if channel.kind == "SE3 isotropic" else list(range(channel.size))
        root = np.linalg.cholesky(channel.stiffness)
        scale = np.linalg.inv(np.linalg.cholesky(channel.inertia))
        self.drag = scale @ channel.damping @ scale.T
        self._to_x = radius * np.linalg.inv(root).T[:, chosen]
        self._evaluator = Evaluator(
            _norms_graph(channel, root, scale).map(self.batch),
            [(channel.size, channel.size * self.batch)] * 2,
            f"bounds of {channel.name}",
        )
        self._directions = _directions(len(chosen), 1024)
        count = 128 * len(chosen)
        radii = np.arange(1, count + 1) / count
        shell = self._directions[np.arange(count) % len(self._directions)]
        self._grid = np.vstack([shell, shell * radii[:, None]])
        self._grid_values = self._evaluate(self._grid)

    def largest(self, objective: Objective) -> float:
        """Return the largest value found."""
        values = objective(*self._grid_values, self._grid)
        order = np.argsort(-values)[: self.starts]
        best, points = values[order], self._grid[order]
        step, fan, turn = np.full(self.starts, 0.25), self.batch // self.starts, 0
        while step.max() > self.smallest_step:
            directions = np.roll(self._directions, -turn * fan, axis=0)[:fan]
            turn += 1
            tries = points[:, None] + step[:, None, None] * directions
            tries /= np.maximum(1.0, np.linalg.norm(tries, axis=2, keepdims=True))
            flat = tries.reshape(self.batch, -1)
            found = objective(*self._evaluate(flat), flat).reshape(self.starts, fan)
            chosen = found.argmax(axis=1)
            here = np.arange(self.starts)
            better = found[here, chosen] > best
            points = np.where(better[:, None], tries[here, chosen], points)
            best = np.where(better, found[here, chosen], best)
            step *= np.where(better, 0.9, 0.5)  # shorter in any case, so that it ends
        return float(best.max())

    def _evaluate(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """N and T at points (k, n) of the unit ball, each (k, size, size)."""
        parts: list[tuple[np.ndarray, np.ndarray]] = []
        for first in range(0, len(points), self.batch):
            part = points[first : first + self.batch]
            x = np.zeros((self._size, self.batch))
            x[:, : len(part)] = self._to_x @ part.T
            stacks = [
                matrix.reshape(self._size, self.batch, self._size).transpose(1, 0, 2)
                for matrix in self._evaluator(x)
            ]
            parts.append((stacks[0][: len(part)], stacks[1][: len(part)]))
        return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])


def _norms_graph(channel: Channel, root: np.ndarray, scale: np.ndarray) -> ca.Function:
    """N and I^-1/2 T I^-1/2 as functions of x, with Cholesky factors for the roots."""
    x, row = ca.SX.sym("x", channel.size), ca.SX.sym("row", channel.size)
    error_map = channel.group.error_map(x)
    moved = ca.jacobian(error_map.T @ row, x) @ error_map  # KP x in `row` stays as it is
    moved = ca.substitute(moved, row, constant(channel.stiffness) @ x)
    N = constant(root.T) @ error_map @ constant(scale.T)
    T = constant(scale) @ moved @ constant(scale.T)
    return ca.Function("norms", [x], [ca.densify(N), ca.densify(T)], {"cse": True})


def _directions(size: int, count: int) -> np.ndarray:
    """Directions spread evenly, and the axes both ways, shape (count, size)."""
    spread = ndtri(qmc.Halton(size, scramble=False).random(count + 1)[1:])
    spread /= np.linalg.norm(spread, axis=1, keepdims=True)
    spread[:: count // (2 * size)][: 2 * size] = np.vstack([np.eye(size), -np.eye(size)])
    return np.asarray(spread)
