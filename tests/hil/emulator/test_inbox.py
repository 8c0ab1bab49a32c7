"""The inbox of a listener on a bus with others."""

import random
import socket
import sys

import can
import msgpack
import pytest

from hil.emulator._inbox import Inbox
from tests.hil.emulator._rigs import frame

IDENTIFIERS = [0x000, 0x001, 0x07F, 0x080, 0x085, 0x0FF, 0x100, 0x205, 0x585, 0x605, 0x77F, 0x7FF]


@pytest.fixture
def buses():
    port = random.SystemRandom().randrange(20_000, 60_000)
    opened = [
        can.Bus(interface="udp_multicast", channel="239.74.163.2", port=port) for _ in range(2)
    ]
    yield port, *opened
    for bus in opened:
        bus.shutdown()


def taken(inbox, heard):
    kept, others = [], 0
    while (came := inbox.take(0.1, heard)) is not False:
        if came is True:
            others += 1
        else:
            kept.append(came)
    return kept, others


@pytest.mark.parametrize(
    "heard",
    [{0x000}, {0x080, 0x205}, {0x7FF}, set(), {0x000, 0x080, 0x205, 0x605, 0x77F}, {0x85, 0x07F}],
)
def test_only_requested_frames_are_received(buses, heard):
    _, sender, listener = buses
    inbox, heard = Inbox(listener, "udp_multicast"), frozenset(heard)
    assert inbox.take(0.0, heard) is False
    for identifier in IDENTIFIERS:
        sender.send(frame(identifier, identifier.to_bytes(2, "big")))
    kept, others = taken(inbox, heard)
    assert [message.arbitration_id for message in kept] == sorted(heard)
    assert all(int.from_bytes(m.data, "big") == m.arbitration_id for m in kept)
    if sys.platform == "linux":
        assert inbox.filtered
        assert others == 0
    inbox.close()


def test_it_can_ask_for_something_else(buses):
    _, sender, listener = buses
    inbox = Inbox(listener, "udp_multicast")
    for heard in (frozenset({0x205}), frozenset({0x605}), frozenset({0x205, 0x605})):
        inbox.take(0.0, heard)
        sender.send(frame(0x205))
        sender.send(frame(0x605))
        assert {m.arbitration_id for m in taken(inbox, heard)[0]} == heard
    inbox.close()


def test_datagrams_that_are_no_frames_are_passed_over(buses):
    port, sender, listener = buses
    inbox, heard = Inbox(listener, "udp_multicast"), frozenset({0x205})
    inbox.take(0.0, heard)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        for data in (b"", b"\x8b", b"hello", msgpack.packb([1]), msgpack.packb({"a": 1})):
            stranger.sendto(data, ("239.74.163.2", port))
        wrong = {"timestamp": 0.0, "arbitration_id": 0x205, "data": "text", "speed": 3}
        stranger.sendto(msgpack.packb(wrong), ("239.74.163.2", port))
    sender.send(frame(0x205, b"\x01"))
    kept, _ = taken(inbox, heard)
    assert [bytes(message.data) for message in kept] == [b"\x01"]
    inbox.close()


def test_other_buses_are_read_as_they_are():
    with (
        can.Bus(interface="virtual", channel="inbox") as sender,
        can.Bus(interface="virtual", channel="inbox") as listener,
    ):
        inbox, heard = Inbox(listener, "virtual"), frozenset({0x205})
        sender.send(frame(0x605))
        sender.send(frame(0x205))
        kept, others = taken(inbox, heard)
        assert [message.arbitration_id for message in kept] == [0x205]
        assert others == 1
        inbox.close()
