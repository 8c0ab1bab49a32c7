"""Quaternions of a demanded pose: where they are, and whether they are some."""

from __future__ import annotations

from typing import TYPE_CHECKING

import casadi as ca

from concur.codegen import DRIFT, Array

if TYPE_CHECKING:
    from concur.control._servo import Servo


def demanded_quaternions(servo: Servo) -> tuple[int, ...]:
    """Where quaternions start in the pose that a servo is given.

    Parameters
    ----------
    servo : Servo
        The servo.

    Returns
    -------
    tuple of int
        Places in the pose, shape (pose_size,).
    """
    names = [name for output in servo.outputs for name in output.lie.coordinate_names]
    return tuple(place for place, name in enumerate(names) if name == "qx")


def attitudes_hold(servo: Servo, pose: Array) -> Array:
    """Whether the quaternions of a demanded pose are some: the measure for those of q.

    Parameters
    ----------
    servo : Servo
        The servo.
    pose : casadi.SX
        Demanded pose, shape (pose_size,).

    Returns
    -------
    casadi.SX
        One if the square of each norm is nearly one, else zero; zero for NaN.
    """
    sound = ca.SX(1)
    for start in demanded_quaternions(servo):
        square = ca.sumsqr(pose[start : start + 4])
        sound = ca.logic_and(sound, ca.fabs(square - 1.0) < DRIFT)
    return sound
