"""CANopen set-up services without threads: SDO and NMT on the loop's own bus and clock.

The library's client waits for an answer in a separate thread. Here the wait receives frames from
the bus and passes them to the library, so that set-up runs in one thread and on a stepped clock.
"""

from __future__ import annotations

import logging
import struct
from enum import IntEnum
from typing import Any

import can
import canopen
from canopen.objectdictionary import ObjectDictionary
from canopen.sdo.client import SdoClient, WritableStream
from canopen.sdo.exceptions import SdoAbortedError, SdoCommunicationError, SdoError

from hil.errors import DriveError
from hil.links import Link

TIMEOUT = 0.1
"""Time-out of an answer to an SDO request, s."""
ATTEMPTS = 3
"""Number of times that a request without an answer is sent."""

STANDSTILL = 10
"""Consecutive waits that end early, without a frame, after which the clock counts as stopped."""

_UPLOADED, _DOWNLOADED, _RESPONSE_ABORTED = 0x40, 0x60, 0x80

# without a handler the library's warnings would be printed beside the errors
logging.getLogger("canopen").addHandler(logging.NullHandler())


class Nmt(IntEnum):
    """Commands of network management."""

    START = 0x01
    STOP = 0x02
    PRE_OPERATIONAL = 0x80
    RESET_NODE = 0x81
    RESET_COMMUNICATION = 0x82


class SetupNetwork(canopen.Network):
    """A CANopen network on the loop's bus."""

    def __init__(self, bus: Link) -> None:
        super().__init__()
        self.link = bus
        self._asked: tuple[int, bytes] | None = None  # request that awaits its echo or answer

    def send_message(self, can_id: int, data: bytes, remote: bool = False) -> None:
        """Send one frame on the loop's bus."""
        frame = can.Message(
            arbitration_id=can_id, data=data, is_extended_id=False, is_remote_frame=remote
        )
        if not self.link.send(frame):
            raise can.CanOperationError("the bus accepted no frame")
        self._asked = (can_id, bytes(data))

    def pump(self, until: float) -> bool:
        """Receive one frame and pass it to the subscribers."""
        frame = self.link.receive(until)
        if frame is None:
            return False
        self._learn_echo(frame)
        self.notify(frame.arbitration_id, frame.data, frame.timestamp)
        return True

    def _learn_echo(self, frame: can.Message) -> None:
        """Detect whether the adapter echoes sent frames: the echo precedes the answer."""
        if self._asked is None:
            return
        identifier, data = self._asked
        if frame.arbitration_id == identifier and frame.data == data:
            self.link.echoes, self._asked = True, None
        elif frame.arbitration_id == identifier - 0x80 and identifier > 0x600:
            self.link.echoes, self._asked = bool(self.link.echoes), None

    def idle(self, seconds: float) -> None:
        """Wait for a time, in s of the bus' clock, and discard frames that arrive meanwhile."""
        until, empty = self.link.clock.now() + seconds, 0
        while self.link.clock.now() < until and empty < STANDSTILL:
            empty = 0 if self.pump(until) else empty + 1


class _Client(SdoClient):
    """The library's SDO client, which receives frames from the bus while it waits."""

    RETRY_DELAY = 0.0
    network: SetupNetwork
    awaited = (0, 0, 0)  # service, index and subindex

    def __init__(self, node: int, timeout: float, attempts: int) -> None:
        objects = ObjectDictionary()  # type: ignore[no-untyped-call]
        super().__init__(0x600 + node, 0x580 + node, objects)  # type: ignore[no-untyped-call]
        self.timeout = timeout
        self.MAX_RETRIES = attempts

    def on_response(self, can_id: int, data: bytearray, timestamp: float) -> None:
        # answers of other lengths are not SDO; a late answer to an earlier request contains
        # another object or another service
        if len(data) != 8:
            return
        service, index, subindex = struct.unpack_from("<BHB", data)
        if service == _RESPONSE_ABORTED:
            service = self.awaited[0]
        if service & 0xE0 in (_UPLOADED, _DOWNLOADED) and (
            (service & 0xE0, index, subindex) != self.awaited
        ):
            return
        self.responses.put(bytes(data))

    def read_response(self) -> bytes:
        clock = self.network.link.clock
        until, empty = clock.now() + self.timeout, 0
        while self.responses.empty():
            empty = 0 if self.network.pump(until) else empty + 1
            if empty and (clock.now() >= until or empty >= STANDSTILL):
                raise SdoCommunicationError("No SDO response received")
        response: bytes = self.responses.get_nowait()
        if response[0] == _RESPONSE_ABORTED:
            raise SdoAbortedError(struct.unpack_from("<L", response, 4)[0])
        return response


class SdoSession:
    """Object dictionary of one node, read and written over the bus."""

    def __init__(
        self,
        bus: Link,
        axis: str,
        node: int,
        timeout: float = TIMEOUT,
        attempts: int = ATTEMPTS,
    ) -> None:
        self.network = SetupNetwork(bus)
        self.axis = axis
        self.node = node
        self._client = _Client(node, timeout, attempts)
        self._client.network = self.network
        self.network.subscribe(0x580 + node, self._client.on_response)

    def where(self, index: int, subindex: int = 0) -> str:
        """Place of an object, for errors."""
        return f"axis `{self.axis}`, node {self.node}, object 0x{index:04X}:{subindex:02X}"

    def find(self, index: int, subindex: int, form: str) -> int | None:
        """Value of an object, or None if the drive aborts the transfer, for whatever reason."""
        try:
            return self._upload(index, subindex, form)
        except SdoAbortedError:
            return None

    def _upload(self, index: int, subindex: int, form: str) -> int:
        """Read a number; the library's error if the drive aborts the transfer."""
        self._client.awaited = (_UPLOADED, index, subindex)
        try:
            data = self._client.upload(index, subindex)
        except SdoAbortedError:
            raise
        except (SdoError, can.CanError, struct.error) as error:
            raise self._silent(index, subindex, error) from None
        size = struct.calcsize("<" + form)
        if len(data) < size:
            # small numbers may come in fewer bytes than the type has: keep the sign
            fill = b"\xff" if form.islower() and data and data[-1] & 0x80 else b"\x00"
            data = data.ljust(size, fill)
        value: int = struct.unpack_from("<" + form, data)[0]
        return value

    def read(self, index: int, subindex: int, form: str) -> int:
        """Value of an object that the drive must have."""
        try:
            return self._upload(index, subindex, form)
        except SdoAbortedError as error:
            raise DriveError(
                self.where(index, subindex),
                expected="a drive that has this object",
                came=f"SDO abort {_lower(error)}",
                cure="Install newer firmware, or register your own drive class: the drive lacks an "
                "object that the rig needs for cyclic synchronous torque over CANopen.",
                abort=error.code,
            ) from None

    def write(self, index: int, subindex: int, form: str, value: int) -> None:
        """Write an object and read it back."""
        self.put(index, subindex, form, value)
        came = self.read(index, subindex, form)
        if came != value:
            raise DriveError(
                self.where(index, subindex),
                expected=f"the value that was written, {value}",
                came=f"{came}",
                cure="Look for a limit or a lock in the drive's configuration, or for firmware "
                "that ignores this object.",
            )

    def put(self, index: int, subindex: int, form: str, value: int) -> None:
        """Write an object without reading it back."""
        self._client.awaited = (_DOWNLOADED, index, subindex)
        data = struct.pack("<" + form, value)
        try:
            # without the library's buffer, which would write again when it is deleted
            stream: Any = WritableStream(self._client, index, subindex, len(data))  # type: ignore[no-untyped-call]
            stream.write(data)
            stream.close()
        except SdoAbortedError as error:
            raise self._refused(index, subindex, error) from None
        except (SdoError, can.CanError, struct.error) as error:
            raise self._silent(index, subindex, error) from None

    def attempt(self, index: int, subindex: int, form: str, value: int) -> bool:
        """Write an object that the drive may lack or lock; return whether the drive accepted it."""
        try:
            self.put(index, subindex, form, value)
        except DriveError as error:
            if error.data.get("abort") is None:
                raise
            return False
        return True

    def offer(self, index: int, subindex: int, form: str, value: int) -> bool:
        """Write an object that the drive may lack; return whether it now has the value."""
        self.attempt(index, subindex, form, value)
        return self.find(index, subindex, form) == value

    def command(self, command: Nmt) -> None:
        """Send a command of network management to this node."""
        try:
            self.network.send_message(0x000, bytes((command, self.node)))
        except can.CanError as error:
            raise self._silent(0, 0, error) from None

    def _refused(self, index: int, subindex: int, error: SdoAbortedError) -> DriveError:
        return DriveError(
            self.where(index, subindex),
            expected="a drive that accepts this value",
            came=f"SDO abort {_lower(error)}",
            cure="Find the object in the drive's manual: it may be locked, out of range, or "
            "unchangeable in the drive's present state.",
            abort=error.code,
        )

    def _silent(self, index: int, subindex: int, error: Exception) -> DriveError:
        return DriveError(
            self.where(index, subindex),
            expected=f"an answer within {self._client.timeout:g} s",
            came=f"no answer after {self._client.MAX_RETRIES} requests ({error})",
            cure="Check power, cable, termination, bit rate and the node number in the rig file.",
            silent=True,
        )


def _lower(error: Exception) -> str:
    """Text of an error, for use inside a sentence."""
    text = str(error)
    return text[:1].lower() + text[1:]
