"""C compilers: find one, compile sources to a library, and cache the result.

Flags keep values up to rounding. `-ffp-contract=fast` fuses a multiplication and an addition, which
rounds once instead of twice. `-fno-math-errno` and `-fno-trapping-math` disable only `errno` and
the flags of the floating-point unit, which are unused. Never use `-ffast-math`: it deletes the NaN
checks that prevent invalid torques.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.util
import os
import platform
import shlex
import shutil
import stat
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import casadi as ca

from concur.codegen._sources import WHOLE, Sources
from concur.errors import shown

CANDIDATES = ("gcc", "clang", "cc")
"""Commands to try if the environment names no compiler."""

FLAGS = (
    "-march=native",
    "-std=c99",
    "-ffp-contract=fast",
    "-fPIC",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fvisibility=hidden",
    "-w",
)
"""Flags of every compilation; the optimization level depends on the length."""

KEPT_DAYS, KEPT_BYTES = 90, 512 * 2**20
"""Age and total size above which the least recently used cache entries are removed."""

_EXPORT = '-DCASADI_SYMBOL_EXPORT=__attribute__((visibility("default")))'
_SUFFIX = {"win32": ".dll", "darwin": ".dylib"}.get(sys.platform, ".so")
_SAID: set[str] = set()
_TEMPORARY: list[tempfile.TemporaryDirectory[str]] = []


class CompilerWarning(UserWarning):
    """Code runs slower than possible, or is compiled repeatedly; shown once per process.

    Parameters
    ----------
    message : str
        Missing part, and remedy.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)


class CompilationError(Exception):
    """A failed compilation.

    Parameters
    ----------
    message : str
        Last message of the compiler.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)


@dataclass(frozen=True)
class Compiler:
    """A C compiler: its command, and its version, target and processor as `identity`."""

    command: tuple[str, ...]
    identity: str

    @property
    def is_zig(self) -> bool:
        """Whether it is zig, whose C library has no vector functions."""
        return any("zig" in part for part in self.command)

    def key(self, code: Sources) -> str:
        """SHA-256 of sources, flags, CasADi's version and this compiler, hexadecimal."""
        parts = [self.identity, *self.command, *_flags(code), ca.__version__, *code.files]
        digest = hashlib.sha256()
        for part in parts:
            digest.update(part.encode())
            digest.update(b"\0")
        return digest.hexdigest()

    def build(self, code: Sources, library: Path) -> None:
        """Compile sources to a library, with the object files in the same folder."""
        flags = [*_flags(code), *_EXTRA_FLAGS, _EXPORT]
        names = [f"part{index}" for index in range(len(code.files))]
        for name, text in zip(names, code.files, strict=True):
            (library.parent / f"{name}.c").write_text(text, encoding="utf-8")
        if code.solver:
            flags.append(f"-I{ca.GlobalOptions.getCasadiIncludePath()}")
        # Relative names: the library must not contain the folder of its compilation.
        commands = [[*flags, "-c", f"{name}.c", "-o", f"{name}.o"] for name in names]
        with ThreadPoolExecutor(_processors()) as pool:
            list(pool.map(lambda command: self.run(command, library.parent), commands))
        objects = [f"{name}.o" for name in names]
        solver = [str(_solver_library())] if code.solver else []
        self.run(["-shared", *objects, *solver, "-lm", "-o", library.name], library.parent)

    def run(self, arguments: Sequence[str], directory: Path) -> None:
        """Run the compiler in a directory; a failure raises a `CompilationError`."""
        words = [*self.command, *arguments]
        done = subprocess.run(words, cwd=directory, capture_output=True, text=True, check=False)
        if done.returncode:
            last = (done.stderr or done.stdout).strip().splitlines()[-1:]
            raise CompilationError(last[0] if last else f"exit status {done.returncode}")


_EXTRA_FLAGS = () if sys.platform == "win32" else ("-fno-semantic-interposition",)


def find_compiler() -> Compiler | None:
    """Find a C compiler.

    Order: $CONCUR_CC, where "none" means no compiler; $CC; gcc, clang, cc; the package
    `ziglang`.

    Returns
    -------
    Compiler or None
        The first one that runs.
    """
    names = ("CONCUR_CC", "CC", "PATH")
    return _find_compiler(*(os.environ.get(name, "") for name in names))


def interpreted_on_purpose() -> bool:
    """Whether the environment disables compilation with CONCUR_CC=none.

    Returns
    -------
    bool
        True if it does.
    """
    return os.environ.get("CONCUR_CC", "") == "none"


@functools.lru_cache(maxsize=16)
def _find_compiler(chosen: str, usual: str, path: str) -> Compiler | None:
    if chosen == "none":
        return None
    candidates = [words for command in (chosen, usual) if (words := _words(command))]
    candidates += [[name] for name in CANDIDATES]
    if importlib.util.find_spec("ziglang") is not None:
        candidates.append([sys.executable, "-m", "ziglang", "cc"])
    if chosen and not _words(chosen):
        warn_once(f"CONCUR_CC is {chosen!r}, not a compiler: others are tried.")
    for command in candidates:
        answers: list[str] = []
        executable = shutil.which(command[0], path=path or None) or command[0]
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            for question in ("--version", "-dumpmachine"):
                answers.append(
                    subprocess.run(
                        [executable, *command[1:], question],
                        capture_output=True,
                        check=True,
                        text=True,
                        timeout=60,
                    ).stdout
                )
            identity = "\n".join([*answers, _processor()])
            return Compiler((executable, *command[1:]), identity)
        if command == _words(chosen):
            warn_once(f"CONCUR_CC is `{chosen}`, not a compiler: others are tried.")
    return None


def _words(command: str) -> list[str]:
    """Words of a command as in a shell; empty if a quote is not closed."""
    with contextlib.suppress(ValueError):
        return shlex.split(command)
    return []


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
    """Explain why others could have written a file or in a directory; None if only its owner can.

    Cached code runs as machine code, and the hash beside it proves only that it is undamaged.
    """
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


def library(code: Sources, compiler: Compiler) -> tuple[Path, bool] | None:
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
            f"`{' '.join(compiler.command)}` did not compile ({error}): expressions are "
            "interpreted, which is ten times slower. Set CONCUR_CC to another compiler."
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


def warn_once(message: str) -> None:
    """Warn, once per process and message."""
    if message not in _SAID:
        _SAID.add(message)
        warnings.warn(message, CompilerWarning, stacklevel=3)


def _flags(code: Sources) -> tuple[str, ...]:
    if code.assignments <= WHOLE:
        # Scheduling before register allocation: fewer stalls. Clang always does so.
        return ("-O3", "-fschedule-insns", *FLAGS)
    return ("-O2", *FLAGS)


def _processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _processor() -> str:
    """Properties of the processor that `-march=native` depends on."""
    with contextlib.suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").split("\n\n")[0].splitlines()
        names = ("vendor_id", "cpu family", "model", "flags", "Features", "CPU ")
        return "\n".join(line for line in lines if line.startswith(names))
    return f"{platform.machine()} {platform.processor()}"


def _solver_library() -> Path:
    """Path of DAQP in CasADi's wheel, for linking."""
    place = Path(ca.GlobalOptions.getCasadiPath())
    for name in ("libdaqpstat.a", "daqpstat.lib"):
        if (place / name).exists():
            return place / name
    raise CompilationError("CasADi came without the library of its solver DAQP")


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
