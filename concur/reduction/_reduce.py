"""Choose how a robot is reduced, and say why."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from concur.errors import ReductionError
from concur.mechanism.joints import Fixed
from concur.multibody import Mechanism
from concur.reduction._dependents import choose_dependents, rows_change
from concur.reduction._model import ReducedModel
from concur.reduction._wheels import WheelReduction

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
    if not isinstance(robot, Mechanism):
        raise ReductionError(
            "reduce, `robot`",
            expected="a Mechanism",
            came=f"{type(robot).__name__} {robot!r:.40}",
            cure="Load one with concur.load(path), or take one of concur.robots.",
        )
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
        cure="Add the wheels; or, if the base is fixed or driven, give it a Fixed joint or name it "
        "in `actuated`. Floating bases (reduction by momentum) are not part of this version.",
    )


def _by_wheels(robot: Mechanism) -> WheelReduction:
    rng = np.random.default_rng(2)
    samples = [robot.neutral(), *(robot.random(rng) for _ in range(SAMPLES))]
    dependent = choose_dependents(robot, samples)
    shape = tuple(i for i in range(robot.nv) if i not in dependent)
    symmetric = rows_change(robot, dependent, samples, seed=3) < 1e-9
    names = ", ".join(robot.freedom_names[i] for i in dependent)
    reason = f"{robot.nf} independent rolling constraints determine {names}"
    if not symmetric:
        reason += ", but depend on them: no symmetry group, the lift is used without it"
    kind = "chaplygin" if symmetric else "constrained"
    model = WheelReduction(robot, kind, shape, dependent, reason)
    stuck = _stuck(model, samples)
    if stuck:
        model = replace(model, reason=f"{reason}; the wheels forbid {stuck} altogether")
    return model


def _stuck(model: ReducedModel, samples: list[np.ndarray]) -> str:
    """Names of the turns of the base that no shape velocity makes.

    A base between fixed parallel axles can only go straight: it would have to skid.
    """
    turning = model.robot.base.joint.nv - 1
    largest = max(float(np.abs(model.lift(q)[0][turning]).max()) for q in samples)
    return model.robot.freedom_names[turning] if largest < 1e-9 else ""
