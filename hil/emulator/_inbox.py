"""Reception of the frames of a bus that a process uses, with little cost for all others.

On a multicast bus each process receives every frame. On Linux a filter in the kernel drops frames
by their identifier, so that they do not wake the process.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import socket
import struct
import sys
from collections.abc import Iterable, Sequence

import can
import msgpack
from can.interfaces.udp_multicast.utils import unpack_message

LONGEST = 4096
"""Bytes of a datagram, at most."""

_ATTACH_FILTER = 26  # SO_ATTACH_FILTER, which Python's socket module does not name

# Layout of a datagram of python-can: a map of 11 entries, "timestamp" with a double,
# "arbitration_id" with an integer. Offsets of the kernel include the header of UDP.
_HEADER = 8
_MAP, _KEY, _VALUE = _HEADER, _HEADER + 20, _HEADER + 35
_MAP_OF_11, _TEXT_OF_14, _ONE_BYTE, _TWO_BYTES = 0x8B, 0xAE, 0xCC, 0xCD

_LOAD_BYTE, _LOAD_HALF, _EQUAL, _RETURN = 0x30, 0x28, 0x15, 0x06


class Inbox:
    """Receives frames with selected identifiers."""

    def __init__(self, bus: can.BusABC, interface: str) -> None:
        self.bus = bus
        self.filtered = False
        self._heard: frozenset[int] | None = None
        self._socket: socket.socket | None = None
        if interface == "udp_multicast":
            self._socket = socket.socket(fileno=os.dup(bus.fileno()))
            self._socket.setblocking(False)

    def take(self, wait: float, heard: frozenset[int]) -> can.Message | bool:
        """The next frame with one of these identifiers; true: another frame; false: no frame."""
        try:
            if self._socket is None:
                frame = self.bus.recv(wait)
                if frame is None:
                    return False
                return frame if frame.arbitration_id in heard else True
            if heard is not self._heard:
                self._ask_for(self._socket, heard)
            if not select.select([self._socket], [], [], wait)[0]:
                return False
            data = self._socket.recv(LONGEST)
            if msgpack.unpackb(data).get("arbitration_id") not in heard:
                return True
            return unpack_message(data, check=True)
        except BlockingIOError:
            return False
        except Exception:  # python-can and msgpack raise many types for an invalid datagram
            return True

    def fileno(self) -> int:
        """Descriptor that becomes readable when a frame arrives."""
        return int((self.bus if self._socket is None else self._socket).fileno())

    def close(self) -> None:
        """Close the socket."""
        if self._socket is not None:
            self._socket.close()

    def _ask_for(self, listening: socket.socket, heard: frozenset[int]) -> None:
        self._heard = heard
        if sys.platform != "linux":
            return
        code = _filter_code(heard)
        memory = ctypes.create_string_buffer(code)
        program = struct.pack("@HP", len(code) // 8, ctypes.addressof(memory))
        with contextlib.suppress(OSError):  # without a filter, `take` checks all frames
            listening.setsockopt(socket.SOL_SOCKET, _ATTACH_FILTER, program)
            self.filtered = True


def wait_for(inboxes: Sequence[Inbox], time: float) -> None:
    """Wait until a frame arrives in an inbox, at most for a time, s."""
    select.select(inboxes, [], [], max(time, 0.0))


def _filter_code(heard: Iterable[int]) -> bytes:
    """Instructions of a socket filter that keeps some identifiers and all unknown datagrams."""
    listed = sorted(set(heard))
    small = [number for number in listed if number < 0x80]
    middle = [number for number in listed if 0x80 <= number < 0x100]
    large = [number for number in listed if number >= 0x100]
    # (label, operation, operand, jump on equality, jump otherwise); an empty jump: next line
    lines: list[tuple[str, int, int, str, str]] = [
        ("", _LOAD_BYTE, _MAP, "", ""),
        ("", _EQUAL, _MAP_OF_11, "", "keep"),
        ("", _LOAD_BYTE, _KEY, "", ""),
        ("", _EQUAL, _TEXT_OF_14, "", "keep"),
        ("", _LOAD_BYTE, _VALUE, "", ""),
        ("", _EQUAL, _ONE_BYTE, "one", ""),
        ("", _EQUAL, _TWO_BYTES, "two", ""),
    ]
    lines += [("", _EQUAL, number, "keep", "") for number in small]
    lines += [("", _RETURN, 0, "", ""), ("one", _LOAD_BYTE, _VALUE + 1, "", "")]
    lines += [("", _EQUAL, number, "keep", "") for number in middle]
    lines += [("", _RETURN, 0, "", ""), ("two", _LOAD_HALF, _VALUE + 1, "", "")]
    lines += [("", _EQUAL, number, "keep", "") for number in large]
    lines += [("", _RETURN, 0, "", ""), ("keep", _RETURN, 0xFFFF, "", "")]
    places = {label: place for place, (label, *_) in enumerate(lines) if label}
    code = b""
    for place, (_, operation, operand, equal, other) in enumerate(lines):
        jumps = [places[label] - place - 1 if label else 0 for label in (equal, other)]
        code += struct.pack("=HBBI", operation, *jumps, operand)
    return code
