"""The proof of a rig's task: shown before arming, and refused where it is about something else.

The certificate of the rig bounds its torques."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from typer.testing import CliRunner

from concur.checker import confirmed, recheck
from concur.io import load_task
from hil._certificate import load_bound
from hil._proof import StartRegion, load_proof
from hil.cli import main
from hil.controller import Mode
from hil.errors import ArmError, RigFileError
from hil.reasons import Reason
from hil.record import Record
from hil.record.manifest import make_manifest
from hil.rig import load_rig
from hil.session import SessionOptions, mocked, run_session
from hil.views.report import write_report
from tests.hil._proved import EXAMPLE, proved_rig
from tests.hil._records import layout_of_rig
from tests.hil.bench import ranged


@pytest.fixture(autouse=True)
def receipts(monkeypatch, tmp_path):
    monkeypatch.setenv("CONCUR_CACHE", str(tmp_path / "receipts"))


@pytest.fixture(scope="module")
def rig(tmp_path_factory):
    """The rig with its proof, whose files are never to be changed."""
    return proved_rig(tmp_path_factory.mktemp("proved"))


def run(*words):
    env = {"COLUMNS": "200", "TERM": "dumb"}
    return CliRunner().invoke(main, [str(word) for word in words], env=env)


def test_the_file_of_the_tests_is_confirmed_and_then_the_rig_may_be_armed(tmp_path):
    """The only verification here; receipts of other tests are given without."""
    rig = proved_rig(tmp_path)
    proof = load_proof(rig)
    claim = "from starts within 0.004 m, 0.004 m/s and 0.002 rad"
    assert proof.sentence.startswith(f"not verified on this computer: {claim}")
    assert not proof.confirmed
    (refusal,) = proof.refusals(rig.task.path)
    assert f"concur recheck {rig.proof} --task {rig.task.path}" in str(refusal)
    with pytest.raises(ArmError, match="confirmed on this computer"):
        proof.require(rig, rehearsal=False)
    proof.require(rig, rehearsal=True)
    found = recheck(rig.proof, task=rig.task)
    assert found.reason == ""
    assert load_proof(rig).sentence.startswith(f"PROVED: {claim}")
    assert load_proof(rig).refusals(rig.task.path) == ()
    load_proof(rig).require(rig, rehearsal=False)


def test_a_rig_without_proof_has_none(rig):
    assert load_proof(dataclasses.replace(rig, proof=None)) is None


OTHERS = {
    "law": lambda text: text.replace("stiffness = 9.0", "stiffness = 9.1"),
    "reference": lambda text: text.replace("radius = 0.07", "radius = 0.071"),
    "start": lambda text: text.replace("upper_arm = 1.0", "upper_arm = 1.001"),
    "duration": lambda text: text.replace("duration = 0.2", "duration = 0.204"),
    "statement": lambda text: text.replace("masses = 0.002", "masses = 0.003"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_the_proof_of_another_task_is_refused(tmp_path, name):
    rig = proved_rig(tmp_path, task=OTHERS[name])
    proof = load_proof(rig)
    for rehearsal in (True, False):
        with pytest.raises(ArmError, match=f"about another {name}") as caught:
            proof.require(rig, rehearsal)
        assert f"concur prove {rig.task.path}" in caught.value.cure


def test_the_proof_of_another_robot_is_refused(tmp_path):
    rig = proved_rig(tmp_path)
    text = rig.task.robot.save(tmp_path / "heavy.toml")[0].read_text()
    (tmp_path / "heavy.toml").write_text(text.replace("mass = 2.0", "mass = 2.1", 1))
    rig = proved_rig(tmp_path, task=lambda t: t.replace('"robot.toml"', '"heavy.toml"'))
    with pytest.raises(ArmError, match="about another robot"):
        load_proof(rig).require(rig, rehearsal=True)


def test_another_law_in_the_session_is_refused(rig):
    servo = rig.task.servo
    other = dataclasses.replace(servo, damping=1.01 * servo.damping)
    assert load_proof(rig, servo).others == ()
    with pytest.raises(ArmError, match="about another law"):
        load_proof(rig, other).require(rig, rehearsal=True)
    with pytest.raises(ArmError, match="about another law"):
        load_proof(rig, object()).require(rig, rehearsal=True)


@pytest.mark.parametrize(("rate", "held"), [(250.0, True), (500.0, True), (249.9, False)])
def test_the_loop_has_at_most_the_period_of_the_proof(rig, rate, held):
    rig = dataclasses.replace(rig, loop=dataclasses.replace(rig.loop, rate=rate))
    if held:
        load_proof(rig).require(rig, rehearsal=True)
        return
    with pytest.raises(ArmError, match="the period of the proof, 4 ms"):
        load_proof(rig).require(rig, rehearsal=True)


def test_a_slower_task_is_refused(tmp_path):
    rig = proved_rig(
        tmp_path,
        task=lambda text: text.replace("control_period = 0.004", "control_period = 0.005"),
        rig=lambda text: text.replace("rate = 250.0", "rate = 200.0"),
        statement="",
    )
    found = [refusal.came for refusal in load_proof(rig).others]
    assert "control period" in found[0]
    assert found[1] == "5 ms"


@pytest.mark.parametrize(("share", "held"), [(1.0, True), (1 - 1e-9, False)])
def test_torque_limits_are_at_least_the_proved_torques(rig, share, held):
    torque = load_proof(rig).torque
    axes = [dataclasses.replace(a, torque_limit=share * torque[a.name]) for a in rig.axes]
    rig = dataclasses.replace(rig, axes=tuple(axes))
    if held:
        load_proof(rig).require(rig, rehearsal=True)
        return
    with pytest.raises(ArmError, match=r"no torque may be clipped.*turret 8\.\d") as caught:
        load_proof(rig).require(rig, rehearsal=True)
    assert "Increase the limits" in caught.value.cure


def test_limits_of_the_guard_and_the_delay_are_notes(rig):
    delay, *first, reading = load_proof(rig).notes
    assert [note.split(",")[0] for note in first] == [
        "axis left_wheel: its first torque",
        "axis right_wheel: its first torque",
        "axis turret: its first torque",
        "axis upper_arm: its first torque",
        "axis forearm: its first torque",
    ]
    assert "delay of at most 0 ms" in delay
    assert "is 1 ms" in delay
    assert "measured without errors" in reading
    axes = list(rig.axes)
    axes[0] = dataclasses.replace(axes[0], speed_limit=1.0)
    slow = dataclasses.replace(
        rig,
        axes=tuple(dataclasses.replace(axis, torque_rate_limit=1e4) for axis in axes),
        estimator=dataclasses.replace(rig.estimator, latency=0.0),
    )
    slow = ranged(slow, turret=(-0.15, 1.0), upper_arm=(0.2, 1.0))
    notes = load_proof(slow).notes[:-1]
    assert [note.split(":")[0] for note in notes] == [
        "axis left_wheel",
        "joint turret",
        "joint upper_arm",
    ]
    load_proof(slow).require(slow, rehearsal=True)


@pytest.mark.parametrize(("share", "noted"), [(1.0, False), (0.99, True)])
def test_encoders_coarser_than_the_proof_are_noted(tmp_path, share, noted):
    half = np.pi / 4096

    def read(found):
        angles = {"turret": half, "upper_arm": share * half}
        speeds = dict.fromkeys(angles, 0.01)
        found["statement"]["reading"] = {
            "angles": angles, "speeds": speeds, "place": 0.0, "heading": 0.0
        }  # fmt: skip

    notes = load_proof(proved_rig(tmp_path, read, statement="")).notes
    notes = [note.split(":")[0] for note in notes if "encoder" in note]
    assert notes == (["joint upper_arm"] if noted else [])


def test_a_proof_that_the_checker_does_not_cover_is_refused(tmp_path):
    rig = proved_rig(tmp_path, lambda found: found["statement"].update(obstacles=[]), statement="")
    with pytest.raises(ArmError, match="does not cover obstacles"):
        load_proof(rig).require(rig, rehearsal=False)


@pytest.mark.parametrize(
    ("text", "came"),
    [("{}", "another kind"), ("", "another kind"), (None, "no file of this name")],
)
def test_other_files_are_refused_with_the_rig(tmp_path, text, came):
    proved_rig(tmp_path)
    (tmp_path / "proof.json").unlink()
    if text is not None:
        (tmp_path / "proof.json").write_text(text)
    with pytest.raises(RigFileError, match="the proof of a task") as caught:
        load_rig(tmp_path / "rig.toml")
    assert came in caught.value.came or "no file" in caught.value.came


def test_a_certificate_is_no_proof_of_a_task(tmp_path):
    certificate = (EXAMPLE / "operating.json").as_posix()
    with pytest.raises(RigFileError, match="concur prove"):
        proved_rig(tmp_path, rig=lambda text: text.replace("proof.json", certificate))


def test_starts_are_those_of_the_statement(rig):
    region, servo = load_proof(rig).start, rig.task.servo
    sample = rig.task.reference(0.0)

    def inside(q, s):
        x, ve = servo.errors(q, s, sample.flat_pose, sample.twist)
        return region.contains(x, ve, q)

    q0, s0 = np.array(rig.task.q0), np.array(rig.task.s0)
    assert inside(q0, s0)
    for entry, radius in ((0, 0.004), (2, 0.002), (5, 0.004 / 0.79)):
        for share in (0.95, 1.3):
            moved = q0.copy()
            moved[entry] += share * radius
            # A turn of the base moves both points; the heading has the smallest radius.
            assert inside(moved, s0) is bool(share < 1.0), (entry, share)
    fast = s0.copy()
    fast[0] += 0.015  # the wheel of 0.1 m turns the base at 3 mrad/s
    assert inside(q0, fast)
    fast[0] += 0.1
    assert not inside(q0, fast)
    nothing = np.full(5, np.nan)
    assert not region.contains(nothing, nothing, q0)
    assert region.contains(region.x, region.ve, q0)
    assert not region.contains(region.x, region.ve, np.full(8, np.nan))
    turned = q0.copy()
    turned[2] += 2 * np.pi
    assert inside(turned, s0)


def test_starts_of_a_free_base_count_its_pose():
    """By the prover's own deviation: place in the declared axes, and twice the quaternion."""
    rng, radius = np.random.default_rng(2), 0.02
    for _ in range(20):
        turn, small = Rotation.random(rng=rng), rng.normal(size=3)
        small *= 0.01 / np.linalg.norm(small)
        place, move = rng.normal(size=3), rng.normal(size=3)
        move *= 0.01 / np.linalg.norm(move)
        own = np.array([*place, *turn.as_quat()])
        region = StartRegion(np.zeros(6), np.zeros(6), own, slice(0, 7), (), radius)
        for share in (1.40, 1.43):
            # |p|^2 + |2 sin(angle / 2)|^2 = 2 (0.01 share)^2
            sine = 2 * np.arcsin(0.01 * share / 2) / 0.01
            other = turn * Rotation.from_rotvec(sine * small)
            q = np.array([*(place + share * move), *other.as_quat()])
            q[3:] *= np.sign(rng.normal())
            assert region.contains(np.zeros(6), np.zeros(6), q) is (share < 2**0.5)
        assert not region.contains(np.zeros(6), np.zeros(6), np.full(7, np.nan))


def session(rig, tmp_path, mode=Mode.MOCK):
    options = SessionOptions(mode, folder=tmp_path / "record", heartbeat="auto", emulated=True)
    return run_session(rig, options)


@pytest.mark.extended
def test_a_rehearsal_runs_and_its_record_has_the_proof(tmp_path):
    rig = proved_rig(tmp_path)
    result = session(rig, tmp_path)
    assert result.outcome.reason is Reason.END
    record = Record.load(result.folder)
    assert record.manifest["proof"]["sentence"].startswith("not verified on this")
    assert {"proof"} <= {copy["role"] for copy in record.manifest["files"]}
    page = write_report(record, result.folder).read_text(encoding="utf-8")
    assert "Proof of the task" in page
    assert "torques held for 4 ms" in page


@pytest.mark.extended
def test_a_start_outside_of_the_proof_ends_the_run(tmp_path):
    """Encoders of 4096 counts do not report the start to a micrometre."""

    def exact(found):
        found["statement"]["place"] = {"base": 1e-6, "hand": 1e-6}

    rig = proved_rig(tmp_path, exact, statement="")
    assert session(rig, tmp_path).outcome.reason is Reason.START_ERROR


def test_nothing_is_opened_or_sent_without_a_confirmed_proof(tmp_path, monkeypatch):
    rig = mocked(proved_rig(tmp_path))
    for name in ("make_drives", "open_links", "Recorder"):
        monkeypatch.setattr(f"hil.session.{name}", lambda *_, **__: pytest.fail("opened"))
    with pytest.raises(ArmError, match="confirmed on this computer"):
        session(rig, tmp_path, Mode.DRIVE)
    assert not confirmed(rig.proof)


def test_check_and_drive_show_the_proof_and_refuse(rig, monkeypatch):
    done = run("check", rig.path, "--mock")
    text = " ".join(done.output.split())
    assert done.exit_code == 1
    assert "not verified on this computer: from starts within 0.004 m" in text
    assert "PROVED" not in text
    assert "- torque forearm 1.757 N m, limit 4" in text
    assert "not armed: expected a proof that the checker has confirmed on this computer" in text
    assert text.endswith("the rig may not be armed")
    done = run("drive", rig.path, "--emulate", "--yes")
    assert done.exit_code == 2, done.output
    monkeypatch.setattr("hil._proof.confirmed", lambda path: True)
    done = run("check", rig.path, "--mock")
    assert (done.exit_code, "the rig may be armed" in done.output) == (0, True)
    found = json.loads(run("check", rig.path, "--mock", "--json").stdout)["proof"]
    assert found["confirmed"]
    assert found["refusals"] == []
    assert "measured without errors" in found["notes"][-1]


def test_the_manifest_names_what_is_wrong_with_a_proof(tmp_path):
    rig = proved_rig(tmp_path)
    (tmp_path / "proof.json").write_text("{}")
    made = make_manifest(rig, layout_of_rig(rig), rig.task.servo)
    assert "expected" in made["proof"]["sentence"]
    assert load_task(rig.task.path).name == rig.task.name


# -- the certificate's bound on the torque, beside the limits of a rig -------------------------


RIG = Path(__file__).parents[2] / "examples" / "rover_rig" / "rig.toml"


@pytest.fixture(scope="module")
def example():
    return load_rig(RIG)


def test_the_rovers_limits_leave_what_is_proved_to_be_needed(example):
    bound = load_bound(example)
    assert bound.status == "PROVED"
    assert bound.exceeded(example) == []
    assert all(0.0 < bound.torque[axis.name] < axis.torque_limit for axis in example.axes)


def test_a_limit_below_the_bound_is_named(example):
    axes = list(example.axes)
    axes[3] = dataclasses.replace(axes[3], torque_limit=5.0)
    weaker = dataclasses.replace(example, axes=tuple(axes))
    assert load_bound(weaker).exceeded(weaker) == ["upper_arm"]


def test_the_bound_is_the_larger_of_both_ends(example):
    document = json.loads(example.certificate.read_text(encoding="utf-8"))
    bound = load_bound(example)
    for name, low, high in zip(
        document["controls"], document["lower"], document["upper"], strict=True
    ):
        assert bound.torque[name] == max(abs(low), abs(high))


def test_a_rig_without_certificate_has_no_bound(example):
    assert load_bound(dataclasses.replace(example, certificate=None)) is None


@pytest.mark.parametrize(
    "text",
    ["", "{}", "[]", '{"robot": 1}', '{"robot": "rover_arm", "status": "PROVED", "controls": 3}'],
)
def test_what_is_no_certificate_is_refused(example, tmp_path, text):
    file = tmp_path / "operating.json"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(RigFileError, match="an operating certificate"):
        load_bound(dataclasses.replace(example, certificate=file))


def test_a_missing_file_is_named(example, tmp_path):
    with pytest.raises(RigFileError, match=r"nowhere\.json"):
        load_bound(dataclasses.replace(example, certificate=tmp_path / "nowhere.json"))


def test_a_certificate_of_another_robot_is_refused(example, tmp_path):
    document = json.loads(example.certificate.read_text(encoding="utf-8"))
    file = tmp_path / "operating.json"
    file.write_text(json.dumps(document | {"robot": "crane"}), encoding="utf-8")
    with pytest.raises(RigFileError, match="crane"):
        load_bound(dataclasses.replace(example, certificate=file))


def test_controls_without_a_bound_are_infinite(example, tmp_path):
    document = json.loads(example.certificate.read_text(encoding="utf-8"))
    file = tmp_path / "operating.json"
    file.write_text(json.dumps(document | {"lower": [], "upper": []}), encoding="utf-8")
    unbounded = dataclasses.replace(example, certificate=file)
    assert load_bound(unbounded).exceeded(unbounded) == [axis.name for axis in example.axes]
