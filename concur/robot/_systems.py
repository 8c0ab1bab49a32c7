"""Controls of any system, and systems that are trees of bodies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np

from concur.codegen import Array, Vector
from concur.errors import ReductionError
from concur.robot._bodies import unknown_name
from concur.robot._dynamics import damping_forces as dampers
from concur.robot._kinematics import along_controls
from concur.robot._mechanism import Mechanism
from concur.robot._size import length_scale
from concur.robot._tree import Tree
from concur.robot.joints import Joint
from concur.system import System


@dataclass(frozen=True)
class JointPlace:
    """A joint of a system, and where its velocities and coordinates stand in v and q.

    Parameters
    ----------
    name : str
        The joint's body, or the factor of a system without bodies.
    label : str
        Name of the joint.
    joint : Joint
        Its group: pose, rate and bracket.
    rows, entries : slice
        Places in v and in q.
    """

    name: str
    label: str
    joint: Joint
    rows: slice
    entries: slice

    @property
    def freedoms(self) -> list[int]:
        """Indices of its velocities in v."""
        return list(range(self.rows.start, self.rows.stop))


def joint_places(system: System) -> tuple[JointPlace, ...]:
    """Joints of a system in the order of q: of the bodies of a tree, else of its `joint_places`.

    Parameters
    ----------
    system : System
        Any system.

    Returns
    -------
    tuple of JointPlace
        Empty for a system without bodies that has no such member.
    """
    if not isinstance(system, Mechanism):
        return tuple(getattr(system, "joint_places", ()))
    spans = zip(system.bodies, system.v_spans, system.q_spans, strict=True)
    return tuple(JointPlace(b.name, b.joint_label, b.joint, *at) for b, *at in spans)


def joint_names(system: System) -> dict[str, str]:
    """Names by which users call joints, each with that of its body or factor.

    Parameters
    ----------
    system : System
        Any system.

    Returns
    -------
    dict of str to str
        Names of joints, and those of bodies that no other joint has.
    """
    if isinstance(system, Mechanism):
        return {name: system.bodies[index].name for name, index in system.joints.items()}
    return {place.name: place.name for place in joint_places(system)}


def joint_place(system: System, name: str) -> JointPlace:
    """Find a joint by the name of its body or factor.

    Parameters
    ----------
    system : System
        Any system.
    name : str
        The name.

    Returns
    -------
    JointPlace
        The joint.

    Raises
    ------
    UnknownNameError
        If the system has no such joint.
    """
    places = {place.name: place for place in joint_places(system)}
    if name not in places:
        raise unknown_name(f"system `{system.name}`", "joint", name, list(places))
    return places[name]


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


def damping_forces(system: System | Tree, q: Vector, v: Vector) -> Array:
    """Forces of dampers in the bias, linear in the velocities; zeros for a system without bodies.

    Parameters
    ----------
    system : System
        Any system.
    q, v : casadi.SX
        Configuration (nq,) and velocities (nv,).

    Returns
    -------
    casadi.SX
        Shape (nv,), N and N m.
    """
    if isinstance(system, Tree) and system.springs:
        return dampers(system, q, v)
    return ca.SX(system.nv, 1)


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


def robot_size(robot: Tree | System, points: Sequence[np.ndarray] = ()) -> float:
    """Length with which radians and metres of a robot are compared.

    Parameters
    ----------
    robot : Mechanism or System
        The robot. Without bodies the length is a radius of gyration: of the mean inertia of turns
        and the mean mass of translations in the neutral configuration, 1 m without one of them.
    points : sequence of numpy.ndarray
        More points of the robot, shape (3,), m.

    Returns
    -------
    float
        The length, m; above zero.
    """
    if isinstance(robot, Tree):
        return length_scale(robot, robot.wheels, points) if points else robot.size
    turns = np.array([unit == "N m" for unit in robot.effort_units])
    inertia = np.diag(np.asarray(robot.mass_matrix(robot.neutral())))
    if turns.all() or not turns.any():
        return 1.0
    return float(np.sqrt(inertia[turns].mean() / inertia[~turns].mean()))
