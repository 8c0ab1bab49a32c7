"""Operations on the configuration space, against matrix exponentials and Pinocchio's poses."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest
from scipy.linalg import expm

from concur.errors import ShapeError
from concur.robot import Body, Inertia, Mechanism, joints
from tests.groups.oracles import twist_matrix
from tests.oracles import Pinocchio, assert_close, difference_quotient, random_tree, random_velocity

JOINTS = {
    "revolute": joints.Revolute((1, -2, 2)),
    "prismatic": joints.Prismatic((2, 3, -6)),
    "planar": joints.Planar(),
    "planar, slanted": joints.Planar((0.48, -0.6, 0.64)),
    "planar, upside down": joints.Planar((0, 0, -1)),
    "spherical": joints.Spherical(),
    "free": joints.Free(),
}
LINK = Inertia(1.0, moments=(0.1, 0.1, 0.1))


def single(name: str) -> Mechanism:
    return Mechanism("single", [Body("body", JOINTS[name], inertia=LINK)])


def displacement(robot: Mechanism, rng: np.random.Generator, size: float = 1.7) -> np.ndarray:
    """Draw one whose rotations stay below half a turn: three components of 1.7 are 2.94 rad."""
    return rng.uniform(-size, size, robot.nv)


@pytest.mark.parametrize("name", JOINTS)
def test_integrate_appends_the_exponential_of_the_displacement(name: str) -> None:
    """Thesis: (2.1.2)."""
    robot = single(name)
    oracle = Pinocchio(robot)
    rng = np.random.default_rng(0)
    for _ in range(20):
        q, dv = robot.random(rng), displacement(robot, rng, 3.0)
        moved = oracle.pose(q, "body") @ expm(twist_matrix(JOINTS[name].basis @ dv))
        assert_close(oracle.pose(robot.integrate(q, dv), "body"), moved, 1e-12)


@pytest.mark.parametrize("seed", range(10))
def test_difference_undoes_integrate(seed: int) -> None:
    robot = random_tree(seed)
    rng = np.random.default_rng(seed)
    q, dv = robot.random(rng), displacement(robot, rng)
    assert_close(robot.difference(q, robot.integrate(q, dv)), dv, 1e-12)


def test_difference_takes_the_shorter_way() -> None:
    robot = single("spherical")
    q = np.array([0.6, 0.0, 0.0, 0.8])
    expected = robot.difference(robot.neutral(), q)
    np.testing.assert_allclose(expected, [2 * np.arcsin(0.6), 0, 0], rtol=0, atol=1e-14)
    np.testing.assert_allclose(robot.difference(robot.neutral(), -q), expected, rtol=0, atol=1e-14)


@pytest.mark.parametrize("seed", range(10))
def test_rate_is_the_slope_of_integrate(seed: int) -> None:
    robot = random_tree(seed)
    oracle = Pinocchio(robot)
    rng = np.random.default_rng(seed)
    q, v = robot.random(rng), random_velocity(robot, rng)
    slope = difference_quotient(lambda h: robot.integrate(q, h * v))
    assert_close(robot.rate(q, v), slope, 1e-9)
    assert_close(robot.rate(q, v), oracle.rate(q, v), 1e-13)


@pytest.mark.parametrize("name", JOINTS)
def test_dexp_inverse_gives_the_rate_of_the_displacement(name: str) -> None:
    # Along x(t) with xdot = dexp_inverse(x, v) the body twist of exp(x) is v.
    robot = single(name)
    rng = np.random.default_rng(2)
    basis = JOINTS[name].basis
    for _ in range(5):
        x, v = displacement(robot, rng, 1.0), random_velocity(robot, rng)
        xdot = robot.dexp_inverse(x, v)
        slope = difference_quotient(
            lambda h, x=x, xdot=xdot: expm(twist_matrix(basis @ (x + h * xdot)))
        )
        twist = np.linalg.inv(expm(twist_matrix(basis @ x))) @ slope
        assert_close(twist, twist_matrix(basis @ v), 1e-9)


@pytest.mark.parametrize("name", JOINTS)
def test_bracket_is_the_commutator(name: str) -> None:
    robot, basis = single(name), JOINTS[name].basis
    rng = np.random.default_rng(3)
    a, b = random_velocity(robot, rng), random_velocity(robot, rng)
    bracket = np.array(ca.DM(robot.bracket(ca.SX(ca.DM(a)), ca.SX(ca.DM(b))))).ravel()
    commutator = twist_matrix(basis @ a) @ twist_matrix(basis @ b) - twist_matrix(
        basis @ b
    ) @ twist_matrix(basis @ a)
    assert_close(twist_matrix(basis @ bracket), commutator, 1e-14)


def test_random_configurations_repeat_and_lie_in_the_space() -> None:
    robot = random_tree(1)
    draws = np.array([robot.random(np.random.default_rng(k)) for k in range(100)])
    np.testing.assert_array_equal(draws[7], robot.random(np.random.default_rng(7)))
    for body in robot.bodies:
        part = draws[:, robot.q_slice(body.name)]
        if isinstance(body.joint, joints.Spherical):
            np.testing.assert_allclose(np.linalg.norm(part, axis=1), 1.0, rtol=0, atol=1e-14)
        if isinstance(body.joint, joints.Free):
            norms = np.linalg.norm(part[:, 3:], axis=1)
            np.testing.assert_allclose(norms, 1.0, rtol=0, atol=1e-14)
            assert np.abs(part[:, :3]).max() <= 1.0
        if isinstance(body.joint, joints.Revolute):
            assert 2.5 < np.abs(part).max() <= np.pi
    assert (draws.std(axis=0) > 0.1).all()


def test_random_attitudes_are_uniform() -> None:
    # The mean of R_zz over SO(3) is 0 and its variance 1/3.
    robot = single("spherical")
    rng = np.random.default_rng(4)
    q = np.array([robot.random(rng) for _ in range(4000)])
    r_zz = 1 - 2 * (q[:, 0] ** 2 + q[:, 1] ** 2)
    assert r_zz.mean() == pytest.approx(0.0, abs=0.03)
    assert r_zz.var() == pytest.approx(1 / 3, abs=0.02)


@pytest.mark.parametrize("name", ["spherical", "free"])
def test_quaternion_of_zero_norm(name: str) -> None:
    robot = single(name)
    q = robot.neutral()
    q[-1] = 0.0
    with pytest.raises(ShapeError, match=r"quaternion of `body` at q\[.*unit norm .*, got norm 0"):
        robot.check_configuration(q)


def test_checked_configuration_has_unit_quaternions() -> None:
    robot = single("free")
    q = np.array([1.0, 2.0, 3.0, 0.0, 0.6, 0.0, 0.8])
    checked = robot.check_configuration(q * [1, 1, 1, 1.0005, 1.0005, 1.0005, 1.0005])
    np.testing.assert_allclose(checked, q, rtol=0, atol=1e-15)
