"""The same robot with other numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

from concur.mechanism import Body, Tree, Wheel
from concur.multibody._mechanism import Mechanism


def with_numbers(robot: Mechanism, bodies: Sequence[Body], wheels: Sequence[Wheel]) -> Mechanism:
    """The same robot with other inertias, placements and radii.

    It keeps the constraint rows of the robot, and its wheels may be of heights that differ.

    Parameters
    ----------
    robot : Mechanism
        The robot.
    bodies : sequence of Body
        Its bodies, with other numbers.
    wheels : sequence of Wheel
        Its wheels, with other numbers.

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
    made.__dict__.update(mine, bodies=bodies, wheels=wheels)
    Tree.__post_init__(made)
    return made
