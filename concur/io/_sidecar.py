"""Sidecars of URDF and MJCF files: what these files cannot express."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

from concur.robot import Motor, Spring, Steering, Supports, Wheel
from concur.tables import Vector3


def _cures(suffix: str) -> dict[str, str]:
    """Cures for fields that are unknown in the sidecar of a file with this suffix."""
    rename = f"`<robot>.toml` beside `<robot>{suffix}` is its sidecar: rename one of them."
    return dict.fromkeys(("bodies", "robot", "outputs", "reference"), rename)


@dataclass(frozen=True)
class Sidecar:
    """Sidecar of an MJCF file.

    Parameters
    ----------
    name : str, optional
        Name of the robot. Default: that of the other file.
    gravity : sequence of float, optional
        Acceleration of free fall in world axes, shape (3,), m/s^2. Default: of a URDF file
        `[0, 0, 0]`, of an MJCF file that of the file.
    base : str, optional
        Joint of the base. Default: `"free"`, or the joint to `world`.
    actuated : sequence of str, optional
        Names of the joints with a motor each. Default: of a URDF file all but the base, joints of
        motors, mimic joints and steering joints that follow, with a revolute or prismatic joint to
        `world` this one too; of an MJCF file those with actuators.
    wheels : sequence of Wheel
        Wheels; `body` is the name of a link. Default: none.
    steering : sequence of Steering
        Steered wheels that follow two others; `wheel` and `guides` are names of links. Default:
        none.
    supports : mapping of str to sequence of float, optional
        Frictionless supports beside the wheels: by name the contact point in the frame of the base,
        m; its height does not matter. Default: none.
    springs : sequence of Spring
        Springs and dampers; `joint` is the name of a joint, `body` and `other` are names of links.
        Default: none.
    ignore : sequence of str
        Elements of the other file that act on the motion and that the model may lack, such as
        `armature`; without an entry they are refused. Default: none.
    """

    name: str | None = None
    gravity: Vector3 | None = None
    base: Literal["free", "planar", "fixed"] | None = None
    actuated: Sequence[str] | None = None
    wheels: Sequence[Wheel] = ()
    steering: Sequence[Steering] = ()
    supports: Supports | None = None
    springs: Sequence[Spring] = ()
    ignore: Sequence[str] = ()
    _cures: ClassVar[Mapping[str, str]] = _cures(".xml")


@dataclass(frozen=True)
class UrdfSidecar(Sidecar):
    """Sidecar of a URDF file.

    Parameters
    ----------
    motors : sequence of Motor
        Motors on several joints, and thrusters; `joints` has names of joints, `body` is the name of
        a link. Default: none.
    locked : mapping of str to float, optional
        Coordinate at which each of these joints is held, m or rad; the joint becomes fixed.
        Default: none.
    repair : sequence of str
        Repairs of the file that guess what is meant, such as `inertia`: `concur check --suggest`
        names those that a file needs. Default: none.
    xacro : mapping of str to str, optional
        Values of the arguments of a xacro file, in the form in which its macros read them. Default:
        those of the file.
    packages : mapping of str to str, optional
        Folders of packages that the file names and that are not found beside it, in its checkout or
        in ROS; relative to the sidecar. Default: none.
    """

    motors: Sequence[Motor] = ()
    locked: Mapping[str, float] | None = None
    repair: Sequence[str] = ()
    xacro: Mapping[str, str] | None = None
    packages: Mapping[str, str] | None = None
    _cures: ClassVar[Mapping[str, str]] = {
        **_cures(".urdf"),
        "root": 'Write base = "free", "planar" or "fixed".',
    }


def sidecar_of(file: Path) -> Path:
    """Default sidecar: arm.toml of arm.urdf, arm.xacro and arm.urdf.xacro."""
    stem = file.with_suffix("")
    return (stem if stem.suffix.lower() == ".urdf" else file).with_suffix(".toml")
