"""The one search for momenta of joints that stay constant.

The momentum of a joint is ``p = X^T M v`` along fields X: on wheels the horizontal lift of its
velocities, along which the reactions do no work, otherwise its velocities alone. Its rate

    pdot = Xdot^T M v - X^T (bias - Mdot v) + X^T B u

needs no acceleration. A generator w of the joint's group is fixed in the frame to which the joint
attaches ("parent": a left translation, which moves the body by ``Ad_n^-1 w``) or in its body
("body": a right translation). Rates are linear in w, so those of many states are stacked, and the
null space is the algebra whose momenta are constant (Proposition 4.2.12 of the thesis).

A third view, "link", is the momentum of a link alone: if the joints that it carries turn back when
it is moved by w in its axes, nothing but the link moves. That of a round link on a ball joint,
which carries others on ball joints on its axis, is constant; that of a link on a cable is zero.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from numbers import Real
from typing import Any

import casadi as ca
import numpy as np

from concur.codegen import Array, Evaluator, Vector, constant
from concur.errors import DescriptionError
from concur.groups import classify, se3
from concur.reduction._derivative import along
from concur.reduction._model import ReducedModel
from concur.robot import Mechanism, control_velocities, joint_place, joint_places, mass_times
from concur.robot.joints import Joint
from concur.system import System

SAMPLES = 24
"""Random states at which constant momenta are looked for."""

ROUNDING = 1e-9
"""Rate of a momentum, relative to the terms that have to cancel in it, that counts as zero."""

DEPENDENT = 1e-6
"""Share of a momentum that a velocity must have at least to be found from it."""

VIEWS = ("body", "link", "parent")
"""Axes in which generators are fixed. In the body, velocities follow from momenta everywhere."""

_ROUND = 1e-9  # generators, each coordinate by its size, that differ by less are the same
_LOST = 1e-15  # part of the terms of a sum below which it is zero

Generators = tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class ConstantMomentum:
    """A momentum of a joint that stays constant, and the velocities that follow from it.

    Parameters
    ----------
    joint : str
        The joint's body.
    seen_from : str
        Axes in which it is constant: "parent", "body" or "link".
    generators : tuple of tuple of float
        Motions that it belongs to, each in the joint's basis.
    rate : float
        Largest rate, relative to the terms that have to cancel.
    follows : tuple of int
        Indices in v of the velocities that follow from it.
    everywhere : bool
        Whether they do at all configurations.
    """

    joint: str
    seen_from: str
    generators: Generators
    rate: float = 0.0
    follows: tuple[int, ...] = ()
    everywhere: bool = True


@dataclass(frozen=True)
class Terms:
    """Rate of a joint's momentum in the axes of its body at a state, and what makes it.

    `rate` is that seen from the body, `turned` the part of it by the turn of the body, `pull` the
    slope of the potential, `acting` the velocities of the controls (nu, nn), `size` that of the
    terms that have to cancel, and `frame` the map Ad_n^-1 from "parent" to "body".
    """

    rate: np.ndarray
    turned: np.ndarray
    pull: np.ndarray
    acting: np.ndarray
    size: np.ndarray
    frame: np.ndarray


class Momenta:
    """Momenta of the joints of a system along fields, with their rates, as one graph of q and v."""

    def __init__(self, robot: System, fields: Callable[[Array], Array], shape: Sequence[int]):
        self.robot, self.shape = robot, list(shape)
        self.places = joint_places(robot)
        q, v = ca.SX.sym("q", robot.nq), ca.SX.sym("v", robot.nv)
        columns, bias = fields(q), robot.bias(q, v)
        changes = along(lambda x: fields(x).T @ _momentum(robot, x, v), q, robot.rate(q, v))
        weights = columns.T @ robot.mass_matrix(q)
        results = [
            weights @ v,
            changes - columns.T @ bias,
            columns.T @ robot.bias(q, ca.SX(robot.nv, 1)),
            # Speeds are of order one: where no force acts, momentum per second is the measure.
            ca.fabs(changes) + ca.fabs(columns.T) @ ca.fabs(bias) + ca.fabs(weights) @ ca.fabs(v),
            control_velocities(robot, q, columns),
            *[carrier(place.joint, q[place.entries, :]) for place in self.places],
        ]
        dense = [ca.densify(ca.SX(part)) for part in results]
        graph = ca.Function("momenta", [q, v], dense, {"cse": True})
        shapes = [part.shape if k > 3 else (part.shape[0],) for k, part in enumerate(dense)]
        self._graph = Evaluator(graph, shapes, robot.name)

    def at(self, joint: str, q: np.ndarray, v: np.ndarray) -> Terms:
        """Terms of the momentum of a joint at a state."""
        index = [place.name for place in self.places].index(joint)
        rows, basis = self.places[index].freedoms, self.places[index].joint.basis
        places = [self.shape.index(i) for i in rows]
        momenta, rates, pulls, sizes, acting, *frames = self._graph(q, v)
        # The adjoint action of the joint's own velocity, ad_xi.
        own = np.linalg.pinv(basis) @ se3.ad(basis @ v[rows]) @ basis
        return Terms(
            rates[places],
            own.T @ momenta[places],
            pulls[places],
            acting[:, places],
            sizes[places],
            frames[index],
        )


class Search:
    """The search on a reduced robot: its random states, and the constant momenta of its joints."""

    def __init__(self, model: ReducedModel) -> None:
        self.model, self.robot = model, model.system
        self.momenta = Momenta(model.system, model.first.momentum_fields, model.first.shape)

    def states(self, seed: int, count: int) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Draw configurations far from where there is no lift, velocities and unit efforts."""
        rng, model = np.random.default_rng(seed), self.model
        best = _regular(model, rng, count)
        return [
            (q, model.velocity(q, rng.uniform(-1.0, 1.0, model.ns)), _efforts(model, q))
            for q in best
        ]

    @cached_property
    def _states(self) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        return self.states(29, SAMPLES)

    def found(self, joint: str, tolerance: float = ROUNDING) -> list[ConstantMomentum]:
        """Constant momenta of an undriven joint, the largest first: at most one per view."""
        robot, place = self.robot, joint_place(self.robot, joint)
        kind = place.joint
        if acting_on(robot, place.freedoms):
            return []
        sides = ("parent", "body") if kind.nv > 1 else ("parent",)
        rates = {view: list[np.ndarray]() for view in sides}
        sizes = {view: list[np.ndarray]() for view in sides}
        for q, v, efforts in self._states:
            terms = self.momenta.at(joint, q, v)
            for view in sides:
                moved = terms.frame if view == "parent" else np.eye(kind.nv)
                rate = terms.rate - terms.turned if view == "parent" else terms.rate
                pushes = efforts[:, None] * terms.acting
                rates[view].append(np.vstack([rate, pushes]) @ moved)
                sizes[view].append(np.tile(terms.size @ np.abs(moved), (len(pushes) + 1, 1)))
        parts = []
        for view in sides:
            part = _part(kind, np.vstack(rates[view]), np.vstack(sizes[view]), tolerance)
            if part is not None:
                parts.append(ConstantMomentum(joint, view, *part))
        if len(parts) == 2 and _one(kind, *parts):
            parts.pop()
        turned = link_symmetry(robot, joint, tolerance) if isinstance(robot, Mechanism) else ()
        if turned:
            parts.append(ConstantMomentum(joint, "link", turned))
        # Of a whole joint that of the parent is the momentum map; a part is best fixed in the body.
        order = {part: VIEWS.index(part.seen_from) for part in parts}
        order |= {part: -order[part] for part in parts if is_whole(robot, part)}
        return sorted(parts, key=lambda part: (-len(part.generators), order[part]))

    def stages(
        self, joint: str, tolerance: float, used: Collection[tuple[str, Generators]] = ()
    ) -> list[ConstantMomentum]:
        """Constant momenta of a joint that no stage determines yet, with what follows from them."""
        chosen = []
        for part in self.found(joint, tolerance):
            if (part.seen_from, part.generators) not in used:
                chosen.append(_with_follows(self.model, part))
        return [part for part in chosen if part is not None]


def read_tolerance(tolerance: Any, where: str, most: float = 1.0) -> float:
    """Read a tolerance between 0 and a limit."""
    given = isinstance(tolerance, Real) and not isinstance(tolerance, bool)
    if not given or not 0.0 < tolerance < most:
        raise DescriptionError(
            f"{where}, `tolerance`",
            expected=f"a number above 0 and below {most:g}",
            came=f"{tolerance!r:.40}",
            cure="Leave it out for the default.",
        )
    return float(tolerance)


def is_whole(robot: System, part: ConstantMomentum) -> bool:
    """Whether it is the momentum of the joint's whole group."""
    joint = joint_place(robot, part.joint).joint
    return part.seen_from != "link" and len(part.generators) == joint.nv


def acting_on(robot: Any, freedoms: Sequence[int]) -> list[int]:
    """Controls that act on some freedoms, perhaps with others."""
    acting = ca.sparsify(ca.SX(robot.actuation(ca.SX.sym("q", robot.nq))))
    return [k for k in range(robot.nu) if acting[list(freedoms), k].nnz()]


def _momentum(robot: System, q: Array, v: Array) -> Array:
    """Momenta M v."""
    if isinstance(robot, Mechanism):
        return mass_times(robot, q, v)
    return robot.mass_matrix(q) @ v


def _regular(model: ReducedModel, rng: np.random.Generator, count: int) -> list[np.ndarray]:
    """Draw configurations far from where there is no lift: the best quarter of them."""
    drawn = [model.system.random(rng) for _ in range(4 * count)]
    return sorted(drawn, key=lambda q: -float(model.regularity(q)))[:count]


def _efforts(model: ReducedModel, q: np.ndarray) -> np.ndarray:
    """Force of each control that alone accelerates its own motion by one, shape (nu,)."""
    inputs = model.input_matrix(q)
    mobility = np.einsum("ik,ik->k", inputs, np.linalg.solve(model.mass_matrix(q), inputs))
    return np.array([1.0 / m if m > 0.0 else 0.0 for m in mobility])


# --- motions of a joint --------------------------------------------------------------------------


def carrier(joint: Joint, q: Vector) -> Array:
    """Motions fixed in the frame to which a joint attaches, in its body's axes: Ad_n^-1."""
    rotation, translation = joint.pose(q)
    back = ca.SX(6, 6)
    back[:3, :3] = back[3:, 3:] = rotation.T
    back[:3, 3:] = -rotation.T @ ca.skew(translation)
    return ca.sparsify(constant(np.linalg.pinv(joint.basis)) @ back @ constant(joint.basis))


def in_body(robot: System, joint: str, generators: Generators, seen_from: str, q: Vector) -> Array:
    """Generators of a joint, fixed in "parent" or "body", in its body's axes, as columns."""
    columns = constant(np.array(generators).T)
    if seen_from == "body":
        return columns
    place = joint_place(robot, joint)
    return carrier(place.joint, q[place.entries]) @ columns


def link_rows(robot: Mechanism, joint: str, generators: Generators) -> np.ndarray:
    """Momenta of a link along generators in its axes, as rows on its twist, shape (k, 6)."""
    basis = robot.bodies[robot.index(joint)].joint.basis @ np.array(generators).T
    inertia, size = _link_inertia(robot, robot.index(joint))
    rows = basis.T @ inertia
    return np.where(np.abs(rows) <= _LOST * (np.abs(basis.T) @ size), 0.0, rows)


def _link_inertia(robot: Mechanism, index: int) -> tuple[np.ndarray, np.ndarray]:
    """Inertia of a link on twists of its body (6, 6), and the size of the terms of its sum."""
    inertias, inertia, size = robot.inertia_matrices, np.zeros((6, 6)), np.zeros((6, 6))
    for k, pose in robot.welded(index).items():
        back = se3.adjoint(se3.inverse(pose))
        inertia += back.T @ inertias[k] @ back
        size += np.abs(back.T) @ np.abs(inertias[k]) @ np.abs(back)
    return inertia, size


def momentum_rows(
    model: ReducedModel, joint: str, generators: Generators, seen_from: str, q: Vector
) -> tuple[Array, Array]:
    """Momenta of a joint along generators, as rows on v, and the metric of the generators."""
    robot, first = model.system, model.first
    place = joint_place(robot, joint)
    if seen_from == "link":
        rows = link_rows(model.robot, joint, generators)
        basis = place.joint.basis @ np.array(generators).T
        return constant(rows) @ model.robot.jacobian(q, joint), constant(rows @ basis)
    places = [first.shape.index(i) for i in place.freedoms]
    turned = in_body(robot, joint, generators, seen_from, q)
    fields = first.momentum_fields(q)[:, places] @ turned
    metric = turned.T @ first.mass_matrix(q)[places, places] @ turned
    return fields.T @ robot.mass_matrix(q), metric


def link_symmetry(robot: Mechanism, joint: str, tolerance: float) -> Generators:
    """Motions of a link, in its axes, that change nothing if the joints it carries turn back.

    They keep the inertia of the link, and the joints that it carries can follow them. None where
    a motor, thruster, wheel or spring acts on the link or on what it carries, or where it carries
    nothing.
    """
    index = robot.index(joint)
    kind, welded = robot.bodies[index].joint, robot.welded(index)
    moving = [body for body in robot.bodies if body.joint.nv and body.parent]
    hung = [body for body in moving if robot.index(str(body.parent)) in welded]
    link = {*(robot.bodies[k].name for k in welded), *(body.name for body in hung)}
    if not hung or link & _pushed(robot):
        return ()
    inertia, _ = _link_inertia(robot, index)
    mass = inertia[0, 0]
    gyration = np.trace(inertia[3:, 3:]) / 2
    length = float(np.sqrt(gyration / mass)) if gyration > 0.0 and mass > 0.0 else 1.0
    sizes = np.repeat([length, 1.0], 3)
    columns = []
    for twist in kind.basis.T:
        change = inertia @ se3.ad(twist)
        scale = sizes[:, None] * sizes * max(mass, np.finfo(float).tiny) ** -1 / length**2
        missed = [((change + change.T) * scale).ravel()]
        for body in hung:
            at = se3.inverse(welded[robot.index(str(body.parent))] @ body.placement.matrix)
            seen = (se3.adjoint(at) @ twist) / sizes
            basis = body.joint.basis / sizes[:, None]
            missed.append(seen - basis @ (np.linalg.pinv(basis) @ seen))
        columns.append(np.concatenate(missed))
    rows = np.array(columns).T
    unit = np.linalg.norm(kind.basis / sizes[:, None], axis=0)
    found = _part(kind, rows, np.broadcast_to(unit, rows.shape), tolerance)
    return found[0] if found else ()


def _pushed(robot: Mechanism) -> set[str]:
    """Bodies on which motors, thrusters, wheels or springs act."""
    rolling = {i for wheel in robot.wheels for i in robot.path(robot.index(wheel.body))}
    thrust = {motor.body for motor in robot.motors if motor.body is not None}
    joints = {spring.joint for spring in robot.springs}
    sprung = {b.name for b in robot.bodies if joints & {*b.of_each(b.joint.freedom_names)}}
    sprung |= {str(end) for spring in robot.springs for end in (spring.body, spring.other) if end}
    return {*robot.driven_bodies, *thrust, *sprung, *(robot.bodies[i].name for i in rolling)}


# --- null spaces ---------------------------------------------------------------------------------


def _part(
    kind: Joint, rates: np.ndarray, sizes: np.ndarray, tolerance: float
) -> tuple[Generators, float] | None:
    """Null space of the rates (m, nv), judged row by row against what has to cancel."""
    size = np.sqrt((sizes**2).mean(axis=0))
    if not size.all():  # a body without inertia keeps nothing
        return None
    scaled = rates / size

    def violation(directions: np.ndarray) -> float:
        terms = (sizes / size) @ np.abs(directions)
        terms = np.maximum(terms, np.sqrt((terms**2).mean(axis=0)))  # not where nothing moves
        return float((np.abs(scaled @ directions) / terms).max())

    _, _, axes = np.linalg.svd(scaled)
    dims = [k for k in range(1, kind.nv + 1) if violation(axes[-k:].T) <= tolerance]
    if not dims:
        return None
    if max(dims) == kind.nv:
        every = np.diag(size)
        return _rows(np.eye(kind.nv)), violation(every / np.linalg.norm(every, axis=0))
    plain = plain_span(axes[-max(dims) :], max(_ROUND, 10.0 * tolerance))
    if violation(plain.T) > tolerance:
        plain = plain_span(axes[-max(dims) :], 0.0)
    generators = plain.T / size[:, None]
    if not classify(kind.basis @ generators).closed:
        return None
    generators = generators / _unit(kind.basis @ generators)
    ones = np.abs(np.abs(generators) - 1.0) < 1e-14
    generators[ones] = np.sign(generators[ones])
    return _rows(generators), violation(generators * size[:, None])


def plain_span(rows: np.ndarray, tolerance: float) -> np.ndarray:
    """The same span in reduced echelon form, what is zero but for rounding as zero."""
    rows = rows.copy()
    for k in range(len(rows)):
        i, j = np.unravel_index(np.abs(rows[k:]).argmax(), rows[k:].shape)
        rows[[k, k + i]] = rows[[k + i, k]]
        rows[k] /= rows[k, j]
        for other in range(len(rows)):
            if other != k:
                rows[other] -= rows[other, j] * rows[k]
                rows[other, j] = 0.0
    rows[np.abs(rows) <= tolerance] = 0.0
    return rows[np.argsort([int(np.flatnonzero(row)[0]) for row in rows])]


def _rows(generators: np.ndarray) -> Generators:
    return tuple(tuple(column) for column in generators.T.tolist())


def _unit(twists: np.ndarray) -> np.ndarray:
    """Speeds of twists: of their turning if they turn; their largest part made positive."""
    turning, moving = np.linalg.norm(twists[3:], axis=0), np.linalg.norm(twists[:3], axis=0)
    turns = turning > 0.0
    part = np.where(turns, twists[3:], twists[:3])
    sign = np.sign(np.take_along_axis(part, np.abs(part).argmax(axis=0)[None], axis=0)[0])
    return np.asarray(sign * np.where(turns, turning, moving))


def _one(joint: Joint, left: ConstantMomentum, right: ConstantMomentum) -> bool:
    """Whether two momenta are one, seen from both sides: their motions commute with all others."""
    ours, theirs = np.array(left.generators), np.array(right.generators)
    if ours.shape != theirs.shape or not np.allclose(ours, theirs, rtol=0, atol=1e-9):
        return False
    basis = ca.SX.eye(joint.nv)
    brackets = [joint.bracket(basis[:, i], constant(w)) for i in range(joint.nv) for w in ours]
    return all(ca.sparsify(ca.SX(turned)).nnz() == 0 for turned in brackets)


# --- velocities that follow ----------------------------------------------------------------------


def _with_follows(model: ReducedModel, part: ConstantMomentum) -> ConstantMomentum | None:
    """Choose the velocities of a joint that follow best from a part; None if it is determined."""
    robot, dim = model.system, len(part.generators)
    rows = joint_place(robot, part.joint).freedoms
    if is_whole(robot, part) and set(rows) <= set(model.shape):
        return replace(part, follows=tuple(rows))
    own = [i for i in rows if i in model.shape]
    momenta = _pivots(model, part)
    drawn = _regular(model, np.random.default_rng(31), SAMPLES)
    pivots: dict[tuple[int, ...], list[float]] = {c: [] for c in combinations(own, dim)}
    for q in (robot.neutral(), *drawn):
        part_of, metric, whole = (np.array(result) for result in momenta(q))
        exists = np.isfinite(metric).all() and np.isfinite(part_of).all()
        for choice, values in pivots.items():
            if not exists:  # the stage before has no lift there
                values.append(0.0)
                continue
            at = [model.shape.index(i) for i in choice]
            size = np.linalg.det(whole) * np.linalg.det(metric[np.ix_(at, at)])
            values.append(float(np.linalg.det(part_of[:, at]) / np.sqrt(size)))
    best: tuple[tuple[float, ...], ConstantMomentum] | None = None
    for choice, values in pivots.items():
        sizes = np.abs(values)
        one_sign = abs(np.sum(np.sign(values))) == len(values)
        everywhere = bool(one_sign and sizes.min() > 1e-3)
        rank = (float(everywhere), sizes.min() if everywhere else sizes[0], sizes.mean())
        rounded = tuple(round(float(x), 6) for x in rank)
        if sizes.max() > DEPENDENT and (best is None or rounded > best[0]):
            best = rounded, replace(part, follows=choice, everywhere=everywhere)
    return None if best is None else best[1]


def _pivots(model: ReducedModel, part: ConstantMomentum) -> ca.Function:
    """Momenta of a part per shape velocity, the metric, and that of the generators."""
    q = ca.SX.sym("q", model.nq)
    weights, own = momentum_rows(model, part.joint, part.generators, part.seen_from, q)
    results = [weights @ model.lift(q)[0], model.mass_matrix(q), own]
    return ca.Function("pivots", [q], [ca.densify(result) for result in results], {"cse": True})
