"""JSON schemas of files, from the tables that read them: editors complete and check with them."""

from __future__ import annotations

from typing import Any

from pydantic.json_schema import GenerateJsonSchema, models_json_schema

from concur.tables._table import Table
from concur.tables._types import Shape, any_of

DIALECT = "http://json-schema.org/draft-07/schema#"
"""Dialect of JSON schema that the usual editors of TOML read."""


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


def _name(place: Shape) -> str:
    return str(place["$ref"]).rsplit("/", 1)[1]
