"""SIMD evaluation of several worlds per instruction: `Lanes`."""

from __future__ import annotations

from typing import Any

import casadi as ca

from concur.codegen._batch import Batch, has_solver
from concur.codegen._compiler import Compiler
from concur.codegen._evaluator import Evaluator
from concur.codegen._lanes_c import expanded, lane_sources
from concur.codegen._sources import Sources
from concur.errors import ConcurError, ShapeError

WIDTHS = (4, 8)
"""Supported numbers of worlds per instruction."""


class Lanes(Batch):
    """SIMD evaluation of a function for many worlds, four or eight per instruction.

    The graph is written in C over vectors; each entry of a vector belongs to another world. Results
    equal those of the function world by world up to rounding: sine, cosine and similar functions
    come from a vector library (up to 4 units in the last place), and multiplications and additions
    may be fused differently. NaN and infinities affect only their world.

    Parameters
    ----------
    function : casadi.Function or Evaluator
        A function over SX, or over MX as far as it can be expanded to SX.
    width : int, optional
        4 or 8; default: the width of the processor's registers.
    threads : int, default 1
        Number of threads that share the worlds, as for `Batch`.

    Attributes
    ----------
    function : casadi.Function
        The function, expanded to SX.
    compiled : bool
        Whether the function is machine code; else worlds are interpreted one by one.
    threads : int
        Number of threads.
    width : int
        Number of worlds per instruction; 1 when interpreted.

    Raises
    ------
    ConcurError
        If the function contains a solver: use `BatchMap`.
    ShapeError
        If the width or the number of threads is invalid.

    Notes
    -----
    The law of a servo in many states is ``Lanes(concur.control.tick_function(servo))``, a step of
    its closed loop ``Lanes(concur.simulation.step_function(servo, plant, "rk4", held=False))``.

    Examples
    --------
    >>> import casadi as ca, numpy as np
    >>> from concur.codegen import Lanes
    >>> x, h = ca.SX.sym("x", 2), ca.SX.sym("h")
    >>> spin = ca.Function("spin", [x, h], [ca.vertcat(x[0] + h * x[1], x[1] - h * x[0])])
    >>> worlds = np.array([[1.0, 0.0], [0.0, 1.0], [2.0, 2.0]])
    >>> Lanes(spin)(worlds, 0.5)
    array([[ 1. , -0.5],
           [ 0.5,  1. ],
           [ 3. ,  1. ]])
    """

    def __init__(
        self, function: ca.Function | Evaluator, width: int | None = None, threads: int = 1
    ) -> None:
        if width is not None and width not in WIDTHS:
            raise ShapeError(
                "Lanes, `width`",
                expected=f"{WIDTHS[0]} or {WIDTHS[1]}",
                came=repr(width),
                cure="Omit it to use the width of the processor.",
            )
        self._width = width
        super().__init__(function, threads)

    def _prepared(self, function: ca.Function) -> ca.Function:
        if not function.is_a("SXFunction") and has_solver(function):
            raise ConcurError(
                f"Lanes of `{function.name()}`",
                expected="a function that can be expanded to SX",
                came="a function with a solver or foreign code",
                cure="Use `BatchMap`, which computes one world after the other: the number of "
                "solver iterations differs between worlds.",
            )
        return expanded(function)

    def _sources(self, compiler: Compiler) -> Sources:
        return lane_sources(self.function, self._width, compiler.is_zig)

    def __reduce__(self) -> Any:
        return type(self), (self._made_of, self._width, self.threads)
