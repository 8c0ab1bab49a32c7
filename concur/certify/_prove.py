"""Branch and bound: proves or refutes a rate of decay on a whole domain, in ball arithmetic.

The domain that `_reduction` leaves is cut into boxes of parameters p = m + d, |d_i| <= h_i. In a
box B is its value and slopes at m, and a remainder below sum_ij h_i h_j |d2B / dp_i dp_j| / 2 with
second derivatives enclosed over the box (Taylor's theorem, entry by entry). A is affine in B:
without the remainder it is affine in d, so that corners of the box suffice; the remainder is a
radius. At each corner A is brought near the identity by a congruence (floats, any will do) and then
all Gershgorin discs must lie above zero. This proves A > 0 in the box. Where the map switches
between a series and a closed form, each formula is proved for itself.

What is enclosed is the error map that runs on the robot. It differs from the exact B by rounded
coefficients and a cut series; the balls are widened by more than that (`BAND`), so that the proof
holds of the exact B too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import product
from math import inf, isfinite
from typing import Any

import casadi as ca
import numpy as np

from concur.certify._bounds import definite, rational
from concur.certify._channels import Channel
from concur.certify._inequality import (
    Claim,
    inequality,
    isotropic_multipliers,
    turned_components,
)
from concur.certify._intervals import PRECISION, Ball, Walker, as_array, flint, interval
from concur.certify._reduction import Reduction, affine_in_positions, reduce_domain
from concur.certify._status import Status
from concur.errors import OutputError, ShapeError

BAND = 1e-12
"""The entries of B are known up to this, times one more than the largest position error in m.

The series of the deployed map has 20 terms below |phi| = 2, with coefficients rounded to about
1e-15 of them; what it lacks is below 1e-19. The closed form beyond is exact as a formula.
"""

_GRID = {1: 33, 2: 9, 3: 5}
"""Points along each parameter where a counterexample is looked for before anything is proved."""

_SMALLEST = 1e-9
"""Boxes narrower than this, in rad, are not divided: the claim is too close to being false."""


@dataclass(frozen=True, eq=False)
class Counterexample:
    """A place where the matrix inequality, or P > 0, fails.

    Parameters
    ----------
    x : numpy.ndarray
        Pose error in the domain, shape (n,).
    direction : numpy.ndarray
        Vector z with z^T A(x) z < 0, or z^T P z <= 0 when `positive` is False, shape (2 n,).
    value : float
        Upper bound of z^T A(x) z, or of z^T P z, by ball arithmetic; below zero or zero.
    positive : bool
        Whether P is not what fails.
    motion : bool
        Whether the direction's first half is x itself: then V falls more slowly than claimed in
        the state (x, ve) = direction. Otherwise it is this proof that cannot be; another P, or
        other multipliers, might do.
    """

    x: np.ndarray
    direction: np.ndarray
    value: float
    positive: bool
    motion: bool


@dataclass(frozen=True, eq=False)
class Proof:
    """Verdict on a claim, with all that is needed to check it again.

    Parameters
    ----------
    status : Status
        PROVED: A > 0 at every parameter of every box and every corner of the positions, and
        P > 0. REFUTED: the inequality fails at `counterexample`. UNDECIDED otherwise.
    reason : str
        Why, in a sentence.
    reduction : str
        The argument by which the boxes stand for the whole domain, as `_reduction` names it:
        "linear", "one axis, one plane", "two octants" or "all"; "none" when there is none.
    claim : Claim
        P, alpha and the multipliers L and M of the inequality in `_inequality`.
    angle, distance : float, float or None
        The domain: bounds of every |phi|, rad, and |rho|, m.
    groups : tuple of str
        Class names of the group's factors, and their dimensions.
    stiffness, damping, inertia : numpy.ndarray
        KP, KD and I, shape (n, n).
    parameters : tuple of str
        Names of the k parameters.
    lower, upper : numpy.ndarray
        Box of the parameters that had to be covered, shape (k,), rad.
    radius : float
        Parameters with |p| above it did not have to be covered; infinite when all had to.
    matrix, offsets : numpy.ndarray
        The errors looked at: x = offset + matrix @ p for every row of `offsets`; shapes (n, k)
        and (c, n).
    boxes : numpy.ndarray
        Lower and upper ends of the boxes proved, shape (b, 2, k). They are halves of halves of
        the whole box; those missing lie beyond `radius`.
    left : numpy.ndarray
        Boxes neither proved nor refuted, shape (l, 2, k).
    tested : int
        Boxes looked at.
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
    left: np.ndarray = field(default_factory=lambda: np.zeros((0, 2, 0)))
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
    """Prove or refute that V = z^T P z / 2 falls at a rate on a domain.

    Parameters
    ----------
    channel : Channel
        Outputs that belong together.
    P : numpy.ndarray
        Symmetric matrix, shape (2 n, 2 n), in the channel's units.
    alpha : float
        Rate to be proved of sqrt(V), 1/s.
    angle : float
        Bound of every rotation error on which B depends, above 0 and at most pi, rad.
    distance : float, optional
        Bound of every position error on which B depends, m; needed when there is one.
    budget : int, default 20000
        Largest number of boxes to look at.
    progress : callable or bool, default False
        Called with the fraction of the domain that is done. True is as silent as False: a bar
        belongs to the one who knows how many channels there are.
    multipliers : tuple of numpy.ndarray, optional
        L and M of the inequality, each (2 n, n). Default: those that make isotropic channels
        tight, and zeros for the others.

    Returns
    -------
    Proof
        The verdict and what it rests on.

    Raises
    ------
    ShapeError
        If P or a multiplier has the wrong shape, or P is not symmetric.
    OutputError
        If the domain or the rate is not a finite number in its range.
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
            "No argument here reduces this group to at most three parameters; "
            "outputs without gains that couple them would."
        )
        return Proof(Status.UNDECIDED, reason, "none", **facts)
    facts |= {
        name: getattr(reduction, name)
        for name in ("parameters", "lower", "upper", "radius", "matrix", "offsets")
    }
    if len(reduction.images) > 1:
        # With the mirror images of the boxes the ends are those of all errors.
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
        left=_stacked(search.waiting, reduction),
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
            cure="Leave them out to use the usual ones.",
        )
    numbers = [P, L, M, np.array(alpha, dtype=float)]
    if not all(np.isfinite(a).all() for a in numbers):
        raise OutputError(
            f"claim on {channel.name}",
            expected="finite numbers in P, alpha, L and M",
            came="a NaN or an infinity",
            cure="Look at the search that gave them.",
        )
    return Claim(P, float(alpha), L, M)


Box = tuple[tuple[float, float], ...]


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
        self.form = _AffineForm(channel, claim)
        self.maps = [_CornerMap(channel, reduction, offset) for offset in reduction.offsets]
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
            # One that the motion itself shows says more.
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
                # What fails here is likely to fail in the next box, and should do so soon.
                self.maps.insert(0, self.maps.pop(k))
                return False
        return True

    def _outside(self, box: Box) -> bool:
        """Whether all of a box is beyond the radius: nothing is claimed there."""
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
        value = _quadratic(_balls(self.claim.P), direction)
        if value <= 0:
            zero = np.zeros(self.channel.size)
            bound = _upper(value)
            return Counterexample(zero, direction, bound, positive=False, motion=False)
        return None


class _AffineForm:
    """A = constant + sum over the entries of B of entry times coefficient."""

    def __init__(self, channel: Channel, claim: Claim) -> None:
        self.channel, self.claim = channel, claim
        n = channel.size
        balls = Claim(_balls(claim.P), claim.alpha, _balls(claim.L), _balls(claim.M))
        alpha = flint().arb(claim.alpha)
        gains = [_matrix(g) for g in (channel.stiffness, channel.inertia, channel.damping)]
        try:
            scale = gains[1].inv()
        except ZeroDivisionError:
            self.known = False
            return
        self.known = True
        numbers = (as_array(gains[0]), as_array(scale), as_array(scale * gains[2]))
        turned = turned_components(channel)

        def at(B: np.ndarray) -> np.ndarray:
            return inequality(numbers, turned, _balls(B), balls, alpha)

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
        A = self.at(_widened(as_array(walker([balls])[0]), varying, x))
        middle = _floats(A)
        if not np.isfinite(middle).all():
            return None
        exact = as_array(A)
        n = len(x)
        # With x itself as the first half, ve is chosen where the form is least, or far out where
        # it has no least value.
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
                # A is the same everywhere, so that the direction is a state, if it is small.
                direction = direction * 2.0**-3
                x = direction[:n]
            value = _quadratic(exact, direction)
            if value < 0:
                motion = np.array_equal(direction[:n], x)
                return Counterexample(x, direction, _upper(value), positive=True, motion=motion)
        return None


class _CornerMap:
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

    def positive(self, form: _AffineForm, box: Box) -> bool:
        """Whether A > 0 for all parameters of a box."""
        arb = flint().arb
        balls = [interval(a, b) for a, b in box]
        middle = [arb((a + b) / 2) for a, b in box]
        # The middle is a float, so it may lie a little off the centre.
        reach = [_reach(m, a, b) for m, (a, b) in zip(middle, box, strict=True)]
        for case in self.walker.cases([balls]):
            if case.mixed or not all(
                ball.is_finite() for result in case.results for ball in result.entries()
            ):
                return False
            remainder = self._remainder(as_array(case.results[2]), reach)
            for centre in self.walker.cases([middle], case.answers):
                B = _widened(as_array(centre.results[0]), self.varying, self.offset)
                slopes = as_array(centre.results[1]).reshape(self.n, self.n, self.k, order="F")
                if not self._case_positive(form, B, slopes, remainder, reach):
                    return False
        return True

    def _remainder(self, bends: np.ndarray, reach: list[Ball]) -> np.ndarray:
        """What each entry of B may differ from value and slopes at the middle."""
        n, k = self.n, self.k
        sizes = np.full((n, n), flint().arb(0), dtype=object)
        for place, bend in np.ndenumerate(bends.reshape(n, n, k, k, order="F")):
            if not bend.is_zero():
                _, _, i, j = place
                sizes[place[:2]] += reach[i] * reach[j] * bend.abs_upper() / 2
        return sizes

    def _case_positive(
        self,
        form: _AffineForm,
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
    """Inverse Cholesky factor as exact balls, or None: no proof needs it to be accurate."""
    try:
        factor = np.linalg.cholesky(A)
        T = np.linalg.inv(factor)
    except np.linalg.LinAlgError:
        return None
    return _matrix(T) if np.isfinite(T).all() else None


def _reach(middle: Ball, a: float, b: float) -> Ball:
    arb = flint().arb
    return arb((middle - arb(a)).max(arb(b) - middle).upper())


def _varying(B: ca.SX) -> np.ndarray:
    """Which entries of B are no constants; a constant is the same in the exact B."""
    rows, columns = B.shape
    return np.array([[not B[i, j].is_constant() for j in range(columns)] for i in range(rows)])


def _widened(B: np.ndarray, varying: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Entries of B widened by what the deployed map may differ from the exact one."""
    band = flint().arb(0, BAND * (1.0 + float(np.abs(x).max(initial=0.0))))
    wide = B.copy()
    wide[varying] = B[varying] + band
    return wide


def _matrix(values: np.ndarray) -> Any:
    return flint().arb_mat([[float(v) for v in row] for row in values])


def _balls(values: np.ndarray) -> np.ndarray:
    arb = flint().arb
    balls = np.empty(values.shape, dtype=object)
    for place, value in np.ndenumerate(values):
        balls[place] = arb(float(value))
    return balls


def _floats(A: Any) -> np.ndarray:
    middle = np.array([[float(entry) for entry in row] for row in A.tolist()])
    return np.asarray((middle + middle.T) / 2)


def _quadratic(A: np.ndarray, direction: np.ndarray) -> Ball:
    z = _balls(direction)
    return z @ (A @ z)


def _upper(value: Ball) -> float:
    """A float that is not below a ball."""
    return float(np.nextafter(float(value.upper()), inf))


def stored_boxes(proof: Proof) -> np.ndarray:
    """Boxes of a proof as files have them, (b, k, 2); none for abelian groups."""
    linear = proof.reduction == "linear"
    return np.zeros((0, 0, 2)) if linear else proof.boxes.swapaxes(1, 2)


def _volume(box: Box) -> float:
    return float(np.prod([b - a for a, b in box]))


def _stacked(boxes: list[Box], reduction: Reduction) -> np.ndarray:
    """Boxes with all those that they stand for, shape (b, 2, k)."""
    k = len(reduction.lower)
    ends = np.array(boxes, dtype=float).reshape(len(boxes), k, 2).swapaxes(1, 2)
    if len(reduction.images) == 1:
        return ends
    mirrored = [np.sort(ends * signs, axis=1) for signs in reduction.images]
    return np.concatenate(mirrored)
