"""Import of the Python files in `drive_modules` of a rig file, which register kinds of drives."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

from hil._concur import DescriptionError, copy_of, is_file, read_bytes, suggest
from hil.drives._registry import registering
from hil.errors import RigFileError

RUNS_NOTHING = 'Put code that runs as a script under `if __name__ == "__main__":`.'

_IMPORTED: set[str] = set()


def drive_files(names: Iterable[str], rig_file: Path) -> tuple[Path, ...]:
    """Find the files that `drive_modules` names.

    Parameters
    ----------
    names : iterable of str
        The entries of the field.
    rig_file : Path
        The rig file; the names are relative to its folder.

    Returns
    -------
    tuple of Path
        One file for each name.

    Raises
    ------
    RigFileError
        If a file is missing, or is not a Python file.
    """
    files = []
    for place, name in enumerate(names):
        file = copy_of(rig_file.parent / name)
        if not (file.suffix == ".py" and is_file(file)):
            beside = [other.name for other in rig_file.parent.glob("*.py")]
            raise _fault(
                rig_file,
                place,
                "a Python file (.py)",
                f"{file}" if is_file(file) else f"no file of this name: {file}",
                suggest(name, beside, "Name it relative to the folder of this file."),
            )
        files.append(file)
    return tuple(files)


def import_drives(files: Iterable[Path], rig_file: Path) -> None:
    """Import the files that register drives; an unchanged file is imported once per process.

    If an import fails, the registrations of the file are removed.

    Parameters
    ----------
    files : iterable of Path
        As of `drive_files`.
    rig_file : Path
        The rig file, for errors.

    Raises
    ------
    RigFileError
        If a file cannot be read, raises on import, or registers no kind of drive.
    """
    for place, file in enumerate(files):
        _import(file, rig_file, place)


def _import(file: Path, rig_file: Path, place: int) -> None:
    try:
        source = read_bytes(file, "a readable file", "Check the name.")
    except DescriptionError as error:
        raise _fault(rig_file, place, error.expected, error.came, error.cure) from None
    # Named after its content: copies of a file are one module.
    name = f"drive_module_{sha256(source).hexdigest()[:16]}"
    if name in _IMPORTED:
        return
    if name in sys.modules:
        raise _fault(
            rig_file,
            place,
            "a file that reads no rig file while it is imported",
            f"{file}, which reads this one",
            RUNS_NOTHING,
        )
    spec = spec_from_file_location(name, file)
    assert spec is not None  # of a file that ends in .py
    module = module_from_spec(spec)
    with _kept(module), registering() as kinds:
        try:
            # No byte code is stored beside the file: it could be older than the source.
            exec(compile(source, file, "exec", dont_inherit=True), vars(module))
        except (Exception, SystemExit) as error:
            raise _fault(
                rig_file,
                place,
                "a Python file that can be imported",
                f"{type(error).__name__}{_line(error, file)}: {error}",
                f"Correct it. {RUNS_NOTHING} If it was changed after an import, restart Python.",
            ) from error
        if not kinds:
            raise _fault(
                rig_file,
                place,
                "a Python file that registers a kind of drive",
                f"{file}, which registers none",
                "Call `hil.register_drive` in it, or remove it from the list.",
            )
    _IMPORTED.add(name)


@contextmanager
def _kept(module: ModuleType) -> Iterator[None]:
    """Remove a module from `sys.modules` if its import fails."""
    sys.modules[module.__name__] = module
    try:
        yield
    except BaseException:
        sys.modules.pop(module.__name__, None)
        raise


def _line(error: BaseException, file: Path) -> str:
    """Line of a file at which an error was raised."""
    if isinstance(error, SyntaxError):
        return ""  # its text contains the line
    lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == str(file)]
    return f" in line {lines[-1]}" if lines else ""


def _fault(rig_file: Path, place: int, expected: str, came: str, cure: str) -> RigFileError:
    field = f"drive_modules[{place}]"
    return RigFileError(
        f"{rig_file}, field `{field}`",
        expected=expected,
        came=came,
        cure=cure,
        file=str(rig_file),
        table="",
        field=field,
    )
