"""Identities that the dynamics of every robot satisfies."""

from __future__ import annotations

from dataclasses import replace

import casadi as ca
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

from concur.robot import Body, Inertia, Mechanism, Pose, joints, least_eigenvalue
from tests.oracles import (
    Pinocchio,
    assert_close,
    difference_quotient,
    random_tree,
    random_velocity,
)

TREES = range(12)


@pytest.mark.by_default(4)
@pytest.mark.parametrize("seed", TREES)
def test_rate_of_the_mass_matrix_is_factor_plus_transpose(seed: int) -> None:
    robot = random_tree(seed)
    oracle = Pinocchio(robot)
    rng = np.random.default_rng(seed)
    for _ in range(3):
        q, v = robot.random(rng), random_velocity(robot, rng)
        qdot = oracle.rate(q, v)
        rate = difference_quotient(lambda h, q=q, qdot=qdot: oracle.mass_matrix(q + h * qdot))
        factor = robot.coriolis(q, v)
        assert_close(factor + factor.T, rate, 1e-8)


@pytest.mark.parametrize("seed", TREES)
def test_factor_times_velocity_is_the_bias_without_gravity(seed: int) -> None:
    robot = random_tree(seed)
    oracle = Pinocchio(robot)
    rng = np.random.default_rng(seed)
    for _ in range(3):
        q, v = robot.random(rng), random_velocity(robot, rng)
        coriolis_forces = oracle.bias(q, v) - oracle.bias(q, np.zeros(robot.nv))
        assert_close(robot.coriolis(q, v) @ v, coriolis_forces, 1e-10)


@pytest.mark.parametrize("seed", TREES)
def test_factor_is_linear_in_the_velocity(seed: int) -> None:
    # Only then is C(q, v) w meaningful for a velocity w of a comparison motion.
    robot = random_tree(seed)
    rng = np.random.default_rng(seed)
    q, v, w = robot.random(rng), random_velocity(robot, rng), random_velocity(robot, rng)
    together = robot.coriolis(q, 2.0 * v - 3.0 * w)
    assert_close(together, 2.0 * robot.coriolis(q, v) - 3.0 * robot.coriolis(q, w), 1e-12)


@pytest.mark.parametrize("seed", TREES)
def test_power_of_the_forces_is_the_rate_of_the_energy(seed: int) -> None:
    robot = random_tree(seed)
    oracle = Pinocchio(robot)
    rng = np.random.default_rng(seed)
    q, v = robot.random(rng), random_velocity(robot, rng)
    tau = rng.uniform(-5.0, 5.0, robot.nv)
    vdot = np.linalg.solve(robot.mass_matrix(q), tau - robot.bias(q, v))
    qdot = robot.rate(q, v)

    def energy(h: float) -> float:
        moved = q + h * qdot, v + h * vdot
        return oracle.kinetic_energy(*moved) + oracle.potential_energy(moved[0])

    scale = np.abs(tau * v).max() + np.abs(robot.bias(q, v) * v).max()
    power = difference_quotient(energy, step=1e-4)
    assert power == pytest.approx(tau @ v, abs=1e-7 * scale)


@pytest.mark.parametrize("seed", TREES)
def test_mass_matrix_is_symmetric_and_positive(seed: int) -> None:
    robot = random_tree(seed)
    matrix = robot.mass_matrix(robot.random(np.random.default_rng(seed)))
    assert_close(matrix, matrix.T, 1e-14)
    assert np.linalg.eigvalsh(matrix)[0] > 0.0


def _turned(robot: Mechanism, name: str, rotation: np.ndarray, shift: np.ndarray) -> Mechanism:
    """Describe the same robot with another frame of one body: turned by R and shifted by p."""
    new_in_old = np.eye(4)
    new_in_old[:3, :3], new_in_old[:3, 3] = rotation, shift
    bodies = []
    for body in robot.bodies:
        if body.name == name:
            inertia = Inertia(
                body.inertia.mass,
                rotation.T @ (np.array(body.inertia.com) - shift),
                rotation.T @ body.inertia.tensor @ rotation,
            )
            joint = type(body.joint)(rotation.T @ np.array(body.joint.axis))
            placement = _pose(body.placement.matrix @ new_in_old)
            body = replace(body, joint=joint, placement=placement, inertia=inertia)
        elif body.parent == name:
            placement = _pose(np.linalg.inv(new_in_old) @ body.placement.matrix)
            body = replace(body, placement=placement)
        bodies.append(body)
    return replace(robot, bodies=bodies)


def _pose(matrix: np.ndarray) -> Pose:
    return Pose(matrix[:3, 3], Rotation.from_matrix(matrix[:3, :3]).as_quat())


@pytest.mark.by_default(8)
@pytest.mark.parametrize("seed", TREES)
@pytest.mark.parametrize("kind", [joints.Revolute, joints.Prismatic])
def test_choice_of_a_joint_frame_does_not_matter(seed: int, kind: type[joints.Joint]) -> None:
    # A revolute joint's frame may slide along its axis, a prismatic joint's anywhere; both turn.
    robot = random_tree(seed)
    rng = np.random.default_rng(seed)
    body = next(body for body in robot.bodies if isinstance(body.joint, kind))
    rotation = Rotation.from_rotvec(rng.normal(size=3)).as_matrix()
    along = 0.7 * np.array(body.joint.axis)
    shift = along if kind is joints.Revolute else rng.normal(size=3)
    other = _turned(robot, body.name, rotation, shift)
    q, v = robot.random(rng), random_velocity(robot, rng)
    assert_close(other.mass_matrix(q), robot.mass_matrix(q), 1e-11)
    assert_close(other.bias(q, v), robot.bias(q, v), 1e-11)
    assert_close(other.momentum(q, v), robot.momentum(q, v), 1e-11)


def _motion(
    robot: Mechanism, q: np.ndarray, v: np.ndarray, tau: np.ndarray, duration: float
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Let a robot move under constant forces; the states passed."""

    def rate(t: float, x: np.ndarray) -> np.ndarray:
        q, v = x[: robot.nq], x[robot.nq :]
        vdot = np.linalg.solve(robot.mass_matrix(q), tau - robot.bias(q, v))
        return np.concatenate([robot.rate(q, v), vdot])

    solution = solve_ivp(
        rate,
        (0.0, duration),
        np.concatenate([q, v]),
        method="DOP853",
        t_eval=np.linspace(0.0, duration, 11),
        rtol=1e-11,
        atol=1e-12,
    )
    assert solution.success
    return [(x[: robot.nq], x[robot.nq :]) for x in solution.y.T]


def _free_flyer() -> Mechanism:
    cube = Inertia(40.0, (0.05, -0.02, 0.01), ((3.0, 0.1, 0.2), (0.1, 2.5, -0.3), (0.2, -0.3, 3.5)))
    link = Inertia(3.0, (0.0, 0.3, 0.02), (0.1, 0.02, 0.11))
    return Mechanism(
        "free flyer",
        [
            Body("cube", joints.Free(), inertia=cube),
            Body("upper", joints.Revolute((0, 0, 1)), "cube", Pose((0.4, 0.1, 0.2)), link),
            Body("fore", joints.Spherical(), "upper", Pose((0, 0.6, 0)), link),
            Body("slide", joints.Prismatic((1, 2, 0)), "cube", Pose((-0.3, 0, 0.1)), link),
        ],
    )


def test_released_arm_does_not_change_the_momentum_of_a_free_flyer() -> None:
    robot = _free_flyer()
    oracle = Pinocchio(robot)
    rng = np.random.default_rng(5)
    q, v = robot.random(rng), random_velocity(robot, rng)
    tau = np.concatenate([np.zeros(6), [1.0, -0.4, 0.3, 0.2, 2.0]])  # joint drives act inside
    states = _motion(robot, q, v, tau, 2.0)
    before = oracle.momentum(*states[0])
    for state in states:
        assert_close(oracle.momentum(*state), before, 1e-9)
        assert_close(robot.momentum(*state), before, 1e-9)
    travelled = np.abs(states[-1][0] - states[0][0])
    assert travelled.max() > 0.5


def test_force_on_a_free_flyer_changes_its_momentum() -> None:
    # The counterpart of the scene above: it would see a momentum that never changes.
    robot = _free_flyer()
    oracle = Pinocchio(robot)
    q = robot.neutral()
    tau = np.concatenate([[2.0, 0.0, 0.0], np.zeros(8)])
    states = _motion(robot, q, np.zeros(robot.nv), tau, 0.01)
    assert oracle.momentum(*states[-1])[0] == pytest.approx(0.02, rel=1e-3)


@pytest.mark.parametrize("seed", range(3))
def test_free_motion_of_a_tree_keeps_its_energy(seed: int) -> None:
    robot = random_tree(seed)
    oracle = Pinocchio(robot)
    rng = np.random.default_rng(seed)
    q, v = robot.random(rng), 0.5 * random_velocity(robot, rng)
    states = _motion(robot, q, v, np.zeros(robot.nv), 0.3)
    energies = [oracle.kinetic_energy(q, v) + oracle.potential_energy(q) for q, v in states]
    swing = np.ptp([oracle.potential_energy(q) for q, _ in states])
    assert swing > 0.1
    assert np.ptp(energies) < 1e-8 * max(1.0, swing)


def test_symbolic_and_numeric_calls_agree_on_shapes() -> None:
    robot = random_tree(0)
    q, v = ca.SX.sym("q", robot.nq), ca.SX.sym("v", robot.nv)
    rng = np.random.default_rng(0)
    numbers = robot.random(rng), random_velocity(robot, rng)
    graph = ca.Function("bias", [q, v], [robot.bias(q, v)])
    expected = Pinocchio(robot).bias(*numbers)
    assert_close(np.array(graph(*numbers)).ravel(), expected, 1e-10)


@pytest.mark.parametrize("size", [1, 2, 3, 6, 12])
def test_least_eigenvalue_is_that_of_lapack_for_equal_and_close_ones_too(size: int) -> None:
    symbol, rng = ca.SX.sym("matrix", size, size), np.random.default_rng(size)
    least = ca.Function("least", [symbol], [least_eigenvalue(symbol)], {"cse": True})
    for equal in (0, 1, size // 2, size - 1):
        for scale in (1e-6, 1.0, 1e9):
            turn = np.linalg.qr(rng.normal(size=(size, size)))[0]
            values = scale * 10.0 ** rng.uniform(-4, 1, size)
            values[: equal + 1] = values.min() * (1.0 + 1e-7 * rng.random())
            matrix = turn @ np.diag(values) @ turn.T
            matrix = (matrix + matrix.T) / 2
            expected = np.linalg.eigvalsh(matrix)[0]
            assert abs(float(least(matrix)) - expected) < 1e-14 * values.max()
    diagonal = np.diag(rng.uniform(1, 2, size))
    assert_close(float(least(diagonal)), diagonal.diagonal().min(), 1e-14)
    broken = diagonal.copy()
    broken[-1, -1] = -1e-9
    for bad in (broken, 0 * diagonal, np.nan * diagonal):
        assert float(least(bad)) == 0.0
