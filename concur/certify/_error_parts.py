"""Parts of a channel's error: positions and rotations of its factors, and how they are weighed."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from concur.certify._channels import Channel
from concur.control.output_groups import OutputGroup


def error_parts(channel: Channel) -> list[tuple[OutputGroup, np.ndarray, str]]:
    """Return rotation and translation of each factor.

    Parameters
    ----------
    channel : Channel
        The outputs.

    Returns
    -------
    list of tuple
        Group of the factor, places of the part's components in x, and their unit, m or rad.
    """
    parts, start = [], 0
    for factor in channel.factors:
        units = np.array(factor.error_units)
        for unit in ("m", "rad"):
            places = start + np.flatnonzero(units == unit)
            if places.size:
                parts.append((factor, places, unit))
        start += factor.dim
    return parts


def is_flat(factor: OutputGroup) -> bool:
    """Whether B of a factor is the identity for every error."""
    return factor.abelian and type(factor).error_map is OutputGroup.error_map


def scales(channel: Channel) -> np.ndarray:
    """Factors that make metres and radians of a channel count alike.

    Parameters
    ----------
    channel : Channel
        The outputs.

    Returns
    -------
    numpy.ndarray
        One over the channel's length for metres, one for radians, shape (n,).
    """
    return np.array([1.0 / channel.length if unit == "m" else 1.0 for unit in channel.units])


def length_metric(channel: Channel) -> np.ndarray:
    """Return the squares of the scales.

    Parameters
    ----------
    channel : Channel
        The outputs.

    Returns
    -------
    numpy.ndarray
        Diagonal matrix of fractions, shape (n, n).
    """
    metric = np.full((channel.size, channel.size), Fraction(0))
    square = 1 / Fraction(channel.length) ** 2
    for i, unit in enumerate(channel.units):
        metric[i, i] = square if unit == "m" else Fraction(1)
    return metric
