"""Rollouts in C: against a loop in Python, world by world, and their bits in any arrangement."""

from __future__ import annotations

import os
import pickle
from functools import cache
from typing import Any

import casadi as ca
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from concur.codegen import (
    LONGEST_DELAY,
    Batch,
    Demand,
    Rolled,
    Rollout,
    _compiler,
    _lanes_c,
    _sources,
    quadratic_program,
)
from concur.codegen._random import normal, philox, uniform
from concur.codegen._rollout_data import KINDS, LARGEST_STATE
from concur.errors import ConcurError
from concur.simulation import Latency

TICKS, STEPS, H = 60, 2, 0.05
WORLDS = np.array([3, 5, 2**40 + 1, 7, 11, 0, 12, 9, 1, 4, 21, 8, 2])


@pytest.fixture(params=["compiled", "interpreted"])
def way(request: pytest.FixtureRequest) -> str:
    """Loop in C, or in Python."""
    if request.param == "compiled":
        request.getfixturevalue("compiler")
    return str(request.param)


def graphs() -> tuple[ca.Function, ca.Function]:
    """A pendulum under a sampled law that counts its ticks and has noise on its measurement."""
    x, p, r, n = (ca.SX.sym(name, size) for name, size in zip("xprn", (3, 2, 1, 3), strict=True))
    u = ca.SX.sym("u", 2)
    error = r - x[0] - 0.01 * n[1]
    tick = ca.Function(
        "tick",
        [x, p, r, n],
        [
            ca.vertcat(x[0], x[1], x[2] + 1),
            ca.vertcat(p[0] * error - x[1], 0.1 * n[2]),
            ca.vertcat(x[0] > 40.0, error, ca.log(p[1]), n),
        ],
    )
    step = ca.Function(
        "step",
        [x, p, u],
        [
            x + H * ca.vertcat(x[1], p[1] * ca.sin(x[0]) + u[0] + u[1], 0),
            ca.vertcat(ca.fabs(x[1]), ca.sqrt(50.0 - x[0])),
        ],
    )
    return tick, step


@cache
def rollout(way: str = "", threads: int = 1) -> Rollout:
    """Made once: by the fixture `compiler`, or interpreted."""
    made = Rollout(*graphs(), STEPS, 3, threads, interpreted=way == "interpreted")
    assert made.compiled == (way != "interpreted")
    return made


def problem(count: int = len(WORLDS)) -> tuple[list[np.ndarray], dict[str, Any]]:
    rng = np.random.default_rng(1)
    x0 = np.append(rng.uniform(-1.0, 1.0, (count, 2)), np.zeros((count, 1)), axis=1)
    arrays = [x0, rng.uniform(1.0, 2.0, (count, 2)), rng.normal(size=(count, TICKS, 1))]
    delay, jitter = rng.uniform(0.0, 4.0, count), rng.uniform(0.0, 3.0, count)
    delay[:4], jitter[:5] = [0.0, 2.0, 2.5, LONGEST_DELAY], 0.0
    named = {"worlds": WORLDS[:count], "delay": delay, "jitter": jitter, "seed": 77}
    return arrays, {"ticks": TICKS, **named}


def every_demand(first: int = 5, last: int = 40) -> list[Demand]:
    return [Demand(i, kind, first, last, 0.2) for i in range(8) for kind in KINDS]


def fit(arrays: list[np.ndarray], named: dict[str, Any], rows: Any) -> tuple[list, dict]:
    """The problem of some of the worlds."""
    own = ("worlds", "delay", "jitter")
    return [a[rows] for a in arrays], {k: v[rows] if k in own else v for k, v in named.items()}


def rolled(loop: Rollout, x0: Any, p: Any, reference: Any, **named: Any) -> Rolled:
    """Call a rollout: what is random goes into the batch."""
    own = {k: named.pop(k) for k in ("worlds", "seed", "delay", "jitter") if k in named}
    return loop(Batch(x0, p, **own), reference, **named)


def assert_same_bits(one: Rolled, two: Rolled) -> None:
    for name in ("values", "stopped", "status"):
        assert_array_equal(getattr(one, name), getattr(two, name))


def in_python(arrays: list[np.ndarray], named: dict[str, Any], world: int) -> tuple[Any, Any]:
    """States before the ticks and signals of all evaluations of one world, in plain Python."""
    (x, v, count), (gain, weight) = arrays[0][world], arrays[1][world]
    key, commands = named["worlds"][world : world + 1], []
    latency = Latency(float(named["delay"][world]), float(named["jitter"][world]))
    came = latency.arrivals(np.arange(TICKS), world=int(key[0]), seed=named["seed"])
    states, ticks, steps = [], [], []
    for k in range(TICKS):
        n = normal(named["seed"], key, k, 3)[0]
        error = arrays[2][world, k, 0] - x - 0.01 * n[1]
        states.append((x, v, count))
        ticks.append((float(x > 40.0), error, np.log(weight), *n))
        commands.append(np.array([gain * error - v, 0.1 * n[2]]))
        # Each command is in force from its arrival to the next one; the first from the start.
        shares = np.diff([k, *np.clip(came[1:], k, k + 1), k + 1])[: k + 1]
        u = shares @ commands
        count += 1.0
        for _ in range(STEPS):
            steps.append((abs(v), np.sqrt(50.0 - x)))
            x, v = x + H * v, v + H * (weight * np.sin(x) + u[0] + u[1])
    return np.array(states), (np.array(ticks), np.array(steps).reshape(TICKS, STEPS, 2))


def reduced(demand: Demand, signal: np.ndarray) -> float:
    """Value of a demand on a signal, shape (ticks, evaluations)."""
    window = signal[demand.first : demand.last + 1]
    above = demand.first + np.argwhere(window > demand.threshold)[:, 0]
    below = demand.first + np.argwhere(window < demand.threshold)[:, 0]
    return {
        "max": lambda: window.max(),
        "min": lambda: window.min(),
        "last": lambda: window[-1, -1],
        "last_above": lambda: above.max(initial=demand.first - 1),
        "first_above": lambda: above.min(initial=demand.last + 1),
        "count_above": lambda: len(above),
        "first_below": lambda: below.min(initial=demand.last + 1),
    }[demand.kind]()


def test_equals_a_loop_in_python(way: str) -> None:
    arrays, named = problem()
    demands = [*every_demand(), *every_demand(0, 0), *every_demand(TICKS - 1, TICKS - 1)]
    found = rolled(rollout(way), *arrays, **named, demands=demands, record=1)
    assert (found.status == 0).all()
    assert (found.stopped == TICKS).all()
    for world in (0, 1, 2, 3, 5, 8, 12):
        states, (ticks, steps) = in_python(arrays, named, world)
        assert_allclose(found.record.x[world], states, rtol=0.0, atol=1e-11)
        rows = found.record.y[world]
        assert_allclose(rows[:, :6], ticks, rtol=0.0, atol=1e-11)
        assert_allclose(rows[:, 6:], steps[:, 0], rtol=0.0, atol=1e-11)
        signals = [*ticks.T[:, :, None], *np.moveaxis(steps, 2, 0)]
        wanted = [reduced(d, signals[d.signal]) for d in demands]
        assert_allclose(found.values[world], wanted, rtol=0.0, atol=1e-11)


def test_a_command_of_several_periods_ago(way: str) -> None:
    """Without jitter, or with all of the delay in a period, two commands share a period."""
    x, p, r, n, u = (ca.SX.sym(name, k) for name, k in zip("xprnu", (1, 0, 1, 0, 1), strict=True))
    tick = ca.Function("tick", [x, p, r, n], [x, r, ca.SX(1, 1)])
    step = ca.Function("step", [x, p, u], [u, ca.SX(0, 1)])
    loop = Rollout(tick, step, 1, interpreted=way == "interpreted")
    cases = [(0.0, 0.0), (0.3, 0.0), (1.0, 0.0), (3.0, 0.0), (4.7, 0.0), (0.0, 1.0), (0.4, 0.6)]
    cases += [(LONGEST_DELAY - 0.25, 0.0), (0.4, 0.8), (2.0, 1.5)]
    delay, jitter = np.transpose(cases)
    sent = np.random.default_rng(7).normal(size=100)
    named = {"ticks": 100, "worlds": np.arange(10), "seed": 3, "delay": delay, "jitter": jitter}
    came = rolled(
        loop, np.zeros((10, 1)), np.empty((10, 0)), sent[:, None], **named, record=1
    ).record.x
    for world in range(10):
        drawn = uniform(3, np.full(99, world), np.arange(99), 0)[0]
        whole, part = np.divmod(delay[world] + jitter[world] * drawn, 1.0)
        new = np.maximum(np.arange(99) - whole.astype(int), 0)
        expected = part * sent[np.maximum(new - 1, 0)] + (1.0 - part) * sent[new]
        exact = (came[world, 1:, 0] == expected).all()
        within = np.allclose(came[world, 1:, 0], expected, rtol=0.0, atol=1e-14)
        assert within == (world < 8)
        assert way == "compiled" or exact == (world < 8)


def test_compiled_equals_interpreted_and_strides(compiler: None) -> None:
    arrays, named = problem()
    arrays[2] = arrays[2][0]  # one reference for all worlds
    whole = rolled(rollout(), *arrays, **named, record=1)
    other = rolled(rollout("interpreted"), *arrays, **named, record=7)
    for name in ("x", "u", "y"):
        one, two = getattr(whole.record, name), getattr(other.record, name)
        assert_allclose(one[:, ::7], two, rtol=0.0, atol=1e-12)
    assert_array_equal(whole.values, np.empty((len(WORLDS), 0)))


def test_same_bits_in_any_arrangement(compiler: None) -> None:
    arrays, named = problem()
    named["demands"] = every_demand()
    whole, count = rolled(rollout(), *arrays, **named), len(WORLDS)
    assert_same_bits(rolled(rollout(threads=2), *arrays, **named), whole)
    order = np.random.default_rng(3).permutation(count)
    some, few = fit(arrays, named, order)
    permuted = rolled(rollout(), *some, **few)
    assert_array_equal(permuted.values, whole.values[order])
    for size in (1, 3, 8, 9):
        blocks = []
        for start in range(0, count, size):
            some, few = fit(arrays, named, slice(start, start + size))
            blocks.append(rolled(rollout(), *some, **few).values)
        assert_array_equal(np.concatenate(blocks), whole.values)
    named["seed"] = 78
    assert (
        rolled(rollout(), *arrays, **named).values[:, len(KINDS) * 3]
        != whole.values[:, len(KINDS) * 3]
    ).all()


def runaway() -> tuple[ca.Function, ca.Function]:
    """State (x, tick): numbers of the world say at which tick something happens, and its size."""
    x, p, r, n = (ca.SX.sym(name, size) for name, size in zip("xprn", (2, 5, 0, 0), strict=True))
    u = ca.SX.sym("u", 1)
    now = x[1]
    tick = ca.Function(
        "tick",
        [x, p, r, n],
        [
            ca.vertcat(x[0] + ca.if_else(now == p[3], ca.log(-1 - x[0] ** 2), 0), now + 1),
            7 * (now == p[0]),
            ca.vertcat(3 * (now == p[0]), now, ca.if_else(now == p[1], p[3], 0)),
        ],
    )
    step = ca.Function(
        "step", [x, p, u], [ca.vertcat(ca.if_else(now == p[2] + 1, p[4], x[0] + u), now), now]
    )
    return tick, step


@cache
def runaways(way: str) -> Rollout:
    made = Rollout(*runaway(), 1)
    assert made.compiled == (way == "compiled")
    return made


def test_a_world_stops_at_its_tick(way: str) -> None:
    never = -1.0
    # Ticks of a status, a signal that is the fourth number, a state of 1e6, a state that is NaN.
    p = np.array(
        [
            [never, never, never, never],
            [4.0, never, never, never],
            [never, 5.0, never, np.inf],
            [never, 5.0, never, np.finfo(float).max],
            [never, 5.0, never, np.nan],
            [never, 5.0, never, -np.inf],
            [never, never, 6.0, never],
            [never, never, never, 7.0],
            [0.0, never, never, never],
            [9.0, never, never, never],
        ]
    )
    p = np.append(p, np.full((10, 1), LARGEST_STATE), axis=1)
    demands = [Demand(1, "max", 0, 9), Demand(1, "count_above", 0, 9, -1.0), Demand(3, "max", 0, 9)]
    watch, stops = [*demands, Demand(2, "min", 0, 0)], [10, 4, 5, 10, 5, 5, 6, 7, 0, 9]
    codes = [0, 3, -1, 0, -1, -1, -1, -1, 3, 3]
    x0 = np.zeros((10, 2))
    shared = {"ticks": 10, "worlds": np.arange(10), "record": 1}
    found = rolled(runaways(way), x0, p, np.empty((10, 0)), demands=watch, **shared)
    assert_array_equal(found.stopped, stops)
    assert_array_equal(found.status, codes)
    # The tick's signal is reduced until the tick before the stop; with a step that diverges also at
    # that tick. The step's signal counts one more, as the tick has been counted.
    last = np.array(stops) - 1.0
    ticks = np.where(np.arange(10) == 6, last + 1.0, last)
    assert_array_equal(found.values[:, 0], np.where(ticks >= 0, ticks, -np.inf))
    assert_array_equal(found.values[:, 1], ticks + 1.0)
    assert_array_equal(found.values[:, 2], np.where(last >= 0, last + 1.0, -np.inf))
    for world, stop in enumerate(stops):
        assert np.isnan(found.record.x[world, stop + 1 :]).all()
        assert np.isfinite(found.record.x[world, : stop + 1]).all()
        assert found.record.y[world, : stop + 1, 1].tolist() == list(range(min(stop + 1, 10)))
    # The command of the tick with a status is not applied; unwatched signals stop no world.
    assert (found.record.x[:, :, 0] == 0.0)[np.isfinite(found.record.x[:, :, 0])].all()
    free = rolled(runaways(way), x0, p, np.empty((10, 0)), demands=demands, **shared)
    assert_array_equal(free.stopped, [10, 4, 10, 10, 10, 10, 6, 7, 0, 9])
    p[:, 4] = np.nextafter(LARGEST_STATE, 0.0)
    below = rolled(runaways(way), x0, p, np.empty((10, 0)), **shared)
    assert below.stopped[6] == 10
    p[:, 4] = LARGEST_STATE
    for bad in (np.nan, np.inf, -LARGEST_STATE):
        x0[3, 0] = bad
        start = rolled(runaways(way), x0, p, np.empty((10, 0)), demands=demands, **shared)
        assert (start.stopped[3], start.status[3], start.values[3, 1]) == (0, -1, 0.0)
        assert_array_equal(np.delete(start.values, 3, 0), np.delete(free.values, 3, 0))


def test_a_status_below_one_and_lost_commands_stop(way: str) -> None:
    x, p, r, n, u = (
        ca.SX.sym(name, size) for name, size in zip("xprnu", (1, 2, 0, 0, 1), strict=True)
    )
    tick = ca.Function("tick", [x, p, r, n], [x, p[0], p[1]])
    # In the plant the NaN vanishes.
    step = ca.Function("step", [x, p, u], [x + ca.fmin(ca.fmax(u, -1.0), 1.0), x])
    loop = Rollout(tick, step, 1, interpreted=way == "interpreted")
    cases = [
        (1e300, 0.0, 0),
        (np.nan, 0.0, -1),
        (np.inf, 0.0, -1),
        (0.0, 0.5, -1),
        (0.0, 1.0, 1),
        (0.0, -2.0, -2),
        (0.0, np.nan, -1),
        (0.0, 1e6 - 1, 999999),
        (0.0, 1e6, -1),
    ]
    *numbers, codes = zip(*cases, strict=True)
    found = rolled(
        loop,
        *(np.zeros((9, 1)), np.transpose(numbers), np.empty((3, 0))),
        ticks=3,
        worlds=np.arange(9),
        demands=[Demand(1, "count_above", 0, 2, -1.0)],
    )
    assert_array_equal(found.status, codes)
    assert_array_equal(found.stopped, [3] + [0] * 8)
    assert_array_equal(found.values[:, 0], found.stopped)
    empty = rolled(loop, np.empty((0, 1)), np.empty((0, 2)), np.empty((3, 0)), ticks=3, worlds=[])
    assert empty.values.shape == (0, 0)


def limited(solver: bool) -> ca.Function:
    """The tick of `graphs` with limited commands: by a quadratic program, or by fmin and fmax."""
    kind = ca.MX if solver else ca.SX
    inputs = [kind.sym(name, size) for name, size in zip("xprn", (3, 2, 1, 3), strict=True)]
    x, u, y = graphs()[0].call(inputs)
    if solver:
        # With weights on the diagonal the optimum is the clipped command.
        h = ca.DM([[2.0, 0.0], [0.0, 3.0]])
        u += quadratic_program(2, 2)(h, np.eye(2), -0.5 - u, 0.5 - u, np.zeros(2))[0]
    else:
        u = ca.fmin(ca.fmax(u, -0.5), 0.5)
    return ca.Function("tick", inputs, [x, u, y])


@pytest.mark.extended
def test_a_tick_with_a_quadratic_program(compiler: None) -> None:
    arrays, named = problem()
    named |= {"demands": every_demand(), "record": 3}
    step = graphs()[1]
    loops = [Rollout(limited(True), step, STEPS, 3, threads=threads) for threads in (1, 2)]
    clipped = rolled(Rollout(limited(False), step, STEPS, 3), *arrays, **named)
    assert (np.abs(clipped.record.u) == 0.5).mean() > 0.2
    interpreted = Rollout(limited(True), step, STEPS, 3, interpreted=True)
    for loop in (*loops, interpreted):
        found = rolled(loop, *arrays, **named)
        assert_allclose(found.record.u, clipped.record.u, rtol=0.0, atol=1e-10)
        assert_allclose(found.record.x, clipped.record.x, rtol=0.0, atol=1e-10)
    whole = rolled(loops[0], *arrays, **named)
    for _ in range(2):
        assert_same_bits(rolled(loops[1], *arrays, **named), whole)
    order = np.random.default_rng(4).permutation(len(WORLDS))
    some, few = fit(arrays, named, order)
    assert_array_equal(rolled(loops[0], *some, **few).values, whole.values[order])
    some, few = fit(arrays, named, slice(3, 4))
    assert_array_equal(rolled(loops[1], *some, **few).values, whole.values[3:4])
    x, p, u = (ca.MX.sym(name, size) for name, size in zip("xpu", (3, 2, 2), strict=True))
    solving = ca.Function("step", [x, p, u], [x, limited(True)(x, p, 0.0, np.zeros(3))[1]])
    with pytest.raises(ConcurError, match="expected a function that can be expanded to SX"):
        Rollout(graphs()[0], solving, 1, 3)


@pytest.mark.extended
def test_long_graphs_in_parts(compiler: None, monkeypatch: pytest.MonkeyPatch) -> None:
    arrays, named = problem()
    whole = rolled(rollout(), *arrays, **named, demands=every_demand())
    monkeypatch.setattr(_lanes_c, "WHOLE", 10)
    monkeypatch.setattr(_sources, "PART", 8)
    parts = Rollout(*graphs(), STEPS, 3)
    assert parts.compiled
    assert parts.key != rollout().key
    found = rolled(parts, *arrays, **named, demands=every_demand())
    assert_allclose(found.values, whole.values, rtol=0.0, atol=1e-12)


def test_random_words_are_those_of_the_authors() -> None:
    # Vectors of Random123's file `kat_vectors` for philox4x32 with ten rounds.
    known = {
        (0, 0, 0, 0): "6627e8d5 e169c58d bc57ac4c 9b00dbd8",
        (2**64 - 1, 2**64 - 1, 2**32 - 1, 2**32 - 1): "408f276d 41c83b0e a20bc7c6 6d5451fd",
        (0x299F31D0A4093822, 0x85A308D3243F6A88, 0x13198A2E, 0x03707344): (
            "d16cfe09 94fdcceb 5001e420 24126ea1"
        ),
    }
    for (seed, world, tick, stream), words in known.items():
        found = philox(seed, np.array([world], dtype=np.uint64), tick, stream)[:, 0]
        assert " ".join(f"{n:08x}" for n in found.tolist()) == words


def test_noise_is_normal_and_delays_are_uniform() -> None:
    worlds = np.arange(4000)
    numbers = np.array([normal(5, worlds, k, 4) for k in range(10)])
    assert_allclose(numbers.mean((0, 1)), 0.0, atol=0.02)
    assert_allclose(np.cov(numbers.reshape(-1, 4).T), np.eye(4), atol=0.03)
    assert_allclose(np.mean(numbers**4), 3.0, atol=0.1)
    assert abs(np.corrcoef(numbers[0, :, 0], numbers[1, :, 0])[0, 1]) < 0.06
    drawn = np.array([uniform(5, worlds, k, 0)[0] for k in range(10)])
    assert (drawn >= 0.0).all()
    assert (drawn < 1.0).all()
    counts = np.histogram(drawn, 20, (0.0, 1.0))[0]
    assert (np.abs(counts - 2000) < 5 * np.sqrt(2000)).all()


def test_lengths_that_do_not_fit_are_refused(way: str) -> None:
    arrays, named = problem()
    loop, count = rollout(way), len(WORLDS)
    for i, shape in [(0, (count, 2)), (0, (count - 1, 3)), (1, (2,)), (2, (count, TICKS - 1, 1))]:
        bad = [*arrays]
        bad[i] = np.zeros(shape)
        with pytest.raises(ConcurError, match="expected shape"):
            rolled(loop, *bad, **named)
    ok = Demand(0, "max", 0, TICKS - 1)
    wrong = [
        {"ticks": TICKS + 1},
        {"ticks": 0},
        {"ticks": 60.0},
        {"worlds": WORLDS[1:]},
        {"worlds": -WORLDS},
        {"worlds": WORLDS * 1.0},
        {"seed": -1},
        {"seed": 2**63},
        {"delay": np.ones(3)},
        {"delay": np.nan},
        {"delay": -0.1},
        {"jitter": -0.1},
        {"delay": LONGEST_DELAY - 1.0, "jitter": 1.01},
        {"record": 0},
        {"demands": None},
        {"demands": [0]},
        *({"demands": [ok, Demand(*d)]} for d in ((8, "max", 0, 1), (-1, "max", 0, 1))),
        *({"demands": [Demand(0, "max", *w)]} for w in ((-1, 2), (3, 2), (0, TICKS), (0.0, 1))),
        {"demands": [Demand(0, "mean", 0, 1)]},
        {"demands": [Demand(0, "last_above", 0, 1, np.nan)]},
    ]
    for change in wrong:
        with pytest.raises(ConcurError, match=r"expected .*, got "):
            rolled(loop, *arrays, **named | change)
    named |= {"delay": LONGEST_DELAY - 1.0, "jitter": 1.0, "seed": 2**63 - 1, "demands": [ok]}
    assert (rolled(loop, *arrays, **named).stopped > 0).all()


def test_functions_that_do_not_fit_are_refused() -> None:
    tick, step = graphs()
    short = ca.Function("short", tick.sx_in()[:3], tick.sx_in()[:3])
    for parts in ((step, step, 1, 3), (tick, tick, 1, 3), (short, step, 1, 3), (tick, step, 1, 2)):
        with pytest.raises(ConcurError, match=r"expected (length|\d inputs)"):
            Rollout(*parts)
    for change in ({"threads": 0}, {"steps_per_tick": 0}, {"steps_per_tick": True}):
        with pytest.raises(ConcurError, match="expected"):
            Rollout(tick, step, **{"steps_per_tick": 1, "noises": 3} | change)


@pytest.mark.extended
def test_keys(compiler: None, monkeypatch: pytest.MonkeyPatch) -> None:
    one = rollout()
    assert rollout(threads=2).key == one.key
    keys = {one.key, runaways("compiled").key}
    keys |= {rollout("interpreted").key}
    monkeypatch.setattr(_compiler, "FLAGS", tuple(f for f in _compiler.FLAGS if "fp" not in f))
    keys.add(Rollout(*graphs(), STEPS, noises=3).key)
    assert len(keys) == 4


def compute(loop: Rollout, queue: Any = None) -> Any:
    arrays, named = problem()
    found = rolled(loop, *arrays, **named, demands=every_demand()).values
    return found if queue is None else queue.put(found)


def test_pickled_and_in_a_forked_process(compiler: None) -> None:
    loop = rollout(threads=2)
    right = compute(loop)
    copy = pickle.loads(pickle.dumps(loop))
    assert (copy.key, copy.threads, copy.width) == (loop.key, 2, loop.width)
    assert_array_equal(compute(copy), right)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, b"1" if np.array_equal(compute(loop), right) else b"0")
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert os.read(reading, 1) == b"1"
