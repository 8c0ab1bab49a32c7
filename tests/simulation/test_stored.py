"""Runs and motions as files: what is written is read back, by other readers too."""

from __future__ import annotations

import csv
import json
import pickle
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest
from mcap.reader import make_reader

import concur as cc
from concur.control import Servo, tracking_law
from concur.control.laws import PD
from concur.errors import ConcurError, DescriptionError, OutputError
from concur.outputs import Output, references
from concur.reduction import reduce
from concur.robots import free_flyer, planar_floater
from concur.simulation import (
    Integrator,
    Motion,
    Run,
    forced_motion,
    recorded_run,
    simulate,
)


@pytest.fixture(scope="module")
def run() -> Run:
    robot = planar_floater()
    model = reduce(robot, momentum=[0, 0, 0, 0, 0, 0.5])
    servo = Servo(model, [Output("hand", "forearm", "R2", point=(0.4, 0, 0))], 4.0, 4.0)
    q = robot.neutral()
    q[3:] = (0.6, 1.2)
    reference = references.hold(servo.output(q) - 0.1, group="R2")
    return simulate(robot, servo, reference, 0.2, q, np.zeros(2), dt=0.01)


@pytest.fixture(scope="module")
def motion(run: Run) -> Motion:
    q = run.q[0]
    return forced_motion(run.servo.model, lambda t, q, v: np.ones(2), 0.1, q, np.zeros(2), dt=0.01)


def test_a_run_is_read_back(run: Run, tmp_path: Path) -> None:
    path = run.save(tmp_path / "run.h5")
    again = Run.load(path, run.servo)
    for name in run.arrays:
        np.testing.assert_array_equal(getattr(again, name), getattr(run, name), err_msg=name)
    assert (again.method, again.control_period, again.seconds, again.dt) == (
        *(run.method, run.control_period, run.seconds, run.dt),
    )
    assert str(again) == str(run)
    other = Servo(run.servo.model, [Output("tip", "forearm", "R2", point=(0.4, 0, 0))], 4.0, 4.0)
    with pytest.raises(DescriptionError, match=r"attribute `outputs`: expected .*tip.*got .*hand"):
        Run.load(path, other)
    larger = Servo(reduce(free_flyer()), [Output("hand", "tool", "SE3")], 4.0, 4.0)
    with pytest.raises(DescriptionError, match="dataset `q`: expected 13 columns"):
        Run.load(path, larger)
    law = PD(run.servo.model, references.hold(run.q[0, 3:]), 1.0, 1.0)
    own = simulate(run.robot, law, None, 0.02, run.q[0], np.zeros(2), dt=0.01)
    assert str(Run.load(own.save(tmp_path / "own.h5"), law)) == str(own)
    with pytest.raises(OutputError, match="`servo`: expected a Servo, or another Law"):
        Run.load(path, run.servo.model)
    (tmp_path / "text.h5").write_text("no")
    for wrong in ("text.h5", "none.h5"):
        with pytest.raises(DescriptionError, match=wrong):
            Run.load(tmp_path / wrong, run.servo)


def test_damaged_files_are_refused_with_the_place(run: Run, motion: Motion, tmp_path: Path) -> None:
    path = tmp_path / "record.h5"
    for record, law, names in (
        (run, run.servo, ("method", "control_period", "seconds")),
        (motion, motion.model, ("method", "seconds")),
    ):
        for name in names:
            record.save(path)
            with h5py.File(path, "r+") as file:
                del file.attrs[name]
            with pytest.raises(DescriptionError, match=f"attributes .*got another file .*{name}"):
                type(record).load(path, law)
        record.save(path)
        with h5py.File(path, "r+") as file:
            file.attrs["seconds"] = "long"
        with pytest.raises(DescriptionError, match="could not convert string to float: 'long'"):
            type(record).load(path, law)
        for rows in (0, len(record.t) - 1):
            record.save(path)
            with h5py.File(path, "r+") as file:
                values = file["work"][:rows]
                del file["work"]
                file["work"] = values
            with pytest.raises(DescriptionError, match=f"dataset `work`.* got {rows} rows"):
                type(record).load(path, law)


def test_a_motion_is_read_back(motion: Motion, tmp_path: Path) -> None:
    path = motion.save(tmp_path / "motion.h5")
    again = Motion.load(path, motion.model)
    for name in ("t", "q", "v", "s", "u", "work", "energy", "momentum"):
        np.testing.assert_array_equal(getattr(again, name), getattr(motion, name), err_msg=name)
    assert (again.method, again.seconds) == (motion.method, motion.seconds)
    still = reduce(planar_floater())
    with pytest.raises(DescriptionError, match="attribute `momentum`"):
        Motion.load(path, still)


def test_tables_have_headings_with_units_and_all_digits(
    run: Run, motion: Motion, tmp_path: Path
) -> None:
    for record in (run, motion):
        with open(record.to_csv(tmp_path / "record.csv"), newline="") as file:
            rows = list(csv.reader(file))
        assert rows[0][0] == "t [s]"
        place = {name: k for k, name in enumerate(rows[0])}
        values = np.array(rows[1:], dtype=float)
        assert len(values) == len(record.t)
        np.testing.assert_array_equal(values[:, 0], record.t)
        np.testing.assert_array_equal(values[:, place["q.base.x [m]"]], record.q[:, 0])
        np.testing.assert_array_equal(values[:, place["u.forearm [N m]"]], record.u[:, 1])
        np.testing.assert_array_equal(values[:, place["energy [J]"]], record.energy)
    with pytest.raises(ConcurError, match="a file that can be written"):
        run.to_csv(tmp_path / "record.csv" / "under.csv")


def test_logs_are_read_by_the_usual_reader(run: Run, tmp_path: Path) -> None:
    with open(run.to_mcap(tmp_path / "run.mcap"), "rb") as file:
        found: dict[str, list] = {}
        for schema, channel, message in make_reader(file).iter_messages():
            assert schema is not None
            assert schema.encoding == "jsonschema"
            found.setdefault(channel.topic, []).append((message.log_time, json.loads(message.data)))
    assert set(found) == {"/state", "/reference", "/torque", "/health"}
    assert all(len(messages) == len(run.t) for messages in found.values())
    for k in (0, len(run.t) - 1):
        stamp, state = found["/state"][k]
        assert stamp == round(run.t[k] * 1e9)
        assert state["q"]["base_x"] == run.q[k, 0]
        assert found["/torque"][k][1]["u"]["forearm"] == run.u[k, 1]
        assert found["/health"][k][1]["margin"] == run.margin[k]


def test_pickles_are_of_one_version(
    run: Run, motion: Motion, monkeypatch: pytest.MonkeyPatch
) -> None:
    for record in (run, motion):
        data = pickle.dumps(record)
        np.testing.assert_array_equal(pickle.loads(data).q, record.q)
        with monkeypatch.context() as later:
            later.setattr("concur.simulation._stored.__version__", "99.0")
            with pytest.raises(ConcurError, match=r"expected one of version 99\.0 of concur, got"):
                pickle.loads(data)


def test_the_suffix_is_the_format(run: Run, motion: Motion, tmp_path: Path) -> None:
    for record in (run, motion):
        for name, begin in (("a.h5", b"\x89HDF"), ("a.hdf5", b"\x89HDF"), ("a.csv", b"t [s],")):
            assert record.save(tmp_path / name).read_bytes().startswith(begin)
        for name in ("a.txt", "a", "a.h5.zip"):
            with pytest.raises(DescriptionError) as caught:
                record.save(tmp_path / name)
            assert caught.value.where == str(tmp_path / name)
            assert not (tmp_path / name).exists()


LIMITED = [30.0, 30.0, 20.0, 20.0, 20.0]


def _short_run(law: str) -> cc.Run:
    """A run of some law, of the rover or of a satellite that tumbles."""
    if law == "floater":
        robot = cc.robots.free_flyer()
        model = cc.reduce(robot, momentum=[0, 0, 0, 0.5, 0.2, 0.1])
        servo = cc.Servo(model, [cc.Output("hand", "tool", "R3xSO3")], 4.0, 4.0)
        q0 = [-0.5, -0.15, -0.2, 0, 0, 0, 1, 0.5, -1.5, 2.1, 0.2, -0.4, 0.8]
    else:
        robot = cc.robots.rover_arm()
        model, q0 = cc.reduce(robot), [0, 0, 0, 0, 0, -0.1, 1.0, -1.6]
        outputs = [
            cc.Output("base", "chassis", "R2", point=(0.25, 0, 0)),
            cc.Output("hand", "forearm", "R3", point=(0, 0.2, 0)),
        ]
        if law == "passive":
            servo = cc.PassiveServo(model, outputs, 4.0, 4.0, rate=1.0)
        else:
            options = {"limited": {"torque_limits": LIMITED}, "damped": {"damping_threshold": 0.1}}
            servo = cc.Servo(model, outputs, 4.0, 3.0, **options.get(law, {}))
    group = "R3xSO3" if law == "floater" else None
    goal = cc.references.hold(servo.output(q0), group=group)
    plant = cc.Plant(robot, friction=cc.simulation.Friction.of(robot, 0.1))
    return cc.simulate(robot, servo, goal, 0.05, q0, [0.0] * model.ns, dt=0.01, plant=plant)


@pytest.mark.by_default(1)
@pytest.mark.parametrize("law", ["limited", "floater", "plain"])
def test_a_file_of_a_servo_is_read_without_its_law(law: str, tmp_path: Path) -> None:
    run = _short_run(law)
    again = cc.Run.load(run.save(tmp_path / "run.h5"))
    for name in ("q", "v", "u", "error", "reference"):
        np.testing.assert_array_equal(getattr(again, name), getattr(run, name))
    q, s = run.q[-1], run.s[-1]
    group = "R3xSO3" if law == "floater" else None
    sample = cc.references.hold(run.servo.output(run.q[0]), group=group)(0.0)
    np.testing.assert_allclose(
        again.servo.torque(q, s, sample), run.servo.torque(q, s, sample), rtol=1e-12, atol=1e-12
    )
    tolerances = cc.simulation.Tolerances(1e-3)
    assert again.findings(tolerances) == run.findings(tolerances)
    assert again.plant_differences == run.plant_differences == ("friction",)


@pytest.mark.parametrize("law", ["damped", "passive"])
def test_a_file_that_does_not_describe_its_law_asks_for_it(law: str, tmp_path: Path) -> None:
    run = _short_run(law)
    path = run.save(tmp_path / "run.h5")
    with pytest.raises(DescriptionError) as refused:
        cc.Run.load(path)
    assert "servo" in refused.value.cure
    np.testing.assert_array_equal(cc.Run.load(path, run.servo).q, run.q)


def test_a_run_of_a_heavier_plant_asks_for_its_law(tmp_path: Path) -> None:
    robot = cc.robots.rover_arm()
    bodies = [replace(b, inertia=cc.Inertia(9.0, moments=(1, 1, 1))) if b.name == "chassis" else b
              for b in robot.bodies]  # fmt: skip
    run = replace(_short_run("plain"), robot=replace(robot, bodies=bodies))
    path = run.save(tmp_path / "run.h5")
    with pytest.raises(DescriptionError):
        cc.Run.load(path)
    assert cc.Run.load(path, run.servo, run.robot).plant_differences[0] == "inertia of `chassis`"


def test_recorded_states_give_the_run_they_come_from() -> None:
    task = cc.load_task("examples/rover_arm.toml")
    options = {"stiffness": [4.0, 9.0], "damping": [4.0, 6.0], "integral": 0.5}
    law = tracking_law(cc.Servo(cc.reduce(task.robot), task.outputs, **options), "servo")
    held = Integrator(dt=5e-3, control_period=5e-3)
    run = cc.simulate(task.robot, law, task.reference, 0.1, task.q0, task.s0, dt=held)
    state = np.zeros((21, law.nz))  # by hand: the integral of the errors, held in each period
    state[1:] = 5e-3 * np.cumsum(run.error[:-1], axis=0)
    rows = {name: getattr(run, name) for name in ("t", "q", "v", "u", "work")} | {"z": state}
    given = law, cc.Plant(task.robot), task.reference
    again = recorded_run(*given, 5e-3, rows, method="known", seconds=0.0)
    assert (again.method, again.control_period) == ("known", 5e-3)
    for name, values in run.arrays.items():
        if not name.endswith("_range"):
            np.testing.assert_allclose(again.arrays[name], values, 1e-9, 1e-12, name)
    np.testing.assert_array_equal(again.q_range, [run.q.min(axis=0), run.q.max(axis=0)])
