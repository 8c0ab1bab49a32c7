"""Nominal values that a task's uncertain quantities deviate from, by kind and name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from concur.robot import Mechanism
from concur.simulation import KINDS, Imperfections, Slip, motor_numbers
from concur.tables import is_number

OF_ROBOT = {
    "mass": "inertia.mass",
    "com": "inertia.com",
    "moments": "inertia.moments",
    "position": "placement.translation",
    "rotation": "placement.rotation",
    "radius": "radius",
    "center": "center",
    "support_center": "support.center",
    "support_radius": "support.radius",
    "grip": "grip",
    "ratio": "ratio",
    "rotor": "rotor",
    "spring_stiffness": "stiffness",
    "spring_damping": "damping",
    "spring_rest": "rest",
}
"""Quantities of the robot, and what they are in the names of its numbers."""


QUANTITIES = {
    "mass": "Mass of bodies, kg.",
    "com": "Centre of mass of bodies with mass: 3 components, m.",
    "moments": "Inertia of bodies with mass: 6 entries xx, yy, zz, xy, xz, yz of the tensor about "
    "the centre of mass, kg m^2.",
    "position": "Translation of the placement of bodies with a parent: 3 components, m.",
    "rotation": "Rotation vector of the placement of bodies with a parent: 3 components, rad.",
    "radius": "Radius of wheels, m.",
    "center": "Centre of sliders and of wheels with a `support`: 3 components, m.",
    "support_center": "Centre of the support of wheels: 3 components, m.",
    "support_radius": "Radius of the support of wheels, m.",
    "grip": "Friction coefficient of wheels with `[plant.slip]`.",
    "ratio": "Gear ratio of each joint of motors.",
    "rotor": "Moment of inertia of the rotor of motors, kg m^2; of linear motors mass, kg.",
    "spring_stiffness": "Stiffness of `[[springs]]`, by joint or `BODY to OTHER`, N m/rad or N/m.",
    "spring_damping": "Damping of `[[springs]]`, N m s/rad or N s/m.",
    "spring_rest": "Coordinate or length at which `[[springs]]` are not stretched, rad or m.",
    **{name: f"{kind.described}." for name, kind in KINDS.items()},
    "initial_q": "Displacement of the joint of bodies at the start: one number for each degree of "
    "freedom, rad and m; of a base along its axes.",
    "initial_s": "Shape velocities at the start, rad/s or m/s.",
    "momentum": "`linear` and `angular` true momentum of a robot with a floating base: 3 "
    "components, kg m/s and kg m^2/s.",
    "reference": "By output: fields of the table of the reference that are numbers, in their "
    "units.",
}
"""Kinds of uncertain quantities with their units."""

BY_AXIS = tuple(name for name, kind in KINDS.items() if kind.of == "wrench")
"""Kinds of imperfections with one number for each axis of a wrench."""


@dataclass(frozen=True)
class NominalValue:
    """A number or several, NaN where a share of it makes no sense, and their unit."""

    value: NDArray[np.float64]
    unit: str


Nominal: TypeAlias = dict[str, dict[str, NominalValue]]


def nominal_values(
    robot: Mechanism,
    imperfections: Imperfections | None,
    slip: Slip | None,
    momentum: Any,
    velocities: Mapping[str, float],
    references: Mapping[str, Mapping[str, Any]],
) -> Nominal:
    """All quantities of a task that may be uncertain: those of the robot that moves first."""
    found = _of_robot(robot, slip)
    real = imperfections or Imperfections(motors=False)
    efforts = dict(zip(robot.control_names, robot.control_units, strict=True))
    for kind in KINDS:
        names, values = real.names(kind, robot), real.values(kind, robot)
        if kind in BY_AXIS:
            wrenches = dict.fromkeys(name.rsplit(".", 1)[0] for name in names)
            rows = np.reshape(values, (-1, 3))
            unit = "N" if kind == "force" else "N m"
            found[kind] = {
                name: NominalValue(row, unit) for name, row in zip(wrenches, rows, strict=True)
            }
        else:
            found[kind] = {
                name: NominalValue(np.array(value), _unit(kind, name, efforts))
                for name, value in zip(names, values, strict=True)
            }
            if not real.motors:  # numbers of motors that have no effect cannot be uncertain
                idle = dict.fromkeys(motor_numbers(kind, robot), np.inf)
                found[kind] |= {
                    name: NominalValue(np.array(value), _unit(kind, name, efforts))
                    for name, value in idle.items()
                }
    start = [body for body in robot.bodies if body.joint.nv and body.name not in robot.following]
    free = {body.joint_label: np.full(body.joint.nv, np.nan) for body in start}
    found["initial_q"] = {
        body.joint_label: NominalValue(
            free[body.joint_label] if body.joint.nv > 1 else np.array(np.nan),
            "/".join(dict.fromkeys(body.joint.freedom_units)),
        )
        for body in start
    }
    each = [unit for body in robot.bodies for unit in body.joint.freedom_units]
    units = dict(zip(robot.freedom_names, each, strict=True))
    found["initial_s"] = {
        name: NominalValue(np.array(velocities.get(name, 0.0)), f"{unit}/s")
        for name, unit in units.items()
    }
    base = robot.bodies[0]
    if not robot.wheels and base.joint.nv and base.name not in robot.driven_bodies:
        true = np.zeros(6) if momentum is None else np.array(momentum, dtype=float)
        true = true + (np.array(real.momentum_error) if real.momentum_error else 0.0)
        found["momentum"] = {
            "linear": NominalValue(true[:3], "kg m/s"),
            "angular": NominalValue(true[3:], "kg m^2/s"),
        }
    for output, table in references.items():
        found[f"reference.{output}"] = {
            field: NominalValue(np.array(value, dtype=float), "")
            for field, value in table.items()
            if is_number(value)
            or (isinstance(value, list) and value and all(map(is_number, value)))
        }
    return {kind: names for kind, names in found.items() if names}


def _of_robot(robot: Mechanism, slip: Slip | None) -> Nominal:
    found: Nominal = {kind: {} for kind in OF_ROBOT}

    def add(name: str, units: Mapping[str, str]) -> None:
        for kind, unit in units.items():
            value = robot.numbers[f"{name}.{OF_ROBOT[kind]}"]
            found[kind][name] = NominalValue(value, unit)

    for body in robot.bodies:
        if body.inertia.mass:
            add(body.name, {"mass": "kg", "com": "m", "moments": "kg m^2"})
        if body.parent is not None:
            add(body.name, {"position": "m"})
            found["rotation"][body.name] = NominalValue(np.full(3, np.nan), "rad")
    for k, wheel in enumerate(robot.wheels):
        support = wheel.support
        if wheel.kind != "slider":
            add(wheel.body, {"radius": "m"})
        if wheel.kind == "slider" or support is not None:
            add(wheel.body, {"center": "m"})
        if support is not None and support.radius is not None:
            add(wheel.body, {"support_center": "m", "support_radius": "m"})
        if slip is not None:
            found["grip"][wheel.body] = NominalValue(np.array(slip.grip[k]), "")
    for motor in robot.motors:
        if motor.ratios:
            add(motor.name, {"ratio": ""} | ({"rotor": "kg m^2"} if motor.rotor else {}))
    efforts = dict(zip(robot.freedom_names, robot.effort_units, strict=True))
    for spring in robot.springs:
        force = efforts.get(str(spring.joint), "N")
        length = "rad" if force == "N m" else "m"
        if f"{spring.name}.stiffness" in robot.numbers:  # no other spring has this name
            units = {"stiffness": f"{force}/{length}", "damping": f"{force} s/{length}"}
            units["rest"] = length
            add(spring.name, {f"spring_{field}": unit for field, unit in units.items()})
    return found


def _unit(kind: str, name: str, efforts: Mapping[str, str]) -> str:
    """Unit of an imperfection, by that of its control."""
    units = () if KINDS[kind].of == "joint" else KINDS[kind].units
    return (*units, "")[len(units) > 1 and efforts.get(name, "") != "N m"]


def _is_flat(values: list[Any]) -> bool:
    return all(map(is_number, values))
