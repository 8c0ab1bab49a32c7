"""Polynomials with remainders: they contain every value of the function in the box."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest

from concur.certify._taylor import Model, TaylorWalker, combined
from concur.errors import OutputError


def worth(model: Model, d: np.ndarray) -> np.ndarray:
    """Evaluate the polynomial at points d (k, n) in [-1, 1]."""
    n = d.shape[1]
    first, second = np.triu_indices(n)
    terms = np.hstack([np.ones((len(d), 1)), d, d[:, first] * d[:, second]])
    return np.asarray(terms @ model.values[0])


def functions() -> dict[str, ca.SX]:
    x = ca.SX.sym("x", 3)
    a, b, c = x[0], x[1], x[2]
    return {
        "rotations": ca.sin(a) * ca.cos(b) * ca.sin(c) + ca.cos(a + 2 * b) ** 2,
        "quotient": (a + b) / (2.5 + ca.cos(c) * a),
        "root": ca.sqrt(3.0 + a * b) - 1 / (4 + c),
        "angle": ca.cos(3 * ca.atan2(ca.sin(a) * 2, ca.cos(a) + 0.3 * ca.sin(b))),
        "solved": ca.solve(ca.vertcat(ca.horzcat(3 + a, b), ca.horzcat(b, 2 + c)), x[:2])[1],
    } | {"x": x}


@pytest.mark.parametrize("name", ["rotations", "quotient", "root", "angle", "solved"])
@pytest.mark.parametrize("width", [1e-3, 0.05, 0.3])
def test_all_values_in_the_box_are_held_and_the_remainder_is_of_third_order(
    name: str, width: float
) -> None:
    table = functions()
    function = ca.Function("f", [table["x"]], [table[name]])
    walker = TaylorWalker(function, "test")
    rng = np.random.default_rng(1)
    middle = np.array([0.4, -0.3, 0.8])
    model = walker(middle, np.full(3, width))[0][0][0]
    d = rng.uniform(-1, 1, (2000, 3))
    d[:8] = np.array(np.meshgrid(*[[-1, 1]] * 3)).reshape(3, -1).T
    exact = np.array([float(function(middle + width * row)) for row in d])
    assert (np.abs(exact - worth(model, d)) <= model.remainder[0]).all()
    assert model.remainder[0] < 250 * width**3 + 1e-10


def test_a_heading_at_a_half_turn_has_sines() -> None:
    x = ca.SX.sym("x", 1)
    heading = ca.atan2(ca.sin(x), ca.cos(x))
    walker = TaylorWalker(ca.Function("f", [x], [ca.sin(heading)]), "test")
    model = walker(np.array([np.pi]), np.array([0.1]))[0][0][0]
    d = np.linspace(-1, 1, 101)[:, None]
    assert (np.abs(np.sin(np.pi + 0.1 * d[:, 0]) - worth(model, d)) <= model.remainder).all()


def test_division_by_what_may_vanish_has_no_bound() -> None:
    x = ca.SX.sym("x", 1)
    walker = TaylorWalker(ca.Function("f", [x], [1 / x]), "test")
    assert not np.isfinite(walker(np.array([0.1]), np.array([0.2]))[0][0][0].remainder[0])
    assert not np.isfinite(walker(np.array([0.0]), np.array([0.2]))[0][0][0].remainder[0])


def test_conditions_are_refused() -> None:
    x = ca.SX.sym("x", 1)
    with pytest.raises(OutputError, match="instruction"):
        TaylorWalker(ca.Function("f", [x], [ca.if_else(x > 0, x, -2 * x)]), "test")


def test_several_values_of_other_arguments_at_once() -> None:
    x, w = ca.SX.sym("x", 1), ca.SX.sym("w", 1)
    walker = TaylorWalker(ca.Function("f", [x, w], [ca.sin(x) * w**2]), "test")
    model = walker(np.array([0.5]), np.array([0.1]), np.array([[1.0, 2.0]]))[0][0][0]
    parts = [Model(model.values[k : k + 1], model.remainder[k : k + 1]) for k in (0, 1)]
    four = combined([(-4.0, parts[0]), (1.0, parts[1])])
    assert np.abs(four.values).max() < 1e-12
