"""Signals of laws and plants: the one description of their numbers, with units, frames, bounds.

Exported C, co-simulation units and python-control take names and sizes from here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import NamedTuple

import casadi as ca
import numpy as np

from concur.codegen import Place
from concur.control import TickStatus, TrackingLaw, tick_function
from concur.errors import ConcurError
from concur.outputs import Output, pose_quaternions
from concur.outputs.references import Reference
from concur.robot import coordinates
from concur.system import System

_BAD_INPUT = "a number that came in is not finite, or above 1e18"
_MEANINGS = (
    "the controls may be used",
    _BAD_INPUT,
    "a quaternion that came in is invalid: its norm is off one by over 1e-3",
    "the law is nearer to singular than its margin, or jumped over a singular state",
    "the controls are not finite, or above 1e18: the command is too large",
    "no torques within limits were found",
    "a missing argument, or an evaluation that did not run to its end",
    "a velocity that came in is above its bound",
)


class Entry(NamedTuple):
    """One number of a signal.

    Parameters
    ----------
    name : str
        Name, such as that of a joint or a coordinate.
    unit : str
        SI unit; empty for a number without one.
    """

    name: str
    unit: str = ""


@dataclass(frozen=True)
class Signal:
    """Input, parameter or output of a law or of a plant.

    Parameters
    ----------
    name : str
        Name.
    role : str
        "input", "parameter" (fixed before the first step) or "output".
    meaning : str
        Meaning of the numbers, and their frame.
    entries : tuple of Entry
        Name and unit of each number.
    start : tuple of float
        Default values; without it zeros.
    largest : tuple of float
        Magnitudes above which the numbers are rejected; empty without a bound.
    positive : bool
        Whether numbers below zero are rejected too.
    guard : str
        Name of the code with which exported C rejects numbers above `largest` before it evaluates
        the function; empty if the function itself rejects them.
    quaternions : tuple of int
        Indices at which quaternions start, or start and end of other unit vectors.
    scalar : bool
        Whether the signal is a number rather than an array.
    integer : bool
        Whether the number is an integer.
    """

    name: str
    role: str
    meaning: str
    entries: tuple[Entry, ...] = (Entry(""),)
    start: tuple[float, ...] = ()
    largest: tuple[float, ...] = ()
    positive: bool = False
    guard: str = ""
    quaternions: tuple[Place, ...] = ()
    scalar: bool = False
    integer: bool = False

    def __post_init__(self) -> None:
        if not self.start:
            object.__setattr__(self, "start", (0.0,) * self.size)

    @property
    def size(self) -> int:
        """Number of entries."""
        return len(self.entries)

    @property
    def smallest(self) -> tuple[float, ...]:
        """Numbers below which they are rejected; empty without a bound."""
        return tuple(0.0 if self.positive else -bound for bound in self.largest)

    def entry(self, k: int) -> Signal:
        """One of the numbers as a signal, which tools that have no arrays take.

        Parameters
        ----------
        k : int
            Index of the number.

        Returns
        -------
        Signal
            Signal of this number, whose name ends with its index, counted from 1.
        """
        own = self.entries[k]
        return replace(
            self,
            name=f"{self.name}[{k + 1}]",
            meaning=f"{self.meaning}. Entry: {own.name}",
            entries=(own,),
            start=self.start[k : k + 1],
            largest=self.largest[k : k + 1],
            scalar=True,
        )


def configuration(system: System, name: str, role: str, meaning: str) -> Signal:
    """Describe a configuration, which starts neutral.

    Parameters
    ----------
    system : System
        The robot.
    name, role, meaning : str
        As in `Signal`.

    Returns
    -------
    Signal
        The signal.
    """
    start = tuple(system.neutral().tolist())
    return Signal(name, role, meaning, tuple(Entry(*pair) for pair in coordinates(system)), start)


def velocities(
    system: System, freedoms: Mapping[int, str], name: str, role: str, meaning: str
) -> Signal:
    """Describe some velocities.

    Parameters
    ----------
    system : System
        The robot.
    freedoms : mapping of int to str
        Index of each velocity, and its name.
    name, role, meaning : str
        As in `Signal`.

    Returns
    -------
    Signal
        The signal.
    """
    units = ["rad/s" if unit == "N m" else "m/s" for unit in system.effort_units]
    return Signal(name, role, meaning, tuple(Entry(n, units[i]) for i, n in freedoms.items()))


def momentum(name: str, role: str, meaning: str, start: Iterable[float] = ()) -> Signal:
    """Describe a momentum about the inertial origin, in inertial axes.

    Parameters
    ----------
    name, role, meaning : str
        As in `Signal`.
    start : iterable of float
        Default values.

    Returns
    -------
    Signal
        The signal.
    """
    units = {"linear": "kg m/s", "angular": "kg m^2/s"}
    entries = [Entry(f"{kind}_{axis}", unit) for kind, unit in units.items() for axis in "xyz"]
    return Signal(name, role, meaning, tuple(entries), tuple(map(float, start)))


def law_signals(law: TrackingLaw, speed_limit: tuple[float, ...] = ()) -> Mapping[str, Signal]:
    """Describe all signals of the tick of a law, by name.

    Parameters
    ----------
    law : TrackingLaw
        The law.
    speed_limit : tuple of float
        Bounds of the velocities that the law takes, m/s or rad/s; empty for none.

    Returns
    -------
    mapping of str to Signal
        Those that laws have, among them some that this one does not take.
    """
    signals = [*_inputs(law, speed_limit), *_reference(law), *_results(law)]
    return MappingProxyType({signal.name: signal for signal in signals})


def _inputs(law: TrackingLaw, speed_limit: tuple[float, ...]) -> Iterator[Signal]:
    """Time, state, momentum, and the period of a law with a state."""
    model, robot = law.model, law.model.system
    yield Signal("t", "input", "time of the reference", (Entry("t", "s"),), scalar=True)
    q = configuration(
        robot,
        "q",
        "input",
        "configuration, measured: a base's position in inertial axes, and its attitude from its "
        "own axes to the inertial ones",
    )
    yield replace(q, quaternions=tuple(model.quaternions))
    measured = law.use_measured_velocity
    taken = range(robot.nv) if measured else model.shape
    s = velocities(
        robot,
        {i: robot.freedom_names[i] for i in taken},
        "s",
        "input",
        "all velocities, measured: those of a base in the base's own axes"
        if measured
        else "velocities of the shape, measured",
    )
    yield replace(s, largest=speed_limit, guard="TOO_FAST")
    if "momentum" in law.inputs:
        yield momentum(
            "momentum",
            "input",
            "momentum of the whole robot about the inertial origin, in inertial axes, measured or "
            "preset",
            model.momentum,
        )
    if law.nz:
        yield Signal(
            "period",
            "input",
            "time from this tick to the next, by which the law's state is advanced; with zero it "
            "stays as it is; below zero and above the largest it is rejected as bad input, as is "
            "the preset until it is filled in",
            (Entry("period", "s"),),
            start=(-1.0,),
            largest=(law.state_bounds.period,),
            positive=True,
            scalar=True,
        )


def _reference(law: TrackingLaw) -> Iterator[Signal]:
    """The reference of all outputs, and the part of its acceleration that is not achieved."""
    pose, rates, missed = list[Entry](), list[Entry](), list[Entry]()
    for output in law.outputs:
        lie = output.lie
        units = dict(zip(lie.error_names, lie.error_units, strict=True))
        units |= dict.fromkeys(("qx", "qy", "qz", "qw"), "")
        pose += [Entry(f"{output.name}[{n}]", units.get(n, "")) for n in lie.coordinate_names]
        for group, found in ((lie.paths, rates), (lie, missed)):
            names = [f"{output.name}[{n}]" for n in group.error_names]
            found += map(Entry, names, group.error_units)
    groups = "; ".join(
        f"{o.name}: {o.group} of {o.body}"
        + (f" relative to {o.relative_to}" if o.relative_to else "")
        for o in law.outputs
    )
    # As an expression: a compiled method would round differently.
    neutral = law.output(ca.SX(law.model.system.neutral()))
    yield Signal(
        "pose",
        "input",
        f"reference pose in inertial axes ({groups})",
        tuple(pose),
        start=tuple(map(float, np.array(ca.DM(neutral)).ravel())),
        quaternions=tuple(pose_quaternions(law.outputs)),
    )
    frames = "; ".join(f"{o.name}: {_frame(o)}" for o in law.outputs)
    twist = tuple(Entry(name, f"{unit}/s") for name, unit in rates)
    yield Signal("twist", "input", f"reference velocity ({frames})", twist)
    accelerations = tuple(Entry(name, f"{unit}/s^2") for name, unit in rates)
    meaning = "rate of the reference velocity, component by component"
    yield Signal("acceleration", "input", meaning, accelerations)
    meaning = (
        "acceleration residual: part of the commanded output acceleration that is not achieved"
    )
    left = tuple(Entry(name, f"{unit}/s^2") for name, unit in missed)
    yield Signal("missed", "output", meaning, left)


def _results(law: TrackingLaw) -> Iterator[Signal]:
    """Controls, status, and the state of a law that has one."""
    controls = tuple(map(Entry, law.model.control_names, law.model.control_units))
    yield Signal("u", "output", "forces and torques of the actuators", controls)
    meaning = f"distance of the law from singular, refused below {law.singular_margin:g}"
    yield Signal("pivot", "output", meaning, (Entry("pivot"),), scalar=True)
    yield Signal(
        "scale",
        "output",
        "share of the commanded output acceleration that limits leave; 1 where none is active",
        (Entry("scale"),),
        scalar=True,
    )
    if law.limit_names:
        meaning = "1 for each limit that is active, else 0"
        entries = tuple(Entry(name) for name in law.limit_names)
        yield Signal("active", "output", meaning, entries)
    codes = "; ".join(f"{int(code)}: {status_meaning(law, code)}" for code in TickStatus)
    meaning = f"unless zero, the controls are zero. {codes}"
    yield Signal("status", "output", meaning, scalar=True, integer=True)
    if law.nz:
        yield Signal(
            "z",
            "output",
            "state of the law, zero at the start; it is held at the largest magnitudes",
            tuple(Entry(*pair) for pair in law.state_bounds.entries),
            largest=tuple(map(float, law.state_bounds.state)),
        )


def status_meaning(law: TrackingLaw, code: int) -> str:
    """Explain a status of the tick of a law.

    Parameters
    ----------
    law : TrackingLaw
        The law.
    code : int
        The status.

    Returns
    -------
    str
        A sentence without a full stop.
    """
    if _MEANINGS[code] is _BAD_INPUT and law.nz:
        return f"{_BAD_INPUT}, or the period or the state of the law is out of bounds"
    return _MEANINGS[code]


def _frame(output: Output) -> str:
    axes = f"axes of {output.relative_to}" if output.relative_to else "inertial axes"
    group = output.group
    if group in ("SE2", "SE3", "SO3"):
        return "axes of the reference pose"
    if group == "S2":
        return f"angular velocity in {axes}"
    if group == "R3xSO3":
        return f"linear in {axes}, angular in axes of the reference pose"
    return axes if group != "SO2" else "about the output's normal"


def exported_tick(servo: TrackingLaw, reference: Reference | None = None) -> ca.Function:
    """The tick of a law for an export, alone or with a reference inside."""
    if reference is None:
        return _without_empty(tick_function(servo, watched=True))
    graph = reference.graph()
    if graph is None:
        raise ConcurError(
            f"export of `{servo.name}`, `reference`",
            expected="a reference with a graph",
            came="one with a custom Python function",
            cure="Make it of the functions in `references`, or export the law without a reference.",
        )
    return tick_function(servo, watched=True, reference=graph)


def _without_empty(tick: ca.Function) -> ca.Function:
    """The tick without signals of length zero, such as the reference of a law without outputs."""
    kind = ca.SX if tick.is_a("SXFunction") else ca.MX
    sizes = {name: tick.size1_in(name) for name in tick.name_in()}
    if all(sizes.values()) and all(map(tick.size1_out, tick.name_out())):
        return tick
    given = {name: kind.sym(name, size) if size else kind(0, 1) for name, size in sizes.items()}
    found = {name: x for name, x in tick.call(given).items() if x.numel()}
    given = {name: x for name, x in given.items() if x.numel()}
    results = [found[name] for name in tick.name_out() if name in found]
    names = [*given], [name for name in tick.name_out() if name in found]
    return ca.Function("tick", [*given.values()], results, *names)
