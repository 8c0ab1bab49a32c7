"""Intervals of pass rates: each printed end against SciPy, and campaigns that grow, simulated."""

import math
import re
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import beta, binom, binomtest

from concur.campaign import CampaignResult, PassRate, paired_comparisons, pass_rates
from concur.campaign._intervals import anytime_p_value, at_least, at_most, evidence, interval
from concur.rounding import percent, percent_down, percent_range, percent_up, rounded_down
from concur.rounding import rounded_up as up

EDGES = [1, 2, 3, 5, 10, 20, 99, 100, 101, 500, 999, 1000, 1001, 4999, 7999, 8000, 9999, 10_000]


def rate(count, total, confidence=0.95, grown=False):
    ends = interval(count, total, confidence, grown)
    sides = [side(count, total, 1 - confidence, grown) for side in (at_least, at_most)]
    return PassRate("all", count, total, confidence, *ends, *sides, grown)


def percents(text):
    return [Decimal(x) / 100 for x in re.findall(r"(-?[\d.]+) %", text)]


def exact(count, total, risk):
    """Clopper and Pearson's bounds by the quantiles of the beta distribution."""
    low = beta.ppf(risk, count, total - count + 1) if count else 0.0
    high = beta.ppf(1 - risk, count + 1, total - count) if count < total else 1.0
    return float(low), float(high)


def check_sentence(count, total):
    """No printed figure lies beyond the exact one, nor far from it, and none is certain."""
    text = str(rate(count, total))
    shown = percents(text.split(": ", 2)[2])
    (least, _), (low, high) = exact(count, total, 0.05), exact(count, total, 0.025)
    if not count:
        least = exact(count, total, 0.05)[1]
        assert -1e-9 <= float(shown[0]) - least <= 0.01 * least, text
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


@pytest.mark.parametrize("total", EDGES)
def test_no_printed_end_lies_beyond_the_exact_one(total):
    rng = np.random.default_rng(total)
    counts = {0, 1, 2, total - 2, total - 1, total, *rng.integers(0, total + 1, 12).tolist()}
    for count in counts if total > 30 else range(total + 1):
        if 0 <= count <= total:
            check_sentence(count, total)


@pytest.mark.slow
def test_no_printed_end_lies_beyond_the_exact_one_for_all_numbers_of_worlds():
    rng = np.random.default_rng(0)
    for total in range(1, 10_001):
        counts = {0, 1, 2, total - 2, total - 1, total, *rng.integers(0, total + 1, 3).tolist()}
        for count in counts if total <= 60 else range(total + 1) if total == 500 else counts:
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
def test_ends_are_those_of_binomial_tails(count, total):
    low, high = interval(count, total, 0.9)
    assert (low, high) == pytest.approx(binomtest(count, total).proportion_ci(0.9), abs=1e-10)
    if count:
        assert binom.sf(count - 1, total, at_least(count, total, 0.05)) == pytest.approx(0.05)
    if count < total:
        assert binom.cdf(count, total, at_most(count, total, 0.05)) == pytest.approx(0.05)


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


def thresholds(looks, bound, risk, grown):
    """Successes at each look from which on the lower end reaches a bound."""
    found = []
    for n in looks:
        few, many = int(bound * n), n + 1
        while few < many:
            middle = (few + many) // 2
            good = middle <= n and at_least(middle, n, risk, grown) >= bound
            few, many = (few, middle) if good or middle > n else (middle + 1, many)
        found.append(few)
    return np.array(found)


@pytest.fixture(scope="module")
def looks():
    return np.arange(50, 5001, 50)


def declared(p, looks, wanted, seed=1):
    """Share of campaigns that reach the wanted counts at some look."""
    steps = np.random.default_rng(seed).binomial(50, p, size=(4000, len(looks)))
    return float((steps.cumsum(axis=1) >= wanted).any(axis=1).mean())


def test_a_growing_campaign_declares_a_false_rate_as_seldom_as_it_says(looks):
    two_sided = thresholds(looks, 0.95, 0.025, True)
    one_sided = thresholds(looks, 0.95, 0.05, True)
    fixed = thresholds(looks, 0.95, 0.025, False)
    assert declared(0.949, looks, two_sided) <= 0.025
    assert declared(0.95, looks, one_sided) <= 0.05
    # The other side: ends for one look are reached three times as often as they promise.
    assert declared(0.949, looks, fixed) > 0.07
    # And a better rate is declared.
    assert declared(0.97, looks, two_sided) > 0.97
    # The upper ends are those of failures: the same counts.
    n = int(looks[20])
    assert at_most(n - 40, n, 0.025, True) == pytest.approx(1 - at_least(40, n, 0.025, True))


@pytest.mark.parametrize(("count", "total"), [(50, 50), (8000, 8000), (949, 1000), (50, 100)])
def test_a_confidence_sequence_is_less_than_twice_as_wide(count, total):
    fixed, grown = interval(count, total, 0.95), interval(count, total, 0.95, True)
    assert grown[0] < fixed[0] <= fixed[1] <= grown[1]
    assert grown[1] - grown[0] < 1.8 * (fixed[1] - fixed[0])


def campaign(passes, **own):
    n = len(passes)
    return CampaignResult(
        **{
            "quantities": [("mass", "kg")],
            "columns": [("r", "m")],
            "numbers": np.arange(n),
            "worlds": np.zeros((n, 1)),
            "values": np.where(passes, 1.0, -1.0)[:, None],
            "stopped": np.ones(n),
            "duration": 1.0,
            "method": "independent",
            "seed": 0,
            "key": "",
        }
        | own
    )


def test_a_result_that_is_loaded_extended_and_saved_keeps_its_looks(tmp_path):
    passes = np.random.default_rng(0).random(200) < 0.9
    first = campaign(passes[:50])
    assert (first.looks, first.grown, pass_rates(first)[0].grown) == ((50,), False, False)
    assert pass_rates(first)[0].low == interval(int(passes[:50].sum()), 50, 0.95)[0]
    loaded = CampaignResult.load(first.save(tmp_path / "campaign.h5"))
    assert (loaded.looks, loaded.grown) == ((50,), False)
    whole = campaign(passes)
    more = {name: getattr(whole, name) for name in ("numbers", "worlds", "values", "stopped")}
    grown = replace(loaded, **more)
    for result in (grown, CampaignResult.load(grown.save(tmp_path / "again.h5"))):
        found = pass_rates(result)[0]
        assert (result.looks, found.grown) == ((50, 200), True)
        assert (found.low, found.high) == interval(int(passes.sum()), 200, 0.95, True)
        assert found.at_least == at_least(int(passes.sum()), 200, 1 - 0.95, True)
        assert str(found).endswith("at every look of a growing campaign")
        # Fewer rows are another look, too.
        assert replace(result, **{k: v[:50] for k, v in more.items()}).looks == (50, 200)
    pair = paired_comparisons(grown, campaign(~passes))[0]
    alone = paired_comparisons(campaign(passes), campaign(~passes))[0]
    assert pair.grown
    assert not alone.grown
    assert pair.low < alone.low < alone.high < pair.high
    assert "at every look" in str(pair)
    assert pair.p_value == anytime_p_value(int((~passes).sum()), 200) > alone.p_value


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


@pytest.mark.parametrize(
    ("value", "low", "high"),
    [
        (0.99996, "0.999", "1"),
        (2.3412, "2.34", "2.35"),
        (-1.2341, "-1.24", "-1.23"),
        (1234.0, "1.23e+03", "1.24e+03"),
        (0.95, "0.95", "0.95"),
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
