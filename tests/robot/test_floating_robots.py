"""Shipped robots with a floating base, against rigid-body dynamics from a library of others."""

from __future__ import annotations

import numpy as np
import pytest

from concur import robots
from concur.robot import joints, suspicious_inertias
from tests.oracles._pinocchio import Pinocchio

# Freedoms of the joints and total mass (kg), added up by hand from the parts.
STATED = {
    "free_flyer": (6 + 6, 60 + 8 + 6 + 5 + 3 + 2 + 1.5),
    "orbital_crawler": (6 + 3 + 3 + 3, 400 + 40 + 6 + 4 + 1 + 1),
    "planar_floater": (3 + 2, 10 + 2 + 1.5),
    "servicer": (6 + 2 * 7, 1000 + 2 * 52),
    "station_arm": (6 + 7, 420000 + 1505.32),
    "two_handed_spacecraft": (6 + 3 + 3, 100 + 8 + 6 + 3 + 2.5),
    "wheel_satellite": (6 + 3, 2 + 3 * 0.3),
}


@pytest.fixture(params=STATED)
def name(request) -> str:
    return request.param


@pytest.fixture
def robot(name: str):
    return getattr(robots, name)()


def states(robot, count: int = 5):
    rng = np.random.default_rng(20)
    return [(robot.random(rng), rng.uniform(-1.0, 1.0, robot.nv)) for _ in range(count)]


def test_freedoms_and_mass_are_as_stated(name: str, robot) -> None:
    freedoms, mass = STATED[name]
    assert robot.nv == freedoms
    assert robot.total_mass == pytest.approx(mass, rel=1e-14)


def test_base_floats_and_all_other_joints_are_driven(robot) -> None:
    base, *others = robot.bodies
    assert base.parent is None
    assert isinstance(base.joint, joints.Free | joints.Planar)
    assert robot.actuated == tuple(body.name for body in others if body.joint.nv)
    assert not np.any(robot.gravity)


def test_inertias_are_physical_and_in_proportion(robot) -> None:
    for body in robot.bodies:
        low, middle, high = body.inertia.principal_moments
        if body.inertia.mass:
            assert low > 0.0, body.name
            assert high <= (low + middle) * (1.0 + 1e-9), body.name
        else:
            assert isinstance(body.joint, joints.Fixed), body.name
    assert suspicious_inertias(robot) == ()


def test_pose_of_every_body_is_that_of_the_library(robot) -> None:
    library = Pinocchio(robot)
    for q, _ in states(robot):
        for body in robot.bodies:
            theirs = library.pose(q, body.name)
            error = robot.pose(q, body.name) - theirs
            np.testing.assert_allclose(error, 0.0, atol=1e-10 * np.abs(theirs).max())
