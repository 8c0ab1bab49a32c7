"""Linear matrix inequalities for a decaying V, at sampled errors of a domain."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from itertools import product
from types import ModuleType
from typing import Any

import numpy as np

from concur.certify._channels import Channel
from concur.certify._family import Family
from concur.certify._reduction import Reduction, reduce_domain
from concur.errors import ConcurError, install_command

_SAMPLES = {1: 9, 2: 5, 3: 5}
"""Initial samples along each parameter, by number of parameters."""

_FINE = {1: 129, 2: 25, 3: 13}
"""Samples along each parameter at which the result is checked."""

_ROUNDS = 8
"""Number of rounds that add samples where the result fails."""

_LARGEST = 300_000
"""Inequalities times members times components squared, beyond which a search takes hours."""

_TOLERANCE = 2e-3
"""Width of the last interval of rates, relative to the true rate."""

_STEPS = (1.0, 0.98, 0.95, 0.9)
"""Fractions of a rate, tried until the solver finds a solution."""

_SMALLNESS = 1e-3
"""Weight of the size of all members, relative to the condition of P."""

_MARGIN = 1e-7
"""Required least eigenvalue for P of mean eigenvalue 1: above the solver's accuracy."""


@dataclass(frozen=True, eq=False)
class Candidate:
    """Result of a search, to be proved.

    Parameters
    ----------
    P : numpy.ndarray
        Symmetric matrix of V = z^T P z / 2, shape (2 n, 2 n), in the channel's units.
    alpha : float
        Rate to be proved, 1/s: the limit minus the back-off.
    multipliers : tuple of numpy.ndarray
        L and M of the inequality, each of shape (2 n, n).
    limit : float
        Fastest rate found feasible on the samples, 1/s.
    samples : int
        Number of sampled errors in the last solution.
    """

    P: np.ndarray
    alpha: float
    multipliers: tuple[np.ndarray, np.ndarray]
    limit: float
    samples: int

    def in_unit(self, unit: float) -> Candidate:
        """Convert a candidate found with another unit of time.

        Parameters
        ----------
        unit : float
            Unit returned by `at_moderate_frequency`, 1/s.

        Returns
        -------
        Candidate
            Candidate in the units of the channel; only ve and A depend on `unit`.
        """
        n = len(self.P) // 2
        sizes = np.repeat([1.0, 1.0 / unit], n)
        L, M = (unit * sizes[:, None] * one for one in self.multipliers)
        P = self.P * np.outer(sizes, sizes)
        return Candidate(P, unit * self.alpha, (L, M), unit * self.limit, self.samples)


def sampled_problem(channel: Channel, angle: float, distance: float | None) -> Problem | None:
    """Return the inequalities at sampled errors of a domain; None if unsupported or too large."""
    family = Family(channel)
    reduction = reduce_domain(channel, family.typical, angle, distance)
    if reduction is None:
        return None
    problem = Problem(load_cvxpy(), family, reduction, _scales(channel, angle, distance))
    if problem.count * len(family.members) * channel.size**2 > _LARGEST:
        return None
    return problem


class Problem:
    """Inequalities at sampled errors, in coordinates in which the domain has size one."""

    def __init__(
        self, cvxpy: ModuleType, family: Family, reduction: Reduction, scales: np.ndarray
    ) -> None:
        self.cp, self.family, self.reduction, self.scales = cvxpy, family, reduction, scales
        self.true_rate = family.channel.true_rate
        self.forms = np.array([self.scaled(member.P) for member in family.members])
        self._first = self._errors(_SAMPLES)
        self.count = len(self._first)

    @property
    def _given(self) -> float:
        """Fraction of the back-off for the optimization; the rest is reserve for the proof.

        Boxes of poses are costly: their V must decay clearly faster than claimed.
        """
        return 0.15 if self.family.channel.kind == "SE3" else 0.5

    @cached_property
    def samples(self) -> list[np.ndarray]:
        """A of every member at the sampled errors, each of shape (members, 2 n, 2 n)."""
        return [self._at(x) for x in self._first]

    @property
    def several(self) -> bool:
        """Whether the boxes have more than one parameter."""
        return len(self.reduction.parameters) > 1

    def solve(self, backoff: float, share: float) -> Candidate | None:
        """Find the fastest rate, and at a fraction of it the P of least condition."""
        high = self.true_rate
        for _ in range(_ROUNDS):
            limit = self._limit(high)
            if limit is None:
                return None
            for step in _STEPS:
                # At the limit the solver may fail.
                alpha = (1.0 - backoff) * share * step * limit
                weights = self._best(alpha / (1.0 - backoff) * (1.0 - self._given * backoff))
                if weights is not None:
                    break
            else:
                return None
            if self.holds(weights, alpha):
                claim = self.family.combine(weights)
                return Candidate(claim.P, alpha, (claim.L, claim.M), limit, len(self.samples))
            high = limit
        return None

    def holds(self, weights: np.ndarray, alpha: float) -> bool:
        """Whether a rate holds on a fine grid; adds errors where it fails to the samples."""
        matrices = np.tensordot(self._fine, weights, (1, 0))
        matrices -= alpha * np.tensordot(weights, self.forms, 1)
        least = np.linalg.eigvalsh(matrices)[:, 0]
        worst = np.argsort(least)[: 4 * (1 + len(self.reduction.parameters))]
        failing = [k for k in worst if least[k] <= 0.0]
        self.samples += [self._fine[k] for k in failing]
        return not failing

    @cached_property
    def _fine(self) -> np.ndarray:
        return np.array([self._at(x) for x in self._errors(_FINE)])

    def _limit(self, high: float) -> float | None:
        """Fastest rate that is feasible on the samples, by bisection."""
        cp = self.cp
        weights, rate, margin = cp.Variable(len(self.forms)), cp.Parameter(), cp.Variable()
        form = self.combined(weights, self.forms)
        size = len(self.scales)
        problem = cp.Problem(
            cp.Maximize(margin),
            [cp.trace(form) == size, form >> 1e-5 * np.eye(size), margin <= 1.0]
            + [
                self.combined(weights, sample) - rate * form >> margin * np.eye(size)
                for sample in self.samples
            ],
        )
        low, found = 0.0, None
        while high - low > _TOLERANCE * self.true_rate:
            rate.value = (low + high) / 2
            if solved(problem, cp) and margin.value > _MARGIN * max(1.0, self.true_rate):
                low = found = rate.value
            else:
                high = rate.value
        return None if found is None else float(found)

    def _best(self, rate: float) -> np.ndarray | None:
        """Weights for the P of least condition."""
        cp = self.cp
        weights, condition = cp.Variable(len(self.forms)), cp.Variable()
        form = self.combined(weights, self.forms)
        unit = self.scaled(np.diag(np.tile(metric(self.family.channel), 2)))
        problem = cp.Problem(
            cp.Minimize(condition + _SMALLNESS * cp.norm(cp.multiply(self.sizes(), weights))),
            [form >> unit, condition * unit >> form, *self.falling(weights, rate)],
        )
        return np.array(weights.value) if solved(problem, cp) else None

    def falling(self, weights: Any, rate: float) -> list[Any]:
        """Inequalities of a rate at the samples."""
        form = self.combined(weights, self.forms)
        return [self.combined(weights, sample) - rate * form >> 0 for sample in self.samples]

    def sizes(self) -> np.ndarray:
        """Size of each member in the inequalities, relative to the rate.

        Large multipliers have no cost in the samples, but make proofs long.
        """
        sizes = np.linalg.norm(np.array(self.samples), axis=(2, 3)).max(0)
        return np.asarray(sizes / self.true_rate)

    def combined(self, weights: Any, matrices: np.ndarray) -> Any:
        """Sum of matrices (members, 2 n, 2 n) by weight, as a cvxpy expression."""
        size = len(self.scales)
        flat = matrices.reshape(len(matrices), -1).T
        return self.cp.reshape(flat @ weights, (size, size), order="C")

    def _at(self, x: np.ndarray) -> np.ndarray:
        return self.scaled(self.family.matrices(x))

    def scaled(self, matrix: np.ndarray) -> np.ndarray:
        """Matrix in coordinates in which the domain has size one."""
        return np.asarray(matrix * np.outer(self.scales, self.scales))

    def _errors(self, counts: dict[int, int]) -> list[np.ndarray]:
        reduction = self.reduction
        k = len(reduction.lower)
        # Every corner of the positions repeats the samples.
        number = counts[k] if len(reduction.offsets) == 1 or k < 3 else counts[k] // 2 | 1
        axes = [
            np.linspace(a, b, number) for a, b in zip(reduction.lower, reduction.upper, strict=True)
        ]
        points = []
        for p in map(np.array, product(*axes)):
            length = np.linalg.norm(p)
            # Project errors beyond the ball onto its surface, where rates are worst.
            if length > reduction.radius:
                p = p * (reduction.radius / length)
            points += [offset + reduction.matrix @ p for offset in reduction.offsets]
        points = [x for x in points if self.family.mirrors.stands(x)]
        return list(np.unique(np.array(points), axis=0))


def solved(problem: Any, cp: ModuleType) -> bool:
    """Solve a convex problem; return whether there is a solution, accurate or not."""
    with warnings.catch_warnings():
        # An inaccurate solution is acceptable: the proof decides.
        warnings.simplefilter("ignore")
        try:
            problem.solve(solver=cp.CLARABEL)
        except cp.error.SolverError:
            return False
    return problem.status in ("optimal", "optimal_inaccurate")


def _scales(channel: Channel, angle: float, distance: float | None) -> np.ndarray:
    """Magnitudes of x and ve on the domain."""
    reach = distance if distance else angle * channel.length
    x = np.array([reach if unit == "m" else angle for unit in channel.units])
    pull = np.linalg.solve(channel.inertia, channel.stiffness)
    quick = np.sqrt(np.abs(np.diag(pull)))
    return np.concatenate([x, x * np.maximum(quick, channel.true_rate)])


def metric(channel: Channel) -> np.ndarray:
    """Weights of the squared components of x: 1 / length^2 for metres, else 1."""
    return np.array([channel.length**-2 if unit == "m" else 1.0 for unit in channel.units])


def load_cvxpy() -> ModuleType:
    """Import cvxpy, or explain how to install it."""
    if find_spec("cvxpy") is None or find_spec("clarabel") is None:
        raise ConcurError(
            "certificates",
            expected="cvxpy with the solver Clarabel for matrix inequalities",
            came="an environment without them",
            cure=f"Install the extra: {install_command('certify')}.",
        )
    return import_module("cvxpy")
