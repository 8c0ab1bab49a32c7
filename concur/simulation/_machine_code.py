"""Whether a run is compiled, and its machine code: from the cache, or from the compiler."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import casadi as ca

from concur._progress import busy
from concur.codegen import compiled as compile_all
from concur.codegen import find_compiler, fingerprint, interpreted_on_purpose, recalled
from concur.errors import SimulationError
from concur.simulation._integrator import check_compiled

LONG = 10_000
"""Steps from which on a run is compiled by default."""


def is_compiled(where: str, compiled: bool | None, steps: int) -> bool:
    """Decide whether a run is compiled, by its length alone: the same run is the same each time.

    Compiled code and the interpreter round differently, so the contents of a cache must not matter.
    """
    check_compiled(where, compiled)
    if compiled is None:
        return steps >= LONG and find_compiler() is not None
    if compiled and find_compiler() is None:
        raise _no_compiler(where)
    return bool(compiled)


def machine_code(
    where: str,
    value: Any,
    graphs: Callable[[], list[ca.Function]],
    progress: bool | Callable[[float], Any],
    demanded: bool,
) -> tuple[ca.Function, ...] | None:
    """Compile functions, or take them from the cache without building their graphs.

    `value` is all that the graphs are made from. Without a compiler: an error if `demanded`, else
    None and one warning.
    """
    key = fingerprint("simulation", value)
    made = recalled(key)
    if made is None:
        with busy(progress, f"compiling the {where}"):
            made = compile_all(graphs(), key)
    if made is None and demanded:
        raise _no_compiler(where)
    return None if made is None else made.functions


def _no_compiler(where: str) -> SimulationError:
    """Build the error for machine code that was asked for and cannot be made."""
    found = find_compiler()
    came = "no command that answers as one"
    if found is not None:
        came = f"`{' '.join(found.command)}`, which does not compile it"
    elif interpreted_on_purpose():
        came = "CONCUR_CC=none, which asks for the interpreter"
    return SimulationError(
        f"{where}, `compiled`",
        expected="a C compiler that works",
        came=came,
        cure="Install gcc or clang, let CONCUR_CC name one, or leave `compiled` out.",
    )
