"""Verification of certificates of laws with integral action, independent of the prover.

Verified claims
---------------
zeta = (z, x, ve) obeys zdot = x, xdot = -B(x) ve, vedot = I^-1 (B(x)^T KP x - KD ve + KI z). For
every channel (components that no gain couples with others), of size n, with its P, rate, angle and
bound; without z, and P of size 2 n, where KI is zero:

1. KP, KD, I and P are symmetric and positive definite, KI symmetric;
2. zeta^T P zeta < bound implies |x| < angle for every rotation;
3. d/dt zeta^T P zeta <= -2 rate zeta^T P zeta for every such zeta.

For components on abelian groups B = 1 and 3. is one inequality. For a rotation on SO3 the gains and
the n x n blocks of P must be multiples of the identity. B is a rational function of the cross
product with x, hence normal, with eigenvalue 1 along x and y cot y +- i y across, y = |x| / 2;
across x only z and ve have components. There 3. is affine in the eigenvalue and symmetric in its
imaginary part, and y cot y falls, so on an interval of y the corners (u, w) with the largest w
suffice. Intervals that fail are halved.

File format
-----------
As in `_recheck_document`, with format "concur integral certificate" and the gain `integral` in
`law`. A channel has `components`, `status`, `rate`, `angle`, `bound` (null if every start is
covered) and `P`, in the order (z, x, ve).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from concur.certify._recheck_document import (
    UNITS,
    blocks_of,
    check_channels,
    components_of,
    law_of_document,
    list_of,
    matrix_of,
    maybe_of,
    number_of,
    object_of,
    refuse,
    status_of,
)
from concur.certify._recheck_finding import Rejection, require
from concur.certify._recheck_rational import (
    Matrix,
    combine,
    definite,
    diagonal,
    invert,
    multiply,
    symmetric,
    transpose,
)
from concur.certify._recheck_work import fraction_cost, spend
from concur.certify._status import Status

_SMALLEST = 12
"""Halvings of the interval of angles before a claim stays undecided."""

_TERMS = 16
"""Terms of the series of sine and cosine, an even number."""

_ZERO, _ONE = Fraction(0), Fraction(1)


@dataclass(frozen=True, eq=False)
class IntegralChannel:
    """Proof of one channel."""

    where: str
    components: list[int]
    status: Status
    rate: Fraction
    angle: Fraction | None
    bound: Fraction | None
    p: Matrix
    gains: dict[str, Matrix]
    turned: list[int]
    rotation: bool

    @property
    def size(self) -> int:
        return len(self.components)

    @property
    def region(self) -> str:
        """Certified region, as text."""
        places = f"components {', '.join(map(str, self.components))}"
        if self.bound is None or self.angle is None:
            return f"{places}: any start"
        level, angle = float(self.bound), float(self.angle)
        return f"{places}: zeta^T P zeta < {level:.6g}, rotation error < {angle:.6g} rad"


@dataclass(frozen=True, eq=False)
class StoredIntegral:
    """Certificate of a law with integral action."""

    status: Status
    rate: Fraction | None
    groups: list[str]
    gains: dict[str, Matrix]
    channels: list[IntegralChannel]

    @property
    def claims(self) -> tuple[str, ...]:
        """Claims, as text."""
        if self.status is not Status.PROVED or self.rate is None:
            return ()
        return (f"errors and integral decay at {float(self.rate):.6g} 1/s or faster",)


def integral_of(document: dict[str, Any]) -> StoredIntegral:
    """Certificate from its document."""
    groups, gains, size = law_of_document(document)
    law = object_of(document, "law", "")
    gains = gains | {"integral": matrix_of(law, "integral", "law", size, size)}
    entries = list_of(document, "channels", "")
    channels = [_channel(e, f"channels[{k}]", groups, gains, size) for k, e in enumerate(entries)]
    status, rate = status_of(document, ""), maybe_of(document, "rate", "")
    return StoredIntegral(status, rate, groups, gains, channels)


def _channel(
    entry: Any, where: str, groups: list[str], gains: dict[str, Matrix], size: int
) -> IntegralChannel:
    places = components_of(entry, where, size)
    owners = [(k, group, unit) for k, group in enumerate(groups) for unit in UNITS[group]]
    own = [owners[i] for i in places]
    kinds = {group for _, group, _ in own}
    rotation = kinds == {"SO3"} and len({k for k, _, _ in own}) == 1 and len(places) == 3
    if not rotation and kinds & {"SE2", "SO3", "SE3"}:
        refuse(f"`{where}.components`", "one rotation, or components of R1 to R3 and SO2", places)
    cut = blocks_of(gains, places)
    order = 3 if any(any(row) for row in cut["integral"]) else 2
    n = order * len(places)
    return IntegralChannel(
        where=where,
        components=places,
        status=status_of(entry, where),
        rate=number_of(entry, "rate", where),
        angle=maybe_of(entry, "angle", where),
        bound=maybe_of(entry, "bound", where),
        p=matrix_of(entry, "P", where, n, n),
        gains=cut,
        turned=[i for i, (_, _, unit) in enumerate(own) if unit == "rad"],
        rotation=rotation,
    )


def verify_integral(proof: StoredIntegral) -> None:
    """Verify a certificate of a law with integral action."""
    for name, gain in proof.gains.items():
        sound = symmetric(gain) and (name == "integral" or definite(gain))
        require(sound, Status.REFUTED, f"law.{name} is not symmetric positive definite")
    check_channels(proof, _region)
    for channel in proof.channels:
        _decay(channel)


def _region(channel: IntegralChannel) -> None:
    """Verify that V below its bound keeps rotations within the angle, of at most pi."""
    where, n = channel.where, channel.size
    if not channel.turned:
        return
    angle, bound = channel.angle, channel.bound
    if angle is None or bound is None or angle <= 0 or bound <= 0:
        raise Rejection(Status.UNDECIDED, f"{where} states no angle and bound above zero")
    # The logarithm jumps at pi; the float is below it.
    below = angle <= Fraction(math.pi)
    require(below, Status.UNDECIDED, f"{where}.angle is not below pi")
    start, share = len(channel.p) - 2 * n, bound / angle**2
    blocks = [channel.turned] if channel.rotation else [[i] for i in channel.turned]
    for block in blocks:
        marks = [share if i - start in block else _ZERO for i in range(len(channel.p))]
        inside = definite(combine(channel.p, Fraction(-1), diagonal(marks)), semi=True)
        require(inside, Status.REFUTED, f"{where}.bound admits errors beyond its angle")


def _decay(channel: IntegralChannel) -> None:
    where, p = channel.where, channel.p
    inverse = invert(channel.gains["inertia"])
    pulls = [multiply(inverse, channel.gains[n]) for n in ("integral", "stiffness", "damping")]
    if channel.rotation:
        named = [*channel.gains.items(), *((f"{where}.P", block) for block in _cut(p, 3))]
        for name, block in named:
            sound = block == diagonal([block[0][0]] * 3)
            require(sound, Status.UNDECIDED, f"{name} is no multiple of the identity")
        p = [row[::3] for row in p[::3]]
        pulls = [[[pull[0][0]]] for pull in pulls]
    n = len(pulls[0])
    none, one = diagonal([_ZERO] * n), diagonal([_ONE] * n)
    minus = diagonal([-_ONE] * n)
    rows = [
        [none, one, none],
        [none, none, minus],
        [pulls[0], pulls[1], combine(none, -_ONE, pulls[2])],
    ]
    flow = [[x for block in row for x in block[i]] for row in rows for i in range(n)]
    drop = len(flow) - len(p)
    left = multiply(p, [row[drop:] for row in flow[drop:]])
    fall = combine(combine(left, _ONE, transpose(left)), 2 * channel.rate, p)
    falls = definite([[-x for x in row] for row in fall], semi=True)
    require(falls, Status.REFUTED, f"{where}.P does not decay at the rate")
    if channel.rotation:
        _across(channel, p, pulls[0][0][0], pulls[2][0][0])


def _cut(a: Matrix, n: int) -> Iterator[Matrix]:
    """Blocks of n rows and columns."""
    for i in range(0, len(a), n):
        for j in range(0, len(a), n):
            yield [row[j : j + n] for row in a[i : i + n]]


def _across(channel: IntegralChannel, p: Matrix, ki: Fraction, kd: Fraction) -> None:
    """Verify the decay on the plane across x, at every angle."""
    assert channel.angle is not None
    rate, x, v = channel.rate, len(p) - 2, len(p) - 1

    def holds(u: Fraction, w: Fraction) -> bool:
        moving = 2 * ((rate - kd) * p[v][v] - u * p[x][v])
        if len(p) == 2:
            return moving <= 0
        still = 2 * (ki * p[0][v] + rate * p[0][0])
        real = ki * p[v][v] + (2 * rate - kd) * p[0][v] - u * p[0][x]
        return moving <= 0 and still <= 0 and moving * still >= real**2 + (w * p[0][x]) ** 2

    own = sum(x.denominator.bit_length() for row in p for x in row)
    todo = [(_ZERO, channel.angle / 2, 0)]
    while todo:
        low, high, depth = todo.pop()
        spend(4 * _TERMS * fraction_cost(own + 2 * _TERMS * high.denominator.bit_length()))
        if all(holds(u, high) for u in (_turned(low, upper=True), _turned(high, upper=False))):
            continue
        why = f"{channel.where}: the decay is not confirmed near {2 * float(high):.4g} rad"
        require(depth < _SMALLEST, Status.UNDECIDED, why)
        middle = (low + high) / 2
        todo += [(middle, high, depth + 1), (low, middle, depth + 1)]


def _turned(y: Fraction, upper: bool) -> Fraction:
    """Bound of y cot y for y from 0 to pi / 2."""
    if y == 0:
        return _ONE
    # Alternating series: after an even number of terms both sums lie below their limits, by less
    # than the next term.
    cos, sin, term = _ZERO, _ZERO, _ONE
    for k in range(_TERMS):
        cos, sin = cos + term, sin + term * y / (2 * k + 1)
        term = -term * y * y / ((2 * k + 1) * (2 * k + 2))
    if upper:
        return y * (cos + term) / sin
    return y * cos / (sin + term * y / (2 * _TERMS + 1))
