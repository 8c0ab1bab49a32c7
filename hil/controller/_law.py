"""The control law in the loop, evaluated at the reference of each cycle."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from hil._concur import Tick, TickStatus, TrackingLaw
from hil._plan import Plan
from hil._proof import StartRegion
from hil.state.estimator import Estimator


class LoopLaw:
    """The law, its reference, and the progress of the run."""

    __slots__ = (
        "_plan",
        "_tick",
        "buffers",
        "demand",
        "elapsed",
        "error",
        "errors",
        "index",
        "last_error",
        "status",
        "velocity_error",
    )

    def __init__(self, servo: TrackingLaw, tick: Tick, plan: Plan, axes: int) -> None:
        self._tick, self._plan, self.buffers = tick, plan, tick.buffers
        self.errors = servo.buffered("errors")
        self.demand = np.zeros(axes)
        self.error = np.full(servo.size, np.nan)
        self.velocity_error = np.full(servo.size, np.nan)
        self.last_error = np.full(servo.size, np.nan)  # in RUN
        self.status = TickStatus.OK
        self.index = 0  # index of the next instant of the reference
        self.elapsed = math.nan  # time in RUN, s

    def warm_up(self, q: NDArray[np.float64]) -> None:
        """Evaluate all functions once, since first calls are slow; discard the results."""
        buffers = self.buffers
        buffers.q[:] = q
        buffers.s[:] = 0.0
        self._aim(0)
        buffers.period[:] = 0.0
        self._tick.run()
        self._tick.reset()
        self.errors.view(buffers.q, buffers.s, buffers.pose, buffers.twist)

    def _aim(self, k: int) -> None:
        buffers, plan = self.buffers, self._plan
        buffers.t[:] = k * plan.period
        buffers.pose[:] = plan.pose[k]
        buffers.twist[:] = plan.twist[k]
        buffers.acceleration[:] = plan.acceleration[k]

    def evaluate(self, estimator: Estimator, running: bool) -> None:
        """Evaluate the law at the reference of this cycle; in RUN, advance to the next instant."""
        buffers = self.buffers
        k, push = min(self.index, len(self._plan) - 1), self._plan.push
        self._aim(k)
        if not estimator.started:
            return
        buffers.q[:] = estimator.q
        buffers.s[:] = estimator.s
        # Before the run a law's state, such as an integral, stays zero.
        buffers.period[:] = self._plan.period if running else 0.0
        self.status = TickStatus(self._tick.run())
        self.demand[:] = buffers.u if push is None else buffers.u + push[k]
        x, ve = self.errors.view(buffers.q, buffers.s, buffers.pose, buffers.twist)
        self.error[:], self.velocity_error[:] = x, ve
        if running:
            self.last_error[:] = x
            self.index += 1

    def begin(self) -> None:
        """Begin the run at the first instant, for which the law was evaluated in this cycle."""
        self.index, self.elapsed = 1, 0.0
        self.last_error[:] = self.error

    def follow(self) -> None:
        """Set `elapsed` to the instant at which the law was evaluated last."""
        self.elapsed = (self.index - 1) * self._plan.period

    @property
    def is_done(self) -> bool:
        """Whether the law was evaluated at the last instant."""
        return self.index >= len(self._plan)

    def starts_in(self, region: StartRegion, q: NDArray[np.float64]) -> bool:
        """Whether the state is one of the starts of a proof."""
        return region.contains(self.error, self.velocity_error, q)

    def is_within(self, bound: float) -> bool:
        """Whether all tracking errors are within a bound; False for NaN."""
        return all(-bound <= value <= bound for value in self.error.tolist())
