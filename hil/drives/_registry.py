"""Kinds of drives by name, and the drives of a rig."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from contextlib import contextmanager
from inspect import isabstract
from typing import TYPE_CHECKING

from hil._registries import registry, restored_on_error
from hil.drives._cia402 import Cia402Drive
from hil.drives._cia402_cycle import NMT_IDENTIFIER, SYNC_IDENTIFIER
from hil.drives._cia402_setup import HOST_NODE
from hil.drives._drive import Drive
from hil.drives._mit import MitDrive
from hil.drives._moteus import MoteusDrive
from hil.drives._moteus_frames import HOST as MOTEUS_HOST
from hil.drives._moteus_frames import LARGEST_NODE as LARGEST_MOTEUS_NODE
from hil.drives._odrive import ODriveDrive
from hil.drives._odrive_frames import LARGEST_NODE as LARGEST_ODRIVE_NODE
from hil.errors import RigFileError

if TYPE_CHECKING:
    from hil.settings import Axis, Rig

_KINDS = registry(
    dict[str, type[Drive]](cia402=Cia402Drive, mit=MitDrive, moteus=MoteusDrive, odrive=ODriveDrive)
)

_LISTENING: list[list[str]] = []
"""Lists that collect every registered kind, also if it was registered before."""

_LARGEST_CANOPEN_NODE = 0x7F
_LARGEST_MIT_NODE = 0x7E


def register_drive(kind: str, drive: type[Drive]) -> None:
    """Register a kind of drive, so that rig files can use it.

    Parameters
    ----------
    kind : str
        Value of the field `drive` in rig files.
    drive : type of Drive
        The class.

    Raises
    ------
    RigFileError
        If another class has this name, or the class does not implement all methods of `Drive`.

    Examples
    --------
    >>> import hil
    >>> from hil.drives import Cia402Drive, drive_kinds
    >>> class OwnDrive(Cia402Drive):
    ...     pass  # what differs from the standard
    >>> hil.register_drive("own", OwnDrive)
    >>> "own" in drive_kinds()
    True
    """
    if not (isinstance(drive, type) and issubclass(drive, Drive)) or isabstract(drive):
        missing = ", ".join(sorted(getattr(drive, "__abstractmethods__", ())))
        raise RigFileError(
            f"drive kind `{kind}`",
            expected="a class derived from `hil.Drive`, with all its methods",
            came=f"a class without {missing}" if missing else f"{drive!r}",
            cure="See the recipe in `hil/drives/_drive.py`.",
        )
    known = _KINDS.setdefault(kind, drive)
    if known is not drive:
        raise RigFileError(
            f"drive kind `{kind}`",
            expected="an unused name",
            came=f"the name of {known.__name__}",
            cure="Register the class under another name.",
        )
    for kinds in _LISTENING:
        kinds.append(kind)


@contextmanager
def registering() -> Iterator[list[str]]:
    """Collect the kinds that are registered inside; on an error, restore all registries."""
    kinds = list[str]()
    _LISTENING.append(kinds)
    try:
        with restored_on_error():
            yield kinds
    finally:
        _LISTENING.pop()


def drive_kinds() -> tuple[str, ...]:
    """Names that a rig file may give in `drive`.

    Returns
    -------
    tuple of str
        The registered kinds.
    """
    return tuple(_KINDS)


def make_drives(rig: Rig) -> list[Drive]:
    """Make the drives of a rig, in the order of its axes; nothing is sent.

    Parameters
    ----------
    rig : Rig
        The rig.

    Returns
    -------
    list of Drive
        One drive for each axis.

    Raises
    ------
    RigFileError
        If a kind is unknown, a node number is out of range, or two drives of a bus use the same
        identifier.
    """
    drives = []
    for index, axis in enumerate(rig.axes):
        kind = _KINDS.get(axis.drive)
        if kind is None:
            near = difflib.get_close_matches(axis.drive, _KINDS, 1)
            raise RigFileError(
                f"{rig.path}, axis `{axis.name}`, `drive`",
                expected=f"one of {', '.join(_KINDS)}",
                came=f"`{axis.drive}`",
                cure=f"Did you mean `{near[0]}`?" if near else "Register it: `register_drive`.",
            )
        _check_node(rig, axis, kind)
        drives.append(kind(axis, index, rig))
    for bus in range(len(rig.buses)):
        on = [drive for drive, k in zip(drives, rig.bus_of, strict=True) if k == bus]
        _check_identifiers(rig, on)
    return drives


def answer_commands(rig: Rig) -> list[bool]:
    """Whether the drive of each axis samples as it takes a command, not at an opening frame.

    Parameters
    ----------
    rig : Rig
        The rig.

    Returns
    -------
    list of bool
        One entry for each axis.
    """
    return [not _KINDS[axis.drive].opening_frames(rig) for axis in rig.axes]


def _check_node(rig: Rig, axis: Axis, kind: type[Drive]) -> None:
    if issubclass(kind, Cia402Drive):
        largest, why = _LARGEST_CANOPEN_NODE - 1, f"{HOST_NODE} is the host"
    elif issubclass(kind, MitDrive):
        largest, why = _LARGEST_MIT_NODE, "127 is the first byte of every command"
    elif issubclass(kind, MoteusDrive):
        largest, why = LARGEST_MOTEUS_NODE, f"{MOTEUS_HOST} is the host"
    elif issubclass(kind, ODriveDrive):
        largest, why = LARGEST_ODRIVE_NODE, "63 stands for drives without a number"
    else:
        return
    if not 1 <= axis.node <= largest:
        raise RigFileError(
            f"{rig.path}, axis `{axis.name}`, `node`",
            expected=f"1 to {largest} ({why})",
            came=f"{axis.node}",
            cure="Give the drive another number, in its configuration and in the rig file.",
        )


def _check_identifiers(rig: Rig, drives: list[Drive]) -> None:
    """Reject drives of a bus that share an identifier if their frames cannot be distinguished."""
    owners: dict[int, str] = {
        SYNC_IDENTIFIER: "SYNC",
        NMT_IDENTIFIER: "network management",
        0x700 + HOST_NODE: "the host's heartbeat",
    }
    if not any(isinstance(drive, Cia402Drive) for drive in drives):
        owners.clear()
    shared: dict[int, type[Drive]] = {}
    for drive in drives:
        name = f"axis `{drive.axis.name}`"
        for identifier in sorted({*drive.identifiers, *drive.sent_identifiers}):
            may_share = drive.shares_identifiers and identifier not in drive.sent_identifiers
            if may_share and shared.get(identifier) is type(drive):
                continue
            bits = drive.largest_identifier.bit_length()
            if not 0 <= identifier <= drive.largest_identifier or identifier in owners:
                raise RigFileError(
                    f"{rig.path}, {name}, `node`",
                    expected=f"unused identifiers of {bits} bits",
                    came=f"0x{identifier:03X}, which belongs to {owners[identifier]}"
                    if identifier in owners
                    else f"0x{identifier:03X}, which has more than {bits} bits",
                    cure="Give the drives other numbers. Use separate buses for CANopen drives and "
                    "drives of the MIT protocol: the latter report on 0x000, which is network "
                    "management in CANopen.",
                )
            owners[identifier] = name
            if may_share:
                shared[identifier] = type(drive)
