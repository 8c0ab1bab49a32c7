"""Statement of a proof about a task: starts, imperfections and limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from concur.errors import OutputError
from concur.proofs._expression import Expression, limits_of
from concur.proofs._ground import Ground
from concur.proofs._quantity import Quantity
from concur.proofs._reading import Reading
from concur.robot import Clearance


@dataclass(frozen=True)
class Statement:
    """Starts, imperfections and limits of a proof; values in SI units.

    Parameters
    ----------
    place, speed : tuple of float
        Radii of the start for each output: of its position (m) and velocity (m/s), about the
        declared start.
    heading : float
        Radius of the start's heading (rad). Outputs do not determine it, so it has no default.
    period, delay : float
        Longest time for which torques are held, and from measurement to torque (s).
    masses : float
        Largest relative error of the inertia of each body: of its mass, first and second moments
        by the same factor, another one for each body.
    torque_error : tuple of float
        Largest error of each control, such as friction (N, N m); empty for none.
    push : tuple of float
        Largest unmodelled acceleration of each output (m/s^2); empty for none.
    torques, speeds : mapping of str to float
        Largest absolute torque of controls and speed of shape velocities by name.
    angles : mapping of str to tuple of float
        Least and largest angle of joints by name (rad).
    corridor : mapping of str to float
        Largest distance of an output from its reference by name (m).
    margin : float
        Least decoupling margin.
    ground : Ground, optional
        Wheels and supports, with limits of their loads and of friction.
    clearance : Clearance, optional
        Capsules on bodies and obstacles, with least distances.
    expressions : tuple of Expression
        Functions of angles, speeds and torques, with limits.
    momentum_error : tuple of float
        Largest error of the declared momentum of a floater, linear (kg m/s) and angular about the
        inertial origin (kg m^2/s); empty for none.
    reading : Reading, optional
        Errors of the measured state.

    Raises
    ------
    OutputError
        If a number is negative or not finite, or `momentum_error` has another length.

    Examples
    --------
    >>> from concur.proofs import Statement
    >>> radii = {"place": (0.01, 0.02), "speed": (0.01, 0.01), "heading": 0.01}
    >>> statement = Statement(**radii, masses=0.02)
    >>> statement.place
    (0.01, 0.02)
    """

    place: tuple[float, ...]
    speed: tuple[float, ...]
    heading: float
    period: float = 0.0
    delay: float = 0.0
    masses: float = 0.0
    torque_error: tuple[float, ...] = ()
    push: tuple[float, ...] = ()
    torques: Mapping[str, float] = field(default_factory=dict)
    speeds: Mapping[str, float] = field(default_factory=dict)
    angles: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    corridor: Mapping[str, float] = field(default_factory=dict)
    margin: float = 0.0
    ground: Ground | None = None
    clearance: Clearance | None = None
    expressions: tuple[Expression, ...] = ()
    momentum_error: tuple[float, ...] = ()
    reading: Reading | None = None

    def __post_init__(self) -> None:
        plain = (self.heading, self.period, self.delay, self.masses, self.margin)
        listed = (self.place, self.speed, self.torque_error, self.push, self.momentum_error)
        tables = (self.torques, self.speeds, self.corridor)
        numbers = [*plain, *(x for one in listed for x in one)]
        numbers += [x for one in tables for x in one.values()]
        if not all(np.isfinite(x) and x >= 0.0 for x in numbers) or self.masses >= 1.0:
            raise OutputError(
                "statement of a proof",
                expected="finite numbers that are not negative, and `masses` below 1",
                came=str(numbers),
                cure="Give radii and bounds in SI units.",
            )
        if len(self.momentum_error) not in (0, 2):
            raise OutputError(
                "statement of a proof, `momentum_error`",
                expected="a linear and an angular radius",
                came=str(self.momentum_error),
                cure="Give both, in kg m/s and kg m^2/s.",
            )

        boxes = [one.name for one in self.clearance.obstacles if one.box] if self.clearance else []
        if boxes:
            raise OutputError(
                f"statement of a proof, obstacle `{boxes[0]}`",
                expected="a sphere or capsule",
                came="a box",
                cure="Enclose it in capsules; a servo keeps away from boxes by its `constraints`, "
                "a plan by its obstacles.",
            )
        if self.clearance is not None and self.clearance.between:
            raise OutputError(
                "statement of a proof, `clearance`",
                expected="pairs of capsules and obstacles",
                came="pairs of capsules that both move",
                cure="Remove these pairs; a servo keeps them by its `constraints`.",
            )

    def scaled(self, factor: float) -> Statement:
        """The same limits for starts and imperfections times a factor.

        Parameters
        ----------
        factor : float
            Factor on radii of the start, times and errors.

        Returns
        -------
        Statement
            Another statement.
        """
        plain = ("heading", "period", "delay", "masses")
        listed = ("place", "speed", "torque_error", "push", "momentum_error")
        own: dict[str, Any] = {name: factor * getattr(self, name) for name in plain}
        own |= {name: tuple(factor * r for r in getattr(self, name)) for name in listed}
        reading = None if self.reading is None else self.reading.scaled(factor)
        return replace(self, **own, reading=reading)

    @property
    def limits(self) -> dict[tuple[str, str], float]:
        """Limit of each quantity by its kind and name."""
        found = {("margin", "decoupling"): self.margin}
        found |= {("torque", name): value for name, value in self.torques.items()}
        found |= {("speed", name): value for name, value in self.speeds.items()}
        found |= {("corridor", name): value for name, value in self.corridor.items()}
        for name, (low, high) in self.angles.items():
            found |= {("angle above", name): low, ("angle below", name): high}
        if self.clearance is not None:
            found |= {("clearance", name): least for name, least in self.clearance.least.items()}
        if self.ground is not None:
            found |= self.ground.limits
        return found | limits_of(self.expressions)

    @property
    def added(self) -> list[Quantity]:
        """Quantities beyond those of every robot: distances, expressions, then the ground's."""
        return [
            *(
                Quantity("clearance", name, "m", -1.0)
                for name in (self.clearance.least if self.clearance else ())
            ),
            *(made.quantity for made in self.expressions),
            *(self.ground.quantities if self.ground else ()),
        ]
