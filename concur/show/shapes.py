"""Surfaces of the shapes of bodies."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from concur.show.style import Floats

SIDES = 32
"""Sides of a round shape."""

FACES = np.array([[0, 2, 3], [0, 3, 1], [4, 5, 7], [4, 7, 6], [0, 1, 5], [0, 5, 4],
                  [2, 6, 7], [2, 7, 3], [0, 4, 6], [0, 6, 2], [1, 3, 7], [1, 7, 5]])  # fmt: skip
"""Triangles of a box; the bits of a corner select low or high along x, y, z."""


def surface(shape: Any) -> tuple[Floats, NDArray[np.int_]]:
    """Triangles of the surface of a shape.

    Parameters
    ----------
    shape : Shape
        The shape.

    Returns
    -------
    vertices : ndarray, shape (n, 3)
        Points in the frame of the body, m.
    faces : ndarray, shape (m, 3)
        Indices of the corners of each triangle.
    """
    size = shape.size
    if shape.kind == "box":
        bits = (np.arange(8)[:, None] >> np.arange(3)) & 1
        points, faces = (bits - 0.5) * np.array(size), FACES
    else:
        points, faces = _turned(*_profile(shape.kind, *size))
    return points @ shape.placement.rotation_matrix.T + shape.placement.translation, faces


def surfaces(shapes: Any) -> tuple[Floats, NDArray[np.int_]]:
    """Triangles of the surfaces of all shapes of a body, as of `surface`.

    Parameters
    ----------
    shapes : sequence of Shape
        At least one shape.

    Returns
    -------
    vertices : ndarray, shape (n, 3)
        Points in the frame of the body, m.
    faces : ndarray, shape (m, 3)
        Indices of the corners of each triangle.
    """
    found = [surface(shape) for shape in shapes]
    starts = np.cumsum([0, *(len(vertices) for vertices, _ in found)])
    faces = [own + start for (_, own), start in zip(found, starts, strict=False)]
    return np.concatenate([vertices for vertices, _ in found]), np.concatenate(faces)


def _profile(kind: str, radius: float, length: float = 0.0) -> tuple[Floats, Floats]:
    """Distances from the axis and heights of a round shape, from the lower to the upper pole."""
    if kind == "cylinder":
        half = 0.5 * length
        return np.array([0.0, radius, radius, 0.0]), np.array([-half, -half, half, half])
    angle = np.linspace(-np.pi / 2, np.pi / 2, SIDES // 2)
    return radius * np.cos(angle), radius * np.sin(angle) + 0.5 * length * np.sign(angle)


def _turned(distance: Floats, height: Floats) -> tuple[Floats, NDArray[np.int_]]:
    """Surface of revolution about z."""
    angle = 2.0 * np.pi * np.arange(SIDES) / SIDES
    around = np.stack([np.cos(angle), np.sin(angle), 0.0 * angle], axis=1)
    rings = distance[:, None, None] * around + height[:, None, None] * np.array([0.0, 0.0, 1.0])
    i, j = np.meshgrid(np.arange(len(distance) - 1), np.arange(SIDES), indexing="ij")
    k = (j + 1) % SIDES
    a, b = (i * SIDES + j).ravel(), (i * SIDES + k).ravel()
    c, d = a + SIDES, b + SIDES
    faces = np.concatenate([np.stack([a, b, d], 1), np.stack([a, d, c], 1)])
    return rings.reshape(-1, 3), faces
