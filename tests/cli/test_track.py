"""`concur track`: output, files, and exit status."""

import html
import json
import re
from importlib.resources import files
from pathlib import Path

import h5py
import numpy as np
import pytest
from typer.testing import CliRunner

from concur._version import __version__
from concur.cli import main
from concur.errors import DescriptionError
from concur.io import load

EXAMPLES = Path(__file__).parents[2] / "examples"
SHORT = {"duration = 20.0": "duration = 0.1", "evaluate_after = 12.0": "evaluate_after = 0.08"}


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
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("concur.show.save_figures", lambda *_: {})
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
    found = {f["quantity"]: f for f in answer["rows"]}
    for output in ("base", "hand"):
        assert 0.1 < found[f"error of {output}, initial"]["value"] < 0.3
        assert found[f"error of {output}, final"]["value"] < 1e-6
        assert found[f"error of {output}, largest after 12 s"]["value"] < 1e-6
    assert found["deviation from the ideal error dynamics, largest coordinate"]["value"] < 1e-6
    assert found["constraint residual"]["value"] < 1e-9
    assert found["energy balance"]["value"] < 1e-6
    assert found["smallest margin of the decoupling matrix"]["value"] > 0.1
    for control in ("left_wheel", "right_wheel", "turret", "upper_arm", "forearm"):
        assert found[f"peak torque of {control}"]["unit"] == "N m"
    assert found["time taken in all"]["value"] > found["time taken by the simulation"]["value"] > 0


def test_shipped_task_leaves_run_and_report(shipped):
    folder, result = shipped
    files = {Path(name).name for name in json.loads(result.stdout)["files"]}
    assert files == {path.name for path in folder.iterdir()}
    assert {"run.h5", "report.html"} <= files
    with h5py.File(folder / "run.h5") as file:
        assert file["t"].shape == (20001,)
        assert file["q"].shape == (20001, 8)
        assert_described(file)
        # The recorded wheels roll: the axle has no sideways velocity.
        q, v = file["q"][:], file["v"][:]
        moved = np.diff(q[:, :2], axis=0)
        heading = (q[1:, 2] + q[:-1, 2]) / 2
        sideways = -np.sin(heading) * moved[:, 0] + np.cos(heading) * moved[:, 1]
        assert np.abs(sideways).max() < 1e-9
        assert np.abs(v[:, 0] - 0.05 * (v[:, 3] + v[:, 4])).max() < 1e-12
    assert "The run meets its task" in (folder / "report.html").read_text()


def assert_described(file):
    """The stored run describes its columns and its task."""
    named = {"q": 8, "v": 8, "s": 5, "u": 5, "error": 5, "velocity_error": 5, "pose": 5}
    for name, width in named.items():
        assert file[name].shape[1] == width
        assert len(file[name].attrs["columns"]) == len(file[name].attrs["units"]) == width
    columns = {n: dict(zip(d.attrs["columns"], d.attrs["units"], strict=True))
               for n, d in file.items() if "columns" in d.attrs}  # fmt: skip
    assert columns["q"]["chassis.x"] == "m"
    assert columns["q"]["chassis.heading"] == columns["q"]["turret.angle"] == "rad"
    assert columns["v"]["chassis[vx]"] == "m/s"
    assert columns["v"]["chassis[omega]"] == columns["s"]["left_wheel"] == "rad/s"
    assert set(columns["u"].values()) == {"N m"}
    assert file["u"].attrs["unit"] == "N m"
    assert columns["error"] == columns["pose"]
    assert list(columns["error"]) == ["base.x", "base.y", "hand.x", "hand.y", "hand.z"]
    assert set(columns["velocity_error"].values()) == {"m/s"}
    assert list(file.attrs["outputs"]) == ["base", "hand"]
    assert list(file.attrs["output_relative_to"]) == ["", ""]
    told = {name: file.attrs[name] for name in ("task", "task_file", "plant", "plant_file")}
    assert told == {
        "task": "slalom with circling hand",
        "task_file": "rover_arm.toml",
        "plant": "rover_arm",
        "plant_file": "",
    }
    assert file.attrs["dt"] == 0.001
    assert file.attrs["concur_version"] == __version__
    tolerances = json.loads(file.attrs["tolerances"])
    assert (tolerances["evaluate_after"], tolerances["final_error"]) == (12.0, 1e-6)


@pytest.fixture(scope="module")
def disturbed(tmp_path_factory):
    """The task with a held torque and a forearm that is heavier than in the servo's model."""
    folder = tmp_path_factory.mktemp("disturbed")
    source = (files("concur.robots") / "rover_arm.toml").read_text()
    (folder / "heavy.toml").write_text(source.replace("mass = 1.0,", "mass = 1.25,"))
    more = {"duration = 20.0\ndt = 0.001\nmethod = \"rk4\"":
            'duration = 0.4\ndt = 0.002\nmethod = "rkmk4"\ncontrol_period = 0.01\n'
            '[plant]\nfile = "heavy.toml"',
            "evaluate_after = 12.0": "evaluate_after = 0.3"}  # fmt: skip
    return folder, run("track", altered(folder, more), "--out", folder / "out")


@pytest.mark.extended
@pytest.mark.usefixtures("undrawn")
def test_hold_and_plant_leave_their_trace_in_json(disturbed, tmp_path):
    folder, _ = disturbed
    result = run("track", folder / "task.toml", "--out", tmp_path / "out", "--json")
    answer = json.loads(result.stdout)
    settings = answer["settings"]
    assert (settings["method"], settings["dt"], settings["control_period"]) == (
        "rkmk4",
        0.002,
        0.01,
    )
    assert settings["plant_file"] == "heavy.toml"
    assert settings["gains"]["hand"] == {"stiffness": [9.0] * 3, "damping": [6.0] * 3}
    deviation = next(f for f in answer["rows"] if f["quantity"].startswith("deviation"))
    assert deviation["unit"] == "m"
    assert deviation["holds"] is None
    assert "not judged" in deviation["place"]


def test_peaks_keep_their_sign(shipped):
    folder, result = shipped
    found = {f["quantity"]: f["value"] for f in json.loads(result.stdout)["rows"]}
    with h5py.File(folder / "run.h5") as file:
        for k, name in enumerate(file["u"].attrs["columns"]):
            column = file["u"][:, k]
            largest = max(column.max(), column.min(), key=abs)
            assert found[f"peak torque of {name}"] == pytest.approx(largest, rel=1e-3)
            assert abs(found[f"peak torque of {name}"]) >= abs(largest)


@pytest.mark.usefixtures("undrawn")
def test_outcome_is_first_and_the_audit_one_line(tmp_path):
    task = altered(tmp_path, SHORT)
    short, full = (
        " ".join(run("track", task, "--out", tmp_path / "out", *more).output.split())
        for more in ([], ["--audit"])
    )
    places = [short.index(part) for part in (
        "failed (limits missed: error of base",
        "error of base, initial",
        "smallest margin",
        "deviation from the ideal",
        "13 assumptions hold; `--audit` lists them",
        "chaplygin reduction",
        "results in",
    )]  # fmt: skip
    assert places == sorted(places)
    assert "CON1" not in short
    assert "chassis[vx]" in short
    assert "0.215 m" in short
    assert "13 assumptions hold" in full
    assert "CON1" in full
    checked = run("check", "rover_arm").output
    assert checked.startswith("rover_arm: passed")
    assert "assumptions: 7 hold, 5 not checked; `--audit` lists them" in checked
    assert "CON1" not in checked


@pytest.mark.usefixtures("undrawn")
def test_missed_tolerance_is_a_no(tmp_path):
    result = run("track", altered(tmp_path, SHORT), "--out", tmp_path / "out", "--json")
    assert result.exit_code == 1
    answer = json.loads(result.stdout)
    missed = [f["quantity"] for f in answer["rows"] if f["holds"] is False]
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


@pytest.mark.extended
@pytest.mark.usefixtures("undrawn")
def test_run_that_stops_early_keeps_what_it_has(tmp_path):
    # The exact motion exists, but from this start the hand leaves the reach of the arm.
    start = {"right_wheel = 2.0": "right_wheel = 2.0\nforearm = 15.0"}
    result = run("track", altered(tmp_path, start), "--out", tmp_path / "out", "--json")
    assert result.exit_code == 1
    answer = json.loads(result.stdout)
    assert "margin above 0.001" in answer["stopped"]
    assert "run.h5 and report.html contain the run up to that time" in answer["stopped"]
    assert "attribute" not in answer["stopped"]
    assert "servo.feasibility" not in answer["stopped"]
    with h5py.File(tmp_path / "out" / "run.h5") as file:
        assert np.isfinite(file["q"][:]).all()
        assert file["t"].shape[0] < 20001


def test_singular_start_is_a_no_before_anything_moves(tmp_path):
    stretched = {"forearm = -1.6": "forearm = 0.0"}
    result = run("track", altered(tmp_path, stretched), "--out", tmp_path / "out")
    assert result.exit_code == 1
    assert "not simulated" in result.output
    assert "`hand`" in result.output
    assert "simulating" not in result.output
    assert not (tmp_path / "out").exists()


def test_axle_output_is_bad_input_with_the_reason(tmp_path):
    axle = {"point = [0.25, 0.0, 0.0]": "point = [0.0, 0.3, 0.0]"}
    result = run("track", altered(tmp_path, axle))
    assert result.exit_code == 2
    assert "axle of wheels" in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"duration = 20.0": "duratoin = 20.0"}, ["task.toml", "[simulation]", "duratoin"]),
        ({'robot = "rover_arm"': 'robot = "rover_rm"'}, ["rover_rm", "rover_arm"]),
        ({"left_wheel = 2.0": "left_whel = 2.0"}, ["left_whel"]),
        ({"dt = 0.001": "dt = 0.0007"}, ["[simulation]", "duration", "whole number of steps"]),
        (
            {"dt = 0.001": "dt = 0.001\ncontrol_period = 0.0015"},
            ["task.toml", "[simulation]", "`control_period`"],
        ),
        ({"left_wheel = 2.0": "chassis = 2.0"}, ["task.toml", "[initial.s]", "the wheels"]),
        ({"evaluate_after = 12.0": "evaluate_after = 21.0"}, ["[tolerances]", "evaluate_after"]),
    ],
    ids=["field", "robot", "velocity", "step", "hold", "base", "settling"],
)
def test_bad_task_is_one_line_and_status_two(tmp_path, change, words):
    result = run("track", altered(tmp_path, change), "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert not result.stdout
    assert result.stderr.count("\n") == 1
    for word in words:
        assert word in result.stderr
    assert not (tmp_path / "out").exists()


def test_unknown_animation_is_refused_before_the_work(tmp_path):
    result = run("track", altered(tmp_path, SHORT), "--out", tmp_path / "out", "--animation", "avi")
    assert result.exit_code == 2
    assert "gif" in result.stderr
    assert not (tmp_path / "out").exists()


def test_mp4_without_ffmpeg_is_refused_before_the_work(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    out = tmp_path / "out"
    result = run("track", altered(tmp_path, SHORT), "--out", out, "--animation", "mp4")
    assert result.exit_code == 2
    assert result.stderr.startswith("concur: option `--animation`: expected the program ffmpeg")
    assert not out.exists()


def test_files_of_the_wrong_kind_are_told_apart(tmp_path):
    with pytest.raises(DescriptionError, match=r"got a task file.*Use `concur track"):
        load(EXAMPLES / "rover_arm.toml")
    robot = run("track", EXAMPLES / "my_robot.toml")
    assert robot.exit_code == 2
    assert "got a robot file" in robot.stderr
    assert "Use `concur check" in robot.stderr


def test_version():
    assert run("--version").output == f"concur {__version__}\n"


def test_check_suggests_a_shipped_robot():
    result = run("check", "rover_amr")
    assert result.exit_code == 2
    assert "Did you mean `rover_arm`?" in result.stderr
    assert "orbital_crawler" in result.stderr


def test_check_suggests_a_file_that_is_there(tmp_path, monkeypatch):
    (tmp_path / "sat.toml").write_text("")
    (tmp_path / "tl.toml").write_text("")
    monkeypatch.chdir(tmp_path)
    for name in ("satt", "sat", "satt.toml"):
        assert "Did you mean `sat.toml`?" in run("check", name).stderr, name
    assert "Did you mean" not in run("check", "nofile.toml").stderr


@pytest.mark.parametrize("name", ["a" * 300, "a" * 5000])
def test_check_knows_no_robot_of_a_name_that_no_file_can_have(name):
    result = run("check", name)
    assert result.exit_code == 2
    assert "neither a file nor a robot of this name" in result.stderr


def test_check_names_the_file_of_a_robot_that_cannot_be_reduced(tmp_path):
    source = (files("concur.robots") / "free_flyer.toml").read_text()
    assert source.count('name = "free_flyer"') == 1
    falling = source.replace('name = "free_flyer"', 'name = "f"\ngravity = [0, 0, -9.81]')
    (tmp_path / "f.toml").write_text(falling)
    result = run("check", tmp_path / "f.toml")
    assert result.exit_code == 2
    assert result.stderr.startswith(f"concur: {tmp_path / 'f.toml'}, field `gravity`: ")


def test_check_accepts_the_robot_to_start_from():
    result = run("check", EXAMPLES / "my_robot.toml")
    assert result.exit_code == 0, result.output
    for words in ("Revolute (0, 1, 0)", "-2.6 to 2.6 rad", "radius [m]", "[kg m^2]", "mass [kg]"):
        assert words in result.output
    assert "warning" not in result.output


@pytest.mark.extended
@pytest.mark.usefixtures("undrawn")
def test_floating_robot_to_start_from_is_sound_and_goes_with_a_task(tmp_path):
    source = EXAMPLES / "my_floater.toml"
    result = run("check", source)
    assert result.exit_code == 0, result.output
    assert "warning" not in result.output
    # The lines for a task that its comments contain.
    lines = re.findall(r"`(\w+ = [^`]+)`", source.read_text().replace("\n#", ""))
    assert [line.split(" = ")[0] for line in lines] == ["robot", "momentum"]
    (tmp_path / "my_floater.toml").write_text(source.read_text())
    (tmp_path / "task.toml").write_text(
        "\n".join(['name = "to start from"', *lines]) + """
        [[outputs]]
        name = "hand"
        body = "tool"
        group = "R3"
        stiffness = 9.0
        damping = 6.0
        [reference.hand]
        kind = "hold"
        point = [0.9, 0.1, 0.5]
        [initial.q]
        upper_arm = -0.9
        forearm = 1.2
        [simulation]
        duration = 6.0
        dt = 0.005
        [tolerances]
        final_error = 1e-5
        """
    )  # fmt: skip
    result = run("track", tmp_path / "task.toml", "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output


def test_suspicious_inertia_is_a_warning_and_no_refusal(tmp_path):
    source = (EXAMPLES / "my_robot.toml").read_text()
    old, new = "moments = [0.03, 0.03, 0.004]", "moments = [3e4, 3e4, 4e3]"
    assert old in source
    (tmp_path / "robot.toml").write_text(source.replace(old, new))
    result = run("check", tmp_path / "robot.toml")
    assert result.exit_code == 0
    words = " ".join(result.output.split())
    assert "warning: body `mast`: radius of gyration 122 m on a robot of 0.4 m" in words
    assert "kg mm^2 instead of kg m^2?" in words
    answer = json.loads(run("check", tmp_path / "robot.toml", "--json").stdout)
    assert len(answer["warnings"]) == 1


@pytest.mark.usefixtures("undrawn")
def test_suspicious_inertia_is_shown_by_track_too(tmp_path):
    source = (files("concur.robots") / "rover_arm.toml").read_text()
    (tmp_path / "far.toml").write_text(source.replace("[0.9, 1.1, 1.6]", "[900.0, 1100.0, 1600.0]"))
    task = altered(tmp_path, SHORT | {'robot = "rover_arm"': 'robot = "far.toml"'})
    result = run("track", task, "--out", tmp_path / "out", "--json")
    (warning,) = json.loads(result.stdout)["warnings"]
    assert warning.startswith("body `chassis`: radius of gyration 7.3 m")


@pytest.mark.parametrize("command", ["track", "check"])
def test_help_has_an_example_and_the_exit_status(command):
    result = run(command, "--help")
    assert result.exit_code == 0
    assert f"Example: concur {command}" in result.output
    assert "Exit status: 0" in result.output


@pytest.mark.usefixtures("undrawn")
def test_degrees_and_millimetres_are_warned_of_everywhere(tmp_path):
    """The warning is in the terminal, in JSON and on the page; the run continues."""
    text = (files("concur.robots") / "planar_floater.toml").read_text()
    name = 'name = "upper_arm"'
    assert text.count(name) == 1
    (tmp_path / "robot.toml").write_text(text.replace(name, f"{name}\nlimits = [-180, 180]"))
    task = tmp_path / "task.toml"
    task.write_text("""
name = "degrees"
robot = "robot.toml"
[[outputs]]
name = "hand"
body = "forearm"
group = "R2"
point = [400.0, 0.0, 0.0]
stiffness = 4.0
damping = 4.0
[reference.hand]
kind = "hold"
point = [300.0, 200.0]
[initial.q]
upper_arm = -46.0
forearm = 72.0
[simulation]
duration = 0.02
dt = 0.01
""")
    result = run("track", task, "--out", tmp_path / "out", "--force", "--json")
    warned = json.loads(result.stdout)["warnings"]
    parts = ("limits -180 to 180 rad", "start of `upper_arm`", "start of `forearm`", "point 400 m")
    for part in parts:
        assert sum(part in text for text in warned) == 1, part
    page = html.unescape((tmp_path / "out" / "report.html").read_text("utf-8"))
    assert all(text in page for text in warned)
    checked = json.loads(run("check", tmp_path / "robot.toml", "--json").stdout)
    assert [parts[0] in text for text in checked["warnings"]] == [True]


@pytest.mark.usefixtures("undrawn")
def test_joint_limits_of_the_robot_decide(tmp_path):
    """The elbow of the shipped task exceeds a limit: audit, JSON and exit status show it."""
    source = (files("concur.robots") / "rover_arm.toml").read_text()
    name = 'name = "forearm"'
    assert source.count(name) == 1
    task = altered(tmp_path, {**SHORT, 'robot = "rover_arm"': 'robot = "robot.toml"',
                              "final_error = 1e-6": "final_error = 1.0"})  # fmt: skip
    statuses = []
    for lower in (-2.6, -1.61):
        (tmp_path / "robot.toml").write_text(
            source.replace(name, f"{name}\nlimits = [{lower}, 0.0]")
        )
        result = run("track", task, "--out", tmp_path / "out", "--force", "--json")
        answer = json.loads(result.stdout)
        (row,) = [f for f in answer["rows"] if f["quantity"] == "smallest angle of forearm"]
        assert (row["limit"], row["at_least"], row["unit"]) == (lower, True, "rad")
        (lim,) = [r for r in answer["audit"] if r["id"] == "LIM"]
        statuses.append((result.exit_code, answer["passed"], row["holds"], lim["status"]))
    assert statuses == [(0, True, True, "holds"), (1, False, False, "fails")]
    without = run("track", task, "--out", tmp_path / "out", "--json")
    assert without.exit_code == 1
    assert "LIM: smallest angle of forearm" in json.loads(without.stdout)["stopped"]
