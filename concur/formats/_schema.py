"""JSON schemas of files, from the tables that read them: editors complete and check with them."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from pydantic.json_schema import GenerateJsonSchema, models_json_schema

from concur.formats._nominal import QUANTITIES
from concur.formats._reference import REFERENCE_KINDS
from concur.formats._requirements import REQUIREMENT_KINDS
from concur.formats._sidecar import UrdfSidecar
from concur.formats._task_tables import TaskTable
from concur.formats._uncertainty import WAYS
from concur.robot import Mechanism
from concur.tables import NUMBER, PAIR, Shape, Table, any_of, list_of, model_of, table_of

DIALECT = "http://json-schema.org/draft-07/schema#"
"""Dialect of JSON schema that the usual editors of TOML read."""

DISTRIBUTIONS = {
    "interval": "Lower and upper end of a uniform distribution.",
    "normal": "Mean and standard deviation of a normal distribution.",
    "triangular": "Lower end, mode and upper end of a triangular distribution.",
    "choice": "Values of equal probability.",
}
"""Fields of a distribution, in the unit of the quantity."""


class _Writer(GenerateJsonSchema):
    """Writes no titles, and no null: TOML has none."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def nullable_schema(self, schema: Any) -> Shape:
        return self.generate_inner(schema["schema"])

    def tagged_union_schema(self, schema: Any) -> Shape:
        return any_of(*(self.generate_inner(kind) for kind in schema["choices"].values()))

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
    _wrap_references(parts)
    whole = parts.pop(_name(places[table, "validation"]))
    return {"$schema": DIALECT, "title": title, **whole, "definitions": dict(sorted(parts.items()))}


def _wrap_references(part: Any) -> None:
    """Put references beside which there are other entries into an `allOf`, as draft 7 wants."""
    if isinstance(part, dict):
        if "$ref" in part and len(part) > 1:
            part["allOf"] = [{"$ref": part.pop("$ref")}]
        for inner in part.values():
            _wrap_references(inner)
    elif isinstance(part, list):
        for inner in part:
            _wrap_references(inner)


def schemas() -> dict[str, Shape]:
    """Schemas of robot, sidecar, task and campaign files.

    Returns
    -------
    dict
        Schema by kind of file.
    """
    robot = json_schema(model_of(Mechanism), "Robot file of concur")
    task, campaign = _task(), _task()
    task["title"], campaign["title"] = "Task file of concur", "Campaign file of concur"
    campaign["required"] = [*campaign["required"], "uncertainty"]
    sidecar = json_schema(model_of(UrdfSidecar), "Sidecar of a URDF or MJCF file of concur")
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


def _task() -> Shape:
    kinds: dict[type[Any], list[str]] = {}
    for tables in (*REFERENCE_KINDS.values(), REQUIREMENT_KINDS):
        for kind, table in tables.items():
            known = kinds.setdefault(table, [])
            known += [kind] * (kind not in known)
    task = json_schema(model_of(TaskTable), "", *kinds)
    parts, fields = task["definitions"], task["properties"]
    for table, names in kinds.items():
        parts[table.__name__]["properties"]["kind"] |= {"enum": names}
    fields["reference"] |= table_of(_any(kinds.keys() - REQUIREMENT_KINDS.values(), kinds))
    fields["requirements"]["items"] = _any(REQUIREMENT_KINDS.values(), kinds)
    parts["Deviation"] = _deviation()
    fields["uncertainty"] |= _quantities({"$ref": "#/definitions/Deviation"})
    world = _quantities(any_of(NUMBER, list_of(NUMBER)))
    counter = {"type": "integer", "minimum": 0}
    world["properties"] |= {
        "number": {**counter, "description": "Number of the world. Default: `0`."},
        "seed": {**counter, "description": "Seed of its random numbers. Default: `0`."},
    }
    fields["world"] |= world
    return task


def _any(chosen: Collection[type[Any]], order: Iterable[type[Any]]) -> Shape:
    """One of some tables, in their order."""
    names = [table.__name__ for table in order if table in chosen]
    return any_of(*({"$ref": f"#/definitions/{name}"} for name in names))


def _deviation() -> Shape:
    """An interval or a table with one distribution, or one of them for each component."""
    relative = any_of(PAIR, {"type": "boolean"})
    relative["description"] = (
        "Lower and upper end of a uniform distribution, relative to the nominal value; or, with "
        "another field, whether its numbers are relative. Default: `false`."
    )
    ways = {
        way: {**list_of(NUMBER, count or 1, count), "description": DISTRIBUTIONS[way]}
        for way, (count, _) in WAYS.items()
    }
    table = _closed({"relative": relative, **ways}, [])
    one = any_of(PAIR, {**table, "minProperties": 1, "maxProperties": 2})
    return {
        "description": "Deviation from the nominal value: an interval [low, high] of a uniform "
        "distribution, a table, or a list of them for each component; 0 for a certain one.",
        **any_of(one, list_of(any_of(one, {"enum": [0]}), 1)),
    }


def _quantities(value: Shape) -> Shape:
    """A table of values for each kind of quantity; those of references by output."""
    every = {kind: {**table_of(value), "description": text} for kind, text in QUANTITIES.items()}
    every["reference"] |= table_of(table_of(value))
    return {"type": "object", "properties": every, "additionalProperties": False}
