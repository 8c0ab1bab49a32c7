"""Parts of a joint's group by which a robot can be reduced: momenta in some directions only.

A generator w of a joint's group N is fixed in the frame to which the joint attaches, a left
translation that turns the body by ``Ad_n^-1 w``, or in the body, a right translation by w. Its
momentum is ``<p, Ad_n^-1 w>`` or ``<p, w>``, with p the joint's momentum. Those w whose momentum
is constant solve linear equations, one for each state: the null space over many states is the
algebra of the part.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import casadi as ca
import numpy as np

from concur.codegen import Array, Vector, constant
from concur.groups import Subgroup, classify
from concur.reduction._conserved import random_state, rate_terms, regular_configurations
from concur.reduction._model import ReducedModel
from concur.reduction._spin import carries_joints, link_terms
from concur.robot.joints import Joint

SAMPLES = 4
"""Sets of random states at which parts are looked for."""

DEPENDENT = 1e-6
"""Share of a momentum that a velocity must have at least to be found from it."""

_ROUND = 1e-9  # generators, each coordinate by its size, that differ by less are the same


@dataclass(frozen=True, eq=False)
class Part:
    """A subgroup whose momentum is constant: generators as columns in the joint's basis."""

    joint: str
    seen_from: str
    generators: np.ndarray
    rate: float
    group: Subgroup


def carrier(joint: Joint, q: Vector) -> Array:
    """Motions fixed in the frame to which a joint attaches, in its body's axes: Ad_n^-1."""
    rotation, translation = joint.pose(q)
    back = ca.SX(6, 6)
    back[:3, :3] = back[3:, 3:] = rotation.T
    back[:3, 3:] = -rotation.T @ ca.skew(translation)
    return ca.sparsify(constant(np.linalg.pinv(joint.basis)) @ back @ constant(joint.basis))


def in_body(
    model: ReducedModel,
    joint: str,
    generators: tuple[tuple[float, ...], ...],
    seen_from: str,
    q: Vector,
) -> Array:
    """Generators of a joint, fixed in "parent" or "body", in its body's axes, as columns."""
    columns = constant(np.array(generators).T)
    if seen_from == "body":
        return columns
    robot = model.robot
    return carrier(robot.bodies[robot.index(joint)].joint, q[robot.q_slice(joint)]) @ columns


def conserved_parts(model: ReducedModel, joint: str, tolerance: float) -> list[Part]:
    """Constant parts of an undriven joint, the largest first: at most one per kind."""
    robot = model.robot
    kind = robot.bodies[robot.index(joint)].joint
    q = ca.SX.sym("q", robot.nq)
    turned = ca.Function("turned", [q], [ca.densify(carrier(kind, q[robot.q_slice(joint)]))])
    terms, rng = rate_terms(model, joint), np.random.default_rng(29)
    found: dict[str, tuple[list[np.ndarray], list[np.ndarray]]] = {
        "parent": ([], []),
        "body": ([], []),
    }
    alone = link_terms(model, joint) if carries_joints(robot, joint) else None
    if alone is not None:
        found["link"] = ([], [])
    for at in [x for _ in range(SAMPLES) for x in regular_configurations(model, rng)]:
        state = random_state(model, at, rng, still=joint)
        result = terms(at, *state)
        left, right, scale = (np.array(result[k]).ravel() for k in (0, 1, -1))
        turn = np.array(turned(at))
        for view, rate, frame in (("parent", left, turn), ("body", right, np.eye(kind.nv))):
            found[view][0].append(frame.T @ rate)
            found[view][1].append(np.abs(frame.T) @ scale)
        for k, part in enumerate(alone(at, *state) if alone is not None else ()):
            found["link"][k].append(np.array(part).ravel())
    parts = []
    for view, (rates, scales) in found.items():
        part = _part(joint, kind, view, np.array(rates), np.array(scales), tolerance)
        if part is not None:
            parts.append(part)
    of_joint = [part for part in parts if part.seen_from != "link"]
    if len(of_joint) == 2 and _one(kind, *(part.generators for part in of_joint)):
        parts.remove(of_joint[1])
    # Fixed in the body, a velocity that follows from the momentum does so everywhere.
    order = ("body", "link", "parent")
    return sorted(parts, key=lambda p: (-p.generators.shape[1], order.index(p.seen_from)))


def coordinates_of(joint: Joint, generators: np.ndarray, seen_from: str) -> tuple[int, ...] | None:
    """Coordinates of a joint that generators span at every configuration; None if they turn."""
    rows = tuple(int(i) for i in np.flatnonzero(np.abs(generators).max(axis=1)))
    if len(rows) != generators.shape[1]:
        return None
    if seen_from != "parent":
        return rows
    # An ideal of the algebra stays in place under Ad.
    others = [i for i in range(joint.nv) if i not in rows]
    basis = ca.SX.eye(joint.nv)
    brackets = [joint.bracket(basis[:, i], basis[:, k]) for i in range(joint.nv) for k in rows]
    stays = all(ca.sparsify(ca.SX(turned)[others, :]).nnz() == 0 for turned in brackets)
    return rows if stays else None


@dataclass(frozen=True)
class Choice:
    """Velocities (indices in v) that follow from a part, and whether they do everywhere."""

    follows: tuple[int, ...]
    everywhere: bool


def choose_follows(model: ReducedModel, part: Part, momenta: ca.Function) -> Choice | None:
    """Choose the velocities of a joint that follow best from a part; None if it is determined.

    `momenta` maps q to the momenta of the generators per shape velocity of the stage before
    (dim, ns), the mass matrix of that stage, and the metric of the generators (dim, dim).
    """
    robot, dim = model.robot, part.generators.shape[1]
    rows = robot.freedoms(part.joint)
    own = [i for i in rows if i in model.shape]
    rng = np.random.default_rng(31)
    drawn = [x for _ in range(SAMPLES) for x in regular_configurations(model, rng)]
    pivots: dict[tuple[int, ...], list[float]] = {c: [] for c in combinations(own, dim)}
    for q in (robot.neutral(), *drawn):
        part_of, metric, whole = (np.array(result) for result in momenta(q))
        exists = np.isfinite(metric).all() and np.isfinite(part_of).all()
        for choice, values in pivots.items():
            if not exists:  # the stage before has no lift there
                values.append(0.0)
                continue
            at = [model.shape.index(i) for i in choice]
            size = np.linalg.det(whole) * np.linalg.det(metric[np.ix_(at, at)])
            values.append(float(np.linalg.det(part_of[:, at]) / np.sqrt(size)))
    best: tuple[tuple[float, ...], Choice] | None = None
    for choice, values in pivots.items():
        sizes = np.abs(values)
        one_sign = abs(np.sum(np.sign(values))) == len(values)
        everywhere = bool(one_sign and sizes.min() > 1e-3)
        rank = (float(everywhere), sizes.min() if everywhere else sizes[0], sizes.mean())
        rounded = tuple(round(float(x), 6) for x in rank)
        if sizes.max() > DEPENDENT and (best is None or rounded > best[0]):
            best = rounded, Choice(choice, everywhere)
    return None if best is None else best[1]


def described(part: Part, names: tuple[str, ...]) -> str:
    """Components of a part in words, like "wz in the axes of the body"."""
    texts = []
    for generator in part.generators.T:
        terms = [
            (("- " if x < 0.0 else "+ ") + ("" if abs(x) == 1.0 else f"{abs(x):.4g} ") + name)
            for x, name in zip(generator, names, strict=True)
            if x
        ]
        texts.append(" ".join(terms).removeprefix("+ "))
    axes = "the frame it attaches to" if part.seen_from == "parent" else "the body"
    turned = ", with all it carries turned back" if part.seen_from == "link" else ""
    return f"{', '.join(texts)} in the axes of {axes}{turned}"


def _part(
    joint: str,
    kind: Joint,
    view: str,
    rates: np.ndarray,
    scales: np.ndarray,
    tolerance: float,
) -> Part | None:
    """Null space of the rates (m, nv), judged row by row against what has to cancel."""
    size = np.sqrt((scales**2).mean(axis=0))
    if not size.all():  # a body without inertia keeps nothing
        return None
    scaled = rates / size

    def violation(directions: np.ndarray) -> float:
        terms = (scales / size) @ np.abs(directions)
        terms = np.maximum(terms, np.sqrt((terms**2).mean(axis=0)))  # not where nothing moves
        return float((np.abs(scaled @ directions) / terms).max())

    _, _, axes = np.linalg.svd(scaled)
    dims = [k for k in range(1, kind.nv + 1) if violation(axes[-k:].T) <= tolerance]
    if not dims:
        return None
    raw = axes[-max(dims) :].T
    plain = _plain(raw, max(_ROUND, 10.0 * tolerance))
    if violation(plain) > tolerance:
        plain = _plain(raw, 0.0)
    group = classify(kind.basis @ (plain / size[:, None]))
    if not group.closed:
        return None
    generators = plain / size[:, None]
    generators = generators / _unit(kind.basis @ generators)
    ones = np.abs(np.abs(generators) - 1.0) < 1e-14
    generators[ones] = np.sign(generators[ones])
    return Part(joint, view, generators, violation(generators * size[:, None]), group)


def _plain(directions: np.ndarray, tolerance: float) -> np.ndarray:
    """The same span in reduced echelon form, what is zero but for rounding as zero."""
    rows = directions.T.copy()
    for k in range(len(rows)):
        i, j = np.unravel_index(np.abs(rows[k:]).argmax(), rows[k:].shape)
        rows[[k, k + i]] = rows[[k + i, k]]
        rows[k] /= rows[k, j]
        for other in range(len(rows)):
            if other != k:
                rows[other] -= rows[other, j] * rows[k]
                rows[other, j] = 0.0
    rows[np.abs(rows) <= tolerance] = 0.0
    order = np.argsort([int(np.flatnonzero(row)[0]) for row in rows])
    return rows[order].T


def _unit(twists: np.ndarray) -> np.ndarray:
    """Speeds of twists: of their turning if they turn; their largest part made positive."""
    turning, moving = np.linalg.norm(twists[3:], axis=0), np.linalg.norm(twists[:3], axis=0)
    turns = turning > 0.0
    part = np.where(turns, twists[3:], twists[:3])
    sign = np.sign(np.take_along_axis(part, np.abs(part).argmax(axis=0)[None], axis=0)[0])
    return np.asarray(sign * np.where(turns, turning, moving))


def _one(joint: Joint, left: np.ndarray, right: np.ndarray) -> bool:
    """Whether two parts are one, seen from both sides: their motions commute with all others."""
    if left.shape != right.shape or not np.allclose(left, right, rtol=0, atol=1e-9):
        return False
    basis = ca.SX.eye(joint.nv)
    brackets = [joint.bracket(basis[:, i], constant(w)) for i in range(joint.nv) for w in left.T]
    return all(ca.sparsify(ca.SX(turned)).nnz() == 0 for turned in brackets)
