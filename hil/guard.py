"""The guard: one pure function between the law and the bus, the same in every mode.

`judge` checks the whole vector before any frame is sent: all numbers must be finite, of the right
shape, fresh, and plausible. If not, the verdict is a stop and the torque is zero. Otherwise each
torque is limited, in this order:

1. by the torque limit;
2. if the motor exceeds its speed limit and the torque accelerates it: by a bound that falls to zero
   within the first half of the speed margin;
3. near an end of a joint's range, for torque towards the end: within the soft zone the bound
   falls from the torque limit to braking by damping at the end; motors that share the joint share
   the change, and the torques of other joints remain;
4. by the power limit;
5. by the rate limit, relative to the torque that was sent last.

Limits 2 and 3 never reduce torque against the motion: users switch off a limiter that prevents
braking. The torque and the rate limit hold to the last bit. The other bounds are approached no
faster than the rate limit allows.

`brake` and `hold` compute the torques of a stop. These satisfy the torque and the power limit, but
not the rate limit, because a stop must not be delayed. An axis without a valid report gets no
torque.
"""

from __future__ import annotations

import math
from enum import IntFlag
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hil._limits import SPEED_MARGIN, JointLimits, Limits
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
"""Largest valid period, s."""


class Flag(IntFlag):
    """Changes of a passed torque vector by the guard.

    Examples
    --------
    >>> import hil
    >>> hil.Flag(0)
    <Flag.NONE: 0>
    """

    NONE = 0
    """No change: the torque is that of the law."""
    CLIPPED_TORQUE = 1
    """A torque of the law was above the torque limit."""
    CLIPPED_RATE = 2
    """A torque would have changed faster than its rate limit."""
    CLIPPED_POWER = 4
    """A torque was above the power limit at the motor's speed."""
    CLIPPED_SPEED = 8
    """A torque would have accelerated a motor above its speed limit."""
    NEAR_END = 16
    """A torque near an end of the joint's range was directed towards the end."""
    HELD = 32
    """The torque is the last one, because of a late cycle or a missing report."""
    DAMPED = 64
    """The torque is joint damping, because of a late cycle or a missing report."""


# As numbers: arithmetic of enumerations takes longer than all checks of an axis.
_TORQUE, _RATE, _POWER = map(int, (Flag.CLIPPED_TORQUE, Flag.CLIPPED_RATE, Flag.CLIPPED_POWER))
_SPEED, _END = map(int, (Flag.CLIPPED_SPEED, Flag.NEAR_END))

CLIPPED = _TORQUE | _RATE | _POWER | _SPEED | _END
"""Flags of a torque that was limited."""


class Verdict(NamedTuple):
    """Result of the guard's check of a torque vector.

    Parameters
    ----------
    reason : Reason
        Reason to stop; NONE: the vector passes.
    flags : Flag
        Changes of a passed vector.
    axis : int
        First axis that causes the stop; -1: no particular axis.

    Examples
    --------
    >>> import numpy as np
    >>> import hil
    >>> limits = hil.Limits.from_rig(hil.load_rig("examples/rover_rig/rig.toml"))
    >>> state = np.zeros(5), np.zeros(5), np.zeros(5), np.full(5, np.nan)
    >>> verdict = hil.judge(np.zeros(5), *state, limits, limits.period, np.empty(5))
    >>> verdict.reason.name, verdict.axis
    ('STALE', 0)
    """

    reason: Reason
    flags: Flag = Flag.NONE
    axis: int = -1

    @property
    def stops(self) -> bool:
        """Whether the rig must stop; the torque is then zero."""
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
    """Check a torque vector, and limit it.

    A pure function of its arguments, without state, clock or exceptions for any floats. A zero
    torque vector checks the reports alone, as before a run.

    Parameters
    ----------
    demand : numpy.ndarray
        Torque of the law, N m (N), shape (n,).
    previous : numpy.ndarray
        Torque that was sent last, N m (N), shape (n,). A non-finite value counts as zero, a value
        above the torque limit as the limit.
    position, velocity : numpy.ndarray
        Estimated positions and velocities of the motors, rad and rad/s (m and m/s), shape (n,).
    ages : numpy.ndarray
        Age of the last report of each axis, s, shape (n,); NaN: no report.
    limits : Limits
        Bounds of every axis.
    period : float
        Time between the last torque and this one, s, for the rate limit.
    out : numpy.ndarray
        Takes the torque that may be sent: limited, or zero if the verdict is a stop. Shape (n,); it
        may be one of the arguments.

    Returns
    -------
    Verdict
        Reason to stop, or changes.

    Examples
    --------
    >>> import numpy as np
    >>> import hil
    >>> limits = hil.Limits.from_rig(hil.load_rig("examples/rover_rig/rig.toml"))
    >>> state = np.zeros(5), np.array([0.0, 0.0, 0.0, 1.0, -1.6]), np.zeros(5), np.zeros(5)
    >>> out = np.empty(5)
    >>> verdict = hil.judge(np.full(5, 100.0), *state, limits, limits.period, out)
    >>> verdict.flags, out
    (<Flag.CLIPPED_TORQUE|CLIPPED_RATE: 3>, array([1.6, 1.6, 2.4, 2.4, 0.8]))
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
    # `out` is written only after all axes have passed.
    torques, positions, velocities = demand.tolist(), position.tolist(), velocity.tolist()
    for index, (torque, q, v, age, axis) in enumerate(
        zip(torques, positions, velocities, ages.tolist(), limits.axes, strict=True)
    ):
        largest = axis.torque
        # Comparisons with NaN are false: every condition is formulated so that true means valid.
        if not youngest <= age <= oldest:
            out.fill(0.0)
            return Verdict(Reason.STALE, axis=index)
        if not (torque - torque == 0.0 and q - q == 0.0 and v - v == 0.0):
            out.fill(0.0)
            return Verdict(Reason.NOT_FINITE, axis=index)
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
        torques[index] = torque

    for joint in limits.joints:
        q = 0.0
        for k, _, back in joint.motors:
            q += back * positions[k]
        low, high, zone = joint.low, joint.high, joint.zone
        if low + zone <= q <= high - zone:
            continue
        if not low - zone <= q <= high + zone:
            out.fill(0.0)
            return Verdict(Reason.OUT_OF_RANGE, axis=joint.motors[0][0])
        flags |= _ease(joint, q, torques, velocities)

    for k, (axis, v, before) in enumerate(
        zip(limits.axes, velocities, previous.tolist(), strict=True)
    ):
        largest, torque = axis.torque, torques[k]
        torque = min(max(torque, -largest), largest)  # joints share their ends among motors
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
        torques[k] = torque
    out[:] = torques
    return _PASS[flags]


def _ease(joint: JointLimits, q: float, torques: list[float], velocities: list[float]) -> int:
    """Limit the torque of a joint near an end of its range, by all its motors; return flags."""
    v = torque = 0.0
    for k, ratio, back in joint.motors:
        v += back * velocities[k]
        torque += ratio * torques[k]
    bound, largest, zone = torque, joint.torque, joint.zone
    # A torque towards the end while the joint moves away from it is braking: it passes.
    if joint.high - q < zone and v >= 0.0:
        share = max((joint.high - q) / zone, 0.0)
        end = largest * share - joint.damping * v * (1.0 - share)
        bound = min(bound, max(end, -largest))
    if q - joint.low < zone and v <= 0.0:
        share = max((q - joint.low) / zone, 0.0)
        end = -largest * share - joint.damping * v * (1.0 - share)
        bound = max(bound, min(end, largest))
    if bound == torque:
        return 0
    if len(joint.motors) == 1:
        ((k, ratio, _),) = joint.motors
        torques[k] = bound / ratio
    else:  # the torques of other joints remain
        for k, _, back in joint.motors:
            torques[k] += back * (bound - torque)
    return _END


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
        Velocities of the joints, rad/s (m/s), shape (n,).
    ages : numpy.ndarray
        Age of the last report of each axis, s, shape (n,). An axis whose report is too old gets no
        torque: damping by an outdated speed would accelerate the joint.
    limits : Limits
        Bounds of every axis.
    out : numpy.ndarray
        Takes the torque, N m (N), shape (n,): finite and limited for all inputs.
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
        Positions of the joints, at present and at the start of holding, rad (m), shape (n,).
    velocity, ages, limits, out : numpy.ndarray or Limits
        As for `brake`.
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
            # If stiffness and damping both overflow, their sum may be NaN.
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
    """Torque of a late cycle, or of a cycle with a missing report.

    After `patience` consecutive faulty cycles the verdict is a stop under every policy. This limits
    the time for which a torque is sent after its data.

    Parameters
    ----------
    policy : Policy
        Policy of the rig file.
    reason : Reason
        Reason if the verdict is a stop: LATE or LOST.
    failing : int
        Number of consecutive faulty cycles, including this one.
    patience : int
        Largest number of consecutive faulty cycles.
    previous, velocity, ages, limits, period : numpy.ndarray, Limits or float
        As for `judge`.
    out : numpy.ndarray
        Takes the torque, shape (n,): limited, or zero if the verdict is a stop. Pass it to `judge`
        as `demand`, which checks the ages of the reports.

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
        targets = out.tolist()
    else:
        targets = sent
    torques = []
    for torque, before, axis in zip(targets, sent, limits.axes, strict=True):
        largest = axis.torque
        before = min(max(before, -largest), largest)
        step = max(axis.rate * period - axis.slack, 0.0)
        torques.append(min(max(min(max(torque, -largest), largest), before - step), before + step))
    out[:] = torques
    return _PASS[Flag.DAMPED if policy is Policy.DAMP else Flag.HELD]


def largest_speed(
    velocity: NDArray[np.float64], ages: NDArray[np.float64], limits: Limits
) -> float:
    """Largest joint speed as a fraction of its limit, for `Latch.step`.

    Parameters
    ----------
    velocity, ages, limits : numpy.ndarray or Limits
        As for `brake`.

    Returns
    -------
    float
        The fraction; NaN if the speed of an axis is unknown, because it is not finite or its report
        is too old.
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
