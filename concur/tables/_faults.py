"""Errors that name file, table and field, and the nearest known name."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import NoReturn

from concur.errors import ConcurError, DescriptionError, shown


def file_named(path: str | PathLike[str]) -> Path:
    """Check that a path is valid; the file need not exist.

    Parameters
    ----------
    path : path
        Name of the file.

    Returns
    -------
    pathlib.Path
        The path.

    Raises
    ------
    DescriptionError
        If it is not a path.
    """
    try:
        return Path(path)
    except TypeError:
        raise DescriptionError(
            "file",
            expected="the path of a TOML file",
            came=f"{type(path).__name__} {path!r:.40}",
            cure='Name the file, for example "my_robot.toml".',
        ) from None


def fault(
    path: str | PathLike[str], table: str, field: str, *, expected: str, came: str, cure: str
) -> DescriptionError:
    """Build the error for an invalid entry.

    Parameters
    ----------
    path : path
        File of the entry.
    table : str
        Table as written in the file, for example ``[[bodies]] "arm"``; empty for the top level.
    field : str
        Field in the table; empty for the table as a whole.
    expected, came, cure : str
        See `ConcurError`.

    Returns
    -------
    DescriptionError
        The error to raise, with the attributes `file`, `table` and `field`.
    """
    where = ", ".join(
        part for part in (str(path), table, f"field `{field}`" if field else "") if part
    )
    return DescriptionError(
        where, expected=expected, came=came, cure=cure, file=str(path), table=table, field=field
    )


def refused(
    at: tuple[str | int | None, ...], expected: str, came: str, cure: str
) -> DescriptionError:
    """Build the error of a table's constructor for an entry; `build` adds file and table.

    Parameters
    ----------
    at : tuple
        Position of the entry in the table; with None at the end that of a table in it.
    expected, came, cure : str
        See `ConcurError`.

    Returns
    -------
    DescriptionError
        The error to raise.
    """
    return DescriptionError("", expected=expected, came=came, cure=cure, at=at)


def stranger(
    at: tuple[str | int, ...], kind: str, name: object, known: Iterable[str]
) -> DescriptionError:
    """Build the error of a table's constructor for an unknown name; `build` adds file and table.

    Parameters
    ----------
    at : tuple of str or int
        Position of the name in the table.
    kind : str
        As for `unknown`.
    name : str or object
        As for `unknown`.
    known : iterable of str
        As for `unknown`.

    Returns
    -------
    DescriptionError
        The error to raise.
    """
    names = list(known)
    expected = f"{kind} ({', '.join(names)})" if names else kind
    cure = suggest(str(name), names, "Check the spelling.")
    return refused(at, expected, named(name), cure)


@contextmanager
def entry(*at: str) -> Iterator[None]:
    """Let errors that are raised inside belong to an entry of the table that `build` makes.

    Parameters
    ----------
    *at : str
        Position of the entry in the table.

    Yields
    ------
    None
        Nothing.
    """
    try:
        yield
    except ConcurError as error:
        error.data.setdefault("at", at)
        raise


class Refusal:
    """Raiser of the errors of one table of a file.

    Parameters
    ----------
    path : str
        The file.
    table : str
        The table as written in the file.
    """

    def __init__(self, path: str, table: str) -> None:
        self.path = path
        self.table = table

    def __call__(self, field: str, expected: str, came: object, cure: str) -> NoReturn:
        """Raise the error for a field."""
        raise fault(
            self.path, self.table, field, expected=expected, came=str(came), cure=cure
        ) from None


def unknown(
    path: str | PathLike[str], table: str, field: str, kind: str, name: object, known: Iterable[str]
) -> DescriptionError:
    """Build the error for an unknown name, with the most similar known one.

    Parameters
    ----------
    path : path
        File of the entry.
    table, field : str
        As for `fault`.
    kind : str
        Kind of the named thing, with its article: "a body".
    name : str or object
        The unknown name, None for a missing one, or what stands in its place.
    known : iterable of str
        The known names.

    Returns
    -------
    DescriptionError
        The error to raise.
    """
    found = stranger((field,), kind, name, known)
    told = {"expected": found.expected, "came": found.came, "cure": found.cure}
    return fault(path, table, field, **told)


@contextmanager
def located(path: str | PathLike[str], table: str, field: str = "") -> Iterator[None]:
    """Prefix the place of errors raised inside with file, table and field.

    Parameters
    ----------
    path : path
        File of the entry.
    table, field : str
        As for `fault`.

    Yields
    ------
    None
        Nothing.
    """
    try:
        yield
    except ConcurError as error:
        if "file" in error.data:
            raise
        if field and "field" in error.data:  # of a table in this field
            field = f"{field}.{error.data['field']}"
        if not field:
            # Constructors end the place of an error with the argument, in back quotes.
            named = re.search(r", `(\w+)`$", error.where)
            field = named[1] if named else ""
        place = ", ".join(
            part for part in (str(path), table, f"field `{field}`" if field else "") if part
        )
        data = {**error.data, "file": str(path), "table": table, "field": field}
        raise type(error)(
            f"{place}: {error.where}" if error.where else place,
            expected=error.expected,
            came=error.came,
            cure=error.cure,
            **data,
        ) from error


def show(value: object) -> str:
    """Format a TOML value for a message.

    Parameters
    ----------
    value : object
        The value.

    Returns
    -------
    str
        Its type and the shortened value.
    """
    if isinstance(value, str):
        return f'the text "{shown(value)}"'
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return "a table" if value else "an empty table"
    if isinstance(value, list):
        return f"a list of {len(value)}: {shown(value)}"
    return shown(value)


def named(value: object) -> str:
    """Format what stands in the place of a name, for a message."""
    if value is None:
        return "no value"
    return f"`{value}`" if isinstance(value, str) else show(value)


def missing_file(
    path: str | PathLike[str], table: str, field: str, kind: str, file: Path
) -> DescriptionError:
    """Build the error for an entry that names a missing file.

    Parameters
    ----------
    path : path
        File of the entry.
    table, field : str
        As for `fault`.
    kind : str
        Kind of the file, with its article: "a robot file".
    file : Path
        The missing file.

    Returns
    -------
    DescriptionError
        The error to raise.
    """
    return fault(
        path,
        table,
        field,
        expected=kind,
        came=f"no file of this name: {file}",
        cure=suggest_file(file, "Give a path relative to the folder of this file."),
    )


def suggest(name: str, known: Iterable[str], otherwise: str) -> str:
    """Suggest the most similar known name.

    Parameters
    ----------
    name : str
        The unknown name.
    known : iterable of str
        The known names.
    otherwise : str
        Sentence without a similar name.

    Returns
    -------
    str
        A sentence for the user.
    """
    near = difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)
    return f"Did you mean `{near[0]}`?" if near else otherwise


def suggest_file(file: Path, otherwise: str, names: Iterable[str] = ()) -> str:
    """Suggest a similar file in the same folder, or a similar name.

    Parameters
    ----------
    file : Path
        The missing file.
    otherwise : str
        Sentence without a similar name.
    names : iterable of str
        Further candidates.

    Returns
    -------
    str
        A sentence for the user.
    """
    # Compare without the common suffix, which would make all names similar.
    known = {name: name for name in names}
    for neighbour in _neighbours(file):
        known.setdefault(neighbour.stem, neighbour.name)
    found = difflib.get_close_matches(file.stem, list(known), n=1, cutoff=0.65)
    return f"Did you mean `{known[found[0]]}`?" if found else otherwise


def _neighbours(file: Path) -> list[Path]:
    try:
        return sorted(p for p in file.parent.iterdir() if p.suffix == ".toml")
    except OSError:
        return []
