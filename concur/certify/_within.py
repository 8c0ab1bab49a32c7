"""Certificates inside an operating box: starts from which no torque reaches its limit.

V_L = (x KP x + ve I ve) / 2 never grows, so the errors from a start stay in its level, and below a
level in which all components are within the errors of the box they stay within these.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from concur.certify._bounds import float_below, rational, solve
from concur.certify._certificate import Certificate
from concur.certify._channel_certificate import ChannelCertificate
from concur.certify._checks import check
from concur.certify._operating_certificate import OperatingCertificate
from concur.certify._operating_statement import usual_margin
from concur.certify._recheck_conditions import LIMITS, conditions_of
from concur.certify._recheck_law import operating_laws
from concur.certify._status import Status
from concur.control import Servo
from concur.rounding import rounded_down


def limited(part: ChannelCertificate) -> ChannelCertificate:
    """Channel of a law with torque limits without a claim, with what is missing."""
    rate = f" at {rounded_down(part.rate, 4)} 1/s" if part.status is Status.PROVED else ""
    reason = (
        f"The errors decay{rate} while no torque reaches its limit, which is not shown: give "
        f"`operating`, a proved box of `operating_bounds`. {part.reason}"
    )
    return replace(part, status=Status.UNDECIDED, reason=reason, rate=0.0, P=None, multipliers=None)


def box_conditions(law: Any, operating: OperatingCertificate) -> tuple[str, ...]:
    """Conditions of claims inside a proved box of a servo; another box is rejected."""
    where = "certificate, `operating`"
    check(isinstance(law, Servo), where, "a servo, with this argument", type(law).__name__, "Omit.")
    check(
        isinstance(operating, OperatingCertificate) and operating.status is Status.PROVED,
        where,
        "a proved operating box",
        getattr(getattr(operating, "status", None), "name", type(operating).__name__),
        "Make it smaller, or omit it.",
    )
    errors = [operating.demand.get(name, [0.0]) for name in ("pose_error", "velocity_error")]
    check(
        all(min(own) > 0.0 for own in errors),
        where,
        "a box with speeds, and with pose and velocity errors above zero",
        str(errors)[:60],
        "Pass speeds, pose_error and velocity_error to `operating_bounds`.",
    )
    document = None if operating.law is None else operating.law(False)
    same = document is not None and any(
        write(law, document) == document for write in operating_laws
    )
    check(same, where, "a box of this servo", f"one of `{operating.name}`", "Bound its torques.")
    bound = operating.required_margin
    usual = usual_margin(law)
    check(bound >= usual, where, f"a required margin of at least {usual:g}", bound, "Omit it.")
    kind = "none" if law.constraints is None else "constraints, which the box does not cover"
    check(law.constraints is None, where, "a servo without `constraints`", kind, "Omit.")
    own, box = law.torque_limits, operating.limits
    if own is not None:
        inside = box is not None and bool(
            (np.asarray(own)[:, 0] <= operating.lower).all()
            and (operating.upper <= np.asarray(own)[:, 1]).all()
        )
        check(inside, where, "torques within the limits of the servo", "larger ones", "Shrink it.")
    ends = [f"{name} from {low:g} to {high:g}" for name, (low, high) in operating.ranges.items()]
    sizes = ", ".join(f"{value:g}" for value in operating.demand["speeds"])
    pulls = ", ".join(f"{value:g}" for value in operating.demand["acceleration"])
    room = "; ".join([*ends, f"speeds up to {sizes}", f"reference accelerations up to {pulls}"])
    kept = [one for one in conditions_of(law) if one != LIMITS]
    kept += [] if own is None else [f"{LIMITS}, as proved for the state and the reference below"]
    return (*kept, f"state and reference are in the operating box: {room}")


def within(found: Certificate, operating: OperatingCertificate) -> Certificate:
    """The certificate for the starts whose errors stay within those of a box."""
    cut = tuple(_cut(part, operating) for part in found.parts)
    calm = found.low_transient
    if calm is not None:
        calm = replace(calm, parts=tuple(_cut(part, operating) for part in calm.parts))
        calm = replace(calm, conditions=found.conditions)
    return replace(found, parts=cut, low_transient=calm)


def _cut(part: ChannelCertificate, operating: OperatingCertificate) -> ChannelCertificate:
    """Channel with the largest level in which its errors are within those of a box."""
    channel, levels = part.channel, list[Fraction]()
    one = rational(np.eye(channel.size))
    for name, metric in (("pose_error", channel.stiffness), ("velocity_error", channel.inertia)):
        inverse = solve(rational(metric), one)
        for k, i in enumerate(channel.index):
            levels.append(Fraction(operating.demand[name][i]) ** 2 / (2 * inverse[k, k]))
    return replace(part, level=min(part.level, float_below(min(levels))))
