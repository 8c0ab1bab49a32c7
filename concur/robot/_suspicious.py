"""Numbers of a robot that are possible but suspicious."""

from __future__ import annotations

import numpy as np

from concur.robot._lint import suspicious_inertias, suspicious_units
from concur.robot._lint_motors import suspicious_motors
from concur.robot._mechanism import Mechanism

SINGULAR = 1e-7
"""Smallest eigenvalue of the mass matrix with unit diagonal below which it is suspicious. Of 125
robots in use, one has 4e-15 and all others more than 1e-4."""

ROUNDING = 1e-9
"""Excess of a limit that counts as rounding, relative."""

INVOLVED = 0.1
"""Share of the largest component above which a freedom is named as part of a motion."""


def suspicious(robot: Mechanism) -> tuple[str, ...]:
    """Find numbers of a robot that are possible but suggest a mistake.

    Parameters
    ----------
    robot : Mechanism
        The robot.

    Returns
    -------
    tuple of str
        A sentence about each: inertias, lengths and limits, motors, motions without mass.

    Examples
    --------
    >>> import concur as cc
    >>> cc.robot.suspicious(cc.robots.rover_arm())
    ()
    """
    slips = (*suspicious_inertias(robot), *suspicious_units(robot), *suspicious_motors(robot))
    return (*slips, *_near_singular(robot), *_unchecked_limits(robot), *_beyond_limits(robot))


def _near_singular(robot: Mechanism) -> tuple[str, ...]:
    """Motion of the neutral configuration that moves almost no mass."""
    if not robot.nv:
        return ()
    mass = robot.mass_matrix(robot.neutral())
    scale = np.sqrt(np.diag(mass))
    scale[scale == 0.0] = 1.0
    values, vectors = np.linalg.eigh(mass / np.outer(scale, scale))
    if values[0] >= SINGULAR:
        return ()
    motion = np.abs(vectors[:, 0])
    chosen = np.array(robot.freedom_names)[motion > INVOLVED * motion.max()]
    names = ", ".join(f"`{name}`" for name in chosen)
    return (
        f"mass matrix near singular at the neutral configuration: a motion of {names} moves "
        f"{max(values[0], 0.0):.1e} of the inertia that they move one by one",
    )


def _unchecked_limits(robot: Mechanism) -> tuple[str, ...]:
    """Joints whose limit motors may exceed although each of them keeps its own."""
    bounds = dict(zip(robot.control_names, robot.control_limits, strict=True))
    found = []
    for name, limit in zip(robot.freedom_names, robot.torque_limits, strict=True):
        gears = {m.name: abs(m.ratios.get(name, 0.0)) for m in robot.motors}
        gears = {motor: ratio for motor, ratio in gears.items() if ratio}
        together = sum(ratio * bounds[motor] for motor, ratio in gears.items())
        if gears and together > (1.0 + ROUNDING) * limit:
            motors = ", ".join(f"`{motor}`" for motor in gears)
            found.append(
                f"joint `{name}`: its torque limit of {limit:g} is not checked, since {motors} may "
                "exceed it within their own limits: give each motor a smaller `torque`"
            )
    return tuple(found)


def _beyond_limits(robot: Mechanism) -> tuple[str, ...]:
    """Joints that follow others and are out of their limits wherever these are within theirs."""
    limits = {body.name: body.limits for body in robot.bodies}
    found = []
    for mimic in robot.mimics:
        follower, leader = robot.label(mimic.body), robot.label(mimic.of)
        (own,), (other,) = limits[mimic.body], limits[mimic.of]
        low, high = sorted(
            mimic.multiplier * x + mimic.offset if mimic.multiplier else mimic.offset for x in other
        )
        slack = ROUNDING * max(1.0, abs(mimic.offset))
        if low > own[1] + slack or high < own[0] - slack:
            found.append(
                f"joint `{follower}` is never within its limits, {own[0]:g} to {own[1]:g}: it "
                f"follows `{leader}`, within whose limits it is at {low:g} to {high:g}"
            )
    return tuple(found)
