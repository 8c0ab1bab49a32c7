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

from concur.codegen import Array, constant
from concur.robot._links import Link, Seat, Step
from concur.robot._motion import Twist, cross
from concur.robot._tree import Tree


@dataclass(frozen=True, eq=False)
class Distribution:
    """Mass, first moment and symmetric second moment (integral of r r^T) in some frame."""

    mass: float | Array
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
    given = tree.numbers
    if given is not None:
        parts = zip(given.masses, given.firsts, given.seconds, strict=True)
        return [Distribution(*part) for part in parts]
    bodies = [body.inertia for body in tree.bodies]
    mass, first, second = link_numbers(
        links,
        seats,
        np.array([inertia.mass for inertia in bodies]),
        np.array([inertia.com for inertia in bodies]),
        tree.tensors,
        np.array([link.offset for link in links]),
        np.array([link.turn for link in links]),
        np.array([seat.translation for seat in seats]),
        np.array([seat.rotation for seat in seats]),
    )
    return [
        Distribution(float(m), constant(h), constant((s + s.T) / 2))
        for m, h, s in zip(mass, first, second, strict=True)
    ]


def link_numbers(
    links: list[Link],
    seats: list[Seat],
    masses: np.ndarray,
    coms: np.ndarray,
    tensors: np.ndarray,
    offsets: np.ndarray,
    turns: np.ndarray,
    translations: np.ndarray,
    rotations: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Numbers of `regrouped` in SI units: masses, first moments (3,) and second moments (3, 3).

    Masses, centres of mass (3,), m, and tensors (3, 3) about them are of the bodies, and so are
    their translations (3,), m, and rotations (3, 3) in their links; offsets (3,), m, and turns
    (3, 3) are those of the links. All may have leading axes of the same shape, for many robots at
    once.
    """
    some = masses.shape[:-1]
    mass = np.zeros((*some, len(links)))
    first, second = np.zeros((*some, len(links), 3)), np.zeros((*some, len(links), 3, 3))
    scales = np.zeros((*some, len(links)))
    for i, seat in enumerate(seats):
        own, turn, to = masses[..., i, None], rotations[..., i, :, :], seat.link
        tensor = turn @ tensors[..., i, :, :] @ np.swapaxes(turn, -1, -2)
        com = (turn @ coms[..., i, :, None])[..., 0] + translations[..., i, :]
        trace = np.trace(tensor, axis1=-2, axis2=-1)[..., None, None]
        spread = trace / 2 * np.eye(3) - tensor + own[..., None] * _outer(com, com)
        mass[..., to] += masses[..., i]
        first[..., to, :] += own * com
        second[..., to, :, :] += spread
        scales[..., to] += np.abs(spread).max(axis=(-2, -1))
    for i in reversed(range(len(links))):
        link = links[i]
        if not link.axial:
            continue
        if (above := link.parent) is not None:
            height, spread = first[..., i, 2, None], second[..., i, 2, 2, None, None]
            axis, at, own = turns[..., i, :, 2], offsets[..., i, :], mass[..., i, None]
            first[..., above, :] += height * axis + own * at
            moved = height[..., None] * _outer(at, axis)
            extra = spread * _outer(axis, axis) + own[..., None] * _outer(at, at)
            extra = extra + moved + np.swapaxes(moved, -1, -2)
            second[..., above, :, :] += extra
            scales[..., above] += np.abs(extra).max(axis=(-2, -1))
            mass[..., above] += mass[..., i]
        mass[..., i] = first[..., i, 2] = second[..., i, 2, 2] = 0.0
    # A remainder of numbers that cancel is rounding.
    second[np.abs(second) < 4e-16 * scales[..., None, None]] = 0.0
    return mass, first, second


def _outer(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.asarray(a[..., :, None] * b[..., None, :])


def composites(own: list[Distribution], links: list[Link], steps: list[Step]) -> list[Distribution]:
    """Distribution of mass of each link with all it carries, in its frame."""
    whole = list(own)
    for i in reversed(range(len(links))):
        parent = links[i].parent
        if parent is not None:
            whole[parent] = whole[parent].plus(whole[i].seen_inwards(steps[i]))
    return whole
