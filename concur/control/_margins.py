"""Margins of the decoupling matrix, and the scales that take the units from its rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from concur.codegen import Array
from concur.outputs import Output
from concur.reduction import UNDETERMINED, ReducedModel
from concur.robot import Mechanism, robot_size

SINGULAR = 1e-3
"""Default margin below which a configuration counts as singular."""

SAMPLES = 16
"""Random configurations at which inertias along outputs are measured."""


@dataclass(frozen=True, eq=False)
class Margins:
    """Scales of the decoupling matrix of a law, and margins at which the law is damped or refused.

    Parameters
    ----------
    scales : tuple of numpy.ndarray
        Factors that take the units from the decoupling matrix: of rows, of columns. Rows: square
        root of the mass that can move, for angular rows times the robot's size; of a system
        without bodies, that of the median inertia along each output coordinate. Columns: square
        root of the reduced mass matrix's diagonal at the neutral configuration.
    usual : numpy.ndarray or None
        Factors of the rows for damping, shape (size,); None without it. With them the margin is 1
        in a usual configuration, and light hands count as heavy bases.
    damped_below : float
        Decoupling margin above which the law is not damped; 0 without damping.
    refused_below : float
        Margin below which the law gives no torque; 0 with damping.

    Examples
    --------
    >>> import concur as cc
    >>> model = cc.reduce(cc.robots.rover_arm())
    >>> base = cc.Output("base", "chassis", "R2", point=(0.25, 0, 0))
    >>> servo = cc.Servo(model, [base], stiffness=4, damping=4)
    >>> servo.margins.refused_below
    0.001
    """

    scales: tuple[np.ndarray, np.ndarray]
    usual: np.ndarray | None
    damped_below: float
    refused_below: float


def decoupling_margins(
    scales: np.ndarray, decoupling: np.ndarray, mass_matrix: np.ndarray, regularity: np.ndarray
) -> np.ndarray:
    """Margins of the decoupling matrix at many configurations, as `Servo.margin` has them.

    Parameters
    ----------
    scales : numpy.ndarray
        Factors of the rows, shape (size,): the first of `Margins.scales`.
    decoupling : numpy.ndarray
        J H, shape (k, size, ns).
    mass_matrix : numpy.ndarray
        Reduced mass matrices, shape (k, ns, ns).
    regularity : numpy.ndarray
        Regularities of the model, or its leverages where they are less, shape (k,).

    Returns
    -------
    numpy.ndarray
        Shape (k,). Where the wheels do not determine the base it is the regularity; where the
        lift or the mass matrix is singular or a number is not finite, zero.
    """
    scaled = scales[:, None] * decoupling
    finite = np.isfinite(scaled).all(axis=(1, 2)) & np.isfinite(mass_matrix).all(axis=(1, 2))
    determined = regularity >= UNDETERMINED
    sound = determined & finite
    least = np.where(np.isnan(regularity) | (determined & ~finite), 0.0, regularity)
    values = _least_values(scaled[sound], mass_matrix[sound])
    least[sound] = np.where(least[sound] == 1.0, values, np.minimum(values, least[sound]))
    return least


def _least_values(rows: np.ndarray, metric: np.ndarray) -> np.ndarray:
    """Smallest singular values of rows metric^(-1/2); zero where the metric is not positive.

    One where there are no rows.
    """
    if not rows.shape[1]:
        return np.ones(len(rows))
    try:
        factor = np.linalg.cholesky(metric)
    except np.linalg.LinAlgError:
        # One bad matrix spoils the whole stack: it is found by halving.
        half = len(rows) // 2
        if not half:
            return np.zeros(1)
        parts = (slice(None, half), slice(half, None))
        return np.concatenate([_least_values(rows[part], metric[part]) for part in parts])
    solved = np.linalg.solve(factor, rows.transpose(0, 2, 1))
    return np.asarray(np.linalg.svd(solved, compute_uv=False)[:, -1])


def natural_units(robot: Mechanism) -> tuple[float, float]:
    """Square root of the mass that can move, and length of the robot, m."""
    moving = [
        body.inertia.mass
        for i, body in enumerate(robot.bodies)
        if any(robot.bodies[j].joint.nv for j in robot.path(i))
    ]
    return float(np.sqrt(sum(moving))), robot_size(robot)


def row_scales(robot: Mechanism, outputs: Sequence[Output]) -> np.ndarray:
    """Factors that make the rows of the decoupling matrix comparable, shape (size,).

    Square root of the mass that can move for linear rows, times the robot's size for angular ones.
    """
    root, reach = natural_units(robot)
    units = [unit for output in outputs for unit in output.coordinate_units]
    return np.array([root if unit == "m" else root * reach for unit in units])


def mobility_scales(model: ReducedModel, decoupling: Callable[[np.ndarray], Array]) -> np.ndarray:
    """Factors of the rows for systems without bodies, shape (size,).

    Square root of the inertia that a force along the coordinate meets: the median of random
    configurations of 1 / (J H Mhat^-1 H^T J^T).
    """
    found = _mobilities(model, decoupling)
    moved = np.median(np.diagonal(found, axis1=1, axis2=2), axis=0)
    return 1.0 / np.sqrt(np.where(moved > 0.0, moved, 1.0))


def usual_bound(
    model: ReducedModel, decoupling: Callable[[np.ndarray], Array], rows: np.ndarray
) -> float:
    """Median of the lower bound of the decoupling margin, `least_root`, at random configurations.

    Parameters
    ----------
    model : ReducedModel
        The model.
    decoupling : callable
        Decoupling matrix of a configuration.
    rows : numpy.ndarray
        Factors of its rows, shape (size,).

    Returns
    -------
    float
        The median, a number without unit.
    """
    found = rows[:, None] * _mobilities(model, decoupling) * rows
    values = np.maximum(np.linalg.eigvalsh(found), 1e-12)
    return float(np.median((values**-2.0).sum(axis=1) ** -0.25))


def usual_scales(model: ReducedModel, decoupling: Callable[[np.ndarray], Array]) -> np.ndarray:
    """Factors of the rows with which random configurations have the median margin 1, (size,)."""
    rows, found = mobility_scales(model, decoupling), _mobilities(model, decoupling)
    least = np.linalg.eigvalsh(rows[:, None] * found * rows)[:, 0]
    return np.asarray(rows / np.sqrt(max(float(np.median(least)), 1e-12)))


def column_groups(
    model: ReducedModel, decoupling: Callable[[np.ndarray], Array], rows: np.ndarray, most: int
) -> list[list[int]]:
    """Columns of the decoupling matrix in groups of at most so many, most dependent ones first.

    Such are those of joints with parallel axes: at random configurations their directions span a
    small volume. Rows are multiplied by `rows`, shape (size,).
    """
    rng, found = np.random.default_rng(12), list[np.ndarray]()
    for _ in range(SAMPLES):
        scaled = rows[:, None] * np.asarray(decoupling(model.system.random(rng)))
        sizes = np.linalg.norm(scaled, axis=0)
        if np.isfinite(sizes).all() and (sizes > 0.0).all():
            found.append((scaled / sizes).T @ (scaled / sizes))
    left = list(range(np.shape(decoupling(model.system.neutral()))[1]))
    if not found:
        return [left[k : k + most] for k in range(0, len(left), most)]
    directions, groups = np.array(found), list[list[int]]()
    while left:
        choices = np.array(list(combinations(left, min(most, len(left)))))
        own = directions[:, choices[:, :, None], choices[:, None, :]]
        volumes = np.log(np.maximum(np.linalg.det(own), 1e-12)).mean(axis=0)
        groups.append(choices[np.argmin(volumes)].tolist())
        left = [k for k in left if k not in groups[-1]]
    return groups


def _mobilities(model: ReducedModel, decoupling: Callable[[np.ndarray], Array]) -> np.ndarray:
    """Accelerations of the outputs by forces along them, at random configurations (k, n, n)."""
    rng, found = np.random.default_rng(12), list[np.ndarray]()
    for _ in range(SAMPLES):
        q = model.system.random(rng)
        rows, mass = np.asarray(decoupling(q)), np.asarray(model.mass_matrix(q))
        if np.isfinite(rows).all() and np.isfinite(mass).all():
            found.append(rows @ np.linalg.solve(mass, rows.T))
    size = len(np.asarray(decoupling(model.system.neutral())))
    return np.array(found or [np.eye(size)])
