"""A bus of two processes of one machine: datagrams with the frames of SocketCAN.

Emulated rigs use it: the loop in C reads and writes the same datagrams as on SocketCAN.
"""

from __future__ import annotations

import select
import socket
import struct
from contextlib import suppress

import can

INTERFACE = "datagram"
"""Name of the interface in rig files."""

HOST = "127.0.0.1"

_FRAME, _LONG = struct.Struct("=IB3x8s"), struct.Struct("=IBB2x64s")  # the second: CAN FD
_SWITCHED = 1  # flag of a frame of CAN FD whose data have another bit rate
_REMOTE, _EXTENDED, _ERRORS, _NUMBER = 1 << 30, 1 << 31, 1 << 29, 0x7FF


class DatagramBus(can.BusABC):
    """One end of a bus with two ends: a port of this machine, or the next one.

    The first process on a channel gets the first end. Frames to an absent process are lost, as on
    a bus without other nodes.
    """

    def __init__(self, channel: str) -> None:
        if not (channel.isdecimal() and 1024 <= int(channel) <= 65534):
            raise ValueError(f"a port from 1024 to 65534 expected as channel, got {channel!r}")
        self.channel_info = f"datagrams on ports {channel} and {int(channel) + 1}"
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        self._peer = "", 0
        for end in (0, 1):
            with suppress(OSError):
                self._socket.bind((HOST, int(channel) + end))
                self._peer = HOST, int(channel) + 1 - end
                break
        if not self._peer[1]:
            self._socket.close()
            raise can.CanInitializationError(f"two processes already use {self.channel_info}")
        super().__init__(channel)

    def send(self, msg: can.Message, timeout: float | None = None) -> None:
        """Send a frame without waiting."""
        flags = _REMOTE * msg.is_remote_frame | _EXTENDED * msg.is_extended_id
        number, content = msg.arbitration_id | flags, bytes(msg.data)
        if msg.is_fd:
            data = _LONG.pack(number, len(content), _SWITCHED * msg.bitrate_switch, content)
        else:
            data = _FRAME.pack(number, msg.dlc, content)
        try:
            self._socket.sendto(data, self._peer)
        except ConnectionRefusedError:
            return
        except OSError as error:
            raise can.CanOperationError(str(error)) from error

    def _recv_internal(self, timeout: float | None) -> tuple[can.Message | None, bool]:
        if timeout is None or timeout > 0.0:
            select.select([self._socket], [], [], timeout)
        try:
            data, sender = self._socket.recvfrom(128)
        except OSError:
            return None, False
        is_fd, flags = len(data) == _LONG.size, 0
        if sender != self._peer or not (is_fd or len(data) == _FRAME.size):
            raise can.CanOperationError(f"a datagram of {len(data)} bytes from {sender}")
        if is_fd:
            number, length, flags, content = _LONG.unpack(data)
        else:
            number, length, content = _FRAME.unpack(data)
        frame = can.Message(
            arbitration_id=number & (0x1FFFFFFF if number & _EXTENDED else _NUMBER),
            is_extended_id=bool(number & _EXTENDED),
            is_remote_frame=bool(number & _REMOTE),
            is_error_frame=bool(number & _ERRORS),
            is_fd=is_fd,
            bitrate_switch=bool(flags & _SWITCHED),
            dlc=length,
            data=None if number & _REMOTE else content[:length],
        )
        return frame, False

    def fileno(self) -> int:
        """Descriptor of the socket."""
        return self._socket.fileno()

    def connect(self) -> int:
        """Connect to the other process, for code that sends by descriptor; return that."""
        self._socket.connect(self._peer)
        return self._socket.fileno()

    def shutdown(self) -> None:
        """Close the socket."""
        super().shutdown()
        self._socket.close()
