"""A torque drive written from CiA 301 and CiA 402 (IEC 61800-7-201) alone, in raw CAN frames.

It shares no line with `hil.emulator` or `hil.drives`. A drive takes frames and gives frames and is
told the time; how it departs from a good drive is set by its arguments and attributes.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from typing import Any

import can

BOOT, STOPPED, OPERATIONAL, PRE_OPERATIONAL = 0, 4, 5, 127
RATED = 2000
"""Rated torque, mN m (0x6076)."""

# Statusword, bits 0 to 3, 5 and 6, for each state of CiA 402.
DISABLED, READY, ON, ENABLED, QUICK, REACTION, FAULT = 0x40, 0x21, 0x23, 0x27, 0x07, 0x0F, 0x08

READ_ONLY, ABSENT, NOT_MAPPABLE = 0x06010002, 0x06020000, 0x06040041
NO_SUB, RANGE, TOO_HIGH, STATE = 0x06090011, 0x06090030, 0x06090031, 0x08000022


def objects(node: int) -> dict[tuple[int, int], list[Any]]:
    """Object dictionary: type, whether it may be written, value."""
    table: dict[tuple[int, int], list[Any]] = {
        (0x1000, 0): ["I", False, 0x00020192],
        (0x1001, 0): ["B", False, 0],
        (0x1005, 0): ["I", True, 0x80],
        (0x100C, 0): ["H", True, 0],
        (0x100D, 0): ["B", True, 0],
        (0x1016, 0): ["B", False, 1],
        (0x1016, 1): ["I", True, 0],
        (0x1017, 0): ["H", True, 0],
        (0x1018, 1): ["I", False, 0x2FB],
        (0x1018, 2): ["I", False, 0x10],
        (0x1029, 1): ["B", True, 0],
        (0x6007, 0): ["h", True, 1],
        (0x603F, 0): ["H", False, 0],
        (0x6040, 0): ["H", True, 0],
        (0x6041, 0): ["H", False, 0],
        (0x605A, 0): ["h", True, 2],
        (0x605E, 0): ["h", True, 2],
        (0x6060, 0): ["b", True, 0],
        (0x6061, 0): ["b", False, 0],
        (0x6064, 0): ["i", False, 0],
        (0x6071, 0): ["h", True, 0],
        (0x6072, 0): ["H", True, 3000],
        (0x6076, 0): ["I", False, RATED],
        (0x6077, 0): ["h", False, 0],
        (0x608F, 1): ["I", False, 4096],
        (0x608F, 2): ["I", False, 1],
        (0x6502, 0): ["I", False, 1 << 9],
    }
    for base, first, mapping, entries in (
        (0x1400, 0x200, 0x1600, (0x60400010,)),
        (0x1800, 0x180, 0x1A00, (0x60410010,)),
    ):
        for number in range(2):
            table[base + number, 1] = ["I", True, (first + 0x100 * number + node) | number << 31]
            table[base + number, 2] = ["B", True, 255]
            table[base + number, 3] = ["H", True, 0]
            table[base + number, 5] = ["H", True, 0]
            used = entries if number == 0 else ()
            table[mapping + number, 0] = ["B", True, len(used)]
            for place in range(4):
                value = used[place] if place < len(used) else 0
                table[mapping + number, place + 1] = ["I", True, value]
    return table


class StandardsDrive:
    """One drive.

    Parameters
    ----------
    node : int
        Node number.
    without : collection
        Objects that it lacks, as an index or (index, sub-index).
    fixed : collection
        Objects that cannot be written.
    aborts : dict
        Abort codes by (index, sub-index), for reading and writing.
    values : dict
        Other values at power-on by (index, sub-index).
    takes : dict
        The only values that it can be given, by (index, sub-index).
    ignores_watchdog : bool
        Stores the times of its watchdogs and does nothing when they expire.
    late : float
        Factor by which its watchdogs exceed their set time.
    quick_stop_holds : bool
        Keeps its torque in a quick stop, for every 0x605A.
    never_sets : int
        Bits of the statusword that it never sets.
    modulus : int
        Counts after which 0x6064 starts again at 0; 0: never.
    works : int
        How often its watchdog works.
    later : float
        Time by which its watchdog is late under load, s; infinite: it works without torque only.
    late_again : float
        Factor by which its watchdog exceeds its time once it has worked.
    keeps : float
        Fraction of its torque that goes on when its watchdog has expired, whatever it says. The
        next controlword ends it.
    admits_torque : bool
        Whether 0x6077 shows this torque.
    """

    def __init__(
        self,
        node: int,
        *,
        without: Any = (),
        fixed: Any = (),
        aborts: dict[tuple[int, int], int] | None = None,
        values: dict[tuple[int, int], int] | None = None,
        takes: dict[tuple[int, int], tuple[int, ...]] | None = None,
        ignores_watchdog: bool = False,
        late: float = 1.0,
        quick_stop_holds: bool = False,
        never_sets: int = 0,
        modulus: int = 0,
        works: float = math.inf,
        later: float = 0.0,
        late_again: float = 1.0,
        keeps: float = 0.0,
        admits_torque: bool = True,
    ) -> None:
        self.node = node
        self.table = objects(node)
        for key in list(self.table):
            if key in without or key[0] in without:
                del self.table[key]
            elif key in fixed or key[0] in fixed:
                self.table[key][1] = False
        for key, value in (values or {}).items():
            self.table.setdefault(key, ["I", False, value])[2] = value
        self.aborts = aborts or {}
        self.takes = takes or {}
        self.ignores_watchdog = ignores_watchdog
        self.late = late
        self.quick_stop_holds = quick_stop_holds
        self.never_sets = never_sets
        self.modulus = modulus
        self.works, self.later, self.late_again = works, later, late_again
        self.keeps, self.admits_torque = keeps, admits_torque
        self.has_supply = True  # without it, it is never switched on
        self.follows = True  # False: no torque, and bit 12 is cleared
        self.admits = True  # turned off: bit 12 stays set all the same
        self.pushes = 0  # per mille that it adds to the command
        self.shows = True  # whether 0x6077 is nonzero
        self.counts = 0
        self.state = DISABLED
        self.network = BOOT
        self.written: list[tuple[int, int, int]] = []
        self.left: list[tuple[float, int]] = []  # when operation enabled was left, to which state
        self.enabled_at: list[float] = []
        self._word = 0
        self._due = {"command": None, "heartbeat": None, "guard": None}
        self._toggle = 0
        self._inhibited = -1.0
        self._booted = False
        self._held = 0
        self._kept = 0.0  # per mille that still act, whatever the state

    # -- values ----------------------------------------------------------------------------------

    def value(self, index: int, sub: int = 0) -> int:
        """Value of an object; 0 if the drive lacks it."""
        if index == 0x6041:
            return self.statusword()
        if index == 0x6061 and self.network != BOOT and (0x6060, 0) in self.table:
            return int(self.table[0x6060, 0][2])
        if index == 0x6064:
            return self.counts % self.modulus if self.modulus else self.counts
        if index == 0x6077:
            shown = self.torque() + self.admits_torque * self._kept
            return round(shown) if self.shows else 0
        entry = self.table.get((index, sub))
        return int(entry[2]) if entry else 0

    def statusword(self) -> int:
        word = self.state | 1 << 9 | self.has_supply << 4
        if (
            self.state == ENABLED
            and self.value(0x6060) in (8, 9, 10)
            and (self.follows or not self.admits)
        ):
            word |= 1 << 12
        if self.state == ENABLED and abs(self.value(0x6071)) > self.value(0x6072) > 0:
            word |= 1 << 11
        return word & ~self.never_sets

    def torque(self) -> int:
        """Torque at the motor, per mille of its rated torque."""
        if self.state == QUICK and self.quick_stop_holds:
            return self._held
        if self.state != ENABLED:
            return 0
        target = 0
        if self.follows and self.value(0x6060) == 10:
            limit = self.value(0x6072) if (0x6072, 0) in self.table else 32767
            target = max(-limit, min(limit, self.value(0x6071)))
        return target + self.pushes

    def acting(self) -> float:
        """Torque that acts on the motor, per mille of its rated torque."""
        return self.torque() + self._kept

    # -- time ------------------------------------------------------------------------------------

    def poll(self, now: float) -> list[can.Message]:
        """Boot, and let watchdogs expire."""
        if not self._booted:
            self._booted, self.network = True, PRE_OPERATIONAL
            return [frame(0x700 + self.node, b"\x00")]
        sent: list[can.Message] = []
        for name, code in (("command", 0x8250), ("heartbeat", 0x8130), ("guard", 0x8130)):
            due = self._due[name]
            if due is not None and self.torque():
                due += self.later
            if due is not None and now >= due - 1e-9:
                self._due[name] = None
                if not self.ignores_watchdog and self.network == OPERATIONAL and self.works > 0:
                    self.works -= 1
                    self.late *= self.late_again
                    self.late_again = 1.0
                    kept = self.keeps * self.torque()
                    sent += self._lose_host(code, now)
                    self._kept = kept
        return sent

    def _lose_host(self, code: int, now: float) -> list[can.Message]:
        option = self.value(0x6007)
        self._held = self.torque()
        if option == 1:
            self._enter(FAULT, now)
        elif option == 2 and self.state != FAULT:
            self._enter(DISABLED, now)
        elif option == 3 and self.state == ENABLED:
            self._quick_stop(now)
        if self.value(0x1029, 1) != 1:
            self.network = PRE_OPERATIONAL if self.value(0x1029, 1) == 0 else STOPPED
        return [frame(0x80 + self.node, struct.pack("<HB5x", code, 0x11))]

    def _quick_stop(self, now: float) -> None:
        stays = self.quick_stop_holds or self.value(0x605A) in (5, 6)
        self._enter(QUICK if stays else DISABLED, now)

    def _enter(self, state: int, now: float) -> None:
        if self.state == ENABLED != state:
            self.left.append((now, state))
        if state == ENABLED != self.state:
            self.enabled_at.append(now)
        self.state = state

    # -- frames ----------------------------------------------------------------------------------

    def receive(self, message: can.Message, now: float) -> list[can.Message]:
        """Take a frame; returns the answers."""
        sent = self.poll(now)
        identifier, data = message.arbitration_id, bytes(message.data)
        if message.is_remote_frame:
            return sent + (self._guarded(now) if identifier == 0x700 + self.node else [])
        if identifier == 0 and len(data) == 2 and data[1] in (0, self.node):
            return sent + self._manage(data[0], now)
        if identifier == 0x600 + self.node and len(data) == 8 and self.network != STOPPED:
            return [*sent, frame(0x580 + self.node, self._serve(data, now))]
        consumer = self.value(0x1016, 1)
        if consumer & 0xFFFF and identifier == 0x700 + (consumer >> 16 & 0x7F) and len(data) == 1:
            self._due["heartbeat"] = now + (consumer & 0xFFFF) * 1e-3 * self.late
        if self.network != OPERATIONAL:
            return sent
        if identifier == self.value(0x1005) & 0x7FF and not data:
            return sent + self._synchronise(now)
        own = self.value(0x1400, 1)
        if not own >> 31 and identifier == own & 0x7FF:
            self._take(data, now)
        return sent

    def _guarded(self, now: float) -> list[can.Message]:
        """Node guarding: a remote frame is answered by the state, with a bit that alternates."""
        life = self.value(0x100C) * self.value(0x100D) * 1e-3 * self.late
        if life:
            self._due["guard"] = now + life
        answer = bytes((self.network | self._toggle,))
        self._toggle ^= 0x80
        return [frame(0x700 + self.node, answer)]

    def _manage(self, command: int, now: float) -> list[can.Message]:
        if command in (1, 2, 128):
            self.network = {1: OPERATIONAL, 2: STOPPED, 128: PRE_OPERATIONAL}[command]
            if command != 1:
                self._due["command"] = None
        elif command in (129, 130):
            self._enter(DISABLED, now)
            self._booted, self.network = False, BOOT
        return []

    def _serve(self, data: bytes, now: float) -> bytes:
        """Expedited transfers of the SDO server."""
        command, index, sub = struct.unpack_from("<BHB", data)
        key, head = (index, sub), struct.pack("<HB", index, sub)

        def refuse(code: int) -> bytes:
            return b"\x80" + head + struct.pack("<I", code)

        if key in self.aborts:
            return refuse(self.aborts[key])
        if key not in self.table:
            known = any(other[0] == index for other in self.table)
            return refuse(NO_SUB if known else ABSENT)
        form, writable, _ = self.table[key]
        size = struct.calcsize("<" + form)
        if command >> 5 == 2:  # upload
            packed = struct.pack("<" + form, self.value(index, sub)).ljust(4, b"\x00")
            return bytes((0x43 | (4 - size) << 2,)) + head + packed
        if command >> 5 != 1:
            return refuse(0x05040001)
        if not writable:
            return refuse(READ_ONLY)
        (value,) = struct.unpack_from("<" + form, data, 4)
        code = self._may_write(index, sub, value)
        if code:
            return refuse(code)
        self.written.append((index, sub, value))
        if index == 0x6040:
            self._control(value, now)
        self.table[key][2] = value
        if index == 0x1016:
            self._due["heartbeat"] = None
        return b"\x60" + head + bytes(4)

    def _may_write(self, index: int, sub: int, value: int) -> int:
        """CiA 301: a PDO's mapping and times change only while it does not exist."""
        if value not in self.takes.get((index, sub), (value,)):
            return RANGE
        if index in (0x1600, 0x1A00, 0x1601, 0x1A01):
            if not self.value(index - 0x200, 1) >> 31:
                return STATE
            if sub and self.value(index):
                return STATE
        if index in (0x1600, 0x1A00) and sub:
            mapped = self.table.get((value >> 16, value >> 8 & 0xFF))
            if value and (mapped is None or 8 * struct.calcsize(mapped[0]) != value & 0xFF):
                return NOT_MAPPABLE
        if index in (0x1400, 0x1800) and sub == 3 and not self.value(index, 1) >> 31:
            return STATE
        if index == 0x6072 and value > 5000:
            return TOO_HIGH
        return 0

    def _entries(self, mapping: int) -> list[tuple[int, int, str]]:
        found = []
        for place in range(self.value(mapping)):
            entry = self.value(mapping, place + 1)
            index, sub = entry >> 16, entry >> 8 & 0xFF
            found.append((index, sub, self.table[index, sub][0]))
        return found

    def _synchronise(self, now: float) -> list[can.Message]:
        own = self.value(0x1800, 1)
        if own >> 31 or not 1 <= self.value(0x1800, 2) <= 240 or now < self._inhibited:
            return []
        self._inhibited = now + self.value(0x1800, 3) * 1e-4
        entries = self._entries(0x1A00)
        letters = "".join(form for *_, form in entries)
        data = struct.pack("<" + letters, *(self.value(i, s) for i, s, _ in entries))
        return [frame(own & 0x7FF, data)]

    def _take(self, data: bytes, now: float) -> None:
        entries = self._entries(0x1600)
        form = struct.Struct("<" + "".join(form for *_, form in entries))
        if len(data) != form.size:
            return
        time = self.value(0x1400, 5) * 1e-3 * self.late
        self._due["command"] = now + time if time else None
        for (index, sub, _), value in zip(entries, form.unpack(data), strict=True):
            if index == 0x6040:
                self._control(value, now)
            self.table[index, sub][2] = value

    def _control(self, word: int, now: float) -> None:
        """Transitions of CiA 402 by bits 0 to 3 and 7 of the controlword."""
        before, self._word = self._word, word
        self._kept = 0.0
        state = self.state
        if state == FAULT:
            if word & 0x80 and not before & 0x80:
                self._enter(DISABLED, now)
        elif not word & 0x02:
            self._enter(DISABLED, now)
        elif not word & 0x04:
            if state == ENABLED:
                self._held = self.torque()
                self._quick_stop(now)
            elif state != QUICK:
                self._enter(DISABLED, now)
        elif state == DISABLED:
            if word & 0x07 == 0x06:
                self._enter(READY, now)
        elif word & 0x07 == 0x06:
            self._enter(READY if state != QUICK else QUICK, now)
        elif state == READY:
            if self.has_supply:
                self._enter(ON, now)
        elif state == ON and word & 0x0F == 0x0F:
            self._enter(ENABLED, now)
        elif state == ENABLED and word & 0x0F == 0x07:
            self._enter(ON, now)


def frame(identifier: int, data: bytes = b"", remote: bool = False) -> can.Message:
    """A frame with a standard identifier."""
    return can.Message(
        arbitration_id=identifier, data=data, is_extended_id=False, is_remote_frame=remote
    )


class OnBus:
    """Drives at one end of python-can's `virtual` bus, moved by a stepped clock.

    Parameters
    ----------
    channel : str
        The bus.
    *drives : StandardsDrive
        The drives.
    """

    def __init__(self, channel: str, *drives: StandardsDrive) -> None:
        self.bus = can.Bus(interface="virtual", channel=channel)
        self.drives = drives
        self.heard: list[tuple[float, can.Message]] = []
        self.before: Callable[[float], None] = lambda now: None

    def advance(self, now: float) -> None:
        """Receive frames, answer them, and let watchdogs expire."""
        self.before(now)
        while (message := self.bus.recv(0)) is not None:
            self.heard.append((now, message))
            for drive in self.drives:
                for answer in drive.receive(message, now):
                    self.bus.send(answer)
        for drive in self.drives:
            for answer in drive.poll(now):
                self.bus.send(answer)

    def close(self) -> None:
        """Leave the bus."""
        self.bus.shutdown()


class MakersTool:
    """A tool of the drives' maker on the same bus: it writes objects, manages nodes, sends SYNC."""

    def __init__(self, channel: str) -> None:
        self.bus = can.Bus(interface="virtual", channel=channel)

    def write(self, node: int, index: int, form: str, value: int, sub: int = 0) -> None:
        """Write an object by SDO."""
        data = struct.pack("<" + form, value)
        head = struct.pack("<BHB", 0x23 | (4 - len(data)) << 2, index, sub)
        self.bus.send(frame(0x600 + node, head + data.ljust(4, b"\x00")))

    def read(self, node: int, index: int, sub: int = 0) -> None:
        """Ask for an object by SDO."""
        self.bus.send(frame(0x600 + node, struct.pack("<BHB4x", 0x40, index, sub)))

    def manage(self, command: int, node: int) -> None:
        """Send a command of network management."""
        self.bus.send(frame(0x000, bytes((command, node))))

    def sync(self) -> None:
        """Send SYNC."""
        self.bus.send(frame(0x080))

    def command(self, node: int, word: int, target: int) -> None:
        """Send process data."""
        self.bus.send(frame(0x200 + node, struct.pack("<Hh", word, target)))

    def heartbeat(self, node: int) -> None:
        """Send a heartbeat."""
        self.bus.send(frame(0x700 + node, b"\x05"))

    def close(self) -> None:
        """Leave the bus."""
        self.bus.shutdown()
