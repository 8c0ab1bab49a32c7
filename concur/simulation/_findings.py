"""Numbers of a run, compared with their limits."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from concur.control import SLACK, TrackingLaw, peak_label
from concur.reduction import LEAST_LOAD, wheel_names
from concur.results import Row
from concur.simulation._motors import idle_numbers
from concur.simulation._run_data import NOTICED, RunData, Tolerances
from concur.simulation._slip import load_names

SETTLED = 0.02
"""Share of the initial error within which an output counts as settled."""

UNJUDGED = Tolerances(math.inf, math.inf, math.inf, math.inf, -math.inf, math.inf)
"""Tolerances that are kept by every run: their rows have no limits."""

SHOWN = 3
"""Largest number of intervals that a finding lists."""


def findings(run: RunData, tolerances: Tolerances | None) -> tuple[Row, ...]:
    """Compare a run with its tolerances, if there are some.

    Peaks and joints are judged over all stages of all steps, by the limits of the robot and of the
    plant. Laws that do not linearize have no deviation, and it is not judged where a law cannot be
    ideal: when the torque is held or limited, the plant or its momentum differs from the servo's
    model, or the solution is damped.
    The numbers of the motion come first, those that check the simulation last.
    """
    if tolerances is None:
        tolerances = UNJUDGED
    servo, limited = run.servo, float(run.active.any(axis=1).mean())
    damped = servo.damping_threshold is not None
    found = _error_findings(run, tolerances)
    if run.slip is not None:
        found += _slip_findings(run)
    elif run.robot.nf:
        residual = float(run.constraint_residual.max())
        limit = tolerances.constraint
        found.append(Row.judged("constraint residual", residual, limit, "m/s", numerical=True))
    found += _momentum_findings(run, tolerances, limited)
    balance = float(np.abs(run.energy_balance).max())
    note = "with the heat of friction" * ("friction" in run.plant_differences)
    found.append(Row.judged("energy balance", balance, unit="J", place=note, numerical=True))
    found += _joint_findings(run)
    if servo.limit_names:
        found += _limit_findings(run, limited)
    if damped:
        found += [
            Row.judged(
                f"acceleration residual, largest {kind}coordinate", residual, unit=f"{unit}/s^2"
            )
            for kind, unit, residual in _largest_by_unit(run, run.acceleration_residual)
        ]
    found.append(
        Row.judged(
            "smallest margin of the decoupling matrix",
            float(run.margin.min()),
            limit=tolerances.margin if servo.margins.refused_below else None,
            at_least=True,
            place=_unjudged_margin(servo),
        )
    )
    found.append(Row.judged("time taken by the simulation", run.seconds, unit="s", numerical=True))
    return tuple(sorted(found, key=lambda one: one.numerical))


def _unjudged_margin(servo: TrackingLaw) -> str:
    """Why a small margin is no failure; empty if it is one."""
    if servo.margins.refused_below:
        return ""
    damped = "the solution is damped near singular configurations"
    return f"not judged: {damped if servo.linearizes else 'the law does not invert the matrix'}"


def _error_findings(run: RunData, tolerances: Tolerances) -> list[Row]:
    """Error of each output, and deviation from the ideal error dynamics."""
    found: list[Row] = []
    settled = run.t >= min(tolerances.evaluate_after, run.t[-1])
    for name, unit, norm in run.error_parts:
        after = f"error of {name}, largest after {tolerances.evaluate_after:g} s"
        found += [
            Row.judged(f"error of {name}, initial", float(norm[0]), unit=unit),
            largest_error(name, unit, run.t, norm),
            Row.judged(f"error of {name}, final", float(norm[-1]), tolerances.final_error, unit),
        ]
        if math.isfinite(tolerances.evaluate_after):
            found.append(Row.judged(after, float(norm[settled].max()), unit=unit))
        if norm[0] > tolerances.final_error:
            found.append(_settling(name, run.t, norm))
    if not run.servo.linearizes:
        return found  # there are no ideal error dynamics
    # A held torque or another plant deviates by design: the number is then no failure.
    other, damped = run.felt_mismatch is not None, run.servo.damping_threshold is not None
    limited = bool(run.active.any())
    reasons = {
        "the torque is held": run.control_period is not None,
        "the plant differs from the servo's model": bool(run.plant_differences),
        "the momentum is not the one the servo assumes": other and not run.plant_differences,
        "limits were active": limited,
        "the solution was damped": damped
        and not limited
        and np.abs(run.acceleration_residual).max() > 0.0,
    }
    given = " and ".join(reason for reason, holds in reasons.items() if holds)
    limit, note = (None, f"not judged: {given}") if given else (tolerances.deviation, "")
    label = "deviation from the ideal error dynamics, largest"
    return found + [
        Row.judged(f"{label} {kind}coordinate", largest, limit, unit, note, numerical=True)
        for kind, unit, largest in _largest_by_unit(run, run.deviation)
    ]


def _momentum_findings(run: RunData, tolerances: Tolerances, limited: float) -> list[Row]:
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
        found.append(Row.judged(label, drift, kept, place=note, numerical=True))
    for joint, drifts in run.stage_drifts.items():
        largest = float(drifts.max())
        found.append(Row.judged(f"{label} of {joint}", largest, limit, numerical=True))
    wrong = run.mismatch
    if wrong is not None and wrong.relative > NOTICED:
        note = "by the inertias of the servo's model" if run.plant_differences else ""
        if not wrong.used:
            note = "of no effect: the servo measures its velocities"
        text = "momentum at the start, relative difference to the servo's"
        found.append(Row.judged(text, wrong.relative, place=note))
    return found


def largest_error(name: str, unit: str, t: np.ndarray, norm: np.ndarray) -> Row:
    """Largest error of an output over the whole run, and its time."""
    most = int(np.argmax(norm))
    value, place = float(norm[most]), f"at {t[most]:.4g} s"
    return Row.judged(f"error of {name}, largest", value, unit=unit, place=place)


def settling_time(t: np.ndarray, norm: np.ndarray) -> float:
    """Time after which an error stays within the share that counts as settled, s; else infinite."""
    outside = np.flatnonzero(~(norm <= SETTLED * norm[0]))
    return math.inf if outside[-1] == len(t) - 1 else float(t[outside[-1] + 1])


def _settling(name: str, t: np.ndarray, norm: np.ndarray) -> Row:
    time = settling_time(t, norm)
    return Row.judged(
        f"settling time of {name}, to {100 * SETTLED:g} %",
        min(time, float(t[-1])),
        unit="s",
        place="not settled at the end" * (time == math.inf),
    )


def _largest_by_unit(run: RunData, values: np.ndarray) -> list[tuple[str, str, float]]:
    """Kind of coordinate, unit and largest size of it over time; one kind needs no name."""
    units = np.array([u for output in run.servo.outputs for u in output.coordinate_units])
    kinds = list(dict.fromkeys(units.tolist()))
    names = {"m": "position ", "rad": "rotation "} if len(kinds) > 1 else {}
    return [
        (names.get(unit, ""), unit, float(np.abs(values[:, units == unit]).max())) for unit in kinds
    ]


def _joint_findings(run: RunData) -> list[Row]:
    """Peaks of the controls, and what of the joints has limits; limits of robot and plant."""
    judged = {row.quantity: row for row in run.limit_rows}
    real, peaks = run.imperfections, list[Row]()
    most = (
        np.full(run.u.shape[1], np.inf) if real is None else real.values("torque_limit", run.robot)
    )
    cut = 100.0 * np.mean(np.abs(run.u) > most * (1.0 + SLACK), axis=0)
    geared = _geared(run.robot)
    for k, name in enumerate(run.servo.model.control_names):
        label = peak_label(name, run.control_units[k])
        low, high = run.u_range[:, k].tolist()
        plain = Row.judged(label, low if -low > high else high, unit=run.control_units[k])
        row, notes = judged.pop(label, plain), list[str]()
        if name in geared:
            ratio, unit = geared[name]
            reached = low if row.value == low else high
            notes.append(f"{reached * ratio:.3g} {unit} at the joint")
        if cut[k]:
            notes.append(f"the law asks for more in {cut[k]:.3g} % of the time")
        peaks.append(replace(row, place="; ".join(notes)))
    idle = idle_numbers(run.robot) if real is None or not real.motors else ""
    note = "drives are ideal: these act with `motors` of [imperfections]"
    ideal = [Row("numbers of motors without effect", idle, place=note)] if idle else []
    return [*judged.values(), *peaks, *ideal]


def _geared(robot: Any) -> dict[str, tuple[float, str]]:
    """Ratio with sign, and unit of the joint's effort, by motor with a gear on one joint."""
    motors = [m for m in getattr(robot, "motors", ()) if len(m.ratios) == 1 and m.reduction != 1.0]
    if not motors:
        return {}
    efforts = dict(zip(robot.freedom_names, robot.effort_units, strict=True))
    return {m.name: (x, efforts[joint]) for m in motors for joint, x in m.ratios.items()}


def _slip_findings(run: RunData) -> list[Row]:
    """Largest slip speed of each wheel, and smallest load of each wheel and support."""
    if run.slip is None:
        return []
    found = [
        Row.judged(f"slip speed of {name}, largest", float(speeds.max()), unit="m/s")
        for name, speeds in zip(wheel_names(run.robot), run.slip_speed.T, strict=True)
    ]
    for name, loads in zip(load_names(run.robot, run.slip), run.wheel_load.T, strict=True):
        least = float(loads.min())
        lifted, note = loads < LEAST_LOAD, ""
        if lifted.any():
            first = run.t[int(np.argmax(lifted))]
            note = f"lifts off at {first:.3g} s: the run is not valid from there on"
        label = f"load of {name}, smallest"
        found.append(Row.judged(label, least, LEAST_LOAD, "N", at_least=True, place=note))
    return found


def _limit_findings(run: RunData, limited: float) -> list[Row]:
    """How much limits left of the command, how long, and from when to when each was active."""
    found = [
        Row("smallest share of the commanded acceleration within limits", float(run.scale.min())),
        Row("share of the time in which limits were active", 100 * limited, unit="%"),
    ]
    for name, column in zip(run.servo.limit_names, run.active.T > 0.0, strict=True):
        if not column.any():
            continue
        begun = np.flatnonzero(column & ~np.append(False, column[:-1]))
        ended = np.flatnonzero(column & ~np.append(column[1:], False))
        times = [f"{run.t[i]:.4g} s to {run.t[k]:.4g} s" for i, k in zip(begun, ended, strict=True)]
        shown = ", ".join(times[:SHOWN]) + f" and {len(times) - SHOWN} more" * (len(times) > SHOWN)
        note = f"from {shown}; certificates do not cover this time"
        found.append(Row(f"limit active: {name}", 100 * float(column.mean()), unit="%", place=note))
    return found
