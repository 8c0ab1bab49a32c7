"""Elements of URDF files, and of extensions in use: read, listed or refused.

The table is the specification of URDF with the extensions of Gazebo, ros2_control, Drake, Bullet
and MuJoCo. An element or attribute that is not in it is refused if its name, or a link that it
names, shows that it acts on the motion, and listed otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from concur.errors import shown
from concur.io._unread import Part, Unread, first_names, is_mechanical
from concur.io._urdf_shapes import mesh_file
from concur.io._urdf_xacro import Macros
from concur.io._urdf_xml import ATTRIBUTES, TAGS, UNDECLARED, Node, owner_of
from concur.robot import mesh_formats


@dataclass(frozen=True)
class Rule:
    """Meaning of an element or attribute; refused ones change the motion, if not at `rest`."""

    meaning: str
    refused: bool = False
    rest: tuple[str, ...] = ()  # values, in words, with which it has no effect


_ZERO = ("0", "")
_NO, _YES = ("0", "false"), ("1", "true")
_SI = ("", "si", "m", "kg", "rad", "kg m^2", "kg*m^2", "kgm2", "kg.m2")
_STRICT = ("origin@", "axis@", "mass@", "inertia@", "mimic@")
"""Contexts in which an unknown attribute acts on the motion, unless it is zero or a note."""

_MOTORS = "motors and transmissions; torques of the model are those of the joints"
_SIMULATOR = "settings of a simulator"
_CONTACT = "contacts, friction and collisions"
_DISSIPATION = "damping and friction of joints"
_SPRING, _ROTOR, _REST = (
    "a spring in a joint",
    "the inertia of a rotor",
    "rest positions of springs",
)
_WEIGHTLESS, _UNITS = "a link without gravity", "units other than those of URDF"

LISTED = (
    ("robot", _MOTORS, "transmission ros2_control actuator"),
    ("robot", _SIMULATOR, "gazebo mujoco"),  # children of gazebo are looked up
    ("robot", "sensors", "sensor"),
    ("robot", "frames", "frame"),
    ("robot", "groups of a planner", "group group_state end_effector"),
    ("robot", _CONTACT, "disable_collisions collision_filter_group drake:collision_filter_group"),
    ("robot", _CONTACT, "drake:proximity_properties"),
    ("link", _CONTACT, "contact self_collision_checking"),
    ("link", "sensors", "sensor"),
    ("link", _SIMULATOR, "audio_source"),
    ("joint", "calibration of sensors", "calibration"),
    ("joint", "limits of a controller", "safety_controller"),
    ("joint", _DISSIPATION, "joint_properties"),
    ("joint", _MOTORS, "hardwareInterface drake:gear_ratio"),
    ("joint", "gains of a controller", "drake:controller_gains"),
    ("limit@", "limits of acceleration", "acceleration deceleration jerk drake:acceleration"),
    ("limit@", "limits of gears", "gear_torque gear_velocity"),
    ("dynamics@", _DISSIPATION, "damping friction coulomb viscous lossmodel"),
    ("dynamics@", _DISSIPATION, "drake:coulomb_window coulomb_window"),
    ("dynamics@", _REST, "reference spring_reference springReference k_position"),
    ("gazebo", _SIMULATOR, "implicitSpringDamper initial_joint_position provideFeedback gripper"),
    ("gazebo", _SIMULATOR, "disableFixedJointLumping preserveFixedJoint"),
    ("gazebo", "frames", "frame"),
    ("gazebo", "plugins of a simulator", "plugin"),
    ("gazebo", "sensors", "sensor"),
    ("gazebo", _DISSIPATION, "dampingFactor"),
    ("gazebo", _REST, "springReference"),
)
"""Context, meaning and names of what is listed; dissipation of zero is not."""

REFUSED = (
    ("robot", "a closed loop", "loop_joint drake:ball_constraint", ()),
    ("robot", "a joint of another kind", "drake:joint", ()),
    ("robot", "a spring between links", "drake:linear_bushing_rpy", ()),
    ("robot", "a force between links", "force_element", ()),
    ("robot", "a cable", "cable_length_constraint", ()),
    ("link", _WEIGHTLESS, "gravity", _YES),
    ("link@", "a link that Drake leaves out", "drake_ignore", ("false",)),
    ("joint", _ROTOR, "drake:rotor_inertia", _ZERO),
    ("joint", "a screw", "drake:screw_thread_pitch screw_thread_pitch", ()),
    ("joint@", "a joint that Drake leaves out", "drake_ignore", ("false",)),
    ("origin@", _UNITS, "unit units", _SI),
    ("mass@", _UNITS, "unit units", _SI),
    ("inertia@", _UNITS, "unit units", _SI),
    ("limit@", _UNITS, "unit units", _SI),
    ("dynamics@", _SPRING, "stiffness spring_stiffness k_stiffness springStiffness", _ZERO),
    ("dynamics@", _ROTOR, "armature rotor_inertia inertia", _ZERO),
    ("gazebo", "a joint of SDF, which may close a loop", "joint", ()),
    ("gazebo", "a link of SDF", "link", ()),
    ("gazebo", "a model of SDF", "model include", ()),
    ("gazebo", "a model that does not move", "static", _NO),
    ("gazebo", _WEIGHTLESS, "turnGravityOff", _NO),
    ("gazebo", _WEIGHTLESS, "gravity", _YES),
    ("gazebo", _SPRING, "springStiffness", _ZERO),
)
"""Context, meaning and names of what changes the motion, and values with which it does not."""

CONTEXTS: dict[str, dict[str, Rule | None]] = {
    **{context: dict.fromkeys(names) for context, names in TAGS.items()},
    **{f"{context}@": dict.fromkeys(names) for context, names in ATTRIBUTES.items()},
    "robot@": dict.fromkeys(("name", "version", "type")),
    "link@": dict.fromkeys(("name", "type")),
    "dynamics@": {},
    "gazebo": {},
}
"""Rules of elements and, with @, of attributes, by context; none of what the reader takes over."""

CONTEXTS["robot"]["material"] = None
for _context, _meaning, _names in LISTED:
    _rule = Rule(_meaning, rest=_ZERO if _meaning == _DISSIPATION else ())
    CONTEXTS[_context] |= dict.fromkeys(_names.split(), _rule)
for _context, _meaning, _names, _rest in REFUSED:
    CONTEXTS[_context] |= dict.fromkeys(_names.split(), Rule(_meaning, True, _rest))


def unread_urdf(root: Node, found: Unread, macros: Macros) -> None:
    """Add the parts of a file that the robot lacks."""
    for element in root.element.iter():
        context, prefixed = _name(element), element.getparent()
        parent = "" if prefixed is None else _name(prefixed)
        if context in ("robot", "link", "inertial", "joint") and _is_own(element, root.element):
            _children(element, context, owner_of(element), found)
            _attributes(element, context, found)
        elif parent in ("joint", "inertial") and _is_own(prefixed, root.element):
            _attributes(element, context, found)
        if context == "joint" and _is_own(element, root.element):
            _without_meaning(element, found)
    meshes = [Node(mesh, root.path) for mesh in root.element.iter("mesh")]
    lost = [mesh.element.get("filename", "") for mesh in meshes if not mesh_file(mesh, macros)]
    if lost:
        of_kind: dict[str, list[str]] = {}
        for name in dict.fromkeys(PurePath(name).name for name in lost):
            kind = PurePath(name).suffix.lower()
            why = "no such file"
            if kind not in mesh_formats():
                cure = "; the package pycollada reads .dae" if kind == ".dae" else ""
                why = f"none of {', '.join(mesh_formats())}{cure}"
            of_kind.setdefault(why, []).append(name)
        for why, names in of_kind.items():
            text = f"shapes that are not drawn, {why}: {first_names(names)}"
            found.parts.append(Part("mesh", "", text))
    for prefix, uri in root.element.nsmap.items():
        if uri.startswith(UNDECLARED):
            _add(f"xmlns:{prefix}", Rule(_lacking(root.element, uri)), "", "", 0, found)


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
            found.parts.append(Part(tag, owner_of(joint), meaning, line=child.sourceline))


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


def _children(element: Any, context: str, owner: str, found: Unread) -> None:
    for child in element:
        name = _name(child)
        rule = CONTEXTS[context].get(name, _unknown(name, child))
        if rule is None:
            continue
        if context == "gazebo" and name not in CONTEXTS[context] and not rule.refused:
            name, rule = context, Rule(_SIMULATOR)
        if name == "gazebo":
            own = child.get("reference")
            inner = f"`{shown(own)}`" if own else owner
            _children(child, name, inner, found)
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
            _add(label, rule, value, owner_of(element), element.sourceline, found)


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
        return Rule("an unknown element that acts on the motion", True)
    return Rule("an unknown element" if element is not None else "an unknown attribute")


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
