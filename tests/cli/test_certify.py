"""`concur certify`: output, files, and exit status."""

import io
import json
import math
import time
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

import concur
from concur.certify import Status, certify, error_motions
from concur.cli import _certify as command
from concur.cli import main
from concur.cli._bar import time_left
from concur.control import ErrorDynamics
from concur.outputs.groups import Product, Rotation, Vector

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(*arguments):
    return CliRunner().invoke(main, ["certify", *(str(a) for a in arguments)])


def altered(folder, name, changes):
    """A shipped task with some lines changed; each change must apply."""
    text = (EXAMPLES / name).read_text()
    for old, new in changes.items():
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    path = folder / "task.toml"
    path.write_text(text)
    return path


@pytest.fixture(scope="module", autouse=True)
def coarse():
    """Fewer pixels, for speed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("concur.show.style.DPI", 30)
        yield


@pytest.fixture(scope="module")
def rover(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rover") / "new" / "folder"
    return folder, run(EXAMPLES / "rover_arm.toml", "--out", folder, "--json")


def unlimited(folder):
    """The servicer without torque limits; with them its decay needs a proved box."""
    path = folder / "servicer.toml"
    text = (EXAMPLES / "servicer.toml").read_text()
    path.write_text(text.replace("torque_limits = 20.0\n", ""))
    return path


@pytest.fixture(scope="module")
def servicer(tmp_path_factory):
    folder = tmp_path_factory.mktemp("servicer")
    task = unlimited(tmp_path_factory.mktemp("task"))
    return folder, run(task, "--angle", "60", "--out", folder, "--json")


@pytest.mark.extended
def test_a_rover_decays_from_any_start(rover):
    folder, result = rover
    assert result.exit_code == 0, result.output
    answer = json.loads(result.stdout)
    assert answer["proved"]
    assert answer["status"] == answer["recheck"] == "PROVED"
    assert [row["names"] for row in answer["channels"]] == [
        ["base.x", "base.y"],
        ["hand.x", "hand.y", "hand.z"],
    ]
    # Critical damping: stiffness 4 and 9 of the task's outputs.
    assert [row["true_rate"] for row in answer["channels"]] == pytest.approx([2, 3])
    assert 0.95 * 2 < answer["rate"] <= 2
    assert [row["level"] for row in answer["channels"]] == [None, None]
    assert answer["start"]["covered"]
    # The rate depends on no angle.
    assert {path.name for path in folder.iterdir()} == {
        *("proof.json", "decay.png", "operating.json", "concur.json")
    }


@pytest.mark.extended
def test_rotations_have_a_region_and_a_figure_of_rates(servicer):
    folder, result = servicer
    assert result.exit_code == 0, result.output
    answer = json.loads(result.stdout)
    turning, moving = answer["channels"]
    assert turning["kind"] == "SO3 isotropic"
    assert turning["angle"] == pytest.approx(math.pi / 3)
    # sqrt(0.64) = 0.8 of critical damping; W_R^2 / 2 with KP = 0.64.
    assert turning["true_rate"] == pytest.approx(0.8, rel=1e-6)
    assert turning["level"] == pytest.approx(0.64 * (math.pi / 3) ** 2 / 2)
    assert moving["angle"] is None
    assert answer["rate"] == min(turning["rate"], moving["rate"])
    files = {Path(name).name for name in answer["files"]}
    assert files == {"proof.json", "decay.png", "rates.png", "concur.json"}
    assert files == {p.name for p in folder.iterdir()}
    assert 0.0 < answer["estimates_not_proved"]["largest_share_of_bound"] <= 1.0 + 1e-6
    assert any("singular" in condition for condition in answer["conditions"])
    assert not any("torque limit" in condition for condition in answer["conditions"])


@pytest.mark.extended
def test_a_disturbance_has_tubes(tmp_path, monkeypatch):
    monkeypatch.setattr(command, "_ANGLES", ())
    path = EXAMPLES / "rover_arm.toml"
    result = run(path, "--disturbance", "0.09", "--out", tmp_path, "--json")
    assert result.exit_code == 0, result.output
    answer = json.loads(result.stdout)
    assert answer["disturbance"] == 0.09
    files = {"proof.json", "decay.png", "operating.json", "concur.json"}
    files |= {f"tube_{k}.{kind}" for k in (1, 2) for kind in ("png", "json")}
    assert {p.name for p in tmp_path.iterdir()} == files
    for found, stiffness, size in zip(answer["tubes"], (4.0, 9.0), (2, 3), strict=True):
        assert found["status"] == found["recheck"] == "PROVED"
        assert len(found["bounds"]) == size
        # Deflection of the spring alone; every proof with a constant P gives almost twice as much.
        assert 0.09 / stiffness < found["distance"] < 2.1 * 0.09 / stiffness
        assert found["angle"] is None
        assert found["largest_disturbance"] is None
    monkeypatch.setattr(command, "_figures", lambda *_: ({}, None))
    monkeypatch.setattr(command, "_tube_figures", lambda *_: {})
    shown = run(path, "--disturbance", "0.09", "--out", tmp_path)
    text = " ".join(shown.output.split())
    for part in (
        "tube of base.x, base.y, at 0.09 m/s^2",
        "position error at most",
        "calmer",
    ):
        assert part in text, part


@pytest.mark.extended
def test_sampled_torques_have_limits(rover):
    _, result = rover
    held = json.loads(result.stdout)["held"]
    # Critical damping of 4 and 9: min(2 / kd, 2 kd / kp) = 2 / kd.
    assert [one["period"] for one in held] == pytest.approx([0.5, 1 / 3])
    assert all(0.0 < one["advised"] < one["delay"] < one["period"] for one in held)


@pytest.mark.extended
def test_the_stored_proof_can_be_verified(servicer):
    folder, _ = servicer
    assert concur.recheck(folder / "proof.json") is Status.PROVED
    for path in folder.glob("*.png"):
        assert path.read_bytes().startswith(b"\x89PNG")


@pytest.mark.extended
def test_people_get_a_table(tmp_path):
    path = EXAMPLES / "rover_arm.toml"
    result = run(path, "--method", "thesis", "--out", tmp_path)
    assert result.exit_code == 0, result.output
    text = "".join(result.output.split())  # paths may be wrapped anywhere
    for part in (
        "wholeloop",
        "base.x",
        "proved",
        "inside",
        "proof.json",
        "confirmed",
        "%",
        "time[s]",
    ):
        assert part in text, part


@pytest.fixture
def no_figures(monkeypatch):
    """Skip the slowest parts."""
    monkeypatch.setattr(command, "_figures", lambda *_: ({}, None))


@pytest.mark.usefixtures("no_figures")
def test_a_disturbance_that_leads_out_of_the_domain_ends_with_one(tmp_path, monkeypatch):
    monkeypatch.setattr(command, "_tube_figures", lambda *_: {})
    path = unlimited(tmp_path)
    out = tmp_path / "out"
    result = run(path, "--angle", "30", "--disturbance", "9", "--out", out, "--json")
    assert result.exit_code == 1, result.output
    answer = json.loads(result.stdout)
    assert answer["status"] == "PROVED"
    assert not answer["proved"]
    turning, moving = answer["tubes"]
    assert turning["status"] == "UNDECIDED"
    assert 0.0 < turning["largest_disturbance"] < 9.0
    assert moving["status"] == "PROVED"


@pytest.mark.extended
@pytest.mark.usefixtures("no_figures")
def test_a_start_outside_is_said(tmp_path):
    path = EXAMPLES / "free_floater.toml"
    result = run(path, "--angle", "20", "--out", tmp_path)
    # The claim is still proved, but does not cover this start.
    assert result.exit_code == 0, result.output
    assert "outside the certified region" in " ".join(result.output.split())


def test_what_is_undecided_ends_with_one(tmp_path, monkeypatch):
    monkeypatch.setattr(command, "_ANGLES", ())
    path = EXAMPLES / "free_floater.toml"
    result = run(path, "--method", "thesis", "--out", tmp_path, "--json")
    assert result.exit_code == 1, result.output
    answer = json.loads(result.stdout)
    assert answer["status"] == answer["recheck"] == "UNDECIDED"
    assert not answer["proved"]
    assert not answer["start"]["covered"]
    assert answer["estimates_not_proved"]["largest_share_of_bound"] is None
    assert {p.name for p in tmp_path.iterdir()} == {*("proof.json", "rates.png", "concur.json")}
    monkeypatch.setattr(command, "_figures", lambda *_: ({}, None))
    shown = run(path, "--method", "thesis", "--out", tmp_path)
    assert "no closed form" in " ".join(shown.output.split())


def test_gains_that_are_refuted_end_with_one(tmp_path, monkeypatch):
    """Task files reject such gains, so replace them in the law."""

    def spoilt(servo, *arguments, **options):
        sound = servo.error_dynamics
        wrong = ErrorDynamics(sound.group, -sound.stiffness, sound.damping, sound.inertia)
        return certify(wrong, *arguments, **options)

    monkeypatch.setattr(command, "certify", spoilt)
    path = EXAMPLES / "rover_arm.toml"
    result = run(path, "--out", tmp_path, "--json")
    assert result.exit_code == 1, result.output
    answer = json.loads(result.stdout)
    assert answer["status"] == answer["recheck"] == "REFUTED"
    assert answer["against"]
    assert not answer["start"]["covered"]
    assert {p.name for p in tmp_path.iterdir()} == {
        *("proof.json", "operating.json", "concur.json")
    }
    shown = run(path, "--out", tmp_path)
    assert shown.exit_code == 1
    assert "refuted" in shown.output


@pytest.mark.usefixtures("no_figures")
def test_a_proof_that_is_not_confirmed_ends_with_one(tmp_path, monkeypatch):
    monkeypatch.setattr(command, "recheck", lambda path: Status.UNDECIDED)
    result = run(EXAMPLES / "rover_arm.toml", "--method", "thesis", "--out", tmp_path)
    assert result.exit_code == 1
    assert "not confirmed" in result.output


@pytest.mark.usefixtures("no_figures")
def test_notes_say_where_the_task_differs(tmp_path):
    path = altered(
        tmp_path,
        "rover_arm.toml",
        {'method = "rk4"': 'method = "rk4"\ncontrol_period = 0.01', "period = 0.001  ": ""},
    )
    result = run(path, "--method", "thesis", "--out", tmp_path / "out", "--json")
    assert result.exit_code == 0, result.output
    (note,) = json.loads(result.stdout)["notes"]
    assert "0.01 s" in note


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--angle", "0"], "--angle"),
        (["--angle", "181"], "--angle"),
        (["--angle", "nan"], "--angle"),
        (["--distance", "0"], "--distance"),
        (["--distance", "inf"], "--distance"),
        (["--distance", "1.1e9"], "--distance"),
        (["--method", "thight"], "--method"),
        (["--disturbance", "0"], "--disturbance"),
        (["--disturbance", "nan"], "--disturbance"),
        (["--disturbance", "1.1e9"], "--disturbance"),
        (["--disturbance", "0.1", "--method", "thesis"], "--disturbance"),
    ],
)
def test_options_out_of_range_end_with_two_and_one_line(options, named, tmp_path):
    result = run(EXAMPLES / "rover_arm.toml", *options, "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert named in result.stderr
    assert result.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_a_missing_task_ends_with_two(tmp_path):
    result = run(tmp_path / "none.toml")
    assert result.exit_code == 2
    assert "none.toml" in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_folder_that_cannot_be_made_ends_with_two(tmp_path):
    (tmp_path / "file").write_text("")
    result = run(EXAMPLES / "rover_arm.toml", "--method", "thesis", "--out", tmp_path / "file")
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1


def test_help_shows_an_example():
    result = run("--help")
    assert result.exit_code == 0
    assert "concur certify examples/free_floater.toml" in " ".join(result.output.split())


# --- motions in the figure --------------------------------------------------------------------


@pytest.fixture(scope="module")
def certificate():
    one = np.eye(6)
    group = Product([Rotation(), Vector("xyz")])
    return certify(ErrorDynamics(group, 4 * one, 2.8 * one, one), 2.0)


def test_motions_start_in_the_region_and_stay_below_the_bound(certificate):
    assert certificate.status is Status.PROVED
    x, ve = np.array([0.5, -0.4, 0.3, 1, 2, 3]), np.zeros(6)
    decay = error_motions(certificate, (x, ve), count=8, points=41)
    assert decay.norms.shape == (8, 41)
    assert decay.own is not None
    assert decay.own[0] == pytest.approx(certificate.norm(x, ve))
    assert decay.share(certificate.rate) <= 1.0 + 1e-7
    # Some motion violates an uncertified rate: the bound is sharp.
    assert decay.share(1.2 * certificate.rate) > 1.0


def test_a_start_outside_of_the_region_is_not_moved(certificate):
    far = np.array([3.0, 0, 0, 0, 0, 0])
    decay = error_motions(certificate, (far, np.zeros(6)), count=1, points=5)
    assert decay.own is None


# --- progress ---------------------------------------------------------------------------------


@pytest.mark.parametrize("reported", [False, True])
@pytest.mark.parametrize(
    ("patience", "terminal", "shown"),
    [(0.0, True, True), (1e9, True, False), (0.0, False, False)],
)
def test_a_bar_is_shown_when_it_takes_long(monkeypatch, patience, terminal, shown, reported):
    monkeypatch.setattr("concur.cli._bar._PATIENCE", patience)
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=terminal, width=80)
    with command.progress_bar("certifying", console) as report:
        if reported:
            report(0.5)
        end = time.monotonic() + (30.0 if shown else 0.05)
        while "certifying" not in stream.getvalue() and time.monotonic() < end:
            time.sleep(0.001)
        before = stream.getvalue()
    assert ("certifying" in before) is shown
    assert shown or not stream.getvalue()


@pytest.mark.parametrize(
    ("taken", "part", "text"),
    [
        (10.0, 0.0, ""),
        (10.0, 1.0, ""),
        (10.0, 0.25, ", about 30 s left"),
        (119.0, 0.5, ", about 119 s left"),
        (120.0, 0.5, ", about 2 min left"),
    ],
)
def test_a_bar_estimates_the_time_left(taken, part, text):
    assert time_left(taken, part) == text


def test_a_law_with_integral_has_its_own_proof(tmp_path):
    text = (EXAMPLES / "rover_arm.toml").read_text()
    task = tmp_path / "task.toml"
    for integral, code, status in ((1.0, 0, "PROVED"), (1e4, 1, "REFUTED")):
        own = text
        for group in ("R2", "R3"):
            own = own.replace(f'group = "{group}"', f'group = "{group}"\nintegral = {integral}')
        task.write_text(own)
        result = run(task, "--out", tmp_path / status, "--json")
        assert result.exit_code == code, result.output
        answer = json.loads(result.stdout)
        assert answer["status"] == answer["integral"]["status"] == status
        assert answer["start"]["covered"] is (status == "PROVED")
        assert answer["proved"] is (status == "PROVED")
        if status == "PROVED":
            assert answer["recheck"] == status
            parts = answer["integral"]["parts"]
            assert [part["components"] for part in parts] == [[i] for i in range(5)]
            assert 0.0 < answer["integral"]["rate"] < min(part["true_rate"] for part in parts)
    task.write_text(own.replace(f"integral = {integral}", "integral = 1.0"))
    shown = run(task, "--out", tmp_path / "shown").output
    assert "Certificate with integral action" in shown
    assert "hand.z" in shown
    assert "inside the certified region" in shown
