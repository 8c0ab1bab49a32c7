"""Direct calls of compiled methods behave exactly like the general call."""

from __future__ import annotations

import copy
import inspect
import pickle
import sys
import threading
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from concur.codegen import Array, EvaluatedMethods, Evaluator, evaluated
from concur.control import singularities
from concur.errors import ConcurError, ShapeError
from concur.outputs import Output
from concur.reduction import reduce
from concur.robots import free_flyer, rover_arm

pytestmark = pytest.mark.usefixtures("compiler")


@dataclass(frozen=True)
class Scaling(EvaluatedMethods):
    """Methods of all kinds: several arguments and results, a selector, numbers and matrices."""

    factor: float = 2.0
    name: str = "scaling"

    @evaluated("(3)->(3)")
    def apply(self, x: Array, power: int = 1) -> Array:
        return self.factor * x**power

    @evaluated("(3),(2)->(3),(),(2,3)")
    def several(self, x: Array, y: Array) -> tuple[Array, Array, Array]:
        return self.factor * x, ca.dot(x, x), y @ x.T

    @evaluated("(3),()->(3)")
    def times(self, x: Array, a: Array) -> Array:
        return self.factor * a * x

    @evaluated("(2,3)->(3,2)")
    def turned(self, m: Array) -> Array:
        return self.factor * m.T


class Shifted(Scaling):
    """Another method of the same name, which calls the one that it overrides."""

    @evaluated("(3)->(3)")
    def apply(self, x: Array, power: int = 1) -> Array:
        return super().apply(x, power) + 1.0


X, Y = np.array([1.0, -2.0, 3.0]), np.array([0.5, 4.0])


def compiled(*functions: Any) -> Scaling:
    made = Scaling()
    assert made.compile_functions(*functions).compiled
    return made


def direct(owner: Any) -> list[str]:
    """Which methods are called directly."""
    return sorted(k for k, v in vars(owner).items() if inspect.ismethod(v))


def test_methods_that_take_vectors_are_called_directly() -> None:
    made = compiled("apply", "several", "turned")
    assert direct(made) == ["apply", "several"]
    assert direct(Scaling()) == []
    for one, two in zip(made.several(X, Y), Scaling().several(X, Y), strict=True):
        assert_array_equal(one, two)
        assert type(one) is type(two)
    assert made.several(X, Y)[2].flags.c_contiguous


@pytest.mark.parametrize(
    "given",
    [
        X.tolist(),
        tuple(X),
        X.astype(np.float32),
        X.astype(int),
        X.astype(">f8"),
        X[:, None],
        np.repeat(X, 2)[::2],
        np.array([X, X], order="F")[1],
        ca.DM(X),
    ],
    ids=lambda given: type(given).__name__,
)
def test_whatever_is_taken_is_taken_still(given: Any) -> None:
    made = compiled("apply", "several")
    assert_array_equal(made.apply(given), Scaling().apply(given))
    assert_array_equal(made.several(given, list(Y))[2], np.outer(Y, X))
    assert_array_equal(made.several(X, y=Y)[2], np.outer(Y, X))
    assert_array_equal(made.several(y=Y, x=X)[2], np.outer(Y, X))


def test_numbers_and_matrices_are_taken() -> None:
    made = compiled("times", "turned")
    assert_array_equal(made.times(X, 3.0), 6.0 * X)
    assert_array_equal(made.times(X, np.array(3.0)), 6.0 * X)
    assert_array_equal(made.turned(np.outer(Y, X)), 2.0 * np.outer(X, Y))


def test_expressions_are_taken() -> None:
    made = compiled("apply")
    for kind in (ca.SX, ca.MX):
        x = kind.sym("x", 3)
        found = made.apply(x)
        assert isinstance(found, kind)
        assert_array_equal(np.array(ca.Function("f", [x], [found])(X))[:, 0], 2.0 * X)


def test_selectors_find_their_function() -> None:
    made = compiled("apply", ("apply", 3))
    for found, power in (
        (made.apply(X), 1),
        (made.apply(X, 1), 1),
        (made.apply(X, 3), 3),
        (made.apply(X, power=3), 3),
        (made.apply(power=3, x=X), 3),
        (made.apply(X, 2), 2),  # not compiled
    ):
        assert_array_equal(found, 2.0 * X**power)
    made.compile_functions(("apply", 2))
    assert_array_equal(made.apply(X, 2), 2.0 * X**2)
    assert_array_equal(made.apply(X, 3), 2.0 * X**3)


BAD: dict[str, tuple[Any, ...]] = {
    "nan": (X * [1.0, np.nan, 1.0], Y),
    "inf": (X, Y * np.inf),
    "infinities that cancel": (X, np.array([np.inf, -np.inf])),
    "too short": (X[:2], Y),
    "row": (X[None, :], Y),
    "text": ("three", Y),
    "ragged": ([1.0, [2.0], 3.0], Y),
    "complex": (X + 1j, Y),
    "nothing": (None, Y),
    "expression of another size": (ca.SX.sym("x", 2), Y),
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD.keys())
def test_what_is_refused_is_refused_in_the_same_words(bad: tuple[Any, ...]) -> None:
    made, told = compiled("several"), []
    for owner in (made, Scaling()):
        with pytest.raises(ConcurError) as caught:
            owner.several(*bad)
        told.append((type(caught.value), str(caught.value)))
    assert told[0] == told[1]
    # The next call is unaffected.
    assert_array_equal(made.several(X, Y)[0], 2.0 * X)


def test_too_few_and_too_many_arguments_are_refused() -> None:
    made: Any = compiled("several")
    for arguments, named in (((X,), {}), ((X, Y, Y), {}), ((X, Y), {"z": X}), ((X,), {"x": X})):
        with pytest.raises(TypeError):
            made.several(*arguments, **named)
    assert_array_equal(made.several(X, Y)[0], 2.0 * X)


def test_selectors_that_are_none_are_refused_in_the_same_words() -> None:
    told = []
    for owner in (compiled("apply"), Scaling()):
        with pytest.raises(ConcurError) as caught:
            owner.apply(X, [1, 2])  # type: ignore[arg-type]
        told.append(str(caught.value))
    assert told[0] == told[1]


def test_results_belong_to_the_caller() -> None:
    made = compiled("several")
    first = made.several(X, Y)
    first[2][:] = 7.0
    second = made.several(-X, Y)
    assert_array_equal(first[0], 2.0 * X)
    assert_array_equal(first[2], np.full((2, 3), 7.0))
    assert_array_equal(second[2], np.outer(Y, -X))
    assert not np.shares_memory(first[2], second[2])


def test_large_numbers_are_no_fault() -> None:
    huge = np.array([1.7e308, 1.7e308, 1.0])  # their sum overflows
    assert_array_equal(compiled("apply").apply(huge / 2.0), huge)
    assert_array_equal(compiled("several").several(huge / 2.0, Y)[0], huge)


def test_a_quaternion_that_is_none_is_refused_in_the_same_words() -> None:
    robot, told = free_flyer(), []
    lost = 0.5 * robot.neutral()
    robot.compile_functions("mass_matrix", ("pose", "tool"))
    for owner in (robot, free_flyer()):
        for call in (owner.mass_matrix, lambda q, owner=owner: owner.pose(q, "tool")):
            with pytest.raises(ConcurError, match="unit norm") as caught:
                call(lost)
            told.append(str(caught.value))
    assert told[:2] == told[2:]


def test_overridden_methods_stay_apart() -> None:
    made, plain = Shifted(), Scaling()
    assert_array_equal(made.apply(X), 2.0 * X + 1.0)
    made.compile_functions("apply", "several")
    assert direct(made) == ["apply", "several"]
    assert_array_equal(made.apply(X), 2.0 * X + 1.0)
    assert_array_equal(Scaling.apply(made, X), 2.0 * X)
    made.compile_functions()  # the overridden one too: it was called
    assert_array_equal(made.apply(X), 2.0 * X + 1.0)
    assert_array_equal(plain.apply(X), 2.0 * X)


def test_a_method_tells_what_it_is() -> None:
    made, plain = compiled("apply"), Scaling()
    assert inspect.signature(made.apply) == inspect.signature(plain.apply)
    assert made.apply.__doc__ == plain.apply.__doc__
    assert made.apply.__name__ == "apply"
    assert made.apply.__self__ is made  # type: ignore[attr-defined]


def test_copies_go_their_own_way() -> None:
    made = compiled("apply")
    for again in (copy.copy(made), copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        assert again == made
        assert direct(again) == []
        assert_array_equal(again.apply(X), 2.0 * X)  # compiled again at the first call
        assert direct(again) == ["apply"]
        assert again.apply.__self__ is again
    method = pickle.loads(pickle.dumps(made.apply))
    assert_array_equal(method(X), 2.0 * X)


def test_a_method_lives_as_long_as_it_is_held() -> None:
    method = compiled("several").several
    assert all(np.array_equal(method(X, k * Y)[2], k * np.outer(Y, X)) for k in range(100))
    made = compiled("apply")
    before = made.apply
    made.compile_functions("apply")
    assert_array_equal(before(X), made.apply(X))


def test_threads_do_not_meet_in_the_buffers() -> None:
    robot, plain = free_flyer(), free_flyer()
    robot.compile_functions("bias", ("jacobian", "tool"))
    rng, wrong = np.random.default_rng(5), list[int]()
    states = [(robot.random(rng), rng.normal(size=robot.nv)) for _ in range(4)]
    expected = [(plain.bias(*state), plain.jacobian(state[0], "tool")) for state in states]

    def work(k: int) -> None:
        for _ in range(400):
            q, v = states[k]
            for one, two in zip(
                (robot.bias(q, v), robot.jacobian(q, "tool")), expected[k], strict=True
            ):
                if np.abs(one - two).max() > 1e-12 * np.abs(two).max():
                    wrong.append(k)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=work, args=(k,)) for k in range(len(states))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert wrong == []


def test_buffers_handed_out_are_not_those_of_calls() -> None:
    robot = free_flyer()
    rng = np.random.default_rng(6)
    q, other = robot.random(rng), robot.random(rng)
    robot.compile_functions("mass_matrix")
    view = robot.buffered("mass_matrix").view(q)
    kept = view.copy()
    assert np.abs(robot.mass_matrix(other) - kept).max() > 1e-3
    assert_array_equal(view, kept)


def test_functions_that_may_fail_have_no_buffers_apart() -> None:
    low = ca.MX.sym("low")
    solver = ca.conic("least", "daqp", {"h": ca.Sparsity.dense(1, 1)})
    evaluator = Evaluator(ca.Function("f", [low], [solver(h=1, lbx=low)["x"]]), [()], "least")
    assert not evaluator.has_parts


@pytest.mark.extended
def test_robots_compile_whatever_else_is_kept_with_them() -> None:
    robot, outputs = rover_arm(), [Output("hand", "forearm", "R3", point=(0, 0.2, 0))]
    q = robot.random(np.random.default_rng(7))
    singularities(robot, outputs, q)
    before = robot.mass_matrix(q)
    assert robot.compile_functions("bias").compiled
    assert robot.compile_functions().compiled
    assert_allclose(robot.mass_matrix(q), before, rtol=0.0, atol=1e-13 * np.abs(before).max())


def test_an_optional_array_selects_another_graph() -> None:
    mu = np.array([0.0, 0.0, 0.0, 0.5, 0.2, 0.1])
    model = reduce(free_flyer(), momentum=mu)
    q = model.robot.random(np.random.default_rng(1))
    expected = model.lift(q), model.lift(q, 2 * mu)
    assert_allclose(expected[1][1], 2 * expected[0][1], rtol=0, atol=1e-14)
    assert model.compile_functions("lift", ("lift", "momentum")).compiled
    assert "lift" in model.__dict__
    for made in (model, pickle.loads(pickle.dumps(model))):
        for given, due in (((q,), expected[0]), ((q, 2 * mu), expected[1])):
            assert_allclose(made.lift(*given)[0], due[0], rtol=0, atol=1e-14)
            assert_allclose(made.lift(*given)[1], due[1], rtol=0, atol=1e-14)
    assert_allclose(model.buffered("lift", "momentum")(q, 2 * mu)[1], expected[1][1], atol=1e-14)
    with pytest.raises(ShapeError, match="argument `momentum`"):
        model.lift(q, np.zeros(5))
