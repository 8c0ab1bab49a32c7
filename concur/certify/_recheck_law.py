"""The law of a servo as a stored file names it, read from its attributes alone."""

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
    "SE3": ["SE3"],
    "R3xSO3": ["R3", "SO3"],
}


operating_laws: list[Callable[[Any, dict[str, Any]], dict[str, Any] | None]] = []
"""What writes a servo's law as a file of an operating box has it: put here by what writes files.

So it is not imported here: it only says whether two laws are the same, and verifies nothing.
"""


class Law(Protocol):
    """What of a servo is looked at."""

    @property
    def outputs(self) -> Sequence[Any]: ...

    @property
    def stiffness(self) -> Any: ...

    @property
    def damping(self) -> Any: ...

    @property
    def inertia(self) -> Any: ...


def law_of(servo: Law) -> tuple[list[str], dict[str, Matrix]]:
    """Give the groups and gains that the error dynamics of a servo depend on."""
    names = ("stiffness", "damping", "inertia")
    if not all(hasattr(servo, name) for name in ("outputs", *names)):
        raise DescriptionError(
            "recheck, `servo`",
            expected="a Servo",
            came=f"{type(servo).__name__} {servo!r:.40}",
            cure="Give the servo that the file is to be about.",
        )
    groups = [
        name for output in servo.outputs for name in _GROUPS.get(output.group, [output.group])
    ]
    gains = {
        name: [[Fraction(float(v)) for v in row] for row in np.asarray(getattr(servo, name))]
        for name in names
    }
    return groups, gains
