"""Linear equations with models as coefficients.

**What holds.** Where the result is finite, for every point of the balls the matrix is regular and
the solution lies in the models: with Y the inverse at the middle, y a polynomial, |1 - Y A| <= K
and |Y (b - A y)| <= D, the solution differs from y by at most (1 - K)^-1 D, if the row sums of K
are below 1.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from concur._polynomials import Floats, Model

STEPS = 3
"""Newton steps on polynomials; three reach the second order."""


class Solver:
    """A matrix of models with its approximate inverse.

    Parameters
    ----------
    matrix : numpy.ndarray
        Object array of models, shape (n, n).
    """

    def __init__(self, matrix: np.ndarray) -> None:
        self.matrix, n = matrix, len(matrix)
        b = max(m.c.size for m in matrix.ravel())
        middle = np.array([[np.broadcast_to(m.c, b) for m in row] for row in matrix])
        self._sound = np.isfinite(middle).all(axis=(0, 1))
        safe = np.where(self._sound, middle, np.eye(n)[..., None])
        self.inverse = np.moveaxis(np.linalg.inv(np.moveaxis(safe, 2, 0)), 0, 2)
        self.gain = np.empty((n, n, b))
        with np.errstate(all="ignore"):
            for j in range(n):
                for i, m in enumerate(_times(self.inverse, matrix[:, j])):
                    self.gain[i, j] = (m - float(i == j)).bound
        self._sound &= self.gain.sum(axis=1).max(axis=0) < 0.999

    def __call__(self, right: Sequence[Model]) -> list[Model]:
        """Solution for a right side; with infinite remainders where nothing is shown."""
        n = len(self.matrix)
        exact = [m.with_remainder(0.0) for m in right]
        plain = np.array([[m.with_remainder(0.0) for m in row] for row in self.matrix], object)
        y = [m.with_remainder(0.0) for m in _times(self.inverse, exact)]
        with np.errstate(all="ignore"):
            for _ in range(STEPS - 1):
                rest = _times(self.inverse, _less(exact, plain @ np.array(y, object)))
                y = [(a + b).with_remainder(0.0) for a, b in zip(y, rest, strict=True)]
            rest = _times(self.inverse, _less(right, self.matrix @ np.array(y, object)))
            defect = np.array([m.bound for m in rest])
            sound = self._sound & np.isfinite(defect).all(axis=0)
            gain = np.where(sound, self.gain, 0.0)
            left = np.moveaxis(np.eye(n)[..., None] - gain, 2, 0)
            r = np.linalg.solve(left, np.where(sound, defect, 0.0).T[..., None])[..., 0].T
        # (1 - K)^-1 is not negative; the solution's rounding is far below this factor.
        r = np.where(sound, np.abs(r) * (1 + 1e-9) + 1e-15, np.inf)
        return [m.with_remainder(part) for m, part in zip(y, r, strict=True)]


def _less(a: Sequence[Model], b: np.ndarray) -> list[Model]:
    return [m - n for m, n in zip(a, b, strict=True)]


def _times(matrix: Floats, vector: Sequence[Model] | np.ndarray) -> list[Model]:
    """A matrix of numbers for each column (n, n, b) times a vector of models."""
    found = []
    for row in matrix:
        total = vector[0] * row[0]
        for number, m in zip(row[1:], vector[1:], strict=True):
            total = total + m * number
        found.append(total)
    return found
