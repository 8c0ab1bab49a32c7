"""Runs of all laws through all scenarios, and what is measured in them."""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib.metadata import version
from typing import TypeAlias

import numpy as np

import concur as cc
from concur.show.style import save_picture
from tests.benchmarks._limited_constrained import Constrained
from tests.benchmarks._limited_figures import figure
from tests.benchmarks._limited_measures import Passage
from tests.benchmarks._limited_mink import INSTALLED, Mink
from tests.benchmarks._limited_peer import WholeBody
from tests.benchmarks._limited_scaled import ScaledServo
from tests.benchmarks._limited_scenarios import PERIOD, Scenario, scenarios
from tests.benchmarks._limited_twin import Twin
from tests.benchmarks._report import PAGE, duration
from tests.benchmarks._timing import progress

PICTURES = PAGE.parent / "images" / "limits"

RUNAWAY = 1e4
"""Speed at which a run ends, rad/s and m/s."""

Law: TypeAlias = Callable[[float, np.ndarray, np.ndarray, cc.ReferenceSample], np.ndarray]


def passage(scenario: Scenario, law: str, call: Law) -> Passage:
    """Run a law through a scenario, on the plant in Pinocchio."""
    twin = Twin(scenario)
    q, v = scenario.q0.copy(), np.asarray(scenario.model.velocity(scenario.q0, scenario.s0))
    rows, seconds, ended = [], [], ""
    for k, sample in enumerate(scenario.demands):
        begin = time.perf_counter()
        try:
            u = np.array(call(k * PERIOD, q, v, sample))
        except (cc.errors.ConcurError, RuntimeError) as error:
            ended = f"{type(error).__name__}: {' '.join(str(error).split())}"
            break
        seconds.append(time.perf_counter() - begin)
        ground = [one(q, v, u) if scenario.ground else np.nan for one in (twin.grip, twin.load)]
        clearance = twin.clearance(q) if scenario.ball else np.nan
        rows.append((q, v, u, twin.errors(q, sample), clearance, *ground))
        q, v = twin.step(q, v, u)
        if not np.abs(v).max() < RUNAWAY:
            ended = f"speeds above {RUNAWAY:g}"
            break
    if not rows:
        raise RuntimeError(f"{law} gives no torque at all in `{scenario.name}`: {ended}")
    columns = [np.array(column) for column in zip(*rows, strict=True)]
    relaxed, said = getattr(call, "relaxed", 0), getattr(call, "said", {})
    return Passage(scenario, twin, law, *columns, float(np.median(seconds)), ended, relaxed, said)


def laws(scenario: Scenario) -> dict[str, Callable[[Scenario], Law]]:
    """Laws that a scenario is for: mink knows no momentum."""
    found: dict[str, Callable[[Scenario], Law]] = {
        "scaled servo": ScaledServo,
        "constrained servo": Constrained,
        "whole-body QP": WholeBody,
    }
    if INSTALLED and scenario.momentum is None:
        found["mink"] = Mink
    return found


def passages(scenario: Scenario) -> list[Passage]:
    """Run all laws through a scenario."""
    found = []
    for name, make in laws(scenario).items():
        progress(f"{scenario.name}, {name}")
        found.append(passage(scenario, name, make(scenario)))
    return found


def limits_table(keep: bool) -> str:
    """All scenarios by all laws as a Markdown table; figures beside it where they are kept."""
    heads = [
        "scenario",
        "law",
        "largest error",
        "error at the end",
        "recovery",
        "beyond limits",
        "torque per tick, at rest",
        "fastest joint",
        "a tick",
    ]
    lines = [f"| {' | '.join(heads)} |", f"| --- | --- |{' ---: |' * (len(heads) - 2)}"]
    for scenario in scenarios().values():
        found = passages(scenario)
        title = scenario.shown
        if keep:
            PICTURES.mkdir(exist_ok=True)
            path = save_picture(figure(found), PICTURES / f"{scenario.name}.png")
            title = f"[{title}]({path.relative_to(PAGE.parent).as_posix()})"
        for result in found:
            cells = [
                title,
                result.law,
                result.shown_errors(result.errors.max(axis=0)),
                result.shown_errors(result.errors[-1]) if not result.ended else "ended",
                result.shown_recovery,
                result.shown_beyond,
                result.shown_variation,
                f"{result.fastest:.3g} rad/s",
                duration(result.seconds),
            ]
            lines.append(f"| {' | '.join(cells)} |")
            title = ""
    peers = "With mink " + version("mink") if INSTALLED else "Without mink, which is not installed"
    return f"{peers}.\n\n" + "\n".join(lines)
