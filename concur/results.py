"""Results: a status with its evidence, as rows, figures and a file, whatever was computed.

A run, a comparison, a campaign, a certificate, a proof and an audit have the members of `Result`;
commands print any result, and write it as the same JSON.
"""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from concur._version import __version__
from concur.documents import as_path
from concur.errors import DescriptionError
from concur.files import read_json, replace_files, writing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Shown = TypeVar("Shown")

Figures = Mapping[str, Callable[[], "Figure"]]
"""Figures by name; a call draws one."""

COMMON = (
    *("command", "concur", "name", "robot", "passed", "status"),
    *("problems", "warnings", "files", "rows"),
)
"""Fields of every result as JSON, in their order; docs/files.md describes them."""


@dataclass(frozen=True)
class Row:
    """One quantity of a result, with its limit.

    Parameters
    ----------
    quantity : str
        What was measured, bounded or checked.
    value : float, str or None
        The number, or a word; None without a meaning.
    limit : float or None
        The limit; None for a quantity that is reported only.
    unit : str
        Unit of value and limit.
    place : str
        Where: a body, a time, a world or a run.
    holds : bool or None
        Whether the limit is kept; None without a limit.
    at_least : bool
        Whether the limit is a lower one.
    numerical : bool
        Whether it checks the computation rather than what was asked.

    Examples
    --------
    >>> from concur.results import Row
    >>> row = Row.judged("peak torque of elbow", 21.04, 20.0, "N m")
    >>> row.holds, row.shown, row.shown_limit
    (False, '21 N m', '<= 20 N m')
    """

    quantity: str
    value: float | str | None
    limit: float | None = None
    unit: str = ""
    place: str = ""
    holds: bool | None = None
    at_least: bool = False
    numerical: bool = False

    @classmethod
    def judged(
        cls,
        quantity: str,
        value: float,
        limit: float | None = None,
        unit: str = "",
        place: str = "",
        *,
        at_least: bool = False,
        slack: float = 0.0,
        numerical: bool = False,
    ) -> Row:
        """Compare a number with its limit.

        Parameters
        ----------
        quantity : str
            As of the class.
        value : float
            As of the class.
        limit : float, optional
            As of the class.
        unit : str
            As of the class.
        place : str
            As of the class.
        at_least : bool
            As of the class.
        slack : float
            Rounding beyond the limit that is tolerated.
        numerical : bool
            As of the class.

        Returns
        -------
        Row
            The row; a NaN keeps no limit, and an infinite limit does not count.
        """
        if limit is None or math.isinf(limit):
            return cls(quantity, value, None, unit, place, None, at_least, numerical)
        kept = bool((limit - value if at_least else value - limit) <= slack)
        return cls(quantity, value, limit, unit, place, kept, at_least, numerical)

    @property
    def share(self) -> float | None:
        """Part of its limit that the value reaches, above 1 if the limit is missed.

        Zero on the other side of zero than an upper limit above or a lower one below zero; None
        without a number, a limit, or with a limit of zero.
        """
        if not self.limit or not isinstance(self.value, float):
            return None
        part = self.value / self.limit
        if self.at_least == (self.limit < 0.0):
            return max(part, 0.0)
        return 1.0 / part if part > 0.0 else math.inf

    @property
    def shown(self) -> str:
        """Value and unit as text."""
        value = "-" if self.value is None else self.value
        return f"{value if isinstance(value, str) else f'{value:.3g}'} {self.unit}".strip()

    @property
    def shown_limit(self) -> str:
        """Limit and unit as text; empty without a limit."""
        if self.limit is None:
            return ""
        return f"{'>=' if self.at_least else '<='} {self.limit:.3g} {self.unit}".strip()


@dataclass(frozen=True)
class Table:
    """Table of texts beside the rows of a result, for the terminal and for pages.

    Parameters
    ----------
    title : str
        Heading.
    head : tuple of str
        Titles of the columns.
    rows : tuple of tuple
        Cells: texts, or True, False and None for yes, no and neither.

    Examples
    --------
    >>> from concur.results import Table
    >>> Table("Gains", ("method", "fits"), (("place", True),)).rows[0]
    ('place', True)
    """

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str | bool | None, ...], ...]


def aligned(lines: Sequence[Sequence[str]], left: Collection[int] | None = None) -> str:
    """Write a table as text with columns of equal width.

    Parameters
    ----------
    lines : sequence of sequence of str
        Cells, the head first.
    left : collection of int, optional
        Columns that are aligned to the left, the others to the right; all by default.

    Returns
    -------
    str
        The lines.

    Examples
    --------
    >>> from concur.results import aligned
    >>> print(aligned([("", "mass"), ("arm", "2 kg")], left=[0]))
         mass
    arm  2 kg
    """
    forms = [
        f"{{:{'<' if left is None or k in left else '>'}{max(map(len, column))}}}"
        for k, column in enumerate(zip(*lines, strict=True))
    ]
    return "\n".join("  ".join(forms).format(*line).rstrip() for line in lines)


def show(name: str, *arguments: Any) -> Shown:  # type: ignore[type-var]
    """Call a function of `concur.show` by name: that package stands above all that it draws.

    Parameters
    ----------
    name : str
        Name of the function, such as "plot_run" or "notebook.run_html".
    *arguments
        Its arguments.

    Returns
    -------
    object
        What the function returns.

    Examples
    --------
    >>> from concur.results import show
    >>> show("style.output_color", 0)
    '#009E73'
    """
    module, _, function = f"concur.show.{name}".rpartition(".")
    shown: Shown = getattr(import_module(module), function)(*arguments)
    return shown


class Result(Protocol):
    """A verdict with its evidence: what the results of the package have in common."""

    @property
    def status(self) -> str | Enum:
        """Verdict: a word, or a `Status` of a claim."""

    @property
    def rows(self) -> tuple[Row, ...]:
        """Quantities with their limits."""

    @property
    def figures(self) -> Figures:
        """Figures by name; a call draws one."""

    def save(self, path: str | PathLike[str]) -> Any:
        """Write a file that `load_result` opens.

        Parameters
        ----------
        path : str or path-like
            File to write.
        """


class _InJson:
    """Members of results whose file is JSON with verdict and rows."""

    kind: Any
    name: Any
    status: Any
    rows: Any

    @property
    def figures(self) -> Figures:
        """Figures by name; a call draws one. Empty by default."""
        return {}

    def save(self, path: str | PathLike[str]) -> Path:
        """Write verdict and rows as JSON.

        Parameters
        ----------
        path : str or path-like
            File to write; an existing one is replaced.

        Returns
        -------
        pathlib.Path
            The file.
        """
        return save_result(self, path, self.kind, self.name)


class JsonResult(_InJson, ABC):
    """Base of results whose file is JSON with verdict and rows; `load_result` opens it.

    Attributes
    ----------
    kind : str
        Kind of the result in the file: the name of a command.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from concur.results import JsonResult, Row
    >>> @dataclass(frozen=True)
    ... class Stroke(JsonResult):
    ...     kind = "stroke"
    ...     travel: float
    ...
    ...     @property
    ...     def rows(self):
    ...         return (Row.judged("travel of elbow", self.travel, 2.0, "rad"),)
    >>> stroke = Stroke(1.2)
    >>> stroke.status, str(stroke.save("stroke.json"))
    ('passed', 'stroke.json')
    """

    kind = ""

    @property
    def name(self) -> str:
        """Subject of the result, in the file."""
        return ""

    @property
    @abstractmethod
    def rows(self) -> tuple[Row, ...]:
        """Quantities with their limits."""

    @property
    def status(self) -> str:
        """Verdict: "passed" if all limits of `rows` are kept, else "failed"."""
        return verdict(self.rows)


@dataclass(frozen=True)
class StoredResult(_InJson):
    """A result as its file states it: verdict and rows, without what they were computed from.

    Parameters
    ----------
    kind : str
        What was done: the name of a command, or the format of the file.
    name : str
        Name of what the result is about.
    status : str or Enum
        Verdict of the file; of a proof UNVERIFIED, until `recheck` confirms it.
    rows : tuple of Row
        Quantities with their limits.

    Examples
    --------
    >>> from concur.results import Row, StoredResult
    >>> StoredResult("compare", "a, b", "passed", (Row("duration", 2.0, unit="s"),)).rows[0].shown
    '2 s'
    """

    kind: str
    name: str
    status: str | Enum
    rows: tuple[Row, ...]


def answer(
    command: str,
    passed: bool,
    status: str,
    *,
    name: str = "",
    robot: str = "",
    problems: Iterable[str] = (),
    warnings: Iterable[str] = (),
    files: Iterable[object] = (),
    rows: Iterable[Row] = (),
    own: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Build a result as JSON: the fields of all results first, then further ones.

    Parameters
    ----------
    command : str
        Name of the command, or kind of the result.
    passed : bool
        Whether the answer is yes.
    status : str
        Verdict.
    name, robot : str
        Names of what the result is about and of the robot.
    problems, warnings : iterable of str
        Sentences.
    files : iterable
        Paths of the files written.
    rows : iterable of Row
        Quantities; numbers that are not finite become null.
    own : mapping, optional
        Further fields, of JSON types.

    Returns
    -------
    dict
        The object.

    Examples
    --------
    >>> from concur.results import answer
    >>> answer("compare", True, "passed", name="a, b")["passed"]
    True
    """
    common = (
        *(command, __version__, name, robot, passed, status),
        *(list(problems), list(warnings), [str(path) for path in files]),
        stored_rows(rows),
    )
    return {**dict(zip(COMMON, common, strict=True)), **(own or {})}


def stored_rows(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Return rows as JSON; numbers that are not finite become null.

    Parameters
    ----------
    rows : iterable of Row
        The rows.

    Returns
    -------
    list of dict
        Their fields.

    Examples
    --------
    >>> from concur.results import Row, read_rows, stored_rows
    >>> rows = (Row("duration", 2.0, unit="s"),)
    >>> read_rows(stored_rows(rows)) == rows
    True
    """
    return [plain(row) for row in rows]


def read_rows(entries: Iterable[Mapping[str, Any]]) -> tuple[Row, ...]:
    """Read what `stored_rows` has returned.

    Parameters
    ----------
    entries : iterable of mapping
        Fields of each row.

    Returns
    -------
    tuple of Row
        The rows.

    Raises
    ------
    TypeError
        If an entry is no row.
    """
    rows = tuple(Row(**entry) for entry in entries)
    if not all(isinstance(row.quantity, str) for row in rows):
        raise TypeError("text expected")
    return rows


def save_result(result: Result, path: str | PathLike[str], kind: str, name: str) -> Path:
    """Write status and rows of a result as JSON.

    Parameters
    ----------
    result : Result
        The result.
    path : str or path-like
        File to write; an existing one is replaced.
    kind, name : str
        Kind of the result, and what it is about.

    Returns
    -------
    pathlib.Path
        The file.

    Raises
    ------
    DescriptionError
        If it cannot be written.

    Examples
    --------
    >>> from concur.results import Row, StoredResult, save_result
    >>> found = StoredResult("check", "rover", "passed", (Row("CON1", "holds", holds=True),))
    >>> str(save_result(found, "found.json", "check", "rover"))
    'found.json'
    """
    kept = all(row.holds is not False for row in result.rows)
    data = answer(kind, kept, word(result.status), name=name, rows=result.rows)
    target = as_path(path, "result")
    with writing(target.parent):
        replace_files({target: json.dumps(data, indent=1, allow_nan=False).encode() + b"\n"})
    return target


def read_result(path: Path) -> StoredResult:
    """Read what `save_result` or a command with `--json` has written.

    Parameters
    ----------
    path : Path
        The file.

    Returns
    -------
    StoredResult
        Verdict and rows of the file. PROVED becomes UNVERIFIED, since the file contains no proof.

    Raises
    ------
    DescriptionError
        If it is no such file, or its verdict is "passed" and a limit is not kept.

    Examples
    --------
    >>> from pathlib import Path
    >>> from concur.results import Row, StoredResult, read_result
    >>> path = StoredResult("check", "rover", "passed", (Row("CON1", "holds"),)).save("found.json")
    >>> read_result(Path("found.json")).rows[0].quantity
    'CON1'
    """
    cure = "Name a file that `save` of a result, or a command with --json, has written."
    data = read_json(path, "a result of concur", cure)
    try:
        texts = [data[name] for name in ("command", "name", "status")]
        rows = read_rows(data["rows"])
        if not all(isinstance(text, str) for text in texts):
            raise TypeError("text expected")
    except (KeyError, TypeError) as problem:
        raise DescriptionError(
            str(path),
            expected="a result: an object with `command`, `name`, `status` and `rows`",
            came=f"another file ({problem!s:.80})",
            cure=cure,
            file=str(path),
        ) from None
    kind, name, status = texts
    missed = [row.quantity for row in rows if row.holds is False]
    if status == "passed" and missed:
        raise DescriptionError(
            str(path),
            expected="limits that are kept in a result that passed",
            came=f"`{missed[0]}`, which is not kept",
            cure="Run the command again.",
            file=str(path),
        )
    return StoredResult(kind, name, "UNVERIFIED" if status == "PROVED" else status, rows)


def word(status: str | Enum) -> str:
    """Return a verdict as one word.

    Parameters
    ----------
    status : str or Enum
        The verdict.

    Returns
    -------
    str
        The name of a `Status`, another verdict as it is.

    Examples
    --------
    >>> import concur as cc
    >>> cc.results.word(cc.Status.PROVED)
    'PROVED'
    """
    return status.name if isinstance(status, Enum) else status


def verdict(rows: Iterable[Row]) -> str:
    """Say whether all limits are kept.

    Parameters
    ----------
    rows : iterable of Row
        Quantities with their limits.

    Returns
    -------
    str
        "passed" or "failed".

    Examples
    --------
    >>> from concur.results import Row, verdict
    >>> verdict([Row("margin", 0.2, 0.1, holds=True), Row("torque", 21.0, 20.0, holds=False)])
    'failed'
    """
    return "failed" if any(row.holds is False for row in rows) else "passed"


def picked(value: Any, *names: str) -> dict[str, Any]:
    """Return attributes by name as JSON has them.

    Parameters
    ----------
    value : object
        Any object.
    *names : str
        Names of attributes.

    Returns
    -------
    dict
        Each as of `plain`.

    Examples
    --------
    >>> from concur.results import Row, picked
    >>> picked(Row("duration", 2.0, unit="s"), "value", "unit")
    {'value': 2.0, 'unit': 's'}
    """
    return {name: plain(getattr(value, name)) for name in names}


def plain(value: Any) -> Any:
    """Return a value as JSON has it.

    Parameters
    ----------
    value : object
        Number, text, array, or dataclasses, sequences and mappings of them.

    Returns
    -------
    object
        Arrays as lists, members of an enumeration by name; numbers that are not finite are None.

    Examples
    --------
    >>> import numpy as np
    >>> from concur.results import plain
    >>> plain(np.array([1.0, np.inf]))
    [1.0, None]
    """
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, Mapping):
        return {name: plain(entry) for name, entry in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if hasattr(value, "tolist"):  # arrays and numbers of NumPy, which is not imported here
        return plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [plain(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
