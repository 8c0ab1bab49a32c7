"""Facts about a task that reports and tables show."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import concur as cc
from concur.io import check, load_task, new_folder, suspicious_task, task_facts

TASK = """
name = "tumbling"
robot = "free_flyer"
momentum = [1.0, 0.0, 0.0, 0.0, 0.0, 2.0]
[[outputs]]
name = "hand"
body = "tool"
group = "SO3"
stiffness = 4.0
damping = 4.0
[reference.hand]
kind = "hold"
point = [0.0, 0.0, 0.0, 1.0]
[servo]
use_measured_velocity = {measured}
[simulation]
duration = 1.0
[plant]
momentum = [5.0, 0.0, 0.0, 0.0, 0.0, 7.0]
"""


def _momentum(path: Path, measured: bool) -> str:
    path.write_text(TASK.replace("{measured}", str(measured).lower()), encoding="utf-8")
    task = load_task(path)
    return dict(task_facts(task))["Momentum"]


def test_measured_momentum_is_the_one_the_plant_starts_with(tmp_path: Path) -> None:
    assumed = _momentum(tmp_path / "task.toml", False)
    assert assumed.startswith("(1, 0, 0) kg m/s, (0, 0, 2) kg m^2/s about the origin")
    measured = _momentum(tmp_path / "task.toml", True)
    assert measured.startswith("measured; (5, 0, 0) kg m/s, (0, 0, 7) kg m^2/s")


BENCH = """
name = "bench"
actuated = ["arm"]
[[bodies]]
name = "floor"
joint = { type = "Fixed" }
[[bodies]]
name = "arm"
parent = "floor"
joint = { type = "Revolute", axis = [0, 0, 1] }
inertia = { mass = 1.0, com = [0.3, 0, 0], moments = [0.1, 0.1, 0.1] }
[[bodies]]
name = "puck"
parent = "floor"
joint = { type = "Cylindrical", axis = [0, 0, 1] }
inertia = { mass = 1.0, moments = [0.1, 0.1, 0.2] }
[[bodies]]
name = "disc"
parent = "floor"
joint = { type = "Revolute", axis = [0, 0, 1] }
inertia = { mass = 1.0, moments = [0.1, 0.1, 0.2] }
[[bodies]]
name = "cart"
parent = "floor"
joint = { type = "Prismatic", axis = [1, 0, 0] }
inertia = { mass = 1.0, moments = [0.1, 0.1, 0.2] }
"""
STAGED = """
name = "spinning"
robot = "bench.toml"
stages = { puck = [0.3, -0.2], disc = 0.5, cart = 0.7 }
[[outputs]]
name = "turn"
body = "arm"
group = "SO2"
stiffness = 4.0
damping = 4.0
[reference.turn]
kind = "hold"
point = [0.0]
[simulation]
duration = 1.0
"""


def test_momenta_of_stages_have_the_unit_of_each_component(tmp_path: Path) -> None:
    (tmp_path / "bench.toml").write_text(BENCH, encoding="utf-8")
    (tmp_path / "task.toml").write_text(STAGED, encoding="utf-8")
    task = load_task(tmp_path / "task.toml")
    shown = dict(task_facts(task))["Momenta of further stages"]
    # A cylindrical joint slides and turns, in this order.
    assert shown == "`puck` 0.3 N s, -0.2 N m s; `disc` 0.5 N m s; `cart` 0.7 N s"


NOISE = "[imperfections]\ncoulomb = 0.1\n"
WORLD = "[world]\nnumber = 1\nseed = 2\n[world.mass]\nhand = 0.1\n"


@pytest.mark.parametrize(
    ("tables", "more"),
    [
        ("", ""),
        (NOISE, ", with [imperfections] of the task"),
        (NOISE + WORLD, ", with [imperfections] and [world] of the task"),
    ],
)
def test_the_plant_is_shown_with_the_tables_that_change_it(
    tmp_path: Path, tables: str, more: str
) -> None:
    text = TASK.replace("{measured}", "false").split("[plant]")[0] + tables
    (tmp_path / "task.toml").write_text(text, encoding="utf-8")
    task = load_task(tmp_path / "task.toml")
    assert dict(task_facts(task))["Plant"] == f"the robot of the servo's model{more}"


FOLLOWS = """
name = "follows"
robot = "free_flyer"
[[outputs]]
name = "hand"
body = "tool"
group = "R3xSO3"
stiffness = 4.0
damping = 4.0
[reference.hand]
kind = "file"
file = "hand.csv"
[initial.q]
JOINTS
[simulation]
duration = 2.0
"""
ROBOT = cc.robots.free_flyer()
JOINTS = dict(zip(ROBOT.joint_names[1:], (0.5, -1.5, 2.1, 0.2, -0.4, 0.8), strict=True))
TIME, X, *_ = np.eye(8)
PLACE, TURN = np.eye(8)[1:4].sum(axis=0), np.eye(8)[4:].sum(axis=0)


def _told(folder: Path, change: Callable[[np.ndarray], np.ndarray], more: str = "") -> list[str]:
    """Warnings about a file of samples at the hand, after a change of its rows."""
    joints = "\n".join(f"{name} = {angle}" for name, angle in JOINTS.items())
    path = folder / "task.toml"
    path.write_text(FOLLOWS.replace("JOINTS", joints).replace("[initial.q]", more + "[initial.q]"))
    q = ROBOT.neutral()
    q[7:] = list(JOINTS.values())
    hand = cc.Output("hand", "tool", "R3xSO3")
    place = cc.Servo(cc.reduce(ROBOT), [hand], 4, 4).output(q)
    t = np.arange(0.0, 2.001, 0.02)
    rows = np.column_stack([t, np.tile(place, (len(t), 1))])
    rows += (0.01 * t + 1e-3 * np.sin(3.0 * t))[:, None] * X
    np.savetxt(folder / "hand.csv", change(rows), "%.7f", ",")
    return list(suspicious_task(load_task(path)))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda x: x, ""),
        (lambda x: x[1:], ""),
        (lambda x: x[3:], "the run begins at 0, its samples at 0.06 s: beyond them it goes "
         "straight on, at a speed of 0.013 "),
        (lambda x: x[:-1], ""),
        (lambda x: x[:-3], "the run ends at 2 s, its samples at 1.94 s: beyond them it goes"),
        (lambda x: x * (1.0 + 0.01 * TIME), ""),
        (lambda x: x * (1.0 + 999.0 * TIME), "the run ends at 2 s, its samples at 2000 s"),
        (lambda x: x * (1.0 + 999.0 * PLACE), "mm instead of m?"),
        (lambda x: x * (1.0 + 99.0 * PLACE), "cm instead of m?"),
        (lambda x: x + 29.0 * ROBOT.extent * X, ""),
        (lambda x: x + 31.0 * ROBOT.extent * X, "instead of m?"),
        (lambda x: np.hstack([x[:, :4], np.roll(x[:, 4:], 1, axis=1)]), "scalar part first: write"),
        (lambda x: x * (1.0 - 2.0 * TURN), ""),
        (lambda x: np.delete(x, slice(40, 60), 0), "no samples for 0.42 s after t = 0.78 s"),
    ],
)  # fmt: skip
def test_files_that_do_not_fit_the_run_or_the_robot_are_told(
    change: Callable[[np.ndarray], np.ndarray], words: str, tmp_path: Path
) -> None:
    told = _told(tmp_path, change)
    assert len(told) == bool(words), told
    assert words in "".join(told)


def test_what_a_file_tells_is_told_of_a_moving_reference_too(tmp_path: Path) -> None:
    """A drift and a moving frame make another reference of the samples."""
    more = "drift = [0.001, 0.0, 0.0]\nmoving = [0.0, 0.0, 0.0, 0.0, 0.0, 0.001]\n"
    told = _told(tmp_path, lambda x: x * (1.0 + TIME), more)
    assert told == ["reference of hand: the run ends at 2 s, its samples at 4 s"]
    notes = check(load_task(tmp_path / "task.toml")).notes
    assert [
        note for note in notes if note.startswith("reference of hand: 101 samples that scatter")
    ]


LIMITED = """
name = "limited"
robot = "robot.toml"
simulation = { duration = 1.0 }
servo = { torque_limits = LIMITS }
initial.q = { a = 0.3, b = 0.9, c = 0.3 }
[[outputs]]
name = "tip"
body = "c"
point = [0.0, 0.0, 0.5]
group = "R2"
axes = "xz"
stiffness = 4.0
damping = 4.0
[reference.tip]
kind = "hold"
point = [1.2, 0.7]
"""
THREE = 'name = "three"\n[[bodies]]\nname = "root"\njoint = { type = "Fixed" }\n' + "".join(
    f'[[bodies]]\nname = "{name}"\nparent = "{on}"\nplacement = {{ translation = [0, 0, 0.5] }}\n'
    f'joint = {{ type = "Revolute", axis = [0, 1, 0] }}\n{limit}\n'
    "inertia = { mass = 1.0, box = [0.1, 0.1, 0.4] }\n"
    for name, on, limit in (
        ("a", "root", "torque_limit = 12.0"),
        ("b", "a", "torque_limit = 9.0"),
        ("c", "b", ""),
    )
)


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        ("11.0", "a -11 to 11 N m; b -9 to 9 N m, of the robot; c -11 to 11 N m"),
        ("{ a = 5.0 }", "a -5 to 5 N m; b -9 to 9 N m, of the robot"),
        ("true", "a -12 to 12 N m, of the robot; b -9 to 9 N m, of the robot"),
        ("8.0", "each drive -8 to 8 N m"),
    ],
)
def test_a_fact_says_which_limits_of_torque_hold(limits: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "robot.toml").write_text(THREE)
    (tmp_path / "task.toml").write_text(LIMITED.replace("LIMITS", limits))
    task = load_task(tmp_path / "task.toml")
    assert dict(task_facts(task))["Torque limits"] == words
    if limits == "11.0":
        assert f"torque limits: {words}" in check(task).notes


@pytest.mark.parametrize(
    ("limits", "joints", "more", "words"),
    [
        ("8.0", "c", "torque = 0.3", r"`drive c` is a motor with a gear of 50: 8 N m there are "
         r"400 at the joint; here the motor's own 0\.3 N m hold\. Write a table by names"),
        ("8.0", "c", "torque = 8.1", r"8 N m there are 400 at the joint\. Write a table by names"),
        ("8.0", "c", "", r"8 N m there are 400 at the joint\. Write a table by names"),
        ("{ a = 8.0, 'drive c' = 0.2 }", "c", "torque = 0.3", ""),
        ("true", "c", "torque = 0.3", ""),
        ("8.0", "", "", ""),
        ("0.1", "abc", "torque = 0.3", ""),
    ],
)  # fmt: skip
def test_one_limit_of_torque_for_joints_and_geared_motors_is_told(
    limits: str, joints: str, more: str, words: str, tmp_path: Path
) -> None:
    robot = THREE + "".join(
        f'[[motors]]\nname = "drive {joint}"\njoints = "{joint}"\ngear = 50.0\n{more}\n'
        for joint in joints
    )
    (tmp_path / "robot.toml").write_text(robot)
    (tmp_path / "task.toml").write_text(LIMITED.replace("LIMITS", limits))
    told = [x for x in suspicious_task(load_task(tmp_path / "task.toml")) if "one number" in x]
    assert len(told) == bool(words), told
    assert not words or re.search(words, told[0])


LATE = """
[imperfections]
timing = { latency = LATENCY }
[[imperfections.wrenches]]
name = "push"
body = "c"
force = [1.0, 0.0, 0.0]
start = BEGIN
"""


@pytest.mark.by_default(5)
@pytest.mark.parametrize(
    ("period", "latency", "begin", "words"),
    [
        (0.01, 0.3, 0.99, None),
        (0.01, 0.33, 0.0, "the errors grow"),
        (0.49, 0.0, 0.0, None),
        (0.51, 0.0, 0.0, r"the errors grow; .* a period below 0\.5 s"),
        (0.01, 0.0, 1.0, "wrench `push` begins at 1 s, the run ends at 1 s: it has no effect"),
        (
            0.01,
            5.0,
            0.0,
            r"0\.01 s and a latency of 5 s: .* a latency below 0\.319 s",
        ),
        (None, 0.33, 0.0, "torques held for 0.001 s"),
    ],
)
def test_loops_that_grow_and_pushes_after_the_end_are_told(
    period: float | None, latency: float, begin: float, words: str | None, tmp_path: Path
) -> None:
    (tmp_path / "robot.toml").write_text(THREE)
    text = LIMITED.replace("LIMITS", "true") + LATE.replace("BEGIN", str(begin))
    held = f"simulation.control_period = {period}\n" if period else ""
    text = text.replace("simulation = { duration = 1.0 }", f"simulation.duration = 1.0\n{held}")
    (tmp_path / "task.toml").write_text(text.replace("LATENCY", str(latency)))
    task = load_task(tmp_path / "task.toml")
    told = suspicious_task(task)
    assert len(told) == bool(words), told
    assert not words or re.search(words, told[0])
    # What is fine is stated too: a note, not a warning.
    grows = bool(words) and "wrench" not in words
    fine = [text for text in check(task).notes if "the gains bear them" in text]
    assert [*fine] == (
        []
        if grows
        else [f"torques held for {period:g} s and a latency of {latency:g} s: the gains bear them"]
    )


@pytest.mark.by_default(2)
@pytest.mark.parametrize(("factor", "told"), [(1.0, False), (1000.0, True), (100.0, True)])
def test_a_path_in_mm_that_moves_the_base_to_its_start_is_told(
    factor: float, told: bool, tmp_path: Path
) -> None:
    _told(tmp_path, lambda x: x * (1.0 + (factor - 1.0) * PLACE))
    path = tmp_path / "task.toml"
    path.write_text(
        path.read_text().replace("[initial.q]", '[initial]\nstart = "on reference"\n[initial.near]')
    )
    task = load_task(path)
    warned = [text for text in suspicious_task(task) if "moves" in text and "from `near`" in text]
    assert len(warned) == told
    if not told:
        base = f"base `{ROBOT.base.name}` at the start: x {task.q0[0] + 0.0:.4g} "
        notes = check(task).notes
        assert any(note.startswith(base) for note in notes)
        (joints,) = (note for note in notes if note.startswith("joints at the start: "))
        for body in ROBOT.bodies[1:]:
            for x in task.q0[ROBOT.q_slice(body.name)]:
                assert f"{body.joint_label} {round(x, 9) + 0.0:.4g} " in joints


@pytest.mark.parametrize(("angle", "told"), [(-6.28, False), (-6.29, True), (95.3, True)])
def test_degrees_near_the_start_are_told_once(angle: float, told: bool, tmp_path: Path) -> None:
    """The rover's limits bring its start back; the free-flyer, which has none, starts there."""
    new_folder("rover", tmp_path / "rover")
    path = tmp_path / "rover" / "task.toml"
    path.write_text(path.read_text().replace("forearm = 1.2", f"forearm = {angle}"))
    found = [text for text in suspicious_task(load_task(path)) if "deg instead of rad" in text]
    words = f"reference of base: posture near the start of `forearm`: angle {angle:g} rad, "
    assert [text.startswith(words) for text in found] == [True] * told
    first = next(iter(JOINTS))
    _told(tmp_path, lambda x: x)
    path = tmp_path / "task.toml"
    near = '[initial]\nstart = "on reference"\n[initial.near]'
    text = path.read_text().replace("[initial.q]", near)
    path.write_text(text.replace(f"{first} = ", f"{first} = {angle} # "))
    task = load_task(path)
    away = abs(float(task.q0[7])) > 2.0 * np.pi
    found = [text for text in suspicious_task(task) if "deg instead of rad" in text]
    assert [f"start of `{first}`: " in text for text in found] == [True] * (away or told)
