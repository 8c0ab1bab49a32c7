"""Examples of docstrings run: those of all names that docs/api.md lists."""

from __future__ import annotations

import doctest
import importlib
import inspect
import re

import pytest

from tests.house.test_docs import ROOT, is_own

PAGE = (ROOT / "docs/api.md").read_text(encoding="utf-8")
LISTED = re.findall(r"^- `((?:concur|hil)\.[\w.]+)`", PAGE, re.MULTILINE)
WITHOUT = 59
"""Names without an example, results of functions above all; the number may only fall."""


def found(path):
    """What a dotted name stands for."""
    module, _, name = path.rpartition(".")
    try:
        return getattr(importlib.import_module(module), name)
    except ModuleNotFoundError:
        owner, _, part = module.rpartition(".")
        return getattr(getattr(importlib.import_module(owner), part), name)


def example(path):
    """The example of a name; its parts that need files of a user are skipped there."""
    finder = doctest.DocTestFinder(recurse=False)
    (made,) = finder.find(found(path), path)[:1] or (None,)
    return made if made is not None and made.examples else None


OWN = [path for path in LISTED if is_own(found(path))]
EXAMPLES = [path for path in OWN if example(path)]


@pytest.mark.parametrize("path", EXAMPLES)
def test_example_runs(path, monkeypatch):
    monkeypatch.chdir(ROOT)
    said = []
    doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(example(path), out=said.append)
    assert not said, "".join(said)


def test_names_without_an_example_only_get_fewer():
    bare = [path for path in OWN if path not in EXAMPLES]
    assert len(bare) <= WITHOUT, f"an example is missing: {bare}"
    assert all(inspect.isclass(found(p)) or inspect.isroutine(found(p)) for p in OWN)
