"""The folder of exported C: its contents are correct and reproducible, and can be linked."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

from concur import robots
from concur.codegen import CompilerWarning
from concur.control import TickStatus
from concur.errors import ConcurError, UnknownNameError
from concur.export._c import ExportStatus
from concur.reduction import reduce
from concur.simulation import Plant
from tests.control._cases import case_study, refused
from tests.export._export import (
    COMPILERS,
    NAME,
    run,
    servo,
)


@pytest.mark.extended
def test_replay_finds_what_is_wrong(libraries, tmp_path):
    library = libraries("rover")
    for path in library.folder.files:
        (tmp_path / path.name).write_bytes(path.read_bytes())
    text = (tmp_path / f"{NAME}.c").read_text()
    for found, other in [
        ("[i] = context->results[i];", "[i] = context->results[i] * 1.00001;"),
        (f"return rejected(output, {NAME.upper()}_TOO_FAST)", "break"),
        ("clear((real_t *)output, OUTPUTS);", ""),
    ]:
        assert text.count(found) == 1
        (tmp_path / f"{NAME}.c").write_text(text.replace(found, other))
        assert (
            run(
                COMPILERS[0], f"{NAME}.c", "replay.c", "-o", "replay", "-lm", cwd=tmp_path
            ).returncode
            == 0
        )
        done = run("./replay", cwd=tmp_path)
        assert done.returncode == 1, found
        assert "expected" in done.stdout


@pytest.mark.parametrize("flag", ["-ffast-math", "-Ofast", "-ffinite-math-only"])
def test_refuses_flags_that_delete_its_tests(libraries, flag):
    done = run(
        COMPILERS[0], flag, "-c", f"{NAME}.c", "-o", "x.o", cwd=libraries("rover").path.parent
    )
    assert done.returncode != 0
    assert "deletes the checks for NaN" in done.stderr


@pytest.mark.extended
def test_two_laws_link_together_and_with_c_plus_plus(tmp_path):
    for kind, name in (("rover", "one"), ("tractor", "two")):
        servo(kind).export(tmp_path, name=name)
    (tmp_path / "both.cpp").write_text(
        '#include "one.h"\n#include "two.h"\nstatic one_context a; static two_context b;\n'
        "int main() { one_input x; one_output u; two_input y; two_output v; one_preset(&x);\n"
        "two_preset(&y); return one_tick(&a, &x, &u) == 6 || two_tick(&b, &y, &v) == 6; }\n"
    )
    for name in ("one", "two"):
        assert run(COMPILERS[0], "-c", f"{name}.c", cwd=tmp_path).returncode == 0
    compiler = "g++" if COMPILERS[0] == "gcc" else "clang++"
    done = run(compiler, "both.cpp", "one.o", "two.o", "-o", "both", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert run("./both", cwd=tmp_path).returncode == 0


@pytest.mark.extended
def test_same_servo_gives_the_same_bytes(tmp_path, compiler):
    """In another process too, and after methods of the robot, the model and the law were compiled,
    which round differently."""
    root, law = Path(__file__).parents[2], case_study()
    script = (
        "import sys; from tests.export._export import servo, NAME\n"
        "servo('rover').export(sys.argv[1], name=NAME)"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "77", "LC_ALL": "C", "PYTHONPATH": str(root)}
    command = [sys.executable, "-c", script, str(tmp_path / "other")]
    subprocess.run(command, env=environment, check=True)
    law.model.robot.compile_functions("integrate")
    law.compile_functions("output")
    law.export(tmp_path / "own", name=NAME)
    names = sorted(path.name for path in (tmp_path / "own").iterdir())
    assert len(names) == 6
    for name in names:
        own, other = (tmp_path / folder / name for folder in ("own", "other"))
        assert own.read_bytes() == other.read_bytes(), name


def test_manifest_says_what_is_in_the_folder(libraries):
    library = libraries("free-flyer")
    manifest = json.loads((library.path.parent / "manifest.json").read_text())
    names = {path.name for path in library.folder.files} - {"manifest.json"}
    assert set(manifest["files"]) == names
    for name, digest in manifest["files"].items():
        assert hashlib.sha256((library.path.parent / name).read_bytes()).hexdigest() == digest
    assert manifest["robot"] == library.servo.name
    np.testing.assert_array_equal(manifest["stiffness"], library.servo.stiffness)
    sizes = {signal["name"]: signal["size"] for signal in manifest["inputs"]}
    assert sizes == {"q": 13, "s": 6, "pose": 7, "twist": 6, "acceleration": 6, "momentum": 6}
    units = [entry["unit"] for signal in manifest["inputs"] for entry in signal["entries"]]
    assert set(units) == {"1", "m", "rad", "m/s", "rad/s", "m/s^2", "rad/s^2", "kg m/s", "kg m^2/s"}


@pytest.mark.extended
def test_page_of_the_manual_is_true(tmp_path):
    page = (Path(__file__).parents[2] / "docs/export.md").read_text(encoding="utf-8")
    python = "".join(re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE))
    assert "servo.export(" in python
    assert "buffers.momentum" in python
    (shell,) = re.findall(r"^```bash\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    done = run(sys.executable, "-c", python, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    done = run("bash", "-euo", "pipefail", "-c", shell, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "0 wrong" in done.stdout
    for status in ExportStatus:
        assert f"| {int(status)} | `{status.name}` |" in page
    for status in list(TickStatus)[1:]:
        assert f"`{status.name}` {int(status)}" in " ".join(page.split()).replace("is ", "")


def test_readme_is_true(libraries, tmp_path):
    library = libraries("rover")
    for path in library.folder.files:
        (tmp_path / path.name).write_bytes(path.read_bytes())
    readme = (tmp_path / "README.md").read_text()
    (block,) = re.findall(r"^```bash\n(.*?)^```", readme, re.DOTALL | re.MULTILINE)
    done = run("bash", "-euo", "pipefail", "-c", block, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "0 wrong" in done.stdout
    (use,) = re.findall(r"^```c\n(.*?)^```", readme, re.DOTALL | re.MULTILINE)
    (tmp_path / "use.c").write_text(use)
    assert (
        run(COMPILERS[0], "-std=c99", "-Wall", "-Werror", "-c", "use.c", cwd=tmp_path).returncode
        == 0
    )


@pytest.mark.parametrize(
    ("kind", "options", "where"),
    [
        ("rover", {"target": "rust"}, "`target`"),
        ("rover", {"precision": "half"}, "`precision`"),
        ("rover, limited", {"precision": "single"}, "`precision`"),
        ("rover", {"name": "2fast"}, "`name`"),
        ("rover", {"name": "replay"}, "`name`"),
        ("rover", {"name": "n" * 41}, "`name`"),
        ("rover", {"speed_limit": 0.0}, "`speed_limit`"),
        ("rover", {"speed_limit": [1.0, 2.0]}, "`speed_limit`"),
        ("rover", {"speed_limit": np.nan}, "`speed_limit`"),
        ("rover", {"target": "fmu", "fmi": "1.0"}, "`fmi`"),
        ("rover", {"target": "fmu", "precision": "single"}, "`precision`"),
        ("rover", {"target": "fmu", "speed_limit": 3.0}, "`speed_limit`"),
        ("rover", {"fmi": "2.0"}, "`fmi`"),
    ],
    ids=str,
)
def test_options_out_of_range_are_refused(tmp_path, kind, options, where):
    expected = UnknownNameError if where in ("`target`", "`fmi`") else ConcurError
    with pytest.raises(ConcurError) as caught:
        servo(kind).export(tmp_path / "new", **options)
    assert where in caught.value.where
    if options != {"fmi": "2.0"}:
        assert isinstance(caught.value, expected)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("target", ["c", "fmu", "plant"])
def test_folders_that_cannot_be_written_are_refused(tmp_path, target):
    (tmp_path / "taken").write_text("")
    (tmp_path / "rover_arm_plant.fmu").mkdir()  # in place of an archive
    robot = robots.rover_arm()

    def export(folder):
        if target == "plant":
            return Plant(robot).export(folder, reduce(robot))
        return servo("rover").export(folder, target=target)

    for name in ("taken", "taken/new", "no\0folder", *["."] * (target == "plant")):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CompilerWarning)
            refused(
                ConcurError,
                lambda name=name: export(tmp_path / name),
                where=str(tmp_path / name),
                expected="a folder that can be written",
            )
    for none in (None, 3):
        refused(ConcurError, lambda none=none: export(none), where="`directory`", came=str(none))
