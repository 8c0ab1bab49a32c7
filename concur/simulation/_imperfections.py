"""Imperfections of drives, sensors and timing of a robot: numbers, checked, with their names."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from itertools import zip_longest
from typing import Any

import casadi as ca
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


@dataclass(frozen=True)
class Kind:
    """A kind of imperfections: a number for each control, joint or axis, which may be uncertain.

    Parameters
    ----------
    of : str
        What has a number each: "control", "joint" (of one coordinate), "wrench" or "timing".
    text : str
        What it is.
    units : tuple of str
        Unit of a torque's and of a force's.
    ideal : float
        Number without effect; where it is infinite, numbers are above zero.
    """

    of: str
    text: str
    units: tuple[str, ...]
    ideal: float = 0.0


KINDS = {
    "viscous": Kind("control", "Viscous friction of controls", ("N m s/rad", "N s/m")),
    "coulomb": Kind("control", "Coulomb friction of controls", ("N m", "N")),
    "stribeck": Kind("control", "Excess of the friction of controls at breakaway", ("N m", "N")),
    "torque_limit": Kind("control", "Largest torque or force of controls", ("N m", "N"), np.inf),
    "ripple": Kind("control", "Torque ripple of controls, as a fraction of the torque", ()),
    "lag": Kind("control", "Time constant of the torque of controls", ("s",)),
    "stiffness": Kind(
        "control", "Stiffness of the flexible joint of controls", ("N m/rad", "N/m"), np.inf
    ),
    "damping": Kind("control", "Damping of the flexible joint of controls", ("N m s/rad", "N s/m")),
    "motor_inertia": Kind("control", "Inertia of the motor of controls", ("kg m^2", "kg")),
    "resolution": Kind("joint", "Step of the encoder of joints with one coordinate", ("rad", "m")),
    "noise": Kind(
        "joint", "Standard deviation of the measured position of such joints", ("rad", "m")
    ),
    "velocity_noise": Kind(
        "joint", "Standard deviation of the measured velocity of such joints", ("rad/s", "m/s")
    ),
    "force": Kind("wrench", "Force of wrenches of `[imperfections]`: 3 components", ("N",)),
    "torque": Kind("wrench", "Torque of wrenches of `[imperfections]`: 3 components", ("N m",)),
    "timing": Kind("timing", "`latency` and `jitter`", ("s",)),
}
"""Kinds of imperfections: what an uncertain quantity, its unit and its range follow from."""

OF_FRICTION = ("viscous", "coulomb", "stribeck")
TIMING = ("latency", "jitter")
TABLES = [name for name, kind in KINDS.items() if kind.of in ("control", "joint")]
"""Kinds that are given by name of control or joint."""

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
        own = [name for name in TABLES if name not in OF_FRICTION]
        for kind, given in numbers.items():
            place = f"{where}, `{kind}`"
            if kind not in own:
                expected = f"a table out of {', '.join(own)}"
                cure = "Check the spelling."
                raise UnknownNameError(place, expected=expected, came=shown(kind), cure=cure)
            what, ideal = KINDS[kind].of, KINDS[kind].ideal
            found[kind] = by_name(place, f"{what}s", owners(robot, what), given, ideal)
        made = cls(**found)
        for entry in made.wrenches:
            as_tree(robot, f"{where}, wrench `{entry.name}`").index(entry.body)
        return made

    @property
    def wrenches(self) -> tuple[Wrench, ...]:
        """Wrenches among the disturbances."""
        return tuple(entry for entry in self.disturbances if isinstance(entry, Wrench))

    @property
    def effects(self) -> list[str]:
        """Imperfections other than friction that have an effect, in words."""
        order = sorted(TABLES[len(OF_FRICTION) :], key=lambda name: KINDS[name].of != "joint")
        found = [name for name in order if any(x != KINDS[name].ideal for x in getattr(self, name))]
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
        if kind not in KINDS:
            raise UnknownNameError(
                f"imperfections of `{robot.name}`",
                expected=f"a kind out of {', '.join(KINDS)}",
                came=shown(kind),
                cure="Check the spelling.",
            )
        if kind == "timing":
            return TIMING
        if KINDS[kind].of == "wrench":
            return tuple(f"{entry.name}.{axis}" for entry in self.wrenches for axis in "xyz")
        return owners(robot, KINDS[kind].of)

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
        if kind == "timing":
            return np.array([self.latency, self.jitter])
        if KINDS[kind].of == "wrench":
            return np.array([getattr(entry, kind) for entry in self.wrenches]).reshape(-1)
        value = getattr(self.friction if kind in OF_FRICTION else self, kind, ())
        return np.array(value if len(value) else [KINDS[kind].ideal] * count)


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


def owners(robot: System, of: str) -> tuple[str, ...]:
    """Names of what has a number each: controls, or joints of one coordinate."""
    return controls(robot)[0] if of == "control" else tuple(joint_places(robot))


def joint_places(robot: System) -> dict[str, tuple[int, int]]:
    """Joints of one coordinate by name: where they are in q and in v.

    Without bodies: coordinates whose rate is one of the velocities, by name of the velocity.
    """
    places = dict[str, tuple[int, int]]()
    if not isinstance(robot, Mechanism):
        q, v = ca.SX.sym("q", robot.nq), ca.SX.sym("v", robot.nv)
        rows = ca.vertsplit(ca.SX(robot.rate(q, v)))
        for place, name in enumerate(robot.freedom_names):
            for k, row in enumerate(rows):
                if ca.is_equal(row, v[place]):
                    places[name] = k, place
        return places
    for body in robot.bodies:
        q, v = robot.q_slice(body.name), robot.v_slice(body.name)
        if v.stop - v.start == q.stop - q.start == 1:
            places[body.joint_label] = q.start, v.start
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
    if np.isinf(KINDS[name].ideal):
        sound, wanted = numbers > 0.0, "numbers above zero; infinite: without effect"
    else:
        sound, wanted = (numbers >= 0.0) & np.isfinite(numbers), "finite numbers, zero or more"
    return listed, numbers.ndim == 1 and bool(sound.all()), wanted
