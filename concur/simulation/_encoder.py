"""Readings of encoders, one model for simulations and emulated drives."""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np


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
