"""Bounds over a ball that Theorem 5.4.2 rests on, W12 and W3 to W7, with its proof put right.

With N(x) = KP^1/2 B(x) I^-1/2, T_ij = x^T KP DB(x)[B e_j] e_i, D = I^-1/2 KD I^-1/2 and the ball
|x|_KP <= r:

    W12 = sup |N|             in place of the product W1 W2, whose norms are not those needed
    W3  = inf smallest singular value of N, squared         (5.4.40)
    W4  = W12^2                                             (5.4.41)
    W5  = r sup |sym I^-1/2 T I^-1/2| / |x|_KP              (5.4.42); r bounds |ve|_I
    W6  = sup |N D|                                         (5.4.43), with I^-1 for KP^-1
    W7  = smallest eigenvalue of D                          the thesis puts W6, valid for KP <= I

Lengths are measured by KP and I alone, so that no choice of metres per radian changes them: with
x, ve and the gains in units of any length they are the same numbers.

On an abelian group B = 1 and T = 0. On SO(3) with KP = kp, KD = kd, I = i (multiples of the
identity) B = 1 - PHI/2 + hh PHI^2 has the singular values 1 and u / sin u with u = |phi| / 2, and
x^T DB[d] = d^T (1 - B) makes sym T = kp (sym B - B^T B), so that

    W12 = sqrt(kp / i) u / sin u,  W3 = kp / i,  W6 = (kd / i) W12,  W7 = kd / i,
    W5 = (kp / i) (u^2 / sin^2 u - u cot u)

at the largest angle: each grows with it, W5 because T's norm over |phi| is half the derivative of
-u cot u, a series with positive coefficients. On other groups the bounds are searched for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import casadi as ca
import numpy as np

from concur.certify._bounds import (
    cosine,
    float_above,
    float_below,
    largest_eigenvalue,
    rational,
    root_above,
    sine,
    smallest_eigenvalue,
    solve,
)
from concur.certify._channels import Channel
from concur.codegen import Evaluator
from concur.kinematics import constant

SLACK = 1 + Fraction(1, 2**40)
"""Covers the difference of B as it is computed, by a series with rounded coefficients, from B."""

Objective = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
"""Values (k,) of N and T, each (k, n, n), at points (k, m) of the unit ball."""


@dataclass(frozen=True)
class Suprema:
    """The bounds over a ball of x.

    Parameters
    ----------
    W12 : float
        Largest factor between the lengths of ve and of B ve, 1/s.
    W3 : float
        Smallest such factor, squared, 1/s^2.
    W5 : float
        Bound of the term with the derivative of B, 1/s^2.
    W6 : float
        Bound of the term with the damping, 1/s^2.
    W7 : float
        Smallest damping over inertia, 1/s.
    exact : bool
        Whether these are closed forms rounded to the safe side, and not values on a grid.
    """

    W12: float
    W3: float
    W5: float
    W6: float
    W7: float
    exact: bool


def suprema(channel: Channel, angle: float, radius: float) -> Suprema:
    """Bound what Theorem 5.4.2 needs over the ball |x|_KP <= radius.

    Parameters
    ----------
    channel : Channel
        Outputs with symmetric positive definite gains.
    angle : float
        Largest angle of a rotation error in the ball, rad.
    radius : float
        Radius of the ball in the norm of KP; may be infinite on abelian groups.

    Returns
    -------
    Suprema
        Closed forms on abelian groups and for SO(3) with isotropic gains; else the largest (and
        smallest) values found on a grid and around its best points, which may be exceeded.
    """
    stiffness, damping, inertia = (
        rational(gain) for gain in (channel.stiffness, channel.damping, channel.inertia)
    )
    least_damping = float_below(smallest_eigenvalue(damping, inertia))
    if channel.kind in ("linear", "SO3 isotropic"):
        stretch, growth = _rotation_factors(angle) if channel.kind != "linear" else (1, 0)
        most = largest_eigenvalue(stiffness, inertia) * stretch**2
        through = damping @ solve(inertia, stiffness @ solve(inertia, damping))
        drag = largest_eigenvalue(through, inertia) * stretch**2
        return Suprema(
            W12=root_above(most),
            W3=float_below(smallest_eigenvalue(stiffness, inertia)),
            W5=float_above(largest_eigenvalue(stiffness, inertia) * growth),
            W6=root_above(drag),
            W7=least_damping,
            exact=True,
        )
    search = _Search(channel, radius)
    return Suprema(
        W12=search.largest(lambda N, T, y: np.linalg.norm(N, 2, axis=(1, 2))),
        W3=search.largest(lambda N, T, y: -np.linalg.norm(N, -2, axis=(1, 2))) ** 2,
        W5=search.largest(lambda N, T, y: _size(T) / np.linalg.norm(y, axis=1)),
        W6=search.largest(lambda N, T, y: np.linalg.norm(N @ search.drag, 2, axis=(1, 2))),
        W7=least_damping,
        exact=False,
    )


def _rotation_factors(angle: float) -> tuple[Fraction, Fraction]:
    """Upper bounds of u / sin u and u^2 / sin^2 u - u cot u for half an angle u."""
    half = Fraction(angle) / 2
    sines, cosines = sine(half), cosine(half)
    stretch = half / sines[0] * SLACK
    return stretch, stretch**2 - half / sines[1] * cosines[0]


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
    # Imported late: the statistics of SciPy take half a second.
    from scipy.special import ndtri
    from scipy.stats import qmc

    spread = ndtri(qmc.Halton(size, scramble=False).random(count + 1)[1:])
    spread /= np.linalg.norm(spread, axis=1, keepdims=True)
    spread[:: count // (2 * size)][: 2 * size] = np.vstack([np.eye(size), -np.eye(size)])
    return np.asarray(spread)
