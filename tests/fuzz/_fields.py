"""Single entries of TOML files with wrong values: an error names file, table and field."""

from __future__ import annotations

import copy
import random
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import tomlkit

import concur as cc
from concur.errors import ConcurError
from hil.rig import load_rig
from tests.fuzz._files import Kind, toml_kinds, urdf_kinds
from tests.fuzz._watch import Fault, watch

Place = tuple[str | int, ...]

JUNK: tuple[Any, ...] = (
    *(True, "", "x", "a\nb", "1", 0, -1, 3, 1.5, -0.1, 1e12, float("nan"), float("inf")),
    *([], [1, 2], [1, "x"], [[1, 2], [3]], {}, {"x": 1}, [{}], [{"name": "x"}]),
)
"""Values that few fields take."""


def places(data: Any, place: Place = ()) -> Iterator[Place]:
    """Positions of all entries of tables and lists."""
    entries: Any = ()
    if isinstance(data, dict):
        entries = data.items()
    elif isinstance(data, list):
        entries = enumerate(data)
    for key, value in entries:
        yield (*place, key)
        yield from places(value, (*place, key))


def changed(data: dict[str, Any], rng: random.Random) -> tuple[dict[str, Any], str]:
    """A document with one entry that is replaced, missing or misspelt, and the entry's name."""
    place = rng.choice(list(places(data)))
    made = copy.deepcopy(data)
    inner: Any = made
    for key in place[:-1]:
        inner = inner[key]
    key, way = place[-1], rng.random()
    if way < 0.7 or isinstance(key, int):
        inner[key] = rng.choice(JUNK)
    elif way < 0.85:
        del inner[key]
    else:
        inner[f"{key}x"] = inner.pop(key)
    return made, next(str(part) for part in reversed(place) if isinstance(part, str))


def used(path: Path) -> None:
    """Read a task, and build its law and what it says of proofs."""
    task = cc.load_task(path)
    _ = task.law, task.s0, task.statement if isinstance(task.law, cc.Servo) else None


def readers(folder: Path) -> dict[str, Callable[[Path], Any]]:
    """Readers by kind of file."""
    urdf = folder / "urdf" / "cart.urdf"
    return {
        "robot": cc.load,
        "task": used,
        "rig": load_rig,
        "sidecar": lambda path: cc.load(urdf, sidecar=path),
    }


def fuzz_fields(folder: Path, count: int, seed: int, only: str = "") -> Iterator[Fault]:
    """Read TOML files with one wrong entry each.

    Parameters
    ----------
    folder : Path
        An empty folder.
    count : int
        How many files.
    seed : int
        Of the changes: file k is the same whatever the count.
    only : str
        The only kind; all if empty.

    Yields
    ------
    Fault
        One for each file that ended in another exception, or in an error that lacks the file, or
        table and field; and one if fewer than nineteen of twenty errors name the changed entry.
    """
    known: dict[str, Kind] = {**toml_kinds(folder), **urdf_kinds(folder / "urdf")}
    read, seen = readers(folder), Counter[str]()
    for number in range(count):
        rng = random.Random(f"{seed} {number}")
        name = only or list(read)[number % len(read)]
        sample = rng.choice(known[name].samples)
        data, entry = changed(tomllib.loads(sample.read_text("utf-8")), rng)
        path = sample.with_name(f"fuzzed{sample.suffix}")
        path.write_text(tomlkit.dumps(data), "utf-8")
        case = f"{name} {number} ({sample.name}, `{entry}`)"

        def refused(error: ConcurError) -> None:
            told, facts = str(error), error.data
            seen["refused"] += 1
            seen["entry"] += entry in told  # noqa: B023
            if not facts.get("file"):
                raise AssertionError(f"no file: {told}")
            if not (facts.get("table") or facts.get("field") or facts.get("line")):
                raise AssertionError(f"no table and no field: {told}")

        fault = watch(case, lambda p=path, r=read[name]: r(p), refused=refused)
        if fault is not None:
            yield fault
    share = f"{seen['entry']} of {seen['refused']} errors name the changed entry"
    if 20 * seen["entry"] < 19 * seen["refused"]:
        yield Fault("all", share, "")
    print(f"{share}; {count - seen['refused']} files are sound")
