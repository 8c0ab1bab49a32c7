"""Quaternions in what a law takes: where they are, and their normalisation inside its graph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import casadi as ca

from concur.codegen import normalised

if TYPE_CHECKING:
    from concur.control._servo import Servo


def demanded_quaternions(servo: Servo) -> Mapping[int, str]:
    """Where quaternions start in the pose that a servo is given.

    Parameters
    ----------
    servo : Servo
        The servo.

    Returns
    -------
    mapping of int to str
        Name of the output by the place in the pose, shape (pose_size,).
    """
    names = [
        (name, output.name) for output in servo.outputs for name in output.lie.coordinate_names
    ]
    return {place: whose for place, (name, whose) in enumerate(names) if name == "qx"}


def attitudes(servo: Servo) -> ca.Function:
    """Normalise the quaternions of configuration and demanded pose, where a tick takes them in.

    Parameters
    ----------
    servo : Servo
        The servo.

    Returns
    -------
    casadi.Function
        (q, pose) to (q, pose, valid): with unit quaternions, and one if each norm was near one,
        else zero; zero for NaN.
    """
    q, pose = ca.SX.sym("q", servo.nq), ca.SX.sym("pose", servo.pose_size)
    unit, near = normalised(q, servo.quaternions)
    wanted, meant = normalised(pose, demanded_quaternions(servo))
    return ca.Function("attitudes", [q, pose], [unit, wanted, ca.logic_and(near, meant)])
