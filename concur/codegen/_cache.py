"""Cache of compiled libraries, and of the keys under which they are found without their graphs.

Cached code runs as machine code. Only its owner can write the directory, and the hash beside each
library proves that it is undamaged.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from concur.codegen._compiler import FLAGS, CompilationError, Compiler, warn_once
from concur.codegen._sources import Sources
from concur.errors import shown

T = TypeVar("T")

SLOW = "expressions are interpreted, which is ten times slower"
"""Consequence of a compilation that fails."""

KEPT_DAYS, KEPT_BYTES = 90, 512 * 2**20
"""Age and total size above which the least recently used cache entries are removed."""

_SUFFIX = {"win32": ".dll", "darwin": ".dylib"}.get(sys.platform, ".so")
_TEMPORARY: list[tempfile.TemporaryDirectory[str]] = []


def cache_directory() -> Path:
    """Directory of compiled code, which only its owner can write.

    Returns
    -------
    pathlib.Path
        $CONCUR_CACHE, or the platform's directory for caches, else a temporary one.
    """
    given = os.environ.get("CONCUR_CACHE", "")
    if given:
        folder = Path(given)
    else:
        from platformdirs import user_cache_path

        folder = user_cache_path("concur", appauthor=False) / "compiled"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if hasattr(os, "getuid") and folder.stat().st_uid == os.getuid():
            # Some accounts grant write access to their group by default.
            folder.chmod(folder.stat().st_mode & ~(stat.S_IWGRP | stat.S_IWOTH))
        with tempfile.TemporaryFile(dir=folder):
            why = _not_private(folder)
            if why is None:
                return folder
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
    warn_once(
        f"Compiled code cannot be kept in {shown(str(folder), 200)} ({why}): every process "
        "compiles it. Set CONCUR_CACHE to a directory that belongs to you and others cannot write."
    )
    if not _TEMPORARY:
        _TEMPORARY.append(tempfile.TemporaryDirectory(prefix="concur-"))
    return Path(_TEMPORARY[0].name)


def _not_private(path: Path) -> str | None:
    """Explain why others could have written a file, or into a directory; None if none could."""
    if not hasattr(os, "getuid"):  # on Windows the directory belongs to the account
        return None
    facts = path.lstat()
    if stat.S_ISLNK(facts.st_mode):
        return _not_private(path.resolve()) if path.is_dir() else f"{path.name} is a link"
    if facts.st_uid != os.getuid():
        return f"{path.name} belongs to another account"
    if facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return f"{path.name} can be written by others"
    return None


def loaded(
    code: Sources, compiler: Compiler, load: Callable[[Path], T], what: str
) -> tuple[T, Path, bool] | None:
    """Load the library of some sources.

    The third result is whether it was cached. None, with a warning of `what` is interpreted, if it
    cannot be compiled or loaded.
    """
    for _ in range(2):
        found = library(code, compiler, what)
        if found is None:
            return None
        try:
            return load(found[0]), *found
        except (OSError, RuntimeError):
            forget(found[0])
    warn_once(
        f"A library compiled by `{' '.join(compiler.command)}` cannot be loaded: {what}. Set "
        "CONCUR_CC to another compiler."
    )
    return None


def library(code: Sources, compiler: Compiler, what: str = SLOW) -> tuple[Path, bool] | None:
    """The library of some sources, and whether it was cached; None if it cannot be compiled."""
    directory, key = cache_directory(), compiler.key(code)
    kept = directory / f"{key}{_SUFFIX}"
    if is_whole(kept):
        return kept, True
    try:
        # Files of a killed process remain in a separate directory, which `trim` removes later.
        with tempfile.TemporaryDirectory(dir=directory, prefix="build-") as scratch:
            built = Path(scratch) / f"library{_SUFFIX}"
            compiler.build(code, built)
            seal = Path(scratch) / "seal"
            seal.write_text(_digest(built), encoding="ascii")
            built.chmod(0o700)
            os.replace(built, kept)
            os.replace(seal, _seal(kept))
    except (CompilationError, OSError) as error:
        warn_once(
            f"`{' '.join(compiler.command)}` did not compile ({error}): {what}. Set CONCUR_CC to "
            "another compiler."
        )
        return None
    trim(directory)
    return kept, False


def forget(path: Path) -> None:
    """Remove a library that cannot be loaded."""
    for part in (path, _seal(path)):
        with contextlib.suppress(OSError):
            part.unlink()


def trim(directory: Path) -> None:
    """Remove entries that were unused for long, and the oldest beyond the maximum size."""
    now, entries = time.time(), []
    with contextlib.suppress(OSError):
        for path in directory.iterdir():
            with contextlib.suppress(OSError):
                facts = path.stat()
                if path.name.startswith("build-") and now - facts.st_mtime > 86400:
                    shutil.rmtree(path, ignore_errors=True)
                elif path.suffix == ".json" or path.name.startswith("note-"):
                    if now - facts.st_mtime > KEPT_DAYS * 86400:
                        path.unlink()
                elif path.suffix == _SUFFIX:
                    entries.append((facts.st_mtime, facts.st_size, path))
    total = 0
    for used, size, path in sorted(entries, reverse=True):
        total += size
        if now - used > KEPT_DAYS * 86400 or total > KEPT_BYTES:
            forget(path)


def _seal(path: Path) -> Path:
    return path.with_suffix(".sha256")


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def is_whole(path: Path) -> bool:
    """Whether a library is undamaged; if so, mark it as used now."""
    try:
        if _not_private(path) or _not_private(path.parent) or not path.is_file():
            return False
        whole = _seal(path).read_text(encoding="ascii") == _digest(path)
    except (OSError, ValueError):
        return False
    with contextlib.suppress(OSError):
        os.utime(path)
    return whole


def remember(key: str, compiler: Compiler, library: Path, facts: Mapping[str, Any]) -> None:
    """Note a library under a key; without this note its graphs are built again."""
    note = _note(key, compiler)
    with contextlib.suppress(OSError):
        handle, draft = tempfile.mkstemp(dir=note.parent, prefix="note-")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump({"library": library.name, **facts}, file)
        os.replace(draft, note)


def recall(key: str, compiler: Compiler) -> tuple[Path, dict[str, Any]] | None:
    """The library noted under a key, with its facts; None without a sound one."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        facts = json.loads(_note(key, compiler).read_text(encoding="utf-8"))
        name = str(facts["library"])
        path = cache_directory() / name
        # A name, not a path: only files in the cache are loaded.
        if path.name == name and is_whole(path):
            return path, facts
    return None


def _note(key: str, compiler: Compiler) -> Path:
    text = "\0".join((key, compiler.identity, *compiler.command, *FLAGS))
    return cache_directory() / f"{hashlib.sha256(text.encode()).hexdigest()}.json"
