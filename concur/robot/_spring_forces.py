"""Forces and energy of springs and dampers at a posture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca

from concur.codegen import Array, Vector, constant
from concur.robot._links import Posture
from concur.robot._shapes import TINY
from concur.robot._spatial import Twist, cross, plus
from concur.robot._spring import Spring, coordinate
from concur.robot._tree import Tree


@dataclass(frozen=True, eq=False)
class Stretch:
    """A spring between two points at a posture: the square of its length, and its ends.

    `ends` are link, place in the link, and way to the other end in the axes of the link.
    """

    square: Array
    ends: tuple[tuple[int, Array, Array], ...]

    @staticmethod
    def of(tree: Tree, spring: Spring, posture: Posture) -> Stretch:
        """The spring at a posture."""
        frames, places = posture.frames(), []
        for body, point in ((spring.body, spring.point), (spring.other, spring.other_point)):
            seat = tree.terms.seats[tree.index(str(body))]
            inside = constant(seat.translation) + constant(seat.rotation) @ constant(point)
            turn, origin = frames[seat.link]
            places.append((seat.link, inside, turn, origin + turn @ inside))
        way = places[1][3] - places[0][3]
        ends = [
            (link, inside, sign * turn.T @ way)
            for (link, inside, turn, _), sign in zip(places, (1.0, -1.0), strict=True)
        ]
        return Stretch(ca.fmax(ca.sumsqr(way), TINY), tuple(ends))

    @property
    def distance(self) -> Array:
        """Length of the spring, m."""
        return ca.sqrt(self.square)

    def rate(self, twists: Sequence[Twist]) -> Array:
        """Length times its rate, m^2/s, for twists of the links."""
        speeds = [
            ca.dot(way, twists[link][0] + cross(twists[link][1], inside))
            for link, inside, way in self.ends
        ]
        return -speeds[0] - speeds[1]


def joint_forces(tree: Tree, q: Vector, w: Vector, *, stiff: bool = True) -> Array:
    """Forces (nv,) that springs of joints need at q and the velocities w, or dampers alone."""
    forces = ca.SX(tree.nv, 1)
    for spring, own in zip(tree.springs, tree.terms.springs, strict=True):
        if spring.joint is not None:
            row, at = tree.freedom_names.index(spring.joint), coordinate(tree, spring.joint)
            forces[row] += own.damping * w[row]
            if stiff:
                forces[row] += own.stiffness * (q[at] - own.rest)
    return forces


def link_wrenches(
    tree: Tree, posture: Posture, w: Vector, *, stiff: bool = True
) -> list[tuple[int, Twist]]:
    """Wrenches on links that springs between points need, each with its link."""
    found: list[tuple[int, Twist]] = []
    every = zip(tree.springs, tree.terms.springs, strict=True)
    springs = [(spring, numbers) for spring, numbers in every if spring.joint is None]
    twists = posture.twists(w) if springs else []
    for spring, numbers in springs:
        own = Stretch.of(tree, spring, posture)
        # Per length of the spring, so that one without a rest length exists at zero distance.
        pull: Any = numbers.stiffness * (1.0 if stiff else 0.0)
        if stiff and not _is_zero(numbers.rest):
            pull -= numbers.stiffness * numbers.rest / own.distance
        if not _is_zero(numbers.damping):
            pull += numbers.damping * own.rate(twists) / own.square
        for link, inside, way in own.ends:
            force = -pull * way
            found.append((link, (force, cross(inside, force))))
    return found


def _is_zero(number: Any) -> bool:
    """Whether a number is zero, and no expression."""
    return not isinstance(number, ca.SX) and number == 0.0


def spring_energy(tree: Tree, q: Vector) -> Array:
    """Energy of all springs, J."""
    energy, posture = ca.SX(0), Posture.of(tree, q)
    for spring, numbers in zip(tree.springs, tree.terms.springs, strict=True):
        if spring.joint is not None:
            square = (q[coordinate(tree, spring.joint)] - numbers.rest) ** 2
        else:
            own, rest = Stretch.of(tree, spring, posture), numbers.rest
            square = own.square if _is_zero(rest) else (own.distance - rest) ** 2
        energy += numbers.stiffness * square / 2
    return energy


def added(wrenches: list[Twist], more: Sequence[tuple[int, Twist]]) -> list[Twist]:
    """Wrenches on links with others in addition."""
    for link, wrench in more:
        wrenches[link] = plus(wrenches[link], wrench)
    return wrenches
