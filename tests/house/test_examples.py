"""Every example script runs, away from the repository and without a screen."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.py"))
LONG = "free_floater.py"


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(path, id=path.name, marks=pytest.mark.extended if path.name == LONG else ())
        for path in EXAMPLES
    ],
)
def test_example_runs(script, tmp_path):
    done = subprocess.run(
        [sys.executable, "-W", "error", str(script)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
