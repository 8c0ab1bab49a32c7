"""Search for a quadratic form and the fastest rate it can prove: linear matrix inequalities.

Nothing found here is a claim. P, the rate and the multipliers are floats that a convex solver
likes on sampled errors; `prove` decides. The form has the symmetry of the gains where that lets
`_reduction` do with fewer parameters: an average over the symmetry would do as well.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
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

_LARGEST = 300_000
"""Inequalities times members times components squared, beyond which a search takes hours."""

_WIDE = 1.7
"""Angle beyond which several parameters need more room for a proof, rad."""

_TOLERANCE = 2e-3
"""Width of the last interval of rates, relative to the true rate."""

_STEPS = (1.0, 0.98, 0.95, 0.9)
"""Parts of a rate tried until the solver finds a form."""

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
    share: float = 1.0,
) -> Candidate | None:
    """Search for a form that falls fast on a domain.

    Among the forms that fall at the rate it is the one of least condition, and so of least
    overshoot.

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
        of, else 0.1, 0.2 for large angles, and 0.3 for poses.
    share : float, default 1
        Part of the rate that is asked for, above 0 and at most 1: less of it leaves room for a
        smaller overshoot.

    Returns
    -------
    Candidate or None
        None when no rate above zero was found, when no reduction of the domain is known, and when
        the inequalities would be too large: poses with gains that are not diagonal.

    Raises
    ------
    ConcurError
        If the solver is not installed.
    OutputError
        If the domain, the back-off or the share is out of its range.
    """
    cvxpy = load_cvxpy()
    if backoff is not None and not 0.0 <= backoff < 1.0:
        raise OutputError(
            f"search for {channel.name}, `backoff`",
            expected="a part from 0 to below 1",
            came=f"{backoff:.6g}",
            cure="Leave it out.",
        )
    if not 0.0 < share <= 1.0:
        raise OutputError(
            f"search for {channel.name}, `share`",
            expected="a part above 0 and at most 1",
            came=f"{share:.6g}",
            cure="Leave it out for the fastest rate.",
        )
    if not channel.true_rate > 0.0:
        return None
    if channel.kind in ("linear", "SO3 isotropic"):
        own = 0.005 if backoff is None else backoff
        return _of_the_linearisation(cvxpy, channel, own, share)
    problem = sampled_problem(channel, angle, distance)
    if problem is None:
        return None
    if backoff is None and channel.kind == "SE3":
        backoff = 0.3
    elif backoff is None:
        backoff = 0.015 if not problem.several else 0.1 if angle < _WIDE else 0.2
    return problem.solve(backoff, share)


def sampled_problem(channel: Channel, angle: float, distance: float | None) -> Problem | None:
    """Return the inequalities at sampled errors of a domain.

    Parameters
    ----------
    channel : Channel
        Outputs on whose errors B depends.
    angle : float
        Bound of every rotation error on which B depends, rad.
    distance : float or None
        Bound of every position error on which B depends, m.

    Returns
    -------
    Problem or None
        None when no reduction of the domain is known, or when it would be too large.
    """
    family = Family(channel)
    reduction = reduce_domain(channel, family.typical, angle, distance)
    if reduction is None:
        return None
    problem = Problem(load_cvxpy(), family, reduction, _scales(channel, angle, distance))
    if problem.count * len(family.members) * channel.size**2 > _LARGEST:
        return None
    return problem


@dataclass(frozen=True, eq=False)
class Linearisation:
    """Error dynamics at small errors: zdot = F z; isotropic rotations are three copies of it.

    What holds of it holds of rotations with isotropic gains at every angle: with the multipliers
    for isotropic channels A depends on x through c (1 - sym(B)) >= 0 alone, c = -P12 >= 0.

    Parameters
    ----------
    F : numpy.ndarray
        Shape (2 n, 2 n).
    scales : numpy.ndarray
        Sizes of the components of z beside one another, shape (2 n,).
    metric : numpy.ndarray
        Weights of squares of x, shape (n,).
    copies : int
        Copies that make up the channel.
    """

    F: np.ndarray
    scales: np.ndarray
    metric: np.ndarray
    copies: int

    @classmethod
    def of(cls, channel: Channel) -> Linearisation:
        """Linearise a channel of the kinds "linear" and "SO3 isotropic".

        Parameters
        ----------
        channel : Channel
            The outputs.

        Returns
        -------
        Linearisation
            Of one component of three when it is isotropic.
        """
        n, copies = channel.size, 1
        gains = [channel.stiffness, channel.damping, channel.inertia]
        if channel.kind == "SO3 isotropic":
            n, copies = 1, 3
            gains = [gain[:1, :1] for gain in gains]
        pull = np.linalg.solve(gains[2], np.hstack([gains[0], -gains[1]]))
        F = np.vstack([np.hstack([np.zeros((n, n)), -np.eye(n)]), pull])
        quick = np.sqrt(np.abs(np.diag(pull)))
        return cls(F, np.concatenate([np.ones(n), quick]), metric(channel)[:n], copies)

    def whole(self, P: np.ndarray) -> np.ndarray:
        """Matrix of all copies.

        Parameters
        ----------
        P : numpy.ndarray
            Matrix of one, shape (2 n, 2 n).

        Returns
        -------
        numpy.ndarray
            Symmetric, of the channel's components.
        """
        return np.kron((P + P.T) / 2, np.eye(self.copies))


def _of_the_linearisation(
    cp: ModuleType, channel: Channel, backoff: float, share: float
) -> Candidate:
    """Form that proves nearly the true rate: B = 1, or B that only helps (SO(3), isotropic)."""
    linear = Linearisation.of(channel)
    # Half of the back-off is room for the proof.
    room = backoff / 2 * channel.true_rate
    alpha = (1.0 - backoff) * share * channel.true_rate
    shifted = linear.F + (alpha + room) * np.eye(len(linear.F))
    P = _least_overshoot(cp, shifted, room, linear.scales, linear.metric)
    if P is None:
        # Next to critical damping the solver gives up; this form is worse, but it is there.
        n = len(linear.metric)
        weight = np.diag(np.concatenate([linear.scales[n:] ** 2, np.ones(n)]))
        P = solve_continuous_lyapunov(shifted.T, -weight)
        P = P / np.abs(P).max()
    P = linear.whole(P)
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
    if not solved(problem, cp):
        return None
    found = P.value / np.outer(scales, scales)
    found = (found + found.T) / 2
    return found if falls(found, F - room * np.eye(len(F))) else None


@dataclass(frozen=True, eq=False)
class Mirrors:
    """Reflections that take the inequality of a rotation or a pose to a congruent one.

    A reflection Q takes rho to Q rho and phi to det(Q) Q phi. When the gains are unchanged by it,
    the mean of a form and its image falls as fast as both, so that the image may be asked to be
    the form itself: entries of P, L and M that would change their sign are zero.

    Parameters
    ----------
    pattern : numpy.ndarray
        One where gains, and blocks of P, L and M, may have entries, shape (n, n).
    inversion : bool
        Whether (-rho, phi) is as good as (rho, phi).
    axes : bool
        Whether the signs of two components of phi at a time do not matter.
    """

    pattern: np.ndarray
    inversion: bool
    axes: bool

    @classmethod
    def of(cls, channel: Channel) -> Mirrors:
        """Look for reflections along the coordinates.

        Parameters
        ----------
        channel : Channel
            The outputs.

        Returns
        -------
        Mirrors
            None of them for other kinds than "SO3" and "SE3".
        """
        n = channel.size
        gains = (channel.stiffness, channel.damping, channel.inertia)
        alone = np.kron(np.eye(n // 3), np.ones((3, 3))) if n % 3 == 0 else np.ones((n, n))
        for pattern, axes in ((np.eye(n), True), (alone, False)):
            fits = all(np.array_equal(gain, gain * pattern) for gain in gains)
            if channel.kind in ("SO3", "SE3") and fits:
                return cls(pattern, channel.kind == "SE3", axes)
        return cls(np.ones((n, n)), False, False)

    def stands(self, x: np.ndarray) -> bool:
        """Whether a pose error is the one that its images are left out for.

        Parameters
        ----------
        x : numpy.ndarray
            Pose error, shape (n,).

        Returns
        -------
        bool
            With three components more often than needed on the faces between images.
        """
        phi = x[-3:]
        if self.axes and (phi[:2] < 0.0).any():
            return False
        return not self.inversion or bool(x[0] >= 0.0)


class Family:
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
        self.mirrors = Mirrors.of(channel)
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
        pattern = self.mirrors.pattern
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
        """Part of the back-off that the form itself may use; the rest is room for the proof.

        Boxes of poses are dear: their forms shall fall a good deal faster than claimed.
        """
        return 0.15 if self.family.channel.kind == "SE3" else 0.5

    @cached_property
    def samples(self) -> list[np.ndarray]:
        """A of every member at the sampled errors, each of shape (members, 2 n, 2 n)."""
        return [self._at(x) for x in self._first]

    @property
    def several(self) -> bool:
        """Whether more than one parameter is left to vary."""
        return len(self.reduction.parameters) > 1

    def solve(self, backoff: float, share: float) -> Candidate | None:
        """Look for the fastest rate, and at a share of it for the form of least condition.

        Parameters
        ----------
        backoff : float
            Part of the rate given up.
        share : float
            Part of the rate asked for.

        Returns
        -------
        Candidate or None
            None when there is none, or the solver found none.
        """
        high = self.true_rate
        for _ in range(_ROUNDS):
            limit = self._limit(high)
            if limit is None:
                return None
            for step in _STEPS:
                # Right at the limit the solver may give up.
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
        """Whether a rate holds on a fine grid; what fails there is added to the samples.

        Parameters
        ----------
        weights : numpy.ndarray
            Weights of the members.
        alpha : float
            The rate, 1/s.

        Returns
        -------
        bool
            Whether nothing was added.
        """
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
        """Weights for the form of least condition."""
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
        """Inequalities of a rate at the samples.

        Parameters
        ----------
        weights : cvxpy.Variable
            Weights of the members.
        rate : float
            The rate, 1/s.

        Returns
        -------
        list
            Constraints.
        """
        form = self.combined(weights, self.forms)
        return [self.combined(weights, sample) - rate * form >> 0 for sample in self.samples]

    def sizes(self) -> np.ndarray:
        """Size of each member in the inequalities.

        Large multipliers cost nothing in the samples, but make proofs long.

        Returns
        -------
        numpy.ndarray
            Beside one for the rate itself.
        """
        sizes = np.linalg.norm(np.array(self.samples), axis=(2, 3)).max(0)
        return np.asarray(sizes / self.true_rate)

    def combined(self, weights: Any, matrices: np.ndarray) -> Any:
        """Sum of matrices by weight, as an expression of the solver.

        Parameters
        ----------
        weights : cvxpy.Variable
            Weights of the members.
        matrices : numpy.ndarray
            One for each member, shape (members, 2 n, 2 n).

        Returns
        -------
        cvxpy.Expression
            Shape (2 n, 2 n).
        """
        size = len(self.scales)
        flat = matrices.reshape(len(matrices), -1).T
        return self.cp.reshape(flat @ weights, (size, size), order="C")

    def _at(self, x: np.ndarray) -> np.ndarray:
        return np.array([self.scaled(A) for A in self.family.matrices(x)])

    def scaled(self, matrix: np.ndarray) -> np.ndarray:
        """Matrix in coordinates in which the domain has size one.

        Parameters
        ----------
        matrix : numpy.ndarray
            In the channel's units, shape (2 n, 2 n).

        Returns
        -------
        numpy.ndarray
            The same shape.
        """
        return np.asarray(matrix * np.outer(self.scales, self.scales))

    def _errors(self, counts: dict[int, int]) -> list[np.ndarray]:
        reduction = self.reduction
        k = len(reduction.lower)
        # Corners of positions multiply the samples.
        number = counts[k] if len(reduction.offsets) == 1 or k < 3 else counts[k] // 2 | 1
        axes = [
            np.linspace(a, b, number) for a, b in zip(reduction.lower, reduction.upper, strict=True)
        ]
        points = []
        for p in map(np.array, product(*axes)):
            length = np.linalg.norm(p)
            # What is beyond the ball is brought back to its surface, where rates are worst.
            if length > reduction.radius:
                p = p * (reduction.radius / length)
            points += [offset + reduction.matrix @ p for offset in reduction.offsets]
        points = [x for x in points if self.family.mirrors.stands(x)]
        return list(np.unique(np.array(points), axis=0))


def solved(problem: Any, cp: ModuleType) -> bool:
    """Solve a convex problem.

    Parameters
    ----------
    problem : cvxpy.Problem
        The problem.
    cp : module
        cvxpy.

    Returns
    -------
    bool
        Whether there is a solution, accurate or not.
    """
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


def falls(P: np.ndarray, F: np.ndarray) -> bool:
    """Whether P > 0 and P F + F^T P < 0, in floats and independent of units.

    Parameters
    ----------
    P, F : numpy.ndarray
        Matrices of the same shape.

    Returns
    -------
    bool
        No proof.
    """
    try:
        root = np.linalg.cholesky(P)
    except np.linalg.LinAlgError:
        return False
    turned = np.linalg.solve(root, (P @ F + F.T @ P) @ np.linalg.inv(root).T)
    return bool(np.linalg.eigvalsh((turned + turned.T) / 2)[-1] < 0.0)


def metric(channel: Channel) -> np.ndarray:
    """Return the weights of squares in which lengths of x are counted.

    Parameters
    ----------
    channel : Channel
        The outputs.

    Returns
    -------
    numpy.ndarray
        One over the square of the channel's length for metres, one for radians, shape (n,).
    """
    return np.array([channel.length**-2 if unit == "m" else 1.0 for unit in channel.units])


def _pairs(size: int) -> list[tuple[int, int]]:
    return [(i, j) for i in range(size) for j in range(i, size)]


def _symmetric(i: int, j: int, size: int) -> np.ndarray:
    matrix = np.zeros((size, size))
    matrix[i, j] = matrix[j, i] = 1.0
    return matrix


def load_cvxpy() -> ModuleType:
    """Import the solver.

    Returns
    -------
    module
        cvxpy.

    Raises
    ------
    ConcurError
        If it is not installed.
    """
    if find_spec("cvxpy") is None or find_spec("clarabel") is None:
        raise ConcurError(
            "certificates",
            expected="cvxpy with the solver Clarabel, which solve matrix inequalities",
            came="an environment without them",
            cure='Install the extra: pip install "concur[certify]".',
        )
    return import_module("cvxpy")
