"""Overview of a run on one page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from concur.show._course import leaves_plane
from concur.show._space import TRIAD
from concur.show.charts import Panel, draw, legend
from concur.show.path import draw_space, draw_top_view
from concur.show.runs import configuration_panels, control_panels, error_panels, lyapunov_panel
from concur.show.style import TIME, new_figure, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from concur.simulation import Run

_FEW = 10
"""Largest number of control inputs whose peaks the legend of the overview lists."""


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
        figure = new_figure(11.0, 8.0)
        path, *others = figure.subplots(2, 2).ravel()
        figure.suptitle(f"Run of {run.robot.name}, {run.t[-1] - run.t[0]:.3g} s")
        has_bodies = hasattr(run.robot, "bodies")
        flies = has_bodies and leaves_plane(run)
        panels = error_panels(run, coordinates=False)[:1]
        panels += [lyapunov_panel(run)] * bool(panels)  # a law may follow no outputs
        if run.u.shape[1]:
            panels.append(_controls(run))
        for axes, panel in zip(others, panels, strict=False):
            draw(axes, run.t, panel)
            axes.set_xlabel(TIME)
        for axes in others[len(panels) :]:
            axes.set_axis_off()
        if not has_bodies:
            draw(path, run.t, configuration_panels(run.robot, run.q)[0])
            path.set_xlabel(TIME)
        elif flies:
            path.set_axis_off()
            _draw_flight(figure, run, path)
        else:
            draw_top_view(path, run)
            legend(path, "Path, seen from above")
        return figure


def _controls(run: Run) -> Panel:
    """All control inputs in one panel."""
    panels = control_panels(run, peaks=run.u.shape[1] <= _FEW)
    curves = [curve for panel in panels if not panel.zero for curve in panel.curves]
    return Panel("Controls", f"controls [{', '.join(dict.fromkeys(run.control_units))}]", curves)


def _draw_flight(figure: Figure, run: Run, path: Axes) -> None:
    """Replace empty axes by a view in space, with the robot at the end of the run."""
    figure.draw_without_rendering()
    left, bottom, width, height = path.get_position().bounds
    path.remove()
    foot = 0.15 * height
    cell = (left - 0.02, bottom + foot, width + 0.02, height - foot)
    handles = draw_space(figure, run, cell)
    look: Any = {"loc": "lower center", "borderaxespad": 0.0, "ncols": 3, "handler_map": TRIAD}
    figure.legend(handles=handles, bbox_to_anchor=(left + width / 2, bottom), **look)
