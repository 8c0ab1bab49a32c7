"""Evaluated methods: NumPy, SX and MX agree, and calls do not interfere."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from concur.codegen import Array, EvaluatedMethods, Evaluator, as_floats, evaluated
from concur.control import Servo
from concur.errors import ConcurError, NonFiniteError, ShapeError
from concur.outputs import Output, ReferenceSample
from concur.reduction import reduce
from concur.robots import free_flyer, rover_arm


@evaluated("(3),()->(3),(2,3),()")
def mixed(x: Array, a: Array) -> tuple[Array, Array, Array]:
    """Vector, matrix and scalar results."""
    return a * x, ca.vertcat(x.T, a * x.T), ca.dot(x, x)


@evaluated("(2,3)->(3,2)")
def turned(m: Array) -> Array:
    """Transpose."""
    return m.T


@dataclass(frozen=True)
class Scaling(EvaluatedMethods):
    """A method whose result depends on the object, with a static argument."""

    n: int
    factor: float
    name: str = "scaling"

    @evaluated("(n)->(n)")
    def apply(self, x: Array, power: int = 1) -> Array:
        return self.factor * x**power

    @evaluated("(n)->(n,n)")
    def sparse(self, x: Array) -> Array:
        matrix = ca.SX(self.n, self.n)
        matrix[0, self.n - 1] = x[0]
        return matrix


X = np.array([1.0, -2.0, 3.0])


def test_numbers_come_in_the_shapes_of_the_signature() -> None:
    vector, matrix, scalar = mixed(X, 2.0)
    assert_array_equal(vector, [2.0, -4.0, 6.0])
    assert_array_equal(matrix, [[1.0, -2.0, 3.0], [2.0, -4.0, 6.0]])
    assert scalar == 14.0
    assert isinstance(scalar, float)
    assert vector.shape == (3,)
    assert vector.dtype == matrix.dtype == np.float64


def test_matrices_go_in_and_come_out_the_right_way_round() -> None:
    m = np.arange(6.0).reshape(2, 3)
    for layout in (m, np.asfortranarray(m), m[::1, ::1], np.arange(12.0).reshape(2, 6)[:, ::2]):
        assert_array_equal(turned(layout), np.asarray(layout).T)
    assert_array_equal(turned(m.tolist()), m.T)


def test_poses_are_not_transposed() -> None:
    robot = rover_arm()
    q = np.array([0.3, -0.2, 0.7, 0, 0, 0.5, 0.3, -0.4])
    pose = robot.pose(q, "chassis")
    assert pose.shape == (4, 4)
    assert_allclose(pose[:3, 3], [0.3, -0.2, 0.0], atol=1e-15)
    assert_allclose(pose[3], [0, 0, 0, 1], atol=1e-15)
    assert pose[1, 0] == pytest.approx(np.sin(0.7))
    assert robot.jacobian(q, "forearm").shape == (6, 8)


def test_symbols_and_numbers_agree() -> None:
    x, a = ca.SX.sym("x", 3), ca.SX.sym("a")
    results = mixed(x, a)
    assert all(isinstance(r, ca.SX) for r in results)
    graph = ca.Function("f", [x, a], list(results))
    for symbolic, numeric in zip(graph(X, 2.0), mixed(X, 2.0), strict=True):
        assert_array_equal(np.array(symbolic).reshape(np.shape(numeric)), numeric)


def test_symbols_may_be_mixed_with_numbers() -> None:
    a = ca.SX.sym("a")
    vector, _, _ = mixed(X, a)
    assert_array_equal(np.array(ca.Function("f", [a], [vector])(3.0))[:, 0], 3 * X)
    x = ca.SX.sym("x", 3)
    assert mixed(x, 2.0)[0].shape == (3, 1)


def test_mx_expressions_work() -> None:
    x = ca.MX.sym("x", 3)
    vector, matrix, scalar = mixed(x, ca.MX(2.0))
    graph = ca.Function("f", [x], [vector, matrix, scalar])
    for symbolic, numeric in zip(graph(X), mixed(X, 2.0), strict=True):
        assert_array_equal(np.array(symbolic).reshape(np.shape(numeric)), numeric)
    robot = rover_arm()
    q = ca.MX.sym("q", robot.nq)
    mass = ca.Function("m", [q], [robot.mass_matrix(q)])
    at = robot.random(np.random.default_rng(1))
    assert_allclose(np.array(mass(at)), robot.mass_matrix(at), rtol=0, atol=1e-14)


def test_results_of_two_calls_do_not_share_memory() -> None:
    first = mixed(X, 2.0)
    kept = [np.copy(part) for part in first]
    second = mixed(-X, 5.0)
    for part, copy in zip(first, kept, strict=True):
        assert_array_equal(part, copy)
    assert not np.shares_memory(first[0], second[0])
    assert not np.shares_memory(first[0], first[1])
    first[1][:] = 99.0
    assert_array_equal(mixed(-X, 5.0)[1], second[1])


def test_arguments_are_left_alone() -> None:
    x = X.copy()
    mixed(x, 2.0)
    mixed(2 * x, 3.0)
    assert_array_equal(x, X)


def test_objects_do_not_share_what_they_have_built() -> None:
    one, two = Scaling(3, 2.0), Scaling(3, -1.0)
    assert_array_equal(one.apply(X), 2 * X)
    assert_array_equal(two.apply(X), -X)
    assert_array_equal(one.apply(X), 2 * X)
    assert Scaling(2, 3.0).apply(np.ones(2)).shape == (2,)


def test_static_arguments_select_another_function() -> None:
    one = Scaling(3, 2.0)
    assert_array_equal(one.apply(X, 2), 2 * X**2)
    assert_array_equal(one.apply(X), 2 * X)
    assert_array_equal(one.apply(X, power=3), 2 * X**3)
    assert_array_equal(one.apply(x=X), 2 * X)


def test_sparse_results_are_full_of_zeros() -> None:
    expected = np.zeros((3, 3))
    expected[0, 2] = 1.0
    found = Scaling(3, 2.0).sparse(X)
    assert_array_equal(found, expected)
    assert found.shape == (3, 3)


def test_pickled_object_computes_the_same() -> None:
    one = Scaling(3, 2.0)
    before = one.apply(X)
    again = pickle.loads(pickle.dumps(one))
    assert again == one
    assert_array_equal(again.apply(X), before)
    assert "_evaluators" not in one.__getstate__()


def evaluator() -> Evaluator:
    x, m = ca.SX.sym("x", 2), ca.SX.sym("m", 2, 2)
    return Evaluator(
        ca.Function("f", [x, m], [m @ x, m.T], ["x", "m"], ["y", "n"]), [(2,), (2, 2)], "example"
    )


def test_evaluator_by_buffers_and_by_call() -> None:
    f = evaluator()
    x, m = np.array([1.0, 2.0]), np.array([[1.0, 2.0], [3.0, 4.0]])
    y, n = f(x, m)
    assert_array_equal(y, m @ x)
    assert_array_equal(n, m.T)
    f.inputs[0][:, 0], f.inputs[1][...] = x + 1, m
    f.trigger()
    assert_array_equal(f.outputs[0][:, 0], m @ (x + 1))
    assert_array_equal(f.outputs[1], m.T)
    assert_array_equal(y, m @ x)


def test_pickled_evaluator_has_buffers_of_its_own() -> None:
    f = evaluator()
    x, m = np.array([1.0, 2.0]), np.array([[1.0, 2.0], [3.0, 4.0]])
    g = pickle.loads(pickle.dumps(f))
    g(x, m)
    f(10 * x, m)
    assert_array_equal(g.outputs[0][:, 0], m @ x)
    assert g.where == "example"


def test_evaluator_of_a_sparse_function_has_dense_buffers() -> None:
    x = ca.SX.sym("x", 2)
    matrix = ca.SX(2, 2)
    matrix[1, 0] = x[0]
    f = Evaluator(ca.Function("f", [x], [matrix]), [(2, 2)], "sparse")
    assert f.outputs[0].shape == (2, 2)
    assert_array_equal(f([7.0, 0.0]), [[0.0, 0.0], [7.0, 0.0]])


def refused(kind: type[ConcurError], call: Any) -> ConcurError:
    with pytest.raises(kind) as caught:
        call()
    error = caught.value
    for sentence in (error.where, error.expected, error.came, error.cure):
        assert sentence
        assert sentence in str(error)
    return error


def test_wrong_shape_is_refused() -> None:
    error = refused(ShapeError, lambda: mixed(np.ones(4), 1.0))
    assert "mixed, argument `x`" in error.where
    assert (error.expected, error.came) == ("shape (3,)", "shape (4,)")
    error = refused(ShapeError, lambda: turned(np.ones((3, 2))))
    assert (error.expected, error.came) == ("shape (2, 3)", "shape (3, 2)")
    error = refused(ShapeError, lambda: mixed(ca.SX.sym("x", 4), 1.0))
    assert (error.expected, error.came) == ("shape (3, 1)", "shape (4, 1)") or (
        error.expected,
        error.came,
    ) == ("shape (3,)", "shape (4, 1)")


def test_object_is_named_in_the_error() -> None:
    error = refused(ShapeError, lambda: Scaling(3, 2.0, "two times").apply(np.ones(2)))
    assert error.where == "Scaling.apply of `two times`, argument `x`"


def test_numbers_that_are_not_finite_are_refused_with_their_place() -> None:
    error = refused(NonFiniteError, lambda: mixed([1.0, np.nan, np.inf], 1.0))
    assert error.came == "[1] = nan, [2] = inf"
    assert error.entries == (1, 2)
    # The next call is unaffected.
    assert_array_equal(mixed(X, 1.0)[0], X)


@pytest.mark.parametrize("value", [[[1.0], [1.0, 2.0]], "three", {"x": 1.0}, [None, 1.0, object()]])
def test_what_is_no_array_is_refused(value: object) -> None:
    error = refused(ShapeError, lambda: as_floats(value, "here"))
    assert error.where == "here"
    assert error.expected == "an array of numbers"
    assert type(value).__name__ in error.came


def test_error_keeps_its_facts_when_pickled() -> None:
    error = refused(NonFiniteError, lambda: mixed([np.nan, 0.0, 0.0], 1.0))
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is NonFiniteError
    assert str(again) == str(error)
    assert again.entries == (0,)
    with pytest.raises(AttributeError):
        _ = again.nothing


def test_function_that_fails_gives_no_old_results() -> None:
    # A QP without a solution where the bounds cross.
    low = ca.MX.sym("low")
    solver = ca.conic("infeasible", "daqp", {"h": ca.Sparsity.dense(1, 1)}, {"error_on_fail": True})
    x = solver(h=1, lbx=low, ubx=2)["x"]
    evaluator = Evaluator(ca.Function("least", [low], [x]), [()], "least")
    assert evaluator(1.0) == pytest.approx(1.0)
    with pytest.raises(ConcurError, match="least"):
        evaluator(3.0)
    assert evaluator(0.5) == pytest.approx(0.5)


@pytest.mark.parametrize("attitude", [(0, 0, 0, 0), (0.1, 0, 0, 0.9), (0, 0, 0, 2)])
def test_what_is_no_quaternion_is_refused(attitude: tuple[float, ...]) -> None:
    robot = free_flyer()
    model = reduce(robot)
    servo = Servo(model, [Output("hand", "tool", "SE3")], 4.0, 2.8)
    q = robot.neutral()
    q[8:12] = 1.0, -1.3, 0.1, 1.0
    pose = servo.output(q)
    lost = q.copy()
    lost[3:7] = attitude
    still = np.zeros(6)
    sample = ReferenceSample(pose, still, still)
    tick = servo.compile()
    assert np.isfinite(tick(q, still, sample)).all()
    calls = [
        lambda: robot.pose(lost, "tool"),
        lambda: model.lift(lost),
        lambda: model.locked_velocity(lost),
        lambda: servo.output(lost),
        lambda: servo.law(lost, still, pose, still, still),
        lambda: servo.torque(lost, still, sample),
        lambda: tick(lost, still, sample),
    ]
    for call in calls:
        with pytest.raises(ShapeError, match=r"quaternion of `spacecraft` at q\[3:7\].*unit norm"):
            call()
    tick.buffers.q[:] = lost
    assert not tick.update()
    tick.buffers.q[:] = q
    assert tick.update()


def test_buffers_of_a_method_are_handed_out() -> None:
    robot, rng = free_flyer(), np.random.default_rng(4)
    q0, q1, v = robot.random(rng), robot.random(rng), rng.normal(size=robot.nv)
    door = robot.buffered("mass_matrix")
    first = door.view(q0)
    assert_array_equal(first, robot.mass_matrix(q0))
    again = door.view(q1)
    assert again is first  # no copy: the next call writes over it
    assert_array_equal(first, robot.mass_matrix(q1))
    assert_array_equal(robot.buffered("bias")(q0, v), robot.bias(q0, v))
    energy = robot.buffered("kinetic_energy").view(q0, v)
    assert energy.shape == ()
    assert energy == robot.kinetic_energy(q0, v)
    tool = robot.bodies[-1].name
    assert_array_equal(robot.buffered("jacobian", tool).view(q0), robot.jacobian(q0, tool))


def test_buffers_are_handed_out_for_sound_arguments_only() -> None:
    robot = free_flyer()
    q = robot.neutral()
    door = robot.buffered("bias")
    with pytest.raises(NonFiniteError, match="bias of `free_flyer`, argument `v`"):
        door.view(q, np.full(robot.nv, np.nan))
    with pytest.raises(ShapeError, match="unit norm"):
        door.view(2.0 * q, np.zeros(robot.nv))
    with pytest.raises(ShapeError, match="argument `q`"):
        door.view(q[1:], np.zeros(robot.nv))
    with pytest.raises(ValueError, match="shorter"):
        door.view(q)
    with pytest.raises(ValueError, match="longer"):
        door.view(q, np.zeros(robot.nv), q)
    with pytest.raises(ConcurError, match="buffered"):
        robot.buffered("mass")
