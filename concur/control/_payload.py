"""A load of unknown mass on a body: its forces, linear in its ten inertial parameters."""

from __future__ import annotations

import casadi as ca
import numpy as np

from concur.codegen import Array, Vector, constant
from concur.control._margins import natural_units
from concur.robot import Mechanism, Posture, cross, jacobian

PARAMETERS = 10
"""Mass, kg; first moment (3,), kg m; inertia xx, yy, zz, xy, xz, yz about the body's origin,
kg m^2: all in the frame of the body. The off-diagonal entries are those of the tensor."""

LOAD = (
    ("mass", "kg"),
    *((f"first_moment_{axis}", "kg m") for axis in "xyz"),
    *((f"inertia_{axes}", "kg m^2") for axes in ("xx", "yy", "zz", "xy", "xz", "yz")),
)
"""Names and units of the parameters."""


def load_forces(
    robot: Mechanism, body: str, q: Vector, v: Vector, w: Vector, wdot: Vector, load: Array
) -> Array:
    """Forces (nv,), N and N m, that the velocities w with rates wdot need for a load (10,).

    The points of the load have the acceleration ``a + P r`` along the motion v, where r is the way
    from the body's origin. With first moment c and second moment S, the force is ``m a + P c``, and
    the moment ``c x a`` plus the axial vector of ``P S - S P^T``.
    """
    seat = robot.terms.seats[robot.index(body)]
    motion = Posture.of(robot, q).motions(v, wdot, robot.gravity, w)[seat.link]
    turn, squares = constant(seat.rotation), motion.squares
    linear = turn.T @ (motion.linear + motion.changed(constant(seat.translation)))
    diagonal = [squares[k] - squares[0] - squares[1] - squares[2] for k in range(3)]
    change = turn.T @ (motion.change + ca.diag(ca.vertcat(*diagonal))) @ turn
    mass, first, inertia = load[0], load[1:4], load[4:]
    xx, yy, zz, xy, xz, yz = ca.vertsplit(inertia)
    half = (xx + yy + zz) / 2
    second = ca.blockcat([[half - xx, -xy, -xz], [-xy, half - yy, -yz], [-xz, -yz, half - zz]])
    moved = change @ second
    moment = ca.vertcat(
        moved[2, 1] - moved[1, 2], moved[0, 2] - moved[2, 0], moved[1, 0] - moved[0, 1]
    )
    wrench = ca.vertcat(mass * linear + change @ first, cross(first, linear) + moment)
    return jacobian(robot, q, body).T @ wrench


def load_gains(robot: Mechanism, gain: float) -> np.ndarray:
    """Gains (10,) of the parameters, from that of the mass: lengths count in the robot's size."""
    size = natural_units(robot)[1]
    return gain * size ** np.repeat([0.0, 2.0, 4.0], [1, 3, 6])


def load_units(robot: Mechanism) -> np.ndarray:
    """Units (10,) of the parameters: the mass of the robot that can move, and its size."""
    root, size = natural_units(robot)
    return root**2 * size ** np.repeat([0.0, 1.0, 2.0], [1, 3, 6])
