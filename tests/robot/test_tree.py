"""The tree as a graph, and Jacobians relative to a body on the path."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest

from concur import robot as kinematics
from concur.robot import Body, Tree, joints
from tests.oracles import (
    Pinocchio,
    assert_close,
    random_tree,
)


def tree(parents):
    """Tree with bodies B1, B2, ... on the given parents, 0 for the inertial frame."""
    return Tree(
        "tree",
        [
            Body(f"B{i}", joints.Revolute((0, 0, 1)), f"B{parent}" if parent else None)
            for i, parent in enumerate(parents, start=1)
        ],
    )


def test_example_of_the_thesis():
    """Thesis: (3.3.29), Corollary 3.3.1, Corollary 3.3.2."""
    robot = tree([0, 1, 1, 3])  # (3.3.29)
    graph = kinematics.graph_matrix(robot)
    np.testing.assert_array_equal(
        graph, [[-1, 1, 0, 0, 0], [0, -1, 1, 0, 0], [0, -1, 0, 1, 0], [0, 0, 0, -1, 1]]
    )
    np.testing.assert_array_equal(
        kinematics.path_matrix(robot), [[1, 0, 0, 0], [1, 1, 0, 0], [1, 0, 1, 0], [1, 0, 1, 1]]
    )
    np.testing.assert_array_equal(
        graph.T @ graph,
        [
            [1, -1, 0, 0, 0],
            [-1, 3, -1, -1, 0],
            [0, -1, 1, 0, 0],
            [0, -1, 0, 2, -1],
            [0, 0, 0, -1, 1],
        ],
    )
    assert kinematics.branches(robot) == (("B1", "B2"), ("B1", "B3", "B4"))


@pytest.mark.parametrize("seed", range(20))
def test_identities_on_random_trees(seed):
    """Thesis: Corollary 3.3.1, Corollary 3.3.2."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(2, 15))
    parents = [0, *(int(rng.integers(1, i)) for i in range(2, count + 1))]
    robot = tree(parents)
    graph, paths = kinematics.graph_matrix(robot), kinematics.path_matrix(robot)
    assert graph.dtype.kind == paths.dtype.kind == "i"
    # Corollary 3.3.1: columns, rows along a path, neighbours.
    np.testing.assert_array_equal(graph.sum(axis=1), 0)
    neighbours = np.zeros((count + 1, count + 1), dtype=int)
    for i, parent in enumerate(parents, start=1):
        neighbours[i, parent] = neighbours[parent, i] = 1
    laplacian = np.diag(neighbours.sum(axis=0)) - neighbours
    np.testing.assert_array_equal(graph.T @ graph, laplacian)
    # Corollary 3.3.2: a path leads from the inertial frame to its body.
    ends = np.hstack([-np.ones((count, 1), dtype=int), np.eye(count, dtype=int)])
    np.testing.assert_array_equal(paths @ graph, ends)
    np.testing.assert_array_equal(paths @ graph[:, 1:], np.eye(count))
    for i in range(count):
        assert tuple(np.flatnonzero(paths[i])) == robot.path(i)
    # Branches cover all bodies; their ends carry nothing.
    branches = kinematics.branches(robot)
    assert {name for branch in branches for name in branch} == {b.name for b in robot.bodies}
    leaves = [f"B{i}" for i in range(1, count + 1) if i not in parents]
    assert sorted(branch[-1] for branch in branches) == sorted(leaves)
    # The rows that belong to a body are those of the joints that move it.
    q = robot.random(rng)
    moves = [np.abs(jacobian(robot, q, body.name)).sum(axis=0) > 0 for body in robot.bodies]
    np.testing.assert_array_equal(moves, paths.astype(bool))


def jacobian(robot, q, body):
    return np.array(ca.evalf(kinematics.jacobian(robot, ca.SX(ca.DM(q)), body)))


TREES = range(8)


def hat(twist: np.ndarray) -> np.ndarray:
    v, w = twist[:3], twist[3:]
    matrix = np.zeros((4, 4))
    matrix[:3, :3] = [[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]]
    matrix[:3, 3] = v
    return matrix


@pytest.mark.parametrize("seed", TREES)
def test_jacobian_relative_to_an_ancestor(seed: int) -> None:
    # J = J_body - Ad(ancestor to body) J_ancestor.
    robot = random_tree(seed)
    oracle = Pinocchio(robot)
    q = robot.random(np.random.default_rng(seed))
    symbol = ca.SX.sym("q", robot.nq)
    body = robot.bodies[-1].name
    for ancestor in robot.path(robot.index(body))[:-1]:
        name = robot.bodies[ancestor].name
        expression = kinematics.jacobian(robot, symbol, body, name)
        ours = np.array(ca.Function("j", [symbol], [ca.densify(expression)])(q))
        relative = np.linalg.inv(oracle.pose(q, body)) @ oracle.pose(q, name)
        rotation, translation = relative[:3, :3], relative[:3, 3]
        adjoint = np.zeros((6, 6))
        adjoint[:3, :3] = adjoint[3:, 3:] = rotation
        adjoint[:3, 3:] = hat(np.array([0, 0, 0, *translation]))[:3, :3] @ rotation
        expected = oracle.jacobian(q, body) - adjoint @ oracle.jacobian(q, name)
        assert_close(ours, expected, 1e-12)
