"""Controls of any system, and systems that are trees of bodies."""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca
import numpy as np

from concur.codegen import Array, Vector
from concur.errors import ReductionError
from concur.robot._kinematics import along_controls
from concur.robot._mechanism import Mechanism
from concur.robot._size import length_scale
from concur.robot._tree import Tree
from concur.system import System


def control_velocities(system: System | Tree, q: Vector, columns: Array) -> Array:
    """Velocities along the controls: ``B^T columns`` for columns of velocities of the robot.

    Where joints are driven one by one it is a selection of rows.

    Parameters
    ----------
    system : System
        Any system.
    q : casadi.SX
        Configuration, shape (nq,).
    columns : casadi.SX or casadi.MX
        Velocities, shape (nv, k).

    Returns
    -------
    casadi.SX or casadi.MX
        Shape (nu, k).
    """
    if not isinstance(system, Tree) and hasattr(system, "actuation"):
        rows: Array = system.actuation(q).T @ columns
        return rows
    if not isinstance(system, Tree) or not system.motors:
        return columns[list(system.actuated_freedoms), :]
    if isinstance(system, Mechanism) and isinstance(columns, ca.MX):
        return system.actuation(q).T @ columns
    return along_controls(system, q, columns)


def controls(system: System) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names and units of the controls of a system.

    A system without the members `actuation`, `control_names` and `control_units` of a `Mechanism`
    has one control for each of its driven velocities.

    Parameters
    ----------
    system : System
        Any system.

    Returns
    -------
    names, units : tuple of str
        One per control.
    """
    if isinstance(system, Mechanism):
        return system.control_names, system.control_units
    if hasattr(system, "control_names") and hasattr(system, "control_units"):
        return tuple(system.control_names), tuple(system.control_units)
    driven = system.actuated_freedoms
    names, units = system.freedom_names, system.effort_units
    return tuple(names[i] for i in driven), tuple(units[i] for i in driven)


def coordinates(system: System) -> list[tuple[str, str]]:
    """Name and unit of each configuration coordinate of a system.

    Parameters
    ----------
    system : System
        Any system; without bodies, its members `coordinate_names` and `coordinate_units` are used.

    Returns
    -------
    list of tuple of str
        One pair for each entry of q.
    """
    if isinstance(system, Mechanism):
        return [
            pair
            for body in system.bodies
            for pair in zip(
                body.of_each(body.joint.coordinate_names), body.joint.coordinate_units, strict=True
            )
        ]
    names = getattr(system, "coordinate_names", [f"q[{k}]" for k in range(system.nq)])
    return list(zip(names, getattr(system, "coordinate_units", [""] * system.nq), strict=True))


def as_tree(
    system: System,
    where: str,
    cure: str = "Use what needs mass matrix, forces and constraints only, or describe the bodies.",
) -> Mechanism:
    """Demand that a system is a tree of bodies.

    Parameters
    ----------
    system : System
        Any system.
    where : str
        Place named in the error: what needs the bodies.
    cure : str
        What to do without bodies.

    Returns
    -------
    Mechanism
        The same.

    Raises
    ------
    ReductionError
        If it is no `Mechanism`.
    """
    if isinstance(system, Mechanism):
        return system
    raise ReductionError(
        where,
        expected="a Mechanism: a tree of bodies",
        came=f"the {type(system).__name__} `{system.name}`",
        cure=cure,
    )


def robot_size(robot: Tree, points: Sequence[np.ndarray] = ()) -> float:
    """Length with which radians and metres of a robot are compared.

    Parameters
    ----------
    robot : Mechanism
        The robot.
    points : sequence of numpy.ndarray
        More points of the robot, shape (3,), m.

    Returns
    -------
    float
        The length, m; above zero.
    """
    return length_scale(robot, robot.wheels, points) if points else robot.size
