"""Imperfections of drives, sensors and timing of a robot: numbers, checked, with their names."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from itertools import zip_longest
from typing import Any

import numpy as np

from concur.codegen import as_floats, finite_floats
from concur.errors import (
    DescriptionError,
    ShapeError,
    SimulationError,
    UnknownNameError,
    shown,
)
from concur.robot import Mechanism, as_tree, controls
from concur.simulation._disturbances import Disturbance, GravityGradient, Wrench
from concur.simulation._friction import STRIBECK_SPEED, Friction, by_name
from concur.system import System

OF_FRICTION = ("viscous", "coulomb", "stribeck")
OF_CONTROLS = {
    "torque_limit": np.inf,
    "ripple": 0.0,
    "lag": 0.0,
    "stiffness": np.inf,
    "damping": 0.0,
    "motor_inertia": 0.0,
}
"""Kinds with one number for each control, and the number without effect."""

OF_JOINTS = ("resolution", "noise", "velocity_noise")
TIMING = ("latency", "jitter")
OF_WRENCHES = ("force", "torque")
KINDS = (*OF_FRICTION, *OF_CONTROLS, *OF_JOINTS, *OF_WRENCHES, "timing")
"""Kinds of imperfections that may be uncertain."""

PLAIN = (*TIMING, "ripple_periods", "momentum_error", "disturbances")
"""Arguments that have no names of controls or joints."""

SPEED = "stribeck_speed"

RIPPLE_PERIODS = 6
"""Periods of torque ripple in a turn of the joint."""

Scalar = tuple[str, str]
"""Kind and name of one number, such as ("lag", "turret")."""


@dataclass(frozen=True)
class Imperfections:
    """Imperfections of a real robot: drives, encoders, timing and disturbances.

    A command passes a delay, the torque limit, a first-order lag, ripple, the flexible joint and
    friction before it moves the robot; the law sees joints through encoders. Made by `of`, which
    takes numbers by name. An empty tuple is an ideal part.

    Parameters
    ----------
    friction : Friction, optional
        Friction at the controls; at the motor where the joint is flexible.
    torque_limit : tuple of float
        Largest force or torque of each control in both directions, N or N m; infinite: none.
    ripple : tuple of float
        Amplitude of the torque ripple of each control, in parts of its torque:
        ``u (1 + ripple sin(ripple_periods q))`` at the joint coordinate q.
    ripple_periods : int
        Periods of the ripple in a turn.
    lag : tuple of float
        Time constant of each control's torque, s. The torque starts at the first command.
    stiffness, damping, motor_inertia : tuple of float
        Flexible joint of each control: spring between motor and joint, N m/rad (infinite: rigid)
        and N m s/rad, and inertia of the motor at the joint side, in addition to that of the
        robot, kg m^2. The spring starts with the first command as its load.
    latency, jitter : float
        Time from the measurement until the command acts, s, and the largest random addition to it,
        uniform and drawn for each command. Commands keep their order, as in `Latency`.
    resolution : tuple of float
        Step of each joint's encoder, rad or m; zero: none.
    noise, velocity_noise : tuple of float
        Standard deviation of the measured position and velocity of each joint, white from tick to
        tick; rad and rad/s, or m and m/s.
    momentum_error : tuple of float
        True spatial momentum of a floating robot at the start minus that of the law's model, shape
        (6,), kg m/s and kg m^2/s.
    disturbances : tuple of Wrench or GravityGradient
        Forces that the law does not expect.

    Raises
    ------
    SimulationError
        If a number is out of range, or a name occurs twice.

    See Also
    --------
    Friction, Wrench, GravityGradient

    Examples
    --------
    >>> import concur as cc
    >>> cc.simulation.Imperfections(latency=0.002).latency
    0.002
    """

    friction: Friction | None = None
    torque_limit: tuple[float, ...] = ()
    ripple: tuple[float, ...] = ()
    ripple_periods: int = RIPPLE_PERIODS
    lag: tuple[float, ...] = ()
    stiffness: tuple[float, ...] = ()
    damping: tuple[float, ...] = ()
    motor_inertia: tuple[float, ...] = ()
    latency: float = 0.0
    jitter: float = 0.0
    resolution: tuple[float, ...] = ()
    noise: tuple[float, ...] = ()
    velocity_noise: tuple[float, ...] = ()
    momentum_error: tuple[float, ...] = ()
    disturbances: tuple[Disturbance, ...] = ()

    def __post_init__(self) -> None:
        for field in fields(self):
            name, value = field.name, getattr(self, field.name)
            if name == "friction":
                sound, wanted = isinstance(value, Friction | None), "a Friction or None"
            elif name == "disturbances":
                sound = isinstance(value, tuple | list) and all(
                    isinstance(entry, Wrench | GravityGradient) for entry in value
                )
                wanted = "Wrenches and GravityGradients"
                value = tuple(value) if sound else value
            elif name == "ripple_periods":
                sound = isinstance(value, int) and value >= 1
                wanted = "a whole number above zero"
            else:
                value, sound, wanted = _checked(name, value)
            if not sound:
                raise SimulationError(
                    f"imperfections, `{name}`",
                    expected=wanted,
                    came=shown(getattr(self, name)),
                    cure="Make them with Imperfections.of(robot, ...), in SI units.",
                )
            object.__setattr__(self, name, value)
        names = [entry.name for entry in self.wrenches]
        if len(set(names)) < len(names):
            raise SimulationError(
                "imperfections, `disturbances`",
                expected="a name for each wrench",
                came=", ".join(names),
                cure="Rename one of them.",
            )
        pairs = zip_longest(self.stiffness, self.motor_inertia, fillvalue=0.0)
        if not all(inertia > 0.0 for spring, inertia in pairs if 0.0 < spring < np.inf):
            raise SimulationError(
                "imperfections, `motor_inertia`",
                expected="an inertia above zero for each flexible joint",
                came=shown(self.motor_inertia),
                cure="Give the inertia of the motor at the joint side, kg m^2.",
            )

    @classmethod
    def of(
        cls,
        robot: Mechanism,
        **numbers: Any,
    ) -> Imperfections:
        """Imperfections of a robot, from numbers for all controls or joints, or by name.

        Parameters
        ----------
        robot : Mechanism
            The robot.
        **numbers : float, mapping of str to float, or array_like
            By control, a number for all or numbers by name: `viscous`, `coulomb` and `stribeck` of
            friction, `torque_limit`, `ripple`, `lag`, `stiffness`, `damping`, `motor_inertia`; by
            joint of one coordinate `resolution`, `noise`, `velocity_noise`. Names that a table
            lacks are ideal. Other arguments of `Imperfections` as they are, and `stribeck_speed`
            of `Friction`.

        Returns
        -------
        Imperfections
            The imperfections.

        Raises
        ------
        UnknownNameError
            If there is no such control, joint, body or table.
        SimulationError
            If a number is out of range.

        Examples
        --------
        >>> import concur as cc
        >>> robot = cc.robots.rover_arm()
        >>> real = cc.simulation.Imperfections.of(
        ...     robot, viscous=0.1, lag={"turret": 0.005}, latency=0.002
        ... )
        >>> real.lag
        (0.0, 0.0, 0.005, 0.0, 0.0)
        """
        where = f"imperfections of `{robot.name}`"
        found = {name: numbers.pop(name) for name in PLAIN if name in numbers}
        rubbing = {name: numbers.pop(name) for name in (*OF_FRICTION, SPEED) if name in numbers}
        friction = Friction.of(robot, **rubbing)
        rubs = any((*friction.viscous, *friction.coulomb, *friction.stribeck))
        # Friction that is only uncertain needs the speed too.
        if rubs or friction.stribeck_speed != STRIBECK_SPEED:
            found["friction"] = friction
        for kind, given in numbers.items():
            place = f"{where}, `{kind}`"
            if kind in OF_CONTROLS:
                names = robot.control_names
                found[kind] = by_name(place, "controls", names, given, OF_CONTROLS[kind])
            elif kind in OF_JOINTS:
                joints = tuple(joint_places(as_tree(robot, f"joints of `{robot.name}`")))
                found[kind] = by_name(place, "joints", joints, given)
            else:
                raise UnknownNameError(
                    place,
                    expected=f"a table out of {', '.join((*OF_CONTROLS, *OF_JOINTS))}",
                    came=shown(kind),
                    cure="Check the spelling.",
                )
        made = cls(**found)
        for entry in made.wrenches:
            robot.index(entry.body)
        return made

    @property
    def wrenches(self) -> tuple[Wrench, ...]:
        """Wrenches among the disturbances."""
        return tuple(entry for entry in self.disturbances if isinstance(entry, Wrench))

    @property
    def effects(self) -> list[str]:
        """Imperfections other than friction that have an effect, in words."""
        ideal = {**dict.fromkeys(OF_JOINTS, 0.0), **OF_CONTROLS}
        found = [name for name in ideal if any(x != ideal[name] for x in getattr(self, name))]
        found += [name for name in TIMING if getattr(self, name)]
        found += ["momentum_error"] * any(self.momentum_error)
        return [name.replace("_", " ") for name in found] + [
            f"wrench `{entry.name}`" if isinstance(entry, Wrench) else "gravity gradient"
            for entry in self.disturbances
        ]

    @property
    def text(self) -> str:
        """All numbers as JSON, for files of runs."""
        return json.dumps(asdict(self))

    def names(self, kind: str, robot: System) -> tuple[str, ...]:
        """Names of the numbers of a kind, each of which may be uncertain.

        Parameters
        ----------
        kind : str
            One of the tables of `of`; "force" or "torque" of wrenches; "timing".
        robot : Mechanism
            The robot.

        Returns
        -------
        tuple of str
            Controls, joints, "NAME.x", "NAME.y" and "NAME.z" of wrenches, or "latency" and
            "jitter".

        Raises
        ------
        UnknownNameError
            If there is no such kind.
        """
        if kind in OF_FRICTION or kind in OF_CONTROLS:
            return controls(robot)[0]
        if kind in OF_JOINTS:
            return tuple(joint_places(robot))
        if kind in OF_WRENCHES:
            return tuple(f"{entry.name}.{axis}" for entry in self.wrenches for axis in "xyz")
        if kind == "timing":
            return TIMING
        raise UnknownNameError(
            f"imperfections of `{robot.name}`",
            expected=f"a kind out of {', '.join(KINDS)}",
            came=shown(kind),
            cure="Check the spelling.",
        )

    def values(self, kind: str, robot: System) -> np.ndarray:
        """Fixed values of a kind, in the order of `names`.

        Parameters
        ----------
        kind : str
            As for `names`.
        robot : Mechanism
            The robot.

        Returns
        -------
        numpy.ndarray
            One number per name, SI units.
        """
        count = len(self.names(kind, robot))
        if kind in OF_FRICTION:
            return np.array(getattr(self.friction, kind, np.zeros(count)))
        if kind in OF_WRENCHES:
            return np.array([getattr(entry, kind) for entry in self.wrenches]).reshape(-1)
        if kind == "timing":
            return np.array([self.latency, self.jitter])
        value = getattr(self, kind)
        return np.array(value if value else [OF_CONTROLS.get(kind, 0.0)] * count)


def imperfections_from(text: str | None) -> Imperfections | None:
    """Imperfections from their text."""
    if text is None:
        return None
    try:
        table = json.loads(text)
        friction, given = table.pop("friction"), table.pop("disturbances")
        return Imperfections(
            friction=None if friction is None else Friction(**friction),
            disturbances=tuple(
                Wrench(**entry) if "body" in entry else GravityGradient(**entry) for entry in given
            ),
            **table,
        )
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        raise DescriptionError(
            "imperfections of a run",
            expected="what `Run.save` has written",
            came=shown(text),
            cure="Save the run again.",
        ) from None


def joint_places(robot: System) -> dict[str, tuple[int, int]]:
    """Joints of one coordinate by name of their body: where they are in q and in v."""
    places = dict[str, tuple[int, int]]()
    if not isinstance(robot, Mechanism):
        return places
    for body in robot.bodies:
        q, v = robot.q_slice(body.name), robot.v_slice(body.name)
        if v.stop - v.start == q.stop - q.start == 1:
            places[body.name] = q.start, v.start
    return places


def _checked(name: str, value: Any) -> tuple[Any, bool, str]:
    """A number or a tuple of them, whether it is in range, and the expected range."""
    if name in TIMING:
        number = finite_floats(value, f"imperfections, `{name}`")
        return float(number.sum()), number.shape == () and bool(number >= 0.0), "a time, s"
    if name == "momentum_error":
        numbers = finite_floats(value, f"imperfections, `{name}`")
        return tuple(numbers.ravel().tolist()), numbers.shape in ((0,), (6,)), "six numbers"
    try:
        numbers = as_floats(value, f"imperfections, `{name}`")
    except ShapeError:
        return value, False, "a tuple of numbers"
    listed = tuple(numbers.ravel().tolist())
    if name in ("torque_limit", "stiffness"):
        sound, wanted = numbers > 0.0, "numbers above zero; infinite: without effect"
    else:
        sound, wanted = (numbers >= 0.0) & np.isfinite(numbers), "finite numbers, zero or more"
    return listed, numbers.ndim == 1 and bool(sound.all()), wanted
