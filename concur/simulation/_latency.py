"""Delays of messages and readings of encoders: one model for simulations and emulated rigs."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike, NDArray

from concur.codegen import uniform
from concur.errors import SimulationError, shown


@dataclass(frozen=True)
class Latency:
    """Delay of the messages of one sender: a constant part, and a part drawn for each message.

    Messages keep their order: the message k, sent at t[k], arrives at
    ``a[k] = max(a[k-1], t[k] + delay + jitter * uniform)``. A command is in force from its arrival
    to that of the next one; a control period gets the average over time of the commands in force.

    Parameters
    ----------
    delay : float
        Least delay, s, or in the unit of the instants.
    jitter : float
        Largest random addition to it, in the same unit.

    Raises
    ------
    SimulationError
        If a number is negative or not finite.

    See Also
    --------
    Imperfections, concur.codegen.Rollout

    Examples
    --------
    >>> from concur.simulation import Latency
    >>> Latency(0.002).arrivals([0.0, 0.01]).tolist()
    [0.002, 0.012]
    """

    delay: float = 0.0
    jitter: float = 0.0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                sane = False
            else:
                sane = 0.0 <= value < math.inf
            if not sane:
                raise SimulationError(
                    f"latency, `{field.name}`",
                    expected="a time of zero or more",
                    came=shown(value),
                    cure="Use 0 for none.",
                )

    def arrivals(
        self,
        sent: ArrayLike,
        *,
        world: int = 0,
        seed: int = 0,
        first: int = 0,
        after: float = -math.inf,
    ) -> NDArray[np.float64]:
        """Instants at which messages arrive.

        Parameters
        ----------
        sent : array_like
            Instants at which they are sent, in order, shape (n,).
        world, seed : int
            Key of the random numbers: number of the world, or of the sender, and seed.
        first : int
            Number of the first of these messages; the draw of a message depends on its number.
        after : float
            Arrival of the message before them.

        Returns
        -------
        numpy.ndarray
            Shape (n,), non-decreasing, in the unit of `sent`.
        """
        instants = np.asarray(sent, dtype=float)
        if not self.jitter:
            return instants + self.delay  # in order as they were sent
        numbers = first + np.arange(len(instants))
        drawn = uniform(seed, np.full(len(instants), world), numbers, 0)[0]
        due = np.maximum(instants + (self.delay + self.jitter * drawn), after)
        return np.asarray(np.maximum.accumulate(due))


def encoder_count(position: Any, resolution: Any) -> Any:
    """Nearest whole number of steps in a position: of numbers or of expressions.

    Parameters
    ----------
    position : float, numpy.ndarray or casadi.SX
        Positions, rad or m.
    resolution : float, numpy.ndarray or casadi.SX
        Step of the encoder, rad or m.

    Returns
    -------
    float, numpy.ndarray or casadi.SX
        Whole numbers; of two that are equally near the upper one.
    """
    math: Any = ca if isinstance(position, ca.SX) or isinstance(resolution, ca.SX) else np
    return math.floor(position / resolution + 0.5)


def encoder_reading(position: Any, resolution: Any) -> Any:
    """Position as an encoder gives it: the nearest step; with resolution zero the position.

    Parameters
    ----------
    position, resolution : float or casadi.SX
        Position and step of the encoder, rad or m.

    Returns
    -------
    float or casadi.SX
        The reading, rad or m.
    """
    if isinstance(resolution, ca.SX):
        step = resolution + (resolution <= 0.0)
        return ca.if_else(resolution > 0.0, encoder_count(position, step) * step, position)
    return encoder_count(position, resolution) * resolution if resolution else position
