"""The same functions with numbers and with expressions, and what they refuse."""

from __future__ import annotations

import doctest

import casadi as ca
import numpy as np
import pytest

from concur.errors import NonFiniteError, ShapeError
from concur.groups import quaternion, se2, se3, so3

from .test_derivatives import CASES

MODULES = [quaternion, se2, se3, so3]
every_function = pytest.mark.parametrize("name", CASES)


def example(name):
    points = CASES[name].points
    return next(points[key] for key in ("general", "half", "small") if key in points)


def symbols_for(arrays):
    return [ca.SX.sym("x", *(a.shape if a.ndim == 2 else (len(a), 1))) for a in arrays]


@every_function
def test_expressions_evaluate_to_the_numbers(name):
    function, arrays = CASES[name].function, example(name)
    symbols = symbols_for(arrays)
    expression = function(*symbols)
    assert isinstance(expression, ca.SX)
    value = np.array(ca.Function("f", symbols, [ca.densify(expression)])(*arrays))
    number = function(*arrays)
    assert isinstance(number, np.ndarray)
    assert number.dtype == np.float64
    assert number.ndim == 1 or number.shape == value.shape
    np.testing.assert_allclose(number.reshape(value.shape), value, rtol=0, atol=1e-14)


@every_function
def test_lists_and_numbers_beside_expressions_are_taken(name):
    function, arrays = CASES[name].function, example(name)
    number = function(*arrays)
    np.testing.assert_array_equal(function(*(a.tolist() for a in arrays)), number)
    constant = function(ca.SX(ca.DM(arrays[0])), *arrays[1:])
    assert constant.is_constant()
    value = np.array(ca.evalf(constant)).reshape(number.shape)
    np.testing.assert_allclose(value, number, rtol=0, atol=1e-14)


@every_function
def test_wrong_shapes_are_refused(name):
    function, arrays = CASES[name].function, example(name)
    for index in range(len(arrays)):
        wrong = [*arrays]
        wrong[index] = np.ones(len(arrays[index]) + 1)
        with pytest.raises(ShapeError, match=name.rpartition(".")[2]) as caught:
            function(*wrong)
        assert str(arrays[index].shape) in caught.value.expected
        assert str(wrong[index].shape) in caught.value.came
        with pytest.raises(ShapeError, match=name.rpartition(".")[2]):
            function(*symbols_for(wrong))


@every_function
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite_are_refused(name, bad):
    function, arrays = CASES[name].function, example(name)
    for index in range(len(arrays)):
        wrong = [a.copy() for a in arrays]
        wrong[index].flat[0] = bad
        with pytest.raises(NonFiniteError, match=name.rpartition(".")[2]) as caught:
            function(*wrong)
        assert caught.value.entries == (0,)


@pytest.mark.parametrize(
    ("expression", "nonzeros"),
    [
        (so3.skew(ca.SX.sym("w", 3)), 6),
        (se3.hat(ca.SX.sym("x", 6)), 9),
        (se3.ad(ca.SX.sym("x", 6)), 18),
        (se3.exp(ca.SX.sym("x", 6)), 13),
        (se3.inverse(ca.SX.sym("H", 4, 4)), 13),
        (se3.adjoint(ca.SX.sym("H", 4, 4)), 27),
        (se3.dexp_body(ca.SX.sym("x", 6)), 27),
        (se3.dexp_spatial_inverse(ca.SX.sym("x", 6)), 27),
        (se2.to_pose(ca.SX.sym("q", 3)), 8),
        (se2.ad(ca.SX.sym("x", 3)), 4),
        (se2.dexp_body(ca.SX.sym("x", 3)), 7),
    ],
)
def test_structural_zeros_are_kept(expression, nonzeros):
    assert expression.nnz() == nonzeros


@pytest.mark.parametrize("module", MODULES)
def test_examples_run(module):
    outcome = doctest.testmod(module)
    assert outcome.attempted > 0
    assert outcome.failed == 0
