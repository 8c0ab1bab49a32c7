"""The emulated robot against Pinocchio, SciPy and laws of conservation."""

import dataclasses

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from concur.errors import SimulationError
from hil.emulator._plant import RobotPlant
from hil.errors import RigError
from tests.hil.emulator._rigs import FLOATER, virtual_rig
from tests.oracles._pinocchio import Pinocchio


def test_a_floating_robot_moves_as_in_pinocchio():
    plant = RobotPlant(virtual_rig(FLOATER), held=False)
    oracle = Pinocchio(plant.robot)
    effort = np.zeros(plant.robot.nv)
    effort[6:12] = [0.3, -0.2, 0.25, 0.05, -0.04, 0.02]
    nq = plant.robot.nq

    def slope(_, state):
        q, v = state[:nq], state[nq:]
        return np.concatenate([oracle.rate(q, v), oracle.forward_dynamics(q, v, effort)])

    start = np.concatenate([plant.q, plant.v])
    end = solve_ivp(slope, (0.0, 0.2), start, rtol=1e-10, atol=1e-12).y[:, -1]
    plant.torque[:] = effort[6:12] / 10.0  # gears of the motors
    for _ in range(200):
        plant.step(1e-3)
    assert plant.q == pytest.approx(end[:nq], abs=1e-9)
    assert plant.v == pytest.approx(end[nq:], abs=1e-8)


def test_torques_inside_leave_the_momentum_alone():
    rig = virtual_rig(FLOATER)
    plant = RobotPlant(rig, held=False)
    momentum = plant.robot.momentum(plant.q, plant.v)
    assert momentum == pytest.approx(rig.task.momentum, abs=1e-12)
    rng = np.random.default_rng(3)
    for _ in range(50):
        plant.torque[:] = rng.uniform(-0.2, 0.2, 6)
        for _ in range(10):
            plant.step(1e-3)
    assert plant.robot.momentum(plant.q, plant.v) == pytest.approx(momentum, abs=1e-8)


def test_wheels_do_not_slip():
    plant = RobotPlant(virtual_rig())
    plant.torque[:] = [1.0, -0.5, 0.5, 7.0, 1.0]
    for _ in range(500):
        plant.step(1e-3)
    slip = plant.robot.constraints(plant.q) @ plant.v
    assert np.abs(plant.v).max() > 0.5
    assert np.abs(slip).max() < 1e-9


def test_arms_do_not_fall_before_the_first_torque():
    plant = RobotPlant(virtual_rig())
    start = plant.q
    plant.torque[:] = 1e-3  # as near to zero as a drive may come
    for _ in range(300):
        plant.step(1e-3)
    assert plant.held
    assert np.array_equal(plant.q, start)
    plant.torque[0] = 0.5
    plant.step(1e-3)
    plant.torque[:] = 0.0
    for _ in range(300):
        plant.step(1e-3)
    assert not plant.held
    assert plant.positions()[3] < start[6] - 0.1  # the upper arm falls


def test_a_floating_robot_leaves_at_the_first_torque_with_its_momentum():
    rig = virtual_rig(FLOATER)
    plant = RobotPlant(rig)
    start = plant.q
    for _ in range(100):
        plant.step(1e-2)
    assert np.array_equal(plant.q, start)
    assert not plant.v.any()
    plant.torque[0] = 0.1
    plant.step(1e-3)
    assert plant.robot.momentum(plant.q, plant.v) == pytest.approx(rig.task.momentum, abs=1e-9)
    plant.torque[0] = 0.0
    for _ in range(10):
        plant.step(1e-3)
    assert not np.array_equal(plant.q[:7], start[:7])


@pytest.mark.extended
def test_friction_takes_energy():
    def energy(**emulator):
        plant = RobotPlant(virtual_rig(FLOATER, **emulator))
        plant.torque[:] = [0.3, 0.0, 0.0, 0.0, 0.0, 0.0]
        for _ in range(300):
            plant.step(1e-3)
        plant.torque[:] = 0.0
        before = plant.robot.kinetic_energy(plant.q, plant.v)
        for _ in range(500):
            plant.step(1e-3)
        return plant.robot.kinetic_energy(plant.q, plant.v) - before

    assert energy() == pytest.approx(0.0, abs=1e-7)
    assert energy(viscous={"turret": 0.5}) < -1e-4
    assert energy(friction={"turret": 0.1}) < -1e-4


def test_axes_in_another_order_are_refused():
    rig = virtual_rig()
    turned = dataclasses.replace(rig, axes=rig.axes[::-1])
    with pytest.raises(RigError, match="left_wheel, right_wheel"):
        RobotPlant(turned)


def test_friction_too_stiff_for_the_step_is_refused():
    with pytest.raises(SimulationError, match=r"`friction` of `turret`.* per step of 0\.001 s"):
        RobotPlant(virtual_rig(viscous={"turret": 1e6}))


def test_a_motion_that_diverges_is_an_error():
    plant = RobotPlant(virtual_rig())
    plant.torque[:] = 1e200

    def go_on():
        for _ in range(1000):
            plant.step(1e-3)

    with pytest.raises(RigError, match="shorter `dt`"):
        go_on()
