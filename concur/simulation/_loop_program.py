"""Programs of closed loops: the ideal one of `simulate`, and those with imperfections."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from concur.control import Law, TrackingLaw, tracking_law
from concur.errors import SimulationError, shown
from concur.robot import unknown_name
from concur.simulation._imperfections import Imperfections, Scalar
from concur.simulation._integrator import FIXED_STEP, grid
from concur.simulation._plant import Plant
from concur.simulation._program import Program
from concur.simulation._slip import check_step


def ideal_program(
    law: TrackingLaw, plant: Plant, method: str, dt: float, per_tick: int | None
) -> Program:
    """Loop without imperfections but the friction of the plant; continuous without `per_tick`."""
    real, bare = Imperfections(friction=plant.friction), replace(plant, friction=None)
    return Program(law, bare, real, (), float(dt), per_tick or 0, method)


def loop_program(
    law: Law,
    plant: Plant,
    imperfections: Imperfections | None = None,
    uncertain: Iterable[Scalar] = (),
    dt: float = 1e-3,
    control_period: float | None = None,
    method: str = "rk4",
) -> Program:
    """Make the graphs of a sampled closed loop with imperfections.

    Parameters
    ----------
    law : Law
        The law: a `Servo`, or any other `concur.control.Law`.
    plant : Plant
        Plant; its friction acts unless the imperfections contain friction.
    imperfections : Imperfections, optional
        Fixed values of imperfections; default none.
    uncertain : iterable of (str, str)
        Kind and name of the imperfections that differ between worlds, see `Imperfections.names`.
    dt : float
        Step of integration, s.
    control_period : float, optional
        Period of the law, s, a whole number of steps; default one step.
    method : str
        "rk4" or "rkmk4".

    Returns
    -------
    Program
        The program.

    Raises
    ------
    SimulationError
        If the numbers do not fit the robot, a step is too long for friction or springs, or plant
        and imperfections both have friction.
    UnknownNameError
        If there is no such imperfection or method.

    Notes
    -----
    Torque lag is exact: with E = exp(-h / 2 tau) the torque at the nodes of a Runge-Kutta step is
    ``u + (u0 - u) {1, E, E^2}`` for the command u and the torque u0 before.

    Examples
    --------
    >>> import concur as cc
    >>> from concur.simulation import Imperfections, loop_program
    >>> robot = cc.robots.rover_arm()
    >>> servo = cc.Servo(cc.reduce(robot), [cc.Output("hand", "forearm", "R3")], 4.0, 4.0)
    >>> real = Imperfections.of(robot, viscous=0.1)
    >>> program = loop_program(servo, cc.Plant(robot), real, {("lag", "turret")})
    >>> program.numbers(deviations={("lag", "turret"): [0.004, 0.008]}).shape
    (2, 1)
    """
    known = tracking_law(law, "loop_program, `law`")
    real = Imperfections() if imperfections is None else imperfections
    for name, value, wanted in (("plant", plant, Plant), ("imperfections", real, Imperfections)):
        if not isinstance(value, wanted):
            raise SimulationError(
                f"loop_program, `{name}`",
                expected=wanted.__name__,
                came=shown(value),
                cure="Write Plant(robot), and Imperfections.of(robot, viscous=0.1).",
            )
    where = f"imperfect `{plant.name}`"
    if method not in FIXED_STEP:
        raise unknown_name(where, "method", method, FIXED_STEP)
    period = dt if control_period is None else control_period
    _, per_tick = grid(where, period, dt, period)
    known.state_bounds.check_period(f"{where}, `control_period`", period)
    check_step(where, plant.slip, dt)
    if plant.friction is not None:
        if real.friction is not None:
            raise SimulationError(
                f"{where}, `friction`",
                expected="friction of the plant or of the imperfections",
                came="both",
                cure="Omit that of the plant.",
            )
        real, plant = replace(real, friction=plant.friction), replace(plant, friction=None)
    if real.momentum_error and not known.model.takes_momentum:
        raise SimulationError(
            f"{where}, `momentum_error`",
            expected="none, for a robot that does not float",
            came=shown(real.momentum_error),
            cure="Omit it.",
        )
    found = _uncertain(where, real, plant, uncertain)
    made = Program(known, plant, real, found, float(dt), per_tick or 1, method)
    made.numbers()  # refuses what is too stiff
    return made


def _uncertain(
    where: str, real: Imperfections, plant: Plant, given: Iterable[Scalar]
) -> tuple[Scalar, ...]:
    """Uncertain imperfections, sorted, after all checks."""
    robot, entries = plant.tree, list(given)
    for entry in entries:
        if not (isinstance(entry, tuple) and [*map(type, entry)] == [str, str]):
            raise SimulationError(
                f"{where}, `uncertain`",
                expected="pairs of kind and name",
                came=shown(entry),
                cure='Write {("lag", "turret")}.',
            )
    found = sorted(set(entries))
    for kind, name in found:
        names = real.names(kind, robot)
        if name not in names:
            raise unknown_name(f"{where}, uncertain `{kind}`", "name", name, names)
        fixed = real.values(kind, robot)[names.index(name)]
        if not np.isfinite(fixed):
            raise SimulationError(
                f"{where}, uncertain `{kind}` of `{name}`",
                expected="a finite fixed value, from which it deviates",
                came=f"{fixed}",
                cure=f"Give `{kind}` of `{name}` in the imperfections.",
            )
    return tuple(found)
