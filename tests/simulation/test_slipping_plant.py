"""Slipping plants against MuJoCo, where the base is free and stands on contacts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import concur as cc
from concur.simulation import Integrator, Plant, Slip, mujoco_run

EXAMPLES = Path(__file__).parents[2] / "examples"
FRONT = {"front": (0.5, 0.0, -0.1)}


# MuJoCo's contacts creep, and they chatter when they slide: loads are compared as means.
@pytest.mark.by_default(1)
@pytest.mark.parametrize(
    ("grip", "duration", "distance", "load", "slips"),
    [
        (1.0, 0.4, 1e-4, 0.1, False),
        (0.03, 0.4, 3e-4, 6.0, True),
        pytest.param(1.0, 3.0, 1e-4, 0.1, False, marks=pytest.mark.slow),
        pytest.param(0.05, 3.0, 5e-3, 4.0, True, marks=pytest.mark.slow),
    ],
)
def test_motion_slip_and_loads_are_those_of_contacts(grip, duration, distance, load, slips):
    task = cc.load_task(EXAMPLES / "rover_arm.toml")
    robot = task.robot
    arguments = task.servo, task.reference, duration, task.q0, task.s0
    contacts = mujoco_run(*arguments, supports=FRONT, friction=grip)
    plant = Plant(robot, slip=Slip.of(robot, grip, supports=FRONT, time=5e-4))
    held = Integrator(control_period=1e-3)
    run = cc.simulate(robot, *arguments, plant=plant, dt=held)
    assert (run.slip_speed.max() > 0.01) == (contacts.slip.max() > 0.01) == slips
    assert np.abs(run.q[:, :3] - contacts.run.q[:, :3]).max() < distance
    means = (part[200:].mean(axis=0) for part in (run.wheel_load, contacts.load))
    assert np.abs(np.subtract(*means)).max() < load
    assert np.abs(run.slip_speed.max(axis=0) - contacts.slip.max(axis=0)).max() < 0.02
