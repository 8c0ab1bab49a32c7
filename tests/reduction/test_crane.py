"""Example 4.6.2, a car with front steering and a crane: reference numbers and closed forms.

The reference numbers come from a simulation with multipliers, outside this package. They are
listed in the order of the shape (psi1, psi2, phi1, phi2).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from concur.reduction import ReducedModel, reduce
from tests.oracles import CraneNumbers, assert_close, crane, crane_rows
from tests.reduction._reduced import (
    simulate_momentum_form,
)

N = CraneNumbers()
DEPENDENT = (0, 1, 2, 6)  # vx, vy, w, psi3
SHAPE = [3, 5, 4, 7]  # psi1, psi2, phi1, phi2 in v
Q0 = np.array([1, -2, 0.4, 0.35, -0.5, 0.8, -0.3, 0.25])
S0 = np.array([0.15, 4, -0.4, 0.3])
V0 = np.array([1.356080564953, 0, 0.198003218997, 0.15, -0.4, 4, 5.624015021988, 0.3])
P0 = np.array([1217.071677357884, 515.248602955111, -11.575792434543, 13.5])
LAM0 = {
    "chassis: no side slip": 89.68045005543,
    "left: no side slip": 282.6995120873,
    "left: rolling": 251.7105189462,
    "right: rolling": 206.0923655816,
}


def numbers(text: str) -> np.ndarray:
    return np.array(text.split(), dtype=float)


STATES = {
    1.0: (
        numbers(
            "1.943935754270 -1.299312155033 1.113069241924 1.085888504976 "
            "-1.423229009880 4.906242835964 10.568045654832 0.372183374745"
        ),
        numbers(
            "1.404722553615 0 1.066476494606 -1.470600219835 "
            "-1.280125414879 10.98830871380 9.102397996069 -0.03483162963666"
        ),
        numbers("1643.010729295 711.5255999958 -11.57579243456 -1.567423333650"),
        2708.56203641874,
        236.167352650206,
    ),
    5.0: (
        numbers(
            "-0.04878335459189 2.447057314386 -5.724007295978 -0.9520655898785 "
            "4.598440337810 94.23084851920 58.47584171854 0.08708584849396"
        ),
        numbers(
            "2.684779268990 0 -1.508314448382 0.6504413680533 "
            "1.314308322705 17.43142542327 13.42801771506 0.4512926641081"
        ),
        numbers("1770.116069973903 774.283484226814 -11.575792434521 20.308169884863"),
        7321.08614884243,
        -485.012437061491,
    ),
}


def law(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Torque law T_K of the reference motion, on v."""
    tau = np.zeros(8)
    tau[3] = 400 * np.cos(0.8 * t) - 300 * q[3]
    tau[5] = 150 * np.sin(t) + 60
    tau[6] = 80 * np.cos(0.5 * t)
    tau[7] = 10 * np.sin(2 * t) - 60 * q[7] - 10 * v[7]
    return tau


@pytest.fixture(scope="module")
def model() -> ReducedModel:
    # Either front wheel can be the dependent one; the references take the right one and drive it.
    return replace(reduce(crane()), dependent=DEPENDENT, shape=(3, 4, 5, 7))


@pytest.fixture(scope="module")
def order(model: ReducedModel) -> list[int]:
    """Where psi1, psi2, phi1, phi2 stand in the model's shape."""
    return [model.shape_names.index(name) for name in ("axle", "left", "column", "boom")]


def in_order(values: np.ndarray, order: list[int]) -> np.ndarray:
    """Put numbers listed for (psi1, psi2, phi1, phi2) in the order of the model."""
    ours = np.zeros_like(values)
    ours[order] = values
    return ours


def connection(psi1: float) -> np.ndarray:
    """A on (psi1, psi2): rows vx, vy, w, psi3."""
    l, b, c, sin = N.l, N.b, N.c, np.sin(psi1)
    entries = [
        [l * c * np.cos(psi1), l * b * np.cos(psi1)],
        [0, 0],
        [c * sin, b * sin],
        [2 * l * c / b, l + c * sin],
    ]
    return -np.array(entries) / (l - c * sin)


def mass_matrix(psi1: float, phi2: float) -> np.ndarray:
    """Mhat in closed form, order psi1, psi2, phi1, phi2."""
    l, b, c, s = N.l, N.b, N.c, np.sin(psi1)
    d, k22, k33, jy4 = l - c * s, N.steering, N.column(phi2), N.j[3][1]
    mu = N.total * l**2 * np.cos(psi1) ** 2 + N.turning(phi2) * s**2
    m = np.zeros((4, 4))
    m[0, 0] = c**2 * mu / d**2 + 2 * k22 * c * s / d + k22 + jy4 * (2 * l * c / (b * d)) ** 2
    m[0, 1] = c * b * mu / d**2 + k22 * b * s / d + 2 * l * c * jy4 * (l + c * s) / (b * d**2)
    m[1, 1] = b**2 * mu / d**2 + jy4 + jy4 * (l + c * s) ** 2 / d**2
    m[0, 2], m[1, 2], m[2, 2], m[3, 3] = k33 * c * s / d, k33 * b * s / d, k33, N.j[5][1]
    return m + np.triu(m, 1).T


def upsilon(q: np.ndarray, s: np.ndarray) -> float:
    """U in closed form for s = (psi1', psi2', phi1', phi2')."""
    l, b, c, sin, cos = N.l, N.b, N.c, np.sin(q[3]), np.cos(q[3])
    d = l - c * sin
    vx, _, w, psi3 = -connection(q[3]) @ s[:2]
    momentum = [
        N.total * vx,
        N.first * w,
        N.turning(q[7]) * w + N.steering * s[0] + N.column(q[7]) * s[2],
        N.j[3][1] * psi3,
    ]
    curvature = [b * (c - l * sin), 0.0, b * cos, 2 * c * cos]
    return float(-l / d**2 * np.dot(momentum, curvature))


def test_rows_are_the_one_forms(model: ReducedModel) -> None:
    """Thesis: (4.2.8), (4.3.23)."""
    robot, rows = model.robot, crane_rows(N.l, N.b, N.c)
    names = list(LAM0)
    assert sorted(robot.constraint_names) == sorted(names)
    ours = [robot.constraint_names.index(name) for name in names]
    rng = np.random.default_rng(0)
    for _ in range(20):
        q = robot.random(rng)
        expected = rows(q)
        np.testing.assert_allclose(robot.constraints(q)[ours], expected, rtol=0, atol=1e-14)


def test_horizontal_lift_is_the_closed_form(model: ReducedModel, order: list[int]) -> None:
    """Thesis: (4.2.11), (4.3.25)."""
    rng = np.random.default_rng(1)
    for _ in range(20):
        q = model.robot.random(rng)
        lift, drift = model.lift(q)
        expected = np.zeros((8, 4))
        expected[SHAPE] = np.eye(4)
        expected[list(DEPENDENT), :2] = -connection(q[3])
        np.testing.assert_allclose(lift[:, order], expected, rtol=0, atol=1e-13)
        np.testing.assert_array_equal(drift, np.zeros(8))
    lift = model.lift(Q0)[0][:, order]
    rows = [[0.727399536757, 0.311742658610], [0.106208623217, 0.045517981379]]
    rows.append([5.162306908346, 1.212417246434])
    np.testing.assert_allclose(lift[[0, 2, 6], :2], rows, rtol=0, atol=1e-11)
    velocity = model.velocity(Q0, in_order(S0, order))
    np.testing.assert_allclose(velocity, V0, rtol=0, atol=1e-11)


def test_mass_matrix_is_the_closed_form(model: ReducedModel, order: list[int]) -> None:
    """Thesis: (4.2.12), (4.3.26)."""
    rng = np.random.default_rng(2)
    for _ in range(50):
        q = model.robot.random(rng)
        ours = model.mass_matrix(q)[np.ix_(order, order)]
        assert_close(ours, mass_matrix(q[3], q[7]), 1e-12)
    ours = model.mass_matrix(Q0)[np.ix_(order, order)]
    upper = [697.474155423797, 278.721286317750, 6.086478066716, 0.0]
    upper += [118.620951561864, 2.608490600021, 0.0, 57.306816361588, 0.0, 45.0]
    np.testing.assert_allclose(ours[np.triu_indices(4)], upper, rtol=0, atol=2e-12)


def test_two_form_is_the_closed_form(model: ReducedModel, order: list[int]) -> None:
    """Thesis: Theorem 4.2.4, (4.2.14), (4.3.27)."""
    rng = np.random.default_rng(3)
    states = [(model.robot.random(rng), rng.uniform(-3, 3, 4)) for _ in range(100)]
    for q, s in [(Q0, S0), *states]:
        form = model.two_form(q, model.mass_matrix(q) @ in_order(s, order))
        expected = np.zeros((4, 4))
        expected[0, 1], expected[1, 0] = upsilon(q, s), -upsilon(q, s)
        assert_close(form[np.ix_(order, order)], expected, 1e-11)


def test_motion_in_momentum_form(model: ReducedModel, order: list[int]) -> None:
    s0 = in_order(S0, order)
    q, p = simulate_momentum_form(model, Q0, s0, law, list(STATES))
    for i, (q_end, v_end, p_end, energy, form) in enumerate(STATES.values()):
        assert_close(q[i], q_end, 1e-9)
        assert_close(p[i][order], p_end, 1e-9)
        s = np.linalg.solve(model.mass_matrix(q[i]), p[i])
        assert_close(model.velocity(q[i], s), v_end, 1e-9)
        assert model.hamiltonian(q[i], p[i]) == pytest.approx(energy, rel=1e-9)
        ours = model.two_form(q[i], p[i])[order[0], order[1]]
        assert ours == pytest.approx(form, rel=1e-9)
