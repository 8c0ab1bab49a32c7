"""Everything a run is judged by, computed from its states afterwards."""

from __future__ import annotations

import casadi as ca
import numpy as np

from concur.control import Servo, decoupling_margins, law_function
from concur.simulation._plant import Plant


class Recorder:
    """Functions of the state that are evaluated over many samples at once.

    Parameters
    ----------
    servo : Servo
        The law.
    plant : Plant
        What it drives.
    """

    def __init__(self, servo: Servo, plant: Plant) -> None:
        self._servo, self._plant = servo, plant
        robot = plant.robot
        q, v = ca.SX.sym("q", servo.nq), ca.SX.sym("v", plant.nv)
        pose = ca.SX.sym("pose", servo.pose_size)
        twist, acceleration = ca.SX.sym("twist", servo.size), ca.SX.sym("acc", servo.size)
        s = servo.taken(v)
        x, ve = servo.errors(q, s, pose, twist)
        residual = robot.constraints(q) @ v
        moving = ca.SX(v)
        moving[: robot.base.joint.nv] = 0.0
        results = {
            "error": x,
            "velocity_error": ve,
            "lyapunov": servo.error_dynamics.lyapunov(x, ve),
            "constraint_residual": ca.norm_inf(residual) if plant.nf else ca.SX(0),
            "energy": robot.kinetic_energy(q, v) + robot.potential_energy(q),
            "momentum": robot.momentum(q, v),
            "inner_momentum": robot.momentum(q, moving),
            "pose": servo.output(q),
        }
        self._names = tuple(results)
        self._law = law_function(servo)
        self._function = ca.Function(
            "record",
            [q, v, pose, twist, acceleration],
            [ca.densify(ca.SX(r)) for r in results.values()],
            {"cse": True},
        )
        self._metric = ca.Function(
            "metric",
            [q],
            [
                ca.densify(servo.decoupling(q)),
                ca.densify(servo.model.mass_matrix(q)),
                ca.densify(servo.model.regularity(q)),
            ],
            {"cse": True},
        )

    def __call__(
        self, q: np.ndarray, v: np.ndarray, reference: tuple[np.ndarray, ...]
    ) -> dict[str, np.ndarray]:
        """Evaluate at samples.

        Parameters
        ----------
        q, v : numpy.ndarray
            States, shapes (k, nq) and (k, nv).
        reference : tuple of numpy.ndarray
            Flat poses, twists and accelerations, each (k, n).

        Returns
        -------
        dict of str to numpy.ndarray
            Arrays with one row per sample.
        """
        values = self._function(q.T, v.T, *(part.T for part in reference))
        rows = {n: np.array(x).T for n, x in zip(self._names, values, strict=True)}
        taken = self._servo.taken(v)
        u, _, missed, scale = self._law(q.T, taken.T, *(part.T for part in reference))
        rows |= {"u": np.array(u).T, "missed": np.array(missed).T, "scale": np.array(scale).T}
        for name in ("lyapunov", "constraint_residual", "energy", "scale"):
            rows[name] = rows[name][:, 0]
        return rows

    def margins(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Margin of the decoupling matrix at samples, as `Servo.margin`, and its orientation.

        Parameters
        ----------
        q : numpy.ndarray
            Configurations, shape (k, nq).

        Returns
        -------
        margins, orientations : numpy.ndarray
            Shape (k,); the orientation is the sign of the determinant: where it changes, a
            singular configuration was passed between two samples. Both are zero where the wheels
            leave no decoupling matrix.
        """
        size, ns, k = self._servo.size, self._servo.ns, q.shape[0]
        decoupling, mass, regularity = self._metric(q.T)
        rows = np.array(decoupling).reshape(size, k, ns).transpose(1, 0, 2)
        metric = np.array(mass).reshape(ns, k, ns).transpose(1, 0, 2)
        margins = decoupling_margins(self._servo, rows, metric, np.array(regularity)[0])
        if size != ns:
            return margins, np.ones(k)
        finite = np.isfinite(rows).all(axis=(1, 2))
        orientations = np.zeros(k)
        orientations[finite] = np.sign(np.linalg.det(self._servo.scales[0][:, None] * rows[finite]))
        return margins, orientations
