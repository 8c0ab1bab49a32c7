"""Plan files are taken only by the problem that they were made for."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import casadi as ca
import numpy as np
import pytest

import concur as cc
import concur.writers
from concur.documents import document_hash
from concur.errors import DescriptionError
from concur.planning import PlanLimits, changed, made_for
from concur.robot import Obstacle

TASK = """
name = "reach"
robot = "robot.toml"
momentum = [0.4, -0.2, 0, 0, 0, 0.3]
[[outputs]]
name = "hand"
body = "forearm"
group = "R2"
point = [1.0, 0, 0]
stiffness = 16.0
damping = 8.0
[plan.goals]
hand = [1.3, 0.4]
[plan.limits]
torques = 5
speeds = 2.0
[[plan.capsule]]
body = "forearm"
start = [0, 0, 0]
end = [1.0, 0, 0]
radius = 0.05
[[plan.obstacle]]
name = "ball"
start = [0, 3, 0]
end = [0, 3, 0]
radius = 0.1
[initial.q]
upper_arm = 0.5
forearm = -1.0
[initial.s]
upper_arm = 0.0
[simulation]
duration = 1.0
"""


@pytest.fixture(scope="module")
def planned(tmp_path_factory):
    """A task with its plan, both as text."""
    folder = tmp_path_factory.mktemp("task")
    cc.writers.save(cc.robots.planar_floater(), folder / "robot.toml")
    (folder / "task.toml").write_text(TASK, encoding="utf-8")
    found = cc.io.plan_task(*cc.io.load_goal(folder / "task.toml"))
    assert found.reached
    file = found.save(folder / "task.plan.json")
    robot = (folder / "robot.toml").read_text(encoding="utf-8")
    return robot, file.read_text(encoding="utf-8")


def hashed(document: dict) -> dict:
    """The document with its hash, as one writes it who changes both."""
    return document | {"hash": document_hash(document)}


def written(tmp_path, planned, text=TASK, change=("", "")) -> Path:
    robot, plan = planned
    assert change[0] in robot
    (tmp_path / "robot.toml").write_text(robot.replace(*change, 1), encoding="utf-8")
    (tmp_path / "task.plan.json").write_text(plan, encoding="utf-8")
    path = tmp_path / "task.toml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("", ""),
        ("torques = 5\n", "torques = 5.0\n"),
        ("stiffness = 16.0", "stiffness = 25.0"),  # the law is free
        ("duration = 1.0", "duration = 2.0"),
        ('name = "reach"', 'name = "again"'),
    ],
)
def test_what_does_not_change_the_motion_keeps_the_plan(tmp_path, planned, old, new) -> None:
    task = cc.load_task(written(tmp_path, planned, TASK.replace(old, new, 1)))
    assert task.reference(0.0).pose.shape == (2,)


@pytest.mark.parametrize(
    ("old", "new", "part"),
    [
        ("[1.3, 0.4]", "[1.3, 0.41]", "goals"),
        ("torques = 5\n", "torques = 5.1\n", "limits"),
        ("speeds = 2.0", "speeds = 2.0\nmargin = 0.1", "limits"),
        ("upper_arm = 0.5", "upper_arm = 0.51", "start"),
        ("upper_arm = 0.0", "upper_arm = 0.1", "start"),
        ("0.4, -0.2", "0.4, -0.21", "momentum"),
        ("point = [1.0, 0, 0]", "point = [0.9, 0, 0]", "outputs"),
        ("end = [0, 3, 0]", "end = [0, 3.1, 0]", "obstacles"),
        ("radius = 0.05", "radius = 0.06", "obstacles"),
        ("[plan.goals]", "[plan]\ntime = 4.0\n[plan.goals]", "time"),
    ],
)
def test_a_stale_plan_is_refused_with_what_has_changed(tmp_path, planned, old, new, part) -> None:
    assert old in TASK
    path = written(tmp_path, planned, TASK.replace(old, new, 1))
    with pytest.raises(DescriptionError, match=rf"other values of {part}\. Run `concur plan"):
        cc.load_task(path)


def test_a_plan_of_another_robot_is_refused(tmp_path, planned) -> None:
    path = written(tmp_path, planned, TASK, ("mass = ", "mass = 1"))
    with pytest.raises(DescriptionError, match="other values of robot"):
        cc.load_task(path)


def test_a_plan_without_what_it_was_made_for_is_refused(tmp_path, planned) -> None:
    document = json.loads(planned[1])
    for made in (None, {}, "yes", document["made_for"] | {"goals": ""}):
        forged = hashed(document | {"made_for": made})
        path = written(tmp_path, (planned[0], json.dumps(forged)))
        with pytest.raises(DescriptionError, match=r"made for other values of .*goals"):
            cc.load_task(path)


def _pose(plan: dict) -> None:
    plan["outputs"]["hand"]["poses"][-1][0] += 1e-9


def _faster(plan: dict) -> None:
    plan["t"] = [0.5 * t for t in plan["t"]]


@pytest.mark.parametrize(
    "change",
    [
        _pose,
        _faster,
        lambda plan: plan["u"][3].__setitem__(0, 0.0),
        lambda plan: plan["rows"][1].update(limit=9.0),
        lambda plan: plan["t"].__setitem__(3, float("nan")),
        lambda plan: plan.update(problems=3, passed=False),
        lambda plan: plan.update(hash=None),
        lambda plan: plan.pop("hash"),
    ],
)
def test_a_plan_whose_numbers_were_edited_is_refused(tmp_path, planned, change) -> None:
    document = json.loads(planned[1])
    again = json.dumps(document, indent=1, sort_keys=True)  # the same content
    assert cc.load_task(written(tmp_path, (planned[0], again))).reference(0.0).pose.shape == (2,)
    change(document)
    path = written(tmp_path, (planned[0], json.dumps(document)))
    with pytest.raises(DescriptionError, match=r"`hash`: expected the file of a plan as it was"):
        cc.load_task(path)


@pytest.mark.parametrize("text", ["[]", "3", "{}", '{"passed": true}'])
def test_other_files_are_no_plans(tmp_path, planned, text) -> None:
    with pytest.raises(DescriptionError, match="that was changed, or another file"):
        cc.load_task(written(tmp_path, (planned[0], text)))


def test_a_plan_that_failed_is_not_passed_by_its_word(tmp_path, planned) -> None:
    """A limit that the goal breaks: the saved plan failed, also after one writes that it passed."""
    limits = TASK.replace("[1.3, 0.4]", "[9.0, 0.4]")
    timed = limits.replace("[plan.goals]", "[plan]\ntime = 3.0\n[plan.goals]")  # sooner done
    path = written(tmp_path, planned, timed)
    found = cc.io.plan_task(*cc.io.load_goal(path))
    file = found.save(tmp_path / "task.plan.json")
    with pytest.raises(DescriptionError, match="a plan that reaches its goal, got failed"):
        cc.load_task(path)
    text = file.read_text(encoding="utf-8").replace('"passed": false', '"passed": true')
    file.write_text(text, encoding="utf-8")
    with pytest.raises(DescriptionError, match="`hash`"):
        cc.load_task(path)


@pytest.mark.extended
def test_plans_of_python_are_those_of_the_task_if_their_problem_is(tmp_path, planned) -> None:
    path = written(tmp_path, planned)
    robot = cc.load(tmp_path / "robot.toml")
    model = cc.reduce(robot, momentum=[0.4, -0.2, 0, 0, 0, 0.3])
    hand = [cc.Output("hand", "forearm", "R2", point=(1, 0, 0))]
    capsule = cc.robot.Capsule("forearm", (0, 0, 0), (1, 0, 0), 0.05, "forearm")
    ball = Obstacle("ball", (0, 3, 0), (0, 3, 0), 0.1)
    clear = cc.robot.Clearance((capsule,), (ball,))
    start = np.array([0, 0, 0, 0.5, -1.0])
    limits = PlanLimits(torques=5.0, speeds=2)
    found = cc.plan(model, hand, start, {"hand": (1.3, 0.4)}, limits, clear)
    assert found.made_for == json.loads(planned[1])["made_for"]
    found.save(tmp_path / "task.plan.json")
    assert cc.load_task(path).reference(0.1).pose.shape == (2,)
    for other in (
        cc.plan(model, hand, start, {"hand": [1.3, 0.4]}, limits),
        cc.plan(model, hand, start, {"hand": [1.3, 0.4]}, limits, clear, time=6.0),
        found.again(found.q[3], found.s[3]),
    ):
        assert other.reached
        other.save(tmp_path / "task.plan.json")
        with pytest.raises(DescriptionError, match="made for other values of"):
            cc.load_task(path)


def test_functions_count_by_their_expressions_and_what_is_no_data_matches_nothing() -> None:
    model = cc.reduce(cc.robots.planar_floater())

    def made(factor: float, robot: object = model.robot) -> dict[str, str]:
        q = ca.SX.sym("q", model.nq)
        turned = ca.Function("turned", [q], [factor * q[3:]])
        output = cc.outputs.FunctionOutput("turned", turned, "R2", "rad")
        start = model.robot.neutral(), {"forearm": 0.0}
        goals = {"turned": [0.6, -0.9]}
        return made_for(model.robot, None, [output], start, goals, PlanLimits(), (), robot)  # type: ignore[arg-type]

    assert changed(made(1.0, 2.0), made(1.0, 2)) == []
    assert changed(made(1.0, 2.0), made(2.0, 2.0)) == ["outputs"]
    assert changed(made(1.0, 2.0), made(1.0, 3.0)) == ["time"]
    assert changed(made(1.0, object()), made(1.0, object())) == ["time"]


def test_fields_that_later_versions_add_change_nothing_until_they_are_used() -> None:
    """The same problem, with one more field of the limits that has its default or another value."""

    def made(limits: PlanLimits) -> dict[str, str]:
        robot = cc.robots.planar_floater()
        hand = cc.Output("hand", "forearm", "R2", point=(1.0, 0, 0))
        start = robot.neutral(), {"forearm": 0.0}
        return made_for(robot, None, [hand], start, {"hand": [1.3, 0.4]}, limits, (), "least")

    fields = [("heat", float, dataclasses.field(default=2.0))]
    later = dataclasses.make_dataclass("PlanLimits", fields, bases=(PlanLimits,), frozen=True)
    now = made(PlanLimits(torques=5.0))
    assert changed(now, made(later(torques=5.0))) == []
    assert changed(now, made(later(torques=5.0, heat=3.0))) == ["limits"]
    assert changed(now, made(later(torques=5.0, margin=0.1))) == ["limits"]
    assert changed(now, made(PlanLimits(torques=5.0, margin=0.0))) == []
