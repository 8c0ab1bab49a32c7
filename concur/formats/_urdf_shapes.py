"""Boxes, cylinders and spheres of links in URDF files."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from concur.errors import DescriptionError
from concur.formats._urdf_xml import Node, tag_of

_SIZES: dict[str, Callable[[Node], tuple[float, ...]]] = {
    "box": lambda node: node.numbers("size", 3, None),
    "cylinder": lambda node: (node.number("radius", None), node.number("length", None)),
    "sphere": lambda node: (node.number("radius", None),),
}


def primitive(node: Node) -> tuple[str, np.ndarray, tuple[float, ...]]:
    """Kind, pose (4, 4) in the link and sizes, m, of an element <visual> or <collision>."""
    geometry = node.parts()["geometry"]
    shape = Node(geometry.element[0], node.path, geometry.place.partition(", ")[2])
    return shape.tag, node.pose(), _SIZES[shape.tag](shape)


class Shape:
    """A box, cylinder or sphere of a link.

    Parameters
    ----------
    kind : str
        "box", "cylinder" or "sphere".
    pose : numpy.ndarray
        Pose (4, 4) in the frame of the link, m.
    size : tuple of float
        Lengths of a box, shape (3,); radius and length of a cylinder; radius of a sphere, m.
    """

    def __init__(self, kind: str, pose: np.ndarray, size: tuple[float, ...]) -> None:
        self.kind, self.pose, self.size = kind, pose, size

    def support(self, direction: np.ndarray) -> float:
        """Largest coordinate along a direction (3,) of the link frame, m."""
        R, center = self.pose[:3, :3], self.pose[:3, 3]
        own = R.T @ direction
        if self.kind == "box":
            reach = 0.5 * np.abs(own) @ np.array(self.size)
        elif self.kind == "sphere":
            reach = self.size[0] * np.linalg.norm(own)
        else:
            reach = self.size[0] * np.hypot(own[0], own[1]) + 0.5 * self.size[1] * abs(own[2])
        return float(direction @ center + reach)

    def directions(self, point: np.ndarray) -> list[np.ndarray]:
        """Directions (3,), one of which separates a point (3,) outside of the shape from it."""
        R = self.pose[:3, :3]
        away = R.T @ (point - self.pose[:3, 3])
        axial = [sign * R[:, i] for i in range(3) for sign in (1.0, -1.0)]
        radial = away * (1.0, 1.0, 0.0) if self.kind == "cylinder" else away
        length = float(np.linalg.norm(radial))
        return [*axial, R @ radial / length] if length else axial


def separation(shapes: list[Shape], point: np.ndarray) -> tuple[float, float]:
    """Largest distance of a plane between shapes and point from the point, and the width there.

    For one shape the plane is found if there is one; for several, planes along each are tried.
    """

    def gap(direction: np.ndarray) -> float:
        return float(direction @ point) - max(shape.support(direction) for shape in shapes)

    best = max((d for shape in shapes for d in shape.directions(point)), key=gap)
    width = sum(max(shape.support(s * best) for shape in shapes) for s in (1.0, -1.0))
    return gap(best), width


def shapes_of(link: Node, tag: str) -> list[Shape]:
    """Shapes of a link under <collision> or <visual>; none if one is a mesh, unknown or invalid."""
    try:
        return [
            Shape(*primitive(Node(element, link.path, link.place.partition(", ")[2])))
            for element in link.element
            if tag_of(element) == tag
        ]
    except (DescriptionError, IndexError, KeyError):
        return []
