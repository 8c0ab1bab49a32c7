"""Starts on a reference: a regular posture near a given one, and velocities that follow it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from concur.codegen import finite_floats
from concur.control._core import LawCore, require_outputs
from concur.control._feasibility import REACHED, ExactSpeeds, Measures, sizes
from concur.control._inverse_kinematics import InverseKinematicsSolver, within, wound
from concur.control._inverse_kinematics_step import coupled_bounds, coupling
from concur.control._singularity import lost_direction
from concur.errors import InfeasibleReferenceError, OutputError, UnknownNameError
from concur.outputs import SOLVE, Reference, ReferenceSample, freedoms, output_motion, reference_for
from concur.robot import as_tree, robot_size, scalar

SPEEDS = ("reference", "rest")

COMFORTABLE = 20.0
"""Multiple of the singular margin above which other postures are not sought."""

TRIES = 20
"""Random postures that are tried where the nearest one is singular."""

BASE = 10.0
"""Weight of the base beside the joints in the distance from the configuration near by."""

_STILL = 1e-7  # displacement, rad and parts of the robot's size, at which a descent ends

ROUNDING = 1e-12
"""Velocity error that counts as rounding, as a share of the robot's largest velocity."""

SLIP = 1e-4
"""Largest velocity error that counts as reached, as a share of the largest velocity asked for."""


@dataclass(frozen=True, eq=False)
class Start:
    """A state in which the outputs follow a reference, or the nearest that was found.

    Parameters
    ----------
    q : numpy.ndarray
        Configuration, shape (nq,), within the limits of the joints.
    s : numpy.ndarray
        Shape velocities, shape (ns,), m/s and rad/s.
    error : numpy.ndarray
        Pose error log(r^-1 gamma) at `q`, shape (size,), m and rad: `offset` where it is reached,
        on S^2 up to the choice of normals.
    residual : numpy.ndarray
        Pose error of the target, the reference with the offset, shape (size,), m and rad.
    velocity_residual : numpy.ndarray
        Velocity error r^-1 rdot - Ad gamma^-1 gammadot at `q` and `s`, shape (size,), m/s, rad/s.
    reached : dict of str to bool
        By output, whether its pose is reached, and with ``speed="reference"`` its velocity.
    margin : float
        Decoupling margin at `q`.
    solved : bool
        Whether all outputs are reached, and the law gives torques at `q`.
    why : str
        A sentence: what is reached, or what is not and why.

    Examples
    --------
    >>> import concur as cc
    >>> task = cc.load_task("examples/rover_arm.toml")
    >>> start = task.servo.start(task.reference, near=task.q0)
    >>> start.q.shape, start.s.shape
    ((8,), (5,))
    """

    q: np.ndarray
    s: np.ndarray
    error: np.ndarray
    residual: np.ndarray
    velocity_residual: np.ndarray
    reached: Mapping[str, bool]
    margin: float
    solved: bool
    why: str

    def require(self, where: str) -> None:
        """Raise unless the start is solved.

        Parameters
        ----------
        where : str
            Place named in the error.

        Raises
        ------
        InfeasibleReferenceError
            If it is not.
        """
        if not self.solved:
            raise InfeasibleReferenceError(
                where,
                expected="a regular configuration with the outputs on the reference",
                came=self.why,
                cure="Move the reference into reach and away from singular configurations, widen "
                "the limits of the joints, or start from another configuration `near` by.",
                margin=self.margin,
            )


def start(
    self: LawCore,
    reference: Reference | Callable[[float], ReferenceSample],
    near: ArrayLike | None = None,
    t: float = 0.0,
    offset: Any = None,
    speed: str = "reference",
) -> Start:
    """Find a state in which the outputs follow a reference.

    Inverse kinematics gives q, and the lift gives s with J (H s + h) = r^-1 rdot. Motions that
    the outputs do not determine, such as the heading of a rover or the base of a robot that
    floats, stay as `near` as possible. Where the nearest posture is close to singular, others
    are tried.

    Parameters
    ----------
    reference : Reference or callable
        Reference of all outputs.
    near : array_like, optional
        Configuration in the vicinity, shape (nq,); default neutral. It is moved into the
        limits of the joints.
    t : float
        Time at which the outputs are on the reference, s.
    offset : dict of str to array_like, or array_like, optional
        Pose error log(r^-1 gamma) at the start by name of the output, each (dim,), or of all
        outputs, (size,): m and rad in the output's algebra, in R^n reference minus output, on S^2
        along the normals of the reference, `concur.groups.s2.frame`.
    speed : str
        "reference": the velocity error is zero; "rest": the shape velocities are zero.

    Returns
    -------
    Start
        Configuration and shape velocities, what is reached, and the margin.

    Raises
    ------
    UnknownNameError
        If `speed` or an output's name does not exist.
    OutputError
        If an offset turns by pi rad or more, or the reference does not fit the outputs.
    ShapeError, NonFiniteError, DescriptionError
        If `near`, `t` or `offset` has the wrong shape or is not finite, or `near` contradicts
        joints that follow others.

    Examples
    --------
    >>> import concur as cc
    >>> model = cc.reduce(cc.robots.rover_arm())
    >>> hand = cc.Output("hand", "forearm", "R3", point=(0, 0.2, 0))
    >>> base = cc.Output("base", "chassis", "R2", point=(0.25, 0, 0))
    >>> servo = cc.Servo(model, [base, hand], stiffness=4, damping=4)
    >>> found = servo.start(cc.references.hold([0.5, 0.0, 0.8, 0.1, 0.4]))
    >>> found.solved
    True
    """
    where = f"start of `{self.name}`"
    require_outputs(self, where)
    robot = as_tree(self.model.system, where, SOLVE)
    if speed not in SPEEDS:
        raise UnknownNameError(
            f"{where}, `speed`",
            expected=" or ".join(f'"{name}"' for name in SPEEDS),
            came=repr(speed)[:40],
            cure='Take "rest" to start with shape velocities of zero.',
        )
    time = scalar(t, f"{where}, `t`")
    pose, twist, _ = self.flat(reference_for(reference, self.outputs, where)(time))
    measures = Measures(robot, self.outputs)
    shift = read_offset(f"{where}, `offset`", offset, measures)
    target = _target(self, where, np.asarray(pose), shift, measures)
    q = robot.neutral() if near is None else robot.check_configuration(near, f"{where}, `near`")
    found = Postures(self, q).at(target)
    q, speeds = found.q, ExactSpeeds(self)
    error = np.asarray(self.pose_error(q, pose))
    rate = _numbers(self.error_dynamics.group.transport(error, self.output(q))) @ twist
    s = np.zeros(self.ns)
    regular = found.margin >= self.singular_margin
    if speed == "reference" and self.model.regularity(q) >= self.singular_margin:
        s = speeds(q, rate) if regular else speeds.damped(q, rate)
    v = np.asarray(self.model.velocity(q, s))
    left = np.asarray(self.motion(q, v)[0]) - rate
    lengths = measures.lengths
    fastest = float(np.abs(speeds.asked(q, rate) / lengths).max(initial=0.0))
    # Internal motion alone leaves rounding of the terms that cancel in the outputs.
    own = measures.of([unit for body in robot.bodies for unit in body.joint.freedom_units])
    least = SLIP * fastest + ROUNDING * float(np.abs(v / own).max(initial=0.0))
    residual = np.asarray(self.pose_error(q, target))
    off, slipping = np.abs(residual / lengths), np.abs(left / lengths)
    reached, clauses = {}, []
    for output, span in measures.spans:
        there = bool((off[span] <= REACHED).all())
        moving = speed == "rest" or bool((slipping[span] <= least).all())
        reached[output.name] = there and moving
        if not there:
            clauses.append(f"output `{output.name}` stays {sizes(output, residual[span])} away")
        elif not moving:
            clauses.append(f"output `{output.name}` lacks {sizes(output, left[span], '/s')}")
    if not regular:
        lost = lost_direction(self, q)
        if robot.motors and found.margin < self.margin(q):
            names, direction = self.model.control_names, self.model.leverage(q)[1]
            lost = f"{', '.join(names)} do not push along {direction}"
        clauses.append(f"margin {found.margin:.2g}, {lost}")
    why = "; ".join(clauses) or f"all outputs are reached, margin {found.margin:.3g}"
    solved = all(reached.values()) and found.margin >= self.margins.refused_below
    return Start(q, s, error, residual, left, reached, found.margin, solved, why)


def read_offset(where: str, offset: Any, measures: Measures) -> np.ndarray:
    """Offsets of all outputs as one array (size,); outputs that are not named have none."""
    shift = np.zeros(measures.lengths.size)
    if not isinstance(offset, Mapping):
        return shift if offset is None else finite_floats(offset, where, shift.shape)
    names = [output.name for output, _ in measures.spans]
    for name in offset:
        if name not in names:
            raise UnknownNameError(
                where,
                expected=f"names of outputs ({', '.join(names)})",
                came=repr(name)[:40],
                cure="Check the spelling.",
            )
    for output, span in measures.spans:
        if output.name in offset:
            part = np.atleast_1d(offset[output.name])
            shift[span] = finite_floats(part, f"{where}, output `{output.name}`", (output.dim,))
    return shift


def _target(
    servo: LawCore, where: str, pose: np.ndarray, shift: np.ndarray, measures: Measures
) -> np.ndarray:
    """Flat coordinates (pose_size,) at which the pose error is the shift (size,)."""
    if not shift.any():
        return pose
    group = servo.error_dynamics.group
    target = _numbers(group.shifted(pose, shift)).ravel()
    found = _numbers(group.offset(target, pose)).ravel()
    for output, span in measures.spans:
        if np.abs(found[span] - shift[span]).max() > 1e-6 * (1.0 + np.abs(shift[span]).max()):
            raise OutputError(
                f"{where}, `offset`, output `{output.name}`",
                expected="an error with a rotation below pi rad",
                came=", ".join(f"{x:.4g}" for x in shift[span]),
                cure="Turn the shorter way round.",
            )
    return target


def _numbers(values: Any) -> np.ndarray:
    return np.array(ca.evalf(ca.SX(values)))


@dataclass(frozen=True, eq=False)
class Posture:
    """A configuration (nq,), the norm of its residual, its margin and its distance."""

    q: np.ndarray
    residual: float
    margin: float
    distance: float


class Postures:
    """Search of configurations for targets of a law's outputs, near one configuration (nq,)."""

    def __init__(self, servo: LawCore, near: np.ndarray) -> None:
        robot = servo.model.robot
        self._servo, self._robot = servo, robot
        self._bounds = coupled_bounds(robot)
        self._near = robot.coupled(np.clip(near, *self._bounds.T))
        self._solvers = [InverseKinematicsSolver(robot, servo.outputs, starts=10)]
        moving, base = self._solvers[0].moving, robot.base.name
        carried = [o for o in servo.outputs if o.relative_to is None and o.body == base]
        if len(moving) > 1 and base in moving and not carried:
            # Whatever the joints reach alone leaves the base where it is.
            fixed = InverseKinematicsSolver(robot, servo.outputs, starts=10, fixed=(base,))
            self._solvers.insert(0, fixed)
        q = ca.SX.sym("q", robot.nq)
        jacobian = output_motion(robot, servo.outputs, q).jacobian
        self._jacobian = ca.Function("jacobian", [q], [ca.densify(jacobian)], {"cse": True})
        units = [unit for body in robot.bodies for unit in body.joint.freedom_units]
        size = robot_size(robot)
        weights = np.array([1.0 / size if unit == "m" else 1.0 for unit in units])
        weights[freedoms(robot, [base])] *= BASE
        self._weights = weights
        self._good = COMFORTABLE * servo.singular_margin

    def at(self, target: np.ndarray) -> Posture:
        """Find a regular posture for flat coordinates of the outputs (pose_size,).

        The nearest one if it is regular, else the nearest of several random ones; if none is
        regular, the one with the largest margin, and if none is at the target, the one that comes
        closest to it.
        """
        found = list[Posture]()
        for solver in self._solvers:
            answer = solver.solve(target, self._near)
            q = wound(answer.q, self._near, solver.turning, self._bounds)
            if answer.solved:
                found.append(self._posture(self._nearest(solver, target, q), answer.residual))
                if found[-1].margin >= self._good:
                    return found[-1]
            found.append(self._posture(q, answer.residual))
        best = self._best(found)
        if best.residual > solver.tolerance or best.margin >= self._good:
            return best
        for bodies in (solver.moving, [body.name for body in self._robot.bodies]):
            drawn = [self._drawn(target, start) for start in self._starts(bodies)]
            found += drawn
            if any(p.margin >= self._good and p.residual <= solver.tolerance for p in drawn):
                break
        return self._best(found)

    def _best(self, found: list[Posture]) -> Posture:
        closest = min(posture.residual for posture in found)
        there = [p for p in found if p.residual <= max(closest, self._solvers[0].tolerance)]
        regular = [p for p in there if p.margin >= self._good]
        if regular:
            return min(regular, key=lambda p: p.distance)
        return max(there, key=lambda p: p.margin)

    def _drawn(self, target: np.ndarray, start: np.ndarray) -> Posture:
        """Posture from another start: its joints alone if they reach the target."""
        for solver in self._solvers:
            answer = solver.solve(target, start)
            if answer.solved:
                break
        return self._posture(
            wound(answer.q, self._near, solver.turning, self._bounds), answer.residual
        )

    def _starts(self, bodies: tuple[str, ...] | list[str]) -> Iterator[np.ndarray]:
        """Random configurations of bodies' joints, the base and wheels as near by."""
        robot, rng = self._robot, np.random.default_rng(0)
        still = {robot.base.name, *(wheel.body for wheel in robot.wheels)}
        for _ in range(TRIES):
            q = self._near.copy()
            for body in robot.bodies:
                if body.name in bodies and body.name not in still:
                    span = robot.q_slice(body.name)
                    q[span] = within(body.joint.random(rng), self._bounds[span], rng)
            yield robot.coupled(q)

    def _posture(self, q: np.ndarray, residual: float) -> Posture:
        servo = self._servo
        margin = servo.margin(q)
        distance = float(np.linalg.norm(self._weights * self._way(q)))
        return Posture(q, residual, margin, distance)

    def _way(self, q: np.ndarray) -> np.ndarray:
        return np.asarray(self._robot.difference(q, self._near))

    def _nearest(
        self, solver: InverseKinematicsSolver, target: np.ndarray, q: np.ndarray
    ) -> np.ndarray:
        """Descend to the configuration at the target with the least distance."""
        robot = self._robot
        columns = freedoms(robot, solver.moving)
        chain, weights = coupling(robot)[:, columns], self._weights[columns]
        single = InverseKinematicsSolver(robot, solver.outputs, starts=1, fixed=solver.fixed)
        distance = float(np.linalg.norm(weights * self._way(q)[columns]))
        for _ in range(30):
            way = self._way(q)[columns]
            rows = np.array(self._jacobian(q)) @ chain / weights
            step = self._inside(q, columns, rows, weights * way) / weights
            length = float(np.linalg.norm(weights * step))
            share = 1.0
            while share * length > _STILL:
                trial = robot.integrate(q, chain @ (share * step))
                trial = robot.coupled(np.clip(trial, *self._bounds.T))
                answer = single.solve(target, trial)
                reached = float(np.linalg.norm(weights * self._way(answer.q)[columns]))
                if answer.solved and reached < distance * (1.0 - 1e-9):
                    q, distance = answer.q, reached
                    break
                share /= 2
            else:
                break
        return q

    def _inside(
        self, q: np.ndarray, columns: list[int], rows: np.ndarray, way: np.ndarray
    ) -> np.ndarray:
        """Part of a way that leaves the outputs at rest and no joint beyond its limits."""
        free = np.ones(len(columns), dtype=bool)
        low, high = (side[columns] for side in self._room(q))
        while True:
            kept = rows[:, free]
            step = np.zeros(len(columns))
            step[free] = way[free] - np.linalg.pinv(kept, rcond=1e-10) @ (kept @ way[free])
            beyond = free & (((low >= 0.0) & (step < 0)) | ((high <= 0.0) & (step > 0)))
            if not beyond.any():
                return step
            free &= ~beyond

    def _room(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Ways to the limits of the freedoms, (nv,) each; infinite of joints with several."""
        robot = self._robot
        low, high = np.full(robot.nv, -np.inf), np.full(robot.nv, np.inf)
        for body in robot.bodies:
            if body.joint.quaternion_at is None and body.joint.nv == 1:
                span, at = robot.v_slice(body.name), robot.q_slice(body.name)
                low[span], high[span] = (self._bounds[at] - q[at, None]).T
        return low, high
