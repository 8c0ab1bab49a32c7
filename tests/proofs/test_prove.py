"""Proofs of a task: sampled motions stay inside, and false statements are never PROVED."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import concur as cc
from concur.certify import Status
from concur.errors import OutputError
from concur.outputs import references
from concur.proofs import _prove
from concur.proofs._motion import Motion
from concur.proofs._prove import prove
from concur.proofs._statement import Statement
from concur.robot import Pose
from concur.simulation import Integrator, Plant, RealPlant
from tests.proofs._rover import NEAR, prover, rover, states

T = 0.05


def attempt(statement: Statement = NEAR, **changes: object):
    task = rover()
    given = {"servo": task.servo, "reference": task.reference, "duration": T}
    given |= {"q0": task.q0, "s0": task.s0, "statement": statement, "edge": 0.015}
    return prove(**{**given, **changes})


@pytest.fixture(scope="module")
def proof():
    return attempt()


def test_the_task_is_proved_and_says_so(proof) -> None:
    assert proof.status is Status.UNVERIFIED, str(proof)
    assert "heading" in str(proof)
    assert {bound.kind for bound in proof.bounds} >= {"torque", "speed", "margin", "corridor"}


def test_disturbances_are_below_the_candidates_that_the_tube_is_for(proof) -> None:
    total = np.sum(list(proof.sources.values()), axis=0)
    assert proof.disturbance.shape == total.shape
    assert (1.01 * total < proof.disturbance).all()
    assert (proof.disturbance < 1.2 * total + 2e-9).all()


def test_corridors_contain_the_declared_motion_and_the_tube_at_all_times() -> None:
    task = rover()
    given = task.servo, task.reference, 0.2, task.q0, [-9.0, 9.0, 3.0, -3.0, 3.0]
    case, radius = _prove.Prover(*given), 0.003
    for k, channel in enumerate(case.robot.channels):
        found = _prove._corridor(case, k, np.full(case.count, radius))
        for i, (first, last) in enumerate(zip(case.first, case.last, strict=True)):
            times = np.linspace(first * case.step, last * case.step, 201)
            centre = np.einsum("jb,jd->db", channel.flow(times)[0], case.start[:, channel.rows])
            assert np.linalg.norm(centre, axis=0).max() + radius <= found[i]


def test_motions_of_wrong_robots_stay_inside(proof) -> None:
    task, case = rover(), prover(T)
    rng = np.random.default_rng(7)
    limits = {(b.kind, b.name): b.value for b in proof.bounds}
    names = task.servo.model.control_names
    plant = Plant(task.robot, uncertain=[f"{b.name}.inertia.mass" for b in task.robot.bodies])
    radii = np.array([0.002, 0.002]), np.array([0.004, 0.006])
    for world in range(3):
        q, s = states(case, rng, 0.0, *radii, 0.002)
        masses = {
            f"{b.name}.inertia.mass": 0.005 * rng.choice([-1, 1]) * b.inertia.mass
            for b in task.robot.bodies
        }
        run = cc.simulate(
            task.robot,
            task.servo,
            task.reference,
            T,
            q,
            s,
            plant=RealPlant(plant, world=masses),
            dt=Integrator(dt=0.001, control_period=0.001),
        )
        for i, name in enumerate(names):
            assert np.abs(run.u[:, i]).max() <= limits["torque", name], world
        assert np.abs(run.error[:, :2]).max() <= limits["corridor", "base"]
        theta = run.q[-1, 2] - case.heading.cubics[:, -1].sum()
        assert abs(theta) <= proof.wall[-1]


def test_limits_below_what_happens_are_never_proved(proof) -> None:
    torque = next(b for b in proof.bounds if b.kind == "torque")
    found = attempt(replace(NEAR, torques={torque.name: 0.5 * torque.value}))
    assert found.status is Status.UNDECIDED
    assert torque.name in found.reason
    for bound in proof.bounds:
        over = replace(bound, limit=bound.value + bound.sign * 1e-9)
        assert over.kept
        assert not replace(over, limit=bound.value - bound.sign * 1e-9).kept


def test_reversing_is_undecided_with_its_growth() -> None:
    task = rover()
    backwards = references.stack(
        references.polynomial([[0.0, 0.0], [-0.3, 0.0]]),
        references.polynomial([[0.15, 0.75, 0.15], [-0.3, 0.0, 0.0]]),
    )
    q0 = np.array(task.q0, dtype=float)
    q0[:3] = [-0.25, 0.0, 0.0]
    s0 = [-6.0, -6.0, 0.0, 0.0, 0.0]
    found = prove(task.servo, backwards, 6.0, q0, s0, replace(NEAR, heading=0.01), edge=0.02)
    assert found.status is Status.UNDECIDED
    assert found.growth == pytest.approx(np.exp(1.2 * 6.0), rel=0.3)
    assert "fold" in found.reason
    assert "behind the axle" in found.cure


def test_the_heading_cannot_be_forgotten() -> None:
    with pytest.raises(TypeError, match="heading"):
        Statement((0.01, 0.01), (0.01, 0.01))  # type: ignore[call-arg]
    with pytest.raises(OutputError, match="not negative"):
        Statement((0.01, 0.01), (0.01, 0.01), -0.1)


def test_other_robots_and_laws_are_rejected() -> None:
    task = rover()
    stiff = np.diag([4.0, 5.0, 9.0, 9.0, 9.0])
    with pytest.raises(OutputError, match="one gain"):
        attempt(servo=replace(task.servo, stiffness=stiff))


@pytest.mark.parametrize("angle", [(0.0, 0.0, 0.6, 0.8), (0.28, 0.0, 0.0, 0.96)])
def test_a_base_with_a_placement_is_rejected(angle: tuple[float, ...]) -> None:
    """Its heading would count from another axis, or gravity depend on it."""
    task = rover()
    first, *rest = task.robot.bodies
    placed = replace(first, placement=Pose(rotation=angle))
    robot = replace(task.robot, bodies=(placed, *rest))
    with pytest.raises(OutputError, match="without placement"):
        attempt(servo=replace(task.servo, model=cc.reduce(robot)))


def test_the_tightest_bound_of_each_segment_has_the_largest_share_of_its_limit(proof) -> None:
    """Shares by hand: upper and lower bounds, an angle between two limits, one with one limit."""
    angles = {"turret": (-0.5, 0.3), "upper_arm": (-np.inf, 1.4)}
    statement = replace(NEAR, torques={"turret": 10.0}, margin=0.5, angles=angles)
    limits = statement.limits
    own = replace(
        proof,
        statement=statement,
        bounds=tuple(replace(b, limit=limits.get(b.quantity.key)) for b in proof.bounds),
    )
    by_hand = {
        ("torque", "turret"): lambda v: v / 10.0,
        ("margin", "decoupling"): lambda v: 0.5 / v,
        ("angle above", "turret"): lambda v: (-0.1 - v) / 0.4,
        ("angle below", "turret"): lambda v: (v + 0.1) / 0.4,
        ("angle below", "upper_arm"): lambda v: 1.0 - (1.4 - v) / np.pi,
    }
    for bound in own.bounds:
        if bound.quantity.key in by_hand:
            expected = by_hand[bound.quantity.key](bound.profile)
            np.testing.assert_allclose(own.shares(bound), expected, rtol=1e-12)
        else:
            assert np.isnan(own.shares(bound)).all()
    worst = max(by_hand, key=lambda key: own.shares(_of(own, key))[0])
    time, bound, value, slack = own.in_segments()[0]
    assert (time, bound.quantity.key) == (0.0, worst)
    assert value == bound.profile[0]
    assert slack == bound.slacks[0]
    # A lower bound below zero is beyond any positive limit.
    low = replace(_of(own, ("margin", "decoupling")), profile=np.array([-0.1, 0.6]))
    assert own.shares(low)[0] == np.inf


def _of(proof, key):
    return next(bound for bound in proof.bounds if bound.quantity.key == key)


@pytest.mark.parametrize(
    ("hold", "first"), [(0.0, 4), (0.001, 3), (0.049, 3), (0.051, 2), (0.12, 1), (9.0, 0)]
)
def test_held_torques_come_from_all_segments_that_the_hold_reaches_into(hold, first) -> None:
    case = prover(0.25)
    assert (case.first[:5] * case.step).tolist() == pytest.approx([0.0, 0.05, 0.1, 0.15, 0.2])
    assert case._reach(replace(NEAR, period=hold, delay=0.0), 4) == first
    assert case._reach(replace(NEAR, period=hold / 2, delay=hold / 2), 4) == first
    assert case._reach(replace(NEAR, period=hold), 0) == 0


def test_references_with_conditionals_are_rejected_and_the_same_as_polynomial_is_covered() -> None:
    task = rover()
    base, hand = np.array([0.0, 0.0]), cc.references.hold([0.4, 0.75, 0.15])
    moved = base + np.array([0.1, 0.0])
    rest = cc.references.stack(cc.references.rest_to_rest(base, moved, 2.0), hand)
    with pytest.raises(OutputError, match="without conditionals") as caught:
        Motion(rest, "proof")
    assert "`waypoints`" in caught.value.cure
    d = moved - base
    powers = [base, 0 * d, 0 * d, 10 * d / 2**3, -15 * d / 2**4, 6 * d / 2**5]
    Motion(cc.references.stack(cc.references.polynomial(powers), hand), "proof")
    Motion(task.reference, "proof")
