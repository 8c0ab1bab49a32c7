"""The table of lines in docs/architecture.md follows the code."""

from __future__ import annotations

import itertools
import re

import pytest

from tests.house.__main__ import PAGE, TABLE, counts, lines_of_code


def test_docstrings_comments_and_blank_lines_do_not_count():
    text = '"""A\n\ndocstring."""\n\n# comment\nx = (\n    1,  # one\n)\n\n\ndef f():\n    "doc"\n'
    assert lines_of_code(text + "    return 2\n") == 5


@pytest.mark.extended
def test_table_follows_the_code():
    """`python -m tests.house` writes it again."""
    page = TABLE.search(PAGE.read_text(encoding="utf-8"))[0]
    stated = {name: int(code) for name, code in re.findall(r"^\| `(.+)` \| (\d+) \|", page, re.M)}
    # Those of the tests are last, and take seconds to count.
    found = {
        name: code for name, code, _ in itertools.takewhile(lambda r: r[0] != "tests", counts())
    }
    assert set(stated) == {*found, "tests", "together"}
    late = {name: n for name, n in found.items() if abs(n - stated[name]) > 0.03 * n}
    assert not late, "run python -m tests.house"
