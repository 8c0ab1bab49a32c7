"""Conserved momenta of a joint for a reduction stage: the whole momentum, or a part of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import casadi as ca
import numpy as np

from concur.codegen import constant
from concur.errors import ReductionError, UnknownNameError
from concur.reduction._conserved import ROUNDING, Conservation, conservation
from concur.reduction._model import ReducedModel
from concur.reduction._parts import (
    Part,
    choose_follows,
    conserved_parts,
    described,
    in_body,
)
from concur.reduction._spin import link_metric, link_weights

Used: TypeAlias = Sequence[tuple[str, tuple[tuple[float, ...], ...]]]
"""Axes, "parent", "body" or "link", and generators of parts that are reduced already."""

_ROUGH = 1e-4  # rates above are no rounding of anybody's numbers


@dataclass(frozen=True)
class Kept:
    """Conserved momentum of a joint, and the indices in v of the velocities that follow from it."""

    joint: str
    seen_from: str
    generators: tuple[tuple[float, ...], ...]
    follows: tuple[int, ...]
    keeps: str
    why: str
    everywhere: bool
    tolerance: float


def _whole(model: ReducedModel, tested: Conservation) -> Kept:
    rows = model.robot.freedoms(tested.joint)
    every = tuple(tuple(row) for row in np.eye(len(rows)).tolist())
    return Kept(
        tested.joint,
        tested.seen_from,
        every,
        tuple(rows),
        "keeps its momentum",
        tested.why,
        True,
        tested.tolerance,
    )


def kept_parts(model: ReducedModel, joint: str, tolerance: float, used: Used = ()) -> list[Kept]:
    """Constant parts of a joint's momentum that no stage determines yet, the best first."""
    robot, found = model.robot, []
    names = robot.bodies[robot.index(joint)].joint.freedom_names
    for part in conserved_parts(model, joint, tolerance):
        generators = tuple(tuple(row) for row in part.generators.T.tolist())
        choice = choose_follows(model, part, _pivots(model, part))
        if choice is None or (part.seen_from, generators) in used:
            continue
        why = f"{part.group.name}, momentum changes at the relative rate {part.rate:.1e} only"
        if part.rate > ROUNDING:
            why += f", within the tolerance {tolerance:.1g}"
        if not choice.everywhere:
            follows = " and ".join(robot.freedom_names[i] for i in choice.follows)
            why += f"; {follows} does not follow from it everywhere, see `regularity`"
        found.append(
            Kept(
                joint,
                part.seen_from,
                generators,
                choice.follows,
                f"keeps a part of its momentum, {described(part, names)}",
                why,
                choice.everywhere,
                tolerance,
            )
        )
    return found


def _pivots(model: ReducedModel, part: Part) -> ca.Function:
    """Momenta of a part per shape velocity, the metric, and that of the generators."""
    generators = tuple(tuple(row) for row in part.generators.T.tolist())
    first, rows = model.first, model.robot.freedoms(part.joint)
    places = [first.shape.index(i) for i in rows]
    q = ca.SX.sym("q", model.nq)
    if part.seen_from == "link":
        weights = link_weights(model.robot, part.joint, generators, q)
        own = constant(link_metric(model.robot, part.joint, generators))
    else:
        turned = in_body(first, part.joint, generators, part.seen_from, q)
        weights = (first.momentum_fields(q)[:, places] @ turned).T @ model.robot.mass_matrix(q)
        own = turned.T @ first.mass_matrix(q)[places, places] @ turned
    results = [weights @ model.lift(q)[0], model.mass_matrix(q), own]
    return ca.Function("pivots", [q], [ca.densify(result) for result in results], {"cse": True})


def cable_kept(model: ReducedModel, joint: str) -> Kept:
    """Spin of a link on a cable: it moves no mass, so that its momentum is zero."""
    axis = model.robot.cables[joint].axis
    rows = model.robot.freedoms(joint)
    follows = rows[int(np.abs(axis).argmax())]
    return Kept(
        joint,
        "link",
        (tuple(axis.tolist()),),
        (follows,),
        "keeps its spin on a cable",
        "the spin moves no mass",
        True,
        ROUNDING,
    )


def next_kept(model: ReducedModel, tolerance: float) -> Kept | None:
    """First joint, from the base on, that can be reduced and leaves something of the shape."""
    robot, driven = model.robot, set(model.robot.driven_freedoms)
    for body in robot.bodies:
        rows = set(robot.freedoms(body.name))
        if not rows or rows & driven or not rows <= set(model.shape):
            continue
        tested = conservation(model, body.name, tolerance)
        if tested.conserved and rows < set(model.shape):
            return _whole(model, tested)
        if tested.conserved or len(rows) == 1:
            continue
        for part in kept_parts(model, body.name, tolerance):
            if part.everywhere and len(part.follows) < model.ns:
                return part
    return None


def demand_kept(model: ReducedModel, joint: str, tolerance: float, used: Used = ()) -> list[Kept]:
    """The whole momentum of a joint if it is constant, else its constant parts, the best first."""
    robot = model.robot
    if used and (found := kept_parts(model, joint, tolerance, used)):
        return found
    try:
        tested = conservation(model, joint, tolerance)
    except UnknownNameError as error:
        raise UnknownNameError(
            f"robot `{robot.name}`, `stages`",
            expected=error.expected,
            came=error.came,
            cure=error.cure,
        ) from None
    if tested.conserved:
        return [_whole(model, tested)]
    several = robot.bodies[robot.index(joint)].joint.nv > 1
    if several and not tested.driven and (found := kept_parts(model, joint, tolerance)):
        return found
    cure = f"Leave it out of `stages`. Its momentum obeys {tested.equation}."
    rates = [] if tested.driven else [tested.rate]
    if several and not tested.driven:
        rates += [part.rate for part in conserved_parts(model, joint, _ROUGH)]
    if min(rates, default=1.0) < _ROUGH:
        rounded = 10.0 ** np.ceil(np.log10(2.0 * min(rates)))
        cure += (
            " If it changes only because the robot's numbers are rounded, give "
            f"tolerance={rounded:.0e}."
        )
    raise ReductionError(
        f"robot `{model.name}`, `stages`, joint `{joint}`",
        expected="a joint that keeps its momentum" + (", or a part of it" if several else ""),
        came=tested.why,
        cure=cure,
    )
