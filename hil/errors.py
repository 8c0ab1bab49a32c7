"""Errors of the rig: what was expected, what came, where, and the cure."""

from __future__ import annotations

from concur.errors import ConcurError


class RigError(ConcurError):
    """Base of all errors of the rig."""


class RigFileError(RigError):
    """A rig file that cannot be read, or whose parts do not fit together."""


class BusLoadError(RigError):
    """A rate at which the frames of all axes do not fit on the bus."""


class BusError(RigError):
    """A bus that cannot be opened, or that no longer takes frames."""


class DriveError(RigError):
    """A drive that is missing, answers wrongly, or reports a fault; names the axis."""


class UnitError(DriveError):
    """A drive whose units are not those of the rig file."""


class ArmError(RigError):
    """A rig that may not be armed: a check failed, and no torque has left."""


class RecordError(RigError):
    """A record that cannot be written or read."""
