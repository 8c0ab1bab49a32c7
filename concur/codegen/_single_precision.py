"""Single-precision evaluation of functions, instruction by instruction, for many states."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import casadi as ca
import numpy as np

from concur.errors import ConcurError

_UNARY: Mapping[int, Callable[[Any], Any]] = {
    ca.OP_ASSIGN: lambda x: x,
    ca.OP_NEG: np.negative,
    ca.OP_SQ: np.square,
    ca.OP_TWICE: lambda x: np.float32(2.0) * x,
    ca.OP_INV: lambda x: np.float32(1.0) / x,
    ca.OP_SQRT: np.sqrt,
    ca.OP_SIN: np.sin,
    ca.OP_COS: np.cos,
    ca.OP_TAN: np.tan,
    ca.OP_ASIN: np.arcsin,
    ca.OP_ACOS: np.arccos,
    ca.OP_ATAN: np.arctan,
    ca.OP_EXP: np.exp,
    ca.OP_LOG: np.log,
    ca.OP_TANH: np.tanh,
    ca.OP_FABS: np.abs,
    ca.OP_SIGN: np.sign,
    ca.OP_FLOOR: np.floor,
    ca.OP_CEIL: np.ceil,
    ca.OP_NOT: lambda x: (x == 0).astype(np.float32),
}
_BINARY: Mapping[int, Callable[[Any, Any], Any]] = {
    ca.OP_ADD: np.add,
    ca.OP_SUB: np.subtract,
    ca.OP_MUL: np.multiply,
    ca.OP_DIV: np.divide,
    ca.OP_POW: np.power,
    ca.OP_CONSTPOW: np.power,
    ca.OP_ATAN2: np.arctan2,
    ca.OP_FMIN: np.fmin,
    ca.OP_FMAX: np.fmax,
    ca.OP_COPYSIGN: np.copysign,
    ca.OP_HYPOT: np.hypot,
    ca.OP_LT: lambda x, y: (x < y).astype(np.float32),
    ca.OP_LE: lambda x, y: (x <= y).astype(np.float32),
    ca.OP_EQ: lambda x, y: (x == y).astype(np.float32),
    ca.OP_NE: lambda x, y: (x != y).astype(np.float32),
    ca.OP_AND: lambda x, y: ((x != 0) & (y != 0)).astype(np.float32),
    ca.OP_OR: lambda x, y: ((x != 0) | (y != 0)).astype(np.float32),
    ca.OP_IF_ELSE_ZERO: lambda x, y: np.where(x != 0, y, np.float32(0.0)),
}


def single_precision(function: ca.Function, states: np.ndarray) -> np.ndarray:
    """Outputs (k, m) of a dense function at states (k, n), computed in single precision."""
    starts = np.cumsum([0, *(function.numel_in(i) for i in range(function.n_in()))])
    ends = np.cumsum([0, *(function.numel_out(i) for i in range(function.n_out()))])
    given = states.astype(np.float32)
    results = np.zeros((len(states), int(ends[-1])), np.float32)
    work: list[Any] = [None] * function.sz_w()
    limits = np.finfo(np.float32)
    with np.errstate(all="ignore"):
        for k in range(function.n_instructions()):
            code = function.instruction_id(k)
            into, source = function.instruction_output(k), function.instruction_input(k)
            if code == ca.OP_INPUT:
                work[into[0]] = given[:, starts[source[0]] + source[1]]
            elif code == ca.OP_OUTPUT:
                results[:, ends[into[0]] + into[1]] = work[source[0]]
            elif code == ca.OP_CONST:
                value = min(function.instruction_constant(k), float(limits.max))
                if 0.0 < abs(value) < float(limits.tiny):
                    value = float(np.copysign(limits.tiny, value))
                work[into[0]] = np.full(len(states), value, np.float32)
            elif code in _UNARY:
                work[into[0]] = _UNARY[code](work[source[0]])
            elif code in _BINARY:
                work[into[0]] = _BINARY[code](work[source[0]], work[source[1]])
            else:
                raise ConcurError(
                    f"function `{function.name()}`, instruction {k}",
                    expected="an instruction with a single-precision version",
                    came=f"CasADi's instruction number {code}",
                    cure='Export in double precision: precision="double".',
                )
    return results
