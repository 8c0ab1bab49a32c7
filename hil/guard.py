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
from enum import IntFlag
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hil._limits import SPEED_MARGIN, Limits
from hil.latch import Action, Event, Latch, Phase, next_state
from hil.reasons import Reason, State
from hil.settings import Policy

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

LONGEST_PERIOD = 1.0
"""A period above this is none, s."""


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


# As numbers: arithmetic of enumerations takes longer than the rest of an axis' questions.
_TORQUE, _RATE, _POWER = map(int, (Flag.CLIPPED_TORQUE, Flag.CLIPPED_RATE, Flag.CLIPPED_POWER))
_SPEED, _END = map(int, (Flag.CLIPPED_SPEED, Flag.NEAR_END))

CLIPPED = _TORQUE | _RATE | _POWER | _SPEED | _END
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
    shape = limits.shape
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
    for index, (torque, before, q, v, age, axis) in enumerate(
        zip(
            demand.tolist(),
            previous.tolist(),
            position.tolist(),
            velocity.tolist(),
            ages.tolist(),
            limits.axes,
            strict=True,
        )
    ):
        largest, low, high, zone = axis.torque, axis.low, axis.high, axis.zone
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
        if not -axis.overspeed <= v <= axis.overspeed:
            out.fill(0.0)
            return Verdict(Reason.OVERSPEED, axis=index)

        if torque > largest:
            torque = largest
            flags |= _TORQUE
        elif torque < -largest:
            torque = -largest
            flags |= _TORQUE

        share = abs(v) / axis.speed
        if share > 1.0 and torque * v > 0.0:
            bound = largest * max(1.0 - (share - 1.0) / (0.5 * SPEED_MARGIN), 0.0)
            if abs(torque) > bound:
                torque = math.copysign(bound, torque)
                flags |= _SPEED

        # A torque outwards while the joint moves inwards is braking: it passes.
        if high - q < zone:
            share = max((high - q) / zone, 0.0)
            bound = largest * share - axis.damping * max(v, 0.0) * (1.0 - share)
            if torque > bound and v >= 0.0:
                torque = max(bound, -largest)
                flags |= _END
        if q - low < zone:
            share = max((q - low) / zone, 0.0)
            bound = -largest * share + axis.damping * max(-v, 0.0) * (1.0 - share)
            if torque < bound and v <= 0.0:
                torque = min(bound, largest)
                flags |= _END

        if abs(torque) * abs(v) > axis.power:
            torque = math.copysign(axis.power / abs(v), torque)
            flags |= _POWER

        if before - before != 0.0:
            before = 0.0
        before = min(max(before, -largest), largest)
        step = max(axis.rate * period - axis.slack, 0.0)
        if torque > before + step:
            torque = before + step
            flags |= _RATE
        elif torque < before - step:
            torque = before - step
            flags |= _RATE
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
    position, anchor : numpy.ndarray
        Of the joints, now and when holding began, rad (m), shape (n,).
    velocity, ages, limits, out : numpy.ndarray or Limits
        As of `brake`.
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
    shape = limits.shape
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
    for v, age, q, place, axis in zip(
        velocity.tolist(), ages.tolist(), places, anchors, limits.axes, strict=True
    ):
        largest, torque = axis.torque, 0.0
        if youngest <= age <= oldest and v - v == 0.0 and q - q == 0.0 and place - place == 0.0:
            torque = -axis.damping * v
            if held:
                torque += axis.stiffness * (place - q)
            # Stiffness and damping may both overflow, to infinities that cancel.
            torque = min(max(torque, -largest), largest) if torque == torque else 0.0
            if abs(torque) * abs(v) > axis.power:
                torque = math.copysign(axis.power / abs(v), torque)
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
    previous, velocity, ages, limits, period : numpy.ndarray, Limits or float
        As of `judge`.
    out : numpy.ndarray
        Takes the torque, shape (n,): bounded and rate-bounded, or zero if the verdict is a stop.
        Give it to `judge` as the demand, which checks whether the reports are fresh enough.

    Returns
    -------
    Verdict
        Reason to stop, or HELD or DAMPED.
    """
    shape = limits.shape
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
    for torque, before, axis in zip(wanted, sent, limits.axes, strict=True):
        largest = axis.torque
        before = min(max(before, -largest), largest)
        step = max(axis.rate * period - axis.slack, 0.0)
        torques.append(min(max(min(max(torque, -largest), largest), before - step), before + step))
    out[:] = torques
    return _PASS[Flag.DAMPED if policy is Policy.DAMP else Flag.HELD]


def largest_speed(
    velocity: NDArray[np.float64], ages: NDArray[np.float64], limits: Limits
) -> float:
    """Largest joint speed as a share of its limit, as `Latch.step` takes it.

    Parameters
    ----------
    velocity, ages, limits : numpy.ndarray or Limits
        As of `brake`.

    Returns
    -------
    float
        The share; NaN if the speed of an axis is not known, because it is not finite or its
        report is too old.
    """
    if velocity.shape != limits.shape or ages.shape != limits.shape:
        return math.nan
    youngest, oldest = -limits.period, limits.largest_age
    largest = 0.0
    for v, age, axis in zip(velocity.tolist(), ages.tolist(), limits.axes, strict=True):
        if not (youngest <= age <= oldest and v - v == 0.0):
            return math.nan
        largest = max(largest, abs(v) / axis.speed)
    return largest
