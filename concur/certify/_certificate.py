"""Certificates: how fast the tracking error of a law surely decays, and from which starts.

The closed loop's error dynamics are split into channels; each is searched for a quadratic form
and proved, or taken through Theorem 5.4.2 with its own constants. What holds of every channel
holds of the loop: the slowest rate, and the sum of the forms as the norm that decays.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from os import PathLike
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from concur.certify._bounds import (
    Rational,
    float_above,
    float_below,
    largest_eigenvalue,
    rational,
    root_above,
    smallest_eigenvalue,
    solve,
)
from concur.certify._channels import Channel, split
from concur.certify._files import group_names, program_versions, write_document
from concur.certify._inequality import Claim, inequality, turned_components
from concur.certify._prove import Proof, prove, stored_boxes
from concur.certify._recheck_document import FORMAT, VERSION, document_hash, law_hash
from concur.certify._reduction import positions_and_rotations
from concur.certify._region import region_level
from concur.certify._search import search
from concur.certify._status import Status
from concur.certify._structure import Structure, check_structure, ldl_pivots
from concur.certify._thesis import ThesisConstants, thesis_constants
from concur.codegen import as_floats, nonfinite_error, shape_error
from concur.control import ErrorDynamics, Servo
from concur.errors import OutputError
from concur.mechanism import scalar

Method = Literal["tight", "thesis"]

_RATES = (1.0, 0.97, 0.9, 0.75, 0.5, 0.25)
"""Parts of the rate that the search gives, tried until one is proved."""

_CALM = 0.9
"""Part of the rate at which a form of smaller overshoot is proved besides."""

_LARGE_OVERSHOOT = 50.0
"""Overshoot of a channel beyond which that is done."""

_POSE_COST = 20
"""Boxes of rotations that take as long as one of poses without isotropic gains."""


@dataclass(frozen=True, eq=False)
class ChannelCertificate:
    """What is certified of one channel: outputs that influence one another and nothing else.

    Parameters
    ----------
    channel : Channel
        The outputs with their gains.
    status : Status
        Whether the decay is proved.
    reason : str
        What the status rests on.
    rate : float
        Rate of decay that is claimed, 1/s; zero when there is no claim.
    level : float
        Bound of V_L = (x KP x + ve I ve) / 2; infinite when any start will do.
    angle : float or None
        Bound of the rotation errors, rad; None without rotations.
    distance : float or None
        Bound of the position errors that rotations act on, m; None without them.
    P : numpy.ndarray or None
        Symmetric matrix of the form z^T P z that decays, z = (x, ve), shape (2 n, 2 n), in m,
        rad and s; None when there is none.
    weight, lower, upper : float
        Factor of the form in the norm of the whole loop, and numbers with
        lower D <= P <= upper D, D = diag(1 / length^2 for metres, 1 for radians).
    reduction : str
        The argument by which `boxes` stand for all errors.
    boxes : numpy.ndarray
        Boxes of rotation vectors on which the decay was proved, lower and upper ends, shape
        (b, k, 2), rad.
    tested : int
        Boxes looked at, in all attempts.
    multipliers : tuple of numpy.ndarray
        L and M of the matrix inequality, each of shape (2 n, n).
    constants : ThesisConstants or None
        Of the method "thesis".
    seconds : float
        Time that search and proof took.
    """

    channel: Channel
    status: Status
    reason: str
    rate: float
    level: float
    angle: float | None
    distance: float | None
    P: np.ndarray | None = None
    weight: float = 1.0
    lower: float = 0.0
    upper: float = math.inf
    reduction: str = "none"
    boxes: np.ndarray = field(default_factory=lambda: np.zeros((0, 0, 2)))
    tested: int = 0
    multipliers: tuple[np.ndarray, np.ndarray] | None = None
    constants: ThesisConstants | None = None
    seconds: float = 0.0

    @property
    def true_rate(self) -> float:
        """Rate at which small errors decay, 1/s."""
        return self.channel.true_rate

    @property
    def overshoot(self) -> float:
        """Factor c of |z(t)| <= c exp(-rate t) |z(0)|; NaN without a form of constant matrix."""
        if self.P is None:
            return math.nan
        return root_above(Fraction(self.upper) / Fraction(self.lower))

    def form(self, x: np.ndarray, ve: np.ndarray) -> float:
        """Form that decays, with its weight.

        Parameters
        ----------
        x, ve : numpy.ndarray
            Pose and velocity error of the channel, shape (n,).

        Returns
        -------
        float
            weight z^T P z; for constants of the thesis without a constant P twice their strict
            Lyapunov function; NaN when there is neither.
        """
        if self.P is not None:
            z = np.concatenate([x, ve])
            return float(self.weight * (z @ self.P @ z))
        return math.nan if self.constants is None else 2.0 * self.constants.strict(x, ve)

    def __str__(self) -> str:
        room = [] if self.angle is None else [f"angle {np.degrees(self.angle):.4g} deg"]
        room += [] if self.distance is None else [f"distance {self.distance:.4g} m"]
        where = ", ".join(room) if self.level < math.inf else "from any start"
        return (
            f"{self.channel.name}: {self.status.name}, rate {self.rate:.4g} 1/s of "
            f"{self.true_rate:.4g} 1/s, {where}. {self.reason}"
        )


@dataclass(frozen=True, eq=False)
class Certificate:
    """What is certified of a closed loop: an exponential rate, a norm and a region of starts.

    When the status is PROVED, ``norm(x(t), ve(t)) <= norm(x(0), ve(0)) exp(-rate t)`` for all
    t >= 0 along the error dynamics, from every start with ``contains(x(0), ve(0))``.

    Parameters
    ----------
    dynamics : ErrorDynamics
        The error dynamics that it is about.
    status : Status
        PROVED, REFUTED when the gains are not symmetric positive definite, or UNDECIDED.
    method : str
        "tight" or "thesis".
    angle, distance : float, float or None
        Bounds asked for, rad and m; an angle of pi where no output rotates and none was given.
    parts : tuple of ChannelCertificate
        One for each channel; empty when REFUTED.
    counterexample : Structure or None
        What was found against the gains, in exact numbers, when REFUTED.
    calmer : Certificate or None
        Another one of the same loop and region, with less overshoot at a lower rate; it is
        proved, and made where the overshoot is large.
    """

    dynamics: ErrorDynamics
    status: Status
    method: Method
    angle: float
    distance: float | None
    parts: tuple[ChannelCertificate, ...]
    counterexample: Structure | None = None
    calmer: Certificate | None = None

    @property
    def rate(self) -> float:
        """Rate of the slowest channel, 1/s: proved if the status says so, zero without a claim."""
        return min((part.rate for part in self.parts), default=0.0)

    @cached_property
    def true_rate(self) -> float:
        """Rate at which small errors decay, 1/s: no certificate can promise more."""
        return min(channel.true_rate for channel in split(self.dynamics))

    @property
    def overshoot(self) -> float:
        """Factor c of |z(t)| <= c exp(-rate t) |z(0)|; NaN without forms of constant matrix.

        |z| is the length of (x, ve) with metres divided by the channel's length.
        """
        if not self.parts or any(part.P is None for part in self.parts):
            return math.nan
        return root_above(_spread(self.parts))

    @property
    def bounds(self) -> tuple[tuple[float, float], ...]:
        """Pairs of a rate, 1/s, and its overshoot that hold together, the fastest first."""
        own = ((self.rate, self.overshoot),) if self.status is Status.PROVED else ()
        return own if self.calmer is None else own + self.calmer.bounds

    def bound(self, time: float) -> float:
        """Bound of the length |z| after a time, as part of what it was.

        Parameters
        ----------
        time : float
            Time since the start, not negative, s.

        Returns
        -------
        float
            The least of overshoot exp(-rate time) over all `bounds`; infinite when nothing is
            proved.
        """
        return min(
            (overshoot * math.exp(-rate * time) for rate, overshoot in self.bounds),
            default=math.inf,
        )

    @property
    def boxes(self) -> int:
        """Boxes of rotation vectors that the proof consists of."""
        return sum(len(part.boxes) for part in self.parts)

    def norm(self, x: ArrayLike, ve: ArrayLike) -> float:
        """Norm that decays at the rate.

        Parameters
        ----------
        x, ve : array_like
            Pose and velocity error, shape (size,).

        Returns
        -------
        float
            Square root of the sum of the channels' forms; NaN when a channel has none. At least
            |z| when every channel has a constant P.

        Raises
        ------
        ShapeError
            If an argument is no vector of the outputs' dimension.
        NonFiniteError
            If an argument has a NaN or an infinity.
        """
        pose, velocity = self._vector(x, "x"), self._vector(ve, "ve")
        if not self.parts:
            return math.nan
        total = sum(p.form(pose[p.channel.index], velocity[p.channel.index]) for p in self.parts)
        return float(np.sqrt(total))

    def contains(self, x: ArrayLike, ve: ArrayLike) -> bool:
        """Whether the guarantee covers a start.

        Parameters
        ----------
        x, ve : array_like
            Pose and velocity error, shape (size,).

        Returns
        -------
        bool
            Whether V_L is below its bound in every channel, decided exactly; False unless the
            status is PROVED.

        Raises
        ------
        ShapeError
            If an argument is no vector of the outputs' dimension.
        NonFiniteError
            If an argument has a NaN or an infinity.
        """
        pose, velocity = self._vector(x, "x"), self._vector(ve, "ve")
        return self.status is Status.PROVED and all(_below(p, pose, velocity) for p in self.parts)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the certificate with its proof, for `recheck` and for other checkers.

        Parameters
        ----------
        path : str or os.PathLike
            File to write, JSON; the format is described in `concur.certify._recheck_document`.

        Raises
        ------
        OutputError
            If an output's group is not one of the package's own.
        DescriptionError
            If the file cannot be written.
        """
        document = self._document()
        document["hash"] = document_hash(document)
        write_document(path, document)

    def _document(self) -> dict[str, Any]:
        gains = [self.dynamics.stiffness, self.dynamics.damping, self.dynamics.inertia]
        rows = [np.asarray(gain, dtype=float).tolist() for gain in gains]
        groups = group_names(self.dynamics.group)
        law = dict(zip(("stiffness", "damping", "inertia"), rows, strict=True))
        stated = self.status is Status.PROVED
        return {
            "format": FORMAT,
            "version": VERSION,
            "versions": program_versions(),
            "status": self.status.name,
            "method": self.method,
            "rate": self.rate if stated else None,
            "overshoot": self.overshoot if stated else None,
            "law": {"groups": groups, **law, "hash": law_hash(groups, *rows)},
            "channels": [_stored(part) for part in self.parts if part.P is not None],
            "counterexample": None,
        }

    def _vector(self, value: ArrayLike, name: str) -> np.ndarray:
        where = f"certificate, `{name}`"
        vector = as_floats(value, where)
        if vector.shape != (self.dynamics.size,):
            raise shape_error(where, (self.dynamics.size,), vector.shape)
        if not np.isfinite(vector).all():
            raise nonfinite_error(where, vector)
        return vector

    def __str__(self) -> str:
        lines = [f"{self.status.name}. {self.status.value}"]
        if self.counterexample is not None:
            return "\n".join([*lines, str(self.counterexample)])
        share = f", {self.rate / self.true_rate:.1%} of it" if self.true_rate > 0.0 else ""
        lines.append(
            f"Rate {self.rate:.4g} 1/s; small errors decay at {self.true_rate:.4g} 1/s{share}."
        )
        if not math.isnan(self.overshoot):
            lines.append(f"Overshoot at most {self.overshoot:.4g}; method `{self.method}`.")
        if self.calmer is not None:
            lines.append(
                f"At {self.calmer.rate:.4g} 1/s the overshoot is at most "
                f"{self.calmer.overshoot:.4g}."
            )
        return "\n".join([*lines, *(f"- {part}" for part in self.parts)])


def certify(
    law: Servo | ErrorDynamics,
    angle: float | None = None,
    distance: float | None = None,
    method: Method = "tight",
    progress: bool | Callable[[float], Any] = False,
    budget: int = 20_000,
    share: float = 1.0,
) -> Certificate:
    """Certify a rate at which the tracking error of a law decays.

    Parameters
    ----------
    law : Servo or ErrorDynamics
        The law, or its error dynamics.
    angle : float
        Rotation error that must stay in reach, above 0 and at most pi, rad. May be left out only
        for outputs without rotations, for which it has no meaning.
    distance : float, optional
        Position error that must stay in reach where rotations act on it, as for poses, m.
        Default: as far as V_L lets the position go where it lets the rotation reach `angle`.
    method : str
        "tight" searches for the fastest form that can be proved; "thesis" takes Theorem 5.4.2
        with its own constants.
    progress : bool or callable
        Show a progress bar, or call with the fraction done.
    budget : int
        Boxes that may be looked at for each channel. Those of poses whose gains depend on the
        direction count twenty times: they take that much longer.
    share : float
        Part of the fastest rate found that is asked for, above 0 and at most 1. The form of
        least overshoot is taken: near a critically damped loop's own rate it is large. With the
        default a `calmer` certificate is made besides where the overshoot of a channel is
        beyond 50. Has no meaning for the method "thesis".

    Returns
    -------
    Certificate
        REFUTED when a gain is not symmetric positive definite; else what was proved.

    Raises
    ------
    OutputError
        If the law is none, an option is out of its range, or no angle is given and an output
        rotates.
    ConcurError
        If the extra `certify` is not installed and the method is "tight".

    Examples
    --------
    >>> import concur as cc
    >>> from concur.certify._certificate import certify
    >>> model = cc.reduce(cc.robots.rover_arm())
    >>> base = cc.Output("base", "chassis", "R2", point=(0.25, 0, 0))
    >>> servo = cc.Servo(model, [base], stiffness=4, damping=4)
    >>> certify(servo, method="thesis").status.name
    'PROVED'
    """
    dynamics = _dynamics(law)
    angle, distance = _domain(dynamics, angle, distance)
    if not isinstance(method, str) or method not in ("tight", "thesis"):
        raise OutputError(
            "certificate, `method`",
            expected='"tight" or "thesis"',
            came=f"{method!r:.40}",
            cure="Leave it out for the tighter one.",
        )
    share = scalar(share, "certificate, `share`")
    if not 0.0 < share <= 1.0:
        raise OutputError(
            "certificate, `share`",
            expected="a part of the rate, above 0 and at most 1",
            came=f"{share:.6g}",
            cure="Leave it out for the fastest rate.",
        )
    if isinstance(budget, bool) or not isinstance(budget, (int, np.integer)) or budget < 1:
        raise OutputError(
            "certificate, `budget`",
            expected="a number of boxes, at least 1",
            came=f"{budget!r:.40}",
            cure="Leave it out.",
        )
    structure = check_structure(dynamics)
    if structure.status is Status.REFUTED:
        return Certificate(dynamics, Status.REFUTED, method, angle, distance, (), structure)
    parts = []
    channels = split(dynamics)
    with _reporting(progress) as report:
        most = 0.0
        for k, channel in enumerate(channels):

            def done(fraction: float, k: int = k) -> None:
                # A second attempt at a channel begins anew; the bar does not.
                nonlocal most
                most = max(most, (k + fraction) / len(channels))
                report(most)

            began = time.perf_counter()
            if method == "thesis":
                part = _by_theorem(channel, angle, distance)
            else:
                part = _by_search(channel, angle, distance, int(budget), done, share)
            parts.append(replace(part, seconds=time.perf_counter() - began))
            done(1.0)
    proved = all(part.status is Status.PROVED for part in parts)
    status = Status.PROVED if proved else Status.UNDECIDED
    found = Certificate(dynamics, status, method, angle, distance, tuple(parts))
    calm = method == "tight" and share == 1.0 and proved
    return replace(found, calmer=_calmer(found, int(budget))) if calm else found


def _calmer(found: Certificate, budget: int) -> Certificate | None:
    """Certificate with less overshoot, proved; None where that of every channel is small."""
    parts = []
    for part in found.parts:
        other = part
        # Where several parameters vary a second proof takes long: the user may ask for it.
        if part.overshoot > _LARGE_OVERSHOOT and part.boxes.shape[1] <= 1:
            given = (part.angle if part.angle is not None else found.angle, part.distance)
            again = _by_search(part.channel, *given, budget, lambda fraction: None, _CALM)
            if again.status is Status.PROVED and again.overshoot < part.overshoot:
                other = again
        parts.append(other)
    calmer = replace(found, parts=tuple(parts))
    return calmer if calmer.overshoot < found.overshoot else None


def _dynamics(law: object) -> ErrorDynamics:
    if isinstance(law, Servo):
        return law.error_dynamics
    if isinstance(law, ErrorDynamics):
        return law
    raise OutputError(
        "certificate, `law`",
        expected="a Servo or its error dynamics",
        came=type(law).__name__,
        cure="Certify the servo that drives the robot.",
    )


def _domain(
    dynamics: ErrorDynamics, angle: float | None, distance: float | None
) -> tuple[float, float | None]:
    if angle is None:
        if "rad" in dynamics.group.error_units:
            raise OutputError(
                "certificate, `angle`",
                expected="the rotation error that must stay in reach, rad, as an output rotates",
                came="no value",
                cure="State it, such as angle=1.0.",
            )
        angle = math.pi
    angle = scalar(angle, "certificate, `angle`")
    if not 0.0 < angle <= math.pi:
        raise OutputError(
            "certificate, `angle`",
            expected="above 0 and at most pi rad",
            came=f"{angle:.6g}",
            cure="The logarithm of a rotation error is smooth below pi only; degrees are "
            "turned into radians by numpy.radians.",
        )
    if distance is None:
        return angle, None
    distance = scalar(distance, "certificate, `distance`")
    if not distance > 0.0:
        raise OutputError(
            "certificate, `distance`",
            expected="above 0 m",
            came=f"{distance:.6g}",
            cure="Leave it out to let the gains decide.",
        )
    return angle, distance


def _by_search(
    channel: Channel,
    angle: float,
    distance: float | None,
    budget: int,
    report: Callable[[float], None],
    share: float,
) -> ChannelCertificate:
    reach = _reach(channel, angle, distance)
    facts: dict[str, Any] = {
        "level": region_level(channel, angle, reach),
        "angle": angle if "rad" in channel.units else None,
        "distance": reach,
    }
    found = search(channel, angle, reach, share=share)
    if found is None:
        reason = "No quadratic form was found that decays in all of the domain."
        return ChannelCertificate(channel, Status.UNDECIDED, reason, 0.0, **facts)
    proofs: list[Proof] = []
    left = budget if channel.kind != "SE3" else max(budget // _POSE_COST, 1)
    for part in _RATES:
        # What fails at a rate may pass at a lower one, for which some budget is kept.
        own = left if part == _RATES[-1] else max(left // 2, 1)
        rate = float(found.alpha * part)
        proofs.append(prove(channel, found.P, rate, angle, reach, own, report, found.multipliers))
        left -= proofs[-1].tested
        if proofs[-1].status is Status.PROVED or left < 1:
            break
    return _with_bounds(channel, proofs, facts)


def _with_bounds(
    channel: Channel, proofs: list[Proof], facts: dict[str, Any]
) -> ChannelCertificate:
    # A form found by the search that fails somewhere says nothing against the law.
    proof = proofs[-1]
    proved = proof.status is Status.PROVED
    if not _definite(rational(proof.claim.P)):
        status = Status.UNDECIDED
        return ChannelCertificate(channel, status, "P is not positive definite.", 0.0, **facts)
    lower, upper = _extent(channel, proof.claim.P)
    return ChannelCertificate(
        channel,
        Status.PROVED if proved else Status.UNDECIDED,
        _story(proofs),
        proof.claim.alpha if proved else 0.0,
        P=proof.claim.P,
        weight=float_above(1 / Fraction(lower)),
        lower=lower,
        upper=upper,
        reduction=proof.reduction,
        boxes=stored_boxes(proof),
        tested=sum(one.tested for one in proofs),
        multipliers=(proof.claim.L, proof.claim.M),
        **facts,
    )


def _story(proofs: list[Proof]) -> str:
    """What the last proof rests on, and what every attempt before it ended with."""
    proved = proofs[-1].status is Status.PROVED
    failed = proofs[:-1] if proved else proofs
    ends = [f"{one.claim.alpha:.4g} 1/s: {one.reason}" for one in failed]
    if not proved:
        return " ".join(["Not proved:", *ends])
    return " ".join([proofs[-1].reason, *(["Not proved:", *ends] if ends else [])])


def _by_theorem(channel: Channel, angle: float, distance: float | None) -> ChannelCertificate:
    reach = distance if positions_and_rotations(channel)[0] else None
    constants = thesis_constants(channel, angle, reach)
    facts: dict[str, Any] = {
        "level": constants.level,
        "angle": angle if "rad" in channel.units else None,
        "distance": reach,
        "constants": constants,
    }
    if channel.kind not in ("linear", "SO3 isotropic"):
        reason = "The constants of Theorem 5.4.2 come from a grid, which proves nothing."
        rate = constants.rate
        return ChannelCertificate(channel, Status.UNDECIDED, reason, rate, **facts)
    # There V_d = V_L - delta x KP B ve has a constant matrix, as x KP B = x KP.
    cross = -constants.delta * channel.stiffness
    P = np.block([[channel.stiffness, cross], [cross, channel.inertia]])
    rate, definite = constants.rate, _definite(rational(P))
    if not (definite and rate > 0.0 and _decays(channel, P, rate)):
        reason = "The rate of Theorem 5.4.2 vanishes."
        return ChannelCertificate(channel, Status.UNDECIDED, reason, 0.0, **facts)
    lower, upper = _extent(channel, P)
    return ChannelCertificate(
        channel,
        constants.status,
        f"Theorem 5.4.2 with delta = {constants.delta:.4g} s.",
        rate,
        P=P,
        weight=float_above(1 / Fraction(lower)),
        lower=lower,
        upper=upper,
        reduction="linear" if channel.kind == "linear" else "scalar",
        multipliers=(np.zeros((2 * channel.size, channel.size)),) * 2,
        **facts,
    )


def _decays(channel: Channel, P: np.ndarray, rate: float) -> bool:
    """Whether the form decays at zero error, in rational numbers.

    For abelian groups that is everywhere. For isotropic gains on SO(3) and P22 >= 0, P12 <= 0 as
    here it is too: B^T x = x, and with ve the form falls more slowly the larger sym(B) <= 1 is.
    """
    size = channel.size
    none = np.full((2 * size, size), Fraction(0))
    claim = Claim(rational(P), rate, none, none)
    one = rational(np.eye(size))
    inverse = solve(rational(channel.inertia), one)
    gains = (rational(channel.stiffness), inverse, inverse @ rational(channel.damping))
    return _definite(inequality(gains, turned_components(channel), one, claim, Fraction(rate)))


def _definite(matrix: Rational) -> bool:
    pivots = ldl_pivots(matrix.tolist())
    return len(pivots) == len(matrix) and pivots[-1] > 0


def _reach(channel: Channel, angle: float, distance: float | None) -> float | None:
    """Bound of the positions: the one asked for, or what V_L allows when it allows the angle."""
    if not positions_and_rotations(channel)[0]:
        return None
    if distance is not None:
        return distance
    level = region_level(channel, angle)
    compliance = np.linalg.inv(channel.stiffness)
    ends = np.cumsum([factor.dim for factor in channel.factors])
    longest = 0.0
    for factor, end in zip(channel.factors, ends, strict=True):
        units = np.array(factor.error_units)
        places = end - factor.dim + np.flatnonzero(units == "m")
        if places.size:
            own = compliance[np.ix_(places, places)]
            longest = max(longest, float(np.linalg.eigvalsh(own)[-1]))
    # A little more, so that rounding takes nothing of the angle.
    return float(np.sqrt(2.0 * level * longest) * (1.0 + 1e-9))


def _extent(channel: Channel, P: np.ndarray) -> tuple[float, float]:
    """Numbers with lower D <= P <= upper D, rounded to the safe side."""
    square = 1 / Fraction(channel.length) ** 2
    scale = [square if unit == "m" else Fraction(1) for unit in channel.units] * 2
    metric = np.full(P.shape, Fraction(0))
    metric[range(len(scale)), range(len(scale))] = scale
    exact = rational(P)
    return (
        float_below(smallest_eigenvalue(exact, metric)),
        float_above(largest_eigenvalue(exact, metric)),
    )


def _spread(parts: tuple[ChannelCertificate, ...]) -> Fraction:
    most = max(Fraction(part.weight) * Fraction(part.upper) for part in parts)
    return most / min(Fraction(part.weight) * Fraction(part.lower) for part in parts)


def _below(part: ChannelCertificate, x: np.ndarray, ve: np.ndarray) -> bool:
    if part.level == math.inf:
        return True
    channel, twice = part.channel, Fraction(0)
    for vector, metric in ((x, channel.stiffness), (ve, channel.inertia)):
        own = rational(vector[channel.index])
        twice += own @ rational(metric) @ own
    return bool(twice < 2 * Fraction(part.level))


def _stored(part: ChannelCertificate) -> dict[str, Any]:
    assert part.P is not None
    assert part.multipliers is not None
    return {
        "components": part.channel.index.tolist(),
        "status": part.status.name,
        "rate": part.rate,
        "angle": part.angle,
        "distance": part.distance,
        "bound": None if part.level == math.inf else part.level,
        "P": part.P.tolist(),
        "L": part.multipliers[0].tolist(),
        "M": part.multipliers[1].tolist(),
        "weight": part.weight,
        "length": part.channel.length,
        "lower": part.lower,
        "upper": part.upper,
        "reduction": part.reduction,
        "boxes": part.boxes.tolist(),
    }


@contextmanager
def _reporting(progress: bool | Callable[[float], Any]) -> Iterator[Callable[[float], Any]]:
    if callable(progress):
        yield progress
    elif not progress:
        yield lambda fraction: None
    else:
        from rich.console import Console
        from rich.progress import Progress

        with Progress(console=Console(stderr=True)) as bar:
            task = bar.add_task("certifying", total=1.0)
            yield lambda fraction: bar.update(task, completed=fraction)
