"""Symmetries of a robot from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import concur as cc
from concur.cli import main
from concur.robot import Body, Inertia, Mimic, Motor, joints, suspicious

EXAMPLE = Path(__file__).parents[2] / "examples" / "my_robot.toml"


def check(*arguments: object) -> str:
    result = CliRunner().invoke(main, ["check", *map(str, arguments)], env={"COLUMNS": "200"})
    assert result.exit_code in (0, 1), result.output
    return result.stdout


def cells(text: str, joint: str) -> list[str]:
    """The row of a joint in the table of symmetries."""
    table = text[text.index("Symmetries, joint by joint") :]
    (row,) = [line for line in table.splitlines() if line.startswith(f"│ {joint} ")]
    return [cell.strip() for cell in row.strip("│").split("│")]


def test_symmetries_are_a_table() -> None:
    text = check("wheel_satellite")
    name, group, kept, reducible, evidence = cells(text, "satellite")
    assert (name, group, kept, reducible) == ("satellite", "6 SE(3)", "6 SE(3)", "yes")
    assert evidence.startswith("conserved: it is unactuated")
    assert cells(text, "wheel_x")[3] == "no"
    assert "Momenta here are" not in text


def test_symmetries_are_in_the_json() -> None:
    answer = {row["joint"]: row for row in json.loads(check("crane_car", "--json"))["symmetry"]}
    assert len(answer) == 6
    column = answer["column"]
    assert (column["group"], column["left"], column["right"]) == ("SO(2)", "SO(2)", None)
    assert column["driven"]
    assert not column["reducible"]
    assert column["why"].startswith("driven: ")
    assert column["conserved"] == []
    base = answer["chassis"]
    assert (base["kept"], base["reducible"], base["driven"]) == ("SE(2)", True, False)


@pytest.mark.extended
def test_stages_make_an_undriven_joint_sound(tmp_path: Path) -> None:
    """An unactuated wheel conserves its momentum: without it, all conditions hold."""
    path = tmp_path / "idle.toml"
    path.write_text(WHEEL)
    run = CliRunner()
    plain = run.invoke(main, ["check", str(path), "--json"])
    assert plain.exit_code == 1
    rows = {row["id"]: row for row in json.loads(plain.stdout)["audit"]}
    assert rows["CON3"]["status"] == "fails"
    assert "--stages auto" in rows["CON3"]["why"]
    for stages in ("auto", "idle", " idle "):
        staged = run.invoke(main, ["check", str(path), "--json", "--stages", stages])
        assert staged.exit_code == 0, staged.output
        answer = json.loads(staged.stdout)
        assert (answer["kind"], answer["shape"]) == ("staged", ["arm"])
    wrong = run.invoke(main, ["check", str(path), "--stages", "idel"])
    assert wrong.exit_code == 2
    assert "idel" in wrong.stderr


WHEEL = """
name = "idle"
actuated = ["arm"]

[[bodies]]
name = "hull"
joint = { type = "Free" }
inertia = { mass = 20.0, moments = [2.0, 2.5, 3.0] }

[[bodies]]
name = "idle"
parent = "hull"
joint = { type = "Revolute", axis = [0, 0, 1] }
inertia = { mass = 1.0, moments = [0.02, 0.02, 0.02] }

[[bodies]]
name = "arm"
parent = "hull"
joint = { type = "Revolute", axis = [0, 1, 0] }
placement = { translation = [0.5, 0, 0] }
inertia = { mass = 1.0, com = [0.3, 0, 0] }
"""


@pytest.mark.parametrize(
    ("limits", "told"),
    [
        ((2.5, 2.5), 0),
        ((2.5, 2.5 + 4e-9), 0),  # rounding is 1e-9 of the limit
        ((2.5, 2.5 + 6e-9), 2),
        ((2.5, np.inf), 2),
    ],
)
def test_limits_of_joints_that_drives_share_are_told_if_they_may_be_exceeded(limits, told):
    """A coupled wrist: each joint has 2 (a + b) or 2 (a - b), and 10 N m."""
    solid = Inertia(1.0, moments=(0.01, 0.01, 0.01))
    bodies = [Body("base", joints.Free(), inertia=solid)]
    for name, axis in (("tilt", (0, 1, 0)), ("roll", (1, 0, 0))):
        joint = joints.Revolute(axis)
        bodies.append(Body(name, joint, bodies[-1].name, inertia=solid, torque_limit=10.0))
    motors = [
        Motor("a", {"tilt": 2.0, "roll": 2.0}, torque=limits[0]),
        Motor("b", {"tilt": 2.0, "roll": -2.0}, torque=limits[1]),
    ]
    robot = cc.Mechanism("wrist", bodies, motors=motors)
    found = [text for text in suspicious(robot) if "is not checked, since `a`, `b`" in text]
    assert len(found) == told


@pytest.mark.parametrize(
    ("multiplier", "offset", "told"),
    [(-2.0, 3.0, 0), (-2.0, 3.01, 1), (2.0, -3.0, 0), (0.0, 1.1, 1)],
)
def test_followers_that_are_never_within_their_limits(
    multiplier: float, offset: float, told: int
) -> None:
    heavy = Inertia(1.0, moments=(1, 1, 1))
    hinges = [
        Body(name, joints.Revolute((0, 0, 1)), "base", inertia=heavy, limits=(-1.0, 1.0))
        for name in "ab"
    ]
    base = Body("base", joints.Fixed())
    robot = cc.Mechanism("r", [base, *hinges], mimics=[Mimic("b", "a", multiplier, offset)])
    found = [text for text in suspicious(robot) if "never within its limits" in text]
    assert len(found) == told


@pytest.mark.extended
def test_check_names_all_freedoms_of_a_crawler() -> None:
    # Names in brackets are no markup.
    text = check(EXAMPLE.parent / "hull_crawler.toml")
    assert text.startswith("hull_crawler: passed")
    assert "shape velocities: left_wheel, right_wheel, ball[wx], ball[wy], ball[wz], arm" in text
