"""Reading of datagrams in the loop, in a time bounded by their length."""

from __future__ import annotations

from typing import Any

import msgpack

_MAP, _LIST = 0x80, 0x90
"""First bytes of short maps and lists, with the number of their entries in the last four bits."""


def unpack_map(data: bytes) -> dict[Any, Any] | None:
    """Read a msgpack map of up to 15 numbers, texts, and short lists of them; None if it differs.

    Nested lists can take the library up to a third of a millisecond per datagram: a flood of such
    datagrams would delay a cycle. Therefore nested data are rejected.
    """
    if not data or data[0] & 0xF0 != _MAP:
        return None
    found: dict[Any, Any] = {}
    try:
        reader = msgpack.Unpacker(
            max_buffer_size=len(data), max_map_len=0, max_array_len=0, max_ext_len=0
        )
        reader.feed(data)
        reader.read_bytes(1)
        for _ in range(data[0] & 0x0F):
            name = reader.unpack()
            first = data[reader.tell()]
            if first & 0xF0 == _LIST:
                reader.read_bytes(1)
                found[name] = [reader.unpack() for _ in range(first & 0x0F)]
            else:
                found[name] = reader.unpack()
        whole = reader.tell() == len(data)
    except Exception:  # the library raises many types for invalid bytes
        return None
    return found if whole else None
