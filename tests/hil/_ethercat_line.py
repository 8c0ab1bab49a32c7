"""A line of EtherCAT drives on a network adapter, in Python: for tests with the real master.

Written from the public description of the protocol (IEC 61158-4-12, -6-12; ETG.1000): datagrams,
station addresses, SII, states of the application layer, sync managers with mailbox and watchdog,
FMMUs, and CoE with expedited SDO. The drives behind it are those of `standards_drive`, which know
CiA 301 and CiA 402 alone: a frame of CAN becomes a service of CoE or process data.

Runs as a program: `python -m tests.hil._ethercat_line ADAPTER COUNT [QUIRKS]`, where QUIRKS is a
JSON object of keyword arguments by position. It answers until its input ends. A line `NAME POSITION
VALUE` of its input sets an attribute of a drive, `? POSITION` prints its torque, `link POSITION
NAME` changes its link.
"""

from __future__ import annotations

import json
import os
import select
import socket
import struct
import sys
import time

from tests.hil.standards_drive import ENABLED, OPERATIONAL, StandardsDrive

ETHERTYPE = 0x88A4
INIT, PREOP, SAFEOP, OP, ERROR = 1, 2, 4, 8, 0x10
WATCHDOG_EXPIRED, NO_SYNC_MANAGER = 0x001B, 0x001D

MAILBOX_OUT, MAILBOX_IN, MAILBOX = 0x1000, 0x1100, 128
OUTPUTS, INPUTS = 0x1800, 0x1C00


def sii() -> bytes:
    """Contents of the slave information interface, words of 16 bits, little-endian."""
    words = bytearray(0x80)
    struct.pack_into("<IIII", words, 0x10, 0x2FB, 0x10, 1, 7)  # vendor, product, revision, serial
    struct.pack_into("<HHHHH", words, 0x30, MAILBOX_OUT, MAILBOX, MAILBOX_IN, MAILBOX, 0x04)
    struct.pack_into("<HHHH", words, 0x28, MAILBOX_OUT, MAILBOX, MAILBOX_IN, MAILBOX)
    general = bytearray(32)
    general[5] = 0x01 | 0x02 | 0x04  # CoE: SDO, SDO information, assignment of process data
    syncs = b"".join(
        struct.pack("<HHBBBB", start, length, control, 0, 1, kind)
        for start, length, control, kind in (
            (MAILBOX_OUT, MAILBOX, 0x26, 1),
            (MAILBOX_IN, MAILBOX, 0x22, 2),
            (OUTPUTS, 0, 0x64, 3),
            (INPUTS, 0, 0x20, 4),
        )
    )
    for kind, data in ((30, bytes(general)), (40, b"\x01\x02\x03\xff"), (41, syncs)):
        words += struct.pack("<HH", kind, len(data) // 2) + data
    return bytes(words + b"\xff\xff" + bytes(64))


SII = sii()


class Drive(StandardsDrive):
    """The drive, whose mapping can be written while it is assigned to no sync manager."""

    def value(self, index: int, sub: int = 0) -> int:
        if index in (0x1400, 0x1800) and sub == 1:
            assigned = 0x1C12 if index == 0x1400 else 0x1C13
            return 0 if super().value(assigned) else 1 << 31
        return super().value(index, sub)


class Slave:
    """One slave controller with its drive."""

    def __init__(self, position: int, **quirks) -> None:
        self.position = position
        self.without_watchdog_bit = quirks.pop("without_watchdog_bit", False)
        self.fixed_map = quirks.pop("fixed_map", False)
        self.drive = Drive(1, **quirks)
        table = self.drive.table
        for index in (0x1400, 0x1401, 0x1800, 0x1801):
            for sub in range(6):
                table.pop((index, sub), None)
        for index in (0x1016, 0x100C, 0x100D, 0x1017, 0x1029):
            for sub in range(2):
                table.pop((index, sub), None)
        table[0x1018, 4] = ["I", False, 7000 + position]
        for sub, kind in enumerate((4, 1, 2, 3, 4)):
            table[0x1C00, sub] = ["B", False, kind]
        for assigned, mapping in ((0x1C12, 0x1600), (0x1C13, 0x1A00)):
            table[assigned, 0] = ["B", not self.fixed_map, 1]
            table[assigned, 1] = ["H", not self.fixed_map, mapping]
        if self.fixed_map:  # a pad in front, and everything fixed
            fixed = {0x1600: (0x60600008, 0x60400010, 0x60710010)}
            fixed[0x1A00] = (0x60610008, 0x60640020, 0x60410010, 0x60770010)
            table[0x6060, 0][2] = 10
            fixed = {k: [e for e in v if (e >> 16, 0) in table] for k, v in fixed.items()}
            for index, entries in fixed.items():
                table[index, 0] = ["B", False, len(entries)]
                for sub, entry in enumerate(entries, 1):
                    table[index, sub] = ["I", False, entry]
        self.memory = bytearray(0x2000)
        struct.pack_into("<BBHBBBBH", self.memory, 0, 0x11, 2, 1, 4, 4, 8, 0x0F, 0x0001)
        struct.pack_into("<H", self.memory, 0x110, 0x5A31 if position else 0x1631)
        struct.pack_into("<H", self.memory, 0x400, 2498)
        struct.pack_into("<H", self.memory, 0x420, 1000)
        self.state, self.code = INIT, 0
        self.answer: bytes | None = None
        self.fed: float | None = None
        self.has_link = True
        self.lies = ""

    # -- registers -------------------------------------------------------------------------------

    @property
    def address(self) -> int:
        return struct.unpack_from("<H", self.memory, 0x10)[0]

    def read(self, start: int, length: int) -> bytes | None:
        if start == MAILBOX_IN and self.state & 0x0F != INIT:
            if self.answer is None:
                return None
            found, self.answer = self.answer, None
            return found.ljust(length, b"\x00")[:length]
        if start <= 0x130 < start + length:
            struct.pack_into("<HHH", self.memory, 0x130, self.state, 0, self.code)
        if start <= 0x80D < start + length:
            self.memory[0x80D] = self.answer is not None and 0x08
            self.memory[0x805] = 0
        if start <= INPUTS < start + length:
            self.sample()
        return bytes(self.memory[start : start + length])

    def write(self, start: int, data: bytes, now: float) -> bool:
        if start == MAILBOX_OUT and self.state & 0x0F != INIT:
            self.memory[start : start + len(data)] = data
            self.mailbox(data, now)
            return True
        if start == OUTPUTS and self.state != OP:
            return self.state == SAFEOP
        self.memory[start : start + len(data)] = data
        if start <= 0x120 < start + len(data):
            self.request(self.memory[0x120], now)
        if start <= 0x502 < start + len(data) and self.memory[0x503] & 0x01:
            (word,) = struct.unpack_from("<I", self.memory, 0x504)
            part = SII[2 * word : 2 * word + 8].ljust(8, b"\xff")
            self.memory[0x508:0x510] = part
            struct.pack_into("<H", self.memory, 0x502, 0x0040)
        if self.without_watchdog_bit:
            self.memory[0x814] &= ~0x40
        return True

    def request(self, wanted: int, now: float) -> None:
        """Change of state; an error must be acknowledged first."""
        if self.state & ERROR:
            if not wanted & ERROR:
                return
            self.state &= 0x0F
            self.code = 0
            if wanted & 0x0F == self.state:
                return
        target, before = wanted & 0x0F, self.state
        self.state = target
        if target == OP:
            self.drive.network = OPERATIONAL
            self.fed = now
        elif before == OP:
            self.drive.network = 127
            self.leave()

    def leave(self) -> None:
        """Leave OP by order of the master: the drive switches off."""
        self.drive._control(0, 0.0)
        self.drive.table[0x6071, 0][2] = 0

    # -- mailbox ---------------------------------------------------------------------------------

    def mailbox(self, data: bytes, now: float) -> None:
        length, _, _, kind = struct.unpack_from("<HHBB", data)
        content = data[6 : 6 + length]
        if kind & 0x0F != 3 or len(content) < 10 or content[1] >> 4 != 2:
            return
        request = bytearray(content[2:10])
        self.drive.network = self.drive.network if self.drive.network != 0 else 127
        answer = self.drive._serve(bytes(request), now)
        service = 2 if answer[0] == 0x80 else 3  # an abort is a request of its own
        coe = struct.pack("<H", service << 12) + answer
        self.answer = struct.pack("<HHBB", len(coe), 0, 0, 0x03 | (kind & 0x70)) + coe

    # -- process data ----------------------------------------------------------------------------

    def sample(self) -> None:
        entries = self.drive._entries(0x1A00)
        letters = "".join(form for *_, form in entries)
        data = struct.pack("<" + letters, *(self.drive.value(i, s) for i, s, _ in entries))
        self.memory[INPUTS : INPUTS + len(data)] = data

    def take(self, now: float) -> None:
        if self.state != OP:
            return
        self.fed = now
        entries = self.drive._entries(0x1600)
        form = struct.Struct("<" + "".join(form for *_, form in entries))
        data = bytes(self.memory[OUTPUTS : OUTPUTS + form.size])
        for (index, sub, _), value in zip(entries, form.unpack(data), strict=True):
            if index == 0x6040:
                self.drive._control(value, now)
            self.drive.table[index, sub][2] = value

    def poll(self, now: float) -> None:
        """Watchdog of the outputs."""
        (divider, time_) = struct.unpack_from("<H", self.memory, 0x400)[0], 0
        (time_,) = struct.unpack_from("<H", self.memory, 0x420)
        drive = self.drive
        if self.state != OP or self.fed is None or not time_ or drive.ignores_watchdog:
            return
        if not self.memory[0x814] & 0x40:
            return
        late = drive.late * time_ * (divider + 2) * 40e-9 + drive.later * bool(drive.torque())
        if now - self.fed > late and drive.works > 0:
            drive.works -= drive.state == ENABLED and bool(drive.torque())
            drive.late *= drive.late_again
            drive.late_again = 1.0
            kept = drive.keeps * drive.torque()
            self.state, self.code, self.fed = SAFEOP | ERROR, WATCHDOG_EXPIRED, None
            drive.network = 127
            drive._lose_host(0x8250, now)
            drive._kept = kept


class Line:
    """The slaves of a line; each datagram passes all of them."""

    def __init__(self, slaves: list[Slave]) -> None:
        self.slaves = slaves

    def pass_on(self, data: bytes, now: float) -> bytes:
        """Answer a frame from after the Ethernet header."""
        out, place = bytearray(data), 2
        while True:
            command, _, where, offset, length = struct.unpack_from("<BBHHH", out, place)
            size, more = length & 0x7FF, length & 0x8000
            begin = place + 10
            part = out[begin : begin + size]
            counter = self.datagram(command, where, offset, part, out, place, now)
            out[begin : begin + size] = part
            (before,) = struct.unpack_from("<H", out, begin + size)
            struct.pack_into("<H", out, begin + size, before + counter & 0xFFFF)
            place = begin + size + 2
            if not more:
                return bytes(out)

    def datagram(self, command, where, offset, part, out, place, now) -> int:
        counter = 0
        if command in (10, 11, 12):
            return self.logical(command, where | offset << 16, part, now)
        for slave in self.slaves:
            if not slave.has_link:
                continue
            hit = True
            if command in (1, 2, 3):
                hit = where == 0
                where = where + 1 & 0xFFFF
                struct.pack_into("<H", out, place + 2, where)
            elif command in (4, 5, 6):
                hit = where == slave.address
            elif command not in (7, 8, 9):
                hit = False
            if not hit:
                continue
            if command in (1, 4, 7):
                found = slave.read(offset, len(part))
                if found is not None:
                    if command == 7:
                        found = bytes(a | b for a, b in zip(part, found, strict=True))
                    part[:] = found
                    counter += 1
            elif command in (2, 5, 8):
                counter += slave.write(offset, bytes(part), now)
        return counter

    def logical(self, command: int, start: int, part: bytearray, now: float) -> int:
        counter = 0
        for slave in self.slaves:
            if not slave.has_link:
                continue
            reads = writes = False
            memory = slave.memory
            for base in range(0x600, 0x640, 16):
                begin, length, _, _, physical, _, kind, active = struct.unpack_from(
                    "<IHBBHBBB", memory, base
                )
                if not active & 1 or begin < start or begin + length > start + len(part):
                    continue
                at = begin - start
                if kind & 2 and command in (11, 12):
                    writes |= slave.write(physical, bytes(part[at : at + length]), now)
            for base in range(0x600, 0x640, 16):
                begin, length, _, _, physical, _, kind, active = struct.unpack_from(
                    "<IHBBHBBB", memory, base
                )
                if not active & 1 or begin < start or begin + length > start + len(part):
                    continue
                at = begin - start
                if kind & 1 and command in (10, 12) and slave.state & 0x0F in (SAFEOP, OP):
                    found = slave.read(physical, length)
                    part[at : at + length] = found or bytes(length)
                    reads = True
            if writes:
                slave.take(now)
            counter += reads + 2 * writes if command == 12 else reads + writes
        return counter


def main(adapter: str, count: int, quirks: dict) -> None:
    """Answer frames on an adapter."""
    slaves = [Slave(k, **quirks.get(str(k + 1), {})) for k in range(count)]
    line = Line(slaves)
    link = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETHERTYPE))
    link.bind((adapter, ETHERTYPE))
    print("ready", flush=True)
    buffer = b""
    while True:
        ready, _, _ = select.select([link, sys.stdin], [], [], 0.001)
        now = time.monotonic()
        for slave in slaves:
            slave.poll(now)
        if link in ready:
            data, info = link.recvfrom(2048)
            if info[2] != socket.PACKET_OUTGOING:
                answer = bytearray(data)
                answer[6] |= 0x02
                answer[14:] = line.pass_on(bytes(data[14:]), now)
                link.send(bytes(answer))
        if sys.stdin in ready:
            part = os.read(0, 4096)
            if not part:
                return
            buffer += part
            while b"\n" in buffer:
                text, buffer = buffer.split(b"\n", 1)
                order(slaves, text.decode())


def order(slaves: list[Slave], text: str) -> None:
    """Obey a line of the test."""
    name, position, *value = text.split()
    slave = slaves[int(position) - 1]
    if name == "?":
        found = slave.drive.acting(), slave.state, slave.code, slave.drive.state
        print(json.dumps(found), flush=True)
    elif name == "link":
        slave.has_link = value[0] == "on"
    elif name == "object":
        index, given = int(value[0], 0), int(value[1], 0)
        slave.drive.table[index, 0][2] = given
    elif name == "fault":
        slave.drive._enter(0x08, time.monotonic())
    elif name == "state":
        slave.state = int(value[0])
    else:
        setattr(slave.drive, name, json.loads(value[0]))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3]) if len(sys.argv) > 3 else {})
