"""Checks of the arguments that certificates, searches and proofs have in common."""

from __future__ import annotations

from math import inf, pi
from typing import Any

import numpy as np

from concur.errors import OutputError


def check(holds: bool, where: str, expected: str, came: Any, cure: str) -> None:
    """Refuse an argument unless something holds of it."""
    if not holds:
        text = came if isinstance(came, str) else f"{came!r:.40}"
        text = f"{came:.6g}" if isinstance(came, (float, np.floating)) else text
        raise OutputError(where, expected=expected, came=text, cure=cure)


def check_angle(where: str, angle: float) -> None:
    """Refuse a bound of rotation errors that is not above 0 and at most pi, rad."""
    check(
        0.0 < angle <= pi,
        f"{where}, `angle`",
        "above 0 and at most pi rad",
        angle,
        "The logarithm of a rotation error is smooth below pi only; degrees are turned into "
        "radians by numpy.radians.",
    )


def check_distance(where: str, distance: float) -> None:
    """Refuse a bound of position errors that is not above 0 m and finite."""
    expected, cure = "above 0 m and finite", "Leave it out to let positions be free."
    check(0.0 < distance < inf, f"{where}, `distance`", expected, distance, cure)


def check_budget(where: str, budget: object) -> int:
    """Return a number of boxes, at least 1."""
    whole = isinstance(budget, (int, np.integer)) and not isinstance(budget, bool)
    sound = whole and int(budget) >= 1  # type: ignore[call-overload]
    check(sound, f"{where}, `budget`", "a number of boxes, at least 1", budget, "Leave it out.")
    return int(budget)  # type: ignore[call-overload, no-any-return]


def check_fraction(where: str, name: str, value: float) -> None:
    """Refuse a part of a rate that is not above 0 and at most 1."""
    expected, cure = "a part of the rate, above 0 and at most 1", "Leave it out."
    check(0.0 < value <= 1.0, f"{where}, `{name}`", expected, value, cure)


def check_sizes(where: str, sizes: np.ndarray) -> None:
    """Refuse sizes of which one is negative."""
    least = float(np.min(sizes, initial=0.0))
    cure = "Give the largest size in both directions."
    check(least >= 0.0, where, "largest sizes, not negative", least, cure)
