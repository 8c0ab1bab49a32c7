"""On the free-flyer too, ours and the peers compute the same thing."""

from dataclasses import replace

import numpy as np
import pytest

import concur as cc
from tests.benchmarks._contender import filled, looped
from tests.benchmarks._floating_comparisons import (
    OPTIONS,
    floating,
    headers,
    limited,
    redundant,
    without_zeros,
)
from tests.benchmarks._floating_job import START, TORQUE_LIMIT, floating_reference
from tests.benchmarks._floating_mujoco import (
    SERIES,
    MujocoFloatingLaw,
    MujocoFloatingLoop,
    _coefficients,
)
from tests.benchmarks._floating_pinocchio import (
    PinocchioFloatingFunctions,
    PinocchioFloatingLaw,
    PinocchioFloatingLoop,
)
from tests.oracles import assert_close

PEERS = [PinocchioFloatingLaw, MujocoFloatingLaw]


@pytest.mark.extended
def test_states_are_far_from_singular_and_differ():
    for servo, states in (floating()[1:], without_zeros()[1:], redundant()):
        assert min(servo.margin(m.q) for m in states) > 100 * servo.singular_margin
        torques = np.array([servo.torque(m.q, m.s, m.sample) for m in states])
        assert (torques.std(axis=0) > 0.1 * np.abs(torques).mean(axis=0)).all()


def test_momentum_and_errors_are_not_small():
    _, servo, states = floating()
    spins = [np.linalg.norm(servo.model.locked_velocity(m.q)[3:]) for m in states]
    assert np.median(spins) > 0.1
    away = np.array([servo.pose_error(m.q, m.sample.pose) for m in states])
    assert np.abs(away).max(axis=0).min() > 0.1
    assert np.linalg.norm(away[:, 3:], axis=1).max() > 2 * SERIES


@pytest.mark.by_default(2)
@pytest.mark.parametrize("kind", PEERS)
@pytest.mark.parametrize("made", [floating, without_zeros])
def test_tick_equals_the_law_over_a_peer(made, kind):
    job, servo, states = made()
    tick, law = servo.compile(), kind(job)
    for moment in states:
        ours = tick(moment.q, moment.s, moment.sample)
        theirs = law(moment.q, moment.s, moment.sample)
        np.testing.assert_allclose(ours, theirs, rtol=0.0, atol=1e-9)


@pytest.mark.parametrize("kind", PEERS)
def test_laws_are_equal_next_to_the_reference(kind):
    job, servo, states = floating()
    tick, law = servo.compile(), kind(job)
    for moment, size in zip(states, 10.0 ** np.linspace(-12.0, -0.5, len(states)), strict=True):
        pose = moment.sample.pose.copy()
        pose[:] = servo.output(moment.q) + size * (pose - servo.output(moment.q))
        pose[3:] /= np.linalg.norm(pose[3:])
        sample = cc.ReferenceSample(pose, moment.sample.twist, moment.sample.acceleration)
        ours = tick(moment.q, moment.s, sample)
        np.testing.assert_allclose(ours, law(moment.q, moment.s, sample), rtol=0.0, atol=1e-9)


@pytest.mark.parametrize("kind", PEERS)
@pytest.mark.parametrize("change", ["a gram of dust", "momentum"])
def test_equality_would_see(kind, change):
    job, servo, states = floating()
    if change == "momentum":
        other = replace(job, momentum=job.momentum + 1e-3 * np.eye(6)[5])
    else:
        bodies = [
            replace(body, inertia=replace(body.inertia, mass=body.inertia.mass + 1e-3))
            if body.name == "hand"
            else body
            for body in job.robot.bodies
        ]
        other = replace(job, robot=cc.Mechanism("dusty", bodies, gravity=job.robot.gravity))
    law, first = kind(other), states[0]
    difference = law(first.q, first.s, first.sample) - servo.torque(first.q, first.s, first.sample)
    assert np.abs(difference).max() > 1e-5


def test_about_half_of_the_states_reach_the_torque_limits():
    servo, states = limited(TORQUE_LIMIT)
    tick, scales = servo.compile(), []
    for moment in states:
        u = tick(moment.q, moment.s, moment.sample)
        assert np.abs(u).max() <= TORQUE_LIMIT * (1 + 1e-9)
        scales.append(float(tick.buffers.scale[0]))
    assert 0.3 < np.mean(np.array(scales) < 1.0) < 0.7


@pytest.mark.by_default(2)
@pytest.mark.parametrize("option", OPTIONS)
def test_what_is_timed_of_an_option_is_its_torque(option):
    servo, states = OPTIONS[option]()
    last = states[-1]
    expected = servo.torque(last.q, last.s, last.sample)
    assert_close(filled(servo, states)(), expected, 1e-9)


def test_far_limits_change_nothing():
    servo, states = limited(100 * TORQUE_LIMIT)
    free, tick = floating()[1].compile(), servo.compile()
    for moment in states:
        ours = tick(moment.q, moment.s, moment.sample)
        assert_close(ours, free(moment.q, moment.s, moment.sample), 1e-9)


@pytest.mark.extended
def test_closed_loops_are_the_same():
    job, servo, _ = floating()
    reference, still = floating_reference(job), np.zeros(6)
    run = cc.simulate(job.robot, servo, reference, 0.5, START, still)
    assert np.abs(run.q[-1] - START).max() > 0.05
    assert np.abs(run.v[-1, 3:6]).max() > 0.1
    qs, vs = PinocchioFloatingLoop(PinocchioFloatingLaw(job))(reference, 0.5, START, still)
    assert_close(qs, run.q, 1e-11)
    assert_close(vs, run.v, 1e-11)
    qs = MujocoFloatingLoop(MujocoFloatingLaw(job))(reference, 0.5, START, still)
    assert_close(qs, run.q, 1e-9)


def test_lift_equals_the_lift_over_pinocchio():
    job, servo, states = floating()
    theirs = PinocchioFloatingFunctions(PinocchioFloatingLaw(job))
    for moment in states:
        for ours, own in zip(servo.model.lift(moment.q), theirs.lift(moment.q), strict=True):
            assert_close(ours, own, 1e-12)


@pytest.mark.extended
def test_in_c_the_law_leaves_the_torques_of_the_tick(compiler):
    for servo, states in (floating()[1:], without_zeros()[1:]):
        last = states[-1]
        u = servo.compile()(last.q, last.s, last.sample)
        assert_close(looped(servo, states)(), u, 1e-13)  # compiled apart: other roundings


@pytest.mark.slow  # compiles Pinocchio's headers, for a minute where no other test has
@pytest.mark.parametrize("made", [floating, without_zeros])
def test_law_in_cpp_equals_ours(made, compiler):
    _, servo, states = made()
    for count in range(1, len(states) + 1):
        last = states[count - 1]
        theirs = headers(lambda count=count: (made()[0], servo, made()[2][:count]))()
        ours = servo.torque(last.q, last.s, last.sample)
        np.testing.assert_allclose(theirs, ours, rtol=0.0, atol=1e-9)


def test_coefficients_join_where_the_series_ends():
    below, above = _coefficients(SERIES * (1 - 1e-12)), _coefficients(SERIES * (1 + 1e-12))
    np.testing.assert_allclose(below, above, rtol=1e-9)
