"""JSON schemas of files: they are those of the tables, and agree with the readers.

`python -m tests.io.test_schemas` writes the files of the package.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from typer.testing import CliRunner

from concur.cli import main
from concur.io import shipped_names
from concur.io._schema import schemas
from concur.tables import json_schema, model_of
from hil.rig._load import RigFile
from tests.io import test_files_page, test_robot, test_task

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "concur" / "io" / "schemas"
EXAMPLES = sorted((ROOT / "examples").rglob("*.toml"))
KINDS = ("robot", "sidecar", "task", "campaign", "rig")


def made() -> dict[str, Any]:
    return {**schemas(), "rig": json_schema(model_of(RigFile), "Rig file of concur-rig")}


def as_text(schema: dict[str, Any]) -> str:
    return json.dumps(schema, indent=1) + "\n"


MADE = made()


def accepts(kind: str, text: str) -> bool:
    return jsonschema.Draft7Validator(MADE[kind]).is_valid(tomllib.loads(text))


def complaint(kind: str, text: str) -> str:
    error = jsonschema.exceptions.best_match(
        jsonschema.Draft7Validator(MADE[kind]).iter_errors(tomllib.loads(text))
    )
    return "" if error is None else f"{list(error.absolute_path)}: {error.message[:300]}"


@pytest.mark.parametrize("kind", KINDS)
def test_command_prints_the_schema_of_the_tables(kind: str) -> None:
    shown = CliRunner().invoke(main, ["schema", kind])
    assert shown.exit_code == 0
    assert shown.stdout == as_text(MADE[kind]), "run python -m tests.io.test_schemas"
    jsonschema.Draft7Validator.check_schema(MADE[kind])


def test_other_kinds_are_refused() -> None:
    shown = CliRunner().invoke(main, ["schema", "tasks"])
    assert shown.exit_code == 2
    assert "campaign" in shown.stderr


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_example_names_its_schema_and_obeys_it(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    directive, file = text.split("\n", 1)[0].split(" ")
    assert directive == "#:schema"
    schema = (path.parent / file).resolve()
    assert schema.parent == FOLDER
    assert not complaint(schema.stem, text)
    if "[uncertainty" in text:
        assert schema.stem == "campaign"


@pytest.mark.parametrize("name", shipped_names())
def test_shipped_robots_obey_their_schema(name: str) -> None:
    text = (ROOT / "concur" / "robots" / f"{name}.toml").read_text(encoding="utf-8")
    assert not complaint("robot", text)


@pytest.mark.parametrize("path", sorted((ROOT / "concur/io/templates").rglob("*.toml")))
def test_templates_obey_their_schema(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    if "{{" not in text and "{%" not in text:
        assert not complaint("task" if "outputs" in tomllib.loads(text) else "robot", text)


@pytest.mark.parametrize("block", test_files_page.BLOCKS, ids=lambda block: block.splitlines()[1])
def test_files_of_the_manual_obey_their_schema(block: str) -> None:
    part = tomllib.loads(block)
    robot = bool({"bodies", "wheels", "motors", "springs"} & part.keys())
    whole = test_files_page.ROBOT if robot else test_files_page.TASK
    text = block if "name" in part else test_files_page.completed(whole, part)
    assert not complaint("robot" if robot else "task", text)


# --- refused files -----------------------------------------------------------------------------

# Rules that only the reader checks, as docs/files.md says; by the names of the tests' files.
RULES = {
    "names that occur once, and names of parts that exist": {
        *("robot unknown", "stages body", "stages in table", "reference missing"),
        *("relative unknown", "relative itself", "start body", "start velocity"),
        *("parent unknown", "parent cycle", "two bases", "name twice", "wheel body unknown"),
        *("actuated unknown", "actuated twice", "actuated base"),
    },
    "sizes and kinds that fit another table": {
        *(
            "moving in a plane",
            "ragged",
            "reference size",
            "relative circle",
            "components alone",
            "start count",
        ),
        *("limits reversed", "limits too many", "limits too few", "limits of a ball"),
        *("limits none", "limits of one", "limits of three", "moments and tensor"),
    },
    "signs of gains, times and physical values": {
        *("duration in steps", "control period in steps"),
        *("control period below a step", "settling after the end", "mass nan", "limits nan"),
        "triangle inequality",
    },
}


def refused() -> Iterator[tuple[str, str, str]]:
    """Kind, name and text of each file that the tests of the readers refuse."""
    for faults in (test_task.FAULTS, test_task.REFUSALS):
        for name, (old, new, *_) in faults.items():
            yield "task", name, test_task.altered(old, new)
    for faults in (test_robot.FAULTS, test_robot.REFUSALS):
        for name, (old, new, *_) in faults.items():
            yield "robot", name, test_robot.altered(old, new)
    for name, (joint, more, *_) in test_robot.JOINT_FAULTS.items():
        yield "robot", name, test_robot.crane(joint, more)


REFUSED = list(refused())


@pytest.mark.parametrize(("kind", "name", "text"), REFUSED, ids=[f"{k} {n}" for k, n, _ in REFUSED])
def test_refused_file_is_refused_by_the_schema_or_a_rule(kind: str, name: str, text: str) -> None:
    rule = any(name in names for names in RULES.values())
    assert accepts(kind, text) == rule


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("[bus]", "[buss]"),
        ("torque_rate_limit = ", "torque_limit = "),
        ('drive = "cia402"', "drive = 402"),
        ("node = 1\n", "node = 2048\n"),
        ("rate = ", "period = "),
    ],
)
def test_refused_rig_file_is_refused_by_the_schema(old: str, new: str) -> None:
    text = (ROOT / "examples" / "rover_rig" / "rig.toml").read_text(encoding="utf-8")
    assert accepts("rig", text)
    assert old in text
    assert not accepts("rig", text.replace(old, new, 1))


def test_rules_are_on_the_page_and_name_files() -> None:
    names = {name for _, name, _ in REFUSED}
    for rule, files in RULES.items():
        assert rule in test_files_page.PAGE
        assert files <= names, files - names


def test_every_field_has_a_shape() -> None:
    def bare(part: Any, place: str) -> Iterator[str]:
        if isinstance(part, dict):
            for name, field in part.get("properties", {}).items():
                if not {"type", "enum", "const", "anyOf", "$ref", "allOf"} & set(field):
                    yield f"{place}.{name}"
            for name, inner in part.items():
                yield from bare(inner, f"{place}.{name}")
        elif isinstance(part, list):
            for k, inner in enumerate(part):
                yield from bare(inner, f"{place}[{k}]")

    for kind, schema in MADE.items():
        assert not list(bare(schema, kind))


def test_every_number_has_bounds() -> None:
    def free(part: Any, place: str) -> Iterator[str]:
        if isinstance(part, dict):
            for name, field in part.get("properties", {}).items():
                ends = re.findall(r"minimum|maximum|Minimum|Maximum", " ".join(field))
                if field.get("type") in ("number", "integer") and len(ends) < 2:
                    yield f"{place}.{name}"
            for name, inner in part.items():
                yield from free(inner, f"{place}.{name}")

    found = {place for kind, schema in MADE.items() for place in free(schema, kind)}
    assert all(".world." in place for place in found), found  # keys of random numbers


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for kind, schema in MADE.items():
        (FOLDER / f"{kind}.json").write_text(as_text(schema), encoding="utf-8")
