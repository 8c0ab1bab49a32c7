"""Gains for a task by several methods, each tried in the task."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from concur.certify._design import certified_gains
from concur.certify._gains import CertifiedGains
from concur.control import (
    KINDS,
    Gains,
    JointLimits,
    LoopResponse,
    Servo,
    TrackingLaw,
    design_gains,
    gains_of_kind,
    loop_response,
)
from concur.errors import ConcurError, DescriptionError, SimulationError, shown
from concur.files import replace_files, writing
from concur.results import JsonResult, Row, Table, picked, plain
from concur.rounding import rounded_down
from concur.tables import read_toml

METHODS = ("place", "lqr", "certified")
"""Pole placement, a quadratic cost, and a proved rate."""

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
class Trial:
    """Gains of one method, with the loop and the largest share of a torque limit in the task.

    Parameters
    ----------
    method : str
        One of `METHODS`.
    stiffness, damping : numpy.ndarray
        Gains of each coordinate, shape (size,), 1/s^2 and 1/s.
    response : LoopResponse or None
        The linearised loop of a servo; None for another law, whose loop depends on the motion.
    peaks : numpy.ndarray or None
        Largest controls of the run, shape (nu,), N and N m; None if it stopped early.
    share : float or None
        Largest share of a limit that the run needs; None without limits.
    allowed : float
        Share that it may need.
    rate : float or None
        Proved decay rate, 1/s.
    covers_start : bool or None
        Whether the proof covers the start of the task; None without one.
    stopped : str
        Why the run ended early.
    options : dict of str to any
        Gains of another law than a servo, as in its table ``[law]``; empty for a servo.
    """

    method: str
    stiffness: np.ndarray
    damping: np.ndarray
    response: LoopResponse | None
    peaks: np.ndarray | None
    share: float | None
    allowed: float
    rate: float | None = None
    covers_start: bool | None = None
    stopped: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def fits(self) -> bool:
        """Whether the run reached its end within the share of the torque limits."""
        return not self.stopped and (self.share is None or self.share <= self.allowed)

    @property
    def problem(self) -> str:
        """Why it does not fit, in a sentence; empty if it does."""
        if self.stopped:
            return f"{self.method}: the run stopped early, {self.stopped}"
        need = f"the run needs {self.share:.3g} of a torque limit" if self.share else ""
        return "" if self.fits else f"{self.method}: {need}, more than {self.allowed:g}"

    @property
    def numbers(self) -> dict[str, float | None]:
        """Margins, control rates and proved rate of the loop by quantity."""
        share = {"largest share of a torque limit": self.share}
        if self.response is None:
            return share
        margins = self.response.margins
        return {
            "phase margin, deg": float(np.abs(margins.phase_margin).min()),
            "disk margin": margins.disk_margin,
            "delay margin, ms": 1e3 * margins.common_delay_margin,
            "control rate, least, Hz": 1.0 / margins.hold_limit,
            "control rate, advised, Hz": ADVISED / margins.common_delay_margin,
            **share,
        }

    @property
    def details(self) -> dict[str, Any]:
        """Fields for JSON."""
        own = "method", "stiffness", "damping", "fits", "covers_start", "stopped", "options"
        found = picked(self, *own) | {
            "peak_torque": plain(self.peaks),
            "torque_share": plain(self.share),
            "proved_rate": plain(self.rate),
        }
        if self.response is None:
            return found
        margins = self.response.margins
        return found | {
            "settling": plain(self.response.settling_time),
            "phase_margin": plain(margins.phase_margin),
            "disk_margin": plain(margins.disk_margin),
            "delay_margin": plain(margins.common_delay_margin),
            "longest_period": plain(margins.hold_limit),
            "advised_rate": plain(ADVISED / margins.common_delay_margin),
        }


@dataclass(frozen=True, eq=False)
class Tuning(JsonResult):
    """Gains of a task by several methods; made by `tune`.

    Parameters
    ----------
    task : Task
        The task.
    trials : tuple of Trial
        Gains that were found.
    missing : tuple of str
        Methods without gains, with the reason.

    Examples
    --------
    >>> import concur as cc
    >>> from concur.certify import tune
    >>> task = cc.load_task("examples/rover_arm.toml")
    >>> found = tune(task, settling_time=4.0, methods=["place"])      # doctest: +SKIP
    >>> found.write("place")                                          # doctest: +SKIP
    True
    """

    kind = "gains"

    task: Any
    trials: tuple[Trial, ...]
    missing: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Name of the task."""
        return str(self.task.name)

    @property
    def status(self) -> str:
        """Whether the gains of some method fit: "passed" or "failed"."""
        return "passed" if any(trial.fits for trial in self.trials) else "failed"

    @property
    def rows(self) -> tuple[Row, ...]:
        """Largest share of a torque limit with the gains of each method."""
        label = "largest share of a torque limit"
        return tuple(Row(label, t.share, t.allowed, "", t.method, t.fits) for t in self.trials)

    @property
    def problems(self) -> tuple[str, ...]:
        """Gains that do not fit, and methods that found none, each with its reason."""
        return (*(trial.problem for trial in self.trials if not trial.fits), *self.missing)

    @property
    def tables(self) -> tuple[Table, Table]:
        """Gains of each output, and the numbers of each loop."""
        gains: list[tuple[str, ...]] = []
        head: tuple[str, ...] = (
            *("method", "output", "stiffness\n1/s^2", "damping\n1/s", "settling\n2 %, s"),
        )
        for trial in self.trials:
            at = 0
            if trial.response is None:
                head = "method", *trial.options
                gains.append((trial.method, *map(str, trial.options.values())))
                continue
            for output in self.task.outputs:
                part = slice(at, at := at + output.dim)
                values = (trial.stiffness, trial.damping, trial.response.settling_time)
                cells = (", ".join(dict.fromkeys(f"{x:.4g}" for x in v[part])) for v in values)
                gains.append((trial.method, output.name, *cells))
        numbers = [trial.numbers for trial in self.trials]
        loop: list[tuple[str | bool | None, ...]] = [
            (name, *(_shown(row[name]) for row in numbers)) for name in (numbers or [{}])[0]
        ]
        rates = ("" if t.rate is None else rounded_down(t.rate, 4) for t in self.trials)
        loop.append(("proved decay, 1/s", *rates))
        loop.append(("proof covers the start", *(trial.covers_start for trial in self.trials)))
        loop.append(("fits", *(trial.fits for trial in self.trials)))
        methods = tuple(trial.method for trial in self.trials)
        return Table("Gains", head, tuple(gains)), Table("Loop", ("", *methods), tuple(loop))

    @property
    def details(self) -> dict[str, Any]:
        """Further fields of the answer in JSON."""
        names = [f"{o.name}.{name}" for o in self.task.outputs for name in o.coordinate_names]
        return {"coordinates": names, "designs": [trial.details for trial in self.trials]}

    def write(self, method: str) -> bool:
        """Write gains that fit into the file of the task; comments and other entries stay.

        Parameters
        ----------
        method : str
            One of `METHODS`.

        Returns
        -------
        bool
            Whether they were written: they fit.
        """
        for trial in self.trials:
            if trial.method == method and trial.fits:
                _write(self.task, trial)
                return True
        return False


def tune(
    task: Any,
    settling_time: float = 2.0,
    damping_ratio: float = 1.0,
    torque_share: float = 1.0,
    torque_limit: float | None = None,
    angle: float | None = None,
    distance: float | None = None,
    methods: Sequence[str] = METHODS,
) -> Tuning:
    """Find gains for the outputs of a task, and try each set in the task.

    Of another law than a servo they become its gains as of `gains_of_kind` at the start; only
    those of a servo can be certified.

    Parameters
    ----------
    task : Task
        The task, from `load_task`.
    settling_time : float
        Time after which an error stays below 2 %, s.
    damping_ratio : float
        Damping ratio of the placed poles.
    torque_share : float
        Largest share of the torque limits that the gains may need, up to 1.
    torque_limit : float, optional
        Limit of every control, N m or N; default the limits of task and robot.
    angle, distance : float, optional
        Largest errors of the certified gains, rad and m; default 1.25 times those of the start.
    methods : sequence of str
        Of "place", pole placement, "lqr", a quadratic cost, and "certified", a proved rate.

    Returns
    -------
    Tuning
        Gains of each method, with margins, torques of the run, and whether they fit.

    Raises
    ------
    ConcurError
        If an option is out of range, or the law of the task is one of a user.

    Examples
    --------
    >>> from dataclasses import replace
    >>> import concur as cc
    >>> from concur.certify import tune
    >>> task = replace(cc.load_task("examples/rover_arm.toml"), duration=0.02)
    >>> tune(task, methods=["place"]).status
    'passed'
    """
    kind = task.law_table.get("kind", "servo")
    if kind not in KINDS:
        raise DescriptionError(
            f"{task.path}, [law], field `kind`",
            expected=f"a law whose gains are known: {', '.join(KINDS)}",
            came=shown(kind),
            cure="Compare values of its options: `concur compare` with a --law for each.",
        )
    servo: Servo = task.nominal.servo
    limits, trials, missing = _limits(task, task.law, torque_limit), [], []
    found: Gains | CertifiedGains
    for method in methods:
        try:
            if method == "certified" and kind != "servo":
                missing.append("certified: for a servo, whose error dynamics are known")
                continue
            if method == "certified":
                found = _certified(task, servo, torque_share * limits, angle, distance)
            elif method == "lqr":
                found = design_gains(task.outputs, settling_time, method="lqr")
            else:
                found = design_gains(task.outputs, settling_time, damping_ratio)
            trials.append(_tried(method, found, task, limits, torque_share))
        except ConcurError as error:
            if method == "place":  # an option is out of range
                raise
            missing.append(f"{method}: {error}")
    return Tuning(task, tuple(trials), tuple(missing))


def _limits(task: Any, servo: TrackingLaw, limit: float | None) -> np.ndarray:
    """Limits of the controls: the given one, else the narrower of task and robot, (nu, 2)."""
    if limit is not None:
        return np.tile([-limit, limit], (servo.nu, 1))
    most = np.asarray(JointLimits.of(task.robot).torques, dtype=float)
    own = np.tile([-np.inf, np.inf], (servo.nu, 1))
    if servo.torque_limits is not None:
        own = np.asarray(servo.torque_limits, dtype=float)
    return np.column_stack([np.maximum(-most, own[:, 0]), np.minimum(most, own[:, 1])])


def _certified(
    task: Any, servo: Servo, limits: np.ndarray, angle: float | None, distance: float | None
) -> CertifiedGains:
    """Gains with a proved rate, with unit length, as a task file has no metric."""
    way = servo.feasibility(task.reference, task.duration, task.q0)
    way.require(task.name)
    chosen = np.unique(np.linspace(0, len(way.times) - 1, INSTANTS).round().astype(int))
    _, twists, accelerations = task.reference.sample(way.times[chosen])
    largest, x, at = {"rad": 0.01, "m": 0.01}, _start(task, servo)[0], 0
    for output in task.outputs:
        part, units = x[at : at + output.dim], np.array(output.coordinate_units)
        at += output.dim
        for unit in set(units.tolist()):
            largest[unit] = max(largest[unit], float(np.linalg.norm(part[units == unit])))
    return certified_gains(
        task.outputs,
        servo.model,
        limits,
        way.configurations[chosen],
        angle=min(REACH * largest["rad"], math.pi) if angle is None else angle,
        distance=REACH * largest["m"] if distance is None else distance,
        twist=twists,
        acceleration=accelerations,
        length=1.0,
    )


def _start(task: Any, servo: Servo) -> tuple[np.ndarray, np.ndarray]:
    x, ve = servo.error(task.q0, task.shape_velocities(servo), task.reference(0.0))
    return np.asarray(x, dtype=float), np.asarray(ve, dtype=float)


def _tried(
    method: str, found: Gains | CertifiedGains, task: Any, limits: np.ndarray, allowed: float
) -> Trial:
    """Simulate a task with gains, rounded as they are written."""
    stiffness, damping = (
        np.array([float(f"{x:.{DIGITS}g}") for x in np.diag(gain)])
        for gain in (found.stiffness, found.damping)
    )
    # Without limits of the law, whose torque would not exceed them.
    options, kind = dict[str, Any](), task.law_table.get("kind", "servo")
    law: TrackingLaw
    if kind == "servo":
        law = replace(task, stiffness=np.diag(stiffness), damping=np.diag(damping)).servo
        response, unlimited = loop_response(law), replace(law, torque_limits=None)
    else:
        given = gains_of_kind(kind, task.nominal.servo, task.q0, stiffness, damping)
        options = {name: _rounded(value) for name, value in given.items()}
        table = {key: x for key, x in task.law_table.items() if key != "torque_limits"}
        response, unlimited = None, task.with_law(table | options).law
    peaks, share, stopped = None, None, ""
    try:
        run = task.simulate(unlimited)
        peaks = np.abs(run.u_range).max(axis=0)
        if np.isfinite(limits).any():
            share = float((run.u_range / limits.T).max())
    except SimulationError as error:
        stopped = f"{error.where}: expected {error.expected}, got {error.came}"
    rate, covers = None, None
    if isinstance(found, CertifiedGains):
        rate, covers = found.rate, found.contains(*_start(task, task.servo))
    own = method, stiffness, damping, response, peaks, share, allowed, rate, covers, stopped
    return Trial(*own, options)


def _rounded(value: Any) -> Any:
    """Numbers as they are written."""
    if isinstance(value, list):
        return [_rounded(entry) for entry in value]
    return float(f"{value:.{DIGITS}g}")


def _write(task: Any, trial: Trial) -> None:
    """Replace the gains in the file of a task."""
    read_toml(task.path)  # the same errors as of other readers
    import tomlkit

    document: Any = tomlkit.parse(task.path.read_text(encoding="utf-8-sig"))
    at, outputs = 0, task.outputs
    if trial.options:
        document["law"].update(trial.options)
        outputs = ()
    for output, table in zip(outputs, document["outputs"], strict=False):
        part = slice(at, at := at + output.dim)
        for name, gains in (("stiffness", trial.stiffness), ("damping", trial.damping)):
            numbers: list[float] = gains[part].tolist()
            table[name] = numbers[0] if len(set(numbers)) == 1 else numbers
    with writing(task.path.parent):
        replace_files({task.path: tomlkit.dumps(document).encode()})


def _shown(value: float | None) -> str:
    return "no limits" if value is None else f"{value:.4g}"
