"""Dynamics against Pinocchio, on the rovers of the sources and on random trees."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from concur.mechanism import joints
from concur.multibody import Mechanism
from tests.oracles import (
    CASE_STUDY,
    Pinocchio,
    assert_close,
    crane,
    random_rover,
    random_tree,
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


def _compare(robot: Mechanism, seed: int, states: int) -> None:
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
            ("kinetic energy", robot.kinetic_energy(q, v), oracle.kinetic_energy(q, v)),
            ("potential energy", robot.potential_energy(q), oracle.potential_energy(q)),
        ):
            assert_close(actual, expected, RELATIVE, name=name)
        for body in (body.name for body in robot.bodies):
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
    _compare(ROBOTS[name](), seed=1, states=20)


@pytest.mark.parametrize("seed", TREES)
def test_dynamics_of_a_random_tree(seed: int) -> None:
    _compare(random_tree(seed), seed=seed, states=3)


def test_random_trees_are_what_they_claim() -> None:
    # The generator is only worth something if every joint occurs, also as the base and inside.
    trees = [random_tree(seed) for seed in TREES]
    kinds = {"Fixed", "Revolute", "Prismatic", "Planar", "Spherical", "Free"}
    for tree in trees:
        assert 7 <= len(tree.bodies) <= 10
        assert kinds == {type(body.joint).__name__ for body in tree.bodies}
    assert kinds == {type(tree.base.joint).__name__ for tree in trees}
    assert any(body.inertia.mass == 0.0 for tree in trees for body in tree.bodies)
    forks = [len({body.parent for body in tree.bodies}) < len(tree.bodies) for tree in trees]
    assert any(forks)
    normals = {
        body.joint.normal
        for tree in trees
        for body in tree.bodies
        if isinstance(body.joint, joints.Planar)
    }
    assert (0.0, 0.0, -1.0) in normals
    assert len(normals) > 20
