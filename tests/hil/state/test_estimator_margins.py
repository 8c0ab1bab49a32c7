"""Thresholds of the observers and of the watch for stuck encoders, each from both sides."""

import math

import numpy as np
import pytest

from hil.drives.feedback import Feedback
from hil.state._differentiation import Differentiator, Observer, encoder_step
from hil.state._stuck import Watch
from tests.hil._estimated import PERIOD, axis

NAN = math.nan
BANDWIDTH = 25.0


def observer(y=0.0, speed=0.0, **others):
    """An observer that has taken one report at t = 0, with its velocity."""
    made = Observer(axis("wheel", **others), BANDWIDTH, PERIOD)
    assert made.take(y, speed, 0.0, None, NAN, NAN)
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
        assert not made.take(1.0 + k, 0.0, (k + 1) * PERIOD, None, NAN, NAN)
    assert made.take(0.0, 0.0, (jumps + 1) * PERIOD, None, NAN, NAN) == goes_on
    assert made.implausible == jumps + (not goes_on)


@pytest.mark.parametrize(("steps", "taken"), [(3.9, True), (4.1, False)])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_report_may_miss_its_prediction_by_speed_and_four_steps(steps, taken, sign):
    made, fastest = observer(), axis("wheel").speed_limit
    y = sign * (fastest * PERIOD + steps * encoder_step(axis("wheel")))
    assert made.take(y, NAN, PERIOD, None, NAN, NAN) == taken


@pytest.mark.parametrize(("share", "used"), [(1.99, True), (2.01, False)])
def test_reported_speeds_are_used_up_to_twice_the_limit(share, used):
    speed = -share * axis("wheel").speed_limit
    assert observer(speed=speed).w == (speed if used else 0.0)


@pytest.mark.parametrize(("reported", "share"), [(0.0, 0.4), (NAN, 1.0)])
def test_reported_speeds_narrow_the_bandwidth(reported, share):
    made, away = observer(speed=reported), 0.001
    made.take(away, reported, PERIOD, None, NAN, NAN)
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
    made.take(part * speed * gap * PERIOD, NAN, gap * PERIOD, None, NAN, NAN)
    assert made.t == pytest.approx(sampled * PERIOD, rel=1e-9)


@pytest.mark.parametrize(("gear", "step"), [(1.0, 25.0 / 65535.0), (5.0, 5.0 / 65535.0)])
def test_finest_step_where_no_range_is_known(gear, step):
    assert encoder_step(axis("wheel", counts=None, ranges={}, gear=gear)) == pytest.approx(step)


# -- stuck encoders: steps of 1 rad and a torque limit of 10 N m ---------------------------------


def frozen(speed, dt, reports, known=None, watch=None):
    """Number of reports of the same position until it is noticed, or None."""
    watch = watch or Watch(1.0, 10.0)
    watch.look(0.0, speed, known, NAN, NAN, 0.0, 0.0)
    for count in range(1, reports + 1):
        if watch.look(0.0, speed, known, NAN, NAN, count * dt, dt):
            return count
    return None


@pytest.mark.parametrize(
    ("speed", "dt", "noticed"),
    [
        (240.0, 0.01, None),  # in 20 ms it would come to rest within 4.8 steps
        (260.0, 0.01, 7),  # 5.2 steps (1 - exp(-t / 20 ms)) exceed 5 after 65 ms
        (-260.0, 0.01, 7),
        (1e5, 1.0, 3),  # but never before the third report
    ],
)
def test_a_position_that_repeats_belies_a_speed(speed, dt, noticed):
    assert frozen(speed, dt, 100) == noticed


@pytest.mark.parametrize(("speed", "noticed"), [(19.8, False), (20.6, True), (-20.6, True)])
def test_a_slow_axis_should_have_moved_by_a_quarter_second_of_its_speed(speed, noticed):
    # Without load; the expected speed decays within 0.25 s: 5 steps for 20 / s.
    watch, dt = Watch(1.0, 10.0), 0.001
    for k in range(6000):
        watch.look(0.5 + k, speed, 0.0, NAN, NAN, k * dt, dt)
    found = frozen(speed, dt, 3000, 0.0, watch)
    assert (found is not None) == noticed


def test_speed_is_averaged_over_its_time_constant():
    watch, dt = Watch(1.0, 10.0), 0.001
    for k in range(150):
        watch.look(float(k), 8.0, 0.0, NAN, NAN, k * dt, dt)
    assert watch._average == pytest.approx(8.0 * (1.0 - (1.0 - dt / 0.15) ** 150), rel=1e-9)
    # The slow observer has both poles at 10 / s: 1 - (1 - x) exp(-x) of the speed, x = 10 t.
    assert watch._speed == pytest.approx(8.0 * (1.0 - (1.0 - 1.5) * math.exp(-1.5)), rel=0.01)


@pytest.mark.parametrize(
    ("silence", "change", "noticed"),
    [(0.101, 0.11, True), (0.099, 0.11, False), (0.101, 0.09, False), (0.101, -0.11, True)],
)
def test_a_report_that_repeats_belies_a_torque_that_changes(silence, change, noticed):
    watch = Watch(1.0, 10.0)
    watch.look(0.0, 0.0, None, 1.0, 1.0, 0.0, 0.0)
    watch.look(0.0, 0.0, None, 2.0, 2.0, 0.01, 0.01)  # its torque changes
    found = watch.look(0.0, 0.0, None, 2.0, 2.0 + change, 0.01 + silence, silence)
    assert found == noticed


@pytest.mark.parametrize(
    ("average", "known", "load", "slower"),
    [
        (1.0, -2.0, 0.0, 2.0),
        (-1.0, 2.0, 0.0, 2.0),  # it brakes against the motion, whichever way that is
        (1.0, 3.0, 0.0, 0.0),
        (-1.0, -3.0, 0.0, 0.0),
        (1.0, -2.0, 0.5, 2.0),  # unmodelled forces may brake too
        (1.0, -2.0, -0.5, 3.0),
        (1.0, -2000.0, 0.0, 500.0),
    ],
)
def test_the_expected_distance_includes_the_braking_of_the_model(average, known, load, slower):
    watch, dt = Watch(1.0, 10.0), 0.01
    watch._average, watch._slow, watch._load = average, 5.0, load
    watch._extend(known, dt)
    left = max(5.0 - slower * dt - 5.0 * dt / 0.25, 0.0)
    assert watch._slow == pytest.approx(left)
    assert watch._way == pytest.approx(left * dt)
