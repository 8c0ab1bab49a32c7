"""Files of another kind, or too large: one error of the package, immediately and without harm."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import concur as cc
from concur import tables
from concur.errors import ConcurError, DescriptionError, printable, shown
from concur.files import confined, read_bytes
from concur.simulation import _integrator

ROVER = Path(cc.__file__).parent / "robots" / "rover_arm.toml"
TASK = Path(__file__).parents[2] / "examples" / "rover_arm.toml"


def robot_file(folder: Path, text: str | bytes, name: str = "robot.toml") -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


@pytest.mark.parametrize(
    ("text", "came"),
    [
        ("a = " + "[" * 3000 + "]" * 3000, "nested too deeply"),
        ("a = " + "[" * tables.DEEPEST + "]" * tables.DEEPEST, "nested more than 20 deep"),
        ("a = " + "9" * 5000, "beyond 64 bits"),
        ("a = 9223372036854775808", "beyond 64 bits"),
        ("a = -9223372036854775809", "beyond 64 bits"),
        (b"\xff\xfea\x00=\x001\x00", "text in UTF-16"),
        (b"\x89HDF\r\n\x1a\n\xff", "an HDF5 file"),
        ('name = "a\x00b"', r"`name = \"a\\x00b\"`"),
    ],
)
def test_no_raw_exception(tmp_path: Path, text: str | bytes, came: str) -> None:
    with pytest.raises(DescriptionError) as caught:
        cc.load(robot_file(tmp_path, text))
    assert came.replace('\\"', '"').replace("\\\\", "\\") in str(caught.value)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    "text",
    [
        "a = 9223372036854775807",
        "a = -9223372036854775808",
        "a = " + "[" * (tables.DEEPEST - 1) + "]" * (tables.DEEPEST - 1),
    ],
)
def test_just_within_the_bounds_is_read(tmp_path: Path, text: str) -> None:
    assert "a" in tables.read_toml(robot_file(tmp_path, text))


def test_a_mark_of_utf_8_and_line_ends_of_windows_are_read(tmp_path: Path) -> None:
    text = ROVER.read_bytes().replace(b"\n", b"\r\n")
    assert cc.load(robot_file(tmp_path, b"\xef\xbb\xbf" + text)).name == "rover_arm"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes in the file system")
def test_a_pipe_or_a_device_is_not_waited_for(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.toml"
    os.mkfifo(pipe)
    with pytest.raises(DescriptionError, match="got a pipe"):
        cc.load(pipe)
    with pytest.raises(DescriptionError, match="got a device"):
        cc.load("/dev/zero")
    task = TASK.read_text().replace('robot = "rover_arm"', 'robot = "pipe.toml"')
    with pytest.raises(DescriptionError, match="expected a robot file"):
        cc.load_task(robot_file(tmp_path, task))


@pytest.mark.parametrize("name", ["a" * 300 + ".toml", "a\0b.toml"])
def test_names_that_no_file_can_have(tmp_path: Path, name: str) -> None:
    with pytest.raises(DescriptionError):
        cc.load(tmp_path / name)
    told = name.replace("\0", "\\u0000")
    task = TASK.read_text().replace('robot = "rover_arm"', f'robot = "{told}"')
    with pytest.raises(DescriptionError):
        cc.load_task(robot_file(tmp_path, task))


def test_another_kind_of_file_is_not_quoted(tmp_path: Path) -> None:
    """A file that a task of another author names may be private."""
    with pytest.raises(DescriptionError, match="another kind of file") as caught:
        cc.load(robot_file(tmp_path, "root:secret:0:0\n", "shadow"))
    assert "secret" not in str(caught.value)
    for text in ("[default]\nkey = secret\n", "# mine\nTOKEN=secret\n", "\n\nsecret x"):
        with pytest.raises(DescriptionError, match=r"another kind of file: line \d") as caught:
            cc.load(robot_file(tmp_path, text, "credentials"))
        assert "secret" not in str(caught.value)
    with pytest.raises(DescriptionError, match="naem cart"):  # a slip in the first line is shown
        cc.load(robot_file(tmp_path, "naem cart\n"))


def test_a_file_is_read_up_to_its_limit(tmp_path: Path) -> None:
    path = robot_file(tmp_path, b"x" * 100)
    assert len(read_bytes(path, "a file", "Name it.", largest=100)) == 100
    with pytest.raises(DescriptionError, match="got a file above"):
        read_bytes(path, "a file", "Name it.", largest=99)


@pytest.mark.parametrize("length", [255, 256])
def test_names_have_room_in_tables_and_files(tmp_path: Path, length: int) -> None:
    text = ROVER.read_text().replace('name = "rover_arm"', f'name = "{"r" * length}"')
    path = robot_file(tmp_path, text)
    if length == 255:
        assert cc.load(path).name == "r" * 255
    else:
        with pytest.raises(DescriptionError, match="at most 255 characters"):
            cc.load(path)


@pytest.mark.parametrize("name", ["a\\nb", "\\u001b[31m", "\\u202e"])
def test_names_have_no_control_characters(tmp_path: Path, name: str) -> None:
    text = ROVER.read_text().replace('name = "rover_arm"', f'name = "{name}"')
    with pytest.raises(DescriptionError, match="without control characters") as caught:
        cc.load(robot_file(tmp_path, text))
    assert str(caught.value).isprintable()


def test_messages_are_safe_to_print() -> None:
    error = ConcurError("a\x1b[31m", expected="b\nc", came="\u202e", cure="x" * 5000)
    assert str(error).isprintable()
    assert len(str(error)) < 2100
    assert printable("plain ä") == "plain ä"
    assert shown(10**5000) == "a value of type int that cannot be shown"
    assert shown("x" * 61) == "x" * 60 + "..."


@pytest.mark.parametrize(
    ("field", "inside", "outside"),
    [
        ("duration", f"{_integrator.MOST_STEPS}e-3", f"{_integrator.MOST_STEPS + 1}e-3"),
        ("dt", "1e-8\nduration = 1e-6", "5e-9\nduration = 1e-6"),
        ("dt", None, "5e-324"),
        ("dt", None, "1e-12"),
        ("control_period", "1.0", "1e40"),
        ("duration", None, "1e9"),
    ],
)
def test_times_of_a_run(tmp_path: Path, field: str, inside: str | None, outside: str) -> None:
    head, tail = TASK.read_text().split("[simulation]")
    rest = "\n[" + tail.partition("\n[")[2] if "\n[" in tail else ""
    rest = rest.replace("evaluate_after", "# evaluate_after")

    def task(value: str) -> Path:
        table = {"duration": "20.0", "dt": "1e-3"} | {field: value}
        if "duration" in value:
            del table["duration"]
        lines = "\n".join(f"{k} = {v}" for k, v in table.items())
        return robot_file(tmp_path, f"{head}[simulation]\n{lines}\n{rest}")

    if inside is not None:
        cc.load_task(task(inside))
    with pytest.raises(DescriptionError, match=field):
        cc.load_task(task(outside))


@pytest.mark.parametrize(
    ("name", "inside", "outside"),
    [("translation", 1e9, 1.1e9), ("translation", -1e9, 1e30), ("mass", 1e9, 1e40)],
)
def test_numbers_of_a_robot(tmp_path: Path, name: str, inside: float, outside: float) -> None:
    def robot(value: float) -> Path:
        given = f"[{value}, 0.0, 0.0]" if name == "translation" else str(value)
        place = f"placement = {{ {name} = {given} }}" if name == "translation" else ""
        mass = given if name == "mass" else "1.0"
        return robot_file(
            tmp_path,
            'name = "r"\n[[bodies]]\nname = "b"\n'
            'joint = { type = "Prismatic", axis = [0, 0, 1] }\n'
            f"inertia = {{ mass = {mass} }}\n{place}\n",
        )

    cc.load(robot(inside))
    with pytest.raises(DescriptionError, match=name):
        cc.load(robot(outside))


def test_folder_of_a_record_with_a_nul_is_refused_by_the_reader() -> None:
    folder = Path("a\0b")
    with confined(folder), pytest.raises(DescriptionError, match=r"outside|NUL"):
        read_bytes(folder / "manifest.json", "a file", "Name another.")
