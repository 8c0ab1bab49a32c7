"""Which velocities the wheels determine: a choice of as many columns as there are rows."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from concur.errors import ReductionError
from concur.multibody import Mechanism


def choose_dependents(robot: Mechanism, samples: list[np.ndarray]) -> tuple[int, ...]:
    """Choose the velocities that follow from the others.

    The base's velocities always do, since nobody drives them. Those still wanted are taken
    from the joints between base and wheels: undriven ones before driven ones, those on which
    the rows do not depend before others, then the best conditioned choice.

    Parameters
    ----------
    robot : Mechanism
        A robot with wheels.
    samples : list of numpy.ndarray
        Configurations at which a choice is judged, each (nq,).

    Returns
    -------
    tuple of int
        Indices in v, as many as there are constraints.

    Raises
    ------
    ReductionError
        If no choice is regular.
    """
    base = tuple(range(robot.base.joint.nv))
    extra = robot.nf - len(base)
    if extra < 0:
        raise ReductionError(
            f"robot `{robot.name}`, `wheels`",
            expected=f"at least {len(base)} independent rolling constraints",
            came=f"{robot.nf}: {', '.join(robot.constraint_names)}",
            cure="The base keeps a freedom that neither drives nor wheels determine: add a wheel "
            "or a slider.",
        )
    if robot.nf >= robot.nv:
        raise ReductionError(
            f"robot `{robot.name}`, `wheels`",
            expected=f"fewer constraints than the {robot.nv} velocities",
            came=f"{robot.nf}: {', '.join(robot.constraint_names)}",
            cure="Nothing can move: remove wheels or let them steer.",
        )
    driven = set(robot.actuated_freedoms)
    free = _platform_freedoms(robot)
    turning = {i for i in free if _rows_depend_on(robot, i, samples)}
    ranked = []
    for chosen in combinations(free, extra):
        dependent = (*base, *chosen)
        worst = min(spread(robot, dependent, q) for q in samples)
        if worst > 1e-9:
            # Two digits: equal choices differ by rounding, and then the last listed is taken.
            quality = float(f"{worst:.1e}")
            ranked.append(
                (-len(driven & set(chosen)), -len(turning & set(chosen)), quality, dependent)
            )
    if not ranked:
        raise ReductionError(
            f"robot `{robot.name}`, `wheels`",
            expected="rolling constraints that determine the motion of the base",
            came=f"no regular choice among {', '.join(robot.constraint_names)}",
            cure="The base keeps a freedom that the wheels do not determine, or the constraints "
            "leave less freedom than there are joints: add, remove or steer wheels.",
        )
    return max(ranked)[-1]


def spread(robot: Mechanism, dependent: tuple[int, ...], q: np.ndarray) -> float:
    """Smallest over largest singular value of the constraints' dependent columns.

    Columns of wheel spins are divided by the wheel's radius, so that all are metres.

    Parameters
    ----------
    robot : Mechanism
        A robot with wheels.
    dependent : tuple of int
        Indices in v.
    q : numpy.ndarray
        Configuration, shape (nq,).

    Returns
    -------
    float
        Between 0 (the wheels do not determine these velocities) and 1.
    """
    columns = (robot.constraints(q) * spin_scales(robot))[:, list(dependent)]
    values = np.linalg.svd(columns, compute_uv=False)
    return float(values[-1] / values[0]) if values[0] > 0.0 else 0.0


def spin_scales(robot: Mechanism) -> np.ndarray:
    """Factors of the velocities that count wheel spins in metres of rolling.

    Parameters
    ----------
    robot : Mechanism
        A robot with wheels.

    Returns
    -------
    numpy.ndarray
        Shape (nv,): one over the radius for the spin of a wheel, else one.
    """
    scales = np.ones(robot.nv)
    for wheel in robot.wheels:
        if wheel.kind != "slider":
            scales[robot.v_slice(wheel.body)] = 1.0 / wheel.radius
    return scales


def orientation(robot: Mechanism, dependent: tuple[int, ...], q: np.ndarray) -> float:
    """Sign of the determinant of the dependent columns.

    Parameters
    ----------
    robot : Mechanism
        A robot with wheels.
    dependent : tuple of int
        Indices in v.
    q : numpy.ndarray
        Configuration, shape (nq,).

    Returns
    -------
    float
        Where it differs between two configurations, a singular one lies between them.
    """
    return float(np.sign(np.linalg.det(robot.constraints(q)[:, list(dependent)])))


def rows_change(
    robot: Mechanism, freedoms: tuple[int, ...], samples: list[np.ndarray], seed: int
) -> float:
    """Largest change of the constraints when some freedoms move.

    Parameters
    ----------
    robot : Mechanism
        A robot with wheels.
    freedoms : tuple of int
        Indices in v that move.
    samples : list of numpy.ndarray
        Configurations, each (nq,).
    seed : int
        Seed of the random displacements.

    Returns
    -------
    float
        Largest absolute change of an entry.
    """
    rng = np.random.default_rng(seed)
    change = 0.0
    for q in samples:
        displacement = np.zeros(robot.nv)
        displacement[list(freedoms)] = rng.uniform(-1.0, 1.0, len(freedoms))
        moved = robot.constraints(robot.integrate(q, displacement))
        change = max(change, float(np.abs(moved - robot.constraints(q)).max()))
    return change


def _platform_freedoms(robot: Mechanism) -> list[int]:
    """Freedoms of the joints between base and wheels, the wheels included."""
    bodies = {i for wheel in robot.wheels for i in robot.path(robot.index(wheel.body))[1:]}
    return [
        i
        for k in sorted(bodies)
        for i in range(*robot.v_slice(robot.bodies[k].name).indices(robot.nv))
    ]


def _rows_depend_on(robot: Mechanism, freedom: int, samples: list[np.ndarray]) -> bool:
    return rows_change(robot, (freedom,), samples, seed=3) > 1e-9
