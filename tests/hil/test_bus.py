"""The bus: its clock, its counters, and faults that must not delay it."""

from __future__ import annotations

import queue
import threading
import time

import can
import pytest
from can.interfaces.socketcan import SocketcanBus

from hil import bus as bus_module
from hil.bus import (
    PASSED_OVER,
    REFUSED_IN_ROW,
    Bus,
    bus_options,
    can_have_drives,
    open_bus,
)
from hil.clock import MonotonicClock, SteppedClock
from hil.errors import BusError
from hil.rig import BusSettings
from tests.ports import free_udp_port


def frame(identifier=0x181, data=b"12345678", **more):
    more.setdefault("is_extended_id", False)
    return can.Message(arbitration_id=identifier, data=data, **more)


class FakeBus(can.BusABC):
    """An interface that returns given frames, and fails on request."""

    def __init__(self, *frames):
        super().__init__(channel="fake")
        self.frames = list(frames)
        self.failure = None
        self.sent = []
        self.waits = []
        self.timeouts = []
        self.condition = can.BusState.ACTIVE

    def send(self, msg, timeout=None):
        self.timeouts.append(timeout)
        if self.failure is not None:
            raise self.failure
        self.sent.append(msg)

    def _recv_internal(self, timeout):
        self.waits.append(timeout)
        if not self.frames:
            return None, False
        first = self.frames.pop(0)
        if isinstance(first, Exception):
            raise first
        return first, False

    @property
    def state(self):
        if isinstance(self.condition, Exception):
            raise self.condition
        return self.condition


@pytest.fixture
def make():
    opened = []

    def opens(*frames, clock=None, silent=False):
        fake = FakeBus(*frames)
        opened.append(Bus(fake, clock or SteppedClock(), silent))
        return opened[-1], fake

    yield opens
    for bus in opened:
        bus.close()


@pytest.mark.parametrize(
    "failure",
    [
        can.CanOperationError("Transmit buffer full"),  # ENOBUFS in python-can
        OSError(105, "No buffer space available"),
        can.CanTimeoutError("timed out"),
        BlockingIOError(),
    ],
)
def test_a_full_queue_neither_raises_nor_waits(make, failure):
    bus, fake = make()
    fake.failure = failure
    assert not bus.send(frame())
    assert bus.refused == 1
    assert fake.timeouts == [0.0]
    assert not bus.is_off
    fake.failure = None
    assert bus.send(frame())
    assert len(fake.sent) == 1


def test_a_full_queue_of_a_real_interface_does_not_hold_the_loop():
    with (
        can.Bus(interface="virtual", channel="narrow", rx_queue_size=2),
        Bus(can.Bus(interface="virtual", channel="narrow"), MonotonicClock()) as bus,
    ):
        done = queue.Queue()
        sender = threading.Thread(
            target=lambda: done.put([bus.send(frame()) for _ in range(5)]), daemon=True
        )
        sender.start()
        assert done.get(timeout=10.0) == [True, True, False, False, False]
        assert bus.refused == 3


def test_a_bus_that_takes_nothing_any_more_is_off(make):
    bus, fake = make()
    fake.failure = can.CanOperationError("Transmit buffer full")
    for _ in range(REFUSED_IN_ROW):
        assert not bus.is_off
        bus.send(frame())
    assert bus.is_off
    fake.failure = None
    bus.send(frame())
    assert not bus.is_off
    assert bus.refused == REFUSED_IN_ROW


@pytest.mark.parametrize(
    ("condition", "off"),
    [
        (can.BusState.ACTIVE, False),
        (can.BusState.PASSIVE, False),
        (can.BusState.ERROR, True),
        (NotImplementedError(), False),
        (can.CanOperationError("gone"), True),
    ],
)
def test_the_interfaces_own_state_counts(make, condition, off):
    bus, fake = make()
    fake.condition = condition
    assert bus.is_off is off


def test_frames_of_no_use_are_counted_and_passed_over(make):
    good = frame(0x181)
    bus, _ = make(
        frame(0x181, is_extended_id=True),
        frame(0x181, b"", is_remote_frame=True),
        frame(0x181, is_fd=True),
        frame(0x40, is_error_frame=True),
        can.CanOperationError("could not unpack received message"),
        good,
    )
    assert bus.receive() is good
    assert bus.receive() is None
    assert (bus.errors, bus.foreign, bus.refused) == (1, 4, 0)
    assert not bus.is_off  # error frames have a defined meaning on Linux only


def test_error_frames_of_linux_tell_that_the_bus_is_off(make, monkeypatch):
    assert SocketcanBus.__module__.startswith("can.interfaces.socketcan")
    monkeypatch.setattr(FakeBus, "__module__", SocketcanBus.__module__)
    off, restarted = 0x40, 0x100  # CAN_ERR_BUSOFF, CAN_ERR_RESTARTED of linux/can/error.h
    bus, fake = make(frame(off, is_error_frame=True))
    assert bus.receive() is None
    assert bus.is_off
    fake.frames.append(frame(0x04, is_error_frame=True))
    bus.receive()
    assert bus.is_off
    fake.frames.append(frame(restarted, is_error_frame=True))
    bus.receive()
    assert not bus.is_off
    assert bus.errors == 3


def test_a_babbling_node_cannot_hold_the_loop(make):
    bus, fake = make()
    fake._recv_internal = lambda timeout: (frame(is_extended_id=True), False)
    assert bus.receive() is None
    assert bus.foreign == PASSED_OVER


def test_a_bus_that_fails_to_receive_does_not_raise_or_hang(make):
    for clock in (SteppedClock(), MonotonicClock()):
        bus, fake = make(clock=clock)

        def gone(timeout):
            raise can.CanOperationError("the interface went down")

        fake._recv_internal = gone
        assert bus.receive(clock.now() + 0.005) is None
        assert bus.foreign > 0


def test_a_stepped_clock_moves_while_a_frame_is_waited_for(make):
    seen = []
    clock = SteppedClock()
    bus, fake = make(clock=clock)
    late = frame(0x200)

    def advance(now):
        seen.append(now)
        if now >= 1000.002 - 1e-12 and not fake.sent:
            fake.sent.append(late)
            fake.frames.append(late)

    clock.advance = advance
    assert bus.receive(1000.005) is late
    assert clock.now() == pytest.approx(1000.002)
    assert bus.receive(1000.005) is None
    assert clock.now() == 1000.005
    assert bus.receive(1000.001) is None
    assert clock.now() == 1000.005
    assert set(fake.waits) == {0.0}  # never the machine's own time


def test_accident_7_waiting_does_not_hang_when_the_wall_clock_is_set_back(monkeypatch):
    """python-can's own `recv` measures its time-out by the wall clock.

    An interface may come back without a frame, and early: for a frame of another protocol, or a
    spurious readiness. The naive wait then restarts with the hours by which the clock was set
    back; the rig's bus continues to wait by the loop's clock.
    """

    class Spurious(FakeBus):
        def _recv_internal(self, timeout):
            self.waits.append(timeout)
            if len(self.waits) == 1:
                wall[0] -= 3600.0
            if timeout > 1.0:
                raise TimeoutError(f"would wait {timeout:.0f} s")
            return None, False

    wall = [1.7e9]
    monkeypatch.setattr("can.bus.time", lambda: wall[0])
    naive = Spurious()
    with pytest.raises(TimeoutError, match="3600 s"):
        naive.recv(0.002)
    naive.shutdown()

    wall[0] = 1.7e9
    ours = Spurious()
    with Bus(ours, MonotonicClock()) as bus:
        begin = time.monotonic()
        assert bus.receive(bus.clock.now() + 0.002) is None
        assert time.monotonic() - begin >= 0.002
        assert max(ours.waits) <= 0.002


def test_a_silent_bus_sends_nothing(make):
    bus, fake = make(silent=True)
    assert not bus.send(frame())
    assert fake.timeouts == []
    assert bus.refused == 0


def test_frames_cross_processes_multicast():
    """Loopback multicast in real time, where sent frames are echoed."""
    settings = BusSettings("udp_multicast", "239.74.163.2", options={"port": free_udp_port()})
    with open_bus(settings) as one, open_bus(settings) as other:
        one.send(frame(0x123, b"abc"))
        for bus in (one, other):
            came = bus.receive(bus.clock.now() + 5.0)
            assert (came.arbitration_id, bytes(came.data)) == (0x123, b"abc")
        # garbage that is not a CAN frame is skipped, and the next frame is received
        one.bus._multicast.send(b"no frame at all")
        one.send(frame(0x124, b"d"))
        came = other.receive(other.clock.now() + 5.0)
        assert came.arbitration_id == 0x124
        assert other.foreign == 1


def test_a_bus_that_cannot_be_opened_names_the_cure():
    with pytest.raises(BusError, match="bus `no such interface`, channel `x`") as caught:
        open_bus(BusSettings("no such interface", "x"))
    assert "concur-rig emulate" in caught.value.cure


def test_the_bit_rate_is_passed_to_interfaces_that_have_one(monkeypatch):
    told = {}

    def opens(**options):
        told.update(options)
        return FakeBus()

    monkeypatch.setattr(bus_module.can, "Bus", opens)
    open_bus(BusSettings("socketcan", "can0", bitrate=500_000)).close()
    assert told["bitrate"] == 500_000
    told.clear()
    open_bus(BusSettings("virtual", "x", options={"rx_queue_size": 3})).close()
    assert "bitrate" not in told
    assert told["rx_queue_size"] == 3


@pytest.mark.parametrize(("options", "leaves"), [({}, False), ({"hop_limit": 1}, True)])
def test_multicast_that_leaves_the_machine_may_have_drives(options, leaves):
    settings = BusSettings("udp_multicast", "239.255.99.9", options={"port": 43113, **options})
    assert can_have_drives(settings) == leaves
    assert bus_options(settings)["hop_limit"] == int(leaves)
    with open_bus(settings) as bus:
        assert bus.bus._multicast.hop_limit == int(leaves)
