"""Poses as datagrams: accepted and rejected datagrams, and clocks."""

import math
import socket
import textwrap
import time
from dataclasses import replace
from types import SimpleNamespace

import msgpack
import numpy as np
import pytest
import zmq
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import hil.state.pose_source
from hil.errors import RigError
from hil.rig import PoseSettings
from hil.state.pose_source import PoseReceiver, PoseSender

ANY_PORT = PoseSettings(port=0)
POSITION, TURN = (1.0, -2.0, 0.5), (0.0, 0.6, 0.0, 0.8)


@pytest.fixture(params=["udp", "zmq"])
def pair(request):
    with (
        PoseReceiver(PoseSettings(kind=request.param, port=0), "chassis") as receiver,
        PoseSender(request.param, "127.0.0.1", receiver.port, "chassis") as sender,
    ):
        if request.param == "zmq":
            joined(sender, receiver)
        yield receiver, sender


@pytest.fixture
def receiver():
    with PoseReceiver(ANY_PORT, "chassis") as made:
        yield made


@pytest.fixture
def sender(receiver):
    with PoseSender("udp", "127.0.0.1", receiver.port, "chassis") as made:
        yield made


def joined(sender, receiver):
    """Wait until a publisher is connected: its earlier datagrams are lost."""
    sender._socket.setsockopt(zmq.SNDTIMEO, 100)
    for _ in range(200):
        sender.send_bytes(b"hello")
        time.sleep(0.005)
        receiver.poll(0.0)
        if receiver.invalid:
            break
    time.sleep(0.02)
    receiver.poll(0.0)
    receiver.invalid = 0


def arrived(receiver, now, count=1):
    """Measurements that arrive within a second."""
    found = []
    for _ in range(200):
        found += receiver.poll(now)
        if len(found) >= count:
            break
        time.sleep(0.005)
    return found


def facts(**others):
    known = {"seq": 5, "time": 9.99, "position": POSITION, "quaternion": TURN, "body": "chassis"}
    return {key: value for key, value in (known | others).items() if value is not ...}


def test_what_is_sent_arrives(pair):
    receiver, sender = pair
    assert receiver.poll(10.0) == []
    sender.send(9.98, POSITION, TURN)
    sender.send(9.99, np.array(POSITION) + 1.0, np.array(TURN))
    first, second = arrived(receiver, 10.0, 2)
    assert first.time == 9.98
    assert first.position == POSITION
    assert first.quaternion == pytest.approx(TURN, abs=1e-15)
    assert second.time == 9.99
    assert second.position == (2.0, -1.0, 1.5)
    assert (receiver.taken, receiver.invalid, receiver.disordered, receiver.missed) == (2, 0, 0, 0)
    assert receiver.offset == 0.0


def test_datagrams_are_as_described(receiver, sender):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.bind(("127.0.0.1", 0))
        with PoseSender("udp", "127.0.0.1", other.getsockname()[1], "base") as bridge:
            bridge.send(5.5, (1, 2, 3))
            bridge.send(5.6, quaternion=TURN)
        first, second = (msgpack.unpackb(other.recv(1024)) for _ in range(2))
    assert first == {"seq": 0, "time": 5.5, "position": [1.0, 2.0, 3.0], "body": "base"}
    assert second == {"seq": 1, "time": 5.6, "quaternion": list(TURN), "body": "base"}


@pytest.mark.parametrize(
    "changes",
    [
        {"position": ...},
        {"quaternion": ...},
        {"time": ...},
        {"seq": ...},
        {"seq": -1},
        {"seq": 1.5},
        {"seq": True},
        {"time": math.nan},
        {"time": math.inf},
        {"time": "9.99"},
        {"time": True},
        {"position": [1.0, 2.0]},
        {"position": [1.0, 2.0, math.nan]},
        {"position": [1.0, 2.0, math.inf]},
        {"position": [1.0, 2.0, 1e9]},
        {"position": [1.0, 2.0, None]},
        {"position": [[1.0, 2.0, 3.0]]},
        {"position": "xyz"},
        {"position": {0: 1.0, 1: 2.0, 2: 3.0}},
        {"quaternion": [0.0, 0.0, 0.0, 0.0]},
        {"quaternion": [0.0, 0.0, 0.0, 1.1]},
        {"quaternion": [0.0, 0.0, math.nan, 1.0]},
        {"quaternion": [1.0, 0.0, 0.0]},
        {"body": "forearm"},
        {"body": 7},
        {"body": None},
    ],
    ids=repr,
)
def test_what_is_no_pose_is_refused_and_counted(receiver, sender, changes):
    sender.send_bytes(msgpack.packb(facts(**changes)))
    assert drained(receiver) == []
    assert (receiver.taken, receiver.invalid) == (0, 1)
    sender.send_bytes(msgpack.packb(facts()))
    assert len(arrived(receiver, 10.0)) == 1


def drained(receiver, now=10.0):
    time.sleep(0.01)
    return receiver.poll(now)


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.binary(max_size=64)
    | st.recursive(
        st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text(),
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.dictionaries(
                st.sampled_from(["seq", "time", "position", "quaternion", "body"]), inner
            )
        ),
        max_leaves=12,
    ).map(msgpack.packb)
)
def test_no_datagram_raises(receiver, data):
    before = receiver.invalid
    assert receiver._read(data, 10.0) is None
    assert receiver.invalid == before + 1


def test_a_quaternion_is_brought_to_unit_length(receiver):
    data = msgpack.packb(facts(quaternion=[0.0, 0.0, 0.6 * 1.0009, 0.8 * 1.0009]))
    measurement = receiver._read(data, 10.0)
    assert measurement.quaternion == pytest.approx((0.0, 0.0, 0.6, 0.8), abs=1e-15)


@pytest.mark.parametrize("gives", ["position", "attitude"])
def test_a_source_of_less_gives_less(gives):
    with PoseReceiver(replace(ANY_PORT, gives=gives)) as receiver:
        own, other = ("position", "quaternion")[:: 1 if gives == "position" else -1]
        whole = receiver._read(msgpack.packb(facts(seq=1, time=9.0)), 9.1)
        part = receiver._read(msgpack.packb(facts(seq=2, time=9.1, **{other: ...})), 9.2)
        assert receiver._read(msgpack.packb(facts(seq=3, time=9.2, **{own: ...})), 9.3) is None
        for measurement in (whole, part):
            assert getattr(measurement, own) is not None
            assert getattr(measurement, other) is None


def test_repeated_and_older_datagrams_are_refused(receiver):
    stamps = [(1, 9.0), (1, 9.0), (1, 9.05), (3, 9.2), (2, 9.1), (4, 9.2), (5, 9.3)]
    taken = [
        receiver._read(msgpack.packb(facts(seq=seq, time=t)), 9.4) is not None for seq, t in stamps
    ]
    assert taken == [True, False, False, True, False, False, True]
    assert receiver.disordered == 4
    assert receiver.missed == 2  # 2 came too late, 4 had an old stamp


def test_a_sender_that_starts_again_is_taken(receiver):
    assert receiver._read(msgpack.packb(facts(seq=900, time=9.0)), 9.0)
    assert receiver._read(msgpack.packb(facts(seq=0, time=9.5)), 9.5)
    # Another machine, whose clock is behind: after a second of silence.
    late = msgpack.packb(facts(seq=0, time=2.0))
    assert receiver._read(late, 9.6) is None
    assert receiver._read(msgpack.packb(facts(seq=1, time=3.0)), 10.6).time == 10.6


def test_one_poll_takes_so_many_and_leaves_the_rest(receiver, sender):
    for k in range(64 + 10):
        sender.send(9.0 + 1e-3 * k, POSITION, TURN)
    time.sleep(0.02)
    assert len(receiver.poll(9.5)) == 64
    assert len(receiver.poll(9.5)) == 10
    assert receiver.poll(9.5) == []


@pytest.mark.parametrize("difference", [-5000.0, 3.0, 4e5])
def test_a_clock_of_another_machine_is_learned(receiver, difference):
    # Datagrams take 2 ms and more; stamps become those of the loop's clock to within that.
    rng, errors = np.random.default_rng(1), []
    for k in range(500):
        taken = 100.0 + 0.01 * k
        now = taken + 2e-3 + rng.exponential(3e-3)
        data = msgpack.packb(facts(seq=k, time=taken - difference))
        errors.append(receiver._read(data, now).time - taken)
    assert min(errors) >= 0.0
    assert max(errors[100:]) < 2.2e-3
    assert receiver.offset == pytest.approx(difference + 2e-3, abs=2e-4)


def test_a_clock_that_runs_slow_is_followed(receiver):
    # 100 parts in a million: after ten minutes the clocks differ by 60 ms.
    for k in range(6000):
        now = 100.0 + 0.1 * k
        stamp = 5000.0 + 0.1 * k * (1.0 - 1e-4)
        measurement = receiver._read(msgpack.packb(facts(seq=k, time=stamp)), now)
        assert now - measurement.time == pytest.approx(0.0, abs=3e-3)


def test_the_own_clock_is_left_alone(receiver):
    # Cameras with a delay of 30 ms: their stamps contain it, and are accepted.
    for k in range(100):
        now = 100.0 + 0.01 * k
        data = msgpack.packb(facts(seq=k, time=now - 0.03))
        assert receiver._read(data, now).time == now - 0.03
    assert receiver.offset == 0.0


def stamped(receiver, sequence, time, now):
    """Let a pose of a time arrive."""
    return receiver._read(msgpack.packb(facts(seq=sequence, time=time)), now)


@pytest.mark.parametrize(
    ("difference", "one"),
    [(-5.1e-3, False), (-4.9e-3, True), (0.0, True), (0.99, True), (1.01, False)],
)
def test_differences_of_one_clock(receiver, difference, one):
    measurement = stamped(receiver, 0, 100.0, 100.0 + difference)
    expected = 0.0 if one else difference
    assert receiver.offset == pytest.approx(expected, abs=1e-12)
    assert measurement.time == pytest.approx(100.0 + expected, abs=1e-12)


@pytest.mark.parametrize(("silence", "new"), [(0.5, False), (1.0, False), (1.0078125, True)])
def test_after_a_second_of_silence_it_is_another_sender(receiver, silence, new):
    assert stamped(receiver, 7, 50.0, 50.0)
    assert (stamped(receiver, 0, 2.0, 50.0 + silence) is not None) == new
    assert receiver.disordered == (not new)


def test_the_least_difference_is_kept_for_ten_to_twenty_seconds(receiver):
    offsets = {}
    for k in range(50):
        now = 0.5 * k
        stamped(receiver, k, now - (2.0 if k == 0 else 2.25), now)
        offsets[now] = receiver.offset
    # The second half begins after ten seconds, the third, which has forgotten, ten after that.
    assert offsets[20.5] == 2.0
    assert offsets[21.0] == 2.25


@pytest.mark.parametrize(
    ("ahead", "is_taken"), [(0.02, True), (math.nextafter(0.02, 1.0), False), (-0.3, True)]
)
def test_a_stamp_may_be_ahead_by_two_hundredths_of_a_second(receiver, ahead, is_taken):
    assert stamped(receiver, 0, -0.5, -0.5)
    assert (stamped(receiver, 1, ahead, 0.0) is not None) == is_taken
    assert receiver.ahead == (not is_taken)


@pytest.mark.parametrize(("value", "valid"), [(0.99e6, True), (-0.99e6, True), (1.01e6, False)])
def test_coordinates_that_a_base_may_have(receiver, value, valid):
    data = msgpack.packb(facts(position=[0.0, value, 0.0]))
    assert (receiver._read(data, 10.0) is not None) == valid


@pytest.mark.parametrize(
    ("length", "valid"), [(0.9991, True), (1.0009, True), (0.9989, False), (1.0011, False)]
)
def test_a_quaternion_is_of_unit_length_to_a_thousandth(receiver, length, valid):
    data = msgpack.packb(facts(quaternion=[length * part for part in TURN]))
    assert (receiver._read(data, 10.0) is not None) == valid


@pytest.mark.parametrize(("size", "valid"), [(1024, True), (1025, False)])
def test_a_datagram_may_have_so_many_bytes(receiver, size, valid):
    rest = "x" * (size - len(msgpack.packb(facts(rest="x" * 900))) + 900)
    data = msgpack.packb(facts(rest=rest))
    assert len(data) == size
    assert (receiver._read(data, 10.0) is not None) == valid


@pytest.mark.parametrize("kind", ["udp", "zmq"])
def test_a_port_in_use_is_reported(kind):
    with PoseReceiver(PoseSettings(kind=kind, port=0)) as first:
        taken = PoseSettings(kind=kind, port=first.port)
        with pytest.raises(RigError, match=str(first.port)):
            PoseReceiver(taken)


def test_a_missing_library_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "zmq", None)
    with pytest.raises(RigError, match=r"\[rig\]"):
        PoseReceiver(PoseSettings(kind="zmq", port=0))
    with pytest.raises(RigError, match=r"pyzmq.*got import of zmq halted"):
        PoseSender("zmq", "127.0.0.1", 47111)


@pytest.mark.parametrize("kind", ["udp", "zmq"])
def test_sending_without_a_receiver_neither_waits_nor_fails(kind):
    with PoseReceiver(ANY_PORT) as gone:
        port = gone.port
    start = time.monotonic()
    with PoseSender(kind, "127.0.0.1", port) as sender:
        for k in range(500):
            sender.send(float(k), POSITION)
    assert time.monotonic() - start < 5.0


@pytest.mark.parametrize("kind", ["udp", "zmq"])
def test_a_closed_port_is_free_again(kind):
    with PoseReceiver(PoseSettings(kind=kind, port=0)) as receiver:
        port = receiver.port
    with PoseReceiver(PoseSettings(kind=kind, port=port)) as again:
        assert again.port == port


def test_a_bad_address_is_reported():
    with pytest.raises(RigError, match="address"):
        PoseReceiver(PoseSettings(host="203.0.113.7", port=0))


def test_the_bridge_in_the_manual_works(receiver):
    text = hil.state.pose_source.__doc__.split("a loop like this one::")[1].split("A sender on")[0]

    class Capture:
        latency, frames = 0.02, 3

        def wait_for_frame(self):
            self.frames -= 1
            if self.frames < 0:
                raise StopIteration
            return SimpleNamespace(position=POSITION, quaternion=TURN)

    code = textwrap.dedent(text).replace("47111", str(receiver.port))
    with pytest.raises(StopIteration):
        exec(code, {"capture": Capture()})
    now = time.monotonic()
    found = arrived(receiver, now, 3)
    assert [m.position for m in found] == [POSITION] * 3
    assert 0.02 <= now - found[-1].time < 5.0


def taken(receiver, stamps, period=0.01, start=100.0):
    """Which of the stamps, given against the instants at which they arrive, are taken."""
    found = []
    for k, ahead in enumerate(stamps):
        now = start + k * period
        data = msgpack.packb(facts(seq=k, time=now - 2e-3 + ahead))
        found.append(receiver._read(data, now) is not None)
    return np.array(found)


@pytest.mark.parametrize("ahead", [0.018, 0.022, 0.5, 3600.0])
def test_one_stamp_in_the_future_does_not_shut_out_the_rest(receiver, ahead):
    stamps = np.zeros(200)
    stamps[50] = ahead
    found = taken(receiver, stamps)
    assert found[:50].all()
    assert found[50] == (ahead < 0.02)
    assert found[53:].all()
    assert receiver.ahead == (ahead > 0.02)


@pytest.mark.parametrize("ahead", [0.5, 3600.0])
def test_a_first_stamp_in_the_future_is_forgotten(receiver, ahead):
    stamps = np.zeros(100)
    stamps[0] = ahead
    found = taken(receiver, stamps)
    assert not found[1:10].any()
    assert found[10:].all()
    assert abs(receiver.offset) < 5e-3


@pytest.mark.parametrize("shift", [-0.2, 0.2])
def test_a_clock_that_was_set_is_believed_after_a_while(receiver, shift):
    stamps = np.zeros(200)
    stamps[50:] = shift
    found = taken(receiver, stamps)
    assert not found[50:59].any()
    assert found[59:].all()


def test_a_few_that_agree_are_not_another_clock(receiver):
    stamps = np.zeros(200)
    stamps[50:59] = 7.0
    found = taken(receiver, stamps)
    assert not found[50:59].any()
    assert found[59:].all()


@pytest.mark.parametrize("kind", ["udp", "zmq"])
@pytest.mark.parametrize(
    ("host", "port", "came"),
    [
        ("127.0.0.1", -1, "port -1"),
        ("127.0.0.1", 65536, "port 65536"),
        ("no.host.invalid", 1, "nown"),
    ],
)
def test_senders_refuse_addresses_that_do_not_exist(kind, host, port, came):
    with pytest.raises(RigError, match=came):
        PoseSender(kind, host, port)


@pytest.mark.parametrize("port", [0, 65535])
def test_the_first_and_the_last_port_are_ports(port):
    """Rigs of tests have port 0, where nothing arrives."""
    PoseSender("udp", "127.0.0.1", port).close()
