"""Limits of joints, distances, margin and ground as bounds of rows of the shape acceleration.

A coordinate q in [q_low, q_high], and a function h of the configuration that has to stay above
zero, are barriers (`_barriers.py`) with both rates `approach`; a speed within w has
``qddot <= 2 approach (w - qdot)``, and the same from below. Loads of wheels and supports, moments
about edges of their polygon, and forces of the ground along wheels are affine in the shape
acceleration. A force of two components stays in a regular polygon inside the circle of friction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from concur.codegen import Array, Vector, constant
from concur.control._barriers import Limit, LimitRow, Moved
from concur.control._core import LawCore, approach
from concur.control._holding import weights_held
from concur.control._law import LawParts, controls, least_root
from concur.control._margins import usual_bound
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

SINGULAR = 1e-12
"""Square of a margin that counts as zero, so that singular configurations have a slope."""

ZONE = 0.25
"""Width of the zone in which a least margin is kept, over the margin of a usual configuration.

A joint that stretches an arm at 1 rad/s brakes in its lower half."""

SIDES = 8
"""Sides of the polygons of friction; forces along and across a wheel may be as large as the circle
allows, others up to 8 % less."""

_TURNS = 2 * np.pi * (np.arange(SIDES) + 0.5) / SIDES
_FACES = np.column_stack([np.cos(_TURNS), np.sin(_TURNS)]) / np.cos(np.pi / SIDES)


def limit_rows(servo: LawCore, q: Vector, v: Vector, held: bool = False) -> list[LimitRow]:
    """Rows of `families`, at all velocities v (nv,)."""
    sdot, others = ca.SX.sym("sdot", servo.ns), ca.SX.sym("others", servo.nu - servo.model.nd)
    torques = ca.SX(servo.nu, 1)
    if needs_torques(servo):
        model, weights = servo.model, servo.torque_weights
        torques = controls(model, q, model.shape_forces(q, v, sdot), weights)[0]
        if others.numel():
            torques += unfelt(model.input_matrix(q), weights) @ others
    found = families(servo, q, v, sdot, torques, held)
    return [row for limits in found for row in LimitRow.of(limits, sdot, others)]


def families(
    servo: LawCore,
    q: Vector,
    v: Vector,
    sdot: Vector,
    torques: Vector,
    held: bool = False,
    margin: bool = True,
) -> list[list[Limit]]:
    """Constraints of a servo by kind, for a shape acceleration and controls; of forces first.

    Those of the torques that hold the weight are among them on request, last; that of the least
    margin can be omitted.
    """
    limits, system = servo.constraints, servo.model.system
    if limits is None or not isinstance(system, Mechanism):
        return []
    ground = ground_limits(servo)
    found = [_ground(servo, system, ground, q, v, sdot, torques)] if ground is not None else []
    found.append(_joints(servo, system, q, v, sdot))
    if ground is not None:
        found.append(_at_rest(servo, system, ground, q, v, sdot))
    if margin and keeps_margin(servo):
        found.append(margin_limits(servo, q, v, sdot))
    if (clearance := limits.clearance(system)) is not None:
        found.append(_distances(servo, system, clearance, q, v, sdot))
    return [*found, weights_held(servo, q, v, sdot)] if held else found


def keeps_margin(servo: LawCore) -> bool:
    """Whether a servo keeps a least margin."""
    limits = servo.constraints
    asked = limits is not None and limits.margin is not None
    return asked and servo.size > 0 and isinstance(servo.model.system, Mechanism)


def needs_torques(servo: LawCore) -> bool:
    """Whether a constraint depends on the controls: forces of the ground along wheels."""
    limits = servo.constraints
    return limits is not None and limits.grip is not None


def _joints(servo: LawCore, system: Mechanism, q: Vector, v: Vector, sdot: Vector) -> list[Limit]:
    """Positions, speeds and accelerations of joints, and speeds of motors on several joints."""
    limits, model, rate = servo.constraints, servo.model, approach(servo)
    vdot = model.lift(q)[0] @ sdot + model.velocity_drift(q, v)
    at, w = ca.SX.sym("q", system.nq), ca.SX.sym("v", system.nv)
    slopes = ca.jacobian(system.rate(at, w), w)
    moved = Moved.along(servo, at, at, q, v, sdot)
    rows = dict[Any, Limit]()
    places = [(body, k) for body in system.bodies for k in range(body.joint.nq)]
    for c, (body, k) in enumerate(places if limits.joints else []):
        low, high = map(float, system.limits[c])
        if np.isfinite([low, high]).any():
            unit = _unit_row(slopes, c)
            key = ("coordinate", c) if unit is None else ("freedom", unit)
            rows[key] = row = Limit(moved.second[c], of_joint=True)
            name = body.joint_label
            if body.joint.nq > 1:
                name = f"{body.joint.coordinate_names[k]} of {name}"
            moved.add_ends(row, c, f"position of {name}", (low, high), rate, rate)
    speeds = system.speed_limits if limits.speeds else np.full(system.nv, np.inf)
    largest = limits.accelerations or {}
    for i, name in enumerate(system.freedom_names):
        if not (np.isfinite(speeds[i]) or name in largest):
            continue
        row = rows.setdefault(("freedom", i), Limit(vdot[i], of_joint=True))
        if np.isfinite(speeds[i]):
            fastest = 2 * rate * float(speeds[i])
            row.add(f"speed of {name}", -fastest, fastest, 2 * rate * v[i])
        if name in largest:
            most = float(largest[name])
            row.add(f"acceleration of {name}", -most, most)
    for motor in system.motors if limits.speeds else ():
        if motor.speed == np.inf or len(motor.ratios) == 1:
            continue  # that of one joint is a limit of the joint
        ratios = ca.DM([[motor.ratios.get(name, 0.0) for name in system.freedom_names]])
        row = Limit(ratios @ vdot, of_joint=True)
        fastest = 2 * rate * motor.speed
        row.add(f"speed of {motor.name}", -fastest, fastest, 2 * rate * (ratios @ v))
        rows["motor", motor.name] = row
    return list(rows.values())


def _unit_row(slopes: ca.SX, c: int) -> int | None:
    """The freedom whose velocity is the rate of a coordinate, if there is one."""
    row = slopes[c, :]
    if row.nnz() == 1 and row.nonzeros()[0].is_constant() and float(row.nonzeros()[0]) == 1.0:
        return int(row.sparsity().find()[0])
    return None


def _distances(
    servo: LawCore, system: Mechanism, clearance: Clearance, q: Vector, v: Vector, sdot: Vector
) -> list[Limit]:
    """Distances of capsules beyond the least ones; of boxes those of the capsules' ends too."""
    at, names, beyond = ca.SX.sym("q", system.nq), list[str](), list[Array]()
    seen = zip(clearance.parts(system, at), clearance.least.items(), strict=True)
    for parts, (name, least) in seen:
        names += [f"distance of {name}"] * parts.numel()
        beyond.append(parts - least)
    moved = Moved.along(servo, at, ca.vertcat(*beyond), q, v, sdot)
    return _above_zero(names, moved, WEAK * robot_size(system), approach(servo))


def margin_limits(servo: LawCore, q: Vector, v: Vector, sdot: Vector) -> list[Limit]:
    """Lower bound of the decoupling margin of the outputs beyond the least one.

    With h what it is beyond, over the width w of the zone, the function that is kept is w h in the
    lower half of the zone, and a constant above the zone: there no motion is bounded.
    """
    least, at = servo.constraints.margin, ca.SX.sym("q", servo.nq)
    width = margin_zone(servo) - least
    beyond = ca.fmin((margin_bound(servo, at) - least) / width, 1.0)
    upper = ca.fmax(0.0, 2.0 * beyond - 1.0)
    kept = width * (beyond - upper**3 * (0.5 - 0.25 * upper))  # slope 1 - 3 upper^2 + 2 upper^3
    moved = Moved.along(servo, at, kept, q, v, sdot)
    return _above_zero(["least margin"], moved, WEAK * least, approach(servo))


def margin_bound(servo: LawCore, q: Vector) -> Array:
    """Lower bound of the decoupling margin of the outputs, by `least_root`."""
    mass = servo.model.mass_matrix(q)
    scaled = ca.diag(constant(servo.margins.scales[0])) @ servo.decoupling(q)
    own = ca.triu2symm(ca.triu(scaled @ solve_positive_definite(mass, scaled.T)))
    return least_root(own + SINGULAR * ca.SX.eye(servo.size))


def margin_zone(servo: LawCore) -> float:
    """Margin above which the least margin of a servo bounds no motion."""
    usual = usual_bound(servo.model, servo.decoupling, servo.margins.scales[0])
    return float(servo.constraints.margin + ZONE * usual)


def margin_at_least(servo: LawCore, q: Vector, parts: LawParts) -> Array:
    """A bound below `margin_bound` that takes fewer operations, from parts of the servo's graph.

    The servo's own bound is that of a redundant arm. Of as many outputs as shape velocities the
    servo has the inverse K of the scaled matrix R, and with the mass matrix M, in which the margin
    is measured, that of R M^-1 R^T has the trace ``tr K^T M K``, which is above its Frobenius norm.
    """
    if servo.redundancy is not None:
        return parts.margins[0]
    mass, inverse, energy = servo.model.mass_matrix(q), parts.inverse, ca.SX(0)
    for i in range(servo.ns):
        energy += mass[i, i] * ca.sumsqr(inverse[i, :])
        for j in range(i + 1, servo.ns):
            energy += 2.0 * mass[i, j] * ca.dot(inverse[i, :], inverse[j, :])
    return ca.if_else(energy < ca.inf, 1.0 / ca.sqrt(energy), 0.0)


def _above_zero(names: Sequence[str], moved: Moved, weak: float, rate: float) -> list[Limit]:
    """Limits that keep functions of the configuration above zero, at a rate of approach."""
    found = [Limit(moved.second[k], weak=weak) for k in range(len(names))]
    for k, name in enumerate(names):
        moved.add_ends(found[k], k, name, (0.0, np.inf), rate, rate)
    return found


def _ground(
    servo: LawCore,
    system: Mechanism,
    kept: GroundLimits,
    q: Vector,
    v: Vector,
    sdot: Vector,
    torques: Vector,
) -> list[Limit]:
    """Loads of wheels and supports, moments about edges of their polygon, and friction."""
    model = servo.model
    vdot = model.lift(q)[0] @ sdot + model.velocity_drift(q, v)
    found, loads = kept.beyond(system, q, v, vdot)
    inside = dict[str, Any]()
    if kept.grips:
        rest = system.inverse_dynamics(q, v, vdot) - system.actuation(q) @ torques
        forces = wheel_forces(system, q, rest)
        for name, grip in kept.grips.items():
            k = kept.names.index(name)
            faces = _FACES if forces[k].numel() == 2 else np.array([[1.0], [-1.0]])
            found += [(f"grip of {name}", grip * loads[k] - ca.dot(c, forces[k])) for c in faces]
            # The circle inside of the polygon.
            most = grip * np.cos(np.pi / SIDES) * loads[k]
            held = ca.sumsqr(forces[k]) <= most**2
            inside[f"grip of {name}"] = [ca.logic_and(most >= 0.0, held)]
    limits = list[Limit]()
    for name, beyond in found:
        limits.append(limit := Limit(beyond, of_force=True))
        limit.add(name, 0.0, np.inf)
        if name in inside:  # once for all sides
            limit.kept = inside[name]
            inside[name] = []
    return limits


def _at_rest(
    servo: LawCore, system: Mechanism, kept: GroundLimits, q: Vector, v: Vector, sdot: Vector
) -> list[Limit]:
    """Loads and moments at rest: an arm that moves outwards stops while it can.

    A robot may brake no faster than it would fall over, which bounds the rate of the approach.
    """
    at, still = ca.SX.sym("q", system.nq), ca.SX.zeros(system.nv)
    found, _ = kept.beyond(system, at, still, still)
    size, pull = robot_size(system), float(np.linalg.norm(system.gravity))
    weight = pull * sum(body.inertia.mass for body in system.bodies)
    beyond = ca.vertcat(ca.SX(0, 1), *(part for _, part in found))
    places = [k for k in range(beyond.numel()) if ca.depends_on(beyond[k], at)]
    names, rate = [found[k][0] for k in places], min(approach(servo), np.sqrt(pull / size))
    moved = Moved.along(servo, at, beyond[places], q, v, sdot)
    return _above_zero(names, moved, 1e-2 * WEAK * weight, rate)


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
    if servo.constraints is None:
        return None
    return read_ground(
        servo.constraints, servo.model.system, f"servo of `{servo.name}`", "constraints"
    )


def read_ground(limits: Any, robot: Any, where: str, table: str) -> GroundLimits | None:
    """Check and read limits of a robot's wheels and supports, if there are any.

    `limits` has the fields `least_load`, `grip`, `tipping` and `compliance` of `Constraints`.
    """
    if all(x is None for x in (limits.least_load, limits.grip, limits.tipping)):
        return None
    robot = as_tree(robot, where, "Omit limits of loads, grip and tipping.")
    wheels, supports = wheel_names(robot), robot.supports
    names = (*wheels, *supports)

    def each(field: str, known: Sequence[str]) -> dict[str, float]:
        given, place = getattr(limits, field), f"{where}, `{table}.{field}`"
        if given is None:
            return {}
        numbers = read_each(place, given, known, "wheel or support", zero=field == "least_load")
        chosen = given if isinstance(given, Mapping) else known
        return {name: float(numbers[known.index(name)]) for name in chosen}

    loads, grips, soft = (
        each(field, known)
        for field, known in (("least_load", names), ("grip", wheels), ("compliance", names))
    )
    place = f"{where}, `{table}`"
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
