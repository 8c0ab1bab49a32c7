"""Seeded mutations of text files, and wrong values for arguments."""

from __future__ import annotations

import io
import random
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import h5py
import numpy as np

import concur as cc

NUMBER = re.compile(r"(?<![\w.\"])[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?(?![\w.])")
TEXT = re.compile(r'"[^"\n]*"')
LIST = re.compile(r"\[[^\[\]\n]*\]")
QUOTED = re.compile(r'(?<=[" ])[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?(?=[" ])')
TAG = re.compile(r"<[^<>]*>")

NUMBERS = (
    *("0", "-0.0", "1", "-1", "1e-3", "0.5", "2", "3", "7", "1000", "1e6", "1e9", "1e12"),
    *("5e-324", "1e-300", "1e-12", "-1e-12", "1e18", "1e30", "1e40", "1e200", "1.7e308", "1e400"),
    *("nan", "inf", "-inf", "true", "false", "NaN", "Infinity", "-Infinity", "null"),
    *("9" * 25, "9" * 400, "9" * 5000, "0x7fffffffffffffff", "9223372036854775808", "1_000"),
    *('""', '"x"', '"1"', "[]", "{}", "[[]]", "[1, [2]]", "[1, 2, 3]", "1979-05-27", "07:32:00"),
    *("[" * 40 + "]" * 40, "[" * 3000 + "]" * 3000, "{a = " * 900 + "1" + "}" * 900),
)
TEXTS = (
    *("", " ", "x", ".", "..", "/", "/dev/zero", "/dev/stdin", "a" * 300, "a" * 70_000, "\\u0000"),
    *("a\\u0000b", "\\u001b[31m", "a\\nb", "\\u202e", "ä", "💥", "$HOME", "~", "*", "a/b", "../x"),
    *("%s%n", "{}", "{0}", "__class__", "auto", "SE3", "R3", "base", "pipe.toml", "folder.toml"),
)
BYTES = (b"\x00", b"\xff", b"\xfe", b"\xef\xbb\xbf", b"\r", b"\n", b'"', b"]", b"[", b"=", b"\x1b")


def mutated(data: bytes, rng: random.Random, times: int | None = None) -> bytes:
    """Change a file of text in one to three places."""
    for _ in range(times or rng.choice((1, 1, 1, 2, 3))):
        data = rng.choice(_WAYS)(data, rng)
    return data


def mutated_xml(data: bytes, rng: random.Random) -> bytes:
    """Change numbers within quotes and tags of a file of XML, or any text of it."""
    text = data.decode("utf-8", "surrogateescape")
    numbers, tags = list(QUOTED.finditer(text)), list(TAG.finditer(text))
    way = rng.random()
    if way < 0.5 and numbers:
        place = rng.choice(numbers)
        new = rng.choice((*NUMBERS[:32], f"-{place[0]}", rng.choice(numbers)[0], f"{place[0]}e3"))
    elif way < 0.7 and tags:
        place = rng.choice(tags)
        new = rng.choice(("", place[0] * 2, rng.choice(tags)[0], f"<{rng.choice(TEXTS)}>"))
    else:
        return mutated(data, rng)
    return (text[: place.start()] + new + text[place.end() :]).encode("utf-8", "surrogateescape")


def mutated_hdf5(data: bytes, rng: random.Random) -> bytes:
    """Change bytes, or drop, replace or retype a dataset or an attribute of a file of HDF5."""
    if rng.random() < 0.4:
        return _raw(data, rng)
    held = io.BytesIO(data)
    with h5py.File(held, "r+") as file:
        name = rng.choice(list(file))
        owner = rng.choice((file.attrs, file[name].attrs, file))
        entry = rng.choice(list(owner) or [name])
        old = owner.get(entry, 0.0)
        found = np.array(old[()] if isinstance(old, h5py.Dataset) else old)
        with suppress(KeyError):
            del owner[entry]
        junk = (None, 3, -1.0, np.nan, "x", "[]", [1, 2], np.zeros((2, 3, 4)), np.zeros(0))
        if found.dtype.kind in "fiu" and rng.random() < 0.5:
            made: Any = found.astype(float)
            made.flat[: rng.choice((1, made.size))] = rng.choice((np.nan, np.inf, 0, -1, 1e30))
            with np.errstate(all="ignore"):
                made = made.astype(rng.choice(("f8", "f4", "i8")))
        elif isinstance(found[()], bytes):
            made = mutated(found[()], rng).decode("utf-8", "replace").replace("\0", "")
        else:
            made = rng.choice(junk)
        if made is not None:
            owner[entry] = made
    return held.getvalue()


def _tokens(data: bytes, rng: random.Random) -> bytes:
    """Put another number, text or list in place of one."""
    text = data.decode("utf-8", "surrogateescape")
    pattern = rng.choice((NUMBER, NUMBER, NUMBER, TEXT, LIST))
    found = list(pattern.finditer(text))
    if not found:
        return data
    place = rng.choice(found)
    if pattern is TEXT and rng.random() < 0.8:
        new = f'"{rng.choice(TEXTS)}"'
    else:
        new = rng.choice(NUMBERS)
        if rng.random() < 0.3:
            new = f"[{', '.join(rng.choice(NUMBERS[:32]) for _ in range(rng.randint(1, 8)))}]"
    text = text[: place.start()] + new + text[place.end() :]
    return text.encode("utf-8", "surrogateescape")


def _swap(data: bytes, rng: random.Random) -> bytes:
    """Put one token of the file in place of another."""
    text = data.decode("utf-8", "surrogateescape")
    found = list(rng.choice((NUMBER, TEXT, LIST)).finditer(text))
    if len(found) < 2:
        return data
    one, other = rng.sample(found, 2)
    return (text[: one.start()] + other[0] + text[one.end() :]).encode("utf-8", "surrogateescape")


def _lines(data: bytes, rng: random.Random) -> bytes:
    """Drop, double or move lines."""
    lines = data.splitlines(keepends=True)
    if len(lines) < 2:
        return data
    start = rng.randrange(len(lines))
    piece = lines[start : start + rng.choice((1, 1, 2, 5))]
    if rng.random() < 0.6:
        del lines[start : start + len(piece)]
    if rng.random() < 0.5:
        at = rng.randrange(len(lines) + 1)
        lines[at:at] = piece
    return b"".join(lines)


def _raw(data: bytes, rng: random.Random) -> bytes:
    """Insert, change or cut bytes."""
    at = rng.randrange(len(data) + 1)
    way = rng.random()
    if way < 0.5:
        return data[:at] + rng.choice(BYTES) + data[at + rng.choice((0, 1)) :]
    if way < 0.75:
        return data[:at]
    return data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :]


_WAYS = (_tokens, _tokens, _tokens, _tokens, _swap, _lines, _raw)


def wrong(rng: random.Random, folder: Path) -> Any:
    """A value that no argument expects, or one that few do."""
    size = rng.choice((0, 1, 2, 3, 4, 6, 7, 13, 40))
    number = rng.choice(
        (
            *(
                0,
                1,
                -1,
                2,
                7,
                1e-3,
                5e-324,
                1e-300,
                1e-12,
                1e6,
                1e9,
                1e18,
                1e30,
                1e40,
                1e200,
                1e308,
            ),
            *(float("nan"), float("inf"), -float("inf"), 10**25, 10**400, True, 1 + 2j),
        )
    )
    return rng.choice(
        (
            *(None, None, number, number, number, str(number)[:40], "", "x", "a\0b", "a" * 300),
            *(b"x", [], (), {}, set(), [None], ["x"], [[1, 2], [3]], [[[]]], {"x": 1}, {1: 2}),
            *(object(), int, abs, lambda: None, lambda t: t, lambda t: None, print, NotImplemented),
            *(
                np.zeros(size),
                np.ones(size),
                np.full(size, number_of(number)),
                np.zeros((size, size)),
            ),
            *(np.eye(size), np.ones((size, 3)), np.array("x"), np.array([None]), np.array(1 + 1j)),
            *([number] * size, [[number] * 3] * size, ["x"] * size, range(size), iter([1, 2])),
            *(folder, folder / "pipe.toml", folder / "none.toml", Path("a\0b"), "/dev/zero"),
            *(cc.Pose(), cc.Inertia(1.0), cc.joints.Fixed(), cc.joints.Revolute((0, 0, 1))),
            *(cc.Pose, np.array([[1, 2], [3, 4]], dtype=object), np.datetime64("2020-01-01")),
        )
    )


def number_of(value: Any) -> float:
    """The number as a float, or zero where there is none."""
    try:
        return float(value)
    except (TypeError, OverflowError):
        return 0.0
