"""Shipped robots with a floating base, against rigid-body dynamics from a library of others."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure

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


def test_table_has_every_robot_with_a_floating_base() -> None:
    floating = {n for n in robots.__all__ if not getattr(robots, n)().wheels}
    assert floating == set(STATED)


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


def test_inertia_matrix_is_that_of_the_library(robot) -> None:
    library = Pinocchio(robot)
    for q, _ in states(robot):
        theirs = library.mass_matrix(q)
        scale = np.sqrt(np.diag(theirs))  # a station and a hand in one matrix
        error = (robot.mass_matrix(q) - theirs) / np.outer(scale, scale)
        np.testing.assert_allclose(error, 0.0, atol=1e-10)


def test_bias_is_that_of_the_library(robot) -> None:
    library = Pinocchio(robot)
    for q, v in states(robot):
        scale = np.sqrt(np.diag(library.mass_matrix(q)))
        theirs = library.bias(q, v) / scale
        error = robot.bias(q, v) / scale - theirs
        np.testing.assert_allclose(error, 0.0, atol=1e-10 * np.abs(theirs).max())


def test_pose_of_every_body_is_that_of_the_library(robot) -> None:
    library = Pinocchio(robot)
    for q, _ in states(robot):
        for body in robot.bodies:
            theirs = library.pose(q, body.name)
            error = robot.pose(q, body.name) - theirs
            np.testing.assert_allclose(error, 0.0, atol=1e-10 * np.abs(theirs).max())


def test_momentum_is_that_of_the_library(robot) -> None:
    library = Pinocchio(robot)
    for q, v in states(robot):
        theirs = library.momentum(q, v)
        error = robot.momentum(q, v) - theirs
        np.testing.assert_allclose(error, 0.0, atol=1e-10 * np.abs(theirs).max())


@pytest.mark.extended
def test_summary_names_every_body_and_the_robot_can_be_drawn(name: str, robot) -> None:
    text = robot.summary()
    assert text.startswith(f"{name}: {len(robot.bodies)} bodies")
    lines = text.splitlines()
    for body in robot.bodies:
        assert any(line.split()[:1] == [body.name] for line in lines), body.name
    figure = robot.plot()
    assert isinstance(figure, Figure)
    drawn = {text.get_text() for axes in figure.axes for text in axes.texts}
    assert {body.name for body in robot.bodies} <= drawn
