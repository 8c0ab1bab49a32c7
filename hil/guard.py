"""The guard: one pure function between the law and the bus, the same in every mode.

`judge` looks at the whole vector before any byte leaves: is everything finite, of the right
shape, fresh, and plausible? If not, the verdict is a stop and the torque is zero. Otherwise each
torque is bounded, in this order:

1. by the torque limit;
2. where the joint is faster than its speed limit, by a bound that falls to zero within the
   first half of the speed margin, for torque that accelerates;
3. near an end of the joint's range, for torque that pushes further out: within the soft zone
   the bound falls from the torque limit to braking by joint damping at the end;
4. by the power limit;
5. by the rate limit, against the torque that was sent before.

Torque against the motion is never reduced by 2 and 3: a limiter that blocks braking is switched
off by its users. The torque and the rate limit hold to the last bit. The other bounds are
approached no faster than the rate limit allows.

`brake` and `hold` are the torques of a stop. They keep the torque and the power limit, not the
rate limit, because a stop does not wait; an axis without a usable report gets no torque.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntFlag
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hil.errors import RigFileError
from hil.latch import Action, Event, Latch, Phase, next_state
from hil.reasons import Reason, State
from hil.rig import Policy

if TYPE_CHECKING:
    from hil.rig import Axis, Rig

__all__ = [
    "Action",
    "Event",
    "Flag",
    "Latch",
    "Limits",
    "Phase",
    "Reason",
    "State",
    "Verdict",
    "brake",
    "hold",
    "judge",
    "largest_speed",
    "next_state",
    "policy_torque",
]

SPEED_MARGIN = 0.2
"""Share above the speed limit at which the rig stops."""

END_SHARE = 0.05
"""Share of the joint's range that each soft zone inside and each margin outside takes."""

LARGEST_ZONE = 0.1
"""Largest soft zone and margin at an end of the range, rad (m)."""

LARGEST_AGE_CYCLES = 8
"""Cycles after which a report is too old, unless told otherwise."""

LONGEST_PERIOD = 1.0
"""A period above this is none, s."""

_ULP = 2.0**-52


class Flag(IntFlag):
    """What the guard changed in a torque vector that it passed."""

    NONE = 0
    """Nothing: the torque is the demand."""
    CLIPPED_TORQUE = 1
    """A demand was above the torque limit."""
    CLIPPED_RATE = 2
    """A torque would have changed faster than its rate limit."""
    CLIPPED_POWER = 4
    """A torque was above the power limit at the joint's speed."""
    CLIPPED_SPEED = 8
    """A torque would have accelerated a joint above its speed limit."""
    NEAR_END = 16
    """A torque pushed further out near an end of the joint's range."""
    HELD = 32
    """The torque is the last one, because a cycle or a report failed."""
    DAMPED = 64
    """The torque is joint damping, because a cycle or a report failed."""


CLIPPED = int(
    Flag.CLIPPED_TORQUE
    | Flag.CLIPPED_RATE
    | Flag.CLIPPED_POWER
    | Flag.CLIPPED_SPEED
    | Flag.NEAR_END
)
"""Flags of a torque that was bounded."""


class Verdict(NamedTuple):
    """What the guard says to a torque vector.

    Parameters
    ----------
    reason : Reason
        Why to stop; NONE: the vector passes.
    flags : Flag
        What was changed in a vector that passes.
    axis : int
        First axis that is the reason to stop; -1: no particular one.
    """

    reason: Reason
    flags: Flag = Flag.NONE
    axis: int = -1

    @property
    def stops(self) -> bool:
        """Whether the rig must stop; the torque is zero then."""
        return self.reason is not Reason.NONE


_PASS = tuple(Verdict(Reason.NONE, Flag(bits)) for bits in range(128))


@dataclass(frozen=True, eq=False)
class Limits:
    """Bounds of every axis, at the joint, in the order of the axes; fixed while a rig runs.

    Parameters
    ----------
    torque : numpy.ndarray
        Largest torque, N m (N), above zero, shape (n,).
    rate : numpy.ndarray
        Largest change of it, N m/s (N/s), above zero, shape (n,).
    speed : numpy.ndarray
        Largest speed, rad/s (m/s), above zero, shape (n,).
    low, high : numpy.ndarray
        Ends of the range, rad (m), shape (n,); infinite on wheels.
    power : numpy.ndarray
        Largest mechanical power, W, above zero, shape (n,); infinite for none.
    damping : numpy.ndarray
        Joint damping of a braking stop, N m s/rad (N s/m), shape (n,).
    stiffness : numpy.ndarray
        Joint stiffness of a holding stop, N m/rad (N/m), shape (n,).
    period : float
        Length of a cycle, s.
    largest_age : float
        Age above which a report is too old, s.
    names : sequence of str, optional
        Names of the axes, for messages.

    Attributes
    ----------
    size : int
        Number of axes.

    Raises
    ------
    RigFileError
        If a bound is none.
    """

    torque: NDArray[np.float64]
    rate: NDArray[np.float64]
    speed: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    power: NDArray[np.float64]
    damping: NDArray[np.float64]
    stiffness: NDArray[np.float64]
    period: float
    largest_age: float
    names: Sequence[str] = ()
    size: int = field(init=False)
    _shape: tuple[int] = field(init=False, repr=False)
    _rows: tuple[tuple[float, ...], ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        columns = ("torque", "rate", "speed", "low", "high", "power", "damping", "stiffness")
        for name in columns:
            array = np.array(getattr(self, name), dtype=np.float64)
            array.flags.writeable = False
            object.__setattr__(self, name, array)
        size = self.torque.size
        names = tuple(self.names) or tuple(f"axis {i}" for i in range(size))
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "size", size)
        object.__setattr__(self, "_shape", (size,))
        for name in columns:
            self._require(name, getattr(self, name).shape == (size,), f"shape ({size},)")
        finite = np.isfinite
        for name in ("torque", "rate", "speed"):
            array = getattr(self, name)
            self._require(name, finite(array) & (array > 0.0), "a finite bound above zero")
        self._require("power", self.power > 0.0, "a bound above zero")
        for name in ("damping", "stiffness"):
            array = getattr(self, name)
            self._require(name, finite(array) & (array >= 0.0), "a finite number, not negative")
        self._require("low", self.low < self.high, "an end below the other end")
        self._require("low", self.low < np.inf, "an end that can be reached")
        self._require("high", self.high > -np.inf, "an end that can be reached")
        for name in ("period", "largest_age"):
            value = getattr(self, name)
            good = math.isfinite(value) and value > 0.0
            self._require(name, good, "a finite time above zero")
        # What rounding can add to a change of the torque is taken off the step in advance.
        slack = 4.0 * _ULP * self.torque
        self._require(
            "rate",
            self.rate * self.period > 2.0 * slack,
            "a change of the torque in a cycle that the numbers can resolve",
        )
        zone = np.minimum(END_SHARE * (self.high - self.low), LARGEST_ZONE)
        self._require("high", zone > 0.0, "a range that the numbers can resolve")
        # Python floats in a short loop: half the time of NumPy for up to a dozen axes.
        rows = tuple(
            zip(
                *(getattr(self, name).tolist() for name in columns),
                slack.tolist(),
                zone.tolist(),
                (self.speed * (1.0 + SPEED_MARGIN)).tolist(),
                strict=True,
            )
        )
        object.__setattr__(self, "_rows", rows)

    def _require(self, name: str, good: NDArray[np.bool_] | bool, expected: str) -> None:
        if np.all(good):
            return
        value = getattr(self, name)
        if np.ndim(good):
            index = int(np.argmin(good))
            where, came = f"`{name}` of axis `{self.names[index]}`", f"{value[index]}"
        else:
            where, came = f"`{name}` of the limits", f"{value}"
        raise RigFileError(
            where,
            expected=expected,
            came=came,
            cure="Correct the limit in the rig file: without it nothing bounds the torque.",
        )

    @classmethod
    def from_axes(
        cls, axes: Sequence[Axis], period: float, largest_age: float | None = None
    ) -> Limits:
        """Limits as the rig file gives them.

        Parameters
        ----------
        axes : sequence of Axis
            The axes, in the order of the robot's controls.
        period : float
            Length of a cycle, s.
        largest_age : float, optional
            Age above which a report is too old, s; 8 periods if not given.

        Returns
        -------
        Limits
            Bounds of every axis.

        Raises
        ------
        RigFileError
            If a bound is none.
        """
        return cls(
            torque=np.array([a.torque_limit for a in axes]),
            rate=np.array([a.torque_rate_limit for a in axes]),
            speed=np.array([a.speed_limit for a in axes]),
            low=np.array([a.position_limits[0] for a in axes]),
            high=np.array([a.position_limits[1] for a in axes]),
            power=np.array([a.power_limit for a in axes]),
            damping=np.array([a.damping for a in axes]),
            stiffness=np.array([a.stiffness for a in axes]),
            period=period,
            largest_age=LARGEST_AGE_CYCLES * period if largest_age is None else largest_age,
            names=tuple(a.name for a in axes),
        )

    @classmethod
    def from_rig(cls, rig: Rig) -> Limits:
        """Limits of a rig; a report may be as old as the policy for lost ones allows.

        Parameters
        ----------
        rig : Rig
            The rig.

        Returns
        -------
        Limits
            Bounds of every axis; the largest age is that of the latency, of the cycles that
            `patience` allows to fail, and of two more.
        """
        period = rig.loop.period
        age = (rig.policies.patience + 2) * period + rig.estimator.latency
        return cls.from_axes(rig.axes, period, age)


def judge(
    demand: NDArray[np.float64],
    previous: NDArray[np.float64],
    position: NDArray[np.float64],
    velocity: NDArray[np.float64],
    ages: NDArray[np.float64],
    limits: Limits,
    period: float,
    out: NDArray[np.float64],
) -> Verdict:
    """Judge a torque vector, and bound it.

    A pure function of its arguments: no state, no clock, no exception, whatever the floats are.
    Judging zeros asks the same questions about the reports alone, as is done before a run.

    Parameters
    ----------
    demand : numpy.ndarray
        Torque that the law asks for, N m (N), shape (n,).
    previous : numpy.ndarray
        Torque that was sent before, N m (N), shape (n,). What is not finite counts as zero, what
        is above the torque limit as the limit.
    position, velocity : numpy.ndarray
        Of the joints, as estimated from the reports, rad and rad/s (m and m/s), shape (n,).
    ages : numpy.ndarray
        Time since the last report of each axis was sampled, s, shape (n,); NaN: never.
    limits : Limits
        Bounds of every axis.
    period : float
        Time over which the rate limit is counted, s.
    out : numpy.ndarray
        Takes the torque that may be sent: bounded and rate-bounded, or zero if the verdict is a
        stop. Shape (n,); it may be one of the arguments.

    Returns
    -------
    Verdict
        Reason to stop, or what was changed.
    """
    shape = limits._shape
    if not (
        demand.shape == shape
        and previous.shape == shape
        and position.shape == shape
        and velocity.shape == shape
        and ages.shape == shape
        and out.shape == shape
    ):
        out.fill(0.0)
        return Verdict(Reason.WRONG_SHAPE)
    if not 0.0 < period <= LONGEST_PERIOD:
        out.fill(0.0)
        return Verdict(Reason.CLOCK)
    youngest, oldest = -limits.period, limits.largest_age
    flags = 0
    # Bounds are found in the same pass as reasons to stop: nothing is written before its end.
    torques = []
    for index, (torque, before, q, v, age, row) in enumerate(
        zip(
            demand.tolist(),
            previous.tolist(),
            position.tolist(),
            velocity.tolist(),
            ages.tolist(),
            limits._rows,
            strict=True,
        )
    ):
        largest, rate, speed, low, high, power, damping, _, slack, zone, overspeed = row
        # Comparisons with NaN are false: every question is asked so that true means good.
        if not youngest <= age <= oldest:
            out.fill(0.0)
            return Verdict(Reason.STALE, axis=index)
        if not (torque - torque == 0.0 and q - q == 0.0 and v - v == 0.0):
            out.fill(0.0)
            return Verdict(Reason.NOT_FINITE, axis=index)
        if not low - zone <= q <= high + zone:
            out.fill(0.0)
            return Verdict(Reason.OUT_OF_RANGE, axis=index)
        if not -overspeed <= v <= overspeed:
            out.fill(0.0)
            return Verdict(Reason.OVERSPEED, axis=index)

        if torque > largest:
            torque = largest
            flags |= 1
        elif torque < -largest:
            torque = -largest
            flags |= 1

        share = abs(v) / speed
        if share > 1.0 and torque * v > 0.0:
            bound = largest * max(1.0 - (share - 1.0) / (0.5 * SPEED_MARGIN), 0.0)
            if abs(torque) > bound:
                torque = math.copysign(bound, torque)
                flags |= 8

        # A torque outwards while the joint moves inwards is braking: it passes.
        if high - q < zone:
            share = max((high - q) / zone, 0.0)
            bound = largest * share - damping * max(v, 0.0) * (1.0 - share)
            if torque > bound and v >= 0.0:
                torque = max(bound, -largest)
                flags |= 16
        if q - low < zone:
            share = max((q - low) / zone, 0.0)
            bound = -largest * share + damping * max(-v, 0.0) * (1.0 - share)
            if torque < bound and v <= 0.0:
                torque = min(bound, largest)
                flags |= 16

        if abs(torque) * abs(v) > power:
            torque = math.copysign(power / abs(v), torque)
            flags |= 4

        if before - before != 0.0:
            before = 0.0
        before = min(max(before, -largest), largest)
        step = max(rate * period - slack, 0.0)
        if torque > before + step:
            torque = before + step
            flags |= 2
        elif torque < before - step:
            torque = before - step
            flags |= 2
        torques.append(torque)
    out[:] = torques
    return _PASS[flags]


def brake(
    velocity: NDArray[np.float64],
    ages: NDArray[np.float64],
    limits: Limits,
    out: NDArray[np.float64],
) -> None:
    """Torque of a braking stop: joint damping, within the torque and the power limit.

    Parameters
    ----------
    velocity : numpy.ndarray
        Of the joints, rad/s (m/s), shape (n,).
    ages : numpy.ndarray
        Time since the last report of each axis was sampled, s, shape (n,). An axis whose report
        is too old gets no torque: damping of a speed that is no more would drive the joint.
    limits : Limits
        Bounds of every axis.
    out : numpy.ndarray
        Takes the torque, N m (N), shape (n,): finite and bounded, whatever comes in.
    """
    _damp(None, None, velocity, ages, limits, out)


def hold(
    position: NDArray[np.float64],
    anchor: NDArray[np.float64],
    velocity: NDArray[np.float64],
    ages: NDArray[np.float64],
    limits: Limits,
    out: NDArray[np.float64],
) -> None:
    """Torque of a holding stop: joint stiffness and damping, within the torque and power limit.

    Parameters
    ----------
    position : numpy.ndarray
        Of the joints, rad (m), shape (n,).
    anchor : numpy.ndarray
        Where they are held, rad (m), shape (n,): `position` when holding began.
    velocity : numpy.ndarray
        Of the joints, rad/s (m/s), shape (n,).
    ages : numpy.ndarray
        Time since the last report of each axis was sampled, s, shape (n,); an axis whose report
        is too old gets no torque.
    limits : Limits
        Bounds of every axis.
    out : numpy.ndarray
        Takes the torque, N m (N), shape (n,): finite and bounded, whatever comes in.
    """
    _damp(position, anchor, velocity, ages, limits, out)


def _damp(
    position: NDArray[np.float64] | None,
    anchor: NDArray[np.float64] | None,
    velocity: NDArray[np.float64],
    ages: NDArray[np.float64],
    limits: Limits,
    out: NDArray[np.float64],
) -> None:
    """Joint damping, and stiffness if there is an anchor."""
    shape = limits._shape
    held = position is not None and anchor is not None
    wrong = velocity.shape != shape or ages.shape != shape
    if position is not None and anchor is not None:
        wrong = wrong or position.shape != shape or anchor.shape != shape
    if wrong:
        out.fill(0.0)
        return
    youngest, oldest = -limits.period, limits.largest_age
    zeros = [0.0] * limits.size
    places = position.tolist() if held and position is not None else zeros
    anchors = anchor.tolist() if held and anchor is not None else zeros
    torques = []
    for v, age, q, place, row in zip(
        velocity.tolist(), ages.tolist(), places, anchors, limits._rows, strict=True
    ):
        largest, power, damping, stiffness = row[0], row[5], row[6], row[7]
        torque = 0.0
        if youngest <= age <= oldest and v - v == 0.0 and q - q == 0.0 and place - place == 0.0:
            torque = -damping * v
            if held:
                torque += stiffness * (place - q)
            # Stiffness and damping may both overflow, to infinities that cancel.
            torque = min(max(torque, -largest), largest) if torque == torque else 0.0
            if abs(torque) * abs(v) > power:
                torque = math.copysign(power / abs(v), torque)
        torques.append(torque)
    out[:] = torques


def policy_torque(
    policy: Policy,
    reason: Reason,
    failing: int,
    patience: int,
    previous: NDArray[np.float64],
    velocity: NDArray[np.float64],
    ages: NDArray[np.float64],
    limits: Limits,
    period: float,
    out: NDArray[np.float64],
) -> Verdict:
    """Torque of a cycle that is late, or that lacks a report.

    After `patience` failing cycles in a row the verdict is a stop, whatever the policy: no torque
    outlives the data it was made from by more than that.

    Parameters
    ----------
    policy : Policy
        What the rig file wants done.
    reason : Reason
        Why to stop, if it comes to that: LATE or LOST.
    failing : int
        Failing cycles in a row, this one included.
    patience : int
        How many of them hold and damp last.
    previous : numpy.ndarray
        Torque that was sent before, N m (N), shape (n,).
    velocity : numpy.ndarray
        Of the joints, rad/s (m/s), shape (n,).
    ages : numpy.ndarray
        Time since the last report of each axis was sampled, s, shape (n,).
    limits : Limits
        Bounds of every axis.
    period : float
        Time over which the rate limit is counted, s.
    out : numpy.ndarray
        Takes the torque, shape (n,): bounded and rate-bounded, or zero if the verdict is a stop.
        Give it to `judge` as the demand, which asks whether the reports are still good for it.

    Returns
    -------
    Verdict
        Reason to stop, or HELD or DAMPED.
    """
    shape = limits._shape
    wrong = previous.shape != shape or velocity.shape != shape or ages.shape != shape
    if wrong or policy is Policy.STOP or not 0 < failing <= patience:
        out.fill(0.0)
        return Verdict(Reason.WRONG_SHAPE if wrong else reason)
    if not 0.0 < period <= LONGEST_PERIOD:
        out.fill(0.0)
        return Verdict(Reason.CLOCK)
    sent = previous.tolist()
    for index, torque in enumerate(sent):
        if torque - torque != 0.0:
            out.fill(0.0)
            return Verdict(Reason.NOT_FINITE, axis=index)
    if policy is Policy.DAMP:
        brake(velocity, ages, limits, out)
        wanted = out.tolist()
    else:
        wanted = sent
    torques = []
    for torque, before, row in zip(wanted, sent, limits._rows, strict=True):
        largest, rate, slack = row[0], row[1], row[8]
        before = min(max(before, -largest), largest)
        step = max(rate * period - slack, 0.0)
        torques.append(min(max(min(max(torque, -largest), largest), before - step), before + step))
    out[:] = torques
    return _PASS[64 if policy is Policy.DAMP else 32]


def largest_speed(
    velocity: NDArray[np.float64], ages: NDArray[np.float64], limits: Limits
) -> float:
    """Largest joint speed as a share of its limit, as `Latch.step` takes it.

    Parameters
    ----------
    velocity : numpy.ndarray
        Of the joints, rad/s (m/s), shape (n,).
    ages : numpy.ndarray
        Time since the last report of each axis was sampled, s, shape (n,).
    limits : Limits
        Bounds of every axis.

    Returns
    -------
    float
        The share; NaN if the speed of an axis is not known, because it is not finite or its
        report is too old.
    """
    if velocity.shape != limits._shape or ages.shape != limits._shape:
        return math.nan
    youngest, oldest = -limits.period, limits.largest_age
    largest = 0.0
    for v, age, row in zip(velocity.tolist(), ages.tolist(), limits._rows, strict=True):
        if not (youngest <= age <= oldest and v - v == 0.0):
            return math.nan
        largest = max(largest, abs(v) / row[2])
    return largest
