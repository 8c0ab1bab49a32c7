"""Tables become objects whose constructors are the schema; faults have file, table and field."""

from __future__ import annotations

import doctest
import re
import tomllib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import pytest

from concur import tables
from concur.errors import ConcurError, DescriptionError
from concur.tables import (
    INTERNAL,
    Choice,
    InFiles,
    OneOrMore,
    Positive,
    Table,
    Vector3,
    build,
    check,
    model_of,
    of_kind,
    values,
    variant,
)


class Form(ABC):
    """A form."""

    _cures: ClassVar[Mapping[str, str]] = {"Cube": "Write a Square."}

    @abstractmethod
    def area(self) -> float:
        """Area, m^2."""


@dataclass(frozen=True)
class Disc(Form):
    """A disc.

    Parameters
    ----------
    radius : float
        Radius, m.
    """

    radius: Positive

    def area(self) -> float:
        return 3.0 * self.radius**2


@dataclass(frozen=True)
class Square(Form):
    """A square."""

    side: float = 1.0

    def area(self) -> float:
        return self.side**2


@dataclass(frozen=True)
class Part:
    """A part.

    It has more sentences.

    Parameters
    ----------
    name : str
        Name of the part.
    form : Form
        Its form.
    place : sequence of float
        Place in the frame
        of the whole, shape (3,), m.
    kind, other : str
        One or the other.
    """

    name: str
    form: Form
    place: Vector3 = (0.0, 0.0, 0.0)
    kind: Annotated[str, Choice(("a", "b"))] = "a"
    other: Literal["x", "y"] = "x"

    def __post_init__(self) -> None:
        if self.kind not in ("a", "b"):
            raise ConcurError("Part, `kind`", expected="a or b", came=self.kind, cure="Choose.")


@dataclass(frozen=True)
class Label:
    """A label, whose table has other fields than its constructor."""

    text: str
    _cures: ClassVar[Mapping[str, str]] = {"title": "Give it in words."}

    @classmethod
    def from_table(cls, words: Sequence[str]) -> Label:
        """Join words."""
        return cls(" ".join(words))


@dataclass(frozen=True)
class Whole:
    """A whole."""

    parts: Sequence[Part] = ()
    label: Label | None = None
    pair: tuple[Label, Label] | None = None
    marks: Annotated[Any, OneOrMore(Label)] = ()
    weights: Mapping[str, float] | None = None
    ready: bool = False
    found: Annotated[Sequence[str], INTERNAL] = ()


SOUND = """
ready = true
weights = { a = 1, b = 2.5 }
label = { words = ["left", "side"] }
marks = { words = ["one"] }
[[parts]]
name = "wheel"
form = { type = "Disc", radius = 2 }
place = [0, 1, 2]
other = "y"
[[parts]]
name = "plate"
form = { type = "Square" }
"""


def made(text: str) -> Whole:
    return build(Whole, tomllib.loads(text), "file.toml")


def test_tables_become_objects_and_defaults_are_those_of_the_constructors() -> None:
    assert made(SOUND) == Whole(
        parts=[Part("wheel", Disc(2), [0, 1, 2], other="y"), Part("plate", Square())],  # type: ignore[arg-type]
        label=Label("left side"),
        marks=[Label("one")],
        weights={"a": 1, "b": 2.5},
        ready=True,
    )
    assert made("") == Whole()
    both = made('pair = [{ words = ["a"] }, { words = ["b"] }]').pair
    assert both == (Label("a"), Label("b"))
    assert made('marks = [{ words = ["a"] }, { words = ["b"] }]').marks == [Label("a"), Label("b")]


WHEEL = '[[parts]] "wheel"'

# fault: (text to replace, its replacement, table, field, words of the message)
FAULTS = {
    "unknown": ("ready", "raedy", "", "raedy", "Did you mean `ready`?"),
    "internal": ("ready = true", 'found = ["a"]', "", "found", "unknown field"),
    "missing": ('name = "wheel"', "", "[[parts]] number 1", "name", "Add the field `name`"),
    "truth": ("ready = true", "ready = 1", "", "ready", "true or false"),
    "number of a table": ("b = 2.5", "b = true", "[weights]", "b", "a number within 1e9, got true"),
    "quoted": ("b = 2.5", 'b = "2.5"', "[weights]", "b", "without quotes"),
    "large": ("b = 2.5", "b = 1.1e9", "[weights]", "b", "within 1e9"),
    "infinite": ("b = 2.5", "b = inf", "[weights]", "b", "within 1e9"),
    "no number": ("b = 2.5", "b = nan", "[weights]", "b", "within 1e9"),
    "not above zero": ("radius = 2", "radius = 0", WHEEL, "form.radius", "above zero"),
    "few numbers": ("[0, 1, 2]", "[0, 1]", WHEEL, "place", "3 numbers, got a list of 2"),
    "text in a list": ("[0, 1, 2]", '[0, "1", 2]', WHEEL, "place[1]", "a number"),
    "no type": ('type = "Disc", ', "", WHEEL, "form.type", "one of Disc, Square, got no value"),
    "unknown type": ('"Disc"', '"Disk"', WHEEL, "form.type", "Did you mean `Disc`?"),
    "field of a type": ("radius = 2", "side = 2", WHEEL, "form.side", "`type`, `radius`"),
    "missing of a type": (", radius = 2", "", WHEEL, "form.radius", "Add the field `radius`"),
    "no table": ('{ type = "Disc", radius = 2 }', "3", WHEEL, "form", "a table like"),
    "literal": ('other = "y"', 'other = "z"', WHEEL, "other", 'one of "x", "y"'),
    "table for a list": ("[[parts]]\nname", "[parts]\nname", "", "parts", "tables [[parts]]"),
    "of the method": ('words = ["left"', 'text = ["left"', "[label]", "text", "`words`"),
    "with a cure": ('words = ["left"', 'title = ["left"', "[label]", "title", "Give it in words."),
    "type with a cure": ('"Disc"', '"Cube"', WHEEL, "form.type", "got `Cube`. Write a Square."),
    "in one of a list": ('marks = { words = ["one"]', "marks = { words = [1]", "", "", "text"),
    "constructor": ('other = "y"', 'kind = "c"', WHEEL, "kind", "Part, `kind`: expected a or b"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_has_file_table_and_field(name: str) -> None:
    old, new, table, field, words = FAULTS[name]
    text = SOUND.replace(old, new, 1)
    if name == "table for a list":
        text = text[: text.index("[[parts]]")]
    assert text != SOUND
    with pytest.raises(ConcurError) as caught:
        made(text)
    error = caught.value
    assert error.file == "file.toml"
    assert words in str(error)
    if name != "in one of a list":
        assert (error.table, error.field) == (table, field)
    assert isinstance(error, DescriptionError) or name == "constructor"


def test_no_more_than_500_tables() -> None:
    part = '[[parts]]\nname = "p"\nform = { type = "Square" }\n'
    assert len(made(part * 500).parts) == 500
    with pytest.raises(DescriptionError, match="at most 500"):
        made(part * 501)


def test_fields_have_the_words_of_the_docstring_and_the_default() -> None:
    schema = model_of(Part).model_json_schema()
    fields = schema["properties"]
    assert schema["description"] == "A part."
    assert fields["place"]["description"] == "Place in the frame of the whole, m."
    assert fields["place"]["default"] == [0.0, 0.0, 0.0]
    assert fields["kind"]["description"] == fields["other"]["description"] == "One or the other."
    assert schema["required"] == ["name", "form"]


class Scale:
    """A scale that needs a robot which no file has."""

    @classmethod
    def of(cls, robot: Annotated[int, INTERNAL], factor: float = 2.0) -> float:
        """Scale a robot."""
        return robot * factor


@dataclass(frozen=True)
class Scaled:
    """Something scaled."""

    scale: Annotated[Any, InFiles(Scale.of)] = None


def test_a_constructor_waits_for_what_files_do_not_have() -> None:
    waiting = build(Scaled, {"scale": {"factor": 3}}, "file.toml").scale
    assert waiting(7) == 21
    assert waiting.keywords == {"factor": 3}
    assert build(Scaled, {}, "file.toml").scale is None
    with pytest.raises(DescriptionError, match="unknown field `robot`"):
        build(Scaled, {"scale": {"robot": 3}}, "file.toml")


def test_the_field_kind_chooses_a_table() -> None:
    kinds = {
        "disc": variant(Disc, "DiscOfKind", Named),
        "place": variant(Part, "PlaceOfKind", Named, ("form", "kind", "other"), ("place",)),
    }
    whole = {"forms": [{"kind": "disc", "radius": 2}, {"kind": "place", "name": "a"}]}

    def checked(k: int) -> Table:
        table: Any = whole["forms"][k]
        at = ("forms", k)
        make = of_kind(kinds, table, "file.toml", whole, at, "a kind of form")
        return check(make, table, "file.toml", whole, at)

    assert values(checked(0)) == {"kind": "disc", "radius": 2}
    with pytest.raises(DescriptionError, match="3 numbers, got no value") as caught:
        checked(1)
    assert (caught.value.table, caught.value.field) == ('[[forms]] "a"', "place")
    for kind, words in (("disk", "Did you mean `disc`"), (None, "got no value"), (3, "got 3")):
        whole["forms"][0] = {"kind": kind, "radius": 2} if kind else {"radius": 2}
        with pytest.raises(DescriptionError, match=words) as caught:
            checked(0)
        assert (caught.value.table, caught.value.field) == ("[[forms]] number 1", "kind")


@dataclass(frozen=True)
class Named:
    """A table with a kind."""

    kind: str


# Types with valid values and with invalid ones, on both sides of each limit.
TYPES: list[tuple[Any, list[Any], list[Any]]] = [
    (tables.Number, [0, 1e9, -1e9], [1.1e9, -1.1e9, True, "1", float("inf"), [1]]),
    (tables.Positive, [1e-12, 1e9], [0, 9e-13, -1.0, 1.1e9]),
    (tables.NotNegative, [0, 1e9], [-1e-30, 1.1e9, float("nan")]),
    (tables.Time, [0.0], [-1e-30]),
    (tables.Truth, [True, False], [0, 1, "true"]),
    (tables.Text, ["a", "a" * 255], ["", "a" * 256, "a\n", 1]),
    (tables.FileName, ["a" * 1024], ["", "a" * 1025, "a\x00"]),
    (tables.Numbers, [[], [1, 2], [0.0] * 100_000], [1, [True], ["1"], [0.0] * 100_001]),
    (tables.Rows, [[], [[1], [2, 3]]], [[1], 1, [[1, "2"]]]),
    (tables.Vector3, [[1, 2, 3]], [[1, 2], [1, 2, 3, 4], [1, 2, "3"]]),
    (tables.Vector6, [[0] * 6], [[0] * 5, [0] * 7]),
    (tables.Quaternion, [[0, 0, 0, 1]], [[0, 0, 1]]),
    (tables.Matrix3, [[[1, 2, 3]] * 3], [[[1, 2, 3]] * 2, [[1, 2]] * 3]),
    (tables.ByName, [0, 1.5, {}, {"a": 0, "b": 2}], [-1e-30, {"a": 1, "b": -1}, "1", True, [1]]),
    (tables.NumberOrList, [1, 1e9, float("-inf"), [], [1, 2]], ["1", True, [1, "2"], [[2]], -2e9]),
    (tables.Pair, [[1, 2], [2, 1]], [[1], [1, 2, 3], [1, True], 3, "ab"]),
    (Annotated[str, tables.one_of(("a", "b"))], ["a", "b"], ["c", "", 1]),
    (Annotated[str, tables.one_of(("only",))], ["only"], ["on"]),
]


@pytest.mark.parametrize(("kind", "sound", "wrong"), TYPES, ids=range(len(TYPES)))
def test_types_have_their_limits(kind: Any, sound: list[Any], wrong: list[Any]) -> None:
    @dataclass(frozen=True)
    class Holder:
        """Holds a value."""

        value: kind

    Holder.__annotations__["value"] = kind
    for value in sound:
        assert build(Holder, {"value": value}, "f.toml").value == value
    for value in wrong:
        with pytest.raises(DescriptionError) as caught:
            build(Holder, {"value": value}, "f.toml")
        assert caught.value.field.startswith("value")


def test_the_table_in_the_manual_is_that_of_the_code() -> None:
    root = Path(__file__).parents[2]
    page = (root / "docs" / "architecture.md").read_text("utf-8")
    page = page.partition("### A new table in a file\n")[2].partition("\n### ")[0]
    code = "".join(
        (root / "hil" / name).read_text("utf-8") for name in ("settings.py", "rig/_load.py")
    )
    for block in re.findall(r"(?ms)^```python\n(.*?)^```", page):
        assert block in code
    test = doctest.DocTestParser().get_doctest(page, {}, "page", "page", 0)
    assert doctest.DocTestRunner().run(test) == (0, 3)


def test_schemas_of_pairs_have_two_numbers() -> None:
    assert tables.PAIR == {
        "type": "array",
        "items": {"type": "number"},
        "minItems": 2,
        "maxItems": 2,
    }
