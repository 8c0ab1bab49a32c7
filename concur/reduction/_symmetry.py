"""Which joints a robot may be moved by without noticing: symmetry groups of section 4.4.

For each joint k three kinds of motion are looked for in the algebra of its group ``Q_k``:

    conjugated  a in the intersection of ``T Q_k T^-1``, T(q) the pose of the joint frame: moves
                all that the joint carries by one motion of space (AP1)
    left        ``q_k -> exp(varpi) q_k``, which leaves left-trivialised velocities alone, so that
                the kinetic energy is invariant if and only if the mass matrix is (AP2)
    right       ``q_k -> q_k exp(rho)`` at a joint that carries one body, (4.4.32)

Each condition is linear in the motion, with exact derivatives: it is stacked over random
configurations, and its null space is the algebra. A left translation reaches the kinetic
energy through what the joint carries, and the rest of the robot through the twists that the
joint frame can have. Measured against that part alone, no far or heavy base hides a change.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeAlias

import casadi as ca
import numpy as np

from concur.codegen import Array, Evaluator
from concur.errors import DescriptionError, ReductionError
from concur.groups import Subgroup, classify, se3
from concur.reduction._dependents import choose_dependents
from concur.reduction._derivative import along
from concur.reduction._model import ReducedModel
from concur.reduction._symmetry_report import (
    DIRECTION,
    JointSymmetry,
    SymmetryGroup,
    SymmetryReport,
    judged,
)
from concur.robot import Body, Mechanism, Pose, Tree, is_abelian, mass_matrix
from concur.robot.joints import Free

SAMPLES = 12
"""Random configurations at which a group is looked for, and again as many to confirm it."""


def symmetry(
    robot: Mechanism | ReducedModel, samples: int = SAMPLES, tolerance: float = 1e-9
) -> SymmetryReport:
    """Find the symmetry groups of a robot, joint by joint (section 4.4 of the thesis).

    Parameters
    ----------
    robot : Mechanism or ReducedModel
        The robot, or a model of it; then the symmetries are those of its robot.
    samples : int
        Random configurations of the search for a group. The same number of others confirms it.
    tolerance : float
        Relative change up to which something counts as invariant, between 0 and 0.1. The change
        is measured against what the joint carries, per radian or per size of that.

    Returns
    -------
    SymmetryReport
        One row for each joint that can move. Printed, it has the columns "group" (what the
        joint can do), "AP1" (what moves all that it carries as one), "AP2" (left translations
        that keep the kinetic energy), "right" (right translations that do, "-" where the joint
        carries moving joints), "kept" (what of AP2 keeps potential and constraints too),
        "reducible" and "why".

    Raises
    ------
    DescriptionError
        If no robot was given, or `samples` or `tolerance` is out of range.

    Notes
    -----
    An unactuated joint that leaves kinetic energy and potential invariant conserves its
    momentum if rolling admits its motion. If it leaves the constraints invariant too, it can be
    a further stage of the reduction, for the reduced metric and the curvature two-form then are
    invariant as well (section 4.5).
    Where the wheels give a joint's velocity, as that of the base, the joint drops out of the
    equations by the constraints instead, and no momentum is constant (theorem 4.2.4). Symmetries
    in which several joints move in proportion are not looked for.

    Momenta here are those of the joints themselves. On wheels that of the reduced robot, the
    joint's own and what rolls along, can be constant without any symmetry: `conservation` tests
    that one, and `reduce` takes its stages by it.

    See Also
    --------
    conservation : one joint of a reduced robot, with its momentum equation.

    References
    ----------
    Thesis, (4.4.29)-(4.4.32).

    Examples
    --------
    >>> import concur as cc
    >>> report = cc.symmetry(cc.robots.wheel_satellite())
    >>> report["satellite"].kept.name
    'SE(3)'
    >>> report["wheel_x"].reason
    'driven: its momentum changes with the torque'
    """
    mechanism = robot.robot if isinstance(robot, ReducedModel) else robot
    _check(mechanism, samples, tolerance)
    rng = np.random.default_rng(17)
    states = [_state(mechanism, mechanism.random(rng)) for _ in range(2 * samples)]
    start = _state(mechanism, mechanism.neutral())
    search = _Search(mechanism, start, states[:samples], states[samples:], tolerance)
    rows = tuple(search.row(i) for i, body in enumerate(mechanism.bodies) if body.joint.nv)
    return SymmetryReport(mechanism.name, rows, tolerance)


def _check(robot: object, samples: int, tolerance: float) -> None:
    if not isinstance(robot, Mechanism):
        raise DescriptionError(
            "symmetry, `robot`",
            expected="a Mechanism or a reduced model",
            came=f"{type(robot).__name__} {robot!r:.40}",
            cure="Load one with concur.load(path), or take one of concur.robots.",
        )
    if not isinstance(samples, int | np.integer) or samples is True or samples < 1:
        raise DescriptionError(
            "symmetry, `samples`",
            expected="a whole number from 1",
            came=f"{samples!r:.40}",
            cure="Leave it out for the default.",
        )
    if not isinstance(tolerance, float) or not 0.0 < tolerance < 0.1:
        raise DescriptionError(
            "symmetry, `tolerance`",
            expected="a number above 0 and below 0.1",
            came=f"{tolerance!r:.40}",
            cure="Leave it out for the default.",
        )


@dataclass(frozen=True, eq=False)
class _State:
    """A configuration with the quantities that all joints use.

    `frames` are the poses of the joint frames, `carriers` (6, nv) the maps from velocities to
    their twists in their own axes, `turned` the maps from a left translation, in the joint's
    basis, to the joint's velocity.
    """

    q: np.ndarray
    frames: list[np.ndarray]
    carriers: list[np.ndarray]
    turned: list[np.ndarray]


_Measure: TypeAlias = Callable[[_State], np.ndarray]
"""Relative changes at a configuration, one column per direction of the joint: shape (m, d)."""


def _state(robot: Mechanism, q: np.ndarray) -> _State:
    frames, carriers, turned = [], [], []
    for body in robot.bodies:
        placement = body.placement.matrix
        if body.parent is None:
            frame, carrier = placement, np.zeros((6, robot.nv))
        else:
            frame = robot.pose(q, body.parent) @ placement
            carrier = se3.adjoint(se3.inverse(placement)) @ robot.jacobian(q, body.parent)
        moved = se3.inverse(robot.pose(q, body.name)) @ frame
        basis = body.joint.basis
        frames.append(frame)
        carriers.append(carrier)
        turned.append(np.linalg.pinv(basis) @ se3.adjoint(moved) @ basis)
    return _State(q, frames, carriers, turned)


@dataclass(frozen=True, eq=False)
class _Search:
    """The robot with the configurations at which groups are found and confirmed."""

    robot: Mechanism
    start: _State
    found_at: list[_State]
    confirmed_at: list[_State]
    tolerance: float
    _rolling: dict[_State, _Rolling] = field(init=False)
    _dependent: set[int] = field(init=False)

    def __post_init__(self) -> None:
        robot = self.robot
        rolling: dict[_State, _Rolling] = {}
        if robot.wheels:
            change = _derivative(robot, robot.constraints)
            states = (*self.found_at, *self.confirmed_at)
            rolling = {state: _Rolling(robot, change, state) for state in states}
        object.__setattr__(self, "_rolling", rolling)
        object.__setattr__(self, "_dependent", _given_by_wheels(robot) if robot.wheels else set())

    def row(self, index: int) -> JointSymmetry:
        """Look for all groups of one joint."""
        robot, body = self.robot, self.robot.bodies[index]
        carried = _Carried(robot, index, self.found_at)
        start = self.start.frames[index]
        every = np.eye(body.joint.nv)

        left = self._largest(carried, carried.left, every)
        potential, rolling, reaction = self._tests(carried, left=True)
        gravity = self._largest(carried, potential, left.directions)
        wheels = self._largest(carried, rolling, left.directions)
        kept = self._largest(carried, _both(potential, rolling), left.directions)
        conserving = self._largest(carried, reaction, gravity.directions)
        reducing = self._largest(carried, rolling, conserving.directions)
        space = se3.adjoint(start)
        conjugated = self._largest(carried, lambda s: carried.conjugated(s, start), every, space)
        right = own = own_reducing = turned = None
        if carried.extremity:
            found = self._largest(carried, carried.right, every)
            potential, rolling, reaction = self._tests(carried, left=False)
            still = self._largest(carried, _both(potential, reaction), found.directions)
            right, own = found.group, still.group
            own_reducing = self._largest(carried, rolling, still.directions).group
        elif not self._pushed & carried.link:
            turned = self._largest(carried, lambda _: carried.turned_back(), every).group

        base = body.parent is None
        wheel = body.name in {w.body for w in robot.wheels}
        row = JointSymmetry(
            joint=body.name,
            role="base" if base else "wheel" if wheel else "joint",
            driven=body.name in robot.driven_bodies,
            whole=classify(body.joint.basis, length=carried.length),
            conjugated=conjugated.group,
            left=left.group,
            right=right,
            potential=gravity.group,
            constraints=wheels.group,
            kept=kept.group,
            conserving=conserving.group,
            reducing=reducing.group,
            own=own,
            own_reducing=own_reducing,
            turned=turned,
            reducible=False,
            reason="",
            tied=body.name not in robot.driven_bodies and self._tied(body.name),
        )
        given = set(robot.freedoms(body.name)) <= self._dependent
        return judged(row, given, bool(robot.wheels), is_abelian(body.joint), carried.length)

    @cached_property
    def _pushed(self) -> set[str]:
        """Bodies on which motors, thrusters or wheels act."""
        robot = self.robot
        rolling = {i for wheel in robot.wheels for i in robot.path(robot.index(wheel.body))}
        thrust = {drive.body for drive in robot.drives if drive.body is not None}
        return {*robot.driven_bodies, *thrust, *(robot.bodies[i].name for i in rolling)}

    def _tied(self, joint: str) -> bool:
        """Whether others follow from a joint by rolling, and it does not follow from others."""
        span = self.robot.freedoms(joint)
        if not self._dependent or self._dependent & set(span):
            return False
        return any(rolling.blocks(span) for rolling in self._rolling.values())

    def _largest(
        self,
        carried: _Carried,
        measure: _Measure,
        within: np.ndarray,
        frame: np.ndarray | None = None,
    ) -> _Found:
        """Largest algebra within some directions (d, m) that a measure sees no change along.

        What was found at some configurations is confirmed, or made smaller, at others. Should
        the rest not be closed under the bracket, which only a loose tolerance lets happen, the
        worst directions are left out until it is.
        """
        adjoint = np.eye(6) if frame is None else frame
        directions, missed = within, list[float]()
        residual = 0.0
        for states in (self.found_at, self.confirmed_at):
            stack = np.vstack([measure(state) @ directions for state in states])
            stack = np.vstack([stack / np.sqrt(len(states)), np.zeros((directions.shape[1],) * 2)])
            _, values, vectors = np.linalg.svd(stack, full_matrices=False)
            values, vectors = values[::-1], vectors[::-1]
            count = int(np.sum(values <= self.tolerance))
            while not carried.classified(directions @ vectors[:count].T, adjoint).closed:
                count -= 1
            missed += values[count : count + 1].tolist()
            residual = float(values[:count].max(initial=0.0))
            if count < directions.shape[1]:
                directions = directions @ vectors[:count].T
        group = carried.group(directions, adjoint, min(missed, default=None), residual)
        return _Found(directions, group)

    def _tests(self, carried: _Carried, left: bool) -> tuple[_Measure, _Measure, _Measure]:
        """Measures of the change of potential and admitted motions, and of what rolling forbids."""
        robot, still = self.robot, np.zeros(self.robot.nv)
        span = robot.v_slice(carried.name)
        pull = float(np.linalg.norm(robot.gravity)) or 1.0
        size = np.sqrt(carried.mass) * carried.length

        def motions(state: _State) -> np.ndarray:
            own = state.turned[carried.index] if left else np.eye(carried.dim)
            return np.asarray(own / carried.unit)

        def everywhere(state: _State) -> np.ndarray:
            velocities = np.zeros((robot.nv, carried.dim))
            velocities[span] = motions(state)
            return velocities

        def potential(state: _State) -> np.ndarray:
            # At rest the bias is the gradient of the potential.
            slope = robot.bias(state.q, still)[span] @ motions(state)
            return np.asarray(slope / (carried.mass * pull * carried.length))[None, :]

        def rolling(state: _State) -> np.ndarray:
            if not self._rolling:
                return np.zeros((1, carried.dim))
            turns = np.zeros((carried.dim, robot.nv, robot.nv))
            if not left:
                turns[:, span, span] = carried.turns
            return self._rolling[state].turning(everywhere(state), turns)

        def reaction(state: _State) -> np.ndarray:
            if not self._rolling:
                return np.zeros((1, carried.dim))
            return np.asarray(self._rolling[state].blocked(everywhere(state)) / size)

        return potential, rolling, reaction


def _both(one: _Measure, other: _Measure) -> _Measure:
    return lambda state: np.vstack([one(state), other(state)])


@dataclass(frozen=True, eq=False)
class _Found:
    """Directions of a joint (nv, dim), each with its unit, and the group they span."""

    directions: np.ndarray
    group: SymmetryGroup


class _Carried:
    """A joint with all bodies that it carries, on a joint frame that moves freely.

    Its mass matrix has the twist of the joint frame in front. A unit of a direction of the joint
    is one radian or, for translations, the radius of gyration about the joint frame: `unit` is
    the size of the basis in that unit.
    """

    def __init__(self, robot: Mechanism, index: int, states: Sequence[_State]) -> None:
        self.index, self.name = index, robot.bodies[index].name
        self.basis = robot.bodies[index].joint.basis
        self.dim = self.basis.shape[1]
        carried = [i for i in range(len(robot.bodies)) if index in robot.path(i)]
        self.extremity = all(robot.bodies[i].joint.nv == 0 for i in carried if i != index)
        self._places = np.concatenate(
            [np.arange(robot.nq)[robot.q_slice(robot.bodies[i].name)] for i in carried]
        )
        self._welded = robot.welded(index)
        self._hung = [
            body
            for body in robot.bodies
            if body.joint.nv and body.parent and robot.index(body.parent) in self._welded
        ]
        self._robot = robot
        self._tree = _detached(robot, carried)
        self._own = self._tree.v_slice(self.name)
        q = ca.SX.sym("q", self._tree.nq)
        mass = mass_matrix(self._tree, q)
        size = (self._tree.nv, self._tree.nv)
        self._mass = Evaluator(ca.Function("mass", [q], [mass]), [size], self.name)
        self._change = _derivative(self._tree, lambda x: mass_matrix(self._tree, x))

        seen = np.array([self._mass(self._configuration(state)) for state in states])
        self.mass = float(seen[0, 0, 0])
        gyration = np.trace(seen[:, 3:6, 3:6].mean(axis=0)) / 2
        self.length = float(np.sqrt(gyration / self.mass)) if gyration > 0.0 else 1.0
        self._twist_scale = np.repeat([1.0 / self.length, 1.0], 3)
        self.unit = np.linalg.norm(self._twist_scale[:, None] * self.basis, axis=0)
        self._scale = np.sqrt(np.diagonal(seen, axis1=1, axis2=2).mean(axis=0))[6:]
        brackets = [np.linalg.pinv(self.basis) @ se3.ad(x) @ self.basis for x in self.basis.T]
        self.turns = np.array(brackets) / self.unit[:, None, None]  # ad of the unit directions

    def _configuration(self, state: _State) -> np.ndarray:
        return np.concatenate([Free().neutral, state.q[self._places]])

    def _weights(self, state: _State) -> np.ndarray:
        """Velocities of unit size: twists that the joint frame can have, and all joints."""
        reach = self._twist_scale[:, None] * state.carriers[self.index]
        axes, sizes, _ = np.linalg.svd(reach, full_matrices=False)
        axes = axes[:, sizes > 1e-9 * sizes.max(initial=0.0)] if sizes.any() else axes[:, :0]
        size = np.sqrt(self.mass) * self.length
        rank = axes.shape[1]
        weights = np.zeros((self._tree.nv, rank + len(self._scale)))
        weights[:6, :rank] = axes / self._twist_scale[:, None] / size
        weights[6:, rank:] = np.diag(1.0 / self._scale)
        return weights

    def _changes(self, state: _State, velocities: np.ndarray) -> np.ndarray:
        """Derivatives of the mass matrix along velocities (d, d) of the joint: (d, n, n)."""
        q, v = self._configuration(state), np.zeros(self._tree.nv)
        changes: list[np.ndarray] = []
        for own in velocities.T:
            v[self._own] = own
            changes.append(self._change(q, v))
        return np.array(changes)

    def left(self, state: _State) -> np.ndarray:
        """Change of the kinetic energy under left translations, (4.4.30)."""
        weights = self._weights(state)
        changes = self._changes(state, state.turned[self.index] / self.unit)
        return np.asarray((weights.T @ changes @ weights).reshape(self.dim, -1).T)

    def right(self, state: _State) -> np.ndarray:
        """Change of the kinetic energy under right translations, (4.4.32)."""
        weights, own = self._weights(state), self._own
        changes = self._changes(state, np.diag(1.0 / self.unit))
        mass: np.ndarray = self._mass(self._configuration(state))
        for change, turn in zip(changes, self.turns, strict=True):
            moved = np.zeros_like(mass)
            moved[:, own] = mass[:, own] @ turn
            change -= moved + moved.T
        return np.asarray((weights.T @ changes @ weights).reshape(self.dim, -1).T)

    @property
    def link(self) -> set[str]:
        """The bodies that move as one with the joint, and those on joints that these carry."""
        return {*(self._robot.bodies[k].name for k in self._welded), *(b.name for b in self._hung)}

    def turned_back(self) -> np.ndarray:
        """Change of the link's inertia under right translations, and what joints on it miss.

        If the joints that the link carries turn back, nothing but the link moves.
        """
        bodies, sizes = self._robot.bodies, 1.0 / self._twist_scale
        poses = {bodies[k].name: pose for k, pose in self._welded.items()}
        inertia = np.zeros((6, 6))
        for name, pose in poses.items():
            back = se3.adjoint(se3.inverse(pose))
            inertia += back.T @ bodies[self._robot.index(name)].inertia.matrix @ back
        columns = []
        for twist in (self.basis / self.unit).T:
            change = inertia @ se3.ad(twist)
            change = sizes[:, None] * (change + change.T) * sizes / (self.mass * self.length**2)
            missed = [change.ravel()]
            for body in self._hung:
                place = se3.inverse(poses[str(body.parent)] @ body.placement.matrix)
                seen = self._twist_scale * (se3.adjoint(place) @ twist)
                basis = self._twist_scale[:, None] * body.joint.basis
                missed.append(seen - basis @ (np.linalg.pinv(basis) @ seen))
            columns.append(np.concatenate(missed))
        return np.array(columns).T

    def conjugated(self, state: _State, start: np.ndarray) -> np.ndarray:
        """Part of the motions, fixed in space as they stand at the start, that leaves the joint."""
        back = se3.adjoint(se3.inverse(state.frames[self.index]) @ start)
        unit = self._twist_scale[:, None] * self.basis / self.unit
        seen = self._twist_scale[:, None] * (back @ self.basis) / self.unit
        return np.asarray(seen - unit @ (unit.T @ seen))

    def classified(self, directions: np.ndarray, adjoint: np.ndarray) -> Subgroup:
        """Group that some directions span, seen from another frame."""
        twists = adjoint @ (self.basis / self.unit) @ directions
        return classify(twists, DIRECTION, self.length)

    def group(
        self, directions: np.ndarray, adjoint: np.ndarray, violation: float | None, residual: float
    ) -> SymmetryGroup:
        """Group that some directions span, with generators as plain as possible."""
        group = self.classified(directions, adjoint)
        if directions.shape[1] == self.dim:
            coordinates = np.eye(self.dim)
        else:
            # The nearest twists of the span to the canonical ones: no digit is lost.
            seen = np.linalg.lstsq(adjoint @ self.basis, group.basis, rcond=None)[0]
            plain = directions @ (directions.T @ (self.unit[:, None] * seen))
            coordinates = plain / self.unit[:, None]
        twists = adjoint @ self.basis @ coordinates
        return SymmetryGroup(group, coordinates, twists, violation, residual)


class _Rolling:
    """Rolling constraints at one configuration, in the metric of the kinetic energy."""

    def __init__(self, robot: Mechanism, change: Evaluator, state: _State) -> None:
        self.state, self._change = state, change
        self._root = np.linalg.cholesky(robot.mass_matrix(state.q)).T
        self._rows = robot.constraints(state.q)
        rows = np.linalg.solve(self._root.T, self._rows.T).T
        _, sizes, axes = np.linalg.svd(rows)
        self._forbidden, self._admitted = axes[: len(sizes)], axes[len(sizes) :]
        self._solve = np.linalg.pinv(rows)

    def turning(self, velocities: np.ndarray, turns: np.ndarray) -> np.ndarray:
        """Angles by which the admitted velocities turn along motions, a column for each.

        `turns` are the maps from velocities to their change by the motions, with a minus sign.
        """
        turned = []
        for v, turn in zip(velocities.T, turns, strict=True):
            change = self._change(self.state.q, v) - self._rows @ turn
            scaled = np.linalg.solve(self._root.T, change.T).T
            turned.append((self._solve @ scaled @ self._admitted.T).ravel())
        return np.array(turned).T

    def blocks(self, freedoms: Sequence[int]) -> bool:
        """Whether rolling constrains some freedoms."""
        return bool(np.abs(self._rows[:, list(freedoms)]).max(initial=0.0) > 1e-12)

    def blocked(self, velocities: np.ndarray) -> np.ndarray:
        """Part of velocities that rolling forbids."""
        return np.asarray(self._forbidden @ (self._root @ velocities))


def _derivative(tree: Tree, function: Callable[[Array], Array]) -> Evaluator:
    """Exact derivative of a matrix of the configuration, called with q and a velocity."""
    q, v = ca.SX.sym("q", tree.nq), ca.SX.sym("v", tree.nv)
    change = along(function, q, tree.rate(q, v))
    return Evaluator(ca.Function("change", [q, v], [change]), [change.shape], tree.name)


def _detached(robot: Mechanism, carried: list[int]) -> Tree:
    """Tree of some bodies whose first hangs on a massless frame that moves freely."""
    first, *others = (robot.bodies[i] for i in carried)
    root = "frame of " + first.name
    while root in {body.name for body in robot.bodies}:
        root += "'"
    first = replace(first, parent=root, placement=Pose())
    return Tree(robot.name, [Body(root, Free()), first, *others], actuated=())


def _given_by_wheels(robot: Mechanism) -> set[int]:
    """Velocities that follow from the others by rolling, as `reduce` takes them."""
    rng = np.random.default_rng(2)
    try:
        samples = [robot.neutral(), *(robot.random(rng) for _ in range(SAMPLES))]
        return set(choose_dependents(robot, samples))
    except ReductionError:
        return set()
