"""Limits of joints, distances, margin and ground as bounds of rows of the shape acceleration.

A coordinate q in [q_low, q_high], a speed within w, and a function h of the configuration that has
to stay above zero are exponential barriers, with the rate alpha of `approach`:

    qddot <= alpha^2 (q_high - q) - 2 alpha qdot,     qddot <= 2 alpha (w - qdot),
    h'' >= -alpha^2 h - 2 alpha h',

and the same from below: a coordinate then comes to its limit no faster than ``qdot = alpha
(q_high - q)``. Loads of wheels and supports, moments about edges of their polygon, and forces of
the ground along wheels are affine in the shape acceleration. A force of two components stays in a
regular polygon inside the circle of friction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from concur.codegen import Array, Vector, constant
from concur.control._core import LawCore, approach
from concur.control._law import controls, least_root
from concur.control._reading import read_each
from concur.control._sharing import unfelt
from concur.errors import OutputError
from concur.reduction import (
    carried_wrench,
    check_loads,
    check_rolling,
    ground_loads,
    load_arms,
    tipping_edges,
    tipping_rows,
    wheel_forces,
    wheel_names,
)
from concur.robot import Clearance, Mechanism, as_tree, robot_size, solve_positive_definite

WEAK = 1e-2
"""Slope of a function of the configuration, over its usual size, below which little is asked."""

UNSEEN = 1e-12
"""Square of a margin that counts as zero, so that singular configurations have a slope."""

SIDES = 8
"""Sides of the polygons of friction; forces along and across a wheel may be as large as the circle
allows, others up to 8 % less."""

_TURNS = 2 * np.pi * (np.arange(SIDES) + 0.5) / SIDES
_FACES = np.column_stack([np.cos(_TURNS), np.sin(_TURNS)]) / np.cos(np.pi / SIDES)


@dataclass
class LimitRow:
    """Bounds of ``row sdot + drift``, such as those of a coordinate and of its freedom."""

    row: Array
    drift: Array
    names: list[str] = field(default_factory=list)
    low: list[Array] = field(default_factory=list)
    high: list[Array] = field(default_factory=list)
    unfelt: Array | None = None
    """Row of controls that make no force on the shape; None without such controls."""
    of_joint: bool = False
    of_force: bool = False
    """Whether it is a limit of forces, for which the motion slows down as for torques."""

    def add(self, name: str, low: Array, high: Array) -> None:
        """Add bounds by their name."""
        self.names.append(name)
        self.low.append(low)
        self.high.append(high)

    @property
    def bounds(self) -> tuple[Array, Array]:
        """The narrowest bounds, which do not cross: braking counts more than a speed."""
        low, high = ca.mmax(ca.vertcat(*self.low)), ca.mmin(ca.vertcat(*self.high))
        return ca.fmin(low, high), high


def limit_rows(servo: LawCore, q: Vector, v: Vector) -> list[LimitRow]:
    """Rows of the constraints of a servo, at all velocities v (nv,); those of forces first."""
    limits, system = servo.constraints, servo.model.system
    if limits is None or not isinstance(system, Mechanism):
        return []
    ground = ground_limits(servo)
    rows = [*_ground(servo, system, ground, q, v), *_joints(servo, system, q, v)]
    if ground is not None:
        rows += _at_rest(servo, system, ground, q, v)
    if limits.margin is not None:
        rows += _margin(servo, q, v)
    if (clearance := limits.clearance(system)) is not None:
        rows += _distances(servo, system, clearance, q, v)
    return rows


def _joints(servo: LawCore, system: Mechanism, q: Vector, v: Vector) -> list[LimitRow]:
    """Positions, speeds and accelerations of joints, and speeds of motors on several joints."""
    limits, model, rate = servo.constraints, servo.model, approach(servo)
    horizontal, drift = model.lift(q)[0], model.velocity_drift(q, v)
    at, w = ca.SX.sym("q", system.nq), ca.SX.sym("v", system.nv)
    moving = system.rate(at, w)
    parts = [moving, ca.jacobian(moving, w), ca.jtimes(moving, at, moving)]
    moved, slopes, carried = ca.Function("rates", [at, w], parts).call([q, v], True, False)
    carried += slopes @ drift
    rows = dict[Any, LimitRow]()
    places = [(body, k) for body in system.bodies for k in range(body.joint.nq)]
    for c, (body, k) in enumerate(places if limits.joints else []):
        low, high = map(float, system.limits[c])
        if np.isfinite([low, high]).any():
            unit = _unit_row(slopes, c)
            key = ("coordinate", c) if unit is None else ("freedom", unit)
            rows[key] = row = LimitRow(slopes[c, :] @ horizontal, carried[c], of_joint=True)
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
        row = rows.setdefault(("freedom", i), LimitRow(horizontal[i, :], drift[i], of_joint=True))
        if np.isfinite(speeds[i]):
            ends = (-float(speeds[i]), float(speeds[i]))
            row.add(f"speed of {name}", *(2 * rate * (end - v[i]) for end in ends))
        if name in largest:
            row.add(f"acceleration of {name}", -ca.SX(largest[name]), ca.SX(largest[name]))
    for motor in system.motors if limits.speeds else ():
        if motor.speed == np.inf or len(motor.ratios) == 1:
            continue  # that of one joint is a limit of the joint
        ratios = ca.DM([[motor.ratios.get(name, 0.0) for name in system.freedom_names]])
        row = LimitRow(ratios @ horizontal, ratios @ drift, of_joint=True)
        ends = (-motor.speed, motor.speed)
        row.add(f"speed of {motor.name}", *(2 * rate * (end - ratios @ v) for end in ends))
        rows["motor", motor.name] = row
    return list(rows.values())


def _unit_row(slopes: ca.SX, c: int) -> int | None:
    """The freedom whose velocity is the rate of a coordinate, if there is one."""
    row = slopes[c, :]
    if row.nnz() == 1 and row.nonzeros()[0].is_constant() and float(row.nonzeros()[0]) == 1.0:
        return int(row.sparsity().find()[0])
    return None


def _distances(
    servo: LawCore, system: Mechanism, clearance: Clearance, q: Vector, v: Vector
) -> list[LimitRow]:
    """Distances of capsules beyond the least ones."""
    at = ca.SX.sym("q", system.nq)
    beyond = clearance.seen(system, at) - ca.DM([*clearance.least.values()])
    names = [f"distance of {name}" for name in clearance.least]
    return _barriers(servo, names, at, beyond, WEAK * robot_size(system), (q, v), approach(servo))


def _margin(servo: LawCore, q: Vector, v: Vector) -> list[LimitRow]:
    """Lower bound of the decoupling margin of the outputs beyond the least one."""
    model, least = servo.model, servo.constraints.margin
    at = ca.SX.sym("q", servo.nq)
    scaled = ca.diag(constant(servo.margins.scales[0])) @ servo.decoupling(at)
    own = ca.triu2symm(ca.triu(scaled @ solve_positive_definite(model.mass_matrix(at), scaled.T)))
    known = least_root(own + UNSEEN * ca.SX.eye(servo.size))
    return _barriers(
        servo, ["least margin"], at, known - least, WEAK * least, (q, v), approach(servo)
    )


def _ground(
    servo: LawCore, system: Mechanism, kept: GroundLimits | None, q: Vector, v: Vector
) -> list[LimitRow]:
    """Loads of wheels and supports, moments about edges of their polygon, and friction."""
    if kept is None:
        return []
    model, sdot = servo.model, ca.SX.sym("sdot", servo.ns)
    others = ca.SX.sym("others", max(servo.nu - servo.ns, 0))
    vdot = model.lift(q)[0] @ sdot + model.velocity_drift(q, v)
    found, loads = kept.beyond(system, q, v, vdot)
    if kept.grips:
        torques = controls(model, q, model.shape_forces(q, v, sdot), servo.torque_weights)[0]
        if others.numel():
            torques += unfelt(model.input_matrix(q), servo.torque_weights) @ others
        rest = system.inverse_dynamics(q, v, vdot) - system.actuation(q) @ torques
        forces = wheel_forces(system, q, rest)
        for name, grip in kept.grips.items():
            k = kept.names.index(name)
            faces = _FACES if forces[k].numel() == 2 else np.array([[1.0], [-1.0]])
            found += [(f"grip of {name}", grip * loads[k] - ca.dot(c, forces[k])) for c in faces]
    beyond, x = ca.vertcat(*(part for _, part in found)), ca.vertcat(sdot, others)
    slopes, drifts = ca.jacobian(beyond, x), ca.substitute(beyond, x, ca.SX.zeros(x.numel()))
    rows = list[LimitRow]()
    for k, (name, _) in enumerate(found):
        own, free = slopes[k, : servo.ns], slopes[k, servo.ns :]
        row = LimitRow(own, drifts[k], unfelt=free if others.numel() else None, of_force=True)
        row.add(name, ca.SX(0), ca.SX(np.inf))
        rows.append(row)
    return rows


def _at_rest(
    servo: LawCore, system: Mechanism, kept: GroundLimits, q: Vector, v: Vector
) -> list[LimitRow]:
    """Loads and moments at rest: an arm that moves outwards stops while it can.

    A robot may brake no faster than it would fall over, which bounds the rate of the approach.
    """
    at, still = ca.SX.sym("q", system.nq), ca.SX.zeros(system.nv)
    found, _ = kept.beyond(system, at, still, still)
    size, pull = robot_size(system), float(np.linalg.norm(system.gravity))
    weight = pull * sum(body.inertia.mass for body in system.bodies)
    beyond = ca.vertcat(ca.SX(0, 1), *(part for _, part in found))
    moved = [k for k in range(beyond.numel()) if ca.depends_on(beyond[k], at)]
    names, rate = [found[k][0] for k in moved], min(approach(servo), np.sqrt(pull / size))
    return _barriers(servo, names, at, beyond[moved], 1e-2 * WEAK * weight, (q, v), rate)


class GroundLimits(NamedTuple):
    """What wheels and supports of a robot have to keep.

    Parameters
    ----------
    names : tuple of str
        Wheels, then supports.
    loads, grips : dict of str to float
        Least load, N, and largest friction coefficient, by name of the wheel or support.
    tipping : float
        Least moment about each edge, N m.
    edges : list of tuple of int
        First and last contact of each edge of their polygon, if it is kept.
    compliance : tuple of float, optional
        Compliance of each contact, up to a common factor.
    """

    names: tuple[str, ...]
    loads: dict[str, float]
    grips: dict[str, float]
    tipping: float
    edges: list[tuple[int, int]]
    compliance: tuple[float, ...] | None

    def beyond(
        self, robot: Mechanism, q: Vector, v: Vector, vdot: Vector
    ) -> tuple[list[tuple[str, Any]], Any]:
        """Moments and loads beyond the least ones, by name; loads of all contacts, if needed."""
        height, names, found = robot.ground_height or 0.0, self.names, list[tuple[str, Any]]()
        if self.edges:
            arms = load_arms(robot, q, robot.supports)
            moments = tipping_rows(arms, self.edges) @ carried_wrench(robot, height, q, v, vdot)
            for k, (i, j) in enumerate(self.edges):
                found.append((f"tipping over {names[i]} to {names[j]}", moments[k] - self.tipping))
        if not self.loads and not self.grips:
            return found, None
        loads = ground_loads(robot, robot.supports, self.compliance, height, q, v, vdot)
        for name, least in self.loads.items():
            found.append((f"load of {name}", loads[names.index(name)] - least))
        return found, loads


def ground_limits(servo: LawCore) -> GroundLimits | None:
    """Check and read what the constraints of a servo ask of wheels and supports, if anything."""
    limits, robot, where = servo.constraints, servo.model.system, f"servo of `{servo.name}`"
    if limits is None or all(x is None for x in (limits.least_load, limits.grip, limits.tipping)):
        return None
    robot = as_tree(robot, where, "Omit limits of loads, grip and tipping.")
    wheels, supports = wheel_names(robot), robot.supports
    names = (*wheels, *supports)

    def each(field: str, known: Sequence[str]) -> dict[str, float]:
        given, place = getattr(limits, field), f"{where}, `constraints.{field}`"
        if given is None:
            return {}
        numbers = read_each(place, given, known, "wheel or support", zero=field == "least_load")
        chosen = given if isinstance(given, Mapping) else known
        return {name: float(numbers[known.index(name)]) for name in chosen}

    loads, grips, soft = (
        each(field, known)
        for field, known in (("least_load", names), ("grip", wheels), ("compliance", names))
    )
    place = f"{where}, `constraints`"
    compliance = tuple(soft.get(name, 1.0) for name in names) if soft else None
    check_rolling(place, robot)
    shared = compliance if loads or grips else (1.0,) * len(names)
    check_loads(place, robot, supports, shared)
    edges = list[tuple[int, int]]()
    if limits.tipping is not None:
        edges = tipping_edges(robot, supports)
        if not edges:
            raise OutputError(
                f"{place}, `tipping`",
                expected="wheels and supports at fixed places of the base",
                came="wheels that move against it",
                cure="Limit their loads, `least_load`.",
            )
    return GroundLimits(names, loads, grips, limits.tipping or 0.0, edges, compliance)


def _barriers(
    servo: LawCore,
    names: Sequence[str],
    at: ca.SX,
    beyond: ca.SX,
    weak: float,
    state: tuple[Vector, Vector],
    alpha: float,
) -> list[LimitRow]:
    """Rows that keep functions of the configuration `at` above zero, at a rate of approach.

    Where the slope of one is below `weak`, no acceleration changes it much, and any that keeps it
    would be large: less is asked there, and nothing where the slope is zero.
    """
    model, system = servo.model, servo.model.system
    w = ca.SX.sym("v", system.nv)
    moving = system.rate(at, w)
    change = ca.jtimes(beyond, at, moving)
    parts = [beyond, change, ca.jacobian(change, w), ca.jtimes(change, at, moving)]
    value, rate, slopes, carried = ca.Function("barriers", [at, w], parts).call(state, True, False)
    drifts, slopes = (
        carried + slopes @ model.velocity_drift(*state),
        slopes @ model.lift(state[0])[0],
    )
    low, found = -(alpha**2) * value - 2.0 * alpha * rate, list[LimitRow]()
    for k, name in enumerate(names):
        share = ca.fmin(1.0, ca.sumsqr(slopes[k, :]) / weak**2)
        asked = low[k] - drifts[k]
        found.append(row := LimitRow(slopes[k, :], drifts[k]))
        row.add(name, drifts[k] + ca.fmin(asked, share * asked), ca.SX(np.inf))
    return found
