"""Files round: what is written and read again is the same, bit by bit where it is numbers."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest

import concur as cc
from tests.contract._answers import prepare
from tests.contract._robots import LAWS, TREES, case
from tests.oracles import assert_close


def verdict(path: Path) -> str:
    """Verdict of the checker about a file; "refused" if it does not read it."""
    try:
        return str(cc.recheck(path).name)
    except cc.errors.ConcurError:
        return "refused"


DATA = Path(__file__).parents[1] / "data"


@pytest.mark.parametrize("name", [*LAWS, *TREES])
def test_robot_comes_back_from_toml(name: str, tmp_path: Path) -> None:
    robot, rng = case(name).robot, np.random.default_rng(11)
    (path,) = robot.save(tmp_path / "robot.toml")
    again = cc.load(path)
    assert again.name == robot.name
    assert [(b.name, b.parent, type(b.joint)) for b in again.bodies] == [
        (b.name, b.parent, type(b.joint)) for b in robot.bodies
    ]
    assert tuple(again.actuated) == tuple(robot.actuated)
    assert tuple(again.wheels) == tuple(robot.wheels)
    assert tuple(again.motors) == tuple(robot.motors)
    assert tuple(again.mimics) == tuple(robot.mimics)
    assert tuple(again.steering) == tuple(robot.steering)
    np.testing.assert_array_equal(again.gravity, robot.gravity)
    for one, other in zip(robot.bodies, again.bodies, strict=True):
        for field in ("limits", "speed_limit", "torque_limit"):
            np.testing.assert_array_equal(getattr(one, field), getattr(other, field))
    q, v = robot.random(rng), rng.normal(size=robot.nv)
    assert_close(again.mass_matrix(q), robot.mass_matrix(q), 1e-14)
    assert_close(again.bias(q, v), robot.bias(q, v), 1e-13)
    assert_close(again.constraints(q), robot.constraints(q), 1e-14)
    assert again.save(tmp_path / "again.toml")[0].read_text() == path.read_text()


@pytest.mark.parametrize("name", ["floater", "pendulum", "planar floater"])
def test_robot_comes_back_from_urdf(name: str, tmp_path: Path) -> None:
    robot, rng = case(name).robot, np.random.default_rng(12)
    files = robot.save(tmp_path / "robot.urdf")
    again = cc.load(files[0])
    q, v = robot.random(rng), rng.normal(size=robot.nv)
    assert_close(again.mass_matrix(q), robot.mass_matrix(q), 1e-12)
    assert_close(again.bias(q, v), robot.bias(q, v), 1e-12)
    if name == "floater":  # Pinocchio's own reader sees the same robot; its joints turn for ever
        model = pin.buildModelFromUrdf(str(files[0]), pin.JointModelFreeFlyer())
        turns = np.column_stack([np.cos(q[7:]), np.sin(q[7:])]).ravel()
        mass = np.triu(pin.crba(model, model.createData(), np.append(q[:7], turns)))
        assert_close(mass + np.triu(mass, 1).T, robot.mass_matrix(q), 1e-12)


@pytest.mark.parametrize("name", ["rover", "moving floater"])
def test_run_comes_back_bit_by_bit(name: str, tmp_path: Path) -> None:
    one, rng = case(name), np.random.default_rng(13)
    q, s = one.state(rng)
    while not one.servo.margin(q) > 0.3:
        q, s = one.state(rng)
    point = one.servo.output(q)
    parts = [point] if name == "moving floater" else [point[:2], point[2:]]
    holds = [
        cc.references.hold(p, "R3xSO3") if len(p) == 7 else cc.references.hold(p) for p in parts
    ]
    reference = cc.references.stack(*holds) if len(holds) > 1 else holds[0]
    run = cc.simulate(one.robot, one.servo, reference, 0.05, q, 0.1 * s, dt=0.01)
    path = run.save(tmp_path / "run.h5") or tmp_path / "run.h5"
    again = cc.Run.load(path, one.servo)
    for field in ("t", "q", "v", "s", "u", "error", "lyapunov", "momentum", "margin", "energy"):
        np.testing.assert_array_equal(getattr(again, field), getattr(run, field))


@pytest.mark.extended
def test_certificate_is_verified_from_its_file_and_a_better_one_is_not(tmp_path: Path) -> None:
    rover = case("rover")
    servo = cc.Servo(rover.model, list(rover.outputs), stiffness=[4, 9], damping=[4, 6])
    certificate = cc.certify(servo)
    path = tmp_path / "proof.json"
    certificate.save(path)
    assert certificate.status is cc.Status.PROVED
    assert cc.recheck(path) is cc.Status.PROVED
    text = path.read_text()
    rate = repr(float(certificate.rate))
    assert rate in text
    path.write_text(text.replace(rate, repr(2.0 * float(rate))))
    assert verdict(path) != "PROVED"


@pytest.mark.extended
def test_campaign_comes_back(tmp_path: Path) -> None:
    prepare(tmp_path)
    task = cc.load_task(tmp_path / "campaign.toml")
    result = cc.verify(task, samples=3, seed=2)
    path = result.save(tmp_path / "campaign.h5")
    again = type(result).load(path)
    np.testing.assert_array_equal(again.robustness, result.robustness)
    np.testing.assert_array_equal(again.passed, result.passed)
    assert len(again) == len(result) == 3
    np.testing.assert_array_equal(cc.verify(task, samples=3, seed=2).robustness, result.robustness)


@pytest.mark.extended
def test_stored_proof_of_a_task_is_verified_and_an_altered_one_is_not(tmp_path: Path) -> None:
    path = tmp_path / "proof.json"
    shutil.copy(DATA / "rover_rig_proof.json", path)
    assert str(cc.recheck(path).name) == "PROVED"
    document = json.loads(path.read_text())
    softer = re.sub(r"(stiffness|damping) = [\d.\[\], ]+", r"\1 = 0.01\n", document["task"])
    assert softer != document["task"]
    path.write_text(json.dumps(document | {"task": softer}))
    assert verdict(path) != "PROVED"


def test_task_says_the_same_in_any_order_of_its_tables(tmp_path: Path) -> None:
    prepare(tmp_path)
    text = (tmp_path / "rover.toml").read_text()
    head, simulation, tail = text.partition("[simulation]")
    table, _, rest = tail.partition("\n[")
    moved = tmp_path / "moved.toml"
    moved.write_text(f"{head}\n[{rest}\n{simulation}{table}\n" if rest else text)
    assert moved.read_text() != text
    one, other = cc.load_task(tmp_path / "rover.toml"), cc.load_task(moved)
    assert one.name == other.name
    np.testing.assert_array_equal(one.q0, other.q0)
    np.testing.assert_array_equal(one.stiffness, other.stiffness)
    assert (one.duration, one.dt) == (other.duration, other.dt)
    for t in (0.0, 0.4):
        for part in ("flat_pose", "twist", "acceleration"):
            np.testing.assert_array_equal(
                getattr(one.reference(t), part), getattr(other.reference(t), part)
            )
    sample = one.reference(0.0)
    s = np.zeros(one.servo.ns)
    u = one.servo.torque(one.q0, s, sample)
    np.testing.assert_array_equal(other.servo.torque(other.q0, s, sample), u)
