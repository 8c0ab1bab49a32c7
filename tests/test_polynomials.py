"""Models over balls: they contain every value of the function, and little more."""

from __future__ import annotations

import itertools

import casadi as ca
import numpy as np
import pytest

from concur._polynomials import Model, Space, Walker, heading, norm_bound
from concur.errors import OutputError

SPACE = Space((1, 3, 2))


def points(rng: np.random.Generator, count: int) -> np.ndarray:
    """Points with each block in its ball, half of them on the spheres."""
    d = rng.normal(size=(SPACE.size, count))
    for start, size in ((0, 1), (1, 3), (4, 2)):
        part = d[start : start + size]
        radius = rng.uniform(0, 1, count) ** (1 / size)
        radius[::2] = 1.0
        part *= radius / np.linalg.norm(part, axis=0)
    return d


def arguments(half: np.ndarray, space: Space = SPACE) -> tuple[list[Model], np.ndarray]:
    """Three arguments that are linear in all symbols, and their coefficients."""
    rng = np.random.default_rng(3)
    matrix = rng.normal(size=(3, SPACE.size)) / 3
    middle = np.array([0.4, -0.3, 0.8])
    symbols = [space.symbol(k, half) for k in range(space.size)]
    models = []
    for row, m in zip(matrix, middle, strict=True):
        total = space.constant(m)
        for factor, symbol in zip(row, symbols, strict=True):
            total = total + factor * symbol
        models.append(total)
    return models, matrix


def functions() -> tuple[ca.SX, dict[str, ca.SX]]:
    x = ca.SX.sym("x", 3)
    a, b, c = x[0], x[1], x[2]
    matrix = ca.vertcat(ca.horzcat(3 + a, b), ca.horzcat(b, 2 + c))
    return x, {
        "rotations": ca.sin(a) * ca.cos(b) * ca.sin(c) + ca.cos(a + 2 * b) ** 2,
        "quotient": (a + b) / (2.5 + ca.cos(c) * a),
        "root": ca.sqrt(3.0 + a * b) - 1 / (4 + c),
        "decay": ca.exp(-2 * a) * (1 - 2 * b),
        "solved": ca.solve(matrix, x[:2])[1],
    }


def test_all_values_are_held_and_remainders_are_near_the_largest_error() -> None:
    x, table = functions()
    halves = np.array([1e-3, 0.05, 0.3])
    models, matrix = arguments(halves)
    middle = np.array([[0.4], [-0.3], [0.8]])
    d = points(np.random.default_rng(1), 4000)
    for name, expression in table.items():
        function = ca.Function("f", [x], [expression])
        model = Walker(function, "test")(models)[0][0, 0]
        for k, half in enumerate(halves):
            exact = np.asarray(function(middle + half * matrix @ d)).ravel()
            one = model.take(np.array([k]))
            error = np.abs(exact - one.at(d)).max()
            assert error <= one.r[0], (name, half)
            assert one.r[0] < 25 * error + 1e-11, (name, half, one.r[0] / error)
            assert np.abs(exact).max() <= one.bound[0]


def test_dropped_products_are_in_the_remainders() -> None:
    x, table = functions()
    short = Space(SPACE.blocks, curved=1)
    models, matrix = arguments(np.array([0.05]), short)
    whole, _ = arguments(np.array([0.05]))
    d = points(np.random.default_rng(2), 4000)
    for name, expression in table.items():
        function = ca.Function("f", [x], [expression])
        one, full = (Walker(function, "test")(given)[0][0, 0] for given in (models, whole))
        exact = np.asarray(function(np.array([[0.4], [-0.3], [0.8]]) + 0.05 * matrix @ d)).ravel()
        error = np.abs(exact - one.at(d)).max()
        assert len(one.q) == short.rows(6) == 6 < len(full.q)
        assert full.r[0] < error <= one.r[0], name


def test_remainders_of_third_order_fall_with_the_third_power() -> None:
    x, table = functions()
    models, _ = arguments(np.array([0.02, 0.04]))
    for name, expression in table.items():
        r = Walker(ca.Function("f", [x], [expression]), "test")(models)[0][0, 0].r
        assert 7.9 < r[1] / r[0] < 12.0, name


def test_bounds_of_forms_are_those_of_balls() -> None:
    rng = np.random.default_rng(2)
    symbols = [SPACE.symbol(k) for k in range(SPACE.size)]
    d = points(rng, 200_000)
    line, pairs = rng.normal(size=SPACE.size), rng.normal(size=(SPACE.size, SPACE.size))
    linear = sum((c * s for c, s in zip(line[1:], symbols[1:], strict=True)), line[0] * symbols[0])
    found = np.abs(line @ d).max()
    assert found <= linear.bound[0] < 1.1 * found
    quadratic = SPACE.constant(0.0)
    for i in range(SPACE.size):
        for j in range(SPACE.size):
            quadratic = quadratic + pairs[i, j] * (symbols[i] * symbols[j])
    values = np.einsum("ib,ij,jb->b", d, pairs, d)
    assert np.abs(values - quadratic.at(d)).max() < 1e-12
    assert np.abs(values).max() <= quadratic.bound[0] < 2.0 * np.abs(values).max()


def test_the_norm_of_a_vector_counts_a_block_once() -> None:
    x = SPACE.block(1, np.array([0.5, 2.0]))
    assert norm_bound(x) == pytest.approx([0.5, 2.0], rel=1e-9)
    assert (norm_bound(x) >= [0.5, 2.0]).all()
    shifted = [x[0] + 3.0, x[1] + 4.0, x[2] * x[2]]
    d = points(np.random.default_rng(4), 100_000)
    for k in (0, 1):
        sampled = np.sqrt(sum(m.take(np.array([k])).at(d) ** 2 for m in shifted)).max()
        assert sampled <= norm_bound(shifted)[k] < 1.6 * sampled
    assert norm_bound(shifted)[0] == pytest.approx(5.0 + 0.5 + 0.25, rel=1e-6)


def test_fewer_symbols_give_the_same_results() -> None:
    small, big = SPACE.symbol(0, 0.2, 0.3), SPACE.symbol(4, 0.1, 1.1)
    for one in (small * big, big * small, small + big, big - small, small / big):
        d = points(np.random.default_rng(5), 100)
        assert len(one.l) == 5
        assert one.at(d).shape == (100,)
    d = points(np.random.default_rng(5), 100)
    product = (0.3 + 0.2 * d[0]) * (1.1 + 0.1 * d[4])
    assert np.abs((small * big).at(d) - product).max() < 1e-14
    assert np.abs((big * small).at(d) - product).max() < 1e-14


def test_division_by_what_may_vanish_has_no_bound() -> None:
    x = SPACE.symbol(0, np.array([0.99, 1.01]))
    with np.errstate(all="ignore"):
        assert np.isfinite((1.0 / (x + 1.0)).bound).tolist() == [True, False]
        assert np.isfinite((x + 1.0).sqrt().bound).tolist() == [True, False]
        assert not np.isfinite((x - 2.0).sqrt().bound).any()


def test_rounding_of_numbers_counts() -> None:
    x, y = ca.SX.sym("x"), ca.SX.sym("y")
    walker = Walker(ca.Function("f", [x, y], [ca.sin(x) * 3.0, y]), "test")
    exact, _ = walker([np.array([0.5, 1.0])], [SPACE.symbol(0)])
    assert ((exact[0, 0].r > 1e-16) & (exact[0, 0].r < 1e-11)).all()


def test_conditions_are_rejected() -> None:
    x = ca.SX.sym("x")
    with pytest.raises(OutputError, match="instruction"):
        Walker(ca.Function("f", [x], [ca.if_else(x > 0, x, -2 * x)]), "test")


def test_totals_bound_the_sum_of_coefficients_whatever_the_operations() -> None:
    x, table = functions()
    for space in (SPACE, Space(SPACE.blocks, curved=4), Space((6,))):
        models, _ = arguments(np.array([1e-3, 0.05, 0.3]), space)
        for name, expression in table.items():
            found = Walker(ca.Function("f", [x], [expression]), name)(models)[0].ravel()[0]
            for own in (found, found - 2.0 * found, -found, 3.0 - found * models[0], found / 7.0):
                exact = np.abs(own.c) + np.abs(own.l).sum(axis=0) + np.abs(own.q).sum(axis=0)
                assert (own.total >= exact * (1 - 1e-12)).all(), name
                assert (own.total < 1e3 * (1 + exact)).all(), name


def test_norms_of_vectors_are_those_of_their_blocks() -> None:
    rng, b = np.random.default_rng(8), 5
    for rows in (1, 2, 3, 5):
        for space in (SPACE, Space((6,))):
            n = space.size
            linear, c = rng.normal(size=(rows, n, b)), rng.normal(size=(rows, b))
            none = np.zeros((space.rows(n), b))
            vector = [Model(space, c[k], linear[k], none, np.full(b, 0.1 * k)) for k in range(rows)]
            starts = np.cumsum([0, *space.blocks])
            expected = np.linalg.norm(c, axis=0) + np.linalg.norm(0.1 * np.arange(rows))
            for i, j in itertools.pairwise(starts):
                part = np.moveaxis(linear[:, i:j], -1, 0)
                expected = expected + np.linalg.norm(part, 2, axis=(1, 2))
            assert norm_bound(vector) == pytest.approx(expected, rel=1e-9), rows
            assert (norm_bound(vector) >= expected).all()


@pytest.mark.parametrize("width", [1e-3, 0.05, 0.3])
def test_sines_of_headings_are_held(width: float) -> None:
    x = ca.SX.sym("x", 2)
    angle = ca.cos(3 * ca.atan2(ca.sin(x[0]) * 2, ca.cos(x[0]) + 0.3 * ca.sin(x[1])))
    function = ca.Function("f", [x], [angle])
    space, middle = Space((1, 1)), np.array([0.4, -0.3])
    given = [space.symbol(k, width, m) for k, m in enumerate(middle)]
    model = Walker(function, "test", {ca.OP_ATAN2: heading})(given)[0][0, 0]
    d = np.random.default_rng(1).uniform(-1, 1, (2, 2000))
    error = np.abs(np.asarray(function(middle[:, None] + width * d)).ravel() - model.at(d))
    assert (error <= model.r).all()
    assert model.r[0] < 250 * width**3 + 1e-10


def test_a_heading_at_a_half_turn_has_sines() -> None:
    x = ca.SX.sym("x", 1)
    function = ca.Function("f", [x], [ca.sin(ca.atan2(ca.sin(x), ca.cos(x)))])
    walker, space = Walker(function, "test", {ca.OP_ATAN2: heading}), Space((1,))
    model = walker([space.symbol(0, 0.1, np.pi)])[0][0, 0]
    d = np.linspace(-1, 1, 101)[None]
    assert (np.abs(np.sin(np.pi + 0.1 * d[0]) - model.at(d)) <= model.r).all()
    wide = walker([space.symbol(0, 1.6, np.pi)])[0][0, 0]
    assert not np.isfinite(wide.r[0])  # behind its middle


def test_headings_are_for_sines_alone() -> None:
    y = ca.SX.sym("y", 2)
    with pytest.raises(OutputError, match="instruction"):
        Walker(ca.Function("f", [y], [ca.atan2(y[0], y[1])]), "test")


def test_sums_of_columns() -> None:
    x, w = ca.SX.sym("x", 1), ca.SX.sym("w", 1)
    walker, space = Walker(ca.Function("f", [x, w], [ca.sin(x) * w**2]), "test"), Space((1,))
    model = walker([space.symbol(0, 0.1, 0.5)], [np.array([1.0, 2.0])])[0][0, 0]
    found = model.mixed(np.array([[-4.0, 1.0, 0.0], [1.0, 0.0, 0.0]]))
    assert max(np.abs(part[..., 0]).max() for part in (found.c, found.l, found.q)) < 1e-12
    assert 0.0 < found.r[0] < 10 * model.r[0]
    assert np.abs(found.r[1] - model.r[0]) < 1e-12
    with np.errstate(all="ignore"):
        lost = model.with_remainder(np.array([0.0, np.inf])).mixed(np.array([[1.0], [0.0]]))
    assert not np.isfinite(lost.r[0])  # not even with a weight of zero
