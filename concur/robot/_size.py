"""How large a robot is: the length with which its metres and radians are compared."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from concur.robot._tree import Tree

POINT = 1e-6
"""Share of the radius of gyration below which a distance between origins is rounding."""


def extent(tree: Tree, points: Sequence[np.ndarray] = ()) -> float:
    """Largest distance of joint frames and points, or diameter of a wheel, m; 0 if all coincide."""
    poses: dict[str | None, np.ndarray] = {None: np.eye(4)}
    for body in tree.bodies:
        poses[body.name] = poses[body.parent] @ body.placement.matrix
    # The position of the base has no influence on the size.
    origins = [*(poses[body.name][:3, 3] for body in tree.bodies), *points]
    apart = [float(np.linalg.norm(a - b)) for a, b in combinations(origins, 2)]
    longest = max([0.0, *apart, *(2.0 * wheel.radius for wheel in tree.wheels)])
    return longest if longest > POINT * _radius(tree) else 0.0


def robot_size(tree: Tree, points: Sequence[np.ndarray] = ()) -> float:
    """Length with which radians and metres of a robot are compared.

    Parameters
    ----------
    tree : Tree
        The robot.
    points : sequence of numpy.ndarray
        More points of the robot, shape (3,), m.

    Returns
    -------
    float
        The length, m; above zero.
    """
    return extent(tree, points) or _radius(tree) or 1.0


def _radius(tree: Tree) -> float:
    """Radius of gyration of all bodies as if the origins of their frames coincided, m."""
    turning = sum(float(np.linalg.norm(body.inertia.origin_tensor, 2)) for body in tree.bodies)
    return float(np.sqrt(turning / tree.total_mass)) if turning > 0.0 else 0.0
