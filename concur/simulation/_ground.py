"""Forces of the ground on wheels that slip, and the loads that press the wheels on it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import casadi as ca
import numpy as np

from concur.codegen import Vector, constant
from concur.reduction import along
from concur.robot import (
    Mechanism,
    SymbolicRobot,
    Tree,
    base_wrench,
    coupling_rows,
    solve_positive_definite,
    wheel_rows,
)
from concur.simulation._slip import Slip, load_arms, plane_axes

SWEEPS = 4
"""Sweeps over the wheels that redistribute forces after the limit is imposed."""

TINY = 1e-30
"""Square of a force, N^2, by which the direction of a zero force stays finite."""


def contact_rows(robot: Tree, q: Vector) -> list[ca.SX]:
    """Rows that map velocities to the slip of each wheel, m/s: along it, then across it."""
    return [wheel_rows(robot, q, wheel).rows for wheel in robot.wheels]


def slip_speeds(robot: Tree, q: Vector, v: Vector) -> ca.SX:
    """Slip speed of each wheel, shape (wheels,), m/s."""
    return ca.vertcat(*[ca.norm_2(rows @ v) for rows in contact_rows(robot, q)])


def slipping(
    robot: Mechanism | SymbolicRobot,
    slip: Slip,
    limits: Sequence[ca.SX | float],
    stabilisation: float,
    q: Vector,
    v: Vector,
    force: ca.SX,
) -> tuple[ca.SX, ca.SX]:
    """Acceleration (nv,) under joint forces less bias (nv,), and forces on the wheels, N.

    With the slip s = C v, the forces solve F = limit(F + b - A F) for
    A = C M^-1 C^T + 1 / (damping time) and b = -(s / time + Cdot v + C a), a without friction:
    the forces that dissipate most. A start that is exact without limits is clipped and improved by
    projected Gauss-Seidel sweeps. Forces across a wheel are divided by `side`, which makes the
    friction ellipse a circle.
    """
    per_wheel, couplings = contact_rows(robot, q), coupling_rows(robot, q)
    rows, nc = ca.vertcat(*per_wheel), couplings.shape[0]
    mass, rate = robot.mass_matrix(q), robot.rate(q, v)
    solved = solve_positive_definite(mass, ca.horzcat(rows.T, force, couplings.T))
    moved, held = solved[:, : rows.shape[0] + 1], solved[:, rows.shape[0] + 1 :]
    if nc:
        # Couplings act without a limit: forces of the ground move what they leave free.
        turning = along(lambda q: coupling_rows(robot, q), q, rate) @ v
        rest = couplings @ moved
        rest[:, -1] += turning + stabilisation * (couplings @ v)
        moved -= held @ solve_positive_definite(couplings @ held, rest)
    reaction, free = moved[:, :-1], moved[:, -1]
    turning = along(lambda q: ca.vertcat(*contact_rows(robot, q)), q, rate) @ v

    ratios = [1.0] * rows.shape[0]
    spans, start = [], 0
    for wheel, side, own in zip(robot.wheels, slip.side, per_wheel, strict=True):
        spans.append(slice(start, start + own.shape[0]))
        if own.shape[0] == 2:
            ratios[start + 1] = side
        elif wheel.kind == "slider":
            ratios[start] = side
        start += own.shape[0]
    ratio = constant(np.diag(ratios))
    matrix = ratio @ (rows @ reaction) @ ratio
    matrix += constant(np.diag(np.square(ratios) / (slip.damping * slip.time)))
    right = -ratio @ (rows @ v / slip.time + turning + rows @ free)
    found = solve_positive_definite(matrix, right)
    for span, limit in zip(spans, limits, strict=True):
        found[span] = _clipped(found[span], limit)
    for _ in range(SWEEPS):
        for span, limit in zip(spans, limits, strict=True):
            rest = right[span] - matrix[span, :] @ found
            found[span] = _clipped(found[span] + rest / ca.trace(matrix[span, span]), limit)
    forces = ratio @ found
    return free + reaction @ forces, forces


def _clipped(force: ca.SX, limit: ca.SX | float) -> ca.SX:
    """The point of a circle that is nearest to a force."""
    size = ca.sqrt(ca.sumsqr(force) + TINY)
    return force * (limit / ca.fmax(limit, size))


def ground_loads(
    robot: Tree,
    slip: Slip,
    height: float,
    q: Vector,
    v: Vector,
    vdot: Vector,
    pushed: Vector | None = None,
) -> ca.SX:
    """Loads of wheels and supports in a motion, shape (loads,), N, below zero where one lifts off.

    The force along the normal and the torques about the plane's axes come from the wrench of the
    base's joint, about a point on the ground, where forces in the plane have no torque about these
    axes. A disturbance `pushed` (6,), force and torque in the frame of the base, carries its part.
    Springs under the supports share the rest; three loads do not depend on the springs.
    """
    axes = plane_axes(robot)
    force, torque = base_wrench(robot, q, v, vdot)
    if pushed is not None:
        force, torque = force - pushed[:3], torque - pushed[3:]
    torque -= ca.cross(constant(height * axes[:, 2]), force)
    given = ca.vertcat(constant(axes[:, 2]).T @ force, constant(axes[:, :2]).T @ torque)
    arms = load_arms(robot, q, slip)
    soft = np.array(slip.compliance or [1.0] * arms.shape[1])
    springs = constant(np.diag(soft.min() / soft))
    if arms.is_constant():
        numbers, stiff = np.array(ca.DM(arms)), np.array(ca.DM(springs))
        return constant(stiff @ numbers.T @ np.linalg.inv(numbers @ stiff @ numbers.T)) @ given
    return springs @ arms.T @ solve_positive_definite(arms @ springs @ arms.T, given)


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
    >>> from concur.simulation import contact_edges
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


def tipping_edges(robot: Tree, slip: Slip) -> list[tuple[int, int]]:
    """Edges of the polygon of wheels and supports; none if loads or places are not determined."""
    if slip.loads is not None:
        return []
    arms = load_arms(robot, ca.SX.sym("q", robot.nq), slip)
    if not arms.is_constant():
        return []
    _, y, minus_x = np.array(ca.DM(arms))
    return contact_edges(np.column_stack([-minus_x, y]).tolist())


def tipping_moments(
    robot: Tree, slip: Slip, edges: Sequence[tuple[int, int]], q: Vector, loads: Vector
) -> ca.SX:
    """Moment of the loads about each edge, N m: what holds the base down there."""
    arms = load_arms(robot, q, slip)
    x, y, found = -arms[2, :], arms[1, :], []
    for i, j in edges:
        along = ca.vertcat(x[j] - x[i], y[j] - y[i]) / ca.hypot(x[j] - x[i], y[j] - y[i])
        found.append(((y - y[i]) * along[0] - (x - x[i]) * along[1]) @ loads)
    return ca.vertcat(ca.SX(0, 1), *found)
