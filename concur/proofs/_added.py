"""Quantities that a statement adds to those of every wheeled robot; none costs unless declared."""

from __future__ import annotations

import numpy as np

from concur.proofs._apart import Apart
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

    Attributes
    ----------
    points : numpy.ndarray
        Points in the world whose places in axes of the base are needed, (k, 3), m.
    """

    def __init__(self, robot: Robot, statement: Statement) -> None:
        clearance = statement.clearance
        self.carried = Carried(robot, statement) if statement.ground else None
        self.apart = Apart(robot, clearance) if clearance else None
        self.points = clearance.world if clearance else np.zeros((0, 3))

    def of_arm(self, phi: list[Model], inverse: np.ndarray, mass: np.ndarray) -> dict[str, Floats]:
        """What depends on the arm's angles only, by name; last axis cells."""
        found = {} if self.carried is None else self.carried.pushed(phi, inverse, mass)
        return found | ({} if self.apart is None else self.apart.of_arm(phi))

    def rows(
        self,
        phi: list[Model],
        s: list[Model],
        true: list[Model],
        places: list[list[Model]],
        own: dict[str, Floats],
    ) -> Floats:
        """Bounds of all quantities times their signs, (k, b), with what `of_arm` returned.

        `places` are the points in the world, in axes of the base from its output.
        """
        parts = [np.zeros((0, phi[0].c.size))]
        if self.carried is not None:
            parts.append(self.carried.rows(phi, s, true, own))
        if self.apart is not None:
            parts.append(self.apart.rows(phi, own, places))
        return np.vstack(parts)
