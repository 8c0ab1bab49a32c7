"""Cars, mecanum base and tractor with trailers, against rows by hand and multipliers."""

from __future__ import annotations

import numpy as np
import pytest

from concur import robots
from concur.control import Servo
from concur.outputs import Output
from concur.reduction import AuditStatus, ReducedModel, reduce
from concur.robot import Mechanism, Wheel
from concur.simulation import forced_motion
from tests.oracles import Constrained, Pinocchio, assert_close
from tests.oracles._kkt import Rows, car_rows, mecanum_rows, trailer_rows
from tests.reduction._reduced import Reference, torques

HITCHES, AXLES = (0.6, 0.5), (1.6, 1.6)

ROBOTS: dict[str, tuple[Mechanism, Rows]] = {
    "car_arm": (robots.car_arm(), car_rows(0.8, 0.15, 0.28, 10)),
    "mecanum_arm": (robots.mecanum_arm(), mecanum_rows(0.35, 0.3, 0.12, 14)),
    "tractor_trailers": (
        robots.tractor_trailers(),
        trailer_rows(0.3, 0.5, HITCHES, AXLES),
    ),
}


@pytest.fixture(scope="module", params=ROBOTS)
def case(request: pytest.FixtureRequest) -> tuple[ReducedModel, Rows]:
    robot, rows = ROBOTS[request.param]
    return reduce(robot), rows


def test_rows_are_those_by_hand(case: tuple[ReducedModel, Rows]) -> None:
    model, rows = case
    rng = np.random.default_rng(0)
    for q in (model.robot.neutral(), *(model.robot.random(rng) for _ in range(10))):
        ours, hand = model.robot.constraints(q), rows(q)
        assert ours.shape == hand.shape
        # The same velocities are admitted, whatever the order and scale of the rows.
        lift = model.lift(q)[0]
        np.testing.assert_allclose(hand @ lift, np.zeros((len(hand), model.ns)), atol=1e-12)
        assert np.linalg.matrix_rank(hand) == model.nv - model.ns


def test_every_shape_velocity_has_its_drive(case: tuple[ReducedModel, Rows]) -> None:
    model, _ = case
    assert model.nu == model.ns
    rng = np.random.default_rng(1)
    for q in (model.robot.random(rng) for _ in range(5)):
        np.testing.assert_allclose(model.input_matrix(q), np.eye(model.ns), rtol=0, atol=1e-14)
    assert model.audit()["NHR3"].status is AuditStatus.HOLDS


def test_motion_is_that_of_the_multipliers(case: tuple[ReducedModel, Rows]) -> None:
    model, rows = case
    full = Constrained(Pinocchio(model.robot), rows)
    reference = Reference(full, model.shape, model.dependent)
    rng = np.random.default_rng(2)
    for _ in range(10):
        q, s = model.robot.random(rng), rng.uniform(-2, 2, model.ns)
        u = rng.uniform(-20, 20, model.nu)
        tau = torques(model, u)
        assert_close(model.mass_matrix(q), reference.mass_matrix(q), 1e-11)
        assert_close(model.acceleration(q, s, u), reference.acceleration(q, s, tau), 1e-9)
        assert model.hamiltonian(q, model.mass_matrix(q) @ s) == pytest.approx(
            reference.energy(q, s), rel=1e-10, abs=1e-8
        )


@pytest.mark.parametrize("name", ["car_arm", "tractor_trailers"])
def test_momentum_form(name: str) -> None:
    robot, rows = ROBOTS[name]
    model = reduce(robot)
    reference = Reference(Constrained(Pinocchio(robot), rows), model.shape, model.dependent)
    rng = np.random.default_rng(3)
    for _ in range(3):
        q, s = robot.random(rng), rng.uniform(-1, 1, model.ns)
        u = rng.uniform(-20, 20, model.nu)
        lift = model.lift(q)[0]
        qdot = reference.full.oracle.rate(q, lift @ s)
        # The rate of p = Mhat s along the motion; the rows may depend on what they determine.
        h = 1e-3
        ahead = [reference.mass_matrix(q + k * h * qdot) for k in (-1, -0.5, 0.5, 1)]
        turning = (8 * (ahead[2] - ahead[1]) - (ahead[3] - ahead[0])) / (6 * h)
        sdot = reference.acceleration(q, s, torques(model, u))
        expected = turning @ s + reference.mass_matrix(q) @ sdot
        _, pdot = model.vector_field(q, model.mass_matrix(q) @ s, u)
        assert_close(pdot, expected, 1e-7)


def test_kinds_of_reduction() -> None:
    kinds = {name: reduce(robot).kind for name, (robot, _) in ROBOTS.items()}
    # The rows of the trailers depend on the hitch angles, which they determine.
    assert kinds == {
        "car_arm": "chaplygin",
        "mecanum_arm": "chaplygin",
        "tractor_trailers": "constrained",
    }


def test_trailers_settle_on_circles_of_their_own() -> None:
    # On a steady circle all axles point to one centre: Pythagoras gives the radii, and the
    # hitch angles are those under which hitch and axles see the centre.
    model = reduce(robots.tractor_trailers())
    radius, rate = 4.0, 0.5
    wheels = rate * (radius + np.array([-0.5, 0.5])) / 0.3
    angles, own = [], radius
    for hitch, axle in zip(HITCHES, AXLES, strict=True):
        hinge = np.hypot(own, hitch)
        behind = np.sqrt(hinge**2 - axle**2)
        angles.append(-np.arctan2(hitch, own) - np.arctan2(axle, behind))
        own = behind
    q = np.array([0, 0, 0.3, 0, 0, *angles])
    v = model.velocity(q, wheels)
    np.testing.assert_allclose(v, [2.0, 0, rate, *wheels, 0, 0], rtol=0, atol=1e-12)
    lags = []
    for offset in (0.2, -0.3):  # going forwards they return to it
        bent = q.copy()
        bent[5:] += offset
        for _ in range(4000):
            half = model.robot.integrate(bent, 0.005 * model.velocity(bent, wheels))
            bent = model.robot.integrate(bent, 0.01 * model.velocity(half, wheels))
        lags.append(np.abs(bent[5:] - angles).max())
    assert max(lags) < 1e-4


def test_reversing_trailers_jackknife() -> None:
    # Straight ahead is stable forwards and not backwards, with the rates speed / length.
    model = reduce(robots.tractor_trailers())
    small = 1e-4
    for sign in (1, -1):
        q = np.array([0, 0, 0, 0, 0, small, 0])
        v = model.velocity(q, sign * np.ones(2) / 0.3)
        assert v[5] == pytest.approx(-sign * small / 1.6, rel=1e-6)


def test_mecanum_base_slides_sideways() -> None:
    model = reduce(robots.mecanum_arm())
    s = np.zeros(model.ns)
    s[:3] = np.array([-1, 1, 1]) / 0.12
    v = model.velocity(model.robot.neutral(), s)
    np.testing.assert_allclose(v[:3], [0, 1, 0], rtol=0, atol=1e-14)
    assert v[6] == pytest.approx(-1 / 0.12, abs=1e-13)


def test_car_stands_up_under_its_drives() -> None:
    # Gravity on the arm held by the torques of the standing car: nothing moves.
    model = reduce(robots.car_arm())
    q = np.array([0.3, 0.1, 0.4, 0.3, 0, 0, 0.5, -0.6, 0.9, 0.2])
    s = np.zeros(model.ns)
    motion = forced_motion(model, model.bias(q, s), 0.5, q, s, dt=0.1)
    np.testing.assert_allclose(motion.q, np.tile(q, (6, 1)), rtol=0, atol=1e-11)


def test_servos_on_the_robots_with_arms() -> None:
    # Steering moves no point of the chassis, but those in front of the steered axle.
    ahead = Output("ahead", "steering", "R2", point=(0.3, 0, 0))
    hand = Output("hand", "hand", "R3", point=(0.15, 0, 0))
    car = Servo(reduce(robots.car_arm()), [ahead, hand], stiffness=4.0, damping=4.0)
    q = np.array([0, 0, 0, 0.2, 0, 0, 0.4, -0.7, 0.9, 0.3])
    assert car.margin(q) > 0.02
    base = Output("base", "base", "SE2")
    grip = Output("grip", "hand", "R3xSO3", point=(0, 0, 0.2))
    lab = Servo(reduce(robots.mecanum_arm()), [base, grip], stiffness=4.0, damping=4.0)
    q = lab.model.robot.neutral()
    q[7:] = [0.3, 0.6, 0.2, 1.1, -0.4, 0.8, 0.1]
    assert lab.margin(q) > 0.02


def test_wheels_that_skid_leave_the_base_free_sideways() -> None:
    # Four parallel wheels that only roll: left pair and right pair turn it like a tank.
    base = robots.mecanum_arm()
    names = ("front_left", "front_right", "rear_left", "rear_right")
    skidding = [Wheel(name, 0.12, kind="omni") for name in names]
    loose = reduce(
        Mechanism("skid", base.bodies, skidding, base.gravity, [*base.actuated[1:3], "joint_1"])
    )
    assert "base[vy]" in loose.shape_names

    def rolling(q: np.ndarray) -> np.ndarray:
        rows = mecanum_rows(0.35, 0.3, 0.12, 14)(q)
        rows[:, 1] = 0.0
        rows[:, 2] = [-0.3, 0.3, -0.3, 0.3]
        return rows

    full = Constrained(Pinocchio(loose.robot), rolling)
    reference = Reference(full, loose.shape, loose.dependent)
    rng = np.random.default_rng(4)
    for _ in range(3):
        q, s = loose.robot.random(rng), rng.uniform(-1, 1, loose.ns)
        u = rng.uniform(-5, 5, loose.nu)
        expected = reference.acceleration(q, s, torques(loose, u))
        assert_close(loose.acceleration(q, s, u), expected, 1e-9)

    slider = Wheel("base", 0.0, kind="slider", axis=(0, 1, 0), center=(-0.1, 0, 0))
    held = reduce(
        Mechanism(
            "held",
            base.bodies,
            [*skidding, slider],
            base.gravity,
            [name for name in base.actuated if name != "front_left"],
        )
    )
    assert held.kind == "chaplygin"
    assert held.nu == held.ns == 9
    s = np.zeros(held.ns)
    left, right = 5.0, 7.0
    s[[held.shape_names.index("rear_left"), held.shape_names.index("front_right")]] = left, right
    v = held.velocity(held.robot.neutral(), s)
    turn = 0.12 * (right - left) / 0.6
    expected = [0.12 * (left + right) / 2, 0.1 * turn, turn, left, right, left, right]
    np.testing.assert_allclose(v[:7], expected, rtol=0, atol=1e-12)
