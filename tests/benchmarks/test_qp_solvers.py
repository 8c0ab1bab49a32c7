"""Both solvers of the table solve the same programs."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from tests.benchmarks._qp_solvers import KINDS, SIZES, program, solve


@pytest.mark.parametrize("kind", KINDS.values())
def test_solvers_agree(compiler, kind):
    rng = np.random.default_rng(1)
    for n, m in SIZES:
        given = program(rng, n, m, kind)
        (_, own), (_, other) = (solve(given, ours) for ours in (True, False))
        if kind == "none":
            assert own is None
            assert other is None
            continue
        values = given.a @ own
        hard = given.slack == 0.0
        assert (values - given.high)[hard].max() < 1e-8
        assert (given.low - values)[hard].max() < 1e-8
        assert_allclose(own, other, rtol=0, atol=1e-6)
        assert own.any() == (kind != "quiet")
