"""Joint angles as functions of what the outputs and the base do: parametric Krawczyk.

Unknown coordinates x solve g(x, p) = 0, the parameters p being models. With Y the inverse of
dg/dx at the middle of a cell (`task-proof`, section 2):

1. Newton steps x <- x - Y g(x, p) on polynomials give a candidate x(d), remainders dropped;
2. D >= |Y g(x(d), p(d))| is its defect;
3. K >= |1 - Y dg/dx| over x(d) + [-rho, rho];
4. D + K rho <= rho, with the norm of K below 1.

**What holds.** Where `solved`, for every point d of the blocks' balls exactly one root lies in
x(d) + [-rho, rho], and it is the only one in x(d) + [-unique, unique]. *Which* root of several this
is follows by continuity only: see `same_branch`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np

from concur._polynomials import Floats, Model, Walker

NEWTON_STEPS = 3
"""Steps on polynomials; three reach the second order and a defect near rounding."""

WIDER = ((4.0, 1e-3), (2.5, 1e-4))
"""Widths in which a root is shown to be the only one, tried in turn: so many rho, or so many rad
or m, whatever is larger."""


class Equations:
    """Equations g(x, p) = 0 for unknown coordinates.

    Parameters
    ----------
    x, p : casadi.SX
        Unknown coordinates (n,) and parameters.
    g : casadi.SX
        As many equations as unknown coordinates.
    where : str
        Place for error messages.
    """

    def __init__(self, x: ca.SX, p: ca.SX, g: ca.SX, where: str) -> None:
        g = ca.densify(g)
        self.size = x.shape[0]
        slope = ca.densify(ca.jacobian(g, x))
        self._numbers = ca.Function("g", [x, p], [g, slope], {"cse": True})
        self._value = Walker(ca.Function("g", [x, p], [g], {"cse": True}), where)
        self._slope = Walker(ca.Function("slope", [x, p], [slope], {"cse": True}), where)

    def newton(self, x: Floats, p: Floats, steps: int = 12) -> tuple[Floats, Floats]:
        """Roots near guesses x (n, b) at numbers p (m, b), and the inverse slopes (b, n, n)."""
        n, b = x.shape
        for _ in range(steps):
            value, slope = (np.asarray(part) for part in self._numbers(x, p))
            slopes = np.moveaxis(slope.reshape(n, b, n), 1, 0)
            x = x - np.einsum("bij,jb->ib", _inverses(slopes), value)
        slope = np.asarray(self._numbers(x, p)[1])
        return x, _inverses(np.moveaxis(slope.reshape(n, b, n), 1, 0))

    def solve(self, parameters: Sequence[Model], guess: Floats) -> Configurations:
        """Enclose the roots near guesses (n, b) for all values of the parameters."""
        middle = np.array([np.broadcast_to(m.c, guess.shape[1]) for m in parameters])
        start, inverse = self.newton(guess, middle)
        space = parameters[0].space
        exact = [m.with_remainder(0.0) for m in parameters]
        x = [space.constant(row) for row in start]
        with np.errstate(all="ignore"):
            for _ in range(NEWTON_STEPS):
                moved = _times(inverse, self._value(x, exact)[0].ravel().tolist())
                x = [(a - b).with_remainder(0.0) for a, b in zip(x, moved, strict=True)]
            moved = _times(inverse, self._value(x, parameters)[0].ravel().tolist())
            defect = np.array([m.bound for m in moved])
            # A first guess of K at the candidate itself gives rho; then both are checked.
            gain = self._contraction(x, parameters, inverse, 2.0 * defect)
            rho = np.linalg.solve(
                np.moveaxis(np.eye(self.size)[:, :, None] - _finite(gain), 2, 0),
                defect.T[..., None],
            )[..., 0].T
            rho = np.where(rho > 0.0, 1.1 * rho + 1e-15, 2.0 * defect)
            gain = self._contraction(x, parameters, inverse, rho)
            mapped = defect + np.einsum("ijb,jb->ib", gain, rho)
            solved = (mapped * (1 + 1e-12) <= rho).all(axis=0) & (gain.sum(axis=1) < 1.0).all(
                axis=0
            )
            # Candidates of touching cells differ by both remainders.
            unique = rho
            for factor, least in WIDER:
                width = np.maximum(factor * rho, least)
                wide = self._contraction(x, parameters, inverse, width).sum(axis=1)
                sole = (wide < 1.0).all(axis=0)
                unique = np.where(sole, np.maximum(unique, width), unique)
                if sole.all():
                    break
        r = np.where(solved, rho, np.inf)
        models = [m.with_remainder(part) for m, part in zip(x, r, strict=True)]
        return Configurations(models, gain.sum(axis=1).max(axis=0), solved, unique)

    def _contraction(
        self, x: Sequence[Model], parameters: Sequence[Model], inverse: Floats, rho: Floats
    ) -> Floats:
        """Sizes of the entries of 1 - Y dg/dx over boxes about a candidate, (n, n, b)."""
        boxes = [m.with_remainder(part) for m, part in zip(x, rho, strict=True)]
        slope = self._slope(boxes, parameters)[0]
        one = np.eye(self.size)
        rows = []
        for i in range(self.size):
            row = []
            for j in range(self.size):
                total = parameters[0].space.constant(np.full(rho.shape[1], one[i, j]))
                for k in range(self.size):
                    total = total - slope[k, j] * inverse[:, i, k]
                row.append(total.bound)
            rows.append(row)
        return np.array(rows)


@dataclass(frozen=True, eq=False)
class Configurations:
    """Unknown coordinates over cells.

    Parameters
    ----------
    models : list of Model
        Each unknown coordinate; with an infinite remainder where nothing is shown.
    contraction : numpy.ndarray
        Largest row sum of K, shape (b,).
    solved : numpy.ndarray
        Whether the existence of one root is shown, shape (b,).
    unique : numpy.ndarray
        Half widths about the polynomials in which it is the only one, shape (n, b).
    """

    models: list[Model]
    contraction: Floats
    solved: np.ndarray
    unique: Floats

    def take(self, columns: np.ndarray) -> Configurations:
        """Some of the cells."""
        return Configurations(
            [m.take(columns) for m in self.models],
            self.contraction[columns],
            self.solved[columns],
            self.unique[:, columns],
        )

    def joined(self, other: Configurations) -> Configurations:
        """These cells, then others."""
        return Configurations(
            [a.joined(b) for a, b in zip(self.models, other.models, strict=True)],
            np.append(self.contraction, other.contraction),
            np.append(self.solved, other.solved),
            np.concatenate([self.unique, other.unique], axis=1),
        )

    def same_branch(
        self,
        first: np.ndarray,
        at: Floats,
        second: np.ndarray,
        there: Floats,
        others: Configurations | None = None,
    ) -> np.ndarray:
        """Whether pairs of cells (k,) have the same root where both mean the same parameters.

        The second of each pair may be among other cells. `at` and `there` are the symbols' values
        (size, k) of that point in each. If it holds at one point of a connected set that both cells
        contain, it holds on this set: roots are continuous, and those that agree somewhere stay the
        only one in the box of `unique`.
        """
        beside = self if others is None else others
        same = np.asarray(self.solved[first] & beside.solved[second])
        for k, model in enumerate(self.models):
            a, b = model.take(first), beside.models[k].take(second)
            with np.errstate(all="ignore"):
                apart = np.abs(a.at(at) - b.at(there)) * (1 + 1e-12) + 1e-13
                same = np.asarray(same & (apart + a.r <= beside.unique[k, second]))
        return np.asarray(same)


def _times(matrices: Floats, vector: Sequence[Model]) -> list[Model]:
    """Matrices (b, n, n) times a vector of models."""
    return [
        sum((m * matrices[:, i, k] for k, m in enumerate(vector)), vector[0].space.constant(0.0))
        for i in range(matrices.shape[1])
    ]


def _inverses(matrices: Floats) -> Floats:
    """Inverses; zero for singular matrices, which shows nothing."""
    sound = np.asarray(np.isfinite(matrices).all(axis=(1, 2)))
    safe = np.where(sound[:, None, None], matrices, np.eye(matrices.shape[1]))
    sound = np.asarray(sound & (np.abs(np.linalg.det(safe)) > 0.0))
    inverse = np.linalg.inv(np.where(sound[:, None, None], safe, np.eye(matrices.shape[1])))
    return np.asarray(np.where(sound[:, None, None], inverse, 0.0))


def _finite(gain: Floats) -> Floats:
    """Gains below one, so that the first guess of rho exists."""
    return np.where(np.isfinite(gain), np.minimum(gain, 0.9 / len(gain)), 0.9 / len(gain))


def inverse_matrix(matrix: np.ndarray) -> np.ndarray:
    """Enclose the inverse of a matrix of models, by Neumann's series about its middle.

    With Y the inverse at the middle and E = 1 - Y A, A^-1 = (1 + E + E^2 + E^2 F) Y with
    F = E (1 - E)^-1, |F| <= |E| / (1 - |E|) by the largest row sum. The remainder of a solved cell
    is infinite where |E| is not below 1.
    """
    n = len(matrix)
    space = matrix[0, 0].space
    b = max(m.c.size for m in matrix.ravel())
    middle = np.array([[np.broadcast_to(m.c, b) for m in row] for row in matrix])
    inverse = _inverses(np.moveaxis(middle, 2, 0))
    y = np.array([[space.constant(inverse[:, i, j]) for j in range(n)] for i in range(n)], object)
    error = np.empty((n, n), dtype=object)
    for i in range(n):
        for j in range(n):
            total = space.constant(np.full(b, float(i == j)))
            for k in range(n):
                total = total - matrix[k, j] * inverse[:, i, k]
            error[i, j] = total
    square = error @ error
    with np.errstate(all="ignore"):
        size = np.array([[m.bound for m in row] for row in error]).sum(axis=1).max(axis=0)
        tail = np.where(size < 1.0, size / (1.0 - size), np.inf)
    columns = np.array([[m.bound for m in row] for row in square]).sum(axis=1)  # rows' sums
    total = np.empty((n, n), dtype=object)
    for i in range(n):
        for j in range(n):
            own = error[i, j] + square[i, j] + float(i == j)
            # |(E^2 F)_ij| is at most the row sum of E^2 times the largest entry of F.
            total[i, j] = own.with_remainder(own.r + columns[i] * tail * (1 + 1e-12))
    return np.asarray(total @ y)
