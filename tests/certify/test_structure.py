"""Exact verdicts on the gains: against known roots, NumPy away from the margin, and on it."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.linalg import block_diag

from concur.certify._status import Status
from concur.certify._structure import (
    check_structure,
    exact,
    ldl_pivots,
)
from concur.control import ErrorDynamics
from concur.errors import NonFiniteError, ShapeError
from concur.outputs.groups import Pose, Product, Rotation, Vector

HALF, TINY = Fraction(1, 2), Fraction(1, 2**80)
SMALLEST = 5e-324
PLANE = Vector("xy")


def check(group, stiffness=None, damping=None, inertia=None):
    """Verdict for given matrices; KP 4, KD 2.8 and I 1 by default."""
    one = np.eye(group.dim)
    given_or = [
        default * one if value is None else np.array(value, dtype=float)
        for value, default in ((stiffness, 4.0), (damping, 2.8), (inertia, 1.0))
    ]
    return check_structure(ErrorDynamics(group, *given_or))


def spectral_abscissa(stiffness, damping, inertia):
    n = len(inertia)
    pull = np.linalg.solve(inertia, np.hstack([stiffness, -damping]))
    lift = np.hstack([np.zeros((n, n)), -np.eye(n)])
    return float(np.linalg.eigvals(np.vstack([lift, pull])).real.max())


numbers = st.integers(-(2**20), 2**20).map(lambda k: k / 2**14)
seeds = st.integers(0, 2**32 - 1)


# --- proved claims --------------------------------------------------------------------------


@given(seeds, st.sampled_from([PLANE, Rotation(), Pose()]), st.floats(-12.0, 0.0))
def test_definite_gains_are_proved(number, group, smallness):
    """x* (s^2 I + s KD + KP) x = 0 has no root with Re s >= 0 when all three are definite."""
    rng = np.random.default_rng(number)
    gains = []
    for _ in range(3):
        factor = rng.normal(size=(group.dim, group.dim))
        matrix = factor @ factor.T + 10.0**smallness * np.eye(group.dim)
        gains.append((matrix + matrix.T) / 2.0)
    assume(min(np.linalg.eigvalsh(gain)[0] for gain in gains) > 1e-13 * group.dim)
    found = check(group, *gains)
    assert found.status is Status.PROVED, str(found)
    assert found.definite
    assert found.stable
    assert found.refusals == ()


def test_proof_is_of_every_channel():
    group = Product([PLANE, Rotation(), Pose()])
    good = [np.diag(np.arange(1.0, group.dim + 1.0))] * 3
    assert check(group, *good).status is Status.PROVED
    for row in range(group.dim):
        bad = good[1].copy()
        bad[row, row] = -SMALLEST
        found = check(group, good[0], bad, good[2])
        assert {r.claim for r in found.refusals} == {"positive definite", "stable"}
        assert f"KD in row {row}:" in found.refusals[0].quantity


# --- gains that make the loop unstable -------------------------------------------------------


@pytest.mark.parametrize(("symbol", "which"), [("KP", 0), ("KD", 1), ("I", 2)])
@pytest.mark.parametrize("group", [Vector("x"), Rotation(), Pose()])
def test_a_negative_gain_is_refused_by_name(symbol, which, group):
    gains = [None, None, None]
    gains[which] = -3.0 * np.eye(group.dim)
    found = check(group, *gains)
    assert found.status is Status.REFUTED
    assert not found.definite
    assert not found.stable
    pivot, coefficient = found.refusals
    assert pivot.value == -3
    assert pivot.quantity.startswith(f"pivot of {symbol} in row 0: ")
    assert coefficient.claim == "stable"
    assert coefficient.quantity.startswith("coefficient of s^")
    assert coefficient.value < 0
    assert f"pivot of {symbol} in row 0: {group.error_names[0]} is -3, not above zero" in str(found)


def test_the_coefficient_and_its_value_are_named():
    """(s^2 - 2.5 s + 4)(s^2 + 3 s + 2) = s^4 + 0.5 s^3 - 1.5 s^2 + 7 s + 8."""
    found = check(PLANE, np.diag([4.0, 2.0]), [[-2.5, 0.25], [0.0, 3.0]])
    asymmetry, coefficient = found.refusals
    assert asymmetry.quantity == "KD[1: y; 0: x] - KD[0: x; 1: y]"
    assert asymmetry.value == Fraction(-1, 4)
    assert coefficient.quantity == "coefficient of s^2 in det(s^2 I + s KD + KP) / det I"
    assert coefficient.value == Fraction(-3, 2)
    assert str(coefficient) == (
        "channel (0: x, 1: y): coefficient of s^2 in det(s^2 I + s KD + KP) / det I is -1.5, "
        "not above zero."
    )


def test_an_indefinite_gain_is_refused_at_its_pivot():
    """Determinant 4 * 9 - 49 = -13; second pivot -13 / 4."""
    found = check(PLANE, [[4.0, 7.0], [7.0, 9.0]])
    pivot, coefficient = found.refusals
    assert (pivot.quantity, pivot.value) == ("pivot of KP in row 1: y", Fraction(-13, 4))
    assert coefficient.quantity.startswith("coefficient of s^0 ")
    assert coefficient.value == -13


def test_swapped_rows_are_refused():
    swapped = np.diag([4.0, 6.0, 9.0])[[1, 0, 2]]
    found = check(Rotation(), swapped)
    assert found.status is Status.REFUTED
    assert not found.stable
    assert found.refusals[0].value == -2
    assert "Give (K + K^T) / 2" in str(found)
    even = check(Rotation(), np.diag([4.0, 4.0, 9.0])[[1, 0, 2]])
    assert [r.claim for r in even.refusals] == ["positive definite", "stable"]
    assert even.refusals[0].value == 0  # first pivot of [[0, 4], [4, 0]]


def test_only_the_channel_at_fault_is_refused():
    group = Product([PLANE, Rotation(), Vector("z")])
    stiffness = block_diag(4.0 * np.eye(2), np.diag([4.0, -1.0, 4.0]), 4.0)
    found = check(group, stiffness)
    assert {r.channel for r in found.refusals} == {"channel (2: rx, 3: ry, 4: rz)"}
    assert found.refusals[0].quantity == "pivot of KP in row 3: ry"


def test_definite_and_stable_are_two_facts():
    asymmetric = check(PLANE, [[4.0, 1.0], [0.0, 4.0]])
    assert (asymmetric.definite, asymmetric.stable) == (False, True)
    mirrored = check(PLANE, -4.0 * np.eye(2), -2.8 * np.eye(2), -np.eye(2))
    assert (mirrored.definite, mirrored.stable) == (False, True)
    for found in (asymmetric, mirrored):
        assert found.status is Status.REFUTED


# --- on the margin and one unit in the last place beside it ----------------------------------


@pytest.mark.parametrize(("symbol", "which"), [("KP", 0), ("KD", 1), ("I", 2)])
def test_a_singular_gain_is_refused(symbol, which):
    gains = [None, None, None]
    gains[which] = [[1.0, 3.0], [3.0, 9.0]]
    found = check(PLANE, *gains)
    assert found.status is Status.REFUTED
    assert found.refusals[0].quantity == f"pivot of {symbol} in row 1: y"
    assert found.refusals[0].value == 0
    assert "is 0, not above zero" in str(found.refusals[0])


@pytest.mark.parametrize("group", [Vector("x"), Rotation(), Pose()])
def test_no_damping_is_refused(group):
    found = check(group, damping=np.zeros((group.dim, group.dim)))
    pivot, coefficient = found.refusals
    assert (pivot.value, coefficient.value) == (0, 0)
    assert f"coefficient of s^{2 * group.dim - 1} " in coefficient.quantity


def test_an_inertia_of_zero_is_refused():
    found = check(Rotation(), inertia=np.zeros((3, 3)))
    assert found.refusals[1].quantity.startswith("det I, ")


@pytest.mark.parametrize(("symbol", "which"), [("KP", 0), ("KD", 1), ("I", 2)])
def test_the_smallest_numbers_decide(symbol, which):
    gains = [None, None, None]
    gains[which] = np.diag([1.0, SMALLEST, 1.0])
    assert check(Rotation(), *gains).status is Status.PROVED
    gains[which] = np.diag([1.0, -SMALLEST, 1.0])
    found = check(Rotation(), *gains)
    assert found.refusals[0].quantity == f"pivot of {symbol} in row 1: ry"
    assert "is -4.94066e-324, not above zero" in str(found)


def test_definite_where_rounding_hides_it():
    """Binary 0.1 * 0.9 > 0.3 * 0.3 or not: the sign is that of the stored numbers."""
    for a, b, c in [(0.1, 0.3, 0.9), (0.7, 0.7, 0.7), (1e-20, 1e-10, 1.0), (3.0, 1.1, 1.21 / 3)]:
        sign = Fraction(a) * Fraction(c) - Fraction(b) ** 2
        matrix = np.array([[a, b], [b, c]])
        assert abs(np.linalg.eigvalsh(matrix)[0]) < 1e-15
        found = check(PLANE, matrix)
        assert (found.status is Status.PROVED) == (sign > 0)
        assert found.definite == found.stable == (sign > 0)


def test_one_unit_in_the_last_place_of_asymmetry_is_refused():
    matrix = np.array([[4.0, 0.1], [np.nextafter(0.1, 1.0), 4.0]])
    found = check(PLANE, matrix)
    assert not found.definite
    assert found.stable
    assert found.refusals[0].value == Fraction(matrix[1, 0]) - Fraction(matrix[0, 1])
    assert check(PLANE, (matrix + matrix.T) / 2.0).status is Status.PROVED


@pytest.mark.parametrize(("damping", "stiffness"), [(1.0, 4.0), (2.0, 9.0), (0.5, 64.0)])
def test_flutter_to_the_last_place(damping, stiffness):
    """s^2 + d s + k +- i b = 0 is stable exactly when b^2 < d^2 k: here b = d sqrt(k)."""
    margin = damping * np.sqrt(stiffness)
    for coupling, stable in [
        (np.nextafter(margin, 0.0), True),
        (margin, False),
        (np.nextafter(margin, 100.0), False),
    ]:
        matrix = [[stiffness, coupling], [-coupling, stiffness]]
        found = check(PLANE, matrix, damping * np.eye(2))
        assert found.stable is stable
        assert not found.definite
        if not stable:
            refusal = found.refusals[-1]
            assert refusal.quantity == "first entry of row s^1 in Routh's array"
            assert (refusal.value == 0) == (coupling == margin)


# --- against NumPy away from the margin ------------------------------------------------------


@given(st.data(), st.integers(1, 4))
def test_stability_agrees_with_eigenvalues(data, n):
    """Any matrices, also unsymmetric and indefinite ones."""
    entries = st.lists(numbers, min_size=n * n, max_size=n * n)
    stiffness, damping, inertia = (np.reshape(data.draw(entries), (n, n)) for _ in range(3))
    shift = data.draw(st.sampled_from([0.0, 30.0, 150.0]))
    stiffness = stiffness + shift * np.eye(n)
    damping = damping + shift * np.eye(n)
    inertia = inertia + shift * np.eye(n)
    assume(np.linalg.cond(inertia) < 1e4)
    abscissa = spectral_abscissa(stiffness, damping, inertia)
    assume(abs(abscissa) > 1e-3)
    group = Vector("xyzx"[:n])
    assert check(group, stiffness, damping, inertia).stable == (abscissa < 0.0)


@given(seeds, st.integers(2, 6), st.floats(-1.0, 2.0))
def test_definiteness_agrees_with_eigenvalues(number, n, shift):
    rng = np.random.default_rng(number)
    factor = rng.normal(size=(n, n))
    matrix = (factor + factor.T) / 2.0 + shift * np.sqrt(n) * np.eye(n)
    lowest = np.linalg.eigvalsh(matrix)[0]
    assume(abs(lowest) > 1e-9)
    pivots = ldl_pivots(exact(matrix))
    assert (len(pivots) == n and pivots[-1] > 0) == (lowest > 0.0)
    leading = [np.linalg.det(matrix[:k, :k]) for k in range(1, len(pivots) + 1)]
    found = np.cumprod([float(pivot) for pivot in pivots])
    np.testing.assert_allclose(found, leading, rtol=1e-6, atol=1e-9)


@given(seeds)
def test_verdict_does_not_depend_on_the_axes(number):
    """Signed permutations of the axes are exact, so the verdicts must be the same."""
    rng = np.random.default_rng(number)
    gains = []
    for _ in range(3):
        factor = rng.normal(size=(3, 3))
        gains.append((factor + factor.T) / 2.0 + rng.choice([0.5, 2.0]) * np.eye(3))
    turn = np.eye(3)[rng.permutation(3)] * rng.choice([-1.0, 1.0], size=3)
    before = check(Rotation(), *gains)
    after = check(Rotation(), *(turn @ gain @ turn.T for gain in gains))
    assert (before.definite, before.stable) == (after.definite, after.stable)


# --- the parts, against other ways to the same numbers ---------------------------------------


def test_entries_are_taken_as_the_numbers_they_are():
    assert exact(np.array([[0.1, HALF]], dtype=float)) == [
        [Fraction(3602879701896397, 36028797018963968), HALF]
    ]


# --- bad input -------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_no_verdict_on_gains_that_are_not_finite(value):
    with pytest.raises(NonFiniteError, match="stiffness"):
        check(Rotation(), np.diag([4.0, value, 4.0]))


def test_no_verdict_on_gains_that_do_not_fit():
    with pytest.raises(ShapeError, match=r"\(3, 3\)"):
        check(Rotation(), np.eye(2))
