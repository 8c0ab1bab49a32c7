"""Graphs in an order for the interpreter: the same numbers, or the graph as it was."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import casadi as ca
import numpy as np
import pytest

from concur import robots
from concur.codegen import Evaluator, _ordering, ordered
from concur.control import Output, Servo, tick_function
from concur.reduction import reduce
from tests.control._floating_cases import CHECK_A_MOMENTUM

x = ca.SX.sym("x", 4)
ONE_NUMBER: list[Callable[[Any], Any]] = [
    *(ca.sin, ca.cos, ca.tan, ca.asin, ca.acos, ca.atan, ca.sinh, ca.cosh, ca.tanh, ca.exp),
    *(ca.fabs, ca.sign, ca.floor, ca.ceil, ca.erf, ca.sqrt, ca.log, ca.asinh),
    *(lambda a: -a, lambda a: a * a, lambda a: a + a, lambda a: 1 / a, ca.logic_not),
]
TWO_NUMBERS: list[Callable[[Any, Any], Any]] = [
    *(ca.atan2, ca.fmin, ca.fmax, ca.fmod, ca.copysign, ca.logic_and, ca.logic_or, ca.power),
    *(lambda a, b: a - b, lambda a, b: b - a * b, lambda a, b: a / b, lambda a, b: a < b),
    *(lambda a, b: a <= b, lambda a, b: a == b, lambda a, b: a != b),
    *(lambda a, b: ca.if_else(a > 0, b, -b), lambda a, b: 2.5 - b, lambda a, b: a - 3 * b),
    *(lambda a, b: a * b - a * b * b, lambda a, b: (a - b) - (b * a - 1) * (1 - b)),
]


def flyer() -> Servo:
    model = reduce(robots.free_flyer(), momentum=CHECK_A_MOMENTUM)
    return Servo(model, [Output("hand", "tool", "SE3")], 4.0, 2.8)


def operations(function: ca.Function) -> list[int]:
    return [function.instruction_id(k) for k in range(function.n_instructions())]


def changes(function: ca.Function) -> int:
    """How often an operation follows that did not follow there the last time."""
    follower, count, last = dict[int, int](), 0, -1
    for operation in operations(function):
        count += follower.get(last) != operation
        follower[last] = last = operation
    return count


def grown(rng: np.random.Generator, length: int) -> ca.Function:
    """A graph of random sums, differences and products, with constants among them."""
    known = [*ca.vertsplit(x), ca.SX(0.5), ca.SX(-1.25)]
    for _ in range(length):
        a, b, c = (known[k] for k in rng.integers(len(known), size=3))
        known.append([a + b, a - b, a * b, a - b * c, a * b - c * b][rng.integers(5)] / 2)
    return ca.Function("grown", [x], [ca.vertcat(*known[-5:]), known[length // 2]])


def assert_same(function: ca.Function, numbers: np.ndarray) -> None:
    quick = ordered(function)
    assert quick is not None
    for one, other in zip(function.call([numbers]), quick.call([numbers]), strict=True):
        np.testing.assert_array_equal(np.array(one), np.array(other))


@pytest.mark.parametrize("seed", range(10))
def test_numbers_stay_to_the_last_bit(seed: int) -> None:
    rng = np.random.default_rng(seed)
    function = grown(rng, 40 * (1 + seed))
    for numbers in (*rng.normal(size=(3, 4)), np.zeros(4), np.array([np.inf, np.nan, 0.0, 1.0])):
        assert_same(function, numbers)


def test_all_operations_are_known() -> None:
    results = [f(x[k % 4]) for k, f in enumerate(ONE_NUMBER)]
    results += [f(x[k % 4], x[(k + 1) % 4]) for k, f in enumerate(TWO_NUMBERS)]
    function = ca.Function("all", [x], [ca.vertcat(*results)])
    for numbers in ([0.3, -0.7, 0.9, 0.1], [0.0, -0.0, 1.0, -1.0], [np.nan, 2.0, np.inf, -3.0]):
        assert_same(function, np.array(numbers))


def test_operations_follow_a_pattern_and_nothing_is_subtracted() -> None:
    function = tick_function(flyer())
    quick = ordered(function)
    assert quick is not None
    assert changes(quick) < 0.2 * changes(function)
    assert not {ca.OP_SUB, ca.OP_SQ, ca.OP_TWICE} & set(operations(quick))
    assert len(operations(quick)) < 1.15 * len(operations(function))


def test_interpreted_ticks_are_in_that_order() -> None:
    servo = flyer()
    tick, rng = servo.compile(interpreted=True), np.random.default_rng(5)
    plain = tick_function(servo, watched=True)
    buffers = tick.buffers
    names = ("q", "s", "pose", "twist", "acceleration", "momentum")
    for _ in range(5):
        q = servo.model.robot.random(rng)
        pose = servo.output(servo.model.robot.random(rng))
        given = [q, *(rng.normal(size=getattr(buffers, name).size) for name in names[1:])]
        given[2] = pose
        for name, numbers in zip(names, given, strict=True):
            getattr(buffers, name)[:] = numbers
        tick.reset()
        assert tick.run() == 0
        results = plain.call([*given, np.zeros(2)])
        np.testing.assert_array_equal(buffers.u, np.array(results[0])[:, 0])
        assert np.abs(buffers.u).max() > 0
        assert buffers.pivot[0] == float(results[1])
    assert not tick.compiled
    assert tick.instructions == plain.n_instructions()


def test_arguments_and_results_keep_their_names_and_shapes() -> None:
    y = ca.SX.sym("y", 2, 2)
    function = ca.Function(
        "f", [x, y], [ca.SX(0, 1), ca.SX(2, 2) + 3, y @ y - y * x[0]], ["x", "y"], list("abc")
    )
    quick = ordered(function)
    assert quick is not None
    assert str(quick) == str(function)
    assert quick.size_out(0) == (0, 1)
    given = [np.arange(4.0), np.array([[1.0, 2.0], [3.0, 5.0]])]
    np.testing.assert_array_equal(quick.call(given)[2], given[1] @ given[1])


@pytest.mark.parametrize(
    "function",
    [
        ca.Function("nothing", [x], [ca.SX(0, 1)]),
        ca.Function("graph", [y := ca.MX.sym("y")], [y * 2]),
        ca.Function("remainder", [x], [ca.remainder(x[0], x[1]) * 2]),
    ],
    ids=lambda function: function.name(),
)
def test_what_is_not_known_stays_as_it_is(function: ca.Function) -> None:
    assert ordered(function) is None


def said_otherwise(programme: _ordering._Programme) -> _ordering._Programme:
    programme.operations[programme.operations.index(ca.OP_MUL)] = ca.OP_ADD
    return programme


@pytest.mark.parametrize(
    ("name", "otherwise"),
    [
        ("_found", lambda *_: None),
        ("_text", lambda code: "x" * len(code)),
        ("_without_differences", said_otherwise),
        ("_agree", lambda *_: False),
    ],
)
def test_another_form_of_graphs_is_noticed(
    monkeypatch: pytest.MonkeyPatch, name: str, otherwise: Callable[..., Any]
) -> None:
    """What CasADi writes may change some day."""
    function = ca.Function("f", [x], [x[0] * x[1] - x[2] * x[3]])
    assert ordered(function) is not None
    monkeypatch.setattr(_ordering, name, otherwise)
    assert ordered(function) is None


def test_evaluators_take_it() -> None:
    function = ca.Function("f", [x], [x[0] - x[1] * x[2], x * 2])
    evaluator = Evaluator(function, [(), (4,)], "f")
    before = evaluator(np.arange(4.0))
    quick = ordered(evaluator.function)
    assert quick is not None
    evaluator.replace(quick, compiled=False)
    after = evaluator(np.arange(4.0))
    assert before[0] == after[0] == -2.0
    np.testing.assert_array_equal(before[1], after[1])
    assert not evaluator.compiled
