"""Shape velocities with which the outputs have a given velocity: s = (J H)^+ (velocity - J h)."""

from __future__ import annotations

import casadi as ca
import numpy as np

from concur.control._tracking_law import TrackingLaw


class ExactSpeeds:
    """Shape velocities of a law's robot for velocities of its outputs."""

    def __init__(self, servo: TrackingLaw) -> None:
        self._servo, self._still = servo, np.zeros(servo.ns)
        self._cruise = _cruise(servo)

    def asked(self, q: np.ndarray, rate: np.ndarray) -> np.ndarray:
        """Velocity of the outputs (size,) that the shape velocities have to give.

        The output velocity due to the momentum does not depend on the shape velocities.
        """
        servo = self._servo
        return np.asarray(rate - servo.motion(q, servo.model.velocity(q, self._still))[0])

    def solve(self, q: np.ndarray, rate: np.ndarray) -> np.ndarray:
        """Least squares of J H s = rate."""
        return np.asarray(np.linalg.lstsq(self._servo.decoupling(q), rate, rcond=1e-12)[0])

    def __call__(self, q: np.ndarray, rate: np.ndarray) -> np.ndarray:
        """Shape velocities (ns,), internal motion in the steady state of the servo's rule."""
        asked = self.asked(q, rate)
        if self._cruise is None:
            return self.solve(q, asked)
        metric, pull = (np.array(part) for part in self._cruise(q))
        rest_of = asked - self._servo.decoupling(q) @ pull[:, 0]
        return np.asarray(pull[:, 0] + self._nearest(q, rest_of, metric))

    def damped(self, q: np.ndarray, rate: np.ndarray) -> np.ndarray:
        """Least squares without the directions that the law counts as singular."""
        servo = self._servo
        factor = np.linalg.cholesky(servo.model.mass_matrix(q))
        rows = servo.scales[0]
        scaled = np.linalg.solve(factor, (rows[:, None] * servo.decoupling(q)).T).T
        left, values, right = np.linalg.svd(scaled, full_matrices=False)
        good = values >= servo.singular_margin
        parts = (left.T @ (rows * self.asked(q, rate)))[good] / values[good]
        return np.asarray(np.linalg.solve(factor.T, right[good].T @ parts))

    def _nearest(self, q: np.ndarray, rate: np.ndarray, metric: np.ndarray) -> np.ndarray:
        factor = np.linalg.cholesky(metric)
        weighed = np.linalg.solve(factor, self._servo.decoupling(q).T).T
        return np.asarray(np.linalg.solve(factor.T, np.linalg.lstsq(weighed, rate, rcond=1e-12)[0]))


def _cruise(servo: TrackingLaw) -> ca.Function | None:
    """Metric and pull of the servo's rule for internal motion, if there is any."""
    if servo.redundancy is None:
        return None
    q = ca.SX.sym("q", servo.nq)
    parts = servo.redundancy.cruise(servo.model, q)
    return ca.Function("cruise", [q], [ca.densify(part) for part in parts], {"cse": True})
