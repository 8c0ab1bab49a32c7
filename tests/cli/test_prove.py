"""`concur prove` and the table [proof]: verdict, files, exit status, and rejected entries."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from typer.testing import CliRunner

import concur as cc
from concur.checker import confirm, load_task_proof
from concur.cli import main
from concur.errors import ConcurError
from concur.io import load_task
from concur.proofs import _recheck_document, prove_task, sample_statement
from tests.proofs._restated import restated

EXAMPLES = Path(__file__).parents[2] / "examples"
WHOLE = (EXAMPLES / "rover_arm.toml").read_text()
HEAD = WHOLE[: WHOLE.index("[proof]")].replace("duration = 20.0", "duration = 0.05")
HEAD = HEAD.replace("evaluate_after = 12.0", "evaluate_after = 0.04")
NEAR = "place = 0.002\nspeed = { base = 0.004, hand = 0.006 }\nheading = 0.002\n"
CASTER = "supports = { caster = [0.5, 0.0, 0.0] }\n"
POWER = '[[proof.expression]]\nname = "power"\nformula = "{}"\n'
POST = '[[proof.obstacle]]\nname = "post"\nstart = [0.6, 0.9, 0.0]\nradius = 0.03\n'
FOREARM = '[[proof.capsule]]\nbody = "forearm"\n'
REAL = "period = 0.001\nmasses = 0.005\n"


def written(folder, proof, head=HEAD, name="task"):
    path = folder / f"{name}.toml"
    path.write_text(f"{head}[proof]\n{proof}")
    return path


def run(*arguments, drawn=False):
    """Worlds have their own tests; figures take longer than the proof."""
    own = ["--samples", "0"] if arguments[0] == "prove" else []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("concur.show.style.DPI", 30)
        if not drawn:
            for name in ("proof_figure", "bounds_figure"):
                patch.setattr(f"concur.show.{name}", lambda *_: Figure((1, 1)))
        return CliRunner().invoke(main, [*map(str, arguments), *own])


@pytest.fixture(scope="module")
def near(tmp_path_factory):
    """The proof that several tests store, confirm and change."""
    return prove_task(load_task(written(tmp_path_factory.mktemp("near"), NEAR + REAL)))


@pytest.mark.by_default(2)
@pytest.mark.parametrize(
    ("limit", "code", "status"), [(20, 0, "PROVED"), (5, 1, "REFUTED"), (5.4, 1, "UNDECIDED")]
)
def test_the_verdict_depends_on_the_limits(tmp_path, limit, code, status):
    task = written(tmp_path, f"{NEAR}{REAL}torque_limits = {limit}\nmargin = 0.1\n")
    result = run("prove", task, "--out", tmp_path / "out", "--no-factor", drawn=not code)
    assert result.exit_code == code, result.output
    text = " ".join(result.output.split())
    assert f"{status}:" in text
    assert ("PROVED" in text) is (status == "PROVED")
    assert ("proof.json is confirmed by the independent checker" in text) is (code == 0)
    expected = {"bounds.json", "concur.json", "report.html", "tube.png"}
    expected |= set() if status == "REFUTED" else {"bounds.png"}
    expected |= {"proof.json"} if status == "PROVED" else set()
    assert {path.name for path in (tmp_path / "out").iterdir()} == expected
    page = (tmp_path / "out" / "report.html").read_text()
    assert f"{status}:" in page
    assert ("What to change" in page) is (status != "PROVED")
    found = json.loads((tmp_path / "out" / "bounds.json").read_text())
    assert found["status"] == status
    assert (found["verification_seconds"] is None) is (code != 0)
    assert found["seconds"] > 0.0
    assert found["statement"]["torques"] == dict.fromkeys(
        load_task(task).robot.control_names, limit
    )
    if status == "REFUTED":
        assert "torque turret is 5.27 N m at 0 s, limit 5" in text
        assert found["bounds"] == []
        return
    torque = {b["name"]: b for b in found["bounds"] if b["kind"] == "torque"}
    assert torque["turret"]["kept"] is (code == 0)
    # The sentence rounds to the safe side.
    largest = max(b["value"] for b in torque.values())
    if code == 0:
        said = float(found["sentence"].split("torques at most ")[1].split()[0])
        assert largest <= said <= 1.01 * largest


def texts(folder):
    """All texts of a folder, such as pages, data and manifest."""
    return " ".join(path.read_text() for path in folder.iterdir() if path.suffix != ".png")


def test_a_proof_that_is_not_verified_yet_is_never_called_proved(tmp_path, monkeypatch, near):
    """Neither on the terminal nor in a file, before the file is verified."""
    monkeypatch.setenv("CONCUR_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("concur.proofs.prove_task", lambda *_, **__: near)
    task, out = written(tmp_path, NEAR + REAL), tmp_path / "out"
    result = run("prove", task, "--out", out, "--no-recheck")
    assert result.exit_code == 1, result.output
    found = json.loads((out / "bounds.json").read_text())
    assert (found["status"], found["passed"], found["verification_seconds"]) == (
        "UNVERIFIED", False, None
    )  # fmt: skip
    assert "proved, not yet verified: from starts within" in found["sentence"]
    proof = out / "proof.json"
    assert load_task_proof(proof).sentence.startswith("not verified on this computer: from")
    for text in (result.output, texts(out), load_task_proof(proof).sentence):
        assert "PROVED" not in text
    result = run("recheck", proof, "--task", task)
    assert result.exit_code == 0, result.output
    text = " ".join(result.output.split())
    assert "confirmed: every step was verified" in text
    assert "starts within 0.002 m" in text
    assert "torque turret" in text
    assert load_task_proof(proof).sentence.startswith("PROVED: from starts within 0.002 m")


@pytest.mark.by_default(1)
@pytest.mark.parametrize("wrong", ["mutated", "too coarse"])
def test_a_proof_that_the_checker_does_not_confirm_is_undecided(tmp_path, monkeypatch, near, wrong):
    """Claims below what is shown; and the rover for 4 ms, of which the checker finds more cells."""
    monkeypatch.setenv("CONCUR_CACHE", str(tmp_path / "cache"))
    task, reason = written(tmp_path, NEAR + REAL), "exceeds the bound"
    if wrong == "mutated":
        monkeypatch.setattr("concur.proofs.prove_task", lambda *_, **__: near)
        monkeypatch.setattr("concur.proofs._file.INFLATION", -0.1)
    else:
        reason = "which no leaf covers"
        short = WHOLE.replace("duration = 20.0", "duration = 0.004")
        task.write_text(short.replace("evaluate_after = 12.0", "evaluate_after = 0.001"))
    out = tmp_path / "out"
    result = run("prove", task, "--out", out)
    assert result.exit_code == 1
    found = json.loads((out / "bounds.json").read_text())
    assert (found["status"], found["passed"], found["factor"]) == ("UNDECIDED", False, None)
    assert any(reason in problem for problem in found["problems"])
    assert run("recheck", out / "proof.json").exit_code == 1
    for text in (result.output, texts(out), load_task_proof(out / "proof.json").sentence):
        assert "PROVED" not in text


def test_in_python_a_proof_is_proved_once_it_is_confirmed(tmp_path, monkeypatch, near):
    monkeypatch.setenv("CONCUR_CACHE", str(tmp_path / "cache"))
    found, done = near, []
    assert found.status is cc.Status.UNVERIFIED
    assert "PROVED" not in str(found)
    sure = confirm(found, progress=done.append)
    assert (sure.status, sure.sentence[:12], done[-1]) == (cc.Status.PROVED, "PROVED: from", 1.0)
    assert done == sorted(done)
    assert confirm(found, work=1e3).status is cc.Status.UNDECIDED
    undecided = replace(found, status=cc.Status.UNDECIDED)
    assert confirm(undecided) is undecided
    with pytest.raises(ConcurError, match="without its task"):
        confirm(replace(found, source=None))
    # Another task than that of the file is no task that was proved.
    assert found.source is not None
    other = replace(found.source, given=load_task(written(tmp_path, NEAR + REAL + "push = 0.1\n")))
    assert confirm(replace(found, source=other)).status is cc.Status.UNDECIDED


@pytest.mark.extended
def test_a_statement_that_the_checker_does_not_cover_stays_unverified(tmp_path, monkeypatch):
    hub = FOREARM.replace("forearm", "left_wheel") + "start = [0.0, 0.0, 0.0]\nradius = 0.1\n"
    task = written(tmp_path, NEAR + REAL + hub + POST.replace("0.6, 0.9", "3.0, 3.0"))
    for covered, confirmed in (
        (True, "proof.json is confirmed"),
        (False, "does not cover clearance"),
    ):
        if not covered:
            fewer = _recheck_document.STATEMENT - {"clearance"}
            monkeypatch.setattr(_recheck_document, "STATEMENT", fewer)
        result = run("prove", task, "--out", tmp_path / f"out{covered}")
        assert result.exit_code == (0 if covered else 1), result.output
        assert confirmed in " ".join(result.output.split())
        assert ("PROVED" in result.output) is covered
        code = run("recheck", tmp_path / f"out{covered}" / "proof.json").exit_code
        assert code == (0 if covered else 1)


@pytest.mark.extended
def test_an_undecided_task_names_the_factor_that_is_proved(tmp_path):
    task = written(tmp_path, f"{NEAR}{REAL}torque_limits = 5.4\n")
    result = run("prove", task, "--out", tmp_path / "out")
    found = json.loads((tmp_path / "out" / "bounds.json").read_text())
    assert (result.exit_code, found["status"]) == (1, "UNDECIDED")
    assert 0.0 < found["factor"] < 1.0
    share = f"With {found['factor']:g} times all starts and imperfections"
    said = f"{share} it is proved, not yet verified."
    assert said in " ".join(result.output.split())
    assert found["sentence"].endswith(said)


def test_entries_and_defaults(tmp_path):
    task = load_task(written(tmp_path, NEAR + "push = { hand = 0.1 }\ntorque_error = 0.2\n"))
    found = task.statement
    assert (found.place, found.speed, found.push) == ((0.002, 0.002), (0.004, 0.006), (0.0, 0.1))
    assert found.torque_error == (0.2,) * 5
    assert (found.period, found.delay, found.torques, found.angles) == (0.0, 0.0, {}, {})
    held = HEAD.replace('method = "rk4"', 'method = "rk4"\ncontrol_period = 0.002')
    assert load_task(written(tmp_path, NEAR, held)).statement.period == 0.002
    assert load_task(written(tmp_path, NEAR + "period = 0.002\n", held)).statement.period == 0.002
    shorter = load_task(written(tmp_path, NEAR + "period = 0.001\n", held))
    with pytest.raises(ConcurError, match="at least the control period"):
        _ = shorter.statement
    assert load_task(EXAMPLES / "free_floater.toml").statement is None


def test_momentum_errors_are_of_robots_that_float(tmp_path):
    text = (EXAMPLES / "free_floater_proved.toml").read_text()
    path = tmp_path / "task.toml"
    path.write_text(text + "momentum_error = [0.001, 0.002]\n")
    assert load_task(path).statement.momentum_error == (0.001, 0.002)
    assert load_task(EXAMPLES / "free_floater_proved.toml").statement.momentum_error == ()
    path.write_text(text + "momentum_error = [0.001]\n")
    result = run("check", path)
    assert (result.exit_code, "momentum_error" in result.output) == (2, True)
    result = run("check", written(tmp_path, NEAR + "momentum_error = [0.001, 0.002]\n"))
    assert (result.exit_code, "a robot that floats" in result.output) == (2, True)


def test_the_narrowest_limits_apply(tmp_path):
    limits = "\n[servo]\ntorque_limits = 8.0\n"
    proof = NEAR + "torque_limits = { turret = 5.0, forearm = 9.0 }\n"
    found = load_task(written(tmp_path, proof + limits)).statement.torques
    assert found == {
        "left_wheel": 8.0, "right_wheel": 8.0, "turret": 5.0, "upper_arm": 8.0, "forearm": 8.0
    }  # fmt: skip
    proof = NEAR + "[proof.angle_limits]\nturret = [-1.0, inf]\n"
    assert load_task(written(tmp_path, proof)).statement.angles == {"turret": (-1.0, np.inf)}


@pytest.mark.extended
def test_loads_and_grip_are_bounded_where_supports_are_declared(tmp_path):
    limits = CASTER + "least_load = { right_wheel = 30.0 }\ngrip = 0.6\n"
    ground = load_task(written(tmp_path, NEAR + limits)).statement.ground
    assert (ground.names, ground.least_load) == (
        ("left_wheel", "right_wheel", "caster"),
        (0.0, 30.0, 0.0),
    )
    result = run("prove", written(tmp_path, NEAR + REAL + limits), "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    text = " ".join(result.output.split())
    assert "wheels and supports loaded by at least" in text
    assert "wheels in need of a grip of at most" in text
    assert "the balance" in (tmp_path / "out" / "report.html").read_text()
    found = json.loads((tmp_path / "out" / "bounds.json").read_text())
    bounds = {(b["kind"], b["name"]): b for b in found["bounds"]}
    assert bounds["load", "right_wheel"]["limit"] == 30.0
    assert bounds["load", "caster"]["side"] == "lower"
    assert 0.0 < bounds["grip", "right_wheel"]["value"] < 0.6
    behind = limits.replace("[0.5", "[-0.5")
    result = run("prove", written(tmp_path, NEAR + REAL + behind), "--out", tmp_path / "behind")
    assert result.exit_code == 1
    assert "REFUTED" in result.output


def test_obstacles_are_read_and_refuted_in_the_way(tmp_path):
    proof = NEAR + REAL + FOREARM + POST + "end = [0.6, 0.9, 0.5]\ndistance = 0.1\n"
    found = load_task(written(tmp_path, proof)).statement
    assert found.limits["clearance", "forearm from post"] == 0.1
    (obstacle,) = found.clearance.obstacles
    assert (obstacle.end, obstacle.frame, found.clearance.capsules[0].radius) == (
        (0.6, 0.9, 0.5),
        "world",
        0.025,
    )
    wide = proof.replace("distance = 0.1", "distance = 1.0")
    result = run("prove", written(tmp_path, wide), "--out", tmp_path / "out")
    assert result.exit_code == 1
    text = " ".join(result.output.split())
    assert "REFUTED" in text
    assert "clearance forearm from post is 0." in text


@pytest.mark.extended
def test_expressions_are_bounded_with_their_unit(tmp_path):
    proof = NEAR + REAL + POWER.format("torque(turret) * speed(turret)") + 'unit = "W"\n'
    result = run("prove", written(tmp_path, proof), "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    found = json.loads((tmp_path / "out" / "bounds.json").read_text())
    (power,) = [b for b in found["bounds"] if b["kind"] == "expression"]
    assert (power["name"], power["unit"], power["limit"], power["side"]) == (
        "power",
        "W",
        None,
        "upper",
    )
    bounds = {(b["kind"], b["name"]): b["value"] for b in found["bounds"]}
    assert 0.0 < power["value"] < bounds["torque", "turret"] * bounds["speed", "turret"]
    # Of wheels the outputs determine no angle.
    wheel = written(tmp_path, NEAR + REAL + POWER.format("angle(left_wheel)"))
    result = run("prove", wheel, "--out", tmp_path / "wheel")
    assert (result.exit_code, "upper_arm" in result.output) == (2, True)


@pytest.mark.extended
def test_errors_of_the_measured_state_are_read_and_named(tmp_path):
    text = "[proof.reading]\nangles = { turret = 1e-4 }\nspeeds = 1e-3\nplace = 1e-4\n"
    found = load_task(written(tmp_path, NEAR + text)).statement.reading
    names = load_task(written(tmp_path, NEAR)).servo.model.shape_names
    assert found.of(("turret", "forearm"), names) == ((1e-4, 0.0), (1e-3,) * 5)
    result = run("prove", written(tmp_path, NEAR + REAL + text), "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    told = " ".join(result.output.split())
    assert "readings wrong by up to 0.0001 rad of angles, 0.001 rad/s of speeds" in told
    assert "Errors of the measured state" in (tmp_path / "out" / "report.html").read_text()


@pytest.mark.extended
def test_wrong_entries_name_table_and_field(tmp_path):
    cases = {
        NEAR.replace("heading", "#"): ("heading", "Add the field"),
        NEAR.replace("base", "bass"): ("speed", "base"),
        NEAR.replace("base = 0.004, ", ""): ("speed", "none for `base`"),
        NEAR.replace("0.002", "-0.002"): ("place", "zero or more"),
        NEAR + "masses = 1.0\n": ("masses", "below 1"),
        NEAR + "torque_limits = { arm = 1.0 }\n": ("torque_limits", "a control"),
        NEAR + "speed_limits = { arm = 1.0 }\n": ("speed_limits", "a shape velocity"),
        NEAR + "grip = 0.5\n": ("ground", "Declare a support"),
        NEAR + CASTER + "least_load = { castor = 1.0 }\n": ("least_load", "caster"),
        NEAR + CASTER + "tipping = 1.0\n": ("ground", "loads are determined"),
        NEAR + "supports = { caster = [0.5, 0.0] }\n": ("supports", "3"),
        NEAR + "[proof.reading]\nangles = 1e-4\n": ("`speeds`", "2 / h"),
        NEAR + "[proof.reading]\nspeeds = { hand = 1e-4 }\n": ("speeds`", "a joint among"),
        NEAR + "[proof.reading]\nangles = { left_wheel = 1.0 }\n": ("reading.angles", "arm"),
        NEAR + POWER.format("torque(hand)"): ("`power`", "upper_arm"),
        NEAR + POWER.format("import(turret)"): ("a formula", "import(turret)"),
        NEAR + POWER.format("speed(turret)") * 2: ("expressions", "different names"),
        NEAR + POST: ("clearance", "one or more capsules"),
        NEAR + POST + FOREARM.replace("forearm", "hand"): ("body", "a body"),
        NEAR + POST + FOREARM.replace("forearm", "chassis"): ("`chassis`", "box"),
        NEAR + POST + FOREARM + 'name = "a"\n[[proof.capsule]]\nname = "a"\nbody = "turret"\n': (
            "clearance",
            "with another name",
        ),
        NEAR + FOREARM + POST + 'capsules = ["turret"]\n': ("obstacle `post`", "forearm"),
        NEAR + FOREARM + POST + 'frame = "hand"\n': ("frame", "world"),
        NEAR + "[proof.angle_limits]\narm = [0.0, 1.0]\n": ("angle_limits", "a joint"),
        NEAR + "[proof.angle_limits]\nturret = [1.0, 1.0]\n": ("turret", "below the upper"),
    }
    for proof, (field, text) in cases.items():
        result = run("check", written(tmp_path, proof))
        assert result.exit_code == 2, proof
        for part in ("[proof", field, text):
            assert part in result.output, (proof, result.output)


def test_what_is_not_covered_is_rejected(tmp_path):
    result = run("prove", EXAMPLES / "free_floater.toml", "--out", tmp_path / "a")
    assert (result.exit_code, "a table [proof]" in result.output) == (2, True)
    wheel = written(tmp_path, NEAR + "[proof.angle_limits]\nleft_wheel = [-1.0, 1.0]\n")
    result = run("prove", wheel, "--out", tmp_path / "b")
    assert (result.exit_code, "the angle of `left_wheel`" in result.output) == (2, True)


@pytest.mark.slow
def test_the_shipped_rover_is_proved(tmp_path):
    result = run("prove", EXAMPLES / "rover_arm.toml", "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    found = json.loads((tmp_path / "out" / "bounds.json").read_text())
    assert found["status"] == "PROVED"
    assert found["verification_seconds"] < found["seconds"]


@pytest.mark.slow
def test_the_shipped_satellite_is_proved(tmp_path):
    task = EXAMPLES / "free_floater_proved.toml"
    result = run("prove", task, "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    found = json.loads((tmp_path / "out" / "bounds.json").read_text())
    assert (found["status"], found["segments"][0]) == ("PROVED", 0.0)
    assert len(found["tube"]["base_pose"]) == len(found["segments"])
    # Another base at the start moves the whole arm: the proof is about it, too.
    assert found["tube"]["base_pose"][0] > load_task(task).statement.heading
    kept = {bound["kind"]: bound["kept"] for bound in found["bounds"]}
    assert kept.keys() >= {"torque", "speed", "margin", "corridor"}
    assert all(kept.values())


@pytest.mark.extended
@pytest.mark.parametrize(("limit", "status"), [(20, "PROVED"), (5.28, "UNDECIDED"), (5, "REFUTED")])
def test_a_law_with_torque_limits_is_the_plain_one_within_them(tmp_path, limit, status):
    """A proof shows that it never saturates; so it has the limits, too."""
    limited = f"{HEAD}[servo]\ntorque_limits = {limit}\n"
    task = written(tmp_path, NEAR + REAL, head=limited)
    result = run("prove", task, "--out", tmp_path / "out", "--no-factor", "--samples", 0)
    assert (f"{status}:" in result.output, result.exit_code) == (True, int(status != "PROVED"))
    if status != "PROVED":
        return
    assert "proof.json is confirmed" in " ".join(result.output.split())
    assert sample_statement(load_task(task), 20).stopped == 0
    plain = written(tmp_path, NEAR + REAL, name="plain")
    assert run("prove", plain, "--out", tmp_path / "plain", "--no-recheck").exit_code == 1
    both = [json.loads((tmp_path / n / "bounds.json").read_text()) for n in ("out", "plain")]
    assert [b["value"] for b in both[0]["bounds"]] == [b["value"] for b in both[1]["bounds"]]


def test_statements_do_not_let_a_law_exceed_its_torque_limits(tmp_path):
    limited = HEAD + "[servo]\ntorque_limits = { turret = [-30.0, 6.0] }\n"
    task = load_task(written(tmp_path, NEAR + REAL, head=limited))
    assert task.statement.torques["turret"] == 6.0
    proof = prove_task(task)
    assert proof.status is cc.Status.UNVERIFIED
    proof.save(tmp_path / "proof.json")
    assert cc.recheck(tmp_path / "proof.json") is cc.Status.PROVED
    wide = replace(task.statement, torques=task.statement.torques | {"turret": 6.001})
    with pytest.raises(ConcurError, match="a torque of `turret` of at most 6"):
        prove_task(restated(task, wide, task.duration))
    stored = load_task_proof(tmp_path / "proof.json").document
    given = (task.servo, task.reference, task.duration, task.q0, task.s0)
    stored._content.statement["torques"]["turret"] = 6.001
    assert "the torque of turret may exceed" in stored.verify(*given)
    # A law with other limits is another law.
    lower = replace(task.servo, torque_limits={"turret": (-5.9, 7.0)})
    assert "another law" in stored.verify(lower, *given[1:])
