"""Rigs by hand, and a CiA 402 drive made of the library's own node as an independent other side."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import can
import canopen
from canopen.objectdictionary import (
    INTEGER8,
    INTEGER16,
    INTEGER32,
    UNSIGNED8,
    UNSIGNED16,
    UNSIGNED32,
    ODRecord,
    ODVariable,
)
from canopen.sdo.exceptions import SdoAbortedError

from hil.bus import Bus
from hil.clock import Clock, MonotonicClock, SteppedClock
from hil.rig import Axis, BusSettings, Rig

NODE = 5
_channels = itertools.count()


def make_axis(**changes: Any) -> Axis:
    """A CiA 402 axis whose numbers are easy: 2 N m rated behind a gear of 10, reversed."""
    values: dict[str, Any] = {
        "name": "elbow",
        "drive": "cia402",
        "node": NODE,
        "torque_limit": 30.0,
        "torque_rate_limit": 1000.0,
        "speed_limit": 5.0,
        "gear": 10.0,
        "direction": -1,
        "rated_torque": 2.0,
        "counts": 4096,
        "offset": 0.25,
        "watchdog": 0.05,
    }
    return Axis(**(values | changes))


def make_mit_axis(**changes: Any) -> Axis:
    """An axis with an MIT drive."""
    values: dict[str, Any] = {
        "name": "knee",
        "drive": "mit",
        "node": 3,
        "model": "AK80-9",
        "torque_limit": 12.0,
        "torque_rate_limit": 500.0,
        "speed_limit": 8.0,
        "watchdog": 0.05,
    }
    return Axis(**(values | changes))


def make_rig(*axes: Axis) -> Rig:
    """A rig without a task: drives ask for its axes only."""
    return Rig(
        name="bench",
        path=Path("bench.toml"),
        task=None,  # type: ignore[arg-type]
        axes=axes,
        buses=(BusSettings("virtual", "bench"),),
    )


@contextmanager
def virtual_pair(clock: Clock | None = None) -> Iterator[tuple[Bus, can.BusABC]]:
    """Two ends of one bus: the host's, and the other side's."""
    channel = f"drives {next(_channels)}"
    with (
        can.Bus(interface="virtual", channel=channel) as far,
        Bus(can.Bus(interface="virtual", channel=channel), clock or MonotonicClock()) as near,
    ):
        yield near, far


def frame(identifier: int, data: bytes = b"", **more: Any) -> can.Message:
    """A data frame."""
    return can.Message(
        arbitration_id=identifier, data=data, is_extended_id=more.pop("extended", False), **more
    )


def take_all(bus: can.BusABC) -> list[can.Message]:
    """Receive all waiting frames."""
    frames = []
    while (came := bus.recv(0)) is not None:
        frames.append(came)
    return frames


class AnsweringBus(Bus):
    """A bus in stepped time with a station that answers each frame at once."""

    def __init__(
        self, answer: Callable[[can.Message, float], list[can.Message]], clock: Clock | None = None
    ) -> None:
        channel = f"drives {next(_channels)}"
        self.far = can.Bus(interface="virtual", channel=channel)
        super().__init__(can.Bus(interface="virtual", channel=channel), clock or SteppedClock())
        self.answer = answer
        self.sent: list[can.Message] = []

    def send(self, frame: can.Message) -> bool:
        if self.silent:
            return False
        copy = can.Message(
            arbitration_id=frame.arbitration_id, data=bytes(frame.data), is_extended_id=False
        )
        self.sent.append(copy)
        for reply in self.answer(copy, self.clock.now()):
            self.far.send(reply)
        return True

    def close(self) -> None:
        super().close()
        self.far.shutdown()


# -- the library's node as a drive -----------------------------------------------------------------

KINDS = {"B": UNSIGNED8, "H": UNSIGNED16, "I": UNSIGNED32, "b": INTEGER8, "h": INTEGER16}
KINDS["i"] = INTEGER32

OBJECTS: dict[tuple[int, int], tuple[str, str, int]] = {
    # (index, sub-index): (type, access, value)
    (0x1000, 0): ("I", "ro", 0x00020192),
    (0x1018, 0): ("B", "ro", 4),
    (0x1018, 1): ("I", "ro", 0x2A),
    (0x1018, 2): ("I", "ro", 0x77),
    (0x1016, 0): ("B", "ro", 1),
    (0x1016, 1): ("I", "rw", 0),
    (0x1029, 0): ("B", "ro", 1),
    (0x1029, 1): ("B", "rw", 1),
    (0x1400, 0): ("B", "ro", 5),
    (0x1400, 1): ("I", "rw", 0x200 + NODE),
    (0x1400, 2): ("B", "rw", 254),
    (0x1400, 5): ("H", "rw", 0),
    (0x1401, 0): ("B", "ro", 2),
    (0x1401, 1): ("I", "rw", 0x300 + NODE),
    (0x1401, 2): ("B", "rw", 254),
    (0x1800, 0): ("B", "ro", 5),
    (0x1800, 1): ("I", "rw", 0x40000180 + NODE),
    (0x1800, 2): ("B", "rw", 254),
    (0x1800, 3): ("H", "rw", 0),
    (0x1800, 5): ("H", "rw", 0),
    (0x6007, 0): ("h", "rw", 0),
    (0x603F, 0): ("H", "ro", 0),
    (0x6040, 0): ("H", "rw", 0),
    (0x6041, 0): ("H", "ro", 0x0250),
    (0x6060, 0): ("b", "rw", 0),
    (0x6061, 0): ("b", "ro", 0),
    (0x6064, 0): ("i", "ro", 0),
    (0x6071, 0): ("h", "rw", 77),
    (0x6072, 0): ("H", "rw", 3000),
    (0x6076, 0): ("I", "ro", 2000),
    (0x6077, 0): ("h", "ro", 0),
    (0x608F, 0): ("B", "ro", 2),
    (0x608F, 1): ("I", "ro", 4096),
    (0x608F, 2): ("I", "ro", 1),
    (0x6502, 0): ("I", "ro", 0x3AD),
}
for _index in (0x1600, 0x1601, 0x1A00):
    OBJECTS[_index, 0] = ("B", "rw", 1)
    OBJECTS |= {(_index, k): ("I", "rw", 0x60600008 if k == 1 else 0) for k in range(1, 5)}


class Station:
    """A drive that the library's `LocalNode` serves, with threads, on the other end of a bus.

    It answers SDO, has a network state, sends its report at each SYNC, and applies the
    host's process data, which the library decodes by the mapping that the host wrote.

    Parameters
    ----------
    bus : can.BusABC
        The other end.
    node : int
        Its number.
    without : tuple of int or (int, int)
        Objects that it lacks.
    extra : dict
        Objects that it has beside `OBJECTS`.
    **values
        Values of objects by index (`x6076=1500`).
    """

    def __init__(
        self,
        bus: can.BusABC,
        node: int = NODE,
        without: tuple[Any, ...] = (),
        extra: dict[tuple[int, int], tuple[str, str, int]] | None = None,
        **values: int,
    ) -> None:
        objects = canopen.ObjectDictionary()
        groups: dict[int, ODRecord] = {}
        own = OBJECTS | (extra or {})
        for (index, sub), (kind, access, value) in own.items():
            if index in without or (index, sub) in without:
                continue
            variable = ODVariable(f"x{index:04X}:{sub}", index, sub)
            variable.data_type, variable.access_type = KINDS[kind], access
            variable.value = values.get(f"x{index:04X}", value) if index >= 0x2000 else value
            if sub == 0 and (index, 1) not in own:
                objects.add_object(variable)
                continue
            if index not in groups:
                groups[index] = ODRecord(f"x{index:04X}", index)
                objects.add_object(groups[index])
            groups[index].add_member(variable)
        self.node = canopen.LocalNode(node, objects)
        self.written: list[tuple[int, int, int]] = []
        self.refuses: dict[tuple[int, int], int] = {}
        self.ignores: set[int] = set()
        self.others: list[can.Message] = []
        self.node.add_write_callback(self._on_write)
        self.node.add_read_callback(self._on_read)
        self.network = canopen.Network(bus)
        self.network.NOTIFIER_CYCLE = 0.02
        self.network.add_node(self.node)
        self.network.subscribe(0x080, self._on_sync)
        self.network.connect()

    def _on_write(self, index: int, subindex: int, od: Any, data: bytes) -> None:
        value = od.decode_raw(data)
        self.written.append((index, subindex, value))
        if (index, subindex) in self.refuses:
            raise SdoAbortedError(self.refuses[index, subindex])

    def _on_read(self, index: int, subindex: int, od: Any) -> int | None:
        if index == 0x6061:
            return self.value(0x6060)
        if index in self.ignores:
            value: int = od.value
            return value
        return None

    def value(self, index: int, sub: int = 0) -> int:
        """Present value of an object."""
        variable = self.node.object_dictionary.get_variable(index, sub)
        return int(variable.decode_raw(self.node.get_data(index, sub)))

    def set(self, index: int, value: int) -> None:
        """Change a value that the host cannot write."""
        variable = self.node.object_dictionary[index]
        self.node.data_store.setdefault(index, {})[0] = variable.encode_raw(value)

    def _on_sync(self, identifier: int, data: bytes, timestamp: float) -> None:
        if self.node.nmt.state != "OPERATIONAL":
            return
        self.node.tpdo.read()
        report = self.node.tpdo[1]
        if report.trans_type == 1 and report.enabled:
            for variable in report.map:
                variable.raw = self.value(variable.index)
            report.transmit()

    def decode_command(self, message: can.Message) -> dict[int, int]:
        """Values of a command, decoded by the library with the mapping that the host wrote."""
        self.node.rpdo.read()
        command = self.node.rpdo[1]
        assert command.enabled
        assert command.cob_id == message.arbitration_id
        assert command.length == 8 * len(message.data)
        command.data = bytearray(message.data)
        return {variable.index: variable.raw for variable in command.map}

    def close(self) -> None:
        """Stop its threads; the bus stays open."""
        self.network.notifier.stop()


@contextmanager
def station(
    node: int = NODE, without: tuple[Any, ...] = (), **values: Any
) -> Iterator[tuple[Bus, Station]]:
    """A host's bus with such a drive on it, in real time."""
    with virtual_pair() as (near, far):
        drive = Station(far, node, without, **values)
        try:
            yield near, drive
        finally:
            drive.close()


def report(status: int, counts: int, per_mille: int, node: int = NODE) -> can.Message:
    """A report of a CiA 402 drive."""
    return frame(0x180 + node, struct.pack("<Hih", status, counts, per_mille))
