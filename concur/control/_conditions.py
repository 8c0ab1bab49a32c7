"""Conditions of the control problem that depend on the servo: rows of its audit."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from concur.control._core import LawCore
from concur.control._feasibility import Feasibility, feasibility
from concur.control._joint_limits import within_limits
from concur.control._singularity import lost_direction
from concur.errors import InfeasibleReferenceError
from concur.outputs import reference_for
from concur.outputs.references import Reference
from concur.reduction import CON4, Audit, AuditRow, AuditStatus, ReducedModel

INT = "internal motion does not grow"
"""Statement of INT."""

UNSTABLE = (
    "the weight is least torque, which moves light joints ever faster on long references; take the "
    'weight "energy", or simulate the whole reference'
)


def audit(
    self: LawCore,
    reference: Reference | None = None,
    duration: float | None = None,
    q0: ArrayLike | None = None,
) -> Audit:
    """Check the assumptions, with the outputs and, if given, along a reference.

    Parameters
    ----------
    reference : Reference, optional
        Reference of all outputs.
    duration : float, optional
        How long it is followed, s.
    q0 : array_like, optional
        Configuration from which the exact start is sought, shape (nq,).

    Returns
    -------
    Audit
        CON1-CON9, NHR1-NHR3 and DYN, the invertibility of the decoupling matrix; if the
        robot's joints have limits also LIM, that the exact motion keeps them; with the weight
        "torque" of `redundancy` also INT, that internal motion does not grow, not checked.

    Raises
    ------
    InfeasibleReferenceError
        If a reference comes without a duration.
    """
    rows, robot = [], self.model.system
    path = None
    if reference is not None:
        if duration is None:
            raise InfeasibleReferenceError(
                f"self of `{self.name}`, `duration`",
                expected="a duration in s",
                came="no value",
                cure="Call audit(reference, duration, q0).",
            )
        reference = reference_for(reference, self.outputs, f"self of `{self.name}`")
        path = feasibility(self, reference, duration, q0)
        status = AuditStatus.HOLDS if path.feasible else AuditStatus.FAILS
        values = {"margin": path.margin, "reached": path.reached}
        rows.append(AuditRow("CON4", CON4, status, path.why, values))
    start = None if q0 is None else robot.check_configuration(q0)
    if start is not None:
        rows.append(consistency(self.model, start))
    if self.size < self.nu:
        rows.append(matching_counts(self))
    rows.append(invertibility(self, path, q0))
    if takes_least_torque(self):
        rows.append(AuditRow("INT", INT, AuditStatus.NOT_CHECKED, UNSTABLE))
    within = within_limits(self, path, reference)
    if within is not None:
        rows.append(within)
    configurations = start
    if path is not None and len(path.configurations):
        configurations = path.configurations
    return self.model.audit(self.outputs, configurations).replace(*rows)


def takes_least_torque(servo: LawCore) -> bool:
    """Whether a rule takes the least torque of each instant, which is unstable over time."""
    weight = None if servo.redundancy is None else servo.redundancy.weight
    return isinstance(weight, str) and weight == "torque"


def invertibility(servo: LawCore, path: Feasibility | None, q0: ArrayLike | None) -> AuditRow:
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
    if not holds and not servo.margins.refused_below:
        # The acceleration residual of damping is the user's choice; the run reports it.
        damped = f"solved with damping below {servo.damping_threshold or 0.0:g}"
        why += f"; {damped if servo.linearizes else 'the law does not invert it'}"
        return AuditRow("DYN", statement, AuditStatus.NOT_CHECKED, why, {"margin": least})
    status = AuditStatus.HOLDS if holds else AuditStatus.FAILS
    return AuditRow("DYN", statement, status, why, {"margin": least})


def consistency(model: ReducedModel, q0: np.ndarray) -> AuditRow:
    """CON7: velocities come from the lift, so wheels and momentum are kept by them."""
    if model.keeps_momentum:
        statement = "the initial state has the momentum"
        v = model.velocity(q0, np.ones(model.ns))
        found = np.asarray(model.system.mass_matrix(q0))[list(model.first.dependent)] @ v
        rest = float(np.abs(found - model.body_momentum(q0)).max(initial=0.0))
        size = max(1.0, float(np.abs(model.momentum).max()))
        what, sound = "momentum residual", rest < 1e-9 * size
    elif model.dependent:
        statement = "the initial state obeys the wheels"
        rest = float(np.abs(np.asarray(model.system.constraints(q0)) @ model.lift(q0)[0]).max())
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


def matching_counts(servo: LawCore) -> AuditRow:
    """CON9 for a redundant robot: internal motion and shared torques follow a rule."""
    left = servo.ns - servo.size
    clauses = [f"{left} left to {_rule(servo)}"] if left else []
    if servo.nu > servo.model.nd:
        clauses.append(f"torques shared among {servo.nu - servo.ns} more than shape velocities")
    return AuditRow(
        "CON9",
        "there are as many controls as outputs, or a rule for those left over",
        AuditStatus.HOLDS,
        f"{servo.nu} controls, {servo.size} output coordinates: {', '.join(clauses)}",
        {"left": float(left)},
    )


def _rule(servo: LawCore) -> str:
    """Name the rule of motions that the outputs leave free."""
    return "the law" if servo.redundancy is None else f"internal motion ({servo.redundancy})"
