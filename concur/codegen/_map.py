"""Sequential evaluation of many worlds, in one loop in C: `BatchMap`."""

from __future__ import annotations

import re
from pathlib import Path

import casadi as ca

from concur.codegen._batch import Batch
from concur.codegen._compiler import Compiler
from concur.codegen._sources import Sources, sources

_DRIVER = Path(__file__).with_name("c") / "map.c"


class BatchMap(Batch):
    """Sequential evaluation of a function for many worlds, in each thread.

    For functions that `Lanes` does not support: those with a solver, like a law with torque limits.
    Results equal those of the compiled function bit by bit. A world in which the solver fails has
    NaN for all results.

    Parameters
    ----------
    function : casadi.Function or Evaluator
        A function over SX, or over MX with solvers for which CasADi writes C.
    threads : int, default 1
        Number of threads that share the worlds, as for `Batch`. Always one with a solver: its
        memory is shared, and calls wait for each other.

    Attributes
    ----------
    function : casadi.Function
        The function.
    compiled : bool
        Whether the function is machine code; else worlds are interpreted one by one.
    threads : int
        Number of threads.
    width : int
        1.

    Raises
    ------
    ShapeError
        If the number of threads is invalid.

    Examples
    --------
    >>> import casadi as ca, numpy as np
    >>> from concur.codegen import BatchMap
    >>> x = ca.SX.sym("x", 2)
    >>> BatchMap(ca.Function("turned", [x], [ca.vertcat(-x[1], x[0])]))(np.array([[1.0, 2.0]]))
    array([[-2.,  1.]])
    """

    def _prepared(self, function: ca.Function) -> ca.Function:
        return function

    def _sources(self, compiler: Compiler) -> Sources:
        code = sources([self.function])
        text = "\n".join(
            [
                "#include <math.h>",
                f"#define ENTRY {code.names[0]}",
                _sizes(self.function, work_memory(code)),
                _DRIVER.read_text(encoding="utf-8"),
            ]
        )
        return Sources((*code.files, text), ("concur_batch",), code.assignments, code.solver)


def work_memory(code: Sources) -> dict[str, int]:
    """Lengths of the work memory of the entry in C."""
    body = code.files[0].partition(f"int {code.names[0]}_work(")[2].partition("}")[0]
    found = dict(re.findall(r"\*(sz_\w+) = (\d+);", body))
    names = {"POINTERS_IN": "arg", "POINTERS_OUT": "res", "INTEGERS": "iw", "NUMBERS": "w"}
    return {name: int(found[f"sz_{own}"]) for name, own in names.items()}


def _sizes(function: ca.Function, work: dict[str, int]) -> str:
    given = [function.size_in(i) for i in range(function.n_in())]
    found = [function.size_out(i) for i in range(function.n_out())]
    facts = {
        "ARGUMENTS": len(given),
        "RESULTS": len(found),
        "GIVEN": sum(rows * columns for rows, columns in given),
        "FOUND": sum(rows * columns for rows, columns in found),
        **work,
    }
    tables = {
        "rows_in": [rows for rows, _ in given],
        "columns_in": [columns for _, columns in given],
        "rows_out": [rows for rows, _ in found],
        "columns_out": [columns for _, columns in found],
    }
    return "\n".join(
        [
            *(f"#define {name} {max(1, n)}" for name, n in facts.items()),
            *(f"static const int {n}[] = {{{', '.join(map(str, t))}}};" for n, t in tables.items()),
        ]
    )
