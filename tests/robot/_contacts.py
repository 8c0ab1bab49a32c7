"""Contacts that do not slip, from Pinocchio's Jacobians, and motions that obey them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.testing import assert_allclose

from concur.reduction import ReducedModel
from tests.oracles import Pinocchio, assert_close


def at_point(oracle: Pinocchio, q: np.ndarray, body: str, point: np.ndarray) -> np.ndarray:
    """Jacobian (3, nv) of the material point of a body that is at a point, in inertial axes."""
    pose, columns = oracle.pose(q, body), oracle.jacobian(q, body)
    arm = point - pose[:3, 3]
    turning = pose[:3, :3] @ columns[3:]
    return np.asarray(pose[:3, :3] @ columns[:3] - np.cross(arm, turning.T).T)


def check_motion(model: ReducedModel, slip: Callable[[np.ndarray], np.ndarray], seed: int) -> None:
    """Compare velocities with contacts, and accelerations with multipliers of these contacts."""
    robot, oracle, rng = model.robot, Pinocchio(model.robot), np.random.default_rng(seed)
    for _ in range(4):
        q, s, u = robot.random(rng), rng.uniform(-1, 1, model.ns), rng.uniform(-1, 1, model.nu)
        v = model.velocity(q, s)
        assert_allclose(slip(q) @ v, 0.0, rtol=0, atol=1e-13)
        step = 1e-5
        ahead, behind = (slip(robot.integrate(q, h * v)) for h in (step, -step))
        drift = (ahead - behind) @ v / (2 * step)
        columns = slip(q)
        mass, force = oracle.mass_matrix(q), robot.actuation(q) @ u - oracle.bias(q, v)
        # The contacts contain rows that follow from others: least squares for their forces.
        freely = np.linalg.solve(mass, force)
        yielding = columns @ np.linalg.solve(mass, columns.T)
        held = np.linalg.lstsq(yielding, -drift - columns @ freely, rcond=1e-9)[0]
        expected = freely + np.linalg.solve(mass, columns.T @ held)
        found = model.acceleration(q, s, u)
        assert_close(found, expected[list(model.shape)], 1e-7)
        horizontal, _ = model.lift(q)
        moving = horizontal @ found + model.drift_acceleration(q, s)
        assert_close(moving, expected, 1e-7)
