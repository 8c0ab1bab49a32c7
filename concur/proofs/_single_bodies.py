"""A robot in parts: forces and momenta are linear in the inertia of each body."""

from __future__ import annotations

from concur.robot import Mechanism

PARTS = ("mass", "com", "moments")


def single_bodies(robot: Mechanism) -> list[Mechanism]:
    """The robot with the mass of one body only, for each of its bodies."""
    names = [body.name for body in robot.bodies]
    empty = {
        name: {
            f"{name}.inertia.{part}": 0.0 * robot.numbers[f"{name}.inertia.{part}"]
            for part in PARTS
        }
        for name in names
    }
    return [
        robot.with_numbers(
            {k: x for other in names if other != name for k, x in empty[other].items()}
        )
        for name in names
    ]
