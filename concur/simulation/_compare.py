"""Runs side by side: errors, torques, energy, margin and broken limits in one table."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import casadi as ca
import numpy as np
import scipy

from concur.control import JointLimits, TrackingLaw, driven_by, law_parameters, peak_label
from concur.errors import ConcurError, SimulationError, shown
from concur.outputs import Output, Reference, reference_for
from concur.results import Figures, JsonResult, Row, Table, aligned, picked, show
from concur.robot import Mechanism, control_velocities, coordinates
from concur.simulation._findings import SETTLED, findings, largest_error, settling_time
from concur.simulation._motors import heat_of, heat_rows
from concur.simulation._plant import Plant
from concur.simulation._record import Recorder
from concur.simulation._run_data import RunData, error_parts

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEAST = 1e-6
"""Error at the start, m or rad, up to which a run has neither settling time nor overshoot."""


BROKEN = "limits broken"
"""Label of their number in a comparison."""


@dataclass(frozen=True, eq=False)
class RunRecord(JsonResult):
    """The part of a run that a comparison reads; of a `Run`, or of a recorded one.

    Parameters
    ----------
    robot : Mechanism
        The robot that moved.
    outputs : sequence of Output
        Outputs that follow the reference.
    t : numpy.ndarray
        Times, shape (k,), s.
    q, v, u : numpy.ndarray
        Configuration, velocity and controls, shapes (k, nq), (k, nv) and (k, nu).
    error : numpy.ndarray
        Pose errors of all outputs, shape (k, size), m and rad.
    margin : numpy.ndarray
        Decoupling margin, shape (k,).
    q_range, v_range, u_range : numpy.ndarray
        Smallest and largest q, v and u over all stages, shapes (2, nq), (2, nv) and (2, nu).
    joint_limits : JointLimits
        Limits of the joints.
    name : str
        Name of its task or robot.
    stopped : str
        Why it ended early; empty for a whole run.
    judged : tuple of Row
        Numbers beside their limits: those of the file, or of the run of a task.
    parameters : str
        Gains and other parameters of its law in words. Default: unknown.

    Examples
    --------
    >>> import concur as cc
    >>> robot = cc.robots.rover_arm()
    >>> base = cc.Output("base", "chassis", "R2", point=(0.25, 0, 0))
    >>> servo = cc.Servo(cc.reduce(robot), [base], stiffness=4, damping=4)
    >>> goal = cc.references.hold([0.3, 0.0])
    >>> run = cc.simulate(robot, servo, goal, 0.1, robot.neutral(), [0] * 5, dt=0.01)
    >>> list(cc.simulation.RunRecord.of(run).errors)
    [('base', 'm')]
    """

    kind = "run"

    robot: Mechanism
    outputs: Sequence[Output]
    t: np.ndarray
    q: np.ndarray
    v: np.ndarray
    u: np.ndarray
    error: np.ndarray
    margin: np.ndarray
    q_range: np.ndarray
    v_range: np.ndarray
    u_range: np.ndarray
    joint_limits: JointLimits
    name: str = ""
    stopped: str = ""
    judged: tuple[Row, ...] = ()
    parameters: str = ""

    @classmethod
    def of(cls, run: RunData) -> RunRecord:
        """Take the arrays of a run.

        Parameters
        ----------
        run : Run
            The run.

        Returns
        -------
        RunRecord
            Its arrays.
        """
        names = ("t", "q", "v", "u", "error", "margin", "q_range", "v_range", "u_range")
        arrays = {name: getattr(run, name) for name in names}
        of_task = run.tolerances is not None
        return cls(
            robot=run.robot, outputs=tuple(run.servo.outputs), joint_limits=run.joint_limits,
            judged=(*run.required, *findings(run, run.tolerances)) if of_task else (),
            parameters=law_parameters(run.servo), **arrays,
        )  # fmt: skip

    @property
    def limit_rows(self) -> tuple[Row, ...]:
        """Extremes of what has a limit of the robot, joints and motors, beside the limits."""
        limits, applied = self.joint_limits, np.clip(self.u, *self.u_range)
        heat = heat_of(self.robot, self.t, applied)
        ranges = self.q_range, self.v_range, self.u_range, limits.motor_range(self.v)
        return (*limits.judge(*ranges), *heat_rows(self.robot, heat))

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """Judged numbers; else errors, smallest margin, and limits of joints."""
        found = [Row("stopped early", self.stopped, holds=False)] if self.stopped else []
        if self.judged:
            return (*found, *self.judged)
        for (name, unit), error in self.errors.items():
            norm = np.linalg.norm(error, axis=1)
            found.append(largest_error(name, unit, self.t, norm))
            found.append(Row(f"error of {name}, at the end", float(norm[-1]), unit=unit))
        if self.margin.size:
            found.append(Row("smallest decoupling margin", float(self.margin.min())))
        return (*found, *self.limit_rows)

    @property
    def figures(self) -> Figures:
        """Errors, controls and margin over time."""
        return Comparison((self.name or self.robot.name,), (self,)).figures

    @cached_property
    def errors(self) -> dict[tuple[str, str], np.ndarray]:
        """Errors, shape (k, n), by output and unit; "hand, position" if an output has both."""
        return {
            (", ".join(name), unit): self.error[:, places]
            for name, unit, places in error_parts(self.outputs)
        }

    @property
    def controls(self) -> dict[tuple[str, str], list[int]]:
        """Columns of the controls by what they drive, as `driven_by`, and unit, N m or N."""
        columns: dict[tuple[str, str], list[int]] = {}
        names = zip(self.robot.control_names, self.robot.control_units, strict=True)
        for k, (name, unit) in enumerate(names):
            columns.setdefault((driven_by(self.robot, name), unit), []).append(k)
        return columns

    @property
    def duration(self) -> float:
        """Length, s."""
        return float(self.t[-1] - self.t[0])

    @cached_property
    def energy(self) -> float:
        """Energy that the controls supply where they drive the robot, J; braking returns none."""
        q, v = ca.SX.sym("q", self.robot.nq), ca.SX.sym("v", self.robot.nv)
        rates = ca.Function("rates", [q, v], [control_velocities(self.robot, q, v)])
        power = self.u * np.array(ca.DM(rates(self.q.T, self.v.T))).T
        return float(scipy.integrate.trapezoid(np.maximum(power, 0.0).sum(axis=1), self.t))

    @property
    def broken(self) -> tuple[str, ...]:
        """Tolerances, requirements and limits that the run misses, each with value and limit."""
        return tuple(
            f"{row.quantity} {row.shown}, limit {row.shown_limit}"
            for row in self.judged or self.limit_rows
            if row.holds is False
        )


@dataclass(frozen=True)
class ComparisonRow:
    """One quantity of all runs.

    Parameters
    ----------
    label, unit : str
        Quantity and unit.
    values : tuple of (float or None)
        One for each run: None without a meaning, infinite for a time that did not come.

    Examples
    --------
    >>> from concur.simulation import ComparisonRow
    >>> row = ComparisonRow("energy", "J", (2.5, None))
    >>> row.values
    (2.5, None)
    """

    label: str
    unit: str
    values: tuple[float | None, ...]

    @property
    def shown(self) -> tuple[str, ...]:
        """Values as text."""
        return tuple(
            "-"
            if value is None or math.isnan(value)
            else (f"{value:.3g}" if value < math.inf else "not settled")
            for value in self.values
        )


@dataclass(frozen=True, eq=False)
class Comparison(JsonResult):
    """Runs side by side; made by `compare`.

    Parameters
    ----------
    names : tuple of str
        Names of the runs.
    runs : tuple of RunRecord
        The runs.

    Examples
    --------
    >>> import concur as cc
    >>> robot = cc.robots.rover_arm()
    >>> base = cc.Output("base", "chassis", "R2", point=(0.25, 0, 0))
    >>> servos = [cc.Servo(cc.reduce(robot), [base], k * k, 2 * k) for k in (2.0, 4.0)]
    >>> goal, q0 = cc.references.hold([0.3, 0.0]), robot.neutral()
    >>> runs = [cc.simulate(robot, servo, goal, 0.2, q0, [0] * 5, dt=0.02) for servo in servos]
    >>> found = cc.compare(runs, ["slow", "fast"])
    >>> [row.label for row in found.table][:2]
    ['duration', 'settling time of base, to 2 %']
    """

    kind = "compare"

    names: tuple[str, ...]
    runs: tuple[RunRecord, ...]

    @cached_property
    def table(self) -> tuple[ComparisonRow, ...]:
        """Quantities side by side: settling, overshoot, errors, torques, energy and margin.

        Robots with the same controls have a row for the peak of each.
        """
        named = {(*run.robot.control_names, *run.robot.control_units) for run in self.runs}
        measures = [_measures(run, each=len(named) == 1) for run in self.runs]
        return tuple(
            ComparisonRow(label, unit, tuple(part.get((label, unit)) for part in parts))
            for parts in zip(*measures, strict=True)
            for label, unit in dict.fromkeys(key for part in parts for key in part)
        )

    @property
    def name(self) -> str:
        """Names of the runs."""
        return ", ".join(self.names)

    @property
    def rows(self) -> tuple[Row, ...]:
        """The table as rows of a result: the run is their place."""
        stops = [
            Row("stopped early", run.stopped, place=name, holds=False)
            for name, run in zip(self.names, self.runs, strict=True)
            if run.stopped
        ]
        return (
            *stops,
            *(
                Row(row.label, value, 0.0, "", name, value == 0.0)
                if row.label == BROKEN
                else Row(row.label, value, unit=row.unit, place=name)
                for row in self.table
                for name, value in zip(self.names, row.values, strict=True)
            ),
        )

    @property
    def tables(self) -> tuple[Table]:
        """The table with values as texts."""
        rows = ((row.label, *row.shown, row.unit) for row in self.table)
        return (Table("", ("", *self.names, "unit"), tuple(rows)),)

    @property
    def details(self) -> dict[str, Any]:
        """Further fields of the answer in JSON; a time that did not come is null."""
        rows = [picked(row, "label", "unit", "values", "shown") for row in self.table]
        laws = {name: run.parameters for name, run in zip(self.names, self.runs, strict=True)}
        return {"runs": list(self.names), "parameters": laws, "table": rows}

    @property
    def figures(self) -> Figures:
        """Errors, controls and margins of the runs over time."""
        return {"comparison": self.plot}

    def __getitem__(self, label: str) -> ComparisonRow:
        for row in self.table:
            if row.label == label:
                return row
        raise ConcurError(
            "comparison",
            expected="one of " + ", ".join(row.label for row in self.table),
            came=shown(label),
            cure="Take the label of a row.",
        )

    def __repr__(self) -> str:
        return f"<comparison of {len(self.runs)} runs: {shown(', '.join(self.names), 120)}>"

    def _repr_html_(self) -> str:

        return show("notebook.comparison_html", self)

    def __str__(self) -> str:
        head = ("", *self.names, "")
        lines = [head, *((row.label, *row.shown, row.unit) for row in self.table)]
        text = aligned(lines, left=(0, len(head) - 1))
        return "\n".join([text, *self.broken, *self.notes])

    @property
    def broken(self) -> tuple[str, ...]:
        """Tolerances, requirements and limits that runs break, in sentences."""
        return tuple(
            f"{name} breaks a limit: {text}."
            for name, run in zip(self.names, self.runs, strict=True)
            for text in run.broken
        )

    @property
    def problems(self) -> tuple[str, ...]:
        """Runs that ended early and limits that are broken, in sentences."""
        ended = (
            f"{name} ended early: {run.stopped}"
            for name, run in zip(self.names, self.runs, strict=True)
            if run.stopped
        )
        return (*ended, *self.broken)

    @property
    def notes(self) -> tuple[str, ...]:
        """Parameters of the laws, and whether the lengths of the runs differ."""
        named = zip(self.names, self.runs, strict=True)
        found = [f"{name}: {run.parameters}" for name, run in named if run.parameters]
        if not np.allclose([run.duration for run in self.runs], self.runs[0].duration):
            found.append("The runs differ in length: rms, energy and peaks are over each run.")
        return tuple(found)

    def plot(self) -> Figure:
        """Draw errors, torques and margins of the runs over time.

        Returns
        -------
        matplotlib.figure.Figure
            One panel for the errors of each output by unit, one for the norm of the controls of
            motors, wheels and joints by unit, and one for the margin.
        """
        return show("comparison_figure", self)


def compare(
    runs: Sequence[RunData | RunRecord],
    names: Sequence[str] | None = None,
    reference: Reference | None = None,
) -> Comparison:
    """Compare runs of different laws, plants, lengths or robots with the same outputs.

    Settling time and overshoot refer to the error at the start; runs that start within 1e-6 m or
    rad have none. Settled means an error within 2 %. The overshoot is the largest error opposite
    to the one at the start. An rms torque is the root of the mean over time of the sum of squares.
    Runs of tasks are judged by their tolerances, requirements and limits, others by the limits of
    their joints.

    Parameters
    ----------
    runs : sequence of Run
        The runs, at least one.
    names : sequence of str, optional
        Their names; default names of robot and law. Equal names get numbers.
    reference : Reference, optional
        Reference of the outputs for runs of laws that follow none, such as those in joint space:
        their errors and margins are those of the outputs of the first run that has outputs.

    Returns
    -------
    Comparison
        A table, `table`, and a figure, `plot`.

    Raises
    ------
    SimulationError
        If there is no run, the outputs differ, or runs without outputs have no `reference`.

    Examples
    --------
    >>> import concur as cc
    >>> robot = cc.robots.rover_arm()
    >>> base = cc.Output("base", "chassis", "R2", point=(0.25, 0, 0))
    >>> servos = [cc.Servo(cc.reduce(robot), [base], k * k, 2 * k) for k in (2.0, 4.0)]
    >>> goal, q0 = cc.references.hold([0.3, 0.0]), robot.neutral()
    >>> runs = [cc.simulate(robot, servo, goal, 0.2, q0, [0] * 5, dt=0.02) for servo in servos]
    >>> found = cc.compare(runs, ["slow", "fast"])
    >>> found.names
    ('slow', 'fast')
    >>> row = next(row for row in found.table if row.label == "error of base, at the end")
    >>> row.values[1] < row.values[0]
    True
    """
    runs = tuple(runs) if isinstance(runs, Iterable) else (runs,)
    records = _records(runs, reference)
    labels = _numbered(tuple(map(str, names)) if names is not None else _names(runs))
    if len(labels) != len(records):
        raise SimulationError(
            "comparison, `names`",
            expected=f"{len(records)} names, one for each run",
            came=f"{len(labels)}",
            cure="Leave them out for the names of robots and laws.",
        )
    for name, record in zip(labels, records, strict=True):
        wanted, found = (_outputs(one) for one in (records[0], record))
        if found != wanted:
            raise SimulationError(
                f"comparison, outputs of the run {shown(name)}",
                expected=f"those of the run {shown(labels[0])}: {wanted}",
                came=found,
                cure="Compare runs whose outputs have the same names and groups, in one order.",
            )
    return Comparison(labels, records)


def _records(
    runs: tuple[RunData | RunRecord, ...], reference: Reference | None
) -> tuple[RunRecord, ...]:
    known = [run for run in runs if isinstance(run, (RunData, RunRecord))]
    if not runs or len(known) < len(runs):
        others = [run for run in runs if run not in known]
        raise SimulationError(
            "comparison, `runs`",
            expected="a list of runs",
            came=f"{shown(others[0])}" if others else "an empty list",
            cure="Pass results of `simulate`, such as compare([run_a, run_b]).",
        )
    records = [run if isinstance(run, RunRecord) else RunRecord.of(run) for run in known]
    without = [k for k, record in enumerate(records) if not record.outputs]
    if not without:
        return tuple(records)
    servos = [run.servo for run in known if isinstance(run, RunData) and run.servo.outputs]
    if not servos or reference is None:
        raise SimulationError(
            f"comparison, `runs`, entry {without[0] + 1}",
            expected="runs of laws with outputs, or `reference` and one run of a law with outputs",
            came="a law without outputs" + " and no `reference`" * (reference is None),
            cure="Pass the reference of the outputs: compare(runs, reference=reference).",
        )
    return tuple(
        _followed(record, servos[0], reference) if k in without else record
        for k, record in enumerate(records)
    )


def _followed(record: RunRecord, servo: TrackingLaw, reference: Reference) -> RunRecord:
    """Errors and margins that the outputs of another law have in a run."""
    if coordinates(record.robot) != coordinates(servo.model.system):
        raise SimulationError(
            f"comparison, a run of `{record.robot.name}` without outputs",
            expected=f"the robot of the first run with outputs, `{servo.model.name}`",
            came="a robot with other coordinates",
            cure="Compare it with runs of the same robot.",
        )
    recorder = Recorder(servo, Plant(record.robot))
    samples = reference_for(reference, servo.outputs, "comparison, `reference`").sample(record.t)
    return replace(
        record,
        outputs=tuple(servo.outputs),
        error=recorder(record.q, record.v, samples)["error"],
        margin=recorder.margins(record.q)[0],
    )


def _names(runs: Sequence[RunData | RunRecord]) -> tuple[str, ...]:
    names = [run.robot.name for run in runs]
    for k, run in enumerate(runs):
        if isinstance(run, RunData):
            own = getattr(run.servo, "own", None)
            names[k] += ", servo" if own is None else f", {own.name()}"
    return tuple(names)


def _numbered(names: Sequence[str]) -> tuple[str, ...]:
    """Names that differ: equal ones get a number."""
    counts, seen, found = Counter(names), Counter[str](), []
    for name in names:
        seen[name] += 1
        found.append(f"{name} ({seen[name]})" if counts[name] > 1 else name)
    return tuple(found)


def _outputs(record: RunRecord) -> str:
    return ", ".join(f"{output.name} ({output.group})" for output in record.outputs)


Measures: TypeAlias = dict[tuple[str, str], float | None]
"""Numbers by label and unit; None without a meaning."""


def _measures(run: RunRecord, each: bool) -> tuple[Measures, Measures, Measures]:
    """Numbers of a run: of its length and errors, of its controls, each or not, and of the whole.

    The peak of a control has a sign, as in the rows of a run.
    """
    errors: Measures = {("duration", "s"): run.duration}
    for (name, unit), error in run.errors.items():
        norm = np.linalg.norm(error, axis=1)
        away = norm[0] > LEAST
        time = settling_time(run.t, norm) if away else None
        opposite = float((-(error @ error[0])).max()) / norm[0] ** 2 if away else np.nan
        errors |= {
            (f"settling time of {name}, to {100 * SETTLED:g} %", "s"): time,
            (f"overshoot of {name}", "%"): max(0.0, 100.0 * opposite) if away else None,
            (f"error of {name}, rms", unit): _rms(run, error),
            (f"error of {name}, largest", unit): float(norm.max()),
            (f"error of {name}, at the end", unit): float(np.linalg.norm(error[-1])),
        }
    controls: Measures = {}
    for (driven, unit), own in run.controls.items():
        what = {"N m": "torque", "N": "force"}[unit]
        controls[f"peak {what} of {driven}", unit] = float(np.abs(run.u_range[:, own]).max())
        controls[f"{what} of {driven}, rms", unit] = _rms(run, run.u[:, own])
        for k in own if each else ():
            low, high = run.u_range[:, k].tolist()
            label = peak_label(run.robot.control_names[k], unit)
            controls.setdefault((label, unit), low if -low > high else high)
    whole: Measures = {("energy supplied by the controls", "J"): run.energy}
    whole["smallest decoupling margin", ""] = float(run.margin.min())
    return errors, controls, whole | {(BROKEN, ""): float(len(run.broken))}


def _rms(run: RunRecord, values: np.ndarray) -> float:
    """Root of the mean over time of the squared norms of rows."""
    squares = (values**2).sum(axis=1)
    mean = scipy.integrate.trapezoid(squares, run.t) / run.duration if run.duration else squares[0]
    return math.sqrt(mean)
