"""`concur gains`: gains of a task's outputs by three methods, with margins and torques."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import tomlkit
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from concur.certify import CertifiedGains, certified_gains
from concur.cli._answer import MARKS, Answer
from concur.control import (
    Gains,
    JointLimits,
    LoopResponse,
    Servo,
    design_gains,
    loop_response,
)
from concur.errors import ConcurError, SimulationError, UnknownNameError
from concur.files import replace_files, writing
from concur.io import Task, load_task
from concur.results import Row
from concur.rounding import rounded_down
from concur.tables import read_toml

METHODS = {"place": "pole placement", "lqr": "quadratic cost", "certified": "proved rate"}

DIGITS = 6
"""Significant digits of gains, in the file and in all results."""

REACH = 1.25
"""Default of the errors that certified gains cover, relative to those of the start: the tube also
has to contain the velocity errors."""

INSTANTS = 9
"""Configurations along the reference at which certified gains keep the torque limits."""

ADVISED = 10
"""Control periods in the delay margin at the advised rate, as for `SampleLimits.advised`."""


@dataclass(frozen=True, eq=False)
class Design:
    """Gains of one method, with the loop and the largest share of a torque limit in the task."""

    method: str
    stiffness: np.ndarray  # of each coordinate, 1/s^2
    damping: np.ndarray  # 1/s
    response: LoopResponse
    peaks: np.ndarray | None  # largest control inputs of the run, shape (nu,); None if it stopped
    share: float | None  # None without limits
    allowed: float
    rate: float | None = None  # proved, 1/s
    covers_start: bool | None = None
    stopped: str = ""

    @property
    def fits(self) -> bool:
        """Whether the run reached its end within the share of the torque limits."""
        return not self.stopped and (self.share is None or self.share <= self.allowed)

    def as_dict(self) -> dict[str, Any]:
        """Result for JSON."""
        margins = self.response.margins
        return {
            "method": self.method,
            "stiffness": self.stiffness.tolist(),
            "damping": self.damping.tolist(),
            "settling": self.response.settling_time.tolist(),
            "phase_margin": margins.phase_margin.tolist(),
            "disk_margin": margins.disk_margin,
            "delay_margin": margins.common_delay_margin,
            "longest_period": margins.hold_limit,
            "advised_rate": ADVISED / margins.common_delay_margin,
            "peak_torque": None if self.peaks is None else self.peaks.tolist(),
            "torque_share": self.share,
            "fits": self.fits,
            "proved_rate": self.rate,
            "covers_start": self.covers_start,
            "stopped": self.stopped,
        }


@dataclass(frozen=True, eq=False)
class GainsResult:
    """Designs of a task's gains."""

    task: Task
    designs: tuple[Design, ...]
    missing: tuple[str, ...]  # methods without a result, with the reason
    write: str | None
    written: bool = False

    @property
    def passed(self) -> bool:
        """Whether some design fits, or the written one."""
        return self.written if self.write else any(design.fits for design in self.designs)

    @property
    def problems(self) -> tuple[str, ...]:
        """Each design that does not fit, or was not found, with its reason."""
        return (*(_trouble(design) for design in self.designs if not design.fits), *self.missing)

    @property
    def rows(self) -> tuple[Row, ...]:
        """Largest share of a torque limit with the gains of each method."""
        return tuple(
            Row("largest share of a torque limit", d.share, d.allowed, "", d.method, d.fits)
            for d in self.designs
        )

    def answer(self) -> Answer:
        """Answer of the command."""
        status = "written" if self.written else "passed" if self.passed else "failed"
        written = f"{self.write} gains written" if self.written else ""
        refused = f"{self.write} gains do not fit, nothing is written" if self.write else ""
        return Answer(
            command="gains",
            passed=self.passed,
            status=status,
            name=self.task.name,
            robot=self.task.robot.name,
            problems=self.problems,
            files=[self.task.path] * self.written,
            rows=self.rows,
            own={
                "coordinates": [
                    f"{output.name}.{name}"
                    for output in self.task.outputs
                    for name in output.coordinate_names
                ],
                "designs": [design.as_dict() for design in self.designs],
            },
            table=_gains_table(self),
            shown=[_loop_table(self), *filter(None, [written or refused])],
        )


def task_gains(
    path: Path,
    settling: float,
    damping_ratio: float,
    torque_share: float,
    torque_limit: float | None,
    angle: float | None,
    distance: float | None,
    write: str | None,
    console: Console,
) -> Answer:
    """Find gains for a task, and write those of one method into its file."""
    _check_options(torque_share, torque_limit, write)
    task = load_task(path)
    servo = task.servo
    limits = _limits(task, servo, torque_limit)
    designs, missing = [], []
    with console.status("searching for gains"):
        for method in METHODS:
            try:
                found = _found(
                    method, task, servo, settling, damping_ratio, torque_share * limits,
                    angle, distance,
                )  # fmt: skip
                designs.append(_tried(method, found, task, servo, limits, torque_share))
            except ConcurError as error:
                if method == "place":  # an option is out of range
                    raise
                missing.append(f"{method}: {error}")
    result = GainsResult(task, tuple(designs), tuple(missing), write)
    chosen = next((design for design in designs if design.method == write), None)
    if chosen is not None and chosen.fits:
        _write(task, chosen)
        result = replace(result, written=True)
    return result.answer()


def _check_options(torque_share: float, torque_limit: float | None, write: str | None) -> None:
    if not 0.0 < torque_share <= 1.0:
        raise ConcurError(
            "option `--torque-share`",
            expected="a number above 0, at most 1",
            came=f"{torque_share:g}",
            cure="Write for example --torque-share 0.6.",
        )
    if torque_limit is not None and not 0.0 < torque_limit < math.inf:
        raise ConcurError(
            "option `--torque-limit`",
            expected="a finite number above 0, N m or N",
            came=f"{torque_limit:g}",
            cure="Omit it to use the limits of task and robot.",
        )
    if write is not None and write not in METHODS:
        raise UnknownNameError(
            "option `--write`",
            expected=" or ".join(METHODS),
            came=repr(write),
            cure="Write for example --write place.",
        )


def _limits(task: Task, servo: Servo, limit: float | None) -> np.ndarray:
    """Limits of the control inputs: those of the option, else the narrower of task and robot."""
    most = np.asarray(JointLimits.of(task.robot).torques, dtype=float)
    if limit is not None:
        most = np.full(len(servo.model.control_names), limit)
    limits = np.column_stack([-most, most])
    if limit is None and servo.torque_limits is not None:
        own = np.asarray(servo.torque_limits, dtype=float)
        limits = np.column_stack(
            [np.maximum(limits[:, 0], own[:, 0]), np.minimum(limits[:, 1], own[:, 1])]
        )
    return limits


def _found(
    method: str,
    task: Task,
    servo: Servo,
    settling: float,
    damping_ratio: float,
    limits: np.ndarray,
    angle: float | None,
    distance: float | None,
) -> Gains | CertifiedGains:
    """Gains by one method; all with unit length, as a task file has no metric."""
    if method == "place":
        return design_gains(task.outputs, settling, damping_ratio)
    if method == "lqr":
        return design_gains(task.outputs, settling, method="lqr")
    way = servo.feasibility(task.reference, task.duration, task.q0)
    way.require(task.name)
    chosen = np.unique(np.linspace(0, len(way.times) - 1, INSTANTS).round().astype(int))
    _, twists, accelerations = task.reference.sample(way.times[chosen])
    rotation, position = _start_errors(task, servo)
    return certified_gains(
        task.outputs,
        servo.model,
        limits,
        way.configurations[chosen],
        angle=math.radians(angle) if angle is not None else min(REACH * rotation, math.pi),
        distance=distance if distance is not None else REACH * position,
        twist=twists,
        acceleration=accelerations,
        length=1.0,
    )


def _start_errors(task: Task, servo: Servo) -> tuple[float, float]:
    """Largest rotation and position error of an output at the start, at least 0.01 rad and m."""
    x = _start(task, servo)[0]
    largest = {"rad": 0.01, "m": 0.01}
    at = 0
    for output in task.outputs:
        part, units = x[at : at + output.dim], np.array(output.coordinate_units)
        at += output.dim
        for unit in dict.fromkeys(units.tolist()):
            norm = float(np.linalg.norm(part[units == unit]))
            largest[unit] = max(largest[unit], norm)
    return largest["rad"], largest["m"]


def _start(task: Task, servo: Servo) -> tuple[np.ndarray, np.ndarray]:
    x, ve = servo.error(task.q0, task.shape_velocities(servo), task.reference(0.0))
    return np.asarray(x, dtype=float), np.asarray(ve, dtype=float)


def _tried(
    method: str,
    found: Gains | CertifiedGains,
    task: Task,
    servo: Servo,
    limits: np.ndarray,
    allowed: float,
) -> Design:
    """Simulate a task with gains, rounded as they are written."""
    stiffness, damping = (
        np.array([float(f"{x:.{DIGITS}g}") for x in np.diag(gain)])
        for gain in (found.stiffness, found.damping)
    )
    law = replace(task, stiffness=np.diag(stiffness), damping=np.diag(damping)).servo
    peaks, share, stopped = None, None, ""
    # Without limits of the law, whose torque would not exceed them.
    free = replace(law, torque_limits=None)
    try:
        run = task.simulate(free)
        peaks = np.abs(run.u_range).max(axis=0)
        if np.isfinite(limits).any():
            ends = np.where(np.isfinite(limits), limits, np.inf * np.sign(limits))
            share = float(
                np.maximum(run.u_range[1] / ends[:, 1], run.u_range[0] / ends[:, 0]).max()
            )
    except SimulationError as error:
        stopped = f"{error.where}: expected {error.expected}, got {error.came}"
    return Design(
        method,
        stiffness,
        damping,
        loop_response(law),
        peaks,
        share,
        allowed,
        found.rate if isinstance(found, CertifiedGains) else None,
        found.contains(*_start(task, servo)) if isinstance(found, CertifiedGains) else None,
        stopped,
    )


def _write(task: Task, design: Design) -> None:
    """Replace the gains in a task's file; comments and all other entries stay."""
    read_toml(task.path)  # the same errors as of other commands
    text = task.path.read_text(encoding="utf-8-sig")
    document: Any = tomlkit.parse(text)
    at = 0
    for output, table in zip(task.outputs, document["outputs"], strict=True):
        part = slice(at, at + output.dim)
        at += output.dim
        table["stiffness"] = _entry(design.stiffness[part])
        table["damping"] = _entry(design.damping[part])
    with writing(task.path.parent):
        replace_files({task.path: tomlkit.dumps(document).encode()})


def _entry(values: np.ndarray) -> float | list[float]:
    """One number if all are equal."""
    numbers: list[float] = values.tolist()
    return numbers[0] if len(set(numbers)) == 1 else numbers


def _trouble(design: Design) -> str:
    if design.stopped:
        return f"{design.method}: the run stopped early, {design.stopped}"
    return (
        f"{design.method}: the run needs {design.share:.3g} of a torque limit, more than "
        f"{design.allowed:g}"
    )


def _gains_table(result: GainsResult) -> Table:
    table = Table(title="Gains", title_justify="left")
    for title in ("method", "output", "stiffness\n1/s^2", "damping\n1/s", "settling\n2 %, s"):
        table.add_column(title, justify="left" if title in ("method", "output") else "right")
    for design in result.designs:
        at = 0
        for output in result.task.outputs:
            part = slice(at, at + output.dim)
            values = (design.stiffness, design.damping, design.response.settling_time)
            shown = [", ".join(dict.fromkeys(f"{x:.4g}" for x in v[part])) for v in values]
            table.add_row("" if at else design.method, escape(output.name), *shown)
            at += output.dim
    return table


def _loop_table(result: GainsResult) -> Table:
    table = Table(title="Loop, and torques of the run", title_justify="left")
    table.add_column("")
    for design in result.designs:
        table.add_column(design.method, justify="right")
    covers = {True: "yes", False: "no", None: ""}
    margins = [design.response.margins for design in result.designs]
    rows = {
        "phase margin, deg": [f"{np.abs(m.phase_margin).min():.3g}" for m in margins],
        "disk margin": [f"{m.disk_margin:.3g}" for m in margins],
        "delay margin, ms": [f"{1e3 * m.common_delay_margin:.4g}" for m in margins],
        "control rate, least, Hz": [f"{1.0 / m.hold_limit:.3g}" for m in margins],
        "control rate, advised, Hz": [f"{ADVISED / m.common_delay_margin:.3g}" for m in margins],
        "proved decay, 1/s": [
            "" if design.rate is None else rounded_down(design.rate, 4) for design in result.designs
        ],
        "proof covers the start": [covers[design.covers_start] for design in result.designs],
        "largest share of a torque limit": [_share_text(design) for design in result.designs],
        "fits": [MARKS[design.fits] for design in result.designs],
    }
    for title, values in rows.items():
        table.add_row(title, *values)
    return table


def _share_text(design: Design) -> str:
    if design.stopped:
        return "run stopped"
    return "no limits" if design.share is None else f"{design.share:.3g}"
