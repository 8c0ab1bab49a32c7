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
)
from tests.benchmarks._floating_mujoco import MujocoFloatingLaw, MujocoFloatingLoop
from tests.benchmarks._floating_pinocchio import (
    PinocchioFloatingFunctions,
    PinocchioFloatingLaw,
    PinocchioFloatingLoop,
)
from tests.benchmarks._job import Moment

SECONDS = 2.0
"""Length of the simulated run, s."""

Peer: TypeAlias = type[PinocchioFloatingLaw] | type[MujocoFloatingLaw]


@cache
def floating() -> tuple[FloatingJob, cc.Servo, list[Moment]]:
    """Job, servo and states of the free-flyer."""
    servo = free_flyer().servo()
    return free_flyer(), servo, floating_moments(servo, START, CALLS)


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


def floating_comparisons() -> list[Comparison]:
    """List all comparisons; nothing is built yet."""
    return [
        Comparison(
            "whole law, one control tick",
            (
                Contender("`tick(q, s, sample)`", _tick),
                Contender(
                    "buffers filled by the caller, `tick.update()`",
                    lambda: filled(*floating()[1:]),
                ),
                Contender(
                    "`tick.update()` alone, numbers already in place",
                    lambda: updated(*floating()[1:]),
                ),
                Contender("law over Pinocchio", lambda: _law(PinocchioFloatingLaw), "Pinocchio"),
                Contender("law over MuJoCo", lambda: _law(MujocoFloatingLaw), "MuJoCo"),
            ),
            CALLS,
            200,
        ),
        Comparison(
            "what options of the law cost, `tick.update()`",
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
                Contender("`Mechanism`, `reduce`, `Servo`, `compile`, first call", _build),
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
            f"closed loop, {SECONDS:g} s in steps of 1 ms",
            (
                Contender("`cc.simulate`", _simulation),
                Contender("loop over Pinocchio", _pinocchio_loop, "Pinocchio"),
                Contender("`mj_step`, law as its control callback", _mujoco_loop, "MuJoCo"),
            ),
            round(SECONDS),
            9,
            "simulated s",
        ),
        *_functions(),
    ]


def _filled(prepared: Callable[[], tuple[cc.Servo, list[Moment]]]) -> Run:
    return filled(*prepared())


def _tick() -> Run:
    _, servo, states = floating()
    return through(servo.compile(), states)


def _law(kind: Peer) -> Run:
    job, _, states = floating()
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


def _simulation() -> Run:
    job, servo, _ = floating()
    reference, still = _reference(), np.zeros(6)
    return lambda: cc.simulate(job.robot, servo, reference, SECONDS, START, still).q[-1]


def _pinocchio_loop() -> Run:
    loop = PinocchioFloatingLoop(PinocchioFloatingLaw(floating()[0]))
    reference, still = _reference(), np.zeros(6)
    return lambda: loop(reference, SECONDS, START, still)[0][-1]


def _mujoco_loop() -> Run:
    loop = MujocoFloatingLoop(MujocoFloatingLaw(floating()[0]))
    reference, still = _reference(), np.zeros(6)
    return lambda: loop(reference, SECONDS, START, still)[-1]


def _functions() -> list[Comparison]:
    def robot() -> cc.Mechanism:
        return floating()[0].robot

    rows: list[tuple[str, Contender, Contender]] = [
        (
            "mass matrix",
            Contender("`robot.mass_matrix(q)`", lambda: _each(robot().mass_matrix, 1)),
            Contender("`crba`", lambda: _each(_peer().mass_matrix, 1), "Pinocchio"),
        ),
        (
            "bias forces",
            Contender("`robot.bias(q, v)`", lambda: _each(robot().bias, 2)),
            Contender("`nonLinearEffects`", lambda: _each(_peer().bias, 2), "Pinocchio"),
        ),
        (
            "momentum about the inertial origin",
            Contender("`robot.momentum(q, v)`", lambda: _each(robot().momentum, 2)),
            Contender(
                "`computeCentroidalMomentum`, moved to the origin",
                lambda: _each(_peer().momentum, 2),
                "Pinocchio",
            ),
        ),
        (
            "Jacobian J of the tool and Jdot v",
            Contender("`robot.jacobian`, `robot.velocity_product`", _motion),
            Contender(
                "`forwardKinematics`, `computeJointJacobians`, frame functions",
                lambda: _pairs(_peer().motion, 2),
                "Pinocchio",
            ),
        ),
        (
            "lift at the momentum: H and h",
            Contender("`model.lift(q)`", _lift),
            Contender(
                "`crba`, momentum carried to the base, Cholesky",
                lambda: _pairs(_peer().lift, 1),
                "Pinocchio",
            ),
        ),
    ]
    return [Comparison(job, (ours, peer), CALLS, 200) for job, ours, peer in rows]


@cache
def _peer() -> PinocchioFloatingFunctions:
    return PinocchioFloatingFunctions(PinocchioFloatingLaw(floating()[0]))


def _arguments(count: int) -> list[tuple[np.ndarray, ...]]:
    return [(m.q, m.v)[:count] for m in floating()[2]]


def _each(function: Callable[..., np.ndarray], count: int) -> Run:
    calls = _arguments(count)

    def run() -> np.ndarray:
        for numbers in calls:
            result = function(*numbers)
        return result

    return run


def _pairs(function: Callable[..., tuple[np.ndarray, np.ndarray]], count: int) -> Run:
    calls = _arguments(count)

    def run() -> np.ndarray:
        for numbers in calls:
            pair = function(*numbers)
        return np.column_stack(pair)

    return run


def _motion() -> Run:
    robot, body = floating()[0].robot, floating()[0].output.body
    return _pairs(
        lambda q, v: (robot.jacobian(q, body), robot.velocity_product(q, v, body)), count=2
    )


def _lift() -> Run:
    return _pairs(floating()[1].model.lift, count=1)
