"""The pushes of a commissioning, and the plan that holds the start of the task and pushes."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hil._concur import TrackingLaw
from hil._plan import Plan, sample_plan
from hil.settings import Rig
from hil.state import encoder_step
from hil.state.estimator import Estimator

SETTLING, BETWEEN = 0.4, 0.2
"""Time before the first push, and after each of them, s."""

SHORTEST, LONGEST = 0.06, 0.5
"""Bounds of the time T of a push, s."""

STEPS = 64.0
"""Steps of the encoder that a push should move its axis."""

SPEED = 0.25
"""Largest speed of an axis by a push, as a fraction of its speed limit."""


@dataclass(frozen=True)
class Push:
    """Push of one axis: its torque, N m (N), and the cycles in which it begins and ends."""

    axis: int
    torque: float
    first: int
    quarter: int  # cycles of the time T

    @property
    def last(self) -> int:
        """Cycle after the push."""
        return self.first + 4 * self.quarter

    def at(self, cycle: int) -> float:
        """Torque in a cycle."""
        place = (cycle - self.first) // self.quarter
        return self.torque * (0.0, 1.0, -1.0, -1.0, 1.0)[place + 1 if 0 <= place < 4 else 0]


def pushes_of(rig: Rig, ease: NDArray[np.float64]) -> list[Push]:
    """One push for each axis; `ease`: acceleration of each motor by a unit of its torque."""
    period, cycle, found = rig.loop.period, round(SETTLING / rig.loop.period), []
    for k, axis in enumerate(rig.axes):
        rate = abs(float(ease[k])) * axis.test_torque
        wanted = math.sqrt(STEPS * encoder_step(axis) / rate) if rate > 0.0 else LONGEST
        time = min(max(wanted, SHORTEST), LONGEST)
        torque = axis.test_torque * min(1.0, SPEED * axis.speed_limit / max(rate * time, 1e-300))
        quarter = max(2, round(time / period))
        found.append(Push(k, torque, cycle, quarter))
        cycle = found[-1].last + round(BETWEEN / period)
    return found


@dataclass(frozen=True, eq=False)
class PushedPlan(Plan):
    """Plan of a commissioning, with its pushes."""

    pushes: tuple[Push, ...] = ()


def pushed_plan(rig: Rig, law: TrackingLaw) -> PushedPlan:
    """Hold the start of the task, and push each axis."""
    estimator, n, period = Estimator(rig, law, compiled=False), len(rig.axes), rig.loop.period
    estimator.acceleration(np.zeros(n))
    pushes = tuple(pushes_of(rig, np.diag(estimator.ease)))
    count = pushes[-1].last + round(BETWEEN / period)
    push = np.zeros((count, n))
    for one in pushes:
        push[:, one.axis] = [one.at(cycle) for cycle in range(count)]
    pose = np.repeat(sample_plan(rig.task, law, period, period).pose[:1], count, axis=0)
    still = np.zeros((count, law.twist_size))
    return PushedPlan(period, pose, still, still, push, pushes)
