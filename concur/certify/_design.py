"""Gains with a proved decay rate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from concur.certify._checks import check_groups
from concur.certify._disturbances import rows
from concur.certify._gains import CertifiedGains, GainSpec, fastest_gains
from concur.codegen import as_floats
from concur.control import Servo, read_each, read_limits, read_outputs, singular_error
from concur.errors import OutputError
from concur.outputs import Output
from concur.reduction import ReducedModel
from concur.robot import scalar


def certified_gains(
    outputs: Sequence[Output],
    model: ReducedModel,
    torque_limits: Any,
    configurations: ArrayLike,
    *,
    angle: float | None = None,
    distance: float | None = None,
    twist: ArrayLike | None = None,
    acceleration: ArrayLike | None = None,
    damping_ratio: Any = None,
    length: Any = None,
) -> CertifiedGains:
    """Find the gains of the fastest proved decay within torque limits.

    The rate of decay is proved for errors of the given size. The torque is an estimate, not
    proved: the largest one found at the configurations over all errors of the tube V_L < level,
    which the error does not leave. The search takes seconds for vectors and rotations, up to a
    minute for poses.

    Parameters
    ----------
    outputs : sequence of Output
        The outputs, in the servo's order.
    model : ReducedModel
        The reduced robot, from `reduce`.
    torque_limits : float, sequence or mapping
        Limits of the control inputs as for a servo, N and N m.
    configurations : array_like
        Configurations at which the limits must suffice, shape (k, nq) or (nq,).
    angle : float, optional
        With rotations: largest rotation error covered, above 0 and at most pi, rad.
    distance : float, optional
        With positions: largest position error covered, m.
    twist, acceleration : array_like, optional
        Velocity of the reference at the configurations, left-trivialised as in `ReferenceSample`,
        and its rate, shape (size,) or (k, size); default at rest.
    damping_ratio : float or sequence of float, optional
        Damping ratio of each output; default the best of several from 0.65 to 0.95.
    length : float or sequence of float, optional
        Length as for `design_gains`, m. Default 1. For poses the default makes the tube reach
        `angle` and `distance`, with the best of several ratios of angular to linear frequency;
        with a given length the two frequencies are equal.

    Returns
    -------
    CertifiedGains
        Matrices for the servo, with the proof of the rate, the tube, and its sampled torque.

    Raises
    ------
    UnknownNameError
        If a limit names an unknown control input.
    ShapeError
        If an argument does not fit the outputs or the robot.
    NonFiniteError
        If a number is NaN or infinite.
    OutputError
        If a number is out of range, an argument is missing, or the torque limits are too small.
    SingularConfigurationError
        If a configuration is singular.
    ConcurError
        If the extra `certify` is not installed.

    Examples
    --------
    >>> import concur as cc
    >>> model = cc.reduce(cc.robots.rover_arm())
    >>> hand = cc.Output("hand", "forearm", "R3", point=(0, 0.2, 0))
    >>> q = [0, 0, 0, 0, 0, -0.1, 1.0, -1.6]
    >>> gains = cc.certified_gains([hand], model, 20.0, q, distance=0.1, damping_ratio=0.8)
    >>> gains.certificate.status.name
    'PROVED'
    >>> servo = cc.Servo(model, [hand], *gains)
    """
    checked = read_outputs(outputs)
    check_groups("gains", checked)
    own = {
        "model": model,
        "torque_limits": torque_limits,
        "configurations": configurations,
        "angle": angle,
        "distance": distance,
        "twist": twist,
        "acceleration": acceleration,
    }
    names = [output.name for output in checked]
    ratio = (
        None if damping_ratio is None else read_each("gains, `damping_ratio`", damping_ratio, names)
    )
    return fastest_gains(_spec(checked, ratio, length, own))


def _spec(
    outputs: tuple[Output, ...], ratio: np.ndarray | None, length: Any, given: dict[str, Any]
) -> GainSpec:
    model = given["model"]
    if not isinstance(model, ReducedModel):
        raise OutputError(
            "gains, `model`",
            expected="the reduced robot",
            came="no value" if model is None else f"{type(model).__name__} {model!r:.40}",
            cure="Pass the result of `reduce(robot)`.",
        )
    units = {unit for output in outputs for unit in output.coordinate_units}
    angle = _bound("angle", given["angle"], "rad" in units, np.pi)
    distance = _bound("distance", given["distance"], "m" in units, np.inf)
    servo = Servo(model, outputs, 1.0, 1.0)
    limits = read_limits("gains, `torque_limits`", given["torque_limits"], model)
    if not np.isfinite(limits).any():
        raise OutputError(
            "gains, `torque_limits`",
            expected="at least one limit",
            came="no limited control",
            cure="Limit a control; without limits the rate is unbounded.",
        )
    configurations = rows(servo, given["configurations"], servo.nq, "configurations")
    for q in configurations:
        model.robot.check_configuration(q, "gains, `configurations`")
        margin = servo.margin(q)
        if margin < servo.margins.refused_below:
            raise singular_error(servo, q, margin)
    count = len(configurations)
    demand = []
    for name in ("twist", "acceleration"):
        value = np.zeros(servo.size) if given[name] is None else given[name]
        value = as_floats(value, f"gains, `{name}`")
        if value.ndim == 1:
            value = np.broadcast_to(value, (count, value.size))
        demand.append(rows(servo, value, servo.size, name, count))
    return GainSpec(
        servo,
        None if length is None else read_each("gains, `length`", length, [o.name for o in outputs]),
        angle,
        distance,
        limits,
        configurations,
        twist=demand[0],
        acceleration=demand[1],
        damping_ratio=ratio,
    )


def _bound(name: str, value: Any, required: bool, most: float) -> float | None:
    """Bound of one kind of error; None if the outputs have no error of this kind."""
    where = f"gains, `{name}`"
    if value is None:
        if not required:
            return None
        raise OutputError(
            where,
            expected="the largest error to cover",
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
            else "Give the largest position error to cover.",
        )
    return number if required else None
