"""Reader of the tables [imperfections] of a task: drives, encoders, timing and disturbances."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import Annotated

from annotated_types import Ge, Le, Len

from concur.io._configuration import check_bodies
from concur.robot import Mechanism
from concur.simulation import GravityGradient, Imperfections, Plant, Slip, Wrench
from concur.tables import ByName, Expected, Positive, Time, Vector6, located


@dataclass(frozen=True)
class TimingTable:
    """Delays between measurement and torque.

    Parameters
    ----------
    latency : float, optional
        Time from measurement to torque, s.
    jitter : float, optional
        Largest random addition to it, s.
    """

    latency: Time = 0.0
    jitter: Time = 0.0


@dataclass(frozen=True)
class ImperfectionsTable:
    """Properties of the simulated robot that the model of the law lacks.

    Parameters
    ----------
    motors : bool, optional
        Whether the numbers of the robot's motors act: friction, efficiency, limits of torque and
        speed, and encoders. Default: `true`.
    viscous : float or mapping of str to float, optional
        Viscous friction by control, N m s/rad or N s/m. Default: `0`.
    coulomb : float or mapping of str to float, optional
        Coulomb friction in motion by control, N m or N. Default: `0`.
    stribeck : float or mapping of str to float, optional
        Excess of the friction at breakaway by control, N m or N. Default: `0`.
    full_speed : float, optional
        Without effect, rad/s or m/s: dry friction sticks, and has its full value at any speed.
        Default: none.
    stribeck_speed : float, optional
        Speed at which the excess of friction has fallen to 1/e, rad/s or m/s. Default: `0.1`.
    ripple : float or mapping of str to float, optional
        Torque ripple of each control, as a fraction of its torque. Default: `0`.
    ripple_periods : int, optional
        Number of periods of the ripple in a turn of the joint. Default: `6`.
    lag : float or mapping of str to float, optional
        Time constant of the torque of each control, s. Default: `0`.
    stiffness : float or mapping of str to float, optional
        Stiffness of the flexible joint of each control, N m/rad or N/m. Default: rigid.
    damping : float or mapping of str to float, optional
        Damping of the flexible joint of each control, N m s/rad or N s/m. Default: `0`.
    motor_inertia : float or mapping of str to float, optional
        Inertia of the motor of each flexible joint, kg m^2 or kg. Default: none; required with
        `stiffness`.
    resolution : float or mapping of str to float, optional
        Step of the encoder of each joint with one coordinate, rad or m. Default: `0`.
    noise : float or mapping of str to float, optional
        Standard deviation of the measured position of each such joint, rad or m. Default: `0`.
    velocity_noise : float or mapping of str to float, optional
        Standard deviation of the measured velocity of each such joint, rad/s or m/s. Default: `0`.
    timing : table, optional
        Delays between measurement and torque. Default: none.
    momentum_error : sequence of float, optional
        True momentum at the start minus that of the model: linear, kg m/s, then angular, kg m^2/s.
        Default: zero.
    wrenches : sequence, optional
        Forces and torques on bodies. Default: none.
    gravity_gradient : table, optional
        Torque of the gravity gradient. Default: none.
    """

    motors: bool = True
    viscous: ByName = None
    coulomb: ByName = None
    stribeck: ByName = None
    full_speed: Positive | None = None
    stribeck_speed: Positive | None = None
    ripple: ByName = None
    ripple_periods: (
        Annotated[int, Ge(1), Le(10_000), Expected("a whole number from 1 to 10000")] | None
    ) = None
    lag: ByName = None
    stiffness: ByName = None
    damping: ByName = None
    motor_inertia: ByName = None
    resolution: ByName = None
    noise: ByName = None
    velocity_noise: ByName = None
    timing: TimingTable = field(default_factory=TimingTable)
    momentum_error: Vector6 | None = None
    wrenches: Annotated[
        Sequence[Wrench], Len(0, 100), Expected("tables [[imperfections.wrenches]], at most 100")
    ] = ()
    gravity_gradient: GravityGradient | None = None


def read_imperfections(
    table: ImperfectionsTable | None, robot: Mechanism, path: str | PathLike[str]
) -> Imperfections | None:
    """Imperfections of the plant; an error names table and field."""
    if table is None:
        return None
    for wrench in table.wrenches:
        label = f'[[imperfections.wrenches]] "{wrench.name}"'
        check_bodies([wrench.body], robot, path, label, "body")
    given = {name: value for name, value in vars(table).items() if value is not None}
    for name in ("timing", "wrenches", "gravity_gradient", "full_speed"):
        given.pop(name, None)
    gradient = [] if table.gravity_gradient is None else [table.gravity_gradient]
    given |= vars(table.timing) | {"disturbances": [*table.wrenches, *gradient]}
    with located(path, "[imperfections]"):
        return Imperfections.of(robot, **given)


def read_slip(
    slip: Callable[[Mechanism], Slip] | None, robot: Mechanism, path: str | PathLike[str]
) -> Slip | None:
    """Friction of wheels that may slip; an error names table and field."""
    if slip is None:
        return None
    with located(path, "[plant.slip]"):
        made = slip(robot)
        Plant(robot, slip=made)  # checks loads and supports
        return made
