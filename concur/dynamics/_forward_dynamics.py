"""Forward dynamics by articulated bodies."""

from __future__ import annotations

import casadi as ca

from concur.codegen import Vector
from concur.dynamics._articulated import articulated
from concur.dynamics._newton_euler import inertial_wrenches
from concur.kinematics import link_frames
from concur.mechanism import Tree


def forward_dynamics(tree: Tree, q: Vector, v: Vector, forces: Vector) -> Vector:
    """Acceleration (nv,) under joint forces (nv,), N and N m: M vdot + bias = forces."""
    links, seats = link_frames(tree)
    factors = articulated(tree, q)
    wrenches = inertial_wrenches(tree, links, seats, factors.steps, v, ca.SX(tree.nv, 1))
    return factors.outwards(factors.yielding(factors.inwards(forces, wrenches)))
