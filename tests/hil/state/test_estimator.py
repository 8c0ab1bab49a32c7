"""The estimator: odometry and drift over a minute, accepted and rejected external poses."""

import math
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

import concur as cc
from concur.groups import quaternion
from hil.drives.feedback import Feedback
from hil.errors import RigError
from hil.rig import load_rig
from hil.state.estimator import Estimator
from hil.state.pose_source import PoseMeasurement
from tests.hil._estimated import (
    LATENCY,
    PERIOD,
    Encoders,
    at,
    estimator_of,
    law_of,
    motion_of,
    pose_settings,
    rig_of,
)

EXAMPLES = Path(__file__).parents[3] / "examples"
MOMENTUM = np.array([0.5, -0.3, 0.2, 2.5, 0.8, 0.8])


def simulated(name, duration, dt):
    """A rig of the examples, its servo, and its task by the full-order plant."""
    rig = load_rig(EXAMPLES / name / "rig.toml")
    task, servo = rig.task, rig.task.servo
    s0 = np.zeros(servo.ns)
    run = cc.simulate(
        task.robot,
        servo,
        task.reference,
        duration,
        task.q0,
        s0,
        dt=cc.simulation.Integrator(task.method, dt, PERIOD),
    )
    return rig, servo, run


@pytest.fixture(scope="module")
def rover():
    return simulated("rover_rig", 12.0, 2e-3)


@pytest.fixture(scope="module")
def floater():
    return simulated("floater_rig", 8.0, PERIOD)


@pytest.fixture(scope="module")
def short():
    return simulated("floater_rig", 1.0, PERIOD)


def base_of(robot, q):
    pose = robot.pose(q, robot.base.name)
    return pose[:3, 3], quaternion.from_matrix(pose[:3, :3])


def measured(robot, q, time, **parts):
    position, attitude = base_of(robot, q)
    given = {"position": tuple(position), "quaternion": tuple(attitude)} | parts
    return PoseMeasurement(time, given["position"], given["quaternion"])


# -- without an external source -------------------------------------------------------------------


@pytest.mark.extended
@pytest.mark.parametrize("has_model", [False, True])
def test_odometry_of_a_slalom(rover, has_model):
    check_odometry(*rover, has_model)


@pytest.mark.slow
@pytest.mark.parametrize("has_model", [False, True])
def test_a_minute_of_odometry(has_model):
    check_odometry(*simulated("rover_rig", 60.0, 1e-3), has_model)


def check_odometry(rig, servo, run, has_model):
    """4096 counts, 1 ms latency, up to 18 m: the plant models wheels by multipliers only."""
    estimator = Estimator(rig, servo)
    encoders, stride = Encoders(estimator), round(PERIOD / (run.t[1] - run.t[0]))
    suspects = []

    def acceleration(k):
        return estimator.acceleration(run.u[stride * k - 1]) if has_model else None

    def look(k, now):
        suspects.append(not estimator.valid)

    times = run.t[::stride]
    now, q, s, _ = encoders.follow(run.q[::stride], times, look, acceleration)
    inner = slice(1, -1)
    true = at(run.t, run.q, now)
    off = np.abs(q - true)[inner]
    assert off[:, :2].max() < 5e-4  # m
    assert off[:, 2].max() < 1e-3  # rad
    assert off[-1, :2].max() < 3e-4
    rough = np.abs(s - at(run.t, run.v, now)[:, list(servo.model.shape)])[200:-1]
    assert rough.max() < (0.11 if has_model else 0.15)
    assert np.sqrt((rough**2).mean(axis=0)).max() < 0.03
    assert not any(suspects)
    assert estimator.implausible.sum() + estimator.repeated.sum() == 0
    assert estimator.source == "lift"
    assert math.isnan(estimator.pose_age)


@pytest.mark.extended
def test_a_floating_base_drifts_little(floater):
    rig, servo, run = floater
    estimator = Estimator(rig, servo, compiled=False)
    encoders = Encoders(estimator, step=2.0 * math.pi / 40960)
    _now, q, _, v = encoders.follow(run.q, run.t)
    robot = servo.model.robot
    apart = np.array(
        [robot.difference(q[k], run.q[k] + 0.0) for k in range(1, len(q), 50)]
    )  # a millisecond apart: the estimate is of the arrival
    ahead = LATENCY * run.v[1::50]
    assert np.abs(apart + ahead)[:, :3].max() < 2e-4  # m
    assert np.abs(apart + ahead)[:, 3:6].max() < 5e-4  # rad
    assert np.abs(v - run.v)[300:-1, :6].max() < 0.02
    assert estimator.valid


@pytest.mark.extended
def test_machine_code_and_interpreter_agree(floater):
    rig, servo, run = floater
    ends = []
    for compiled in (False, True):
        estimator = Estimator(rig, servo, compiled=compiled)
        _, q, s, v = Encoders(estimator).follow(run.q[:200], run.t[:200])
        ends.append((q[-1], s[-1], v[-1]))
    for ours, theirs in zip(*ends, strict=True):
        assert ours == pytest.approx(theirs, abs=1e-12)


def still_rover(pose=None, q0=None, **settings):
    model = cc.reduce(cc.robots.rover_arm())
    estimator = estimator_of(model, q0, pose=pose, **settings)
    return estimator, Encoders(estimator)


def test_a_start_takes_joints_from_reports_and_the_base_from_the_task():
    q0 = np.array([1.0, 2.0, 0.5, 0.0, 0.0, 0.1, 0.2, 0.3])
    estimator, encoders = still_rover(q0=q0)
    assert not estimator.started
    assert estimator.q == pytest.approx(q0)
    there = np.array([0.0, 0.0, 0.0, 700.0, -300.0, 0.4, 0.5, 0.6])
    now = encoders.report(there, 5.0)
    assert estimator.start(encoders.feedback, now)
    assert estimator.valid
    assert estimator.q[:3] == pytest.approx(q0[:3], abs=1e-12)  # wheels did not roll there
    assert estimator.q[3:] == pytest.approx(there[3:], abs=1e-3)
    assert estimator.s == pytest.approx(0.0, abs=1e-12)


def test_a_start_waits_for_all_axes():
    estimator, _encoders = still_rover()
    feedback = Feedback(5)
    feedback.position[:4], feedback.time[:4], feedback.count[:4] = 0.1, 1.0, 1
    assert not estimator.start(feedback, 1.001)
    assert not estimator.update(feedback, 1.005)
    assert not estimator.started
    feedback.position[4], feedback.time[4], feedback.count[4] = 0.2, 1.006, 1
    assert estimator.update(feedback, 1.007)
    assert estimator.started
    assert estimator.q[:3] == pytest.approx(0.0, abs=1e-12)
    assert estimator.q[3:] == pytest.approx([0.1, 0.1, 0.1, 0.1, 0.2], abs=1e-12)


def test_a_second_start_forgets_the_first():
    estimator, encoders = still_rover()
    q = np.zeros((300, 8))
    q[:, 3:5] = 3.0 * PERIOD * np.arange(300)[:, None]
    encoders.follow(q, PERIOD * np.arange(300))
    assert estimator.q[0] > 0.3
    now = encoders.report(np.zeros(8), 2.0)
    assert estimator.start(encoders.feedback, now, np.full(8, 0.25))
    assert estimator.q == pytest.approx([0.25, 0.25, 0.25, 0, 0, 0, 0, 0], abs=1e-12)
    assert estimator.s == pytest.approx(0.0, abs=1e-12)


def test_a_start_refuses_what_is_no_configuration():
    estimator, encoders = still_rover()
    now = encoders.report(np.zeros(8), 1.0)
    with pytest.raises(cc.errors.ShapeError):
        estimator.start(encoders.feedback, now, np.zeros(7))
    with pytest.raises(cc.errors.NonFiniteError):
        estimator.start(encoders.feedback, now, np.full(8, np.nan))


def test_an_axis_that_jumps_is_lost_and_the_base_stays():
    estimator, encoders = still_rover()
    q = np.zeros((100, 8))
    q[50:, 3] = 5.0  # the left wheel, at once, by five radians
    valid = []
    encoders.follow(q, PERIOD * np.arange(100), lambda k, now: valid.append(estimator.valid))
    assert valid == [True] * 52 + [False] * 48
    assert estimator.lost.tolist() == [True, False, False, False, False]
    assert estimator.implausible[0] == 50
    assert np.abs(estimator.q[:3]).max() < 1e-9
    now = encoders.report(q[-1], 1.0)
    assert estimator.start(encoders.feedback, now)
    assert estimator.valid


@pytest.mark.extended
def test_missing_reports_are_bridged_without_drift(rover):
    rig, servo, run = rover
    estimator, rng = Estimator(rig, servo), np.random.default_rng(1)
    encoders, feedback = Encoders(estimator), None
    worst = 0.0
    for k in range(0, 5000, 2):
        now = encoders.report(run.q[k], run.t[k])
        if feedback is None:
            feedback = Feedback(5)
            for name in ("position", "time", "count"):
                getattr(feedback, name)[:] = getattr(encoders.feedback, name)
            estimator.start(feedback, now)
            continue
        for i in np.flatnonzero(rng.uniform(size=5) > 0.2):  # a fifth of all reports is lost
            for name in ("position", "time", "count"):
                getattr(feedback, name)[i] = getattr(encoders.feedback, name)[i]
        assert estimator.update(feedback, now)
        true = at(run.t[k : k + 3], run.q[k : k + 3], np.array([now]))[0]
        worst = max(worst, np.abs(estimator.q - true)[:2].max())
    assert worst < 1e-3


@pytest.mark.filterwarnings("error")
def test_a_lift_without_numbers_leaves_the_last_state():
    estimator, encoders = still_rover()
    encoders.follow(np.zeros((10, 8)), PERIOD * np.arange(10))
    now = encoders.report(np.zeros(8), 1.0)
    estimator._anchor[:] = np.nan  # only an anchor is lost: the state is not
    assert estimator.update(encoders.feedback, now)
    estimator._anchor[:] = (0, 0, 0, 0, 0, 0, 1)
    before = estimator.q.copy()
    estimator.q[0] = 1e308  # overflows within the step
    estimator.q[2] = np.inf
    now = encoders.report(np.ones(8) * 1e-3, 1.004)
    assert not estimator.update(encoders.feedback, now)
    assert not estimator.valid
    assert before[3:] == pytest.approx(estimator.q[3:], abs=1e-9)


def test_acceleration_is_that_of_the_plant():
    model = cc.reduce(cc.robots.rover_arm())
    estimator = estimator_of(model)
    times, q, speeds = motion_of(model, model.robot.neutral(), 0.5, step=PERIOD)
    Encoders(estimator, step=0.0).follow(q, times)
    torque = np.array([0.5, -0.2, 0.3, 0.1, -0.4])
    v = model.velocity(q[-1], speeds(times[-1]))
    vdot, _ = cc.Plant(model.robot).acceleration(q[-1], v, torque)
    assert estimator.acceleration(torque) == pytest.approx(vdot[3:], abs=0.05)


@pytest.mark.extended
def test_no_memory_is_taken_from_cycle_to_cycle(short):
    rig, servo, run = short
    estimator = Estimator(rig, servo)
    encoders = Encoders(estimator)
    encoders.follow(run.q[:100], run.t[:100])
    time = float(run.t[99])

    def cycles(count):
        nonlocal time
        for _ in range(count):
            time += PERIOD
            now = encoders.report(run.q[99], time)
            estimator.update(encoders.feedback, now, estimator.acceleration(run.u[99]))
            estimator.correct(measured(servo.model.robot, estimator.q, now - 0.01))

    cycles(300)
    tracemalloc.start()
    try:
        cycles(100)
        before = tracemalloc.get_traced_memory()[0]
        cycles(500)
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert estimator.poses > 250
    assert grown < 4000


# -- with an external source ----------------------------------------------------------------------


@pytest.mark.extended
def test_motion_capture_bounds_what_a_wrong_momentum_does(floater):
    # The momentum of the robot differs from that of the servo: the lift alone drifts.
    rig, servo, _ = floater
    model = servo.model
    true = model.at_momentum(1.1 * MOMENTUM)
    q0 = rig.task.q0
    times, q, _ = motion_of(true, q0, 10.0, amplitude=0.2, step=PERIOD)
    rng = np.random.default_rng(2)
    apart = {}
    for fed in (False, True):
        estimator = estimator_of(model, q0, pose=pose_settings())
        encoders = Encoders(estimator)

        def feed(k, now, estimator=estimator):
            if k % 3 == 0 and k > 2:  # 83 Hz, 8 ms old, 1 mm and 1 mrad of noise
                position, attitude = base_of(model.robot, q[k - 2])
                turn = quaternion.exp(rng.normal(0.0, 1e-3, 3))
                estimator.correct(
                    PoseMeasurement(
                        times[k - 2],
                        tuple(position + rng.normal(0.0, 1e-3, 3)),
                        tuple(quaternion.multiply(attitude, turn)),
                    )
                )

        now, found, _, _ = encoders.follow(q, times, feed if fed else None)
        ends = [model.robot.difference(f, t) for f, t in zip(found, at(times, q, now), strict=True)]
        apart[fed] = np.abs(np.array(ends))[:-1, :6]
        if fed:
            assert estimator.source == "lift + pose"
            assert estimator.poses > 800
            assert sum(estimator.poses_refused.values()) == 0
            assert estimator.pose_age == pytest.approx(LATENCY + 8e-3, abs=PERIOD * 3)
    assert apart[False][-1].max() > 0.15
    assert apart[True][1000:].max() < 0.01  # m and rad


@pytest.mark.parametrize("age", [0.0, 0.02, 0.15])
def test_a_pose_is_compared_with_the_estimate_of_its_instant(short, age):
    # True poses, old ones too, of a robot that is where it is thought to be: nothing changes.
    rig, servo, run = short
    estimator = estimator_of(servo.model, rig.task.q0, pose=pose_settings())
    encoders = Encoders(estimator, step=0.0)
    encoders.follow(run.q[:200], run.t[:200])
    before = estimator.q.copy()
    back = round(age / PERIOD)
    old = measured(servo.model.robot, run.q[199 - back], run.t[199 - back])
    assert estimator.correct(old)
    assert max(estimator.pose_error) < 1e-3
    assert servo.model.robot.difference(before, estimator.q) == pytest.approx(0.0, abs=5e-4)


@pytest.mark.by_default(1)
@pytest.mark.parametrize("age", [0.0, 0.1])
def test_a_correction_moves_past_and_present_alike(short, age):
    # The estimate is off by a motion of the whole world: an old pose still shows it.
    rig, servo, _run = short
    robot = servo.model.robot
    q0 = robot.integrate(rig.task.q0, np.r_[0.1, -0.05, 0.08, 0.1, 0.15, -0.1, np.zeros(6)])
    # At zero momentum the lift does not depend on where the base is.
    model = servo.model.at_momentum(np.zeros(6))
    times, q, _ = motion_of(model, rig.task.q0, 1.0)
    estimator = estimator_of(model, q0, pose=pose_settings(), pose_gain=1e3)
    encoders = Encoders(estimator, step=0.0)
    for k, (state, sampled) in enumerate(zip(q[::4], times[::4], strict=True)):
        now = encoders.report(state, sampled)
        if k == 0:
            estimator.start(encoders.feedback, now, q0)
        else:
            estimator.update(encoders.feedback, now)
    back = round(age / PERIOD) * 4 + 4
    true = q[-5]
    estimator.correct(measured(robot, q[-1 - back], times[-1 - back]))
    assert estimator.pose_error[0] > 0.1
    left = robot.difference(true, estimator.q)[:6]
    assert np.abs(left).max() < 0.02  # motion of the base in the last cycle
    # Another pose of the same or an earlier time is ignored.
    after = estimator.q.copy()
    assert estimator.correct(measured(robot, q[-1], times[-1]))
    assert max(estimator.pose_error) < 2e-3
    assert robot.difference(after, estimator.q) == pytest.approx(0.0, abs=3e-3)


def resting(gives="pose", q0=None, cycles=30, **settings):
    """A rover at rest that was started, and the instant up to which it was updated."""
    pose = pose_settings(gives=gives, **settings.pop("feed", {}))
    estimator, encoders = still_rover(pose, q0, **settings)
    encoders.follow(np.zeros((cycles, 8)), 10.0 + PERIOD * np.arange(cycles))
    estimator.q[:3] = 0.0 if q0 is None else q0[:3]
    return estimator, encoders, 10.0 + PERIOD * (cycles - 1)


def rested(estimator, encoders, now):
    now += PERIOD
    arrived = encoders.report(np.zeros(8), now)
    estimator.update(encoders.feedback, arrived)
    return now


HERE, LEVEL = (0.1, -0.06, 0.0), (0.0, 0.0, math.sin(0.05), math.cos(0.05))


def test_the_base_is_drawn_at_the_rate_of_the_settings():
    estimator, encoders, now = resting(pose_gain=2.0)
    left = []
    for _ in range(250):
        now = rested(estimator, encoders, now)
        assert estimator.correct(PoseMeasurement(now, HERE, LEVEL))
        left.append(HERE[0] - estimator.q[0])
    left = np.array(left)
    assert left[200] / left[100] == pytest.approx(math.exp(-2.0 * 100 * PERIOD), rel=1e-6)
    share = 1.0 - left[-1] / HERE[0]
    assert estimator.q[:3] == pytest.approx([0.1 * share, -0.06 * share, 0.1 * share], abs=1e-4)
    assert estimator.q[3:] == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize(
    ("gives", "moved"),
    [("pose", (True, True)), ("position", (True, False)), ("attitude", (False, True))],
)
def test_only_what_is_measured_is_drawn(gives, moved):
    estimator, encoders, now = resting(gives)
    position = None if gives == "attitude" else HERE
    attitude = None if gives == "position" else LEVEL
    for _ in range(50):
        now = rested(estimator, encoders, now)
        assert estimator.correct(PoseMeasurement(now, position, attitude))
    assert (abs(estimator.q[0]) > 0.01, abs(estimator.q[2]) > 0.01) == moved
    assert estimator.source == f"lift + {gives}"
    assert not estimator.correct(PoseMeasurement(now + 1e-3, None, None))
    assert estimator.poses_refused["invalid"] == 1


def test_what_a_base_on_wheels_cannot_do_is_left_aside():
    # Markers above the base, on a table that is not level.
    estimator, encoders, now = resting()
    tilted = tuple(quaternion.multiply(np.array(LEVEL), quaternion.exp(np.array([0.2, 0.1, 0]))))
    for _ in range(600):
        now = rested(estimator, encoders, now)
        assert estimator.correct(PoseMeasurement(now, (0.1, -0.06, 0.9), tilted))
    assert estimator.q[:2] == pytest.approx([0.1, -0.06], abs=1e-4)
    assert estimator.q[2] == pytest.approx(0.1, abs=0.02)


def test_poses_that_are_far_away_are_refused_until_one_is_near():
    estimator, encoders, now = resting()
    far = (0.5, 0.0, 0.0)
    for k in range(30):
        now = rested(estimator, encoders, now)
        assert not estimator.correct(PoseMeasurement(now, far, LEVEL))
        assert estimator.disagrees == (k + 1 >= 10)
    assert estimator.poses_refused["jump"] == 30
    assert estimator.pose_error[0] == pytest.approx(0.5, abs=1e-9)
    assert estimator.q[:3] == pytest.approx(0.0, abs=1e-12)
    assert estimator.source == "lift (external pose disagrees)"
    assert math.isnan(estimator.pose_age)
    now = rested(estimator, encoders, now)
    assert estimator.correct(PoseMeasurement(now, HERE, LEVEL))
    assert not estimator.disagrees
    assert estimator.source == "lift + pose"


def test_without_poses_the_lift_continues_alone():
    estimator, encoders, now = resting()
    assert estimator.source == "lift (no external pose)"
    estimator.correct(PoseMeasurement(now, HERE, LEVEL))
    for _ in range(45):
        now = rested(estimator, encoders, now)
        assert estimator.source == "lift + pose"
    for _ in range(10):
        now = rested(estimator, encoders, now)
    assert estimator.source == "lift (no external pose)"
    assert estimator.pose_age == pytest.approx(55 * PERIOD + LATENCY, abs=1e-9)
    assert estimator.valid
    assert estimator.correct(PoseMeasurement(now, HERE, LEVEL))
    assert estimator.source == "lift + pose"


def test_poses_without_order_are_refused():
    estimator, _encoders, now = resting(cycles=100)
    assert estimator.correct(PoseMeasurement(now, HERE, LEVEL))
    before = estimator.q.copy()
    assert not estimator.correct(PoseMeasurement(now, HERE, LEVEL))
    assert not estimator.correct(PoseMeasurement(now - 0.01, HERE, LEVEL))
    assert not estimator.correct(PoseMeasurement(math.nan, HERE, LEVEL))
    assert estimator.poses_refused["disordered"] == 3
    assert estimator.q == pytest.approx(before, abs=0.0)


@pytest.mark.parametrize("offset", [-0.2, -5.0, -100.0, 6.1e-3, 1.0, math.inf])
def test_poses_of_other_times_are_refused(offset):
    estimator, _encoders, now = resting(cycles=100)
    assert not estimator.correct(PoseMeasurement(now + offset, HERE, LEVEL))
    assert estimator.poses_refused["old"] == 1
    assert estimator.poses == 0


@pytest.mark.parametrize("offset", [-0.198, 5.9e-3])
def test_poses_of_the_present_but_for_clocks_and_the_timeout_are_taken(offset):
    # The present is that of the last report, which arrived a millisecond after `now`.
    estimator, _encoders, now = resting(cycles=100)
    assert estimator.correct(PoseMeasurement(now + offset, HERE, LEVEL))


@pytest.mark.parametrize("gap", [0.049, 0.06, 1.0])
@pytest.mark.parametrize("gain", [5.0, 0.5])
def test_a_pose_counts_for_the_time_since_the_last_up_to_a_twentieth_of_a_second(gap, gain):
    estimator, encoders, now = resting(pose_gain=gain)
    upright = (0.0, 0.0, 0.0, 1.0)
    assert estimator.correct(PoseMeasurement(now, HERE, upright))
    assert estimator.q[0] == pytest.approx(0.1 * (1.0 - math.exp(-gain * 0.05)), rel=1e-9)
    before, then = 0.1 - estimator.q[0], now + gap
    while now < then - 1e-9:
        now = rested(estimator, encoders, now)
    assert estimator.correct(PoseMeasurement(then, HERE, upright))
    left = (0.1 - estimator.q[0]) / before
    assert left == pytest.approx(math.exp(-gain * min(gap, 0.05)), rel=1e-9)


@pytest.mark.parametrize(
    ("length", "taken"), [(0.9991, True), (1.0009, True), (0.9989, False), (1.0011, False)]
)
def test_an_attitude_is_of_unit_length_to_a_thousandth(length, taken):
    estimator, _encoders, now = resting()
    attitude = tuple(length * part for part in LEVEL)
    assert estimator.correct(PoseMeasurement(now, HERE, attitude)) == taken
    assert estimator.poses_refused["invalid"] == (not taken)
    if taken:
        assert estimator.pose_error[1] == pytest.approx(0.1, abs=1e-9)


@pytest.mark.parametrize(("distance", "taken"), [(0.299, True), (0.301, False)])
@pytest.mark.parametrize("turns", [False, True])
def test_a_pose_may_be_as_far_as_the_settings_permit(distance, taken, turns):
    estimator, _encoders, now = resting()
    half = 0.5 * distance if turns else 0.0
    place = (0.0 if turns else -distance, 0.0, 0.0)
    pose = PoseMeasurement(now, place, (0.0, 0.0, math.sin(half), math.cos(half)))
    assert estimator.correct(pose) == taken
    assert estimator.poses_refused["jump"] == (not taken)


@pytest.mark.parametrize(
    ("way", "repeats", "refused"),
    [(0.021, 4, 0), (0.021, 5, 1), (0.021, 7, 3), (0.019, 7, 0)],
)
def test_a_pose_that_repeats_five_times_while_the_odometry_moves_two_centimetres(
    way, repeats, refused
):
    estimator, encoders, now = resting()
    assert estimator.correct(PoseMeasurement(now, (0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0)))
    for _ in range(repeats):
        now = rested(estimator, encoders, now)
        estimator._history[estimator._newest, 0] += way
        estimator.correct(PoseMeasurement(now, (0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0)))
    assert estimator.poses_refused["frozen"] == refused
    assert estimator.disagrees == (refused > 0)


def test_age_of_a_pose_is_counted_from_its_instant():
    estimator, encoders, now = resting(cycles=100)
    assert estimator.correct(PoseMeasurement(now - 0.05, HERE, LEVEL))
    assert estimator.pose_age == pytest.approx(0.05 + LATENCY, abs=1e-12)
    rested(estimator, encoders, now)
    assert estimator.pose_age == pytest.approx(0.05 + LATENCY + PERIOD, abs=1e-12)


@pytest.mark.parametrize(("age", "fed"), [(0.199, True), (0.201, False)])
def test_a_source_is_lost_after_its_timeout(age, fed):
    estimator, _encoders, now = resting(cycles=100)
    assert estimator.correct(PoseMeasurement(now, HERE, LEVEL))
    estimator.pose_age = age
    assert estimator.source == ("lift + pose" if fed else "lift (no external pose)")


def test_poses_from_before_the_start_are_refused():
    estimator, _encoders, _now = resting(cycles=5)
    assert not estimator.correct(PoseMeasurement(9.95, HERE, LEVEL))
    assert estimator.poses_refused["old"] == 1


@pytest.mark.parametrize("value", [math.nan, math.inf, 1e300])
def test_an_invalid_pose_does_no_harm(value):
    # The receiver rejects such numbers; a user's source may not.
    estimator, encoders, now = resting()
    assert not estimator.correct(PoseMeasurement(now, (value, 0.0, 0.0), LEVEL))
    assert not estimator.correct(PoseMeasurement(now, HERE, (value, 0.0, 0.0, 1.0)))
    assert not estimator.adopt(PoseMeasurement(now, (math.nan, 0.0, 0.0), LEVEL))
    assert estimator.q == pytest.approx(0.0, abs=0.0)
    now = rested(estimator, encoders, now)
    assert estimator.correct(PoseMeasurement(now, HERE, LEVEL))
    assert np.isfinite(estimator.q).all()


def test_a_pose_may_be_adopted_from_afar():
    estimator, encoders, now = resting()
    far = (3.0, -2.0, 0.4)
    turned = (0.0, 0.0, math.sin(1.0), math.cos(1.0))
    assert estimator.adopt(PoseMeasurement(now, far, turned))
    assert estimator.q[:3] == pytest.approx([3.0, -2.0, 2.0], abs=1e-9)
    now = rested(estimator, encoders, now)
    assert estimator.correct(PoseMeasurement(now, far, turned))
    assert max(estimator.pose_error) < 1e-9


def test_an_adopted_pose_has_to_be_of_now():
    estimator, _encoders, now = resting(cycles=100)
    for time in (now - 0.3, now + 0.3, math.nan, math.inf):
        assert not estimator.adopt(PoseMeasurement(time, HERE, LEVEL))
    assert estimator.adopt(PoseMeasurement(now, HERE, LEVEL))
    assert estimator.q[:3] == pytest.approx([*HERE[:2], 0.1], abs=1e-9)


def test_no_pose_is_taken_before_the_start_or_without_a_source():
    estimator, encoders = still_rover(pose_settings())
    assert not estimator.correct(PoseMeasurement(1.0, HERE, LEVEL))
    assert not estimator.adopt(PoseMeasurement(1.0, HERE, LEVEL))
    estimator, encoders = still_rover()
    encoders.follow(np.zeros((5, 8)), PERIOD * np.arange(5))
    assert not estimator.correct(PoseMeasurement(0.01, HERE, LEVEL))
    assert not estimator.adopt(PoseMeasurement(0.01, HERE, LEVEL))


def test_a_source_that_sees_nothing_of_the_base_is_refused():
    robot = cc.Mechanism(
        "turntable",
        [
            cc.Body("table", cc.joints.Spherical(), inertia=cc.Inertia(1.0, moments=(1, 1, 1))),
            cc.Body(
                "rod",
                cc.joints.Revolute((0, 0, 1)),
                parent="table",
                inertia=cc.Inertia(1.0, com=(0.1, 0, 0), moments=(0.1, 0.1, 0.1)),
            ),
        ],
        actuated=["rod"],
    )
    model = cc.reduce(robot)
    rig = rig_of(robot, pose=pose_settings(gives="position"))

    with pytest.raises(RigError, match="a base whose position changes"):
        Estimator(rig, law_of(model), compiled=False)


def test_a_fixed_arm_has_nothing_to_reconstruct():
    link = cc.Inertia(1.0, com=(0.2, 0, 0), moments=(0.1, 0.1, 0.1))
    robot = cc.Mechanism(
        "arm",
        [
            cc.Body("wall", cc.joints.Fixed()),
            cc.Body("upper", cc.joints.Revolute((0, 1, 0)), parent="wall", inertia=link),
            cc.Body("slide", cc.joints.Prismatic((1, 0, 0)), parent="upper", inertia=link),
        ],
        gravity=(0.0, 0.0, -9.81),
    )
    model = cc.reduce(robot)
    estimator = estimator_of(model)
    times = PERIOD * np.arange(200)
    q = np.array([0.5 * np.sin(2.0 * times), 0.1 * np.cos(times)]).T
    now, found, s, _ = Encoders(estimator, step=0.0).follow(q, times)
    assert estimator.reconstructed == ()
    assert found[100:, 0] == pytest.approx(0.5 * np.sin(2.0 * now[100:]), abs=1e-4)
    assert s[100:, 1] == pytest.approx(-0.1 * np.sin(now[100:]), abs=3e-3)
    with pytest.raises(RigError, match="joint Fixed of `wall`"):
        estimator_of(model, pose=pose_settings())
