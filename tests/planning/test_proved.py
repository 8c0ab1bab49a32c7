"""A planned motion of a rover is proved, and the checker confirms its file."""

from __future__ import annotations

from pathlib import Path

import pytest

import concur as cc
from concur.checker import confirm
from concur.io import Task, load_goal, plan_task
from concur.proofs import prove_task

ROOT = Path(__file__).parents[2]
TASK = f"""
name = "to a goal"
robot = "{ROOT}/examples/rover_rig/robot.toml"

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

[plan]
time = 4.5

[plan.goals]
base = [1.2, 0.1]
hand = [1.5, 0.8, 0.4]

[plan.limits]
margin = 0.3
room = ROOM
singular = 0.15

[initial.q]
turret = 0.2
upper_arm = 1.0
forearm = -1.6

[servo]
torque_limits = true

[simulation]
duration = 4.5
dt = 0.002

[proof]
place = 0.001
speed = 0.001
heading = 0.001
period = 0.001
masses = 0.005
corridor = {{ base = 0.1, hand = 0.1 }}
margin = 0.005
"""


def planned(folder: Path, room: float) -> Task:
    path = folder / "task.toml"
    path.write_text(TASK.replace("ROOM", str(room)), encoding="utf-8")
    found = plan_task(*load_goal(path))
    assert found.reached
    found.save(folder / "task.plan.json")
    return cc.load_task(path)


@pytest.mark.slow
def test_a_planned_motion_is_proved(tmp_path) -> None:
    proof = prove_task(planned(tmp_path, 0.1))
    assert proof.status.name == "UNVERIFIED", str(proof)
    assert confirm(proof).status.name == "PROVED"


@pytest.mark.slow
def test_a_motion_without_room_to_its_ranges_is_refuted(tmp_path) -> None:
    proof = prove_task(planned(tmp_path, 0.0))
    assert proof.status.name in ("REFUTED", "UNDECIDED")
    assert "upper_arm" in str(proof)
