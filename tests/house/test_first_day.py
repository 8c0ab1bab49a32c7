"""The first pages: their commands and edits lead to runs that pass and are shown.

The lines that install are left to .ci/run, which installs the package in fresh environments.
"""

from __future__ import annotations

import math
import os
import re
import signal
import subprocess
import sys
import sysconfig
import urllib.request

import numpy as np
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


SPACECRAFT = "docs/howto/spacecraft.md"


def panda(file):
    """An arm with the names and the places of joints of a Panda, and with inertias of our own."""
    places = (
        *((0, 0, 0.333, 0), (0, 0, 0, -90), (0, -0.316, 0, 90), (0.0825, 0, 0, 90)),
        *((-0.0825, 0.384, 0, -90), (0, 0, 0, 90), (0.088, 0, 0, 90)),
    )
    ends = (
        *((-2.9, 2.9, 87), (-1.76, 1.76, 87), (-2.9, 2.9, 87), (-3.07, -0.07, 87)),
        *((-2.9, 2.9, 12), (-0.02, 3.75, 12), (-2.9, 2.9, 12)),
    )
    parts = []
    for k in range(8):
        mass = max(0.5, 3.0 - 0.4 * k)
        inertia = " ".join(f'i{axis}="{0.01 * mass}"' for axis in ("xx", "yy", "zz"))
        zeros = " ".join(f'i{axis}="0"' for axis in ("xy", "xz", "yz"))
        parts.append(
            f'<link name="panda_link{k}"><inertial><origin xyz="0.01 0.02 -0.03"/>'
            f'<mass value="{mass}"/><inertia {inertia} {zeros}/></inertial></link>'
        )
    joint = (
        '<joint name="{}" type="{}"><parent link="panda_link{}"/><child link="{}"/>'
        '<origin xyz="{} {} {}" rpy="{} 0 {}"/><axis xyz="{}"/>{}</joint>'
    )
    for k, ((x, y, z, turn), (low, high, most)) in enumerate(zip(places, ends, strict=True)):
        limit = f'<limit lower="{low}" upper="{high}" effort="{most}" velocity="2.175"/>'
        roll, name = math.radians(turn), f"panda_joint{k + 1}"
        child = f"panda_link{k + 1}"
        parts.append(joint.format(name, "revolute", k, child, x, y, z, roll, 0, "0 0 1", limit))
    tip = "panda_hand_tcp"
    parts.append(f'<link name="{tip}"/><link name="finger"><inertial><mass value="0.01"/>')
    parts.append('<inertia ixx="1e-6" iyy="1e-6" izz="1e-6" ixy="0" ixz="0" iyz="0"/>')
    parts.append("</inertial></link>")
    parts.append(joint.format("tip", "fixed", 7, tip, 0, 0, 0.21, 0, -math.pi / 4, "0 0 1", ""))
    limit = '<limit lower="0" upper="0.04" effort="100" velocity="0.2"/>'
    name = "panda_finger_joint1"
    parts.append(joint.format(name, "prismatic", 7, "finger", 0, 0, 0.16, 0, 0, "0 1 0", limit))
    file.write_text(f'<robot name="panda">{"".join(parts)}</robot>')


@pytest.mark.extended
def test_arm_on_a_spacecraft_runs_from_its_files_to_code_and_laws(tmp_path):
    """The page with an arm of the same names, as the package may not be there."""
    panda(tmp_path / "panda.urdf")
    (path,), (loop,) = blocks("python", SPACECRAFT), blocks("c", SPACECRAFT)
    install, check, export, compare = blocks("bash", SPACECRAFT)
    get, _, new, enter, track, view = install.splitlines()
    assert get == "python -m pip install example-robot-data==6.0.0"
    assert (enter, view) == ("cd chaser", "concur view out/run")
    scripts = sysconfig.get_path("scripts")
    environment = os.environ | {"PATH": scripts + os.pathsep + os.environ["PATH"]}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))

    def run(command, folder=tmp_path / "chaser"):
        done = subprocess.run(
            ["bash", "-euc", command], cwd=folder, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    run(new, tmp_path)
    assert "passed" in run(track)
    file = tmp_path / "chaser/hand.csv"
    samples = np.loadtxt(file, delimiter=",", skiprows=1)
    (tmp_path / "chaser/path.py").write_text(path)
    (tmp_path / "chaser/loop.c").write_text(f'#include "chaser.h"\n{loop}')
    said = run(check)
    again = np.loadtxt(file, delimiter=",", skiprows=1)
    assert np.abs(again - samples).max() < 1.5e-5  # a digit of the attitude, which angles round
    assert "reference of hand: 1201 samples that scatter by" in said
    assert "arm_panda_joint4 -0.2 to 0.2 N m, of the robot" in said
    assert "arm_panda_joint5 -0.12 to 0.12 N m, of the robot" in said  # 12 N m of the URDF file
    assert "base `hull` at the start: x 0 y 0 z 0" in said
    assert re.search(r"joints at the start: (arm_panda_joint\d -?[\d.]+ rad(, |\n)){7}", said)
    assert "spin of `hull` at the start: (0.3, -0.4, 0.5) deg/s about its axes" in said
    assert re.search(r"uncertainty: mass\.arm_panda_link7 0 to [\d.]+ kg\n", said)
    assert "since none was given" not in said
    assert "warning" not in said
    assert re.search(r"\d+ states, 0 wrong", run(export))
    run("cc -std=c99 -Wall -Werror -Iout/c -c loop.c -o loop.o")
    said = run(compare)
    assert all(f"{law}: stiffness" in said for law in ("servo", "passive", "pd"))


def test_page_of_the_spacecraft_is_read_in_five_minutes():
    text = (ROOT / SPACECRAFT).read_text(encoding="utf-8")
    assert len(re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE).split()) < 5 * 130


def test_places_of_numbers_are_those_of_the_template():
    """What the table of the page names is in the files of the folder."""
    text = (ROOT / SPACECRAFT).read_text(encoding="utf-8")
    rows = re.findall(r"^\| .* \| `(\w+\.toml)`, `([^`]+)` \|$", text, re.MULTILINE)
    assert len(rows) == 8
    for file, words in rows:
        template = ROOT / "concur/io/templates/spacecraft" / f"{file}.j2"
        assert words in template.read_text(encoding="utf-8"), words
