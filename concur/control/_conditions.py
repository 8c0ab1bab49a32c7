"""Conditions of the control problem that depend on the servo: rows of its audit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from concur.control._singularity import lost_direction
from concur.reduction import AuditRow, AuditStatus, ReducedModel

if TYPE_CHECKING:
    from concur.control._feasibility import Feasibility
    from concur.control._servo import Servo


def invertibility(servo: Servo, path: Feasibility | None, q0: ArrayLike | None) -> AuditRow:
    """DYN: the law itself exists.

    Parameters
    ----------
    servo : Servo
        The servo.
    path : Feasibility or None
        The exact motion along the reference, if there is one.
    q0 : array_like or None
        Configuration at the start, shape (nq,).

    Returns
    -------
    AuditRow
        The row.
    """
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
    if not holds and servo.damped_below is not None:
        # Near there the demand is not met in full, by the user's choice; the run says how far.
        why += f"; solved with damping below {servo.damped_below:g}"
        return AuditRow("DYN", statement, AuditStatus.NOT_CHECKED, why, {"margin": least})
    status = AuditStatus.HOLDS if holds else AuditStatus.FAILS
    return AuditRow("DYN", statement, status, why, {"margin": least})


def consistency(model: ReducedModel, q0: np.ndarray) -> AuditRow:
    """CON7: velocities come from the lift, so wheels and momentum are kept by them.

    Parameters
    ----------
    model : ReducedModel
        The reduced robot.
    q0 : numpy.ndarray
        Configuration at the start, shape (nq,).

    Returns
    -------
    AuditRow
        The row.
    """
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


def matching_counts(servo: Servo) -> AuditRow:
    """CON9 for a redundant robot: what the outputs leave over follows a rule.

    Parameters
    ----------
    servo : Servo
        The servo, with more controls than output coordinates.

    Returns
    -------
    AuditRow
        The row.
    """
    left = servo.nu - servo.size
    return AuditRow(
        "CON9",
        "there are as many controls as outputs, or a rule for those left over",
        AuditStatus.HOLDS,
        f"{servo.nu} controls, {servo.size} output coordinates: {left} left to internal motion "
        f"({servo.redundancy})",
        {"left": float(left)},
    )
