"""Reading of files that others wrote, regular ones of a bounded size; folders to write into."""

from __future__ import annotations

import errno
import io
import json
import os
import secrets
import stat
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

from concur.errors import ConcurError, DescriptionError, shown

fcntl: Any = None  # not on Windows: there is no lock
with suppress(ImportError):
    fcntl = import_module("fcntl")

LARGEST_FILE = 64 * 2**20
"""Bytes of a file above which it is not read: the largest certificates have a tenth of it."""

_PACKAGE = Path(__file__).resolve().parent
_FOLDER: ContextVar[Path | None] = ContextVar("_FOLDER", default=None)
_COPIES: ContextVar[Mapping[str, Path]] = ContextVar("_COPIES", default={})  # noqa: B039
_READ: ContextVar[dict[str, bytes] | None] = ContextVar("_READ", default=None)
_GIVEN: ContextVar[Mapping[str, bytes] | None] = ContextVar("_GIVEN", default=None)

_KINDS = (
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)
_MAGIC = (
    (b"\x89HDF", "an HDF5 file"),
    (b"PK\x03\x04", "a ZIP archive"),
    (b"\x7fELF", "machine code"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"\x89PNG", "a picture"),
    (b"%PDF", "a PDF document"),
    (b"\xff\xfe", "text in UTF-16"),
    (b"\xfe\xff", "text in UTF-16"),
)


@contextmanager
def confined(folder: Path, copies: Mapping[str, Path] | None = None) -> Iterator[None]:
    """Read nothing outside of a folder meanwhile, but what comes with the package.

    Parameters
    ----------
    folder : Path
        The folder; links that lead out of it are not followed.
    copies : mapping of str to Path, optional
        Files in it that are read in the place of others, by the absolute names of these.
    """
    try:
        home = folder.resolve()
    except ValueError:  # a NUL: reading a file in it raises the error
        home = folder
    token, named = _FOLDER.set(home), _COPIES.set(copies or {})
    try:
        yield
    finally:
        _FOLDER.reset(token)
        _COPIES.reset(named)


@contextmanager
def recorded() -> Iterator[dict[str, bytes]]:
    """Keep what is read meanwhile, but what comes with the package.

    Yields
    ------
    dict of str to bytes
        Content of each file by its name, for `given`.
    """
    found: dict[str, bytes] = {}
    token = _READ.set(found)
    try:
        yield found
    finally:
        _READ.reset(token)


@contextmanager
def given(files: Mapping[str, bytes]) -> Iterator[None]:
    """Read nothing from the disk meanwhile, but what comes with the package.

    Parameters
    ----------
    files : mapping of str to bytes
        Content of the files that there are, by the names of `recorded`.
    """
    token = _GIVEN.set(files)
    try:
        yield
    finally:
        _GIVEN.reset(token)


def copy_of(path: Path) -> Path:
    """The file that `confined` reads in the place of another.

    Parameters
    ----------
    path : Path
        The other.

    Returns
    -------
    Path
        Its copy, or `path` itself.
    """
    return _COPIES.get().get(str(path), path)


def _is_shipped(path: Path) -> bool:
    """Whether a file comes with the package, and so is on each machine."""
    return path.is_relative_to(_PACKAGE)


def _leads_out(path: Path) -> bool:
    """Whether a file may not be read by `confined`."""
    folder = _FOLDER.get()
    if folder is None:
        return False
    try:
        real = Path(os.path.realpath(path))
    except (OSError, ValueError):
        return True
    return not (real.is_relative_to(folder) or real.is_relative_to(_PACKAGE))


def _is_other(handle: int, path: Path) -> bool:
    """Whether a file that `confined` has opened is not the one that the name leads to inside."""
    if _FOLDER.get() is None:
        return False
    try:
        real = os.path.realpath(path)
        return _leads_out(Path(real)) or not os.path.samestat(os.stat(real), os.fstat(handle))
    except (OSError, ValueError):
        return True


def read_bytes(
    path: Path,
    expected: str,
    cure: str,
    error: Callable[..., ConcurError] = DescriptionError,
    largest: int | None = LARGEST_FILE,
) -> bytes:
    """Read a regular file; a pipe or a device could keep the reader waiting for ever.

    Parameters
    ----------
    path : Path
        The file.
    expected : str
        What it should be, with its article, for errors.
    cure : str
        What to do if there is no such file.
    error : type
        Kind of the error.
    largest : int or None
        Bytes up to which it is read; None: all.

    Returns
    -------
    bytes
        What stands in it.

    Raises
    ------
    ConcurError
        Of the kind `error`, if it is no file that can be read.
    """

    def refuse(came: str, advice: str) -> NoReturn:
        raise error(str(path), expected=expected, came=came, cure=advice, file=str(path))

    name, files, read = os.path.normpath(path), _GIVEN.get(), _READ.get()
    if _is_shipped(path):
        files = read = None
    if files is not None:
        if name not in files:
            refuse("no file of this name", cure)
        if read is not None:
            read[name] = files[name]
        return files[name]
    path = copy_of(path)
    if _leads_out(path):
        folder = _FOLDER.get()
        refuse("a file outside of it", f"Only files in {folder} are read here.")
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except FileNotFoundError:
        refuse("no file of this name", cure)
    except OSError as problem:
        refuse(f"`{problem.strerror}`", "Check the name and the permissions.")
    except ValueError:
        refuse("a name with a NUL in it", "Correct the name.")
    if _is_other(handle, path):
        os.close(handle)
        refuse("a name that leads elsewhere meanwhile", "Leave the folder alone while it is read.")
    size, mode = os.fstat(handle).st_size, os.fstat(handle).st_mode
    if not stat.S_ISREG(mode):
        os.close(handle)
        found = next((kind for test, kind in _KINDS if test(mode)), "another kind of file")
        refuse(found, "Name the file in it." if stat.S_ISDIR(mode) else "Name a regular file.")
    with os.fdopen(handle, "rb") as file:
        data = b""
        try:
            if largest is None or size <= largest:
                data = file.read(size + 1)  # a buffer of what is asked for is made at once
                if len(data) > size:  # it grows, or is of /proc
                    data += file.read() if largest is None else file.read(largest + 1 - len(data))
        except OSError as problem:
            refuse(f"`{problem.strerror}`", "Check the file and the disk.")
        except MemoryError:
            refuse(f"{size / 2**20:g} MiB, more than the memory", "Use a machine with more memory.")
    if largest is not None and max(size, len(data)) > largest:
        refuse(
            f"a file above {largest / 2**20:g} MiB", "Check that this is the file that is meant."
        )
    if read is not None:
        read[name] = data
    return data


def read_text(
    path: Path,
    expected: str,
    cure: str,
    error: Callable[..., ConcurError] = DescriptionError,
    largest: int = LARGEST_FILE,
) -> str:
    """Read a file of text in UTF-8; the mark at its beginning that some editors write is skipped.

    Parameters
    ----------
    path : Path
        The file.
    expected, cure : str
        As of `read_bytes`.
    error : callable
        As of `read_bytes`.
    largest : int
        As of `read_bytes`.

    Returns
    -------
    str
        Its text.

    Raises
    ------
    ConcurError
        Of the kind `error`, if it is no file that can be read, or no text in UTF-8.
    """
    data = read_bytes(path, expected, cure, error, largest)
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as problem:
        raise error(
            str(path),
            expected="a text file in UTF-8",
            came=kind_of(data) or f"byte {data[problem.start]:#04x} at position {problem.start}",
            cure="Save the file as UTF-8.",
            file=str(path),
        ) from None


def read_json(
    path: Path,
    expected: str,
    cure: str,
    error: Callable[..., ConcurError] = DescriptionError,
) -> Any:
    """Read a file of JSON.

    Parameters
    ----------
    path : Path
        The file.
    expected, cure : str
        As of `read_bytes`.
    error : callable
        As of `read_bytes`.

    Returns
    -------
    any
        What stands in it.

    Raises
    ------
    ConcurError
        Of the kind `error`, if it is no file that can be read, or no JSON.
    """
    text = read_text(path, expected, cure, error)
    try:
        return json.loads(text)
    except RecursionError:
        came = "brackets nested too deeply"
    except ValueError as problem:
        came = f"a file that is no JSON: {shown(str(problem), 100)}"
    raise error(
        str(path), expected=expected, came=came, cure="Take it from a copy.", file=str(path)
    )


def is_file(path: Path) -> bool:
    """Say whether there is a regular file of a name, also if no file could have that name.

    Parameters
    ----------
    path : Path
        The name.

    Returns
    -------
    bool
        Whether there is.
    """
    files = _GIVEN.get()
    if files is not None and not _is_shipped(path):
        return os.path.normpath(path) in files
    path = copy_of(path)
    if _leads_out(path):
        return True  # not opened; reading it raises the error
    try:
        return path.is_file()
    except (OSError, ValueError):  # too long, or with a NUL
        return False


def escape_output() -> None:
    """Let standard output escape what its encoding lacks, such as bytes of names of files."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def kind_of(data: bytes) -> str | None:
    """Kind of a file that is no text, by how it begins.

    Parameters
    ----------
    data : bytes
        Its beginning.

    Returns
    -------
    str or None
        The kind, with its article; None if it is not known.
    """
    return next((kind for magic, kind in _MAGIC if data.startswith(magic)), None)


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


def make_directory(directory: str | PathLike[str]) -> Path:
    """Create a folder with its parents, unless it exists.

    Parameters
    ----------
    directory : str or os.PathLike
        Its path.

    Returns
    -------
    pathlib.Path
        The folder.

    Raises
    ------
    ConcurError
        If it cannot be created.
    """
    folder = folder_named(directory, "results")
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    return folder


def file_to_write(path: str | PathLike[str], example: str) -> Path:
    """Check that a file to be written has a name.

    Parameters
    ----------
    path : str or os.PathLike
        Its path.
    example : str
        A name that the error suggests.

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
        return Path(path)
    except TypeError:
        raise ConcurError(
            "file",
            expected="the path of a file",
            came=f"{type(path).__name__} {shown(path, 40)}",
            cure=f'Name the file, for example "{example}".',
        ) from None


def replace_files(contents: Mapping[Path, bytes]) -> None:
    """Write files that replace others of their names only when all are complete.

    A write that fails or is killed leaves the old files as they are. A symbolic link stays: the
    file that it names is replaced, with the same permissions.

    Parameters
    ----------
    contents : mapping of Path to bytes
        Content of each file.

    Raises
    ------
    OSError, ValueError
        If a file cannot be written.
    """
    drafts: dict[Path, Path] = {}
    try:
        for path, data in contents.items():
            target = Path(os.path.realpath(path))
            if target.exists() and not target.is_file():
                raise FileExistsError(errno.EEXIST, "a folder or device of this name")
            if target.exists() and not os.access(target, os.W_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
            draft = target.with_name(f".concur-{secrets.token_hex(8)}")
            drafts[draft] = target
            with open(draft, "xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            if target.exists():
                draft.chmod(stat.S_IMODE(target.stat().st_mode))
        for draft, target in drafts.items():
            os.replace(draft, target)
    finally:
        for draft in drafts:
            draft.unlink(missing_ok=True)


@contextmanager
def replacing(path: str | PathLike[str]) -> Iterator[BinaryIO]:
    """Write a file in pieces; it replaces another of its name only when it is complete.

    Parameters
    ----------
    path : str or path-like
        File to write.

    Yields
    ------
    binary file
        To write to.

    Raises
    ------
    ConcurError
        If it cannot be written.
    """
    target = Path(os.path.realpath(path))
    draft = target.with_name(f".concur-{secrets.token_hex(8)}")
    try:
        with open(draft, "xb") as file:
            yield file
        os.replace(draft, target)
    except OSError as problem:
        raise ConcurError(
            str(path),
            expected="a file that can be written",
            came=problem.strerror or str(problem),
            cure="Choose another file, or free disk space.",
        ) from problem
    finally:
        draft.unlink(missing_ok=True)


def lock(handle: int) -> None:
    """Lock an open file or folder until it is closed, by a kill too.

    Parameters
    ----------
    handle : int
        Its file descriptor.

    Raises
    ------
    BlockingIOError
        If it is locked already.
    OSError
        If its file system has no locks.
    """
    if fcntl is not None:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


@contextmanager
def writing(
    place: Path, where: str = "", error: type[ConcurError] = ConcurError, kind: str = ""
) -> Iterator[None]:
    """Say in one line why a file, or files into a folder, cannot be written.

    Parameters
    ----------
    place : pathlib.Path
        The folder, or the file, whose name has an ending.
    where : str
        Place named in the error; default the file or folder.
    error : type
        Class of the error.
    kind : str
        "file" or "folder"; default by the ending.

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
        kind = kind or ("file" if place.suffix else "folder")
        full = getattr(problem, "errno", None) in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        raise error(
            where or str(place),
            expected=f"a {kind} that can be written",
            came=getattr(problem, "strerror", None) or str(problem) or type(problem).__name__,
            cure=f"Free some space, or name another {kind}." if full else f"Name another {kind}.",
        ) from problem
