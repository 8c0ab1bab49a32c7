"""The shipped tasks of robots that float, from file to report."""

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


def test_shipped_task_passes_with_its_numbers(tracked):
    name, _, answer = tracked
    assert answer["passed"]
    assert {r["status"] for r in answer["audit"] if not r["id"].startswith("NHR")} == {"holds"}
    found = {f["label"]: f for f in answer["findings"]}
    least = {"free_floater": {"hand": 0.5}, "servicer": {"hand": 0.2, "antenna": 0.03}}[name]
    for output, start in least.items():
        assert found[f"error of {output}, initial"]["value"] > start
        assert found[f"error of {output}, final"]["value"] < 1e-6
    deviation = found["deviation from the ideal error dynamics"]
    assert deviation["kept"] is True, deviation["note"]
    assert deviation["value"] < 1e-8
    assert found["relative drift of the momentum"]["value"] < 1e-8
    assert found["smallest margin of the decoupling matrix"]["value"] > 0.3
    if name == "servicer":
        assert found["smallest scale of the demand within torque limits"]["value"] == 1.0
        peaks = [abs(f["value"]) for f in answer["findings"] if f["label"].startswith("peak")]
        assert max(peaks) == pytest.approx(12.8, abs=0.05)


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


def test_report_speaks_of_momentum_and_not_of_wheels(tracked):
    _, folder, _ = tracked
    page = (folder / "report.html").read_text("utf-8")
    assert "The run meets its task" in page
    assert "relative drift of the momentum" in page
    for words in (">NHR", ">Wheel<", "Not checked"):
        assert words not in page, words


def test_terminal_leaves_out_assumptions_about_wheels(tmp_path):
    # Too far for the arm: nothing is simulated, but the assumptions are shown.
    text = (EXAMPLES / "free_floater.toml").read_text().replace("[1.2, 0.3,", "[3.2, 0.3,")
    (tmp_path / "far.toml").write_text(text)
    result = CliRunner().invoke(main, ["track", str(tmp_path / "far.toml")])
    assert result.exit_code == 1
    assert "not simulated" in result.output
    assert "CON9" in result.output
    assert "NHR" not in result.output
    rover = CliRunner().invoke(main, ["check", "rover_arm"])
    assert "NHR3" in rover.output
