"""Robots of examples/urdf over files of two packages: against two engines, and from end to end."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import concur as cc
from concur.cli import main
from tests.oracles import assert_close
from tests.robot._library import EXAMPLES, NUMBERS, ROBOTS, assemble, packaged


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return assemble(tmp_path_factory.mktemp("library"))


def test_sidecars_are_short_and_name_their_source() -> None:
    for name in ROBOTS:
        lines = (EXAMPLES / f"{name}.toml").read_text().splitlines()
        assert len(lines) < 30
        assert any("PyPI example-robot-data 6.0.0" in line for line in lines)


@pytest.mark.packages
@pytest.mark.parametrize("name", ROBOTS)
def test_dynamics_equal_the_frozen_numbers_of_two_engines(name: str, folder: Path) -> None:
    given, robot = json.loads(NUMBERS.read_text())[name], cc.load(folder / f"{name}.urdf")
    assert [body.name for body in robot.bodies] == given["bodies"]
    for state in given["states"]:
        q, v = np.array(state["q"]), np.array(state["v"])
        assert_close(robot.mass_matrix(q)[np.tril_indices(robot.nv)], state["mass"], 1e-9)
        assert_close(robot.bias(q, v), state["bias"], 1e-9)
        assert_close(robot.momentum(q, v), state["momentum"], 1e-9)


@pytest.mark.packages
@pytest.mark.parametrize("name", ROBOTS)
def test_task_passes_from_end_to_end(name: str, folder: Path) -> None:
    out = str(folder / "out" / name)
    answer = CliRunner().invoke(
        main, ["track", str(folder / f"{name}_task.toml"), "--out", out, "--json"]
    )
    assert answer.exit_code == 0, answer.output
    found = {row["label"]: row for row in json.loads(answer.stdout)["findings"]}
    assert found["error of hand, position, final"]["value"] < 1e-6


@pytest.mark.packages
def test_three_steps_of_the_manual(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # docs/urdf.md, "A robot of yours in three steps"; the sidecar is the suggested one.
    monkeypatch.chdir(tmp_path)
    file = str(packaged("example-robot-data", "tiago_description/robots/tiago_no_hand.urdf"))
    for arguments in (
        ["check", file, "--fix", "tiago.urdf"],
        ["check", "tiago.urdf", "--suggest"],
        ["check", "tiago.urdf"],
    ):
        answer = CliRunner().invoke(main, arguments)
        assert answer.exit_code == 0, answer.output
    shipped = cc.load("tiago.urdf", sidecar=EXAMPLES / "tiago.toml")
    suggested = cc.load("tiago.urdf")
    assert suggested.wheels == shipped.wheels
    # The shipped sidecar holds the head.
    assert {body.name for body in suggested.bodies} - {body.name for body in shipped.bodies} == {
        "head_1_link",
        "head_2_link",
    }
