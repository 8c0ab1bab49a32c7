"""Whether a reference can be followed: exactly, without dynamics (CON4), or by poses alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from concur.control._core import LawCore, require_outputs
from concur.control._inverse_kinematics import InverseKinematicsSolver
from concur.control._inverse_kinematics_step import coupled_bounds
from concur.control._singularity import lost_direction
from concur.errors import InfeasibleReferenceError
from concur.outputs import SOLVE, Output, Reference, ReferenceSample, reference_for
from concur.robot import Mechanism, as_tree, robot_size, scalar

SIMULATE = "Simulate the loop: run.error, run.margin and run.findings(tolerances) answer."
"""What to do instead for a system without bodies."""

STEP = 0.02
"""Longest way of the reference in a step of the exact motion, rad and parts of the robot's size."""

LEAST, MOST = 201, 10_001
"""Least and largest number of instants: references at rest are checked too, and time is bounded."""

REACHED = 1e-6
"""Largest pose error of a reference that counts as reached, rad and parts of the robot's size."""

LONGEST = 0.3
"""Longest correction in a step, rad and parts of the robot's size."""

INSTANTS = 21
"""Number of times at which inverse kinematics seeks a reference."""


@dataclass(frozen=True, eq=False)
class Feasibility:
    """The exact motion along a reference, as far as it exists.

    Parameters
    ----------
    feasible : bool
        Whether it exists to the end.
    why : str
        A sentence with the evidence.
    margin : float
        Smallest margin of the decoupling matrix on the way.
    reached : float
        Time up to which the reference could be followed, s.
    times, configurations, speeds : numpy.ndarray
        The motion, shapes (k,), (k, nq) and (k, ns).
    margins : numpy.ndarray
        Margins on the way, shape (k,).
    """

    cure: ClassVar[str] = (
        "Move the reference into reach and away from singular configurations, or start in another "
        "posture."
    )
    """What to do where it does not."""

    feasible: bool
    why: str
    margin: float
    reached: float
    times: np.ndarray
    configurations: np.ndarray
    speeds: np.ndarray
    margins: np.ndarray

    def require(self, name: str) -> None:
        """Raise unless the reference can be followed.

        Parameters
        ----------
        name : str
            Name of the robot or task.

        Raises
        ------
        InfeasibleReferenceError
            If it cannot.
        """
        if not self.feasible:
            raise InfeasibleReferenceError(
                f"reference of `{name}`",
                expected="a reference that the robot can follow",
                came=self.why,
                cure=self.cure,
                time=self.reached,
                margin=self.margin,
            )


@dataclass(frozen=True, eq=False)
class Reach:
    """Configurations along a reference, found by inverse kinematics.

    Wheels and momentum do not count here: the base may stand anywhere. A reference within reach is
    therefore not always feasible; one out of reach never is.

    Parameters
    ----------
    times : numpy.ndarray
        Equidistant times, shape (k,), s.
    configurations : numpy.ndarray
        Configuration at each time, found from the one before, shape (k, nq).
    errors : numpy.ndarray
        Pose error that is left, shape (k, size), m and rad.
    margins : numpy.ndarray
        Decoupling margins, shape (k,).
    complete : bool
        Whether all outputs are reached at all times.
    worst : int
        Index of the time with the largest error, metres as parts of the robot's size.

    Examples
    --------
    >>> import concur as cc
    >>> task = cc.load_task("examples/rover_arm.toml")
    >>> reach = task.servo.reach(task.reference, task.duration, task.q0)
    >>> reach.complete, reach.times.size
    (True, 21)
    >>> bool(reach.margins.min() > task.servo.singular_margin)
    True
    """

    times: np.ndarray
    configurations: np.ndarray
    errors: np.ndarray
    margins: np.ndarray
    complete: bool
    worst: int


class Measures:
    """Sizes of errors of outputs: metres count as parts of the robot's size.

    So answers are the same in any unit.
    """

    def __init__(self, robot: Mechanism, outputs: Sequence[Output]) -> None:
        self.size = robot_size(robot)
        self.lengths = self.of([unit for output in outputs for unit in output.lie.error_units])
        ends = np.cumsum([0, *(output.dim for output in outputs)]).tolist()
        self.spans = [(o, slice(*ends[i : i + 2])) for i, o in enumerate(outputs)]

    def of(self, units: Sequence[str]) -> np.ndarray:
        """Numbers that count as one, by unit."""
        return np.array([self.size if unit == "m" else 1.0 for unit in units])

    def off(self, error: np.ndarray) -> float:
        """Largest entry of an error (size,)."""
        return float(np.abs(error / self.lengths).max())

    def worst(self, error: np.ndarray) -> str:
        """Name the output that is furthest off."""
        shares = [float(np.abs(error / self.lengths)[span].max()) for _, span in self.spans]
        output, span = self.spans[int(np.argmax(shares))]
        return f"output `{output.name}` stays {sizes(output, error[span])} away"


def sizes(output: Output, part: np.ndarray, per: str = "") -> str:
    """Lengths of an error's linear and angular part, such as "0.1 m and 0.2 rad"."""
    kinds = np.array(output.coordinate_units)
    return " and ".join(
        f"{np.linalg.norm(part[kinds == unit]):.3g} {unit}{per}" for unit in dict.fromkeys(kinds)
    )


class ExactSpeeds:
    """Shape velocities with which the outputs have a velocity: s = (J H)^+ (velocity - J h)."""

    def __init__(self, servo: LawCore) -> None:
        self._servo, self._still = servo, np.zeros(servo.ns)
        # Metric and pull of the servo's rule for internal motion, if there is any.
        self._cruise: ca.Function | None = None
        if servo.redundancy is not None:
            q = ca.SX.sym("q", servo.nq)
            parts = servo.redundancy.cruise(servo.model, q)
            self._cruise = ca.Function("cruise", [q], [*map(ca.densify, parts)], {"cse": True})

    def asked(self, q: np.ndarray, rate: np.ndarray) -> np.ndarray:
        """Velocity of the outputs (size,) that the shape velocities have to give.

        The output velocity due to the momentum does not depend on the shape velocities.
        """
        servo = self._servo
        return np.asarray(rate - servo.motion(q, servo.model.velocity(q, self._still))[0])

    def solve(self, q: np.ndarray, rate: np.ndarray) -> np.ndarray:
        """Least squares of J H s = rate."""
        return np.asarray(np.linalg.lstsq(self._servo.decoupling(q), rate, rcond=1e-12)[0])

    def __call__(self, q: np.ndarray, rate: np.ndarray) -> np.ndarray:
        """Shape velocities (ns,), internal motion in the steady state of the servo's rule."""
        asked = self.asked(q, rate)
        if self._cruise is None:
            return self.solve(q, asked)
        metric, pull = (np.array(part) for part in self._cruise(q))
        rest_of = asked - self._servo.decoupling(q) @ pull[:, 0]
        return np.asarray(pull[:, 0] + self._nearest(q, rest_of, metric))

    def damped(self, q: np.ndarray, rate: np.ndarray) -> np.ndarray:
        """Least squares without the directions that the law counts as singular."""
        servo = self._servo
        factor = np.linalg.cholesky(servo.model.mass_matrix(q))
        rows = servo.margins.scales[0]
        scaled = np.linalg.solve(factor, (rows[:, None] * servo.decoupling(q)).T).T
        left, values, right = np.linalg.svd(scaled, full_matrices=False)
        good = values >= servo.singular_margin
        parts = (left.T @ (rows * self.asked(q, rate)))[good] / values[good]
        return np.asarray(np.linalg.solve(factor.T, right[good].T @ parts))

    def _nearest(self, q: np.ndarray, rate: np.ndarray, metric: np.ndarray) -> np.ndarray:
        factor = np.linalg.cholesky(metric)
        weighed = np.linalg.solve(factor, self._servo.decoupling(q).T).T
        return np.asarray(np.linalg.solve(factor.T, np.linalg.lstsq(weighed, rate, rcond=1e-12)[0]))


def feasibility(
    self: LawCore,
    reference: Reference | Callable[[float], ReferenceSample],
    duration: float,
    q0: ArrayLike | None = None,
) -> Feasibility:
    """Follow a reference exactly, without dynamics, and report where that ends (CON4).

    Parameters
    ----------
    reference : Reference
        Reference of all outputs.
    duration : float
        How long, s.
    q0 : array_like, optional
        Configuration from which the exact start is sought, shape (nq,).

    Returns
    -------
    Feasibility
        Whether the motion exists, its smallest margin, and the motion.
    """
    # With zero error s = (J H)^+ (gamma^-1 gammadot - J h).
    reference, length, first = _checked(self, reference, duration, q0, SIMULATE)
    walk = _Walk(self)
    units = [unit for output in self.outputs for unit in output.lie.paths.error_units]
    times = _instants(reference, length, walk.measures.of(units))
    poses, twists, _ = reference.sample(times)
    path, speeds, margins = list[np.ndarray](), list[np.ndarray](), list[float]()
    found, q = "", walk.corrected(first, poses[0], 200)
    start = walk.orientation(q)
    for k, time in enumerate(times):
        if k:
            moved = walk.moved(q, twists[k - 1], time - times[k - 1])
            q = walk.corrected(moved, poses[k], 12)
        # Between this step and the last the margin went through zero.
        crossed = walk.orientation(q) != start
        margins.append(0.0 if crossed else self.margin(q))
        found = walk.obstacle(q, poses[k], margins[-1], crossed)
        if found:
            found = f"lost at t = {time:.3g} s: {found}"
            break
        path.append(q)
        speeds.append(walk.following(q, twists[k]))
    count, least = len(path), min(margins)
    if not found:
        fastest = zip(self.model.shape_names, np.abs(np.array(speeds)).max(axis=0), strict=True)
        why = (
            f"followed exactly for {length:.6g} s, smallest margin {least:.3g}, largest speeds "
            + ", ".join(f"{name} {x:.3g}" for name, x in fastest)
        )
    return Feasibility(
        not found,
        found or why,
        least,
        float(times[count]) if found else length,
        times[:count],
        np.array(path).reshape(count, self.nq),
        np.array(speeds).reshape(count, self.ns),
        np.array(margins[:count]),
    )


class _Walk:
    """Steps of the exact motion of a law's robot."""

    def __init__(self, servo: LawCore) -> None:
        self.servo, self.robot, self.speed = servo, servo.model.robot, ExactSpeeds(servo)
        self.measures = Measures(self.robot, servo.outputs)
        units = [unit for body in self.robot.bodies for unit in body.joint.freedom_units]
        self.widths = self.measures.of([units[i] for i in servo.model.shape])

    def moved(self, q: np.ndarray, twist: np.ndarray, time: float) -> np.ndarray:
        """Configuration after a time, by the midpoint rule."""
        model = self.servo.model
        middle = self._advanced(q, model.velocity(q, self.following(q, twist)) * (time / 2))
        return self._advanced(q, model.velocity(middle, self.following(middle, twist)) * time)

    def following(self, q: np.ndarray, twist: np.ndarray) -> np.ndarray:
        """Shape velocities (ns,) at which outputs on the reference follow its twist."""
        servo = self.servo
        if servo.twist_size != servo.size:  # directions see a turn along their normals
            group, still = servo.error_dynamics.group, np.zeros(servo.size)
            twist = np.array(ca.DM(group.transport(still, servo.output(q)))) @ twist
        return self.speed(q, twist)

    def corrected(self, q: np.ndarray, pose: np.ndarray, tries: int) -> np.ndarray:
        """Configuration after steps of Newton's method towards a pose of the outputs."""
        for _ in range(tries):
            error = np.asarray(self.servo.pose_error(q, pose))
            if self.measures.off(error) < 1e-11:
                break
            step = self.speed.solve(q, error)
            step *= min(1.0, LONGEST / max(np.abs(step / self.widths).max(), 1e-300))
            q = self._advanced(q, self.servo.model.lift(q)[0] @ step)
        return q

    def orientation(self, q: np.ndarray) -> float:
        """Sign of the determinant of a square decoupling matrix."""
        decoupling = self.servo.decoupling(q)
        square = decoupling.shape[0] == decoupling.shape[1]
        return float(np.sign(np.linalg.det(decoupling))) if square else 1.0

    def obstacle(self, q: np.ndarray, pose: np.ndarray, margin: float, crossed: bool) -> str:
        """Say why the motion ends here; empty where it does not."""
        servo = self.servo
        if crossed:
            return f"a singular configuration was passed, {lost_direction(servo, q)}"
        if margin < servo.singular_margin:
            return f"margin {margin:.2g}, {lost_direction(servo, q)}"
        error = np.asarray(servo.pose_error(q, pose))
        if self.measures.off(error) > REACHED:
            away = self.measures.worst(error)
            return f"{away}, nearest margin {margin:.2g}: out of reach from here"
        return ""

    def _advanced(self, q: np.ndarray, dv: np.ndarray) -> np.ndarray:
        return np.asarray(self.robot.normalize(self.robot.integrate(q, dv)))


def _instants(reference: Reference, duration: float, lengths: np.ndarray) -> np.ndarray:
    """Equidistant times at which the motion is computed, in any unit of time the same ones."""
    twists = reference.sample(np.linspace(0.0, duration, LEAST))[1]
    way = duration * float(np.abs(twists / lengths).max())
    count = int(min(max(np.ceil(way / STEP) + 1, LEAST), MOST))
    return np.linspace(0.0, duration, count)


def reach(
    self: LawCore,
    reference: Reference | Callable[[float], ReferenceSample],
    duration: float,
    q0: ArrayLike | None = None,
) -> Reach:
    """Seek configurations along a reference by inverse kinematics.

    Parameters
    ----------
    reference : Reference or callable
        Reference of all outputs.
    duration : float
        Time up to which it is sought, s.
    q0 : array_like, optional
        Configuration from which the search starts, shape (nq,); default neutral.

    Returns
    -------
    Reach
        Configurations, remaining errors and margins at twenty-one times.

    Raises
    ------
    InfeasibleReferenceError
        If the duration is not above zero.
    """
    reference, length, q = _checked(self, reference, duration, q0, SOLVE)
    robot = self.model.robot
    measures = Measures(robot, self.outputs)
    solvers = [InverseKinematicsSolver(robot, self.outputs, starts=starts) for starts in (1, 10)]
    q = robot.coupled(np.clip(q, *coupled_bounds(robot).T))
    times = np.linspace(0.0, length, INSTANTS)
    path, errors = [], []
    for pose in reference.sample(times)[0]:
        for solver in solvers:
            found = solver.solve(pose, q)
            if found.solved:
                break
        q = found.q
        path.append(q)
        errors.append(found.error)
    off = np.array([measures.off(error) for error in errors])
    margins = np.array([self.margin(at) for at in path])
    complete = bool(off.max() <= REACHED)
    return Reach(times, np.array(path), np.array(errors), margins, complete, int(off.argmax()))


def _checked(
    servo: LawCore,
    reference: Reference | Callable[[float], ReferenceSample],
    duration: float,
    q0: ArrayLike | None,
    instead: str,
) -> tuple[Reference, float, np.ndarray]:
    """Reference, duration and configuration, neutral without q0, once they fit the servo."""
    where = f"servo of `{servo.name}`"
    require_outputs(servo, where)
    robot = as_tree(servo.model.system, where, instead)
    fitted = reference_for(reference, servo.outputs, where)
    length = scalar(duration, f"{where}, `duration`")
    if length <= 0.0:
        raise InfeasibleReferenceError(
            f"{where}, `duration`",
            expected="a time above zero, s",
            came=str(duration),
            cure="Give the duration for which the reference is followed.",
        )
    return fitted, length, robot.check_configuration(robot.neutral() if q0 is None else q0)
