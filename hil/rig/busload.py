"""Bus load of the frames of a cycle, and rejection of rates that are too high.

Emulated buses have no bit rate and no arbitration. Without this check a rate that exceeds the
capacity of a real bus would work in emulation and fail on the rig.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from hil.errors import BusLoadError

if TYPE_CHECKING:
    from hil.drives import CycleFrame
    from hil.settings import Axis, Rig

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
            cure="Split longer data: the rig uses classic CAN.",
        )
    return 44 + 8 * length + (34 + 8 * length - 1) // 4 + INTERFRAME


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
        Bits of one frame in the worst case.
    per_second : float
        Frames per second.
    each_cycle : int
        Frames in every cycle of the loop; 0 for frames with another rate.
    """

    name: str
    length: int
    bits: int
    per_second: float
    each_cycle: int = 0


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
    """

    share: float
    rows: tuple[LoadRow, ...]
    largest_rate: float
    rate: float
    bitrate: int
    largest_load: float

    @property
    def fits(self) -> bool:
        """Whether the load is permitted."""
        return self.share <= self.largest_load

    def __str__(self) -> str:
        cycle = [row for row in self.rows if row.each_cycle]
        terms = [f"{row.each_cycle} x {row.bits} bit" for row in cycle]
        bits = sum(row.each_cycle * row.bits for row in cycle)
        text = f"{' + '.join(terms)} = {bits} bit per cycle at {self.rate:g} Hz"
        rest = sum(row.per_second * row.bits for row in self.rows if not row.each_cycle)
        if rest:
            text += f", with {rest:.0f} bit/s of heartbeats and modes"
        total = sum(row.per_second * row.bits for row in self.rows)
        percent = 100.0 * self.share
        shown = f"{percent:.0f}" if percent >= 100.0 else f"{percent:.3g}"
        return f"{text}: {total:.0f} bit/s, {shown} % of {self.bitrate} bit/s"


def frames_load(
    rate: float,
    bitrate: int,
    cycle: Iterable[tuple[str, int, int]],
    steady: Iterable[tuple[str, int, float]] = (),
    largest_load: float = 1.0,
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
    each = sum(row.each_cycle * row.bits for row in rows)
    rest = sum(row.per_second * row.bits for row in rows if not row.each_cycle)
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


def bus_load(rig: Rig, drives: Sequence[_Framed] | None = None) -> BusLoad:
    """Bus load of a rig in the worst case.

    Parameters
    ----------
    rig : Rig
        The rig.
    drives : sequence of Drive, optional
        Its drives, which list their frames; default: frames of the usual lengths of each kind.

    Returns
    -------
    BusLoad
        The load of commands, reports, SYNC and heartbeats.
    """
    counted: dict[tuple[str, int], int] = {}
    if drives is None:
        for axis in rig.axes:
            for name, length in _usual_frames(axis):
                counted[name, length] = counted.get((name, length), 0) + 1
        if any(axis.drive == "cia402" for axis in rig.axes):
            counted |= {("SYNC", 0): 1, ("heartbeat of the host", 1): 1}
    else:
        for drive in drives:
            for frame in drive.cycle_frames():
                key = (frame.name, frame.length)
                counted[key] = counted.get(key, 0) + 1
        for kind in dict.fromkeys(map(type, drives)):
            opening = getattr(kind, "opening_frames", None)
            for message in opening(rig) if opening is not None else ():
                key = (f"opening frame {message.arbitration_id:#05x}", len(message.data))
                counted[key] = counted.get(key, 0) + 1
    return frames_load(
        rig.loop.rate,
        rig.bus.bitrate,
        [(name, length, count) for (name, length), count in counted.items()],
        _heartbeats(rig.axes),
        rig.bus.largest_load,
    )


def _usual_frames(axis: Axis) -> tuple[tuple[str, int], ...]:
    if axis.drive == "cia402":
        # 6041, 6064 and 6077 are 2 + 4 + 2 bytes, 6040 and 6071 are 2 + 2.
        return ("report", 8), ("command", 4)
    return ("report", 8), ("command", 8)


def _heartbeats(axes: Iterable[Axis]) -> list[tuple[str, int, float]]:
    """Possible heartbeats of drives, and queries for their mode of operation.

    Either is sent twice within each watchdog time.
    """
    often = sum(2.0 / axis.watchdog for axis in axes if axis.drive == "cia402")
    return [("heartbeat of a drive", 1, often), ("query for the mode, and answer", 8, 2.0 * often)]


def refuse_overload(rig: Rig, drives: Sequence[_Framed] | None = None) -> BusLoad:
    """Reject a rate at which the frames exceed the permitted bus load.

    Parameters
    ----------
    rig : Rig
        The rig.
    drives : sequence of Drive, optional
        Its drives, as for `bus_load`.

    Returns
    -------
    BusLoad
        The load, which is permitted.

    Raises
    ------
    BusLoadError
        If the load is not permitted; with the computation and the largest rate. The load is its
        attribute `load`.
    """
    load = bus_load(rig, drives)
    if load.fits:
        return load
    slower = (
        f"Set rate = {load.largest_rate:g} or less, or distribute the axes over several buses."
        if load.largest_rate
        else "Raise the bit rate, or distribute the axes over several buses: no rate is low enough."
    )
    raise BusLoadError(
        f"{rig.path}, [loop], field `rate`",
        expected=f"at most {100 * load.largest_load:g} % of the bus in the worst case",
        came=str(load),
        cure=slower,
        load=load,
    )
