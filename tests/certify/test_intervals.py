"""Ball enclosures of the deployed functions: they contain every value and are tight."""

import sys

import casadi as ca
import numpy as np
import pytest
from flint import arb, arb_mat, ctx
from hypothesis import given, settings
from hypothesis import strategies as st

from concur.certify._affine_form import BAND
from concur.certify._arrays import array
from concur.certify._intervals import Walker, flint, interval
from concur.errors import ConcurError, OutputError, ShapeError
from concur.outputs.groups import Angle, PlanarPose, Pose, Product, Rotation, Vector

GROUPS = {
    "SO3": Rotation(),
    "SE3": Pose(),
    "SE2": PlanarPose(),
    "product": Product([Vector("xy"), Pose(), Angle(), Rotation()]),
}


def enclose(function, arguments):
    return Walker(function)(arguments)


def error_map(group):
    x = ca.SX.sym("x", group.dim)
    return ca.Function("B", [x], [ca.densify(group.error_map(x))])


def ends(matrix):
    """Lower and upper ends of a matrix of balls."""
    balls = array(matrix)
    low = np.array([[float(b.lower()) for b in row] for row in balls])
    high = np.array([[float(b.upper()) for b in row] for row in balls])
    return low, high


def scalar(expression, x):
    return ca.Function("f", [x], [expression])


# --- the error maps --------------------------------------------------------------------------


@pytest.mark.by_default(2)
@pytest.mark.parametrize("name", GROUPS)
@settings(deadline=None, max_examples=40)
@given(seed=st.integers(0, 10**6), width=st.sampled_from([0.0, 1e-9, 1e-3, 0.1, 0.5]))
def test_every_value_of_the_error_map_in_a_box_is_enclosed(name, seed, width):
    group, rng = GROUPS[name], np.random.default_rng(seed)
    function = error_map(group)
    middle = rng.normal(size=group.dim)
    middle *= rng.choice([1e-6, 0.3, 1.0, 1.15])
    low, high = middle - width / 2, middle + width / 2
    (enclosed,) = enclose(function, [[interval(a, b) for a, b in zip(low, high, strict=True)]])
    lower, upper = ends(enclosed)
    for _ in range(10):
        value = np.asarray(function(rng.uniform(low, high)))
        # NaN means that the enclosure has no bound.
        assert not (value < lower - 1e-13).any()
        assert not (value > upper + 1e-13).any()


def ad_of(name, x):
    zero = arb(0)
    if name == "SO3":
        a, b, c = x
        return [[zero, -c, b], [c, zero, -a], [-b, a, zero]]
    if name == "SE2":
        a, b, c = x
        return [[zero, -c, b], [c, zero, -a], [zero, zero, zero]]
    shift, turn = ad_of("SO3", x[:3]), ad_of("SO3", x[3:])
    return [t + s for t, s in zip(turn, shift, strict=True)] + [[zero] * 3 + t for t in turn]


def exact_error_map(name, x):
    """B = ad / (exp(ad) - 1) to 60 digits, by the matrix exponential."""
    ad = ad_of(name, [arb(float(v)) for v in x])
    n = len(ad)
    rows = [row + [arb(int(i == j)) for j in range(n)] for i, row in enumerate(ad)]
    rows += [[arb(0)] * (2 * n) for _ in range(n)]
    corner = array(arb_mat(rows).exp())[:n, n:]
    return array(arb_mat(corner.tolist()).inv())


@pytest.mark.parametrize("name", ["SO3", "SE2", "SE3"])
@pytest.mark.parametrize(
    "angle", [0.0, 1e-9, 1e-4, 0.3, 1.0, 1.9999999, 2.0, 2.0000001, 2.5, 3.0, np.pi]
)
def test_the_deployed_map_differs_from_the_exact_one_by_far_less_than_proofs_allow(name, angle):
    group, rng = GROUPS[name], np.random.default_rng(int(angle * 1e7) % 1000)
    axis = rng.normal(size=3)
    phi = angle * axis / np.linalg.norm(axis)
    rho = rng.normal(size=3) * 10.0
    x = {"SO3": phi, "SE2": np.array([*rho[:2], angle]), "SE3": np.concatenate([rho, phi])}[name]
    with ctx.workprec(220):
        exact = exact_error_map(name, x)
        deployed = array(Walker(error_map(group))([[arb(float(v)) for v in x]])[0])
        off = max(float(abs(a - b).upper()) for a, b in zip(exact.flat, deployed.flat, strict=True))
    assert off < BAND * (1.0 + np.abs(rho).max()) / 50.0


@pytest.mark.parametrize("width", [1e-2, 1e-4, 1e-8])
def test_enclosures_at_the_switch_between_series_and_closed_form_are_tight(width):
    t = ca.SX.sym("t")
    B = GROUPS["SE3"].error_map(ca.vertcat(0.5, 0.0, 0.2, 0.0, 0.0, t))
    walker = Walker(ca.Function("B", [t], [ca.densify(B)]))
    box = [[interval(2.0 - width, 2.0 + width)]]
    assert len(walker.cases(box)) == 2
    lower, upper = ends(walker(box)[0])
    assert (upper - lower).max() < 6.0 * width + 1e-13
    # As tight as beside the switch, where there is no question.
    beside = ends(walker([[interval(1.9 - width, 1.9 + width)]])[0])
    assert (upper - lower).max() < 3.0 * (beside[1] - beside[0]).max() + 1e-13


def test_a_box_from_zero_to_beyond_the_switch_has_bounds():
    t = ca.SX.sym("t")
    B = GROUPS["SO3"].error_map(ca.vertcat(0.0, 0.0, t))
    lower, upper = ends(enclose(ca.Function("B", [t], [ca.densify(B)]), [[interval(0.0, 2.2)]])[0])
    assert np.isfinite(lower).all()
    assert np.isfinite(upper).all()
    assert lower[0, 0] <= 1.1 / np.tan(1.1)
    assert upper[0, 0] >= 1.0


def test_the_formula_of_a_case_holds_on_either_side_of_the_comparison():
    x = ca.SX.sym("x")
    walker = Walker(scalar(ca.if_else(x < 1.0, x * x, 5.0 * x), x))
    (square,) = [c for c in walker.cases([[interval(0.9, 1.1)]]) if True in c.answers.values()]
    (extended,) = walker.cases([[arb(3)]], square.answers)
    assert extended.results[0][0, 0].overlaps(arb(9))
    assert not extended.results[0][0, 0].overlaps(arb(15))
    (decided,) = walker.cases([[arb(3)]])
    assert decided.results[0][0, 0].overlaps(arb(15))
    assert not square.mixed
    assert not decided.mixed


# --- single instructions ---------------------------------------------------------------------

EXPRESSIONS = {
    "root": lambda x, y: ca.sqrt(x**2 + 1.0),
    "power": lambda x, y: (x * x + 0.1) ** y,
    "cube": lambda x, y: x**3,
    "angles": lambda x, y: ca.sin(x) + ca.cos(y) * ca.tan(x / 3),
    "inverse angles": lambda x, y: ca.atan(x) + ca.asin(x / 9) - ca.acos(y / 9) + ca.atan2(y, x),
    "exponents": lambda x, y: ca.exp(x / 2) - ca.log(y**2 + 0.5),
    "sizes": lambda x, y: ca.fabs(x) + ca.fmin(x, y) - ca.fmax(x * y, 0.3),
    "quotient": lambda x, y: x / (2.0 + ca.sin(y)) - 1.0 / (3.0 + y * y),
    "less": lambda x, y: ca.if_else(x < y, x - 2.0, 3.0 * y),
    "not more": lambda x, y: ca.if_else(x <= y, x, y * y),
    "logic": lambda x, y: ca.if_else(ca.logic_and(x < y, ca.logic_not(y < 0.2)), 1.0, x),
    "either": lambda x, y: ca.if_else(ca.logic_or(x < 0.0, y != 0.0), y, x),
    "nested": lambda x, y: ca.if_else(x < y, ca.if_else(y < 0.5, x * y, ca.sin(x)), -x),
    "equal": lambda x, y: ca.if_else(x == 0.0, 2.0, x + y),
}


@pytest.mark.parametrize("name", EXPRESSIONS)
@settings(deadline=None, max_examples=40)
@given(
    a=st.floats(-2.0, 2.0),
    b=st.floats(-2.0, 2.0),
    width=st.sampled_from([0.0, 1e-6, 0.05, 1.0]),
    share=st.floats(0.0, 1.0),
)
def test_every_value_of_an_instruction_is_enclosed(name, a, b, width, share):
    x, y = ca.SX.sym("x"), ca.SX.sym("y")
    function = ca.Function("f", [x, y], [EXPRESSIONS[name](x, y)])
    (enclosed,) = enclose(function, [[interval(a, a + width)], [interval(b, b + width)]])
    value = float(function(a + share * width, b + (1.0 - share) * width))
    lower, upper = ends(enclosed)
    assert not value < lower[0, 0] - 1e-12
    assert not value > upper[0, 0] + 1e-12


def test_the_square_of_an_interval_around_zero_is_not_negative():
    x = ca.SX.sym("x")
    lower, upper = ends(enclose(scalar(x**2, x), [[interval(-1.0, 2.0)]])[0])
    assert -1e-7 < lower[0, 0] <= 0.0
    assert 4.0 <= upper[0, 0] < 4.0 + 1e-7


def test_where_a_function_may_be_undefined_nothing_is_claimed():
    x = ca.SX.sym("x")
    for expression in (ca.sqrt(x), 1.0 / x, ca.log(x)):
        ball = enclose(scalar(expression, x), [[interval(-0.5, 1.0)]])[0][0, 0]
        assert not ball.is_finite()


def test_a_branch_that_is_not_taken_may_be_undefined():
    x = ca.SX.sym("x")
    function = scalar(ca.if_else(x > 1.0, ca.sqrt(x - 1.0), 7.0), x)
    lower, upper = ends(enclose(function, [[interval(0.0, 0.5)]])[0])
    assert (lower, upper) == (7.0, 7.0)


def test_more_undecided_comparisons_than_are_followed_still_give_an_enclosure():
    x = ca.SX.sym("x", 10)
    steps = sum(ca.if_else(x[i] < 0.0, 0.0, 2.0**i) for i in range(10))
    walker = Walker(ca.Function("f", [x], [steps]))
    box = [[interval(-1.0, 1.0)] * 10]
    lower, upper = ends(walker(box)[0])
    assert lower <= 0.0
    assert upper >= 2.0**10 - 1.0
    assert any(case.mixed for case in walker.cases(box))


def test_results_with_structural_zeros_and_several_arguments_keep_their_places():
    x, y = ca.SX.sym("x", 2), ca.SX.sym("y", 2, 2)
    sparse = ca.SX(2, 3)
    sparse[0, 2], sparse[1, 0] = x[1] * y[1, 0], y[0, 1]
    balls = [[arb(2), arb(3)], [arb(5), arb(7), arb(11), arb(13)]]
    (result,) = enclose(ca.Function("f", [x, y], [sparse]), balls)
    assert [[float(b) for b in row] for row in result.tolist()] == [[0, 0, 21], [11, 0, 0]]


# --- rejected arguments -------------------------------------------------------------------------


def test_an_instruction_that_is_not_known_is_named():
    x = ca.SX.sym("x")
    with pytest.raises(OutputError, match=r"instruction 1.*number \d+"):
        Walker(scalar(ca.erf(x), x))


def test_functions_of_other_kinds_are_refused():
    x = ca.MX.sym("x")
    with pytest.raises(OutputError, match="over SX"):
        Walker(ca.Function("f", [x], [x]))


def test_arguments_of_the_wrong_size_are_refused():
    x = ca.SX.sym("x", 2)
    with pytest.raises(ShapeError, match=r"\[2\]"):
        enclose(scalar(x[0] + x[1], x), [[arb(1)]])


def test_without_python_flint_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "flint", None)
    with pytest.raises(ConcurError, match=r"\[certify\]"):
        flint()


def test_ends_in_the_wrong_order_are_no_interval():
    assert interval(1.0, 0.0).is_nan()
    assert interval(float("nan"), 1.0).is_nan()


@pytest.mark.parametrize("pick", [ca.fmin, ca.fmax])
def test_the_lesser_and_the_greater_of_a_ball_without_bounds_have_none(pick) -> None:
    """The root of a ball that reaches below zero is such a ball; 0.5 is no bound of the pair."""
    x = ca.SX.sym("x", 1)
    walker = Walker(ca.Function("f", [x], [pick(0.5, 1 / ca.sqrt(x)) if pick is ca.fmin else
                                           pick(0.5, ca.sqrt(x))]))  # fmt: skip
    for low, bounded in ((-1.0, False), (1.0, True)):
        (found,) = walker([[interval(low, 4.0)]])[0].entries()
        assert bool(found.is_finite()) is bounded
