"""Velocities along the controls, and couplings of joints that follow others."""

from __future__ import annotations

import casadi as ca

from concur.codegen import Array, Vector, constant
from concur.robot._jacobian import jacobian
from concur.robot._tree import Tree


def control_velocities(tree: Tree, q: Vector, columns: Array) -> Array:
    """Velocities of the motors and thrusters, B^T columns, for velocities (nv, k) of the joints.

    A motor turns with the sum of its joints' velocities times the ratios; a thruster moves with the
    component of its body's twist along its wrench. So the power of the controls is ``u^T B^T v``.
    """
    rows = columns[list(tree.actuated_freedoms), :]
    for k, drive in enumerate(tree.drives):
        if drive.joints is None:
            along = constant(drive.at_origin).T @ jacobian(tree, q, str(drive.body))
            row = along @ columns
        else:
            places = [tree.freedom_names.index(name) for name in drive.joints]
            own = list(drive.joints.values()) if tree.numbers is None else tree.numbers.ratios[k]
            row = constant(own).T @ columns[places, :]
        rows = ca.vertcat(rows, row)
    return rows


def coupling_rows(tree: Tree, q: Vector) -> Array:
    """Constraints of joints that follow others, (k, nv): of `mimics`, then of `steering`.

    Those of mimics are ``v - multiplier v_other = 0``.
    """
    rows = ca.SX(len(tree.mimics), tree.nv)
    for k, mimic in enumerate(tree.mimics):
        rows[k, tree.v_slice(mimic.body)] = 1.0
        rows[k, tree.v_slice(mimic.of)] = -mimic.multiplier
    return ca.vertcat(ca.sparsify(rows), tree.steering_rows(q))


def coupling_names(tree: Tree) -> tuple[str, ...]:
    """Name of each of the `coupling_rows`."""
    names = [f"mimic `{mimic.body}`: following {mimic.of}" for mimic in tree.mimics]
    return (
        *names,
        *(f"steering `{s.wheel}`: following {' and '.join(s.guides)}" for s in tree.steering),
    )
