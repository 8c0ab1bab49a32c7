"""Our law with its limits inside, called as the others are."""

from __future__ import annotations

import numpy as np

import concur as cc
from tests.benchmarks._limited_scenarios import Scenario


class Constrained:
    """The servo with constraints: limits of torques, positions and speeds from the robot.

    Parameters
    ----------
    scenario : Scenario
        Robot, outputs, gains, limits, ball and ground are read.
    """

    def __init__(self, scenario: Scenario) -> None:
        self.servo = scenario.servo(constraints=cc.Constraints())
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
