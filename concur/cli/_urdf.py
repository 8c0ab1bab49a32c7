"""`concur check --fix` and `--suggest`: files made from a URDF file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from os.path import lexists
from pathlib import Path
from typing import Any

from concur.cli._answer import Answer
from concur.errors import ConcurError, DescriptionError
from concur.files import replace_files, writing
from concur.io import repair_urdf, suggest_sidecar
from concur.tables import show


def _written(out: Path, lines: Iterable[str], data: dict[str, Any], count: str = "") -> Answer:
    """Answer about a file that was made from a URDF file, with what is in it."""
    own = {"out": str(out), **data}
    shown = [*lines, f"written: {out}{count}"]
    return Answer(command="check", status="written", files=[out], own=own, shown=shown)


def macros_of(words: Sequence[str] | None) -> dict[str, dict[str, str]]:
    """Arguments `xacro` and `packages` of `load` by the words of the option --xacro."""
    found: dict[str, dict[str, str]] = {"xacro": {}, "packages": {}}
    for word in words or ():
        name, mark, value = word.partition(":=" if ":=" in word else "=")
        if not (name and mark and value):
            raise ConcurError(
                "option `--xacro`",
                expected="NAME:=VALUE for an argument, or PACKAGE=FOLDER",
                came=show(word),
                cure="Write, for example, --xacro arm:=true or --xacro my_robot=src/robot.",
            )
        found["xacro" if mark == ":=" else "packages"][name] = value
    return found


def write_urdf(
    robot: str, fix: Path | None, suggest: bool, overwrite: bool, xacro: Sequence[str] | None
) -> Answer:
    """Write what one of the two options asks for."""
    macros = macros_of(xacro)
    if fix is not None and suggest:
        raise ConcurError(
            "concur check",
            expected="one of the options --fix and --suggest",
            came="both",
            cure="Run the command twice, first with --fix.",
        )
    if fix is not None:
        data, fixed = repair_urdf(_urdf(robot, "--fix"), **macros)
        _write(fix, data, overwrite)
        lines = [f"{own.place}, `{own.fault}`: {own.change}" for own in fixed]
        count = f"{len(fixed)} repairs" if fixed else "an identical copy"
        return _written(fix, lines, {"fixed": list(map(asdict, fixed))}, f": {count}")
    out, text = suggest_sidecar(_urdf(robot, "--suggest"), **macros)
    _write(out, text.encode(), overwrite)
    return _written(out, (*text.splitlines(), ""), {"text": text})


def _urdf(robot: str, option: str) -> Path:
    """Check the ending of a file for an option that reads URDF only."""
    if Path(robot).suffix.lower() not in (".urdf", ".xacro"):
        raise DescriptionError(
            robot,
            expected=f"a URDF file (.urdf) with {option}",
            came="another file",
            cure=f"Omit {option}, or give the path of a URDF file.",
        )
    return Path(robot)


def _write(out: Path, data: bytes, overwrite: bool) -> None:
    """Write a new file; replace an old one only with `overwrite`."""
    if lexists(out) and not overwrite:
        raise DescriptionError(
            str(out),
            expected="the name of a new file",
            came="a file that exists",
            cure="Choose another name, or add --overwrite.",
        )
    with writing(out.parent):
        replace_files({out: data})
