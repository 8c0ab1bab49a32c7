"""Momentum matrix by composite bodies: what momentum unit velocities of the joints give."""

from __future__ import annotations

import casadi as ca

from concur.codegen import Array, Vector
from concur.dynamics._distribution import composites, regrouped
from concur.kinematics import Twist, cross, link_bases, link_frames, link_steps
from concur.mechanism import Tree


def momentum_matrix(tree: Tree, q: Vector) -> Array:
    """Matrix A of the spatial momentum about the inertial origin: A v, (3.3.35).

    Its shape is (6, nv), with rows [linear; angular], kg, kg m, kg m^2.
    """
    links, seats = link_frames(tree)
    steps = link_steps(tree, links, q)
    whole = composites(regrouped(tree, links, seats), links, steps)
    frames: list[tuple[Array, Array]] = []
    columns = [ca.SX(6, 0)]
    for link, step, mass, basis in zip(links, steps, whole, link_bases(links), strict=True):
        if link.parent is None:
            frames.append((step.extended(ca.SX.eye(3)), step.offset))
        else:
            rotation, origin = frames[link.parent]
            frames.append((step.extended(rotation), origin + rotation @ step.offset))
        columns.append(_about_origin(*frames[-1], mass.momentum(basis)))
    return ca.horzcat(*columns)


def _about_origin(rotation: Array, origin: Array, momentum: Twist) -> Array:
    """Momenta about a link's origin, in its axes, as columns about the inertial origin."""
    linear, angular = momentum
    if linear.shape[1] <= 3:
        turned = rotation @ linear
        return ca.vertcat(turned, rotation @ angular + cross(origin, turned))
    # Of many momenta it is shorter to turn the way than to carry what has been turned: along
    # the link's own axes most of their entries are zero.
    about = angular + cross(rotation.T @ origin, linear)
    return ca.vertcat(rotation @ linear, rotation @ about)
