"""Who is timed beside whom on the rover."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

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
from tests.benchmarks._job import Moment, moments, servo_of, start, task
from tests.benchmarks._mujoco import MujocoLaw
from tests.benchmarks._pinocchio import PinocchioFunctions, PinocchioLaw, PinocchioLoop

BODY = "forearm"
"""Body whose Jacobian is asked for."""


@cache
def drawn() -> tuple[cc.Task, cc.Servo, list[Moment]]:
    """Task, servo and the states of all comparisons."""
    job = task()
    servo = servo_of(job)
    return job, servo, moments(job, servo, CALLS)


def peer_law(kind: type[PinocchioLaw] | type[MujocoLaw]) -> PinocchioLaw | MujocoLaw:
    """Build a peer's law for the task."""
    job = drawn()[0]
    return kind(job.robot, job.outputs, job.stiffness, job.damping)


def rover_comparisons() -> list[Comparison]:
    """List all comparisons; nothing is built yet."""
    return [
        Comparison(
            "whole law, one control tick",
            (
                Contender("`tick(q, s, sample)`", lambda: _through(drawn()[1].compile())),
                Contender(
                    "buffers filled by the caller, `tick.update()`", lambda: filled(*drawn()[1:])
                ),
                Contender(
                    "`tick.update()` alone, numbers already in place", lambda: updated(*drawn()[1:])
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
                Contender("`Mechanism`, `reduce`, `Servo`, `compile`, first call", _build),
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
        _simulation(1),
        _simulation(10),
        *_functions(),
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
    def ours() -> Run:
        job, servo, _ = drawn()
        q0, s0 = start(job, servo)
        return lambda: cc.simulate(job.robot, servo, job.reference, float(seconds), q0, s0).q[-1]

    def peer() -> Run:
        job, servo, _ = drawn()
        q0, s0 = start(job, servo)
        law = PinocchioLaw(job.robot, job.outputs, job.stiffness, job.damping)
        loop = PinocchioLoop(law, job.robot)
        return lambda: loop(job.reference, float(seconds), q0, s0)[0][-1]

    return Comparison(
        f"closed loop, {seconds} s in steps of 1 ms",
        (
            Contender("`cc.simulate`", ours),
            Contender("loop over Pinocchio", peer, "Pinocchio"),
        ),
        seconds,
        9,
        "simulated s",
    )


def _functions() -> list[Comparison]:
    rows = [
        (
            "mass matrix",
            Contender("`robot.mass_matrix(q)`", lambda: _of_q(_robot().mass_matrix)),
            Contender("`crba`", lambda: _of_q(_peer().mass_matrix, _peer()), "Pinocchio"),
        ),
        (
            "bias forces",
            Contender("`robot.bias(q, v)`", lambda: _of_state(_robot().bias)),
            Contender("`nonLinearEffects`", lambda: _of_state(_peer().bias, _peer()), "Pinocchio"),
        ),
        (
            f"Jacobian of the {BODY}",
            Contender(
                f'`robot.jacobian(q, "{BODY}")`',
                lambda: _of_q(_robot().jacobian, None, BODY),
            ),
            Contender(
                "`computeJointJacobian`", lambda: _of_q(_peer().jacobian, _peer()), "Pinocchio"
            ),
        ),
        (
            "momentum about the inertial origin",
            Contender("`robot.momentum(q, v)`", lambda: _of_state(_robot().momentum)),
            Contender(
                "`computeCentroidalMomentum`, moved to the origin",
                lambda: _of_state(_peer().momentum, _peer()),
                "Pinocchio",
            ),
        ),
        (
            "these four together",
            Contender("the four calls", _four),
            Contender("`computeAllTerms`", _all_terms, "Pinocchio"),
        ),
    ]
    return [Comparison(job, (ours, peer), CALLS, 200) for job, ours, peer in rows]


def _robot() -> cc.Mechanism:
    return drawn()[0].robot


@cache
def _peer() -> PinocchioFunctions:
    job = drawn()[0]
    law = PinocchioLaw(job.robot, job.outputs, job.stiffness, job.damping)
    return PinocchioFunctions(law, BODY)


def _states(peer: PinocchioFunctions | None) -> list[tuple[np.ndarray, np.ndarray]]:
    """States in our coordinates, or already in those of the peer."""
    states = drawn()[2]
    return [(m.q if peer is None else peer.configuration(m.q), m.v) for m in states]


def _of_q(
    function: Callable[..., np.ndarray], peer: PinocchioFunctions | None = None, *rest: str
) -> Run:
    configurations = [q for q, _ in _states(peer)]

    def run() -> np.ndarray:
        for q in configurations:
            result = function(q, *rest)
        return result

    return run


def _of_state(
    function: Callable[[np.ndarray, np.ndarray], np.ndarray],
    peer: PinocchioFunctions | None = None,
) -> Run:
    states = _states(peer)

    def run() -> np.ndarray:
        for q, v in states:
            result = function(q, v)
        return result

    return run


def _four() -> Run:
    robot, states = _robot(), _states(None)

    def run() -> np.ndarray:
        for q, v in states:
            mass = robot.mass_matrix(q)
            bias = robot.bias(q, v)
            robot.jacobian(q, BODY)
            robot.momentum(q, v)
        return np.column_stack([mass, bias])

    return run


def _all_terms() -> Run:
    peer = _peer()
    states = _states(peer)

    def run() -> np.ndarray:
        for q, v in states:
            peer.all_terms(q, v)
        return np.column_stack([peer.data.M, peer.data.nle])

    return run
