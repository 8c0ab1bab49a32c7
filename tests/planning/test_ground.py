"""Limits of wheels and supports in plans, by the rate of the momentum and on wheels that slip."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import concur as cc
from concur.errors import ConcurError
from concur.planning import PlanLimits
from concur.planning._direct import direct_guess
from concur.planning._verdict import KEPT, is_held, rows_of
from tests.control.test_constraint_rows import ground_wrench
from tests.planning.test_direct import formed

START = [0, 0, 0, 0, 0, 0.2, 1.0, -1.6]
GOAL = {"base": [1.0, 0.3], "hand": [1.3, 0.8, 0.5]}
LIMITS = PlanLimits(torques=10.0, speeds=5.0)
GRIP = PlanLimits(torques=10.0, speeds=5.0, grip=0.1, least_load=30.0, tipping=20.0)
CASTER = {"caster": (0.75, 0.0, -0.1)}
OUTPUTS = [
    cc.Output("base", "chassis", "R2", point=(0.25, 0, 0)),
    cc.Output("hand", "forearm", "R3", point=(0, 0.2, 0)),
]


@pytest.fixture(scope="module")
def model():
    return cc.reduce(dataclasses.replace(cc.robots.rover_arm(), supports=CASTER))


@pytest.fixture(scope="module")
def free(model):
    return cc.plan(model, OUTPUTS, START, GOAL, LIMITS)


@pytest.fixture(scope="module")
def gripping(model):
    return cc.plan(model, OUTPUTS, START, GOAL, GRIP)


def carried(model, found):
    """Loads of left and right wheel and caster, and what friction both wheels need, by time.

    From force and moment of the ground as the rate of the momentum; forces along the wheels from
    the couple about the middle of the axle, the lateral one shared equally.
    """
    robot, loads, forces = model.robot, [], []
    for q, s, u in zip(found.q, found.s, found.u, strict=True):
        v, sdot = np.asarray(model.velocity(q, s)), np.asarray(model.acceleration(q, s, u))
        lift, drift = np.asarray(model.lift(q)[0]), np.asarray(model.velocity_drift(q, v))
        wrench = ground_wrench(robot, q, v, lift @ sdot + drift)
        chassis = np.asarray(robot.pose(q, "chassis"))
        wheels = [np.asarray(robot.pose(q, f"{side}_wheel"))[:3, 3] for side in ("left", "right")]
        points = np.array([*wheels, chassis[:3, :3] @ CASTER["caster"] + chassis[:3, 3]])
        points[:, 2] = robot.ground_height
        middle = points[:2].mean(axis=0)
        moment = wrench[3:] - np.cross(middle, wrench[:3])
        arms = np.vstack([np.ones(3), (points - middle)[:, 1], -(points - middle)[:, 0]])
        loads.append(np.linalg.solve(arms, [wrench[2], *moment[:2]]))
        along, across = (chassis[:3, k] @ wrench[:3] / 2.0 for k in (0, 1))
        couple = moment[2] / np.linalg.norm(wheels[0] - wheels[1])
        forces.append(np.hypot([along - couple, along + couple], across))
    return np.array(loads), np.array(forces)


@pytest.mark.extended
def test_wheels_of_a_plan_keep_their_loads_and_friction(model, free, gripping) -> None:
    assert free.reached
    assert gripping.reached
    loads, forces = carried(model, gripping)
    assert (forces <= 0.1 * loads[:, :2] + 0.05).all()
    assert (forces / loads[:, :2]).max() > 0.095  # the limit decides
    assert loads.min() > 29.9
    before = carried(model, free)
    assert (before[1] / before[0][:, :2]).max() > 0.2
    assert gripping.duration > 1.2 * free.duration
    # Friction decides, or the speed of the wheels does as much.
    closest = [row.quantity for row in gripping.rows[1:4]]
    assert any(quantity.startswith("grip reserve of") for quantity in closest)
    rows = {row.quantity: row for row in gripping.rows}
    for k, name in enumerate(("left_wheel", "right_wheel", "caster")):
        assert rows[f"load of {name}"].value == pytest.approx(loads[:, k].min(), rel=2e-3)
        assert rows[f"load of {name}"].limit == pytest.approx(30.0)
    for k, name in enumerate(("left_wheel", "right_wheel")):
        own = (0.1 * loads[:, k] - forces[:, k]).min()
        assert rows[f"grip reserve of {name}"].value == pytest.approx(own, abs=0.1)
    # The moment about an edge is the load across from it times its distance.
    across = {
        "tipping over left_wheel to right_wheel": loads[:, 2].min() * 0.75,
        "tipping over right_wheel to caster": loads[:, 0].min(),
        "tipping over caster to left_wheel": loads[:, 1].min(),
    }
    wheels = [np.array(model.robot.pose(START, f"{side}_wheel")) for side in ("left", "right")]
    track = np.linalg.norm((wheels[0] - wheels[1])[:3, 3])
    far = track * 0.75 / np.hypot(0.75, track / 2)
    for name, value in across.items():
        scale = 1.0 if name.endswith("right_wheel") else far
        assert rows[name].value == pytest.approx(value * scale, rel=2e-3)


@pytest.mark.extended
def test_plans_with_grip_do_not_slip_and_others_do(model, free, gripping) -> None:
    """The same law on wheels that slip: friction of 0.1 holds one plan, and not the other."""
    slip = cc.simulation.Slip.of(model.robot, 0.1)
    servo = cc.Servo(model, OUTPUTS, 16.0, 8.0)
    rest, errors = np.zeros(model.ns), []
    for found in (free, gripping):
        plant = cc.Plant(model.robot, slip=slip)
        end = round(found.duration, 2)
        given = model.robot, servo, found.reference, end, START, rest
        run = cc.simulate(*given, dt=2e-3, plant=plant)
        errors.append(float(run.slip_speed.max()))
    assert errors[0] > 0.02
    assert errors[1] < 2e-3


@pytest.mark.extended
def test_friction_is_left_to_the_law(model, gripping) -> None:
    given = dataclasses.replace(GRIP, grip=0.125, margin=0.2, torques=12.5, speeds=6.25)
    found = cc.plan(model, OUTPUTS, START, GOAL, given)
    assert found.duration == pytest.approx(gripping.duration, rel=0.02)


@pytest.mark.by_default(1)
@pytest.mark.parametrize(
    ("limit", "named"),
    [
        ({"least_load": {"right_wheel": 82.0}}, "load of right_wheel (82 N)"),
        ({"tipping": 38.0}, "tipping over caster to left_wheel (38 N m)"),
    ],
)
def test_a_goal_at_which_a_wheel_lifts_is_named(model, limit, named) -> None:
    """With the arm out to the side a wheel carries 73 N at rest, however slow the motion is."""
    heavy = PlanLimits(torques=20.0, speeds=5.0, **limit)
    arm = cc.Output("arm", "forearm", "R3", relative_to="chassis", point=(0, 0.2, 0))
    at = model.robot.neutral()
    at[5:] = 0.0, 0.1, -0.1
    chassis = np.asarray(model.robot.pose(at, "chassis"))
    place = np.linalg.solve(chassis, model.robot.pose(at, "forearm") @ [0, 0.2, 0, 1])[:3]
    found = cc.plan(model, [arm], START, {"arm": place}, heavy)
    assert not found.reached
    assert f"limited by the {named}" in found.why
    assert "the nearest goal within reach is `arm` at [" in found.why


@pytest.mark.parametrize(
    "start", ["load of caster", "grip reserve of left_wheel", "tipping over caster to left_wheel"]
)
@pytest.mark.parametrize(("over", "kept"), [(0.9 * KEPT, True), (1.1 * KEPT, False)])
def test_each_row_of_the_ground_decides(model, start, over, kept) -> None:
    form, first, wanted = formed(model, OUTPUTS[:1], START, {"base": [0.3, 0.0]}, GRIP)
    path, _ = form.dense(first, direct_guess(form, first, wanted, 8.0), wanted)
    path = dataclasses.replace(path, e=0.0 * path.e)
    assert is_held(form, path, rows_of(form, path, 8.0))
    k = next(k for k, fact in enumerate(form.facts) if fact[0] == start)
    path.g[40, k] = 1.0 + over
    assert is_held(form, path, rows_of(form, path, 8.0)) is kept


@pytest.mark.parametrize(
    ("supports", "limits", "words"),
    [
        ({}, {"grip": 0.5}, "three supports or more"),
        ({}, {"tipping": 0.0}, "three supports or more"),
        (CASTER, {"least_load": {"wheel": 3.0}}, "limits.least_load"),
        (CASTER, {"grip": {"caster": 0.5}}, "limits.grip"),
        ({**CASTER, "rear": (-0.4, 0, -0.1)}, {"grip": 0.5}, "compliance of each of 4"),
    ],
)
def test_contacts_without_determined_loads_are_refused(supports, limits, words) -> None:
    model = cc.reduce(dataclasses.replace(cc.robots.rover_arm(), supports=supports))
    with pytest.raises(ConcurError, match=words):
        cc.plan(model, OUTPUTS, START, GOAL, PlanLimits(**limits))


@pytest.mark.parametrize("value", [-1.0, np.nan, "x"])
def test_wrong_moments_of_tipping_are_refused(value) -> None:
    with pytest.raises(ConcurError, match="`tipping`"):
        PlanLimits(tipping=value)


def test_robots_that_float_have_no_ground() -> None:
    model = cc.reduce(cc.robots.planar_floater())
    hand = cc.Output("hand", "forearm", "R2", point=(1.0, 0, 0))
    with pytest.raises(ConcurError, match="limits"):
        cc.plan(model, [hand], [0, 0, 0, 0.5, -1.0], {"hand": [1.3, 0.4]}, PlanLimits(grip=0.5))
