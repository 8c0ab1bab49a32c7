"""The servo of section 5.5 against reference numbers of a simulation outside this package."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.linalg import expm

from concur.control import Servo
from concur.outputs import ReferenceSample
from concur.simulation import simulate
from tests.control._cases import (
    DAMPING,
    Q0,
    S0,
    STIFFNESS,
    case_study,
    case_study_reference,
    case_study_sample,
)
from tests.oracles import CASE_STUDY, Pinocchio, assert_close

N = CASE_STUDY


@pytest.fixture(scope="module")
def servo() -> Servo:
    return case_study()


def states(servo: Servo, count: int) -> list[tuple[np.ndarray, np.ndarray, ReferenceSample]]:
    """Random states away from singularities, with random demands."""
    rng = np.random.default_rng(1)
    found = []
    while len(found) < count:
        q = servo.model.robot.random(rng)
        if servo.margin(q) > 0.2:
            s = rng.uniform(-2.0, 2.0, 5)
            pose = servo.output(q) + rng.uniform(-0.3, 0.3, 5)
            demand = ReferenceSample(pose, rng.uniform(-1, 1, 5), rng.uniform(-1, 1, 5))
            found.append((q, s, demand))
    return found


def test_outputs_and_their_motion(servo: Servo) -> None:
    """Thesis: (5.1.5), (5.3.20), (5.3.21)."""
    velocity, drift = servo.motion(Q0, servo.velocity(Q0, S0))
    expected = [-0.05124896, -0.02504165, -0.04685913, 0.70455411, 0.29493197]
    assert_allclose(servo.output(Q0), expected, rtol=0, atol=5.1e-9)
    expected = [0.12187969, 0.03735428, 0.04892011, 0.03779326, 0.0]
    assert_allclose(velocity, expected, rtol=0, atol=5.1e-9)
    expected = [-0.00373543, 0.01218797, -0.00377933, 0.00489201, 0.0]
    assert_allclose(drift, expected, rtol=0, atol=5.1e-9)


def test_decoupling_matrix(servo: Servo) -> None:
    """Thesis: (5.3.27), (5.3.28)."""
    matrix = servo.decoupling(Q0)
    assert np.linalg.det(matrix) == pytest.approx(2.9153775640e-4, abs=5.1e-15)
    assert np.linalg.svd(matrix, compute_uv=False)[-1] == pytest.approx(0.0599034, abs=5.1e-8)
    expected = [[0.054742, 0.044759, 0, 0, 0], [-0.044759, 0.054742, 0, 0, 0]]
    assert_allclose(matrix[:2], expected, rtol=0, atol=5.1e-7)
    assert np.linalg.det(matrix[:2, :2]) == pytest.approx(N.l0 * N.b**2 / (2 * N.c), abs=1e-15)


def test_reduced_mass_matrix(servo: Servo) -> None:
    """Thesis: (5.3.24)-(5.3.26)."""
    mass, lift, b, c = servo.model.mass_matrix(Q0), np.zeros((8, 5)), N.b, N.c
    lift[:3, :2] = [[b / 2, b / 2], [0.0, 0.0], [-b / (2 * c), b / (2 * c)]]
    lift[3:] = np.eye(5)
    assert_allclose(mass, lift.T @ Pinocchio(servo.model.robot).mass_matrix(Q0) @ lift, atol=1e-14)
    # The reference's tenth decimal is off by three: 2.0845714067 against 2.0845714070 of Pinocchio.
    assert np.trace(mass) == pytest.approx(2.0845714067, abs=3e-10)
    row = [0.359778, -0.121003, -0.305669, 0.056486, -0.006588]
    assert_allclose(mass[0], row, rtol=0, atol=5.1e-7)
    form = servo.model.two_form(Q0, mass @ S0)
    assert abs(form[0, 1]) == pytest.approx(0.01858587134, abs=5.1e-12)


def test_first_torque(servo: Servo) -> None:
    expected = [3.0030393259, 1.3472307095, -5.5915782903, 4.1775090786, 1.6295872020]
    sample = case_study_sample(0.0)
    assert_allclose(servo.torque(Q0, S0, sample), expected, rtol=0, atol=5.1e-11)
    assert_allclose(servo.compile()(Q0, S0, sample), expected, rtol=0, atol=5.1e-11)


@pytest.mark.extended
def test_error_is_the_exponential_of_the_linear_equation(servo: Servo) -> None:
    # P13, with final values of an integration outside this package.
    run = simulate(servo.model.robot, servo, case_study_reference(), 5.0, Q0, S0)
    x0 = case_study_sample(0.0).pose - servo.output(Q0)
    ve0 = servo.motion(Q0, servo.velocity(Q0, S0))[0] - case_study_sample(0.0).twist
    assert_allclose(run.error[0], x0, rtol=0, atol=1e-15)
    zero, one = np.zeros((5, 5)), np.eye(5)
    matrix = np.block([[zero, -one], [STIFFNESS, -DAMPING]])
    step = expm(matrix * 0.1)
    z = np.concatenate([x0, ve0])
    for row in range(0, 5001, 100):
        assert_allclose(run.error[row], z[:5], rtol=0, atol=1e-11, err_msg=f"t = {run.t[row]}")
        assert_allclose(run.velocity_error[row], z[5:], rtol=0, atol=1e-11)
        z = step @ z
    assert np.linalg.norm(x0) > 0.05
    end = [1.250682, 0.079154, -0.077365, 16.04877, 15.161946, 0.076645, 1.005412, -2.056266]
    assert_allclose(run.q[-1, 3], end[3], rtol=0, atol=5.1e-6)
    assert_allclose(np.delete(run.q[-1], 3), np.delete(end, 3), rtol=0, atol=5.1e-7)
    smallest = min(np.linalg.svd(servo.decoupling(q), compute_uv=False)[-1] for q in run.q[::50])
    assert smallest == pytest.approx(0.0587, abs=5.1e-5)


def test_lyapunov_function_falls_along_the_run(servo: Servo) -> None:
    """Thesis: (5.4.35)-(5.4.37)."""
    # P8: its rate is -ve KD ve, so it never grows.
    run = simulate(servo.model.robot, servo, case_study_reference(), 2.0, Q0, S0)
    x, ve = run.error, run.velocity_error
    direct = (np.einsum("ki,ij,kj->k", x, STIFFNESS, x) + (ve**2).sum(axis=1)) / 2
    assert_allclose(run.lyapunov, direct, rtol=1e-12, atol=0)
    assert (np.diff(run.lyapunov) < 0.0).all()
    power = np.einsum("ki,ij,kj->k", ve, DAMPING, ve)
    w, h = run.lyapunov, run.t[1]
    slope = (8 * (w[3:-1] - w[1:-3]) - (w[4:] - w[:-4])) / (12 * h)
    assert_allclose(slope, -power[2:-2], rtol=0, atol=1e-8)


def test_metric_weighs_the_feedback(servo: Servo) -> None:
    """I enters as I^-1 (KP x - KD ve), for matrices that do not commute: (5.4.31), (5.4.32)."""
    rng = np.random.default_rng(3)
    stiffness, damping, inertia = (r @ r.T + np.eye(5) for r in rng.normal(size=(3, 5, 5)))
    general = Servo(servo.model, servo.outputs, stiffness, damping, inertia)
    for q, s, sample in states(servo, 3):
        x, ve = servo.error(q, s, sample)
        more = np.linalg.solve(inertia, stiffness @ x - damping @ ve)
        more -= STIFFNESS @ x - DAMPING @ ve
        ahead = ReferenceSample(sample.pose, sample.twist, sample.acceleration + more)
        assert_close(general.torque(q, s, sample), servo.torque(q, s, ahead), 1e-10)


def test_gains_may_be_given_in_four_ways(servo: Servo) -> None:
    assert_allclose(servo.stiffness, STIFFNESS)
    assert_allclose(servo.damping, DAMPING)
    by_entry = case_study(stiffness=[[4, 4], 9], damping=DAMPING)
    assert_allclose(by_entry.stiffness, STIFFNESS)
    assert_allclose(by_entry.damping, DAMPING)
    assert_allclose(case_study(stiffness=5).stiffness, 5 * np.eye(5))
    assert_allclose(servo.inertia, np.eye(5))
