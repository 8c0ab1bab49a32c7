"""Mass matrix, bias, momentum, energy, poses and Jacobians of every kind of robot: Pinocchio's."""

from __future__ import annotations

import numpy as np
import pytest

from tests.contract._robots import LAWS, TREES, case
from tests.oracles import assert_close

EXACT = 1e-12


@pytest.mark.parametrize("name", [*LAWS, *TREES])
def test_rigid_body_quantities_are_those_of_pinocchio(name: str) -> None:
    robot, twin, rng = case(name).robot, case(name).twin, np.random.default_rng(1)
    system = case(name).system or robot
    for _ in range(3):
        q, v = robot.random(rng), rng.normal(size=robot.nv)
        assert_close(system.mass_matrix(q), twin.mass_matrix(q), EXACT, 1e-3, "mass matrix")
        assert_close(system.bias(q, v), twin.bias(q, v), EXACT, 1e-3, "bias")
        assert_close(system.kinetic_energy(q, v), twin.kinetic_energy(q, v), EXACT, 1e-3, "energy")
        assert_close(robot.momentum(q, v), twin.momentum(q, v), EXACT, 1e-3, "momentum")
        step = 1e-7 * twin.rate(q, v)
        assert_close(robot.integrate(q, 1e-7 * v) - q, step, 1e-6, 1e-7, "integrate")
        move = v / np.abs(v).max()  # turns below half a revolution come back as they went
        assert_close(robot.difference(q, robot.integrate(q, move)), move, 1e-10, name="difference")


@pytest.mark.parametrize("name", [*LAWS, *TREES])
def test_poses_and_jacobians_are_those_of_pinocchio(name: str) -> None:
    robot, twin, rng = case(name).robot, case(name).twin, np.random.default_rng(2)
    for body in robot.bodies:
        q = robot.random(rng)
        assert_close(robot.pose(q, body.name), twin.pose(q, body.name), EXACT, name=body.name)
        jacobian = twin.jacobian(q, body.name)
        assert_close(robot.jacobian(q, body.name), jacobian, EXACT, name=body.name)
