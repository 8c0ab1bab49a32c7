"""Loads of wheels and supports on the ground, forces of an axle, and what holds a base down.

With the wrench of the whole robot about a point of the ground, in axes of the base, supports at
(x_j, y_j) that carry forces N_j along the normal obey

    sum N_j = F_z,   sum y_j N_j = M_x,   -sum x_j N_j = M_y.

Forces in the ground have no moment about its axes, so loads follow without them. Three supports
that are not in line determine N; more of them share it as springs of a declared compliance.
Without one, some N >= 0 exists exactly if M keeps its sign about each edge of the polygon of
supports. Wheels alone carry forces in the ground: along two wheels of one axle the forces X_j
follow from F_x and M_z, their common lateral force is F_y.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import casadi as ca
import numpy as np

from concur.codegen import Vector, constant
from concur.errors import SimulationError, shown
from concur.robot import (
    Mechanism,
    Tree,
    base_wrench,
    coupling_rows,
    plane_normal,
    shortest_rotation,
    solve_positive_definite,
    wheel_rows,
)
from concur.robot.joints import Planar

IN_LINE = 1e-6
"""Singular value of the supports' places, over the largest, below which they are in one line."""

LEAST_LOAD = 0.0
"""Load, N, below which a wheel or support would lift off."""

DETERMINATE = 3
"""Supports whose loads follow from equilibrium."""

Points = Mapping[str, Sequence[float]]
"""Frictionless supports by name: points of contact in the frame of the base, (3,), m."""


def wheel_names(robot: Tree) -> tuple[str, ...]:
    """Name of each wheel: its body's, with a number behind it if the body has several."""
    bodies = [wheel.body for wheel in robot.wheels]
    return tuple(
        name if bodies.count(name) == 1 else f"{name}[{bodies[:k].count(name)}]"
        for k, name in enumerate(bodies)
    )


def plane_axes(robot: Tree) -> np.ndarray:
    """Axes of the base's plane and its normal as columns (3, 3), in the frame of the base."""
    return np.array(shortest_rotation(plane_normal(robot).tolist()))


def load_arms(robot: Tree, q: ca.SX, supports: Points) -> ca.SX:
    """Force along the normal and torques about both axes of the plane by loads of 1 N.

    A column for each wheel, then for each support, shape (3, loads); the torques are about the
    origin of the base.
    """
    axes = plane_axes(robot)
    points = [wheel_rows(robot, q, wheel).point for wheel in robot.wheels]
    points += [constant(np.array(at)) for at in supports.values()]
    x, y = (constant(axes[:, k]).T @ ca.horzcat(*points) for k in range(2))
    return ca.vertcat(ca.SX.ones(1, len(points)), y, -x)


def load_shares(arms: np.ndarray, compliance: Sequence[float] | None) -> np.ndarray:
    """Loads, shape (loads, 3), of force along the normal and torques, which springs share."""
    stiff = _stiffness(arms.shape[1], compliance)
    return np.asarray(stiff @ arms.T @ np.linalg.inv(arms @ stiff @ arms.T))


def ground_loads(
    robot: Tree,
    supports: Points,
    compliance: Sequence[float] | None,
    height: float,
    q: Vector,
    v: Vector,
    vdot: Vector,
    pushed: Vector | None = None,
) -> ca.SX:
    """Loads of wheels and supports in a motion, shape (loads,), N, below zero where one lifts off.

    A disturbance `pushed` (6,), force and torque in the frame of the base, carries its part.
    """
    given = carried_wrench(robot, height, q, v, vdot, pushed)
    arms = load_arms(robot, q, supports)
    if arms.is_constant():
        return constant(load_shares(np.array(ca.DM(arms)), compliance)) @ given
    springs = constant(_stiffness(arms.shape[1], compliance))
    return springs @ arms.T @ solve_positive_definite(arms @ springs @ arms.T, given)


def carried_wrench(
    robot: Tree, height: float, q: Vector, v: Vector, vdot: Vector, pushed: Vector | None = None
) -> ca.SX:
    """Force along the normal, N, and torques about both axes of the plane, N m, of all loads, (3,).

    They come from the wrench of the base's joint, about a point on the ground, where forces in the
    plane have no torque about these axes; `pushed` is that of `ground_loads`.
    """
    axes = plane_axes(robot)
    force, torque = base_wrench(robot, q, v, vdot)
    if pushed is not None:
        force, torque = force - pushed[:3], torque - pushed[3:]
    torque -= ca.cross(constant(height * axes[:, 2]), force)
    return ca.vertcat(constant(axes[:, 2]).T @ force, constant(axes[:, :2]).T @ torque)


def wheel_forces(robot: Mechanism, q: Vector, rest: Vector) -> list[ca.SX]:
    """Forces of the ground along the rows of each wheel, N, that hold rolling wheels.

    With ``rest = M vdot + bias - B u`` (nv,) the multipliers of the constraints solve
    ``C^T lambda = rest``. Wheels whose rows follow from others share a force as equal springs do.
    """
    wheels = [wheel_rows(robot, q, wheel).rows for wheel in robot.wheels]
    rows, kept = ca.vertcat(*wheels, coupling_rows(robot, q)), robot.constraints(q)
    square = kept @ kept.T
    found = solve_positive_definite(square, kept @ rest)
    if rows.shape[0] > kept.shape[0]:
        spread = solve_positive_definite(square, kept @ rows.T)  # rows = spread^T kept
        found = spread.T @ solve_positive_definite(spread @ spread.T, found)
    ends = np.cumsum([0, *(own.shape[0] for own in wheels)]).tolist()
    return [found[first:last] for first, last in pairwise(ends)]


def _stiffness(count: int, compliance: Sequence[float] | None) -> np.ndarray:
    soft = np.array(compliance or [1.0] * count)
    return np.diag(soft.min() / soft)


def axle_rows(points: Sequence[Sequence[float]]) -> np.ndarray:
    """Forces along two wheels of one axle and their lateral force, of a wrench, shape (3, 6)."""
    (x, left), (_, right) = points[:2]
    rows = np.zeros((3, 6))
    # sum X_j = F_x, -sum y_j X_j = M_z - x F_y: lateral forces act on the axle.
    pair = np.linalg.inv([[1.0, 1.0], [-left, -right]])
    rows[:2, 0], rows[:2, 5], rows[:2, 1] = pair[:, 0], pair[:, 1], -x * pair[:, 1]
    rows[2, 1] = 1.0
    return rows


def contact_edges(points: Sequence[Sequence[float]]) -> list[tuple[int, int]]:
    """Edges of the convex polygon of points in a plane, counterclockwise, as pairs of indices.

    Parameters
    ----------
    points : sequence of sequence of float
        The points, shape (n, 2), not all in one line.

    Returns
    -------
    list of tuple of int
        First and last point of each edge.

    Examples
    --------
    >>> from concur.reduction import contact_edges
    >>> contact_edges([(0, 0), (1, 1), (2, 0), (1, 3)])
    [(0, 2), (2, 3), (3, 0)]
    """
    places = np.asarray(points, dtype=float)
    order = sorted(range(len(places)), key=lambda k: tuple(places[k]))

    def chain(rest: list[int]) -> list[int]:
        found: list[int] = []
        for k in rest:
            while len(found) > 1 and _bends_right(*places[[*found[-2:], k]]):
                found.pop()
            found.append(k)
        return found[:-1]

    ring = [*chain(order), *chain(order[::-1])]
    return list(pairwise([*ring, ring[0]]))


def _bends_right(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> bool:
    """Whether the way from a over b to c turns right, or not at all."""
    return bool((b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]) <= 0.0)


def tipping_edges(robot: Tree, supports: Points) -> list[tuple[int, int]]:
    """Edges of the polygon of wheels and supports; none if these move against the base."""
    arms = load_arms(robot, ca.SX.sym("q", robot.nq), supports)
    return contact_edges(contact_points(arms)) if arms.is_constant() else []


def contact_points(arms: ca.SX) -> list[tuple[float, float]]:
    """Places of wheels and supports in the plane, from the origin of the base, m."""
    return [(-float(minus_x), float(y)) for _, y, minus_x in np.asarray(ca.DM(arms)).T]


def tipping_rows(arms: ca.SX, edges: Sequence[tuple[int, int]]) -> ca.SX:
    """Moment about each edge, from the inside, of force along the normal and torques: (edges, 3).

    While it is above zero the base is held down there.
    """
    x, y, rows = -arms[2, :], arms[1, :], [ca.SX(0, 3)]
    for i, j in edges:
        way = ca.vertcat(x[j] - x[i], y[j] - y[i]) / ca.hypot(x[j] - x[i], y[j] - y[i])
        rows.append(ca.horzcat(x[i] * way[1] - y[i] * way[0], way[0], way[1]))
    return ca.vertcat(*rows)


def check_rolling(where: str, robot: Mechanism) -> None:
    """Refuse wheels whose forces on the ground are not those in one plane under the base."""
    for wheel in robot.wheels:
        if wheel.kind == "rubber_ball" or wheel.support is not None:
            raise refusal(
                f"{where}, wheel `{wheel.body}`",
                "wheels on the plane of the base, whose friction is a force in this plane",
                f"a {wheel.kind}" + " with a `support`" * (wheel.support is not None),
                "Leave it out: friction torques and contacts in space are not modelled.",
            )
    if robot.platforms != (0,) or not isinstance(robot.base.joint, Planar):
        raise refusal(
            where,
            "a base on a Planar joint that carries all wheels",
            f"a {type(robot.base.joint).__name__} base, wheels on {len(robot.platforms)} planes",
            "Leave it out: loads follow from the wrench across one plane.",
        )


def check_loads(
    where: str, robot: Mechanism, supports: Points, compliance: Sequence[float] | None
) -> None:
    """Refuse wheels and supports whose loads are not determined."""
    own = wheel_names(robot)
    names = (*own, *supports)
    if len(set(names)) < len(names):
        came = f"{shown(names)}"
        raise refusal(f"{where}, `supports`", "names unlike those of wheels", came, "Rename one.")
    normal = robot.base.placement.rotation_matrix @ plane_normal(robot)
    if not float(normal @ np.array(robot.gravity)) < 0.0:
        raise refusal(
            where,
            "gravity that presses the wheels on their plane",
            f"gravity {tuple(robot.gravity)}, normal {tuple(normal.tolist())}",
            "Set the gravity of the robot, or give constant `loads`.",
        )
    pushing = [motor.name for motor in robot.motors if not motor.ratios]
    if pushing:
        raise refusal(
            where,
            "motors, whose torques are internal",
            f"the thruster `{pushing[0]}`, which loads the wheels too",
            "Give constant `loads`.",
        )
    if len(names) < DETERMINATE:
        raise refusal(
            f"{where}, `supports`",
            "three supports or more",
            f"{len(names)}: {', '.join(names)}",
            'Declare frictionless ones: supports={"caster": (0.5, 0.0, -0.1)}; or give constant '
            "`loads`.",
        )
    if len(names) > DETERMINATE and compliance is None:
        raise refusal(
            f"{where}, `compliance`",
            f"the compliance of each of {len(names)} supports: equilibrium determines three loads",
            "no value",
            "Give compliance=1.0 if all yield alike; only ratios matter.",
        )
    q = ca.SX.sym("q", robot.nq)
    places = ca.Function("places", [q], [ca.densify(load_arms(robot, q, supports))])
    rng = np.random.default_rng(0)
    for sample in [robot.neutral(), *(robot.random(rng) for _ in range(3))]:
        arms = np.array(places(sample))
        arms[1:] -= arms[1:].mean(axis=1, keepdims=True)
        arms[1:] /= np.abs(arms[1:]).max() or 1.0
        if np.linalg.svd(arms)[1][-1] < IN_LINE:
            raise refusal(
                f"{where}, `supports`",
                "supports that are not in one line",
                f"{', '.join(names)} in one line",
                f"Add a frictionless one beside {', '.join(own)}.",
            )


def refusal(where: str, expected: str, came: str, cure: str) -> SimulationError:
    """Error for wheels without a sound model."""
    return SimulationError(where, expected=expected, came=came, cure=cure)
