"""Starts on a reference: configuration and shape velocities with which the outputs follow it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from concur.codegen import finite_floats
from concur.control._exact_speeds import ExactSpeeds
from concur.control._feasibility import REACHED, Measures, sizes
from concur.control._postures import Postures
from concur.control._singularity import lost_direction
from concur.control._tracking_law import TrackingLaw
from concur.errors import InfeasibleReferenceError, OutputError, UnknownNameError
from concur.outputs import Reference, ReferenceSample, reference_for
from concur.outputs._kinematics import SOLVE
from concur.robot import as_tree, scalar

SPEEDS = ("reference", "rest")

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
        Pose error log(r^-1 gamma) at `q`, shape (size,), m and rad: `offset` where it is reached.
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
    servo: TrackingLaw,
    reference: Reference | Callable[[float], ReferenceSample],
    near: ArrayLike | None,
    t: float,
    offset: Any,
    speed: str,
) -> Start:
    """Find configuration and shape velocities on a reference; `Servo.start` has the arguments."""
    where = f"start of `{servo.name}`"
    robot = as_tree(servo.model.system, where, SOLVE)
    if speed not in SPEEDS:
        raise UnknownNameError(
            f"{where}, `speed`",
            expected=" or ".join(f'"{name}"' for name in SPEEDS),
            came=repr(speed)[:40],
            cure='Take "rest" to start with shape velocities of zero.',
        )
    time = scalar(t, f"{where}, `t`")
    pose, twist, _ = servo.flat(reference_for(reference, servo.outputs, where)(time))
    measures = Measures(robot, servo.outputs)
    shift = read_offset(f"{where}, `offset`", offset, measures)
    target = _target(servo, where, np.asarray(pose), shift, measures)
    q = robot.neutral() if near is None else robot.check_configuration(near, f"{where}, `near`")
    found = Postures(servo, q).at(target)
    q, speeds = found.q, ExactSpeeds(servo)
    error = np.asarray(servo.pose_error(q, pose))
    rate = _numbers(servo.error_dynamics.group.transport(error)) @ twist
    s = np.zeros(servo.ns)
    regular = found.margin >= servo.singular_margin
    if speed == "reference" and servo.model.regularity(q) >= servo.singular_margin:
        s = speeds(q, rate) if regular else speeds.damped(q, rate)
    v = np.asarray(servo.model.velocity(q, s))
    left = np.asarray(servo.motion(q, v)[0]) - rate
    lengths = measures.lengths
    fastest = float(np.abs(speeds.asked(q, rate) / lengths).max(initial=0.0))
    # Internal motion alone leaves rounding of the terms that cancel in the outputs.
    own = measures.of([unit for body in robot.bodies for unit in body.joint.freedom_units])
    least = SLIP * fastest + ROUNDING * float(np.abs(v / own).max(initial=0.0))
    residual = np.asarray(servo.pose_error(q, target))
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
        lost = lost_direction(servo, q)
        if robot.drives and found.margin < servo.margin(q):
            names, direction = servo.model.control_names, servo.model.leverage(q)[1]
            lost = f"{', '.join(names)} do not push along {direction}"
        clauses.append(f"margin {found.margin:.2g}, {lost}")
    why = "; ".join(clauses) or f"all outputs are reached, margin {found.margin:.3g}"
    solved = all(reached.values()) and found.margin >= servo.refused_below
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
    servo: TrackingLaw, where: str, pose: np.ndarray, shift: np.ndarray, measures: Measures
) -> np.ndarray:
    """Flat coordinates (pose_size,) at which the pose error is the shift (size,)."""
    if not shift.any():
        return pose
    group = servo.error_dynamics.group
    target = _numbers(group.shifted(pose, shift)).ravel()
    error = _numbers(group.error(target, pose)).ravel()
    for output, span in measures.spans:
        if np.abs(error[span] - shift[span]).max() > 1e-6 * (1.0 + np.abs(shift[span]).max()):
            raise OutputError(
                f"{where}, `offset`, output `{output.name}`",
                expected="an error with a rotation below pi rad",
                came=", ".join(f"{x:.4g}" for x in shift[span]),
                cure="Turn the shorter way round.",
            )
    return target


def _numbers(values: Any) -> np.ndarray:
    return np.array(ca.evalf(ca.SX(values)))
