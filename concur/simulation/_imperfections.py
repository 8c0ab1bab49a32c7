"""Imperfections of drives, sensors and timing of a robot: numbers, checked, with their names."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Annotated, Any

import casadi as ca
import numpy as np
from annotated_types import Ge, Le

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
from concur.simulation._motors import FRICTION, motor_numbers, shared_encoders, stribeck_sides
from concur.system import System
from concur.tables import INTERNAL, Expected, InFiles, Positive, Vector6


@dataclass(frozen=True)
class Kind:
    """A kind of imperfections: a number for each control, joint or axis, which may be uncertain.

    Parameters
    ----------
    of : str
        What has a number each: "control", "joint" (of one coordinate), "wrench" or "timing"; or
        "motor": a control, whose number is one of the robot alone.
    text : str
        What it is.
    units : tuple of str
        Unit of a torque's and of a force's.
    ideal : float
        Number without effect; where it is not zero, numbers are above zero.
    most : float
        Largest number.
    """

    of: str
    text: str
    units: tuple[str, ...]
    ideal: float = 0.0
    most: float = np.inf

    @property
    def described(self) -> str:
        """The text with the units."""
        return ", ".join([self.text, *filter(None, [" or ".join(self.units)])])


KINDS = {
    "viscous": Kind("control", "Viscous friction of controls", ("N m s/rad", "N s/m")),
    "coulomb": Kind("control", "Coulomb friction of controls", ("N m", "N")),
    "stribeck": Kind("control", "Excess of the friction of controls at breakaway", ("N m", "N")),
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
    "torque_limit": Kind("motor", "Largest torque or force of controls", ("N m", "N"), np.inf),
    "no_load_speed": Kind("motor", "No-load speed of motors", ("rad/s", "m/s"), np.inf),
    "stall_torque": Kind("motor", "Stall torque of motors", ("N m", "N"), np.inf),
    "efficiency": Kind("motor", "Efficiency of the gears of motors, a fraction", (), 1.0, 1.0),
    "continuous": Kind("motor", "Continuous torque of motors", ("N m", "N"), np.inf),
    "thermal_time": Kind("motor", "Thermal time constant of motors", ("s",), np.inf),
    "force": Kind("wrench", "Force of wrenches of `[imperfections]`: 3 components", ("N",)),
    "torque": Kind("wrench", "Torque of wrenches of `[imperfections]`: 3 components", ("N m",)),
    "timing": Kind("timing", "`latency` and `jitter`", ("s",)),
}
"""Kinds of imperfections: what an uncertain quantity, its unit and its range follow from."""

TIMING = ("latency", "jitter")
TABLES = [name for name, kind in KINDS.items() if kind.of in ("control", "joint")]
"""Kinds that are given by name of control or joint."""

HEAT = ("continuous", "thermal_time")
"""Kinds that limit a run whether the numbers of motors act or not."""

OF_MOTORS = ("torque_limit", "no_load_speed", "efficiency")
"""Kinds that only the robot states, if they change its motion."""

PLAIN = (*TIMING, "disturbances")
"""Arguments of `Imperfections.of` that it passes on."""

RIPPLE_PERIODS = 6
"""Periods of torque ripple in a turn of the joint."""

Periods = Annotated[int, Ge(1), Le(10_000), Expected("a whole number from 1 to 10000")]

Scalar = tuple[str, str]
"""Kind and name of one number, such as ("lag", "turret")."""


@dataclass(frozen=True)
class Imperfections:
    """Imperfections of a real robot: drives, encoders, timing and disturbances.

    A command passes a delay, the torque limit, a first-order lag, the line of speed and torque,
    ripple, the flexible joint and friction before it moves the robot; the law sees joints through
    encoders. Limits, friction, efficiency and encoders that motors of the robot state are those of
    the robot. Made by `of`, which takes the other numbers by name. An empty tuple is an ideal part.

    Parameters
    ----------
    friction : Friction, optional
        Friction at the controls; at the motor where the joint is flexible.
    ripple : tuple of float
        Amplitude of the torque ripple of each control, in parts of its torque:
        ``u (1 + ripple sin(ripple_periods q))`` at the joint coordinate q.
    ripple_periods : int
        Periods of the ripple in a turn.
    lag : tuple of float
        Time constant of each control's torque, s. The torque starts at the first command.
    stiffness, damping, motor_inertia : tuple of float
        Flexible joint of each control: spring between motor and joint, N m/rad (infinite: rigid)
        and N m s/rad, and inertia of the motor in front of the spring, kg m^2, in addition to that
        of the robot; of a motor with a `rotor` it is this rotor. The spring starts with the first
        command as its load.
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
    motors : bool
        Whether the numbers of the robot's motors act, and torques are limited by those of motors or
        joints; else drives are ideal but for the numbers above.

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
    motors: bool = True

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
            elif name == "motors":
                sound, wanted = isinstance(value, bool), "true or false"
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

    @classmethod
    def of(
        cls,
        robot: Annotated[Mechanism, INTERNAL],
        *,
        motors: bool = True,
        stribeck_speed: Positive = STRIBECK_SPEED,
        ripple_periods: Periods = RIPPLE_PERIODS,
        momentum_error: Annotated[Sequence[float], InFiles(Vector6)] = (),
        **numbers: Annotated[Any, INTERNAL],
    ) -> Imperfections:
        """Imperfections of a robot, from numbers for all controls or joints, or by name.

        Parameters
        ----------
        robot : Mechanism
            The robot.
        motors : bool
            Whether the numbers of the robot's motors act: friction, efficiency, limits of torque
            and speed, and encoders.
        stribeck_speed : float
            Speed at which the excess of friction has fallen to 1/e, rad/s or m/s.
        ripple_periods : int
            Number of periods of the ripple in a turn of the joint.
        momentum_error : sequence of float
            True momentum at the start minus that of the model: linear, kg m/s, then angular,
            kg m^2/s. Default: zero.
        **numbers : float, mapping of str to float, or array_like
            By control, a number for all or numbers by name: `viscous`, `coulomb` and `stribeck` of
            friction, `ripple`, `lag`, `stiffness`, `damping`, `motor_inertia`; by joint of one
            coordinate `resolution`, `noise`, `velocity_noise`. Names that a table lacks are ideal.
            `latency`, `jitter` and `disturbances` of `Imperfections` as they are.

        Returns
        -------
        Imperfections
            The imperfections.

        Raises
        ------
        UnknownNameError
            If there is no such control, joint, body or table.
        SimulationError
            If a number is out of range, or a motor of the robot states it.

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
        found: dict[str, Any] = {
            **{"motors": motors, "ripple_periods": ripple_periods},
            "momentum_error": momentum_error,
            **{name: numbers.pop(name) for name in PLAIN if name in numbers},
        }
        rubbing = {name: numbers.pop(name) for name in FRICTION if name in numbers}
        friction = Friction.of(robot, **rubbing, stribeck_speed=stribeck_speed)
        rubs = any((*friction.viscous, *friction.coulomb, *friction.stribeck))
        # Friction that is only uncertain needs the speed too.
        if rubs or friction.stribeck_speed != STRIBECK_SPEED:
            found["friction"] = friction
        own = [name for name in TABLES if name not in FRICTION]
        for kind, given in numbers.items():
            place = f"{where}, `{kind}`"
            if kind not in own:
                expected = f"a table out of {', '.join(own)}"
                cure = "Check the spelling."
                raise UnknownNameError(place, expected=expected, came=shown(kind), cure=cure)
            what, ideal = KINDS[kind].of, KINDS[kind].ideal
            found[kind] = by_name(place, f"{what}s", owners(robot, what), given, ideal, robot)
        made = cls(**found)
        for entry in made.wrenches:
            as_tree(robot, f"{where}, wrench `{entry.name}`").index(entry.body)
        made.check(robot)
        return made

    def check(self, robot: System) -> None:
        """Check the numbers against those of a robot.

        Parameters
        ----------
        robot : System
            The robot.

        Raises
        ------
        SimulationError
            If there are more or fewer numbers than controls or joints, a motor of the robot states
            one of them too, or a flexible joint has no inertia of its motor.
        """
        where = f"imperfections of `{robot.name}`"
        for kind in TABLES:
            names, own = self.names(kind, robot), self._own(kind, robot)
            if len(own) != len(names):
                raise SimulationError(
                    f"{where}, `{kind}`",
                    expected=f"{len(names)} numbers, for {', '.join(names)}",
                    came=f"{len(own)}",
                    cure="Make them with Imperfections.of(robot, ...).",
                )
            stated = set(motor_numbers(kind, robot)) if self.motors else set[str]()
            if kind == "resolution" and self.motors:
                stated |= {name for ratios, _ in shared_encoders(robot) for name in ratios}
            for name, number in zip(names, own.tolist(), strict=True):
                if name in stated and number != KINDS[kind].ideal:
                    field = {"resolution": "encoder", "motor_inertia": "rotor"}.get(kind, kind)
                    raise SimulationError(
                        f"{where}, `{kind}` of `{name}`",
                        expected=f"one place for this number: `{field}` of the robot's motor",
                        came=f"also {number:g} here",
                        cure="Remove it here, and name the controls or joints that need one.",
                    )
        inertia, spring = (self.values(kind, robot) for kind in ("motor_inertia", "stiffness"))
        if not np.all(inertia[np.isfinite(spring)] > 0.0):
            raise SimulationError(
                f"{where}, `motor_inertia`",
                expected="an inertia above zero for each flexible joint",
                came=shown(self.motor_inertia),
                cure="Give the inertia of the motor at the speed of the control, kg m^2.",
            )

    @property
    def wrenches(self) -> tuple[Wrench, ...]:
        """Wrenches among the disturbances."""
        return tuple(entry for entry in self.disturbances if isinstance(entry, Wrench))

    def effects(self, robot: System) -> list[str]:
        """Imperfections that have an effect on a robot, in words.

        Parameters
        ----------
        robot : System
            The robot.

        Returns
        -------
        list of str
            Friction first.
        """
        acting = {
            kind
            for kind in (*TABLES, *OF_MOTORS)
            if np.any(self.values(kind, robot) != KINDS[kind].ideal)
        }
        if "stiffness" not in acting:
            acting.discard("motor_inertia")
        found = ["friction"] * bool(acting.intersection(FRICTION))
        if self.motors and shared_encoders(robot):
            acting.add("resolution")
        order = sorted([*TABLES, *OF_MOTORS], key=lambda name: KINDS[name].of != "joint")
        found += [name for name in order if name in acting and name not in FRICTION]
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
        found = self._own(kind, robot)
        if self.motors or kind in HEAT:
            names = self.names(kind, robot)
            for name, number in motor_numbers(kind, robot).items():
                found[names.index(name)] = number
        return found

    def stribeck_speed(self, robot: System) -> np.ndarray | float:
        """Speed of each control at which the excess of friction has fallen to 1/e.

        Parameters
        ----------
        robot : System
            The robot.

        Returns
        -------
        float or numpy.ndarray
            One for all controls, or shape (nu,), rad/s or m/s.
        """
        speed = STRIBECK_SPEED if self.friction is None else self.friction.stribeck_speed
        return speed * stribeck_sides(robot) if self.motors else speed

    def _own(self, kind: str, robot: System) -> np.ndarray:
        """Numbers that do not come from motors."""
        if kind == "timing":
            return np.array([self.latency, self.jitter])
        if KINDS[kind].of == "wrench":
            return np.array([getattr(entry, kind) for entry in self.wrenches]).reshape(-1)
        value = getattr(self.friction if kind in FRICTION else self, kind, ())
        count = len(self.names(kind, robot))
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
    return tuple(scalar_joints(robot)) if of == "joint" else controls(robot)[0]


def scalar_joints(robot: System) -> dict[str, tuple[int, int]]:
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
    if KINDS[name].ideal:
        sound, wanted = numbers > 0.0, "numbers above zero; infinite: without effect"
    else:
        sound, wanted = (numbers >= 0.0) & np.isfinite(numbers), "finite numbers, zero or more"
    return listed, numbers.ndim == 1 and bool(sound.all()), wanted
