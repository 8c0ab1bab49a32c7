"""Imports point one way, and importing the package is silent and light."""

import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from hil._extras import NEEDED

ROOT = Path(__file__).parents[2]
LATE = ("matplotlib", "control", "pydantic", "h5py")  # imported only by what needs them
UNRECORDED = ("concur", "casadi", "can")  # not needed to write rows to a file


def run(*command):
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_import_contracts_hold():
    done = run(str(Path(sysconfig.get_path("scripts"), "lint-imports")), "--no-cache")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("program", ["import concur", "import hil", "from hil import *"])
def test_import_prints_nothing(program):
    done = run(sys.executable, "-W", "error", "-c", program)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_import_leaves_heavy_packages_alone():
    program = f"import concur, sys; print([name for name in {LATE} if name in sys.modules])"
    done = run(sys.executable, "-c", program)
    assert done.stdout.strip() == "[]", done.stdout + done.stderr


def test_import_of_the_rig_brings_nothing_else():
    done = run(
        sys.executable,
        "-c",
        "import hil, sys; print(sorted(m for m in sys.modules if m[:3] == 'hil'))",
    )
    assert done.stdout.strip() == "['hil']", done.stdout + done.stderr


def test_recorder_of_the_rig_starts_without_robots():
    program = f"import hil.record._drain, sys; print([n for n in {UNRECORDED} if n in sys.modules])"
    done = run(sys.executable, "-c", program)
    assert done.stdout.strip() == "[]", done.stdout + done.stderr


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
    assert 'pip install "concur-control[rig]"' in done.stdout, done.stderr
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
    assert 'pip install "concur-control[rig]"' in done.stderr
