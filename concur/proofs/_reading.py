"""Errors of the measured state: quantised angles, estimated speeds, and the pose of the base."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np

from concur.control import Servo
from concur.errors import OutputError
from concur.proofs._quantity import require_known
from concur.robot import unknown_name
from concur.tables import INTERNAL, ByName, NotNegative


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

    @classmethod
    def of_law(
        cls,
        servo: Annotated[Servo, INTERNAL],
        angles: ByName = None,
        speeds: ByName = None,
        place: NotNegative = 0.0,
        heading: NotNegative = 0.0,
    ) -> Reading:
        """Largest errors of the measured state that the law reads.

        Parameters
        ----------
        servo : Servo
            The law.
        angles : float or mapping of str to float, optional
            Error of the angles of the arm's joints, rad: a number for all, or a table by name.
            Default: none.
        speeds : float or mapping of str to float, optional
            Error of the shape velocities, rad/s: a number for all, or a table by name; required
            with `angles`. Default: none.
        place : float, optional
            Error of the position of the base, m.
        heading : float, optional
            Error of the heading of the base, rad.

        Returns
        -------
        Reading
            The errors by name; those of wheels' angles have no effect.

        Raises
        ------
        UnknownNameError
            If there is no such joint or shape velocity.

        Examples
        --------
        >>> base = cc.Output("base", "chassis", "R2", point=(0.25, 0, 0))
        >>> servo = cc.Servo(cc.reduce(cc.robots.rover_arm()), [base], 4, 4)
        >>> sorted(Reading.of_law(servo, angles=1e-3, speeds=0.01).angles)
        ['forearm', 'turret', 'upper_arm']
        """
        names = servo.model.shape_names
        wheels = {wheel.body for wheel in servo.model.robot.wheels}
        joints = [name for name in names if name not in wheels]
        found = {}
        for field_name, given, own in (("angles", angles, joints), ("speeds", speeds, names)):
            if given is None:
                continue
            table: Any = given if isinstance(given, Mapping) else dict.fromkeys(own, given)
            for name in table:
                if name not in own:
                    place_of = f"readings of a proof, `reading.{field_name}`"
                    raise unknown_name(place_of, "joint", name, own)
            found[field_name] = {name: float(value) for name, value in table.items()}
        return cls(**found, place=place, heading=heading)

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
