"""Velocities at the start in many worlds at once."""

from __future__ import annotations

import casadi as ca

from concur.reduction import ReducedModel
from concur.robot import control_velocities
from concur.simulation._plant import Plant


def start_function(model: ReducedModel, plant: Plant) -> ca.Function:
    """Configuration, velocity, speeds of the controls and loads of wheels that slip.

    The robot starts without slip, at the true momentum, and the loads are those of no acceleration.

    From (q, s, momentum, numbers of the plant). The momentum is that of the world's robot; a
    further stage keeps the shape velocities of the model.
    """
    q, s = ca.SX.sym("q", plant.nq), ca.SX.sym("s", model.ns)
    momentum, p = ca.SX.sym("momentum", model.nm), ca.SX.sym("p", plant.n_numbers)
    robot = plant.symbolic(p)
    at = robot.normalize(q) if plant.n_numbers else q
    v = model.velocity(at, s, momentum)
    dependent, shape = list(model.first.dependent), list(model.first.shape)
    if (plant.n_numbers or plant.robot is not model.system) and dependent:
        if model.takes_momentum:
            carried = (model.robot.mass_matrix(at) @ v)[dependent]
            rows = robot.mass_matrix(at)[dependent, :]
        else:
            carried = ca.SX(len(dependent), 1)
            rows = robot.constraints(at)
        v = ca.SX(v)
        v[dependent] = ca.solve(rows[:, dependent], carried - rows[:, shape] @ v[shape])
    loads = plant.loads(at, v, ca.SX(plant.nv, 1), p) if plant.nl else ca.SX(0, 1)
    results = [at, v, control_velocities(robot, at, v), loads]
    return ca.Function("start", [q, s, momentum, p], [ca.densify(part) for part in results])
