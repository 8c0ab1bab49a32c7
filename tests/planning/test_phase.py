"""Geometric phase: numbers of source 000, small loops, reversed loops, other ways to the same."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import concur as cc
from concur.errors import ReductionError, ShapeError
from concur.outputs.references import Loop
from concur.reduction import ReducedModel
from concur.simulation import reconstruct
from tests.oracles import assert_close
from tests.robot.test_rolling_balls import RADIUS, ball

SPIN = 8e-4 * 2 * np.pi**2
"""Angular momentum of a wheel of the satellite at the start of its cycle, kg m^2/s."""


def numbers(text: str) -> np.ndarray:
    return np.array(text.split(), dtype=float)


@pytest.fixture(scope="module")
def satellite() -> ReducedModel:
    return cc.reduce(cc.robots.wheel_satellite())


@pytest.fixture(scope="module")
def planar() -> ReducedModel:
    return cc.reduce(cc.robots.planar_floater())


def cycle(count: int = 1, rest: bool = False) -> Loop:
    """r(t) = (pi (cos 2 pi t - 1), pi sin 2 pi t, pi/2 sin 4 pi t), section 6c."""
    cosine = np.pi * np.array([[1.0, 0, 0], [0, 0, 0]])
    sine = np.pi * np.array([[0, 1.0, 0], [0, 0, 0.5]])
    return Loop(np.zeros(3), cosine, sine, count, count, rest)


def test_phases_of_the_satellite(satellite: ReducedModel) -> None:
    """000: (6.4), (6.5)."""
    # Section 6c of the specification: two integrations outside this package agreed.
    loop = cycle()
    assert_close(loop.areas, np.pi**3 * np.array([[0, 1, 0], [-1, 0, 0], [0, 0, 0]]), 1e-14)
    once = cc.planning.geometric_phase(satellite, loop)
    assert_close(once.pose[:3, 3], numbers("5.838147761e-4 -4.916754245e-4 -6.378446280e-5"), 2e-12)
    assert_close(once.log[3:], numbers("6.06414697e-4 -5.70470213e-3 4.9524532559e-2"), 1e-10)
    rule = np.pi**3 * numbers("1.6414e-5 -1.6414e-5 0 2.172205159e-5 2.172205159e-5 1.608397242e-3")
    assert_close(once.area_rule, rule, 2e-7, floor=1e-2)
    assert not once.exact.any()
    # Six cycles, and the timing does not matter.
    for rest in (False, True):
        six = cc.planning.geometric_phase(satellite, cycle(6, rest))
        place = numbers("3.831539664e-3 -2.484982884e-3 -3.33159916e-4")
        assert_close(six.pose[:3, 3], place, 1e-11)
    assert_close(six.pose, np.linalg.matrix_power(once.pose, 6), 1e-10)
    # With a momentum: dynamic and total displacement.
    moving = satellite.at_momentum([0, 0, 0, 0, SPIN, SPIN])
    both = cc.planning.geometric_phase(moving, loop)
    assert_close(both.pose, once.pose, 1e-11)
    place = numbers("5.409478126e-3 -6.465597527e-3 6.590056409e-3")
    assert_close(both.total[:3, 3], place, 1e-11)
    place = numbers("4.769071487e-3 -6.364815395e-3 7.066848220e-3")
    assert_close(both.dynamic[:3, 3], place, 1e-11)
    assert both.momentum[5] == SPIN


def test_phase_of_the_planar_floater_is_its_integral(planar: ReducedModel) -> None:
    for center, axes, phase in (
        ((0.0, 0.0), (1.0, 0.7), 0.0),
        ((0.6, 0.9), (0.5, 0.4), -0.022425950410),
    ):
        loop = Loop([center[0] + axes[0], center[1]], [[axes[0], 0.0]], [[0.0, axes[1]]])
        found = cc.planning.geometric_phase(planar, loop)
        assert found.exact.tolist() == [False, False, True]
        assert found.log[2] == pytest.approx(phase, abs=1e-11)
        assert found.integral[2] == pytest.approx(phase, abs=1e-12)


def test_rolling_ball_turns_by_a_closed_formula() -> None:
    # About the vertical axis first, then a screw: angle 2 pi (sqrt(1 + a^2/R^2) - 1).
    model = cc.reduce(ball("rubber_ball"))
    for a in (0.02, 0.1, 0.3):
        phase = cc.planning.geometric_phase(model, Loop([a, 0.0], [[a, 0.0]], [[0.0, a]]))
        assert phase.body == "ball"
        turned = 2 * np.pi * (np.hypot(1.0, a / RADIUS) - 1.0)
        assert np.linalg.norm(phase.log) == pytest.approx(turned, abs=1e-10)
        assert_close(phase.area_rule, [0.0, 0.0, -np.pi * a**2 / RADIUS**2], 1e-12)


@pytest.mark.by_default(2)
@pytest.mark.parametrize(
    "make",
    [
        cc.robots.wheel_satellite,
        cc.robots.planar_floater,
        cc.robots.rover_arm,
        lambda: ball("rubber_ball"),
    ],
)
def test_small_loops_follow_the_curvature(make: Callable[[], cc.Mechanism]) -> None:
    """000: (4.8)."""
    model = cc.reduce(make())
    ns = model.ns
    center = np.random.default_rng(1).uniform(-1.0, 1.0, ns)
    errors = list[float]()
    for size in (0.08, 0.04, 0.02):
        a, b = size * np.eye(ns)[:2]
        loop = Loop(center, [a], [b])
        phase = cc.planning.geometric_phase(model, loop)
        # Here the curvature is that at the start, so that the error falls with the size.
        q = model.robot.neutral()
        q[list(model.shape_coordinates)] = center
        area = np.pi * size**2
        curvature = phase.area_rule / area
        if hasattr(model, "curvature"):
            curvature = -model.curvature(q, *np.eye(ns)[:2])
        errors.append(float(np.abs(phase.log / area - curvature).max() / np.abs(curvature).max()))
    assert errors[1] < 0.6 * errors[0]
    assert errors[2] < min(0.6 * errors[1], 0.2)


@pytest.mark.extended
def test_reversed_loop_undoes_it(planar: ReducedModel) -> None:
    rng = np.random.default_rng(2)
    for model in (planar, cc.reduce(ball("rubber_ball"))):
        loop = Loop.through(rng.uniform(-1.0, 1.0, (5, model.ns)))
        there, back = (cc.planning.geometric_phase(model, x) for x in (loop, loop.reversed()))
        assert_close(there.pose @ back.pose, np.eye(4), 1e-10)
        assert np.abs(there.log).max() > 1e-4


def test_phase_is_that_of_odometry(planar: ReducedModel) -> None:
    loop = Loop.through(np.random.default_rng(3).uniform(-1.0, 1.0, (6, 2)), duration=3.0)
    phase = cc.planning.geometric_phase(planar, loop)
    start = np.array([0.0, 0.0, 0.0, *loop.start])
    end = reconstruct(planar, start, [0.0, 3.0], lambda t: loop(t).twist)[-1]
    assert_close(end[:2], phase.pose[:2, 3], 1e-10)
    assert end[2] == pytest.approx(phase.log[2], abs=1e-10)


def test_what_has_no_phase_is_rejected(satellite: ReducedModel) -> None:
    loop = Loop([0.0], [[0.1]], [[0.1]])
    with pytest.raises(ShapeError, match="3 coordinates: wheel_x, wheel_y, wheel_z, got 1"):
        cc.planning.geometric_phase(satellite, loop)
    with pytest.raises(ReductionError, match="the rate of one coordinate"):
        cc.planning.geometric_phase(cc.reduce(cc.robots.snakeboard()), loop)
    with pytest.raises(ReductionError, match="a reduced model"):
        cc.planning.geometric_phase(cc.robots.snakeboard(), loop)  # type: ignore[arg-type]
    arm = cc.Body("arm", cc.joints.Revolute((0, 0, 1)), inertia=cc.Inertia(1.0, (1, 0, 0)))
    with pytest.raises(ReductionError, match="a body whose velocities all follow"):
        cc.planning.geometric_phase(cc.reduce(cc.Mechanism("arm", [arm])), loop)
