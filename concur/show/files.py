"""Reading and writing of files, with errors that name a remedy."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
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
    with _converted(folder, "a directory that can be written", "Name another directory."):
        folder.mkdir(parents=True, exist_ok=True)
    return folder


def writing(target: Path) -> AbstractContextManager[None]:
    """Convert a failure to write a file into an error with a remedy.

    Parameters
    ----------
    target : pathlib.Path
        The file written inside the `with` block.

    Returns
    -------
    context manager
        It raises a `ConcurError` in place of any `OSError`.
    """
    return _converted(
        target, "a file that can be written", "Name another place, or free some space."
    )


def reading(source: Path) -> AbstractContextManager[None]:
    """Convert a failure to read a file into an error with a remedy.

    Parameters
    ----------
    source : pathlib.Path
        The file read inside the `with` block.

    Returns
    -------
    context manager
        It raises a `ConcurError` in place of any `OSError`.
    """
    cure = "Write it first, for instance with `save_figures`."
    return _converted(source, "a file that can be read", cure)


@contextmanager
def _converted(path: Path, expected: str, cure: str) -> Iterator[None]:
    """Raise a `ConcurError` in place of any `OSError`."""
    try:
        yield
    except OSError as error:
        came = error.strerror or str(error)
        raise ConcurError(str(path), expected=expected, came=came, cure=cure) from error
