"""Boxes, cylinders and spheres of links in URDF files."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.spatial.transform import Rotation

from concur.errors import ConcurError
from concur.io._urdf_xacro import Macros
from concur.io._urdf_xml import Node, tag_of
from concur.robot import Pose, Shape, mesh_formats

_SIZES: dict[str, Callable[[Node], tuple[float, ...]]] = {
    "box": lambda node: node.numbers("size", 3, None),
    "cylinder": lambda node: (node.number("radius", None), node.number("length", None)),
    "sphere": lambda node: (node.number("radius", None),),
}


def pose_of(matrix: np.ndarray) -> Pose:
    """Pose with a matrix (4, 4)."""
    rotation = Rotation.from_matrix(matrix[:3, :3]).as_quat()
    return Pose(tuple(matrix[:3, 3]), tuple(rotation))


def drawn(link: Node, tag: str, macros: Macros | None = None) -> list[Shape | None]:
    """Shapes of a link under <collision> or <visual>; None for what is invalid.

    Meshes are shapes if `macros` find their files, which a drawing can read by their names.
    """
    found: list[Shape | None] = []
    for element in link.element:
        if tag_of(element) == tag:
            try:
                node = Node(element, link.path, link.place.partition(", ")[2])
                geometry = node.parts()["geometry"]
                shape = Node(geometry.element[0], link.path)
                file = mesh_file(shape, macros) if macros and shape.tag == "mesh" else None
                size = _scale(shape) if file else _SIZES[shape.tag](shape)
                found.append(Shape(shape.tag, size, pose_of(node.pose()), file or ""))
            except (ConcurError, IndexError, KeyError):
                found.append(None)
    return found


def _scale(mesh: Node) -> tuple[float, ...]:
    return mesh.numbers("scale", 3, (1.0, 1.0, 1.0))


def mesh_file(mesh: Node, macros: Macros) -> str | None:
    """File of a mesh; None if it is not found, or in a format that is not read."""
    path = macros.file(mesh.element.get("filename", ""), mesh.path)
    readable = path is not None and path.suffix.lower() in mesh_formats()
    return str(path.resolve()) if path and readable else None


def shapes_of(link: Node, tag: str) -> list[Shape]:
    """Shapes of a link under a tag; none if one is a mesh, unknown or invalid."""
    found = drawn(link, tag)
    return [shape for shape in found if shape] if all(found) else []


def reach(shape: Shape, direction: np.ndarray) -> float:
    """Largest coordinate of a shape along a direction (3,) of the link frame, m."""
    own = shape.placement.rotation_matrix.T @ direction
    if shape.kind == "box":
        half = 0.5 * np.abs(own) @ np.array(shape.size)
    elif shape.kind == "sphere":
        half = shape.size[0] * np.linalg.norm(own)
    else:
        half = shape.size[0] * np.hypot(own[0], own[1]) + 0.5 * shape.size[1] * abs(own[2])
    return float(direction @ shape.placement.translation + half)


def _directions(shape: Shape, point: np.ndarray) -> list[np.ndarray]:
    """Directions (3,), one of which separates a point (3,) outside of the shape from it."""
    R = shape.placement.rotation_matrix
    away = R.T @ (point - shape.placement.translation)
    axial = [sign * R[:, i] for i in range(3) for sign in (1.0, -1.0)]
    radial = away * (1.0, 1.0, 0.0) if shape.kind == "cylinder" else away
    length = float(np.linalg.norm(radial))
    return [*axial, R @ radial / length] if length else axial


def separation(shapes: list[Shape], point: np.ndarray) -> tuple[float, float]:
    """Largest distance of a plane between shapes and point from the point, and the width there.

    For one shape the plane is found if there is one; for several, planes along each are tried.
    """

    def gap(direction: np.ndarray) -> float:
        return float(direction @ point) - max(reach(shape, direction) for shape in shapes)

    best = max((d for shape in shapes for d in _directions(shape, point)), key=gap)
    width = sum(max(reach(shape, s * best) for shape in shapes) for s in (1.0, -1.0))
    return gap(best), width
