"""A planned motion on the emulated rig: from a goal in a task to drives, and its recording."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import hil
from concur.io import load_goal, plan_task
from hil.replay import replay

ROOT = Path(__file__).parents[2]
TASK = """
name = "to a goal on the rig"
robot = "robot.toml"

[[outputs]]
name = "base"
body = "chassis"
group = "R2"
point = [0.25, 0.0, 0.0]
stiffness = 16.0
damping = 8.0

[[outputs]]
name = "hand"
body = "forearm"
group = "R3"
point = [0.0, 0.2, 0.0]
stiffness = 25.0
damping = 10.0

[plan.goals]
base = [1.2, 0.2]
hand = [1.5, 0.75, 0.3]

[plan.limits]
margin = 0.4

[initial.q]
turret = 0.2
upper_arm = 1.0
forearm = -1.6

[servo]
torque_limits = true

[simulation]
duration = 4.0
dt = 0.001
control_period = 0.004
"""


@pytest.mark.extended
def test_a_planned_motion_is_driven_on_emulated_drives(tmp_path) -> None:
    """Drives with encoders and delays end at the goal, and the recording replays."""
    for name in ("rig.toml", "robot.toml"):
        text = (ROOT / "examples/rover_rig" / name).read_text(encoding="utf-8")
        kept = [x for x in text.splitlines() if not x.startswith(("certificate", "#:schema"))]
        (tmp_path / name).write_text("\n".join(kept), encoding="utf-8")
    (tmp_path / "task.toml").write_text(TASK, encoding="utf-8")
    planned = plan_task(*load_goal(tmp_path / "task.toml"))
    assert planned.reached
    planned.save(tmp_path / "task.plan.json")
    rig = hil.load_rig(tmp_path / "rig.toml")
    options = hil.SessionOptions(hil.Mode.MOCK, folder=tmp_path / "record")
    outcome = hil.run_session(rig, options).outcome
    assert outcome.reason is hil.Reason.END, outcome.detail
    assert np.abs(outcome.error).max() < 0.01  # m: counts of the encoders, and the latency
    record = hil.Record.load(tmp_path / "record")
    run = record["state"] == hil.State.RUN
    assert np.abs(record["error"][run]).max() < 0.05
    report = replay(record, rig)
    assert report.passed, report.differences
