"""Rigs of geared, coupled and redundant motors: an axis is a motor, not a joint.

The oracle of a run is the simulation of the task with the same motors, which knows no rig.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import concur as cc
from concur.errors import DescriptionError
from hil._transmission import transmission_of
from hil.controller import Mode
from hil.emulator._plant import RobotPlant
from hil.errors import RigFileError
from hil.guard import Flag, Limits, judge
from hil.reasons import Reason, State
from hil.record import Record
from hil.replay import replay
from hil.rig import load_rig
from hil.session import SessionOptions, run_session
from hil.state.estimator import Estimator

EXAMPLES = Path(__file__).parents[2] / "examples"
PERIOD = 0.004

# Joints or factors, gear, and largest torque and speed at the joint.
GEARED = {
    "left_drive": ('"left_wheel"', 20.0, 8.0, 10.0),
    "right_drive": ('"right_wheel"', 20.0, 8.0, 10.0),
    "yaw": ('"turret"', -100.0, 12.0, 3.0),
    "lift": ('"upper_arm"', 50.0, 12.0, 3.0),
    "bend": ('"forearm"', 50.0, 4.0, 3.0),
}
COUPLED = {
    **GEARED,
    "lift": ("{ upper_arm = 1.0, forearm = 1.0 }", 50.0, 12.0, 6.0),
    "bend": ("{ upper_arm = 1.0, forearm = -1.0 }", -50.0, 12.0, 6.0),
}
CHAINED = {**GEARED, "bend": ("{ upper_arm = 0.6, forearm = 1.0 }", 50.0, 8.0, 4.8)}
PAIRED = {**GEARED, "yaw": ('"turret"', -100.0, 8.0, 3.0), "yaw_too": ('"turret"', 40.0, 8.0, 3.0)}
CASES = {"geared": GEARED, "differential": COUPLED, "chained": CHAINED, "two on one": PAIRED}

MOTOR = """
[[motors]]
name = "{name}"
joints = {joints}
gear = {gear}
rotor = 1e-6
torque = {torque}
speed = {speed}
encoder = 16384
{more}
"""
AXIS = """
[[axes]]
name = "{name}"
drive = "cia402"
node = {node}
direction = {direction}
rated_torque = {rated:.3f}
offset = {offset}
torque_rate_limit = {rate}
"""


def made(folder, motors=GEARED, seconds=None, more="", axes="", edit=str):
    """The rover of the rigs with other motors; alternate drives are mounted the other way."""
    rover = EXAMPLES / "rover_rig"
    robot = (rover / "robot.toml").read_text(encoding="utf-8").split("\n[[motors]]")[0]
    task = (rover / "task.toml").read_text(encoding="utf-8").split("\n[operating]")[0]
    head = (rover / "rig.toml").read_text(encoding="utf-8").split("\n[[axes]]")[0]
    start = {"turret": -0.1, "upper_arm": 1.0, "forearm": -1.6}
    for node, (name, (joints, gear, torque, speed)) in enumerate(motors.items(), 1):
        limits = {"torque": torque / abs(gear), "speed": speed * abs(gear)}
        robot += MOTOR.format(name=name, joints=joints, gear=gear, more=more, **limits)
        ratios = cc.Motor(name, eval(joints.replace("=", ":"), {j: j for j in start}), gear).ratios
        head += AXIS.format(
            name=name,
            node=node,
            direction=(-1) ** node,
            rated=0.5 * limits["torque"],
            offset=sum(ratio * start.get(joint, 0.0) for joint, ratio in ratios.items()),
            rate=100.0 * limits["torque"],
        )
        head += axes
    if seconds is not None:
        task = task.replace("duration = 60.0", f"duration = {seconds}")
        task = task.replace("evaluate_after = 12.0", f"evaluate_after = {0.5 * seconds}")
    head = head.replace('certificate = "operating.json"', "")
    for name, text in (("robot", robot), ("task", task), ("rig", edit(head))):
        (folder / f"{name}.toml").write_text(text, encoding="utf-8")
    return folder / "rig.toml"


def driven(path, folder):
    options = SessionOptions(Mode.MOCK, folder=folder, heartbeat="auto")
    return run_session(load_rig(path), options), Record.load(folder)


@pytest.mark.by_default(1)
@pytest.mark.parametrize("motors", CASES.values(), ids=CASES)
def test_a_run_is_that_of_the_simulation_of_its_motors(motors, tmp_path):
    path = made(tmp_path, motors, seconds=3.0)
    result, record = driven(path, tmp_path / "record")
    assert result.outcome.reason is Reason.END
    rig = load_rig(path)
    run = rig.task.simulate(rig.task.servo)
    rows = np.flatnonzero((record["state"] == State.RUN) & (record["elapsed"] > 1.0))
    at = np.rint(record["elapsed"][rows] / PERIOD).astype(int)
    times = np.rint(np.asarray(run.t) / PERIOD * 4).astype(int)
    where = np.searchsorted(times, 4 * at)
    limits = np.array([axis.torque_limit for axis in rig.axes])
    torque = record["torque"][rows] - run.u[np.minimum(where, len(run.u) - 1)]
    assert np.abs(torque / limits).max() < 0.03
    assert np.sqrt(np.mean((torque / limits) ** 2)) < 0.005
    assert np.abs(record["q"][rows] - run.q[where]).max() < 3e-3
    found = rig.transmission
    turned = run.q[where][:, list(found.q)] @ found.ratios.T
    # Reports are a millisecond old.
    away = 3e-3 * np.abs(found.ratios).sum(axis=1) + [1e-3 * axis.speed_limit for axis in rig.axes]
    assert (np.abs(record["position"][rows] - turned) < away).all()
    assert replay(record, rig).passed


@pytest.mark.parametrize(
    ("gear", "side", "step"),
    [
        (1.0, "motor", 1.0 / 16384),  # of a linear motor the counts are per metre
        (1.0, "joint", 1.0 / 16384),
        (500.0, "motor", 2.0 * np.pi / 16384 / 500.0),  # of a screw per turn of its motor
        (500.0, "joint", 1.0 / 16384),  # and per metre of the joint
    ],
)
def test_a_count_of_a_joint_that_slides(gear, side, step, tmp_path):
    """The joint's way, m, for a count of the drive, of which `counts` are 2 pi of the motor."""
    motors = GEARED | {"yaw": ('"turret"', gear, 12.0, 3.0)}
    path = made(tmp_path, motors, more=f'encoder_at = "{side}"')
    file = tmp_path / "robot.toml"
    text = file.read_text(encoding="utf-8")
    head, _, rest = text.partition('name = "turret"')
    rest = rest.replace('"Revolute"', '"Prismatic"', 1)
    file.write_text(f'{head}name = "turret"{rest}', encoding="utf-8")
    axis = next(axis for axis in load_rig(path).axes if axis.name == "yaw")
    assert 2.0 * np.pi / axis.counts / gear == pytest.approx(step, rel=1e-12)


@pytest.mark.parametrize("motors", CASES.values(), ids=CASES)
def test_a_unit_of_torque_accelerates_by_the_inverse_of_the_inertia(motors, tmp_path):
    """By the pseudo-inverse of the inertia, and by differences of accelerations."""
    rig = load_rig(made(tmp_path, motors))
    estimator, n = Estimator(rig, rig.task.servo, compiled=False), len(rig.axes)
    free = estimator.acceleration(np.zeros(n)).copy()
    pushed = np.array([estimator.acceleration(row) - free for row in np.eye(n)]).T
    scale = np.abs(estimator.ease).max()
    assert np.abs(estimator.ease - pushed).max() < 1e-12 * scale
    assert np.abs(estimator.ease - np.linalg.pinv(estimator.inertia)).max() < 1e-12 * scale


@pytest.mark.parametrize("motors", CASES.values(), ids=CASES)
def test_positions_and_torques_follow_from_ratios(motors, tmp_path):
    """By power: the torque of the motors times their speed is that of the joints."""
    rig = load_rig(made(tmp_path, motors))
    robot, found = rig.task.robot, rig.transmission
    matrix = cc.reduce(robot).input_matrix(rig.task.q0)
    rng = np.random.default_rng(1)
    v, u = rng.normal(size=len(found.joints)), rng.normal(size=len(found.motors))
    at = [cc.reduce(robot).shape_names.index(name) for name in found.joints]
    assert found.ratios.T @ u == pytest.approx((np.asarray(matrix) @ u)[at], rel=1e-12)
    assert found.inverse @ (found.ratios @ v) == pytest.approx(v, rel=1e-12)
    noise = found.ratios @ v + rng.normal(size=len(u))
    expected = np.linalg.lstsq(found.ratios, noise, rcond=None)[0]
    assert found.inverse @ noise == pytest.approx(expected, rel=1e-10)
    for axis, row in zip(rig.axes, found.ratios, strict=True):
        low, high = axis.position_limits
        ends = rng.uniform(size=(200, 1)) > 0.5  # a motor's range contains that of its joints
        drawn = np.where(ends, found.limits[:, 0], found.limits[:, 1])[:, row != 0.0]
        turned = drawn @ row[row != 0.0]
        assert (low <= turned).all()
        assert (turned <= high).all()


def mechanism(motors, mimics=(), limits=None):
    """Three joints in a row on the ground, the last one of several freedoms if `Spherical`."""
    inertia = cc.Inertia(1.0, moments=(0.1, 0.1, 0.1))
    bodies, parent = [cc.Body("post", cc.joints.Fixed(), inertia=inertia)], "post"
    for name in ("one", "two", "three"):
        bodies.append(
            cc.Body(
                name,
                cc.joints.Revolute((0.0, 0.0, 1.0)),
                parent,
                cc.Pose((0.3, 0.0, 0.0)),
                inertia,
                (limits or {}).get(name),
            )
        )
        parent = name
    bodies.append(cc.Body("ball", cc.joints.Spherical(), parent, inertia=inertia))
    bodies.append(cc.Body("cart", cc.joints.Cartesian(), "post", inertia=inertia))
    return cc.Mechanism("row", bodies, actuated=(), motors=motors, mimics=mimics)


@pytest.mark.parametrize(
    ("motors", "expected", "came"),
    [
        ([cc.Motor("jet", body="three", wrench=(1, 0, 0, 0, 0, 0))], "move joints", "`jet`"),
        ([cc.Motor("a", {"one": 1.0, "two": 1.0})], "determine", "`one`, `two` can move"),
        (
            [
                cc.Motor("a", "one"),
                *(cc.Motor(n, {"two": k, "three": -k}) for n, k in (("b", 1.0), ("c", 50.0))),
            ],
            "determine",
            "3 motors for 3 joints; `two`, `three` can move",
        ),
        ([cc.Motor("a", "ball[wx]")], "sums of angles", "`a` on `ball[wx]`"),
    ],
)
def test_motors_that_no_drive_can_carry_are_refused(motors, expected, came):
    with pytest.raises(DescriptionError) as error:
        transmission_of(mechanism(motors), "rig.toml")
    assert expected in error.value.expected
    assert came in error.value.came
    assert error.value.cure


def test_joints_of_several_lengths_have_motors():
    found = transmission_of(mechanism([cc.Motor("lift", "cart[vz]", gear=500.0)]), "rig.toml")
    assert found.joints == ("cart[vz]",)
    robot = mechanism([])
    assert found.q == (robot.q_slice("cart").start + 2,)
    assert found.ratios == [[500.0]]


def test_a_joint_that_follows_counts_as_the_other_one():
    """q3 = -2 q1 + 0.5: a motor on both turns by 3 - 2 * 4 of the first, within both ranges."""
    robot = mechanism(
        [cc.Motor("a", {"one": 3.0, "three": 4.0})],
        mimics=[cc.robot.Mimic("three", of="one", multiplier=-2.0, offset=0.5)],
        limits={"one": (-1.0, 1.0), "three": (-0.7, 1.5)},
    )
    found = transmission_of(robot, "rig.toml")
    assert (found.joints, found.ratios.tolist()) == (("one",), [[-5.0]])
    assert found.limits.tolist() == [pytest.approx([-0.5, 0.6])]
    assert found.spans().tolist() == [pytest.approx([-3.0, 2.5])]


# --- the guard, at the motor and at the joint ---------------------------------------------------


def judged(rig, demand=None, position=None, velocity=None):
    """Verdict and torque of a vector that other axes fill with zeros, without a rate limit."""
    limits = Limits.from_axes(
        [replace(axis, torque_rate_limit=1e6) for axis in rig.axes],
        rig.loop.period,
        transmission=rig.transmission,
    )
    zeros, out = np.zeros(limits.size), np.empty(limits.size)
    middle = rig.transmission.ratios @ rig.task.q0[list(rig.transmission.q)]
    verdict = judge(
        zeros if demand is None else demand,
        zeros,
        middle if position is None else position,
        zeros if velocity is None else velocity,
        zeros,
        limits,
        limits.period,
        out,
    )
    return verdict, out


@pytest.mark.parametrize("motors", CASES.values(), ids=CASES)
@pytest.mark.parametrize("place", range(5))
def test_torque_and_speed_are_limited_at_the_motor(motors, place, tmp_path):
    rig = load_rig(made(tmp_path, motors))
    axis, one = rig.axes[place], np.eye(len(rig.axes))[place]
    for sign in (-1.0, 1.0):
        verdict, out = judged(rig, demand=sign * 0.999 * axis.torque_limit * one)
        assert (verdict.flags, out[place]) == (Flag(0), sign * 0.999 * axis.torque_limit)
        verdict, out = judged(rig, demand=sign * 1.001 * axis.torque_limit * one)
        assert (verdict.flags, out[place]) == (Flag.CLIPPED_TORQUE, sign * axis.torque_limit)
        fast = sign * 1.2 * axis.speed_limit * one
        assert judged(rig, velocity=0.999 * fast)[0].reason is Reason.NONE
        verdict, _ = judged(rig, velocity=1.001 * fast)
        assert (verdict.reason, verdict.axis) == (Reason.OVERSPEED, place)


@pytest.mark.parametrize("motors", CASES.values(), ids=CASES)
@pytest.mark.parametrize("joint", ["turret", "upper_arm", "forearm"])
@pytest.mark.parametrize("upper", [False, True])
def test_positions_are_limited_at_the_joint(motors, joint, upper, tmp_path):
    """Outside of the zone nothing changes; inside of it the torque of this joint alone."""
    rig = load_rig(made(tmp_path, motors))
    found, sign = rig.transmission, 1.0 if upper else -1.0
    j = found.joints.index(joint)
    low, high = found.limits[j]
    zone = min(0.05 * (high - low), 0.1)
    q = rig.task.q0[list(found.q)].copy()
    push = 0.4 * np.array([axis.torque_limit for axis in rig.axes])
    push *= np.where(found.inverse[j] == 0.0, 1.0, np.sign(sign * found.ratios[:, j]))
    for inside, changes in ((1.001, False), (0.001, True)):
        q[j] = (high if upper else low) - sign * inside * zone
        verdict, out = judged(rig, demand=push, position=found.ratios @ q)
        assert (verdict.reason, verdict.flags) == (
            Reason.NONE,
            Flag.NEAR_END if changes else Flag(0),
        )
        before, after = found.ratios.T @ push, found.ratios.T @ out
        assert np.delete(after, j) == pytest.approx(np.delete(before, j), rel=1e-9)
        largest = np.abs(found.ratios[:, j]) @ [axis.torque_limit for axis in rig.axes]
        assert after[j] == pytest.approx(sign * 0.001 * largest if changes else before[j], rel=1e-6)
        # away from the end any torque passes
        _, out = judged(rig, demand=-push, position=found.ratios @ q)
        assert (out == -push).all()
    for outside, reason in ((0.999, Reason.NONE), (1.001, Reason.OUT_OF_RANGE)):
        q[j] = (high if upper else low) + sign * outside * zone
        verdict, _ = judged(rig, position=found.ratios @ q)
        assert verdict.reason is reason
    assert found.inverse[j, verdict.axis] != 0.0


def test_shares_of_the_limits_and_both_sides_of_their_bounds(tmp_path):
    shares = "torque_share = 0.25\nspeed_share = 0.5\n"
    whole, part = (load_rig(made(tmp_path, axes=axes)).axes for axes in ("", shares))
    for one, other in zip(whole, part, strict=True):
        assert other.torque_limit == pytest.approx(0.25 * one.torque_limit, rel=1e-15)
        assert other.speed_limit == pytest.approx(0.5 * one.speed_limit, rel=1e-15)


# --- heat -----------------------------------------------------------------------------------------


def hot(share, folder):
    """A run whose lift bears a share of 0.131 N m for any time: all of it nearly suffices."""
    text = made(folder, seconds=1.0).with_name("robot.toml")
    robot = text.read_text(encoding="utf-8")
    head, name, tail = robot.partition('name = "lift"\n')
    more = f"continuous = {share * 0.131}\nthermal_time = 0.5\n"
    text.write_text(head + name + more + tail, encoding="utf-8")
    return driven(folder / "rig.toml", folder / "record")


@pytest.mark.parametrize(("share", "reason"), [(1.03, Reason.END), (0.85, Reason.OVERHEATED)])
def test_heat_of_a_motor_stops_the_rig_where_its_equation_passes_one(share, reason, tmp_path):
    result, record = hot(share, tmp_path)
    assert result.outcome.reason is reason
    axis = load_rig(tmp_path / "rig.toml").axes[3]
    heat, heats = 0.0, []
    for torque in record["torque"][:, 3]:
        heats.append(heat)
        rate = np.exp(-PERIOD / axis.thermal_time)
        heat = rate * heat + (1.0 - rate) * (torque / axis.continuous) ** 2
    ran = record["state"] == State.RUN
    assert max(np.array(heats)[ran]) <= 1.0
    if reason is Reason.OVERHEATED:
        first = int(np.argmax(record["reason"] == reason))
        assert heats[first] > 1.0 > heats[first - 1]
    assert replay(record, load_rig(tmp_path / "rig.toml")).passed


# --- friction -------------------------------------------------------------------------------------


def test_friction_of_motors_acts_in_an_emulated_rig_and_stands_in_one_file(tmp_path):
    """As its torque by hand, at the motors, on motors that all move in one direction."""
    more = 'viscous = 0.2\ncoulomb = 0.3\nfriction_at = "joint"\n'
    (tmp_path / "rubs").mkdir()
    path, plain = made(tmp_path / "rubs", more=more), made(tmp_path)
    rubs, free = (RobotPlant(load_rig(file), held=False) for file in (path, plain))
    gears = np.array([abs(gear) for _, gear, _, _ in GEARED.values()])
    push = np.array([4.0, 4.0, 6.0, -10.0, -4.0]) / gears
    for _ in range(300):
        rubs.torque[:] = push
        rubs.step(1e-4)
        speed = np.array(free.velocities())
        drag = 0.3 * np.sign(push) + 0.2 * speed / gears
        free.torque[:] = push - drag / gears
        free.step(1e-4)
    assert (np.sign(rubs.velocities()) == np.sign(push)).all()
    assert rubs.velocities() == pytest.approx(free.velocities(), rel=1e-3)
    edited = made(
        tmp_path / "rubs", more=more, edit=lambda text: text + "\n[emulator.friction]\nyaw = 0.1\n"
    )
    with pytest.raises(RigFileError) as error:
        load_rig(edited)
    assert (error.value.table, error.value.field) == ("[emulator.friction]", "yaw")
    assert "in the robot file too" in error.value.came
