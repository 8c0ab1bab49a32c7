"""Functions as machine code: written in C, compiled, and called through CasADi."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import casadi as ca

from concur.codegen._cache import SLOW, loaded, recall, remember
from concur.codegen._compiler import compiler_for, find_compiler
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
    """

    functions: tuple[ca.Function, ...]
    written: float
    built: float
    cached: bool
    instructions: tuple[int, ...]


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
    compiler = compiler_for(SLOW)
    if compiler is None:
        return None
    start = time.perf_counter()
    code = sources(functions)
    written = time.perf_counter() - start
    found = loaded(code, compiler, lambda path: _external(code.names, path), SLOW)
    if found is None:
        return None
    made, path, cached = found
    lengths = tuple(instructions(function) for function in functions)
    if key is not None:
        facts = {"names": code.names, "instructions": lengths}
        remember(key, compiler, path, facts)
    built = time.perf_counter() - start - written
    return Compiled(made, written, built, cached, lengths)


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
    found = None if key is None or compiler is None else recall(key, compiler)
    if found is None:
        return None
    path, facts = found
    with contextlib.suppress(ValueError, KeyError, TypeError, RuntimeError):
        made, lengths = _external(facts["names"], path), tuple(map(int, facts["instructions"]))
        if 0 < len(made) == len(lengths):
            built = time.perf_counter() - start
            return Compiled(made, 0.0, built, True, lengths)
    return None


def _external(names: Sequence[str], path: Path) -> tuple[ca.Function, ...]:
    return tuple(ca.external(name, str(path)) for name in names)
