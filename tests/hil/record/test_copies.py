"""Copies of the source files of a record: complete, with their relative paths."""

import dataclasses
import hashlib

import pytest

from concur.formats import load_task
from hil.errors import RecordError
from hil.record.copies import FOLDER, save_copies, valid_copies
from tests.hil._records import make_rig


@pytest.fixture
def rig(tmp_path):
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


def test_files_stand_beside_each_other_as_they_did(rig, tmp_path):
    copies = save_copies(rig, tmp_path / "record")
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


def test_what_is_gone_is_left_out(rig, tmp_path):
    rig.drive_modules[0].unlink()
    roles = {copy["role"] for copy in save_copies(rig, tmp_path / "record")}
    assert roles == {"rig", "task", "robot", "certificate"}


def test_copies_that_cannot_be_written_are_refused(rig, tmp_path):
    (tmp_path / "record").mkdir()
    (tmp_path / "record" / FOLDER).write_text("in the way")
    with pytest.raises(RecordError, match="can be written"):
        save_copies(rig, tmp_path / "record")
