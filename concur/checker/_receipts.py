"""Receipts: files that the checker of this version confirmed on this machine.

A receipt lies in the private cache of the user and names the SHA-256 of the file. A file that
comes from elsewhere has none, and a changed file has another hash.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from os import PathLike
from pathlib import Path

from concur.codegen import cache_directory, fingerprint
from concur.documents import as_path
from concur.files import read_bytes


def _receipt(path: Path) -> Path:
    data = read_bytes(path, "the file of a proof", "Check the name.")
    key = fingerprint("confirmed proof", hashlib.sha256(data).hexdigest())
    return cache_directory() / f"{key}.json"


def give_receipt(path: Path) -> None:
    """Note that a file was confirmed; without a cache, nothing is noted."""
    with contextlib.suppress(OSError):
        _receipt(path).write_text("{}\n", encoding="utf-8")


def confirmed(path: str | PathLike[str]) -> bool:
    """Whether the checker of this version confirmed a file on this machine.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    bool
        Whether `recheck` returned PROVED for the same content.

    Raises
    ------
    DescriptionError
        If the file cannot be read.
    """
    receipt = _receipt(as_path(path, "proof"))
    with contextlib.suppress(OSError):
        os.utime(receipt)  # the cache removes what is not used
        return True
    return False
