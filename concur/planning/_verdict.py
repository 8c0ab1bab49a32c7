"""Rows of a motion in the dense check: its limits, and the misses of its goal."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from concur.planning._targets import Target
from concur.planning._transcription import Path, Transcription
from concur.results import Row

EXACT = 1e-6
"""Largest miss of a row of the goal, m and rad."""

KEPT = 1e-3
"""Largest excess over a limit in the dense check, relative to it."""

ROUNDED = 1e-6
"""Excess over a range that is rounding, rad and m."""

Floats = NDArray[np.float64]


def rows_of(form: Transcription, path: Path, duration: float) -> list[Row]:
    """Quantities with limits, the closest first, along a path of the dense check."""
    time = np.linspace(0.0, duration, len(path.x))
    found = [*_of_facts(form, path, time), *_of_rates(form, path, time, duration)]
    found += _of_ranges(form, path, time)
    return [row for _, row in sorted(found, key=lambda pair: -pair[0])]


def is_held(form: Transcription, path: Path, rows: Sequence[Row]) -> bool:
    """Whether all rows hold and the goal is reached, with what rests there."""
    off = np.maximum(np.abs(path.e) - form.within, 0.0).max(initial=0.0)
    return bool(off <= EXACT) and all(row.holds is not False for row in rows)


def misses_of(form: Transcription, path: Path, targets: Sequence[Target]) -> dict[str, float]:
    """Distance of each output from its goal."""
    found, at = dict[str, float](), 0
    over = np.maximum(np.abs(path.e) - form.within, 0.0)
    for target in targets:
        name, size = form.outputs[target.output].name, len(target.rows)
        miss = float(np.linalg.norm(over[at : at + size]))
        found[name] = max(found.get(name, 0.0), miss)
        at += size
    at = form.graphs.goals + form.graphs.resting
    for k, own in enumerate(form.vias):
        size = sum(len(target.rows) for target in own)
        found[f"via {k + 1}"] = float(np.linalg.norm(over[at : at + size]))
        at += size
    return found


def _of_facts(form: Transcription, path: Path, time: Floats) -> list[tuple[float, Row]]:
    """Torques, lines of speed and torque, margin and distances."""
    signed = np.where(form.one_sided, path.g, np.abs(path.g))
    merged = dict[str, tuple[float, Row]]()
    for k, (name, unit, limit, offset) in enumerate(form.facts):
        at = int(np.argmax(signed[:, k]))
        share = float(signed[at, k])
        least = limit < 0.0
        value, bound = limit * share + offset, limit + offset
        slack = KEPT * (abs(limit) if least else bound)
        row = Row.judged(
            name, value, bound, unit, f"t = {time[at]:.4g} s", at_least=least, slack=slack
        )
        if name not in merged or merged[name][0] < share:
            merged[name] = share, row
    return list(merged.values())


def _of_rates(
    form: Transcription, path: Path, time: Floats, duration: float
) -> list[tuple[float, Row]]:
    """Speeds, accelerations and jerks of the shape."""
    found, units = list[tuple[float, Row]](), _units(form)
    bounds, names = form.bounds, form.model.shape_names
    jerks = form.jerks(path, duration) if np.isfinite(bounds.jerks).any() else path.a
    for quantity, values, largest, suffix in (
        ("speed of", path.s, bounds.speeds, "/s"),
        ("acceleration of", path.a, bounds.accelerations, "/s^2"),
        ("jerk of", jerks, bounds.jerks, "/s^3"),
    ):
        for k in np.flatnonzero(np.isfinite(largest)).tolist():
            at = int(np.argmax(np.abs(values[:, k])))
            value, limit = float(abs(values[at, k])), float(largest[k])
            row = Row.judged(
                f"{quantity} {names[k]}", value, limit, units[k] + suffix,
                f"t = {time[at]:.4g} s", slack=KEPT * limit,
            )  # fmt: skip
            found.append((value / limit, row))
    return found


def _of_ranges(form: Transcription, path: Path, time: Floats) -> list[tuple[float, Row]]:
    """Positions of the shape at the ends of their ranges."""
    found, units, bounds = list[tuple[float, Row]](), _units(form), form.bounds
    for k, name in enumerate(form.model.shape_names):
        for bound, at_least in ((bounds.low[k], True), (bounds.high[k], False)):
            if np.isfinite(bound):
                values = path.r[:, k]
                at = int(np.argmin(values) if at_least else np.argmax(values))
                room = float(values[at] - bound if at_least else bound - values[at])
                row = Row.judged(
                    f"position of {name}", float(values[at]), float(bound), units[k],
                    f"t = {time[at]:.4g} s", at_least=at_least, slack=ROUNDED,
                )  # fmt: skip
                found.append((1.0 - room, row))
    return found


def _units(form: Transcription) -> list[str]:
    efforts = [form.model.system.effort_units[k] for k in form.model.shape]
    return ["rad" if unit == "N m" else "m" for unit in efforts]
