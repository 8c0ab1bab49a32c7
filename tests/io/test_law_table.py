"""The table `[law]`: every kind of law wherever a task goes, and its errors."""

from __future__ import annotations

import json
import pickle
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from typer.testing import CliRunner

import concur as cc
from concur.cli import main
from concur.control import PassiveServo, Servo, TrackingLaw
from concur.errors import ConcurError
from concur.io import Task, load_task
from concur.io._world_file import write_world
from concur.simulation import Integrator
from concur.worlds import World
from hil.controller import Mode
from hil.reasons import Reason
from hil.replay import replay
from hil.rig import load_rig
from hil.session import SessionOptions, run_session

EXAMPLES = Path(__file__).parents[2] / "examples"
EXAMPLE = (EXAMPLES / "rover_arm.toml").read_text(encoding="utf-8")
TASK = (
    EXAMPLE[: EXAMPLE.index("[simulation]")]
    + """
[simulation]
duration = 0.2
dt = 0.005
control_period = 0.01

[tolerances]
final_error = 1.0
"""
)

START = """[initial]
start = "on reference"
near = { turret = -0.1, upper_arm = 1.0, forearm = -1.6 }

"""

OWN = """
import casadi as ca


class Springs:
    torque_limits = None

    def __init__(self, servo, stiffness=80.0, damping=40.0):
        self.servo, self.model, self.outputs = servo, servo.model, servo.outputs
        self.stiffness, self.damping = stiffness, damping

    def graph(self):
        names = ("q", "s", "pose", "twist")
        x = {name: ca.SX.sym(name, self.servo.inputs[name]) for name in names}
        rows = self.servo.decoupling(x["q"])
        force = self.stiffness * self.servo.pose_error(x["q"], x["pose"])
        force -= self.damping * (rows @ x["s"] - x["twist"])
        u = rows.T @ force + self.model.bias(x["q"], ca.SX(self.model.ns, 1))
        return ca.Function("springs", [*x.values()], [u], [*x], ["u"])


def nothing(servo):
    return None


def broken(servo):
    raise ValueError("half a law")


class Unnamed(Springs):
    def graph(self):
        return self.stiffness


class Free(Springs):
    def graph(self):
        s, k = ca.SX.sym("s", self.model.ns), ca.SX.sym("k")
        return ca.Function("free", [s], [-k * s], ["s"], ["u"])


class Misused(Springs):
    def graph(self):
        return self.model.mass_matrix([0.0])
"""

TABLES = {
    "passive": 'kind = "passive"\nstiffness = [60.0, 90.0]\ndamping = 60.0\nrate = 2.0',
    "pd": 'kind = "pd"\nstiffness = 40.0\ndamping = [9, 9, 5, 5, 5]\ntorque_limits = 30.0',
    "computed torque": 'kind = "computed torque"\nstiffness = 9.0\ndamping = { turret = 6.0 }',
    "own": 'kind = "own.py:Springs"\nstiffness = 100.0',
}


def task_of(folder: Path, table: str, more: str = "") -> Task:
    (folder / "own.py").write_text(OWN, encoding="utf-8")
    path = folder / "task.toml"
    path.write_text(f"{TASK}\n[law]\n{table}\n{more}", encoding="utf-8")
    return load_task(path)


def built(task: Task, kind: str) -> TrackingLaw:
    """The same law, made in Python."""
    model, outputs = cc.reduce(task.robot), task.outputs
    servo = Servo(model, outputs, task.stiffness, task.damping)
    if kind == "passive":
        return PassiveServo(model, outputs, [60.0, 90.0], 60.0, rate=2.0)
    if kind == "own":
        space = dict[str, object]()
        exec(OWN, space)
        return cc.control.tracking_law(space["Springs"](servo, 100.0))
    path = cc.laws.joint_reference(servo, task.reference, task.duration, task.q0)
    law = (
        cc.laws.PD(model, path, 40.0, [9, 9, 5, 5, 5], 30.0)
        if kind == "pd"
        else cc.laws.ComputedTorque(model, path, 9.0, {"turret": 6.0})
    )
    return cc.control.tracking_law(law, outputs=outputs)


def test_kinds_that_keep_no_constraints_do_not_drop_them(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(OWN, encoding="utf-8")
    path = tmp_path / "task.toml"
    path.write_text(f"{TASK}\n[servo.constraints]\n", encoding="utf-8")
    task = load_task(path)
    for kind in ("passive", "pd", "computed torque"):
        assert load_task("examples/rover_arm.toml").with_law(kind).law.constraints is None
        with pytest.raises(ConcurError, match=rf'servo\.constraints.*the kind "{kind}"'):
            task.with_law(kind)
    assert task.with_law("servo").law.constraints is not None
    assert task.with_law("own.py:Springs").law.name == "rover_arm"
    with pytest.raises(ConcurError, match="constraints"):
        load_task("examples/rover_arm.toml").with_law({"kind": "passive", "constraints": {}})


@pytest.mark.by_default(2)
@pytest.mark.parametrize("kind", TABLES)
def test_every_kind_is_simulated_with_its_errors(tmp_path: Path, kind: str) -> None:
    task = task_of(tmp_path, TABLES[kind])
    run, law = task.simulate(), built(task, kind)
    same = cc.simulate(
        task.robot,
        law,
        task.reference,
        task.duration,
        task.q0,
        task.s0,
        Integrator(dt=0.005, control_period=0.01),
    )
    assert_allclose(run.u, same.u, atol=1e-9)
    assert_allclose(run.error, same.error, atol=1e-12)
    assert run.error.shape[1] == 5
    assert not any("deviation" in row.quantity for row in run.rows)
    assert run.status == "passed"
    tick = task.law.compile(task.reference, interpreted=True)
    for k in (0, 7):
        assert_allclose(tick(run.t[2 * k], run.q[2 * k], run.s[2 * k]), run.u[2 * k], atol=1e-9)
    (tmp_path / "own.py").unlink()  # a pickle needs no files
    again = pickle.loads(pickle.dumps(task))
    assert_allclose(again.law.margin(task.q0), task.law.margin(task.q0))


WORLDS = """
[imperfections]
lag = 0.004
viscous = 0.1
noise = 1e-4
resolution = 1e-3
timing = { latency = 0.01 }

[uncertainty.mass]
forearm = { relative = [-0.2, 0.2] }
"""


@pytest.mark.parametrize(
    "kind", ["own", *(pytest.param(k, marks=pytest.mark.extended) for k in list(TABLES)[:3])]
)
def test_every_kind_runs_in_worlds_with_imperfections(tmp_path: Path, kind: str) -> None:
    task = task_of(tmp_path, TABLES[kind], WORLDS)
    found = cc.verify(task, 4, seed=1)
    assert found.values.shape[0] == 4
    assert np.isfinite(found.values).all()
    (tmp_path / "worlds").mkdir()
    write_world(task.path, tmp_path / "worlds/one.toml", World({"mass": {"forearm": 0.1}}))
    assert load_task(tmp_path / "worlds/one.toml").law.size == 5
    assert task.simulate().error.shape[1] == 5


@pytest.mark.parametrize("kind", ["computed torque", "own"])
def test_commands_take_the_law_of_the_task(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("concur.show.save_figures", lambda *_: {})
    task_of(tmp_path, TABLES[kind])
    path, runner = str(tmp_path / "task.toml"), CliRunner()

    def called(*words: str) -> dict[str, object]:
        done = runner.invoke(main, [words[0], path, *words[1:], "--json"])
        assert done.exit_code == 0, done.output
        return json.loads(done.stdout)

    assert called("track", "--out", str(tmp_path / "run"))["passed"] is True
    files = called("export", "--out", str(tmp_path / "c"))["files"]
    assert any(str(file).endswith(".c") for file in files)
    done = runner.invoke(main, ["certify", path])
    assert done.exit_code == 2
    assert "field `kind`" in done.output.replace("\n", " ")


@pytest.mark.extended
@pytest.mark.parametrize(
    "kind", ["computed torque", pytest.param("own", marks=pytest.mark.extended)]
)
def test_rigs_run_the_law_and_replay_it(tmp_path: Path, kind: str) -> None:
    """The law in joint space takes the time of the reference, which the record implies."""
    folder = shutil.copytree(EXAMPLES / "rover_rig", tmp_path / "rig")
    (folder / "own.py").write_text(OWN, encoding="utf-8")
    with (folder / "task.toml").open("a", encoding="utf-8") as file:
        file.write(f"\n[law]\n{TABLES[kind]}\n")
    rig = load_rig(folder / "rig.toml")
    options = SessionOptions(Mode.MOCK, 0.2, tmp_path / "run", heartbeat="auto", emulated=True)
    result = run_session(rig, options)
    assert result.outcome.reason is Reason.END
    report = replay(result.folder, rig)
    assert report.differences == ()
    assert report.evaluated > 30
    late = replace(rig.task, duration=rig.task.duration + 1.0)  # another motion of the joints
    assert replay(result.folder, rig, servo=late.law).passed is (kind == "own")


def test_certificates_and_proofs_are_for_a_servo(tmp_path: Path) -> None:
    task = task_of(tmp_path, TABLES["passive"])
    for call in (lambda: task.servo, task.proof_text):
        with pytest.raises(ConcurError, match=r"\[law\], field `kind`"):
            call()
    started = TASK.replace(TASK[TASK.index("[initial.q]") : TASK.index("[simulation]")], START)
    (tmp_path / "task.toml").write_text(f"{started}\n[law]\n{TABLES['pd']}\n", encoding="utf-8")
    task = load_task(tmp_path / "task.toml")
    assert not isinstance(task.law, Servo)
    assert task.s0.shape == (5,)
    with pytest.raises(ConcurError, match=r"\[law\], field `kind`"):
        task.servo  # noqa: B018
    assert task.nominal.servo.size == 5
    assert isinstance(task_of(tmp_path, 'kind = "servo"').law, Servo)
    assert load_task(tmp_path / "task.toml").servo.size == 5


@pytest.mark.parametrize(
    ("table", "place"),
    [
        ('kind = "ghost"', "[law], field `kind`"),
        ("rate = 2.0", "[law], field `kind`"),
        ("kind = 3", "[law], field `kind`"),
        ('kind = "passive"\nghost = 1', "[law], field `ghost`"),
        ('kind = "servo"\nstiffness = 4.0', "[law], field `stiffness`"),
        ('kind = "passive"\nstiffness = 60.0', "[law], field `rate`"),
        ('kind = "passive"\nrate = "x"', "[law], field `rate`"),
        ('kind = "passive"\nrate = 2.0\npayload = "ghost"', "[law]"),
        ('kind = "pd"\nstiffness = 4.0', "[law], field `damping`"),
        ('kind = "pd"\nstiffness = -4.0\ndamping = 1.0', "[law], field `stiffness`"),
        ('kind = "pd"\nstiffness = 4.0\ndamping = { ghost = 1.0 }', "[law], field `damping`"),
        ('kind = "missing.py:Law"', "[law], field `kind`"),
        ('kind = "own.py:ghost"', "[law], field `kind`"),
        ('kind = "own.py:nothing"', "[law], field `kind`"),
        ('kind = "own.py:broken"', "[law], field `kind`"),
        ('kind = "own.py:Springs"\nghost = 1.0', "[law], field `kind`"),
        ('kind = "passive"\nrate = 2.0\n\n[servo]\ntorque_limits = 5.0', "[law], field `kind`"),
    ],
)
def test_errors_name_table_and_field(tmp_path: Path, table: str, place: str) -> None:
    with pytest.raises(ConcurError) as caught:
        task_of(tmp_path, table).law  # noqa: B018 - laws are made at first use
    assert place in caught.value.where
    assert "task.toml" in caught.value.where


@pytest.mark.parametrize(
    ("name", "line", "reason"),
    [
        ("broken", OWN.count("\n", 0, OWN.index("raise ValueError")) + 1, "half a law"),
        ("Free", OWN.count("\n", 0, OWN.index('return ca.Function("free"')) + 1, "[k] are free"),
        ("Misused", OWN.count("\n", 0, OWN.index("mass_matrix([0.0])")) + 1, "shape (8,)"),
        ("Unnamed", None, "expected a casadi.Function"),
    ],
)
def test_errors_of_own_laws_have_the_line(
    tmp_path: Path, name: str, line: int | None, reason: str
) -> None:
    with pytest.raises(ConcurError) as caught:
        task_of(tmp_path, f'kind = "own.py:{name}"').law  # noqa: B018
    text = str(caught.value)
    assert reason in text
    assert ".cpp" not in text
    assert ("own.py: " in text and f"line {line} of own.py" in text) == (line is not None)
    with pytest.raises(ConcurError, match=r"line 2 of own\.py: SyntaxError"):
        cc.control.own_kind("x = 1\ndef f(:", "own.py", "f")
