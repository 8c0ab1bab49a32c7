"""Report of a run at its end: terminal and JSON show every error."""

import io
import json
from pathlib import Path

import numpy as np
import pytest
import typer
from rich.console import Console
from typer.testing import CliRunner

import hil
from hil._realtime import Granted
from hil.cli import _run, main
from hil.cli._app import _errors
from hil.controller import Mode, Outcome
from hil.errors import ArmError
from hil.quality import Quality
from hil.session import Result

RIG = Path(__file__).parents[2] / "examples" / "rover_rig" / "rig.toml"
LEFT = "axis `shoulder` may still be under power: a timeout"
NOTE = "rows.bin: No space left on device"


def outcome(reason, left=()):
    nothing = np.full(5, np.nan)
    return Outcome(Mode.MOCK, reason, 1.0, nothing, Quality(), Granted(0, False, ()), (), left)


def ended(monkeypatch, tmp_path, result, report=None):
    """Exit status, JSON and terminal of a run whose session gave a result."""
    monkeypatch.setattr(_run, "run_session", lambda *_, **__: result)
    monkeypatch.setattr(_run.Record, "load", lambda _: None)
    monkeypatch.setattr(_run, "write_report", report or (lambda *_: tmp_path / "report.html"))
    words = ["drive", str(RIG), "--mock"]
    done = CliRunner().invoke(main, [*words, "--json"])
    shown = CliRunner().invoke(main, words, env={"COLUMNS": "200", "TERM": "dumb"})
    assert shown.exit_code == done.exit_code, shown.output
    return done.exit_code, json.loads(done.stdout), shown.stdout


def test_a_run_whose_drives_are_out_of_the_loop_passes(monkeypatch, tmp_path):
    result = Result(outcome(hil.Reason.END), tmp_path, 10, True)
    status, found, shown = ended(monkeypatch, tmp_path, result)
    assert (status, found["passed"], found["left"]) == (0, True, [])
    assert (found["record_note"], found["report_note"]) == ("", "")
    assert "under power" not in shown


def test_a_drive_that_may_be_under_power_is_said_and_not_passed(monkeypatch, tmp_path):
    result = Result(outcome(hil.Reason.END, (LEFT,)), tmp_path, 10, True)
    status, found, shown = ended(monkeypatch, tmp_path, result)
    assert (status, found["passed"], found["left"]) == (1, False, [LEFT])
    assert LEFT in shown


def test_what_kept_rows_from_the_record_is_said(monkeypatch, tmp_path):
    result = Result(outcome(hil.Reason.RECORDER), tmp_path, 10, False, NOTE)
    status, found, shown = ended(monkeypatch, tmp_path, result)
    assert (status, found["reason"], found["record_note"]) == (1, "RECORDER", NOTE)
    assert NOTE in shown
    assert "RECORDER" in shown


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), ValueError("of a plot")])
@pytest.mark.parametrize(("reason", "status"), [("OVERSPEED", 1), ("END", 0)])
def test_a_report_that_fails_does_not_hide_the_reason(monkeypatch, tmp_path, error, reason, status):
    def fail(*_):
        raise error

    result = Result(outcome(hil.Reason[reason]), tmp_path, 10, True)
    code, found, shown = ended(monkeypatch, tmp_path, result, fail)
    assert (code, found["reason"], found["files"]) == (status, reason, [])
    assert str(error) in found["report_note"]
    assert reason in shown
    assert str(error) in shown


def test_notes_of_an_error_are_printed(capsys):
    error = ArmError("rig", expected="a", came="b", cure="C.")
    error.add_note(LEFT)
    with pytest.raises(typer.Exit), _errors():
        raise error
    first, second = capsys.readouterr().err.splitlines()
    assert "expected a, got b" in first
    assert second == f"concur-rig: {LEFT}"


def test_markup_in_what_is_left_is_not_obeyed(tmp_path):
    left = "axis `[red]` may still be under power: [/]"
    result = Result(outcome(hil.Reason.END, (left,)), tmp_path, 10, True)
    console = Console(file=io.StringIO(), width=200)
    _run.RunResult(hil.load_rig(RIG), result, ()).show(console)
    assert left in console.file.getvalue()
