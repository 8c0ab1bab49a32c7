"""A law with its reference inside: its tick beside the tick that is given a sample."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

import concur as cc
from tests.benchmarks._contender import CALLS, Comparison, Contender, Run, filled, through
from tests.benchmarks._floating_comparisons import floating
from tests.benchmarks._floating_job import floating_reference
from tests.benchmarks._job import Moment
from tests.benchmarks._report import duration
from tests.benchmarks._rover_comparisons import drawn
from tests.benchmarks._timing import Measured

Followed = tuple[cc.Servo, list[Moment], cc.references.Reference]


@cache
def rover() -> Followed:
    """The rover with the reference of its task."""
    job, servo, states = drawn()
    return servo, states, job.reference


@cache
def table() -> Followed:
    """The rover on a table of a thousand segments, sampled from the reference of its task."""
    servo, states, reference = rover()
    times = np.linspace(0.0, 10.0, 1001)
    return servo, states, cc.references.waypoints(times, reference.sample(times)[0])


@cache
def flyer() -> Followed:
    """The free-flyer with a hand that tumbles and drifts along."""
    job, servo, states = floating()
    return servo, states, floating_reference(job)


CASES: dict[str, Callable[[], Followed]] = {
    "rover with an arm, reference of its task": rover,
    "rover with an arm, a table of 1000 segments": table,
    "free-flyer, a hand that tumbles and drifts": flyer,
}


def comparison(name: str) -> Comparison:
    """One law and its reference, in one call and apart; nothing is built yet."""
    made = CASES[name]
    return Comparison(
        name,
        (
            Contender("`tick(q, s, sample)`", lambda: _given(*made())),
            Contender("`reference(t)`", lambda: _reference(*made())),
            Contender("`tick(t, q, s)`", lambda: _inside(*made())),
            Contender("sample in the buffers, `run`", lambda: _filled(*made())),
            Contender("t in the buffers, `run`", lambda: _timed(*made())),
        ),
        CALLS,
        100,
    )


def times(states: list[Moment]) -> list[float]:
    """Times of the calls, s."""
    return np.random.default_rng(1).uniform(0.0, 10.0, len(states)).tolist()


def sampled(states: list[Moment], reference: cc.references.Reference) -> list[Moment]:
    """The same states with the reference's samples at the times of the calls."""
    given = zip(states, times(states), strict=True)
    return [Moment(m.q, m.s, m.v, reference(t)) for m, t in given]


def _given(servo: cc.Servo, states: list[Moment], reference: cc.references.Reference) -> Run:
    return through(servo.compile(), sampled(states, reference))


def _filled(servo: cc.Servo, states: list[Moment], reference: cc.references.Reference) -> Run:
    return filled(servo, sampled(states, reference))


def _reference(servo: cc.Servo, states: list[Moment], reference: cc.references.Reference) -> Run:
    instants = times(states)

    def run() -> np.ndarray:
        for t in instants:
            sample = reference(t)
        return sample.pose

    return run


def _inside(servo: cc.Servo, states: list[Moment], reference: cc.references.Reference) -> Run:
    tick = servo.compile(reference)
    calls = [(t, m.q, m.s) for m, t in zip(states, times(states), strict=True)]

    def run() -> np.ndarray:
        for t, q, s in calls:
            u = tick(t, q, s)
        return u

    return run


def _timed(servo: cc.Servo, states: list[Moment], reference: cc.references.Reference) -> Run:
    tick = servo.compile(reference)
    buffers = tick.buffers
    calls = [(t, m.q, m.s) for m, t in zip(states, times(states), strict=True)]

    def run() -> np.ndarray:
        for buffers.t[0], buffers.q[:], buffers.s[:] in calls:
            tick.run()
        return buffers.u

    return run


def references_table(measured: list[Measured]) -> str:
    """Times of law and reference apart and together, and the ratio of the two ticks."""
    lines = [
        "| law and reference | tick with a sample | `reference(t)` | `tick(t, q, s)` | ratio of "
        "the ticks | buffers, sample | buffers, t | ratio |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for result in measured:
        given, alone, inside, filled_in, timed = result.comparison.contenders
        cells = [
            result.comparison.job,
            *(duration(result.median(one)) for one in (given, alone, inside)),
            f"**{result.ratio(inside, given)[0]:.2f}**",
            *(duration(result.median(one)) for one in (filled_in, timed)),
            f"**{result.ratio(timed, filled_in)[0]:.2f}**",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)
