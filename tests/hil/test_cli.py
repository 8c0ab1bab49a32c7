"""The command line of the rig: every command, its exit statuses, errors in one line, JSON."""

import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import h5py
import numpy as np
import pytest
import typer
from rich.console import Console
from typer.testing import CliRunner

import hil
from concur.cli import errors_in_lines
from hil._realtime import Granted
from hil.cli import _run, main
from hil.controller import Mode, Outcome
from hil.errors import ArmError
from hil.quality import Quality
from hil.record.copies import FOLDER, copied_modules
from hil.session import Result
from tests.hil._acme import ACME, forgotten
from tests.ports import free_udp_port

EXAMPLE = Path(__file__).parents[2] / "examples" / "rover_rig"
RIG = str(EXAMPLE / "rig.toml")
MIT = str(EXAMPLE / "rig_mit.toml")
FLOATER = str(EXAMPLE.parent / "floater_rig" / "rig.toml")
COMMANDS = typer.main.get_command(main).commands


def run(*words, status=0, columns=80, **options):
    """Run a command; standard output and standard error."""
    env = {"COLUMNS": str(columns), "TERM": "dumb"}
    done = CliRunner().invoke(main, [str(word) for word in words], env=env, **options)
    assert done.exit_code == status, done.output + repr(done.exception)
    return done.stdout, done.stderr


def refused(*words):
    """The one line by which a command is refused; nothing else is printed."""
    out, err = run(*words, status=2)
    assert err.startswith("concur-rig: ")
    assert err.count("\n") == 1, err
    assert out == ""
    return err


@pytest.fixture
def changed(tmp_path):
    """The rover's rig with other text, beside its own task."""

    def change(*pairs, file=RIG):
        text = Path(file).read_text(encoding="utf-8")
        task = (EXAMPLE / "task.toml").as_posix()
        certificate = (EXAMPLE / "operating.json").as_posix()
        for old, new in (
            ('task = "task.toml"', f'task = "{task}"'),
            ('certificate = "operating.json"', f'certificate = "{certificate}"'),
            *pairs,
        ):
            assert old in text, f"`{old}` is not in {file}"
            text = text.replace(old, new)
        path = tmp_path / "rig.toml"
        path.write_text(text, encoding="utf-8")
        return str(path)

    return change


@pytest.fixture
def alone(changed, tmp_path):
    """A rig on a bus within its process, where no drive answers."""
    return changed(
        ('interface = "udp_multicast"', 'interface = "virtual"'),
        ('channel = "239.255.99.2"', f'channel = "{tmp_path.name}"'),
        ("options = { port = 43113 }", ""),
        ("port = 47110", f"port = {free_udp_port()}"),
    )


@pytest.mark.parametrize("command", COMMANDS)
def test_help(command):
    out, err = run(command, "--help", columns=300)
    assert f"concur-rig {command}" in out or f"{command} [OPTIONS]" in out
    assert "Exit status: 0" in out
    for parameter in COMMANDS[command].params:
        for option in parameter.opts:
            assert option in out or isinstance(parameter, typer.core.TyperArgument)
    assert err == ""


def test_version():
    assert run("--version")[0].startswith("concur ")


@pytest.mark.parametrize("words", [(), ("fly",), ("check",), ("drive", "--mispelt", "x.toml")])
def test_wrong_words_have_status_2(words):
    done = CliRunner().invoke(main, list(words))
    assert done.exit_code == 2


# --- check ------------------------------------------------------------------------------------


@pytest.mark.extended
@pytest.mark.parametrize("file", [RIG, MIT, FLOATER])
def test_check_of_emulated_drives(file):
    out, err = run("check", file, "--mock")
    assert err == ""
    assert max(map(len, out.splitlines())) <= 80
    assert out.rstrip().endswith("the rig may be armed")
    rig = hil.load_rig(file)
    for axis in rig.axes:
        assert f" {axis.name} " in out
    result = json.loads(run("check", file, "--mock", "--json")[0])
    assert result["passed"]
    assert result["rig"] == rig.name
    assert 0.0 < result["buses"][0]["share"] < rig.buses[0].largest_load
    assert result["buses"][0]["largest_rate"] > rig.loop.rate
    assert {check["axis"] for check in result["checks"]} == {axis.name for axis in rig.axes}
    assert {check["finding"] for check in result["checks"]} <= {"found", "unknown"}
    positions = [check for check in result["checks"] if check["what"] == "position, rad (m)"]
    assert [check["axis"] for check in positions] == [axis.name for axis in rig.axes]
    gear = 10.0 if file == FLOATER else 1.0
    start = gear * rig.task.q0[list(rig.transmission.q)]
    assert [float(check["came"]) for check in positions] == pytest.approx(start, abs=2e-3 * gear)


def test_check_shows_what_the_certificate_needs_beside_the_limits(changed):
    bound = json.loads(run("check", RIG, "--mock", "--json")[0])["torque_bound"]
    out, _ = run("check", RIG, "--mock")
    for axis in hil.load_rig(RIG).axes:
        (row,) = [line for line in out.splitlines() if f" {axis.name} " in line and " 100 " in line]
        cells = [cell.strip() for cell in row.strip("│").split("│")]
        assert cells[1:3] == [f"{axis.torque_limit:g}", f"{bound[axis.name]:.3g}"]
    bare = changed(("certificate", "# certificate"))
    assert "need: unknown, as there is no certificate" in run("check", bare, "--mock")[0]


@pytest.mark.extended
def test_check_of_drives_that_do_not_answer(alone):
    out, err = run("check", alone, status=1)
    assert err == ""
    assert out.rstrip().endswith("the rig may not be armed")
    assert "missing" in out
    assert any(line.startswith("- left_wheel") for line in out.splitlines())  # with a cure
    result = json.loads(run("check", alone, "--json", status=1)[0])
    assert not result["passed"]
    assert {check["finding"] for check in result["checks"]} == {"missing"}
    assert all(check["cure"] for check in result["checks"])


@pytest.fixture
def acme(changed, tmp_path):
    """The rover's rig with drives of a kind that a file beside it registers."""

    def change(text=ACME, *pairs):
        (tmp_path / "acme_drive.py").write_text(text, encoding="utf-8")
        added = ("[bus]", 'drive_modules = ["acme_drive.py"]\n\n[bus]')
        return changed(added, ('drive = "cia402"', 'drive = "acme"'), *pairs)

    with forgotten():
        yield change


def test_check_of_drives_of_one_s_own(acme):
    result = json.loads(run("check", acme(), "--mock", "--json")[0])
    assert result["passed"]
    assert {check["axis"] for check in result["checks"]} == {a.name for a in hil.load_rig(RIG).axes}
    assert {check["finding"] for check in result["checks"]} <= {"found", "unknown"}


def test_drives_of_one_s_own_that_cannot_be_used(acme):
    unemulated = acme(ACME.replace("KINDS[", "dict()["))
    assert "`hil.emulator.KINDS`" in refused("check", unemulated, "--mock")
    assert "`hil.emulator.KINDS`" in run("emulate", unemulated, status=2)[1]
    assert "the name of AcmeDrive" in refused("check", acme(), "--mock")  # another file by now
    for text, told in (("", "registers none"), ("1 / 0", "ZeroDivisionError in line 1: ")):
        assert told in refused("check", acme(text), "--mock")


@pytest.mark.extended
@pytest.mark.usefixtures("unreported")
def test_replay_with_another_driver(acme, tmp_path):
    folder = tmp_path / "record"
    with forgotten():
        run("drive", acme(), "--mock", "--duration", 0.4, "--out", folder)
        rig = Path(acme())
        assert json.loads(run("replay", folder, "--rig", rig, "--json")[0])["passed"]
        (kept,) = copied_modules(hil.Record.load(folder).manifest)
        assert (folder / FOLDER / kept["file"]).read_text() == ACME
        # The rig that it was made with may be gone: the record needs nothing but itself.
        rig.with_name("acme_drive.py").unlink()
        rig.unlink()
        out = run("replay", folder, "--allow-code", "--json")[0]
        assert json.loads(out)["passed"]
    acme(ACME + "# another")
    assert "got another driver." in refused("replay", folder, "--rig", rig)
    told = json.loads(run("replay", folder, "--rig", rig, "--force", "--json", status=1)[0])
    assert told["not_those_of_the_record"] == ["driver"]
    assert told["differences"] == []
    assert told["passed"] is False


# --- rejected input ---------------------------------------------------------------------------


@pytest.mark.parametrize("command", [c for c in COMMANDS if c != "replay"])
def test_a_file_that_is_missing(command, tmp_path):
    assert "nowhere.toml" in refused(command, tmp_path / "nowhere.toml")


def test_a_record_that_is_missing(tmp_path):
    assert "nowhere" in refused("replay", tmp_path / "nowhere")


@pytest.mark.parametrize("command", [c for c in COMMANDS if c != "replay"])
def test_a_field_that_is_misspelt(command, changed):
    file = changed(("torque_rate_limit", "torque_rat_limit"))
    assert "torque_rate_limit" in refused(command, file)


def test_a_bus_that_cannot_carry_it(changed):
    error = refused("check", changed(("bitrate = 1_000_000", "bitrate = 250_000")), "--mock")
    assert "%" in error


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--mock", "--emulate"], "--mock"),
        (["--mock", "--heartbeat", "habit"], "habit"),
        (["--fault", "drop,turret,1,1"], "emulated"),
        (["--mock", "--fault", "flood"], "flood"),
        (["--mock", "--fault", "drop,tail"], "tail"),
        (["--mock", "--duration", "-1"], "-1"),
        (["--mock", "--duration", "nan"], "nan"),
        (["--yes", "--heartbeat", "auto"], "auto"),
        ([], "--yes"),  # no interactive terminal
    ],
    ids=range(9),  # the folder's name, in the message, must not contain the expected text
)
def test_drive_refuses(words, told, alone):
    _, err = run("drive", alone, *words, status=2)
    assert told in err
    assert "Traceback" not in err
    assert len([line for line in err.splitlines() if line.startswith("concur-rig: ")]) == 1


# --- drive and replay -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def driven(tmp_path_factory):
    """A short run with mock drives: its folder and its output."""
    folder = tmp_path_factory.mktemp("driven") / "record"
    with pytest.MonkeyPatch.context() as patch:  # fewer pixels, for speed
        patch.setattr("concur.show.style.DPI", 30)
        out, err = run("drive", RIG, "--mock", "--duration", 1, "--out", folder, "--json")
    assert err == ""
    return folder, json.loads(out)


def test_drive_with_mock_drives(driven):
    folder, result = driven
    assert result["passed"]
    assert (result["mode"], result["reason"], result["record"]) == ("mock", "END", str(folder))
    assert result["elapsed"] == pytest.approx(1.0, abs=0.005)
    assert result["complete"]
    assert result["recorded"] == result["quality"]["cycles"] == len(hil.Record.load(folder))
    assert result["quality"]["late"] == result["quality"]["lost"] == 0
    assert set(result["error"]) == {"base", "hand"}
    assert all(Path(file).is_file() for file in result["files"])
    assert Path(result["files"][0]).name == "report.html"


@pytest.mark.usefixtures("unreported")
def test_drive_that_stops_has_status_1(tmp_path):
    words = (
        "--mock",
        "--duration",
        2,
        "--fault",
        "drive_fault,turret,1.5",
        "--out",
        tmp_path / "r",
    )
    out, _ = run("drive", RIG, *words, status=1)
    assert "DRIVE_FAULT: a drive reports a fault" in " ".join(out.split())
    assert hil.Record.load(tmp_path / "r").manifest["end"]["reason"] == "DRIVE_FAULT"


def test_a_record_is_not_written_over(driven):
    assert str(driven[0]) in refused("drive", RIG, "--mock", "--duration", 1, "--out", driven[0])


@pytest.mark.extended
def test_replay(driven, tmp_path):
    folder, result = driven
    out, err = run("replay", folder, "--out", tmp_path, "--mcap", "--hdf5", "--json")
    replayed = json.loads(out)
    assert err == ""
    assert replayed["passed"]
    assert replayed["exact"]
    assert replayed["differences"] == []
    assert replayed["cycles"] == result["recorded"]
    assert replayed["evaluated"] >= 250
    written = {path.name for path in tmp_path.iterdir()}
    assert {"report.html", "record.mcap", "record.h5"} <= written
    with h5py.File(tmp_path / "record.h5") as file:
        assert len(file) > 0
    assert {Path(file).parent for file in replayed["files"]} == {tmp_path}


@pytest.mark.usefixtures("unreported")
def test_replay_with_another_law(driven, changed, tmp_path):
    folder, _ = driven
    task = (EXAMPLE / "task.toml").read_text(encoding="utf-8").replace("= 9.0", "= 8.0", 1)
    (tmp_path / "other.toml").write_text(task, encoding="utf-8")
    shutil.copy(EXAMPLE / "robot.toml", tmp_path)
    rig = changed(((EXAMPLE / "task.toml").as_posix(), "other.toml"), ("certificate", "# none"))
    assert "--force" in refused("replay", folder, "--rig", rig)
    out, _ = run("replay", folder, "--rig", rig, "--force", "--json", "--out", tmp_path, status=1)
    result = json.loads(out)
    assert not result["passed"]
    assert result["differences"]


# --- modes and wishes -------------------------------------------------------------------------


@pytest.fixture
def asked(monkeypatch, tmp_path, driven):
    """Records the options of a session, and runs nothing."""
    wishes = []

    def fake(rig, wished, **_):
        wishes.append(wished)
        nothing = Outcome(
            wished.mode,
            hil.Reason.SIGNAL,
            0.0,
            _run.np.full(5, _run.np.nan),
            Quality(),
            Granted(0, False, ("no SCHED_FIFO",)),
        )
        return Result(nothing, driven[0], 0, False)

    monkeypatch.setattr(_run, "run_session", fake)
    monkeypatch.setattr(_run, "write_report", lambda *_: tmp_path / "report.html")
    return wishes


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("listen",), {"mode": Mode.LISTEN}),
        (("shadow", "--duration", 3), {"mode": Mode.SHADOW, "duration": 3.0}),
        (("drive", "--yes"), {"mode": Mode.DRIVE, "heartbeat": "keys", "emulated": False}),
        (
            ("drive", "--yes", "--heartbeat", "port", "--token", "SECRET", "--reset"),
            {"heartbeat": "port", "token": "SECRET", "resets": True},
        ),
        (("drive", "--yes", "--dashboard", 8123), {"dashboard": 8123}),
        (("drive", "--mock", "--out", "here"), {"mode": Mode.MOCK, "folder": Path("here")}),
    ],
)
def test_options_reach_the_session(words, expected, asked):
    out, _ = run(words[0], RIG, *words[1:], status=1)
    (wished,) = asked
    assert {name: getattr(wished, name) for name in expected} == expected
    assert "note: no SCHED_FIFO" in out
    assert "SIGNAL" in out


@pytest.mark.parametrize("word", ["listen", "shadow"])
def test_silent_modes_know_no_option_that_drives(word):
    options = {option for parameter in COMMANDS[word].params for option in parameter.opts}
    assert not options & {"--yes", "--reset", "--heartbeat", "--token", "--mock", "--emulate"}


def test_json_alone_stands_in_the_output(asked):
    out, err = run("drive", RIG, "--yes", "--json", status=1)
    assert json.loads(out)["reason"] == "SIGNAL"
    assert json.loads(out)["notes"] == ["no SCHED_FIFO"]
    assert "must be wired" in err  # limits are for people


# --- processes --------------------------------------------------------------------------------


def started(*words, **options):
    code = "from hil.cli import main; main()"
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


@pytest.mark.extended
def test_listening_ends_by_an_interrupt(alone, tmp_path):
    record = tmp_path / "record"
    with started("listen", alone, "--out", record, "--json") as process:
        rows = record / "rows.bin"
        until = time.monotonic() + 60.0
        while process.poll() is None and time.monotonic() < until:
            if rows.is_file() and rows.stat().st_size > 20_000:
                break
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30.0)
    assert process.returncode == 1, err
    result = json.loads(out)
    assert (result["mode"], result["reason"]) == ("listen", "SIGNAL")
    assert result["recorded"] > 0


@pytest.mark.parametrize("duration", ["nan", "inf", "0", "-1"])
def test_emulate_refuses_what_is_no_time(duration):
    assert "option `--duration`" in refused("emulate", RIG, "--duration", duration)


@pytest.mark.parametrize("port", ["0", "65536"])
def test_dashboards_have_a_port_that_can_be_named(port):
    assert "--dashboard" in run("drive", RIG, "--mock", "--dashboard", port, status=2)[1]


@pytest.mark.extended
def test_emulate_runs_for_its_duration(changed):
    rig = changed(("port = 43113", f"port = {free_udp_port()}"))
    words = ("emulate", rig, "--duration", "0.1", "--fault", "drop,turret,0,0.1")
    with started(*words, env=os.environ | {"COLUMNS": "200"}) as process:
        out, err = process.communicate(timeout=120.0)
    assert process.returncode == 0, err
    assert re.search(r"5 drives on udp_multicast 239\.255\.99\.2; press Ctrl-C to end", out)
    assert out.rstrip().endswith("ended")


# -- the report of a run at its end: terminal and JSON show every error ------------------------


EXAMPLE = Path(__file__).parents[2] / "examples" / "rover_rig"
RIG = str(EXAMPLE / "rig.toml")
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
    words = ["drive", RIG, "--mock"]
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
    with pytest.raises(typer.Exit), errors_in_lines("concur-rig"):
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
