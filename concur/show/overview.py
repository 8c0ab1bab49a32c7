"""Overview of a run on one page, and all figures of a run as files."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from concur.show._course import Course, leaves_plane
from concur.show._outputs import channels
from concur.show._space import TRIAD, fit_view
from concur.show.errors import (
    TIME,
    draw_controls,
    draw_lyapunov,
    error_figure,
    health_figure,
    numerics_figure,
    residuals,
    torque_figure,
)
from concur.show.files import make_directory, writing
from concur.show.joints import joint_figure
from concur.show.motion import draw_configuration
from concur.show.path import draw_top_view, path_figure
from concur.show.robot import robot_figure
from concur.show.style import (
    DPI,
    logarithmic,
    new_figure,
    output_color,
    side_legend,
    styled,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from concur.simulation import Run

# Largest number of control inputs whose peaks the legend of the overview lists.
_FEW = 10


def plot_run(run: Run) -> Figure:
    """Draw a run on one page: path, errors, Lyapunov function and control inputs.

    Parameters
    ----------
    run : Run
        A finished run.

    Returns
    -------
    matplotlib.figure.Figure
        Four panels.

    Examples
    --------
    >>> plot_run(run).savefig("overview.png")    # doctest: +SKIP
    """
    with styled():
        figure = new_figure(14.0, 9.0)
        (path, errors), (lyapunov, controls) = figure.subplots(2, 2)
        figure.suptitle(f"Run of {run.robot.name}, {run.t[-1] - run.t[0]:.3g} s")
        has_bodies = hasattr(run.robot, "bodies")
        flies = has_bodies and leaves_plane(run)
        if not has_bodies:
            draw_configuration(path, run.robot, run.t, run.q)
            path.set_xlabel(TIME)
        elif flies:
            path.set_axis_off()
        else:
            draw_top_view(path, run)
            path.set_title("Path, seen from above")
            side_legend(path)

        parts = channels(run)
        names = [output.name for output in run.servo.outputs]
        for number, channel in enumerate(parts):
            color = output_color(names.index(channel.output))
            # The orientation error has the colour of the position error, but lighter.
            strength = 0.45 if channel.unit == "rad" else 1.0
            columns = list(channel.columns)
            actual = np.linalg.norm(run.error[:, columns], axis=1)
            ideal = np.linalg.norm(run.ideal[:, columns], axis=1)
            label = f"{channel.title} [{channel.unit}]"
            errors.plot(
                run.t,
                actual,
                color=color,
                linestyle="-",
                alpha=strength,
                linewidth=2.6,
                label=label,
            )
            errors.plot(
                run.t,
                ideal,
                color="black",
                linestyle="--",
                linewidth=1.2,
                label="ideal decay" if number == len(parts) - 1 else None,
            )
        if parts:
            units = ", ".join(dict.fromkeys(channel.unit for channel in parts))
            errors.set_title("Tracking error")
            errors.set_ylabel(f"|error| [{units}]")
            errors.set_xlabel(TIME)
            logarithmic(errors)
            side_legend(errors)
            draw_lyapunov(lyapunov, run)
            lyapunov.set_title("Lyapunov function")
        else:  # a law that follows no outputs
            errors.set_axis_off()
            lyapunov.set_axis_off()

        count = run.u.shape[1]
        # Two legend lines for each of more control inputs would exceed the panel.
        draw_controls(controls, run, list(range(count)), peaks=count <= _FEW)
        controls.set_title("Controls")
        controls.set_ylabel(f"controls [{', '.join(dict.fromkeys(run.control_units))}]")
        controls.set_xlabel(TIME)
        side_legend(controls)
        if flies:
            _draw_flight(figure, run, path)
        return figure


def _draw_flight(figure: Figure, run: Run, path: Axes) -> None:
    """Replace empty axes by a view in space, with the robot at the end of the run."""
    figure.draw_without_rendering()
    left, bottom, width, height = path.get_position().bounds
    path.remove()
    course = Course(figure, run, np.array([len(run.t) - 1]))
    legend = 0.15 * height
    fit_view(course.axes, (left - 0.02, bottom + legend, width + 0.02, height - legend))
    title = f"Path, and the robot at {run.t[-1]:.3g} s"
    figure.text(left + width / 2, bottom + height, title, ha="center", fontsize=11)
    course.axes.legend(
        handles=course.handles,
        handler_map=TRIAD,
        loc="lower center",
        bbox_to_anchor=(left + width / 2, bottom),
        bbox_transform=figure.transFigure,
        borderaxespad=0.0,
        ncols=3,
    )


def run_figures(
    run: Run, required: Mapping[str, float] | None = None
) -> dict[str, Callable[[], Figure]]:
    """Figures of a run by name, in the order of the report; a call draws one.

    Parameters
    ----------
    run : Run
        A finished run.
    required : mapping of str to float, optional
        Largest sizes of controls that the task requires, by name.

    Returns
    -------
    dict
        Name to a function that draws: "path", "errors", "joints", "torques", "health", "robot",
        "numerics". Of a system without bodies "path", "joints" and "robot" are left out, "overview"
        is added. Of a law without outputs "errors" is left out, of a robot without controls
        "torques", and "numerics" where all residuals are zero within rounding.
    """
    drawn: dict[str, Callable[[], Figure]] = {"overview": lambda: plot_run(run)}
    if hasattr(run.robot, "bodies"):
        drawn = {"path": lambda: path_figure(run)}
    if channels(run):
        drawn["errors"] = lambda: error_figure(run)
    if hasattr(run.robot, "bodies"):
        drawn["joints"] = lambda: joint_figure(run)
    if run.servo.model.control_names:
        drawn["torques"] = lambda: torque_figure(run, required)
    drawn["health"] = lambda: health_figure(run)
    if hasattr(run.robot, "bodies"):
        drawn["robot"] = lambda: robot_figure(run.robot, run.q[0], run.servo.outputs)
    if not all(row.zero for row in residuals(run)):
        drawn["numerics"] = lambda: numerics_figure(run)
    return drawn


def save_figures(
    run: Run,
    directory: str | os.PathLike[str],
    required: Mapping[str, float] | None = None,
) -> dict[str, Path]:
    """Write every figure of a run as a PNG.

    Parameters
    ----------
    run : Run
        A finished run.
    directory : path
        Folder of the files; created if it does not exist.
    required : mapping of str to float, optional
        Largest sizes of controls that the task requires, by name.

    Returns
    -------
    dict
        Name of the figure to its path, in the order of the report, as of `run_figures`.

    Raises
    ------
    ConcurError
        If the directory or a file cannot be written.

    Examples
    --------
    >>> save_figures(run, "out")["path"]    # doctest: +SKIP
    PosixPath('out/path.png')
    """
    folder, written = make_directory(directory), {}
    for name, draw in run_figures(run, required).items():
        target = folder / f"{name}.png"
        with writing(target):
            draw().savefig(target, dpi=DPI)
        written[name] = target
    return written
