"""The fields that the JSON of all commands shares."""

from __future__ import annotations

import json
import re
from functools import partial
from importlib import import_module
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

import concur as cc
from concur._version import __version__
from concur.cli import main
from concur.results import COMMON
from hil.cli import main as rig
from tests.cli.test_gains import TASK
from tests.cli.test_prove import written

KINDS = {
    **dict.fromkeys(("command", "concur", "name", "robot", "status"), str),
    "passed": bool,
    **dict.fromkeys(("problems", "warnings", "files", "rows"), list),
}

certify = import_module("concur.certify")


def run(*arguments):
    return CliRunner().invoke(main, [str(a) for a in arguments])


def answer(result, command):
    """The answer of a command, with the fields that all have."""
    found = json.loads(result.stdout)
    assert list(found)[: len(COMMON)] == list(COMMON)
    assert set(COMMON) == set(KINDS)
    for name, kind in KINDS.items():
        assert type(found[name]) is kind, name
    assert found["command"] == command
    assert found["concur"] == __version__
    assert all(isinstance(text, str) for key in ("problems", "warnings") for text in found[key])
    assert all(Path(path).is_file() for path in found["files"])
    assert result.exit_code == (2 if found["status"] == "error" else 0 if found["passed"] else 1)
    # A reason for each no, and none for a yes.
    assert bool(found["problems"]) is not found["passed"] or command == "gains"
    return found


CALLS = {
    "track": ["TASK", "--out", "OUT"],
    "check": ["planar_floater"],
    "new": ["rover", "NEW"],
    "gains": ["TASK", "--torque-limit", "100"],
    "compare": ["TASK"],
    "plan": ["TASK", "--out", "OUT"],
    "certify": ["TASK", "--out", "OUT"],
    "export": ["TASK", "--out", "OUT"],
    "prove": ["PROVE", "--out", "OUT"],
    "recheck": ["CERTIFICATE"],
    "verify": ["TASK", "--samples", "3", "--out", "OUT"],
}


def with_json():
    """Names of the commands that have the option `--json`."""
    commands = typer.main.get_command(main).commands
    return {
        name
        for name, command in commands.items()
        if any("--json" in parameter.opts for parameter in command.params)
    }


def test_help_lists_every_command_once_in_one_line():
    text = run("--help").output
    listed = [line.split()[0] for line in text.partition("Describe and check:")[2].splitlines()
              if line.startswith("  ")]  # fmt: skip
    assert sorted(listed) == sorted(typer.main.get_command(main).commands)


@pytest.mark.parametrize("application", [main, rig], ids=["concur", "concur-rig"])
def test_every_option_has_help(application):
    for name, command in typer.main.get_command(application).commands.items():
        missing = [p.name for p in command.params if not getattr(p, "help", None)]
        assert not missing, f"{name}: {missing}"
        assert command.help
        assert "Parameters" not in command.help


def test_every_command_with_json_is_tried_here():
    assert with_json() == set(CALLS)


@pytest.mark.by_default(5)
@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("command", CALLS)
def test_answers_share_their_fields(command, tmp_path, monkeypatch):
    monkeypatch.setattr(certify, "tune", partial(certify.tune, methods=("place", "lqr")))
    monkeypatch.setattr(certify.LoopCertificate, "figures", {})
    uncertain = "[uncertainty.mass]\nforearm = [-0.1, 0.1]\n" if command == "verify" else ""
    task = TASK + uncertain
    if command == "plan":
        task = re.sub(r"\[reference.hand]\nkind.*\npoint", "[plan.goals]\nhand", task)
    (tmp_path / "task.toml").write_text(task)
    places = {name: tmp_path / name.lower() for name in ("OUT", "NEW")}
    places["TASK"] = tmp_path / "task.toml"
    places["PROVE"] = written(tmp_path, "place = 0.0\nspeed = 0.0\nheading = 0.0\n", name="prove")
    if command == "recheck":
        places["CERTIFICATE"] = tmp_path / "certificate.json"
        cc.certify(cc.load_task(tmp_path / "task.toml").servo).save(places["CERTIFICATE"])
    arguments = [places.get(part, part) for part in CALLS[command]]
    found = answer(run(command, *arguments, "--json"), command)
    robots = {"new": "new", "prove": "rover_arm", "recheck": ""}
    assert found["robot"] == robots.get(command, "planar_floater")
    # An error has the same fields, and its sentence once more on the other stream.
    missing = [tmp_path / "missing.toml", *[tmp_path] * (command == "new")]
    wrong = run(command, *missing, "--json")
    found = answer(wrong, command)
    assert found["status"] == "error"
    assert "missing.toml" in found["problems"][0]
    assert "missing.toml" in wrong.stderr


@pytest.mark.usefixtures("undrawn")
def test_a_no_has_reasons(tmp_path):
    # 0.5 s do not suffice for the error to fall to 1e-6 m; at 5 m the hand is out of reach.
    changes = (("duration = 4.0", "duration = 0.5"), ("point = [0.65, 0.75]", "point = [5.0, 0.0]"))
    out = tmp_path / "out"
    for (old, new), status in zip(changes, ("failed", "refused"), strict=True):
        (tmp_path / "task.toml").write_text(TASK.replace(old, new))
        found = answer(run("track", tmp_path / "task.toml", "--json", "--out", out), "track")
        assert found["status"] == status
        assert found["problems"][0].startswith(
            "error of hand, final: " if status == "failed" else "CON4: "
        )
