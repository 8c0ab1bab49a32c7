"""Imports point one way, and importing the package is silent and light."""

import ast
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import concur as cc
from concur.errors import install_command
from hil import _concur
from hil._extras import NEEDED

ROOT = Path(__file__).parents[2]
NUMERICAL = ("numpy", "scipy", "casadi")
LATE = (
    "matplotlib",
    "control",
    "pydantic",
    "h5py",
    "lxml",
    "viser",
    "tomlkit",
)  # imported only by what needs them
UNRECORDED = ("concur", "casadi", "can")  # not needed to write rows to a file


def run(*command):
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_import_contracts_hold():
    done = run(str(Path(sysconfig.get_path("scripts"), "lint-imports")), "--no-cache")
    assert done.returncode == 0, done.stdout + done.stderr


# --- what one package takes of another is public ------------------------------------------------


def imported(tree):
    """Dotted names of all that a module imports, also late or for types alone."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def private_modules(path, source):
    """Private modules, or names, that a file takes from packages it is not in."""
    for name in imported(ast.parse(source)):
        parts = name.split(".")
        hidden = next((k for k, part in enumerate(parts) if re.match("_(?!_)", part)), None)
        if parts[0] not in ("concur", "hil") or hidden is None:
            continue
        owner = Path(*parts[:hidden])
        owner = owner.parent if (ROOT / owner).with_suffix(".py").exists() else owner
        if not path.is_relative_to(owner):
            yield ".".join(parts[: hidden + 1])


@pytest.mark.parametrize(
    ("path", "line", "found"),
    [
        ("hil/rig/_rig.py", "from concur._files import read_json", ["concur._files"]),
        ("concur/cli/_a.py", "from concur.io import _toml", ["concur.io._toml"]),
        ("concur/cli/_a.py", "def f():\n    import concur.cli._b, hil.rig._c", ["hil.rig._c"]),
        ("hil/_exchange.py", "from hil.drives._registry import x", ["hil.drives._registry"]),
        ("concur/control/references/_a.py", "from concur.control._output import Output", []),
        ("concur/cli/_a.py", "from concur._files import read_json", []),
        ("concur/cli/_a.py", "from casadi._x import y", []),
        ("hil/cli/_app.py", "from concur import __version__", []),
        ("concur/show/_a.py", "from concur.show.style import _RC", []),
        (
            "concur/cli/_a.py",
            "from concur.show.style import _RC",
            ["concur.show.style._RC"],
        ),
    ],
)
def test_private_imports_across_packages_are_seen(path, line, found):
    assert list(private_modules(Path(path), line)) == found


@pytest.mark.extended
def test_packages_take_public_names_of_each_other():
    found = set()
    for file in [*ROOT.glob("concur/**/*.py"), *ROOT.glob("hil/**/*.py")]:
        path = file.relative_to(ROOT)
        package = ".".join(path.parent.parts[: 2 if path.parts[0] == "concur" else 1])
        source = file.read_text(encoding="utf-8")
        found |= {f"{package} -> {module}" for module in private_modules(path, source)}
    assert not found, "import a public name, or make this one public"


# --- verification of stored proofs shares nothing with the proofs -----------------------------


def shared(package, name, source):
    """Modules of its package that a module of the checker takes from the proofs."""
    own = f"concur.{package}"
    allowed = re.compile(rf"(?!{own}\b)|{own}\._(recheck|status\b)")
    if name.startswith("_recheck"):
        yield from (module for module in imported(ast.parse(source)) if not allowed.match(module))


@pytest.mark.parametrize(
    ("name", "line", "found"),
    [
        ("_recheck_tube", "from concur.proofs._recheck_numbers import x", []),
        ("_recheck_tube", "from concur.proofs._tube import x", ["concur.proofs._tube.x"]),
        ("_recheck_tube", "from concur.proofs import x", ["concur.proofs.x"]),
        ("_recheck_tube", "from concur.documents import x", []),
        ("_tube", "from concur.proofs._cells import x", []),
    ],
)
def test_imports_of_the_checker_are_seen(name, line, found):
    assert list(shared("proofs", name, line)) == found


@pytest.mark.parametrize("package", ["certify", "proofs"])
def test_checker_takes_nothing_of_the_proofs(package):
    for file in (ROOT / "concur" / package).glob("*.py"):
        assert not list(shared(package, file.stem, file.read_text(encoding="utf-8"))), file


# --- the rig has one door to concur -----------------------------------------------------------


def test_door_of_the_rig_to_concur_has_the_names_that_the_rig_uses():
    """Types and places name the same things, each is found, and each has a user."""
    door = ROOT / "hil" / "_concur.py"
    typed = {}
    for node in ast.walk(ast.parse(door.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module.split(".")[0] == "concur":
            typed |= {alias.asname or alias.name: node.module for alias in node.names}
    assert typed == _concur._PACKAGES
    assert all(hasattr(_concur, name) for name in typed)
    used = set()
    for file in ROOT.glob("hil/**/*.py"):
        used |= set(imported(ast.parse(file.read_text(encoding="utf-8"))))
    used = {name.removeprefix("hil._concur.") for name in used if name.startswith("hil._concur.")}
    assert set(typed) == used
    with pytest.raises(AttributeError, match="nothing"):
        _concur.nothing  # noqa: B018


# --- importing is silent and light ----------------------------------------------------------------


@pytest.mark.by_default(1)
@pytest.mark.parametrize(
    ("program", "absent"),
    [
        ("import concur.cli", NUMERICAL + LATE),
        ("from hil import *", ()),
        ("import hil.record._drain", UNRECORDED),
    ],
)
def test_imports_print_nothing_and_bring_nothing_else(program, absent):
    program = f"import sys; {program}; print([name for name in {absent} if name in sys.modules])"
    done = run(sys.executable, "-W", "error", "-c", program)
    assert (done.returncode, done.stdout, done.stderr) == (0, "[]\n", "")


@pytest.mark.parametrize(("given", "used"), [("", "1"), ("3", "3")])
def test_commands_use_one_thread_for_matrices_unless_told_otherwise(given, used, monkeypatch):
    """NumPy reads the limit when it is imported."""
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    if given:
        monkeypatch.setenv("OPENBLAS_NUM_THREADS", given)
    program = f"""
import os, sys
from concur.cli import main
main(["prove", "--help"], standalone_mode=False)
print([name for name in {NUMERICAL} if name in sys.modules])
import numpy
print(os.environ["OPENBLAS_NUM_THREADS"])
"""
    done = run(sys.executable, "-c", program)
    assert done.stdout.splitlines()[-2:] == ["[]", used], done.stdout + done.stderr


@pytest.mark.extended
def test_reduction_leaves_heavy_packages_alone():
    program = f"""
import sys
import concur as cc
cc.reduce, cc.Servo, cc.simulate, cc.certify
print([name for name in {LATE} if name in sys.modules])
"""
    done = run(sys.executable, "-c", program)
    assert done.stdout.strip() == "[]", done.stdout + done.stderr


def test_certify_is_the_function_whatever_is_imported_first():
    program = """
import concur as cc
import concur.certify
from concur.certify import Tube
from concur import certify
print(callable(cc.certify), certify is cc.certify, cc.certify.__name__)
"""
    done = run(sys.executable, "-c", program)
    assert done.stdout.strip() == "True True certify", done.stdout + done.stderr


def test_root_has_few_names_and_finds_them_all():
    assert len(cc.__all__) <= 44  # few enough for a page
    assert all(hasattr(cc, name) for name in cc.__all__)
    assert set(cc.__all__) <= set(dir(cc))
    with pytest.raises(AttributeError, match="nothing"):
        cc.nothing  # noqa: B018


def test_import_of_the_rig_brings_nothing_else():
    program = "import hil, sys; print(sorted(m for m in sys.modules if m[:3] == 'hil'))"
    done = run(sys.executable, "-W", "error", "-c", program)
    assert (done.returncode, done.stdout, done.stderr) == (0, "['hil']\n", "")


# --- without the extra `rig` ------------------------------------------------------------------

MISSING = f"import sys; sys.modules.update(dict.fromkeys({NEEDED}));"


def test_rig_without_its_extra_can_be_imported():
    done = run(sys.executable, "-c", MISSING + "import hil; print(hil.errors.RigError.__name__)")
    assert done.stdout == "RigError\n", done.stderr


@pytest.mark.parametrize("name", ["load_rig", "run_session", "Drive", "World", "OperatorSender"])
def test_rig_without_its_extra_names_it(name):
    program = f"""
import hil
try:
    hil.{name}
except hil.errors.RigError as error:
    print(error)
"""
    done = run(sys.executable, "-c", MISSING + program)
    assert install_command("rig") in done.stdout, done.stderr
    assert "without can, canopen, zmq, msgpack" in done.stdout


def test_command_of_the_rig_without_its_extra():
    program = MISSING + "from hil.cli import main; main()"
    done = run(sys.executable, "-c", program, "--help")
    assert done.returncode == 0, done.stderr
    assert "Usage" in done.stdout
    done = run(sys.executable, "-c", program, "check", "x.toml")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert "extra `rig`" in done.stderr
    assert install_command("rig") in done.stderr
