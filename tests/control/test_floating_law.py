"""The law on robots that float with momentum: its numbers, its properties, what it refuses.

P3 and so on are the properties listed in section 10 of the sources on servo control; check A is
in section 4 there. The effect of a torque is computed by Pinocchio.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.spatial.transform import Rotation

from concur import robots
from concur.control import Servo
from concur.errors import DescriptionError, OutputError, ReductionError
from concur.outputs import Output
from concur.reduction import AuditStatus, reduce
from concur.robot import joints
from tests.control._cases import refused
from tests.control._floating_cases import (
    CHECK_A_MOMENTUM,
    CHECK_A_Q0,
    CHECK_A_S0,
    CHECK_A_V0,
    CHECK_A_X0,
    Chain,
    OutputOracle,
    build,
    check_a_demand,
    states,
)
from tests.groups.oracles import twist_matrix
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


@pytest.mark.extended
def test_momentum_taken_as_zero_leaves_an_error() -> None:
    # P14: it must not vanish.
    _, _, x, _ = pinocchio_run(check_a(np.zeros(6)), np.array([0.0, 5.0]))
    assert np.linalg.norm(x[-1]) == pytest.approx(3.1e-2, rel=0.01)


@pytest.mark.by_default(1)
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
