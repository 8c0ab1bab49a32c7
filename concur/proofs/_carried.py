"""Forces of the ground on a wheeled robot over cells: loads, moments about edges, and friction.

They follow from the true acceleration. The wrench of the whole robot is linear in the inertia of
each body, so wrong masses count by bodies. A push, which is an acceleration d of the outputs, is
taken as forces at the points of the outputs with this effect, f = (J H)^-T Mhat (J H)^-1 d; the
ground carries their wrench too.

**What holds.** Each returned bound is one for every point of the cell, all inertias within `masses`
and all pushes of the statement.
"""

from __future__ import annotations

import casadi as ca
import numpy as np

from concur._polynomials import Floats, Model, norm_bound
from concur.proofs._statement import Statement
from concur.proofs._wheeled import OUTPUTS, Robot


class Carried:
    """Graphs of what the ground carries.

    Parameters
    ----------
    robot : Robot
        Graphs of the robot.
    statement : Statement
        Statement with a ground.

    Attributes
    ----------
    forces : casadi.SX
        Forces by body, of the angles, shape velocities and their true rates; a column for each.
    """

    def __init__(self, robot: Robot, statement: Statement) -> None:
        ground = statement.ground
        assert ground is not None
        self.masses, self.push, self.axle = statement.masses, statement.push, ground.axle
        rows, graph = ca.DM(ground.rows), robot.graph
        self.forces = rows @ robot.wrenches()
        self._levers = robot.walker([graph.phi], [rows @ _levers(robot)])
        count = rows.shape[0] - (3 if ground.axle else 0)
        # A load or moment, or the force along a wheel and across it.
        pairs = [[count + k, count + 2] for k in range(ground.axle)]
        self._of = [*([k] for k in range(count)), *pairs]

    def pushed(self, phi: list[Model], inverse: np.ndarray, mass: np.ndarray) -> dict[str, Floats]:
        """Largest effect of all pushes on each force, (k, b), for (J H)^-1 and Mhat (5, 5)."""
        if not any(self.push):
            return {}
        effect = self._levers(phi)[0] @ (inverse.T @ mass @ inverse)
        found = [
            sum(
                push * norm_bound(effect[own, rows].ravel())
                for push, rows in zip(self.push, OUTPUTS, strict=True)
            )
            for own in self._of
        ]
        return {"pushed": np.array(found)}

    def rows(self, each: np.ndarray, own: dict[str, Floats]) -> Floats:
        """Bounds of the ground's quantities times their signs, (k, b), by forces of each body."""
        found = []
        for k, some in enumerate(self._of):
            total = each[some].sum(axis=1)
            reach = norm_bound(total) if len(some) > 1 else total[0].reach - total[0].c
            if self.masses:
                reach = reach + self.masses * sum(map(norm_bound, each[some].T))
            if "pushed" in own:
                reach = reach + own["pushed"][k]
            found.append(reach + 1e-12 * np.abs(reach))
        for k in range(self.axle):
            # Without a bound where the wheel may lift off.
            load, at = -found[k], len(found) - self.axle + k
            with np.errstate(all="ignore"):
                found[at] = np.where(load > 0.0, found[at] / load * (1 + 1e-12), np.inf)
        return np.array(found)


def _levers(robot: Robot) -> ca.SX:
    """From forces at the points of base (2) and hand (3) to their wrench on the base, (6, 5)."""
    graph, point = robot.graph, robot.servo.outputs[0].point
    base = ca.DM(np.asarray(point, dtype=float))
    hand = robot.place(graph.phi) + ca.vertcat(base[:2], 0)
    return ca.horzcat(
        ca.vertcat(ca.SX.eye(3), ca.skew(base))[:, :2], ca.vertcat(ca.SX.eye(3), ca.skew(hand))
    )
