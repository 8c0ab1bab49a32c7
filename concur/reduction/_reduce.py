"""Choice of the reduction of a robot, with its reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from concur.errors import ReductionError
from concur.reduction._constraints import WheelReduction, by_constraints
from concur.reduction._coupled import CoupledReduction, coupled, following, rolling
from concur.reduction._dependents import choose_dependents, platform_freedoms, rows_change
from concur.reduction._irregular import check_regular
from concur.reduction._model import ReducedModel
from concur.reduction._momentum import (
    MomentumReduction,
    by_symmetry,
    momentum_reason,
    read_momentum,
)
from concur.reduction._search import ROUNDING
from concur.reduction._stages import (
    Stages,
    Steps,
    further_stages,
    read_stages,
    with_hint,
    without_spins,
)
from concur.robot import Mechanism, as_tree, joint_places
from concur.robot.joints import Fixed, Free
from concur.system import System, check_system

SAMPLES = 12
"""Random configurations at which a choice of dependent velocities is judged."""


def reduce(
    robot: System,
    momentum: ArrayLike | None = None,
    stages: Stages | None = None,
    tolerance: float = ROUNDING,
) -> ReducedModel:
    """Reduce a robot to its shape velocities.

    A robot with wheels is reduced by its rolling constraints (Chaplygin, theorem 4.2.4):
    the base's velocity, and the spin of wheels left over, follow from the driven ones; what too
    few wheels leave of the base's velocity stays a shape velocity without a drive. A robot with
    a floating base is reduced by its constant momentum (symplectic, theorem
    3.3.6); wheels that roll on one of its bodies reduce it further. A robot on a fixed base is
    taken as it is.

    Unactuated joints that conserve their momentum can be reduced further, stage by stage
    (section 4.5): their velocities then follow from that momentum. Of a joint that keeps some
    components of its momentum only, the largest part whose generators are a subgroup, fixed in
    the frame it attaches to or in its body, is taken, and as many of its velocities follow. Robots
    on a fixed base with a larger group (remark 4.3.2) are reduced by one stage for each joint.
    `conservation` tests on the reduced robot which other momenta the actuators cannot change.
    Constants of motion that are no momentum of a joint (theorems 4.2.17 and 4.2.18) are not used
    here: `constants_of_motion` finds them and what motion they leave.

    Parameters
    ----------
    robot : System
        The robot: a `Mechanism`, or any other system, which is reduced by its constraints if it
        has any.
    momentum : array_like, optional
        Constant spatial momentum of a robot that floats freely, about the inertial origin,
        [linear; angular], kg m/s and kg m^2/s, shape (6,); default zero. Of a `LagrangianSystem`
        with `symmetry` that of its group, one number for each of its velocities.
    stages : str, sequence of str or mapping, optional
        Joints, by their bodies, or factors of a `LagrangianSystem`, to be reduced further, in this
        order: names, whose momentum is taken as zero, or a mapping from names to momenta (numbers,
        N m s and N s: one per freedom of the joint, or per generator of its part). A joint that is
        named twice, or with more momenta than its first part has, is reduced by its second part as
        well: the axes of the body and those of the frame it attaches to can give one each. The base
        of a robot can be named where gravity leaves a part of its momentum constant. "auto" takes
        every joint that can be, and parts whose velocities follow everywhere, as long as one
        velocity is left to the shape, at zero momentum. Default: none.
    tolerance : float, optional
        Rate of a momentum, relative to the terms that have to cancel in it, up to which it counts
        as constant: between 0 and 1. Robots whose numbers were rounded, as those of imported files,
        may need more than the default; `reason` gives the change that was tolerated.

    Returns
    -------
    ReducedModel
        The reduced model; `kind` is the reduction that was chosen and `reason` the reason. That
        of a floating robot is a `MomentumReduction`, that of a system with a symmetry group a
        `SymmetryReduction`, that of wheels a `WheelReduction`, that of
        both a `CoupledReduction`, that in stages a `StagedReduction`.

    Raises
    ------
    ReductionError
        If the wheels let the base move only where their constraints lose rank, or determine no
        choice of velocities everywhere, a momentum for a robot
        that does not keep it, gravity along a base that floats, or a stage whose joint does not
        keep its momentum, nor a part of it, or comes with None for a momentum.
    UnknownNameError
        If a stage names no body, or none whose velocity is a shape velocity.
    ShapeError, NonFiniteError
        If the momentum is not six finite numbers.
    DescriptionError
        If `tolerance` is out of range.

    Notes
    -----
    Where the generators of a part are coordinates of the joint in every configuration, as the
    axis of a round body is, its stage is regular wherever the stage before is. Others turn
    in the body, like a vertical axis seen from it: then no velocity of the joint follows from the
    momentum everywhere. `ReducedModel.regularity` falls to zero where it does not, and `reason`
    states this. The reduced momentum ``p = Mhat s`` of such a stage is that of the shape
    velocities alone: the velocity at s = 0 has a momentum along them too.

    Examples
    --------
    >>> import concur as cc
    >>> model = cc.reduce(cc.robots.rover_arm())
    >>> model.kind, model.ns
    ('chaplygin', 5)
    """
    check_system(robot, "reduce, `robot`", ReductionError)
    if not isinstance(robot, Mechanism):
        return _any_system(robot, momentum, stages, tolerance)
    _no_names(robot, momentum)
    steps = () if stages is None else read_stages(robot, stages)
    model = _first_stage(robot, momentum, steps)
    if robot.mimics and not robot.wheels:
        model = coupled(model)
    cables = ", ".join(f"`{name}`" for name in robot.cables)
    tied = robot.followers or isinstance(model, CoupledReduction)
    if tied and (stages is not None or robot.cables):
        what = "joints that follow others" if robot.followers else "wheels on a hull that floats"
        raise ReductionError(
            f"robot `{robot.name}`, `stages`",
            expected=f"no stages for a robot with {what}",
            came=f"{stages!r:.60}" if stages is not None else f"links on cables: {cables}",
            cure="Leave `stages` out: the reactions of such joints change the momenta of others. "
            "Give links on cables a moment about their lines.",
        )
    if tied:
        return model
    model = without_spins(model)
    if stages is None:
        return with_hint(model, tolerance)
    return further_stages(model, steps, tolerance)


def _any_system(
    system: System, momentum: ArrayLike | None, stages: Stages | None, tolerance: float
) -> ReducedModel:
    """Reduce a system that is no tree of bodies, stage by stage."""
    symmetric = bool(getattr(system, "fibre", ()))
    lacking = "stages" if stages is not None and not joint_places(system) else ""
    if lacking or (momentum is not None and not symmetric):
        as_tree(
            system,
            f"reduce `{system.name}`, `{lacking or 'momentum'}`",
            "Leave it out, declare `symmetry` of a LagrangianSystem, or describe the bodies.",
        )
    model = by_symmetry(system, momentum) if symmetric else _by_rows(system)
    if stages is not None:
        return further_stages(model, read_stages(system, stages), tolerance)
    return with_hint(model, tolerance) if joint_places(system) else model


def _by_rows(system: System) -> ReducedModel:
    """Reduce a system by its constraints, if it has any."""
    if not system.nf:
        return _unreduced(system, "there are no constraints: every velocity is a shape velocity")
    rng = np.random.default_rng(2)
    return by_constraints(system, [system.neutral(), *(system.random(rng) for _ in range(SAMPLES))])


def _unreduced(system: System, why: str) -> ReducedModel:
    return ReducedModel(system, "unreduced", tuple(range(system.nv)), (), why)


def _first_stage(robot: Mechanism, momentum: ArrayLike | None, steps: Steps | None) -> ReducedModel:
    if robot.wheels:
        wheels = _by_wheels(robot)
        if not _floats_on(robot, wheels):
            _no_momentum(robot, momentum, "contact forces change the momentum of this robot")
            return wheels
        return rolling(_by_momentum(robot, momentum), wheels)
    driven = robot.base.name in robot.driven_bodies or robot.thrusters
    if isinstance(robot.base.joint, Fixed) or driven:
        _no_momentum(robot, momentum, "the forces on the base change the momentum of this robot")
        return _unreduced(robot, "the base is fixed or driven: every velocity is a shape velocity")
    named = robot.base.name in (name for name, _ in steps or ())
    if named and _pushed_by_gravity(robot) is not None:
        why = "gravity changes it, and the part that it leaves constant is given in `stages`"
        _no_momentum(robot, momentum, why)
        return _unreduced(
            robot,
            f"gravity changes the momentum of the base `{robot.base.name}`: every velocity is a "
            "shape velocity before the stages",
        )
    return _by_momentum(robot, momentum)


def _floats_on(robot: Mechanism, wheels: WheelReduction) -> bool:
    """Whether wheels roll on bodies of a robot whose base floats: no contact force is external."""
    base = range(robot.base.joint.nv)
    outside = robot.thrusters or set(base) & set(wheels.dependent)
    return bool(base) and 0 not in robot.platforms and not outside


def _no_names(robot: Mechanism, momentum: Any) -> None:
    """Reject names in place of a momentum: `stages` is the argument after it."""
    names = [momentum] if isinstance(momentum, str) else momentum
    listed = isinstance(names, (Mapping, list, tuple)) and len(names) > 0
    if listed and all(isinstance(name, str) for name in names):
        raise ReductionError(
            f"robot `{robot.name}`, `momentum`",
            expected="six numbers, kg m/s and kg m^2/s",
            came=f"names: {momentum!r:.60}",
            cure=f"Joints to reduce further are `stages`: write stages={momentum!r:.60}.",
        )


def _no_momentum(robot: Mechanism, momentum: ArrayLike | None, why: str) -> None:
    if momentum is not None:
        raise ReductionError(
            f"robot `{robot.name}`, `momentum`",
            expected="no momentum for a robot with wheels, a fixed or driven base, or in gravity",
            came=f"{momentum}",
            cure=f"Leave it out: {why}.",
        )


def _by_momentum(robot: Mechanism, momentum: ArrayLike | None) -> MomentumReduction:
    where = f"robot `{robot.name}`, `momentum`"
    value = read_momentum(where, np.zeros(6) if momentum is None else momentum)
    nb = robot.base.joint.nv
    _check_gravity(robot)
    return MomentumReduction(
        robot,
        "symplectic",
        tuple(range(nb, robot.nv)),
        tuple(range(nb)),
        momentum_reason(robot, None if momentum is None else value),
        value,
    )


def _check_gravity(robot: Mechanism) -> None:
    """Demand that gravity does not push along the base: else no momentum is conserved."""
    name = _pushed_by_gravity(robot)
    if name is None:
        return
    fixed = "a Fixed joint"
    if not isinstance(robot.base.joint, Free):  # such a base cannot be driven
        fixed += ", name it in `actuated`"
    raise ReductionError(
        f"robot `{robot.name}`, `gravity`",
        expected=f"no gravity along the undriven base `{robot.base.name}`",
        came=f"{robot.gravity} m/s^2, which pushes along {name}",
        cure=f"Set gravity to zero (in orbit), give the base wheels, {fixed}, or name the base in "
        "`stages`: gravity leaves a part of its momentum constant.",
    )


def _pushed_by_gravity(robot: Mechanism) -> str | None:
    """Name of a velocity of the base along which gravity pushes, if there is one."""
    if not any(robot.gravity):
        return None
    rng, nb = np.random.default_rng(8), robot.base.joint.nv
    still = np.zeros(robot.nv)
    for q in (robot.random(rng) for _ in range(SAMPLES)):
        push = np.abs(robot.bias(q, still)[:nb]) / max(1.0, robot.total_mass)
        if push.max(initial=0.0) > 1e-9:
            return robot.freedom_names[int(push.argmax())]
    return None


def _by_wheels(robot: Mechanism) -> WheelReduction:
    rng = np.random.default_rng(2)
    samples = [robot.neutral(), *(robot.random(rng) for _ in range(SAMPLES))]
    check_regular(robot, samples)
    dependent = choose_dependents(robot, samples)
    shape = tuple(i for i in range(robot.nv) if i not in dependent)
    group = tuple(i for i in dependent if i not in robot.followers)
    symmetric = rows_change(robot, group, samples, seed=3) < 1e-9
    left = [i for i in platform_freedoms(robot) if i not in dependent]
    names = ", ".join(robot.freedom_names[i] for i in group)
    rolling = robot.nf - len(robot.followers)
    reason = f"{rolling} independent rolling constraints determine {names}{following(robot)}"
    if not symmetric:
        reason += ", but depend on them: no symmetry group, the lift is used without it"
    if left:
        reason += f"; the wheels leave {' and '.join(robot.freedom_names[i] for i in left)} free"
    kind = "constrained" if left or not symmetric else "chaplygin"
    model = WheelReduction(robot, kind, shape, dependent, reason)
    stuck = _stuck(model, samples)
    if stuck:
        model = replace(model, reason=f"{reason}; the wheels forbid {stuck} altogether")
    return model


def _stuck(model: ReducedModel, samples: list[np.ndarray]) -> str:
    """Name of the turn of the base that no shape velocity makes, as between parallel axles."""
    names, stuck = [model.robot.bodies[i].name for i in model.robot.platforms], []
    for turning in (model.robot.freedoms(name)[-1] for name in names):
        if max(float(np.abs(model.lift(q)[0][turning]).max()) for q in samples) < 1e-9:
            stuck.append(model.robot.freedom_names[turning])
    return " and ".join(stuck)
