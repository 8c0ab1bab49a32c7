"""Feasibility of a reference: follow it exactly, without dynamics (CON4)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from concur.control._exact_speeds import ExactSpeeds
from concur.control._singularity import lost_direction
from concur.control._tracking_law import TrackingLaw
from concur.errors import InfeasibleReferenceError
from concur.outputs import reference_for
from concur.outputs._sample import ReferenceSample
from concur.outputs.references import Reference
from concur.robot import as_tree, robot_size, scalar

SIMULATE = "Simulate the loop: run.error, run.margin and run.findings(tolerances) answer."
"""What to do instead for a system without bodies."""

STEP = 0.02
"""Longest way of the reference in a step of the exact motion, rad and parts of the robot's size."""

LEAST, MOST = 201, 10_001
"""Least and largest number of instants: references at rest are checked too, and time is bounded."""

REACHED = 1e-6
"""Largest pose error of a reference that counts as reached, rad and parts of the robot's size."""


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
    """

    feasible: bool
    why: str
    margin: float
    reached: float
    times: np.ndarray
    configurations: np.ndarray
    speeds: np.ndarray

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
                cure="Move the reference into reach and away from singular configurations, or "
                "start elsewhere.",
                time=self.reached,
                margin=self.margin,
            )


def feasibility(
    servo: TrackingLaw,
    reference: Reference | Callable[[float], ReferenceSample],
    duration: float,
    q0: ArrayLike | None,
) -> Feasibility:
    """Check the arguments, and follow the reference from the neutral configuration or q0."""
    return follow(servo, *check_reference(servo, reference, duration, q0))


def check_reference(
    servo: TrackingLaw,
    reference: Reference | Callable[[float], ReferenceSample],
    duration: float,
    q0: ArrayLike | None,
) -> tuple[Reference, float, np.ndarray]:
    """Reference, duration and configuration, neutral without q0, once they fit the servo."""
    where = f"servo of `{servo.name}`"
    robot = as_tree(servo.model.system, where, SIMULATE)
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


def follow(
    servo: TrackingLaw, reference: Reference, duration: float, q0: np.ndarray
) -> Feasibility:
    """Move along a reference with zero error: s = (J H)^+ (gamma^-1 gammadot - J h).

    The exact start is sought from the configuration q0 (nq,).
    """
    robot = servo.model.robot
    size = robot_size(robot)
    units = [unit for output in servo.outputs for unit in output.lie.error_units]
    lengths = np.array([size if unit == "m" else 1.0 for unit in units])
    times = _instants(reference, duration, lengths)
    poses, twists, _ = reference.sample(times)
    speed = ExactSpeeds(servo)

    def advanced(q: np.ndarray, dv: np.ndarray) -> np.ndarray:
        return np.asarray(robot.normalize(robot.integrate(q, dv)))

    def moved(q: np.ndarray, s: np.ndarray, time: float) -> np.ndarray:
        return advanced(q, servo.model.velocity(q, s) * time)

    rates = [unit for body in robot.bodies for unit in body.joint.freedom_units]
    widths = np.array([size if rates[i] == "m" else 1.0 for i in servo.model.shape])

    def rest(q: np.ndarray, pose: np.ndarray) -> np.ndarray:
        return np.asarray(servo.pose_error(q, pose))

    def off(error: np.ndarray) -> float:
        # Metres count as parts of the robot's size: the answer is the same in any unit.
        return float(np.abs(error / lengths).max())

    def orientation(q: np.ndarray) -> float:
        decoupling = servo.decoupling(q)
        square = decoupling.shape[0] == decoupling.shape[1]
        return float(np.sign(np.linalg.det(decoupling))) if square else 1.0

    def corrected(q: np.ndarray, pose: np.ndarray, tries: int, longest: float) -> np.ndarray:
        for _ in range(tries):
            error = rest(q, pose)
            if off(error) < 1e-11:
                break
            step = speed.solve(q, error)
            step *= min(1.0, longest / max(np.abs(step / widths).max(), 1e-300))
            q = advanced(q, servo.model.lift(q)[0] @ step)
        return q

    path: list[np.ndarray] = []
    speeds: list[np.ndarray] = []
    margins: list[float] = []
    q = corrected(q0, poses[0], 200, 0.3)
    start = orientation(q)
    for k, time in enumerate(times):
        if k:
            half = (time - times[k - 1]) / 2
            middle = moved(q, speed(q, twists[k - 1]), half)
            q = corrected(moved(q, speed(middle, twists[k - 1]), 2 * half), poses[k], 12, 0.3)
        error = rest(q, poses[k])
        margin, crossed = servo.margin(q), orientation(q) != start
        if crossed:
            # Between this step and the last the margin went through zero.
            margin = 0.0
        margins.append(margin)
        if margin < servo.singular_margin:
            found = f"margin {margin:.2g}, {lost_direction(servo, q)}"
            if crossed:
                found = f"a singular configuration was passed, {lost_direction(servo, q)}"
        elif off(error) > REACHED:
            found = f"{_worst(servo, error)}, nearest margin {margin:.2g}: out of reach from here"
        else:
            found = ""
        if found:
            return Feasibility(
                False,
                f"lost at t = {time:.3g} s: {found}",
                min(margins),
                float(time),
                times[:k],
                np.array(path).reshape(k, robot.nq),
                np.array(speeds).reshape(k, servo.ns),
            )
        path.append(q)
        speeds.append(speed(q, twists[k]))
    fastest = np.abs(np.array(speeds)).max(axis=0)
    shown = ", ".join(
        f"{name} {x:.3g}" for name, x in zip(servo.model.shape_names, fastest, strict=True)
    )
    return Feasibility(
        True,
        f"followed exactly for {duration:.6g} s, smallest margin {min(margins):.3g}, largest "
        f"speeds {shown}",
        min(margins),
        duration,
        times,
        np.array(path),
        np.array(speeds),
    )


def _instants(reference: Reference, duration: float, lengths: np.ndarray) -> np.ndarray:
    """Equidistant times at which the motion is computed, in any unit of time the same ones."""
    twists = reference.sample(np.linspace(0.0, duration, LEAST))[1]
    way = duration * float(np.abs(twists / lengths).max())
    count = int(min(max(np.ceil(way / STEP) + 1, LEAST), MOST))
    return np.linspace(0.0, duration, count)


def _worst(servo: TrackingLaw, error: np.ndarray) -> str:
    """Name the output that is furthest off: its position and rotation apart."""
    size, found, start = robot_size(servo.model.robot), [], 0
    for output in servo.outputs:
        part, units = error[start : start + output.dim], np.array(output.coordinate_units)
        start += output.dim
        away = {unit: float(np.linalg.norm(part[units == unit])) for unit in dict.fromkeys(units)}
        # Metres count as parts of the robot's size.
        share = max(x / size if unit == "m" else x for unit, x in away.items())
        found.append((share, output.name, " and ".join(f"{x:.3g} {u}" for u, x in away.items())))
    _, name, away_by = max(found)
    return f"output `{name}` stays {away_by} away"
