"""Figures of a run over time: errors, outputs, controls, joints, margin and numerical checks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from concur.control import driven_by
from concur.rounding import percent
from concur.show._course import base_poses
from concur.show._outputs import Attitude, Place, attitudes, few, places
from concur.show.charts import Curve, Panel, chart
from concur.show.style import FRAME_COLORS, PALETTE, ROUNDING, output_color
from concur.simulation import LEAST

_RELATIVE = 1e-9
"""Part of a quantity up to which its residual is rounding."""

_RARE = 0.02
"""Part of the samples of an error that may lie below the axis."""

_LEAST_TURN = 1e-3
"""Least height of an axis of an attitude, degrees: errors are in another figure."""

_SAMPLES = 1000
"""Samples of the attitude."""

Floats = NDArray[np.float64]
Pair = tuple[float, float]
Bounds = Mapping[str, tuple[float, float, float]]

FREE: Pair = (-np.inf, np.inf)
NOTHING: Bounds = MappingProxyType({})


def required(run: Any, task: Any = None) -> Bounds:
    """Tightest bounds of a run and its task by signal.

    Parameters
    ----------
    run : Run
        A finished run.
    task : Task, optional
        Its task.

    Returns
    -------
    dict of str to tuple
        Lower and upper bound by signal, and the time from which on they count, s.
    """
    found: dict[str, tuple[float, float, float]] = {}
    for made in task.requirements if task is not None and task.states_requirements else ():
        for signal, low, high in made.bounds:
            own = found.get(signal, (*FREE, np.inf))
            found[signal] = (max(low, own[0]), min(high, own[1]), min(made.after, own[2]))
    if run.tolerances is not None:
        found["final error"] = (-np.inf, run.tolerances.final_error, run.t[-1])
        found.setdefault("margin", (run.tolerances.margin, np.inf, 0.0))
    return found


def tightest(pairs: Mapping[str, Pair]) -> tuple[Pair, str]:
    """Tightest of the limits of several owners.

    Parameters
    ----------
    pairs : mapping of str to tuple of float
        Lower and upper limits by owner, infinite without one.

    Returns
    -------
    limits : tuple of float
        The largest lower and the smallest upper limit.
    owner : str
        Whose these are.
    """
    low, high = max(p[0] for p in pairs.values()), min(p[1] for p in pairs.values())
    owners = [o for o, p in pairs.items() if np.isfinite(p).any() and (low == p[0] or high == p[1])]
    return (low, high), " and ".join(owners)


def error_panels(run: Any, bounds: Bounds = NOTHING, coordinates: bool = True) -> list[Panel]:
    """Norms of the errors by unit beside the exact error dynamics, and their coordinates.

    Parameters
    ----------
    run : Run
        A finished run.
    bounds : mapping of str to tuple
        Bounds of the task by signal: low, high and the time from which on they count, s.
    coordinates : bool
        Whether to add panels of the coordinates.

    Returns
    -------
    list of Panel
        The panels; none for a law without outputs.
    """
    owner = np.repeat(range(len(run.servo.outputs)), [out.dim for out in run.servo.outputs])
    names = [str(name) for out in run.servo.outputs for name in out.coordinate_names]
    norms: dict[str, list[Curve]] = {}
    ideals: dict[str, list[Curve]] = {}
    floors: dict[str, float] = {}
    single: list[Panel] = []
    for name, unit, part in run.error_places:
        color = output_color(int(owner[part[0]]))
        curves = norms.setdefault(unit, [])
        floors[unit] = min(floors.get(unit, np.inf), _floor(_norm(run.error, part)))
        # The curves should coincide: a wide line under a dashed one shows both.
        curves.append(Curve(_norm(run.error, part), name, "wide", color))
        ideals.setdefault(unit, []).append(Curve(_norm(run.ideal, part), look="dashes"))
        _, high, after = bounds.get("error:" + name.replace(", ", ":"), (*FREE, 0.0))
        if np.isfinite(high) and after < run.t[-1]:
            label = f"limit of {name}: {high:.3g} {unit}"
            times = [after, run.t[-1]]
            curves.append(Curve([high, high], label, "limit", color, t=times))
        coords = [Curve(run.error[:, i], names[i]) for i in part]
        if _largest(run.error[:, part]) > _RELATIVE:  # others would show rounding
            single.append(Panel(f"Coordinates of {name}", f"error [{unit}]", coords))
    panels = []
    for unit, curves in norms.items():
        # An ideal below the axis, as of a run that starts on its reference, is not drawn.
        floor = floors[unit]
        ends = [one for one in ideals[unit] if _largest(np.asarray(one.values)) > floor]
        if ends:
            ends.append(Curve(np.full(len(run.t), np.nan), "exact error dynamics", "dashes"))
        most = bounds.get("final error", (*FREE, 0.0))[1]
        if np.isfinite(most):
            label, style = f"limit at the end: {most:.3g} {unit}", {"marker": "v"}
            ends.append(Curve([most], label, "limit", t=run.t[-1:], style=style))
        drawn, quantity = [*curves, *ends], f"|error| [{unit}]"
        panels.append(Panel("Norm of the error", quantity, drawn, log=True, floor=floor))
    return panels + (single if coordinates else [])


def _floor(norm: Floats) -> float:
    """Lower end of the axis of an error: single samples, as a start at rounding, do not count."""
    values = norm[np.isfinite(norm) & (norm > 0.0)]
    least = 0.1 * float(np.quantile(values, _RARE)) if values.size else 0.0
    return max(ROUNDING, least)


def output_panels(run: Any) -> list[Panel]:
    """Positions and attitudes of outputs beside their references, and the attitude of the base.

    Parameters
    ----------
    run : Run
        A finished run.

    Returns
    -------
    list of Panel
        The panels; the coordinates of a system without bodies.
    """
    if not hasattr(run.robot, "bodies"):
        return configuration_panels(run.robot, run.q)
    panels = {place.output: [_position(place)] for place in places(run)}
    for one in attitudes(run):
        panels.setdefault(one.output, []).append(_turned(one))
    in_order = [panel for output in run.servo.outputs for panel in panels.get(output, ())]
    return [*in_order, _attitude(run)]


def _position(place: Place) -> Panel:
    """Coordinates of an output in inertial axes, or in those of another body."""
    title, frame = f"Position of {place.output.name}", place.output.relative_to
    curves = _followed(place.axes, place.actual, place.reference)
    quantity = "relative position [m]" if frame else "position [m]"
    return Panel(title + _frame(place.output), quantity, curves)


def _turned(one: Attitude) -> Panel:
    """Attitude of an output from that at the start, degrees; a direction has no angle about it."""
    name, where = one.output.name, _frame(one.output)
    both, size = (one.actual, one.reference), one.actual.shape[1]
    if size == 3:
        curves = _followed("xyz", *both)
        return Panel(f"Direction of {name}{where}", "direction [1]", curves)
    if size == 1:
        about = np.unwrap(np.hstack(both), axis=0) - one.actual[0]
        about[:, 1] -= 2.0 * np.pi * np.round(about[0, 1] / (2.0 * np.pi))  # whole turns away
        kind, letters, angles = "Heading", "z", [np.degrees(about[:, [k]]) for k in range(2)]
    else:
        turns = [Rotation.from_quat(part) for part in both]
        kind, letters, angles = "Attitude", "xyz", [_vectors(turn, turns[0][0]) for turn in turns]
    curves = _followed(letters, angles[0], angles[1], "about {}")
    title = f"{kind} of {name}{where}, from that at the start"
    return Panel(title, "rotation [deg]", curves, least=_LEAST_TURN)


def _followed(letters: str, actual: Floats, reference: Floats, label: str = "{}") -> list[Curve]:
    """Columns about or along axes, each with a dashed reference."""
    curves = []
    for letter, own, wanted in zip(letters, actual.T, reference.T, strict=True):
        color = FRAME_COLORS["xyz".index(letter)]
        curves += [Curve(own, label.format(letter), "wide", color), Curve(wanted, look="dashes")]
    return [*curves, Curve(np.full(len(actual), np.nan), "reference", "dashes")]


def _frame(output: Any) -> str:
    """The frame of an output in words; empty for the inertial one."""
    return f" in the frame of {output.relative_to}" if output.relative_to else ""


def _vectors(turns: Rotation, first: Rotation) -> Floats:
    """Rotation vectors from an orientation, degrees; NaN where they turn round at half a turn."""
    vectors = np.degrees((turns * first.inv()).as_rotvec())
    jumps = np.linalg.norm(np.diff(vectors, axis=0, prepend=vectors[:1]), axis=1) > 180.0
    vectors[jumps] = np.nan
    return np.asarray(vectors)


def _attitude(run: Any) -> Panel:
    """Rotation vector of the base from its first orientation, in inertial axes, degrees."""
    chosen = few(run, _SAMPLES)
    t, turns = run.t[chosen], Rotation.from_matrix(base_poses(run, chosen)[:, :3, :3])
    steps = (turns[:-1].inv() * turns[1:]).magnitude() if len(t) > 1 else np.zeros(1)
    angles = (turns * turns[0].inv()).as_rotvec()
    if np.abs(angles[:, :2]).max() <= _RELATIVE:
        heading = np.degrees(np.unwrap(angles[:, 2]))
        curves = [Curve(heading, "about z", color=FRAME_COLORS[2], t=t)]
        return Panel("Heading of the base, from that at the start", "rotation [deg]", curves)
    vectors = _vectors(turns, turns[0])
    curves = [
        Curve(vectors[:, k], f"about {letter}", color=FRAME_COLORS[k], t=t)
        for k, letter in enumerate("xyz")
    ]
    end, total = np.degrees([np.linalg.norm(angles[-1]), steps.sum()])
    label = f"angle, {end:.3g}° at the end, {total:.3g}° in sum"
    curves.append(Curve(np.linalg.norm(vectors, axis=1), label, "dashes", t=t))
    return Panel("Attitude of the base, from that at the start", "rotation [deg]", curves)


def control_panels(run: Any, bounds: Bounds = NOTHING, peaks: bool = True) -> list[Panel]:
    """Control inputs, wheels and joints apart, with the tightest limits of law, task and robot.

    Parameters
    ----------
    run : Run
        A finished run.
    bounds : mapping of str to tuple
        Bounds of the task by signal.
    peaks : bool
        Whether to mark the largest size of each.

    Returns
    -------
    list of Panel
        One for each kind and unit; also the scale of the demand, if limits of the law reduced it.
    """
    own = run.servo.torque_limits
    panels: dict[tuple[str, str], list[Curve]] = {}
    for k, name in enumerate(run.servo.model.control_names):
        unit, values = run.control_units[k], run.u[:, k]
        most = float(run.joint_limits.torques[k])
        law = FREE if own is None else (float(own[k][0]), float(own[k][1]))
        task = bounds.get(f"torque:{name}", FREE)[:2]
        limits, owner = tightest({"law": law, "task": task, "robot": (-most, most)})
        label = str(name)
        if peaks:
            at = int(np.nanargmax(np.abs(values))) if np.isfinite(values).any() else 0
            label += f": peak {values[at]:.3g} {unit} at {run.t[at]:.3g} s"
        curve = Curve(values, label, limits=limits, owner=owner, peak=peaks)
        panels.setdefault((driven_by(run.robot, name).capitalize(), unit), []).append(curve)
    kinds = {"N": "force", "N m": "torque"}
    found = [
        Panel(f"{title}: {kinds.get(unit, 'control')}", f"{kinds.get(unit, 'control')} [{unit}]", c)
        for (title, unit), c in panels.items()
    ]
    if own is not None and np.min(run.scale) < 1.0:
        share = percent(float(np.mean(run.scale < 1.0)))
        label = f"least {np.min(run.scale):.3g}, below 1 for {share} of the time"
        title = "Scale of the commanded acceleration (1: limits inactive)"
        found.append(Panel(title, "scale [1]", [Curve(run.scale, label)], zero=True))
    return found


def joint_panels(run: Any, bounds: Bounds = NOTHING) -> list[Panel]:
    """Coordinates and speeds of the joints with their limits; wheels and base apart.

    Parameters
    ----------
    run : Run
        A finished run.
    bounds : mapping of str to tuple
        Bounds of the task by signal.

    Returns
    -------
    list of Panel
        Positions and speeds by kind and unit, with extremes over all stages. Base and angles of
        wheels only if they have limits.
    """
    found: dict[tuple[str, str, str], list[Curve]] = {}
    for title, quantity, unit, curve in _coordinates(run, bounds):
        rolls = (title, quantity) == ("Wheels", "speed")
        if title == "Joints" or rolls or np.isfinite(curve.limits).any():
            found.setdefault((title, quantity, unit), []).append(curve)
    words = {"rad": "angle", "rad/s": "angular velocity", "m": "travel", "m/s": "velocity"}
    return [
        Panel(f"{title}: {words.get(unit, kind)}", f"{words.get(unit, kind)} [{unit}]", curves)
        for (title, kind, unit), curves in found.items()
    ]


def _coordinates(run: Any, bounds: Bounds) -> Iterator[tuple[str, str, str, Curve]]:
    """Kind of the body, quantity and unit of each coordinate and speed, and its curve."""
    wheels = {wheel.body for wheel in getattr(run.robot, "wheels", ())}
    at = behind = 0
    for body in getattr(run.robot, "bodies", ()):
        joint = body.joint
        title = "Base" if not body.parent else "Wheels" if body.name in wheels else "Joints"
        for k, unit in enumerate(joint.freedom_units):
            name = body.of_each(joint.freedom_names)[k]
            most = float(run.joint_limits.speeds[behind + k])
            kinds = [("speed", f"{unit}/s", run.v, run.v_range, behind + k, (-most, most), name)]
            if joint.nq == joint.nv:
                place = body.of_each(joint.coordinate_names)[k]
                low, high = map(float, run.joint_limits.positions[at + k])
                kinds.insert(0, ("position", unit, run.q, run.q_range, at + k, (low, high), place))
            for quantity, shown, values, extremes, column, own, label in kinds:
                task = (
                    bounds.get(f"{quantity}:{body.joint_label}", FREE)[:2]
                    if joint.nv == 1
                    else FREE
                )
                limits, owner = tightest({"task": task, "robot": own})
                low, high = (float(end) for end in extremes[:, column])
                text, ends = f"{label}: {low:.3g} to {high:.3g}", (low, high)
                curve = Curve(values[:, column], text, "line", None, limits, owner, ends)
                yield title, quantity, shown, curve
        at, behind = at + joint.nq, behind + joint.nv


def margin_panels(run: Any, bounds: Bounds = NOTHING) -> list[Panel]:
    """Decoupling margin, zero where an output direction cannot be commanded, and damping.

    Parameters
    ----------
    run : Run
        A finished run.
    bounds : mapping of str to tuple
        Bounds of the task by signal.

    Returns
    -------
    list of Panel
        The margin and, if the servo damps, the residual of the acceleration by output.
    """
    least = int(np.nanargmin(run.margin)) if np.isfinite(run.margin).any() else 0
    label = f"least {run.margin[least]:.3g} at {run.t[least]:.3g} s"
    zone = run.servo.damping_threshold
    limit = (bounds.get("margin", FREE)[0] if zone is None else zone, np.inf)
    owner = "task" if zone is None else "damped below"
    curve = Curve(run.margin, label, limits=limit, owner=owner)
    title = "Decoupling margin (0: an output direction is lost)"
    panels = [Panel(title, "margin [1]", [curve], zero=True)]
    if zone is not None:
        for name, unit, part in run.error_places:
            missed = _norm(run.acceleration_residual, part)
            text = f"largest {np.nanmax(missed, initial=0.0):.2g}"
            title = f"Acceleration residual of {name}"
            panels.append(Panel(title, f"residual [{unit}/s²]", [Curve(missed, text)]))
    return panels


def lyapunov_panel(run: Any) -> Panel:
    """Lyapunov function of the errors, which decays.

    Parameters
    ----------
    run : Run
        A finished run.

    Returns
    -------
    Panel
        The panel.
    """
    values = np.asarray(run.lyapunov, dtype=float)
    label = f"V, from {values[0]:.2g} to {values[-1]:.2g}"
    units = " + ".join(dict.fromkeys(f"{unit}²/s²" for _, unit, _ in run.error_places))
    quantity = f"V [{units}]" if getattr(run.servo, "linearizes", True) else "V [J]"
    # A square of errors: its rounding level is the square of theirs.
    title, curves = "Lyapunov function", [Curve(values, label)]
    return Panel(title, quantity, curves, log=True, floor=ROUNDING**2, span=1e-18)


def residual_panels(run: Any) -> list[Panel]:
    """Residuals of a run that are not zero within rounding.

    Parameters
    ----------
    run : Run
        A finished run.

    Returns
    -------
    list of Panel
        Deviation from the exact error dynamics by unit; drift of the momentum of a floating robot,
        or else residual of the rolling constraints; energy balance.
    """
    rows: list[tuple[str, str, dict[str, Floats], float]] = []
    for wanted in dict.fromkeys(unit for _, unit, _ in run.error_places):
        parts = [(name, part) for name, unit, part in run.error_places if unit == wanted]
        norms = {name: _norm(run.deviation, part) for name, part in parts}
        title = "Deviation from the exact error dynamics"
        rows.append((title, wanted, norms, _largest(run.error)))
    if run.floats:
        rows.append(("Relative drift of the momentum", "1", {"drift": run.momentum_drift}, 1.0))
    elif getattr(run.robot, "wheels", ()):
        slip = {"residual": np.abs(run.constraint_residual)}
        rows.append(("Residual of the rolling constraints", "m/s", slip, _largest(run.v)))
    balance = {"energy gained minus work": np.abs(run.energy - run.energy[0] - run.work)}
    size = max(_largest(run.energy), _largest(run.work))
    title = "Energy balance" + ", with the heat of friction" * ("friction" in run.plant_differences)
    rows.append((title, "J", balance, size))
    return [panel for row in rows for panel in _residual(*row)]


def _residual(title: str, unit: str, curves: Mapping[str, Floats], size: float) -> list[Panel]:
    """Panel of residuals of a quantity of this size; none if they are zero within rounding."""
    if max(map(_largest, curves.values())) <= max(ROUNDING, _RELATIVE * size):
        return []
    drawn = [Curve(x, f"{name}: largest {_largest(x):.2g}") for name, x in curves.items()]
    return [Panel(title, f"size [{unit}]", drawn, log=True)]


def _norm(values: Floats, part: Any) -> Floats:
    return np.asarray(np.linalg.norm(values[:, part], axis=1))


def _largest(values: Floats) -> float:
    return float(np.max(np.abs(values), where=np.isfinite(values), initial=0.0))


def comparison_figure(comparison: Any) -> Figure:
    """Draw errors, controls and margins of several runs over time.

    Parameters
    ----------
    comparison : Comparison
        Runs with their names, made by `concur.compare`.

    Returns
    -------
    matplotlib.figure.Figure
        One panel for the norm of the errors of each output by unit, one for the norm of the
        controls of motors, wheels and joints by unit, and one for the decoupling margin. A run has
        one colour in all panels.

    Examples
    --------
    >>> comparison_figure(comparison).savefig("comparison.png")    # doctest: +SKIP
    """
    panels = []

    def add(title: str, quantity: str, parts: list[Floats], log: bool = False) -> None:
        curves, floor = [], np.inf
        for number, part in enumerate(parts):
            name, run = comparison.names[number], comparison.runs[number]
            # Curves that coincide remain visible.
            style = {"linewidth": max(1.2, 3.2 - 0.8 * number), "color": PALETTE[number % 7]}
            if part.shape[1]:
                norm = np.linalg.norm(part, axis=1)
                floor = min(floor, _floor(norm))
                curves.append(Curve(norm, name, t=run.t, style=style))
        panels.append(Panel(title, quantity, curves, log=log, zero=not log, floor=floor))

    for name, unit in comparison.runs[0].errors:
        errors = [run.errors[name, unit] for run in comparison.runs]
        # Errors that start at zero do not fall over decades: a linear axis shows how they differ.
        away = any(np.linalg.norm(error[0]) > LEAST for error in errors)
        rounding = max(map(_largest, errors)) <= _RELATIVE
        add(f"Error of {name}", f"|error| [{unit}]", errors, log=away or rounding)
    for kind in dict.fromkeys(kind for run in comparison.runs for kind in run.controls):
        driven, unit = kind
        what = {"N m": "torques", "N": "forces"}[unit]
        own = [run.u[:, run.controls.get(kind, [])] for run in comparison.runs]
        add(f"{driven.capitalize()}: norm of the {what}", f"|{what}| [{unit}]", own)
    margins = [np.reshape(run.margin, (-1, 1)) for run in comparison.runs]
    add("Decoupling margin", "margin [1]", margins)
    return chart("Comparison of runs", [], panels)


def motion_figure(motion: Any) -> Figure:
    """Draw a motion over time.

    Parameters
    ----------
    motion : Motion
        A finished motion.

    Returns
    -------
    matplotlib.figure.Figure
        Shape velocities and control inputs; position and attitude of the base, or the coordinates
        of a system without bodies; energy, and residuals above rounding.

    Examples
    --------
    >>> motion_figure(motion).savefig("motion.png")    # doctest: +SKIP
    """
    model = motion.model
    panels = columns("Shape velocities", model.shape_names, motion.shape_units, motion.s)
    panels += columns("Controls", model.control_names, motion.control_units, motion.u)
    if hasattr(model.system, "bodies"):
        base = motion.robot.bodies[0].name
        points = np.array([np.asarray(motion.robot.pose(q, base))[:3, 3] for q in motion.q])
        panels += [*columns(f"Position of {base}", "xyz", "mmm", points), _attitude(motion)]
    else:
        panels += configuration_panels(model.system, motion.q)
    energy = [
        Curve(motion.energy, "energy", "wide"),
        Curve(motion.energy[0] + motion.work, "at the start + work", "dashes"),
    ]
    panels.append(Panel("Energy", "energy [J]", energy))
    rows = [("Residual of the energy", "J", motion.energy_balance, _largest(motion.energy))]
    if motion.keeps_momentum:
        rows.append(("Relative drift of the momentum", "1", motion.momentum_drift, 1.0))
    for title, unit, values, size in rows:
        panels += _residual(title, unit, {"size": np.abs(values)}, size)
    title = f"Motion of {model.name}, {motion.t[-1] - motion.t[0]:.3g} s"
    return chart(title, motion.t, panels)


def columns(title: str, names: Any, units: Any, values: Floats) -> list[Panel]:
    """Panels of the columns of an array, one for each unit.

    Parameters
    ----------
    title : str
        What they are.
    names, units : sequence of str
        Name and unit of each column.
    values : ndarray
        Values, shape (k, n).

    Returns
    -------
    list of Panel
        The panels.
    """
    found: dict[str, list[Curve]] = {}
    for name, unit, column in zip(names, units, values.T, strict=True):
        found.setdefault(unit, []).append(Curve(column, str(name)))
    return [Panel(title, f"[{unit}]", curves) for unit, curves in found.items()]


def configuration_panels(system: Any, q: Floats) -> list[Panel]:
    """Coordinates of a system without bodies.

    Parameters
    ----------
    system : System
        Its members `coordinate_names` and `coordinate_units` are used, if it has them.
    q : ndarray
        Configurations, shape (k, nq).

    Returns
    -------
    list of Panel
        The panels.
    """
    names = getattr(system, "coordinate_names", [f"q[{k}]" for k in range(q.shape[1])])
    return columns(
        "Configuration", names, getattr(system, "coordinate_units", ["1"] * len(names)), q
    )
