"""Numbers of a robot that take the place of those of its description."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from concur.codegen import Array


@dataclass(frozen=True, eq=False)
class RobotNumbers:
    """Numbers that the recursions use, as expressions.

    Lengths are in m, masses in kg. The axes of joints are those of the description.

    Parameters
    ----------
    masses, firsts, seconds : sequence of casadi.SX
        Mass, first moment (3,) and second moment (3, 3) of each link, regrouped.
    offsets : sequence of casadi.SX
        Origin of each link in its parent's link frame, shape (3,).
    turns : sequence of casadi.SX or numpy.ndarray
        Attitude of each link before its joint turns, in its parent's link frame, shape (3, 3).
    starts : sequence of tuple of float or casadi.SX
        Cosine and sine of the angle added to that of each joint about the axis z of its link.
    places : sequence of casadi.SX
        Translation of the placement of each body, shape (3,).
    attitudes : sequence of casadi.SX or numpy.ndarray
        Rotation of the placement of each body, shape (3, 3).
    ratios : sequence of casadi.SX or numpy.ndarray
        Gear ratios of each drive, one for each of its joints; none for a thruster.
    radii : sequence of casadi.SX
        Radius of each wheel.
    centers, support_centers : sequence of casadi.SX or numpy.ndarray
        Centre of each wheel and of its support, shape (3,).
    support_radii : sequence of casadi.SX or float
        Radius of the support of each wheel; zero if it has none.
    axles : sequence of casadi.SX
        Places of the three axles of each `Steering`, shape (2, 3).
    reaches : sequence of casadi.SX
        Largest distance between these.
    """

    masses: Sequence[Array]
    firsts: Sequence[Array]
    seconds: Sequence[Array]
    offsets: Sequence[Array]
    turns: Sequence[Array]
    starts: Sequence[tuple[float | Array, float | Array]]
    places: Sequence[Array]
    attitudes: Sequence[Array]
    ratios: Sequence[Array]
    radii: Sequence[Array]
    centers: Sequence[Array]
    support_centers: Sequence[Array]
    support_radii: Sequence[float | Array]
    axles: Sequence[Array]
    reaches: Sequence[Array]
