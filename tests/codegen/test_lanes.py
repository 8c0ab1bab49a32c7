"""Graphs of rollouts in C over vectors of worlds: every operation, at any numbers."""

from __future__ import annotations

import os
import subprocess
import sys

import casadi as ca
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from concur.codegen import Batch, CompilerWarning, Rollout, _compiler, _lanes_c
from concur.errors import ConcurError

SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.3, -2.5, 7.0, 1e-310, 1e-9, 40.5, -1e5, 3e9, np.inf, -np.inf)
NUMBERS = np.array([*SPECIAL, np.nan])

ONE = {
    "neg": lambda x: -x,
    "sq": lambda x: x**2,
    "twice": lambda x: 2 * x,
    "inv": lambda x: 1 / x,
    "sqrt": ca.sqrt,
    "sin": ca.sin,
    "cos": ca.cos,
    "tan": ca.tan,
    "asin": ca.asin,
    "acos": ca.acos,
    "atan": ca.atan,
    "sinh": ca.sinh,
    "cosh": ca.cosh,
    "tanh": ca.tanh,
    "asinh": ca.asinh,
    "acosh": ca.acosh,
    "atanh": ca.atanh,
    "exp": ca.exp,
    "log": ca.log,
    "expm1": ca.expm1,
    "log1p": ca.log1p,
    "erf": ca.erf,
    "floor": ca.floor,
    "ceil": ca.ceil,
    "fabs": ca.fabs,
    "sign": ca.sign,
    "not": ca.logic_not,
    "constpow": lambda x: ca.constpow(x, 2.7),
}
TWO = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x / y,
    "pow": ca.power,
    "atan2": ca.atan2,
    "hypot": ca.hypot,
    "fmod": ca.fmod,
    "remainder": ca.remainder,
    "copysign": ca.copysign,
    "fmin": ca.fmin,
    "fmax": ca.fmax,
    "lt": lambda x, y: x < y,
    "le": lambda x, y: x <= y,
    "eq": lambda x, y: x == y,
    "ne": lambda x, y: x != y,
    "and": ca.logic_and,
    "or": ca.logic_or,
    "if_else_zero": lambda x, y: ca.if_else(x, y, 0.0),
    "if_else": lambda x, y: ca.if_else(x, y, 2.0 - y),
    "less": lambda x, y: ca.if_else(x < y, x / y, y / x),
}


def every_operation() -> ca.Function:
    x, y = ca.SX.sym("x"), ca.SX.sym("y")
    results = [of(x) for of in ONE.values()] + [of(x, y) for of in TWO.values()]
    return ca.Function("every", [x, y], [ca.vertcat(*results)])


def small() -> ca.Function:
    """A function of two operations, where any will do."""
    x, y = ca.SX.sym("x"), ca.SX.sym("y")
    return ca.Function("small", [x, y], [ca.sin(x) + y])


def graphs(function: ca.Function) -> tuple[ca.Function, ca.Function]:
    """A tick whose signals are the function of quotients of the world's numbers, and an idle step.

    Quotients are infinite and NaN too, which numbers of a world cannot be.
    """
    x, p, r, n = (ca.SX.sym(name, size) for name, size in zip("xprn", (1, 4, 0, 0), strict=True))
    signals = ca.vertcat(0, ca.densify(function(p[0] / p[1], p[2] / p[3])))
    tick = ca.Function("tick", [x, p, r, n], [x, x, signals])
    return tick, idle(4)


def idle(numbers: int) -> ca.Function:
    """A step that changes nothing."""
    x, p, u = (ca.SX.sym(name, size) for name, size in zip("xpu", (1, numbers, 1), strict=True))
    return ca.Function("step", [x, p, u], [x, x])


def quotients(values: np.ndarray) -> np.ndarray:
    """Finite numerators and denominators of any numbers, shape (2, B)."""
    over = np.where(np.isfinite(values), 1.0, 0.0)
    up = np.where(np.isfinite(values), values, np.where(np.isnan(values), 0.0, np.sign(values)))
    return np.array([up, over])


def signals(loop: Rollout, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Values of the function in all worlds, shape (B, results)."""
    p, count = np.concatenate([quotients(x), quotients(y)]).T, len(x)
    batch = Batch(np.zeros((count, 1)), p, range(count))
    found = loop(batch, np.zeros((1, 0)), ticks=1, record=1)
    return found.record.y[:, 0, 1:-1]


@pytest.mark.by_default(2)
@pytest.mark.parametrize(("width", "functions"), [(4, "vector"), (8, "scalar"), (8, "vector")])
def test_every_operation_at_all_kinds_of_numbers(
    compiler: None, monkeypatch: pytest.MonkeyPatch, width: int, functions: str
) -> None:
    # "scalar" is as where there is no vector library.
    text = f"#define WIDTH {width}\n{_lanes_c.lane_head(functions == 'scalar')}"
    monkeypatch.setattr("concur.codegen._rollout_c.lane_head", lambda _: text)
    graph = every_operation()
    known = {graph.instruction_id(k) for k in range(graph.n_instructions())}
    told = {ca.OP_INPUT, ca.OP_OUTPUT, ca.OP_CONST, ca.OP_ASSIGN, ca.OP_LIFT}
    assert known | told == set(_lanes_c._FORMS) | told
    loop = Rollout(*graphs(graph), 1)
    assert (loop.compiled, loop.width) == (True, width)
    x, y = (part.ravel() for part in np.meshgrid(NUMBERS, NUMBERS))
    with np.errstate(invalid="ignore", divide="ignore"):  # NaN has the sign of the processor's
        same = [np.divide(*quotients(part))[None] for part in (x, y)]
    wanted = np.array(graph.map(len(x))(*same))
    for name, found, right in zip((*ONE, *TWO), signals(loop, x, y).T, wanted, strict=True):
        assert_allclose(found, right, rtol=1e-13, atol=1e-300, err_msg=name)


def test_signs_of_zeros_and_constants(compiler: None) -> None:
    x, y = ca.SX.sym("x"), ca.SX.sym("y")
    big = [ca.SX(value) for value in (np.inf, -np.inf, np.nan, 0.1, -3e-320)]
    results = ca.vertcat(*big, -x, ca.copysign(2.0, x))
    loop = Rollout(*graphs(ca.Function("constants", [x, y], [results])), 1)
    found = signals(loop, np.array([0.0, -0.0]), np.zeros(2))
    fixed = [np.inf, -np.inf, np.nan, 0.1, -3e-320]
    assert_array_equal(found, [[*fixed, -0.0, 2.0], [*fixed, 0.0, -2.0]])
    assert_array_equal(np.signbit(found[:, 5]), [True, False])


@pytest.mark.parametrize(("asked", "told"), [(None, "PASSIVE"), ("ACTIVE", "ACTIVE")])
def test_waiting_threads_sleep_unless_told_otherwise(
    compiler: None, asked: str | None, told: str
) -> None:
    text = (
        "import os; from concur.codegen import Rollout; before = dict(os.environ)\n"
        "from tests.codegen.test_lanes import small, graphs\n"
        "Rollout(*graphs(small()), 1, threads=2)\n"
        "print(before == dict(os.environ))\n"
    )
    environment = {k: v for k, v in os.environ.items() if k != "OMP_WAIT_POLICY"}
    environment |= {"OMP_DISPLAY_ENV": "TRUE"} | ({"OMP_WAIT_POLICY": asked} if asked else {})
    command = [sys.executable, "-c", text]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, timeout=100, env=environment
    )
    assert done.stdout.strip() == "True"
    assert f"OMP_WAIT_POLICY = '{told}'" in done.stderr


def test_no_compiler_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("concur.codegen._compiler.find_compiler", lambda: None)
    monkeypatch.setattr("concur.codegen._compiler.interpreted_on_purpose", lambda: False)
    monkeypatch.setattr(_compiler, "_SAID", set())
    with pytest.warns(CompilerWarning, match="No C compiler was found"):
        Rollout(*graphs(small()), 1)
    assert Rollout(*graphs(small()), 1).compiled is False


def test_no_openmp_is_told_once(compiler: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("concur.codegen._rollout_c._has_openmp", lambda _: False)
    monkeypatch.setattr(_compiler, "_SAID", set())
    with pytest.warns(CompilerWarning, match="has no OpenMP"):
        loop = Rollout(*graphs(small()), 1, threads=2)
    assert (loop.threads, loop.compiled) == (1, True)


def test_unknown_instruction(monkeypatch: pytest.MonkeyPatch, compiler: None) -> None:
    rest = {code: form for code, form in _lanes_c._FORMS.items() if code != ca.OP_SIN}
    monkeypatch.setattr(_lanes_c, "_FORMS", rest)
    with pytest.raises(ConcurError, match="expected instructions supported by lanes"):
        Rollout(*graphs(small()), 1)


def test_a_step_with_a_solver_is_refused() -> None:
    x, p, u = (ca.MX.sym(name, size) for name, size in zip("xpu", (1, 4, 1), strict=True))
    solver = ca.conic("p", "daqp", {"h": ca.Sparsity.dense(1, 1), "a": ca.Sparsity.dense(1, 1)})
    solved = solver(h=1, g=-x, a=1, lbx=-1.0, ubx=1.0)["x"]
    tick, _ = graphs(small())
    with pytest.raises(ConcurError, match="expected a function that can be expanded to SX"):
        Rollout(tick, ca.Function("step", [x, p, u], [solved, x]), 1)
