"""What is installed is what the repository says: version, commands, files, dependencies."""

import json
import re
import shlex
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import InvalidRequirement, Requirement

import concur
from concur._version import DISTRIBUTION, __version__
from concur.errors import install_command

ROOT = Path(__file__).parents[2]
PYPROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
PROJECT = tomllib.loads(PYPROJECT)["project"]
TOOLS = {"test", "benchmarks", "docs", "all"}  # extras of those who work on the package
REQUIREMENTS = [
    *PROJECT["dependencies"],
    *(r for extra in PROJECT["optional-dependencies"].values() for r in extra),
]


def run(*command, **options):
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def script(name):
    return str(Path(sysconfig.get_path("scripts"), name))


def test_version_is_the_newest_in_the_changelog():
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    newest = re.findall(r"^## \[(\d[^\]]*)\] - \d{4}-\d\d-\d\d$", changelog, re.MULTILINE)[0]
    assert PROJECT["dynamic"] == ["version"]
    assert __version__ == newest == concur.__version__
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    (date,) = re.findall(rf"^## \[{re.escape(newest)}\] - (.*)$", changelog, re.MULTILINE)
    assert re.findall(r"^version: (.*)$", citation, re.MULTILINE) == [newest]
    assert re.findall(r"^date-released: (.*)$", citation, re.MULTILINE) == [date]


@pytest.mark.parametrize("name", PROJECT["scripts"])
def test_command_shows_its_help(name):
    done = run(script(name), "--help")
    assert done.returncode == 0, done.stderr
    assert "Usage" in done.stdout


@pytest.mark.by_default(2)
@pytest.mark.parametrize("name", PROJECT["scripts"])
@pytest.mark.parametrize("words", [["fly"], ["check", "nowhere.toml"], ["check", "--mispelt"]])
def test_commands_refuse_what_they_do_not_know(name, words, tmp_path):
    done = run(script(name), *words, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert words[-1] in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.extended
def test_rig_tells_a_missing_file_in_one_line(tmp_path):
    done = run(script("concur-rig"), "check", "nowhere.toml", cwd=tmp_path)
    assert done.stderr.startswith("concur-rig: ")
    assert done.stderr.count("\n") == 1, done.stderr


def test_wheel_holds_every_file_of_the_packages(tmp_path):
    done = run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    packed = set(zipfile.ZipFile(wheel).namelist())
    files = {
        path.relative_to(ROOT).as_posix()
        for package in ("concur", "hil")
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert files, "no files found beside the tests"
    assert not files - packed, f"not in the wheel: {sorted(files - packed)}"
    top = {name.split("/")[0] for name in packed}
    assert top == {"concur", "hil", f"concur_control-{__version__}.dist-info"}


# --- commands that install, in texts and messages ---------------------------------------------

PAGES = sorted(
    path
    for folder in ("", "docs", "examples", ".ci", "concur", "hil")
    for path in (ROOT.glob("*.md") if not folder else (ROOT / folder).rglob("*"))
    if path.is_file() and "__pycache__" not in path.parts and "_build" not in path.parts
    if path.suffix in (".md", ".py", ".toml", ".j2", "", ".rst") and path.name != "CHANGELOG.md"
)
SWITCHES = {"-e", "--quiet", "--upgrade", "--no-deps"}


def targets(text):
    """What the commands `pip install` of a text install."""
    for match in re.finditer(r"pip install ([^`\n#|&)]*)", text):
        try:
            words = shlex.split(match[1])
        except ValueError:  # a quotation that goes on behind the command
            words = shlex.split(match[1].rpartition("'")[0])
        yield from (word.rstrip(";,.") or "." for word in words if word not in SWITCHES)


def refused(target):
    """Why a target of `pip install` does not work from a clone; None if it does."""
    if re.fullmatch(r"\$\(.*|.*\.whl", target):
        return None  # a list of requirements, and a wheel that was built before
    own = re.fullmatch(r"\.(?:\[([\w,]+)\])?", target)
    if own is None:
        try:
            name = Requirement(target).name
        except InvalidRequirement:
            return "no requirement"
        return "on no index" if name.startswith("concur") else None
    unknown = {*(own[1] or "").split(","), ""} - {*PROJECT["optional-dependencies"], ""}
    return f"no extras {unknown}" if unknown else None


def test_each_command_that_installs_works_from_a_clone():
    found = [
        (path.relative_to(ROOT).as_posix(), target)
        for path in PAGES
        for target in targets(path.read_text(encoding="utf-8"))
        if "{" not in target
    ]
    assert {"README.md", "CONTRIBUTING.md", "docs/start.md", ".ci/run"} <= {p for p, _ in found}
    assert not [(*entry, why) for entry in found if (why := refused(entry[1]))]


@pytest.mark.parametrize(
    ("target", "works"),
    [
        *((t, True) for t in (".", ".[rig]", ".[certify,verify]", "ipython", "xacro>=2")),
        *((t, False) for t in ("concur", "concur-control[rig]", ".[urdf]", ".[rig,view]", "a[")),
    ],
)
def test_commands_that_do_not_work_are_found(target, works):
    assert (refused(target) is None) == works
    assert list(targets(f'Run `python -m pip install "{target}"`.')) == [target]


def test_messages_name_extras_that_exist():
    """All commands of messages come from one function, with an extra of the project."""
    for folder in ("concur", "hil"):
        for path in (ROOT / folder).rglob("*.py"):
            text = path.read_text(encoding="utf-8")
            for extra in re.findall(r"""install_command\(["'](\w+)["']\)""", text):
                assert extra in PROJECT["optional-dependencies"], path
            if path.name != "errors.py":
                assert set(targets(text)) <= {"xacro"}, path


class Installed:
    """An installation with the file in which pip notes its origin."""

    def __init__(self, url):
        self.text = None if url is None else json.dumps({"url": url})

    def read_text(self, name):
        assert name == "direct_url.json"
        return self.text


@pytest.mark.parametrize("origin", ["folder", "wheel", "gone", "index", None])
def test_the_command_names_where_the_package_came_from(origin, tmp_path, monkeypatch):
    """A clone anywhere, a wheel, or an origin that is gone: then the folder of the clone."""
    assert install_command("rig") == f'python -m pip install "{ROOT}[rig]"'  # the source tree
    folder, wheel = tmp_path / "my clone", tmp_path / "concur_control-1-py3-none-any.whl"
    folder.mkdir()
    wheel.touch()
    places = {"folder": folder.as_uri(), "wheel": wheel.as_uri(), "index": None}
    url = places.get(origin, (tmp_path / "gone").as_uri())

    def found(name):
        assert name == DISTRIBUTION
        if origin is None:
            raise metadata.PackageNotFoundError
        return Installed(url)

    monkeypatch.setattr(metadata, "distribution", found)
    monkeypatch.setattr(concur.errors, "__file__", str(tmp_path / "site" / "concur" / "errors.py"))
    concur.errors._source.cache_clear()
    try:
        command = install_command("rig")
    finally:
        concur.errors._source.cache_clear()
    (target,) = shlex.split(command)[4:]
    if origin == "folder":
        assert target == f"{folder}[rig]"
    elif origin == "wheel":
        made = Requirement(target)
        assert (made.name, made.extras, made.url) == (DISTRIBUTION, {"rig"}, wheel.as_uri())
    else:
        assert target == ".[rig]"


def test_no_text_sends_a_user_to_the_other_project():
    """On the index of packages `concur` is another project."""
    assert PROJECT["name"] == DISTRIBUTION == "concur-control"


def test_the_version_does_not_need_an_installation():
    for folder in ("concur", "hil"):
        for path in (ROOT / folder).rglob("*.py"):
            assert 'version("concur' not in path.read_text(encoding="utf-8"), path


@pytest.mark.parametrize("extra", sorted({*PROJECT["optional-dependencies"]} - TOOLS))
def test_an_extra_brings_what_the_packages_use(extra):
    modules = {"python-can": "can", "pyzmq": "zmq", "python-flint": "flint"}
    files = (path for folder in ("concur", "hil") for path in (ROOT / folder).rglob("*.py"))
    source = "\n".join(path.read_text(encoding="utf-8") for path in files)
    for requirement in PROJECT["optional-dependencies"][extra]:
        name = re.match(r"[\w-]+", requirement)[0]
        assert re.search(rf"\b{modules.get(name, name)}\b", source), f"{name} is used by nothing"


@pytest.mark.parametrize("requirement", REQUIREMENTS)
def test_dependency_has_a_reason(requirement):
    line = next(line for line in PYPROJECT.splitlines() if f'"{requirement}"' in line)
    assert re.search(r"# \S.*\S$", line), f"no reason beside {requirement}"
    name = re.match(r"[\w.-]+", requirement)[0]
    page = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    assert name in page, f"{name} is not in docs/architecture.md"
