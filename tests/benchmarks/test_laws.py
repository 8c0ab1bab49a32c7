"""On the rover ours and the peers compute the same: only then is a ratio worth reading."""

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest

import concur as cc
from tests.benchmarks._job import lift, rolling, start
from tests.benchmarks._mujoco import MujocoLaw
from tests.benchmarks._pinocchio import PinocchioLaw, PinocchioLoop
from tests.benchmarks._rover_comparisons import drawn, peer_law
from tests.oracles import assert_close

PEERS = [PinocchioLaw, MujocoLaw]


def test_states_are_far_from_singular_and_differ():
    _, servo, states = drawn()
    assert min(servo.margin(m.q) for m in states) > 100 * servo.singular_margin
    torques = np.array([servo.torque(m.q, m.s, m.sample) for m in states])
    assert torques.std(axis=0).min() > 0.1


def test_hand_written_lift_is_ours_and_obeys_the_hand_written_wheels():
    job, servo, states = drawn()
    for moment in states[:5]:
        assert_close(servo.model.lift(moment.q)[0], lift(job.robot), 1e-14)
    assert np.abs(rolling(job.robot) @ lift(job.robot)).max() < 1e-15


@pytest.mark.parametrize("kind", PEERS)
def test_tick_equals_the_law_over_a_peer(kind):
    _, servo, states = drawn()
    tick, law = servo.compile(), peer_law(kind)
    for moment in states:
        ours = tick(moment.q, moment.s, moment.sample)
        theirs = law(moment.q, moment.s, moment.sample)
        np.testing.assert_allclose(ours, theirs, rtol=0.0, atol=1e-9)


@pytest.mark.parametrize("kind", PEERS)
def test_equality_would_see_a_gram_of_dust(kind):
    job, servo, states = drawn()
    *others, hand = job.robot.bodies
    heavier = replace(hand, inertia=replace(hand.inertia, mass=hand.inertia.mass + 1e-3))
    dusty = cc.Mechanism(
        "dusty", [*others, heavier], wheels=job.robot.wheels, gravity=job.robot.gravity
    )
    law = kind(dusty, job.outputs, job.stiffness, job.damping)
    first = states[0]
    difference = law(first.q, first.s, first.sample) - servo.torque(first.q, first.s, first.sample)
    assert np.abs(difference).max() > 1e-4


def test_update_leaves_the_same_torque_in_the_buffers():
    _, servo, states = drawn()
    tick, filled = servo.compile(), servo.compile()
    for moment in states:
        buffers, sample = filled.buffers, moment.sample
        buffers.q[:], buffers.s[:] = moment.q, moment.s
        buffers.pose[:], buffers.twist[:] = sample.pose, sample.twist
        buffers.acceleration[:] = sample.acceleration
        assert filled.run() == 0
        np.testing.assert_array_equal(buffers.u, tick(moment.q, moment.s, sample))


def test_plant_equals_the_plant_over_pinocchio():
    """Under any torque and off the constraints: under the law's own, all inertias cancel."""
    job, _, states = drawn()
    law = PinocchioLaw(job.robot, job.outputs, job.stiffness, job.damping)
    loop, plant = PinocchioLoop(law, job.robot), cc.Plant(job.robot)
    rng = np.random.default_rng(1)
    for moment in states:
        own = law.configuration(moment.q)
        v, u = rng.uniform(-2.0, 2.0, 8), rng.uniform(-20.0, 20.0, 5)
        mass = pin.crba(law.model, law.data, own)
        bias = pin.nonLinearEffects(law.model, law.data, own, v)
        assert_close(loop.plant(mass, bias, v, u), plant.acceleration(moment.q, v, u)[0], 1e-11)


@pytest.mark.extended
def test_closed_loop_equals_the_loop_over_pinocchio():
    job, servo, _ = drawn()
    q0, s0 = start(job)
    law = PinocchioLaw(job.robot, job.outputs, job.stiffness, job.damping)
    qs, vs = PinocchioLoop(law, job.robot)(job.reference, 0.5, q0, s0)
    run = cc.simulate(job.robot, servo, job.reference, 0.5, q0, s0)
    assert np.abs(run.q[-1] - q0).max() > 0.05
    assert_close(qs, run.q, 1e-11)
    assert_close(vs, run.v, 1e-11)
