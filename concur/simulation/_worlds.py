"""Worlds: deviations of a robot's masses, lengths and radii from their nominal values, checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from concur.codegen import finite_floats
from concur.errors import InertiaError, ShapeError, SimulationError, UnknownNameError, shown
from concur.robot import Body, Inertia, Mechanism, Support, unphysical

QUANTITIES: dict[str, tuple[int, ...]] = {
    "mass": (),
    "com": (3,),
    "moments": (6,),
    "position": (3,),
    "rotation": (3,),
    "radius": (),
    "grip": (),
    "center": (3,),
    "support_center": (3,),
    "support_radius": (),
}
"""Quantities of a body that may be uncertain, and the shapes of their deviations."""

RATIO = "ratio"
"""Quantity of a drive: the gear ratios of its joints."""

PAIRS = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))
"""Entries of a symmetric tensor: xx, yy, zz, xy, xz, yz."""

Worlds: TypeAlias = Mapping[str, Mapping[str, ArrayLike]]
"""Deviations by name of a body and quantity."""

Deviations: TypeAlias = dict[str, np.ndarray]
"""Deviations of all bodies by quantity, shape (worlds, bodies, ...); zero where none is given.

The ratios have the shape (worlds, drives, most joints of a drive).
"""


def declaration(robot: Mechanism, declared: Any, slips: bool) -> dict[str, tuple[str, ...]]:
    """Check which quantities of which bodies are uncertain; they come in the order of all.

    Grips can be uncertain if the wheels may slip.
    """
    where = f"plant of `{robot.name}`, `uncertain`"
    if not isinstance(declared, Mapping) or not declared:
        raise SimulationError(
            where,
            expected="quantities by the name of their body",
            came=shown(declared),
            cure='Write uncertain={"hand": ("mass", "com")}, or omit it.',
        )
    found: dict[str, tuple[str, ...]] = {}
    for name, given in declared.items():
        place = f"{where}, `{shown(name)}`"
        quantities = (given,) if isinstance(given, str) else given
        known = isinstance(quantities, tuple | list) and quantities
        if name in _drives(robot) and known and tuple(quantities) == (RATIO,):
            found[name] = (RATIO,)
            continue
        body = robot.bodies[robot.index(name)]
        if not known or not all(entry in QUANTITIES for entry in quantities):
            raise UnknownNameError(
                place,
                expected=f"quantities among {', '.join(QUANTITIES)}; of a drive {RATIO}",
                came=shown(given),
                cure="Name one or several of them.",
            )
        if "grip" in quantities and not slips:
            raise SimulationError(
                f"{place}, `grip`",
                expected="wheels that may slip",
                came="a plant without `slip`",
                cure="Write Plant(robot, uncertain=..., slip=Slip.of(robot, 0.8)).",
            )
        of_wheels = [quantity for quantity in quantities if quantity in ("radius", "grip")]
        if of_wheels and all(wheel.body != name for wheel in robot.wheels):
            raise SimulationError(
                f"{place}, `{of_wheels[0]}`",
                expected=f"a wheel among {', '.join(w.body for w in robot.wheels) or 'no wheels'}",
                came="a body that is no wheel",
                cure="Name the body of a wheel.",
            )
        for quantity in ("position", "rotation"):
            if quantity in quantities and body.parent is None:
                raise SimulationError(
                    f"{place}, `{quantity}`",
                    expected="a body with a parent",
                    came="the base",
                    cure="The initial configuration is the pose of the base.",
                )
        _check_steering(robot, name, place, quantities)
        _check_contact(robot, name, place, quantities)
        _check_cables(robot, body, place, quantities)
        found[name] = tuple(quantity for quantity in QUANTITIES if quantity in quantities)
    return found


def _check_cables(robot: Mechanism, body: Body, place: str, quantities: Sequence[str]) -> None:
    """Refuse quantities that would give the spin of a link on a cable an inertia."""
    of_cables = {k for name in robot.cables for k in robot.welded(robot.index(name))}
    parent = None if body.parent is None else robot.index(body.parent)
    fixed = {"com", "moments"} if robot.index(body.name) in of_cables else set[str]()
    fixed |= {"position", "rotation"} if parent in of_cables else set()
    if wrong := fixed & set(quantities):
        raise SimulationError(
            f"{place}, `{min(wrong)}`",
            expected="a link on a cable that keeps its line: of the link its `mass`, and not the "
            "place of what hangs on it",
            came=f"`{min(wrong)}` as an uncertain quantity",
            cure="Give the link a moment about its line, if other quantities are uncertain.",
        )


def _drives(robot: Mechanism) -> dict[str, int]:
    """Number of joints of each drive that has gears."""
    return {drive.name: len(drive.joints) for drive in robot.drives if drive.joints is not None}


def shape_of(robot: Mechanism, name: str, quantity: str) -> tuple[int, ...]:
    """Shape of the deviation of a quantity of a body, or of a drive."""
    return (_drives(robot)[name],) if quantity == RATIO else QUANTITIES[quantity]


def _check_steering(robot: Mechanism, name: str, place: str, quantities: Sequence[str]) -> None:
    """Refuse to turn an axle of `steering`: the directions of its axles are constants."""
    for steering in robot.steering:
        ways = [robot.path(robot.index(wheel)) for wheel in (steering.wheel, *steering.guides)]
        shared = set.intersection(*map(set, ways))
        moved = {robot.bodies[i].name for way in ways for i in way if i not in shared}
        for quantity in ("rotation", "center"):
            if quantity in quantities and name in moved:
                raise SimulationError(
                    f"{place}, `{quantity}`",
                    expected="a body on no axle of `steering`",
                    came=f"one on an axle of the steering of `{steering.wheel}`",
                    cure="Declare `position` of wheels and steering joints.",
                )


def _check_contact(robot: Mechanism, name: str, place: str, quantities: Sequence[str]) -> None:
    """Refuse a centre that a joint fixes, and numbers of a support that is not there."""
    wheels = [wheel for wheel in robot.wheels if wheel.body == name]
    if "center" in quantities and not any(w.kind == "slider" or w.support for w in wheels):
        raise SimulationError(
            f"{place}, `center`",
            expected="a slider, or a wheel with a `support`",
            came="a wheel whose centre is on the axis of its joint" if wheels else "no wheel",
            cure="Declare `position` of the body.",
        )
    supports = [wheel.support for wheel in wheels if wheel.support is not None]
    for quantity in ("support_center", "support_radius"):
        if quantity in quantities and all(support.radius is None for support in supports):
            raise SimulationError(
                f"{place}, `{quantity}`",
                expected="a wheel whose `support` is a sphere",
                came="a plane, whose height does not enter the rows" if supports else "no support",
                cure="Omit it.",
            )


def read_worlds(
    robot: Mechanism, declared: Mapping[str, tuple[str, ...]], worlds: Any
) -> Deviations:
    """Read deviations; those without a leading axis are of all worlds, or of the only one."""
    where = f"worlds of `{robot.name}`"
    given: dict[tuple[str, str], np.ndarray] = {}
    for name, quantities in mapping(where, worlds).items():
        for quantity, value in mapping(f"{where}, `{shown(name)}`", quantities).items():
            place = f"{where}, `{shown(name)}`, `{shown(quantity)}`"
            if quantity not in declared.get(name, ()):
                known = "; ".join(f"{body}: {', '.join(q)}" for body, q in declared.items())
                raise UnknownNameError(
                    place,
                    expected=f"a quantity that is uncertain ({known})",
                    came="one that is certain or unknown",
                    cure="Add it to `uncertain` of the plant, or omit it.",
                )
            array, shape = finite_floats(value, place), shape_of(robot, name, quantity)
            if array.shape != shape and array.shape != (*array.shape[:1], *shape):
                raise ShapeError(
                    place,
                    expected=f"shape {shape}, or {('worlds', *shape)} for several worlds",
                    came=str(array.shape),
                    cure="Give one deviation, or one for each world.",
                )
            given[name, quantity] = array
    several = {k: len(a) for k, a in given.items() if a.ndim > len(shape_of(robot, *k))}
    if len(set(several.values())) > 1:
        raise ShapeError(
            where,
            expected="the same number of worlds for all quantities",
            came=", ".join(f"{n} of {name}, {quantity}" for (name, quantity), n in several.items()),
            cure="Give one deviation for each world, or one without a leading axis for all.",
        )
    count = next(iter(several.values()), 1)
    found = {q: np.zeros((count, len(robot.bodies), *shape)) for q, shape in QUANTITIES.items()}
    gears = _drives(robot)
    names = [drive.name for drive in robot.drives]
    found[RATIO] = np.zeros((count, len(names), max(gears.values(), default=0)))
    for (name, quantity), array in given.items():
        if quantity == RATIO:
            found[RATIO][:, names.index(name), : gears[name]] = array
        else:
            found[quantity][:, robot.index(name)] = array
    return found


def inertias(robot: Mechanism, deviations: Deviations) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Masses (B, N), kg, centres of mass (B, N, 3), m, and tensors about them (B, N, 3, 3)."""
    bodies = [body.inertia for body in robot.bodies]
    masses = np.array([inertia.mass for inertia in bodies]) + deviations["mass"]
    coms = np.array([inertia.com for inertia in bodies]) + deviations["com"]
    tensors = np.tile([inertia.tensor for inertia in bodies], (len(masses), 1, 1, 1))
    for k, (i, j) in enumerate(PAIRS):
        tensors[:, :, i, j] += deviations["moments"][:, :, k]
        tensors[:, :, j, i] = tensors[:, :, i, j]
    return masses, coms, tensors


def ratios(robot: Mechanism, deviations: Deviations) -> np.ndarray:
    """Gear ratios of the drives, zero beyond their number of joints, shape (B, D, most joints)."""
    found = deviations[RATIO].copy()
    for k, drive in enumerate(robot.drives):
        given = list((drive.joints or {}).values())
        found[:, k, : len(given)] += given
    return found


def of_wheels(robot: Mechanism, quantity: str, nominal: Any, deviations: Deviations) -> np.ndarray:
    """Numbers of the wheels, shape (B, W, ...)."""
    bodies = [robot.index(wheel.body) for wheel in robot.wheels]
    return np.asarray(np.array(nominal, dtype=float) + deviations[quantity][:, bodies])


def radii(robot: Mechanism, deviations: Deviations) -> np.ndarray:
    """Radii of the wheels, shape (B, W), m."""
    return of_wheels(robot, "radius", [wheel.radius for wheel in robot.wheels], deviations)


def supports(robot: Mechanism, deviations: Deviations) -> tuple[np.ndarray, np.ndarray]:
    """Centres (B, W, 3) and radii (B, W) of the supports of the wheels, zero without one, m."""
    found = [wheel.support or Support() for wheel in robot.wheels]
    middles = np.array([support.center for support in found]).reshape(-1, 3)
    reaches = [support.radius or 0.0 for support in found]
    return (
        of_wheels(robot, "support_center", middles, deviations),
        of_wheels(robot, "support_radius", reaches, deviations),
    )


def centers(robot: Mechanism, deviations: Deviations) -> np.ndarray:
    """Centres of the wheels in their bodies, shape (B, W, 3), m."""
    nominal = np.array([wheel.center for wheel in robot.wheels]).reshape(-1, 3)
    return of_wheels(robot, "center", nominal, deviations)


def grips(
    robot: Mechanism, nominal: tuple[float, ...] | None, deviations: Deviations
) -> np.ndarray:
    """Friction coefficients of the wheels that may slip, shape (B, W), or (B, 0) if they roll."""
    if nominal is None:
        return np.zeros((len(deviations["grip"]), 0))
    bodies = [robot.index(wheel.body) for wheel in robot.wheels]
    return np.asarray(np.array(nominal) + deviations["grip"][:, bodies])


def check_worlds(
    robot: Mechanism, deviations: Deviations, grip: tuple[float, ...] | None = None
) -> None:
    """Refuse a world with an impossible inertia, a wheel without a radius or a negative grip."""
    masses, coms, tensors = inertias(robot, deviations)
    for world, k in np.argwhere(unphysical(masses, tensors)):
        where = f"world {world} of `{robot.name}`, body `{robot.bodies[k].name}`"
        try:
            Inertia(masses[world, k], tuple(coms[world, k]), tensors[world, k])
        except InertiaError as error:
            raise InertiaError(
                where,
                expected=error.expected,
                came=error.came,
                cure="Narrow the interval of its mass, or change its moments together.",
                world=int(world),
            ) from None
    for world, w in np.argwhere((radii(robot, deviations) <= 0.0) & _rolling(robot)):
        wheel = robot.wheels[w]
        raise SimulationError(
            f"world {world} of `{robot.name}`, wheel `{wheel.body}`, `radius`",
            expected="a radius above zero",
            came=f"{radii(robot, deviations)[world, w]:.6g} m",
            cure="Narrow the interval of this radius.",
            world=int(world),
        )
    found = grips(robot, grip, deviations)
    for world, w in np.argwhere(found < 0.0):
        raise SimulationError(
            f"world {world} of `{robot.name}`, wheel `{robot.wheels[w].body}`, `grip`",
            expected="a friction coefficient of zero or more",
            came=f"{found[world, w]:.6g}",
            cure="Narrow the interval of this grip.",
            world=int(world),
        )
    reach, gears = supports(robot, deviations)[1], ratios(robot, deviations)
    for w, wheel in enumerate(robot.wheels):
        if wheel.support is None or wheel.support.radius is None:
            continue
        least = radii(robot, deviations)[:, w] if wheel.support.hollow else 0.0
        for world in np.flatnonzero(reach[:, w] <= least):
            raise SimulationError(
                f"world {world} of `{robot.name}`, wheel `{wheel.body}`, `support_radius`",
                expected="a radius above zero, and in a hollow sphere above that of the wheel",
                came=f"{reach[world, w]:.6g} m",
                cure="Narrow the interval of this radius.",
                world=int(world),
            )
    for k, drive in enumerate(robot.drives):
        for world in np.flatnonzero((gears[:, k, : len(drive.joints or ())] == 0.0).any(axis=1)):
            raise SimulationError(
                f"world {world} of `{robot.name}`, drive `{drive.name}`, `{RATIO}`",
                expected="ratios other than zero",
                came="a ratio of zero",
                cure="Narrow the interval of this ratio.",
                world=int(world),
            )


def _rolling(robot: Mechanism) -> np.ndarray:
    """Wheels that need a radius."""
    return np.array([wheel.kind != "slider" for wheel in robot.wheels], dtype=bool)


def mapping(where: str, value: Any) -> Mapping[Any, Any]:
    """Deviations by name, or an error."""
    if isinstance(value, Mapping):
        return value
    raise SimulationError(
        where,
        expected="deviations by name",
        came=shown(value),
        cure='Write {"hand": {"mass": [0.1, -0.1]}} for bodies, {("lag", "turret"): 0.01} for '
        "imperfections; {} is the nominal world.",
    )
