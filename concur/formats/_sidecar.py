"""Fields that the sidecars of URDF and MJCF files share."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from concur.formats._wheels import SteeringTables, Supports, WheelTable
from concur.formats.tables import MOST_BODIES, Table, Text, Vector3


class SidecarTable(Table):
    """Fields of a sidecar."""

    name: Text | None = None
    gravity: Vector3 | None = None
    base: (
        Annotated[
            Literal["free", "planar", "fixed"],
            Field(description='"free", "planar" or "fixed"'),
        ]
        | None
    ) = None
    actuated: Annotated[list[str], Field(description="a list of joint names")] | None = None
    wheels: (
        Annotated[
            list[WheelTable],
            Field(max_length=MOST_BODIES, description=f"tables [[wheels]], at most {MOST_BODIES}"),
        ]
        | None
    ) = None
    steering: SteeringTables | None = None
    supports: Supports | None = None


def sidecar_cures(suffix: str) -> dict[str, str]:
    """Cures for fields that are unknown in the sidecar of a file with this suffix."""
    rename = f"`<robot>.toml` beside `<robot>{suffix}` is its sidecar: rename one of them."
    fields = ("bodies", "robot", "outputs", "reference")
    return {**dict.fromkeys(fields, rename), "wheel": "Write [[wheels]]."}
