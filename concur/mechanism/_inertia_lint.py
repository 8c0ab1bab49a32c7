"""Inertias that a body can have but hardly this robot: slips of units."""

from __future__ import annotations

import numpy as np

from concur.mechanism._size import extent
from concur.mechanism._tree import Tree

LARGEST = 3.0
"""Radius of gyration and distance of the centre of mass above which a body is suspicious, in
sizes of the robot."""

# Units that a drawing program may have written, with the factor on the length.
_LENGTHS = {"cm": 1e2, "mm": 1e3}
_MOMENTS = {"kg cm^2": 1e2, "kg mm^2": 1e3, "g mm^2": 1e3 * np.sqrt(1e3)}


def suspicious_inertias(tree: Tree) -> tuple[str, ...]:
    """Find inertias that are physical but three times out of proportion to the robot.

    Parameters
    ----------
    tree : Tree
        The robot.

    Returns
    -------
    tuple of str
        One sentence for each finding.
    """
    size = extent(tree)
    if size == 0.0:
        return ()
    found = []
    for body in tree.bodies:
        inertia = body.inertia
        if inertia.mass == 0.0:
            continue
        gyration = float(np.sqrt(max(inertia.principal_moments[2], 0.0)) / np.sqrt(inertia.mass))
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
