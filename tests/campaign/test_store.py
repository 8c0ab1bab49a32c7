"""Results files: interrupted anywhere, damaged anywhere, of another campaign, in use."""

import json
import os

import h5py
import numpy as np
import pytest

from concur.campaign import _verify
from concur.campaign._store import opened
from concur.campaign._verify import run
from concur.errors import ConcurError, DescriptionError
from tests.campaign._evaluators import Quick, drawn

NUMBERS, WORLDS = drawn(8, 2)


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


def evaluated(path, evaluator=None, count=8):
    evaluator = evaluator or Counting()
    with opened(path, evaluator, WORLDS[:count]) as store:
        return run(evaluator, NUMBERS[:count], WORLDS[:count], store=store)[0]


@pytest.fixture(autouse=True)
def synced(monkeypatch):
    """Count calls that wait for the disk, without waiting; blocks have two worlds."""
    calls = []
    monkeypatch.setattr(_verify, "block_size", lambda worlds, count: 2)
    monkeypatch.setattr(os, "fsync", calls.append)
    return calls


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A results file of eight worlds in four blocks, with one look."""
    path = tmp_path_factory.mktemp("campaign") / "worlds.h5"
    values = evaluated(path)
    with opened(path, Counting(), WORLDS) as store:
        store.look(8)
    return path.read_bytes(), values.tobytes()


def test_file_goes_on_after_any_part_of_a_block(whole, tmp_path):
    data, expected = whole
    path = tmp_path / "worlds.h5"
    with opened(path, Counting(), WORLDS) as store:
        store.look(8)
        empty = path.read_bytes()
    places = [place for place in range(len(data)) if data[place] != empty[place]]
    assert len(places) > 8 * 8 * 3 * 0.9  # two values and a mark for each world
    seen = set()
    for written in [*range(0, len(places), 5), len(places)]:
        torn = bytearray(empty)
        for place in places[:written]:
            torn[place] = data[place]
        path.write_bytes(torn)
        evaluator = Counting()
        assert evaluated(path, evaluator).tobytes() == expected
        assert len(set(evaluator.seen)) == len(evaluator.seen)
        seen.add(len(evaluator.seen))
        again = Counting()
        assert evaluated(path, again).tobytes() == expected
        assert again.seen == []
    assert {8, 0} <= seen


def test_no_flipped_byte_changes_a_value_or_a_look(whole, tmp_path):
    data, expected = whole
    path, refused, repaired = tmp_path / "worlds.h5", 0, 0
    for place in range(0, len(data), 47):
        damaged = bytearray(data)
        damaged[place] ^= 1 << place % 8
        path.write_bytes(damaged)
        evaluator = Counting()
        try:
            assert evaluated(path, evaluator).tobytes() == expected
        except ConcurError:
            refused += 1
            assert path.read_bytes() == damaged  # and the file is left alone
            continue
        repaired += bool(evaluator.seen)
        with opened(path, Counting(), WORLDS) as store:
            assert store.looks == {8}
    assert refused > 10
    assert repaired > 3


def test_results_of_another_campaign_are_refused_with_what_differs(whole, tmp_path):
    path = tmp_path / "worlds.h5"
    path.write_bytes(whole[0])

    class Other(Counting):
        @property
        def facts(self):
            return {"law": "b", "seed": "0", "gains": "c"}

    with pytest.raises(DescriptionError, match=r"`gains` .*`law` .a instead of b.") as caught:
        evaluated(path, Other())
    assert caught.value.fields == ("gains", "law")
    Other.columns, Other.facts = ("sum", "wave", "more"), Counting.facts
    with pytest.raises(DescriptionError) as caught:
        evaluated(path, Other())
    assert caught.value.fields == ("columns",)
    with (
        pytest.raises(ConcurError, match="other worlds with the same numbers"),
        opened(path, Counting(), WORLDS + 1.0),
    ):
        pass
    with pytest.raises(DescriptionError), opened(path, Counting(), WORLDS[:, :1]):
        pass
    assert path.read_bytes() == whole[0]


def _changed(path, name, value):
    with h5py.File(path, "r+") as file:
        del file[name]
        if value is not None:
            file[name] = value


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("campaign", text) for text in ("5", "[]", "law", '{"seed": 0}', "[" * 100_000)),
        *((name, None) for name in ("campaign", "worlds", "values", "marks", "looks")),
        ("marks", np.zeros(7, dtype="u8")),
        ("values", np.zeros((8, 3))),
        ("looks", np.zeros(8, dtype="u8")),
        ("looks", np.ones(9, dtype="u8")),
        ("worlds", "text"),
    ],
)
def test_forged_files_are_refused(whole, tmp_path, name, value):
    path = tmp_path / "worlds.h5"
    path.write_bytes(whole[0])
    _changed(path, name, value)
    before = path.read_bytes()
    with pytest.raises(DescriptionError) as caught:
        evaluated(path)
    assert caught.value.file == str(path)
    assert path.read_bytes() == before
    path.write_bytes(b"something else" * 9)
    with pytest.raises(DescriptionError, match="another file"):
        evaluated(path)


def test_forged_values_are_evaluated_again(whole, tmp_path):
    path, evaluator = tmp_path / "worlds.h5", Counting()
    path.write_bytes(whole[0])
    with h5py.File(path, "r+") as file:
        assert json.loads(file["campaign"][()])["law"] == "a"
        file["values"][2:4] = file["values"][4:6]
        file["marks"][2:4] = file["marks"][4:6]  # marks of other worlds
    assert evaluated(path, evaluator).tobytes() == whole[1]
    assert sorted(evaluator.seen) == [2, 3]


def test_more_and_fewer_worlds_of_one_campaign_and_their_looks(whole, tmp_path):
    path = tmp_path / "worlds.h5"
    first = evaluated(path, count=5)
    for look in (5, 5, 3):
        with opened(path, Counting(), WORLDS[:5]) as store:
            store.look(look)
    more, none = Counting(), Counting()
    assert evaluated(path, more).tobytes() == whole[1]
    assert sorted(more.seen) == [5, 6, 7]
    assert evaluated(path, none, 5).tobytes() == first.tobytes()
    assert none.seen == []
    with opened(path, Counting(), WORLDS[:4]) as store:
        assert store.looks == {3, 5}
        assert len(store.known) == 8


def test_one_campaign_writes_a_file_at_a_time(tmp_path):
    path = tmp_path / "worlds.h5"
    with opened(path, Counting(), WORLDS), pytest.raises(ConcurError, match="another process"):
        evaluated(path)
    evaluated(path)
    with pytest.raises(ConcurError, match="a file that can be written"):
        evaluated(tmp_path / "nowhere" / "worlds.h5")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(DescriptionError, match="a pipe"):
        evaluated(tmp_path / "pipe")
    assert {one.name for one in tmp_path.iterdir()} == {"worlds.h5", "pipe"}


def test_each_block_is_on_the_disk_before_the_next_counts(tmp_path, synced):
    with opened(tmp_path / "worlds.h5", Counting(), WORLDS) as store:
        before = len(synced)
        run(Counting(), NUMBERS, WORLDS, store=store)
    assert len(synced) == before + 4


def test_values_keep_all_their_bits_and_worlds_may_have_no_numbers(tmp_path):
    odd = np.array([[np.nan, -0.0], [np.inf, 5e-324]])

    class Odd(Counting):
        def outcome(self, numbers, worlds):
            self.seen += numbers.tolist()
            return odd[numbers], {}

    for seen in ([0, 1], []):
        evaluator = Odd()
        with opened(tmp_path / "worlds.h5", evaluator, WORLDS[:2, :0]) as store:
            found = run(evaluator, NUMBERS[:2], WORLDS[:2, :0], store=store)[0]
        assert found.tobytes() == odd.tobytes()
        assert evaluator.seen == seen
