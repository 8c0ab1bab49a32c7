"""Friction of motors, one model for plants and emulated rigs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from concur.codegen import Vector
from concur.errors import SimulationError, UnknownNameError, shown

FULL_SPEED = 1e-2
"""Speed above which Coulomb friction has nearly its full value, rad/s or m/s; smoothed below."""


@dataclass(frozen=True)
class Friction:
    """Viscous and Coulomb friction at the controls of a robot.

    A control u at the speed w drives the robot with ``u - viscous w - coulomb tanh(w / 0.01)``.

    Parameters
    ----------
    viscous : tuple of float
        Friction by speed of each control, N m s/rad or N s/m.
    coulomb : tuple of float
        Friction of each moving control, N m or N.

    Raises
    ------
    SimulationError
        If a number is negative or not finite, or the lengths differ.
    """

    viscous: tuple[float, ...]
    coulomb: tuple[float, ...]

    def __post_init__(self) -> None:
        for name in ("viscous", "coulomb"):
            values = np.asarray(getattr(self, name), dtype=float)
            sound = (values >= 0.0) & np.isfinite(values)
            if values.shape != (len(self.viscous),) or not sound.all():
                raise SimulationError(
                    f"friction, `{name}`",
                    expected="a finite number, zero or more, for each control",
                    came=shown(getattr(self, name)),
                    cure="Make it with Friction.of(robot, viscous, coulomb).",
                )
            object.__setattr__(self, name, tuple(values.tolist()))

    @classmethod
    def of(
        cls,
        robot: Any,
        viscous: float | Mapping[str, float] = 0.0,
        coulomb: float | Mapping[str, float] = 0.0,
    ) -> Friction:
        """Friction of a robot, from a number for all controls or numbers by name.

        Parameters
        ----------
        robot : Mechanism
            The robot.
        viscous, coulomb : float or mapping of str to float
            A number for all controls, or by name of the control with 0 for the others; N m s/rad
            and N m, or N s/m and N.

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
        names, found = robot.control_names, []
        for what, given in (("viscous", viscous), ("coulomb", coulomb)):
            table = given if isinstance(given, Mapping) else dict.fromkeys(names, given)
            for name in table:
                if name not in names:
                    raise UnknownNameError(
                        f"friction of `{robot.name}`, `{what}`",
                        expected=f"controls out of {', '.join(names)}",
                        came=shown(name),
                        cure="Check the spelling.",
                    )
            found.append(tuple(table.get(name, 0.0) for name in names))
        return cls(*found)

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
        if isinstance(speed, np.ndarray):
            viscous, coulomb = np.array(self.viscous), np.array(self.coulomb)
            return u - viscous * speed - coulomb * np.tanh(speed / FULL_SPEED)
        viscous, coulomb = ca.DM(self.viscous), ca.DM(self.coulomb)
        return u - viscous * speed - coulomb * ca.tanh(speed / FULL_SPEED)
