"""Refusal of friction and springs that are too stiff for explicit steps."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import casadi as ca
import numpy as np

from concur.codegen import constant
from concur.errors import SimulationError
from concur.robot import controls
from concur.simulation._plant import Plant

FASTEST_DECAY = 2.0
"""Largest rate of friction times step: friction held over a step overshoots rest beyond 1 and
chatters beyond 2; a Runge-Kutta step diverges beyond 2.785."""

FASTEST_SPRING = 1.0
"""Largest frequency of a spring times step: at 1 a Runge-Kutta step damps it by 0.6 %."""

CONFIGURATIONS = 8
"""Configurations at which the drives' mobility is computed."""


def mobility_function(plant: Plant) -> Callable[[np.ndarray], np.ndarray]:
    """Accelerations of the controls per control, from rows of numbers of the plant.

    Returns a function from (worlds, n_numbers) to (worlds, CONFIGURATIONS, nu, nu).
    """
    q, p = ca.SX.sym("q", plant.nq), ca.SX.sym("p", plant.n_numbers)
    rng = np.random.default_rng(5)
    _, coupled = plant.per_control(q, p)
    moved = ca.densify(coupled)
    one = ca.Function("mobility", [q, p], [moved], {"cse": True})
    system = plant.robot
    places = [system.neutral(), *(system.random(rng) for _ in range(CONFIGURATIONS - 1))]
    p = ca.SX.sym("p", plant.n_numbers)
    columns = [ca.vec(one(constant(place), p)) for place in places]
    all_places = ca.Function("mobilities", [p], [ca.horzcat(*columns)])

    def evaluated(rows: np.ndarray) -> np.ndarray:
        found = np.array(all_places(ca.DM(rows.T))).T
        shape = len(rows), CONFIGURATIONS, plant.nu, plant.nu
        return np.swapaxes(found.reshape(shape), 2, 3)

    return evaluated


def check_friction(plant: Plant, dt: float) -> None:
    """Refuse friction of a plant that is too stiff for steps of integration.

    Parameters
    ----------
    plant : Plant
        The plant; without friction there is nothing to refuse.
    dt : float
        Length of the steps, s.

    Raises
    ------
    SimulationError
        If the step times the fastest rate of viscous friction, the largest eigenvalue of M^-1
        and the coefficients, is 2 or more at one of some configurations: explicit steps chatter
        then. It names the control and a step that suffices. Dry friction is never too stiff.

    Examples
    --------
    >>> import concur as cc
    >>> from concur.simulation import Friction, check_friction
    >>> robot = cc.robots.rover_arm()
    >>> check_friction(cc.Plant(robot, friction=Friction.of(robot, 0.1, 0.1)), 1e-3)
    """
    friction = plant.friction
    if friction is None:
        return
    rows = plant.numbers({}) if plant.n_numbers else np.zeros((1, 0))
    values: dict[str, Any] = {
        "viscous": np.array(friction.viscous)[None],
        "stiffness": np.full((1, plant.nu), np.inf),
        "names": controls(plant.robot)[0],
    }
    check_stiffness(f"plant of `{plant.name}`", mobility_function(plant)(rows), values, dt)


def check_stiffness(where: str, mobility: np.ndarray, values: Mapping[str, Any], h: float) -> None:
    """Refuse friction and springs that a step of length h does not resolve."""
    slope = np.asarray(values["viscous"])
    soft = np.isfinite(values["stiffness"])
    motor = np.zeros(soft.shape)
    if soft.any():
        motor[soft] = 1.0 / np.broadcast_to(values["motor_inertia"], soft.shape)[soft]
    spring = np.where(soft, values["stiffness"], 0.0)
    damping = np.where(soft, values["damping"], 0.0) if soft.any() else motor
    own = motor[:, None, :, None] * np.eye(motor.shape[1])
    for what, rates, power in (
        ("friction", mobility * np.where(soft, 0.0, slope)[:, None, None, :], 1),
        ("friction of the motor", own * slope[:, None, None, :], 1),
        ("stiffness", (mobility + own) * spring[:, None, None, :], 2),
        ("damping", (mobility + own) * damping[:, None, None, :], 1),
    ):
        if not rates.any():
            continue
        bound = FASTEST_SPRING if power == 2 else FASTEST_DECAY
        fastest = np.abs(np.linalg.eigvals(rates)).max(axis=-1) ** (1.0 / power)
        if (h * fastest).max() < bound:
            continue
        world, place = np.unravel_index(int(fastest.argmax()), fastest.shape)
        rate = float(fastest[world, place])
        among = f", world {world}" if len(fastest) > 1 else ""
        control = values["names"][int(np.argmax(np.diagonal(rates[world, place])))]
        raise SimulationError(
            f"{where}{among}, `{what}` of `{control}`",
            expected=f"a rate below {bound:g} per step of {h:g} s",
            came=f"{rate:.4g} 1/s, {h * rate:.3g} per step",
            cure=f"Take a step of {_rounded(0.95 * bound / rate):g} s or less, or less of it.",
            world=int(world),
            rate=rate,
        )


def _rounded(step: float) -> float:
    """A step with two digits, rounded down."""
    scale = 10.0 ** (math.floor(math.log10(step)) - 1)
    return math.floor(step / scale) * scale
