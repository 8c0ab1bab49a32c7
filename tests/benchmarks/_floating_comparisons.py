"""Who is timed beside whom on robots that float with momentum."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import TypeAlias

import numpy as np

import concur as cc
from tests.benchmarks._contender import (
    CALLS,
    Comparison,
    Contender,
    Law,
    Run,
    filled,
    looped,
    through,
    updated,
)
from tests.benchmarks._floating_job import (
    START,
    STATION_START,
    TORQUE_LIMIT,
    FloatingJob,
    floating_moments,
    floating_reference,
    free_flyer,
    station_arm,
    tilted,
)
from tests.benchmarks._floating_mujoco import MujocoFloatingLaw, MujocoFloatingLoop
from tests.benchmarks._floating_pinocchio import (
    PinocchioFloatingFunctions,
    PinocchioFloatingLaw,
    PinocchioFloatingLoop,
)
from tests.benchmarks._inner import TheirInner, run_of
from tests.benchmarks._job import Moment
from tests.benchmarks._pinocchio_model import build

SECONDS = 10.0
"""Length of the simulated run, s."""

Made: TypeAlias = Callable[[], tuple[FloatingJob, cc.Servo, list[Moment]]]
"""Gives a job, its servo and the states of its comparison."""

Peer: TypeAlias = type[PinocchioFloatingLaw] | type[MujocoFloatingLaw]


@cache
def floating() -> tuple[FloatingJob, cc.Servo, list[Moment]]:
    """Job, servo and states of the free-flyer."""
    servo = free_flyer().servo()
    return free_flyer(), servo, floating_moments(servo, START, CALLS)


@cache
def without_zeros() -> tuple[FloatingJob, cc.Servo, list[Moment]]:
    """Job, servo and states of the free-flyer without structural zeros."""
    servo = tilted().servo()
    return tilted(), servo, floating_moments(servo, START, CALLS)


@cache
def limited(limit: float) -> tuple[cc.Servo, list[Moment]]:
    """Servo of the free-flyer within torque limits, N m, and the same states."""
    return free_flyer().servo(torque_limits=limit), floating()[2]


@cache
def redundant() -> tuple[cc.Servo, list[Moment]]:
    """Servo and states of the arm with one joint more than its tip needs."""
    servo = station_arm().servo()
    return servo, floating_moments(servo, STATION_START, CALLS)


OPTIONS: dict[str, Callable[[], tuple[cc.Servo, list[Moment]]]] = {
    "none": lambda: floating()[1:],
    "torque limits, far away": lambda: limited(100 * TORQUE_LIMIT),
    f"torque limits of {TORQUE_LIMIT:g} N m": lambda: limited(TORQUE_LIMIT),
    "one joint left over: the station's arm": redundant,
}
"""Servo and states by what was asked for beyond the plain law."""


def floating_comparisons(seconds: float = SECONDS) -> list[Comparison]:
    """List all comparisons, with closed loops so long; nothing is built yet."""
    return [
        whole_law("whole law, one control tick", floating),
        whole_law("the same law without structural zeros", without_zeros),
        Comparison(
            "what options of the law cost, `tick.run()`",
            tuple(
                Contender(name, partial(_filled, prepared)) for name, prepared in OPTIONS.items()
            ),
            CALLS,
            200,
            alike=False,
        ),
        Comparison(
            "from bodies to the first torque",
            (
                Contender(
                    "`Mechanism`, `reduce`, `Servo`, `compile`, first call; compiled before", _build
                ),
                Contender(
                    "model and first call over Pinocchio",
                    lambda: _build_peer(PinocchioFloatingLaw),
                    "Pinocchio",
                ),
                Contender(
                    "model and first call over MuJoCo",
                    lambda: _build_peer(MujocoFloatingLaw),
                    "MuJoCo",
                ),
            ),
            1,
            9,
        ),
        Comparison(
            f"closed loop, {seconds:g} s in steps of 1 ms",
            (
                Contender(
                    "`cc.simulate`, compiled", lambda: _simulation(seconds, True), inner=True
                ),
                Contender("`cc.simulate`, interpreted", lambda: _simulation(seconds, False)),
                Contender("loop over Pinocchio", lambda: _pinocchio_loop(seconds), "Pinocchio"),
                Contender(
                    "`mj_step`, law as its control callback",
                    lambda: _mujoco_loop(seconds),
                    "MuJoCo",
                ),
            ),
            seconds,
            3,
            "simulated s",
        ),
        _lifts(),
    ]


def _filled(prepared: Callable[[], tuple[cc.Servo, list[Moment]]]) -> Run:
    return filled(*prepared())


def whole_law(job: str, made: Made) -> Comparison:
    """One tick of the law of a floating arm of six joints, by all who can do it."""
    return Comparison(
        job,
        (
            Contender("`tick(q, s, sample)`", lambda: through(made()[1].compile(), made()[2])),
            Contender("buffers filled by the caller, `tick.run()`", lambda: filled(*made()[1:])),
            Contender("`tick.run()` alone, numbers already in place", lambda: updated(*made()[1:])),
            Contender("in a loop in C", lambda: looped(*made()[1:]), inner=True),
            Contender(
                "`tick(q, s, sample)`, interpreted",
                lambda: through(made()[1].compile(interpreted=True), made()[2]),
            ),
            Contender("law over Pinocchio", lambda: _law(PinocchioFloatingLaw, made), "Pinocchio"),
            Contender("law over MuJoCo", lambda: _law(MujocoFloatingLaw, made), "MuJoCo"),
            Contender(
                "law over Pinocchio's headers, in a loop in C++",
                lambda: headers(made),
                "C++",
                inner=True,
            ),
        ),
        CALLS,
        200,
    )


def headers(made: Made) -> Run:
    """The law in C++ in the states of a job."""
    job, _, states = made()
    calls = [(m.q, m.s, m.sample.pose, m.sample.twist, m.sample.acceleration) for m in states]
    gains = np.concatenate([job.momentum, np.diag(job.stiffness), np.diag(job.damping)])
    model = build(job.robot)
    return run_of(TheirInner("law", model, job.output.body, calls, [(6,)], gains))


def _law(kind: Peer, made: Made) -> Run:
    job, _, states = made()
    law: Law = kind(job)
    return through(law, states)


def _build() -> Run:
    job, _, states = floating()
    robot, first = job.robot, states[0]

    def run() -> np.ndarray:
        made = cc.Mechanism(robot.name, robot.bodies, gravity=robot.gravity)
        model = cc.reduce(made, momentum=job.momentum)
        law = cc.Servo(model, [job.output], job.stiffness, job.damping).compile()
        return law(first.q, first.s, first.sample)

    return run


def _build_peer(kind: Peer) -> Run:
    job, _, states = floating()
    first = states[0]
    return lambda: kind(job)(first.q, first.s, first.sample)


@cache
def _reference() -> cc.references.Reference:
    return floating_reference(floating()[0])


def _simulation(seconds: float, compiled: bool) -> Run:
    job, servo, _ = floating()
    reference, still = _reference(), np.zeros(6)
    integrator = cc.simulation.Integrator(compiled=compiled)
    return lambda: cc.simulate(job.robot, servo, reference, seconds, START, still, dt=integrator).q[
        -1
    ]


def _pinocchio_loop(seconds: float) -> Run:
    loop = PinocchioFloatingLoop(PinocchioFloatingLaw(floating()[0]))
    reference, still = _reference(), np.zeros(6)
    return lambda: loop(reference, seconds, START, still)[0][-1]


def _mujoco_loop(seconds: float) -> Run:
    loop = MujocoFloatingLoop(MujocoFloatingLaw(floating()[0]))
    reference, still = _reference(), np.zeros(6)
    return lambda: loop(reference, seconds, START, still)[-1]


def _lifts() -> Comparison:
    return Comparison(
        "lift at the momentum: H and h",
        (
            Contender("`model.lift(q)`", _lift),
            Contender(
                "`crba`, momentum carried to the base, Cholesky",
                lambda: _pairs(_peer().lift, 1),
                "Pinocchio",
            ),
        ),
        CALLS,
        200,
    )


@cache
def _peer() -> PinocchioFloatingFunctions:
    return PinocchioFloatingFunctions(PinocchioFloatingLaw(floating()[0]))


def _arguments(count: int) -> list[tuple[np.ndarray, ...]]:
    return [(m.q, m.v)[:count] for m in floating()[2]]


def _pairs(function: Callable[..., tuple[np.ndarray, np.ndarray]], count: int) -> Run:
    calls = _arguments(count)

    def run() -> np.ndarray:
        for numbers in calls:
            pair = function(*numbers)
        return np.column_stack(pair)

    return run


def _lift() -> Run:
    model = floating()[1].model
    model.compile_functions("lift")
    return _pairs(model.lift, count=1)
