"""Inertias that a body can have but hardly this robot: slips of units."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from concur.mechanism._tree import Tree

LARGEST = 3.0
"""Radius of gyration and distance of the centre of mass above which a body is suspicious, in
sizes of the robot."""

# What a drawing program may have written instead, with the factor on the length it stands for.
_LENGTHS = {"cm": 1e2, "mm": 1e3}
_MOMENTS = {"kg cm^2": 1e2, "kg mm^2": 1e3, "g mm^2": 1e3 * np.sqrt(1e3)}


def robot_size(tree: Tree) -> float:
    """Extent of a robot in its neutral configuration.

    Parameters
    ----------
    tree : Tree
        The robot.

    Returns
    -------
    float
        Largest distance between two joint frames, or the diameter of the largest wheel if that
        is more, m; zero for a robot without any extent.
    """
    poses: dict[str | None, np.ndarray] = {None: np.eye(4)}
    for body in tree.bodies:
        poses[body.name] = poses[body.parent] @ body.placement.matrix
    # Where the base stands says nothing about the size.
    origins = [poses[body.name][:3, 3] for body in tree.bodies]
    apart = [float(np.linalg.norm(a - b)) for a, b in combinations(origins, 2)]
    return max([0.0, *apart, *(2.0 * wheel.radius for wheel in tree.wheels)])


def suspicious_inertias(tree: Tree) -> tuple[str, ...]:
    """Find inertias that are physical but out of proportion to the robot.

    Parameters
    ----------
    tree : Tree
        The robot.

    Returns
    -------
    tuple of str
        One sentence for each radius of gyration sqrt(I / m), and for each centre of mass, that
        is more than three times the robot's size away from its body's centre of mass or origin;
        with the unit that was probably meant. Nothing for a robot without any extent.
    """
    size = robot_size(tree)
    if size == 0.0:
        return ()
    found = []
    for body in tree.bodies:
        inertia = body.inertia
        if inertia.mass == 0.0:
            continue
        gyration = float(np.sqrt(max(inertia.principal_moments[2], 0.0) / inertia.mass))
        away = float(np.linalg.norm(inertia.com))
        if gyration > LARGEST * size:
            found.append(
                f"body `{body.name}`: radius of gyration {gyration:.3g} m on a robot of "
                f"{size:.2g} m: {_guess(gyration, size, _MOMENTS)} kg m^2?"
            )
        if away > LARGEST * size:
            found.append(
                f"body `{body.name}`: centre of mass {away:.3g} m from the origin of its frame on "
                f"a robot of {size:.2g} m: {_guess(away, size, _LENGTHS)} m?"
            )
    return tuple(found)


def _guess(length: float, size: float, units: dict[str, float]) -> str:
    """Name the first unit with which the length would be within half the robot's size."""
    fitting = (unit for unit, factor in units.items() if length / factor <= 0.5 * size)
    unit = next(fitting, None)
    return "another unit than" if unit is None else f"{unit} instead of"
