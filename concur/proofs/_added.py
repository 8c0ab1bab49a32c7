"""Quantities that a statement adds to those of every wheeled robot; none costs unless declared."""

from __future__ import annotations

import casadi as ca
import numpy as np

from concur._polynomials import Floats, Model, Walker, norm_bound
from concur.proofs._apart import Apart
from concur.proofs._carried import Carried
from concur.proofs._readings import Readings
from concur.proofs._statement import Statement
from concur.proofs._wheeled import OUTPUTS, Robot


class Added:
    """Graphs of the added quantities of a statement.

    Parameters
    ----------
    robot : Robot
        Graphs of the robot.
    statement : Statement
        The statement.
    jumps : bool
        Whether the acceleration of the reference jumps somewhere.

    Attributes
    ----------
    motion : Walker
        Of angles, shape velocities, their commanded and true rates: the parts of `Graph`, and then
        the forces that the ground carries.
    readings : Readings or None
        What errors of the measured state do.
    points : numpy.ndarray
        Points in the world whose places in axes of the base are needed, (k, 3), m.
    """

    def __init__(self, robot: Robot, statement: Statement, jumps: bool = False) -> None:
        self.jumps = jumps
        reading = statement.reading
        self.readings = Readings(robot, reading) if reading else None
        self._needs_inertia = jumps or self.readings is not None
        clearance = statement.clearance
        self.carried = Carried(robot, statement) if statement.ground else None
        self.apart = Apart(robot, clearance) if clearance else None
        self.points = clearance.world if clearance else np.zeros((0, 3))
        graph = robot.graph
        parts = [*graph.parts, *([self.carried.forces] if self.carried else [])]
        self.motion = robot.walker([graph.phi, graph.s, graph.a, graph.true], parts)
        self.expressions: Walker | None = None
        if statement.expressions:
            phi, s, u = graph.phi, graph.s, ca.SX.sym("u", robot.servo.nu)
            model = robot.servo.model
            joints = [model.shape_names[k] for k in robot.arm_speeds]
            names = (joints, model.shape_names, model.control_names)
            given = [
                dict(zip(own, ca.vertsplit(part), strict=True))
                for own, part in zip(names, (phi, s, u), strict=True)
            ]
            values = [made.at(*given) for made in statement.expressions]
            self.expressions = robot.walker([phi, s, u], [ca.vertcat(*values)])

    def of_arm(self, phi: list[Model], inverse: np.ndarray, mass: np.ndarray) -> dict[str, Floats]:
        """What depends on the arm's angles only, by name; last axis cells."""
        found = {} if self.carried is None else self.carried.pushed(phi, inverse, mass)
        if self._needs_inertia:
            torques = mass @ inverse
            parts = [[norm_bound(row[o]) for o in OUTPUTS] for row in torques]
            found["inertia"] = np.array(parts)
        return found | ({} if self.apart is None else self.apart.of_arm(phi))

    def rows(
        self,
        phi: list[Model],
        s: list[Model],
        u: list[Model],
        forces: list[np.ndarray],
        places: list[list[Model]],
        own: dict[str, Floats],
    ) -> Floats:
        """Bounds of all quantities times their signs, (k, b), with what `of_arm` returned.

        `forces` are those that the ground carries, if there are any, and `places` the points in the
        world, in axes of the base from its output.
        """
        parts = [np.zeros((0, phi[0].c.size))]
        if self.apart is not None:
            parts.append(self.apart.rows(phi, own, places))
        if self.expressions is not None:
            values = self.expressions(phi, s, u)[0].ravel()
            # A formula may be constant.
            parts.append(np.array([m.c + m.reach + np.zeros(phi[0].c.size) for m in values]))
        if self.carried is not None:
            parts.append(self.carried.rows(forces[0], own))
        return np.vstack(parts)
