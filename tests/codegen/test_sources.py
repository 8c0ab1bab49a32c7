"""Generated C: long functions are divided without a change of their results."""

from __future__ import annotations

import threading

import casadi as ca
import numpy as np
import pytest
from numpy.testing import assert_allclose

from concur.codegen import Evaluator, compiled, quadratic_program
from concur.codegen import _sources as written


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
            # Up to rounding: a compiler may fuse a multiplication and an addition.
            assert_allclose(np.array(ca.DM(one)), np.array(ca.DM(two)), rtol=1e-12, atol=1e-15)


def test_short_function_stays_in_one_file() -> None:
    code = written.sources([long_function(100)])
    assert len(code.files) == 1
    assert "_part" not in code.files[0]
    assert 300 < code.assignments < 600


@pytest.mark.extended
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
def test_threads_have_a_solvers_memory_each() -> None:
    low, free = ca.MX.sym("low", 8), ca.MX.ones(8) * 50.0
    solve = quadratic_program(8, 8)
    least = ca.Function("least", [low], [solve(np.eye(8), np.eye(8), low, free, np.zeros(8))[0]])
    made = compiled([least])
    assert made is not None
    wrong: list[object] = []

    def work(index: int) -> None:
        evaluator = Evaluator(made.functions[0], [(8,)], "least", can_fail=True)
        wanted = np.linspace(1.0, 2.0 + index, 8)
        for _ in range(3000):
            evaluator.inputs[0][:, 0] = wanted
            evaluator.trigger()
            found = evaluator.outputs[0][:, 0]
            if not evaluator.succeeded or np.abs(found - wanted).max() > 1e-9:
                wrong.append((index, evaluator.succeeded, found.copy()))

    threads = [threading.Thread(target=work, args=(index,)) for index in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong, f"{len(wrong)} of 12000, such as {wrong[0]}"
