"""A tick with its reference inside and one that is given the sample return the same torques."""

import numpy as np
import pytest

from tests.benchmarks._references import CASES, comparison, references_table
from tests.benchmarks._timing import measure


@pytest.mark.extended
def test_ticks_return_the_same_torques():
    for name in CASES:
        given, _, *others = (c.prepare()() for c in comparison(name).contenders)
        for torque in others:
            np.testing.assert_allclose(torque, given, rtol=1e-9, atol=1e-9, err_msg=name)


def test_table_has_a_row_for_each_law():
    lines = references_table([measure(comparison(next(iter(CASES))), 2)] * 2).splitlines()
    assert len(lines) == 2 + 2
    assert {line.count("|") for line in lines} == {9}
