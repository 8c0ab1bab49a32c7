"""Robots that float: accelerations at full order and reduced, against two other libraries."""

from __future__ import annotations

import numpy as np
import pytest

import concur as cc
from concur.robot import Mechanism
from concur.simulation import Plant
from tests.oracles import (
    BASES,
    Pinocchio,
    assert_close,
    random_floater,
)

SHIPPED = (
    "two_handed_spacecraft",
    "planar_floater",
    "free_flyer",
    "station_arm",
    "servicer",
    "wheel_satellite",
    "orbital_crawler",
)
ROBOTS = {name: getattr(cc.robots, name)() for name in SHIPPED} | {
    base: random_floater(base, seed) for seed, base in enumerate(BASES)
}
every = pytest.mark.parametrize("name", ROBOTS)


def states(robot: Mechanism, count: int, seed: int):  # type: ignore[no-untyped-def]
    """Draw configurations, velocities, and controls of the size that the velocities need."""
    rng = np.random.default_rng(seed)
    mass = Pinocchio(robot).mass_matrix(robot.random(rng))
    size = 1.0 / np.diag(np.linalg.inv(mass))[list(robot.actuated_freedoms)]
    for _ in range(count):
        yield robot.random(rng), rng.uniform(-1, 1, robot.nv), size * rng.uniform(-1, 1, len(size))


def forces(robot: Mechanism, u: np.ndarray) -> np.ndarray:
    tau = np.zeros(robot.nv)
    tau[list(robot.actuated_freedoms)] = u
    return tau


@every
def test_full_order_acceleration_is_that_of_pinocchio(name: str) -> None:
    """Thesis: (5.1.4), (5.1.6)."""
    robot = ROBOTS[name]
    plant, oracle = Plant(robot), Pinocchio(robot)
    for q, v, u in states(robot, 10, 1):
        vdot, reactions = plant.acceleration(q, v, u)
        assert_close(vdot, oracle.forward_dynamics(q, v, forces(robot, u)), 1e-10)
        assert reactions.shape == (0,)


@pytest.mark.by_default(5)
@every
def test_reduced_acceleration_is_that_of_pinocchio_at_any_momentum(name: str) -> None:
    robot = ROBOTS[name]
    oracle = Pinocchio(robot)
    q0, v0, _ = next(states(robot, 1, 2))
    model = cc.reduce(robot, momentum=oracle.momentum(q0, v0))
    shape = list(model.shape)
    for k, (q, v, u) in enumerate(states(robot, 10, 3)):
        # One momentum for all: each configuration has its own velocity of the base.
        q, s = (q0, v0[shape]) if k == 0 else (q, v[shape])
        lifted = model.velocity(q, s)
        if k == 0:
            assert_close(lifted, v0, 1e-11)
        expected = oracle.forward_dynamics(q, lifted, forces(robot, u))
        sdot = model.acceleration(q, s, u)
        assert_close(sdot, expected[shape], 1e-9)
        horizontal, _ = model.lift(q)
        assert_close(horizontal @ sdot + model.drift_acceleration(q, s), expected, 1e-9)


def test_quaternion_bases_may_have_either_sign() -> None:
    robot = ROBOTS["free_flyer"]
    plant = Plant(robot)
    q, v, u = next(states(robot, 1, 7))
    other = q.copy()
    other[3:7] *= -1.0
    assert_close(plant.acceleration(other, v, u)[0], plant.acceleration(q, v, u)[0], 1e-13)
