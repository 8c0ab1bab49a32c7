"""Pages on rig and drives agree with the code: complete tables, right constants, code that runs."""

import dataclasses
import doctest
import json
import re
import struct
import tomllib
import types
from pathlib import Path

import can
import numpy as np
import pytest
import typer
from typer.testing import CliRunner

import hil
from hil.bus import open_bus
from hil.cli import main
from hil.cli._check import check_rig
from hil.clock import MonotonicClock, SteppedClock
from hil.drives import Finding, Wanted, _drive, make_drives
from hil.drives.feedback import Feedback
from hil.emulator import _faults
from hil.operator import OperatorChannel
from hil.quality import Quality
from hil.rig import BusSettings, OperatorSettings, PoseSettings
from hil.rig.busload import bus_loads
from hil.state.pose_source import PoseReceiver
from tests.hil._acme import forgotten

ROOT = Path(__file__).parents[2]
PAGES = ("docs/rig.md", "docs/howto/drive.md")
PAGE = "\n".join((ROOT / page).read_text(encoding="utf-8") for page in PAGES)
RIG = ROOT / "examples/rover_rig/rig.toml"
COMMANDS = typer.main.get_command(main).commands


@pytest.fixture(scope="module", autouse=True)
def kinds():
    """Kinds of drives that are registered here are forgotten afterwards."""
    with forgotten():
        yield


def section(title):
    """Text under a heading, up to the next one."""
    found = re.search(rf"^#+ {re.escape(title)}\n(.*?)(?=^#+ |\Z)", PAGE, re.DOTALL | re.MULTILINE)
    assert found, f"no heading `{title}`"
    return found[1]


def rows(text):
    """Cells of each row of a table whose first cell is in backticks, by that cell."""
    found = {}
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if line.startswith("| `"):
            name = cells[0].strip("`")
            assert name not in found, f"`{name}` has two rows"
            found[name] = cells[1:]
    return found


def block(word):
    """The Python block that holds a word."""
    (found,) = [
        code
        for code in re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
        if word in code
    ]
    return found


def execute(word, **names):
    names |= {"__name__": "session"}
    exec(compile(block(word), f"docs/rig.md, `{word}`", "exec"), names)
    return names


# --- tables -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("title", "sentences"),
    [("States", hil.State), ("Reasons", hil.Reason)],
    ids=["states", "reasons"],
)
def test_states_and_reasons_have_their_sentences(title, sentences):
    told = {name: cells[0] for name, cells in rows(section(title)).items()}
    assert told == {member.name: member.sentence for member in sentences}


def test_every_flag_of_the_guard_has_a_row():
    flags = {flag.name for flag in hil.Flag if flag}
    assert set(rows(section("The guard"))) == flags


def test_every_fault_has_a_row():
    told = {name: cells[0] for name, cells in rows(section("Without hardware")).items()}
    assert told == {kind.name.lower(): kind.value for kind in hil.FaultKind}


def test_every_counter_has_a_row():
    fields = [f.name for f in dataclasses.fields(Quality)]
    counters = {name for name in fields if isinstance(getattr(Quality(), name), int)}
    assert set(rows(section("Loop statistics"))) == counters
    for name in set(fields) - counters:
        assert f"`{name}`" in section("Loop statistics")


def test_every_command_has_a_row():
    told = {name.removeprefix("concur-rig ") for name in rows(section("The rig"))}
    assert told == set(COMMANDS)


def test_commands_and_options_exist():
    calls = re.findall(r"concur-rig ([a-z]+)((?: [^`\n#]*)?)", PAGE)
    assert len(calls) > 10
    for name, words in calls:
        assert name in COMMANDS, f"no command `{name}`"
        known = {option for parameter in COMMANDS[name].params for option in parameter.opts}
        for option in re.findall(r"--[a-z][a-z0-9-]+", words):
            assert option in known, f"`concur-rig {name}` has no option `{option}`"


def test_options_that_are_named_alone_exist():
    known = {o for c in COMMANDS.values() for p in c.params for o in p.opts}
    named = set(re.findall(r"`(--[a-z][a-z0-9-]+)", PAGE))
    assert named
    assert not named - known


# --- code -------------------------------------------------------------------------------------


def test_pendant_keeps_the_rig_alive_until_it_is_let_go(monkeypatch):
    clock = MonotonicClock()
    settings = OperatorSettings(port=0)
    with OperatorChannel(settings, clock, token="SECRET") as channel:
        heard = []

        class Button:
            def is_pressed(self):
                heard.append(channel.poll())
                return len(heard) < 4

        code = block("pendant").replace("47110", str(channel.port))
        assert str(channel.port) in code
        exec(compile(code, "docs/rig.md", "exec"), {"button": Button()})
        # The first heartbeat asks for a challenge.
        assert heard == [hil.Reason.DEADMAN] * 2 + [hil.Reason.NONE] * 2
        assert channel.poll() is hil.Reason.OPERATOR
        assert channel.refused == channel.invalid == channel.repeated == 0


def test_bridge_of_motion_capture_sends_poses():
    markers = [
        types.SimpleNamespace(position=(0.1 * k, 0.2, 0.3), quaternion=(0, 0, 0, 1))
        for k in range(3)
    ]

    class Capture(list):
        latency = 0.01

    with PoseReceiver(PoseSettings("udp", port=0), "chassis") as receiver:
        code = block("PoseSender").replace("47111", str(receiver.port))
        before = MonotonicClock().now()
        exec(compile(code, "docs/rig.md", "exec"), {"capture": Capture(markers)})
        now = MonotonicClock().now()
        got = list(receiver.poll(now))
    assert [m.position for m in got] == [m.position for m in markers]
    for measurement in got:
        assert before - 0.01 <= measurement.time <= now - 0.01


@pytest.fixture(scope="module")
def frozen(tmp_path_factory):
    """A run with a fault, as the page makes it."""
    folder = tmp_path_factory.mktemp("rig") / "record"
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        return execute("hil.Fault(", folder=folder) | {"folder": folder}


def test_fault_stops_a_mock_run(frozen):
    outcome = frozen["result"].outcome
    assert outcome.reason in (hil.Reason.STUCK, hil.Reason.OVERSPEED), outcome.reason
    assert 0.5 < outcome.elapsed < 2.5  # the rig is armed in between


def test_record_is_read_and_written_elsewhere(frozen, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = execute("save_mcap", folder=frozen["folder"])
    assert names["late"] == 0.0  # simulated time is never late
    assert np.isfinite(names["worst"]).all()
    assert frozen["result"].outcome.reason.name in capsys.readouterr().out
    assert {path.name for path in tmp_path.iterdir()} == {"record.h5", "record.mcap"}


@pytest.mark.extended
def test_files_of_a_record_are_those_of_the_table(frozen):
    hil.write_report(hil.Record.load(frozen["folder"]), frozen["folder"])
    assert set(rows(section("Recordings"))) == {path.name for path in frozen["folder"].iterdir()}


@pytest.fixture(scope="module")
def micro():
    """Text of the file that registers the third kind of drive."""
    return block("class MicroDrive")


@pytest.fixture
def micro_rig(micro, tmp_path):
    text = RIG.read_text(encoding="utf-8").replace('drive = "cia402"', 'drive = "micro"')
    text = re.sub(r"^(counts|rated_torque|certificate) = .*\n", "", text, flags=re.MULTILINE)
    task = (RIG.parent / "task.toml").as_posix()
    field = re.search(r"^drive_modules = .*\n", PAGE, re.MULTILINE)[0]
    (name,) = tomllib.loads(field)["drive_modules"]
    (tmp_path / name).write_text(micro, encoding="utf-8")
    path = tmp_path / "rig.toml"
    path.write_text(field + text.replace('"task.toml"', f'"{task}"'), encoding="utf-8")
    rig = hil.load_rig(path)
    return dataclasses.replace(
        rig,
        buses=(BusSettings("virtual", str(tmp_path)),),
    )


def test_third_kind_of_drive_is_a_drive_of_a_rig_file(micro_rig):
    drives = make_drives(micro_rig)
    assert {type(drive).__name__ for drive in drives} == {"MicroDrive"}
    (load,) = bus_loads(micro_rig, drives)
    assert load.fits
    assert load.share == pytest.approx(10 * 95 * 250 / 1e6)


def test_third_kind_of_drive_speaks(micro_rig):
    clock, feedback = SteppedClock(), Feedback(5)
    drive = make_drives(micro_rig)[2]
    with open_bus(micro_rig.buses[0], clock) as host, open_bus(micro_rig.buses[0], clock) as motor:
        assert [check.finding for check in drive.inspect(host)] == [Finding.MISSING]
        with pytest.raises(hil.errors.ArmError, match="answers"):
            drive.prepare(host)
        while motor.receive() is not None:
            pass
        host.send(drive.command(Wanted.TORQUE, -1.25))
        frame = motor.receive()
        assert frame.arbitration_id == 0x403
        assert int.from_bytes(frame.data, "little", signed=True) == -1_250_000
        assert bytes(drive.command(Wanted.READY, -1.25).data) == bytes(4)
        frame.arbitration_id, frame.data = 0x503, (500_000).to_bytes(4, "little")
        motor.send(frame)
        assert [check.finding for check in drive.prepare(host)] == [Finding.FOUND]
        assert drive.receive(frame, 1.0, feedback)
        assert feedback.position[2] == 0.5
        frame.data = b"\0\0\0"
        assert not drive.receive(frame, 1.0, feedback)
        assert feedback.invalid.tolist() == [0, 0, 1, 0, 0]
        host.silent = True
        assert [check.finding for check in drive.inspect(host)] == [Finding.UNKNOWN]


@pytest.mark.extended
@pytest.mark.usefixtures("unreported")
def test_mock_commands_of_the_page(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples", target_is_directory=True)
    lines = re.findall(r"^concur-rig (.*--mock.*)$", PAGE, re.MULTILINE)
    statuses, reasons = [], []
    for line in lines:
        short = ["--duration", "2"] if line.endswith("--yes") else []
        done = CliRunner().invoke(main, [*line.split(), *short, "--json"])
        statuses.append(done.exit_code)
        reasons.append(json.loads(done.stdout).get("reason"))
    assert [line.split()[0] for line in lines] == ["drive", "commission", "check", "drive"]
    assert statuses == [0, 0, 0, 1]
    assert reasons == ["END", "END", None, "DRIVE_FAULT"]


@pytest.mark.extended
@pytest.mark.parametrize("module", [hil, _drive, _faults], ids=lambda module: module.__name__)
def test_examples_of_docstrings(module, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples", target_is_directory=True)
    names = {"hil": hil, "can": can, "struct": struct, "register_drive": hil.register_drive}
    done = doctest.testmod(module, extraglobs=names)
    assert done.attempted
    assert not done.failed


def as_printed(folder, field="", text=""):
    """The rig file of the manual beside the task of the example, with a changed line."""
    page = (ROOT / "docs/rig_files.md").read_text(encoding="utf-8")
    (printed,) = re.findall(r"^```toml\n(name = .*?)^```", page, re.DOTALL | re.MULTILINE)
    task = (RIG.parent / "task.toml").as_posix()
    path = folder / "rig.toml"
    printed = printed.replace('"task.toml"', f'"{task}"').replace(field, text, bool(field))
    path.write_text(printed, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("field", "text", "what"),
    [
        ("", "", ""),
        ("rate = 250.0", "rate = 250.0\n[emulator]\nlatency = 0.6e-3", ""),
        ("rate = 250.0", "rate = 250.0\n[emulator]\nlatency = 0.8e-3", "round trip"),
        ("rated_torque = 4.0", "rated_torque = 4.0\nwatchdog_torque = 0.007", "watchdog test"),
    ],
    ids=["as printed", "within the window", "beyond the window", "load too small"],
)
def test_check_and_drive_agree_on_the_rig_file_of_the_manual(tmp_path, field, text, what):
    """A mock run is refused where the check finds a fault, and nowhere else."""
    path = as_printed(tmp_path, field, text)
    checked = check_rig(path, mock=True)
    options = hil.SessionOptions(hil.Mode.MOCK, duration=0.1, folder=tmp_path / "record")
    if not what:
        assert checked.passed
        assert {check.finding for check in checked.checks} == {Finding.FOUND}
        assert hil.run_session(checked.rig, options).outcome.done
        return
    assert not checked.passed
    assert what in checked.checks[-1].what
    with pytest.raises(hil.errors.RigError, match=what) as caught:
        hil.run_session(checked.rig, options)
    assert caught.value.came == checked.checks[-1].came
