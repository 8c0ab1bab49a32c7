"""Twists and accelerations of all links, from the base outwards, in the frames of the links."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca

from concur.codegen import Array, Vector, constant
from concur.kinematics._links import Link, Step
from concur.kinematics._motion import Twist, cross


@dataclass(frozen=True, eq=False)
class Motion:
    """Acceleration of a link: that of its origin, and what a way from there adds.

    Parameters
    ----------
    angular : casadi.SX
        Angular velocity w, shape (3,), rad/s.
    rate : casadi.SX
        Its rate, shape (3,), rad/s^2.
    linear : casadi.SX
        Acceleration of the link's origin, shape (3,), m/s^2; components are along the link's
        axes throughout.
    squares : tuple of casadi.SX
        Squares of the components of w.
    change : casadi.SX
        skew(rate) + skew(w)^2 without its diagonal, shape (3, 3): it multiplies a way.
    """

    angular: Array
    rate: Array
    linear: Array
    squares: tuple[Array, ...]
    change: Array

    @staticmethod
    def of(angular: Array, rate: Array, linear: Array) -> Motion:
        """Form the products of the velocities; all three arguments are as of the class."""
        change = ca.SX(3, 3)
        for k in range(3):
            i, j = (k + 1) % 3, (k + 2) % 3
            product = angular[i] * angular[j]
            change[i, j], change[j, i] = product - rate[k], product + rate[k]
        squares = tuple(angular[k] * angular[k] for k in range(3))
        return Motion(angular, rate, linear, squares, ca.sparsify(change))

    def changed(self, way: Array) -> Array:
        """Acceleration, m/s^2, against the link's origin, of a point a `way` (3,), m, from it."""
        parts = []
        for k in range(3):
            i, j = (k + 1) % 3, (k + 2) % 3
            part = self.change[k, i] * way[i] + self.change[k, j] * way[j]
            parts.append(part - (self.squares[i] + self.squares[j]) * way[k])
        return ca.vertcat(*parts)


def link_bases(links: list[Link]) -> list[Twist]:
    """Twist basis of each link's joint in the link's frame, parts (3, nv of the joint)."""
    return [(constant(link.basis[:3]), constant(link.basis[3:])) for link in links]


def link_twists(links: list[Link], steps: list[Step], v: Vector) -> list[Twist]:
    """Twist of each link relative to the inertial frame, in its own frame.

    The parts are the linear velocity of the link's origin and the angular velocity, each (3,).
    """
    twists: list[Twist] = []
    for link, step, basis in zip(links, steps, link_bases(links), strict=True):
        own = basis[0] @ v[link.span, :], basis[1] @ v[link.span, :]
        if link.parent is not None:
            linear, angular = twists[link.parent]
            point = linear - cross(step.offset, angular)
            own = own[0] + step.outwards(point), own[1] + step.outwards(angular)
        twists.append(own)
    return twists


def link_motions(
    links: list[Link], steps: list[Step], v: Vector, vdot: Vector, gravity: Sequence[float]
) -> list[Motion]:
    """Acceleration of each link, in its own frame.

    The inertial frame is taken to accelerate against `gravity`, shape (3,), m/s^2.
    """
    motions: list[Motion] = []
    for link, step, basis in zip(links, steps, link_bases(links), strict=True):
        speeds, rates = v[link.span, :], vdot[link.span, :]
        sliding, turning = basis[0] @ speeds, basis[1] @ speeds
        if link.parent is None:
            carried, rate = ca.SX(3, 1), ca.SX(3, 1)
            linear = step.outwards(-constant(gravity))
        else:
            outer = motions[link.parent]
            carried, rate = step.outwards(outer.angular), step.outwards(outer.rate)
            linear = step.outwards(outer.linear + outer.changed(step.offset))
        angular = carried + turning
        # The joint's velocity turns with the link, and Coriolis' acceleration adds as much again.
        linear += basis[0] @ rates + cross(carried + angular, sliding)
        rate += basis[1] @ rates + cross(carried, turning)
        motions.append(Motion.of(angular, rate, linear))
    return motions


def step_inwards(step: Step, wrench: Twist) -> Twist:
    """Wrench or momentum at a link's origin, parts (3, k) in its frame, moved to its parent's."""
    force = step.inwards(wrench[0])
    return force, step.inwards(wrench[1]) + cross(step.offset, force)
