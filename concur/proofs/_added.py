"""Quantities that a statement adds to those of every wheeled robot; none costs unless declared."""

from __future__ import annotations

import numpy as np

from concur.proofs._carried import Carried
from concur.proofs._models import Floats, Model
from concur.proofs._statement import Statement
from concur.proofs._wheeled import Robot


class Added:
    """Graphs of the added quantities of a statement.

    Parameters
    ----------
    robot : Robot
        Graphs of the robot.
    statement : Statement
        The statement.
    """

    def __init__(self, robot: Robot, statement: Statement) -> None:
        self.carried = Carried(robot, statement) if statement.ground else None

    def of_arm(self, phi: list[Model], inverse: np.ndarray, mass: np.ndarray) -> dict[str, Floats]:
        """What depends on the arm's angles only, by name; last axis cells."""
        if self.carried is None:
            return {}
        return self.carried.pushed(phi, inverse, mass)

    def rows(
        self, phi: list[Model], s: list[Model], true: list[Model], own: dict[str, Floats]
    ) -> Floats:
        """Bounds of all quantities times their signs, (k, b), with what `of_arm` returned."""
        parts = [np.zeros((0, phi[0].c.size))]
        if self.carried is not None:
            parts.append(self.carried.rows(phi, s, true, own))
        return np.vstack(parts)
