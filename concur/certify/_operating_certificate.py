"""What is proved about a law in a box of configurations."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from os import PathLike
from typing import Any

import numpy as np

from concur.certify._files import finite, program_versions, write_document
from concur.certify._operating_counterexample import (
    OperatingCounterexample,
)
from concur.certify._recheck_document import OPERATING
from concur.certify._status import ESTIMATE, Status

_NOTHING = 1e-300  # N and N m: a bound of this size is one of zero


@dataclass(frozen=True, eq=False)
class OperatingCertificate:
    """What is proved about the law in a box of configurations.

    Parameters
    ----------
    status : Status
        PROVED: the margin is above `least` and, if speeds and commands were stated, the controls
        need no more than their limits, everywhere in the box. REFUTED: not so at
        `counterexample`. UNDECIDED otherwise.
    reason : str
        What the status rests on.
    name : str
        Name of the robot.
    ranges : dict of str to tuple of float
        Ranges of the coordinates that matter, by name, rad and m.
    least : float
        Margin that was asked for.
    margin : float or None
        Lower bound of the margin over all of the box; None when some of it has none.
    margin_found : float
        Smallest margin met.
    lower, upper : numpy.ndarray
        Bounds of the controls, shape (nu,), N and N m; infinite where there are none, empty when
        no speeds were stated.
    limits : numpy.ndarray or None
        Limits of the controls, shape (nu, 2); None without.
    names, units : tuple of str
        Names and units of the controls.
    demand : dict of str to list of float
        Bounds of speeds, commanded acceleration and errors, as stated.
    boxes : numpy.ndarray
        Boxes that make up the whole, shape (b, 2, k), in the order of `ranges`.
    left : numpy.ndarray
        Those of them in which what was asked for is not proved, shape (l, 2, k).
    tested : int
        Boxes looked at.
    counterexample : OperatingCounterexample or None
        Given when the status is REFUTED.
    law : callable or None
        What `save` writes of the law; with True also what judges a state.
    """

    status: Status
    reason: str
    name: str
    ranges: dict[str, tuple[float, float]]
    least: float
    margin: float | None
    margin_found: float
    lower: np.ndarray
    upper: np.ndarray
    limits: np.ndarray | None
    names: tuple[str, ...]
    units: tuple[str, ...]
    demand: dict[str, list[float]]
    boxes: np.ndarray
    left: np.ndarray
    tested: int
    counterexample: OperatingCounterexample | None = None
    law: Callable[[bool], dict[str, Any] | None] | None = field(default=None, repr=False)

    @property
    def torque(self) -> np.ndarray:
        """Largest size of each control, proved, shape (nu,), N and N m."""
        return np.asarray(np.maximum(np.abs(self.lower), np.abs(self.upper)))

    @property
    def bounds(self) -> tuple[str, ...]:
        """Bounds of each control in words, of four digits; "no bound" where nothing is proved."""
        found = []
        for low, high, unit in zip(self.lower, self.upper, self.units, strict=True):
            # The smallest floats, which bound a zero outwards, are written as zero.
            ends = [0.0 if abs(end) < _NOTHING else float(end) for end in (low, high)]
            known = all(map(math.isfinite, ends))
            found.append(f"{ends[0]:.4g} to {ends[1]:.4g} {unit}" if known else "no bound")
        return tuple(found)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the statement with its boxes.

        Parameters
        ----------
        path : str or os.PathLike
            File to write, JSON. It has the law as instructions, so that `recheck` can verify
            what was proved by arithmetic of its own.

        Raises
        ------
        DescriptionError
            If the file cannot be written.
        """
        numbers = {name: finite(getattr(self, name)) for name in ("lower", "upper", "limits")}
        strong = self.counterexample is not None and self.counterexample.margin is None
        document = {
            "format": OPERATING,
            "version": 1,
            "versions": program_versions(),
            "status": self.status.name,
            "reason": self.reason,
            "robot": self.name,
            "ranges": {name: list(ends) for name, ends in self.ranges.items()},
            "least": self.least,
            "margin": self.margin,
            "controls": list(self.names),
            "units": list(self.units),
            **numbers,
            "demand": self.demand,
            "tested": self.tested,
            "boxes": self.boxes.tolist(),
            "left": self.left.tolist(),
            "counterexample": self.counterexample and self.counterexample.as_dict(),
            "estimates_not_proved": {"margin_found": finite(self.margin_found)},
            "law": None if self.law is None else self.law(strong),
        }
        write_document(path, document)

    @property
    def margin_status(self) -> Status:
        """Whether the margin alone is above `least` in all of the box."""
        if self.counterexample is not None and self.counterexample.margin is not None:
            return Status.REFUTED
        proved = self.margin is not None and self.margin > self.least
        return Status.PROVED if proved else Status.UNDECIDED

    @property
    def control_statuses(self) -> tuple[Status, ...]:
        """Whether each control alone is bounded, and by its limits if it has any, shape (nu,)."""
        found = []
        for i, (low, high) in enumerate(zip(self.lower, self.upper, strict=True)):
            inside = math.isfinite(low) and math.isfinite(high)
            if self.limits is not None:
                inside = inside and self.limits[i, 0] <= low and high <= self.limits[i, 1]
            strong = self.counterexample is not None and self.counterexample.control
            refuted = strong == self.names[i]
            found.append(
                Status.PROVED if inside else Status.REFUTED if refuted else Status.UNDECIDED
            )
        return tuple(found)

    def __str__(self) -> str:
        asked = f"asked for more than {self.least:.3g}"
        lines = [f"{self.status.name}. {self.reason}"]
        if self.margin is not None:
            lines.append(f"Margin at least {self.margin:.4g} ({asked}); {len(self.boxes)} boxes.")
        elif len(self.boxes):
            lines.append(f"No margin is proved ({asked}); {len(self.boxes)} boxes.")
        else:
            lines.append(f"Margin: {asked}.")
        lines.append(f"Smallest margin at samples {self.margin_found:.4g}: {ESTIMATE}.")
        if not self.names:
            lines.append("Torques: not bounded, as no speeds were stated.")
        # A state that refutes is looked for before bounds are.
        for i in range(len(self.lower) if len(self.boxes) else 0):
            limit = ""
            if self.limits is not None:
                limit = f", limits {self.limits[i, 0]:.4g} to {self.limits[i, 1]:.4g}"
            lines.append(f"- {self.names[i]}: {self.bounds[i]}{limit}")
        return "\n".join(lines)
