"""Configurations whose weight the motors can hold, as barriers on the shape accelerations.

The torque w(q) that holds a motor's joints at rest has to stay within ``(1 - RESERVE)`` of its
limits. It moves towards them no faster than ``w' = beta (limit - w)``, with FREQUENCY times the
frequency of a pendulum as long as the robot. To brake at this rate takes about the torque that is
left, ``limit - w``: a faster approach could not be kept, a slower one would limit motion far away.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import casadi as ca
import numpy as np

from concur.codegen import Array, Vector
from concur.control._core import LawCore, approach
from concur.control._law import controls
from concur.robot import Mechanism, robot_size

RESERVE = 0.01
"""Share of a torque limit that is left where a joint comes to rest against its weight."""

FREQUENCY = 1.5
"""Rate of the approach to a limit, over the frequency of a pendulum as long as the robot."""


class Holding(NamedTuple):
    """Torques that hold the weight, of those motors whose limits they may reach.

    Parameters
    ----------
    places : list of int
        Controls, in the order of the model.
    torque, rate : casadi.SX
        The torques w and their rates, shape (k,).
    beta, kappa : float
        Rate of the approach to limits, and that to this approach, 1/s.
    second : callable
        Second rates of w from the accelerations of all velocities (nv,).
    """

    places: list[int]
    torque: Array
    rate: Array
    beta: float
    kappa: float
    second: Callable[[Vector], Array]

    def bounds(self, low: Array, high: Array) -> tuple[Array, Array]:
        """Lower and upper bound of the second rates, from limits of all controls (nu,)."""
        found = []
        for limits in (low, high):
            room = (1.0 - RESERVE) * limits[self.places] - self.torque
            found.append(self.kappa * (self.beta * room - self.rate) - self.beta * self.rate)
        return found[0], found[1]


def holding(servo: LawCore, q: Vector, v: Vector) -> Holding | None:
    """Torques that hold the weight; None without weight, and where motors may share it."""
    limits, model, system = servo.constraints, servo.model, servo.model.system
    if limits is None or not limits.holding or not isinstance(system, Mechanism):
        return None
    if servo.nu != servo.ns or not np.any(system.gravity):
        return None
    at, w, vdot = (ca.SX.sym("x", size) for size in (servo.nq, servo.nv, servo.nv))
    still = ca.SX(servo.nv, 1), ca.SX(servo.ns, 1)
    torques = controls(model, at, model.shape_forces(at, *still), servo.torque_weights)[0]
    kept = np.isfinite(np.asarray(servo.torque_limits)).any(axis=1)
    places = [k for k in np.flatnonzero(kept).tolist() if ca.depends_on(torques[k], at)]
    if not places:
        return None
    held, moving = torques[places], system.rate(at, w)
    change = ca.jtimes(held, at, moving)
    second = ca.jtimes(change, at, moving) + ca.jtimes(change, w, vdot)
    found = ca.Function("weight", [at, w, vdot], [held, change, second])
    beta = FREQUENCY * float(np.sqrt(np.linalg.norm(system.gravity) / robot_size(system)))
    torque, rate, _ = found.call([q, v, ca.SX(servo.nv, 1)], True, False)
    return Holding(
        *(places, torque, rate, beta, 2.0 * approach(servo)),
        second=lambda a: found.call([q, v, a], True, False)[2],
    )
