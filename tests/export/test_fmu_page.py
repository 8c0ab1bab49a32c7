"""The manual's page of units: its code runs, and its table names the variables that there are."""

import json
import re
from pathlib import Path

import fmpy
import pytest
from typer.testing import CliRunner

from concur.cli import main
from tests.export._units import with_compiler

PAGE = Path(__file__).parents[2] / "docs/fmu.md"
TEXT = PAGE.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    """Run the page in a separate folder."""
    folder = tmp_path_factory.mktemp("page")
    names = {"__name__": "session"}
    with with_compiler(), pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for number, block in enumerate(re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)):
            exec(compile(block, f"{PAGE.name}, block {number + 1}", "exec"), names)
    return folder


@pytest.mark.extended
def test_code_runs(session):
    written = {path.relative_to(session).as_posix() for path in session.rglob("*.fmu")}
    assert written == {
        "units/rover_arm_servo.fmu",
        "units/rover_arm_plant.fmu",
        "units/old/rover_arm_servo.fmu",
    }


@pytest.mark.extended
def test_table_names_the_variables(session):
    rows = re.findall(r"^\| (servo|plant)? ?\| (`.*?`) \| (\w+) \|", TEXT, re.MULTILINE)
    told, unit = {"servo": set(), "plant": set()}, ""
    for name, cell, causality in rows:
        unit = name or unit
        told[unit] |= {(v, causality.rstrip("s")) for v in re.findall(r"`(\w+)`", cell)}
    # The page's servo has no momentum, no reference inside and no integral, and its robot no `v0`.
    told["servo"] -= {(name, "input") for name in ("momentum", "t")}
    told["servo"] -= {("longest_step", "parameter"), ("z", "output")}
    told["plant"] -= {("v0", "parameter")}
    for unit, expected in told.items():
        path = session / f"units/rover_arm_{unit}.fmu"
        variables = fmpy.read_model_description(str(path)).modelVariables
        found = {(v.name, v.causality) for v in variables if v.causality != "independent"}
        assert found == expected


@pytest.mark.extended
def test_command_runs(session, monkeypatch):
    (line,) = re.findall(r"^    concur (export .*)$", TEXT, re.MULTILINE)
    monkeypatch.chdir(session)
    words = line.replace("examples/", f"{PAGE.parents[1]}/examples/").split()
    words[words.index("units")] = "commanded"
    with with_compiler():
        done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    assert done.output.splitlines()[-1] == "commanded/rover_arm_servo.fmu"
    with with_compiler():
        done = CliRunner().invoke(main, [*words, "--json", "--fmi", "2.0"])
    assert json.loads(done.output)["files"] == ["commanded/rover_arm_servo.fmu"]
    written = fmpy.read_model_description(str(session / "commanded/rover_arm_servo.fmu"))
    assert written.fmiVersion == "2.0"
    done = CliRunner().invoke(main, [*words, "--fmi", "1.0"])
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1)
