"""Choose how a robot is reduced, and say why."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike

from concur.errors import ReductionError
from concur.mechanism.joints import Fixed
from concur.multibody import Mechanism
from concur.reduction._audit import dependent_spread
from concur.reduction._model import ReducedModel

SAMPLES = 12
"""Random configurations at which a choice of dependent velocities is judged."""


def reduce(robot: Mechanism, momentum: ArrayLike | None = None) -> ReducedModel:
    """Reduce a robot to its shape velocities.

    A robot with wheels is reduced by its rolling constraints (Chaplygin, theorem 4.2.4):
    the base's velocity, and the spin of wheels left over, follow from the driven ones. A
    robot on a fixed base is taken as it is.

    Parameters
    ----------
    robot : Mechanism
        The robot.
    momentum : array_like, optional
        Constant spatial momentum of a robot that floats freely, shape (6,); this version
        reduces robots with wheels or with a fixed base, which have none.

    Returns
    -------
    ReducedModel
        The reduced model; `kind` and `reason` say which reduction was taken and why.

    Raises
    ------
    ReductionError
        If the base is free and the wheels do not determine its motion.

    Examples
    --------
    >>> import concur as cc
    >>> model = cc.reduce(cc.robots.rover_arm())
    >>> model.kind, model.ns
    ('chaplygin', 5)
    """
    if momentum is not None:
        raise ReductionError(
            f"robot `{robot.name}`, `momentum`",
            expected="no momentum for a robot with wheels or a fixed base",
            came=f"{momentum}",
            cure="Leave it out: contact forces change the momentum of this robot.",
        )
    if robot.wheels:
        return _by_wheels(robot)
    if isinstance(robot.base.joint, Fixed) or robot.base.name in (robot.actuated or ()):
        return ReducedModel(
            robot,
            "unreduced",
            tuple(range(robot.nv)),
            (),
            "the base is fixed or driven: every velocity is a shape velocity",
        )
    raise ReductionError(
        f"robot `{robot.name}`, base `{robot.base.name}`",
        expected="wheels that determine the motion of the base, or a fixed base",
        came=f"an undriven {type(robot.base.joint).__name__} joint and no wheels",
        cure="Add the wheels, or fix the base. Floating bases (reduction by momentum) are not "
        "part of this version.",
    )


def _by_wheels(robot: Mechanism) -> ReducedModel:
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
    samples = _samples(robot)
    dependent, quality = _best_choice(robot, base, extra, samples)
    if quality < 1e-9:
        raise ReductionError(
            f"robot `{robot.name}`, `wheels`",
            expected="rolling constraints that determine the motion of the base",
            came=f"a singular choice everywhere among {', '.join(robot.constraint_names)}",
            cure="Parallel wheels on several axles can only go straight: a base that skids is not "
            "rolling. Remove wheels or let them steer.",
        )
    shape = tuple(i for i in range(robot.nv) if i not in dependent)
    symmetric = _independent_of(robot, dependent, samples)
    names = ", ".join(robot.freedom_names[i] for i in dependent)
    reason = (
        f"{robot.nf} independent rolling constraints determine {names}"
        if symmetric
        else f"{robot.nf} independent rolling constraints determine {names}, but depend on them: "
        "no symmetry group, the lift is used without it"
    )
    return ReducedModel(
        robot, "chaplygin" if symmetric else "constrained", shape, dependent, reason
    )


def _samples(robot: Mechanism) -> list[np.ndarray]:
    rng = np.random.default_rng(2)
    return [robot.neutral(), *(robot.random(rng) for _ in range(SAMPLES))]


def _best_choice(
    robot: Mechanism, base: tuple[int, ...], extra: int, samples: list[np.ndarray]
) -> tuple[tuple[int, ...], float]:
    """Base and wheel spins that depend; undriven spins first, then the best conditioned."""
    spins = [robot.v_slice(wheel.body).start for wheel in robot.wheels if wheel.kind != "slider"]
    driven = set(robot.actuated_freedoms)
    best: tuple[tuple[float, float, tuple[int, ...]], tuple[int, ...]] | None = None
    for chosen in combinations(sorted(set(spins)), extra):
        dependent = (*base, *chosen)
        worst = min(dependent_spread(robot, dependent, q) for q in samples)
        if best is not None and worst < 1e-9:
            continue
        rank = (-float(len(driven & set(chosen))), round(worst, 9), chosen)
        if best is None or rank > best[0] or best[0][1] < 1e-9:
            best = rank, dependent
    if best is None:
        raise ReductionError(
            f"robot `{robot.name}`, `wheels`",
            expected=f"{extra} wheel spins besides the base that can depend on the others",
            came=f"{len(spins)} wheels that spin",
            cure="The constraints leave less freedom than there are joints; remove redundant ones.",
        )
    return best[1], best[0][1]


def _independent_of(
    robot: Mechanism, dependent: tuple[int, ...], samples: list[np.ndarray]
) -> bool:
    rng = np.random.default_rng(3)
    for q in samples:
        displacement = np.zeros(robot.nv)
        displacement[list(dependent)] = rng.uniform(-1.0, 1.0, len(dependent))
        moved = robot.integrate(q, displacement)
        if np.abs(robot.constraints(moved) - robot.constraints(q)).max() > 1e-9:
            return False
    return True
