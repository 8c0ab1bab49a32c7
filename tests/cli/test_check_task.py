"""`concur check` of tasks: start, reach and margins against numpy, and what makes it fail."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from concur.cli import main
from concur.io import check as check_of
from concur.io import load_task

EXAMPLES = Path(__file__).parents[2] / "examples"

ARM = """
name = "arm"
[[bodies]]
name = "floor"
joint = { type = "Fixed" }
[[bodies]]
name = "upper"
parent = "floor"
joint = { type = "Revolute", axis = [0, 0, 1] }
inertia = { mass = 1.0, moments = [0.1, 0.1, 0.1] }
[[bodies]]
name = "fore"
parent = "upper"
joint = { type = "Revolute", axis = [0, 0, 1] }
placement = { translation = [1.0, 0.0, 0.0] }
inertia = { mass = 1.0, moments = [0.1, 0.1, 0.1] }
"""
TASK = """
name = "line"
robot = "arm.toml"
[[outputs]]
name = "tip"
body = "fore"
group = "R2"
point = [0.7, 0.0, 0.0]
stiffness = 4.0
damping = 4.0
[reference.tip]
kind = "polynomial"
coefficients = [[{start}, 0.3], [{speed}, 0.0]]
[initial.q]
upper = 0.4
fore = {elbow}
[simulation]
duration = 2.0
"""


def check(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(main, ["check", *map(str, arguments)], env={"COLUMNS": "200"})
    return result.exit_code, result.stdout + result.stderr


def line(folder: Path, start: float = 1.0, speed: float = -0.1, elbow: float = 1.2) -> Path:
    (folder / "arm.toml").write_text(ARM)
    path = folder / "line.toml"
    path.write_text(TASK.format(start=start, speed=speed, elbow=elbow))
    return path


@pytest.mark.extended
def test_distances_and_margins_of_an_example() -> None:
    path = EXAMPLES / "rover_arm.toml"
    code, text = check(path, "--json")
    found = json.loads(text)
    assert code == 0
    assert (found["name"], found["robot"]) == ("slalom with circling hand", "rover_arm")
    task = load_task(path)
    base = (task.robot.pose(task.q0, "chassis") @ [0.25, 0.0, 0.0, 1.0])[:2]
    hand = (task.robot.pose(task.q0, "forearm") @ [0.0, 0.2, 0.0, 1.0])[:3]
    wanted = task.reference(0.0).pose
    own = check_of(path).start
    poses = [list(pose.values()) for pose in found["start"]["poses"].values()]
    for pose, distance, stays, place, goal in zip(
        poses, own.distances.items(), own.residuals.values(), (base, hand),
        (wanted[:2], wanted[2:]), strict=True,
    ):  # fmt: skip
        assert pose == pytest.approx(place)
        assert distance == ((distance[0][0], "m"), pytest.approx(np.linalg.norm(place - goal)))
        assert stays < 1e-9
    start = found["start"]
    assert start["within_reach"] is True
    assert start["lost"] == ""
    assert 0.0 < own.reach.margins.min() <= start["margin"] + 1e-12
    shown = " ".join(check(path)[1].split())
    assert "smallest margin on the reference" in shown
    assert "13 assumptions hold" in shown


def test_a_path_that_leaves_the_reach(tmp_path: Path) -> None:
    # The tip is at (1 + 0.5 t, 0.3): at 2 s 2.022 m away, of which the arm reaches 1.7 m.
    code, text = check(line(tmp_path, speed=0.5), "--json")
    found = json.loads(text)
    assert code == 1
    start = found["start"]
    assert start["within_reach"] is False
    (stays,) = [row for row in found["rows"] if row["quantity"] == "distance of tip that stays"]
    assert stays["value"] == pytest.approx(np.hypot(2.0, 0.3) - 1.7)
    assert (stays["place"], stays["holds"]) == ("t = 2 s", False)
    assert found["problems"][-1].startswith(
        "the reference is out of reach: output `tip` stays 0.322 m away at t = 2 s"
    )
    # The stretched arm is singular there, and its joints are named.
    (least,) = [row for row in found["rows"] if row["quantity"].startswith("smallest margin")]
    assert least["value"] < 1e-5
    assert "`upper`, `fore` align" in start["lost"]
    code, shown = check(line(tmp_path, speed=0.5))
    assert code == 1
    assert "the reference is out of reach: output `tip` stays 0.322 m away" in shown
    assert "nearly singular at t = " in shown


def test_a_path_that_stays_within_reach_by_little(tmp_path: Path) -> None:
    for past, code in ((-1e-3, 0), (1e-3, 1)):
        speed = (np.sqrt(1.7**2 - 0.3**2) + past - 1.0) / 2.0
        path = line(tmp_path, speed=speed)
        path.write_text(path.read_text() + "[servo]\ndamping_threshold = 0.1\n")
        found = json.loads(check(path, "--json")[1])
        assert found["start"]["within_reach"] is (code == 0)


def test_a_singular_start_is_named(tmp_path: Path) -> None:
    code, text = check(line(tmp_path, elbow=0.0), "--json")
    found = json.loads(text)
    assert code == 1
    assert any(p.startswith("the start is singular: nothing moves") for p in found["problems"])
    assert found["start"]["lost"].startswith("at the start, nothing moves output `tip`")


def test_stages_are_those_of_the_task(tmp_path: Path) -> None:
    code, text = check(line(tmp_path), "--stages", "auto")
    assert code == 2
    assert "Write `stages` in the task." in text


def test_a_robot_has_no_start() -> None:
    assert "start" not in json.loads(check("rover_arm", "--json")[1])


SPINNING = """
name = "hold"
robot = "free_flyer"
[[outputs]]
name = "hand"
body = "tool"
group = "SE3"
stiffness = 4.0
damping = 4.0
[reference.hand]
kind = "hold"
point = [0.95, 0.1, 0.05, 0.28, 0.0, 0.0, 0.96]
[initial]
start = "on reference"
spin_deg = [0.0, -12.0, 0.0]
[initial.near]
spacecraft = [-0.5, -0.15, -0.2, 0.0, 0.0, 0.0, 1.0]
turret = 0.5
upper_arm = -1.5
forearm = 2.1
wrist_roll = 0.2
wrist_pitch = -0.4
hand = 0.8
[simulation]
duration = 4.0
dt = 0.01
"""


@pytest.mark.extended
def test_margin_is_that_of_the_motion_that_momentum_determines(tmp_path: Path) -> None:
    path = tmp_path / "task.toml"
    path.write_text(SPINNING)
    task = load_task(path)
    found = check_of(task)
    (row,) = [row for row in found.rows if row.quantity == "smallest margin on the reference"]
    assert row.value == pytest.approx(task.simulate().margin.min(), rel=1e-3)
    # A hull that may stand anywhere has another one.
    assert found.start is not None
    assert abs(found.start.reach.margins.min() - row.value) > 0.1 * row.value


@pytest.mark.parametrize(("share", "told"), [(0.19, True), (0.21, False)])
def test_a_margin_that_falls_to_a_fifth_is_explained(
    share: float, told: bool, tmp_path: Path
) -> None:
    start = check_of(line(tmp_path)).start
    assert start is not None
    assert start.path.feasible
    margins = np.full(len(start.path.margins), start.margin)
    margins[3] = share * start.margin
    assert bool(replace(start, path=replace(start.path, margins=margins)).lost) is told
