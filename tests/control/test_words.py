"""Parameters of laws in words: those of the task, and none that it does not state."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import concur as cc
from concur.cli import main
from concur.control import law_parameters
from tests.cli.test_gains import TASK

LAWS = """
[[laws]]
name = "soft"
kind = "servo"
[[laws]]
name = "stiff"
kind = "servo"
stiffness = 9.0
damping = [[6.0, 7.0]]
integral = 2.0
torque_limits = [30.0, [-20.0, 25.0]]
[[laws]]
name = "springs"
kind = "passive"
stiffness = 50.0
damping = 40.0
rate = 1.5
internal_damping = 3.0
[[laws]]
name = "pd"
kind = "pd"
stiffness = { forearm = 21.0, upper_arm = 20.0 }
damping = 8.0
[[laws]]
name = "own"
kind = "own.py:make"
pull = 3.5
word = "slow"
"""
OWN = """
import concur as cc

def make(servo, pull, word):
    goal = cc.references.hold([0.0] * servo.model.ns)
    return cc.laws.PD(servo.model, goal, pull, pull, torque_limits=4.0)
"""


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> cc.io.Task:
    folder = tmp_path_factory.mktemp("words")
    (folder / "own.py").write_text(OWN)
    (folder / "task.toml").write_text((TASK + LAWS).replace("duration = 4.0", "duration = 0.1"))
    return cc.load_task(folder / "task.toml")


def test_a_law_states_what_its_table_states(task: cc.io.Task) -> None:
    said = {name: law_parameters(task.with_law(name).law) for name in task.laws}
    assert said["stiff"] == (
        "stiffness 9; damping hand[x] 6, hand[y] 7; integral 2; "
        "torque_limits upper_arm 30, forearm [-20, 25]"
    )
    own = "rate 1.5; torque_limits 4; internal_damping 3"
    assert said["springs"] == f"stiffness 50; damping 40; {own}"
    assert said["pd"] == "stiffness forearm 21, upper_arm 20; damping 8; torque_limits 4"
    assert said["own"] == "pull 3.5; word slow; torque_limits 4"
    plain = law_parameters(task.servo)
    assert said["soft"] == plain
    assert "internal_damping" not in law_parameters(task.with_law("passive, rate = 2.0").law)


def test_gains_of_joints_are_named_as_their_joints(task: cc.io.Task) -> None:
    """Of PD without gains: those of the mass matrix, which differ."""
    said = law_parameters(task.with_law("pd").law)
    mass = np.diag(np.asarray(task.servo.model.mass_matrix(task.q0)))
    listed = law_parameters(task.with_law({"kind": "pd"}).law)
    a, b = (f"{4.0 * m:g}" for m in mass)
    assert listed.startswith(f"stiffness upper_arm {a}, forearm {b}; damping upper_arm {a}, ")
    assert said.startswith("stiffness forearm 21, upper_arm 20")


def test_numbers_of_outputs_stand_behind_their_names() -> None:
    """Coordinates with equal numbers are together, outputs with one number without them."""
    model = cc.reduce(cc.robots.rover_arm())
    base = cc.Output("base", "chassis", "R2", point=(0.25, 0, 0))
    hand = cc.Output("hand", "forearm", "R3", point=(0, 0.2, 0))

    def said(kp: list[float]) -> str:
        return law_parameters(cc.Servo(model, [base, hand], np.diag(kp), 4.0))

    assert said([4.0] * 5) == "stiffness 4; damping 4"
    assert said([4.0, 4.0, 9.0, 9.0, 9.0]) == "stiffness base 4, hand 9; damping 4"
    assert said([4.0, 5.0, 9.0, 9.0, 8.0]) == (
        "stiffness base[x] 4, base[y] 5, hand[x,y] 9, hand[z] 8; damping 4"
    )
    rates = cc.PassiveServo(model, [base, hand], 60.0, 40.0, rate=[2.0, 3.0])
    assert "rate base 2, hand 3" in law_parameters(rates)


def test_defaults_of_joint_laws_are_the_numbers_in_use(task: cc.io.Task) -> None:
    law = task.with_law("computed torque").law
    assert law_parameters(law) == law_parameters(task.servo)  # the gains of the outputs


@pytest.mark.extended
def test_comparisons_of_runs_state_the_parameters_of_each_law(
    task: cc.io.Task, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("concur.cli._folder.Results.draw", lambda *_: {})
    recorded = task.with_law("stiff").simulate().save(tmp_path / "run.h5", {"task": "recorded"})
    words = ["compare", str(task.path), str(recorded), "--out", str(tmp_path / "out")]
    table = CliRunner().invoke(main, words)
    assert "stiff: stiffness 9; damping hand[x] 6, hand[y] 7; integral 2; torque" in table.stdout
    assert "recorded: stiffness 9; damping hand[x] 6, hand[y] 7; integral 2; torque" in table.stdout
    assert "pd: stiffness forearm 21, upper_arm 20; damping 8" in table.stdout
    found = json.loads(CliRunner().invoke(main, [*words, "--json"]).stdout)
    assert found["parameters"]["own"] == "pull 3.5; word slow; torque_limits 4"
    assert "internal_damping 3" in (tmp_path / "out/report.html").read_text()
    servos = [cc.Servo(task.servo.model, task.outputs, k, 4.0) for k in (4.0, 5.0)]
    runs = [
        cc.simulate(task.robot, one, task.reference, 0.02, task.q0, task.s0, dt=0.01)
        for one in servos
    ]
    assert cc.compare(runs, ["a", "b"]).notes == (
        "a: stiffness 4; damping 4", "b: stiffness 5; damping 4",
    )  # fmt: skip
