"""The tables of `errata.md`: tests say which misprints they show, and are gathered here.

A test of the misprint 000-1 is named ``misprint_000_1``, or has "Misprint 000-1" in its docstring.
A row that ends in "(wording)" has no value to compare, and no test.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from equations import names_in_cell, tests

COUNTS = {"000": 27, "001": 59, "002": 10, "003": 25, "004": 23}
"""Misprints that were found in each source."""


def shown() -> dict[str, list[str]]:
    """Tests of each misprint."""
    found: dict[str, list[str]] = {}
    for name, text in tests():
        named = re.findall(r"::misprint_(00\d)_(\d+)", name)
        cited = re.findall(r"\b[Mm]isprints? ((?:00\d-\d+(?:, | and )?)+)", text or "")
        numbers = [f"{source}-{k}" for source, k in named]
        numbers += [n for part in cited for n in re.findall(r"00\d-\d+", part)]
        for number in numbers:
            found.setdefault(number, []).append(name)
    return found


def rows(page: str) -> Iterator[tuple[str, str, bool]]:
    """Line and number of each row, and whether it is one of words."""
    for line in page.splitlines():
        if cells := re.fullmatch(r"\| (00\d-\d+) \| [^|]+ \| [^|]+ \| [^|]+ \|", line):
            yield line, cells[1], line.endswith("(wording) |")


def fault(page: str, links: dict[str, list[str]] | None = None) -> str | None:
    """The first misprint without a row or without a test, or a test without a row."""
    links = shown() if links is None else links
    listed = [number for _, number, _ in rows(page)]
    expected = [f"{source}-{k}" for source, n in COUNTS.items() for k in range(1, n + 1)]
    if listed != expected:
        wrong = set(listed) ^ set(expected) or {n for n in listed if listed.count(n) > 1}
        return f"errata.md: rows {sorted(wrong) or 'out of order'}"
    if wrong := set(links) - set(listed):
        return f"tests of misprints without a row: {sorted(wrong)}"
    for _, number, words in rows(page):
        if words == (number in links):
            return f"{number} has {'a test' if words else 'no test'}"
    return None


def filled(page: str) -> str:
    """The page with the column of tests."""
    links = shown()
    page = page.replace(
        "| no. | place | printed | correct |\n| --- | --- | --- | --- |",
        "| no. | place | printed | correct | shown by |\n| --- | --- | --- | --- | --- |",
    )
    for line, number, words in rows(page):
        text = "wording" if words else names_in_cell(links[number])
        page = page.replace(line, f"{line.replace(' (wording) |', ' |')} {text} |")
    return page
