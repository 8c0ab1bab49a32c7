"""Whether the wheels stand on one plane, and which of their rows are independent.

Checked in numbers, at the neutral and at random configurations.
"""

from __future__ import annotations

import casadi as ca
import numpy as np

from concur.codegen import constant
from concur.errors import WheelError
from concur.robot._rows import coupling_rows, plane_normal, wheel_rows
from concur.robot._tree import Tree
from concur.robot._wheel import Wheel

SAMPLES = 12
"""Random configurations, in addition to the neutral one, at which the wheels are checked."""

ROUNDING = 1e-8
"""Height that counts as rounding, in parts of the robot's size; slope that counts as level."""

FLAT = 1e-6
"""Sine of the angle between axis and normal up to which a disk lies flat."""

TOUCH = 1e-6
"""Largest gap of a contact at the start of a motion, in parts of the robot's size."""

ZERO = 1e-12
"""Size of a constraint row that is rounding, in parts of the largest row."""


def check_wheels(tree: Tree) -> tuple[tuple[int, ...], tuple[str, ...], float | None]:
    """Check the wheels at sample configurations, and pick independent rows.

    Returns the kept rows among those of all wheels and couplings, their names, and the height of
    the plane under the wheels of the base, m; None if no wheel determines it. Raises a
    `WheelError` if a wheel does not fit its plane, or if the rolling constraints are not regular.
    """
    q = ca.SX.sym("q", tree.nq)
    wheels = [wheel_rows(tree, q, wheel) for wheel in tree.wheels]
    function = ca.Function(
        "wheels",
        [q],
        [
            ca.densify(ca.vertcat(*[w.rows for w in wheels], coupling_rows(tree, q))),
            ca.densify(ca.vertcat(*[w.normal_row for w in wheels])),
            ca.vertcat(*[w.upright for w in wheels]),
            ca.densify(ca.vertcat(*[w.height for w in wheels])),
            ca.vertcat(*[w.face for w in wheels]),
        ],
    )
    rng = np.random.default_rng(0)
    samples = [tree.neutral(), *(tree.random(rng) for _ in range(SAMPLES))]
    values = [[np.array(part) for part in function(sample)] for sample in samples]
    ground = _check_contact(tree, values)
    names = [name for wheel in wheels for name in wheel.names]
    names += tree.coupling_names
    kept = _independent_rows(tree, names, [value[0] for value in values])
    return kept, tuple(names[i] for i in kept), ground


def _check_contact(tree: Tree, values: list[list[np.ndarray]]) -> float | None:
    """Each wheel stands upright enough on one common plane and stays on it."""
    planes: dict[int, tuple[float, str]] = {}
    lengths = freedom_lengths(tree)
    rounding = ROUNDING * tree.size
    for k, wheel in enumerate(tree.wheels):
        where = f"robot `{tree.name}`, wheel `{wheel.body}`"
        if wheel.support is not None:
            upright, gap, face = (float(part[k, 0]) for part in values[0][2:])
            _check_support(tree, wheel, face)
            _check_touch(tree, wheel, "`support`", upright, gap, ROUNDING)
            continue
        if min(float(value[2][k, 0]) for value in values) < FLAT:
            raise WheelError(
                where,
                expected="a wheel axis that is not along the normal of the plane",
                came="a wheel that lies flat on the plane",
                cure="Turn the axis into the plane: (0, 1, 0) for a plane with normal (0, 0, 1).",
            )
        heights = [float(value[3][k, 0]) for value in values]
        leaves = max(float(np.abs(value[1][k] / lengths).max()) for value in values)
        if leaves > ROUNDING:
            raise WheelError(
                where,
                expected="a wheel that stays on its plane in every configuration",
                came=f"a contact point that moves off it, between heights {min(heights):.6g} and "
                f"{max(heights):.6g} m",
                cure="No joint between the plane and the wheel may lift or tilt the wheel; a "
                "leaning wheel must not steer about a tilted axis.",
            )
        if wheel.kind == "slider" and wheel.radius == 0.0 and wheel.ground is None:
            continue
        platform = tree.platform(wheel)
        wanted = (
            (wheel.ground - _frame_height(tree, platform), "the plane given by `ground`")
            if wheel.ground is not None
            else planes.get(platform)
        )
        if wanted is not None and abs(heights[0] - wanted[0]) > rounding:
            raise WheelError(
                where,
                expected=f"a lowest point at height {wanted[0]:.9g} m ({wanted[1]})",
                came=f"{heights[0]:.9g} m: the wheel does not touch the plane",
                cure="Change its radius, the height of its axle, or `ground`; heights are counted "
                f"along the normal from the frame of `{tree.bodies[platform].name}`.",
                gap=heights[0] - wanted[0],
            )
        planes.setdefault(platform, (heights[0], f"the plane under wheel `{wheel.body}`"))
    return planes[0][0] if 0 in planes else None


def _check_support(tree: Tree, wheel: Wheel, face: float) -> None:
    """A wheel with a support moves relative to it; its edge is what is near to it."""
    where = f"robot `{tree.name}`, wheel `{wheel.body}`, `support`"
    own, other = tree.beyond_support(wheel)
    if not tree.freedoms(*(tree.bodies[i].name for i in (*own, *other))):
        raise WheelError(
            where,
            expected="a body that moves relative to the body it rolls on",
            came=f"`{wheel.body}`, which is fixed to it",
            cure="Name another body, or give the wheel's body a Free joint.",
        )
    if not face > 0.0:
        raise WheelError(
            where,
            expected="a disk whose edge touches the sphere",
            came="a disk whose flat face is nearer to the sphere than its edge",
            cure="Turn its axis across the line of centres; a face on a sphere is not a wheel.",
        )


def _check_touch(
    tree: Tree, wheel: Wheel, place: str, upright: float, gap: float, largest: float
) -> None:
    """A wheel touches its support in one point, with a gap up to a part of the robot's size."""
    where = f"robot `{tree.name}`, wheel `{wheel.body}`, {place}"
    if not upright > FLAT:
        raise WheelError(
            where,
            expected="a disk that touches its support in one point",
            came="a disk that lies flat",
            cure="Tilt it, or correct `axis`: its rolling constraints are singular there.",
        )
    if not abs(gap) <= largest * tree.size:
        raise WheelError(
            where,
            expected="contact with its support",
            came=f"a gap of {gap:.6g} m",
            cure="Move its body along the normal by this gap, or correct `support`.",
            gap=gap,
        )


def check_contacts(tree: Tree, q: np.ndarray, where: str) -> None:
    """Demand that every wheel with a `support` touches it at the start of a motion.

    Parameters
    ----------
    tree : Tree
        The robot.
    q : numpy.ndarray
        Configuration, shape (nq,).
    where : str
        Place named in errors.

    Raises
    ------
    WheelError
        If a gap is larger than 1e-6 of the robot's size, or a disk lies flat.
    """
    for wheel in tree.wheels:
        if wheel.support is not None:
            rows = wheel_rows(tree, constant(q), wheel)
            upright, gap = float(ca.DM(rows.upright)), float(ca.DM(rows.height))
            _check_touch(tree, wheel, where, upright, gap, TOUCH)


def comparable_rows(tree: Tree, rows: np.ndarray) -> np.ndarray:
    """Scale constraint rows (k, nv) so that neither their sizes nor units of length matter.

    The rows are velocities over velocities: without unit for a freedom in m/s, m for one in rad/s.
    The result has rows of unit norm, with radians counted in the robot's size; a row that is zero,
    as along the normal where a planar joint keeps a contact closed, stays zero.
    """
    return _comparable(rows / freedom_lengths(tree))


def _comparable(scaled: np.ndarray) -> np.ndarray:
    """Rows of unit norm; rows that are zero stay zero."""
    sizes = np.linalg.norm(scaled, axis=1, keepdims=True)
    zero = sizes <= ZERO * np.max(sizes, initial=0.0)
    return np.where(zero, 0.0, scaled / np.where(zero, 1.0, sizes))


def freedom_lengths(tree: Tree) -> np.ndarray:
    """Lengths (nv,) by which the columns of constraint rows are divided to become comparable.

    They are one for freedoms in m/s, and the robot's size for those in rad/s.
    """
    size = tree.size
    units = [unit for body in tree.bodies for unit in body.joint.freedom_units]
    return np.array([1.0 if unit == "m" else size for unit in units])


def _frame_height(tree: Tree, platform: int) -> float:
    placement = tree.bodies[platform].placement
    normal = placement.rotation_matrix @ plane_normal(tree, platform)
    return float(normal @ np.array(placement.translation))


def _independent_rows(tree: Tree, names: list[str], samples: list[np.ndarray]) -> tuple[int, ...]:
    """Keep rows that raise the rank: couplings, rolling, side slip, that of wheels that follow."""
    lengths = freedom_lengths(tree)
    scaled = [_comparable(rows / lengths) for rows in samples]
    ranks = [_rank(rows) for rows in scaled]
    # Whether it is that large wherever the robot rolls is judged by `reduce`.
    scaled = [rows for rows, rank in zip(scaled, ranks, strict=True) if rank == max(ranks)]
    kept: list[int] = []
    last, slips = len(names) - len(tree.followers), _following_slips(tree)
    order = sorted(
        range(len(names)),
        key=lambda i: (i < last, ": rolling" not in names[i], names[i] in slips, i),
    )
    for i in order:
        trial = sorted([*kept, i])
        if all(_rank(rows[trial]) == len(trial) for rows in scaled):
            kept = trial
    for rows in scaled:
        part = rows[kept]
        rest = np.abs(rows - rows @ np.linalg.pinv(part) @ part).max()
        if len(kept) != max(ranks) or rest > 1e-9:
            raise WheelError(
                f"robot `{tree.name}`, `wheels`",
                expected="rows that span all rolling constraints in all configurations",
                came=f"{len(kept)} rows of rank {max(ranks)}, with a rest of {rest:.2g}",
                cure="The wheels contradict each other in some configurations; simplify them.",
            )
    return tuple(kept)


def _following_slips(tree: Tree) -> set[str]:
    """Names of rows that follow from those of guides."""
    found = set()
    for wheel in tree.wheels:
        carrier = wheel.body
        if wheel.kind != "slider":
            carrier = tree.bodies[tree.index(wheel.body)].parent or ""
        if carrier in tree.following:
            found.add(f"{wheel.body}: no side slip")
    return found


def _rank(rows: np.ndarray) -> int:
    values = np.linalg.svd(rows, compute_uv=False)
    return int((values > 1e-9 * max(1.0, values[0])).sum())
