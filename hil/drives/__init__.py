"""Drives: one class for each protocol, all with the interface of `Drive`."""

from __future__ import annotations

from hil.drives._cia402 import Cia402Drive
from hil.drives._cia402_state import DriveState, next_controlword, state_of
from hil.drives._drive import AxisCheck, CycleFrame, Drive, FaultCode, Finding, Wanted
from hil.drives._fields import check_fields, check_units, identifiers
from hil.drives._intruders import Intruders
from hil.drives._mit import MitDrive
from hil.drives._modules import drive_files, import_drives
from hil.drives._moteus import MoteusDrive, moteus_frames
from hil.drives._odrive import ODriveDrive, odrive_frames
from hil.drives._registry import answer_commands, drive_kinds, make_drives, register_drive

__all__ = [
    "AxisCheck",
    "Cia402Drive",
    "CycleFrame",
    "Drive",
    "DriveState",
    "FaultCode",
    "Finding",
    "Intruders",
    "MitDrive",
    "MoteusDrive",
    "ODriveDrive",
    "Wanted",
    "answer_commands",
    "check_fields",
    "check_units",
    "drive_files",
    "drive_kinds",
    "identifiers",
    "import_drives",
    "make_drives",
    "moteus_frames",
    "next_controlword",
    "odrive_frames",
    "register_drive",
    "state_of",
]
