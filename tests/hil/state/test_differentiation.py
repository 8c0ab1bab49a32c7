"""Tracking observers: exact at steady speed, late by a known time, deaf to nonsense."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hil.drives.feedback import Feedback
from hil.state._differentiation import (
    Differentiator,
    Observer,
    encoder_step,
    velocity_delay,
)
from tests.hil._estimated import COUNTS, PERIOD, axis

STEP = 2.0 * math.pi / COUNTS
ANY = st.floats(allow_nan=True, allow_infinity=True)


class Line:
    """One axis and its reports."""

    def __init__(self, bandwidth=25.0, latency=0.0, use_reported=True, **others):
        self.axis = axis("wheel", **others)
        self.joints = Differentiator([self.axis], bandwidth, latency, use_reported)
        self.feedback = Feedback(1)

    def report(self, y, t, speed=math.nan, a=None, now=None):
        feedback = self.feedback
        feedback.position[0], feedback.time[0] = y, t
        feedback.velocity[0] = speed
        feedback.count[0] += 1
        self.predict(t if now is None else now, a)

    def predict(self, now, a=None):
        known = None if a is None else np.array([a])
        self.joints.update(self.feedback, now, known)

    @property
    def position(self):
        return float(self.joints.position[0])

    @property
    def velocity(self):
        return float(self.joints.velocity[0])

    @property
    def lost(self):
        return bool(self.joints.lost[0])

    @property
    def implausible(self):
        return int(self.joints.implausible[0])


def rounded(y):
    return np.round(y / STEP) * STEP


@pytest.mark.parametrize("jitter", [0.0, 0.9])
@pytest.mark.parametrize("bandwidth", [5.0, 25.0, 60.0])
def test_a_steady_speed_is_followed_without_error(bandwidth, jitter):
    line, rng, t = Line(bandwidth), np.random.default_rng(1), 0.0
    while t < 2.0:
        line.report(1.0 + 3.0 * t, t)
        last = t
        t += PERIOD * (1.0 + jitter * rng.uniform(-1.0, 1.0))
    assert line.velocity == pytest.approx(3.0, abs=1e-6)
    assert line.position == pytest.approx(1.0 + 3.0 * last, abs=1e-6)


@pytest.mark.parametrize("period", [1e-3, 4e-3, 10e-3])
@pytest.mark.parametrize("bandwidth", [5.0, 25.0, 60.0])
def test_delay_is_the_one_that_is_said(bandwidth, period):
    # Under a steady acceleration the velocity is that of some time ago.
    line, a = Line(bandwidth), 2.0
    times = np.arange(0.0, 2.0, period)
    for t in times:
        line.report(0.5 * a * t**2, t)
    late = times[-1] - line.velocity / a
    assert late == pytest.approx(velocity_delay(bandwidth, period), rel=1e-6)
    assert velocity_delay(bandwidth, 1e-6) == pytest.approx(1.0 / (math.pi * bandwidth), rel=1e-3)


def test_a_known_acceleration_is_not_late():
    line, a = Line(), 2.0
    for t in np.arange(0.0, 1.0, PERIOD):
        line.report(0.5 * a * t**2, t, a=a)
        assert line.velocity == pytest.approx(a * t, abs=1e-9)
        assert line.position == pytest.approx(0.5 * a * t**2, abs=1e-9)


def test_only_what_is_unknown_of_an_acceleration_is_late():
    line, a = Line(), 2.0
    times = np.arange(0.0, 1.0, PERIOD)
    for t in times:
        line.report(0.5 * a * t**2, t, a=0.75 * a)
    late = times[-1] - line.velocity / a
    assert late == pytest.approx(0.25 * velocity_delay(25.0, PERIOD), rel=1e-6)


def swinging(t):
    """A joint that swings through 1 rad: position, velocity, acceleration."""
    rate = 2.0
    return math.sin(rate * t), rate * math.cos(rate * t), -(rate**2) * math.sin(rate * t)


def errors_of_velocity(has_model=False, reports=False, step=STEP, **options):
    line, errors = Line(**options), []
    for t in np.arange(0.0, 20.0, PERIOD):
        y, w, a = swinging(t)
        speed = np.round(w / 0.022) * 0.022 if reports else math.nan
        line.report(np.round(y / step) * step, t, speed, a=a if has_model else None)
        errors.append(line.velocity - w)
    return np.array(errors[100:])


def test_noise_is_far_below_that_of_differences():
    times = np.arange(0.0, 20.0, PERIOD)
    positions = rounded(np.sin(2.0 * times))
    true = 2.0 * np.cos(2.0 * times)

    def differenced(cycles):
        """Error of differences over some cycles, and the time by which they are late."""
        slopes = (positions[cycles:] - positions[:-cycles]) / (cycles * PERIOD)
        middle = true[:-cycles] + (true[cycles:] - true[:-cycles]) / 2.0
        return float(np.std(slopes - middle)), cycles * PERIOD / 2.0

    plain, _ = differenced(1)
    delay = velocity_delay(25.0, PERIOD)
    long, late = differenced(6)
    assert late > delay
    with_model = errors_of_velocity(has_model=True)
    assert with_model.std() < plain / 5.0
    # As little noise as differences over so many cycles that they are later than the observer,
    # of which nothing is late when the acceleration is known.
    assert with_model.std() < 1.1 * long
    assert abs(errors_of_velocity(has_model=True)).max() < 0.12
    # Without it, the error is the acceleration times the delay.
    assert errors_of_velocity().std() == pytest.approx(
        math.hypot(with_model.std(), delay * 4.0 / math.sqrt(2.0)), rel=0.15
    )


def test_velocities_that_drives_report_are_better_used_than_not():
    fine = 25.0 / 65535.0  # of an MIT drive, whose velocities come in steps of 0.022 rad/s
    neither = errors_of_velocity(step=fine, counts=0).std()
    unused = errors_of_velocity(step=fine, counts=0, reports=True, use_reported=False).std()
    used = errors_of_velocity(step=fine, counts=0, reports=True).std()
    alone = 0.022 / math.sqrt(12.0)
    assert unused == pytest.approx(neither, rel=1e-9)
    assert used < 1.1 * alone
    assert used < 0.3 * neither


def test_rounding_of_a_reported_velocity_does_not_stay():
    # At a steady creep the drive reports zero velocity, but its positions change.
    line, fine = Line(counts=0), 25.0 / 65535.0
    found = []
    for k in range(2000):
        line.report(np.round(0.01 * k * PERIOD / fine) * fine, k * PERIOD, speed=0.0)
        found.append(line.velocity)
    assert np.mean(found[500:]) == pytest.approx(0.01, rel=0.02)
    assert np.std(found[500:]) < 0.005


def test_an_absurd_reported_velocity_is_not_used():
    line = Line()
    for k in range(500):
        line.report(0.1 * k * PERIOD, k * PERIOD, speed=1e6 if k % 7 else -math.inf)
    assert line.velocity == pytest.approx(0.1, abs=1e-6)


def test_wheels_count_turns():
    line = Line()
    for k in range(6000):
        line.report(rounded(9.0 * k * PERIOD), k * PERIOD)
    assert line.position == pytest.approx(9.0 * 5999 * PERIOD, abs=STEP)
    assert line.velocity == pytest.approx(9.0, abs=0.1)
    assert line.implausible == 0


def test_reports_are_older_than_their_stamp_by_the_latency():
    line = Line(latency=2e-3)
    for k in range(200):
        line.report(3.0 * k * PERIOD, k * PERIOD + 2e-3, now=k * PERIOD + 3e-3)
    assert line.position == pytest.approx(3.0 * (199 * PERIOD + 3e-3), abs=1e-9)
    assert float(line.joints.age[0]) == pytest.approx(3e-3)


def test_a_cycle_without_report_is_bridged():
    line = Line()
    for k in range(400):
        if k % 3:
            line.report(2.0 * k * PERIOD, k * PERIOD)
        else:
            line.predict(k * PERIOD)
        if k > 150:
            assert line.position == pytest.approx(2.0 * k * PERIOD, abs=1e-6)


def test_before_the_first_report_the_state_is_unknown():
    line = Line()
    line.predict(1.0)
    assert math.isnan(line.position)
    assert line.velocity == 0.0
    assert line.joints.age[0] == math.inf
    assert not line.joints.ready


def test_jumps_are_rejected_and_the_axis_continues():
    line = Line()
    for k in range(400):
        y = k * PERIOD
        line.report(y + (1.0 if k == 300 else 0.0), k * PERIOD)
        if k > 100:
            assert line.position == pytest.approx(k * PERIOD, abs=1e-6)
    assert line.implausible == 1
    assert not line.lost


def test_an_axis_that_jumped_forever_is_lost_until_reset():
    line = Line()
    for k in range(100):
        line.report(0.0, k * PERIOD)
    for k in range(100, 102):
        line.report(2.0, k * PERIOD)
        assert not line.lost
    for k in range(102, 2000):
        line.report(2.0, k * PERIOD)
        assert line.lost
    assert line.position == pytest.approx(0.0, abs=1e-9)
    assert line.velocity == 0.0
    line.joints.reset()
    assert not line.lost
    line.report(2.0, 9.0)
    assert line.position == pytest.approx(2.0)


@pytest.mark.parametrize("speed", [3.0, 9.9])
def test_what_speed_allows_is_no_jump(speed):
    # From rest to full speed within a cycle, which no motor does, back and forth.
    line, y, rng = Line(), 0.0, np.random.default_rng(2)
    for k in range(1000):
        y += speed * PERIOD * (1 if (k // 100) % 2 else -1) * (0.8 + 0.2 * rng.uniform())
        line.report(rounded(y), k * PERIOD)
    assert line.implausible == 0
    assert line.velocity == pytest.approx(speed * 0.9, rel=0.15)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("which", ["position", "time"])
def test_invalid_numbers_are_rejected(which, value):
    line = Line()
    for k in range(100):
        bad = k == 50
        y, t = k * PERIOD, k * PERIOD
        if bad and which == "position":
            y = value
        line.report(y, value if bad and which == "time" else t, now=t)
    assert line.implausible + line.joints.repeated[0] >= (value != math.inf or which == "position")
    assert line.position == pytest.approx(99 * PERIOD, abs=1e-4)


def test_a_sample_that_is_not_later_is_no_news():
    line = Line()
    for k in range(100):
        line.report(k * PERIOD, k * PERIOD)
    for _ in range(5):
        line.report(99 * PERIOD, 99 * PERIOD, now=0.4)
        line.report(90 * PERIOD, 90 * PERIOD, now=0.4)
    assert line.joints.repeated[0] == 10
    assert line.velocity == pytest.approx(1.0, abs=1e-6)
    assert line.implausible == 0


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(ANY, ANY, ANY, ANY, st.floats(0.0, 1.0)), min_size=1, max_size=30))
def test_whatever_is_reported_estimates_stay_finite(reports):
    line, now = Line(), 10.0
    for k in range(20):
        line.report(0.01 * k, 9.9 + 5e-3 * k)
    for y, t, speed, a, later in reports:
        now += later
        line.report(y, t, speed, a, now)
        assert math.isfinite(line.position)
        assert math.isfinite(line.velocity)


# -- reports that cannot be true ------------------------------------------------------------------


def test_smallest_steps():
    assert encoder_step(axis("a", counts=1000, gear=5.0)) == pytest.approx(2 * math.pi / 5000)
    ranges = {"position": (-10.0, 10.0)}
    assert encoder_step(axis("a", counts=0, ranges=ranges)) == pytest.approx(20.0 / 65535.0)
    assert 0.0 < encoder_step(axis("a", counts=0, gear=2.0)) < 1e-3


@pytest.mark.parametrize("speed", [3.0, -3.0, 0.0])
def test_reports_that_waited_through_a_stall_are_no_leap(speed):
    """The first report after a stall is as old as the stall, and stamped as if it were new."""
    observer = Observer(axis("wheel", speed_limit=10.0), 25.0, PERIOD)
    step = 2.0 * np.pi / COUNTS

    def take(t, stamp):
        y = step * round(speed * t / step)
        return observer.take(y, np.nan, stamp, 0.0)

    for k in range(200):
        assert take(k * PERIOD, k * PERIOD)
    end, stall = 199 * PERIOD, 5 * PERIOD
    assert take(end + PERIOD, end + stall)  # it waited
    for k in range(1, 20):
        assert take(end + stall + k * PERIOD, end + stall + k * PERIOD - 0.5e-3)
        assert abs(observer.w - speed) < 0.6  # of 3 rad/s; the encoder alone makes 0.3
        assert abs(observer.x - speed * observer.t) < 0.02
    assert observer.implausible == observer.repeated == 0


def test_an_axis_that_stops_in_a_gap_is_seen_to_stop():
    observer = Observer(axis("wheel", speed_limit=10.0), 25.0, PERIOD)
    for k in range(200):
        observer.take(3.0 * k * PERIOD, np.nan, k * PERIOD, 0.0)
    stopped, t = 3.0 * 201 * PERIOD, 199 * PERIOD
    for k in range(5, 40):  # braked without anyone knowing of it
        observer.take(stopped, np.nan, t + k * PERIOD, None)
    assert abs(observer.w) < 0.05
    assert abs(observer.x - stopped) < 1e-3
    assert observer.t == t + 39 * PERIOD
