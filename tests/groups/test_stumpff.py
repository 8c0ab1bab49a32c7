"""The coefficient functions and their derivatives against sums of 120 digits."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal, localcontext
from math import factorial

import casadi as ca
import numpy as np
import pytest

from concur.groups.stumpff import inverse_coefficients, stumpff

SQUARED_ANGLES = [0.0, 1e-16, 1.5e-8, 1e-4, 0.3, 1.0, 3.0, 4 - 1e-15, 4.0, 4.0001, 9.87, 20.0]
TOLERANCES = [3e-15, 5e-14, 2e-12]  # value, first and second derivative
STEP = Decimal("1e-25")


def precise_stumpff(order: int, t: Decimal) -> Decimal:
    return sum(((-t) ** i / factorial(2 * i + order) for i in range(1, 120)), Decimal(0)) + (
        Decimal(1) / factorial(order)
    )


def precise_inverse(t: Decimal) -> Decimal:
    if t == 0:
        return Decimal(1) / 12
    return (1 - precise_stumpff(1, t) / (2 * precise_stumpff(2, t))) / t


def precise_derivatives(function: Callable[[Decimal], Decimal], t: float) -> list[float]:
    with localcontext() as context:
        context.prec = 120
        below, here, above = (function(Decimal(t) + k * STEP) for k in (-1, 0, 1))
        slope = (above - below) / (2 * STEP)
        curvature = (above - 2 * here + below) / STEP**2
        return [float(here), float(slope), float(curvature)]


def with_derivatives(expressions: list[ca.SX], t: ca.SX) -> ca.Function:
    first = [ca.gradient(e, t) for e in expressions]
    second = [ca.gradient(e, t) for e in first]
    rows = [ca.vertcat(*column) for column in (expressions, first, second)]
    return ca.Function("coefficients", [t], [ca.densify(ca.horzcat(*rows))])


T = ca.SX.sym("t")
STUMPFF = with_derivatives(stumpff(T), T)
INVERSE = with_derivatives(list(inverse_coefficients(T)), T)


@pytest.mark.parametrize("t", [*SQUARED_ANGLES, 39.0, 150.0])
def test_stumpff_functions_and_two_derivatives(t):
    computed = np.array(STUMPFF(t))
    for order in range(6):
        exact = precise_derivatives(lambda x, k=order: precise_stumpff(k, x), t)
        for degree, tolerance in enumerate(TOLERANCES):
            error = abs(computed[order, degree] - exact[degree]) * factorial(order + 2 * degree)
            assert error < tolerance, (order, degree, error)


@pytest.mark.parametrize("t", [*SQUARED_ANGLES, 30.0, 39.0])
def test_inverse_coefficient_and_two_derivatives(t):
    computed = np.array(INVERSE(t))[0]
    exact = precise_derivatives(precise_inverse, t)
    np.testing.assert_allclose(computed[0], exact[0], rtol=5e-15)
    np.testing.assert_allclose(computed[1], exact[1], rtol=1e-13)
    np.testing.assert_allclose(computed[2], exact[2], rtol=5e-13)
    slope = np.array(INVERSE(t))[1, :2]
    np.testing.assert_allclose(slope, computed[1:], rtol=1e-11)


@pytest.mark.parametrize("distance", [1e-2, 1e-4, 1e-6])
def test_inverse_coefficients_keep_their_digits_near_a_full_turn(distance):
    t = (2 * np.pi - distance) ** 2
    g, slope = np.array(INVERSE(t))[:2, 0]
    exact = precise_derivatives(precise_inverse, t)
    # No more is lost than by rounding the angle itself.
    allowed = 10 * np.finfo(float).eps * 2 * np.pi / distance
    assert g == pytest.approx(exact[0], rel=allowed)
    assert slope == pytest.approx(exact[1], rel=allowed)
