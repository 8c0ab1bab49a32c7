"""The file of rows: any damage costs the chunks it hits, and no others."""

import errno
import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hil.record import _chunks as chunks
from hil.record._chunks import ROWS, Chunk, ChunkFile, Damage, pack, scan
from tests.hil._records import SMALL, numbered

COUNTS = (3, 1, 7, 2, 5)


def write_file(path, counts=COUNTS):
    file, first = ChunkFile(path, SMALL.to_dict(), SMALL.width), 0
    ends = []
    for count in counts:
        file.write(first, numbered(SMALL, first, count).data.cast("B"))
        first += count
        ends.append(path.stat().st_size)
    file.sync()
    file.close()
    return ends


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    path = tmp_path_factory.mktemp("chunks") / "rows.bin"
    ends = write_file(path)
    return path.read_bytes(), ends


def rows_in(data):
    found = {}
    for part in scan(data):
        if isinstance(part, Chunk) and part.kind == ROWS:
            rows = np.frombuffer(data[part.start : part.end]).reshape(-1, SMALL.width)
            found[part.first] = rows
    return found


def damage_in(data):
    return [part for part in scan(data) if isinstance(part, Damage)]


def test_all_rows_are_there(written):
    data, _ = written
    assert not damage_in(data)
    rows = np.concatenate(list(rows_in(data).values()))
    np.testing.assert_array_equal(rows, numbered(SMALL, 0, sum(COUNTS)))


def test_a_file_cut_anywhere_loses_no_whole_chunk(written):
    data, ends = written
    first = next(part for part in scan(data) if isinstance(part, Chunk)).end
    for size in range(len(data)):
        whole = sum(end <= size for end in ends)
        cut = data[:size]
        found = rows_in(cut)
        assert list(found) == [sum(COUNTS[:k]) for k in range(whole)]
        border = size in (0, first, *ends)
        assert len(damage_in(cut)) == (0 if border else 1)
        if not border:
            assert damage_in(cut)[0].end == size


@given(place=st.integers(0), bit=st.integers(0, 7))
def test_a_changed_bit_costs_one_chunk(written, place, bit):
    data, ends = written
    place %= len(data)
    changed = bytearray(data)
    changed[place] ^= 1 << bit
    (damage,) = damage_in(changed)
    assert damage.start <= place < damage.end
    intact = rows_in(data)
    found = rows_in(bytes(changed))
    assert len(found) >= len(intact) - 1
    for first, rows in found.items():
        np.testing.assert_array_equal(rows, intact[first])
    hit = sum(end <= place for end in ends)
    if place >= next(part for part in scan(data) if isinstance(part, Chunk)).end:
        assert set(intact) - set(found) == {sum(COUNTS[:hit])}


@given(data=st.binary(max_size=300))
def test_rubbish_is_damage_and_never_an_error(data):
    parts = list(scan(data))
    assert all(isinstance(part, Damage) for part in parts)
    assert sum(part.end - part.start for part in parts) == len(data)


def test_a_chunk_inside_the_rows_of_a_damaged_one_is_no_trap(written):
    # The payload of a chunk holds the bytes of a magic number: the search continues after it.
    payload = bytearray(numbered(SMALL, 0, 4).tobytes())
    payload[16:20] = chunks.MAGIC
    inner = b"".join(bytes(part) for part in pack(ROWS, 0, bytes(payload)))
    data = bytearray(inner + inner)
    data[40] ^= 1
    parts = list(scan(data))
    assert [type(part) for part in parts] == [Damage, Chunk]
    assert parts[0].end == len(inner)


def test_a_magic_number_on_the_border_of_two_searched_pieces_is_found(monkeypatch, written):
    data, _ = written
    for piece in range(1, 9):
        monkeypatch.setattr(chunks, "LARGEST", piece)
        for lead in (1, 2, 5):
            assert len(rows_in(b"\0" * lead + data)) == len(COUNTS)


def test_appending_continues_after_the_last_valid_chunk(tmp_path, written):
    data, ends = written
    path = tmp_path / "rows.bin"
    for size in (ends[2] + 10, ends[2], ends[1] - 1, 0, 3):
        path.write_bytes(data[:size])
        file = ChunkFile(path, SMALL.to_dict(), SMALL.width)
        first = file.next
        assert first == sum(COUNTS[: sum(end <= size for end in ends)])
        file.write(first, numbered(SMALL, first, 6).data.cast("B"))
        file.close()
        after = path.read_bytes()
        assert not damage_in(after)
        rows = np.concatenate(list(rows_in(after).values()))
        np.testing.assert_array_equal(rows, numbered(SMALL, 0, first + 6))


def test_many_rows_are_split_into_chunks(tmp_path, monkeypatch):
    monkeypatch.setattr(chunks, "LARGEST", 4 * 8 * SMALL.width + 3)
    path = tmp_path / "rows.bin"
    write_file(path, (10, 1))
    assert [len(rows) for rows in rows_in(path.read_bytes()).values()] == [4, 4, 2, 1]


def test_a_full_disk_leaves_whole_chunks_and_the_rest_may_come_later(tmp_path, monkeypatch):
    path = tmp_path / "rows.bin"
    file = ChunkFile(path, SMALL.to_dict(), SMALL.width)
    file.write(0, numbered(SMALL, 0, 3).data.cast("B"))
    size = path.stat().st_size
    real, room = os.pwrite, 40

    def short(descriptor, view, place):
        # A disk that takes a few more bytes and then none.
        if place + 1 > size + room:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(descriptor, view[: size + room - place], place)

    monkeypatch.setattr(os, "pwrite", short)
    rows = numbered(SMALL, 3, 2)
    with pytest.raises(OSError, match="No space"):
        file.write(3, rows.data.cast("B"))
    assert path.stat().st_size == size
    assert file.next == 3
    monkeypatch.setattr(os, "pwrite", real)
    file.write(3, rows.data.cast("B"))
    file.close()
    found = np.concatenate(list(rows_in(path.read_bytes()).values()))
    np.testing.assert_array_equal(found, numbered(SMALL, 0, 5))
