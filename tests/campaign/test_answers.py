"""Answers of a campaign against tables, brute force and simulated campaigns."""

import math

import numpy as np
import pytest

from concur.campaign import (
    CampaignResult,
    paired_comparisons,
    pass_rates,
    quantiles,
    worst_worlds,
)
from concur.campaign._intervals import interval
from concur.errors import ConcurError, UnknownNameError


def campaign(values, method="independent", numbers=None, **own):
    values = np.array(values, dtype=float)
    values = values if values.ndim == 2 else values[:, None]
    n, m = values.shape
    numbers = np.arange(n) if numbers is None else numbers
    return CampaignResult(
        quantities=[("mass", "kg")],
        columns=[(f"r{k}", "m") for k in range(m)],
        numbers=numbers,
        worlds=np.linspace(-1, 1, n)[:, None] if n else np.zeros((0, 1)),
        values=values,
        stopped=np.full(n, 5.0),
        duration=5.0,
        method=method,
        seed=0,
        key="",
        **own,
    )


def tail(k, n, p):
    """P(X >= k) of a binomial, summed up."""
    return sum(math.comb(n, j) * p**j * (1 - p) ** (n - j) for j in range(k, n + 1))


def test_intervals_are_those_of_published_tables():
    # 95 %: Pearson and Clopper's charts as tabulated in Geigy Scientific Tables (rounded).
    for count, total, low, high in [
        (0, 10, 0.0, 0.3085),
        (1, 10, 0.0025, 0.4450),
        (5, 10, 0.1871, 0.8129),
        (10, 10, 0.6915, 1.0),
        (0, 100, 0.0, 0.0362),
        (50, 100, 0.3983, 0.6017),
    ]:
        assert interval(count, total, 0.95) == pytest.approx((low, high), abs=6e-5)
    # By definition: at each end the observed tail has half of the risk.
    low, high = interval(7, 20, 0.9)
    assert tail(7, 20, low) == pytest.approx(0.05, abs=1e-9)
    assert 1.0 - tail(8, 20, high) == pytest.approx(0.05, abs=1e-9)


def test_the_interval_covers_the_probability_as_often_as_it_claims():
    # Exact coverage over all outcomes: at least the confidence; a shorter one would have less.
    n, confidence = 40, 0.9
    ends = np.array([interval(k, n, confidence) for k in range(n + 1)])
    for p in (0.02, 0.3, 0.5, 0.93, 0.99):
        weight = np.array([math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)])
        inside = weight[(ends[:, 0] <= p) & (p <= ends[:, 1])].sum()
        below = weight[p < ends[:, 0]].sum()
        above = weight[p > ends[:, 1]].sum()
        assert inside >= confidence - 1e-12, p
        assert max(below, above) <= (1 - confidence) / 2 + 1e-12, p
    half = [interval(k, n, 0.5) for k in range(n + 1)]
    weight = [math.comb(n, k) * 0.5**n for k in range(n + 1)]
    assert sum(w for w, (a, b) in zip(weight, half, strict=True) if a <= 0.5 <= b) < 0.8


def test_pass_rates_count_worlds_and_claim_an_interval_for_independent_draws_alone():
    values = [[1, 1], [1, -1], [-1, 1], [1, 1]]
    every, first, second = pass_rates(campaign(values))
    assert (every.passed, first.passed, second.passed, every.worlds) == (2, 3, 3, 4)
    assert (first.low, first.high) == pytest.approx(interval(3, 4, 0.95))
    assert str(first) == (
        "r0: 3 of 4 worlds pass (75 %): at least 24.8 %, two-sided 19.4 % to 99.37 %, at 95 % "
        "confidence for a number of worlds fixed beforehand"
    )
    for other, why in [
        (campaign(values, "sobol"), "Sobol points"),
        (campaign(values, numbers=[0, 1, 2, 4]), "gaps"),
        (campaign(np.zeros((0, 2))), "no worlds"),
    ]:
        for rate in pass_rates(other):
            assert rate.low is rate.high is None
            assert why in str(rate)
    assert pass_rates(campaign(values, numbers=[5, 6, 7, 8]))[0].low is not None
    assert pass_rates(campaign(values, crashes={0: "lost"}))[0].passed == 1
    for wrong in (0.0, 1.0, math.nan):
        with pytest.raises(ConcurError, match="between 0 and 1"):
            pass_rates(campaign(values), wrong)


def test_quantiles_and_worst_worlds():
    found = campaign([3.0, -2.0, np.nan, 1.0, -2.0], crashes={2: "lost"})
    assert quantiles(found, (0.0, 0.2, 0.4, 0.8, 1.0))[:, 0].tolist() == [
        -np.inf, -np.inf, -2.0, 1.0, 3.0,
    ]  # fmt: skip
    worst = worst_worlds(found, "r0", 3)
    assert [one.number for one in worst] == [2, 1, 4]
    assert (worst[0].reason, worst[1].reason) == ("lost", "")
    assert (worst[0].as_dict()["value"], worst[1].as_dict()["value"]) == (None, -2.0)
    assert worst[1].deviations == {"mass": -0.5}
    with pytest.raises(UnknownNameError):
        worst_worlds(found, "r1")
    assert np.isnan(quantiles(campaign(np.zeros((0, 2))))).all()


def test_paired_comparison_counts_worlds_that_differ():
    first = campaign([1, 1, 1, -1, -1, -1, -1, -1, -1, -1])
    second = campaign([1, 1, -1, 1, 1, 1, 1, 1, 1, -1])
    _, found = paired_comparisons(first, second)
    assert (found.both, found.only_first, len(found.only_second)) == (2, (2,), 6)
    assert found.difference == pytest.approx(0.5)
    assert found.p_value == pytest.approx(2 * 8 / 2**7)  # 1 of 7 or 0 of 7, both sides
    assert found.low < 0.5 < found.high
    _, back = paired_comparisons(second, first)
    assert (back.low, back.high) == pytest.approx((-found.high, -found.low))
    assert "only the second 6" in str(found)
    _, same = paired_comparisons(first, first)
    assert (same.difference, same.p_value) == (0.0, 1.0)
    assert same.low < 0.0 < same.high
    sobol = [campaign(one.values, "sobol") for one in (first, second)]
    assert paired_comparisons(*sobol)[0].low is None
    for other, word in [
        (campaign(second.values, "sobol"), "method"),
        (campaign(second.values, numbers=range(1, 11)), "numbers"),
        (campaign(second.values[:9]), "numbers"),
        (campaign(np.ones((10, 2))), "columns"),
    ]:
        with pytest.raises(ConcurError, match=f"`{word}`"):
            paired_comparisons(first, other)


def test_paired_interval_covers_the_difference():
    # Three hundred campaigns of 25 worlds: at least the confidence, zero excluded when it is false.
    rng = np.random.default_rng(5)
    for p_first, p_second in [(0.0, 0.6), (0.1, 0.2), (0.2, 0.2)]:
        outcomes = rng.multinomial(25, [p_first, p_second, 1 - p_first - p_second], size=300)
        unique, often = np.unique(outcomes[:, :2], axis=0, return_counts=True)
        covered = zero_outside = 0
        for (b, c), times in zip(unique.tolist(), often.tolist(), strict=True):
            first = np.where(np.arange(25) < b, 1.0, -1.0)
            second = np.where((np.arange(25) >= b) & (np.arange(25) < b + c), 1.0, -1.0)
            found = paired_comparisons(campaign(first), campaign(second), 0.9)[1]
            covered += times * (found.low <= p_second - p_first <= found.high)
            zero_outside += times * (found.low > 0.0)
        assert covered >= 0.9 * 300, (p_first, p_second, covered)
        if p_first == 0.0:
            assert zero_outside > 0.95 * 300
        if p_first == p_second:
            assert zero_outside < 0.05 * 300


def test_a_confidence_whose_risk_is_one_in_floats_is_refused():
    """With a risk of one, the bound of one pass in two worlds would be "at least 100 %"."""
    made = CampaignResult(
        quantities=(), columns=[("error", "m")], numbers=[0, 1], worlds=np.zeros((2, 0)),
        values=[[1.0], [-1.0]], stopped=[1.0, 1.0], duration=1.0, method="independent", seed=0,
        key="",
    )  # fmt: skip
    for confidence in (5e-324, 2.0**-54, 0.0, 1.0, -1e-9, np.nan):
        with pytest.raises(ConcurError, match="confidence"):
            pass_rates(made, confidence)
    for confidence in (2.0**-53, 1.0 - 2.0**-53):
        assert "at least 100 %" not in str(pass_rates(made, confidence)[0])
