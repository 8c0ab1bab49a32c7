"""Rigs of systems without bodies: checked, driven, recorded and replayed as those of robots.

The oracle of a run is the simulation of the task, which knows no rig; that of coordinates that the
motors measure is the system in its own ones.
"""

from __future__ import annotations

from pathlib import Path

import casadi as ca
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import concur as cc
from concur.errors import ConcurError
from concur.formulations import Factor
from hil.controller import Mode
from hil.errors import RecordError, RigError, RigFileError
from hil.reasons import Reason, State
from hil.record import Record
from hil.record.copies import recorded_rig
from hil.replay import replay
from hil.rig import load_rig
from hil.session import SessionOptions, run_session
from tests.hil.systems import gimbal, joints, satellite

EXAMPLE = Path(__file__).parents[2] / "examples" / "crane_rig"
TASKS = Path(__file__).parent / "systems"
HEAD = """
name = "{name}"
task = "task.py"
bus = {{ interface = "virtual", channel = "{name}" }}
loop = {{ rate = 250.0, receive_window = 2.5e-3 }}
operator = {{ port = 47135 }}
policies = {{ end = "hold" }}
emulator = {{ latency = 1e-3, dt = 1e-3 }}
"""
AXIS = """
[[axes]]
name = "{name}"
drive = "cia402"
node = {node}
rated_torque = {torque}
offset = {offset}
torque_rate_limit = {rate}
"""


def made(folder: Path, name: str, edit=str, axes: str = "") -> Path:
    """A rig of one of the tasks, whose drives report zero where the task begins."""
    if name == "crane":
        for file in ("task.py", "rig.toml"):
            text = edit((EXAMPLE / file).read_text(encoding="utf-8"))
            (folder / file).write_text(text, encoding="utf-8")
        return folder / "rig.toml"
    (folder / "task.py").write_text(
        edit((TASKS / f"{name}.py").read_text(encoding="utf-8")), "utf-8"
    )
    task = cc.load_task(folder / "task.py")
    text = HEAD.format(name=name)
    for node, motor in enumerate(task.robot.motors, 1):
        at = task.robot.freedom_names.index(next(iter(motor.ratios)))
        offset = motor.gear * task.q0[at]
        limit = motor.torque
        text += AXIS.format(
            name=motor.name, node=node, torque=limit / 2, offset=offset, rate=100 * limit
        )
    (folder / "rig.toml").write_text(text + axes, encoding="utf-8")
    return folder / "rig.toml"


MIT = """
[[axes]]
name = "{name}"
drive = "mit"
node = {node}
torque_rate_limit = 300.0
watchdog_confirmed = true

[axes.ranges]
position = [-12.5, 12.5]
velocity = [-50.0, 50.0]
torque = [-3.0, 3.0]
kp = [0.0, 500.0]
kd = [0.0, 5.0]
"""


def joined(folder: Path, kind: str) -> Path:
    """A rig of a joint of several freedoms, or of the chain that moves as it does."""
    text = (TASKS / "joints.py").read_text(encoding="utf-8")
    (folder / "task.py").write_text(text.replace('KIND = "cylindrical"', f'KIND = "{kind}"'))
    task = cc.load_task(folder / "task.py")
    head = HEAD.format(name=kind)
    axes = [MIT.format(name=m.name, node=k) for k, m in enumerate(task.robot.motors, 1)]
    (folder / "rig.toml").write_text(head + "".join(axes), encoding="utf-8")
    return folder / "rig.toml"


def driven(path: Path, folder: Path):
    options = SessionOptions(Mode.MOCK, folder=folder, heartbeat="auto")
    return run_session(load_rig(path), options), Record.load(folder)


@pytest.mark.by_default(1)
@pytest.mark.parametrize(("name", "away"), [("gimbal", 4e-3), ("satellite", 4e-3), ("crane", 4e-3)])
def test_a_run_is_that_of_the_simulation(name, away, tmp_path):
    path = made(tmp_path, name)
    result, record = driven(path, tmp_path / "record")
    assert result.outcome.reason is Reason.END
    run = load_rig(path).task.simulate()
    rows = np.flatnonzero((record["state"] == State.RUN) & (record["elapsed"] > 0.5))
    at = np.rint(record["elapsed"][rows] / 4e-3).astype(int)
    assert len(rows) > 500
    assert np.rint(np.asarray(run.t)[at] / 4e-3).astype(int).tolist() == at.tolist()
    assert np.abs(record["q"][rows] - run.q[at]).max() < away
    assert np.ptp(run.q[at], axis=0).max() > 50 * away
    # The copies in the record suffice, if their code may run.
    with pytest.raises(RecordError, match="Python code"):
        recorded_rig(record.folder, record.manifest)
    rig = recorded_rig(record.folder, record.manifest, allow_code=True)
    assert replay(record, rig).passed


@pytest.mark.parametrize("kind", ["cylindrical", "ball", "planar"])
def test_joints_of_several_freedoms_are_driven_by_motors_on_shafts(kind, tmp_path, monkeypatch):
    """The oracle of a chain is the simulation of the one joint that moves as the chain does."""
    path = joined(tmp_path, kind)
    result, record = driven(path, tmp_path / "record")
    assert result.outcome.reason is Reason.END
    rows = np.flatnonzero((record["state"] == State.RUN) & (record["elapsed"] > 0.1))
    at = np.rint(record["elapsed"][rows] / 4e-3).astype(int)
    monkeypatch.setattr(joints, "KIND", kind)
    chained = joints.task()
    oracle = joints.task(whole=kind in joints.WHOLE)
    run, tool = oracle.simulate(), oracle.robot.bodies[-1].name
    tip = chained.robot.bodies[-1].name
    for q, other in list(zip(record["q"][rows], run.q[at], strict=True))[::10]:
        pose = chained.robot.pose(q, tip)
        assert np.abs(pose - oracle.robot.pose(other, tool)).max() < 6e-3
    assert np.ptp(run.q[at], axis=0).max() > 0.1
    rig = recorded_rig(record.folder, record.manifest, allow_code=True)
    assert replay(record, rig).passed


def test_code_of_a_task_runs_only_if_it_may(tmp_path):
    path = made(tmp_path, "gimbal")
    ran = tmp_path / "ran"
    text = (tmp_path / "task.py").read_text(encoding="utf-8")
    (tmp_path / "task.py").write_text(f"open({str(ran)!r}, 'w').close()\n{text}", "utf-8")
    with pytest.raises(RigFileError, match="allowed to run"):
        load_rig(path, allowed=())
    assert not ran.exists()
    load_rig(path, allowed={(tmp_path / "task.py").resolve()})
    assert ran.exists()


def test_the_drift_of_the_satellite_is_that_of_its_momentum(tmp_path):
    """Its centre of mass moves at the constant velocity that the momentum gives."""
    _, record = driven(made(tmp_path, "satellite"), tmp_path / "record")
    rows = np.flatnonzero((record["state"] == State.RUN) & (record["elapsed"] > 0.1))
    masses = 12.0, 1.0, 0.8
    x, y, turn, a, b = record["q"][rows].T
    elbow = np.array([0.4 + 0.6 * np.cos(a), 0.6 * np.sin(a)])
    tip = elbow + 0.5 * np.array([np.cos(a + b), np.sin(a + b)])
    c, s = np.cos(turn), np.sin(turn)
    places = [np.zeros_like(elbow), elbow, tip]
    moved = [np.array([x + c * p[0] - s * p[1], y + s * p[0] + c * p[1]]) for p in places]
    centre = sum(m * p for m, p in zip(masses, moved, strict=True)) / sum(masses)
    way = centre[:, -1] - centre[:, 0]
    seconds = record["elapsed"][rows][-1] - record["elapsed"][rows][0]
    assert way / seconds == pytest.approx(np.array([0.4, -0.2]) / sum(masses), abs=1e-3)


def test_coordinates_of_the_gimbal_move_as_the_two_sphere():
    held = cc.load_task(TASKS / "gimbal.py").robot
    rod = gimbal.free()
    y = ca.SX.sym("y", 2)
    place = ca.Function("place", [y], [gimbal.direction(y)])
    slope = ca.Function("slope", [y], [ca.jacobian(gimbal.direction(y), y)])
    start, speed = np.array([0.3, 0.5]), np.array([0.7, -0.4])
    q = np.array(place(start))[:, 0]
    v = np.cross(q, np.array(slope(start)) @ speed)

    def moving(system):
        def rate(t, x):
            q, v = x[: system.nq], x[system.nq :]
            change = np.linalg.solve(system.mass_matrix(q), -system.bias(q, v))
            return np.concatenate([system.rate(q, v), change])

        return rate

    options = {"rtol": 1e-11, "atol": 1e-12}
    own = solve_ivp(moving(rod), (0.0, 2.0), [*q, *v], **options).y[:3, -1]
    other = solve_ivp(moving(held), (0.0, 2.0), [*start, *speed], **options).y[:2, -1]
    assert np.array(place(other))[:, 0] == pytest.approx(own, abs=1e-9)
    assert np.abs(own - q).max() > 0.1


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("inputs=motors", 'inputs=["roll", "pitch"]', "largest torque"),
        ("torque=0.5, ", "", "largest torque"),
        ("speed=200.0, ", "", "largest speed"),
        (
            "robot=system",
            "robot=cc.LagrangianSystem(0.3 * ca.sumsqr(R.qdot), 0, [R], "
            'inputs=[f"R[w{x}]" for x in "xyz"])',
            "coordinates that the motors measure",
        ),
        (
            "inputs=motors",
            'inputs={"roll drive": roll.v * ca.cos(pitch.q), "pitch drive": pitch.v}',
            "an expression",
        ),
    ],
)
def test_what_no_drive_can_carry_is_refused(old, new, expected, tmp_path):
    path = made(tmp_path, "gimbal")
    file = tmp_path / "task.py"
    text = file.read_text(encoding="utf-8")
    assert old in text
    text = text.replace(old, new).replace("def task", 'R = Factor("R", "S2")\n\n\ndef task')
    file.write_text(text, encoding="utf-8")
    names = path.read_text(encoding="utf-8")
    if '["roll"' in new:
        names = names.replace(" drive", "")
    if "[w{x}]" in new:
        names = names.replace("roll drive", "R[wx]").replace("pitch drive", "R[wy]")
    path.write_text(names, encoding="utf-8")
    with pytest.raises(RigFileError, match=expected):
        load_rig(path)


def test_a_source_of_poses_needs_a_base(tmp_path):
    pose = '\n[pose]\nport = 47136\ngives = "pose"\n'
    with pytest.raises(RigError, match="no group of rotations or poses"):
        driven(made(tmp_path, "gimbal", axes=pose), tmp_path / "record")


def test_a_source_of_poses_corrects_the_hull(tmp_path):
    """The hull of the plant is lighter and drifts faster; cameras show it."""
    pose = (
        '\n[pose]\nport = 47137\nhost = "127.0.0.1"\ngives = "pose"\nrequired = false\n'
        "timeout = 0.2\nlargest_jump = 0.3\n"
    )
    head = "emulator = { latency = 1e-3, dt = 1e-3"
    ends = {}
    for cameras in (False, True):
        folder = tmp_path / str(cameras)
        folder.mkdir()
        path = made(folder, "satellite", axes=pose if cameras else "")
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace(head, f"{head}, pose_rate = 100.0") if cameras else text)
        task = folder / "task.py"
        text = task.read_text(encoding="utf-8")
        task.write_text(text.replace("robot=system", "robot=system, plant=satellite(8.0)"), "utf-8")
        _, record = driven(path, folder / "record")
        ends[cameras] = record["q"][record["state"] == State.RUN][-1, 0]
        expected = load_rig(path).task.simulate().q[-1, 0]
    away = {cameras: abs(end - expected) for cameras, end in ends.items()}
    assert away[False] > 0.03
    assert away[True] < 0.25 * away[False]


def test_a_plant_of_another_mass_starts_with_the_momentum(tmp_path):
    task = cc.load_task(made(tmp_path, "satellite").with_name("task.py"))
    other = satellite.satellite(8.0)
    run = cc.load_task(task.path).law.model.on(other)
    found = cc.simulate(
        task.robot, task.law, task.reference, 0.1, task.q0, task.s0,
        plant=other,
    )  # fmt: skip
    assert other.momentum(found.q[-1], found.v[-1]) == pytest.approx(satellite.MOMENTUM, abs=1e-9)
    assert found.v[0] == pytest.approx(run.velocity(found.q[0], task.s0), abs=1e-12)


@pytest.mark.parametrize("limits", [(1.0, 1.0), (1.0, -1.0), (0.0,), (float("nan"), 1.0)])
def test_limits_are_a_range(limits):
    with pytest.raises(ConcurError, match="smaller and a larger"):
        Factor("a", "R", limits=limits)
    with pytest.raises(ConcurError, match="no order"):
        Factor("a", "S2", limits=(-1.0, 1.0))
