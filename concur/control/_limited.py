"""Limits in the law: the servo's shape acceleration, slowed down until it keeps them.

Per instant, with the nominal shape acceleration ``sdot*`` of the servo, torques ``u = G sdot + g``
and the rows ``a sdot + b`` of accelerations of joints, the law solves two programs in the metric
``|x|_W^2 = |D J x|^2 + |x|_M^2``. The first keeps the limits of the joints,

    minimise |sdot1 - sdot*|_W^2 + |t|^2 / slack    with     low <= a sdot1 + b + t <= high,

and the second those of the torques too, by slowing down towards rest,

    minimise |sdot - sdot1 - k (rest - sdot1)|_W^2 + k^2 |rest - sdot1|_W^2 + |t|^2 / slack
    with     0 <= k <= 1,     lower <= G sdot + g <= upper,     low <= a sdot + b + t <= high,

where ``rest = -approach s`` brings the shape to rest, D are the scales of the decoupling margin
with the weights of the outputs, and M is the reduced mass matrix. The answer is sdot* while sdot*
keeps all limits, and it changes continuously where a limit becomes active. The slacks t are
eliminated. Torques can always be kept, and so each program has a solution.

Slowing down takes all joints alike and counts as a change of the same size in any direction: where
a motor lacks torque the robot stays near the path on which the servo would take it, and comes
later. Without it the projection lets the one joint fall behind, the robot leaves the path, and
other joints become faster. Were it much cheaper, joints with torque to spare would wait for one
that cannot bear its weight, and the arm would sink. With k = 1 all joints come to rest, so that
limits take no damping away. A limit of a joint does not slow down the others, which may move on
where a joint stands at its limit.

Rows of a coordinate q in [q_low, q_high] and a speed within w are exponential barriers, with the
rate alpha of `approach`:

    qddot <= alpha^2 (q_high - q) - 2 alpha qdot,     qddot <= 2 alpha (w - qdot),

and the same from below: a coordinate then comes to its limit no faster than ``qdot = alpha
(q_high - q)``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import casadi as ca
import numpy as np

from concur.codegen import LARGEST, Array, Vector, constant, quadratic_program
from concur.control._constraint_rows import distance_rows
from concur.control._core import OUTPUTS, LawCore
from concur.control._law import (
    all_velocities,
    controls,
    integral_rate,
    law_graph,
    law_parts,
    shape_command,
)
from concur.control._sharing import unfelt
from concur.robot import Mechanism, control_velocities, speed_torque_line

SLACK = 1e-6
"""Square of what a joint's row may miss, both in units of energy, against the outputs' error."""

WEIGHT = 0.1
"""Weight of an output by default."""

UNSOLVED = "steps of the solver"
"""Name of the bound of the programs' steps; torques then are within limits, and not the nearest."""

UNSEEN = 1e-9
"""Price of controls that make no force on the shape, against accelerations of the same effort."""

TINY = 1e-30
"""Keeps divisors from zero."""


@dataclass
class JointRow:
    """Barriers on one acceleration: that of a coordinate or of a freedom."""

    row: Array
    drift: Array
    names: list[str] = field(default_factory=list)
    low: list[Array] = field(default_factory=list)
    high: list[Array] = field(default_factory=list)

    def add(self, name: str, low: Array, high: Array) -> None:
        """Add a barrier by its name."""
        self.names.append(name)
        self.low.append(low)
        self.high.append(high)

    @property
    def bounds(self) -> tuple[Array, Array]:
        """The narrowest bounds, which do not cross: braking counts more than a speed."""
        low, high = ca.mmax(ca.vertcat(*self.low)), ca.mmin(ca.vertcat(*self.high))
        return ca.fmin(low, high), high


def joint_rows(servo: LawCore, q: Vector, v: Vector) -> list[JointRow]:
    """Barriers of the joints of a servo, at all velocities v (nv,)."""
    limits, model, system = servo.constraints, servo.model, servo.model.system
    if limits is None or not isinstance(system, Mechanism):
        return []
    rate, horizontal, drift = servo.approach, model.lift(q)[0], model.velocity_drift(q, v)
    at, w = ca.SX.sym("q", system.nq), ca.SX.sym("v", system.nv)
    moving = system.rate(at, w)
    parts = [moving, ca.jacobian(moving, w), ca.jtimes(moving, at, moving)]
    moved, slopes, carried = ca.Function("rates", [at, w], parts).call([q, v], True, False)
    carried += slopes @ drift
    rows = dict[Any, JointRow]()
    places = [(body, k) for body in system.bodies for k in range(body.joint.nq)]
    for c, (body, k) in enumerate(places if limits.joints else []):
        low, high = map(float, system.limits[c])
        if np.isfinite([low, high]).any():
            unit = _unit_row(slopes, c)
            key = ("coordinate", c) if unit is None else ("freedom", unit)
            rows[key] = row = JointRow(slopes[c, :] @ horizontal, carried[c])
            bounds = [rate**2 * (end - q[c]) - 2 * rate * moved[c] for end in (low, high)]
            name = body.joint_label
            if body.joint.nq > 1:
                name = f"{body.joint.coordinate_names[k]} of {name}"
            row.add(f"position of {name}", *bounds)
    speeds = system.speed_limits if limits.speeds else np.full(system.nv, np.inf)
    largest = limits.accelerations or {}
    for i, name in enumerate(system.freedom_names):
        if not (np.isfinite(speeds[i]) or name in largest):
            continue
        row = rows.setdefault(("freedom", i), JointRow(horizontal[i, :], drift[i]))
        if np.isfinite(speeds[i]):
            ends = (-float(speeds[i]), float(speeds[i]))
            row.add(f"speed of {name}", *(2 * rate * (end - v[i]) for end in ends))
        if name in largest:
            row.add(f"acceleration of {name}", -ca.SX(largest[name]), ca.SX(largest[name]))
    for motor in system.motors if limits.speeds else ():
        if motor.speed == np.inf or len(motor.ratios) == 1:
            continue  # that of one joint is a limit of the joint
        ratios = ca.DM([[motor.ratios.get(name, 0.0) for name in system.freedom_names]])
        row = JointRow(ratios @ horizontal, ratios @ drift)
        ends = (-motor.speed, motor.speed)
        row.add(f"speed of {motor.name}", *(2 * rate * (end - ratios @ v) for end in ends))
        rows["motor", motor.name] = row
    if (clearance := limits.clearance(system)) is not None:
        names, slopes, drifts, lows = distance_rows(servo, clearance, q, v)
        for k, name in enumerate(names):
            rows["distance", name] = row = JointRow(slopes[k, :], drifts[k])
            row.add(name, lows[k], ca.SX(np.inf))
    return list(rows.values())


def _unit_row(slopes: ca.SX, c: int) -> int | None:
    """The freedom whose velocity is the rate of a coordinate, if there is one."""
    row = slopes[c, :]
    if row.nnz() == 1 and row.nonzeros()[0].is_constant() and float(row.nonzeros()[0]) == 1.0:
        return int(row.sparsity().find()[0])
    return None


def torque_bounds(servo: LawCore, q: Vector, v: Vector) -> tuple[Array, Array]:
    """Lower and upper limits of the controls, shape (nu,), with the motors' line of speed."""
    low, high = (ca.SX(ca.DM(side)) for side in np.asarray(servo.torque_limits).T)
    motors = getattr(servo.model.system, "motors", ())
    if any(motor.no_load_speed < np.inf for motor in motors):
        speeds = control_velocities(servo.model.system, q, v)
        for k, motor in enumerate(motors, servo.nu - len(motors)):
            if motor.no_load_speed < np.inf:
                least, most = speed_torque_line(motor.stall, motor.no_load_speed, speeds[k])
                low[k], high[k] = ca.fmax(low[k], least), ca.fmin(high[k], most)
    return low, high


def limit_names(servo: LawCore) -> tuple[str, ...]:
    """Names of the limits of a servo in the order of `active`."""
    names = [f"torque of {name}" for name in servo.model.control_names]
    q, v = ca.SX.sym("q", servo.nq), ca.SX.sym("v", servo.nv)
    names += [name for row in joint_rows(servo, q, v) for name in row.names]
    return (*names, *["margin"] * (servo.damping_threshold is not None), UNSOLVED)


def law_function(servo: LawCore, limited: bool = True) -> ca.Function:
    """The law that linearizes, as `TrackingLaw.graph` has it.

    Parameters
    ----------
    servo : LawCore
        Model, outputs, gains and options.
    limited : bool
        Whether it keeps limits, by a quadratic program where one is active.

    Returns
    -------
    casadi.Function
        The law.
    """
    inputs = {name: ca.SX.sym(name, size) for name, size in servo.inputs.items()}
    if not limited or servo.torque_limits is None:
        return law_graph(inputs, law_parts(servo, inputs, servo.damping_threshold).results)
    free, kept = _free(servo, inputs), _kept(servo)
    symbols = {name: ca.MX.sym(name, symbol.shape[0]) for name, symbol in inputs.items()}
    *results, sdot, margins, beyond = free(*symbols.values())
    given = [*results, *symbols.values(), sdot, margins]
    own = [ca.MX.sym(f"x{k}", value.shape[0]) for k, value in enumerate(given)]
    yes = ca.Function("limited", own, kept(*own[len(OUTPUTS) :]))
    no = ca.Function("free", own, own[: len(OUTPUTS)])
    found = ca.Function.if_else("limits", yes, no)(beyond, *given)
    return law_graph(symbols, dict(zip(OUTPUTS, found, strict=True)))


def _free(servo: LawCore, inputs: Mapping[str, Array]) -> ca.Function:
    """The servo without limits: `OUTPUTS`, sdot, margins, and 1 if it misses a limit, else 0."""
    q, v = inputs["q"], all_velocities(servo, inputs)
    parts = law_parts(servo, inputs, None)
    (low, high), u = torque_bounds(servo, q, v), parts.results["u"]
    holds = [u <= high, u >= low]
    for row in joint_rows(servo, q, v):
        (least, most), value = row.bounds, row.row @ parts.shape_acceleration + row.drift
        holds += [value <= most, value >= least]
    if servo.damping_threshold is not None:
        holds.append(parts.margins[1] >= servo.damping_threshold)
    beyond = ca.logic_not(_all(ca.vertcat(*holds)))
    results = [parts.results[name] for name in OUTPUTS[:-1]]
    results += [ca.SX(len(servo.limit_names), 1)]
    results += [parts.shape_acceleration, parts.margins, beyond]
    return ca.Function("servo", [*inputs.values()], [*map(ca.densify, results)], {"cse": True})


def _kept(servo: LawCore) -> ca.Function:
    """The law where a limit is active: inputs of the law, sdot and its margins to `OUTPUTS`."""
    inputs = {name: ca.SX.sym(name, size) for name, size in servo.inputs.items()}
    inputs |= {"sdot": ca.SX.sym("sdot", servo.ns), "margins": ca.SX.sym("margins", 3)}
    program, values, places = _posed(servo, inputs)
    data = [*program, *values.values()]
    posed = ca.Function("posed", [*inputs.values()], [*map(ca.densify, data)], {"cse": True})
    symbols = [ca.MX.sym(name, symbol.shape[0]) for name, symbol in inputs.items()]
    metric, rows, low, high, *found = posed(*symbols)
    x = dict(zip(values, found, strict=True))

    change, force, solved = _nearest(servo, (metric, rows, low, high), x)
    u = x["torque"] + x["widths"] * (rows[: servo.nu, :] @ change)
    made = x["decoupling"] @ (x["nominal"] + change[: servo.ns])
    missed = x["residual"] - ca.if_else(solved > 0.0, made, 0.0)
    sound = ca.sumsqr(change) + ca.sumsqr(u) <= LARGEST**2
    u = ca.if_else(solved > 0.0, u, _within(u, x["least"], x["most"]))
    weighed = ca.DM(servo.scales[0] ** 2) * x["residual"]
    share = ca.dot(weighed, x["residual"] - missed)
    share /= ca.fmax(ca.dot(weighed, x["residual"]), TINY)
    active = [ca.fabs(force[: servo.nu]) > 0.0]
    if places:
        along = force[places]
        active.append(ca.fmax((along > 0.0) * x["upper"], (along < 0.0) * x["lower"]))
    active += [x["damped"]] * (servo.damping_threshold is not None)
    active.append(ca.logic_not(solved > 0.0))
    results = {
        "u": ca.fmin(ca.fmax(u, x["least"]), x["most"]),
        "pivot": ca.if_else(sound, x["pivot"], 0.0),
        "missed": missed,
        "scale": ca.fmax(0.0, ca.fmin(1.0, share)),
        "side": x["side"],
        "zdot": integral_rate(servo, x["error"], missed) if servo.nz else ca.MX(0, 1),
        "active": ca.vertcat(*active),
    }
    return ca.Function("kept", symbols, [ca.densify(results[name]) for name in OUTPUTS])


def _nearest(
    servo: LawCore, program: Sequence[Array], x: Mapping[str, Array]
) -> tuple[Array, Array, Array]:
    """Change of the nominal acceleration that keeps all limits; forces of rows; 1 if solved.

    First that which keeps the limits of the joints, then that which slows the result down until
    torques are kept.
    """
    metric, rows, low, high = program
    (count, size), nu = rows.shape, servo.nu
    none = ca.DM.zeros(size)  # dense: C for conversions has warnings
    first, pushed, sound = ca.MX(none), ca.MX(0, 1), ca.MX(1)
    if count > nu:
        own = [part[nu:, :] for part in (rows, low, high)]
        slack = ca.DM([SLACK] * (count - nu))
        first, pushed, sound = quadratic_program(size, count - nu)(metric, *own, slack)
    rest = -servo.approach * x["speeds"] - x["nominal"]
    away = ca.vertcat(rest, ca.DM.zeros(size - servo.ns)) - first
    length = ca.sqrt(ca.bilin(metric, away, away))
    usable = ca.logic_and(length >= TINY, length <= LARGEST)
    away, length = (ca.if_else(usable, part, 0) for part in (away / length, length))
    reached = rows @ first
    both = ca.vertcat(ca.horzcat(rows, rows @ away), ca.DM([[0.0] * size + [1.0]]))
    ends = ca.vertcat(low - reached, 0), ca.vertcat(high - reached, length)
    slack = ca.DM([0.0] * nu + [SLACK] * (count - nu) + [0.0])
    found, force, solved = quadratic_program(size + 1, count + 1)(
        ca.vertcat(ca.horzcat(metric, none), ca.horzcat(none.T, 1.0)), both, *ends, slack
    )
    force = ca.vertcat(force[:nu], force[nu:count] + pushed)
    change = first + found[:size] + away * found[size]
    return change, force, ca.logic_and(sound, solved)


def _within(u: Array, least: Array, most: Array) -> Array:
    """Controls scaled into limits, towards those within that are nearest to zero."""
    none = ca.fmin(ca.fmax(0, least), most)
    away = u - none
    room = ca.if_else(away > 0.0, most - none, none - least)
    # Controls that have no room on their side do not hold up the others: they are clipped.
    short = ca.logic_and(room > 0.0, ca.fabs(away) > room)
    return none + ca.mmin(ca.if_else(short, room / ca.fabs(away), 1.0)) * away


def _posed(
    servo: LawCore, inputs: Mapping[str, Array]
) -> tuple[list[Array], dict[str, Array], list[int]]:
    """Metric, rows and bounds of the program; what results follow from; the joint limits' rows.

    The unknown is the change of the nominal shape acceleration; behind it that of controls which
    make no force on the shape.
    """
    q, v, model = inputs["q"], all_velocities(servo, inputs), servo.model
    sdot, (pivot, usual, others) = inputs["sdot"], ca.vertsplit(inputs["margins"])
    found = shape_command(servo, q, v, inputs, servo.damping_threshold, usual)
    damped = ca.SX(0)
    if servo.damping_threshold is not None:
        damped = usual < servo.damping_threshold
        sdot, pivot = (
            ca.if_else(damped, a, b)
            for a, b in ((found.shape_acceleration, sdot), (found.pivot, pivot))
        )
    mass = model.mass_matrix(q)
    forces = ca.horzcat(mass, model.shape_forces(q, v, ca.SX(servo.ns, 1)))
    torques, _, turned = controls(model, q, forces, servo.torque_weights)
    torque_map, torque = torques[:, : servo.ns], torques @ ca.vertcat(sdot, 1)
    scaled = ca.diag(constant(servo.scales[0] * _weights(servo))) @ found.decoupling
    metric, more = mass + scaled.T @ scaled, servo.nu - model.nd
    if more:
        weights = np.ones(servo.nu) if servo.torque_weights is None else servo.torque_weights
        effort = ca.sum1(constant(weights) * ca.sum2(torque_map**2))
        metric = ca.diagcat(metric, UNSEEN * ca.trace(mass) / effort * ca.SX.eye(more))
        unseen = unfelt(model.effect(q), servo.torque_weights)
        torque_map = ca.horzcat(torque_map, unseen)
    least, most = torque_bounds(servo, q, v)
    size = ca.fmin(ca.fabs(least), ca.fabs(most))
    size = ca.if_else(size > 0.0, size, ca.fmax(ca.fabs(least), ca.fabs(most)))
    widths = ca.if_else(size < LARGEST, size, ca.fmax(ca.fabs(torque), 1.0))
    parts = [
        (ca.diag(1 / widths) @ torque_map, (least - torque) / widths, (most - torque) / widths)
    ]
    places, sides, root = list[int](), [(ca.SX(0, 1), ca.SX(0, 1))], ca.sqrt(ca.diag(mass))
    for k, row in enumerate(joint_rows(servo, q, v), servo.nu):
        (low, high), length = row.bounds, ca.norm_2(row.row.T / root)
        value, whole = row.row @ sdot + row.drift, ca.horzcat(row.row, ca.SX(1, more))
        parts.append((whole / length, (low - value) / length, (high - value) / length))
        places += [k] * len(row.names)
        sides += [(a == low, b == high) for a, b in zip(row.low, row.high, strict=True)]
    rows, low, high = (ca.vertcat(*part) for part in zip(*parts, strict=True))
    # CasADi raises an error for bounds that cross or are NaN.
    usable = ca.logic_and(_all(low <= high), ca.sumsqr(torque) <= LARGEST**2)
    usual = (ca.SX.eye(servo.nu), 0.0, -1.0, 1.0)
    program = [ca.triu2symm(ca.triu(metric)), rows, low, high]
    program = [ca.if_else(usable, ca.densify(a), b) for a, b in zip(program, usual, strict=True)]
    lower, upper = (ca.vertcat(*side) for side in zip(*sides, strict=True))
    values = {"nominal": sdot, "torque": torque, "widths": widths, "least": least, "most": most}
    values["speeds"] = v[list(model.shape), :]
    values |= {"residual": found.residual, "decoupling": found.decoupling, "error": found.error}
    values |= {"pivot": ca.if_else(usable, ca.fmin(pivot, others), 0.0)}
    values |= {"side": found.side * turned, "damped": damped, "lower": lower, "upper": upper}
    return program, values, places


def _weights(servo: LawCore) -> np.ndarray:
    """Weight of each output coordinate, shape (size,)."""
    given = {} if servo.constraints is None else servo.constraints.weights or {}
    each = [[given.get(output.name, WEIGHT)] * output.dim for output in servo.outputs]
    return np.concatenate([np.zeros(0), *each])


def _all(conditions: Any) -> Any:
    return ca.mmin(ca.densify(conditions))
