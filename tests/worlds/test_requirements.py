"""Robustness of requirements against definitions written out, and of runs that stop early."""

from __future__ import annotations

import importlib
import math
import sys
import warnings
from typing import Any

import numpy as np
import pytest

from concur.codegen import Demand
from concur.errors import ConcurError
from concur.worlds import Requirement

INF = math.inf
SIGNALS = ("status", "error:hand", "torque:arm", "base:x", "base:y")
TICKS, PERIOD = 200, 0.01


def settle(after: float = 1.0) -> Requirement:
    return Requirement("settle", "hand", (("error:hand", -INF, 0.1),), 0.1, "m", after)


BOX = Requirement("base", "base", (("base:x", -1.0, 2.0), ("base:y", -0.5, 0.5)), 0.5, "m")
TORQUE = Requirement("torque", "arm", (("torque:arm", -3.0, 3.0),), 3.0, "N m")
ALL = (settle(), BOX, TORQUE, Requirement("ticks", "ticks", ()))


def reduced(requirement: Requirement, series: dict[str, np.ndarray]) -> list[float]:
    """Extremes as a loop over time computes them, up to the tick at which the run stops."""
    found = []
    for demand in requirement.demands(SIGNALS, TICKS, PERIOD):
        window = series[SIGNALS[demand.signal]][demand.first : demand.last + 1]
        extreme = {"max": max, "min": min}[demand.kind]
        found.append(extreme(window, default=demand.initial))
    return found


def motion(rng: np.random.Generator, ticks: int = TICKS) -> dict[str, np.ndarray]:
    size = rng.uniform(0.1, 2.0)
    return {name: size * np.abs(rng.normal(size=ticks)) * 0.1 for name in SIGNALS}


def test_robustness_is_the_smallest_distance_to_a_bound() -> None:
    rng = np.random.default_rng(5)
    for _ in range(50):
        series = motion(rng)
        series["torque:arm"] = 20.0 * rng.normal(size=TICKS) * 0.1
        expected = (
            min(0.1 - e for e in series["error:hand"][100:]),
            min(
                min(2.0 - x, x + 1.0, 0.5 - y, y + 0.5)
                for x, y in zip(series["base:x"], series["base:y"], strict=True)
            ),
            min(3.000000003 - abs(u) for u in series["torque:arm"]),
            1.0,
        )
        for requirement, value in zip(ALL, expected, strict=True):
            found = requirement.value([reduced(requirement, series)], [TICKS], TICKS)
            assert abs(found[0] - value) < 1e-15
            assert abs(requirement.robustness(series, TICKS, PERIOD) - value) < 1e-15


@pytest.mark.parametrize("kind", ["torque", "speed", "joint", "heat"])
@pytest.mark.parametrize("bound", [3.0, -0.7, 1e6])
def test_a_signal_at_a_limit_keeps_it_up_to_the_rounding(kind: str, bound: float) -> None:
    """On both sides of 1e-9 of a limit; a law that clips its command stays exactly at it."""
    for sign, ends in ((1.0, (-INF, bound)), (-1.0, (bound, INF))):
        made = Requirement(kind, "a limit", (("one", *ends),))
        for share, holds in ((-1e-9, True), (0.0, True), (2e-10, True), (1.1e-9, False)):
            reached = bound + sign * share * abs(bound)
            value = float(made.value([[reached]], [TICKS], TICKS)[0])
            assert (value > 0.0) is holds, (sign, share)
            assert (made.robustness({"one": [reached] * TICKS}, TICKS, PERIOD) > 0.0) is holds
        # A run at its limit that stops one tick early fails.
        assert made.value([[bound]], [TICKS - 1], TICKS)[0] < 0.0


@pytest.mark.parametrize("kind", ["settle", "error", "margin", "base", "slip", "load", "tipping"])
def test_a_signal_at_a_bound_that_no_law_keeps_breaks_it(kind: str) -> None:
    made = Requirement(kind, "a bound", (("one", -INF, 0.1),), 0.1)
    assert made.value([[0.1]], [TICKS], TICKS)[0] == 0.0
    assert made.value([[0.1 * (1.0 + 1e-12)]], [TICKS], TICKS)[0] < 0.0
    assert made.value([[0.1 * (1.0 - 1e-12)]], [TICKS], TICKS)[0] > 0.0


def test_a_window_begins_at_the_first_tick_that_is_not_earlier() -> None:
    for after, first in ((0.0, 0), (1.0, 100), (1.0 + 1e-12, 100), (1.001, 101), (1.99, 199)):
        (demand,) = settle(after).demands(SIGNALS, TICKS, PERIOD)
        assert demand == Demand(1, "max", first, TICKS - 1)
    with pytest.raises(ConcurError, match=r"within the run of 2 s, got 1\.991"):
        settle(1.991).demands(SIGNALS, TICKS, PERIOD)


def test_a_run_that_stops_early_fails_with_a_slope() -> None:
    rng = np.random.default_rng(6)
    for requirement in ALL:
        values = []
        for stop in range(0, TICKS):
            calm = {name: np.full(stop, 1e-3) for name in SIGNALS}
            values.append(requirement.robustness(calm, TICKS, PERIOD))
            found = requirement.value([reduced(requirement, calm)], [stop], TICKS)[0]
            assert found == values[-1]
        assert max(values) < 0.0
        assert np.all(np.diff(values) > 0.0), requirement.name
        assert abs(values[0] + requirement.scale) < 1e-15
        assert abs(values[-1] + requirement.scale / TICKS) < 1e-15
    # Bounds that were broken before count, but not the size of a diverged signal.
    for stop in (20, 150):
        series = motion(rng, stop)
        lost = 3.0 * (TICKS - stop) / TICKS
        for size, worst in ((3.5, -0.5 + 3e-9), (32.9, -29.9 + 3e-9), (33.1, -30.0), (9e5, -30.0)):
            series["torque:arm"][10] = -size
            assert abs(TORQUE.robustness(series, TICKS, PERIOD) - (worst - lost)) < 1e-12


def test_a_diverged_run_never_passes() -> None:
    fine = [[0.0, 0.0]]
    for stopped in (0, 1, TICKS - 1):
        assert TORQUE.value(fine, [stopped], TICKS)[0] < 0.0
    assert TORQUE.value(fine, [TICKS], TICKS)[0] == 3.000000003
    for wrong in (np.nan, np.inf):
        value = TORQUE.value([[wrong, 0.0]], [TICKS], TICKS)[0]
        assert value <= -30.0
        assert np.isfinite(value)
    assert TORQUE.value([[0.0, np.nan]], [TICKS - 1], TICKS)[0] < -30.0


def test_faults_name_the_requirement() -> None:
    def made(*bounds: Any, **others: Any) -> Any:
        return lambda: Requirement("joint", "elbow", bounds, **others)

    for make, text in (
        (made(("q", 1.0, 1.0)), "`elbow`.*below an upper"),
        (made(("q", -INF, INF)), "one finite"),
        (made(("q", 0.0, math.nan)), "below an upper"),
        (made(("q", 0.0, 1.0), scale=0.0), "scale above zero"),
        (made(("q", 0.0, 1.0), after=-0.1), "zero or more"),
        (lambda: made(("q", 0.0, 1.0))().demands(SIGNALS, 9, 0.1), "signal of the loop.*`q`"),
    ):
        with pytest.raises(ConcurError, match=text):
            make()


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="rtamt needs an older Python")
def test_values_agree_with_those_of_a_temporal_logic_library() -> None:
    """Settle, stay below, stay above and stay in a box, as formulas of rtamt."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of its parser
        rtamt = importlib.import_module("rtamt")
    margin = Requirement("margin", "margin", (("margin", 0.1, INF),), 0.1)
    last = TICKS - 1
    cases = (
        (settle(), f"always[100:{last}](error <= 0.1)"),
        (settle(0.005), f"always[1:{last}](error <= 0.1)"),
        (TORQUE, f"always[0:{last}]((torque <= 3.000000003) and (torque >= -3.000000003))"),
        (margin, f"always[0:{last}](margin >= 0.1)"),
        (
            BOX,
            f"(always[0:{last}]((x >= -1.0) and (x <= 2.0)))"
            f" and (always[0:{last}]((y >= -0.5) and (y <= 0.5)))",
        ),
    )
    names = {
        "error": "error:hand",
        "torque": "torque:arm",
        "margin": "margin",
        "x": "base:x",
        "y": "base:y",
    }
    rng, signs = np.random.default_rng(8), set()
    for requirement, formula in cases:
        logic = rtamt.StlDiscreteTimeSpecification()
        for name in ("robustness", *names):
            logic.declare_var(name, "float")
        logic.spec = f"robustness = {formula}"
        logic.parse()
        for _ in range(20):
            size = 10.0 ** rng.uniform(-2.5, 0.5)
            series = {signal: size * rng.normal(size=TICKS) for signal in names.values()}
            series["error:hand"] = np.abs(series["error:hand"]) * np.linspace(1.0, 0.01, TICKS)
            series["margin"] = np.abs(series["margin"]) + rng.uniform(0.0, 0.3)
            given = {name: series[signal].tolist() for name, signal in names.items()}
            expected = logic.evaluate({"time": list(range(TICKS)), **given})[0][1]
            found = requirement.robustness(series, TICKS, PERIOD)
            assert found == pytest.approx(expected, abs=1e-14), formula
            signs.add((requirement.kind, found > 0.0))
    assert len(signs) == 8, signs  # each kind holds in some runs, and fails in others
