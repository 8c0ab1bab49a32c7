"""C compilers: find one, and compile sources to a library.

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
import subprocess
import sys
import warnings
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import casadi as ca

from concur._threads import processors
from concur.codegen._sources import WHOLE, Sources

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

_EXPORT = '-DCASADI_SYMBOL_EXPORT=__attribute__((visibility("default")))'
_SAID: set[str] = set()


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
        First error of the compiler.
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
        parts = [self.identity, *self.command, *compiler_flags(code), ca.__version__, *code.files]
        digest = hashlib.sha256()
        for part in parts:
            digest.update(part.encode())
            digest.update(b"\0")
        return digest.hexdigest()

    def build(self, code: Sources, library: Path) -> None:
        """Compile sources to a library, with the object files in the same folder."""
        flags = [*compiler_flags(code), *_EXTRA_FLAGS, _EXPORT]
        names = [f"part{index}" for index in range(len(code.files))]
        for name, text in zip(names, code.files, strict=True):
            (library.parent / f"{name}.c").write_text(text, encoding="utf-8")
        # Relative names: the library must not contain the folder of its compilation.
        commands = [[*flags, "-c", f"{name}.c", "-o", f"{name}.o"] for name in names]
        with ThreadPoolExecutor(processors()) as pool:
            list(pool.map(lambda command: self.run(command, library.parent), commands))
        objects = [f"{name}.o" for name in names]
        self.run(["-shared", *objects, "-lm", "-o", library.name], library.parent)

    def run(self, arguments: Sequence[str], directory: Path) -> None:
        """Run the compiler in a directory; a failure raises a `CompilationError`."""
        words = [*self.command, *arguments]
        done = subprocess.run(words, cwd=directory, capture_output=True, text=True, check=False)
        if done.returncode:
            said = (done.stderr or done.stdout).strip().splitlines()
            first = [line for line in said if "error" in line] or said[-1:]
            raise CompilationError(first[0] if first else f"exit status {done.returncode}")


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


def compiler_for(what: str) -> Compiler | None:
    """The compiler; None, with a warning of what is interpreted, unless CONCUR_CC is "none"."""
    compiler = find_compiler()
    if compiler is None and not interpreted_on_purpose():
        warn_once(
            f"No C compiler was found: {what}. Install gcc or clang, or the package `ziglang`; "
            "CONCUR_CC=none silences this."
        )
    return compiler


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


def warn_once(message: str) -> None:
    """Warn, once per process and message."""
    if message not in _SAID:
        _SAID.add(message)
        warnings.warn(message, CompilerWarning, stacklevel=3)


def compiler_flags(code: Sources) -> tuple[str, ...]:
    """Flags with which C sources of functions are compiled for this machine.

    Parameters
    ----------
    code : Sources
        The sources.

    Returns
    -------
    tuple of str
        Flags of GCC and Clang.
    """
    if code.assignments <= WHOLE:
        # Scheduling before register allocation: fewer stalls. Clang always does so.
        return ("-O3", "-fschedule-insns", *FLAGS)
    return ("-O2", *FLAGS)


def _processor() -> str:
    """Properties of the processor that `-march=native` depends on."""
    with contextlib.suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").split("\n\n")[0].splitlines()
        names = ("vendor_id", "cpu family", "model", "flags", "Features", "CPU ")
        return "\n".join(line for line in lines if line.startswith(names))
    return f"{platform.machine()} {platform.processor()}"
