"""Reader of the tables [[requirements]] of a task, and the requirements of a task without any."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import Annotated, Any

import numpy as np

from concur.control import JointLimits
from concur.outputs import Output
from concur.robot import Mechanism
from concur.simulation import Plant, Slip, Tolerances
from concur.tables import (
    PAIR,
    Expected,
    Pair,
    Positive,
    Text,
    Time,
    fault,
    is_pair,
    list_of,
    located,
    unknown,
)
from concur.worlds import Requirement

Path = str | PathLike[str]


def _is_pairs(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(map(is_pair, value))


@dataclass(frozen=True)
class RequirementTable:
    """A condition on a run; which fields it has depends on its kind.

    Parameters
    ----------
    kind : str
        Kind of the requirement.
    name : str, optional
        Unique name. Default: from the kind and the named part.
    output : str, optional
        Name of the output.
    within : float, optional
        Time after which the bound holds, s.
    after : float, optional
        Time after which the bound holds, s. Default: the start.
    radius : float, optional
        Bound of the error, m; rad for an output that is a rotation. Default: none, with `angle`.
    angle : float, optional
        Bound of the rotation error of a pose, rad. Default: none.
    below : float, optional
        Bound of the absolute value, in the unit of the bounded quantity: m or rad of an error, N m
        or N, rad/s or m/s. Default: of torques and speeds the limits of the robot.
    above : float, optional
        Least margin, without unit; least load, N; least moment about an edge, N m. Default: of
        loads and moments `0.0`.
    control : str, optional
        Name of the control. Default: all.
    joint : str, optional
        Name of the joint. Default: all.
    wheel : str, optional
        Body of the wheel. Default: all.
    contact : str, optional
        Name of the wheel or support. Default: all.
    interval : object, optional
        Lower and upper bound of the coordinate, rad or m; requires `joint`. Default: the limits of
        the robot.
    box : int, optional
        An interval for each position of the base, m.
    """

    kind: Text
    name: Text | None = None
    output: Text | None = None
    within: Time | None = None
    after: Time | None = None
    radius: Positive | None = None
    angle: Positive | None = None
    below: Positive | None = None
    above: Positive | None = None
    control: Text | None = None
    joint: Text | None = None
    wheel: Text | None = None
    contact: Text | None = None
    interval: Pair | None = None
    box: (
        Annotated[
            Any,
            Expected(
                "a list of intervals, one for each coordinate of the base",
                _is_pairs,
                list_of(PAIR, 1),
            ),
        ]
        | None
    ) = None


KINDS = {
    "settle": "The error of an output stays below a bound after a time.",
    "error": "The error of an output stays below a bound, from the start or after a time.",
    "torque": "The command of a control stays within a bound in both directions.",
    "speed": "The speed of a joint stays within a bound in both directions.",
    "joint": "A coordinate of a joint stays in an interval.",
    "margin": "The margin of the decoupling matrix stays above a number.",
    "base": "The base stays in a box.",
    "slip": "The slip speed of a wheel that may slip stays below a bound.",
    "load": "The load of a wheel or support stays above a number.",
    "tipping": "The moment that holds the base down at an edge of its contacts stays above a "
    "number.",
    "ticks": "The run reaches its end: no tick is refused.",
}
"""Kinds of requirements and their conditions."""

# Fields that each kind requires and accepts.
FIELDS: dict[str, tuple[set[str], set[str]]] = {
    "settle": ({"output", "within"}, {"radius", "angle"}),
    "error": ({"output"}, {"below", "angle", "after"}),
    "torque": (set(), {"control", "below"}),
    "speed": (set(), {"joint", "below"}),
    "margin": ({"above"}, set()),
    "joint": (set(), {"joint", "interval"}),
    "base": ({"box"}, set()),
    "slip": ({"below"}, {"wheel"}),
    "load": (set(), {"contact", "above"}),
    "tipping": (set(), {"above"}),
    "ticks": (set(), set()),
}


def read_requirements(
    tables: Sequence[RequirementTable] | None,
    limits: JointLimits,
    outputs: Sequence[Output],
    tolerances: Tolerances,
    times: tuple[float, float],
    slip: Slip | None,
    path: Path,
) -> tuple[Requirement, ...]:
    """Requirements in the order of the file, or those of tolerances and limits.

    `times` are duration and control period; `slip` is the friction of wheels that may slip.
    """
    duration, period = times
    if tables is None:
        return tuple(_usual(limits, outputs, tolerances, duration - period))
    found: list[Requirement] = []
    for k, table in enumerate(tables):
        label = (
            f'[[requirements]] "{table.name}"' if table.name else f"[[requirements]] number {k + 1}"
        )
        _check_fields(table, label, path)
        if table.kind in ("slip", "load", "tipping") and slip is None:
            raise fault(
                path,
                label,
                "kind",
                expected="a table [plant.slip], with which wheels may slip",
                came="wheels that roll without slip",
                cure="Add [plant.slip], or remove the requirement.",
            )
        for made in _made(table, limits, outputs, duration - period, slip, (path, label)):
            if any(made.name == other.name for other in found):
                raise fault(
                    path,
                    label,
                    "name",
                    expected="a unique name for each requirement",
                    came=f"`{made.name}` twice",
                    cure="Add a `name`.",
                )
            found.append(made)
    return tuple(found)


def _check_fields(table: RequirementTable, label: str, path: Path) -> None:
    if table.kind not in FIELDS:
        raise unknown(path, label, "kind", "a kind of requirement", table.kind, FIELDS)
    needed, possible = FIELDS[table.kind]
    given = {field for field, value in vars(table).items() if value is not None} - {"kind", "name"}
    for field in sorted(given - needed - possible):
        raise fault(
            path,
            label,
            field,
            expected=f"fields of the kind `{table.kind}`: "
            + (", ".join(sorted(needed | possible)) or "no others"),
            came=f"`{field}`",
            cure="Remove it.",
        )
    for field in sorted(needed - given):
        raise fault(
            path,
            label,
            field,
            expected=f"a value for the kind `{table.kind}`",
            came="no value",
            cure=f"Add the field `{field}`.",
        )


def _made(
    table: RequirementTable,
    limits: JointLimits,
    outputs: Sequence[Output],
    last: float,
    slip: Slip | None,
    place: tuple[Path, str],
) -> list[Requirement]:
    """Requirements of one table: several where it stands for all controls, joints or wheels."""
    robot = limits.robot
    if table.kind in ("settle", "error"):
        found = _of_output(table, outputs, last, place)
    elif table.kind == "torque":
        controls = dict(zip(robot.control_names, limits.torques.tolist(), strict=True))
        chosen = _chosen(table.control, "control", controls, table.below, place)
        units = dict(zip(robot.control_names, robot.control_units, strict=True))
        found = [_within("torque", name, (-x, x), units[name]) for name, x in chosen.items()]
    elif table.kind == "speed":
        speeds = dict(zip(robot.freedom_names, limits.speeds.tolist(), strict=True))
        chosen = _chosen(table.joint, "joint", speeds, table.below, place)
        units = dict(zip(robot.freedom_names, freedom_units(robot), strict=True))
        found = [_within("speed", name, (-x, x), f"{units[name]}/s") for name, x in chosen.items()]
    elif table.kind == "joint":
        found = _of_joints(table, limits, place)
    elif table.kind == "slip":
        wheels = {wheel.body: math.inf for wheel in robot.wheels}
        chosen = _chosen(table.wheel, "wheel", wheels, table.below, place)
        found = [_within("slip", name, (-math.inf, x), "m/s") for name, x in chosen.items()]
    elif table.kind in ("load", "tipping") and slip is not None:
        found = _of_contacts(table, Plant(robot, slip=slip), place)
    elif table.kind == "margin":
        found = [_margin(table.above or 0.0)]
    elif table.kind == "base":
        found = [_base(table.box, robot, place)]
    else:
        found = [Requirement("ticks", "ticks", ())]
    if table.name is None:
        return found
    suffixes = [""] if len(found) == 1 else [made.name.partition(" ")[2] for made in found]
    names = [f"{table.name} {suffix}".strip() for suffix in suffixes]
    return [replace(made, name=name) for made, name in zip(found, names, strict=True)]


def _of_output(
    table: RequirementTable, outputs: Sequence[Output], last: float, place: tuple[Path, str]
) -> list[Requirement]:
    path, label = place
    named = {output.name: output for output in outputs}
    if table.output not in named:
        raise unknown(path, label, "output", "an output", str(table.output), named)
    size = "radius" if table.kind == "settle" else "below"
    start = "within" if table.kind == "settle" else "after"
    parts = error_parts(named[table.output])
    bounds = {size: getattr(table, size), "angle": table.angle}
    fields = [size] if len(parts) == 1 else [size, "angle"]
    for field, bound in bounds.items():
        if bound is not None and field not in fields:
            raise fault(
                path,
                label,
                field,
                expected=f"`{size}`, in {parts[0][1]}, for an output with one unit",
                came=f"`{field}`",
                cure=f"Rename it to `{size}`.",
            )
    if all(bound is None for bound in bounds.values()):
        raise fault(
            path,
            label,
            size,
            expected=" or ".join(f"`{field}`" for field in fields),
            came="no value",
            cure=f"Add the field `{size}`.",
        )
    after = getattr(table, start) or 0.0
    if after > last * (1.0 + 1e-9):
        raise fault(
            path,
            label,
            start,
            expected=f"a time up to the last tick at {last:g} s",
            came=f"{after:g} s",
            cure="Shorten it, or lengthen the duration.",
        )
    return [
        _error(table.kind, signal, bounds[field], unit, after)
        for field, (signal, unit) in zip(fields, parts, strict=True)
        if bounds[field] is not None
    ]


def _of_contacts(
    table: RequirementTable, plant: Plant, place: tuple[Path, str]
) -> list[Requirement]:
    """Least loads of contacts, or least moments about the edges of their polygon."""
    names = plant.load_names if table.kind == "load" else plant.edge_names
    if not names:
        raise fault(
            *place,
            "kind",
            expected="loads that follow from the motion, of contacts that are fixed to the base",
            came="constant loads" if not plant.nl else "wheels that move against the base",
            cure="Remove `loads` from [plant.slip]." if not plant.nl else "Require loads: `load`.",
        )
    if table.contact is not None and table.contact not in names:
        raise unknown(*place, "contact", "a wheel or support", table.contact, names)
    unit, above = "N" if table.kind == "load" else "N m", table.above or 0.0
    return [
        Requirement(
            table.kind,
            f"{table.kind} {name}",
            ((f"{table.kind}:{name}", above, math.inf),),
            above or 1.0,
            unit,
        )
        for name in names
        if table.contact in (None, name)
    ]


def _of_joints(
    table: RequirementTable, limits: JointLimits, place: tuple[Path, str]
) -> list[Requirement]:
    known = _coordinates(limits.robot)
    ends = dict(zip(known, limits.positions, strict=True))
    if table.interval is not None and table.joint is None:
        raise fault(
            *place,
            "joint",
            expected="a joint for the interval",
            came="no value",
            cure="Name the joint, or remove `interval` for the limits of all joints.",
        )
    if table.joint is not None and table.joint not in ends:
        raise unknown(*place, "joint", "a joint", table.joint, ends)
    chosen = {table.joint: ends[table.joint]} if table.joint else ends
    if table.interval is not None:
        chosen = {str(table.joint): np.array(table.interval, dtype=float)}
    limited = {name: pair for name, pair in chosen.items() if np.isfinite(pair).any()}
    if not limited:
        raise _no_limit(place, "interval", "limits")
    with located(*place, "interval"):
        return [_joint(name, pair, *known[name]) for name, pair in limited.items()]


def _chosen(
    name: str | None,
    field: str,
    limits: Mapping[str, float],
    below: float | None,
    place: tuple[Path, str],
) -> dict[str, float]:
    """Limits by name: of one or all, the given one or those of the robot."""
    if name is not None and name not in limits:
        raise unknown(*place, field, f"a {field}", name, limits)
    chosen = {name: limits[name]} if name is not None else dict(limits)
    if below is not None:
        chosen = dict.fromkeys(chosen, below)
    found = {key: bound for key, bound in chosen.items() if math.isfinite(bound)}
    if not found:
        raise _no_limit(place, "below" if limits else field, "a limit")
    return found


def _no_limit(place: tuple[Path, str], field: str, what: str) -> Exception:
    return fault(
        *place,
        field,
        expected=f"`{field}`, or {what} in the robot file",
        came="no value",
        cure=f"Add the field `{field}`.",
    )


def _usual(
    limits: JointLimits, outputs: Sequence[Output], tolerances: Tolerances, last: float
) -> Iterator[Requirement]:
    """Requirements that follow from tolerances and limits of a task."""
    robot = limits.robot
    for output in outputs:
        for signal, unit in error_parts(output):
            yield _error("settle", signal, tolerances.final_error, unit, last)
    yield _margin(tolerances.margin)
    for (name, facts), pair in zip(_coordinates(robot).items(), limits.positions, strict=True):
        if np.isfinite(pair).any():
            yield _joint(name, pair, *facts)
    for kind, names, units, bounds in (
        ("speed", robot.freedom_names, [f"{u}/s" for u in freedom_units(robot)], limits.speeds),
        ("torque", robot.control_names, robot.control_units, limits.torques),
    ):
        for name, unit, bound in zip(names, units, bounds.tolist(), strict=True):
            if math.isfinite(bound):
                yield _within(kind, name, (-bound, bound), unit)
    yield Requirement("ticks", "ticks", ())


def error_parts(output: Output) -> list[tuple[str, str]]:
    """Name of the signal of each error of an output, and its unit: m and rad apart."""
    units = list(dict.fromkeys(output.coordinate_units))
    kinds = {"m": ":position", "rad": ":rotation"}
    return [
        (f"error:{output.name}" + (kinds[unit] if len(units) > 1 else ""), unit) for unit in units
    ]


def _error(kind: str, signal: str, bound: float, unit: str, after: float) -> Requirement:
    name = f"{kind} {signal.split(':', 1)[1].replace(':', ' ')}"
    return Requirement(kind, name, ((signal, -math.inf, bound),), bound, unit, after)


def _within(kind: str, name: str, ends: tuple[float, float], unit: str) -> Requirement:
    return Requirement(kind, f"{kind} {name}", ((f"{kind}:{name}", *ends),), ends[1], unit)


def _margin(above: float) -> Requirement:
    return Requirement("margin", "margin", (("margin", above, math.inf),), above)


def _joint(name: str, pair: Any, signal: str, unit: str) -> Requirement:
    low, high = map(float, pair)
    both = math.isfinite(low) and math.isfinite(high)
    scale = (high - low) / 2 if both else max(abs(x) for x in (low, high) if math.isfinite(x))
    return Requirement("joint", f"joint {name}", ((signal, low, high),), scale or 1.0, unit)


def _base(box: Any, robot: Mechanism, place: tuple[Path, str]) -> Requirement:
    base = robot.bodies[0].name
    signals = {
        name: signal
        for name, (signal, unit) in _coordinates(robot).items()
        if unit == "m" and name.split(".")[0] == base
    }
    if len(box) != len(signals):
        raise fault(
            *place,
            "box",
            expected=f"{len(signals)} intervals ({', '.join(signals)})",
            came=f"{len(box)}",
            cure="Give one interval for each coordinate of the base.",
        )
    ends = [(float(low), float(high)) for low, high in box]
    bounds = tuple((name, *pair) for name, pair in zip(signals.values(), ends, strict=True))
    with located(*place, "box"):
        size = min((high - low) / 2 for low, high in ends)
        return Requirement("base", "base", bounds, size if 0.0 < size < math.inf else 1.0, "m")


def freedom_units(robot: Mechanism) -> tuple[str, ...]:
    """Unit of each velocity coordinate, without the time."""
    return tuple(unit for body in robot.bodies for unit in body.joint.freedom_units)


def _coordinates(robot: Mechanism) -> dict[str, tuple[str, str]]:
    """Signal and unit of each coordinate of a configuration, by name."""
    found = {}
    for k, body in enumerate(robot.bodies):
        joint = body.joint
        single = joint.nq == joint.nv == 1
        for name, unit in zip(joint.coordinate_names, joint.coordinate_units, strict=True):
            whole = body.name if single else f"{body.name}.{name}"
            signal = f"base:{name}" if k == 0 and not single else f"position:{whole}"
            found[whole] = signal, unit
    return found
