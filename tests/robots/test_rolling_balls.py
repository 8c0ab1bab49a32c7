"""Balls that roll: alone on a plane, on a slope, without spin, and as casters of a rover."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

from concur.errors import WheelError
from concur.reduction import AuditStatus, ReducedModel, reduce
from concur.robot import Body, Inertia, Mechanism, Pose, Wheel, joints
from concur.simulation import forced_motion
from tests.oracles import Pinocchio, assert_close, difference_quotient

RADIUS, MASS, MOMENTS = 0.3, 1.5, np.diag([0.04, 0.05, 0.06])
Z = np.array([0.0, 0.0, 1.0])


def ball(
    kind: str = "ball",
    moments: np.ndarray | float = MOMENTS,
    normal: tuple[float, ...] = (0, 0, 1),
    **options: object,
) -> Mechanism:
    """Build a ball on a plane; the body without mass under it keeps track of where it is."""
    inertia = Inertia(MASS, moments=moments * np.eye(3))
    bodies = [
        Body("place", joints.Sliding(normal)),
        Body("ball", joints.Spherical(), "place", inertia=inertia),
    ]
    return Mechanism("ball", bodies, [Wheel("ball", RADIUS, kind=kind)], actuated=[], **options)


@pytest.fixture(scope="module")
def model() -> ReducedModel:
    return reduce(ball())


def spatial(motion_q: np.ndarray, s: np.ndarray) -> np.ndarray:
    """Angular velocity in inertial axes."""
    return np.asarray(Rotation.from_quat(motion_q[..., 2:]).apply(s))


def test_the_place_of_the_ball_follows_from_its_turning(model: ReducedModel) -> None:
    assert model.kind == "chaplygin"
    assert model.shape_names == ("ball[wx]", "ball[wy]", "ball[wz]")
    rng = np.random.default_rng(0)
    for _ in range(10):
        q, s = model.robot.random(rng), rng.uniform(-2, 2, 3)
        expected = np.cross(spatial(q, s), RADIUS * Z)
        np.testing.assert_allclose(model.velocity(q, s)[:2], expected[:2], rtol=0, atol=1e-14)
        assert model.regularity(q) == 1.0


def test_uneven_ball_moves_as_the_reference(model: ReducedModel) -> None:
    """003: (136)-(142)."""
    # Chaplygin's ball, homogeneous in no axis; numbers from an independent 9 x 9 solution.
    q0, s0 = model.robot.neutral(), [1.0, 2.0, 3.0]
    start = model.acceleration(q0, s0, [])
    np.testing.assert_allclose(start, [-12 / 35, 12 / 37, -1 / 3], rtol=0, atol=1e-14)
    motion = forced_motion(model, None, 5.0, q0, s0, dt=0.5)
    found = spatial(motion.q, motion.s)
    for row, omega, place in (
        (2, [0.946704451072, 1.843428154784, 3.373657243291], [0.586677273396, -0.262247798048]),
        (10, [0.763622897347, 1.966346378068, 3.298987961549], [2.921529962777, -1.368894486603]),
    ):
        np.testing.assert_allclose(found[row], omega, rtol=0, atol=1e-11)
        np.testing.assert_allclose(motion.q[row, :2], place, rtol=0, atol=1e-11)
    np.testing.assert_allclose(motion.energy, 0.7275, rtol=0, atol=1e-12)
    # The angular momentum about the contact is constant in inertial axes.
    turns = Rotation.from_quat(motion.q[:, 2:]).as_matrix()
    about = turns @ MOMENTS @ turns.transpose(0, 2, 1)
    about = about + MASS * RADIUS**2 * np.diag([1.0, 1.0, 0.0])
    kept = np.einsum("kij,kj->ki", about, found)
    np.testing.assert_allclose(kept, np.tile([0.175, 0.37, 0.18], (11, 1)), rtol=0, atol=1e-11)


def test_uneven_ball_in_any_orientation(model: ReducedModel) -> None:
    turn = Rotation.from_euler("ZYX", [0.3, -0.7, 1.1])
    omega = np.array([0.4, -1.1, 0.7])
    q = np.array([0, 0, *turn.as_quat()])
    s = turn.inv().apply(omega)
    # The rate in inertial axes is the turned rate in body axes.
    rate = turn.apply(model.acceleration(q, s, []))
    expected = [-0.037836812281, 0.020854466962, 0.19801698315]
    np.testing.assert_allclose(rate, expected, rtol=0, atol=1e-11)
    p = model.mass_matrix(q) @ s
    _, pdot = model.vector_field(q, p, [])
    qdot = model.robot.rate(q, model.velocity(q, s))
    turning = difference_quotient(lambda h: model.mass_matrix(q + h * qdot) @ s)
    assert_close(pdot, turning + model.mass_matrix(q) @ model.acceleration(q, s, []), 1e-9)


@pytest.mark.parametrize("kind", ["ball", "rubber_ball"])
@pytest.mark.parametrize("normal", [(0, 0, 1), (0.6, 0, 0.8), (0.36, -0.48, 0.8)])
def test_even_ball_rolls_down_a_slope(kind: str, normal: tuple[float, ...]) -> None:
    # Two sevenths of the weight along the slope turn it: 5/7 g sin of the slope.
    robot = ball(kind, 0.4 * MASS * RADIUS**2, normal, gravity=(0, 0, -9.81))
    model = reduce(robot)
    q0 = robot.neutral()
    motion = forced_motion(model, None, 1.0, q0, np.zeros(model.ns), dt=0.5)
    place = robot.pose(motion.q[-1], "ball")[:3, 3] - robot.pose(q0, "ball")[:3, 3]
    n = np.array(normal)
    downhill = 9.81 * (-Z + n[2] * n)
    np.testing.assert_allclose(place, 5 / 7 * downhill / 2, rtol=0, atol=1e-10)


def test_rubber_ball_is_steered_by_its_place() -> None:
    # The spins in the ball's own axes follow from the velocity of its centre in all orientations;
    # no choice in which one of its spins remains would do.
    model = reduce(ball("rubber_ball"))
    assert model.shape_names == ("place[vx]", "place[vy]")
    assert model.robot.constraint_names[-1] == "ball: no spin"
    rng = np.random.default_rng(1)
    for _ in range(10):
        q, s = model.robot.random(rng), rng.uniform(-2, 2, 2)
        omega = spatial(q, model.velocity(q, s)[2:])
        expected = np.cross(Z, [*s, 0.0]) / RADIUS
        np.testing.assert_allclose(omega, expected, rtol=0, atol=1e-13)


@pytest.mark.parametrize("circle", [0.02, 0.1, 0.3])
def test_rubber_ball_comes_back_turned(circle: float) -> None:
    """000: (4.12)-(4.15)."""
    # Once round a circle: the angle that is left is 2 pi (sqrt(1 + a^2 / R^2) - 1), modulo 2 pi.
    model = reduce(ball("rubber_ball"))

    def rate(t: float, q: np.ndarray) -> np.ndarray:
        s = circle * np.array([-np.sin(t), np.cos(t)])
        return np.asarray(model.robot.rate(q, model.velocity(q, s)))

    once = solve_ivp(
        rate, (0, 2 * np.pi), model.robot.neutral(), method="DOP853", rtol=1e-11, atol=1e-12
    )
    end = once.y[:, -1]
    np.testing.assert_allclose(end[:2], np.zeros(2), rtol=0, atol=1e-9)
    left = Rotation.from_quat(end[2:]).as_rotvec()
    turned = 2 * np.pi * (np.hypot(1.0, circle / RADIUS) - 1.0)
    assert np.linalg.norm(left) == pytest.approx(turned, abs=1e-9)
    if circle < 0.05:  # for small circles about the normal, by minus the area over R^2
        assert left[2] == pytest.approx(-np.pi * circle**2 / RADIUS**2, rel=0.02)


def test_uneven_rubber_ball_keeps_its_energy() -> None:
    model = reduce(ball("rubber_ball"))
    motion = forced_motion(model, None, 5.0, model.robot.neutral(), [0.6, -0.3], dt=0.5)
    assert np.abs(motion.energy_balance).max() < 1e-11
    assert np.ptp(motion.s[:, 0]) > 1e-3  # a uniform ball would keep its velocity


def rover_on_a_ball(kind: str) -> Mechanism:
    disk = Inertia(1.0, moments=(0.003, 0.005, 0.003))
    bodies = [
        Body("base", joints.Planar(), inertia=Inertia(10.0, (0.1, 0, 0.05), (0.2, 0.3, 0.4))),
        Body("left", joints.Revolute((0, 1, 0)), "base", Pose((0, 0.25, 0)), disk),
        Body("right", joints.Revolute((0, 1, 0)), "base", Pose((0, -0.25, 0)), disk),
        Body(
            "ball",
            joints.Spherical(),
            "base",
            Pose((0.3, 0.05, -0.06), (0.0, 0.6, 0.0, 0.8)),
            Inertia(0.3, moments=(2e-4, 2e-4, 2e-4)),
        ),
    ]
    wheels = [Wheel("left", 0.1), Wheel("right", 0.1), Wheel("ball", 0.04, kind=kind)]
    return Mechanism("rover", bodies, wheels, actuated=["left", "right"])


def test_ball_under_a_rover_rolls_along() -> None:
    model = reduce(rover_on_a_ball("rubber_ball"))
    oracle, rng = Pinocchio(model.robot), np.random.default_rng(2)
    assert model.shape_names == ("left", "right")
    for _ in range(10):
        q, s = model.robot.random(rng), rng.uniform(-3, 3, 2)
        v = model.velocity(q, s)
        assert model.regularity(q) > 1e-2
        turn = oracle.pose(q, "ball")[:3, :3]
        twist = oracle.jacobian(q, "ball") @ v
        center, omega = turn @ twist[:3], turn @ twist[3:]
        slip = center + np.cross(omega, -0.04 * Z)
        np.testing.assert_allclose(slip, np.zeros(3), rtol=0, atol=1e-13)
        assert omega @ Z == pytest.approx(0.0, abs=1e-12)


def test_free_spin_under_a_rover_is_no_coordinate() -> None:
    # Which of the ball's own spins is left over changes with its orientation: the audit reports it.
    model = reduce(rover_on_a_ball("ball"))
    assert model.ns == 3
    row = model.audit()["NHR3"]
    assert row.status is AuditStatus.FAILS
    assert "changes its sign" in row.why


def test_even_ball_adds_its_rolling_inertia() -> None:
    # Straight ahead: m + j / r^2 for each of what rolls.
    model = reduce(rover_on_a_ball("rubber_ball"))
    straight = np.array([1.0, 1.0]) / 0.1
    twice = straight @ model.mass_matrix(model.robot.neutral()) @ straight
    assert twice == pytest.approx(12.3 + 2 * 0.005 / 0.1**2 + 2e-4 / 0.04**2, rel=1e-13)


def test_what_cannot_be_a_ball_is_refused() -> None:
    place = Body("place", joints.Sliding((0, 0, 1)))
    solid = Inertia(1.0, moments=(0.01, 0.01, 0.01))
    round_one = Body("ball", joints.Spherical(), "place", inertia=solid)
    hinged = Body("ball", joints.Revolute((0, 1, 0)), "place", inertia=solid)
    with pytest.raises(WheelError, match="Spherical joint about the centre"):
        Mechanism("a", [place, hinged], [Wheel("ball", 0.1, kind="ball")])
    with pytest.raises(WheelError, match="origin of the ball's joint"):
        Mechanism(
            "b", [place, round_one], [Wheel("ball", 0.1, kind="rubber_ball", center=(0, 0, 0.1))]
        )
    with pytest.raises(WheelError, match="none for kind 'ball'"):
        Wheel("ball", 0.1, kind="ball", axis=(0, 1, 0))
    with pytest.raises(WheelError, match="radius above zero"):
        Wheel("ball", 0.0, kind="ball")
    free = Body("place", joints.Free(), inertia=solid)
    with pytest.raises(WheelError, match="Planar or Sliding joint"):
        Mechanism("c", [free, round_one], [Wheel("ball", 0.1, kind="ball")])


def test_ball_above_the_ground_of_the_wheels_is_refused() -> None:
    robot = rover_on_a_ball("ball")
    wheels = [*robot.wheels[:2], Wheel("ball", 0.05, kind="ball")]
    with pytest.raises(WheelError, match=r"does not touch the plane"):
        Mechanism("high", robot.bodies, wheels)
