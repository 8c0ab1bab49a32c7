"""Branch and bound: proves or refutes a rate of decay on a whole domain, in ball arithmetic.

The domain that `_reduction` leaves is divided into boxes of parameters p = m + d, |d_i| <= h_i.
Over a box, B is its value and slopes at m, and a remainder of at most
sum_ij h_i h_j |d2B / dp_i dp_j| / 2, with second derivatives enclosed over the box (Taylor's
theorem). A is affine in B and, without the remainder, in d, so the corners of the box suffice; the
remainder is a radius. A floating-point congruence brings A at each corner near the identity. If all
its Gershgorin discs then lie above zero, A > 0 in the box. Where the map switches between a series
and a closed form, each formula is proved separately.

The enclosed function is the error map that runs on the robot. It differs from the exact B by
rounded coefficients and truncation of a series; the balls are widened by more than that (`BAND`),
so the proof also holds for the exact B.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from math import inf, isfinite
from typing import Any

import numpy as np

from concur.certify._affine_form import (
    AffineForm,
    Box,
    CornerMap,
    Counterexample,
    exact_balls,
    quadratic,
)
from concur.certify._arrays import above
from concur.certify._bounds import definite, rational
from concur.certify._channels import Channel
from concur.certify._inequality import (
    Claim,
    isotropic_multipliers,
)
from concur.certify._intervals import PRECISION, flint
from concur.certify._reduction import Reduction, affine_in_positions, reduce_domain
from concur.certify._status import Status
from concur.errors import OutputError, ShapeError

_GRID = {1: 33, 2: 9, 3: 5}
"""Points along each parameter of the search for a counterexample before the proof."""

_SMALLEST = 1e-9
"""Boxes narrower than this, in rad, are not divided: the claim is too close to being false."""


@dataclass(frozen=True, eq=False)
class Proof:
    """Verdict on a claim, with all data that a proof checker needs.

    Parameters
    ----------
    status : Status
        PROVED: A > 0 at every parameter of every box and every corner of the positions, and
        P > 0. REFUTED: the inequality fails at `counterexample`. UNDECIDED otherwise.
    reason : str
        Explanation of the status.
    reduction : str
        Name in `_reduction` of the argument that extends the boxes to the whole domain:
        "linear", "one axis, one plane", "two octants" or "all"; else "none".
    claim : Claim
        P, alpha and the multipliers L and M of `_inequality`.
    angle, distance : float, float or None
        The domain: bounds of every |phi|, rad, and |rho|, m.
    groups : tuple of str
        Class names of the group's factors, and their dimensions.
    stiffness, damping, inertia : numpy.ndarray
        KP, KD and I, shape (n, n).
    parameters : tuple of str
        Names of the k parameters.
    lower, upper : numpy.ndarray
        Ends of the box of parameters to cover, shape (k,), rad.
    radius : float
        Only parameters with |p| up to it need covering; infinite when all do.
    matrix, offsets : numpy.ndarray
        Errors x = offset + matrix @ p for every row of `offsets`; shapes (n, k)
        and (c, n).
    boxes : numpy.ndarray
        Lower and upper ends of the proved boxes, shape (b, 2, k), made by repeated halving of
        the whole box; missing ones lie beyond `radius`.
    undecided_boxes : numpy.ndarray
        Undecided boxes, shape (l, 2, k).
    tested : int
        Number of boxes evaluated.
    counterexample : Counterexample or None
        Given when the status is REFUTED.
    """

    status: Status
    reason: str
    reduction: str
    claim: Claim
    angle: float
    distance: float | None
    groups: tuple[tuple[str, int], ...]
    stiffness: np.ndarray
    damping: np.ndarray
    inertia: np.ndarray
    parameters: tuple[str, ...] = ()
    lower: np.ndarray = field(default_factory=lambda: np.zeros(0))
    upper: np.ndarray = field(default_factory=lambda: np.zeros(0))
    radius: float = inf
    matrix: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    offsets: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    boxes: np.ndarray = field(default_factory=lambda: np.zeros((0, 2, 0)))
    undecided_boxes: np.ndarray = field(default_factory=lambda: np.zeros((0, 2, 0)))
    tested: int = 0
    counterexample: Counterexample | None = None


def prove(
    channel: Channel,
    P: np.ndarray,
    alpha: float,
    angle: float,
    distance: float | None = None,
    budget: int = 20000,
    progress: Callable[[float], Any] | bool = False,
    multipliers: tuple[np.ndarray, np.ndarray] | None = None,
) -> Proof:
    """Prove or refute that V = z^T P z / 2 decays at a rate on a domain.

    Parameters
    ----------
    channel : Channel
        Outputs of one channel.
    P : numpy.ndarray
        Symmetric matrix, shape (2 n, 2 n), in the channel's units.
    alpha : float
        Claimed decay rate of sqrt(V), 1/s.
    angle : float
        Bound of every rotation error on which B depends, above 0 and at most pi, rad.
    distance : float, optional
        Bound of every position error on which B depends, m; needed when there is one.
    budget : int, default 20000
        Largest number of boxes evaluated.
    progress : callable or bool, default False
        Called with the fraction of the domain that is done. True shows no bar, like False: the
        caller shows one for all channels.
    multipliers : tuple of numpy.ndarray, optional
        L and M of the inequality, each (2 n, n). Default: those that make isotropic channels
        tight, and zeros for the others.

    Returns
    -------
    Proof
        The verdict with its boxes or counterexample.

    Raises
    ------
    ShapeError
        If P or a multiplier has the wrong shape, or P is not symmetric.
    OutputError
        If the domain or the rate is not finite or out of range.
    """
    claim = _claim(channel, P, alpha, multipliers)
    facts: dict[str, Any] = {
        "claim": claim,
        "angle": float(angle),
        "distance": None if distance is None else float(distance),
        "groups": tuple((type(f).__name__, f.dim) for f in channel.factors),
        "stiffness": channel.stiffness,
        "damping": channel.damping,
        "inertia": channel.inertia,
    }
    reduction = reduce_domain(channel, claim, angle, distance)
    if reduction is None or not affine_in_positions(channel):
        reason = (
            "No symmetry argument reduces this group to at most three parameters. "
            "Remove the gains that couple its outputs."
        )
        return Proof(Status.UNDECIDED, reason, "none", **facts)
    facts |= {
        name: getattr(reduction, name)
        for name in ("parameters", "lower", "upper", "radius", "matrix", "offsets")
    }
    if len(reduction.images) > 1:
        # The stored boxes include their mirror images, so the ends cover all errors.
        facts["lower"] = -reduction.upper
    with flint().ctx.workprec(PRECISION):
        search = _Search(channel, claim, reduction, budget, progress)
        status, reason = search.run()
    return Proof(
        status,
        reason,
        reduction.name,
        **facts,
        boxes=_stacked(search.proved, reduction),
        undecided_boxes=_stacked(search.waiting, reduction),
        tested=search.tested,
        counterexample=search.counterexample,
    )


def _claim(
    channel: Channel,
    P: np.ndarray,
    alpha: float,
    multipliers: tuple[np.ndarray, np.ndarray] | None,
) -> Claim:
    n = channel.size
    P = np.array(P, dtype=float)
    if P.shape != (2 * n, 2 * n) or not np.array_equal(P, P.T):
        raise ShapeError(
            f"P of {channel.name}",
            expected=f"a symmetric matrix of shape ({2 * n}, {2 * n})",
            came=f"shape {P.shape}" + (", not symmetric" if P.shape == (2 * n, 2 * n) else ""),
            cure="Give (P + P.T) / 2.",
        )
    if multipliers is None and np.isfinite(P).all():
        multipliers = isotropic_multipliers(channel, P)
    L, M = np.zeros((2, 2 * n, n)) if multipliers is None else multipliers
    L, M = np.array(L, dtype=float), np.array(M, dtype=float)
    if L.shape != (2 * n, n) or M.shape != (2 * n, n):
        raise ShapeError(
            f"multipliers of {channel.name}",
            expected=f"two matrices of shape ({2 * n}, {n})",
            came=f"shapes {L.shape} and {M.shape}",
            cure="Omit them to use the defaults.",
        )
    numbers = [P, L, M, np.array(alpha, dtype=float)]
    if not all(np.isfinite(a).all() for a in numbers):
        raise OutputError(
            f"claim on {channel.name}",
            expected="finite numbers in P, alpha, L and M",
            came="a NaN or an infinity",
            cure="Check the search that computed them.",
        )
    return Claim(P, float(alpha), L, M)


class _Search:
    """State of one branch and bound."""

    def __init__(
        self,
        channel: Channel,
        claim: Claim,
        reduction: Reduction,
        budget: int,
        progress: Callable[[float], Any] | bool,
    ) -> None:
        self.channel, self.claim, self.reduction = channel, claim, reduction
        self.budget = budget
        self.report = progress if callable(progress) else lambda fraction: None
        self.form = AffineForm(channel, claim)
        self.maps = [CornerMap(channel, reduction, offset) for offset in reduction.offsets]
        self.proved: list[Box] = []
        self.waiting: list[Box] = []
        self.tested = 0
        self.counterexample: Counterexample | None = None

    def run(self) -> tuple[Status, str]:
        if not self.form.known:
            return Status.UNDECIDED, "The inertia I could not be inverted in ball arithmetic."
        if not definite(rational(self.claim.P)):
            self.counterexample = self._not_definite()
            if self.counterexample is not None:
                return Status.REFUTED, "P is not positive definite."
            return Status.UNDECIDED, "P is too close to being singular."
        whole = tuple(zip(self.reduction.lower, self.reduction.upper, strict=True))
        first = None
        for p in self._grid():
            if self._refuted(p):
                first = first or self.counterexample
                if self.counterexample is not None and self.counterexample.motion:
                    break
        if first is not None:
            # A state of a motion is a stronger counterexample.
            if self.counterexample is None or not self.counterexample.motion:
                self.counterexample = first
            return Status.REFUTED, "The matrix inequality fails at a point of the domain."
        self.waiting.append(whole)
        volume, done = _volume(whole), 0.0
        while self.waiting:
            if self.tested >= self.budget:
                return Status.UNDECIDED, f"The budget of {self.budget} boxes is used up."
            box = self.waiting.pop()
            middle = [(a + b) / 2 for a, b in box]
            if self._outside(box):
                done += _volume(box)
                continue
            self.tested += 1
            if self._positive(box):
                self.proved.append(box)
                done += _volume(box)
                self.report(min(done / volume, 1.0))
                continue
            if self._refuted(np.array(middle)):
                return Status.REFUTED, "The matrix inequality fails at a point of the domain."
            longest = max(range(len(box)), key=lambda i: box[i][1] - box[i][0], default=None)
            if longest is None or box[longest][1] - box[longest][0] < _SMALLEST:
                self.waiting.append(box)
                return Status.UNDECIDED, "The inequality is too close to failing to be decided."
            a, b = box[longest]
            self.waiting += [
                (*box[:longest], half, *box[longest + 1 :])
                for half in ((middle[longest], b), (a, middle[longest]))
            ]
        return Status.PROVED, f"The matrix inequality holds in all of {len(self.proved)} boxes."

    def _positive(self, box: Box) -> bool:
        for k, corner in enumerate(self.maps):
            if not corner.positive(self.form, box):
                # Test a failing corner first: it is likely to fail in the next box too.
                self.maps.insert(0, self.maps.pop(k))
                return False
        return True

    def _outside(self, box: Box) -> bool:
        """Whether a box is entirely beyond the radius, outside the claim."""
        if not isfinite(self.reduction.radius):
            return False
        nearest = [min(max(a, 0.0), b) for a, b in box]
        arb = flint().arb
        length = sum((arb(float(x)) ** 2 for x in nearest), arb(0))
        return bool(length > arb(self.reduction.radius) ** 2)

    def _grid(self) -> list[np.ndarray]:
        k = len(self.reduction.lower)
        axes = [
            np.linspace(a, b, _GRID[k])
            for a, b in zip(self.reduction.lower, self.reduction.upper, strict=True)
        ]
        return [np.array(p) for p in product(*axes)]

    def _refuted(self, p: np.ndarray) -> bool:
        radius = self.reduction.radius
        if isfinite(radius) and sum(Fraction(v) ** 2 for v in p.tolist()) > Fraction(radius) ** 2:
            return False
        for offset in self.reduction.witnesses:
            x = offset + self.reduction.matrix @ p
            self.counterexample = self.form.counterexample(x)
            if self.counterexample is not None:
                return True
        return False

    def _not_definite(self) -> Counterexample | None:
        _, vectors = np.linalg.eigh(self.claim.P)
        direction = vectors[:, 0]
        value = quadratic(exact_balls(self.claim.P), direction)
        if value <= 0:
            zero = np.zeros(self.channel.size)
            bound = above(value)
            return Counterexample(zero, direction, bound, positive=False, motion=False)
        return None


def stored_boxes(proof: Proof) -> np.ndarray:
    """Boxes of a proof as stored in files, (b, k, 2); empty for abelian groups."""
    linear = proof.reduction == "linear"
    return np.zeros((0, 0, 2)) if linear else proof.boxes.swapaxes(1, 2)


def _volume(box: Box) -> float:
    return float(np.prod([b - a for a, b in box]))


def _stacked(boxes: list[Box], reduction: Reduction) -> np.ndarray:
    """Boxes with their mirror images, shape (b, 2, k)."""
    k = len(reduction.lower)
    ends = np.array(boxes, dtype=float).reshape(len(boxes), k, 2).swapaxes(1, 2)
    if len(reduction.images) == 1:
        return ends
    mirrored = [np.sort(ends * signs, axis=1) for signs in reduction.images]
    return np.concatenate(mirrored)
