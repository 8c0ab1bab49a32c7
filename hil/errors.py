"""Errors of the rig; each gives the place, the expected and the actual value, and a remedy."""

from __future__ import annotations

from concur.errors import ConcurError


class RigError(ConcurError):
    """Base of all errors of the rig."""


class RigFileError(RigError):
    """A rig file that cannot be read, or whose fields contradict each other.

    Examples
    --------
    >>> import hil
    >>> from hil.errors import RigFileError
    >>> try:
    ...     hil.load_rig("examples/rover_arm.toml")
    ... except RigFileError as error:
    ...     print(type(error).__name__)
    RigFileError
    """


class BusLoadError(RigError):
    """A rate at which the frames of all axes exceed the capacity of the bus."""


class BusError(RigError):
    """A bus that cannot be opened, or that no longer accepts frames."""


class DriveError(RigError):
    """A drive that is missing, answers wrongly, or reports a fault; names the axis."""


class UnitError(DriveError):
    """A drive whose units are not those of the rig file."""


class ArmError(RigError):
    """A rig that may not be armed: a check failed, and no torque was sent."""


class RecordError(RigError):
    """A record that cannot be written or read."""
