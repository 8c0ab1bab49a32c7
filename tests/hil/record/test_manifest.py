"""Manifests: description of a run, so that later differences are detected."""

import dataclasses
import hashlib
import json
import math

import numpy as np
import pytest

import concur as cc
from concur._version import __version__
from concur.codegen import fingerprint
from concur.io import load_task
from hil.clock import SteppedClock
from hil.errors import RecordError
from hil.record._drain import end_manifest, release_end
from hil.record.copies import FOLDER, save_copies, valid_copies
from hil.record.manifest import (
    columns,
    file_hash,
    fingerprints,
    make_manifest,
    read_manifest,
    write_manifest,
)
from hil.record.rows import Layout
from tests.hil._records import layout_of_rig, make_rig, task_and_servo
from tests.io.test_task import TASK


@pytest.fixture
def rig(tmp_path):
    return make_rig(tmp_path)


@pytest.fixture
def manifest(rig):
    return make_manifest(rig, layout_of_rig(rig), task_and_servo()[1], mode="shadow", ring="r")


def test_a_manifest_survives_its_file(manifest, tmp_path):
    write_manifest(tmp_path, manifest)
    assert read_manifest(tmp_path) == json.loads(json.dumps(manifest))


def test_it_tells_what_was_run(manifest, rig):
    assert manifest["fingerprints"]["rig"] == hashlib.sha256(b'name = "rover"\n').hexdigest()
    assert manifest["fingerprints"]["task"] == file_hash(rig.task.path)
    assert manifest["fingerprints"]["law"] == fingerprint("tick", task_and_servo()[1])
    assert (manifest["mode"], manifest["ring"], manifest["certificate"]) == ("shadow", "r", None)
    assert manifest["packages"]["concur"] == __version__
    assert {"numpy", "casadi", "python-can"} <= set(manifest["packages"])
    assert all(manifest["machine"].values())
    assert "end" not in manifest


def test_the_clock_of_the_loop_is_tied_to_the_calendar(rig):
    clock = SteppedClock(start=77.0)
    made = make_manifest(rig, layout_of_rig(rig), task_and_servo()[1], clock=clock)
    assert made["clock_at_start"] == 77.0
    assert made["wall_minus_clock"] > 1.6e9


def test_robot_and_law_have_fingerprints_of_their_own(rig):
    servo = task_and_servo()[1]
    base = fingerprints(rig, servo)
    softer = dataclasses.replace(servo, stiffness=0.5 * servo.stiffness)
    other = fingerprints(rig, softer)
    assert {name for name in base if base[name] != other[name]} == {"law"}
    rig.path.write_text('name = "another"\n')
    again = fingerprints(rig, servo)
    assert {name for name in base if base[name] != again[name]} == {"rig"}


def test_files_of_drives_have_a_fingerprint_together(rig, tmp_path):
    servo = task_and_servo()[1]
    assert fingerprints(rig, servo)["driver"] is None  # as in records without drivers
    files = (tmp_path / "a.py", tmp_path / "b.py")
    own = dataclasses.replace(rig, drive_modules=files)
    for file in files:
        file.write_text("x = 1\n")
    made = make_manifest(own, layout_of_rig(rig), servo)
    base = made["fingerprints"]
    for file in files:
        file.write_text("x = 2\n")
        other = fingerprints(own, servo)
        assert {name for name in base if base[name] != other[name]} == {"driver"}
        base = other


def test_files_that_are_not_there_have_no_hash(rig):
    rig.path.unlink()
    made = make_manifest(rig, layout_of_rig(rig), task_and_servo()[1])
    assert made["fingerprints"]["rig"] is None
    assert file_hash(rig.path) is None


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ('{"status": "PROVED", "format": "x"}', "PROVED"),
        ("{}", "no certificate"),
        ("[]", "no certificate"),
        ("{", "no certificate"),
        (None, "missing"),
    ],
)
def test_the_manifest_contains_the_status_of_the_certificate(rig, tmp_path, text, status):
    path = tmp_path / "certificate.json"
    if text is not None:
        path.write_text(text)
    certified = dataclasses.replace(rig, certificate=path)
    made = make_manifest(certified, layout_of_rig(rig), task_and_servo()[1])
    assert made["certificate"]["status"] == status
    assert made["certificate"]["sha256"] == file_hash(path)


@pytest.mark.extended
def test_a_certificate_of_the_law_is_recognised(rig, tmp_path):
    certificate = cc.certify(task_and_servo()[1])
    certificate.save(tmp_path / "certificate.json")
    certified = dataclasses.replace(rig, certificate=tmp_path / "certificate.json")
    made = make_manifest(certified, layout_of_rig(rig), task_and_servo()[1])
    assert made["certificate"]["status"] == certificate.status.name


def test_a_layout_that_does_not_fit_the_servo_still_has_names():
    layout = Layout(("a", "b"), 1, 1, 1, 1)
    told = columns(task_and_servo()[1], layout)
    for name, span in layout.spans.items():
        assert len(told[name]) == span.stop - span.start
    assert told["q"] == [["q[0]", "1"]]


def test_twists_of_a_direction_are_longer_than_its_errors():
    robot = cc.robots.rover_arm()
    antenna = cc.Output("antenna", "forearm", "S2", axis=(0.0, 1.0, 0.0))
    servo = cc.Servo(cc.reduce(robot), [antenna], 9.0, 6.0)
    layout = Layout.of(servo.model.control_names, servo)
    told = columns(servo, layout)
    assert Layout.from_dict(layout.to_dict()) == layout
    assert told["error"] == [["antenna.tilt1", "rad"], ["antenna.tilt2", "rad"]]
    assert told["twist"] == [[f"antenna.r{axis}", "rad/s"] for axis in "xyz"]
    for name in ("pose", "twist", "acceleration", "error"):
        assert len(told[name]) == layout.spans[name].stop - layout.spans[name].start


def test_forces_and_lengths_have_their_units():
    robot = cc.robots.orbital_crawler()
    model = cc.reduce(robot, momentum=np.zeros(6))
    names = model.control_names
    units = dict(zip(names, model.control_units, strict=True))
    assert "N" in units.values()

    class FakeServo:
        outputs = ()
        use_measured_velocity = False

    FakeServo.model = model
    told = columns(FakeServo(), Layout(tuple(names), robot.nq, len(model.shape_names), 0, 0))
    for (name, force), (_, length), (_, rate) in zip(
        told["torque"], told["position"], told["velocity"], strict=True
    ):
        assert force == units[name]
        assert (length, rate) == (("m", "m/s") if force == "N" else ("rad", "rad/s"))


def test_the_end_is_added_and_nothing_else_changes(manifest, tmp_path):
    write_manifest(tmp_path, manifest)
    end_manifest(tmp_path, {"reason": "closed", "rows": 5})
    end_manifest(tmp_path, {"reason": "the operator", "counters": {"x": math.inf}})
    found = read_manifest(tmp_path)
    assert found.pop("end") == {"reason": "the operator", "rows": 5, "counters": {"x": np.inf}}
    assert found == json.loads(json.dumps(manifest))
    release_end(tmp_path)
    assert [path.name for path in tmp_path.glob("*manifest*")] == ["manifest.json"]


def test_a_manifest_that_cannot_be_written_is_an_error(manifest, tmp_path):
    with pytest.raises(RecordError, match="Set another `directory`"):
        write_manifest(tmp_path / "none", manifest)


# -- copies of the source files, with their relative paths -------------------------------------


@pytest.fixture
def spread(tmp_path):
    """Rig, task, robot, module and certificate in three folders."""
    home = tmp_path / "lab"
    for folder in ("rigs", "tasks", "robots"):
        (home / folder).mkdir(parents=True)
    rig = make_rig(home / "rigs")
    task = dataclasses.replace(
        rig.task, path=home / "tasks" / "task.toml", robot_file="../robots/arm.toml"
    )
    module, proof = home / "rigs" / "drive.py", home / "rigs" / "proof.json"
    for path, text in (
        (task.path, "task"),
        (home / "robots" / "arm.toml", "robot"),
        (module, "module"),
        (proof, "{}"),
    ):
        path.write_text(text)
    return dataclasses.replace(rig, task=task, drive_modules=(module,), certificate=proof)


def test_files_stand_beside_each_other_as_they_did(spread, tmp_path):
    copies = save_copies(spread, tmp_path / "record")
    assert {copy["role"]: copy["file"] for copy in copies} == {
        "rig": "rigs/rig.toml",
        "task": "tasks/task.toml",
        "robot": "robots/arm.toml",
        "drive module": "rigs/drive.py",
        "certificate": "rigs/proof.json",
    }
    for copy in copies:
        data = (tmp_path / "record" / FOLDER / copy["file"]).read_bytes()
        assert data == (tmp_path / "lab" / copy["file"]).read_bytes()
        assert copy["sha256"] == hashlib.sha256(data).hexdigest()
    assert valid_copies(copies)


def test_a_robot_that_comes_with_the_package_is_not_copied(tmp_path):
    rig = make_rig(tmp_path)
    assert load_task(rig.task.path).robot_file is None
    roles = [copy["role"] for copy in save_copies(rig, tmp_path / "record")]
    assert roles == ["rig", "task"]


def test_files_of_references_and_laws_are_copied(tmp_path):
    rig, text = make_rig(tmp_path), TASK
    head, rest = text.split("[reference.base]", 1)
    _, rest = rest.split("[reference.hand]", 1)
    file = '[reference.base]\nkind = "file"\nfile = "base.csv"\n\n[reference.hand]'
    (tmp_path / "reach.toml").write_text(head + file + rest + '\n[law]\nkind = "law.py:law"\n')
    (tmp_path / "law.py").write_text("def law(q, s, reference): ...\n")
    times = np.linspace(0.0, 30.0, 301)
    np.savetxt(tmp_path / "base.csv", np.stack([times, 0.3 * times, 0.0 * times], 1), delimiter=",")
    rig = dataclasses.replace(rig, task=load_task(tmp_path / "reach.toml"))
    copies = save_copies(rig, tmp_path / "record")
    assert [copy["role"] for copy in copies] == ["rig", "task", "drive module", "reference"]
    assert [copy["file"] for copy in copies[2:]] == ["law.py", "base.csv"]


def test_what_is_gone_is_left_out(spread, tmp_path):
    spread.drive_modules[0].unlink()
    roles = {copy["role"] for copy in save_copies(spread, tmp_path / "record")}
    assert roles == {"rig", "task", "robot", "certificate"}


def test_copies_that_cannot_be_written_are_refused(spread, tmp_path):
    (tmp_path / "record").mkdir()
    (tmp_path / "record" / FOLDER).write_text("in the way")
    with pytest.raises(RecordError, match="can be written"):
        save_copies(spread, tmp_path / "record")
