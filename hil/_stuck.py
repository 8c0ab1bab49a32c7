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
from collections.abc import Sequence

import numpy as np

ENOUGH = 5.0
"""Encoder steps that an axis should have moved while its position stays the same to the bit."""

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


class StuckAxes:
    """Watches whether the reports of axes change as they should.

    Parameters
    ----------
    steps : sequence of float
        Smallest change of the reported position of each axis, rad (m).
    torque_limits : sequence of float
        Largest torque of each axis, N m (N).

    Attributes
    ----------
    stuck : numpy.ndarray
        What was found, shape (n,), bool.
    """

    def __init__(self, steps: Sequence[float], torque_limits: Sequence[float]) -> None:
        self._enough = [ENOUGH * step for step in steps]
        self._change = [CHANGE * limit for limit in torque_limits]
        self.stuck = np.zeros(len(steps), dtype=np.bool_)
        self.reset()

    def reset(self) -> None:
        """Forget what was reported."""
        n = len(self._enough)
        self._position = [math.nan] * n  # last one that was another one
        self._average = [0.0] * n
        self._speed = [0.0] * n  # of the slow observer,
        self._unknown = [0.0] * n  # and the acceleration that the model does not know
        self._fast = [0.0] * n  # speed of the observer when the position changed last
        self._slow = [0.0] * n  # what is left of the speed that it must have had then,
        self._load = [0.0] * n  # and the acceleration then that the model does not know
        self._way = [0.0] * n  # of the second since
        self._still = [0.0] * n  # time since
        self._effort = [math.nan] * n  # last reported torque that was another one
        self._effort_time = [0.0] * n
        self._asked = [0.0] * n  # torque that was asked for then
        self._hears = [False] * n  # whether the reported torque ever changed
        self.stuck.fill(False)

    def look(
        self,
        i: int,
        y: float,
        w: float,
        known: float | None,
        effort: float,
        asked: float,
        t: float,
        dt: float,
    ) -> None:
        """Look at a report that was taken.

        Parameters
        ----------
        i : int
            Index of the axis.
        y, w : float
            Its position, and the speed that its observer then has.
        known : float or None
            Acceleration that the model knows.
        effort, asked : float
            Torque that the drive reports, and that was asked for; NaN if there is none.
        t, dt : float
            Instant of the sample, and time since the one before, s; 0 for the first.
        """
        self._follow(i, w, known, dt)
        deaf = False
        if y != self._position[i]:
            self._position[i], self._fast[i] = y, abs(w)
            self._way[i] = self._still[i] = self._slow[i] = 0.0
            self._load[i] = self._unknown[i]
            if known is not None and self._average[i] * self._speed[i] > 0.0:
                self._slow[i] = min(abs(self._average[i]), abs(self._speed[i]))
        else:
            self._still[i] += dt
            self._go_on(i, known, dt)
            if effort == self._effort[i]:
                silent = self._hears[i] and t - self._effort_time[i] > DEAF
                deaf = silent and abs(asked - self._asked[i]) > self._change[i]
        if not (effort == self._effort[i] and self._still[i]):
            self._hears[i] = self._hears[i] or abs(effort - self._effort[i]) > 0.0  # not of NaN
            self._effort[i], self._effort_time[i], self._asked[i] = effort, t, asked
        far = COAST * self._fast[i] * (1.0 - math.exp(-self._still[i] / COAST))
        self.stuck[i] = deaf or max(far, self._way[i]) > self._enough[i]

    def _follow(self, i: int, w: float, known: float | None, dt: float) -> None:
        """Average and slow observer of the speed."""
        part = dt / AVERAGE if dt < AVERAGE else 1.0
        self._average[i] += part * (w - self._average[i])
        if known is None:
            self._speed[i], self._unknown[i] = w, 0.0
            return
        part = LEARNING * dt if dt < 0.1 / LEARNING else 0.1
        rest = w - self._speed[i]
        self._speed[i] += (known + self._unknown[i]) * dt + 2.0 * part * rest
        self._unknown[i] += LEARNING * part * rest

    def _go_on(self, i: int, known: float | None, dt: float) -> None:
        """Add what the axis goes on by, from the speed that it must have had."""
        slow = self._slow[i]
        if slow > 0.0 and known is not None:
            ahead = 1.0 if self._average[i] > 0.0 else -1.0
            braking = min(ahead * (known + self._load[i]), 0.0) - abs(self._load[i])
            slow += braking * dt - slow * min(dt / LEAK, 1.0)
            self._slow[i] = max(slow, 0.0)
            self._way[i] += self._slow[i] * dt
