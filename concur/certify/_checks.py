"""Checks of arguments that certificates, searches and proofs share."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, pi
from typing import Any

import numpy as np

from concur.errors import OutputError
from concur.outputs import Output


def check(holds: bool, where: str, expected: str, came: Any, cure: str) -> None:
    """Reject an argument unless `holds` is true."""
    if not holds:
        text = came if isinstance(came, str) else f"{came!r:.40}"
        text = f"{came:.6g}" if isinstance(came, (float, np.floating)) else text
        raise OutputError(where, expected=expected, came=text, cure=cure)


def check_angle(where: str, angle: float) -> None:
    """Reject a bound of rotation errors that is not above 0 and at most pi, rad."""
    check(
        0.0 < angle <= pi,
        f"{where}, `angle`",
        "above 0 and at most pi rad",
        angle,
        "The logarithm of a rotation error is smooth below pi only. Convert degrees by "
        "numpy.radians.",
    )


def check_distance(where: str, distance: float) -> None:
    """Reject a bound of position errors that is not above 0 m and finite."""
    expected, cure = "above 0 m and finite", "Omit it to leave positions unbounded."
    check(0.0 < distance < inf, f"{where}, `distance`", expected, distance, cure)


def check_groups(where: str, outputs: Sequence[Output]) -> None:
    """Reject directions, whose errors alone do not carry a twist of the reference."""
    some = [output.name for output in outputs if output.group == "S2"]
    expected, cure = "outputs on groups", "Follow the attitude, SO3, or leave this question out."
    check(not some, f"{where}, `outputs`", expected, f"{', '.join(some)} in S2", cure)


def check_budget(where: str, budget: object) -> int:
    """Return a number of boxes, at least 1."""
    whole = isinstance(budget, (int, np.integer)) and not isinstance(budget, bool)
    sound = whole and int(budget) >= 1  # type: ignore[call-overload]
    check(sound, f"{where}, `budget`", "a number of boxes, at least 1", budget, "Omit it.")
    return int(budget)  # type: ignore[call-overload, no-any-return]


def check_fraction(where: str, name: str, value: float) -> None:
    """Reject a fraction of a rate that is not above 0 and at most 1."""
    expected, cure = "a fraction of the rate, above 0 and at most 1", "Omit it."
    check(0.0 < value <= 1.0, f"{where}, `{name}`", expected, value, cure)


def check_sizes(where: str, sizes: np.ndarray) -> None:
    """Reject negative sizes."""
    least = float(np.min(sizes, initial=0.0))
    cure = "Give absolute values."
    check(least >= 0.0, where, "nonnegative bounds", least, cure)
