"""Bus load of the frames of a cycle, and rejection of rates that are too high.

Emulated buses have no bit rate and no arbitration. Without this check a rate that exceeds the
capacity of a real bus would work in emulation and fail on the rig.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from hil._registries import registry
from hil.drives import CycleFrame, moteus_frames, odrive_frames
from hil.errors import BusLoadError

if TYPE_CHECKING:
    from hil.settings import Axis, Rig

FD_LENGTHS = *range(9), 12, 16, 20, 24, 32, 48, 64
"""Bytes of data of CAN FD frames."""

ETHERCAT_DATA, ETHERCAT_MOST, ETHERCAT_BITRATE = 13, 1486, 100_000_000
"""Bytes of process data of an EtherCAT drive and of a frame, and bit rate, bit/s."""

INTERFRAME = 3
"""Bits of silence after each frame."""


class _Framed(Protocol):
    """The part of a drive's interface that is used here."""

    def cycle_frames(self) -> Sequence[CycleFrame]:
        """Frames that cross the bus in every cycle for this axis."""
        ...


def frame_bits(length: int) -> int:
    """Bits of a classic CAN frame with a standard identifier, in the worst case.

    Parameters
    ----------
    length : int
        Bytes of data, 0 to 8.

    Returns
    -------
    int
        Number of bits: 44, 8 for each of the n bytes, one stuff bit after every four of the
        34 + 8 n bits from start to checksum except the first, and 3 between frames.

    Raises
    ------
    BusLoadError
        If the length is out of range.

    Examples
    --------
    >>> frame_bits(8), frame_bits(0)
    (135, 55)
    """
    if not 0 <= length <= 8:
        raise BusLoadError(
            "frame, `length`",
            expected="0 to 8 bytes",
            came=str(length),
            cure="Split longer data, or use frames of CAN FD.",
        )
    return 44 + 8 * length + (34 + 8 * length - 1) // 4 + INTERFRAME


def fd_bits(length: int, extended: bool = False) -> tuple[int, int]:
    """Bits of a CAN FD frame whose data have another bit rate, in the worst case.

    Parameters
    ----------
    length : int
        Bytes of data: 0 to 8, 12, 16, 20, 24, 32, 48 or 64.
    extended : bool
        Whether the identifier has 29 bits.

    Returns
    -------
    slow, fast : int
        Bits at the bit rate of the bus, and at that of the data (ISO 11898-1:2015). Slow are the
        17 bits from start to the switch of the rate (36 if extended), and acknowledgement, end and
        3 bits between frames, 12. Fast are 5 bits of state and length, 8 for each of the bytes,
        4 of the stuff count, the checksum of 17 bits up to 16 bytes or of 21 with its delimiter,
        and one fixed stuff bit before the stuff count and after every four of its bits and those
        of the checksum. One stuff bit follows every four of the bits from start to the end of the
        data except the first.

    Raises
    ------
    BusLoadError
        If no frame has this length.

    Examples
    --------
    >>> fd_bits(48, extended=True), fd_bits(0)
    ((56, 520), (33, 34))
    """
    if length not in FD_LENGTHS:
        raise BusLoadError(
            "frame of CAN FD, `length`",
            expected=f"one of {', '.join(map(str, FD_LENGTHS))} bytes",
            came=str(length),
            cure="Fill it up to the next length.",
        )
    head, body = 36 if extended else 17, 5 + 8 * length
    stuffed = (head - 1) // 4
    counted = 4 + (17 if length <= 16 else 21)
    fast = body + (head + body - 1) // 4 - stuffed + counted + 1 + counted // 4 + 1
    return head + stuffed + 9 + INTERFRAME, fast


@dataclass(frozen=True)
class LoadRow:
    """Frames of one kind on the bus.

    Parameters
    ----------
    name : str
        Name of the frames.
    length : int
        Bytes of data.
    bits : int
        Bits of one frame at the bit rate of the bus in the worst case.
    per_second : float
        Frames per second.
    each_cycle : int
        Frames in every cycle of the loop; 0 for frames with another rate.
    fast : int
        Bits of one frame at the bit rate of the data of CAN FD frames.
    ratio : float
        Bit rate of the bus as a fraction of that of the data.
    """

    name: str
    length: int
    bits: int
    per_second: float
    each_cycle: int = 0
    fast: int = 0
    ratio: float = 1.0

    @property
    def cost(self) -> float:
        """Duration of one frame, as bits at the bit rate of the bus."""
        return self.bits + self.ratio * self.fast

    def __str__(self) -> str:
        if not self.fast:
            return f"{self.each_cycle} x {self.bits} bit"
        return f"{self.each_cycle} x ({self.bits} + {self.fast} / {1.0 / self.ratio:.3g}) bit"


@dataclass(frozen=True)
class BusLoad:
    """Load of a bus by frames in the worst case.

    Parameters
    ----------
    share : float
        Load as a fraction of the bit rate.
    rows : tuple of LoadRow
        Contributions to the load.
    largest_rate : float
        Largest integer rate of the loop that satisfies `largest_load`, Hz; 0: no rate does.
    rate : float
        Rate of the loop, Hz.
    bitrate : int
        Bit rate, bit/s.
    largest_load : float
        Largest permitted fraction of the bit rate.
    name : str
        Name of the bus.
    """

    share: float
    rows: tuple[LoadRow, ...]
    largest_rate: float
    rate: float
    bitrate: int
    largest_load: float
    name: str = ""

    @property
    def fits(self) -> bool:
        """Whether the load is permitted."""
        return self.share <= self.largest_load

    def __str__(self) -> str:
        cycle = [row for row in self.rows if row.each_cycle]
        bits = sum(row.each_cycle * row.cost for row in cycle)
        terms = " + ".join(map(str, cycle))
        bus = f"bus `{self.name}`: " if self.name else ""
        text = f"{bus}{terms} = {bits:.0f} bit per cycle at {self.rate:g} Hz"
        rest = sum(row.per_second * row.cost for row in self.rows if not row.each_cycle)
        if rest:
            text += f", with {rest:.0f} bit/s of heartbeats and modes"
        total = sum(row.per_second * row.cost for row in self.rows)
        percent = 100.0 * self.share
        shown = f"{percent:.0f}" if percent >= 100.0 else f"{percent:.3g}"
        return f"{text}: {total:.0f} bit/s, {shown} % of {self.bitrate} bit/s"


def frames_load(
    rate: float,
    bitrate: int,
    cycle: Iterable[tuple[str, int, int]],
    steady: Iterable[tuple[str, int, float]] = (),
    largest_load: float = 1.0,
    fd: Iterable[tuple[str, int, int, bool]] = (),
    data_bitrate: int = 0,
) -> BusLoad:
    """Bus load from counts of frames.

    Parameters
    ----------
    rate : float
        Cycles per second.
    bitrate : int
        Bit rate, bit/s.
    cycle : iterable of (str, int, int)
        Frames of every cycle: name, bytes of data, number.
    steady : iterable of (str, int, float)
        Frames with another rate: name, bytes of data, number per second.
    largest_load : float
        Largest permitted fraction of the bit rate.
    fd : iterable of (str, int, int, bool)
        CAN FD frames of every cycle: name, bytes of data, number, whether identifiers have 29 bits.
    data_bitrate : int
        Bit rate of their data, bit/s.

    Returns
    -------
    BusLoad
        The load in the worst case.

    Examples
    --------
    Nine axes, command and report each, and one SYNC:

    >>> load = frames_load(250.0, 1_000_000, [("both ways", 8, 18), ("SYNC", 0, 1)])
    >>> round(100 * load.share), load.largest_rate
    (62, 402.0)
    """
    rows = [
        LoadRow(name, length, frame_bits(length), count * rate, count)
        for name, length, count in cycle
        if count
    ]
    rows += [
        LoadRow(name, length, frame_bits(length), often) for name, length, often in steady if often
    ]
    ratio = bitrate / data_bitrate if data_bitrate else 1.0
    for name, length, count, extended in fd:
        slow, fast = fd_bits(length, extended)
        rows.append(LoadRow(name, length, slow, count * rate, count, fast, ratio))
    each = sum(row.each_cycle * row.cost for row in rows)
    rest = sum(row.per_second * row.cost for row in rows if not row.each_cycle)
    free = largest_load * bitrate - rest
    largest = math.floor(free / each + 1e-9) if each and free > 0.0 else 0
    return BusLoad(
        share=(each * rate + rest) / bitrate,
        rows=tuple(rows),
        largest_rate=float(largest),
        rate=rate,
        bitrate=bitrate,
        largest_load=largest_load,
    )


def bus_loads(rig: Rig, drives: Sequence[_Framed] | None = None) -> tuple[BusLoad, ...]:
    """Load of each bus of a rig in the worst case.

    Parameters
    ----------
    rig : Rig
        The rig.
    drives : sequence of Drive, optional
        Its drives, which list their frames; default: frames of the usual lengths of each kind.

    Returns
    -------
    tuple of BusLoad
        The load of commands, reports, SYNC and heartbeats, in the order of the buses.
    """
    return tuple(_load_of(rig, k, drives, len(rig.axes)) for k in range(len(rig.buses)))


def _load_of(rig: Rig, k: int, drives: Sequence[_Framed] | None, most: int) -> BusLoad:
    """Load of a bus by the first of its axes, at most by a number of them."""
    whole = rig.on(k)
    part = replace(whole, axes=whole.axes[:most])
    on = [i for i, own in enumerate(rig.bus_of) if own == k][:most]
    load = LOADS.get(rig.buses[k].interface, can_load)
    return load(part, None if drives is None else [drives[i] for i in on])


def can_load(rig: Rig, drives: Sequence[_Framed] | None) -> BusLoad:
    """Load of a CAN bus in the worst case.

    Parameters
    ----------
    rig : Rig
        A rig with this bus alone.
    drives : sequence of Drive or None
        Its drives; None: frames of the usual lengths of each kind.

    Returns
    -------
    BusLoad
        The load of commands, reports, SYNC and heartbeats.
    """
    (bus,), axes = rig.buses, rig.axes
    if drives is None:
        frames = [frame for axis in axes for frame in _usual_frames(axis)]
        if any(axis.drive == "cia402" for axis in axes):
            frames += [CycleFrame("SYNC", 0, True), CycleFrame("heartbeat of the host", 1, True)]
    else:
        frames = [frame for drive in drives for frame in drive.cycle_frames()]
        for kind in dict.fromkeys(map(type, drives)):
            opening = getattr(kind, "opening_frames", None)
            frames += [
                CycleFrame("opening frame", len(message.data), True)
                for message in (opening(rig) if opening is not None else ())
            ]
    counted = Counter(frames)
    load = frames_load(
        rig.loop.rate,
        bus.bitrate,
        [(one.name, one.length, n) for one, n in counted.items() if not one.fd],
        _heartbeats(axes),
        bus.largest_load,
        [(one.name, one.length, n, one.extended) for one, n in counted.items() if one.fd],
        bus.data_bitrate,
    )
    return replace(load, name=bus.name)


def ethercat_load(rig: Rig, drives: Sequence[_Framed] | None) -> BusLoad:
    """Load of a line of EtherCAT drives: two exchanges of process data in each cycle.

    Parameters
    ----------
    rig : Rig
        A rig with this line alone.
    drives : sequence of Drive or None
        Has no effect: all drives have the same process data.

    Returns
    -------
    BusLoad
        The load at 100 Mbit/s. A frame has 52 bytes beside its data: preamble, header, datagram,
        checksum and silence, and at least 84 bytes; data of more than 1486 bytes need another one.
    """
    (bus,), data = rig.buses, ETHERCAT_DATA * len(rig.axes)
    frames = math.ceil(data / ETHERCAT_MOST)
    bits = 8 * math.ceil(max(84, 52 + data / frames))
    count, rate = 2 * frames, rig.loop.rate
    row = LoadRow("process data", math.ceil(data / frames), bits, count * rate, count)
    return BusLoad(
        share=row.per_second * bits / ETHERCAT_BITRATE,
        rows=(row,),
        largest_rate=float(math.floor(bus.largest_load * ETHERCAT_BITRATE / (count * bits))),
        rate=rate,
        bitrate=ETHERCAT_BITRATE,
        largest_load=bus.largest_load,
        name=bus.name,
    )


LOADS = registry(
    dict[str, "Callable[[Rig, Sequence[_Framed] | None], BusLoad]"](ethercat=ethercat_load)
)
"""Loads, as `can_load`, of further kinds of links by interface; all other interfaces are CAN."""


def _usual_frames(axis: Axis) -> tuple[CycleFrame, ...]:
    if axis.drive == "cia402":
        # 6041, 6064 and 6077 are 2 + 4 + 2 bytes, 6040 and 6071 are 2 + 2.
        return CycleFrame("report", 8, False), CycleFrame("command", 4, True)
    if axis.drive == "moteus":
        return moteus_frames(axis.node)
    if axis.drive == "odrive":
        return *odrive_frames(), *(CycleFrame("request", 0, True),) * 2
    return CycleFrame("report", 8, False), CycleFrame("command", 8, True)


def _heartbeats(axes: Iterable[Axis]) -> list[tuple[str, int, float]]:
    """Possible heartbeats of drives, and queries for their mode of operation.

    CiA 402: either is sent twice within each watchdog time. ODrive: four times, and without a
    request ten times per second.
    """
    known = list(axes)
    often = sum(2.0 / axis.watchdog for axis in known if axis.drive == "cia402")
    asked = [4.0 / axis.watchdog for axis in known if axis.drive == "odrive"]
    return [
        ("heartbeat of a drive", 1, often),
        ("query for the mode, and answer", 8, 2.0 * often),
        ("request of a heartbeat", 0, sum(asked)),
        ("requested heartbeat", 8, sum(asked) + 10.0 * len(asked)),
    ]


def refuse_overload(rig: Rig, drives: Sequence[_Framed] | None = None) -> tuple[BusLoad, ...]:
    """Reject a rate at which the frames exceed the permitted load of a bus.

    Parameters
    ----------
    rig : Rig
        The rig.
    drives : sequence of Drive, optional
        Its drives, as for `bus_loads`.

    Returns
    -------
    tuple of BusLoad
        The loads, which are permitted.

    Raises
    ------
    BusLoadError
        If a load is not permitted; with the computation, the largest rate, and the number of the
        axes that the bus carries at this rate. The load is its attribute `load`.
    """
    loads = bus_loads(rig, drives)
    for k, load in enumerate(loads):
        if not load.fits:
            raise BusLoadError(
                f"{rig.path}, [loop], field `rate`",
                expected=f"at most {100 * load.largest_load:g} % of the bus in the worst case",
                came=str(load),
                cure=_slower(load, rig, k, drives),
                load=load,
            )
    return loads


def _slower(load: BusLoad, rig: Rig, k: int, drives: Sequence[_Framed] | None) -> str:
    """What to change for a load of a bus that is not permitted."""
    size, shared = rig.bus_of.count(k), "distribute the axes over several buses"
    carried = next((n for n in range(size - 1, 0, -1) if _load_of(rig, k, drives, n).fits), 0)
    if carried:
        shared += f": at this rate one carries {carried} of these {size}"
    if load.largest_rate:
        return f"Set rate = {load.largest_rate:g} or less, or {shared}."
    return f"Raise the bit rate, or {shared}{'' if carried else ': no rate is low enough'}."
