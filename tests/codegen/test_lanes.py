"""Lanes: results equal those of the interpreter world by world, for any numbers."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading

import casadi as ca
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from concur.codegen import BatchMap, CompilerWarning, Evaluator, Lanes, _compiler, _lanes_c
from concur.codegen._evaluator import UNSOUND
from concur.errors import ConcurError, ShapeError

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
    names = [f"of_{name}" for name in (*ONE, *TWO)]
    return ca.Function("every", [x, y], results, ["x", "y"], names)


def spin() -> ca.Function:
    """From a vector, a matrix and a number to a vector and a matrix with a structural zero."""
    x, m, h = ca.SX.sym("x", 2), ca.SX.sym("m", 2, 3), ca.SX.sym("h")
    zero = ca.SX(2, 1)
    matrix = ca.horzcat(m[:, 0] * h, zero, ca.sin(x) + m[:, 2], m[:, 1])
    results = [ca.vertcat(x[0] + h * x[1], x[1] - h * x[0]), matrix]
    return ca.Function("spin", [x, m, h], results, ["x", "m", "h"], ["turned", "matrix"])


def spun(x: np.ndarray, m: np.ndarray, h: float | np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same in NumPy."""
    h = np.broadcast_to(h, len(x))[:, None]
    turned = x + h * np.stack([x[:, 1], -x[:, 0]], axis=1)
    columns = [m[:, :, 0] * h, np.zeros_like(x), np.sin(x) + m[:, :, 2], m[:, :, 1]]
    return turned, np.stack(columns, axis=2)


def worlds(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    shapes = (count, 2), (count, 2, 3), (count,)
    return tuple(rng.uniform(-2.0, 2.0, shape) for shape in shapes)


@pytest.mark.parametrize(("width", "functions"), [(4, "vector"), (8, "vector"), (8, "scalar")])
def test_every_operation_at_all_kinds_of_numbers(
    compiler: None, monkeypatch: pytest.MonkeyPatch, width: int, functions: str
) -> None:
    if functions == "scalar":  # as where there is no vector library
        write = _lanes_c.lane_sources
        monkeypatch.setattr("concur.codegen._lanes.lane_sources", lambda f, w, _: write(f, w, True))
    graph = every_operation()
    known = {graph.instruction_id(k) for k in range(graph.n_instructions())}
    told = {ca.OP_INPUT, ca.OP_OUTPUT, ca.OP_CONST, ca.OP_ASSIGN, ca.OP_LIFT}
    assert known | told == set(_lanes_c._FORMS) | told
    lanes = Lanes(graph, width=width)
    assert (lanes.compiled, lanes.width) == (True, width)
    x, y = (part.ravel() for part in np.meshgrid(NUMBERS, NUMBERS))
    found = lanes(x, y)
    wanted = [np.array(r)[0] for r in graph.map(len(x)).call([x[None], y[None]])]
    for name, result, right in zip((*ONE, *TWO), found, wanted, strict=True):
        assert_allclose(result[:, 0], right, rtol=1e-13, atol=1e-300, err_msg=name)


def test_signs_of_zeros_and_constants(compiler: None) -> None:
    x = ca.SX.sym("x")
    big = [ca.SX(value) for value in (np.inf, -np.inf, np.nan, 0.1, -3e-320)]
    function = ca.Function("constants", [x], [ca.vertcat(*big, -x, ca.copysign(2.0, x))])
    found = Lanes(function)(np.array([0.0, -0.0]))
    fixed = [np.inf, -np.inf, np.nan, 0.1, -3e-320]
    assert_array_equal(found, [[*fixed, -0.0, 2.0], [*fixed, 0.0, -2.0]])
    assert_array_equal(np.signbit(found[:, 5]), [True, False])


@pytest.mark.parametrize("width", [4, 8])
def test_batches_of_any_size(compiler: None, width: int) -> None:
    lanes = Lanes(spin(), width=width)
    for count in range(18):
        x, m, h = worlds(count, count)
        turned, matrix = lanes(x, m, h)
        right = spun(x, m, h)
        assert_allclose(turned, right[0], rtol=1e-14, atol=1e-15)
        assert_allclose(matrix, right[1], rtol=1e-14, atol=1e-15)


def test_what_is_left_over_is_not_touched(compiler: None) -> None:
    x, m, h = worlds(11)
    turned, matrix = np.full((14, 2), 5.0), np.full((14, 2, 4), 5.0)
    Lanes(spin()).bind([x, m, h], [turned[:11], matrix[:11]])()
    assert_allclose(turned[:11], spun(x, m, h)[0], rtol=1e-14, atol=1e-15)
    assert (turned[11:] == 5.0).all()
    assert (matrix[11:] == 5.0).all()


def test_arguments_that_are_the_same_in_all_worlds(compiler: None) -> None:
    lanes = Lanes(spin())
    x, m, h = worlds(9)
    for shared in (0.25, np.array([0.25]), [0.25], np.full((9, 1), 0.25)):
        assert_array_equal(lanes(x, m, shared)[0], lanes(x, m, np.full(9, 0.25))[0])
    one = lanes(x, m[3], h)
    assert_array_equal(one[1], lanes(x, np.stack([m[3]] * 9), h)[1])
    assert_array_equal(lanes(x[0], m, h)[0], lanes(np.stack([x[0]] * 9), m, h)[0])


def test_nan_stays_in_its_lane(compiler: None) -> None:
    lanes = Lanes(spin())
    x, m, h = worlds(13)
    clean = lanes(x, m, h)
    for bad in (np.nan, np.inf):
        broken = x.copy()
        broken[5, 0] = bad
        for result, right in zip(lanes(broken, m, h), clean, strict=True):
            rest = np.arange(13) != 5
            assert_array_equal(result[rest], right[rest])
            assert not np.isfinite(result[5]).all()


def test_threads_give_the_same_bits(compiler: None) -> None:
    x, m, h = worlds(101)
    one, two = Lanes(spin()), Lanes(spin(), threads=2)
    assert (one.threads, two.threads) == (1, 2)
    for a, b in zip(one(x, m, h), two(x, m, h), strict=True):
        assert_array_equal(a, b)


@pytest.mark.extended
def test_a_process_may_fork_after_threads(compiler: None) -> None:
    # The child calls threads too: with those of the parent missing it would wait for ever.
    text = (
        "import os, casadi as ca, numpy as np; from concur.codegen import Lanes\n"
        "x = ca.SX.sym('x'); lanes = Lanes(ca.Function('f', [x], [2 * x]), threads=2)\n"
        "numbers = np.arange(50.0); lanes(numbers); child = os.fork()\n"
        "right = bool((lanes(numbers)[:, 0] == 2 * numbers).all()) and lanes.threads == 2\n"
        "if child == 0: os._exit(0 if right else 1)\n"
        "print(right, os.waitpid(child, 0)[1])\n"
    )
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", text]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=100)
    assert done.stdout.strip() == "True 0"


@pytest.mark.parametrize(("asked", "told"), [(None, "PASSIVE"), ("ACTIVE", "ACTIVE")])
def test_waiting_threads_sleep_unless_told_otherwise(
    compiler: None, asked: str | None, told: str
) -> None:
    text = (
        "import os, casadi as ca; from concur.codegen import Lanes; before = dict(os.environ)\n"
        "x = ca.SX.sym('x'); Lanes(ca.Function('f', [x], [2 * x]), threads=2)\n"
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


def test_calls_from_several_threads(compiler: None) -> None:
    lanes = Lanes(spin())
    x, m, h = worlds(500)
    right, found = lanes(x, m, h), {}

    def call(key: int) -> None:
        found[key] = [lanes(x + key, m, h) for _ in range(20)]

    runs = [threading.Thread(target=call, args=(key,)) for key in range(3)]
    for run in runs:
        run.start()
    for run in runs:
        run.join()
    for results in found[0]:
        assert_array_equal(results[0], right[0])
    for key in (1, 2):
        for results in found[key]:
            assert_array_equal(results[0], lanes(x + key, m, h)[0])


@pytest.mark.parametrize("kind", [Lanes, BatchMap])
@pytest.mark.parametrize("way", ["compiled", "interpreted"])
def test_steps_in_place(
    monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest, kind: type, way: str
) -> None:
    if way == "compiled":
        request.getfixturevalue("compiler")
    batch = kind(spin())
    assert batch.compiled == (way == "compiled")
    x, m, _ = worlds(10)
    state = np.zeros((10, 7))  # rows with gaps between them
    state[:, 3:5] = x
    matrix, h = np.empty((10, 2, 4)), np.array(0.1)
    step = batch.bind([state[:, 3:5], m, h], [state[:, 3:5], matrix])
    for _ in range(3):
        step()
    h[...] = -0.1
    step()
    for size in (0.1, 0.1, 0.1, -0.1):
        x = spun(x, m, size)[0]
    assert_allclose(state[:, 3:5], x, rtol=1e-14)
    assert (state[:, [0, 1, 2, 5, 6]] == 0.0).all()


def test_arrays_may_be_forgotten_once_they_are_bound(compiler: None) -> None:
    x, m, h = worlds(10)
    found = np.empty((10, 2)), np.empty((10, 2, 4))
    step = Lanes(spin()).bind([x.copy(), m.copy(), h.copy()], found)
    junk = [np.full((10, 2), np.nan) for _ in range(50)]
    step()
    assert len(junk) == 50
    assert_allclose(found[0], spun(x, m, h)[0], rtol=1e-14, atol=1e-15)


def test_an_evaluator_gives_numbers_their_shape(compiler: None) -> None:
    x = ca.SX.sym("x", 3)
    function = ca.Function(
        "f", [x], [ca.sumsqr(x), 2 * x, ca.sum1(x)], ["x"], ["square", "twice", UNSOUND]
    )
    lanes = Lanes(Evaluator(function, [(), (3,)], "f"))
    square, twice = lanes(np.ones((5, 3)))
    assert_array_equal(square, np.full(5, 3.0))
    assert_array_equal(twice, np.full((5, 3), 2.0))
    assert lanes.function.name_out() == ["square", "twice"]


@pytest.mark.parametrize("shape", [(6,), (6, 1)])
def test_numbers_in_either_shape(compiler: None, shape: tuple[int, ...]) -> None:
    x = ca.SX.sym("x")
    lanes = Lanes(ca.Function("f", [x], [2 * x]))
    numbers, found = np.arange(6.0).reshape(shape), np.empty(shape)
    lanes.bind([numbers], [found])()
    assert_array_equal(found, 2 * numbers)
    assert_array_equal(lanes(numbers), 2 * np.arange(6.0)[:, None])


def test_without_a_compiler_worlds_are_interpreted() -> None:
    lanes = Lanes(spin(), threads=3)
    assert (lanes.compiled, lanes.width) == (False, 1)
    x, m, h = worlds(6)
    for result, right in zip(lanes(x, m, h), spun(x, m, h), strict=True):
        assert_allclose(result, right, rtol=1e-14, atol=1e-15)


def test_no_compiler_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("concur.codegen._batch.find_compiler", lambda: None)
    monkeypatch.setattr("concur.codegen._batch.interpreted_on_purpose", lambda: False)
    monkeypatch.setattr(_compiler, "_SAID", set())
    with pytest.warns(CompilerWarning, match="No C compiler was found"):
        Lanes(spin())
    assert Lanes(spin()).compiled is False


def test_no_openmp_is_told_once(compiler: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("concur.codegen._batch._has_openmp", lambda _: False)
    monkeypatch.setattr(_compiler, "_SAID", set())
    with pytest.warns(CompilerWarning, match="has no OpenMP"):
        lanes = Lanes(spin(), threads=2)
    assert (lanes.threads, lanes.compiled) == (1, True)


def test_pickled(compiler: None) -> None:
    x, m, h = worlds(5)
    lanes = Lanes(spin(), width=4, threads=2)
    copy = pickle.loads(pickle.dumps(lanes))
    assert (copy.width, copy.threads, copy.compiled) == (4, 2, True)
    assert_array_equal(copy(x, m, h)[0], lanes(x, m, h)[0])


@pytest.mark.extended
def test_second_time_comes_from_the_cache(
    compiler: None, monkeypatch: pytest.MonkeyPatch, tmp_path: object
) -> None:
    monkeypatch.setenv("CONCUR_CACHE", str(tmp_path))
    for options in ({}, {}, {"width": 4}, {"threads": 2}):
        Lanes(spin(), **options)
    assert len([name for name in os.listdir(str(tmp_path)) if name.endswith(".so")]) == 3


def test_functions_that_have_no_lanes() -> None:
    x = ca.MX.sym("x", 2)
    solver = ca.conic("p", "daqp", {"h": ca.Sparsity.dense(2, 2), "a": ca.Sparsity.dense(1, 2)})
    solved = solver(h=ca.DM.eye(2), g=-x, a=ca.DM.ones(1, 2), lbx=-1.0, ubx=1.0)["x"]
    with pytest.raises(ConcurError, match="expected a function that can be expanded to SX"):
        Lanes(ca.Function("limited", [x], [solved]))


def test_unknown_instruction(monkeypatch: pytest.MonkeyPatch, compiler: None) -> None:
    rest = {code: form for code, form in _lanes_c._FORMS.items() if code != ca.OP_SIN}
    monkeypatch.setattr(_lanes_c, "_FORMS", rest)
    with pytest.raises(ConcurError, match="expected instructions supported by lanes"):
        Lanes(spin())


@pytest.mark.parametrize("threads", [0, -1, 1.5, True])
def test_bad_numbers_of_threads(threads: object) -> None:
    with pytest.raises(ShapeError, match="`threads`: expected a positive integer"):
        Lanes(spin(), threads=threads)


def test_bad_width() -> None:
    with pytest.raises(ShapeError, match="`width`: expected 4 or 8, got 3"):
        Lanes(spin(), width=3)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda x, m, h: (x, m), "expected 3 arguments, got 2"),
        (lambda x, m, h: (x, m[:4], h), "argument `m`: expected 5 worlds, as in `x`, got 4"),
        (lambda x, m, h: (x[:, :1], m, h), r"argument `x`: expected shape \(B, 2\) or \(2,\)"),
        (lambda x, m, h: (x[0], m[0], 0.1), "expected a leading axis of worlds"),
        (lambda x, m, h: (x, m, "fast"), "argument `h`: expected an array of numbers"),
    ],
)
def test_arguments_that_do_not_fit(change: object, said: str) -> None:
    with pytest.raises(ShapeError, match=said):
        Lanes(spin())(*change(*worlds(5)))


@pytest.mark.parametrize(
    ("given", "found", "said"),
    [
        ({0: np.zeros((5, 2), dtype=np.float32)}, {}, "argument `x`: expected a NumPy array of"),
        ({0: [[0.0, 0.0]] * 5}, {}, "argument `x`: expected a NumPy array of float64, got list"),
        ({0: np.zeros((2, 5)).T}, {}, "argument `x`: expected contiguous rows"),
        ({}, {1: np.zeros((5, 4, 2)).swapaxes(1, 2)}, "result `matrix`: expected contiguous rows"),
        ({}, {0: np.zeros((4, 2))}, r"result `turned`: expected shape \(5, 2\), got shape \(4, 2"),
        ({}, {0: np.broadcast_to(0.0, (5, 2))}, "result `turned`: expected"),
    ],
)
def test_arrays_that_cannot_be_bound(
    given: dict[int, object], found: dict[int, object], said: str
) -> None:
    arguments, results = list(worlds(5)), [np.zeros((5, 2)), np.zeros((5, 2, 4))]
    for index, array in given.items():
        arguments[index] = array
    for index, array in found.items():
        results[index] = array
    with pytest.raises(ShapeError, match=said):
        Lanes(spin()).bind(arguments, results)


def test_results_that_are_too_few_or_not_to_be_written() -> None:
    x, m, h = worlds(5)
    with pytest.raises(ShapeError, match="expected 2 results, got 1"):
        Lanes(spin()).bind([x, m, h], [np.zeros((5, 2))])
    fixed = np.zeros((5, 2))
    fixed.flags.writeable = False
    with pytest.raises(ShapeError, match="`turned`: expected a writable array"):
        Lanes(spin()).bind([x, m, h], [fixed, np.zeros((5, 2, 4))])
