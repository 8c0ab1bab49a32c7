"""A section or a peer that fails costs nothing of the others."""

import argparse

import numpy as np
import pytest

from tests.benchmarks import __main__ as benchmarks
from tests.benchmarks._contender import Comparison, Contender
from tests.benchmarks._inner import MissingError
from tests.benchmarks._report import BEGIN, END, table
from tests.benchmarks._timing import measure


def fails(_):
    raise MissingError("no Eigen: install it")


@pytest.fixture
def page(monkeypatch, tmp_path):
    path = tmp_path / "page.md"
    path.write_text(f"above\n{BEGIN}\nold\n\n## First\n\nold rows\n{END}\nbelow\n")
    monkeypatch.setattr(benchmarks, "PAGE", path)
    return path


@pytest.mark.parametrize(("order", "status"), [(("bad", "good"), 1), (("good",), 0)])
def test_sections_are_kept_one_by_one(page, monkeypatch, capsys, order, status):
    made = {"bad": fails, "good": lambda _: page.read_text() and "| rows |"}
    monkeypatch.setattr(benchmarks, "SECTIONS", made)
    asked = argparse.Namespace(report=True, only=None)
    assert benchmarks.measure_sections(list(order), asked) == status
    text = page.read_text()
    assert text.startswith("above\n")
    assert text.endswith(f"{END}\nbelow\n")
    assert "old" not in text
    for shown in (text, capsys.readouterr().out):
        assert "## good\n\n| rows |" in shown
        said = "## bad\n\nNot measured: MissingError: no Eigen: install it"
        assert (said in shown) == bool(status)


def test_what_was_measured_is_on_the_page_before_the_next_section(page, monkeypatch):
    seen = []

    def second(_):
        seen.append(page.read_text())
        raise KeyboardInterrupt

    monkeypatch.setattr(benchmarks, "SECTIONS", {"first": lambda _: "| 1 |", "second": second})
    with pytest.raises(KeyboardInterrupt):
        benchmarks.measure_sections(["first", "second"], argparse.Namespace(report=True, only=None))
    assert "## first\n\n| 1 |" in seen[0]
    assert seen[0] == page.read_text()


def ready(value=0.0):
    return lambda: lambda: np.array(value)


def missing():
    raise MissingError("no Eigen")


def test_peer_that_is_missing_is_a_row_that_says_so(capsys):
    ours = Contender("ours", ready())
    contenders = ours, Contender("theirs", missing, "C++"), Contender("other", ready(), "Pinocchio")
    found = measure(Comparison("job", contenders, 1, 3))
    assert np.isnan(found.times).tolist() == [[False, True, False]] * 3
    assert "not measured: theirs: no Eigen" in capsys.readouterr().err
    rows = table([found]).splitlines()
    assert rows[2].endswith("| not measured |")
    assert rows[3].startswith("|  | theirs | not measured |")


def test_without_ours_nothing_is_measured():
    with pytest.raises(MissingError):
        measure(Comparison("job", (Contender("ours", missing),), 1, 3))
