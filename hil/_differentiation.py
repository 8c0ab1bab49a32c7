"""Joint positions and velocities from encoder reports: tracking observers with a known delay.

Each axis has an observer of position x and velocity w with two equal poles at
``theta = exp(-2 pi bandwidth dt)`` (a critically damped g-h filter; fading memory):

    x- = x + (w + f/2) dt        w- = w + f        r = y - x-
    x  = x- + (1 - theta^2) r    w  = w- + (1 - theta)^2 r / dt

where dt is the time between the samples, whatever it is, and f the change of velocity that is
known from elsewhere: of an acceleration that was computed, or of a velocity that the drive
reports. Under a constant acceleration that f does not know, w is late by
``dt ((1 + theta) / (1 - theta) - 1/2)``, near ``1 / (pi bandwidth)``; what f knows is not late.
Steady speed is followed without error.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hil._stuck import StuckAxes

if TYPE_CHECKING:
    from hil.feedback import Feedback
    from hil.rig import Axis

HORIZON = 0.1
"""Longest time that a position is carried forward without a report, s."""

SHARE = 0.4
"""Bandwidth for axes whose drives report velocities, as a share of that without.

Of positions and velocities as MIT drives round them, this leaves less noise than either alone.
"""

SLACK = 4.0
"""Encoder steps by which a report may miss its prediction on top of what speed allows."""

PATIENCE = 3
"""Implausible reports in a row after which an axis counts as lost."""

FINEST = 25.0 / 65535.0
"""Step of a drive that reports radians, where its range is not known, rad."""


def velocity_delay(bandwidth: float, period: float) -> float:
    """Time by which an observer's velocity is late when nothing is known of the acceleration.

    Parameters
    ----------
    bandwidth : float
        Of the observer, Hz.
    period : float
        Time between reports, s.

    Returns
    -------
    float
        The delay against the instant of the last sample, s.
    """
    theta = math.exp(-2.0 * math.pi * bandwidth * period)
    return period * ((1.0 + theta) / (1.0 - theta) - 0.5)


def encoder_step(axis: Axis) -> float:
    """Smallest change of an axis' reported position.

    Parameters
    ----------
    axis : Axis
        The axis.

    Returns
    -------
    float
        At the joint, rad (m on a linear axis).
    """
    if axis.counts:
        return 2.0 * math.pi / axis.counts / axis.gear
    if "position" in axis.ranges:
        low, high = axis.ranges["position"]
        return (high - low) / 65535.0 / axis.gear
    return FINEST / axis.gear


class Differentiator:
    """Observers of all axes; `update` takes what was reported and predicts the present.

    Parameters
    ----------
    axes : sequence of Axis
        The axes.
    bandwidth : float
        Of the observers, Hz.
    latency : float
        Time from a sample to the instant that its report is stamped with, s.
    use_reported : bool
        Whether velocities that drives report are used.

    Attributes
    ----------
    position, velocity : numpy.ndarray
        Estimates for the present: rad, rad/s (m, m/s); NaN and 0 before the first report. An
        axis without reports is carried on for a while, then rests. Shape (n,).
    age : numpy.ndarray
        Time since the sample of the last report that was taken, s; infinite before the first.
        Shape (n,).
    stuck : numpy.ndarray
        Whether reports come that cannot be true, shape (n,), bool: their position stays the same
        to the bit although the axis must have gone on; or all of the report stays the same
        although the torque asked for changes, of a drive whose reported torque is known to
        change. An encoder that fails while its axis creeps cannot be told from one that rests.
    lost : numpy.ndarray
        Whether several reports in a row were implausible, shape (n,), bool. Until `reset` no
        further one is taken: who knows where the axis is now.
    implausible : numpy.ndarray
        Reports refused: not finite, of an axis that is lost, or further than the speed limit
        allows from both the prediction and the last position. Shape (n,), int64.
    repeated : numpy.ndarray
        Reports without a later sample than the one before, shape (n,), int64.
    """

    def __init__(
        self,
        axes: Sequence[Axis],
        bandwidth: float,
        latency: float = 0.0,
        use_reported: bool = True,
    ) -> None:
        n = self.size = len(axes)
        self.use_reported, self.latency = use_reported, latency
        self._rate = 2.0 * math.pi * bandwidth
        self._slow_rate = SHARE * self._rate
        self._steps = [encoder_step(axis) for axis in axes]
        self._fastest = [axis.speed_limit for axis in axes]
        self.position = np.full(n, np.nan)
        self.velocity = np.zeros(n)
        self.age = np.full(n, np.inf)
        limits = [axis.torque_limit for axis in axes]
        self._watch = StuckAxes(self._steps, limits)
        self.stuck = self._watch.stuck
        self.lost = np.zeros(n, dtype=np.bool_)
        self.implausible = np.zeros(n, dtype=np.int64)
        self.repeated = np.zeros(n, dtype=np.int64)
        self._still = [0.0] * n
        self.reset()

    def reset(self) -> None:
        """Forget all states: the last report of each axis is its first. Counters stay."""
        n = self.size
        self._counts = [0] * n
        self._x = [math.nan] * n
        self._w = [0.0] * n
        self._t = [-math.inf] * n
        self._reported = [math.nan] * n  # last velocity that the drive gave
        self._last = [math.nan] * n  # last position that was taken
        self._streak = [0] * n
        self.ready = False
        self.position.fill(np.nan)
        self.velocity.fill(0.0)
        self.age.fill(np.inf)
        self._watch.reset()
        self.lost.fill(False)

    def update(
        self,
        feedback: Feedback,
        now: float,
        acceleration: NDArray[np.float64] | None = None,
        torque: Sequence[float] | None = None,
    ) -> None:
        """Take the reports that are new, and predict all axes to the present.

        Parameters
        ----------
        feedback : Feedback
            Last reports; one is new if its count has changed.
        now : float
            The present, s of the loop's clock.
        acceleration : numpy.ndarray, optional
            Acceleration of the axes since the last call as far as it is known, shape (n,).
        torque : sequence of float, optional
            Torque that was asked for, N m (N).
        """
        counts = feedback.count.tolist()
        ahead = self._still
        if acceleration is not None:
            ahead = acceleration.tolist()
            if not math.isfinite(sum(ahead)):
                ahead = self._still
        if counts != self._counts:
            positions, times = feedback.position.tolist(), feedback.time.tolist()
            velocities = feedback.velocity.tolist() if self.use_reported else None
            efforts = feedback.torque.tolist()
            for i, count in enumerate(counts):
                if count != self._counts[i]:
                    speed = math.nan if velocities is None else velocities[i]
                    sampled = min(times[i], now) - self.latency
                    before = self._t[i]
                    if self._take(i, positions[i], speed, sampled, ahead[i]):
                        asked = math.nan if torque is None else torque[i]
                        known = None if ahead is self._still else ahead[i]
                        dt = sampled - before if before > -math.inf else 0.0
                        self._watch.look(
                            i, positions[i], self._w[i], known, efforts[i], asked, sampled, dt
                        )
            self._counts = counts
        position, velocity, age = [], [], []
        for x, w, t, a in zip(self._x, self._w, self._t, ahead, strict=True):
            past = now - t
            age.append(past)
            if past < HORIZON:
                position.append(x + (w + 0.5 * a * past) * past)
                velocity.append(w + a * past)
            else:
                position.append(x + w * HORIZON)
                velocity.append(0.0)
        self.position[:] = position
        self.velocity[:] = velocity
        self.age[:] = age
        if not self.ready:
            self.ready = all(map(math.isfinite, self._x))

    def _take(self, i: int, y: float, speed: float, t: float, a: float) -> bool:
        """Take one report of axis `i`: position, velocity (or NaN), instant, acceleration."""
        if self._streak[i] >= PATIENCE or not (math.isfinite(y) and math.isfinite(t)):
            return self._refuse(i)
        if abs(speed) > 2.0 * self._fastest[i]:
            speed = math.nan
        x = self._x[i]
        if x != x:
            self._x[i], self._t[i], self._last[i] = y, t, y
            self._reported[i] = speed
            self._w[i] = speed if speed == speed else 0.0
            return True
        dt = t - self._t[i]
        if dt <= 0.0:
            self.repeated[i] += 1
            return False
        gain, w = self._rate, self._w[i]
        known = speed - self._reported[i]
        if known == known:
            gain = self._slow_rate
        else:
            known = a * dt
        ahead = x + (w + 0.5 * known) * dt
        rest, reach = y - ahead, self._fastest[i] * dt + SLACK * self._steps[i]
        if abs(rest) > reach < abs(y - self._last[i]):
            return self._refuse(i)
        self._streak[i] = 0
        theta = math.exp(-gain * dt)
        left = 1.0 - theta
        self._x[i] = ahead + (1.0 + theta) * left * rest
        self._w[i] = w + known + left * left * rest / dt
        self._t[i], self._last[i], self._reported[i] = t, y, speed
        return True

    def _refuse(self, i: int) -> bool:
        self.implausible[i] += 1
        self._streak[i] += 1
        self._reported[i] = math.nan
        if self._streak[i] >= PATIENCE:
            self.lost[i] = True
        return False
