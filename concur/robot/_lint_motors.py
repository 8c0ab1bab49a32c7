"""Numbers of motors that are possible but hardly meant: slips of units, and motors too weak."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from concur.robot._body import Body
from concur.robot._mechanism import Mechanism
from concur.robot._motor import Motor
from concur.robot.joints import Free

HEAVIEST = {"N m": 3.0, "N": 1000.0}
"""Inertia of a rotor behind its gear above which it is suspicious: in masses of the robot times the
square of its size, or in masses of the robot. Harmonic drives of arms reflect less than the arm;
a screw of a small lead reflects many masses."""

FASTEST_TURN = 2000.0
"""Speed of a motor, rad/s, above which it is suspicious: 19000 turns per minute."""

CURRENTS = 0.05, 2000.0
"""Currents at the largest torque, A, outside of which torque and torque constant are suspicious."""

HIGHEST = 1500.0
"""Voltage at the no-load speed, V, above which torque constant and speed are suspicious."""

BITS = 32
"""Counts of an encoder up to which they may be bits."""

COARSEST = 0.01
"""Step of such an encoder at the joint, rad, above which it is suspicious."""


def suspicious_motors(robot: Mechanism) -> tuple[str, ...]:
    """Find numbers of motors that suggest another unit, or a motor that moves nothing.

    Parameters
    ----------
    robot : Mechanism
        The robot.

    Returns
    -------
    tuple of str
        One sentence for each finding.
    """
    if not any(motor.ratios for motor in robot.motors):
        return ()
    units = dict(zip(robot.control_names, robot.control_units, strict=True))
    limits = dict(zip(robot.control_names, robot.control_limits.tolist(), strict=True))
    weights, scale = _weights(robot), robot.total_mass * robot.extent**2
    found = []
    for motor in (motor for motor in robot.motors if motor.ratios):
        largest = min(limits[motor.name], motor.stall)
        of_scale = {"N m": scale, "N": robot.total_mass}
        slides = robot.effort_units[robot.freedom_names.index(next(iter(motor.ratios)))]
        texts = (
            *_units(motor, units[motor.name], HEAVIEST[slides] * of_scale[slides]),
            *_weak(motor, units[motor.name], largest, weights),
        )
        found += [f"motor `{motor.name}`: {text}" for text in texts]
    return tuple(found)


def repeated_limits(
    bodies: Iterable[Body], motors: Sequence[Motor]
) -> Iterator[tuple[Body, str, Motor]]:
    """Find limits of joints that state the number of their only motor again.

    Parameters
    ----------
    bodies : iterable of Body
        The bodies.
    motors : sequence of Motor
        The motors.

    Yields
    ------
    body : Body
        Body of the joint.
    field : str
        Its field, "torque_limit" or "speed_limit".
    motor : Motor
        The motor.
    """
    for body in bodies:
        of_joint = [motor for motor in motors if body.joint_label in motor.ratios]
        if len(of_joint) != 1 or len(of_joint[0].ratios) != 1:
            continue
        motor = of_joint[0]
        torque, speed = motor.torque * motor.reduction, motor.speed / motor.reduction
        for field, most in (("torque_limit", torque), ("speed_limit", speed)):
            if most < math.inf and math.isclose(getattr(body, field)[0], most, rel_tol=1e-9):
                yield body, field, motor


def _units(motor: Motor, unit: str, heaviest: float) -> Iterator[str]:
    """Gear, rotor, speeds, torque constant and encoder."""
    gear = motor.reduction
    inertia, turns = ("kg m^2", "rad/s") if unit == "N m" else ("kg", "m/s")
    if len(motor.ratios) == 1 and abs(motor.gear) < 1.0:
        yield (
            f"gear {motor.gear:g}, slower than its joint: `gear` is the turns of the motor per "
            f"turn of the joint: {1.0 / motor.gear:.4g} instead?"
        )
    if motor.rotor * gear**2 > heaviest > 0.0:
        yield (
            f"rotor of {motor.rotor:g} {inertia}, {motor.rotor * gear**2:.3g} behind the gear, "
            "more than the robot: g cm^2 or kg cm^2 instead of kg m^2?"
        )
    for name in ("speed", "no_load_speed"):
        speed = getattr(motor, name)
        if unit == "N m" and FASTEST_TURN < speed < math.inf:
            yield (
                f"`{name}` {speed:g} {turns}: turns per minute instead of {turns}? {speed:g} per "
                f"minute are {speed * math.pi / 30.0:.4g} {turns}"
            )
    constant, current = motor.torque_constant, 0.0
    if constant is not None:
        volts = constant * motor.no_load_speed
        if motor.torque < math.inf:
            current = motor.torque / constant
        if HIGHEST < volts < math.inf:
            yield (
                f"torque constant {constant:g} {unit}/A, which at the no-load speed needs "
                f"{volts:.4g} V: m{unit}/A instead of {unit}/A?"
            )
        elif current and not CURRENTS[0] <= current <= CURRENTS[1]:
            yield (
                f"largest torque {motor.torque:g} {unit}, at {constant:g} {unit}/A a current of "
                f"{current:.4g} A: m{unit} instead of {unit}?"
            )
    counts, side = motor.encoder, gear if motor.encoder_at == "motor" else 1.0
    if unit == "N m" and counts and counts <= BITS and math.tau / counts / side > COARSEST:
        yield (
            f"encoder of {counts} counts, {math.tau / counts / side:.2g} rad at the joint each: "
            f"bits instead of counts? {counts} bits are {2**counts} counts"
        )


def _weak(motor: Motor, unit: str, largest: float, weights: dict[str, float]) -> Iterator[str]:
    """Torques that the motor cannot use, and loads that it cannot move."""
    if motor.torque > motor.stall and motor.torque < math.inf:
        yield (
            f"largest torque {motor.torque:g} {unit} above its stall torque of {motor.stall:g} "
            f"{unit}: it never drives with more than that"
        )
    if largest < motor.continuous < math.inf:
        yield (
            f"continuous torque {motor.continuous:g} {unit} above its largest of {largest:g} "
            f"{unit}: its heat is no limit"
        )
    viscous, coulomb, excess = motor.friction
    other = "joint" if motor.friction_at == "motor" else "motor"
    hint = f'it is stated at the {motor.friction_at}; friction_at = "{other}" instead?'
    fastest, dry = min(motor.speed, motor.no_load_speed), coulomb + excess
    if dry >= motor.efficiency * largest:
        yield (
            f"dry friction of {dry:.3g} {unit} at the motor, beside a largest torque of "
            f"{largest:g} {unit}: it never moves; {hint}"
        )
    elif fastest < math.inf and viscous * fastest >= largest:
        yield (
            f"viscous friction of {viscous * fastest:.3g} {unit} at its largest speed, beside a "
            f"largest torque of {largest:g} {unit}; {hint}"
        )
    if len(motor.ratios) == 1:
        needed = abs(weights.get(next(iter(motor.ratios)), 0.0)) / motor.reduction
        if needed > largest:
            yield (
                f"the weight that it carries with the other joints at zero needs {needed:.3g} "
                f"{unit}, its largest torque is {largest:g} {unit}: a stronger motor or more gear?"
            )


def _weights(robot: Mechanism) -> dict[str, float]:
    """Force or torque of the weight on each freedom, at zero or the limits next to it."""
    if isinstance(robot.base.joint, Free) or not np.any(robot.gravity):
        return {}
    q = np.array(robot.neutral(), dtype=float)
    for body in robot.bodies:
        if body.joint.quaternion_at is None:
            low, high = np.array(body.limits, dtype=float).reshape(-1, 2).T
            place = robot.q_slice(body.name)
            q[place] = np.clip(q[place], low, high)
    forces = np.asarray(robot.bias(q, np.zeros(robot.nv))).ravel()
    return dict(zip(robot.freedom_names, forces.tolist(), strict=True))
