"""Worlds drawn by number from distributions of SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from concur.errors import ConcurError
from concur.worlds import Quantity, Uncertainty

LAWS: list[Any] = [
    stats.uniform(-0.1, 0.4),
    stats.norm(0.5, 0.02),
    stats.triang(0.5, -1.0, 3.0),
    stats.beta(2.0, 5.0),
    stats.triang(1.0, 0.0, 2.0),
    stats.rv_discrete(values=([3.0, -1.0, 2.0, 0.0], [0.25] * 4)),
]


def uncertainty(count: int = 12) -> Uncertainty:
    return Uncertainty(tuple(Quantity("mass", f"body{k}", LAWS[k % 6]) for k in range(count)))


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


def test_draws_of_a_seed_stay_what_they_are() -> None:
    worlds = uncertainty(4).draw([0, 1, 1000], seed=7)
    expected = [
        [0.0386673, 0.49381089, -0.42804508, 0.57999232],
        [0.29937471, 0.51483516, -0.77544478, 0.30875599],
        [0.10941278, 0.50409958, 1.16181088, 0.23551262],
    ]
    assert np.abs(worlds - expected).max() < 1e-8


def test_independent_draws_follow_their_distributions_and_not_each_other() -> None:
    declared = uncertainty(4)
    worlds = declared.draw(range(20000), seed=7)
    for law, values in zip(LAWS[:4], worlds.T, strict=True):
        assert stats.kstest(values, law.cdf).pvalue > 1e-3
    correlation = stats.spearmanr(np.column_stack([worlds[:-1], worlds[1:]])).statistic
    assert np.abs(correlation - np.eye(8)).max() < 0.03  # nor neighbours in number
    fewer = Uncertainty(declared.quantities[2:])
    assert np.array_equal(fewer.draw(range(9), seed=7), worlds[:9, 2:])


def test_sobol_points_are_those_of_scipy() -> None:
    flat = Uncertainty(tuple(Quantity("mass", f"b{k}", stats.uniform()) for k in range(5)))
    points = stats.qmc.Sobol(5, seed=np.random.default_rng(2)).random(64)
    worlds = flat.draw(range(64), 2, "sobol")
    assert np.abs(worlds - points).max() <= 2.0**-30
    assert np.all(np.histogramdd(worlds[:, :2], (8, 8), [(0, 1)] * 2)[0] == 1)


def test_worlds_are_nested_tables() -> None:
    law = stats.uniform(-1.0, 2.0)
    declared = Uncertainty(
        (
            Quantity("mass", "hand", law),
            Quantity("com", "hand", law, 0, 3),
            Quantity("com", "hand", law, 2, 3),
            Quantity("reference.hand", "radius", law),
        )
    )
    assert declared.labels == ("mass.hand", "com.hand[0]", "com.hand[2]", "reference.hand.radius")
    assert declared.world([0.1, 0.2, 0.3, 0.4]) == {
        "mass": {"hand": 0.1},
        "com": {"hand": [0.2, 0.0, 0.3]},
        "reference": {"hand": {"radius": 0.4}},
    }
    values = declared.values([[0.1, 0.2, 0.3, 0.4]] * 2)
    assert values["com", "hand"].shape == (2, 3)
    assert values["mass", "hand"].shape == (2,)
    assert Quantity("mass", "hand", stats.uniform(-0.9, 1.0)).support == (-0.9, 0.1)
    assert Quantity("mass", "hand", stats.norm()).support == (-np.inf, np.inf)


def test_faults_name_what_is_expected() -> None:
    declared = uncertainty(2)
    inside = Quantity("com", "hand", stats.uniform(), 3, 3)
    for make, text in (
        (lambda: Quantity("mass", "hand", stats.uniform(1.0, 0.0)), "`mass.hand`.*two values"),
        (lambda: Quantity("mass", "hand", stats.uniform(1.0, -1.0)), "in order"),
        (lambda: Quantity("mass", "hand", stats.uniform(0.0, np.inf)), "finite"),
        (lambda: Quantity("mass", "hand", stats.norm(0.0, 0.0)), "two values"),
        (lambda: Quantity("mass", "hand", stats.triang(1.5, 0.0, 1.0)), "in order"),
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
