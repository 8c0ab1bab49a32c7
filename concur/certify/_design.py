"""Gains from a wish, with a third way beside those of `concur.control`: a proved rate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike

from concur.certify._disturbances import rows
from concur.certify._gains import CertifiedGains, Wish, fastest_gains
from concur.codegen import as_floats
from concur.control import Gains, Output, Servo
from concur.control import design_gains as design_by_rule
from concur.control._allocation import read_limits
from concur.control._design import METHODS as RULES
from concur.control._design import misplaced, read_each, read_outputs
from concur.control._singularity import singular_error
from concur.errors import OutputError
from concur.mechanism import scalar, unknown_name
from concur.reduction import ReducedModel

METHODS = (*RULES, "certified")


@overload
def design_gains(
    outputs: Sequence[Output],
    settling_time: Any = None,
    damping_ratio: Any = None,
    method: Literal["pole", "lqr"] = "pole",
    *,
    poles: Any = None,
    error_weight: Any = None,
    rate_weight: Any = None,
    effort_weight: Any = None,
    length: Any = None,
) -> Gains: ...


@overload
def design_gains(
    outputs: Sequence[Output],
    settling_time: None = None,
    damping_ratio: Any = None,
    *,
    method: Literal["certified"],
    length: Any = None,
    model: ReducedModel,
    torque_limits: Any,
    working_set: ArrayLike,
    angle: float | None = None,
    distance: float | None = None,
    twist: ArrayLike | None = None,
    acceleration: ArrayLike | None = None,
) -> CertifiedGains: ...


def design_gains(
    outputs: Sequence[Output],
    settling_time: Any = None,
    damping_ratio: Any = None,
    method: str = "pole",
    *,
    poles: Any = None,
    error_weight: Any = None,
    rate_weight: Any = None,
    effort_weight: Any = None,
    length: Any = None,
    model: ReducedModel | None = None,
    torque_limits: Any = None,
    working_set: ArrayLike | None = None,
    angle: float | None = None,
    distance: float | None = None,
    twist: ArrayLike | None = None,
    acceleration: ArrayLike | None = None,
) -> Gains | CertifiedGains:
    """Find gains for outputs: from a wish for small errors, or for the fastest proved decay.

    "pole" and "lqr" give every coordinate of an output the same channel; what is asked for holds
    for small errors. "certified" looks for the gains whose rate of decay, proved for errors of
    the stated size, is largest while no control needs more torque than its limits allow. The
    rate is proved. The torque is not: it is the largest found at the configurations of the
    working set, over all errors of the tube V_L < level that the motion cannot leave.

    Arguments that are one number for all outputs may be a sequence of one per output.

    Parameters
    ----------
    outputs : sequence of Output
        The outputs, in the servo's order.
    settling_time : float or sequence of float, optional
        For "pole": time after which an error, at rest at first, stays below 2 %, s.
    damping_ratio : float or sequence of float, optional
        For "pole", with a settling time: damping ratio zeta above zero, default 0.8. For
        "certified": default the best of some from 0.65 to 0.95.
    method : str
        "pole": a settling time and a damping ratio, or `poles`; "lqr": least
        int(error_weight x^2 + rate_weight ve^2 + effort_weight nu^2) dt, where nu = d/dt ve;
        "certified": the fastest proved rate within torque limits, in seconds for vectors and
        rotations, in up to a minute for poses.
    poles : sequence of complex, optional
        For "pole", instead of a settling time: two stable poles, real or conjugate, 1/s; or
        one such pair per output, shape (k, 2).
    error_weight : float or sequence of float, optional
        For "lqr", above zero, 1/m^2 or 1/rad^2.
    rate_weight : float or sequence of float, optional
        For "lqr", not below zero, default 0, s^2/m^2 or s^2/rad^2.
    effort_weight : float or sequence of float, optional
        For "lqr", above zero, default 1, s^4/m^2 or s^4/rad^2.
    length : float or sequence of float, optional
        Length l that makes an angle comparable with a distance, m: the metric I is l^2 on
        angular coordinates. In SE(3) and SE(2) it also sets how strongly large position errors
        act on the rotation; elsewhere the closed loop does not depend on it. Default 1; for
        poses with "certified" such that the tube reaches `angle` and `distance`, with the best
        of some ratios of angular to linear frequency: with a length they are the same.
    model : ReducedModel, optional
        For "certified": the reduced robot, from `reduce`.
    torque_limits : float, sequence or mapping, optional
        For "certified": limits of the controls as a servo takes them, N and N m.
    working_set : array_like, optional
        For "certified": configurations at which the limits must do, shape (k, nq) or (nq,).
    angle : float, optional
        For "certified", with rotations: rotation error that must stay in reach, above 0 and at
        most pi, rad.
    distance : float, optional
        For "certified", with positions: position error that must stay in reach, m.
    twist, acceleration : array_like, optional
        For "certified": velocity that the reference demands in the working set, left-trivialised
        as in `ReferenceSample`, and its rate, shape (size,) or (k, size); default at rest.

    Returns
    -------
    Gains or CertifiedGains
        Matrices for the servo, with the poles and the settling time reached; or with the proof
        of the rate, the tube, and the torque that it needs.

    Raises
    ------
    UnknownNameError
        If the method, or a control with a limit, does not exist.
    ShapeError
        If an argument does not fit the outputs or the robot.
    NonFiniteError
        If a number is NaN or infinite.
    OutputError
        If a number is out of its range, poles are unstable or no pair, an argument belongs to
        another method or is missing, or torque limits leave no room.
    SingularConfigurationError
        If a configuration of the working set is singular.
    ConcurError
        If the extra `certify` is not installed and the method is "certified".

    Examples
    --------
    >>> import concur as cc
    >>> base = cc.Output("base", "chassis", "R2", point=(0.25, 0, 0))
    >>> hand = cc.Output("hand", "forearm", "R3", point=(0, 0.2, 0))
    >>> gains = cc.design_gains([base, hand], settling_time=[3.0, 2.0])
    >>> gains.settling_time.round(6)
    array([3., 2.])
    >>> servo = cc.Servo(cc.reduce(cc.robots.rover_arm()), [base, hand], *gains)
    """
    checked = read_outputs(outputs)
    if not isinstance(method, str) or method not in METHODS:
        raise unknown_name("gains, `method`", "method", method, METHODS)
    own = {
        "model": model,
        "torque_limits": torque_limits,
        "working_set": working_set,
        "angle": angle,
        "distance": distance,
        "twist": twist,
        "acceleration": acceleration,
    }
    others = {
        "settling_time": settling_time,
        "poles": poles,
        "error_weight": error_weight,
        "rate_weight": rate_weight,
        "effort_weight": effort_weight,
    }
    if method != "certified":
        for name, value in own.items():
            if value is not None:
                raise misplaced(name, f'method="{method}"', 'It is for method="certified".')
        return design_by_rule(
            checked,
            damping_ratio=damping_ratio,
            method=method,
            length=1.0 if length is None else length,
            **others,
        )
    for name, value in others.items():
        if value is not None:
            raise misplaced(name, 'method="certified"', "The rate is made as fast as it can be.")
    ratio = None if damping_ratio is None else read_each("damping_ratio", damping_ratio, checked)
    return fastest_gains(_wish(checked, ratio, length, own))


def _wish(
    outputs: tuple[Output, ...], ratio: np.ndarray | None, length: Any, given: dict[str, Any]
) -> Wish:
    model = given["model"]
    if not isinstance(model, ReducedModel):
        raise OutputError(
            "gains, `model`",
            expected="the reduced robot",
            came="no value" if model is None else f"{type(model).__name__} {model!r:.40}",
            cure="Pass what `reduce(robot)` returned: torques are those of a robot.",
        )
    units = {unit for output in outputs for unit in output.coordinate_units}
    angle = _bound("angle", given["angle"], "rad" in units, np.pi)
    distance = _bound("distance", given["distance"], "m" in units, np.inf)
    for name in ("torque_limits", "working_set"):
        if given[name] is None:
            raise OutputError(
                f"gains, `{name}`",
                expected="limits of the controls"
                if name == "torque_limits"
                else "configurations of the robot, shape (k, nq)",
                came="no value",
                cure="Without them the rate would have no bound.",
            )
    servo = Servo(model, outputs, 1.0, 1.0)
    limits = read_limits("gains, `torque_limits`", given["torque_limits"], model.control_names)
    if not np.isfinite(limits).any():
        raise OutputError(
            "gains, `torque_limits`",
            expected="at least one limit",
            came="none of the controls limited",
            cure="Without limits the rate would have no bound.",
        )
    configurations = rows(servo, given["working_set"], servo.nq, "working_set")
    for q in configurations:
        model.robot.check_configuration(q, "gains, `working_set`")
        margin = servo.margin(q)
        if margin < servo.refused_below:
            raise singular_error(servo, q, margin)
    count = len(configurations)
    demand = []
    for name in ("twist", "acceleration"):
        value = np.zeros(servo.size) if given[name] is None else given[name]
        value = as_floats(value, f"gains, `{name}`")
        if value.ndim == 1:
            value = np.broadcast_to(value, (count, value.size))
        demand.append(rows(servo, value, servo.size, name, count))
    return Wish(
        servo,
        None if length is None else read_each("length", length, outputs),
        angle,
        distance,
        limits,
        configurations,
        twist=demand[0],
        acceleration=demand[1],
        damping_ratio=ratio,
    )


def _bound(name: str, value: Any, wanted: bool, most: float) -> float | None:
    """Largest error of a kind; None where the outputs have none of it."""
    where = f"gains, `{name}`"
    if value is None:
        if not wanted:
            return None
        raise OutputError(
            where,
            expected="the error from which the robot must be brought back",
            came="no value",
            cure="Write for example angle=numpy.radians(60)."
            if name == "angle"
            else "Write for example distance=0.2, in m.",
        )
    number = scalar(value, where)
    if not 0.0 < number <= most or number == np.inf:
        raise OutputError(
            where,
            expected="above 0 and at most pi rad" if name == "angle" else "above 0 m",
            came=f"{number:.6g}",
            cure="The logarithm of a rotation error is smooth below pi only."
            if name == "angle"
            else "Give the largest position error to be brought back.",
        )
    return number if wanted else None
