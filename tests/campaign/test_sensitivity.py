"""Sensitivity on models whose answer is known."""

import numpy as np
import pytest
from scipy.stats import uniform

from concur.campaign import CampaignResult, rank_influences, sobol_cost, sobol_indices
from concur.errors import ConcurError, ShapeError
from concur.worlds import Quantity, Uncertainty

ONE = uniform(-1.0, 2.0)


def declared(d, distribution=ONE):
    return Uncertainty(tuple(Quantity("mass", f"b{k}", distribution) for k in range(d)))


def campaign(function, d=4, n=300, seed=0, method="independent", distribution=ONE):
    uncertainty = declared(d, distribution)
    worlds = uncertainty.draw(range(n), seed, method)
    values = np.asarray(function(worlds), dtype=float)
    values = values if values.ndim == 2 else values[:, None]
    return CampaignResult(
        quantities=[(label, "kg") for label in uncertainty.labels],
        columns=[(f"r{k}", "m") for k in range(values.shape[1])],
        numbers=np.arange(n),
        worlds=worlds,
        values=values,
        stopped=np.ones(n),
        duration=1.0,
        method=method,
        seed=seed,
        key="",
    )


def test_ranks_order_the_quantities_of_a_linear_model():
    for method in ("independent", "sobol"):
        found = rank_influences(campaign(lambda w: 3 * w[:, 2] - 1.5 * w[:, 0], method=method))
        assert [one.quantity for one in found[:2]] == ["mass.b2", "mass.b0"]
        assert [one.shown for one in found] == [True, True, False, False]
        assert found[0].correlation > 0.8
        assert found[1].correlation < -0.3
        for one in found[:2]:
            assert one.form == "value"
            assert one.low < one.correlation < one.high
            assert one.high - one.low < 0.25
    assert "a larger mass.b0 reduces the robustness of r0" in str(found[1])
    assert "may be noise" in str(found[3])


def test_a_quantity_that_is_wrong_in_both_directions_is_found_by_its_size():
    found = rank_influences(campaign(lambda w: 1.0 - np.abs(w[:, 3]) + 0.05 * w[:, 1]))
    assert (found[0].quantity, found[0].form) == ("mass.b3", "size")
    assert found[0].correlation < -0.9
    assert str(found[0]).startswith("a larger |mass.b3| reduces the robustness of r0")
    one_sided = campaign(lambda w: w[:, 3], distribution=uniform(0.1, 0.1))
    assert rank_influences(one_sided)[0].form == "value"


def test_noise_is_shown_as_an_influence_as_seldom_as_the_level_allows():
    # 80 campaigns of pure noise, ten false influences possible in each table; level 0.1.
    tables = []
    for k in range(80):
        noise = np.random.default_rng(k).normal(size=(60, 2))
        noisy = campaign(lambda w, noise=noise: noise, d=5, n=60, seed=k)
        tables.append(rank_influences(noisy, level=0.1, permutations=79, resamples=2, seed=k))
    false = sum(any(one.shown for one in table) for table in tables)
    assert 1 <= false <= 16  # binomial of 80 and 0.1: outside with a probability of 0.4 %
    # Without the correction for the size of the table about every second one would have one.


def test_the_interval_of_a_correlation_covers_it():
    # Independent normal model: Spearman's correlation is 6/pi asin(r/2).
    r, covered = 0.6, 0
    for k in range(60):
        rng = np.random.default_rng(k)
        noise = rng.normal(size=200)
        data = campaign(lambda w: w[:, 0], d=1, n=200, seed=k)
        x = rng.normal(size=200)
        data = CampaignResult(
            **{name: getattr(data, name) for name in data.__dataclass_fields__}
            | {"worlds": x[:, None], "values": (r * x + np.sqrt(1 - r * r) * noise)[:, None]}
        )
        (one,) = rank_influences(data, level=0.1, permutations=19, resamples=100)
        covered += one.low <= 6 / np.pi * np.arcsin(r / 2) <= one.high
    assert 47 <= covered <= 60, covered


def test_worlds_without_value_and_constant_columns():
    def lost(w):
        values = np.ones((len(w), 2))
        values[w[:, 1] > 0.5, 0] = np.nan
        return values

    found = rank_influences(campaign(lost))
    assert (found[0].quantity, found[0].shown) == ("mass.b1", True)
    assert found[0].correlation < -0.5
    assert [one.correlation for one in found if one.requirement == "r1"] == [0.0] * 4
    assert rank_influences(campaign(lost, d=2, n=0)) == rank_influences(campaign(lost, d=2, n=0))
    for level, permutations in [(0.0, 999), (1.0, 999), (0.05, 18)]:
        with pytest.raises(ConcurError, match="`level`"):
            rank_influences(campaign(lost), level=level, permutations=permutations)
    assert rank_influences(campaign(lost), level=0.05, permutations=19)


def test_sobol_indices_are_those_of_a_model_with_an_interaction():
    # y = x0 + 2 x1 x2 on [-1, 1]: variances 1/3 and 4/9; x3 has no influence.
    asked = []

    def evaluate(numbers, worlds):
        asked.append(len(worlds))
        noise = np.random.default_rng(0).normal(size=4096)[numbers]  # one draw for each number
        y = worlds[:, 0] + 2 * worlds[:, 1] * worlds[:, 2] + 0.3 * noise
        return np.stack([y, np.full(len(worlds), 2.0)], axis=1)

    uncertainty = declared(4)
    found = sobol_indices(evaluate, uncertainty, ["settle", "still"], base=512, resamples=60)
    assert asked == [sobol_cost(uncertainty, 512)] == [512 * 6]
    of = {one.quantity: one for one in found if one.requirement == "settle"}
    variance = 1 / 3 + 4 / 9 + 0.09
    for name, first, total in [("b0", 1 / 3, 1 / 3), ("b1", 0, 4 / 9), ("b2", 0, 4 / 9)]:
        one = of[f"mass.{name}"]
        assert one.first == pytest.approx(first / variance, abs=0.08)
        assert one.total == pytest.approx(total / variance, abs=0.08)
        assert one.total_low < total / variance < one.total_high
    assert of["mass.b3"].total == of["mass.b3"].total_high == 0.0  # the noise is not shown
    assert [one.quantity for one in found[:4]][-1] == "mass.b3"
    assert all(one.total == one.first == 0.0 for one in found if one.requirement == "still")


def test_sobol_indices_refuse_what_they_cannot_use():
    for base in (0, 1, 3, 100):
        with pytest.raises(ConcurError, match="`base`"):
            sobol_indices(lambda n, w: w, declared(2), ["a", "b"], base=base)
    with pytest.raises(ShapeError, match=r"shape \(8, 1\)"):
        sobol_indices(lambda n, w: w, declared(2), ["a"], base=2)
    with pytest.raises(ConcurError, match="worlds without one"):
        sobol_indices(lambda n, w: np.where(w[:, :1] > 0, 1.0, np.nan), declared(2), ["a"], base=4)
    assert sobol_indices(lambda n, w: w, Uncertainty(), ["a"]) == ()
    (one,) = sobol_indices(lambda n, w: w, declared(1), ["a"], base=64)
    assert one.first == pytest.approx(1.0, abs=0.1)
