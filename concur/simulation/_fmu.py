"""The full-order plant as a unit for co-simulation: controls in, motion out."""

from __future__ import annotations

from typing import Any

import casadi as ca

from concur.codegen import FINITE, Array, normalised
from concur.errors import SimulationError
from concur.export import Entry, FmuModel, Signal, configuration, momentum, velocities
from concur.reduction import ReducedModel
from concur.robot import Mechanism, controls
from concur.system import System

SLIP = 1e-6
"""Share of the velocities by which wheels may slip at the start."""


def plant_fmu(
    robot: System, moved: ca.Function, model: ReducedModel | None, step: float
) -> FmuModel:
    """Describe a plant as an FMU, which starts from shape velocities if a model is given.

    `moved` is the step of the plant, from (q, v, u, h) to (q, v).
    State q, v; input u; outputs q, v, energy, of a tree the momentum and, with a model, s;
    parameters q0 and v0, or with a model q0, s0 and, for a floating robot, momentum0.
    """
    where = f"plant of `{robot.name}`"
    if not step > 0.0:
        raise SimulationError(
            f"{where}, `step`",
            expected="a time above zero, s",
            came=str(step),
            cure="Take 1e-3, or less for a fast robot.",
        )
    if model is not None:
        if _shape(robot) != _shape(model.system):
            raise SimulationError(
                f"{where}, `model`",
                expected="a reduced model of this robot",
                came=f"one of `{model.name}`",
                cure="Give what `reduce` makes of the robot.",
            )
        model = model.on(robot)
    every, moving = (
        {i: robot.freedom_names[i] for i in freedoms}
        for freedoms in (range(robot.nv), () if model is None else model.shape)
    )
    driven = map(Entry, *controls(robot))
    of_robot = "momentum of the whole robot, about the inertial origin, in inertial axes"
    at_start, of_shape = "at the start", list[Signal]()
    if model is None:
        starts = [velocities(robot, every, "v0", "parameter", f"all velocities {at_start}")]
    else:
        meaning = "velocities of the shape"
        starts = [velocities(robot, moving, "s0", "parameter", f"{meaning} {at_start}")]
        of_shape = [velocities(robot, moving, "s", "output", meaning)]
        if model.takes_momentum:
            starts.append(momentum("momentum0", "parameter", of_robot, model.momentum))
    signals = [
        Signal("u", "input", "forces and torques of the drives", tuple(driven)),
        configuration(robot, "q0", "parameter", f"configuration {at_start}"),
        *starts,
        configuration(robot, "q", "output", "configuration"),
        velocities(robot, every, "v", "output", "all velocities, body twists"),
        *of_shape,
        Signal(
            "energy",
            "output",
            "kinetic energy and potential energy; that of gravity is zero at the inertial origin",
            (Entry("", "J"),),
            scalar=True,
        ),
    ]
    if isinstance(robot, Mechanism):
        signals.append(momentum("momentum", "output", of_robot))
    slip = "; `v0` has to leave the wheels without slip" if robot.nf and model is None else ""
    return FmuModel(
        name=f"{robot.name}_plant",
        description=f"Full-order dynamics of {robot.name}: motion under controls that are held "
        "over a step.",
        signals=signals,
        outputs=_outputs(robot, model),
        state=("q", "v"),
        initial=_initial(robot, model),
        move=_named(moved),
        unsound="numbers have to be finite, quaternions and directions within 1e-3 of unit length"
        f"{slip}.",
        step_size=step,
    )


def _shape(system: System) -> Any:
    """Bodies and joints of a tree, in which a plant and a reduced model have to agree."""
    if not isinstance(system, Mechanism):
        return system
    return [(body.name, body.parent, type(body.joint)) for body in system.bodies]


def _initial(robot: System, model: ReducedModel | None) -> ca.Function:
    """The state at the start, and whether a robot can have it."""
    q0 = ca.SX.sym("q0", robot.nq)
    q, near = normalised(q0, robot.quaternions)
    if model is None:
        v = ca.SX.sym("v0", robot.nv)
        inputs = {"q0": q0, "v0": v}
    else:
        s = ca.SX.sym("s0", model.ns)
        inputs = {"q0": q0, "s0": s}
        momentum = ca.SX.sym("momentum0", model.nm)
        if model.takes_momentum:
            inputs["momentum0"] = momentum
        v = model.velocity(q, s, momentum)
    v = ca.densify(v)
    sound = ca.logic_and(near, ca.fabs(ca.sum1(ca.fabs(q0)) + ca.sum1(ca.fabs(v))) <= FINITE)
    if isinstance(robot, Mechanism):
        for mimic in robot.mimics:
            due = mimic.multiplier * q[robot.q_slice(mimic.of)] + mimic.offset
            off = ca.fabs(q[robot.q_slice(mimic.body)] - due)
            sound = ca.logic_and(sound, off <= SLIP * (1.0 + ca.fabs(due)))
        if robot.steering:
            steered = robot.normalize(q)
            off = ca.norm_inf(ca.densify(steered - q))
            sound = ca.logic_and(sound, off <= SLIP)
    if robot.nf and model is None:
        slip = ca.norm_inf(robot.constraints(q) @ v)
        sound = ca.logic_and(sound, slip <= SLIP * (1.0 + ca.norm_inf(v)))
    results: list[Array] = [q, v, sound]
    return ca.Function(
        "initial",
        list(inputs.values()),
        results,
        list(inputs),
        ["q", "v", "sound"],
        {"cse": True},
    )


def _named(moved: ca.Function) -> ca.Function:
    """The step of a plant, its results called as the parts of the state that they become."""
    symbols = moved.mx_in()
    options = {"allow_duplicate_io_names": True}
    return ca.Function("move", symbols, moved.call(symbols), moved.name_in(), ["q", "v"], options)


def _outputs(robot: System, model: ReducedModel | None) -> ca.Function:
    q, v = ca.SX.sym("q", robot.nq), ca.SX.sym("v", robot.nv)
    energy = robot.kinetic_energy(q, v) + robot.potential_energy(q)
    results = {"energy": ca.densify(energy)}
    if isinstance(robot, Mechanism):
        results["momentum"] = ca.densify(robot.momentum(q, v))
    if model is not None:
        results["s"] = v[list(model.shape)]
    return ca.Function(
        "outputs", [q, v], list(results.values()), ["q", "v"], list(results), {"cse": True}
    )
