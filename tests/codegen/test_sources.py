"""Written C: long functions are cut without a change of what they compute."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest
from numpy.testing import assert_array_equal

from concur.codegen import _sources as written
from concur.codegen import compiled


def long_function(length: int) -> ca.Function:
    """A chain of rotations, in which early values are used late."""
    x = ca.SX.sym("x", 4)
    values = [x[i] for i in range(4)]
    rng = np.random.default_rng(3)
    for _ in range(length):
        i, j = rng.integers(len(values), size=2)
        values.append(ca.sin(values[i]) * 0.5 + values[j] * values[-1])
    return ca.Function("chain", [x], [ca.vertcat(*values[-5:]), values[7]], ["x"], ["y", "z"])


def same(function: ca.Function, other: ca.Function) -> None:
    rng = np.random.default_rng(4)
    for _ in range(5):
        arguments = [rng.normal(size=function.size_in(i)) for i in range(function.n_in())]
        for one, two in zip(function.call(arguments), other.call(arguments), strict=True):
            assert_array_equal(np.array(ca.DM(one)), np.array(ca.DM(two)))


def test_short_function_stays_in_one_file() -> None:
    code = written.sources([long_function(100)])
    assert len(code.files) == 1
    assert "_part" not in code.files[0]
    assert 300 < code.assignments < 600


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("part", [7, 100, 5000])
def test_cut_function_computes_the_same(monkeypatch: pytest.MonkeyPatch, part: int) -> None:
    monkeypatch.setattr(written, "WHOLE", 200)
    monkeypatch.setattr(written, "PART", part)
    monkeypatch.setattr(written, "FILE", 900)
    function = long_function(600)
    code = written.sources([function])
    assert len(code.files) == (2 if part == 5000 else 4)
    assert code.files[1].count("_part0(") == 2
    made = compiled([function])
    assert made is not None
    same(function, made.functions[0])


@pytest.mark.usefixtures("compiler")
def test_functions_of_one_name_and_of_names_of_c_share_a_library() -> None:
    x = ca.SX.sym("x", 2)
    functions = [
        ca.Function("sin", [x], [2 * x], ["x"], ["y"]),
        ca.Function("sin", [x], [ca.sin(x)], ["x"], ["y"]),
        ca.Function("main", [x], [ca.fmin(x, 0) + ca.sign(x) + x**2], ["x"], ["y"]),
    ]
    made = compiled(functions)
    assert made is not None
    assert len(set(written.sources(functions).names)) == 3
    for function, other in zip(functions, made.functions, strict=True):
        same(function, other)


@pytest.mark.usefixtures("compiler")
def test_programme_inside_is_linked_in() -> None:
    low = ca.MX.sym("low")
    solver = ca.conic("least", "daqp", {"h": ca.Sparsity.dense(1, 1)}, {"error_on_fail": True})
    function = ca.Function("least", [low], [solver(h=1, lbx=low, ubx=2)["x"]])
    assert written.sources([function]).solver
    made = compiled([function])
    assert made is not None
    assert float(made.functions[0](1.5)) == 1.5
    with pytest.raises(RuntimeError):  # bounds that cross
        made.functions[0](3.0)
