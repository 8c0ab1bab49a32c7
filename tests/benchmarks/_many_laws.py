"""Whole laws of many robots: from Python, in a loop in C, and how long they are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

import concur as cc
from tests.benchmarks._contender import CALLS, Comparison, Contender, Law, looped, through
from tests.benchmarks._floating_comparisons import floating, without_zeros
from tests.benchmarks._floating_job import DAMPING, MOMENTUM, STIFFNESS, floating_moments
from tests.benchmarks._floating_pinocchio import PinocchioFloatingLaw
from tests.benchmarks._job import Moment
from tests.benchmarks._pinocchio import PinocchioLaw
from tests.benchmarks._pinocchio_hands import PinocchioHandsLaw
from tests.benchmarks._robots import bent, chain, dual_arm, humanoid
from tests.benchmarks._rover_comparisons import drawn, peer_law

PLANAR_MOMENTUM = np.array([1.0, -0.5, 0.0, 0.0, 0.0, 0.8])
"""Of the planar floater about the inertial origin, kg m/s and kg m^2/s."""


@dataclass(frozen=True)
class LawCase:
    """A servo, the states in which it is timed, and the same law by others.

    Parameters
    ----------
    servo : Servo
        Ours.
    states : list of Moment
        States.
    peer : callable, optional
        Makes the law over Pinocchio.
    """

    servo: cc.Servo
    states: list[Moment]
    peer: Callable[[], Law] | None


@cache
def planar() -> LawCase:
    """The planar floater; its hand's place in the plane is the output."""
    robot = cc.robots.planar_floater()
    hand = cc.Output("hand", "forearm", "R2", (0.4, 0.0, 0.0))
    servo = cc.Servo(cc.reduce(robot, momentum=PLANAR_MOMENTUM), [hand], STIFFNESS, DAMPING)
    rng = np.random.default_rng(0)
    states = []
    for _ in range(CALLS):
        q = np.array([0.3, -0.2, 0.5, 0.6, -1.2]) + rng.uniform(-0.4, 0.4, 5)
        s = rng.uniform(-1.0, 1.0, servo.ns)
        pose = servo.output(q) + rng.uniform(-0.2, 0.2, 2)
        sample = cc.ReferenceSample(pose, rng.uniform(-0.3, 0.3, 2), rng.uniform(-0.3, 0.3, 2))
        states.append(Moment(q, s, servo.model.velocity(q, s), sample))
    return LawCase(servo, states, None)


@cache
def hands(robot: cc.Mechanism, *bodies: str) -> LawCase:
    """Poses of hands of a floating robot whose arms have joints left over."""
    outputs = [cc.Output(body, body, "SE3") for body in bodies]
    servo = cc.Servo(cc.reduce(robot, momentum=MOMENTUM), outputs, STIFFNESS, DAMPING)
    states = floating_moments(servo, bent(robot), CALLS)
    return LawCase(
        servo,
        states,
        lambda: PinocchioHandsLaw(robot, bodies, STIFFNESS, DAMPING, MOMENTUM),
    )


def _floating(tilted: bool) -> LawCase:
    job, servo, states = without_zeros() if tilted else floating()
    return LawCase(servo, states, lambda: PinocchioFloatingLaw(job))


LAWS: dict[str, Callable[[], LawCase]] = {
    "planar floater, place of the hand": planar,
    "free-flyer, 6 joints, pose of the hand": lambda: _floating(False),
    "the same without structural zeros": lambda: _floating(True),
    "rover with an arm, places of base and hand": lambda: LawCase(
        *drawn()[1:], lambda: peer_law(PinocchioLaw)
    ),
    "two arms of 7 joints, poses of both hands": lambda: hands(
        dual_arm(), "left_tool", "right_tool"
    ),
    "24 joints, pose of the hand": lambda: hands(chain(24), "link_tool"),
    "48 joints, pose of the hand": lambda: hands(chain(48), "link_tool"),
    "humanoid of 40 joints, pose of a hand": lambda: hands(humanoid(), "left_arm8"),
}


def law_comparison(name: str) -> Comparison:
    """One law by all who do it; nothing is built yet."""
    made = LAWS[name]
    contenders = [
        Contender("ours", lambda: through(made().servo.compile(), made().states)),
        Contender("ours, inner", lambda: looped(made().servo, made().states), inner=True),
    ]
    if name != next(iter(LAWS)):
        contenders.append(Contender("over Pinocchio", lambda: _peer(made), "Pinocchio"))
    return Comparison(name, tuple(contenders), CALLS, 60)


def _peer(made: Callable[[], LawCase]) -> Callable[[], np.ndarray]:
    found = made()
    if found.peer is None:
        raise ValueError("nobody wrote this law over Pinocchio")
    return through(found.peer(), found.states)
