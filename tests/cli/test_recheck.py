"""`concur recheck`: verdicts and exit statuses for files of all kinds."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import concur as cc
from concur.checker import confirmed
from concur.cli import main
from tests.checker._stored import HEAD, PROOF, changed, document, task_file, write

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(autouse=True)
def receipts(monkeypatch, tmp_path):
    monkeypatch.setenv("CONCUR_CACHE", str(tmp_path / "receipts"))


def run(*arguments):
    return CliRunner().invoke(main, ["recheck", *map(str, arguments)])


def test_a_proof_of_a_task_is_confirmed(tmp_path):
    file = write(tmp_path / "proof.json", document(tmp_path))
    result = run(file, "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert (found["command"], found["passed"], found["status"]) == ("recheck", True, "PROVED")
    assert (found["kind"], found["robot"], found["problems"]) == ("task", "rover_arm", [])
    assert found["sentence"].startswith("PROVED: from starts within")
    assert len(found["claims"]) == len(document(tmp_path)["bounds"])
    assert confirmed(file)
    result = run(file, "--task", task_file(tmp_path))
    assert "and it is about slalom with circling hand" in " ".join(result.output.split())


def test_lies_other_tasks_and_bad_files_have_their_status(tmp_path):
    file = write(tmp_path / "proof.json", document(tmp_path))
    other = task_file(tmp_path, HEAD.replace("radius = 0.07", "radius = 0.08") + PROOF)
    result = run(file, "--task", other, "--json")
    assert result.exit_code == 1
    assert "about another reference" in json.loads(result.stdout)["problems"][0]
    lie = changed(tmp_path, lambda found: found["statement"].update(heading=0.1))
    result = run(lie)
    assert (result.exit_code, "not confirmed (UNDECIDED)" in result.output) == (1, True)
    (tmp_path / "bad.json").write_text("{}")
    for bad in (tmp_path / "bad.json", tmp_path / "nowhere.json", tmp_path):
        assert run(bad).exit_code == 2, bad
    assert run(file, "--task", tmp_path / "nowhere.toml").exit_code == 2
    assert not confirmed(file)


def test_certificates_are_verified_too(tmp_path):
    task = EXAMPLES / "rover_arm.toml"
    file = tmp_path / "certificate.json"
    cc.certify(cc.load_task(task).servo).save(file)
    result = run(file, "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["kind"] == "certificate"
    result = run(file, "--task", task)
    assert (result.exit_code, "claimed" in result.output or "decays" in result.output) == (0, True)
    found = json.loads(file.read_text())
    found["status"] = "UNDECIDED"
    from concur.documents import document_hash

    write(file, found | {"hash": document_hash(found)})
    result = run(file)
    assert result.exit_code == 1
    assert "the certificate claims no proof" in " ".join(result.output.split())
