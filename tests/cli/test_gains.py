"""`concur gains`: numbers against closed forms, the share of torque, and the file."""

from __future__ import annotations

import json
import math
from functools import partial
from importlib import import_module

import numpy as np
import pytest
from typer.testing import CliRunner

import concur
from concur.cli import main

TASK = """
name = "reach"                 # a comment
robot = "planar_floater"
momentum = [0.0, 0.0, 0.0, 0.0, 0.0, 0.2]

[[outputs]]
name = "hand"
body = "forearm"
group = "R2"
point = [0.4, 0.0, 0.0]
stiffness = 4.0                # 1/s^2, of all coordinates
damping = 4.0

[reference.hand]
kind = "hold"
point = [0.65, 0.75]

[initial.q]
upper_arm = 0.6
forearm = 1.2

[servo]
torque_limits = 4.0            # N m

[simulation]
duration = 4.0
dt = 0.01
"""

certify = import_module("concur.certify")


def run(*arguments):
    return CliRunner().invoke(main, [str(a) for a in arguments])


@pytest.fixture(scope="module")
def task(tmp_path_factory):
    path = tmp_path_factory.mktemp("gains") / "task.toml"
    path.write_text(TASK)
    return path


@pytest.fixture(scope="module")
def found(task):
    result = run("gains", task, "--settling", 2, "--damping-ratio", 0.7, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_gains_settle_in_time_and_margins_are_those_of_the_loop(found):
    assert [design["method"] for design in found["designs"]] == ["place", "lqr", "certified"]
    for design in found["designs"]:
        kp, kd = design["stiffness"][0], design["damping"][0]
        # The step error is the combination of both modes that starts at one, at rest.
        t = np.linspace(0.0, 30.0, 300_001)
        slow, fast = np.roots([1.0, kd, kp])
        error = np.real((fast * np.exp(slow * t) - slow * np.exp(fast * t)) / (fast - slow))
        settled = t[np.flatnonzero(np.abs(error) > 0.02)[-1]]
        np.testing.assert_allclose(design["settling"], settled, atol=2e-4)
        if design["method"] != "certified":
            assert settled == pytest.approx(2.0, abs=1e-3)
        # |kd jw + kp| = w^2 at the crossover; the phase above -180 degrees is atan(kd w / kp).
        crossover = math.sqrt((kd**2 + math.sqrt(kd**4 + 4 * kp**2)) / 2)
        phase = math.atan2(kd * crossover, kp)
        np.testing.assert_allclose(design["phase_margin"], math.degrees(phase), rtol=1e-6)
        assert design["delay_margin"] == pytest.approx(phase / crossover, rel=1e-6)
        assert design["advised_rate"] == pytest.approx(10 * crossover / phase, rel=1e-6)
        assert design["longest_period"] == pytest.approx(min(2 / kd, 2 * kd / kp), rel=1e-9)
    place, lqr, certified = found["designs"]
    assert place["damping"][0] == pytest.approx(1.4 * math.sqrt(place["stiffness"][0]), rel=1e-5)
    # The cost of error and effort alone: kd^2 = 2 kp.
    assert lqr["damping"][0] ** 2 == pytest.approx(2 * lqr["stiffness"][0], rel=1e-5)
    assert certified["proved_rate"] > 0.5
    assert certified["covers_start"] in (True, False)
    assert place["proved_rate"] is None


def test_share_of_the_torque_is_that_of_a_run_and_decides(task, found, monkeypatch):
    monkeypatch.setattr(certify, "tune", partial(certify.tune, methods=("place", "lqr")))
    place = found["designs"][0]
    read = concur.load_task(task)
    servo = concur.Servo(read.servo.model, read.outputs, place["stiffness"][0], place["damping"][0])
    u = read.simulate(servo).u
    share = np.abs(u).max() / 4.0
    assert place["torque_share"] == pytest.approx(share, rel=0.02)
    assert 0.05 < place["torque_share"] < 1.0
    # The placed gains fit above their share and not below it.
    for factor, fits in ((1.001, True), (0.999, False)):
        share = factor * place["torque_share"]
        options = ("--settling", 2, "--damping-ratio", 0.7, "--torque-share", share)
        result = run("gains", task, *options, "--write", "place", "--json")
        answer = json.loads(result.stdout)
        assert answer["designs"][0]["fits"] is fits
        assert answer["passed"] is fits
        assert result.exit_code == (0 if fits else 1)
        if fits:
            written = task.read_text()
            expected = TASK.replace("stiffness = 4.0 ", f"stiffness = {place['stiffness'][0]} ")
            expected = expected.replace("damping = 4.0", f"damping = {place['damping'][0]}")
            assert " ".join(written.split()) == " ".join(expected.split())
            again = concur.load_task(task)
            np.testing.assert_array_equal(np.diag(again.stiffness), place["stiffness"])
            np.testing.assert_array_equal(np.diag(again.damping), place["damping"])
            task.write_text(TASK)
        else:
            assert task.read_text() == TASK
            assert any(text.startswith("place: the run needs") for text in answer["problems"])


def test_options_out_of_range_are_bad_input(task):
    for option, value in (
        *(("--torque-share", value) for value in ("0", "1.01")),
        *(("--torque-limit", value) for value in ("0", "inf")),
        *(("--settling", value) for value in ("0", "nan")),
        ("--write", "all"),
    ):
        result = run("gains", task, option, value)
        assert result.exit_code == 2, (option, value)
        assert task.read_text() == TASK


LAW = TASK.replace("[servo]\ntorque_limits = 4.0            # N m\n", "") + "[law]\nkind = "


@pytest.mark.by_default(1)
@pytest.mark.parametrize("kind", ["passive", "pd", "computed torque"])
def test_gains_of_other_laws_settle_and_are_written_into_their_table(tmp_path, kind):
    path = tmp_path / "task.toml"
    path.write_text(f'{LAW}"{kind}"\n')
    options = ("--settling", 1.5, "--torque-limit", 20, "--write", "place", "--json")
    answer = json.loads(run("gains", path, *options).stdout)
    assert [design["method"] for design in answer["designs"]] == ["place", "lqr"]
    assert answer["problems"] == ["certified: for a servo, whose error dynamics are known"]
    task, place = concur.load_task(path), answer["designs"][0]
    assert place["options"] == {name: task.law_table[name] for name in place["options"]}
    stiffness = place["stiffness"][0]
    inertia = np.diag(task.law.model.mass_matrix(task.q0))
    if kind != "passive":
        expected = stiffness * (inertia if kind == "pd" else 1.0)
        assert place["options"]["stiffness"] == pytest.approx(expected, rel=1e-5)
    own = task.simulate()
    assert np.abs(own.u_range).max() / 20.0 == pytest.approx(place["torque_share"], rel=1e-6)
    norms = own.error_norms["hand"]
    # Laws in joint space leave the drift of the base.
    assert norms[-1] < (1e-3 if kind == "passive" else 0.1) * norms[0]
    assert norms[own.t > 2.0].max() < 0.1 * norms[0]


def test_a_law_of_a_user_is_named(tmp_path):
    (tmp_path / "own.py").write_text("def law(servo):\n    return servo\n")
    path = tmp_path / "task.toml"
    path.write_text(f'{LAW}"own.py:law"\n')
    done = run("gains", path)
    assert done.exit_code == 2
    assert "a law whose gains are known: servo, passive, pd, computed torque" in done.output
