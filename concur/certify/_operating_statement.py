"""Validation of an operating box: ranges, speeds, errors and the resulting commands."""

from __future__ import annotations

from collections.abc import Mapping

import casadi as ca
import numpy as np

from concur.certify._arrays import above
from concur.certify._checks import check, check_sizes
from concur.certify._disturbances import check_unmeasured
from concur.certify._intervals import PRECISION, Walker, flint, interval
from concur.certify._operating_box import Demand
from concur.certify._operating_graph import momentum_size
from concur.codegen import finite_floats
from concur.control import Servo
from concur.errors import OutputError, UnknownNameError
from concur.robot import scalar

_FARTHEST = 1e6  # rad and m: beyond it floats are too coarse for a joint coordinate


def check_servo(servo: object, where: str) -> None:
    own, cure = isinstance(servo, Servo), "Pass the servo that drives the robot."
    check(own, f"{where}, `servo`", "a Servo", type(servo).__name__, cure)
    check_unmeasured(servo, where)  # type: ignore[arg-type]


def usual_margin(servo: Servo) -> float:
    """Margin above which the law is neither stopped nor damped."""
    if servo.damping_threshold is None:
        return servo.singular_margin
    # The bound compared with it is smaller than the margin by at most this factor.
    least = max(servo.singular_margin, servo.margins.damped_below)
    return float(least * servo.size**0.25 * (1 + 1e-12))


def coordinate_names(servo: Servo) -> dict[int, str]:
    """Name of each coordinate of q: that of the joint, with an index if it has several."""
    robot, names = servo.model.robot, {}
    for body in robot.bodies:
        places = range(*robot.q_slice(body.name).indices(robot.nq))
        for k, i in enumerate(places):
            names[i] = body.joint_label if len(places) == 1 else f"{body.joint_label}[{k}]"
    return names


def read_ranges(servo: Servo, ranges: object, where: str) -> dict[int, tuple[float, float]]:
    """Range of each named coordinate, by index in q."""
    robot = servo.model.robot
    if not isinstance(ranges, Mapping):
        raise OutputError(
            f"{where}, `ranges`",
            expected="a mapping from joints to their ranges",
            came=f"{type(ranges).__name__} {ranges!r:.40}",
            cure='Write {"forearm": (-1.7, -1.5)}.',
        )
    found: dict[int, tuple[float, float]] = {}
    for name, value in ranges.items():
        here = f"{where}, range of `{name}`"
        if name not in robot.joints:
            raise UnknownNameError(
                here,
                expected=f"a joint ({', '.join(robot.joint_names)})",
                came=f"`{name}`",
                cure="Correct the name or remove the entry.",
                name=str(name),
            )
        places = range(*robot.q_spans[robot.joints[name]].indices(robot.nq))
        shapes = [(len(places), 2), *([(2,)] if len(places) == 1 else [])]
        ends = finite_floats(value, here, *shapes).reshape(-1, 2)
        farthest, cure = np.abs(ends).max(), "Use at most one turn, 6.28 rad, for an angle."
        check(farthest <= _FARTHEST, here, f"ends up to {_FARTHEST:g}", farthest, cure)
        for i, (low, high) in zip(places, ends.tolist(), strict=True):
            text = f"({low:g}, {high:g})"
            check(low <= high, here, "a lower end, then an upper end", text, "Exchange them.")
            found[i] = (low, high)
    return found


def read_speeds(servo: Servo, speeds: object, where: str) -> np.ndarray:
    names = servo.model.shape_names
    here = f"{where}, `speeds`"
    if isinstance(speeds, Mapping):
        unknown = [name for name in speeds if name not in names]
        lost = [name for name in names if name not in speeds]
        if unknown or lost:
            wrong = unknown[0] if unknown else lost[0]
            raise UnknownNameError(
                here,
                expected=f"each shape velocity ({', '.join(names)})",
                came=f"`{wrong}`" if unknown else f"no speed for `{wrong}`",
                cure="Give a speed for each, or one number for all.",
                name=str(wrong),
            )
        speeds = [speeds[name] for name in names]
    return _sizes_of(speeds, len(names), here)


def read_sizes(servo: Servo, value: object, name: str, where: str) -> np.ndarray:
    return _sizes_of(value, servo.size, f"{where}, `{name}`")


def _sizes_of(value: object, count: int, where: str) -> np.ndarray:
    sizes = finite_floats(value, where, (), (count,))
    check_sizes(where, sizes)
    return np.array(np.broadcast_to(sizes, (count,)), dtype=float)


def body_momentum(servo: Servo, distance: float | None, where: str) -> np.ndarray:
    """Bounds of the momentum's components in the base's axes, at any base position."""
    count = momentum_size(servo, where)
    model = servo.model
    if not count:
        return np.zeros(0)
    linear, angular = np.linalg.norm(model.momentum[:3]), np.linalg.norm(model.momentum[3:])
    check(
        not linear > 0.0 or distance is not None,
        f"{where}, `distance`",
        "the largest distance of the base from the inertial origin, m",
        "no value, with linear momentum",
        "Pass for example distance=2.0: the angular momentum about the base depends on it.",
    )
    reach = 0.0 if distance is None else scalar(distance, f"{where}, `distance`")
    check(reach >= 0.0, f"{where}, `distance`", "a nonnegative distance", reach, "Omit it.")
    basis = model.robot.base.joint.basis
    # Dual to the base's velocities: a component is a column of the basis times the momentum.
    bounds = np.linalg.norm(basis[:3], axis=0) * linear
    bounds = bounds + np.linalg.norm(basis[3:], axis=0) * (angular + reach * linear)
    return np.asarray(bounds * (1 + 1e-12))


def demand_of(
    servo: Servo,
    acceleration: np.ndarray,
    pose_error: np.ndarray,
    velocity_error: np.ndarray,
    where: str,
) -> Demand:
    """Bound the command: feedback(x, ve) + Ad a + ad(v) ve, v the output velocity."""
    group, size = servo.error_dynamics.group, servo.size
    x, ve, a = (ca.SX.sym(name, size) for name in ("x", "ve", "a"))
    command = servo.error_dynamics.feedback(x, ve) + group.transport(x) @ a
    walker = Walker(ca.Function("command", [x, ve, a], [ca.densify(command)], {"cse": True}))
    sides = [
        [interval(-float(v), float(v)) for v in part]
        for part in (pose_error, velocity_error, acceleration)
    ]
    with flint().ctx.workprec(PRECISION):
        largest = np.array([above(abs(v)) for v in walker(sides)[0].entries()])
    expected = "rotation errors with a bounded command"
    came, cure = f"up to {pose_error.max():g}", "State smaller errors."
    check(bool(np.isfinite(largest).all()), f"{where}, `pose_error`", expected, came, cure)
    carried = np.zeros((size, size))
    for k, unit in enumerate(np.eye(size)):
        bracket = np.abs(np.array(ca.DM(ca.SX(group.ad(ca.SX(ca.DM(unit)))))))
        carried[:, k] = bracket @ velocity_error
    return Demand(largest, carried * (1 + 1e-13))
