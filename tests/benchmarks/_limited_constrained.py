"""Our law with its limits inside, called as the others are."""

from __future__ import annotations

import numpy as np

import concur as cc
from concur.proofs import Capsule, Obstacle
from tests.benchmarks._limited_scenarios import Scenario


def limits(scenario: Scenario) -> cc.Constraints:
    """Those of joints and ground; capsules that keep away from the ball, if there is one."""
    if (ground := scenario.ground) is not None:
        return cc.Constraints(grip=ground.grip, least_load=ground.load)
    if (ball := scenario.ball) is None:
        return cc.Constraints()
    capsules = tuple(Capsule.of(scenario.robot, body) for body in ball.bodies)
    obstacle = Obstacle("ball", ball.centre, ball.centre, ball.radius, distance=ball.distance)
    return cc.Constraints(capsule=capsules, obstacle=(obstacle,))


class Constrained:
    """The servo with constraints: limits from the robot, distances from the scenario.

    Parameters
    ----------
    scenario : Scenario
        Robot, outputs, gains, limits, ball and ground are read.
    """

    def __init__(self, scenario: Scenario) -> None:
        self.servo = scenario.servo(constraints=limits(scenario))
        self.tick, self.shape = self.servo.compile(), list(scenario.model.shape)
        self.rows: list[np.ndarray] = []

    def __call__(
        self, t: float, q: np.ndarray, v: np.ndarray, sample: cc.ReferenceSample
    ) -> np.ndarray:
        u = self.tick(q, v[self.shape], sample)
        self.rows.append(self.tick.buffers.active > 0.0)
        return u

    @property
    def said(self) -> dict[str, np.ndarray]:
        """Where each limit was active, by its name."""
        return dict(zip(self.servo.limit_names, np.array(self.rows).T, strict=True))
