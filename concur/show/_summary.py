"""Tables of a robot: as text of `Mechanism.summary`, and for pages."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np

from concur.show._outputs import frames_of
from concur.show.page import Section

if TYPE_CHECKING:
    from concur.robot import Mechanism

# Width of the tables; a table grows beyond it rather than breaking a number.
_WIDTH = 100


def summarise(robot: Mechanism) -> str:
    """Describe joints, masses and wheels of a robot in plain text.

    Parameters
    ----------
    robot : Mechanism
        The robot.

    Returns
    -------
    str
        Tables of the joints, of the masses with the inertia tensors about the centres of mass
        along the body axes and, if there are any, of the wheels.
    """
    return "\n\n".join(_text(section) for section in robot_sections(robot))


def robot_sections(robot: Mechanism) -> list[Section]:
    """Describe joints, masses and wheels of a robot as sections of a page.

    Parameters
    ----------
    robot : Mechanism
        The robot.

    Returns
    -------
    list of Section
        Sizes, tables of joints, masses and wheels, drives, and joints that follow.
    """
    this: Any = robot
    driven, gravity = set(this.driven_bodies), this.gravity
    freedoms = len(this.driven_freedoms)
    sizes = (
        f"{this.name}: {_count(len(this.bodies), 'body', 'bodies')}, "
        f"nq = {this.nq}, nv = {this.nv}, {_count(freedoms, 'driven freedom')}\n"
        f"total mass {_number(this.total_mass)} kg, "
        + (f"gravity {_vector(gravity)} m/s^2" if np.any(gravity) else "no gravity")
    )
    frames = frames_of(this)
    bodies = [body for body in this.bodies if body not in frames]
    joints = [
        (
            body.name, body.parent or "", _joint(body), body.joint.nq, body.joint.nv,
            "yes" if body.name in driven else "", _limits(body),
        )
        for body in bodies
    ]  # fmt: skip
    # Products of inertia are rare: omit their column if all are zero.
    tilted = any(np.any(_products(body.inertia)) for body in bodies)
    masses = []
    for body in bodies:
        inertia = body.inertia
        parts = [np.diag(inertia.tensor), *([_products(inertia)] if tilted else [])]
        centre = _vector(inertia.com) if inertia.mass else ""
        moments = [", ".join(map(_number, part)) if np.any(part) else "" for part in parts]
        masses.append((body.name, _number(inertia.mass), centre, *moments))
    columns = ["body", "mass [kg]", "centre of mass [m]", "moments xx, yy, zz [kg m^2]"]
    columns += ["xy, xz, yz [kg m^2]"] * tilted
    found = [
        Section(text=sizes),
        Section(head=("body", "parent", "joint", "nq", "nv", "driven", "limits"), rows=joints),
        Section(head=columns, rows=masses),
    ]
    if frames:
        text = "; ".join(f"{body.name} on {body.parent}" for body in frames)
        found.append(Section(text=f"frames: {text}"))
    if this.wheels:
        wheels = [
            (
                wheel.body, wheel.kind, _number(wheel.radius) if wheel.radius else "",
                "" if wheel.roller_angle is None else _number(wheel.roller_angle),
                _vector(this.wheel_axis(wheel)), _vector(wheel.center),
            )
            for wheel in this.wheels
        ]  # fmt: skip
        head = ("wheel", "kind", "radius [m]", "roller angle [rad]", "axis", "centre [m]")
        rows = ", ".join(this.constraint_names)
        text = f"rolling constraints ({len(this.constraint_names)}): {rows}"
        found += [Section(head=head, rows=wheels), Section(text=text)]
    if this.supports:
        places = (f"{name} {_vector(point)} m" for name, point in this.supports.items())
        found.append(Section(text=f"supports: {', '.join(places)}"))
    others = (
        ("motors", _motors(this)),
        ("joints that follow", _mimics(this)),
        ("springs", _springs(this)),
    )
    for title, lines in others:
        if lines:
            found.append(Section(text="\n  ".join([f"{title}:", *lines])))
    return found


# Fields of a motor that are listed: words, name, unit and field of the side of the gear.
_OF_MOTORS = (
    ("rotor", "rotor", "{inertia}", ""),
    ("up to", "torque", "{force}", ""),
    ("up to", "speed", "{length}/s", ""),
    ("stall torque", "stall_torque", "{force}", ""),
    ("no-load speed", "no_load_speed", "{length}/s", ""),
    ("viscous friction", "viscous", "{force} s/{length}", "friction_at"),
    ("Coulomb friction", "coulomb", "{force}", "friction_at"),
    ("breakaway excess", "stribeck", "{force}", "friction_at"),
    ("efficiency", "efficiency", "", ""),
    ("torque constant", "torque_constant", "{force}/A", ""),
    ("encoder", "encoder", "counts per {turn}", "encoder_at"),
    ("continuous", "continuous", "{force}", ""),
    ("thermal time", "thermal_time", "s", ""),
)

_UNITS = {
    "N m": {"force": "N m", "length": "rad", "inertia": "kg m^2", "turn": "turn"},
    "N": {"force": "N", "length": "m", "inertia": "kg", "turn": "m"},
}


def _motors(robot: Any) -> list[str]:
    """One line for each motor: its gear ratios, or its wrench, and all that it states."""
    lines = []
    controls = zip(robot.control_names, robot.control_units, robot.control_limits, strict=True)
    limits = {name: (limit, unit) for name, unit, limit in controls}
    efforts = dict(zip(robot.freedom_names, robot.effort_units, strict=True))
    for motor in robot.motors:
        limit, force = limits[motor.name]
        sides = {"motor": force, "joint": force}
        if not motor.ratios:
            text = f"wrench {_vector(motor.wrench)} at {_vector(motor.point)} m of {motor.body}"
        else:
            sides["joint"] = efforts[next(iter(motor.ratios))]
            of_gear = " rad/m" if sides["joint"] != force else ""
            text = ", ".join(f"{_number(x)}{of_gear} {name}" for name, x in motor.ratios.items())
        stated = {field.name: getattr(motor, field.name) for field in fields(motor)
                  if getattr(motor, field.name) not in (field.default, None)}  # fmt: skip
        stated |= {"torque": limit} if np.isfinite(limit) else {}
        for words, name, unit, at in _OF_MOTORS:
            if name in stated:
                side = getattr(motor, at) if at else "motor"
                shown = unit.format(**_UNITS[sides[side]])
                text += f", {words} {_number(stated[name])} {shown}".rstrip()
                text += " at the joint" if side == "joint" else ""
                if name == "torque" and len(motor.ratios) == 1 and motor.reduction != 1.0:
                    text += f" ({_number(limit * motor.reduction)} {sides['joint']} at the joint)"
        lines.append(f"{motor.name}: {text}")
    return lines


def _springs(robot: Any) -> list[str]:
    """One line for each spring: where it is, and its numbers."""
    lines, units = [], dict(zip(robot.freedom_names, robot.effort_units, strict=True))
    for spring in robot.springs:
        turns = units.get(spring.joint) == "N m"
        length = "rad" if turns else "m"
        force = "N m" if turns else "N"
        text = f"{spring.name}: {_number(spring.stiffness)} {force}/{length}"
        if spring.joint is None:
            ends = f"{_vector(spring.point)} m and {_vector(spring.other_point)} m"
            text = text.replace(":", f", points {ends}:", 1)
        if spring.damping:
            text += f", damping {_number(spring.damping)} {force} s/{length}"
        text += f", at rest at {_number(spring.rest)} {length}" if spring.rest else ""
        lines.append(text)
    return lines


def _mimics(robot: Any) -> list[str]:
    """One line for each joint that follows another."""
    lines = [
        f"{robot.label(mimic.body)} = {_number(mimic.multiplier)} {robot.label(mimic.of)}"
        + (f" + {_number(mimic.offset)}" if mimic.offset else "")
        for mimic in robot.mimics
    ]
    return lines + [
        f"{s.wheel}: axle through the centre of rotation of {' and '.join(s.guides)}"
        for s in robot.steering
    ]


def _products(inertia: Any) -> Any:
    """Entries of the inertia tensor off its diagonal."""
    return inertia.tensor[[0, 0, 1], [1, 2, 2]]


def _joint(body: Any) -> str:
    """Name of a joint if it is not the body's, its kind, direction and pitch."""
    joint = body.joint
    named = f"{body.joint_label}: " if body.joint_label != body.name else ""
    text = named + type(joint).__name__
    for attribute in ("axis", "normal"):
        if hasattr(joint, attribute):
            text += f" {_vector(getattr(joint, attribute))}"
    if hasattr(joint, "pitch"):
        text += f", {_number(joint.pitch)} m/rad"
    return text


def _limits(body: Any) -> str:
    """One line for each bounded coordinate."""
    joint = body.joint
    bounded = [
        (name, low, high, unit)
        for name, unit, (low, high) in zip(
            joint.coordinate_names, joint.coordinate_units, body.limits, strict=True
        )
        if np.isfinite(low) or np.isfinite(high)
    ]
    lines = [
        f"{name + ' ' if joint.nq > 1 else ''}{_number(low)} to {_number(high)} {unit}"
        for name, low, high, unit in bounded
    ]
    largest = [
        (body.speed_limit, [f"{unit}/s" for unit in joint.freedom_units]),
        (body.torque_limit, joint.effort_units),
    ]
    for limits, units in largest:
        lines += [
            f"{name + ' ' if joint.nv > 1 else ''}up to {_number(limit)} {unit}"
            for name, limit, unit in zip(joint.freedom_names, limits, units, strict=True)
            if np.isfinite(limit)
        ]
    return "\n".join(lines)


def _text(section: Section) -> str:
    """Section as plain text; columns of numbers are right-aligned."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    if not section.rows:
        lines = section.text.split("\n")
        return "\n".join(textwrap.fill(x, _WIDTH, subsequent_indent="  ") for x in lines)
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
    for name in section.head:
        right = "[" in name or name in ("nq", "nv", "axis")
        table.add_column(name, justify="right" if right else "left", no_wrap=True)
    for cells, _ in section.marked:
        table.add_row(*cells)
    out = io.StringIO()
    console = Console(file=out, width=10_000, color_system=None, highlight=False, markup=False)
    console.width = max(_WIDTH, console.measure(table).maximum)
    console.print(table)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number} {one if number == 1 else many or one + 's'}"


def _vector(values: Sequence[float] | Iterable[float]) -> str:
    return f"({', '.join(map(_number, values))})"


def _number(value: float) -> str:
    return f"{value + 0.0:.6g}"
