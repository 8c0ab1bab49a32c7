"""docs/sources.md and docs/errata.md: equations have functions and tests, misprints tests."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "sources.md").read_text(encoding="utf-8")
ERRATA = (ROOT / "docs" / "errata.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def modules():
    sys.path.insert(0, str(ROOT / "docs"))
    names = ("equations", "misprints")
    yield tuple(importlib.import_module(name) for name in names)
    sys.path.remove(str(ROOT / "docs"))
    for name in names:
        del sys.modules[name]


@pytest.fixture
def equations(modules):
    return modules[0]


@pytest.fixture
def misprints(modules):
    return modules[1]


def test_all_equations_have_functions_and_tests(equations) -> None:
    assert equations.fault(PAGE) is None


def test_tests_of_computed_equations_use_their_functions(equations) -> None:
    """A row is computed if a test that cites it takes the number from a function of the row."""
    functions, tests = equations.index()
    checked, missing = 0, []
    for line, source, numbers, _, kind in equations.rows(PAGE):
        if kind != "computed":
            continue
        keys = [(source, number) for number in equations.expanded(numbers)]
        names = {f.split(".")[-1] for key in keys for f in functions.get(key, ())}
        files = {test.split("::")[0] for key in keys for test in tests.get(key, ())}
        words = {w for file in files for w in re.findall(r"\w+", (ROOT / file).read_text("utf-8"))}
        checked += 1
        if not names & words:
            missing.append(line)
    assert checked > 60
    assert not missing


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(2.1)-(2.3), (3.1)", ["2.1", "2.2", "2.3", "3.1"]),
        ("(7) to (9) and (12)", ["7", "8", "9", "12"]),
        (
            "Theorem 5.4.2, NHR1-NHR3, Table 2.1",
            ["Theorem 5.4.2", *("NHR1", "NHR2", "NHR3"), "Table 2.1"],
        ),
        ("(2.1.3a) and (X, Y), (42 words), SE(3)", ["2.1.3"]),
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
        (
            "| (3.1.2) | Euler-Lagrange equations | tests |\n",
            "",
            "equations ['3.1.2'] of source 001",
        ),
        (
            "steps of its proof | text",
            "steps of its proof | used",
            "no test cites [('001', '2.3.10')",
        ),
        ("## Source 004", "## Source 005", "of source 004"),
        ("| (2.5) | transitory relation | tests |", "| (2.5) | x | known |", "of the kind known"),
        # A public function is needed to be computed, and denied by its citation to be of tests.
        ("transitory relation | tests", "transitory relation | computed", "no function cites"),
        (
            "| Theorem 2.2.3, (2.2.6) | product of exponentials | computed",
            "| Theorem 2.2.3, (2.2.6) | x | tests",
            "of tests only",
        ),
    ],
)
def test_missing_rows_are_found(equations, old: str, new: str, expected: str) -> None:
    assert old in PAGE
    assert expected in str(equations.fault(PAGE.replace(old, new)))


@pytest.mark.parametrize("kind", [0, 1])
def test_missing_and_unknown_citations_are_found(equations, kind: int) -> None:
    for drop, add, expected in (
        (("002", "19"), None, f"no {('function', 'test')[kind]} cites [('002', '19')]"),
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
    assert "concur.geometry.Connection.torsion" in functions["004", "12"]
    assert "tests.oracles._affinity.nonmetricity" in functions["004", "24"]
    assert "tests/sources/test_hamel.py::test_transitory_relation" in checks["003", "11"]


def plain(page: str) -> str:
    """The page without the places where lines may break."""
    return re.sub(r'<code class="breaks">(.*?)</code>', r"`\1`", page).replace("<wbr>", "")


def test_page_is_filled(equations) -> None:
    page = plain(equations.filled(PAGE))
    (row,) = (line for line in page.splitlines() if line.startswith("| (2.1.5) |"))
    assert "`concur.robot.admissible`" in row
    assert "`tests/robot/test_screw.py::test_rolling_on_a_circle`" in row
    (row,) = (line for line in page.splitlines() if line.startswith("| (2.3.8), (2.3.10) |"))
    assert row.endswith("| steps of its proof | text |  |  |")
    rows = [line for line in page.splitlines() if line.startswith("| ")]
    assert all(line.count(" | ") == 4 for line in rows)


def test_functions_are_credited_with_what_they_return(equations) -> None:
    """Oracles stand beside equations that are used or of tests, never beside computed ones."""
    page = plain(equations.filled(PAGE))
    cells = [line.split(" | ") for line in page.splitlines() if re.match(r"\| .*[)\d] \|", line)]
    functions = {kind: [row[3] for row in cells if row[2] == kind] for kind in equations.KINDS}
    assert all(map(len, functions.values()))
    assert all("concur." in names and "oracles" not in names for names in functions["computed"])
    assert all("concur." in names for names in functions["used"])
    assert not any("concur." in names for names in functions["tests"])
    assert "concur.groups.so3.skew" not in page


def test_numbers_in_examples_are_no_citations(equations) -> None:
    text = "Thesis, (2.2.6).\n\n    Examples\n    --------\n    >>> text = '(3.1.2)'"
    assert equations.citations(text) == {("001", "2.2.6")}


# --- errata -----------------------------------------------------------------------------------


def test_all_misprints_are_shown_or_words(misprints) -> None:
    assert misprints.fault(ERRATA) is None


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("| 000-9 |", "| 000-8 |", "rows ['000-9']"),
        ("| 002-6 |", "| 002-11 |", "rows ['002-11', '002-6']"),
        ("002-7 |", "002-7|", "rows ['002-7']"),
        ("(3.11) is correct |", "(3.11) is correct (wording) |", "000-7 has a test"),
        ("the sum covers both terms (wording) |", "the sum covers both |", "002-7 has no test"),
    ],
)
def test_wrong_rows_of_misprints_are_found(misprints, old: str, new: str, expected: str) -> None:
    assert old in ERRATA
    assert expected in str(misprints.fault(ERRATA.replace(old, new)))


def test_wrong_tests_of_misprints_are_found(misprints) -> None:
    shown = misprints.shown()
    assert "000-99" in misprints.fault(ERRATA, shown | {"000-99": ["test"]})
    assert "001-9 has no test" in misprints.fault(
        ERRATA, {number: tests for number, tests in shown.items() if number != "001-9"}
    )
    assert shown["001-9"] == shown["001-10"]
    assert len(shown["000-4"]) == 2  # misprint_000_4 and misprint_000_4_momentum


def test_misprints_are_checked_where_they_are_written() -> None:
    for path in (ROOT / "tests").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if re.search("^def misprint_", text, re.MULTILINE):
            assert "    check_misprints(globals())\n" in text, path


def test_errata_are_filled(misprints) -> None:
    page = plain(misprints.filled(ERRATA))
    lines = {
        cells[1].strip(): cells[5].strip()
        for line in page.splitlines()
        if len(cells := line.split("|")) == 7
    }
    assert lines["001-18"] == "`tests/sources/test_thesis.py::misprint_001_18`"
    assert lines["001-19"] == "wording"
    assert len(lines) == sum(misprints.COUNTS.values()) + 2  # heading and rule
    assert "(wording)" not in page
