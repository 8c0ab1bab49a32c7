"""Reader of robots from TOML files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from importlib import resources
from os import PathLike
from pathlib import Path
from typing import Any

from concur.errors import ConcurError, DescriptionError
from concur.io._mount import ROBOT, assembled, mounted
from concur.io._names import blame
from concur.robot import Body, Mechanism, repeated_limits
from concur.tables import build, fault, file_named, located, read_toml

ROBOT_FILES = (".toml", ".urdf", ".xacro", ".xml", ".mjcf")
"""Endings of files of robots."""


def load(
    path: str | PathLike[str],
    *,
    sidecar: str | PathLike[str] | None = None,
    keep_fixed: bool = False,
    xacro: Mapping[str, str] | None = None,
    packages: Mapping[str, str | Path] | None = None,
) -> Mechanism:
    """Read a robot from a TOML, URDF or MJCF file.

    A TOML file has the fields ``name``, ``gravity`` (3 numbers, m/s^2, zero if not given) and
    ``actuated`` (names of the joints with a motor each, default all but the base, joints of motors
    and joints that follow others), and tables ``[[bodies]]``, ``[[wheels]]``, ``[[motors]]``,
    ``[[mimics]]`` and ``[[springs]]`` for each body, wheel, motor, joint that follows and spring,
    and ``[[steering]]`` for each
    steered wheel that follows guides. Their fields are the arguments of `Body`, `Joint`, `Pose`,
    `Inertia`, `Wheel`, `Motor`, `Mimic`, `Spring` and `Steering`; an inertia has
    either ``moments`` (3 numbers) or ``tensor`` (3 rows of 3). A joint is a table with the name of
    its class as ``type`` and the arguments of the class; ``limits`` is one pair [lower, upper] or
    a list of one pair per coordinate, with ``inf`` for no bound; ``speed_limit`` and
    ``torque_limit`` are a number or a list of one number per DOF; ``shape`` is one table, or a list
    of tables, with the ``type`` and the ``size`` of a `Shape` and its placement.

    The macros of a .xacro file are expanded by the package xacro; ``xacro`` and ``packages``
    are fields of the sidecar too. Packages are found above and beside the file, in its checkout,
    and in ROS. Each link is a body with its name; mass and shapes of links on fixed joints
    are part of the body that carries them. Meshes are shapes, whose files drawings open; mimic
    joints follow the joint that they name. The root link is the base. By default its joint is free.
    A root link `world`
    is the inertial frame, as is a root link without mass that carries one link on a floating or
    planar joint. With one child link, this link is the base, with the joint that the file gives
    it; with several, `world` is a fixed base. The sidecar is a TOML file with the optional fields
    ``name``, ``gravity``, ``base`` ("free", "planar" or "fixed"), ``actuated`` (names of joints),
    ``locked`` (a table with the coordinate at which a joint is held) and tables ``[[wheels]]``,
    ``[[steering]]`` and ``[[motors]]``, whose joints have their names in the URDF file.

    An MJCF file needs the extra ``mjcf``: MuJoCo compiles it. Hinges, slides, balls and free joints
    are joints; several joints of one body are one joint if a class moves so, else a chain with
    massless bodies. A body on an anchored hinge or ball has its frame at the anchor. Coordinates
    are those of MuJoCo. Actuators are motors of their joints. Stiffness of a hinge or slide that
    carries its body alone is a spring of it.
    Contacts and other dissipation are no part of a robot.

    ``unread`` of the robot lists what its URDF or MJCF file has beside it, such as damping,
    transmissions and contacts. What changes the motion, such as closed loops, other springs and
    armature, is refused, unless the field ``ignore`` of the sidecar names it. It also lists what a
    URDF file has with other numbers: the wider of two limits, a missing tensor, and moments that
    are rounding.

    Parameters
    ----------
    path : path
        File with the ending .toml, .urdf, .xacro, .xml or .mjcf.
    sidecar : path, optional
        TOML file beside a URDF or MJCF file. Default: the file of the same name with the ending
        .toml in its folder, if it exists.
    keep_fixed : bool
        Whether links on fixed joints of a URDF file keep their own mass and shapes. Default: they
        are frames, bodies without mass on `Fixed` joints; mass and shapes are part of the body
        that carries them.
    xacro : mapping of str to str, optional
        Values of the arguments of a xacro file; they go before those of the sidecar.
    packages : mapping of str to path, optional
        Folders of packages that a xacro file names and that are not found.

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
    return _load(path, sidecar, keep_fixed, (xacro or {}, packages or {}))


def _load(
    path: str | PathLike[str],
    sidecar: str | PathLike[str] | None = None,
    keep_fixed: bool = False,
    macros: tuple[Mapping[str, str], Mapping[str, str | Path]] = ({}, {}),
    trail: tuple[Path, ...] = (),
) -> Mechanism:
    """Read a robot that the files of `trail` mount, one in the other, from the outermost on."""
    if file_named(path).suffix.lower() in (".urdf", ".xacro"):
        from concur.io._urdf import load_urdf
        from concur.io._urdf_xacro import Macros

        return load_urdf(path, sidecar, keep_fixed, Macros(*macros), held=bool(trail))
    if file_named(path).suffix.lower() in (".xml", ".mjcf") and not keep_fixed:
        from concur.io._mjcf import load_mjcf

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
    given = build(ROBOT, data, path, maker=dict)
    mounts = given.pop("mount", ())
    folder = Path(path).resolve().parent
    given["bodies"] = [_with_meshes(body, folder) for body in given["bodies"]]
    motors = given.get("motors", ())
    for body, field, motor in repeated_limits(given["bodies"], motors) if motors else ():
        raise fault(
            path,
            f'[[bodies]] "{body.name}"',
            field,
            expected=f"no limit that the motor `{motor.name}` states, behind its gear",
            came=f"{getattr(body, field)[0]:g}",
            cure=f"Remove `{field}`: the limits of a motor hold at its joint.",
        )
    try:
        if not mounts:
            return Mechanism(**given)
        arms = mounted(given, mounts, path, _load, (*trail, Path(path).resolve()))
        return assembled(given, arms)
    except ConcurError as error:
        with located(path, *blame(error, given)):
            raise


def _with_meshes(body: Body, folder: Path) -> Body:
    """The body with the files of its meshes relative to a folder."""
    if not any(shape.file for shape in body.shape):
        return body
    shapes = [replace(s, file=str(folder / s.file)) if s.file else s for s in body.shape]
    return replace(body, shape=shapes)


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
