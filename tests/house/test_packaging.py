"""What is installed is what the repository says: version, commands, files, dependencies."""

import re
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from pathlib import Path

import pytest

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


def test_no_text_sends_a_user_to_the_other_project():
    """On the index of packages `concur` is another project."""
    assert PROJECT["name"] == DISTRIBUTION == "concur-control"
    files = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), ROOT / "pyproject.toml"]
    files += [path for folder in ("concur", "hil") for path in (ROOT / folder).rglob("*.py")]
    wrong = re.compile(r"""install\s+(?:-\S+\s+)*["']?concur(?!-control)\b""")
    found = [
        f"{path.relative_to(ROOT)}: {match[0]}"
        for path in files
        for match in wrong.finditer(path.read_text(encoding="utf-8"))
    ]
    assert not found
    assert install_command("rig") == 'pip install "concur-control[rig]"'


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
