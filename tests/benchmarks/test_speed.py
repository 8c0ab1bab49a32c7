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
from tests.benchmarks._report import (
    BEGIN,
    END,
    PAGE,
    QUOTE,
    README,
    duration,
    factors_table,
    quotation,
    rewritten,
    table,
)
from tests.benchmarks._rover_comparisons import rover_comparisons
from tests.benchmarks._timing import Measured
from tests.oracles import assert_close

CASES = [
    (comparison, one, f"{robot}, {comparison.job}")
    for robot, comparisons in (
        ("rover", rover_comparisons([1])),
        ("floating", floating_comparisons(0.5)),
    )
    for comparison in comparisons
    if comparison.alike
    for one in comparison.contenders
    if not one.inner  # these need compilers, and have tests of their own
]


@cache
def result_of(contender: Contender) -> np.ndarray:
    return contender.prepare()().copy()


@pytest.mark.extended
@pytest.mark.parametrize(
    ("comparison", "contender", "group"),
    CASES,
    ids=[f"{group}: {one.name}".replace("`", "") for _, one, group in CASES],
)
def test_speed(benchmark, comparison, contender, group):
    benchmark.group = group
    result = benchmark.pedantic(contender.prepare(), rounds=2, iterations=1)
    first, *peers = [one for one in comparison.contenders if not one.inner]
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
    assert ours == "| a job |  | 3 µs / lap | **3.00** (2.50 to 3.75) |"
    assert peer == "|  | Pinocchio | 1 µs / lap |  |"


def ticks(*microseconds: float) -> Measured:
    """One round of the contenders of a whole law, or of a closed loop, in their order."""
    made = tuple(Contender(f"number {k}", lambda: np.zeros) for k in range(len(microseconds)))
    return Measured(Comparison("a law", made, 1, 1), np.array([microseconds]) * 1e-6)


def test_factors_and_quotation_name_the_right_contenders():
    laws = [ticks(1, 0.9, 0.8, 0.5, 10, 30, 40, 2), ticks(2, 1.9, 1.8, 1, 10, 46, 60, 3)]
    loop = ticks(20, 300, 500)
    quote = " ".join(quotation(laws, loop).split())
    assert "takes 1 µs from Python, 30 times less" in quote
    assert "(23 times on a robot without structural zeros)" in quote
    assert (
        "0.5 µs in a loop in C, 4 times less than over Pinocchio's C++ headers (3 times)" in quote
    )
    assert "25 times faster than the same law called from MuJoCo's steps" in quote
    rows = [line.split("|")[2:4] for line in factors_table(laws, loop).splitlines()[2:]]
    factors = [[float(cell.split("**")[1]) for cell in row if "**" in cell] for row in rows]
    placed = [37.5, 25.6]  # 30 / 0.8 and 46 / 1.8
    assert factors == [placed, [30, 23], [40, 30], [4, 3], [3, 4.6], [2, 2], [1.6, 1.8], [15], [25]]


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
    assert QUOTE in README.read_text(encoding="utf-8")
    with pytest.raises(ValueError, match="has no lines"):
        rewritten("a page without markers", "a table")
