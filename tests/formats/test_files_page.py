"""The page on files: each of its TOML blocks is read unchanged."""

from __future__ import annotations

import inspect
import json
import math
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from concur.control import Output, Redundancy, Servo
from concur.formats import (
    _drives,
    _imperfections,
    _initial,
    _proof,
    _reference,
    _requirements,
    _robot,
    _servo,
    _task_tables,
    _urdf,
    _wheels,
    load,
    load_task,
)
from concur.formats._nominal import OF_ROBOT, nominal_values
from concur.mechanism import joints
from concur.simulation import METHODS, Tolerances

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "files.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```toml\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
ROBOT = tomllib.loads(next(b for b in BLOCKS if b.startswith('name = "cart"')))
TASK = tomllib.loads(next(b for b in BLOCKS if b.startswith('name = "drive and point"')))


def written(value: Any) -> str:
    """Write a value as TOML."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(k)} = {written(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(written, value)) + "]"
    if isinstance(value, float) and math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return json.dumps(value)


def completed(whole: dict[str, Any], part: dict[str, Any]) -> str:
    """Put the tables of a fragment into a whole file: lists grow, tables are replaced."""
    merged = dict(whole)
    for key, value in part.items():
        if key in ("bodies", "wheels", "drives", "mimics", "steering", "outputs"):
            merged[key] = [*whole.get(key, []), *value]
        elif key == "reference":
            merged[key] = whole.get(key, {}) | value
        else:
            merged[key] = value
    return "\n".join(f"{key} = {written(value)}" for key, value in merged.items())


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.splitlines()[1])
def test_block_is_read(block: str, tmp_path: Path) -> None:
    part = tomllib.loads(block)
    for name in ("cart.toml", "heavy_cart.toml"):
        (tmp_path / name).write_text(completed(ROBOT, {}))
    target = tmp_path / "this.toml"
    if "name" in part:
        target.write_text(block)
        robot_file = "bodies" in part
    else:
        robot_file = bool({"bodies", "wheels", "drives"} & part.keys())
        target.write_text(completed(ROBOT if robot_file else TASK, part))
    if robot_file:
        robot = load(target)
        assert {b["name"] for b in part.get("bodies", [])} <= {b.name for b in robot.bodies}
    else:
        task = load_task(target)
        assert {o["name"] for o in part.get("outputs", [])} <= {o.name for o in task.outputs}
        task.reference(0.1)


def table_after(heading: str) -> list[str]:
    """Give the first cells of the tables of a section."""
    section = re.split(r"^#+ ", PAGE[PAGE.index(f"### {heading}\n") + 4 :], flags=re.MULTILINE)[0]
    lines = section.splitlines()
    below = [*lines[1:], ""]
    heads = {line for line, next_line in zip(lines, below, strict=True) if "| --- |" in next_line}
    rows = [line for line in lines if line.startswith("| `") and line not in heads]
    return [name for row in rows for name in re.findall(r"`([^`]+)`", row.split("|")[1])]


def test_every_joint_and_its_fields_are_listed() -> None:
    assert sorted([*table_after("Joints"), "Joint"]) == sorted(joints.__all__)
    rows = dict(re.findall(r"^\| `([A-Z][A-Za-z]+)` \|(.*?)\|", PAGE, re.MULTILINE))
    for name in table_after("Joints"):
        fields = re.findall(r"`(\w+)`", rows[name])
        assert fields == list(inspect.signature(getattr(joints, name)).parameters), name


@pytest.mark.parametrize(
    ("heading", "table"),
    [
        ("Bodies", _robot._BodyTable),
        ("Drives", _drives.DriveTable),
        ("Mimics", _drives.MimicTable),
        ("Steering", _wheels.SteeringTable),
        ("Sidecar", _urdf.UrdfSidecarTable),
        ("Start", _initial.InitialTable),
        ("Simulation", _task_tables.SimulationTable),
        ("Tolerances", _task_tables.TolerancesTable),
        ("Plant", _task_tables.PlantTable),
        ("Operating", _task_tables.OperatingTable),
        ("Proof", _proof.ProofTable),
        ("Imperfections", _imperfections.ImperfectionsTable),
    ],
)
def test_every_field_is_listed(heading: str, table: Any) -> None:
    assert sorted(table_after(heading)) == sorted(table.model_fields)


def test_every_kind_of_requirement_and_quantity_is_listed() -> None:
    assert sorted(table_after("Requirements")) == sorted(_requirements.FIELDS)
    rows = {row.split("`")[1]: row for row in PAGE.splitlines() if row.startswith("| `")}
    for kind, (needed, possible) in _requirements.FIELDS.items():
        for field in needed | possible:
            assert f"`{field}`" in rows[kind], (kind, field)
    cart = load_task(ROOT / "examples" / "free_floater.toml")
    kinds = nominal_values(cart.robot, None, None, None, {}, cart.reference_tables)
    listed = set(table_after("Uncertainty"))
    assert {kind.split(".")[0] for kind in kinds} | set(OF_ROBOT) <= listed | {"reference"}
    for field in _imperfections.SlipTable.model_fields:
        assert f"`{field}`" in PAGE


def test_every_option_of_the_servo_is_listed() -> None:
    own = {name for name in _servo.ServoTable.model_fields if name != "redundancy"}
    rule = set(_servo.RedundancyTable.model_fields)
    assert set(table_after("Servo")) == own | rule | {"[servo.redundancy]"}
    assert rule == set(inspect.signature(Redundancy).parameters)
    given = {"model", "outputs", "stiffness", "damping", "inertia", "singular_margin", "integral"}
    assert own | given | {"redundancy"} == set(inspect.signature(Servo).parameters)


def test_wheels_outputs_references_and_methods_are_listed() -> None:
    kinds = ["disk", "omni", "mecanum", "slider", "ball", "rubber_ball"]
    assert sorted(table_after("Wheels")) == sorted([*_wheels.WheelTable.model_fields, *kinds])
    groups = list(_reference.REFERENCE_KINDS)
    assert sorted(table_after("Outputs")) == sorted(
        [*_task_tables.OutputTable.model_fields, *groups]
    )
    gains = {"stiffness", "damping", "integral"}
    assert set(_task_tables.OutputTable.model_fields) - gains == set(
        inspect.signature(Output).parameters
    )
    every = {kind for kinds in _reference.REFERENCE_KINDS.values() for kind in kinds}
    assert set(table_after("References")) == every
    for kind, table in (*_reference._PATHS.items(), ("screw", _reference._Screw)):
        row = next(r for r in PAGE.splitlines() if r.startswith(f"| `{kind}` | "))
        for field in set(table.model_fields) - set(_reference._Path.model_fields):
            assert f"`{field}`" in row, (kind, field)
    for field in _reference._Path.model_fields:
        assert f"`{field}`" in PAGE
    for method in METHODS:
        assert f"`{method}`" in PAGE


def test_defaults_of_tolerances_are_those_of_the_code() -> None:
    for name in ("final_error", "deviation", "constraint", "margin", "momentum"):
        section = PAGE[PAGE.index("### Tolerances") :]
        row = next(r for r in section.splitlines() if r.startswith(f"| `{name}` |"))
        shown = re.findall(r"`([^`]+)`", row)[-1]
        assert float(shown) == getattr(Tolerances, name)
