"""The factor of the reduced Coriolis forces, beside exact derivatives of the mass matrix."""

from __future__ import annotations

from dataclasses import replace

import casadi as ca
import numpy as np
import pytest

import concur as cc
from concur.reduction import ReducedModel, along
from tests.formulations.textbook import chain, rebuilt, rigid_body
from tests.oracles import Pinocchio, crane, random_tree, random_velocity
from tests.reduction._staged import satellite
from tests.reduction.test_stage_forms import in_both_axes
from tests.simulation.test_systems import EDGE, HOOP

MOMENTUM = [0.1, 0.2, -0.3, 0.5, 0.4, -0.2]
ROBOTS = [name for name in cc.robots.__all__ if name.islower() and name != "load_shipped"]
LARGE = (
    *("free_flyer", "hull_crawler", "mecanum_arm", "orbital_crawler", "servicer", "station_arm"),
    "two_handed_spacecraft",
)
FEW = ("planar_floater", "rover_arm", "snakeboard", "wheel_satellite")
"""Of the smaller ones, those of each kind of reduction."""
STAGES = {
    "crane_car": ["column"],
    "mecanum_arm": ["hand"],
    "servicer": ["left_hand", "right_hand"],
    "snakeboard": ["rotor"],
    "station_arm": ["hand"],
    "wheel_satellite": ["wheel_x", "wheel_y"],
}
"""Joints of shipped robots that keep their momentum without a drive."""


def models(which: str) -> list[ReducedModel]:
    """Models of shipped robots, floating ones with a momentum too; with stages; no trees."""
    made = []
    robots = [getattr(cc.robots, name)() for name in ROBOTS]
    for robot in robots:
        if which == ("large" if robot.name in LARGE else "few" if robot.name in FEW else "small"):
            own = [cc.reduce(robot)]
            if joints := STAGES.get(robot.name):
                driven = [name for name in robot.actuated if name not in joints]
                staged = replace(robot, actuated=driven)
                own.append(cc.reduce(staged, stages=dict.fromkeys(joints, 0.5)))
            for model in own:
                made += [model, model.at_momentum(MOMENTUM)] if model.takes_momentum else [model]
    if which != "few":
        return made
    spatial = rigid_body(2.0, np.array([0.1, 0.2, 0.3]), np.diag([1.0, 2.0, 2.5]), "spatial")
    wheels = cc.reduce(crane(undriven="column"), stages={"column": -11.5})
    floating = cc.reduce(satellite(), MOMENTUM, {"rotor": 0.5, "second": -0.2})
    return [
        *made,
        wheels,
        floating,
        *map(cc.reduce, [HOOP, EDGE, spatial, rebuilt(cc.robots.planar_floater())]),
    ]


def worst(model: ReducedModel) -> tuple[float, float, float]:
    """Largest errors of Mhat' = C + C^T, C s = bias less forces at s = 0, and C skew at s = 0."""
    q, s = ca.SX.sym("q", model.nq), ca.SX.sym("s", model.ns)
    still = ca.SX.zeros(model.ns)
    turning = along(model.mass_matrix, q, model.system.rate(q, model.velocity(q, s)))
    forces = model.bias(q, s) - model.bias(q, still)
    at_rest = model.coriolis(q, still)
    parts = [model.coriolis(q, s), turning, forces, at_rest, model.mass_matrix(q)]
    function, rng, found = ca.Function("all", [q, s], parts), np.random.default_rng(4), []
    while len(found) < 3:
        at = model.system.random(rng)
        if not model.regularity(at) > 0.05:
            continue
        speeds = rng.normal(size=model.ns)
        factor, rate, bias, gyroscopic, mass = map(np.array, function(at, speeds))
        size = np.abs(mass).max() + np.abs(factor).max()
        found.append(
            (
                np.abs(factor + factor.T - rate).max() / size,
                np.abs(factor @ speeds - bias[:, 0]).max() / size,
                np.abs(gyroscopic + gyroscopic.T).max() / size,
            )
        )
    return tuple(np.max(found, axis=0))


@pytest.mark.extended
@pytest.mark.parametrize("which", ["few", "small", "large"])
def test_factor_plus_transpose_is_the_rate_of_the_mass_matrix(which: str) -> None:
    """004: (4)-(17), (20), (22)-(26)."""
    for model in models(which):
        rate, forces, gyroscopic = worst(model)
        assert rate < 1e-12, (model.name, rate)
        assert forces < 1e-11, (model.name, forces)
        # At rest only the gyroscopic forces of the momentum are left.
        assert gyroscopic < 1e-12, (model.name, gyroscopic)


def test_part_of_a_joint_that_turns_leaves_forces_that_belong_to_no_factor():
    rate, forces, _ = worst(in_both_axes().model)
    assert rate < 1e-12
    assert forces > 1e-6


def test_spin_of_a_two_sphere_has_no_factor() -> None:
    with pytest.raises(cc.errors.ReductionError, match="a two-sphere, whose spin moves none"):
        cc.reduce(chain(1)).coriolis([0.0, 0.0, -1.0], [0.1, 0.2, 0.0])


@pytest.mark.parametrize("seed", range(3))
def test_following_forces_of_a_tree_are_metric_and_without_torsion(seed: int) -> None:
    """004: (4)-(13), (22)-(26)."""
    # C(v) w of the tree alone: C(v) v is Pinocchio's bias, C(v) w - C(w) v is M [v, w].
    robot, rng = random_tree(seed), np.random.default_rng(seed)
    oracle, still = Pinocchio(robot), np.zeros(robot.nv)
    q, v, w = robot.random(rng), random_velocity(robot, rng), random_velocity(robot, rng)
    model = ReducedModel(robot, "unreduced", tuple(range(robot.nv)), (), "all")
    first, second, own = (
        model.following_forces(q, a, b, still) for a, b in ((v, w), (w, v), (v, v))
    )
    scale = np.abs(own).max()
    assert np.abs(own - oracle.bias(q, v)).max() < 1e-11 * scale
    torsion = first - second - robot.mass_matrix(q) @ np.array(ca.DM(robot.bracket(v, w))).ravel()
    assert np.abs(torsion).max() < 1e-11 * scale
