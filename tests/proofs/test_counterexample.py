"""Statements that the declared motion breaks are REFUTED; simulations of the robot agree."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import concur as cc
from concur.certify import Status
from concur.proofs import prove_task
from concur.proofs._sampled import BEYOND, counterexample
from concur.simulation import Integrator
from tests.proofs._rover import NEAR, rover

T = 0.2
KINDS = ["torque", "speed", "angle above", "angle below", "margin", "corridor"]


def task(statement, duration=T):
    names = ("path", "servo", "reference", "q0", "s0")
    given = {name: getattr(rover(), name) for name in names}
    return SimpleNamespace(**given, duration=duration, statement=statement)


@pytest.fixture(scope="module")
def worst():
    """Worst value of a quantity of each kind, by `simulate` with torques held for 1 ms."""
    own = rover()
    integrator = Integrator(dt=0.001, control_period=0.001)
    run = cc.simulate(own.robot, own.servo, own.reference, T, own.q0, own.s0, dt=integrator)
    # Law and quantities are evaluated at the beginnings of the periods.
    joint = own.servo.model.shape_names.index("upper_arm")
    angle = run.q[:-1, 3 + joint]
    return {
        "torque": np.abs(run.u[:-1, joint]).max(),
        "speed": np.abs(run.s[:-1, joint]).max(),
        "angle above": angle.min(),
        "angle below": angle.max(),
        "margin": min(own.servo.margin(q) for q in run.q[:-1]),
        "corridor": np.linalg.norm(run.error[:-1, 2:5], axis=1).max(),
    }


def limited(kind, value):
    """Statement with one limit at a value."""
    return {
        "torque": replace(NEAR, torques={"upper_arm": value}),
        "speed": replace(NEAR, speeds={"upper_arm": value}),
        "angle above": replace(NEAR, angles={"upper_arm": (value, np.inf)}),
        "angle below": replace(NEAR, angles={"upper_arm": (-np.inf, value)}),
        "margin": replace(NEAR, margin=value),
        "corridor": replace(NEAR, corridor={"hand": value}),
    }[kind]


@pytest.mark.by_default(2)
@pytest.mark.parametrize("kind", KINDS)
def test_a_broken_limit_of_each_kind_is_found_and_a_kept_one_is_not(kind, worst) -> None:
    outward = -1.0 if kind in ("angle above", "margin") else 1.0
    room = 100 * BEYOND * abs(worst[kind])
    assert counterexample(task(limited(kind, float(worst[kind] + outward * room)))) == ""
    found = counterexample(task(limited(kind, float(worst[kind] - outward * room))))
    assert f"{kind} {'decoupling' if kind == 'margin' else ''}".strip() in found
    assert " s, limit " in found


@pytest.mark.extended
def test_the_first_time_beyond_the_limit_is_told(worst) -> None:
    assert counterexample(task(NEAR)) == ""
    held = rover().q0[3 + 3]
    beyond = "angle below" if worst["angle below"] > held + 1e-3 else "angle above"
    limit = (held + worst[beyond]) / 2
    told = counterexample(task(limited(beyond, float(limit))))
    time = float(told.split(" at ")[1].split(" s")[0])
    value = float(told.split(" is ")[1].split(" rad")[0])
    assert 0.0 < time < T
    assert value == pytest.approx(limit, abs=1e-3)


def test_the_verdict_is_refuted_before_any_segment() -> None:
    found = prove_task(task(replace(NEAR, torques={"upper_arm": 4.0})))
    assert found.status is Status.REFUTED
    assert found.sentence.startswith("REFUTED: without any imperfection but held torques, torque")
    assert (found.bounds, found.cells) == ((), 0)


@pytest.mark.extended
def test_motions_that_are_not_simulated_are_no_counterexample() -> None:
    wrong = replace(NEAR, torques={"upper_arm": 4.0})
    assert counterexample(task(wrong))
    assert counterexample(task(replace(wrong, period=0.0))) == ""
    assert counterexample(task(wrong, duration=0.5005)) == ""
    assert counterexample(task(None)) == ""
