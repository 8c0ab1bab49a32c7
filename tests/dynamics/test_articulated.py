"""The factors of the mass matrix that articulated bodies give, against one of others."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest

import concur as cc
from concur.robot import articulated, forward_dynamics
from tests.benchmarks._robots import chain
from tests.oracles import Pinocchio, assert_close, random_robot, random_tree


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
def test_length_grows_with_the_joints_and_no_faster() -> None:
    lengths = []
    for count in (12, 24, 48):
        robot = chain(count)
        q, forces = ca.SX.sym("q", robot.nq), ca.SX.sym("forces", robot.nv)
        factors = articulated(robot, q)
        found = factors.outwards(factors.yielding(factors.inwards(forces)))
        graph = ca.Function("solve", [q, forces], [found], {"cse": True})
        lengths.append(graph.n_instructions())
    added = np.diff(lengths)
    assert added[1] < 2.1 * added[0], lengths


def test_forward_dynamics_equal_those_of_pinocchio() -> None:
    for seed in range(8):
        robot = random_tree(seed)
        given, found = _forward_dynamics(robot, seed)
        assert_close(found, Pinocchio(robot).forward_dynamics(*given), 1e-9)


def test_forces_of_the_found_accelerations_are_those_given() -> None:
    for seed, base in enumerate(("Free", "Planar", "Fixed", "Spherical")):
        robot = random_robot(seed, base=base)
        (q, v, forces), found = _forward_dynamics(robot, seed)
        assert_close(robot.inverse_dynamics(q, v, found), forces, 1e-9)


def _forward_dynamics(
    robot: cc.Mechanism, seed: int
) -> tuple[tuple[np.ndarray, np.ndarray, np.ndarray], np.ndarray]:
    """State with forces, and the accelerations."""
    symbols = [ca.SX.sym("x", size) for size in (robot.nq, robot.nv, robot.nv)]
    graph = ca.Function("accelerations", symbols, [forward_dynamics(robot, *symbols)])
    rng = np.random.default_rng(seed)
    given = robot.random(rng), rng.normal(size=robot.nv), rng.normal(size=robot.nv)
    return given, np.array(graph(*given))[:, 0]
