"""Writer of robots as MJCF, the XML of MuJoCo."""

from __future__ import annotations

import math
from typing import Any
from xml.etree import ElementTree

import numpy as np
from scipy.spatial.transform import Rotation

from concur.interop import Link, chain, mujoco
from concur.robot import Body, Mechanism, Shape, Wheel, joints, shortest_rotation
from concur.writers._contacts import SOLVER, Contacts, contact_options, support_radius
from concur.writers._names import add, bounded, check, check_gears, check_unique, refuse, text

THICKNESS = 0.1
"""Half-width of a wheel per radius: an ellipsoid, which touches the ground in one point."""

_ROLLING = {"disk": "3", "ball": "3", "rubber_ball": "4"}
"""Wheels that a contact can be, with its dimension: 4 has a moment about the normal."""


def to_mjcf(robot: Mechanism, time_step: float = 1e-3, *, contacts: Contacts | None = None) -> str:
    """Write a robot as text in MJCF.

    Each body is a body of its name, each joint, by its own name, a chain of hinges, slides and
    balls, or a free joint for a `Free` base. Coordinates are those of `concur.interop.mujoco`.
    Limits are limits of the joints, actuators are motors with the torque limits, in the order of
    the controls; `speed_limit` has no counterpart. Motors of a `Planar`, `PlanarPrismatic` or,
    below the base, `Free` joint push along fixed axes of its frame, those of the robot along axes
    of its body. A motor of `motors` is one on a fixed tendon, with its rotor and its viscous and
    Coulomb friction, a thruster a motor at a site. A joint that follows another is an equality
    constraint, which MuJoCo holds by a stiff force. The model has no contacts, unless the robot has
    wheels: a wheel touches a plane with friction, and the base gets one more slide along the
    normal, last of its joints, on which it stands on the wheels without tilting. With `contacts` it
    is free instead, and stands on wheels and supports.

    Parameters
    ----------
    robot : Mechanism
        The robot.
    time_step : float
        Step of the Runge-Kutta method, or with `contacts` of `implicitfast`, s.
    contacts : Contacts, optional
        Supports beside the wheels, and friction; then the base is on a free joint, whose
        coordinates are those of `concur.interop.mujoco(robot, free_base=True)`.

    Returns
    -------
    str
        Content of an MJCF file.

    Raises
    ------
    DescriptionError
        If MuJoCo has no such joint, a wheel follows guides, has rollers or is a slider, weight does
        not press the wheels to the ground, a moving body has no mass, or a name would occur twice.
        With `contacts` also if the base is not on a `Planar` joint without motors.
    """
    check(robot)
    root = ElementTree.Element("mujoco", model=robot.name)
    add(root, "compiler", angle="radian")
    option: dict[str, Any] = {"integrator": "RK4", "timestep": time_step, "gravity": robot.gravity}
    friction: dict[str, float] = {}
    if contacts is not None:
        friction = contacts.of(robot)
        option |= SOLVER
    elif robot.wheels:
        option |= {"cone": "elliptic", "impratio": "100"}
    options = add(root, "option", **option)
    if not robot.wheels:
        add(options, "flag", contact="disable")
    world = add(root, "worldbody")
    if robot.wheels:
        _ground(robot, world, None if contacts is None else contacts.height)
    for steering in robot.steering:
        refuse(
            robot,
            f"steering `{steering.wheel}`",
            "couplings of two joints, by polynomials",
            f"the axle of `{steering.wheel}` at the centre of rotation of its guides",
            "Keep the robot in TOML or URDF, or write it without: replace(robot, steering=()).",
        )
    made: dict[str | None, ElementTree.Element] = {None: world}
    names: list[str] = []
    motors: list[dict[str, str]] = []
    for body in robot.bodies:
        _check_mass(robot, body)
        place = body.placement
        turn = np.roll(place.rotation, 1)
        parent = made[body.parent]
        made[body.name] = own = add(
            parent, "body", name=body.name, pos=place.translation, quat=turn
        )
        found = _joints(robot, body, contacts is not None)
        for k, (link, attributes) in enumerate(found):
            attributes |= _springs_of(robot, body, k)
            names.append(attributes["name"])
            add(own, "freejoint" if link is None else "joint", **attributes)
        if body.joint_label in (robot.actuated or ()):
            motors += _joint_motors(body, found)
        if body.inertia.mass:
            mass, com, tensor = body.inertia.mass, body.inertia.com, _accepted(body.inertia.tensor)
            six = tensor[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]
            add(own, "inertial", mass=mass, pos=com, fullinertia=six)
        for shape in body.shape:
            if not shape.file:
                _drawn(own, shape)
        for wheel in robot.wheels:
            if wheel.body == body.name:
                grip = contact_options(time_step, friction[body.name]) if friction else {}
                _tyre(robot, own, wheel, grip)
    _springs_between(robot, root, made)
    if contacts is not None:
        _supports(robot, made[robot.base.name], contacts, time_step)
    check_unique(robot, (body.name for body in robot.bodies), "body", ("world",))
    check_unique(robot, names, "joint", ())
    check_gears(robot)
    _check_rotors(robot)
    motors += _geared(robot, root, made)
    if robot.mimics:
        equality = add(root, "equality")
        for mimic in robot.mimics:
            polynomial = (mimic.offset, mimic.multiplier, 0.0, 0.0, 0.0)
            ends = {"joint1": robot.label(mimic.body), "joint2": robot.label(mimic.of)}
            add(equality, "joint", **ends, polycoef=polynomial)
    if motors:
        actuator = add(root, "actuator")
        for motor in motors:
            add(actuator, "motor", **motor)
    if robot.keyframes:
        stored, order = add(root, "keyframe"), mujoco(robot, free_base=contacts is not None)
        for name in robot.keyframes:
            q, v = robot.keyframe(name)
            add(stored, "key", name=name, qpos=order.to_q(q), qvel=order.to_v(q, v))
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode") + "\n"


def _springs_of(robot: Mechanism, body: Body, k: int) -> dict[str, Any]:
    """Attributes of a joint of MuJoCo by the springs of the freedom k of a robot's joint."""
    names = body.of_each(body.joint.freedom_names)
    own = [s for s in robot.springs if k < len(names) and s.joint == names[k]]
    if not own:
        return {}
    stiffness = sum(spring.stiffness for spring in own)
    pull = sum(spring.stiffness * spring.rest for spring in own)
    found = {"stiffness": stiffness, "springref": pull / stiffness if stiffness else 0.0}
    return found | {"damping": sum(spring.damping for spring in own)}


def _springs_between(
    robot: Mechanism, root: ElementTree.Element, made: dict[str | None, ElementTree.Element]
) -> None:
    """Springs between points as tendons between sites."""
    springs = [spring for spring in robot.springs if spring.joint is None]
    tendons = add(root, "tendon") if springs else root
    for k, spring in enumerate(springs):
        ends = (spring.body, spring.point, "a"), (spring.other, spring.other_point, "b")
        given = {"stiffness": spring.stiffness, "damping": spring.damping}
        one = add(tendons, "spatial", name=f"spring_{k}", springlength=spring.rest, **given)
        for body, point, end in ends:
            name = f"spring_{k}_{end}"
            add(made[body], "site", name=name, pos=point)
            add(one, "site", site=name)


def _geom(
    parent: ElementTree.Element,
    kind: str,
    size: Any,
    place: Any,
    turn: Any = None,
    **more: str,
) -> None:
    """Add a geom without mass; its contacts are those of `more`."""
    quat = None if turn is None else np.roll(turn, 1)
    given = {"mass": "0", "contype": "0", "conaffinity": "0", **more}
    add(parent, "geom", type=kind, size=size, pos=place, quat=quat, **given)


def _drawn(body: ElementTree.Element, shape: Shape) -> None:
    """Add a shape; MuJoCo has half of all lengths but radii."""
    size = np.array(shape.size)
    size[slice(None) if shape.kind == "box" else slice(1, None)] /= 2.0
    _geom(body, shape.kind, size, shape.placement.translation, shape.placement.rotation)


def _joints(
    robot: Mechanism, body: Body, free_base: bool
) -> list[tuple[Link | None, dict[str, str]]]:
    """Joints of MuJoCo that make one of a robot, outermost first, with their attributes."""
    if body.parent is None and (free_base or isinstance(body.joint, joints.Free)):
        return [(None, {"name": body.joint_label})]
    if isinstance(body.joint, joints.Helical):
        refuse(
            robot,
            f"body `{body.name}`",
            "joints that MuJoCo has",
            "a Helical joint, a screw",
            "Replace it by a Revolute or Prismatic joint, or keep the robot in TOML.",
        )
    links = list(chain(body.joint))
    if robot.wheels and body is robot.base:
        links.append(Link("lift", "slide", _normal(robot)))
    found: list[tuple[Link | None, dict[str, str]]] = []
    bounds = iter(body.limits)
    for link in links:
        attributes = {
            "name": f"{body.joint_label}_{link.suffix}" if link.suffix else body.joint_label,
            "type": link.kind,
        }
        if link.kind != "ball":
            attributes["axis"] = text(link.axis)
            lower, upper = next(bounds, (-math.inf, math.inf))
            if math.isfinite(lower) or math.isfinite(upper):
                attributes["range"] = text([bounded(lower), bounded(upper)])
        found.append((link, attributes))
    return found


def _joint_motors(
    body: Body, found: list[tuple[Link | None, dict[str, str]]]
) -> list[dict[str, str]]:
    """Motors of a joint, one for each freedom."""
    motors: list[dict[str, str]] = []
    for link, attributes in found:
        ball = link is not None and link.kind == "ball"
        for k in range(3 if ball else 1):
            motor = {"joint": attributes["name"]}
            if ball:
                motor["gear"] = text([*np.eye(3)[k], 0.0, 0.0, 0.0])
            most = body.torque_limit[len(motors)]
            if math.isfinite(most):
                motor["ctrlrange"] = text([-most, most])
            motors.append(motor)
    suffixes, label = body.joint.freedom_names, body.joint_label
    return [
        {"name": label if len(motors) == 1 else f"{label}_{suffix}", **motor}
        for suffix, motor in zip(suffixes, motors, strict=True)
    ]


def _geared(
    robot: Mechanism, root: ElementTree.Element, made: dict[str | None, ElementTree.Element]
) -> list[dict[str, str]]:
    """Motors on several joints, as fixed tendons, and thrusters at sites."""
    motors, limits = [], dict(zip(robot.control_names, robot.control_limits, strict=True))
    geared = any(motor.ratios for motor in robot.motors)
    tendons = add(root, "tendon") if geared else None
    for motor in robot.motors:
        name, found = motor.name, {"name": motor.name}
        if tendons is not None and motor.ratios:
            viscous, coulomb, _ = motor.friction
            rubs = {"damping": viscous or None, "frictionloss": coulomb or None}
            tendon = add(tendons, "fixed", name=name, armature=motor.rotor or None, **rubs)
            for joint, ratio in motor.ratios.items():
                add(tendon, "joint", joint=joint, coef=ratio)
            found["tendon"] = name
        else:
            add(made[motor.body], "site", name=name, pos=motor.point)
            found |= {"site": name, "gear": text(motor.wrench or ())}
        most = limits[name]
        if math.isfinite(most):
            found["ctrlrange"] = text([-most, most])
        motors.append(found)
    return motors


def _check_rotors(robot: Mechanism) -> None:
    """Refuse rotors that take part in the momentum: MuJoCo has their reflected inertia only."""
    for rotor in robot.terms.rotors:
        if rotor.carried:
            refuse(
                robot,
                f"motor `{robot.motors[rotor.motor].name}`, `rotor`",
                "rotors that MuJoCo has: their reflected inertia, as `armature`",
                "a rotor on a body that turns about its shaft",
                "Keep the robot in TOML, or leave the gyroscopic share out by shaft = [0, 0, 0].",
            )


def _check_mass(robot: Mechanism, body: Body) -> None:
    """Refuse a moving body without mass: MuJoCo does, unless what is fixed to it has a mass."""
    waiting = [body]
    while body.joint.nv and waiting:
        own = waiting.pop()
        if own.inertia.mass:
            return
        waiting += [b for b in robot.bodies if b.parent == own.name and not b.joint.nv]
    if body.joint.nv:
        refuse(
            robot,
            f"body `{body.name}`",
            "a mass on each moving body, as MuJoCo requires",
            "a body without mass",
            "Give it an inertia, or write its joint and the next one as one joint.",
        )


def _accepted(tensor: np.ndarray) -> np.ndarray:
    """Tensor that MuJoCo accepts: it refuses moments of zero and, by rounding, flat bodies."""
    values = np.linalg.eigvalsh(tensor)
    flat = (1.0 + 1e-14) * values[2] - values[0] - values[1]
    lack = max(1e-12 - values[0], flat, 0.0)
    return np.asarray(tensor + lack * np.eye(3))


# --- wheels ---------------------------------------------------------------------------------------


def _normal(robot: Mechanism) -> tuple[float, ...]:
    """Normal of the plane of the wheels in the base's joint frame."""
    return tuple(robot.base.joint.normal)  # type: ignore[attr-defined]


def _ground(robot: Mechanism, world: ElementTree.Element, height: float | None) -> None:
    """Add the plane under the wheels; only wheels touch it."""
    if robot.platforms != (0,) or any(wheel.support for wheel in robot.wheels):
        refuse(
            robot,
            f"wheel `{robot.wheels[0].body}`",
            "wheels on the plane of the base",
            "wheels that roll on another body or surface",
            "Keep the robot in TOML.",
        )
    place = robot.base.placement
    rotation = Rotation.from_quat(place.rotation)
    normal = rotation.apply(_normal(robot))
    if not np.dot(normal, robot.gravity) < 0.0:
        refuse(
            robot,
            "`gravity`",
            "gravity that presses the wheels to the ground, as contacts of MuJoCo need it",
            f"{tuple(robot.gravity)}",
            "Set gravity = [0.0, 0.0, -9.81], or write a robot without wheels.",
        )
    if height is None:
        height = robot.ground_height or 0.0
    axes = rotation * Rotation.from_matrix(shortest_rotation(_normal(robot)))
    at = np.array(place.translation) + height * normal
    _geom(world, "plane", (0.0, 0.0, 1.0), at, axes.as_quat(), name="ground", contype="1")


def _tyre(robot: Mechanism, body: ElementTree.Element, wheel: Wheel, grip: dict[str, str]) -> None:
    """Add the surface of a wheel."""
    if wheel.kind not in _ROLLING:
        refuse(
            robot,
            f"wheel `{wheel.body}`",
            f"a wheel that a contact can be: {', '.join(_ROLLING)}",
            f"`{wheel.kind}`: contacts of MuJoCo grip in both directions",
            "Model rollers as bodies, or keep the robot in TOML.",
        )
    kind, size, turn = "sphere", [wheel.radius], None
    if wheel.kind == "disk":
        turn = Rotation.from_matrix(shortest_rotation(tuple(robot.wheel_axis(wheel)))).as_quat()
        kind, size = "ellipsoid", [wheel.radius, wheel.radius, THICKNESS * wheel.radius]
    more = {"name": wheel.body, **grip} if grip else {}
    touch = {"condim": _ROLLING[wheel.kind], "conaffinity": "1", **more}
    _geom(body, kind, size, wheel.center, turn, **touch)


def _supports(
    robot: Mechanism, base: ElementTree.Element, contacts: Contacts, time_step: float
) -> None:
    """Add spheres without friction, which touch the ground in the points of the supports."""
    normal, radius = np.array(_normal(robot)), support_radius(robot)
    height = contacts.height
    if height is None:
        height = robot.ground_height or 0.0
    check_unique(robot, [*contacts.supports, *(w.body for w in robot.wheels)], "contact", ())
    for name, point in contacts.supports.items():
        center = np.array(point) + (height + radius - normal @ np.array(point)) * normal
        touch = {"condim": "1", "conaffinity": "1", **contact_options(time_step, 0.0)}
        _geom(base, "sphere", [radius], center, name=name, **touch)
