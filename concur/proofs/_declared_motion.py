"""The declared motion: the full-order plant under the law without hold or other imperfections."""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np
from scipy.integrate import solve_ivp

from concur._polynomials import Floats
from concur.control import Servo, taken_velocities
from concur.proofs._bases import Base
from concur.proofs._provable import Provable, plain_law
from concur.simulation import Plant


def true_errors(servo: Servo, q: ca.SX, v: ca.SX, pose: Any, twist: Any) -> tuple[ca.SX, ca.SX]:
    """Errors x and ve of a motion v of the whole robot, whatever the law takes."""
    x = servo.pose_error(q, pose)
    return x, servo.motion(q, v)[0] - servo.error_dynamics.group.transport(x) @ twist


def declared_motion(task: Provable, base: Base, times: Floats) -> Floats:
    """Errors and base at times from 0 on, shape (times, 2 size + base.rows)."""
    servo, reference = plain_law(task.servo), task.reference
    system, nq = servo.model.robot, servo.nq
    q, v = ca.SX.sym("q", nq), ca.SX.sym("v", servo.nv)
    given = [ca.SX.sym("r", n) for n in (servo.pose_size, servo.size, servo.size)]
    u = servo.law(q, taken_velocities(servo, v), *given)[0]
    moved = ca.vertcat(system.rate(q, v), Plant(system).acceleration(q, v, u)[0])
    rate = ca.Function("rate", [q, v, *given], [moved], {"cse": True})
    rows = ca.vertcat(*true_errors(servo, q, v, *given[:2]), q[base.rows])
    seen = ca.Function("seen", [q, v, *given[:2]], [rows], {"cse": True})

    def slope(t: float, z: Floats) -> Floats:
        at = reference(t)
        return np.asarray(rate(z[:nq], z[nq:], at.flat_pose, at.twist, at.acceleration)).ravel()

    start = np.concatenate([task.q0, servo.model.velocity(task.q0, task.s0)])
    path = solve_ivp(
        slope, (0.0, task.duration), start, method="DOP853", t_eval=times, rtol=1e-11, atol=1e-13,
        max_step=0.05,
    ).y  # fmt: skip
    aims = [reference(t) for t in times.tolist()]
    pose, twist = (
        np.array([getattr(at, name) for at in aims]).T for name in ("flat_pose", "twist")
    )
    return np.asarray(seen(path[:nq], path[nq:], pose, twist)).T
