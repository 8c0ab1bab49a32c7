"""Quadratic programs: conditions of an optimum, other solvers, and durations that do not vanish."""

from __future__ import annotations

import dataclasses

import casadi as ca
import numpy as np
import pytest

from concur.planning._direct import direct_guess
from concur.planning._program import ELASTIC, EXCESS, MISS, Search
from concur.planning._quadratic import BLOCK, least
from tests.planning.test_direct import formed


@pytest.mark.parametrize("rows", [0, 1, BLOCK - 1, BLOCK, BLOCK + 1])
@pytest.mark.parametrize("seed", [0, 1])
def test_programs_of_any_number_of_rows_end_at_their_optimum(rows, seed) -> None:
    """Stationary, within rows and bounds, with prices of the right sign on active ones alone."""
    rng, size = np.random.default_rng(seed), 12
    root = rng.normal(size=(size, size))
    square, slope = root @ root.T + np.eye(size), 20.0 * rng.normal(size=size)
    table, high = rng.normal(size=(rows, size)), rng.uniform(0.1, 1.0, rows)
    low, bounds = np.full(rows, -np.inf), (np.full(size, -2.0), np.full(size, 2.0))
    x, prices = least(square, slope, table, (low, high), bounds)
    assert prices.shape == (rows,)
    assert (table @ x <= high + 1e-8).all()
    assert (prices >= -1e-9).all()
    assert np.abs(prices * (high - table @ x)).max(initial=0.0) < 1e-6
    left = square @ x + slope + table.T @ prices
    inside = np.abs(x) < 2.0 - 1e-9
    assert np.abs(left[inside]).max(initial=0.0) < 1e-7
    assert (left[~inside] * x[~inside] <= 1e-7).all()


@pytest.fixture(scope="module")
def search():
    """A satellite that turns by moving its joints, from a straight line, where no step turns it."""
    from tests.benchmarks._plans import CASES

    problem = next(CASES["free-flyer: base turned by 10 degrees, joints back"][1](
        np.random.default_rng(11)
    ))  # fmt: skip
    model, outputs, q0, goals, limits, _ = problem
    form, start, wanted = formed(model, outputs, q0, goals, limits)
    shares = np.full(len(form.facts), 0.999), np.ones(3)
    return Search(form, start, wanted, None, *shares, np.zeros(form.within.size))


def program(search: Search):
    unknowns = direct_guess(search.form, search.start, search.wanted, None)
    path, time = search.path(unknowns), float(unknowns[-1])
    return unknowns, search._program(unknowns, path, time, (EXCESS * time, MISS * time))


@pytest.mark.parametrize("region", [0.05, 0.5])
def test_steps_are_as_good_as_those_of_another_solver(search, region) -> None:
    """An interior point of the same program foresees no lower merit, and rows hold."""
    unknowns, made = program(search)
    step = made.solve(region, unknowns)
    table, low, high = made._stacked
    size, variables = made.size, made.slope.size
    first, last = np.full(variables, -region), np.full(variables, region)
    first[size:], last[size:] = 0.0, np.inf
    first[size - 1], last[size - 1] = (1.0 + 2.0 * region) ** -2 - 1.0, (1.0 - region) ** -2 - 1.0
    ns = search.form.model.ns
    first[size - 1 - ns : size - 1] = last[size - 1 - ns : size - 1] = 0.0  # it ends at rest
    shapes = {
        "h": ca.Sparsity.dense(variables, variables),
        "a": ca.Sparsity.dense(*table.shape),
    }
    other = ca.conic("other", "proxqp", shapes, {"proxqp": {"eps_abs": 1e-9, "max_iter": 100000}})
    found = other(
        h=made.square, g=made.slope, a=table, lba=low, uba=high, lbx=first, ubx=last
    )["x"].full()[:, 0]  # fmt: skip

    def value(x):
        return 0.5 * x @ made.square @ x + made.slope @ x

    assert value(step) <= value(found) + 1e-6 * abs(value(found))
    rows = table @ step
    assert max((low - rows).max(), (rows - high).max()) < 1e-6


def test_prices_of_misses_rise_by_a_hundredth(search) -> None:
    _, made = program(search)
    elastic = np.arange(made.size, made.slope.size)
    np.testing.assert_allclose(made.square[elastic, elastic], ELASTIC * made.slope[elastic])
    assert ELASTIC == 0.01


def test_durations_do_not_vanish_beside_a_goal(search) -> None:
    """No step along a straight line turns the base; the price of the miss does not follow T."""
    ns = search.form.model.ns
    table = np.tile(search.start.r, (search.form.splines.free, 1))
    table[-1] = 0.0
    unknowns = np.array([*table.ravel(), 2.0])
    assert unknowns.size == search.form.splines.free * ns + 1
    found = search.solve(unknowns)
    assert found.kept or found.time > 0.4  # 0.16 s if it does
    given = dataclasses.replace(search, duration=4.0)
    assert given.solve(np.array([*unknowns[:-1], 4.0])).time == pytest.approx(4.0)
