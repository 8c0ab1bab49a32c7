"""Bus load: bits of a frame against a frame that is really stuffed, loads, refusals."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import can
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hil.drives import CycleFrame, make_drives
from hil.errors import BusLoadError
from hil.rig import BusSettings, LoopSettings, Rig, load_rig
from hil.rig.busload import bus_loads, fd_bits, frame_bits, frames_load, refuse_overload

EXAMPLES = Path(__file__).parents[3] / "examples"


def checksum(bits: list[int]) -> list[int]:
    """CRC-15 of CAN, ISO 11898-1."""
    register = 0
    for bit in bits:
        top = bit ^ (register >> 14)
        register = (register << 1) & 0x7FFF
        if top:
            register ^= 0x4599
    return [register >> i & 1 for i in range(14, -1, -1)]


def stuffed_length(identifier: int, data: bytes) -> int:
    """Bits of a frame as they stand on the wire, with the silence after it."""
    bits = [0, *(identifier >> i & 1 for i in range(10, -1, -1)), 0, 0, 0]
    bits += [len(data) >> i & 1 for i in range(3, -1, -1)]
    bits += [byte >> i & 1 for byte in data for i in range(7, -1, -1)]
    bits += checksum(bits)
    stuffed, run, last = 0, 0, -1
    for bit in bits:
        run = run + 1 if bit == last else 1
        last = bit
        if run == 5:
            stuffed, run, last = stuffed + 1, 1, 1 - bit
    delimiter, acknowledgement, end, silence = 1, 2, 7, 3
    return len(bits) + stuffed + delimiter + acknowledgement + end + silence


def test_known_lengths() -> None:
    assert [frame_bits(n) for n in range(9)] == [55, 65, 75, 85, 95, 105, 115, 125, 135]


@example(0, bytes(8))
@example(0x7FF, b"\xff" * 8)
@given(st.integers(0, 0x7FF), st.binary(max_size=8))
def test_no_frame_is_longer(identifier: int, data: bytes) -> None:
    assert stuffed_length(identifier, data) <= frame_bits(len(data))


def test_the_worst_case_is_not_far_off() -> None:
    assert stuffed_length(0, bytes(8)) > 0.9 * frame_bits(8)
    # One bit after every four of the 98 that are stuffed, but the first: 5, then 4 at a time.
    assert frame_bits(8) == 44 + 8 * 8 + 3 + 1 + (34 + 8 * 8 - 5) // 4


@pytest.mark.parametrize("length", [-1, 9, 64])
def test_frames_of_another_kind_are_refused(length: int) -> None:
    with pytest.raises(BusLoadError, match="0 to 8 bytes"):
        frame_bits(length)


LENGTHS = (*range(9), 12, 16, 20, 24, 32, 48, 64)


def fd_length(identifier: int, extended: bool, data: bytes) -> tuple[int, int]:
    """Bits of a CAN FD frame with a switched rate on the wire: at the slow and at the fast rate."""
    whole = [identifier >> i & 1 for i in range(28 if extended else 10, -1, -1)]
    if extended:  # substitute remote request and extension, then reserved, FD, reserved, switch
        head = [0, *whole[:11], 1, 1, *whole[11:], 0, 1, 0, 1]
    else:
        head = [0, *whole, 0, 0, 1, 0, 1]
    code = LENGTHS.index(len(data))
    body = [0, *(code >> i & 1 for i in range(3, -1, -1))]
    body += [byte >> i & 1 for byte in data for i in range(7, -1, -1)]
    counts, run, last = [0, 0], 0, -1
    for k, bit in enumerate(head + body):
        run = run + 1 if bit == last else 1
        last = bit
        if run == 5:
            # a stuff bit belongs to the rate of the bit that it follows
            counts[k >= len(head)] += 1
            run, last = 1, 1 - bit
    checked = 4 + (17 if len(data) <= 16 else 21)  # stuff count with parity, and checksum
    fixed = len([place for place in range(checked) if place % 4 == 0])
    slow = len(head) + counts[0] + 1 + 1 + 7 + 3
    return slow, len(body) + counts[1] + checked + fixed + 1


@example(0, True, bytes(64))
@example(0, False, bytes(8))
@example(0x1FFFFFFF, True, b"\xff" * 48)
@given(
    st.integers(0, 0x1FFFFFFF),
    st.booleans(),
    st.sampled_from(LENGTHS).flatmap(lambda n: st.binary(min_size=n, max_size=n)),
)
def test_no_fd_frame_is_longer(identifier: int, extended: bool, data: bytes) -> None:
    identifier &= 0x1FFFFFFF if extended else 0x7FF
    slow, fast = fd_length(identifier, extended, data)
    most_slow, most = fd_bits(len(data), extended)
    assert slow <= most_slow
    assert slow + fast <= most_slow + most


def test_the_worst_case_of_an_fd_frame_is_not_far_off() -> None:
    for length in LENGTHS:
        worst = sum(fd_bits(length))
        assert sum(fd_length(0, False, bytes(length))) > 0.9 * worst
    with pytest.raises(BusLoadError, match="0, 1, 2"):
        fd_bits(9)


def test_load_of_moteus_drives() -> None:
    """By hand: at 1 and 5 Mbit/s a command takes 56 + 520 / 5 us, a report 33 + 359 / 5."""
    rig = load_rig(EXAMPLES / "rover_rig" / "rig_moteus.toml")
    for load in bus_loads(rig) + bus_loads(rig, make_drives(rig)):
        assert load.share == pytest.approx(5 * 250.0 * (56 + 104.0 + 33 + 71.8) * 1e-6)
        assert load.largest_rate == math.floor(0.8e6 / (5 * 264.8))
        assert "5 x (56 + 520 / 5) bit" in str(load)


NINE = [("command", 8, 9), ("report", 8, 9), ("SYNC", 0, 1)]


@pytest.mark.parametrize(("rate", "percent"), [(250.0, 62), (500.0, 124)])
def test_nine_axes(rate: float, percent: int) -> None:
    load = frames_load(rate, 1_000_000, NINE)
    assert round(100 * load.share) == percent
    assert load.fits == (rate == 250.0)
    assert load.share == pytest.approx((18 * 135 + 55) * rate * 1e-6)
    assert sum(row.per_second * row.bits for row in load.rows) == pytest.approx(load.share * 1e6)


@given(
    st.floats(1.0, 5000.0),
    st.sampled_from([125_000, 250_000, 500_000, 1_000_000]),
    st.lists(st.tuples(st.just("frame"), st.integers(0, 8), st.integers(1, 9)), min_size=1),
    st.floats(0.0, 2000.0),
    st.floats(0.1, 1.0),
)
def test_the_largest_rate_fits_and_the_next_does_not(rate, bitrate, cycle, often, largest) -> None:
    steady = [("heartbeat", 1, often)]
    load = frames_load(rate, bitrate, cycle, steady, largest)
    at = load.largest_rate
    assert at == int(at)
    if at:
        assert frames_load(at, bitrate, cycle, steady, largest * (1 + 1e-9)).fits
    assert not frames_load(at + 1.0, bitrate, cycle, steady, largest * (1 - 1e-9)).fits
    assert load.fits == (load.share <= largest)


def nine_axes(rate: float) -> Rig:
    """Give a rig of nine drives of an unknown kind: command and report of 8 bytes."""
    rig = load_rig(EXAMPLES / "rover_rig" / "rig.toml")
    axes = tuple(replace(rig.axes[0], node=i, drive="acme") for i in range(1, 10))
    return replace(rig, axes=axes, loop=LoopSettings(rate=rate))


class Spoken:
    """A drive as far as the bus load is concerned."""

    def cycle_frames(self) -> tuple[CycleFrame, ...]:
        return CycleFrame("command", 8, True), CycleFrame("report", 8, False)

    @classmethod
    def opening_frames(cls, rig: Rig) -> tuple[can.Message, ...]:
        return (can.Message(arbitration_id=0x80, data=b"", is_extended_id=False),)


class Silent(Spoken):
    """The same, without a frame that opens a cycle."""

    @classmethod
    def opening_frames(cls, rig: Rig) -> tuple[can.Message, ...]:
        return ()


def test_the_load_has_the_frames_of_all_drives_and_of_each_kind_once() -> None:
    (load,) = refuse_overload(nine_axes(250.0), [Spoken() for _ in range(9)])
    assert round(1e6 * load.share) == 621_250
    assert [(row.each_cycle, row.length) for row in load.rows] == [(9, 8), (9, 8), (1, 0)]
    rig = nine_axes(250.0)
    (mixed,) = bus_loads(replace(rig, axes=rig.axes[:3]), [Spoken(), Silent(), Spoken()])
    assert [(row.each_cycle, row.length) for row in mixed.rows] == [(3, 8), (3, 8), (1, 0)]


def test_an_overload_is_refused_with_the_arithmetic() -> None:
    drives = [Spoken() for _ in range(9)]
    with pytest.raises(BusLoadError) as caught:
        refuse_overload(nine_axes(500.0), drives)
    text = str(caught.value)
    assert "9 x 135 bit + 9 x 135 bit + 1 x 55 bit = 2485 bit per cycle at 500 Hz" in text
    assert "1242500 bit/s, 124 % of 1000000 bit/s" in text
    assert "Set rate = 321 or less" in text
    assert caught.value.load.largest_rate == 321.0
    assert 321 * 2485 < 0.8e6 < 322 * 2485
    refuse_overload(nine_axes(321.0), drives)
    with pytest.raises(BusLoadError):
        refuse_overload(nine_axes(322.0), drives)


def test_a_bus_that_is_too_slow_for_any_rate_is_reported() -> None:
    rig = load_rig(EXAMPLES / "rover_rig" / "rig.toml")
    slow = replace(rig, buses=(BusSettings("virtual", "x", bitrate=5_000),))
    with pytest.raises(BusLoadError, match="no rate is low enough"):
        refuse_overload(slow, None)


def test_sync_and_heartbeats_count_without_drives_too() -> None:
    rig = load_rig(EXAMPLES / "rover_rig" / "rig.toml")
    (load,) = bus_loads(rig)
    rows = {row.name: row for row in load.rows}
    assert (rows["SYNC"].each_cycle, rows["SYNC"].length) == (1, 0)
    assert (rows["report"].each_cycle, rows["report"].length) == (5, 8)
    assert (rows["command"].each_cycle, rows["command"].length) == (5, 4)
    assert rows["heartbeat of a drive"].per_second == pytest.approx(5 * 2 / 0.1)
    assert rows["query for the mode, and answer"].per_second == pytest.approx(2 * 5 * 2 / 0.1)
    cycle = 5 * 135 + 5 * 95 + 55 + 65  # with the heartbeat of the host, one byte
    assert load.share == pytest.approx((250 * cycle + 100 * 65 + 200 * 135) * 1e-6)
    (mit,) = bus_loads(load_rig(EXAMPLES / "rover_rig" / "rig_mit.toml"))
    assert mit.share == pytest.approx(250 * 10 * 135 * 1e-6)


@pytest.mark.parametrize("name", ["rover_rig/rig.toml", "rover_rig/rig_mit.toml"])
def test_usual_frames_are_those_of_the_drives(name: str) -> None:
    rig = load_rig(EXAMPLES / name)
    assert bus_loads(rig)[0].share == pytest.approx(bus_loads(rig, make_drives(rig))[0].share)
