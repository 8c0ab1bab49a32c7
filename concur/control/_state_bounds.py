"""Bounds of the state of a law, such as an integral, and of the period that advances it.

A wrapped counter or a forged state would otherwise become a torque: ticks, exported C and FMUs
reject both as invalid input.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from concur.codegen import finite_floats
from concur.errors import ConcurError

SLOWEST = 3.0
"""Period times fastest rate of the errors above which no sampled loop is stable: with any gains,
integral ones too, it is unstable from 2 sqrt(2) on."""

FARTHEST = 100.0
"""Error, in sizes of the robot and in rad, whose proportional action a state may command."""

USUAL_PERIOD = 1.0
"""Longest period of a law whose rates are unknown, s."""


class StateBounds(NamedTuple):
    """Bounds of a law's state and of the period that advances it.

    Parameters
    ----------
    period : float
        Longest time from a tick to the next, s.
    state : numpy.ndarray
        Largest magnitude of each entry of the state z, shape (nz,), in its unit.
    entries : tuple of tuple of str
        Name and unit of each entry.

    Examples
    --------
    >>> import concur as cc
    >>> model = cc.reduce(cc.robots.rover_arm())
    >>> base = cc.Output("base", "chassis", "R2", point=(0.25, 0, 0))
    >>> servo = cc.Servo(model, [base], stiffness=4, damping=4, integral=2, longest_period=0.02)
    >>> servo.state_bounds.period
    0.02
    """

    period: float
    state: np.ndarray
    entries: tuple[tuple[str, str], ...] = ()

    def check_period(self, where: str, period: float) -> None:
        """Reject a control period with which no tick of a law with a state gives a torque.

        Parameters
        ----------
        where : str
            Place named in the error.
        period : float
            Time from a tick to the next, s.

        Raises
        ------
        ConcurError
            If the law has a state and the period is not from 0 to the bound.
        """
        if self.state.size and not 0.0 <= period <= self.period:
            raise ConcurError(
                where,
                expected=f"a control period up to {self.period:.6g} s, the `longest_period` of the "
                "law",
                came=f"{period:g} s",
                cure="Take a shorter period, or declare a larger `longest_period`.",
            )


def slowest_period(rates: np.ndarray) -> float:
    """Period above which no sampled loop is stable, s, from eigenvalues of the error equation."""
    fastest = float(np.abs(rates).max(initial=0.0))
    return SLOWEST / fastest if fastest > 0.0 else USUAL_PERIOD


def integral_bounds(stiffness: np.ndarray, integral: np.ndarray, units: np.ndarray) -> np.ndarray:
    """Integrals that command what proportional action commands at the farthest error, (size,).

    `units` are the robot's size, m, and rad, shape (size,).
    """
    bounds = np.abs(np.linalg.pinv(integral) @ stiffness) @ units
    # An integral without a gain has no effect: the slowest of the others bounds it.
    longest = float((bounds / units).max())
    return FARTHEST * np.where(bounds > 0.0, bounds, longest * units)


def check_state(where: str, state: Any, bounds: np.ndarray) -> None:
    """Reject a state that is not finite or beyond its bounds; another shape is left to the law."""
    values = finite_floats(state, where)
    if values.shape == bounds.shape and not (np.abs(values) <= bounds).all():
        worst = int((np.abs(values) / bounds).argmax())
        raise ConcurError(
            where,
            expected=f"a magnitude up to {bounds[worst]:.6g}, the `largest_state` of the law",
            came=f"[{worst}] = {values[worst]:g}",
            cure="A tick starts from zero after `reset`; declare a larger `largest_state` if this "
            "state is meant.",
        )
