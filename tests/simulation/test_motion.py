"""Reduced models under torques: conserved quantities, other libraries, odometry, bad input."""

from __future__ import annotations

from functools import cache

import h5py
import matplotlib as mpl
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad

import concur as cc
from concur.errors import (
    DescriptionError,
    NonFiniteError,
    ShapeError,
    SimulationError,
    UnknownNameError,
)
from concur.reduction import ReducedModel
from concur.robot import Body, Inertia, Mechanism, Pose, joints
from concur.simulation import Motion, forced_motion, reconstruct
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
from tests.simulation.test_floating_plant import SHIPPED

QUICK = ("two_handed_spacecraft", "planar_floater", "wheel_satellite")
LONG = [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in SHIPPED]
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
    return forced_motion(model, drawn, duration, drawn.q0, drawn.s0, dt=dt, **options)  # type: ignore[arg-type]


# --- what is conserved, and what others compute ------------------------------------------------


@pytest.mark.extended
@pytest.mark.parametrize("name", LONG)
def test_hundred_seconds_under_torques(name: str) -> None:
    robot, drawn, _ = case(name)
    moved = motion(name, 100.0, 0.5)
    assert np.abs(drawn.momentum).max() > 0.0
    assert np.abs(robot.difference(moved.q[0], moved.q[-1])).max() > 0.5
    assert moved.momentum_drift.max() < 1e-10
    # Against the work: the energy itself may be mostly that of a heavy base, which is constant.
    assert np.abs(moved.work).max() > 1e-6 * moved.energy.max()
    assert np.abs(moved.energy_balance).max() < 1e-8 * np.abs(moved.work).max()

    # The oracle at a tolerance ten times looser misses its own tighter run by ten times the
    # error of that, more or less: nearer than that the two methods have to be.
    def law(t: float, _q: np.ndarray, _v: np.ndarray) -> np.ndarray:
        return drawn(t)

    tight, loose = (
        full_order(robot, moved.q[0], moved.v[0], law, moved.t, rtol) for rtol in (1e-12, 1e-11)
    )
    limits = apart(robot, tight[0], loose[0]), np.abs(tight[1] - loose[1]).max()
    assert max(limits) < 1e-8
    assert apart(robot, moved.q, tight[0]) < limits[0]
    assert np.abs(moved.v - tight[1]).max() < limits[1]


def test_recorded_energy_and_momentum_are_those_of_pinocchio() -> None:
    robot, drawn, _ = case("two_handed_spacecraft")
    moved = motion("two_handed_spacecraft", 5.0, 0.5)
    oracle = Pinocchio(robot)
    for q, v, energy, momentum in zip(moved.q, moved.v, moved.energy, moved.momentum, strict=True):
        assert energy == pytest.approx(oracle.kinetic_energy(q, v), rel=1e-12)
        assert_close(momentum, oracle.momentum(q, v), 1e-12)
        assert_close(momentum, drawn.momentum, 1e-12)


@pytest.mark.parametrize("name", [*SHIPPED[:3], "orbital_crawler"])
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
        moved = forced_motion(model, damper, 3.0, drawn.q0, drawn.s0, dt=dt, method=method)
        every = round(1.0 / dt)
        assert apart(robot, moved.q[::every], expected[0]) < limit
        assert_allclose(moved.s[::every], expected[1][:, nb:], rtol=0, atol=limit)
        assert_close(moved.u[-1], damper(3.0, moved.q[-1], moved.s[-1]), 1e-14)


@pytest.mark.by_default(3)
@pytest.mark.parametrize("base", ["Free", "Planar", "Spherical", "Helical"])
@methods
def test_momentum_is_exact_with_coarse_steps_too(base: str, method: str) -> None:
    robot = random_floater(base, 5)
    drawn = excitation(robot, 3, 0.5)
    model = cc.reduce(robot, momentum=drawn.momentum)
    dt = 2.5 if method == "dop853" else 0.25
    moved = forced_motion(
        model, drawn, 10.0, drawn.q0, drawn.s0, dt=dt, method=method, rtol=1e-2, atol=1e-2
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
        wrong = Motion(other, moved.t, moved.q, moved.s, moved.u, moved.work, "dop853", 0.0)
        wrong.__dict__["_momenta"] = moved._momenta  # or its velocities would be lifted again
        assert 1e-8 < wrong.momentum_drift.min() < wrong.momentum_drift.max() < 2e-6


def test_order_of_munthe_kaas_is_four() -> None:
    robot, drawn, model = case("two_handed_spacecraft", 0.5)
    exact = forced_motion(model, drawn, 2.0, drawn.q0, drawn.s0, dt=2.0)
    sizes = np.array([0.1, 0.05, 0.025])
    errors = []
    for h in sizes:
        moved = forced_motion(model, drawn, 2.0, drawn.q0, drawn.s0, dt=h, method="rkmk4")
        away = robot.difference(exact.q[-1], moved.q[-1]), moved.s[-1] - exact.s[-1]
        errors.append([*(np.abs(x).max() for x in away), abs(moved.work[-1] - exact.work[-1])])
    slopes = np.diff(np.log(errors), axis=0) / np.diff(np.log(sizes))[:, None]
    assert_allclose(slopes, 4.0, atol=0.4, err_msg=str(errors))


@methods
def test_quaternions_stay_of_unit_norm(method: str) -> None:
    moved = motion("orbital_crawler", 20.0, 0.5, method=method)
    for body in moved.robot.bodies:
        at = body.joint.quaternion_at
        if at is not None:
            start = moved.robot.q_slice(body.name).start + at
            norms = np.linalg.norm(moved.q[:, start : start + 4], axis=1)
            assert_allclose(norms, 1.0, rtol=0, atol=1e-15)


def test_free_motion_and_constant_torques() -> None:
    robot, drawn, model = case("planar_floater")
    start = drawn.q0, drawn.s0
    free, zero = (forced_motion(model, u, 1.0, *start, dt=0.5) for u in (None, [0.0, 0.0]))
    assert_allclose(free.q, zero.q, rtol=0, atol=0)
    assert not free.work.any()
    assert np.abs(free.energy_balance).max() < 1e-13 * free.energy[0]
    pushed = forced_motion(model, [1e-3, -2e-3], 1.0, *start, dt=0.5)
    assert_allclose(pushed.u, [[1e-3, -2e-3]] * 3)
    assert_close(pushed.work, pushed.q[:, 3:] @ [1e-3, -2e-3] - start[0][3:] @ [1e-3, -2e-3], 1e-14)
    assert apart(robot, free.q, pushed.q) > 1e-4


def test_work_is_the_integral_of_the_power() -> None:
    moved = motion("planar_floater", 2.0, 0.5)
    _, drawn, model = case("planar_floater")
    fine = forced_motion(model, drawn, 2.0, drawn.q0, drawn.s0, dt=1e-2, method="rkmk4")
    power = (fine.u * fine.s).sum(axis=1)
    expected, _ = quad(lambda t: np.interp(t, fine.t, power), 0.0, 2.0, limit=400, epsabs=1e-9)
    assert moved.work[-1] == pytest.approx(expected, rel=1e-3)
    assert abs(moved.work[-1]) > 1e-6


# --- wheels and fixed bases --------------------------------------------------------------------


@pytest.mark.by_default(2)
@pytest.mark.parametrize("name", ["case study", "random"])
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
    moved = forced_motion(model, torque, 1.0, q0, s0, dt=dt, method=method)
    every = round(0.5 / dt)
    limit = 1e-8 if method == "dop853" else 1e-6
    assert apart(robot, moved.q[::every], q) < limit
    assert_close(moved.v[::every], v, limit)
    assert np.abs(moved.energy_balance).max() < limit * np.abs(moved.energy).max()
    assert max(np.abs(rows(a) @ b).max() for a, b in zip(moved.q, moved.v, strict=True)) < 1e-13


def test_fixed_base_swings_like_the_open_chain() -> None:
    inertia = Inertia(1.5, (0.1, 0.1, -0.1), (0.02, 0.03, 0.04))
    bodies = [
        Body("wall", joints.Fixed()),
        Body("ball", joints.Spherical(), "wall", Pose((0.3, 0, 0.2)), inertia),
        Body("hand", joints.Revolute((0, 1, 0)), "ball", Pose((0.4, 0, 0)), inertia),
    ]
    robot = Mechanism("swing", bodies, gravity=(0, 0, -9.81), actuated=["hand"])
    model = cc.reduce(robot)
    q0, s0 = robot.random(np.random.default_rng(1)), np.array([0.3, -0.2, 0.1, 0.4])
    moved = forced_motion(model, lambda t: [np.sin(t)], 2.0, q0, s0, dt=1.0)
    q, v = full_order(robot, q0, s0, lambda t, _q, _v: np.array([np.sin(t)]), moved.t)
    assert apart(robot, moved.q, q) < 1e-9
    assert_close(moved.v, v, 1e-9)
    assert np.abs(moved.energy_balance).max() < 1e-9
    refused(
        SimulationError,
        lambda: moved.momentum_drift,
        where="motion of `swing`, `momentum_drift`",
        expected="floats freely",
        came="unreduced",
    )


# --- reconstruction ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["two_handed_spacecraft", "planar_floater", "free_flyer"])
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


def test_base_at_rest_in_the_joints_drifts_with_the_locked_robot() -> None:
    # A rigid body with momentum along an axis of inertia: it goes straight and turns evenly.
    bodies = [
        Body("base", joints.Free(), inertia=Inertia(4.0, moments=(1.0, 2.0, 2.5))),
        Body("wheel", joints.Revolute((0, 0, 1)), "base", inertia=Inertia(1.0, moments=(1, 1, 2))),
    ]
    robot = Mechanism("top", bodies)
    model = cc.reduce(robot, momentum=(10.0, -5.0, 0.0, 0.0, 0.0, 9.0))
    times = np.linspace(0.0, 3.0, 7)
    q = reconstruct(model, robot.neutral(), times, lambda t: [0.5])
    # 4.5 kg m^2 turn together, 2 of them 0.5 rad/s faster.
    rate = (9.0 - 2.0 * 0.5) / 4.5
    assert_allclose(q[:, 0], 2.0 * times, rtol=0, atol=1e-11)
    assert_allclose(q[:, 1], -1.0 * times, rtol=0, atol=1e-11)
    assert_allclose(q[:, 5], np.sin(rate * times / 2), rtol=0, atol=1e-11)
    assert_allclose(q[:, 6], np.cos(rate * times / 2), rtol=0, atol=1e-11)
    assert_allclose(q[:, 7], 0.5 * times, rtol=0, atol=1e-11)


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


def test_odometry_of_any_rover_follows_its_rows() -> None:
    drawn = random_rover(4)
    robot, model = drawn.robot, cc.reduce(drawn.robot)
    rng = np.random.default_rng(4)
    q0, s0 = robot.random(rng), rng.uniform(-0.5, 0.5, model.ns)

    def law(t: float, _q: np.ndarray, _v: np.ndarray) -> np.ndarray:
        return np.concatenate([np.zeros(3), 0.3 * np.sin(t + np.arange(robot.nv - 3))])

    times = np.linspace(0.0, 1.0, 101)
    q, v = Constrained(Pinocchio(robot), drawn.rows).simulate(
        q0, model.velocity(q0, s0), law, times
    )
    found = reconstruct(model, q0, times, v[:, list(model.shape)])
    assert apart(robot, found, q) < 1e-6
    assert apart(robot, found[:1], found[-1:]) > 0.1


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


def test_motion_is_told_in_one_line() -> None:
    found = motion("planar_floater", 0.2, 0.1)
    assert str(found) == "motion of planar_floater: 0.2 s in steps of 0.1 s by dop853"
    assert repr(found) == f"<{found}>"


def test_saved_motion_has_names_and_units(tmp_path) -> None:  # type: ignore[no-untyped-def]
    moved = motion("two_handed_spacecraft", 1.0, 0.5)
    path = moved.save(tmp_path / "motion.h5", {"task": "none"})
    with h5py.File(path) as file:
        names = ("t", "q", "v", "s", "u", "energy", "work", "momentum")
        assert sorted(file) == sorted(names)
        for name in names:
            assert_allclose(file[name][()], getattr(moved, name), rtol=0, atol=0)
        for name in ("q", "v", "s", "u", "momentum"):
            columns = file[name].attrs["columns"]
            assert len(columns) == len(file[name].attrs["units"]) == file[name].shape[1]
        assert file["s"].attrs["columns"][-1] == "left_hand"
        assert file["s"].attrs["units"][-1] == "rad/s"
        assert file["u"].attrs["units"][-1] == "N m"
        assert file["momentum"].attrs["units"].tolist() == ["kg m/s"] * 3 + ["kg m^2/s"] * 3
        assert file["energy"].attrs["unit"] == "J"
        assert_allclose(file.attrs["momentum"], moved.model.momentum)
        assert file.attrs["reduction"] == "symplectic"
        assert file.attrs["task"] == "none"
        assert (file.attrs["dt"], file.attrs["method"]) == (0.5, "dop853")
    refused(
        DescriptionError,
        lambda: moved.save(tmp_path / "missing" / "motion.h5"),
        where="missing",
        expected="can be written",
    )


@pytest.mark.extended
@pytest.mark.parametrize("name", ["two_handed_spacecraft", "rover"])
def test_figure_shows_every_column_with_its_unit(name: str) -> None:
    if name == "rover":
        model = cc.reduce(cc.robots.rover_arm())
        q0, s0 = model.robot.neutral(), [1.0, 2.0, 0.1, 0.0, 0.0]
        moved = forced_motion(model, None, 0.5, q0, s0, dt=0.05)
    else:
        moved = motion(name, 1.0, 0.1)
    before = dict(mpl.rcParams)
    figure = moved.plot()
    assert dict(mpl.rcParams) == before
    speeds, controls, place, turn, energy, zero = figure.axes
    for axes, names in ((speeds, moved.model.shape_names), (controls, moved.model.control_names)):
        labels = [text.get_text() for text in axes.get_legend().get_texts()]
        assert [label.rpartition(" [")[0] for label in labels] == list(names)
    for axes in figure.axes:
        assert "[" in axes.get_ylabel()
        assert all(line.get_xydata().shape == (11, 2) for line in axes.get_lines())
    assert_allclose(place.get_lines()[0].get_ydata(), moved.q[:, 0])
    turned = turn.get_lines()[0].get_ydata()
    if name == "rover":
        assert_allclose(turned, np.abs(moved.q[:, 2] - moved.q[0, 2]), atol=1e-12)
    else:
        cosines = np.abs(moved.q[:, 3:7] @ moved.q[0, 3:7])
        assert_allclose(np.cos(turned / 2), cosines, rtol=0, atol=1e-12)
    assert_allclose(energy.get_lines()[0].get_ydata(), moved.energy)
    assert len(zero.get_lines()) == (1 if name == "rover" else 2)
    assert zero.get_xlabel() == energy.get_xlabel() == "time [s]"
    figure.canvas.draw()


def test_progress_is_reported() -> None:
    _, drawn, model = case("planar_floater")
    seen: list[float] = []
    forced_motion(model, None, 0.4, drawn.q0, drawn.s0, dt=0.1, progress=seen.append)
    assert_allclose(seen, [0.25, 0.5, 0.75, 1.0])


def test_record_is_of_the_steps_asked_for() -> None:
    moved = motion("planar_floater", 1.0, 0.25)
    assert_allclose(moved.t, [0, 0.25, 0.5, 0.75, 1.0])
    assert moved.dt == 0.25
    assert moved.method == "dop853"
    assert moved.seconds > 0.0
    assert moved.shape_units == ("rad/s", "rad/s")
    assert moved.control_units == ("N m", "N m")
    assert [x.shape for x in (moved.q, moved.v, moved.s, moved.u)] == [(5, 5)] * 2 + [(5, 2)] * 2


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
    refused(kind, lambda: forced_motion(**(arguments | options)), where=where, came=came)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "torque",
    [
        lambda t, *state: [1e-3 * t, 0.0],
        lambda t, gain=1e-3: [gain * t, 0.0],
        lambda *everything: [1e-3 * everything[0], 0.0],
        lambda t=0.0: (1e-3 * t, 0),
    ],
)
def test_functions_of_time_come_in_many_forms(torque: object) -> None:
    _, drawn, model = case("planar_floater")
    moved = forced_motion(model, torque, 1.0, drawn.q0, drawn.s0, dt=0.5)  # type: ignore[arg-type]
    assert_allclose(moved.u, np.outer([0.0, 0.5, 1.0], [1e-3, 0.0]))


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
        lambda: forced_motion(model, runaway, 5.0, drawn.q0, drawn.s0, dt=0.01, method=method),
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
