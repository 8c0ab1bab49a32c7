"""What is timed: a job, and those who do it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

import concur as cc
from concur.control import tick_function
from tests.benchmarks._inner import OurInner, run_of
from tests.benchmarks._job import Moment

CALLS = 50
"""States through which one timed run of a short function goes."""

Run: TypeAlias = Callable[[], np.ndarray]
"""Does a job `Comparison.count` times and returns the last result."""


@dataclass(frozen=True)
class Contender:
    """One way to do a job.

    Parameters
    ----------
    name : str
        What it is, for the table.
    prepare : callable
        Makes what is timed; not timed itself.
    library : str
        Empty for ours, else the name of the peer.
    inner : bool
        Whether it is timed in a loop in C, which needs compilers.
    """

    name: str
    prepare: Callable[[], Run]
    library: str = ""
    inner: bool = False


@dataclass(frozen=True)
class Comparison:
    """One job and those who do it.

    Parameters
    ----------
    job : str
        The job.
    contenders : tuple of Contender
        Ours and the peers, each peer once.
    count : float
        How often one run does the job, or of how many seconds.
    rounds : int
        Timed runs of each contender in a full measurement.
    per : str
        What is done once, if that is not a call.
    alike : bool
        Whether all give the same result; else only their times are set side by side.
    spread : bool
        Whether they may use all processors; else they stay on one.
    """

    job: str
    contenders: tuple[Contender, ...]
    count: float
    rounds: int
    per: str = ""
    alike: bool = True
    spread: bool = False

    @property
    def warm(self) -> bool:
        """Whether each timed run follows an untimed one: where runs take microseconds."""
        return self.count >= CALLS


Law: TypeAlias = Callable[[np.ndarray, np.ndarray, cc.ReferenceSample], np.ndarray]


def through(law: Law, states: list[Moment]) -> Run:
    """Call a law in all states."""
    calls = [(m.q, m.s, m.sample) for m in states]

    def run() -> np.ndarray:
        for q, s, sample in calls:
            u = law(q, s, sample)
        return u

    return run


def filled(servo: cc.Servo, states: list[Moment]) -> Run:
    """Fill the buffers of our law and evaluate it, in all states."""
    tick = servo.compile()
    buffers = tick.buffers
    inputs = buffers.q, buffers.s, buffers.pose, buffers.twist, buffers.acceleration
    calls = [(m.q, m.s, m.sample.pose, m.sample.twist, m.sample.acceleration) for m in states]

    def run() -> np.ndarray:
        q, s, pose, twist, acceleration = inputs
        for numbers in calls:
            q[:], s[:], pose[:], twist[:], acceleration[:] = numbers
            tick.run()
        return buffers.u

    return run


def updated(servo: cc.Servo, states: list[Moment]) -> Run:
    """Evaluate our law again and again on the numbers of the last state."""
    tick = servo.compile()
    tick(states[-1].q, states[-1].s, states[-1].sample)

    def run() -> np.ndarray:
        for _ in range(CALLS):
            tick.run()
        return tick.buffers.u

    return run


def law_inner(servo: cc.Servo, states: list[Moment]) -> OurInner:
    """Our law in a loop in C, in the library that its tick calls."""
    tick = servo.compile()
    momentum = tick.buffers.momentum.copy()
    rest = (momentum,) if momentum.size else ()
    calls = [
        (m.q, m.s, m.sample.pose, m.sample.twist, m.sample.acceleration, *rest) for m in states
    ]
    return OurInner(tick_function(servo), calls)


def looped(servo: cc.Servo, states: list[Moment]) -> Run:
    """Evaluate our law in a loop in C, in all states."""
    inner = law_inner(servo, states)
    run = run_of(inner)

    def torques() -> np.ndarray:
        run()
        return inner.results[0][:, 0]

    return torques
