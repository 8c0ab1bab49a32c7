"""Figures over time: errors, Lyapunov function, torques, and numerical checks of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from concur.errors import ConcurError
from concur.plotting._outputs import Channel, channels
from concur.plotting.style import (
    FLOOR,
    PALETTE,
    REFERENCE,
    logarithmic,
    new_figure,
    output_color,
    side_legend,
    styled,
)
from concur.rounding import percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from concur.plotting.protocols import Floats, RunLike

__all__ = [
    "error_figure",
    "health_figure",
    "lyapunov_figure",
    "numerics_figure",
    "torque_figure",
]

TIME = "time [s]"


def error_figure(run: RunLike) -> Figure:
    """Draw the tracking errors against the exact error dynamics.

    One column for each output and unit. Above, the norm of the error with that of the ideal decay;
    below, the error coordinates.

    Parameters
    ----------
    run : RunLike
        A finished run with `t`, `error`, `ideal` and `servo.outputs`.

    Returns
    -------
    matplotlib.figure.Figure
        Norms are on logarithmic axes that extend down to at least 1e-16.

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
            bottom.set_xlabel(TIME)
            bottom.legend(ncols=min(3, len(channel.names)))
        return figure


def draw_error_norm(axes: Axes, run: RunLike, channel: Channel) -> None:
    """Draw the norm of one channel of the error, and its ideal decay, on a logarithmic axis."""
    actual, ideal = _norm(run.error, channel), _norm(run.ideal, channel)
    # The curves should coincide: a wide line under a dashed one shows both.
    axes.plot(run.t, actual, color=_color(run, channel), linewidth=2.6, label="simulated")
    axes.plot(run.t, ideal, color="black", linestyle="--", linewidth=1.2, label="ideal decay")
    axes.set_ylabel(f"|error| [{channel.unit}]")
    logarithmic(axes)
    axes.legend()


def lyapunov_figure(run: RunLike) -> Figure:
    """Draw the Lyapunov function over time.

    Parameters
    ----------
    run : RunLike
        A finished run with `t` and `lyapunov`, shape (k,).

    Returns
    -------
    matplotlib.figure.Figure
        One logarithmic axis that reaches down to 1e-32 at most.

    Examples
    --------
    >>> lyapunov_figure(run).savefig("lyapunov.png")    # doctest: +SKIP
    """
    with styled():
        figure = new_figure(7.5, 4.2)
        axes = figure.subplots()
        draw_lyapunov(axes, run)
        axes.set_title(f"Lyapunov function of {run.robot.name}")
        return figure


def draw_lyapunov(axes: Axes, run: RunLike) -> None:
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
    logarithmic(axes, FLOOR**2)
    axes.legend()


def torque_figure(run: RunLike) -> Figure:
    """Draw the control inputs with their peaks; wheels, joints, torques and forces separately.

    Parameters
    ----------
    run : RunLike
        A finished run with `t`, `u`, `control_units` and `servo.model.control_names`.

    Returns
    -------
    matplotlib.figure.Figure
        One panel for each kind of control input, with its limits if it has any; below them, if
        the servo has limits, the scale factor of the commanded acceleration.

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
        limited = run.servo.torque_limits is not None
        # A legend higher than its panel would shrink the panel.
        bounded = bool(np.isfinite(_torque_limits(run)).any())
        heights = [max(2.9, 0.6 + 0.37 * (len(columns) + bounded)) for columns in panels.values()]
        heights += [2.0] * limited
        figure = new_figure(9.0, 1.2 + sum(heights))
        grid = figure.subplots(len(heights), 1, sharex=True, squeeze=False, height_ratios=heights)[
            :, 0
        ]
        figure.suptitle(f"Control inputs of {run.robot.name}")
        for axes, ((kind, unit), columns) in zip(grid, panels.items(), strict=False):
            draw_controls(axes, run, columns)
            _draw_limits(axes, run, columns)
            axes.set_title(kind)
            axes.set_ylabel(f"{_quantity(unit)} [{unit}]")
            side_legend(axes)
        if limited:
            _draw_scale(grid[-1], run)
        grid[-1].set_xlabel(TIME)
        return figure


def draw_controls(axes: Axes, run: RunLike, columns: list[int], *, peaks: bool = True) -> None:
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


def _draw_limits(axes: Axes, run: RunLike, columns: list[int]) -> None:
    """Draw the limits of control inputs; equal limits are one pair of lines."""
    limits = _torque_limits(run)[columns]
    if not np.isfinite(limits).any():
        return
    low, high = axes.get_ylim()
    same = bool(np.all(limits == limits[0]))
    for number, pair in enumerate(limits[:1] if same else limits):
        unit = run.control_units[columns[0]]
        label = f"limits\n  {pair[0]:.3g} to {pair[1]:.3g} {unit}" if same else None
        color = REFERENCE if same else PALETTE[number % len(PALETTE)]
        for limit in pair[np.isfinite(pair)]:
            axes.axhline(limit, color=color, linestyle="--", linewidth=1.0, label=label)
            label = None
    # Omit distant limits: they would flatten the curves.
    near = limits[np.isfinite(limits) & (np.abs(limits) < 2.0 * max(-low, high))]
    axes.set_ylim(min([low, *(1.05 * near)]), max([high, *(1.05 * near)]))


def _torque_limits(run: RunLike) -> Floats:
    """The narrower limits of law and robot, shape (nu, 2)."""
    largest = np.asarray(run.joint_limits.torques, dtype=float)
    limits = np.column_stack([-largest, largest])
    if run.servo.torque_limits is None:
        return limits
    own = np.asarray(run.servo.torque_limits, dtype=float)
    return np.column_stack(
        [np.maximum(limits[:, 0], own[:, 0]), np.minimum(limits[:, 1], own[:, 1])]
    )


def _draw_scale(axes: Axes, run: RunLike) -> None:
    """Draw the scale factor of the commanded acceleration due to torque limits."""
    scale = np.asarray(run.scale, dtype=float)
    share = float(np.mean(scale < 1.0))
    label = f"least {scale.min():.3g}\n  below 1 for {percent(share)} of the time"
    axes.plot(run.t, scale, color=PALETTE[0], linestyle="-", label=label)
    axes.set_title("Scale factor of the commanded acceleration: 1 = limits inactive")
    axes.set_ylabel("scale [1]")
    axes.set_ylim(min(0.0, float(scale.min())), 1.1)
    side_legend(axes)


def health_figure(run: RunLike) -> Figure:
    """Draw the decoupling margin and, if the servo damps, the acceleration residual.

    Parameters
    ----------
    run : RunLike
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


def numerics_figure(run: RunLike) -> Figure:
    """Draw the quantities that differ from zero only by round-off in an ideal run.

    From top to bottom: the deviation from the exact error dynamics; the drift of the momentum of a
    floating robot, or else the residual of the constraints; and the energy balance, without work
    and the energy at the start.

    Parameters
    ----------
    run : RunLike
        A finished run with `deviation` (k, m) and `constraint_residual`, `energy`, `work`, each
        (k,).

    Returns
    -------
    matplotlib.figure.Figure
        Three panels over one time axis; deviation and drift are on logarithmic axes that extend
        down to at least 1e-16.

    Examples
    --------
    >>> numerics_figure(run).savefig("numerics.png")    # doctest: +SKIP
    """
    with styled():
        figure = new_figure(9.0, 8.0)
        first, top, middle = figure.subplots(3, 1, sharex=True)
        figure.suptitle(f"Numerical checks of the run of {run.robot.name}")
        _draw_by_unit(first, run, run.deviation, "")
        first.set_title("Deviation from the exact error dynamics: |error − ideal|")
        logarithmic(first)
        if run.floats:
            drift = np.asarray(run.momentum_drift, dtype=float)
            title = "Momentum: deviation from that at the start, relative"
            _draw_residual(top, run, drift, _largest_text(drift, ""), title, "drift [1]")
        else:
            residual = np.abs(run.constraint_residual)
            label = _largest_text(residual, "m/s")
            _draw_residual(top, run, residual, label, "Constraint residual", "residual [m/s]")

        balance = run.energy - run.energy[0] - run.work
        label = f"largest {_largest(balance):.2g} J\n  of {_largest(run.energy):.2g} J"
        middle.plot(run.t, balance, color=PALETTE[1], label=label)
        middle.axhline(0.0, color=REFERENCE, linewidth=0.8)
        middle.set_title("Energy balance: energy − energy at the start − work")
        middle.set_ylabel("imbalance [J]")
        side_legend(middle)
        middle.set_xlabel(TIME)
        return figure


def _draw_residual(
    axes: Axes, run: RunLike, values: Floats, label: str, title: str, quantity: str
) -> None:
    axes.plot(run.t, values, color=PALETTE[0], label=label)
    axes.set_title(title)
    axes.set_ylabel(quantity)
    logarithmic(axes)
    side_legend(axes)


def _draw_by_unit(axes: Axes, run: RunLike, values: Floats, per: str) -> None:
    """Draw norms of output coordinates, one line for each output and unit."""
    parts = channels(run)
    for channel in parts:
        norm = _norm(values, channel)
        unit = channel.unit + per
        strength = 0.45 if channel.unit == "rad" else 1.0
        label = f"{channel.title}\n  {_largest_text(norm, unit)}"
        axes.plot(
            run.t, norm, color=_color(run, channel), linestyle="-", alpha=strength, label=label
        )
    units = ", ".join(dict.fromkeys(channel.unit + per for channel in parts))
    axes.set_ylabel(f"{'residual' if per else 'deviation'} [{units}]")
    side_legend(axes)


def draw_margin(axes: Axes, run: RunLike) -> None:
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


def _control_panels(run: RunLike) -> dict[tuple[str, str], list[int]]:
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


def _color(run: RunLike, channel: Channel) -> str:
    names = [output.name for output in run.servo.outputs]
    return output_color(names.index(channel.output))


def _norm(values: Floats, channel: Channel) -> Floats:
    return np.asarray(np.linalg.norm(values[:, list(channel.columns)], axis=1))


def _peak(values: Floats) -> int:
    return int(np.argmax(np.where(np.isfinite(values), np.abs(values), -1.0)))


def _largest(values: Floats) -> float:
    finite = np.abs(values[np.isfinite(values)])
    return float(finite.max()) if finite.size else float("nan")


def _largest_text(values: Floats, unit: str) -> str:
    largest = _largest(values)
    # A logarithmic axis cannot show zero: explain the empty panel in words.
    text = f"zero {unit} throughout" if largest == 0 else f"largest {largest:.2g} {unit}"
    return " ".join(text.split())
