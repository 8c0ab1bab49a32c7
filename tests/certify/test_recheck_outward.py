"""Outward rounding against fractions, series against balls, B against exponentials."""

from fractions import Fraction

import flint
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from concur.certify import _recheck_outward as outward
from concur.certify._recheck_outward import Interval
from tests.certify._motions import error_map

numbers = st.floats(-1e30, 1e30, allow_subnormal=True)
pairs = st.tuples(numbers, numbers).map(sorted)


def holds(interval, value):
    return Fraction(float(interval.lo)) <= value <= Fraction(float(interval.hi))


@pytest.mark.extended
@given(pairs, pairs, st.floats(0, 1), st.floats(0, 1))
@settings(max_examples=300, deadline=None)
def test_results_hold_those_of_all_members(first, second, s, t):
    a, b = Interval(*map(np.array, first)), Interval(*map(np.array, second))
    members = []
    for (low, high), share in ((first, s), (second, t)):
        between = min(max(low + share * (high - low), low), high)
        members.append([Fraction(v) for v in (low, high, between)])
    for x in members[0]:
        assert holds(a.square(), x * x)
        assert abs(x) <= Fraction(float(a.size()))
        for y in members[1]:
            assert holds(a + b, x + y)
            assert holds(a - b, x - y)
            assert holds(a * b, x * y)


@given(st.fractions(max_denominator=10**25))
@settings(deadline=None)
def test_exact_is_at_most_one_step_wide(value):
    interval = Interval.exact([value])
    low, high = interval.lo[0], interval.hi[0]
    assert Fraction(low) <= value <= Fraction(high)
    assert high <= np.nextafter(low, np.inf)


def test_products_of_matrices_hold_the_exact_ones(rng):
    for _ in range(20):
        a, b = rng.normal(size=(3, 4)), rng.normal(size=(4, 2))
        product = Interval(a) @ b
        for i in range(3):
            for j in range(2):
                exact = sum(Fraction(a[i, k]) * Fraction(b[k, j]) for k in range(4))
                assert holds(product[i, j], exact)
        assert (product.hi - product.lo).max() < 1e-14


def test_a_nan_stays():
    bad = Interval(np.array(np.nan), np.array(np.nan))
    for result in (bad + 1.0, bad * 0.0, bad - bad, bad.square(), 1.0 - bad):
        assert np.isnan(result.lo)
        assert np.isnan(result.hi)


def balls(u, order):
    """The function and its derivatives by the coefficients of a power series in a ball."""
    with flint.ctx.workprec(600):
        total = flint.arb(0)
        for n in range(1, 300):
            weight = abs(flint.arb.bernoulli(2 * n)) / flint.arb.fac_ui(2 * n)
            for k in range(order):
                weight *= n - 1 - k
            if weight > 0:
                total += weight * flint.arb(u) ** (n - 1 - order)
        mantissa, exponent = total.mid().man_exp()
        return Fraction(int(mantissa)) * Fraction(2) ** int(exponent)


@pytest.mark.parametrize("order", [0, 1, 2])
def test_series_hold_the_function_and_are_narrow(order):
    # The far ones are beyond pi^2: boxes may reach over the edge of the ball.
    for u in (0.0, 1e-300, 1e-12, 0.01, 0.3, 1.0, 4.0, np.pi**2, 11.999):
        interval = outward.series(Interval(np.array([u])), order)
        value = balls(u, order)
        slack = Fraction(1, 10**60)
        assert Fraction(interval.lo[0]) <= value + slack
        assert value - slack <= Fraction(interval.hi[0])
        assert interval.hi[0] - interval.lo[0] < 2e-13 * interval.hi[0] + 1e-17


def test_the_function_is_the_one_of_the_closed_form():
    t = np.linspace(0.5, 3.14, 40)
    interval = outward.series(Interval(t**2), 0)
    closed = (1 - t / 2 / np.tan(t / 2)) / t**2
    np.testing.assert_allclose(interval.lo, closed, rtol=2e-14)


def test_beyond_their_range_series_know_nothing():
    interval = outward.series(Interval(np.array([11.0]), np.array([12.1])), 0)
    assert np.isnan(interval.lo[0])
    assert np.isnan(interval.hi[0])


def map_of(group, x):
    if group == "SO3":
        return outward.rotation_map(x)
    if group == "SE2":
        return outward.planar_map(x[:2], x[2])
    turn = outward.rotation_map(x[3:])
    low, high = (np.zeros((x[0].shape[0], 6, 6)) for _ in range(2))
    for half, name in ((low, "lo"), (high, "hi")):
        half[:, :3, :3] = half[:, 3:, 3:] = getattr(turn, name)
        half[:, :3, 3:] = getattr(outward.coupling_map(x[3:], x[:3]), name)
    return Interval(low, high)


@pytest.fixture
def rng():
    return np.random.default_rng(7)


def random_errors(rng, group, count):
    rho, phi = {"SO3": (0, 3), "SE2": (2, 1), "SE3": (3, 3)}[group]
    directions = rng.normal(size=(count, phi))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    angles = rng.uniform(0.0, 3.14, (count, 1))
    # Near zero, where formulas with sines divide by little.
    angles[: count // 4] *= 1e-6
    return np.hstack([rng.normal(size=(count, rho)), directions * angles])


@pytest.mark.parametrize("group", ["SO3", "SE2", "SE3"])
def test_maps_are_those_of_matrix_exponentials(rng, group):
    errors = random_errors(rng, group, 60)
    intervals = map_of(group, [Interval(column) for column in errors.T])
    assert (intervals.hi - intervals.lo).max() < 1e-12
    for k, x in enumerate(errors):
        np.testing.assert_allclose(intervals.lo[k], error_map([group], x), atol=2e-12)


@pytest.mark.parametrize("group", ["SO3", "SE2", "SE3"])
def test_maps_over_boxes_hold_those_of_all_members(rng, group):
    errors = random_errors(rng, group, 30)
    half = rng.uniform(0.0, 0.2, errors.shape)
    half[:, : errors.shape[1] - (1 if group == "SE2" else 3)] = 0.0
    intervals = map_of(
        group, [Interval(a, b) for a, b in zip((errors - half).T, (errors + half).T, strict=True)]
    )
    for k, (x, h) in enumerate(zip(errors, half, strict=True)):
        if np.isnan(intervals.lo[k]).any():
            assert np.linalg.norm(x[-3:]) > 2.9
            continue
        for _ in range(10):
            value = error_map([group], x + h * rng.uniform(-1, 1, x.size))
            assert (value > intervals.lo[k] - 1e-11).all()
            assert (value < intervals.hi[k] + 1e-11).all()


@pytest.mark.parametrize("group", ["SO3", "SE2", "SE3"])
def test_slopes_are_difference_quotients(rng, group):
    errors = random_errors(rng, group, 12)
    x = [Interval(column) for column in errors.T]
    first = errors.shape[1] - (1 if group == "SE2" else 3)
    for place in range(first, errors.shape[1]):
        along = [Interval(np.full(len(errors), float(i == place - first))) for i in range(3)]
        for k, centre in enumerate(errors):
            step = np.zeros(len(centre))
            step[place] = 1e-5
            slope = (error_map([group], centre + step) - error_map([group], centre - step)) / 2e-5
            if group == "SE2":
                found = outward.planar_slope(x[:2], x[2]).lo[k]
            elif group == "SO3":
                found = outward.coupling_map(x, along).lo[k]
            else:
                turn = outward.coupling_map(x[3:], along).lo[k]
                np.testing.assert_allclose(turn, slope[:3, :3], atol=1e-8)
                np.testing.assert_allclose(turn, slope[3:, 3:], atol=1e-8)
                found, slope = outward.coupling_slope(x[3:], x[:3], along).lo[k], slope[:3, 3:]
            np.testing.assert_allclose(found, slope, atol=1e-8)
