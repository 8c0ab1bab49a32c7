"""Elements of URDF files, and of extensions in use: read, listed or refused.

The table is the specification of URDF with the extensions of Gazebo, ros2_control, Drake, Bullet
and MuJoCo. An element or attribute that is not in it is refused if its name, or a link that it
names, shows that it acts on the motion, and listed otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from concur.errors import shown
from concur.io._unread import Part, Unread, first_names, is_mechanical
from concur.io._urdf_shapes import mesh_file
from concur.io._urdf_xacro import Macros
from concur.io._urdf_xml import UNDECLARED, Node
from concur.robot import mesh_formats

READ = None
"""Rule of what the reader takes over."""


@dataclass(frozen=True)
class Rule:
    """Meaning of an element or attribute; refused ones change the motion, if not at `rest`."""

    meaning: str
    refused: bool = False
    rest: tuple[str, ...] = ()  # values, in words, with which it has no effect
    inside: str = ""  # context in which its children are looked up


def _listed(meaning: str, inside: str = "") -> Rule:
    return Rule(meaning, inside=inside)


def _refused(meaning: str, *rest: str) -> Rule:
    return Rule(meaning, True, rest)


_ZERO = ("0", "")
_STRICT = ("origin@", "axis@", "mass@", "inertia@", "mimic@")
"""Contexts in which an unknown attribute acts on the motion, unless it is zero or a note."""
_SI = ("", "si", "m", "kg", "rad", "kg m^2", "kg*m^2", "kgm2", "kg.m2")
_UNITS = dict.fromkeys(("unit", "units"), _refused("units other than those of URDF", *_SI))

_MOTORS = "motors and transmissions; torques of the model are those of the joints"
_SIMULATOR = "settings of a simulator"
_CONTACT = "contacts, friction and collisions"
_GROUPS = "groups of a planner"
_DISSIPATION = "damping and friction of joints"

CONTEXTS: dict[str, Mapping[str, Rule | None]] = {
    "robot": {
        **dict.fromkeys(("link", "joint"), READ),
        "material": READ,
        "transmission": _listed(_MOTORS),
        "ros2_control": _listed(_MOTORS),
        "actuator": _listed(_MOTORS),
        "gazebo": _listed(_SIMULATOR, inside="gazebo"),
        "mujoco": _listed(_SIMULATOR),
        "sensor": _listed("sensors"),
        "frame": _listed("frames"),
        **dict.fromkeys(("group", "group_state", "end_effector"), _listed(_GROUPS)),
        "disable_collisions": _listed(_CONTACT),
        "drake:proximity_properties": _listed(_CONTACT),
        "drake:collision_filter_group": _listed(_CONTACT),
        "collision_filter_group": _listed(_CONTACT),
        "loop_joint": _refused("a closed loop"),
        "drake:joint": _refused("a joint of another kind"),
        "drake:ball_constraint": _refused("a closed loop"),
        "drake:linear_bushing_rpy": _refused("a spring between links"),
        "force_element": _refused("a force between links"),
        "cable_length_constraint": _refused("a cable"),
    },
    "robot@": dict.fromkeys(("name", "version", "type"), READ),
    "link": {
        **dict.fromkeys(("inertial", "visual", "collision"), READ),
        "contact": _listed(_CONTACT),
        "self_collision_checking": _listed(_CONTACT),
        "sensor": _listed("sensors"),
        "audio_source": _listed(_SIMULATOR),
        "gravity": _refused("a link without gravity", "1", "true"),
    },
    "link@": {
        **dict.fromkeys(("name", "type"), READ),
        "drake_ignore": _refused("a link that Drake leaves out", "false"),
    },
    "inertial": dict.fromkeys(("origin", "mass", "inertia"), READ),
    "joint": {
        **dict.fromkeys(("origin", "parent", "child", "axis", "limit", "mimic"), READ),
        "dynamics": READ,  # its attributes are looked up
        "calibration": _listed("calibration of sensors"),
        "safety_controller": _listed("limits of a controller"),
        "joint_properties": _listed(_DISSIPATION),
        "hardwareInterface": _listed(_MOTORS),
        "drake:rotor_inertia": Rule("the inertia of a rotor", True, _ZERO),
        "drake:gear_ratio": _listed(_MOTORS),
        "drake:controller_gains": _listed("gains of a controller"),
        "drake:screw_thread_pitch": _refused("a screw"),
        "screw_thread_pitch": _refused("a screw"),
    },
    "joint@": {
        **dict.fromkeys(("name", "type"), READ),
        "drake_ignore": _refused("a joint that Drake leaves out", "false"),
    },
    "axis@": dict.fromkeys(("xyz",), READ),
    "origin@": {**dict.fromkeys(("xyz", "rpy"), READ), **_UNITS},
    "mass@": {**dict.fromkeys(("value",), READ), **_UNITS},
    "inertia@": {**dict.fromkeys(("ixx", "ixy", "ixz", "iyy", "iyz", "izz"), READ), **_UNITS},
    "limit@": {
        **_UNITS,
        **dict.fromkeys(("lower", "upper", "effort", "velocity"), READ),
        **dict.fromkeys(
            ("acceleration", "deceleration", "jerk", "drake:acceleration"),
            _listed("limits of acceleration"),
        ),
        **dict.fromkeys(("gear_torque", "gear_velocity"), _listed("limits of gears")),
    },
    "mimic@": dict.fromkeys(("joint", "multiplier", "offset"), READ),
    "dynamics@": {
        **dict.fromkeys(
            ("damping", "friction", "coulomb", "viscous", "lossmodel"),
            Rule(_DISSIPATION, rest=_ZERO),
        ),
        "drake:coulomb_window": _listed(_DISSIPATION),
        "coulomb_window": _listed(_DISSIPATION),
        **dict.fromkeys(
            ("stiffness", "spring_stiffness", "k_stiffness", "springStiffness"),
            Rule("a spring in a joint", True, _ZERO),
        ),
        **dict.fromkeys(
            ("reference", "spring_reference", "springReference", "k_position"),
            _listed("rest positions of springs"),
        ),
        **dict.fromkeys(
            ("armature", "rotor_inertia", "inertia"), Rule("the inertia of a rotor", True, _ZERO)
        ),
    },
    "gazebo": {
        "joint": _refused("a joint of SDF, which may close a loop"),
        "link": _refused("a link of SDF"),
        "model": _refused("a model of SDF"),
        "include": _refused("a model of SDF"),
        "frame": _listed("frames"),
        "static": _refused("a model that does not move", "0", "false"),
        "turnGravityOff": _refused("a link without gravity", "0", "false"),
        "gravity": _refused("a link without gravity", "1", "true"),
        "springStiffness": Rule("a spring in a joint", True, _ZERO),
        "springReference": _listed("rest positions of springs"),
        "implicitSpringDamper": _listed(_SIMULATOR),
        "initial_joint_position": _listed(_SIMULATOR),
        "provideFeedback": _listed(_SIMULATOR),
        "disableFixedJointLumping": _listed(_SIMULATOR),
        "preserveFixedJoint": _listed(_SIMULATOR),
        "gripper": _listed(_SIMULATOR),
        "plugin": _listed("plugins of a simulator"),
        "sensor": _listed("sensors"),
        "dampingFactor": _listed(_DISSIPATION),
    },
}
"""Rules of children and, with @, of attributes, by the context in which they stand."""


def unread_urdf(root: Node, found: Unread, macros: Macros) -> None:
    """Add the parts of a file that the robot lacks."""
    for element in root.element.iter():
        context, prefixed = _name(element), element.getparent()
        parent = "" if prefixed is None else _name(prefixed)
        if context in ("robot", "link", "inertial", "joint") and _is_own(element, root.element):
            _children(element, context, _owner(element), found)
            _attributes(element, context, found)
        elif parent in ("joint", "inertial") and _is_own(prefixed, root.element):
            _attributes(element, context, found)
        if context == "joint" and _is_own(element, root.element):
            _without_meaning(element, found)
    meshes = [Node(mesh, root.path) for mesh in root.element.iter("mesh")]
    lost = [mesh.element.get("filename", "") for mesh in meshes if not mesh_file(mesh, macros)]
    if lost:
        names = first_names(list(dict.fromkeys(PurePath(name).name for name in lost)))
        why = f"shapes that are not drawn: no such file, or none of {', '.join(mesh_formats())}"
        found.parts.append(Part("mesh", "", f"{why}: {names}"))
    for prefix, uri in root.element.nsmap.items():
        if uri.startswith(UNDECLARED):
            _add(f"xmlns:{prefix}", _listed(_lacking(root.element, uri)), "", "", 0, found)


def _lacking(root: Any, uri: str) -> str:
    """Meaning of a prefix without declaration, with the lines that use it."""
    start = f"{{{uri}}}"
    lines = [
        str(element.sourceline)
        for element in root.iter()
        if any(str(name).startswith(start) for name in (element.tag, *element.attrib))
    ]
    more = "" if len(lines) < 2 else f" and {len(lines) - 1} more"
    return (
        f"a declaration that the file lacks; read as that of an extension (line {lines[0]}{more})"
    )


def _without_meaning(joint: Any, found: Unread) -> None:
    """Limits and couplings of joints that have none in the model."""
    kind = joint.get("type")
    for tag, kinds in (("limit", ("planar", "floating")), ("mimic", ("fixed",))):
        for child in joint.findall(tag) if kind in kinds else ():
            meaning = f"of {kind} joints"
            found.parts.append(Part(tag, _owner(joint), meaning, line=child.sourceline))


def _name(element: Any) -> str:
    """Tag with its prefix; that of a default namespace is dropped."""
    local = str(element.tag).rpartition("}")[2]
    return f"{element.prefix}:{local}" if element.prefix else local


def _is_own(element: Any, root: Any) -> bool:
    """Whether an element is one of URDF and not one of an extension that contains such names."""
    depth = {"robot": 0, "link": 1, "joint": 1, "inertial": 2}[_name(element)]
    while depth and element is not None:
        element, depth = element.getparent(), depth - 1
    return element is root


def _owner(element: Any) -> str:
    """Name of the link or joint of an element; empty for others."""
    while element is not None and _name(element) not in ("link", "joint"):
        element = element.getparent()
    return "" if element is None else f"{_name(element)} `{shown(element.get('name', ''))}`"


def _children(element: Any, context: str, owner: str, found: Unread) -> None:
    for child in element:
        name = _name(child)
        rule = CONTEXTS[context].get(name, _unknown(name, child))
        if rule is None:
            continue
        if context == "gazebo" and name not in CONTEXTS[context] and not rule.refused:
            name, rule = context, _listed(_SIMULATOR)
        if rule.inside:
            own = child.get("reference")
            inner = f"`{shown(own)}`" if own else owner
            _children(child, rule.inside, inner, found)
            if len(child):
                continue
        label = owner or shown(child.get("name") or "", 60)
        _add(name, rule, _value(child), label, child.sourceline, found)


def _attributes(element: Any, context: str, found: Unread) -> None:
    rules = CONTEXTS.get(f"{context}@", {})
    for key, value in element.attrib.items():
        uri, _, local = str(key).rpartition("}")
        if uri:  # the name in the table with a prefix, or an own one that is not read
            prefix = next((p for p, own in element.nsmap.items() if own == uri[1:]), None)
            named = f"{prefix}:{local}"
            local = local if named not in rules and rules.get(local) else named
        strict = f"{context}@" in _STRICT and (context == "mimic" or _is_numbers(value))
        if strict and local not in rules:
            rule: Rule | None = Rule("an unknown attribute that acts on the motion", True, _ZERO)
        elif f"{context}@" in CONTEXTS and local not in rules:
            rule = _unknown(local, None)
        else:
            rule = rules.get(local)
        if rule is not None:
            label = f"{context}@{local}" if context != "dynamics" else "dynamics"
            _add(label, rule, value, _owner(element), element.sourceline, found)


def _value(element: Any) -> str:
    """Value of an element: its attribute `value`, or its text."""
    return str(element.get("value") or element.text or "").strip().lower()


def _unknown(name: str, element: Any) -> Rule:
    """Rule of an element, or attribute, that the table lacks."""
    names_links = element is not None and any(
        _name(inner) in ("parent", "child", "link1", "link2", "joint1", "joint2")
        or {"link", "link1", "link2", "joint1", "joint2"} & set(inner.attrib)
        for inner in element.iter()
    )
    if is_mechanical(name) or names_links:
        return _refused("an unknown element that acts on the motion")
    return _listed("an unknown element")


def _add(name: str, rule: Rule, value: str, owner: str, line: int, found: Unread) -> None:
    if rule.rest and _is_rest(value, rule.rest):
        return
    found.parts.append(Part(name, owner, rule.meaning, rule.refused, line))


def _is_numbers(value: str) -> bool:
    try:
        return bool([float(word) for word in value.split()])
    except ValueError:
        return False


def _is_rest(value: str, rest: tuple[str, ...]) -> bool:
    if value.strip().lower() in rest:
        return True
    numbers = {float(word) for word in rest if word.isdigit()}
    try:
        return all(float(word) in numbers for word in value.split())
    except ValueError:
        return False
