"""Start and reach of a task: where outputs are, how far the reference is, and the margins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.markup import escape
from rich.table import Table

from concur.control import Reach, TrackingLaw, lost_direction
from concur.io import Task

CLOSE = 20.0
"""Multiple of the singular margin below which a configuration counts as nearly singular."""


@dataclass(frozen=True)
class StartResult:
    """Outputs at the start of a task, their distances to the reference, and its reach."""

    task: Task
    servo: TrackingLaw
    pose: np.ndarray  # (pose_size,)
    error: np.ndarray  # (size,)
    margin: float
    reach: Reach

    @classmethod
    def of(cls, task: Task, servo: TrackingLaw) -> StartResult:
        """Evaluate the start, and seek the reference from there."""
        error = servo.pose_error(task.q0, task.reference(0.0).flat_pose)
        reach = servo.reach(task.reference, task.duration, task.q0)
        return cls(task, servo, servo.output(task.q0), error, servo.margin(task.q0), reach)

    @property
    def problems(self) -> list[str]:
        """A sentence for each reason why the task cannot be tracked."""
        found = []
        if self.margin < self.servo.refused_below:
            found.append(f"the start is singular: {lost_direction(self.servo, self.task.q0)}")
        if not self.reach.complete:
            found.append(f"the reference is out of reach: {self._worst}")
        return found

    @property
    def lost(self) -> str:
        """Direction that is nearly lost at the start or on the way; empty if none is."""
        bound = CLOSE * self.servo.singular_margin
        least = int(self.reach.margins.argmin())
        if self.margin < min(bound, self.reach.margins[least]):
            return f"at the start, {lost_direction(self.servo, self.task.q0)}"
        if self.reach.margins[least] < bound:
            where = lost_direction(self.servo, self.reach.configurations[least])
            return f"at t = {self.reach.times[least]:.3g} s, {where}"
        return ""

    @property
    def _worst(self) -> str:
        at = self.reach.worst
        parts = _distances(self.servo, self.reach.errors[at])
        far = max(parts, key=lambda name: max(parts[name].values()))
        return f"output `{far}` stays {_shown(parts[far])} away at t = {self.reach.times[at]:.3g} s"

    def as_dict(self) -> dict[str, Any]:
        """Result for JSON: metres and radians, times in s."""
        reach, least = self.reach, int(self.reach.margins.argmin())
        outputs, at, distances = [], 0, _distances(self.servo, self.error)
        residuals = _distances(self.servo, reach.errors[reach.worst])
        for output in self.servo.outputs:
            pose = self.pose[at : at + output.pose_size].tolist()
            at += output.pose_size
            outputs.append(
                {
                    "name": output.name,
                    "pose": pose,
                    "distance": distances[output.name],
                    "residual": residuals[output.name],
                }
            )
        return {
            "outputs": outputs,
            "margin": self.margin,
            "within_reach": reach.complete,
            "residual_time": float(reach.times[reach.worst]),
            "least_margin": float(reach.margins[least]),
            "least_margin_time": float(reach.times[least]),
            "nearly_lost": self.lost,
        }

    def shown(self) -> list[str | Table]:
        """Table and lines for the terminal."""
        table = Table(title="Start", title_justify="left")
        for title in ("output", "position at the start", "reference away by"):
            table.add_column(title)
        at, distances = 0, _distances(self.servo, self.error)
        for output in self.servo.outputs:
            values = np.round(self.pose[at : at + output.pose_size], 9) + 0.0
            at += output.pose_size
            names = zip(output.lie.coordinate_names, values, strict=True)
            pose = " ".join(f"{name} {x:.4g}" for name, x in names)
            table.add_row(escape(output.name), pose, _shown(distances[output.name]))
        reach, least = self.reach, int(self.reach.margins.argmin())
        whole = f"reach: the whole reference, up to t = {reach.times[-1]:g} s"
        return [
            table,
            whole if reach.complete else f"reach: not the whole reference, {self._worst}",
            f"decoupling margin: {self.margin:.3g} at the start, along the reference at least "
            f"{reach.margins[least]:.3g} (t = {reach.times[least]:.3g} s)",
            *([f"nearly singular {self.lost}"] if self.lost else []),
        ]


def _distances(servo: TrackingLaw, error: np.ndarray) -> dict[str, dict[str, float]]:
    """Length of each output's error by unit, m and rad."""
    found, start = {}, 0
    for output in servo.outputs:
        part, units = error[start : start + output.dim], np.array(output.coordinate_units)
        start += output.dim
        found[output.name] = {
            unit: float(np.linalg.norm(part[units == unit]))
            for unit in dict.fromkeys(units.tolist())
        }
    return found


def _shown(sizes: dict[str, float]) -> str:
    return ", ".join(f"{round(size, 9):.3g} {unit}" for unit, size in sizes.items())
