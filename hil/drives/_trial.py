"""Common part of the watchdog tests of all kinds of drives: load, bounds, motion.

A watchdog may work once, at zero torque only, or too late under load. Therefore it is tested twice,
in both directions, while the drive applies a small torque, the load. A drive may also report that
it is off and keep its torque. Therefore its reported torque and the motion of the joint count too.

The load accelerates a free joint from the instant t0. Without other forces its travel is
x = a (t - t0)^2 / 2 while the torque acts, and grows linearly afterwards. With t2 at the end of the
silence and k = (t3 - t0) / (t2 - t0), the travels have the ratio x3 / x2 = k^2 if the torque still
acts between t2 and t3, and at most 2 k - 1 if it does not. Friction reduces both.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from hil.drives._drive import AxisCheck, Finding
from hil.errors import ArmError

if TYPE_CHECKING:
    from hil.settings import Axis

SILENCE = 1.5
"""Duration of the silence that tests a watchdog, as a multiple of the watchdog's time."""

DIRECTIONS = (1.0, -1.0)
"""Direction of the load in each test; the second one takes back the motion of the first."""

STEADY = 0.05, 0.02
"""Time for which a drive is enabled without torque before each test, s."""

SHORTEST = 0.03
"""Shortest time for which the load acts before the silence, s."""

STEPS = 2.0
"""Smallest load, as a multiple of the resolution of the drive's torque."""

SHOWN = 0.5
"""Fraction of the load above which a reported torque counts as the load."""

LARGEST_SPEED = 0.5
"""Largest speed of an axis in the test, as a fraction of its speed limit."""

REDUCED = 0.8
"""Factor below what the bounds permit by which a load is reduced."""

RETURN = 0.6
"""Time from the end of one test to the load of the next one, s."""

ATTEMPTS = 6
"""Number of times that loads are applied, each time reduced where an axis becomes too fast."""

_NOISE = 4.0  # steps of the position below which a motion is not seen
_CLEAR = 16.0  # steps from which a motion is judged
_DRIFT = 160.0  # the same, per second: the speed before the load has an error


@dataclass(frozen=True)
class Load:
    """Torque of the test of one axis, N m (N), and the resolution of its drive."""

    axis: Axis
    torque: float
    step: float

    def __post_init__(self) -> None:
        if self.torque < STEPS * self.step:
            raise ArmError(
                f"axis `{self.axis.name}`, torque of the watchdog test",
                expected=f"at least {STEPS * self.step:.3g} N m (N), {STEPS:g} steps of the drive",
                came=f"{self.torque:.3g} N m (N)",
                cure="Increase `watchdog_torque`. If the joint moves too far in the test, fix it, "
                "or shorten `watchdog`.",
                axis=self.axis.name,
                torque=self.torque,
            )

    def reduced(self, factor: float) -> Load:
        """The load times a factor."""
        return Load(self.axis, factor * self.torque, self.step)

    def is_shown(self, torque: float | None, direction: float = 0.0) -> bool:
        """Whether a measured torque is the load; `direction`: in this direction only."""
        if torque is None or math.isnan(torque):
            return False
        measured = direction * torque if direction else abs(torque)
        return measured > SHOWN * self.torque


@dataclass(frozen=True)
class Course:
    """Motion of an axis from the instant at which the load begins.

    Instant (s), position and speed at the beginning, resolution of the position, and direction.
    """

    axis: Axis
    begin: float
    start: float
    speed: float
    step: float
    direction: float

    def travel(self, now: float, position: float) -> float:
        """Travel in the direction of the load, beyond the motion before it."""
        return self.direction * (position - self.start - self.speed * (now - self.begin))

    def permitted(self, now: float, position: float) -> float:
        """Factor of the load that keeps the axis within its bounds; at least 1: it does so.

        The motion so far is extrapolated to the end of the silence, or of the coasting after it.
        """
        passed = now - self.begin
        travel = self.travel(now, position)
        seen = math.copysign(max(0.0, abs(travel) - _NOISE * self.step), travel)
        rate = 2.0 * seen / passed**2
        until = passed + SILENCE * self.axis.watchdog
        if not rate:
            return math.inf
        sign = math.copysign(self.direction, rate * self.direction)
        low, high = self.axis.position_limits
        faster = LARGEST_SPEED * self.axis.speed_limit - sign * self.speed
        further = (high if sign > 0.0 else low) - self.start
        # Without friction the joint coasts until the next load takes its speed back.
        coasting = 2.0 * until + RETURN
        return min(
            faster / (abs(rate) * until),
            max(0.0, sign * further - max(0.0, sign * self.speed) * coasting)
            / (abs(rate) * until * coasting),
        )

    def keep(self, now: float, position: float, load: float) -> None:
        """Reject a motion beyond the bounds."""
        low, high = self.axis.position_limits
        mean = abs(position - self.start) / (now - self.begin)
        largest = self.axis.speed_limit
        where = f"axis `{self.axis.name}`, motion in the watchdog test at {load:.3g} N m (N)"
        cure = "Hold the axis or support its weight, or lower `watchdog_torque`."
        data = {"axis": self.axis.name, "torque": load}
        if not low <= position <= high:
            raise ArmError(
                where,
                expected=f"a position between {low:g} and {high:g}",
                came=f"{position:.4g}",
                cure=f"{cure} The torque has been removed.",
                **data,
            )
        if mean > largest:
            raise ArmError(
                where,
                expected=f"a mean speed of at most {largest:.3g}, the `speed_limit`",
                came=f"{mean:.3g}",
                cure=f"{cure} The torque has been removed.",
                **data,
            )

    def is_clear(self, now: float, position: float) -> bool:
        """Whether the load has moved the axis far enough for its motion to be judged."""
        needed = max(_CLEAR, _DRIFT * (now - self.begin))
        return self.travel(now, position) >= needed * self.step

    def accelerates(self, now: float, position: float, later: float, then: float) -> bool:
        """Whether the torque still acts after `now`, by the positions now and later."""
        k = (later - self.begin) / (now - self.begin)
        ratio = 0.5 * (k**2 + 2.0 * k - 1.0)  # half way between the torque acting and not acting
        return self.travel(later, then) > ratio * self.travel(now, position)

    def describe(self, now: float, position: float, later: float, then: float) -> str:
        """The motion of a joint whose drive should be off."""
        return (
            "a drive that is off, and a joint that accelerates: "
            f"{self.travel(now, position):.3g} rad (m) in {now - self.begin:.3g} s, "
            f"{self.travel(later, then):.3g} in {later - self.begin:.3g} s"
        )


def load_of(axis: Axis, step: float) -> Load:
    """Load of an axis; `step` is the torque at the joint of one step of the drive."""
    return Load(axis, axis.test_torque, step)


def cycles_of(watchdog: float, period: float) -> int:
    """Cycles with the load before the silence: enough to see how far it will move the joint."""
    return math.ceil(max(SHORTEST, 0.3 * watchdog) / period - 1e-9)


def first_direction(axis: Axis, position: float) -> float:
    """Direction of the first load: away from the nearer position limit."""
    low, high = axis.position_limits
    return 1.0 if high - position >= position - low else -1.0


def unseen(load: Load) -> AxisCheck:
    """Row for a drive whose torque the tests did not see."""
    return AxisCheck(
        load.axis.name,
        "torque in the watchdog test, N m (N)",
        Finding.UNKNOWN,
        f"{load.torque:.3g}",
        "not in the reports, and no motion of the joint",
        "The state that the drive reports is the only evidence that its torque ends. Time it by "
        "hand: pull the CAN plug while the motor pushes lightly against a hand.",
    )


def refuse(
    load: Load, number: int, node: int, expected: str, came: str, cure: str, **data: float
) -> NoReturn:
    """Reject a drive whose watchdog has failed a test."""
    name = load.axis.name
    raise ArmError(
        f"axis `{name}`, node {node}, watchdog of the drive, test {number} of {len(DIRECTIONS)} "
        f"at {load.torque:.3g} N m (N)",
        expected=expected,
        came=came,
        cure=cure,
        axis=name,
        test=number,
        torque=load.torque,
        silence=SILENCE * load.axis.watchdog,
        **data,
    )
