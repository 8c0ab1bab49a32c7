"""Functions as machine code: written in C, compiled, and called through CasADi."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca

from concur.codegen._compiler import (
    find_compiler,
    forget,
    interpreted_on_purpose,
    library,
    say_once,
)
from concur.codegen._sources import sources


@dataclass(frozen=True)
class Compiled:
    """Compiled functions, and what it took.

    Parameters
    ----------
    functions : tuple of casadi.Function
        The functions, called as those that were given.
    written : float
        Time in which the C sources were written, s.
    built : float
        Time in which they were compiled, or found and loaded, s.
    cached : bool
        Whether they were compiled before.
    """

    functions: tuple[ca.Function, ...]
    written: float
    built: float
    cached: bool


def compiled(functions: Sequence[ca.Function]) -> Compiled | None:
    """Compile functions into one library.

    Parameters
    ----------
    functions : sequence of casadi.Function
        Functions over SX, or over MX with solvers for which CasADi writes C.

    Returns
    -------
    Compiled or None
        The functions; None where they have to be interpreted: without a compiler, which is said
        once per process unless CONCUR_CC is "none".
    """
    compiler = find_compiler()
    if compiler is None:
        if not interpreted_on_purpose():
            say_once(
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
        return Compiled(loaded, written, time.perf_counter() - start - written, cached)
    say_once(
        f"What `{' '.join(compiler.command)}` compiles cannot be loaded: expressions are "
        "interpreted, which is ten times slower. Let CONCUR_CC name another compiler."
    )
    return None
