"""Mutants of a source file: one number, sign, comparison or choice changed in each.

Not generated, because no test of behaviour can or should see them: docstrings, annotations,
error messages and other formatted text, progress, `__repr__`, assertions, codes in enumerations,
indices, sizes of arrays, seeds and numbers of random samples, and a comparison made strict or not
strict against a tolerance of rounding size, which no computed number equals.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

_STRICT = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
_REVERSED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "!=", "!=": "=="}
_PAIRS = (
    ("min", "max"),
    ("minimum", "maximum"),
    ("fmin", "fmax"),
    ("mmin", "mmax"),
    ("argmin", "argmax"),
    ("any", "all"),
    ("logic_and", "logic_or"),
    ("floor", "ceil"),
    ("lower", "upper"),
)
_EXCHANGED = dict(_PAIRS) | {b: a for a, b in _PAIRS}
_SIZES = {"zeros", "ones", "eye", "empty", "full", "reshape", "range", "round", "repeat", "tile"}
_SIZES |= {"default_rng", "delete", "SX", "DM", "MX", "sym", "getattr", "islice"}
_TEXT = {
    "axis",
    "came",
    "cure",
    "expected",
    "note",
    "label",
    "why",
    "ndmin",
    "decimals",
    "prec",
    "seed",
}
_ENUMERATIONS = {"Enum", "IntEnum", "IntFlag", "_Sentences"}
_PROGRESS = {"report", "progress", "print", "warn"}
_ROUNDING = 1e-4
"""Tolerances below this are of rounding size: no computed number equals one of them."""


@dataclass(frozen=True)
class Mutant:
    """One change of one source file: `text[start:end]`, in bytes, becomes `after`."""

    path: str
    line: int
    start: int
    end: int
    before: str
    after: str

    @property
    def name(self) -> str:
        """What identifies the change for a reader and in a file of results."""
        return f"{self.path}:{self.line}:{self.start} {self.before} -> {self.after}"

    def apply(self, source: bytes) -> bytes:
        """Return the changed source."""
        return source[: self.start] + self.after.encode() + source[self.end :]


def mutants(root: Path, path: str) -> list[Mutant]:
    """Return the mutants of a file below a folder, in order of place."""
    source = (root / path).read_bytes()
    found = {
        (start, end, after): Mutant(
            path, source.count(b"\n", 0, start) + 1, start, end, source[start:end].decode(), after
        )
        for start, end, after in _Places(source).changes()
    }
    return [mutant for _, mutant in sorted(found.items())]


def is_valid(root: Path, mutant: Mutant) -> bool:
    """Return whether a mutant is Python: what `-1` becomes in some places is not."""
    try:
        ast.parse(mutant.apply((root / mutant.path).read_bytes()))
    except SyntaxError:
        return False
    return True


Change = tuple[int, int, str]  # first byte, byte after the last, new text


class _Places:
    """Places of one source file where a change is made."""

    def __init__(self, source: bytes) -> None:
        self.source = source
        self.starts = [0]
        for line in source.split(b"\n"):
            self.starts.append(self.starts[-1] + len(line) + 1)

    def changes(self) -> Iterator[Change]:
        """Yield all changes."""
        return self._visit(ast.parse(self.source))

    def _span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return (
            self.starts[node.lineno - 1] + node.col_offset,
            self.starts[node.end_lineno - 1] + node.end_col_offset,
        )

    def _text(self, start: int, end: int) -> str:
        return self.source[start:end].decode()

    def _between(self, left: ast.expr, right: ast.expr, sign: str) -> tuple[int, int, str] | None:
        """Place and text of the operator between two expressions."""
        start, end = self._span(left)[1], self._span(right)[0]
        match = re.search(sign.encode(), self.source[start:end])
        if match is None:
            return None
        return start + match.start(), start + match.end(), match.group().decode()

    def _visit(self, node: ast.AST) -> Iterator[Change]:
        for child in _children(node):
            yield from self._visit(child)
        made = getattr(self, f"_{type(node).__name__.lower()}", None)
        if made is not None:
            yield from made(node)

    def _constant(self, node: ast.Constant) -> Iterator[Change]:
        value = node.value
        if isinstance(value, bool) or not isinstance(value, int | float) or value == 0:
            return
        span = self._span(node)
        if isinstance(value, int):
            texts = [str(value + 1), str(value - 1)]
        else:
            factor = 10.0 if value < 1e-3 or value > 1e3 else 2.0
            texts = [repr(float(f"{x:.12g}")) for x in (value * factor, value / factor)]
        yield from ((*span, text) for text in texts)

    def _compare(self, node: ast.Compare) -> Iterator[Change]:
        sides = [node.left, *node.comparators]
        for left, right in pairwise(sides):
            found = self._between(left, right, r"<=|>=|==|!=|<|>")
            if found is None:
                continue
            start, end, sign = found
            yield start, end, _REVERSED[sign]
            if sign in _STRICT and not (_is_rounding(left) or _is_rounding(right)):
                yield start, end, _STRICT[sign]

    def _binop(self, node: ast.BinOp) -> Iterator[Change]:
        if _is_text(node.left) or _is_text(node.right):
            return
        found = self._between(node.left, node.right, r"\+|-|%")
        if not isinstance(node.op, ast.Add | ast.Sub | ast.Mod) or found is None:
            return
        start, end, sign = found
        whole = self._span(node)
        if sign != "%":
            yield start, end, "-" if sign == "+" else "+"
        if sign == "%" or isinstance(node.right, ast.Constant):
            yield *whole, self._text(whole[0], start).rstrip()

    def _augassign(self, node: ast.AugAssign) -> Iterator[Change]:
        if not isinstance(node.op, ast.Add | ast.Sub) or isinstance(node.value, ast.List):
            return
        found = self._between(node.target, node.value, r"\+|-")
        if found is None or _is_text(node.value):
            return
        start, end, sign = found
        yield start, end, "-" if sign == "+" else "+"
        yield *self._span(node.value), "0"

    def _unaryop(self, node: ast.UnaryOp) -> Iterator[Change]:
        if isinstance(node.op, ast.Not | ast.USub):
            span = self._span(node)
            skipped = 3 if isinstance(node.op, ast.Not) else 1
            yield *span, self._text(span[0] + skipped, span[1]).lstrip()

    def _boolop(self, node: ast.BoolOp) -> Iterator[Change]:
        for left, right in pairwise(node.values):
            found = self._between(left, right, r"\band\b|\bor\b")
            if found is not None:
                yield found[0], found[1], "or" if found[2] == "and" else "and"

    def _call(self, node: ast.Call) -> Iterator[Change]:
        name = _name(node.func)
        if name in _EXCHANGED and (node.args or name not in ("lower", "upper")):
            end = self._span(node.func)[1]
            yield end - len(name), end, _EXCHANGED[name]


def _children(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the children of a node in which changes are of interest."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.JoinedStr | ast.Assert | ast.Raise | ast.slice):
            continue
        if isinstance(child, ast.ClassDef) and _ENUMERATIONS & {_name(b) for b in child.bases}:
            continue
        if isinstance(node, ast.Assign) and "SAMPLES" in {_name(t) for t in node.targets}:
            continue
        if isinstance(child, ast.keyword) and child.arg in _TEXT:
            continue
        if isinstance(child, ast.FunctionDef) and child.name in ("__repr__", "__str__"):
            continue
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and child is node.returns:
            continue
        if isinstance(node, ast.AnnAssign | ast.arg) and child is node.annotation:
            continue
        if isinstance(node, ast.Subscript) and child is node.slice:
            continue
        if isinstance(node, ast.Call) and _name(node.func) in _SIZES and _is_number(child):
            continue
        if isinstance(child, ast.Call) and _name(child.func) in _PROGRESS:
            continue
        yield child


def _name(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _is_number(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, int)


def _is_text(node: ast.expr) -> bool:
    """Whether an operand is text or a sequence: its sum is no arithmetic."""
    kinds = ast.JoinedStr | ast.List | ast.Tuple
    return isinstance(node, kinds) or isinstance(getattr(node, "value", None), str)


def _is_rounding(node: ast.expr) -> bool:
    value = getattr(node, "value", None)
    return isinstance(value, float) and 0.0 < value < _ROUNDING
