"""Distributions, and worlds drawn by number."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from concur.errors import ConcurError
from concur.worlds import Choice, Normal, Quantity, Triangular, Uncertainty, Uniform

SHARES = np.array([2.0**-53, 1e-6, 0.1, 0.25, 0.5, 0.7, 0.999, 1.0 - 2.0**-53])
ENTRIES: list[tuple[Any, Any]] = [
    (Uniform(-0.1, 0.3), stats.uniform(-0.1, 0.4)),
    (Normal(0.5, 0.02), stats.norm(0.5, 0.02)),
    (Triangular(-1.0, 0.5, 2.0), stats.triang(0.5, -1.0, 3.0)),
    (Triangular(0.0, 0.0, 2.0), stats.triang(0.0, 0.0, 2.0)),
    (Triangular(0.0, 2.0, 2.0), stats.triang(1.0, 0.0, 2.0)),
    (Choice((3.0, -1.0, 2.0, 0.0)), None),
]


def uncertainty(count: int = 12) -> Uncertainty:
    quantities = [Quantity("mass", f"body{k}", ENTRIES[k % 6][0]) for k in range(count)]
    return Uncertainty(tuple(quantities))


def test_quantiles_are_those_of_scipy_and_scale_with_their_distribution() -> None:
    for distribution, oracle in ENTRIES:
        found = distribution.quantile(SHARES)
        if oracle is not None:
            assert np.abs(found - oracle.ppf(SHARES)).max() < 1e-13
        low, high = distribution.support
        assert np.all((found >= low) & (found <= high))
        assert np.abs(distribution.scaled(2.0).quantile(SHARES) - 2.0 * found).max() < 1e-15
        turned = distribution.scaled(-2.0).support
        assert turned == (-2.0 * high, -2.0 * low)
    assert Choice((5.0, 1.0)).quantile([0.49, 0.51]).tolist() == [5.0, 1.0]


@pytest.mark.parametrize("method", ["independent", "sobol"])
def test_a_world_depends_on_seed_and_number_alone(method: str) -> None:
    declared = uncertainty()
    whole = declared.draw(range(5000), seed=3, method=method)
    for numbers in (range(1, 2), range(497, 511), [4999, 0, 17, 17, 3, 2600]):
        assert np.array_equal(declared.draw(numbers, 3, method), whole[list(numbers)])
    order = np.random.default_rng(0).permutation(5000)
    assert np.array_equal(declared.draw(order, 3, method), whole[order])
    assert declared.draw([], 3, method).shape == (0, 12)
    assert Uncertainty().draw(range(3), 3, method).shape == (3, 0)
    other = declared.draw(range(5000), seed=4, method=method)
    assert not np.any(np.all(other[:, :2] == whole[:, :2], axis=1))


def test_independent_draws_follow_their_distributions_and_not_each_other() -> None:
    declared = uncertainty(4)
    worlds = declared.draw(range(20000), seed=7)
    for (_, oracle), values in zip(ENTRIES[:4], worlds.T, strict=True):
        assert stats.kstest(values, oracle.cdf).pvalue > 1e-3
    correlation = stats.spearmanr(np.column_stack([worlds[:-1], worlds[1:]])).statistic
    assert np.abs(correlation - np.eye(8)).max() < 0.03  # nor neighbours in number
    fewer = Uncertainty(declared.quantities[2:])
    assert np.array_equal(fewer.draw(range(9), seed=7), worlds[:9, 2:])


def test_sobol_points_are_those_of_scipy() -> None:
    flat = Uncertainty(tuple(Quantity("mass", f"b{k}", Uniform(0.0, 1.0)) for k in range(5)))
    points = stats.qmc.Sobol(5, seed=np.random.default_rng(2)).random(64)
    worlds = flat.draw(range(64), 2, "sobol")
    assert np.abs(worlds - points).max() <= 2.0**-30
    assert np.all(np.histogramdd(worlds[:, :2], (8, 8), [(0, 1)] * 2)[0] == 1)


def test_worlds_are_nested_tables_and_back() -> None:
    declared = Uncertainty(
        (
            Quantity("mass", "hand", Uniform(-1.0, 1.0)),
            Quantity("com", "hand", Uniform(-1.0, 1.0), 0, 3),
            Quantity("com", "hand", Uniform(-1.0, 1.0), 2, 3),
            Quantity("reference.hand", "radius", Uniform(-1.0, 1.0)),
        )
    )
    assert declared.labels == ("mass.hand", "com.hand[0]", "com.hand[2]", "reference.hand.radius")
    world = declared.world([0.1, 0.2, 0.3, 0.4])
    assert world == {
        "mass": {"hand": 0.1},
        "com": {"hand": [0.2, 0.0, 0.3]},
        "reference": {"hand": {"radius": 0.4}},
    }
    assert declared.row(world).tolist() == [0.1, 0.2, 0.3, 0.4]
    assert declared.row({}).tolist() == [0.0] * 4
    values = declared.values([[0.1, 0.2, 0.3, 0.4]] * 2)
    assert values["com", "hand"].shape == (2, 3)
    assert values["mass", "hand"].shape == (2,)
    for wrong in ({"mass": {"arm": 0.1}}, {"com": {"hand": [0.0, 0.1, 0.0]}}, {"lag": {"a": 1}}):
        with pytest.raises(ConcurError, match=f"`{next(iter(wrong))}.*certain"):
            declared.row(wrong)
    with pytest.raises(ConcurError, match=r"shape \(3,\)"):
        declared.row({"com": {"hand": 0.1}})


def test_faults_name_what_is_expected() -> None:
    declared = uncertainty(2)
    inside = Quantity("com", "hand", Uniform(0.0, 1.0), 3, 3)
    for make, text in (
        (lambda: Uniform(1.0, 1.0), "low below high"),
        (lambda: Uniform(0.0, np.inf), "finite"),
        (lambda: Normal(0.0, 0.0), "above zero"),
        (lambda: Triangular(0.0, 3.0, 2.0), "in this order"),
        (lambda: Triangular(1.0, 1.0, 1.0), "in this order"),
        (lambda: Choice((1.0,)), "two or more"),
        (lambda: Choice((1.0, 1.0)), "differ"),
        (lambda: Uncertainty(declared.quantities * 2), "each quantity once"),
        (lambda: Uncertainty((inside,)), "index 3 of 3"),
        (lambda: declared.draw([-1]), "from 0"),
        (lambda: declared.draw([2**30]), "1073741823"),
        (lambda: declared.draw([0.5]), "whole numbers"),
        (lambda: declared.draw([0], seed=-1), "seed"),
        (lambda: declared.draw([0], seed=2**63), "seed"),
        (lambda: declared.draw([0], method="random"), '"independent" or "sobol"'),
        (lambda: declared.values([0.0, 0.0]), r"\(B, 2\)"),
    ):
        with pytest.raises(ConcurError, match=text):
            make()
    assert declared.draw([2**30 - 1], seed=2**63 - 1).shape == (1, 2)
