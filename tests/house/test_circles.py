"""Circles of imports within packages, imports for types included: no more than the manual lists.

    python -m tests.house.test_circles

prints the circles.
"""

import re
from collections import Counter
from itertools import takewhile
from pathlib import Path

import grimp

PAGE = Path(__file__).parents[2] / "docs" / "architecture.md"


def circles():
    """Sets of modules that import each other, directly or through others."""
    graph = grimp.build_graph("concur", "hil", cache_dir=None)
    reached = {module: graph.find_upstream_modules(module) for module in graph.modules}
    found = {}
    for module in sorted(graph.modules):
        circle = {other for other in reached[module] if module in reached[other]} | {module}
        if len(circle) > 1:
            found[min(circle)] = sorted(circle)
    return list(found.values())


def package(circle):
    """The innermost package that holds all modules of a circle."""
    levels = zip(*(module.split(".") for module in circle), strict=False)
    return ".".join(names[0] for names in takewhile(lambda names: len(set(names)) == 1, levels))


def test_circles_are_those_of_the_manual():
    page = PAGE.read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([\w.]+)` \|[^|]*\| (\d+) \| (\w+) \|$", page, re.MULTILINE)
    listed, found = Counter(), Counter()
    for name, before, after in rows:
        listed[name] += int(after if after.isdecimal() else before)
    for circle in circles():
        found[package(circle)] += len(circle)
    assert rows
    assert found <= listed, circles()


if __name__ == "__main__":
    for circle in circles():
        print(package(circle), len(circle), *circle)
