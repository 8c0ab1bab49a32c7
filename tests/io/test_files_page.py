"""The page on files: each of its TOML blocks is read unchanged."""

from __future__ import annotations

import json
import math
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from concur.io import (
    _reference,
    load,
    load_task,
)
from concur.io._nominal import OF_ROBOT, QUANTITIES, nominal_values
from concur.robot import _wheel, joints
from concur.simulation import KINDS, METHODS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "files.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```toml\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
ROBOT = tomllib.loads(next(b for b in BLOCKS if b.startswith('name = "cart"')))
ARM = """
name = "arm"
[[bodies]]
name = "foot"
joint = { type = "Fixed" }
[[bodies]]
name = "link"
parent = "foot"
joint = { type = "Revolute", axis = [0, 1, 0] }
inertia = { mass = 2.0, box = [0.1, 0.1, 0.5] }
"""
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
        if key in ("bodies", "wheels", "motors", "mimics", "steering", "outputs"):
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
    (tmp_path / "arm.toml").write_text(ARM)
    target = tmp_path / "this.toml"
    if "name" in part:
        target.write_text(block)
        robot_file = "bodies" in part
    else:
        robot_file = bool({"bodies", "wheels", "motors", "springs"} & part.keys())
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


def test_every_joint_is_listed() -> None:
    assert sorted([*table_after("Joints"), "Joint"]) == sorted(joints.__all__)


def test_every_kind_of_quantity_has_a_meaning() -> None:
    floater = load_task(ROOT / "examples" / "free_floater.toml")
    kinds = nominal_values(floater.robot, None, None, None, {}, floater.reference_tables)
    described = set(QUANTITIES)
    assert {kind.split(".")[0] for kind in kinds} | {*OF_ROBOT, *KINDS, "timing"} <= described


def test_wheels_outputs_references_and_methods_are_listed() -> None:
    assert sorted(table_after("Wheels")) == sorted(_wheel.KINDS)
    assert sorted(table_after("Outputs")) == sorted(_reference.REFERENCE_KINDS)
    every = {kind for kinds in _reference.REFERENCE_KINDS.values() for kind in kinds}
    assert set(table_after("References")) == every
    for method in METHODS:
        assert f"`{method}`" in PAGE


@pytest.mark.parametrize("text", re.findall(r"^\| field \|.*$", PAGE, re.MULTILINE))
def test_only_answers_have_a_table_of_fields(text: str) -> None:
    assert text == "| field | content |"
