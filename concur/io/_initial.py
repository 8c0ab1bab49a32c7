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
from concur.io._configuration import read_configuration
from concur.outputs import Output
from concur.outputs.references import Reference
from concur.robot import Mechanism
from concur.robot.joints import Free
from concur.simulation import FASTEST_START
from concur.tables import (
    Expected,
    NumberOrList,
    Refusal,
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


@dataclass(frozen=True)
class InitialTable:
    """The initial state, or where it is sought.

    Parameters
    ----------
    q : float or sequence of float, optional
        Configurations by body, m and rad: a number for a joint with one coordinate, else a list.
        Default: neutral.
    s : mapping, optional
        Shape velocities by name, m/s and rad/s; the base has none. Default: zero.
    start : str, optional
        The outputs start on their references, in pose and velocity; excludes `q` and `s`. Default:
        as written in `q` and `s`.
    near : float or sequence of float, optional
        With `start`: configurations by body, m and rad, near which the robot starts. Default:
        neutral.
    attitude_deg : sequence of float, optional
        Attitude of a base on a `Free` or `Spherical` joint, in place of its entry in `q` or `near`:
        angles (3,), deg, by which it is turned about the inertial axes x, then y, then z. Default:
        as in `q`.
    spin_deg : sequence of float, optional
        Angular velocity of the base, (3,), deg/s, along its axes, in place of `momentum`: that of
        the task is the momentum at this velocity, at those of `s` and with the centre of mass at
        rest. Default: none.
    offset : float or sequence of float, optional
        With `start`: pose error at the start by output, m and rad: linear, then angular, as the
        group of the output has them. In R^n it is the reference minus the output. Default: zero.
    """

    q: Annotated[Mapping[str, NumberOrList], Expected("a table of bodies")] | None = None
    s: Annotated[Mapping[str, Velocity], Expected("a table of shape velocities")] | None = None
    start: Annotated[str, one_of((ON_REFERENCE,))] | None = None
    near: Annotated[Mapping[str, NumberOrList], Expected("a table of bodies")] | None = None
    attitude_deg: Vector3 | None = None
    spin_deg: Vector3 | None = None
    offset: Annotated[Mapping[str, NumberOrList], Expected("a table of outputs")] | None = None

    def __post_init__(self) -> None:
        written, sought = ("q", "s"), ("near", "offset")
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
    return found


def read_posture(table: InitialTable, robot: Mechanism, path: str | PathLike[str]) -> np.ndarray:
    """Configuration that is written, or near which the start is sought."""
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
        turn = Rotation.from_euler("xyz", table.attitude_deg, degrees=True)
        given[base.joint_label] = [*np.zeros(base.joint.quaternion_at), *turn.as_quat()]
    return read_configuration(given, robot, path, f"[initial.{field}]")


def read_momentum(
    table: InitialTable,
    momentum: Sequence[float] | None,
    robot: Mechanism,
    q: np.ndarray,
    path: str | PathLike[str],
    s: Mapping[str, float] | None = None,
) -> np.ndarray | None:
    """Momentum as it is written, or that of a spin, with the centre of mass at rest.

    The velocities s of the joints, by name, are those of the table by default.
    """
    if table.spin_deg is None:
        return None if momentum is None else np.array(momentum, dtype=float)
    refusal = Refusal(str(path), "[initial]")
    if momentum is not None:
        refusal("spin_deg", "either `spin_deg` or `momentum`", "both", "Remove one of them.")
    if not isinstance(robot.base.joint, Free) or robot.wheels:
        came = f"`{robot.base.name}` on a joint of type {type(robot.base.joint).__name__}"
        cure = "Write `momentum`, or the velocities in [initial.s]."
        refusal("spin_deg", "a base on a Free joint, without wheels", came, cure)
    v = np.zeros(robot.nv)
    for name, value in (s or table.s or {}).items():
        if name in robot.freedom_names:  # others are refused with the model's velocities
            v[robot.freedom_names.index(name)] = value
    span = robot.v_slice(robot.base.name)
    v[span.start + 3 : span.stop] = np.radians(table.spin_deg)
    still = slice(span.start, span.start + 3)
    linear = robot.momentum_matrix(q)[:3]
    v[still] = -np.linalg.solve(linear[:, still], linear @ v)
    return np.array([0.0, 0.0, 0.0, *robot.momentum(q, v)[3:]])


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
