"""Fields of files: every one has a description with its unit, and stands on the site."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tests.house.test_docs import ROOT, anchors

sys.path.insert(0, str(ROOT / "docs"))
import fields

KINDS = ("robot", "sidecar", "task", "campaign", "rig")
PAGES = {page: (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8") for page in fields.PAGES}
UNITS = r"\b(m|rad|deg|kg|s|N|W|Hz|1/s|m/s|rad/s|deg/s|bit/s|m/N)(\^[2k])?\b"
# Numbers without a unit, by what the description calls them.
PURE = re.compile(
    r"relative|ratio|weight|fraction|without unit|coefficient|number|counts|quaternion"
    r"|of any length|normal of|sign|seed|per mille|probability|distribution|in its unit"
    r"|in their units|category|priority",
    re.IGNORECASE,
)


def parts(kind: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Places of all fields of a kind of file, with their schemas."""

    def walk(part: Any, place: str) -> Iterator[tuple[str, dict[str, Any]]]:
        if isinstance(part, dict):
            for name, field in part.get("properties", {}).items():
                yield f"{place}.{name}", field
            for name, inner in part.items():
                yield from walk(inner, f"{place}.{name}")
        elif isinstance(part, list):
            for k, inner in enumerate(part):
                yield from walk(inner, f"{place}[{k}]")

    return walk(fields.schema(kind), kind)


def has_numbers(field: Any) -> bool:
    """Whether a value may be or contain a number."""
    if isinstance(field, list):
        return any(map(has_numbers, field))
    if not isinstance(field, dict) or "$ref" in field:
        return False
    inner = (field.get(key) for key in ("items", "additionalProperties", "anyOf", "allOf"))
    return field.get("type") in ("number", "integer") or any(map(has_numbers, inner))


@pytest.mark.parametrize("kind", KINDS)
def test_every_field_has_a_description(kind):
    bare = [place for place, text in fields.described(kind) if not text]
    assert not bare
    sentence = re.compile(r"[A-Z0-9`].*\.", re.DOTALL)
    odd = {place: text for place, text in fields.described(kind) if not sentence.fullmatch(text)}
    assert not odd


@pytest.mark.parametrize("kind", KINDS)
def test_numbers_have_a_unit(kind):
    bare = {
        place: field["description"]
        for place, field in parts(kind)
        if has_numbers(field)
        and not re.search(UNITS, field["description"])
        and not PURE.search(field["description"])
    }
    assert not bare


@pytest.mark.parametrize("kind", KINDS)
def test_optional_fields_have_a_default(kind):
    """A field of a table with required fields is required, or states its default."""

    def walk(part: Any, place: str) -> Iterator[str]:
        if isinstance(part, dict):
            for name, field in part.get("properties", {}).items():
                stated = "default" in field or " Default: " in field["description"]
                if name not in part.get("required", ()) and not stated:
                    yield f"{place}.{name}"
            for name, inner in part.items():
                yield from walk(inner, f"{place}.{name}")
        elif isinstance(part, list):
            for k, inner in enumerate(part):
                yield from walk(inner, f"{place}[{k}]")

    free = "uncertainty", "world", "Deviation"  # any of their fields may be given
    assert not [p for p in walk(fields.schema(kind), kind) if not any(f".{x}" in p for x in free)]


@pytest.mark.parametrize("kind", KINDS[:3] + KINDS[4:])
def test_every_field_stands_in_its_section(kind):
    made = fields._Page(kind)
    shown = 0
    for heading, part in made.sections:
        text = made._section(heading, part)
        assert text in PAGES[f"reference/{kind}_file"]
        rows = set(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE))
        for variant in fields._variants(made._found(part)):
            names = {
                name
                for name, field in variant.get("properties", {}).items()
                if not fields._is_name_of_kind(field)
            }
            shown += len(names)
            assert names <= rows, heading
    assert shown > 25
    listed = {place.rpartition("/")[2] for place in made.places}
    listed |= {c["$ref"].rpartition("/")[2] for c in _choices(made) if "$ref" in c}
    assert set(fields.schema(kind)["definitions"]) <= listed


def _choices(made: Any) -> list[dict[str, Any]]:
    """Choices between tables, such as the kinds of references."""
    return [c for _, p in made.sections for c in p.get("anyOf", ())]


@pytest.mark.parametrize("page", PAGES)
def test_links_to_tables_lead_to_headings(page):
    links = set(re.findall(r"\]\(#([^)]+)\)", PAGES[page]))
    assert links
    assert links <= anchors(ROOT / "docs" / f"{page}.md")


@pytest.mark.parametrize("page", PAGES)
def test_tables_in_the_repository_are_those_of_the_schemas(page):
    assert fields.filled(PAGES[page]) == PAGES[page], "run python docs/fields.py"


@pytest.mark.parametrize(
    ("field", "words"),
    [
        ({"type": "number", "minimum": 1e-12, "maximum": 1e9}, "positive number"),
        ({"type": "number", "minimum": -1e9, "maximum": 1e9}, "number"),
        ({"type": "number", "minimum": 0, "maximum": 1e9}, "number ≥ 0"),
        ({"type": "number", "minimum": 0, "maximum": 10}, "number from 0 to 10"),
        ({"type": "number", "minimum": 0, "exclusiveMaximum": 1}, "number from 0 to below 1"),
        ({"type": "number", "minimum": -1e6, "maximum": 1e6}, "number within 1e6"),
        (
            {"type": "integer", "exclusiveMinimum": 0, "maximum": 2**30},
            "whole number above 0, at most 2^30",
        ),
        ({"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2}, "pair"),
        ({"type": "array", "items": {"type": "string"}}, "list of strings"),
        (
            {"type": "object", "additionalProperties": {"type": "boolean"}},
            "table of `true` or `false`",
        ),
        ({"enum": ["a", "b", "c"]}, '`"a"`, `"b"` or `"c"`'),
        ({"anyOf": [{"type": "string"}, {"type": "number"}]}, "string or number"),
    ],
)
def test_values_are_in_words(field, words):
    assert fields._Page("robot")._value(field) == words
