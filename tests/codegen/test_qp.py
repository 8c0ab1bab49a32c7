"""The QP solver of compiled and exported laws, against the conditions of an optimum."""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path

import casadi as ca
import numpy as np
import pytest

from concur.codegen import _qp, c_text, quadratic_program
from tests.export._export import COMPILERS, STRICT, run

POINTER = ctypes.POINTER(ctypes.c_double)
_ENTRY = """#include <float.h>
#include <math.h>
typedef double real_t;
{text}
int entry(const real_t **given, real_t **found);
int entry(const real_t **given, real_t **found) {{
  static const real_t *arg[{arguments}];
  static real_t *res[{results}], w[{numbers}], more[{further} + 1];
  static int iw[{integers}];
  int i, code;
  for (i = 0; i < {n_in}; ++i) arg[i] = given[i];
  for (i = 0; i < {n_out}; ++i) res[i] = found[i];
  more[{further}] = 123;
  code = law(arg, res, iw, w, more);
  return more[{further}] == 123 ? code : 77;
}}
"""


class Compiled:
    """A function with a program as a library, in strict C."""

    def __init__(self, function, folder: Path):
        text = c_text(function)
        numbers = {name: getattr(text, name) for name in vars(text)}
        source = _ENTRY.format(**numbers, n_in=function.n_in(), n_out=function.n_out())
        (folder / "entry.c").write_text(source)
        flags = ("-O0", *STRICT, "-shared", "-fPIC", "entry.c", "-o", "entry.so", "-lm")
        done = run(COMPILERS[0], *flags, cwd=folder)
        assert done.returncode == 0, done.stderr
        self._call = ctypes.CDLL(str(folder / "entry.so")).entry
        self._sizes = [function.numel_out(i) for i in range(function.n_out())]

    def __call__(self, *arguments):
        given = [np.asarray(a, float).ravel(order="F").copy() for a in arguments]
        found = [np.full(size, np.nan) for size in self._sizes]
        arrays = [
            (POINTER * len(part))(*(a.ctypes.data_as(POINTER) for a in part))
            for part in (given, found)
        ]
        assert self._call(*arrays) == 0
        return found


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    @cache
    def library(*sizes):
        return Compiled(posed(*sizes), tmp_path_factory.mktemp("qp"))

    return library


def posed(size, rows):
    program = quadratic_program(size, rows)
    symbols = [ca.MX.sym(f"x{i}", *program.size_in(i)) for i in range(program.n_in())]
    return ca.Function("posed", symbols, program.call(symbols))


def problem(rng, size, rows, kept):
    """A program some of whose rows have one limit, none, or hardly any room; `kept` ones are."""
    root = rng.normal(size=(size, size))
    h = root @ root.T * 10.0 ** rng.uniform(-2, 1) + 1e-2 * np.eye(size)
    a = rng.normal(size=(rows, size))
    widths = 10.0 ** rng.uniform(-6 if rng.random() < 0.2 else -1, 1, size=(2, rows))
    widths[rng.random(widths.shape) < 0.2] = np.inf
    middle = 2.0 * rng.normal(size=rows)
    slack = np.where(np.arange(rows) < kept, 0.0, 10.0 ** rng.uniform(-6, 0))
    return h, a, middle - widths[0], middle + widths[1], slack


def misfit(h, a, low, high, slack, x, multipliers):
    """Largest violation of the optimality conditions; a row misses slack times its multiplier."""
    values = a @ x - slack * multipliers
    outside = np.maximum(np.maximum(low - values, values - high), 0.0)
    with np.errstate(invalid="ignore"):
        above = np.minimum(np.abs(high - values), np.maximum(multipliers, 0.0))
        below = np.minimum(np.abs(values - low), np.maximum(-multipliers, 0.0))
    gradient = (h @ x + a.T @ multipliers) / (1.0 + np.abs(multipliers).max())
    return max(np.abs(part).max(initial=0.0) for part in (gradient, outside, above, below))


SIZES = [(1, 1, 1), (2, 5, 2), (4, 4, 0), (5, 12, 3), (12, 36, 12), (15, 15, 15), (24, 36, 20)]


@pytest.mark.parametrize(("size", "rows", "kept"), SIZES)
def test_solution_is_optimal_and_that_of_daqp(compiled, size, rows, kept):
    solve, other = compiled(size, rows), posed(size, rows)
    rng, active = np.random.default_rng(size), 0
    for trial in range(60):
        given = problem(rng, size, rows, kept)
        x, multipliers, solved = solve(*given)
        assert solved == 1.0
        assert misfit(*given, x, multipliers) < 1e-7 * (1.0 + np.abs(given[0]).max())
        active += np.count_nonzero(multipliers)
        if trial < 10:
            expected = np.asarray(other(*given)[0]).ravel()
            np.testing.assert_allclose(x, expected, rtol=0, atol=1e-6 * (1 + np.abs(x).max()))
    assert active > 20


BALL = (np.eye(2), np.eye(2), np.array([1.0, -9.0]), np.array([9.0, 9.0]), np.array([0.0, 1.0]))
"""The least change with x above 1: x = (1, 0), with the multiplier -1 of the lower limit."""


@pytest.mark.parametrize(
    ("left", "solved"),
    [
        ({}, 1.0),
        ({"x": [1 + 1e-8, 0, 0, 0]}, 1.0),
        ({"x": [1 - 1e-5, 0, 0, 0]}, 0.0),  # misses a row
        ({"x": [2, 0, 0, 0], "lam_a": [-2, 0]}, 0.0),  # pulled from a limit that it does not reach
        ({"x": [1, 0.1, 0, 0]}, 0.0),  # keeps all rows, but is not the nearest
        ({"x": [1, 0, 0, 0.1]}, 0.0),  # a slack that no multiplier pulls
        ({"x": [9, 0, 0, 0], "lam_a": [-9, 0]}, 0.0),  # the sign of the other limit
        ({"lam_a": [-1 + 1e-8, 0]}, 1.0),
        ({"lam_a": [-1 + 1e-5, 0]}, 0.0),
        ({"lam_a": [1.0, 0]}, 0.0),
        ({"lam_a": [np.nan, 0]}, 0.0),
        ({"x": [np.nan, 0, 0, 0]}, 0.0),
        ({"x": [1e-320, 0, 0, 0], "lam_a": [1e200, -1e300]}, 0.0),
    ],
)
def test_numbers_that_an_interpreted_program_leaves_behind_count_only_if_they_are_optimal(
    monkeypatch, left, solved
):
    """Where DAQP stops early they are undefined: here anything at all stands in their place."""
    numbers = {"x": [1.0, 0, 0, 0], "lam_a": [-1.0, 0]} | left
    found = {name: ca.MX(ca.DM(value)) for name, value in numbers.items()}
    monkeypatch.setattr(_qp.ca, "conic", lambda *_: lambda **_: found)
    program = quadratic_program.__wrapped__(2, 2)
    x, multipliers, said = program(*BALL)
    assert float(said) == solved
    kept = [*numbers["x"][:2], *numbers["lam_a"]] if solved else np.zeros(4)
    np.testing.assert_array_equal(np.array(ca.vertcat(x, multipliers))[:, 0], kept)


def test_what_is_no_program_is_not_solved(compiled):
    solve, none = compiled(2, 5), np.full(5, np.inf)
    a, slack = np.eye(5, 2), np.zeros(5)
    assert solve(np.eye(2), a, -none, none, slack)[2] == 1.0
    for bad in (np.full((2, 2), np.nan), -np.eye(2), np.zeros((2, 2))):
        assert solve(bad, a, -none, none, slack)[2] == 0.0
    a[2], low, high = (1.0, 0.0), -none.copy(), none.copy()
    low[2], high[0] = 2.0, 1.0  # x above 2 and below 1: rows that are kept, but not independent
    assert solve(np.eye(2), a, low, high, slack)[2] == 0.0
    x, *_, solved = solve(np.eye(2), a, low, high, slack + 1e-3)
    assert solved == 1.0
    assert x[0] == pytest.approx(1.5, abs=1e-2)
