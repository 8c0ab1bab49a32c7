"""Functions as machine code: written in C, compiled, and called through CasADi."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import casadi as ca

from concur.codegen._compiler import (
    FLAGS,
    Compiler,
    cache_directory,
    find_compiler,
    forget,
    interpreted_on_purpose,
    is_whole,
    library,
    warn_once,
)
from concur.codegen._sources import sources


@dataclass(frozen=True)
class Compiled:
    """Compiled functions, with durations of the compilation.

    Parameters
    ----------
    functions : tuple of casadi.Function
        The functions, with the signatures of the given ones.
    written : float
        Duration of writing the C sources, s.
    built : float
        Duration of compiling, or of finding and loading, s.
    cached : bool
        Whether they came from the cache.
    instructions : tuple of int
        Length of each graph.
    solver : bool
        Whether they contain a QP solver, which can fail.
    """

    functions: tuple[ca.Function, ...]
    written: float
    built: float
    cached: bool
    instructions: tuple[int, ...]
    solver: bool


def instructions(function: ca.Function) -> int:
    """Count the instructions of a function's graph; each called graph counts once.

    Parameters
    ----------
    function : casadi.Function
        The function.

    Returns
    -------
    int
        Number of instructions.
    """
    inner = function.find_functions() if function.is_a("MXFunction") else []
    return sum(
        int(f.n_instructions())
        for f in [function, *inner]
        if f.is_a("SXFunction") or f.is_a("MXFunction")
    )


def compiled(functions: Sequence[ca.Function], key: str | None = None) -> Compiled | None:
    """Compile functions into one library.

    Parameters
    ----------
    functions : sequence of casadi.Function
        Functions over SX, or over MX with solvers for which CasADi writes C.
    key : str, optional
        A `fingerprint` under which `recalled` finds them without their graphs.

    Returns
    -------
    Compiled or None
        The functions; None if they must be interpreted for lack of a compiler, with a warning
        once per process unless CONCUR_CC is "none".
    """
    compiler = find_compiler()
    if compiler is None:
        if not interpreted_on_purpose():
            warn_once(
                "No C compiler was found: expressions are interpreted, which is ten times slower. "
                "Install gcc or clang, or the package `ziglang`; CONCUR_CC=none silences this."
            )
        return None
    start = time.perf_counter()
    code = sources(functions)
    written = time.perf_counter() - start
    for _ in range(2):
        found = library(code, compiler)
        if found is None:
            return None
        path, cached = found
        try:
            loaded = tuple(ca.external(name, str(path)) for name in code.names)
        except RuntimeError:
            forget(path)
            continue
        lengths = tuple(instructions(function) for function in functions)
        if key is not None:
            _remember(_note(key, compiler), path.name, code.names, lengths, code.solver)
        built = time.perf_counter() - start - written
        return Compiled(loaded, written, built, cached, lengths, code.solver)
    warn_once(
        f"A library compiled by `{' '.join(compiler.command)}` cannot be loaded: expressions are "
        "interpreted, which is ten times slower. Set CONCUR_CC to another compiler."
    )
    return None


def recalled(key: str | None) -> Compiled | None:
    """Load functions that were compiled under a key.

    Parameters
    ----------
    key : str or None
        The `fingerprint` of their sources.

    Returns
    -------
    Compiled or None
        The functions, if they are in the cache.
    """
    start, compiler = time.perf_counter(), find_compiler()
    if key is None or compiler is None:
        return None
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError, RuntimeError):
        note = json.loads(_note(key, compiler).read_text(encoding="utf-8"))
        name = str(note["library"])
        path = cache_directory() / name
        # A name, not a path: only files in the cache are loaded.
        if path.name == name and is_whole(path):
            loaded = tuple(ca.external(name, str(path)) for name in note["names"])
            lengths = tuple(int(length) for length in note["instructions"])
            if not 0 < len(loaded) == len(lengths):
                return None
            built = time.perf_counter() - start
            return Compiled(loaded, 0.0, built, True, lengths, bool(note["solver"]))
    return None


def _note(key: str, compiler: Compiler) -> Path:
    text = "\0".join((key, compiler.identity, *compiler.command, *FLAGS))
    return cache_directory() / f"{hashlib.sha256(text.encode()).hexdigest()}.json"


def _remember(
    note: Path, name: str, names: Sequence[str], lengths: Sequence[int], solver: bool
) -> None:
    """Write the location of functions; without this note their graphs are built again."""
    facts = {"library": name, "names": names, "instructions": lengths, "solver": solver}
    with contextlib.suppress(OSError):
        handle, draft = tempfile.mkstemp(dir=note.parent, prefix="note-")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(facts, file)
        os.replace(draft, note)
