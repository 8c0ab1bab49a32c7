"""Runs at limits: plant, peers and measures are right, so that the table compares laws."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from tests.benchmarks._limited import laws, passage
from tests.benchmarks._limited_constrained import Constrained
from tests.benchmarks._limited_figures import figure
from tests.benchmarks._limited_mink import INSTALLED, Mink
from tests.benchmarks._limited_peer import HORIZON, WholeBody, most_towards
from tests.benchmarks._limited_scaled import ScaledServo
from tests.benchmarks._limited_scenarios import PERIOD, Move, scenarios
from tests.benchmarks._limited_twin import Twin

ROBOTS = "rover-fast", "floater-fast", "arm-weak"


def states(name, count=5):
    """States near the start in motion, with demands: q, s, v and sample."""
    scenario, rng = scenarios()[name], np.random.default_rng(3)
    for _ in range(count):
        q, joints = scenario.q0.copy(), Twin(scenario).angles
        q[joints] += rng.uniform(-0.3, 0.3, len(joints))
        s = rng.uniform(-0.5, 0.5, scenario.model.ns)
        v = np.asarray(scenario.model.velocity(q, s))
        yield q, s, v, scenario.reference(rng.uniform(0.0, scenario.duration))


@pytest.mark.parametrize(
    "name",
    [
        "rover-fast",
        *(
            pytest.param(name, marks=pytest.mark.extended)
            for name in scenarios()
            if name not in ("rover-fast", "rover-heavy", "arm-heavy")
        ),
    ],
)
def test_constrained_servo_ends_at_its_goal(name):
    """In all scenarios whose goal can be held; the other ones have weights that are too large."""
    found = passage(scenarios()[name], "constrained", Constrained(scenarios()[name]))
    assert not found.ended
    assert found.errors[-1].max() < 1e-3
    assert found.errors.max() > 1e-3


@pytest.mark.parametrize("name", ROBOTS)
def test_plant_moves_as_our_model(name):
    scenario, twin = scenarios()[name], Twin(scenarios()[name])
    rng = np.random.default_rng(0)
    for q, s, v, _ in states(name):
        u = rng.normal(size=scenario.robot.nu)
        found = twin.acceleration(q, v, u)[twin.driven]
        expected = scenario.model.acceleration(q, s, u)
        assert_allclose(found, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())


@pytest.mark.parametrize("name", ROBOTS)
def test_peer_without_limits_gives_outputs_the_acceleration_of_the_servo(name):
    scenario, twin = scenarios()[name], Twin(scenarios()[name])
    peer, servo = WholeBody(scenario, limits=False, rest=1e-9), scenario.servo()
    for q, s, v, sample in states(name):
        own = twin.acceleration(q, v, peer(0.0, q, v, sample))[twin.driven]
        ours = twin.acceleration(q, v, np.asarray(servo.torque(q, s, sample)))[twin.driven]
        rows = servo.decoupling(q)
        assert_allclose(rows @ own, rows @ ours, rtol=0, atol=1e-5 * np.abs(rows @ ours).max())


@pytest.mark.parametrize("name", ROBOTS)
def test_scaled_servo_is_the_servo_while_torques_suffice(name):
    scenario = scenarios()[name]
    law, servo = ScaledServo(scenario), scenario.servo()
    law.limits = np.full(scenario.robot.nu, 1e6)
    for q, s, v, sample in states(name):
        law.side = 0.0
        expected = np.asarray(servo.torque(q, s, sample))
        assert_allclose(law(0.0, q, v, sample), expected, atol=1e-9 * np.abs(expected).max())


@pytest.mark.parametrize("name", ROBOTS)
def test_peers_keep_torques_and_scaling_keeps_the_direction(name):
    scenario = scenarios()[name]
    peer, law, twin = WholeBody(scenario), ScaledServo(scenario), Twin(scenario)
    free = ScaledServo(scenario)
    # Little more than the weight takes, so that some state is limited.
    for q, s, v, sample in states(name):
        still = np.abs(np.asarray(scenario.model.bias(q, s)))
        narrow = np.maximum(1.05 * still, 0.1)
        peer.torque = law.limits = narrow
        law.side = free.side = 0.0
        free.limits = np.full(scenario.robot.nu, np.inf)
        for u in (peer(0.0, q, v, sample), law(0.0, q, v, sample)):
            assert (np.abs(u) <= narrow * (1 + 1e-9)).all()
        ways = [twin.acceleration(q, v, one(0.0, q, v, sample))[twin.driven] for one in (law, free)]
        nothing = twin.acceleration(q, v, np.asarray(scenario.model.bias(q, s)))[twin.driven]
        assert_allclose(nothing, 0.0, atol=1e-9)
        scaled, full = ways
        assert_allclose(
            scaled, (scaled @ full) / (full @ full) * full, atol=1e-9 * max(full @ full, 1)
        )


@pytest.mark.parametrize("speed", [-1.0, 0.0, 0.5, 1.9])
def test_bounds_of_the_peer_keep_a_joint_inside_and_no_less(speed):
    """With the largest acceleration allowed a joint comes to its limit and does not pass it."""
    braking, room, v = np.array([5.0]), np.array([0.5]), np.array([speed])
    slowest = 0.0
    for _ in range(4000):
        a = most_towards(room, v, braking)
        slowest = min(slowest, float(a[0]))
        room, v = room - PERIOD * v - PERIOD**2 / 2 * a, v + PERIOD * a
        assert room[0] > -1e-9
    assert slowest > -1.3 * braking[0]
    assert room[0] < 1e-3
    assert abs(v[0]) < 1e-2
    assert most_towards(np.array([np.inf]), v, braking)[0] == np.inf
    assert HORIZON > PERIOD


def test_nearness_has_the_right_derivatives():
    scenario = scenarios()["floater-ball"]
    twin, rng, h = Twin(scenario), np.random.default_rng(1), 1e-4
    q, v = scenario.q0.copy(), rng.uniform(-0.5, 0.5, scenario.robot.nv)

    def seen(time):
        there = twin.moved(q, time * v)
        twin.kinematics(twin.configuration(there), v)
        return twin.nearness(v)

    before, now, after = (seen(time) for time in (-h, 0.0, h))
    for a, b, c in zip(before, now, after, strict=True):
        assert_allclose(b.rate, b.slope @ v, rtol=1e-12)
        assert_allclose(b.rate, (c.distance - a.distance) / (2 * h), rtol=1e-5, atol=1e-7)
        # Along a motion of constant body velocities: zero acceleration.
        assert_allclose(b.drift, (c.rate - a.rate) / (2 * h), rtol=1e-4, atol=1e-5)


def test_grip_is_that_of_equilibrium():
    scenario = scenarios()["rover-slip"]
    twin, robot = Twin(scenario), scenario.robot
    q, still = scenario.q0, np.zeros(scenario.robot.nv)
    hold = np.asarray(scenario.model.bias(q, scenario.s0))
    assert twin.grip(q, still, hold) < 1e-6
    push = hold.copy()
    push[:2] += 1.0
    forward = twin.acceleration(q, still, push)[:3]
    matrix, offset = twin.contact(q, still)
    wrench = matrix @ twin.acceleration(q, still, push) + offset
    weight = 9.81 * sum(body.inertia.mass for body in robot.bodies)
    assert_allclose(wrench[2], weight, rtol=0.05)  # the arm gives a little way
    loads = twin.loads @ wrench
    assert_allclose(loads.sum(), wrench[2], rtol=1e-12)
    # Wheels push: 1 N m less what turns them, over the radius.
    spin = robot.bodies[robot.index("left_wheel")].inertia.tensor[1, 1] * forward[0] / 0.1
    assert_allclose((twin.forces[:2] @ wrench).sum(), 2 * (1.0 - spin) / 0.1, rtol=1e-9)
    assert_allclose(twin.grip(q, still, push), (1.0 - spin) / 0.1 / loads[:2].min(), rtol=0.2)


@pytest.fixture(scope="module")
def short():
    """The first 0.3 s of a reach, and a hold: by all laws."""
    scenario = replace(scenarios()["rover-stop"], moves=(Move((0.0, 0.0, 0.02), 0.2, 0.5),))
    made = {name: make for name, make in laws(scenario).items() if make is not Constrained}
    return [passage(scenario, name, make(scenario)) for name, make in made.items()]


def test_short_run_follows_and_is_drawn(short):
    for result in short:
        assert not result.ended
        assert result.errors.max() < 5e-3
        assert result.variation < 0.5
        assert result.shown_beyond == "0"
        assert result.recovery < 0.5
    drawn = figure(short)
    assert len(drawn.axes) == 4 * len(short)
    assert all(axes.get_xlabel() == "time [s]" for axes in drawn.axes[-len(short) :])


def test_measures_of_a_made_up_run(short):
    """Torque beyond its limit, a joint beyond its stop, an error that stays and one that goes."""
    one = short[0]
    count = len(one.q)
    u, q, errors = one.u.copy(), one.q.copy(), np.zeros((count, 2))
    u[5, 0], q[7, -1] = 20.5, -1.2
    errors[:250, 1] = 2e-3
    made = replace(one, q=q, v=0 * one.v, u=u, errors=errors)
    assert made.shown_beyond == "torque 0.5 N m, position 0.1 rad"
    assert_allclose(made.recovery, 0.05, atol=1.1e-3)
    errors[-1, 0] = 2e-3
    assert made.shown_recovery == "none"
    assert made.fastest == 0.0
    assert [limit.name for limit in made.limits if limit.active.any()] == [
        "torque of left_wheel",
        "position of forearm",
    ]


@pytest.mark.extended
@pytest.mark.skipif(not INSTALLED, reason="mink is not installed")
def test_mink_wants_joints_that_keep_their_limits():
    scenario = scenarios()["rover-stop"]
    result = passage(replace(scenario, moves=scenario.moves[:1]), "mink", Mink(scenario))
    [stop] = [limit for limit in result.limits if limit.kind == "position"]
    assert stop.active.any()
    assert stop.beyond < 1e-2


@pytest.mark.extended
def test_constrained_servo_names_the_limits_that_a_run_reaches():
    scenario = scenarios()["rover-fast"]
    result = passage(scenario, "constrained", Constrained(scenario))
    assert result.shown_beyond == "0"
    reached = [limit for limit in result.limits if limit.active.any()]
    assert reached
    for limit in reached:
        assert result.said[limit.name][limit.active].all()
    assert not any(active[-500:].any() for active in result.said.values())
    assert result.errors[-1].max() < 1e-5
