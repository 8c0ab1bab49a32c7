"""The matrix A of the inequality as an affine function of B, and its enclosure over boxes.

Over a box, each entry of B is enclosed by its value and slopes at the middle and a remainder
(Taylor's theorem). A is affine in B, so the corners of the box suffice. A congruence brings A at
each corner near the identity; A is positive if all its Gershgorin discs then lie above zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import casadi as ca
import numpy as np

from concur.certify._arrays import above, array, matrix
from concur.certify._channels import Channel
from concur.certify._inequality import (
    Claim,
    inequality,
    turned_components,
)
from concur.certify._intervals import Ball, Walker, flint, interval
from concur.certify._reduction import Reduction

Box = tuple[tuple[float, float], ...]

BAND = 1e-12
"""Error bound of the entries of B, as a multiple of 1 + (largest position error in m).

The series of the deployed map has 20 terms below |phi| = 2, with coefficients rounded to about
1e-15 of their size; its truncation error is below 1e-19. The closed form beyond is exact.
"""


@dataclass(frozen=True, eq=False)
class Counterexample:
    """Pose error at which the matrix inequality, or P > 0, fails.

    Parameters
    ----------
    x : numpy.ndarray
        Pose error in the domain, shape (n,).
    direction : numpy.ndarray
        Vector z with z^T A(x) z < 0, or z^T P z <= 0 when `positive` is False, shape (2 n,).
    value : float
        Upper bound of z^T A(x) z, or of z^T P z, by ball arithmetic; below zero or zero.
    positive : bool
        Whether P > 0, so that the matrix inequality fails.
    motion : bool
        Whether the first half of the direction is x itself. If so, V decays more slowly than
        claimed in the state (x, ve) = direction. If not, only this proof fails; another P or
        other multipliers may succeed.
    """

    x: np.ndarray
    direction: np.ndarray
    value: float
    positive: bool
    motion: bool


class AffineForm:
    """A = constant + sum over the entries of B of entry times coefficient."""

    def __init__(self, channel: Channel, claim: Claim) -> None:
        self.channel, self.claim = channel, claim
        n = channel.size
        exact = Claim(exact_balls(claim.P), claim.alpha, exact_balls(claim.L), exact_balls(claim.M))
        alpha = flint().arb(claim.alpha)
        gains = [matrix(g) for g in (channel.stiffness, channel.inertia, channel.damping)]
        try:
            scale = gains[1].inv()
        except ZeroDivisionError:
            self.known = False
            return
        self.known = True
        numbers = (array(gains[0]), array(scale), array(scale * gains[2]))
        turned = turned_components(channel)

        def at(B: np.ndarray) -> np.ndarray:
            return inequality(numbers, turned, exact_balls(B), exact, alpha)

        constant = at(np.zeros((n, n)))
        self.constant = flint().arb_mat(constant.tolist())
        self.coefficients = {}
        for i in range(n):
            for j in range(n):
                unit = np.zeros((n, n))
                unit[i, j] = 1.0
                self.coefficients[i, j] = flint().arb_mat((at(unit) - constant).tolist())

    def at(self, B: np.ndarray) -> Any:
        """A for balls of B."""
        total = self.constant
        for place, coefficient in self.coefficients.items():
            if not B[place].is_zero():
                total = total + coefficient * B[place]
        return total

    @cached_property
    def _map(self) -> tuple[Walker, np.ndarray]:
        x = ca.SX.sym("x", self.channel.size)
        B = ca.densify(self.channel.group.error_map(x))
        return Walker(ca.Function("B", [x], [B])), _varying(B)

    def counterexample(self, x: np.ndarray) -> Counterexample | None:
        """A direction in which A(x) is negative, found with floats and checked with balls."""
        balls = [flint().arb(float(value)) for value in x]
        walker, varying = self._map
        A = self.at(_widened(array(walker([balls])[0]), varying, x))
        middle = _floats(A)
        if not np.isfinite(middle).all():
            return None
        exact = array(A)
        n = len(x)
        # With x as the first half, choose the ve that minimises the form, or a distant one
        # if there is no minimum.
        values, vectors = np.linalg.eigh(middle[n:, n:])
        if values[0] > 0.0:
            speeds = [-np.linalg.solve(middle[n:, n:], middle[n:, :n] @ x)]
        else:
            speeds = [scale * vectors[:, 0] for scale in (0.0, 1.0, -1.0, 1e3, -1e3)]
        candidates = [np.concatenate([x, ve]) for ve in speeds]
        _, vectors = np.linalg.eigh(middle)
        candidates.append(vectors[:, 0])
        for direction in candidates:
            if self.channel.kind == "linear":
                # A is constant, so any small direction is a state.
                direction = direction * 2.0**-3
                x = direction[:n]
            value = quadratic(exact, direction)
            if value < 0:
                motion = np.array_equal(direction[:n], x)
                return Counterexample(x, direction, above(value), positive=True, motion=motion)
        return None


class CornerMap:
    """B and its derivatives by the parameters, for one corner of the positions."""

    def __init__(self, channel: Channel, reduction: Reduction, offset: np.ndarray) -> None:
        n, k = reduction.matrix.shape
        p = ca.SX.sym("p", k)
        x = ca.DM(offset) + ca.mtimes(ca.DM(reduction.matrix), p)
        B = ca.densify(channel.group.error_map(x))
        slopes = ca.jacobian(ca.vec(B), p) if k else ca.SX(n * n, 0)
        bends = ca.jacobian(ca.vec(ca.densify(slopes)), p) if k else ca.SX(0, 0)
        results = [B, ca.densify(slopes), ca.densify(bends)]
        self.walker = Walker(ca.Function("corner", [p], results))
        self.varying = _varying(B)
        self.offset, self.n, self.k = offset, n, k

    def positive(self, form: AffineForm, box: Box) -> bool:
        """Whether A > 0 for all parameters of a box."""
        arb = flint().arb
        balls = [interval(a, b) for a, b in box]
        middle = [arb((a + b) / 2) for a, b in box]
        # The middle is rounded to a float and may differ from the centre.
        reach = [_reach(m, a, b) for m, (a, b) in zip(middle, box, strict=True)]
        for case in self.walker.cases([balls]):
            if case.mixed or not all(
                ball.is_finite() for result in case.results for ball in result.entries()
            ):
                return False
            remainder = self._remainder(array(case.results[2]), reach)
            for centre in self.walker.cases([middle], case.answers):
                B = _widened(array(centre.results[0]), self.varying, self.offset)
                slopes = array(centre.results[1]).reshape(self.n, self.n, self.k, order="F")
                if not self._case_positive(form, B, slopes, remainder, reach):
                    return False
        return True

    def _remainder(self, bends: np.ndarray, reach: list[Ball]) -> np.ndarray:
        """Remainder of the first-order expansion of each entry of B."""
        n, k = self.n, self.k
        sizes = np.full((n, n), flint().arb(0), dtype=object)
        for place, bend in np.ndenumerate(bends.reshape(n, n, k, k, order="F")):
            if not bend.is_zero():
                _, _, i, j = place
                sizes[place[:2]] += reach[i] * reach[j] * bend.abs_upper() / 2
        return sizes

    def _case_positive(
        self,
        form: AffineForm,
        B: np.ndarray,
        slopes: np.ndarray,
        remainder: np.ndarray,
        reach: list[Ball],
    ) -> bool:
        A = form.at(B)
        steps = []
        for i in range(self.k):
            step = flint().arb_mat(2 * self.n, 2 * self.n)
            for place, coefficient in form.coefficients.items():
                slope = slopes[(*place, i)]
                if not slope.is_zero():
                    step = step + coefficient * (slope * reach[i])
            steps.append(step)
        loose = [
            (form.coefficients[place], size)
            for place, size in np.ndenumerate(remainder)
            if not size.is_zero()
        ]
        for signs in product((-1, 1), repeat=self.k):
            corner = A
            for sign, step in zip(signs, steps, strict=True):
                corner = corner + step * sign
            if not _definite_within(corner, loose):
                return False
        return True


def _definite_within(A: Any, loose: list[tuple[Any, Ball]]) -> bool:
    """Whether A + sum_k e_k C_k > 0 for all |e_k| <= w_k."""
    T = _congruence(_floats(A))
    if T is None:
        return False
    turned = T.transpose()
    rows = (T * A * turned).tolist()
    size = len(rows)
    slack = [rows[i][i] - sum(abs(rows[i][j]) for j in range(size) if j != i) for i in range(size)]
    if not all(s > 0 for s in slack):
        return False
    for coefficient, w in loose:
        for i, row in enumerate((T * coefficient * turned).tolist()):
            slack[i] = slack[i] - w * sum(abs(entry) for entry in row)
    return all(s > 0 for s in slack)


def _congruence(A: np.ndarray) -> Any | None:
    """Inverse Cholesky factor as exact balls, or None; proofs do not need its accuracy."""
    try:
        factor = np.linalg.cholesky(A)
        T = np.linalg.inv(factor)
    except np.linalg.LinAlgError:
        return None
    return matrix(T) if np.isfinite(T).all() else None


def _reach(middle: Ball, a: float, b: float) -> Ball:
    arb = flint().arb
    return arb((middle - arb(a)).max(arb(b) - middle).upper())


def _varying(B: ca.SX) -> np.ndarray:
    """Which entries of B are not constant; constants are free of rounding."""
    rows, columns = B.shape
    return np.array([[not B[i, j].is_constant() for j in range(columns)] for i in range(rows)])


def _widened(B: np.ndarray, varying: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Entries of B widened by the error bound of the deployed map."""
    band = flint().arb(0, BAND * (1.0 + float(np.abs(x).max(initial=0.0))))
    wide = B.copy()
    wide[varying] = B[varying] + band
    return wide


def exact_balls(values: np.ndarray) -> np.ndarray:
    arb = flint().arb
    balls = np.empty(values.shape, dtype=object)
    for place, value in np.ndenumerate(values):
        balls[place] = arb(float(value))
    return balls


def _floats(A: Any) -> np.ndarray:
    middle = np.array([[float(entry) for entry in row] for row in A.tolist()])
    return np.asarray((middle + middle.T) / 2)


def quadratic(A: np.ndarray, direction: np.ndarray) -> Ball:
    z = exact_balls(direction)
    return z @ (A @ z)
