"""Reduced models under torques: conserved quantities, other libraries, odometry, bad input."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose

import concur as cc
from concur.errors import (
    NonFiniteError,
    ShapeError,
    SimulationError,
    UnknownNameError,
)
from concur.reduction import ReducedModel
from concur.robot import Mechanism
from concur.simulation import Integrator, Motion, forced_motion, reconstruct
from tests.control._cases import refused
from tests.oracles import (
    CASE_STUDY,
    Constrained,
    Excitation,
    Mujoco,
    Pinocchio,
    assert_close,
    excitation,
    full_order,
    random_floater,
    random_rover,
    rover,
    rover_rows,
)

methods = pytest.mark.parametrize("method", ["dop853", "rkmk4"])


def apart(robot: Mechanism, q: np.ndarray, other: np.ndarray) -> float:
    """Largest displacement, m or rad, between configurations at the same times."""
    rows = [robot.difference(a, robot.normalize(b)) for a, b in zip(q, other, strict=True)]
    return float(np.abs(rows).max())


@cache
def case(name: str, speed: float = 0.02) -> tuple[Mechanism, Excitation, ReducedModel]:
    robot = getattr(cc.robots, name)()
    # Reaction wheels are light, and turn fast.
    drawn = excitation(robot, 1, speed, 50.0 if name == "wheel_satellite" else 1.0)
    return robot, drawn, cc.reduce(robot, momentum=drawn.momentum)


def motion(name: str, duration: float, dt: float, **options: object) -> Motion:
    _, drawn, model = case(name)
    loop = Integrator(**{"method": "dop853", "dt": dt} | options)  # type: ignore[arg-type]
    return forced_motion(model, drawn, duration, drawn.q0, drawn.s0, loop)


# --- what is conserved, and what others compute ------------------------------------------------


def test_recorded_energy_and_momentum_are_those_of_pinocchio() -> None:
    robot, drawn, _ = case("two_handed_spacecraft")
    moved = motion("two_handed_spacecraft", 5.0, 0.5)
    oracle = Pinocchio(robot)
    for q, v, energy, momentum in zip(moved.q, moved.v, moved.energy, moved.momentum, strict=True):
        assert energy == pytest.approx(oracle.kinetic_energy(q, v), rel=1e-12)
        assert_close(momentum, oracle.momentum(q, v), 1e-12)
        assert_close(momentum, drawn.momentum, 1e-12)


@pytest.mark.by_default(1)
@pytest.mark.parametrize("name", ["planar_floater", "two_handed_spacecraft", "free_flyer"])
def test_mujoco_goes_the_same_way(name: str) -> None:
    robot, drawn, model = case(name, 0.1)
    moved = forced_motion(model, drawn, 5.0, drawn.q0, drawn.s0, dt=0.1)
    simulated = Mujoco(robot, dt=2e-2).simulate(
        drawn.q0, moved.v[0], lambda t, _q, _v: drawn(t), 5.0, every=5
    )
    assert_allclose(simulated[0], moved.t, rtol=0, atol=1e-12)
    assert apart(robot, moved.q, simulated[1]) < 1e-8
    assert np.abs(moved.v - simulated[2]).max() < 1e-8
    assert apart(robot, moved.q[:1], moved.q[-1:]) > 0.1


@pytest.mark.extended
def test_feedback_is_given_the_state() -> None:
    robot = random_floater("Free", 3)
    drawn = excitation(robot, 2, 0.1)
    model = cc.reduce(robot, momentum=drawn.momentum)
    shape, nb = list(model.shape), robot.base.joint.nv

    def damper(t: float, q: np.ndarray, s: np.ndarray) -> np.ndarray:
        return drawn(t) - 0.3 * s - 0.1 * np.sin(q[: model.nu])

    expected = full_order(
        robot,
        drawn.q0,
        model.velocity(drawn.q0, drawn.s0),
        lambda t, q, v: damper(t, q, v[shape]),
        np.linspace(0.0, 3.0, 4),
    )
    for method, limit in (("dop853", 1e-10), ("rkmk4", 1e-8)):
        dt = 1.0 if method == "dop853" else 0.01
        moved = forced_motion(model, damper, 3.0, drawn.q0, drawn.s0, dt=Integrator(method, dt))
        every = round(1.0 / dt)
        assert apart(robot, moved.q[::every], expected[0]) < limit
        assert_allclose(moved.s[::every], expected[1][:, nb:], rtol=0, atol=limit)
        assert_close(moved.u[-1], damper(3.0, moved.q[-1], moved.s[-1]), 1e-14)


@pytest.mark.by_default(1)
@pytest.mark.parametrize("base", ["Free", "Planar", "Spherical", "Helical"])
@methods
def test_momentum_is_exact_with_coarse_steps_too(base: str, method: str) -> None:
    robot = random_floater(base, 5)
    drawn = excitation(robot, 3, 0.5)
    model = cc.reduce(robot, momentum=drawn.momentum)
    dt = 2.5 if method == "dop853" else 0.25
    moved = forced_motion(
        model, drawn, 10.0, drawn.q0, drawn.s0, dt=Integrator(method, dt, rtol=1e-2, atol=1e-2)
    )
    assert moved.momentum_drift.max() < 1e-13
    # The path is not exact at all: what is kept is kept by construction.
    assert np.abs(moved.energy_balance).max() > 1e-8 * np.abs(moved.energy).max()


def test_drift_of_the_momentum_is_seen() -> None:
    # Another momentum than that of the model, by one part in a million, in each part.
    moved = motion("free_flyer", 0.2, 0.1)
    for part in (slice(0, 3), slice(3, 6)):
        momentum = np.array(moved.model.momentum)
        momentum[part] *= 1.0 + 1e-6
        other = cc.reduce(moved.robot, momentum=momentum)
        wrong = Motion(other, moved.arrays, "dop853", 0.0)
        wrong.__dict__["_momenta"] = moved._momenta  # or its velocities would be lifted again
        assert 1e-8 < wrong.momentum_drift.min() < wrong.momentum_drift.max() < 2e-6


def test_order_of_munthe_kaas_is_four() -> None:
    robot, drawn, model = case("two_handed_spacecraft", 0.5)
    exact = forced_motion(model, drawn, 2.0, drawn.q0, drawn.s0, dt=2.0)
    sizes = np.array([0.1, 0.05, 0.025])
    errors = []
    for h in sizes:
        moved = forced_motion(model, drawn, 2.0, drawn.q0, drawn.s0, dt=Integrator("rkmk4", h))
        away = robot.difference(exact.q[-1], moved.q[-1]), moved.s[-1] - exact.s[-1]
        errors.append([*(np.abs(x).max() for x in away), abs(moved.work[-1] - exact.work[-1])])
    slopes = np.diff(np.log(errors), axis=0) / np.diff(np.log(sizes))[:, None]
    assert_allclose(slopes, 4.0, atol=0.4, err_msg=str(errors))


# --- wheels and fixed bases --------------------------------------------------------------------


@pytest.mark.by_default(1)
@pytest.mark.parametrize("name", ["random", "case study"])
@methods
def test_wheels_roll_as_with_multipliers(name: str, method: str) -> None:
    if name == "random":
        drawn = random_rover(2)
        robot, rows = drawn.robot, drawn.rows
    else:
        robot, rows = rover(CASE_STUDY), rover_rows(CASE_STUDY.b, CASE_STUDY.c)
    model = cc.reduce(robot)
    rng = np.random.default_rng(2)
    q0, s0 = robot.random(rng), rng.uniform(-0.5, 0.5, model.ns)
    freed = list(robot.actuated_freedoms)

    def torque(t: float) -> np.ndarray:
        return np.sin(t + np.arange(model.nu))

    def law(t: float, _q: np.ndarray, _v: np.ndarray) -> np.ndarray:
        tau = np.zeros(robot.nv)
        tau[freed] = torque(t)
        return tau

    times = np.array([0.0, 0.5, 1.0])
    q, v = Constrained(Pinocchio(robot), rows).simulate(q0, model.velocity(q0, s0), law, times)
    dt = 0.5 if method == "dop853" else 1e-3
    moved = forced_motion(model, torque, 1.0, q0, s0, dt=Integrator(method, dt))
    every = round(0.5 / dt)
    limit = 1e-8 if method == "dop853" else 1e-6
    assert apart(robot, moved.q[::every], q) < limit
    assert_close(moved.v[::every], v, limit)
    assert np.abs(moved.energy_balance).max() < limit * np.abs(moved.energy).max()
    assert max(np.abs(rows(a) @ b).max() for a, b in zip(moved.q, moved.v, strict=True)) < 1e-13


# --- reconstruction ----------------------------------------------------------------------------


@pytest.mark.by_default(1)
@pytest.mark.parametrize("name", ["planar_floater", "two_handed_spacecraft", "free_flyer"])
def test_base_is_found_from_the_joints_of_the_oracles(name: str) -> None:
    """Thesis: (5.1.8), (5.3.22)."""
    robot, drawn, model = case(name, 0.1)
    shape = list(model.shape)
    times = np.linspace(0.0, 5.0, 101)
    start = drawn.q0, model.velocity(drawn.q0, drawn.s0)

    def law(t: float, _q: np.ndarray, _v: np.ndarray) -> np.ndarray:
        return drawn(t)

    # The spline between samples 0.05 s apart is good for some 1e-8 rad.
    q, v = full_order(robot, *start, law, times)
    assert apart(robot, reconstruct(model, drawn.q0, times, v[:, shape]), q) < 1e-7
    t, q, v = Mujoco(robot, 1e-2).simulate(*start, law, 5.0, every=5)
    assert apart(robot, reconstruct(model, drawn.q0, t, v[:, shape]), q) < 1e-7
    # Without the momentum the base would stand elsewhere.
    lost = reconstruct(cc.reduce(robot), drawn.q0, t, v[:, shape])
    assert apart(robot, lost[-1:], q[-1:]) > 0.1


@pytest.mark.parametrize("as_samples", [True, False])
def test_odometry_of_the_rover_is_a_circle(as_samples: bool) -> None:
    """Thesis: (5.1.10), (5.3.23)."""
    robot = cc.robots.rover_arm()
    radius, half_track = 0.1, 0.25  # of the shipped robot
    left, right = 2.0, 3.0
    forward, turning = radius * (left + right) / 2, radius * (right - left) / (2 * half_track)
    model = cc.reduce(robot)
    assert model.shape_names[:2] == ("left_wheel", "right_wheel")
    speeds = np.array([left, right, 0.1, -0.2, 0.3])
    times = np.linspace(0.0, 8.0, 9)
    given = np.tile(speeds, (9, 1)) if as_samples else lambda t: speeds
    q0 = robot.neutral()
    q0[:3] = 1.0, -2.0, 0.4
    q = reconstruct(model, q0, times, given)
    heading = 0.4 + turning * times
    circle = forward / turning
    assert_allclose(q[:, 0], 1.0 + circle * (np.sin(heading) - np.sin(0.4)), rtol=0, atol=1e-11)
    assert_allclose(q[:, 1], -2.0 - circle * (np.cos(heading) - np.cos(0.4)), rtol=0, atol=1e-11)
    assert_allclose(q[:, 2], heading, rtol=0, atol=1e-11)
    assert_allclose(q[:, 3:], times[:, None] * speeds, rtol=0, atol=1e-11)


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_few_samples_are_enough(count: int) -> None:
    robot, drawn, model = case("planar_floater")
    times = np.linspace(0.0, 1.0, count) if count > 1 else np.array([0.0])
    q = reconstruct(model, drawn.q0, times, np.outer(1.0 + times, [0.1, 0.2]))
    assert q.shape == (count, robot.nq)
    assert_close(q[:, 3:] - drawn.q0[3:], np.outer(times + times**2 / 2, [0.1, 0.2]), 1e-12)


def test_reconstruction_says_what_it_cannot_use() -> None:
    _, drawn, model = case("planar_floater")
    q0, two = drawn.q0, [0.0, 1.0]
    cases = (
        (SimulationError, lambda: reconstruct("x", q0, two, None), "`model`", "str"),  # type: ignore[arg-type]
        (ShapeError, lambda: reconstruct(model, q0[:2], two, np.zeros((2, 2))), "`q0`", "(2,)"),
        (ShapeError, lambda: reconstruct(model, q0, two, np.zeros(2)), "(upper_arm, fore", "(2,)"),
        (ShapeError, lambda: reconstruct(model, q0, two, lambda t: [1.0]), "t = 0 s", "(1,)"),
        (ShapeError, lambda: reconstruct(model, q0, 1.0, np.zeros((1, 2))), "`times`", "()"),
        (NonFiniteError, lambda: reconstruct(model, q0, two, [[1, 2], [3, np.nan]]), "`sp", "nan"),
        (NonFiniteError, lambda: reconstruct(model, q0, two, lambda t: [t, np.inf]), "t = ", "inf"),
        (NonFiniteError, lambda: reconstruct(model, q0, [0, np.nan], None), "`times`", "nan"),
        (
            SimulationError,
            lambda: reconstruct(model, q0, [0.0, 2.0, 1.0], np.zeros((3, 2))),
            "`times`",
            "2 s before 1 s",
        ),
    )
    for kind, call, where, came in cases:
        refused(kind, call, where=where, came=came)


# --- record and input --------------------------------------------------------------------------


def two(t: float, q: np.ndarray) -> list[float]:
    return [0.0, 0.0]


@pytest.mark.parametrize(
    ("options", "kind", "where", "came"),
    [
        ({"model": "robot"}, SimulationError, "`model`", "str"),
        ({"torque": [1.0]}, ShapeError, "`torque` (upper_arm, forearm)", "(1,)"),
        ({"torque": [1.0, np.nan]}, NonFiniteError, "`torque`", "[1] = nan"),
        ({"torque": "full"}, ShapeError, "`torque`", "str"),
        ({"torque": two}, SimulationError, "`torque`", "needs 2 arguments"),
        ({"torque": lambda: [0.0, 0.0]}, SimulationError, "`torque`", "needs 0 arguments"),
        ({"torque": lambda t: [0.0]}, ShapeError, "t = 0 s (upper_arm, forearm)", "(1,)"),
        ({"torque": lambda t: None}, ShapeError, "t = 0 s", "None"),
        ({"torque": lambda t, q, s: [t, np.inf]}, NonFiniteError, "t = 0 s", "[1] = inf"),
        ({"duration": 0.0}, SimulationError, "`duration`", "0.0"),
        ({"duration": np.nan}, SimulationError, "`duration`", "nan"),
        ({"dt": 0.3}, SimulationError, "`duration`", "1.0 s"),
        ({"rtol": 1e-15}, SimulationError, "`rtol`", "1e-15"),
        ({"atol": 0.0}, SimulationError, "`atol`", "0.0"),
        ({"method": "rkmk5"}, UnknownNameError, "`method`", "rkmk5"),
        ({"q0": [0.0, 0.0]}, ShapeError, "`q0`", "(2,)"),
        ({"q0": [0, 0, np.nan, 0, 0]}, NonFiniteError, "`q0`", "nan"),
        ({"s0": [0.0]}, ShapeError, "`s0` (upper_arm, forearm)", "(1,)"),
        ({"s0": [0.0, np.nan]}, NonFiniteError, "`s0`", "nan"),
    ],
)
def test_input_that_cannot_be_used(
    options: dict[str, object], kind: type[cc.errors.ConcurError], where: str, came: str
) -> None:
    _, drawn, model = case("planar_floater")
    arguments = {
        "model": model,
        "torque": None,
        "duration": 1.0,
        "q0": drawn.q0,
        "s0": drawn.s0,
        "dt": 0.5,
    }
    given = arguments | options
    own = {name: given.pop(name) for name in ("dt", "rtol", "atol", "method") if name in given}

    def move() -> object:
        return forced_motion(**given, dt=Integrator(**{"method": "dop853"} | own))  # type: ignore[arg-type]

    refused(kind, move, where=where, came=came)


def test_torque_that_spoils_its_arguments_does_not_reach_the_state() -> None:
    _, drawn, model = case("planar_floater")

    def spoil(t: float, q: np.ndarray, s: np.ndarray) -> np.ndarray:
        q[:], s[:] = np.nan, np.nan
        return np.zeros(2)

    moved = forced_motion(model, spoil, 1.0, drawn.q0, drawn.s0, dt=0.5)
    free = forced_motion(model, None, 1.0, drawn.q0, drawn.s0, dt=0.5)
    assert_allclose(moved.q, free.q, rtol=0, atol=0)


@methods
def test_diverging_motion_stops_and_keeps_what_it_has(method: str) -> None:
    _, drawn, model = case("planar_floater")

    def runaway(t: float, q: np.ndarray, s: np.ndarray) -> np.ndarray:
        return 0.1 * np.abs(s) * s + 0.1

    error = refused(
        SimulationError,
        lambda: forced_motion(model, runaway, 5.0, drawn.q0, drawn.s0, dt=Integrator(method, 0.01)),
        where="motion of `planar_floater`, t = ",
        expected="a finite state",
        came="beyond 1e+06",
        cure="attribute `run`",
    )
    assert isinstance(error.run, Motion)
    assert error.run.t[-1] == pytest.approx(error.time)
    assert 0.0 < error.time < 1.0
    assert np.isfinite(error.run.q).all()
    assert np.isfinite(error.run.energy).all()
