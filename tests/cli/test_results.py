"""Folders of results belong to the last run that was started there."""

from __future__ import annotations

import errno
import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5py
import pytest
from typer.testing import CliRunner

from concur.cli import main
from concur.cli._answer import Reply
from concur.cli._folder import MANIFEST, results
from concur.errors import ConcurError

CALL = "from concur.cli import main; main()"


def run(*arguments: Any) -> Any:
    return CliRunner().invoke(main, [str(a) for a in arguments])


@pytest.fixture
def task(tmp_path: Path) -> Path:
    """A task of a planar floater that is done in a moment."""
    path = tmp_path / "task.toml"
    path.write_text("""
name = "short"
robot = "planar_floater"
[[outputs]]
name = "hand"
body = "forearm"
group = "R2"
point = [0.4, 0.0, 0.0]
stiffness = 4.0
damping = 4.0
[reference.hand]
kind = "hold"
point = [0.9, 0.5]
[initial.q]
upper_arm = 0.6
forearm = 1.2
[simulation]
duration = 0.1
dt = 0.01
[tolerances]
final_error = 1.0
momentum = 1e-6
""")
    return path


def entry(folder: Path, command: str = "track") -> dict[str, Any]:
    stored: dict[str, Any] = json.loads((folder / MANIFEST).read_text())[command]
    return stored


def files(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


@pytest.fixture
def green(task: Path, tmp_path: Path, undrawn: None) -> Path:
    """A folder with a run that passed, without figures."""
    folder = tmp_path / "out"
    result = run("track", task, "--out", folder)
    assert result.exit_code == 0, result.output
    assert files(folder) == {"run.h5", "report.html", MANIFEST}
    assert entry(folder)["status"] == "passed"
    return folder


def test_rerun_replaces_its_own_results(task: Path, green: Path) -> None:
    (green / "notes.txt").write_text("mine")
    (green / "c").mkdir()
    result = run("track", task, "--out", green, "--json")
    assert result.exit_code == 0, result.output
    assert (green / "notes.txt").read_text() == "mine"
    listed = {Path(name).name for name in json.loads(result.stdout)["files"]}
    assert listed == {"run.h5", "report.html", MANIFEST}


@pytest.mark.parametrize("change", ["syntax", "option", "infeasible"])
def test_refused_run_leaves_no_older_report(task: Path, green: Path, change: str) -> None:
    more = []
    if change == "syntax":
        task.write_text("nonsense")
    elif change == "option":
        more = ["--animation", "avi"]
    else:
        task.write_text(task.read_text().replace("[0.9, 0.5]", "[9.0, 0.5]"))
    result = run("track", task, "--out", green, *more)
    assert result.exit_code == (1 if change == "infeasible" else 2)
    assert files(green) == {MANIFEST}
    assert entry(green)["status"] == "refused"
    assert entry(green)["why"]


def test_failed_run_leaves_no_older_report(
    task: Path, green: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError("a fault of ours")

    monkeypatch.setattr("concur.io._task.simulate", broken)
    assert isinstance(run("track", task, "--out", green).exception, RuntimeError)
    assert files(green) == {MANIFEST}
    assert entry(green)["status"] == "failed"


def test_folder_of_others_is_left_alone(task: Path, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "report.html").write_text("an older page")
    for command in ("track", "certify", "export"):
        result = run(command, task, "--out", folder)
        assert result.exit_code == 2
        assert "other files: report.html" in result.stderr
        assert files(folder) == {"report.html"}
    task.write_text("nonsense")
    assert run("track", task, "--out", folder, "--overwrite").exit_code == 2
    assert files(folder) == {MANIFEST}


@pytest.mark.parametrize("name", ["run.h5", MANIFEST])
@pytest.mark.parametrize("more", [[], ["--overwrite"]])
def test_folder_where_a_result_goes_is_refused_before_the_run(
    task: Path, tmp_path: Path, name: str, more: list[str]
) -> None:
    folder = tmp_path / "mine"
    (folder / name).mkdir(parents=True)
    result = run("track", task, "--out", folder, *more)
    assert result.exit_code == 2
    assert f"no folder with the name of a result: {name}" in result.stderr
    assert "simulating" not in result.output
    assert files(folder) == {name}


def test_file_of_others_beside_results_is_not_replaced(task: Path, green: Path) -> None:
    (green / MANIFEST).write_text(
        json.dumps({"concur": "0", "track": {"files": ["report.html"], "status": "passed"}})
    )
    result = run("track", task, "--out", green)
    assert result.exit_code == 2
    assert "other files: run.h5" in result.stderr


@pytest.mark.parametrize("text", ["[]", "{", '{"track": {"files": ["../x"]}}', "{}"])
def test_file_that_is_no_manifest_makes_no_folder_ours(
    task: Path, tmp_path: Path, text: str
) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / MANIFEST).write_text(text)
    assert run("track", task, "--out", folder).exit_code == 2
    assert (folder / MANIFEST).read_text() == text


def test_manifest_cannot_name_files_elsewhere(task: Path, tmp_path: Path) -> None:
    outside = tmp_path / "precious.txt"
    outside.write_text("keep")
    folder = tmp_path / "mine"
    folder.mkdir()
    names = ["../precious.txt", str(outside)]
    text = json.dumps({"concur": "0", "track": {"files": names}})
    (folder / MANIFEST).write_text(text)
    assert run("track", task, "--out", folder).exit_code == 2
    assert outside.read_text() == "keep"


def test_symbolic_links_are_not_followed(task: Path, green: Path, tmp_path: Path) -> None:
    outside = tmp_path / "precious.txt"
    outside.write_text("keep")
    (green / "run.h5").unlink()
    (green / "run.h5").symlink_to(outside)
    assert run("track", task, "--out", green).exit_code == 0
    assert outside.read_text() == "keep"
    assert not (green / "run.h5").is_symlink()
    link = tmp_path / "link"
    link.symlink_to(green)
    result = run("track", task, "--out", link)
    assert result.exit_code == 2
    assert "a symbolic link to" in result.stderr
    assert entry(green)["status"] == "passed"


def test_commands_share_a_folder(task: Path, green: Path) -> None:
    result = run("export", task, "--out", green)
    assert result.exit_code == 0, result.output
    exported = set(entry(green, "export")["files"])
    assert exported
    assert files(green) == {"run.h5", "report.html", MANIFEST} | exported
    task.write_text("nonsense")
    assert run("export", task, "--out", green).exit_code == 2
    assert files(green) == {"run.h5", "report.html", MANIFEST}
    assert entry(green, "export")["status"] == "refused"
    assert entry(green)["status"] == "passed"


def test_result_of_another_command_is_not_replaced(task: Path, green: Path) -> None:
    """The proof would end with a page of the same name."""
    before = (green / "report.html").read_bytes()
    result = run("prove", task, "--out", green)
    assert result.exit_code == 2
    assert "other files: report.html" in result.stderr
    assert (green / "report.html").read_bytes() == before
    assert "prove" not in json.loads((green / MANIFEST).read_text())


def test_pictures_that_fail_leave_the_numbers(
    task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise ConcurError("x.png", expected="a file", came="No space left", cure="Free some.")

    monkeypatch.setattr("concur.show.save_figures", full)
    folder = tmp_path / "out"
    assert run("track", task, "--out", folder).exit_code == 2
    assert files(folder) == {"run.h5", MANIFEST}
    assert entry(folder)["status"] == "partial"
    assert "No space left" in entry(folder)["why"]


@pytest.mark.extended
def test_full_disk_keeps_the_run_elsewhere(task: Path, tmp_path: Path) -> None:
    """No file of the folder may be longer than 2 kB: the run is, the manifest is not."""
    rescue, folder = tmp_path / "rescue", tmp_path / "out"
    rescue.mkdir()

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (2048, 2048))

    process = subprocess.run(
        [sys.executable, "-c", CALL, "track", str(task), "--out", str(folder)],
        preexec_fn=limit,
        env={**os.environ, "TMPDIR": str(rescue)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 2, process.stderr
    assert "run.h5" in process.stderr
    assert "File too large" in process.stderr
    assert not (folder / "report.html").exists()
    assert not (folder / "run.h5").exists()


def test_run_that_cannot_be_saved_is_kept_elsewhere(
    task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rescue, folder = tmp_path / "rescue", tmp_path / "out"
    rescue.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(rescue))
    write = Path.write_bytes

    def full(path: Path, data: Any) -> int:
        if folder in path.parents:
            raise OSError(28, "No space left on device")
        return write(path, data)

    monkeypatch.setattr(Path, "write_bytes", full)
    result = run("track", task, "--out", folder)
    assert result.exit_code == 2
    (kept,) = rescue.glob("concur-*/run.h5")
    assert str(kept) in result.stderr
    with h5py.File(kept) as file:
        assert file["t"].shape == (11,)


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Take SIGINT also where the tests run in the background, which ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible", "undrawn")
def test_interrupted_run_is_kept_as_partial(
    task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A real SIGINT, as soon as the simulation has some steps."""
    text = task.read_text().replace("duration = 0.1", "duration = 8.0")
    task.write_text(text.replace("dt = 0.01", "dt = 0.001"))
    folder = tmp_path / "out"

    @contextmanager
    def interrupted(reply: Reply, title: str) -> Iterator[Any]:
        yield lambda part, *_: part > 0.05 and signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Reply, "progress", interrupted)
    result = run("track", task, "--out", folder, "--json")
    assert result.exit_code == 1, result.output
    answer = json.loads(result.stdout)
    assert not answer["passed"]
    assert answer["stopped"].startswith("interrupted at t = ")
    assert entry(folder)["status"] == "partial"
    assert "does not meet its task" in (folder / "report.html").read_text()
    with h5py.File(folder / "run.h5") as file:
        assert 200 < file["t"].shape[0] < 2000
        assert "interrupted" in file.attrs["stopped"]


@pytest.mark.usefixtures("interruptible")
def test_interrupt_before_the_first_step_leaves_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "out"
    with pytest.raises(KeyboardInterrupt), results(folder, "track"):
        signal.raise_signal(signal.SIGINT)
    assert not (tmp_path / "deep").exists()


def half_done(folder: Path) -> None:
    """Publish numbers, stage half a picture, and be interrupted."""
    with results(folder, "track") as kept:
        (kept.staging / "run.h5").write_bytes(b"numbers")
        kept.publish([kept.staging / "run.h5"])
        (kept.staging / "half.png").write_bytes(b"")
        signal.raise_signal(signal.SIGINT)


@pytest.mark.usefixtures("interruptible")
def test_interrupt_amid_the_pictures_keeps_the_numbers_only(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        half_done(tmp_path)
    assert files(tmp_path) == {"run.h5", MANIFEST}
    assert entry(tmp_path)["status"] == "partial"


@pytest.mark.parametrize("name", ["a" * 300, "a\0b", "task.toml", "task.toml/out"])
@pytest.mark.parametrize("command", ["track", "certify", "export"])
def test_name_that_no_folder_can_have_is_refused(task: Path, command: str, name: str) -> None:
    refusal = pytest.raises(ConcurError, match="a folder that can be written")
    with refusal as caught, results(task.parent / name, command):
        raise AssertionError("nothing may run")
    assert caught.value.cure == "Name another folder."
    assert files(task.parent) == {"task.toml"}


def test_full_disk_is_told_from_a_wrong_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("concur.cli._folder.tempfile.mkstemp", full)
    with pytest.raises(ConcurError, match="Free some space"), results(tmp_path / "out", "track"):
        raise AssertionError("nothing may run")


def test_limits_that_are_missed_are_named(task: Path, green: Path) -> None:
    task.write_text(task.read_text().replace("final_error = 1.0", "final_error = 1e-9"))
    result = run("track", task, "--out", green)
    assert result.exit_code == 1
    assert "failed (limits missed: error of hand, final)" in " ".join(result.output.split())
    assert entry(green)["why"] == "error of hand, final"


def test_units_are_warned_of_before_the_task_is_refused(
    task: Path, green: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise ConcurError("servo", expected="this", came="that", cure="Do so.")

    monkeypatch.setattr("concur.io.Task.law", property(refuse))
    task.write_text(task.read_text().replace("forearm = 1.2", "forearm = -46.0"))
    result = run("track", task, "--out", green)
    assert result.exit_code == 2
    assert "deg instead of rad?" in " ".join(result.output.split())
