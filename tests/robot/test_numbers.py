"""Numbers of a robot by name: those of the description, and the same robot with others."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import concur as cc
from concur.errors import InertiaError, UnknownNameError
from concur.robot import Inertia, Motor, Pose
from tests.oracles import assert_close, rover


def test_numbers_are_those_of_the_description() -> None:
    robot = replace(
        rover(), actuated=["turret"], motors=[Motor("pair", {"left": 3.0, "right": -2.0})]
    )
    arm, wheel = robot.bodies[-1], robot.wheels[0]
    found = robot.numbers
    assert found[f"{arm.name}.inertia.mass"] == arm.inertia.mass
    assert found[f"{arm.name}.inertia.com"].tolist() == list(arm.inertia.com)
    tensor = arm.inertia.tensor
    expected = [tensor[pair] for pair in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))]
    assert found[f"{arm.name}.inertia.moments"].tolist() == expected
    assert found[f"{arm.name}.placement.translation"].tolist() == list(arm.placement.translation)
    assert found[f"{arm.name}.placement.rotation"].tolist() == list(arm.placement.rotation)
    assert found[f"{wheel.body}.radius"] == wheel.radius
    assert found["pair.ratio"].tolist() == [3.0, -2.0]


def test_a_robot_with_other_numbers_is_the_one_described_with_them() -> None:
    robot = rover()
    arm, rng = robot.bodies[-1], np.random.default_rng(0)
    tensor = np.array([[0.3, 0.01, 0.02], [0.01, 0.4, 0.03], [0.02, 0.03, 0.5]])
    turn = (0.0, 0.0, 0.6, 0.8)
    changed = robot.with_numbers(
        {
            f"{arm.name}.inertia.mass": 3.0,
            f"{arm.name}.inertia.moments": [0.3, 0.4, 0.5, 0.01, 0.02, 0.03],
            f"{arm.name}.placement.translation": (0.1, 0.2, 0.3),
            f"{arm.name}.placement.rotation": turn,
            "left.radius": 0.11,
        }
    )
    inertia = Inertia(3.0, arm.inertia.com, tensor)
    placed = replace(arm, inertia=inertia, placement=Pose((0.1, 0.2, 0.3), turn))
    bodies = [*robot.bodies[:-1], placed]
    assert changed.bodies[-1] == placed
    assert changed.wheels == (replace(robot.wheels[0], radius=0.11), *robot.wheels[1:])
    assert changed.constraint_names == robot.constraint_names
    q, v = robot.random(rng), rng.normal(size=robot.nv)
    due = replace(robot, bodies=bodies)
    assert_close(changed.mass_matrix(q), due.mass_matrix(q), 1e-14)
    assert_close(changed.bias(q, v), due.bias(q, v), 1e-14)


def test_what_no_robot_has_is_refused() -> None:
    robot = cc.robots.rover_arm()
    for name in ("forearm.mass", "forarm.inertia.mass", "forearm.radius", "left_wheel.grip"):
        with pytest.raises(UnknownNameError):
            robot.with_numbers({name: 1.0})
    with pytest.raises(InertiaError):
        robot.with_numbers({"forearm.inertia.mass": -1.0})
