"""`concur prove --samples`: worlds inside the statement beside the bounds, and what they decide."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

import concur.cli._prove as command
from concur.cli import main
from concur.plotting import new_figure

WHOLE = (Path(__file__).parents[2] / "examples" / "rover_arm.toml").read_text()
HEAD = WHOLE[: WHOLE.index("[proof]")].replace("duration = 20.0", "duration = 0.02")
HEAD = HEAD.replace("evaluate_after = 12.0", "evaluate_after = 0.01")
NEAR = "place = 0.002\nspeed = 0.004\nheading = 0.002\nperiod = 0.001\nmasses = 0.005\n"


def prove(folder, limit, *options):
    path = folder / "task.toml"
    path.write_text(f"{HEAD}[proof]\n{NEAR}torque_limits = {limit}\n")
    arguments = ["prove", path, "--samples", 16, "--out", folder / "out", *options]
    result = CliRunner().invoke(main, [str(a) for a in arguments])
    return result, json.loads((folder / "out" / "bounds.json").read_text())


@pytest.mark.extended
def test_worlds_are_inside_a_proof_refute_a_limit_or_contradict_a_bound(tmp_path, monkeypatch):
    held = []

    def kept(task, progress):
        held.append(proved(task, progress=progress))
        return held[-1]

    proved = command.prove_task
    monkeypatch.setattr(command, "prove_task", kept)
    result, found = prove(tmp_path, 20.0)
    assert (result.exit_code, found["status"], found["problems"]) == (0, "PROVED", [])
    samples = found["samples"]
    assert (samples["worlds"], samples["stopped"]) == (16, 0)
    assert 0.9 < samples["excess"] <= 1.0
    torque = {row["name"]: row for row in samples["quantities"] if row["kind"] == "torque"}
    assert all(1.0 <= row["ratio"] < 1.5 for row in torque.values())
    assert torque["turret"]["ascended"] is None
    assert "Sampled worlds" in (tmp_path / "out" / "report.html").read_text()
    monkeypatch.setattr(command, "bounds_figure", lambda *_: new_figure(1.0, 1.0))
    # A world beyond the limit: the statement is false.
    result, found = prove(tmp_path, 5.0)
    assert (result.exit_code, found["status"]) == (1, "REFUTED")
    assert "REFUTED: torque turret is" in found["sentence"]
    assert found["sentence"] in found["problems"]
    # A world beyond a bound: the proof is wrong, whatever its verdict.
    small = tuple(replace(bound, profile=0.5 * bound.profile) for bound in held[0].bounds[:1])
    wrong = replace(held[0], bounds=(*small, *held[0].bounds[1:]))
    monkeypatch.setattr(command, "prove_task", lambda task, progress: wrong)
    result, found = prove(tmp_path, 20.0)
    assert (result.exit_code, found["status"]) == (1, "PROVED")
    assert "beyond the proved" in found["problems"][0]
    assert "beyond the proved" in " ".join(result.output.split())


def test_without_samples_nothing_is_simulated(tmp_path, monkeypatch):
    monkeypatch.setattr(command, "sample_statement", lambda *_, **__: pytest.fail("simulated"))
    _, found = prove(tmp_path, 20.0, "--samples", 0)
    assert found["samples"] is None
    assert "Sampled worlds" not in (tmp_path / "out" / "report.html").read_text()
