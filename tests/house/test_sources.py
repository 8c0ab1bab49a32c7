"""docs/sources.md lists all equations and misprints of the sources, with links that exist."""

from __future__ import annotations

import ast
import importlib
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "sources.md").read_text(encoding="utf-8")
CHAPTERS = {1: 3, 2: 12, 3: 15, 4: 15, 5: 36, 6: 5, 7: 2}
NUMBERS = {
    "000": [f"{chapter}.{k}" for chapter, last in CHAPTERS.items() for k in range(1, last + 1)],
    "002": [str(k) for k in range(1, 54)],
    # Of the appendix, which is lost, what other equations cite.
    "003": [str(k) for k in (*range(1, 143), *range(157, 161), 175)],
    "004": [str(k) for k in range(1, 146)],
}
MISPRINTS = {"000": 24, "002": 10, "003": 25, "004": 23}


def rows(page: str, heading: str) -> list[list[str]]:
    """Cells of the table below a heading."""
    part = re.search(rf"^## {heading}\n(.*?)(?=^## |\Z)", page, re.DOTALL | re.MULTILINE)
    lines = [line for line in part[1].splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def expanded(cell: str) -> list[str]:
    """Numbers of a cell such as "(2.1)-(2.4), (3.1)"."""
    found = []
    for first, last in re.findall(r"\(([\d.]+)\)(?:-\(([\d.]+)\))?", cell):
        *chapter, low = first.split(".")
        high = (last or first).split(".")[-1]
        found += [".".join([*chapter, str(k)]) for k in range(int(low), int(high) + 1)]
    return found


@cache
def functions(path: str) -> dict[str, str | None]:
    """Functions of a test file with the first lines of their docstrings."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {n.name: ast.get_docstring(n) for n in tree.body if isinstance(n, ast.FunctionDef)}


def fault(page: str) -> str | None:
    """The first thing that is missing, or None."""
    for source, numbers in NUMBERS.items():
        table = rows(page, f"Source {source}")
        listed = [number for row in table for number in expanded(row[0])]
        if set(listed) != set(numbers):
            return f"equations {sorted(set(listed) ^ set(numbers))} of source {source}"
        for equations, content, names, tests in table:
            if not (content and re.findall("`", names) and re.findall("`", tests)):
                return f"an empty cell at {equations} of source {source}"
            for name in re.findall("`(.*?)`", names):
                if not exists(name):
                    return f"function {name}"
            for test in re.findall("`(.*?)`", tests):
                path, _, name = test.partition("::")
                if not (ROOT / path).is_file() or name not in functions(path):
                    return f"test {test}"
    return fault_of_misprints(page)


def fault_of_misprints(page: str) -> str | None:
    listed: dict[str, set[str]] = {}
    table = rows(page, "Misprints")
    for number, text, test in table:
        listed.setdefault(number[:3], set()).add(number[4:])
        path, _, name = test.strip("`").partition("::")
        if not (ROOT / path).is_file() or name not in functions(path):
            return f"test {test}"
        if name.startswith("misprint") and functions(path)[name] != text:
            return f"text of {name}"
    for source, count in MISPRINTS.items():
        if listed.get(source) != {str(k) for k in range(1, count + 1)}:
            return f"misprints of source {source}"
    tested = {test.strip("`") for _, _, test in table}
    for path in (ROOT / "tests" / "sources").glob("test_*.py"):
        place = path.relative_to(ROOT).as_posix()
        for name in functions(place):
            if name.startswith("misprint") and f"{place}::{name}" not in tested:
                return f"row of {name}"
    return None


def exists(name: str) -> bool:
    """Whether a dotted name can be imported."""
    module, *members = name.split(".")
    found = importlib.import_module(module)
    for member in members:
        if not hasattr(found, member):
            module = f"{found.__name__}.{member}"
            if importlib.util.find_spec(module) is None:
                return False
            found = importlib.import_module(module)
        else:
            found = getattr(found, member)
    return True


def test_all_equations_and_misprints_are_listed() -> None:
    assert fault(PAGE) is None


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("| (2.5) |", "| (2.4) |", "equations ['2.5'] of source 000"),
        ("::test_transitory_relation`", "::test_other`", "test_other"),
        (
            "`tests.oracles.boltzmann_hamel`",
            "`tests.oracles.other`",
            "function tests.oracles.other",
        ),
        ("`tests.oracles._spheres.Spheres.by_mu`", "", "an empty cell at (20)-(27)"),
        ("| 003-7 |", "| 003-8 |", "misprints of source 003"),
        ("c_ijk -> c_jik", "c_ijk -> c_kij", "text of misprint_003_7"),
        ("test_hamel.py::misprint_000_7`", "test_hamel.py::misprint_003_7`", "misprint_003_7"),
    ],
)
def test_missing_links_are_found(old: str, new: str, expected: str) -> None:
    assert old in PAGE
    assert expected in str(fault(PAGE.replace(old, new)))
