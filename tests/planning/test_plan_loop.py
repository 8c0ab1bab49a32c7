"""Planned loops: on the full-order plant, inside limits, and what is rejected or missed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy.spatial.transform import Rotation

import concur as cc
from concur.errors import (
    ConcurError,
    InfeasibleReferenceError,
    NonFiniteError,
    ReductionError,
    ShapeError,
)
from concur.planning import LoopPlan
from concur.reduction import ReducedModel
from concur.simulation import Integrator, Run, forced_motion
from tests.oracles import assert_close
from tests.robot.test_rolling_balls import ball


@pytest.fixture(scope="module")
def satellite() -> ReducedModel:
    return cc.reduce(cc.robots.wheel_satellite())


@pytest.fixture(scope="module")
def planar() -> ReducedModel:
    return cc.reduce(cc.robots.planar_floater())


@pytest.fixture(scope="module")
def rover() -> ReducedModel:
    return cc.reduce(cc.robots.rover_arm())


def followed(plan: LoopPlan, dt: float) -> Run:
    """The full-order robot under computed torque along the loop."""
    model = plan.model
    law = cc.laws.ComputedTorque(model, plan.loop, stiffness=25.0, damping=10.0)
    start, still = plan.start(), np.zeros(model.ns)
    return cc.simulate(model.robot, law, None, plan.loop.duration, start, still, dt=dt)


@pytest.mark.by_default(1)
@pytest.mark.parametrize("axis", np.eye(3), ids=str)
def test_satellite_turns_by_90_degrees_about_each_axis(
    satellite: ReducedModel, axis: np.ndarray
) -> None:
    plan = cc.planning.plan_loop(satellite, np.pi / 2 * axis, duration=20.0)
    assert plan.reached
    run = followed(plan, 0.05)
    turn = Rotation.from_quat(run.q[-1, 3:7]) * Rotation.from_rotvec(np.pi / 2 * axis).inv()
    assert np.degrees(turn.magnitude()) < 0.1
    assert np.abs(run.momentum).max() < 1e-9
    assert_close(run.q[-1, 7:], np.zeros(3), 1e-3)
    assert np.abs(run.v[-1]).max() < 1e-3


@pytest.mark.extended
def test_rover_parks_sideways(rover: ReducedModel) -> None:
    plan = cc.planning.plan_loop(rover, [0.0, 0.3, 0.0])
    run = followed(plan, 0.05)
    assert_close(run.q[-1, :3], [0.0, 0.3, 0.0], 1e-3)
    assert_close(run.q[-1, 3:], np.zeros(5), 1e-3)
    # The same by the torques of the plan, without feedback.
    motion = forced_motion(
        rover,
        plan.torque,
        10.0,
        plan.start(),
        np.zeros(5),
        dt=Integrator("dop853", 5e-2, rtol=1e-9),
    )
    assert_close(motion.q[-1, :3], [0.0, 0.3, 0.0], 1e-4)
    # Forwards too: the curvature has no such part, its bracket with the connection has.
    assert cc.planning.plan_loop(rover, [-0.2, 0.1, 0.0]).reached


def test_loops_stay_inside_limits(planar: ReducedModel) -> None:
    limits = np.array([[-1.0, 1.0], [-0.2, 1.5]])
    plan = cc.planning.plan_loop(planar, [0.4], limits=limits, speed_limits=[2.0, 3.0], harmonics=2)
    assert plan.reached
    assert plan.loop.cycles > 1
    places = plan.loop.places(np.arange(5000) / 5000)
    assert (limits[:, 0] < places).all()
    assert (places < limits[:, 1]).all()
    # The shortest duration: one joint is at its speed limit at some time.
    times = np.linspace(0.0, plan.loop.duration, 20001)
    speeds = np.abs(plan.loop.sample(times)[1]) / [2.0, 3.0]
    assert 1.0 - 1e-3 < speeds.max() <= 1.0
    with pytest.raises(InfeasibleReferenceError, match=r"within the speed limits, got 0\.1 s"):
        cc.planning.plan_loop(planar, [0.01], speed_limits=0.1, duration=0.1)
    with pytest.raises(InfeasibleReferenceError, match=r"`forearm`: expected a start between"):
        cc.planning.plan_loop(planar, [0.4], limits=[[-1.0, 1.0], [0.1, 1.0]])


def test_limits_of_the_joints_are_used() -> None:
    robot = cc.robots.planar_floater()
    bodies = [
        cc.Body(
            b.name,
            b.joint,
            b.parent,
            b.placement,
            b.inertia,
            limits=None if b.parent is None else (-0.5, 0.8),
            speed_limit=None if b.parent is None else 0.5,
        )
        for b in robot.bodies
    ]
    model = cc.reduce(cc.Mechanism("limited", bodies))
    plan = cc.planning.plan_loop(model, [0.01])
    places = plan.loop.places(np.arange(2000) / 2000)
    assert places.min() > -0.5
    assert places.max() < 0.8
    times = np.linspace(0.0, plan.loop.duration, 5001)
    assert 0.5 - 1e-3 < np.abs(plan.loop.sample(times)[1]).max() <= 0.5


@pytest.mark.extended
def test_duration_with_speed_limits_of_some_joints() -> None:
    robot = cc.robots.rover_arm()
    limited = [replace(b, speed_limit=1.0 if b.name == "turret" else None) for b in robot.bodies]
    model = cc.reduce(replace(robot, bodies=tuple(limited)))
    assert cc.planning.plan_loop(model, [0.0, 0.1, 0.0]).loop.duration == 10.0
    assert cc.planning.plan_loop(model, [0.0, 0.1, 0.0], duration=np.int64(4)).loop.duration == 4.0
    with pytest.raises(InfeasibleReferenceError, match="within the speed limits"):
        cc.planning.plan_loop(model, [0.0, 0.1, 0.0], duration=1e-3)


@pytest.mark.slow
def test_far_loops_take_smaller_steps(rover: ReducedModel) -> None:
    # With the first number of steps the loop is 76 mm off.
    assert cc.planning.plan_loop(rover, [5.0, 0.0, 0.0], harmonics=1, cycles=1).reached


@pytest.mark.by_default(1)
@pytest.mark.parametrize("wanted", [[0.6, 0.0, 0.0], [0.0, 0.0, 0.8]], ids=str)
def test_ball_turns_by_its_place(wanted: list[float]) -> None:
    plan = cc.planning.plan_loop(cc.reduce(ball("rubber_ball")), wanted)
    assert plan.reached
    assert_close(plan.phase.log, wanted, 1e-5)
    with pytest.raises(ReductionError, match="a control for each of place"):
        plan.torque  # noqa: B018


def test_what_the_group_does_not_reach_is_rejected(
    satellite: ReducedModel, planar: ReducedModel, rover: ReducedModel
) -> None:
    for model, wanted, text in (
        # At zero momentum the centre of mass rests: rotations about it only.
        (satellite, [0.1, 0, 0, 0, 0, 0], r"in SO\(3\), the span of curvature and brackets"),
        (planar, [0.0, 0.0, 0.5], r"SO\(2\).*a part outside it: base\[vy\]"),
        # The heading follows from the difference of the wheels' angles.
        (rover, [0.0, 0.0, 0.5], r"R\^2.*a part outside it: chassis\[omega\] 0.5"),
        (rover, [0.5], r"R\^2"),
    ):
        with pytest.raises(InfeasibleReferenceError, match=text) as error:
            cc.planning.plan_loop(model, wanted)
        assert error.value.span.shape[0] == (6 if model is satellite else 3)
    # The rotation about the centre of mass is inside.
    com = 0.3 * 0.1 / 2.9 * np.ones(3)
    turn = np.array([0.0, 0.0, 0.3])
    assert cc.planning.plan_loop(satellite, [*np.cross(com, turn), *turn]).reached
    with pytest.raises(InfeasibleReferenceError, match=r"`displacement`"):
        cc.planning.plan_loop(satellite, [*(1.001 * np.cross(com, turn)), *turn])


def test_rotor_without_curvature_reaches_nothing() -> None:
    # Base and rotor on parallel axes in a plane: the connection is integrable.
    base = cc.Body("base", cc.joints.Planar(), inertia=cc.Inertia(2.0, moments=(0.1, 0.1, 0.2)))
    rotors = [
        cc.Body(
            n, cc.joints.Revolute((0, 0, 1)), "base", inertia=cc.Inertia(0.5, moments=(1, 1, 2))
        )
        for n in ("first", "second")
    ]
    model = cc.reduce(cc.Mechanism("rotors", [base, *rotors]))
    with pytest.raises(InfeasibleReferenceError, match="no displacement: the curvature vanishes"):
        cc.planning.plan_loop(model, [0.1])


@pytest.mark.extended
def test_plan_states_what_it_missed(planar: ReducedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = cc.planning.plan_loop(planar, [1.0], limits=[[-0.3, 0.3]] * 2, cycles=1, harmonics=1)
    assert not plan.reached
    assert "missed by" in plan.why
    assert "missed by" in str(plan)
    assert plan.phase.log[2] + -plan.missed[0] == pytest.approx(1.0, abs=1e-6)
    assert np.abs(plan.loop.places(np.arange(2000) / 2000)).max() <= 0.3
    # Both sides of the tolerance.
    for share, reached in ((1.01, True), (0.99, False)):
        monkeypatch.setattr("concur.planning._plan.REACHED", share * abs(plan.missed[0]))
        again = cc.planning.plan_loop(
            planar, [1.0], limits=[[-0.3, 0.3]] * 2, cycles=1, harmonics=1
        )
        assert again.reached == reached


def test_wrong_arguments(satellite: ReducedModel) -> None:
    turn = [0.0, 0.0, 0.1]
    with pytest.raises(ReductionError, match="zero momentum"):
        cc.planning.plan_loop(satellite.at_momentum([0, 0, 0, 0.1, 0, 0]), turn)
    with pytest.raises(ShapeError, match=r"6 numbers.*or the rotation alone, 3"):
        cc.planning.plan_loop(satellite, [0.1, 0.2])
    with pytest.raises(NonFiniteError):
        cc.planning.plan_loop(satellite, [0.0, 0.0, np.nan])
    for options, text in (
        ({"cycles": 65}, "`cycles`"),
        ({"harmonics": 0}, "`harmonics`"),
        ({"duration": 0.0}, "`duration`"),
        ({"limits": [[0.0, 1.0]]}, "`limits`.*3 pairs"),
        ({"limits": [[1.0, -1.0]] * 3}, r"`limits`.*lower < upper"),
        ({"speed_limits": [1.0, 2.0]}, "`speed_limits`"),
    ):
        with pytest.raises(ConcurError, match=text):
            cc.planning.plan_loop(satellite, turn, **options)  # type: ignore[arg-type]


def test_figure_of_curvature_and_loop(satellite: ReducedModel) -> None:
    plan = cc.planning.plan_loop(satellite, [0.0, 0.0, 0.1])
    figure = plan.plot()
    assert isinstance(figure, Figure)
    axes = figure.axes[0]
    assert {axes.get_xlabel(), axes.get_ylabel()} == {"wheel_x [rad]", "wheel_y [rad]"}
    path = axes.get_lines()[0].get_xydata()
    x, y = np.asarray(path).T
    area = np.sum(x[:-1] * np.diff(y) - y[:-1] * np.diff(x)) / 2
    assert area == pytest.approx(plan.loop.areas[0, 1], rel=1e-3)
