"""The tables of `sources.md`: docstrings cite equations, and the citations are gathered here.

A citation is ``(5.4.30)`` or ``Theorem 5.4.2`` for the thesis, source 001, and ``Source 003, (12)``
or ``003: (12)`` for another source. Functions are the public ones of `concur` and the oracles of
the tests. A row of the page names equations, content and one of `KINDS`.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
THESIS = "001"


def _ranges(stem: str, *bounds: tuple[str, int, int]) -> list[str]:
    return [f"{stem}{section}{k}" for section, low, high in bounds for k in range(low, high + 1)]


EQUATIONS = {
    "000": [
        *_ranges("", ("1.", 1, 3), ("2.", 1, 12), ("3.", 1, 15), ("4.", 1, 15)),
        *_ranges("", ("5.", 1, 36), ("6.", 1, 5), ("7.", 1, 2)),
    ],
    THESIS: [
        *_ranges("2.", ("1.", 1, 5), ("2.", 6, 6), ("3.", 7, 13), ("4.", 14, 23)),
        *_ranges("3.", ("1.", 1, 11), ("2.", 12, 28), ("3.", 29, 47), ("4.", 48, 48)),
        *_ranges("4.", ("1.", 1, 7), ("2.", 8, 22), ("3.", 23, 27), ("4.", 28, 32), ("5.", 33, 38)),
        *_ranges("5.", ("1.", 1, 12), ("2.", 13, 19), ("3.", 20, 29), ("4.", 30, 44)),
        *("Table 2.1", "Proposition 2.1.1", "Proposition 2.1.3", "Theorem 2.1.5", "Theorem 2.2.3"),
        *("Theorem 2.3.1", "Proposition 2.4.1", "Proposition 2.4.2", "Lemma 2.4.3", "Lemma 2.4.4"),
        *("Proposition 2.4.5", "Lemma 2.4.6", "Lemma 3.1.1", "Lemma 3.2.1", "Lemma 3.2.2"),
        *("Proposition 3.2.3", "Theorem 3.2.4", "Lemma 3.2.5", "Lemma 3.2.6", "Theorem 3.2.7"),
        *("Lemma 3.3.4", "Lemma 3.3.5", *(f"Lemma 4.2.{k}" for k in (3, 5, 6, 7, 8))),
        *("Theorem 4.3.1", "Lemma 4.5.1", "Theorem 4.5.2", "Corollary 5.1.2", "Proposition 5.1.3"),
        "Corollary 5.2.5",
        *("Corollary 3.3.1", "Corollary 3.3.2", "Theorem 3.3.3", "Theorem 3.3.6"),
        *("Corollary 3.3.7", "Table 3.1", "Theorem 4.2.4", "Proposition 4.2.12"),
        *("Corollary 4.2.13", "Proposition 4.2.14", "Proposition 4.2.15", "Proposition 4.2.16"),
        *("Theorem 4.2.17", "Theorem 4.2.18", "Proposition 4.4.1", "Proposition 5.2.6"),
        *("Theorem 5.4.2", "NHR1", "NHR2", "NHR3", *_ranges("CON", ("", 1, 9))),
    ],
    "002": _ranges("", ("", 1, 53)),
    # Of the appendix, which is lost, what other equations and tests cite.
    "003": _ranges("", ("", 1, 142), ("", 157, 160), ("", 163, 166), ("", 175, 175)),
    "004": _ranges("", ("", 1, 145)),
}
"""Numbered equations of each source, and the named statements of the thesis."""

KINDS = ("computed", "used", "tests", "text")
"""Kinds of equations: a public function returns it, functions rest on it, only tests contain it, or
there is nothing to compute."""

NAMED = r"(?:Theorem|Proposition|Lemma|Corollary) \d\.\d\.\d+|Table [23]\.1|(?:CON|NHR)\d"
_NUMBER = r"(?<!\w)\((\d+(?:\.\d+)*)[ab]?\)"
_LIST = rf"{_NUMBER}(?:(?:-| to |,? and |, ){_NUMBER})*".replace("(\\d", "(?:\\d")
_OTHERS = re.compile(rf"(?<![\d.])(00[0-4])(?:, |: | )({_LIST})")


def expanded(text: str) -> list[str]:
    """Numbers of a text such as "(2.1)-(2.4), (3.1)", and named statements."""
    found = []
    for match in re.finditer(rf"({NAMED})(?:-({NAMED}))?|{_NUMBER}(?:(?:-| to ){_NUMBER})?", text):
        name, last_name, first, last = match.groups()
        first, last = name or first, last_name or last
        stem, low = re.match(r"(.*?)(\d+)$", first).groups()
        high = re.search(r"\d+$", last or first)[0]
        found += [f"{stem}{k}" for k in range(int(low), int(high) + 1)]
    return found


def citations(docstring: str | None, source: str = THESIS) -> set[tuple[str, str]]:
    """Pairs of source and equation that a docstring cites; numbers alone are of `source`."""
    # A number in an example is no citation.
    text = " ".join(re.split(r"\n *Examples\n *-{3}", docstring or "")[0].split())
    found = {(other, n) for other, part in _OTHERS.findall(text) for n in expanded(part)}
    own = expanded(_OTHERS.sub(" ", text))
    if source == THESIS:
        own = [n for n in own if n.count(".") == 2 or not n[0].isdigit()]
    return found | {(source, n) for n in own}


def public_functions() -> Iterator[tuple[str, str | None]]:
    """Public functions, classes and methods of `concur` with their docstrings."""
    best: dict[int, tuple[tuple[int, int, str], str | None]] = {}
    for module in _modules():
        for name in getattr(module, "__all__", vars(module)):
            value = getattr(module, name)
            if not getattr(value, "__module__", "").startswith("concur") or name.startswith("_"):
                continue
            path = f"{module.__name__}.{name}"
            items = [(path, value, 0)]
            if inspect.isclass(value):
                members = ((n, inspect.getattr_static(value, n)) for n in dir(value))
                items += [
                    (f"{path}.{n}", getattr(m, "__func__", m), len(value.__mro__))
                    for n, m in members
                    if not n.startswith("_") and getattr(m, "__doc__", None)
                ]
            for path, item, depth in items:
                order = (depth, path.count("."), path)
                if id(item) not in best or order < best[id(item)][0]:
                    best[id(item)] = order, item.__doc__
    for (_, _, path), text in best.values():
        yield path, text


def _modules() -> list:
    """`concur` and its public modules."""
    found = [importlib.import_module("concur")]
    for package in found:  # grows meanwhile
        for entry in pkgutil.iter_modules(getattr(package, "__path__", ()), f"{package.__name__}."):
            if not entry.name.rpartition(".")[2].startswith("_"):
                found.append(importlib.import_module(entry.name))
    return found


def _written(path: Path) -> Iterator[tuple[str, str | None]]:
    """Functions, classes and methods of a file with their docstrings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    kinds = (ast.FunctionDef, ast.ClassDef)
    for node in tree.body:
        if isinstance(node, kinds):
            yield node.name, ast.get_docstring(node)
            for inner in node.body if isinstance(node, ast.ClassDef) else ():
                if isinstance(inner, kinds):
                    yield f"{node.name}.{inner.name}", ast.get_docstring(inner)


def oracles() -> Iterator[tuple[str, str | None]]:
    """Oracles of the tests with their docstrings."""
    folder = ROOT / "tests" / "oracles"
    exported = (folder / "__init__.py").read_text(encoding="utf-8").split("__all__")[1]
    for path in sorted(folder.glob("_*.py")):
        for name, text in _written(path):
            module = "" if f'"{name.split(".")[0]}"' in exported else f".{path.stem}"
            yield f"tests.oracles{module}.{name}", text


@cache
def tests() -> tuple[tuple[str, str | None], ...]:
    """Tests with their docstrings, and the misprints that some of them check."""
    return tuple(
        (f"{path.relative_to(ROOT).as_posix()}::{name}", text)
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        for name, text in _written(path)
        if re.match("test_|misprint_", name)
    )


Index = dict[tuple[str, str], list[str]]


@cache
def index() -> tuple[Index, Index]:
    """Functions and tests of each equation."""
    found: tuple[Index, Index] = ({}, {})
    for kind, items in enumerate(([*public_functions(), *oracles()], [*tests()])):
        for name, text in sorted(items, key=lambda item: (item[0].count("."), item[0])):
            misprint = re.search(r"::misprint_(\d+)_", name)
            for key in citations(text, misprint[1] if misprint else THESIS):
                names = found[kind].setdefault(key, [])
                own = is_public(name), name.rpartition(".")[2]
                if all(own != (is_public(n), n.rpartition(".")[2]) for n in names):
                    names.append(name)
    return found


def rows(page: str) -> Iterator[tuple[str, str, str, str, str]]:
    """Line, source, equations, content and kind of each row of the page's tables of equations."""
    for source, part in re.findall(r"^## Source (\d+)\n(.*?)(?=^## |\Z)", page, re.S | re.M):
        for line in part.splitlines():
            if cells := re.fullmatch(r"\| ([^|]*[)\d]) \| ([^|]+) \| ([^|]+) \|", line):
                yield line, source, cells[1], cells[2], cells[3]


def fault(page: str, found: tuple[Index, Index] | None = None) -> str | None:
    """The first equation without a row, function or test, of a wrong kind, or wrong citation."""
    functions, checks = found or index()
    listed: dict[str, list[str]] = {}
    kinds: dict[tuple[str, str], str] = {}
    for _, source, equations, _, kind in rows(page):
        numbers = expanded(equations)
        listed.setdefault(source, []).extend(numbers)
        kinds |= {(source, n): kind for n in numbers}
        if kind not in KINDS:
            return f"sources.md: {equations} of source {source} of the kind {kind}"
    for source, numbers in EQUATIONS.items():
        here = listed.get(source, [])
        if wrong := set(here) ^ set(numbers) or {n for n in here if here.count(n) > 1}:
            return f"sources.md: equations {sorted(wrong)} of source {source}"
    known = {(source, n) for source, numbers in EQUATIONS.items() for n in numbers}
    for links in (functions, checks):
        if wrong := set(links) - known:
            return f"no such equation: {sorted((key, links[key]) for key in wrong)}"
    public = {key for key, names in functions.items() if any(map(is_public, names))}
    functional = {key for key in known if kinds[key] in ("computed", "used")}
    if wrong := functional - public:
        return f"no function cites {sorted(wrong)}"
    if wrong := {key for key in public if kinds[key] == "tests"}:
        return f"functions cite {sorted((key, functions[key]) for key in wrong)}, of tests only"
    if wrong := {key for key in known if kinds[key] != "text"} - set(checks):
        return f"no test cites {sorted(wrong)}"
    return None


def is_public(name: str) -> bool:
    """Whether a name is of the package, not of an oracle."""
    return name.startswith("concur.")


def names_in_cell(names: Iterable[str]) -> str:
    """Names as code with places where lines may break."""
    broken = (re.sub(r"(::|[/._](?=.))", r"\1<wbr>", name) for name in names)
    return ", ".join(f'<code class="breaks">{name}</code>' for name in broken)


def filled(page: str) -> str:
    """The page with the columns of functions and tests."""
    functions, checks = index()
    page = page.replace(
        "| equations | content | kind |\n| --- | --- | --- |",
        "| equations | content | kind | function or oracle | test |\n"
        "| --- | --- | --- | --- | --- |",
    )
    for line, source, equations, content, kind in rows(page):
        keys = [(source, n) for n in expanded(equations)]
        cells = []
        for links in (functions, checks):
            names = dict.fromkeys(name for key in keys for name in links.get(key, ()))
            if (
                links is functions and kind == "computed"
            ):  # what returns it, not what transcribes it
                names = dict.fromkeys(filter(is_public, names))
            cells.append(names_in_cell(names))
        if kind == "text":
            cells = ["", ""]
        page = page.replace(line, f"| {equations} | {content} | {kind} | {cells[0]} | {cells[1]} |")
    return page
