"""Torque limits: SciPy's solvers and closed forms as oracles; no torque beyond the limits."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, fields, replace
from functools import cache

import casadi as ca
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import linprog, lsq_linear, minimize, nnls

from concur.codegen import Evaluator
from concur.control import _allocation, read_limits
from concur.control._allocation import INPUTS, allocation
from concur.errors import (
    ConcurError,
    NonFiniteError,
    OutputError,
    ShapeError,
    UnknownNameError,
)

NAMES = ("left", "right", "elbow")
KINDS = ("plain", "drift out", "unlimited", "no residual", "nearly singular")


@dataclass(frozen=True)
class Instant:
    """One problem, its fields in the order of the function's inputs."""

    decoupling: np.ndarray
    residual: np.ndarray
    nominal: np.ndarray
    torque_map: np.ndarray
    torque_offset: np.ndarray
    metric: np.ndarray
    row_scale: np.ndarray
    lower: np.ndarray
    upper: np.ndarray

    @property
    def inputs(self) -> list[np.ndarray]:
        return [getattr(self, field.name) for field in fields(self)]

    @property
    def torque(self) -> np.ndarray:
        return self.torque_map @ self.nominal + self.torque_offset

    def limited(self, share: np.ndarray | float) -> Instant:
        """Limits around the drift that leave a share of the nominal's way, per control."""
        way = np.abs(self.torque - self.torque_offset) * share
        return replace(self, lower=self.torque_offset - way, upper=self.torque_offset + way)


@dataclass(frozen=True)
class Answer:
    sdot: np.ndarray
    u: np.ndarray
    scale: float
    lost: np.ndarray
    active: float
    status: float


@cache
def function(n: int, ns: int) -> ca.Function:
    return allocation(n, ns)


def allocate(instant: Instant) -> Answer:
    n, ns = instant.decoupling.shape
    results = [part.full().ravel() for part in function(n, ns)(*instant.inputs)]
    sdot, u, scale, lost, active, status = results
    return Answer(sdot, u, scale[0], lost, active[0], status[0])


def spread(rng: np.random.Generator, size: int, by: float) -> np.ndarray:
    turn, _ = np.linalg.qr(rng.normal(size=(size, size)))
    return (turn * np.exp(rng.uniform(-by, by, size))) @ turn.T


def instant(rng: np.random.Generator, ns: int, redundancy: int, kind: str = "plain") -> Instant:
    """Draw a problem whose nominal torque is usually out of limits."""
    n = ns - redundancy
    mass = spread(rng, ns, 1.0)
    metric = (mass, mass @ mass, np.diag(rng.uniform(0.5, 2.0, ns)))[rng.integers(3)]
    torque_map = np.linalg.solve(np.eye(ns) + 0.2 * rng.normal(size=(ns, ns)) / ns**0.5, mass)
    decoupling = rng.normal(size=(n, ns))
    if kind == "nearly singular":
        left, values, right = np.linalg.svd(decoupling, full_matrices=False)
        values[-1] = 10.0 ** rng.uniform(-7, -3)
        decoupling = (left * values) @ right
    residual = 10.0 ** rng.uniform(-2, 2) * rng.normal(size=n) * (kind != "no residual")
    root = np.linalg.cholesky(metric).T
    # The W-least solution, and a null motion beside it.
    nominal = np.linalg.solve(root, np.linalg.lstsq(decoupling @ np.linalg.inv(root), residual)[0])
    if redundancy:
        null = np.linalg.svd(decoupling)[2][n:].T
        size = np.abs(nominal).max() if residual.any() else 1.0
        nominal = nominal + 0.3 * size * null @ rng.normal(size=redundancy)
    way = np.abs(torque_map @ nominal)
    way += 0.01 * way.max() + 0.1 * (not way.any())
    half, offset = way * np.exp(rng.uniform(-1.5, 1, ns)), way * rng.normal(size=ns)
    centre = offset + half * rng.uniform(-0.9, 0.9, ns)
    if kind == "drift out":
        out = rng.random(ns) < 0.5
        out[rng.integers(ns)] = True
        away = half * rng.uniform(1.01, 4.0, ns) * rng.choice([-1, 1], ns)
        centre = np.where(out, offset + away, centre)
    lower, upper = centre - half, centre + half
    if kind == "unlimited":
        lower[rng.random(ns) < 0.4] = -np.inf
        upper[rng.random(ns) < 0.4] = np.inf
    row_scale = np.exp(rng.uniform(-1, 1, n))
    drawn = (decoupling, residual, nominal, torque_map, offset, metric, row_scale, lower, upper)
    return Instant(*drawn)


def largest_scale(problem: Instant) -> float | None:
    """Scale by linear programming over all shape accelerations; None if no scale is feasible."""
    n, ns = problem.decoupling.shape
    # In torques, measured from the drift: u = g + x.
    effect = np.linalg.solve(problem.torque_map.T, problem.decoupling.T).T
    size = np.abs(problem.torque - problem.torque_offset).max()
    rows = np.column_stack([effect * size, -problem.residual])
    rows /= np.abs(rows).max(axis=1, keepdims=True)
    low = (problem.lower - problem.torque_offset) / size
    high = (problem.upper - problem.torque_offset) / size
    result = linprog(
        np.r_[np.zeros(ns), -1.0],
        A_eq=rows,
        b_eq=np.zeros(n),
        bounds=[*zip(low, high, strict=True), (0, 1)],
        method="highs",
    )
    return None if result.status == 2 else float(result.x[-1])


def least_rest(problem: Instant) -> tuple[float, float]:
    """Least |D e| over torques within limits, and the one that plain clipping leaves."""
    effect = np.linalg.solve(problem.torque_map.T, problem.decoupling.T).T
    effect = problem.row_scale[:, None] * effect
    width = (problem.upper - problem.lower) / 2
    residual = problem.row_scale * problem.residual
    columns = np.column_stack([effect * width, -residual])
    size = np.linalg.norm(effect * width)
    result = lsq_linear(
        columns / size,
        effect @ problem.torque_offset / size,
        (np.r_[problem.lower / width, 0], np.r_[problem.upper / width, 1]),
        method="bvls",
        tol=1e-15,
        max_iter=500,
    )
    clipped = np.clip(problem.torque_offset, problem.lower, problem.upper)
    return (
        float(np.linalg.norm(result.fun) * size),
        float(np.linalg.norm(effect @ (clipped - problem.torque_offset))),
    )


def check(problem: Instant, answer: Answer) -> None:
    """Properties of every valid answer."""
    assert answer.status == 1
    assert (answer.u >= problem.lower).all()
    assert (answer.u <= problem.upper).all()
    assert 0 <= answer.scale <= 1
    torque = problem.torque_map @ answer.sdot + problem.torque_offset
    size = np.abs(problem.torque_map) @ np.abs(answer.sdot) + np.abs(problem.torque_offset)
    assert_allclose((torque - answer.u) / size, 0, atol=1e-6)
    reached = problem.decoupling @ answer.sdot
    size = np.abs(problem.decoupling) @ np.abs(answer.sdot) + np.abs(problem.residual) + 1e-12
    wanted = answer.scale * problem.residual + answer.lost
    assert_allclose((reached - wanted) / size, 0, atol=1e-9)


@pytest.mark.parametrize("redundancy", [0, 2])
def test_within_limits_nothing_is_changed(redundancy: int) -> None:
    rng = np.random.default_rng(1)
    for _ in range(50):
        problem = instant(rng, 6, redundancy)
        # One control exactly at its limit, one without.
        problem = replace(problem, lower=problem.torque - 1, upper=problem.torque + 1)
        problem.lower[0], problem.upper[1] = -np.inf, np.inf
        problem.upper[2] = function(6 - redundancy, 6)(
            *replace(problem, upper=np.full(6, np.inf)).inputs
        )[1][2]
        answer = allocate(problem)
        assert (answer.active, answer.status, answer.scale) == (0, 1, 1)
        assert_array_equal(answer.sdot, problem.nominal)
        assert_array_equal(answer.lost, 0)
        assert_allclose(answer.u, problem.torque, rtol=1e-13, atol=1e-13)


def test_without_redundancy_the_scale_is_that_of_the_tightest_row() -> None:
    rng = np.random.default_rng(2)
    scales = []
    for _ in range(200):
        problem = instant(rng, int(rng.integers(1, 9)), 0)
        answer = allocate(problem)
        check(problem, answer)
        # The torque on the way, sampled densely: within limits up to the scale, not beyond.
        way = problem.torque - problem.torque_offset
        for part in np.linspace(0, 1, 11):
            u = problem.torque_offset + answer.scale * part * way
            assert (u <= problem.upper + 1e-9 * np.abs(way)).all()
            assert (u >= problem.lower - 1e-9 * np.abs(way)).all()
        if answer.active:
            beyond = problem.torque_offset + (answer.scale + 1e-9) * way
            assert ((beyond > problem.upper) | (beyond < problem.lower)).any()
            scales.append(answer.scale)
        assert_array_equal(answer.lost, 0)
        assert_allclose(answer.sdot, answer.scale * problem.nominal, rtol=1e-14)
    assert len(scales) > 100
    assert min(scales) < 0.3 < 0.7 < max(scales)


@pytest.mark.parametrize("redundancy", [1, 2, 3])
@pytest.mark.parametrize("kind", ["plain", "drift out"])
def test_redundancy_is_used_for_the_largest_scale(redundancy: int, kind: str) -> None:
    rng = np.random.default_rng(3 + redundancy)
    better = kept = 0
    for _ in range(30):
        problem = instant(rng, int(rng.integers(redundancy + 1, 13)), redundancy, kind)
        expected, answer = largest_scale(problem), allocate(problem)
        check(problem, answer)
        if expected is None:
            assert answer.lost.any()
            continue
        kept += 1
        assert_array_equal(answer.lost, 0)
        assert_allclose(answer.scale, expected, rtol=0, atol=1e-6)
        way = problem.torque_map @ problem.nominal
        with np.errstate(divide="ignore"):
            room = np.where(way > 0, problem.upper - problem.torque_offset, 0) / way
            room += np.where(way < 0, problem.lower - problem.torque_offset, 0) / way
        better += answer.scale > room.min() + 1e-3
    assert kept > (20 if kind == "plain" else 0)
    if kind == "plain":
        assert better > 5


def near_nominal(rng: np.random.Generator) -> Instant | None:
    """A problem whose full residual needs a null motion."""
    problem = instant(rng, 6, 2)
    problem = problem.limited(np.where(np.arange(6) == rng.integers(6), 0.9, 2.0))
    return problem if largest_scale(problem) == 1 else None


def test_full_demand_is_met_by_the_least_change_in_the_metric() -> None:
    rng = np.random.default_rng(7)
    problems = [p for p in (near_nominal(rng) for _ in range(40)) if p is not None]
    assert len(problems) > 10
    for problem in problems:
        answer = allocate(problem)
        check(problem, answer)
        assert answer.active == 1
        assert_allclose(answer.scale, 1, rtol=0, atol=1e-9)
        root = np.linalg.cholesky(problem.metric).T
        change = answer.sdot - problem.nominal
        size = np.linalg.norm(root @ problem.nominal)
        null = np.linalg.svd(problem.decoupling)[2][4:].T * size
        G, span = problem.torque_map, problem.upper - problem.lower
        result = minimize(
            lambda z, c: 0.5 * np.sum((c @ z) ** 2),
            np.zeros(2),
            args=(root @ null / size,),
            method="SLSQP",
            constraints={
                "type": "ineq",
                "fun": lambda z, p, a, s: (
                    np.r_[p.upper - p.torque - a @ z, a @ z + p.torque - p.lower] / np.r_[s, s]
                ),
                "args": (problem, G @ null, span),
            },
            options={"ftol": 1e-15, "maxiter": 200},
        )
        assert_allclose(change, null @ result.x, rtol=0, atol=1e-5 * np.abs(problem.nominal).max())
        # W (sdot - sdot*) is a combination of Jg's rows and of the rows at their limits.
        rows = [problem.decoupling, -problem.decoupling]
        rows.append(-G[answer.u > problem.upper - 1e-7 * span])
        rows.append(G[answer.u < problem.lower + 1e-7 * span])
        gradient = problem.metric @ change
        _, residual = nnls(np.vstack(rows).T, gradient)
        assert residual < 1e-6 * np.linalg.norm(gradient)


@pytest.mark.parametrize("redundancy", [0, 2])
def test_direction_is_lost_only_as_far_as_it_must(redundancy: int) -> None:
    rng = np.random.default_rng(8)
    excess = []
    for _ in range(60):
        problem = instant(rng, int(rng.integers(redundancy + 1, 13)), redundancy, "drift out")
        answer, expected = allocate(problem), largest_scale(problem)
        check(problem, answer)
        assert answer.active == 1
        assert answer.lost.any() == (expected is None)
        if expected is None:
            least, clipped = least_rest(problem)
            rest = np.linalg.norm(problem.row_scale * answer.lost)
            assert rest >= least - 1e-9 * clipped
            excess.append((rest - least) / clipped)
    assert len(excess) > 15
    assert max(excess) < 1e-6


def test_lost_direction_still_gets_the_largest_scale_with_that_rest() -> None:
    rng = np.random.default_rng(9)
    scales = []
    for _ in range(60):
        problem = instant(rng, int(rng.integers(2, 9)), 0, "drift out")
        answer = allocate(problem)
        if not answer.lost.any():
            continue
        scales.append(answer.scale)
        way = problem.torque_map @ problem.nominal
        base = answer.u - answer.scale * way
        beyond = base + (answer.scale + 1e-7) * way
        free = (beyond < problem.upper).all() and (beyond > problem.lower).all()
        assert answer.scale == 1 or not free, answer.scale
    assert len(scales) > 30
    assert max(scales) > 0.1


@pytest.mark.extended
def test_nothing_ever_beyond_the_limits() -> None:
    rng = np.random.default_rng(10)
    active = 0
    for i in range(2000):
        redundancy = i % 4
        ns = (redundancy + 1, redundancy + 4, 14)[int(rng.integers(3))]
        problem = instant(rng, ns, redundancy, KINDS[i % 5])
        answer = allocate(problem)
        check(problem, answer)
        active += answer.active
    assert active > 1000


@pytest.mark.parametrize("redundancy", [0, 1])
def test_units_do_not_matter(redundancy: int) -> None:
    rng = np.random.default_rng(11)
    for kind in ("plain", "drift out"):
        problem = instant(rng, 5, redundancy, kind)
        torques = {name: getattr(problem, name) * 1e3 for name in ("lower", "upper")}
        torques |= {name: getattr(problem, name) * 1e3 for name in ("torque_map", "torque_offset")}
        units = np.exp(rng.normal(size=5 - redundancy))
        other = replace(
            problem,
            decoupling=units[:, None] * problem.decoupling,
            residual=units * problem.residual,
            row_scale=problem.row_scale / units,
            **torques,
        )
        one, two = allocate(problem), allocate(other)
        assert one.active == two.active == 1
        assert_allclose(two.scale, one.scale, rtol=0, atol=1e-7)
        assert_allclose(two.u, 1e3 * one.u, rtol=1e-5, atol=1e-3 * np.abs(one.u).max())
        assert_allclose(two.lost, units * one.lost, rtol=1e-5, atol=1e-6 * np.abs(one.lost).max())


@pytest.mark.parametrize("redundancy", [0, 2])
@pytest.mark.parametrize("kind", ["plain", "drift out"])
@pytest.mark.parametrize("name", INPUTS)
def test_a_number_that_is_none_gives_status_zero_and_a_safe_torque(
    redundancy: int, kind: str, name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    problem = instant(np.random.default_rng(12), 6, redundancy, kind)
    before = allocate(problem)
    spoilt = getattr(problem, name).copy()
    spoilt.flat[-1] = np.nan
    answer = allocate(replace(problem, **{name: spoilt}))
    assert (answer.status, answer.active) == (0, 1)
    assert all(np.isfinite(getattr(answer, field.name)).all() for field in fields(answer))
    safe = np.zeros(6) if name == "torque_offset" else problem.torque_offset
    kept = slice(0, 5) if name in ("lower", "upper") else slice(0, 6)
    clipped = np.clip(safe, problem.lower, problem.upper)
    assert_array_equal(answer.u[kept], clipped[kept])
    after = allocate(problem)  # and nothing of it remains
    assert_array_equal(after.u, before.u)
    assert after.status == 1
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("redundancy", [0, 2])
@pytest.mark.parametrize(
    "change",
    [
        {"metric": 0.0},
        {"metric": -1.0},
        {"decoupling": 0.0},
        {"row_scale": 0.0},
        {"torque_map": 0.0},
        {"torque_map": 1e250},
        {"torque_map": 1e-250},
        {"residual": 1e200, "nominal": 1e200},
        {"lower": 1e-200, "upper": 1e-200},
    ],
    ids=str,
)
def test_degenerate_data_never_raise_print_or_break_a_limit(
    redundancy: int, change: dict[str, float], capfd: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(13)
    for kind in ("plain", "drift out"):
        problem = instant(rng, 6, redundancy, kind)
        problem = replace(problem, **{k: by * getattr(problem, k) for k, by in change.items()})
        answer = allocate(problem)
        assert all(np.isfinite(getattr(answer, field.name)).all() for field in fields(answer))
        assert (answer.u >= problem.lower).all()
        assert (answer.u <= problem.upper).all()
    assert capfd.readouterr() == ("", "")


def test_limits_that_cross_give_status_zero() -> None:
    problem = instant(np.random.default_rng(14), 3, 0)
    answer = allocate(replace(problem, lower=problem.upper, upper=problem.lower))
    assert answer.status == 0
    assert np.isfinite(answer.u).all()


@pytest.mark.parametrize("redundancy", [0, 2])
def test_a_solver_that_gives_up_leaves_a_closed_form_within_limits(
    redundancy: int, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    options = {"error_on_fail": False, "daqp": {"iter_limit": 1}}
    monkeypatch.setattr(_allocation, "_OPTIONS", options)
    lame = allocation(6 - redundancy, 6)
    rng = np.random.default_rng(15)
    failed = 0
    for i in range(40):
        problem = instant(rng, 6, redundancy, ("plain", "drift out")[i % 2])
        good = allocate(problem)
        sdot, u, scale, lost, _, status = (x.full().ravel() for x in lame(*problem.inputs))
        assert (u >= problem.lower).all()
        assert (u <= problem.upper).all()
        if status[0] or not good.active:
            continue
        failed += 1
        if i % 2 == 0:  # the drift is within limits: the nominal, scaled
            assert_allclose(sdot, scale[0] * problem.nominal, rtol=1e-12)
            assert_allclose(u, problem.torque_offset + problem.torque_map @ sdot, rtol=1e-9)
            assert 0 <= scale[0] <= good.scale + 1e-6
            assert_array_equal(lost, 0)
    assert failed > 5
    assert capfd.readouterr() == ("", "")


def test_in_a_larger_graph_behind_buffers_and_pickled() -> None:
    # As in a law: limits are constants, the instant comes from other functions.
    rng = np.random.default_rng(16)
    problem = instant(rng, 5, 1, "unlimited")
    symbols = [
        ca.MX.sym(f"x{i}", *np.atleast_2d(x.T).T.shape) for i, x in enumerate(problem.inputs)
    ]
    doubled = [2 * (symbol / 2) for symbol in symbols[:-2]]
    results = function(4, 5)(*doubled, problem.lower, problem.upper)
    graph = ca.Function("graph", symbols[:-2], list(results))
    shapes: list[tuple[int, ...]] = [(5,), (5,), (), (4,), (), ()]
    evaluator = Evaluator(graph, shapes, "graph")
    expected = allocate(problem)
    for built in (evaluator, pickle.loads(pickle.dumps(evaluator))):
        u = built(*problem.inputs[:-2])[1]
        assert_array_equal(u, expected.u)
        assert built.outputs[5][0, 0] == 1


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (2, [[-2, 2]] * 3),
        (None, [[-np.inf, np.inf]] * 3),
        (np.inf, [[-np.inf, np.inf]] * 3),
        ([1, 2.5, None], [[-1, 1], [-2.5, 2.5], [-np.inf, np.inf]]),
        ([(-1, 2), 3, (None, 4)], [[-1, 2], [-3, 3], [-np.inf, 4]]),
        (np.array([[-1.0, 1], [0, 2], [-3, -1]]), [[-1, 1], [0, 2], [-3, -1]]),
        ({"elbow": 5, "left": [-1, np.inf]}, [[-1, np.inf], [-np.inf, np.inf], [-5, 5]]),
        ({}, [[-np.inf, np.inf]] * 3),
    ],
    ids=str,
)
def test_limits_are_read(value: object, expected: list[list[float]]) -> None:
    limits = read_limits("servo, `limits`", value, NAMES)
    assert_array_equal(limits, expected)
    assert limits.shape == (3, 2)
    assert not limits.flags.writeable


@pytest.mark.parametrize(
    ("value", "kind", "control"),
    [
        (0, OutputError, "left"),
        (-1.0, OutputError, "left"),
        ([1, (2, 2), 1], OutputError, "right"),
        ([1, 1, (3, -3)], OutputError, "elbow"),
        ([1, 1, (np.inf, np.inf)], OutputError, "elbow"),
        (np.nan, NonFiniteError, "left"),
        ([1, (np.nan, 1), 1], NonFiniteError, "right"),
        ([1, 2], ShapeError, ""),
        ([1, 2, (1, 2, 3)], ShapeError, "elbow"),
        ([1, 2, ([1], 2)], ShapeError, "elbow"),
        ("strong", ShapeError, "left"),
        ([1, "2", 3], ShapeError, "right"),
        ({"wrist": 1}, UnknownNameError, ""),
    ],
    ids=str,
)
def test_limits_that_make_no_sense_are_refused(
    value: object, kind: type[ConcurError], control: str
) -> None:
    place = "servo, `limits`"
    with pytest.raises(kind) as caught:
        read_limits(place, value, NAMES)
    assert caught.value.where == (f"{place}, control `{control}`" if control else place)
