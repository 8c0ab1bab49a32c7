"""Tasks that are written in Python: of systems without bodies, which no TOML file describes."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import TypeVar

from concur.control import executed
from concur.errors import ConcurError, DescriptionError
from concur.files import read_text
from concur.tables import file_named

Kind = TypeVar("Kind")

NAME = "task"
"""Name in the file: a `Task`, or a function without arguments that returns one."""


def is_python(path: str | PathLike[str]) -> bool:
    """Whether a task is a Python file, whose code runs when it is read.

    Parameters
    ----------
    path : path
        The task.

    Returns
    -------
    bool
        Whether its suffix is that of Python.

    Examples
    --------
    >>> from concur.io import is_python
    >>> is_python("examples/crane_rig/task.py")
    True
    """
    return file_named(path).suffix.lower() == ".py"


def python_task(path: str | PathLike[str], kind: type[Kind]) -> Kind:
    """Run a Python file, and take its task."""
    text = read_text(Path(path), "a Python file", "Check the name.")
    names, came = executed(text, str(path))
    found = names.get(NAME)
    if callable(found):
        try:
            found = found()
        except ConcurError:
            raise
        except Exception as error:
            found, came = None, f"{type(error).__name__} in `{NAME}`: {error}"
    if not isinstance(found, kind):
        raise DescriptionError(
            str(path),
            expected=f"a Python file with `{NAME}`: a concur.io.Task, or a function that makes one",
            came=came or (f"no `{NAME}`" if found is None else f"{type(found).__name__} `{NAME}`"),
            cure="Write `def task(): return Task(robot=system, ...)`.",
            file=str(path),
        )
    return found
