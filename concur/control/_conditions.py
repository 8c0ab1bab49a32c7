"""Conditions of the control problem that depend on the servo: rows of its audit."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from concur.control._feasibility import SIMULATE, Feasibility, feasibility
from concur.control._joint_limits import within_limits
from concur.control._singularity import lost_direction
from concur.control._tracking_law import TrackingLaw
from concur.errors import InfeasibleReferenceError
from concur.outputs import reference_for
from concur.outputs.references import Reference
from concur.reduction import CON4, Audit, AuditRow, AuditStatus, ReducedModel
from concur.robot import as_tree

INT = "internal motion does not grow"
"""Statement of INT."""

UNSTABLE = (
    "the weight is least torque, which moves light joints ever faster on long references; take the "
    'weight "energy", or simulate the whole reference'
)


def audit(
    servo: TrackingLaw,
    reference: Reference | None,
    duration: float | None,
    q0: ArrayLike | None,
) -> Audit:
    """Check the assumptions on robot, outputs and, if there is one, reference."""
    rows, robot = [], as_tree(servo.model.system, f"audit of `{servo.name}`", SIMULATE)
    path = None
    if reference is not None:
        if duration is None:
            raise InfeasibleReferenceError(
                f"servo of `{servo.name}`, `duration`",
                expected="a duration in s",
                came="no value",
                cure="Call audit(reference, duration, q0).",
            )
        reference = reference_for(reference, servo.outputs, f"servo of `{servo.name}`")
        path = feasibility(servo, reference, duration, q0)
        status = AuditStatus.HOLDS if path.feasible else AuditStatus.FAILS
        values = {"margin": path.margin, "reached": path.reached}
        rows.append(AuditRow("CON4", CON4, status, path.why, values))
    start = None if q0 is None else robot.check_configuration(q0)
    if start is not None:
        rows.append(consistency(servo.model, start))
    if servo.size < servo.nu:
        rows.append(matching_counts(servo))
    rows.append(invertibility(servo, path, q0))
    if takes_least_torque(servo):
        rows.append(AuditRow("INT", INT, AuditStatus.NOT_CHECKED, UNSTABLE))
    within = within_limits(servo, path, reference)
    if within is not None:
        rows.append(within)
    configurations = start
    if path is not None and len(path.configurations):
        configurations = path.configurations
    return servo.model.audit(servo.outputs, configurations).replace(*rows)


def takes_least_torque(servo: TrackingLaw) -> bool:
    """Whether a rule takes the least torque of each instant, which is unstable over time."""
    weight = None if servo.redundancy is None else servo.redundancy.weight
    return isinstance(weight, str) and weight == "torque"


def invertibility(servo: TrackingLaw, path: Feasibility | None, q0: ArrayLike | None) -> AuditRow:
    """DYN: the law itself exists along the exact motion and at the start, where they are given."""
    statement = "the decoupling matrix is invertible"
    if servo.redundancy is not None:
        statement = "the decoupling matrix has full rank"
    margins = {}
    if q0 is not None:
        margins["at the start"] = servo.margin(q0)
    if path is not None:
        margins["along the reference"] = path.margin
    if not margins:
        why = "no configuration was given"
        return AuditRow("DYN", statement, AuditStatus.NOT_CHECKED, why)
    least = min(margins.values())
    why = ", ".join(f"smallest margin {margin:.3g} {at}" for at, margin in margins.items())
    if q0 is not None and margins["at the start"] < servo.singular_margin:
        why += f": {lost_direction(servo, np.asarray(q0, dtype=float))}"
    holds = least > servo.singular_margin
    if not holds and servo.damping_threshold is not None:
        # The acceleration residual there is the user's choice; the run reports it.
        why += f"; solved with damping below {servo.damping_threshold:g}"
        return AuditRow("DYN", statement, AuditStatus.NOT_CHECKED, why, {"margin": least})
    status = AuditStatus.HOLDS if holds else AuditStatus.FAILS
    return AuditRow("DYN", statement, status, why, {"margin": least})


def consistency(model: ReducedModel, q0: np.ndarray) -> AuditRow:
    """CON7: velocities come from the lift, so wheels and momentum are kept by them."""
    if model.takes_momentum:
        statement = "the initial state has the momentum"
        v = model.velocity(q0, np.ones(model.ns))
        found = model.robot.mass_matrix(q0)[list(model.first.dependent)] @ v
        rest = float(np.abs(found - model.body_momentum(q0)).max(initial=0.0))
        size = max(1.0, float(np.abs(model.momentum).max()))
        what, sound = "momentum residual", rest < 1e-9 * size
    elif model.dependent:
        statement = "the initial state obeys the wheels"
        rest = float(np.abs(model.robot.constraints(q0) @ model.lift(q0)[0]).max())
        what, sound = "constraint residual", rest < 1e-9
    else:
        statement = "the initial state obeys the wheels"
        return AuditRow("CON7", statement, AuditStatus.HOLDS, "no wheels")
    return AuditRow(
        "CON7",
        statement,
        AuditStatus.HOLDS if sound else AuditStatus.FAILS,
        f"by construction: velocities are lifted; {what} {rest:.1e}",
        {"residual": rest},
    )


def matching_counts(servo: TrackingLaw) -> AuditRow:
    """CON9 for a redundant robot: internal motion and shared torques follow a rule."""
    left = servo.ns - servo.size
    clauses = [f"{left} left to internal motion ({servo.redundancy})"] if left else []
    if servo.nu > servo.ns:
        clauses.append(f"torques shared among {servo.nu - servo.ns} more than shape velocities")
    return AuditRow(
        "CON9",
        "there are as many controls as outputs, or a rule for those left over",
        AuditStatus.HOLDS,
        f"{servo.nu} controls, {servo.size} output coordinates: {', '.join(clauses)}",
        {"left": float(left)},
    )
