"""A function as self-contained C99: CasADi's text without the parts that a controller cannot use.

The following parts are removed or replaced: entries for CasADi's loader; pointers that may be null,
which does not occur in a single graph; and double-precision numbers, which a single-precision
controller would emulate. Everything that remains is `static`, so that two exported functions can be
linked together.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import casadi as ca

from concur.codegen._arguments import symbols_of
from concur.codegen._qp import with_own_solver
from concur.codegen._sources import START
from concur.errors import ConcurError

_TINY, _HUGE = 2.0**-126, 3.4028234663852886e38  # normal numbers of single precision
_CONSTANT = re.compile(r"^static const \w+ (casadi_\w+)\[\d+\] =[^;]*;\n", re.MULTILINE)
_SIGNATURE = re.compile(
    r"^(static int \w+)\(const casadi_real\*\* arg, casadi_real\*\* res, "
    r"casadi_int\* iw, casadi_real\* w, int mem\) \{\n",
    re.MULTILINE,
)
_CALL = re.compile(r", iw, w, 0\)")
_CONDITION, _NEGATION = re.compile(r"\(([aw]\d+)\?"), re.compile(r"\(! ?([aw]\d+) ?\)")
_BOTH = re.compile(r"\(([aw]\d+)(&&|\|\|)([aw]\d+)\)")
_NUMBER = re.compile(r"(?<![\w.])(\d+\.\d*(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+)(?![\w.])")
_MATHS = re.compile(
    r"\b(sqrt|sin|cos|tan|asin|acos|atan|atan2|sinh|cosh|tanh|exp|expm1|log|log1p|pow|hypot|"
    r"fabs|fmin|fmax|fmod|floor|ceil|copysign)\("
)
_RUNTIME = re.compile(
    r"^(?:casadi_real|casadi_int|void|int) (?P<name>casadi_\w+)\([^{;]*\) \{(?:[^\n]*\}|.*?^\})\n",
    re.DOTALL | re.MULTILINE,
)
_C99 = {
    "casadi_nan": "NAN",
    "casadi_inf": "INFINITY",
    "casadi_to_int": "(int)",
    **{f"casadi_{name}": name for name in ("fabs", "fmin", "fmax", "hypot", "log1p", "expm1")},
}
"""What C99 has in place of CasADi's support code for older compilers."""

_NAME = re.compile(r"\bcasadi_[a-z]\w*")


@dataclass(frozen=True)
class CText:
    """A function in C: `law(arg, res, iw, w, more)`; the caller defines `real_t`.

    `arguments` and `results` are the lengths of the arrays of pointers; `integers`, `numbers` and
    `further` those of its work memory iw, w and more.
    """

    text: str
    arguments: int
    results: int
    integers: int
    numbers: int
    further: int


def c_text(function: ca.Function, single: bool = False) -> CText:
    """Write a function in C99: over SX, or over MX with calls of SX functions and programs.

    Parameters
    ----------
    function : casadi.Function
        The function.
    single : bool
        Whether its numbers are in single precision.

    Returns
    -------
    CText
        The text, which contains no libraries but that of mathematics.

    Raises
    ------
    ConcurError
        If CasADi needs a library for it.
    """
    named = _renamed(function)
    generator = ca.CodeGenerator("law.c", {"with_header": False})
    generator.add(named)
    text, further = with_own_solver(generator.dump(), "more")
    head = START.search(text)
    end = text.find("CASADI_SYMBOL_EXPORT int law(")
    if head is None or end < head.start():
        raise _unknown("unexpected generated text")
    runtime = {found["name"]: _plain(found[0]) for found in _RUNTIME.finditer(text[: head.start()])}
    text = text[head.start() : end]
    for constant in list(_CONSTANT.finditer(text)):
        if len(re.findall(rf"\b{constant[1]}\b", text)) == 1:
            text = text.replace(constant[0], "")
    if "__" in text or "printf" in text or "malloc" in text:
        raise _unknown("a CasADi solver")
    # Every integer of these functions fits into a controller's int.
    text = _SIGNATURE.sub(
        r"\1(const real_t **arg, real_t **res, int *iw, real_t *w, real_t *more) {"
        "\n"
        r"  (void)arg;"
        "\n  (void)res;\n  (void)iw;\n  (void)w;\n  (void)more;\n",
        text,
    )
    text = _CALL.sub(", iw, w, more)", text)
    text = _plain(text).replace("static int casadi_f0(", "static int law(")
    # Write conditions as comparisons: compilers warn of a number as a condition.
    text = _CONDITION.sub(r"(\1!=0?", text)
    text = _NEGATION.sub(r"(\1==0)", text)
    text = _BOTH.sub(r"(\1!=0\2\3!=0)", text)
    if function.is_a("SXFunction"):
        text = re.sub(r"arg\[(\d+)\]\? (arg\[\1\]\[\d+\]) : 0", r"\2", text)
        text = re.sub(r"if \(res\[\d+\]!=0\) (res\[)", r"\1", text)
    text = f"{_support(text, runtime)}\n{text}"
    if single:
        text = _MATHS.sub(r"\1f(", _NUMBER.sub(_short, text))
    return CText(
        text.strip() + "\n",
        max(1, int(named.sz_arg())),
        max(1, int(named.sz_res())),
        max(1, int(named.sz_iw())),
        1 if function.is_a("SXFunction") else _numbers(named, text),
        max(1, further),
    )


def _plain(text: str) -> str:
    """Generated C with the types and the mathematics of C99."""
    text = re.sub(r"\bcasadi_int\b", "int", re.sub(r"\bcasadi_real\b", "real_t", text))
    return _NAME.sub(lambda name: _C99.get(name[0], name[0]), text)


def _support(text: str, runtime: Mapping[str, str]) -> str:
    """The functions of CasADi that a text calls, and those that they call."""
    known = set(re.findall(r"\b(casadi_[a-z]\w*)(?:\(const|\[\d+\] =)", text))
    open_, needed = set(_NAME.findall(text)) - known, set[str]()
    while open_:
        name = open_.pop()
        if name not in runtime:
            raise _unknown(f"`{name}`")
        needed.add(name)
        open_ |= set(_NAME.findall(runtime[name])) - needed
    return "".join(f"static {code}" for name, code in runtime.items() if name in needed)


def _renamed(function: ca.Function) -> ca.Function:
    symbols = symbols_of(function)
    # Tables are constants of the function itself, not of one that it calls: see `_numbers`.
    return ca.Function("law", symbols, function.call(symbols, True, False))


def _numbers(function: ca.Function, text: str) -> int:
    """Length of the work memory w, in which constants that the code reads in place take no room."""
    constants, written = dict[int, int](), set[int]()
    for k in range(function.n_instructions()):
        kind, slots = function.instruction_id(k), function.instruction_output(k)
        if kind == ca.OP_CONST:
            constants[slots[0]] = int(function.instruction_MX(k).numel())
        elif kind != ca.OP_OUTPUT:
            written.update(slots)
    in_place = not re.search(r"casadi_copy\(casadi_c\d", text)
    spare = sum(size for slot, size in constants.items() if slot not in written)
    return max(1, int(function.sz_w()) - in_place * spare)


def _short(number: re.Match[str]) -> str:
    value = float(number[1])
    if value > _HUGE:
        return "FLT_MAX"
    if 0.0 < value < _TINY:
        return "FLT_MIN"
    return f"{number[1]}f"


def _unknown(what: str) -> ConcurError:
    return ConcurError(
        "export",
        expected="a graph that CasADi writes in C without libraries",
        came=what,
        cure="Export a servo of this package, or a function over SX.",
    )
