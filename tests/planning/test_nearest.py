"""Postures at goals, or nearest to them: edges of reach by the stretched arm."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import concur as cc
from concur.planning import PlanLimits
from concur.planning._nearest import UNREACHED, nearest_posture
from concur.planning._targets import targets_of
from tests.planning.test_direct import formed

FLOATER = [0, 0, 0, 0.5, -1.0]
ROVER = [0, 0, 0, 0, 0, 0.2, 1.0, -1.6]
FREE = PlanLimits(speeds=2.0, singular=0.0)


@pytest.fixture(scope="module")
def floater():
    return cc.reduce(cc.robots.planar_floater()), [
        cc.Output("hand", "forearm", "R2", point=(1.0, 0, 0))
    ]


def center(robot, q):
    """Centre of mass in the plane."""
    masses = np.array([body.inertia.mass for body in robot.bodies])
    places = [robot.pose(q, b.name) @ [*b.inertia.com, 1.0] for b in robot.bodies]
    return masses @ np.array(places)[:, :2] / masses.sum()


def nearest(model, outputs, q0, goals, limits=FREE):
    form, *_ = formed(model, outputs, q0, goals, limits)
    return nearest_posture(form, targets_of(outputs, goals, "plan"), np.array(q0, dtype=float))


@pytest.fixture(scope="module")
def edge(floater):
    """Centre of mass at the start, and how far the hand of a stretched arm is from it."""
    robot, stretched = floater[0].robot, np.zeros(5)
    hand = (robot.pose(stretched, "forearm") @ [1.0, 0, 0, 1.0])[:2]
    start = center(robot, np.array(FLOATER, dtype=float))
    return start, float(np.linalg.norm(hand - center(robot, stretched)))


@pytest.mark.parametrize(("beyond", "solved"), [(0.5 * UNREACHED, True), (2.0 * UNREACHED, False)])
def test_goals_a_millimetre_beyond_the_stretched_arm_are_out_of_reach(
    floater, edge, beyond, solved
) -> None:
    start, far = edge
    goal = start + (far + beyond) * np.array([0.6, 0.8])
    found = nearest(*floater, FLOATER, {"hand": goal})
    assert found.solved is solved
    place = (floater[0].robot.pose(found.q, "forearm") @ [1.0, 0, 0, 1.0])[:2]
    np.testing.assert_allclose(place, start + far * np.array([0.6, 0.8]), atol=UNREACHED)
    np.testing.assert_allclose(center(floater[0].robot, found.q), start, atol=1e-6)
    np.testing.assert_allclose(found.wanted, goal if solved else place, atol=1e-9)


@pytest.mark.parametrize(("within", "solved"), [(0.102, True), (0.098, False)])
def test_a_region_is_reached_at_its_side(floater, edge, within, solved) -> None:
    start, far = edge
    goal = {"hand": {"position": [start[0] + far + 0.1, start[1]], "within": within}}
    assert nearest(*floater, FLOATER, goal).solved is solved


def test_a_momentum_carries_the_centre_of_mass_along(floater, edge) -> None:
    """Along its velocity any place is reached, beside it none beyond the arm."""
    start, far = edge
    model = cc.reduce(floater[0].robot, momentum=[0.3, 0.4, 0, 0, 0, 0.1])
    along, aside = np.array([0.6, 0.8]), np.array([-0.8, 0.6])
    assert nearest(
        model, floater[1], FLOATER, {"hand": start + 5.0 * along + 0.9 * far * aside}
    ).solved
    found = nearest(model, floater[1], FLOATER, {"hand": start + 5.0 * along + (far + 0.1) * aside})
    assert not found.solved
    assert "stays 0.1 m away, limited by the centre of mass" in found.why


@pytest.mark.parametrize(("share", "solved"), [(1.002, True), (0.97, False)])
def test_torques_at_rest_count(share, solved) -> None:
    """A hand far out, at the height of the shoulder, needs the torque that Pinocchio states."""
    model = cc.reduce(cc.robots.rover_arm())
    arm = [cc.Output("arm", "forearm", "R3", relative_to="chassis", point=(0, 0.2, 0))]
    q = np.array([0, 0, 0, 0, 0, 0.0, 0.3, -0.6])
    place = np.linalg.solve(
        np.asarray(model.robot.pose(q, "chassis")), model.robot.pose(q, "forearm") @ [0, 0.2, 0, 1]
    )[:3]
    weight = np.asarray(model.robot.bias(q, np.zeros(model.robot.nv)))
    at = list(model.robot.freedom_names).index("upper_arm")
    torques = dataclasses.replace(FREE, torques={"upper_arm": share * abs(weight[at])})
    found = nearest(model, arm, ROVER, {"arm": place}, torques)
    assert found.solved is solved
    assert solved or "limited by the torque of upper_arm" in found.why


def test_directions_and_joints_of_goals_are_searched_too() -> None:
    model = cc.reduce(cc.robots.rover_arm())
    hand = [cc.Output("hand", "forearm", "R3xSO3", point=(0, 0.2, 0))]
    way = {"hand": {"direction": [0.6, 0.8, 0.0], "axis": [1, 0, 0]}}
    found = nearest(model, hand, ROVER, way)
    assert found.solved
    pose = model.robot.pose(found.q, "forearm")
    np.testing.assert_allclose(pose[:3, 0], [0.6, 0.8, 0.0], atol=1e-6)
    up = {"hand": {"direction": [0.0, 0.0, 1.0], "axis": [1, 0, 0]}}
    lost = nearest(model, hand, ROVER, up)  # the axis of the elbow stays horizontal
    assert not lost.solved
    assert "`hand` stays" in lost.why
    assert "rad away" in lost.why
