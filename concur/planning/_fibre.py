"""The body that a loop of the shape displaces: its group, connection and curvature.

The lift moves a body in its joint's group with ``xi = -A(r) rdot + a``, where r is the shape. On
the left side xi is the body's velocity, as for floating bases and rovers; on the right side it is
the velocity in the axes of the parent, as for a ball that rolls without spin.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import casadi as ca
import numpy as np

from concur.codegen import Array, Vector
from concur.errors import ReductionError
from concur.groups import Subgroup, classify, se3
from concur.reduction import ReducedModel, check_model
from concur.robot import joint_places, robot_size, unknown_name
from concur.robot.joints import Joint

SAMPLES = 4
"""Random configurations at which the symmetry of the lift is checked."""

SAME = 1e-9
"""Largest difference, relative to the largest entry, of rows of the lift that count as equal."""

SHAPES, STEPS = 8, 64
"""Shapes at which the curvature is evaluated, and steps along the straight line to one."""

ANGLE = 1e-6
"""Angle between directions of displacement below which they are one direction, rad."""

FLAT = 1e-10
"""Curvature, relative to the square of the connection, that counts as zero."""

Curve = Callable[[Array], tuple[Array, Array]]
"""From the path parameter to the shape and its slope."""


@dataclass(frozen=True, eq=False)
class Fibre:
    """A body or factor whose velocity follows from the shape alone, and the joint that carries it.

    `rows` and `entries` are its places in v and q; `side` is 1 for the left side, -1 for the right.
    """

    model: ReducedModel
    body: str
    joint: Joint
    rows: slice
    entries: slice
    side: int

    @property
    def dim(self) -> int:
        """Number of freedoms of the body."""
        return int(self.joint.nv)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the body's freedoms."""
        return tuple(self.model.system.freedom_names[self.rows])

    @cached_property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """Pairs i < j of shape velocities."""
        return tuple(combinations(range(self.model.ns), 2))

    @cached_property
    def commuting(self) -> np.ndarray:
        """Which coordinates of all brackets vanish, shape (dim,): there integrals are exact."""
        unit = np.eye(self.dim)
        found = np.zeros(self.dim)
        for i, j in combinations(range(self.dim), 2):
            found += np.abs(self._bracket(unit[i], unit[j]))
        return np.asarray(found == 0.0)

    @cached_property
    def connection(self) -> ca.Function:
        """From the shape, (ns,), to A, (dim, ns): the body moves with -A rdot."""
        r = ca.SX.sym("r", self.model.ns)
        return ca.Function("connection", [r], [self._form(r)])

    @cached_property
    def curvature(self) -> ca.Function:
        """From the shape, (ns,), to the displacement per area of each pair, (dim, pairs).

        Of the pair (i, j): d_j A_i - d_i A_j + [A_i, A_j], on the right side minus the bracket.
        """
        r = ca.SX.sym("r", self.model.ns)
        form = self._form(r)
        slopes = [ca.densify(ca.jacobian(form[:, i], r)) for i in range(self.model.ns)]
        columns = [
            slopes[i][:, j] - slopes[j][:, i] + self.side * self._lie(form[:, i], form[:, j])
            for i, j in self.pairs
        ]
        found = ca.horzcat(*columns) if columns else ca.SX(self.dim, 0)
        return ca.Function("curvature", [r], [ca.densify(found)])

    def pose(self, q: np.ndarray) -> np.ndarray:
        """Pose (4, 4) of the joint at a whole configuration."""
        rotation, translation = self.joint.pose(ca.SX(ca.DM(q[self.entries])))
        pose = np.eye(4)
        pose[:3, :3], pose[:3, 3] = np.array(ca.DM(rotation)), np.array(ca.DM(translation))[:, 0]
        return pose

    def displacement(self, first: np.ndarray, last: np.ndarray) -> np.ndarray:
        """Pose g0^-1 g1 between two poses, on the right side g1 g0^-1."""
        back = np.asarray(se3.inverse(first))
        return np.asarray(back @ last if self.side > 0 else last @ back)

    def log(self, pose: np.ndarray) -> np.ndarray:
        """Logarithm of a displacement in the basis of the joint, shape (dim,)."""
        return np.asarray(np.linalg.lstsq(self.joint.basis, se3.log(pose), rcond=None)[0])

    def exp(self, twist: np.ndarray) -> np.ndarray:
        """Displacement (4, 4) of a logarithm."""
        return np.asarray(se3.exp(self.joint.basis @ twist))

    def shape(self, q: np.ndarray) -> np.ndarray:
        """Shape of a configuration, (ns,)."""
        return np.asarray(q[list(self.model.shape_coordinates)])

    def _form(self, r: Vector) -> Array:
        q = ca.SX(ca.DM(self.model.system.neutral()))
        q[list(self.model.shape_coordinates)] = r
        return ca.densify(-self.model.lift(q)[0][self.rows, :])

    def _lie(self, a: Array, b: Array) -> Array:
        return self.joint.bracket(a, b)

    def _bracket(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.array(ca.DM(self._lie(ca.SX(a), ca.SX(b))))[:, 0]


def fibre_of(model: ReducedModel, where: str, named: str | None = None) -> Fibre:
    """Find the body that the shape moves: the base, or the first that depends on the shape alone.

    Of a system without bodies it is a factor. Raises a `ReductionError` if no body does, or the
    lift has no symmetry, and an `UnknownNameError` if the named one does not.
    """
    check_model(model, where)
    robot, at = model.system, f"{where} of `{model.name}`"
    kept = list(model.shape_coordinates)
    places = [
        place
        for place in joint_places(robot)
        if kept and place.freedoms and set(place.freedoms) <= set(model.dependent)
    ]
    if not places:
        raise ReductionError(
            at,
            expected="a body whose velocities all follow from those of the shape",
            came=f"{model.kind} reduction to {', '.join(model.shape_names) or 'no shape'}",
            cure="Take a robot that floats, or one on wheels whose joints move its base.",
        )
    names = [place.name for place in places]
    if named is not None and named not in names:
        raise unknown_name(f"{at}, `body`", "body that the shape moves", named, names)
    body = places[0 if named is None else names.index(named)]
    rows, entries = body.rows, body.entries
    rng, neutral = np.random.default_rng(0), np.asarray(robot.neutral())
    worst = {1: 0.0, -1: 0.0}
    for side in worst:
        found = Fibre(model, body.name, body.joint, rows, entries, side)
        for _ in range(SAMPLES):
            q = np.asarray(robot.random(rng))
            reference = neutral.copy()
            reference[kept] = q[kept]
            lifted, expected = (body.joint.basis @ model.lift(x)[0][rows] for x in (q, reference))
            if side < 0:
                lifted = se3.adjoint(found.pose(q)) @ lifted
            size = np.abs(expected).max(initial=0.0)
            worst[side] = max(worst[side], np.abs(lifted - expected).max(initial=0.0) / (size or 1))
        if worst[side] < SAME:
            return found
    raise ReductionError(
        at,
        expected=f"velocities of `{body.name}` that depend on the shape alone, in the axes of the "
        "body or of its parent",
        came=f"others, {min(worst.values()):.2g} of their size away",
        cure="This robot has no symmetry group, so that its displacement after a loop depends on "
        "where it starts. `concur.simulation.reconstruct` follows one motion.",
    )


def transport(fibre: Fibre, curve: Curve, unknowns: Array, steps: int) -> Callable[[ca.MX], ca.MX]:
    """Displacement (4, 4) over the path parameter from 0 to 1, as a function of unknowns.

    `curve` is an expression of the unknowns, over SX. A Magnus step of order four from x to x + h
    takes the velocities k1, k2 at its two Gauss points and appends
    ``exp(h (k1 + k2) / 2 + (sqrt(3) / 12) h^2 [k1, k2])``.
    """
    x, h = ca.SX.sym("x"), 1.0 / steps
    basis = ca.SX(ca.DM(fibre.joint.basis))

    def velocity(at: Array) -> Array:
        r, slope = curve(at)
        return -fibre.side * basis @ (fibre.connection(r) @ slope)

    first, second = (velocity(x + h * (0.5 + k * np.sqrt(3) / 6)) for k in (-1, 1))
    way = h / 2 * (first + second) + np.sqrt(3) / 12 * h**2 * se3.ad(first) @ second
    step = ca.Function("step", [unknowns, x], [ca.densify(se3.exp(way))], {"cse": True})
    poses = [ca.SX.sym(f"g{k}", 4, 4) for k in range(steps)]
    product = poses
    while len(product) > 1:
        joined = [a @ b for a, b in zip(product[::2], product[1::2], strict=False)]
        product = joined + product[len(product) - len(product) % 2 :]
    whole = product[0] if fibre.side > 0 else se3.inverse(product[0])
    chain = ca.Function("chain", [ca.horzcat(*poses)], [ca.densify(whole)])
    starts = ca.DM(np.arange(steps) / steps).T

    def displacement(values: ca.MX) -> ca.MX:
        each = step.map(steps)(values, ca.MX(starts))
        return chain(each)

    return displacement


@dataclass(frozen=True, eq=False)
class Reach:
    """Displacements that closed loops reach from a shape: a subgroup, and its algebra.

    `basis`, (dim, k), is in the coordinates of the joint.
    """

    subgroup: Subgroup
    basis: np.ndarray

    def missed(self, wanted: np.ndarray, turning: np.ndarray | None) -> np.ndarray:
        """Part of a logarithm, or of its rotation, that no loop reaches; `turning` has its rows."""
        columns = self.basis if turning is None else turning @ self.basis
        inside = columns @ np.linalg.lstsq(columns, wanted, rcond=1e-9)[0]
        return np.asarray(wanted - inside)


def reach_of(fibre: Fibre, start: np.ndarray, low: np.ndarray, high: np.ndarray) -> Reach:
    """Find the displacements that loops from a shape reach within limits of the shape.

    By the theorem of Ambrose and Singer they are spanned by the curvature at all shapes, each
    carried back to the start along a curve. Here the shapes are samples, and brackets complete it.
    """
    ns = fibre.model.ns
    end, r = ca.SX.sym("end", ns), ca.MX.sym("end", ns)
    way = end - ca.SX(ca.DM(start))
    back = transport(fibre, lambda x: (ca.SX(ca.DM(start)) + x * way, way), end, STEPS)
    carry = ca.Function("carry", [r], [back(r)])
    rng = np.random.default_rng(0)
    low, high = np.maximum(low, start - 1.0), np.minimum(high, start + 1.0)
    found, size = [np.zeros((6, 0))], 0.0
    for shape in [start, *rng.uniform(low, high, (SHAPES, ns))]:
        size = max(size, float(np.abs(np.array(fibre.connection(shape))).max(initial=0.0)))
        twists = fibre.joint.basis @ np.array(fibre.curvature(shape))
        # The left side carries body twists by Ad_g; the right side those of the parent back.
        pose = np.array(carry(shape))
        pose = pose if fibre.side > 0 else np.asarray(se3.inverse(pose))
        found.append(np.asarray(se3.adjoint(pose)) @ twists)
    twists = np.hstack(found)
    twists = twists[:, np.abs(twists).max(axis=0, initial=0.0) > FLAT * size**2]
    span = classify(twists, tolerance=ANGLE, length=robot_size(fibre.model.system))
    group = span.closure or span
    basis = np.linalg.lstsq(fibre.joint.basis, group.basis, rcond=None)[0]
    return Reach(group, basis)
