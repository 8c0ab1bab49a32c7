"""One damped step of inverse kinematics on Lie groups, as one compiled function."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock

import casadi as ca
import numpy as np

from concur.codegen import Array, Evaluator
from concur.outputs import Output, freedoms, output_motion
from concur.outputs.groups import Product
from concur.robot import Mechanism, solve_positive_definite

TASK = "inverse kinematics"

LONGEST_TURN = 1.0
"""Largest change of an angle in one step, rad: beyond, the linear model is poor."""


class Step:
    """One damped step, compiled: error, step, and predicted decrease."""

    def __init__(self, evaluator: Evaluator) -> None:
        self.lock = Lock()
        self._evaluator = evaluator  # owns the buffers that the trigger writes to
        self._trigger = evaluator.trigger
        self._q, self._goal, self._damping = (view[:, 0] for view in evaluator.inputs)
        self._next, self._facts, self._error = (view[:, 0] for view in evaluator.outputs)
        self.value = self.slope = self.promised = 0.0

    def aim(self, goal: np.ndarray) -> None:
        self._goal[:] = goal

    def evaluate(self, q: np.ndarray, damping: float) -> None:
        self._q[:] = q
        self._damping[0] = damping
        self._trigger()
        self.value, self.slope, self.promised = self._facts.tolist()

    @property
    def next(self) -> np.ndarray:
        return self._next.copy()

    def error(self, q: np.ndarray) -> tuple[float, np.ndarray]:
        self.evaluate(q, 1.0)
        return self.value, self._error.copy()


def leaders(robot: Mechanism, free: Sequence[str], used: Sequence[str]) -> tuple[str, ...]:
    """Bodies whose joints move outputs, themselves or by joints that follow them.

    `free` are the bodies whose joints may move and `used` those that move an output. A joint with a
    follower that may not move stands still.
    """
    kept = {name: {name} for name in (body.name for body in robot.bodies)}
    for mimic in reversed(robot.mimics):  # each before the joint that it follows
        kept[mimic.of] |= kept.pop(mimic.body)
    for guides, follower in robot.steering_joints:
        for name in guides:
            kept[name].add(follower)
        del kept[follower]
    return tuple(name for name, moved in kept.items() if moved <= set(free) and moved & set(used))


def coupled_bounds(robot: Mechanism) -> np.ndarray:
    """Limits of the coordinates (nq, 2); of a joint also those of the joints that follow it."""
    bounds = np.array(robot.limits)
    for mimic in reversed(robot.mimics):
        of, own = robot.q_slice(mimic.of), bounds[robot.q_slice(mimic.body)][0]
        if mimic.multiplier:
            ends = np.sort((own - mimic.offset) / mimic.multiplier)
            bounds[of, 0] = np.maximum(bounds[of, 0], ends[0])
            bounds[of, 1] = np.minimum(bounds[of, 1], ends[1])
    return bounds


def coupling(robot: Mechanism) -> np.ndarray:
    """Constant matrix P (nv, nv): velocities of all joints from those that follow no other."""
    matrix = np.eye(robot.nv)
    for mimic in robot.mimics:  # each after the joint that it follows
        follower, other = robot.freedoms(mimic.body, mimic.of)
        matrix[follower] = mimic.multiplier * matrix[other]
    return matrix


def step_of(
    robot: Mechanism, outputs: tuple[Output, ...], moving: tuple[str, ...], limits: bool
) -> Step:
    """The step of a robot and its outputs, built once and kept with the robot."""
    kept = robot.__dict__.setdefault("_evaluators", {})
    key = (TASK, outputs, moving, limits)
    if key not in kept:
        kept[key] = Step(_build(robot, outputs, moving, limits))
    step: Step = kept[key]
    return step


def _build(
    robot: Mechanism, outputs: tuple[Output, ...], moving: tuple[str, ...], limits: bool
) -> Evaluator:
    group = Product([output.lie for output in outputs])
    q = ca.SX.sym("q", robot.nq)
    goal = ca.SX.sym("goal", group.pose_size)
    damping = ca.SX.sym("damping")

    placed = output_motion(robot, outputs, q, base_axes=True)
    x = group.error(placed.coordinates, goal)
    columns = placed.unturned(placed.jacobian) @ ca.sparsify(
        ca.DM(coupling(robot)[:, freedoms(robot, moving)])
    )
    unknowns = _Unknowns(robot, moving, q, limits)
    slope = group.error_map(x) @ columns @ unknowns.velocities
    bounds, here = unknowns.bounds, unknowns.here

    downhill = slope.T @ x
    free = ca.SX.ones(len(bounds), 1)
    for k, (lower, upper) in enumerate(bounds):
        if np.isfinite(lower):
            free[k] *= 1 - ca.logic_and(here[k] <= lower, downhill[k] < 0)
        if np.isfinite(upper):
            free[k] *= 1 - ca.logic_and(here[k] >= upper, downhill[k] > 0)
    masked = ca.mtimes(slope, ca.diag(free))
    right = free * downhill
    normal = masked.T @ masked
    size = ca.trace(normal) / len(bounds) + 1e-300
    # Far from the target translations have priority over angles.
    value = ca.sumsqr(x)
    weights = ca.vertcat(*[size + value if turns else size for turns in unknowns.turning])
    change = solve_positive_definite(normal + damping * ca.diag(weights), right)
    angles = [change[k] for k, turns in enumerate(unknowns.turning) if turns]
    if angles:
        excess = ca.fmax(1.0, ca.mmax(ca.fabs(ca.vertcat(*angles))) / LONGEST_TURN)
        change /= ca.vertcat(*[excess if turns else 1.0 for turns in unknowns.turning])
    change = _clipped(change, bounds, here)
    facts = ca.vertcat(
        value,
        ca.sqrt(ca.sumsqr(right) / (size * len(bounds) * value + 1e-300)),
        value - ca.sumsqr(x - slope @ change),
    )
    function = ca.Function(
        "step",
        [q, goal, damping],
        [unknowns.moved(change), facts, x],
        ["q", "goal", "damping"],
        ["next", "facts", "error"],
        {"cse": True},
    )
    shapes = [(robot.nq,), (3,), (group.dim,)]
    return Evaluator(function, shapes, f"{TASK} of `{robot.name}`")


class _Unknowns:
    """Unknowns of a step of joints at a configuration (nq,).

    Those of a joint without quaternion are changes of its coordinates, because these have the
    limits; of the others the displacement in their body axes.
    """

    def __init__(self, robot: Mechanism, moving: tuple[str, ...], q: Array, limits: bool) -> None:
        self.robot, self.q = robot, q
        self.bodies = [robot.bodies[robot.index(name)] for name in moving]
        self.turning = [unit == "rad" for body in self.bodies for unit in body.joint.freedom_units]
        self.bounds = list[tuple[float, float]]()
        every = coupled_bounds(robot) if limits else np.full((robot.nq, 2), [-np.inf, np.inf])
        blocks, places = [], []
        for body in self.bodies:
            joint, span = body.joint, robot.q_slice(body.name)
            unit = ca.SX.eye(joint.nv)
            if joint.quaternion_at is None:
                self.bounds += [(float(low), float(high)) for low, high in every[span]]
                places.append(q[span])
                rate = ca.horzcat(*[joint.rate(q[span], unit[:, k]) for k in range(joint.nv)])
                unit = unit if _is_identity(rate) else ca.inv(rate)
            else:
                self.bounds += [(-np.inf, np.inf)] * joint.nv
                places.append(ca.SX(joint.nv, 1))
            blocks.append(unit)
        self.here = ca.vertcat(*places)
        """Coordinates where the unknowns have limits; zero where they cannot."""
        self.velocities = ca.diagcat(*blocks)
        """Map from the unknowns to joint velocities."""

    def moved(self, change: Array) -> Array:
        """Append a step to the configuration; limits are met exactly, not to rounding."""
        result, start = ca.SX(self.q), 0
        for body in self.bodies:
            span, rows = self.robot.q_slice(body.name), slice(start, start + body.joint.nv)
            own, here = change[rows], self.q[span]
            result[span] = (
                _clipped(here + own, self.bounds[rows])
                if body.joint.quaternion_at is None
                else body.joint.integrate(here, own)
            )
            start = rows.stop
        for mimic in self.robot.mimics:
            led = result[self.robot.q_slice(mimic.of)]
            result[self.robot.q_slice(mimic.body)] = mimic.multiplier * led + mimic.offset
        return result


def _is_identity(matrix: ca.SX) -> bool:
    return bool(matrix.is_constant() and ca.DM(matrix - ca.SX.eye(matrix.shape[0])).is_zero())


def _clipped(
    values: Array, bounds: Sequence[tuple[float, float]], origin: Array | None = None
) -> Array:
    """Values (k,) inside bounds, counted from an origin; infinite ones take no instruction."""
    rows = ca.vertsplit(values)
    for k, (lower, upper) in enumerate(bounds):
        start = 0.0 if origin is None else origin[k]
        if np.isfinite(upper):
            rows[k] = ca.fmin(rows[k], upper - start)
        if np.isfinite(lower):
            rows[k] = ca.fmax(rows[k], lower - start)
    return ca.vertcat(*rows)
