"""Steps of the closed loop of many worlds: one by one and in lanes; by one thread and by two."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

import concur as cc
from concur.codegen import Batch, BatchMap, Evaluator, Lanes, instructions
from concur.simulation import Plant
from concur.simulation._step import step_function
from tests.benchmarks._contender import Comparison, Contender, Run
from tests.benchmarks._floating_comparisons import floating
from tests.benchmarks._job import Moment
from tests.benchmarks._report import duration
from tests.benchmarks._rover_comparisons import drawn
from tests.benchmarks._timing import Measured, measure, progress

WORLDS, STEP, STEPS = 48, 1e-3, 10
UNCERTAIN_TOLD = "With numbers of all bodies as inputs, each measured beside constants:"
ROUNDS = 60
MANY, THREADED_ROUNDS = 3072, 30
"""Worlds that are worth a second thread, which is started at each step."""

WAYS: dict[str, Callable[[Evaluator], Batch]] = {
    "one by one": BatchMap,
    "4 lanes": lambda step: Lanes(step, width=4),
    "8 lanes": lambda step: Lanes(step, width=8),
}
"""How the worlds are stepped: all compiled with the same flags, in a loop in C, on one thread."""

THREADS: dict[str, Callable[[Evaluator], Batch]] = {
    "one thread": lambda step: Lanes(step, width=8),
    "two threads": lambda step: Lanes(step, width=8, threads=2),
}
"""How the worlds are stepped in eight lanes, on all processors."""

UNCERTAIN: dict[str, tuple[str, ...]] = {
    "constants": (),
    "masses": ("mass",),
    "all inertias": ("mass", "com", "moments"),
    "positions and radii too": ("mass", "com", "moments", "position", "radius"),
    "rotations of the arm too": ("mass", "com", "moments", "position", "rotation", "radius"),
}
"""Quantities of all bodies that are inputs of the step, in eight lanes on one thread."""

LOOPS: dict[str, Callable[[], tuple[cc.Servo, list[Moment]]]] = {
    "free-flyer": lambda: floating()[1:],
    "rover with an arm": lambda: drawn()[1:],
}


@dataclass(frozen=True)
class LaneRow:
    """A robot's measurement, and what the ways took to be built.

    Parameters
    ----------
    robot : str
        Its name.
    instructions : int
        Length of the graph of one step, expanded.
    builds : dict of str to float
        Seconds in which each way was made ready: written, compiled or found, loaded.
    measured : Measured
        Times.
    """

    robot: str
    instructions: int
    builds: dict[str, float]
    measured: Measured


@cache
def plant_of(robot: str, uncertain: str = "constants") -> Plant:
    """The plant, with quantities of all bodies as inputs."""
    tree = LOOPS[robot]()[0].model.robot
    wheels, quantities = {wheel.body for wheel in tree.wheels}, UNCERTAIN[uncertain]
    declared = {
        body.name: [
            quantity
            for quantity in quantities
            if (quantity != "position" or body.parent)
            and (quantity != "radius" or body.name in wheels)
            and (quantity != "rotation" or (body.parent and body.name not in wheels))
        ]
        for body in tree.bodies
    }
    return Plant(tree, uncertain=declared if quantities else None)


@cache
def step_of(robot: str, uncertain: str = "constants") -> Evaluator:
    """One step of the closed loop: law, full-order plant, Runge-Kutta of fourth order."""
    return step_function(LOOPS[robot]()[0], plant_of(robot, uncertain), "rk4", held=False)


@cache
def batch_of(robot: str, way: str) -> tuple[Batch, float]:
    """Build a way to step many worlds; how long it took, s."""
    uncertain = way if way in UNCERTAIN else "constants"
    step = step_of(robot, uncertain)
    begin = time.perf_counter()
    made = {**WAYS, **THREADS}.get(way, WAYS["8 lanes"])(step)
    return made, time.perf_counter() - begin


def stepped(robot: str, way: str, worlds: int = WORLDS, steps: int = STEPS) -> Run:
    """Step all worlds from their starts, each towards a demand of its own."""
    batch, _ = batch_of(robot, way)
    _, states = LOOPS[robot]()
    states = [states[k % WORLDS] for k in range(worlds)]
    q0, v0 = (np.array([getattr(m, name) for m in states]) for name in ("q", "v"))
    command = [
        np.repeat(np.array([getattr(m.sample, name) for m in states])[:, :, None], 3, axis=2)
        for name in ("pose", "twist", "acceleration")
    ]
    q, v, work, pivot = q0.copy(), v0.copy(), np.zeros(worlds), np.zeros(worlds)
    plant = plant_of(robot, way if way in UNCERTAIN else "constants")
    numbers = [np.repeat(plant.numbers({}), worlds, axis=0)] if plant.n_numbers else []
    advance = batch.bind([q, v, work, np.array(STEP), *numbers, *command], [q, v, work, pivot])

    def run() -> np.ndarray:
        q[:], v[:], work[:] = q0, v0, 0.0
        for _ in range(steps):
            advance()
        return np.concatenate([q.ravel(), v.ravel(), work, pivot])

    return run


def lane_comparison(robot: str) -> Comparison:
    """Compare the ways to step the worlds of a robot."""
    contenders = tuple(
        Contender(way, lambda way=way: stepped(robot, way))  # type: ignore[misc]
        for way in WAYS
    )
    return Comparison(
        f"{robot}: {WORLDS} worlds, {STEPS} steps", contenders, WORLDS * STEPS, ROUNDS
    )


def thread_comparison(robot: str) -> Comparison:
    """Compare one thread with two, over many more worlds."""
    contenders = tuple(
        Contender(way, lambda way=way: stepped(robot, way, MANY, 1))  # type: ignore[misc]
        for way in THREADS
    )
    return Comparison(f"{robot}: {MANY} worlds", contenders, MANY, THREADED_ROUNDS, spread=True)


def inputs_comparison(robot: str) -> Comparison:
    """Compare the step with constants with those that have uncertain numbers as inputs."""
    contenders = tuple(
        Contender(way, lambda way=way: stepped(robot, way))  # type: ignore[misc]
        for way in UNCERTAIN
    )
    return Comparison(
        f"{robot}: {WORLDS} worlds, {STEPS} steps", contenders, WORLDS * STEPS, ROUNDS
    )


def inputs_table(rounds: int | None = None) -> str:
    """Measure steps with uncertain numbers as inputs, and write a Markdown table."""
    lines = [
        "| 8 lanes, one step of one world | uncertain | inputs | instructions | time "
        "| instructions / constants | time / constants | built |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for robot in LOOPS:
        progress(f"uncertain numbers, {robot}")
        measured = measure(inputs_comparison(robot), rounds)
        constants = measured.comparison.contenders[0]
        plain = instructions(batch_of(robot, constants.name)[0].function)
        for contender in measured.comparison.contenders:
            batch, built = batch_of(robot, contender.name)
            length, inputs = instructions(batch.function), plant_of(robot, contender.name).n_numbers
            middle, low, high = measured.ratio(contender, constants)
            cells = [robot, contender.name, str(inputs), str(length)]
            cells += [duration(measured.median(contender)), f"{length / plain:.2f}"]
            cells += [f"**{middle:.2f}** ({low:.2f} to {high:.2f})", duration(built)]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def rows(rounds: int | None = None) -> list[LaneRow]:
    """Measure all robots."""
    found = []
    for robot in LOOPS:
        progress(f"lanes, {robot}")
        measured = measure(lane_comparison(robot), rounds)
        length = instructions(batch_of(robot, "8 lanes")[0].function)
        builds = {way: batch_of(robot, way)[1] for way in WAYS}
        found.append(LaneRow(robot, length, builds, measured))
    return found


def lanes_tables(rounds: int | None = None) -> str:
    """Measure all robots: tables of lanes on one core, of threads, and of uncertain numbers."""
    told = "With threads, on two otherwise idle processors:"
    inputs = f"{UNCERTAIN_TOLD}\n\n{inputs_table(rounds)}"
    return f"{lanes_table(rounds)}\n\n{told}\n\n{threads_table(rounds)}\n\n{inputs}"


def threads_table(rounds: int | None = None) -> str:
    """Measure one thread and two, and write a Markdown table."""
    lines = [
        f"| 8 lanes, one step of one world of {MANY} | one thread | two threads "
        "| one thread / two threads |",
        "| --- | ---: | ---: | ---: |",
    ]
    for robot in LOOPS:
        progress(f"threads, {robot}")
        measured = measure(thread_comparison(robot), rounds)
        one, two = measured.comparison.contenders
        middle, low, high = measured.ratio(one, two)
        times = duration(measured.median(one)), duration(measured.median(two))
        gain = f"**{middle:.2f}** ({low:.2f} to {high:.2f})"
        lines.append(f"| {robot} | {' | '.join(times)} | {gain} |")
    return "\n".join(lines)


def lanes_table(rounds: int | None = None) -> str:
    """Measure all robots, and write a Markdown table."""
    lines = [
        "| closed loop, one step of one world | instructions | one by one | 4 lanes | 8 lanes "
        "| one by one / 4 lanes | one by one / 8 lanes | built: one by one, 4, 8 lanes |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for row in rows(rounds):
        single, *lanes = row.measured.comparison.contenders
        times = [duration(row.measured.median(c)) for c in (single, *lanes)]
        ratios = [row.measured.ratio(single, c) for c in lanes]
        gains = [f"**{middle:.2f}** ({low:.2f} to {high:.2f})" for middle, low, high in ratios]
        builds = ", ".join(duration(seconds) for seconds in row.builds.values())
        cells = [row.robot, str(row.instructions), *times, *gains, builds]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)
