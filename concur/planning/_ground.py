"""What wheels and supports carry along a planned motion: loads, moments about edges, friction.

Loads N, sizes |F| of the forces of the ground on wheels and moments about the edges of the polygon
of contacts are quantities of a plan. Its rows are linear in them: a load, a moment, and the reserve
``grip N - |F|`` of each wheel.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from concur.control import GroundLimits
from concur.reduction import ReducedModel, load_arms, tipping_rows, wheel_forces

SMALL = 1e-6
"""Force, in weights of the robot, below which the size of a force is smooth."""

COUNTED = 0.3
"""Share of the mean load by which a lacking one counts as a torque at twice its limit."""


@dataclass(frozen=True)
class Ground:
    """Contacts of a plan, and which of their quantities count.

    `gripping` are the places of wheels whose friction is limited, `edges` those of the contacts of
    each edge that has a moment, and with `loaded` each contact has a load.
    """

    names: tuple[str, ...]
    compliance: tuple[float, ...] | None
    edges: tuple[tuple[int, int], ...]
    gripping: tuple[int, ...]
    loaded: bool

    @classmethod
    def of(cls, limits: GroundLimits | None) -> Ground | None:
        """Contacts of limits."""
        if limits is None:
            return None
        gripping = tuple(limits.names.index(name) for name in limits.grips)
        loaded = bool(limits.loads or limits.grips)
        return cls(limits.names, limits.compliance, tuple(limits.edges), gripping, loaded)

    @property
    def count(self) -> int:
        """Number of quantities: moments, loads, sizes of forces."""
        return len(self.edges) + len(self.names) * self.loaded + len(self.gripping)

    def quantities(self, model: ReducedModel, q: Any, s: Any, a: Any, torques: Any) -> Any:
        """Moments (N m), loads and sizes of forces (N) over SX."""
        robot, v = model.robot, model.velocity(q, s)
        vdot = model.lift(q)[0] @ a + model.velocity_drift(q, v)
        loads = dict.fromkeys(self.names, 0.0) if self.loaded else {}
        every = GroundLimits(self.names, loads, {}, 0.0, list(self.edges), self.compliance)
        found = [value for _, value in every.beyond(robot, q, v, vdot)[0]]
        if self.gripping:
            rest = robot.inverse_dynamics(q, v, vdot) - robot.actuation(q) @ torques
            forces, small = wheel_forces(robot, q, rest), SMALL * weight_of(model)
            found += [ca.sqrt(ca.sumsqr(forces[k]) + small**2) for k in self.gripping]
        return ca.vertcat(*found)

    def rows(
        self, model: ReducedModel, limits: GroundLimits
    ) -> Iterator[tuple[str, str, float, float, dict[int, float]]]:
        """Name, unit, scale, least value and factors of the quantities of each row."""
        weight = weight_of(model)
        first, load = len(self.edges), COUNTED * weight / len(self.names)
        if self.edges:
            arms = load_arms(model.robot, ca.SX.sym("q", model.nq), model.robot.supports)
            moments = np.array(ca.DM(tipping_rows(arms, list(self.edges)) @ arms))
            for k, (i, j) in enumerate(self.edges):
                name = f"tipping over {self.names[i]} to {self.names[j]}"
                scale = COUNTED * weight * float(moments[k].mean())
                yield name, "N m", scale, limits.tipping, {k: 1.0}
        for name, least in limits.loads.items():
            yield f"load of {name}", "N", load, least, {first + self.names.index(name): 1.0}
        forces = first + len(self.names)
        for k, at in enumerate(self.gripping):
            name = self.names[at]
            row = {first + at: limits.grips[name], forces + k: -1.0}
            yield f"grip reserve of {name}", "N", load * limits.grips[name], 0.0, row


def weight_of(model: ReducedModel) -> float:
    """Weight of a robot, N."""
    masses = sum(body.inertia.mass for body in model.robot.bodies)
    return float(np.linalg.norm(model.robot.gravity)) * float(masses)
