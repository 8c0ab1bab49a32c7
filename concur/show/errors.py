"""Figures over time: errors, Lyapunov function, torques, and numerical checks of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from concur.errors import ConcurError
from concur.rounding import percent
from concur.show._outputs import Channel, channels
from concur.show.style import (
    PALETTE,
    REFERENCE,
    ROUNDING,
    logarithmic,
    new_figure,
    output_color,
    side_legend,
    styled,
    unmagnified,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from concur.show.style import Floats
    from concur.simulation import Run

__all__ = [
    "error_figure",
    "health_figure",
    "numerics_figure",
    "torque_figure",
]

TIME = "time [s]"

# Part of a quantity up to which its residual is rounding.
_RELATIVE = 1e-9


def error_figure(run: Run) -> Figure:
    """Draw the tracking errors against the exact error dynamics.

    One column for each output and unit. Above, the norm of the error with that of the ideal decay;
    below, the error coordinates.

    Parameters
    ----------
    run : Run
        A finished run with `t`, `error`, `ideal` and `servo.outputs`.

    Returns
    -------
    matplotlib.figure.Figure
        Norms are on logarithmic axes.

    Raises
    ------
    ConcurError
        If the law of the run has no outputs.

    Examples
    --------
    >>> error_figure(run).savefig("errors.png")    # doctest: +SKIP
    """
    columns = channels(run)
    if not columns:
        raise ConcurError(
            f"error figure of a run of `{run.robot.name}`",
            expected="a law with outputs",
            came="a law without outputs, which has no tracking error",
            cure="Draw its overview with plot_run(run).",
        )
    with styled():
        figure = new_figure(max(6.5, 4.3 * len(columns)), 5.8)
        grid = figure.subplots(2, len(columns), sharex=True, squeeze=False)
        figure.suptitle(f"Tracking error of {run.robot.name}")
        for column, channel in enumerate(columns):
            top, bottom = grid[:, column]
            draw_error_norm(top, run, channel)
            top.set_title(channel.title)
            for index, name in zip(channel.columns, channel.names, strict=True):
                bottom.plot(run.t, run.error[:, index], label=name)
            bottom.set_ylabel(f"error coordinates [{channel.unit}]")
            unmagnified(bottom)
            bottom.set_xlabel(TIME)
            bottom.legend(ncols=min(3, len(channel.names)))
        return figure


def draw_error_norm(axes: Axes, run: Run, channel: Channel) -> None:
    """Draw the norm of one channel of the error, and its ideal decay, on a logarithmic axis."""
    actual, ideal = _norm(run.error, channel), _norm(run.ideal, channel)
    # The curves should coincide: a wide line under a dashed one shows both.
    axes.plot(run.t, actual, color=_color(run, channel), linewidth=2.6, label="simulated")
    axes.plot(run.t, ideal, color="black", linestyle="--", linewidth=1.2, label="ideal decay")
    axes.set_ylabel(f"|error| [{channel.unit}]")
    logarithmic(axes)
    axes.legend()


def draw_lyapunov(axes: Axes, run: Run) -> None:
    """Draw the Lyapunov function on a logarithmic axis."""
    values = np.asarray(run.lyapunov, dtype=float)
    label = f"V, from {values[0]:.2g} to {values[-1]:.2g}"
    axes.plot(run.t, values, color=PALETTE[6], label=label)
    axes.set_xlabel(TIME)
    units = dict.fromkeys(f"{channel.unit}²/s²" for channel in channels(run))
    form = r"$V = (x^T K_P\,x + v_e^T I\,v_e)\,/\,2$"
    linear = getattr(run.servo, "linearizes", True)
    axes.set_ylabel(f"{form}\n[{' + '.join(units)}]" if linear else "V [J]")
    # A square of errors: its rounding level is the square of theirs.
    logarithmic(axes, ROUNDING**2, 1e-18)
    axes.legend()


def torque_figure(run: Run, required: Mapping[str, float] | None = None) -> Figure:
    """Draw the control inputs with their peaks; wheels, joints, torques and forces separately.

    Parameters
    ----------
    run : Run
        A finished run with `t`, `u`, `control_units` and `servo.model.control_names`.
    required : mapping of str to float, optional
        Largest sizes that the task requires, by name of the control.

    Returns
    -------
    matplotlib.figure.Figure
        One panel for each kind of control input, with the tightest of the limits of law, task and
        robot; below them, if limits of the law were active, the scale factor of the commanded
        acceleration.

    Raises
    ------
    ConcurError
        If the robot has no controls.

    Examples
    --------
    >>> torque_figure(run).savefig("torques.png")    # doctest: +SKIP
    """
    panels = _control_panels(run)
    if not panels:
        raise ConcurError(
            f"torque figure of a run of `{run.robot.name}`",
            expected="a robot with controls",
            came="a robot without controls",
            cure="Draw its overview with plot_run(run).",
        )
    with styled():
        limits = _control_limits(run, required or {})
        limited = run.servo.torque_limits is not None and bool(np.min(run.scale) < 1.0)
        # A legend higher than its panel would shrink the panel.
        heights = [
            max(2.9, 0.6 + 0.2 * sum(2 + (column in limits) for column in columns))
            for columns in panels.values()
        ]
        heights += [2.0] * limited
        figure = new_figure(9.0, 1.2 + sum(heights))
        grid = figure.subplots(len(heights), 1, sharex=True, squeeze=False, height_ratios=heights)[
            :, 0
        ]
        figure.suptitle(f"Control inputs of {run.robot.name}")
        for axes, ((kind, unit), columns) in zip(grid, panels.items(), strict=False):
            draw_controls(axes, run, columns)
            _draw_limits(axes, run, columns, limits)
            unmagnified(axes)
            axes.set_title(kind)
            axes.set_ylabel(f"{_quantity(unit)} [{unit}]")
            side_legend(axes)
        if limited:
            _draw_scale(grid[-1], run)
        grid[-1].set_xlabel(TIME)
        return figure


def draw_controls(axes: Axes, run: Run, columns: list[int], *, peaks: bool = True) -> None:
    """Draw control inputs over time and mark the peak of each, with its value if `peaks`."""
    names = run.servo.model.control_names
    for number, column in enumerate(columns):
        values = run.u[:, column]
        unit = run.control_units[column]
        peak = _peak(values)
        label = str(names[column])
        if peaks:
            label += f"\n  |peak| {abs(values[peak]):.3g} {unit} at {run.t[peak]:.3g} s"
        color = PALETTE[number % len(PALETTE)]
        dashes = ("-", "-.", ":")[number // len(PALETTE) % 3]
        axes.plot(run.t, values, color=color, linestyle=dashes, label=label)
        axes.plot(
            run.t[peak : peak + 1],
            values[peak : peak + 1],
            linestyle="none",
            marker="o",
            markersize=6,
            markerfacecolor="white",
            color=color,
            markeredgewidth=1.6,
            clip_on=False,
            zorder=5,
        )


@dataclass(frozen=True)
class _Limit:
    """Limits of a control, and whose they are."""

    low: float
    high: float
    text: str


def _control_limits(run: Run, required: Mapping[str, float]) -> dict[int, _Limit]:
    """Tightest limits by column, of law, task and robot; columns without a limit are absent."""
    found = {}
    own = run.servo.torque_limits
    for column, name in enumerate(run.servo.model.control_names):
        most = float(run.joint_limits.torques[column])
        needed = float(required.get(name, np.inf))
        pairs = {"law": (-np.inf, np.inf), "task": (-needed, needed), "robot": (-most, most)}
        if own is not None:
            pairs["law"] = (float(own[column][0]), float(own[column][1]))
        low, high = max(p[0] for p in pairs.values()), min(p[1] for p in pairs.values())
        if np.isfinite([low, high]).any():
            owners = [o for o, p in pairs.items() if low in p[:1] or high in p[1:]]
            owners = [o for o in owners if np.isfinite(pairs[o]).any()]
            text = f"{low:.3g} to {high:.3g} {run.control_units[column]}"
            found[column] = _Limit(low, high, f"{text}, {' and '.join(owners)}")
    return found


def _draw_limits(axes: Axes, run: Run, columns: list[int], limits: Mapping[int, _Limit]) -> None:
    """Draw the limits of control inputs; equal limits are one pair of lines."""
    own = {column: limits[column] for column in columns if column in limits}
    if not own:
        return
    low, high = axes.get_ylim()
    names = run.servo.model.control_names
    same = len(own) == len(columns) and len(set(own.values())) == 1
    for column, limit in list(own.items())[: 1 if same else None]:
        number = columns.index(column)
        label: str | None = (
            f"limits: {limit.text}" if same else f"limits of {names[column]}:\n  {limit.text}"
        )
        color = REFERENCE if same else PALETTE[number % len(PALETTE)]
        for end in filter(np.isfinite, (limit.low, limit.high)):
            axes.axhline(end, color=color, linestyle="--", linewidth=1.0, label=label)
            label = None
    # Omit distant limits: they would flatten the curves.
    ends = np.array([end for limit in own.values() for end in (limit.low, limit.high)])
    near = ends[np.isfinite(ends) & (np.abs(ends) < 2.0 * max(-low, high))]
    axes.set_ylim(min([low, *(1.05 * near)]), max([high, *(1.05 * near)]))


def _draw_scale(axes: Axes, run: Run) -> None:
    """Draw the scale factor of the commanded acceleration due to torque limits."""
    scale = np.asarray(run.scale, dtype=float)
    share = float(np.mean(scale < 1.0))
    label = f"least {scale.min():.3g}\n  below 1 for {percent(share)} of the time"
    axes.plot(run.t, scale, color=PALETTE[0], linestyle="-", label=label)
    axes.set_title("Scale factor of the commanded acceleration: 1 = limits inactive")
    axes.set_ylabel("scale [1]")
    axes.set_ylim(min(0.0, float(scale.min())), 1.1)
    side_legend(axes)


def health_figure(run: Run) -> Figure:
    """Draw the decoupling margin and, if the servo damps, the acceleration residual.

    Parameters
    ----------
    run : Run
        A finished run with `t` and `margin`, each (k,).

    Returns
    -------
    matplotlib.figure.Figure
        Panels over one time axis.

    Examples
    --------
    >>> health_figure(run).savefig("health.png")    # doctest: +SKIP
    """
    with styled():
        damped = run.servo.damping_threshold is not None
        figure = new_figure(9.0, 6.2 if damped else 3.8)
        panels = figure.subplots(1 + damped, 1, sharex=True, squeeze=False)[:, 0]
        margin = panels[0]
        figure.suptitle(f"Distance of {run.robot.name} from singular configurations")
        draw_margin(margin, run)
        if damped:
            zone = run.servo.damping_threshold
            margin.axhline(
                zone, color=REFERENCE, linestyle="--", linewidth=1.0, label=f"damped below {zone:g}"
            )
        side_legend(margin)
        margin.set_title(
            "Decoupling margin: smallest singular value of the scaled decoupling matrix\n"
            "(0 = some output direction cannot be commanded)"
        )
        if damped:
            _draw_by_unit(panels[1], run, run.acceleration_residual, "/s²")
            panels[1].set_title("Acceleration residual")
        panels[-1].set_xlabel(TIME)
        return figure


@dataclass(frozen=True)
class Residual:
    """A quantity that is zero within rounding in an ideal run.

    Parameters
    ----------
    title : str
        Name of the quantity.
    unit : str
        Unit, empty for a ratio.
    curves : mapping of str to ndarray
        Its sizes over time by label, each (k,).
    rounding : float
        Size up to which it is rounding.
    """

    title: str
    unit: str
    curves: Mapping[str, Floats]
    rounding: float

    @property
    def largest(self) -> float:
        """Largest size over time; NaN without a finite value."""
        return _largest(np.concatenate(list(self.curves.values())))

    @property
    def zero(self) -> bool:
        """Whether it is zero within rounding."""
        return self.largest <= self.rounding


def residuals(run: Run) -> list[Residual]:
    """Quantities of a run that differ from zero only by rounding in an ideal run.

    Parameters
    ----------
    run : Run
        A finished run.

    Returns
    -------
    list of Residual
        Deviation from the exact error dynamics by unit; drift of the momentum of a floating robot,
        or else residual of the constraints; energy balance.
    """
    found: dict[str, dict[str, Floats]] = {}
    for channel in channels(run):
        norm = _norm(run.deviation, channel)
        found.setdefault(channel.unit, {})[channel.title] = norm
    rows = [
        Residual(
            "deviation from the exact error dynamics",
            unit,
            curves,
            max(ROUNDING, _RELATIVE * _largest(run.error)),
        )
        for unit, curves in found.items()
    ]
    if run.floats:
        drift = np.asarray(run.momentum_drift, dtype=float)
        rows.append(Residual("relative drift of the momentum", "", {"drift": drift}, _RELATIVE))
    elif getattr(run.robot, "wheels", ()):
        slip = {"residual": np.abs(run.constraint_residual)}
        fastest = _largest(run.v) if run.v.size else 0.0
        rounding = max(ROUNDING, _RELATIVE * fastest)
        rows.append(Residual("residual of the rolling constraints", "m/s", slip, rounding))
    balance = {
        "|energy − energy at the start − work|": np.abs(run.energy - run.energy[0] - run.work)
    }
    rounding = max(ROUNDING, _RELATIVE * _largest(np.concatenate([run.energy, run.work])))
    return [*rows, Residual("energy balance", "J", balance, rounding)]


def numerics_figure(run: Run) -> Figure:
    """Draw the quantities of `residuals` that are not zero within rounding.

    Parameters
    ----------
    run : Run
        A finished run with `deviation` (k, m) and `constraint_residual`, `energy`, `work`, each
        (k,).

    Returns
    -------
    matplotlib.figure.Figure
        One panel for each quantity, with a logarithmic axis.

    Raises
    ------
    ConcurError
        If all quantities are zero within rounding.

    Examples
    --------
    >>> numerics_figure(run).savefig("numerics.png")    # doctest: +SKIP
    """
    rows = [row for row in residuals(run) if not row.zero]
    if not rows:
        raise ConcurError(
            f"numerics figure of a run of `{run.robot.name}`",
            expected="a run with a residual above rounding",
            came="a run whose residuals are zero within rounding",
            cure="Read their sizes in its report.",
        )
    with styled():
        figure = new_figure(9.0, 0.8 + 2.6 * len(rows))
        figure.suptitle(f"Numerical checks of the run of {run.robot.name}")
        grid = figure.subplots(len(rows), 1, sharex=True, squeeze=False)[:, 0]
        for axes, row in zip(grid, rows, strict=True):
            for number, (label, values) in enumerate(row.curves.items()):
                text = f"{label}\n  largest {_largest(values):.2g} {row.unit}".rstrip()
                axes.plot(run.t, values, color=PALETTE[number], linestyle="-", label=text)
            axes.set_title(row.title.capitalize())
            axes.set_ylabel(f"size [{row.unit or '1'}]")
            logarithmic(axes)
            side_legend(axes)
        grid[-1].set_xlabel(TIME)
        return figure


def _draw_by_unit(axes: Axes, run: Run, values: Floats, per: str) -> None:
    """Draw norms of output coordinates, one line for each output and unit."""
    parts = channels(run)
    for channel in parts:
        norm = _norm(values, channel)
        unit = channel.unit + per
        strength = 0.45 if channel.unit == "rad" else 1.0
        label = f"{channel.title}\n  largest {_largest(norm):.2g} {unit}"
        axes.plot(
            run.t, norm, color=_color(run, channel), linestyle="-", alpha=strength, label=label
        )
    axes.set_ylabel(f"residual [{', '.join(dict.fromkeys(c.unit + per for c in parts))}]")
    side_legend(axes)


def draw_margin(axes: Axes, run: Run) -> None:
    """Draw the decoupling margin and mark its smallest value."""
    margin = np.asarray(run.margin, dtype=float)
    least = int(np.argmin(np.where(np.isfinite(margin), margin, np.inf)))
    axes.plot(run.t, margin, color=PALETTE[2], label="margin")
    axes.plot(
        run.t[least : least + 1],
        margin[least : least + 1],
        linestyle="none",
        marker="o",
        markerfacecolor="white",
        markeredgecolor=PALETTE[2],
        label=f"least {margin[least]:.3g} at {run.t[least]:.3g} s",
    )
    axes.set_ylabel("margin [1]")
    # Include zero, where no torque exists for some commanded accelerations.
    largest = _largest(margin)
    axes.set_ylim(0.0, 1.15 * largest if largest > 0 else 1.0)


def _control_panels(run: Run) -> dict[tuple[str, str], list[int]]:
    wheels = {wheel.body for wheel in getattr(run.robot, "wheels", ())}
    panels: dict[tuple[str, str], list[int]] = {}
    for column, name in enumerate(run.servo.model.control_names):
        # A joint with several DOFs adds a suffix to the name of its body.
        on_wheel = any(name == body or name.startswith((f"{body}.", f"{body}[")) for body in wheels)
        kind = "Wheels" if on_wheel else "Joints"
        panels.setdefault((kind, run.control_units[column]), []).append(column)
    return panels


def _quantity(unit: str) -> str:
    return {"N": "force", "N m": "torque"}.get(unit, "control")


def _color(run: Run, channel: Channel) -> str:
    names = [output.name for output in run.servo.outputs]
    return output_color(names.index(channel.output))


def _norm(values: Floats, channel: Channel) -> Floats:
    return np.asarray(np.linalg.norm(values[:, list(channel.columns)], axis=1))


def _peak(values: Floats) -> int:
    return int(np.argmax(np.where(np.isfinite(values), np.abs(values), -1.0)))


def _largest(values: Floats) -> float:
    finite = np.abs(values[np.isfinite(values)])
    return float(finite.max()) if finite.size else float("nan")
