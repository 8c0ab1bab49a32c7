"""Inverse kinematics on Lie groups: the configuration for given outputs.

Levenberg-Marquardt on the output group. With the error x = log(r^-1 gamma) and B(x) of its
differential, a motion of the joints changes x by -B(x) Jbar dv, so a step minimises
|x - B Jbar dv|^2 + damping |dv|^2, where angles weigh more the farther the target is. Joint
limits are kept at every step: coordinates that a step would push through their limit leave the
problem, the others are cut off where they meet it. From a start that ends in a local minimum
the search continues from random configurations.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from concur.codegen import attitude_error, finite_floats, shape_error, unit_span
from concur.control._inverse_kinematics_step import TASK, coupled_bounds, leaders, step_of
from concur.control._reading import is_one_pose, positive
from concur.errors import OutputError, ShapeError
from concur.outputs import (
    Output,
    ReferenceSample,
    carriers,
    checked_outputs,
    free_bodies,
    homogeneous,
    pose_numbers,
    pose_quaternions,
)
from concur.robot import Body, Mechanism, joints

FARTHEST = 1e12
"""Largest coordinate of a target, m: beyond, rounding alone exceeds any useful tolerance."""

FIRST_DAMPING, LEAST_DAMPING, MOST_DAMPING = 1e-3, 1e-12, 1e8
SLOW = 0.02
"""A step that takes less than this share of the squared error is slow ..."""
PATIENCE = 8
"""... and after so many of them in a row the search continues from another start."""
FLAT = 1e-9
"""Cosine between error and reachable motions below which a minimum has been found."""
STILL = 1e-6
"""The same cosine, below which a search that ran out of steps is called finished."""


@dataclass(frozen=True, eq=False)
class InverseKinematics:
    """A configuration for a target of the outputs, or the nearest that was found.

    Parameters
    ----------
    q : numpy.ndarray
        Configuration, shape (nq,), within the limits.
    solved : bool
        Whether the residual is within the tolerance.
    residual : float
        Norm of `error`; metres and radians count alike.
    error : numpy.ndarray
        log(r^-1 gamma) of all outputs at `q`, shape (size,), m and rad.
    iterations : int
        Steps taken, from all starts together.
    starts : int
        Starts used.
    why : str
        A sentence: from which start it was solved, or what stands in the way.

    Examples
    --------
    >>> import concur as cc
    >>> robot = cc.robots.orbital_crawler()
    >>> tip = cc.Output("tip", "left_tip", "R3xSO3")
    >>> goal = robot.pose(robot.neutral(), "left_tip")
    >>> goal[:3, 3] += [-0.3, 0.2, -0.1]
    >>> cc.inverse_kinematics(robot, [tip], goal, fixed=["spacecraft"]).solved
    True
    """

    q: np.ndarray
    solved: bool
    residual: float
    error: np.ndarray
    iterations: int
    starts: int
    why: str


class InverseKinematicsSolver:
    """Inverse kinematics of one robot and its outputs, for many targets.

    Parameters
    ----------
    robot : Mechanism
        The robot. All its joints may move, the base of a robot with wheels too: wheels bound
        velocities, not where a robot can stand. Joints that follow others move with them.
    outputs : sequence of Output
        What is to be brought to the target.
    limits : bool
        Whether the limits of the bodies' joints are kept.
    starts : int
        Most starts: the first from the configuration given, the others random.
    tolerance : float
        Largest residual, m and rad, that counts as solved.
    iterations : int
        Most steps from one start.
    seed : int
        Seed of the random starts: the same numbers give the same answer.
    fixed : sequence of str
        Bodies that must not move: the joints between them and the inertial frame keep their
        place of the first start.

    Raises
    ------
    OutputError
        If the outputs do not fit the robot, or nothing is left that moves them.
    UnknownNameError
        If a body does not exist.
    ShapeError, NonFiniteError
        If a number is not one, or below its range.

    Examples
    --------
    >>> import concur as cc
    >>> hand = cc.Output("hand", "forearm", "R3", point=(0, 0.2, 0))
    >>> rover = cc.robots.rover_arm()
    >>> solver = cc.control.InverseKinematicsSolver(rover, [hand], fixed=("chassis",))
    >>> solver.solve([0.2, 0.5, 0.3]).solved
    True
    >>> print(solver.solve([3.0, 0.0, 0.0]).why)
    not reached from 50 starts: output `hand` stays 1.6 m away; no small motion brings it nearer
    """

    def __init__(
        self,
        robot: Mechanism,
        outputs: Sequence[Output],
        limits: bool = True,
        starts: int = 50,
        tolerance: float = 1e-10,
        iterations: int = 100,
        seed: int = 0,
        fixed: Sequence[str] = (),
    ) -> None:
        self.outputs = checked_outputs(robot, outputs, TASK)
        self.robot = robot
        self.where = f"{TASK} of `{robot.name}`"
        free, used = free_bodies(robot, self.outputs, fixed, TASK), carriers(robot, self.outputs)
        for _, follower in robot.steering_joints:
            if follower in used:
                raise OutputError(
                    f"{self.where}, `outputs`",
                    expected="outputs that no wheel moves which follows guides",
                    came=f"one behind the steering joint `{follower}`",
                    cure="Put the output on the body that carries this joint, or on a guide.",
                )
        self.moving = leaders(robot, free, used)
        if not self.moving:
            raise OutputError(
                f"{self.where}, `outputs`",
                expected="outputs that some joint moves",
                came="joints coupled to bodies in `fixed`",
                cure="Fix fewer bodies.",
            )
        self.fixed = tuple(fixed)
        self.limits = bool(limits)
        self.starts = _count(f"{self.where}, `starts`", starts, 1)
        self.iterations = _count(f"{self.where}, `iterations`", iterations, 1)
        self.seed = _count(f"{self.where}, `seed`", seed, 0)
        self.tolerance = positive(f"{self.where}, `tolerance`", tolerance, error=ShapeError)
        self.bounds = coupled_bounds(robot) if limits else np.full((robot.nq, 2), [-np.inf, np.inf])
        self._moving_bodies = [robot.bodies[robot.index(name)] for name in self.moving]
        led = {robot.q_slice(mimic.of).start for mimic in robot.mimics}
        self.turning = [
            i
            for i in _turning_coordinates(robot, self._moving_bodies)
            if i not in led and np.diff(self.bounds[i])[0] > 2.0 * np.pi
        ]
        self._step = step_of(robot, self.outputs, self.moving, self.limits)

    def __reduce__(self) -> tuple[Any, ...]:
        options = self.limits, self.starts, self.tolerance, self.iterations, self.seed, self.fixed
        return InverseKinematicsSolver, (self.robot, self.outputs, *options)

    def solve(
        self, target: ArrayLike | ReferenceSample, q0: ArrayLike | None = None
    ) -> InverseKinematics:
        """Find a configuration for a target.

        Parameters
        ----------
        target : array_like or ReferenceSample
            Flat coordinates of the outputs in output order, shape (pose_size,), as in
            `ReferenceSample`; for one output that is a full pose also a homogeneous matrix
            (4, 4), body to world, m; or a sample of a reference, of which the pose counts.
        q0 : array_like, optional
            First start, shape (nq,), within the limits; default the neutral configuration,
            moved into the limits. Joints that do not move an output stay there.

        Returns
        -------
        InverseKinematics
            The configuration, or the nearest one found. Angles without limits, or with more than
            a turn between them, come back as near to the first start as whole turns bring them.

        Raises
        ------
        ShapeError
            If the target or `q0` has another size, a quaternion or a rotation is invalid, or `q0`
            lies outside the limits.
        NonFiniteError
            If a number is NaN or infinite.
        """
        goal, first = self._goal(target), self._first(q0)
        best = _Best(first.copy(), np.inf)
        taken = used = 0
        with self._step.lock:
            self._step.aim(goal)
            for start in self._starts(first):
                found, steps = self._descend(start, self.iterations, PATIENCE)
                taken, used = taken + steps, used + 1
                reached = found.value <= self.tolerance**2 and not self._beyond(found.q)
                if reached or found.value < best.value:
                    best = found
                if reached:
                    break
            else:
                # Slow starts were left early: the best of them is followed to its end.
                best, steps = self._descend(best.q, self.iterations, self.iterations)
                taken += steps
            q = wound(best.q, first, self.turning, self.bounds)
            if self.robot.steering:
                q = self.robot.coupled(q)
            value, error = self._step.error(q)
            residual, beyond = float(np.sqrt(value)), self._beyond(q)
            near = bool(residual <= self.tolerance)
            solved = near and not beyond
            why = (
                f"solved from start {used} in {taken} steps, residual {residual:.2g}"
                if solved
                else f"reached, but with {beyond}, which follows its guides beyond its limits"
                if near
                else self._obstacle(q, error, used)
            )
        return InverseKinematics(q, solved, residual, error, taken, used, why)

    def _goal(self, target: ArrayLike | ReferenceSample) -> np.ndarray:
        """Flat coordinates of a target, its quaternions of unit norm."""
        where = f"{self.where}, `target`"
        values = target.pose if isinstance(target, ReferenceSample) else target
        flat = np.array(finite_floats(values, where))
        if np.abs(flat).max(initial=0.0) > FARTHEST:
            raise ShapeError(
                where,
                expected=f"numbers up to {FARTHEST:.0e} m",
                came=f"{np.abs(flat).max():.3g}",
                cure="Positions are in metres from the inertial origin.",
            )
        if flat.shape == (4, 4) and is_one_pose(self.outputs):
            flat = pose_numbers(homogeneous(flat, where))
        size = sum(output.pose_size for output in self.outputs)
        if flat.shape != (size,):
            raise shape_error(where, (size,), flat.shape)
        quaternions = pose_quaternions(self.outputs)
        error = attitude_error(self.where, "target", flat, quaternions)
        if error is not None:
            raise error
        for span in map(unit_span, quaternions):
            flat[span] /= np.linalg.norm(flat[span])
        return flat

    def _beyond(self, q: np.ndarray) -> str:
        """Describe a wheel that follows guides beyond the limits of its joint; empty if none."""
        q = self.robot.coupled(q) if self.robot.steering else q
        for _, follower in self.robot.steering_joints:
            at, (lower, upper) = (
                part[self.robot.q_slice(follower)][0] for part in (q, self.bounds)
            )
            if not lower <= at <= upper:
                return f"`{follower}` at {at:.4g} rad"
        return ""

    def _first(self, q0: ArrayLike | None) -> np.ndarray:
        lower, upper = self.bounds.T
        if q0 is None:
            return self.robot.coupled(np.clip(self.robot.neutral(), lower, upper))
        q = np.asarray(self.robot.check_configuration(q0, f"{TASK}, `q0`"))
        slack = 1e-9 * (1.0 + np.abs(q))
        for body in self.robot.bodies:
            for i in range(*self.robot.q_slice(body.name).indices(self.robot.nq)):
                if not lower[i] - slack[i] <= q[i] <= upper[i] + slack[i]:
                    raise ShapeError(
                        f"{self.where}, `q0`, joint of `{body.joint_label}`",
                        expected=f"a start between {lower[i]:.6g} and {upper[i]:.6g}",
                        came=f"q0[{i}] = {q[i]:.6g}",
                        cure="Start within the limits, or pass limits=False.",
                        index=i,
                    )
        return self.robot.coupled(np.clip(q, lower, upper))

    def _starts(self, first: np.ndarray) -> Iterator[np.ndarray]:
        yield first
        rng = np.random.default_rng(self.seed)
        for _ in range(self.starts - 1):
            q = first.copy()
            for body in self._moving_bodies:
                span = self.robot.q_slice(body.name)
                q[span] = within(body.joint.random(rng), self.bounds[span], rng)
            yield self.robot.coupled(q)

    def _descend(self, start: np.ndarray, most: int, patience: int) -> tuple[_Best, int]:
        """Descend until solved, stationary, or slow for too long."""
        step, enough = self._step, self.tolerance**2
        q, damping, slow = start, FIRST_DAMPING, 0
        step.evaluate(q, damping)
        value = step.value
        for k in range(most):
            if value <= enough or step.slope <= FLAT or slow >= patience:
                return _Best(q, value), k
            trial, promised = step.next, step.promised
            # Guess that the step is good, so that one evaluation both judges it and makes the
            # next one.
            step.evaluate(trial, max(damping / 10, LEAST_DAMPING))
            gained = value - step.value
            if gained > 1e-4 * promised and promised > 0.0:
                if gained < 0.25 * promised:
                    damping *= 4
                    step.evaluate(trial, damping)
                else:
                    damping = max(damping / 10, LEAST_DAMPING)
                slow = slow + 1 if gained < SLOW * value else 0
                q, value = trial, step.value
            else:
                damping *= 10
                if damping > MOST_DAMPING:
                    return _Best(q, value), k
                step.evaluate(q, damping)
        return _Best(q, value), most

    def _obstacle(self, q: np.ndarray, error: np.ndarray, used: int) -> str:
        clauses, start = [], 0
        for output in self.outputs:
            part = error[start : start + output.dim]
            start += output.dim
            sizes = [
                f"{size:.4g} {unit}"
                for unit in ("m", "rad")
                if (size := np.linalg.norm(part[[u == unit for u in output.coordinate_units]]))
                > self.tolerance
            ]
            if sizes:
                clauses.append(f"output `{output.name}` stays {' and '.join(sizes)} away")
        lower, upper = self.bounds.T
        stops = [
            f"{body.joint_label} at its {side} limit {bound[i]:.4g}"
            for body in self._moving_bodies
            for i in range(*self.robot.q_slice(body.name).indices(self.robot.nq))
            for side, bound in (("lower", lower), ("upper", upper))
            if q[i] == bound[i]
        ]
        tail = f", with {', '.join(stops)}" if stops else ""
        runs = "one start" if used == 1 else f"{used} starts"
        end = (
            "no small motion brings it nearer"
            if self._step.slope < STILL
            else "the search was still on its way: allow more `iterations`"
        )
        return f"not reached from {runs}: {', '.join(clauses)}{tail}; {end}"


def wound(
    q: np.ndarray, first: np.ndarray, turning: Sequence[int], bounds: np.ndarray
) -> np.ndarray:
    """Take whole turns off angles: as near to the first as their limits, (nq, 2), allow."""
    q, at, turn = q.copy(), list(turning), 2.0 * np.pi
    low, high = (bounds[at].T - q[at]) / turn
    # An angle at its limit stays, in spite of rounding.
    least, most = np.minimum(np.ceil(low), 0.0), np.maximum(np.floor(high), 0.0)
    q[at] += turn * np.clip(np.round((first[at] - q[at]) / turn), least, most)
    return q


def inverse_kinematics(
    robot: Mechanism,
    outputs: Sequence[Output],
    target: ArrayLike | ReferenceSample,
    q0: ArrayLike | None = None,
    limits: bool = True,
    starts: int = 50,
    tolerance: float = 1e-10,
    fixed: Sequence[str] = (),
) -> InverseKinematics:
    """Find a configuration in which the outputs are at a target.

    Parameters
    ----------
    robot : Mechanism
        The robot. All its joints may move, the base of a robot with wheels too: wheels bound
        velocities, not where a robot can stand. Joints that follow others move with them.
    outputs : sequence of Output
        What is to be brought to the target.
    target : array_like or ReferenceSample
        Flat coordinates of the outputs in output order, shape (pose_size,), as in
        `ReferenceSample`; for one output that is a full pose also a homogeneous matrix (4, 4),
        body to world, m; or a sample of a reference, of which the pose counts.
    q0 : array_like, optional
        First start, shape (nq,), within the limits; default the neutral configuration, moved
        into the limits. Joints that do not move an output stay there.
    limits : bool
        Whether the limits of the bodies' joints are kept.
    starts : int
        Most starts: the first from `q0`, the others random.
    tolerance : float
        Largest residual, m and rad, that counts as solved.
    fixed : sequence of str
        Bodies that must not move: the joints between them and the inertial frame stay as in
        `q0`.

    Returns
    -------
    InverseKinematics
        The configuration, or the nearest one found, with a sentence on which of the two it is.

    Raises
    ------
    OutputError
        If the outputs do not fit the robot, or nothing is left that moves them.
    UnknownNameError
        If a body does not exist.
    ShapeError
        If the target or `q0` has another size, a quaternion or a rotation is invalid, or `q0` lies
        outside the limits.
    NonFiniteError
        If a number is NaN or infinite.

    See Also
    --------
    InverseKinematicsSolver : for many targets, and with a limit of steps or another seed.

    Examples
    --------
    >>> import concur as cc
    >>> robot = cc.robots.rover_arm()
    >>> hand = cc.Output("hand", "forearm", "R3", point=(0, 0.2, 0))
    >>> found = cc.inverse_kinematics(robot, [hand], [2.0, 0.5, 0.3])
    >>> found.solved
    True
    """
    solver = InverseKinematicsSolver(robot, outputs, limits, starts, tolerance, fixed=fixed)
    return solver.solve(target, q0)


@dataclass(frozen=True, eq=False)
class _Best:
    """A configuration and its squared error."""

    q: np.ndarray
    value: float


def _turning_coordinates(robot: Mechanism, bodies: list[Body]) -> list[int]:
    """Angles after a whole turn of which the robot stands as before."""
    return [
        robot.q_slice(body.name).start + k
        for body in bodies
        if not isinstance(body.joint, joints.Helical)
        for k, unit in enumerate(body.joint.coordinate_units)
        if unit == "rad"
    ]


def within(draw: np.ndarray, bounds: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Bring a random joint configuration into its limits."""
    draw = draw.copy()
    for i, (lower, upper) in enumerate(bounds):
        if np.isfinite(lower) and np.isfinite(upper):
            draw[i] = rng.uniform(lower, upper)
        elif np.isfinite(lower):
            draw[i] = max(draw[i], lower + abs(draw[i]))
        elif np.isfinite(upper):
            draw[i] = min(draw[i], upper - abs(draw[i]))
    return draw


def _count(where: str, value: Any, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise ShapeError(
            where,
            expected=f"a whole number, {least} or more",
            came=repr(value),
            cure="Count in whole numbers.",
        )
    return int(value)
