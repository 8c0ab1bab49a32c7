"""`concur new`: folders with a robot and a task that pass, and errors that leave nothing behind."""

from __future__ import annotations

import json
import re
import tomllib

import pytest
from typer.testing import CliRunner

import concur
from concur.cli import main
from concur.io._new_spacecraft import chain_of

SOLID = (
    '<inertial><origin xyz="0.15 0 0" rpy="0 0 0"/><mass value="1"/>'
    '<inertia ixx="0.002" ixy="0" ixz="0" iyy="0.01" iyz="0" izz="0.01"/></inertial>'
)
WHEEL = (
    '<inertial><mass value="1"/>'
    '<inertia ixx="0.003" ixy="0" ixz="0" iyy="0.005" iyz="0" izz="0.003"/></inertial>'
    '<collision><origin xyz="0 0 0" rpy="1.5707963267948966 0 0"/>'
    '<geometry><cylinder radius="0.1" length="0.04"/></geometry></collision>'
)
LIMIT = '<limit lower="-2.5" upper="2.5" effort="200" velocity="5"/>'


def joint(kind, name, parent, origin, axis):
    limit = LIMIT if kind == "revolute" else ""
    return (
        f'<link name="{name}">{SOLID if kind == "revolute" else WHEEL}</link>'
        f'<joint name="{name}_joint" type="{kind}"><parent link="{parent}"/><child link="{name}"/>'
        f'<origin xyz="{origin}"/><axis xyz="{axis}"/>{limit}</joint>'
    )


ARM = (
    joint("revolute", "pan", "base", "0.2 0 0.3", "0 0 1")
    + joint("revolute", "lift", "pan", "0 0 0.1", "0 1 0")
    + joint("revolute", "elbow", "lift", "0.4 0 0", "0 1 0")
    + '<link name="tip"/><joint name="end" type="fixed"><parent link="elbow"/><child link="tip"/>'
    '<origin xyz="0.3 0 0"/></joint>'
)
WHEELS = joint("continuous", "left", "base", "0 0.2 0", "0 1 0") + joint(
    "continuous", "right", "base", "0 -0.2 0", "0 1 0"
)
BASE = f'<link name="base">{SOLID.replace("0.15 0 0", "0.1 0 0.05")}</link>'


def urdf(*parts):
    return f'<robot name="cart">{"".join(parts)}</robot>'


def run(*arguments):
    return CliRunner().invoke(main, [str(a) for a in arguments])


def tracked(folder):
    result = run("track", folder / "task.toml", "--out", folder / "out", "--json")
    answer = json.loads(result.stdout)
    assert result.exit_code == 0, answer["problems"]
    finals = [f for f in answer["rows"] if f["quantity"].endswith(", final")]
    assert all(f["value"] < 1e-6 and f["holds"] for f in finals)
    starts = [f["value"] for f in answer["rows"] if f["quantity"].endswith(", initial")]
    assert max(starts) > 0.005  # there is an error that decays
    return answer


@pytest.mark.usefixtures("undrawn")
@pytest.mark.by_default(1)
@pytest.mark.parametrize("kind", ["floater", "rover"])
def test_robots_and_tasks_run(kind, tmp_path):
    folder = tmp_path / f"my_{kind}"
    result = run("new", kind, folder)
    assert result.exit_code == 0, result.output
    assert f"concur track {folder / 'task.toml'}" in result.output
    assert sorted(path.name for path in folder.iterdir()) == ["robot.toml", "task.toml"]
    assert concur.load(folder / "robot.toml").name == f"my_{kind}"
    assert tracked(folder)["name"].startswith(f"my_{kind} ")
    for name in ("robot.toml", "task.toml"):
        text = (folder / name).read_text()
        assert "$" not in text
        assert text.startswith("# ")
        assert max(len(line) for line in text.splitlines()) <= 100
    # With the lines of numbers that are only shown, the robot and its run are still valid.
    file = folder / "robot.toml"
    file.write_text(re.sub(r"^# (?=\w+ = |\[)", "", file.read_text(), flags=re.MULTILINE))
    motor, *_ = tomllib.loads(file.read_text())["motors"]
    assert {"encoder", "viscous", "continuous", "no_load_speed", "efficiency"} <= motor.keys()
    assert json.loads(run("check", file, "--json").stdout)["motors"][0] == motor
    file = folder / "task.toml"
    shown = re.sub(r"^# (?=\w+ = |\[)", "", file.read_text(), flags=re.MULTILINE)
    file.write_text(shown)
    assert run("check", file).exit_code == 0
    task = concur.load_task(file)
    missed = {row.quantity for row in task.simulate().rows if row.holds is False}
    assert missed == {f"error of {output.name}, final" for output in task.outputs}
    allowed = re.search(r"^# .* (final_error = [0-9.]+) allows them", shown, re.MULTILINE)[1]
    file.write_text(shown.replace("final_error = 1e-6", allowed))
    task = concur.load_task(file)
    assert task.simulate().status == "passed"
    assert (task.control_period, task.imperfections.latency) == (0.005, 0.005)
    assert list(task.laws) == ["servo", "passive", "pd"]


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("wheels", [True, pytest.param(False, marks=pytest.mark.extended)])
def test_a_urdf_file_gets_a_sidecar_and_a_task_that_passes(wheels, tmp_path):
    source = tmp_path / "cart.urdf"
    source.write_text(urdf(BASE, ARM, WHEELS if wheels else ""))
    folder = tmp_path / "cart"
    answer = json.loads(run("new", "urdf", folder, "--from", source, "--json").stdout)
    assert [path.rpartition("/")[2] for path in answer["files"]] == [
        *("robot.toml", "robot.urdf", "task.toml")
    ]
    assert (folder / "robot.urdf").read_bytes() == source.read_bytes()
    assert not (tmp_path / "cart.toml").exists()
    found = tracked(folder)
    labels = {f["quantity"] for f in found["rows"]}
    assert ("error of base, final" in labels) is wheels
    assert "error of hand, final" in labels


FINGERS = "".join(
    joint("revolute", f"finger{k}", "elbow", "0.3 0 0", "0 0 1") for k in (1, 2)
).replace('lower="-2.5" upper="2.5"', 'lower="0" upper="0.5"')


SLIDE = '<limit lower="0" upper="UPPER" effort="9" velocity="1"/>'


@pytest.mark.parametrize(
    ("more", "joints", "hand", "held"),
    [
        ("", 3, "tip", {}),
        (FINGERS, 3, "tip", {"finger1_joint": 0.25, "finger2_joint": 0.25}),
        # Two links that branch off are fingers without their name too, unless they carry more.
        (FINGERS.replace("finger", "f"), 3, "tip", {"f1_joint": 0.25, "f2_joint": 0.25}),
        (joint("revolute", "jaw", "elbow", "0.3 0 0", "0 0 1"), 3, "tip", {"jaw_joint": 0.0}),
        (joint("revolute", "roll", "elbow", "0.3 0 0", "1 0 0"), 4, "roll", {}),
        (
            joint("revolute", "slide", "elbow", "0.3 0 0", "1 0 0")
            .replace(LIMIT, SLIDE.replace("UPPER", "0.1199")).replace("revolute", "prismatic"),
            3, "tip", {"slide_joint": 0.05995},
        ),
        (
            joint("revolute", "slide", "elbow", "0.3 0 0", "1 0 0")
            .replace(LIMIT, SLIDE.replace("UPPER", "0.1201")).replace("revolute", "prismatic"),
            4, "slide", {},
        ),
        (  # a head beside the arm is held too
            joint("revolute", "head", "base", "0 0 0.5", "0 0 1"), 3, "tip", {"head_joint": 0.0}
        ),
        (
            '<link name="tool0"/><joint name="t" type="fixed"><parent link="elbow"/>'
            '<child link="tool0"/></joint>', 3, "tool0", {},
        ),
    ],
)  # fmt: skip
def test_the_arm_in_a_file_ends_before_its_gripper(more, joints, hand, held, tmp_path):
    (tmp_path / "arm.urdf").write_text(urdf(BASE, ARM, more))
    found = chain_of(concur.load(tmp_path / "arm.urdf"))
    assert len(found.joints) == joints
    assert found.joints[:3] == ("pan_joint", "lift_joint", "elbow_joint")
    assert (found.hand, found.held) == (hand, held)


@pytest.mark.extended
@pytest.mark.usefixtures("undrawn")
def test_a_spacecraft_has_the_arm_of_a_file_a_path_and_motors(tmp_path):
    source = tmp_path / "arm.urdf"
    weak = ARM.replace('effort="200"', 'effort="7.5"', 1)
    source.write_text(urdf(BASE, weak, FINGERS))
    folder = tmp_path / "chaser"
    result = run("new", "spacecraft", folder, "--from", source)
    assert result.exit_code == 0, result.output
    names = ["arm.toml", "arm.urdf", "hand.csv", "robot.toml", "task.toml"]
    assert sorted(path.name for path in folder.iterdir()) == names
    robot = concur.load(folder / "robot.toml")
    assert robot.control_names == ("arm_pan_joint", "arm_lift_joint", "arm_elbow_joint")
    assert robot.control_limits == pytest.approx([0.075, 0.2, 0.2])
    assert not {"arm_finger1_joint", "arm_finger2_joint"} & {*robot.freedom_names}
    task = concur.load_task(folder / "task.toml")
    assert [(o.body, o.group) for o in task.outputs] == [("arm_tip", "R3")]
    assert list(task.laws) == ["servo", "passive", "pd"]
    assert task.control_period == 0.002
    hand = robot.pose(task.q0, "arm_tip")[:3, 3]
    foot = robot.pose(task.q0, "arm_base")[:3, 3]
    assert hand[2] > foot[2]  # outside of the hull
    for name in names[:1] + names[3:]:
        text = (folder / name).read_text()
        assert max(len(line) for line in text.splitlines()) <= 100, name
        # With the lines that are only shown, the file is still valid.
        (folder / name).write_text(re.sub(r"^# (?=\w+ = )", "", text, flags=re.MULTILINE))
    motor = concur.load(folder / "robot.toml").motors[0]
    assert (motor.encoder, motor.efficiency) == (16384, 0.9)
    assert run("check", folder / "task.toml").exit_code == 0


def test_nothing_is_replaced_and_errors_leave_nothing(tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "mine").write_text("kept")
    (tmp_path / "file").write_text("kept")
    wrong = tmp_path / "wrong.urdf"
    wrong.write_text(urdf(BASE.replace('ixx="0.002"', 'ixx="x"'), ARM))
    # One joint about the vertical: its only output cannot be a position.
    stiff = tmp_path / "stiff.urdf"
    stiff.write_text(urdf(BASE, joint("revolute", "pan", "base", "0 0 0", "0 0 1")))
    cart = tmp_path / "cart.urdf"
    cart.write_text(urdf(BASE, ARM, WHEELS))
    before = sorted(tmp_path.rglob("*"))
    for arguments, words in (
        (["rover", tmp_path / "there"], "a file or folder that exists"),
        (["rover", tmp_path / "file"], "a file or folder that exists"),
        (["rover", tmp_path / "7"], "with a letter first"),
        (["rover", tmp_path / "a b"], "with a letter first"),
        (["boat", tmp_path / "new"], "rover, floater, spacecraft, urdf"),
        (["spacecraft", tmp_path / "new"], "the URDF file of its arm, got no file"),
        (["spacecraft", tmp_path / "new"], "concur new spacecraft"),
        (["spacecraft", tmp_path / "new", "--from", tmp_path / "file"], "a URDF file"),
        (["spacecraft", tmp_path / "new", "--from", wrong], "wrong.urdf, line"),
        (["spacecraft", tmp_path / "new", "--from", stiff], "at least three joints"),
        (["spacecraft", tmp_path / "new", "--from", cart], "an arm, got a robot with wheels"),
        (["urdf", tmp_path / "new"], "--from robot.urdf"),
        (["rover", tmp_path / "new", "--from", wrong], "no file with rover"),
        (["urdf", tmp_path / "new", "--from", tmp_path / "none.urdf"], "none.urdf"),
        (["urdf", tmp_path / "new", "--from", tmp_path / "file"], "a URDF file"),
        (["urdf", tmp_path / "new", "--from", wrong], "wrong.urdf, line"),
        (["urdf", tmp_path / "new", "--from", stiff], "no outputs with a regular decoupling"),
    ):
        result = run("new", *arguments)
        assert result.exit_code == 2, (arguments, result.output)
        assert words in result.stderr, (arguments, result.stderr)
        assert sorted(tmp_path.rglob("*")) == before
    assert (tmp_path / "there" / "mine").read_text() == (tmp_path / "file").read_text() == "kept"
