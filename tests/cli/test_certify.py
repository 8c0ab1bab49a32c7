"""`concur certify`: claims, files, exit status; decay, tubes, operating boxes, integral action."""

from __future__ import annotations

import html
import json
import math
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import concur as cc
from concur.certify import LoopCertificate, Recheck, Status, certify, certify_task, error_motions
from concur.cli import main
from concur.control import ErrorDynamics
from concur.outputs.groups import Product, Rotation, Vector

EXAMPLES = Path(__file__).parents[2] / "examples"
ROVER = EXAMPLES / "rover_arm.toml"
library = import_module("concur.certify._task")
FILES = {"proof.json", "certificate.html", "concur.json"}

BOX = """
[servo]
torque_limits = {limit}
[operating]
speeds = 0.3
acceleration = 0.2
pose_error = 0.01
velocity_error = 0.02
tolerance = 0.4
[operating.ranges]
turret = [-0.05, 0.05]
upper_arm = [0.95, 1.05]
forearm = [-1.65, {end}]
"""


def run(*arguments):
    return CliRunner().invoke(main, ["certify", *(str(a) for a in arguments)])


def asked(code, *arguments):
    result = run(*arguments, "--json")
    assert result.exit_code == code, result.output
    found = json.loads(result.stdout)
    assert found["passed"] is (code == 0)
    assert bool(found["problems"]) is (code == 1)
    return found


def names(folder):
    return {path.name for path in folder.iterdir()}


def servicer(folder):
    """The servicer without torque limits; with them its decay needs a proved box."""
    path = folder / "servicer.toml"
    text = (EXAMPLES / "servicer.toml").read_text()
    path.write_text(text.replace("torque_limits = 20.0\n", ""))
    return path


def boxed(folder, table):
    """The rover with another operating box."""
    path = folder / "task.toml"
    path.write_text(ROVER.read_text().partition("# `concur certify` proves")[0] + table)
    return path


@pytest.fixture(autouse=True)
def coarse(monkeypatch):
    """Fewer pixels, for speed."""
    monkeypatch.setattr("concur.show.style.DPI", 30)


@pytest.fixture
def undrawn(monkeypatch):
    monkeypatch.setattr(LoopCertificate, "figures", {})


@pytest.mark.extended
def test_a_rover_decays_from_any_start(tmp_path):
    out = tmp_path / "new" / "folder"
    found = asked(0, ROVER, "--out", out)
    assert (found["status"], found["recheck"]) == ("PROVED", {"proof.json": "PROVED"})
    base, hand = found["channels"]
    assert (base["names"], hand["names"]) == (
        ["base.x", "base.y"], ["hand.x", "hand.y", "hand.z"]
    )  # fmt: skip
    # Critical damping: stiffness 4 and 9 of the task's outputs.
    assert [base["true_rate"], hand["true_rate"]] == pytest.approx([2, 3])
    assert 0.95 * 2 < found["rate"] <= 2
    assert (base["level"], found["start"]["covered"]) == (None, True)
    # The rate depends on no angle; torques of 2 / kd are held.
    assert names(out) == FILES | {"decay.png", "operating.json"}
    periods = [one["period"] for one in found["held"].values()]
    assert periods == pytest.approx([0.5, 1 / 3])
    assert all(0.0 < o["advised"] < o["delay"] < o["period"] for o in found["held"].values())
    shown = run(ROVER, "--method", "thesis", "--out", out).output
    for part in ("whole loop", "inside the region", "yes", "proof.json"):
        assert part in shown, part


@pytest.mark.extended
def test_rotations_have_a_region_and_a_figure_of_rates(tmp_path):
    out = tmp_path / "out"
    found = asked(0, servicer(tmp_path), "--angle", "60", "--out", out)
    turning, moving = found["channels"]
    assert turning["kind"] == "SO3 isotropic"
    assert turning["angle"] == pytest.approx(math.pi / 3)
    # sqrt(0.64) = 0.8 of critical damping; W_R^2 / 2 with KP = 0.64.
    assert turning["true_rate"] == pytest.approx(0.8, rel=1e-6)
    assert turning["level"] == pytest.approx(0.64 * (math.pi / 3) ** 2 / 2)
    assert moving["angle"] is None
    assert found["rate"] == min(turning["rate"], moving["rate"])
    assert names(out) == FILES | {"decay.png", "rates.png"}
    assert 0.0 < found["estimates_not_proved"]["largest_share_of_bound"] <= 1.0 + 1e-6
    assert any("singular" in condition for condition in found["conditions"])
    assert not any("torque limit" in condition for condition in found["conditions"])
    assert cc.recheck(out / "proof.json") is Status.PROVED


@pytest.mark.extended
def test_a_disturbance_has_tubes(tmp_path):
    found = asked(0, ROVER, "--disturbance", "0.09", "--out", tmp_path)
    files = FILES | {"decay.png", "operating.json"}
    assert names(tmp_path) == files | {f"tube_{k}.{o}" for k in (1, 2) for o in ("png", "json")}
    assert set(found["recheck"].values()) == {"PROVED"}
    for one, stiffness, size in zip(found["tubes"], (4.0, 9.0), (2, 3), strict=True):
        assert (one["status"], len(one["bounds"]), one["angle"]) == ("PROVED", size, None)
        # Deflection of the spring alone; every proof with a constant P gives almost twice as much.
        assert 0.09 / stiffness < one["distance"] < 2.1 * 0.09 / stiffness
        assert one["largest_disturbance"] is None


@pytest.mark.extended
@pytest.mark.usefixtures("undrawn")
def test_a_disturbance_that_leads_out_of_the_domain_is_no_proof(tmp_path):
    out = tmp_path / "out"
    found = asked(1, servicer(tmp_path), "--angle", "30", "--disturbance", "9", "--out", out)
    assert (found["status"], found["decay"]) == ("UNDECIDED", "PROVED")
    turning, moving = found["tubes"]
    assert (turning["status"], moving["status"]) == ("UNDECIDED", "PROVED")
    assert 0.0 < turning["largest_disturbance"] < 9.0


@pytest.mark.extended
@pytest.mark.usefixtures("undrawn")
def test_a_start_outside_is_said(tmp_path):
    result = run(EXAMPLES / "free_floater.toml", "--angle", "20", "--out", tmp_path)
    # The claim is still proved, but does not cover this start.
    assert result.exit_code == 0, result.output
    assert "outside the certified region" in " ".join(result.output.split())


def test_what_is_undecided_ends_with_one(tmp_path, monkeypatch):
    monkeypatch.setattr(library, "ANGLES", ())
    found = asked(1, EXAMPLES / "free_floater.toml", "--method", "thesis", "--out", tmp_path)
    assert (found["status"], found["recheck"]) == ("UNDECIDED", {"proof.json": "UNDECIDED"})
    page = html.unescape((tmp_path / "certificate.html").read_text("utf-8"))
    assert '<div class="banner bad">' in page
    assert found["problems"][0] in page
    assert 'id="figure-rates"' in page
    assert not found["start"]["covered"]
    assert found["estimates_not_proved"]["largest_share_of_bound"] is None
    assert names(tmp_path) == FILES | {"rates.png"}
    assert "no closed form" in found["problems"][0]


def test_gains_that_are_refuted_end_with_one(tmp_path, monkeypatch):
    """Task files reject such gains, so replace them in the law."""

    def spoilt(servo, *arguments, **options):
        sound = servo.error_dynamics
        wrong = ErrorDynamics(sound.group, -sound.stiffness, sound.damping, sound.inertia)
        return certify(wrong, *arguments, **options)

    monkeypatch.setattr(library, "certify", spoilt)
    found = asked(1, ROVER, "--out", tmp_path)
    assert (found["status"], found["recheck"]) == ("REFUTED", {"proof.json": "REFUTED"})
    assert found["against"]
    assert not found["start"]["covered"]
    assert names(tmp_path) == FILES | {"operating.json"}


@pytest.mark.by_default(1)
@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("answer", [Status.UNDECIDED, Status.REFUTED])
def test_a_file_that_the_checker_does_not_confirm_is_no_proof(tmp_path, monkeypatch, answer):
    unsure = Recheck(answer, "", "error dynamics", None, None, (), ())
    monkeypatch.setattr(library, "examine", lambda path: unsure)
    found = asked(1, ROVER, "--method", "thesis", "--out", tmp_path)
    assert found["decay"] == "PROVED"
    assert found["status"] == ("REFUTED" if answer is Status.REFUTED else "UNVERIFIED")
    assert "file proof.json" in found["problems"][0]


@pytest.mark.usefixtures("undrawn")
def test_warnings_say_where_the_task_differs(tmp_path):
    text = ROVER.read_text().replace("period = 0.001  ", "")
    (tmp_path / "task.toml").write_text(
        text.replace('method = "rk4"', 'method = "rk4"\ncontrol_period = 0.01')
    )
    found = asked(0, tmp_path / "task.toml", "--method", "thesis", "--out", tmp_path / "out")
    (warning,) = found["warnings"]
    assert "0.01 s" in warning


@pytest.mark.parametrize(
    ("options", "named"),
    [
        *((["--angle", value], "--angle") for value in ("0", "181", "nan")),
        *((["--distance", value], "--distance") for value in ("0", "inf", "1.1e9")),
        *((["--disturbance", value], "--disturbance") for value in ("0", "nan", "1.1e9")),
        (["--method", "thight"], "--method"),
        (["--disturbance", "0.1", "--method", "thesis"], "disturbance"),
    ],
)
def test_bad_input_ends_with_two_and_one_line(options, named, tmp_path):
    result = run(ROVER, *options, "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert named in result.stderr
    assert result.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_a_law_with_integral_has_its_own_proof(tmp_path):
    task = tmp_path / "task.toml"
    for integral, code, status in ((1.0, 0, "PROVED"), (1e4, 1, "REFUTED")):
        own = ROVER.read_text()
        for group in ("R2", "R3"):
            own = own.replace(f'group = "{group}"', f'group = "{group}"\nintegral = {integral}')
        task.write_text(own)
        found = asked(code, task, "--out", tmp_path / status)
        assert (found["status"], found["decay"]) == (status, status)
        assert found["start"]["covered"] is (status == "PROVED")
        assert names(tmp_path / status) == FILES


# --- operating boxes --------------------------------------------------------------------------


def test_a_box_is_proved_and_covers_the_decay(tmp_path):
    found = asked(0, boxed(tmp_path, BOX.format(limit=40.0, end=-1.55)), "--out", tmp_path / "out")
    stored = json.loads((tmp_path / "out" / "operating.json").read_text())
    assert (stored["status"], stored["margin"] > 0.5, max(stored["upper"]) < 10.0) == (
        "PROVED", True, True
    )  # fmt: skip
    proof = json.loads((tmp_path / "out" / "proof.json").read_text())
    # Errors of 0.01 m and 0.02 m/s in a level: kp x^2 / 2 with kp 4 and 9, ve^2 / 2.
    levels = [channel["bound"] for channel in proof["channels"]]
    assert levels == pytest.approx([2e-4, 2e-4], rel=1e-9)
    assert any("operating box" in one for one in found["conditions"])
    margins = {row["quantity"]: row for row in found["rows"]}
    assert margins["decoupling margin"]["holds"] is True


@pytest.mark.by_default(1)
@pytest.mark.parametrize(("limit", "end", "words"), [(3.0, -1.55, "limit"), (40.0, 0.1, "margin")])
def test_a_box_that_is_refuted_ends_with_one(tmp_path, limit, end, words):
    found = asked(1, boxed(tmp_path, BOX.format(limit=limit, end=end)), "--out", tmp_path / "out")
    # Without a proved box the limits may be reached.
    assert (found["status"], found["decay"]) == ("REFUTED", "UNDECIDED")
    assert found["operating"]["status"] == "REFUTED"
    assert words in found["operating"]["reason"]


@pytest.mark.extended
@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("turret = [-0.05, 0.05]", ""), "turret"),
        (("turret = [-0.05, 0.05]", "crane = [-0.05, 0.05]"), "crane"),
        (("turret = [-0.05, 0.05]", "turret = 3"), "turret"),
        (("speeds = 0.3", "speeds = -0.3"), "speeds"),
        (("speeds = 0.3", "haste = 0.3"), "haste"),
        (("speeds = 0.3", "budget = 0"), "budget"),
        (("speeds = 0.3\n", ""), "speeds"),
    ],
)
def test_bad_boxes_name_the_file_and_the_table(tmp_path, change, words):
    task = boxed(tmp_path, BOX.format(limit=40.0, end=-1.55).replace(*change))
    result = run(task, "--out", tmp_path / "out")
    assert result.exit_code == 2
    for word in (words, "task.toml", "operating"):
        assert word in result.output.replace("\n", "")


# --- motions in the figure --------------------------------------------------------------------


def test_motions_start_in_the_region_and_stay_below_the_bound():
    one = np.eye(6)
    group = Product([Rotation(), Vector("xyz")])
    certificate = certify(ErrorDynamics(group, 4 * one, 2.8 * one, one), 2.0)
    assert certificate.status is Status.PROVED
    x, ve = np.array([0.5, -0.4, 0.3, 1, 2, 3]), np.zeros(6)
    decay = error_motions(certificate, (x, ve), count=8, points=41)
    assert decay.own is not None
    assert decay.own[0] == pytest.approx(certificate.norm(x, ve))
    assert decay.share(certificate.rate) <= 1.0 + 1e-7
    # Some motion violates an uncertified rate: the bound is sharp.
    assert decay.share(1.2 * certificate.rate) > 1.0
    far = np.array([3.0, 0, 0, 0, 0, 0])
    assert error_motions(certificate, (far, np.zeros(6)), count=1, points=5).own is None


def test_in_python_the_certificate_of_a_task_is_the_same_result():
    found = certify_task(cc.load_task(ROVER), method="thesis")
    assert (found.status, found.problems, found.covered) == (Status.PROVED, (), True)
    rates = {row.place: row.value for row in found.rows if row.quantity == "decay rate"}
    assert rates["whole loop"] <= found.decay.rate  # rounded down
