"""How large a robot is: the length with which its metres and radians are compared."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from concur.robot._bodies import BodyTree
from concur.robot._wheel import Wheel

POINT = 1e-6
"""Share of the radius of gyration below which a distance between origins is rounding."""


def extent(tree: BodyTree, wheels: Sequence[Wheel], points: Sequence[np.ndarray] = ()) -> float:
    """Largest distance of joint frames and points, or diameter of a wheel, m; 0 if all coincide."""
    poses: dict[str | None, np.ndarray] = {None: np.eye(4)}
    for body in tree.bodies:
        poses[body.name] = poses[body.parent] @ body.placement.matrix
    # The position of the base has no influence on the size.
    origins = [*(poses[body.name][:3, 3] for body in tree.bodies), *points]
    apart = [float(np.linalg.norm(a - b)) for a, b in combinations(origins, 2)]
    longest = max([0.0, *apart, *(2.0 * wheel.radius for wheel in wheels)])
    return longest if longest > POINT * _radius(tree) else 0.0


def length_scale(
    tree: BodyTree, wheels: Sequence[Wheel], points: Sequence[np.ndarray] = ()
) -> float:
    """The extent, else the radius of gyration, else 1 m."""
    return extent(tree, wheels, points) or _radius(tree) or 1.0


def _radius(tree: BodyTree) -> float:
    """Radius of gyration of all bodies as if the origins of their frames coincided, m."""
    turning = sum(float(np.linalg.norm(body.inertia.origin_tensor, 2)) for body in tree.bodies)
    return float(np.sqrt(turning / tree.total_mass)) if turning > 0.0 else 0.0
