"""The operating box of a task from the command line: tables, files, exit status and bad input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from concur.cli import main

TASK = (Path(__file__).parents[2] / "examples" / "rover_arm.toml").read_text()
BOX = """
[servo]
torque_limits = {limit}

[operating]
speeds = 0.3
acceleration = 0.2
pose_error = 0.01
velocity_error = 0.02
tolerance = 0.4

[operating.ranges]
turret = [-0.05, 0.05]
upper_arm = [0.95, 1.05]
forearm = [-1.65, {end}]
"""


BARE = """
[operating]
{field}

[operating.ranges]
turret = [-0.05, 0.05]
upper_arm = [0.95, 1.05]
forearm = [-1.65, -1.55]
"""


def run(folder: Path, box: str, *options: str) -> Result:
    task = folder / "task.toml"
    own, table, _ = TASK.partition("# `concur certify` proves")
    assert table
    task.write_text(own + box)
    return CliRunner().invoke(main, ["certify", str(task), "--out", str(folder / "out"), *options])


def test_a_box_is_proved(tmp_path: Path) -> None:
    result = run(tmp_path, BOX.format(limit=40.0, end=-1.55))
    assert result.exit_code == 0, result.output
    assert "Operating box" in result.stdout
    document = json.loads((tmp_path / "out" / "operating.json").read_text())
    assert document["status"] == "PROVED"
    assert document["margin"] > 0.5
    assert max(document["upper"]) < 10.0
    proof = json.loads((tmp_path / "out" / "proof.json").read_text())
    assert proof["status"] == "PROVED"
    # Errors of 0.01 m and 0.02 m/s in a level: kp x^2 / 2 with kp 4 and 9, ve^2 / 2.
    levels = [channel["bound"] for channel in proof["channels"]]
    assert levels == pytest.approx([2e-4, 2e-4], rel=1e-9)
    assert any("operating box" in one for one in proof["conditions"])
    shown = " ".join(result.stdout.split())
    assert "if no torque reaches its limit" in shown
    assert "any start" not in shown


@pytest.mark.extended
def test_a_box_without_speeds_says_that_torques_are_not_bounded(tmp_path: Path) -> None:
    result = run(tmp_path, BARE.format(field=""))
    assert result.exit_code == 0, result.output
    assert "not bounded" in result.stdout
    refused = run(tmp_path, BARE.format(field="acceleration = 0.2"))
    assert refused.exit_code == 2
    assert "speeds" in refused.output


@pytest.mark.by_default(1)
@pytest.mark.parametrize(("limit", "end", "words"), [(3.0, -1.55, "limit"), (40.0, 0.1, "margin")])
def test_a_box_that_is_refuted_ends_with_one(
    tmp_path: Path, limit: float, end: float, words: str
) -> None:
    result = run(tmp_path, BOX.format(limit=limit, end=end), "--json")
    assert result.exit_code == 1
    answer = json.loads(result.stdout)
    # Without a proved box the limits may be reached.
    assert answer["status"] == "UNDECIDED"
    assert not answer["proved"]
    assert answer["operating"]["status"] == "REFUTED"
    assert words in answer["operating"]["reason"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("turret = [-0.05, 0.05]", ""), "turret"),
        (("turret = [-0.05, 0.05]", "crane = [-0.05, 0.05]"), "crane"),
        (("turret = [-0.05, 0.05]", "turret = 3"), "turret"),
        (("speeds = 0.3", "speeds = -0.3"), "speeds"),
        (("speeds = 0.3", "haste = 0.3"), "haste"),
        (("speeds = 0.3", "budget = 0"), "budget"),
    ],
)
def test_bad_input_names_the_file_and_the_table(
    tmp_path: Path, change: tuple[str, str], words: str
) -> None:
    result = run(tmp_path, BOX.format(limit=40.0, end=-1.55).replace(*change))
    assert result.exit_code == 2
    assert words in result.output
    assert "task.toml" in result.output.replace("\n", "")
    assert "operating" in result.output
