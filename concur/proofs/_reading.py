"""Errors of the measured state: quantised angles, estimated speeds, and the pose of the base."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from concur.errors import OutputError
from concur.proofs._quantity import require_known


@dataclass(frozen=True)
class Reading:
    """Largest errors of what the law reads, each constant or not in time.

    Parameters
    ----------
    angles : mapping of str to float
        Of joints of the arm by name (rad): half the step of an encoder that rounds, the step of one
        that counts. Those of wheels have no effect.
    speeds : mapping of str to float, optional
        Of shape velocities by name (rad/s). Required with errors of angles: a difference of two
        angles over a time h errs by twice their error over h, and an estimator has a lag.
    place, heading : float
        Of the base's position (m), in any direction, and of its heading (rad).

    Raises
    ------
    OutputError
        If a number is negative, or angles have errors and speeds are not given.
    """

    angles: Mapping[str, float] = field(default_factory=dict)
    speeds: Mapping[str, float] | None = None
    place: float = 0.0
    heading: float = 0.0

    def __post_init__(self) -> None:
        given = [*self.angles.values(), *(self.speeds or {}).values(), self.place, self.heading]
        if not all(np.isfinite(x) and x >= 0.0 for x in given):
            raise OutputError(
                "readings of a proof",
                expected="finite numbers that are not negative",
                came=str(given),
                cure="Give the largest absolute errors.",
            )
        if any(self.angles.values()) and self.speeds is None:
            raise OutputError(
                "readings of a proof, `speeds`",
                expected="the largest error of each speed, as those of angles are given",
                came="no value",
                cure="Give the bound of the estimator; differences of angles over a time h err by "
                "2 / h times the error of the angle, and by the acceleration times h / 2.",
            )

    @property
    def sentence(self) -> str:
        """The errors, each the largest of its kind."""
        parts = [
            (max(self.angles.values(), default=0.0), "rad of angles"),
            (max((self.speeds or {}).values(), default=0.0), "rad/s of speeds"),
            (self.place, "m of the base's place"),
            (self.heading, "rad of the heading"),
        ]
        return ", ".join(f"{value:g} {what}" for value, what in parts if value) or "none"

    def scaled(self, factor: float) -> Reading:
        """The same errors times a factor.

        Parameters
        ----------
        factor : float
            The factor.

        Returns
        -------
        Reading
            Other errors.
        """
        angles, speeds = (
            None if part is None else {name: factor * value for name, value in part.items()}
            for part in (self.angles, self.speeds)
        )
        return Reading(angles or {}, speeds, factor * self.place, factor * self.heading)

    def of(
        self, joints: Sequence[str], velocities: Sequence[str]
    ) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Errors of joints and of shape velocities in their order.

        Parameters
        ----------
        joints, velocities : sequence of str
            Their names.

        Returns
        -------
        angles, speeds : tuple of float
            Errors, 0 for those without.

        Raises
        ------
        OutputError
            If there is an error of another name.
        """
        found = []
        for what, given, names in (
            ("`angles` of the arm's joints", self.angles, joints),
            ("`speeds`", self.speeds or {}, velocities),
        ):
            require_known(given, names, f"readings of a proof, {what}")
            found.append(tuple(float(given.get(name, 0.0)) for name in names))
        return found[0], found[1]
