"""Figure of joint coordinates and speeds over time, with their limits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from concur.show.errors import TIME
from concur.show.style import PALETTE, new_figure, side_legend, styled, unmagnified

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from concur.show.style import Floats
    from concur.simulation import Run

_QUANTITIES = {"rad": ("angle", "angular velocity"), "m": ("travel", "velocity")}

# Fraction of a limit that counts as rounding, as in the findings of a run.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class _Curve:
    """One coordinate or velocity: name, values, extremes over all stages, and limits."""

    name: str
    values: Floats
    extremes: tuple[float, float]
    limits: tuple[float, float]

    @property
    def label(self) -> str:
        """Name, range and limits as a label of two or three lines."""
        low, high = self.extremes
        text = f"{self.name}\n  {low:.3g} to {high:.3g}"
        if np.isfinite(self.limits).any():
            text += f"\n  limits {self.limits[0]:.3g} to {self.limits[1]:.3g}"
            text += ": exceeded" * self.exceeded
        return text

    @property
    def exceeded(self) -> bool:
        """Whether an extreme exceeds its limit."""
        slack = [_ROUNDING * abs(limit) if np.isfinite(limit) else 0.0 for limit in self.limits]
        below = self.extremes[0] < self.limits[0] - slack[0]
        return below or self.extremes[1] > self.limits[1] + slack[1]


@dataclass
class _Row:
    """Coordinates and velocities with a common unit, side by side."""

    title: str
    unit: str
    positions: list[_Curve]
    speeds: list[_Curve]


def joint_figure(run: Run) -> Figure:
    """Draw joint coordinates and velocities over time, with their limits.

    Parameters
    ----------
    run : Run
        A finished run with `t`, `q`, `v`, `q_range`, `v_range`, `joint_limits` and `robot`.

    Returns
    -------
    matplotlib.figure.Figure
        Coordinates left, velocities right; wheels, joints, angles and travels separately.
        Dashed lines are limits. The legend gives the extremes over all stages of all steps.
        The base is drawn only if it has limits.

    Examples
    --------
    >>> joint_figure(run).savefig("joints.png")    # doctest: +SKIP
    """
    with styled():
        rows = _rows(run)
        heights = [_height(row) for row in rows]
        figure = new_figure(11.0, 1.2 + sum(heights))
        figure.suptitle(f"Joints of {run.robot.name}")
        grid = figure.subplots(
            max(1, len(rows)), 2, sharex=True, squeeze=False, height_ratios=heights or [1.0]
        )
        for (left, right), row in zip(grid, rows, strict=False):
            position, speed = _QUANTITIES.get(row.unit, ("coordinate", "velocity"))
            _draw(left, run, row.positions, f"{row.title}: {position}", f"{position} [{row.unit}]")
            _draw(right, run, row.speeds, f"{row.title}: {speed}", f"{speed} [{row.unit}/s]")
        for axes in grid[-1]:
            axes.set_xlabel(TIME)
        return figure


def _height(row: _Row) -> float:
    """Height of a row in inches: at least that of its highest legend."""
    lines = max(
        sum(curve.label.count("\n") + 1 for curve in curves)
        for curves in (row.positions, row.speeds)
    )
    return max(2.9, 0.6 + 0.172 * lines)


def _rows(run: Run) -> list[_Row]:
    wheels = {wheel.body for wheel in run.robot.wheels}
    limits: Any = run.joint_limits
    rows: dict[tuple[str, str], _Row] = {}
    at, behind = 0, 0
    for body in run.robot.bodies:
        joint, title = body.joint, "Wheels" if body.name in wheels else "Joints"
        title = title if body.parent else "Base"
        flat = joint.nq == joint.nv
        for k, (freedom, unit) in enumerate(
            zip(joint.freedom_names, joint.freedom_units, strict=True)
        ):
            i, j = at + k, behind + k
            name = body.name if joint.nv == 1 else f"{body.name}[{freedom}]"
            fastest = float(limits.speeds[j])
            bounds = _pair(limits.positions[i]) if flat else (-np.inf, np.inf)
            if body.parent is None and not np.isfinite([*bounds, fastest]).any():
                continue
            row = rows.setdefault((title, unit), _Row(title, unit, [], []))
            if flat:
                extremes = _pair(run.q_range[:, i])
                place = name if joint.nq == 1 else f"{body.name}[{joint.coordinate_names[k]}]"
                row.positions.append(_Curve(place, run.q[:, i], extremes, bounds))
            speed = _Curve(name, run.v[:, j], _pair(run.v_range[:, j]), (-fastest, fastest))
            row.speeds.append(speed)
        at, behind = at + joint.nq, behind + joint.nv
    return list(rows.values())


def _pair(values: Any) -> tuple[float, float]:
    return float(values[0]), float(values[1])


def _draw(axes: Axes, run: Run, curves: list[_Curve], title: str, quantity: str) -> None:
    axes.set_title(title)
    axes.set_ylabel(quantity)
    if not curves:
        axes.text(0.5, 0.5, "quaternions: no angles", ha="center", transform=axes.transAxes)
        return
    lines = []
    for number, curve in enumerate(curves):
        color = PALETTE[number % len(PALETTE)]
        dashes = ("-", "-.", ":")[number // len(PALETTE) % 3]
        lines += axes.plot(run.t, curve.values, color=color, linestyle=dashes, label=curve.label)
    low, high = axes.get_ylim()
    shown = [low, high]
    for line, curve in zip(lines, curves, strict=True):
        for limit in filter(np.isfinite, curve.limits):
            axes.axhline(limit, color=line.get_color(), linestyle="--", linewidth=1.0)
            # Omit distant limits: they would flatten the curves.
            if low - (high - low) <= limit <= high + (high - low):
                shown += [limit - 0.03 * (high - low), limit + 0.03 * (high - low)]
    axes.set_ylim(min(shown), max(shown))
    unmagnified(axes)
    side_legend(axes)
