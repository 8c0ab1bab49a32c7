"""The first pages: their commands and edits lead to runs that pass and are shown.

The lines that install are left to .ci/run, which installs the package in fresh environments.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sysconfig
import urllib.request

import pytest
from typer.testing import CliRunner

from concur.cli import main
from concur.io import load_task
from tests.house.test_docs import ROOT, blocks

START = "docs/start.md"
PAGE = "docs/first_day.md"
COMMANDS = [line for block in blocks("bash", PAGE) for line in block.splitlines()]
FILES = ["my_satellite/robot.toml", "my_satellite/task.toml"]


def edit(folder):
    """Replace the tables of the files by those of the page, as the text asks."""
    edits = blocks("toml", PAGE)
    assert len(edits) == len(FILES)
    for name, block in zip(FILES, edits, strict=True):
        head = re.match(r"\[\[bodies\]\]\nname = .*\n|\[.*\]\n", block)[0]
        old = re.compile(re.escape(head) + r"(?:.+\n)*")
        path = folder / name
        changed, count = old.subn(lambda _, block=block: block, path.read_text())
        assert count == 1, f"{head} is {count} times in {name}"
        path.write_text(changed)


def test_page_has_less_than_ten_commands_and_little_to_type():
    assert [line.split()[0] for line in COMMANDS[:3]] == ["python3", ".", "python"]
    assert all(line.startswith("concur ") for line in COMMANDS[3:])
    assert len(COMMANDS) < 10
    typed = sum(map(len, [*COMMANDS, *blocks("toml", PAGE)]))
    assert typed < 5 * 200  # characters in five minutes, by a slow typist


def test_own_robot_follows_own_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert CliRunner().invoke(main, COMMANDS[3].split()[1:]).exit_code == 0
    edit(tmp_path)
    task = load_task(FILES[1])
    assert task.robot.bodies[0].inertia.mass == 25.0
    run = task.simulate()
    assert all(finding.holds is not False for finding in run.findings(task.tolerances))


def assert_shown(command, folder, environment):
    """A command of the viewer serves a page, and ends with Ctrl-C."""
    with subprocess.Popen(
        [*command.split(), "--no-browser"],
        cwd=folder,
        env=environment | {"PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        text=True,
    ) as viewer:
        try:
            line = viewer.stdout.readline()
            address = re.match(r"http://\S+", line)
            assert address, line
            with urllib.request.urlopen(address[0], timeout=20) as page:
                assert b"<html" in page.read().lower()
        finally:
            viewer.send_signal(signal.SIGINT)
        assert viewer.wait(timeout=20) == 0


@pytest.mark.extended
def test_commands_of_the_start_run(tmp_path):
    """From the examples to the viewer and the rig."""
    (tmp_path / "examples").symlink_to(ROOT / "examples", target_is_directory=True)
    scripts = sysconfig.get_path("scripts")
    environment = os.environ | {"PATH": scripts + os.pathsep + os.environ["PATH"]}
    lines = [line for block in blocks("bash", START) for line in block.splitlines()]
    track, view, drive = lines[3:]
    for command, word in ((track, "passed"), (drive, "END")):
        done = subprocess.run(
            ["bash", "-c", command], cwd=tmp_path, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        assert word in done.stdout
    assert_shown(view, tmp_path, environment)


@pytest.mark.extended
def test_commands_of_the_page_run(tmp_path):
    scripts = sysconfig.get_path("scripts")
    environment = os.environ | {"PATH": scripts + os.pathsep + os.environ["PATH"]}
    *first, last = COMMANDS[3:]
    for number, command in enumerate(first):
        done = subprocess.run(
            ["bash", "-c", command], cwd=tmp_path, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        if number == 0:
            edit(tmp_path)
    assert "passed" in done.stdout
    assert last == "concur view out/my_satellite"
    assert_shown(last, tmp_path, environment)
