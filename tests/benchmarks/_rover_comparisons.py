"""Who is timed beside whom on the rover."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

import concur as cc
from concur.io import Task
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
from tests.benchmarks._job import Moment, moments, servo_of, start, task
from tests.benchmarks._mujoco import MujocoLaw
from tests.benchmarks._pinocchio import PinocchioLaw, PinocchioLoop


@cache
def drawn() -> tuple[Task, cc.Servo, list[Moment]]:
    """Task, servo and the states of all comparisons."""
    job = task()
    servo = servo_of(job)
    return job, servo, moments(job, servo, CALLS)


def peer_law(kind: type[PinocchioLaw] | type[MujocoLaw]) -> PinocchioLaw | MujocoLaw:
    """Build a peer's law for the task."""
    job = drawn()[0]
    return kind(job.robot, job.outputs, job.stiffness, job.damping)


def rover_comparisons(lengths: Sequence[int] = (1, 10)) -> list[Comparison]:
    """List all comparisons, with closed loops of so many seconds; nothing is built yet."""
    return [
        Comparison(
            "whole law, one control tick",
            (
                Contender("`tick(q, s, sample)`", lambda: _through(drawn()[1].compile())),
                Contender(
                    "buffers filled by the caller, `tick.run()`", lambda: filled(*drawn()[1:])
                ),
                Contender(
                    "`tick.run()` alone, numbers already in place", lambda: updated(*drawn()[1:])
                ),
                Contender("in a loop in C", lambda: looped(*drawn()[1:]), inner=True),
                Contender(
                    "`tick(q, s, sample)`, interpreted",
                    lambda: _through(drawn()[1].compile(interpreted=True)),
                ),
                Contender(
                    "law over Pinocchio", lambda: _through(peer_law(PinocchioLaw)), "Pinocchio"
                ),
                Contender("law over MuJoCo", lambda: _through(peer_law(MujocoLaw)), "MuJoCo"),
            ),
            CALLS,
            200,
        ),
        Comparison(
            "from bodies to the first torque",
            (
                Contender(
                    "`Mechanism`, `reduce`, `Servo`, `compile`, first call; compiled before", _build
                ),
                Contender(
                    "model and first call over Pinocchio",
                    lambda: _build_peer(PinocchioLaw),
                    "Pinocchio",
                ),
                Contender(
                    "model and first call over MuJoCo", lambda: _build_peer(MujocoLaw), "MuJoCo"
                ),
            ),
            1,
            9,
        ),
        *map(_simulation, lengths),
    ]


def _through(law: Law) -> Run:
    return through(law, drawn()[2])


def _build() -> Run:
    job, _, states = drawn()
    robot, first = job.robot, states[0]

    def run() -> np.ndarray:
        made = cc.Mechanism(
            robot.name, robot.bodies, robot.wheels, robot.gravity, actuated=robot.actuated
        )
        law = cc.Servo(cc.reduce(made), job.outputs, job.stiffness, job.damping).compile()
        return law(first.q, first.s, first.sample)

    return run


def _build_peer(kind: type[PinocchioLaw] | type[MujocoLaw]) -> Run:
    first = drawn()[2][0]
    return lambda: peer_law(kind)(first.q, first.s, first.sample)


def _simulation(seconds: int) -> Comparison:
    def ours(compiled: bool) -> Run:
        job, servo, _ = drawn()
        q0, s0 = start(job)
        integrator = cc.simulation.Integrator(compiled=compiled)
        return lambda: cc.simulate(
            job.robot, servo, job.reference, float(seconds), q0, s0, dt=integrator
        ).q[-1]

    def peer() -> Run:
        job, _, _ = drawn()
        q0, s0 = start(job)
        law = PinocchioLaw(job.robot, job.outputs, job.stiffness, job.damping)
        loop = PinocchioLoop(law, job.robot)
        return lambda: loop(job.reference, float(seconds), q0, s0)[0][-1]

    return Comparison(
        f"closed loop, {seconds} s in steps of 1 ms",
        (
            Contender("`cc.simulate`, compiled", lambda: ours(True), inner=True),
            Contender("`cc.simulate`, interpreted", lambda: ours(False)),
            Contender("loop over Pinocchio", peer, "Pinocchio"),
        ),
        seconds,
        5,
        "simulated s",
    )
