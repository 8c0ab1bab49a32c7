"""Reader of the table [proof] of a task: starts, imperfections and limits of a proof."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Annotated, Any

import casadi as ca
import numpy as np
from annotated_types import Ge, Len, Lt

from concur.control import JointLimits, Servo
from concur.errors import OutputError
from concur.outputs import Output
from concur.proofs import Capsule, Clearance, Expression, Ground, Obstacle, Reading, Statement
from concur.robot import Mechanism, Supports
from concur.tables import (
    ByName,
    Expected,
    InFiles,
    NotNegative,
    Pair,
    Time,
    build,
    fault,
    is_number,
    located,
    show,
    unknown,
)

_TABLE = "[proof]"


Radii = Annotated[Sequence[NotNegative], Len(2, 2), Expected("2 numbers of zero or more")]


def _tables(name: str) -> tuple[Any, Any]:
    """Annotations of a list of tables [[proof.name]]."""
    return Len(0, 100), Expected(f"tables [[proof.{name}]], at most 100")


@dataclass(frozen=True)
class ProofTable:
    """Starts, imperfections and limits of the proof of a task.

    Parameters
    ----------
    place : float or mapping of str to float
        Radius of the start of each output about the declared start: of its position, m.
    speed : float or mapping of str to float
        Radius of the start of each output about the declared start: of its velocity, m/s.
    heading : float
        Radius of the heading at the start, rad; the outputs do not determine it.
    period : float, optional
        Longest time for which a torque is held, s; not below `control_period`. Default:
        `control_period`, or `0.0`.
    delay : float, optional
        Longest time from measurement to torque, s.
    masses : float, optional
        Largest relative error of mass, first and second moments of each body.
    momentum_error : object, optional
        Largest error of the declared momentum of a floater: linear, kg m/s, and angular about the
        inertial origin, kg m^2/s. Default: zero.
    torque_error : float or mapping of str to float, optional
        Largest error of each control, N m or N.
    push : float or mapping of str to float, optional
        Largest unmodelled acceleration of each output, m/s^2.
    corridor : float or mapping of str to float, optional
        Largest distance of each output from its reference, m. Default: none.
    margin : float, optional
        Least decoupling margin, without unit.
    torque_limits : float or mapping of str to float, optional
        Largest torque of each control, N m or N; limits of robot, plant and `[servo]` apply where
        they are narrower. Default: those.
    speed_limits : float or mapping of str to float, optional
        Largest speed of each shape velocity, rad/s or m/s; limits of robot and plant apply where
        they are narrower. Default: those.
    angle_limits : mapping, optional
        Lower and upper angle of joints, rad; limits of robot and plant apply where they are
        narrower. Default: those.
    supports : mapping of str to sequence of float, optional
        Supports beside the wheels: by name the contact point in the frame of the base, m; with them
        loads and grip are bounded. Default: those of the robot.
    compliance : float or mapping of str to float, optional
        Vertical compliance of wheels and supports, m/N, if there are more than three; only ratios
        matter. Default: none.
    least_load : float or mapping of str to float, optional
        Least load of wheels and supports, N. Default: `0.0`.
    tipping : float, optional
        Least moment about each edge of the polygon of more than three contacts without
        `compliance`, N m. Default: `0.0`.
    grip : float, optional
        Largest friction coefficient that a wheel may need. Default: none.
    capsule : sequence, optional
        Capsules that move with bodies. Default: none.
    obstacle : sequence, optional
        Spheres and capsules from which these capsules keep away; proofs reject boxes. Default:
        none.
    expression : sequence, optional
        Formulas with limits. Default: none.
    reading : table, optional
        Largest errors of the measured state that the law reads. Default: none.
    """

    place: ByName
    speed: ByName
    heading: NotNegative
    period: Time | None = None
    delay: Time = 0.0
    masses: Annotated[float, Ge(0.0), Lt(1.0), Expected("a number of zero or more, below 1")] = 0.0
    momentum_error: Radii | None = None
    torque_error: ByName = 0.0
    push: ByName = 0.0
    corridor: ByName = None
    margin: NotNegative = 0.0
    torque_limits: ByName = None
    speed_limits: ByName = None
    angle_limits: Annotated[Mapping[str, Pair], Expected("a table of joints")] = dataclasses.field(
        default_factory=dict
    )
    supports: Supports | None = None
    compliance: ByName = None
    least_load: ByName = None
    tipping: NotNegative | None = None
    grip: NotNegative | None = None
    capsule: Annotated[Sequence[Annotated[Any, InFiles(Capsule.of)]], *_tables("capsule")] = ()
    obstacle: Annotated[Sequence[Obstacle], *_tables("obstacle")] = ()
    expression: Annotated[Sequence[Expression], *_tables("expression")] = ()
    reading: Annotated[Any, InFiles(Reading.of_law)] = None


def read_proof(
    data: Mapping[str, Any],
    outputs: Sequence[Output],
    control_period: float | None,
    path: str | PathLike[str],
) -> dict[str, Any]:
    """Fields of the table; outputs are checked, `statement` checks period and other names."""
    table = build(ProofTable, data["proof"], path, data, ("proof",))
    names = [output.name for output in outputs]
    given = dict(vars(table))
    for field in ("place", "speed"):
        given[field] = _by_name(given[field], names, field, "an output", path)
        for name in names:
            if name not in given[field]:
                raise fault(
                    path,
                    _TABLE,
                    field,
                    expected="a radius of the start for each output",
                    came=f"none for `{name}`",
                    cure=f"Add `{name}`; 0.0 is the declared start exactly.",
                )
    for field in ("push", "corridor"):
        given[field] = _by_name(given[field], names, field, "an output", path)
    given["control_period"] = control_period or 0.0
    if table.period is None:
        given["period"] = given["control_period"]
    return given


def statement(
    given: Mapping[str, Any], servo: Servo, limits: JointLimits, path: str | PathLike[str]
) -> Statement:
    """Statement of a task's proof, with the limits of robot and task where they are narrower."""
    model, robot = servo.model, limits.robot
    controls, shape = model.control_names, model.shape_names
    outputs = [output.name for output in servo.outputs]
    if given["period"] < given["control_period"]:
        raise fault(
            path,
            _TABLE,
            "period",
            expected=f"at least the control period of the task, {given['control_period']:g} s",
            came=f"{given['period']:g} s",
            cure="Remove it: the default is the control period.",
        )

    def named(field: str, names: Sequence[str], kind: str) -> dict[str, float]:
        return _by_name(given[field], names, field, kind, path)

    torques = [_all(robot.control_names, limits.torques)]
    if servo.torque_limits is not None:
        low, high = servo.torque_limits.T
        torques.append(_all(controls, np.minimum(-low, high)))
    speeds = _all(robot.freedom_names, limits.speeds)
    angles = _angles(given["angle_limits"], limits, path)
    errors = named("torque_error", controls, "a control")
    with located(path, _TABLE):
        return Statement(
            tuple(given["place"][name] for name in outputs),
            tuple(given["speed"][name] for name in outputs),
            given["heading"],
            given["period"],
            given["delay"],
            given["masses"],
            tuple(errors.get(name, 0.0) for name in controls),
            tuple(given["push"].get(name, 0.0) for name in outputs),
            _least(named("torque_limits", controls, "a control"), *torques),
            _least(named("speed_limits", shape, "a shape velocity"), speeds),
            angles,
            given["corridor"],
            given["margin"],
            _ground(given, robot),
            _clearance(given, robot),
            _expressions(given["expression"], servo),
            _momentum_error(given["momentum_error"], servo, path),
            given["reading"] and given["reading"](servo),
        )


def _momentum_error(
    given: list[float] | None, servo: Servo, path: str | PathLike[str]
) -> tuple[float, ...]:
    """Radii of the error of the declared momentum, of a robot that has one."""
    if given is not None and not servo.model.takes_momentum:
        raise fault(
            path,
            _TABLE,
            "momentum_error",
            expected="a robot that floats",
            came=f"{servo.model.first.kind} reduction",
            cure="Remove it.",
        )
    return tuple(given or ())


def _ground(given: Mapping[str, Any], robot: Mechanism) -> Ground | None:
    """Contacts with the ground, if the table or the robot declares supports or limits of them."""
    names = ("supports", "compliance", "least_load", "tipping", "grip")
    own = {name: given[name] for name in names if given[name] is not None}
    return Ground.of(robot, **own) if own or robot.supports else None


def _clearance(given: Mapping[str, Any], robot: Mechanism) -> Clearance | None:
    """Capsules and obstacles, if the tables declare any."""
    if not given["capsule"] and not given["obstacle"]:
        return None
    return Clearance(tuple(made(robot) for made in given["capsule"]), tuple(given["obstacle"]))


def _expressions(found: Sequence[Expression], servo: Servo) -> tuple[Expression, ...]:
    """Expressions whose names exist."""
    model = servo.model
    parts = (model.shape_names, model.shape_names, model.control_names)
    for made in found:
        made.at(*({name: ca.SX.sym(name) for name in names} for names in parts))
    names = [made.name for made in found]
    if len(set(names)) < len(names):
        raise OutputError(
            "expressions of a proof",
            expected="different names",
            came=", ".join(names),
            cure="Rename one.",
        )
    return tuple(found)


def _by_name(
    value: Any, names: Sequence[str], field: str, kind: str, path: str | PathLike[str]
) -> dict[str, float]:
    """Numbers by name: a single one is that of all names, None of no name."""
    if value is None:
        return {}
    if is_number(value):
        return dict.fromkeys(names, float(value))
    for name in value:
        if name not in names:
            raise unknown(path, _TABLE, field, kind, name, names)
    return {name: float(number) for name, number in value.items()}


def _all(names: Sequence[str], values: Any) -> dict[str, float]:
    return {name: float(value) for name, value in zip(names, values, strict=True)}


def _least(*tables: Mapping[str, float]) -> dict[str, float]:
    """Narrowest finite limit of each name."""
    names = {name: None for table in tables for name in table}
    found = {name: min(table.get(name, np.inf) for table in tables) for name in names}
    return {name: value for name, value in found.items() if np.isfinite(value)}


def _angles(
    given: Mapping[str, list[float]], limits: JointLimits, path: str | PathLike[str]
) -> dict[str, tuple[float, float]]:
    """Narrowest ranges of joints with one coordinate; an end without limit is infinite."""
    rows = {
        body.joint_label: limits.positions[limits.robot.q_slice(body.name)][0]
        for body in limits.robot.bodies
        if body.joint.nq == 1
    }
    for name, (low, high) in given.items():
        if name not in rows:
            raise unknown(path, "[proof.angle_limits]", name, "a joint", name, list(rows))
        if not low < high:
            raise fault(
                path,
                "[proof.angle_limits]",
                name,
                expected="a lower end below the upper one",
                came=show([low, high]),
                cure="Exchange them.",
            )
    free = (-np.inf, np.inf)
    found = {
        name: (max(row[0], given.get(name, free)[0]), min(row[1], given.get(name, free)[1]))
        for name, row in rows.items()
    }
    return {
        name: (float(low), float(high))
        for name, (low, high) in found.items()
        if np.isfinite([low, high]).any()
    }
