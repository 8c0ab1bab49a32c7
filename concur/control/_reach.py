"""How much of a reference inverse kinematics reaches, and the decoupling margins on the way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from concur.control._feasibility import REACHED, check_reference
from concur.control._inverse_kinematics import InverseKinematicsSolver
from concur.control._inverse_kinematics_step import coupled_bounds
from concur.control._tracking_law import TrackingLaw
from concur.outputs._kinematics import SOLVE
from concur.outputs._sample import ReferenceSample
from concur.outputs.references import Reference
from concur.robot import as_tree, robot_size

INSTANTS = 21
"""Number of times at which the reference is sought."""


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


def reach(
    servo: TrackingLaw,
    reference: Reference | Callable[[float], ReferenceSample],
    duration: float,
    q0: ArrayLike | None,
) -> Reach:
    """Seek the outputs along a reference; `Servo.reach` has the arguments."""
    robot = as_tree(servo.model.system, f"reach of `{servo.name}`", SOLVE)
    fitted, length, q = check_reference(servo, reference, duration, q0)
    units = [unit for output in servo.outputs for unit in output.lie.error_units]
    lengths = np.array([robot_size(robot) if unit == "m" else 1.0 for unit in units])
    solvers = [InverseKinematicsSolver(robot, servo.outputs, starts=starts) for starts in (1, 10)]
    q = robot.coupled(np.clip(q, *coupled_bounds(robot).T))
    times = np.linspace(0.0, length, INSTANTS)
    path, errors = [], []
    for pose in fitted.sample(times)[0]:
        for solver in solvers:
            found = solver.solve(pose, q)
            if found.solved:
                break
        q = found.q
        path.append(q)
        errors.append(found.error)
    off = np.abs(np.array(errors) / lengths).max(axis=1)
    margins = np.array([servo.margin(at) for at in path])
    complete = bool(off.max() <= REACHED)
    return Reach(times, np.array(path), np.array(errors), margins, complete, int(off.argmax()))
