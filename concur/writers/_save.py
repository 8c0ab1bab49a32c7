"""A robot to a file of the format that its name asks for."""

from __future__ import annotations

import tomllib
from os import PathLike
from pathlib import Path

from concur.errors import ConcurError, DescriptionError
from concur.files import file_to_write, is_file, read_text, replace_files, writing
from concur.robot import Mechanism
from concur.writers._mjcf import to_mjcf
from concur.writers._toml import to_toml
from concur.writers._urdf import to_urdf

SIDECAR = {
    "name",
    "gravity",
    "base",
    "actuated",
    "locked",
    "wheels",
    "steering",
    "motors",
    "supports",
}
"""Fields of a sidecar."""

SUFFIXES = (".toml", ".urdf", ".xml", ".mjcf")


def save(robot: Mechanism, path: str | PathLike[str]) -> tuple[Path, ...]:
    """Write a robot to a file: TOML, URDF or MJCF, by the ending of its name.

    Parameters
    ----------
    robot : Mechanism
        The robot.
    path : path
        Name with the ending .toml, .urdf, .xml or .mjcf. A file of this name is replaced when the
        new one is complete.

    Returns
    -------
    tuple of pathlib.Path
        The files written: beside a URDF file a sidecar of the same name with the ending .toml.

    Raises
    ------
    DescriptionError
        If the ending is another one, the format cannot express the robot, or the sidecar would
        replace a file that is no sidecar.
    ConcurError
        If a file cannot be written.
    """
    file = file_to_write(path, "robot.toml")
    suffix = file.suffix.lower()
    if suffix not in SUFFIXES:
        raise DescriptionError(
            str(file),
            expected="a name with the ending .toml, .urdf, .xml or .mjcf",
            came=f"the ending `{suffix}`" if suffix else "a name without ending",
            cure="Name the format by the ending: TOML keeps everything.",
            file=str(file),
        )
    if suffix == ".urdf":
        side = file.with_suffix(".toml")
        if is_file(side):
            _check_sidecar(side)
        texts = dict(zip((file, side), to_urdf(robot), strict=True))
    else:
        texts = {file: to_toml(robot) if suffix == ".toml" else to_mjcf(robot)}
    with writing(file):
        replace_files({target: text.encode() for target, text in texts.items()})
    return tuple(texts)


def _check_sidecar(side: Path) -> None:
    """Refuse to replace a file that is no sidecar, such as the robot's own TOML file."""
    try:
        found = tomllib.loads(read_text(side, "a sidecar", "Check the file."))
        known = SIDECAR.issuperset(found)
    except (ConcurError, ValueError, RecursionError):
        known = False
    if not known:
        raise DescriptionError(
            str(side),
            expected="no file, or a sidecar, where the sidecar of the URDF file is written",
            came="a robot file or another file",
            cure="Choose another name for the URDF file, or move this file.",
            file=str(side),
        )
