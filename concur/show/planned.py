"""Figure of a plan: shape, speeds, torques and outputs over time, with their limits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from concur.show.charts import Curve, Panel, chart
from concur.show.style import output_color

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plan_figure(plan: Any) -> Figure:
    """Draw the motion of a plan.

    Parameters
    ----------
    plan : MotionPlan
        The plan.

    Returns
    -------
    matplotlib.figure.Figure
        Panels of positions of outputs, shape, speeds and torques; a dashed line is a limit.

    Examples
    --------
    >>> plan_figure(plan).savefig("plan.png")    # doctest: +SKIP
    """
    model = plan.model
    bounds = plan.limits
    shape = plan.q[:, list(model.shape_coordinates)]
    units = [model.system.effort_units[k] for k in model.shape]
    panels = []
    for output in plan.outputs:
        coordinates = plan.samples[output.name][0]
        names = ("x", "y", "z", "qx", "qy", "qz", "qw")
        count = coordinates.shape[1]
        labels = names[3:] if output.group == "SO3" else names[:count]
        curves = [
            Curve(
                coordinates[:, k], labels[k] if k < len(labels) else str(k), color=output_color(k)
            )
            for k in range(count)
        ]
        panels.append(Panel(f"Output {output.name}", "m, rad or 1", curves))
    for unit, word in (("N m", "rad"), ("N", "m")):
        chosen = [k for k, own in enumerate(units) if own == unit]
        if not chosen:
            continue
        for title, values, kind, limits in (
            ("Shape", shape, word, np.column_stack([bounds.low, bounds.high])),
            ("Speeds", plan.s, f"{word}/s", np.column_stack([-bounds.speeds, bounds.speeds])),
        ):
            curves = [
                Curve(
                    values[:, k],
                    model.shape_names[k],
                    color=output_color(k),
                    limits=(float(limits[k, 0]), float(limits[k, 1])),
                )
                for k in chosen
            ]
            panels.append(Panel(title, f"{title.lower()} [{kind}]", curves))
    for unit in dict.fromkeys(model.control_units):
        curves = [
            Curve(
                plan.u[:, k],
                name,
                color=output_color(k),
                limits=(-float(bounds.torques[k]), float(bounds.torques[k])),
            )
            for k, name in enumerate(model.control_names)
            if model.control_units[k] == unit
        ]
        panels.append(Panel("Torques and forces", f"torque [{unit}]", curves))
    return chart(f"Plan of {model.name}: {plan.status}, {plan.duration:.3g} s", plan.t, panels)
