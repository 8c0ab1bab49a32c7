"""Damping near singular configurations: finite torques, and a true account of what is missed."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import brentq

from concur import robots
from concur.control import Redundancy, Servo
from concur.errors import ConcurError, OutputError, SimulationError, SingularConfigurationError
from concur.outputs import Output
from concur.reduction import AuditStatus, reduce
from concur.simulation import Run, simulate
from tests.control._cases import refused
from tests.control._floating_cases import (
    CHECK_A_MOMENTUM,
    CHECK_A_Q0,
    Chain,
    Growth,
    OutputOracle,
    build,
    full_velocity,
    states,
    steady,
)
from tests.oracles import Pinocchio, assert_close

HAND = "hand of the free-flyer"
ZONE = 1.0
"""Margin below which these servos damp; it is 1.8 at the start of check A."""

EARLY = 6**0.25
"""The law's own measure is a lower bound of the margin, smaller by this factor at worst."""

WRIST, ELBOW = 11, 9


@cache
def singular(joint: int) -> np.ndarray:
    """Configuration near a stretched wrist or elbow in which the free-flyer is singular.

    The momentum's constraint moves it a little away from where an arm on a fixed base has it.
    """
    servo, oracle = build(HAND)
    mass = oracle.plant.mass_matrix

    def bent(angle: float) -> np.ndarray:
        q = CHECK_A_Q0.copy()
        q[joint] = angle
        return q

    def determinant(angle: float) -> float:
        inertia = mass(bent(angle))
        lift = np.vstack([-np.linalg.solve(inertia[:6, :6], inertia[:6, 6:]), np.eye(6)])
        return float(np.linalg.det(oracle.jacobian(bent(angle)) @ lift))

    found = bent(brentq(determinant, -0.2, 0.4, xtol=1e-15))
    assert servo.margin(found) < 1e-9
    return found


@pytest.mark.parametrize("near", [0.0, 1e-9, 1e-4, 0.03])
@pytest.mark.parametrize("joint", [WRIST, ELBOW])
def test_missed_is_what_the_plant_lacks(joint: int, near: float) -> None:
    servo, oracle = build(HAND, damping_threshold=ZONE)
    q = singular(joint).copy()
    q[joint] += near
    rng = np.random.default_rng(1)
    for _ in range(3):
        s, sample = 0.3 * rng.normal(size=6), oracle.sample(q, rng)
        v = full_velocity(oracle.plant, servo.model.momentum, q, s)
        u, pivot, missed, scale, *_ = servo.law(q, s, *servo.flat(sample))
        assert np.isfinite(u).all()
        assert pivot >= servo.singular_margin
        assert scale == 1.0
        wanted, made = oracle.command(servo, q, v, sample), oracle.acceleration(q, v, u)
        assert_close(made + missed, wanted, 1e-9)
        assert_allclose(servo.torque(q, s, sample), u, rtol=0, atol=0)
        assert np.abs(missed).max() > 1e-2


def test_damping_sets_in_without_a_step() -> None:
    # Along a path into the singular configuration.
    servo, oracle = build(HAND, damping_threshold=ZONE)
    sample = oracle.sample(CHECK_A_Q0, np.random.default_rng(4))
    found = []
    for angle in np.linspace(0.2, 0.0, 2001):
        q = singular(WRIST).copy()
        q[WRIST] += angle
        u, _, missed, _, *_ = servo.law(q, np.zeros(6), *servo.flat(sample))
        found.append([*u, np.abs(missed).max()])
    found = np.array(found)
    begun = int(np.argmax(found[:, -1] > 0.0))
    assert 0 < begun < 2000
    jump = np.abs(found[begun] - found[begun - 1])
    assert jump[:6].max() < 0.02 * np.abs(found[begun, :6]).max()
    assert found[begun, -1] < 0.02 * found[-1, -1]


@pytest.mark.by_default(1)
@pytest.mark.parametrize(
    "rule", [Redundancy(), Redundancy(weight="torque"), Redundancy(objective="base_rotation")]
)
def test_damping_and_joints_left_over(rule: Redundancy) -> None:
    servo, oracle = build("tip on the station", redundancy=rule, damping_threshold=2.0)
    rng = np.random.default_rng(5)
    straight = servo.model.robot.neutral()
    for near in (0.0, 1e-3):
        q, s = straight.copy(), 0.05 * rng.normal(size=7)
        q[7:] += near * rng.normal(size=7)
        assert servo.margin(q) < 1.0
        sample = oracle.sample(q, rng, size=1.0)
        v = full_velocity(oracle.plant, servo.model.momentum, q, s)
        u, _, missed, _, *_ = servo.law(q, s, *servo.flat(sample))
        assert_close(
            oracle.acceleration(q, v, u) + missed, oracle.command(servo, q, v, sample), 1e-8
        )
        assert np.abs(missed).max() > 1e-3
    # Away from there the two ways of solving agree, the rule for the rest included.
    bare, _ = build("tip on the station", redundancy=rule)
    servo = replace(servo, damping_threshold=0.05)
    for q, s, _ in states(bare, 2, margin=EARLY * 2.0):
        sample = oracle.sample(q, rng)
        u, _, missed, _, *_ = servo.law(q, s, *servo.flat(sample))
        assert not missed.any()
        assert_close(u, bare.torque(q, s, sample), 1e-10)


def lasting(rate: float) -> Growth:
    def growth(t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return 1 - np.cos(rate * t), rate * np.sin(rate * t), rate**2 * np.cos(rate * t)

    return growth


def stretch(group: str, zone: float) -> tuple[Run, Chain]:
    """Lead the hand outwards, beyond its reach, and back, while the robot drifts."""
    servo, demand = outwards(group, zone)
    run = simulate(servo.model.robot, servo, demand, 13.0, CHECK_A_Q0, np.zeros(6), dt=5e-3)
    return run, demand


def outwards(group: str, zone: float | None) -> tuple[Servo, Chain]:
    robot = robots.free_flyer()
    model, plant = reduce(robot, momentum=CHECK_A_MOMENTUM), Pinocchio(robot)
    servo = Servo(model, [Output("hand", "tool", group)], 4.0, 4.0, damping_threshold=zone)
    hand, shoulder = (plant.pose(CHECK_A_Q0, body) for body in ("tool", "turret"))
    away = hand[:3, 3] - shoulder[:3, 3]
    along = hand[:3, :3].T @ away / np.linalg.norm(away)
    drift = np.array([*CHECK_A_MOMENTUM[:3] / robot.total_mass, 0.0, 0.0, 0.0])
    way = np.array([*(0.2 * along), 0.0, 0.0, 0.0])
    return servo, Chain([(drift, steady), hand, (way, lasting(0.5))], group)


@pytest.mark.extended
@pytest.mark.parametrize(("group", "share"), [("R3", 0.4), ("R3xSO3", 1.0)])
def test_run_passes_and_records_what_was_missed(group: str, share: float) -> None:
    run, demand = stretch(group, share)
    assert run.t[-1] == pytest.approx(13.0)
    assert run.margin.min() < 0.6
    assert np.isfinite(run.u).all()
    inside = run.acceleration_residual.any(axis=1)
    assert 0.1 < inside.mean() < 0.9
    # The zone has one edge, near this share of the median margin of random postures. The law's
    # measure of it is not quite the margin.
    edge = run.margin[inside].max()
    assert edge < 1.01 * run.margin[~inside].min()
    rng, poses = np.random.default_rng(0), np.tile(run.servo.model.robot.neutral(), (400, 1))
    poses[:, 7:] = rng.uniform(-np.pi, np.pi, poses[:, 7:].shape)
    usual = np.median([run.servo.margin(q) for q in poses])
    assert 0.5 < edge / (share * usual) < 2.0
    assert np.abs(run.acceleration_residual).max() > 0.1
    # The recorded residual is the acceleration that the plant lacks, at every instant.
    servo, robot = run.servo, run.robot
    oracle = OutputOracle(robot, servo.outputs)
    for k in range(0, len(run.t), 25):
        q = run.q[k]
        v = full_velocity(oracle.plant, CHECK_A_MOMENTUM, q, run.s[k])
        assert_allclose(v, run.v[k], rtol=0, atol=1e-5)
        made = oracle.acceleration(q, v, run.u[k])
        wanted = oracle.command(servo, q, v, demand(run.t[k]))
        assert_close(made + run.acceleration_residual[k], wanted, 1e-8)
    assert np.abs(run.error[-1]).max() < 1e-2
    assert np.abs(run.momentum - run.momentum[0]).max() < 1e-5


@pytest.mark.extended
@pytest.mark.parametrize("group", ["R3", "R3xSO3"])
def test_same_run_stops_without_damping(group: str) -> None:
    servo, demand = outwards(group, None)
    with pytest.raises(SimulationError) as caught:
        simulate(servo.model.robot, servo, demand, 13.0, CHECK_A_Q0, np.zeros(6), dt=1e-2)
    run = caught.value.run
    assert 1.0 < run.t[-1] < 6.5  # on the way out
    assert not run.acceleration_residual.any()
    assert np.abs(run.deviation[:-30]).max() < 1e-5


def test_singular_start_is_refused_without_damping_only() -> None:
    servo, oracle = build(HAND)
    sample = oracle.sample(CHECK_A_Q0, np.random.default_rng(6))
    with pytest.raises(SingularConfigurationError):
        servo.torque(singular(WRIST), np.zeros(6), sample)
    damped, _ = build(HAND, damping_threshold=ZONE)
    assert np.isfinite(damped.torque(singular(WRIST), np.zeros(6), sample)).all()
    tick = damped.compile()
    u = tick(singular(WRIST), np.zeros(6), sample)
    assert_allclose(u, damped.torque(singular(WRIST), np.zeros(6), sample), rtol=1e-12)
    assert tick.buffers.acceleration_residual.any()


def test_audit_tells_of_damping() -> None:
    damped, _ = build(HAND, damping_threshold=ZONE)
    row = damped.audit(q0=singular(WRIST))["DYN"]
    assert row.status is AuditStatus.NOT_CHECKED
    assert "solved with damping below 1" in row.why
    bare, _ = build(HAND)
    assert bare.audit(q0=singular(WRIST))["DYN"].status is AuditStatus.FAILS


@pytest.mark.parametrize("zone", [0.0, -0.1, np.nan, "wide"])
def test_zone_is_above_zero(zone: object) -> None:
    model = reduce(robots.free_flyer())
    outputs = [Output("hand", "tool", "SE3")]
    kind = OutputError if isinstance(zone, float) and zone <= 0.0 else ConcurError
    refused(
        kind,
        lambda: Servo(model, outputs, 1.0, 1.0, damping_threshold=zone),
        where="`damping_threshold`",
    )
