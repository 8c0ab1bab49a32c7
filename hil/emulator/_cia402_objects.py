"""The object dictionary of an emulated CiA 402 drive, behind canopen's server, without threads."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import canopen
from canopen.network import PeriodicMessageTask
from canopen.objectdictionary import ObjectDictionary
from canopen.sdo.exceptions import SdoAbortedError

from hil.emulator._drive import message
from hil.emulator._objects import MAPPABLE

if TYPE_CHECKING:
    import can

UNSUPPORTED_VALUE = 0x06090030
"""Abort code of SDO."""

_INVALID = 1 << 31
_READ_ONLY_NOW = 0x08000022  # cannot be stored because of the present state of the device
_NOT_MAPPABLE = 0x06040041
_TOO_LONG = 0x06040042
_FORMATS = {5: "B", 6: "H", 7: "I", 2: "b", 3: "h", 4: "i"}  # data type to struct's letter
_WIDTHS = {5: 8, 6: 16, 7: 32, 2: 8, 3: 16, 4: 32}


class _NoTask(PeriodicMessageTask):
    """Replaces canopen's thread that sends heartbeats; does nothing."""

    def __init__(self) -> None:
        """Do nothing."""

    def stop(self) -> None:
        """Do nothing."""

    def update(self, data: bytes) -> None:
        """Do nothing."""


class _Outlet(canopen.Network):
    """Collects the answers of canopen's server in a list, instead of a bus with threads."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[can.Message] = []

    def send_message(self, can_id: int, data: bytes, remote: bool = False) -> None:
        self.sent.append(message(can_id, bytes(data)))

    def send_periodic(
        self, can_id: int, data: bytes, period: float, remote: bool = False
    ) -> PeriodicMessageTask:
        return _NoTask()  # heartbeats are sent by `poll`


@dataclass
class Pdo:
    """Communication and mapping of one process data object, as in the dictionary."""

    identifier: int
    valid: bool
    transmission: int
    period: float
    format: struct.Struct
    objects: list[int] = field(default_factory=list)


class Objects:
    """Objects and process data objects of a drive; `outlet.sent`: answers of the server."""

    def __init__(
        self,
        node: int,
        objects: ObjectDictionary,
        written: Callable[..., None],
        read: Callable[..., int | None],
    ) -> None:
        self.server = canopen.LocalNode(node, objects)
        self.server.add_write_callback(written)  # type: ignore[no-untyped-call]
        self.server.add_read_callback(read)  # type: ignore[no-untyped-call]
        self.outlet = _Outlet()
        self.outlet.add_node(self.server)

    def value(self, index: int, sub: int = 0) -> int:
        """Value of an object; zero if the object does not exist."""
        try:
            variable = self.server.object_dictionary.get_variable(index, sub)
            if variable is None:
                return 0
            return int(variable.decode_raw(self.server.get_data(index, sub)))
        except SdoAbortedError:
            return 0

    def check_communication(self, index: int, sub: int, value: int) -> None:
        valid = not self.value(index, 1) & _INVALID
        if sub == 1 and valid and not value & _INVALID and value != self.value(index, 1):
            raise SdoAbortedError(_READ_ONLY_NOW)  # the identifier of a PDO in use
        if sub == 2 and 240 < value < 254:
            raise SdoAbortedError(UNSUPPORTED_VALUE)

    def check_mapping(self, index: int, sub: int, value: int) -> None:
        """Check the order of CiA 301, 7.5.2.36: disable, clear, write entries, their number."""
        communication = index - 0x200
        if not self.value(communication, 1) & _INVALID:
            raise SdoAbortedError(_READ_ONLY_NOW)
        if sub:
            if self.value(index):
                raise SdoAbortedError(_READ_ONLY_NOW)
            self._mapped(value)
            return
        if value > MAPPABLE:
            raise SdoAbortedError(_TOO_LONG)
        bits = sum(self._mapped(self.value(index, k + 1))[1] for k in range(value))
        if bits > 64:
            raise SdoAbortedError(_TOO_LONG)

    def _mapped(self, entry: int) -> tuple[str, int]:
        """Format and bits of an entry of a mapping."""
        index, sub, bits = entry >> 16, entry >> 8 & 0xFF, entry & 0xFF
        objects = self.server.object_dictionary
        variable = objects.get_variable(index, sub) if index in objects else None
        if variable is None or not variable.pdo_mappable:
            raise SdoAbortedError(_NOT_MAPPABLE)
        kind = variable.data_type or 0
        if _WIDTHS.get(kind) != bits:
            raise SdoAbortedError(_NOT_MAPPABLE)
        return _FORMATS[kind], bits

    def pdo(self, communication: int, mapping: int) -> Pdo:
        """Process data object as it is written; its mapping counts while it is valid."""
        identifier = self.value(communication, 1)
        count = 0 if identifier & _INVALID else self.value(mapping)
        entries = [self.value(mapping, k + 1) for k in range(count)]
        letters = [self._mapped(entry)[0] for entry in entries]
        return Pdo(
            identifier & 0x7FF,
            bool(entries),
            self.value(communication, 2),
            self.value(communication, 5) * 1e-3,
            struct.Struct("<" + "".join(letters)),
            [entry >> 16 for entry in entries],
        )
