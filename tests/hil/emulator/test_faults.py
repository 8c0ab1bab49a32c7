"""Faults on frames and drives."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hil.emulator import EmulatedCia402, Fault, FaultKind
from hil.emulator._cia402_machine import PowerState
from hil.emulator._faults import Faults
from hil.errors import RigError
from tests.hil.emulator._rigs import Station, axis, frame

DATA = bytes(range(8))


def passed(faults, number=10, way="to_host", start=0.0, step=0.1):
    """Numbered frames that pass the faults, as (number of the frame, due, data)."""
    out = []
    for k in range(number):
        time = start + step * k
        sent = frame(0x185, bytes([k]) + DATA[1:])
        out += [(due, bytes(m.data)) for due, m in getattr(faults, way)(sent, time, time)]
    return out


def test_the_fixture_has_no_differences():
    came = passed(Faults("joint"))
    assert came == [(0.1 * k, bytes([k]) + DATA[1:]) for k in range(10)]


def test_only_in_its_time_and_on_its_axis():
    faults = Faults("joint", [Fault("drop", "joint", 0.25, 0.3), Fault("drop", "other")])
    assert [data[0] for _, data in passed(faults)] == [0, 1, 2, 6, 7, 8, 9]


@pytest.mark.parametrize("way", ["to_drive", "to_host"])
def test_only_its_way(way):
    faults = Faults("joint", [Fault("drop", way=way)])
    assert len(passed(faults, way=way)) == 0
    assert len(passed(faults, way={"to_drive": "to_host", "to_host": "to_drive"}[way])) == 10


def test_bus_off_stops_both_ways():
    faults = Faults("joint", [Fault("bus_off", at=0.5, lasting=0.2)])
    for way in ("to_drive", "to_host"):
        assert [data[0] for _, data in passed(faults, way=way)] == [0, 1, 2, 3, 4, 7, 8, 9]


def test_delay_duplicate_reorder():
    late = passed(Faults("joint", [Fault("delay", value=0.05)]), 3)
    assert [due for due, _ in late] == pytest.approx([0.05, 0.15, 0.25])
    assert [data[0] for _, data in passed(Faults("joint", [Fault("duplicate")]), 3)] == [
        *(0, 0, 1, 1, 2, 2)
    ]
    assert [data[0] for _, data in passed(Faults("joint", [Fault("reorder")]), 6)] == [
        *(1, 0, 3, 2, 5, 4)
    ]


def test_stale_repeats_the_last_report_before():
    faults = Faults("joint", [Fault("stale", at=0.25, lasting=0.4)])
    assert [data[0] for _, data in passed(faults)] == [0, 1, 2, 2, 2, 2, 2, 7, 8, 9]


def test_garbage_is_not_a_number():
    ((_, data), *_) = passed(Faults("joint", [Fault("nan")]))
    assert data == b"\xff" * 8
    assert all(number != number for number in struct.unpack("<2f", data))


def test_corruption_turns_one_bit_or_the_length():
    came = passed(Faults("joint", [Fault("corrupt")], seed=3), 200)
    turned = lengths = 0
    for k, (_, data) in enumerate(came):
        was = bytes([k]) + DATA[1:]
        if len(data) == 8:
            turned += 1
            wrong = int.from_bytes(data, "big") ^ int.from_bytes(was, "big")
            assert wrong.bit_count() == 1
        else:
            lengths += 1
            assert data == was[: len(data)]
    assert turned > 50
    assert lengths > 50


def test_probability_and_seed():
    def left(seed):
        return [
            d[0] for _, d in passed(Faults("joint", [Fault("drop", probability=0.3)], seed), 200)
        ]

    assert left(1) == left(1) != left(2)
    assert 110 < len(left(1)) < 170
    lossy = passed(Faults("joint", loss=0.3), 200)
    assert 110 < len(lossy) < 170


def test_drives_are_struck_once():
    host = Station(EmulatedCia402(axis())).set_up(watchdog=0).enable(500)
    faults = Faults(
        "joint", [Fault("drive_fault", at=1.0, value=0x3210), Fault("power_cycle", at=2.0)]
    )
    assert faults.next_event == 1.0
    assert faults.strike(host.drive, 0.5, host.now) == []
    ((_, said),) = faults.strike(host.drive, 1.0, host.now)
    assert struct.unpack_from("<H", said.data)[0] == 0x3210
    host.wait(0.1)
    assert host.drive.state is PowerState.FAULT
    faults.strike(host.drive, 2.5, host.now)
    assert host.drive.network_state == 0
    assert faults.next_event == float("inf")


def test_a_frozen_encoder():
    faults = Faults("joint", [Fault("freeze", at=1.0, lasting=1.0)])
    assert [faults.is_frozen(time) for time in (0.5, 1.0, 1.9, 2.0)] == [False, True, True, False]


@pytest.mark.parametrize("kind", list(FaultKind))
def test_words_and_tables_mean_the_same(kind):
    name = kind.name.lower()
    fault = Fault.read(f"{name.replace('_', '-')}, turret, 2.5, 0.5")
    assert fault == Fault(kind, "turret", 2.5, 0.5)
    assert Fault.from_table(fault.to_table()) == fault
    assert Fault.read(name) == Fault(kind)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "kind"),
        ("explode,turret", "one of drop, delay"),
        ("drop,turret,soon", "`at`"),
        ("drop,turret,1,-2", "`lasting`"),
        ("drop,turret,nan", "`at`"),
        ("drop,turret,1,1,2", "`probability`"),
        ("drop,a,1,1,1,1", "KIND,AXIS,AT,FOR"),
    ],
)
def test_what_is_no_fault_is_refused(text, told):
    with pytest.raises(RigError, match=told):
        Fault.read(text)


@pytest.mark.parametrize(
    "table",
    [
        {},
        {"kind": "drop", "when": 1.0},
        {"kind": 3},
        {"kind": "drop", "axis": 3},
        {"kind": "drop", "at": "soon"},
        {"kind": "drop", "at": True},
        {"kind": "drop", "way": "up"},
        {"kind": "delay", "value": -1.0},
    ],
)
def test_tables_that_are_no_fault_are_refused(table):
    with pytest.raises(RigError, match="fault"):
        Fault.from_table(table)


@given(
    st.lists(
        st.builds(
            Fault,
            st.sampled_from(
                [
                    kind
                    for kind in FaultKind
                    if kind not in (FaultKind.DRIVE_FAULT, FaultKind.POWER_CYCLE)
                ]
            ),
            st.just("*"),
            st.floats(0.0, 2.0),
            st.floats(0.0, 2.0),
            st.floats(0.0, 1.0),
            st.just(0.0),
            st.sampled_from(["both", "to_drive", "to_host"]),
        ),
        max_size=5,
    )
)
def test_whatever_is_wrong_frames_come_never_before_their_time(faults):
    wrong = Faults("joint", faults)
    for k in range(30):
        time = 0.1 * k
        for way in (wrong.to_drive, wrong.to_host):
            came = way(frame(0x185, DATA), time + 0.01, time)
            assert len(came) <= 2
            for due, message in came:
                assert due >= time + 0.01
                assert len(message.data) <= 8
