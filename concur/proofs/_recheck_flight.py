"""States of a floating robot over segments of time, for the checker of proofs.

States are the time, the errors x and ve of the hand and the pose g of the base, as deviations dx,
dv and eta = [p; w] from curves x_c, ve_c and g_c, g = g_c D(eta), D with the quaternion (w / 2, s).
The hand relative to the base is H = D^-1 (g_c^-1 gamma) exp(-x); joint angles solve hand(phi) = H,
by Krawczyk's operator. The hand's twist in axes of the base is

    zeta = Ad(D^-1) Ad(g_c^-1 gamma) (Ad(exp(-x)) ve + tau),   tau = gamma^-1 gamma' ,

and the momentum Pi = Ad*(g) mu + e, so that N s = Pi - M zeta and V = zeta - S s; e is what true
masses and momentum add. With the twist [v; o] of the base and [v_c; o_c] of its curve

    w' = sqrt(1 - |w|^2 / 4) (o - o_c) + w x (o + o_c) / 2,   p' = C(w) v - v_c - o_c x p .

**What holds.** Models of `State` enclose these at all times of the segments for all deviations in
their balls, if it is `sound`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from concur.proofs._recheck_balls import (
    Balls,
    Blocks,
    Dual,
    Floats,
    Solver,
    joined,
    norm,
    reciprocal,
    stacked,
    times,
)
from concur.proofs._recheck_flier import (
    JOINTS,
    MIDDLE,
    Arm,
    Flier,
    arm_of,
    inward,
    outward,
)
from concur.proofs._recheck_numbers import LEVI
from concur.proofs._recheck_pieces import Formula
from concur.proofs._recheck_poses import (
    after,
    bracket,
    carried,
    cross,
    dot,
    exponential,
    fetched,
    inverse,
    pulled,
    pushed,
    scaled,
    skew,
    small,
    turned,
    wrench_rate,
)

BALLS = Blocks((1, 6, 6, 6, 3, 3, *(1,) * 12, 6, 3, 3, *(1,) * 6), 4)
"""Time; dx, eta, dv; error of the momentum; remainders of angles and rates; disturbance; missing
wrench on the base; remainders of accelerations."""

ERROR, ANGLES, RATES, PUSH, WRENCH, ACCELERATIONS = 4, 6, 12, 18, 19, 21
"""First blocks of the error of the momentum and so on."""

UNIQUE = (5e-3, 2e-3, 1e-3, 5e-4, 2.5e-4, 1e-4)
"""Radii within which a root has to be the only one, tried in turn (rad)."""


@dataclass(frozen=True, eq=False)
class Course:
    """Reference and curves over segments, as models of the time.

    Parameters
    ----------
    twist, acceleration, jerk : Balls
        Of the reference, (6, b).
    x, ve : tuple of Balls
        Curves of the errors and their rates.
    aim : tuple
        Pose of the reference relative to the base's curve.
    momentum : Balls
        In axes of the base's curve.
    base : tuple
        Twist of the base's curve, linear and angular.
    far : numpy.ndarray
        Largest distance of the base's curve from the inertial origin (m).
    guess : numpy.ndarray
        Joint angles near the middles, (6, b).
    """

    twist: Balls
    acceleration: Balls
    jerk: Balls
    x: tuple[Balls, Balls]
    ve: tuple[Balls, Balls]
    aim: tuple[Any, Any]
    momentum: Any
    base: tuple[Any, Any]
    far: Floats
    guess: Floats


def course(
    formula: Formula, momentum: Floats, cubics: Floats, guess: Floats, some: np.ndarray, step: float
) -> Course:
    """Reference and curves over some segments, for the spatial momentum (6,)."""
    middle, half = (some + 0.5) * step, np.full(len(some), step / 2 * (1 + 1e-13))
    pose, twist, acceleration = formula.over(middle, half)
    curves: list[tuple[Balls, Balls]] = []
    clock = BALLS.ball(0, np.ones(len(some)))[0]
    square = times(",->", clock, clock)
    for rows in (slice(0, 6), slice(6, 12), slice(12, 16), slice(16, 19)):
        c0, c1, c2, c3 = cubics[:, rows][..., some]

        def along(k: Floats, power: Any) -> Any:
            return times("i,->i", k, power)

        # t^3 differs from 3 t / 4 by at most 1 / 4.
        value = along(c1 + 0.75 * c3, clock) + along(c2, square) + c0
        rounding = 1e-14 * np.abs([c0, c1, c2, c3]).sum(axis=0)
        value = value.with_rest(np.abs(c3) / 4 + rounding)
        rate = (along(2 * c2, clock) + along(3 * c3, square) + c1) * (2 / step)
        curves.append((value, rate))
    x, ve, (q, change), (place, moved) = curves
    turn = rotation_of(q)
    # Twist of the base's curve, of a quaternion of any length.
    v, w, dv, dw = q[:3], q[3], change[:3], change[3]
    spin = scaled(reciprocal(dot(q, q)) * 2.0, scaled(w, dv) - scaled(dw, v) - cross(v, dv))
    wanted = rotation_of(_vector([e.value for e in pose[3:]])), _vector([e.value for e in pose[:3]])
    spatial = BALLS.plain(np.repeat(momentum[:, None], len(some), axis=1))
    return Course(
        _vector([e.value for e in twist]),
        _vector([e.value for e in acceleration]),
        _vector([e.rate for e in acceleration]),
        x,
        ve,
        after(inverse((turn, place)), wanted),
        turned((turn, place), spatial),
        (times("ji,j->i", turn, moved), spin),
        norm(place),
        guess[:, some],
    )


def _vector(entries: list[Balls]) -> Balls:
    found = stacked(entries)
    assert isinstance(found, Balls)
    return found


def rotation_of(q: Any) -> Any:
    """Rotation matrix of a quaternion (x, y, z, w) of any length."""
    v, w = q[:3], q[3]
    turn = skew(v)
    square = times("ij,jk->ik", turn, turn)
    factor = reciprocal(dot(q, q)) * 2.0
    return scaled(factor, scaled(w, turn) + square) + np.eye(3)[:, :, None]


@dataclass(frozen=True, eq=False)
class State:
    """Angles, speeds and rates over segments; `sound` by segment.

    Parameters
    ----------
    x, eta, ve : Balls
        Errors and the base's deviation.
    hand : tuple
        Pose of the hand relative to the base.
    polynomial, radius, unique : Balls, numpy.ndarray, numpy.ndarray
        Joint angles as polynomials, the error of these, and radii where the root is the only one.
    phi, s, base : Balls
        Joint angles and rates with remainders as symbols, and the base's twist.
    arm : Arm
        Frames and inertias.
    solver : Solver
        Of N.
    zeta : Balls
        Twist of the hand in axes of the base.
    error : Balls
        Error of the momentum, in axes of the base.
    moved : tuple of Balls
        Rates of x and ve without disturbance.
    rates : tuple of Balls
        Rates of dx, eta and dv, without disturbance.
    sound : numpy.ndarray
        Whether angles are found and all is bounded.
    """

    x: Balls
    eta: Balls
    ve: Balls
    hand: tuple[Any, Any]
    polynomial: Balls
    radius: Floats
    unique: Floats
    phi: Balls
    s: Balls
    base: Balls
    arm: Arm
    solver: Solver
    zeta: Balls
    error: Balls
    moved: tuple[Balls, Balls]
    rates: tuple[Balls, Balls, Balls]
    sound: np.ndarray


def poses(way: Course, x: Any, eta: Any, ve: Any) -> tuple[Any, tuple[Any, Any], Any, Any]:
    """Deviation of the base, and in its axes pose and twist of the hand, and the momentum."""
    own = small(eta)
    back = exponential(-x)
    hand = after(inverse(own[0]), after(way.aim, back))
    zeta = fetched(own[0], carried(way.aim, carried(back, ve) + way.twist))
    return own, hand, zeta, turned(own[0], way.momentum)


def base_rate(way: Course, eta: Any, own: Any, base: Any) -> Any:
    """Rate of eta for the twist of the base, `own` is that of `poses`."""
    (turn, place), side = own
    (at, spin), omega = way.base, base[3:]
    moved = times("ij,j->i", turn, base[:3]) - at - cross(spin, place)
    return joined([moved, scaled(side, omega - spin) + cross(eta[3:], omega + spin) * 0.5])


def pair(block: int, radii: Floats) -> Balls:
    """Momentum or wrench (6, b) with linear and angular radii (2, b)."""
    found = joined([BALLS.ball(block + k, radii[k]) for k in (0, 1)])
    assert isinstance(found, Balls)
    return found


def state(
    flier: Flier, gains: tuple[float, float], way: Course, radii: Floats, errors: Floats
) -> State:
    """States for radii (3, b) of dx, eta and dv, and (2, b) of the momentum's error."""
    dx, eta, dv = (BALLS.ball(k + 1, radii[k]) for k in range(3))
    x, ve = way.x[0] + dx, way.ve[0] + dv
    own, hand, zeta, momentum = poses(way, x, eta, ve)
    polynomial, radius, unique, sound = _angles(flier, hand, way.guess)
    phi = polynomial + BALLS.own(ANGLES, radius)
    arm = arm_of(flier, phi, hand)
    solver, error = Solver(arm.lower), pair(ERROR, errors)
    s = solver(momentum + error - times("ij,j->i", arm.whole, zeta))
    s = s.exact() + BALLS.own(RATES, s.r)
    base = zeta - times("ij,j->i", arm.screws, s)
    kp, kd = gains
    moved = (-pulled(x, ve), pushed(x, x) * kp - ve * kd)
    rates = (moved[0] - way.x[1], base_rate(way, eta, own, base), moved[1] - way.ve[1])
    sound = sound & solver.sound & np.isfinite(s.reach).all(axis=0)
    return State(
        x, eta, ve, hand, polynomial, radius, unique, phi, s, base, arm, solver, zeta, error, moved,
        rates, sound,
    )  # fmt: skip


def slopes(way: Course, here: State) -> Any:
    """Derivatives of eta's rate by dx, eta, dv and the momentum's error, (6, 24, b).

    Of V = zeta - S s with N s = Pi - M zeta: by the angles, dV = -S' s + S N^-1 (M' zeta + N' s),
    and M zeta + N s is the sum of the links' momenta. The angles follow the hand's displacement.
    """
    arm, cells = here.arm, here.phi.c.shape[-1]
    units = np.repeat(np.eye(6)[..., None], cells, axis=2)
    spread = times("ij,jk->ik", arm.screws, here.solver(units))
    by_twist = units + times("ij,jk->ik", spread, arm.whole)
    by_angles = _by_angles(here, spread)
    seeds = []
    for block in range(3):
        for k in range(6):
            given: list[Any] = [here.x, here.eta, here.ve]
            given[block] = Dual(given[block], units[k])
            seeds.append((given[1], poses(way, *given)))
    displaced = []
    for _, (_, hand, _, _) in seeds[:12]:
        turn = times("ij,kj->ik", hand[0].rate, hand[0].value)
        angle = times("ijk,jk->i", _UNTURNED, turn)
        displaced.append(joined([hand[1].rate - cross(angle, hand[1].value), angle]))
    columns = times("kj,ji->jk", stacked(displaced), np.eye(6))
    moved = times("ij,jk->ik", by_angles, Solver(arm.screws)(columns))
    found = []
    for k, (eta, (own, _, zeta, momentum)) in enumerate(seeds):
        change = times("ij,j->i", by_twist, zeta.rate)
        if k < 12:
            change = change + moved[:, k]
        if isinstance(momentum, Dual):
            change = change - times("ij,j->i", spread, momentum.rate)
        found.append(base_rate(way, eta, own, Dual(here.base, change)).rate)
    own = small(here.eta)
    for k in range(6):
        found.append(base_rate(way, here.eta, own, Dual(here.base, -spread[:, k])).rate)
    return times("kj,ji->jk", stacked(found), np.eye(6))


def _by_angles(here: State, spread: Any) -> Any:
    """Derivatives of the base's twist by the angles at constant zeta and momentum, (6, 6, b)."""
    arm, s, joints = here.arm, here.s, range(JOINTS)
    screws = [arm.screws[:, j] for j in joints]
    own = [scaled(s[j], screws[j]) for j in joints]
    twists, below = [here.base], [arm.links[0]]
    for j in joints:
        twists.append(twists[j] + own[j])
        below.append(below[j] + arm.links[j + 1])
    carried_by = [times("ij,j->i", m, v) for m, v in zip(arm.links, twists, strict=True)]
    above = carried_by[JOINTS]
    sums = [above]
    for j in reversed(range(1, JOINTS)):
        above = above + carried_by[j]
        sums.insert(0, above)
    found = []
    for k in joints:
        change = wrench_rate(screws[k], sums[k])
        for i in range(k + 1, JOINTS + 1):
            change = change - times("ij,j->i", arm.links[i], bracket(screws[k], twists[i]))
        turned_by = [(j, bracket(screws[k], own[j])) for j in range(k + 1, JOINTS)]
        for j, part in turned_by:
            change = change - times("ij,j->i", below[j], part)
        total = times("ij,j->i", spread, change)
        for _, part in turned_by:
            total = total - part
        found.append(total)
    return times("kj,ji->jk", stacked(found), np.eye(6))


_UNTURNED = -LEVI / 2
"""Of the vector of the skew part of a matrix X: (X_32 - X_23) / 2, .."""

_BEFORE, _AFTER = (
    np.einsum("ijk,jnl->inlk", _UNTURNED, LEVI),
    np.einsum("ijk,nlk->ilnj", _UNTURNED, LEVI),
)
"""The same of a^ X and of X a^, as forms of a and X."""


def _apart(flier: Flier, phi: Any, hand: tuple[Any, Any]) -> tuple[Any, Any]:
    """Equations (6, b) for angles with the hand at a pose, and their derivatives (6, 6, b).

    That the link in the middle has the same frame from the base and from the hand.
    """
    first = outward(flier, phi, MIDDLE)
    last = inward(flier, phi, hand, JOINTS - MIDDLE)
    ahead, back = first.places[-1], last.places[0]
    turn = times("ij,kj->ik", first.turns[-1], last.turns[0])
    off = joined([ahead - back, times("ijk,jk->i", _UNTURNED, turn)])
    before, behind = times("inlk,lk->in", _BEFORE, turn), times("ilnj,jn->il", _AFTER, turn)
    columns = []
    for axis, place in zip(first.axes, first.places[1:], strict=True):
        columns.append(joined([cross(axis, ahead - place), times("in,n->i", before, axis)]))
    for axis, place in zip(last.axes, last.places[1:], strict=True):
        columns.append(joined([cross(axis, back - place), times("il,l->i", behind, axis)]))
    return off, times("kj,ji->jk", stacked(columns), np.eye(6))


def _angles(
    flier: Flier, hand: tuple[Any, Any], guess: Floats
) -> tuple[Balls, Floats, Floats, np.ndarray]:
    """Angles with the hand at a pose: polynomials, their errors, radii of uniqueness, soundness.

    With Y the inverse slope in the middle, D >= |Y g| at the polynomials and K >= |1 - Y g'| in a
    box about them: D + K rho <= rho shows one root within rho, the only one of the box.
    """
    phi, middle = guess, (hand[0].c, hand[1].c)
    for _ in range(8):
        off, slope = _apart(flier, phi, middle)
        slopes = np.moveaxis(slope, -1, 0)
        sound = np.isfinite(slopes).all(axis=(1, 2)) & np.isfinite(off).all(axis=0)
        safe = np.where(sound[:, None, None], slopes, np.eye(6))
        sound &= np.abs(np.linalg.det(safe)) > 0.0
        y = np.moveaxis(np.linalg.inv(np.where(sound[:, None, None], safe, np.eye(6))), 0, -1)
        phi = phi - np.where(sound, times("ij,j->i", y, off), 0.0)
    exact, found = (hand[0].exact(), hand[1].exact()), BALLS.plain(phi)
    for _ in range(3):
        off = _apart(flier, found, exact)[0]
        found = (found - times("ij,j->i", y, off)).exact()
    defect = times("ij,j->i", y, _apart(flier, found, hand)[0]).bound

    def contraction(radius: Floats) -> Floats:
        """K over boxes."""
        slope = _apart(flier, found.with_rest(radius), hand)[1]
        return np.asarray((times("ij,jk->ik", y, slope) - np.eye(6)[:, :, None]).bound)

    unique = np.zeros(len(sound))
    for size in UNIQUE:
        if (unique[sound] > 0.0).all():
            break
        gain = contraction(np.full(phi.shape, size)).sum(axis=1)
        good = sound & (unique == 0.0) & (gain.max(axis=0) < 0.99)
        good &= (defect + gain * size <= size).all(axis=0)
        unique[good] = size
    sound &= unique > 0.0
    safe = np.where(sound, defect, 0.0)
    radius = 4.0 * safe + 1e-15
    for _ in range(2):
        gain = np.where(sound, contraction(radius), 0.0)
        left = np.eye(6) - np.moveaxis(gain, -1, 0)
        least = np.linalg.solve(left, safe.T[..., None])[..., 0].T * (1 + 1e-6) + 1e-15
        radius = np.where((least > 0.0) & (least < radius), least, radius)
    gain = contraction(radius)
    sound &= (defect + np.einsum("ijb,jb->ib", gain, radius) <= radius).all(axis=0)
    sound &= (radius <= unique).all(axis=0)
    return found, np.where(sound, radius, np.inf), unique, sound
