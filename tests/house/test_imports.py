"""Imports point one way, and importing the package is silent and light."""

import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).parents[2]
LATE = ("matplotlib", "control", "pydantic", "h5py")  # imported only by what needs them


def run(*command):
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_import_contracts_hold():
    done = run(str(Path(sysconfig.get_path("scripts"), "lint-imports")), "--no-cache")
    assert done.returncode == 0, done.stdout + done.stderr


def test_import_prints_nothing():
    done = run(sys.executable, "-W", "error", "-c", "import concur")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_import_leaves_heavy_packages_alone():
    program = f"import concur, sys; print([name for name in {LATE} if name in sys.modules])"
    done = run(sys.executable, "-c", program)
    assert done.stdout.strip() == "[]", done.stdout + done.stderr
