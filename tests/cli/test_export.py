"""`concur export`: a folder of C, in words and as JSON, and one line per mistake."""

import json
import subprocess
from importlib.resources import files
from pathlib import Path

import pytest
from typer.testing import CliRunner

from concur.cli import main
from tests.export._export import COMPILERS

ROOT = Path(__file__).parents[2]
ROVER = str(ROOT / "examples/rover_arm.toml")


def called(*words):
    return CliRunner().invoke(main, ["export", *map(str, words)])


@pytest.mark.extended
def test_says_how_to_try_what_it_wrote(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = called(ROVER)
    assert done.exit_code == 0, done.output
    assert "rover_arm.h" in done.stdout
    (command,) = [line for line in done.stdout.splitlines() if line.startswith("  cd ")]
    command = command.replace("cc -std", f"{COMPILERS[0]} -std")
    tried = subprocess.run(["bash", "-ec", command], capture_output=True, text=True, check=False)
    assert tried.returncode == 0, tried.stderr
    assert "0 wrong" in tried.stdout
    assert (tmp_path / "out/rover_arm/c/rover_arm.c").exists()


def test_writes_the_reference_of_the_task_into_the_code(tmp_path):
    for folder, words, timed in (("with", ["--with-reference"], True), ("without", [], False)):
        done = called(ROVER, "--out", tmp_path / folder, *words)
        assert done.exit_code == 0, done.output
        header = (tmp_path / folder / "rover_arm.h").read_text()
        assert ("rover_arm_real t[1];" in header) is timed
        assert ("rover_arm_real pose[5];" in header) is not timed


def test_writes_the_law_that_is_named_as_the_law_of_the_task(tmp_path):
    """Files are those of a task with this law; an unknown name is refused."""
    laws = '[[laws]]\nname = "soft"\nkind = "passive"\nrate = 0.7\n'
    text = Path(ROVER).read_text(encoding="utf-8")
    (tmp_path / "laws.toml").write_text(f"{text}\n{laws}", encoding="utf-8")
    own = laws.replace("[[laws]]", "[law]").replace('name = "soft"\n', "")
    (tmp_path / "own.toml").write_text(f"{text}\n{own}", encoding="utf-8")
    for file, words in (("laws", ["--law", "soft"]), ("own", []), ("servo", [])):
        source = ROVER if file == "servo" else tmp_path / f"{file}.toml"
        done = called(source, "--out", tmp_path / file, *words)
        assert done.exit_code == 0, done.output
    named, own, servo = (
        (tmp_path / file / "rover_arm.c").read_text() for file in ("laws", "own", "servo")
    )
    assert named == own != servo
    ghost = called(tmp_path / "laws.toml", "--out", tmp_path / "ghost", "--law", "ghost")
    assert ghost.exit_code == 2
    assert "ghost" in ghost.stderr


@pytest.mark.extended
def test_tells_the_error_of_single_precision(tmp_path):
    words = ("--out", tmp_path / "c", "--precision", "single", "--name", "law")
    done = called(ROVER, *words)
    assert done.exit_code == 0, done.output
    assert "single precision: error about" in done.stdout
    result = json.loads(called(ROVER, *words, "--json").stdout)
    assert result["name"] == "law"
    assert result["target"] == "c"
    assert 0.0 < result["error"] < 1e-3
    assert all(Path(path).exists() for path in result["files"])
    assert f"{result['error']:.1e}" in done.stdout


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["none.toml"], "no file of this name"),
        ([ROVER, "--target", "rust"], "`target`"),
        ([ROVER, "--precision", "half"], "`precision`"),
        ([ROVER, "--name", "a b"], "`name`"),
        ([ROVER, "--name", "a" * 41], "`name`"),
        ([ROVER, "--speed-limit", "-1"], "`speed_limit`"),
        ([ROVER, "--fmi", "2.0"], "`fmi`"),
        ([ROVER, "--target", "fmu", "--fmi", "1.0"], "`fmi`"),
        ([ROVER, "--target", "fmu", "--speed-limit", "5"], "`speed_limit`"),
        ([ROVER, "--target", "fmu", "--precision", "single"], "`precision`"),
    ],
    ids=str,
)
def test_mistakes_give_one_line_errors(tmp_path, words, error):
    done = called(*words, "--out", tmp_path / "new")
    assert done.exit_code == 2
    assert done.stderr.count("\n") == 1
    assert error in done.stderr
    assert not (tmp_path / "new").exists()


def test_a_folder_whose_name_is_no_text_is_written_and_shown(tmp_path):
    done = called(ROVER, "--out", tmp_path / "a\udcff")  # a byte that UTF-8 does not have
    assert done.exit_code == 0, done.output
    assert "a\\udcff" in done.stdout


@pytest.mark.parametrize("target", ["c", "fmu"])
def test_long_names_of_robots_are_shortened(tmp_path, target, monkeypatch):
    monkeypatch.setenv("CONCUR_CC", "none")
    robot = (files("concur.robots") / "rover_arm.toml").read_text()
    task = Path(ROVER).read_text().replace('robot = "rover_arm"', 'robot = "robot.toml"')
    (tmp_path / "robot.toml").write_text(
        robot.replace('name = "rover_arm"', f'name = "{255 * "r"}"')
    )
    (tmp_path / "task.toml").write_text(task)
    done = called(tmp_path / "task.toml", "--target", target, "--out", tmp_path / "new")
    assert done.exit_code == 0, done.output
    name = 34 * "r" + ".c" if target == "c" else 100 * "r" + ".fmu"
    assert (tmp_path / "new" / name).is_file()


def test_a_missing_compiler_is_a_note_of_one_line(tmp_path, monkeypatch):
    monkeypatch.setenv("CONCUR_CC", "none")
    done = called(ROVER, "--target", "fmu", "--out", tmp_path)
    assert done.exit_code == 0, done.output
    assert done.stderr.startswith("concur: note: rover_arm_servo.fmu holds sources only")
    assert done.stderr.count("\n") == 1
    assert ".py" not in done.stderr
