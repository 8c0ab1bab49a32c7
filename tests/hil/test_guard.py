"""The guard: its torque is finite and within the torque and rate limits, or it is a stop."""

import math
import tracemalloc
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hil.errors import RigFileError
from hil.guard import (
    Flag,
    Limits,
    Reason,
    Verdict,
    brake,
    hold,
    judge,
    largest_speed,
    policy_torque,
)
from hil.rig import Axis, Policy

PERIOD = 0.004


def axis(name="joint", **changes):
    values = {
        "name": name,
        "drive": "mit",
        "node": 1,
        "torque_limit": 10.0,
        "torque_rate_limit": 500.0,
        "speed_limit": 4.0,
        "position_limits": (-2.0, 2.0),
        "power_limit": 30.0,
        "damping": 2.0,
        "stiffness": 50.0,
    }
    return Axis(**(values | changes))


def limits(size=3, largest_age=None, **changes):
    return Limits.from_axes([axis(f"j{i}", **changes) for i in range(size)], PERIOD, largest_age)


def wheels(size=3, **changes):
    """Limits without ends, power bound or a rate that would be felt."""
    free = {
        "position_limits": (-np.inf, np.inf),
        "power_limit": np.inf,
        "torque_rate_limit": 1e9,
    }
    return limits(size, **(free | changes))


N = 3
FRESH = np.full(N, 0.001)
ZERO = np.zeros(N)
NASTY = [math.nan, math.inf, -math.inf]
FLOATS = st.floats(allow_nan=True, allow_infinity=True, allow_subnormal=True)
SPECIAL = np.array(
    [math.nan, -math.nan]
    + [s * x for s in (1.0, -1.0) for x in (math.inf, 0.0, 5e-324, 1e-300, 1.0, 1e18, 1e308)]
)


def verdict_of(bounds, demand=ZERO, previous=ZERO, q=ZERO, v=ZERO, ages=FRESH, period=PERIOD):
    out = np.full(bounds.size, 77.0)
    verdict = judge(demand, previous, q, v, ages, bounds, period, out)
    return verdict, out


def with_entry(array, index, value):
    changed = array.copy()
    changed[index] = value
    return changed


# -- limits ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("torque_limit", x) for x in (0.0, -1.0, math.nan, math.inf)),
        *(("torque_rate_limit", x) for x in (0.0, -1.0, math.nan, math.inf, 1e-16)),
        *(("speed_limit", x) for x in (0.0, -1.0, math.nan, math.inf)),
        *(("power_limit", x) for x in (0.0, -1.0, math.nan)),
        *(("damping", x) for x in (-1.0, math.nan, math.inf)),
        *(("stiffness", x) for x in (-1.0, math.nan, math.inf)),
        ("position_limits", (1.0, 1.0)),
        ("position_limits", (1.0, -1.0)),
        ("position_limits", (math.nan, 1.0)),
        ("position_limits", (-1.0, math.nan)),
        ("position_limits", (math.inf, math.inf)),
        ("position_limits", (1.0, math.nextafter(1.0, 2.0))),
    ],
)
def test_a_limit_that_bounds_nothing_is_refused_by_name(name, value):
    axes = [axis("fine"), axis("elbow", **{name: value})]
    if name == "position_limits" and value == (1.0, math.nextafter(1.0, 2.0)):
        Limits.from_axes(axes, PERIOD)  # narrow, and still a range
        return
    with pytest.raises(RigFileError, match="elbow"):
        Limits.from_axes(axes, PERIOD)


@pytest.mark.parametrize(("share", "fits"), [(0.9, False), (1.1, True)])
def test_a_step_of_the_torque_is_above_eight_roundings_of_its_limit(share, fits):
    step = share * 8.0 * 2.0**-52 * 10.0
    axes = [axis("elbow", torque_limit=10.0, torque_rate_limit=step / PERIOD)]
    if fits:
        Limits.from_axes(axes, PERIOD)
    else:
        with pytest.raises(RigFileError, match="above the rounding error"):
            Limits.from_axes(axes, PERIOD)


@pytest.mark.parametrize("period", [0.0, -1.0, math.nan, math.inf])
def test_an_invalid_period_is_rejected(period):
    with pytest.raises(RigFileError, match="period"):
        Limits.from_axes([axis()], period)
    with pytest.raises(RigFileError, match="largest_age"):
        Limits.from_axes([axis()], PERIOD, period)


def test_limits_of_wrong_length_are_refused():
    good = {
        name: np.ones(2)
        for name in ("torque", "rate", "speed", "high", "power", "damping", "stiffness")
    }
    Limits(low=-np.ones(2), period=PERIOD, largest_age=0.1, **good)
    with pytest.raises(RigFileError, match=r"speed.*shape \(2,\)"):
        Limits(low=-np.ones(2), period=PERIOD, largest_age=0.1, **(good | {"speed": np.ones(3)}))


def test_limits_are_fixed_once_made():
    bounds = limits()
    with pytest.raises(ValueError, match="read-only"):
        bounds.torque[0] = 1e9
    with pytest.raises(AttributeError):
        bounds.torque = np.full(N, 1e9)


def test_limits_take_every_number_of_the_axes_in_their_order():
    axes = [
        axis(
            f"j{i}",
            torque_limit=1.0 + i,
            torque_rate_limit=20.0 + i,
            speed_limit=3.0 + i,
            position_limits=(-4.0 - i, 5.0 + i),
            power_limit=6.0 + i,
            damping=7.0 + i,
            stiffness=8.0 + i,
        )
        for i in range(3)
    ]
    bounds = Limits.from_axes(axes, PERIOD)
    ramp = np.arange(3.0)
    assert bounds.torque.tolist() == (1 + ramp).tolist()
    assert bounds.rate.tolist() == (20 + ramp).tolist()
    assert bounds.speed.tolist() == (3 + ramp).tolist()
    assert bounds.low.tolist() == (-4 - ramp).tolist()
    assert bounds.high.tolist() == (5 + ramp).tolist()
    assert bounds.power.tolist() == (6 + ramp).tolist()
    assert bounds.damping.tolist() == (7 + ramp).tolist()
    assert bounds.stiffness.tolist() == (8 + ramp).tolist()
    assert bounds.names == ("j0", "j1", "j2")
    assert (bounds.size, bounds.period, bounds.largest_age) == (3, PERIOD, 8 * PERIOD)


# -- stops -------------------------------------------------------------------------------------


@pytest.mark.parametrize("index", range(N))
@pytest.mark.parametrize("value", NASTY)
@pytest.mark.parametrize("name", ["demand", "q", "v"])
def test_one_number_that_is_not_finite_stops_every_axis(name, value, index):
    demand = np.full(N, 1.0)
    given_ = {"demand": demand, name: with_entry(demand * 0.1, index, value)}
    verdict, out = verdict_of(limits(), **given_)
    assert verdict == Verdict(Reason.NOT_FINITE, Flag.NONE, index)
    assert verdict.stops
    assert out.tolist() == [0.0] * N


@pytest.mark.parametrize("index", range(N))
@pytest.mark.parametrize(
    ("age", "stops"),
    [
        (0.0, False),
        (8 * PERIOD, False),
        (8.01 * PERIOD, True),
        (-PERIOD, False),  # the report came in after the start of the cycle
        (-1.01 * PERIOD, True),
        *((x, True) for x in NASTY),
    ],
)
def test_old_missing_and_future_reports_stop(age, stops, index):
    verdict, out = verdict_of(limits(), np.ones(N), ages=with_entry(FRESH, index, age))
    assert verdict.stops == stops
    if stops:
        assert verdict == Verdict(Reason.STALE, Flag.NONE, index)
        assert out.tolist() == [0.0] * N
    else:
        assert out.tolist() == [1.0] * N


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_speeds_above_limit_and_margin_stop(sign):
    edge = 4.0 * (1.0 + 0.2)
    verdict, _ = verdict_of(limits(), v=with_entry(ZERO, 1, sign * edge))
    assert not verdict.stops
    verdict, _ = verdict_of(limits(), v=with_entry(ZERO, 1, sign * edge * (1 + 1e-12)))
    assert verdict == Verdict(Reason.OVERSPEED, Flag.NONE, 1)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_positions_outside_range_and_margin_stop(sign):
    # 5 % of a range of 4 rad would be 0.2 rad: the margin is 0.1 rad at most.
    verdict, _ = verdict_of(limits(), q=with_entry(ZERO, 2, sign * 2.0999))
    assert not verdict.stops
    verdict, _ = verdict_of(limits(), q=with_entry(ZERO, 2, sign * 2.1001))
    assert verdict == Verdict(Reason.OUT_OF_RANGE, Flag.NONE, 2)
    narrow = limits(position_limits=(-0.2, 0.2))
    verdict, _ = verdict_of(narrow, q=with_entry(ZERO, 2, sign * 0.2199))
    assert not verdict.stops
    verdict, _ = verdict_of(narrow, q=with_entry(ZERO, 2, sign * 0.2201))
    assert verdict.reason is Reason.OUT_OF_RANGE


def test_wheels_have_no_ends():
    verdict, out = verdict_of(wheels(), np.ones(N), q=np.array([1e9, -1e9, 1e300]))
    assert verdict == Verdict(Reason.NONE)
    assert out.tolist() == [1.0] * N


@pytest.mark.parametrize("name", ["demand", "previous", "q", "v", "ages"])
@pytest.mark.parametrize("shape", [(N - 1,), (N + 1,), (0,), (1, N), (N, 1), ()])
def test_vectors_of_wrong_shape_stop(name, shape):
    verdict, out = verdict_of(limits(), **{name: np.zeros(shape)})
    assert verdict == Verdict(Reason.WRONG_SHAPE)
    assert out.tolist() == [0.0] * N


@pytest.mark.parametrize("shape", [(N - 1,), (N + 1,), (1, N)])
def test_a_result_of_wrong_shape_stops(shape):
    out = np.ones(shape)
    verdict = judge(ZERO, ZERO, ZERO, ZERO, FRESH, limits(), PERIOD, out)
    assert verdict.reason is Reason.WRONG_SHAPE
    assert not out.any()


@pytest.mark.parametrize("period", [0.0, -PERIOD, math.nan, math.inf, 1.1])
def test_an_invalid_period_stops(period):
    verdict, out = verdict_of(limits(), np.ones(N), period=period)
    assert verdict == Verdict(Reason.CLOCK)
    assert not out.any()


@pytest.mark.parametrize(("period", "stops"), [(1.0, False), (math.nextafter(1.0, 2.0), True)])
def test_the_longest_period_is_a_second(period, stops):
    verdict, _ = verdict_of(limits(), np.ones(N), period=period)
    assert verdict.reason is (Reason.CLOCK if stops else Reason.NONE)
    arrays, out = (np.ones(N), ZERO, FRESH), np.zeros(N)
    verdict = policy_torque(Policy.HOLD, Reason.LOST, 1, 5, *arrays, limits(), period, out)
    assert verdict.reason is (Reason.CLOCK if stops else Reason.NONE)
    assert out.any() != stops


@pytest.mark.parametrize("patience", [0, 3])
@pytest.mark.parametrize("latency", [0.0, 0.01])
def test_a_report_of_a_rig_is_too_old_after_its_latency_patience_and_two_cycles(patience, latency):
    rig = SimpleNamespace(
        loop=SimpleNamespace(period=PERIOD),
        policies=SimpleNamespace(max_consecutive_faults=patience),
        estimator=SimpleNamespace(latency=latency),
        axes=[axis(f"j{i}") for i in range(N)],
        transmission=None,
    )
    bounds, oldest = Limits.from_rig(rig), latency + (patience + 2) * PERIOD
    verdict, _ = verdict_of(bounds, ages=np.full(N, oldest - 1e-6))
    assert not verdict.stops
    verdict, _ = verdict_of(bounds, ages=np.full(N, oldest + 1e-6))
    assert verdict.reason is Reason.STALE


@pytest.mark.parametrize("edge", [2.0 + 0.1, -2.0 - 0.1])
def test_the_margin_outside_the_range_belongs_to_it(edge):
    verdict, _ = verdict_of(limits(), q=with_entry(ZERO, 0, edge))
    assert not verdict.stops
    beyond = math.nextafter(edge, 2 * edge)
    verdict, _ = verdict_of(limits(), q=with_entry(ZERO, 0, beyond))
    assert verdict.reason is Reason.OUT_OF_RANGE


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_torque_on_its_bound_was_not_changed(sign):
    # By torque, speed, power, end of the range and rate limit, in numbers without rounding.
    free = wheels(1, power_limit=20.0)
    for bounds, demand, before, q, v in (
        (free, 10.0, 10.0, 0.0, 0.0),
        (free, 10.0, 10.0, 0.0, 2.0),
        (wheels(1, position_limits=(-1.0, 1.0), damping=0.0), 5.0, 5.0, 0.95, 0.0),
        (wheels(1), 10.0, 10.0, 0.0, 4.0),
    ):
        arrays = [sign * np.array([x]) for x in (demand, before, q, v)]
        verdict, out = verdict_of(bounds, *arrays, ages=np.full(1, 0.001))
        if q:  # (high - q) / zone is rounded, and so is the bound
            demand = 10.0 * ((1.0 - q) / (0.05 * 2.0))
            arrays[0] = arrays[1] = sign * np.array([demand])
            verdict, out = verdict_of(bounds, *arrays, ages=np.full(1, 0.001))
        assert (verdict.flags, out[0]) == (Flag.NONE, sign * demand)


@pytest.mark.parametrize("v", [4.1, 4.2, 4.3])
def test_a_torque_on_the_bound_that_fades_with_speed_was_not_changed(v):
    demand, fast = np.full(N, 10.0), np.full(N, v)
    clipped, bound = verdict_of(wheels(), demand, demand, v=fast)
    verdict, out = verdict_of(wheels(), bound, bound, v=fast)
    assert (clipped.flags, verdict.flags) == (Flag.CLIPPED_SPEED, Flag.NONE)
    assert out.tolist() == bound.tolist()


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_torque_a_whole_step_away_was_not_changed(sign):
    _, farthest = verdict_of(limits(), np.full(N, sign * 9.0))
    verdict, out = verdict_of(limits(), farthest)
    assert (verdict.flags, out.tolist()) == (Flag.NONE, farthest.tolist())
    verdict, _ = verdict_of(limits(), np.nextafter(farthest, sign * 9.0))
    assert verdict.flags == Flag.CLIPPED_RATE
    # The step is reduced by the rounding error: a few units in the last place of the limit.
    missing = 500.0 * PERIOD - abs(farthest[0])
    assert 10.0 * 2.0**-52 <= missing <= 10.0 * 6 * 2.0**-52


# -- limits, in numbers ------------------------------------------------------------------------


def test_a_demand_within_all_limits_passes_bit_by_bit():
    demand = np.array([0.1, -0.2, 1 / 3])
    verdict, out = verdict_of(limits(), demand, q=np.full(N, 0.5), v=np.array([1.0, -2.0, 3.0]))
    assert verdict == Verdict(Reason.NONE, Flag.NONE, -1)
    assert not verdict.stops
    assert out.tobytes() == demand.tobytes()


def test_torque_limit():
    verdict, out = verdict_of(wheels(), np.array([12.0, -1e300, 10.0]))
    assert verdict.flags == Flag.CLIPPED_TORQUE
    assert out.tolist() == [10.0, -10.0, 10.0]


def test_rate_limit_against_the_torque_sent_before():
    step = 500.0 * PERIOD
    previous = np.array([1.0, 1.0, -9.5])
    verdict, out = verdict_of(limits(), np.array([9.0, -9.0, -99.0]), previous)
    assert verdict.flags == Flag.CLIPPED_TORQUE | Flag.CLIPPED_RATE
    np.testing.assert_allclose(out, [1.0 + step, 1.0 - step, -10.0], rtol=1e-14)


@pytest.mark.parametrize(("before", "counts_as"), [(99.0, 10.0), (-1e300, -10.0), (math.nan, 0)])
def test_a_previous_torque_that_was_never_sent_is_put_right(before, counts_as):
    step = 500.0 * PERIOD
    previous = with_entry(ZERO, 0, before)
    verdict, out = verdict_of(limits(), np.zeros(N), previous)
    assert not verdict.stops
    assert out[0] == pytest.approx(math.copysign(max(abs(counts_as) - step, 0.0), counts_as))


def test_power_limit_bounds_both_signs():
    demand = np.array([10.0, -10.0, 10.0])
    verdict, out = verdict_of(limits(), demand, demand, v=np.array([4.0, 4.0, 2.9]))
    assert verdict.flags == Flag.CLIPPED_POWER | Flag.CLIPPED_RATE  # both fall as fast as allowed
    np.testing.assert_allclose(out, [8.0, -8.0, 10.0])
    verdict, out = verdict_of(limits(), demand, out, v=np.array([4.0, 4.0, 2.9]))
    np.testing.assert_allclose(out, [7.5, -7.5, 10.0])
    assert verdict.flags == Flag.CLIPPED_POWER


@pytest.mark.parametrize(
    ("v", "bound"), [(4.0, 10.0), (4.1, 7.5), (4.2, 5.0), (4.4, 0.0), (4.7, 0.0)]
)
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_above_the_speed_limit_accelerating_torque_fades_and_braking_passes(v, bound, sign):
    demand = sign * np.array([10.0, -10.0, 0.0])
    verdict, out = verdict_of(wheels(), demand, demand, v=np.full(N, sign * v))
    np.testing.assert_allclose(out, sign * np.array([bound, -10.0, 0.0]), atol=1e-12)
    assert verdict.flags == (Flag.CLIPPED_SPEED if bound < 10.0 else Flag.NONE)


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize(
    ("q", "v", "demand", "expected"),
    [
        (1.89, 1.0, 10.0, 10.0),  # before the zone
        (1.95, 0.0, 10.0, 5.0),  # half of it is left
        (1.95, 1.0, 10.0, 4.0),  # and half of the damping
        (1.95, 0.0, 3.0, 3.0),  # within the rest of the range
        (2.0, 0.0, 10.0, 0.0),
        (2.05, 0.0, 10.0, 0.0),
        (2.05, 1.0, 10.0, -2.0),  # past the end: braked
        (2.05, 1.0, -1.0, -2.0),  # braked more than asked for
        (2.05, 1.0, -10.0, -10.0),  # the way back is free
        (2.05, 0.0, -10.0, -10.0),
        (2.05, -1.0, -10.0, -10.0),
        (2.05, -1.0, 10.0, 10.0),  # moving inwards: outward torque is braking
    ],
)
def test_near_an_end_torque_that_pushes_further_out_is_bounded(q, v, demand, expected, sign):
    bounds = wheels(1, position_limits=(-2.0, 2.0))
    verdict, out = verdict_of(
        bounds,
        np.array([sign * demand]),
        np.zeros(1),
        np.array([sign * q]),
        np.array([sign * v]),
        FRESH[:1],
    )
    assert out[0] == pytest.approx(sign * expected, abs=1e-12)
    assert verdict.flags == (Flag.NEAR_END if expected != demand else Flag.NONE)


def test_a_joint_pushed_against_its_end_does_not_leave_its_range():
    bounds = limits(1, torque_rate_limit=2000.0, damping=4.0)
    q, v, torque = np.zeros(1), np.zeros(1), np.zeros(1)
    for _ in range(2000):
        verdict = judge(np.array([10.0]), torque, q, v, FRESH[:1], bounds, PERIOD, torque)
        assert not verdict.stops
        v += PERIOD * (torque - 10.0 * v)  # 1 kg m^2 with friction
        q += PERIOD * v
    assert 1.9 < q[0] < 2.05
    assert abs(v[0]) < 0.01


# -- properties --------------------------------------------------------------------------------


def plausible_limits(generator, size):
    """Random limits: some axes with ends, some with a bound of power."""
    axes = [
        axis(
            f"j{i}",
            torque_limit=10.0 ** generator.uniform(-2, 3),
            torque_rate_limit=10.0 ** generator.uniform(0, 4),
            speed_limit=10.0 ** generator.uniform(-1, 2),
            position_limits=(-generator.uniform(0.1, 5), generator.uniform(0.1, 5))
            if generator.random() < 0.6
            else (-math.inf, math.inf),
            power_limit=10.0 ** generator.uniform(-2, 3) if generator.random() < 0.5 else math.inf,
            damping=10.0 ** generator.uniform(-3, 3),
        )
        for i in range(size)
    ]
    return Limits.from_axes(axes, PERIOD)


def any_floats(generator, shape):
    """Random bit patterns, special values, and everything between denormal and huge."""
    bits = generator.integers(0, 2**64, shape, dtype=np.uint64).view(np.float64)
    decades = generator.choice([-1.0, 1.0], shape) * 10.0 ** generator.uniform(-320, 308, shape)
    special = generator.choice(SPECIAL, shape)
    kind = generator.integers(0, 3, shape)
    return np.where(kind == 0, bits, np.where(kind == 1, decades, special))


def cases(generator, bounds, rows):
    """Arguments of `judge`: half of the rows plausible, half with entries that are anything."""
    n = bounds.size
    low = np.where(np.isfinite(bounds.low), bounds.low - 0.1, -1e3)
    high = np.where(np.isfinite(bounds.high), bounds.high + 0.1, 1e3)
    columns = {
        "demand": generator.uniform(-3, 3, (rows, n)) * bounds.torque,
        "previous": generator.uniform(-1, 1, (rows, n)) * bounds.torque,
        "position": low + generator.uniform(0.05, 0.95, (rows, n)) * (high - low),
        "velocity": generator.uniform(-1.19, 1.19, (rows, n)) * bounds.speed,
        "ages": generator.uniform(-0.9, 7.9, (rows, n)) * PERIOD,
    }
    wild = generator.random(rows) < 0.5
    for name, column in columns.items():
        share = 0.5 if name == "previous" else 0.06
        replaced = wild[:, None] & (generator.random((rows, n)) < share)
        column[replaced] = any_floats(generator, (rows, n))[replaced]
    # demands that are anything, while the reports are fine: bounded, if finite
    also = generator.random(rows) < 0.2
    columns["demand"][also] = any_floats(generator, (rows, n))[also]
    return columns


def check_cases(seed, rows, batch=50_000):
    """Everything that is promised of `judge`, on random and special floats."""
    generator = np.random.default_rng(seed)
    stops = passes = changed = 0
    reasons = set()
    with np.errstate(all="ignore"):
        while stops + passes < rows:
            bounds = plausible_limits(generator, int(generator.integers(1, 7)))
            n = bounds.size
            count = min(batch, rows - stops - passes)
            columns = cases(generator, bounds, count)
            demand, previous, q, v, ages = columns.values()
            before = {name: column.tobytes() for name, column in columns.items()}
            out = np.full((count, n), np.nan)
            found = np.zeros(count, dtype=np.int64)
            flags = np.zeros(count, dtype=np.int64)
            for i in range(count):
                found[i], flags[i], _ = judge(
                    demand[i], previous[i], q[i], v[i], ages[i], bounds, PERIOD, out[i]
                )
            assert before == {name: column.tobytes() for name, column in columns.items()}

            # An independent implementation with NumPy: which rows must stop?
            bad = (
                ~((ages >= -PERIOD) & (ages <= bounds.largest_age))
                | ~np.isfinite(demand)
                | ~np.isfinite(q)
                | ~np.isfinite(v)
                | ~(np.abs(v) <= bounds.speed * (1 + 0.2))
            )
            zone = np.minimum(0.05 * (bounds.high - bounds.low), 0.1)
            bad |= ~((q >= bounds.low - zone) & (q <= bounds.high + zone))
            must_stop = bad.any(axis=1)
            np.testing.assert_array_equal(found != Reason.NONE, must_stop)

            assert np.isfinite(out).all()
            assert (np.abs(out) <= bounds.torque).all()
            assert not out[must_stop].any()
            sent = np.where(np.isfinite(previous), previous, 0.0)
            sent = np.clip(sent, -bounds.torque, bounds.torque)
            went = ~must_stop
            assert (np.abs(out - sent)[went] <= bounds.rate * PERIOD).all()
            same = went & (flags == 0)
            np.testing.assert_array_equal(out[same], demand[same])
            differs = (out != demand).any(axis=1)
            assert (flags[went & differs] != 0).all()
            # Where the rate limit did not bind, the power is bounded too.
            calm = went & ((flags & Flag.CLIPPED_RATE) == 0)
            power = np.abs(out * v)[calm]
            assert (power <= np.broadcast_to(bounds.power, (count, n))[calm] * (1 + 1e-12)).all()
            stops += int(must_stop.sum())
            passes += int(went.sum())
            changed += int((flags != 0).sum())
            reasons |= set(found.tolist())
    assert reasons >= {
        Reason.NONE,
        Reason.NOT_FINITE,
        Reason.STALE,
        Reason.OVERSPEED,
        Reason.OUT_OF_RANGE,
    }
    assert stops > rows / 10
    assert passes > rows / 10
    assert changed > rows / 20


def test_any_floats_in_bounded_floats_or_a_stop_out():
    check_cases(seed=8, rows=50_000, batch=5_000)


@pytest.mark.slow
def test_a_million_cases_of_any_floats():
    check_cases(seed=88, rows=1_000_000)


@given(
    st.floats(-2.09, 2.09),
    st.floats(-4.79, 4.79).filter(lambda v: v != 0.0),
    st.floats(0.0, 10.0),
    st.booleans(),
)
def test_braking_is_never_reduced(q, v, size, far):
    """Accident 13: torque against the motion passes at every position and speed."""
    bounds = limits(1, position_limits=(-1e6, 1e6) if far else (-2.0, 2.0), power_limit=1e6)
    torque = -math.copysign(size, v)
    verdict, out = verdict_of(
        bounds,
        np.array([torque]),
        np.array([torque]),
        np.array([q]),
        np.array([v]),
        FRESH[:1],
    )
    assert not verdict.stops
    assert out[0] * v <= 0.0
    assert abs(out[0]) >= size
    if abs(q) <= 1.9:
        assert out[0] == torque


@given(st.floats(-4.79, 4.79), st.floats(-10, 10), st.floats(-10, 10))
def test_torque_never_moves_away_from_demand_and_last_torque(v, demand, before):
    """Far from the ends, the result lies between the last torque and the law's, or zero."""
    _, out = verdict_of(
        limits(1), np.array([demand]), np.array([before]), np.zeros(1), np.array([v]), FRESH[:1]
    )
    assert min(demand, before, 0.0) <= out[0] <= max(demand, before, 0.0)


def test_the_result_may_be_written_over_an_argument():
    demand, previous = np.array([9.0, -9.0, 20.0]), np.array([1.0, 2.0, 3.0])
    verdict, expected = verdict_of(limits(), demand, previous)
    for target in (0, 1):
        arrays = [demand.copy(), previous.copy()]
        again = judge(*arrays, ZERO, ZERO, FRESH, limits(), PERIOD, arrays[target])
        assert again == verdict
        assert arrays[target].tolist() == expected.tolist()


@pytest.mark.extended
def test_nothing_is_left_allocated_by_many_cycles():
    bounds = limits()
    generator = np.random.default_rng(5)
    columns = cases(generator, bounds, 500)
    out = np.zeros(N)

    def cycles():
        for row in zip(*columns.values(), strict=True):
            judge(*row, bounds, PERIOD, out)
            brake(row[3], row[4], bounds, out)
            hold(row[2], row[2], row[3], row[4], bounds, out)

    cycles()
    tracemalloc.start()
    try:
        cycles()
        first, _ = tracemalloc.get_traced_memory()
        for _ in range(4):
            cycles()
        last, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert last - first < 2000


# -- torques of a stop -------------------------------------------------------------------------


def test_braking_is_joint_damping_within_limits():
    out = np.empty(N)
    bounds = limits(damping=4.0)
    brake(np.array([1.0, -2.0, 3.0]), FRESH, bounds, out)
    np.testing.assert_allclose(out, [-4.0, 8.0, -10.0])
    brake(np.array([4.0, -100.0, 0.0]), FRESH, bounds, out)
    np.testing.assert_allclose(out, [-7.5, 0.3, 0.0])  # 30 W


def test_holding_is_stiffness_and_damping_within_limits():
    out = np.empty(N)
    anchor = np.array([0.1, 0.1, 0.1])
    hold(np.array([0.0, 0.1, 1.0]), anchor, np.array([1.0, -1.0, 0.0]), FRESH, limits(), out)
    np.testing.assert_allclose(out, [3.0, 2.0, -10.0])


@pytest.mark.parametrize("value", NASTY)
@pytest.mark.parametrize("index", range(N))
def test_an_axis_without_usable_report_gets_no_torque_in_a_stop(index, value):
    v, q, anchor = np.ones(N), np.zeros(N), np.full(N, 0.1)
    out, expected = np.empty(N), np.empty(N)
    brake(v, FRESH, limits(), expected)
    expected[index] = 0.0
    for speed, ages in ((with_entry(v, index, value), FRESH), (v, with_entry(FRESH, index, value))):
        brake(speed, ages, limits(), out)
        assert out.tolist() == expected.tolist()
    hold(q, anchor, v, FRESH, limits(), expected)
    expected[index] = 0.0
    for arrays in (
        (with_entry(q, index, value), anchor, v, FRESH),
        (q, with_entry(anchor, index, value), v, FRESH),
        (q, anchor, with_entry(v, index, value), FRESH),
        (q, anchor, v, with_entry(FRESH, index, 1.0)),
    ):
        hold(*arrays, limits(), out)
        assert out.tolist() == expected.tolist()


@given(st.tuples(*(st.lists(FLOATS, min_size=N, max_size=N) for _ in range(4))))
def test_torques_of_a_stop_are_bounded_and_braking_takes_energy_out(vectors):
    q, anchor, v, ages = (np.array(x) for x in vectors)
    bounds, out = limits(), np.full(N, np.nan)
    for fresh in (ages, FRESH):
        brake(v, fresh, bounds, out)
        assert np.isfinite(out).all()
        assert (np.abs(out) <= bounds.torque).all()
        assert all(t * x <= 0.0 for t, x in zip(out, v, strict=True) if t != 0.0)
        assert all(
            abs(t) * abs(x) <= 30.0 * (1 + 1e-12) for t, x in zip(out, v, strict=True) if t != 0.0
        )
        hold(q, anchor, v, fresh, bounds, out)
        assert np.isfinite(out).all()
        assert (np.abs(out) <= bounds.torque).all()


def test_infinities_of_stiffness_and_damping_that_cancel_give_no_torque():
    bounds, out = limits(damping=1e308, stiffness=1e308), np.empty(N)
    hold(np.full(N, -100.0), ZERO, np.full(N, 100.0), FRESH, bounds, out)
    assert out.tolist() == [0.0] * N


@pytest.mark.parametrize("shape", [(N - 1,), (N + 1,), (1, N)])
def test_a_stop_with_vectors_of_wrong_shape_has_no_torque(shape):
    wrong = np.ones(shape)
    for arrays in ((wrong, FRESH), (ZERO, wrong)):
        out = np.ones(N)
        brake(*arrays, limits(), out)
        assert not out.any()
    for place in range(4):
        arrays = [np.ones(N), ZERO, np.ones(N), FRESH]
        arrays[place] = wrong
        out = np.ones(N)
        hold(*arrays, limits(), out)
        assert not out.any()


def test_the_largest_speed_is_a_share_and_unknown_if_one_is():
    bounds = limits()
    assert largest_speed(np.array([1.0, -3.0, 2.0]), FRESH, bounds) == 0.75
    for value in NASTY:
        assert math.isnan(largest_speed(with_entry(ZERO, 1, value), FRESH, bounds))
        assert math.isnan(largest_speed(ZERO, with_entry(FRESH, 1, value), bounds))
    assert math.isnan(largest_speed(ZERO, with_entry(FRESH, 1, 1.0), bounds))
    assert math.isnan(largest_speed(np.zeros(N + 1), FRESH, bounds))


# -- policies ----------------------------------------------------------------------------------


def policy_of(policy, failing, previous, v=ZERO, reason=Reason.LOST, ages=FRESH, patience=5):
    out = np.full(N, np.nan)
    verdict = policy_torque(
        policy, reason, failing, patience, previous, v, ages, limits(), PERIOD, out
    )
    return verdict, out


@pytest.mark.parametrize("policy", Policy)
@pytest.mark.parametrize("reason", [Reason.LOST, Reason.LATE])
@pytest.mark.parametrize("failing", [-1, 0, 1, 5, 6, 1000])
def test_no_policy_outlives_its_patience(policy, reason, failing):
    previous = np.array([1.0, -2.0, 3.0])
    verdict, out = policy_of(policy, failing, previous, reason=reason)
    if policy is Policy.STOP or not 1 <= failing <= 5:
        assert verdict == Verdict(reason)
        assert out.tolist() == [0.0] * N
    else:
        assert not verdict.stops
        assert verdict.flags == (Flag.HELD if policy is Policy.HOLD else Flag.DAMPED)


def test_holding_keeps_the_last_torque_within_limits():
    _, out = policy_of(Policy.HOLD, 1, np.array([1.0, -2.0, 30.0]))
    assert out.tolist() == [1.0, -2.0, 10.0]


def test_damping_brakes_no_faster_than_the_rate_limit():
    step = 500.0 * PERIOD
    v = np.array([1.0, -1.0, 0.0])
    _, out = policy_of(Policy.DAMP, 1, np.array([-1.0, -9.0, 0.5]), v)
    np.testing.assert_allclose(out, [-2.0, -9.0 + step, 0.0])


@given(
    st.sampled_from(list(Policy)),
    st.integers(-3, 9),
    st.tuples(*(st.lists(FLOATS, min_size=N, max_size=N) for _ in range(3))),
)
def test_policies_give_bounded_torque_or_a_stop(policy, failing, vectors):
    previous, v, ages = (np.array(x) for x in vectors)
    verdict, out = policy_of(policy, failing, previous, v, ages=ages)
    bounds = limits()
    assert np.isfinite(out).all()
    assert (np.abs(out) <= bounds.torque).all()
    if verdict.stops:
        assert not out.any()
    else:
        sent = np.clip(previous, -bounds.torque, bounds.torque)
        assert (np.abs(out - sent) <= bounds.rate * PERIOD).all()


@pytest.mark.parametrize("value", NASTY)
def test_a_non_finite_last_torque_cannot_be_held(value):
    verdict, out = policy_of(Policy.HOLD, 1, with_entry(ZERO, 1, value))
    assert verdict == Verdict(Reason.NOT_FINITE, Flag.NONE, 1)
    assert not out.any()


def test_policies_with_vectors_of_wrong_shape_stop():
    for place in range(3):
        arrays = [ZERO, ZERO, FRESH]
        arrays[place] = np.zeros(N + 1)
        out = np.ones(N)
        verdict = policy_torque(Policy.HOLD, Reason.LOST, 1, 5, *arrays, limits(), PERIOD, out)
        assert verdict.reason is Reason.WRONG_SHAPE
        assert not out.any()
