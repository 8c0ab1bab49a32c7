"""The torque of a cycle, in the loop and in replay: limited by the guard, or of a stop."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from hil.guard import Limits, Verdict, brake, hold, judge, policy_torque
from hil.latch import Action
from hil.reasons import Reason
from hil.settings import Policies, Policy

Vector = NDArray[np.float64]

Failing = tuple[Policy, Reason, int]
"""Policy for faulty cycles, its reason to stop, and the number of consecutive faulty cycles."""


class CycleTorque:
    """Torques of the axes, in vectors that are allocated once; `sent` is sent to the drives."""

    __slots__ = (
        "_anchor",
        "_heats",
        "_held",
        "_patience",
        "_period",
        "carried",
        "flags",
        "heat",
        "limits",
        "passed",
        "sent",
    )

    def __init__(self, limits: Limits, policies: Policies, period: float) -> None:
        self.limits, self._period, self._patience = limits, period, policies.max_consecutive_faults
        self.sent, self.passed = np.zeros(limits.size), np.zeros(limits.size)
        self._held, self._anchor = np.zeros(limits.size), np.zeros(limits.size)
        self.carried = np.zeros(limits.size)  # the law's last torque, if a stop holds at once
        # Share of the heat that each motor bears; a run starts with cold motors.
        self.heat = np.zeros(limits.size)
        self._heats = bool(np.isfinite(limits.continuous).any())
        self.flags = 0  # bits of `Flag`: enumerations are slow

    def judge(
        self,
        demand: Vector,
        failing: Failing | None,
        position: Vector,
        velocity: Vector,
        ages: Vector,
    ) -> Verdict:
        """Check the law's torque, or that of the policy, with the guard; result in `passed`."""
        if self._heats and (self.heat > 1.0).any():
            self.passed.fill(0.0)
            self.flags = 0
            return Verdict(Reason.OVERHEATED, axis=int(self.heat.argmax()))
        limits, period, self.flags = self.limits, self._period, 0
        if failing is not None:
            policy, reason, cycles = failing
            verdict = policy_torque(
                policy,
                reason,
                cycles,
                self._patience,
                self.sent,
                velocity,
                ages,
                limits,
                period,
                self._held,
            )
            if verdict.stops:
                self.passed.fill(0.0)
                return verdict
            demand, self.flags = self._held, int(verdict.flags)
        verdict = judge(demand, self.sent, position, velocity, ages, limits, period, self.passed)
        self.flags |= int(verdict.flags)
        return verdict

    def warm(self, cycles: float) -> None:
        """Heat the motors by `sent`, during cycles: T h' = (u / continuous)^2 - h."""
        if not self._heats:
            return
        limits = self.limits
        # Functions of the C library, as in C: NumPy's have other last digits.
        times = np.broadcast_to(limits.thermal_time, limits.shape).tolist()
        share = np.array([-math.expm1(-cycles * self._period / time) for time in times])
        self.heat += share * ((self.sent / limits.continuous) ** 2 - self.heat)

    def anchor(self, position: Vector, carries: bool) -> None:
        """Set the position to hold; `carries`: add the last torque, at the end of a task."""
        self._anchor[:] = position
        self.carried[:] = self.sent if carries else 0.0

    def act(self, action: Action, position: Vector, velocity: Vector, ages: Vector) -> None:
        """Set `sent` to the torque of an action of the latch."""
        limits, sent = self.limits, self.sent
        if action is Action.LAW:
            sent[:] = self.passed
        elif action is Action.BRAKE:
            brake(velocity, ages, limits, sent)
        elif action is Action.HOLD:
            hold(position, self._anchor, velocity, ages, limits, sent)
            sent += self.carried
            np.clip(sent, -limits.torque, limits.torque, out=sent)
        else:
            sent[:] = 0.0
