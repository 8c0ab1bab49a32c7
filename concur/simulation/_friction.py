"""Friction of motors, one model for plants and emulated rigs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from concur.codegen import Vector, as_floats
from concur.errors import SimulationError, UnknownNameError, shown

FULL_SPEED = 1e-2
"""Speed above which Coulomb friction has nearly its full value, rad/s or m/s; smoothed below."""

STRIBECK_SPEED = 0.1
"""Speed at which friction in excess of Coulomb friction has fallen to 1/e, rad/s or m/s."""


@dataclass(frozen=True)
class Friction:
    """Viscous, Coulomb and Stribeck friction at the controls of a robot.

    A control u at the speed w drives the robot with
    ``u - viscous w - (coulomb + stribeck exp(-(w / stribeck_speed)^2)) tanh(w / full_speed)``.

    Parameters
    ----------
    viscous : tuple of float
        Friction by speed of each control, N m s/rad or N s/m.
    coulomb : tuple of float
        Friction of each moving control, N m or N.
    stribeck : tuple of float, optional
        Friction of each control at breakaway in excess of that in motion, N m or N; default zero.
    full_speed : float
        Speed above which Coulomb friction has nearly its full value, rad/s or m/s. The slope of
        friction at rest, and so the step of integration, depends on it.
    stribeck_speed : float
        Speed at which the excess has fallen to 1/e, rad/s or m/s.

    Raises
    ------
    SimulationError
        If a number is negative or not finite, a speed is zero, or the lengths differ.

    Examples
    --------
    >>> from concur.simulation import Friction
    >>> Friction(viscous=(0.1, 0.1), coulomb=(0.05, 0.0)).coulomb
    (0.05, 0.0)
    """

    viscous: tuple[float, ...]
    coulomb: tuple[float, ...]
    stribeck: tuple[float, ...] = ()
    full_speed: float = FULL_SPEED
    stribeck_speed: float = STRIBECK_SPEED

    def __post_init__(self) -> None:
        if not len(self.stribeck):
            object.__setattr__(self, "stribeck", (0.0,) * len(self.viscous))
        for name in ("viscous", "coulomb", "stribeck"):
            values = as_floats(getattr(self, name), f"friction, `{name}`")
            sound = (values >= 0.0) & np.isfinite(values)
            if values.shape != (len(self.viscous),) or not sound.all():
                raise SimulationError(
                    f"friction, `{name}`",
                    expected="a finite number, zero or more, for each control",
                    came=shown(getattr(self, name)),
                    cure="Make it with Friction.of(robot, viscous, coulomb).",
                )
            object.__setattr__(self, name, tuple(values.tolist()))
        for name in ("full_speed", "stribeck_speed"):
            speed = getattr(self, name)
            if not (isinstance(speed, int | float) and 0.0 < speed < np.inf):
                raise SimulationError(
                    f"friction, `{name}`",
                    expected="a speed above zero, rad/s or m/s",
                    came=shown(speed),
                    cure="Omit it for the default.",
                )
            object.__setattr__(self, name, float(speed))

    @classmethod
    def of(
        cls,
        robot: Any,
        viscous: float | Mapping[str, float] = 0.0,
        coulomb: float | Mapping[str, float] = 0.0,
        stribeck: float | Mapping[str, float] = 0.0,
        full_speed: float = FULL_SPEED,
        stribeck_speed: float = STRIBECK_SPEED,
    ) -> Friction:
        """Friction of a robot, from a number for all controls or numbers by name.

        Parameters
        ----------
        robot : Mechanism
            The robot.
        viscous, coulomb, stribeck : float or mapping of str to float
            A number for all controls, or by name of the control with 0 for the others; N m s/rad
            and N m, or N s/m and N.
        full_speed, stribeck_speed : float
            Speeds, rad/s or m/s, as above.

        Returns
        -------
        Friction
            The friction.

        Raises
        ------
        UnknownNameError
            If there is no such control.

        Examples
        --------
        >>> import concur as cc
        >>> robot = cc.robots.rover_arm()
        >>> friction = cc.simulation.Friction.of(robot, 0.1, {"turret": 0.3})
        >>> friction.coulomb
        (0.0, 0.0, 0.3, 0.0, 0.0)
        """
        where, names = f"friction of `{robot.name}`", robot.control_names
        one, two, three = (
            by_name(f"{where}, `{what}`", "controls", names, given)
            for what, given in (
                ("viscous", viscous),
                ("coulomb", coulomb),
                ("stribeck", stribeck),
            )
        )
        return cls(one, two, three, full_speed, stribeck_speed)

    @property
    def slope(self) -> np.ndarray:
        """Slope of friction over speed at rest, the steepest, shape (nu,), N m s/rad or N s/m."""
        return slope_at_rest(self.viscous, self.coulomb, self.stribeck, self.full_speed)

    def left(self, u: Vector, speed: Vector) -> Any:
        """Forces and torques that are left of the controls.

        Parameters
        ----------
        u : array_like or casadi.SX
            Controls, shape (nu,), N and N m.
        speed : array_like or casadi.SX
            Velocities along the controls, shape (nu,), m/s and rad/s.

        Returns
        -------
        numpy.ndarray or casadi.SX
            Shape (nu,).
        """
        as_numbers = np.array if isinstance(speed, np.ndarray) else ca.DM
        parts = [as_numbers(part) for part in (self.viscous, self.coulomb, self.stribeck)]
        return rubbed(u, speed, parts, self.full_speed, self.stribeck_speed)


def rubbed(
    u: Any, speed: Any, parts: Sequence[Any], full_speed: float, stribeck_speed: float
) -> Any:
    """What friction leaves of controls: the formula of `Friction`, of numbers or expressions."""
    viscous, coulomb, stribeck = parts
    math: Any = np if isinstance(speed, np.ndarray) else ca
    excess = stribeck * math.exp(-((speed / stribeck_speed) ** 2))
    return u - viscous * speed - (coulomb + excess) * math.tanh(speed / full_speed)


def slope_at_rest(viscous: Any, coulomb: Any, stribeck: Any, full_speed: float) -> np.ndarray:
    """Slope of friction over speed at rest."""
    slope: np.ndarray = np.add(viscous, np.add(coulomb, stribeck) / full_speed)
    return slope


def by_name(
    where: str, what: str, names: tuple[str, ...], given: Any, other: float = 0.0
) -> tuple[float, ...]:
    """Numbers in the order of names: from one for all, or a table that may lack some (`other`)."""
    table = given if isinstance(given, Mapping) else dict.fromkeys(names, given)
    for name in table:
        if name not in names:
            raise UnknownNameError(
                where,
                expected=f"{what} out of {', '.join(names)}",
                came=shown(name),
                cure="Check the spelling.",
            )
    return tuple(table.get(name, other) for name in names)
