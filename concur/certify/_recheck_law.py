"""The law of a servo as stored in files, read from its attributes alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, Protocol

import numpy as np

from concur.certify._recheck_rational import Matrix
from concur.errors import DescriptionError

_GROUPS = {
    "R": ["R1"],
    "R2": ["R2"],
    "R3": ["R3"],
    "SO2": ["SO2"],
    "SE2": ["SE2"],
    "SO3": ["SO3"],
    "S2": ["S2"],
    "SE3": ["SE3"],
    "R3xSO3": ["R3", "SO3"],
}


operating_laws: list[Callable[[Any, dict[str, Any]], dict[str, Any] | None]] = []
"""Function that converts a servo's law to the form of an operating-box file, set by the writer.

It is not imported here, to keep the checker independent: it only compares two laws.
"""


class Law(Protocol):
    """Attributes of a servo that the checker reads."""

    @property
    def outputs(self) -> Sequence[Any]: ...

    @property
    def stiffness(self) -> Any: ...

    @property
    def damping(self) -> Any: ...

    @property
    def inertia(self) -> Any: ...

    @property
    def integral(self) -> Any: ...


def law_of(servo: Law) -> tuple[list[str], dict[str, Matrix]]:
    """Groups and gains of the error dynamics of a servo."""
    names = ("stiffness", "damping", "inertia")
    if not all(hasattr(servo, name) for name in ("outputs", *names)):
        raise DescriptionError(
            "recheck, `servo`",
            expected="a Servo",
            came=f"{type(servo).__name__} {servo!r:.40}",
            cure="Pass the servo that the file is about.",
        )
    groups = [
        name for output in servo.outputs for name in _GROUPS.get(output.group, [output.group])
    ]
    gains = {
        name: [[Fraction(float(v)) for v in row] for row in np.asarray(getattr(servo, name))]
        for name in names
    }
    # No proof is about a law with an integral.
    if getattr(servo, "integral", None) is not None:
        gains["integral"] = [
            [Fraction(float(v)) for v in row] for row in np.asarray(servo.integral)
        ]
    return groups, gains
