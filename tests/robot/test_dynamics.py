"""Dynamics against Pinocchio, and by properties: factors, energy, momentum, choice of frames."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import casadi as ca
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

import concur as cc
from concur.robot import (
    Body,
    Inertia,
    Mechanism,
    Pose,
    articulated,
    forward_dynamics,
    joints,
    least_eigenvalue,
)
from tests.oracles import (
    CASE_STUDY,
    Pinocchio,
    assert_close,
    crane,
    difference_quotient,
    random_rover,
    random_tree,
    random_tree_parts,
    random_velocity,
    rover,
)

RELATIVE = 1e-10
TREES = range(100)

ROBOTS: dict[str, Callable[[], Mechanism]] = {
    "rover of 4.6.1": rover,
    "rover of 5.5": lambda: rover(CASE_STUDY),
    "crane of 4.6.2": crane,
    "random rover": lambda: random_rover(0).robot,
}


def _ends(robot: Mechanism, seed: int) -> list[str]:
    """Bodies that carry no other, and one more: what is wrong on the way to them shows in them."""
    carriers = {body.parent for body in robot.bodies}
    drawn = robot.bodies[seed % len(robot.bodies)].name
    return [b.name for b in robot.bodies if b.name not in carriers or b.name == drawn]


def _compare(robot: Mechanism, bodies: list[str], seed: int, states: int) -> None:
    oracle = Pinocchio(robot)
    rng = np.random.default_rng(seed)
    for _ in range(states):
        q, v = robot.random(rng), random_velocity(robot, rng)
        vdot = random_velocity(robot, rng)
        for name, actual, expected in (
            ("mass matrix", robot.mass_matrix(q), oracle.mass_matrix(q)),
            ("bias", robot.bias(q, v), oracle.bias(q, v)),
            (
                "inverse dynamics",
                robot.inverse_dynamics(q, v, vdot),
                oracle.inverse_dynamics(q, v, vdot),
            ),
            ("momentum", robot.momentum(q, v), oracle.momentum(q, v)),
            ("momentum matrix", robot.momentum_matrix(q) @ v, oracle.momentum(q, v)),
            ("kinetic energy", robot.kinetic_energy(q, v), oracle.kinetic_energy(q, v)),
            ("potential energy", robot.potential_energy(q), oracle.potential_energy(q)),
        ):
            assert_close(actual, expected, RELATIVE, name=name)
        for body in bodies:
            jacobian = oracle.jacobian(q, body)
            for name, actual, expected in (
                ("pose", robot.pose(q, body), oracle.pose(q, body)),
                ("Jacobian", robot.jacobian(q, body), jacobian),
                ("twist", robot.twist(q, v, body), jacobian @ v),
                (
                    "velocity product",
                    robot.velocity_product(q, v, body),
                    oracle.velocity_product(q, v, body),
                ),
            ):
                assert_close(actual, expected, RELATIVE, name=f"{name} of {body}")


@pytest.mark.parametrize("name", ROBOTS)
def test_dynamics_of_wheeled_robots(name: str) -> None:
    robot = ROBOTS[name]()
    _compare(robot, [body.name for body in robot.bodies], seed=1, states=20)


@pytest.mark.by_default(3)
@pytest.mark.parametrize("seed", TREES)
def test_dynamics_of_a_random_tree(seed: int) -> None:
    """Thesis: (3.2.12), (3.3.31), (4.4.28)."""
    robot = random_tree(seed)
    _compare(robot, _ends(robot, seed), seed=seed, states=3)


def test_random_trees_are_what_they_claim() -> None:
    # The generator is only worth something if every joint occurs, also as the base and inside.
    trees = [random_tree_parts(seed)[1] for seed in TREES]
    kinds = {"Fixed", "Revolute", "Prismatic", "Planar", "Spherical", "Free"}
    for bodies in trees:
        assert 7 <= len(bodies) <= 10
        assert kinds == {type(body.joint).__name__ for body in bodies}
    assert kinds == {type(bodies[0].joint).__name__ for bodies in trees}
    assert any(body.inertia.mass == 0.0 for bodies in trees for body in bodies)
    forks = [len({body.parent for body in bodies}) < len(bodies) for bodies in trees]
    assert any(forks)
    normals = {
        body.joint.normal
        for bodies in trees
        for body in bodies
        if isinstance(body.joint, joints.Planar)
    }
    assert (0.0, 0.0, -1.0) in normals
    assert len(normals) > 20


FEW = range(12)


@pytest.mark.by_default(4)
@pytest.mark.parametrize("seed", FEW)
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


@pytest.mark.by_default(4)
@pytest.mark.parametrize("seed", FEW)
def test_factor_times_velocity_is_the_bias_without_gravity(seed: int) -> None:
    robot = random_tree(seed)
    oracle = Pinocchio(robot)
    rng = np.random.default_rng(seed)
    for _ in range(3):
        q, v = robot.random(rng), random_velocity(robot, rng)
        coriolis_forces = oracle.bias(q, v) - oracle.bias(q, np.zeros(robot.nv))
        assert_close(robot.coriolis(q, v) @ v, coriolis_forces, 1e-10)


@pytest.mark.parametrize("seed", FEW)
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


@pytest.mark.by_default(3)
@pytest.mark.parametrize("seed", FEW)
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


@pytest.mark.by_default(6)
@pytest.mark.parametrize("seed", range(16))
def test_factors_solve_with_the_mass_matrix(seed: int) -> None:
    robot = random_tree(seed)
    q, forces = ca.SX.sym("q", robot.nq), ca.SX.sym("forces", robot.nv, 3)
    weights = ca.SX.sym("weights", 3)
    factors = articulated(robot, q)
    left = factors.inwards(forces)
    given = factors.yielding(left)
    inputs = [q, forces, weights]
    solve = ca.Function("solve", inputs, [left.T @ given, factors.outwards(given @ weights)])

    rng = np.random.default_rng(seed)
    for _ in range(3):
        at = robot.random(rng)
        numbers, chosen = rng.normal(size=(robot.nv, 3)), rng.normal(size=3)
        mass = Pinocchio(robot).mass_matrix(at)
        wanted = np.linalg.solve(mass, numbers)
        product, accelerations = map(np.array, solve(at, numbers, chosen))
        accuracy = 1e-14 * np.linalg.cond(mass)
        assert_close(product, numbers.T @ wanted, accuracy)
        assert_close(accelerations[:, 0], wanted @ chosen, accuracy)


@pytest.mark.extended
def test_forward_dynamics_equal_those_of_pinocchio() -> None:
    for seed in range(8):
        robot = random_tree(seed)
        given, found = _forward_dynamics(robot, seed)
        assert_close(found, Pinocchio(robot).forward_dynamics(*given), 1e-9)


def _forward_dynamics(
    robot: cc.Mechanism, seed: int
) -> tuple[tuple[np.ndarray, np.ndarray, np.ndarray], np.ndarray]:
    """State with forces, and the accelerations."""
    symbols = [ca.SX.sym("x", size) for size in (robot.nq, robot.nv, robot.nv)]
    graph = ca.Function("accelerations", symbols, [forward_dynamics(robot, *symbols)])
    rng = np.random.default_rng(seed)
    given = robot.random(rng), rng.normal(size=robot.nv), rng.normal(size=robot.nv)
    return given, np.array(graph(*given))[:, 0]
