"""Gains of the fastest proved rate: proved, faster than others, and within torque limits."""

from __future__ import annotations

from functools import cache

import casadi as ca
import numpy as np
import pytest
from scipy.linalg import expm
from scipy.spatial.transform import Rotation as Turn

import concur as cc
from concur.certify import split
from concur.certify._effort import Effort, Region
from concur.certify._region import region_level
from concur.errors import (
    OutputError,
    ShapeError,
    SingularConfigurationError,
    UnknownNameError,
)
from concur.rounding import rounded_down

BASE = cc.Output("base", "chassis", "R2", point=(0.25, 0, 0))
HAND = cc.Output("hand", "forearm", "R3", point=(0, 0.2, 0))
ROVER = {"left_wheel": 40, "right_wheel": 40, "turret": 30, "upper_arm": (-20, 60), "forearm": 30}
MOMENTUM = [0.5, -0.3, 0.2, 2.5, 0.8, 0.8]


class Case:
    """A robot with its outputs, limits and configurations."""

    def __init__(self, robot, outputs, limits, count=4, momentum=None, margin=0.25, **errors):
        self.robot, self.outputs, self.limits = robot, outputs, limits
        self.model = cc.reduce(robot, **({} if momentum is None else {"momentum": momentum}))
        self.errors = errors
        servo, rng = cc.Servo(self.model, outputs, 1, 1), np.random.default_rng(5)
        draws = (robot.random(rng) for _ in range(10_000))
        good = (q for q in draws if servo.margin(q) > margin)
        self.set = np.array([next(good) for _ in range(count)])

    def design(self, **further):
        options = {
            "torque_limits": self.limits,
            "configurations": self.set,
            **self.errors,
            **further,
        }
        return cc.certified_gains(self.outputs, self.model, **options)


CASES = {
    "rover": lambda: Case(cc.robots.rover_arm(), [BASE, HAND], ROVER, distance=0.1),
    "rover, hand alone": lambda: Case(cc.robots.rover_arm(), [HAND], ROVER, distance=0.1),
    "planar floater": lambda: Case(
        cc.robots.planar_floater(),
        [cc.Output("tip", "forearm", "R2", point=(0.5, 0, 0))],
        [8.0, 5.0],
        distance=0.2,
        margin=0.15,
    ),
    "free-flyer": lambda: Case(
        cc.robots.free_flyer(),
        [cc.Output("hand", "tool", "R3xSO3")],
        300.0,
        momentum=MOMENTUM,
        angle=1.0,
        distance=0.2,
    ),
}


SHORT = ("rover", "planar floater")


@cache
def design(name):
    """A case with its gains, once for all tests."""
    case = CASES[name]()
    return case, case.design()


@pytest.fixture(
    scope="module",
    params=[
        name if name in SHORT else pytest.param(name, marks=pytest.mark.slow) for name in CASES
    ],
)
def designed(request):
    return design(request.param)


def composed(outputs, pose, x):
    """Flat coordinates of r exp(x), by rotations of SciPy and matrix exponentials."""
    found, place, start = [], 0, 0
    for output in outputs:
        r, e = pose[place : place + output.pose_size], x[start : start + output.dim]
        place, start = place + output.pose_size, start + output.dim
        if output.group in ("R", "R2", "R3"):
            found.append(r + e)
        elif output.group == "R3xSO3":
            turned = Turn.from_quat(r[3:]) * Turn.from_rotvec(e[3:])
            found.append(np.concatenate([r[:3] + e[:3], turned.as_quat()]))
        else:
            assert output.group == "SE3"
            rotation = Turn.from_quat(r[3:])
            a, b, c = e[3:]
            twist = np.zeros((4, 4))
            twist[:3] = np.c_[[[0, -c, b], [c, 0, -a], [-b, a, 0]], e[:3]]
            step = expm(twist)
            moved = r[:3] + rotation.apply(step[:3, 3])
            turned = rotation * Turn.from_matrix(step[:3, :3])
            found.append(np.concatenate([moved, turned.as_quat()]))
    return np.concatenate(found)


def starts(gains, rng, count):
    """Random errors of the tube, most of them next to its edge."""
    for k in range(count):
        x, ve = np.zeros(len(gains.stiffness)), np.zeros(len(gains.stiffness))
        for channel, level in zip(gains.channels, gains.levels, strict=True):
            own = channel.index
            y = rng.normal(size=2 * own.size)
            y *= (0.9999 if k % 4 else rng.uniform()) / np.linalg.norm(y)
            x[own] = y[: own.size] * np.sqrt(2.0 * level / np.diag(channel.stiffness))
            ve[own] = y[own.size :] * np.sqrt(2.0 * level / np.diag(channel.inertia))
        yield x, ve


def shape_velocity(servo, q, wanted):
    """Least-energy shape velocity for given output velocities."""
    jacobian = servo.decoupling(q)
    spread = np.linalg.solve(servo.model.mass_matrix(q), jacobian.T)
    rest = servo.motion(q, servo.velocity(q, np.zeros(servo.ns)))[0]
    return spread @ np.linalg.solve(jacobian @ spread, wanted - rest)


def check_the_law(case, gains, count=1000):
    """Torques of the law from starts in the tube, with the reference at rest."""
    servo = cc.Servo(case.model, case.outputs, *gains)
    limited = cc.Servo(case.model, case.outputs, *gains, torque_limits=case.limits)
    rng, still = np.random.default_rng(77), np.zeros(servo.size)
    most = np.zeros(servo.nu)
    for k, (x, ve) in enumerate(starts(gains, rng, count)):
        assert gains.contains(x, ve)
        q = case.set[k % len(case.set)]
        s = shape_velocity(servo, q, ve)
        pose = composed(servo.outputs, servo.output(q), x)
        for have, wanted in zip(servo.errors(q, s, pose, still), (x, ve), strict=True):
            np.testing.assert_allclose(have, wanted, atol=1e-9)
        u = servo.law(q, s, pose, still, still)[0]
        assert (u >= gains.limits[:, 0]).all(), u - gains.limits[:, 0]
        assert (u <= gains.limits[:, 1]).all(), u - gains.limits[:, 1]
        most = np.maximum(most, np.abs(u))
        if k < 50:
            _, _, missed, scale, *_ = limited.law(q, s, pose, still, still)
            assert scale == 1.0
            np.testing.assert_array_equal(missed, 0.0)
    assert (most <= gains.needed * (1.0 + 1e-3) + 1e-9).all(), most - gains.needed
    return most


def tube(gains, servo, errors):
    """Region of gains made in another way."""
    stiffness, damping, inertia = (np.diag(gain) for gain in gains)
    channels = split(servo.error_dynamics)
    level = np.zeros(servo.size)
    for channel in channels:
        level[channel.index] = region_level(
            channel, errors.get("angle", 1.0), errors.get("distance")
        )
    return Region(
        stiffness / inertia,
        damping / inertia,
        inertia,
        np.sqrt(2.0 * level / stiffness),
        np.sqrt(2.0 * level / inertia),
        tuple(channel.index for channel in channels),
    )


def fastest_by_poles(case, length, limits):
    """Certified rate of pole placement, as fast as the same limits allow in the same tube."""
    servo = cc.Servo(case.model, case.outputs, 1, 1)
    rest = np.zeros((len(case.set), servo.size))
    effort = Effort(servo, case.set, rest, rest, limits)
    slow, fast = 1e4, 1e-2
    while slow > 1.002 * fast:
        time = np.sqrt(slow * fast)
        gains = cc.design_gains(case.outputs, settling_time=time, length=length)
        own = cc.Servo(case.model, case.outputs, *gains)
        if effort.extremes(tube(gains, own, case.errors)).within(limits):
            slow = time
        else:
            fast = time
    gains = cc.design_gains(case.outputs, settling_time=slow, length=length)
    own = cc.Servo(case.model, case.outputs, *gains)
    return cc.certify(own, case.errors.get("angle", 1.0), case.errors.get("distance"))


def test_the_rate_is_proved(designed, tmp_path):
    case, gains = designed
    assert gains.status is cc.Status.PROVED
    servo = cc.Servo(case.model, case.outputs, *gains)
    again = cc.certify(servo, case.errors.get("angle", 1.0), case.errors.get("distance"))
    assert gains.rate == again.rate > 0.0
    gains.certificate.save(tmp_path / "proof.json")
    assert cc.recheck(tmp_path / "proof.json") is cc.Status.PROVED


def test_the_real_law_keeps_the_limits_in_the_tube(designed):
    case, gains = designed
    most = check_the_law(case, gains)
    # The limits are used: even at random some control input reaches half of its limit.
    assert (most / np.abs(gains.limits).max(axis=1)).max() > 0.45


@pytest.mark.by_default(1)
def test_rates_are_higher_than_those_of_poles_within_the_same_limits(designed):
    case, gains = designed
    poles = fastest_by_poles(case, 1.0, gains.limits)
    assert poles.status is cc.Status.PROVED
    assert gains.rate > 1.05 * poles.rate


def test_the_text_says_what_is_proved_and_what_is_not(designed):
    _, gains = designed
    text = str(gains)
    assert f"{rounded_down(gains.rate, 4)} 1/s, PROVED" in text
    assert "estimate, not proved" in text
    assert all(name in text for name in (*gains.controls, *gains.outputs))


@pytest.fixture(scope="module")
def case():
    return design("rover")[0]


@pytest.fixture(scope="module")
def gains():
    return design("rover")[1]


def test_demands_that_move_need_the_torque_of_the_real_law():
    """The torques searched are the law's, with twist, acceleration and error at once."""
    case = CASES["free-flyer"]()
    for group, angle in (("SE3", 0.7), ("R3xSO3", 2.8)):
        outputs = [cc.Output("hand", "tool", group)]
        kp, kd, metric = np.repeat([4.0, 9.0], 3), np.repeat([3.0, 5.0], 3), np.repeat([1, 0.25], 3)
        servo = cc.Servo(
            case.model, outputs, np.diag(metric * kp), np.diag(metric * kd), np.diag(metric)
        )
        rng = np.random.default_rng(1)
        twist, rate = rng.normal(size=(2, len(case.set), 6)) / 5
        limits = np.tile([-1.0, 1.0], (6, 1))
        effort = Effort(servo, case.set, twist, rate, limits)
        x, ve = rng.normal(size=(2, 6, len(case.set))) / 5
        x[3:] *= angle / np.linalg.norm(x[3:], axis=0)
        have = effort._torques(effort._given, x, ve, np.array([kp, kd, metric]))
        for k, q in enumerate(case.set):
            pose = composed(outputs, servo.output(q), x[:, k])
            carried = (
                np.asarray(ca.evalf(servo.error_dynamics.group.transport(ca.SX(x[:, k]))))
                @ twist[k]
            )
            s = shape_velocity(servo, q, ve[:, k] + carried)
            u = servo.law(q, s, pose, twist[k], rate[k])[0]
            np.testing.assert_allclose(have[:, k], u, rtol=1e-8, atol=1e-8)


@pytest.mark.extended
def test_a_demand_that_accelerates_leaves_less_room(case, gains):
    moving = case.design(acceleration=[0, 0, 0, 5.0, 0])
    assert 0.0 < moving.rate < 0.97 * gains.rate


def test_limits_below_the_weight_are_refused(case):
    with pytest.raises(OutputError, match=r"control `upper_arm`.*at zero error at config"):
        case.design(torque_limits={"upper_arm": 2.0})


def test_limits_without_room_for_errors_are_refused(case, gains):
    most = gains.at_rest[3]
    with pytest.raises(OutputError, match=r"proved rate.*for `upper_arm`, which needs"):
        case.design(torque_limits={"upper_arm": most + 1e-9})


def test_a_singular_configuration_is_refused(case):
    q = case.set[0].copy()
    q[case.robot.q_slice("forearm")] = 0.0
    with pytest.raises(SingularConfigurationError):
        case.design(configurations=q)


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"model": None}, OutputError, "`model`"),
        ({"torque_limits": None}, OutputError, "`torque_limits`"),
        ({"torque_limits": np.inf}, OutputError, "at least one limit"),
        ({"torque_limits": {"elbow": 3}}, UnknownNameError, "elbow"),
        ({"configurations": None}, ShapeError, "configurations"),
        ({"configurations": [1.0, 2.0]}, ShapeError, "configurations"),
        ({"distance": None}, OutputError, "`distance`"),
        ({"distance": 0.0}, OutputError, "above 0 m"),
        ({"angle": 4.0}, OutputError, "at most pi"),
        ({"twist": [1.0]}, ShapeError, "twist"),
        ({"damping_ratio": -1.0}, OutputError, "`damping_ratio`"),
    ],
)
def test_wishes_that_do_not_fit_are_refused(case, options, error, text):
    given = {"model": case.model, "torque_limits": ROVER, "configurations": case.set}
    with pytest.raises(error, match=text):
        cc.certified_gains(case.outputs, **{**given, "distance": 0.1, **options})
