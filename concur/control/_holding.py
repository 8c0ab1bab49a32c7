"""Limits of the controls, and barriers of configurations whose weight they can hold.

The torque w(q) that holds a motor's joints at rest has to stay within ``(1 - RESERVE)`` of its
limits. It moves towards them no faster than ``w' = beta (limit - w)``, with FREQUENCY times the
frequency of a pendulum as long as the robot, and to this approach with twice `approach`. To brake
at this rate takes about the torque that is left, ``limit - w``: a faster approach could not be
kept, a slower one would limit motion far away.
"""

from __future__ import annotations

import casadi as ca
import numpy as np

from concur.codegen import Array, Vector
from concur.control._barriers import Limit, Moved
from concur.control._core import LawCore, approach
from concur.control._law import controls
from concur.robot import Mechanism, control_velocities, robot_size, speed_torque_line

RESERVE = 0.01
"""Share of a torque limit that is left where a joint comes to rest against its weight."""

FREQUENCY = 1.5
"""Rate of the approach to a limit, over the frequency of a pendulum as long as the robot."""


def torque_bounds(servo: LawCore, q: Vector, v: Vector) -> tuple[Array, Array]:
    """Lower and upper limits of the controls, shape (nu,), with the motors' line of speed."""
    low, high = (ca.SX(ca.DM(side)) for side in np.asarray(servo.torque_limits).T)
    motors = getattr(servo.model.system, "motors", ())
    if any(motor.no_load_speed < np.inf for motor in motors):
        speeds = control_velocities(servo.model.system, q, v)
        for k, motor in enumerate(motors, servo.nu - len(motors)):
            if motor.no_load_speed < np.inf:
                least, most = speed_torque_line(motor.stall, motor.no_load_speed, speeds[k])
                low[k], high[k] = ca.fmax(low[k], least), ca.fmin(high[k], most)
    return low, high


def weights_held(servo: LawCore, q: Vector, v: Vector, sdot: Vector) -> list[Limit]:
    """Barriers of the torques that hold the weight; none where motors may share it."""
    limits, model, system = servo.constraints, servo.model, servo.model.system
    if limits is None or not limits.holding or not isinstance(system, Mechanism):
        return []
    if servo.nu != servo.ns or not np.any(system.gravity):
        return []
    at, still = ca.SX.sym("q", servo.nq), (ca.SX(servo.nv, 1), ca.SX(servo.ns, 1))
    torques = controls(model, at, model.shape_forces(at, *still), servo.torque_weights)[0]
    kept = np.isfinite(np.asarray(servo.torque_limits)).any(axis=1)
    places = [k for k in np.flatnonzero(kept).tolist() if ca.depends_on(torques[k], at)]
    moved = Moved.along(servo, at, torques[places], q, v, sdot)
    beta = FREQUENCY * float(np.sqrt(np.linalg.norm(system.gravity) / robot_size(system)))
    ends = [(1.0 - RESERVE) * end[places] for end in torque_bounds(servo, q, 0 * v)]
    found = [Limit(moved.second[k]) for k in range(len(places))]
    for k, place in enumerate(places):
        name, pair = f"weight on {model.control_names[place]}", (ends[0][k], ends[1][k])
        moved.add_ends(found[k], k, name, pair, beta, 2.0 * approach(servo))
        found[k].fast = 2.0 * ca.fabs(moved.rate[k]) / (beta * (pair[1] - pair[0]))
    return found
