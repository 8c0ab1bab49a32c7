"""Answers of a campaign: intervals against SciPy, and campaigns that are simulated in number."""

import math
import re
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import beta, binom, binomtest

from concur.campaign import (
    CampaignResult,
    PassRate,
    paired_comparisons,
    pass_rates,
    quantiles,
    worst_worlds,
)
from concur.campaign._intervals import anytime_p_value, at_least, at_most, evidence, interval
from concur.errors import ConcurError, UnknownNameError
from concur.rounding import percent, percent_down, percent_range, percent_up, rounded_down
from concur.rounding import rounded_up as up


def campaign(values, method="independent", numbers=None, **own):
    values = np.array(values, dtype=float)
    values = values if values.ndim == 2 else values[:, None]
    n, m = values.shape
    return CampaignResult(
        quantities=[("mass", "kg")],
        columns=[(f"r{k}", "m") for k in range(m)],
        numbers=np.arange(n) if numbers is None else numbers,
        worlds=np.linspace(-1, 1, n)[:, None] if n else np.zeros((0, 1)),
        values=values,
        stopped=np.full(n, 5.0),
        duration=5.0,
        method=method,
        seed=0,
        key="",
        **own,
    )


def rate(count, total, confidence=0.95, grown=False):
    ends = interval(count, total, confidence, grown)
    sides = [side(count, total, 1 - confidence, grown) for side in (at_least, at_most)]
    return PassRate("all", count, total, confidence, *ends, *sides, grown)


def percents(text):
    return [Decimal(x) / 100 for x in re.findall(r"(-?[\d.]+) %", text)]


def check_sentence(count, total):
    """No printed figure lies beyond the exact one, nor far from it, and none is certain."""

    def exact(risk):
        low = beta.ppf(risk, count, total - count + 1) if count else 0.0
        high = beta.ppf(1 - risk, count + 1, total - count) if count < total else 1.0
        return float(low), float(high)

    text = str(rate(count, total))
    shown = percents(text.split(": ", 2)[2])
    (least, most), (low, high) = exact(0.05), exact(0.025)
    if not count:
        assert -1e-9 <= float(shown[0]) - most <= 0.01 * most, text
    else:
        assert -1e-9 <= least - float(shown[0]) <= 0.01 * least, text
        assert least - float(shown[0]) <= 0.1 * (1 - least) + 1e-9, text
    assert -1e-9 <= low - float(shown[1]) <= 0.1 * (high - low), text
    assert -1e-9 <= float(shown[2]) - high <= 0.1 * (high - low), text
    assert float(shown[3]) == 0.95
    share = percents(text.split(": ", 2)[1])
    assert len(share) == (0 < count < total)
    # A hundredth of a percent of the width at most, and never beyond the interval as it is shown.
    assert all(shown[1] <= one <= shown[2] for one in share), text
    if count < total:
        assert Decimal(1) not in share + shown, text
    if count:
        assert Decimal(0) not in share + shown, text


@pytest.mark.parametrize("total", [1, 2, 5, 20, 99, 100, 101, 999, 1000, 1001, 7999, 8000, 10_000])
def test_no_printed_end_lies_beyond_the_exact_one(total):
    rng = np.random.default_rng(total)
    counts = {0, 1, 2, total - 2, total - 1, total, *rng.integers(0, total + 1, 12).tolist()}
    for count in counts if total > 30 else range(total + 1):
        if 0 <= count <= total:
            check_sentence(count, total)


def test_eight_thousand_passes_are_no_certainty():
    text = str(rate(8000, 8000))
    assert text == (
        "all: 8000 of 8000 worlds pass: at least 99.962 %, two-sided 99.953 % to 100 %, at 95 % "
        "confidence for a number of worlds fixed beforehand"
    )
    assert pytest.approx(at_least(8000, 8000, 0.05), rel=1e-14) == 0.05 ** (1 / 8000)
    assert "7999 of 8000 worlds pass (99.988 %)" in str(rate(7999, 8000))
    assert "(0.0125 %)" in str(rate(1, 8000))
    assert "at most 0.0375 %" in str(rate(0, 8000))
    assert "at 99.999 % confidence" in str(rate(3, 4, 0.99999))


@pytest.mark.parametrize(("count", "total"), [(0, 5), (1, 5), (5, 5), (7, 20), (400, 1000)])
def test_ends_are_those_of_binomial_tails_and_those_of_every_look_are_wider(count, total):
    fixed = interval(count, total, 0.9)
    assert fixed == pytest.approx(binomtest(count, total).proportion_ci(0.9), abs=1e-10)
    if count:
        assert binom.sf(count - 1, total, at_least(count, total, 0.05)) == pytest.approx(0.05)
    if count < total:
        assert binom.cdf(count, total, at_most(count, total, 0.05)) == pytest.approx(0.05)
    grown = interval(count, total, 0.9, grown=True)
    assert grown[0] <= fixed[0] <= fixed[1] <= grown[1]
    assert fixed[1] - fixed[0] < grown[1] - grown[0] < 2.0 * (fixed[1] - fixed[0])


@pytest.mark.parametrize(("count", "total"), [(0, 3), (1, 1), (3, 3), (17, 20), (90, 200)])
def test_evidence_is_the_mean_likelihood_ratio(count, total):
    for p in (0.02, 0.4, count / total or 0.1, 0.9):

        def ratio(q, p=p):
            return (q / p) ** count * ((1 - q) / (1 - p)) ** (total - count)

        if p < 1:
            mean = quad(ratio, p, 1.0, epsrel=1e-11)[0] / (1 - p)
            assert evidence(count, total, p) == pytest.approx(math.log(mean), abs=1e-7)
    assert evidence(count, total, 1.0) == pytest.approx(-math.log(total - count + 1))
    if count:
        bound = at_least(count, total, 0.05, grown=True)
        assert evidence(count, total, bound) == pytest.approx(math.log(20), abs=1e-8)
    # Without the last trial the mean of the evidence is the same: a martingale.
    p = 0.6
    after = [math.exp(evidence(count + k, total + 1, p)) for k in (0, 1)]
    assert (1 - p) * after[0] + p * after[1] == pytest.approx(math.exp(evidence(count, total, p)))
    assert evidence(0, 5000, 0.5) == -math.inf


def test_a_growing_campaign_declares_a_false_rate_as_seldom_as_it_says():
    looks = np.arange(50, 5001, 50)

    def thresholds(risk, grown):
        """Successes at each look from which on the lower end reaches 95 %."""
        found = []
        for n in looks:
            few, many = int(0.95 * n), n + 1
            while few < many:
                middle = (few + many) // 2
                good = middle > n or at_least(middle, n, risk, grown) >= 0.95
                few, many = (few, middle) if good else (middle + 1, many)
            found.append(few)
        return np.array(found)

    def declared(p, wanted):
        """Share of campaigns that reach the wanted counts at some look."""
        steps = np.random.default_rng(1).binomial(50, p, size=(4000, len(looks)))
        return float((steps.cumsum(axis=1) >= wanted).any(axis=1).mean())

    two_sided = thresholds(0.025, True)
    assert declared(0.949, two_sided) <= 0.025
    assert declared(0.95, thresholds(0.05, True)) <= 0.05
    # The other side: ends for one look are reached three times as often as they promise.
    assert declared(0.949, thresholds(0.025, False)) > 0.07
    # And a better rate is declared.
    assert declared(0.97, two_sided) > 0.97
    # The upper ends are those of failures: the same counts.
    n = int(looks[20])
    assert at_most(n - 40, n, 0.025, True) == pytest.approx(1 - at_least(40, n, 0.025, True))


def test_the_p_value_of_a_growing_comparison_holds_at_every_look():
    rng, looks = np.random.default_rng(2), np.arange(20, 401, 20)
    first = [min(k for k in range(n // 2, n + 1) if anytime_p_value(k, n) <= 0.05) for n in looks]
    fixed = [
        min(k for k in range(n // 2, n + 1) if 2 * binom.sf(k - 1, n, 0.5) <= 0.05) for n in looks
    ]
    counts = rng.binomial(20, 0.5, size=(2000, len(looks))).cumsum(axis=1)
    larger = np.maximum(counts, looks - counts)
    assert (larger >= first).any(axis=1).mean() <= 0.05
    assert (larger >= fixed).any(axis=1).mean() > 0.1
    assert anytime_p_value(700, 1000) < 1e-6
    assert anytime_p_value(500, 1000) == 1.0
    # The means of (q / 0.5)^3 and ((1 - q) / 0.5)^3 over q from 0.5 to 1: 3.75 and 0.25.
    assert anytime_p_value(3, 3) == pytest.approx(0.5, rel=1e-12)
    assert anytime_p_value(0, 3) == anytime_p_value(3, 3)


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
        for found in pass_rates(other):
            assert found.low is found.high is None
            assert why in str(found)
    assert pass_rates(campaign(values, numbers=[5, 6, 7, 8]))[0].low is not None
    assert pass_rates(campaign(values, crashes={0: "lost"}))[0].passed == 1
    # With a risk of one, the bound of one pass in two worlds would be "at least 100 %".
    for confidence in (5e-324, 2.0**-54, 0.0, 1.0, -1e-9, math.nan):
        with pytest.raises(ConcurError, match="between 0 and 1"):
            pass_rates(campaign([1, -1]), confidence)
    for confidence in (2.0**-53, 1.0 - 2.0**-53):
        assert "at least 100 %" not in str(pass_rates(campaign([1, -1]), confidence)[0])


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
        (replace(second, worlds=second.worlds + 1.0), "worlds"),
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


def test_a_result_that_is_loaded_extended_and_saved_keeps_its_looks(tmp_path):
    passes = np.random.default_rng(0).random(200) < 0.9

    def of(passes):
        made = campaign(np.where(passes, 1.0, -1.0))
        return replace(made, worlds=np.zeros((len(passes), 1)), looks=())

    first = of(passes[:50])
    assert (first.looks, first.grown, pass_rates(first)[0].grown) == ((50,), False, False)
    loaded = CampaignResult.load(first.save(tmp_path / "campaign.h5"))
    assert (loaded.looks, loaded.grown) == ((50,), False)
    whole = of(passes)
    more = {name: getattr(whole, name) for name in ("numbers", "worlds", "values", "stopped")}
    grown = replace(loaded, extremes=np.zeros((200, 0)), **more)
    for result in (grown, CampaignResult.load(grown.save(tmp_path / "again.h5"))):
        found = pass_rates(result)[0]
        assert (result.looks, found.grown) == ((50, 200), True)
        assert (found.low, found.high) == interval(int(passes.sum()), 200, 0.95, True)
        assert found.at_least == at_least(int(passes.sum()), 200, 1 - 0.95, True)
        assert str(found).endswith("at every look of a growing campaign")
        # Fewer rows are another look, too.
        fewer = {name: rows[:50] for name, rows in more.items()}
        assert replace(result, extremes=np.zeros((50, 0)), **fewer).looks == (50, 200)
    pair, alone = (paired_comparisons(one, of(~passes))[0] for one in (grown, whole))
    assert (pair.grown, alone.grown) == (True, False)
    assert pair.low < alone.low < alone.high < pair.high
    assert "at every look" in str(pair)
    assert pair.p_value == anytime_p_value(int((~passes).sum()), 200) > alone.p_value


@pytest.mark.parametrize(
    ("value", "low", "high"),
    [
        (0.99996, "0.999", "1"),
        (-1.2341, "-1.24", "-1.23"),
        (1234.0, "1.23e+03", "1.24e+03"),
        (0.1 + 0.2, "0.3", "0.301"),
        (5e-324, "4.94e-324", "4.94e-324"),
        (0.0, "0", "0"),
        (math.inf, "inf", "inf"),
        (math.nan, "nan", "nan"),
    ],
)
def test_bounds_round_away_from_what_was_shown(value, low, high):
    assert (rounded_down(value), up(value)) == (low, high)


def test_random_bounds_round_to_the_safe_side():
    rng = np.random.default_rng(3)
    for value in (rng.normal(size=400) * 10.0 ** rng.uniform(-12, 12, 400)).tolist():
        for digits in (1, 3, 6):
            down, above = rounded_down(value, digits), up(value, digits)
            assert float(down) <= value <= float(above)
            assert abs(float(above) - float(down)) <= 1.01 * abs(value) * 10.0 ** (1 - digits)
    for share in (rng.random(400) ** rng.choice([0.001, 1, 30], 400)).tolist():
        down, above = (percents(text)[0] for text in (percent_down(share), percent_up(share)))
        assert down <= Decimal(repr(share)) <= above
        assert (above == 1) <= (share == 1.0)
        assert (down == 0) <= (share == 0.0)
        assert float(above - down) <= 0.1 * (1 - share) + 1e-15
        assert down <= percents(percent(share))[0] <= above
        ends = percent_range(-share, share / 3, "+")
        assert percents(ends[0])[0] <= -Decimal(repr(share))
        assert ends[1].startswith("+")
    assert percent(-0.0) == "0 %"
    assert percent(math.nan) == "nan %"
