"""JSON documents with a hash of their content: proofs that others verify."""

from __future__ import annotations

import hashlib
import json
import platform
import stat
from importlib.metadata import PackageNotFoundError, version
from os import PathLike
from pathlib import Path
from typing import Any, NoReturn

from concur._version import __version__
from concur.errors import DescriptionError
from concur.files import writing

_PROGRAMS = ("numpy", "casadi", "cvxpy", "clarabel", "python-flint")


def document_hash(document: dict[str, Any]) -> str:
    """SHA-256 of a document without its entry `hash`.

    Parameters
    ----------
    document : dict
        Document of JSON types.

    Returns
    -------
    str
        The hash, hexadecimal: of JSON with sorted keys and no blanks.
    """
    rest = {name: value for name, value in document.items() if name != "hash"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def as_path(value: object, where: str = "certificate") -> Path:
    """Check a path that a user gave.

    Parameters
    ----------
    value : object
        The path.
    where : str
        Kind of the file, for errors.

    Returns
    -------
    pathlib.Path
        The path.

    Raises
    ------
    DescriptionError
        If it is no path.
    """
    if isinstance(value, (str, PathLike)):
        path = value if isinstance(value, str) else value.__fspath__()
        if isinstance(path, str):
            return Path(path)
    raise DescriptionError(
        f"{where}, `path`",
        expected="the path of a file",
        came=f"{type(value).__name__} {value!r:.40}",
        cure='Give the path of a file, such as "proof.json".',
    )


def write_document(
    path: str | PathLike[str], kind: str, number: int, members: dict[str, Any]
) -> None:
    """Write a document with its hash, one member per line.

    Parameters
    ----------
    path : path
        File to write.
    kind : str
        Name of the format.
    number : int
        Version of the format.
    members : dict
        Content, of JSON types.

    Raises
    ------
    DescriptionError
        If the file cannot be written.
    """
    document = {"format": kind, "version": number, "versions": program_versions(), **members}
    document["hash"] = document_hash(document)
    lines = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in document.items()]
    target = as_path(path)
    with writing(target, str(path), DescriptionError, "file"):
        target.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def read_document(
    path: Path, formats: tuple[str, ...], number: int, where: str, cures: tuple[str, str]
) -> dict[str, Any]:
    """Read a document of some formats and verify its hash.

    Parameters
    ----------
    path : Path
        A regular file; the caller bounds its size.
    formats : tuple of str
        Names of the formats.
    number : int
        Their version.
    where : str
        Kind of the file, for errors.
    cures : tuple of str
        What to do if the file is invalid, and if its content was changed.

    Returns
    -------
    dict
        The document, with unique names and finite numbers.

    Raises
    ------
    DescriptionError
        If it cannot be read, is another document, or has another hash.
    """

    def refuse(place: str, expected: str, came: object, cure: str = cures[0]) -> NoReturn:
        raise DescriptionError(
            f"{where}, {place}",
            expected=expected,
            came=str(came) if isinstance(came, str) else f"{type(came).__name__} {came!r:.60}",
            cure=cure,
        )

    def constant(name: str) -> NoReturn:
        refuse(f"`{path.name}`", "finite numbers", name)

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        if len({name for name, _ in items}) < len(items):
            refuse(f"`{path.name}`", "unique names in an object", [name for name, _ in items])
        return dict(items)

    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise ValueError("not a regular file")
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        refuse(f"`{path}`", "a file that can be read as text", str(error))
    try:
        document = json.loads(text, parse_constant=constant, object_pairs_hook=pairs)
    except (ValueError, RecursionError) as error:
        refuse(f"`{path.name}`", "JSON", str(error))
    if not isinstance(document, dict) or document.get("format") not in formats:
        came = type(document).__name__
        if isinstance(document, dict):
            came = f"`format` {document.get('format')!r:.60}"
        refuse(f"`{path.name}`", f'an object with `format` "{formats[0]}"', came)
    if document.get("version") != number or isinstance(document["version"], bool):
        refuse("`version`", str(number), document.get("version"), "Use that version of concur.")
    try:
        found = document_hash(document)
    except (ValueError, RecursionError):
        refuse(f"`{path.name}`", "finite numbers", "a number beyond the floats")
    if document.get("hash") != found:
        refuse("`hash`", found, document.get("hash"), cures[1])
    return document


def program_versions() -> dict[str, str]:
    """Installed versions of the software that a proof uses.

    Returns
    -------
    dict of str to str
        Version by name.
    """
    found = {"python": platform.python_version(), "concur": __version__}
    for name in _PROGRAMS:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            # Not every method needs the packages of the extra.
            continue
    return found
