"""Figures of certificates and proofs: decay, tubes, rates over the angle, and bounds over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from matplotlib.figure import Figure

from concur.show.charts import Curve, Panel, chart, draw, legend, tiles
from concur.show.style import ARM, PALETTE, TIME

if TYPE_CHECKING:
    from concur.certify import Certificate, DisturbedMotions, ErrorMotions, Tube

MOST = 7
"""Bounds that are drawn beside their limits, those nearest to them."""

NEAR = 1.6
"""Size of a limit, in parts of the bound, up to which it is drawn; others are written."""

_LEAST = 1e-6
"""Fraction of the initial norm at the lower edge of the decay."""


def decay_figure(certificate: Certificate, decay: ErrorMotions | None = None) -> Figure:
    """Draw the certified bound over the norms of simulated motions.

    Parameters
    ----------
    certificate : Certificate
        A proved certificate.
    decay : ErrorMotions, optional
        Motions from random starts and, if it is covered, from the task's start; default: simulate
        some from random starts.

    Returns
    -------
    matplotlib.figure.Figure
        One logarithmic panel of all norms, each divided by its start, below one common bound.

    Examples
    --------
    >>> decay_figure(certificate, decay).savefig("decay.png")    # doctest: +SKIP
    """
    if decay is None:
        from concur.certify import error_motions

        decay = error_motions(certificate)
    t, own = np.asarray(decay.t), decay.own
    norms = np.asarray(decay.norms)
    rate, true = certificate.rate, certificate.true_rate
    curves = [Curve(norms / norms[:, :1], f"{len(norms)} random starts in the region", "sample")]
    if own is not None and own[0] > 0.0:
        curves.append(Curve(own / own[0], "the task's start", color=ARM))
    curves += [
        Curve(np.exp(-rate * t), f"certified: exp(-{rate:.4g} t)", "bound"),
        Curve(np.exp(-true * t), f"linearized rate: exp(-{true:.4g} t)", "limit"),
    ]
    panel = Panel(
        "Norm of the error, relative to its start", "norm [1]", curves, True, floor=_LEAST
    )
    return chart("Certified decay, and motions of the error dynamics", t, [panel])


def tube_figure(tube: Tube, motions: DisturbedMotions | None = None) -> Figure:
    """Draw a tube with disturbed motions in it.

    Parameters
    ----------
    tube : Tube
        The tube of a channel, of finite radius.
    motions : DisturbedMotions, optional
        Motions under disturbances within its bound, from `concur.certify.disturbed_motions`;
        default: simulate some.

    Returns
    -------
    matplotlib.figure.Figure
        One panel for the norm, with its bound over time and the limit of the domain, and one each
        for rotation errors in degrees and position errors in metres, with theirs.

    Examples
    --------
    >>> tube_figure(tube, disturbed_motions(tube, 0.1)).savefig("tube.png")    # doctest: +SKIP
    """
    if motions is None:
        from concur.certify import disturbed_motions

        motions = disturbed_motions(tube, cast(float, tube.disturbance))
    t = np.asarray(motions.t)
    bound = np.array([tube.envelope(float(time)) for time in t])
    # A length of x is at most a multiple of the norm, so its bound is proportional.
    part = bound / tube.radius if tube.radius > 0.0 else np.ones_like(bound)
    certain = "proved" if tube.status.name == "PROVED" else "not proved"
    rows = [("Norm of the error", "norm [1]", motions.norms, bound)]
    if motions.angles is not None and tube.angle is not None:
        angles, most = np.degrees(motions.angles), np.degrees(tube.angle)
        rows.append(("Rotation error", "angle [deg]", angles, most * part))
    if motions.distances is not None and tube.distance is not None:
        rows.append(("Position error", "distance [m]", motions.distances, tube.distance * part))
    panels: list[Panel] = []
    for title, quantity, values, most in rows:
        label = f"{len(values)} disturbed motions"
        limits = (-np.inf, np.inf if panels else tube.limit)
        curves = [
            Curve(values, label, "sample"),
            Curve(most, f"bound, {certain}", "bound", limits=limits, owner="domain"),
        ]
        panels.append(Panel(title, quantity, curves, zero=True))
    return chart("Tube of the error, and motions under disturbances", t, panels)


def rate_figure(sweeps: Mapping[str, Sequence[Any]], asked: Any = None) -> Figure:
    """Draw certified rates over the largest rotation error covered.

    Parameters
    ----------
    sweeps : mapping of str to sequence of Certificate
        Maps the name of a method to its certificates by ascending angle. Unproved ones are
        hollow and not joined to the steps.
    asked : Certificate, optional
        The requested certificate, which is marked.

    Returns
    -------
    matplotlib.figure.Figure
        One panel with the linearized rate as the upper bound.

    Examples
    --------
    >>> rate_figure({"tight": certificates}).savefig("rates.png")    # doctest: +SKIP
    """
    most = max(one.true_rate for found in sweeps.values() for one in found)
    curves = [Curve([most, most], f"linearized rate, {most:.4g} 1/s", "limit", t=[0.0, 180.0])]
    for number, (method, found) in enumerate(sweeps.items()):
        for proved in (True, False):
            own = [one for one in found if (one.status.name == "PROVED") is proved]
            # A proof for an angle holds for smaller angles: draw steps, not slanted lines.
            style: dict[str, Any] = {"linestyle": "-", "drawstyle": "steps-pre"}
            style = style if proved else {"markerfacecolor": "white"}
            if own:
                label = f"{method}, {'proved' if proved else 'not proved'}"
                curves.append(_points(own, label, PALETTE[number], style))
    if asked is not None:
        ring = {"markersize": 12.0, "markerfacecolor": "none"}
        label = f"requested: {np.degrees(asked.angle):.4g} deg"
        curves.append(_points([asked], label, PALETTE[6], ring))
    panel = Panel("Rate of decay", "rate [1/s]", curves, zero=True)
    figure = chart("Certified rate over the angle", [], [panel], "largest rotation error [deg]")
    figure.axes[0].set_xticks(range(0, 181, 30))
    return figure


def _points(found: Sequence[Any], label: str, color: str, style: dict[str, Any]) -> Curve:
    angles = np.degrees([one.angle for one in found])
    return Curve([one.rate for one in found], label, "dots", color, t=angles, style=style)


def proof_figure(proof: Any, outputs: Sequence[str], duration: float) -> Figure:
    """Draw the tube of a task about its declared motion, and its bounds beside their limits.

    Parameters
    ----------
    proof : TaskProof
        The proof.
    outputs : sequence of str
        Names of the outputs.
    duration : float
        Length of the task (s).

    Returns
    -------
    matplotlib.figure.Figure
        Three panels over time: outputs, heading or base pose, and shares of the limits.

    Examples
    --------
    >>> proof_figure(proof, ["base", "hand"], 20.0).savefig("tube.png")    # doctest: +SKIP
    """
    edges = np.linspace(0.0, duration, len(proof.wall) + 1)
    free = proof.base == "base pose"  # of a pose a metre counts as a radian
    places = [Curve(1e3 * own, name) for own, name in zip(proof.x, outputs, strict=False)]
    units = "[mm, mrad]" if free else "[mm]"
    wall = [Curve(1e3 * proof.wall, proof.base, color=PALETTE[2])]
    title = "Largest distance from the declared motion"
    panels = [
        Panel(title, f"{'pose' if free else 'position'} {units}", places, zero=True),
        Panel(f"Largest change of the {proof.base}", f"[{'mm, ' * free}mrad]", wall, zero=True),
    ]
    rows = [(bound, proof.shares(bound)) for bound in proof.bounds]
    rows = [(bound, part) for bound, part in rows if np.nanmax(part, initial=0.0) > 0.0]
    rows.sort(key=lambda row: -float(np.nanmax(row[1])))
    shares = [
        Curve(part, f"{bound.kind} {bound.name}", t=[*bound.times, duration])
        for bound, part in rows[:MOST]
    ]
    limit = Curve([1.0], "limit", "limit", t=[0.0, duration])
    title = "Bounds beside their limits"
    panels.append(Panel(title, "share of the limit [1]", [*shares, limit], zero=True))
    return chart("Proved tube and bounds", edges, panels)


def bounds_figure(proof: Any, duration: float, sampled: Any = None) -> Figure:
    """Draw each quantity of a proof over time: bounds, limits and sampled worlds.

    Parameters
    ----------
    proof : TaskProof
        The proof.
    duration : float
        Length of the task (s).
    sampled : Sampled, optional
        Worlds inside the statement.

    Returns
    -------
    matplotlib.figure.Figure
        A panel for each quantity; angles have both bounds in one.

    Examples
    --------
    >>> bounds_figure(proof, 20.0, sampled).savefig("bounds.png")    # doctest: +SKIP
    """
    made = [bound.quantity for bound in proof.bounds] if sampled is None else sampled.quantities
    panels: dict[tuple[str, str], list[int]] = {}
    for k, quantity in enumerate(made):
        kind = "angle" if quantity.kind.startswith("angle") else quantity.kind
        panels.setdefault((kind, quantity.name), []).append(k)
    radii = iter(np.vstack([proof.x, proof.ve, proof.wall]))
    bounds = {bound.quantity.key: bound for bound in proof.bounds}
    with tiles(len(panels), "Bounds of a proof over time, with sampled worlds") as grid:
        for axes, ((kind, name), members) in zip(grid, panels.items(), strict=True):
            title, curves = f"{kind} {name}".replace("tube", "distance"), []
            if sampled is not None:
                runs = sampled.runs[:, members[0]]
                times = sampled.times
                curves.append(Curve(runs, f"{len(runs)} worlds", "sample", t=times))
                worst = sampled.envelope[members]
                curves.append(Curve(worst, "worst", color=PALETTE[0], t=times))
            for k in members:
                bound = bounds.get(made[k].key)
                if kind.startswith("tube"):
                    radius = next(radii)
                    edges = np.linspace(0.0, duration, len(radius) + 1)[:-1]
                    curves.append(_bound(radius, edges, duration))
                elif bound is not None:
                    limit = np.inf if bound.limit is None else bound.limit
                    curves.append(_bound(bound.profile, bound.times, duration))
                    if bound.value and 1.0 / NEAR <= limit / bound.value <= NEAR:
                        curves.append(Curve([limit], "", "limit", t=[0.0, duration]))
                    elif np.isfinite(limit):
                        title += f"\nlimit {limit:.4g}"
            positive = made[members[0]].sign > 0 and kind != "angle"
            unit = made[members[0]].unit or "1"
            draw(axes, [], Panel(title, f"[{unit}]", curves, zero=positive))
            axes.set_xlim(0.0, duration)
            axes.set_xlabel(TIME)
            # The first panel explains the lines of all.
            if axes is not grid[0]:
                for line in axes.get_lines():
                    line.set_label("_")
                legend(axes, title)
    return cast(Figure, grid[0].get_figure())


def _bound(values: Any, times: Any, duration: float) -> Curve:
    return Curve(values, "bound", t=[*times[: len(values)], duration], color=PALETTE[1])
