"""Balls that roll: alone on a plane, on a slope, without spin, and as casters of a rover."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from concur.errors import WheelError
from concur.reduction import ReducedModel, reduce
from concur.robot import Body, Inertia, Mechanism, Pose, Wheel, joints
from concur.simulation import forced_motion
from tests.oracles import Pinocchio

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


@pytest.mark.by_default(2)
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
