"""Fields that the sidecars of URDF and MJCF files share."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from concur.formats._wheels import SteeringTables, Supports, WheelTables
from concur.formats.tables import Expected, Table, Text, Vector3


class SidecarTable(Table):
    """Fields of a sidecar."""

    name: Text | None = Field(
        default=None, description="Name of the robot. Default: that of the other file."
    )
    gravity: Vector3 | None = Field(
        default=None,
        description="Acceleration of free fall in world axes, m/s^2. Default: of a URDF file "
        "`[0, 0, 0]`, of an MJCF file that of the file.",
    )
    base: (
        Annotated[Literal["free", "planar", "fixed"], Expected('"free", "planar" or "fixed"')]
        | None
    ) = Field(
        default=None, description='Joint of the base. Default: `"free"`, or the joint to `world`.'
    )
    actuated: Annotated[list[str], Expected("a list of joint names")] | None = Field(
        default=None,
        description="Names of the joints with a motor each. Default: of a URDF file all but the "
        "base, joints of drives, mimic joints and steering joints that follow, with a revolute or "
        "prismatic joint to `world` this one too; of an MJCF file those with actuators.",
    )
    wheels: WheelTables | None = Field(
        default=None, description="Wheels; `body` is the name of a link. Default: none."
    )
    steering: SteeringTables | None = Field(
        default=None,
        description="Steered wheels that follow two others; `wheel` and `guides` are names of "
        "links. Default: none.",
    )
    supports: Supports | None = Field(
        default=None,
        description="Frictionless supports beside the wheels: by name the contact point in the "
        "frame of the base, m; its height does not matter. Default: none.",
    )
    ignore: Annotated[list[Text], Expected("a list of elements")] | None = Field(
        default=None,
        description="Elements of the other file that act on the motion and that the model may "
        "lack, such as `armature`; without an entry they are refused. Default: none.",
    )


def sidecar_cures(suffix: str) -> dict[str, str]:
    """Cures for fields that are unknown in the sidecar of a file with this suffix."""
    rename = f"`<robot>.toml` beside `<robot>{suffix}` is its sidecar: rename one of them."
    fields = ("bodies", "robot", "outputs", "reference")
    return {**dict.fromkeys(fields, rename), "wheel": "Write [[wheels]]."}
