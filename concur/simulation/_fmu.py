"""The full-order plant as a unit for co-simulation: controls in, motion out."""

from __future__ import annotations

from collections.abc import Iterable

import casadi as ca

from concur.codegen import (
    FINITE,
    Array,
    Entry,
    FmuModel,
    FmuVariable,
    Signal,
    normalised,
    plain_text,
)
from concur.errors import SimulationError
from concur.reduction import ReducedModel
from concur.robot import Mechanism

SLIP = 1e-6
"""Share of the velocities by which wheels may slip at the start."""


def plant_fmu(
    robot: Mechanism, moved: ca.Function, model: ReducedModel | None, step: float
) -> FmuModel:
    """Describe a plant as an FMU, which starts from shape velocities if a model is given.

    `moved` is the step of the plant, from (q, v, u, h) to (q, v).
    State q, v; input u; outputs q, v, energy, momentum and, with a model, s; parameters q0 and v0,
    or with a model q0, s0 and, for a floating robot, momentum0.
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
        own = [(body.name, body.parent, type(body.joint)) for body in robot.bodies]
        given = [(body.name, body.parent, type(body.joint)) for body in model.robot.bodies]
        if own != given:
            raise SimulationError(
                f"{where}, `model`",
                expected="a reduced model of this robot",
                came=f"one of `{model.name}`",
                cure="Give what `reduce` makes of the robot.",
            )
        model = model.on(robot)
    variables = [
        _controls(robot),
        _configuration(robot, "q0", "parameter", "configuration at the start"),
        *_start_variables(robot, model),
        _configuration(robot, "q", "output", "configuration"),
        _velocities(robot, range(robot.nv), "v", "output", "all velocities, body twists"),
    ]
    if model is not None:
        variables.append(_velocities(robot, model.shape, "s", "output", "velocities of the shape"))
    variables += [
        FmuVariable(
            "energy",
            "output",
            "Kinetic energy and potential energy of gravity, the latter zero at the inertial "
            "origin.",
            units=("J",),
        ),
        _momentum("momentum", "output", "momentum of the whole robot"),
    ]
    slip = "; `v0` has to leave the wheels without slip" if robot.nf and model is None else ""
    return FmuModel(
        name=f"{robot.name}_plant",
        description=f"Full-order dynamics of {robot.name}: motion under controls that are held "
        "over a step.",
        variables=variables,
        outputs=_outputs(robot, model),
        state=("q", "v"),
        initial=_initial(robot, model),
        move=_named(moved),
        unsound=f"numbers have to be finite and quaternions within 1e-3 of unit length{slip}.",
        step_size=step,
    )


def _start_variables(robot: Mechanism, model: ReducedModel | None) -> list[FmuVariable]:
    if model is None:
        every = range(robot.nv)
        return [_velocities(robot, every, "v0", "parameter", "all velocities at the start")]
    word = "velocities of the shape at the start"
    variables = [_velocities(robot, model.shape, "s0", "parameter", word)]
    if model.takes_momentum:
        known = tuple(map(float, model.momentum))
        word = "momentum that the whole robot has"
        variables.append(_momentum("momentum0", "parameter", word, known))
    return variables


def _variable(
    name: str,
    causality: str,
    meaning: str,
    entries: Iterable[tuple[str, str]],
    preset: tuple[float, ...] = (),
) -> FmuVariable:
    named = tuple(Entry(plain_text(name), unit) for name, unit in entries)
    return FmuVariable.of(Signal(name, meaning, named, preset), causality)


def _configuration(robot: Mechanism, name: str, causality: str, meaning: str) -> FmuVariable:
    entries = [
        (body.name if body.joint.nq == 1 else f"{body.name}[{coordinate}]", unit)
        for body in robot.bodies
        for coordinate, unit in zip(
            body.joint.coordinate_names, body.joint.coordinate_units, strict=True
        )
    ]
    return _variable(name, causality, meaning, entries, tuple(robot.neutral()))


def _velocities(
    robot: Mechanism, freedoms: Iterable[int], name: str, causality: str, meaning: str
) -> FmuVariable:
    units = [f"{unit}/s" for body in robot.bodies for unit in body.joint.freedom_units]
    entries = [(robot.freedom_names[i], units[i]) for i in freedoms]
    return _variable(name, causality, meaning, entries)


def _controls(robot: Mechanism) -> FmuVariable:
    entries = list(zip(robot.control_names, robot.control_units, strict=True))
    return _variable("u", "input", "forces and torques of the drives", entries)


def _momentum(
    name: str, causality: str, meaning: str, preset: tuple[float, ...] = ()
) -> FmuVariable:
    where = f"{meaning}, about the inertial origin, in inertial axes"
    units = {"linear": "kg m/s", "angular": "kg m^2/s"}
    entries = [(f"{kind}_{axis}", unit) for kind, unit in units.items() for axis in "xyz"]
    return _variable(name, causality, where, entries, preset)


def _initial(robot: Mechanism, model: ReducedModel | None) -> ca.Function:
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


def _outputs(robot: Mechanism, model: ReducedModel | None) -> ca.Function:
    q, v = ca.SX.sym("q", robot.nq), ca.SX.sym("v", robot.nv)
    energy = robot.kinetic_energy(q, v) + robot.potential_energy(q)
    results = {"energy": energy, "momentum": ca.densify(robot.momentum(q, v))}
    if model is not None:
        results["s"] = v[list(model.shape)]
    return ca.Function(
        "outputs", [q, v], list(results.values()), ["q", "v"], list(results), {"cse": True}
    )
