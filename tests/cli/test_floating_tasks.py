"""The shipped tasks of robots that float, from file to report."""

import html
import json
from pathlib import Path

import h5py
import numpy as np
import pytest
from typer.testing import CliRunner

from concur.cli import main

EXAMPLES = Path(__file__).parents[2] / "examples"
TASKS = ("free_floater", "servicer")


@pytest.fixture(scope="module", params=TASKS)
def tracked(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    task = EXAMPLES / f"{request.param}.toml"
    result = CliRunner().invoke(main, ["track", str(task), "--out", str(folder), "--json"])
    assert result.exit_code == 0, result.output
    return request.param, folder, json.loads(result.stdout)


@pytest.mark.extended
def test_shipped_task_passes_with_its_numbers(tracked):
    name, _, answer = tracked
    assert answer["passed"]
    assert {r["status"] for r in answer["audit"] if not r["id"].startswith("NHR")} == {"holds"}
    found = {f["quantity"]: f for f in answer["rows"]}
    least = {
        "free_floater": {"hand, position": 0.1, "hand, rotation": 0.3},
        "servicer": {"hand": 0.2, "antenna": 0.03},
    }[name]
    for output, start in least.items():
        assert found[f"error of {output}, initial"]["value"] > start
        assert found[f"error of {output}, final"]["value"] < 1e-6
    deviations = [f for label, f in found.items() if label.startswith("deviation")]
    assert deviations
    for deviation in deviations:
        assert deviation["holds"] is True, deviation["place"]
        assert deviation["value"] < 1e-8
    assert found["relative drift of the momentum"]["value"] < 1e-8
    assert found["smallest margin of the decoupling matrix"]["value"] > 0.3
    if name == "servicer":
        assert found["smallest share of the commanded acceleration within limits"]["value"] == 1.0
        peaks = [abs(f["value"]) for f in answer["rows"] if f["quantity"].startswith("peak")]
        assert max(peaks) == pytest.approx(12.8, abs=0.05)


@pytest.mark.extended
def test_record_shows_what_the_comments_of_the_task_say(tracked):
    name, folder, answer = tracked
    with h5py.File(folder / "run.h5") as file:
        t, v, q = (file[key][:] for key in ("t", "v", "q"))
        pose, reference, momentum = (file[key][:] for key in ("pose", "reference", "momentum"))
    apart = np.linalg.norm(pose[0, -3:] - reference[0, -3:])
    turned = np.trapezoid(np.linalg.norm(v[:, 3:6], axis=1), t)
    if name == "free_floater":
        assert turned == pytest.approx(9.0, abs=0.05)
        apart = np.linalg.norm(pose[0, :3] - reference[0, :3])
        angle = 2 * np.arccos(abs(pose[0, 3:] @ reference[0, 3:]))
        assert (apart, angle) == (pytest.approx(0.38, abs=5e-3), pytest.approx(0.58, abs=5e-3))
    else:
        assert apart == pytest.approx(0.31, abs=5e-3)
        assert 2 * np.linalg.norm(q[0, 3:6]) == pytest.approx(0.034, abs=5e-4)
        assert np.linalg.norm(q[-1, 3:6]) < 1e-6
    stated = np.array(answer["settings"]["momentum"])
    np.testing.assert_allclose(momentum, stated + 0 * momentum, atol=1e-7)


def altered(folder, *changes, more=""):
    """The shipped task of the free floater with some lines changed; each change must apply."""
    text = (EXAMPLES / "free_floater.toml").read_text()
    short = ("duration = 24.0", "duration = 1.0"), ("evaluate_after = 12.0", "evaluate_after = 0.5")
    for old, new in (*short, *changes):
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    path = folder / "task.toml"
    path.write_text(text + more)
    return path


@pytest.mark.extended
@pytest.mark.usefixtures("undrawn")
def test_wrong_momentum_is_told_with_what_it_does_and_the_cure(tmp_path):
    wrong = "\n[plant]\nmomentum = [0.5, -0.3, 0.2, 2.3, 0.8, 0.8]\n"
    task = altered(tmp_path, more=wrong)
    result = CliRunner().invoke(main, ["track", str(task), "--out", str(tmp_path / "out")])
    page = html.unescape((tmp_path / "out" / "report.html").read_text("utf-8"))
    for shown in (" ".join(result.output.split()), " ".join(page.split())):
        assert "measured linear (0.5, -0.3, 0.2) kg m/s, angular (2.3, 0.8, 0.8)" in shown
        assert "hand.rx: velocity wrong by 0.02 rad/s" in shown
        assert "`use_measured_velocity = true` in [servo]" in shown
        assert "or correct the task's `momentum`" in shown


@pytest.mark.by_default(1)
@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("measured", [False, True])
def test_wrong_momentum_is_in_the_numbers_where_the_law_uses_it(tmp_path, measured):
    more = "\n[plant]\nmomentum = [1, 0, 0, 2, 0, 0]\n"
    more += f"[servo]\nuse_measured_velocity = {str(measured).lower()}"
    task = altered(tmp_path, more=more)
    arguments = ["track", str(task), "--out", str(tmp_path / "out"), "--json"]
    told = json.loads(CliRunner().invoke(main, arguments).stdout)["mismatch"]
    if measured:
        assert told is None
    else:
        np.testing.assert_allclose(told["assumed"], [0.5, -0.3, 0.2, 2.5, 0.8, 0.8], atol=1e-9)
        np.testing.assert_allclose(told["measured"], [1, 0, 0, 2, 0, 0], atol=1e-9)
        assert told["relative"] > 0.1
        assert len(told["offset"]) == len(told["coordinate_names"]) == 6
        assert np.abs(told["offset"]).max() > 1e-3
        assert "use_measured_velocity = true" in told["cure"]


@pytest.mark.extended
def test_right_momentum_needs_no_words(tracked):
    _, folder, answer = tracked
    assert answer["mismatch"] is None
    assert "differs from the one the servo assumes" not in (folder / "report.html").read_text(
        "utf-8"
    )


@pytest.mark.extended
@pytest.mark.usefixtures("undrawn")
def test_force_simulates_what_fails_and_still_says_no(tmp_path):
    # The target flies out of reach: the servo follows as far as it can.
    task = altered(
        tmp_path,
        ("end = [1.2, 0.3,", "end = [3.2, 0.3,"),
        ("final_error = 1e-6", "final_error = 10"),
        ("begin = 4.0\nduration = 10.0", "begin = 0.0\nduration = 1.0"),
    )
    arguments = ["track", str(task), "--out", str(tmp_path / "out")]
    refused = CliRunner().invoke(main, arguments)
    assert refused.exit_code == 1
    assert "To simulate anyway: --force" in refused.output
    assert not (tmp_path / "out").exists()
    forced = CliRunner().invoke(main, [*arguments, "--force"])
    words = " ".join(forced.output.split())
    assert forced.exit_code == 1
    assert "failed (simulated although assumptions fail: CON4" in words
    assert "lost at t =" in words
    assert "Assumptions that fail: CON4" in (tmp_path / "out" / "report.html").read_text("utf-8")
    answer = json.loads(CliRunner().invoke(main, [*arguments, "--force", "--json"]).stdout)
    assert (answer["passed"], answer["forced"]) == (False, True)
    assert answer["rows"]


def test_force_cannot_start_where_no_torque_exists(tmp_path):
    # An arm stretched out on a floating base: nothing moves the hand along it.
    task = tmp_path / "task.toml"
    task.write_text("""
    name = "stretched"
    robot = "planar_floater"
    [[outputs]]
    name = "hand"
    body = "forearm"
    group = "R2"
    point = [0.4, 0.0, 0.0]
    stiffness = 4.0
    damping = 4.0
    [reference.hand]
    kind = "hold"
    point = [1.3, 0.0]
    [simulation]
    duration = 0.1
    """)
    arguments = ["track", str(task), "--out", str(tmp_path / "out"), "--force"]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 1, result.output
    assert "cannot be simulated" in result.output
    assert not (tmp_path / "out").exists()
    answer = json.loads(CliRunner().invoke(main, [*arguments, "--json"]).stdout)
    assert (answer["passed"], answer["forced"], answer["rows"]) == (False, True, [])
    assert "an assumption fails" in answer["stopped"]
