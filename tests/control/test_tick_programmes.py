"""Torque limits as machine code: quadratic programs have the results of the interpreter."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from concur.codegen import compiled
from tests.control.test_allocation import KINDS, function, instant


@pytest.mark.extended
@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize(("n", "ns"), [(4, 4), (4, 6)])
def test_quadratic_programs_have_the_same_results_when_compiled(n: int, ns: int) -> None:
    made = compiled([function(n, ns)])
    assert made is not None
    rng = np.random.default_rng(21)
    statuses = []
    for i in range(200):
        problem = instant(rng, ns, ns - n, KINDS[i % len(KINDS)])
        inputs = problem.inputs
        if i % 4 == 3:  # so large, small or unsound that solvers fail
            which = int(rng.integers(len(inputs) - 2))
            factor = (1e250, 1e-250, np.nan, 0.0)[int(rng.integers(4))]
            inputs[which] = inputs[which] * factor
        expected = function(n, ns)(*inputs)
        found = made.functions[0](*inputs)
        assert float(found[-1]) == float(expected[-1])
        # Of demands near nothing the scale means nothing; torques always do.
        parts = range(len(expected)) if i % 4 != 3 else (1,)
        for k in parts if float(expected[-1]) else ():
            one, two = np.array(expected[k]), np.array(found[k])
            # Some of the problems are near to singular and multiply rounding.
            size = 1e-7 * (1 + float(np.abs(one).max()))
            assert_allclose(two, one, rtol=0, atol=size)
        statuses.append(float(expected[-1]))
    assert 20 < sum(statuses) < 195  # some are solved, some are not
