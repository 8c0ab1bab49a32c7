"""Evaluated methods, interpreted and compiled: one answer for numbers, SX and MX, one refusal."""

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

from concur.codegen import Array, EvaluatedMethods, Evaluator, as_floats, evaluated
from concur.errors import ConcurError, NonFiniteError, ShapeError
from concur.reduction import reduce
from concur.robots import free_flyer

pytestmark = pytest.mark.usefixtures("compiler")

X, Y = np.array([1.0, -2.0, 3.0]), np.array([0.5, 4.0])


@dataclass(frozen=True)
class Scaling(EvaluatedMethods):
    """Methods of all kinds: several arguments and results, a selector, numbers and matrices."""

    factor: float = 2.0
    name: str = "scaling"
    n: int = 3

    @evaluated("(n)->(n)")
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

    @evaluated("(n)->(n,*)")
    def sparse(self, x: Array) -> Array:
        matrix = ca.SX(self.n, 2)
        matrix[0, 1] = x[0]
        return matrix


class Shifted(Scaling):
    """Another method of the same name, which calls the one that it overrides."""

    @evaluated("(n)->(n)")
    def apply(self, x: Array, power: int = 1) -> Array:
        return super().apply(x, power) + 1.0


@evaluated("(3),()->(3),()")
def free(x: Array, a: Array) -> tuple[Array, Array]:
    """A function of no object."""
    return a * x, ca.dot(x, x)


def compiled(*functions: Any) -> Scaling:
    made = Scaling()
    assert made.compile_functions(*functions)
    return made


@pytest.fixture(params=["interpreted", "compiled"])
def made(request: pytest.FixtureRequest) -> Scaling:
    names = ("apply", ("apply", 3), "several", "times", "turned", "sparse")
    return Scaling() if request.param == "interpreted" else compiled(*names)


def direct(owner: Any) -> list[str]:
    """Which methods are called directly."""
    return sorted(k for k, v in vars(owner).items() if inspect.ismethod(v))


def test_results_have_the_shapes_of_the_signature_and_belong_to_the_caller(made: Scaling) -> None:
    x = X.copy()
    vector, scalar, matrix = first = made.several(x, Y)
    assert_array_equal(vector, 2.0 * X)
    assert (scalar, type(scalar)) == (14.0, float)
    assert_array_equal(matrix, np.outer(Y, X))
    assert matrix.flags.c_contiguous
    assert vector.dtype == matrix.dtype == np.float64
    first[2][:] = 7.0
    second = made.several(-x, Y)
    assert_array_equal(first[2], np.full((2, 3), 7.0))
    assert_array_equal(second[2], np.outer(Y, -X))
    assert_array_equal(x, X)
    assert_array_equal(made.sparse(X), [[0.0, 1.0], [0.0, 0.0], [0.0, 0.0]])
    assert Scaling(n=2).apply(np.ones(2)).shape == (2,)
    assert_array_equal(free(X, 3.0)[0], 3.0 * X)


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
def test_arguments_of_all_kinds_are_taken(made: Scaling, given: Any) -> None:
    assert_array_equal(made.apply(given), 2.0 * X)
    assert_array_equal(made.several(given, list(Y))[2], np.outer(Y, X))
    assert_array_equal(made.several(y=Y, x=X)[2], np.outer(Y, X))
    for a in (3.0, np.array(3.0)):
        assert_array_equal(made.times(X, a), 6.0 * X)
    m = np.outer(Y, X)
    for layout in (m, np.asfortranarray(m), np.repeat(m, 2, axis=1)[:, ::2], m.tolist()):
        assert_array_equal(made.turned(layout), 2.0 * m.T)
    huge = np.array([1.7e308, 1.7e308, 1.0])  # their sum overflows
    assert_array_equal(made.apply(huge / 2.0), huge)


@pytest.mark.parametrize("kind", [ca.SX, ca.MX])
def test_expressions_are_expanded(made: Scaling, kind: Any) -> None:
    x, y = kind.sym("x", 3), kind.sym("y", 2)
    for given in ((x, y), (x, Y), (X, y)):
        found = made.several(*given)
        assert all(isinstance(part, kind) for part in found)
        graph = ca.Function("f", [x, y], list(found))
        for one, two in zip(graph(X, Y), made.several(X, Y), strict=True):
            assert_array_equal(np.array(one).reshape(np.shape(two)), two)


def test_selectors_find_their_function(made: Scaling) -> None:
    for found, power in (
        (made.apply(X), 1),
        (made.apply(X, 3), 3),
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


def refused(call: Any) -> ConcurError:
    with pytest.raises(ConcurError) as caught:
        call()
    return caught.value


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD.keys())
def test_refusals_are_the_same_and_leave_nothing(bad: tuple[Any, ...]) -> None:
    made = compiled("several")
    one, two = (refused(lambda owner=owner: owner.several(*bad)) for owner in (made, Scaling()))
    assert (type(one), str(one)) == (type(two), str(two))
    assert one.where.startswith("Scaling.several of `scaling`, argument `")
    # The next call is unaffected.
    assert_array_equal(made.several(X, Y)[0], 2.0 * X)


def test_refusals_say_what_came(made: Scaling) -> None:
    error = refused(lambda: made.several([1.0, np.nan, np.inf], Y))
    assert isinstance(error, NonFiniteError)
    assert (error.came, error.entries) == ("[1] = nan, [2] = inf", (1, 2))
    error = refused(lambda: made.turned(np.ones((3, 2))))
    assert (error.expected, error.came) == ("shape (2, 3)", "shape (3, 2)")
    error = refused(lambda: as_floats({"x": 1.0}, "here"))
    assert (type(error), error.where) == (ShapeError, "here")
    error = refused(lambda: made.apply(X, [1, 2]))  # type: ignore[arg-type]
    assert (type(error), error.expected) == (ShapeError, "a name")
    call: Any = made.several
    for arguments, named in (((X,), {}), ((X, Y, Y), {}), ((X, Y), {"z": X}), ((X,), {"x": X})):
        with pytest.raises(TypeError):
            call(*arguments, **named)


def test_a_lost_quaternion_is_refused_in_the_same_words() -> None:
    robot, told = free_flyer(), []
    lost = 0.5 * robot.neutral()
    robot.compile_functions("mass_matrix", ("pose", "tool"))
    for owner in (robot, free_flyer()):
        for call in (owner.mass_matrix, lambda q, owner=owner: owner.pose(q, "tool")):
            with pytest.raises(ConcurError, match="unit norm") as caught:
                call(lost)
            told.append(str(caught.value))
    assert told[:2] == told[2:]


def test_methods_that_take_vectors_are_called_directly() -> None:
    made, plain = compiled("apply", "several", "turned"), Scaling()
    assert direct(made) == ["apply", "several"]
    assert direct(plain) == []
    assert inspect.signature(made.apply) == inspect.signature(plain.apply)
    assert (made.apply.__doc__, made.apply.__name__) == (plain.apply.__doc__, "apply")
    method = compiled("several").several  # it lives as long as it is held
    assert all(np.array_equal(method(X, k * Y)[2], k * np.outer(Y, X)) for k in range(100))


def test_overridden_methods_stay_apart() -> None:
    made, plain = Shifted(), Scaling()
    assert_array_equal(made.apply(X), 2.0 * X + 1.0)
    made.compile_functions("apply", "several")
    assert direct(made) == ["apply", "several"]
    assert_array_equal(Scaling.apply(made, X), 2.0 * X)
    made.compile_functions()  # the overridden one too: it was called
    assert_array_equal(made.apply(X), 2.0 * X + 1.0)
    assert_array_equal(plain.apply(X), 2.0 * X)


def test_copies_go_their_own_way() -> None:
    made = compiled("apply")
    for again in (copy.copy(made), copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        assert again == made
        assert direct(again) == []
        assert_array_equal(again.apply(X), 2.0 * X)  # compiled again at the first call
        assert direct(again) == ["apply"]
        assert again.apply.__self__ is again
    assert_array_equal(pickle.loads(pickle.dumps(made.apply))(X), 2.0 * X)


def test_threads_do_not_meet_in_the_buffers() -> None:
    robot, plain = free_flyer(), free_flyer()
    robot.compile_functions("bias", ("jacobian", "tool"))
    rng, wrong = np.random.default_rng(5), list[int]()
    states = [(robot.random(rng), rng.normal(size=robot.nv)) for _ in range(4)]
    expected = [(plain.bias(*state), plain.jacobian(state[0], "tool")) for state in states]

    def work(k: int) -> None:
        for _ in range(400):
            q, v = states[k]
            found = robot.bias(q, v), robot.jacobian(q, "tool")
            for one, two in zip(found, expected[k], strict=True):
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


def test_an_optional_array_selects_another_graph() -> None:
    mu = np.array([0.0, 0.0, 0.0, 0.5, 0.2, 0.1])
    model = reduce(free_flyer(), momentum=mu)
    q = model.robot.random(np.random.default_rng(1))
    expected = model.lift(q), model.lift(q, 2 * mu)
    assert_allclose(expected[1][1], 2 * expected[0][1], rtol=0, atol=1e-14)
    assert model.compile_functions("lift", ("lift", "momentum"))
    assert "lift" in model.__dict__
    for made in (model, pickle.loads(pickle.dumps(model))):
        for given, due in (((q,), expected[0]), ((q, 2 * mu), expected[1])):
            for part, wanted in zip(made.lift(*given), due, strict=True):
                assert_allclose(part, wanted, rtol=0, atol=1e-14)
    assert_allclose(model.buffered("lift", "momentum")(q, 2 * mu)[1], expected[1][1], atol=1e-14)
    with pytest.raises(ShapeError, match="argument `momentum`"):
        model.lift(q, np.zeros(5))


# --- evaluators -----------------------------------------------------------------------------------


def test_evaluator_by_buffers_and_by_call() -> None:
    x, m, matrix = ca.SX.sym("x", 2), ca.SX.sym("m", 2, 2), ca.SX(2, 2)
    matrix[1, 0] = x[0]  # sparse: its buffer is dense
    graph = ca.Function("f", [x, m], [m @ x, m.T, matrix], ["x", "m"], ["y", "n", "p"])
    f = Evaluator(graph, [(2,), (2, 2), (2, 2)], "example")
    g = pickle.loads(pickle.dumps(f))
    x, m = np.array([1.0, 2.0]), np.array([[1.0, 2.0], [3.0, 4.0]])
    y, n, p = f(x, m)
    assert_array_equal(y, m @ x)
    assert_array_equal(n, m.T)
    assert_array_equal(p, [[0.0, 0.0], [1.0, 0.0]])
    f.inputs[0][:, 0], f.inputs[1][...] = x + 1, m
    f.trigger()
    assert_array_equal(f.outputs[0][:, 0], m @ (x + 1))
    assert_array_equal(f.outputs[1], m.T)
    assert_array_equal(y, m @ x)
    g(x, m)
    f(10 * x, m)
    assert_array_equal(g.outputs[0][:, 0], m @ x)
    assert g.where == "example"


def test_function_that_fails_gives_no_old_results() -> None:
    # A QP without a solution where the bounds cross.
    low = ca.MX.sym("low")
    solver = ca.conic("infeasible", "daqp", {"h": ca.Sparsity.dense(1, 1)}, {"error_on_fail": True})
    x = solver(h=1, lbx=low, ubx=2)["x"]
    evaluator = Evaluator(ca.Function("least", [low], [x]), [()], "least")
    assert not evaluator.has_parts
    assert evaluator(1.0) == pytest.approx(1.0)
    with pytest.raises(ConcurError, match="least"):
        evaluator(3.0)
    assert evaluator(0.5) == pytest.approx(0.5)


def test_buffers_of_a_method_are_handed_out() -> None:
    robot, rng = free_flyer(), np.random.default_rng(4)
    q0, q1, v = robot.random(rng), robot.random(rng), rng.normal(size=robot.nv)
    door = robot.buffered("mass_matrix")
    first = door.view(q0)
    assert_array_equal(first, robot.mass_matrix(q0))
    again = door.view(q1)
    assert again is first  # no copy: the next call writes over it
    assert_array_equal(first, robot.mass_matrix(q1))
    robot.mass_matrix(q0)  # has buffers apart
    assert_array_equal(first, door(q1))
    energy = robot.buffered("kinetic_energy").view(q0, v)
    assert (energy.shape, float(energy)) == ((), robot.kinetic_energy(q0, v))
    tool = robot.bodies[-1].name
    assert_array_equal(robot.buffered("jacobian", tool).view(q0), robot.jacobian(q0, tool))
    bias = robot.buffered("bias")
    with pytest.raises(NonFiniteError, match="bias of `free_flyer`, argument `v`"):
        bias.view(q0, np.full(robot.nv, np.nan))
    with pytest.raises(ShapeError, match="unit norm"):
        bias.view(2.0 * q0, v)
    with pytest.raises(ShapeError, match="argument `q`"):
        bias.view(q0[1:], v)
    for wrong in ((q0,), (q0, v, q0)):
        with pytest.raises(ValueError, match=r"shorter|longer"):
            bias.view(*wrong)
    with pytest.raises(ConcurError, match="buffered"):
        robot.buffered("mass")
