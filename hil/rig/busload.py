"""How much of the bus the frames of a cycle need, and the refusal of a rate that is too high.

Emulated buses neither throttle nor arbitrate; without this arithmetic a rate that no wire can
carry would work until the day the wire is plugged in.
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
    """What is asked of a drive here."""

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
        Bits with the silence after the frame: 44 of frame and 8 for each byte; one stuffed after
        every four of the 34 + 8 n bits from start to checksum but the first; 3 between frames.

    Raises
    ------
    BusLoadError
        If no frame is that long.

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
            cure="Split what is longer: the rig uses classic CAN.",
        )
    return 44 + 8 * length + (34 + 8 * length - 1) // 4 + INTERFRAME


@dataclass(frozen=True)
class LoadRow:
    """Frames of one kind on the bus.

    Parameters
    ----------
    name : str
        What they are.
    length : int
        Bytes of data.
    bits : int
        Bits of one of them in the worst case.
    per_second : float
        How many there are, 1/s.
    each_cycle : int
        How many there are in every cycle of the loop; 0 for those with a rate of their own.
    """

    name: str
    length: int
    bits: int
    per_second: float
    each_cycle: int = 0


@dataclass(frozen=True)
class BusLoad:
    """Share of a bus that frames need in the worst case.

    Parameters
    ----------
    share : float
        Of the bit rate.
    rows : tuple of LoadRow
        What it is made of.
    largest_rate : float
        Largest whole rate of the loop at which `largest_load` is kept, Hz; 0: none.
    rate : float
        Rate of the loop, Hz.
    bitrate : int
        Bit rate, bit/s.
    largest_load : float
        Share that may be used.
    """

    share: float
    rows: tuple[LoadRow, ...]
    largest_rate: float
    rate: float
    bitrate: int
    largest_load: float

    @property
    def fits(self) -> bool:
        """Whether the share is allowed."""
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
        Frames of every cycle: what they are, bytes of data, how many.
    steady : iterable of (str, int, float)
        Frames with a rate of their own: what they are, bytes of data, how many per second.
    largest_load : float
        Share of the bit rate that may be used.

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
        Its drives, which know their frames; without them frames of the usual lengths are taken
        for each kind.

    Returns
    -------
    BusLoad
        With frames of the loop, SYNC and heartbeats.
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
    """Heartbeats of drives that may have them on, and questions for their mode of operation.

    Either comes twice within each watchdog.
    """
    often = sum(2.0 / axis.watchdog for axis in axes if axis.drive == "cia402")
    return [("heartbeat of a drive", 1, often), ("mode asked for, and answer", 8, 2.0 * often)]


def refuse_overload(rig: Rig, drives: Sequence[_Framed] | None = None) -> BusLoad:
    """Refuse a rate at which the frames do not fit on the bus.

    Parameters
    ----------
    rig : Rig
        The rig.
    drives : sequence of Drive, optional
        As for `bus_load`.

    Returns
    -------
    BusLoad
        The load, which is allowed.

    Raises
    ------
    BusLoadError
        If it is not; with the arithmetic and the largest rate. The load is its attribute `load`.
    """
    load = bus_load(rig, drives)
    if load.fits:
        return load
    slower = (
        f"Write rate = {load.largest_rate:g} or less, or spread the axes over more buses."
        if load.largest_rate
        else "No rate is low enough: raise the bit rate, or spread the axes over more buses."
    )
    raise BusLoadError(
        f"{rig.path}, [loop], field `rate`",
        expected=f"at most {100 * load.largest_load:g} % of the bus in the worst case",
        came=str(load),
        cure=slower,
        load=load,
    )
