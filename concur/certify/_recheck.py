"""Proof checker: verification of a stored certificate by code independent of the prover.

The checker trusts nothing that made the proof: neither the interval arithmetic, nor the formulas of
the law, nor the split into channels. The modules `_recheck_*` implement each of them again.
Whatever does not depend on x is decided in rational numbers.

Verified claims
---------------
Errors z = (x, ve) on the outputs' group obey zdot = F(x) z with

    F(x) = [[0, -B(x)], [I^-1 B(x)^T KP, -I^-1 KD]].

For every channel (components that KP, KD and I do not couple with others) with its P, rate,
angle, distance and bound:

1. KP, KD, I and P are symmetric and positive definite;
2. (x KP x + ve I ve) / 2 < bound implies |phi| < angle for every rotation and |rho| < distance
   for every position that a rotation acts on. The left side never grows, so the errors stay there;
3. d/dt z^T P z <= -2 rate z^T P z for every such x and every ve.

If all hold, sqrt(sum_k weight_k z_k^T P_k z_k) decays at least as exp(-rate t), with the smallest
rate of the channels, from all starts with the left side of 2. below its bound in every channel.

For 3. the matrix

    A(x) = -(sym(P F(x)) + rate P) + sym([L (1 - B(x)) + M (1 - T(x)), 0])

has to be positive definite, with any constant L and M: B(x) x = x, and T(x) x = x where T is B^T
on the rotations of SO3 and SE3 and 1 elsewhere, so these terms do not change z^T A z on any z. A is
affine in rho, so the corners of a polygon or cube around all rho suffice. The certificate's boxes
must cover the remaining rotation vectors without a gap. On a box A is enclosed by its value at the
middle and its slope; a congruence makes the value there the identity up to rounding, and rows must
be diagonally dominant (Gershgorin). A box that is too wide for this arithmetic is halved. Channels
on abelian groups are decided in rational numbers, and so is an isotropic one on SO3 or S2,
where z^T A z is least for the eigenvalue 1 of sym(B), at every angle.

The format is described in `_recheck_document`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from os import PathLike
from typing import Any, NamedTuple

import numpy as np

from concur.certify._recheck_boxes import check_decay, contradicts
from concur.certify._recheck_chain import chains_of, verify_chain
from concur.certify._recheck_conditions import conditions_of, stated
from concur.certify._recheck_document import (
    FORMAT,
    INTEGRAL,
    OPERATING,
    TUBE,
    StoredChannel,
    StoredProof,
    check_channels,
    load,
    proof_of,
)
from concur.certify._recheck_finding import Recheck, Rejection, require
from concur.certify._recheck_integral import StoredIntegral, integral_of, verify_integral
from concur.certify._recheck_law import Law, law_of, operating_laws
from concur.certify._recheck_operating import box_of, verify_box
from concur.certify._recheck_rational import combine, definite, diagonal, symmetric
from concur.certify._recheck_tube import tube_of, verify_tube
from concur.certify._recheck_work import WORK, limited
from concur.certify._status import Status
from concur.documents import as_path


class _Read(NamedTuple):
    """Claims of a file: how to verify them, whether they are about a law, and their texts."""

    kind: str
    verify: Callable[[], None]
    about: Callable[[Law], bool]
    rate: Fraction | None
    region: tuple[str, ...]
    claims: tuple[str, ...]


def examine(
    path: str | PathLike[str],
    servo: Law | None = None,
    budget: int = 200_000,
    work: float = WORK,
) -> Recheck:
    """Verify a stored certificate with independent arithmetic and formulas.

    Parameters
    ----------
    path : str or os.PathLike
        The JSON file that `Certificate.save` wrote.
    servo : Servo, optional
        The servo that the file should be about. Its output groups and gains are compared with
        the file's, bit by bit.
    budget : int
        Largest number of boxes evaluated for each channel.
    work : float
        Largest total work for the file, in units of about a microsecond. Work is counted, not
        timed: the result is the same on every machine.

    Returns
    -------
    Recheck
        PROVED when every step was confirmed here, and the law is the servo's if one is given;
        REFUTED when 1., 2. or 3. or a bound of P is false for the stored numbers, 3. at an x and
        ve; UNDECIDED when the proof has gaps, this arithmetic cannot confirm it, it exceeds
        `budget` or `work`, it is about another law, or the certificate claims nothing.

    Raises
    ------
    DescriptionError
        If the file is not a complete certificate, tube or operating box, or was changed after it
        was written; if the path is invalid; or if `servo` is not a `Servo`.

    Examples
    --------
    >>> import concur as cc
    >>> from concur.certify import examine
    >>> model = cc.reduce(cc.robots.rover_arm())
    >>> base = cc.Output("base", "chassis", "R2", point=(0.25, 0, 0))
    >>> servo = cc.Servo(model, [base], stiffness=4, damping=4)
    >>> cc.certify(servo).save("proof.json")
    >>> found = examine("proof.json", servo)
    >>> found.status.name, found.law
    ('PROVED', True)
    """
    if servo is not None:
        law_of(servo)  # refuses what is no servo before it reads the file
    read, status, reason = None, Status.PROVED, ""
    # Overflow yields a bound that proves nothing; it needs no warning.
    with limited(work), np.errstate(all="ignore"):
        try:
            document = load(as_path(path))
            read = _read(document, budget)
            read.verify()
        except Rejection as stop:
            status, reason = stop.status, stop.reason
        except (OverflowError, np.linalg.LinAlgError) as error:
            status, reason = Status.UNDECIDED, f"numbers out of range of the arithmetic: {error}"
        if read is None:
            return Recheck(status, reason, "unread", None if servo is None else False, None, (), ())
        own = None if servo is None else read.about(servo)
    conditional = document["format"] in (FORMAT, INTEGRAL)
    listed = document.get("conditions") if conditional else None
    known = tuple(map(str, listed)) if isinstance(listed, list) else ()
    if own is False and status is not Status.REFUTED:
        status, reason = Status.UNDECIDED, "the file is about another law than the servo's"
    required = conditions_of(servo) if conditional and servo is not None else ()
    if status is Status.PROVED and not stated(required, known):
        status, reason = Status.UNDECIDED, "the file states fewer conditions than the servo has"
    rate = None if read.rate is None else float(read.rate)
    return Recheck(status, reason, read.kind, own, rate, read.region, read.claims, known)


def _read(document: dict[str, Any], budget: int) -> _Read:
    """Claims of a document, by its format."""
    if document["format"] == TUBE:
        tube = tube_of(document)
        return _Read(
            "tube",
            lambda: verify_tube(tube, budget),
            lambda servo: tube.part_of(*law_of(servo)),
            tube.channel.rate,
            (tube.region,),
            tube.claims,
        )
    if document["format"] == OPERATING:
        box = box_of(document)
        return _Read(
            "operating box",
            lambda: verify_box(box, budget),
            lambda servo: (
                box.law is not None and any(w(servo, box.law) == box.law for w in operating_laws)
            ),
            None,
            box.region,
            box.claims,
        )
    proof: StoredIntegral | StoredProof
    if document["format"] == INTEGRAL:
        kind, proof = "integral action", (whole := integral_of(document))
        verify, region = partial(verify_integral, whole), [part.region for part in whole.channels]
        claims = whole.claims
    else:
        kind, proof = "error dynamics", (own := proof_of(document))
        verify, region = partial(_verify, own, document, budget), [*map(_region_text, own.channels)]
        claims = _claims(own)
    return _Read(
        kind,
        verify,
        lambda servo: law_of(servo) == (proof.groups, proof.gains),
        proof.rate if proof.status is Status.PROVED else None,
        tuple(region),
        claims,
    )


def _region_text(channel: StoredChannel) -> str:
    """Certified region of a channel, as text."""
    places = f"components {', '.join(map(str, channel.components))}"
    if channel.bound is None:
        return f"{places}: any start"
    room = [f"(x KP x + ve I ve) / 2 < {float(channel.bound):.6g}"]
    room += [] if channel.angle is None else [f"rotation error < {float(channel.angle):.6g} rad"]
    room += [] if channel.distance is None else [f"position < {float(channel.distance):.6g} m"]
    return f"{places}: {', '.join(room)}"


def _claims(proof: StoredProof) -> tuple[str, ...]:
    if proof.status is Status.REFUTED:
        return ("the gains or the form are refuted by a counterexample",)
    if proof.status is not Status.PROVED or proof.rate is None or proof.overshoot is None:
        return ()
    return (
        f"the norm of the errors decays at {float(proof.rate):.6g} 1/s or faster",
        f"|z(t)| is at most {float(proof.overshoot):.6g} |z(0)| exp(-rate t)",
    )


def _verify(proof: StoredProof, document: dict[str, Any], budget: int) -> None:
    for name, gain in proof.gains.items():
        sound = symmetric(gain) and definite(gain)
        require(sound, Status.REFUTED, f"law.{name} is not symmetric positive definite")
    if proof.status is Status.REFUTED:
        if proof.counterexample is None:
            raise Rejection(Status.UNDECIDED, "no counterexample is given")
        k, x, direction = proof.counterexample
        require(
            contradicts(proof.channels[k], x, direction),
            Status.UNDECIDED,
            "the counterexample does not contradict the claim",
        )
        raise Rejection(Status.REFUTED, "the certificate's counterexample holds")
    check_channels(proof, _region)
    _overshoot(proof)
    for channel in proof.channels:
        check_decay(channel, budget)
    for chain in chains_of(document, proof):
        verify_chain(chain, lambda form: _verify_form(form, budget))


def _verify_form(form: StoredChannel, budget: int) -> None:
    """Verify that a form of a chain decays in its region."""
    sound = symmetric(form.p) and definite(form.p)
    require(sound, Status.REFUTED, f"{form.where}.P is not symmetric positive definite")
    require(form.rate > 0, Status.UNDECIDED, f"{form.where}.rate is not above zero")
    _region(form)
    check_decay(form, budget)


def _region(channel: StoredChannel) -> None:
    """Verify that V_L below its bound keeps the errors within angle and distance."""
    where = channel.where
    radii = [
        ("angle", channel.angle, channel.rotations),
        ("distance", channel.distance, channel.positions),
    ]
    for name, radius, blocks in radii:
        if not blocks:
            continue
        if radius is None or channel.bound is None:
            raise Rejection(Status.UNDECIDED, f"{where} states no {name} or no bound")
        require(radius > 0, Status.UNDECIDED, f"{where}.{name} is not above zero")
        require(channel.bound > 0, Status.UNDECIDED, f"{where}.bound is not above zero")
        if name == "angle":
            # The logarithm jumps at pi; the float is below it.
            inside = radius <= Fraction(math.pi)
            require(inside, Status.UNDECIDED, f"{where}.angle is not below pi")
        # Positive semidefinite: x KP x >= 2 bound |block of x|^2 / radius^2 for all x.
        share = 2 * channel.bound / (radius * radius)
        for block in blocks:
            shares = [share if i in block else Fraction(0) for i in range(channel.size)]
            rest = combine(channel.kp, Fraction(-1), diagonal(shares))
            require(
                definite(rest, semi=True),
                Status.REFUTED,
                f"{where}.bound admits errors beyond its {name}",
            )


def _overshoot(proof: StoredProof) -> None:
    least, most = [], []
    for channel in proof.channels:
        where = channel.where
        for name in ("weight", "length", "lower"):
            value = getattr(channel, name)
            require(value > 0, Status.UNDECIDED, f"{where}.{name} is not above zero")
        scale = [1 / channel.length**2 if u == "m" else Fraction(1) for u in channel.units] * 2
        for name, rest in (
            ("lower", combine(channel.p, -channel.lower, diagonal(scale))),
            ("upper", combine(diagonal([channel.upper * s for s in scale]), Fraction(-1),
                                channel.p)),
        ):  # fmt: skip
            sound = definite(rest, semi=True)
            require(sound, Status.REFUTED, f"{where}.{name} is no bound of P")
        least.append(channel.weight * channel.lower)
        most.append(channel.weight * channel.upper)
    factor = proof.overshoot
    sound = factor is not None and factor > 0 and factor**2 * min(least) >= max(most)
    require(sound, Status.UNDECIDED, "the overshoot is below the bound by lower and upper")
