"""Ranges of known MIT drives: values of the smallest and the largest code of each number.

A drive of the MIT mini-cheetah protocol uses fixed-point numbers whose ranges are compiled into its
firmware. Host and drive must use the same ranges: otherwise the drive silently applies another
torque than the commanded one. Ranges also differ between versions of firmware, so the manual of the
drive takes precedence; other ranges are given in the rig file.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from hil.errors import RigFileError

if TYPE_CHECKING:
    from hil.settings import Axis

BITS: Mapping[str, int] = MappingProxyType(
    {"position": 16, "velocity": 12, "torque": 12, "kp": 12, "kd": 12}
)
"""Width of each number in a frame."""

Ranges = Mapping[str, tuple[float, float]]


def _model(position: float, velocity: float, torque: float) -> Ranges:
    return MappingProxyType(
        {
            "position": (-position, position),  # rad, of the drive's output shaft
            "velocity": (-velocity, velocity),  # rad/s
            "torque": (-torque, torque),  # N m
            "kp": (0.0, 500.0),  # N m/rad
            "kd": (0.0, 5.0),  # N m s/rad
        }
    )


MIT_MODELS: Mapping[str, Ranges] = MappingProxyType(
    {
        # CubeMars (T-Motor), AK Series Actuator Driver Manual V1.0.8, section 5.3, pages 49 and 50.
        # The sample code on its page 50 has other ranges (95.5, 30, 18); the table applies.
        "AK10-9": _model(12.5, 50.0, 65.0),
        "AK60-6": _model(12.5, 45.0, 15.0),
        "AK70-10": _model(12.5, 50.0, 25.0),
        "AK80-6": _model(12.5, 76.0, 12.0),
        "AK80-9": _model(12.5, 50.0, 18.0),
        "AK80-64": _model(12.5, 8.0, 144.0),
        "AK80-80": _model(12.5, 8.0, 144.0),
        # Motor firmware and SPIne board of the MIT mini cheetah, "Value Limits".
        "mini-cheetah": _model(12.5, 65.0, 18.0),
    }
)
"""Ranges by model, of the output shaft of the drive's gearbox."""


def mit_ranges(axis: Axis) -> Ranges:
    """Ranges of the drive of an axis.

    Parameters
    ----------
    axis : Axis
        An axis with an MIT drive.

    Returns
    -------
    mapping of str to (float, float)
        Range of `position` (rad), `velocity` (rad/s), `torque` (N m), `kp` (N m/rad) and `kd`
        (N m s/rad) of the drive's output shaft.

    Raises
    ------
    RigFileError
        If the axis has neither ranges nor a known model.
    """
    if axis.ranges:
        return axis.ranges
    if axis.model in MIT_MODELS:
        return MIT_MODELS[axis.model]
    raise RigFileError(
        f"axis `{axis.name}`, `model`",
        expected=f"one of {', '.join(MIT_MODELS)}, or `ranges`",
        came=f"`{axis.model}`",
        cure="Copy the ranges from the drive's manual into `ranges`.",
    )
