"""Axes whose reports cannot be true: positions, or whole reports, that do not change any more.

An encoder that fails while its axis moves looks like an axis that stopped. What tells them apart is
that an axis cannot stop at once. How fast it was is estimated in three ways, and from the moment
from which its position stays the same to the bit, what it should have gone on by is added up:

- from the speed that its observer had, which dies away within `COAST`: of use at high speeds
  only, but without any model;
- from what was its speed on average, and from what a slow observer says that knows the model's
  acceleration and learns the rest of it (friction, a load), whichever is less; slowed down by
  what the model knows of braking and by the rest, and dying away within `LEAK`: so that an axis
  that is braked, or held by friction where it turns round, is not suspected.

And if the whole report stays the same while the torque asked for changes, the drive repeats an
old one; provided that its torque was seen to change before.
"""

from __future__ import annotations

import math

ENOUGH = 5.0
"""Encoder steps that an axis should have moved while its position stays the same to the bit."""

REPEATS = 3
"""Reports in a row with the same position before it counts: a frame may come twice, and a drive
that was held up may answer several commands at once."""

COAST = 20e-3
"""Time constant in which an axis may come to rest of which no acceleration is known, s."""

LEAK = 0.25
"""Time constant in which an expected motion is forgotten, s."""

AVERAGE = 0.15
"""Time constant of the average speed, s."""

LEARNING = 10.0
"""Both poles of the slow observer, 1/s."""

DEAF = 0.1
"""Time in which a report that stays the same to the bit belies a torque that changes, s."""

CHANGE = 0.01
"""Change of torque that counts then, as a share of the axis' limit."""


class Watch:
    """Watches whether the reports of one axis change as they should."""

    __slots__ = (
        "_asked",
        "_average",
        "_change",
        "_effort",
        "_effort_time",
        "_enough",
        "_excused",
        "_fast",
        "_hears",
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
        self._position = math.nan  # last one that was another one
        self._average = 0.0
        self._speed = 0.0  # of the slow observer,
        self._unknown = 0.0  # and the acceleration that the model does not know
        self._fast = 0.0  # speed of the observer when the position changed last
        self._slow = 0.0  # what is left of the speed that it must have had then,
        self._load = 0.0  # and the acceleration then that the model does not know
        self._way = 0.0  # of the second since
        self._still = 0.0  # time since,
        self._repeats = 0  # and reports
        self._effort = math.nan  # last reported torque that was another one
        self._effort_time = 0.0
        self._asked = 0.0  # torque that was asked for then
        self._hears = False  # whether the reported torque ever changed
        self._excused = 0  # reports that may repeat a position, as their drive was held up

    def excuse(self, reports: int) -> None:
        """Do not judge by the next reports: a drive that was held up may answer so many at once."""
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
        """Look at a report that was taken."""
        self._follow(w, known, dt)
        if y != self._position:
            self._excused = max(self._excused - 1, 0)
            self._position, self._fast = y, abs(w)
            self._way = self._still = self._slow = 0.0
            self._repeats = 0
            self._load = self._unknown
            if known is not None and self._average * self._speed > 0.0:
                self._slow = min(abs(self._average), abs(self._speed))
            self._hear(effort, asked, t)
            return False
        if self._excused:
            self._excused -= 1
            return False
        self._still += dt
        self._repeats += 1
        if known is not None and self._slow > 0.0:
            self._go_on(known, dt)
        if self._repeats >= REPEATS:
            if self._way > self._enough:
                return True
            far = COAST * self._fast
            if far > self._enough and far * (1.0 - math.exp(-self._still / COAST)) > self._enough:
                return True
        if effort != self._effort:
            self._hear(effort, asked, t)
            return False
        silent = self._hears and t - self._effort_time > DEAF
        return silent and abs(asked - self._asked) > self._change

    def _hear(self, effort: float, asked: float, t: float) -> None:
        """Take a report that differs from the one before, perhaps in its torque too."""
        if abs(effort - self._effort) > 0.0:  # not of NaN
            self._hears = True
        self._effort, self._effort_time, self._asked = effort, t, asked

    def _follow(self, w: float, known: float | None, dt: float) -> None:
        """Average and slow observer of the speed."""
        self._average += (dt / AVERAGE if dt < AVERAGE else 1.0) * (w - self._average)
        if known is None:
            self._speed, self._unknown = w, 0.0
            return
        part = LEARNING * dt if dt < 0.1 / LEARNING else 0.1
        rest = w - self._speed
        self._speed += (known + self._unknown) * dt + 2.0 * part * rest
        self._unknown += LEARNING * part * rest

    def _go_on(self, known: float, dt: float) -> None:
        """Add what the axis goes on by, from the speed that it must have had."""
        ahead = 1.0 if self._average > 0.0 else -1.0
        braking = min(ahead * (known + self._load), 0.0) - abs(self._load)
        slow = self._slow + braking * dt - self._slow * min(dt / LEAK, 1.0)
        self._slow = slow if slow > 0.0 else 0.0
        self._way += self._slow * dt
