"""Limits for tests, and the smallest loop that uses guard and latch as the controller does."""

import numpy as np

from hil.guard import Action, Latch, Limits, brake, hold, judge, largest_speed
from hil.latch import Reason
from hil.rig import Axis, Policies

PERIOD = 0.004


def axis(name="joint", **changes):
    values = {
        "name": name,
        "drive": "mit",
        "node": 1,
        "torque_limit": 10.0,
        "torque_rate_limit": 500.0,
        "speed_limit": 4.0,
        "position_limits": (-2.0, 2.0),
        "power_limit": 30.0,
        "damping": 2.0,
        "stiffness": 50.0,
    }
    return Axis(**(values | changes))


def limits(size=3, largest_age=None, **changes):
    return Limits.from_axes([axis(f"j{i}", **changes) for i in range(size)], PERIOD, largest_age)


def wheels(size=3, **changes):
    """Limits without ends, power bound or a rate that would be felt."""
    free = {
        "position_limits": (-np.inf, np.inf),
        "power_limit": np.inf,
        "torque_rate_limit": 1e9,
    }
    return limits(size, **(free | changes))


class Loop:
    """Guard and latch in the order of the controller; `mode` must have no effect."""

    def __init__(self, bounds, policies=None, mode="drive"):
        self.limits = bounds
        self.policies = policies or Policies()
        self.mode = mode
        self.latch = Latch(self.policies, PERIOD)
        self.torque = np.zeros(bounds.size)
        self.anchor = np.zeros(bounds.size)
        self.now = 1000.0
        self.sent = []
        self.verdict = None

    def cycle(self, demand, q=None, v=None, ages=None, reason=Reason.NONE, now=None):
        n = self.limits.size
        q = np.zeros(n) if q is None else q
        v = np.zeros(n) if v is None else v
        ages = np.full(n, 0.001) if ages is None else ages
        self.now = self.now + PERIOD if now is None else now
        out = np.empty(n)
        asked = demand if self.latch.action is Action.LAW else np.zeros(n)
        self.verdict = judge(asked, self.torque, q, v, ages, self.limits, PERIOD, out)
        holding = self.latch.action is Action.HOLD
        self.latch.step(
            self.now, reason or self.verdict.reason, largest_speed(v, ages, self.limits)
        )
        action = self.latch.action
        if action is Action.BRAKE:
            brake(v, ages, self.limits, out)
        elif action is Action.HOLD:
            if not holding:
                self.anchor[:] = q
            hold(q, self.anchor, v, ages, self.limits, out)
        elif action is not Action.LAW:
            out.fill(0.0)
        self.torque = out
        self.sent.append(out.copy())
        return out

    def start(self):
        """Through prelude into RUN."""
        zero = np.zeros(self.limits.size)
        self.cycle(zero)
        self.latch.arm()
        while not self.latch.may_run:
            self.cycle(zero)
        self.latch.run()
        self.sent.clear()
        return self
