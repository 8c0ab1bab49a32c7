"""Results files: cut off anywhere, damaged anywhere, of another campaign, in use."""

import os
import struct

import numpy as np
import pytest

from concur.errors import ConcurError, DescriptionError
from concur.verification._run import run
from concur.verification._store import _MAGIC, _record, opened
from tests.verification._evaluators import Quick, drawn

NUMBERS, WORLDS = drawn(8, 2)


def evaluated(path, evaluator, count=8, block=2):
    with opened(path, evaluator, WORLDS.shape[1]) as store:
        return run(evaluator, NUMBERS[:count], WORLDS[:count], block=block, store=store)


class Counting(Quick):
    """Remembers the worlds that it has evaluated."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def at(self, number):
        self.seen.append(number)

    @property
    def facts(self):
        return {"law": "a", "seed": "0"}


@pytest.fixture(autouse=True)
def synced(monkeypatch):
    """Count calls that wait for the disk, without waiting."""
    calls = []
    monkeypatch.setattr(os, "fsync", calls.append)
    return calls


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A results file of eight worlds in four blocks."""
    path = tmp_path_factory.mktemp("campaign") / "worlds.bin"
    table = evaluated(path, Counting())
    return path.read_bytes(), table.encoded()


@pytest.mark.extended
def test_file_goes_on_wherever_it_was_cut_off(whole, tmp_path):
    data, expected = whole
    path, evaluations = tmp_path / "worlds.bin", set()
    for length in range(len(data) + 1):
        path.write_bytes(data[:length])
        evaluator = Counting()
        assert evaluated(path, evaluator).encoded() == expected, length
        # Blocks that were whole are not evaluated again, and the file is as if nothing had been.
        assert len(set(evaluator.seen)) == len(evaluator.seen)
        evaluations.add(len(evaluator.seen))
        with opened(path, evaluator, WORLDS.shape[1]) as store:
            assert store.table.encoded() == expected
        assert len(path.read_bytes()) == len(data)
    assert evaluations == {0, 2, 4, 6, 8}


def test_every_flipped_byte_is_noticed(whole, tmp_path):
    data, _ = whole
    path = tmp_path / "worlds.bin"
    for place in range(len(data)):
        damaged = bytearray(data)
        damaged[place] ^= 1 << place % 8
        path.write_bytes(damaged)
        with pytest.raises(DescriptionError, match="expected the results of this campaign"):
            evaluated(path, Counting())
        assert path.read_bytes() == damaged  # and the file is left alone


def test_what_is_before_the_damage_can_be_kept_as_the_error_says(whole, tmp_path):
    data, expected = whole
    path = tmp_path / "worlds.bin"
    path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    with pytest.raises(DescriptionError, match=r"truncate -s \d+ ") as caught:
        evaluated(path, Counting())
    os.truncate(path, int(caught.value.cure.split("truncate -s ")[1].split()[0]))
    evaluator = Counting()
    assert evaluated(path, evaluator).encoded() == expected
    assert len(evaluator.seen) == 2


def test_results_of_another_campaign_are_refused_with_what_differs(whole, tmp_path):
    path = tmp_path / "worlds.bin"
    path.write_bytes(whole[0])

    class Other(Counting):
        @property
        def facts(self):
            return {"law": "b", "seed": "0", "gains": "c"}

    with pytest.raises(DescriptionError, match=r"`law` .a instead of b., `gains`") as caught:
        evaluated(path, Other())
    assert caught.value.fields == ("law", "gains")
    Other.columns, Other.facts = ("sum", "wave", "more"), Counting.facts
    with pytest.raises(DescriptionError) as caught:
        evaluated(path, Other())
    assert caught.value.fields == ("columns",)
    path.write_bytes(b"something else, longer than a header would be" * 9)
    with pytest.raises(DescriptionError, match="another file"):
        evaluated(path, Counting())
    path.write_bytes(whole[0])
    other = pytest.raises(ConcurError, match="other worlds with the same numbers")
    with opened(path, Counting(), 2) as store, other:
        run(Counting(), NUMBERS, WORLDS + 1.0, store=store)
    assert path.read_bytes() == whole[0]


def test_more_and_fewer_worlds_of_one_campaign(whole, tmp_path):
    path = tmp_path / "worlds.bin"
    first = evaluated(path, Counting(), 5)
    assert first.numbers.tolist() == list(range(5))
    more = Counting()
    assert evaluated(path, more).encoded() == whole[1]
    assert sorted(more.seen) == list(range(5, 8))
    none = Counting()
    assert evaluated(path, none, 5).encoded() == first.encoded()
    assert none.seen == []


def test_rows_that_are_there_twice_count_once(whole, tmp_path):
    path, table = tmp_path / "worlds.bin", evaluated(tmp_path / "a.bin", Counting())
    with opened(path, Counting(), 2) as store:
        store.append(table)
        store.append(table)
    assert evaluated(path, Counting()).encoded() == whole[1]


def test_one_campaign_writes_a_file_at_a_time(tmp_path):
    path = tmp_path / "worlds.bin"
    with opened(path, Counting(), 2), pytest.raises(ConcurError, match="another process"):
        evaluated(path, Counting())
    evaluated(path, Counting())
    with pytest.raises(ConcurError, match="folder that can be written"):
        evaluated(tmp_path / "nowhere" / "worlds.bin", Counting())
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(DescriptionError, match="a pipe"):
        evaluated(tmp_path / "pipe", Counting())


def test_each_block_is_on_the_disk_before_the_next_counts(tmp_path, synced):
    evaluated(tmp_path / "worlds.bin", Counting(), block=4)
    assert len(synced) == 3  # the header and two blocks


def test_values_keep_all_their_bits(tmp_path):
    odd = np.array([[np.nan, -0.0], [np.inf, 5e-324]])

    class Odd(Counting):
        def evaluate(self, numbers, worlds):
            return odd[numbers]

    first = evaluated(tmp_path / "worlds.bin", Odd(), 2)
    assert first.values.tobytes() == odd.tobytes()
    assert evaluated(tmp_path / "worlds.bin", Odd(), 2).values.tobytes() == odd.tobytes()


def test_records_with_a_digest_and_another_content_are_damage(whole, tmp_path):
    path, (data, expected) = tmp_path / "worlds.bin", whole
    evaluated(path, Counting(), count=1)
    path.write_bytes(begin := path.read_bytes()[: data.index(b"ROWS")])
    assert evaluated(path, Counting()).encoded() == expected
    for crashes in (b"5", b"null", b"[1]", b"[[1e400, 2]]", b"[" * 100_000):
        sizes = struct.pack("<4Q", 0, WORLDS.shape[1], 2, len(crashes))
        path.write_bytes(begin + _record(b"ROWS", sizes + crashes))
        with pytest.raises(DescriptionError, match=f"a damaged record at byte {len(begin)}"):
            evaluated(path, Counting())
    for header in (b"5", b"[]", b"null", b"law", b"\xff", b'{"seed": 0}', b"[" * 100_000):
        path.write_bytes(_MAGIC + _record(b"HEAD", header) + data[len(begin) :])
        with pytest.raises(DescriptionError, match="another header"):
            evaluated(path, Counting())


def test_looks_stay_in_the_file(tmp_path):
    path, size = tmp_path / "worlds.bin", WORLDS.shape[1]
    evaluated(path, Counting(), count=4)
    lengths = []
    for look in (4, 4, 6):
        with opened(path, Counting(), size) as store:
            store.look(look)
        lengths.append(len(path.read_bytes()))
    assert lengths[0] == lengths[1] < lengths[2]
    evaluated(path, Counting(), count=8)
    data = path.read_bytes()
    with opened(path, Counting(), size) as store:
        assert store.looks == {4, 6}
        assert len(store.table) == 8
    # Of a look that was cut off nothing is left; one of another length is damage.
    path.write_bytes(data + _record(b"LOOK", struct.pack("<Q", 7))[:-1])
    with opened(path, Counting(), size) as store:
        assert store.looks == {4, 6}
    for forged in (_record(b"LOOK", b"\0"), _record(b"SEEN", struct.pack("<Q", 7))):
        path.write_bytes(data + forged)
        with (
            pytest.raises(DescriptionError, match="damaged record"),
            opened(path, Counting(), size),
        ):
            pass
