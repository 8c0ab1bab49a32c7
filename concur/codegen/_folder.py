"""Folders that files are written into, and what is said where they cannot be."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path

from concur.errors import ConcurError


def folder_named(directory: str | PathLike[str], where: str) -> Path:
    """Check that a folder has a name; it need not exist.

    Parameters
    ----------
    directory : str or os.PathLike
        Its path.
    where : str
        Place named in errors.

    Returns
    -------
    pathlib.Path
        The path.

    Raises
    ------
    ConcurError
        If it is no path.
    """
    try:
        return Path(directory)
    except TypeError:
        raise ConcurError(
            f"{where}, `directory`",
            expected="the path of a folder",
            came=f"{type(directory).__name__} {directory!r:.40}",
            cure='Name the folder that the files go to, for example "out".',
        ) from None


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Say in one line why files cannot be written into a folder.

    Parameters
    ----------
    folder : pathlib.Path
        The folder.

    Yields
    ------
    None
        While files are written.

    Raises
    ------
    ConcurError
        If they cannot.
    """
    try:
        yield
    except (OSError, ValueError) as problem:
        raise ConcurError(
            str(folder),
            expected="a folder that can be written",
            came=getattr(problem, "strerror", None) or str(problem) or type(problem).__name__,
            cure="Name another folder.",
        ) from None
