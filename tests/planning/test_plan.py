"""Plans of motions to goals: torques by Pinocchio, tracked in simulation, refused if impossible."""

from __future__ import annotations

import dataclasses
import json
import re
import time
from pathlib import Path

import numpy as np
import pytest
from scipy.interpolate import CubicSpline

import concur as cc
from concur.io import load_proof_task
from concur.planning import PlanLimits, _to_goal
from concur.robot import Obstacle
from concur.writers import to_toml
from tests.benchmarks._plans import CASES
from tests.oracles import Pinocchio
from tests.planning.test_made_for import hashed

ROOT = Path(__file__).parents[2]
ROVER = [0, 0, 0, 0, 0, 0.2, 1.0, -1.6]
LIMITS = PlanLimits(torques=10.0, speeds=5.0)


@pytest.fixture(scope="module")
def rover():
    model = cc.reduce(cc.robots.rover_arm())
    base = cc.Output("base", "chassis", "R2", point=(0.25, 0, 0))
    return model, [base, cc.Output("hand", "forearm", "R3", point=(0, 0.2, 0))]


@pytest.fixture(scope="module")
def planned(rover):
    return cc.plan(*rover, ROVER, {"base": [1.0, 0.3], "hand": [1.3, 0.8, 0.5]}, LIMITS)


@pytest.fixture(scope="module")
def floating():
    robot = cc.robots.planar_floater()
    model = cc.reduce(robot, momentum=[0.4, -0.2, 0.0, 0.0, 0.0, 0.3])
    hand = [cc.Output("hand", "forearm", "R2", point=(1.0, 0, 0))]
    limits = PlanLimits(torques=5.0, speeds=2.0)
    return cc.plan(model, hand, [0, 0, 0, 0.5, -1.0], {"hand": [1.3, 0.4]}, limits)


def test_a_plan_of_a_rover_keeps_limits_and_ends_at_its_goal(planned) -> None:
    assert planned.reached
    assert planned.status == "passed"
    base, hand = (planned.samples[name] for name in ("base", "hand"))
    np.testing.assert_allclose(base[0][-1], [1.0, 0.3], atol=2e-6)
    np.testing.assert_allclose(hand[0][-1], [1.3, 0.8, 0.5], atol=2e-6)
    assert np.abs(planned.s[[0, -1]]).max() < 1e-11
    assert 0.99 * 10 < np.abs(planned.u).max() <= 10.01 or np.abs(planned.s).max() > 4.95
    assert np.abs(planned.u).max() <= 10.01
    assert np.abs(planned.s).max() <= 5.0


def test_torques_of_a_floating_plan_are_those_of_pinocchio(floating) -> None:
    """The base, which no motor drives, needs no force; momentum and kinematics are consistent."""
    assert floating.reached
    model = floating.model
    oracle, v = Pinocchio(model.robot), []
    for q, s in zip(floating.q, floating.s, strict=True):
        v.append(np.asarray(model.velocity(q, s)))
        momentum = model.robot.momentum(q, v[-1])
        np.testing.assert_allclose(momentum[[0, 1, 5]], [0.4, -0.2, 0.3], atol=1e-9)
    step = 1e-5
    for k in range(0, len(floating.t), 15):
        q, s = floating.q[k], floating.s[k]
        a = np.asarray(model.acceleration(q, s, floating.u[k]))
        ahead = model.robot.integrate(q, step * v[k]), s + step * a
        behind = model.robot.integrate(q, -step * v[k]), s - step * a
        vdot = (model.velocity(*ahead) - model.velocity(*behind)) / (2 * step)
        force = oracle.mass_matrix(q) @ vdot + oracle.bias(q, v[k])
        np.testing.assert_allclose(force[:3], 0.0, atol=1e-6)
        np.testing.assert_allclose(force[3:], floating.u[k], atol=1e-6)
    # Kinematics: the configurations are the integral of the velocities.
    rates = np.gradient(floating.q, floating.t, axis=0, edge_order=2)
    turned = np.array(
        [np.asarray(model.system.rate(q, w)) for q, w in zip(floating.q, v, strict=True)]
    )
    assert np.abs(rates - turned)[2:-2].max() < 0.02 * np.abs(turned).max()


def test_the_hand_of_a_drifting_robot_rests_at_the_goal(floating) -> None:
    np.testing.assert_allclose(floating.samples["hand"][0][-1], [1.3, 0.4], atol=2e-6)
    assert np.abs(floating.samples["hand"][1][-1]).max() < 2e-6
    assert np.abs(floating.s[-1]).max() > 1e-3


@pytest.mark.parametrize(
    "options",
    [{}, {"torque_limits": 11.0, "constraints": cc.Constraints()}],
    ids=["servo", "limits"],
)
def test_servos_track_a_plan_in_the_full_order_simulation(rover, planned, options) -> None:
    model, outputs = rover
    servo = cc.Servo(model, outputs, 16.0, 8.0, **options)
    start, end = planned.q[0], round(planned.duration, 2)
    rest = np.zeros(model.ns)
    run = cc.simulate(model.robot, servo, planned.reference, end, start, rest, dt=2e-3)
    assert np.abs(run.error).max() < 1e-6
    assert np.abs(run.u).max() < 10.02
    assert options == {} or not run.active.any()


@pytest.mark.extended
@pytest.mark.parametrize("case", [case for case in CASES if "in a box" not in case])
def test_plans_to_random_goals_hold_in_simulation(case) -> None:
    """Torques of the plan, with weak feedback of the joints, take the robot to its goal."""
    problem = next(CASES[case][1](np.random.default_rng(7)))
    model, outputs, q0, _, limits, _ = problem
    found = cc.plan(*problem)
    assert found.reached
    assert np.abs(found.u).max() <= 1.001 * limits.torques
    assert np.abs(found.s).max() <= 1.001 * limits.speeds
    shape = list(model.shape_coordinates)
    r, s, u = (CubicSpline(found.t, x) for x in (found.q[:, shape], found.s, found.u))

    def torque(t, q, now):
        return u(t) + 10.0 * (r(t) - q[shape]) + 5.0 * (s(t) - now)

    rest, step = np.zeros(model.ns), found.duration / 200
    motion = cc.simulation.forced_motion(model, torque, found.duration, q0, rest, dt=step)
    for output in outputs:
        place = cc.Servo(model, [output], 1.0, 1.0).output(motion.q[-1])
        assert np.abs(place - found.samples[output.name][0][-1]).max() < 1e-3


@pytest.mark.extended
def test_postures_in_which_no_servo_gives_a_torque_are_avoided(rover) -> None:
    model, outputs = rover
    servo = cc.Servo(model, outputs, 1.0, 1.0)
    goal = {"base": [1.2, 0.3], "hand": [1.5, 0.8, 0.5]}
    for singular in (0.0, 0.3, 0.55):
        found = cc.plan(*rover, ROVER, goal, dataclasses.replace(LIMITS, singular=singular))
        assert found.reached
        assert min(servo.margin(q) for q in found.q) >= 0.999 * singular
    with pytest.raises(cc.errors.InfeasibleReferenceError, match="decoupling margin of at least"):
        cc.plan(*rover, ROVER, goal, dataclasses.replace(LIMITS, singular=0.76))
    assert servo.margin(ROVER) < 0.76


@pytest.mark.extended
def test_the_least_duration_grows_as_limits_shrink(rover, planned) -> None:
    goal = {"base": [1.0, 0.3], "hand": [1.3, 0.8, 0.5]}
    slow = cc.plan(*rover, ROVER, goal, dataclasses.replace(LIMITS, speeds=2.5))
    assert slow.reached
    assert slow.duration > 1.2 * planned.duration
    given = cc.plan(*rover, ROVER, goal, LIMITS, time=2.0 * planned.duration)
    assert given.reached
    assert given.duration == pytest.approx(2.0 * planned.duration)
    assert np.square(given.u - given.u[0]).mean() < np.square(planned.u - planned.u[0]).mean()


def test_replanning_from_the_motion_keeps_the_goal(planned) -> None:
    rest = planned.again(planned.q[10], planned.s[10])
    assert rest.reached
    assert rest.duration < 1.02 * (planned.duration - planned.t[10])
    np.testing.assert_allclose(rest.s[0], planned.s[10], atol=1e-12)
    other = planned.again(ROVER, None, {"base": [0.9, 0.3], "hand": [1.2, 0.8, 0.5]})
    np.testing.assert_allclose(other.samples["base"][0][-1], [0.9, 0.3], atol=2e-6)
    with pytest.raises(cc.errors.ConcurError, match="same outputs"):
        planned.again(ROVER, None, {"base": [0.9, 0.3]})


@pytest.mark.extended
def test_parts_of_poses_are_goals(rover) -> None:
    model, _ = rover
    hand = [cc.Output("hand", "forearm", "R3xSO3", point=(0, 0.2, 0))]
    goal = {"hand": {"position": [np.nan, np.nan, 0.45], "within": 0.05}}
    found = cc.plan(model, hand, ROVER, goal, LIMITS)
    assert found.reached
    assert abs(found.samples["hand"][0][-1][2] - 0.45) <= 0.05 + 2e-6
    way = {"hand": {"direction": [0.6, 0.8, 0.0], "axis": [1, 0, 0]}}
    turned = cc.plan(model, hand, ROVER, way, LIMITS)
    assert turned.reached
    pose = model.robot.pose(turned.q[-1], "forearm")
    np.testing.assert_allclose(pose[:3, 0], [0.6, 0.8, 0.0], atol=1e-5)


@pytest.mark.extended
@pytest.mark.parametrize("half", [0.0, 0.5], ids=["sphere", "capsule"])
@pytest.mark.parametrize("y", [0.0, 0.05, 0.3, -0.2])
def test_bodies_keep_away_from_obstacles(half: float, y: float) -> None:
    """Distances of points on the middle line of the chassis, taken anew."""
    robot = cc.load(ROOT / "examples/rover_rig/robot.toml")
    model = cc.reduce(robot)
    base = [cc.Output("base", "chassis", "R2", point=(0.25, 0, 0))]
    post = Obstacle("post", (1.2, y, -half), (1.2, y, half), 0.1, distance=0.02)
    found = cc.plan(model, base, ROVER, {"base": [2.2, 0.1]}, PlanLimits(margin=0.1), [post])
    assert found.reached
    places = [
        (robot.pose(q, "chassis") @ [x, 0, 0, 1])[:2]
        for q in found.q
        for x in np.linspace(-0.1, 0.5, 61)
    ]
    nearest = np.linalg.norm(np.array(places) - [1.2, y], axis=1).min()
    around = np.hypot(0.4, 0.1) / 2 + 0.1  # radius of the capsule around the chassis, and the post
    assert nearest >= around + 0.02 - 1e-3
    free = cc.plan(model, base, ROVER, {"base": [2.2, 0.1]}, PlanLimits(margin=0.1))
    assert free.duration < found.duration


@pytest.mark.parametrize(
    ("hand", "nearest"),
    [
        pytest.param([3.0, 0.8, 0.5], 0.5, marks=pytest.mark.extended),
        ([1.3, 0.8, 3.0], 1.8),
    ],
)
def test_a_goal_out_of_reach_is_said_with_what_is_nearest(rover, hand, nearest) -> None:
    goal = {"hand": hand, "base": [1.0, 0.3]}
    before = time.process_time()
    found = cc.plan(*rover, ROVER, goal, LIMITS)
    assert time.process_time() - before < 2.0
    assert not found.reached
    assert found.status == "failed"
    assert "the nearest goal within reach is `hand` at [" in found.why
    assert found.missed["hand"] > nearest
    assert np.abs(found.u).max() < 10.5  # limits are kept rather than the goal


def test_a_goal_in_an_obstacle_is_said_with_the_obstacle(rover) -> None:
    """The nearest goal is as far from the middle of the post as both radii."""
    model, (base, _) = rover
    post = Obstacle("post", (1.5, 0.1, -0.5), (1.5, 0.1, 0.5), 0.1)
    before = time.process_time()
    found = cc.plan(model, [base], ROVER, {"base": [1.5, 0.1]}, LIMITS, [post])
    assert time.process_time() - before < 2.0
    assert not found.reached
    assert "limited by the distance of chassis from post (0 m)" in found.why
    nearest = np.array(re.findall(r"`base` at \[(.*), (.*)\]", found.why)[0], dtype=float)
    around = np.hypot(0.4, 0.1) / 2 + 0.1
    assert np.linalg.norm(nearest - [1.5, 0.1]) == pytest.approx(around, abs=2e-3)


def test_a_goal_that_the_weight_forbids_is_said_with_the_torque(rover) -> None:
    """At the nearest goal the arm needs all the torque there is, by Pinocchio."""
    model, _ = rover
    arm = cc.Output("arm", "forearm", "R3", relative_to="chassis", point=(0, 0.2, 0))
    limits, before = PlanLimits(torques=8.0, speeds=5.0), time.process_time()
    found = cc.plan(model, [arm], ROVER, {"arm": [0.4, 0.998, 0.04]}, limits)
    assert time.process_time() - before < 2.0
    assert not found.reached
    assert "limited by the torque of upper_arm (8 N m); the nearest goal within reach" in found.why
    weight = Pinocchio(model.robot).bias(found.q[-1], np.zeros(model.robot.nv))
    at = list(model.robot.freedom_names).index("upper_arm")
    assert 7.9 < abs(weight[at]) <= 8.0
    assert cc.plan(model, [arm], ROVER, {"arm": [0.4, 0.87, 0.07]}, limits).reached


def test_a_goal_where_the_centre_of_mass_cannot_be_is_said(floating) -> None:
    """The nearest place is as far from the centre of mass as any posture, turned towards it."""
    robot, rng = floating.model.robot, np.random.default_rng(0)
    model, before = cc.reduce(robot), time.process_time()
    goal, limits = [6.0, 4.0], PlanLimits(torques=5.0, speeds=2.0)
    found = cc.plan(model, floating.outputs, [0, 0, 0, 0.5, -1.0], {"hand": goal}, limits)
    assert time.process_time() - before < 2.0
    assert not found.reached
    assert "limited by the centre of mass, which no torque moves" in found.why

    def center(q):
        parts = [
            body.inertia.mass * (robot.pose(q, body.name) @ [*body.inertia.com, 1.0])[:2]
            for body in robot.bodies
        ]
        return np.sum(parts, axis=0) / sum(body.inertia.mass for body in robot.bodies)

    low, high = robot.limits[3:].T
    shapes = rng.uniform(np.maximum(low, -np.pi), np.minimum(high, np.pi), (2000, 2))
    postures = [np.array([0, 0, 0, *shape]) for shape in np.vstack([shapes, np.zeros((1, 2))])]
    far = [
        np.linalg.norm((robot.pose(q, "forearm") @ [1, 0, 0, 1])[:2] - center(q)) for q in postures
    ]
    start = center(np.array([0, 0, 0, 0.5, -1.0]))
    nearest = np.array(re.findall(r"`hand` at \[(.*), (.*)\]", found.why)[0], dtype=float)
    assert np.linalg.norm(nearest - start) == pytest.approx(max(far), abs=5e-3)
    wanted, there = np.subtract(goal, start), nearest - start
    assert there @ wanted > 0.9999 * np.linalg.norm(there) * np.linalg.norm(wanted)


@pytest.mark.parametrize("room", [0.1, 0.3])
def test_joints_keep_room_to_the_ends_of_their_ranges(room) -> None:
    """A height of the hand that needs an upper arm at 1.2 rad, 0.3 rad before its range ends."""
    robot = cc.load(ROOT / "examples/rover_rig/robot.toml")
    model, limits = cc.reduce(robot), PlanLimits(margin=0.1, room=room)
    hand = [cc.Output("hand", "forearm", "R3", point=(0, 0.2, 0))]
    found = cc.plan(model, hand, ROVER, {"hand": [1.0, 0.5, 0.39]}, limits)
    assert found.reached
    low, high = robot.limits[5:].T
    nearest = min((found.q[:, 5:] - low).min(), (high - found.q[:, 5:]).min())
    assert nearest >= room - 1e-6
    high_up = cc.plan(model, hand, ROVER, {"hand": [1.0, 0.5, 0.45]}, limits)
    assert high_up.reached is (room == 0.1)


def test_room_that_a_range_or_the_start_does_not_have_is_refused() -> None:
    model = cc.reduce(cc.load(ROOT / "examples/rover_rig/robot.toml"))
    hand = [cc.Output("hand", "forearm", "R3", point=(0, 0.2, 0))]
    for room, words in ((1.2, "half of the range of `upper_arm`"), (0.6, "from 0.8 to 0.9")):
        with pytest.raises(cc.errors.ConcurError, match=words):
            cc.plan(model, hand, ROVER, {"hand": [1.0, 0.5, 0.4]}, PlanLimits(room=room))


def test_motions_without_any_limit_but_a_speed_are_planned(floating) -> None:
    hand, start = floating.outputs, [0, 0, 0, 0.5, -1.0]
    limits = PlanLimits(speeds=2.0, singular=0.0)
    found = cc.plan(floating.model, hand, start, {"hand": [1.3, 0.4]}, limits)
    assert found.reached
    assert found.duration <= floating.duration * 1.001
    assert {row.quantity for row in found.rows} == {
        "duration", "speed of upper_arm", "speed of forearm",
    }  # fmt: skip


@pytest.mark.by_default(2)
@pytest.mark.parametrize(
    ("place", "reached"),
    [
        ([1.87, 0.0], True),
        ([1.89, 0.0], False),
        ([1.86, 0.0], True),
        ([1.86, -0.1], True),
        ([1.855, -0.1], True),
    ],
)
def test_goals_at_the_edge_of_reach_are_those_of_slow_motions(place, reached) -> None:
    """Beside the end of a stretched arm short motions save time; a motion of 3 s has enough."""
    model = cc.reduce(cc.robots.planar_floater())
    hand = [cc.Output("hand", "forearm", "R2", point=(1.0, 0, 0))]
    problem = model, hand, [0, 0, 0, 0.5, -1.0], {"hand": place}, PlanLimits(torques=5, speeds=2.0)
    assert cc.plan(*problem, time=3.0).reached is reached
    found = cc.plan(*problem, guesses=1)
    assert found.reached is reached
    assert all(row.holds is not False for row in found.rows) or not reached
    assert not reached or found.duration < 1.0


@pytest.mark.extended
@pytest.mark.parametrize(("share", "reached"), [(1.01, True), (0.99, False)])
def test_slower_motions_are_tried_for_small_misses(monkeypatch, share, reached) -> None:
    """The nearest of the shortest motions misses the goal by an amount around the threshold."""
    hand = [cc.Output("hand", "forearm", "R2", point=(1.0, 0, 0))]
    goal = {"hand": [1.878, 0]}
    problem = cc.reduce(cc.robots.planar_floater()), hand, [0, 0, 0, 0.5, -1.0], goal
    monkeypatch.setattr(_to_goal, "EDGE", 0.0)
    nearest = cc.plan(*problem, PlanLimits(speeds=2.0), guesses=1)
    assert not nearest.reached
    said = re.fullmatch(r"misses the goal by ([\d.]+), limits by .*", nearest.starts[0])
    assert said is not None
    monkeypatch.setattr(_to_goal, "EDGE", share * float(said[1]))
    assert cc.plan(*problem, PlanLimits(speeds=2.0), guesses=1).reached is reached


def test_what_is_impossible_from_the_start_is_refused(rover) -> None:
    model, outputs = rover
    goal = {"base": [1.0, 0.3]}
    with pytest.raises(cc.errors.InfeasibleReferenceError, match="torque of upper_arm"):
        cc.plan(model, outputs, ROVER, goal, PlanLimits(torques=5.0))
    assert cc.plan(model, outputs[:1], ROVER, goal, PlanLimits(torques=6.5, speeds=2.0)).reached
    robot = cc.load(ROOT / "examples/rover_rig/robot.toml")
    with pytest.raises(cc.errors.InfeasibleReferenceError, match="distance of chassis"):
        cc.plan(
            cc.reduce(robot),
            outputs,
            ROVER,
            goal,
            None,
            [Obstacle("ball", (0.6, 0, 0), (0.6, 0, 0), 0.2)],
        )
    with pytest.raises(cc.errors.ConcurError, match="turret"):
        cc.plan(cc.reduce(robot), outputs, [0, 0, 0, 0, 0, 1.3, 1.0, -1.6], goal)


@pytest.mark.parametrize(
    ("goals", "more"),
    [
        ({}, {}), ({"tool": [1.0, 2.0]}, {}), ({"base": [1.0]}, {}), ({"base": [1.0, np.inf]}, {}),
        ({"base": {"place": [1.0, 2.0]}}, {}), ({"hand": {"direction": [0, 0, 0]}}, {}),
        ({"base": [1.0, 0.3]}, {"time": 0.0}), ({"base": [1.0, 0.3]}, {"time": "soon"}),
        ({"base": [1.0, 0.3]}, {"limits": PlanLimits(torques={"elbow": 2.0})}),
        ({"hand": {"position": [0, 0, 1], "within": -0.1}}, {}), ({"base": "here"}, {}),
        ({"hand": {"position": [0, 0, 1], "within": "x"}}, {}), ({"base": [1e40, 0.0]}, {}),
    ],
)  # fmt: skip
def test_wrong_goals_and_limits_are_refused(rover, goals, more) -> None:
    with pytest.raises(cc.errors.ConcurError):
        cc.plan(*rover, ROVER, goals, **more)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        *[({"time": x}, "`time`: expected a duration from 0.01 to 1e") for x in (
            True, False, None, -1.0, np.nan, np.inf, 1e300, 10**50, "soon", [], [1.0], 1j,
            np.array([]), 0.0099, 1.001e6,
        )],
        *[({"guesses": x}, "`guesses`: expected a whole number from 1 to 1000") for x in (
            True, None, 0, -1, 1001, 2.0, np.inf, "2", [], 1j,
        )],
        *[({"progress": x}, "`progress`: expected a function") for x in (True, 0, "x", [])],
        *[({"limits": x}, "`limits`: expected a concur.planning.PlanLimits") for x in (
            True, 5.0, "x", [], {}, {"torques": 3.0},
        )],
        *[({"obstacles": x}, "`obstacles`: expected a list of concur.proofs.Obstacle") for x in (
            None, True, 1.0, "x", [None], ["post"], np.zeros((2, 2)), {"post": 1},
        )],
    ],
)  # fmt: skip
def test_wrong_options_are_refused_with_what_is_expected(rover, more, words) -> None:
    with pytest.raises(cc.errors.ConcurError, match=words):
        cc.plan(*rover, ROVER, {"base": [1.0, 0.3]}, **more)


@pytest.mark.by_default(1)
@pytest.mark.parametrize("time", [0.01, 1e6])
def test_durations_from_a_hundredth_second_to_a_million_are_taken(floating, time) -> None:
    model, start = cc.reduce(floating.model.robot), [0, 0, 0, 0.5, -1.0]
    limits = PlanLimits(speeds=1e3)
    problem = model, floating.outputs, start, {"hand": [1.9, 0.0]}, limits
    here = cc.plan(*problem, time=time, guesses=1)
    assert here.duration == pytest.approx(time)


@pytest.mark.parametrize(
    "wrong", [{"margin": 1.0}, {"margin": -0.1}, {"apart": np.inf}, {"singular": 1.0}]
)
def test_wrong_numbers_of_limits_are_refused(wrong) -> None:
    with pytest.raises(cc.errors.ConcurError):
        PlanLimits(**wrong)


def test_a_task_takes_its_references_from_its_plan(tmp_path, planned) -> None:
    text = (ROOT / "examples/planned_rover.toml").read_text(encoding="utf-8")
    text = text.replace('"rover_rig/robot.toml"', '"rover_arm"').split("[[plan.obstacle]]")[0]
    text = text.replace("[2.2, 0.4]", "[0.8, 0.2]").replace("[2.5, 0.9, 0.5]", "[1.1, 0.7, 0.5]")
    text = text.replace("margin = 0.1", "torques = 10.0\nspeeds = 5.0")
    rest = (
        "[initial.q]\nturret = 0.2\nupper_arm = 1.0\nforearm = -1.6\n[simulation]\nduration = 1.0\n"
    )
    path = tmp_path / "task.toml"
    path.write_text(text + rest, encoding="utf-8")
    with pytest.raises(cc.errors.DescriptionError, match="concur plan"):
        cc.load_task(path)
    found = cc.io.plan_task(*cc.io.load_goal(path))
    assert found.reached
    file = found.save(tmp_path / "task.plan.json")
    task = cc.load_task(path)
    np.testing.assert_allclose(task.reference(0.5).pose, found.reference(0.5).pose, atol=1e-12)
    assert task.simulate().status == "passed"
    proved = load_proof_task(to_toml(task.robot), task.proof_text())  # the file of a proof
    for t in (-0.2, 0.0, 0.31, 0.777, found.duration, 3.0):
        for part in ("pose", "twist", "acceleration"):
            own = getattr(task.reference(t), part)
            np.testing.assert_array_equal(getattr(proved.reference(t), part), own)
    assert cc.load_result(file).status == "passed"
    document = json.loads(file.read_text(encoding="utf-8"))
    hand = document["outputs"]["hand"]
    for wrong, words in (
        ({"passed": False}, "reaches its goal"),
        ({"passed": "no"}, "reaches its goal"),
        ({"t": ["a"] * len(document["t"])}, "array of numbers"),
        ({"outputs": document["outputs"] | {"hand": 3}}, "hand"),
        ({"outputs": document["outputs"] | {"hand": hand | {"poses": [[1], [2, 3]]}}}, "numbers"),
        ({"outputs": document["outputs"] | {"hand": hand | {"twists": None}}}, "numbers"),
    ):
        file.write_text(json.dumps(hashed(document | wrong)), encoding="utf-8")
        with pytest.raises(cc.errors.ConcurError, match=words):
            cc.load_task(path)
    del document["outputs"]["hand"]
    file.write_text(json.dumps(hashed(document)), encoding="utf-8")
    with pytest.raises(cc.errors.DescriptionError, match="hand"):
        cc.load_task(path)


@pytest.mark.extended
def test_the_shipped_plan_is_that_of_its_task_and_is_found_again() -> None:
    path = ROOT / "examples/planned_rover.toml"
    found = cc.io.plan_task(*cc.io.load_goal(path))
    assert found.reached
    stored = json.loads(path.with_name("planned_rover.plan.json").read_text(encoding="utf-8"))
    assert stored["made_for"] == found.made_for
    assert found.duration <= 1.01 * stored["t"][-1]
    assert cc.load_task(path).duration > found.duration


@pytest.mark.parametrize("angles", [(0.0, 0.0, 0.0), (2.0, -3.0, 1.0)])
def test_a_motion_of_given_duration_has_nearly_the_least_effort(angles) -> None:
    """Turned about one axis a satellite with wheels is a double integrator, wherever these are.

    From rest to rest by d in a time T the least mean of u^2 is 12 (m d)^2 / T^4.
    """
    model = cc.reduce(cc.robots.wheel_satellite())
    root, q0 = model.robot.base.name, model.robot.neutral()
    q0[7:] = angles
    limits = PlanLimits(torques=5.0, speeds=60.0)
    turned = [0.0, 0.0, np.sin(0.05), np.cos(0.05)]
    body = [cc.Output("body", root, "SO3")]
    found = cc.plan(model, body, q0, {"body": turned}, limits, time=8.0)
    assert found.reached
    mass = 1.0 / np.asarray(model.acceleration(q0, np.zeros(3), [0.0, 0.0, 1.0]))[2]
    least = 12.0 * (mass * (found.q[-1, 9] - found.q[0, 9])) ** 2 / found.duration**4
    torque = CubicSpline(found.t, found.u)(np.linspace(0.0, found.duration, 4001))
    assert 1.0 <= np.square(torque[:, 2]).mean() / least < 1.1
    assert np.abs(torque[:, :2]).max() < 0.03 * np.abs(torque[:, 2]).max()
