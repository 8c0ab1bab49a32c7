"""Writer of robots as URDF files, with a sidecar for what URDF cannot express."""

from __future__ import annotations

import math
from typing import Any
from xml.etree import ElementTree

import numpy as np
from scipy.spatial.transform import Rotation

from concur.interop import chain, is_native, roll_pitch_yaw, urdf_joints
from concur.robot import Body, Pose, Shape, Tree, joints
from concur.writers._names import add, bounded, check, check_gears, check_unique, refuse
from concur.writers._toml import add_parts

_BASES = {joints.Free: "free", joints.Planar: "planar", joints.Fixed: "fixed"}
_CHAIN = " The next {} joints are one {} joint of the robot; the links between them have no mass. "


def to_urdf(robot: Tree) -> tuple[str, str]:
    """Write a robot as text in URDF, and its sidecar as text in TOML.

    Each body is a link of its name, carried by a joint of its `joint_name`. A `Free` joint is
    `floating`, the `Planar` joint of a base with the normal z is `planar`; other joints with
    several degrees of freedom are chains of joints with massless links between them. The sidecar
    has the base, gravity, actuated joints, wheels, their steering, motors and springs.

    Parameters
    ----------
    robot : Tree
        The robot.

    Returns
    -------
    urdf, sidecar : str
        Contents of both files.

    Raises
    ------
    DescriptionError
        If URDF cannot express a joint or a wheel, or a name would occur twice.
    """
    import tomlkit

    check(robot)
    root = ElementTree.Element("robot", name=robot.name)
    base = robot.base
    kind = _BASES.get(type(base.joint))
    placed = base.placement != Pose() or getattr(base.joint, "normal", (0, 0, 1)) != (0, 0, 1)
    if robot.wheels:
        if kind != "planar" or not is_native(base):
            came = f"a base on a {type(base.joint).__name__} joint"
            expected = "wheels under a base on a Planar joint with the normal z"
            refuse(robot, f"body `{base.name}`", expected, came, "Keep the robot in TOML.")
        for wheel in robot.wheels:
            if isinstance(robot.bodies[robot.index(wheel.body)].joint, joints.Spherical):
                expected = "wheels on joints that URDF has"
                cure = "Keep the robot in TOML."
                refuse(
                    robot, f"wheel `{wheel.body}`", expected, "a ball on a Spherical joint", cure
                )
    check_gears(robot)
    to_world = kind is None or placed
    if to_world:
        add(root, "link", name="world")
    names = ["world"] if to_world else []
    joint_names: list[str] = []
    for body in robot.bodies:
        parent = body.parent or ("world" if to_world else None)
        if parent is not None:
            joint_names += _add_joints(robot, root, body, parent, names)
        names.append(body.name)
        _add_link(root, body)
    check_unique(robot, names, "link", () if to_world else ("world",))
    check_unique(robot, joint_names, "joint", ())
    ElementTree.indent(root)
    side = tomlkit.document()
    if any(robot.gravity):
        side.add("gravity", tomlkit.item(list(robot.gravity)))
    if not to_world:
        side.add("base", tomlkit.item(kind))
    moving = [
        name
        for body in robot.bodies
        if body.joint_label in (robot.actuated or ())
        for name in urdf_joints(body)
    ]
    side.add("actuated", tomlkit.item(moving))
    for spring in robot.springs:
        if spring.joint is not None and spring.joint not in joint_names:
            expected, cure = "springs of joints that URDF has", "Keep the robot in TOML."
            refuse(robot, f"spring `{spring.name}`", expected, "a freedom of several", cure)
    add_parts(side, robot, ("wheels", "steering", "motors", "springs"))
    xml = '<?xml version="1.0" encoding="utf-8"?>\n'
    return xml + ElementTree.tostring(root, encoding="unicode") + "\n", tomlkit.dumps(side)


def _add_link(root: ElementTree.Element, body: Body) -> None:
    link = add(root, "link", name=body.name)
    for shape in body.shape:
        _visual(link, shape)
    if body.inertia.mass:
        inertial = add(link, "inertial")
        add(inertial, "origin", xyz=body.inertia.com)
        add(inertial, "mass", value=body.inertia.mass)
        I = 0.5 * (body.inertia.tensor + body.inertia.tensor.T)
        entries = {f"i{'xyz'[i]}{'xyz'[j]}": I[i, j] for i in range(3) for j in range(i, 3)}
        add(inertial, "inertia", **entries)


def _visual(link: ElementTree.Element, shape: Shape) -> None:
    """Add a shape; URDF has no capsules: a cylinder and two balls."""
    place, turn = np.array(shape.placement.translation), shape.placement.rotation_matrix
    parts = [(shape.kind, shape.size, place)]
    if shape.kind == "capsule":
        radius, length = shape.size
        parts = [("cylinder", shape.size, place)]
        parts += [("sphere", [radius], place + side * length * turn[:, 2]) for side in (0.5, -0.5)]
    for kind, size, center in parts:
        visual = add(link, "visual")
        _origin(visual, center, turn)
        named: dict[str, Any] = dict(zip(("radius", "length"), size, strict=False))
        if kind in ("box", "mesh"):
            named = {"size": size} if kind == "box" else {"filename": shape.file, "scale": size}
        add(add(visual, "geometry"), kind, **named)


def _add_joints(
    robot: Tree, root: ElementTree.Element, body: Body, parent: str, links: list[str]
) -> tuple[str, ...]:
    """Add the joints that carry a body, and the links between them."""
    joint = body.joint
    if isinstance(joint, joints.Helical):
        refuse(
            robot,
            f"body `{body.name}`",
            "joints that URDF has, or chains of them",
            "a Helical joint",
            "Replace it by a Revolute or Prismatic joint, or keep the robot in TOML.",
        )
    names = urdf_joints(body)
    place = Rotation.from_quat(body.placement.rotation).as_matrix()
    if is_native(body) or not joint.nv:
        kind = {joints.Free: "floating", joints.Planar: "planar"}.get(type(joint), "fixed")
        element = _joint(root, names[0], kind, parent, body.name)
        _origin(element, np.array(body.placement.translation), place)
        if kind == "planar":
            add(element, "axis", xyz="0 0 1")
        return names
    if isinstance(joint, joints.Spherical):
        kinds, axes = ["hinge"] * 3, np.eye(3)
    else:
        found = chain(joint)
        kinds, axes = [link.kind for link in found], np.array([link.axis for link in found])
    if len(names) > 1:
        comment = _CHAIN.format(len(names), type(joint).__name__)
        root.append(ElementTree.Comment(comment))
    bounds = body.limits if joint.nq == joint.nv else ((-math.inf, math.inf),) * joint.nv
    for k, name in enumerate(names):
        child = body.name if k == len(names) - 1 else name
        lower, upper = bounds[k]
        endless = kinds[k] == "hinge" and (lower, upper) == (-math.inf, math.inf)
        kind = "prismatic" if kinds[k] == "slide" else "continuous" if endless else "revolute"
        element = _joint(root, name, kind, parent, child)
        if k == 0:
            _origin(element, np.array(body.placement.translation), place)
        add(element, "axis", xyz=axes[k])
        most = {"effort": body.torque_limit[k], "velocity": body.speed_limit[k]}
        if not endless:
            most |= {"lower": lower, "upper": upper}
        if not endless or min(most.values()) < math.inf:
            add(element, "limit", **{name: bounded(x) for name, x in most.items()})
        for mimic in robot.mimics:
            if mimic.body == body.name:
                follows = {"multiplier": mimic.multiplier, "offset": mimic.offset}
                add(element, "mimic", joint=robot.label(mimic.of), **follows)
        if child != body.name:
            add(root, "link", name=child)
            links.append(child)
        parent = child
    return names


def _joint(
    root: ElementTree.Element, name: str, kind: str, parent: str, child: str
) -> ElementTree.Element:
    element = add(root, "joint", name=name, type=kind)
    add(element, "parent", link=parent)
    add(element, "child", link=child)
    return element


def _origin(element: ElementTree.Element, translation: np.ndarray, rotation: np.ndarray) -> None:
    add(element, "origin", xyz=translation, rpy=roll_pitch_yaw(rotation))
