"""Rational bounds against arithmetic of high precision."""

from fractions import Fraction
from math import inf, nextafter, pi

import flint
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from concur.certify._bounds import (
    cosine,
    float_above,
    float_below,
    largest_eigenvalue,
    rational,
    root_above,
    root_below,
    sine,
    smallest_eigenvalue,
)
from tests.certify._thesis_cases import positive

fractions = st.fractions(min_value=Fraction(1, 10**6), max_value=10**6)


@given(fractions)
@settings(max_examples=60, deadline=None)
def test_roundings_are_on_their_side_and_next_to_it(value):
    assert Fraction(float_below(value)) <= value < Fraction(nextafter(float_below(value), inf))
    assert Fraction(float_above(value)) >= value > Fraction(nextafter(float_above(value), -inf))
    low, high = root_below(value), root_above(value)
    assert Fraction(low) ** 2 <= value <= Fraction(high) ** 2
    assert high <= low * (1 + 1e-15)


@pytest.mark.parametrize("angle", [1e-9, 0.1, 1.0, 1.5, pi / 2])
def test_sine_and_cosine_enclose_the_true_values(angle):
    with flint.ctx.workprec(4000):
        x = flint.arb(angle)
        for (low, high), true in (
            (sine(Fraction(angle)), x.sin()),
            (cosine(Fraction(angle)), x.cos()),
        ):
            assert flint.arb(flint.fmpq(low.numerator, low.denominator)) <= true
            assert flint.arb(flint.fmpq(high.numerator, high.denominator)) >= true
            assert float(high - low) < 1e-40


def positive_definite(matrix):
    """By the signs of the leading minors, in rational arithmetic of another library."""
    rows = [[flint.fmpq(entry.numerator, entry.denominator) for entry in row] for row in matrix]
    return all(
        flint.fmpq_mat([row[:k] for row in rows[:k]]).det() > 0 for k in range(1, len(rows) + 1)
    )


@pytest.mark.parametrize("seed", range(6))
def test_eigenvalues_are_bounded_and_near(seed):
    rng = np.random.default_rng(seed)
    size = 2 + seed
    matrix, metric = rational(positive(rng, size)), rational(positive(rng, size))
    most, least = largest_eigenvalue(matrix, metric), smallest_eigenvalue(matrix, metric)
    near = Fraction(1, 10**10)
    assert positive_definite(most * metric - matrix)
    assert not positive_definite(most * (1 - near) * metric - matrix)
    assert positive_definite(matrix - least * metric)
    assert not positive_definite(matrix - least * (1 + near) * metric)


def test_eigenvalues_of_a_metric_that_floats_cannot_factor():
    tiny = 2.0**-60
    metric = rational(np.array([[1.0, 1.0], [1.0, 1.0]]))
    metric[1, 1] += Fraction(tiny)
    matrix = rational(np.eye(2))
    most = largest_eigenvalue(matrix, metric)
    assert positive_definite(most * metric - matrix)
    assert most < 4 * Fraction(2) ** 60
