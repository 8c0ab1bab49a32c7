"""When constraint rows count as independent, from both sides."""

from __future__ import annotations

import numpy as np
import pytest

from concur.robot._contact import _rank


@pytest.mark.parametrize(("least", "rank"), [(0.9e-9, 2), (1.1e-9, 3)])
@pytest.mark.parametrize("largest", [0.5, 1.0, 1.5, 4.0])
def test_rank_counts_what_is_above_a_thousand_millionth_of_the_largest(
    least: float, rank: int, largest: float
) -> None:
    turn, _ = np.linalg.qr(np.arange(9.0).reshape(3, 3) ** 2 + np.eye(3))
    scale = max(1.0, largest)  # rows have unit length: the largest value is not below one
    rows = turn @ np.diag([largest, 0.5 * largest, least * scale])
    assert _rank(rows) == rank
