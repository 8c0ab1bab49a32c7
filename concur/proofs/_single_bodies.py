"""A robot in parts: forces and momenta are linear in the inertia of each body."""

from __future__ import annotations

from dataclasses import replace

from concur.robot import Inertia, Mechanism, with_numbers


def single_bodies(robot: Mechanism) -> list[Mechanism]:
    """The robot with the mass of one body only, for each of its bodies."""
    empty = Inertia(mass=0.0, com=(0.0, 0.0, 0.0), moments=(0.0, 0.0, 0.0))
    found = []
    for k in range(len(robot.bodies)):
        bodies = [b if i == k else replace(b, inertia=empty) for i, b in enumerate(robot.bodies)]
        found.append(with_numbers(robot, bodies, robot.wheels, robot.drives))
    return found
