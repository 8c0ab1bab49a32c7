"""Dynamics against Pinocchio, on the rovers of the sources and on random trees."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from concur.robot import Mechanism, joints
from tests.oracles import (
    CASE_STUDY,
    Pinocchio,
    assert_close,
    crane,
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


@pytest.mark.by_default(15)
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
