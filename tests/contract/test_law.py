"""The law on the plant: outputs accelerate as commanded, by the KKT system and Pinocchio's poses.

The demanded error dynamics are written out anew, with matrices of SE(3), in `_outputs`.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import lsq_linear

import concur as cc
from concur.control._core import approach
from tests.contract._outputs import accelerations, draw, motions
from tests.contract._robots import LAWS, Case, case
from tests.oracles import assert_close, difference_quotient

REGULAR = 0.05
"""Margin above which a drawn state counts as regular."""


def states(one: Case, rng: np.random.Generator, count: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Draw states in which the outputs can be commanded."""
    found: list[tuple[np.ndarray, np.ndarray]] = []
    for _ in range(40 * count):
        q, s = one.state(rng)
        if len(found) < count and one.servo.margin(q) > REGULAR:
            found.append((q, 0.5 * s))
    assert len(found) == count
    return found


@pytest.mark.parametrize("name", LAWS)
def test_outputs_accelerate_as_the_error_dynamics_demand(name: str) -> None:
    """Thesis: (5.3.29), (5.4.30)."""
    one, rng = case(name), np.random.default_rng(5)
    for q, s in states(one, rng, 2):
        v = one.model.velocity(q, s)
        sample, _ = draw(one, motions(one, q, v, np.zeros_like(v)), np.random.default_rng(6), 0.3)
        u = one.servo.torque(q, s, sample)
        now = motions(one, q, v, one.twin.acceleration(q, v, u))
        again, lack = draw(one, now, np.random.default_rng(6), 0.3)
        np.testing.assert_array_equal(again.flat_pose, sample.flat_pose)
        assert_close(lack, np.zeros(one.size), 1e-9, np.abs(accelerations(now)).max() + 1.0)


@pytest.mark.by_default(9)
@pytest.mark.parametrize("name", LAWS)
def test_limited_torques_make_the_nearest_motion_slowed_down(name: str) -> None:
    one, rng = case(name), np.random.default_rng(7)
    model, twin = one.model, one.twin
    drawn = []
    for size, (q, s) in zip((0.02, 0.3, 1.0, 3.0), states(one, rng, 4), strict=True):
        s = s * min(size, 1.0)
        v = model.velocity(q, s)
        drawn.append((q, s, v, *draw(one, motions(one, q, v, np.zeros_like(v)), rng, size)))
    peaks = sorted(np.abs(one.servo.torque(q, s, sample)).max() for q, s, _, sample, _ in drawn)
    limit = float(0.6 * peaks[2] + 0.4 * peaks[1])  # limits two of the four states, or more
    law = cc.Servo(model, list(one.outputs), *one.gains, torque_limits=limit)
    tick, scales = law.compile(), []
    for q, s, v, sample, lack in drawn:
        tick.reset()

        def made(u: np.ndarray, q: np.ndarray = q, v: np.ndarray = v) -> np.ndarray:
            return accelerations(motions(one, q, v, twin.acceleration(q, v, u)))

        still = difference_quotient(
            lambda h, q=q, s=s, v=v: model.velocity(one.robot.integrate(q, h * v), s), 1e-3
        )
        coasting = accelerations(motions(one, q, v, still))
        zero = accelerations(motions(one, q, v, np.zeros_like(v)))
        demand = zero - lack - coasting  # from the motion without change of the shape velocities
        bias = made(np.zeros(model.nu))
        effect = np.array([made(e) - bias for e in np.eye(model.nu)]).T
        u = tick(q, s, sample)
        assert np.abs(u).max() <= limit
        lost = coasting + demand - made(u)
        large = 1.0 + np.abs(demand).max() + np.abs(coasting).max()
        assert_close(tick.buffers.acceleration_residual, lost, 1e-6, large, "residual")
        # Of all torques within limits those nearest to the servo's motion, slowed down.
        wanted, rows = one.servo.torque(q, s, sample), np.asarray(one.servo.decoupling(q))
        mass, pushes = np.asarray(model.mass_matrix(q)), np.asarray(model.input_matrix(q))
        rows = 0.1 * one.servo.margins.scales[0][:, None] * rows
        root = np.linalg.cholesky(mass + rows.T @ rows).T
        away = root @ (-approach(law) * s - np.asarray(model.acceleration(q, s, wanted)))
        length, moves = np.linalg.norm(away), root @ np.linalg.solve(mass, pushes)
        square = np.column_stack([moves, -away / length])
        square = np.vstack([square, np.append(np.zeros(model.nu), 0.03**0.5)])  # waiting is cheap
        aim, ends = np.append(moves @ wanted, 0.0), np.append(np.full(model.nu, limit), length)
        low = np.append(-ends[:-1], 0.0)
        best = lsq_linear(square, aim, (low, ends), tol=1e-14, lsq_solver="exact")
        assert_close(made(u), effect @ best.x[:-1] + bias, 1e-4, large, "nearest")
        scales.append(float(tick.buffers.scale[0]))
    assert min(scales) < 1.0
    assert max(scales) > 0.0
