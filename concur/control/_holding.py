"""Limits of the controls, and barriers of configurations whose weight and springs they can hold.

The torque w(q) that holds a motor's joints at rest has to stay within ``(1 - RESERVE)`` of its
limits. It moves towards them no faster than ``w' = beta (limit - w)``, with FREQUENCY times the
frequency of a pendulum as long as the robot, and of the joints on their springs, whose squares add
up, and to this approach with twice `approach`. To brake
at this rate takes about the torque that is left, ``limit - w``: a faster approach could not be
kept, a slower one would limit motion far away.
"""

from __future__ import annotations

from dataclasses import replace

import casadi as ca
import numpy as np

from concur.codegen import Array, Vector
from concur.control._barriers import Limit, Moved
from concur.control._core import LawCore, approach
from concur.control._law import controls
from concur.robot import Mechanism, control_velocities, robot_size, speed_torque_line

RESERVE = 0.01
"""Share of a torque limit that is left where a joint comes to rest against its weight."""

ROUNDING = 1e-9
"""Share of a product of two vectors below which it is rounding."""

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
    """Barriers of torques that hold weight and springs; none where motors may share them."""
    limits, model, system = servo.constraints, servo.model, servo.model.system
    if limits is None or not limits.holding or not isinstance(system, Mechanism):
        return []
    stretched = any(spring.stiffness for spring in system.springs)
    if servo.nu != servo.ns or not (stretched or np.any(system.gravity)):
        return []
    at, still = ca.SX.sym("q", servo.nq), (ca.SX(servo.nv, 1), ca.SX(servo.ns, 1))
    torques = controls(model, at, model.shape_forces(at, *still), servo.torque_weights)[0]
    kept = np.isfinite(np.asarray(servo.torque_limits)).any(axis=1)
    places = [k for k in np.flatnonzero(kept).tolist() if ca.depends_on(torques[k], at)]
    moved = Moved.along(servo, at, torques[places], q, v, sdot)
    squares = np.full(servo.nu, np.linalg.norm(system.gravity) / robot_size(system))
    if stretched:
        squares += spring_frequencies(servo)
        squares[squares == 0.0] = squares.max()
    rates = (FREQUENCY * np.sqrt(squares)).tolist()
    ends = [(1.0 - RESERVE) * end[places] for end in torque_bounds(servo, q, 0 * v)]
    found = [Limit(moved.second[k]) for k in range(len(places))]
    for k, place in enumerate(places):
        name, pair = f"weight on {model.control_names[place]}", (ends[0][k], ends[1][k])
        moved.add_ends(found[k], k, name, pair, rates[place], 2.0 * approach(servo))
        found[k].fast = 2.0 * ca.fabs(moved.rate[k]) / (rates[place] * (pair[1] - pair[0]))
    return found


def spring_frequencies(servo: LawCore) -> np.ndarray:
    """Squared frequencies of the motion that changes each control's torque most, on springs alone.

    In the neutral configuration, shape (nu,), 1/s^2; zero for controls without a spring. With the
    row a of a control in the inverse of the input matrix, the stiffness K and the inertia M of the
    shape it is ``a K M^-1 K^T a^T / |a K^T a^T|``.
    """
    model, system = servo.model, servo.model.system
    assert isinstance(system, Mechanism)
    alone = model.on(replace(system, gravity=(0.0, 0.0, 0.0)))
    q, still = ca.SX.sym("q", servo.nq), (ca.SX(servo.nv, 1), ca.SX(servo.ns, 1))
    forces = ca.densify(alone.shape_forces(q, *still))
    motions = [system.rate(q, model.lift(q)[0][:, k]) for k in range(servo.ns)]
    stiffness = ca.horzcat(*[ca.jtimes(forces, q, motion) for motion in motions])
    graph = ca.Function("springs", [q], [stiffness, model.mass_matrix(q), model.input_matrix(q)])
    pulls, inertia, acting = (np.array(part) for part in graph(system.neutral()))
    found = np.zeros(servo.nu)
    for k, own in enumerate(np.linalg.pinv(acting)):
        row = own @ pulls
        if abs(row @ own) > ROUNDING * np.linalg.norm(row) * np.linalg.norm(own):
            found[k] = row @ np.linalg.solve(inertia, row) / abs(row @ own)
    return found
