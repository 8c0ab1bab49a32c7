"""The file of a task's proof, and its reader, which validates every entry.

File format
-----------
JSON, numbers as decimal fractions that read back as the same float64, in SI units. Other names than
these are rejected: they could be claims that this version does not verify.

===========  =====================================================================================
format       "concur task proof"
version      1
versions     object: versions of the software used
kind         kind of robot: "rover" or "floater"
robot        the robot, as the text of a robot file
task         outputs, law, reference, start and duration, as the text of a task file
hashes       object: SHA-256 of the texts `robot` and `task`, and of the numbers of the `law` that
             they describe, see `law_hash`
statement    object: `place`, `speed` and `push` by output; `torque_error` by control; `heading`,
             `period`, `delay`, `masses` and `margin`; limits `torques`, `speeds`, `angles` and
             `corridor` by name. An end of `angles` without limit is null. Where they are given,
             `ground`, `clearance`, `expressions`, `reading`, see the fields below, and
             `momentum_error`, the linear and the angular one
steps        number of equal steps of the task's duration
first        first step of each segment; it ends where the next one begins, the last one at `steps`
edge         edge of cells without halving (m); 0 without cells
disturbance  object: by output a list with the bound of |d| in each segment
cells        list of [level, i, j, k]; empty for robots without cells
leaves       for each segment a list of indices in `cells`
room         with `reading` only: two objects, of x and of ve, by output a list with the way in each
             segment for which wrong readings have room
bounds       list of objects: `kind`, `name`, `unit`, `side` ("upper" or "lower"), `value` and
             `limit`, null without one
hash         SHA-256 of the rest: JSON with sorted keys and no blanks
===========  =====================================================================================
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from concur.documents import read_document
from concur.errors import DescriptionError
from concur.proofs._recheck_claims import StoredBound
from concur.proofs._recheck_smooth import Floats

TASK_PROOF = "concur task proof"
"""Name of the format."""

VERSION = 1

KINDS = ("rover", "floater")
"""Kinds of robots."""

LARGEST_PROOF, LARGEST_TEXT = 2**24, 2**18
"""Bytes of the largest file that is read, and characters of the texts of robot and task."""

LONGEST = 100_000
"""Most entries of a list, and most steps."""

NUMBERS = ("heading", "period", "delay", "masses", "margin")
BY_OUTPUT = ("place", "speed", "push")
LIMITS = ("torques", "speeds", "corridor")
"""Fields of a statement: numbers, numbers by output, and limits by name."""

REQUIRED = {*NUMBERS, *BY_OUTPUT, *LIMITS, "torque_error", "angles"}
"""Fields of a statement that are always there."""

GROUND = {"names", "axle", "places", "height", "compliance", "least_load", "tipping", "grip"}
CAPSULE = {"name", "start", "end", "radius", "body"}
OBSTACLE = {"name", "start", "end", "radius", "frame", "distance", "capsules"}
ENDS = ("start", "end")
EXPRESSION = {"name", "formula", "below", "unit"}
READING = {"angles", "speeds", "place", "heading"}
"""Fields of contacts, of capsules and obstacles of a clearance, of expressions, and of readings."""

STATEMENT = {*REQUIRED, "ground", "clearance", "expressions", "reading", "momentum_error"}
"""Fields of the statements that the checker verifies."""

_MEMBERS = {
    *("format", "version", "versions", "kind", "robot", "task", "hashes", "statement"),
    *("steps", "first", "edge", "disturbance", "cells", "leaves", "bounds", "hash"),
}
_CURES = (
    "Write it again with `TaskProof.save`.",
    "Prove the task again: the file was changed after it was written.",
)


@dataclass(frozen=True, eq=False)
class Document:
    """Content of a file, before its robot and task are read.

    `uncovered` are entries of the statement that this checker does not verify; `hash` is that of
    the whole content.
    """

    kind: str
    robot: str
    task: str
    hashes: dict[str, str]
    statement: dict[str, Any]
    uncovered: tuple[str, ...]
    steps: int
    first: np.ndarray
    edge: float
    disturbance: dict[str, Floats]
    leaves: list[np.ndarray]
    bounds: list[StoredBound]
    room: list[dict[str, Floats]]
    hash: str


def law_hash(servo: Any) -> str:
    """SHA-256 of outputs, gains, thresholds and limits of a law; numbers in C's notation."""

    def exact(values: Any) -> list[str]:
        return [(float(x) + 0.0).hex() for x in np.asarray(values, dtype=float).ravel()]

    outputs = [
        [o.name, o.body, o.group, o.axes, o.relative_to]
        + [exact(part) for part in (o.point, o.orientation, o.normal)]
        for o in servo.outputs
    ]
    gains = [exact(getattr(servo, name)) for name in ("stiffness", "damping", "inertia")]
    rest = [*map(exact, servo.margins.scales), exact(servo.margins.refused_below)]
    names = [list(servo.model.control_names), list(servo.model.shape_names)]
    options: list[Any] = [bool(servo.use_measured_velocity)]
    if servo.torque_limits is not None:
        options.append(exact(servo.torque_limits))
    return hashlib.sha256(json.dumps([outputs, gains, rest, names, options]).encode()).hexdigest()


def text_hash(text: str) -> str:
    """SHA-256 of a text."""
    return hashlib.sha256(text.encode()).hexdigest()


def refuse(place: str, expected: str, came: object, cure: str = _CURES[0]) -> NoReturn:
    """Reject a file with the entry at fault."""
    raise DescriptionError(
        f"proof of a task, {place}",
        expected=expected,
        came=came if isinstance(came, str) else f"{type(came).__name__} {came!r:.60}",
        cure=cure,
    )


def read(path: Path) -> Document:
    """Read a file and validate its entries."""
    try:
        size = path.stat().st_size
    except (OSError, ValueError):
        size = 0  # reading raises the error
    if size > LARGEST_PROOF:
        refuse(f"`{path.name}`", f"at most {LARGEST_PROOF} bytes", str(size))
    found = read_document(path, (TASK_PROOF,), VERSION, "proof of a task", _CURES)
    room = found.pop("room", [])
    _names(found, _MEMBERS, "")
    _strings(found["versions"], "versions")
    kind = _text(found, "kind", "")
    if kind not in KINDS:
        refuse("`kind`", "one of " + ", ".join(KINDS), kind)
    robot, task = (_text(found, name, "", LARGEST_TEXT) for name in ("robot", "task"))
    hashes = _strings(found["hashes"], "hashes")
    _names(hashes, {"robot", "task", "law"}, "hashes")
    for name, text in (("robot", robot), ("task", task)):
        if hashes[name] != text_hash(text):
            refuse(f"`hashes.{name}`", text_hash(text), hashes[name], _CURES[1])
    steps = _integer(found["steps"], "`steps`")
    if not 0 < steps < LONGEST:
        refuse("`steps`", f"a number above zero and below {LONGEST}", str(steps))
    first = np.array([_integer(k, "`first`") for k in _list(found, "first")], dtype=np.int64)
    disturbance = _rows(found, "disturbance")
    cells = _whole(found["cells"], 4)
    leaves = [cells[_indices(part, len(cells))] for part in _list(found, "leaves")]
    bounds = [_bound(entry, f"bounds[{k}]") for k, entry in enumerate(_list(found, "bounds"))]
    if len({(bound.kind, bound.name) for bound in bounds}) < len(bounds):
        refuse("`bounds`", "one bound of each quantity", "two of one quantity")
    return Document(
        kind,
        robot,
        task,
        hashes,
        _statement(_object(found, "statement")),
        tuple(sorted(set(_object(found, "statement")) - STATEMENT)),
        steps,
        first,
        _number(found["edge"], "`edge`"),
        disturbance,
        leaves,
        bounds,
        [_rows({"room": part}, "room") for part in _items(room, "room")],
        found["hash"],
    )


def arguments(
    statement: dict[str, Any], outputs: Sequence[str], controls: Sequence[str]
) -> dict[str, Any]:
    """Arguments of `Statement` from those of a file, in the order of outputs and controls."""
    found = dict(statement)
    for name in (*BY_OUTPUT, "torque_error"):
        names = controls if name == "torque_error" else outputs
        table = statement[name]
        if table or name in ("place", "speed"):
            _names(table, set(names), f"statement.{name}")
        found[name] = tuple(table[own] for own in names) if table else ()
    return found


def _statement(table: dict[str, Any]) -> dict[str, Any]:
    """Validated fields of a statement."""
    found: dict[str, Any] = {}
    if "ground" in table:
        found["ground"] = _ground(_object(table, "ground", "statement."))
    if "clearance" in table:
        found["clearance"] = _clearance(_object(table, "clearance", "statement."))
    if "expressions" in table:
        entries = _items(table["expressions"], "statement.expressions")
        found["expressions"] = [_expression(entry) for entry in entries]
    if "reading" in table:
        found["reading"] = _reading(_object(table, "reading", "statement."))
    if "momentum_error" in table:
        where = "`statement.momentum_error`"
        pair = _items(table["momentum_error"], "statement.momentum_error")
        if len(pair) != 2:
            refuse(where, "two numbers", str(len(pair)))
        found["momentum_error"] = tuple(_size(x, where) for x in pair)
    table = {name: value for name, value in table.items() if name in REQUIRED}
    _names(table, REQUIRED, "statement")
    for name in NUMBERS:
        found[name] = _size(table[name], f"`statement.{name}`")
    if not found["masses"] < 1.0:
        refuse("`statement.masses`", "a number below 1", table["masses"])
    for name in (*BY_OUTPUT, "torque_error", *LIMITS):
        own = _object(table, name, "statement.")
        found[name] = {key: _size(x, f"`statement.{name}`") for key, x in own.items()}
    found["angles"] = {
        key: _ends(pair) for key, pair in _object(table, "angles", "statement.").items()
    }
    return found


def _ground(table: dict[str, Any]) -> dict[str, Any]:
    """Validated contacts of a statement."""
    where = "statement.ground"
    _names(table, GROUND, where)
    names = tuple(_text({"names": name}, "names", where) for name in _items(table["names"], where))
    soft, grip = table["compliance"], table["grip"]
    return {
        "names": names,
        "axle": _integer(table["axle"], f"`{where}.axle`"),
        "places": tuple(
            _row(point, 2, f"`{where}.places`") for point in _items(table["places"], where)
        ),
        "height": _number(table["height"], f"`{where}.height`"),
        "compliance": None if soft is None else _row(soft, len(names), f"`{where}.compliance`"),
        "least_load": _row(table["least_load"], len(names), f"`{where}.least_load`"),
        "tipping": _size(table["tipping"], f"`{where}.tipping`"),
        "grip": None if grip is None else _size(grip, f"`{where}.grip`"),
    }


def _clearance(table: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Validated capsules and obstacles."""
    where = "statement.clearance"
    _names(table, {"capsules", "obstacles"}, where)
    found: dict[str, list[dict[str, Any]]] = {}
    for kind, names in (("capsules", CAPSULE), ("obstacles", OBSTACLE)):
        found[kind] = []
        place = f"{where}.{kind}"
        for entry in _items(table[kind], place):
            if not isinstance(entry, dict):
                refuse(f"`{place}`", "objects", entry)
            _names(entry, names, place)
            made: dict[str, Any] = {name: _row(entry[name], 3, f"`{place}`") for name in ENDS}
            made |= {n: _text(entry, n, place) for n in ("name", "body", "frame") if n in names}
            made |= {n: _size(entry[n], f"`{place}`") for n in ("radius", "distance") if n in names}
            if kind == "obstacles":
                own = entry["capsules"]
                made["capsules"] = None
                if own is not None:
                    made["capsules"] = tuple(
                        _text({"capsules": x}, "capsules", place) for x in _items(own, place)
                    )
            found[kind].append(made)
    return found


def _expression(entry: Any) -> dict[str, Any]:
    """A validated expression; its formula is a text that the checker reads."""
    where = "statement.expressions"
    if not isinstance(entry, dict):
        refuse(f"`{where}`", "objects", entry)
    _names(entry, EXPRESSION, where)
    below = entry["below"]
    return {
        "name": _text(entry, "name", where),
        "formula": _text(entry, "formula", where, 1000),
        "below": math.inf if below is None else _number(below, f"`{where}.below`"),
        "unit": _text(entry, "unit", where),
    }


def _reading(table: dict[str, Any]) -> dict[str, Any]:
    """Validated errors of what the law reads."""
    where = "statement.reading"
    _names(table, READING, where)
    found: dict[str, Any] = {
        name: _size(table[name], f"`{where}`") for name in ("place", "heading")
    }
    for name in ("angles", "speeds"):
        if name == "speeds" and table[name] is None:
            found[name] = None
            continue
        own = _object(table, name, f"{where}.")
        found[name] = {key: _size(x, f"`{where}.{name}`") for key, x in own.items()}
    return found


def _rows(table: dict[str, Any], name: str) -> dict[str, Floats]:
    """Lists of numbers by name."""
    return {
        key: np.array([_number(x, f"`{name}`") for x in _items(part, name)])
        for key, part in _object(table, name).items()
    }


def _row(value: Any, width: int, where: str) -> tuple[float, ...]:
    """Numbers in a row of a width."""
    if not isinstance(value, list) or len(value) != width:
        refuse(where, f"a list of {width} numbers", value)
    return tuple(_number(x, where) for x in value)


def _ends(pair: Any) -> tuple[float, float]:
    where = "`statement.angles`"
    if not isinstance(pair, list) or len(pair) != 2:
        refuse(where, "pairs of a lower and an upper end", pair)
    low, high = (
        sign * math.inf if x is None else _number(x, where)
        for sign, x in zip((-1, 1), pair, strict=True)
    )
    if not low < high:
        refuse(where, "a lower end below the upper one", pair)
    return low, high


def _bound(entry: Any, where: str) -> StoredBound:
    if not isinstance(entry, dict):
        refuse(f"`{where}`", "an object", entry)
    _names(entry, {"kind", "name", "unit", "side", "value", "limit"}, where)
    kind, name, unit, side = (_text(entry, n, where) for n in ("kind", "name", "unit", "side"))
    if side not in ("upper", "lower"):
        refuse(f"`{where}.side`", "upper or lower", side)
    limit = entry["limit"]
    return StoredBound(
        kind,
        name,
        unit,
        1.0 if side == "upper" else -1.0,
        _number(entry["value"], f"`{where}.value`"),
        None if limit is None else _number(limit, f"`{where}.limit`"),
    )


def _whole(rows: Any, width: int) -> np.ndarray:
    """Whole numbers in rows of a width, shape (n, width)."""
    if not isinstance(rows, list) or not all(type(row) is list for row in rows):
        refuse("`cells` and `leaves`", "lists of whole numbers", rows)
    sound = all(len(row) == width and set(map(type, row)) == {int} for row in rows)
    sound = sound and all(abs(x) < 2**31 for row in rows for x in row)
    if not sound:
        refuse("`cells` and `leaves`", "whole numbers below 2^31", "another content")
    return np.asarray(np.array(rows, dtype=np.int64).reshape(len(rows), width))


def _indices(part: Any, count: int) -> np.ndarray:
    """Indices of the leaves of a segment."""
    found = _whole([part], len(part) if isinstance(part, list) else 0).ravel()
    if not ((found >= 0) & (found < count)).all():
        refuse("`leaves`", f"indices of {count} cells", "others")
    return found


def _names(table: dict[str, Any], expected: set[str], where: str) -> None:
    """Reject missing and further names."""
    place = f"`{where}`" if where else "entries"
    for name in sorted(expected - set(table)):
        refuse(place, f"an entry `{name}`", "no value")
    for name in sorted(set(table) - expected):
        refuse(place, "entries of this format only", f"`{name:.60}`")


def _object(table: dict[str, Any], name: str, where: str = "") -> dict[str, Any]:
    value = table[name]
    if not isinstance(value, dict):
        refuse(f"`{where}{name}`", "an object", value)
    return value


def _list(table: dict[str, Any], name: str) -> list[Any]:
    return _items(table[name], name)


def _items(value: Any, where: str) -> list[Any]:
    if not isinstance(value, list) or len(value) > LONGEST:
        refuse(f"`{where}`", f"a list of at most {LONGEST} entries", value)
    return value


def _strings(value: Any, where: str) -> dict[str, str]:
    if not isinstance(value, dict) or not all(isinstance(x, str) for x in value.values()):
        refuse(f"`{where}`", "an object of texts", value)
    return value


def _text(table: dict[str, Any], name: str, where: str, longest: int = 200) -> str:
    value = table[name]
    if not isinstance(value, str) or len(value) > longest:
        place = f"`{where}.{name}`" if where else f"`{name}`"
        refuse(place, f"a text of at most {longest} characters", value)
    return value


def _integer(value: Any, where: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**31:
        refuse(where, "a whole number, not negative", value)
    return value


def _number(value: Any, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) < 1e15:
        refuse(where, "a number within 1e15", value)
    return float(value)


def _size(value: Any, where: str) -> float:
    found = _number(value, where)
    if found < 0.0:
        refuse(where, "a number that is not negative", value)
    return found
