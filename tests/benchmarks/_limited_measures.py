"""What is measured in a run: errors, recovery, violations, variation of torques, active limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

import concur as cc
from tests.benchmarks._limited_scenarios import PERIOD, Scenario
from tests.benchmarks._limited_twin import Twin

REACHED = 1e-3
"""Error from which on a reference is followed again, m and rad."""

NEAR = {"torque": 1e-6, "speed": 1e-2, "position": 2e-3, "distance": 2e-3, "grip": 2e-2}
NEAR["load"] = NEAR["grip"]
"""How near to a limit it counts as active: share of a torque, speed, grip and load; rad and m."""

ROUNDING = 1e-9
"""Share of a limit beyond it that is rounding."""


@dataclass(frozen=True, eq=False)
class Limit:
    """One limit over time.

    Parameters
    ----------
    kind, name : str
        A key of `NEAR`, and what it limits.
    room : numpy.ndarray
        How far the quantity is from it, in `unit`, shape (k,): below zero it is exceeded.
    size : float
        Its size, in the unit.
    unit : str
        Its unit.
    """

    kind: str
    name: str
    room: np.ndarray
    size: float
    unit: str

    @property
    def active(self) -> np.ndarray:
        """Where it is reached."""
        shares = self.kind in ("torque", "speed", "grip", "load")
        return self.room <= NEAR[self.kind] * (self.size if shares else 1.0)

    @property
    def beyond(self) -> float:
        """Largest excess."""
        excess = -float(self.room.min())
        return excess if excess > ROUNDING * max(self.size, 1.0) else 0.0


@dataclass(frozen=True, eq=False)
class Passage:
    """One law in one scenario, a row per tick.

    Parameters
    ----------
    scenario : Scenario
        The scenario.
    twin : Twin
        Its robot.
    law : str
        The law.
    q, v, u : numpy.ndarray
        Configurations, velocities and torques.
    errors : numpy.ndarray
        Errors as of `Twin.errors`, shape (k, errors).
    clearance, grip, load : numpy.ndarray
        Distance from the ball less the one to keep, m; least friction that suffices; least load of
        wheels and caster, N; NaN without ball or ground.
    seconds : float
        Median time of a call, s.
    ended : str
        Why it ended early; empty otherwise.
    relaxed : int
        Ticks whose programme had no solution as it stands.
    said : mapping of str to numpy.ndarray
        Where the law says that a limit is active, by its name; empty for laws that say nothing.
    """

    scenario: Scenario
    twin: Twin
    law: str
    q: np.ndarray
    v: np.ndarray
    u: np.ndarray
    errors: np.ndarray
    clearance: np.ndarray
    grip: np.ndarray
    load: np.ndarray
    seconds: float
    ended: str = ""
    relaxed: int = 0
    said: Mapping[str, np.ndarray] = field(default_factory=dict)

    @property
    def t(self) -> np.ndarray:
        """Times, s."""
        return PERIOD * np.arange(len(self.q))

    @cached_property
    def error_units(self) -> list[tuple[str, str]]:
        """Name and unit of each error."""
        found = []
        for output in self.scenario.outputs:
            found.append((output.name, "m"))
            if output.group == "R3xSO3":
                found.append((f"{output.name}, attitude", "rad"))
        return found

    @cached_property
    def limits(self) -> list[Limit]:
        """All limits of the scenario."""
        robot, twin = self.scenario.robot, self.twin
        joints = cc.control.JointLimits.of(robot)
        names = robot.actuated
        found = [
            Limit("torque", f"torque of {name}", most - np.abs(u), float(most), "N m")
            for name, most, u in zip(names, self.scenario.torques, self.u.T, strict=True)
        ]
        for name, (low, high), q in zip(
            names, joints.positions[twin.angles], self.q.T[twin.angles], strict=True
        ):
            room = np.minimum(q - low, high - q)
            found.append(Limit("position", f"position of {name}", room, 1.0, "rad"))
        for name, most, v in zip(
            names, joints.speeds[twin.driven], self.v.T[twin.driven], strict=True
        ):
            found.append(Limit("speed", f"speed of {name}", most - np.abs(v), float(most), "rad/s"))
        if self.scenario.ball is not None:
            found.append(Limit("distance", "distance from the ball", self.clearance, 1.0, "m"))
        if self.scenario.ground is not None:
            most, least = self.scenario.ground.grip, self.scenario.ground.load
            found.append(Limit("grip", "grip of the wheels", most - self.grip, most, ""))
            found.append(Limit("load", "least load", self.load - least, least, "N"))
        return [limit for limit in found if np.isfinite(limit.room).any()]

    @property
    def recovery(self) -> float:
        """Time from the arrival of the reference until errors stay small, s; infinite if never."""
        late = np.flatnonzero((self.errors > REACHED).any(axis=1))
        if self.ended or (late.size and late[-1] == len(self.errors) - 1):
            return np.inf
        last = self.t[late[-1]] + PERIOD if late.size else 0.0
        return max(0.0, float(last - self.scenario.arrival))

    @property
    def variation(self) -> float:
        """Largest change of a torque from tick to tick while the reference waits first, N m."""
        first, last = (round(t / PERIOD) for t in self.scenario.limited_rest)
        if len(self.u) < last:
            return np.nan
        return float(np.abs(np.diff(self.u[first:last], axis=0)).max())

    @property
    def fastest(self) -> float:
        """Largest speed of a joint, rad/s."""
        return float(np.abs(self.v[:, self.twin.driven]).max())

    def shown_errors(self, values: np.ndarray) -> str:
        """Errors with their units."""
        shown = [
            f"{value:.2g} {unit}" for value, (_, unit) in zip(values, self.error_units, strict=True)
        ]
        return ", ".join(shown)

    @property
    def shown_recovery(self) -> str:
        """Recovery in words."""
        if self.ended:
            return f"ended at {self.t[-1]:.2f} s"
        return f"{self.recovery:.2g} s" if np.isfinite(self.recovery) else "none"

    @property
    def shown_beyond(self) -> str:
        """Largest excess of each kind of limit; what the law knows nothing of counts too."""
        worst: dict[str, tuple[float, str]] = {}
        for limit in self.limits:
            worst[limit.kind] = max(worst.get(limit.kind, (0.0, "")), (limit.beyond, limit.unit))
        return (
            ", ".join(f"{k} {x:.2g} {unit}".strip() for k, (x, unit) in worst.items() if x) or "0"
        )

    @property
    def shown_variation(self) -> str:
        """Variation in words."""
        return f"{self.variation:.1e} N m" if np.isfinite(self.variation) else "ended"
