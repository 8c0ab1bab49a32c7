"""Motors of the manual: the rover of its page runs, and numbers of motors stand in one place."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import concur as cc

ROOT = Path(__file__).parents[2]
TOML = re.compile(r"^```toml\n(.*?)^```", re.DOTALL | re.MULTILINE)
ROBOT, TASK = TOML.findall((ROOT / "docs/howto/rover.md").read_text(encoding="utf-8"))
(UNCERTAIN,) = TOML.findall((ROOT / "docs/motors.md").read_text(encoding="utf-8"))
SERVO = re.search(r"^\[servo\]\n(?:.+\n)+", TASK, re.MULTILINE)[0]
PD = '[law]\nkind = "pd"\nstiffness = 6.0\ndamping = 1.0\ntorque_limits = true\n'


def written(folder: Path, text: str) -> Path:
    (folder / "rover.toml").write_text(ROBOT, encoding="utf-8")
    (folder / "task.toml").write_text(text, encoding="utf-8")
    return folder / "task.toml"


@pytest.mark.by_default(1)
@pytest.mark.parametrize("law", ["servo", "passive", "wheels"])
def test_the_rover_of_the_page_runs(law: str, tmp_path: Path) -> None:
    task = cc.load_task(written(tmp_path, TASK))
    assert list(task.laws) == ["servo", "passive", "wheels"]
    task = task.with_law(law)
    np.testing.assert_array_equal(task.law.torque_limits, [[-0.35, 0.35]] * 2)
    run = task.simulate()
    assert run.status == "passed"
    rows = {row.quantity: row for row in run.rows}
    assert rows["largest speed of left_wheel"].limit == pytest.approx(700.0 / 26.0)
    assert 0.0 < rows["heat of motor left motor, largest"].value < 0.1
    assert {"friction", "resolution", "torque limit", "latency"} <= set(run.plant_differences)
    cut = re.search(r"^\[imperfections.*\n(?:.+\n)+", TASK, re.MULTILINE)[0]
    ideal = TASK.replace(cut, "").replace("control_period", "# control_period")
    same = cc.load_task(written(tmp_path, ideal)).with_law(law).simulate()
    assert "numbers of motors without effect" in [row.quantity for row in same.rows]
    assert np.abs(run.u).max() > 1.3 * np.abs(same.u).max()  # friction takes torque


@pytest.mark.extended
def test_a_stiffer_servo_leaves_less_error_and_a_payload_lies_at_the_com(tmp_path: Path) -> None:
    task = cc.load_task(written(tmp_path, TASK))
    weak, stiff = (
        task.with_law({"kind": "servo", "stiffness": k * k, "damping": 2.0 * k}).simulate()
        for k in (3.0, 5.0)
    )
    assert task.tolerances.final_error > weak.error_norms["nose"][-1]
    assert stiff.error_norms["nose"][-1] < 0.5 * weak.error_norms["nose"][-1]
    heavy = task.with_world([5.0]).simulate().robot.bodies[0].inertia
    empty = task.robot.bodies[0].inertia
    assert heavy.mass == empty.mass + 5.0
    np.testing.assert_array_equal(heavy.com, empty.com)
    np.testing.assert_array_equal(heavy.moments, empty.moments)


@pytest.mark.by_default(2)
@pytest.mark.parametrize(("casters", "compliance"), [(2, "compliance = 1.0"), (2, None), (1, "")])
def test_casters_of_the_page_carry_load_where_wheels_slip(casters, compliance, tmp_path) -> None:
    text = TASK.replace("duration = 6.0", "duration = 0.05")
    path = written(tmp_path, f"{text}\n[plant.slip]\ngrip = 0.8\n{compliance or ''}\n")
    robot, loads = tmp_path / "rover.toml", []
    for height in (-0.1, 0.2):
        places = [f"c{k} = [0.45, {0.1 * k}, {height}]" for k in range(casters)]
        robot.write_text(re.sub("caster = .*]", ", ".join(places), ROBOT), encoding="utf-8")
        if compliance is None:
            with pytest.raises(cc.errors.ConcurError, match="Give compliance="):
                cc.load_task(path).simulate()
            return
        rows = {row.quantity: row.value for row in cc.load_task(path).simulate().rows}
        loads.append([rows[f"load of c{k}, smallest"] for k in range(casters)])
    assert min(loads[0]) > 1.0
    assert loads[0] == loads[1]
    assert not [row for row in cc.load_task(written(tmp_path, text)).simulate().rows
                if row.quantity.startswith("load of")]  # fmt: skip


def test_numbers_of_motors_are_uncertain_by_name(tmp_path: Path) -> None:
    task = cc.load_task(written(tmp_path, TASK + UNCERTAIN))
    assert task.uncertainty.labels == (
        "mass.chassis", "viscous.left motor", "efficiency.left motor", "efficiency.right motor",
    )  # fmt: skip
    cut = re.search(r"^\[imperfections.*\n(?:.+\n)+", TASK, re.MULTILINE)[0]
    idle = TASK.replace(cut, "")
    with pytest.raises(cc.errors.DescriptionError, match="a finite nominal value") as caught:
        cc.load_task(written(tmp_path, idle + UNCERTAIN))
    assert caught.value.field == "left motor"


@pytest.mark.parametrize(
    ("limits", "words"),
    [("0.35", "less than 0.35"), ("0.34", ""), ("0.36", "less than 0.35"),
     ('{ "left motor" = 1.0 }', "less than 0.35"), ("[[-0.3, 0.35], 0.2]", "less than 0.35"),
     ("true", ""), ('{ "left motor" = [-0.2, inf] }', "")],
)  # fmt: skip
@pytest.mark.by_default(9)  # all with [servo], and both sides of the limit with [law]
@pytest.mark.parametrize("table", ["[servo]", "[law]"])
def test_limits_of_a_law_do_not_repeat_those_of_motors(limits, words, table, tmp_path) -> None:
    law = SERVO if table == "[servo]" else PD
    text = law.replace("torque_limits = true", f"torque_limits = {limits}")
    path = written(tmp_path, TASK.replace(SERVO, text))
    if not words:
        assert cc.load_task(path).law.torque_limits.min() < -0.1
        return
    with pytest.raises(cc.errors.DescriptionError, match=words) as caught:
        cc.load_task(path).law  # noqa: B018
    assert (caught.value.table, caught.value.field) == (table, "torque_limits")


@pytest.mark.parametrize(
    ("limits", "words"),
    [("0.34", ""), ("0.36", ""), ("0.41", "less than 0.4, the limit of `right motor`"),
     ('{ "right motor" = 0.39 }', ""), ('{ "left motor" = 0.35 }', "less than 0.35, the limit of")],
)  # fmt: skip
def test_one_number_for_motors_with_different_limits_holds_where_it_is_smaller(
    limits, words, tmp_path
) -> None:
    path = written(tmp_path, TASK.replace("torque_limits = true", f"torque_limits = {limits}"))
    robot = tmp_path / "rover.toml"
    left, right = robot.read_text().split('name = "right motor"')
    robot.write_text(f'{left}name = "right motor"{right.replace("torque = 0.35", "torque = 0.4")}')
    if words:
        with pytest.raises(cc.errors.DescriptionError, match=words):
            cc.load_task(path).law  # noqa: B018
        return
    given = tomllib.loads(f"limits = {limits}")["limits"]
    wanted = [given] * 2 if isinstance(given, float) else [0.35, given["right motor"]]
    kept = cc.load_task(path).law.torque_limits[:, 1]
    np.testing.assert_array_equal(kept, np.minimum(wanted, [0.35, 0.4]))


def test_friction_beside_that_of_motors_is_refused_with_both_places(tmp_path: Path) -> None:
    for table, words in (("coulomb = 0.1", "`coulomb` of `left motor`"),
                         ("resolution = 1e-3", "`resolution` of `left_wheel`")):  # fmt: skip
        text = TASK.replace(
            "[imperfections.timing]", f"[imperfections]\n{table}\n[imperfections.timing]"
        )
        with pytest.raises(cc.errors.ConcurError, match=words) as caught:
            cc.load_task(written(tmp_path, text))
        assert "[imperfections]" in str(caught.value)
        assert "robot's motor" in str(caught.value)


OF_MOTORS = {field.name for field in fields(cc.Motor)} - {
    *("name", "joints", "body", "point", "torque", "speed"),  # words of other tables too
    *("viscous", "coulomb", "stribeck"),  # of controls without a motor that states them
}
TEMPLATES = ROOT / "concur/io/templates"
FILES = [
    path
    for folder in ("examples", "concur/robots", "concur/io/templates")
    for path in sorted((ROOT / folder).rglob("*.toml*"))
]
PAGES = sorted(path for path in (ROOT / "docs").rglob("*.md") if "```toml" in path.read_text())


def filled(path: Path) -> str:
    """Text of a file, or of a template with 1 for each fact and with the lines that it shows."""
    text = path.read_text(encoding="utf-8")
    if not path.is_relative_to(TEMPLATES):
        return text
    text = re.sub(r"^\{%.*%\}\n", "", text, flags=re.MULTILINE)
    text = re.sub(r"\{\{ .*?\}\}", "1", re.sub(r'\{\{ " ".*?\}\}', " ", text))
    return re.sub(r"^# (?=\w+ = |\[)", "", text, flags=re.MULTILINE)


def keys(table: Any) -> Iterator[str]:
    """Names of all fields of a file, at any depth."""
    for name, value in table.items():
        yield name
        for entry in value if isinstance(value, list) else [value]:
            yield from keys(entry) if isinstance(entry, dict) else ()


def misplaced(text: str) -> set[str]:
    """Fields of motors in a file outside `[[motors]]`; deviations are no numbers of a motor."""
    file = tomllib.loads(text)
    kept = {name: part for name, part in file.items() if name not in ("motors", "uncertainty")}
    return OF_MOTORS.intersection(keys(kept))


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_numbers_of_motors_stand_in_files_of_robots_alone(path: Path) -> None:
    text = filled(path)
    assert misplaced(text) == set()
    own = path.is_relative_to(TEMPLATES) or path.parent.name == "urdf"  # robots of other packages
    if "[[outputs]]" in text and not own:
        cc.load_task(path)  # refuses friction, encoders and limits that repeat those of the robot


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_numbers_of_motors_stand_once_in_pages_too(path: Path) -> None:
    for text in TOML.findall(path.read_text(encoding="utf-8")):
        assert misplaced(text) == set()


def test_a_number_of_a_motor_in_another_table_is_found() -> None:
    assert misplaced(ROBOT) == misplaced(TASK + UNCERTAIN) == set()
    assert misplaced(TASK + "[drives]\ngear = 26.0\n") == {"gear"}
    shown = filled(TEMPLATES / "spacecraft" / "robot.toml.j2")
    assert {"encoder", "efficiency"} <= misplaced(shown.replace("[[motors]]", "[[axes]]"))
    assert misplaced(TASK + "[[axes]]\nencoder = 2048\n") == {"encoder"}
    rig = (ROOT / "examples/rover_rig/rig.toml").read_text(encoding="utf-8")
    assert misplaced(rig.replace("node = 1", "node = 1\ngear = 2.0", 1)) == {"gear"}


@pytest.mark.parametrize(
    ("limit", "repeats"),
    [
        ("torque_limit = 9.1", True), ("torque_limit = 9.1000001", False),
        ("torque_limit = 9.0", False), ("torque_limit = 0.35", False),
        ("speed_limit = 26.923076923076923", True), ("speed_limit = 27.0", False),
    ],
)  # fmt: skip
def test_limits_of_joints_do_not_repeat_those_of_their_motors(
    limit: str, repeats: bool, tmp_path: Path
) -> None:
    file = tmp_path / "rover.toml"
    old = 'name = "right_wheel"\n'
    file.write_text(ROBOT.replace(old, f"{old}{limit}\n", 1))
    if repeats:
        with pytest.raises(cc.errors.DescriptionError, match="the motor `right motor` states") as e:
            cc.load(file)
        assert (e.value.table, e.value.field) == ('[[bodies]] "right_wheel"', limit.split()[0])
        return
    robot = cc.load(file)
    field, number = limit.split(" = ")
    assert getattr(robot.bodies[2], field) == (float(number),)
    assert cc.load(robot.save(tmp_path / "again.toml")[0]) == robot


def test_a_limit_stated_twice_in_python_is_written_once(tmp_path: Path) -> None:
    (tmp_path / "rover.toml").write_text(ROBOT)
    robot = cc.load(tmp_path / "rover.toml")
    twice = [replace(body, torque_limit=0.35 * 26.0) if body.name == "left_wheel" else body
             for body in robot.bodies]  # fmt: skip
    saved = replace(robot, bodies=twice).save(tmp_path / "again.toml")[0]
    assert cc.load(saved) == robot


@pytest.mark.parametrize(("counts", "cure"), [("4096.0", "Write 4096, "), ("4096.5", "Correct")])
def test_encoders_count_whole_numbers(counts: str, cure: str, tmp_path: Path) -> None:
    (tmp_path / "rover.toml").write_text(ROBOT.replace("encoder = 2048", f"encoder = {counts}"))
    with pytest.raises(cc.errors.DescriptionError, match=cure) as caught:
        cc.load(tmp_path / "rover.toml")
    assert caught.value.field == "encoder"
