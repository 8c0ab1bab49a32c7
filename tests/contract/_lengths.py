"""Lengths of the graphs of each robot: instructions of CasADi, which every machine counts alike."""

from __future__ import annotations

from typing import Any

import casadi as ca

import concur as cc
from tests.contract._robots import Case, case


def shared(name: str, inputs: list[Any], outputs: list[Any]) -> int:
    """Instructions of scalar expressions, dense and with common parts shared."""
    dense = [ca.densify(output) for output in outputs]
    return int(ca.Function(name, inputs, dense, {"cse": True}).n_instructions())


def lengths(name: str) -> dict[str, int]:
    """Count the graphs of a robot of the contract.

    Parameters
    ----------
    name : str
        Of the robot.

    Returns
    -------
    dict
        Mass matrix and bias of the tree, acceleration of its plant (of all coordinates, with the
        reactions of the wheels) and of its shape, torque of its law, and the tick with all checks.
    """
    one = case(name)
    robot = one.system or one.robot
    q, v = ca.SX.sym("q", robot.nq), ca.SX.sym("v", robot.nv)
    found = {
        "mass_matrix": shared("mass_matrix", [q], [robot.mass_matrix(q)]),
        "bias": shared("bias", [q, v], [robot.bias(q, v)]),
    }
    return found | _of_law(one, q, v)


def _of_law(one: Case, q: Any, v: Any) -> dict[str, int]:
    model, servo = one.model, one.servo
    s, u = ca.SX.sym("s", model.ns), ca.SX.sym("u", model.nu)
    plant = cc.Plant(one.system or one.robot)
    poses = {"R3xSO3": 7, "SE3": 7, "SO3": 4, "R3": 3, "SE2": 3, "R2": 2, "SO2": 1, "R": 1}
    sizes = [sum(poses[output.group] for output in one.outputs), one.size, one.size]
    parts = [ca.SX.sym(f"reference{k}", size) for k, size in enumerate(sizes)]
    torque = servo.torque(q, s, cc.ReferenceSample(*parts))
    tick = cc.control.tick_function(servo)
    return {
        "plant": shared("plant", [q, v, u], [plant.acceleration(q, v, u)[0]]),
        "acceleration": shared("acceleration", [q, s, u], [model.acceleration(q, s, u)]),
        "law": shared("law", [q, s, *parts], [torque]),
        "tick": int(tick.expand().n_instructions()),
    }
