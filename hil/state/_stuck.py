"""Detection of stuck encoders: positions, or whole reports, that wrongly remain constant.

An encoder that fails while its axis moves looks like an axis that stopped. But an axis cannot stop
at once. When a position remains equal to the bit, two expected distances are integrated from then
on; the encoder is stuck if one of them exceeds `ENOUGH` encoder steps:

- The first starts with the speed of the axis' observer, which decays within `COAST`. It needs no
  model, but detects only failures at high speeds.
- The second starts with the smaller of the average speed and the speed of a slow observer. This
  observer uses the model's acceleration and estimates the remaining acceleration (friction, a
  load). The speed is reduced by the model's braking and by the remaining acceleration, and decays
  within `LEAK`. Therefore an axis that is braked, or held by friction at a reversal, is not
  reported.

If the whole report remains constant while the commanded torque changes, the drive repeats an old
report. This is checked only after the reported torque has changed at least once.
"""

from __future__ import annotations

import math

ENOUGH = 5.0
"""Expected distance of an axis with constant position above which it is stuck, encoder steps."""

REPEATS = 3
"""Consecutive reports with the same position before an axis can be stuck: a frame may arrive twice,
and a delayed drive may answer several commands at once."""

COAST = 20e-3
"""Time constant in which an axis may come to rest if its acceleration is unknown, s."""

LEAK = 0.25
"""Time constant with which the expected speed decays, s."""

AVERAGE = 0.15
"""Time constant of the average speed, s."""

LEARNING = 10.0
"""Both poles of the slow observer, 1/s."""

DEAF = 0.1
"""Duration of constant reports during a change of torque after which an axis is stuck, s."""

CHANGE = 0.01
"""Smallest change of the commanded torque for this check, as a fraction of the axis' limit."""


class Watch:
    """Checks whether the reports of one axis change as expected."""

    __slots__ = (
        "_asked",
        "_average",
        "_change",
        "_effort",
        "_effort_time",
        "_enough",
        "_excused",
        "_fast",
        "_has_effort",
        "_load",
        "_position",
        "_repeats",
        "_slow",
        "_speed",
        "_still",
        "_unknown",
        "_way",
    )

    def __init__(self, step: float, torque_limit: float) -> None:
        self._enough = ENOUGH * step
        self._change = CHANGE * torque_limit
        self._position = math.nan  # position at its last change
        self._average = 0.0  # average speed
        self._speed = 0.0  # speed of the slow observer
        self._unknown = 0.0  # its estimate of the acceleration that the model lacks
        self._fast = 0.0  # speed of the axis' observer at the last change of the position
        self._slow = 0.0  # decaying speed for the second distance
        self._load = 0.0  # `_unknown` at the last change of the position
        self._way = 0.0  # second distance
        self._still = 0.0  # time since the last change of the position
        self._repeats = 0  # number of reports since then
        self._effort = math.nan  # reported torque at its last change
        self._effort_time = 0.0
        self._asked = 0.0  # commanded torque at that instant
        self._has_effort = False  # whether the reported torque ever changed
        self._excused = 0  # number of reports that may repeat a position after a delay

    def excuse(self, reports: int) -> None:
        """Skip the check of the next reports: a delayed drive may send so many at once."""
        self._excused = max(self._excused, reports)

    def look(
        self,
        y: float,
        w: float,
        known: float | None,
        effort: float,
        asked: float,
        t: float,
        dt: float,
    ) -> bool:
        """Check an accepted report; return whether the axis is stuck."""
        self._follow(w, known, dt)
        if y != self._position:
            self._excused = max(self._excused - 1, 0)
            self._position, self._fast = y, abs(w)
            self._way = self._still = self._slow = 0.0
            self._repeats = 0
            self._load = self._unknown
            if known is not None and self._average * self._speed > 0.0:
                self._slow = min(abs(self._average), abs(self._speed))
            self._store_effort(effort, asked, t)
            return False
        if self._excused:
            self._excused -= 1
            return False
        self._still += dt
        self._repeats += 1
        if known is not None and self._slow > 0.0:
            self._extend(known, dt)
        if self._repeats >= REPEATS:
            if self._way > self._enough:
                return True
            far = COAST * self._fast
            if far > self._enough and far * (1.0 - math.exp(-self._still / COAST)) > self._enough:
                return True
        if effort != self._effort:
            self._store_effort(effort, asked, t)
            return False
        silent = self._has_effort and t - self._effort_time > DEAF
        return silent and abs(asked - self._asked) > self._change

    def _store_effort(self, effort: float, asked: float, t: float) -> None:
        """Store the torques of a report that differs from the last one."""
        if abs(effort - self._effort) > 0.0:  # false for NaN
            self._has_effort = True
        self._effort, self._effort_time, self._asked = effort, t, asked

    def _follow(self, w: float, known: float | None, dt: float) -> None:
        """Update the average speed and the slow observer."""
        self._average += (dt / AVERAGE if dt < AVERAGE else 1.0) * (w - self._average)
        if known is None:
            self._speed, self._unknown = w, 0.0
            return
        part = LEARNING * dt if dt < 0.1 / LEARNING else 0.1
        rest = w - self._speed
        self._speed += (known + self._unknown) * dt + 2.0 * part * rest
        self._unknown += LEARNING * part * rest

    def _extend(self, known: float, dt: float) -> None:
        """Integrate the second expected distance."""
        ahead = 1.0 if self._average > 0.0 else -1.0
        braking = min(ahead * (known + self._load), 0.0) - abs(self._load)
        slow = self._slow + braking * dt - self._slow * min(dt / LEAK, 1.0)
        self._slow = slow if slow > 0.0 else 0.0
        self._way += self._slow * dt
