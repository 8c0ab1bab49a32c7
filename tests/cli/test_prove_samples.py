"""`concur prove`: worlds inside the statement beside the bounds, and what they decide."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

import concur.cli._prove as command
from concur import proofs
from concur.certify import Status
from concur.cli import main
from concur.cli._answer import Reply
from concur.errors import OutputError
from concur.proofs import Statement
from concur.show import new_figure
from tests.proofs._rover import rover

WHOLE = (Path(__file__).parents[2] / "examples" / "rover_arm.toml").read_text()
HEAD = WHOLE[: WHOLE.index("[proof]")].replace("duration = 20.0", "duration = 0.02")
HEAD = HEAD.replace("evaluate_after = 12.0", "evaluate_after = 0.01")
NEAR = "place = 0.002\nspeed = 0.004\nheading = 0.002\nperiod = 0.001\nmasses = 0.005\n"


def prove(folder, limit, *options, near=NEAR):
    path = folder / "task.toml"
    path.write_text(f"{HEAD}[proof]\n{near}torque_limits = {limit}\n")
    arguments = ["prove", path, "--out", folder / "out", "--overwrite", *options]
    result = CliRunner().invoke(main, [str(a) for a in arguments])
    return result, json.loads((folder / "out" / "bounds.json").read_text())


@pytest.mark.extended
def test_worlds_are_inside_a_proof_refute_a_limit_or_contradict_a_bound(tmp_path, monkeypatch):
    held = []

    def kept(task, progress):
        held.append(proved(task, progress=progress))
        return held[-1]

    proved = proofs.prove_task
    monkeypatch.setattr(proofs, "prove_task", kept)
    result, found = prove(tmp_path, 20.0, "--samples", 16)
    assert (result.exit_code, found["status"], found["problems"]) == (0, "PROVED", [])
    samples = found["samples"]
    assert (samples["worlds"], samples["stopped"]) == (16, 0)
    assert 0.9 < samples["excess"] <= 1.0
    torque = {row["name"]: row for row in samples["quantities"] if row["kind"] == "torque"}
    assert all(1.0 <= row["ratio"] < 1.5 for row in torque.values())
    assert torque["turret"]["ascended"] is None
    assert "Sampled worlds" in (tmp_path / "out" / "report.html").read_text()
    monkeypatch.setattr("concur.show.bounds_figure", lambda *_: new_figure(1.0, 1.0))
    # A world beyond the limit: the statement is false.
    result, found = prove(tmp_path, 5.0, "--samples", 16)
    assert (result.exit_code, found["status"]) == (1, "REFUTED")
    assert "REFUTED: torque turret is" in found["sentence"]
    assert found["sentence"] in found["problems"]
    # A world beyond a bound: the proof is wrong, whatever its verdict.
    small = tuple(replace(bound, profile=0.5 * bound.profile) for bound in held[0].bounds[:1])
    wrong = replace(held[0], bounds=(*small, *held[0].bounds[1:]))
    monkeypatch.setattr(proofs, "prove_task", lambda task, progress: wrong)
    result, found = prove(tmp_path, 20.0, "--samples", 16)
    assert (result.exit_code, found["status"]) == (1, "UNDECIDED")
    assert "does not confirm" in found["sentence"]
    # Worlds alone find it too, where the checker is not asked.
    result, found = prove(tmp_path, 20.0, "--samples", 16, "--no-recheck")
    assert (result.exit_code, found["status"]) == (1, "UNDECIDED")
    assert "PROVED" not in result.output
    assert "beyond the bound" in found["problems"][0]
    assert "beyond the bound" in " ".join(result.output.split())


@pytest.mark.extended
def test_a_hundred_worlds_are_the_default_and_a_note_says_why_there_are_none(tmp_path):
    options = "--no-recheck", "--no-factor"
    result, found = prove(tmp_path, 20.0, *options)
    assert (result.exit_code, found["status"], found["warnings"]) == (1, "UNVERIFIED", [])
    assert (found["samples"]["worlds"], found["samples"]["stopped"]) == (100, 0)
    assert 0.9 < found["samples"]["excess"] <= 1.0
    free = NEAR.replace("period = 0.001\n", "")
    result, found = prove(tmp_path, 20.0, *options, near=free)
    assert (result.exit_code, found["status"], found["samples"]) == (1, "UNVERIFIED", None)
    (note,) = found["warnings"]
    assert "got torques that are not held" in note
    page = (tmp_path / "out" / "report.html").read_text()
    assert note.partition("[proof]")[0] in page
    assert "Sampled worlds" not in page
    path, out = tmp_path / "task.toml", tmp_path / "other"
    arguments = ["prove", path, *options, "--samples", 2, "--out", out]
    assert CliRunner().invoke(main, [str(a) for a in arguments]).exit_code == 2


def worlds(samples=None, search=0, status=Status.PROVED, **near):
    """Worlds that the command simulates of a task of 0.02 s, and notes."""
    statement = Statement((0.002, 0.002), (0.004, 0.004), 0.002, **near)
    task = SimpleNamespace(
        path="task.toml", duration=0.02, statement=statement, servo=rover().servo
    )
    found = SimpleNamespace(status=status)
    return command._worlds(task, found, samples, search, 0, Reply("prove", True))


@pytest.mark.parametrize(
    ("near", "came"),
    [({}, "torques that are not held"), ({"period": 0.0007}, "0.02 s and 0.0007 s")],
)
def test_where_no_worlds_can_be_simulated_only_a_demand_is_an_error(near, came):
    found, (note,) = worlds(**near)
    assert found is None
    assert note.startswith("no worlds were simulated: expected")
    assert note.endswith(f"got {came}")
    for demand in ({"samples": 2}, {"search": 2}):
        with pytest.raises(OutputError, match=came):
            worlds(**demand, **near)
    assert worlds(samples=0, **near) == (None, [])


def test_worlds_are_simulated_unless_they_are_declined_refuted_or_slow(monkeypatch):
    """The task has twenty periods."""
    monkeypatch.setattr(proofs, "sample_statement", lambda *given, **_: given[1])
    for most, compiler, simulated in ((20, None, 1), (19, None, 0), (19, object(), 1)):
        monkeypatch.setattr(command, "INTERPRETED", most)
        monkeypatch.setattr("concur.codegen.find_compiler", lambda own=compiler: own)
        found, notes = worlds(period=0.001)
        assert (found, len(notes)) == ((100, 0) if simulated else (None, 1))
        assert all("without a C compiler" in note for note in notes)
        assert worlds(period=0.001, samples=0) == (None, [])
        assert worlds(period=0.001, samples=7) == (7, [])
        assert worlds(period=0.001, search=7) == (100, [])
        assert worlds(period=0.001, status=Status.REFUTED) == (None, [])
        assert worlds(period=0.001, status=Status.REFUTED, samples=7) == (7, [])
    assert worlds(period=0.001, status=Status.UNDECIDED) == (100, [])
