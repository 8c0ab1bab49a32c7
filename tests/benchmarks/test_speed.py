"""Each contender once, quickly: pytest-benchmark prints the ratios within each group.

Its times are those of a whole run, which does a short job many times. They are not asserted.
What every contender returns is: it must be what the others return.
For ratios of interleaved runs call `python -m tests.benchmarks`.
"""

from functools import cache

import numpy as np
import pytest

from tests.benchmarks._contender import Comparison, Contender
from tests.benchmarks._floating_comparisons import floating_comparisons
from tests.benchmarks._report import BEGIN, END, PAGE, duration, rewritten, table
from tests.benchmarks._rover_comparisons import rover_comparisons
from tests.benchmarks._timing import Measured
from tests.oracles import assert_close

CASES = [
    (comparison, one, f"{robot}, {comparison.job}")
    for robot, comparisons in (("rover", rover_comparisons()), ("floating", floating_comparisons()))
    for comparison in comparisons
    if comparison.alike
    for one in comparison.contenders
]


@cache
def result_of(contender: Contender) -> np.ndarray:
    return contender.prepare()().copy()


@pytest.mark.parametrize(
    ("comparison", "contender", "group"),
    CASES,
    ids=[f"{group}: {one.name}".replace("`", "") for _, one, group in CASES],
)
def test_speed(benchmark, comparison, contender, group):
    benchmark.group = group
    result = benchmark.pedantic(contender.prepare(), rounds=2, iterations=1)
    first, *peers = comparison.contenders
    assert_close(result, result_of(peers[-1] if contender is first else first), 1e-9)


def measured() -> Measured:
    """Ours takes 2, 3, 9 microseconds, the peer 1, 1, 2."""
    ours, peer = (Contender(name, lambda: lambda: np.zeros(1), name) for name in ("", "Pinocchio"))
    comparison = Comparison("a job", (ours, peer), 1, 3, "lap")
    return Measured(comparison, np.array([[2.0, 1.0], [3.0, 1.0], [9.0, 2.0]]) * 1e-6)


def test_ratio_is_of_the_same_round():
    result = measured()
    assert result.median(result.comparison.contenders[0]) == pytest.approx(3e-6)
    assert result.ratio(*result.comparison.contenders) == pytest.approx((3.0, 2.5, 3.75))


def test_table_shows_medians_and_ratios():
    *_, ours, peer = table([measured()]).splitlines()
    assert ours == "| a job |  | 3 µs / lap | **3.00** (2.50 to 3.75) |  |"
    assert peer == "|  | Pinocchio | 1 µs / lap |  |  |"


@pytest.mark.parametrize(
    ("seconds", "shown"), [(7.123e-6, "7.12 µs"), (0.25, "250 ms"), (1.5, "1.5 s"), (1e-3, "1 ms")]
)
def test_durations_have_units(seconds, shown):
    assert duration(seconds) == shown


def test_only_what_stands_between_the_markers_is_rewritten():
    page = PAGE.read_text(encoding="utf-8")
    new = rewritten(page, "a new table")
    assert new.split(BEGIN)[0] == page.split(BEGIN)[0]
    assert new.split(END)[1] == page.split(END)[1]
    assert "\na new table\n" in new
    with pytest.raises(ValueError, match="has no lines"):
        rewritten("a page without markers", "a table")
