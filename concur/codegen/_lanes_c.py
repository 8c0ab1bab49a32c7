"""C for several worlds at once: the instructions of a graph, over vectors in place of numbers.

The graph is straight-line code, so all worlds execute the same instructions: `if_else` computes
both sides and selects entry by entry. CasADi's own C uses `?:`, which C lacks for vectors.
"""

from __future__ import annotations

from pathlib import Path

import casadi as ca

from concur.codegen._sources import FILE, PART, WHOLE, _cut
from concur.errors import ConcurError

_SUPPORT = Path(__file__).with_name("c") / "lanes.h"
SIGNATURE = (
    "static int {name}(const casadi_real** arg, casadi_real** res, casadi_int* iw, "
    "casadi_real* w, int mem)"
)
"""Signature of a graph in C."""

_OF_ONE = (
    "sqrt sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh exp log expm1 log1p erf "
    "floor ceil fabs sign not"
)
_OF_TWO = "pow atan2 hypot fmod remainder copysign fmin fmax lt le eq ne and or"
_FORMS = {
    ca.OP_ASSIGN: "{0}",
    ca.OP_LIFT: "{0}",
    ca.OP_ADD: "{0}+{1}",
    ca.OP_SUB: "{0}-{1}",
    ca.OP_MUL: "{0}*{1}",
    ca.OP_DIV: "{0}/{1}",
    ca.OP_NEG: "-{0}",
    ca.OP_SQ: "{0}*{0}",
    ca.OP_TWICE: "2.0*{0}",
    ca.OP_INV: "1.0/{0}",
    ca.OP_CONSTPOW: "lane_pow({0},{1})",
    ca.OP_IF_ELSE_ZERO: "lane_if({0},{1})",
    **{getattr(ca, f"OP_{name.upper()}"): f"lane_{name}({{0}})" for name in _OF_ONE.split()},
    **{getattr(ca, f"OP_{name.upper()}"): f"lane_{name}({{0}},{{1}})" for name in _OF_TWO.split()},
}
"""C code over lanes of each CasADi instruction."""


def lane_head(scalar: bool) -> str:
    """Beginning of each file: types and functions of lanes."""
    return "#define SCALAR_FUNCTIONS\n" * scalar + _SUPPORT.read_text(encoding="utf-8")


def lane_graph(function: ca.Function, name: str) -> tuple[str, list[str], int]:
    """A graph as a function in C over lanes, its parts where it is long, and its length."""
    lines = _lines(function)
    if len(lines) > WHOLE:
        return (*_cut(name, lines), len(lines))
    slots = ", ".join(f"a{slot}" for slot in range(function.sz_w()))
    declared = [f"  lane {slots};"] if slots else []
    head = f"{SIGNATURE.format(name=name)} {{"
    return "\n".join([head, *declared, *lines, "  return 0;", "}", ""]), [], len(lines)


def lane_files(head: str, parts: list[str]) -> list[str]:
    """Further files with the parts of long graphs."""
    per_file = FILE // PART
    return [
        "\n".join([head, *parts[start : start + per_file]])
        for start in range(0, len(parts), per_file)
    ]


def _lines(function: ca.Function) -> list[str]:
    """Instructions as assignments, one per line."""
    places_in = [_by_rows(function.sparsity_in(i)) for i in range(function.n_in())]
    places_out = [_by_rows(function.sparsity_out(i)) for i in range(function.n_out())]
    lines = []
    for k in range(function.n_instructions()):
        code = function.instruction_id(k)
        into, source = function.instruction_output(k), function.instruction_input(k)
        if code == ca.OP_INPUT:
            line = f"a{into[0]}=arg[{source[0]}][{places_in[source[0]][source[1]]}]"
        elif code == ca.OP_OUTPUT:
            line = f"res[{into[0]}][{places_out[into[0]][into[1]]}]=a{source[0]}"
        elif code == ca.OP_CONST:
            line = f"a{into[0]}=lane_of({_literal(function.instruction_constant(k))})"
        elif code in _FORMS:
            line = f"a{into[0]}={_FORMS[code].format(*(f'a{slot}' for slot in source))}"
        else:
            raise ConcurError(
                f"function `{function.name()}`",
                expected="instructions supported by lanes",
                came=f"CasADi's instruction {code}",
                cure="Use other functions in the graph, or interpreted worlds.",
            )
        lines.append(f"  {line};")
    return lines


def _by_rows(sparsity: ca.Sparsity) -> list[int]:
    """Row-major index of each stored entry in the dense matrix."""
    rows, columns = sparsity.get_triplet()
    return [r * sparsity.size2() + c for r, c in zip(rows, columns, strict=True)]


def _literal(value: float) -> str:
    if value != value:
        return "NAN"
    if value in (float("inf"), float("-inf")):
        return "INFINITY" if value > 0 else "-INFINITY"
    return repr(float(value))
