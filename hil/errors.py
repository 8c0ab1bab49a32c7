"""Errors of the rig; each gives the place, the expected and the actual value, and a remedy."""

from __future__ import annotations

from hil._concur import ConcurError


class RigError(ConcurError):
    """Base of all errors of the rig.

    Examples
    --------
    >>> import hil
    >>> try:
    ...     hil.load_rig("missing.toml")
    ... except hil.errors.RigError as error:
    ...     print(error.came)
    no file of this name
    """


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
    """A rate at which the frames of all axes exceed the capacity of the bus.

    Examples
    --------
    >>> import shutil
    >>> from pathlib import Path
    >>> import hil
    >>> file = Path(shutil.copytree("examples/rover_rig", "rig")) / "rig.toml"
    >>> _ = file.write_text(file.read_text().replace("1_000_000", "125_000"))
    >>> try:
    ...     hil.load_rig(file)
    ... except hil.errors.BusLoadError as error:
    ...     print(error.expected)
    at most 80 % of the bus in the worst case
    """


class BusError(RigError):
    """A bus that cannot be opened, or that no longer accepts frames.

    Examples
    --------
    >>> import hil
    >>> from hil.bus import open_bus
    >>> from hil.rig import BusSettings
    >>> try:
    ...     open_bus(BusSettings("socketcan", "can9"))
    ... except hil.errors.BusError as error:
    ...     print(error.expected)
    an interface of python-can that can be opened
    """


class DriveError(RigError):
    """A drive that is missing, answers wrongly, or reports a fault; names the axis.

    Examples
    --------
    >>> from dataclasses import replace
    >>> import hil
    >>> from hil.bus import open_bus
    >>> from hil.clock import SteppedClock
    >>> from hil.drives import make_drives
    >>> rig, clock = hil.load_rig("examples/rover_rig/rig.toml"), SteppedClock()
    >>> bus = replace(rig.buses[0], interface="virtual", channel="drives", options={})
    >>> rig = replace(rig, buses=(bus,))
    >>> with open_bus(bus, clock) as link:
    ...     try:
    ...         make_drives(rig)[0].prepare(link)
    ...     except hil.errors.DriveError as error:
    ...         print(error.came)
    no answer after 3 requests (No SDO response received)
    """


class UnitError(DriveError):
    """A drive whose units are not those of the rig file.

    Examples
    --------
    >>> from dataclasses import replace
    >>> import hil
    >>> from hil.bus import open_bus
    >>> from hil.clock import SteppedClock
    >>> from hil.drives import make_drives
    >>> from hil.emulator import DriveSettings
    >>> rig, clock = hil.load_rig("examples/rover_rig/rig.toml"), SteppedClock()
    >>> bus = replace(rig.buses[0], interface="virtual", channel="units", options={})
    >>> rig = replace(rig, buses=(bus,))
    >>> wrong = {"left_wheel": DriveSettings(counts=4000)}
    >>> with hil.World(rig, clock, settings=wrong), open_bus(bus, clock) as link:
    ...     try:
    ...         make_drives(rig)[0].prepare(link)
    ...     except hil.errors.UnitError as error:
    ...         print(error.expected, "not", error.came)
    4096 not 4000
    """


class ArmError(RigError):
    """A rig that may not be armed: a check failed, and no torque but that of the tests was sent.

    Examples
    --------
    >>> import hil
    >>> latch = hil.Latch.from_rig(hil.load_rig("examples/rover_rig/rig.toml"))
    >>> try:
    ...     latch.run()
    ... except hil.errors.ArmError as error:
    ...     print(error.expected)
    one of the events `arm`, `stop`
    """


class RecordError(RigError):
    """A record that cannot be written or read.

    Examples
    --------
    >>> import hil
    >>> try:
    ...     hil.Record.load("examples")
    ... except hil.errors.RecordError as error:
    ...     print(error.expected)
    the manifest of a record
    """
