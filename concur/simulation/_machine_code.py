"""Whether a run is compiled, and its machine code: from the cache, or from the compiler."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import casadi as ca
import numpy as np

from concur.codegen import compiled as compile_all
from concur.codegen import fingerprint, recalled
from concur.codegen._compiler import find_compiler, interpreted_on_purpose
from concur.errors import SimulationError
from concur.simulation._progress import busy

LONG = 10_000
"""Steps from which on a run is compiled unless it is told otherwise."""


def is_compiled(where: str, compiled: bool | None, steps: int) -> bool:
    """Decide whether a run is compiled, by its length alone: the same run is the same each time.

    Compiled code and the interpreter round differently, so what is in a cache must not matter.

    Parameters
    ----------
    where : str
        Place named in errors.
    compiled : bool or None
        What the user wants; none: compiled when it is long and there is a compiler.
    steps : int
        Steps of the run.

    Returns
    -------
    bool
        Whether it is.

    Raises
    ------
    SimulationError
        If it is no truth value, or it has to be compiled and there is no compiler.
    """
    if not isinstance(compiled, (bool, np.bool_, type(None))):
        raise SimulationError(
            f"{where}, `compiled`",
            expected="True, False or None",
            came=f"{compiled!r:.40}",
            cure="Leave it out: long runs are compiled where there is a compiler.",
        )
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

    Parameters
    ----------
    where : str
        What they are for.
    value : object
        What the graphs are made from, all of it.
    graphs : callable
        Builds them.
    progress : bool or callable
        Whether to say so when the compiler is called.
    demanded : bool
        Whether to raise where it does not compile.

    Returns
    -------
    tuple of casadi.Function or None
        The functions; none if they cannot be compiled, which is said once.

    Raises
    ------
    SimulationError
        If they cannot be compiled and have to be.
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
