"""Reader of robots from TOML files."""

from __future__ import annotations

import inspect
import re
from collections.abc import Collection, Mapping
from importlib import resources
from os import PathLike
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, Field

from concur.errors import ConcurError, DescriptionError
from concur.formats._drives import Drives, Mimics, drive_of, mimic_of
from concur.formats._wheels import SteeringTables, Supports, WheelTables, steering_of, wheel_of
from concur.formats.tables import (
    MOST_BODIES,
    NUMBER,
    PAIR,
    Expected,
    Number,
    NumberOrList,
    Quaternion,
    Table,
    Text,
    Vector3,
    any_of,
    check,
    fault,
    file_named,
    is_number,
    is_numbers,
    located,
    read_toml,
    show,
    unknown,
)
from concur.robot import Body, Inertia, Mechanism, Pose, Shape, joints

_LIMITS = "a pair [lower, upper], or a list of one pair per coordinate of the joint"

SHAPES = ["box", "cylinder", "sphere", "capsule"]

# Sets of motions in Table 2.1 that are not joint types, and their replacement.
_NO_JOINTS = {
    "HelicalPlane": "Write two bodies: one with a Sliding joint and, on it, one with a Helical "
    "joint; the first may have no inertia. One joint would not reach all poses of this group by "
    "screw motions, as its exponential map is not onto. In Python "
    "`concur.robot.helical_plane` makes both bodies."
}


class PlacementTable(Table):
    """Pose of a frame in the frame of the parent."""

    cures: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(
            ("rpy", "euler", "angles", "quaternion", "orientation", "axis_angle"),
            "Give the rotation as a unit quaternion: rotation = [x, y, z, w].",
        ),
        **dict.fromkeys(("xyz", "position", "origin"), "Write translation = [x, y, z], m."),
    }
    translation: Vector3 | None = Field(
        default=None,
        description="Origin of the frame, m. Default: the origin of the parent's frame.",
    )
    rotation: Quaternion | None = Field(
        default=None,
        description="Unit quaternion x, y, z, w, which maps coordinates of the frame to those of "
        "the parent's frame. Default: parallel axes.",
    )


class _InertiaTable(Table):
    """Mass and moments of inertia of a body, with either `moments` or `tensor`."""

    mass: Number = Field(description="Mass, kg.")
    com: Vector3 | None = Field(
        default=None,
        description="Centre of mass in the body's frame, m. Default: the origin.",
    )
    moments: Vector3 | None = Field(
        default=None,
        description="Ixx, Iyy, Izz about the centre of mass, along the body's axes, kg m^2. "
        "Default: none, with `tensor`.",
    )
    tensor: (
        Annotated[list[Vector3], Field(min_length=3, max_length=3), Expected("3 rows of 3 numbers")]
        | None
    ) = Field(
        default=None,
        description="Tensor about the centre of mass, along the body's axes, kg m^2; an "
        "off-diagonal element is Ixy = -∫ x y dm. Default: none, with `moments`.",
    )


class _ShapeTable(PlacementTable):
    """A part of a body's look in drawings, with the pose of its centre in the body frame."""

    type: Annotated[Text, Field(json_schema_extra={"enum": SHAPES})] = Field(
        description="Form of the shape."
    )
    size: NumberOrList = Field(
        description="Size, m: lengths of a box along x, y and z; radius and length along z of a "
        "cylinder, and of a capsule without its caps; radius of a sphere."
    )


def _or_one(shape: dict[str, Any]) -> None:
    """Let one entry stand for a list of one."""
    several = {"type": shape.pop("type"), "items": shape.pop("items")}
    shape["anyOf"] = [several["items"], several]


class _BodyTable(Table):
    """A body with the joint that connects it to its parent."""

    name: Text = Field(description="Name of the body and of its joint.")
    joint: Annotated[
        dict[str, Any], Expected('a table like { type = "Revolute", axis = [0, 0, 1] }')
    ] = Field(description="The joint: a table with its `type` and the fields of this type.")
    parent: Text | None = Field(
        default=None,
        description="Name of another body; exactly one body, the base, has no parent. Default: the "
        "world.",
    )
    placement: PlacementTable | None = Field(
        default=None,
        description="Pose of the joint frame in the frame of the parent. Default: the parent's "
        "frame.",
    )
    inertia: _InertiaTable | None = Field(
        default=None, description="Mass and moments of inertia. Default: no mass."
    )
    limits: (
        Annotated[
            list[Any],
            Field(json_schema_extra={"items": any_of(NUMBER, PAIR)}),
            Expected(_LIMITS),
        ]
        | None
    ) = Field(
        default=None,
        description="Bounds of the joint's coordinates, m or rad: a pair [lower, upper] for one "
        "coordinate, else a pair for each; `inf` means no bound. Not for joints with a quaternion. "
        "Default: none.",
    )
    speed_limit: NumberOrList | None = Field(
        default=None,
        description="Largest speed of the joint in both directions, m/s or rad/s: a number for all "
        "degrees of freedom, or one for each. Default: none.",
    )
    torque_limit: NumberOrList | None = Field(
        default=None,
        description="Largest force or torque of its motor in both directions, N or N m: a number "
        "for all degrees of freedom, or one for each. Default: none.",
    )
    shape: (
        Annotated[
            list[_ShapeTable],
            BeforeValidator(lambda value: [value] if isinstance(value, dict) else value),
            Field(json_schema_extra=_or_one),
            Expected('a table like { type = "box", size = [1, 1, 1] }, or a list of them'),
        ]
        | None
    ) = Field(
        default=None,
        description="A shape for drawings, or several; without meaning for the dynamics. "
        "Default: none.",
    )


class _RobotTable(Table):
    """A whole robot file."""

    cures: ClassVar[Mapping[str, str]] = {
        "drive": "Write [[drives]].",
        "mimic": "Write [[mimics]].",
    }
    name: Text = Field(description="Name of the robot.")
    bodies: Annotated[
        list[_BodyTable],
        Field(max_length=MOST_BODIES),
        Expected(f"tables [[bodies]], at most {MOST_BODIES}"),
    ] = Field(description="One table per body.")
    wheels: WheelTables | None = Field(
        default=None, description="One table per wheel. Default: none."
    )
    gravity: Vector3 | None = Field(
        default=None,
        description="Acceleration of free fall in world axes, m/s^2. Default: `[0, 0, 0]`.",
    )
    actuated: Annotated[list[str], Expected("a list of body names")] | None = Field(
        default=None,
        description="Names of the bodies whose joints have a motor each. Default: all but the "
        "base, joints of drives and joints that follow others.",
    )
    drives: Drives | None = Field(
        default=None,
        description="One table per motor on several joints or thruster. Default: none.",
    )
    mimics: Mimics | None = Field(
        default=None,
        description="One table per joint that follows another. Default: none.",
    )
    steering: SteeringTables | None = Field(
        default=None,
        description="One table per steered wheel that follows two others. Default: none.",
    )
    supports: Supports | None = Field(
        default=None,
        description="Frictionless supports beside the wheels, such as `caster = [0.5, 0.0, 0.0]`: "
        "by name the contact point in the frame of the base, m; its height does not matter. They "
        "carry load in plants whose wheels slip and in MuJoCo. Default: none.",
    )


def load(
    path: str | PathLike[str],
    *,
    sidecar: str | PathLike[str] | None = None,
    keep_fixed: bool | Collection[str] = False,
) -> Mechanism:
    """Read a robot from a TOML, URDF or MJCF file.

    A TOML file has the fields ``name``, ``gravity`` (3 numbers, m/s^2, zero if not given) and
    ``actuated`` (names of the bodies with a motor each, default all but the base, joints of drives
    and joints that follow others), and tables ``[[bodies]]``, ``[[wheels]]``, ``[[drives]]`` and
    ``[[mimics]]`` for each body, wheel, drive and joint that follows, and ``[[steering]]`` for each
    steered wheel that follows guides. Their fields are the arguments of `Body`, `Joint`, `Pose`,
    `Inertia`, `Wheel`, `Drive`, `Mimic` and `Steering`; an inertia has
    either ``moments`` (3 numbers) or ``tensor`` (3 rows of 3). A joint is a table with the name of
    its class as ``type`` and the arguments of the class; ``limits`` is one pair [lower, upper] or
    a list of one pair per coordinate, with ``inf`` for no bound; ``speed_limit`` and
    ``torque_limit`` are a number or a list of one number per DOF; ``shape`` is one table, or a list
    of tables, with the ``type`` and the ``size`` of a `Shape` and its placement.

    The macros of a .xacro file are expanded by the package
    xacrodoc. Each link is a body with its name; links on fixed joints
    are merged into the body that carries them. Meshes are not opened; mimic joints follow the joint
    that they name. The root link is the base. By default its joint is free. A root link `world`
    is the inertial frame, as is a root link without mass that carries one link on a floating or
    planar joint. With one child link, this link is the base, with the joint that the file gives
    it; with several, `world` is a fixed base. The sidecar is a TOML file with the optional fields
    ``name``, ``gravity``, ``base`` ("free", "planar" or "fixed"), ``actuated`` (names of joints),
    ``locked`` (a table with the coordinate at which a joint is held) and tables ``[[wheels]]``,
    ``[[steering]]`` and ``[[drives]]``, whose joints have their names in the URDF file.

    An MJCF file needs the extra ``mjcf``: MuJoCo compiles it. Hinges, slides, balls and free joints
    are joints; several joints of one body are one joint if a class moves so, else a chain with
    massless bodies. A body on an anchored hinge or ball has its frame at the anchor. Coordinates
    are those of MuJoCo. Actuators are drives of their joints.
    Contacts and dissipation are no part of a robot.

    ``unread`` of the robot lists what its URDF or MJCF file has beside it, such as damping,
    transmissions and contacts. What changes the motion, such as closed loops, springs and armature,
    is refused, unless the field ``ignore`` of the sidecar names it. It also lists what a
    URDF file has with other numbers: the wider of two limits, a missing tensor, and moments that
    are rounding.

    Parameters
    ----------
    path : path
        File with the ending .toml, .urdf, .xacro, .xml or .mjcf.
    sidecar : path, optional
        TOML file beside a URDF or MJCF file. Default: the file of the same name with the ending
        .toml in its folder, if it exists.
    keep_fixed : bool or collection of str
        Whether links on fixed joints of a URDF file become bodies on `Fixed` joints; or names of
        links that become bodies without mass there, such as frames of tools for outputs, while
        their mass stays in the body that carries them. Names of other links have no effect.

    Returns
    -------
    Mechanism
        The robot.

    Raises
    ------
    DescriptionError
        If the file cannot be read, a field is missing, unknown or of the wrong type, a name
        does not exist, or the parents do not form a tree.
    ConcurError
        If a part is not physical (`InertiaError`, `WheelError`, ...), with file and table named.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "cart.toml"
    >>> _ = path.write_text('''
    ... name = "cart"
    ... [[bodies]]
    ... name = "cart"
    ... joint = { type = "Prismatic", axis = [1, 0, 0] }
    ... inertia = { mass = 2.0 }
    ... ''')
    >>> load(path).nq
    1
    """
    if file_named(path).suffix.lower() in (".urdf", ".xacro"):
        from concur.formats._urdf import load_urdf

        return load_urdf(path, sidecar, keep_fixed)
    if file_named(path).suffix.lower() in (".xml", ".mjcf") and not keep_fixed:
        from concur.formats._mjcf import load_mjcf

        return load_mjcf(path, sidecar)
    if sidecar is not None or keep_fixed:
        raise DescriptionError(
            str(path),
            expected="a URDF file (.urdf) with `sidecar` or `keep_fixed`",
            came="another file",
            cure="Omit these arguments: a robot file in TOML is complete.",
            file=str(path),
        )
    data = read_toml(path)
    if "bodies" not in data and {"outputs", "robot", "reference"} & data.keys():
        raise fault(
            path,
            "",
            "",
            expected="a robot file",
            came="a task file (it has " + _listed(data, "outputs", "robot", "reference") + ")",
            cure=f"Use `concur track {path}`, or give the robot file.",
        )
    robot = check(_RobotTable, data, path)
    names = [body.name for body in robot.bodies]
    bodies = [_body(table, names, path) for table in robot.bodies]
    wheels = [wheel_of(table, names, path) for table in robot.wheels or ()]
    for name in robot.actuated or ():
        if name not in names:
            raise unknown(path, "", "actuated", "a body", name, names)
    joints = [
        body.name if body.joint.nv == 1 else f"{body.name}[{freedom}]"
        for body in bodies
        for freedom in body.joint.freedom_names
    ]
    drives = [drive_of(table, names, joints, path) for table in robot.drives or ()]
    mimics = [mimic_of(table, names, path) for table in robot.mimics or ()]
    steering = [steering_of(table, robot.wheels or (), path) for table in robot.steering or ()]
    parts = robot.given({"gravity", "actuated", "supports"})
    parts |= {"drives": drives, "mimics": mimics, "steering": steering}
    try:
        return Mechanism(robot.name, bodies, wheels, **parts)
    except ConcurError as error:
        parts = {"wheels": wheels, "drives": drives, "mimics": mimics, "steering": steering}
        table, field = _blame(error, names, parts)
        with located(path, table, field):
            raise


def _listed(data: Mapping[str, Any], *names: str) -> str:
    return ", ".join(f"`{name}`" for name in names if name in data)


def shipped_names() -> list[str]:
    """List the robots that come with the package.

    Returns
    -------
    list of str
        Names, sorted.
    """
    folder = resources.files("concur") / "robots"
    return sorted(f.name[:-5] for f in folder.iterdir() if f.name.endswith(".toml"))


def load_shipped(name: str) -> Mechanism:
    """Read a robot that comes with the package.

    Parameters
    ----------
    name : str
        One of `shipped_names`.

    Returns
    -------
    Mechanism
        The robot.

    Raises
    ------
    FileNotFoundError
        If no such robot is shipped.
    """
    with resources.as_file(resources.files("concur") / "robots" / f"{name}.toml") as path:
        if not path.is_file():
            raise FileNotFoundError(name)
        return load(path)


def _body(table: _BodyTable, names: list[str], path: str | PathLike[str]) -> Body:
    label = f'[[bodies]] "{table.name}"'
    if names.count(table.name) > 1:
        raise fault(
            path,
            label,
            "name",
            expected="a unique name for each body",
            came=f"{names.count(table.name)} bodies of this name",
            cure="Rename all but one.",
        )
    if table.parent is not None and table.parent not in names:
        raise unknown(path, label, "parent", "a body", table.parent, names)
    joint = _joint(table.joint, label, path)
    optional: dict[str, Any] = {}
    if table.placement is not None:
        with located(path, label, "placement"):
            optional["placement"] = Pose(**table.placement.given())
    if table.inertia is not None:
        optional["inertia"] = _inertia(table.inertia, label, path)
    if table.limits is not None:
        optional["limits"] = _limits(table.limits, label, path)
    optional |= table.given({"speed_limit", "torque_limit"})
    with located(path, label, "shape"):
        optional["shape"] = [_shape(shape) for shape in table.shape or ()]
    with located(path, label):
        return Body(table.name, joint, parent=table.parent, **optional)


def _joint(table: dict[str, Any], label: str, path: str | PathLike[str]) -> joints.Joint:
    kinds = {name: getattr(joints, name) for name in joints.__all__ if name != "Joint"}
    kind = table.get("type")
    if not isinstance(kind, str):
        raise fault(
            path,
            label,
            "joint.type",
            expected="the name of a joint: " + ", ".join(kinds),
            came="no value" if kind is None else show(kind),
            cure='Write for example joint = { type = "Revolute", axis = [0, 0, 1] }.',
        )
    if kind in _NO_JOINTS:
        raise fault(
            path,
            label,
            "joint.type",
            expected="the name of a joint: " + ", ".join(kinds),
            came=f"`{kind}`",
            cure=_NO_JOINTS[kind],
        )
    if kind not in kinds:
        raise unknown(path, label, "joint.type", "a joint", kind, kinds)
    parameters = inspect.signature(kinds[kind]).parameters
    values = {name: value for name, value in table.items() if name != "type"}
    for name, value in values.items():
        if name not in parameters:
            raise unknown(
                path, label, f"joint.{name}", f"a field of {kind}", name, ["type", *parameters]
            )
        if not is_numbers(value):
            raise fault(
                path,
                label,
                f"joint.{name}",
                expected="a number or a list of numbers",
                came=show(value),
                cure="Correct the entry.",
            )
    for name, parameter in parameters.items():
        if parameter.default is parameter.empty and name not in values:
            raise fault(
                path,
                label,
                f"joint.{name}",
                expected=f"the {name} of the {kind} joint",
                came="no value",
                cure=f"Add the field `{name}`.",
            )
    with located(path, label, "joint"):
        joint: joints.Joint = kinds[kind](**values)
    return joint


def _limits(values: list[Any], label: str, path: str | PathLike[str]) -> list[Any]:
    """Reject entries that are not pairs of numbers; `Body` checks them against the joint."""
    pairs = [values] if values and all(map(is_number, values)) else values
    for pair in pairs:
        if not (isinstance(pair, list) and len(pair) == 2 and all(map(is_number, pair))):
            raise fault(
                path,
                label,
                "limits",
                expected=_LIMITS,
                came=show(pair),
                cure="Write for example limits = [-1.5, 1.5], or [[-inf, inf], [0.0, 0.4]] for a "
                "joint with two coordinates.",
            )
    return values


def _inertia(table: _InertiaTable, label: str, path: str | PathLike[str]) -> Inertia:
    if table.moments is not None and table.tensor is not None:
        raise fault(
            path,
            label,
            "inertia.tensor",
            expected="either `moments` or `tensor`",
            came="both",
            cure="Remove one of them.",
        )
    arguments = table.given({"mass", "com", "moments"})
    if table.tensor is not None:
        arguments["moments"] = table.tensor
    with located(path, label, "inertia"):
        return Inertia(**arguments)


def _shape(table: _ShapeTable) -> Shape:
    size = [table.size] if is_number(table.size) else table.size
    return Shape(table.type, size, Pose(**table.given({"translation", "rotation"})))


def _blame(error: ConcurError, names: list[str], parts: Mapping[str, Any]) -> tuple[str, str]:
    """Find the table of an error of the whole robot, from the names in its place."""
    known = {
        "steering": [steering.wheel for steering in parts["steering"]],
        "wheel": [wheel.body for wheel in parts["wheels"]],
        "drive": [drive.name for drive in parts["drives"]],
        "mimic": [mimic.body for mimic in parts["mimics"]],
        "body": names,
    }
    for kind, of_kind in known.items():
        for name in re.findall(rf"{kind} `([^`]*)`", error.where):
            if name in of_kind:
                table = {"body": "bodies", "steering": "steering"}.get(kind, kind + "s")
                return f'[[{table}]] "{name}"', ""
    cycle = error.data.get("cycle")
    if cycle:
        return f'[[bodies]] "{cycle[0]}"', "parent"
    field = re.search(r"`(actuated|gravity|parent|supports)`$", error.where)
    if field is None:
        return "", ""
    return ("[[bodies]]" if field[1] == "parent" else ""), field[1]
