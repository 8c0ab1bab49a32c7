"""Pinocchio's graphs: its headers over CasADi's expressions.

That is what its module `pinocchio.casadi` has for Python. The wheels of `pin` come without the
module but with the headers, those of `casadi` with its headers and library: a compiler does the
rest.
"""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path

import casadi as ca
import numpy as np

from tests.benchmarks import _pinocchio_model
from tests.benchmarks._inner import (
    COMMON,
    ROBOT,
    MissingError,
    compiled,
    cpp_compiler,
    headers,
    numbers_of,
)
from tests.benchmarks._quantities import Case

SOURCE = Path(__file__).with_name("_pinocchio_graphs.cpp")
CONVENTIONS = (0, 1)
"""Recursion in the axes of each joint, and in the inertial ones: some algorithms have both."""


def pinocchio_graph(made: Case, quantity: str) -> ca.Function:
    """Build a function over Pinocchio as a graph, by the shorter of its conventions.

    Raises
    ------
    MissingError
        If it cannot be compiled.
    """
    graphs = [_graph(made, quantity, convention) for convention in CONVENTIONS]
    return min(graphs, key=ca.Function.n_instructions)


@cache
def _library() -> ctypes.CDLL:
    place = Path(ca.__file__).parent
    found = sorted(place.glob("libcasadi.so.*")) or sorted(place.glob("libcasadi.*"))
    if not found or not (place / "include" / "casadi").is_dir():
        raise MissingError("CasADi's headers and library, which its wheel brings, are not there")
    included = [f"-I{path}" for path in (*headers(), place / "include")]
    built = compiled(
        [*cpp_compiler(), *COMMON, "-O0", *included],
        SOURCE,
        ROBOT,
        linked=[str(found[0]), f"-Wl,-rpath,{place}"],
    )
    built.graph.restype = ctypes.c_char_p
    return built


def _graph(made: Case, quantity: str, convention: int) -> ca.Function:
    flat = _pinocchio_model.flat(_pinocchio_model.build(made.robot), made.hand)
    pointer = ctypes.POINTER(ctypes.c_double)
    kept = [numbers_of(n) for n in (flat.placements, flat.inertias, flat.gravity, flat.hand)]
    placements, inertias, gravity, hand = (n.ctypes.data_as(pointer) for n in kept)
    parents = np.ascontiguousarray(flat.parents, dtype=np.intc)
    text = (
        _library()
        .graph(
            quantity.encode(),
            convention,
            len(flat.kinds),
            flat.kinds,
            parents.ctypes.data_as(ctypes.POINTER(ctypes.c_int)),
            placements,
            inertias,
            gravity,
            flat.joint,
            hand,
        )
        .decode()
    )
    if text.startswith("!"):
        raise ValueError(f"Pinocchio's {quantity} of {made.name}: {text[1:]}")
    return ca.Function.deserialize(text)
