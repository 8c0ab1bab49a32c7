"""Where the loop of a rig runs, and the bus that connects the loop in C with an emulated rig."""

import contextlib
import ctypes
import dataclasses
import socket
import time
from types import SimpleNamespace
from unittest import mock

import can
import numpy as np
import pytest

from hil._compiled import CompiledController
from hil._plan import sample_plan
from hil.bus import can_have_drives, open_bus
from hil.controller import Controller
from hil.drives import make_drives
from hil.errors import BusError
from hil.links import Links, open_links
from hil.quality import BINS, Quality
from hil.reasons import Reason, State
from hil.record.ring import Ring
from hil.record.rows import Layout
from hil.rig import load_rig
from hil.spine import LoopInC, count, why_in_python
from tests.hil.bench import EXAMPLES, FLOATER, ROVER, ROVER_MIT, divided
from tests.hil.test_motors_rig import GEARED, made
from tests.ports import free_udp_port


def datagrams(rig):
    """The rig on buses of datagrams."""
    buses = tuple(
        dataclasses.replace(bus, interface="datagram", channel=str(free_udp_port()), options={})
        for bus in rig.buses
    )
    return dataclasses.replace(rig, buses=buses)


def why(rig):
    with open_links(rig) as links:
        return why_in_python(rig, rig.task.law, links)


@pytest.mark.usefixtures("compiler")
def test_what_cannot_run_in_c_runs_in_python_and_says_why(tmp_path):
    rover = datagrams(load_rig(EXAMPLES / ROVER))
    assert why(rover) == ""
    loop = dataclasses.replace(rover.loop, compiled=False)
    assert "`compiled` of [loop] is false" in why(dataclasses.replace(rover, loop=loop))
    assert "kind mit" in why(datagrams(load_rig(EXAMPLES / ROVER_MIT)))
    assert "source of poses" in why(datagrams(load_rig(EXAMPLES / FLOATER)))
    plain = dataclasses.replace(rover.buses[0], interface="virtual", channel="plain")
    assert "virtual has no descriptor" in why(dataclasses.replace(rover, buses=(plain,)))


def test_without_a_compiler_the_loop_runs_in_python():
    assert "no C compiler" in why(datagrams(load_rig(EXAMPLES / ROVER)))


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize(("compiled", "runs"), [(None, False), (False, False), (True, True)])
def test_adapters_for_can_take_the_loop_in_c_on_request(compiled, runs):
    rover = load_rig(EXAMPLES / ROVER)
    bus = dataclasses.replace(rover.buses[0], interface="socketcan", channel="can0", options={})
    loop = dataclasses.replace(rover.loop, compiled=compiled)
    adapter = [mock.Mock(has_descriptor=True)]
    found = why_in_python(
        dataclasses.replace(rover, buses=(bus,), loop=loop), rover.task.law, adapter
    )
    assert (found == "") is runs


@pytest.mark.usefixtures("compiler")
def test_joints_that_follow_others_run_in_python(tmp_path):
    path = made(tmp_path, {k: v for k, v in GEARED.items() if k != "bend"})
    robot = tmp_path / "robot.toml"
    mimic = '\n[[mimics]]\nbody = "forearm"\nof = "upper_arm"\noffset = -2.6\n'
    robot.write_text(robot.read_text(encoding="utf-8") + mimic, encoding="utf-8")
    task = tmp_path / "task.toml"
    text = task.read_text(encoding="utf-8").replace('group = "R3"', 'group = "R2"')
    text = text.replace("[0.15, 0.75, 0.15]", "[0.15, 0.75]").replace("normal = ", "# ")
    task.write_text(text, encoding="utf-8")
    assert "follow others" in why(datagrams(load_rig(path)))


# -- datagrams ---------------------------------------------------------------------------------


@pytest.fixture
def ends():
    settings = datagrams(load_rig(EXAMPLES / ROVER)).buses[0]
    with open_bus(settings) as one, open_bus(settings) as other:
        yield settings, one, other


def test_frames_cross_in_both_ways_as_they_were(ends):
    _, one, other = ends
    frames = [
        can.Message(arbitration_id=0x181, data=b"\x01\x02\x03", is_extended_id=False),
        can.Message(arbitration_id=0x080, is_extended_id=False),
        can.Message(arbitration_id=0x7FF, data=bytes(8), is_extended_id=False),
    ]
    for sender, receiver in ((one, other), (other, one)):
        for frame in frames:
            assert sender.send(frame)
        for frame in frames:
            found = receiver.receive(receiver.clock.now() + 1.0)
            assert found.equals(frame, timestamp_delta=None, check_channel=False)
        assert receiver.receive() is None


@pytest.mark.parametrize("length", [0, 8, 12, 64])
def test_fd_frames_cross_where_the_bus_has_them(ends, length):
    settings, *others = ends
    for end in others:
        end.close()
    frame = can.Message(
        arbitration_id=0x8001,
        data=bytes(range(length)),
        is_extended_id=True,
        is_fd=True,
        bitrate_switch=True,
    )
    settings = dataclasses.replace(settings, data_bitrate=5_000_000)
    with open_bus(settings) as one, open_bus(settings) as other:
        assert one.send(frame)
        found = other.receive(other.clock.now() + 1.0)
        assert found.equals(frame, timestamp_delta=None, check_channel=False)
        other.has_fd = False
        assert one.send(frame)
        assert other.receive(other.clock.now() + 0.1) is None
        assert other.foreign == 1


def test_remote_extended_and_foreign_datagrams_are_passed_over(ends):
    settings, one, other = ends
    one.send(can.Message(arbitration_id=0x701, is_remote_frame=True, dlc=1, is_extended_id=False))
    one.send(can.Message(arbitration_id=0x12345, data=b"1", is_extended_id=True))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        for end in (0, 1):
            stranger.sendto(bytes(16), ("127.0.0.1", int(settings.channel) + end))
    assert other.receive(other.clock.now() + 0.2) is None
    assert other.foreign == 3
    remote = can.Message(arbitration_id=0x701, is_remote_frame=True, dlc=1, is_extended_id=False)
    one.send(remote)
    found, _ = other.bus._recv_internal(1.0)
    assert found.is_remote_frame
    assert found.dlc == 1


def test_a_bus_of_datagrams_has_two_ends_and_no_motors(ends):
    settings, one, other = ends
    assert not can_have_drives(settings)
    with pytest.raises(BusError, match="two processes already use"):
        open_bus(settings)
    other.close()
    frame = can.Message(arbitration_id=0x181, data=b"1", is_extended_id=False)
    assert all(one.send(frame) for _ in range(3))  # lost, as on a bus without other nodes
    with open_bus(settings) as again:
        assert again.receive() is None
        assert one.send(frame)
        assert again.receive(again.clock.now() + 1.0).arbitration_id == 0x181


@pytest.mark.parametrize("channel", ["can0", "80", "65535", "1024.0"])
def test_a_channel_of_datagrams_is_a_port(channel):
    settings = datagrams(load_rig(EXAMPLES / ROVER)).buses[0]
    with pytest.raises(BusError, match="a port from 1024 to 65534"):
        open_bus(dataclasses.replace(settings, channel=channel))


@pytest.mark.parametrize(("echoes", "runs"), [(True, "Python"), (None, "Python"), (False, "C")])
def test_an_adapter_that_may_echo_frames_has_the_loop_in_python(echoes, runs, monkeypatch):
    """In C every echo would be a frame of another host."""
    calls = []
    monkeypatch.setattr(Controller, "_loop", lambda self: calls.append("Python"))
    one = CompiledController.__new__(CompiledController)
    one.links = Links([mock.Mock(echoes=echoes)], [0] * 5)
    one.rig = load_rig(EXAMPLES / ROVER)
    one.latch = mock.Mock(arm=mock.Mock(side_effect=lambda: calls.append("C") or 1 / 0))
    with contextlib.suppress(ZeroDivisionError):
        one._loop()
    assert calls == [runs]
    assert one.place.startswith(runs)
    assert ("echoes" in one.place) == (runs == "Python")


# -- the loop in a thread --------------------------------------------------------------------------


@pytest.fixture
def loop(compiler):
    """The rover's loop in C with its buses, drives and ring; nobody is at the other ends."""
    rig = datagrams(divided(load_rig(EXAMPLES / ROVER), 2))
    law = rig.task.law
    layout = Layout.of([axis.name for axis in rig.axes], law)
    made = LoopInC(rig, law, layout, sample_plan(rig.task, law, rig.loop.period, 0.2))
    ring = Ring.create(layout, 200)
    with open_links(rig) as links:
        try:
            yield made, make_drives(rig), links, ring
        finally:
            made.end()
            ring.close()
            ring.remove()


def test_an_absent_peer_loses_frames_and_rejects_none(loop):
    """Each end of a bus of datagrams tells the other that nobody is there."""
    made, drives, links, ring = loop
    made.shared.run = 1
    made.start(drives, links, ring, 0, False)
    until = time.monotonic() + 5.0
    while made.shared.cycles < 20 and time.monotonic() < until:
        made.shared.heartbeat += 1
        time.sleep(1e-3)
    assert made.shared.cycles >= 20
    assert made.shared.rejected == 0
    assert made.output().reason == Reason.NONE


def test_a_loop_starts_without_rows_and_requests_of_the_one_before(loop):
    made, drives, links, ring = loop
    made.shared.stop = int(Reason.OPERATOR)
    made.start(drives, links, ring, 0, False)
    setup = made._kept[-1]
    made._thread.join()
    written = ring.written
    assert written == made.shared.cycles > 0
    setup.ring, setup.ring_size, before = None, 0, made.shared.cycles
    assert made._library.rig_run(ctypes.byref(setup)) == 0
    assert made.shared.cycles > before
    assert ring.written == written


def test_the_end_of_a_supervisor_stops_the_loop_and_releases_what_holds(loop):
    made, drives, links, ring = loop
    made.start(drives, links, ring, 0, False)
    assert made.runs
    assert not made.shared.release
    made.end()
    assert not made.runs
    assert made.shared.release == 1
    assert made.reason is Reason.ERROR


@pytest.mark.parametrize("reason", [Reason.OPERATOR, Reason.SIGNAL])
def test_a_stop_that_comes_while_python_prepares_ends_the_loop_before_its_first_command(
    reason, monkeypatch, loop
):
    made, drives, links, ring = loop
    for link in links:
        link.echoes = False
    one = CompiledController.__new__(CompiledController)
    one._c, one.rig, one.links, one.drives, one.ring = made, made.rig, links, drives, ring
    one.clock, one.latch, one.resets, one.quality = links.clock, mock.Mock(), False, Quality()
    one._arming, one._standstills = mock.Mock(), mock.Mock(has_slept=False)
    one._reason_outside = lambda now: reason
    one._supervise = lambda shared: setattr(shared, "heartbeat", shared.heartbeat + 1)
    monkeypatch.setattr(Controller, "_reason_of_drives", lambda self: Reason.NONE)
    monkeypatch.setattr(CompiledController, "_conclude", lambda self, shared: None)
    one.rig = dataclasses.replace(one.rig, loop=dataclasses.replace(one.rig.loop, priority=0))
    one._loop()
    rows, _, _ = ring.take(0)
    columns = ring.layout.views(rows)
    assert made.reason is reason
    assert set(columns["state"][:, 0]) == {State.STOP}
    assert not columns["torque"].any()


def test_the_reference_is_copied_before_drives_are_armed(monkeypatch):
    """A long one takes longer than their watchdogs last."""
    rig = load_rig(EXAMPLES / ROVER)
    law = rig.task.law
    plan = sample_plan(rig.task, law, rig.loop.period, 0.2)
    monkeypatch.setattr("hil.spine._loop.build", lambda *_, **__: None)
    monkeypatch.setattr("hil.spine._loop.ctypes.CDLL", lambda _: None)
    made = LoopInC(rig, law, Layout.of([axis.name for axis in rig.axes], law), plan)
    expected = np.hstack([plan.pose, plan.twist, plan.acceleration])
    assert (made._table == expected).all()
    assert made._table.flags.c_contiguous


def test_statistics_have_what_links_and_drives_rejected():
    bins, quality = [0] * BINS, Quality()
    shared = SimpleNamespace(
        **{"cycles": 9, "skipped": 1, "invalid": 4, "rejected": 3, "lateness": bins},
        **{"compute": bins, "transfer": bins, "latest": 0.1, "slowest": 0.2, "busiest": 0.3},
        output=SimpleNamespace(late=2, lost=5, clipped=6),
    )
    count(shared, quality)
    assert (quality.cycles, quality.skipped, quality.late, quality.lost) == (9, 1, 2, 5)
    assert (quality.clipped, quality.invalid, quality.refused) == (6, 4, 3)
    assert quality.transfer.largest == 0.3
