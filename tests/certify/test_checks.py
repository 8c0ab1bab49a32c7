"""Arguments at the ends of their ranges, and just beyond."""

from math import inf, nan, nextafter, pi

import numpy as np
import pytest

from concur.certify._checks import (
    check,
    check_angle,
    check_budget,
    check_distance,
    check_fraction,
    check_sizes,
)
from concur.errors import OutputError

TINY = nextafter(0.0, 1.0)


@pytest.mark.parametrize("angle", [TINY, 1.0, pi])
def test_angles_in_range(angle):
    check_angle("here", angle)


@pytest.mark.parametrize("angle", [-TINY, 0.0, nextafter(pi, 4.0), inf, nan])
def test_angles_out_of_range(angle):
    with pytest.raises(OutputError, match="here, `angle`: expected above 0 and at most pi rad"):
        check_angle("here", angle)


@pytest.mark.parametrize("distance", [TINY, 1e300])
def test_distances_in_range(distance):
    check_distance("here", distance)


@pytest.mark.parametrize("distance", [-TINY, 0.0, inf, nan])
def test_distances_out_of_range(distance):
    with pytest.raises(OutputError, match="here, `distance`: expected above 0 m and finite"):
        check_distance("here", distance)


@pytest.mark.parametrize("budget", [1, 20_000, np.int64(7)])
def test_numbers_of_boxes(budget):
    found = check_budget("here", budget)
    assert found == budget
    assert type(found) is int


@pytest.mark.parametrize("budget", [0, -1, True, 1.0, "1", None])
def test_what_is_no_number_of_boxes(budget):
    with pytest.raises(OutputError, match="here, `budget`: expected a number of boxes, at least 1"):
        check_budget("here", budget)


@pytest.mark.parametrize("value", [TINY, 0.5, 1.0])
def test_fractions_in_range(value):
    check_fraction("here", "share", value)


@pytest.mark.parametrize("value", [-TINY, 0.0, nextafter(1.0, 2.0), nan])
def test_fractions_out_of_range(value):
    with pytest.raises(OutputError, match="here, `share`: expected a fraction of the rate"):
        check_fraction("here", "share", value)


@pytest.mark.parametrize("sizes", [[], [0.0], [0.0, 2.0]])
def test_sizes(sizes):
    check_sizes("here", np.array(sizes))


@pytest.mark.parametrize("sizes", [[-TINY], [3.0, -1.0]])
def test_negative_sizes(sizes):
    with pytest.raises(OutputError, match="here: expected nonnegative bounds"):
        check_sizes("here", np.array(sizes))


@pytest.mark.parametrize(
    ("came", "shown"),
    [("no value", "got no value"), (1 / 3, "got 0.333333"), (None, "got None"), (7, "got 7")],
)
def test_what_came_is_shown(came, shown):
    check(True, "here", "this", came, "Do that.")
    with pytest.raises(OutputError, match=f"here: expected this, {shown}. Do that."):
        check(False, "here", "this", came, "Do that.")
