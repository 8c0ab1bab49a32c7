"""Limits in the law: the servo's shape acceleration, slowed down until it keeps them.

Per instant, with the nominal shape acceleration ``sdot*`` of the servo, torques ``u = G sdot + g``
and the rows ``a sdot + b`` of accelerations of joints, the law solves two programs in the metric
``|x|_W^2 = |D J x|^2 + |x|_M^2``. The first keeps the limits of the joints,

    minimise |sdot1 - sdot*|_W^2 + |t|^2 / slack    with     low <= a sdot1 + b + t <= high,

and the second those of the torques too, by slowing down towards rest,

    minimise |sdot - sdot1 - k (rest - sdot1)|_W^2 + wait k^2 |rest - sdot1|_W^2 + |t|^2 / slack
    with     0 <= k <= 1,     lower <= G sdot + g <= upper,     low <= a sdot + b + t <= high,

where ``rest = -approach s`` brings the shape to rest, D are the scales of the decoupling margin
with the weights of the outputs, and M is the reduced mass matrix. The answer is sdot* while sdot*
keeps all limits, and it changes continuously where a limit becomes active. The slacks t are
eliminated. Torques can always be kept, and so each program has a solution.

Slowing down takes all joints alike and costs less than a change of the same size in another
direction: where a motor lacks torque the robot stays near the path on which the servo would take
it, and comes later. Without it the projection lets the one joint fall behind, the robot leaves the
path, and other joints become faster. Were it cheaper still, joints with torque to spare would wait
for one that cannot bear its weight, and the arm would sink. With k = 1 all joints come to rest, so
that limits take no damping away. A limit of a joint does not slow down the others, which may move
on where a joint stands at its limit.

Torques that hold the weight are limited like joints (`_holding.py`): beyond the limits of torques
an arm sinks, and no torque within them brings it to rest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any

import casadi as ca
import numpy as np

from concur.codegen import LARGEST, Array, constant, quadratic_program
from concur.control._barriers import LimitRow
from concur.control._constraint_rows import (
    SINGULAR,
    families,
    keeps_margin,
    limit_rows,
    margin_at_least,
    margin_bound,
    margin_limits,
    margin_zone,
)
from concur.control._core import OUTPUTS, LawCore, approach
from concur.control._holding import torque_bounds
from concur.control._law import (
    all_velocities,
    controls,
    integral_rate,
    law_graph,
    law_parts,
    shape_command,
    usual_margin,
)
from concur.control._margins import natural_units
from concur.control._sharing import unfelt
from concur.robot import Mechanism, solve_positive_definite

SLACK = 1e-6
"""Square of what a joint's row may miss, both in units of energy, against the outputs' error."""

FIRM = 1e-10
"""The same for limits of forces, which hold as long as torques allow it."""

SOFT, FAST = 1e-4, 0.1
"""The same for weights that change by this share of their fastest approach, and faster.

At speed no torques may keep these limits. Were they as firm as at rest, light joints would turn at
full torque for the little help of its reaction."""

WAIT = 0.03
"""Price of slowing down, over that of a change of the same size in another direction.

With 1, joints of robots without weight become faster by up to a tenth where torques are smaller;
with 0.01 a robot that is about to tip over waits so long that it is not back in 3 s."""

WEIGHT = 0.1
"""Weight of an output by default."""

UNSOLVED = "steps of the solver"
"""Name of the bound of the programs' steps; torques then are within limits, and not the nearest."""

EASE = 1e-9
"""Price of controls that make no force on the shape, against accelerations of the same effort."""

INNER = 100.0
"""Price of accelerations at the least margin, over their kinetic energy; 0 at twice it."""

OUTER = 0.3
"""Price of accelerations of the outputs in their scales, over that and the square of the margin.

With less, internal motion rests later; with more, it is so fast that torques held for 1 ms miss the
least margin by more than 3e-4."""

LEAST = 0.05
"""Least margin below which the outputs' price grows no further, so that rounding stays small."""

FREE = ("u", "pivot", "side", "zdot")
"""Results of the servo without limits that are not the same in all states."""

TINY = 1e-30
"""Keeps divisors from zero."""


def limit_names(servo: LawCore) -> tuple[str, ...]:
    """Names of the limits of a servo in the order of `active`."""
    names = [f"torque of {name}" for name in servo.model.control_names]
    q, v = ca.SX.sym("q", servo.nq), ca.SX.sym("v", servo.nv)
    names += [name for row in limit_rows(servo, q, v, held=True) for name in row.names]
    names += ["margin"] * (servo.damping_threshold is not None)
    return (*dict.fromkeys(names), UNSOLVED)


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
    *given, known, doubtful, near, zoned = free(*symbols.values())
    given += symbols.values()
    if servo.damping_threshold is not None:
        doubtful = ca.logic_or(doubtful, _damped(servo)(near, known, symbols["q"]))
    if keeps_margin(servo):
        at = [*symbols.values(), given[len(FREE)]]
        doubtful = ca.logic_or(doubtful, _margin_met(servo)(zoned, *at))
    own = [ca.MX.sym(f"x{k}", value.shape[0]) for k, value in enumerate(given)]
    yes = ca.Function("limited", own, kept(*own))
    no = ca.Function("free", own, [*_unlimited(servo, own).values()])
    found = ca.Function.if_else("limits", yes, no)(doubtful, *given)
    return law_graph(symbols, dict(zip(OUTPUTS, found, strict=True)))


def _free(servo: LawCore, inputs: Mapping[str, Array]) -> ca.Function:
    """The servo without limits: `FREE`, sdot, margins, J H, and 0 if it keeps all limits.

    Conditions that are enough take fewer operations than those that have to hold; `_kept` has them.
    The last results are 0 if the margin is above the zone of damping for sure, and above that in
    which a least margin is kept.
    """
    q, v = inputs["q"], all_velocities(servo, inputs)
    parts = law_parts(servo, inputs, None)
    (low, high), u = torque_bounds(servo, q, v), parts.results["u"]
    holds = []
    for k in range(servo.nu):
        symmetric = ca.is_equal(low[k], -high[k])
        holds += [ca.fabs(u[k]) <= high[k]] if symmetric else [u[k] <= high[k], u[k] >= low[k]]
    for limits in families(servo, q, v, parts.shape_acceleration, u, held=True, margin=False):
        holds += [condition for limit in limits for condition in limit.kept]
    doubtful = ca.logic_not(_all(ca.vertcat(*holds)))
    results = [parts.results[name] for name in FREE]
    near = ca.logic_not(parts.least_usual >= (servo.damping_threshold or 0.0))
    zoned = ca.SX(0)
    if keeps_margin(servo):
        least = margin_at_least(servo, q, parts)
        zoned = ca.logic_not(least >= margin_zone(servo))
    known = parts.decoupling if servo.model.takes_momentum else ca.SX(0, 0)
    results += [parts.shape_acceleration, parts.margins, known, doubtful, near, zoned]
    return ca.Function("servo", [*inputs.values()], [*map(ca.densify, results)], {"cse": True})


def _unlimited(servo: LawCore, free: Sequence[Array]) -> dict[str, Array]:
    """Results of the law where no limit is active, from those in `FREE`; in the order of `OUTPUTS`.

    The others are constants, which need not be copied from graph to graph.
    """
    found = dict(zip(FREE, free, strict=False))
    found |= {"missed": ca.MX.zeros(servo.size), "scale": ca.MX(1.0)}
    found |= {"active": ca.MX.zeros(len(servo.limit_names))}
    return {name: found[name] for name in OUTPUTS}


def _damped(servo: LawCore) -> ca.Function:
    """Whether the law is damped, from a sign that it may be, results of `_free`, and q."""
    near, q = ca.MX.sym("near"), ca.SX.sym("q", servo.nq)
    # Of a robot that floats J H costs a lift, and is passed on.
    floats = servo.model.takes_momentum
    known = ca.SX.sym("decoupling", *((servo.size, servo.ns) if floats else (0, 0)))
    if servo.redundancy is not None:
        at = [ca.MX.sym("decoupling", *known.shape), ca.MX.sym("q", servo.nq)]
        return ca.Function("damped", [near, *at], [near])
    margin = usual_margin(servo, known if floats else servo.decoupling(q))
    options = {"cse": True}
    below = ca.Function("below", [known, q], [margin < servo.damping_threshold], options)
    return _if("damped", below)


def _margin_met(servo: LawCore) -> ca.Function:
    """Whether a least margin may bound the motion: from a sign that it may, inputs and sdot.

    The margin is computed where its lower bound is within the zone, its derivatives where it is
    there itself.
    """
    inputs = {name: ca.SX.sym(name, size) for name, size in servo.inputs.items()}
    q, v, sdot = inputs["q"], all_velocities(servo, inputs), ca.SX.sym("sdot", servo.ns)
    given, options = [*inputs.values(), sdot], {"cse": True}
    kept = [ca.vertcat(*limit.kept) for limit in margin_limits(servo, q, v, sdot)]
    met = ca.Function("met", given, [ca.logic_not(_all(ca.vertcat(*kept)))], options)
    zoned = ca.logic_not(margin_bound(servo, q) >= margin_zone(servo))
    inside = ca.Function("zoned", given, [zoned], options)
    at = [ca.MX.sym(f"x{k}", part.shape[0]) for k, part in enumerate(given)]
    both = ca.Function("both", at, [_if("in_zone", met)(inside(*at), *at)])
    return _if("margin_met", both)


def _if(name: str, condition: ca.Function) -> ca.Function:
    """A condition that is computed where a sign before its arguments is true, and else is false."""
    at = [ca.MX.sym(f"x{k}", *condition.size_in(k)) for k in range(condition.n_in())]
    return ca.Function.if_else(name, condition, ca.Function("never", at, [ca.MX(0.0)]))


def _kept(servo: LawCore) -> ca.Function:
    """The law where a limit may be active, from results of `_free` and inputs to `OUTPUTS`.

    Where none is these are those of the servo.
    """
    inputs = {name: ca.SX.sym(name, size) for name, size in servo.inputs.items()}
    extra = {"sdot": ca.SX.sym("sdot", servo.ns), "margins": ca.SX.sym("margins", 2)}
    q, v = inputs["q"], all_velocities(servo, inputs)
    limits = limit_rows(servo, q, v, held=True)
    program, values = _posed(servo, extra | inputs, limits)
    places = [k for k, row in enumerate(limits, servo.nu) for _ in row.names]
    data, given = [*program, *values.values()], [*extra.values(), *inputs.values()]
    posed = ca.Function("posed", given, [*map(ca.densify, data)], {"cse": True})
    symbols = [ca.MX.sym(f"x{k}", symbol.shape[0]) for k, symbol in enumerate(given)]
    metric, rows, low, high, *found = posed(*symbols)
    x = dict(zip(values, found, strict=True))

    change, force, solved = _nearest(
        servo, (metric, rows, low, high), x, sum(row.of_force for row in limits)
    )
    u = x["torque"] + x["widths"] * (rows[: servo.nu, :] @ change)
    made = x["decoupling"] @ (x["nominal"] + change[: servo.ns])
    missed = x["residual"] - ca.if_else(solved > 0.0, made, 0.0)
    sound = ca.sumsqr(change) + ca.sumsqr(u) <= LARGEST**2
    u = ca.if_else(solved > 0.0, u, _within(u, x["least"], x["most"]))
    weighed = ca.DM(servo.margins.scales[0] ** 2) * x["residual"]
    share = ca.dot(weighed, x["residual"] - missed)
    share /= ca.fmax(ca.dot(weighed, x["residual"]), TINY)
    active = [ca.fabs(force[: servo.nu]) > 0.0]
    if places:
        along = force[places]
        met = ca.fmax((along > 0.0) * x["upper"], (along < 0.0) * x["lower"])
        named = [name for row in limits for name in row.names]
        for name in dict.fromkeys(named):
            own = [k for k, other in enumerate(named) if other == name]
            active.append(met[own[0]] if len(own) == 1 else ca.mmax(met[own]))
    active += [x["damped"]] * (servo.damping_threshold is not None)
    active.append(ca.logic_not(solved > 0.0))
    results = {
        "u": u,
        "pivot": ca.if_else(sound, x["pivot"], 0.0),
        "missed": missed,
        "scale": ca.fmax(0.0, ca.fmin(1.0, share)),
        "side": x["side"],
        "zdot": integral_rate(servo, x["error"], missed) if servo.nz else ca.MX(0, 1),
        "active": ca.vertcat(*active),
    }
    free = [ca.MX.sym(name, results[name].shape[0]) for name in FREE]
    within = ca.vertcat(low <= 0.0, high >= 0.0, ca.logic_not(x["damped"]), x["usable"])
    chosen = {
        name: ca.if_else(ca.mmin(within), one, ca.densify(results[name]))
        for name, one in _unlimited(servo, free).items()
    }
    # Torques of the servo and those of the program differ by rounding.
    chosen["u"] = ca.fmin(ca.fmax(chosen["u"], x["least"]), x["most"])
    return ca.Function("kept", [*free, *symbols], [*chosen.values()])


def _nearest(
    servo: LawCore, program: Sequence[Array], x: Mapping[str, Array], forces: int
) -> tuple[Array, Array, Array]:
    """Change of the nominal acceleration that keeps all limits; forces of rows; 1 if solved.

    First that which keeps the limits of the joints, then that which slows the result down until
    torques are kept, and limits of forces, whose rows stand behind those of torques.
    """
    metric, rows, low, high = program
    (count, size), nu = rows.shape, servo.nu
    none = ca.DM.zeros(size)  # dense: C for conversions has warnings
    first, pushed, sound = ca.MX(none), ca.MX(0, 1), ca.MX(1)
    if count > (held := nu + forces):
        own = [part[held:, :] for part in (rows, low, high)]
        first, pushed, sound = quadratic_program(size, count - held)(metric, *own, x["slack"])
    rest = -approach(servo) * x["speeds"] - x["nominal"]
    away = ca.vertcat(rest, ca.DM.zeros(size - servo.ns)) - first
    length = ca.sqrt(ca.bilin(metric, away, away))
    usable = ca.logic_and(length >= TINY, length <= LARGEST)
    away, length = (ca.if_else(usable, part, 0) for part in (away / length, length))
    reached = rows @ first
    both = ca.vertcat(ca.horzcat(rows, rows @ away), ca.DM([[0.0] * size + [1.0]]))
    ends = ca.vertcat(low - reached, 0), ca.vertcat(high - reached, length)
    slack = ca.vertcat(ca.DM([0.0] * nu + [FIRM] * forces), x["slack"], 0.0)
    found, force, solved = quadratic_program(size + 1, count + 1)(
        ca.vertcat(ca.horzcat(metric, none), ca.horzcat(none.T, WAIT)), both, *ends, slack
    )
    force = ca.vertcat(force[:held], force[held:count] + pushed)
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
    servo: LawCore, inputs: Mapping[str, Array], limits: Sequence[LimitRow]
) -> tuple[list[Array], dict[str, Array]]:
    """Metric, rows and bounds of the program, and what results follow from.

    The unknown is the change of the nominal shape acceleration; behind it that of controls which
    make no force on the shape.
    """
    q, v, model = inputs["q"], all_velocities(servo, inputs), servo.model
    sdot, (pivot, others) = inputs["sdot"], ca.vertsplit(inputs["margins"])
    usual = shape_command(servo, q, v, inputs, None).usual
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
    scaled = ca.diag(constant(servo.margins.scales[0] * _weights(servo))) @ found.decoupling
    metric, more, firmer = mass + scaled.T @ scaled, servo.nu - model.nd, ca.SX(1)
    if servo.redundancy is not None and keeps_margin(servo):
        price, firmer = _price_at_margin(servo, mass, found.decoupling, inputs["margins"][0])
        metric += price
    if more:
        weights = np.ones(servo.nu) if servo.torque_weights is None else servo.torque_weights
        effort = ca.sum1(constant(weights) * ca.sum2(torque_map**2))
        metric = ca.diagcat(metric, EASE * ca.trace(mass) / effort * ca.SX.eye(more))
        unseen = unfelt(model.effect(q), servo.torque_weights)
        torque_map = ca.horzcat(torque_map, unseen)
    least, most = torque_bounds(servo, q, v)
    size = ca.fmin(ca.fabs(least), ca.fabs(most))
    size = ca.if_else(size > 0.0, size, ca.fmax(ca.fabs(least), ca.fabs(most)))
    widths = ca.if_else(size < LARGEST, size, ca.fmax(ca.fabs(torque), 1.0))
    parts = [
        (ca.diag(1 / widths) @ torque_map, (least - torque) / widths, (most - torque) / widths)
    ]
    unit = _unit(servo)
    sides, root = [(ca.SX(0, 1), ca.SX(0, 1))], ca.sqrt(ca.diag(mass)) / unit
    for row in limits:
        (low, high), length = row.bounds, ca.fmax(ca.norm_2(row.row.T / root), TINY)
        rest = ca.SX(1, more) if row.unfelt is None else row.unfelt
        value, whole = row.row @ sdot + row.drift, ca.horzcat(row.row, rest)
        parts.append((whole / length, (low - value) / length, (high - value) / length))
        sides += [(a >= low, b <= high) for a, b in zip(row.low, row.high, strict=True)]
    rows, low, high = (ca.vertcat(*part) for part in zip(*parts, strict=True))
    # CasADi raises an error for bounds that cross or are NaN.
    usable = ca.logic_and(_all(low <= high), ca.sumsqr(torque) <= LARGEST**2)
    usual = (ca.SX.eye(servo.ns + more), 0.0, -1.0, 1.0)
    program = [ca.triu2symm(ca.triu(metric)) / unit**2, rows, low, high]
    program = [ca.if_else(usable, ca.densify(a), b) for a, b in zip(program, usual, strict=True)]
    fast = ca.vertcat(ca.SX(0, 1), *(row.fast for row in limits if not row.of_force))
    soft = ca.fmax(0.0, ca.fmin(1.0, fast / FAST)) * (SOFT - SLACK)
    lower, upper = (ca.vertcat(*side) for side in zip(*sides, strict=True))
    values = {"nominal": sdot, "torque": torque, "widths": widths, "least": least, "most": most}
    values["speeds"] = v[list(model.shape), :]
    values |= {"residual": found.residual, "decoupling": found.decoupling, "error": found.error}
    values |= {"pivot": ca.if_else(usable, ca.fmin(pivot, others), 0.0), "usable": usable}
    values |= {"side": found.side * turned, "damped": damped, "lower": lower, "upper": upper}
    values["slack"] = (SLACK + soft) / firmer
    return program, values


def _unit(servo: LawCore) -> float:
    """Unit of the square root of the metric, so that solvers meet numbers near 1 in any units.

    That of a motion of the robot by its size, at the rate of the approach.
    """
    system, columns = servo.model.system, servo.margins.scales[1]
    known = natural_units(system) if isinstance(system, Mechanism) else (np.linalg.norm(columns), 1)
    return float(known[0] * known[1] * approach(servo) ** 2)


def _price_at_margin(
    servo: LawCore, mass: Array, decoupling: Array, margin: Array
) -> tuple[Array, Array]:
    """Price of accelerations near the least margin, beside the kinetic energy; how firm rows get.

    There the outputs pull without end, and what keeps the margin pushes internal motion too. In the
    metric of the kinetic energy this pull does not follow from a potential, and internal motion
    slides on without end. In constant units of the outputs it is that of their errors: the arm
    comes to rest where no internal motion brings them nearer to their goals. The least margin makes
    this price that of the kinetic energy along the direction that is about to be lost. Rows become
    as much firmer.
    """
    scaled = ca.diag(constant(servo.margins.scales[0])) @ decoupling
    own = scaled @ solve_positive_definite(mass, scaled.T) + SINGULAR * ca.SX.eye(servo.size)
    inner = mass - scaled.T @ solve_positive_definite(own, scaled)
    near = ca.fmax(0.0, 2.0 - margin / servo.constraints.margin)
    price, outer = INNER * near**2, OUTER / max(servo.constraints.margin, LEAST) ** 2
    return price * (inner + outer * scaled.T @ scaled), 1.0 + price * outer


def _weights(servo: LawCore) -> np.ndarray:
    """Weight of each output coordinate, shape (size,)."""
    given = {} if servo.constraints is None else servo.constraints.weights or {}
    each = [[given.get(output.name, WEIGHT)] * output.dim for output in servo.outputs]
    return np.concatenate([np.zeros(0), *each])


def _all(conditions: Any) -> Any:
    return reduce(ca.logic_and, ca.vertsplit(ca.densify(conditions)))
