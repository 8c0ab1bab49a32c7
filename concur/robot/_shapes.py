"""Shapes of bodies, which drawings show, and distances of capsules; the dynamics ignore them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import Annotated, Any, ClassVar

import casadi as ca
import numpy as np

from concur.errors import DescriptionError, ShapeError, shown
from concur.files import read_bytes
from concur.robot._pose import Pose, vector
from concur.tables import Choice, NumberOrList, Quaternion, Vector3

LARGEST_MESH = 200_000_000
"""Size of the largest mesh file that is read, bytes."""

MESHES = (".stl", ".obj", ".ply", ".off", ".glb", ".gltf")
"""Endings of the names of mesh files that can be read in every installation."""

TINY = 1e-30
"""Square of a length, m^2, below which lengths have no direction."""

PARALLEL = 1e-14
"""Square of the sine of an angle below which two segments count as parallel."""

KINDS = {
    "box": ("lengths along x, y and z", 3),
    "cylinder": ("radius, and length along z", 2),
    "sphere": ("radius", 1),
    "capsule": ("radius, and length of the cylinder along z without the caps", 2),
    "mesh": ("factors of the lengths along x, y and z, or one for all", 3),
}
"""Meaning and number of the sizes of each kind of shape."""


@dataclass(frozen=True)
class Shape:
    """A box, cylinder, sphere, capsule or mesh that a body looks like.

    Drawings use it, dynamics do not.

    Parameters
    ----------
    kind : str
        "box", "cylinder", "sphere", "capsule" or "mesh".
    size : sequence of float
        Lengths of a box along x, y and z; radius and length along z of a cylinder, and of a capsule
        without its caps; radius of a sphere; m. Of a mesh: factors of its lengths along x, y and z,
        which map them to m; below zero for a mirror image.
    placement : Pose
        Pose of the shape's centre and axes in the body frame.
    file : str
        File of a mesh, such as .stl, .obj, .ply or .glb; .dae needs the package pycollada. It is
        opened by drawings only: without it, or if it cannot be read, they have bars.

    Raises
    ------
    DescriptionError
        If the kind is unknown, a size is not above zero (of a mesh: zero), or a mesh has no file.
    ShapeError
        If the number of sizes does not fit the kind.
    """

    kind: str
    size: Sequence[float]
    placement: Pose = field(default_factory=Pose)
    file: str = ""
    _cures: ClassVar[Mapping[str, str]] = Pose._cures

    def __post_init__(self) -> None:
        if not isinstance(self.kind, str) or self.kind not in KINDS:
            raise DescriptionError(
                "Shape, `kind`",
                expected=f"one of {', '.join(KINDS)}",
                came=shown(self.kind),
                cure="Name one of them.",
            )
        if not isinstance(self.file, str) or (self.kind == "mesh") != bool(self.file):
            raise DescriptionError(
                f"Shape of kind {self.kind}, `file`",
                expected="the file of a mesh" if self.kind == "mesh" else "no file",
                came=shown(self.file) if self.file else "no file",
                cure="Name the file of a mesh; omit it for other shapes.",
            )
        words, count = KINDS[self.kind]
        try:
            size = vector(self.size, count, "Shape, `size`")
        except ShapeError as error:
            cure = f"Give {words}, m."
            expected, came = error.expected, error.came
            raise ShapeError("Shape, `size`", expected=expected, came=came, cure=cure) from None
        if not (all(size) if self.kind == "mesh" else min(size) > 0.0):
            raise DescriptionError(
                "Shape, `size`",
                expected=f"{words}, above zero",
                came=shown(size),
                cure="Correct the size.",
            )
        object.__setattr__(self, "size", size)

    @classmethod
    def from_table(
        cls,
        type: Annotated[str, Choice(tuple(KINDS))],
        size: NumberOrList,
        translation: Vector3 = (0.0, 0.0, 0.0),
        rotation: Quaternion | None = None,
        rpy_deg: Vector3 | None = None,
        file: str = "",
    ) -> Shape:
        """A part of a body's look in drawings, with the pose of its centre in the body frame.

        Parameters
        ----------
        type : str
            Form of the shape.
        size : float or sequence of float
            Size, m: lengths of a box along x, y and z; radius and length along z of a cylinder, and
            of a capsule without its caps; radius of a sphere. Of a mesh: factors of its lengths.
        translation : sequence of float
            Centre of the shape, shape (3,), m.
        rotation : sequence of float, optional
            Unit quaternion x, y, z, w, shape (4,), which maps coordinates of the shape to those of
            the body. Default: not turned.
        rpy_deg : sequence of float, optional
            Roll, pitch and yaw, shape (3,), deg, in place of `rotation`, as `rpy` of URDF. Default:
            none, with `rotation`.
        file : str
            File of a mesh, relative to the file of the robot.

        Returns
        -------
        Shape
            The shape.
        """
        sizes = size if isinstance(size, Sequence) else [size] * (3 if type == "mesh" else 1)
        return cls(type, sizes, Pose.from_table(translation, rotation, rpy_deg), file)

    @property
    def capsule(self) -> tuple[Any, Any, float] | None:
        """Ends of the segment in the body frame, shape (3,), and radius of a sphere or capsule, m.

        None for other shapes.
        """
        if self.kind not in ("sphere", "capsule"):
            return None
        radius, *length = self.size
        half = np.array([0.0, 0.0, length[0] / 2 if length else 0.0])
        turn, middle = self.placement.rotation_matrix, np.array(self.placement.translation)
        return tuple(middle - turn @ half), tuple(middle + turn @ half), float(radius)


def mesh_formats() -> tuple[str, ...]:
    """Endings of the names of mesh files that can be read; .dae with the package pycollada."""
    return (*MESHES, ".dae") if find_spec("collada") else MESHES


@lru_cache(256)
def read_mesh(file: str) -> tuple[np.ndarray, np.ndarray] | None:
    """Corners (n, 3) and triangles (m, 3) of a mesh file; None if it cannot be read."""
    with suppress(Exception):  # readers of meshes raise errors of every kind
        import trimesh

        data, kind = read_bytes(Path(file), "a mesh", "", largest=LARGEST_MESH), Path(file).suffix
        # A .gltf file names further files beside it.
        source: Any = file if kind.lower() == ".gltf" else BytesIO(data)
        mesh: Any = trimesh.load(source, file_type=kind[1:].lower(), force="mesh")
        if len(mesh.faces) and np.isfinite(mesh.vertices).all():
            return np.array(mesh.vertices), np.array(mesh.faces)
    return None


def segment_distance(a: ca.SX, b: ca.SX, c: ca.SX, d: ca.SX) -> ca.SX:
    """Distance between the segments from a to b and from c to d, points (3,).

    It is that of an end to the other segment, or of both lines if their nearest points are inside.
    """
    found = ca.fmin(
        ca.fmin(_point_distance(a, c, d), _point_distance(b, c, d)),
        ca.fmin(_point_distance(c, a, b), _point_distance(d, a, b)),
    )
    u, v, w = b - a, d - c, a - c
    uu, vv, uv, uw, vw = ca.dot(u, u), ca.dot(v, v), ca.dot(u, v), ca.dot(u, w), ca.dot(v, w)
    room = uu * vv - uv * uv
    first, second = uv * vw - vv * uw, uu * vw - uv * uw
    inside = ca.logic_and(
        ca.logic_and(first >= 0.0, first <= room), ca.logic_and(second >= 0.0, second <= room)
    )
    apart = room > PARALLEL * uu * vv
    safe = ca.if_else(apart, room, 1.0)
    across = _length(w + first / safe * u - second / safe * v)
    return ca.if_else(ca.logic_and(inside, apart), ca.fmin(found, across), found)


def _point_distance(p: ca.SX, a: ca.SX, b: ca.SX) -> ca.SX:
    """Distance of a point from a segment."""
    way = b - a
    square = ca.dot(way, way)
    share = ca.dot(p - a, way) / ca.if_else(square > 0.0, square, 1.0)
    return _length(p - a - ca.fmin(ca.fmax(share, 0.0), 1.0) * way)


def box_distance(a: ca.SX, b: ca.SX, centre: ca.SX, turn: ca.SX, half: ca.SX) -> ca.SX:
    """Distance of the segment from a to b (3,) from a box.

    The box has a centre (3,), axes as columns of `turn` (3, 3), and half lengths (3,). Where they
    overlap the distance is below zero: the shortest way out. Half of the derivative of the
    squared distance by the share of the segment is a chain of lines that rises; it crosses zero at
    the nearest point. Its corners are where the segment enters or leaves a slab of the box.
    """
    a, way = turn.T @ (a - centre), turn.T @ (b - a)
    b = a + way
    shares = [ca.SX(0), ca.SX(1)]
    for i in range(3):
        moving = way[i] != 0.0
        for end in (-half[i], half[i]):
            met = (end - a[i]) / ca.if_else(moving, way[i], 1.0)
            shares.append(ca.if_else(moving, ca.fmax(0.0, ca.fmin(1.0, met)), 0.0))
    slopes = [ca.dot(way, _outside(a + share * way, half)) for share in shares]
    (low, first), (high, last) = ((shares[k], slopes[k]) for k in (0, 1))
    for share, slope in zip(shares, slopes, strict=True):
        below = ca.logic_and(slope <= 0.0, share >= low)
        above = ca.logic_and(slope >= 0.0, share <= high)
        low, first = ca.if_else(below, share, low), ca.if_else(below, slope, first)
        high, last = ca.if_else(above, share, high), ca.if_else(above, slope, last)
    rise = last - first
    part = ca.if_else(rise > 0.0, -first / ca.if_else(rise > 0.0, rise, 1.0), 0.5)
    apart = _length(_outside(a + (low + part * (high - low)) * way, half))
    gap = _largest_gap(a, b, half)
    return ca.if_else(gap > 0.0, apart, gap)


def _outside(p: ca.SX, half: ca.SX) -> ca.SX:
    """Vector from the nearest point of a box to a point (3,)."""
    return p - ca.fmin(ca.fmax(p, -half), half)


def _largest_gap(a: ca.SX, b: ca.SX, half: ca.SX) -> ca.SX:
    """Largest gap between a segment and a box along directions that can separate them.

    These are normals of faces of the box, and of planes through an edge and the segment.
    """
    middle, own = (a + b) / 2.0, (b - a) / 2.0
    found = ca.mmax(ca.fabs(middle) - half - ca.fabs(own))
    square = ca.sumsqr(own)
    for k in range(3):
        across = ca.cross(ca.SX.eye(3)[:, k], own)
        size = ca.sumsqr(across)
        apart = size > PARALLEL * square
        gap = ca.fabs(ca.dot(across, middle)) - ca.dot(half, ca.fabs(across))
        gap /= ca.sqrt(ca.if_else(apart, size, 1.0))
        found = ca.if_else(apart, ca.fmax(found, gap), found)
    return found


def _length(way: ca.SX) -> ca.SX:
    """Length of a vector, with finite derivatives where it is zero: there 1e-15."""
    return ca.sqrt(ca.fmax(ca.sumsqr(way), TINY))
