"""Which joints a robot may be moved by without noticing: symmetry groups of section 4.4.

For each joint k three kinds of motion are looked for in the algebra of its group ``Q_k``:

    conjugated  a in the intersection of ``T Q_k T^-1``, T(q) the pose of the joint frame: moves
                all that the joint carries by one motion of space (AP1)
    left        ``q_k -> exp(varpi) q_k``, which leaves left-trivialised velocities alone, so that
                the kinetic energy is invariant if and only if the mass matrix is (AP2)
    right       ``q_k -> q_k exp(rho)`` at a joint that carries one body, (4.4.32)

Each condition is linear in the motion: it is stacked over random states, and its null space is
the algebra. The change of kinetic energy and potential along a motion is the rate of its momentum,
term by term, as in the search for constant momenta. A left translation reaches the kinetic energy
through what the joint carries, and the rest of the robot through the twists that the joint frame
can have. In velocities of unit size for that part alone, no far or heavy base hides a change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import TypeAlias

import casadi as ca
import numpy as np

from concur.codegen import Evaluator
from concur.errors import DescriptionError, ReductionError
from concur.groups import Subgroup, classify, se3
from concur.reduction._constraints import WheelReduction
from concur.reduction._dependents import choose_dependents
from concur.reduction._derivative import along
from concur.reduction._model import ReducedModel
from concur.reduction._search import (
    ConstantMomentum,
    Generators,
    Momenta,
    Search,
    link_symmetry,
    read_tolerance,
)
from concur.reduction._symmetry_report import JointSymmetry, SymmetryGroup, SymmetryReport
from concur.robot import Mechanism, damping_forces, is_abelian
from concur.robot.joints import Joint

DIRECTION = 1e-6
"""Axes and twists closer than this (rad, lengths of the part) are the same."""

SAMPLES = 12
"""Random configurations at which a group is looked for, and again as many to confirm it."""

VELOCITIES = 4
"""Random velocities at each of them."""


def symmetry(
    robot: Mechanism | ReducedModel, samples: int = SAMPLES, tolerance: float = 1e-9
) -> SymmetryReport:
    """Find the symmetry groups of a robot, joint by joint (section 4.4 of the thesis).

    Parameters
    ----------
    robot : Mechanism or ReducedModel
        The robot, or a model of it; then the symmetries are those of its robot.
    samples : int
        Random configurations of the search for a group, with lengths up to the robot's size. The
        same number of others confirms it.
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
    momentum if rolling admits its motion, and can be a further stage of the reduction (section
    4.5): the momenta here are those that `reduce` finds.
    Where the wheels give a joint's velocity, as that of the base, the joint drops out of the
    equations by the constraints instead, and no momentum is constant (theorem 4.2.4). On wheels the
    momentum of a joint with what rolls along can be constant without any symmetry; it is listed
    too. Symmetries in which several joints move in proportion are not looked for.

    See Also
    --------
    conservation : one joint of a reduced robot, with its momentum equation.

    References
    ----------
    Thesis, Proposition 3.2.3, (4.4.29)-(4.4.32).

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
    states = [_State(mechanism, _drawn(mechanism, rng)) for _ in range(2 * samples)]
    start = _State(mechanism, mechanism.neutral())
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
    read_tolerance(tolerance, "symmetry", 0.1)


def _drawn(robot: Mechanism, rng: np.random.Generator) -> np.ndarray:
    """Draw a configuration whose lengths are of the robot's size, so that no unit matters."""
    lengths = [unit == "m" for body in robot.bodies for unit in body.joint.coordinate_units]
    return robot.coupled(robot.random(rng) * np.where(lengths, robot.size, 1.0))


class _State:
    """A configuration with poses of bodies and joint frames, and what carries the frames.

    `carriers` (6, nv) are the maps from velocities to the twists of the joint frames in their own
    axes, `turned` the maps from a left translation, in the joint's basis, to the joint's velocity.
    """

    def __init__(self, robot: Mechanism, q: np.ndarray) -> None:
        self.q = q
        self.poses = [robot.pose(q, body.name) for body in robot.bodies]
        self.frames, self.carriers, self.turned = [], [], []
        for body, pose in zip(robot.bodies, self.poses, strict=True):
            frame, carrier = body.placement.matrix, np.zeros((6, robot.nv))
            if body.parent is not None:
                carrier = se3.adjoint(se3.inverse(frame)) @ robot.jacobian(q, body.parent)
                frame = self.poses[robot.index(body.parent)] @ frame
            basis, moved = body.joint.basis, se3.inverse(pose) @ frame
            self.frames.append(frame)
            self.carriers.append(carrier)
            self.turned.append(np.linalg.pinv(basis) @ se3.adjoint(moved) @ basis)


_Measure: TypeAlias = Callable[[_State], np.ndarray]
"""Relative changes at a configuration, one column per direction of the joint: shape (m, d)."""


class _Search:
    """The robot with the configurations at which groups are found and confirmed."""

    def __init__(
        self,
        robot: Mechanism,
        start: _State,
        found_at: list[_State],
        confirmed_at: list[_State],
        tolerance: float,
    ) -> None:
        self.robot, self.start, self.tolerance = robot, start, tolerance
        self.found_at, self.confirmed_at = found_at, confirmed_at
        # Kinetic energy alone: however strong other forces are, they leave no rounding.
        weightless = replace(robot, gravity=(0.0, 0.0, 0.0), springs=())
        self.momenta = Momenta(weightless, lambda q: ca.SX.eye(robot.nv), range(robot.nv))
        q, w = ca.SX.sym("q", robot.nq), ca.SX.sym("w", robot.nv)
        forces = ca.densify(ca.jacobian(damping_forces(robot, q, w), w))
        self.damping = ca.Function("damping", [q], [forces])
        self.rolling: dict[_State, _Rolling] = {}
        if robot.nf:
            change = _derivative(robot)
            self.rolling = {s: _Rolling(robot, change, s.q) for s in (*found_at, *confirmed_at)}

    @cached_property
    def dependent(self) -> set[int]:
        """Velocities that follow from the others by rolling, as `reduce` takes them."""
        if not self.robot.wheels:
            return set(self.robot.followers)
        rng = np.random.default_rng(2)
        samples = [self.robot.neutral(), *(self.robot.random(rng) for _ in range(SAMPLES))]
        try:
            return set(choose_dependents(self.robot, samples))
        except ReductionError:
            return set()

    @cached_property
    def rolling_search(self) -> Search:
        """Search for momenta of joints with what rolls along."""
        dependent = tuple(sorted(self.dependent))
        shape = tuple(i for i in range(self.robot.nv) if i not in dependent)
        return Search(WheelReduction(self.robot, "constrained", shape, dependent, ""))

    def row(self, index: int) -> JointSymmetry:
        """Look for all groups of one joint, and judge whether the robot can be reduced by it."""
        robot, body = self.robot, self.robot.bodies[index]
        carried = _Carried(robot, self.momenta, index, self.found_at)
        largest, start = partial(self._largest, carried), self.start.frames[index]

        left = largest(carried.kinetic(left=True))
        potential, rolling, reaction = self._tests(carried, left=True)
        gravity, wheels = largest(potential, left), largest(rolling, left)
        kept = largest(_both(potential, rolling), left)
        conserving = largest(reaction, gravity)
        conjugated = largest(lambda s: carried.conjugated(s, start), frame=se3.adjoint(start))
        right = own = turned = None
        if carried.extremity:
            right = largest(carried.kinetic(left=False))
            potential, _, reaction = self._tests(carried, left=False)
            own = largest(_both(potential, reaction), right)
        else:
            turned = carried.turned(link_symmetry(robot, body.name, self.tolerance))

        driven, along = body.name in robot.driven_bodies, tuple[ConstantMomentum, ...]()
        span, rolls = set(robot.freedoms(body.name)), bool(robot.wheels)
        free, given = not span & self.dependent, span <= self.dependent
        tied = rolls and free and not driven and self.dependent and self._ties(sorted(span))
        if tied:
            along = tuple(self.rolling_search.found(body.name, self.tolerance))
        constant = any(group.dim for group in (conserving, own, turned) if group)
        by_momentum = bool(along) if tied else constant and free
        wheel = body.name in {w.body for w in robot.wheels}
        row = JointSymmetry(
            joint=body.joint_label,
            role="base" if body.parent is None else "wheel" if wheel else "joint",
            driven=driven,
            whole=classify(body.joint.basis, length=carried.length),
            conjugated=conjugated,
            left=left,
            right=right,
            potential=gravity,
            constraints=wheels,
            kept=kept,
            conserving=conserving,
            own=own,
            reducible=not driven and (by_momentum or (given and rolls and kept.dim > 0)),
            turned=turned,
            along=along,
        )
        names = () if driven else tuple(_names(row, body.joint, carried.length))
        return replace(row, conserved=names, reason=_reason(row, constant or bool(along)))

    def _ties(self, span: list[int]) -> bool:
        """Whether rolling ties other velocities to those of a joint."""
        return any(rolling.blocks(span) for rolling in self.rolling.values())

    def _largest(
        self,
        carried: _Carried,
        measure: _Measure,
        within: SymmetryGroup | None = None,
        frame: np.ndarray | None = None,
    ) -> SymmetryGroup:
        """Largest group, within another, along whose motions a measure sees no change.

        What was found at some configurations is confirmed, or made smaller, at others. Should
        the rest not be closed under the bracket, which only a loose tolerance lets happen, the
        worst directions are left out until it is.
        """
        adjoint = np.eye(6) if frame is None else frame
        directions, missed = carried.directions(within), list[float]()
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
        return carried.group(directions, adjoint, min(missed, default=None), residual)

    def _tests(self, carried: _Carried, left: bool) -> tuple[_Measure, _Measure, _Measure]:
        """Measures of the change of potential and admitted motions, and of what rolling forbids."""
        robot, still = self.robot, np.zeros(self.robot.nv)
        span = robot.v_slice(carried.name)
        pull = float(np.linalg.norm(robot.gravity)) or 1.0
        none = np.zeros((1, carried.dim))

        def motions(state: _State) -> np.ndarray:
            own = state.turned[carried.index] if left else np.eye(carried.dim)
            velocities = np.zeros((robot.nv, carried.dim))
            velocities[span] = own / carried.unit
            return velocities

        def potential(state: _State) -> np.ndarray:
            # At rest the bias is the gradient of the potential.
            slope = robot.bias(state.q, still) @ motions(state)
            return np.asarray(slope / (carried.mass * pull * carried.length))[None, :]

        def rolling(state: _State) -> np.ndarray:
            if not self.rolling:
                return none
            turns = np.zeros((carried.dim, robot.nv, robot.nv))
            if not left:
                turns[:, span, span] = carried.turns
            return self.rolling[state].turning(motions(state), turns)

        def reaction(state: _State) -> np.ndarray:
            braked: np.ndarray = np.array(self.damping(state.q)).T @ motions(state) / carried.size
            if not self.rolling:
                return braked
            return np.vstack([braked, self.rolling[state].blocked(motions(state)) / carried.size])

        return potential, rolling, reaction


def _both(one: _Measure, other: _Measure) -> _Measure:
    return lambda state: np.vstack([one(state), other(state)])


class _Carried:
    """A joint with all bodies that it carries, measured by its own mass and size.

    A unit of a direction of the joint is one radian or, for translations, the radius of gyration
    about the joint frame: `unit` is the size of the basis in that unit.
    """

    def __init__(
        self, robot: Mechanism, momenta: Momenta, index: int, states: Sequence[_State]
    ) -> None:
        self.momenta, self.index, self.name = momenta, index, robot.bodies[index].name
        self._rng, self._known = (
            np.random.default_rng(19),
            dict[_State, tuple[np.ndarray, np.ndarray]](),
        )
        self.basis = robot.bodies[index].joint.basis
        self.dim = self.basis.shape[1]
        carried = [i for i in range(len(robot.bodies)) if index in robot.path(i)]
        self.extremity = all(robot.bodies[i].joint.nv == 0 for i in carried if i != index)
        inertia, inertias = np.zeros((6, 6)), robot.inertia_matrices
        for state in states:  # about the joint frame
            for i in carried:
                back = se3.adjoint(se3.inverse(state.poses[i]) @ state.frames[index])
                inertia += back.T @ inertias[i] @ back / len(states)
        self.mass = float(inertia[0, 0])
        gyration = np.trace(inertia[3:, 3:]) / 2
        self.length = float(np.sqrt(gyration / self.mass)) if gyration > 0.0 else robot.size
        self.size = float(np.sqrt(self.mass) * self.length)
        self._twist_scale = np.repeat([1.0 / self.length, 1.0], 3)
        self.unit = np.linalg.norm(self._twist_scale[:, None] * self.basis, axis=0)
        self._own = robot.freedoms(*(robot.bodies[i].name for i in carried))
        diagonals = [np.diag(robot.mass_matrix(state.q))[self._own] for state in states]
        self._scale = np.sqrt(np.mean(diagonals, axis=0))
        brackets = [np.linalg.pinv(self.basis) @ se3.ad(x) @ self.basis for x in self.basis.T]
        self.turns = np.array(brackets) / self.unit[:, None, None]  # ad of the unit directions

    def _velocities(self, state: _State) -> np.ndarray:
        """Velocities of unit size: twists that the joint frame can have, and all joints."""
        drawn = self._rng.normal(size=(VELOCITIES, 6 + len(self._own)))
        reach = self._twist_scale[:, None] * state.carriers[self.index]
        sizes = np.linalg.norm(reach, axis=0)
        sizes[sizes == 0.0] = 1.0
        carrying = np.linalg.pinv(reach / sizes, rcond=1e-9) / sizes[:, None] / self.size
        velocities: np.ndarray = drawn[:, :6] @ carrying.T
        velocities[:, self._own] = drawn[:, 6:] / self._scale
        return velocities

    def kinetic(self, left: bool) -> _Measure:
        """Change of the kinetic energy under left translations, (4.4.30), or right, (4.4.32)."""
        return lambda state: self._changes(state)[0 if left else 1]

    def _changes(self, state: _State) -> tuple[np.ndarray, np.ndarray]:
        if state not in self._known:
            lefts, rights = [], []
            for v in self._velocities(state):
                terms = self.momenta.at(self.name, state.q, v)
                lefts.append((terms.rate - terms.turned) @ terms.frame)
                rights.append(terms.rate)
            # Energies v^T A v / 2 at normal velocities have the mean square of A over two.
            unit = self.unit * np.sqrt(VELOCITIES / 2)
            self._known[state] = np.array(lefts) / unit, np.array(rights) / unit
        return self._known[state]

    def turned(self, generators: Generators) -> SymmetryGroup | None:
        """Group of motions of the link that keep all it carries in place."""
        if not generators:
            return None
        coordinates = np.array(generators).T
        twists = self.basis @ coordinates
        group = classify(twists, DIRECTION, self.length)
        return SymmetryGroup(group, coordinates, twists, None, 0.0)

    def conjugated(self, state: _State, start: np.ndarray) -> np.ndarray:
        """Part of the motions, fixed in space as they stand at the start, that leaves the joint."""
        back = se3.adjoint(se3.inverse(state.frames[self.index]) @ start)
        unit = self._twist_scale[:, None] * self.basis / self.unit
        seen = self._twist_scale[:, None] * (back @ self.basis) / self.unit
        return np.asarray(seen - unit @ (unit.T @ seen))

    def directions(self, group: SymmetryGroup | None) -> np.ndarray:
        """Orthonormal directions that span a group, or the joint, in its units."""
        if group is None:
            return np.eye(self.dim)
        return np.linalg.qr(self.unit[:, None] * group.coordinates)[0]

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

    def __init__(self, robot: Mechanism, change: Evaluator, q: np.ndarray) -> None:
        self.q, self._change = q, change
        mass = robot.mass_matrix(q)
        self._root, self._rows = np.linalg.cholesky(mass).T, robot.constraints(q)
        self._shares = np.abs(self._rows) / np.sqrt(np.diag(mass))
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
            change = self._change(self.q, v) - self._rows @ turn
            scaled = np.linalg.solve(self._root.T, change.T).T
            turned.append((self._solve @ scaled @ self._admitted.T).ravel())
        return np.array(turned).T

    def blocks(self, freedoms: Sequence[int]) -> bool:
        """Whether rolling constrains some freedoms."""
        least = 1e-12 * self._shares.max(axis=1, initial=0.0)
        return bool((self._shares[:, list(freedoms)] > least[:, None]).any())

    def blocked(self, velocities: np.ndarray) -> np.ndarray:
        """Part of velocities that rolling forbids."""
        return np.asarray(self._forbidden @ (self._root @ velocities))


def _derivative(robot: Mechanism) -> Evaluator:
    """Exact derivative of the constraints, called with q and a velocity."""
    q, v = ca.SX.sym("q", robot.nq), ca.SX.sym("v", robot.nv)
    change = along(robot.constraints, q, robot.rate(q, v))
    return Evaluator(ca.Function("change", [q, v], [change]), [change.shape], robot.name)


# --- words ---------------------------------------------------------------------------------------


def _reason(row: JointSymmetry, conserved: bool) -> str:
    """Why a joint keeps its momentum, or what changes it, with numbers."""
    texts = []
    if row.driven and (row.kept.dim or conserved):
        texts.append("driven: its momentum changes with the torque")
    elif conserved:
        texts.append("conserved: it is unactuated, and nothing else changes its momentum")
    elif row.kept.dim:
        texts.append("rolling: the reactions of the wheels change its momentum")
    for group, before, what in (
        (row.left, row.whole, "kinetic energy depends on"),
        (row.potential, row.left, "gravity breaks"),
        (row.constraints, row.left, "the rolling constraints depend on"),
    ):
        if group.dim < before.dim:
            rest = f"the rest of {before.name}" if group.dim else "it"
            texts.append(f"{what} {rest} (change {group.violation:.1e})")
    return "; ".join(texts)


def _names(row: JointSymmetry, joint: Joint, length: float) -> Iterator[str]:
    """Names of the constant momenta of a joint."""
    plain = [_name(twist, length) for twist in row.conserving.twists.T]
    if row.own is not None and not is_abelian(joint):
        # Where motions commute, left and right translations are the same.
        plain += [_name(twist, length) + " of the body" for twist in row.own.twists.T]
    yield from plain
    if row.turned is not None:
        for twist in row.turned.twists.T:
            yield _name(twist, length) + " of the body, with all it carries turned back"
    for part in row.along:
        of_body = " of the body" if part.seen_from == "body" else ""
        for generator in part.generators:
            name = _name(joint.basis @ np.array(generator), length) + of_body
            if name not in plain:
                yield f"{name}, with what rolls along"


def _name(twist: np.ndarray, length: float) -> str:
    """Name of the component of momentum that belongs to a twist."""
    shift, turn = twist[:3], twist[3:]
    if np.linalg.norm(turn) * length < DIRECTION * np.linalg.norm(shift):
        return f"linear momentum along {_axis(shift)}"
    speed = np.linalg.norm(turn)
    pitch, point = float(shift @ turn) / speed**2, np.cross(turn, shift) / speed**2
    text = f"angular momentum about {_axis(turn)}"
    if abs(pitch) > DIRECTION * length:
        text = f"screw momentum about {_axis(turn)} with pitch {pitch:.4g} m/rad"
    if np.linalg.norm(point) > DIRECTION * length:
        text += f" through {_numbers(point)}"
    return text


def _axis(direction: np.ndarray) -> str:
    unit = direction / np.linalg.norm(direction)
    for name, axis in zip("xyz", np.eye(3), strict=True):
        if np.abs(unit - axis).max() < DIRECTION:
            return name
    return _numbers(unit)


def _numbers(values: np.ndarray) -> str:
    return "(" + ", ".join(f"{x + 0.0:.4g}" for x in values) + ")"
