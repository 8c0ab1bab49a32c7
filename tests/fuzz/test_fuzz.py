"""Mutated files and wrong arguments end in a result or an error of ours, and soon."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from concur.errors import ConcurError
from tests.fuzz._fields import fuzz_fields
from tests.fuzz._files import fuzz_files
from tests.fuzz._watch import watch

ROOT = Path(__file__).parents[2]


def faults(what: str, count: int, seed: int, kind: str = "") -> str:
    """Run a fuzzer in a process of its own, which a crash or a lack of memory would end."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.fuzz", what, str(count), str(seed), kind],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        check=False,
        timeout=3000,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.mark.extended
@pytest.mark.parametrize(("what", "count"), [("files", 40), ("calls", 100)])
def test_a_few_cases_end_as_they_should(what: str, count: int) -> None:
    found = faults(what, count, 5)
    assert f"0 faults of 0 kinds in {count} cases" in found, found


@pytest.mark.slow
@pytest.mark.parametrize("what", ["files", "fields", "calls"])
def test_thousands_of_cases_end_as_they_should(what: str) -> None:
    found = faults(what, 5000, 11)
    assert "0 faults of 0 kinds in 5000 cases" in found, found


def test_errors_of_a_sample_name_file_table_and_entry(tmp_path: Path) -> None:
    assert list(fuzz_fields(tmp_path, 50, 1)) == []


@pytest.mark.extended
def test_a_few_urdf_files_end_as_they_should(tmp_path: Path) -> None:
    for kind in ("urdf", "sidecar", "xacro"):
        assert list(fuzz_files(tmp_path / kind, 6, 1, kind)) == []


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "count"), [("urdf", 8000), ("sidecar", 2000)])
def test_ten_thousand_urdf_files_end_as_they_should(kind: str, count: int) -> None:
    found = faults("files", count, 13, kind)
    assert f"0 faults of 0 kinds in {count} cases" in found, found


def test_the_watch_sees_what_is_wrong() -> None:
    def ours(message: str) -> None:
        raise ConcurError("place", expected="x", came=message, cure="Do.")

    assert watch("ours", lambda: ours("fine")) is None
    assert watch("result", lambda: 3) is None
    found = watch("other", lambda: [][0])
    assert found is not None
    assert found.kind.startswith("IndexError")

    def endless() -> None:
        while True:
            pass

    late = watch("endless", endless, longest=0.05)
    assert late is not None
    assert late.kind.startswith("more than 0.05 s")
