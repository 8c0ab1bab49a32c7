"""The servo as a system of python-control, and the margins of the linearised loop.

Margins are held against python-control and against the eigenvalues of loops in which the gain,
the delay or the hold has been put.
"""

from __future__ import annotations

import math
import subprocess
import sys

import control
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import signal
from scipy.linalg import expm

from concur.control import (
    ErrorDynamics,
    Servo,
    linear_loop,
    longest_latency,
    loop_margins,
    loop_response,
)
from concur.control._loop import LoopMargins, _gain_margin
from concur.errors import OutputError
from concur.outputs.groups import Product, Vector
from tests.control._cases import (
    arm,
    arm_servo,
    case_study,
    refused,
)


@pytest.fixture(scope="module")
def servo() -> Servo:
    return case_study()


def spd(rng: np.random.Generator, size: int, low: float, high: float) -> np.ndarray:
    turn, _ = np.linalg.qr(rng.normal(size=(size, size)))
    return turn @ np.diag(rng.uniform(low, high, size)) @ turn.T


def plane(stiffness: object, damping: object, inertia: object = 1.0) -> ErrorDynamics:
    """Error dynamics of two linear coordinates."""
    matrices = [
        np.eye(2) * gain if np.ndim(gain) == 0 else np.array(gain)
        for gain in (stiffness, damping, inertia)
    ]
    return ErrorDynamics(Product([Vector("xy")]), *matrices)


def coupled(seed: int, inertia: bool = False) -> ErrorDynamics:
    rng = np.random.default_rng(seed)
    metric = spd(rng, 2, 0.3, 3.0) if inertia else np.eye(2)
    return plane(spd(rng, 2, 1.0, 20.0), spd(rng, 2, 0.5, 5.0), metric)


def scalar_loop(kp: float, kd: float) -> control.TransferFunction:
    return control.tf([kd, kp], [1.0, 0.0, 0.0])


@pytest.mark.extended
def test_python_control_is_imported_when_it_is_wanted() -> None:
    program = (
        "import sys, concur as cc\n"
        "model = cc.reduce(cc.robots.rover_arm())\n"
        "outputs = [cc.Output('base', 'chassis', 'R2', point=(0.25, 0, 0)),"
        " cc.Output('hand', 'forearm', 'R3', point=(0, 0.2, 0))]\n"
        "servo = cc.Servo(model, outputs, 4.0, 2.8)\n"
        "cc.control.loop_margins(servo)\n"
        "cc.design_gains(outputs, 2.0)\n"
        "assert 'control' not in sys.modules\n"
        "servo.to_iosystem()\n"
        "assert 'control' in sys.modules\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


# --- linear loop ------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_linear_loop_is_the_derivative_of_the_error_dynamics(seed: int) -> None:
    rng = np.random.default_rng(seed)
    gains = [spd(rng, 6, 0.5, 9.0) for _ in range(3)]
    for group in ("SE3", "SO3+R3"):
        base = arm_servo(arm(), group)
        servo = Servo(base.model, base.outputs, *gains)
        system = linear_loop(servo)
        columns = []
        for k in range(12):
            ends = []
            for sign in (1e-5, -1e-5):
                z = np.zeros(12)
                z[k] = sign
                ends.append(np.concatenate(servo.error_dynamics.rate(z[:6], z[6:])))
            columns.append((ends[0] - ends[1]) / 2e-5)
        assert_allclose(system.A, np.column_stack(columns), rtol=0, atol=1e-8)
        assert_allclose(system.B, np.vstack([np.zeros((6, 6)), np.eye(6)]))
        assert_allclose(system.C, np.eye(12))
        assert_allclose(linear_loop(servo.error_dynamics).A, system.A)
        assert (
            system.state_labels[0]
            == f"error[{servo.outputs[0].name}[{'x' if group == 'SE3' else 'rx'}]]"
        )


@pytest.mark.parametrize("seed", range(3))
def test_broken_loop_closes_to_the_closed_one(seed: int) -> None:
    dynamics = coupled(seed, inertia=True)
    opened, closed = linear_loop(dynamics, broken=True), linear_loop(dynamics)
    assert np.abs(np.linalg.eigvals(opened.A)).max() == 0.0
    assert_allclose(opened.A - opened.B @ opened.C, closed.A, rtol=0, atol=1e-14)
    assert (opened.input_labels[0], opened.output_labels[0]) == ("command[0: x]", "demand[0: x]")


# --- margins ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kp", "kd"), [(4.0, 2.8), (4.0, 4.0), (9.0, 0.3), (1e-4, 3.0), (2e5, 40.0), (0.3, 90.0)]
)
def test_margins_of_one_channel_are_those_of_python_control(kp: float, kd: float) -> None:
    loop = scalar_loop(kp, kd)
    gain, phase, _, _, crossover, _ = control.stability_margins(loop)
    margins = loop_margins(plane(kp, kd))
    assert np.isinf(gain)
    assert np.isinf(margins.gain_margin).all()
    assert_allclose(margins.crossover, crossover, rtol=1e-9)
    assert_allclose(margins.phase_margin, phase, rtol=1e-9)
    assert_allclose(margins.delay_margin, np.radians(phase) / crossover, rtol=1e-9)
    assert margins.common_delay_margin == pytest.approx(np.radians(phase) / crossover, rel=1e-9)
    grid = np.sqrt(kp) * np.logspace(-0.1, 0.1, 201)
    disk, gain_of_disk, phase_of_disk = control.disk_margins(loop, grid)
    assert margins.disk_margin == pytest.approx(disk, rel=1e-6)
    assert 20 * np.log10(margins.disk_gain_margin) == pytest.approx(gain_of_disk, rel=1e-4)
    assert margins.disk_phase_margin == pytest.approx(phase_of_disk, rel=1e-6)
    assert margins.disk_margin == pytest.approx(2 / np.sqrt(1 + 4 * kp / kd**2), rel=1e-9)


def opened_at(dynamics: ErrorDynamics, index: int) -> control.StateSpace:
    """Loop of one coordinate with the other ones closed, by python-control alone."""
    system = linear_loop(dynamics, broken=True)
    others = np.eye(system.ninputs)
    others[index, index] = 0.0
    return control.ss(
        system.A - system.B @ others @ system.C,
        system.B[:, [index]],
        system.C[[index], :],
        [[0.0]],
    )


@pytest.mark.by_default(4)
@pytest.mark.parametrize("inertia", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_margins_of_coupled_coordinates_are_those_of_python_control(
    seed: int, inertia: bool
) -> None:
    dynamics = coupled(seed, inertia)
    margins, response = loop_margins(dynamics), loop_response(dynamics)
    for k in range(2):
        loop = opened_at(dynamics, k)
        _, phase, _, _, crossover, _ = control.stability_margins(loop)
        assert margins.crossover[k] == pytest.approx(crossover, rel=1e-5)
        assert margins.phase_margin[k] == pytest.approx(phase, rel=1e-5)
        values = loop(1j * response.frequency)
        assert_allclose(response.loop[:, k], values, rtol=1e-8)
        assert control.disk_margins(loop, response.frequency)[0] > margins.disk_margin * (1 - 1e-9)


def growth(dynamics: ErrorDynamics, factors: object) -> float:
    """Largest real part of the closed loop's poles when commands are multiplied by factors."""
    system = linear_loop(dynamics, broken=True)
    closed = system.A - system.B @ np.diag(factors) @ system.C
    return float(np.linalg.eigvals(closed).real.max())


def test_gain_margin_of_an_oblique_metric() -> None:
    # Slightly damped, so that the metric's coupling can make one loop's gain unstable.
    dynamics = plane(
        [[7.5, 1.4], [1.4, 2.3]], [[0.22, -0.04], [-0.04, 0.16]], [[16.5, 1.5], [1.5, 0.52]]
    )
    margins = loop_margins(dynamics)
    limited = np.nonzero(np.isfinite(margins.gain_margin))[0]
    assert limited.size
    for k in limited:
        for side, sign in ((1 - 1e-6, -1), (1 + 1e-6, 1)):
            factors = np.ones(2)
            factors[k] = margins.gain_margin[k] * side
            assert np.sign(growth(dynamics, factors)) == sign


def delayed_radius(dynamics: ErrorDynamics, delays: np.ndarray, count: int) -> float:
    """Spectral radius of the loop with its commands delayed by whole numbers of short holds."""
    period = delays.max() / count
    n = delays.size
    double = np.array([[1.0, -period, -(period**2) / 2], [0.0, 1.0, period]])
    step = np.kron(double[:, :2], np.eye(n))
    push = np.kron(double[:, 2:], np.eye(n))
    feedback = -linear_loop(dynamics, broken=True).C
    size = 2 * n + n * count
    whole = np.zeros((size, size))
    whole[: 2 * n, : 2 * n] = step
    for k in range(n):
        late = round(delays[k] / period)
        if late == 0:
            whole[: 2 * n, : 2 * n] += np.outer(push[:, k], feedback[k])
        else:
            whole[: 2 * n, 2 * n + n * (late - 1) + k] += push[:, k]
    whole[2 * n : 3 * n, : 2 * n] = feedback
    whole[3 * n :, 2 * n : -n] = np.eye(n * (count - 1))
    return float(np.abs(np.linalg.eigvals(whole)).max())


@pytest.mark.parametrize("dynamics", [plane(4.0, 2.8), coupled(0), coupled(3, inertia=True)])
def test_delay_margins_are_where_a_delayed_loop_becomes_unstable(dynamics: ErrorDynamics) -> None:
    margins, count = loop_margins(dynamics), 60
    # The hold of the model counts as half a period more of delay.
    held = count / (count + 0.5)
    for delays in (
        np.full(2, margins.common_delay_margin),
        np.array([margins.delay_margin[0], 0.0]),
        np.array([0.0, margins.delay_margin[1]]),
    ):
        assert delayed_radius(dynamics, 0.97 * held * delays, count) < 1.0
        assert delayed_radius(dynamics, 1.03 * held * delays, count) > 1.0


def held_radius(dynamics: ErrorDynamics, period: float) -> float:
    system = linear_loop(dynamics, broken=True)
    n = system.nstates
    both = np.block([[system.A, system.B], [np.zeros((n // 2, n + n // 2))]])
    exact = expm(both * period)
    closed = exact[:n, :n] - exact[:n, n:] @ system.C
    return float(np.abs(np.linalg.eigvals(closed)).max())


@pytest.mark.parametrize(("kp", "kd"), [(4.0, 2.8), (4.0, 5.0), (9.0, 0.3), (1.0, 2.0)])
def test_hold_limit_is_exact_for_scalar_gains(kp: float, kd: float) -> None:
    dynamics = plane(kp, kd)
    limit = loop_margins(dynamics).hold_limit
    assert limit == pytest.approx(min(2 / kd, 2 * kd / kp), rel=1e-12)
    assert held_radius(dynamics, 0.999 * limit) < 1.0
    assert held_radius(dynamics, 1.001 * limit) > 1.0


def test_hold_limit_is_safe_for_matrices() -> None:
    for seed in range(30):
        dynamics = coupled(seed, inertia=True)
        limit = loop_margins(dynamics).hold_limit
        for share in (0.2, 0.7, 0.999):
            assert held_radius(dynamics, share * limit) < 1.0


def late_radius(dynamics: ErrorDynamics, period: float, latency: float) -> float:
    """Spectral radius with the last commands as further states."""
    system = linear_loop(dynamics, broken=True)
    n, m = system.nstates, system.ninputs
    late, part = divmod(latency / period, 1.0)
    count = int(late) + 1  # commands of earlier ticks that still act
    matrix = np.zeros((n + m * count, n + m * count))
    matrix[n : n + m, :n] = -system.C
    matrix[n + m :, n:-m] = np.eye(m * (count - 1))
    rest = np.eye(n)
    new = np.vstack([np.hstack([-system.C, np.zeros((m, m * count))]), np.eye(len(matrix))[n:]])
    for share, command in ((1.0 - part, new[m * (count - 1) : m * count]), (part, new[-m:])):
        both = np.block([[system.A, system.B], [np.zeros((m, n + m))]])
        exact = expm(both * period * share)
        matrix[:n] += rest @ exact[:n, n:] @ command
        rest = rest @ exact[:n, :n]
    matrix[:n, :n] += rest
    return float(np.abs(np.linalg.eigvals(matrix)).max())


LATE = {
    "alike": plane(4.0, 2.8),
    "weak": plane(9.0, 0.3),
    "strong": plane(0.1, 30.0),
    "coupled": coupled(1),
    "metric": coupled(2, inertia=True),
}


@pytest.mark.parametrize("share", [0.02, 0.3, 0.8])
@pytest.mark.parametrize("dynamics", LATE.values(), ids=list(LATE))
def test_longest_latency_is_where_the_sampled_loop_becomes_unstable(
    dynamics: ErrorDynamics, share: float
) -> None:
    period = share * loop_margins(dynamics).hold_limit
    longest = longest_latency(dynamics, period, 5.0)
    assert longest is not None
    assert late_radius(dynamics, period, 0.997 * longest) < 1.0
    assert late_radius(dynamics, period, 1.003 * longest) > 1.0
    assert longest_latency(dynamics, period, 0.997 * longest) is None
    assert longest_latency(dynamics, period, 1.003 * longest) == pytest.approx(longest, rel=3e-3)


@pytest.mark.parametrize(("share", "stable"), [(0.999, None), (1.001, 0.0)])
def test_without_latency_the_period_decides(share: float, stable: float | None) -> None:
    dynamics = plane(4.0, 2.8)
    period = share * loop_margins(dynamics).hold_limit
    assert longest_latency(dynamics, period, 0.0) == stable


def test_disk_margin_bears_changes_of_all_gains_at_once() -> None:
    rng = np.random.default_rng(4)
    for seed in range(10):
        dynamics = coupled(seed, inertia=True)
        margins = loop_margins(dynamics)
        most = margins.disk_gain_margin
        assert most > 1.0
        corners = [(most, 1 / most), (most, most), (1 / most, most), (1 / most, 1 / most)]
        for factors in [*corners, *(most ** rng.uniform(-1, 1, (20, 2)))]:
            assert growth(dynamics, factors) < 0.0
        # A loss of phase is a factor exp(-j phi): its real form turns a doubled system.
        turn = np.exp(1j * np.radians(margins.disk_phase_margin) * rng.uniform(-1, 1, (20, 2)))
        system = linear_loop(dynamics, broken=True)
        for factors in turn:
            closed = system.A - system.B @ np.diag(factors) @ system.C
            assert np.linalg.eigvals(closed).real.max() < 0.0


def test_what_is_no_servo_is_refused() -> None:
    for call in (linear_loop, loop_margins, loop_response):
        refused(OutputError, lambda call=call: call(3.0), expected="Servo")


# --- responses --------------------------------------------------------------------------------


@pytest.mark.parametrize("dynamics", [plane(np.diag([4.0, 9.0]), np.diag([1.2, 7.0])), coupled(1)])
def test_step_response_is_that_of_scipy(dynamics: ErrorDynamics) -> None:
    response = loop_response(dynamics)
    kp, kd = dynamics.stiffness, dynamics.damping
    matrix = np.block([[np.zeros((2, 2)), np.eye(2)], [-kp, -kd]])
    for k in range(2):
        system = signal.StateSpace(
            matrix, np.vstack([np.zeros((2, 1)), kp[:, [k]]]), np.eye(4)[[k]], np.zeros((1, 1))
        )
        _, expected = signal.step(system, T=response.t)
        assert_allclose(response.step[:, k], expected, rtol=0, atol=1e-10)
        fine = np.linspace(0.0, response.t[-1], 20001)
        _, value = signal.step(system, T=fine)
        last = fine[np.nonzero(np.abs(value - 1.0) > response.band)[0][-1]]
        assert last <= response.settling_time[k] <= last + fine[1]
    assert response.settling_time.max() < response.t[-1]


def test_responses_reach_as_far_as_asked(servo: Servo) -> None:
    response = loop_response(servo, duration=0.5)
    assert response.t[-1] == 0.5
    assert response.step.shape == (response.t.size, 5)
    assert response.loop.shape == (response.frequency.size, 5)
    assert_allclose(response.settling_time, loop_response(servo).settling_time)
    for bad in (0.0, -1.0):
        refused(OutputError, lambda bad=bad: loop_response(servo, bad), where="duration")


@pytest.mark.parametrize(("disk", "gain"), [(0.5, 2.5 / 1.5), (1.0, 3.0), (2.0, math.inf)])
def test_gain_and_phase_of_a_disk(disk: float, gain: float) -> None:
    one = np.ones(1)
    margins = LoopMargins(("x",), one, one, one, one, 1.0, disk, 1.0)
    assert margins.disk_gain_margin == pytest.approx(gain)
    assert margins.disk_phase_margin == pytest.approx(math.degrees(2.0 * math.atan(disk / 2.0)))


@pytest.mark.parametrize(
    ("crossing", "margin"),
    [(-0.5, 2.0), (-0.99, 1.0 / 0.99), (-1.01, math.inf), (-1.9, math.inf), (0.5, math.inf)],
)
def test_gain_may_grow_to_crossings_between_minus_one_and_zero(
    crossing: float, margin: float
) -> None:
    def channel(frequency: object) -> np.ndarray:
        height = np.log(np.atleast_1d(frequency) / 3.1)  # changes its sign once
        return (crossing + 1j * height)[:, None]

    assert _gain_margin(channel, np.logspace(-1.0, 2.0, 301)) == pytest.approx(margin)
