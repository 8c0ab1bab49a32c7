"""Conversion between the units of drives and joints: gear, direction, offset, fixed-point numbers.

Positions, velocities and torques of joints are in SI units. The drive measures and drives a shaft:
the motor's, or the output of the drive's gearbox if it has one. With gear N and direction d (1 or
-1) joint and shaft are related by

    joint position = offset + d * shaft angle / N,    joint torque = d * N * shaft torque,

so that both sides have the same power. Numbers out of the drive's range raise `UnitError`. They are
never limited here: the guard has limited them before, so a number out of range shows that units are
wrong.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from hil.drives.mit_models import BITS, mit_ranges
from hil.errors import UnitError

if TYPE_CHECKING:
    from hil.settings import Axis

LARGEST = 32767
"""Largest number of per mille: 0x6071 and 0x6077 have 16 bits and a sign."""

LARGEST_FLOAT = 1e6
"""Largest torque of a drive with numbers of floating point, N m."""
SMALLEST = 1e-6
"""Resolution of such a torque, as a fraction of the limit of the axis."""


class AxisScale:
    """Conversion between numbers of a CiA 402 drive and its joint.

    Rated torque (0x6076) and maximum torque in force (0x6072 of 0x6076, used if `torque_unit` is
    "maximum") are in N m of the motor. Default: the values of the rig file.
    """

    __slots__ = (
        "_counts",
        "_inverse_torque",
        "_name",
        "_offset",
        "_position",
        "_torque",
        "counts_per_unit",
        "largest_torque",
        "position_step",
        "step",
    )

    def __init__(
        self, axis: Axis, rated_torque: float | None = None, maximum_torque: float | None = None
    ) -> None:
        rated = axis.rated_torque if rated_torque is None else rated_torque
        if axis.torque_unit == "count":
            whole = 1000.0 * axis.torque_count
        elif axis.torque_unit == "rated":
            whole = rated
        elif maximum_torque is None:
            whole = rated * limit_per_mille(axis) * 1e-3
        else:
            whole = maximum_torque
        if not whole > 0.0:
            raise UnitError(
                f"axis `{axis.name}`",
                expected="a torque above zero for 1000 per mille",
                came=f"{whole:g} N m",
                cure="Check rated (0x6076) and maximum torque (0x6072) of the drive.",
            )
        self._name = axis.name
        self._offset = axis.offset
        self._torque = axis.direction * axis.gear * whole * 1e-3
        self._inverse_torque = 1.0 / self._torque
        self._counts = axis.direction * axis.gear * axis.counts / math.tau
        self._position = 1.0 / self._counts
        self.position_step = abs(self._position)  # rad (m) of the joint
        self.counts_per_unit = self._counts  # per rad (m) of the joint, with sign
        self.step = abs(self._torque)  # torque at the joint of one per mille, or of one count
        self.largest_torque = LARGEST * self.step

    def per_mille(self, torque: float) -> int:
        """Torque in the drive's unit (0x6071)."""
        number = torque * self._inverse_torque
        if not -LARGEST - 0.5 < number < LARGEST + 0.5:
            raise _beyond(self._name, torque, self.largest_torque)
        return round(number)

    def torque(self, per_mille: int) -> float:
        """Torque at the joint (N m, N) from the drive's number (0x6077)."""
        return per_mille * self._torque

    def position(self, counts: int) -> float:
        """Position of the joint from the encoder's counts (0x6064)."""
        return self._offset + counts * self._position

    def counts(self, position: float) -> int:
        """Counts of the encoder at a position of the joint, wrapped to 32 bits."""
        if not math.isfinite(position):
            raise _beyond(self._name, position, math.inf)
        return signed(round((position - self._offset) * self._counts), 32)


class MitScale:
    """Conversion between numbers of an MIT drive and its joint.

    The ends of a range are codes. Therefore a range from -x to x has no code for zero: the nearest
    code is half a step away.
    """

    __slots__ = (
        "_factor",
        "_name",
        "_offset",
        "_position",
        "_torque",
        "_velocity",
        "fastest",
        "largest_torque",
        "position_step",
        "span",
        "step",
    )

    def __init__(self, axis: Axis) -> None:
        ranges = mit_ranges(axis)
        self._name = axis.name
        self._offset = axis.offset
        self._factor = axis.direction * axis.gear
        self._position = _Code(*ranges["position"], BITS["position"])
        self.position_step = self._position.step / axis.gear
        self._velocity = _Code(*ranges["velocity"], BITS["velocity"])
        self._torque = _Code(*ranges["torque"], BITS["torque"])
        lower, upper = ranges["torque"]
        self.largest_torque = axis.gear * min(-lower, upper)
        self.step = axis.gear * self._torque.step
        lower, upper = ranges["velocity"]
        self.fastest = min(-lower, upper) / axis.gear  # largest speed that the drive can report
        first, last = sorted(axis.offset + end / self._factor for end in ranges["position"])
        self.span = (first, last)  # beyond these positions, codes wrap around

    def torque_code(self, torque: float) -> int:
        """Torque as the drive's code."""
        return self._coded(self._torque, torque / self._factor, torque, self.largest_torque)

    def torque(self, code: int) -> float:
        """Torque at the joint (N m, N) from the drive's code."""
        return self._torque.value(code) * self._factor

    def position_code(self, position: float) -> int:
        """Position of the joint as the drive's code."""
        angle = (position - self._offset) * self._factor
        return self._coded(self._position, angle, position, max(map(abs, self.span)))

    def position(self, code: int) -> float:
        """Position of the joint from the drive's code."""
        return self._offset + self._position.value(code) / self._factor

    def velocity_code(self, velocity: float) -> int:
        """Velocity of the joint as the drive's code."""
        return self._coded(self._velocity, velocity * self._factor, velocity, self.fastest)

    def velocity(self, code: int) -> float:
        """Velocity of the joint from the drive's code."""
        return self._velocity.value(code) / self._factor

    def _coded(self, code: _Code, value: float, shown: float, largest: float) -> int:
        number = code.number(value)
        if not -0.5 < number < code.top + 0.5:
            raise _beyond(self._name, shown, largest)
        return round(number)


class TurnScale:
    """Conversion between a drive in turns and N m of its shaft, and its joint.

    `unit` is the unit of its positions in turns, `counts` the steps of its encoder per turn.
    """

    __slots__ = ("_angle", "_name", "_offset", "_torque", "largest_torque", "position_step", "step")

    def __init__(self, axis: Axis, unit: float = 1.0) -> None:
        self._name = axis.name
        self._offset = axis.offset
        self._torque = axis.direction * axis.gear
        self._angle = math.tau * unit / self._torque
        self.position_step = math.tau / (axis.counts * axis.gear)
        self.largest_torque = LARGEST_FLOAT * axis.gear
        self.step = SMALLEST * axis.torque_limit

    def shaft_torque(self, torque: float) -> float:
        """Torque of the drive's shaft, N m."""
        if not abs(torque) <= self.largest_torque:
            raise _beyond(self._name, torque, self.largest_torque)
        return torque / self._torque

    def torque(self, torque: float) -> float:
        """Torque at the joint (N m, N) from that of the shaft."""
        return torque * self._torque

    def position(self, number: float) -> float:
        """Position of the joint from the drive's number."""
        return self._offset + number * self._angle

    def velocity(self, number: float) -> float:
        """Velocity of the joint from the drive's number."""
        return number * self._angle


class _Code:
    """Fixed-point numbers with a given number of bits between two ends."""

    __slots__ = ("_inverse", "_lower", "step", "top")

    def __init__(self, lower: float, upper: float, bits: int) -> None:
        self.top = (1 << bits) - 1
        self.step = (upper - lower) / self.top
        self._inverse = self.top / (upper - lower)
        self._lower = lower

    def number(self, value: float) -> float:
        """Code of a value before it is rounded."""
        return (value - self._lower) * self._inverse

    def value(self, code: int) -> float:
        """Value of a code."""
        return self._lower + code * self.step


class Turns:
    """Counts the turns of a wrapping counter from report to report.

    Between two reports the counter must move by less than half its range. The first number has a
    sign, or lies between 0 and 2^bits. `modulus` gives a range that is not a power of two.

    Examples
    --------
    >>> turns = Turns(16, has_sign=False)
    >>> [turns.take(code) for code in (65000, 65500, 464, 65500)]
    [65000, 65500, 66000, 65500]
    """

    __slots__ = ("_has_sign", "last", "modulus")

    def __init__(self, bits: int, has_sign: bool = True, modulus: int = 0) -> None:
        self.modulus = modulus or 1 << bits
        self._has_sign = has_sign and not modulus
        self.last: int | None = None

    def step(self, number: int) -> int:
        """Signed difference from the last report, the short way round; 0 for the first."""
        return 0 if self.last is None else _wrapped(number - self.last, self.modulus)

    def near(self, number: int) -> int:
        """Unwrapped number, as `take` would return it; it is not kept."""
        return number if self.last is None else self.last + self.step(number)

    def take(self, number: int) -> int:
        """Unwrapped number: nearest to the last one among those with the same bits."""
        if self.last is None:
            modulus = self.modulus
            self.last = _wrapped(number, modulus) if self._has_sign else number % modulus
        else:
            self.last += _wrapped(number - self.last, self.modulus)
        return self.last

    def forget(self, last: int | None = None) -> None:
        """Restart with the next report, for example after a drive lost power."""
        self.last = last


def first_turn(axis: Axis, scale: AxisScale, number: int) -> int:
    """Unwrapped count of an encoder with `modulo`, nearest to the middle of the joint's range.

    An encoder without `modulo`, and a joint without limits, keep the number.
    """
    middle = middle_of(axis, scale)
    return number if middle is None else middle + _wrapped(number - middle, axis.modulo)


def middle_of(axis: Axis, scale: AxisScale) -> int | None:
    """Count in the middle of the range of a joint whose encoder has `modulo`, if it has both."""
    low, high = axis.position_limits
    if not axis.modulo or not math.isfinite(low + high):
        return None
    return round((0.5 * (low + high) - axis.offset) * scale.counts_per_unit)


def signed(number: int, bits: int) -> int:
    """Read the lowest bits of a number in two's complement.

    Examples
    --------
    >>> signed(2**31, 32), signed(-1, 32)
    (-2147483648, -1)
    """
    return _wrapped(number, 1 << bits)


def _wrapped(number: int, modulus: int) -> int:
    """The number nearest to zero that differs by multiples of the modulus."""
    half = modulus // 2
    return (number + half) % modulus - half


def limit_per_mille(axis: Axis) -> int:
    """Torque limit of an axis in per mille of rated torque, rounded up, for 0x6072."""
    return math.ceil(axis.torque_limit / (axis.gear * axis.rated_torque) * 1e3 - 1e-9)


def _beyond(name: str, value: float, largest: float) -> UnitError:
    return UnitError(
        f"axis `{name}`",
        expected=f"a number within {largest:g} at the joint, the range of the drive",
        came=f"{value:g}",
        cure="Pass the number through the guard, whose limits were checked against the units of "
        "the axis.",
    )
