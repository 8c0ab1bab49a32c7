"""Graph and path matrices of section 3.3.1."""

import casadi as ca
import numpy as np
import pytest

from concur import robot as kinematics
from concur.robot import Body, Tree, joints


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


def test_two_tips_on_one_arm():
    robot = tree([0, 1, 2, 3, 3])
    np.testing.assert_array_equal(
        kinematics.path_matrix(robot),
        [[1, 0, 0, 0, 0], [1, 1, 0, 0, 0], [1, 1, 1, 0, 0], [1, 1, 1, 1, 0], [1, 1, 1, 0, 1]],
    )
    assert kinematics.branches(robot) == (("B1", "B2", "B3", "B4"), ("B1", "B2", "B3", "B5"))


def test_one_body_is_a_branch():
    assert kinematics.branches(tree([0])) == (("B1",),)


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
