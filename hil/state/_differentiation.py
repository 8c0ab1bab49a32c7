"""Joint positions and velocities from encoder reports: tracking observers with a known delay.

Each axis has an observer of position x and velocity w with two equal poles at
``theta = exp(-2 pi bandwidth dt)`` (a critically damped g-h filter; fading memory):

    x- = x + (w + f/2) dt        w- = w + f        r = y - x-
    x  = x- + (1 - theta^2) r    w  = w- + (1 - theta)^2 r / dt

where dt is the time between the samples, which may vary, and f is the known change of velocity, of
a computed acceleration or of a velocity that the drive reports. Under a constant acceleration
without f, the delay of w is ``dt ((1 + theta) / (1 - theta) - 1/2)``, nearly
``1 / (pi bandwidth)``. The part of the acceleration in f causes no delay. Constant speed is
estimated without error.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from hil.drives.feedback import Feedback
    from hil.settings import Axis

HORIZON = 0.1
"""Longest extrapolation of a position without a report, s."""

SHARE = 0.4
"""Bandwidth for axes whose drives report velocities, as a fraction of the bandwidth for others.

With the rounding of MIT drives, this gives less noise than positions or velocities alone.
"""

SLACK = 4.0
"""Tolerated difference of a report from its prediction, in addition to the speed limit, encoder
steps."""

LONGEST_WAIT = 8.0
"""Longest gap for which the next report may be delayed, periods: after longer gaps the clock may
have jumped."""

PATIENCE = 3
"""Consecutive implausible reports after which an axis counts as lost."""

ABSURD = 1e6
"""Sum of accelerations above which they are ignored, rad/s^2 (m/s^2)."""

FINEST = 25.0 / 65535.0
"""Step of a drive that reports radians, if its range is unknown, rad."""


def velocity_delay(bandwidth: float, period: float) -> float:
    """Delay of an observer's velocity if the acceleration is unknown, s."""
    theta = math.exp(-2.0 * math.pi * bandwidth * period)
    return period * ((1.0 + theta) / (1.0 - theta) - 0.5)


def encoder_step(axis: Axis) -> float:
    """Smallest change of an axis' reported position."""
    if axis.counts:
        return 2.0 * math.pi / axis.counts / axis.gear
    if "position" in axis.ranges:
        low, high = axis.ranges["position"]
        return (high - low) / 65535.0 / axis.gear
    return FINEST / axis.gear


class Observer:
    """Observer of one axis: position x and velocity w at the last sample, at instant t."""

    __slots__ = (
        "_axis",
        "_fastest",
        "_last",
        "_period",
        "_rate",
        "_reported",
        "_slack",
        "_stamp",
        "implausible",
        "refused",
        "repeated",
        "t",
        "w",
        "x",
    )

    def __init__(self, axis: Axis, bandwidth: float, period: float = math.inf) -> None:
        self._axis, self._period = axis, period
        self._rate = 2.0 * math.pi * bandwidth
        self._fastest = axis.speed_limit
        self._slack = SLACK * encoder_step(axis)
        self.implausible = self.repeated = 0
        self.reset()

    def reset(self) -> None:
        """Reset all states, but not the counters."""
        self.x, self.w, self.t = math.nan, 0.0, -math.inf
        self.refused = 0  # number of consecutive implausible reports
        self._stamp = -math.inf  # instant in the last accepted report
        self._last = math.nan  # position in it
        self._reported = math.nan  # velocity in it

    def take(self, y: float, speed: float, t: float, known: float | None) -> bool:
        """Process one report; return whether it is accepted."""
        if self.refused >= PATIENCE or not (math.isfinite(y) and math.isfinite(t)):
            return self._refuse()
        if abs(speed) > 2.0 * self._fastest:
            speed = math.nan
        dt = t - self.t
        if dt == math.inf:
            self.x, self.t, self._last, self._reported = y, t, y, speed
            self._stamp = t
            self.w = speed if speed == speed else 0.0
            return True
        if dt <= 0.0:
            self.repeated += 1
            return False
        stamp = t
        missed = (t - self._stamp) / self._period
        if 1.5 < missed < LONGEST_WAIT:
            t = self._sampled(y, t)
            dt = t - self.t
        rate, gained = self._rate, speed - self._reported
        if gained == gained:
            rate *= SHARE
        else:
            gained = 0.0 if known is None else known * dt
        ahead = self.x + (self.w + 0.5 * gained) * dt
        rest, reach = y - ahead, self._fastest * dt + self._slack
        if abs(rest) > reach < abs(y - self._last):
            return self._refuse()
        theta = math.exp(-rate * dt)
        left = 1.0 - theta
        self.x = ahead + (1.0 + theta) * left * rest
        self.w += gained + left * left * rest / dt
        self.t, self._last, self._reported, self.refused = t, y, speed, 0
        self._stamp = stamp
        return True

    def _sampled(self, y: float, t: float) -> float:
        """Estimated instant at which a report after a gap was sampled, as it may be delayed.

        If the axis has moved less than expected, the sample is older than the report's instant.
        """
        dt = t - self.t
        way = self.w * dt
        share = (y - self.x) / way if abs(way) > self._slack else 1.0
        if not 0.0 < share < 1.0:
            return t
        return self.t + max(share * dt, min(0.5 * self._period, dt))

    def _refuse(self) -> bool:
        self.implausible += 1
        self.refused += 1
        self._reported = math.nan
        return False


class Differentiator:
    """Observers of all axes; `update` processes reports and predicts the present state.

    The arrays, shape (n,), are those of `Estimator`. A report after a gap of more than one and a
    half periods may have been sampled before its instant.
    """

    def __init__(
        self,
        axes: Sequence[Axis],
        bandwidth: float,
        latency: float = 0.0,
        use_reported: bool = True,
        period: float = math.inf,
    ) -> None:
        n = self.size = len(axes)
        self.use_reported, self.latency = use_reported, latency
        self._observers = [Observer(axis, bandwidth, period) for axis in axes]
        self.position = np.full(n, np.nan)
        self.velocity = np.zeros(n)
        self.age = np.full(n, np.inf)
        self.lost = np.zeros(n, dtype=np.bool_)
        self.implausible = np.zeros(n, dtype=np.int64)
        self.repeated = np.zeros(n, dtype=np.int64)
        self._none = [math.nan] * n
        self.reset()

    def reset(self) -> None:
        """Restart with the last report of each axis; counters keep their values."""
        for observer in self._observers:
            observer.reset()
        self._counts, self._clean = [0] * self.size, True
        self.ready = False
        self.position.fill(np.nan)
        self.velocity.fill(0.0)
        self.age.fill(np.inf)
        self.lost.fill(False)

    def update(
        self,
        feedback: Feedback,
        now: float,
        acceleration: NDArray[np.float64] | None = None,
    ) -> None:
        """Process new reports, and predict all axes to the present."""
        ahead = None if acceleration is None else acceleration.tolist()
        if ahead is not None and not sum(map(abs, ahead)) < ABSURD:  # also for NaN
            ahead = None
        counts = feedback.count.tolist()
        if counts != self._counts:
            self._take(feedback, counts, now, ahead)
        position, velocity, age = [], [], []
        for i, observer in enumerate(self._observers):
            past, w = now - observer.t, observer.w
            age.append(past)
            if past >= HORIZON:
                position.append(observer.x + w * HORIZON)
                velocity.append(0.0)
            else:
                gained = 0.0 if ahead is None else ahead[i] * past
                position.append(observer.x + (w + 0.5 * gained) * past)
                velocity.append(w + gained)
        self.position[:] = position
        self.velocity[:] = velocity
        self.age[:] = age
        if not self.ready:
            self.ready = max(age, default=0.0) < math.inf

    def _take(
        self, feedback: Feedback, counts: list[int], now: float, ahead: list[float] | None
    ) -> None:
        """Pass new reports to the observers."""
        positions, times = feedback.position.tolist(), feedback.time.tolist()
        speeds = feedback.velocity.tolist() if self.use_reported else self._none
        clean = True
        for i, observer in enumerate(self._observers):
            if counts[i] != self._counts[i]:
                sampled = min(times[i], now) - self.latency
                known = None if ahead is None else ahead[i]
                if not observer.take(positions[i], speeds[i], sampled, known):
                    clean = False
        self._counts = counts
        if not (clean and self._clean):
            self._copy_findings()
        self._clean = clean

    def _copy_findings(self) -> None:
        """Copy the observers' findings to the arrays; rarely needed."""
        observers = self._observers
        self.lost[:] = [o.refused >= PATIENCE for o in observers]
        self.implausible[:] = [o.implausible for o in observers]
        self.repeated[:] = [o.repeated for o in observers]
