"""Friction of motors, one model for plants and emulated rigs: it sticks.

Dry friction is a set: a control at rest takes any force up to its level, and stays at rest if that
suffices. A step of integration finds the shares of the levels that act in it from the
accelerations at its start, and keeps them: 1 for a control that keeps moving, less for one that
stays or stops. At its end impulses correct what the shares leave (`stopping_impulses`). So motions
between stops have the order of the method, and a robot at rest does not creep.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from concur.codegen import Array, Vector, as_floats
from concur.errors import SimulationError, UnknownNameError, shown
from concur.robot import Mechanism, scalar, solve_positive_definite
from concur.system import System

STRIBECK_SPEED = 0.1
"""Speed at which friction in excess of Coulomb friction has fallen to 1/e, rad/s or m/s."""

ROUNDS = 6
"""Rounds in which the controls that stick are found; more change nothing in all but rare steps."""


@dataclass(frozen=True)
class Friction:
    """Viscous, Coulomb and Stribeck friction at the controls of a robot.

    A control u at the speed w drives the robot with
    ``u - viscous w - (coulomb + stribeck exp(-(w / stribeck_speed)^2)) sign(w)``. At w = 0 the
    last term is any force up to ``coulomb + stribeck``: a control at rest stays there if this
    suffices.

    Parameters
    ----------
    viscous : tuple of float
        Friction by speed of each control, N m s/rad or N s/m.
    coulomb : tuple of float
        Friction of each moving control, N m or N.
    stribeck : tuple of float, optional
        Friction of each control at breakaway in excess of that in motion, N m or N; default zero.
    stribeck_speed : float
        Speed at which the excess has fallen to 1/e, rad/s or m/s.

    Raises
    ------
    SimulationError
        If a number is negative or not finite, a speed is zero, or the lengths differ.

    Examples
    --------
    >>> from concur.simulation import Friction
    >>> Friction(viscous=(0.1, 0.1), coulomb=(0.05, 0.0)).coulomb
    (0.05, 0.0)
    """

    viscous: tuple[float, ...]
    coulomb: tuple[float, ...]
    stribeck: tuple[float, ...] = ()
    stribeck_speed: float = STRIBECK_SPEED

    def __post_init__(self) -> None:
        if not len(self.stribeck):
            object.__setattr__(self, "stribeck", (0.0,) * len(self.viscous))
        for name in ("viscous", "coulomb", "stribeck"):
            values = as_floats(getattr(self, name), f"friction, `{name}`")
            sound = (values >= 0.0) & np.isfinite(values)
            if values.shape != (len(self.viscous),) or not sound.all():
                raise SimulationError(
                    f"friction, `{name}`",
                    expected="a finite number, zero or more, for each control",
                    came=shown(getattr(self, name)),
                    cure="Make it with Friction.of(robot, viscous, coulomb).",
                )
            object.__setattr__(self, name, tuple(values.tolist()))
        speed = scalar(self.stribeck_speed, "friction, `stribeck_speed`")
        if not speed > 0.0:
            raise SimulationError(
                "friction, `stribeck_speed`",
                expected="a speed above zero, rad/s or m/s",
                came=shown(speed),
                cure="Omit it for the default.",
            )
        object.__setattr__(self, "stribeck_speed", speed)

    @classmethod
    def of(
        cls,
        robot: Any,
        viscous: float | Mapping[str, float] = 0.0,
        coulomb: float | Mapping[str, float] = 0.0,
        stribeck: float | Mapping[str, float] = 0.0,
        stribeck_speed: float = STRIBECK_SPEED,
    ) -> Friction:
        """Friction of a robot, from a number for all controls or numbers by name.

        Parameters
        ----------
        robot : Mechanism
            The robot.
        viscous, coulomb, stribeck : float or mapping of str to float
            A number for all controls, or by name of the control with 0 for the others; N m s/rad
            and N m, or N s/m and N.
        stribeck_speed : float
            Speed, rad/s or m/s, as above.

        Returns
        -------
        Friction
            The friction.

        Raises
        ------
        UnknownNameError
            If there is no such control.

        Examples
        --------
        >>> import concur as cc
        >>> robot = cc.robots.rover_arm()
        >>> friction = cc.simulation.Friction.of(robot, 0.1, {"turret": 0.3})
        >>> friction.coulomb
        (0.0, 0.0, 0.3, 0.0, 0.0)
        """
        where, names = f"friction of `{robot.name}`", robot.control_names
        one, two, three = (
            by_name(f"{where}, `{what}`", "controls", names, given, robot=robot)
            for what, given in (
                ("viscous", viscous),
                ("coulomb", coulomb),
                ("stribeck", stribeck),
            )
        )
        return cls(one, two, three, stribeck_speed)

    def left(self, u: Vector, speed: Vector) -> Any:
        """Forces and torques that are left of the controls.

        Parameters
        ----------
        u : array_like or casadi.SX
            Controls, shape (nu,), N and N m.
        speed : array_like or casadi.SX
            Velocities along the controls, shape (nu,), m/s and rad/s.

        Returns
        -------
        numpy.ndarray or casadi.SX
            Shape (nu,). At rest dry friction counts as zero.
        """
        if isinstance(speed, np.ndarray):
            return np.array(self.left(ca.DM(u), ca.DM(speed))).ravel()
        dry = dry_level(ca.DM(self.coulomb), ca.DM(self.stribeck), speed, self.stribeck_speed)
        return u - ca.DM(self.viscous) * speed - dry * ca.sign(speed)


def dry_level(coulomb: Any, stribeck: Any, speed: Any, stribeck_speed: float) -> Any:
    """Level of dry friction at some speeds, N m or N."""
    return coulomb + stribeck * ca.exp(-((speed / stribeck_speed) ** 2))


@dataclass(frozen=True)
class Sticking:
    """Dry friction in a step, over expressions.

    Parameters
    ----------
    dry : sequence of int
        Controls with dry friction.
    jumps, coupled : casadi.SX
        Accelerations of the robot and of its controls per control, shapes (nv, nu) and (nu, nu).
    soft : sequence of int
        Controls that move the robot through springs: friction acts on their motors.
    inertia : casadi.SX, optional
        Inertias of these motors.
    """

    dry: Sequence[int]
    jumps: Array
    coupled: Array
    soft: Sequence[int] = ()
    inertia: Array | None = None

    def shares(self, speeds: Array, rates: Array, level: Array, h: Array | float) -> Array:
        """Shares of the levels that act in a step, (nu,), from speeds and rates at its start."""
        impulse = h * level
        found = self._impulses(speeds + h * rates, 0.0 * level, impulse)
        return -found / ca.fmax(impulse, 1e-300)

    def response(self, forces: Array) -> tuple[Array, Array, Array]:
        """Changes by forces on controls (nu,): of v, motors, and speeds of the controls."""
        rigid = [k for k in self.dry if k not in self.soft]
        turning = ca.SX(len(self.soft), 1)
        for i, k in enumerate(self.soft):
            if k in self.dry and self.inertia is not None:
                turning[i] = forces[k] / self.inertia[i]
        driven = forces[rigid, 0]
        return self.jumps[:, rigid] @ driven, turning, self.coupled[:, rigid] @ driven

    def stopped(
        self, speeds: Array, share: Array, level: Array, h: Array | float
    ) -> tuple[Array, Array, Array]:
        """Changes at the end of a step, as `response`, from the speeds there."""
        return self.response(self._impulses(speeds, share, h * level))

    def _impulses(self, speeds: Array, share: Array, impulse: Array) -> Array:
        rigid = [k for k in self.dry if k not in self.soft]
        turned = [(i, k) for i, k in enumerate(self.soft) if k in self.dry]
        order = [*rigid, *(k for _, k in turned)]
        motors = [] if self.inertia is None else [1.0 / self.inertia[i] for i, _ in turned]
        mobility = ca.diagcat(self.coupled[rigid, rigid], *motors)
        found = stopping_impulses(mobility, speeds[order], share[order], impulse[order])
        every = ca.SX(speeds.shape[0], 1)
        every[order] = found
        return every


def stopping_impulses(mobility: Array, speed: Array, share: Array, impulse: Array) -> Array:
    """Impulses by which dry friction corrects speeds.

    The speeds contain the impulses ``-impulse share``. With the corrections x they become
    ``speed + mobility x``, and the impulse of friction is ``-impulse`` times their sign, or, where
    they vanish, anything between ``-impulse`` and ``impulse``. So x minimises
    ``x^T mobility x / 2 + speed^T x`` in a box. Which entries lie on its bounds is found in
    rounds: those whose own minimum, the others as they are, is beyond them; the rest solve the
    linear equations. Where the rounds do not end, the start of them counts: friction takes energy.

    Parameters
    ----------
    mobility : casadi.SX
        Change of the speeds per impulse, shape (n, n), symmetric and positive definite.
    speed, share, impulse : casadi.SX
        Speeds, shares that they contain, and level of friction times step; shape (n,).

    Returns
    -------
    casadi.SX
        Impulses, shape (n,).
    """
    low, high = -impulse * (1.0 - share), impulse * (1.0 + share)

    def inside(x: Array) -> Array:
        return ca.fmax(low, ca.fmin(high, x))

    def energy(x: Array) -> Array:
        return ca.dot(x, speed + mobility @ x / 2.0)

    own = ca.diag(mobility)
    # One control after the other: energy falls from that of no correction, which is zero.
    swept = 0.0 * speed
    for k in range(speed.shape[0]):
        least = -(speed[k] + ca.dot(mobility[k, :].T, swept)) / own[k]
        swept[k] = ca.fmax(low[k], ca.fmin(high[k], least))
    found = swept
    for _ in range(ROUNDS if speed.shape[0] > 1 else 0):
        aim = found - (speed + mobility @ found) / own
        at_bound = inside(aim)
        free = (aim > low) * (aim < high)
        fixed = (1.0 - free) * at_bound
        matrix = free @ free.T * mobility + ca.diag(1.0 - free)
        rest = fixed - free * (speed + mobility @ fixed)
        found = solve_positive_definite(matrix, rest)
    found = inside(found)
    # Rounds that do not end must not give energy; up to rounding, those that do are exact.
    return ca.if_else(energy(found) <= (1.0 - 1e-9) * energy(swept), found, swept)


def by_name(
    where: str,
    what: str,
    names: tuple[str, ...],
    given: Any,
    other: float = 0.0,
    robot: System | None = None,
) -> tuple[float, ...]:
    """Numbers in the order of names: from one for all, or a table that may lack some (`other`).

    The error for a joint of the robot names the motors that move it.
    """
    table = given if isinstance(given, Mapping) else dict.fromkeys(names, given)
    motors = robot.motors if isinstance(robot, Mechanism) else ()
    for name in table:
        if name not in names:
            movers = [f"`{motor.name}`" for motor in motors if name in motor.ratios]
            raise UnknownNameError(
                where,
                expected=f"{what} out of {', '.join(names)}",
                came=shown(name),
                cure=f"Its control is the motor {', '.join(movers)}: write this name."
                if movers
                else "Check the spelling.",
            )
    return tuple(table.get(name, other) for name in names)
