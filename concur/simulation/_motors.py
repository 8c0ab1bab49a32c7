"""Numbers that the motors of a robot state: what imperfections and heat of drives take from it."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from concur.control import SLACK
from concur.results import Row
from concur.robot import Mechanism, Motor, controls
from concur.system import System

FRICTION = ("viscous", "coulomb", "stribeck")
"""Kinds of friction, in the order of `Motor.friction`."""


def motor_numbers(kind: str, robot: System) -> dict[str, float]:
    """Numbers of a kind of imperfections that the motors of a robot state, SI units.

    Parameters
    ----------
    kind : str
        One of `KINDS`.
    robot : System
        The robot; without bodies it has no motors.

    Returns
    -------
    dict of str to float
        By control, at the motor, or by joint. Limits of torque include those of joints.
    """
    if not isinstance(robot, Mechanism):
        return {}
    if kind == "torque_limit":
        return dict(zip(robot.control_names, robot.control_limits.tolist(), strict=True))
    found = dict[str, float]()
    for motor in robot.motors:
        heated, limited = motor.thermal_time is not None, motor.no_load_speed < math.inf
        if kind in FRICTION and getattr(motor, kind):
            found[motor.name] = motor.friction[FRICTION.index(kind)]
        elif kind == "motor_inertia" and motor.rotor:
            found[motor.name] = motor.rotor
        elif kind == "efficiency" and motor.efficiency < 1.0:
            found[motor.name] = motor.efficiency
        elif limited and kind in ("no_load_speed", "stall_torque"):
            found[motor.name] = motor.stall if kind == "stall_torque" else motor.no_load_speed
        elif heated and kind in ("continuous", "thermal_time"):
            found[motor.name] = getattr(motor, kind)
        elif kind == "resolution":
            found |= _steps(robot, motor)
    return found


def _steps(robot: Mechanism, motor: Motor) -> dict[str, float]:
    """Steps of the coordinates of joints, rad or m, that the encoder of a motor reads alone."""
    if motor.encoder is None:
        return {}
    if motor.encoder_at == "motor":
        alone = motor.ratios if len(motor.ratios) == 1 else ()
        return dict.fromkeys(alone, _turn(robot, motor) / motor.encoder / motor.reduction)
    units = dict(zip(robot.freedom_names, robot.effort_units, strict=True))
    turns = {name: 1.0 if units[name] == "N" else 2.0 * math.pi for name in motor.ratios}
    return {name: turn / motor.encoder for name, turn in turns.items()}


def _turn(robot: Mechanism, motor: Motor) -> float:
    """Unit of the counts of the encoder on a motor: a turn, rad, or a metre of a linear one."""
    unit = robot.control_units[robot.control_names.index(motor.name)]
    return 1.0 if unit == "N" else 2.0 * math.pi


def shared_encoders(robot: System) -> list[tuple[Mapping[str, float], float]]:
    """Encoders on motors with several joints: ratios of the joints, and step of the motor, rad."""
    if not isinstance(robot, Mechanism):
        return []
    return [
        (motor.ratios, _turn(robot, motor) / motor.encoder)
        for motor in robot.motors
        if motor.encoder is not None and motor.encoder_at == "motor" and len(motor.ratios) > 1
    ]


def stribeck_sides(robot: System) -> np.ndarray | float:
    """Speed of each control where the joint's side turns at 1, if its friction is given there."""
    if not isinstance(robot, Mechanism):
        return 1.0
    sides = dict.fromkeys(robot.control_names, 1.0)
    for motor in robot.motors:
        if motor.stribeck and motor.friction_at == "joint":
            sides[motor.name] = motor.reduction
    found = np.array(list(sides.values()))
    return found if np.any(found != 1.0) else 1.0


IDLE = {
    "friction": FRICTION,
    "efficiency": ("efficiency",),
    "line of speed and torque": ("no_load_speed",),
    "encoder": ("resolution",),
}


def idle_numbers(robot: System) -> str:
    """Numbers of motors, in words, that have no effect where drives are ideal."""
    found = {
        words: any(motor_numbers(kind, robot) for kind in kinds) for words, kinds in IDLE.items()
    }
    found["encoder"] |= bool(shared_encoders(robot))
    return ", ".join(words for words, given in found.items() if given)


def heat_rows(robot: System, heat: np.ndarray) -> list[Row]:
    """Largest heat of each motor that has a limit of it, shape (k, n), beside the limit."""
    names = motor_numbers("continuous", robot)
    return [
        Row.judged(f"heat of motor {name}, largest", float(part.max()), 1.0, slack=SLACK)
        for name, part in zip(names, heat.T, strict=True)
    ]


def heat_of(robot: System, t: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Heat of the motors that have a limit of it, for torques that are held from row to row.

    Parameters
    ----------
    robot : System
        The robot.
    t : numpy.ndarray
        Times, shape (k,), s.
    u : numpy.ndarray
        Torques of the controls, shape (k, nu), N m or N.

    Returns
    -------
    numpy.ndarray
        Shape (k, n), cold at the start; 1 is the limit.
    """
    most, time = (motor_numbers(kind, robot) for kind in ("continuous", "thermal_time"))
    names = controls(robot)[0]
    places = [names.index(name) for name in most]
    ends = (u[:-1, places] / np.array(list(most.values()))) ** 2
    decay = np.exp(-np.diff(t)[:, None] / np.array(list(time.values())))
    found = np.zeros((len(t), len(places)))
    for k, (end, kept) in enumerate(zip(ends, decay, strict=True)):
        found[k + 1] = end + (found[k] - end) * kept
    return found
