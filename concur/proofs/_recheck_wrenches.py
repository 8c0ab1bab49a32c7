"""Torques, margins and disturbances of a floating robot, for the checker of proofs.

With the command nu for the hand's acceleration in its own axes, zeta' = Ad(H) nu + [zeta, V], and
a = s' follows from the base's balance (`_recheck_flier`). With K = J H Mhat^-1, the hand's
acceleration by torques, the rate of the torques obeys

    K u' = nu' - (xi')' + K (u)' ,   both rates along the true motion at constant a,

where xi' is the hand's acceleration for a: no rate of a occurs.

**Wrong masses and momentum.** With the error e of the momentum and a wrench w on the base the true
motion obeys the model's balance. A law that does not measure V takes V - y and ve - Ad(H^-1) y
instead, y = M^-1 e, y' = M^-1 (e' - M' y). Between both, momenta and forces without accelerations
are quadratic: their difference is the slope in the middle times y.

**What holds.** Bounds are those of all states in the balls of a `State`, and all disturbances and
wrenches in their balls.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from concur.proofs._recheck_balls import Balls, Dual, Floats, Solver, norm, stacked, times
from concur.proofs._recheck_flier import Arm, Flier, arm_of, newton_euler, single, turning
from concur.proofs._recheck_flight import (
    ACCELERATIONS,
    BALLS,
    PUSH,
    WRENCH,
    Course,
    State,
    pair,
)
from concur.proofs._recheck_poses import (
    bracket,
    carried,
    exponential,
    fetched,
    pushed,
    skew,
    wrench_rate,
)


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
    weights : numpy.ndarray
        Sum over bodies of the acceleration of the hand by the forces of each, (b,).
    wrenches : numpy.ndarray
        Sums over bodies of the largest force and moment of each on the base, (2, b).
    unseen : numpy.ndarray
        Largest effect of what the law does not measure, (b,).
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
    weights: Floats
    wrenches: Floats
    unseen: Floats


def needs(
    flier: Flier,
    gains: tuple[float, float],
    scales: tuple[Floats, Floats],
    way: Course,
    here: State,
    disturbance: Floats,
    missing: Floats | None = None,
    measured: bool = True,
) -> Needs:
    """Bounds for states and disturbances within (b,), and wrenches within `missing` (2, b).

    Without `missing`, masses and momentum are those of the model.
    """
    arm, s, wrong = here.arm, here.s, missing is not None
    push = BALLS.ball(PUSH, disturbance)
    wrench = pair(WRENCH, np.zeros((2, len(disturbance))) if missing is None else missing)
    kp, kd = gains

    def command(x: Any, ve: Any, twist: Any, acceleration: Any) -> Any:
        frame = exponential(x)
        aim = carried(frame, twist)
        return pushed(x, x) * kp - ve * kd + carried(frame, acceleration) - bracket(ve, aim)

    def balance(asked: Any, base: Any, wrench: Any = 0.0) -> tuple[Any, Any]:
        """Rate of the base's twist less that by a, and a, for a rate of the hand's."""
        rest = asked - swept
        return rest, here.solver(wrench - newton_euler(arm, rest, 0.0, base, s)[1])

    swept, one = turning(arm, s), _reduced(arm, here)
    xdot, pulled_back = here.moved
    view = _View(here.ve, here.base, here.zeta)
    miss = None
    if wrong and not measured:
        miss = one.base(here.error)
        view = _View(here.ve - fetched(here.hand, miss), here.base - miss, here.zeta - miss)
    nu = command(here.x, view.ve, way.twist, way.acceleration)
    asked = carried(here.hand, nu)
    rest, a = balance(asked + bracket(view.zeta, view.base), view.base)
    a = a.exact() + BALLS.own(ACCELERATIONS, a.r)
    change = rest - times("ij,j->i", arm.screws, a)
    u = newton_euler(arm, change, a, view.base, s)[0]
    # The true motion: the hand is accelerated by d, too.
    jolt = carried(here.hand, push)
    if miss is None:
        moved = asked + bracket(here.zeta, here.base) + jolt
        true = a - here.solver(times("ij,j->i", arm.whole, jolt) - wrench)
    else:
        own = carried(here.hand, command(here.x, here.ve, way.twist, way.acceleration))
        moved = own + bracket(here.zeta, here.base) + jolt
        true = balance(moved, here.base, wrench)[1]
    lurch = moved - swept - times("ij,j->i", arm.screws, true)
    # Rates at constant accelerations of base and joints, along the true motion.
    relative = here.zeta - here.base
    swing = skew(relative[3:])
    hand = (
        Dual(here.hand[0], times("ij,jk->ik", swing, here.hand[0])),
        Dual(here.hand[1], relative[:3] + times("ij,j->i", swing, here.hand[1])),
    )
    late, rates = arm_of(flier, Dual(here.phi, s), hand), Dual(s, true)
    rate = _View(pulled_back + push, lurch, moved)
    if miss is not None:
        change_of = wrench - wrench_rate(here.base, here.error)
        slip = one.base(change_of - times("ij,j->i", late.whole.rate, miss))
        turned = fetched(here.hand, slip - bracket(relative, miss))
        rate = _View(rate.ve - turned, lurch - slip, moved - slip)
    command_rate = command(
        Dual(here.x, xdot),
        Dual(view.ve, rate.ve),
        Dual(way.twist, way.acceleration),
        Dual(way.acceleration, way.jerk),
    ).rate
    still, twist = Dual(a, 0.0 * a), Dual(view.base, rate.base)
    slow, force = newton_euler(late, Dual(change, 0.0 * change), still, twist, rates)
    turn = (times("ij,j->i", late.screws, still) + turning(late, rates)).rate
    bent = turn - bracket(rate.zeta, view.base) - bracket(view.zeta, rate.base)
    bent = bent - bracket(relative, asked)
    of_rate = _reduced(late, here)
    masses = Solver(one.mass)
    light = masses(np.repeat(np.eye(6)[..., None], len(disturbance), axis=2))
    response = times("ij,jk->ik", one.slope, light)

    def accelerated(torques: Any, force: Any) -> Any:
        """J M^-1 of torques and a wrench on the base: of this, that of the joints at rest."""
        own = masses(torques - times("ji,j->i", one.coupling, force))
        return times("ij,j->i", one.slope, own) + fetched(here.hand, one.base(force))

    held = command_rate - fetched(here.hand, bent) + accelerated(slow.rate, force.rate)
    slewed = of_rate.slope.rate - times("ij,jk->ik", response, of_rate.mass.rate)
    slewed = times("ij,jk->ik", slewed, light)
    margin, pivot = _margins(here, one.mass, scales)
    pulled = here.solver(-times("ij,j->i", arm.whole, carried(here.hand, held)))
    weights, wrenches = np.zeros_like(disturbance), np.zeros((2, len(disturbance)))
    for body in single(arm) if wrong else ():
        torques, force = newton_euler(body, lurch, true, here.base, s)
        weights = weights + norm(accelerated(torques, force))
        wrenches = wrenches + np.array([norm(force[:3]), norm(force[3:])])
    unseen = np.zeros_like(disturbance)
    if miss is not None:
        between = Dual(here.base - miss * 0.5, -miss)
        torques, force = newton_euler(arm, 0.0 * miss, 0.0, between, Dual(s, 0.0 * s))
        own = fetched(here.hand, miss)
        aim = carried(exponential(here.x), way.twist)
        drift = fetched(here.hand, bracket(relative, miss))
        drift = own * kd + bracket(own, aim) - drift
        unseen = norm(drift + accelerated(torques.rate, force.rate))
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
        weights,
        wrenches,
        unseen,
    )


@dataclass(frozen=True, eq=False)
class _View:
    """Velocity error, and twists of base and hand in axes of the base; or their rates."""

    ve: Any
    base: Any
    zeta: Any


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
