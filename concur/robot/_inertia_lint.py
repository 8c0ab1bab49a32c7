"""Inertias that are physical but improbable: slips of units."""

from __future__ import annotations

import numpy as np

from concur.robot._size import extent
from concur.robot._tree import Tree

LARGEST = 3.0
"""Radius of gyration and distance of the centre of mass above which a body is suspicious, in
sizes of the robot."""

DENSEST = 22600.0
"""Density, kg/m^3, of the solid ellipsoid with mass and moments of a body above which the body is
suspicious. Osmium, the densest material, has 22590; every other shape of a density has larger
second moments than the ellipsoid."""

FLATTEST = 1e-9
"""Ratio of second moments below which a body is a rod, plate or point without volume."""

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
    found = _dense(tree)
    size = extent(tree)
    if size == 0.0:
        return tuple(found)
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


def _dense(tree: Tree) -> list[str]:
    """Bodies whose moments need a material denser than any."""
    found = []
    for body in tree.bodies:
        mass, moments = body.inertia.mass, body.inertia.principal_moments
        seconds = 0.5 * moments.sum() - moments
        if mass == 0.0 or seconds.min() <= FLATTEST * seconds.max():
            continue
        # An ellipsoid has the second moment m a^2 / 5 along its semi-axis a. Logarithms, because
        # products of the smallest numbers are zero.
        volume = np.log(4.0 / 3.0 * np.pi) + 0.5 * np.sum(np.log(5.0 * seconds) - np.log(mass))
        density = np.exp(min(float(np.log(mass) - volume), 700.0))
        if density > DENSEST:
            found.append(
                f"body `{body.name}`: {mass:.3g} kg with moments that need a density of "
                f"{density:.3g} kg/m^3: mass in g instead of kg, or moments in another "
                "unit than kg m^2?"
            )
    return found


def _guess(length: float, size: float, units: dict[str, float]) -> str:
    """Name the first unit with which the length would be within half the robot's size."""
    fitting = (unit for unit, factor in units.items() if length / factor <= 0.5 * size)
    unit = next(fitting, None)
    return "another unit than" if unit is None else f"{unit} instead of"
