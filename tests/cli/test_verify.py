"""`concur verify`: exit status, files, continuation, and worst worlds as tasks of their own."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import concur as cc
from concur.campaign import Campaign, CampaignReport, CampaignResult
from concur.cli import main
from concur.cli._folder import results
from concur.io import Task
from tests.cli.test_answers import answer
from tests.cli.test_gains import TASK as NOMINAL

TASK = f"""{NOMINAL}
[uncertainty.mass]
forearm = {{ relative = [-0.2, 0.2] }}

[uncertainty.initial_q]
forearm = [-0.1, 0.1]

[[requirements]]
kind = "settle"
output = "hand"
within = 3.0
radius = 0.1
"""


@pytest.fixture(autouse=True)
def undrawn(monkeypatch):
    """Leave out the figures of reports; the fixture `campaign` draws them once."""

    def write(report, folder):
        (folder / "report.html").write_text(report.sentence)
        return folder / "report.html"

    monkeypatch.setattr(CampaignReport, "write", write)
    monkeypatch.setattr("concur.campaign.sampled_curves", lambda *_: ())


def run(*arguments):
    return CliRunner().invoke(main, ["verify", *map(str, arguments)])


@pytest.fixture(scope="module")
def campaign(tmp_path_factory):
    """A task, and the folder of its campaign of six worlds with a search."""
    folder = tmp_path_factory.mktemp("campaign")
    task, out = folder / "task.toml", folder / "out"
    task.write_text(TASK)
    with pytest.MonkeyPatch.context() as patch:  # fewer pixels, for speed
        patch.setattr("concur.show.style.DPI", 30)
        result = run(task, "--samples", 6, "--search", 20, "--seed", 3, "--out", out, "--json")
    return task, out, answer(result, "verify"), result


def test_campaign_that_passes(campaign):
    _, out, found, result = campaign
    assert result.exit_code == 0
    assert found["status"] == "passed"
    assert found["rates"][0]["passed"] == found["samples"] == 6
    assert found["rates"][0]["low"] == pytest.approx(0.025 ** (1 / 6))  # Clopper-Pearson
    assert found["search"][0]["value"] <= found["worst"][0]["value"]
    names = {path.name for path in out.iterdir()}
    assert names == {
        *("concur.json", "report.html", "report.json", "campaign.h5", "worlds.h5"),
        "worst_1_settle_hand.toml",
    }
    stored = json.loads((out / "report.json").read_text())
    assert {**found, "files": ()} == {**stored, "files": ()}
    entry = json.loads((out / "concur.json").read_text())["verify"]
    assert entry["status"] == "passed"
    assert set(entry["files"]) == names - {"concur.json"}


def test_worst_world_is_that_of_the_search_and_runs_alone(campaign):
    task, out, found, _ = campaign
    one = cc.load_task(out / "worst_1_settle_hand.toml")
    (search,) = found["search"]
    same = cc.load_task(task).with_world(search["world"], search["number"], 3)
    assert one.world.values == same.world.values
    assert (one.world.number, one.world.seed) == (search["number"], 3)
    # The robustness by the record of the run alone.
    run_alone = one.simulate()
    error = run_alone.error_norms["hand"][run_alone.t >= 3.0].max()
    assert 0.1 - error == pytest.approx(search["value"], abs=1e-6)


def test_more_samples_continue_and_another_seed_is_refused(campaign, monkeypatch):
    task, out, _, _ = campaign
    evaluated = []
    original = Campaign.outcome

    def counted(self, numbers, worlds):
        evaluated.extend(np.asarray(numbers).tolist())
        return original(self, numbers, worlds)

    monkeypatch.setattr(Campaign, "outcome", counted)
    result = run(task, "--samples", 9, "--seed", 3, "--out", out)
    assert result.exit_code == 0, result.output
    assert sorted(evaluated) == [6, 7, 8]
    for text in ("passed", "9 of 9 worlds pass", "settle hand", "sampled, not proved"):
        assert text in result.stdout
    table = CampaignResult.load(out / "campaign.h5")
    fresh = cc.verify(cc.load_task(task), 9, seed=3)
    assert table.values.tobytes() == fresh.values.tobytes()
    before = (out / "worlds.h5").read_bytes()
    result = run(task, "--samples", 9, "--seed", 4, "--out", out)
    assert result.exit_code == 2
    assert "`seed` (3 instead of 4)" in result.stderr
    assert (out / "worlds.h5").read_bytes() == before


def test_campaign_that_fails_names_requirement_and_world(tmp_path):
    (tmp_path / "task.toml").write_text(TASK.replace("radius = 0.1", "radius = 1e-9"))
    result = run(tmp_path / "task.toml", "--samples", 3, "--out", tmp_path / "out", "--json")
    found = answer(result, "verify")
    assert result.exit_code == 1
    assert found["status"] == "failed"
    assert "3 of 3 sampled worlds break a requirement" in found["problems"][0]
    assert found["worst"][0]["file"] == "worst_1_settle_hand.toml"


@pytest.mark.extended
def test_proofs_are_requested_and_their_statuses_reported(tmp_path, monkeypatch):
    box = "[operating]\nspeeds = 0.3\n[operating.ranges]\n"
    box += "upper_arm = [0.5, 0.7]\nforearm = [1.1, 1.3]\n"
    (tmp_path / "task.toml").write_text(TASK + box)
    given = []
    monkeypatch.setattr("concur.campaign.sampled_curves", lambda *a: given.append(a) or ())
    arguments = tmp_path / "task.toml", "--samples", 2, "--out", tmp_path / "out"
    for options, proved, bound in (
        ((), False, None),
        (("--certify",), True, None),
        (("--disturbance", 0.5), True, 0.5),
    ):
        result = run(*arguments, *options)
        assert result.exit_code == 0, result.output
        certificate, disturbance, operating = given[-1][3:]
        assert disturbance == bound
        assert (operating is not None and operating.status is cc.Status.PROVED) is proved
        # The law has torque limits, which a box without errors does not cover.
        assert (certificate is not None) is proved
        assert not proved or certificate.status is cc.Status.UNDECIDED
    free = re.sub(r"^torque_limits = .*\n", "", TASK, flags=re.MULTILINE)
    assert free != TASK
    (tmp_path / "task.toml").write_text(free + box)
    assert run(*arguments[:-1], tmp_path / "free", "--certify").exit_code == 0
    assert given[-1][3].status is cc.Status.PROVED
    assert run(*arguments, "--disturbance", -0.1).exit_code == 2


@pytest.mark.extended
def test_interrupted_campaign_continues(tmp_path, monkeypatch):
    (tmp_path / "task.toml").write_text(TASK)
    arguments = tmp_path / "task.toml", "--samples", 6, "--out", tmp_path / "out"
    original = Campaign.outcome

    def interrupted(self, numbers, worlds):
        if 3 in numbers:
            raise KeyboardInterrupt
        return original(self, numbers, worlds)

    with monkeypatch.context() as patch:
        patch.setattr(Campaign, "outcome", interrupted)
        patch.setattr("concur.campaign._verify.LANES", 1)
        result = run(*arguments, "--json")
    found = answer(result, "verify")
    assert found["status"] == "partial"
    assert "the same command continues" in found["problems"][0]
    result = run(*arguments)
    assert result.exit_code == 0, result.output


def test_campaign_that_is_killed_while_it_writes_continues(tmp_path, monkeypatch):
    task, out = tmp_path / "task.toml", tmp_path / "out"
    task.write_text(TASK)
    listed = []
    written = Task.write_world

    def seen(self, path, *others):
        listed.append(path.name in json.loads((out / "concur.json").read_text())["verify"]["files"])
        return written(self, path, *others)

    monkeypatch.setattr(Task, "write_world", seen)
    assert run(task, "--samples", 2, "--out", out).exit_code == 0
    # The next run replaces what the manifest lists, whenever the first one was killed.
    assert listed == [True]


@pytest.mark.extended
def test_second_campaign_in_a_folder_leaves_the_first_one_alone(tmp_path):
    task, out = tmp_path / "task.toml", tmp_path / "out"
    task.write_text(TASK)
    call = [sys.executable, "-c", "from concur.cli import main; main()", "verify", str(task)]
    with results(out, "verify") as first:
        (first.staging / "campaign.h5").touch()
        first.publish([first.staging / "campaign.h5"])
        before = sorted(out.iterdir())
        second = subprocess.run(
            [*call, "--samples", "2", "--out", str(out), "--overwrite"],
            capture_output=True,
            text=True,
        )
        assert second.returncode == 2
        assert "a folder that no other command writes" in " ".join(second.stderr.split())
        assert sorted(out.iterdir()) == before
        assert first.staging in before
    with results(out, "verify"):  # unlocked
        assert not (out / "campaign.h5").exists()


def test_bad_options(tmp_path, monkeypatch):
    (tmp_path / "task.toml").write_text(TASK)
    (tmp_path / "nominal.toml").write_text(NOMINAL)
    out = "--out", tmp_path / "out"

    def refused(text, *arguments):
        result = run(*arguments, *out)
        assert result.exit_code == 2
        assert text in " ".join(result.stderr.split())

    refused("[uncertainty]", tmp_path / "nominal.toml")
    refused(
        "Omit `--jobs`", tmp_path / "task.toml", "--jobs", 2, "--scheduler", "tcp://127.0.0.1:1"
    )
    refused("--samples", tmp_path / "task.toml", "--samples", 0)
    monkeypatch.setitem(sys.modules, "distributed", None)
    refused("[cluster]", tmp_path / "task.toml", "--scheduler", "tcp://127.0.0.1:1")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "notes.txt").write_text("mine")
    refused("notes.txt", tmp_path / "task.toml")


@pytest.mark.extended
@pytest.mark.usefixtures("compiler")
def test_shipped_campaign_passes_and_its_nominal_world_too(tmp_path):
    task = Path(__file__).parents[2] / "examples" / "rover_campaign.toml"
    result = run(task, "--samples", 64, "--out", tmp_path / "out", "--json")
    assert result.exit_code == 0, result.output
    assert answer(result, "verify")["rates"][0]["passed"] == 64
    done = CliRunner().invoke(main, ["track", str(task), "--out", str(tmp_path / "track")])
    assert done.exit_code == 0, done.output
