"""docs/sources.md lists all equations of the sources; each has a function and a test."""

from __future__ import annotations

import ast
import importlib.util
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "sources.md").read_text(encoding="utf-8")
MISPRINTS = {"000": 24, "002": 10, "003": 25, "004": 23}


def rows(page: str, heading: str) -> list[list[str]]:
    """Cells of the table below a heading."""
    part = re.search(rf"^## {heading}\n(.*?)(?=^## |\Z)", page, re.DOTALL | re.MULTILINE)
    lines = [line for line in part[1].splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


@cache
def functions(path: str) -> dict[str, str | None]:
    """Functions of a test file with the first lines of their docstrings."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {n.name: ast.get_docstring(n) for n in tree.body if isinstance(n, ast.FunctionDef)}


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


@pytest.fixture(scope="module")
def equations():
    spec = importlib.util.spec_from_file_location("equations", ROOT / "docs" / "equations.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_all_equations_have_functions_and_tests(equations) -> None:
    assert equations.fault(PAGE) is None


def test_all_misprints_are_listed() -> None:
    assert fault_of_misprints(PAGE) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(2.1)-(2.3), (3.1)", ["2.1", "2.2", "2.3", "3.1"]),
        ("(7) to (9) and (12)", ["7", "8", "9", "12"]),
        (
            "Theorem 5.4.2, NHR1-NHR3, Table 2.1",
            ["Theorem 5.4.2", *("NHR1", "NHR2", "NHR3"), "Table 2.1"],
        ),
        ("(2.1.3a) and (X, Y), (42 words)", ["2.1.3"]),
    ],
)
def test_numbers_are_expanded(equations, text: str, expected: list[str]) -> None:
    assert equations.expanded(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Mass matrix, (3.2.12) and (2.5).", {("001", "3.2.12")}),
        (
            "Thesis, (2.3.7)-(2.3.9); source 004, (1), (3).",
            {*(("001", f"2.3.{k}") for k in (7, 8, 9)), ("004", "1"), ("004", "3")},
        ),
        (
            "000: (2.6),\n    (2.11); 003: (12)-(14), on a chart (5).",
            {("000", "2.6"), ("000", "2.11"), *(("003", f"{k}") for k in (12, 13, 14))},
        ),
        ("0.004, (3)", set()),
        (None, set()),
    ],
)
def test_citations_are_found(equations, text: str | None, expected: set[tuple[str, str]]) -> None:
    assert equations.citations(text) == expected


def test_numbers_of_a_misprint_are_of_its_source(equations) -> None:
    assert equations.citations("(3.14): a sign.", "000") == {("000", "3.14")}


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("| (2.5) |", "| (2.4) |", "equations ['2.5'] of source 000"),
        ("| (3.1.2) | Euler-Lagrange equations |\n", "", "equations ['3.1.2'] of source 001"),
        ("steps of its proof (text)", "steps of its proof", "no test cites [('001', '2.3.10')"),
        ("## Source 004", "## Source 005", "of source 004"),
    ],
)
def test_missing_rows_are_found(equations, old: str, new: str, expected: str) -> None:
    assert old in PAGE
    assert expected in str(equations.fault(PAGE.replace(old, new)))


@pytest.mark.parametrize("kind", [0, 1])
def test_missing_and_unknown_citations_are_found(equations, kind: int) -> None:
    for drop, add, expected in (
        (("002", "20"), None, f"no {('function', 'test')[kind]} cites [('002', '20')]"),
        (None, ("003", "150"), "no such equation: [(('003', '150')"),
    ):
        found = [dict(links) for links in equations.index()]
        found[kind].pop(drop, None)
        if add:
            found[kind][add] = ["name"]
        assert expected in str(equations.fault(PAGE, tuple(found)))


def test_public_names_are_those_of_users(equations) -> None:
    functions, checks = equations.index()
    assert "concur.reduction.ReducedModel.lift" in functions["001", "3.3.38"]
    assert "concur.Mechanism.momentum" in functions["001", "3.3.35"]
    assert "tests.oracles.coefficients" in functions["003", "12"]
    assert "tests.oracles._affinity.torsion" in functions["004", "12"]
    assert "tests/sources/test_hamel.py::test_transitory_relation" in checks["003", "11"]


def test_page_is_filled(equations) -> None:
    page = equations.filled(PAGE)
    (row,) = (line for line in page.splitlines() if line.startswith("| (2.1.5) |"))
    assert "`concur.kinematics.admissible`" in row
    assert "`tests/kinematics/test_screw.py::test_rolling_on_a_circle`" in row
    (row,) = (line for line in page.splitlines() if line.startswith("| (2.3.8), (2.3.10) |"))
    assert row.endswith("| text | text |")
    rows = [line for line in page.split("## Misprints")[0].splitlines() if line.startswith("| ")]
    assert all(line.count(" | ") == 3 for line in rows)
