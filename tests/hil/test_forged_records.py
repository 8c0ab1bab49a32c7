"""Records of strangers: cut, lengthened, contradicting themselves, and with traps in them."""

import dataclasses
import hashlib
import json
import os
import shutil
import socket
import struct
import zlib

import numpy as np
import pytest
from typer.testing import CliRunner

from hil.cli import _replay, main
from hil.controller import Mode
from hil.emulator import Fault
from hil.errors import RecordError, RigFileError
from hil.reasons import Reason, State
from hil.record import Record
from hil.record._drain import ROWS_FILE, write_json
from hil.record.copies import FOLDER, recorded_rig
from hil.replay import replay
from hil.rig import load_rig
from hil.session import SessionOptions, run_session
from tests.hil._acme import ACME, forgotten
from tests.hil._records import ROOT, write_rows

RIG = ROOT / "examples" / "rover_rig" / "rig.toml"
HEADER = struct.Struct("<4sIqQ8sI")


@pytest.fixture(scope="module")
def rig():
    return load_rig(RIG)


@pytest.fixture(scope="module")
def servo(rig):
    return rig.task.servo


@pytest.fixture(scope="module")
def made(rig, servo, tmp_path_factory):
    """Folder of a run of 0.4 s; never to be changed."""
    folder = tmp_path_factory.mktemp("forged") / "run"
    wishes = SessionOptions(Mode.MOCK, duration=0.4, folder=folder)
    assert run_session(rig, wishes, servo).outcome.done
    return folder


@pytest.fixture
def folder(made, tmp_path):
    return shutil.copytree(made, tmp_path / "run")


def manifest_of(folder):
    return json.loads((folder / "manifest.json").read_text())


def edit(folder, **entries):
    write_json(folder / "manifest.json", manifest_of(folder) | entries)


def end(folder, **entries):
    edit(folder, end=manifest_of(folder)["end"] | entries)


def data_of(folder):
    return (folder / ROWS_FILE).read_bytes()


def chunk(kind, first, payload, before=bytes(8)):
    """As the format is described, without the code that writes it."""
    start = struct.pack("<4sIqQ", b"CCRW", kind, first, len(payload))
    start += hashlib.sha256(before + start + payload).digest()[:8]
    return start + struct.pack("<I", zlib.crc32(start + payload)) + payload


def places(data):
    """Where the chunks of a file begin and end, by their headers alone."""
    place, found = 0, []
    while place < len(data):
        length = HEADER.unpack_from(data, place)[3]
        found.append((place, place + HEADER.size + length))
        place = found[-1][1]
    return found


# --- incomplete records -----------------------------------------------------------------------


def cut_at_a_chunk(folder):
    data = data_of(folder)
    (folder / ROWS_FILE).write_bytes(data[: places(data)[-1][0]])


def cut_in_half(folder):
    data = data_of(folder)
    (folder / ROWS_FILE).write_bytes(data[: len(data) // 2])


def one_byte_less(folder):
    (folder / ROWS_FILE).write_bytes(data_of(folder)[:-1])


def one_byte_more(folder):
    (folder / ROWS_FILE).write_bytes(data_of(folder) + b"\0")


def garbage_between(folder):
    data = data_of(folder)
    _, place = places(data)[0]
    (folder / ROWS_FILE).write_bytes(data[:place] + b"garbage" + data[place:])


def a_chunk_twice(folder):
    data = data_of(folder)
    begin, last = places(data)[-1]
    (folder / ROWS_FILE).write_bytes(data + data[begin:last])


def the_layout_twice(folder):
    data = data_of(folder)
    (folder / ROWS_FILE).write_bytes(data + data[: places(data)[0][1]])


def an_unknown_chunk(folder):
    (folder / ROWS_FILE).write_bytes(data_of(folder) + chunk(7, 0, b"more"))


def rows_far_away(folder):
    width = Record.load(folder).layout.width
    more = chunk(1, 2**62, bytes(8 * width))
    (folder / ROWS_FILE).write_bytes(data_of(folder) + more)


def rows_before_the_first(folder):
    width = Record.load(folder).layout.width
    more = chunk(1, -1, bytes(8 * width))
    (folder / ROWS_FILE).write_bytes(data_of(folder) + more)


def part_of_a_row(folder):
    more = chunk(1, len(Record.load(folder)), bytes(8))
    (folder / ROWS_FILE).write_bytes(data_of(folder) + more)


def no_layout(folder):
    data = data_of(folder)
    (folder / ROWS_FILE).write_bytes(data[places(data)[0][1] :])


def no_rows(folder):
    (folder / ROWS_FILE).unlink()


def fewer_rows_told(folder):
    end(folder, rows=len(Record.load(folder)) - 1)


def more_rows_told(folder):
    end(folder, rows=len(Record.load(folder)) + 1)


def lost_rows_told(folder):
    end(folder, lost=1)


def unwritten_rows_told(folder):
    end(folder, unwritten=1)


def no_number_of_rows(folder):
    edit(folder, end={"reason": "END"})


def no_end(folder):
    manifest = manifest_of(folder)
    del manifest["end"]
    write_json(folder / "manifest.json", manifest)


def another_reason(folder):
    end(folder, reason="TRACKING")


def cut_with_a_manifest_that_fits(folder):
    """The number of rows is forged too, but the last row is in the middle of the run."""
    record = Record.load(folder)
    rows, half = record.rows, len(record) // 4
    write_rows(folder, record.layout, (0, rows[:half]))
    end(folder, rows=half)


WAYS = [
    cut_at_a_chunk,
    cut_in_half,
    one_byte_less,
    one_byte_more,
    garbage_between,
    a_chunk_twice,
    the_layout_twice,
    an_unknown_chunk,
    rows_far_away,
    rows_before_the_first,
    part_of_a_row,
    no_layout,
    no_rows,
    fewer_rows_told,
    more_rows_told,
    lost_rows_told,
    unwritten_rows_told,
    no_number_of_rows,
    no_end,
    another_reason,
    cut_with_a_manifest_that_fits,
]


def test_a_record_that_is_whole_has_no_faults(made, rig, servo):
    record = Record.load(made)
    assert record.faults == ()
    assert record.complete
    report = replay(record, rig, servo=servo)
    assert report.passed
    assert report.as_dict()["faults"] == []


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_a_record_that_is_not_whole_does_not_pass(folder, rig, servo, way):
    way(folder)
    record = Record.load(folder)
    assert record.faults
    assert not record.complete
    assert set(record.faults) <= set(record.notes)
    report = replay(record, rig, servo=servo)
    assert not report.passed
    told = json.loads(json.dumps(report.as_dict()))
    assert told["complete"] is False
    assert told["faults"] == list(record.faults)
    assert ("verdict", "not as recorded") in report.rows()


def test_a_controller_that_died_leaves_a_record_that_is_whole_up_to_there(folder, rig, servo):
    cut_with_a_manifest_that_fits(folder)
    end(folder, reason="controller died")
    report = replay(folder, rig, servo=servo)
    assert report.passed
    assert ("note", "the controller died") in report.rows()


@pytest.mark.parametrize(
    "entries",
    [
        {"end": []},
        {"end": {"rows": -1}},
        {"end": {"rows": 1.5}},
        {"end": {"rows": True}},
        {"end": {"rows": 2**53 + 1}},
        {"end": {"rows": 10**400}},
        {"end": {"rows": "many"}},
        {"end": {"rows": 3, "lost": None}},
        {"end": {"reason": 7}},
        {"layout": {"axes": "abc", "nq": 1, "ns": 1, "pose_size": 1, "size": 1}},
        {"layout": {"axes": ["a"], "nq": -1, "ns": 1, "pose_size": 1, "size": 1}},
        {"layout": {"axes": ["a"], "nq": 10**12, "ns": 1, "pose_size": 1, "size": 1}},
        {"layout": {"axes": ["a"], "nq": 1.0, "ns": 1, "pose_size": 1, "size": 1}},
        {"layout": {"axes": ["a"], "nq": float("nan"), "ns": 1, "pose_size": 1, "size": 1}},
        {"layout": []},
        {"wall_minus_clock": float("nan")},
        {"wall_minus_clock": "now"},
        {"columns": {"q": 3}},
        {"columns": {"q": [["a"]]}},
        {"limits": {"a": 3}},
        {"limits": {"a": {"torque": 10**400}}},
        {"rate": 0},
        {"rate": "250"},
        {"rate": float("nan")},
        {"rate": 10**400},
        {"end": {"counters": []}},
        {"end": {"counters": {"late": "x"}}},
        {"end": {"counters": {"late": -(10**400)}}},
        {"machine": []},
        {"fingerprints": 3},
        {"facts": None},
        {"files": {}},
        {"files": [{"role": "rig", "file": "../rig.toml", "was": "/x", "sha256": 64 * "0"}]},
        {"files": [{"role": "rig", "file": "/etc/passwd", "was": "/x", "sha256": 64 * "0"}]},
        {"files": [{"role": "rig", "file": "a/../../x", "was": "/x", "sha256": 64 * "0"}]},
        {"files": [{"role": "rig", "file": "", "was": "/x", "sha256": 64 * "0"}]},
        {"files": [{"role": "rig", "file": "..\\x", "was": "/x", "sha256": 64 * "0"}]},
        {"files": [{"role": "rig", "file": "x", "was": "/x", "sha256": "short"}]},
        {"files": 2 * [{"role": "rig", "file": "x", "was": "/x", "sha256": 64 * "0"}]},
    ],
    ids=str,
)
def test_manifests_of_nonsense_are_refused(folder, entries):
    edit(folder, **entries)
    with pytest.raises(RecordError, match=r"manifest"):
        Record.load(folder)


# --- rows that contradict themselves ----------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("reason", Reason.TRACKING),
        ("cycle", 7.0),
        ("elapsed", 0.0),
        ("late", 1.0),
        ("lost", 1.0),
        ("axis", 1.0),
        ("clipped", 0.0),
        ("enabled", 0.0),
        ("fault", 1.0),
        ("invalid", 1.0),
    ],
)
def test_one_altered_number_of_a_run_does_not_pass(made, rig, servo, name, value):
    record = Record.load(made)
    record = dataclasses.replace(record, rows=record.rows.copy())
    k = int(np.flatnonzero(record["state"] == State.RUN)[20])
    column = record[name] if record[name].ndim == 1 else record[name][:, 1]
    assert column[k] != value
    column[k] = value
    report = replay(record, rig, servo=servo)
    assert not report.passed
    assert f"record: {name}" in [difference.what for difference in report.differences]
    assert all(difference.cycle in (k, k + 1) for difference in report.differences)
    assert ("verdict", "not as recorded") in report.rows()


CHANGES = {
    "rate": lambda rate: 2.0 * rate,
    "limits": lambda limits: limits | {"turret": {"torque": 24.0, "speed": 3.0}},
    "mode": lambda _: "listen",
    "name": lambda _: "another rig",
    "started": lambda _: "2026-01-01T00:00:00.000+00:00",
    "wall_minus_clock": lambda offset: offset + 1.0,
}


@pytest.mark.parametrize("entry", CHANGES)
def test_a_manifest_that_was_changed_after_the_run_does_not_pass(folder, rig, servo, entry):
    """Reports judge the rows by it."""
    edit(folder, **{entry: CHANGES[entry](manifest_of(folder)[entry])})
    report = replay(folder, rig, servo=servo)
    assert not report.passed
    assert any("manifest" in fault for fault in report.record.faults)


@pytest.mark.parametrize("what", ["rate", "torque limit of turret", "speed limit of turret"])
def test_a_forged_manifest_has_the_rate_and_the_limits_of_the_rig(folder, rig, servo, what):
    """Rows that were bound to it again do not help."""
    record, manifest = Record.load(folder), manifest_of(folder)
    if what == "rate":
        edit(folder, rate=2.0 * manifest["rate"])
    else:
        manifest["limits"]["turret"][what.split()[0]] *= 2.0
        edit(folder, limits=manifest["limits"])
    write_rows(folder, record.layout, (0, record.rows))
    report = replay(folder, rig, servo=servo)
    assert not report.record.faults
    assert [difference.what for difference in report.differences] == [f"manifest: {what}"]


# --- stops of another axis, or for another reason ---------------------------------------------

STOPS = {
    "drive fault": (Fault("drive_fault", "turret"), Reason.DRIVE_FAULT, 2),
    "frozen": (Fault("freeze", "left_wheel", way="to_host"), Reason.STUCK, 0),
    "lost": (Fault("drop", "turret", way="to_host"), Reason.LOST, 2),
    "late": (Fault("delay", "forearm", value=0.017, way="to_host"), Reason.STALE, 4),
    "no power": (Fault("bus_off", "*"), Reason.POWER_LOST, -1),
    "done": (None, Reason.END, -1),
}
LATER = [Reason.TRACKING, Reason.OVERSPEED, Reason.END]
"""Reasons that the loop looks for after the drives and the motion of the axes."""


@pytest.fixture(scope="module")
def stopped(made, rig, servo, tmp_path_factory):
    """Records of runs that stopped, by name."""
    whole = Record.load(made)
    # The clock of an emulated rig starts at 1000 s.
    begins = float(whole["time"][np.argmax(whole["state"] == State.RUN)]) - 1000.0
    found = {}

    def record(name):
        fault, reason, axis = STOPS[name]
        if name not in found:
            folder = tmp_path_factory.mktemp("stopped") / "run"
            faults = () if fault is None else (dataclasses.replace(fault, at=begins + 0.3),)
            wishes = SessionOptions(Mode.MOCK, duration=0.6, folder=folder, faults=faults)
            run_session(rig, wishes, servo)
            found[name] = Record.load(folder)
            first = np.argmax(found[name]["state"] == State.STOP)
            assert (found[name]["reason"][first], found[name]["axis"][first]) == (reason, axis)
        return found[name]

    return record


def with_stop(record, **changes):
    """The record with another reason or axis in all rows of its stop."""
    record = dataclasses.replace(record, rows=record.rows.copy())
    stops = record["state"] == State.STOP
    for name, value in changes.items():
        record[name][stops] = value
    return record


@pytest.mark.by_default(2)
@pytest.mark.parametrize("name", STOPS)
def test_the_reason_and_the_axis_of_a_stop_follow_from_the_rows(stopped, rig, servo, name):
    record = stopped(name)
    _, reason, axis = STOPS[name]
    assert not replay(record, rig, servo=servo).differences
    other = (axis + 1) % len(rig.axes)
    later = next(later for later in LATER[axis % 3 :] + LATER if later is not reason)
    forgeries = [("axis", other), ("reason", later)]
    for what, value in forgeries:
        report = replay(with_stop(record, **{what: value}), rig, servo=servo)
        assert not report.passed
        found = {difference.what: difference for difference in report.differences}
        # Rows do not show whether reports are late: they permit it where some are missing.
        true = Reason.NONE if name == "late" else reason
        assert found[f"stop: {what}"].replayed == {"axis": axis, "reason": true}[what]


# --- parts of two runs ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def other(rig, servo, tmp_path_factory):
    """Folder of another run of the same rig, with as many rows."""
    folder = tmp_path_factory.mktemp("forged") / "other"
    wishes = SessionOptions(Mode.MOCK, duration=0.4, folder=folder)
    assert run_session(rig, wishes, servo).outcome.done
    return folder


@pytest.mark.parametrize("file", ["manifest.json", ROWS_FILE])
def test_rows_and_manifest_of_two_runs_are_refused(folder, other, file):
    assert len(Record.load(folder)) == len(Record.load(other))
    shutil.copy(other / file, folder / file)
    with pytest.raises(RecordError, match="rows with run and layout of the manifest"):
        Record.load(folder)


def test_the_end_of_another_run_does_not_pass(folder, other, rig, servo):
    edit(folder, end=manifest_of(other)["end"])
    report = replay(folder, rig, servo=servo)
    assert not report.passed
    assert any("the end of the manifest" in fault for fault in report.record.faults)


@pytest.mark.parametrize("how", ["replaced", "removed", "moved"])
def test_chunks_of_another_run_or_place_are_found(folder, other, rig, servo, how):
    """The cycle numbers fit; only the links do not."""
    for made in (folder, other):
        record = Record.load(made)
        write_rows(made, record.layout, *((k, record.rows[k : k + 20]) for k in range(0, 60, 20)))
    data, strange = data_of(folder), data_of(other)
    own, theirs = places(data), places(strange)
    assert own == theirs
    parts = [data[begin:end] for begin, end in own]
    if how == "replaced":
        parts[2] = strange[slice(*theirs[2])]
    elif how == "removed":
        del parts[2]
    else:
        parts[1], parts[2] = parts[2], parts[1]
    (folder / ROWS_FILE).write_bytes(b"".join(parts))
    end(folder, rows=len(parts[1:]) * 20)
    faults = Record.load(folder).faults
    assert any("does not follow the one before" in fault for fault in faults)
    assert not replay(folder, rig, servo=servo).passed


def test_terminals_obey_nothing_in_a_manifest(folder, rig, servo):
    end(folder, note="\x1b[2J", left=["\x1b[31ma"], recorder="\x07")
    notes = Record.load(folder).notes
    assert len(notes) == 3
    assert all(note.isprintable() for note in notes)


# --- files outside of the record --------------------------------------------------------------


@pytest.fixture
def outside(tmp_path):
    return shutil.copytree(RIG.parent, tmp_path / "outside")


def forge(folder, role, text):
    """Change a copy, and its hash in the manifest too."""
    manifest = manifest_of(folder)
    (copy,) = (copy for copy in manifest["files"] if copy["role"] == role)
    path = folder / FOLDER / copy["file"]
    path.write_text(text(path.read_text()) if callable(text) else text)
    copy["sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
    write_json(folder / "manifest.json", manifest)
    return path


def recorded(folder, **options):
    return recorded_rig(folder, Record.load(folder).manifest, **options)


def test_a_record_needs_nothing_but_itself(made, rig, tmp_path, servo):
    """Its folder is moved, and the names that the rig file gives lead to the copies."""
    moved = shutil.copytree(made, tmp_path / "elsewhere")
    own = recorded(moved)
    for path in (own.path, own.task.path, own.certificate):
        assert path.resolve().is_relative_to(moved)
    assert own.axes == rig.axes
    assert replay(moved, own, servo=servo).passed


def test_a_copy_that_was_changed_is_refused(folder):
    path = folder / FOLDER / "rig.toml"
    path.write_text(path.read_text() + "\n")
    with pytest.raises(RecordError, match="the rig file of the time of the recording"):
        recorded(folder)


@pytest.mark.parametrize("way", ["absolute", "relative"])
def test_a_rig_file_that_names_a_task_outside_is_refused(folder, outside, way):
    target = outside / "task.toml"
    if way == "relative":
        target = os.path.relpath(target, folder / FOLDER)
    forge(folder, "rig", lambda text: text.replace('"task.toml"', f'"{target}"'))
    with pytest.raises(Exception, match="a file outside of it"):
        recorded(folder)


def test_a_link_out_of_the_folder_is_refused(folder, outside):
    task = folder / FOLDER / "task.toml"
    task.unlink()
    task.symlink_to(outside / "task.toml")
    with pytest.raises(Exception, match="a file outside of it"):
        recorded(folder)


def test_a_linked_folder_of_copies_is_refused(folder, outside):
    shutil.rmtree(folder / FOLDER)
    (folder / FOLDER).symlink_to(outside)
    with pytest.raises(Exception, match="a file outside of it"):
        recorded(folder)


@pytest.mark.parametrize("name", ["manifest.json", ROWS_FILE])
def test_linked_rows_and_manifests_are_refused(folder, outside, name):
    shutil.move(folder / name, outside / name)
    (folder / name).symlink_to(outside / name)
    with pytest.raises(RecordError, match="a file outside of it"):
        Record.load(folder)


def test_rows_of_a_file_that_the_manifest_names_are_not_read(folder, outside):
    (outside / "other.bin").write_bytes(b"")
    edit(folder, rows_file=str(outside / "other.bin"))
    assert len(Record.load(folder)) > 0


def test_a_pipe_in_the_place_of_rows_is_refused(folder):
    (folder / ROWS_FILE).unlink()
    os.mkfifo(folder / ROWS_FILE)
    with pytest.raises(RecordError, match="a pipe"):
        Record.load(folder)


def test_a_record_without_copies_needs_a_rig_file(folder):
    manifest = manifest_of(folder)
    del manifest["files"]
    write_json(folder / "manifest.json", manifest)
    with pytest.raises(RecordError, match="--rig"):
        recorded(folder)


def test_a_rig_file_that_names_its_task_absolutely_finds_the_copy(folder):
    """Where the task stood need not be there any more."""
    manifest = manifest_of(folder)
    (task,) = (copy for copy in manifest["files"] if copy["role"] == "task")
    task["was"] = "/gone/task.toml"
    write_json(folder / "manifest.json", manifest)
    forge(folder, "rig", lambda text: text.replace('"task.toml"', '"/gone/task.toml"'))
    assert recorded(folder).task.path == folder / FOLDER / "task.toml"


# --- code -------------------------------------------------------------------------------------


TRAP = 'import pathlib\npathlib.Path({path!r}).write_text("run")\n' + ACME


def with_module(folder, name, listed):
    """Let the rig file name a module, and the manifest vouch for it."""

    def add(text):
        return text.replace("[bus]", f'drive_modules = ["{name}"]\n\n[bus]', 1)

    rig = forge(folder, "rig", add)
    if listed:
        path = rig.parent / name
        manifest = manifest_of(folder)
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        place = path.relative_to(folder / FOLDER).as_posix()
        manifest["files"].append(
            {"role": "drive module", "file": place, "was": "x", "sha256": digest}
        )
        write_json(folder / "manifest.json", manifest)


@pytest.fixture
def trap(tmp_path):
    """Text of a module that leaves a trace, and the trace."""
    trace = tmp_path / "trace"
    with forgotten():
        yield TRAP.format(path=str(trace)), trace


def test_a_module_that_the_manifest_vouches_for_is_not_run(folder, trap):
    text, trace = trap
    (folder / FOLDER / "trap.py").write_text(text)
    with_module(folder, "trap.py", listed=True)
    with pytest.raises(RecordError, match=r"trap\.py.*--allow-code"):
        recorded(folder)
    assert not trace.exists()
    recorded(folder, allow_code=True)
    assert trace.exists()


@pytest.mark.parametrize("allow", [False, True])
def test_a_module_that_the_question_does_not_name_is_never_run(folder, trap, allow):
    text, trace = trap
    home = folder / FOLDER
    (home / "trap.py").write_text(text)
    (home / "harmless.py").write_text(ACME)
    with_module(folder, "trap.py", listed=False)
    if allow:  # another is named, and allowed
        manifest = manifest_of(folder)
        digest = hashlib.sha256(ACME.encode()).hexdigest()
        entry = {"role": "drive module", "file": "harmless.py", "was": "x", "sha256": digest}
        edit(folder, files=[*manifest["files"], entry])
    with pytest.raises(RigFileError, match=r"trap\.py"):
        recorded(folder, allow_code=allow)
    assert not trace.exists()


@pytest.mark.parametrize("allow", [False, True])
def test_a_module_elsewhere_is_never_run(folder, trap, allow, tmp_path):
    text, trace = trap
    (tmp_path / "elsewhere.py").write_text(text)
    name = str(tmp_path / "elsewhere.py")
    with_module(folder, name, listed=False)
    with pytest.raises(RigFileError, match="elsewhere"):
        recorded(folder, allow_code=allow)
    assert not trace.exists()


@pytest.mark.parametrize("allow", [False, True])
def test_a_law_that_nobody_allowed_is_never_run(folder, trap, allow):
    """The code of a law of the task is code, too."""
    text, trace = trap
    (folder / FOLDER / "law.py").write_text(text)
    forge(folder, "task", lambda text: text + '\n[law]\nkind = "law.py:law"\n')
    with pytest.raises(RigFileError, match=r"law\.py"):
        recorded(folder, allow_code=allow)
    assert not trace.exists()


# --- the command ------------------------------------------------------------------------------


def command(*words):
    done = CliRunner().invoke(main, [str(word) for word in words])
    return done.exit_code, done.stdout, done.stderr


@pytest.mark.usefixtures("unreported")
def test_half_a_record_is_the_answer_1_and_stands_in_the_json(folder):
    cut_in_half(folder)
    status, out, _ = command("replay", folder, "--json")
    told = json.loads(out)
    assert status == 1
    assert told["passed"] is False
    assert told["differences"] == []
    assert any("instead of the" in fault for fault in told["faults"])


def test_a_folder_that_no_disk_can_have_is_refused(folder):
    status, _, errors = command("replay", folder, "--out", folder / ("a" * 300))
    assert status == 2
    assert "expected a folder that can be written" in errors


@pytest.mark.usefixtures("unreported")
def test_code_is_allowed_in_so_many_words_only(folder, trap):
    text, trace = trap
    (folder / FOLDER / "trap.py").write_text(text)
    with_module(folder, "trap.py", listed=True)
    status, _, err = command("replay", folder)
    assert status == 2
    assert "trap.py" in err
    assert not trace.exists()
    _, _, err = command("replay", folder, "--allow-code", "--force")
    assert trace.exists()
    assert "trap.py" in " ".join(err.split())  # it is said before it is run


@pytest.mark.extended
@pytest.mark.usefixtures("coarse")
def test_nothing_is_written_through_a_link(folder, tmp_path):
    for name in _replay.WRITTEN:
        (tmp_path / name).write_text("mine")
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(tmp_path / name)
    assert command("replay", folder, "--mcap", "--hdf5")[0] == 0
    for name in _replay.WRITTEN:
        assert (tmp_path / name).read_text() == "mine"
        assert not (folder / name).is_symlink()


def test_a_rig_that_a_record_names_is_not_talked_to(folder, rig, servo, monkeypatch):
    """Bus, ports and emulation of a rig file open nothing when its record is replayed."""
    opened = []

    class Trap(socket.socket):
        def __init__(self, *arguments, **others):
            opened.append(arguments)
            super().__init__(*arguments, **others)

    place = next(c["file"] for c in manifest_of(folder)["files"] if c["role"] == "rig")
    text = (folder / FOLDER / place).read_text()
    assert 'interface = "udp_multicast"' in text
    forge(folder, "rig", text.replace('"udp_multicast"', '"socketcan"', 1))
    monkeypatch.setattr(socket, "socket", Trap)
    record = Record.load(folder)
    report = replay(record, recorded_rig(folder, record.manifest), force=True, servo=servo)
    assert report.evaluated > 0
    assert report.forced == ("rig",)
    assert opened == []
