"""TOML files: text to a dictionary, with the place of syntax errors."""

from __future__ import annotations

import re
import tomllib
from os import PathLike
from pathlib import Path
from typing import Any

from concur.errors import DescriptionError
from concur.files import read_text
from concur.tables._faults import file_named, suggest_file

LARGEST_TOML = 4 * 2**20
"""Largest size of a TOML file in bytes; a robot of a thousand bodies takes half a million."""

DEEPEST = 20
"""Largest nesting depth of tables and lists; the deepest field of the formats is at 6."""


def read_toml(path: str | PathLike[str]) -> dict[str, Any]:
    """Read a TOML file.

    Parameters
    ----------
    path : path
        File to read.

    Returns
    -------
    dict
        The tables of the file.

    Raises
    ------
    DescriptionError
        If it is not a path, does not exist, is a directory, cannot be read, or is not TOML.
    """
    file = file_named(path)
    here = "" if file.is_absolute() else f"; it is relative to {Path.cwd()}"
    missing = suggest_file(file, f"Check the path{here}.")
    text = read_text(file, "a TOML file", missing, largest=LARGEST_TOML)
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _syntax_error(str(path), text, str(error)) from None
    except RecursionError:
        reason = "brackets nested too deeply"
    except ValueError:  # an integer with more digits than Python converts
        reason = "a whole number beyond 64 bits"
    else:
        if not _is_deep(data):
            return data
        reason = f"tables or lists nested more than {DEEPEST} deep, or a number beyond 64 bits"
    raise DescriptionError(
        str(path), expected="TOML", came=reason, cure="Correct the entry.", file=str(path)
    )


def _is_deep(value: Any, depth: int = 0) -> bool:
    """Whether tables are nested too deeply, or an integer exceeds the 64 bits of TOML."""
    if isinstance(value, int):
        return not -(2**63) <= value < 2**63
    if not isinstance(value, (dict, list)):
        return False
    entries = value.values() if isinstance(value, dict) else value
    return depth >= DEEPEST or any(_is_deep(entry, depth + 1) for entry in entries)


def _syntax_error(path: str, text: str, message: str) -> DescriptionError:
    found = re.search(r"\(at line (\d+), column (\d+)\)", message)
    lines = text.splitlines() or [""]
    number = int(found[1]) if found else len(lines)
    if not path.lower().endswith(".toml"):
        # Do not quote the file in the message: it may be private and of another kind.
        return DescriptionError(
            path,
            expected="a TOML file (.toml)",
            came=f"another kind of file: line {number} is not TOML",
            cure="Give the path of a TOML file.",
            file=path,
            line=number,
        )
    reason = re.sub(r"\s*\(at .*\)$", "", message)
    return DescriptionError(
        f"{path}, line {number}",
        expected="TOML",
        came=f"`{lines[min(number, len(lines)) - 1].strip()[:60]}` ({reason})",
        cure="Check brackets, quotes and repeated names on this line and the one before.",
        file=path,
        line=number,
    )
