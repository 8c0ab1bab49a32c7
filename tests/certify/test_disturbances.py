"""Disturbances by errors of torque, inertia and momentum, against Pinocchio's plants."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from concur.certify._disturbances import (
    model_disturbance,
    momentum_disturbance,
    torque_disturbance,
    torque_effect,
)
from concur.control import Servo
from concur.errors import NonFiniteError, OutputError, ReductionError, ShapeError
from concur.outputs import Output, ReferenceSample
from concur.reduction import reduce
from concur.robot import Inertia
from tests.control._cases import DAMPING, Q0, S0, STIFFNESS, case_study
from tests.control._floating_cases import OutputOracle, build, states
from tests.oracles import CASE_STUDY, Constrained, Pinocchio, assert_close, rover, rover_rows

N = CASE_STUDY
BASE, HAND = np.array([N.l0, 0.0, 0.0]), np.array([0.0, N.l4, 0.0])

HEAVY = replace(N, m=(33.0, 1.5, 1.6, 2.3, 1.9, 1.3), base=(1.0, 1.1, 1.7))


class Hand:
    """Outputs of section 5.5 from Pinocchio and one-forms written by hand."""

    def __init__(self) -> None:
        self.oracle = Pinocchio(case_study().model.robot)
        self.full = Constrained(self.oracle, rover_rows(N.b, N.c))
        b, c = N.b, N.c
        self.lift = np.zeros((8, 5))
        self.lift[:3, :2] = [[b / 2, b / 2], [0.0, 0.0], [-b / (2 * c), b / (2 * c)]]
        self.lift[3:] = np.eye(5)

    def outputs(self, q: np.ndarray) -> np.ndarray:
        base, hand = self.oracle.pose(q, "chassis"), self.oracle.pose(q, "fore")
        base, hand = base[:3, :3] @ BASE + base[:3, 3], hand[:3, :3] @ HAND + hand[:3, 3]
        return np.concatenate([base[:2], hand])

    def jacobian(self, q: np.ndarray) -> np.ndarray:
        rows = []
        for body, point, count in (("chassis", BASE, 2), ("fore", HAND, 3)):
            turn = self.oracle.pose(q, body)[:3, :3]
            columns = self.oracle.jacobian(q, body)
            rows.append((turn @ (columns[:3] + np.cross(columns[3:].T, point).T))[:count])
        return np.vstack(rows)

    def drift(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Acceleration of the outputs at vdot = 0; on this rover a0 is zero."""
        rows = []
        for body, point, count in (("chassis", BASE, 2), ("fore", HAND, 3)):
            turn = self.oracle.pose(q, body)[:3, :3]
            twist = self.oracle.jacobian(q, body) @ v
            rate = self.oracle.velocity_product(q, v, body)
            w = twist[3:]
            at_point = rate[:3] + np.cross(rate[3:], point)
            speed = twist[:3] + np.cross(w, point)
            rows.append((turn @ (at_point + np.cross(w, speed)))[:count])
        return np.concatenate(rows)

    def command(self, q: np.ndarray, s: np.ndarray, sample: ReferenceSample) -> np.ndarray:
        x = sample.pose - self.outputs(q)
        ve = self.jacobian(q) @ self.lift @ s - sample.twist
        return sample.acceleration + STIFFNESS @ x - DAMPING @ ve


def made(hand, plant, q, s, u):
    """Output acceleration of a rover under torques, by multipliers."""
    v = hand.lift @ s
    vdot, _ = plant.acceleration(q, v, np.concatenate([np.zeros(3), u]))
    return hand.jacobian(q) @ vdot + hand.drift(q, v)


def sample(rng, servo, q):
    pose = servo.output(q) + rng.uniform(-0.2, 0.2, servo.size)
    return ReferenceSample(pose, *rng.uniform(-0.3, 0.3, (2, servo.size)))


def test_wrong_torques_push_the_outputs_as_multipliers_say():
    servo, hand = case_study(), Hand()
    rng = np.random.default_rng(0)
    bounds = np.array([0.1, 0.2, 0.3, 0.1, 0.05])
    found = torque_disturbance(servo, Q0, bounds)
    assert found.sampled
    assert found.points.shape == (16, 5)
    u = servo.torque(Q0, S0, sample(rng, servo, Q0))
    largest = np.zeros(5)
    ideal = made(hand, hand.full, Q0, S0, u)
    for k in range(32):
        du = bounds * [(-1.0) ** (k >> i) for i in range(5)]
        d = made(hand, hand.full, Q0, S0, u + du) - ideal
        assert_close(torque_effect(servo, Q0) @ du, d, 1e-9)
        nearest = min(np.abs(sign * found.points - d).max(axis=1).min() for sign in (1, -1))
        assert nearest < 1e-9
        largest = np.maximum(largest, np.abs(d))
    assert_allclose(found.components, largest, rtol=1e-9)
    assert "1 configuration" in found.source


def test_rows_bound_components_as_well_and_lengths_less_well():
    servo = case_study()
    grid = np.array([Q0, [-0.3, -0.05, 0.1, 0.0, 0.0, 0.3, 1.1, -1.5]])
    both = torque_disturbance(servo, grid, 0.1)
    rows = torque_disturbance(servo, grid, 0.1, method="rows")
    assert rows.points is None
    assert_allclose(rows.components, both.components, rtol=1e-12)
    assert np.linalg.norm(both.points, axis=1).max() < np.linalg.norm(rows.components)
    one = [torque_disturbance(servo, q, 0.1).components for q in grid]
    assert_allclose(both.components, np.max(one, axis=0), rtol=1e-12)
    still = torque_disturbance(servo, Q0, [0.0, 0.0, 0.2, 0.0, 0.0])
    assert_allclose(np.abs(still.points), [np.abs(torque_effect(servo, Q0)[:, 2]) * 0.2])
    assert not torque_disturbance(servo, Q0, 0.0).components.any()


def test_wrong_inertias_of_a_rover():
    servo, hand = case_study(), Hand()
    truth = rover(HEAVY)
    plant = Constrained(Pinocchio(truth), rover_rows(N.b, N.c))
    rng = np.random.default_rng(1)
    for _ in range(4):
        q = Q0 + rng.uniform(-0.2, 0.2, 8)
        s = S0 + rng.uniform(-0.5, 0.5, 5)
        ahead = rng.normal(size=5)
        found = model_disturbance(servo, truth, q, s, ahead)
        (rest,), (growth,) = found.points, found.feedback
        for _ in range(3):
            demand = sample(rng, servo, q)
            nu = hand.command(q, s, demand)
            d = made(hand, plant, q, s, servo.torque(q, s, demand)) - nu
            assert np.abs(d).max() > 1e-3
            assert_close(rest + growth @ (nu - ahead), d, 1e-8)
        # The closed form for lifts that do not depend on inertias.
        own, real = servo.model.mass_matrix(q), reduce(truth).mass_matrix(q)
        jacobian = hand.jacobian(q) @ hand.lift
        wanted = jacobian @ np.linalg.solve(real, own - real) @ np.linalg.inv(jacobian)
        assert_close(growth, wanted, 1e-9)
        assert_close(found.components, np.abs(rest), 1e-12)


@pytest.mark.extended
def test_a_box_of_masses_is_that_of_its_corners():
    """Between the lightest and the heaviest load the bound is nearly within that of either."""
    servo, robot = case_study(), case_study().model.robot
    states = np.array([Q0, Q0]), np.array([S0, -S0]), np.ones((2, 5))

    def wrong(factor):
        return model_disturbance(servo, other_inertias(robot, factor), *states)

    box = wrong(0.8) | wrong(1.2)
    assert len(box.points) == 4
    assert len(box.feedback) == 4
    for factor in (0.85, 0.95, 1.1, 1.19):
        inside = wrong(factor)
        assert (inside.components <= box.components + 1e-12).all()
        assert (
            np.linalg.norm(inside.feedback, 2, axis=(1, 2)).max()
            <= np.linalg.norm(box.feedback, 2, axis=(1, 2)).max()
        )
    assert (wrong(1.5).components > box.components).any()


def test_the_right_inertias_disturb_nothing():
    servo = case_study()
    found = model_disturbance(servo, servo.model.robot, [Q0, Q0], [S0, 2 * S0], np.ones((2, 5)))
    assert found.components.max() < 1e-9
    assert np.abs(found.feedback).max() < 1e-9
    assert found.sampled
    assert "2 states" in found.source


def other_inertias(robot, factor):
    """The same robot with mass and moments of all bodies but the base multiplied."""
    bodies = [robot.bodies[0]]
    for body in robot.bodies[1:]:
        own = body.inertia
        moments = factor * np.asarray(own.moments)
        inertia = Inertia(factor * own.mass, own.com, moments)
        bodies.append(replace(body, inertia=inertia) if own.mass else body)
    return replace(robot, bodies=bodies)


def test_wrong_inertias_of_a_floating_robot_that_is_measured():
    servo, _ = build("hand of the free-flyer")
    measured = replace(servo, use_measured_velocity=True)
    robot = servo.model.robot
    truth = other_inertias(robot, 1.4)
    oracle = OutputOracle(truth, measured.outputs)
    rng = np.random.default_rng(2)
    for q, _, v in states(servo, 2):
        found = model_disturbance(measured, truth, q, v)
        (rest,), (growth,) = found.points, found.feedback
        demand = oracle.sample(q, rng)
        nu = oracle.command(measured, q, v, demand)
        d = oracle.acceleration(q, v, measured.torque(q, v, demand)) - nu
        assert np.abs(d).max() > 1e-3
        assert_close(rest + growth @ nu, d, 1e-8)
    with pytest.raises(ReductionError, match="measure"):
        model_disturbance(servo, truth, q, v[6:])


def test_wrong_momentum():
    servo, oracle = build("hand of the free-flyer")
    rng = np.random.default_rng(3)
    found, poses, speeds = [], [], []
    for q, s, lifted in states(servo, 3):
        v = lifted.copy()
        v[:6] += rng.uniform(-0.2, 0.2, 6)
        still = ReferenceSample(oracle.sample(q, rng).flat_pose, np.zeros(6), np.zeros(6))
        made_ = oracle.acceleration(q, v, servo.torque(q, s, still))
        found.append(made_ - oracle.command(servo, q, v, still))
        poses.append(q)
        speeds.append(v)
    bound = momentum_disturbance(servo, poses, speeds)
    assert bound.sampled
    assert_close(bound.points, np.array(found), 1e-8)
    assert_close(bound.components, np.abs(found).max(axis=0), 1e-8)
    assert "at rest" in str(bound)
    assert not momentum_disturbance(
        replace(servo, use_measured_velocity=True), poses, speeds
    ).components.any()
    with pytest.raises(ReductionError):
        momentum_disturbance(case_study(), Q0, np.zeros(8))


def test_wrong_input_is_refused():
    servo = case_study()
    with pytest.raises(OutputError, match="negative"):
        torque_disturbance(servo, Q0, -0.1)
    with pytest.raises(NonFiniteError):
        torque_disturbance(servo, Q0, np.nan)
    with pytest.raises(ShapeError):
        torque_disturbance(servo, Q0, np.ones(4))
    with pytest.raises(ShapeError):
        torque_disturbance(servo, Q0[:7], 0.1)
    with pytest.raises(NonFiniteError):
        torque_disturbance(servo, Q0 * np.nan, 0.1)
    with pytest.raises(OutputError, match="method"):
        torque_disturbance(servo, Q0, 0.1, method="columns")
    with pytest.raises(OutputError, match="rows"):
        torque_disturbance(servo, np.tile(Q0, (4097, 1)), 0.1)
    robot = servo.model.robot
    with pytest.raises(ShapeError):
        model_disturbance(servo, robot, [Q0, Q0], [S0])
    with pytest.raises(ShapeError):
        model_disturbance(servo, robot, Q0, S0, np.ones(4))
    base = Output("base", "chassis", "R2", point=(N.l0, 0.0, 0.0))
    redundant = Servo(servo.model, [base], 4.0, 4.0)
    with pytest.raises(OutputError, match="as many controls"):
        model_disturbance(redundant, robot, Q0, S0)
