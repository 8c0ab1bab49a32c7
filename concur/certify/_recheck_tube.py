"""Tubes of a disturbed channel: the format of their files, and their verification.

File format
-----------
JSON as for certificates (`_recheck_document`), SI units.

=============  ===================================================================================
format         "concur tube"
version        1
versions       object: versions of the software used
status         "PROVED" or "UNDECIDED"
law            object: groups and gains of the channel alone, as for certificates
components     indices in x of the whole loop, ascending
rate, angle, distance, P, L, M, length, reduction, boxes
               decay of the channel without a disturbance, as for certificates
disturbance    object: `length` (largest length, metres divided by the channel's), `components`
               (bound of each component) or `points` (list of vectors: all disturbances are means
               of these with either sign); the others are null
start          largest |z|_P at the start, |z|_P = sqrt(z^T P z)
ultimate       bound of |z|_P as t tends to infinity; null without one
radius         bound of |z|_P at all times; null without one
bounds         object: `components` (largest size of each component of x), `angle` and `distance`
               (largest length of every rotation and of every position, null without)
hash           as for certificates
=============  ===================================================================================

Verified claims
---------------
With the decay (3. of `_recheck`) d/dt |z|_P <= -rate |z|_P + sqrt(d^T P22 d) while x is in the
domain. In rational numbers: d^T P22 d <= (rate ultimate)^2 for the extreme d; radius is at least
start and ultimate; |z|_P <= radius keeps x inside the domain, so that x never leaves it; and
|z|_P <= radius implies the bounds of the components.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

from concur.certify._recheck_boxes import check_decay
from concur.certify._recheck_document import (
    UNITS,
    StoredChannel,
    channel_of,
    law_of_document,
    list_of,
    matrix_of,
    maybe_of,
    number_of,
    object_of,
    places_of,
    refuse,
    status_of,
    vector_of,
)
from concur.certify._recheck_finding import Rejection, require
from concur.certify._recheck_rational import (
    Matrix,
    combine,
    definite,
    diagonal,
    multiply,
    symmetric,
    transpose,
)
from concur.certify._recheck_work import fraction_cost, spend
from concur.certify._status import Status

_ANGLES = {"SO2": [0]}
_LINES = {"R1": [0], "R2": [0, 1], "R3": [0, 1, 2]}


@dataclass(frozen=True, eq=False)
class StoredTube:
    """A stored tube."""

    status: Status
    channel: StoredChannel
    places: list[int]
    length: Fraction | None
    points: list[list[Fraction]]
    start: Fraction
    ultimate: Fraction | None
    radius: Fraction | None
    bounds: list[Fraction | None]
    angle: Fraction | None
    distance: Fraction | None

    def part_of(self, groups: list[str], gains: dict[str, Matrix]) -> bool:
        """Whether the channel is part of a law and uncoupled from the rest of it."""
        own = {"stiffness": self.channel.kp, "damping": self.channel.kd}
        own["inertia"] = self.channel.metric
        inside = set(self.places)
        for name, matrix in gains.items():
            if not inside <= set(range(len(matrix))):
                return False
            if [[matrix[i][j] for j in self.places] for i in self.places] != own[name]:
                return False
            for i, row in enumerate(matrix):
                if any(row[j] for j in range(len(matrix)) if (i in inside) != (j in inside)):
                    return False
        kinds, start = [], 0
        for group in groups:
            size = len(UNITS.get(group, ()))
            kinds += [group] if start in inside else []
            start += size
        return kinds == self.channel.groups

    @property
    def region(self) -> str:
        """Starts and disturbances that the claim covers."""
        places = ", ".join(map(str, self.places))
        if self.length is not None:
            acting = f"length at most {float(self.length):.6g}"
        else:
            acting = f"{len(self.points)} extreme points"
        return f"components {places}: |z|_P at most {float(self.start):.6g}, disturbance: {acting}"

    @property
    def claims(self) -> tuple[str, ...]:
        """Claims of the file."""
        if self.status is not Status.PROVED or self.radius is None:
            return ()
        found = [f"|z|_P stays at most {float(self.radius):.6g}"]
        found += [] if self.angle is None else [f"rotation at most {float(self.angle):.6g} rad"]
        found += [] if self.distance is None else [f"position at most {float(self.distance):.6g} m"]
        return tuple(found)


def tube_of(document: dict[str, Any]) -> StoredTube:
    """Read a tube from its document."""
    groups, gains, size = law_of_document(document)
    places = places_of(document, "components", "", size)
    if places != sorted(places):
        refuse("`components`", f"{size} ascending indices", places)
    entry = document | {
        "components": list(range(size)),
        "bound": None,
        "weight": 1.0,
        "lower": 1.0,
        "upper": 1.0,
    }
    channel = channel_of(entry, "tube", groups, gains, size)
    given = object_of(document, "disturbance", "")
    stated = [name for name in ("length", "components", "points") if given.get(name) is not None]
    if len(stated) > 1:
        refuse("`disturbance`", "one of length, components and points", ", ".join(stated))
    length, points = None, []
    if "length" in stated:
        length = number_of(given, "length", "disturbance")
    elif "components" in stated:
        one = vector_of(given, "components", "disturbance", size)
        spend(2.0**size * size)
        signs = product((1, -1), repeat=size - 1)
        points = [[one[0], *(s * v for s, v in zip(sign, one[1:], strict=True))] for sign in signs]
    elif "points" in stated:
        rows = list_of(given, "points", "disturbance")
        points = matrix_of(given, "points", "disturbance", len(rows), size)
    bounds = object_of(document, "bounds", "")
    limits = list_of(bounds, "components", "bounds", size)
    return StoredTube(
        status=status_of(document, "") if stated else Status.UNDECIDED,
        channel=channel,
        places=places,
        length=length,
        points=points,
        start=number_of(document, "start", ""),
        ultimate=maybe_of(document, "ultimate", ""),
        radius=maybe_of(document, "radius", ""),
        bounds=[maybe_of({"bound": v}, "bound", "bounds.components") for v in limits],
        angle=maybe_of(bounds, "angle", "bounds"),
        distance=maybe_of(bounds, "distance", "bounds"),
    )


def verify_tube(tube: StoredTube, budget: int) -> None:
    """Verify a tube, with at most `budget` boxes."""
    channel = tube.channel
    require(tube.status is Status.PROVED, Status.UNDECIDED, "the tube claims no proof")
    for name, matrix in (
        ("stiffness", channel.kp),
        ("damping", channel.kd),
        ("inertia", channel.metric),
        ("P", channel.p),
    ):
        sound = symmetric(matrix) and definite(matrix)
        require(sound, Status.REFUTED, f"{name} is not symmetric positive definite")
    require(channel.rate > 0, Status.UNDECIDED, "the rate is not above zero")
    if tube.radius is None or tube.ultimate is None:
        raise Rejection(Status.UNDECIDED, "no radius is stated")
    sound = tube.start >= 0 and tube.ultimate >= 0 and tube.radius >= max(tube.start, tube.ultimate)
    require(sound, Status.UNDECIDED, "the radius is below the start or the ultimate bound")
    _check_extremes(tube, tube.ultimate)
    for block, bound in _domain(channel):
        inside = _within(channel, tube.radius, block, bound, strict=True)
        require(inside, Status.UNDECIDED, "the tube leaves the domain of the decay")
    _stated(tube, tube.radius)
    check_decay(channel, budget)


def _check_extremes(tube: StoredTube, ultimate: Fraction) -> None:
    """Verify d^T P22 d <= (rate ultimate)^2 at the extremes, where a convex form is largest."""
    channel, n = tube.channel, tube.channel.size
    square = (channel.rate * ultimate) ** 2
    block = [row[n:] for row in channel.p[n:]]
    why = "a disturbance exceeds the stated ultimate bound"
    if tube.length is not None:
        require(channel.length > 0, Status.UNDECIDED, "the length is not above zero")
        scale = [1 / channel.length**2 if u == "m" else Fraction(1) for u in channel.units]
        rest = combine(diagonal([square * s for s in scale]), -(tube.length**2), block)
        require(definite(rest, semi=True), Status.UNDECIDED, why)
    spend(len(tube.points) * n * n * fraction_cost(2000))
    for point in tube.points:
        column = [[v] for v in point]
        force = multiply(transpose(column), multiply(block, column))[0][0]
        require(force <= square, Status.UNDECIDED, why)


def _domain(channel: StoredChannel) -> list[tuple[list[int], Fraction]]:
    """Parts of x with their bounds on the domain; the logarithm of every angle ends at pi."""
    found = []
    parts = ((channel.angle, channel.turning), (channel.distance, channel.positions))
    for radius, blocks in parts:
        for block in blocks:
            if radius is None or not radius > 0:
                raise Rejection(Status.UNDECIDED, "the domain of the decay is not stated")
            found.append((block, radius))
    if channel.angle is not None:
        inside = channel.angle <= Fraction(math.pi)
        require(inside, Status.UNDECIDED, "the angle is not below pi")
    for group, start in channel.spans:
        if group in _ANGLES:
            found.append(([start], Fraction(math.pi)))
    return found


def _stated(tube: StoredTube, radius: Fraction) -> None:
    """Verify that the bounds of the components follow from the radius."""
    channel = tube.channel
    lines = [[s + i for i in _LINES[g]] for g, s in channel.spans if g in _LINES]
    angles, lengths = channel.rotations, channel.positions + lines
    claims = [([i], bound) for i, bound in enumerate(tube.bounds)]
    claims += [(block, tube.angle) for block in angles]
    claims += [(block, tube.distance) for block in lengths]
    for block, bound in claims:
        sound = bound is not None and bound >= 0 and _within(channel, radius, block, bound)
        require(sound, Status.UNDECIDED, f"a bound of components {block} does not follow")


def _within(
    channel: StoredChannel,
    radius: Fraction,
    block: list[int],
    bound: Fraction,
    strict: bool = False,
) -> bool:
    """Whether |z|_P <= radius keeps the length of a part of x at or (`strict`) below a bound."""
    marks = [Fraction(int(i in block)) for i in range(2 * channel.size)]
    form = [[bound**2 * v for v in row] for row in channel.p]
    return definite(combine(form, -(radius**2), diagonal(marks)), semi=not strict)
