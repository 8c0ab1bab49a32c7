"""Which velocities the wheels determine: a choice of as many columns as there are rows."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from concur.errors import ReductionError
from concur.robot import Mechanism, freedom_lengths


def choose_dependents(robot: Mechanism, samples: list[np.ndarray]) -> tuple[int, ...]:
    """Choose the velocities that follow from the others, among those of base, steering and wheels.

    Choices rank by, in this order: few driven freedoms; no sample on the other side of a singular
    configuration; many velocities of the base; few freedoms on which the rows depend; the worst
    conditioning over the samples. Velocities of the base that are left over stay shape velocities.
    """
    if robot.nf >= robot.nv:
        raise ReductionError(
            f"robot `{robot.name}`, `wheels`",
            expected=f"fewer constraints than the {robot.nv} velocities",
            came=f"{robot.nf}: {', '.join(robot.constraint_names)}",
            cure="Nothing can move: remove wheels or let them steer.",
        )
    scales = freedom_scales(robot)
    rows = np.array([robot.constraints(q) * scales for q in samples])
    base, coupled = platform_freedoms(robot), robot.followers
    free = [i for i in robot.freedoms(*robot.below_platforms) if i not in coupled]
    rolling = robot.nf - len(coupled)
    driven = set(robot.driven_freedoms)
    turning = {i for i in free if _rows_depend_on(robot, i, samples)}
    best: tuple[int, bool, int, int, float, tuple[int, ...]] | None = None
    for own in range(min(len(base), rolling), -1, -1):
        if best is not None and best[1]:
            break  # with fewer velocities of the base it gets no better
        for kept in combinations(base, own):
            for chosen in combinations(free, rolling - own):
                dependent = (*kept, *chosen, *coupled)
                quality, one_side = _conditioning(rows, dependent)
                if quality > 1e-9:
                    burden = -len(driven & set(chosen)), -len(turning & set(chosen))
                    key = (burden[0], one_side, own, burden[1], quality, dependent)
                    best = key if best is None else max(best, key)
    if best is None:
        raise ReductionError(
            f"robot `{robot.name}`, `wheels`",
            expected="rolling constraints that determine as many velocities of base and wheels",
            came=f"no regular choice among {', '.join(robot.constraint_names)}",
            cure="The constraints leave less freedom than there are joints, or another one in "
            "each configuration: add, remove or steer wheels.",
        )
    return best[-1]


def _conditioning(rows: np.ndarray, dependent: tuple[int, ...]) -> tuple[float, bool]:
    """Worst conditioning of some columns over samples, and whether all lie on one side."""
    columns = rows[:, :, list(dependent)]
    least = np.linalg.svd(columns, compute_uv=False)[:, -1]
    largest = np.linalg.svd(rows, compute_uv=False)[:, 0]
    quality = float(f"{(least / largest).min():.1e}")
    return quality, len(set(np.sign(np.linalg.det(columns)))) == 1


def freedom_scales(robot: Mechanism) -> np.ndarray:
    """One over the wheel's radius for spins, over the robot's size for other turns, else one."""
    scales = 1.0 / freedom_lengths(robot)
    units = [unit for body in robot.bodies for unit in body.joint.freedom_units]
    for wheel in robot.wheels:
        if wheel.kind != "slider":  # a ball has three spins
            spins = [i for i in robot.freedoms(wheel.body) if units[i] == "rad"]
            scales[spins] = 1.0 / wheel.radius
    scales[list(robot.followers)] = 1.0  # their rows are velocities of joints, not of points
    return scales


def rows_change(
    robot: Mechanism, freedoms: tuple[int, ...], samples: list[np.ndarray], seed: int
) -> float:
    """Largest change of an entry of the constraints when some freedoms move at random."""
    rng = np.random.default_rng(seed)
    change = 0.0
    for q in samples:
        displacement = np.zeros(robot.nv)
        displacement[list(freedoms)] = rng.uniform(-1.0, 1.0, len(freedoms))
        moved = robot.constraints(robot.integrate(q, displacement))
        change = max(change, float(np.abs(moved - robot.constraints(q)).max()))
    return change


def platform_freedoms(robot: Mechanism) -> list[int]:
    """Freedoms of the bodies that stand on wheels: of the base, or of a vehicle on a hull."""
    return robot.freedoms(*(robot.bodies[i].name for i in robot.platforms))


def _rows_depend_on(robot: Mechanism, freedom: int, samples: list[np.ndarray]) -> bool:
    return rows_change(robot, (freedom,), samples, seed=3) > 1e-9
