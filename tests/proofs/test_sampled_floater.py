"""Worlds of floaters inside a statement, and counterexamples; `simulate` agrees."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import casadi as ca
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import concur as cc
from concur.certify import Status
from concur.errors import OutputError
from concur.proofs import prove_task
from concur.proofs._attack import Attack
from concur.proofs._bases import FreePose, base_of
from concur.proofs._sampled import BEYOND, counterexample, sample_statement
from concur.simulation import Integrator
from tests.proofs._flier import NEAR, flier
from tests.proofs._restated import restated

T, H = 0.05, 1e-3
HELD = replace(NEAR, push=(), period=H)


def task(statement, duration: float = T) -> SimpleNamespace:
    return restated(flier(), statement, duration)


def at(found, kind: str, name: str) -> int:
    return [(q.kind, q.name) for q in found.quantities].index((kind, name))


def eta(q: np.ndarray, centre: np.ndarray) -> np.ndarray:
    """Deviation of a base's pose, by SciPy."""
    turn = Rotation.from_quat(centre[3:7])
    apart = (turn.inv() * Rotation.from_quat(q[3:7])).as_quat(canonical=True)
    return np.concatenate([turn.inv().apply(q[:3] - centre[:3]), 2 * apart[:3]])


def test_the_pose_of_a_base_moves_by_its_deviation_and_either_quaternion_is_the_same() -> None:
    rng, base = np.random.default_rng(0), base_of(flier().servo)
    assert (base.name, base.size) == ("base pose", 6)
    q, moved = ca.SX.sym("q", 13), ca.SX.sym("c", 7)
    distance = ca.Function("distance", [q, moved], [base.distance(q, moved)])
    for size in (1e-4, 0.3):
        way = rng.normal(size=(1, 6)) * size
        near = np.concatenate([rng.normal(size=3), Rotation.random(random_state=1).as_quat()])
        found = FreePose().moved(np.concatenate([near, np.zeros(6)]), way)[0]
        assert np.abs(eta(found, near) - way[0]).max() < 1e-12
        for sign in (1.0, -1.0):
            whole = np.concatenate([found[:3], sign * found[3:], np.zeros(6)])
            assert float(distance(whole, near)) == pytest.approx(np.linalg.norm(way), rel=1e-9)


@pytest.mark.extended
def test_worlds_of_other_robots_are_rejected() -> None:
    robot = cc.robots.free_flyer()
    fixed = SimpleNamespace(model=SimpleNamespace(robot=robot, takes_momentum=False), name="one")
    with pytest.raises(OutputError, match="constant momentum"):
        base_of(fixed)


@pytest.fixture(scope="module")
def attack() -> Attack:
    return Attack(task(HELD))


@pytest.mark.extended
def test_a_world_starts_inside_and_moves_as_the_simulated_robot(attack) -> None:
    own = task(HELD)
    point = attack.balls.draw(np.random.default_rng(3), 1)
    given = attack.balls.inside(point)
    sample = own.reference(0.0)
    x0, ve0 = own.servo.errors(own.q0, own.s0, sample.flat_pose, sample.twist)
    numbers = attack.program.numbers()
    x, ve = x0 + given["x"], ve0 + given["ve"]
    states = attack.starts(x, ve, given["base"], numbers)
    q, v = (attack.program.state(states, name)[0] for name in ("q", "v"))
    found = own.servo.errors(q, v[6:], sample.flat_pose, sample.twist)
    assert np.abs(found[0] - x).max() < 1e-10
    assert np.abs(found[1] - ve).max() < 1e-10
    assert np.abs(eta(q, own.q0) - given["base"][0]).max() < 1e-12
    step = Integrator(dt=H, control_period=H)
    start = (T, q, v[6:])
    run = cc.simulate(own.servo.model.robot, own.servo, own.reference, *start, dt=step)
    smooth = cc.simulate(
        *(own.servo.model.robot, own.servo, own.reference, T, own.q0, own.s0),
        dt=Integrator("rkmk4", dt=H),
    )
    runs = attack(point, 1)[2][0]
    joint = own.servo.model.control_names.index("forearm")
    rows = {
        ("torque", "forearm"): np.abs(run.u[:50, joint]),
        ("speed", "forearm"): np.abs(run.v[:50, 6 + joint]),
        ("angle above", "forearm"): run.q[:50, 7 + joint],
        ("margin", "decoupling"): [own.servo.margin(q) for q in run.q[:50]],
    }
    ends = [own.servo.output(q) for q in run.q[:50]]
    aims = [own.reference(t).flat_pose for t in run.t[:50]]
    apart = [np.linalg.norm(a[:3] - b[:3]) for a, b in zip(ends, aims, strict=True)]
    rows["corridor", "hand"] = apart
    pairs = list(zip(run.q[:50], smooth.q[:50], strict=True))
    rows["tube base pose", "base"] = [np.linalg.norm(eta(*pair)) for pair in pairs]
    both = []
    for moved in (run, smooth):
        for t, q, v in zip(moved.t[:50], moved.q, moved.v, strict=False):
            sample = own.reference(t)
            both.append(own.servo.errors(q, v[6:], sample.flat_pose, sample.twist))
    for i, kind in enumerate(("tube x", "tube ve")):
        parts = np.array([pair[i] for pair in both]).reshape(2, 50, 6)
        rows[kind, "hand"] = np.linalg.norm(parts[0] - parts[1], axis=1)
    for (kind, name), expected in rows.items():
        apart = np.abs(runs[at(attack, kind, name)] - expected).max()
        assert apart < (1e-6 if kind == "margin" else 1e-9), kind


@pytest.mark.extended
def test_points_stay_inside_the_statement(attack) -> None:
    points = attack.balls.draw(np.random.default_rng(0), 400)
    for factor in (1.0, 7.0):
        worlds = attack.balls.inside(factor * points)
        for name, radius in (("x", HELD.place[0]), ("ve", HELD.speed[0]), ("base", HELD.heading)):
            far = np.linalg.norm(worlds[name], axis=1)
            assert worlds[name].shape == (400, 6)
            assert far.max() == pytest.approx(radius, rel=1e-12)
            assert (far > 0.999 * radius).mean() > 0.4


@pytest.mark.slow
def test_no_world_is_outside_and_bounds_that_are_too_small_are_found() -> None:
    own = task(HELD)
    proof = prove_task(own)
    assert proof.status is Status.UNVERIFIED
    found = sample_statement(own, 200, proof=proof, keep=3)
    assert found.outside(proof) == found.refuted(proof) == ()
    assert 0.8 < found.excess <= 1.0
    assert (found.worlds, found.stopped) == (200, 0)
    rows = {(row.quantity.kind, row.quantity.name): row for row in found.against(proof)}
    assert {(b.kind, b.name) for b in proof.bounds} <= set(rows)
    for row in rows.values():
        if not np.isnan(row.ratio) and not row.quantity.kind.startswith("tube"):
            assert 1.0 <= row.ratio < 1.5, row
    for bound in proof.bounds:
        middle = 0.0
        if "angle" in bound.kind:
            middle = own.q0[7 + own.servo.model.shape_names.index(bound.name)]
        factor = 0.1 if "angle" in bound.kind else (0.6 if bound.sign > 0 else 1.01)
        wrong = replace(bound, profile=middle + factor * (bound.profile - middle))
        some = tuple(wrong if b is bound else b for b in proof.bounds)
        sentences = found.outside(replace(proof, bounds=some))
        assert len(sentences) == 1, bound
        assert f"{bound.kind} {bound.name}" in sentences[0]
    for name, factor in (("x", 0.7), ("ve", 0.35), ("wall", 0.7)):
        small = replace(proof, **{name: factor * getattr(proof, name)})
        assert len(found.outside(small)) == 1
        assert "tube" in found.outside(small)[0]
        assert sample_statement(own, 64, proof=small, keep=0).excess > 1.0


@pytest.fixture(scope="module")
def worst():
    """Worst value of a quantity of each kind, by `simulate` with torques held for 1 ms."""
    own = task(HELD)
    robot, step = own.servo.model.robot, Integrator(dt=H, control_period=H)
    run = cc.simulate(robot, own.servo, own.reference, T, own.q0, own.s0, dt=step)
    joint = own.servo.model.shape_names.index("forearm")
    ends = [own.servo.output(q)[:3] for q in run.q[:-1]]
    aims = [own.reference(t).flat_pose[:3] for t in run.t[:-1]]
    return {
        "torque": np.abs(run.u[:-1, joint]).max(),
        "speed": np.abs(run.v[:-1, 6 + joint]).max(),
        "angle above": run.q[:-1, 7 + joint].min(),
        "angle below": run.q[:-1, 7 + joint].max(),
        "margin": min(own.servo.margin(q) for q in run.q[:-1]),
        "corridor": np.linalg.norm(np.array(ends) - aims, axis=1).max(),
    }


def limited(kind: str, value: float):
    """Statement with one limit at a value."""
    return {
        "torque": replace(HELD, torques={"forearm": value}),
        "speed": replace(HELD, speeds={"forearm": value}),
        "angle above": replace(HELD, angles={"forearm": (value, np.inf)}),
        "angle below": replace(HELD, angles={"forearm": (-np.inf, value)}),
        "margin": replace(HELD, margin=value),
        "corridor": replace(HELD, corridor={"hand": value}),
    }[kind]


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind", ["torque", "speed", "angle above", "angle below", "margin", "corridor"]
)
def test_a_broken_limit_of_each_kind_refutes_and_a_kept_one_does_not(kind, worst) -> None:
    outward = -1.0 if kind in ("angle above", "margin") else 1.0
    room = 100 * BEYOND * abs(worst[kind])
    assert counterexample(task(limited(kind, float(worst[kind] + outward * room)))) == ""
    found = prove_task(task(limited(kind, float(worst[kind] - outward * room))))
    assert found.status is Status.REFUTED
    assert found.sentence.startswith("REFUTED: without any imperfection but held torques, ")
    assert f"{kind} {'decoupling' if kind == 'margin' else ''}".strip() in found.reason
    assert (found.bounds, found.cells) == ((), 0)
