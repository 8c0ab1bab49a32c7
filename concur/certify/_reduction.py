"""Reduction of the domain of a proof: symmetry and affine parts leave one or three parameters.

The inequality A(x) >= 0 of `_inequality` is claimed for all x with every |phi| <= angle and every
|rho| <= distance. The reduced domain is x = offset + matrix @ p with few parameters p:

- "linear": B = 1; there is no parameter.
- "one axis, one plane": SO(3) and SE(3) when KP, KD, I, P, L and M are multiples of the identity
  on each block of three and couple no position with a rotation (position and velocity of one kind
  may be coupled). A rotation Q of all vectors takes A(x) to a congruent matrix, as
  B(Q x) = Q B(x) Q^T, and a reflection does too (rho is a polar vector, phi an axial one). So
  phi = (0, 0, t) with t from 0 to the angle, and rho = (r1, 0, r3) with r1, r3 >= 0.
- "two octants": SO(3) with diagonal KP, KD, I and with P, L and M whose blocks are diagonal. Half
  turns about the axes change the sign of two components of phi: the first two are not negative.
- "all": all rotations on which B depends vary. For SE(3), when no matrix couples a position with a
  rotation, rho and -rho are equivalent: half of the corners below suffice. When all blocks of three
  are diagonal as well, boxes of two octants represent their mirror images.

B, and so A, is affine in positions: over a disc or a ball the corners of a polygon or a cube around
it suffice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from math import inf

import casadi as ca
import numpy as np

from concur.certify._channels import Channel
from concur.certify._checks import check, check_angle
from concur.certify._inequality import Claim
from concur.outputs.groups import (
    Angle,
    Coordinates,
    OutputGroup,
    PlanarPose,
    Pose,
    Rotation,
    Vector,
)

LINEAR = "linear"
ONE_AXIS = "one axis, one plane"
TWO_OCTANTS = "two octants"
ALL = "all"

# Components of a factor's error that are positions, and rotations on which B depends.
# B of a vector or of an angle alone is the identity.
_POSITIONS: dict[type[OutputGroup], int] = {Pose: 3, PlanarPose: 2, Rotation: 0}
_ROTATIONS: dict[type[OutputGroup], int] = {Pose: 3, PlanarPose: 1, Rotation: 3}

_EIGHTH = float(np.tan(np.pi / 8))

# Factor that moves corners of polygons outwards, so that rounding does not cut the disc.
_OUTWARDS = 1.0 + 1e-12


@dataclass(frozen=True, eq=False)
class Reduction:
    """Pose errors that represent all errors of a domain.

    Parameters
    ----------
    name : str
        Name of the argument, from the module's description.
    parameters : tuple of str
        Names of the parameters p.
    lower, upper : numpy.ndarray
        Box of the parameters, shape (k,), rad.
    radius : float
        Only parameters with |p| <= radius matter; infinite when the whole box does, rad.
    matrix : numpy.ndarray
        Of x = offset + matrix @ p, shape (n, k).
    offsets : numpy.ndarray
        Corners of the positions, shape (c, n). Every error of the domain is, up to symmetry, a
        mean of the x at some p.
    witnesses : numpy.ndarray
        Offsets with which x is inside the domain, shape (w, n), for counterexamples.
    images : numpy.ndarray
        Signs that map a box of parameters to the boxes that it represents, shape (i, k); the
        first row is all ones.
    """

    name: str
    parameters: tuple[str, ...]
    lower: np.ndarray
    upper: np.ndarray
    radius: float
    matrix: np.ndarray
    offsets: np.ndarray
    witnesses: np.ndarray
    images: np.ndarray = field(default_factory=lambda: np.ones((1, 0)))


def reduce_domain(
    channel: Channel, claim: Claim, angle: float, distance: float | None
) -> Reduction | None:
    """Return the errors that a proof of a claim must cover, reduced by symmetry.

    None if more than three rotations would vary, or the group is unsupported.
    """
    n = channel.size
    # A user-defined subclass may have another B.
    kinds = {type(f) for f in channel.factors}
    if kinds <= {Vector, Coordinates, Angle}:
        return Reduction(
            LINEAR, (), np.zeros(0), np.zeros(0), inf, np.zeros((n, 0)), *np.zeros((2, 1, n))
        )
    if not kinds <= {Vector, Coordinates, Angle, Pose, PlanarPose, Rotation}:
        return None
    _check_domain(channel, angle, distance)
    radius = 0.0 if distance is None else float(distance)
    blocks = [channel.stiffness, channel.damping, channel.inertia, claim.P, claim.L, claim.M]
    alone = len(channel.factors) == 1
    if alone and kinds <= {Rotation, Pose} and all(_isotropic(b, n) for b in blocks):
        return _one_axis(n, angle, radius)
    if alone and kinds == {Rotation} and all(_diagonal(b) for b in blocks):
        lower = np.array([0.0, 0.0, -angle])
        return Reduction(
            TWO_OCTANTS,
            ("x", "y", "z"),
            lower,
            np.full(3, float(angle)),
            float(angle),
            np.eye(3),
            *np.zeros((2, 1, 3)),
        )
    whole = _all(channel, angle, radius)
    if whole is not None and alone and kinds == {Pose}:
        return _mirrored(whole, blocks)
    return whole


def affine_in_positions(channel: Channel) -> bool:
    """Whether the formula of the error map is affine in the positions."""
    x = ca.SX.sym("x", channel.size)
    places, _ = positions_and_rotations(channel)
    if not places:
        return True
    rho = ca.vertcat(*[x[i] for i in places])
    slope = ca.jacobian(ca.vec(ca.densify(channel.group.error_map(x))), rho)
    return not ca.depends_on(slope, rho)


def positions_and_rotations(channel: Channel) -> tuple[list[int], list[int]]:
    """Indices in x of the positions and of the rotations on which B depends."""
    positions: list[int] = []
    rotations: list[int] = []
    start = 0
    for f in channel.factors:
        split = start + _POSITIONS.get(type(f), 0)
        positions += range(start, split)
        rotations += range(split, split + _ROTATIONS.get(type(f), 0))
        start += f.dim
    return positions, rotations


def _check_domain(channel: Channel, angle: float, distance: float | None) -> None:
    where = f"domain of {channel.name}"
    check_angle(where, angle)
    positions, _ = positions_and_rotations(channel)
    check(
        not positions or (distance is not None and 0.0 <= distance < inf),
        f"{where}, `distance`",
        "a finite nonnegative number of metres",
        distance,
        "Bound the position error: the error map of a pose grows with it.",
    )


def _isotropic(matrix: np.ndarray, n: int) -> bool:
    """Whether all blocks are exact multiples of the identity without position-rotation coupling."""
    rows, columns = (size // 3 for size in matrix.shape)
    scales = matrix[::3, ::3]
    kinds = n // 3
    apart = np.array([[(i - j) % kinds == 0 for j in range(columns)] for i in range(rows)])
    return np.array_equal(matrix, np.kron(scales * apart, np.eye(3)))


def _diagonal(matrix: np.ndarray) -> bool:
    rows, columns = matrix.shape
    pattern = np.kron(np.ones((rows // 3, columns // 3)), np.eye(3))
    return np.array_equal(matrix, matrix * pattern)


def _one_axis(n: int, angle: float, radius: float) -> Reduction:
    matrix = np.zeros((n, 1))
    matrix[-1, 0] = 1.0
    if n == 3:
        offsets = witnesses = np.zeros((1, 3))
    else:
        # Two neighbouring corners of the regular octagon around the disc; the others are images.
        offsets, witnesses = np.zeros((2, n)), np.zeros((9, n))
        r = radius * _OUTWARDS
        offsets[:, 0], offsets[:, 2] = (r, r * _EIGHTH), (r * _EIGHTH, r)
        angles = np.linspace(0.0, np.pi / 2, len(witnesses))
        witnesses[:, 0], witnesses[:, 2] = _inside(radius) * np.array(
            [np.cos(angles), np.sin(angles)]
        )
    ends = np.zeros(1), np.full(1, float(angle))
    return Reduction(ONE_AXIS, ("t",), *ends, inf, matrix, offsets, witnesses)


def _all(channel: Channel, angle: float, radius: float) -> Reduction | None:
    _, places = positions_and_rotations(channel)
    if len(places) > 3:
        return None
    matrix = np.zeros((channel.size, len(places)))
    matrix[places, np.arange(len(places))] = 1.0
    top = np.full(len(places), float(angle))
    solid = any(isinstance(f, (Rotation, Pose)) for f in channel.factors)
    names = ("x", "y", "z") if solid else ("t", "t2", "t3")[: len(places)]
    ball = float(angle) if solid else inf
    corners = _corners(channel.factors, radius * _OUTWARDS, inside=False)
    inner = _corners(channel.factors, _inside(radius), inside=True)
    return Reduction(ALL, names, -top, top, ball, matrix, corners, inner)


def _mirrored(whole: Reduction, blocks: Sequence[np.ndarray]) -> Reduction:
    """Remove mirror images of poses: S = diag(Q, det(Q) Q) takes B(S x) to S B(x) S^-1."""
    if not all(_apart(matrix) for matrix in blocks):
        return whole
    # Q = -1 negates rho and keeps phi.
    half = replace(
        whole,
        offsets=whole.offsets[whole.offsets[:, 0] >= 0.0],
        witnesses=whole.witnesses[whole.witnesses[:, 0] >= 0.0],
    )
    if not all(_diagonal(matrix) for matrix in blocks):
        return half
    # Half turns about the axes map corners to corners.
    lower = whole.lower.copy()
    lower[:2] = 0.0
    signs = np.array([[1.0, 1.0, 1.0], [1.0, -1.0, -1.0], [-1.0, 1.0, -1.0], [-1.0, -1.0, 1.0]])
    return replace(half, lower=lower, images=signs)


def _apart(matrix: np.ndarray) -> bool:
    """Whether a matrix of a pose couples no position with a rotation."""
    rows, columns = matrix.shape
    place = np.arange(max(rows, columns)) // 3 % 2
    return not matrix[place[:rows, None] != place[None, :columns]].any()


def _inside(radius: float) -> float:
    return radius / _OUTWARDS


def _corners(factors: Sequence[OutputGroup], radius: float, inside: bool) -> np.ndarray:
    """Corners of the positions of all factors: around the domain, or on its boundary."""
    choices = []
    for f in factors:
        count = _POSITIONS.get(type(f), 0)
        own = np.zeros((1, f.dim))
        if count == 2:
            around = np.pi / 8 + np.arange(8) * np.pi / 4
            own = np.zeros((8, f.dim))
            reach = radius if inside else radius / np.cos(np.pi / 8)
            own[:, :2] = reach * np.array([np.cos(around), np.sin(around)]).T
        elif count == 3:
            own = np.zeros((8, f.dim))
            own[:, :3] = np.array(list(product((-radius, radius), repeat=3)))
            if inside:
                own /= np.sqrt(3.0) * _OUTWARDS
        choices.append(own)
    return np.array([np.concatenate(parts) for parts in product(*choices)])
