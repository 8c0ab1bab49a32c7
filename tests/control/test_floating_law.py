"""The law on robots that float with momentum: its numbers, its properties, what it refuses.

P3 and so on are the properties listed in section 10 of the sources on servo control; check A is
in section 4 there. The effect of a torque is computed by Pinocchio.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.linalg import expm
from scipy.spatial.transform import Rotation

from concur import robots
from concur.control import Servo
from concur.errors import DescriptionError, OutputError, ReductionError
from concur.outputs import Output, ReferenceSample
from concur.reduction import AuditStatus, reduce
from concur.robot import joints
from concur.simulation import simulate
from tests.control._cases import refused
from tests.control._floating_cases import (
    CHECK_A_MOMENTUM,
    CHECK_A_Q0,
    CHECK_A_S0,
    CHECK_A_V0,
    CHECK_A_X0,
    Chain,
    OutputOracle,
    bend,
    build,
    check_a_demand,
    flat_pose,
    full_velocity,
    states,
    steady,
)
from tests.groups.oracles import bracket, conjugation, twist_matrix
from tests.oracles import Pinocchio, assert_close, difference_quotient, full_order

HAND = Output("hand", "tool", "SE3")
FREE_FLYER = "hand of the free-flyer"


def check_a(momentum: np.ndarray | None = None, **options: object) -> Servo:
    robot = robots.free_flyer()
    if momentum is None:
        momentum = Pinocchio(robot).momentum(CHECK_A_Q0, CHECK_A_V0)
    return Servo(reduce(robot, momentum=momentum), [HAND], 4.0, 2.8, **options)  # type: ignore[arg-type]


def test_numbers_of_check_a_at_the_start() -> None:
    servo, sample = check_a(), check_a_demand()(0.0)
    assert_allclose(servo.model.momentum, CHECK_A_MOMENTUM, rtol=0, atol=1e-9)
    x, ve = servo.error(CHECK_A_Q0, CHECK_A_S0, sample)
    assert_allclose(x, CHECK_A_X0, rtol=0, atol=1e-14)
    expected = [0.021961835, -0.009029227, 0.038907410, -0.011256206, -0.127117792, 0.010521825]
    assert_allclose(ve, expected, rtol=0, atol=1e-9)
    torque = [0.007462207, -1.231808819, -1.590385805, 0.157851202, 0.130283435, 0.023767219]
    assert_allclose(servo.torque(CHECK_A_Q0, CHECK_A_S0, sample), torque, rtol=0, atol=1e-9)
    assert_allclose(servo.model.velocity(CHECK_A_Q0, CHECK_A_S0), CHECK_A_V0, rtol=0, atol=1e-15)
    assert_allclose(servo.velocity(CHECK_A_Q0, CHECK_A_S0), CHECK_A_V0, rtol=0, atol=1e-15)


def pinocchio_run(
    servo: Servo, times: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """States and errors of check A on a plant that shares nothing with the law."""
    robot, demand = servo.model.robot, check_a_demand()
    q, v = full_order(
        robot,
        CHECK_A_Q0,
        CHECK_A_V0,
        lambda t, q, v: servo.torque(q, v[6:], demand(t)),
        times,
        rtol=1e-10,
    )
    oracle = OutputOracle(robot, servo.outputs)
    found = [oracle.errors(*state, demand(t)) for t, *state in zip(times, q, v, strict=True)]
    x, ve = map(np.array, zip(*found, strict=True))
    return q, v, x, ve


@pytest.mark.extended
def test_check_a_runs_along_its_error_equation() -> None:
    """Thesis: (5.4.31), (5.4.32)."""
    servo, times = check_a(), np.linspace(0.0, 5.0, 51)
    q, v, x, ve = pinocchio_run(servo, times)
    oracle = OutputOracle(servo.model.robot, servo.outputs)
    ideal, rate = oracle.ideal(servo, x[0], ve[0], times)
    assert_allclose(x, ideal, rtol=0, atol=5e-10)
    assert_allclose(ve, rate, rtol=0, atol=5e-10)
    momenta = np.array([oracle.plant.momentum(*state) for state in zip(q, v, strict=True)])
    assert_allclose(momenta, np.tile(servo.model.momentum, (51, 1)), rtol=0, atol=2e-10)

    turned = Rotation.from_quat(q[0, 3:7]).inv() * Rotation.from_quat(q[-1, 3:7])
    assert turned.magnitude() == pytest.approx(0.226, abs=5e-4)
    assert np.abs(x[-1]).max() == pytest.approx(4e-4, rel=0.02)
    lyapunov = 2.0 * (x**2).sum(axis=1) + 0.5 * (ve**2).sum(axis=1)
    assert (np.diff(lyapunov) < 0.0).all()
    least = min(np.linalg.svd(servo.decoupling(z), compute_uv=False)[-1] for z in q)
    assert least == pytest.approx(0.2155, abs=1e-4)


def test_momentum_taken_as_zero_leaves_an_error() -> None:
    # P14: it must not vanish.
    _, _, x, _ = pinocchio_run(check_a(np.zeros(6)), np.array([0.0, 5.0]))
    assert np.linalg.norm(x[-1]) == pytest.approx(3.1e-2, rel=0.01)


def test_feed_forward_is_the_rate_of_the_carried_velocity() -> None:
    # P3, and that the sign of ad is not free.
    servo, oracle = build(FREE_FLYER)
    rng = np.random.default_rng(4)
    for q, s, v in states(servo, 3):
        pose = oracle.poses(q)[0]
        velocity = oracle.jacobian(q) @ v
        away = pose @ expm(twist_matrix(np.array([0.1, -0.2, 0.1, 0.9, -0.5, 0.7])))
        chain = Chain([away, (rng.normal(size=6), steady), (rng.normal(size=6), bend)], "SE3")

        def carried(
            t: float, pose: np.ndarray = pose, velocity: np.ndarray = velocity, chain: Chain = chain
        ) -> np.ndarray:
            gamma, twist, _ = (part[0] for part in chain.motion(np.array([t])))
            moved = pose @ expm(twist_matrix(velocity * t))
            return conjugation(np.linalg.inv(moved) @ gamma) @ twist

        sample = chain(0.0)
        sdot = servo.model.acceleration(q, s, servo.torque(q, s, sample))
        command = servo.decoupling(q) @ sdot + servo.motion(q, servo.velocity(q, s))[1]
        x, ve = oracle.errors(q, v, sample)
        ahead = command - servo.error_dynamics.feedback(x, ve)
        expected = difference_quotient(carried)
        assert_allclose(ahead, expected, rtol=0, atol=1e-7)
        turned = bracket(velocity) @ carried(0.0)
        assert np.abs(ahead + 2 * turned - expected).max() > 1e-2


def matched(
    oracle: OutputOracle, q: np.ndarray, v: np.ndarray, x: np.ndarray, ve: np.ndarray, group: str
) -> Chain:
    """A motion that starts at given errors from the first output of a robot."""
    pose = oracle.poses(q)[0]
    start = pose @ expm(twist_matrix(x))
    body = Pinocchio(oracle.robot)
    twist = body.jacobian(q, oracle.body) @ v
    begin = conjugation(np.linalg.inv(expm(twist_matrix(x)))) @ (twist - ve)
    curve = np.array([0.03, -0.03, 0.02, 0.1, 0.05, -0.08])
    return Chain([start, (begin, steady), (curve, bend)], group)


@pytest.mark.extended
@pytest.mark.parametrize("group", ["SE3", "SO3"])
def test_two_robots_make_the_same_error_curve(group: str) -> None:
    # P7: a free-flyer's arm, and an arm of the servicer or three wheels; each with a momentum.
    x = np.array([0.05, -0.04, 0.06, 1.0, 0.3, -0.4])
    ve = np.array([0.02, -0.01, 0.03, 0.1, -0.1, 0.05])
    arm = np.array([0.0, 0.0, 0.0, *Rotation.from_rotvec([0.3, 0.1, -0.2]).as_quat()])
    bent = [0.1, 0.4, 0.2, -1.2, 0.5, 0.3, 0.1]
    cases = [(robots.free_flyer(), "tool", CHECK_A_Q0, CHECK_A_S0)]
    if group == "SE3":
        speeds = 0.02 * np.arange(-7.0, 7.0)
        cases.append((robots.servicer(), "left_hand", np.array([*arm, *bent, *bent]), speeds))
    else:
        speeds = np.array([3.0, -4.0, 5.0])
        cases.append((robots.wheel_satellite(), "satellite", np.array([*arm, 0, 0, 0]), speeds))
    runs = []
    for robot, body, q0, s0 in cases:
        momentum = 0.01 * robot.total_mass * np.array([1.0, -2.0, 1.5, 0.5, 1.0, -0.8])
        servo = Servo(reduce(robot, momentum=momentum), [Output("r", body, group)], 9.0, 5.0)
        oracle = OutputOracle(robot, servo.outputs)
        v0 = full_velocity(oracle.plant, momentum, q0, s0)
        demand = matched(oracle, q0, v0, x, ve, group)
        runs.append(simulate(robot, servo, demand, 0.8, q0, s0, dt=4e-3))
    one, other = runs
    assert_allclose(one.error[0], x[-one.servo.size :], rtol=0, atol=1e-13)
    assert_allclose(other.error, one.error, rtol=0, atol=1e-8)
    assert_allclose(other.velocity_error, one.velocity_error, rtol=0, atol=1e-7)
    assert np.abs(one.u[:, 0] - other.u[:, 0]).max() > 0.01
    assert np.abs(one.momentum[0] - other.momentum[0]).max() > 0.1


@pytest.mark.parametrize("name", [FREE_FLYER, "base attitude and hand", "three wheels"])
def test_law_does_not_depend_on_the_inertial_frame(name: str) -> None:
    # P9: robot, demand and momentum seen from another frame.
    servo, oracle = build(name)
    turn, shift = Rotation.from_rotvec([0.4, -0.8, 0.3]), np.array([1.0, -2.0, 0.7])
    g = np.eye(4)
    g[:3, :3], g[:3, 3] = turn.as_matrix(), shift
    linear, angular = np.split(np.array(servo.model.momentum), 2)
    momentum = [*turn.apply(linear), *(turn.apply(angular) + np.cross(shift, turn.apply(linear)))]
    other = replace(servo, model=reduce(servo.model.robot, momentum=momentum))
    rng = np.random.default_rng(6)
    for q, s, _ in states(servo, 3):
        sample = oracle.sample(q, rng)
        base = np.eye(4)
        base[:3, :3], base[:3, 3] = Rotation.from_quat(q[3:7]).as_matrix(), q[:3]
        moved = np.array([*flat_pose(g @ base), *q[7:]])
        pose, twist, rate = sample.flat_pose.copy(), sample.twist.copy(), sample.acceleration.copy()
        if name == FREE_FLYER:
            own = np.eye(4)
            own[:3, :3], own[:3, 3] = Rotation.from_quat(pose[3:]).as_matrix(), pose[:3]
            pose = flat_pose(g @ own)
        else:
            pose[:4] = (turn * Rotation.from_quat(pose[:4])).as_quat()
        if name == "base attitude and hand":
            pose[4:] = g[:3, :3] @ pose[4:] + shift
            twist[3:], rate[3:] = turn.apply(twist[3:]), turn.apply(rate[3:])
        seen = ReferenceSample(pose, twist, rate)
        assert_close(other.torque(moved, s, seen), servo.torque(q, s, sample), 1e-10)
        errors = servo.error(q, s, sample), other.error(moved, s, seen)
        if name == "base attitude and hand":
            for error in errors[0]:
                error[3:] = turn.apply(error[3:])
        assert_close(errors[1], errors[0], 1e-12)
        kept = replace(other, model=servo.model)  # the momentum has to be turned too
        assert np.abs(kept.torque(moved, s, seen) - servo.torque(q, s, sample)).max() > 1e-4


@pytest.mark.parametrize("name", [FREE_FLYER, "tip on the station"])
def test_measured_velocities_take_the_place_of_the_momentum(name: str) -> None:
    lifted, oracle = build(name)
    measured, rng = replace(lifted, use_measured_velocity=True), np.random.default_rng(7)
    assert (lifted.nw, measured.nw) == (lifted.ns, lifted.model.nv)
    for q, s, v in states(lifted, 3):
        sample = oracle.sample(q, rng)
        assert_close(measured.torque(q, v, sample), lifted.torque(q, s, sample), 1e-10)
        assert_allclose(measured.error(q, v, sample), lifted.error(q, s, sample), atol=1e-11)
        # At another momentum the measured law is right still, the lifted one is not.
        other = v.copy()
        other[:6] += rng.uniform(-0.5, 0.5, 6)
        made = oracle.acceleration(q, other, measured.torque(q, other, sample))
        wanted = oracle.command(lifted, q, other, sample)
        assert_close(made, wanted, 2e-10)
        wrong = oracle.acceleration(q, other, lifted.torque(q, other[6:], sample))
        assert np.abs(wrong - wanted).max() > 1e-2
        told = reduce(lifted.model.robot, momentum=oracle.plant.momentum(q, other))
        again = replace(lifted, model=told).torque(q, other[6:], sample)
        assert_close(again, measured.torque(q, other, sample), 1e-10)


def test_audit_of_a_floating_robot_holds() -> None:
    servo, demand = check_a(), check_a_demand()
    audit = servo.audit(demand, 5.0, CHECK_A_Q0)
    assert audit.holds, str(audit)
    held = [row.id for row in audit if row.status is AuditStatus.HOLDS]
    assert held == [*(f"CON{i}" for i in range(1, 10)), "DYN"]
    assert audit["CON7"].values["residual"] < 1e-12
    assert "momentum" in audit["CON7"].statement


def test_audit_says_where_a_demand_that_stands_still_gets_lost() -> None:
    # CON4, CON10: the robot drifts away from it.
    servo = check_a(20 * CHECK_A_MOMENTUM)
    pose = servo.model.robot.pose(CHECK_A_Q0, "tool")
    still = Chain([pose], "SE3")
    path = servo.feasibility(still, 8.0, CHECK_A_Q0)
    assert not path.feasible
    assert 0.5 < path.reached < 8.0
    audit = servo.audit(still, 8.0, CHECK_A_Q0)
    assert audit["CON4"].status is AuditStatus.FAILS
    assert path.why == audit["CON4"].why


def test_driven_free_base_is_refused() -> None:
    # P16: an actuator along the group.
    robot = robots.free_flyer()
    names = [body.name for body in robot.bodies if body.joint.nv]
    refused(
        DescriptionError,
        lambda: replace(robot, actuated=names),
        where="`actuated`",
        came="`spacecraft`",
    )
    floater = robots.planar_floater()
    driven = replace(floater, actuated=[body.name for body in floater.bodies])
    assert isinstance(driven.base.joint, joints.Planar)
    assert reduce(driven).kind == "unreduced"
    refused(ReductionError, lambda: reduce(driven, momentum=np.ones(6)), where="`momentum`")


def test_gravity_on_a_floating_base_is_refused() -> None:
    # P16: it would not keep the momentum.
    falling = replace(robots.free_flyer(), gravity=(0.0, 0.0, -9.81))
    refused(ReductionError, lambda: reduce(falling), where="`gravity`", came="spacecraft[vz]")
    flat = replace(robots.planar_floater(), gravity=(0.0, 0.0, -9.81))
    assert reduce(flat).kind == "symplectic"  # across the plane it pushes along nothing
    tilted = replace(flat, gravity=(0.5, 0.0, -9.8))
    refused(ReductionError, lambda: reduce(tilted), where="`gravity`", came="base[v")


def test_more_outputs_than_controls_are_counted() -> None:
    flyer, wheels = reduce(robots.free_flyer()), reduce(robots.wheel_satellite())
    base = Output("base", "spacecraft", "SO3")
    refused(
        OutputError,
        lambda: Servo(flyer, [HAND, base], 1.0, 1.0),
        expected="at most 6 output coordinates",
        came="9 (hand SE3 6, base SO3 3)",
    )
    refused(
        OutputError,
        lambda: Servo(wheels, [Output("pose", "satellite", "SE3")], 1.0, 1.0),
        expected="at most 3 output coordinates",
        came="6 (pose SE3 6)",
    )


def test_outputs_that_the_momentum_fixes_are_refused() -> None:
    # The centre of mass drifts, whatever the wheels do.
    refused(
        OutputError,
        lambda: Servo(
            reduce(robots.wheel_satellite()), [Output("place", "satellite", "R3")], 1.0, 1.0
        ),
        expected="independently",
        came="singular in every configuration",
    )


def test_chain_of_motions_is_differentiated_right() -> None:
    # Guards the demands of these tests.
    chain = check_a_demand()
    for time in (0.0, 1.0, 3.3):

        def pose(h: float, time: float = time) -> np.ndarray:
            return chain.motion(np.array([time + h]))[0][0]

        def twist(h: float, time: float = time) -> np.ndarray:
            return chain.motion(np.array([time + h]))[1][0]

        velocity = np.linalg.inv(pose(0.0)) @ difference_quotient(pose)
        assert_allclose(velocity, twist_matrix(twist(0.0)), rtol=0, atol=1e-10)
        change = chain.motion(np.array([time]))[2][0]
        assert_allclose(difference_quotient(twist), change, rtol=0, atol=1e-10)
