"""JSON schemas of files, from the tables that read them: editors complete and check with them."""

from __future__ import annotations

import inspect
from typing import Any

from pydantic.json_schema import GenerateJsonSchema, models_json_schema

from concur.formats._nominal import OF_ROBOT
from concur.formats._reference import REFERENCE_KINDS
from concur.formats._requirements import FIELDS, RequirementTable
from concur.formats._robot import _RobotTable
from concur.formats._task_tables import TaskTable
from concur.formats._uncertainty import WAYS
from concur.formats._urdf_sidecar import UrdfSidecarTable
from concur.formats.tables import NUMBER, PAIR, Shape, Table, any_of, list_of, table_of
from concur.mechanism import joints
from concur.simulation import KINDS

DIALECT = "http://json-schema.org/draft-07/schema#"
"""Dialect of JSON schema that the usual editors of TOML read."""

NUMBERS = any_of(NUMBER, list_of(any_of(NUMBER, list_of(NUMBER))))


class _Writer(GenerateJsonSchema):
    """Writes no titles, and no null: TOML has none."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def nullable_schema(self, schema: Any) -> Shape:
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: Any) -> Shape:
        found = super().default_schema(schema)
        if found["default"] is None or isinstance(found["default"], dict):
            del found["default"]
        return found


def json_schema(table: type[Table], title: str, *others: type[Table]) -> Shape:
    """Schema of a file in the dialect `DIALECT`.

    Parameters
    ----------
    table : type
        Table of the whole file.
    title : str
        Title of the schema.
    *others : type
        Further tables for the definitions.

    Returns
    -------
    dict
        The schema.
    """
    places, document = models_json_schema(
        [(each, "validation") for each in (table, *others)],
        ref_template="#/definitions/{model}",
        schema_generator=_Writer,
    )
    parts = document["$defs"]
    for part in parts.values():
        part.pop("title", None)
    whole = parts.pop(_name(places[table, "validation"]))
    return {"$schema": DIALECT, "title": title, **whole, "definitions": dict(sorted(parts.items()))}


def schemas() -> dict[str, Shape]:
    """Schemas of robot, sidecar, task and campaign files.

    Returns
    -------
    dict
        Schema by kind of file.
    """
    robot = json_schema(_RobotTable, "Robot file of concur")
    robot["definitions"]["_BodyTable"]["properties"]["joint"] |= _joints()
    task, campaign = _task(), _task()
    task["title"], campaign["title"] = "Task file of concur", "Campaign file of concur"
    campaign["required"] = [*campaign["required"], "uncertainty"]
    sidecar = json_schema(UrdfSidecarTable, "Sidecar of a URDF or MJCF file of concur")
    return {"robot": robot, "sidecar": sidecar, "task": task, "campaign": campaign}


def _name(place: Shape) -> str:
    return str(place["$ref"]).rsplit("/", 1)[1]


def _closed(properties: Shape, required: list[str]) -> Shape:
    """Shape of a table with these fields only."""
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def _joints() -> Shape:
    """Each joint with the arguments of its class."""
    found = []
    for name in joints.__all__:
        if name == "Joint":
            continue
        fields = inspect.signature(getattr(joints, name)).parameters
        needed = [key for key, field in fields.items() if field.default is field.empty]
        values = dict.fromkeys(fields, NUMBERS)
        found.append(_closed({"type": {"const": name}, **values}, ["type", *needed]))
    return {"type": "object", "anyOf": found}


def _task() -> Shape:
    kinds: dict[type[Any], list[str]] = {}
    for tables in REFERENCE_KINDS.values():
        for kind, table in tables.items():
            known = kinds.setdefault(table, [])
            known += [kind] * (kind not in known)
    task = json_schema(TaskTable, "", *kinds)
    parts, fields = task["definitions"], task["properties"]
    for table, names in kinds.items():
        parts[table.__name__]["properties"]["kind"] = {"enum": names}
    choices = [{"$ref": f"#/definitions/{table.__name__}"} for table in kinds]
    fields["reference"] |= table_of(any_of(*choices))
    requirement = parts[RequirementTable.__name__]
    parts[RequirementTable.__name__] = {
        "description": requirement["description"],
        **any_of(*_requirements(requirement["properties"])),
    }
    parts["Deviation"] = _deviation()
    fields["uncertainty"] |= _quantities({"$ref": "#/definitions/Deviation"})
    world = _quantities(any_of(NUMBER, list_of(NUMBER)))
    counter = {"type": "integer", "minimum": 0}
    world["properties"] |= {"number": counter, "seed": counter}
    fields["world"] |= world
    return task


def _requirements(properties: Shape) -> list[Shape]:
    """Each kind of requirement with its fields."""
    found = []
    for kind, (needed, possible) in FIELDS.items():
        fields = ["name", *sorted(needed | possible)]
        own = {"kind": {"const": kind}, **{name: properties[name] for name in fields}}
        found.append(_closed(own, ["kind", *sorted(needed)]))
    return found


def _deviation() -> Shape:
    """An interval or a table with one distribution, or one of them for each component."""
    relative = any_of(PAIR, {"type": "boolean"})
    ways = {way: list_of(NUMBER, count or 1, count) for way, (count, _) in WAYS.items()}
    table = _closed({"relative": relative, **ways}, [])
    one = any_of(PAIR, {**table, "minProperties": 1, "maxProperties": 2})
    return any_of(one, list_of(any_of(one, {"enum": [0]}), 1))


def _quantities(value: Shape) -> Shape:
    """A table of values for each kind of quantity; those of references by output."""
    kinds = (*OF_ROBOT, *KINDS, "initial_q", "initial_s", "momentum")
    every = {kind: table_of(value) for kind in dict.fromkeys(kinds)}
    every["reference"] = table_of(table_of(value))
    return {"type": "object", "properties": every, "additionalProperties": False}
