"""Reader of the initial state of a task: written, or on the reference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Annotated, Any

import numpy as np
from annotated_types import Ge, Le
from scipy.spatial.transform import Rotation

from concur.control import Servo, Start
from concur.io._configuration import check_joints, read_configuration
from concur.outputs import Output
from concur.outputs.references import Reference
from concur.robot import COUPLED, Mechanism, suspicious_start
from concur.robot.joints import Free
from concur.simulation import FASTEST_START
from concur.tables import (
    Expected,
    NumberOrList,
    Refusal,
    Text,
    Vector3,
    fault,
    is_number,
    located,
    one_of,
    refused,
    show,
    unknown,
)

ON_REFERENCE = "on reference"

Velocity = Annotated[
    float,
    Ge(-FASTEST_START),
    Le(FASTEST_START),
    Expected(f"a number within {FASTEST_START:g}"),
]

FAR = 30.0
"""Distance between a robot and its reference, in sizes of the robot, that suggests a mistake."""


@dataclass(frozen=True)
class InitialTable:
    """The initial state, or where it is sought.

    Parameters
    ----------
    q : float or sequence of float, optional
        Configurations by joint, m and rad: a number for a joint with one coordinate, else a list.
        Default: neutral.
    s : mapping, optional
        Shape velocities by name, m/s and rad/s; the base has none. Default: zero.
    start : str, optional
        The outputs start on their references, in pose and velocity; excludes `q` and `s`. Default:
        as written in `q` and `s`.
    near : float or sequence of float, optional
        With `start`: configurations by joint, m and rad, near which the robot starts. Default:
        neutral.
    keyframe : str, optional
        A stored state of the robot, such as `home` of an MJCF file: its configuration, from which
        `q` or `near` differ, and its velocities, from which `s` differ; with `start` the former
        alone. Velocities of a free base give the momentum of the task. Default: none.
    attitude_deg : sequence of float, optional
        Attitude of a base on a `Free` or `Spherical` joint, in place of its entry in `q` or `near`:
        angles (3,), deg, by which it is turned about the inertial axes x, then y, then z. Default:
        as in `q`.
    spin_deg : sequence of float, optional
        Angular velocity of the base, (3,), deg/s, along its axes, in place of `momentum`: that of
        the task is the momentum at this velocity, at those of `s` and with the centre of mass
        moving by `drift`. Default: none.
    drift : sequence of float, optional
        With `spin_deg`: velocity of the centre of mass in inertial axes, (3,), m/s. Default: at
        rest.
    offset : float or sequence of float, optional
        With `start`: pose error at the start by output, m and rad: linear, then angular, as the
        group of the output has them. In R^n it is the reference minus the output; on S2 the turn
        from the output to the reference, along two normals of the reference. Default: zero.
    """

    q: Annotated[Mapping[str, NumberOrList], Expected("a table of bodies")] | None = None
    s: Annotated[Mapping[str, Velocity], Expected("a table of shape velocities")] | None = None
    start: Annotated[str, one_of((ON_REFERENCE,))] | None = None
    near: Annotated[Mapping[str, NumberOrList], Expected("a table of bodies")] | None = None
    keyframe: Text | None = None
    attitude_deg: Vector3 | None = None
    spin_deg: Vector3 | None = None
    drift: Vector3 | None = None
    offset: Annotated[Mapping[str, NumberOrList], Expected("a table of outputs")] | None = None

    def __post_init__(self) -> None:
        written, sought = ("q", "s"), ("near", "offset")
        if self.drift is not None and self.spin_deg is None:
            cure = "Add spin_deg = [0, 0, 0], or write the `momentum` of the task."
            raise refused(("drift",), "`drift` beside `spin_deg`", "`drift` alone", cure)
        wrong = [name for name in (written if self.start else sought) if getattr(self, name)]
        if not wrong:
            return
        name, start = wrong[0], f'start = "{ON_REFERENCE}"'
        expected = f"`q` and `s`, or {start} with `near` and `offset`"
        if self.start:
            cure = f"Remove `{name}`, or rename `q` to `near`."
            raise refused((name,), expected, f"`{name}` and `start`", cure)
        raise refused((name,), expected, f"`{name}` without `start`", f"Add {start}.")


def start_on_reference(
    table: InitialTable, servo: Servo, reference: Reference, path: str | PathLike[str]
) -> Start:
    """State on the reference at t = 0; an error names the file if there is no such state."""
    near = read_posture(table, servo.model.robot, path)
    offset = _offset(table.offset or {}, servo.outputs, path)
    with located(path, "[initial]", "start"):
        found = servo.start(reference, near, offset=offset)
        found.require(f"start of `{servo.name}`")
    robot = servo.model.robot
    seen = {text.partition(":")[0] for text in suspicious_start(robot, found.q)}
    reference.warnings += tuple(
        f"{servo.outputs[0].name}: posture near the {text}"
        for text in suspicious_start(robot, near)
        if text.partition(":")[0] not in seen  # else there is a warning of the start itself
    )
    if _floats(robot):
        places = (robot.pose(q, robot.base.name)[:3, 3] for q in (near, found.q))
        away = float(np.linalg.norm(np.subtract(*places)))
        if away > FAR * robot.extent:
            reference.warnings += (
                f"{servo.outputs[0].name}: to start on it, `{robot.base.name}` moves {away:.4g} m "
                f"from `near`, on a robot of {robot.extent:.2g} m: mm or cm instead of m?",
            )
    return found


def read_posture(table: InitialTable, robot: Mechanism, path: str | PathLike[str]) -> np.ndarray:
    """Configuration that is written, or near which the start is sought."""
    rest = _stored(table, robot, path)[0]
    field = "near" if table.start else "q"
    given = dict(getattr(table, field) or {})
    if table.attitude_deg is not None:
        base = robot.base
        taken = [name for name in given if robot.joints.get(name) == 0]
        if base.joint.quaternion_at is None or taken:
            expected = "a base on a Free or Spherical joint that is in no other field"
            came = f"`{taken[0] if taken else base.joint_label}` in [initial.{field}]"
            if base.joint.quaternion_at is None:
                came = f"`{base.joint_label}` on a joint of type {type(base.joint).__name__}"
            cure = f"Write its pose in [initial.{field}], or remove it from there."
            raise fault(path, "[initial]", "attitude_deg", expected=expected, came=came, cure=cure)
        placed = Rotation.from_quat(base.placement.rotation)
        turn = placed.inv() * Rotation.from_euler("xyz", table.attitude_deg, degrees=True)
        given[base.joint_label] = [*rest[: base.joint.quaternion_at], *turn.as_quat()]
    return read_configuration(given, robot, path, f"[initial.{field}]", rest)


def read_state(
    table: InitialTable,
    momentum: Sequence[float] | None,
    robot: Mechanism,
    path: str | PathLike[str],
) -> tuple[np.ndarray, np.ndarray | None, dict[str, float]]:
    """Configuration, momentum, and by name the velocities that do not follow from it."""
    velocities = _velocities(table, robot, path)
    q = read_posture(table, robot, path)
    found = read_momentum(table, momentum, robot, q, path, velocities)
    of_base = set(robot.freedom_names[robot.v_spans[0]] if _floats(robot) else ())
    of_base -= set(table.s or ())  # the model refuses these
    return q, found, {name: x for name, x in velocities.items() if name not in of_base}


def _floats(robot: Mechanism) -> bool:
    return isinstance(robot.base.joint, Free) and not robot.wheels


def _velocities(
    table: InitialTable, robot: Mechanism, path: str | PathLike[str]
) -> dict[str, float]:
    """Velocities at the start by name, also of a base that floats; others are zero."""
    check_joints((joint_of(robot, n) for n in table.s or {}), robot, path, "[initial.s]")
    v = _stored(table, robot, path)[1]
    for mimic in robot.mimics:
        own, other = robot.freedoms(mimic.body, mimic.of)
        if abs(v[own] - mimic.multiplier * v[other]) > COUPLED * max(1.0, abs(v[own])):
            raise fault(
                path,
                "[initial]",
                "keyframe",
                expected=f"velocities that fit: {mimic.multiplier:g} times that of "
                f"`{robot.label(mimic.of)}` for `{robot.label(mimic.body)}`",
                came=f"{v[own]:g}",
                cure="Write the state in [initial.q] and [initial.s].",
            )
        v[own] = 0.0  # follows
    moving = zip(robot.freedom_names, v.tolist(), strict=True)
    return {name: x for name, x in moving if x} | dict(table.s or {})


def joint_of(robot: Mechanism, freedom: str) -> str:
    """Name of a joint in that of one of its freedoms, such as `ball` of `ball[wx]`."""
    return freedom if freedom in robot.joints else freedom.rpartition("[")[0] or freedom


def _stored(
    table: InitialTable, robot: Mechanism, path: str | PathLike[str]
) -> tuple[np.ndarray, np.ndarray]:
    """Configuration and velocity of the keyframe; without one neutral, at rest."""
    name, still = table.keyframe, np.zeros(robot.nv)
    if name is None:
        return np.array(robot.neutral(), dtype=float), still
    if name not in robot.keyframes:
        raise unknown(path, "[initial]", "keyframe", "a keyframe", name, robot.keyframes)
    with located(path, "[initial]", "keyframe"):
        q, v = robot.keyframe(name)
    return q, still if table.start else v


def read_momentum(
    table: InitialTable,
    momentum: Sequence[float] | None,
    robot: Mechanism,
    q: np.ndarray,
    path: str | PathLike[str],
    velocities: Mapping[str, float],
) -> np.ndarray | None:
    """Momentum as it is written, of a keyframe that moves, or of a spin."""
    v = np.array([velocities.get(name, 0.0) for name in robot.freedom_names])
    spin, field = table.spin_deg, "spin_deg"
    if spin is None:
        if not (_floats(robot) and np.any(_stored(table, robot, path)[1])):
            return None if momentum is None else np.array(momentum, dtype=float)
        field = "keyframe"
    refusal = Refusal(str(path), "[initial]")
    if momentum is not None:
        expected = f"either `{field}` with velocities or `momentum`"
        cure = "Remove one of them; beside `spin_deg` a `drift` moves the centre of mass."
        refusal(field, expected, "both", cure)
    if spin is None:
        return np.asarray(robot.momentum(q, v))
    if not _floats(robot):
        came = f"`{robot.base.name}` on a joint of type {type(robot.base.joint).__name__}"
        cure = "Write `momentum`, or the velocities in [initial.s]."
        refusal(field, "a base on a Free joint, without wheels", came, cure)
    v[:6] = [0.0, 0.0, 0.0, *np.radians(spin)]
    linear = robot.momentum_matrix(q)[:3]
    along = robot.total_mass * np.array(table.drift or (0.0, 0.0, 0.0))
    v[:3] = np.linalg.solve(linear[:, :3], along - linear @ v)
    return np.array([*along, *robot.momentum(q, v)[3:]])


def spinning(
    table: InitialTable, servo: Servo, found: Start, path: str | PathLike[str]
) -> tuple[np.ndarray, np.ndarray]:
    """Momentum (6,) of a spin, and velocities (ns,) of joints that move the outputs as at a start.

    The start was found at another momentum. The momentum for velocities of the joints and the
    velocities that keep those of the outputs are affine: both together are linear equations.
    """
    model, q = servo.model, found.q
    horizontal, drift = model.lift(q)
    moved = np.array([servo.motion(q, column)[0] for column in horizontal.T]).T
    follow = np.linalg.pinv(moved)

    def at(momentum: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Momentum of the spin, and velocities, with joints that follow at a momentum."""
        change = np.asarray(model.lift(q, momentum)[1]) - drift
        s = found.s - follow @ np.asarray(servo.motion(q, change)[0])
        named = dict(zip(model.shape_names, s.tolist(), strict=True))
        return np.asarray(read_momentum(table, None, model.robot, q, path, named)), s

    start = at(np.zeros(6))[0]
    slope = np.array([at(one)[0] - start for one in np.eye(6)]).T
    momentum = np.linalg.solve(np.eye(6) - slope, start)
    return momentum, at(momentum)[1]


def _offset(
    table: Mapping[str, Any], outputs: Sequence[Output], path: str | PathLike[str]
) -> dict[str, np.ndarray]:
    sizes = {output.name: output.dim for output in outputs}
    for name, value in table.items():
        if name not in sizes:
            raise unknown(path, "[initial.offset]", name, "an output", name, sizes)
        if (1 if is_number(value) else len(value)) != sizes[name]:
            raise fault(
                path,
                "[initial.offset]",
                name,
                expected=f"{sizes[name]} numbers, m and rad",
                came=show(value),
                cure="Give as many numbers as the error of this output has coordinates.",
            )
    return {name: np.atleast_1d(np.array(value, dtype=float)) for name, value in table.items()}
