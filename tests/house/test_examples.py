"""Every example runs: scripts away from the repository and without a screen, tasks to their ends.

Tasks of URDF files run in `tests/robot`, with the packages that contain the files.
"""

import subprocess
import sys
from pathlib import Path

import pytest

import concur as cc

FOLDER = Path(__file__).parents[2] / "examples"
EXAMPLES = sorted(FOLDER.glob("*.py"))
TASKS = sorted(
    path
    for path in FOLDER.rglob("*.toml")
    if "[[outputs]]" in path.read_text(encoding="utf-8") and path.parent.name != "urdf"
)


@pytest.mark.extended
@pytest.mark.parametrize("script", EXAMPLES, ids=lambda path: path.name)
def test_example_runs(script, tmp_path):
    done = subprocess.run(
        [sys.executable, "-W", "error", str(script)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"


@pytest.mark.slow
@pytest.mark.parametrize("path", TASKS, ids=lambda path: path.relative_to(FOLDER).as_posix())
def test_task_passes(path):
    task = cc.load_task(path)
    run = task.simulate(task.servo)
    assert run.t[-1] == pytest.approx(task.duration)
    assert not [found for found in run.findings(task.tolerances) if found.holds is False]
