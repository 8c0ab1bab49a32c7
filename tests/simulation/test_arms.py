"""Pose outputs on arms: the error follows its own equation, whatever the robot."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

from concur.control import Servo
from concur.outputs import Output, ReferenceSample
from concur.reduction import reduce
from concur.robot import Body, Inertia, Mechanism, Pose
from concur.simulation import Run, simulate
from tests.control._cases import (
    ARM_Q0,
    ARM_S0,
    PoseCurve,
    arm,
    arm_servo,
    demand,
    gantry,
    hand_pose,
    hand_twist,
)
from tests.groups.oracles import bracket, conjugation, integral, twist_matrix
from tests.oracles import Pinocchio, assert_close

GROUPS = ("SE3", "R3xSO3", "SO3+R3")
DIRECTION = np.array([0.95, 0.2, -0.24]) / np.linalg.norm([0.95, 0.2, -0.24])
VE = np.array([0.02, -0.01, 0.03, 0.1, -0.1, 0.05])

ROBOTS: dict[str, tuple[Mechanism, np.ndarray]] = {
    "arm": (arm(), ARM_Q0),
    "larger arm": (arm(scale=1.4), np.array([0.4, 0.8, -1.2, -0.2, 0.9, 0.3])),
    "gantry": (
        gantry(),
        np.array([0.1, 0.2, 0.3, *Rotation.from_rotvec([0.3, 0.2, -0.4]).as_quat()]),
    ),
}


def start(angle: float) -> np.ndarray:
    """Error with a rotation by an angle in degrees."""
    return np.array([0.05, -0.04, 0.06, *(np.radians(angle) * DIRECTION)])


def track(name: str, group: str, angle: float, duration: float = 1.2, **options: object) -> Run:
    robot, q0 = ROBOTS[name]
    servo = arm_servo(robot, group)
    v0 = servo.model.velocity(q0, ARM_S0)
    curve = demand(group, hand_pose(robot, q0), hand_twist(robot, q0, v0), start(angle), VE)
    options = {"dt": 2e-3, **options}
    return simulate(robot, servo, curve.reference(group), duration, q0, ARM_S0, **options)  # type: ignore[arg-type]


def test_fixed_base_is_taken_as_it_is() -> None:
    for robot, _ in ROBOTS.values():
        model = arm_servo(robot, "SE3").model
        assert model.kind == "unreduced"
        assert model.ns == robot.nv == 6
        assert model.dependent == ()


@pytest.mark.by_default(4)
@pytest.mark.parametrize("angle", [30.0, 90.0, 150.0, 170.0])
@pytest.mark.parametrize("group", GROUPS)
def test_error_follows_its_own_equation(group: str, angle: float) -> None:
    run = track("arm", group, angle)
    turning = slice(0, 3) if group == "SO3+R3" else slice(3, 6)
    assert_allclose(run.error[0, turning], start(angle)[3:], rtol=0, atol=1e-12)
    assert np.abs(run.deviation).max() < 1e-7
    assert np.linalg.norm(run.error[-1]) < 0.1 * np.linalg.norm(run.error[0])
    assert run.constraint_residual.max() == 0.0
    assert np.abs(run.energy_balance).max() < 1e-5


def test_equation_of_a_pose_error_by_matrices() -> None:
    # As above, with the equation itself integrated outside the package.
    run = track("arm", "SE3", 150.0)
    assert_allclose(run.error[0], start(150.0), rtol=0, atol=1e-13)
    assert_allclose(run.velocity_error[0], VE, rtol=0, atol=1e-13)

    def slope(_: float, z: np.ndarray) -> np.ndarray:
        mapped = np.linalg.inv(integral(bracket(z[:6])))
        return np.concatenate([-mapped @ z[6:], mapped.T @ (9.0 * z[:6]) - 5.0 * z[6:]])

    times = run.t[::100]
    other = solve_ivp(
        slope, (0, times[-1]), [*start(150.0), *VE], "DOP853", times, rtol=1e-10, atol=1e-12
    )
    assert_allclose(run.error[::100], other.y[:6].T, rtol=0, atol=1e-7)
    assert_allclose(run.velocity_error[::100], other.y[6:].T, rtol=0, atol=1e-7)


@pytest.mark.extended
@pytest.mark.parametrize("group", GROUPS)
def test_three_robots_make_the_same_error_curve(group: str) -> None:
    # P7
    runs = [track(name, group, 120.0, duration=0.8) for name in ROBOTS]
    for other in runs[1:]:
        assert_allclose(other.error, runs[0].error, rtol=0, atol=1e-8)
        assert_allclose(other.velocity_error, runs[0].velocity_error, rtol=0, atol=1e-7)
        assert np.abs(other.u - runs[0].u).max() > 1.0


@pytest.mark.extended
def test_linear_and_angular_errors_are_coupled_in_se3_only() -> None:
    pose, product = track("gantry", "SE3", 120.0), track("gantry", "R3xSO3", 120.0)
    quarter = len(pose.t) // 4
    assert np.abs(pose.error[quarter, 3:] - product.error[quarter, 3:]).max() > 1e-5
    split = track("gantry", "SO3+R3", 120.0)
    assert_allclose(split.error, np.roll(product.error, 3, axis=1), rtol=0, atol=1e-12)


def test_wrong_model_of_the_arm_leaves_the_equation() -> None:
    # Guards the tests above: with masses that differ from the servo's they would fail.
    robot, _ = ROBOTS["arm"]
    heavier = arm()
    bodies = [
        type(b)(
            b.name,
            b.joint,
            b.parent,
            b.placement,
            type(b.inertia)(1.2 * b.inertia.mass, b.inertia.com, 1.2 * np.array(b.inertia.moments)),
        )
        for b in heavier.bodies
    ]
    plant = Mechanism(robot.name, bodies, gravity=robot.gravity)
    run = track("arm", "R3xSO3", 30.0, plant=plant)
    assert np.abs(run.deviation).max() > 1e-3


def test_torque_is_that_of_pinocchio() -> None:
    # nu by matrices, accelerations by solving with Pinocchio's Jacobian and its rate.
    robot, q0 = ROBOTS["arm"]
    oracle, servo = Pinocchio(robot), arm_servo(robot, "SE3")
    rng = np.random.default_rng(1)
    offset = np.eye(4)
    offset[:3, 3] = 0.15, 0.0, 0.0
    to_point = conjugation(np.linalg.inv(offset))
    for _ in range(10):
        q, s = q0 + rng.uniform(-0.3, 0.3, 6), rng.uniform(-1.5, 1.5, 6)
        x = np.array([*rng.uniform(-0.3, 0.3, 3), *rng.uniform(-1.5, 1.5, 3)])
        pose = oracle.pose(q, "hand") @ offset
        curve = PoseCurve(pose @ _exp(x), rng.normal(size=6), rng.normal(size=6))
        jacobian = to_point @ oracle.jacobian(q, "hand")
        drift = to_point @ oracle.velocity_product(q, s, "hand")
        (wanted,), (twist,), (rate,) = curve.motion(np.array([0.0]))
        carry = conjugation(_exp(x))
        ve = jacobian @ s - carry @ twist
        mapped = np.linalg.inv(integral(bracket(x)))
        nu = mapped.T @ (9.0 * x) - 5.0 * ve
        nu += carry @ rate - bracket(jacobian @ s) @ carry @ twist
        sdot = np.linalg.solve(jacobian, nu - drift)
        expected = oracle.inverse_dynamics(q, s, sdot)
        attitude = Rotation.from_matrix(wanted[:3, :3]).as_quat()
        sample = ReferenceSample([*wanted[:3, 3], *attitude], twist, rate)
        assert_close(servo.torque(q, s, sample), expected, 1e-10)
        by_matrix = ReferenceSample(wanted, twist, rate)
        assert_close(servo.torque(q, s, by_matrix), expected, 1e-10)


def _exp(x: np.ndarray) -> np.ndarray:
    from scipy.linalg import expm

    return expm(twist_matrix(x))


def test_margin_of_a_pose_has_no_unit() -> None:
    # P17 with angular rows: the arm described in other units of length and mass.
    robot = arm()
    for length, mass in ((1000.0, 1.0), (0.3, 7.0)):
        bodies = [
            Body(
                b.name,
                b.joint,
                b.parent,
                Pose(length * np.array(b.placement.translation), b.placement.rotation),
                Inertia(
                    mass * b.inertia.mass,
                    length * np.array(b.inertia.com),
                    mass * length**2 * np.array(b.inertia.moments),
                ),
            )
            for b in robot.bodies
        ]
        other = Mechanism("other units", bodies)
        output = Output("hand", "hand", "SE3", (0.15 * length, 0.0, 0.0))
        servo = Servo(reduce(other), [output], 1.0, 1.0)
        assert servo.margin(ARM_Q0) == pytest.approx(
            arm_servo(robot, "SE3").margin(ARM_Q0), rel=1e-9
        )


def test_robot_standing_elsewhere_needs_the_same_torque() -> None:
    # P9: gamma and r moved by the same g leave x, ve and u, for gravity turned with them.
    turn = Rotation.from_rotvec([0.4, -0.8, 0.3])
    shift = np.array([1.0, -2.0, 0.7])
    g = np.eye(4)
    g[:3, :3], g[:3, 3] = turn.as_matrix(), shift
    here = arm()
    there = arm(placement=Pose(shift, turn.as_quat()), gravity=tuple(turn.apply([0, 0, -9.81])))
    pose = hand_pose(here, ARM_Q0) @ _exp(start(100.0))
    twist, rate = np.array([0.2, -0.1, 0.3, 0.5, 0.4, -0.6]), np.linspace(-1, 1, 6)
    one, other = arm_servo(here, "SE3"), arm_servo(there, "SE3")
    own, moved = ReferenceSample(pose, twist, rate), ReferenceSample(g @ pose, twist, rate)
    errors = one.error(ARM_Q0, ARM_S0, own), other.error(ARM_Q0, ARM_S0, moved)
    assert_close(errors[1], errors[0], 1e-12)
    assert_close(other.torque(ARM_Q0, ARM_S0, moved), one.torque(ARM_Q0, ARM_S0, own), 1e-12)
