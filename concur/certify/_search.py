"""Search for a quadratic form and the fastest rate it can prove: linear matrix inequalities.

Nothing found here is a claim. P, the rate and the multipliers are floats that a convex solver
likes on sampled errors; `prove` decides. The form has the symmetry of the gains where that lets
`_reduction` do with fewer parameters: an average over the symmetry would do as well.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from itertools import product
from types import ModuleType
from typing import Any

import casadi as ca
import numpy as np
from scipy.linalg import solve_continuous_lyapunov

from concur.certify._channels import Channel
from concur.certify._inequality import (
    Claim,
    inequality,
    isotropic_multipliers,
    turned_components,
)
from concur.certify._reduction import Reduction, reduce_domain
from concur.errors import ConcurError, OutputError

_SAMPLES = {1: 9, 2: 5, 3: 5}
"""Samples along each parameter at first, by number of parameters."""

_FINE = {1: 129, 2: 25, 3: 13}
"""Samples along each parameter at which the result is looked at again."""

_ROUNDS = 8
"""Times that samples where the result fails are added."""

_LARGEST = 400_000
"""Inequalities times members times components squared, beyond which a search takes hours."""

_WIDE = 1.7
"""Angle beyond which several parameters need more room for a proof, rad."""

_TOLERANCE = 2e-3
"""Width of the last interval of rates, relative to the true rate."""

_SMALLNESS = 1e-3
"""Price of the size of all members together, as part of P's condition."""

_MARGIN = 1e-7
"""Least eigenvalue asked for, with P of mean eigenvalue one: beyond the solver's accuracy."""


@dataclass(frozen=True, eq=False)
class Candidate:
    """Something worth proving.

    Parameters
    ----------
    P : numpy.ndarray
        Symmetric matrix of V = z^T P z / 2, shape (2 n, 2 n), in the channel's units.
    alpha : float
        Rate to be proved, 1/s: the limit, less the back-off.
    multipliers : tuple of numpy.ndarray
        L and M of the inequality, each of shape (2 n, n).
    limit : float
        Fastest rate found feasible on the samples, 1/s.
    samples : int
        Sampled errors that the last inequality was solved for.
    """

    P: np.ndarray
    alpha: float
    multipliers: tuple[np.ndarray, np.ndarray]
    limit: float
    samples: int


def search(
    channel: Channel,
    angle: float,
    distance: float | None = None,
    backoff: float | None = None,
) -> Candidate | None:
    """Search for a form that falls fast on a domain.

    Parameters
    ----------
    channel : Channel
        Outputs that belong together, stable.
    angle : float
        Bound of every rotation error on which B depends, above 0 and at most pi, rad.
    distance : float, optional
        Bound of every position error on which B depends, m; needed when there is one.
    backoff : float, optional
        Part of the rate given up so that a proof has room, from 0 to below 1. Default: 0.005
        for linear and isotropic rotational channels, 0.015 for others that one parameter is left
        of, else 0.1, and 0.2 for large angles.

    Returns
    -------
    Candidate or None
        None when no rate above zero was found, when no reduction of the domain is known, and when
        the inequalities would be too large: poses with gains that depend on the direction.

    Raises
    ------
    ConcurError
        If the solver is not installed.
    OutputError
        If the domain or the back-off is out of its range.
    """
    cvxpy = _cvxpy()
    if backoff is not None and not 0.0 <= backoff < 1.0:
        raise OutputError(
            f"search for {channel.name}, `backoff`",
            expected="a part from 0 to below 1",
            came=f"{backoff:.6g}",
            cure="Leave it out.",
        )
    if not channel.true_rate > 0.0:
        return None
    if channel.kind in ("linear", "SO3 isotropic"):
        return _of_the_linearisation(cvxpy, channel, 0.005 if backoff is None else backoff)
    family = _Family(channel)
    reduction = reduce_domain(channel, family.typical, angle, distance)
    if reduction is None:
        return None
    several = len(reduction.parameters) > 1
    count = len(reduction.offsets) * _SAMPLES[len(reduction.parameters)] ** len(
        reduction.parameters
    )
    if count * len(family.members) * channel.size**2 > _LARGEST:
        return None
    if backoff is None:
        backoff = 0.015 if not several else 0.1 if angle < _WIDE else 0.2
    problem = _Problem(cvxpy, family, reduction, _scales(channel, angle, distance))
    return problem.solve(backoff)


def _of_the_linearisation(cp: ModuleType, channel: Channel, backoff: float) -> Candidate:
    """Form that proves nearly the true rate: B = 1, or B that only helps (SO(3), isotropic).

    With the multipliers for isotropic channels A depends on x through c (1 - sym(B)) >= 0 alone.
    """
    n, copies = channel.size, 1
    gains = [channel.stiffness, channel.damping, channel.inertia]
    if channel.kind == "SO3 isotropic":
        n, copies = 1, 3
        gains = [gain[:1, :1] for gain in gains]
    pull = np.linalg.solve(gains[2], np.hstack([gains[0], -gains[1]]))
    F = np.vstack([np.hstack([np.zeros((n, n)), -np.eye(n)]), pull])
    # Half of the back-off is room for the proof.
    shifted = F + (1.0 - backoff / 2) * channel.true_rate * np.eye(2 * n)
    quick = np.sqrt(np.abs(np.diag(pull)))
    room = backoff / 2 * channel.true_rate
    P = _least_overshoot(
        cp, shifted, room, np.concatenate([np.ones(n), quick]), _metric(channel)[:n]
    )
    if P is None:
        # Next to critical damping the solver gives up; this form is worse, but it is there.
        weight = np.diag(np.concatenate([quick**2, np.ones(n)]))
        P = solve_continuous_lyapunov(shifted.T, -weight)
        P = P / np.abs(P).max()
    P = np.kron((P + P.T) / 2, np.eye(copies))
    alpha = (1.0 - backoff) * channel.true_rate
    return Candidate(P, alpha, isotropic_multipliers(channel, P), channel.true_rate, 1)


def _least_overshoot(
    cp: ModuleType, F: np.ndarray, room: float, scales: np.ndarray, metric: np.ndarray
) -> np.ndarray | None:
    """P of least condition in a metric that falls with F, or but for some room does."""
    P, condition = cp.Variable(F.shape, PSD=True), cp.Variable()
    inner = F * np.outer(1.0 / scales, scales)
    unit = np.diag(scales**2 * np.tile(metric, 2))
    problem = cp.Problem(
        cp.Minimize(condition),
        [P >> unit, condition * unit >> P, P @ inner + inner.T @ P << 0],
    )
    if not _solved(problem, cp):
        return None
    found = P.value / np.outer(scales, scales)
    found = (found + found.T) / 2
    return found if _falls(found, F - room * np.eye(len(F))) else None


class _Family:
    """Forms looked among: P, L and M as combinations of given ones."""

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        n = channel.size
        self.n = n
        self.gains = (
            channel.stiffness,
            np.linalg.inv(channel.inertia),
            np.linalg.solve(channel.inertia, channel.damping),
        )
        self.turned = turned_components(channel)
        self.members = self._members()
        x = ca.SX.sym("x", n)
        self.error_map = ca.Function("B", [x], [ca.densify(channel.group.error_map(x))])

    @property
    def typical(self) -> Claim:
        """A form without more symmetry than the family has."""
        return self.combine(1.0 + np.sqrt(np.arange(len(self.members))))

    def combine(self, weights: np.ndarray) -> Claim:
        """Sum of the members by weight; isotropic channels get their multipliers from the sum."""
        P = sum(w * member.P for w, member in zip(weights, self.members, strict=True))
        P = (P + P.T) / 2
        if self._isotropic:
            return Claim(P, 0.0, *isotropic_multipliers(self.channel, P))
        L = sum(w * member.L for w, member in zip(weights, self.members, strict=True))
        M = sum(w * member.M for w, member in zip(weights, self.members, strict=True))
        return Claim(P, 0.0, L, M)

    def matrices(self, x: np.ndarray) -> np.ndarray:
        """A of every member at a pose error for rate zero, shape (members, 2 n, 2 n)."""
        B = np.asarray(self.error_map(x))
        return np.array([inequality(self.gains, self.turned, B, m, 0.0) for m in self.members])

    @property
    def _isotropic(self) -> bool:
        return self.channel.kind == "SE3 isotropic"

    def _members(self) -> list[Claim]:
        n = self.n
        none = np.zeros((2 * n, n))
        if self._isotropic:
            kinds, block = n // 3, np.eye(3)
            pairs = [(i, j) for i, j in _pairs(2 * kinds) if (i - j) % kinds == 0]
            forms = [np.kron(_symmetric(i, j, 2 * kinds), block) for i, j in pairs]
            return [Claim(P, 0.0, *isotropic_multipliers(self.channel, P)) for P in forms]
        pattern = np.ones((n, n))
        if self.channel.kind == "SO3" and all(
            np.array_equal(g, np.diag(np.diag(g)))
            for g in (self.channel.stiffness, self.channel.damping, self.channel.inertia)
        ):
            pattern = np.eye(n)
        wanted = np.kron(np.ones((2, 2)), pattern)
        members = [
            Claim(_symmetric(i, j, 2 * n), 0.0, none, none)
            for i, j in _pairs(2 * n)
            if wanted[i, j]
        ]
        for i in range(2 * n):
            for j in range(n):
                if not wanted[i, j]:
                    continue
                unit = none.copy()
                unit[i, j] = 1.0
                members.append(Claim(np.zeros((2 * n, 2 * n)), 0.0, unit, none))
                if self.turned[j]:
                    members.append(Claim(np.zeros((2 * n, 2 * n)), 0.0, none, unit))
        return members


class _Problem:
    """Inequalities at sampled errors, in coordinates in which the domain has size one."""

    def __init__(
        self, cvxpy: ModuleType, family: _Family, reduction: Reduction, scales: np.ndarray
    ) -> None:
        self.cp, self.family, self.reduction, self.scales = cvxpy, family, reduction, scales
        self.true_rate = family.channel.true_rate
        self.forms = np.array([self._scaled(member.P) for member in family.members])
        self.samples = [self._at(x) for x in self._errors(_SAMPLES)]

    def solve(self, backoff: float) -> Candidate | None:
        fine: np.ndarray | None = None
        high = self.true_rate
        for _ in range(_ROUNDS):
            limit = self._limit(high)
            if limit is None:
                return None
            weights = self._best(limit, backoff)
            if weights is None:
                return None
            if fine is None:
                fine = np.array([self._at(x) for x in self._errors(_FINE)])
            alpha = (1.0 - backoff) * limit
            matrices = np.tensordot(fine, weights, (1, 0)) - alpha * np.tensordot(
                weights, self.forms, 1
            )
            least = np.linalg.eigvalsh(matrices)[:, 0]
            worst = np.argsort(least)[: 4 * (1 + len(self.reduction.parameters))]
            failing = [k for k in worst if least[k] <= 0.0]
            if not failing:
                claim = self.family.combine(weights)
                return Candidate(claim.P, alpha, (claim.L, claim.M), limit, len(self.samples))
            self.samples += [fine[k] for k in failing]
            high = limit
        return None

    def _limit(self, high: float) -> float | None:
        """Fastest rate that is feasible on the samples, by bisection."""
        cp = self.cp
        weights, rate, margin = cp.Variable(len(self.forms)), cp.Parameter(), cp.Variable()
        form = self._combined(weights, self.forms)
        size = len(self.scales)
        problem = cp.Problem(
            cp.Maximize(margin),
            [cp.trace(form) == size, form >> 1e-5 * np.eye(size), margin <= 1.0]
            + [
                self._combined(weights, sample) - rate * form >> margin * np.eye(size)
                for sample in self.samples
            ],
        )
        low, found = 0.0, None
        while high - low > _TOLERANCE * self.true_rate:
            rate.value = (low + high) / 2
            if _solved(problem, cp) and margin.value > _MARGIN * max(1.0, self.true_rate):
                low = found = rate.value
            else:
                high = rate.value
        return None if found is None else float(found)

    def _best(self, limit: float, backoff: float) -> np.ndarray | None:
        """Weights for the form of least condition that still has half of the back-off as room."""
        cp = self.cp
        weights, condition = cp.Variable(len(self.forms)), cp.Variable()
        form = self._combined(weights, self.forms)
        unit = self._scaled(np.diag(np.tile(_metric(self.family.channel), 2)))
        rate = (1.0 - backoff / 2) * limit
        # Large multipliers cost nothing in the samples, but make proofs long.
        sizes = np.linalg.norm(np.array(self.samples), axis=(2, 3)).max(0) / self.true_rate
        problem = cp.Problem(
            cp.Minimize(condition + _SMALLNESS * cp.norm(cp.multiply(sizes, weights))),
            [form >> unit, condition * unit >> form]
            + [self._combined(weights, sample) - rate * form >> 0 for sample in self.samples],
        )
        return np.array(weights.value) if _solved(problem, cp) else None

    def _combined(self, weights: Any, matrices: np.ndarray) -> Any:
        size = len(self.scales)
        flat = matrices.reshape(len(matrices), -1).T
        return self.cp.reshape(flat @ weights, (size, size), order="C")

    def _at(self, x: np.ndarray) -> np.ndarray:
        return np.array([self._scaled(A) for A in self.family.matrices(x)])

    def _scaled(self, matrix: np.ndarray) -> np.ndarray:
        return matrix * np.outer(self.scales, self.scales)

    def _errors(self, counts: dict[int, int]) -> list[np.ndarray]:
        reduction = self.reduction
        k = len(reduction.lower)
        axes = [
            np.linspace(a, b, counts[k])
            for a, b in zip(reduction.lower, reduction.upper, strict=True)
        ]
        points = []
        for p in map(np.array, product(*axes)):
            length = np.linalg.norm(p)
            # What is beyond the ball is brought back to its surface, where rates are worst.
            if length > reduction.radius:
                p = p * (reduction.radius / length)
            points += [offset + reduction.matrix @ p for offset in reduction.offsets]
        return list(np.unique(np.array(points), axis=0))


def _solved(problem: Any, cp: ModuleType) -> bool:
    with warnings.catch_warnings():
        # An inaccurate solution is as good as another: it is looked at again, and proved or not.
        warnings.simplefilter("ignore")
        try:
            problem.solve(solver=cp.CLARABEL)
        except cp.error.SolverError:
            return False
    return problem.status in ("optimal", "optimal_inaccurate")


def _scales(channel: Channel, angle: float, distance: float | None) -> np.ndarray:
    """Sizes of x and ve on the domain."""
    reach = distance if distance else angle * channel.length
    x = np.array([reach if unit == "m" else angle for unit in channel.units])
    pull = np.linalg.solve(channel.inertia, channel.stiffness)
    quick = np.sqrt(np.abs(np.diag(pull)))
    return np.concatenate([x, x * np.maximum(quick, channel.true_rate)])


def _falls(P: np.ndarray, F: np.ndarray) -> bool:
    """Whether P > 0 and P F + F^T P < 0, in floats and independent of units."""
    try:
        root = np.linalg.cholesky(P)
    except np.linalg.LinAlgError:
        return False
    turned = np.linalg.solve(root, (P @ F + F.T @ P) @ np.linalg.inv(root).T)
    return bool(np.linalg.eigvalsh((turned + turned.T) / 2)[-1] < 0.0)


def _metric(channel: Channel) -> np.ndarray:
    """Weights of squares in which overshoot is counted: metres over the channel's length."""
    return np.array([channel.length**-2 if unit == "m" else 1.0 for unit in channel.units])


def _pairs(size: int) -> list[tuple[int, int]]:
    return [(i, j) for i in range(size) for j in range(i, size)]


def _symmetric(i: int, j: int, size: int) -> np.ndarray:
    matrix = np.zeros((size, size))
    matrix[i, j] = matrix[j, i] = 1.0
    return matrix


def _cvxpy() -> ModuleType:
    if find_spec("cvxpy") is None or find_spec("clarabel") is None:
        raise ConcurError(
            "certificates",
            expected="cvxpy with the solver Clarabel, which solve matrix inequalities",
            came="an environment without them",
            cure='Install the extra: pip install "concur[certify]".',
        )
    return import_module("cvxpy")
