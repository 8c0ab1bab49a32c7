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
    unit_q, q_valid = normalised(q, places.get("q", {}))
    unit_pose, pose_valid = normalised(pose, places["pose"])
    valid = ca.logic_and(q_valid, pose_valid)
    return ca.Function("attitudes", [q, pose], [unit_q, unit_pose, valid])
