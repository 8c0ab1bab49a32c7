"""Base and undriven joints from the lift: odometry, and motion at constant momentum."""

import math

import numpy as np
import pytest

import concur as cc
from concur.reduction import MomentumReduction, StagedReduction, WheelReduction
from hil._transmission import transmission_of
from hil.errors import RigError
from hil.state._reconstruction import find_places, make_graphs
from tests.hil._estimated import PERIOD, Encoders, at, estimator_of, motion_of
from tests.oracles import Pinocchio

MOMENTUM = (0.5, -0.3, 0.2, 2.5, 0.8, 0.8)
LEFT = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])


def step_of(model, q, y, w, dt, measured=False):
    places = find_places(model, transmission_of(model.robot, ""))
    graph = make_graphs(model, places, measured, "").step
    return graph(q, y, w, dt, LEFT)


def floating(name="free_flyer", momentum=MOMENTUM):
    return cc.reduce(getattr(cc.robots, name)(), momentum=momentum)


@pytest.mark.extended
@pytest.mark.parametrize("turns", [1.0, 7.25])
def test_two_wheels_roll_on_a_circle(turns):
    # Speeds of the wheels in the ratio of their radii: an arc, whose end is known exactly.
    model = cc.reduce(cc.robots.rover_arm())
    estimator = estimator_of(model)
    radius, half, wheel, turn_rate = 1.5, 0.25, 0.1, 0.4
    times = np.arange(0.0, 2.0 * math.pi * turns / turn_rate, PERIOD)
    q = np.tile(model.robot.neutral(), (len(times), 1))
    for side, name in ((-half, "left_wheel"), (half, "right_wheel")):
        rolled = turn_rate * (radius + side) * times / wheel
        q[:, model.robot.q_slice(name)] = rolled[:, None]
    _, found, _, _ = Encoders(estimator, step=0.0).follow(q, times)
    # From the second cycle on: before, the observers still learn the speed.
    heading = turn_rate * times
    offset = 5e-3  # error of the start, which is assumed at rest
    assert np.abs(found[:, 2] - heading).max() < offset
    assert np.abs(found[-1, 2] - heading[-1]) < 1e-3
    assert np.hypot(found[:, 0], found[:, 1] - radius) == pytest.approx(radius, abs=2e-3)


@pytest.mark.by_default(1)
@pytest.mark.parametrize(
    "name",
    ["rover_arm", "car_arm", "crane_car", "mecanum_arm", "tractor_trailers"],
)
def test_odometry_follows_the_motion_of_wheels(name):
    model = cc.reduce(getattr(cc.robots, name)())
    assert isinstance(model, WheelReduction)
    check_motion(model, model.robot.neutral(), 2e-6)


@pytest.mark.by_default(2)
@pytest.mark.parametrize("name", ["free_flyer", "station_arm", "planar_floater", "wheel_satellite"])
def test_floating_bases_follow_from_momentum(name):
    # The satellite with wheels is small: this momentum would spin it at 50 rad/s.
    share = 0.02 if name == "wheel_satellite" else 1.0
    model = floating(name, share * np.array(MOMENTUM))
    assert isinstance(model, MomentumReduction)
    check_motion(model, model.robot.random(np.random.default_rng(1)), 1e-4)


def test_stages_follow_from_their_momenta():
    robot = cc.robots.wheel_satellite()
    robot = cc.Mechanism(robot.name, robot.bodies, actuated=["wheel_x", "wheel_y"])
    model = cc.reduce(robot, momentum=0.02 * np.array(MOMENTUM), stages={"wheel_z": 0.002})
    assert isinstance(model, StagedReduction)
    assert model.shape_names == ("wheel_x", "wheel_y")
    check_motion(model, robot.neutral(), 1e-4)


def check_motion(model, q0, tolerance):
    """One step after another, of exact increments, against an integrator of eighth order."""
    times, q, speeds = motion_of(model, q0, 0.5)
    stride = round(PERIOD / 1e-3)
    places = find_places(model, transmission_of(model.robot, ""))
    graph = make_graphs(model, places, False, "").step
    now, measured = q[0], list(places.q)
    for k in range(stride, len(times), stride):
        s = speeds(times[k])
        y = q[k, measured]
        now, taken, v, anchored, *_ = graph(now, y, s[np.argsort(places.shape)], PERIOD, LEFT)
        assert taken == pytest.approx(s, abs=1e-12)
    travelled = np.abs(model.robot.difference(q[0], q[-1])).max()
    assert travelled > 0.05
    assert model.robot.difference(q[-1], now) == pytest.approx(0.0, abs=tolerance)
    assert now[measured] == pytest.approx(q[-1, measured], abs=1e-15)
    assert v == pytest.approx(model.velocity(now, speeds(times[-1])), abs=1e-9)
    pose = model.robot.pose(now, model.robot.base.name)
    assert anchored[:3] == pytest.approx(pose[:3, 3], abs=1e-12)
    for start in model.quaternions:
        assert np.linalg.norm(now[start : start + 4]) == pytest.approx(1.0, abs=1e-12)


def test_error_of_a_step_falls_with_its_third_power():
    model = floating()
    q0 = model.robot.random(np.random.default_rng(2))
    times, q, speeds = motion_of(model, q0, 0.2)
    places = find_places(model, transmission_of(model.robot, ""))
    graph = make_graphs(model, places, False, "").step
    errors = []
    for stride in (8, 16, 32):
        now = graph(q[0], q[stride, list(places.q)], speeds(0.0), times[stride], LEFT)[0]
        errors.append(np.abs(model.robot.difference(q[stride], now)).max())
    assert 5.0 < errors[1] / errors[0] < 12.0
    assert 5.0 < errors[2] / errors[1] < 12.0


def test_pinocchio_finds_the_momentum_in_the_estimated_state():
    model = floating()
    peer = Pinocchio(model.robot)
    q0 = model.robot.random(np.random.default_rng(4))
    estimator = estimator_of(model, q0)
    times, q, speeds = motion_of(model, q0, 0.6)
    cycles = slice(None, None, 4)
    now, found, s, v = Encoders(estimator, step=0.0).follow(q[cycles], times[cycles])
    for k in range(100, len(found)):
        assert peer.momentum(found[k], v[k]) == pytest.approx(MOMENTUM, abs=1e-9)
        assert s[k] == pytest.approx(speeds(now[k]), abs=0.05)


def test_noise_of_encoders_does_not_become_drift():
    # Joints that tremble about a place for a minute leave the base where it is.
    model = cc.reduce(cc.robots.rover_arm())
    estimator = estimator_of(model)
    rng = np.random.default_rng(5)
    count = 4000
    q = np.tile(model.robot.neutral(), (count, 1))
    q[:, 3:] += rng.normal(0.0, 2e-3, (count, 5))
    q[0, 3:] = q[-1, 3:] = 0.0
    times = PERIOD * np.arange(count)
    _, found, s, _ = Encoders(estimator).follow(q, times)
    assert s[1000:].std(axis=0).min() > 0.05  # velocities, added up, would wander
    wandered = np.abs(found[-1, :3])
    assert wandered.max() < 1.5e-3


def test_the_encoder_takes_precedence_over_the_lift():
    # All four wheels of the mecanum platform driven: three speeds determine the fourth.
    robot = cc.robots.mecanum_arm()
    driven = [*robot.actuated, "rear_right"]
    robot = cc.Mechanism(
        robot.name, robot.bodies, wheels=robot.wheels, gravity=robot.gravity, actuated=driven
    )
    model = cc.reduce(robot)
    assert "rear_right" not in model.shape_names
    places = find_places(model, transmission_of(model.robot, ""))
    rng = np.random.default_rng(6)
    q = robot.neutral()
    y, w = q[list(places.q)] + rng.normal(0.0, 0.01, len(driven)), rng.normal(size=len(driven))
    after, s, v, *_ = make_graphs(model, places, False, "").step(q, y, w, PERIOD, LEFT)
    assert after[list(places.q)] == pytest.approx(y, abs=0.0)
    assert robot.constraints(after) @ v == pytest.approx(0.0, abs=1e-12)
    assert s == pytest.approx(w[list(places.shape)], abs=0.0)


def test_a_law_that_takes_all_velocities_gets_them():
    model = floating()
    q, n = model.robot.neutral(), model.nu
    s = np.linspace(0.1, 0.4, n)
    _, taken, v, *_ = step_of(model, q, q[7:], s, PERIOD, measured=True)
    assert taken == pytest.approx(v, abs=0.0)
    assert v[6:] == pytest.approx(s, abs=0.0)


def test_acceleration_is_that_of_the_full_order_plant():
    model = cc.reduce(cc.robots.car_arm())
    rng = np.random.default_rng(7)
    places = find_places(model, transmission_of(model.robot, ""))
    graph = make_graphs(model, places, False, "").acceleration
    plant = cc.Plant(model.robot, stabilisation=0.0)
    for _ in range(3):
        q = model.robot.neutral() + rng.uniform(-0.5, 0.5, model.nq)
        s, u = rng.normal(size=model.ns), rng.normal(size=model.nu)
        vdot, _ = plant.acceleration(q, model.velocity(q, s), u)
        found, inertia, held, ease = graph(q, s, u)
        rows = list(places.transmission.v)
        assert found == pytest.approx(vdot[rows], rel=1e-8, abs=1e-8)
        without, _ = plant.acceleration(q, model.velocity(q, s), np.zeros(model.nu))
        assert inertia @ (vdot - without)[rows] == pytest.approx(u, rel=1e-7, abs=1e-7)
        assert ease @ u == pytest.approx((vdot - without)[rows], rel=1e-7, abs=1e-7)
        kept, _ = plant.acceleration(q, model.velocity(q, s), held)
        assert inertia @ (vdot - kept)[rows] == pytest.approx(u - held, rel=1e-7, abs=1e-7)


def test_undriven_joints_are_named():
    places = find_places(cc.reduce(cc.robots.car_arm()), transmission_of(cc.robots.car_arm(), ""))
    assert "right_wheel" in places.reconstructed
    assert "chassis" in places.reconstructed
    assert "left_wheel" not in places.reconstructed


def test_a_motion_that_no_encoder_tells_is_refused():
    # A snakeboard coasts: its speed does not follow from its joints.
    model = cc.reduce(cc.robots.snakeboard())
    with pytest.raises(RigError, match="snakeboard") as error:
        find_places(model, transmission_of(model.robot, ""))
    assert "`board[vx]`" in error.value.came


@pytest.mark.extended
def test_a_drifting_base_moves_while_its_joints_rest():
    model = floating()
    q0 = model.robot.random(np.random.default_rng(8))
    times, q, _ = motion_of(model, q0, 2.0, amplitude=0.0)
    estimator = estimator_of(model, q0)
    cycles = slice(None, None, 4)
    now, found, _, _ = Encoders(estimator, step=0.0).follow(q[cycles], times[cycles])
    true = at(times, q, now[:-1])
    lever = np.abs(found[:-1, :3] - true[:, :3]).max()
    # The motion between the first sample and its arrival is unknown to the estimator.
    assert lever < 1.5 * np.linalg.norm(model.velocity(q0, np.zeros(6))[:3]) * 1e-3 + 1e-5
