"""Tubes of errors: contain sampled motions, and are hardly larger than the worst of them."""

from __future__ import annotations

import numpy as np
from scipy.linalg import expm

from concur._polynomials import Space
from concur.proofs._errors import Channel

CASES = {
    (4.0, 4.0): (0.25, 0.368),
    (9.0, 6.0): (0.111, 0.245),
    (4.0, 2.8): (0.274, None),
    (2.0, 5.0): (0.5, None),
}
"""Gains, and the largest |x| and |ve| for |d| <= 1 (`task-proof`, section 4)."""


def test_flows_are_matrix_exponentials() -> None:
    times = np.array([0.0, 0.3, 2.0, 11.0])
    for gains in [*CASES, (4.0, 4.0 + 1e-9), (1e4, 200.0)]:
        channel = Channel(*gains, slice(0, 2))
        flow = channel.flow(times)
        for k, t in enumerate(times):
            assert np.abs(flow[..., k] - expm(channel.matrix * t)).max() < 1e-9


def test_persistent_disturbances_have_the_exact_gains() -> None:
    step, n = 0.005, 4000
    for gains, (place, speed) in CASES.items():
        x, ve = Channel(*gains, slice(0, 2)).tube(0.0, 0.0, np.full(n, 1.0), step)
        assert place * 0.996 <= x[-1] <= place * 1.02, gains
        if speed is not None:
            assert speed * 0.996 <= ve[-1] <= speed * 1.02, gains


def test_worst_motions_stay_inside_and_reach_the_tube() -> None:
    channel, step, n = Channel(4.0, 2.8, slice(0, 2)), 0.01, 400
    rng = np.random.default_rng(1)
    bound = 0.2 + 0.1 * np.sin(np.arange(n) / 40)
    x, ve = channel.tube(0.02, 0.03, bound, step)
    fine = 10
    move = expm(channel.matrix * step / fine)
    held = np.linalg.solve(channel.matrix, (move - np.eye(2))) @ np.array([0.0, 1.0])
    kernel = channel.flow(step * (np.arange(n) + 0.5))
    largest = np.zeros((2, n))
    for case in range(12):
        end = n if case < 4 else rng.integers(20, n)
        sign = np.sign(kernel[case % 2, 1][:end][::-1]) if case < 9 else rng.choice([-1, 1], end)
        direction = channel.flow(np.array([step * end]))[case % 2, :, 0]
        z = np.sign(direction) * [0.02, 0.03]
        for k in range(end):
            for _ in range(fine):
                z = move @ z + held * sign[k] * bound[k]
                assert (np.abs(z) <= [x[k], ve[k]]).all(), (case, k)
                largest[:, k] = np.maximum(largest[:, k], np.abs(z))
    assert x[-1] < 1.05 * largest[0, -1]
    assert ve[-1] < 1.05 * largest[1, -1]


def test_models_of_the_centre_contain_the_motion() -> None:
    channel, space = Channel(9.0, 6.0, slice(0, 3)), Space((2, 1))
    start = np.array([[0.2, -0.1, 0.05], [0.3, 0.0, -0.2]])
    middle, half = np.array([0.05, 1.0, 8.0]), np.array([0.05, 0.03, 0.2])
    parts = channel.centre(space, 2, start, middle, half)
    for tau in np.linspace(-1, 1, 41):
        exact = np.einsum("ijb,jd->idb", channel.flow(middle + half * tau), start)
        d = np.array([[0.0], [0.0], [tau]])
        for i in (0, 1):
            for k, model in enumerate(parts[i]):
                error = np.abs(model.at(d) - exact[i, k])
                assert (error <= model.r).all()
    assert parts[0][0].r[1] < 30 * half[1] ** 3


def test_bounds_of_a_step_hold_at_all_of_its_times() -> None:
    """Coarse steps: peaks between their ends, and a push of one step that acts in the next."""
    step, count = 0.2, 12
    for kp, kd in ((4.0, 4.0), (4.0, 1.0), (3.0, 6.0)):
        channel = Channel(kp, kd, slice(0, 2))
        fine = np.linspace(0.0, step, 41)
        largest = channel.largest(step, count)
        for k in range(count):
            own = np.abs(channel.flow(k * step + fine)).max(axis=2)
            assert (own <= largest[..., k]).all()
        pulse = np.zeros(count)
        pulse[2] = 1.0
        bounds = channel.tube(0.0, 0.0, pulse, step)
        for k in range(count):
            for t in k * step + fine:
                lags = t - np.clip(np.linspace(2 * step, 3 * step, 201), None, t)
                gone = np.abs(np.trapezoid(channel.flow(lags)[:, 1], -lags, axis=1))
                assert gone[0] <= bounds[0][k] + 1e-12
                assert gone[1] <= bounds[1][k] + 1e-12
