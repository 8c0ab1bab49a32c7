"""Certificate of a law in a box of configurations."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import Any

import numpy as np

from concur.certify._files import write_document
from concur.certify._operating_counterexample import (
    OperatingCounterexample,
)
from concur.certify._recheck_document import OPERATING
from concur.certify._status import ESTIMATE, Status
from concur.results import Figures, Row, picked, plain

_NOTHING = 1e-300  # N and N m: a smaller bound counts as zero


@dataclass(frozen=True, eq=False)
class OperatingCertificate:
    """Certificate of the law in a box of configurations.

    Parameters
    ----------
    status : Status
        PROVED: everywhere in the box the margin is above `required_margin` and, if speeds and
        commands were stated, the control inputs are within their limits. REFUTED: not so at
        `counterexample`. UNDECIDED otherwise.
    reason : str
        Explanation of the status.
    name : str
        Name of the robot.
    ranges : dict of str to tuple of float
        Ranges of the coordinates that matter, by name, rad and m.
    required_margin : float
        Required margin.
    margin : float or None
        Lower bound of the margin over the whole box; None when some of it has no bound.
    margin_found : float
        Smallest margin found at samples.
    lower, upper : numpy.ndarray
        Bounds of the control inputs, shape (nu,), N and N m; infinite without a bound, empty
        when no speeds were stated.
    limits : numpy.ndarray or None
        Limits of the control inputs, shape (nu, 2); None without limits.
    names, units : tuple of str
        Names and units of the control inputs.
    demand : dict of str to list of float
        Bounds of speeds, commanded acceleration and errors, as stated.
    boxes : numpy.ndarray
        Boxes that together cover the ranges, shape (b, 2, k), in the order of `ranges`.
    undecided_boxes : numpy.ndarray
        Undecided boxes, in which the claim is not proved, shape (l, 2, k).
    tested : int
        Number of boxes evaluated.
    counterexample : OperatingCounterexample or None
        Given when the status is REFUTED.
    law : callable or None
        Returns the law as `save` writes it; with True also the program that evaluates a state.

    Examples
    --------
    >>> import concur as cc
    >>> from concur.certify import operating_bounds
    >>> model = cc.reduce(cc.robots.rover_arm())
    >>> base = cc.Output("base", "chassis", "R2", point=(0.25, 0, 0))
    >>> hand = cc.Output("hand", "forearm", "R3", point=(0, 0.2, 0))
    >>> servo = cc.Servo(model, [base, hand], stiffness=4, damping=4)
    >>> box = {"turret": (-0.1, 0.1), "upper_arm": (0.9, 1.1), "forearm": (-1.7, -1.5)}
    >>> found = operating_bounds(servo, box)
    >>> found.status.name, found.margin <= found.margin_found
    ('PROVED', True)
    >>> found.save("operating.json")
    """

    status: Status
    reason: str
    name: str
    ranges: dict[str, tuple[float, float]]
    required_margin: float
    margin: float | None
    margin_found: float
    lower: np.ndarray
    upper: np.ndarray
    limits: np.ndarray | None
    names: tuple[str, ...]
    units: tuple[str, ...]
    demand: dict[str, list[float]]
    boxes: np.ndarray
    undecided_boxes: np.ndarray
    tested: int
    counterexample: OperatingCounterexample | None = None
    law: Callable[[bool], dict[str, Any] | None] | None = field(default=None, repr=False)

    @property
    def torque(self) -> np.ndarray:
        """Proved bound of the magnitude of each control input, shape (nu,), N and N m."""
        return np.asarray(np.maximum(np.abs(self.lower), np.abs(self.upper)))

    @property
    def bounds(self) -> tuple[str, ...]:
        """Bounds of each control input as text of four digits; "no bound" if nothing is proved."""
        found = []
        for low, high, unit in zip(self.lower, self.upper, self.units, strict=True):
            # Write the smallest floats, which bound a zero outwards, as zero.
            ends = [0.0 if abs(end) < _NOTHING else float(end) for end in (low, high)]
            known = all(map(math.isfinite, ends))
            found.append(f"{ends[0]:.4g} to {ends[1]:.4g} {unit}" if known else "no bound")
        return tuple(found)

    @property
    def rows(self) -> tuple[Row, ...]:
        """Decoupling margin, and the ends of each control, beside their limits."""
        proved = self.margin_status is Status.PROVED
        found = [Row("decoupling margin", self.margin, self.required_margin, "", self.name, proved)]
        limits = np.full((len(self.names), 2), np.nan) if self.limits is None else self.limits
        for k, (name, unit) in enumerate(zip(self.names, self.units, strict=True)):
            kept = self.control_statuses[k] is Status.PROVED
            for side, ends in (("smallest", self.lower), ("largest", self.upper)):
                low = side == "smallest"
                limit = float(limits[k][0 if low else 1])
                row = Row(f"{side} control", float(ends[k]), None, unit, name, kept, at_least=low)
                found.append(replace(row, limit=limit) if math.isfinite(limit) else row)
        return (replace(found[0], at_least=True), *found[1:])

    @property
    def figures(self) -> Figures:
        """Empty: there is no figure of a box."""
        return {}

    def save(self, path: str | PathLike[str]) -> None:
        """Write the statement with its boxes.

        Parameters
        ----------
        path : str or os.PathLike
            File to write, JSON. It contains the law as instructions, so that `recheck` can verify
            the proof with independent arithmetic.

        Raises
        ------
        DescriptionError
            If the file cannot be written.
        """
        strong = self.counterexample is not None and self.counterexample.margin is None
        members = {
            "status": self.status.name,
            "reason": self.reason,
            "robot": self.name,
            "ranges": {name: list(ends) for name, ends in self.ranges.items()},
            "least": self.required_margin,
            "margin": self.margin,
            "controls": list(self.names),
            "units": list(self.units),
            **picked(self, "lower", "upper", "limits"),
            "demand": self.demand,
            "tested": self.tested,
            "boxes": self.boxes.tolist(),
            "left": self.undecided_boxes.tolist(),
            "counterexample": self.counterexample and plain(self.counterexample),
            "estimates_not_proved": picked(self, "margin_found"),
            "law": None if self.law is None else self.law(strong),
        }
        write_document(path, OPERATING, members)

    @property
    def margin_status(self) -> Status:
        """Whether the margin alone is above `required_margin` in the whole box."""
        if self.counterexample is not None and self.counterexample.margin is not None:
            return Status.REFUTED
        proved = self.margin is not None and self.margin > self.required_margin
        return Status.PROVED if proved else Status.UNDECIDED

    @property
    def control_statuses(self) -> tuple[Status, ...]:
        """Whether each control input alone is bounded, and within its limits, shape (nu,)."""
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
        asked = f"required: more than {self.required_margin:.3g}"
        lines = [f"{self.status.name}. {self.reason}"]
        if self.margin is not None:
            lines.append(f"Margin at least {self.margin:.4g} ({asked}); {len(self.boxes)} boxes.")
        elif len(self.boxes):
            lines.append(f"No margin is proved ({asked}); {len(self.boxes)} boxes.")
        else:
            lines.append(f"Margin {asked}.")
        lines.append(f"Smallest margin at samples {self.margin_found:.4g}: {ESTIMATE}.")
        if not self.names:
            lines.append("Torques: not bounded, as no speeds were stated.")
        # The search for a counterexample precedes the bounds.
        for i in range(len(self.lower) if len(self.boxes) else 0):
            limit = ""
            if self.limits is not None:
                limit = f", limits {self.limits[i, 0]:.4g} to {self.limits[i, 1]:.4g}"
            lines.append(f"- {self.names[i]}: {self.bounds[i]}{limit}")
        return "\n".join(lines)
