"""Reader of the tables [[requirements]] of a task, and the requirements of a task without any."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import Annotated, Any

import numpy as np

from concur.control import JointLimits
from concur.outputs import Output
from concur.robot import Mechanism
from concur.simulation import Plant, Slip, Tolerances, error_parts, motor_numbers
from concur.tables import (
    PAIR,
    Expected,
    Pair,
    Positive,
    Time,
    build,
    entry,
    is_pair,
    list_of,
    of_kind,
    refused,
    stranger,
    variant,
)
from concur.worlds import Requirement

Path = str | PathLike[str]


def _is_pairs(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(map(is_pair, value))


Box = Annotated[
    Any,
    Expected(
        "a list of intervals, one for each coordinate of the base", _is_pairs, list_of(PAIR, 1)
    ),
]


@dataclass(frozen=True)
class Named:
    """Fields of all requirements.

    Parameters
    ----------
    kind : str
        Kind of the requirement.
    name : str, optional
        Unique name. Default: from the kind and the named part.
    """

    kind: str
    name: str | None = None


@dataclass(frozen=True)
class Conditions:
    """Requirements on the runs of a task: each kind is a method, whose parameters are the fields.

    Parameters
    ----------
    limits : JointLimits
        Limits of robot and plant.
    outputs : sequence of Output
        Outputs of the task.
    last : float
        Time of the last tick, s.
    friction : Slip or None
        Friction of wheels that may slip.
    found : dict of str to Requirement
        Requirements made so far by `made`, by their names.
    """

    limits: JointLimits
    outputs: Sequence[Output]
    last: float
    friction: Slip | None
    found: dict[str, Requirement] = field(default_factory=dict)

    def made(self, kind: str, name: str | None = None, **given: Any) -> None:
        """Add the requirements of a table; several from one name have that of their part behind."""
        own = getattr(self, kind)(**given)
        for each in own:
            suffix = each.name.partition(" ")[2] if len(own) > 1 else ""
            each = replace(each, name=f"{name} {suffix}".strip() if name else each.name)
            if each.name in self.found:
                expected = "a unique name for each requirement"
                raise refused(("name",), expected, f"`{each.name}` twice", "Add a `name`.")
            self.found[each.name] = each

    def settle(
        self,
        output: str,
        within: Time,
        radius: Positive | None = None,
        angle: Positive | None = None,
    ) -> list[Requirement]:
        """The error of an output stays below a bound after a time.

        Parameters
        ----------
        output : str
            Name of the output.
        within : float
            Time after which the bound holds, s.
        radius : float, optional
            Bound of the error, m; rad for an output that is a rotation. Default: none, with
            `angle`.
        angle : float, optional
            Bound of the rotation error of a pose, rad. Default: none.
        """
        return self._errors("settle", output, {"radius": radius, "angle": angle}, "within", within)

    def error(
        self,
        output: str,
        below: Positive | None = None,
        angle: Positive | None = None,
        after: Time = 0.0,
    ) -> list[Requirement]:
        """The error of an output stays below a bound, from the start or after a time.

        Parameters
        ----------
        output : str
            Name of the output.
        below : float, optional
            Bound of the error, m; rad for an output that is a rotation. Default: none, with
            `angle`.
        angle : float, optional
            Bound of the rotation error of a pose, rad. Default: none.
        after : float
            Time after which the bound holds, s.
        """
        return self._errors("error", output, {"below": below, "angle": angle}, "after", after)

    def torque(
        self, control: str | None = None, below: Positive | None = None
    ) -> list[Requirement]:
        """The command of a control stays within a bound in both directions.

        Parameters
        ----------
        control : str, optional
            Name of the control. Default: all.
        below : float, optional
            Bound of the absolute value, N m or N. Default: the limits of the robot.
        """
        robot = self.limits.robot
        units = dict(zip(robot.control_names, robot.control_units, strict=True))
        limits = dict(zip(robot.control_names, self.limits.torques.tolist(), strict=True))
        chosen = self._chosen(control, "control", limits, below)
        return [_within("torque", name, (-x, x), units[name]) for name, x in chosen.items()]

    def speed(self, joint: str | None = None, below: Positive | None = None) -> list[Requirement]:
        """The speed of a joint stays within a bound in both directions.

        Parameters
        ----------
        joint : str, optional
            Name of the joint. Default: all.
        below : float, optional
            Bound of the absolute value, rad/s or m/s. Default: the limits of the robot.
        """
        robot = self.limits.robot
        units = dict(zip(robot.freedom_names, freedom_units(robot), strict=True))
        limits = dict(zip(robot.freedom_names, self.limits.speeds.tolist(), strict=True))
        chosen = self._chosen(joint, "joint", limits, below)
        return [_within("speed", name, (-x, x), f"{units[name]}/s") for name, x in chosen.items()]

    def joint(self, joint: str | None = None, interval: Pair = None) -> list[Requirement]:
        """A coordinate of a joint stays in an interval.

        Parameters
        ----------
        joint : str, optional
            Name of the joint. Default: all.
        interval : sequence of float, optional
            Lower and upper bound of the coordinate, rad or m; requires `joint`. Default: the limits
            of the robot.
        """
        known = _coordinates(self.limits.robot)
        ends: dict[str, Any] = dict(zip(known, self.limits.positions, strict=True))
        if interval is not None and joint is None:
            cure = "Name the joint, or remove `interval` for the limits of all joints."
            raise refused(("joint",), "a joint for the interval", "no value", cure)
        self._check("joint", "a joint", joint, ends)
        if joint is not None:
            own = ends[joint] if interval is None else np.array(interval, dtype=float)
            ends = {joint: own}
        limited = {name: pair for name, pair in ends.items() if np.isfinite(pair).any()}
        if not limited:
            raise self._no_limit("interval", "limits")
        with entry("interval"):
            return [_joint(name, pair, *known[name]) for name, pair in limited.items()]

    def margin(self, above: Positive) -> list[Requirement]:
        """The margin of the decoupling matrix stays above a number.

        Parameters
        ----------
        above : float
            Least margin, without unit.
        """
        return [_margin(above)]

    def base(self, box: Box) -> list[Requirement]:
        """The base stays in a box.

        Parameters
        ----------
        box : sequence of sequence of float
            An interval for each position of the base, m.
        """
        return [_base(box, self.limits.robot)]

    def slip(self, below: Positive, wheel: str | None = None) -> list[Requirement]:
        """The slip speed of a wheel that may slip stays below a bound.

        Parameters
        ----------
        below : float
            Bound of the speed, m/s.
        wheel : str, optional
            Body of the wheel. Default: all.
        """
        self._plant()
        wheels = {own.body: math.inf for own in self.limits.robot.wheels}
        chosen = self._chosen(wheel, "wheel", wheels, below)
        return [_within("slip", name, (-math.inf, x), "m/s") for name, x in chosen.items()]

    def load(self, contact: str | None = None, above: Positive | None = None) -> list[Requirement]:
        """The load of a wheel or support stays above a number.

        Parameters
        ----------
        contact : str, optional
            Name of the wheel or support. Default: all.
        above : float, optional
            Least load, N. Default: `0.0`.
        """
        names = self._plant().load_names
        return self._of_contacts("load", "N", names, above or 0.0, contact)

    def tipping(self, above: Positive | None = None) -> list[Requirement]:
        """The moment that holds the base down at an edge of its contacts stays above a number.

        Parameters
        ----------
        above : float, optional
            Least moment about an edge, N m. Default: `0.0`.
        """
        return self._of_contacts("tipping", "N m", self._plant().edge_names, above or 0.0)

    def ticks(self) -> list[Requirement]:
        """The run reaches its end: no tick is refused."""
        return [Requirement("ticks", "ticks", ())]

    def _check(self, field: str, kind: str, name: str | None, known: Collection[str]) -> None:
        if name is not None and name not in known:
            raise stranger((field,), kind, name, known)

    def _plant(self) -> Plant:
        if self.friction is None:
            expected = "a table [plant.slip], with which wheels may slip"
            cure = "Add [plant.slip], or remove the requirement."
            raise refused(("kind",), expected, "wheels that roll without slip", cure)
        return Plant(self.limits.robot, slip=self.friction)

    def _errors(
        self, kind: str, name: str, bounds: Mapping[str, float | None], start: str, after: float
    ) -> list[Requirement]:
        """Bounds of the position and of the rotation error of an output."""
        named = {output.name: output for output in self.outputs}
        self._check("output", "an output", name, named)
        size, parts = next(iter(bounds)), _signals(named[name])
        fields = [size] if len(parts) == 1 else [size, "angle"]
        expected = came = ""
        if bounds["angle"] is not None and "angle" not in fields:
            field, came = "angle", "`angle`"
            expected = f"`{size}`, in {parts[0][1]}, for an output with one unit"
        elif all(bound is None for bound in bounds.values()):
            field, came = size, "no value"
            expected = " or ".join(f"`{field}`" for field in fields)
        elif after > self.last * (1.0 + 1e-9):
            field, came = start, f"{after:g} s"
            expected = f"a time up to the last tick at {self.last:g} s"
        if expected:
            cure = f"Give `{size}`, and times within the duration."
            raise refused((field,), expected, came, cure)
        return [
            _error(kind, signal, bound, unit, after)
            for field, (signal, unit) in zip(fields, parts, strict=True)
            if (bound := bounds[field]) is not None
        ]

    def _of_contacts(
        self, kind: str, unit: str, names: Sequence[str], above: float, contact: str | None = None
    ) -> list[Requirement]:
        """Least loads of contacts, or least moments about the edges of their polygon."""
        if not names:
            expected = "loads that follow from the motion, of contacts fixed to the base"
            came, cure = "wheels that move against the base", "Require loads: `load`."
            if not self._plant().nl:
                came, cure = "constant loads", "Remove `loads` from [plant.slip]."
            raise refused(("kind",), expected, came, cure)
        self._check("contact", "a wheel or support", contact, names)
        return [
            Requirement(
                kind, f"{kind} {name}", ((f"{kind}:{name}", above, math.inf),), above or 1.0, unit
            )
            for name in names
            if contact in (None, name)
        ]

    def _chosen(
        self, name: str | None, field: str, limits: Mapping[str, float], below: float | None
    ) -> dict[str, float]:
        """Limits by name: of one or all, the given one or those of the robot."""
        self._check(field, f"a {field}", name, limits)
        chosen = {name: limits[name]} if name is not None else dict(limits)
        if below is not None:
            chosen = dict.fromkeys(chosen, below)
        found = {key: bound for key, bound in chosen.items() if math.isfinite(bound)}
        if not found:
            raise self._no_limit("below" if limits else field, "a limit")
        return found

    def _no_limit(self, field: str, what: str) -> Exception:
        expected = f"`{field}`, or {what} in the robot file"
        return refused((field,), expected, "no value", f"Add the field `{field}`.")


KINDS = (
    *("settle", "error", "torque", "speed", "joint", "margin", "base"),
    *("slip", "load", "tipping", "ticks"),
)
"""Kinds of requirements: methods of `Conditions`."""

REQUIREMENT_KINDS = {
    kind: variant(getattr(Conditions, kind), f"{kind.title()}Requirement", Named) for kind in KINDS
}
"""Tables of the kinds."""


def read_requirements(
    tables: Sequence[dict[str, Any]] | None,
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
    last = times[0] - times[1]
    if tables is None:
        return tuple(_usual(limits, outputs, tolerances, last))
    whole, conditions = {"requirements": tables}, Conditions(limits, outputs, last, slip)
    for k, table in enumerate(tables):
        at, what = ("requirements", k), "a kind of requirement"
        make = of_kind(REQUIREMENT_KINDS, table, path, whole, at, what)
        build(make, table, path, whole, at, conditions.made)
    return tuple(conditions.found.values())


def _usual(
    limits: JointLimits, outputs: Sequence[Output], tolerances: Tolerances, last: float
) -> Iterator[Requirement]:
    """Requirements that follow from tolerances and limits of a task."""
    robot = limits.robot
    for output in outputs:
        for signal, unit in _signals(output):
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
    for name, (most, _) in limits.motors.items():
        ends = ((f"motor_speed:{name}", -most, most),)
        yield Requirement("speed", f"speed motor {name}", ends, most, "rad/s")
    for name in motor_numbers("continuous", robot):
        yield Requirement("heat", f"heat motor {name}", ((f"heat:{name}", -math.inf, 1.0),), 1.0)
    yield Requirement("ticks", "ticks", ())


def _signals(output: Output) -> list[tuple[str, str]]:
    """Name of the signal of each error of an output, and its unit: m and rad apart."""
    return [("error:" + ":".join(name), unit) for name, unit, _ in error_parts([output])]


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


def _base(box: Any, robot: Mechanism) -> Requirement:
    of_base = list(_coordinates(robot).items())[: robot.base.joint.nq]
    signals = {name: signal for name, (signal, unit) in of_base if unit == "m"}
    if len(box) != len(signals):
        expected = f"{len(signals)} intervals ({', '.join(signals)})"
        cure = "Give one interval for each coordinate of the base."
        raise refused(("box",), expected, f"{len(box)}", cure)
    ends = [(float(low), float(high)) for low, high in box]
    bounds = tuple((name, *pair) for name, pair in zip(signals.values(), ends, strict=True))
    with entry("box"):
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
            whole = body.joint_label if single else f"{body.joint_label}.{name}"
            signal = f"base:{name}" if k == 0 and not single else f"position:{whole}"
            found[whole] = signal, unit
    return found
