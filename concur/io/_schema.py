"""JSON schemas of robot, sidecar, task and campaign files."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from concur.certify import operating_bounds
from concur.io._mount import ROBOT
from concur.io._nominal import QUANTITIES
from concur.io._proof import ProofTable
from concur.io._reference import REFERENCE_KINDS
from concur.io._requirements import REQUIREMENT_KINDS
from concur.io._sidecar import UrdfSidecar
from concur.io._task_tables import TaskTable, TrackedOutput
from concur.io._uncertainty import WAYS
from concur.tables import NUMBER, PAIR, Shape, any_of, json_schema, list_of, model_of, table_of

DISTRIBUTIONS = {
    "interval": "Lower and upper end of a uniform distribution.",
    "normal": "Mean and standard deviation of a normal distribution.",
    "triangular": "Lower end, mode and upper end of a triangular distribution.",
    "choice": "Values of equal probability.",
}
"""Fields of a distribution, in the unit of the quantity."""


def schemas() -> dict[str, Shape]:
    """Schemas of robot, sidecar, task and campaign files.

    Returns
    -------
    dict
        Schema by kind of file.
    """
    robot = json_schema(ROBOT, "Robot file of concur")
    task, campaign = _task(), _task()
    task["title"], campaign["title"] = "Task file of concur", "Campaign file of concur"
    campaign["required"] = [*campaign["required"], "uncertainty"]
    sidecar = json_schema(model_of(UrdfSidecar), "Sidecar of a URDF or MJCF file of concur")
    return {"robot": robot, "sidecar": sidecar, "task": task, "campaign": campaign}


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
    late: dict[str, Any] = {"operating": operating_bounds, "proof": ProofTable}
    others = (TrackedOutput, *map(model_of, late.values()), *kinds)
    task = json_schema(model_of(TaskTable), "", *others)
    parts, fields = task["definitions"], task["properties"]
    for table, names in kinds.items():
        parts[table.__name__]["properties"]["kind"] |= {"enum": names}
    fields["reference"] |= table_of(_any(kinds.keys() - REQUIREMENT_KINDS.values(), kinds))
    for name, make in late.items():
        whole = {"$ref": f"#/definitions/{make.__name__}"}
        fields[name] = {"allOf": [whole], "description": fields[name]["description"]}
    fields["outputs"]["items"] = {"$ref": "#/definitions/TrackedOutput"}
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
        for way, count in WAYS.items()
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
