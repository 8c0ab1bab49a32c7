"""The numbers of a robot: by name, as the description gives them, and as the recursions use them.

A name is that of a body or motor and a field: `hand.inertia.mass`, `left_wheel.radius`. The
recursions read `Terms`. Those of a description are constants; `Unbound` replaces some of them by
expressions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from concur.codegen import Array, constant
from concur.robot._bodies import BodyTree, unknown_name
from concur.robot._frames import Link, Seat, link_frames, with_masses
from concur.robot._motor import Motor
from concur.robot._rotor import Rotor, rotors
from concur.robot._spatial import Placed
from concur.robot._spring import Spring
from concur.robot._steering import Linkage
from concur.robot._wheel import Support, Wheel

PAIRS = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))
"""Entries of a symmetric tensor: xx, yy, zz, xy, xz, yz."""

FIELDS: dict[str, tuple[int, ...]] = {
    "inertia.mass": (),
    "inertia.com": (3,),
    "inertia.moments": (6,),
    "placement.translation": (3,),
    "placement.rotation": (3,),
    "radius": (),
    "grip": (),
    "center": (3,),
    "support.center": (3,),
    "support.radius": (),
    "rotor": (),
    "stiffness": (),
    "damping": (),
    "rest": (),
}
"""Fields of bodies, wheels, motors and springs that are numbers, and the shapes of their
deviations: a rotation deviates by a rotation vector, and the friction coefficient `grip` belongs to
a plant."""

RATIO = "ratio"
"""Field of a motor: the gear ratios of its joints, as many as it moves."""

OF_MOTORS = (RATIO, "rotor")
OF_SPRINGS = ("stiffness", "damping", "rest")
OF_BODIES = tuple(field for field in FIELDS if field.startswith(("inertia.", "placement.")))
OF_WHEELS = tuple(f for f in FIELDS if f not in (*OF_BODIES, *OF_MOTORS, *OF_SPRINGS))
"""Fields of motors, springs, bodies, and of wheels, which have the name of their body."""


@dataclass(frozen=True, eq=False)
class Rim:
    """Numbers of a wheel as its constraint rows use them, constants or expressions.

    Parameters
    ----------
    radius : float or casadi.SX
        Radius, m.
    center : casadi.SX
        Centre in the wheel's body, shape (3,), m.
    support_center : casadi.SX
        Centre of the support, shape (3,), m.
    support_radius : float or casadi.SX
        Its radius, m; zero for a plane.
    """

    radius: float | Array
    center: Array
    support_center: Array
    support_radius: float | Array

    @staticmethod
    def of(wheel: Wheel) -> Rim:
        """Take the numbers of a described wheel."""
        support = wheel.support or Support()
        center, middle = constant(wheel.center), constant(support.center)
        return Rim(wheel.radius, center, middle, support.radius or 0.0)


@dataclass(frozen=True, eq=False)
class Pull:
    """Numbers of a spring, constants or expressions: stiffness, damping and rest, SI units."""

    stiffness: float | Array
    damping: float | Array
    rest: float | Array


@dataclass(frozen=True, eq=False)
class Terms:
    """Numbers of a robot as the recursions use them, constants or expressions.

    Parameters
    ----------
    links : tuple of Link
        The links, with their masses and the ways between them.
    seats : tuple of Seat
        Where the bodies sit in them.
    placements : tuple of Placed
        Placement of each body.
    rims : tuple of Rim
        Numbers of each wheel.
    ratios : tuple of casadi.SX
        Gear ratios of each motor, one for each of its joints; none for a thruster.
    linkages : tuple of Linkage
        Axles of the wheels of each entry of `steering`.
    rotors : tuple of Rotor
        Rotors of the motors that have an inertia.
    springs : tuple of Pull
        Numbers of each spring.
    """

    links: tuple[Link, ...]
    seats: tuple[Seat, ...]
    placements: tuple[Placed, ...]
    rims: tuple[Rim, ...]
    ratios: tuple[Array, ...]
    linkages: tuple[Linkage, ...]
    rotors: tuple[Rotor, ...]
    springs: tuple[Pull, ...]

    @staticmethod
    def of(
        tree: BodyTree,
        size: float,
        tensors: np.ndarray,
        wheels: Sequence[Wheel],
        motors: Sequence[Motor],
        linkages: tuple[Linkage, ...],
        springs: Sequence[Spring],
    ) -> Terms:
        """Take the numbers of a description, its size and its tensors about the centres of mass."""
        links, seats = link_frames(tree, size)
        inertias = [body.inertia for body in tree.bodies]
        masses = np.array([inertia.mass for inertia in inertias])
        coms = np.array([inertia.com for inertia in inertias])
        return Terms(
            with_masses(links, seats, masses, coms, tensors),
            tuple(seats),
            tuple(
                (constant(body.placement.rotation_matrix), constant(body.placement.translation))
                for body in tree.bodies
            ),
            tuple(map(Rim.of, wheels)),
            tuple(constant(list(motor.ratios.values())) for motor in motors),
            linkages,
            rotors(tree, motors, seats) if any(m.rotor for m in motors) else (),
            tuple(Pull(s.stiffness, s.damping, s.rest) for s in springs),
        )


def owners(robot: Any) -> dict[str, list[str]]:
    """Names of what has each field, in the order of the arrays of `nominal`."""
    bodies = [body.name for body in robot.bodies]
    wheels = [wheel.body for wheel in robot.wheels]
    found = {field: bodies if field in OF_BODIES else wheels for field in FIELDS}
    found |= {field: [motor.name for motor in robot.motors] for field in OF_MOTORS}
    return found | {field: [spring.name for spring in robot.springs] for field in OF_SPRINGS}


def nominal(robot: Any) -> dict[str, np.ndarray]:
    """Numbers of the description by field, a row for each owner; rotations as deviations, zero.

    The moments are entries of the tensors at `PAIRS`. Ratios are zero beyond the joints of a motor,
    and numbers of a support are zero without one.
    """
    inertias = [body.inertia for body in robot.bodies]
    tensors = np.array([inertia.tensor for inertia in inertias])
    supports = [wheel.support or Support() for wheel in robot.wheels]
    ratios = [list(motor.ratios.values()) for motor in robot.motors]
    most = max(map(len, ratios), default=0)
    return {
        "inertia.mass": np.array([inertia.mass for inertia in inertias]),
        "inertia.com": np.array([inertia.com for inertia in inertias]),
        "inertia.moments": np.stack([tensors[:, i, j] for i, j in PAIRS], axis=-1),
        "placement.translation": np.array([body.placement.translation for body in robot.bodies]),
        "placement.rotation": np.zeros((len(inertias), 3)),
        "radius": np.array([wheel.radius for wheel in robot.wheels]),
        "center": np.array([wheel.center for wheel in robot.wheels]).reshape(-1, 3),
        "support.center": np.array([support.center for support in supports]).reshape(-1, 3),
        "support.radius": np.array([support.radius or 0.0 for support in supports]),
        "rotor": np.array([motor.rotor for motor in robot.motors]),
        **{field: np.array([getattr(s, field) for s in robot.springs]) for field in OF_SPRINGS},
        RATIO: np.array([own + [0.0] * (most - len(own)) for own in ratios]).reshape(
            len(ratios), most
        ),
    }


def named_numbers(robot: Any) -> dict[str, np.ndarray]:
    """Numbers of the description by the name of their owner and their field; rotations as xyzw."""
    found = {}
    values, names = nominal(robot), owners(robot)
    values["placement.rotation"] = np.array([body.placement.rotation for body in robot.bodies])
    for field, rows in values.items():
        for name, row in zip(names[field], rows, strict=True):
            found[f"{name}.{field}"] = row
    for motor in robot.motors:
        count = len(motor.ratios)
        found[f"{motor.name}.{RATIO}"] = found[f"{motor.name}.{RATIO}"][:count]
        if not motor.rotor:
            del found[f"{motor.name}.rotor"]
    several = [spring.name for spring in robot.springs]
    for name in {name for name in several if several.count(name) > 1}:
        for field in OF_SPRINGS:  # which of them a name means is unknown
            del found[f"{name}.{field}"]
    return {name: value for name, value in found.items() if value.shape != (0,)}


def split_name(name: str) -> tuple[str, str]:
    """Owner and field of the name of a number; both are empty if it ends with no field."""
    ends = *OF_BODIES, *OF_WHEELS[::-1], *OF_MOTORS, *OF_SPRINGS
    field = next((field for field in ends if name.endswith(f".{field}")), "")
    return name[: -len(field) - 1] if field else "", field


def changed_parts(robot: Any, numbers: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Bodies, wheels, motors and springs of a robot with other values of some of its numbers."""
    changes: dict[str, dict[str, Any]] = {}
    for name, value in numbers.items():
        if name not in robot.numbers:
            where = f"robot `{robot.name}`, `with_numbers`"
            raise unknown_name(where, "number", name, list(robot.numbers))
        owner, field = split_name(name)
        changes.setdefault(owner, {})[field] = value
    return {
        "bodies": [_changed(b, OF_BODIES, changes.get(b.name, {})) for b in robot.bodies],
        "wheels": [_changed(w, OF_WHEELS, changes.get(w.body, {})) for w in robot.wheels],
        "motors": [_changed(d, OF_MOTORS, changes.get(d.name, {})) for d in robot.motors],
        "springs": [_changed(s, OF_SPRINGS, changes.get(s.name, {})) for s in robot.springs],
    }


def _changed(part: Any, fields: Sequence[str], changes: Mapping[str, Any]) -> Any:
    """A body, wheel, motor or spring with other values of some of its fields."""
    nested: dict[str, dict[str, Any]] = {}
    for field, value in changes.items():
        if field in fields:
            outer, _, last = field.rpartition(".")
            value = np.asarray(value, dtype=float)
            if last == "moments" and value.shape == (len(PAIRS),):
                value = tensor_of(value)
            if last == RATIO:
                factors = (np.atleast_1d(value) / part.gear).tolist()
                last, value = "joints", dict(zip(part.ratios, factors, strict=True))
            nested.setdefault(outer, {})[last] = value
    own = nested.pop("", {})
    for head, values in nested.items():
        own[head] = replace(getattr(part, head), **values)
    return replace(part, **own) if own else part


def tensor_of(entries: np.ndarray) -> np.ndarray:
    """Symmetric tensors (..., 3, 3) from their entries (..., 6) at `PAIRS`."""
    entries = np.asarray(entries)
    found = np.zeros((*entries.shape[:-1], 3, 3))
    for k, (i, j) in enumerate(PAIRS):
        found[..., i, j] = found[..., j, i] = entries[..., k]
    return found
