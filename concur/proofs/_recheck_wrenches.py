"""Torques, margins and disturbances of a floating robot, for the checker of proofs.

With the command nu for the hand's acceleration in its own axes, zeta' = Ad(H) nu + [zeta, V], and
a = s' follows from the base's balance (`_recheck_flier`). With K = J H Mhat^-1, the hand's
acceleration by torques, the rate of the torques obeys

    K u' = nu' - (xi')' + K (u)' ,   both rates along the true motion at constant a,

where xi' is the hand's acceleration for a: no rate of a occurs.

**What holds.** Bounds are those of all states in the balls of a `State`, and all disturbances in
their ball.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from concur.proofs._recheck_balls import Balls, Dual, Floats, Solver, norm, stacked, times
from concur.proofs._recheck_flier import Arm, Flier, arm_of, newton_euler, turning
from concur.proofs._recheck_flight import ACCELERATIONS, BALLS, PUSH, Course, State
from concur.proofs._recheck_poses import bracket, carried, exponential, fetched, pushed, skew


@dataclass(frozen=True, eq=False)
class Needs:
    """Bounds over segments; last axis segments.

    Parameters
    ----------
    torque, speed, low, high : numpy.ndarray
        Largest |u| and |s|, negative least and largest angles, (6, b).
    margin, pivot : numpy.ndarray
        Negative bounds from below, (b,).
    corridor : numpy.ndarray
        Largest distance of the hand from its reference, (b,).
    response, response_rate : numpy.ndarray
        Norms of the columns of K and of its rate, (6, b).
    torque_rate : numpy.ndarray
        Largest |u'|, (6, b).
    held : numpy.ndarray
        Largest |K u'|, (b,).
    """

    torque: Floats
    speed: Floats
    low: Floats
    high: Floats
    margin: Floats
    pivot: Floats
    corridor: Floats
    response: Floats
    response_rate: Floats
    torque_rate: Floats
    held: Floats


def needs(
    flier: Flier,
    gains: tuple[float, float],
    scales: tuple[Floats, Floats],
    way: Course,
    here: State,
    disturbance: Floats,
) -> Needs:
    """Bounds for states and disturbances within (b,)."""
    push, arm, s, base, zeta = BALLS.ball(PUSH, disturbance), here.arm, here.s, here.base, here.zeta
    kp, kd = gains

    def command(x: Any, ve: Any, twist: Any, acceleration: Any) -> Any:
        frame = exponential(x)
        aim = carried(frame, twist)
        return pushed(x, x) * kp - ve * kd + carried(frame, acceleration) - bracket(ve, aim)

    xdot, pulled_back = here.moved
    nu = command(
        Dual(here.x, xdot),
        Dual(here.ve, pulled_back + push),
        Dual(way.twist, way.acceleration),
        Dual(way.acceleration, way.jerk),
    )
    across, swept = bracket(zeta, base), turning(arm, s)
    asked = carried(here.hand, nu.value) + across
    rest = asked - swept
    total = newton_euler(arm, rest, 0.0, base, s)[1]
    a = here.solver(-total)
    a = a.exact() + BALLS.own(ACCELERATIONS, a.r)
    change = rest - times("ij,j->i", arm.screws, a)
    u = newton_euler(arm, change, a, base, s)[0]
    # The true motion: the hand is accelerated by d, too.
    jolt = carried(here.hand, push)
    true = a - here.solver(times("ij,j->i", arm.whole, jolt))
    moved = asked + jolt
    lurch = moved - swept - times("ij,j->i", arm.screws, true)
    # Rates at constant accelerations of base and joints, along the true motion.
    swing, place = skew(zeta[3:] - base[3:]), zeta - base
    hand = (
        Dual(here.hand[0], times("ij,jk->ik", swing, here.hand[0])),
        Dual(here.hand[1], place[:3] + times("ij,j->i", swing, here.hand[1])),
    )
    late, rates = arm_of(flier, Dual(here.phi, s), hand), Dual(s, true)
    still, twist = Dual(a, 0.0 * a), Dual(base, lurch)
    slow, force = newton_euler(late, Dual(change, 0.0 * change), still, twist, rates)
    turn = (times("ij,j->i", late.screws, still) + turning(late, rates)).rate
    bent = turn - bracket(moved, base) - bracket(zeta, lurch) - bracket(zeta - base, asked - across)
    one, rate = _reduced(arm, here), _reduced(late, here)
    masses = Solver(one.mass)
    light = masses(np.repeat(np.eye(6)[..., None], len(disturbance), axis=2))
    response = times("ij,jk->ik", one.slope, light)
    # J M^-1 of the rates of wrench and torques: of the base's wrench that of the joints at rest.
    own = masses(slow.rate - times("ji,j->i", one.coupling, force.rate))
    moved = times("ij,j->i", one.slope, own) + fetched(here.hand, one.base(force.rate))
    held = nu.rate - fetched(here.hand, bent) + moved
    slewed = rate.slope.rate - times("ij,jk->ik", response, rate.mass.rate)
    slewed = times("ij,jk->ik", slewed, light)
    margin, pivot = _margins(here, one.mass, scales)
    pulled = here.solver(-times("ij,j->i", arm.whole, carried(here.hand, held)))
    return Needs(
        u.bound,
        s.bound,
        here.phi.reach - here.phi.c,
        here.phi.reach + here.phi.c,
        -margin,
        -pivot,
        norm(here.x[:3]),
        np.array([norm(response[:, k]) for k in range(6)]),
        np.array([norm(slewed[:, k]) for k in range(6)]),
        times("ij,j->i", one.mass, pulled).bound,
        norm(held),
    )


@dataclass(frozen=True, eq=False)
class _Reduced:
    """J H, by which the hand's twist in its own axes follows joint rates, and the mass matrix."""

    slope: Any
    mass: Any
    coupling: Any
    base: Solver


def _reduced(arm: Arm, here: State) -> _Reduced:
    """Matrices (6, 6, b) for zero momentum: the hand's twist in axes of the base is -M^-1 N s."""
    if isinstance(arm.whole, Dual):
        solver = Solver(arm.whole.value)
        value = -solver(arm.lower.value)
        rest = -arm.lower.rate - times("ij,jk->ik", arm.whole.rate, value)
        moved: Any = Dual(value, solver(rest))
    else:
        solver = Solver(arm.whole)
        moved = -solver(arm.lower)
    change = moved - arm.screws
    units = np.repeat(np.eye(6)[..., None], here.phi.c.shape[-1], axis=2)
    mass = stacked([newton_euler(arm, change[:, k], units[k])[0] for k in range(6)])
    columns = []
    for k in range(6):
        own = moved[:, k]
        if isinstance(own, Dual):
            # The hand turns relative to the base.
            turned = own.rate - bracket(here.zeta - here.base, own.value)
            own = Dual(fetched(here.hand, own.value), fetched(here.hand, turned))
        else:
            own = fetched(here.hand, own)
        columns.append(own)
    slope = times("ki,kj->ij", stacked(columns), np.eye(6))
    return _Reduced(slope, times("ki,kj->ij", mass, np.eye(6)), -change, solver)


def _axis(k: int, here: State) -> Floats:
    return np.repeat(np.eye(6)[:, [k]], here.phi.c.shape[-1], axis=1)


def _margins(here: State, mass: Balls, scales: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    """Bounds from below: 1 / sqrt(|Z^T Mhat Z|) and 1 / |S Z|, Z = (J H)^-1 D^-1."""
    rows, columns = scales
    handed = stacked([carried(here.hand, BALLS.plain(_axis(k, here))) for k in range(6)])
    inverse = -here.solver(times("ij,kj->ik", here.arm.whole, handed))
    scaled = inverse * (1.0 / rows)[None, :, None]
    square = times("ji,jk->ik", scaled, times("ij,jk->ik", mass, scaled))
    middle = np.moveaxis(square.c, -1, 0)
    sound = np.isfinite(middle).all(axis=(1, 2)) & np.isfinite(square.reach).all(axis=(0, 1))
    safe = np.where(sound[:, None, None], (middle + middle.transpose(0, 2, 1)) / 2, 0.0)
    odd = np.where(sound[:, None, None], (middle - middle.transpose(0, 2, 1)) / 2, 0.0)
    flat = square - square.c
    apart = norm(stacked([flat[i, j] for i in range(6) for j in range(6)]))
    top = np.linalg.eigvalsh(safe)[:, -1] + np.linalg.norm(odd, axis=(1, 2)) + apart
    top = np.where(sound, top * (1 + 1e-10), np.inf)
    whole = scaled.bound * columns[:, None, None]
    size = np.sqrt((whole**2).sum(axis=(0, 1)))
    return (1 - 1e-10) / np.sqrt(top), (1 - 1e-10) / size
