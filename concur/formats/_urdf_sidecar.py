"""The sidecar of a URDF file: what URDF cannot express."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import Field

from concur.files import is_file
from concur.formats._drives import Drives
from concur.formats._sidecar import SidecarTable, sidecar_cures
from concur.formats.tables import (
    Expected,
    Number,
    check,
    file_named,
    read_toml,
)


class UrdfSidecarTable(SidecarTable):
    """Fields of a sidecar of a URDF file."""

    cures: ClassVar[Mapping[str, str]] = {
        **sidecar_cures(".urdf"),
        "drive": "Write [[drives]].",
        "root": 'Write base = "free", "planar" or "fixed".',
    }
    drives: Drives | None = Field(
        default=None,
        description="Motors on several joints, and thrusters; `joints` has names of joints, "
        "`body` is the name of a link. Default: none.",
    )
    locked: (
        Annotated[
            dict[str, Number],
            Expected("a table with a coordinate, m or rad, for each joint name"),
        ]
        | None
    ) = Field(
        default=None,
        description="Coordinate at which each of these joints is held, m or rad; the joint becomes "
        "fixed. Default: none.",
    )


def sidecar_of(file: Path) -> Path:
    """Default sidecar: arm.toml of arm.urdf, arm.xacro and arm.urdf.xacro."""
    stem = file.with_suffix("")
    return (stem if stem.suffix.lower() == ".urdf" else file).with_suffix(".toml")


def sidecar_table(
    file: Path, sidecar: str | PathLike[str] | None
) -> tuple[UrdfSidecarTable, Path, bool]:
    """Read the sidecar of a file; return its fields, its path, and whether there is one."""
    side = sidecar_of(file) if sidecar is None else file_named(sidecar)
    given = sidecar is not None or is_file(side)
    return check(UrdfSidecarTable, read_toml(side) if given else {}, side), side, given
