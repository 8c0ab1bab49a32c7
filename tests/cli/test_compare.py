"""`concur compare`: tasks, recorded runs and both, the figure, and exit statuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import concur as cc
from concur.cli import main
from concur.io import load_task
from concur.simulation import Comparison
from tests.cli.test_gains import TASK

LOOSE = "[tolerances]\nfinal_error = 0.1\n"
"""The tasks end while errors still decay."""


@pytest.fixture(autouse=True)
def undrawn(monkeypatch):
    """Leave out the figure; tests/campaign/test_laws.py draws one."""
    monkeypatch.setattr("concur.cli._folder.Results.draw", lambda *_: {})
    monkeypatch.setattr(Comparison, "figures", {})


@pytest.fixture
def run(tmp_path):
    out = ("--out", str(tmp_path / "out"))
    return lambda *words: CliRunner().invoke(main, ["compare", *map(str, words), *out])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two tasks, the second one shorter, and the recorded run of the first."""
    place = tmp_path_factory.mktemp("compare")
    (place / "long.toml").write_text(TASK + LOOSE)
    short = (TASK + LOOSE).replace("duration = 4.0", "duration = 2.0").replace('"reach"', '"short"')
    (place / "short.toml").write_text(short)
    task = load_task(place / "long.toml")
    task.simulate().save(place / "run.h5", {"task": task.name})
    return place


@pytest.mark.extended
def test_a_task_and_its_recorded_run_have_equal_numbers(folder, run):
    done = run(folder / "long.toml", folder / "run.h5", folder / "short.toml", "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["runs"] == ["reach (long.toml)", "reach (run.h5)", "short (short.toml)"]
    assert found["passed"] is True
    for row in found["table"]:
        simulated, recorded, shorter = row["values"]
        assert simulated == recorded or row["unit"] == "J", row["label"]
        assert (shorter == simulated / 2) or row["label"] != "duration"
    table = run(folder / "long.toml", folder)
    assert table.exit_code == 0, table.output
    assert "smallest decoupling margin" in table.stdout


def test_a_broken_limit_or_an_early_end_is_a_no(folder, run, tmp_path):
    task = load_task(folder / "long.toml")
    whole = task.simulate()
    whole.save(tmp_path / "run.h5", {"task": "half", "stopped": "singular at 1 s"})
    done = run(tmp_path, "--json")
    assert done.exit_code == 1
    assert json.loads(done.stdout)["problems"] == ["half ended early: singular at 1 s"]
    assert "half ended early: singular at 1 s" in run(tmp_path).stdout


def test_each_law_is_judged_by_the_tolerances_of_its_task(run, tmp_path):
    """The error at the end of one of two laws stands between two tolerances."""
    text = TASK.replace("duration = 4.0\ndt = 0.01", "duration = 1.0\ndt = 0.004")
    path = tmp_path / "task.toml"
    path.write_text(text)
    end = load_task(path).simulate().error_norms["hand"][-1].item()
    laws = ("--law", "servo", "--law", "servo, stiffness = 16.0, damping = 8.0")
    for share, problems in ((1.001, 0), (0.999, 1)):
        path.write_text(f"{text}\n[tolerances]\nfinal_error = {share * end!r}\n")
        done = run(path, *laws, "--json")
        assert done.exit_code == problems, done.output
        found = json.loads(done.stdout)
        assert found["passed"] is (problems == 0)
        told = (
            f"servo breaks a limit: error of hand, final {end:.3g} m, limit <= {share * end:.3g} m."
        )
        assert found["problems"] == [told] * problems
        broken = next(row for row in found["table"] if row["label"] == "limits broken")
        assert broken["values"] == [problems, 0.0]
        task = load_task(path)  # and as `concur track` judges it
        assert task.simulate().status == ("failed" if problems else "passed")
        recorded = cc.compare([task.simulate()], ["again"])
        assert recorded.status == found["status"]
    assert told in " ".join(run(path, *laws).stdout.split())


def test_page_has_the_table_and_bad_names_are_refused(folder, run, tmp_path):
    done = run(folder / "run.h5", "--json")
    assert done.exit_code == 0, done.output
    names = [Path(name).name for name in json.loads(done.stdout)["files"]]
    assert names == ["report.html", "report.json", "concur.json"]
    assert "smallest decoupling margin" in (tmp_path / "out/report.html").read_text()
    assert cc.load_result(tmp_path / "out/report.json").status == "passed"
    for words, text in (
        (("rover_arm",), "expected a task file (.toml), a recorded run (.h5)"),
        ((folder / "run.h5", "--worlds", "2"), "option `--worlds`: expected task files"),
    ):
        strange = run(*words)
        assert strange.exit_code == 2
        assert text in strange.stderr


def test_numbers_in_worlds_are_whole_in_a_narrow_terminal(run, tmp_path):
    path = tmp_path / "task.toml"
    more = "[uncertainty.mass]\nforearm = [0.0, 0.1]\n"
    for name in ("servo", "servo with a long name"):
        more += f'[[laws]]\nname = "{name}"\nkind = "servo"\n'
    path.write_text(TASK + LOOSE + more)
    done = run(path, "--worlds", "2")
    shown = [line for line in done.stdout.splitlines() if "│" in line]
    assert len(shown) > 2
    assert max(map(len, shown)) <= 80
    assert not any("…" in line for line in shown)
