"""Error bounds from a start: never below the error of a motion, and hardly above."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from scipy.linalg import expm

import concur as cc
from concur.certify import Certificate, error_bounds
from concur.control import Servo
from concur.errors import OutputError, ShapeError


@cache
def rover(damping: float = 4.0) -> Servo:
    model = cc.reduce(cc.robots.rover_arm())
    base = cc.Output("base", "chassis", "R2", point=(0.25, 0, 0))
    hand = cc.Output("hand", "forearm", "R3", point=(0, 0.2, 0))
    return Servo(model, [base, hand], stiffness=[4, 9], damping=[damping, 6])


@cache
def certified(damping: float = 4.0) -> Certificate:
    return cc.certify(rover(damping))


@cache
def posed() -> Certificate:
    model = cc.reduce(cc.robots.free_flyer())
    servo = Servo(model, [cc.Output("hand", "tool", "R3xSO3")], stiffness=4, damping=4)
    return cc.certify(servo, angle=1.0)


def largest_met(servo: Servo, z: np.ndarray) -> np.ndarray:
    """By the matrix exponential, on a fine grid of times."""
    step = expm(servo.error_dynamics.matrix * 1e-3)
    largest = np.abs(z)
    for _ in range(8000):
        z = step @ z
        largest = np.maximum(largest, np.abs(z))
    return largest


STARTS = {
    "at rest": ([0.35, 0, 0, 0, 0], [0, 0, 0, 0, 0]),
    "moving": ([0.1, -0.2, 0.05, 0.3, 0.2], [-0.5, 0.1, 0.0, 0.3, -0.2]),
    "swift": ([0, 0, 0, 0, 0], [1, 0, 0, -1, 0]),
}


@pytest.mark.by_default(1)
@pytest.mark.parametrize("damping", [1.0, 4.0, 40.0], ids=["swinging", "critical", "slow"])
@pytest.mark.parametrize("start", STARTS)
def test_linear_channels_are_bounded_by_their_motion(start: str, damping: float) -> None:
    x, ve = np.array(STARTS[start], dtype=float)
    found = np.concatenate(error_bounds(certified(damping), start=(x, ve)))
    met = largest_met(rover(damping), np.concatenate([x, ve]))
    assert (found >= met).all()
    assert (found <= 1.01 * met).all()


def test_steps_that_do_not_suffice_leave_the_forms(monkeypatch: Any) -> None:
    start = (np.array([0.35, 0.1, 0, 0, 0]), np.zeros(5))
    monkeypatch.setattr(import_module("concur.certify._error_bounds"), "_STEPS", 3)
    x, ve = error_bounds(certified(), start=start)
    # The energy of each channel: |x| is at most that of the start, |ve| twice as much.
    np.testing.assert_allclose(x[:2], np.hypot(0.35, 0.1), rtol=1e-9)
    np.testing.assert_allclose(ve[:2], 2 * np.hypot(0.35, 0.1), rtol=1e-9)


def test_rotations_are_bounded_by_the_least_of_the_forms() -> None:
    certificate, rng = posed(), np.random.default_rng(4)
    x, ve = np.zeros(6), np.zeros(6)
    x[3:] = 0.3, -0.2, 0.1
    found = error_bounds(certificate, start=(x, ve))
    whole = error_bounds(certificate, certificate.norm(x, ve))
    assert all((a <= b).all() for a, b in zip(found, whole, strict=True))
    assert found[0][3:].max() <= np.linalg.norm(x) * 1.001
    assert (found[0][:3] == 0.0).all()
    times = np.linspace(0.0, 4.0, 100)
    for _ in range(3):
        x, ve = 0.3 * rng.uniform(-1, 1, (2, 6))
        bound, _ = error_bounds(certificate, start=(x, ve))
        assert (np.abs(certificate.dynamics.solve(x, ve, times)) <= bound).all()


def test_what_is_refused() -> None:
    zero = np.zeros(5)
    with pytest.raises(OutputError, match="one of `norm` and `start`"):
        error_bounds(certified())
    with pytest.raises(OutputError, match="one of `norm` and `start`"):
        error_bounds(certified(), 1.0, start=(zero, zero))
    with pytest.raises(OutputError, match="a pair of x and ve"):
        error_bounds(certified(), start=zero)  # type: ignore[arg-type]
    with pytest.raises(ShapeError):
        error_bounds(certified(), start=(zero, np.zeros(4)))
    with pytest.raises(OutputError, match="contains"):
        error_bounds(posed(), start=(np.full(6, 2.0), np.zeros(6)))


def test_errors_within_a_norm_are_within_its_bounds() -> None:
    certificate = certified()
    x, ve = error_bounds(certificate, 0.3)
    rng = np.random.default_rng(7)
    largest = np.zeros(10)
    for _ in range(500):
        z = np.zeros(10)
        for part in certificate.parts:
            # Directions spread evenly over the form's ellipsoid.
            n = part.channel.size
            own = np.linalg.solve(np.linalg.cholesky(part.P).T, rng.normal(size=2 * n))
            z[part.channel.index], z[5 + part.channel.index] = own[:n], own[n:]
        z *= 0.3 / certificate.norm(z[:5], z[5:])
        largest = np.maximum(largest, np.abs(z))
    assert (largest <= np.concatenate([x, ve])).all()
    assert (largest > 0.3 * np.concatenate([x, ve])).all()
    with pytest.raises(OutputError, match="negative"):
        error_bounds(certificate, -1.0)
    with pytest.raises(OutputError, match="proved"):
        error_bounds("no certificate", 1.0)  # type: ignore[arg-type]
