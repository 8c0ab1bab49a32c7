"""Pictures and tables of layers show what `pyproject.toml` says; files and names exist."""

from __future__ import annotations

import importlib.util
import itertools
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def contracts():
    spec = importlib.util.spec_from_file_location("contracts", ROOT / "docs" / "contracts.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_picture_has_a_row_per_layer(contracts):
    text = """
[[tool.importlinter.contracts]]
id = "a b"
type = "layers"
containers = ["x.y"]
layers = ["_top", "left | (_right)", "_low"]

[[tool.importlinter.contracts]]
id = "other"
type = "forbidden"
"""
    ((name, contract),) = contracts.contracts(text).items()
    assert (name, contracts.layers(contract)) == ("a b", [["_top"], ["left", "_right"], ["_low"]])
    rows = re.findall("<div>(.*)</div>", contracts.picture(contract))
    assert rows == [
        "<code>_top</code>",
        "<code>left</code><code>_right</code>",
        "<code>_low</code>",
    ]


def test_each_contract_has_its_picture(contracts, tmp_path):
    contracts.write(tmp_path)
    found = contracts.contracts()
    assert set(found) == {"layers", "hil"}
    for name, contract in found.items():
        file = tmp_path / f"{name}.html"
        assert file.read_text(encoding="utf-8") == contracts.picture(contract)
        assert f"```{{include}} _build/contracts/{name}.html" in PAGE


def test_each_public_module_has_its_layer(contracts):
    for contract in contracts.contracts().values():
        (package,) = contract["containers"]
        files = [path for path in (ROOT / package).glob("[a-z]*") if path.suffix in ("", ".py")]
        modules = {file.stem for file in files}
        assert modules == {m for row in contracts.layers(contract) for m in row if m[0] != "_"}


def faults(contracts, name: str, page: str) -> str | None:
    """The first difference of a table of layers from its contract."""
    part = page.split(f"_build/contracts/{name}.html")[1]
    table = re.search(r"^\| layer \|.*?(?=^\n)", part, re.DOTALL | re.MULTILINE)[0]
    rows = [re.findall(r"`(\w+)/?`", row.split("|")[1]) for row in table.splitlines()[2:]]
    levels = {
        module: level
        for level, row in enumerate(contracts.layers(contracts.contracts()[name]))
        for module in row
        if not module.startswith("_")
    }
    listed = [module for row in rows for module in row]
    if set(listed) != set(levels):
        return f"modules {sorted(set(listed) ^ set(levels))}"
    pairs = itertools.pairwise(listed)
    return next((f"order at {a}" for a, b in pairs if levels[a] > levels[b]), None)


@pytest.mark.parametrize("name", ["layers", "hil"])
def test_tables_follow_the_contracts(contracts, name):
    assert faults(contracts, name, PAGE) is None


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("| `control` | errors", "| `steering` | outputs", "modules ['control', 'steering']"),
        ("| `cli` | the", "| `errors` | the", "modules ['cli']"),
        ("| `files` | reading", "| `files`, `codegen` | reading", "order at files"),
    ],
)
def test_differences_are_found(contracts, old, new, expected):
    assert old in PAGE
    changed = PAGE.replace(old, new)
    assert faults(contracts, "layers", changed) == expected


def section(title: str) -> str:
    return re.search(rf"^### {title}\n(.*?)(?=^##)", PAGE, re.DOTALL | re.MULTILINE)[1]


def sources(*folders: str) -> dict[str, str]:
    files = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    return {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in files}


@pytest.mark.parametrize("page", ["docs/architecture.md", "CONTRIBUTING.md", "docs/howto/joint.md"])
def test_files_on_pages_of_maintainers_exist(page):
    names = re.findall(r"`([\w/.]+)`", (ROOT / page).read_text(encoding="utf-8"))
    known = {path.rpartition("/")[2] for path in sources("concur", "hil", "tests")}
    paths = [name for name in names if re.match("(concur|hil|tests|docs)/", name)]
    modules = [name for name in names if re.fullmatch(r"\w+\.py", name)]
    assert paths
    assert not [name for name in paths if not (ROOT / name).exists()]
    assert not set(modules) - known


def test_names_of_parts_exist():
    names = re.findall(r"`([A-Za-z_.]+)`", section("Where to add") + section("Path of a torque"))
    code = "\n".join(sources("concur", "hil").values())
    words = set(re.findall(r"\w+", code)) | {"pyproject", "toml", "py"}
    assert len(names) > 60
    assert not [name for name in names if not set(name.split(".")) <= words]


def test_path_of_a_torque_names_functions_and_their_files():
    rows = re.findall(
        r"^\| [^|`]+ \| ([^|]*`[^|]+) \| `([^|]+)` \|$", section("Path of a torque"), re.M
    )
    texts = sources("concur")
    assert len(rows) > 10
    for functions, file in rows:
        names = re.findall(r"`(?:\w+\.)?(\w+)`", re.sub(r"`\w+\.py`", "", functions))
        here = [n for n in names if re.search(rf"^ *(def|class) {n}\b", texts[file], re.M)]
        assert here, (functions, file)
