"""Gains against step responses of SciPy, python-control and formulas written by hand."""

from __future__ import annotations

from itertools import pairwise

import control
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import signal

from concur.control import Gains, Servo, design_gains
from concur.control._design import time_to_settle
from concur.control._loop import _least_delay
from concur.errors import NonFiniteError, OutputError, ShapeError, UnknownNameError
from concur.outputs import Output
from tests.control._cases import case_study, refused

BASE = Output("base", "chassis", "R2", point=(0.25, 0.0, 0.0))
HAND = Output("hand", "fore", "R3", point=(0.0, 0.2, 0.0))
OUTPUTS = [BASE, HAND]
DIMS = (2, 3)


def measured_settling(kp: float, kd: float) -> float:
    """Last time at which SciPy's step response is more than 2 % from its end."""
    poles = np.roots([1.0, kd, kp])
    times = np.linspace(0.0, 8.0 / np.abs(poles.real).min(), 40001)
    _, response = signal.step(([kp], [1.0, kd, kp]), T=times)
    last = np.nonzero(np.abs(response - 1.0) > 0.02)[0][-1]
    before, after = np.abs(response[last : last + 2] - 1.0) - 0.02
    return float(times[last] + before / (before - after) * times[1])


def per_output(gains: Gains) -> tuple[np.ndarray, np.ndarray]:
    """Stiffness and damping of each output over the metric, which must be equal inside it."""
    channels = []
    for matrix in (gains.stiffness, gains.damping):
        ratio = np.linalg.solve(gains.inertia, matrix)
        assert np.count_nonzero(ratio - np.diag(ratio.diagonal())) == 0
        starts = np.cumsum([0, *DIMS])
        parts = [ratio.diagonal()[a:b] for a, b in pairwise(starts)]
        for part in parts:
            assert_allclose(part, part[0], rtol=1e-14)
        channels.append(np.array([part[0] for part in parts]))
    return channels[0], channels[1]


@pytest.mark.by_default(5)
@pytest.mark.parametrize(
    "zeta", [0.05, 0.2, 0.45, 0.6, 0.7, 0.779, 0.7797, 0.78, 0.8, 0.95, 1.0, 1.05, 1.5, 4.0, 20.0]
)
def test_settling_time_is_that_of_the_step_response(zeta: float) -> None:
    frequency = 3.0
    expected = measured_settling(frequency**2, 2 * zeta * frequency)
    assert time_to_settle(frequency, zeta) == pytest.approx(expected, rel=3e-6)


def test_settling_time_has_no_seam_where_two_poles_meet() -> None:
    near = [time_to_settle(1.0, 1.0 + step) for step in (-1e-9, -1e-13, 0.0, 1e-13, 1e-9)]
    assert_allclose(near, near[2], rtol=1e-8)


def test_settling_time_of_one_slow_pole() -> None:
    zeta = 1e4
    slow = zeta + np.sqrt(zeta**2 - 1)
    expected = slow * (np.log(50.0) + np.log(slow**2 / (slow**2 - 1)))
    assert time_to_settle(1.0, zeta) == pytest.approx(expected, rel=1e-12)


@pytest.mark.by_default(3)
@pytest.mark.parametrize(
    ("times", "ratios"),
    [(2.0, 0.7), ([3.0, 2.0], 0.8), (1.5, [0.5, 1.0]), ([0.2, 40.0], [0.3, 1.7]), (2.0, None)],
)
def test_settling_time_and_damping_asked_for_are_reached(times: object, ratios: object) -> None:
    gains = design_gains(OUTPUTS, times, ratios)
    kp, kd = per_output(gains)
    expected = np.broadcast_to(times, 2)
    assert_allclose([measured_settling(*pair) for pair in zip(kp, kd, strict=True)], expected, 3e-6)
    assert_allclose(gains.settling_time, expected, rtol=1e-12)
    wanted = np.broadcast_to(0.8 if ratios is None else ratios, 2)
    assert_allclose(kd / (2 * np.sqrt(kp)), wanted, rtol=1e-12)
    assert_allclose(gains.damping_ratio, wanted, rtol=1e-12)
    assert_allclose(gains.natural_frequency, np.sqrt(kp), rtol=1e-12)


def test_regulator_has_the_closed_form_for_weights_of_any_size() -> None:
    rng = np.random.default_rng(3)
    for _ in range(40):
        error, rate, effort = 10.0 ** rng.uniform(-5, 5, (3, 2))
        gains = design_gains(
            OUTPUTS, method="lqr", error_weight=error / effort, rate_weight=rate / effort
        )
        kp, kd = per_output(gains)
        assert_allclose(kp, np.sqrt(error / effort), rtol=1e-12)
        assert_allclose(kd, np.sqrt(rate / effort + 2 * np.sqrt(error / effort)), rtol=1e-12)


def test_poles_are_placed() -> None:
    poles = (-1.4 + 1.43j, -1.4 - 1.43j)
    gains = design_gains(OUTPUTS, poles=poles)
    kp, kd = per_output(gains)
    assert_allclose(kp, 4.0049, rtol=1e-12)
    assert_allclose(kd, 2.8, rtol=1e-12)
    drift, command = np.array([[0.0, -1.0], [0.0, 0.0]]), np.array([[0.0], [1.0]])
    assert_allclose([[-kp[0], kd[0]]], control.place(drift, command, poles), rtol=1e-12)
    for pair in gains.poles:
        assert_allclose(np.sort_complex(pair), np.sort_complex(poles), rtol=1e-12)


def test_length_sets_the_metric_and_not_the_channels() -> None:
    outputs = [BASE, Output("pose", "fore", "SE3")]
    plain = design_gains(outputs, 2.0)
    scaled = design_gains(outputs, 2.0, length=[1.0, 0.3])
    assert_allclose(plain.inertia, np.eye(8))
    metric = np.diag([1, 1, 1, 1, 1, 0.09, 0.09, 0.09])
    assert_allclose(scaled.inertia, metric)
    assert_allclose(scaled.stiffness, metric @ plain.stiffness)
    assert_allclose(scaled.damping, metric @ plain.damping)


def test_gains_unpack_into_a_servo_that_settles_in_time() -> None:
    gains = design_gains(OUTPUTS, [3.0, 2.0], [0.9, 0.6])
    servo = Servo(case_study().model, OUTPUTS, *gains)
    for name in ("stiffness", "damping", "inertia"):
        assert_allclose(getattr(servo, name), getattr(gains, name), rtol=0, atol=0)
    start = np.array([0.3, -0.2, 0.1, 0.4, -0.5])
    times = np.array([0.0, 2.0, 3.0])
    errors = np.abs(servo.error_dynamics.solve(start, np.zeros(5), times) / start)
    assert_allclose(errors[1, 2:], 0.02, rtol=1e-9)
    assert_allclose(errors[2, :2], 0.02, rtol=1e-9)


def test_one_output_needs_no_list() -> None:
    assert design_gains(HAND, 2.0).stiffness.shape == (3, 3)


def test_gains_are_frozen() -> None:
    gains = design_gains(OUTPUTS, 2.0)
    with pytest.raises(ValueError, match="read-only"):
        gains.stiffness[0, 0] = 1.0
    with pytest.raises(AttributeError):
        gains.method = "lqr"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("arguments", "where"),
    [
        ({"settling_time": 0.0}, "`settling_time`, output `base`"),
        ({"settling_time": [2.0, -1.0]}, "`settling_time`, output `hand`"),
        ({"settling_time": 2.0, "damping_ratio": 0.0}, "`damping_ratio`, output `base`"),
        ({"settling_time": 2.0, "damping_ratio": [0.7, -0.7]}, "`damping_ratio`, output `hand`"),
        ({"settling_time": 2.0, "length": 0.0}, "`length`"),
        ({}, "gains"),
        ({"settling_time": 2.0, "poles": (-1.0, -2.0)}, "gains"),
        ({"poles": (-1.0, -2.0), "damping_ratio": 0.7}, "`damping_ratio`"),
        ({"poles": (1.0, -2.0)}, "`poles`, output `base`"),
        ({"poles": (0.0, -2.0)}, "`poles`, output `base`"),
        ({"poles": [(-1.0, -2.0), (1j, -1j)]}, "`poles`, output `hand`"),
        ({"poles": (-1.0 + 1j, -1.0 + 1j)}, "`poles`"),
        ({"poles": (-1.0 + 1j, -2.0 - 1j)}, "`poles`"),
        ({"error_weight": 0.0}, "`error_weight`, output `base`"),
        ({"error_weight": 1.0, "rate_weight": -1.0}, "`rate_weight`"),
        ({"method": "lqr"}, "gains"),
        ({"method": "lqr", "settling_time": 2.0, "error_weight": 16.0}, "gains"),
        ({"method": "lqr", "settling_time": 2.0, "rate_weight": 1.0}, "`rate_weight`"),
        ({"method": "lqr", "settling_time": 2.0, "damping_ratio": 0.7}, "`damping_ratio`"),
        ({"method": "lqr", "error_weight": 16.0, "poles": (-1.0, -2.0)}, "`poles`"),
        ({"settling_time": 2.0, "error_weight": 16.0, "length": 1.0}, "`error_weight`"),
        ({"settling_time": 2.0, "rate_weight": 16.0}, "`rate_weight`"),
    ],
)
def test_numbers_out_of_range_are_refused(arguments: dict, where: str) -> None:
    refused(OutputError, lambda: found(arguments), where=where)


def found(arguments: dict) -> Gains:
    """Gains by the method that takes these arguments."""
    lqr = {"method": "lqr"} if "error_weight" in arguments and len(arguments) < 3 else {}
    return design_gains(OUTPUTS, **(lqr | arguments))


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"settling_time": [2.0, 2.0, 2.0]}, "base, hand"),
        ({"settling_time": 2.0, "damping_ratio": [0.7]}, "base, hand"),
        ({"settling_time": [[2.0, 2.0]]}, "base, hand"),
        ({"poles": (-1.0, -2.0, -3.0)}, "base, hand"),
        ({"poles": [(-1.0, -2.0)] * 3}, "base, hand"),
        ({"poles": "fast"}, "complex"),
        ({"poles": [(-1.0, -2.0), (-1.0,)]}, "complex"),
        ({"settling_time": "soon"}, "numbers"),
        ({"error_weight": [1.0, 2.0, 3.0]}, "base, hand"),
    ],
)
def test_shapes_that_do_not_fit_are_refused(arguments: dict, expected: str) -> None:
    refused(ShapeError, lambda: found(arguments), expected=expected)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize(
    "arguments",
    [
        lambda bad: {"settling_time": [2.0, bad]},
        lambda bad: {"settling_time": 2.0, "damping_ratio": bad},
        lambda bad: {"poles": (-1.0, -bad)},
        lambda bad: {"error_weight": bad},
    ],
)
def test_numbers_that_are_not_finite_are_refused(bad: float, arguments) -> None:  # type: ignore[no-untyped-def]
    refused(NonFiniteError, lambda: found(arguments(bad)), where="gains")


@pytest.mark.parametrize("outputs", [[], None, ["hand"], 3])
def test_what_is_no_output_is_refused(outputs: object) -> None:
    refused(OutputError, lambda: design_gains(outputs, 2.0), where="outputs")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "crossings",
    [[(1.0, -0.5)], [(1.0, 0.5)], [(1.0, -0.5), (2.0, 3.0)], [(3.0, -3.0), (0.5, 0.4)]],
)
def test_least_delay_brings_a_crossing_to_minus_one(crossings):
    """A delay T turns a crossing at w by -w T: no smaller one takes its phase to -180 degrees."""
    delay = _least_delay(crossings)
    assert delay > 0.0

    def distance(time):
        return min(abs(np.exp(1j * (phase - w * time)) - 1.0) for w, phase in crossings)

    assert distance(delay) < 1e-12
    assert min(distance(time) for time in np.linspace(0.0, 0.98 * delay, 500)) > 1e-3


@pytest.mark.parametrize("times", [2.0, [3.0, 0.5]])
def test_regulator_settles_in_a_given_time(times: object) -> None:
    gains = design_gains(OUTPUTS, times, method="lqr")
    assert_allclose(gains.settling_time, np.broadcast_to(times, 2), rtol=1e-12)
    assert_allclose(gains.damping_ratio, np.sqrt(0.5), rtol=1e-12)
    kp, _ = per_output(gains)
    by_weight = design_gains(OUTPUTS, method="lqr", error_weight=kp**2)
    assert_allclose(by_weight.damping, gains.damping, rtol=1e-12)


def test_method_without_a_name_is_refused() -> None:
    with pytest.raises(UnknownNameError):
        design_gains(HAND, 2.0, method="certified")
