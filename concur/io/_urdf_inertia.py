"""Inertias of URDF files: elements, the nearest physical tensor, and what rounding leaves."""

from __future__ import annotations

import math

import numpy as np

from concur.io._urdf_xml import Node, tag_of

ROUNDING = 1e-14
"""Negative second moment that is rounding, in units of mass times the square of the size."""

WATER = 1000.0
"""Density of the ball that takes the place of a link without tensor, kg/m^3."""


def inertial_of(link: Node) -> tuple[Node, float, np.ndarray, np.ndarray] | None:
    """Read <inertia>, mass, pose (4, 4) of the inertial frame and tensor (3, 3) in its axes.

    Without <inertia> the tensor is zero, and the node is <inertial>.
    """
    inertial = link.parts().get("inertial")
    if inertial is None:
        return None
    parts = inertial.parts()
    if "mass" not in parts:
        inertial.refuse("the element <mass>", "no such element", "Add <mass>.")
    mass = parts["mass"].number("value", None)
    if "inertia" not in parts:
        return inertial, mass, inertial.pose(), np.zeros((3, 3))
    xx, yy, zz = (parts["inertia"].number(name, None) for name in ("ixx", "iyy", "izz"))
    xy, xz, yz = (parts["inertia"].number(name, 0.0) for name in ("ixy", "ixz", "iyz"))
    tensor = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    return parts["inertia"], mass, inertial.pose(), tensor


def second_moments(tensor: np.ndarray) -> np.ndarray:
    """Second moments of mass (3, 3) of a tensor (3, 3), kg m^2."""
    return np.asarray(0.5 * np.trace(tensor) * np.eye(3) - tensor)


def nearest_tensor(tensor: np.ndarray) -> np.ndarray:
    """Tensor (3, 3) about the centre of mass with the nearest semidefinite second moments.

    Parameters
    ----------
    tensor : numpy.ndarray
        Symmetric matrix, shape (3, 3), kg m^2.

    Returns
    -------
    numpy.ndarray
        Tensor of a rigid body, shape (3, 3), kg m^2; entries that need no change are identical.
    """
    values, vectors = np.linalg.eigh(second_moments(tensor))
    more = vectors @ np.diag(np.maximum(-values, 0.0)) @ vectors.T
    return np.asarray(tensor + np.trace(more) * np.eye(3) - 0.5 * (more + more.T))


def largest_gyration(root: Node) -> float:
    """Largest radius of gyration of the links whose tensors are physical, m."""
    largest = 0.0
    for element in root.element:
        found = inertial_of(Node(element, root.path)) if tag_of(element) == "link" else None
        if found is not None and found[1] > 0.0:
            moments = second_moments(found[3])
            if np.linalg.eigvalsh(moments)[0] >= -1e-9 * np.trace(moments):
                largest = max(largest, float(np.trace(moments)) / found[1])
    return math.sqrt(largest)


def without_rounding(
    mass: float, com: np.ndarray, tensor: np.ndarray, gyration: float
) -> np.ndarray | None:
    """Nearest tensor (3, 3), if rounding has made this one invalid; else None.

    A negative second moment is rounding if it is small beside mass times size squared. The size is
    the largest radius of gyration of the robot, m, or the distance of the centre of mass from the
    frame of the link. A tensor as small becomes zero.
    """
    least = ROUNDING * mass * max(gyration**2, float(com @ com))
    if -np.linalg.eigvalsh(second_moments(tensor))[0] > least:
        return None
    small = np.abs(tensor).max() <= least
    return np.zeros((3, 3)) if small else nearest_tensor(tensor)


def ball(mass: float) -> np.ndarray:
    """Tensor (3, 3) of a solid ball of a mass with the density of water, kg m^2."""
    radius = (3.0 * mass / (4.0 * math.pi * WATER)) ** (1.0 / 3.0)
    return np.asarray(0.4 * mass * radius**2 * np.eye(3))
