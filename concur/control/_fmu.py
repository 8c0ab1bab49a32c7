"""A servo as a unit for co-simulation: what goes in and out, with units and axes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import casadi as ca
import numpy as np

from concur.codegen import FmuModel, FmuVariable
from concur.control._allocation import HOLE, SOLVER
from concur.control._tick import TickStatus, takes_momentum, tick_function
from concur.mechanism import Tree
from concur.reduction import MomentumReduction

if TYPE_CHECKING:
    from concur.control._servo import Servo

MESSAGES = {
    TickStatus.OK: "The controls may be used.",
    TickStatus.BAD_INPUT: "An input is not finite.",
    TickStatus.NO_ATTITUDE: "A quaternion of the configuration is none.",
    TickStatus.SINGULAR: "The law is nearer to singular than the servo's margin.",
    TickStatus.NO_RESULT: "The controls are not finite: the demand is too large.",
    TickStatus.NO_TORQUE_WITHIN_LIMITS: "No controls within limits were found.",
    TickStatus.FAILED: "The evaluation did not run to its end.",
}
"""What each status of a unit says; with any but the first the controls are zero."""

MOMENTUM = ("px", "py", "pz", "lx", "ly", "lz")
MOMENTUM_UNITS = ("kg.m/s",) * 3 + ("kg.m2/s",) * 3

_FINITE = 1e300


def configuration_variable(robot: Tree, name: str, causality: str, description: str) -> FmuVariable:
    """A configuration as a variable, neutral at the start.

    Parameters
    ----------
    robot : Tree
        The robot.
    name, causality, description : str
        As for `FmuVariable`.

    Returns
    -------
    FmuVariable
        Of nq numbers.
    """
    pairs = [
        (body.name if body.joint.nq == 1 else f"{body.name}[{coordinate}]", unit)
        for body in robot.bodies
        for coordinate, unit in zip(
            body.joint.coordinate_names, body.joint.coordinate_units, strict=True
        )
    ]
    names, units = zip(*pairs, strict=True)
    start = () if causality == "output" else tuple(map(float, robot.neutral()))
    return FmuVariable(name, causality, description, names, units, start)


def velocity_variable(
    robot: Tree, freedoms: Iterable[int], name: str, causality: str, description: str
) -> FmuVariable:
    """Velocities as a variable, zero at the start.

    Parameters
    ----------
    robot : Tree
        The robot.
    freedoms : iterable of int
        Their places in v.
    name, causality, description : str
        As for `FmuVariable`.

    Returns
    -------
    FmuVariable
        Of as many numbers as freedoms.
    """
    own = [f"{unit}/s" for body in robot.bodies for unit in body.joint.freedom_units]
    names = tuple(robot.freedom_names[i] for i in freedoms)
    units = tuple(own[i] for i in freedoms)
    start = () if causality == "output" else (0.0,) * len(names)
    return FmuVariable(name, causality, description, names, units, start)


def control_variable(robot: Tree, causality: str) -> FmuVariable:
    """Controls as a variable, zero at the start.

    Parameters
    ----------
    robot : Tree
        The robot.
    causality : str
        As for `FmuVariable`.

    Returns
    -------
    FmuVariable
        Of nu numbers, named u.
    """
    driven = robot.actuated_freedoms
    names = tuple(robot.freedom_names[i] for i in driven)
    units = tuple(robot.effort_units[i].replace(" ", ".") for i in driven)
    start = () if causality == "output" else (0.0,) * len(names)
    return FmuVariable("u", causality, "Control forces and torques:", names, units, start)


def servo_fmu(servo: Servo) -> FmuModel:
    """Describe a servo as a unit for co-simulation.

    Parameters
    ----------
    servo : Servo
        The servo.

    Returns
    -------
    FmuModel
        Without a state: the outputs follow from the inputs at once. Inputs are q, s (or v, where
        velocities are measured), pose, twist, acceleration and, where the model rests on one,
        momentum; outputs u, pivot, missed, scale and status, a `TickStatus`.
    """
    robot, model = servo.model.robot, servo.model
    q0 = robot.neutral()
    velocities = range(robot.nv) if servo.measured else model.shape
    word = "All velocities, measured:" if servo.measured else "Shape velocities:"
    names, units = _of_outputs(servo, "coordinate_names"), _of_outputs(servo, "error_units")
    errors = _of_outputs(servo, "error_names")
    zero = (0.0,) * servo.size
    variables = [
        configuration_variable(robot, "q", "input", "Configuration:"),
        velocity_variable(robot, velocities, "v" if servo.measured else "s", "input", word),
        FmuVariable(
            "pose",
            "input",
            "Demanded coordinates of the outputs:",
            names,
            _coordinate_units(servo),
            tuple(map(float, np.asarray(servo.output(q0)))),
        ),
        FmuVariable(
            "twist",
            "input",
            "Demanded velocity of the outputs, of poses in axes of the demand:",
            errors,
            tuple(f"{unit}/s" for unit in units),
            zero,
        ),
        FmuVariable(
            "acceleration",
            "input",
            "Time derivative of the demanded velocity:",
            errors,
            tuple(f"{unit}/s2" for unit in units),
            zero,
        ),
    ]
    first = model.first
    if takes_momentum(servo) and isinstance(first, MomentumReduction):
        momentum = FmuVariable(
            "momentum",
            "input",
            "Spatial momentum about the inertial origin, in inertial axes:",
            MOMENTUM,
            MOMENTUM_UNITS,
            tuple(map(float, first.momentum)),
        )
        variables.append(momentum)
    variables += [
        control_variable(robot, "output"),
        FmuVariable("pivot", "output", "Distance of the law from singular."),
        FmuVariable(
            "missed",
            "output",
            "Acceleration of the outputs that is given up:",
            errors,
            tuple(f"{unit}/s2" for unit in units),
        ),
        FmuVariable(
            "scale", "output", "Size to which torque limits scaled the demand; 1 where none act."
        ),
        FmuVariable(
            "status",
            "output",
            "Not zero where the controls are: "
            + "; ".join(f"{int(code)} {text[:-1].lower()}" for code, text in MESSAGES.items())
            + ".",
            integer=True,
        ),
    ]
    return FmuModel(
        name=f"{servo.name}_servo",
        description=f"Servo of {servo.name}: controls from the state and the demanded motion of "
        f"{', '.join(output.name for output in servo.outputs)}.",
        variables=variables,
        outputs=_function(servo),
        messages=tuple(MESSAGES[code] for code in TickStatus),
    )


def _of_outputs(servo: Servo, which: str) -> tuple[str, ...]:
    """Names of the outputs' parts, or their units."""
    found = []
    for output in servo.outputs:
        parts = getattr(output.lie, which)
        named = which.endswith("names") and len(parts) > 0
        found += [f"{output.name}[{part}]" for part in parts] if named else list(parts)
    return tuple(found)


def _coordinate_units(servo: Servo) -> tuple[str, ...]:
    """Units of the flat coordinates: those of a quaternion have none."""
    units = []
    for output in servo.outputs:
        own = iter(output.lie.error_units)
        units += [
            "1" if name.startswith("q") else next(own) for name in output.lie.coordinate_names
        ]
    return tuple(units)


def _function(servo: Servo) -> ca.Function:
    """The tick, all of its results finite; its velocities named after what they are."""
    tick = tick_function(servo, SOLVER if servo.torque_limits is None else HOLE)
    names = ["v" if name == "s" and servo.measured else name for name in tick.name_in()]
    kind = ca.SX if tick.is_a("SXFunction") else ca.MX
    inputs = [kind.sym(name, tick.size1_in(i)) for i, name in enumerate(names)]
    u, pivot, missed, scale, status = tick.call(inputs)
    told = _told(servo.size).call([pivot, missed, scale])
    given = ["u", "pivot", "missed", "scale", "status"]
    return ca.Function("outputs", inputs, [u, *told, status], names, given)


def _told(size: int) -> ca.Function:
    """Zero in place of what is not finite, which other tools may stop at."""
    inputs = [ca.SX.sym("pivot"), ca.SX.sym("missed", size), ca.SX.sym("scale")]
    told = [ca.if_else(ca.fabs(x) <= _FINITE, x, 0.0) for x in inputs]
    return ca.Function("told", inputs, told)
