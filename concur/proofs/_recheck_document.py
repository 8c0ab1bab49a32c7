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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from annotated_types import Ge, Gt, Len, Lt

from concur.documents import read_document
from concur.errors import DescriptionError
from concur.proofs._recheck_claims import StoredBound
from concur.tables import Expected, InFiles, Number, Numbers, build, is_number, one_of, refused

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

STATEMENT = {*REQUIRED, "ground", "clearance", "expressions", "reading", "momentum_error"}
"""Fields of the statements that the checker verifies."""

_CHECKED = ("format", "version")
"""Entries that `read_document` checks."""

_CURES = (
    "Write it again with `TaskProof.save`.",
    "Prove the task again: the file was changed after it was written.",
)

Short = Annotated[str, Len(0, 200), Expected("a text of at most 200 characters")]
Long = Annotated[
    str, Len(0, LARGEST_TEXT), Expected(f"a text of at most {LARGEST_TEXT} characters")
]
Whole = Annotated[int, Gt(-(2**31)), Lt(2**31), Expected("a whole number within 2^31")]
Index = Annotated[int, Ge(0), Lt(2**31), Expected("a whole number, not negative")]
Cell = Annotated[Sequence[Whole], Len(4, 4), Expected("4 whole numbers")]
Indices = Annotated[Sequence[Index], Len(0, LONGEST), Expected("whole numbers, not negative")]
Rows = Mapping[str, Numbers]
Limit = Annotated[
    Any, Expected("a number, or null", lambda value: value is None or is_number(value))
]
"""Types of entries."""


def _many(kind: Any) -> Any:
    """Type of a list of entries."""
    return Annotated[Sequence[kind], Len(0, LONGEST), Expected("a list")]


def _bound(
    kind: Short,
    name: Short,
    unit: Short,
    side: Literal["upper", "lower"],
    value: Number,
    limit: Limit,
) -> StoredBound:
    return StoredBound(kind, name, unit, 1.0 if side == "upper" else -1.0, value, limit)


@dataclass(frozen=True)
class Hashes:
    """Hashes of the texts, and of the law that they describe."""

    robot: Short
    task: Short
    law: Short


@dataclass(frozen=True, eq=False)
class Document:
    """Content of a file, before its robot, task and statement are read."""

    versions: Mapping[str, Short]
    kind: Annotated[str, one_of(KINDS)]
    robot: Long
    task: Long
    hashes: Hashes
    statement: Mapping[str, Any]
    steps: Annotated[int, Gt(0), Lt(LONGEST), Expected(f"above zero and below {LONGEST}")]
    first: Indices
    edge: Number
    disturbance: Rows
    cells: _many(Cell)  # type: ignore[valid-type]
    leaves: _many(Indices)  # type: ignore[valid-type]
    bounds: _many(Annotated[Any, InFiles(_bound)])  # type: ignore[valid-type]
    hash: str
    room: _many(Rows) = ()  # type: ignore[valid-type]

    def __post_init__(self) -> None:
        given = self.statement
        for name in ("robot", "task"):
            found, stated = text_hash(getattr(self, name)), getattr(self.hashes, name)
            if stated != found:
                raise refused(("hashes", name), found, stated, _CURES[1])
        if len({(bound.kind, bound.name) for bound in self.bounds}) < len(self.bounds):
            raise refused(("bounds",), "one bound of each quantity", "two of one", _CURES[0])
        if max(map(max, filter(None, self.leaves)), default=-1) >= len(self.cells):
            expected = f"indices of {len(self.cells)} cells"
            raise refused(("leaves",), expected, "others", _CURES[0])
        for name in sorted(name for name in REQUIRED | {*given} if given.get(name) is None):
            raise refused(("statement", name), "an entry", "no value", _CURES[0])

    @cached_property
    def uncovered(self) -> tuple[str, ...]:
        """Entries of the statement that this checker does not verify."""
        return tuple(sorted(set(self.statement) - STATEMENT))

    @cached_property
    def boxes(self) -> list[np.ndarray]:
        """Level and place of the leaves of each segment, (k, 4)."""
        cells = np.array(self.cells, dtype=np.int64).reshape(len(self.cells), 4)
        return [cells[np.array(part, dtype=np.int64)] for part in self.leaves]


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


def read(path: Path) -> Document:
    """Read a file and validate its entries; those of the statement are validated with the law."""
    try:
        size = path.stat().st_size
    except (OSError, ValueError):
        size = 0  # reading raises the error
    if size > LARGEST_PROOF:
        raise DescriptionError(
            f"proof of a task, `{path.name}`",
            expected=f"at most {LARGEST_PROOF} bytes",
            came=str(size),
            cure=_CURES[0],
        )
    found = read_document(path, (TASK_PROOF,), VERSION, "proof of a task", _CURES)
    made: Document = build(Document, {k: found[k] for k in found if k not in _CHECKED}, path)
    return made
