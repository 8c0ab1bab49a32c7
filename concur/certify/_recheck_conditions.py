"""Conditions of a claim about errors: what the loop has to fulfil for the claim to hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

CONTINUOUS = "the law acts in continuous time on the true state: no hold, delay or noise"
EXACT = "the robot is the model: no wrong masses or momentum, no friction, no disturbance"
FOLLOWED = "the errors obey the error dynamics: no torque limit, damping or singular configuration"
LIMITS = "no torque reaches its limit"
JOINTS = "no joint reaches a limit that the law keeps"
INTERNAL = "the internal motion is no part of the claim"


def conditions_of(law: Any) -> tuple[str, ...]:
    """Conditions of claims about a servo, or about error dynamics alone."""
    if not hasattr(law, "outputs"):
        return (CONTINUOUS, EXACT, FOLLOWED)
    found = [CONTINUOUS, EXACT]
    if law.damping_threshold is None:
        found.append(f"no singular configuration: the margin stays above {law.singular_margin:g}")
    else:
        least = max(law.singular_margin, law.margins.damped_below)
        found.append(f"no damping near singular configurations: the margin stays above {least:g}")
    limits, kept = law.torque_limits, law.constraints is not None
    found += [LIMITS] if kept or (limits is not None and np.isfinite(limits).any()) else []
    found += [JOINTS] if kept else []
    return (*found, INTERNAL) if law.redundancy is not None else tuple(found)


def stated(required: Sequence[str], given: Sequence[str]) -> bool:
    """Whether given conditions include all required ones; they may add to one."""
    return all(any(one.startswith(need) for one in given) for need in required)


def texts(conditions: Sequence[str]) -> list[str]:
    """Lines of a text that states conditions."""
    return [f"- if {one}" for one in conditions]
