"""Files of proofs: every entry is validated."""

from __future__ import annotations

import copy
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from concur.certify._status import Status
from concur.checker import recheck
from concur.errors import DescriptionError
from tests.certify._recheck_cases import GOOD, changed, numeric_places, rejected
from tests.certify._stored import (
    write,
)


@pytest.fixture
def file(tmp_path):
    return tmp_path / "proof.json"


@pytest.mark.parametrize("group", GOOD)
@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("overshoot",), 1.0),
        (("overshoot",), -9.0),
        (("channels", 0, "lower"), 0.0),
        (("channels", 0, "lower"), 2.0),
        (("channels", 0, "upper"), 0.5),
        (("channels", 0, "weight"), 0.0),
        (("channels", 0, "weight"), -1.0),
        (("channels", 0, "length"), 0.0),
        (("channels", 0, "rate"), 0.0),
        (("channels", 0, "rate"), -1.0),
    ],
)
def test_numbers_that_are_out_of_range(file, group, path, value):
    assert path[-1] in rejected(write(file, changed(group, *path, value)))


@pytest.mark.parametrize("value", [True, None, "1.0", [1.0], {}, 1e61, -(10**80), 10**30 + 1])
def test_numbers_of_the_wrong_type(file, value):
    """Each number of the document in turn; `null` has a meaning in a few places."""
    places = [p for p in numeric_places(GOOD["SE3"]) if p != ("version",)]
    seen = set()
    for place in places:
        kind = tuple(name for name in place if isinstance(name, str))
        if kind in seen:
            continue
        seen.add(kind)
        assert rejected(write(file, changed("SE3", *place, value))), place
    assert len(seen) >= 14


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity", "1e999", "-1e400"])
@pytest.mark.parametrize("place", [("channels", 0, "P", 0, 0), ("rate",), ("law", "damping", 1, 1)])
def test_numbers_that_are_not_finite(file, text, place):
    doc = changed("SE3", *place, 123456.75)
    write(file, doc)
    file.write_text(file.read_text().replace("123456.75", text))
    with pytest.raises(DescriptionError, match="finite"):
        recheck(file)


def names_in(entry, path=()):
    if isinstance(entry, list):
        return [p for k, value in enumerate(entry[:1]) for p in names_in(value, (*path, k))]
    if not isinstance(entry, dict):
        return []
    return [p for k, v in entry.items() for p in [(*path, k), *names_in(v, (*path, k))]]


REQUIRED = [p for p in names_in(GOOD["SE3"]) if p[0] not in ("versions", "method")]


@pytest.mark.parametrize("place", REQUIRED, ids=lambda p: ".".join(map(str, p)))
def test_every_name_is_needed(file, place):
    doc = copy.deepcopy(GOOD["SE3"])
    entry = doc
    for name in place[:-1]:
        entry = entry[name]
    del entry[place[-1]]
    assert rejected(write(file, doc))


@pytest.mark.parametrize("place", REQUIRED, ids=lambda p: ".".join(map(str, p)))
@pytest.mark.parametrize("value", [7, "seven", ["x"], {"x": 1}, True])
def test_wrong_types_anywhere(file, place, value):
    if place == ("channels", 0, "weight") and value == 7 and value is not True:
        assert recheck(write(file, changed("SE3", *place, value))) is Status.PROVED
        return
    if place == ("overshoot",) and value == 7 and value is not True:
        # More than the least one is true as well.
        assert recheck(write(file, changed("SE3", *place, value))) is Status.PROVED
        return
    assert rejected(write(file, changed("SE3", *place, value)))


@pytest.mark.parametrize("name", ["P", "L", "M"])
def test_matrices_of_the_wrong_shape(file, name):
    rows = GOOD["SE3"]["channels"][0][name]
    for wrong in (rows[:-1], [*rows, rows[0]], [r[:-1] for r in rows], [*rows[:-1], []], []):
        with pytest.raises(DescriptionError, match=name):
            recheck(write(file, changed("SE3", "channels", 0, name, wrong)))


@pytest.mark.parametrize(
    "boxes",
    [
        [[0.0, 0.6]],
        [[[0.0, 0.6], [0.0, 0.6]]],
        [[[0.0, 0.3, 0.6]]],
        [[[0.6, 0.0]]],
        [[[0.0, 0.6]], [[0.3, 0.3]]],
        [[["0", 0.6]]],
        [[]],
        [None],
        "boxes",
    ],
)
def test_boxes_that_are_none(file, boxes):
    with pytest.raises(DescriptionError, match="boxes"):
        recheck(write(file, changed("SE3", "channels", 0, "boxes", boxes)))


@pytest.mark.parametrize(
    "components",
    [[], [0, 1, 2], [0, 1, 2, 3, 4, 4], [5, 4, 3, 2, 1, 0], [0, 1, 2, 3, 4, 6],
     [0.0, 1, 2, 3, 4, 5], [-1, 0, 1, 2, 3, 4], [False, True, 2, 3, 4, 5]],
)  # fmt: skip
def test_components_that_are_not_those_of_the_group(file, components):
    with pytest.raises(DescriptionError, match="components"):
        recheck(write(file, changed("SE3", "channels", 0, "components", components)))


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"null", b"3", b"\xff\xfe\x00", b'{"format": "concur certificate"',
     b'{"format": "concur certificate"}', b'{"format": "other", "version": 1}',
     b"[" * 100_000, b'{"a": 1' + b"0" * 5000 + b"}"],
    ids=range(11),
)  # fmt: skip
def test_files_that_are_no_certificates(file, content):
    file.write_bytes(content)
    with pytest.raises(DescriptionError):
        recheck(file)


def test_places_where_there_is_no_file(tmp_path):
    for path in (tmp_path / "none.json", tmp_path, tmp_path / "a" / "b"):
        with pytest.raises(DescriptionError, match="file"):
            recheck(path)


@pytest.mark.parametrize("version", [0, 2, "1", True, None, 1.5])
def test_other_versions(file, version):
    with pytest.raises(DescriptionError, match="version"):
        recheck(write(file, changed("SO3", "version", version)))


def test_names_twice_in_an_object(file):
    write(file, GOOD["SO3"])
    text = file.read_text()
    file.write_text(text.replace('"status": "PROVED"', '"status": "PROVED", "status": "PROVED"', 1))
    with pytest.raises(DescriptionError, match="unique names"):
        recheck(file)


def test_layout_of_the_file_does_not_matter(file):
    write(file, GOOD["SO3"])
    shuffled = dict(reversed(json.loads(file.read_text()).items()))
    file.write_text(json.dumps(shuffled, indent=3))
    assert recheck(file) is Status.PROVED
    assert recheck(str(file)) is Status.PROVED


@given(st.data())
@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_a_changed_digit_is_noticed(tmp_path, data):
    """One character of the stored text, anywhere."""
    path = write(tmp_path / "digit.json", GOOD["SE3"])
    text = path.read_text()
    digits = [k for k, c in enumerate(text) if c.isdigit()]
    k = data.draw(st.sampled_from(digits))
    new = data.draw(st.sampled_from([d for d in "123456789" if d != text[k]]))
    before = json.loads(text)
    path.write_text(text[:k] + new + text[k + 1 :])
    try:
        same = json.loads(path.read_text()) == before
    except ValueError:
        same = False
    # Digits beyond the last one that a float has do not change the number.
    assert same or rejected(path)
