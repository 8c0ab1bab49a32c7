"""All links of a rig together: whose frame comes, how long is waited, and what is closed."""

from __future__ import annotations

import dataclasses
import functools
import json
import shutil
import time

import can
import pytest
from typer.testing import CliRunner

from hil.bus import Bus
from hil.cli import main
from hil.clock import MonotonicClock, SteppedClock
from hil.controller._exchange import Exchange
from hil.drives import make_drives
from hil.emulator import World
from hil.errors import BusError
from hil.links import KINDS, LinkKind, Links, kind_of, may_have_drives, open_links
from hil.reasons import Reason
from hil.record import Record
from hil.record.copies import recorded_rig
from hil.record.manifest import make_manifest
from hil.record.rows import Layout
from hil.replay import replay
from hil.rig import BusSettings, load_rig
from tests.hil.bench import EXAMPLES, ROVER, Bench, divided, law_of, rig_of
from tests.ports import free_udp_port


def frame(identifier):
    return can.Message(arbitration_id=identifier, data=b"1", is_extended_id=False)


@pytest.fixture(params=["stepped", "virtual", "datagram"])
def ends(request):
    """Two links of a rig, with their other ends."""
    clock = SteppedClock() if request.param == "stepped" else MonotonicClock()
    if request.param == "datagram":
        ways = [("datagram", str(free_udp_port())) for _ in range(2)]
    else:
        ways = [("virtual", f"{request.node.name}-{k}") for k in range(2)]
    rig = rig_of()
    axes = [
        dataclasses.replace(axis, bus="one" if k < 2 else "two") for k, axis in enumerate(rig.axes)
    ]
    buses = [BusSettings(*way, name=name) for way, name in zip(ways, ("one", "two"), strict=True)]
    rig = dataclasses.replace(rig, axes=tuple(axes), buses=tuple(buses))
    with open_links(rig, clock) as near, open_links(rig, clock) as far:
        yield near, far


def test_frames_come_with_the_link_on_which_they_came(ends):
    near, far = ends
    assert near.bus_of == (0, 0, 1, 1, 1)
    assert near.of(1) is near[0]
    assert near.of(2) is near[1]
    for k in (1, 0, 1):
        assert far[k].send(frame(0x100 + k))
        found = near.receive(near.clock.now() + 1.0)
        assert (found[0], found[1].arbitration_id) == (k, 0x100 + k)
    assert near.receive() is None


def test_a_babbling_node_does_not_mute_the_other_link(ends):
    near, far = ends
    for _ in range(50):
        far[0].send(frame(0x100))
    far[1].send(frame(0x200))
    time.sleep(0.01)
    assert 1 in [near.receive()[0] for _ in range(3)]


def test_a_wait_ends_at_its_instant(ends):
    near, _ = ends
    until = near.clock.now() + 0.02
    assert near.receive(until) is None
    assert until <= near.clock.now() < until + 0.2


def test_an_instant_that_passes_before_the_wait_ends_it(ends):
    near, _ = ends

    class Late(MonotonicClock):
        def __init__(self):
            super().__init__()
            self.late, self.calls = 0.0, 0

        def now(self):
            self.calls += 1
            if self.calls == 4:  # after that of the argument, and two of `receive`
                self.late = 1.0
            return super().now() + self.late

    near.clock = Late()
    assert near.receive(near.clock.now() + 0.5) is None


@pytest.mark.parametrize("k", [0, 1])
def test_links_are_closed_after_one_whose_closing_fails(ends, monkeypatch, k):
    near, _ = ends
    closed = []

    def close(own, fails):
        closed.append(own)
        if fails:
            raise OSError("unplugged")

    with monkeypatch.context() as patch:
        for own in range(2):
            patch.setattr(near[own], "close", functools.partial(close, own, own == k))
        with pytest.raises(OSError, match="unplugged"):
            near.close()
    assert sorted(closed) == [0, 1]


def test_a_clock_that_stands_still_ends_a_wait(ends):
    near, _ = ends

    class Still:
        now, sleep_until, asleep = lambda self: 1.0, lambda self, _: None, lambda self: 0.0

    near.clock = Still()
    assert near.receive(2.0) is None


def test_silence_and_counters_are_those_of_all(ends):
    near, _ = ends
    near.silent = True
    assert near[0].silent
    assert near[1].silent
    assert near.silent
    near[0].silent = False
    assert not near.silent
    near[0].refused, near[1].refused = 2, 3
    assert near.refused == 5
    assert near.off == -1
    near[1]._refused_in_row = 1000
    assert near.off == 1
    near[0].echoes, near[1].echoes = False, None
    assert near.echo
    near[1].echoes = False
    assert not near.echo


def test_one_link_that_does_not_open_closes_the_others(monkeypatch):
    closed = []
    monkeypatch.setattr(Bus, "close", lambda self: closed.append(self.bus.shutdown()))
    rig = divided(rig_of(), 2)
    broken = dataclasses.replace(rig.buses[1], interface="no such interface")
    with pytest.raises(BusError, match="bus `bus1`, interface `no such interface`"):
        open_links(dataclasses.replace(rig, buses=(rig.buses[0], broken)))
    assert len(closed) == 1


def test_one_bus_that_may_have_motors_is_enough():
    rig = divided(rig_of(), 2)
    assert not may_have_drives(rig)
    real = dataclasses.replace(rig.buses[1], interface="socketcan", channel="can0")
    assert may_have_drives(dataclasses.replace(rig, buses=(rig.buses[0], real)))


def test_a_further_kind_of_link_is_opened_by_its_interface(monkeypatch):
    opened = []

    def open_wire(settings, clock):
        opened.append(settings.channel)
        return Bus(can.Bus(interface="virtual", channel=settings.channel), clock)

    monkeypatch.setitem(KINDS, "wire", LinkKind(open_wire, lambda settings: False))
    settings = BusSettings("wire", "eth0")
    rig = dataclasses.replace(load_rig(EXAMPLES / ROVER), buses=(settings,))
    assert kind_of(settings).open is open_wire
    assert not may_have_drives(rig)
    with open_links(rig) as links:
        assert isinstance(links, Links)
    assert opened == ["eth0"]


# -- runs ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("buses", [2, 5])
def test_a_run_on_several_buses_is_that_on_one(buses):
    """Emulated links delay all frames alike: the same reports, so the same torques."""
    with Bench(duration=0.2) as one, Bench(rig=divided(rig_of(), buses), duration=0.2) as several:
        assert one.run().reason is several.run().reason is Reason.END
        assert len(several.world.buses) == buses
        steady = slice(one.begun, one.stopped)
        assert one["torque"][steady].any()
        number = one.stopped - one.begun
        there = slice(several.begun, several.begun + number)
        assert (several["torque"][there] == one["torque"][steady]).all()


@pytest.mark.parametrize("bus", [0, 1])
def test_a_dead_bus_stops_the_rig_and_is_named(bus):
    with Bench(rig=divided(rig_of(), 2)) as bench:
        bench.at(20, setattr, bench.links[bus], "_off_since_error_frame", True)
        outcome = bench.run()
    assert outcome.reason is Reason.BUS_OFF
    assert outcome.detail.startswith(f"bus `bus{bus}`")


def test_a_bus_that_refuses_commands_is_named():
    with Bench(rig=divided(rig_of(), 2)) as bench:
        send = bench.links[1].bus.send

        def refuse(frame, timeout=None):
            if 0x200 < frame.arbitration_id < 0x280:
                raise can.CanOperationError("full")
            send(frame, timeout)

        bench.at(20, setattr, bench.links[1].bus, "send", refuse)
        outcome = bench.run()
    assert outcome.reason is Reason.BUS_OFF
    assert outcome.detail.startswith("bus `bus1`")


def test_another_host_on_one_bus_stops_the_rig_and_the_bus_is_named():
    rig = divided(rig_of(), 2)
    with Bench(rig=rig) as bench, can.Bus(interface="virtual", channel=rig.buses[1].channel) as spy:
        node = rig.axes[4].node
        bench.at(
            20,
            spy.send,
            can.Message(arbitration_id=0x200 + node, data=bytes(4), is_extended_id=False),
        )
        outcome = bench.run()
    assert outcome.reason is Reason.FOREIGN
    assert outcome.detail.startswith("bus `bus1`")


def test_a_frame_on_another_bus_is_no_report_of_an_axis():
    """The number of a node counts on its own bus."""
    rig = divided(rig_of(), 2)
    with Bench(rig=rig) as bench, can.Bus(interface="virtual", channel=rig.buses[0].channel) as spy:
        node = rig.axes[4].node
        bench.at(
            20,
            spy.send,
            can.Message(arbitration_id=0x180 + node, data=bytes(8), is_extended_id=False),
        )
        outcome = bench.run()
    assert outcome.reason is Reason.END


def test_drives_of_a_world_hear_their_own_bus_only():
    rig, clock = divided(rig_of(), 2), SteppedClock()
    with World(rig, clock) as world, open_links(rig, clock) as links:
        clock.sleep_until(clock.now() + 0.1)
        node = rig.axes[4].node
        before = world.delivered
        links[0].send(
            can.Message(
                arbitration_id=0x600 + node, data=b"\x40\x41\x60\x00\0\0\0\0", is_extended_id=False
            )
        )
        clock.sleep_until(clock.now() + 0.05)
        assert (world.delivered, world.ignored) == (before, 1)
        links[1].send(
            can.Message(
                arbitration_id=0x600 + node, data=b"\x40\x41\x60\x00\0\0\0\0", is_extended_id=False
            )
        )
        clock.sleep_until(clock.now() + 0.05)
        assert world.delivered == before + 1


def test_a_rig_on_one_of_its_buses_has_the_axes_of_this_bus():
    rig = divided(rig_of(), 2)
    parts = [rig.on(k) for k in range(2)]
    assert [part.buses for part in parts] == [(bus,) for bus in rig.buses]
    assert parts[0].axes + parts[1].axes == rig.axes
    assert [part.bus_of for part in parts] == [(0,) * 3, (0,) * 2]


def test_the_frames_that_open_a_cycle_are_those_of_the_drives_of_a_bus():
    """ODrives are asked one by one, each on its own bus."""
    rig = divided(load_rig(EXAMPLES / "rover_rig/rig_odrive.toml"), 2)
    rig = dataclasses.replace(
        rig, buses=tuple(dataclasses.replace(b, interface="virtual", options={}) for b in rig.buses)
    )
    with open_links(rig, SteppedClock()) as links, open_links(rig, SteppedClock()) as far:
        Exchange(rig, make_drives(rig), links, talks=True).take(links.clock.now())
        nodes = [set(), set()]
        for k, link in enumerate(far):
            while (came := link.bus.recv(0)) is not None:
                nodes[k].add(came.arbitration_id >> 5)
    assert nodes == [{axis.node for axis in rig.on(k).axes} for k in range(2)]


def test_a_record_names_the_buses_and_their_axes():
    rig = divided(rig_of(), 2)
    law = law_of(ROVER)[0]
    layout = Layout.of([axis.name for axis in rig.axes], law)
    buses = make_manifest(rig, layout, law)["buses"]
    assert [bus["name"] for bus in buses] == ["bus0", "bus1"]
    assert [axis for bus in buses for axis in bus["axes"]] == [axis.name for axis in rig.axes]
    assert [bus["channel"] for bus in buses] == [bus.channel for bus in rig.buses]


TWO = """[[bus]]
name = "base"
interface = "{interface}"
{first}

[[bus]]
name = "arm"
interface = "{interface}"
{second}

"""


@pytest.mark.extended
@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize(("interface", "place"), [("datagram", "C"), ("udp_multicast", "Python")])
def test_an_emulated_rig_on_two_buses_is_driven_and_replayed(interface, place, tmp_path):
    """By the command, with drives in another process."""
    folder = tmp_path / "rig"
    shutil.copytree((EXAMPLES / ROVER).parent, folder)
    text = (folder / "rig.toml").read_text(encoding="utf-8")
    ports = [free_udp_port() for _ in range(2)]
    ways = [f'channel = "{port}"' for port in ports]
    if interface != "datagram":
        ways = [f'channel = "239.74.163.5"\noptions = {{ port = {port} }}' for port in ports]
    begin = text.index("[bus]")
    end = text.index("\n[", begin) + 1
    buses = TWO.format(interface=interface, first=ways[0], second=ways[1])
    text = text[:begin] + buses + text[end:]
    for axis in load_rig(EXAMPLES / ROVER).axes:
        bus = "base" if "wheel" in axis.name else "arm"
        name = f'name = "{axis.name}"'
        assert text.count(name) == 1
        text = text.replace(name, f'bus = "{bus}"\n{name}')
    (folder / "rig.toml").write_text(text, encoding="utf-8")
    words = ["drive", str(folder / "rig.toml"), "--emulate", "--yes", "--duration", "1"]
    done = CliRunner().invoke(main, [*words, "--out", str(tmp_path / "record"), "--json"])
    told = json.loads(done.stdout)
    assert told["reason"] == "END", told
    assert told["loop"].partition(":")[0] == place
    record = Record.load(tmp_path / "record")
    report = replay(record, recorded_rig(tmp_path / "record", record.manifest, False))
    assert report.passed
    assert not report.differences
