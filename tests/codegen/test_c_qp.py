"""The QP solver of exported torque limits, against SciPy's optima."""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path

import casadi as ca
import numpy as np
import pytest

from concur.codegen import c_text, qp_hole
from concur.control._allocation import allocation
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
    """A function with holes as a library."""

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
    def library(kind, *sizes):
        function = qp_hole(*sizes) if kind == "qp" else allocation(*sizes, "hole")
        if kind == "qp":
            symbols = [ca.MX.sym(f"x{i}", *function.size_in(i)) for i in range(function.n_in())]
            function = ca.Function("posed", symbols, function.call(symbols))
        return Compiled(function, tmp_path_factory.mktemp("qp"))

    return library


def conditions(h, g, a, bounds, x, multipliers):
    """Largest violation of the optimality conditions."""
    rows = np.concatenate([a @ x, x])
    low, high = (np.concatenate(pair) for pair in bounds)
    gradient = h @ x + g + a.T @ multipliers[: len(a)] + multipliers[len(a) :]
    outside = np.maximum(np.maximum(low - rows, rows - high), 0.0)
    with np.errstate(invalid="ignore"):
        above = np.minimum(np.abs(high - rows), np.maximum(multipliers, 0.0))
        below = np.minimum(np.abs(rows - low), np.maximum(-multipliers, 0.0))
    return max(np.abs(part).max() for part in (gradient, outside, above, below))


@pytest.mark.parametrize(("size", "rows"), [(1, 1), (2, 0), (2, 5), (4, 4), (5, 12), (15, 0)])
def test_solution_is_optimal(compiled, size, rows):
    solve, rng, active = compiled("qp", size, rows), np.random.default_rng(size), 0
    for trial in range(150):
        root = rng.normal(size=(size, size))
        h = root @ root.T * 10.0 ** rng.uniform(-3, 1) + 1e-3 * np.eye(size)
        g, a = 3.0 * rng.normal(size=size), rng.normal(size=(rows, size))
        middle = rng.normal(size=size)
        # Some point is within all of them; some have one limit, some none, some hardly any room.
        widths = 10.0 ** rng.uniform(-6 if trial % 5 == 0 else -1, 1, size=(2, rows + size))
        widths[rng.random(widths.shape) < 0.2] = np.inf
        at = np.concatenate([a @ middle, middle])
        low, high = at - widths[0], at + widths[1]
        bounds = (low[:rows], low[rows:]), (high[:rows], high[rows:])
        x, lam_a, lam_x = solve(h, g, a, low[:rows], high[:rows], low[rows:], high[rows:])
        multipliers = np.concatenate([lam_a, lam_x])
        active += np.count_nonzero(multipliers)
        scale = 1.0 + np.abs(g).max() + np.abs(h).max()
        assert conditions(h, g, a, bounds, x, multipliers) < 1e-8 * scale
    assert active > 50


def test_no_solution_is_no_number(compiled):
    solve = compiled("qp", 2, 5)
    a, wide = np.eye(5, 2), np.full(5, np.inf)
    low, high = -wide, wide.copy()
    a[2], low[2], high[0] = (1.0, 0.0), 2.0, 1.0  # x above 2 and below 1
    none = np.full(2, np.inf)
    assert np.isnan(solve(np.eye(2), np.zeros(2), a, low, high, -none, none)[0]).all()
    for bad in (np.full((2, 2), np.nan), -np.eye(2), np.zeros((2, 2))):
        assert np.isnan(solve(bad, np.zeros(2), a, -wide, wide, -none, none)[0]).all()
    found = solve(np.eye(2), np.full(2, np.nan), a, -wide, wide, -none, none)[0]
    assert np.isnan(found).all()
