"""The reference of a run, sampled in advance for the loop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hil._concur import Task, TrackingLaw, reference_for
from hil.errors import RigError

BLOCK = 500
"""Instants sampled at once."""


@dataclass(frozen=True, eq=False)
class Plan:
    """Reference of a task at the instants of the loop."""

    period: float
    pose: NDArray[np.float64]  # of all outputs in their order, flat, shape (n, pose_size)
    twist: NDArray[np.float64]  # shape (n, twist_size)
    acceleration: NDArray[np.float64]
    push: NDArray[np.float64] | None = None  # added to the torques of the law, shape (n, axes)

    def __len__(self) -> int:
        return len(self.pose)

    @property
    def duration(self) -> float:
        """Time of the last instant, s."""
        return (len(self) - 1) * self.period


def sample_plan(
    task: Task,
    servo: TrackingLaw,
    period: float,
    duration: float | None = None,
    progress: Callable[[float], Any] | None = None,
) -> Plan:
    """Sample the reference of a task at 0, period, ... up to a duration; default: the task's."""
    length = task.duration if duration is None else duration
    if not 0.0 < length <= task.duration * (1.0 + 1e-12):
        raise RigError(
            "duration of the run",
            expected=f"a time above zero, at most the task's {task.duration:g} s",
            came=f"{length!r:.40}",
            cure="Omit it to run the whole task, or make the task longer.",
        )
    count = int(np.floor(length / period + 1e-9)) + 1
    pose = np.empty((count, servo.pose_size))
    twist = np.empty((count, servo.twist_size))
    acceleration = np.empty((count, servo.twist_size))
    # In blocks of one size: the numbers at an instant do not depend on the length of the plan.
    given = task.reference if servo.outputs else None
    reference = reference_for(given, servo.outputs, f"rig of `{task.name}`")
    for start in range(0, count, BLOCK):
        rows = slice(start, min(start + BLOCK, count))
        sampled = reference.sample(np.arange(rows.start, rows.stop) * period)
        pose[rows], twist[rows], acceleration[rows] = sampled
        if progress is not None:
            progress(start / count)
    for array, name in ((pose, "pose"), (twist, "twist"), (acceleration, "acceleration")):
        bad = ~np.isfinite(array).all(axis=1)
        if bad.any():
            raise RigError(
                f"reference of `{task.name}`, {name} at {np.argmax(bad) * period:g} s",
                expected="finite numbers",
                came="NaN or infinite numbers",
                cure="Correct the reference at this time. No frame was sent to a drive.",
            )
    return Plan(period, pose, twist, acceleration)
