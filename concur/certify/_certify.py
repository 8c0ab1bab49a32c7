"""Certification of a loop, one channel at a time: by search and proof, or by Theorem 5.4.2."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from concur._progress import track
from concur.certify._bounds import (
    definite,
    float_above,
    float_below,
    largest_eigenvalue,
    rational,
    smallest_eigenvalue,
    solve,
)
from concur.certify._certificate import Certificate, Method
from concur.certify._chain import DecayChain, chain_of
from concur.certify._channel_certificate import ChannelCertificate
from concur.certify._channels import Channel, split
from concur.certify._checks import (
    check,
    check_angle,
    check_budget,
    check_distance,
    check_fraction,
)
from concur.certify._inequality import Claim, inequality, turned_components
from concur.certify._operating_certificate import OperatingCertificate
from concur.certify._prove import Proof, prove, stored_boxes
from concur.certify._recheck_conditions import LIMITS, conditions_of
from concur.certify._reduction import positions_and_rotations
from concur.certify._region import region_level
from concur.certify._search import search
from concur.certify._status import Status
from concur.certify._structure import check_structure
from concur.certify._suprema import CLOSED
from concur.certify._thesis import thesis_constants
from concur.certify._within import box_conditions, limited, within
from concur.control import ErrorDynamics, PassiveServo, Servo
from concur.errors import OutputError, shown
from concur.robot import scalar

_RATES = (1.0, 0.97, 0.9, 0.75, 0.5, 0.25)
"""Fractions of the rate found by the search, tried in order until one is proved."""

_ROUNDS = 2
"""Rounds of bisection between the rate that was proved and the next one that was not."""

_GAP = 1.006
"""Ratio of these rates below which bisection ends."""

_EFFORT, _CLOSE = (2, 300), 1.02
"""Boxes allowed in a round of bisection: relative to those of the last proof, and at least; the
latter not below this ratio of rates, as small boxes would take long to verify."""

_SMALLEST = math.radians(7)
"""Smallest rotation error of a search for isotropic poses: in smaller regions, where the loop is
nearly linear, the solver is inaccurate, and the form of this region proves a higher rate, rad."""

_RUNG = 0.9
"""Ratio of the rotation errors of the regions of a chain's forms."""

_STEP = 0.8
"""Ratio of the rotation errors of the regions that are searched in turn until a form is found."""

_CALM = 0.9
"""Fraction of the rate for the second certificate with a smaller transient bound."""

_LARGE_OVERSHOOT = 50.0
"""Transient bound of a channel above which a second certificate is made."""

_NO_FORM = "No quadratic Lyapunov function that decays in the whole domain was found."

_POSE_COST = 20
"""Cost of a box of poses without isotropic gains, in boxes of rotations."""


def certify(
    law: Servo | ErrorDynamics,
    angle: float | None = None,
    distance: float | None = None,
    method: Method = "tight",
    progress: bool | Callable[[float], Any] = False,
    budget: int = 20_000,
    rate_fraction: float = 1.0,
    chain: bool = False,
    operating: OperatingCertificate | None = None,
) -> Certificate:
    """Certify a rate at which the tracking error of a law decays.

    Parameters
    ----------
    law : Servo or ErrorDynamics
        The law, or its error dynamics.
    angle : float
        Largest rotation error covered, above 0 and at most pi, rad. Required if an output
        rotates.
    distance : float, optional
        Largest position error covered where rotations act on positions, as for poses, m.
        Default: the largest position error that V_L allows where it allows rotation errors up
        to `angle`.
    method : str
        "tight" searches for the fastest decay that can be proved; "thesis" uses Theorem 5.4.2
        with its own constants.
    progress : bool or callable
        Show a progress bar, or call with the fraction done.
    budget : int
        Largest number of boxes evaluated for each channel. Boxes of poses whose gains depend on
        the direction take twenty times as long and count twenty times.
    rate_fraction : float
        Fraction of the fastest rate to certify, above 0 and at most 1. Among the proofs of that
        rate the search selects the one with the smallest transient bound, which is large near
        the linearized rate of a critically damped loop. With the default, a certificate whose
        transient bound exceeds 50 in a channel also gets a `low_transient` one. The method
        "thesis" ignores it.
    chain : bool, default False
        Also prove a `chain`, a tighter bound over time: for outputs with diagonal gains on R^n
        and SO(2), and isotropic gains on SO(3) and SE(3); some seconds for each pose.
    operating : OperatingCertificate, optional
        Proved box of the servo, from `operating_bounds` with speeds and errors, in which no torque
        reaches its limit. Required for a proof with torque limits: it covers the starts from
        which the errors stay within those of the box.

    Returns
    -------
    Certificate
        REFUTED when a gain is not symmetric positive definite, or the linearised loop is not
        stable; else the proved rate and region. With integral action UNDECIDED or REFUTED: use
        `certify_integral` for its rate. With torque limits and no `operating` box UNDECIDED:
        `certify(servo.error_dynamics)` is the claim while none is reached.

    Raises
    ------
    OutputError
        If `law` is neither a servo nor error dynamics, an option is out of range, or no angle is
        given and an output rotates.
    ConcurError
        If the extra `certify` is not installed and the method is "tight".

    Examples
    --------
    >>> import concur as cc
    >>> from concur.certify import certify
    >>> model = cc.reduce(cc.robots.rover_arm())
    >>> base = cc.Output("base", "chassis", "R2", point=(0.25, 0, 0))
    >>> servo = cc.Servo(model, [base], stiffness=4, damping=4)
    >>> certify(servo, method="thesis").status.name
    'PROVED'
    """
    dynamics = dynamics_of(law)
    angle, distance = domain_of(dynamics, angle, distance)
    known = isinstance(method, str) and method in ("tight", "thesis")
    cure = 'Omit it to use "tight".'
    check(known, "certificate, `method`", '"tight" or "thesis"', repr(method)[:40], cure)
    rate_fraction = scalar(rate_fraction, "certificate, `rate_fraction`")
    check_fraction("certificate", "rate_fraction", rate_fraction)
    budget = check_budget("certificate", budget)
    sound = isinstance(chain, (bool, np.bool_))
    check(sound, "certificate, `chain`", "True or False", shown(chain), "Omit it for none.")
    structure = check_structure(dynamics)
    if structure.status is Status.REFUTED:
        found = Certificate(dynamics, Status.REFUTED, method, angle, distance, (), structure)
        return replace(found, conditions=conditions_of(law))
    box = None if operating is None else box_conditions(law, operating)
    parts = []
    channels = split(dynamics)
    if dynamics.integral is not None:
        parts = [_integrating(channel, angle, distance) for channel in channels]
        found = Certificate(dynamics, Status.UNDECIDED, method, angle, distance, tuple(parts))
        return replace(found, conditions=conditions_of(law))
    with track(progress, "certifying", 1.0) as report:
        most = 0.0
        for k, channel in enumerate(channels):

            def done(fraction: float, k: int = k) -> None:
                # A second attempt at a channel restarts its fraction; the bar must not move back.
                nonlocal most
                most = max(most, (k + fraction) / len(channels))
                report(most)

            began = time.perf_counter()
            if method == "thesis":
                part = _by_theorem(channel, angle, distance)
            else:
                part = _by_search(channel, angle, distance, budget, done, rate_fraction)
            parts.append(replace(part, seconds=time.perf_counter() - began))
            done(1.0)
    proved = all(part.status is Status.PROVED for part in parts)
    status = Status.PROVED if proved else Status.UNDECIDED
    found = Certificate(dynamics, status, method, angle, distance, tuple(parts))
    calm = method == "tight" and rate_fraction == 1.0 and proved
    conditions = conditions_of(law)
    if operating is None and LIMITS in conditions:
        some = tuple(limited(part) for part in parts)
        return replace(found, status=Status.UNDECIDED, parts=some, conditions=conditions)
    found = replace(found, low_transient=_calmer(found, budget)) if calm else found
    found = replace(found, chain=_chain(found, budget)) if chain and proved else found
    found = replace(found, conditions=conditions if box is None else box)
    return found if operating is None else within(found, operating)


def _chain(found: Certificate, budget: int) -> DecayChain | None:
    """Chain of a proved certificate; None where a channel is not of scalar loops."""
    parts = []
    for part in found.parts:
        forms: tuple[ChannelCertificate, ...] = ()
        if part.channel.kind == "SO3 isotropic" and part.P is not None:
            forms = (part,)
        if part.channel.kind == "SE3 isotropic":
            forms = _nested_forms(part.channel, budget)
        parts.append(chain_of(part.channel, part.level, forms))
    whole = [part for part in parts if part is not None]
    return DecayChain(tuple(whole)) if len(whole) == len(parts) else None


def _nested_forms(channel: Channel, budget: int) -> tuple[ChannelCertificate, ...]:
    """Proved forms of the standard regions, the same ones whatever the region of the claim."""
    forms = []
    angle = math.pi
    while angle > _SMALLEST:
        reach = _reach(channel, angle, None)
        form = _by_search(channel, angle, reach, budget, lambda fraction: None, 1.0)
        forms += [form] if form.status is Status.PROVED else []
        angle *= _RUNG
    return tuple(forms)


def _integrating(channel: Channel, angle: float, distance: float | None) -> ChannelCertificate:
    """Certificate without a claim of a channel of a law with integral action."""
    reason = "The law has integral action: certify_integral proves its rate."
    if channel.kind == "linear" and channel.integral is not None:
        reason += f" The roots of its equation lie left of {-channel.true_rate:.4g} 1/s."
    turns = "rad" in channel.units and channel.kind != "linear"
    facts = (angle if turns else None, distance if turns else None)
    return ChannelCertificate(channel, Status.UNDECIDED, reason, 0.0, 0.0, *facts)


def _calmer(found: Certificate, budget: int) -> Certificate | None:
    """Proved certificate with a smaller transient bound; None if that of every channel is small."""
    parts = []
    for part in found.parts:
        other = part
        # With several parameters a second proof takes long: the user can request it by
        # `rate_fraction`.
        if part.transient_bound > _LARGE_OVERSHOOT and part.boxes.shape[1] <= 1:
            given = (part.angle if part.angle is not None else found.angle, part.distance)
            again = _by_search(part.channel, *given, budget, lambda fraction: None, _CALM)
            if again.status is Status.PROVED and again.transient_bound < part.transient_bound:
                other = again
        parts.append(other)
    calmer = replace(found, parts=tuple(parts))
    return calmer if calmer.transient_bound < found.transient_bound else None


def dynamics_of(law: object) -> ErrorDynamics:
    if isinstance(law, Servo):
        return law.error_dynamics
    if isinstance(law, ErrorDynamics):
        return law
    if isinstance(law, PassiveServo):
        raise OutputError(
            "certificate, `law`",
            expected="a law with autonomous error dynamics",
            came="a PassiveServo, whose errors depend on the motion of the robot",
            cure="Use its `lyapunov`, `decay_rate` and `error_bounds`.",
        )
    raise OutputError(
        "certificate, `law`",
        expected="a Servo or its error dynamics",
        came=type(law).__name__,
        cure="Certify the servo that drives the robot.",
    )


def domain_of(
    dynamics: ErrorDynamics, angle: float | None, distance: float | None
) -> tuple[float, float | None]:
    if angle is None:
        check(
            "rad" not in dynamics.group.error_units,
            "certificate, `angle`",
            "the largest rotation error covered, rad, as an output rotates",
            "no value",
            "State it, such as angle=1.0.",
        )
        angle = math.pi
    angle = scalar(angle, "certificate, `angle`")
    check_angle("certificate", angle)
    if distance is not None:
        distance = scalar(distance, "certificate, `distance`")
        check_distance("certificate", distance)
    return angle, distance


def _by_search(
    channel: Channel,
    angle: float,
    distance: float | None,
    budget: int,
    report: Callable[[float], None],
    rate_fraction: float,
) -> ChannelCertificate:
    reach = _reach(channel, angle, distance)
    facts: dict[str, Any] = {
        "level": region_level(channel, angle, reach),
        "angle": angle if "rad" in channel.units else None,
        "distance": reach,
    }
    if channel.kind == "S2":
        return _by_one_number(channel, angle, rate_fraction, facts)
    found: list[Proof] = []
    for wide in _wider(channel, angle):
        # A form of a larger region is one of this region too.
        domain = (wide, None if reach is None else reach * (wide / angle))
        found = _proofs(channel, angle, reach, budget, report, rate_fraction, domain)
        if found:
            break
    if not found:
        return ChannelCertificate(channel, Status.UNDECIDED, _NO_FORM, 0.0, **facts)
    return _with_bounds(channel, found, facts)


def _by_one_number(
    channel: Channel, angle: float, rate_fraction: float, facts: dict[str, Any]
) -> ChannelCertificate:
    """Certificate of a direction: its form decays the slowest along the great circle, where B = 1.

    There it is decided in rational numbers. The eigenvalue a cot a of B across is smaller.
    """
    found = search(channel, angle, rate_fraction=rate_fraction)
    for share in _RATES if found is not None else ():
        assert found is not None
        P, rate = found.P, float(found.alpha * share)
        sound = P[0, channel.size] <= 0.0 and definite(rational(P))
        if sound and _decays(channel, P, rate):
            reason = "A quadratic Lyapunov function decays, by rational arithmetic."
            return _proved(channel, P, rate, reason, "scalar", facts)
    return ChannelCertificate(channel, Status.UNDECIDED, _NO_FORM, 0.0, **facts)


def _wider(channel: Channel, angle: float) -> list[float]:
    """Angles of the regions in which a form is searched until one is found, rad."""
    if channel.kind != "SE3 isotropic":
        return [angle]
    first = max(angle, _SMALLEST)
    return [first / _STEP**k for k in range(40) if first / _STEP**k <= math.pi or k == 0]


def _proofs(
    channel: Channel,
    angle: float,
    reach: float | None,
    budget: int,
    report: Callable[[float], None],
    rate_fraction: float,
    domain: tuple[float, float | None],
) -> list[Proof]:
    """Attempts to prove a form that a search on `domain` finds, the best of them last."""
    found = search(channel, *domain, rate_fraction=rate_fraction)
    if found is None:
        return []
    proofs: list[Proof] = []
    left = budget if channel.kind != "SE3" else max(budget // _POSE_COST, 1)

    def attempt(part: float, own: int) -> Proof:
        rate = float(found.alpha * part)
        return prove(channel, found.P, rate, angle, reach, own, report, found.multipliers)

    # The search keeps a reserve for the proof, which may not need it.
    reserve = rate_fraction == 1.0 and channel.kind != "SE3"
    failed = found.limit / found.alpha if reserve else 1.0
    for part in _RATES:
        # A proof may succeed at a lower rate; keep some budget for it.
        own = left if part == _RATES[-1] else max(left // 2, 1)
        proofs.append(attempt(part, own))
        left -= proofs[-1].tested
        if proofs[-1].status is Status.PROVED or left < 1:
            break
        failed = part
    if proofs[-1].status is not Status.PROVED:
        return proofs
    for _ in range(_ROUNDS):
        middle = (part + failed) / 2
        if left < 1 or failed < _GAP * part:
            break
        least = _EFFORT[1] if failed >= _CLOSE * part else 0
        tried = attempt(middle, min(left, max(_EFFORT[0] * proofs[-1].tested, least)))
        left -= tried.tested
        if tried.status is Status.PROVED:
            proofs.append(tried)
            part = middle
        else:
            proofs.insert(-1, tried)
            failed = middle
    return proofs


def _with_bounds(
    channel: Channel, proofs: list[Proof], facts: dict[str, Any]
) -> ChannelCertificate:
    # A failed proof of one Lyapunov function does not refute the law.
    proof = proofs[-1]
    proved = proof.status is Status.PROVED
    if not definite(rational(proof.claim.P)):
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
    """Reason of the last proof, and the outcome of every attempt before it."""
    proved = proofs[-1].status is Status.PROVED
    failed = [one for one in proofs if one.status is not Status.PROVED]
    ends = [f"{one.claim.alpha:.4g} 1/s: {one.reason}" for one in failed]
    if not proved:
        return " ".join(["Not proved:", *ends])
    return " ".join([proofs[-1].reason, *(["Not proved:", *ends] if ends else [])])


def _by_theorem(channel: Channel, angle: float, distance: float | None) -> ChannelCertificate:
    reach = distance if positions_and_rotations(channel)[0] else None
    facts: dict[str, Any] = {
        "level": region_level(channel, angle, reach),
        "angle": angle if "rad" in channel.units else None,
        "distance": reach,
    }
    if channel.kind not in CLOSED:
        reason = "The constants of Theorem 5.4.2 have no closed form for these outputs and gains."
        return ChannelCertificate(channel, Status.UNDECIDED, reason, 0.0, **facts)
    facts["constants"] = constants = thesis_constants(channel, angle, reach)
    # There V_d = V_L - delta x KP B ve has a constant matrix, as x KP B = x KP.
    cross = -constants.delta * channel.stiffness
    P = np.block([[channel.stiffness, cross], [cross, channel.inertia]])
    rate = constants.rate
    if not (definite(rational(P)) and rate > 0.0 and _decays(channel, P, rate)):
        reason = "The rate of Theorem 5.4.2 vanishes."
        return ChannelCertificate(channel, Status.UNDECIDED, reason, 0.0, **facts)
    reason = f"Theorem 5.4.2 with delta = {constants.delta:.4g} s."
    argument = "linear" if channel.kind == "linear" else "scalar"
    found = _proved(channel, P, rate, reason, argument, facts)
    return replace(found, status=constants.status)


def _proved(
    channel: Channel, P: np.ndarray, rate: float, reason: str, argument: str, facts: dict[str, Any]
) -> ChannelCertificate:
    """Certificate of a form that decays by rational arithmetic alone."""
    lower, upper = _extent(channel, P)
    return ChannelCertificate(
        channel,
        Status.PROVED,
        reason,
        rate,
        P=P,
        weight=float_above(1 / Fraction(lower)),
        lower=lower,
        upper=upper,
        reduction=argument,
        multipliers=(np.zeros((2 * channel.size, channel.size)),) * 2,
        **facts,
    )


def _decays(channel: Channel, P: np.ndarray, rate: float) -> bool:
    """Whether V decays at zero error, in rational numbers.

    For abelian groups it then decays everywhere. So it does for isotropic gains on SO(3) and S^2
    with P22 >= 0 and P12 <= 0, as here: B^T x = x; the smaller sym(B) <= 1, the faster V decays.
    """
    size = channel.size
    none = np.full((2 * size, size), Fraction(0))
    claim = Claim(rational(P), rate, none, none)
    one = rational(np.eye(size))
    inverse = solve(rational(channel.inertia), one)
    gains = (rational(channel.stiffness), inverse, inverse @ rational(channel.damping))
    return definite(inequality(gains, turned_components(channel), one, claim, Fraction(rate)))


def _reach(channel: Channel, angle: float, distance: float | None) -> float | None:
    """Bound of the positions: the given one, or the largest that V_L allows up to the angle."""
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
    # Slightly larger, so that rounding does not reduce the angle.
    return float(np.sqrt(2.0 * level * longest) * (1.0 + 1e-9))


def _extent(channel: Channel, P: np.ndarray) -> tuple[float, float]:
    """Numbers with lower D <= P <= upper D, rounded to the safe side."""
    n, exact = channel.size, rational(P)
    metric = np.full(P.shape, Fraction(0))
    metric[:n, :n] = metric[n:, n:] = channel.length_metric
    return (
        float_below(smallest_eigenvalue(exact, metric)),
        float_above(largest_eigenvalue(exact, metric)),
    )
