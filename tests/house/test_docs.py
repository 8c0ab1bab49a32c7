"""Documentation and code say the same: docstrings, list of public names, README."""

import ast
import dataclasses
import enum
import functools
import importlib
import inspect
import os
import pkgutil
import re
import subprocess
import sysconfig
from pathlib import Path

import pydantic
import pytest
from numpydoc.docscrape import get_doc_object
from numpydoc.validate import Validator, validate

import concur
import hil

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
SESSIONS = [
    "README.md",
    *(
        f"docs/howto/{name}.md"
        for name in (
            *("outputs", "gains", "audit", "singular", "on_reference", "momentum"),
            *("saturation", "joint_limits", "law", "joint", "output", "plan"),
        )
    ),
    "docs/floating.md",
    "docs/turning.md",
    "docs/lagrangian.md",
    "docs/laws.md",
    "docs/certificates.md",
    *sorted(f"docs/theory/{path.name}" for path in ROOT.glob("docs/theory/[!i]*.md")),
]
FILES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
PAGES = [path.relative_to(ROOT).as_posix() for path in FILES]

CHECKS = {
    "GL06",  # unknown section
    "GL08",  # no docstring
    "SS01",  # no summary
    "SS03",  # summary without a full stop
    "PR01",  # parameters not documented
    "PR02",  # documented parameters that do not exist
    "PR03",  # wrong order
    "PR04",  # no type
    "PR07",  # no description
    "RT01",  # nothing said about what is returned
    "RT03",  # returned value without a description
}


SUBPACKAGES = (
    *(
        "certify",
        "checker",
        "codegen",
        "control",
        "formulations",
        "geometry",
        "io",
        "outputs",
        "planning",
    ),
    *("show", "proofs", "reduction", "robot", "simulation", "campaign", "worlds"),
)


def public_names(module):
    """Names of a module that its users may rely on."""
    if hasattr(module, "__all__"):
        return sorted(module.__all__)
    return sorted(
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
    )


def packages():
    """The roots and all that is public below them."""
    found = [concur, hil]
    for package in found:  # grows meanwhile
        for entry in pkgutil.iter_modules(getattr(package, "__path__", ()), f"{package.__name__}."):
            if not entry.name.rpartition(".")[2].startswith("_"):
                found.append(importlib.import_module(entry.name))
    return found


def is_own(value):
    """Whether a public name is a class or function of the package, not an alias of a type."""
    callable_kind = inspect.isclass(value) or inspect.isroutine(value)
    return callable_kind and value.__module__.partition(".")[0] in ("concur", "hil")


def public_objects():
    """Every public class, function and module once, as {dotted path: object}."""
    found, seen = {}, set()
    queue = packages()
    for module in queue:
        for name in public_names(module):
            value = getattr(module, name)
            if inspect.ismodule(value):
                if value not in queue:
                    queue.append(value)
            elif is_own(value) and id(value) not in seen:
                seen.add(id(value))
                found[f"{module.__name__}.{name}"] = value
    return dict(sorted(found.items()))


def documented_members(cls):
    """Public methods and properties that a class defines itself."""
    for name, value in vars(cls).items():
        if isinstance(value, (classmethod, staticmethod)):
            value = value.__func__
        if not name.startswith("_") and (inspect.isfunction(value) or isinstance(value, property)):
            inherited = value.__doc__ is None and inspect.getdoc(getattr(cls, name))
            if not inherited:
                yield name, value


def has_own_signature(cls):
    """Whether a class states its own parameters: not an enum, a protocol or a mere subclass."""
    return (
        not issubclass(cls, enum.Enum)
        and not getattr(cls, "_is_protocol", False)
        and ("__init__" in vars(cls) or "__new__" in vars(cls) or dataclasses.is_dataclass(cls))
    )


# Modules whose names docs/api.md does not list: a sentence may replace the sections of a function.
INTERNAL = re.compile(r"concur\.(robot|show.viewer)\._")


def complaints(path, value):
    codes = set(CHECKS)
    if inspect.isfunction(value) and INTERNAL.match(value.__module__):
        doc = get_doc_object(value)
        sections = {"PR01": "Parameters", "RT01": "Returns"}
        codes -= {code for code, section in sections.items() if not doc[section]}
    if inspect.isclass(value) and not has_own_signature(value):
        codes -= {"PR01"}
    if inspect.isfunction(value) and not set(inspect.signature(value).parameters) - {"self", "cls"}:
        codes -= {"RT01"}  # one sentence says what a call without arguments returns
    errors = validate(get_doc_object(value))["errors"]
    return [f"{path}: {code} {text}" for code, text in errors if code in codes]


OBJECTS = public_objects()


def test_docstrings_fit_the_signatures(monkeypatch):
    # No comment here switches a check off; finding the line of each object takes half of the time.
    monkeypatch.setattr(Validator, "source_file_def_line", 1)
    monkeypatch.setattr("numpydoc.validate.extract_ignore_validation_comments", lambda _: {})
    found = []
    for path, value in OBJECTS.items():
        found += complaints(path, value)
        if inspect.isclass(value) and not getattr(value, "_is_protocol", False):
            for name, member in documented_members(value):
                found += complaints(f"{path}.{name}", member)
    assert not found, "\n".join(found)


def test_packages_have_docstrings_and_names_that_exist():
    for package in packages():
        assert package.__doc__, f"{package.__name__} has no docstring"
        missing = [name for name in public_names(package) if not hasattr(package, name)]
        assert not missing, f"{package.__name__}.__all__ holds names that do not exist: {missing}"


def test_list_of_public_names_is_complete_and_not_longer():
    expected = set()
    for root in (concur, hil):
        for name in public_names(root):
            path = f"{root.__name__}.{name}"
            expected.add(path)
            if inspect.ismodule(value := getattr(root, name)) and name not in SUBPACKAGES:
                expected |= {f"{path}.{inner}" for inner in public_names(value)}
    page = (ROOT / "docs/api.md").read_text(encoding="utf-8")
    listed = re.findall(r"^- `((?:concur|hil)\.[\w.]+)`: \S.*\.$", page, re.MULTILINE)
    assert len(listed) == len(set(listed)), "a name is listed twice"
    assert not expected - set(listed), f"not in docs/api.md: {sorted(expected - set(listed))}"
    below = {
        f"concur.{p}.{n}"
        for p in SUBPACKAGES
        for n in importlib.import_module(f"concur.{p}").__all__
    }
    unknown = set(listed) - expected - below
    assert not unknown, f"do not exist: {sorted(unknown)}"


def accepts_any_keyword(value):
    parameters = inspect.signature(value).parameters.values()
    return any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters)


def test_only_errors_accept_any_keyword():
    # An error carries whatever facts it is given; anywhere else a free keyword hides a slip.
    loose = [
        path
        for path, value in OBJECTS.items()
        if not (inspect.isclass(value) and issubclass(value, BaseException))
        and not getattr(value, "_is_protocol", False)
        and accepts_any_keyword(value)
    ]
    assert not loose, f"accept a misspelt keyword: {loose}"


def strict_callables():
    return [
        path
        for path, value in OBJECTS.items()
        if not getattr(value, "_is_protocol", False)
        and not inspect.isabstract(value)
        and not accepts_any_keyword(value)
    ]


def refuses_a_misspelt_keyword(value):
    needed = [
        None
        for p in inspect.signature(value).parameters.values()
        if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    try:
        value(*needed, misspelt_keyword=1)
    except (TypeError, pydantic.ValidationError) as error:
        return bool(re.search(r"misspelt_keyword|takes no (keyword )?arguments", str(error)))
    return False


def test_misspelt_keywords_are_refused():
    checked = strict_callables()
    assert len(checked) > 300
    assert not [path for path in checked if not refuses_a_misspelt_keyword(OBJECTS[path])]


# --- pages ------------------------------------------------------------------------------------


def blocks(language, page="README.md"):
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def test_errors_say_what_came():
    vague = [
        f"{path.relative_to(ROOT)}:{node.value.lineno}"
        for package in (concur, hil)
        for path in sorted(Path(package.__path__[0]).rglob("*.py"))
        if re.search(r"""["']none["']""", text := path.read_text(encoding="utf-8"))
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.keyword) and node.arg == "came"
        for part in ast.walk(node.value)
        if isinstance(part, ast.Constant) and part.value == "none"
    ]
    assert not vague, vague


def test_readme_begins_with_installing_and_tracking_then_tests():
    first, second = (block.split("\n") for block in blocks("bash")[:2])
    assert first[0] == "python -m pip install ."
    assert first[1].startswith("concur track examples/")
    assert second[0] == 'python -m pip install ".[test]"'
    assert second[1].startswith("python -m pytest")


@pytest.mark.extended
def test_readme_commands_run(beside_examples):
    scripts = sysconfig.get_path("scripts")
    environment = os.environ | {"PATH": scripts + os.pathsep + os.environ["PATH"]}
    lines = [line for block in blocks("bash") for line in block.splitlines()]
    commands = [line for line in lines if line.startswith("concur")]
    assert commands, "README shows no command of concur"
    for command in commands:
        command = command.replace("--mock --yes", "--mock --yes --duration 2")
        done = subprocess.run(
            ["bash", "-c", command], env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"


@pytest.mark.parametrize(
    "page",
    [SESSIONS[0], *(pytest.param(page, marks=pytest.mark.extended) for page in SESSIONS[1:])],
)
def test_session_runs(beside_examples, page):
    session = blocks("python", page)
    assert session, f"{page} shows no Python session"
    namespace = {"__name__": "session"}
    for number, block in enumerate(session):
        exec(compile(ast.parse(block), f"{page}, Python block {number + 1}", "exec"), namespace)


@functools.cache
def anchors(path):
    """Names by which links reach the headings of a page."""
    text = re.sub(
        r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE
    )
    heads = re.findall(r"^#{1,3} (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", head).lower().replace(" ", "-") for head in heads}


def test_links_lead_to_files_and_headings():
    missing = []
    for path in FILES:
        for link in re.findall(r"\]\((?!https?://)([^)\s]+)\)", path.read_text(encoding="utf-8")):
            name, _, anchor = link.partition("#")
            target = (path.parent / name).resolve() if name else path
            if not target.exists() or (anchor and anchor not in anchors(target)):
                missing.append((path.relative_to(ROOT), link))
    assert not missing, f"files or headings that do not exist: {missing}"


def uneven_rows(text):
    """Rows with another number of cells than the head of their table, as (line, row)."""
    rows, width = [], 0
    text = re.sub(
        r"^```.*?^```", lambda m: "\n" * m[0].count("\n"), text, flags=re.DOTALL | re.MULTILINE
    )
    for number, line in enumerate(text.split("\n"), 1):
        cells = len(re.findall(r"(?<!\\)\|", line)) if line.startswith("|") else 0
        if cells and width and cells != width:
            rows.append((number, line))
        width = cells if not cells or not width else width
    return rows


def test_rows_of_tables_have_the_cells_of_the_head():
    uneven = {path: uneven_rows(path.read_text(encoding="utf-8")) for path in FILES}
    assert not any(uneven.values()), {path.name: rows for path, rows in uneven.items() if rows}


def test_uneven_rows_are_found():
    head = "| a | b |\n| --- | --- |\n"
    assert not uneven_rows(f"{head}| 1 \\| 2 | |\n\n| c |\n| --- |\n")
    assert uneven_rows(f"{head}| 1 | | 2 |\n") == [(3, "| 1 | | 2 |")]
    assert uneven_rows("```text\n| x |\n```\n| a | b |\n| --- | --- | --- |\n") == [
        (5, "| --- | --- | --- |")
    ]


@pytest.mark.parametrize("page", sorted(ROOT.glob("docs/decisions/0*.md")), ids=lambda p: p.stem)
def test_decision_is_complete_and_listed(page):
    text = page.read_text(encoding="utf-8")
    heads = ["Context", "Decision", "Consequences", "Refused alternatives"]
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == heads
    assert f"# {int(page.stem[:4])}. " in text
    index = (page.parent / "index.md").read_text(encoding="utf-8")
    assert f"\n{page.stem}\n" in index
    assert f"({page.name})" in index


def contents(page):
    """Pages that the tables of contents of a page name."""
    trees = re.findall(
        r"^```{toctree}\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )
    names = [line for tree in trees for line in tree.split("\n") if line and line[0] != ":"]
    return [(page.parent / f"{name}.md").resolve() for name in names]


def test_every_page_of_the_manual_is_in_one_table_of_contents():
    named, queue = [], [ROOT / "docs/index.md"]
    for page in queue:  # grows meanwhile
        named += contents(page)
        queue += [child for child in contents(page) if child not in queue]
    assert len(named) == len(set(named)), "a page is in two tables of contents"
    assert set(queue) == set(ROOT.glob("docs/**/*.md"))


def test_sections_link_their_pages():
    for page in ROOT.glob("docs/*/index.md"):
        text = page.read_text(encoding="utf-8")
        links = {(page.parent / link).resolve() for link in re.findall(r"\]\(([^)#]+\.md)", text)}
        assert set(contents(page)) <= links, page


def test_first_page_links_each_section_once():
    page = ROOT / "docs/index.md"
    text = page.read_text(encoding="utf-8")
    cards = re.findall(r"^:link: (\S+)$", text, re.MULTILINE)
    links = [f"{name}.md" for name in cards] + re.findall(r"\]\(([^)#]+\.md)", text)
    assert len(links) == len(set(links)), "a page is linked twice"
    assert {(page.parent / link).resolve() for link in links} == set(contents(page))
    assert text.count("```{toctree}") == text.count(":hidden:") == 1


OWNERS = {
    "model": (concur.reduction.MomentumReduction, concur.reduction.StagedReduction),
    "robot": (concur.Mechanism, concur.robot),
    "servo": (concur.Servo,),
    "cc": (concur,),
    "groups": (concur.groups,),
    "se3": (concur.groups.se3,),
    **{
        name: (importlib.import_module(f"concur.{name}"),)
        for name in ("certify", "formulations", "geometry", "reduction")
    },
}


@pytest.mark.parametrize("page", [p for p in PAGES if p.startswith("docs/theory/")])
def test_functions_of_the_theory_exist(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    named = re.findall(rf"`({'|'.join(OWNERS)})\.(\w+)", text)
    missing = [f"{o}.{n}" for o, n in named if not any(hasattr(x, n) for x in OWNERS[o])]
    assert not missing, f"{page} names functions that do not exist: {missing}"
    assert named or page.endswith(("index.md", "spheres.md")), f"{page} names no function"


def test_gallery_shows_every_example_and_tutorial():
    text = (ROOT / "docs/gallery.md").read_text(encoding="utf-8")
    examples = [p for p in ROOT.glob("examples/**/*") if p.suffix in (".py", ".toml")]
    missing = [p.name for p in examples if f"](../{p.relative_to(ROOT).as_posix()})" not in text]
    tutorials = ROOT.glob("docs/tutorials/[!i]*.md")
    missing += [p.name for p in tutorials if f"](tutorials/{p.name})" not in text]
    assert not missing, f"not in docs/gallery.md: {missing}"


def test_gallery_has_a_picture_in_each_row():
    text = (ROOT / "docs/gallery.md").read_text(encoding="utf-8")
    rows = [row for row in re.findall(r"^\| (.*)$", text, re.MULTILINE) if "](" in row]
    assert len(rows) > 30
    assert all(row.startswith("![") for row in rows)
    shown = {ROOT / "docs" / name for name in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", text)}
    assert set(ROOT.glob("docs/images/gallery/*")) <= shown, "a picture is in no row"


def test_pictures_are_small():
    large = {p.name: p.stat().st_size for p in ROOT.glob("docs/images/**/*.*")}
    assert max(large.values()) < 2e6, large
