"""Reader of the table [proof] of a task: starts, imperfections and limits of a proof."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Annotated, Any

import casadi as ca
import numpy as np
from annotated_types import Ge, Len, Lt

from concur.control import JointLimits, Servo
from concur.errors import OutputError
from concur.outputs import Output
from concur.robot import Supports
from concur.tables import (
    ByName,
    Expected,
    NotNegative,
    Number,
    Pair,
    Text,
    Time,
    Vector3,
    fault,
    is_number,
    located,
    one_of,
    show,
    unknown,
)

if TYPE_CHECKING:
    from concur.proofs import Clearance, Expression, Ground, Reading, Statement
    from concur.robot import Mechanism

_TABLE = "[proof]"


Radii = Annotated[Sequence[NotNegative], Len(2, 2), Expected("2 numbers of zero or more")]
Hundred = Annotated[Sequence[Text], Len(1, 100), Expected("a list of 1 to 100 names")]


def _tables(kind: str) -> tuple[Any, Any]:
    """Annotations of a list of tables [[proof.kind]]."""
    return Len(0, 100), Expected(f"tables [[proof.{kind}]], at most 100")


@dataclass(frozen=True)
class CapsuleTable:
    """A capsule on a body, or that of the body's shape.

    Parameters
    ----------
    body : str
        Body that carries the capsule.
    name : str, optional
        Name of the capsule. Default: that of the body.
    start : sequence of float, optional
        One end of the segment, in the frame of the body, m. Default: that of the shape, which has
        to be a sphere or a capsule.
    end : sequence of float, optional
        Other end of the segment, in the frame of the body, m. Default: that of the shape; a sphere,
        if `start` is given.
    radius : float, optional
        Largest distance of its points from the segment, m. Default: that of the shape.
    """

    body: Text
    name: Text | None = None
    start: Vector3 | None = None
    end: Vector3 | None = None
    radius: NotNegative | None = None


@dataclass(frozen=True)
class ObstacleTable:
    """A sphere or capsule that capsules on bodies keep away from.

    Parameters
    ----------
    name : str
        Name of the obstacle.
    start : sequence of float
        Centre of a sphere, or one end of the segment of a capsule, m.
    end : sequence of float, optional
        Other end of the segment, m. Default: a sphere.
    radius : float
        Radius, m.
    frame : str, optional
        Frame of the obstacle; `base` for a part of the base.
    distance : float, optional
        Least distance of the capsules, m.
    capsules : str, optional
        Names of the capsules that keep the distance. Default: all.
    """

    name: Text
    start: Vector3
    radius: NotNegative
    end: Vector3 | None = None
    frame: Annotated[str, one_of(("world", "base"))] = "world"
    distance: NotNegative = 0.0
    capsules: Hundred | None = None


@dataclass(frozen=True)
class ExpressionTable:
    """A formula of angles, speeds and torques with a limit.

    Parameters
    ----------
    name : str
        Name of the expression.
    formula : str
        Formula of angles, speeds and torques, such as `torque(arm) * speed(arm)`.
    below : float, optional
        Limit that the formula stays below, in its unit. Default: none.
    unit : str, optional
        Unit of the formula, for the report.
    """

    name: Text
    formula: Text
    below: Number | None = None
    unit: Annotated[str, Expected("text")] = ""


@dataclass(frozen=True)
class ReadingTable:
    """Largest errors of the measured state that the law reads.

    Parameters
    ----------
    angles : float or mapping of str to float, optional
        Error of the angles of the arm's joints, rad: a number for all, or a table by name. Default:
        none.
    speeds : float or mapping of str to float, optional
        Error of the shape velocities, rad/s: a number for all, or a table by name; required with
        `angles`. Default: none.
    place : float, optional
        Error of the position of the base, m.
    heading : float, optional
        Error of the heading of the base, rad.
    """

    angles: ByName = None
    speeds: ByName = None
    place: NotNegative = 0.0
    heading: NotNegative = 0.0


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
        Spheres and capsules from which these capsules keep away. Default: none.
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
    capsule: Annotated[Sequence[CapsuleTable], *_tables("capsule")] = ()
    obstacle: Annotated[Sequence[ObstacleTable], *_tables("obstacle")] = ()
    expression: Annotated[Sequence[ExpressionTable], *_tables("expression")] = ()
    reading: ReadingTable | None = None


def read_proof(
    table: ProofTable | None,
    outputs: Sequence[Output],
    control_period: float | None,
    path: str | PathLike[str],
) -> dict[str, Any] | None:
    """Fields of the table; outputs are checked, `statement` checks period and other names."""
    if table is None:
        return None
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
    from concur.proofs import Statement

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
            _clearance(given, robot, path),
            _expressions(given, servo),
            _momentum_error(given["momentum_error"], servo, path),
            _reading(given["reading"], servo, path),
        )


def _reading(given: ReadingTable | None, servo: Servo, path: str | PathLike[str]) -> Reading | None:
    """Errors of the measured state by name; those of wheels' angles have no effect."""
    from concur.proofs import Reading

    if given is None:
        return None
    names = servo.model.shape_names
    wheels = {wheel.body for wheel in servo.model.robot.wheels}
    joints = [name for name in names if name not in wheels]
    found = {}
    for field, own, kind in (
        ("angles", joints, "a joint of the arm"),
        ("speeds", names, "a shape velocity"),
    ):
        value = getattr(given, field)
        if value is not None:
            found[field] = _by_name(value, own, f"reading.{field}", kind, path)
    return Reading(**found, place=given.place, heading=given.heading)


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
    from concur.proofs import Ground

    names = ("supports", "compliance", "least_load", "tipping", "grip")
    own = {name: given[name] for name in names if given[name] is not None}
    return Ground.of(robot, **own) if own or robot.supports else None


def _clearance(
    given: Mapping[str, Any], robot: Mechanism, path: str | PathLike[str]
) -> Clearance | None:
    """Capsules and obstacles, if the tables declare any."""
    from concur.proofs import Capsule, Clearance, Obstacle

    capsules, obstacles = given["capsule"], given["obstacle"]
    if not capsules and not obstacles:
        return None
    made = []
    for table in capsules:
        if table.body not in [body.name for body in robot.bodies]:
            names = [body.name for body in robot.bodies]
            raise unknown(path, "[[proof.capsule]]", "body", "a body", table.body, names)
        made.append(Capsule.of(robot, **_given(table)))
    own = []
    for table in obstacles:
        fields = {"end": table.start} | _given(table)
        names = fields.pop("capsules", None)
        own.append(Obstacle(**fields, capsules=None if names is None else tuple(names)))
    return Clearance(tuple(made), tuple(own))


def _expressions(given: Mapping[str, Any], servo: Servo) -> tuple[Expression, ...]:
    """Expressions whose names exist."""
    from concur.proofs import Expression

    found = tuple(Expression(**_given(table)) for table in given["expression"])
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
    return found


def _given(table: Any) -> dict[str, Any]:
    return {name: value for name, value in vars(table).items() if value is not None}


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
        body.name: limits.positions[limits.robot.q_slice(body.name)][0]
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
