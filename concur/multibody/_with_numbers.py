"""The same robot with other numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

from concur.mechanism import Body, Drive, Tree, Wheel
from concur.multibody._mechanism import Mechanism


def with_numbers(
    robot: Mechanism, bodies: Sequence[Body], wheels: Sequence[Wheel], drives: Sequence[Drive]
) -> Mechanism:
    """The same robot with other inertias, placements, radii and gear ratios.

    It keeps the constraint rows of the robot, and its wheels may be of heights that differ.

    Parameters
    ----------
    robot : Mechanism
        The robot.
    bodies : sequence of Body
        Its bodies, with other numbers.
    wheels : sequence of Wheel
        Its wheels, with other numbers.
    drives : sequence of Drive
        Its drives, with other ratios.

    Returns
    -------
    Mechanism
        The robot with these numbers.

    Raises
    ------
    DescriptionError
        If an axle of `steering` no longer meets its steering axis.
    """
    made = object.__new__(Mechanism)
    mine = {entry.name: getattr(robot, entry.name) for entry in fields(robot)}
    made.__dict__.update(mine, bodies=bodies, wheels=wheels, drives=drives)
    Tree.__post_init__(made)
    return made
