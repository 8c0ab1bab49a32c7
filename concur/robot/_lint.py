"""Numbers of a robot that are possible but hardly meant: slips of units."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from concur.robot._body import Body
from concur.robot._tree import Tree
from concur.robot.joints import Helical, Revolute

LARGEST = 3.0
"""Radius of gyration and distance of the centre of mass above which a body is suspicious, in
sizes of the robot."""

DENSEST = 22600.0
"""Density, kg/m^3, of the solid ellipsoid with mass and moments of a body above which the body is
suspicious. Osmium, the densest material, has 22590; every other shape of a density has larger
second moments than the ellipsoid."""

FLATTEST = 1e-9
"""Ratio of second moments below which a body is a rod, plate or point without volume."""

# Units that a drawing program may have written, with the factor on the length.
_LENGTHS = {"cm": 1e2, "mm": 1e3}
_MOMENTS = {"kg cm^2": 1e2, "kg mm^2": 1e3, "g mm^2": 1e3 * np.sqrt(1e3)}

TURN = 2.0 * math.pi

FURTHEST_START = 1.0
"""Turns from zero beyond which the start of a joint is suspicious."""

FURTHEST_LIMIT = 2.0
"""Turns from zero beyond which the limit of a joint is suspicious: cables end before that."""

FASTEST = {"rad": 50.0, "m": 20.0}
"""Speed limit of a joint, rad/s and m/s, above which it is suspicious. The fastest joints of legs
and wrists reach 40 to 45 rad/s, linear axes 10 m/s; 60 deg/s written as they are would be above."""

BALANCED = 1e-2
"""Distance of a rotor's centre of mass from its axis, in radii of gyration, at most."""

LONGEST = 100.0
"""Size of a robot, m, above which it is suspicious whatever its mass."""

LIGHTEST = 1e-4
"""Mass per cube of the size, kg/m^3, below which the size is suspicious. A robot of 2 kg and 0.5 m
has 16; the same in cm has 1.6e-5."""

APART = 20.0
"""Factor between the longest and the next shorter link above which the longest is suspicious."""

NAMED = 3
"""Bodies that one sentence names; it counts the others."""

FREE_FALL = 100.0
"""Gravity, m/s^2, above which it is suspicious."""


def suspicious_inertias(tree: Tree) -> tuple[str, ...]:
    """Find inertias that are physical but three times out of proportion to the robot.

    Parameters
    ----------
    tree : Tree
        The robot.

    Returns
    -------
    tuple of str
        One sentence for each finding.
    """
    found = _dense(tree)
    size = tree.extent
    if size == 0.0:
        return tuple(found)
    for body in tree.bodies:
        inertia = body.inertia
        if inertia.mass == 0.0:
            continue
        gyration = float(np.sqrt(max(inertia.principal_moments[2], 0.0)) / np.sqrt(inertia.mass))
        away = float(np.linalg.norm(inertia.com))
        if gyration > LARGEST * size:
            found.append(
                f"body `{body.name}`: radius of gyration {gyration:.3g} m on a robot of "
                f"{size:.2g} m: {_guess(gyration, size, _MOMENTS)} kg m^2?"
            )
        if away > LARGEST * size:
            found.append(
                f"body `{body.name}`: centre of mass {away:.3g} m from the origin of its frame on "
                f"a robot of {size:.2g} m: {_guess(away, size, _LENGTHS)} m?"
            )
    return tuple(found)


def _dense(tree: Tree) -> list[str]:
    """Bodies whose moments need a material denser than any."""
    found = []
    for body in tree.bodies:
        mass, moments = body.inertia.mass, body.inertia.principal_moments
        seconds = 0.5 * moments.sum() - moments
        if mass == 0.0 or seconds.min() <= FLATTEST * seconds.max():
            continue
        # An ellipsoid has the second moment m a^2 / 5 along its semi-axis a. Logarithms, because
        # products of the smallest numbers are zero.
        volume = np.log(4.0 / 3.0 * np.pi) + 0.5 * np.sum(np.log(5.0 * seconds) - np.log(mass))
        density = np.exp(min(float(np.log(mass) - volume), 700.0))
        if density > DENSEST:
            found.append(
                f"body `{body.name}`: {mass:.3g} kg with moments that need a density of "
                f"{density:.3g} kg/m^3: mass in g instead of kg, or moments in another "
                "unit than kg m^2?"
            )
    return found


def _guess(length: float, size: float, units: dict[str, float]) -> str:
    """Name the first unit with which the length would be within half the robot's size."""
    fitting = (unit for unit, factor in units.items() if length / factor <= 0.5 * size)
    unit = next(fitting, None)
    return "another unit than" if unit is None else f"{unit} instead of"


def suspicious_units(tree: Tree) -> tuple[str, ...]:
    """Find lengths, limits, roller angles and gravity that suggest another unit.

    Parameters
    ----------
    tree : Tree
        The robot.

    Returns
    -------
    tuple of str
        One sentence for each finding.
    """
    found = [*_lengths(tree), *_limits(tree), *_speeds(tree)]
    found += [
        f"wheel `{wheel.body}`: roller angle {wheel.roller_angle:.4g} rad: deg instead of rad?"
        for wheel in tree.wheels
        if wheel.roller_angle is not None and abs(wheel.roller_angle) > math.pi
    ]
    pull = float(np.linalg.norm(tree.gravity))
    if pull > FREE_FALL:
        found.append(f"gravity {pull:.4g} m/s^2: mm/s^2 instead of m/s^2?")
    return tuple(found)


def suspicious_start(tree: Tree, q: np.ndarray) -> tuple[str, ...]:
    """Find angles of a start that suggest degrees; wheels and screws may turn often.

    Parameters
    ----------
    tree : Tree
        The robot.
    q : numpy.ndarray
        Configuration at the start, shape (nq,).

    Returns
    -------
    tuple of str
        One sentence for each finding.
    """
    wheels = {wheel.body for wheel in tree.wheels}
    found, at = [], 0
    for body in tree.bodies:
        for name, unit in zip(
            body.joint.coordinate_names, body.joint.coordinate_units, strict=True
        ):
            angle, at = float(q[at]), at + 1
            spins = body.name in wheels or isinstance(body.joint, Helical)
            if unit == "rad" and not spins and abs(angle) > FURTHEST_START * TURN:
                found.append(
                    f"start of `{body.joint_label}`: {name} {angle:.4g} rad, "
                    f"{abs(angle) / TURN:.3g} turns: deg instead of rad? {angle:.4g} deg are "
                    f"{math.radians(angle):.4g} rad"
                )
    return tuple(found)


def suspicious_points(tree: Tree, points: Iterable[tuple[str, Iterable[float]]]) -> tuple[str, ...]:
    """Find points of outputs that are further away than three sizes of the robot.

    Parameters
    ----------
    tree : Tree
        The robot.
    points : iterable of (str, iterable of float)
        Name of each output, and its point in the frame of its body, m.

    Returns
    -------
    tuple of str
        One sentence for each finding.
    """
    size = tree.extent
    away = [(name, float(np.linalg.norm(list(point)))) for name, point in points]
    return tuple(
        f"output `{name}`: point {length:.4g} m from the frame of its body on a robot of "
        f"{size:.2g} m: mm instead of m?"
        for name, length in away
        if size > 0.0 and length > LARGEST * size
    )


def _lengths(tree: Tree) -> list[str]:
    """Links and whole robots that are too long."""
    size = tree.extent
    links = sorted(
        (
            (float(np.linalg.norm(body.placement.translation)), body.name)
            for body in tree.bodies[1:]
        ),
        reverse=True,
    )
    lengths = [length for length, _ in links if length > 0.0]
    mass = tree.total_mass
    light = 0.0 < mass < LIGHTEST * size**3
    if size > LONGEST or light:
        weight = f" and {mass:.3g} kg" if light else ""
        unit = "mm" if size > LONGEST else "cm"
        named = f", link `{links[0][1]}` of {links[0][0]:.4g} m" if lengths else ""
        return [f"robot of {size:.4g} m{weight}{named}: {unit} instead of m?"]
    if len(lengths) > 1 and lengths[0] > APART * lengths[1] and lengths[0] > 1.0:
        return [
            f"body `{links[0][1]}`: {lengths[0]:.4g} m from its parent, next shorter link "
            f"{lengths[1]:.2g} m: {'mm' if lengths[0] > LONGEST else 'cm'} instead of m?"
        ]
    return []


def _limits(tree: Tree) -> list[str]:
    """Ranges of angles that no cable survives."""
    found = []
    for body in tree.bodies:
        if isinstance(body.joint, Helical):
            continue
        for unit, pair in zip(body.joint.coordinate_units, body.limits, strict=True):
            ends = [abs(end) for end in pair if math.isfinite(end)]
            if unit == "rad" and ends and max(ends) > FURTHEST_LIMIT * TURN:
                found.append(
                    f"joint `{body.joint_label}`: limits {pair[0]:.4g} to {pair[1]:.4g} rad, up to "
                    f"{max(ends) / TURN:.3g} turns: deg instead of rad?"
                )
    return found


def _speeds(tree: Tree) -> list[str]:
    """Speed limits beyond what joints are built for; wheels, screws and rotors turn faster."""
    quick = {wheel.body for wheel in tree.wheels}
    found: dict[str, dict[str, float]] = {}
    for body in tree.bodies:
        if body.name in quick or isinstance(body.joint, Helical) or _is_rotor(tree, body):
            continue
        for unit, speed in zip(body.joint.freedom_units, body.speed_limit, strict=True):
            # A vehicle may drive that fast.
            if not FASTEST[unit] < speed < math.inf or (unit == "m" and body is tree.base):
                continue
            fast = found.setdefault(unit, {})
            fast[body.joint_label] = max(speed, fast.get(body.joint_label, 0.0))
    texts = []
    for unit, fast in found.items():
        meant, factor = ("deg", math.radians(1.0)) if unit == "rad" else ("mm", 1e-3)
        low, high = min(fast.values()), max(fast.values())
        names = ", ".join(f"`{name}`" for name in list(fast)[:NAMED])
        if len(fast) > NAMED:
            names += f" and {len(fast) - NAMED} more"
        many = "joint {}: speed limit" if len(fast) == 1 else "joints {}: speed limits"
        span = f"{low:.4g}" if low == high else f"{low:.4g} to {high:.4g}"
        texts.append(
            f"{many.format(names)} {span} {unit}/s: {meant}/s instead of {unit}/s? "
            f"{high:.4g} {meant}/s are {high * factor:.4g} {unit}/s"
        )
    return texts


def _is_rotor(tree: Tree, body: Body) -> bool:
    """Whether a body turns without end, balanced, and carries nothing, such as a reaction wheel."""
    if not isinstance(body.joint, Revolute) or np.isfinite(body.limits).any():
        return False
    beside = float(np.linalg.norm(np.cross(body.joint.axis, body.inertia.com)))
    moment = float(body.inertia.principal_moments[2])
    balanced = beside * math.sqrt(body.inertia.mass) <= BALANCED * math.sqrt(max(moment, 0.0))
    return balanced and all(other.parent != body.name for other in tree.bodies)
