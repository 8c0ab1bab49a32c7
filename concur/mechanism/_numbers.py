"""Numbers of a robot that take the place of those of its description."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from concur.codegen import Array


@dataclass(frozen=True, eq=False)
class RobotNumbers:
    """Numbers that the recursions use, as expressions.

    Lengths are in m, masses in kg. Attitudes and axes are those of the description.

    Parameters
    ----------
    masses, firsts, seconds : sequence of casadi.SX
        Mass, first moment (3,) and second moment (3, 3) of each link, regrouped.
    offsets : sequence of casadi.SX
        Origin of each link in its parent's link frame, shape (3,).
    places : sequence of casadi.SX
        Translation of the placement of each body, shape (3,).
    radii : sequence of casadi.SX
        Radius of each wheel.
    axles : sequence of casadi.SX
        Places of the three axles of each `Steering`, shape (2, 3).
    reaches : sequence of casadi.SX
        Largest distance between these.
    """

    masses: Sequence[Array]
    firsts: Sequence[Array]
    seconds: Sequence[Array]
    offsets: Sequence[Array]
    places: Sequence[Array]
    radii: Sequence[Array]
    axles: Sequence[Array]
    reaches: Sequence[Array]
