"""The car with a crane, Example 4.6.2: closed forms, reference numbers, singular configurations.

The reference numbers come from a simulation with multipliers, outside this package; the order of
the shape is (psi1, psi2, phi1, phi2). tests/reduction/test_crane.py holds the same numbers
against the robot built in Python, with other closed forms.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from concur import robots
from concur.errors import ShapeError
from concur.reduction import AuditStatus, ReducedModel, reduce
from concur.robot import Mechanism, Pose
from concur.simulation import Plant
from tests.oracles import CraneNumbers, Pinocchio, assert_close, crane_rows, difference_quotient
from tests.reduction.test_crane import P0, Q0, S0, STATES, V0, law, upsilon

N = CraneNumbers()
ORDER = [0, 2, 1, 3]  # psi1, psi2, phi1, phi2 among the shape velocities of the model
DRIVEN = ("steering", "column", "left_wheel", "right_wheel", "boom")


@pytest.fixture(scope="module")
def robot() -> Mechanism:
    return robots.crane_car()


@pytest.fixture(scope="module")
def model(robot: Mechanism) -> ReducedModel:
    return reduce(robot)


@pytest.fixture(scope="module")
def momentum(model: ReducedModel) -> np.ndarray:
    return np.asarray(model.mass_matrix(Q0) @ S0[ORDER])


def inertia_matrix(phi2: float) -> np.ndarray:
    """K of the example in closed form, left-trivialised, in the order of v."""
    k22, k33, j_t, jy4 = N.steering, N.column(phi2), N.turning(phi2), N.j[3][1]
    upper = np.zeros((8, 8))
    upper[0, 0] = upper[1, 1] = N.total
    upper[1, 2], upper[2, 2] = N.first, j_t
    upper[2, 3] = upper[3, 3] = k22
    upper[2, 4] = upper[4, 4] = k33
    upper[5, 5] = upper[6, 6] = jy4
    upper[7, 7] = N.j[5][1]
    return upper + np.triu(upper, 1).T


def test_inertia_matrix_is_the_closed_form(robot: Mechanism) -> None:
    oracle, rng = Pinocchio(robot), np.random.default_rng(0)
    for q in (Q0, *(robot.random(rng) for _ in range(20))):
        expected = inertia_matrix(q[7])
        assert_close(robot.mass_matrix(q), expected, 1e-13)
        assert_close(oracle.mass_matrix(q), expected, 1e-12)


def test_rows_are_the_one_forms(robot: Mechanism) -> None:
    rows, rng = crane_rows(N.l, N.b, N.c), np.random.default_rng(1)
    names = ["chassis: no side slip", "left_wheel: no side slip"]
    names += ["left_wheel: rolling", "right_wheel: rolling"]
    order = [robot.constraint_names.index(name) for name in names]
    for q in (robot.random(rng) for _ in range(10)):
        np.testing.assert_allclose(robot.constraints(q)[order], rows(q), rtol=0, atol=1e-14)


def test_numbers_at_the_start(model: ReducedModel, momentum: np.ndarray) -> None:
    lift = model.lift(Q0)[0][:, ORDER]
    rows = [
        [0.727399536757, 0.311742658610],
        [0, 0],
        [0.106208623217, 0.045517981379],
        [5.162306908346, 1.212417246434],
    ]
    np.testing.assert_allclose(lift[[0, 1, 2, 6], :2], rows, rtol=0, atol=1e-12)
    np.testing.assert_allclose(lift[[0, 1, 2, 6], 2:], np.zeros((4, 2)), rtol=0, atol=1e-15)
    v = model.velocity(Q0, S0[ORDER])
    np.testing.assert_allclose(v, V0, rtol=0, atol=1e-12)
    mass = model.mass_matrix(Q0)[np.ix_(ORDER, ORDER)]
    upper = [697.474155423797, 278.721286317750, 6.086478066716, 0, 118.620951561864]
    upper += [2.608490600021, 0, 57.306816361588, 0, 45]
    np.testing.assert_allclose(mass[np.triu_indices(4)], upper, rtol=0, atol=2e-12)
    np.testing.assert_allclose(momentum[ORDER], P0, rtol=0, atol=2e-12)
    assert model.hamiltonian(Q0, momentum) == pytest.approx(1126.117740198949, abs=1e-10)
    body = (model.robot.mass_matrix(Q0) @ v)[[0, 1, 2, 6]]
    expected = [1545.931844046827, N.first * 0.198003218997, 518.013137264996, 5.061613519789]
    np.testing.assert_allclose(body, expected, rtol=0, atol=1e-9)
    form = model.two_form(Q0, momentum)[ORDER[0], ORDER[1]]
    assert form == pytest.approx(-39.0173836575684, abs=1e-11)
    assert form == pytest.approx(upsilon(Q0, S0), abs=1e-11)


def test_curvature_is_the_derivative_of_the_connection(model: ReducedModel) -> None:
    # [A_1, A_2] = 0: B_12 = dA_2 / dpsi1, here by differences of the lift.
    step = np.eye(8)[3]
    slope = difference_quotient(lambda h: -model.lift(Q0 + h * step)[0][[0, 1, 2, 6], ORDER[1]])
    expected = [0.023090367263, 0, -0.137940966872, -0.643724512067]
    np.testing.assert_allclose(slope, expected, rtol=0, atol=1e-10)
    psi1 = Q0[3]
    closed = [N.b * (N.c - N.l * np.sin(psi1)), 0, N.b * np.cos(psi1), 2 * N.c * np.cos(psi1)]
    factor = -N.l / (N.l - N.c * np.sin(psi1)) ** 2
    np.testing.assert_allclose(factor * np.array(closed), expected, rtol=0, atol=1e-12)


def test_motion_with_multipliers(robot: Mechanism) -> None:
    plant = Plant(replace(robot, actuated=DRIVEN))

    def rate(t: float, x: np.ndarray) -> np.ndarray:
        q, v = x[:8], x[8:]
        vdot, _ = plant.acceleration(q, v, law(t, q, v)[3:])
        return np.concatenate([robot.rate(q, v), vdot])

    # The velocity that is printed is rounded; the exact one obeys the wheels.
    start = np.concatenate([Q0, reduce(robot).velocity(Q0, S0[ORDER])])
    motion = solve_ivp(
        rate, (0, 5), start, method="DOP853", t_eval=list(STATES), rtol=1e-12, atol=1e-12
    )
    for x, (q, v, *_) in zip(motion.y.T, STATES.values(), strict=True):
        assert_close(x[:8], q, 1e-9)
        assert_close(x[8:], v, 1e-9)


SHORT = 0.6
"""A wheelbase below c = 0.7 m: the turning centre can come to lie on the left wheel."""
SINGULAR = float(np.arcsin(SHORT / N.c))


@pytest.fixture(scope="module")
def short(robot: Mechanism) -> ReducedModel:
    bodies = [
        replace(body, placement=Pose((SHORT, 0, 0))) if body.name == "steering" else body
        for body in robot.bodies
    ]
    return reduce(replace(robot, bodies=bodies))


def steered(angle: float) -> np.ndarray:
    q = Q0.copy()
    q[3] = angle
    return q


def test_regularity_goes_to_zero_with_the_turning_centre_at_the_wheel(short: ReducedModel) -> None:
    # det C_d = -b (l - c sin psi1): linear in the distance from the singular angle.
    values = [short.regularity(steered(SINGULAR - d)) for d in (1e-1, 1e-2, 1e-3, 0.0)]
    assert values[0] > 1e-2
    np.testing.assert_allclose(np.divide(values[1:3], values[:2]), 0.1, rtol=0.2)
    assert values[3] < 1e-12


@pytest.mark.parametrize("sign", [1, -1])
def test_steering_at_a_right_angle_is_regular(
    model: ReducedModel, short: ReducedModel, sign: int
) -> None:
    # The fields printed in the source have cos psi1 below the line there; the lift has not.
    q = steered(sign * np.pi / 2)
    for each, l in ((model, N.l), (short, SHORT)):
        assert each.regularity(q) > 1e-2
        lift = each.lift(q)[0][:, ORDER]
        # Turning about the middle of the rear axle: w = sin psi1 (c psi1' + b psi2') / D.
        expected = np.array([N.c, N.b]) * sign / (l - sign * N.c)
        np.testing.assert_allclose(lift[0, :2], [0, 0], rtol=0, atol=1e-14)
        np.testing.assert_allclose(lift[2, :2], expected, rtol=1e-12)


def test_audit_looks_at_the_working_set(short: ReducedModel) -> None:
    # Random angles lie on both sides of the singular one; a task may stay on one.
    anywhere = short.audit()["NHR3"]
    assert anywhere.status is AuditStatus.FAILS
    assert "32 random configurations" in anywhere.why
    gentle = [steered(angle) for angle in np.linspace(-0.5, 0.5, 11)]
    row = short.audit(configurations=gentle)["NHR3"]
    assert row.status is AuditStatus.HOLDS
    assert "11 given configurations" in row.why
    across = [steered(angle) for angle in np.linspace(0.5, 1.5, 11)]
    row = short.audit(configurations=across)["NHR3"]
    assert row.status is AuditStatus.FAILS
    assert "changes its sign" in row.why
    assert short.audit(configurations=steered(SINGULAR))["NHR3"].values["ratio"] < 1e-12
    assert short.audit(configurations=gentle)["NHR2"] == short.audit()["NHR2"]


@pytest.mark.parametrize("wrong", [[], np.zeros((2, 7)), np.zeros((1, 1, 8))])
def test_working_set_of_another_robot_is_refused(short: ReducedModel, wrong: object) -> None:
    with pytest.raises(ShapeError, match="configurations"):
        short.audit(configurations=wrong)
