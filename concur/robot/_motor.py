"""Motors that are not one by one on joints, joints that follow others, and what moves which."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from numbers import Integral
from typing import Annotated, Any, ClassVar, Literal, get_args

import casadi as ca
import numpy as np
from annotated_types import Ge, Gt, Le

from concur.errors import ConcurError, DescriptionError, entries, shown
from concur.robot._bodies import BodyTree, unknown_name
from concur.robot._body import Body
from concur.robot._pose import check_name, scalar, vector
from concur.tables import (
    NUMBER,
    Expected,
    NotNegative,
    Number,
    Positive,
    Vector3,
    Vector6,
    any_of,
    is_number,
    table_of,
)

Share = Annotated[float, Gt(0.0), Le(1.0), Expected("a number above 0, up to 1")]
Counts = Annotated[int, Ge(1), Le(2**40), Expected("a whole number above zero")]
Side = Literal["motor", "joint"]

_NOT_NEGATIVE = "rotor", "viscous", "coulomb", "stribeck"
_POSITIVE = (
    *("torque", "speed", "no_load_speed", "stall_torque"),
    *("torque_constant", "continuous", "thermal_time"),
)
_OF_GEARS = (
    *("gear", "rotor", "stator", "shaft", "speed", "no_load_speed", "stall_torque"),
    *("viscous", "coulomb", "stribeck", "efficiency", "torque_constant", "encoder"),
)
"""Fields that a thruster lacks."""


def _is_joints(value: object) -> bool:
    one = isinstance(value, str)
    return one or (isinstance(value, dict) and all(map(is_number, value.values())))


Joints = Annotated[
    Any,
    Expected(
        "the name of a joint, or a factor for each joint, by its name",
        _is_joints,
        any_of({"type": "string"}, table_of(NUMBER)),
    ),
]


@dataclass(frozen=True)
class Motor:
    """A control of a robot: a motor with its gear on one or more joints, or a thruster.

    It is one column of the actuation matrix B in ``M vdot + bias = B u + ...``: the ratios on the
    rows of the joints, or the wrench of the thruster, moved to the joints. The motor turns at the
    speed ``w = (column of B)^T v``.

    A rotor of the inertia J adds ``J w^2 / 2 + J w a^T omega`` to the kinetic energy, with the
    angular velocity omega of the body that carries the motor and the axis a of its shaft: the
    reflected inertia, J gear^2 on one joint, and the gyroscopic share, by which a spinning rotor
    takes part in the momentum of the robot. The inertia of that body includes the rotor at rest.

    Parameters
    ----------
    name : str
        Name of the control.
    joints : str or mapping of str to float, optional
        Joint that the motor moves, or a factor for each of several: the ratio of a joint is the
        factor times `gear`, and the force or torque of the joint is its ratio times that of the
        motor. A joint with several freedoms has their names, such as `"ball[wx]"`. Joints with a
        common motor share its torque as a differential does; two motors with two joints each are a
        coupled wrist. Default: none, with `body`.
    gear : float
        Gear ratio: turns of the motor per turn of the joint. Of a joint that slides, rad/m: a screw
        of the lead p has ``2 pi / p``; with 1 the motor is a linear one.
    rotor : float
        Moment of inertia of rotor and gear about the motor's shaft, kg m^2; for a linear motor its
        mass, kg.
    stator : str, optional
        Body that carries the motor. Default: the parent of the first joint's body.
    shaft : sequence of float, optional
        Axis about which the rotor turns if its speed is positive, in the frame of the stator,
        shape (3,). Default: the axis of the joint, if the motor moves one revolute joint; else
        none, and the rotor has its reflected inertia only. Zeros: none, as in MJCF's `armature`.
    torque : float, optional
        Largest torque or force of the motor in both directions, N m or N; part of the verdict of a
        run. Default: that of its joints divided by the ratio, if no other motor moves them.
    speed : float, optional
        Largest speed of the motor in both directions, rad/s, or m/s of a linear motor; part of the
        verdict of a run. Default: that of its joints alone.
    no_load_speed : float, optional
        Speed at which the available torque in the direction of the motion is zero, rad/s or m/s: at
        the speed w it is ``stall_torque (1 - w / no_load_speed)``, at most `torque`. Default:
        `torque` at all speeds.
    stall_torque : float, optional
        Torque of this line at rest, N m or N. Default: `torque`.
    viscous : float
        Viscous friction, N m s/rad or N s/m.
    coulomb : float
        Dry friction of the moving motor, N m or N.
    stribeck : float
        Excess of dry friction at breakaway, N m or N.
    friction_at : str
        Side of the gear on which these three are given: "motor" or "joint".
    efficiency : float
        Ratio of power behind the gear to power before it: ``(1 - efficiency) |u|`` of the torque u
        is dry friction at the motor.
    torque_constant : float, optional
        Torque per current, N m/A or N/A. Default: unknown.
    encoder : int, optional
        Counts of the encoder per turn; at a joint that slides and at a linear motor, per metre.
        Default: no encoder.
    encoder_at : str
        Side of the gear on which the encoder is: "motor" or "joint".
    continuous : float, optional
        Torque that the motor bears for any time, N m or N. Its heat h, with
        ``thermal_time dh/dt = (u / continuous)^2 - h``, is part of the verdict of a run: at most 1.
        Default: heat is no limit.
    thermal_time : float, optional
        Time constant of its heating, s. Default: none; required with `continuous`.
    body : str, optional
        Body on which a thruster acts, in place of `joints`. Default: none.
    wrench : sequence of float, optional
        Its wrench per unit of the control in the axes of the body, [force; moment], shape (6,),
        1 and m for a control in N. Default: none, with `joints`.
    point : sequence of float
        Point of the body at which the wrench acts, shape (3,), m.

    Raises
    ------
    DescriptionError
        If the motor has neither joints nor a wrench, or both, a number is out of range, the heat
        or the line of speed and torque lacks a number, or a thruster has what only a gear has.
    ShapeError, NonFiniteError
        If a number is not finite or an array has another shape.

    Examples
    --------
    >>> import concur as cc
    >>> cc.Motor("elbow drive", "elbow", gear=-100.0, rotor=2e-5, torque=0.4).ratios
    {'elbow': -100.0}
    >>> cc.Motor("rear", {"left_wheel": 1.0, "right_wheel": 1.0}, gear=4.0).ratios["left_wheel"]
    4.0
    """

    name: str
    joints: Joints = None
    gear: Number = 1.0
    rotor: NotNegative = 0.0
    stator: str | None = None
    shaft: Vector3 | None = None
    torque: Positive = math.inf
    speed: Positive = math.inf
    no_load_speed: Positive = math.inf
    stall_torque: Positive | None = None
    viscous: NotNegative = 0.0
    coulomb: NotNegative = 0.0
    stribeck: NotNegative = 0.0
    friction_at: Side = "motor"
    efficiency: Share = 1.0
    torque_constant: Positive | None = None
    encoder: Counts | None = None
    encoder_at: Side = "motor"
    continuous: Positive = math.inf
    thermal_time: Positive | None = None
    body: str | None = None
    wrench: Vector6 | None = None
    point: Vector3 = (0.0, 0.0, 0.0)
    _cures: ClassVar[Mapping[str, str]] = {
        "ratio": "Write `gear`, or a factor for each joint: { left = 1.0, right = 1.0 }.",
        **{
            name: f"Write `{field}`, {unit}."
            for unit, field, names in (
                ("kg m^2", "rotor", ("inertia", "rotor_inertia", "armature", "motor_inertia")),
                ("N m", "torque", ("torque_limit", "max_torque", "effort", "force")),
                ("rad/s", "speed", ("speed_limit", "max_speed", "velocity", "rpm")),
                ("rad/s", "no_load_speed", ("max_no_load_speed", "noload_speed")),
                ("N m s/rad", "viscous", ("damping",)),
                ("N m", "coulomb", ("friction", "frictionloss", "dry_friction")),
                ("N m/A", "torque_constant", ("kt", "Kt", "k_t", "motor_constant")),
                ("a number above 0, at most 1", "efficiency", ("eff", "eta")),
                ("counts per turn", "encoder", ("counts", "resolution", "encoder_counts", "cpr")),
                ("N m", "continuous", ("nominal_torque", "rated_torque")),
                ("s", "thermal_time", ("time_constant", "thermal_time_constant")),
            )
            for name in names
        },
    }

    def __post_init__(self) -> None:
        where = f"motor `{self.name}`"
        check_name(self.name, "Motor, `name`")
        geared = self.joints is not None
        if geared == (self.wrench is not None) or geared == (self.body is not None):
            came = [n for n in ("joints", "body", "wrench") if getattr(self, n) is not None]
            expected = "either `joints`, or `body` and `wrench`"
            raise _refusal(where, expected, ", ".join(f"`{n}`" for n in came) or "neither")
        self._check_numbers(where)
        if geared:
            object.__setattr__(self, "joints", self._factors(f"{where}, `joints`"))
        if self.stator is not None:
            check_name(self.stator, f"{where}, `stator`")
        if self.shaft is not None:
            shaft = np.array(vector(self.shaft, 3, f"{where}, `shaft`"))
            length = float(np.linalg.norm(shaft))
            object.__setattr__(self, "shaft", tuple((shaft / (length or 1.0)).tolist()))
        if self.wrench is not None:
            check_name(self.body, f"{where}, `body`")
            wrench = vector(self.wrench, 6, f"{where}, `wrench`")
            if not any(wrench):
                raise _refusal(f"{where}, `wrench`", "a wrench other than zero", str(wrench))
            defaults = {field.name: field.default for field in fields(self)}
            given = [name for name in _OF_GEARS if getattr(self, name) != defaults[name]]
            if given:
                expected = "a thruster, which has no gear, shaft, friction, speed or encoder"
                raise _refusal(where, expected, ", ".join(f"`{name}`" for name in given))
            object.__setattr__(self, "wrench", wrench)
            object.__setattr__(self, "point", vector(self.point, 3, f"{where}, `point`"))

    def _check_numbers(self, where: str) -> None:
        """Check the numbers, and keep them as floats."""
        kept: dict[str, Any] = {"gear": scalar(self.gear, f"{where}, `gear`")}
        if kept["gear"] == 0.0:
            cure = "Write the turns of the motor per turn of the joint."
            raise _refusal(f"{where}, `gear`", "a ratio other than zero", "0", cure)
        for name in (*_NOT_NEGATIVE, *_POSITIVE, "efficiency"):
            value, above = getattr(self, name), name not in _NOT_NEGATIVE
            if value is None or (name in _POSITIVE and value == math.inf):
                continue
            kept[name] = number = scalar(value, f"{where}, `{name}`")
            if number < 0.0 or (above and number == 0.0):
                wanted = "a number above zero" if above else "zero or more"
                raise _refusal(f"{where}, `{name}`", wanted, shown(value))
        if kept["efficiency"] > 1.0:
            raise _refusal(f"{where}, `efficiency`", "at most 1", shown(self.efficiency))
        for name in ("friction_at", "encoder_at"):
            if getattr(self, name) not in get_args(Side):
                wanted = '"motor" or "joint"'
                raise _refusal(f"{where}, `{name}`", wanted, shown(getattr(self, name)))
        counts: Any = self.encoder
        if counts is not None:
            if isinstance(counts, bool) or not isinstance(counts, Integral) or counts < 1:
                expected = "a whole number above zero, without a decimal point"
                raise _refusal(f"{where}, `encoder`", expected, shown(counts))
            kept["encoder"] = int(counts)
        if (self.thermal_time is None) != (self.continuous == math.inf):
            lacks = "continuous" if self.continuous == math.inf else "thermal_time"
            unit = "N m" if lacks == "continuous" else "s"
            cure = f"Write `{lacks}`, {unit}, or remove the other one: heat then is no limit."
            raise _refusal(where, "`continuous` and `thermal_time`", f"no `{lacks}`", cure)
        if self.no_load_speed == math.inf and self.stall_torque is not None:
            cure = "Write `no_load_speed`, rad/s, or only `torque`, which holds at all speeds."
            expected = "`no_load_speed` beside `stall_torque`"
            raise _refusal(where, expected, "no `no_load_speed`", cure)
        if self.no_load_speed != math.inf and self.stall == math.inf:
            expected = "`torque` or `stall_torque` beside `no_load_speed`"
            cure = "Write the torque at rest, `stall_torque`, N m."
            raise _refusal(where, expected, "neither", cure)
        for name, number in kept.items():
            object.__setattr__(self, name, number)

    def _factors(self, place: str) -> str | dict[str, float]:
        """One joint by its name, or the factor of each joint."""
        if isinstance(self.joints, str):
            return self.joints
        if not isinstance(self.joints, Mapping) or not self.joints:
            expected = "the name of a joint, or a factor for each joint, by its name"
            raise _refusal(place, expected, shown(self.joints))
        factors = {name: scalar(value, place) for name, value in self.joints.items()}
        if not all(factors.values()):
            raise _refusal(place, "factors other than zero", shown(factors))
        return factors

    @cached_property
    def ratios(self) -> dict[str, float]:
        """Ratio of each joint that the motor moves: its factor times `gear`; empty if none."""
        factors = {self.joints: 1.0} if isinstance(self.joints, str) else self.joints or {}
        return {name: factor * self.gear for name, factor in factors.items()}

    @property
    def reduction(self) -> float:
        """Speed of the motor per speed at the joint's side: that of its only joint, else `gear`."""
        ratios = list(self.ratios.values())
        return abs(ratios[0] if len(ratios) == 1 else self.gear)

    @property
    def stall(self) -> float:
        """Torque at rest of the line of speed and torque, N m or N."""
        return self.torque if self.stall_torque is None else self.stall_torque

    @property
    def friction(self) -> tuple[float, float, float]:
        """Viscous, Coulomb and Stribeck friction at the motor's side."""
        side = self.reduction if self.friction_at == "joint" else 1.0
        return self.viscous / side**2, self.coulomb / side, self.stribeck / side

    def __hash__(self) -> int:
        return hash(self.name)

    @property
    def at_origin(self) -> np.ndarray:
        """Wrench of a thruster about the origin of its body, shape (6,)."""
        wrench = np.array(self.wrench, dtype=float)
        moment = wrench[3:] + np.cross(self.point, wrench[:3])
        return np.concatenate([wrench[:3], moment])


@dataclass(frozen=True)
class Mimic:
    """A joint that follows another: ``q = multiplier q_other + offset``.

    Both joints have one coordinate. The coupling is a constraint of the velocities with constant
    coefficients, ``v - multiplier v_other = 0``; its reaction does no work.

    Parameters
    ----------
    body : str
        Joint that follows, by its name or that of its body. A robot keeps the body's name.
    of : str
        Joint that it follows, likewise.
    multiplier : float
        Ratio of the velocities.
    offset : float
        Coordinate of the joint where the other one is at zero, rad or m.

    Raises
    ------
    DescriptionError
        If a joint follows itself.
    ShapeError, NonFiniteError
        If a number is not finite.

    Examples
    --------
    >>> import concur as cc
    >>> cc.robot.Mimic("right_finger", of="left_finger", multiplier=-1.0).offset
    0.0
    """

    body: str
    of: str
    multiplier: float = 1.0
    offset: float = 0.0

    def __post_init__(self) -> None:
        where = f"mimic `{shown(self.body)}`"
        for name in ("body", "of"):
            check_name(getattr(self, name), f"{where}, `{name}`")
        for attribute in ("multiplier", "offset"):
            value = scalar(getattr(self, attribute), f"{where}, `{attribute}`")
            object.__setattr__(self, attribute, value)
        if self.of == self.body:
            raise _refusal(f"{where}, `of`", "another joint", f"`{self.of}`")


def speed_torque_line(stall: Any, fastest: Any, speed: Any) -> tuple[Any, Any]:
    """Lowest and highest torque of a line from `stall` at rest to zero at the speed `fastest`.

    Against its motion the line gives a motor more than at rest; beyond the speed it has no torque
    along the motion, and is not made to brake.
    """
    share = speed / fastest
    return -stall * ca.fmax(0.0, 1.0 + share), stall * ca.fmax(0.0, 1.0 - share)


def check_motors(
    where: str, tree: BodyTree, motors: Sequence[Motor], floats: bool
) -> dict[str, str]:
    """Check motors of a tree; by body, the motor that moves its joint.

    A base that `floats` has no motor.
    """
    names = tree.freedom_names
    spans = zip(tree.bodies, tree.v_spans, strict=True)
    bodies = {name: body.name for body, span in spans for name in names[span]}
    geared: dict[str, str] = {}
    given = [motor.name for motor in motors]
    for motor in motors:
        place = f"{where}, motor `{motor.name}`"
        own = motor.name in motor.ratios  # a gear on one joint may have its name
        if given.count(motor.name) > 1 or (motor.name in names and not own):
            raise DescriptionError(
                place,
                expected="a name that no joint and no other motor has",
                came=f"`{motor.name}` twice",
                cure="Rename the motor.",
            )
        if motor.body is not None:
            tree.index(motor.body, f"motor `{motor.name}`, `body`")
        for name in motor.ratios:
            if name not in names:
                raise unknown_name(f"{place}, `joints`", "joint", name, names)
            if bodies[name] == tree.base.name and floats:
                raise DescriptionError(
                    f"{place}, `joints`",
                    expected="joints other than the base",
                    came=f"the base `{tree.base.name}`",
                    cure="A floating base has no motor: describe a thruster by `body` and "
                    "`wrench`.",
                )
            geared[bodies[name]] = motor.name
            if motor.encoder is not None and tree.bodies[tree.index(bodies[name])].joint.nv > 1:
                raise DescriptionError(
                    f"{place}, `encoder`",
                    expected="joints with one coordinate, which an encoder counts",
                    came=f"`{name}`",
                    cure="Remove the encoder.",
                )
    return geared


def actuated_bodies(
    where: str,
    tree: BodyTree,
    given: Any,
    geared: Mapping[str, str],
    platforms: Collection[int],
    floats: bool,
) -> tuple[str, ...]:
    """Check which joints of a tree have a motor each: none that something else moves."""
    place, omit = f"{where}, `actuated`", "Remove it from the list."
    names = None if isinstance(given, str) else entries(given, str)
    if names is None:
        raise DescriptionError(
            place,
            expected="a list of names of joints",
            came=f"{type(given).__name__} {shown(given)}",
            cure='Write ["left", "right"].',
        )
    found = list[str]()
    for name in names:
        if name not in tree.joints:
            raise unknown_name(f"{where}, `actuated`", "joint", name, tree.joint_names)
        index = tree.joints[name]
        if index == 0 and floats:
            raise DescriptionError(
                place,
                expected="joints other than the base",
                came=f"the base `{name}`",
                cure="A floating base is unactuated: its pose follows from the wheels or from "
                f"momentum. {omit}",
            )
        if index in platforms:
            raise DescriptionError(
                place,
                expected="joints other than those of bodies that stand on wheels",
                came=f"`{name}`",
                cure=f"Its pose follows from the wheels. {omit}",
            )
        body = tree.bodies[index].name
        if body in geared:
            raise DescriptionError(
                place,
                expected="joints without a motor",
                came=f"`{name}`, which the motor `{geared[body]}` moves",
                cure="Remove it from the list, or give its own motor as a motor too.",
            )
        if tree.bodies[index].joint.nv == 0:
            raise DescriptionError(
                place,
                expected="joints that can move",
                came=f"the fixed joint of `{name}`",
                cure=omit,
            )
        found.append(tree.bodies[index].joint_label)
    if len(set(found)) != len(found):
        raise DescriptionError(
            place,
            expected="each joint once",
            came=", ".join(names),
            cure="Remove the repeated name.",
        )
    return tuple(found)


def ordered_mimics(
    where: str, bodies: Sequence[Body], mimics: Sequence[Mimic]
) -> tuple[Mimic, ...]:
    """Check joints that follow others; each comes after the one that it follows."""
    names = [body.name for body in bodies]
    labels = {body.joint_label: body.name for body in bodies} | {name: name for name in names}
    for mimic in mimics:
        for attribute in ("body", "of"):
            if getattr(mimic, attribute) not in labels:
                place = f"{where}, mimic `{mimic.body}`, `{attribute}`"
                raise unknown_name(place, "joint", getattr(mimic, attribute), list(labels))
        if labels[mimic.body] == labels[mimic.of]:
            raise _refusal(f"{where}, mimic `{mimic.body}`, `of`", "another joint", f"`{mimic.of}`")
    given = [mimic.body for mimic in mimics]
    mimics = [replace(m, body=labels[m.body], of=labels[m.of]) for m in mimics]
    followers = [mimic.body for mimic in mimics]
    for called, mimic in zip(given, mimics, strict=True):
        place = f"{where}, mimic `{called}`"
        for attribute in ("body", "of"):
            name = getattr(mimic, attribute)
            joint = bodies[names.index(name)].joint
            if joint.nv != 1 or name == names[0]:
                base = "the base" if name == names[0] else f"with {joint.nv}"
                raise DescriptionError(
                    f"{place}, `{attribute}`",
                    expected="a joint with one coordinate, not that of the base",
                    came=f"`{name}`, {base}",
                    cure="Couple joints of type Revolute, Prismatic or Helical.",
                )
        if followers.count(mimic.body) > 1:
            raise DescriptionError(
                place,
                expected="a joint that follows one other",
                came=f"{followers.count(mimic.body)} that it follows",
                cure="Keep one of them.",
            )
    ordered, waiting = list[Mimic](), list(mimics)
    while waiting:
        pending = {mimic.body for mimic in waiting}
        ready = next((mimic for mimic in waiting if mimic.of not in pending), None)
        if ready is None:
            raise DescriptionError(
                f"{where}, `mimics`",
                expected="a joint at the start of each chain that follows no other",
                came=f"a cycle of {', '.join(f'`{mimic.body}`' for mimic in waiting)}",
                cure="Remove one of the couplings.",
            )
        ordered.append(ready)
        waiting.remove(ready)
    return tuple(ordered)


def _refusal(where: str, expected: str, came: str, cure: str = "Correct the entry.") -> ConcurError:
    return DescriptionError(where, expected=expected, came=came, cure=cure)
