"""`concur track` judges a run by the requirements of its task, `concur check` validates them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from concur.cli import main
from concur.io import load_task
from tests.cli.test_check_task import line

TABLES = """
dt = 0.01
[tolerances]
evaluate_after = 1.9
final_error = 1.0
[[requirements]]
kind = "error"
output = "tip"
below = {below}
[[requirements]]
kind = "torque"
control = "upper"
below = 50.0
"""
UNCERTAIN = """
[uncertainty.mass]
upper = [{lightest}, 0.1]
[uncertainty.coulomb]
fore = {{ normal = [0.1, 0.001] }}
"""


def answer(*arguments: object) -> tuple[int, dict[str, Any]]:
    result = CliRunner().invoke(main, [*map(str, arguments), "--json"])
    return result.exit_code, json.loads(result.stdout)


def task(folder: Path, tables: str) -> Path:
    path = line(folder)
    path.write_text(path.read_text() + tables)
    return path


@pytest.mark.by_default(1)
@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("holds", [False, True])
def test_track_judges_a_run_by_its_requirements(holds: bool, tmp_path: Path) -> None:
    """The largest error is that at the start: a bound above it holds, one at it does not."""
    start = load_task(task(tmp_path, TABLES.format(below=1.0)))
    largest = float(start.simulate().error_norms["tip"].max())
    below = largest + 1.0 if holds else largest
    path = task(tmp_path, TABLES.format(below=below))
    status, found = answer("track", path, "--out", tmp_path / "out")
    assert (status, found["passed"]) == ((0, True) if holds else (1, False)), found["problems"]
    error, torque = found["rows"][:2]
    assert (error["quantity"], error["unit"]) == ("requirement error tip", "m")
    assert error["holds"] is holds
    assert error["value"] == pytest.approx(below - largest, abs=1e-12)
    assert (torque["unit"], torque["holds"]) == ("N m", True)
    assert "requirement error tip" in (tmp_path / "out" / "report.html").read_text()
    assert any("requirement error tip" in text for text in found["problems"]) is not holds


def test_check_lists_and_validates_requirements_and_uncertainty(tmp_path: Path) -> None:
    text = TABLES.format(below=1.0) + UNCERTAIN
    status, found = answer("check", task(tmp_path, text.format(lightest=-0.9)))
    assert status == 0, found["problems"]
    assert [entry["name"] for entry in found["requirements"]] == ["error tip", "torque upper"]
    mass, friction = found["uncertainty"]
    assert mass == {"name": "mass.upper", "unit": "kg", "support": [-0.9, 0.1]}
    assert friction["support"] == [None, None]
    # A mass of zero or less is not physical.
    status, found = answer("check", task(tmp_path, text.format(lightest=-1.1)))
    assert (status, found["status"]) == (2, "error")
    assert "[uncertainty.mass]" in found["problems"][0]
