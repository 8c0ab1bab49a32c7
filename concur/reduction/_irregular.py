"""Wheels that roll only where their constraints lose rank: found by a search, and refused."""

from __future__ import annotations

import numpy as np
import scipy

from concur.errors import ReductionError
from concur.reduction._dependents import platform_freedoms
from concur.robot import Mechanism, comparable_rows

STARTS = 6
"""Configurations from which the worst point is sought."""

LOST = 1e-6
"""Singular value of the normalised rows below which rank is lost, without unit."""


def check_regular(robot: Mechanism, samples: list[np.ndarray]) -> None:
    """Reject wheels whose constraints lose rank at the neutral configuration or wherever they roll.

    Steered wheels whose axes do not meet in one point hold the base. Where they do meet the
    constraints lose rank, and there alone the base moves: at a singular configuration of any lift.
    """
    neutral, *others = samples
    here = _least(robot, neutral)
    if here < LOST <= max(_least(robot, q) for q in others):
        raise _refusal(robot, neutral, here, "at the neutral configuration")
    if not all(_holds_base(robot, q) for q in others):
        return
    worst, least = worst_point(robot, others)
    if least < LOST:
        raise _refusal(robot, worst, least, "where the wheels let the base move")


def worst_point(robot: Mechanism, samples: list[np.ndarray]) -> tuple[np.ndarray, float]:
    """Search for the configuration, within limits, at which the unit rows nearly lose rank."""
    free = steering(robot)
    if not free:
        return samples[0], _least(robot, samples[0])
    found = list[tuple[float, int, np.ndarray]]()
    for start in samples[:STARTS]:

        def moved(angles: np.ndarray, start: np.ndarray = start) -> np.ndarray:
            step = np.zeros(robot.nv)
            step[free] = angles
            return robot.coupled(np.asarray(robot.integrate(start, step)))

        # The square is smooth where the value itself has a corner.
        best = scipy.optimize.minimize(
            lambda angles, moved=moved: _least(robot, moved(angles)) ** 2,
            np.zeros(len(free)),
            method="L-BFGS-B",
            bounds=_room(robot, start, free),
            options={"ftol": 1e-30, "gtol": 1e-12},
        )
        q = moved(best.x)
        found.append((_least(robot, q), len(found), q))
        if found[-1][0] < LOST:
            break
    least, _, q = min(found)
    return q, least


def steering(robot: Mechanism) -> list[int]:
    """Freedoms of the joints between base and wheels, without spins and joints that follow."""
    wheels = {wheel.body for wheel in robot.wheels if wheel.kind != "slider"}
    still = wheels.union(robot.following)
    return robot.freedoms(*(name for name in robot.below_platforms if name not in still))


def _least(robot: Mechanism, q: np.ndarray) -> float:
    """Smallest singular value of the constraints, each row of norm one."""
    rows = comparable_rows(robot, robot.constraints(q))
    return float(np.linalg.svd(rows, compute_uv=False)[-1])


def _holds_base(robot: Mechanism, q: np.ndarray) -> bool:
    """Whether no admissible motion moves the base."""
    rows, base = comparable_rows(robot, robot.constraints(q)), platform_freedoms(robot)
    moves = np.linalg.svd(rows)[2][np.linalg.matrix_rank(rows) :]
    return bool(np.abs(moves[:, base]).max(initial=0.0) < 1e-9)


def _room(robot: Mechanism, q: np.ndarray, free: list[int]) -> list[tuple[float, float]]:
    """How far each steering freedom may move, within its limits and at most half a turn."""
    room = []
    for body in robot.bodies:
        for k, i in enumerate(robot.freedoms(body.name)):
            if i in free:
                low, high = -np.pi, np.pi
                if body.limits is not None and body.joint.quaternion_at is None:
                    at = q[robot.q_slice(body.name)][k]
                    low, high = (np.clip(end - at, low, high) for end in body.limits[k])
                room.append((float(low), float(high)))
    return room


def _refusal(robot: Mechanism, q: np.ndarray, least: float, where: str) -> ReductionError:
    """Build the error, with the steering angles at which rank is lost."""
    names = [robot.freedom_names[i] for i in steering(robot)]
    step = robot.difference(robot.neutral(), q)[steering(robot)]
    angles = ", ".join(f"{name} {x:.3g}" for name, x in zip(names, step, strict=True))
    return ReductionError(
        f"robot `{robot.name}`, `wheels`",
        expected="rolling constraints of one rank wherever the robot can roll",
        came=f"{robot.nf} independent rows that lose rank {where}: {angles or 'no joint steers'} "
        f"(singular value {least:.1e})",
        cure="Wheels that steer independently hold the base unless their axes meet in one point: "
        "describe one steering joint (a virtual axle) instead, or couple them by [[steering]].",
        q=q,
    )
