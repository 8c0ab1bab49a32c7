"""CiA 402 drives over EtherCAT, as a bus of CANopen frames: a gateway to CoE by pysoem.

CoE has the object dictionary and the SDO of CANopen. So the drivers of CiA 402 drives work here as
on CAN, with the position of a drive on the line, from 1, as `node`:

- Expedited SDO requests become CoE transfers. Objects of the CAN communication profile, 0x1400 to
  0x1BFF, belong to the gateway. It maps command and report (with 0x6061) by 0x1C12 and 0x1C13, or
  takes the mapping that the drive has fixed, if that has all objects.
- The event timer of the command (0x1400:5) is the watchdog of the sync manager, without which it
  reads as zero: its register is written and read back, as the driver does with an event timer.
- Network management becomes states: start is SAFEOP, and OP at the first command after it, so that
  no watchdog runs before; the others are PREOP.
- SYNC exchanges process data once, with the outputs of the last cycle, and makes reports of the
  inputs. A SYNC without commands since the last one, or after half of a watchdog, reads the inputs
  alone, so that no output revives a drive. The last command of a cycle exchanges them again: it
  acts at once.
- A wrong working counter makes no report. Then the states are read, and a drive that has left OP
  sends its heartbeat with another state, which stops the rig.

The drives run freely; distributed clocks are not used.
"""

from __future__ import annotations

import math
import struct
import time
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import can

from hil._extras import library
from hil.bus import Bus
from hil.clock import Clock, MonotonicClock
from hil.errors import BusError

if TYPE_CHECKING:
    from hil.settings import BusSettings

INTERFACE = "ethercat"
"""Name of the interface in rig files."""

COMMAND, REPORT = (0x60400010, 0x60710010), (0x60410010, 0x60640020, 0x60770010, 0x60610008)
"""Entries of the mapping; the last one is answered by SDO, as on CAN."""

SIZES = {entry: (entry & 0xFF) // 8 for entry in (*COMMAND, *REPORT)}

EXCHANGE = 2000
"""Time-out of an exchange of process data, us."""
CHANGE = 1.0
"""Time in which a drive must change its state, s."""
FRESH = 0.5
"""Fraction of a watchdog after which outputs are too old for an exchange that reads."""
LOST, LOOK = 3, 16
"""Exchanges with a wrong working counter in succession, and of any kind, after which the states of
the drives are read."""

_SDO = struct.Struct("<BHB4s")
_ABSENT, _READ_ONLY, _GENERAL, _NOT_MAPPABLE = 0x06020000, 0x06010002, 0x08000000, 0x06040041
_OWN = range(0x1400, 0x1C00)
_NO_CAN = 0x1016, 0x1017, 0x100C, 0x100D, 0x1029
_MODE = 0x6061
_WATCHED = 0x40  # bit of the control byte of a sync manager that triggers the watchdog
_OUTPUTS, _INPUTS = 0x0810, 0x0818  # registers of the sync managers of process data


def open_ethercat(settings: BusSettings, clock: Clock | None = None) -> Bus:
    """Open a line of EtherCAT drives.

    Parameters
    ----------
    settings : BusSettings
        The network adapter is `channel`.
    clock : Clock, optional
        The loop's clock; the machine's monotonic clock if not given.

    Returns
    -------
    Bus
        The line; close it after use.

    Raises
    ------
    BusError
        If the adapter cannot be opened, or no drive answers.
    RigError
        If the package `pysoem` is not installed.
    """
    try:
        line = EthercatBus(settings.channel)
    except can.CanError as error:
        raise BusError(
            str(settings),
            expected="a network adapter with a line of EtherCAT drives",
            came=str(error),
            cure="Check the name of the adapter (`ip link`), the cable, the power of the drives, "
            "and the right to send raw frames: root, or the capability CAP_NET_RAW.",
        ) from error
    return Bus(line, clock or MonotonicClock())


class EthercatBus(can.BusABC):
    """A line of EtherCAT drives, behind the interface of a CAN bus.

    `channel` is the network adapter. It needs the right to send raw Ethernet frames.
    """

    def __init__(self, channel: str, **options: Any) -> None:
        self._soem = library("pysoem", INTERFACE)
        self.channel_info = f"EtherCAT on {channel}"
        self._queue: deque[can.Message] = deque()
        self._master = self._soem.Master()
        self._is_mapped = False
        try:
            self._master.open(channel)
            found = self._master.config_init()
        except ConnectionError as error:
            raise can.CanInitializationError(
                f"{channel} cannot be opened for raw frames: {error}"
            ) from error
        if found <= 0:
            self._master.close()
            raise can.CanInitializationError(f"no EtherCAT drive answers on {channel}")
        self.slaves = [_Slave(self, node, self._master.slaves[node - 1]) for node in _nodes(found)]
        self._wrong = 0  # consecutive exchanges with a wrong working counter
        self._number = 0  # of the exchange
        self._commanded: set[int] = set()  # nodes with a command since the last exchange
        self._is_commanded = False  # whether there was one since the last SYNC
        self._sent = -math.inf  # instant of the last exchange after commands, s
        super().__init__(channel, **options)

    # -- frames ----------------------------------------------------------------------------------

    def send(self, msg: can.Message, timeout: float | None = None) -> None:
        """Pass a frame to the drives; SDO and changes of state wait for the drive."""
        kind, node, data = msg.arbitration_id & 0x780, msg.arbitration_id & 0x7F, bytes(msg.data)
        if msg.is_remote_frame or msg.is_extended_id or msg.is_fd:
            return
        if msg.arbitration_id == 0x080:
            self._synchronise()
        elif msg.arbitration_id == 0x000 and len(data) == 2:
            self._manage(data[0], [s for s in self.slaves if data[1] in (0, s.node)])
        elif 1 <= node <= len(self.slaves) and kind == 0x600 and len(data) == 8:
            self._queue.append(_frame(0x580 + node, self.slaves[node - 1].serve(data)))
        elif 1 <= node <= len(self.slaves) and kind == 0x200 and self.slaves[node - 1].runs:
            if self.slaves[node - 1].waits:
                self._operate()
            self.slaves[node - 1].command(data)
            self._commanded.add(node)
            if self._commanded >= {slave.node for slave in self.slaves if slave.runs}:
                self._exchange()

    def _recv_internal(self, timeout: float | None) -> tuple[can.Message | None, bool]:
        if self._queue:
            return self._queue.popleft(), False
        if timeout:
            time.sleep(timeout)
        return None, False

    def report(self, frame: can.Message) -> None:
        """Pass a frame of a drive to the host."""
        self._queue.append(frame)

    def shutdown(self) -> None:
        """Leave the drives in the state INIT, and close the adapter."""
        super().shutdown()
        with suppress(Exception):
            self._master.state = self._soem.INIT_STATE
            self._master.write_state()
        self._master.close()

    # -- process data ----------------------------------------------------------------------------

    def _synchronise(self) -> None:
        """Exchange process data, or read the inputs alone; make reports."""
        running = [slave for slave in self.slaves if slave.runs]
        if not running:
            return
        recent = time.monotonic() - self._sent < FRESH * min(slave.watch for slave in running)
        if self._is_commanded and recent:
            self._is_commanded = False
            if self._exchange():
                for slave in running:
                    slave.send_report(bytes(slave.device.input))
            return
        for slave in running:
            with suppress(Exception):
                slave.send_report(slave.read_inputs())

    def _exchange(self) -> bool:
        """Exchange process data; return whether every drive has taken part."""
        if self._commanded:
            self._commanded.clear()
            self._is_commanded, self._sent = True, time.monotonic()
        self._master.send_processdata()
        counter = self._master.receive_processdata(EXCHANGE)
        right = counter == sum(slave.counts for slave in self.slaves if slave.runs)
        self._wrong = 0 if right else self._wrong + 1
        self._number += 1
        if self._wrong >= LOST or self._number % LOOK == 0:
            self._wrong = 0
            self._master.read_state()
            for slave in self.slaves:
                if slave.runs and slave.device.state != self._soem.OP_STATE:
                    slave.runs = False
                    self._queue.append(_frame(0x700 + slave.node, b"\x04"))
        return bool(right)

    # -- states ----------------------------------------------------------------------------------

    def _manage(self, command: int, slaves: list[_Slave]) -> None:
        for slave in slaves:
            if command == 0x01:
                slave.runs = slave.waits = self._start(slave)
            elif command in (0x02, 0x80):
                slave.runs = slave.waits = False
                slave.change(self._soem.PREOP_STATE)

    def _start(self, slave: _Slave) -> bool:
        """Bring a drive to SAFEOP, whatever state it is in; return whether it is."""
        if not self._is_mapped:
            for other in self.slaves:
                if not other.is_laid_out:
                    other.lay_out()
            self._master.config_map()
            self._is_mapped = True
            for other in self.slaves:
                other.find_inputs()
        slave.keep_others()
        slave.command(bytes(4))
        return slave.change(self._soem.SAFEOP_STATE)

    def _operate(self) -> None:
        """Bring all drives that have been started to OP, with outputs of zero."""
        wanted, soem = self._soem.OP_STATE, self._soem
        waiting = [slave for slave in self.slaves if slave.waits]
        self._master.send_processdata()  # valid outputs are a condition
        self._master.receive_processdata(EXCHANGE)
        for slave in waiting:
            slave.waits = False
            slave.device.state = wanted
            slave.device.write_state()
        until = time.monotonic() + CHANGE
        while waiting and time.monotonic() < until:
            self._master.send_processdata()
            self._master.receive_processdata(EXCHANGE)
            waiting = [slave for slave in waiting if slave.state(wanted, 2000) != wanted]
        for slave in waiting:
            slave.runs = False
            self._queue.append(_frame(0x700 + slave.node, bytes((soem.SAFEOP_STATE,))))


class _Slave:
    """One drive."""

    def __init__(self, bus: EthercatBus, node: int, device: Any) -> None:
        self.bus, self.node, self.device = bus, node, device
        self._soem = library("pysoem", INTERFACE)
        self.runs = False  # whether it is in SAFEOP or OP, by order of the host
        self.waits = False  # whether the next command brings it to OP
        self.watch = math.inf  # time of its watchdog, s
        self.is_laid_out = False
        self._places: dict[int, int] = {}  # bytes of entries in outputs or inputs
        self._others: dict[int, int] = {}  # the same, of outputs that the loop does not set
        self._outputs = b""  # their values
        self._address, self._length = 0, 0  # of the inputs
        self._mode: bytes | None = None
        device.add_emergency_callback(self._take_emergency)

    # -- objects ---------------------------------------------------------------------------------

    def serve(self, data: bytes) -> bytes:
        """Answer an expedited SDO request."""
        command, index, subindex, value = _SDO.unpack(data)
        head = struct.pack("<HB", index, subindex)
        try:
            if command >> 5 == 2:
                found = self._read(index, subindex)
                if not 1 <= len(found) <= 4:
                    raise _AbortError(_GENERAL)
                return bytes((0x43 | 4 - len(found) << 2,)) + head + found.ljust(4, b"\x00")
            if command >> 5 == 1:
                self._write(index, subindex, value[: 4 - (command >> 2 & 3)])
                return b"\x60" + head + bytes(4)
            raise _AbortError(0x05040001)
        except _AbortError as abort:
            return b"\x80" + head + struct.pack("<I", abort.code)
        except self._soem.SdoError as error:
            return b"\x80" + head + struct.pack("<I", error.abort_code & 0xFFFFFFFF)
        except Exception as error:  # the drive is silent
            text = f"node {self.node}, object 0x{index:04X}: {type(error).__name__}"
            raise can.CanOperationError(text) from error

    def _read(self, index: int, subindex: int) -> bytes:
        if index == _MODE and self.runs and self._mode is not None:
            return self._mode
        if index in _NO_CAN:
            raise _AbortError(_ABSENT)
        if index not in _OWN:
            return bytes(self.device.sdo_read(index, subindex))
        if (index, subindex) == (0x1400, 1) and not self.is_laid_out:
            self.lay_out()
        return self._own(index, subindex)

    def _own(self, index: int, subindex: int) -> bytes:
        """Objects of the gateway: mapping and transmission of command and report."""
        if (index, subindex) == (0x1400, 5):
            return struct.pack("<H", round(self.watchdog()))
        mapped = {0x1600: COMMAND, 0x1A00: REPORT[:3]}.get(index)
        if mapped is not None and subindex <= len(mapped):
            if subindex == 0:
                return bytes((len(mapped),))
            return struct.pack("<I", mapped[subindex - 1])
        numbers: dict[tuple[int, int], bytes] = {
            (0x1400, 1): struct.pack("<I", 0x200 + self.node),
            (0x1400, 2): b"\xff",
            (0x1800, 1): struct.pack("<I", 0x180 + self.node),
            (0x1800, 2): b"\x01",
        }
        if (index, subindex) not in numbers:
            raise _AbortError(_ABSENT)
        return numbers[index, subindex]

    def _write(self, index: int, subindex: int, value: bytes) -> None:
        if index in _NO_CAN:
            raise _AbortError(_ABSENT)
        if (index, subindex) == (0x1400, 5):
            (milliseconds,) = struct.unpack("<H", value[:2])
            self.watch = 1e-3 * milliseconds
            self.device.set_watchdog("processdata", float(milliseconds))
        elif index in _OWN:
            if self._own(index, subindex) != value:
                raise _AbortError(_READ_ONLY)
        else:
            self.device.sdo_write(index, subindex, value)

    @property
    def counts(self) -> int:
        """Its part of the working counter of an exchange."""
        return 2 * bool(self.device.output) + bool(self.device.input)

    def watchdog(self) -> float:
        """Time of the watchdog of the outputs, ms; 0 if it is not triggered by them."""
        control = self.device._fprd(_OUTPUTS, 8)[4]
        if self.bus._is_mapped and not control & _WATCHED:
            return 0.0
        return float(self.device.get_watchdog("processdata"))

    # -- process data ----------------------------------------------------------------------------

    def lay_out(self) -> None:
        """Map command and report, or accept a mapping that has all of their objects."""
        for assigned, mapping, entries in ((0x1C12, 0x1600, COMMAND), (0x1C13, 0x1A00, REPORT)):
            with suppress(self._soem.SdoError):
                self._assign(assigned, mapping, entries)
            self._find(assigned, entries)
        self.is_laid_out = True

    def _assign(self, assigned: int, mapping: int, entries: tuple[int, ...]) -> None:
        write = self.device.sdo_write
        write(assigned, 0, b"\x00")
        write(mapping, 0, b"\x00")
        for place, entry in enumerate(entries, 1):
            write(mapping, place, struct.pack("<I", entry))
        write(mapping, 0, bytes((len(entries),)))
        write(assigned, 1, struct.pack("<H", mapping))
        write(assigned, 0, b"\x01")

    def _find(self, assigned: int, entries: tuple[int, ...]) -> None:
        """Find the places of entries in the mapping that is in force."""
        read, bits = self.device.sdo_read, 0
        places = dict[int, int]()
        for k in range(1, 1 + read(assigned, 0)[0]):
            (mapping,) = struct.unpack("<H", read(assigned, k)[:2])
            for place in range(1, 1 + read(mapping, 0)[0]):
                (entry,) = struct.unpack("<I", read(mapping, place)[:4])
                places[entry] = bits // 8
                bits += entry & 0xFF
        if not set(entries[:3]) <= set(places):
            raise _AbortError(_NOT_MAPPABLE)
        self._places |= places
        if assigned == 0x1C12:
            self._others = {e: to for e, to in places.items() if e not in entries}

    def keep_others(self) -> None:
        """Give objects in the outputs that the loop does not set the values that they have."""
        outputs = bytearray(len(self.device.output))
        for entry, to in self._others.items():
            if entry >> 16:
                value = bytes(self.device.sdo_read(entry >> 16, entry >> 8 & 0xFF))
                outputs[to : to + len(value)] = value
        self._outputs = bytes(outputs)

    def find_inputs(self) -> None:
        """Find the memory of the inputs, to read them alone."""
        self._address, self._length = struct.unpack("<HH", self.device._fprd(_INPUTS, 8)[:4])

    def read_inputs(self) -> bytes:
        """Inputs, without an exchange of outputs."""
        return bytes(self.device._fprd(self._address, self._length))

    def command(self, data: bytes) -> None:
        """Set the outputs from the data of a command."""
        outputs, place = bytearray(self._outputs), 0
        for entry in COMMAND:
            size, to = SIZES[entry], self._places[entry]
            outputs[to : to + size] = data[place : place + size]
            place += size
        self.device.output = bytes(outputs)

    def send_report(self, inputs: bytes) -> None:
        """Make a report of the inputs."""
        parts = [inputs[self._places[e] : self._places[e] + SIZES[e]] for e in REPORT[:3]]
        if REPORT[3] in self._places:
            self._mode = inputs[self._places[REPORT[3]] :][:1]
        self.bus.report(_frame(0x180 + self.node, b"".join(parts)))

    # -- states ----------------------------------------------------------------------------------

    def change(self, state: int) -> bool:
        """Request a state, after an error too; return whether the drive is in it."""
        device, soem = self.device, self._soem
        now = self.state(state, 2000)
        if now & soem.STATE_ERROR:
            device.state = (now & 0x0F) + soem.STATE_ACK
            device.write_state()
            now = self.state(now & 0x0F, 50_000)
        if now != state:
            device.state = state
            device.write_state()
            now = self.state(state, int(1e6 * CHANGE))
        return now == state

    def state(self, expected: int, patience: int) -> int:
        """State with the bit of an error; waits for the expected one, us."""
        self.device.state_check(expected, patience)
        return int(self.device.state)

    def _take_emergency(self, message: Any) -> None:
        code, register = int(message.error_code), int(message.error_reg)
        data = struct.pack("<HB5x", code, register)
        self.bus.report(_frame(0x080 + self.node, data))


class _AbortError(Exception):
    """SDO abort of the gateway."""

    def __init__(self, code: int) -> None:
        super().__init__(f"abort 0x{code:08X}")
        self.code = code


def _nodes(count: int) -> range:
    return range(1, 1 + count)


def _frame(identifier: int, data: bytes) -> can.Message:
    return can.Message(arbitration_id=identifier, data=data, is_extended_id=False)
