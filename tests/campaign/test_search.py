"""Search of the worst world on functions whose minimum is known."""

import sys

import numpy as np
import pytest
from scipy.stats import norm, rv_discrete, uniform

from concur.campaign import (
    CampaignReport,
    CampaignResult,
    _verify,
    worst_search,
    worst_searches,
)
from concur.campaign._search import TAIL
from concur.errors import ConcurError, UnknownNameError
from concur.worlds import Quantity, Uncertainty

CENTRE = np.array([0.4, -0.55, 0.1])

CUBE = (uniform(-1.0, 2.0),) * 3


def bowl(numbers, worlds):
    """Robustness of two requirements; the lowest of the first is -1, at CENTRE."""
    first = 4.0 * np.sum((worlds - CENTRE[: worlds.shape[1]]) ** 2, axis=1) - 1.0
    return np.stack([first, worlds.sum(axis=1)], axis=1)


def setting(function=bowl, distributions=CUBE, n=40, method="sobol"):
    uncertainty = Uncertainty(
        tuple(Quantity("mass", f"b{k}", one) for k, one in enumerate(distributions))
    )
    worlds = uncertainty.draw(range(n), 3, method)
    result = CampaignResult(
        quantities=[(label, "kg") for label in uncertainty.labels],
        columns=[("settle", "m"), ("torque", "N m")],
        numbers=np.arange(n),
        worlds=worlds,
        values=function(np.arange(n), worlds),
        stopped=np.ones(n),
        duration=1.0,
        method=method,
        seed=3,
        key="",
    )
    return uncertainty, result


def test_the_search_finds_a_known_minimum_within_its_budget():
    asked = []

    def counted(numbers, worlds):
        asked.append(len(worlds))
        return bowl(numbers, worlds)

    for method in ("sobol", "independent"):
        uncertainty, result = setting(method=method)
        asked.clear()
        found = worst_search(counted, uncertainty, result, "settle", budget=300)
        assert found.value == pytest.approx(-1.0, abs=4e-3)
        np.testing.assert_allclose(found.world, CENTRE, atol=0.04)
        assert found.sample == result.values[:, 0].min() > -0.95
        assert found.evaluations == sum(asked) <= 300
        assert max(asked) == asked[0] >= 3 * 4  # a generation of all searches is one batch
        assert list(found.history) == sorted(found.history, reverse=True)
        again = worst_search(counted, uncertainty, result, "settle", budget=300)
        np.testing.assert_array_equal(again.world, found.world)
        other = worst_search(counted, uncertainty, result, "settle", budget=300, seed=1)
        assert not np.array_equal(other.world, found.world)


def test_the_search_reaches_corners_and_stays_within_the_declaration():
    uncertainty, result = setting()
    found = worst_search(bowl, uncertainty, result, "torque", budget=400)
    np.testing.assert_allclose(found.world, -1.0, atol=1e-8)
    assert np.all(found.world >= -1.0)
    # No ends: up to the tail. One quantity alone, and a choice.
    for given, lowest in [
        ((norm(0.0, 1.0),), norm(0.0, 1.0).ppf(TAIL)),
        ((rv_discrete(values=((0.0, -2.0, 3.0), (0.25, 0.25, 0.5))), uniform(0.0, 1.0)), -2.0),
    ]:
        uncertainty, result = setting(distributions=given, n=8)
        found = worst_search(bowl, uncertainty, result, "torque", budget=300)
        assert found.value == pytest.approx(float(lowest), abs=1e-6)
        assert found.value >= lowest - 1e-12


def test_the_result_is_never_better_than_the_worst_sample():
    def constant(numbers, worlds):
        return np.ones((len(worlds), 2))

    uncertainty, result = setting(lambda n, w: bowl(n, w) - 100.0)
    for budget in (0, 5, 50):
        found = worst_search(constant, uncertainty, result, "settle", budget=budget)
        assert found.value == found.sample == result.values[:, 0].min()
        np.testing.assert_array_equal(found.world, result.worlds[result.values[:, 0].argmin()])
        assert found.evaluations <= budget
    empty = setting(lambda n, w: np.ones((len(w), 2)), distributions=(), n=3)
    assert worst_search(constant, *empty, "settle").evaluations == 0


def test_candidates_have_the_numbers_of_their_start():
    seen = set()

    def noted(numbers, worlds):
        seen.update(numbers.tolist())
        return bowl(numbers, worlds)

    uncertainty, result = setting()
    found = worst_search(noted, uncertainty, result, "settle", budget=100, starts=2)
    assert seen == set(np.argsort(result.values[:, 0])[:2].tolist())
    assert found.number in seen


def test_a_world_without_a_value_is_the_lowest_and_ends_the_search():
    def lost(numbers, worlds):
        return np.where(worlds[:, :1] > 0.9, np.nan, -worlds[:, :1]) * np.ones(2)

    uncertainty, result = setting(lambda n, w: -w[:, :1] * np.ones(2) * (w[:, :1] < 0.85), n=30)
    found = worst_search(lost, uncertainty, result, "settle", budget=400)
    assert found.value == -np.inf
    assert found.world[0] > 0.9
    assert found.evaluations < 400
    assert found.as_dict()["value"] is None
    crashed = setting(lambda n, w: np.where(n[:, None] == 4, np.nan, 1.0) * np.ones(2))
    found = worst_search(lost, *crashed, "settle")
    assert (found.number, found.evaluations) == (4, 0)


def test_other_declarations_and_a_missing_package_are_refused(monkeypatch):
    uncertainty, result = setting()
    other = Uncertainty(tuple(Quantity("com", f"b{k}", uniform(-1, 2.0)) for k in range(3)))
    sobol = worst_search(bowl, other, result, "settle", budget=0)  # the same points
    assert sobol.value == sobol.sample
    wide = Uncertainty(tuple(Quantity("mass", f"b{k}", uniform(-1, 3.0)) for k in range(3)))
    with pytest.raises(ConcurError, match="draws other worlds"):
        worst_search(bowl, wide, result, "settle")
    with pytest.raises(UnknownNameError):
        worst_search(bowl, uncertainty, result, "speed")
    with pytest.raises(ConcurError, match="at least one world"):
        worst_search(bowl, *setting(n=0), "settle")
    monkeypatch.setitem(sys.modules, "cmaes", None)
    with pytest.raises(ConcurError, match=r"\[verify\]"):
        worst_search(bowl, uncertainty, result, "settle")


def test_a_world_that_breaks_another_requirement_than_the_searched_one_counts(monkeypatch):
    def cliff(numbers, worlds):
        """The second requirement breaks in a corner only, to which the first one leads."""
        first = worlds.sum(axis=1) + 4.0
        return np.stack([first, np.where(first < 1.01, -0.5, 1.0)], axis=1)

    class Searched:
        pass

    uncertainty, result = setting(cliff)
    assert result.passed.all()
    campaign = Searched()
    campaign.uncertainty = uncertainty
    monkeypatch.setattr(_verify, "run", lambda _, numbers, worlds, __: (cliff(numbers, worlds), {}))
    one, other = worst_searches(campaign, result, 300)
    assert one.value == pytest.approx(1.0, abs=1e-6)
    assert other.value == -0.5
    assert cliff(None, other.world[None])[0, 1] == -0.5
    assert other.sample == 1.0
    assert not CampaignReport(result, found=(one, other)).passed
