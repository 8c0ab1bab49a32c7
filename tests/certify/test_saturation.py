"""Torques in tubes: the law's derivative against the law, the bound against samples."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from concur.certify._channels import split
from concur.certify._decay import Decay
from concur.certify._disturbance import Disturbance
from concur.certify._disturbances import torque_disturbance
from concur.certify._robust import tube, tubes
from concur.certify._saturation import _slopes, saturation
from concur.certify._status import Status
from concur.control import ReferenceSample
from concur.errors import OutputError, ShapeError
from tests.certify.test_robust import falling_form
from tests.control._cases import Q0, S0, case_study
from tests.control._floating_cases import build, states


def cases():
    rover = case_study()
    flyer, _ = build("hand of the free-flyer")
    q, s, _ = next(states(flyer, 1))
    return {"rover": (rover, Q0, S0), "flyer": (flyer, q, s)}


@pytest.mark.parametrize("name", ["rover", "flyer"])
def test_change_of_the_law_is_that_of_displaced_states(name):
    servo, q, s = cases()[name]
    rng = np.random.default_rng(0)
    robot, n = servo.model.robot, servo.size
    twist, _ = servo.output_motion(q, s)
    acceleration = rng.normal(size=n)
    sample = ReferenceSample(servo.output(q), twist, acceleration)
    u, spread, change = _slopes(servo)(q, s, acceleration)
    assert_allclose(u.ravel(), servo.torque(q, s, sample), rtol=1e-9, atol=1e-10)
    step = 1e-5
    for _ in range(3):
        along, faster = rng.normal(size=(2, servo.ns))
        moves = []
        for sign in (1.0, -1.0):
            qdot = robot.rate(q, servo.model.lift(q)[0] @ along)
            there = q + sign * step * qdot
            for start in servo.quaternions:
                there[start : start + 4] /= np.linalg.norm(there[start : start + 4])
            speed = s + sign * step * faster
            moves.append((servo.torque(there, speed, sample), *servo.error(there, speed, sample)))
        du, x, ve = ((a - b) / (2 * step) for a, b in zip(*moves, strict=True))
        dynamics = servo.error_dynamics
        feedback = np.linalg.solve(dynamics.inertia, dynamics.stiffness @ x - dynamics.damping @ ve)
        wanted = change @ np.concatenate([x, ve]) + spread @ feedback
        assert_allclose(du, wanted, rtol=1e-5, atol=1e-6 * np.abs(du).max())


def rover_tubes(bound=0.02):
    servo = case_study()
    decays = [
        Decay(p, falling_form(p, 0.7), 0.7 * p.true_rate) for p in split(servo.error_dynamics)
    ]
    disturbance = Disturbance(np.full(5, bound))
    return servo, decays, disturbance, tubes(decays, disturbance)


def test_what_errors_in_the_tubes_need_is_within_the_bound():
    servo, _, disturbance, found = rover_tubes()
    assert all(one.status is Status.PROVED for one in found)
    rng = np.random.default_rng(1)
    grid = [(Q0, S0, rng.normal(size=5)) for _ in range(2)]
    columns = [np.array(part) for part in zip(*grid, strict=True)]
    bound = saturation(servo, found, *columns, limits=50.0, disturbance=disturbance)
    assert bound.free
    assert bound.status is Status.UNDECIDED
    assert_allclose(bound.needed, bound.ahead + bound.feedback + bound.displaced)
    # The states have the same margins, so that limits on both sides leave the same room.
    assert_allclose(bound.room, 50.0 - bound.needed)
    most = np.zeros(5)
    for q, s, nu in grid:
        u, spread, change = _slopes(servo)(q, s, nu)
        for _ in range(2000):
            z = np.zeros(10)
            for one in found:
                index, n = one.channel.index, one.channel.size
                draw = rng.normal(size=2 * n)
                draw *= one.radius / one.norm(draw[:n], draw[n:])
                z[index], z[5 + index] = draw[:n], draw[n:]
            d = disturbance.components * rng.choice([-1.0, 1.0], 5)
            feedback = servo.stiffness @ z[:5] - servo.damping @ z[5:]
            most = np.maximum(most, np.abs(u.ravel() + spread @ (feedback + d) + change @ z))
    assert (most <= bound.needed).all()
    assert (most > 0.5 * bound.needed).any()


def test_limits_that_are_reached_are_said():
    servo, _, disturbance, found = rover_tubes()
    free = saturation(servo, found, Q0, S0, np.zeros(5), limits=50.0)
    tight = np.stack([-free.needed - 1.0, free.needed + 1.0], axis=1)
    tight[2] = (-0.9 * free.needed[2], 0.9 * free.needed[2])
    bound = saturation(servo, found, Q0, S0, np.zeros(5), limits=tight)
    assert not bound.free
    assert (bound.room < 0.0).tolist() == [False, False, True, False, False]
    assert bound.room[2] == pytest.approx(-0.1 * free.needed[2])
    assert "N m" in str(bound)
    assert "reached" in str(bound)
    wider = saturation(servo, found, Q0, S0, np.zeros(5), 50.0, disturbance)
    assert (wider.needed > free.needed).all()


def test_wrong_input_is_refused():
    servo, decays, _, found = rover_tubes()
    still = np.zeros(5)
    with pytest.raises(OutputError, match="limits"):
        saturation(servo, found, Q0, S0, still)
    with pytest.raises(ShapeError):
        saturation(servo, found[:1], Q0, S0, still, 50.0)
    with pytest.raises(ShapeError):
        saturation(servo, found, Q0, S0, np.zeros(4), 50.0)
    with pytest.raises(ShapeError):
        saturation(servo, found, Q0, S0, still, 50.0, Disturbance([1.0]))
    with pytest.raises(OutputError, match="measures"):
        saturation(servo.as_measured, found, Q0, S0, still, 50.0)
    growing = Disturbance(still + 0.1, feedback=10 * np.eye(5)[None])
    with pytest.raises(OutputError, match="finite radius"):
        saturation(servo, tubes(decays, growing), Q0, S0, still, 50.0)


def test_friction_of_the_rover_from_end_to_end():
    servo, decays, _, _ = rover_tubes()
    found = tubes(decays, torque_disturbance(servo, Q0, 0.01))
    assert all(one.status is Status.UNDECIDED for one in found)
    assert all("samples" in one.reason for one in found)
    alone = tube(decays[0], np.zeros(2))
    assert alone.radius == 0.0
    assert saturation(servo, found, Q0, S0, np.zeros(5), 100.0).free
