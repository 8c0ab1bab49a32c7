"""Normalisation of the quaternions that a law takes, inside its graph."""

from __future__ import annotations

import casadi as ca

from concur.codegen import normalised
from concur.control._tracking_law import TrackingLaw


def attitudes(law: TrackingLaw) -> ca.Function:
    """Normalise the quaternions of configuration and reference pose, where a tick takes them in.

    A function from (q, pose) to (q, pose, valid): with unit quaternions, and 1 if each norm is
    near one, else 0; 0 for NaN.
    """
    q, pose = ca.SX.sym("q", law.nq), ca.SX.sym("pose", law.pose_size)
    places = law.attitudes
    unit, near = normalised(q, places.get("q", {}))
    wanted, meant = normalised(pose, places["pose"])
    return ca.Function("attitudes", [q, pose], [unit, wanted, ca.logic_and(near, meant)])
