"""Tasks that start on their references: states by numpy, and errors with file, table and field."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import concur as cc
from concur.control import Servo
from concur.errors import ConcurError
from concur.io import Task, load_task
from concur.io._initial import InitialTable, read_posture
from tests.io.test_task import TASK, write
from tests.oracles import assert_close

HEAD, TAIL = TASK.split("[initial.q]")
TAIL = TAIL[TAIL.index("[simulation]") :]
START = '[initial]\nstart = "on reference"\n'


def started(folder: Path, text: str) -> tuple[Task, Servo]:
    task = load_task(write(folder, HEAD + text + TAIL))
    return task, task.servo


def points(task: Task, q: np.ndarray) -> np.ndarray:
    """Front of the chassis in the plane, and the hand."""
    front = task.robot.pose(q, "chassis") @ [0.25, 0.0, 0.0, 1.0]
    hand = task.robot.pose(q, "forearm") @ [0.0, 0.2, 0.0, 1.0]
    return np.array([*front[:2], *hand[:3]])


def test_outputs_start_on_their_references(tmp_path: Path) -> None:
    text = START + "near = { chassis = [-0.3, 0.1, 0.2], forearm = -1.5 }\n"
    task, servo = started(tmp_path, text)
    base, circle = np.zeros(2), np.array([0.15, 0.75, 0.15])
    target = points(task, task.q0)
    assert target[:2] == pytest.approx(base, abs=1e-9)
    assert np.linalg.norm(target[2:] - circle) == pytest.approx(0.07, abs=1e-9)
    assert task.q0[2] == pytest.approx(0.2, abs=0.05)
    assert task.q0[task.robot.q_slice("forearm")] < -0.5
    assert not task.q0.flags.writeable
    # Velocities by a quotient along the lift: 0.3 m/s, and the hand also around the circle.
    h, s = 1e-5, task.shape_velocities(servo)
    v = servo.model.velocity(task.q0, s)
    ends = [points(task, task.robot.integrate(task.q0, x * v)) for x in (-h, h)]
    velocity = (ends[1] - ends[0]) / (2 * h)
    assert velocity[:2] == pytest.approx([0.3, 0.0], abs=1e-6)
    around = velocity[2:] - [0.3, 0.0, 0.0]
    assert np.linalg.norm(around) == pytest.approx(0.07 * 2 * np.pi / 10, abs=1e-6)
    assert set(task.initial_velocities) == set(servo.model.shape_names)


def test_an_offset_is_the_reference_minus_the_output(tmp_path: Path) -> None:
    exact, _ = started(tmp_path, START)
    offset = "[initial.offset]\nhand = [0.03, -0.02, 0.01]\n"
    task, _ = started(tmp_path, START + offset)
    gap = points(exact, exact.q0) - points(task, task.q0)
    assert gap == pytest.approx([0, 0, 0.03, -0.02, 0.01], abs=1e-9)


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        (START + "[initial.q]\nturret = 0.1\n", "[initial], field `q`", "got `q` and `start`"),
        (START + "[initial.s]\nleft_wheel = 1\n", "[initial], field `s`", "got `s` and `start`"),
        ("[initial]\nnear = { turret = 1 }\n", "[initial], field `near`", "`near` without `start`"),
        ("[initial.offset]\nhand = [0, 0, 1]\n", "field `offset`", "`offset` without `start`"),
        ('[initial]\nstart = "here"\n', "[initial], field `start`", 'expected "on reference"'),
        (START + "near = { mast = 1 }\n", "[initial.near], field `mast`", "expected a joint"),
        (START + "offset = { tip = 1 }\n", "[initial.offset], field `tip`", "expected an output"),
        (
            START + "offset = { hand = 1 }\n",
            "[initial.offset], field `hand`",
            "3 numbers, m and rad",
        ),
    ],
)
def test_wrong_entries_are_named(text: str, place: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ConcurError) as error:
        started(tmp_path, text)
    assert "reach.toml" in str(error.value)
    assert place in str(error.value)
    assert message in str(error.value)


def test_a_reference_out_of_reach_is_refused_with_the_distance(tmp_path: Path) -> None:
    far = HEAD.replace("center = [0.15, 0.75, 0.15]", "center = [0.15, 0.75, 5.15]")
    assert far != HEAD
    with pytest.raises(
        ConcurError, match=r"\[initial\], field `start`: start of `rover_arm`"
    ) as error:
        load_task(write(tmp_path, far + START + TAIL))
    assert "output `hand` stays 4." in str(error.value)
    assert "near" in error.value.cure


FLYER = """
name = "spin"
robot = "free_flyer"
MOMENTUM
[[outputs]]
name = "hand"
body = "tool"
group = "R3xSO3"
stiffness = 1.0
damping = 2.0
[reference.hand]
kind = "hold"
point = [1.0, 0.2, 0.3, 0.0, 0.0, 0.0, 1.0]
[simulation]
duration = 0.1
dt = 0.01
"""


def flyer(folder: Path, initial: str, momentum: str = "") -> Task:
    file = folder / "task.toml"
    file.write_text(FLYER.replace("MOMENTUM", momentum) + initial)
    return load_task(file)


def centre(robot: cc.Mechanism, q: np.ndarray) -> np.ndarray:
    """Centre of mass, body by body."""
    parts = [
        (robot.pose(q, body.name), np.append(body.inertia.com, 1.0), body.inertia.mass)
        for body in robot.bodies
    ]
    return sum(m * (pose @ at)[:3] for pose, at, m in parts) / sum(m for *_, m in parts)


@pytest.mark.parametrize("drift", [None, [0.03, -0.02, 0.01]])
def test_spin_attitude_and_drift_of_the_hull(drift: list[float] | None, tmp_path: Path) -> None:
    joints = "q = { turret = 0.3, upper_arm = 0.7, forearm = -1.2, wrist_pitch = 0.5 }\n"
    initial = "[initial]\nattitude_deg = [10.0, -20.0, 30.0]\nspin_deg = [1.0, -2.0, 3.0]\n"
    initial += f"drift = {drift}\n" if drift else ""
    task = flyer(tmp_path, initial + joints + "s = { turret = 0.2, forearm = -0.1 }\n")
    robot, servo = task.robot, task.servo
    v = servo.model.velocity(task.q0, task.shape_velocities(servo))
    assert np.degrees(v[3:6]) == pytest.approx([1.0, -2.0, 3.0], abs=1e-10)
    assert v[robot.freedom_names.index("turret")] == pytest.approx(0.2, abs=1e-12)
    # The velocity of the centre of mass by a quotient.
    ends = [centre(robot, robot.integrate(task.q0, x * v)) for x in (-1e-5, 1e-5)]
    assert (ends[1] - ends[0]) / 2e-5 == pytest.approx(drift or [0.0] * 3, abs=1e-8)

    def about(axis: int, degrees: float) -> np.ndarray:
        c, s = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
        i, j = (axis + 1) % 3, (axis + 2) % 3
        turn = np.eye(3)
        turn[i, i] = turn[j, j] = c
        turn[j, i], turn[i, j] = s, -s
        return turn

    expected = about(2, 30.0) @ about(1, -20.0) @ about(0, 10.0)
    assert robot.pose(task.q0, robot.base.name)[:3, :3] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("initial", "momentum", "field"),
    [
        ("spin_deg = [0, 0, 1]", "momentum = [0, 0, 0, 0, 0, 0]", "spin_deg"),
        ("spin_deg = [0, 0]", "", "spin_deg"),
        ("drift = [0, 0, 1]", "", "drift"),
        ("drift = [0, 0, 1]\nspin_deg = [0, 0, 1]", "momentum = [0, 0, 0, 0, 0, 0]", "drift"),
        ("spin_deg = 3.0", "", "spin_deg"),
        (
            "attitude_deg = [0, 0, 1]\nq = { spacecraft = [0, 0, 0, 0, 0, 0, 1] }",
            "",
            "attitude_deg",
        ),
    ],
)
def test_a_spin_is_said_once(initial: str, momentum: str, field: str, tmp_path: Path) -> None:
    with pytest.raises(ConcurError, match=f"`{field}`") as caught:
        flyer(tmp_path, "[initial]\n" + initial, momentum)
    assert "[initial]" in str(caught.value)


@pytest.mark.by_default(1)
@pytest.mark.parametrize("group", ["R3xSO3", "R3"])
def test_outputs_start_on_their_references_while_the_hull_spins(group: str, tmp_path: Path) -> None:
    """The hand follows a circle from the start on; of redundant joints too."""
    circle = 'kind = "circle"\ncenter = [1.0, 0.2, 0.3]\nradius = 0.1\nperiod = 5.0\n'
    circle += "" if group == "R3" else "attitude = [0.0, 0.0, 0.0, 1.0]\n"
    text = FLYER.replace("R3xSO3", group).replace(
        '[reference.hand]\nkind = "hold"\npoint = [1.0, 0.2, 0.3, 0.0, 0.0, 0.0, 1.0]\n',
        "[reference.hand]\n" + circle,
    )
    near = "near = { turret = 0.3, upper_arm = 0.7, forearm = -1.2, wrist_pitch = 0.5 }\n"
    start = (
        '[initial]\nstart = "on reference"\nspin_deg = [1.0, -2.0, 3.0]\ndrift = [0.02, 0, 0.01]\n'
    )
    file = tmp_path / "task.toml"
    file.write_text(text.replace("MOMENTUM", "") + start + near)
    task = load_task(file)
    servo, s = task.servo, task.shape_velocities(task.servo)
    v = servo.model.velocity(task.q0, s)
    assert np.degrees(v[3:6]) == pytest.approx([1.0, -2.0, 3.0], abs=1e-9)
    along = task.robot.momentum(task.q0, v)[:3] / task.robot.total_mass
    assert along == pytest.approx([0.02, 0.0, 0.01], abs=1e-10)
    goal = task.reference(0.0)
    for error in servo.error(task.q0, s, goal)[:2]:
        assert np.abs(error).max() < 1e-9


def test_a_vehicle_has_no_spin_by_momentum(tmp_path: Path) -> None:
    for field in ("spin_deg", "attitude_deg"):
        with pytest.raises(ConcurError, match=f"`{field}`.*`chassis`"):
            started(tmp_path, f"[initial]\n{field} = [0, 0, 1]\n")


def test_attitude_is_about_inertial_axes_where_the_base_is_placed_at_an_angle(
    tmp_path: Path,
) -> None:
    robot = cc.robots.free_flyer()
    turned = cc.Pose(rotation=(0.0, 0.0, 0.5**0.5, 0.5**0.5))
    bodies = [replace(robot.base, placement=turned), *robot.bodies[1:]]
    robot = replace(robot, bodies=bodies)
    table = InitialTable(attitude_deg=(20.0, -10.0, 30.0))
    pose = robot.pose(read_posture(table, robot, tmp_path), robot.base.name)
    # Roll, pitch and yaw: R = Rz(30 deg) Ry(-10 deg) Rx(20 deg).
    expected = Rotation.from_euler("ZYX", [30.0, -10.0, 20.0], degrees=True).as_matrix()
    assert_close(pose[:3, :3], expected, 1e-12)
