"""`concur check`: reduction, assumptions and symmetries of a robot, and the start of a task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from os.path import lexists
from pathlib import Path
from typing import Annotated, Any

import typer

from concur.cli._answer import Answer, Reply
from concur.cli._app import ListAudit, command
from concur.cli._options import held, listed
from concur.errors import ConcurError, DescriptionError
from concur.files import replace_files, writing


@command(
    "Describe and check",
    "lint, reduction and assumptions of a robot or task",
    "concur check rover_arm",
)
def check(
    reply: Reply,
    robot: str,
    stages: Annotated[str | None, typer.Option(metavar="auto|NAME,...")] = None,
    fix: Annotated[Path | None, typer.Option(metavar="OUT.urdf")] = None,
    suggest: bool = False,
    overwrite: bool = False,
    xacro: Annotated[list[str] | None, typer.Option(metavar="NAME:=VALUE|PACKAGE=FOLDER")] = None,
    audit: ListAudit = False,
) -> Answer:
    """Check a robot: inertias, wheels, reduction, assumptions; of a task also start and reach.

    Parameters
    ----------
    robot : str
        Robot file (.toml or .urdf), name of a shipped robot, or task.
    stages : str, optional
        Reduce further by unactuated joints that conserve their momentum, at zero momentum: auto
        for all of them; default none.
    fix : path, optional
        Instead of the check, write a copy of a URDF file with its faults repaired, as of inertias
        that no rigid body has.
    suggest : bool
        Instead of the check, write the sidecar of a URDF file: base, wheels, actuated joints.
    overwrite : bool
        Replace the file that --fix or --suggest writes.
    xacro : list of str, optional
        Value of an argument of a .xacro file, or the folder of a package that it names; may be
        repeated.
    """
    from concur.campaign import Campaign
    from concur.io import check as examine

    macros = _macros(xacro or [])
    if fix is not None or suggest:
        return _write_urdf(robot, fix, suggest, overwrite, macros)
    names = stages if stages in (None, "auto") else [name.strip() for name in stages.split(",")]
    with reply.progress("searching for symmetries, joint by joint"):
        found = examine(robot, names, **macros)
    start = found.start
    if start is not None and start.task.uncertainty.size:
        Campaign(start.task).check()
    rows = listed(found.audit, audit) + (() if start is None else start.rows)
    return Answer.of(
        found,
        name=found.robot.name if start is None else start.task.name,
        robot=found.robot.name,
        warnings=found.warnings,
        listed=rows,
        shown=[held(found.audit, audit), *found.notes, *found.tables],
    )


def _macros(words: list[str]) -> dict[str, dict[str, str]]:
    """Arguments `xacro` and `packages` of `load` by the words of the option --xacro."""
    found: dict[str, dict[str, str]] = {"xacro": {}, "packages": {}}
    for word in words:
        name, mark, value = word.partition(":=" if ":=" in word else "=")
        if not (name and mark and value):
            raise ConcurError(
                "option `--xacro`",
                expected="NAME:=VALUE for an argument, or PACKAGE=FOLDER",
                came=repr(word),
                cure="Write, for example, --xacro arm:=true or --xacro my_robot=src/robot.",
            )
        found["xacro" if mark == ":=" else "packages"][name] = value
    return found


def _write_urdf(
    robot: str, fix: Path | None, suggest: bool, overwrite: bool, macros: Mapping[str, Any]
) -> Answer:
    """Write what one of the two options asks for."""
    from concur.io import repair_urdf, suggest_sidecar

    option = "--suggest" if fix is None else "--fix"
    if fix is not None and suggest:
        raise ConcurError(
            "concur check",
            expected="one of the options --fix and --suggest",
            came="both",
            cure="Run the command twice, first with --fix.",
        )
    if Path(robot).suffix.lower() not in (".urdf", ".xacro"):
        raise DescriptionError(
            robot,
            expected=f"a URDF file (.urdf) with {option}",
            came="another file",
            cure=f"Omit {option}, or give the path of a URDF file.",
        )
    own: dict[str, Any]
    if fix is not None:
        data, fixed = repair_urdf(Path(robot), **macros)
        out, own = fix, {"fixed": [*map(asdict, fixed)]}
        lines = [f"{one.place}, `{one.fault}`: {one.change}" for one in fixed]
        lines.append(f"{len(fixed)} repairs" if fixed else "an identical copy")
    else:
        out, text = suggest_sidecar(Path(robot), **macros)
        data, lines, own = text.encode(), [*text.splitlines(), ""], {"text": text}
    if lexists(out) and not overwrite:
        raise DescriptionError(
            str(out),
            expected="the name of a new file",
            came="a file that exists",
            cure="Choose another name, or add --overwrite.",
        )
    with writing(out.parent):
        replace_files({out: data})
    return Answer(status="written", files=[out], own={"out": str(out), **own}, shown=lines)
