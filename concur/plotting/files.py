"""Reading and writing of files, with errors that name a remedy."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from concur.errors import ConcurError


def make_directory(directory: str | os.PathLike[str]) -> Path:
    """Create a directory with its parents, unless it exists.

    Parameters
    ----------
    directory : path
        The directory.

    Returns
    -------
    pathlib.Path
        The directory.

    Raises
    ------
    ConcurError
        If it cannot be created.
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
    """Convert a failure to write a file into an error with a remedy.

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
    """Convert a failure to read a file into an error with a remedy.

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
