"""Which test files run a line: found by running each of them alone, with a tracer.

The table of `_targets` names the tests of a module by hand, and goes with today's files. The
yardstick of the kill rate must hold for any division into files: it asks which tests run a line.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from tests.mutation._mutants import Mutant

FOLDERS = (
    "simulation",
    "planning",
    "control",
    "formulations",
    "reduction",
    "robot",
    "geometry",
    "groups",
    "codegen",
)
"""Folders of the package that the yardstick changes."""

TESTS = (*FOLDERS, "interop", "contract")
"""Folders of tests that may kill; those of a folder that does not exist have no files."""


@dataclass(frozen=True)
class Covering:
    """Test files with the lines of the package that they run.

    Parameters
    ----------
    lines : dict
        By test file and module: numbers of lines.
    runs : dict
        By test file: processor time with the tracer, s, and tests that fail, on unchanged code.
    budget : float
        Processor time of the unchanged files that is spent on one mutant, s; the quickest first.
    """

    lines: dict[str, dict[str, frozenset[int]]]
    runs: dict[str, tuple[float, frozenset[str]]]
    budget: float

    def files(self, mutant: Mutant) -> list[str]:
        """Return the files that run the line of a mutant, the quickest first, within the budget."""
        running = [
            file
            for file, modules in self.lines.items()
            if mutant.line in modules.get(mutant.path, ())
        ]
        chosen, spent = list[str](), 0.0
        for file in sorted(running, key=lambda name: (self.runs[name][0], name)):
            spent += self.runs[file][0]
            if chosen and spent > self.budget:
                break
            chosen.append(file)
        return chosen


def test_files(root: Path) -> list[str]:
    """Return the test files that may kill, as paths below the root."""
    found = (path for name in TESTS for path in (root / "tests" / name).rglob("test_*.py"))
    return sorted(str(path.relative_to(root)) for path in found)


def covering(
    root: Path, out: Path, budget: float, make: Callable[[], Any], say: Callable[[str], object]
) -> Covering:
    """Run all test files alone, or read what an interrupted or earlier run has found.

    Parameters
    ----------
    root, out : Path
        The tree, and the folder of the results.
    budget : float
        See `Covering`.
    make : callable
        Makes the scratch copy in which they run.
    say : callable
        Shows progress.
    """
    kept = out / "covering.json"
    found: dict[str, Any] = {}
    if kept.exists():
        found = json.loads(kept.read_text(encoding="utf-8"))
    out.mkdir(parents=True, exist_ok=True)
    key = _digest(root)
    if found.get("key") != key:
        found = {"key": key, "files": {}}
    waiting = [file for file in test_files(root) if file not in found["files"]]
    if waiting:
        scratch = make()
        try:
            for count, file in enumerate(waiting, 1):
                note = out / "lines.json"
                note.unlink(missing_ok=True)
                failed, spent = scratch.test(file, 1800.0, first=False, lines=str(note))
                lines = json.loads(note.read_text(encoding="utf-8")) if note.exists() else {}
                found["files"][file] = {"spent": spent, "failed": failed, "lines": lines}
                kept.write_text(json.dumps(found), encoding="utf-8")
                say(f"{count} of {len(waiting)} {file}: {spent:.1f} s, {len(failed)} fail")
        finally:
            scratch.close()
    files: dict[str, Any] = found["files"]
    return Covering(
        {file: {m: frozenset(n) for m, n in f["lines"].items()} for file, f in files.items()},
        {file: (f["spent"], frozenset(f["failed"])) for file, f in files.items()},
        budget,
    )


def _digest(root: Path) -> str:
    """Return what identifies the code and the tests."""
    total = sha256()
    for top in ("concur", "tests"):
        for path in sorted((root / top).rglob("*.py")):
            total.update(f"{path.relative_to(root)}\0".encode() + path.read_bytes())
    return total.hexdigest()[:16]
