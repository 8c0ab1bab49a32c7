"""Thresholds of the observers, each from both sides."""

import math

import numpy as np
import pytest

from hil.drives.feedback import Feedback
from hil.state._differentiation import Differentiator, Observer, encoder_step
from tests.hil._estimated import PERIOD, axis

NAN = math.nan
BANDWIDTH = 25.0


def observer(y=0.0, speed=0.0, **others):
    """An observer that has taken one report at t = 0, with its velocity."""
    made = Observer(axis("wheel", **others), BANDWIDTH, PERIOD)
    assert made.take(y, speed, 0.0, None)
    return made


def joints(*speeds):
    """Axes that have reported a velocity each at t = 0."""
    made = Differentiator([axis(f"j{i}") for i in range(len(speeds))], BANDWIDTH)
    feedback = Feedback(len(speeds))
    feedback.position[:], feedback.time[:], feedback.velocity[:] = 0.0, 0.0, speeds
    feedback.count[:] = 1
    made.update(feedback, 0.0)
    return made, feedback


@pytest.mark.parametrize(("past", "speed"), [(0.099, 0.5), (0.1, 0.0), (0.3, 0.0)])
def test_an_axis_is_carried_on_for_a_tenth_of_a_second(past, speed):
    made, feedback = joints(0.5)
    made.update(feedback, past)
    assert made.velocity[0] == speed
    assert made.position[0] == pytest.approx(0.5 * min(past, 0.1), rel=1e-12)


@pytest.mark.parametrize(("known", "believed"), [(0.99e6, True), (1.01e6, False), (NAN, False)])
def test_accelerations_are_believed_up_to_a_million_in_sum(known, believed):
    made, feedback = joints(0.5, 0.5)
    given = np.array([0.25, -0.75]) * known
    made.update(feedback, 1e-6, given)
    expected = 0.5 + (given * 1e-6 if believed else 0.0)
    np.testing.assert_allclose(made.velocity, expected, rtol=1e-9)


@pytest.mark.parametrize(("jumps", "goes_on"), [(2, True), (3, False)])
def test_three_implausible_reports_in_a_row_lose_an_axis(jumps, goes_on):
    made = observer()
    for k in range(jumps):
        assert not made.take(1.0 + k, 0.0, (k + 1) * PERIOD, None)
    assert made.take(0.0, 0.0, (jumps + 1) * PERIOD, None) == goes_on
    assert made.implausible == jumps + (not goes_on)


@pytest.mark.parametrize(("steps", "taken"), [(3.9, True), (4.1, False)])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_report_may_miss_its_prediction_by_speed_and_four_steps(steps, taken, sign):
    made, fastest = observer(), axis("wheel").speed_limit
    y = sign * (fastest * PERIOD + steps * encoder_step(axis("wheel")))
    assert made.take(y, NAN, PERIOD, None) == taken


@pytest.mark.parametrize(("share", "used"), [(1.99, True), (2.01, False)])
def test_reported_speeds_are_used_up_to_twice_the_limit(share, used):
    speed = -share * axis("wheel").speed_limit
    assert observer(speed=speed).w == (speed if used else 0.0)


@pytest.mark.parametrize(("reported", "share"), [(0.0, 0.4), (NAN, 1.0)])
def test_reported_speeds_narrow_the_bandwidth(reported, share):
    made, away = observer(speed=reported), 0.001
    made.take(away, reported, PERIOD, None)
    theta = math.exp(-2.0 * math.pi * BANDWIDTH * share * PERIOD)
    assert made.x == pytest.approx((1.0 - theta**2) * away, rel=1e-9)
    assert made.w == pytest.approx((1.0 - theta) ** 2 * away / PERIOD, rel=1e-9)


@pytest.mark.parametrize(
    ("gap", "part", "sampled"),
    [
        (1.4, 0.5, 1.4),  # no gap
        (1.6, 0.5, 0.8),  # seen on half of the way
        (7.9, 0.5, 3.95),
        (8.1, 0.5, 8.1),  # the clock may have jumped
        (4.0, 0.01, 0.5),  # half a period after the last sample at least
        (4.0, 1.01, 4.0),  # it moved
        (4.0, -0.1, 4.0),  # it turned round
    ],
)
def test_when_a_report_behind_a_gap_was_sampled(gap, part, sampled):
    made, speed = observer(speed=1.0), 1.0
    made.take(part * speed * gap * PERIOD, NAN, gap * PERIOD, None)
    assert made.t == pytest.approx(sampled * PERIOD, rel=1e-9)


@pytest.mark.parametrize(("gear", "step"), [(1.0, 25.0 / 65535.0), (5.0, 5.0 / 65535.0)])
def test_finest_step_where_no_range_is_known(gear, step):
    assert encoder_step(axis("wheel", counts=None, ranges={}, gear=gear)) == pytest.approx(step)
