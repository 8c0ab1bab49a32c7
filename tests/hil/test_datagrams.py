"""Datagrams: flat maps are read as the library reads them; anything else costs next to nothing."""

import time

import msgpack
import pytest

from hil._datagrams import unpack_map

FIFTEEN = {f"n{k}": k for k in range(15)}


@pytest.mark.parametrize(
    "message",
    [
        {},
        {"kind": "heartbeat", "echo": b"x" * 24, "mac": b"y" * 32},
        {"time": 1.5, "position": [1.0, -2.0, 3e300], "orientation": [0, 0, 0, 1], "sequence": -7},
        {"none": None, "truth": True, "": [], "long": "x" * 300, "big": 2**63, "mixed": [1, "a"]},
        {"fifteen": list(range(15))},
        FIFTEEN,
    ],
)
def test_flat_maps_are_read(message):
    assert unpack_map(msgpack.packb(message)) == message


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x81",
        b"\x81\xa1x",
        b"\xc1",
        b"text",
        msgpack.packb([1, 2]),
        msgpack.packb({"x": 1}) + b"\0",
        msgpack.packb({"x": 1})[:-1],
        msgpack.packb({"x": {}})[:-1] + b"\x81\x00\x00",
        msgpack.packb({"x": [[1]]}),
        msgpack.packb({"x": list(range(16))}),
        msgpack.packb({**FIFTEEN, "x": 1}),
        msgpack.packb({"x": msgpack.Timestamp(1, 1)}),
        b"\x81\xa2\xff\xff\x00",  # no UTF-8
        b"\x81\x92\x01\x02\x00",  # a list as a name
    ],
)
def test_anything_else_is_refused(data):
    assert unpack_map(data) is None


@pytest.mark.parametrize(
    "data", [b"\x91" * 512, b"\x81\x00" * 256, b"\x81" * 512, b"\x81\x00" + b"\x91" * 510]
)
def test_nesting_costs_no_more_than_reading(data):
    plain = msgpack.packb({"kind": "heartbeat", "echo": b"x" * 24, "mac": b"y" * 32})

    def cost(datagram):
        spent = []
        for _ in range(50):
            start = time.process_time_ns()
            for _ in range(20):
                unpack_map(datagram)
            spent.append(time.process_time_ns() - start)
        return min(spent)

    assert unpack_map(data) is None
    assert cost(data) < 5 * cost(plain)
