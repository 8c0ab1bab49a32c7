"""Distribution of mass of the links, regrouped so that most of its numbers are zero.

Of a link that turns about its axis z, mass on the axis moves as if it belonged to the parent:
its mass, the height of its first moment and its spread along z. Handing these three inwards,
link by link, leaves the kinetic energy and the work of gravity as they are, for all motions
(base inertial parameters of Gautier and Khalil), and all mass ends at the base.
"""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np

from concur.codegen import Array
from concur.kinematics import Link, Seat, Step, Twist, constant, cross
from concur.mechanism import Tree


@dataclass(frozen=True, eq=False)
class Distribution:
    """Mass, first moment and symmetric second moment (integral of r r^T) in some frame."""

    mass: float
    first: Array
    second: Array

    @property
    def tensor(self) -> Array:
        """Inertia tensor about the frame's origin, shape (3, 3), kg m^2."""
        xx, yy, zz = (self.second[k, k] for k in range(3))
        tensor = -self.second
        tensor[0, 0], tensor[1, 1], tensor[2, 2] = yy + zz, xx + zz, xx + yy
        return ca.sparsify(tensor)

    def momentum(self, twist: Twist) -> Twist:
        """Momentum (linear, angular) of a twist; the parts may be (3, k) matrices."""
        linear, angular = twist
        return (
            self.mass * linear - cross(self.first, angular),
            cross(self.first, linear) + self.tensor @ angular,
        )

    def plus(self, other: Distribution) -> Distribution:
        """Both together."""
        return Distribution(
            self.mass + other.mass, self.first + other.first, self.second + other.second
        )

    def seen_inwards(self, step: Step) -> Distribution:
        """The same mass in the frame of the link's parent."""
        first, offset = step.inwards(self.first), step.offset
        arm = first + self.mass / 2 * offset
        shift = ca.SX(3, 3)
        for a in range(3):
            for b in range(a, 3):
                entry = (
                    2 * offset[a] * arm[a] if a == b else offset[a] * arm[b] + offset[b] * arm[a]
                )
                shift[a, b] = shift[b, a] = entry
        return Distribution(
            self.mass,
            first + self.mass * offset,
            ca.sparsify(step.seen_inwards(self.second) + shift),
        )


def regrouped(tree: Tree, links: list[Link], seats: list[Seat]) -> list[Distribution]:
    """Distribution of mass of each link, in its frame, with what is handed inwards."""
    mass = np.zeros(len(links))
    first, second = np.zeros((len(links), 3)), np.zeros((len(links), 3, 3))
    scales = np.zeros(len(links))
    for body, seat in zip(tree.bodies, seats, strict=True):
        inertia = body.inertia
        tensor = seat.rotation @ inertia.tensor @ seat.rotation.T
        com = seat.rotation @ np.array(inertia.com) + seat.translation
        spread = np.trace(tensor) / 2 * np.eye(3) - tensor + inertia.mass * np.outer(com, com)
        mass[seat.link] += inertia.mass
        first[seat.link] += inertia.mass * com
        second[seat.link] += spread
        scales[seat.link] += np.abs(spread).max()
    for i in reversed(range(len(links))):
        link = links[i]
        if not link.axial:
            continue
        height, spread = first[i, 2], second[i, 2, 2]
        if (above := link.parent) is not None:
            axis, at = link.turn[:, 2], link.offset
            first[above] += height * axis + mass[i] * at
            moved = height * np.outer(at, axis)
            own = spread * np.outer(axis, axis) + mass[i] * np.outer(at, at) + moved + moved.T
            second[above] += own
            scales[above] += np.abs(own).max()
            mass[above] += mass[i]
        mass[i] = first[i, 2] = second[i, 2, 2] = 0.0
    # A remainder of numbers that cancel is rounding.
    second[np.abs(second) < 4e-16 * scales[:, None, None]] = 0.0
    return [
        Distribution(float(m), constant(h), constant((s + s.T) / 2))
        for m, h, s in zip(mass, first, second, strict=True)
    ]


def composites(own: list[Distribution], links: list[Link], steps: list[Step]) -> list[Distribution]:
    """Distribution of mass of each link with all it carries, in its frame."""
    whole = list(own)
    for i in reversed(range(len(links))):
        parent = links[i].parent
        if parent is not None:
            whole[parent] = whole[parent].plus(whole[i].seen_inwards(steps[i]))
    return whole
