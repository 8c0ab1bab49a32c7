"""C sources of CasADi functions, divided into parts so that compilation takes acceptable time.

CasADi writes a function as one block of assignments of any length. The time of a compiler's
register allocation grows faster than the block; for the longest it does not terminate. With parts
of a few hundred assignments, which exchange values in an array, the time grows with their number.
Short functions stay whole: the exchange would cost more.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca

from concur.codegen._arguments import symbols_of
from concur.codegen._qp import with_own_solver

WHOLE = 8_000
"""Largest number of assignments of a function in one block."""

PART = 400
"""Number of assignments in each part of a longer function."""

FILE = 12_000
"""Number of assignments in one file; files are compiled in parallel."""

START = re.compile(r"^(?:static const casadi_|/\* \w+:\(|static int casadi_f\d)", re.MULTILINE)
"""End of the support code of generated C: the first constant, or the comment before a function.

Other text that CasADi writes between the two depends on its version.
"""

_BLOCK = re.compile(
    r"^static int (?P<name>\w+)\(const casadi_real\*\* arg, casadi_real\*\* res, "
    r"casadi_int\* iw, casadi_real\* w, int mem\) \{\n(?P<body>.*?)\n  return 0;\n\}\n",
    re.DOTALL | re.MULTILINE,
)
_DECLARATION = re.compile(r"^  casadi_real a\d+(, a\d+)*;$")
_ASSIGNMENT = re.compile(r"^  (a\d+)=")
_STORE = re.compile(r"^  if \(res\[\d+\]!=0\) res\[\d+\]\[\d+\]=")
_VARIABLE = re.compile(r"\ba\d+\b")
_SUPPORT = re.compile(
    r"^(?:extern )?(casadi_(?:real|int)\*?|void|int) (casadi_\w+\()", re.MULTILINE
)
_FIRST = re.compile(rf"^CASADI_SYMBOL_EXPORT |{START.pattern}", re.MULTILINE)
_ARGUMENTS = "const casadi_real** arg, casadi_real** res, casadi_real* kept"


@dataclass(frozen=True)
class Sources:
    """C sources of functions.

    Parameters
    ----------
    files : tuple of str
        Texts, the first with the entries.
    names : tuple of str
        Names of the entries.
    assignments : int
        Number of assignments in straight-line code.
    """

    files: tuple[str, ...]
    names: tuple[str, ...]
    assignments: int


def sources(functions: Sequence[ca.Function]) -> Sources:
    """Write functions in C.

    Parameters
    ----------
    functions : sequence of casadi.Function
        Functions over SX or MX.

    Returns
    -------
    Sources
        Their sources.
    """
    # Names in a library must be distinct and differ from keywords and functions of C.
    names = tuple(f"concur_{index}_{f.name()}" for index, f in enumerate(functions))
    generator = ca.CodeGenerator("concur.c", {"with_header": False})
    for name, function in zip(names, functions, strict=True):
        generator.add(_renamed(function, name))
    text = with_own_solver(generator.dump())[0]
    # A compiler would not inline functions with external linkage.
    text = _SUPPORT.sub(r"static inline \1 \2", text)
    blocks = [(match, _lines(match["body"])) for match in _BLOCK.finditer(text)]
    known = [(match, lines) for match, lines in blocks if lines is not None]
    count = sum(len(lines) for _, lines in known)
    main, parts = text, list[str]()
    for match, lines in reversed(known):
        if len(lines) > WHOLE:
            whole, of_block = _cut(match["name"], lines)
            main = main[: match.start()] + whole + main[match.end() :]
            parts = of_block + parts
    first = _FIRST.search(text)
    head = text[: first.start()] if parts and first else ""
    files, size = [main], FILE
    for part in parts:
        if size >= FILE:
            files.append(head)
            size = 0
        files[-1] += part
        size += PART
    return Sources(tuple(files), names, count)


def _renamed(function: ca.Function, name: str) -> ca.Function:
    given, found, symbols = function.name_in(), function.name_out(), symbols_of(function)
    return ca.Function(name, symbols, function.call(symbols), given, found)


def _lines(body: str) -> list[str] | None:
    """Assignments of a block, or None unless it is straight-line code."""
    lines = [line for line in body.split("\n") if not _DECLARATION.match(line)]
    if all(_ASSIGNMENT.match(line) or _STORE.match(line) for line in lines):
        return lines
    return None


def _cut(name: str, lines: list[str]) -> tuple[str, list[str]]:
    """Divide a block: the function that calls its parts, and the parts."""
    pieces = [lines[start : start + PART] for start in range(0, len(lines), PART)]
    reads, writes = zip(*(_used(piece) for piece in pieces), strict=True)
    # Variables that a part writes and a later one reads before writing them are stored.
    live: set[str] = set()
    given: list[list[str]] = []
    for read, written in zip(reversed(reads), reversed(writes), strict=True):
        given.append(sorted(written & live))
        live = (live - written) | read
    given.reverse()
    place = {variable: i for i, variable in enumerate(sorted(set().union(*given)))}
    parts, calls, heads = [], [], []
    for index, (piece, read, written, after) in enumerate(
        zip(pieces, reads, writes, given, strict=True)
    ):
        head = f"void {name}_part{index}({_ARGUMENTS})"
        loads = [f"  casadi_real {v}=kept[{place[v]}];" for v in sorted(read)]
        fresh = ", ".join(sorted(written - read))
        declared = [f"  casadi_real {fresh};"] if fresh else []
        stores = [f"  kept[{place[v]}]={v};" for v in after]
        text = "\n".join([f"{head} {{", *loads, *declared, *piece, *stores, "}", "", ""])
        parts.append(f"{head};\n{text}")
        heads.append(f"{head};\n")
        calls.append(f"  {name}_part{index}(arg, res, kept);\n")
    whole = (
        f"{''.join(heads)}static int {name}(const casadi_real** arg, casadi_real** res, "
        "casadi_int* iw, casadi_real* w, int mem) {\n"
        f"  casadi_real kept[{max(1, len(place))}];\n{''.join(calls)}  return 0;\n}}\n"
    )
    return whole, parts


def _used(lines: list[str]) -> tuple[set[str], set[str]]:
    """Variables that a part reads before it writes them, and those that it writes."""
    read, written = set[str](), set[str]()
    for line in lines:
        target = _ASSIGNMENT.match(line)
        right = line[target.end() :] if target else line
        read.update(v for v in _VARIABLE.findall(right) if v not in written)
        if target:
            written.add(target[1])
    return read, written
