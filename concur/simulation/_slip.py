"""Wheels that slip: friction, loads and supports of a plant, declared and checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import casadi as ca
import numpy as np

from concur.codegen import constant, finite_floats
from concur.errors import ConcurError, SimulationError, UnknownNameError, shown
from concur.robot import Mechanism, Tree, as_tree, plane_normal, wheel_rows
from concur.robot.joints import Planar, shortest_rotation

DAMPING = 1e6
"""Force per slip speed of a wheel that does not slide, N s/m."""

TIME = 2e-3
"""Time within which friction stops a slip, s: two steps of 1 ms."""

IN_LINE = 1e-6
"""Singular value of the supports' places, over the largest, below which they are in one line."""

LEAST_LOAD = 0.0
"""Load, N, below which a wheel or support would lift off."""

DETERMINATE = 3
"""Supports whose loads follow from equilibrium."""


@dataclass(frozen=True)
class Slip:
    """Friction of wheels that may slip.

    The force F of the ground on a wheel would bring the slip s of its contact point to
    ``-F / damping`` within `time`, but stays in the friction ellipse: its size along the wheel is
    at most grip times load, across the wheel `side` times this. Make it with `Slip.of`.

    Parameters
    ----------
    grip : tuple of float
        Friction coefficient of each wheel, in the order of the robot's wheels.
    side : tuple of float
        Friction across each wheel over that along it, 1 for a friction circle.
    loads : tuple of float, optional
        Constant loads of the wheels, N. Default: computed from the motion.
    supports : mapping of str to sequence of float
        Frictionless supports beside the wheels, such as casters: by name the point of contact in
        the frame of the base, shape (3,), m. Its height does not matter.
    compliance : tuple of float, optional
        Vertical compliance of the wheels and then of the supports, m/N, up to a common factor.
        More than three of them share the load by it.
    damping : float
        Force per slip speed of a wheel that does not slide, N s/m.
    time : float
        Time within which friction stops a slip and loads follow the motion, s. The direction of
        friction leads that of the slip by this time. Steps of integration may take twice as long.

    Raises
    ------
    SimulationError
        If a number is out of range or the lengths differ.

    Examples
    --------
    >>> from concur.simulation import Slip
    >>> Slip(grip=(0.8, 0.8), side=(1.0, 1.0)).grip
    (0.8, 0.8)
    """

    grip: tuple[float, ...]
    side: tuple[float, ...]
    loads: tuple[float, ...] | None = None
    supports: Mapping[str, Sequence[float]] = field(default_factory=dict, hash=False)
    compliance: tuple[float, ...] | None = None
    damping: float = DAMPING
    time: float = TIME

    def __post_init__(self) -> None:
        points = {
            name: tuple(finite_floats(at, f"slip, support `{shown(name)}`", (3,)).tolist())
            for name, at in self.supports.items()
        }
        object.__setattr__(self, "supports", points)
        count = len(self.grip)
        for name, size, least in (
            ("grip", (count,), "zero or more"),
            ("side", (count,), "above zero"),
            ("loads", (count,), "zero or more"),
            ("compliance", (count + len(points),), "above zero"),
            ("damping", (), "above zero"),
            ("time", (), "above zero"),
        ):
            if getattr(self, name) is None:
                continue
            values = np.asarray(finite_floats(getattr(self, name), f"slip, `{name}`"))
            low = values <= 0.0 if least == "above zero" else values < 0.0
            if values.shape != size or low.any():
                raise SimulationError(
                    f"slip, `{name}`",
                    expected=f"{'numbers' if size else 'a number'} {least}"
                    + "".join(f", {own} of them" for own in size),
                    came=shown(getattr(self, name)),
                    cure="Make it with Slip.of(robot, grip).",
                )
            object.__setattr__(self, name, tuple(values.tolist()) if size else float(values))

    @classmethod
    def of(
        cls,
        robot: Mechanism,
        grip: float | Mapping[str, float],
        *,
        side: float | Mapping[str, float] = 1.0,
        loads: float | Mapping[str, float] | None = None,
        supports: Mapping[str, Sequence[float]] | None = None,
        compliance: float | Mapping[str, float] | None = None,
        damping: float = DAMPING,
        time: float = TIME,
    ) -> Slip:
        """Slip of a robot, from a number for all wheels or numbers by name.

        Parameters
        ----------
        robot : Mechanism
            The robot.
        grip : float or mapping of str to float
            Friction coefficient of all wheels, or of each by name.
        side : float or mapping of str to float
            Friction across the wheel over that along it.
        loads : float or mapping of str to float, optional
            Constant loads of the wheels, N. Default: computed from the motion.
        supports : mapping of str to sequence of float, optional
            Frictionless supports: by name the point of contact in the frame of the base, (3,), m;
            default those of the robot.
        compliance : float or mapping of str to float, optional
            Vertical compliance of wheels and supports, m/N; one number if all yield alike. Needed
            for more than three of them.
        damping : float
            Force per slip speed of a wheel that does not slide, N s/m.
        time : float
            Time within which friction stops a slip and loads follow the motion, s.

        Returns
        -------
        Slip
            The slip.

        Raises
        ------
        UnknownNameError
            If a mapping does not name each wheel once.
        SimulationError
            If a number is out of range.

        Examples
        --------
        >>> import concur as cc
        >>> robot = cc.robots.rover_arm()
        >>> front = {"front": (0.5, 0.0, -0.1)}
        >>> slip = cc.simulation.Slip.of(robot, 0.8, supports=front)
        >>> plant = cc.Plant(robot, slip=slip)
        >>> plant.load_names
        ('left_wheel', 'right_wheel', 'front')
        """
        wheels, points = (
            wheel_names(as_tree(robot, f"wheels of `{robot.name}`")),
            robot.supports if supports is None else supports,
        )
        everything = (*wheels, *points)

        def each(
            what: str, given: float | Mapping[str, float] | None, names: tuple[str, ...]
        ) -> tuple[float, ...] | None:
            if not isinstance(given, Mapping):
                return None if given is None else (given,) * len(names)
            if sorted(given) != sorted(names):
                raise UnknownNameError(
                    f"slip of `{robot.name}`, `{what}`",
                    expected=f"a number for each of {', '.join(names)}",
                    came=f"{shown(list(given))}",
                    cure="Check the spelling, or give one number for all.",
                )
            return tuple(given[name] for name in names)

        return cls(
            each("grip", grip, wheels) or (),
            each("side", side, wheels) or (),
            each("loads", loads, wheels),
            dict(points),
            each("compliance", compliance, everything),
            damping,
            time,
        )


def wheel_names(robot: Tree) -> tuple[str, ...]:
    """Name of each wheel: its body's, with a number behind it if the body has several."""
    bodies = [wheel.body for wheel in robot.wheels]
    return tuple(
        name if bodies.count(name) == 1 else f"{name}[{bodies[:k].count(name)}]"
        for k, name in enumerate(bodies)
    )


def check_slip(robot: Mechanism, slip: Slip) -> None:
    """Refuse wheels whose friction or loads have no sound model here."""
    where = f"plant of `{robot.name}`, `slip`"
    if len(slip.grip) != len(robot.wheels) or not robot.wheels:
        came, cure = f"{len(robot.wheels)} wheels", "Make it with Slip.of(robot, grip)."
        raise _refusal(where, f"a robot with {len(slip.grip) or 'some'} wheels", came, cure)
    for wheel in robot.wheels:
        if wheel.kind == "rubber_ball" or wheel.support is not None:
            raise _refusal(
                f"{where}, wheel `{wheel.body}`",
                "wheels on the plane of the base, whose friction is a force in this plane",
                f"a {wheel.kind}" + " with a `support`" * (wheel.support is not None),
                "Leave `slip` out: friction torques and contacts in space are not modelled.",
            )
    if robot.platforms != (0,) or not isinstance(robot.base.joint, Planar):
        raise _refusal(
            where,
            "a base on a Planar joint that carries all wheels",
            f"a {type(robot.base.joint).__name__} base, wheels on {len(robot.platforms)} planes",
            "Leave `slip` out: loads follow from the wrench across one plane.",
        )
    if slip.loads is None:
        _check_loads(where, robot, slip)


def check_step(where: str, slip: Slip | None, dt: float) -> None:
    """Refuse steps for which friction is stiff: they lose stability at 2.78 times its time."""
    if slip is not None and dt > 2 * slip.time:
        raise _refusal(
            f"{where}, `dt`",
            f"steps up to {2 * slip.time:g} s: friction stops a slip in {slip.time:g} s",
            f"{dt:g} s",
            f"Give the slip the `time` {2 * dt:g}, or take shorter steps.",
        )


def _check_loads(where: str, robot: Mechanism, slip: Slip) -> None:
    names, own = load_names(robot, slip), wheel_names(robot)
    if len(set(names)) < len(names):
        came = f"{shown(names)}"
        raise _refusal(f"{where}, `supports`", "names unlike those of wheels", came, "Rename one.")
    normal = robot.base.placement.rotation_matrix @ plane_normal(robot)
    if not float(normal @ np.array(robot.gravity)) < 0.0:
        raise _refusal(
            where,
            "gravity that presses the wheels on their plane",
            f"gravity {tuple(robot.gravity)}, normal {tuple(normal.tolist())}",
            "Set the gravity of the robot, or give constant `loads`.",
        )
    pushing = [drive.name for drive in robot.drives if drive.joints is None]
    if pushing:
        raise _refusal(
            where,
            "motors, whose torques are internal",
            f"the thruster `{pushing[0]}`, which loads the wheels too",
            "Give constant `loads`.",
        )
    if len(names) < DETERMINATE:
        raise _refusal(
            f"{where}, `supports`",
            "three supports or more",
            f"{len(names)}: {', '.join(names)}",
            'Declare frictionless ones: supports={"caster": (0.5, 0.0, -0.1)}; or give constant '
            "`loads`.",
        )
    if len(names) > DETERMINATE and slip.compliance is None:
        raise _refusal(
            f"{where}, `compliance`",
            f"the compliance of each of {len(names)} supports: equilibrium determines three loads",
            "no value",
            "Give compliance=1.0 if all yield alike; only ratios matter.",
        )
    q = ca.SX.sym("q", robot.nq)
    places = ca.Function("places", [q], [ca.densify(load_arms(robot, q, slip))])
    rng = np.random.default_rng(0)
    for sample in [robot.neutral(), *(robot.random(rng) for _ in range(3))]:
        arms = np.array(places(sample))
        arms[1:] -= arms[1:].mean(axis=1, keepdims=True)
        arms[1:] /= np.abs(arms[1:]).max() or 1.0
        if np.linalg.svd(arms)[1][-1] < IN_LINE:
            raise _refusal(
                f"{where}, `supports`",
                "supports that are not in one line",
                f"{', '.join(names)} in one line",
                f"Add a frictionless one beside {', '.join(own)}.",
            )


def load_names(robot: Tree, slip: Slip) -> tuple[str, ...]:
    """Names of what has a load: wheels, then supports, which have none if loads are constant."""
    return (*wheel_names(robot), *(slip.supports if slip.loads is None else ()))


def plane_axes(robot: Tree) -> np.ndarray:
    """Axes of the base's plane and its normal as columns (3, 3), in the frame of the base."""
    return np.array(shortest_rotation(plane_normal(robot).tolist()))


def load_arms(robot: Tree, q: ca.SX, slip: Slip) -> ca.SX:
    """Force along the normal and torques about both axes of the plane by loads of 1 N.

    Parameters
    ----------
    robot : Tree
        Robot with wheels.
    q : casadi.SX
        Its configuration, shape (nq,).
    slip : Slip
        Its supports.

    Returns
    -------
    casadi.SX
        A column for each wheel, then for each support, shape (3, loads); the torques are about the
        origin of the base.
    """
    axes = plane_axes(robot)
    points = [wheel_rows(robot, q, wheel).point for wheel in robot.wheels]
    points += [constant(np.array(at)) for at in slip.supports.values()]
    x, y = (constant(axes[:, k]).T @ ca.horzcat(*points) for k in range(2))
    return ca.vertcat(ca.SX.ones(1, len(points)), y, -x)


def _refusal(where: str, expected: str, came: str, cure: str) -> ConcurError:
    return SimulationError(where, expected=expected, came=came, cure=cure)
