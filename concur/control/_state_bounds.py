"""Bounds of the state of a law, such as an integral, and of the period that advances it.

A wrapped counter or a forged state would otherwise become a torque: ticks, exported C and FMUs
reject both as invalid input.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from concur.codegen import LARGEST, finite_floats
from concur.errors import ConcurError, OutputError
from concur.robot import scalar

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


def check_bounds(where: str, longest_period: Any, largest_state: Any, nz: int) -> None:
    """Reject bounds that are not positive and finite, or do not fit the state."""
    if longest_period is not None and not scalar(longest_period, f"{where}, `longest_period`") > 0:
        raise OutputError(
            f"{where}, `longest_period`",
            expected="a time above zero, s",
            came=f"{longest_period!r:.40}",
            cure="Leave it out for the default, or give the longest time between two ticks.",
        )
    if largest_state is not None and nz:
        bounds = finite_floats(largest_state, f"{where}, `largest_state`", (), (nz,))
        if not ((bounds > 0.0) & (bounds <= LARGEST)).all():
            raise OutputError(
                f"{where}, `largest_state`",
                expected=f"magnitudes above zero and up to {LARGEST:g}",
                came=f"{largest_state!r:.60}",
                cure="Leave it out for the default, or give a number or one for each entry of z.",
            )


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
