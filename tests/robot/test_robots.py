"""The robots that come with the package."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

from concur import robots
from concur.formats import shipped_names


def test_there_is_a_function_for_every_file() -> None:
    assert sorted(robots.__all__) == shipped_names()


@pytest.mark.parametrize("name", robots.__all__)
def test_each_robot_loads_and_tells_its_provenance(name: str) -> None:
    function = getattr(robots, name)
    assert function().name == name
    assert "chosen here" in " ".join((inspect.getdoc(function) or "").split())


def test_rover_arm_stands_as_described() -> None:
    robot = robots.rover_arm()
    assert [body.name for body in robot.bodies] == [
        "chassis",
        "left_wheel",
        "right_wheel",
        "turret",
        "upper_arm",
        "forearm",
    ]
    assert (robot.nq, robot.nv, len(robot.wheels)) == (8, 8, 2)
    assert robot.total_mass == pytest.approx(38.0)
    assert robot.actuated == ("left_wheel", "right_wheel", "turret", "upper_arm", "forearm")


def test_rover_arm_reaches_where_the_drawing_says() -> None:
    # Case study 5.5: outputs at the reference configuration, computed independently.
    robot = robots.rover_arm()
    q = np.array([-0.3, -0.05, 0.1, 0.0, 0.0, 0.1, 1.2, -1.6])
    base = robot.pose(q, "chassis") @ [0.25, 0.0, 0.0, 1.0]
    hand = robot.pose(q, "forearm") @ [0.0, 0.2, 0.0, 1.0]
    np.testing.assert_allclose(base[:2], [-0.05124896, -0.02504165], atol=1e-8)
    np.testing.assert_allclose(hand[:3], [-0.04685913, 0.70455411, 0.29493197], atol=1e-8)
