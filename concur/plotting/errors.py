"""Figures over time: errors, Lyapunov function, torques, and the health of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from concur.plotting.outputs import Channel, channels
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

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from concur.plotting.protocols import Floats, RunLike

TIME = "time [s]"


def error_figure(run: RunLike) -> Figure:
    """Draw the tracking errors against the exact error dynamics.

    One column for each output and unit. From top to bottom: the norm of the error beside that of
    the ideal decay, the error coordinates, and the norm of the deviation of one from the other.

    Parameters
    ----------
    run : RunLike
        A finished run with `t`, `error`, `ideal`, `deviation` and `servo.outputs`.

    Returns
    -------
    matplotlib.figure.Figure
        Norms are drawn on logarithmic axes that reach down to 1e-16 at most.

    Examples
    --------
    >>> error_figure(run).savefig("errors.png")    # doctest: +SKIP
    """
    with styled():
        columns = channels(run)
        figure = new_figure(max(6.5, 4.3 * len(columns)), 8.0)
        grid = figure.subplots(3, len(columns), sharex=True, squeeze=False)
        figure.suptitle(f"Tracking error of {run.robot.name}")
        for column, channel in enumerate(columns):
            top, middle, bottom = grid[:, column]
            draw_error_norm(top, run, channel)
            top.set_title(channel.title)
            for index, name in zip(channel.columns, channel.names, strict=True):
                middle.plot(run.t, run.error[:, index], label=name)
            middle.set_ylabel(f"error coordinates [{channel.unit}]")
            middle.legend(ncols=min(3, len(channel.names)))
            deviation = _norm(run.deviation, channel)
            bottom.plot(
                run.t,
                deviation,
                color=_color(run, channel),
                linewidth=1.0,
                label=_largest_text(deviation, channel.unit),
            )
            bottom.set_ylabel(f"|error − ideal| [{channel.unit}]")
            bottom.set_xlabel(TIME)
            logarithmic(bottom)
            bottom.legend()
        return figure


def draw_error_norm(axes: Axes, run: RunLike, channel: Channel) -> None:
    """Draw the norm of one channel of the error, and its ideal decay, on a logarithmic axis.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
        Axes to draw into.
    run : RunLike
        A finished run.
    channel : Channel
        Which coordinates.
    """
    actual, ideal = _norm(run.error, channel), _norm(run.ideal, channel)
    # The two should coincide: a wide line under a dashed one shows both.
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
    """Draw the Lyapunov function on a logarithmic axis.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
        Axes to draw into.
    run : RunLike
        A finished run.
    """
    values = np.asarray(run.lyapunov, dtype=float)
    label = f"V, from {values[0]:.2g} to {values[-1]:.2g}"
    axes.plot(run.t, values, color=PALETTE[6], label=label)
    axes.set_xlabel(TIME)
    units = dict.fromkeys(f"{channel.unit}²/s²" for channel in channels(run))
    axes.set_ylabel(f"V [{', '.join(units)}]")
    # A square of errors: its rounding is the square of theirs.
    logarithmic(axes, FLOOR**2)
    axes.legend()


def torque_figure(run: RunLike) -> Figure:
    """Draw the controls: wheels and joints apart, torques and forces apart, peaks marked.

    Parameters
    ----------
    run : RunLike
        A finished run with `t`, `u`, `control_units` and `servo.model.control_names`.

    Returns
    -------
    matplotlib.figure.Figure
        One panel for each kind of control.

    Examples
    --------
    >>> torque_figure(run).savefig("torques.png")    # doctest: +SKIP
    """
    with styled():
        panels = _control_panels(run)
        figure = new_figure(9.0, 1.2 + 2.9 * len(panels))
        grid = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
        figure.suptitle(f"Controls of {run.robot.name}")
        for axes, ((kind, unit), columns) in zip(grid, panels.items(), strict=True):
            draw_controls(axes, run, columns)
            axes.set_title(kind)
            axes.set_ylabel(f"{_quantity(unit)} [{unit}]")
            side_legend(axes)
        grid[-1].set_xlabel(TIME)
        return figure


def draw_controls(axes: Axes, run: RunLike, columns: list[int]) -> None:
    """Draw some controls over time and mark the peak of each.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
        Axes to draw into.
    run : RunLike
        A finished run.
    columns : list of int
        Columns of `run.u`.
    """
    names = run.servo.model.control_names
    for number, column in enumerate(columns):
        values = run.u[:, column]
        unit = run.control_units[column]
        peak = _peak(values)
        label = f"{names[column]}\n  |peak| {abs(values[peak]):.3g} {unit} at {run.t[peak]:.3g} s"
        color = PALETTE[number % len(PALETTE)]
        dashes = ("-", "--", ":")[number // len(PALETTE) % 3]
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


def health_figure(run: RunLike) -> Figure:
    """Draw what must stay small or away from zero in any honest run.

    From top to bottom: the residual of the constraints, the energy that neither work nor the
    start explains, and the margin of the decoupling matrix.

    Parameters
    ----------
    run : RunLike
        A finished run with `constraint_residual`, `energy`, `work` and `margin`, each (k,).

    Returns
    -------
    matplotlib.figure.Figure
        Three panels over one time axis.

    Examples
    --------
    >>> health_figure(run).savefig("health.png")    # doctest: +SKIP
    """
    with styled():
        figure = new_figure(9.0, 8.0)
        top, middle, bottom = figure.subplots(3, 1, sharex=True)
        figure.suptitle(f"Health of the run of {run.robot.name}")

        residual = np.abs(run.constraint_residual)
        label = _largest_text(residual, "m/s")
        top.plot(run.t, residual, color=PALETTE[0], label=label)
        top.set_title("Constraint residual")
        top.set_ylabel("residual [m/s]")
        logarithmic(top)
        side_legend(top)

        balance = run.energy - run.energy[0] - run.work
        label = f"largest {_largest(balance):.2g} J\n  of {_largest(run.energy):.2g} J"
        middle.plot(run.t, balance, color=PALETTE[1], label=label)
        middle.axhline(0.0, color=REFERENCE, linewidth=0.8)
        middle.set_title("Energy balance: energy − energy at the start − work")
        middle.set_ylabel("imbalance [J]")
        side_legend(middle)

        draw_margin(bottom, run)
        side_legend(bottom)
        bottom.set_title(
            "Margin: 0 = some output direction cannot be commanded\n"
            "(smallest singular value of the decoupling matrix)"
        )
        bottom.set_xlabel(TIME)
        return figure


def draw_margin(axes: Axes, run: RunLike) -> None:
    """Draw the margin of the decoupling matrix and mark its smallest value.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
        Axes to draw into.
    run : RunLike
        A finished run.
    """
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
    # Zero is the value that matters: there no torque exists for the demand.
    largest = _largest(margin)
    axes.set_ylim(0.0, 1.15 * largest if largest > 0 else 1.0)


def _control_panels(run: RunLike) -> dict[tuple[str, str], list[int]]:
    wheels = {wheel.body for wheel in run.robot.wheels}
    panels: dict[tuple[str, str], list[int]] = {}
    for column, name in enumerate(run.servo.model.control_names):
        # A joint with several freedoms adds a suffix to the name of its body.
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
    # A logarithmic axis has no place for zero: words must say why nothing is drawn.
    return f"zero {unit} throughout" if largest == 0 else f"largest {largest:.2g} {unit}"
