"""Kinds of drives, identifiers that may not meet, and the services by which drives are set up."""

from __future__ import annotations

import contextlib
import logging
import struct

import can
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hil.clock import SteppedClock
from hil.drives import (
    Cia402Drive,
    Drive,
    MitDrive,
    _registry,
    drive_kinds,
    make_drives,
    register_drive,
)
from hil.drives._network import Nmt, SdoSession
from hil.errors import DriveError, RigFileError
from tests.hil._acme import forgotten
from tests.hil.drives._stations import (
    NODE,
    AnsweringBus,
    frame,
    make_axis,
    make_mit_axis,
    make_rig,
    station,
    virtual_pair,
)

KINDS = "cia402", "mit", "moteus", "odrive"
"""Kinds that are built in."""


@pytest.fixture
def kinds():
    """The registry, as it was afterwards."""
    with forgotten():
        yield


def test_drives_stand_in_the_order_of_the_axes():
    rig = make_rig(*(make_axis(name=f"joint {k}", node=9 - k) for k in range(4)))
    drives = make_drives(rig)
    assert [drive.axis.name for drive in drives] == [f"joint {k}" for k in range(4)]
    assert [drive.index for drive in drives] == [0, 1, 2, 3]
    assert all(type(drive) is Cia402Drive for drive in drives)
    assert type(make_drives(make_rig(make_mit_axis()))[0]) is MitDrive


def test_mit_drives_share_the_identifier_of_their_reports():
    rig = make_rig(*(make_mit_axis(name=f"joint {k}", node=k) for k in (1, 2, 3)))
    assert len(make_drives(rig)) == 3


@pytest.mark.parametrize(
    ("axes", "words"),
    [
        ([make_axis(drive="cia420")], "Did you mean `cia402`"),
        ([make_axis(drive="wheel of fortune")], "register_drive"),
        ([make_axis(node=127)], "1 to 126"),
        ([make_axis(node=0)], "1 to 126"),
        ([make_mit_axis(node=127)], "1 to 126"),
        ([make_axis(name="a"), make_axis(name="b")], "axis `a`"),
        ([make_mit_axis(name="a"), make_mit_axis(name="b")], "axis `a`"),
        # reports on 0x000 would be commands of network management to the other drive
        ([make_axis(name="a"), make_mit_axis(name="b")], "network management"),
        ([make_mit_axis(name="b"), make_axis(name="a")], "separate buses"),
    ],
)
def test_rigs_that_cannot_work_are_refused(axes, words):
    with pytest.raises(RigFileError, match=words) as caught:
        make_drives(make_rig(*axes))
    assert caught.value.where.startswith("bench.toml, axis `")


def test_a_name_is_registered_once(kinds):
    register_drive("mit", MitDrive)
    with pytest.raises(RigFileError, match="MitDrive"):
        register_drive("mit", Cia402Drive)
    register_drive("cia402 again", Cia402Drive)
    assert drive_kinds() == (*KINDS, "cia402 again")


def test_what_is_no_whole_class_of_drives_is_not_registered(kinds):
    class Half(Drive):
        """Lacks most methods."""

    for none in (3, dict, MitDrive(make_mit_axis(), 0, make_rig(make_mit_axis()))):
        with pytest.raises(RigFileError, match=r"derived from `hil\.Drive`"):
            register_drive("none", none)
    with pytest.raises(RigFileError, match=r"got a class without command, .*release"):
        register_drive("half", Half)
    assert drive_kinds() == KINDS


def _register_two(drive):
    register_drive("other", drive)
    register_drive("mit", drive)


def test_registrations_are_removed_after_an_error(kinds):
    class Own(MitDrive):
        """A user's kind."""

    with _registry.registering() as heard:
        register_drive("own", Own)
        register_drive("mit", MitDrive)
    assert heard == ["own", "mit"]
    with pytest.raises(RigFileError), _registry.registering():
        _register_two(Own)
    register_drive("own", Own)
    assert drive_kinds() == (*KINDS, "own")
    assert heard == ["own", "mit"]


def test_identifiers_of_a_third_kind_may_not_meet_those_of_others(kinds):
    class Loud(Cia402Drive):
        """Sends where node 5 sends its report."""

        @property
        def identifiers(self):
            return (0x185,)

    register_drive("loud", Loud)
    rig = make_rig(make_axis(name="a"), make_axis(name="b", node=6, drive="loud"))
    with pytest.raises(RigFileError, match="0x185, which belongs to axis `a`"):
        make_drives(rig)

    class Far(Loud):
        """Has no standard identifier."""

        @property
        def identifiers(self):
            return (0x800,)

    register_drive("far", Far)
    with pytest.raises(RigFileError, match="more than 11 bits"):
        make_drives(make_rig(make_axis(name="b", drive="far")))


# -- SDO and network management without threads ------------------------------------------------


def test_reads_what_the_library_serves():
    with station(x6076=1234567, x6064=-98765, x6077=-321) as (bus, drive):
        session = SdoSession(bus, "elbow", NODE)
        assert session.read(0x6076, 0, "I") == 1234567
        assert session.read(0x6064, 0, "i") == -98765
        assert session.read(0x6077, 0, "h") == -321
        assert session.read(0x6061, 0, "b") == drive.value(0x6060)
        assert session.find(0x2000, 0, "I") is None
        assert session.find(0x1018, 9, "I") is None


def test_writes_what_the_library_then_has():
    with station() as (bus, drive):
        session = SdoSession(bus, "elbow", NODE)
        session.write(0x6071, 0, "h", -5)
        session.write(0x6072, 0, "H", 65535)
        session.write(0x1016, 1, "I", 0x7F0032)
        session.write(0x6060, 0, "b", -2)
        assert [drive.value(i, s) for i, s in ((0x6071, 0), (0x6072, 0), (0x1016, 1))] == [
            -5,
            65535,
            0x7F0032,
        ]
        assert drive.value(0x6060) == -2


def test_network_management_reaches_one_node_only():
    with station() as (bus, drive):
        session = SdoSession(bus, "elbow", NODE)
        other = SdoSession(bus, "wrist", NODE + 1)
        for command, state in (
            (Nmt.PRE_OPERATIONAL, "PRE-OPERATIONAL"),
            (Nmt.START, "OPERATIONAL"),
            (Nmt.STOP, "STOPPED"),
        ):
            session.command(command)
            session.find(0x1000, 0, "I")  # answered after the command was taken
            assert drive.node.nmt.state == state
            other.command(Nmt.START if command is Nmt.STOP else Nmt.STOP)
            session.find(0x1000, 0, "I")
            assert drive.node.nmt.state == state


def test_refusals_name_axis_object_and_reason():
    with station() as (bus, drive):
        session = SdoSession(bus, "elbow", NODE)
        with pytest.raises(DriveError, match="axis `elbow`, node 5, object 0x6041:00") as caught:
            session.put(0x6041, 0, "H", 3)
        assert "read only" in caught.value.came
        assert caught.value.abort == 0x06010002
        with pytest.raises(DriveError, match="does not exist"):
            session.read(0x2000, 0, "I")
        drive.refuses[0x6072, 0] = 0x06090031
        with pytest.raises(DriveError, match="too high"):
            session.write(0x6072, 0, "H", 5000)
        assert not session.offer(0x6072, 0, "H", 5000)
        assert session.offer(0x6071, 0, "h", 3)


def test_a_value_that_does_not_stay_is_an_error():
    with station() as (bus, drive):
        drive.ignores.add(0x6072)
        session = SdoSession(bus, "elbow", NODE)
        with pytest.raises(DriveError, match="the value that was written, 1500, got 3000"):
            session.write(0x6072, 0, "H", 1500)
        assert not session.offer(0x6072, 0, "H", 1500)


@pytest.mark.parametrize("act", ["find", "put", "offer", "read"])
def test_a_missing_answer_is_an_error_with_a_cure_and_nothing_is_printed(act, capsys, caplog):
    logging.getLogger().handlers.clear()
    bus = AnsweringBus(lambda frame, now: [])
    arguments = {"find": ("I",), "read": ("I",), "put": ("I", 3), "offer": ("I", 3)}
    before = bus.clock.now()
    with pytest.raises(DriveError, match=r"0x1000:00: expected an answer within 0\.1 s") as caught:
        getattr(SdoSession(bus, "elbow", NODE), act)(0x1000, 0, *arguments[act])
    assert "node number" in caught.value.cure
    assert capsys.readouterr().err == ""
    assert 0.3 <= bus.clock.now() - before < 0.4  # three attempts, in the clock's own time
    bus.close()


def test_a_silent_bus_is_an_error_and_no_hang():
    with virtual_pair(SteppedClock()) as (bus, far):
        bus.silent = True
        session = SdoSession(bus, "elbow", NODE)
        for act in (lambda: session.find(0x1000, 0, "I"), lambda: session.command(Nmt.START)):
            with pytest.raises(DriveError):
                act()
        assert far.recv(0) is None


def test_a_lost_answer_is_requested_again():
    asked = []

    def third_time(message, now):
        asked.append(bytes(message.data))
        return [answer_to(message, 42)] if len(asked) == 3 else []

    bus = AnsweringBus(third_time)
    assert SdoSession(bus, "elbow", NODE).read(0x6076, 0, "I") == 42
    assert asked == [struct.pack("<BHBI", 0x40, 0x6076, 0, 0)] * 3
    bus.close()


def answer_to(message: can.Message, value: int) -> can.Message:
    """Expedited answer to an upload or a download."""
    command, index, sub = struct.unpack_from("<BHB", message.data)
    if command == 0x40:
        return frame(0x580 + NODE, struct.pack("<BHBI", 0x43, index, sub, value))
    return frame(0x580 + NODE, struct.pack("<BHBI", 0x60, index, sub, 0))


def test_late_and_foreign_answers_are_ignored():
    def muddle(message, now):
        _, index, sub = struct.unpack_from("<BHB", message.data)
        return [
            frame(0x580 + NODE, struct.pack("<BHBI", 0x43, 0x6072, 0, 1)),  # another object
            frame(0x580 + NODE, struct.pack("<BHBI", 0x60, index, sub, 0)),  # another service
            frame(0x580 + NODE, struct.pack("<BHBI", 0x80, 0x6072, 0, 0x06020000)),
            frame(0x581 + NODE, struct.pack("<BHBI", 0x43, index, sub, 2)),  # another node
            frame(0x580 + NODE, struct.pack("<BHB", 0x43, index, sub)),  # too short
            answer_to(message, 99),
        ]

    bus = AnsweringBus(muddle)
    assert SdoSession(bus, "elbow", NODE).read(0x6076, 0, "I") == 99
    bus.close()


@pytest.mark.parametrize("length", range(9))
def test_malformed_answers_of_every_length_end_in_our_error(length):
    noise = bytes(range(0x43, 0x43 + length))
    bus = AnsweringBus(lambda message, now: [frame(0x580 + NODE, noise)])
    session = SdoSession(bus, "elbow", NODE)
    for act in (lambda: session.read(0x6076, 0, "I"), lambda: session.put(0x6071, 0, "h", 1)):
        with pytest.raises(DriveError):
            act()
    bus.close()


@given(data=st.binary(max_size=8), index=st.sampled_from([0x6076, 0x6071]))
@settings(max_examples=60, deadline=None)
def test_any_answer_gives_a_number_or_our_error(data, index):
    bus = AnsweringBus(lambda message, now: [frame(0x580 + NODE, data)])
    session = SdoSession(bus, "elbow", NODE, timeout=0.002, attempts=1)
    for act in (lambda: session.find(index, 0, "I"), lambda: session.offer(index, 0, "h", 1)):
        with contextlib.suppress(DriveError):
            assert isinstance(act(), int | None)
    bus.close()


def test_other_nodes_frames_pass_during_setup_and_nothing_is_sent_to_them():
    """Set-up of one node shares the bus with nodes that are running."""
    with station() as (bus, drive):
        heard = []
        drive.network.notifier.add_listener(heard.append)
        for k in range(50):
            drive.network.send_message(0x181, struct.pack("<Hih", 0x0237, k, 0))
        session = SdoSession(bus, "elbow", NODE)
        assert session.read(0x6076, 0, "I") == 2000
        session.write(0x6071, 0, "h", 1)
        session.command(Nmt.START)
        session.read(0x1000, 0, "I")
        assert {message.arbitration_id for message in heard} == {0x600 + NODE, 0x000}
        assert all(m.data[1] == NODE for m in heard if m.arbitration_id == 0)


def test_short_numbers_keep_their_sign():
    def small(message, now):
        _, index, sub = struct.unpack_from("<BHB", message.data)
        # one byte, expedited, size told: 0x4F
        return [frame(0x580 + NODE, struct.pack("<BHBbxxx", 0x4F, index, sub, -2))]

    bus = AnsweringBus(small)
    session = SdoSession(bus, "elbow", NODE)
    assert session.read(0x6071, 0, "h") == -2
    assert session.read(0x6072, 0, "H") == 0xFE
    bus.close()
