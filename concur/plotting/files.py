"""Reading and writing files, with errors that say what to do."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from concur.errors import ConcurError


def make_directory(directory: str | os.PathLike[str]) -> Path:
    """Make a directory, with its parents, unless it is there.

    Parameters
    ----------
    directory : path
        The directory.

    Returns
    -------
    pathlib.Path
        The same.

    Raises
    ------
    ConcurError
        If it cannot be made.
    """
    folder = Path(directory)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConcurError(
            str(folder),
            expected="a directory that can be written",
            came=error.strerror or str(error),
            cure="Name another directory.",
        ) from error
    return folder


@contextmanager
def writing(target: Path) -> Iterator[None]:
    """Turn a failure to write a file into an error with a cure.

    Parameters
    ----------
    target : pathlib.Path
        The file written inside the `with` block.

    Yields
    ------
    None

    Raises
    ------
    ConcurError
        In place of any `OSError`.
    """
    try:
        yield
    except OSError as error:
        raise ConcurError(
            str(target),
            expected="a file that can be written",
            came=error.strerror or str(error),
            cure="Name another place, or free some space.",
        ) from error


@contextmanager
def reading(source: Path) -> Iterator[None]:
    """Turn a failure to read a file into an error with a cure.

    Parameters
    ----------
    source : pathlib.Path
        The file read inside the `with` block.

    Yields
    ------
    None

    Raises
    ------
    ConcurError
        In place of any `OSError`.
    """
    try:
        yield
    except OSError as error:
        raise ConcurError(
            str(source),
            expected="a file that can be read",
            came=error.strerror or str(error),
            cure="Write it first, for instance with `save_figures`.",
        ) from error
