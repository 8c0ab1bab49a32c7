"""Numbers of a run, compared with their limits."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from concur.control import peak_label
from concur.reduction import LEAST_LOAD, wheel_names
from concur.results import Row
from concur.simulation._run_data import RunData
from concur.simulation._slip import load_names

SETTLED = 0.02
"""Share of the initial error within which an output counts as settled."""

FULL = 1.0 - 1e-6
"""Scale of the demand from which on it counts as given in full."""


@dataclass(frozen=True)
class Tolerances:
    """Limits of a run that passes.

    Parameters
    ----------
    evaluate_after : float
        Time from which on the errors count, s.
    final_error : float
        Largest tracking error at the end (m, rad).
    deviation : float
        Largest difference in any coordinate between the error of the run and the exact error
        dynamics started from the same error (m, rad).
    constraint : float
        Largest residual of the rolling constraints, m/s.
    margin : float
        Smallest admissible margin of the decoupling matrix.
    momentum : float
        Largest relative drift of a floating robot's momentum.

    Examples
    --------
    >>> import concur as cc
    >>> cc.simulation.Tolerances(evaluate_after=2.0, final_error=1e-3).final_error
    0.001
    """

    evaluate_after: float
    final_error: float = 1e-6
    deviation: float = 1e-6
    constraint: float = 1e-9
    margin: float = 1e-3
    momentum: float = 1e-8


@dataclass(frozen=True)
class Finding:
    """One number of a run.

    Parameters
    ----------
    label : str
        What was measured.
    value : float
        The number.
    unit : str
        Its unit.
    limit : float or None
        What it was to keep; none when it is reported only.
    at_least : bool
        Whether the limit is a lower one.
    note : str
        Why there is no limit, where a reader may look for one, or why it was missed.
    slack : float
        Rounding beyond the limit that is tolerated.
    numerical : bool
        Whether the number checks the simulation rather than the motion of the robot.
    """

    label: str
    value: float
    unit: str = ""
    limit: float | None = None
    at_least: bool = False
    note: str = ""
    slack: float = 0.0
    numerical: bool = False

    @property
    def holds(self) -> bool | None:
        """Whether the limit is kept; none without a limit."""
        if self.limit is None:
            return None
        beyond = self.limit - self.value if self.at_least else self.value - self.limit
        return beyond <= self.slack

    @property
    def row(self) -> Row:
        """The number as a row of a result; the note is its place."""
        kept = self.holds
        return Row(self.label, self.value, self.limit, self.unit, self.note, kept, self.at_least)

    @property
    def shown(self) -> str:
        """Number and unit."""
        return f"{self.value:.3g} {self.unit}".strip()

    @property
    def shown_limit(self) -> str:
        """Limit and unit, and the note, if there is one."""
        if self.limit is None:
            return self.note
        limit = f"{'>=' if self.at_least else '<='} {self.limit:.3g} {self.unit}".strip()
        return f"{limit}; {self.note}" if self.note else limit


def findings(run: RunData, tolerances: Tolerances) -> tuple[Finding, ...]:
    """Compare a run with its tolerances.

    Peaks and joints are judged over all stages of all steps, by the limits of the robot and of the
    plant. The deviation is not judged where the law cannot be ideal: when the torque is held or
    limited, the plant or its momentum differs from the servo's model, or the solution is damped.
    The numbers of the motion come first, those that check the simulation last.
    """
    servo, limited = run.servo, _share_limited(run)
    damped = servo.damping_threshold is not None
    found = _error_findings(run, tolerances)
    if run.slip is not None:
        found += _slip_findings(run)
    elif run.robot.nf:
        residual = float(run.constraint_residual.max())
        limit = tolerances.constraint
        found.append(Finding("constraint residual", residual, "m/s", limit, numerical=True))
    found += _momentum_findings(run, tolerances, limited)
    balance = float(np.abs(run.energy_balance).max())
    found.append(Finding("energy balance", balance, "J", numerical=True))
    found += _joint_findings(run)
    if servo.torque_limits is not None:
        found += [
            Finding("smallest scale of the demand within torque limits", float(run.scale.min())),
            Finding("share of the time in which torque limits were active", 100 * limited, "%"),
        ]
    if damped:
        found += [
            Finding(f"acceleration residual, largest {kind}coordinate", residual, f"{unit}/s^2")
            for kind, unit, residual in _largest_by_unit(run, run.acceleration_residual)
        ]
    found.append(
        Finding(
            "smallest margin of the decoupling matrix",
            float(run.margin.min()),
            limit=None if damped else tolerances.margin,
            at_least=True,
            note="not judged: the solution is damped near singular configurations" * damped,
        )
    )
    found.append(Finding("time taken by the simulation", run.seconds, "s", numerical=True))
    return tuple(sorted(found, key=lambda one: one.numerical))


def _error_findings(run: RunData, tolerances: Tolerances) -> list[Finding]:
    """Error of each output, and deviation from the ideal error dynamics."""
    found: list[Finding] = []
    settled = run.t >= min(tolerances.evaluate_after, run.t[-1])
    for name, unit, norm in run.error_parts:
        after = f"error of {name}, largest after {tolerances.evaluate_after:g} s"
        found += [
            Finding(f"error of {name}, initial", float(norm[0]), unit),
            Finding(f"error of {name}, final", float(norm[-1]), unit, tolerances.final_error),
            Finding(after, float(norm[settled].max()), unit),
        ]
        if norm[0] > tolerances.final_error:
            found.append(_settling(name, run.t, norm))
    # A held torque or another plant deviates by design: the number is then no failure.
    wrong, damped = run.mismatch, run.servo.damping_threshold is not None
    other = wrong is not None and wrong.used and wrong.relative > 1e-9
    limited = run.scale.min() < FULL
    reasons = {
        "the torque is held": run.control_period is not None,
        "the plant differs from the servo's model": bool(run.plant_differences),
        "the momentum is not the one the servo assumes": other and not run.plant_differences,
        "torque limits were active": limited,
        "the solution was damped": damped
        and not limited
        and np.abs(run.acceleration_residual).max() > 0.0,
    }
    given = " and ".join(reason for reason, holds in reasons.items() if holds)
    limit, note = (None, f"not judged: {given}") if given else (tolerances.deviation, "")
    label = "deviation from the ideal error dynamics, largest"
    return found + [
        Finding(f"{label} {kind}coordinate", largest, unit, limit, note=note, numerical=True)
        for kind, unit, largest in _largest_by_unit(run, run.deviation)
    ]


def _momentum_findings(run: RunData, tolerances: Tolerances, limited: float) -> list[Finding]:
    """Drifts of the momenta that are constant, and the difference to that of the law."""
    found, label = [], "relative drift of the momentum"
    limit: float | None = tolerances.momentum
    if run.floats:
        drift = float(run.momentum_drift.max())
        # The torque has corners where limits begin and cease to act: there a step loses its order.
        corners = limited > 0.0 and not drift <= tolerances.momentum
        note, kept = "limits were active: take a shorter dt" * corners, limit
        if run.imperfections is not None and run.imperfections.disturbances:
            note, kept = "not judged: disturbances change it", None
        found.append(Finding(label, drift, "", kept, note=note, numerical=True))
    for joint, drifts in run.stage_drifts.items():
        largest = float(drifts.max())
        found.append(Finding(f"{label} of {joint}", largest, "", limit, numerical=True))
    wrong = run.mismatch
    if wrong is not None and wrong.relative > 1e-9:
        note = "by the inertias of the servo's model" if run.plant_differences else ""
        if not wrong.used:
            note = "of no effect: the servo measures its velocities"
        text = "momentum at the start, relative difference to the servo's"
        found.append(Finding(text, wrong.relative, note=note))
    return found


def settling_time(t: np.ndarray, norm: np.ndarray) -> float:
    """Time after which an error stays within the share that counts as settled, s; else infinite."""
    outside = np.flatnonzero(~(norm <= SETTLED * norm[0]))
    return math.inf if outside[-1] == len(t) - 1 else float(t[outside[-1] + 1])


def _settling(name: str, t: np.ndarray, norm: np.ndarray) -> Finding:
    time = settling_time(t, norm)
    return Finding(
        f"settling time of {name}, to {100 * SETTLED:g} %",
        min(time, float(t[-1])),
        "s",
        note="not settled at the end" * (time == math.inf),
    )


def _largest_by_unit(run: RunData, values: np.ndarray) -> list[tuple[str, str, float]]:
    """Kind of coordinate, unit and largest size of it over time; one kind needs no name."""
    units = np.array([u for output in run.servo.outputs for u in output.coordinate_units])
    kinds = list(dict.fromkeys(units.tolist()))
    names = {"m": "position ", "rad": "rotation "} if len(kinds) > 1 else {}
    return [
        (names.get(unit, ""), unit, float(np.abs(values[:, units == unit]).max())) for unit in kinds
    ]


def _joint_findings(run: RunData) -> list[Finding]:
    """Peaks of the controls, and what of the joints has limits; limits of robot and plant."""
    judged = {
        row.label: Finding(row.label, row.value, row.unit, row.limit, row.at_least, slack=row.slack)
        for row in run.joint_limits.judge(run.q_range, run.v_range, run.u_range)
    }
    peaks = []
    for k, name in enumerate(run.servo.model.control_names):
        label = peak_label(name, run.control_units[k])
        low, high = run.u_range[:, k].tolist()
        plain = Finding(label, low if -low > high else high, run.control_units[k])
        peaks.append(judged.pop(label, plain))
    return [*judged.values(), *peaks]


def _slip_findings(run: RunData) -> list[Finding]:
    """Largest slip speed of each wheel, and smallest load of each wheel and support."""
    if run.slip is None:
        return []
    found = [
        Finding(f"slip speed of {name}, largest", float(speeds.max()), "m/s")
        for name, speeds in zip(wheel_names(run.robot), run.slip_speed.T, strict=True)
    ]
    for name, loads in zip(load_names(run.robot, run.slip), run.wheel_load.T, strict=True):
        least = float(loads.min())
        lifted, note = loads < LEAST_LOAD, ""
        if lifted.any():
            first = run.t[int(np.argmax(lifted))]
            note = f"lifts off at {first:.3g} s: the run is not valid from there on"
        label = f"load of {name}, smallest"
        found.append(Finding(label, least, "N", LEAST_LOAD, at_least=True, note=note))
    return found


def _share_limited(run: RunData) -> float:
    """Share of the time in which some control was at its limit."""
    limits = run.servo.torque_limits
    if limits is None:
        return 0.0
    # Relative to the control: at a limit it has the limit's size, and limits can be infinite.
    room = np.abs(run.u[:, :, None] - limits).min(axis=2)
    return float(np.mean((room <= 1e-9 * np.abs(run.u)).any(axis=1)))
