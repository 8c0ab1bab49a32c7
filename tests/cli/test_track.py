"""The main job from the command line: what it prints, what it leaves behind, how it ends."""

import json
from importlib.resources import files
from pathlib import Path

import h5py
import numpy as np
import pytest
from typer.testing import CliRunner

from concur.cli import main

EXAMPLES = Path(__file__).parents[2] / "examples"
SHORT = {"duration = 20.0": "duration = 0.4", "settling_time = 12.0": "settling_time = 0.3"}


def run(*arguments):
    return CliRunner().invoke(main, [str(a) for a in arguments])


def altered(folder, changes):
    """The shipped task with some lines changed; each change must apply."""
    text = (EXAMPLES / "rover_arm.toml").read_text()
    for old, new in changes.items():
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    path = folder / "task.toml"
    path.write_text(text)
    return path


@pytest.fixture(scope="module")
def shipped(tmp_path_factory):
    folder = tmp_path_factory.mktemp("out")
    return folder, run("track", EXAMPLES / "rover_arm.toml", "--out", folder, "--json")


def test_shipped_task_passes_with_its_numbers(shipped):
    _, result = shipped
    assert result.exit_code == 0, result.output
    answer = json.loads(result.stdout)
    assert answer["passed"]
    assert {row["id"]: row["status"] for row in answer["audit"]} == {
        **{f"CON{i}": "holds" for i in range(1, 10)},
        **{f"NHR{i}": "holds" for i in range(1, 4)},
        "DYN": "holds",
    }
    found = {f["label"]: f for f in answer["findings"]}
    for output in ("base", "hand"):
        assert 0.1 < found[f"error of {output}, initial"]["value"] < 0.3
        assert found[f"error of {output}, final"]["value"] < 1e-6
        assert found[f"error of {output}, largest after 12 s"]["value"] < 1e-6
    assert found["deviation from the ideal error dynamics"]["value"] < 1e-6
    assert found["constraint residual"]["value"] < 1e-9
    assert found["energy balance"]["value"] < 1e-6
    assert found["smallest margin of the decoupling matrix"]["value"] > 0.1
    for control in ("left_wheel", "right_wheel", "turret", "upper_arm", "forearm"):
        assert found[f"peak of {control}"]["unit"] == "N m"
    assert found["time taken in all"]["value"] > found["time taken by the simulation"]["value"] > 0


def test_shipped_task_leaves_run_figures_and_report(shipped):
    folder, result = shipped
    files = {Path(name).name for name in json.loads(result.stdout)["files"]}
    assert files == {path.name for path in folder.iterdir()}
    assert {"run.h5", "report.html", "path.png", "errors.png", "torques.png"} <= files
    with h5py.File(folder / "run.h5") as file:
        assert file["t"].shape == (20001,)
        assert file["q"].shape == (20001, 8)
        assert file["u"].attrs["unit"] == "N, N m"
        assert list(file.attrs["outputs"]) == ["base", "hand"]
        # The wheels of the record roll: seen from the axle, no motion to the side.
        q, v = file["q"][:], file["v"][:]
        moved = np.diff(q[:, :2], axis=0)
        heading = (q[1:, 2] + q[:-1, 2]) / 2
        sideways = -np.sin(heading) * moved[:, 0] + np.cos(heading) * moved[:, 1]
        assert np.abs(sideways).max() < 1e-9
        assert np.abs(v[:, 0] - 0.05 * (v[:, 3] + v[:, 4])).max() < 1e-12
    assert "The run meets its task" in (folder / "report.html").read_text()


def test_tables_are_readable(tmp_path):
    result = run("track", altered(tmp_path, SHORT), "--out", tmp_path / "out")
    assert "chassis[vx]" in result.output
    assert "error of base, initial" in result.output
    assert "0.215 m" in result.output


def test_missed_tolerance_is_a_no(tmp_path):
    result = run("track", altered(tmp_path, SHORT), "--out", tmp_path / "out", "--json")
    assert result.exit_code == 1
    answer = json.loads(result.stdout)
    missed = [f["label"] for f in answer["findings"] if f["kept"] is False]
    assert missed == ["error of base, final", "error of hand, final"]
    assert (tmp_path / "out" / "report.html").is_file()


def test_unreachable_reference_is_a_no_before_anything_moves(tmp_path):
    far = {"center = [0.15, 0.75, 0.15]": "center = [0.15, 1.75, 0.15]"}
    result = run("track", altered(tmp_path, far), "--out", tmp_path / "out", "--json")
    assert result.exit_code == 1
    answer = json.loads(result.stdout)
    failed = {row["id"]: row["why"] for row in answer["audit"] if row["status"] == "fails"}
    assert "lost at t = 0 s" in failed["CON4"]
    assert "`hand`" in failed["CON4"]
    assert not (tmp_path / "out").exists()


def test_run_that_stops_early_keeps_what_it_has(tmp_path):
    # The exact motion exists, but this start throws the hand beyond the reach of the arm.
    start = {"right_wheel = 2.0": "right_wheel = 2.0\nforearm = 15.0"}
    result = run("track", altered(tmp_path, start), "--out", tmp_path / "out", "--json")
    assert result.exit_code == 1
    answer = json.loads(result.stdout)
    assert "margin above 0.001" in answer["stopped"]
    with h5py.File(tmp_path / "out" / "run.h5") as file:
        assert np.isfinite(file["q"][:]).all()
        assert file["t"].shape[0] < 20001


def test_singular_start_is_bad_input(tmp_path):
    stretched = {"forearm = -1.6": "forearm = 0.0"}
    result = run("track", altered(tmp_path, stretched), "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert "`hand`" in result.stderr


def test_axle_output_is_bad_input_with_the_reason(tmp_path):
    axle = {"point = [0.25, 0.0, 0.0]": "point = [0.0, 0.3, 0.0]"}
    result = run("track", altered(tmp_path, axle))
    assert result.exit_code == 2
    assert "wheel axle" in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"duration = 20.0": "duratoin = 20.0"}, ["task.toml", "[simulation]", "duratoin"]),
        ({'robot = "rover_arm"': 'robot = "rover_rm"'}, ["rover_rm", "rover_arm"]),
        ({"left_wheel = 2.0": "left_whel = 2.0"}, ["left_whel"]),
        ({"dt = 0.001": "dt = 0.0007"}, ["duration", "whole number of steps"]),
    ],
    ids=["field", "robot", "velocity", "step"],
)
def test_bad_task_is_one_line_and_status_two(tmp_path, change, words):
    result = run("track", altered(tmp_path, change), "--out", tmp_path / "out")
    assert result.exit_code == 2
    line = result.stderr.strip().splitlines()[-1]
    for word in words:
        assert word in line


def test_missing_file_is_bad_input(tmp_path):
    result = run("track", tmp_path / "nothing.toml")
    assert result.exit_code == 2
    assert "nothing.toml" in result.stderr


def test_gif_can_be_asked_for(tmp_path):
    task = altered(tmp_path, SHORT)
    result = run("track", task, "--out", tmp_path / "out", "--animation", "gif", "--json")
    assert str(tmp_path / "out" / "animation.gif") in json.loads(result.stdout)["files"]


def test_unknown_animation_is_refused_before_the_work(tmp_path):
    result = run("track", altered(tmp_path, SHORT), "--out", tmp_path / "out", "--animation", "avi")
    assert result.exit_code == 2
    assert ".gif" in result.stderr
    assert not (tmp_path / "out").exists()


def test_check_shows_robot_reduction_and_assumptions():
    result = run("check", "rover_arm", "--json")
    assert result.exit_code == 0, result.output
    answer = json.loads(result.stdout)
    assert answer["kind"] == "chaplygin"
    assert len(answer["constraints"]) == 3
    assert answer["bodies"][0]["principal_moments"] == [0.9, 1.1, 1.6]
    assert "left_wheel: rolling" in run("check", "rover_arm").output


def test_check_names_a_body_that_cannot_be(tmp_path):
    source = (files("concur.robots") / "rover_arm.toml").read_text()
    changed = source.replace("0.9, 1.1, 1.6", "0.9, 1.1, 2.6")
    assert changed != source
    path = tmp_path / "robot.toml"
    path.write_text(changed)
    result = run("check", path)
    assert result.exit_code == 2
    for word in ("robot.toml", "chassis", "0.9, 1.1, 2.6"):
        assert word in result.stderr


@pytest.mark.parametrize("command", ["track", "check"])
def test_help_has_an_example_and_the_exit_status(command):
    result = run(command, "--help")
    assert result.exit_code == 0
    assert f"Example: concur {command}" in result.output
    assert "Exit status: 0" in result.output
