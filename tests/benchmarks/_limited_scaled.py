"""The servo as it was before it had constraints, over Pinocchio: its command is scaled down.

Torques are ``g + a (u - g)`` with g those without acceleration, and the largest a up to 1 within
limits, so that errors keep their direction. Where there is none, torques within limits come nearest
to a command in that direction, in the scales of the margin. Below a threshold of the margin the
equation of the outputs is damped. No other limit acts.
"""

from __future__ import annotations

import numpy as np
import pinocchio as pin
from scipy.optimize import lsq_linear

import concur as cc
from tests.benchmarks._limited_scenarios import Scenario
from tests.benchmarks._limited_twin import Twin

REST = 2.0
"""Rate at which internal motion comes to rest, 1/s."""

SINGULAR = 1e-3
"""Margin below which there is no torque."""


class ScaledServo:
    """The law, called with state and demand.

    Parameters
    ----------
    scenario : Scenario
        Robot, outputs, gains, limits of torques and threshold of damping are read.
    """

    def __init__(self, scenario: Scenario) -> None:
        self.twin, self.limits = Twin(scenario), scenario.torques
        self.threshold = scenario.threshold
        servo = scenario.servo()
        self.scales = servo.margins.scales[0]
        self.square = servo.size == scenario.robot.nu
        self.side = 0.0

    def __call__(
        self, t: float, q: np.ndarray, v: np.ndarray, sample: cc.ReferenceSample
    ) -> np.ndarray:
        twin, own = self.twin, self.twin.configuration(q)
        mass = pin.crba(twin.model, twin.data, own)
        bias = pin.nonLinearEffects(twin.model, twin.data, own, v)
        twin.kinematics(own, v)
        rows, wanted = twin.commanded(v, sample)
        lift, drift = twin.lift(mass, bias)
        force = lift.T @ mass
        rows, wanted = self.scales[:, None] * rows, self.scales * wanted
        sdot = self._shape(rows, wanted, lift, drift, force, v)
        still = lift.T @ bias + force @ drift
        way = force @ lift @ sdot
        if (np.abs(still) > self.limits).any():
            return self._nearest(rows @ lift, force @ lift, sdot, still)
        with np.errstate(divide="ignore"):
            room = np.where(way > 0.0, self.limits - still, self.limits + still) / np.abs(way)
        return still + min(1.0, room.min()) * way

    def _nearest(
        self, decoupling: np.ndarray, mass: np.ndarray, sdot: np.ndarray, still: np.ndarray
    ) -> np.ndarray:
        """Torques within limits whose outputs accelerate nearest to a share of the command."""
        effect = np.linalg.solve(mass, decoupling.T).T
        matrix = np.column_stack([effect, -decoupling @ sdot])
        bounds = [*-self.limits, 0.0], [*self.limits, 1.0]
        return lsq_linear(matrix, effect @ still, bounds).x[:-1]

    def _shape(self, rows, wanted, lift, drift, force, v) -> np.ndarray:
        """Accelerations of the driven joints: least energy beside those that bring rest."""
        decoupling = rows @ lift
        spread = np.linalg.solve(force @ lift, decoupling.T)
        inner = decoupling @ spread
        margin = float(np.sqrt(max(np.linalg.eigvalsh(inner)[0], 0.0)))
        pull = np.zeros(len(lift.T)) if self.square else -REST * v[self.twin.driven]
        damping = 0.0
        if self.threshold is not None:
            damping = max(0.0, self.threshold**2 - margin**2)
        else:
            side = np.sign(np.linalg.det(decoupling)) if self.square else 1.0
            if margin < SINGULAR or side * self.side < 0.0:
                raise RuntimeError(f"singular configuration, margin {margin:.2g}")
            self.side = side
        rest = wanted - rows @ drift - decoupling @ pull
        return pull + spread @ np.linalg.solve(inner + damping * np.eye(len(inner)), rest)
