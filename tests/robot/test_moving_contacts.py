"""Wheels that roll on a hull: contact velocities from Pinocchio's Jacobians, motion from KKT."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

from concur.errors import DescriptionError, ReductionError
from concur.io import load
from concur.reduction import WheelReduction, reduce
from concur.robot import Body, Mechanism, Motor, joints
from tests.oracles import Pinocchio, assert_close
from tests.robot._contacts import at_point, check_motion

EXAMPLES = Path(__file__).parents[2] / "examples"
MOMENTUM = (4.5, -2.0, 1.0, 1.0, -2.0, 3.0)


def on_hull(robot: Mechanism) -> Callable[[np.ndarray], np.ndarray]:
    oracle = Pinocchio(robot)

    def slip(q: np.ndarray) -> np.ndarray:
        plane = oracle.pose(q, "vehicle")[:3, 2]
        rows = []
        for wheel in robot.wheels:
            point = oracle.pose(q, wheel.body)[:3, 3] - wheel.radius * plane
            bodies = (wheel.body, "spacecraft")
            rows.append(np.subtract(*(at_point(oracle, q, body, point) for body in bodies)))
        return np.vstack(rows)

    return slip


@pytest.mark.extended
def test_crawler_rolls_on_its_spacecraft() -> None:
    robot = load(EXAMPLES / "hull_crawler.toml")
    model = reduce(robot, momentum=MOMENTUM)
    assert (model.kind, model.ns, model.nu) == ("symplectic", 8, 8)
    assert model.audit().holds
    check_motion(model, on_hull(robot), 0)
    rng, oracle = np.random.default_rng(1), Pinocchio(robot)
    q, s = robot.random(rng), rng.uniform(-1, 1, 8)
    assert_allclose(oracle.momentum(q, model.velocity(q, s)), MOMENTUM, rtol=0, atol=1e-12)
    other = model.at_momentum(np.zeros(6))
    assert_allclose(other.velocity(q, s), model.velocity(q, s, np.zeros(6)), rtol=0, atol=1e-14)
    # Hamilton's equations are those of the acceleration.
    p = model.mass_matrix(q) @ s
    v, pdot = model.vector_field(q, p, np.zeros(8))
    masses = [model.mass_matrix(robot.integrate(q, h * v)) @ s for h in (1e-5, -1e-5)]
    forces = model.mass_matrix(q) @ model.acceleration(q, s, np.zeros(8))
    assert_close(pdot, (masses[0] - masses[1]) / 2e-5 + forces, 1e-8)
    energy = oracle.kinetic_energy(q, v)
    assert model.hamiltonian(q, p) == pytest.approx(energy, rel=1e-12)


def test_crawler_on_a_hull_that_does_not_float() -> None:
    # On a fixed hull, and with thrusters, the wheels alone determine velocities.
    robot = load(EXAMPLES / "hull_crawler.toml")
    hull = Body("spacecraft", joints.Fixed(), inertia=robot.bodies[0].inertia)
    fixed = replace(robot, bodies=(hull, *robot.bodies[1:]), gravity=(0, 0, -9.81))
    model = reduce(fixed)
    assert isinstance(model, WheelReduction)
    assert (model.kind, model.ns) == ("chaplygin", 8)
    check_motion(model, on_hull(fixed), 2)
    jets = [Motor("jet", body="spacecraft", wrench=(1, 0, 0, 0, 0, 0))]
    pushed = reduce(replace(robot, motors=jets))
    assert isinstance(pushed, WheelReduction)
    assert (pushed.ns, pushed.nu) == (14, 9)
    check_motion(pushed, on_hull(pushed.robot), 3)


def test_what_a_hull_cannot_carry_is_refused(tmp_path: Path) -> None:
    robot = load(EXAMPLES / "hull_crawler.toml")
    with pytest.raises(DescriptionError, match=r"stand on wheels.*`vehicle`"):
        replace(robot, actuated=("vehicle",))
    assert "vehicle" not in (replace(robot, actuated=None).actuated or ())
    with pytest.raises(ReductionError, match="wheels on a hull that floats"):
        reduce(robot, stages="auto")
    with pytest.raises(ReductionError, match="no gravity along"):
        reduce(replace(robot, gravity=(0.0, 0.0, -9.81)))
    with pytest.raises(DescriptionError, match="roll on another body or surface"):
        robot.save(tmp_path / "robot.xml")
    robot.save(tmp_path / "robot.toml")
    assert load(tmp_path / "robot.toml") == robot
