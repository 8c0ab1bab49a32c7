"""Twists and accelerations of all links, from the base outwards, in the frames of the links."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca

from concur.codegen import Array, Vector, constant
from concur.robot._links import Link, Step
from concur.robot._motion import Twist, cross


@dataclass(frozen=True, eq=False)
class Motion:
    """Acceleration of a link: that of its origin, and what a way from there adds.

    Parameters
    ----------
    angular : casadi.SX
        Angular velocity w, shape (3,), rad/s.
    followed : casadi.SX
        Angular velocity u whose rate is meant, shape (3,), rad/s: usually w.
    rate : casadi.SX
        Its rate, shape (3,), rad/s^2.
    linear : casadi.SX
        Acceleration of the link's origin, shape (3,), m/s^2; components are along the link's
        axes throughout.
    squares : tuple of casadi.SX
        Products of the components of u and w: squares if they are the same.
    change : casadi.SX
        skew(rate) + skew(u) skew(w) without its diagonal, shape (3, 3): it multiplies a way.
    """

    angular: Array
    followed: Array
    rate: Array
    linear: Array
    squares: tuple[Array, ...]
    change: Array

    @staticmethod
    def of(angular: Array, followed: Array, rate: Array, linear: Array) -> Motion:
        """Form the products of the velocities; all arguments are as of the class."""
        change = ca.SX(3, 3)
        for k in range(3):
            i, j = (k + 1) % 3, (k + 2) % 3
            product = angular[i] * followed[j]
            other = product if followed is angular else angular[j] * followed[i]
            change[i, j], change[j, i] = product - rate[k], other + rate[k]
        squares = tuple(angular[k] * followed[k] for k in range(3))
        return Motion(angular, followed, rate, linear, squares, ca.sparsify(change))

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
    links: list[Link],
    steps: list[Step],
    v: Vector,
    vdot: Vector,
    gravity: Sequence[float],
    followed: Vector | None = None,
) -> list[Motion]:
    """Acceleration of each link, in its own frame.

    The inertial frame is taken to accelerate against `gravity`, shape (3,), m/s^2. With joint
    velocities `followed`, (nv,), these have the rates vdot, and the accelerations are the
    derivatives along the motion v of the velocities that they give to the points of the links.
    """
    motions: list[Motion] = []
    both = followed is not None
    followed = v if followed is None else followed
    for link, step, basis in zip(links, steps, link_bases(links), strict=True):
        rates = vdot[link.span, :]
        sliding, turning = (part @ v[link.span, :] for part in basis)
        slid, turned = (part @ followed[link.span, :] for part in basis)
        if link.parent is None:
            carried = led = rate = ca.SX(3, 1)
            linear = step.outwards(-constant(gravity))
        else:
            outer = motions[link.parent]
            carried, rate = step.outwards(outer.angular), step.outwards(outer.rate)
            led = step.outwards(outer.followed) if both else carried
            linear = step.outwards(outer.linear + outer.changed(step.offset))
        angular = carried + turning
        # The joint's velocity turns with the link, and Coriolis' acceleration adds as much again.
        if both:
            linear += basis[0] @ rates + cross(led, sliding) + cross(angular, slid)
            spun = angular if basis[1].shape[1] > 1 else carried
            rate += basis[1] @ rates + cross(spun, turned)
        else:
            linear += basis[0] @ rates + cross(carried + angular, sliding)
            rate += basis[1] @ rates + cross(carried, turning)
        motions.append(Motion.of(angular, led + turned if both else angular, rate, linear))
    return motions


def step_inwards(step: Step, wrench: Twist) -> Twist:
    """Wrench or momentum at a link's origin, parts (3, k) in its frame, moved to its parent's."""
    force = step.inwards(wrench[0])
    return force, step.inwards(wrench[1]) + cross(step.offset, force)
