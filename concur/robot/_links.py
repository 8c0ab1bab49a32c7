"""The links of a robot at a configuration: poses, twists, accelerations, and what they carry.

The one recursion over links. Twists, accelerations and wrenches are at the links' origins and
along the links' axes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np

from concur.codegen import Array, Vector, constant
from concur.robot._frames import Link
from concur.robot._spatial import Distribution, Placed, Step, Turn, Twist, cross, plus
from concur.robot._tree import Tree


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


@dataclass(frozen=True, eq=False)
class Posture:
    """The links of a robot at a configuration.

    Parameters
    ----------
    links : sequence of Link
        The links.
    steps : sequence of Step
        Pose of each link in its parent.
    """

    links: Sequence[Link]
    steps: Sequence[Step]

    @staticmethod
    def of(tree: Tree, q: Vector) -> Posture:
        """Take the configuration q, shape (nq,)."""
        links, steps = tree.terms.links, []
        for link in links:
            own = q[tree.q_spans[link.body], :]
            fixed = constant(link.turn)
            if link.axial:
                c0, s0 = link.start
                if isinstance(c0, ca.SX) or abs(c0) in (0.0, 1.0):
                    c, s = ca.cos(own), ca.sin(own)
                    cosine, sine = c0 * c - s0 * s, s0 * c + c0 * s
                else:
                    angle = own + float(np.arctan2(s0, c0))
                    cosine, sine = ca.cos(angle), ca.sin(angle)
                steps.append(
                    Step(_joined(fixed, Turn.about(2, cosine, sine)), constant(link.offset))
                )
            else:
                rotation, translation = tree.bodies[link.body].joint.pose(own)
                offset = constant(link.offset) + fixed @ translation
                steps.append(Step((Turn.of(fixed @ rotation),), offset))
        return Posture(links, steps)

    @property
    def root(self) -> Placed:
        """Pose of the first link in the inertial frame."""
        return self.steps[0].extended(ca.SX.eye(3)), self.steps[0].offset

    def frames(self) -> list[Placed]:
        """Pose of each link in the first link's frame."""
        placed: list[Placed] = []
        for link, step in zip(self.links, self.steps, strict=True):
            if link.parent is None:
                placed.append((ca.SX.eye(3), ca.SX(3, 1)))
            else:
                rotation, origin = placed[link.parent]
                placed.append((step.extended(rotation), origin + rotation @ step.offset))
        return placed

    def twists(self, v: Vector) -> list[Twist]:
        """Twist of each link relative to the inertial frame, parts (3,)."""
        twists: list[Twist] = []
        for link, step in zip(self.links, self.steps, strict=True):
            own = link.basis[0] @ v[link.span, :], link.basis[1] @ v[link.span, :]
            if link.parent is not None:
                own = plus(own, step.twist_outwards(twists[link.parent]))
            twists.append(own)
        return twists

    def motions(
        self, v: Vector, vdot: Vector, gravity: Sequence[float], followed: Vector | None = None
    ) -> list[Motion]:
        """Acceleration of each link.

        The inertial frame is taken to accelerate against `gravity`, shape (3,), m/s^2. With joint
        velocities `followed`, (nv,), these have the rates vdot, and the accelerations are the
        derivatives along the motion v of the velocities that they give to the points of the links.
        """
        motions: list[Motion] = []
        both = followed is not None
        followed = v if followed is None else followed
        for link, step in zip(self.links, self.steps, strict=True):
            basis, rates = link.basis, vdot[link.span, :]
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
            # The joint's velocity turns with the link; Coriolis' acceleration adds as much again.
            if both:
                linear += basis[0] @ rates + cross(led, sliding) + cross(angular, slid)
                spun = angular if basis[1].shape[1] > 1 else carried
                rate += basis[1] @ rates + cross(spun, turned)
            else:
                linear += basis[0] @ rates + cross(carried + angular, sliding)
                rate += basis[1] @ rates + cross(carried, turning)
            motions.append(Motion.of(angular, led + turned if both else angular, rate, linear))
        return motions

    def carried(self, wrenches: Sequence[Twist]) -> list[Twist]:
        """Wrench on each link, together with those on all links that it carries."""
        total = list(wrenches)
        for i, link in reversed(list(enumerate(self.links))):
            if link.parent is not None:
                moved = self.steps[i].wrench_inwards(total[i])
                total[link.parent] = plus(total[link.parent], moved)
        return total

    def composites(self) -> list[Distribution]:
        """Mass of each link together with all that it carries."""
        whole = [link.mass for link in self.links]
        for i, link in reversed(list(enumerate(self.links))):
            if link.parent is not None:
                whole[link.parent] = whole[link.parent].plus(whole[i].seen_inwards(self.steps[i]))
        return whole


def _joined(fixed: ca.SX, moving: Turn) -> tuple[Turn, ...]:
    """A constant turn and one about z: apart where that is cheaper."""
    if fixed.nnz() == 3 and (fixed - ca.SX.eye(3)).is_zero():
        return (moving,)
    if fixed.nnz() <= 5:
        return Turn.of(fixed), moving
    return (Turn.of(fixed @ moving.matrix),)
