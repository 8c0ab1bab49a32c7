"""Fields of files as pages: tables of every field, from the JSON schemas in the package.

A page names its kind of file in the comment ``<!-- fields of robot -->``; the tables follow it.
A description ends with the default where the schema has none: "Radius, m. Default: a plane."
`python docs/fields.py` writes the tables into the pages.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

Shape = dict[str, Any]

SCHEMAS = Path(__file__).parents[1] / "concur" / "io" / "schemas"
PAGES = tuple(f"reference/{kind}_file" for kind in ("robot", "sidecar", "task", "rig"))
_MARK = re.compile(r"^<!-- fields of (\w+) -->\n.*", re.MULTILINE | re.DOTALL)
_LARGEST, _SMALLEST = 1e9, 1e-12


@cache
def schema(kind: str) -> Shape:
    """The schema of a kind of file."""
    found: Shape = json.loads((SCHEMAS / f"{kind}.json").read_text(encoding="utf-8"))
    return found


class _Page:
    """Tables of one kind of file: each definition once, below the place that names it first."""

    def __init__(self, kind: str) -> None:
        self.whole = schema(kind)
        self.places: dict[str, str] = {}  # headings of definitions and of tables within fields
        self.sections: list[tuple[str, Shape]] = []
        self._add(self.whole, "Top level")

    def _found(self, part: Shape) -> Shape:
        """A part, its reference followed; choices with their references followed."""
        part = part.get("allOf", [part])[0] if "properties" not in part else part
        if "$ref" in part:
            part = self.whole["definitions"][part["$ref"].rsplit("/", 1)[1]]
        if "anyOf" in part:
            return {**part, "anyOf": [self._found(choice) for choice in part["anyOf"]]}
        return part

    def _visit(self, field: Shape, path: str) -> None:
        """List the tables that are values of a field."""
        head = f"`[{path}]`"
        if field.get("type") == "array":
            field, head = field["items"], f"`[[{path}]]`"
        for choice in field.get("anyOf", [field]):
            if choice.get("type") == "array" and "$ref" in choice["items"]:
                return self._visit(choice, path)
        if isinstance(field.get("additionalProperties"), dict):
            inner, free = field["additionalProperties"], f"`[{path}.<name>]`"
            if "$ref" in inner or "anyOf" in inner or "properties" in inner:
                self._add(inner, free)
        else:
            self._add(field, head)
        return None

    def _add(self, part: Shape, heading: str) -> None:
        key = _key(part)
        if key.endswith("Deviation"):  # the table of each kind of quantity has it
            heading = "`[uncertainty.<kind>]`"
        if key not in self.places and any(map(_is_table, _variants(self._found(part)))):
            self.places[key] = heading
            self.sections.append((heading, part))
            path = re.sub(r"[`\[\]]", "", heading) if "[" in heading else ""
            for variant in _variants(self._found(part)):
                for name, field in variant.get("properties", {}).items():
                    self._visit(field, f"{path}.{name}".lstrip("."))

    def text(self) -> str:
        """The page."""
        return "\n\n".join(self._section(*section) for section in self.sections) + "\n"

    def _section(self, heading: str, part: Shape) -> str:
        found = self._found(part)
        variants = [v for v in _variants(found) if _is_table(v)]
        lines = [f"## {heading}"]
        if part is not self.whole and (text := _meaning(found)[0]):
            lines += [text]
        if len(variants) == 1:
            return "\n\n".join([*lines, self._table(variants[0])])
        shared = {
            name: field
            for name, field in variants[0]["properties"].items()
            if all(v["properties"].get(name) == field for v in variants)
        }
        everything = [item for v in variants for item in v["properties"].items()]
        own = {name: field for name, field in everything if not _is_name_of_kind(field)}
        if all(own[name] == field for name, field in everything if name in own):
            rows = [self._variant_row(v) for v in variants]
            lines += ["\n".join(["| kind | meaning | fields |", "| --- | --- | --- |", *rows])]
            return "\n\n".join([*lines, self._table({"properties": own})])
        if shared:
            lines += ["Fields of all kinds:", self._table({"properties": shared})]
        for variant in variants:
            names = " or ".join(f"`{name}`" for name in _kinds(variant))
            fields = {
                name: field
                for name, field in variant["properties"].items()
                if name not in shared and not _is_name_of_kind(field)
            }
            first, comma, rest = _joined(variant["description"]).partition(",")
            lines += [f"### {names}: {first[0].lower()}{first[1:].rstrip('.')}"]
            lines += [f"{first}{comma}{rest}"] if comma else []
            lines += [self._table({**variant, "properties": fields})]
        return "\n\n".join(lines)

    def _variant_row(self, variant: Shape) -> str:
        needed = variant.get("required", [])
        fields = [
            f"`{name}`" + ("" if name in needed else " (optional)")
            for name, field in variant["properties"].items()
            if not _is_name_of_kind(field)
        ]
        kinds = ", ".join(f"`{name}`" for name in _kinds(variant))
        return f"| {kinds} | {_joined(variant['description'])} | {', '.join(fields)} |"

    def _table(self, part: Shape) -> str:
        examples = any(map(_example, part["properties"].values()))
        heads = ["field", "value", "meaning", "default", *["example"] * examples]
        rows = [heads, ["---"] * len(heads)]
        for name, field in part["properties"].items():
            meaning, default = _meaning(field)
            if not default and name in part.get("required", ()):
                default = "required"
            row = [f"`{name}`", self._value(field), meaning, default]
            if examples:
                row += [_example(field)]
            rows.append(row)
        return "\n".join("| " + " | ".join(row).replace("\n", " ") + " |" for row in rows)

    def _value(self, field: Shape, several: bool = False) -> str:
        """The valid values in words; `several` of them in a list or table."""
        plural = "s" if several else ""
        if heading := self.places.get(_key(field)):
            name = "deviation" if _key(field).endswith("Deviation") else "table"
            return f"[{name}{plural}](#{_anchor(heading)})"
        if "const" in field or "enum" in field:
            *most, last = (f"`{_toml(x)}`" for x in field.get("enum", [field.get("const")]))
            return f"{', '.join(most)} or {last}" if most else last
        if "anyOf" in field:
            return " or ".join(dict.fromkeys(self._value(x, several) for x in field["anyOf"]))
        kind = field["type"]
        if kind == "array":
            inner = self._value(field["items"], True)
            least, most = field.get("minItems", 0), field.get("maxItems")
            if least == most == 2 and inner == "numbers":
                return f"pair{plural}"
            if least == most:
                return f"{'lists of ' if several else ''}{least} {inner}"
            return inner if "](" in inner else f"list{plural} of {inner}"
        if kind == "object":
            inner = field.get("additionalProperties")
            name = f"table{plural}"
            return f"{name} of {self._value(inner, True)}" if isinstance(inner, dict) else name
        if kind in ("number", "integer"):
            return _number(field, ("number" if kind == "number" else "whole number") + plural)
        return {"string": f"string{plural}", "boolean": "`true` or `false`"}[kind]


def _variants(part: Shape) -> list[Shape]:
    choices = part.get("anyOf", [part])
    return [deep for c in choices for deep in (_variants(c) if "anyOf" in c else [c])]


def _is_table(part: Shape) -> bool:
    return "properties" in part


def _is_name_of_kind(field: Shape) -> bool:
    return "const" in field or (
        "enum" in field and field.get("description", "").startswith("Kind of the re")
    )


def _kinds(variant: Shape) -> list[str]:
    field = next(f for f in variant["properties"].values() if _is_name_of_kind(f))
    return list(field.get("enum", [field.get("const")]))


def _key(part: Shape) -> str:
    """Identity of a definition, or of a table that stands in a field."""
    part = part.get("allOf", [part])[0] if "properties" not in part else part
    return str(part.get("$ref") or json.dumps(part, sort_keys=True))


def _example(field: Shape) -> str:
    return _joined(field.get("description", "")).partition(" Example: ")[2].removesuffix(".")


def _meaning(field: Shape) -> tuple[str, str]:
    """Meaning and default of a field."""
    text = _joined(field.get("description", "")).partition(" Example: ")[0]
    meaning, _, default = text.partition(" Default: ")
    if "default" in field and not default:
        return meaning, f"`{_toml(field['default'])}`"
    return meaning, default.removesuffix(".")


def _number(field: Shape, name: str) -> str:
    low, high = field.get("minimum"), field.get("maximum")
    if "exclusiveMaximum" in field:
        return f"{name} from {_short(low)} to below {_short(field['exclusiveMaximum'])}"
    if "exclusiveMinimum" in field:
        return f"{name} above {_short(field['exclusiveMinimum'])}, at most {_short(high)}"
    if low == _SMALLEST and high == _LARGEST:
        return f"positive {name}"
    if (low, high) in ((None, None), (-_LARGEST, _LARGEST)):
        return name
    if low == 0 and high in (None, _LARGEST):
        return f"{name} ≥ 0"
    if low == -high:
        return f"{name} within {_short(high)}"
    return f"{name} from {_short(low)} to {_short(high)}"


def _short(value: float) -> str:
    if value > 1e8 and math.log2(value + value % 2) % 1 == 0:
        return f"2^{math.log2(value + value % 2):g}" + (" - 1" if value % 2 else "")
    return re.sub(r"e([-+])0*", lambda m: "e" + m[1].strip("+"), f"{value:g}")


def _toml(value: Any) -> str:
    """A value as TOML writes it."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{k} = {_toml(v)}" for k, v in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value)


def _joined(text: str) -> str:
    return " ".join(text.split()).replace("|", r"\|")


def _anchor(heading: str) -> str:
    return re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-")


def described(kind: str) -> Iterator[tuple[str, str]]:
    """Places of all fields of a kind of file, with their descriptions."""

    def walk(part: Any, place: str) -> Iterator[tuple[str, str]]:
        if isinstance(part, dict):
            for name, field in part.get("properties", {}).items():
                yield f"{place}.{name}", field.get("description", "")
            for name, inner in part.items():
                yield from walk(inner, f"{place}.{name}")
        elif isinstance(part, list):
            for k, inner in enumerate(part):
                yield from walk(inner, f"{place}[{k}]")

    return walk(schema(kind), kind)


def filled(page: str) -> str:
    """The page with its tables behind the mark."""
    return _MARK.sub(lambda m: f"<!-- fields of {m[1]} -->\n\n{_Page(m[1]).text()}", page)


if __name__ == "__main__":
    for page in PAGES:
        file = Path(__file__).parent / f"{page}.md"
        file.write_text(filled(file.read_text(encoding="utf-8")), encoding="utf-8")
