"""Example 4.6.1, a rover on two wheels with an arm: reference numbers and closed forms.

The reference numbers come from a simulation with multipliers, outside this package.
"""

from __future__ import annotations

import numpy as np
import pytest

from concur.reduction import ReducedModel, reduce
from tests.oracles import (
    CASE_STUDY,
    Constrained,
    Pinocchio,
    RoverNumbers,
    assert_close,
    rover,
    rover_rows,
)
from tests.reduction._reduced import (
    Reference,
    simulate_acceleration_form,
    simulate_momentum_form,
    torques,
)

N = RoverNumbers()
Q0 = np.array([0.3, -0.2, 0.7, 0.4, -0.9, 0.5, 0.35, -0.6])
S0 = np.array([2.0, -1.0, 0.8, -0.5, 1.2])
V0 = np.array([0.05, 0.0, -0.6, 2.0, -1.0, 0.8, -0.5, 1.2])
P0 = np.array([0.091128196042, -0.03441426567, 0.265402181991, -0.051610401272, -0.00861035997])


def numbers(text: str) -> np.ndarray:
    return np.array(text.split(), dtype=float)


STATES = {
    1.0: (
        numbers(
            "0.563304461474 -0.064439804361 0.375869609265 4.179125660179 "
            "1.258473706503 1.232942896137 0.087275771111 -0.608725864167"
        ),
        numbers(
            "0.5611775977122 0 -0.3432855305476 6.469989803491 "
            "4.753562150753 0.7590491236912 -0.03548886935872 -0.02447049321070"
        ),
        [0.574630405303, 0.493555258271, 0.274338527098, -0.038759576938, -0.059982769912],
        2.758754451000,
        -0.0278641686574706,
    ),
    5.0: (
        numbers(
            "1.887716161749 -1.326687532902 -2.372122456083 35.961563699512 "
            "19.300951419097 -1.996201107644 0.088015379673 -0.604465582499"
        ),
        numbers(
            "0.4161328720043 0 -1.049261238198 6.784481815537 "
            "1.538175624548 -0.2865040704948 -0.001846347019410 -0.01316841905933"
        ),
        [0.979112487128, -0.273685801173, -1.6679050522, 0.015120572203, 0.045204830658],
        2.984309176248,
        -0.0857722598999410,
    ),
}


def law(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Torque law T_R of the reference motion, on v."""
    return np.array(
        [
            0.0,
            0.0,
            0.0,
            0.6 * np.sin(1.3 * t) + 0.2,
            0.5 * np.cos(0.9 * t),
            0.3 * np.cos(2 * t) - 0.5 * v[5],
            -40 * (q[6] - 0.3) - 4 * v[6],
            -15 * (q[7] + 0.5) - 1.5 * v[7],
        ]
    )


@pytest.fixture(scope="module")
def model() -> ReducedModel:
    return reduce(rover())


@pytest.fixture(scope="module")
def reference() -> Reference:
    full = Constrained(Pinocchio(rover()), rover_rows(N.b, N.c))
    return Reference(full, shape=range(3, 8), dependent=range(3))


def test_rows_are_the_one_forms(model: ReducedModel) -> None:
    """Thesis: (4.2.8), (4.3.23)."""
    robot, rows = model.robot, rover_rows(N.b, N.c)
    order = ["left: no side slip", "left: rolling", "right: rolling"]
    assert sorted(robot.constraint_names) == sorted(order)
    ours = [robot.constraint_names.index(name) for name in order]
    rng = np.random.default_rng(0)
    for _ in range(20):
        q = robot.random(rng)
        np.testing.assert_allclose(robot.constraints(q)[ours], rows(q), rtol=0, atol=1e-15)


def test_horizontal_lift_is_the_closed_form(model: ReducedModel) -> None:
    """Thesis: (4.2.11), (4.3.25)."""
    b, c = N.b, N.c
    lift, drift = model.lift(Q0)
    expected = np.zeros((8, 5))
    expected[:3, :2] = [[b / 2, b / 2], [0.0, 0.0], [-b / (2 * c), b / (2 * c)]]
    expected[3:] = np.eye(5)
    np.testing.assert_allclose(lift, expected, rtol=0, atol=1e-15)
    np.testing.assert_array_equal(drift, np.zeros(8))
    np.testing.assert_allclose(model.velocity(Q0, S0), V0, rtol=0, atol=1e-15)


def test_momentum_and_energy(model: ReducedModel) -> None:
    """Thesis: (4.2.12), (4.3.26)."""
    np.testing.assert_allclose(model.mass_matrix(Q0) @ S0, P0, rtol=0, atol=1e-12)
    assert model.robot.potential_energy(Q0) == pytest.approx(1.8692726757392, abs=1e-12)
    momentum = model.mass_matrix(Q0) @ S0
    assert model.hamiltonian(Q0, momentum) == pytest.approx(2.0915052617486, abs=1e-12)
    body = (model.robot.mass_matrix(Q0) @ V0)[:3]
    np.testing.assert_allclose(
        body, [0.517139303716, -1.162591681355, -0.27635615428], rtol=0, atol=1e-12
    )


def test_motion_in_momentum_form(model: ReducedModel) -> None:
    """Thesis: (5.1.7), (5.1.11), (5.1.12)."""
    q, p = simulate_momentum_form(model, Q0, S0, law, list(STATES))
    for i, (q_end, v_end, p_end, energy, upsilon) in enumerate(STATES.values()):
        assert_close(q[i], q_end, 1e-10)
        assert_close(p[i], p_end, 1e-10)
        s = np.linalg.solve(model.mass_matrix(q[i]), p[i])
        assert_close(model.velocity(q[i], s), v_end, 1e-10)
        assert model.hamiltonian(q[i], p[i]) == pytest.approx(energy, abs=1e-10)
        assert model.two_form(q[i], p[i])[0, 1] == pytest.approx(upsilon, abs=1e-11)


def test_heading_follows_the_wheel_angles(model: ReducedModel) -> None:
    """Misprint 001-27."""
    # theta - (b / 2c) (psi2 - psi1) is an integral, whatever the torques.
    q, _ = simulate_acceleration_form(model, Q0, S0, law, np.linspace(0.0, 2.0, 5))
    integral = q[:, 2] - N.b / (2 * N.c) * (q[:, 4] - q[:, 3])
    np.testing.assert_allclose(integral, 0.96, rtol=0, atol=1e-11)


def test_two_form_is_the_closed_form(model: ReducedModel) -> None:
    """Thesis: Theorem 4.2.4, (4.2.14), (4.3.27)."""
    rng = np.random.default_rng(1)
    for _ in range(100):
        q, s = model.robot.random(rng), rng.uniform(-3.0, 3.0, 5)
        form = model.two_form(q, model.mass_matrix(q) @ s)
        upsilon = N.b**2 / (2 * N.c) * _lateral_momentum(q, s)
        expected = np.zeros((5, 5))
        expected[0, 1], expected[1, 0] = upsilon, -upsilon
        np.testing.assert_allclose(form, expected, rtol=0, atol=1e-13)


def _lateral_momentum(q: np.ndarray, s: np.ndarray) -> float:
    """J_y, by hand: base, wheels and three links as points in the horizontal plane."""
    phi1, phi2, phi3 = q[5:]
    w = N.b / (2 * N.c) * (s[1] - s[0])
    reach = N.l0 + N.l1
    rho = np.array(
        [
            N.l2 / 2,
            N.l2 + N.l3 / 2 * np.cos(phi2),
            N.l2 + N.l3 * np.cos(phi2) + N.l4 * np.cos(phi2 + phi3),
        ]
    )
    rho_rate = np.array(
        [
            0.0,
            -N.l3 / 2 * np.sin(phi2) * s[3],
            -N.l3 * np.sin(phi2) * s[3] - N.l4 * np.sin(phi2 + phi3) * (s[3] + s[4]),
        ]
    )
    m = np.array(N.m[3:])
    turning = N.m[0] * N.l0 + m @ (reach - rho * np.sin(phi1))
    return w * turning + m @ (rho_rate * np.cos(phi1) - rho * np.sin(phi1) * s[2])


def test_case_study_has_its_reference_values() -> None:
    # Section 5.5: other numbers, same formulas.
    model = reduce(rover(CASE_STUDY))
    q = np.array([-0.3, -0.05, 0.1, 0.0, 0.0, 0.1, 1.2, -1.6])
    s = np.array([1.0, 1.5, 0.0, 0.0, 0.0])
    mass = model.mass_matrix(q)
    row = [0.359778, -0.121003, -0.305669, 0.056486, -0.006588]
    np.testing.assert_allclose(mass[0], row, rtol=0, atol=5e-7)
    assert np.trace(mass) == pytest.approx(2.0845714067, abs=1e-9)
    assert model.two_form(q, mass @ s)[0, 1] == pytest.approx(0.01858587134, abs=1e-10)


def test_reactions_are_the_rate_of_the_spatial_momentum(
    model: ReducedModel, reference: Reference
) -> None:
    """Thesis: (4.2.15)."""
    # Nothing but the ground pushes the robot in the plane: (d/dt momentum)_G = (W phi)^T lam.
    robot = model.robot
    rng = np.random.default_rng(3)
    for _ in range(10):
        q, s, u = robot.random(rng), rng.uniform(-2, 2, 5), rng.uniform(-2, 2, 5)
        lift, _ = model.lift(q)
        v = model.velocity(q, s)
        vdot = lift @ model.acceleration(q, s, u) + model.drift_acceleration(q, s)
        qdot, h = robot.rate(q, v), 1e-4
        ahead, behind = (
            robot.momentum(q + k * h * qdot, v + k * h * vdot)[[0, 1, 5]] for k in (1, -1)
        )
        _, lam = reference.full.acceleration(q, v, torques(model, u))
        fx, fy, turning = (reference.full.rows(q).T @ lam)[:3]
        cos, sin = np.cos(q[2]), np.sin(q[2])
        force = np.array([cos * fx - sin * fy, sin * fx + cos * fy])
        moment = turning + q[0] * force[1] - q[1] * force[0]
        expected = np.array([*force, moment])
        assert_close((ahead - behind) / (2 * h), expected, 1e-6)
