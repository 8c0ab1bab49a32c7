"""An emulated rig: drives with their behaviour on a bus, and the full-order plant of a robot.

It runs in the controller's process (`World`), or in a separate process on a multicast bus
(`EmulatorProcesses`, `run_emulator`). The controller runs the same code as on a rig.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hil.emulator._cia402 import EmulatedCia402
    from hil.emulator._drive import DriveSettings, EmulatedDrive
    from hil.emulator._faults import Fault, FaultKind
    from hil.emulator._mit import EmulatedMit
    from hil.emulator._moteus import EmulatedMoteus
    from hil.emulator._odrive import EmulatedODrive
    from hil.emulator._processes import (
        DriveReport,
        EmulatorProcesses,
        PlantReport,
        command_fault,
        run_emulator,
    )
    from hil.emulator._time import EmulationClock, Stalls
    from hil.emulator._world import KINDS, World, emulated_drive, scheduled_faults

_PLACES = {
    "KINDS": "_world",
    "run_emulator": "_processes",
    "command_fault": "_processes",
    "PlantReport": "_processes",
    "EmulationClock": "_time",
    "EmulatorProcesses": "_processes",
    "DriveReport": "_processes",
    "DriveSettings": "_drive",
    "EmulatedCia402": "_cia402",
    "EmulatedDrive": "_drive",
    "EmulatedMit": "_mit",
    "EmulatedMoteus": "_moteus",
    "EmulatedODrive": "_odrive",
    "Fault": "_faults",
    "FaultKind": "_faults",
    "Stalls": "_time",
    "World": "_world",
    "emulated_drive": "_world",
    "scheduled_faults": "_world",
}

__all__ = [
    "KINDS",
    "DriveReport",
    "DriveSettings",
    "EmulatedCia402",
    "EmulatedDrive",
    "EmulatedMit",
    "EmulatedMoteus",
    "EmulatedODrive",
    "EmulationClock",
    "EmulatorProcesses",
    "Fault",
    "FaultKind",
    "PlantReport",
    "Stalls",
    "World",
    "command_fault",
    "emulated_drive",
    "run_emulator",
    "scheduled_faults",
]


def __getattr__(name: str) -> object:
    """Import a name at first use: the emulator's process needs few names and must start fast."""
    if name not in _PLACES:
        raise AttributeError(f"module `{__name__}` has no attribute `{name}`")
    return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
