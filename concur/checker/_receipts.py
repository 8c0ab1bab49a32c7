"""Receipts: proofs that the checker of this version confirmed on this machine.

A receipt lies in the private cache of the user and names the hash of the proof's content, which the
reader of the file verifies. A proof that comes from elsewhere has none, and a changed one has
another hash. The file may be replaced while it is verified: the receipt is for what was read.
"""

from __future__ import annotations

import contextlib
import os
from os import PathLike
from pathlib import Path

from concur.codegen import cache_directory, fingerprint
from concur.documents import as_path
from concur.errors import DescriptionError
from concur.proofs import TaskDocument


def _receipt(document: TaskDocument) -> Path:
    return cache_directory() / f"{fingerprint('confirmed proof', document.hash)}.json"


def give_receipt(document: TaskDocument) -> None:
    """Note that a proof was confirmed; without a cache, nothing is noted."""
    with contextlib.suppress(OSError):
        _receipt(document).write_text("{}\n", encoding="utf-8")


def confirmed(proof: TaskDocument | str | PathLike[str]) -> bool:
    """Whether the checker of this version confirmed a proof on this machine.

    Parameters
    ----------
    proof : TaskDocument or path
        What was read from a file, or the file.

    Returns
    -------
    bool
        Whether `recheck` returned PROVED for the same content. False for files that are no complete
        proof of a task.

    Examples
    --------
    >>> from dataclasses import replace
    >>> import concur as cc
    >>> from concur.checker import confirmed
    >>> from concur.proofs import prove_task
    >>> task = replace(cc.load_task("examples/rover_arm.toml"), duration=0.004)
    >>> prove_task(task, edge=0.05).save("task.json")
    >>> confirmed("task.json")
    False
    """
    if not isinstance(proof, TaskDocument):
        try:
            proof = TaskDocument(as_path(proof, "proof"))
        except DescriptionError:
            return False
    with contextlib.suppress(OSError):
        os.utime(_receipt(proof))  # the cache removes what is not used
        return True
    return False
