"""Rig files: values that are read, and errors with place and cure for every kind of mistake."""

from __future__ import annotations

import copy
import json
import math
import pickle
import re
import shutil
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import hil.emulator
from concur.errors import DescriptionError
from concur.io import Task, load_task
from concur.tables import build
from hil import settings as settings_of_rigs
from hil.drives import _registry, drive_kinds
from hil.drives.mit_models import MIT_MODELS, mit_ranges
from hil.errors import ArmError, BusLoadError, RigFileError
from hil.rig import Axis, Policy, load_rig
from hil.rig import _load as rig_module
from tests.hil._acme import ACME, forgotten

ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "examples"
FILES = [
    "rover_rig/rig.toml",
    "rover_rig/rig_mit.toml",
    "rover_rig/rig_moteus.toml",
    "rover_rig/rig_odrive.toml",
    "floater_rig/rig.toml",
]
PAGE = (ROOT / "docs" / "rig_files.md").read_text(encoding="utf-8")

TASKS: dict[str, Task] = {}

Edit = Callable[[dict[str, Any]], None]


def written(value: Any) -> str:
    """Write a value as TOML."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k} = {written(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(written, value)) + "]"
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    return json.dumps(value)


def saved(table: dict[str, Any], folder: Path) -> Path:
    """Write a rig file beside the rover's task and robot, which `robot` of the table replaces."""
    table = dict(table)
    robot = table.pop("robot") if isinstance(table.get("robot"), dict) else None
    task = (EXAMPLES / "rover_rig" / "task.toml").read_text(encoding="utf-8")
    (folder / "task.toml").write_text(task, encoding="utf-8")
    shutil.copy(EXAMPLES / "rover_rig" / "robot.toml", folder)
    if robot is not None:
        text = "".join(f"{k} = {written(v)}\n" for k, v in robot.items())
        (folder / "robot.toml").write_text(text, encoding="utf-8")
    (folder / "operating.json").write_text('{"format": "concur operating box"}', encoding="utf-8")
    file = folder / "rig.toml"
    file.write_text("".join(f"{k} = {written(v)}\n" for k, v in table.items()), encoding="utf-8")
    return file


def whole(name: str = "rig.toml") -> dict[str, Any]:
    """Give the tables of a rig file of the rover."""
    return tomllib.loads((EXAMPLES / "rover_rig" / name).read_text(encoding="utf-8"))


def put(place: str, value: Any) -> Edit:
    """Give the edit that sets an entry; None removes it. Numbers in the place count axes.

    Places that begin with `robot.` are in the robot file.
    """

    def edit(table: dict[str, Any]) -> None:
        if place.startswith("robot."):
            table.setdefault("robot", whole("robot.toml"))
        *path, last = [int(part) if part.isdigit() else part for part in place.split(".")]
        inner: Any = table
        for part in path:
            inner = inner[part] if isinstance(part, int) else inner.setdefault(part, {})
        if value is None:
            del inner[last]
        else:
            inner[last] = value

    return edit


@pytest.fixture(autouse=True)
def tasks_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read the same task only once; these tests are about the rig file."""

    def load(path: Path) -> Task:
        files = (path, path.with_name("robot.toml"))
        text = "".join(file.read_text(encoding="utf-8") for file in files if file.exists())
        if text not in TASKS:
            TASKS[text] = load_task(path)
        return replace(TASKS[text], path=path)

    monkeypatch.setattr(rig_module, "load_task", load)


def both(*edits: Edit) -> Edit:
    def edit(table: dict[str, Any]) -> None:
        for one in edits:
            one(table)

    return edit


def refused(
    edit: Edit, tmp_path: Path, file: str = "rig.toml", error: type = RigFileError
) -> RigFileError:
    """Read an edited rig file of the rover; it must be refused."""
    table = copy.deepcopy(whole(file))
    edit(table)
    path = saved(table, tmp_path)
    with pytest.raises(error) as caught:
        load_rig(path)
    assert str(path) in str(caught.value)
    return caught.value


# --- reading ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FILES)
def test_examples_are_read(name: str) -> None:
    rig = load_rig(EXAMPLES / name)
    servo = rig.task.servo
    assert tuple(axis.name for axis in rig.axes) == servo.model.control_names
    assert rig.task.control_period == rig.loop.period
    assert all(isinstance(axis, Axis) for axis in rig.axes)
    rig.check_operator()


@pytest.mark.extended
def test_limits_of_the_examples_leave_room_above_the_simulated_torque() -> None:
    for name in ("rover_rig/rig.toml", "floater_rig/rig.toml"):
        rig = load_rig(EXAMPLES / name)
        task = replace(rig.task, duration=4.0)  # torques are largest at the start
        run = task.simulate(task.servo)
        peaks = np.abs(np.asarray(run.u)).max(axis=0)
        limits = np.array([axis.torque_limit for axis in rig.axes])
        assert np.all(1.4 * peaks < limits), (name, peaks)


def test_fields_arrive_where_they_belong() -> None:
    rig = load_rig(EXAMPLES / "rover_rig" / "rig.toml")
    assert rig.name == "rover on CiA 402 drives"
    assert rig.path == EXAMPLES / "rover_rig" / "rig.toml"
    assert rig.buses[0].options == {"port": 43113}
    assert rig.policies.on_late is Policy.HOLD
    assert rig.recorder.directory == Path("rig-records")
    assert rig.pose is None
    right = rig.axes[1]
    assert (right.direction, right.node, right.rated_torque, right.counts) == (-1, 2, 4.0, 4096)
    assert rig.axes[0].position_limits == (-math.inf, math.inf)
    assert rig.axes[3].position_limits == (0.2, 1.5)
    assert rig.axes[3].offset == 1.0
    pose = load_rig(EXAMPLES / "floater_rig" / "rig.toml").pose
    assert pose is not None
    assert (pose.port, pose.gives) == (47131, "pose")


def test_axes_are_sorted_into_the_order_of_the_controls(tmp_path: Path) -> None:
    table = whole()
    table["axes"] = table["axes"][::-1]
    rig = load_rig(saved(table, tmp_path))
    names = ("left_wheel", "right_wheel", "turret", "upper_arm", "forearm")
    assert tuple(axis.name for axis in rig.axes) == names
    assert [axis.node for axis in rig.axes] == [1, 2, 3, 4, 5]


def test_damping_and_stiffness_have_defaults_and_may_be_given(tmp_path: Path) -> None:
    table = whole()
    table["axes"][0] |= {"damping": 0.5, "stiffness": 7.0}
    table["axes"][1]["damping"] = 0.6
    left, right, turret, *_ = load_rig(saved(table, tmp_path)).axes
    assert (left.damping, left.stiffness) == (0.5, 7.0)
    assert (right.damping, right.stiffness) == (0.6, 3.0)
    assert (turret.damping, turret.stiffness) == (12.0 / 3.0, 20.0)
    assert turret.damping * turret.speed_limit == turret.torque_limit


def test_ranges_of_a_model_are_filled_in_and_own_ranges_are_kept(tmp_path: Path) -> None:
    table = whole("rig_mit.toml")
    own = {"position": [-4.0, 4.0], "velocity": [-30.0, 30.0], "torque": [-20.0, 20.0]}
    own |= {"kp": [0.0, 100.0], "kd": [0.0, 2.0]}
    del table["axes"][2]["model"]
    table["axes"][2]["ranges"] = own
    left, _, turret, *_ = load_rig(saved(table, tmp_path)).axes
    assert left.ranges == MIT_MODELS["AK60-6"]
    assert turret.ranges == {name: tuple(ends) for name, ends in own.items()}
    assert mit_ranges(turret) is turret.ranges


def test_ranges_are_those_of_the_manual() -> None:
    # CubeMars, AK Series Actuator Driver Manual V1.0.8, page 50: rad/s and N m.
    table = {
        "AK10-9": (50, 65),
        "AK60-6": (45, 15),
        "AK70-10": (50, 25),
        "AK80-6": (76, 12),
        "AK80-9": (50, 18),
        "AK80-80": (8, 144),
        "AK80-64": (8, 144),
        "mini-cheetah": (65, 18),
    }
    assert set(MIT_MODELS) == set(table)
    for model, (velocity, torque) in table.items():
        ranges = MIT_MODELS[model]
        assert ranges["position"] == (-12.5, 12.5)
        assert ranges["velocity"] == (-velocity, velocity)
        assert ranges["torque"] == (-torque, torque)
        assert (ranges["kp"], ranges["kd"]) == ((0, 500), (0, 5))
        row = next(line for line in PAGE.splitlines() if line.startswith(f"| `{model}` |"))
        assert [float(cell) for cell in row.split("|")[2:5]] == [12.5, velocity, torque]


def test_faults_of_the_emulator_are_read(tmp_path: Path) -> None:
    table = whole()
    fault = {"kind": "drop", "axis": "turret", "at": 5, "lasting": 0.1}
    table["emulator"] |= {"faults": [fault], "friction": {"turret": 0.2}, "control_port": 47140}
    emulator = load_rig(saved(table, tmp_path)).emulator
    assert emulator.faults == (fault,)
    assert emulator.friction == {"turret": 0.2}


def test_a_registered_kind_of_drive_is_accepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = whole()
    for axis in table["axes"]:
        axis["drive"] = "acme"
    with pytest.raises(RigFileError, match=r"moteus, odrive.*got `acme`.*register_drive"):
        load_rig(saved(table, tmp_path))
    kinds = "cia402", "mit", "moteus", "odrive", "acme"
    monkeypatch.setattr("hil.rig._load.drive_kinds", lambda: kinds)
    assert load_rig(saved(table, tmp_path)).axes[0].drive == "acme"


# --- files that register kinds of drives ------------------------------------------------------


@pytest.fixture
def kinds() -> Iterator[None]:
    """Restore the registries after the test."""
    with forgotten():
        yield


def acme(folder: Path, *files: str, drive: str = "acme", **texts: str) -> Path:
    """Write a rig file that names Python files, with these texts, and a drive of this kind."""
    table = {"drive_modules": list(files)} | whole()
    for axis in table["axes"]:
        axis["drive"] = drive
    for name, text in texts.items():
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    return saved(table, folder)


@pytest.mark.usefixtures("kinds")
def test_a_file_registers_a_kind_of_drive_once(tmp_path: Path) -> None:
    (tmp_path / "copy").mkdir()
    for folder in (tmp_path, tmp_path, tmp_path / "copy"):
        rig = load_rig(acme(folder, "acme.py", acme=ACME))
        assert rig.drive_modules == (folder / "acme.py",)
        assert rig.axes[0].drive == "acme"
    assert drive_kinds() == ("cia402", "mit", "moteus", "odrive", "acme")
    assert pickle.loads(pickle.dumps(_registry._KINDS["acme"])) is _registry._KINDS["acme"]
    assert [path.name for path in tmp_path.glob("**/*.pyc")] == []


@pytest.mark.usefixtures("kinds")
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1", r"a Python file that registers a kind .*acme\.py, which registers none"),
        ("x = = 1", r"can be imported, got SyntaxError: .*line 1"),
        (ACME + "1 / 0", r"can be imported, got ZeroDivisionError in line 10: division"),
        (ACME + "raise SystemExit(2)", r"got SystemExit in line 10: 2\. .*__main__"),
        (ACME.replace('"acme"', '"mit"'), r"got RigFileError in line 8: .*an unused name"),
        (ACME.replace("AcmeDrive)", "3)"), r"got RigFileError in line 8: .*got 3"),
        ("\0", r"got SyntaxError"),
        ("import hil; hil.load_rig(__file__[:-7] + 'rig.toml')", r"reads no rig file while"),
    ],
)
def test_a_file_that_registers_nothing_leaves_nothing_behind(
    text: str, message: str, tmp_path: Path
) -> None:
    known, emulated, modules = drive_kinds(), dict(hil.emulator.KINDS), set(sys.modules)
    for _ in range(2):
        with pytest.raises(RigFileError) as caught:
            load_rig(acme(tmp_path, "acme.py", acme=text))
        error = caught.value
        assert re.search(message, str(error)), str(error)
        assert error.where == f"{tmp_path / 'rig.toml'}, field `drive_modules[0]`"
        assert error.field == "drive_modules[0]"
        assert (drive_kinds(), hil.emulator.KINDS) == (known, emulated)
        assert not [name for name in set(sys.modules) - modules if name.startswith("drive_mod")]
    assert load_rig(acme(tmp_path, "acme.py", acme=ACME)).axes[0].drive == "acme"


@pytest.mark.usefixtures("kinds")
def test_a_file_that_changes_after_its_import_is_reported(tmp_path: Path) -> None:
    load_rig(acme(tmp_path, "acme.py", acme=ACME))
    with pytest.raises(RigFileError, match=r"the name of AcmeDrive.* restart Python"):
        load_rig(acme(tmp_path, "acme.py", acme=ACME + "# another"))


@pytest.mark.usefixtures("kinds")
def test_a_kind_that_no_file_registers_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        RigFileError, match=r"\(cia402, mit, moteus, odrive, acme\), got `zebu`.*`drive_modules`"
    ):
        load_rig(acme(tmp_path, "acme.py", drive="zebu", acme=ACME))


def test_files_of_drives_must_be_there(tmp_path: Path) -> None:
    (tmp_path / "folder.py").mkdir()
    for name, message in [
        ("acne.py", r"a Python file \(.py\), got no file .*Did you mean `acme.py`\?"),
        ("task.toml", r"a Python file \(.py\), got .*task.toml"),
        ("folder.py", r"a Python file \(.py\), got .*folder.py"),
        ("", "text of at most"),
    ]:
        with pytest.raises(RigFileError, match=message) as caught:
            load_rig(acme(tmp_path, "acme.py", name, acme=ACME))
        assert caught.value.field == "drive_modules[1]"
    assert "acme" not in drive_kinds()


def test_a_rig_without_an_operator_cannot_be_driven(tmp_path: Path) -> None:
    table = whole()
    table["operator"]["required"] = False
    rig = load_rig(saved(table, tmp_path))
    with pytest.raises(ArmError, match=r"`required`: expected true .* got false"):
        rig.check_operator()


# --- rejected files ---------------------------------------------------------------------------

AXIS = ("torque_rate_limit", "rated_torque", "power_limit", "torque_share", "speed_share")
POSITIVE = [f"axes.2.{name}" for name in (*AXIS, "damping", "stiffness", "watchdog")]
POSITIVE += ["loop.rate", "loop.receive_window", "policies.stop_time", "policies.start_error"]
POSITIVE += ["operator.timeout", "estimator.bandwidth", "recorder.seconds", "emulator.dt"]
POSITIVE += ["pose.timeout", "pose.largest_jump"]
NOT_NEGATIVE = ["loop.spin", "estimator.latency", "estimator.pose_gain", "emulator.latency"]
NOT_NEGATIVE += ["emulator.loss", "emulator.pose_rate", "emulator.pose_noise"]
NOT_NEGATIVE += ["emulator.jitter", "emulator.pose_latency", "emulator.pose_loss"]
FINITE = ["axes.2.offset", "bus.largest_load"]


NO_NUMBERS = [math.nan, math.inf, -math.inf, "1.0", True, [1.0], {}]


@pytest.mark.parametrize("place", POSITIVE + NOT_NEGATIVE + FINITE)
def test_a_number_is_a_finite_number(place: str, tmp_path: Path) -> None:
    for value in NO_NUMBERS:
        error = refused(put(place, value), tmp_path)
        assert error.field == place.split(".")[-1], value
        assert error.cure, value


@pytest.mark.parametrize("place", POSITIVE + NOT_NEGATIVE)
def test_a_number_has_the_right_sign(place: str, tmp_path: Path) -> None:
    for value in [0.0, -1.0] if place in POSITIVE else [-1e-9]:
        error = refused(put(place, value), tmp_path)
        assert error.field == place.split(".")[-1]
        assert f"{value:g}" in str(error)


@pytest.mark.parametrize(
    ("place", "value", "expected"),
    [
        ("name", "", "text"),
        ("task", None, "text"),
        ("bus", None, "a table"),
        ("bus.interface", None, "text"),
        ("bus.bitrate", 2_000_000, "a whole number from 10000 to 1000000"),
        ("bus.largest_load", 1.1, "a number above 0, at most 1"),
        ("bus.options", 3, "a table"),
        ("loop.priority", 100, "a whole number from 0 to 99"),
        ("loop.lock_memory", 1, "true or false"),
        ("policies.on_late", "brake", 'one of "hold", "damp", "stop"'),
        ("policies.stop_category", 0, "1 or 2 (category 0"),
        ("policies.startup_cycles", 0, "a whole number above zero"),
        ("policies.max_consecutive_faults", 1.5, "a whole number not below zero"),
        ("operator.port", 0, "a port from 1 to 65535"),
        ("operator.required", "yes", "true or false"),
        ("pose.kind", "tcp", 'one of "udp", "zmq"'),
        ("pose.gives", "velocity", 'one of "pose", "position", "attitude"'),
        ("emulator.loss", 1.0, "a number from 0 to below 1"),
        ("emulator.seed", -1, "a whole number not below zero"),
        ("emulator.friction.turret", -0.1, "a number of zero or more"),
        ("emulator.faults", 3, "a list of tables"),
        ("emulator.control_port", -1, "a port from 1 to 65535, or 0 for none"),
        ("recorder.directory", 7, "text"),
        ("certificate", False, "text"),
        ("axes", [], "at least one table [[axes]]"),
        ("drive_modules", "acme.py", "a list of names of Python files"),
        ("drive_modules", [3], "text"),
        ("axes.2.name", None, "text"),
        ("axes.2.drive", None, "text"),
        ("axes.2.node", None, "a whole number from 1 to 2047"),
        ("axes.2.node", 0, "a whole number from 1 to 2047"),
        ("axes.2.node", 2048, "a whole number from 1 to 2047"),
        ("axes.2.direction", 0, "one of 1, -1"),
        ("axes.2.direction", True, "one of 1, -1"),
        ("axes.2.torque_share", 1.01, "a number above 0, at most 1"),
        ("axes.2.torque_unit", "peak", 'one of "rated", "maximum", "count"'),
        ("axes.2.torque_rate_limit", None, "a number above zero"),
    ],
)
def test_a_field_has_its_type_and_range(
    place: str, value: Any, expected: str, tmp_path: Path
) -> None:
    error = refused(put(place, value), tmp_path)
    assert error.expected.startswith(expected), error.expected
    if place.startswith("axes.2.") and place != "axes.2.name":
        assert error.table == '[[axes]] "turret"'


def test_the_jitter_of_an_emulated_rig_is_at_most_ten_seconds(tmp_path: Path) -> None:
    table = copy.deepcopy(whole("rig.toml"))
    put("emulator.jitter", 10.0)(table)
    assert load_rig(saved(table, tmp_path)).emulator.jitter == 10.0
    error = refused(put("emulator.jitter", math.nextafter(10.0, 11.0)), tmp_path)
    assert (error.table, error.field) == ("[emulator]", "jitter")
    assert error.expected == "a time from 0 to 10 s"


@pytest.mark.parametrize(
    ("place", "value", "cure"),
    [
        ("robot", "rover_arm", "The task names the robot"),
        ("axes.2.gear", 1.0, "The robot file has it in the table [[motors]]"),
        ("axes.2.counts", 4096, "as `encoder` in the table [[motors]]"),
        ("axes.2.torque_constant", 0.1, "in the table [[motors]]"),
        (
            "axes.2.torque_limit",
            12.0,
            "as `torque` in the table [[motors]] of the motor. `torque_s",
        ),
        ("axes.2.speed_limit", 3.0, "as `speed` in the table [[motors]] of the motor. `speed_s"),
        ("axes.2.position_limits", [-1.2, 1.2], "in the robot file, as `limits` of the joints"),
        ("axis", [], "Write a table [[axes]]"),
        ("polices", {}, "Did you mean `policies`?"),
        ("bus.bit_rate", 500_000, "Did you mean `bitrate`?"),
        ("loop.period", 0.004, "`rate`, in Hz"),
        ("policies.on_latte", "hold", "Did you mean `on_late`?"),
        ("operator.time_out", 1.0, "Did you mean `timeout`?"),
        ("pose.quaternion", 1, "Remove it."),
        ("estimator.band_width", 3.0, "Did you mean `bandwidth`?"),
        ("recorder.folder", "x", "Remove it."),
        ("emulator.los", 0.1, "Did you mean `loss`?"),
    ],
)
def test_a_misspelt_field_is_refused(place: str, value: Any, cure: str, tmp_path: Path) -> None:
    error = refused(put(place, value), tmp_path)
    assert cure in error.cure
    assert "unknown field" in error.came


def drop(axis: int) -> Edit:
    def edit(table: dict[str, Any]) -> None:
        del table["axes"][axis]

    return edit


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (
            put("axes.2.name", "turet"),
            r"a motor of the robot \(left_wheel.*`turet`. Did you mean `turre",
        ),
        (put("axes.2.name", "chassis"), r"a motor of the robot .*`chassis`"),
        (put("axes.2.name", "left_wheel"), r"`left_wheel` twice"),
        (drop(3), r"field `axes`: .*got no axis for `upper_arm`"),
        (put("axes.2.node", 1), r"got 1, the number of `left_wheel`"),
        (put("axes.2.node", 127), r"from 1 to 126, got 127. .* 127 is the host"),
        (put("axes.2.drive", "cia401"), r"a kind of drive .*Did you mean `cia402`\?"),
        (put("axes.2.rated_torque", None), r"the rated torque.* got no value"),
        (put("robot.motors.2.encoder", None), r"a motor with an encoder.*`turret` without one"),
        (put("robot.motors.2.torque", None), r"a largest torque, .*robot.toml: `torque` in"),
        (put("robot.motors.2.speed", None), r"a largest speed, got `turret` without one"),
        (put("axes.2.model", "AK80-9"), r"`model`: expected no such field on a CiA 402 drive"),
        (
            put("robot.bodies.3.limits", [0.0, 1.2]),
            r"a start of `turret` within its limits, \[0, 1.2\], got -0.1",
        ),
        (put("axes.2.watchdog", 0.019), r"0.02 to 0.2 s, got 0.019 s"),
        (put("axes.2.watchdog", 0.21), r"0.02 to 0.2 s, got 0.21 s"),
        (
            put("axes.2.rated_torque", 3e-4),
            r"`torque_share`: expected a torque of at most 0.00983.* got 12",
        ),
        (put("axes.2.rated_torque", 700.0), r"a torque above 14, twenty steps"),
        (put("axes.2.torque_share", 0.009), r"a torque above 0.12, twenty steps .*0.006"),
        (
            put("loop", {"rate": 500.0}),
            r"the simulation of the task, 250 Hz .*got 500 Hz. Set rate = 250, or control_period",
        ),
        (put("loop.rate", 20000.0), r"at most 10000"),
        (put("loop.receive_window", 0.004), r"shorter than the period of 0.004 s"),
        (put("loop.spin", 0.005), r"shorter than the period of 0.004 s"),
        (put("policies.max_consecutive_faults", 51), r"faulty cycles, 50 at 250 Hz, got 51"),
        (put("operator.timeout", 0.008), r"more than two periods \(0.008 s\), at most 2 s"),
        (put("operator.timeout", 2.5), r"at most 2 s, got 2.5 s"),
        (put("estimator.bandwidth", 125.0), r"less than half the loop's rate, 125 Hz"),
        (put("estimator.latency", 1.0), r"at most 0.1 s"),
        (put("emulator.dt", 0.005), r"not longer than the period"),
        (put("emulator.pose_rate", 100.0), r"a table \[pose\]"),
        (put("emulator.friction.turet", 1.0), r"an axis .*Did you mean `turret`\?"),
        (put("emulator.faults", [{"axis": "turret"}]), r"faults\]\] number 1, field `kind`"),
        (put("emulator.faults", [{"kind": "explode"}]), r"one of drop.*got 'explode'"),
        (put("emulator.faults", [{"kind": "drop", "axis": "leg"}]), r"field `axis`.*`leg`"),
        (put("emulator.faults", [{"kind": "drop", "at": -1}]), r"field `at`"),
        (put("emulator.faults", [{"kind": "drop", "when": 1}]), r"field `when`"),
        (
            put("emulator.control_port", 47110),
            r"an unused port, got 47110, the port of \[operator\]",
        ),
        (put("pose.port", 47110), r"an unused port, got 47110"),
        (put("task", "tusk.toml"), r"a task file, got no file .*Did you mean `task.toml`\?"),
        (put("certificate", "proof.json"), r"a certificate, got no file"),
    ],
)
def test_parts_that_do_not_fit_are_refused(edit: Edit, message: str, tmp_path: Path) -> None:
    assert re.search(message, str(refused(edit, tmp_path)))


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (put("axes.2.model", "AK80-8"), r"a known model .*Did you mean `AK80-"),
        (put("axes.2.model", None), r"either a model or `ranges`, got no value"),
        (put("axes.2.rated_torque", 1.0), r"no such field on an MIT drive"),
        (put("axes.2.torque_unit", "rated"), r"no such field on an MIT drive"),
        (put("robot.motors.2.torque", 18.1), r"at most 18 at the motor"),
        (
            both(put("robot.motors.2.gear", 0.5), put("robot.motors.2.encoder_at", "joint"),
                 put("robot.motors.2.torque", 37.0)),
            r"at most 36 at the motor",
        ),
        (put("axes.2.torque_share", 0.01), r"a torque above 0.1758, twenty steps"),
        (put("robot.motors.2.speed", 51.0), r"at most 50 at the motor, the largest that"),
        (put("robot.bodies.3.limits", [-13.0, 1.0]), r"within \[-12.5, 12.5\], got \[-13, 1\]"),
        (put("axes.2.offset", 12.0), r"within \[-0.5, 24.5\]"),
        (put("axes.2.node", 2), r"got 2, the number of `right_wheel`"),
        (put("axes.2.node", 127), r"from 1 to 126, got 127"),
        (
            both(put("robot.motors.0.speed", 44.0), put("axes.0.watchdog", 0.2)),
            r"at most 31.25, so that the turns",
        ),
        (
            both(put("axes.2.drive", "cia402"), put("axes.2.model", None),
                 put("axes.2.rated_torque", 6.0)),
            r"one protocol on a bus",
        ),
    ],
)  # fmt: skip
def test_parts_that_do_not_fit_mit_drives_are_refused(
    edit: Edit, message: str, tmp_path: Path
) -> None:
    assert re.search(message, str(refused(edit, tmp_path, "rig_mit.toml")))


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (
            put("bus.data_bitrate", None),
            r"`data_bitrate`: expected the bit rate of the data of CAN",
        ),
        (put("bus.data_bitrate", 999_999), r"at least `bitrate`, 1000000"),
        (put("bus.data_bitrate", 8_000_001), r"to 8000000"),
        (put("axes.2.node", 125), r"from 1 to 124.*got 125.*125 is the host"),
        (put("axes.2.node", 2), r"got 2, the number of `right_wheel`"),
        (put("axes.2.model", "AK80-9"), r"no such field on a moteus drive"),
        (put("axes.2.rated_torque", 1.0), r"no such field on a moteus drive"),
        (
            both(put("axes.2.drive", "mit"), put("axes.2.model", "AK80-9")),
            r"one protocol on a bus, got an MIT drive beside a moteus drive",
        ),
    ],
)
def test_parts_that_do_not_fit_moteus_drives_are_refused(
    edit: Edit, message: str, tmp_path: Path
) -> None:
    assert re.search(message, str(refused(edit, tmp_path, "rig_moteus.toml")))


ENDPOINTS = {"firmware": "0.6.10", "watchdog_timeout": 301, "enable_watchdog": 300}


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (put("axes.2.node", 63), r"from 1 to 62, got 63"),
        (put("axes.2.rated_torque", 1.0), r"no such field on an ODrive"),
        (put("axes.2.endpoints", ENDPOINTS | {"enable_watchdog": 0}), r"from 1 to 65535"),
        (put("axes.2.endpoints", {"firmware": "0.6.10"}), r"watchdog"),
        (put("axes.2.endpoints", ENDPOINTS | {"timeout": 3}), r"unknown field `timeout`"),
    ],
)
def test_parts_that_do_not_fit_odrives_are_refused(
    edit: Edit, message: str, tmp_path: Path
) -> None:
    assert re.search(message, str(refused(edit, tmp_path, "rig_odrive.toml")))


@pytest.mark.parametrize("name", ["rig.toml", "rig_mit.toml", "rig_odrive.toml"])
def test_drives_with_classic_frames_have_no_second_bit_rate(name: str, tmp_path: Path) -> None:
    error = refused(put("bus.data_bitrate", 5_000_000), tmp_path, name)
    assert "classic frames" in error.cure


def test_the_gear_of_a_moteus_drive_is_that_of_its_encoder(tmp_path: Path) -> None:
    """As of an MIT drive: with the encoder at the joint, its numbers are those of the joint."""
    rig = load_rig(EXAMPLES / "rover_rig" / "rig_moteus.toml")
    assert {(axis.gear, axis.counts) for axis in rig.axes} == {(1.0, 4096)}


GIVEN = {
    "position": [-12.5, 12.5],
    "velocity": [-50.0, 50.0],
    "torque": [-18.0, 18.0],
    "kp": [0.0, 500.0],
    "kd": [0.0, 5.0],
}


@pytest.mark.parametrize(
    ("name", "ends", "message"),
    [
        ("torque", [18.0, -18.0], r"ranges.torque`: expected lower <= 0 < upper"),
        ("torque", [1.0, 18.0], r"lower <= 0 < upper"),
        ("velocity", [0.0, 0.0], r"ranges.velocity"),
        ("kp", [-1.0, 500.0], r"ranges.kp`: expected lower = 0 < upper"),
        ("kd", None, r"`ranges.kd`: .*no value"),
        ("position", [1.0], r"a lower and an upper end"),
        ("current", [0.0, 1.0], r"unknown field `current`"),
    ],
)
def test_ranges_that_no_drive_has_are_refused(
    name: str, ends: Any, message: str, tmp_path: Path
) -> None:
    ranges = {**GIVEN, name: ends}
    if ends is None:
        del ranges[name]
    edit = both(put("axes.2.model", None), put("axes.2.ranges", ranges))
    error = refused(edit, tmp_path, "rig_mit.toml")
    assert re.search(message, str(error)), str(error)
    assert refused(put("axes.2.ranges", GIVEN), tmp_path, "rig_mit.toml").came == "both"


def test_a_watchdog_bridges_more_than_two_periods(tmp_path: Path) -> None:
    table = whole()
    task = (EXAMPLES / "rover_rig" / "task.toml").read_text(encoding="utf-8")
    table["loop"] |= {"rate": 20.0, "receive_window": 1.5e-3}
    table["policies"]["max_consecutive_faults"] = 1
    table["estimator"]["bandwidth"] = 5.0
    path = saved(table, tmp_path)
    (tmp_path / "task.toml").write_text(
        task.replace("control_period = 0.004", "control_period = 0.05")
    )
    with pytest.raises(RigFileError, match=r"more than two periods of the loop, 0.1 s, got 0.1 s"):
        load_rig(path)


def test_an_impossible_rate_is_refused_with_the_arithmetic(tmp_path: Path) -> None:
    error = refused(put("bus.bitrate", 250_000), tmp_path, error=BusLoadError)
    assert "5 x 135 bit + 5 x 95 bit + 1 x 55 bit + 1 x 65 bit = 1270 bit per cycle" in str(error)
    assert "Set rate = 131 or less" in str(error)
    assert error.load.share > 0.8


def test_a_driven_joint_of_several_freedoms_is_refused(tmp_path: Path) -> None:
    robot = """
        name = "wrist"
        [[bodies]]
        name = "body"
        joint = { type = "Free" }
        inertia = { mass = 10.0, moments = [1.0, 1.0, 1.0] }
        [[bodies]]
        name = "ball"
        parent = "body"
        joint = { type = "Spherical" }
        inertia = { mass = 1.0, moments = [0.1, 0.1, 0.1] }
    """
    task = """
        name = "point"
        robot = "wrist.toml"
        [[outputs]]
        name = "hand"
        body = "ball"
        group = "SO3"
        stiffness = 1.0
        damping = 2.0
        [reference.hand]
        kind = "hold"
        point = [0.0, 0.0, 0.0, 1.0]
        [simulation]
        duration = 1.0
    """
    path = saved(whole(), tmp_path)
    (tmp_path / "wrist.toml").write_text(robot)
    (tmp_path / "task.toml").write_text(task)
    with pytest.raises(
        RigFileError, match=r"`ball\[wx\]` on `ball\[wx\]`, of a joint of type Spherical"
    ) as caught:
        load_rig(path)
    assert "a chain of" in caught.value.cure


def test_files_of_another_kind_are_refused(tmp_path: Path) -> None:
    task = EXAMPLES / "rover_rig" / "task.toml"
    with pytest.raises(RigFileError, match="expected a rig file, got a task file"):
        load_rig(task)
    with pytest.raises(RigFileError, match="got no file of this name"):
        load_rig(tmp_path / "none.toml")
    with pytest.raises(RigFileError, match="expected a TOML file, got a directory"):
        load_rig(tmp_path)
    (tmp_path / "bad.toml").write_text("name = \n")
    with pytest.raises(RigFileError, match="line 1"):
        load_rig(tmp_path / "bad.toml")
    with pytest.raises(RigFileError, match="expected the path of a TOML file"):
        load_rig(3)  # type: ignore[arg-type]


def test_a_fault_of_the_task_names_the_task(tmp_path: Path) -> None:
    path = saved(whole(), tmp_path)
    task = tmp_path / "task.toml"
    task.write_text(task.read_text().replace("duration = 60.0", "duration = -1.0"))
    with pytest.raises(DescriptionError) as caught:
        load_rig(path)
    assert str(task) in caught.value.where
    assert not isinstance(caught.value, RigFileError)


JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**40), 2**40),
    st.floats(),
    st.sampled_from(["", "x", "cia402", "mit", "hold", "AK80-9"]),
    st.lists(st.one_of(st.floats(), st.text("ab", max_size=2)), max_size=3),
    st.dictionaries(st.sampled_from(["kind", "x", "torque"]), st.floats(), max_size=2),
)


def leaves(value: Any, place: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Give the places of all entries and tables of a file."""
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    found = [place] if place else []
    for key, entry in inner:
        below = leaves(entry, (*place, key)) if isinstance(entry, (dict, list)) else []
        found += below or [(*place, key)]
    return found


PLACES = [(name, place) for name in ("rig.toml", "rig_mit.toml") for place in leaves(whole(name))]


@pytest.mark.extended
@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(PLACES), JUNK)
def test_whatever_stands_in_a_file_it_is_read_or_refused(
    at: tuple[str, tuple[str | int, ...]], junk: Any
) -> None:
    name, place = at
    table = copy.deepcopy(whole(name))
    inner: Any = table
    for key in place[:-1]:
        inner = inner[key]
    if junk is None:
        del inner[place[-1]]
    else:
        inner[place[-1]] = junk
    with tempfile.TemporaryDirectory() as folder:
        path = saved(table, Path(folder))
        try:
            said = f"{path}: {len(load_rig(path).axes)} axes"
        except (RigFileError, BusLoadError) as error:
            said = str(error)
    assert str(path) in said
    assert "None" not in said


# --- the page -----------------------------------------------------------------------------------

BLOCKS = re.findall(r"^```toml\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


def test_the_file_on_the_page_is_read(tmp_path: Path) -> None:
    path = saved({}, tmp_path)
    path.write_text(BLOCKS[0], encoding="utf-8")
    assert len(load_rig(path).axes) == 5
    table = whole("rig_mit.toml")
    table["axes"][2] = tomllib.loads(BLOCKS[1])["axes"][0]
    turret = load_rig(saved(table, tmp_path)).axes[2]
    assert (turret.model, turret.watchdog) == ("AK80-9", 0.05)
    part = tomllib.loads(BLOCKS[2])
    several = whole() | {"bus": part["bus"]}
    for axis in several["axes"]:
        axis |= part["axes"][0] if axis["name"] == "turret" else {"bus": "base"}
    assert load_rig(saved(several, tmp_path)).bus_of == (0, 0, 1, 0, 0)
    assert len(BLOCKS) == 3


# --- bounds of drives, on both sides ----------------------------------------------------------


def axis_of(edit: Edit, tmp_path: Path, place: int) -> Axis:
    """Read an edited rig file of the rover, which must be taken."""
    table = copy.deepcopy(whole())
    edit(table)
    return load_rig(saved(table, tmp_path)).axes[place]


def test_an_encoder_that_starts_again_counts_for_more_than_the_range(tmp_path: Path) -> None:
    """The turret turns by 2.4 rad, 1564.5 of its 4096 counts."""
    assert axis_of(put("axes.2.modulo", 1565), tmp_path, 2).modulo == 1565
    error = refused(put("axes.2.modulo", 1564), tmp_path)
    assert "range of the motor" in error.expected


@pytest.mark.parametrize("place", [0, 2])
def test_turns_can_be_counted_although_reports_are_lost(place: int, tmp_path: Path) -> None:
    """A quarter of half a turn within a watchdog of 0.1 s; wheels have no range."""
    largest = 0.25 * math.pi / 0.1
    for factor in (0.999, 1.001):
        edit = both(
            put(f"axes.{place}.modulo", 2048),
            put(f"robot.motors.{place}.speed", factor * largest),
        )
        if factor < 1.0:
            assert axis_of(edit, tmp_path, place).modulo == 2048
        else:
            assert "turns of its encoder" in refused(edit, tmp_path).expected


@pytest.mark.parametrize(
    ("bound", "right", "what"),
    [(8.0 / 32767, 1.001, "the drive's largest number"), (0.05 * 8.0, 0.999, "twenty steps")],
)
def test_torques_in_counts_reach_the_limit_and_are_fine_enough(
    bound: float, right: float, what: str, tmp_path: Path
) -> None:
    def counted(size: float) -> Edit:
        return both(
            put("axes.0.torque_unit", "count"),
            put("axes.0.torque_count", size),
            put("axes.0.rated_torque", None),
        )

    assert axis_of(counted(right * bound), tmp_path, 0).torque_count == right * bound
    error = refused(counted(bound / right), tmp_path)
    assert what in error.expected


# -- both sides of each bound of a field -------------------------------------------------------


BOUNDS: dict[str, tuple[Any, Any, Any, Any]] = {  # below, least, most, above
    "Torque": (0.9e-6, 1e-6, 1e6, 1.1e6),
    "Used": (0.0, 1e-9, 1.0, 1.1),
    "Counts": (0, 1, 2**30, 2**30 + 1),
    "Cycles": (0, 1, 10_000, 10_001),
    "Natural": (-1, 0, 2**31 - 1, 2**31),
    "Place": (-1.1e6, -1e6, 1e6, 1.1e6),
    "Seconds": (0.9e-6, 1e-6, 1e3, 1.1e3),
    "Delay": (-1e-9, 0.0, 10.0, 10.1),
    "StopTime": (0.9e-3, 1e-3, 10.0, 10.1),
    "Deviation": (0.9e-9, 1e-9, 10.0, 10.1),
    "Step": (0.9e-5, 1e-5, 1.0, 1.1),
    "Rate": (-1e-9, 0.0, 1e4, 1.1e4),
    "NotNegative": (-1e-9, 0.0, 1e9, 1.1e9),
    "Positive": (0.9e-12, 1e-12, 1e9, 1.1e9),
}


@pytest.mark.parametrize("name", BOUNDS)
def test_both_sides_of_each_bound(name: str) -> None:
    def held(value: Any) -> Any:
        return value

    held.__annotations__["value"] = getattr(settings_of_rigs, name)
    below, least, most, above = BOUNDS[name]
    for value in (least, most):
        assert build(held, {"value": value}, "f.toml") == value
    for value in (below, above):
        with pytest.raises(DescriptionError):
            build(held, {"value": value}, "f.toml")
