"""Worlds inside a statement: what is drawn, what moves, and that wrong bounds are found."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.linalg import expm

import concur as cc
from concur.certify import Status
from concur.errors import OutputError
from concur.proofs._attack import Attack
from concur.proofs._bound import Bound
from concur.proofs._proof import TaskProof
from concur.proofs._prove import prove
from concur.proofs._sampled import Sampled, sample_statement
from concur.proofs._statement import Statement
from concur.proofs._within import scaled_masses
from concur.simulation import Integrator
from tests.proofs._rover import NEAR, rover

T = 0.05


def stated(statement: Statement | None, duration: float = T) -> SimpleNamespace:
    task = rover()
    names = ("path", "servo", "reference", "q0", "s0", "robot")
    given = {name: getattr(task, name) for name in names}
    return SimpleNamespace(**given, duration=duration, statement=statement)


def thin(**changes: Any) -> SimpleNamespace:
    return stated(replace(NEAR, torques={"turret": 20.0}, margin=0.1, **changes))


def proved(task: SimpleNamespace, edge: float = 0.0125) -> TaskProof:
    start = task.q0, task.s0
    return prove(task.servo, task.reference, task.duration, *start, task.statement, edge)


@pytest.fixture(scope="module")
def proof():
    return proved(thin(), 0.015)


@pytest.fixture(scope="module")
def attack(proof):
    return Attack(thin(), proof)


@pytest.fixture(scope="module")
def sampled(proof) -> Sampled:
    return sample_statement(thin(), 50, proof=proof, keep=3)


def at(found, kind: str, name: str) -> int:
    return [(q.kind, q.name) for q in found.quantities].index((kind, name))


def test_all_worlds_are_inside(proof, sampled) -> None:
    assert proof.status is Status.UNVERIFIED
    assert sampled.outside(proof) == ()
    assert sampled.refuted(proof) == ()
    # The attack comes near: else it would not find a wrong bound.
    assert 0.99 < sampled.excess <= 1.0
    assert (sampled.worlds, sampled.stopped) == (50, 0)
    assert sampled.runs.shape == (3, len(sampled.quantities), 50)
    rows = {(r.quantity.kind, r.quantity.name): r for r in sampled.against(proof)}
    assert {(b.kind, b.name) for b in proof.bounds} <= set(rows)
    for row in rows.values():
        if row.quantity.kind in ("torque", "margin", "corridor"):
            assert 1.0 <= row.ratio < 1.2, row


def test_bounds_that_are_too_small_are_found(proof, sampled, attack, monkeypatch) -> None:
    def wrong(bound: Bound, factor: float) -> Bound:
        start = {"turret": -0.1, "upper_arm": 1.0, "forearm": -1.6}
        middle = start[bound.name] if "angle" in bound.kind else 0.0
        return replace(bound, profile=middle + factor * (bound.profile - middle))

    for bound in proof.bounds:
        # Cells of 15 mm are wide for this thin tube: bounds of angles are too.
        factor = 0.05 if "angle" in bound.kind else (0.6 if bound.sign > 0 else 1.01)
        own = tuple(wrong(b, factor) if b is bound else b for b in proof.bounds)
        found = sampled.outside(replace(proof, bounds=own))
        assert len(found) == 1, bound
        assert f"{bound.kind} {bound.name}" in found[0]
    points = attack.balls.draw(np.random.default_rng(5), 64)
    assert attack(points)[1].max() <= 1.0
    for k, factor in enumerate((0.99, 0.96, 0.9, 0.75, 0.95)):
        rows = attack._rows.copy()
        rows[:, k - 5] *= factor
        with monkeypatch.context() as patch:
            patch.setattr(attack, "_rows", rows)
            assert attack(points)[1].max() > 1.0, k
    halves = ("tube x", "tube ve", "tube heading")
    small = replace(proof, x=0.5 * proof.x, ve=0.5 * proof.ve, wall=0.5 * proof.wall)
    found = sampled.outside(small)
    assert len(found) == 5
    assert all(text.startswith(halves) for text in found)


def test_verdicts_change_at_the_bound_and_at_the_limit(proof, sampled) -> None:
    k = at(sampled, "torque", "turret")
    bound = next(b for b in proof.bounds if (b.kind, b.name) == ("torque", "turret"))
    for value, broken in ((bound.value, False), (bound.value * (1 + 1e-12), True)):
        worst = sampled.worst.copy()
        worst[k] = value
        assert bool(replace(sampled, worst=worst).outside(proof)) is broken
        # A search counts like a sample.
        ascended = sampled.ascended.copy()
        ascended[k] = value
        assert bool(replace(sampled, ascended=ascended).outside(proof)) is broken
        limited = replace(
            proof, statement=replace(proof.statement, torques={"turret": bound.value})
        )
        assert bool(replace(sampled, worst=worst).refuted(limited)) is broken
    assert replace(sampled, stopped=1).outside(proof)
    assert replace(sampled, excess=1.0).outside(proof) == ()
    assert replace(sampled, excess=1.0 + 1e-12).outside(proof)
    margin = next(b for b in proof.bounds if b.kind == "margin")
    high = replace(proof, statement=replace(proof.statement, margin=margin.value * 1.02))
    assert "margin" in sampled.refuted(high)[0]
    nothing = replace(proof, bounds=())
    assert replace(sampled, excess=2.0).outside(nothing) == ()


def test_a_world_moves_as_a_robot_of_its_own(attack) -> None:
    task = thin()
    point = attack.balls.draw(np.random.default_rng(3), 1)
    given = attack.balls.inside(point)
    sample = task.reference(0.0)
    x0, ve0 = task.servo.errors(task.q0, task.s0, sample.flat_pose, sample.twist)
    numbers = attack.program.numbers(scaled_masses(attack.plant, given["masses"]))
    states = attack.starts(x0 + given["x"], ve0 + given["ve"], given["base"], numbers)
    q, s = (attack.program.state(states, name) for name in ("q", "v"))
    s = s[:, 3:]
    x, ve = task.servo.errors(q[0], s[0], sample.flat_pose, sample.twist)
    assert np.abs(x - x0 - given["x"][0]).max() < 1e-10
    assert np.abs(ve - ve0 - given["ve"][0]).max() < 1e-10
    assert q[0, 2] == pytest.approx(task.q0[2] + given["base"][0, 0], abs=1e-12)
    bodies = [
        replace(
            body,
            inertia=replace(
                body.inertia,
                mass=body.inertia.mass * (1 + share),
                moments=tuple(np.array(body.inertia.moments) * (1 + share)),
            ),
        )
        for body, share in zip(task.robot.bodies, given["masses"][0].tolist(), strict=True)
    ]
    other = replace(task.robot, bodies=bodies)
    step = Integrator(dt=0.001, control_period=0.001)
    run = cc.simulate(task.robot, task.servo, task.reference, T, q[0], s[0], plant=other, dt=step)
    own = attack(point, 1)[2][0]
    model = task.servo.model
    for k, name in enumerate(model.control_names):
        expected = np.abs(run.u[:50, k])
        assert np.abs(own[at(attack, "torque", name)] - expected).max() < 1e-9
    assert np.abs(own[at(attack, "angle below", "forearm")] - run.q[:50, 7]).max() < 1e-9
    for name, rows in (("base", slice(0, 2)), ("hand", slice(2, 5))):
        far = np.linalg.norm(run.error[:50, rows], axis=1)
        assert np.abs(own[at(attack, "corridor", name)] - far).max() < 1e-9
    margins = [task.servo.margin(q) for q in run.q[:50:10]]
    assert np.abs(own[at(attack, "margin", "decoupling")][::10] - margins).max() < 1e-6
    speeds = np.abs(run.v[:50, 3:])
    for k, name in enumerate(model.shape_names):
        assert np.abs(own[at(attack, "speed", name)] - speeds[:, k]).max() < 1e-9


def test_points_stay_inside_the_statement(attack) -> None:
    given = attack.statement
    points = attack.balls.draw(np.random.default_rng(0), 400)
    for factor in (1.0, 7.0):
        worlds = attack.balls.inside(factor * points)
        parts = [(slice(0, 2), 0), (slice(2, 5), 1)]
        for name, radii in (("x", given.place), ("ve", given.speed)):
            for span, k in parts:
                far = np.linalg.norm(worlds[name][:, span], axis=1)
                assert far.max() == pytest.approx(radii[k], rel=1e-12)
                assert (far > 0.999 * radii[k]).mean() > 0.4
        assert np.abs(worlds["masses"]).max() == pytest.approx(0.005)
        assert np.abs(worlds["base"]).max() == pytest.approx(0.002)
        assert np.abs(worlds["torque"]).max() == 0.0


@pytest.mark.extended
def test_a_push_adds_to_the_acceleration_of_its_output() -> None:
    still = {"place": (0.0, 0.0), "speed": (0.0, 0.0)}
    h, n = 1e-4, 500
    task = thin(**still, heading=0.0, masses=0.0, push=(0.0, 0.3), period=h)
    attack = Attack(task)
    point = np.zeros((2, attack.balls.size))
    point[:, -2], point[:, -1] = 1.0, [1.0, 0.5]  # along z; the sign changes never, and half-way
    runs = attack(point, 1)[2]
    matrix = np.array([[0.0, -1.0, 0.0], [9.0, -6.0, 1.0], [0.0, 0.0, 0.0]])
    for world, flip in enumerate((1.0, 0.5)):
        # The errors' linear equation under a constant acceleration, exact.
        z, found = np.array([0.0, 0.0, 0.3]), []
        for k in range(n):
            found.append(z[:2].copy())
            z[2] = 0.3 if k < n * flip else -0.3
            z = expm(matrix * h) @ z
        expected = np.abs(np.array(found))
        # The law holds its torque for 0.1 ms.
        x, ve = (runs[world, at(attack, f"tube {part}", "hand")] for part in ("x", "ve"))
        assert np.abs(x - expected[:, 0]).max() < 0.01 * expected[:, 0].max()
        assert np.abs(ve - expected[:, 1]).max() < 0.01 * expected[:, 1].max()
        assert runs[world, at(attack, "tube x", "base")].max() < 0.02 * expected[:, 0].max()


@pytest.mark.extended
def test_torque_errors_reach_the_robot_but_not_the_command() -> None:
    attack = Attack(thin(torque_error=(0.0, 0.0, 0.4, 0.0, 0.0)))
    size = attack.balls.size
    calm, wrong = np.zeros((1, size)), np.zeros((1, size))
    wrong[0, [name for name, n, _ in attack.balls.parts for _ in range(n)].index("torque") + 2] = 1
    wrong[0, -1] = calm[0, -1] = 1.0
    runs = [attack(point, 1)[2][0] for point in (calm, wrong)]
    torque, speed = (at(attack, kind, "turret") for kind in ("torque", "speed"))
    assert runs[0][torque][0] == runs[1][torque][0]
    mass = rover().servo.model.mass_matrix(rover().q0)
    kick = np.linalg.solve(mass, [0.0, 0.0, 0.4, 0.0, 0.0])[2] * 1e-3
    apart = np.abs(runs[1][speed][1] - runs[0][speed][1])
    assert apart == pytest.approx(abs(kick), rel=0.02)


def test_statements_that_cannot_be_simulated_are_rejected() -> None:
    with pytest.raises(OutputError, match="`period` above zero"):
        Attack(thin(period=0.0))
    with pytest.raises(OutputError, match="whole number of periods"):
        Attack(thin(period=0.003))
    with pytest.raises(OutputError, match="got no table"):
        Attack(stated(None))
    with pytest.raises(OutputError, match="within reach"):
        Attack(thin(place=(0.0, 5.0)))(np.ones((1, 26)))
