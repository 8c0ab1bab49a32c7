"""Verify the file of a floater's proof by arithmetic that shares nothing with the prover.

Of the file only the grid, the candidate D of disturbances and the bounds are used, and none is
trusted. Robot, law and reference come from the task.

**What holds.** If `verify_floater` returns, then for all starts and imperfections of the statement:
the segments cover the time; deviations of errors and base stay within a tube that closes for D;
each segment has one root of the joint angles, on the branch of the start; disturbances are strictly
below D; the bounds hold.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from concur.proofs._recheck_balls import Balls, Floats, joined, norm, times
from concur.proofs._recheck_claims import Names, Stored, claims, confirm
from concur.proofs._recheck_flier import Flier, arm_of, flier_of, momentum_of, single
from concur.proofs._recheck_flight import (
    BALLS,
    Course,
    State,
    course,
    rotation_of,
    slopes,
    state,
)
from concur.proofs._recheck_numbers import gains_of
from concur.proofs._recheck_pieces import Formula
from concur.proofs._recheck_poses import carried, exponential, fetched, pulled, pushed, turned
from concur.proofs._recheck_smooth import Rejection, require
from concur.proofs._recheck_tube import Flow, curve
from concur.proofs._recheck_work import spend
from concur.proofs._recheck_wrenches import Needs, needs

SEGMENTS, LONGEST = 2000, 0.05
"""Most segments, and their longest duration (s)."""

BLOCK, ROUNDS, LEAST, LEAST_OF_MASS = 48, 8, 1e-7, 1e-9
"""Segments side by side, candidates of the tube, and its least radii (m, rad); and least wrenches
on the base by the robot's mass (m/s^2)."""

STATE, NEEDS, PAIR = 1e5, 3e5, 2e2
"""Work of a segment's states and bounds, and of two segments (microseconds)."""

WRENCHES = 4
"""Candidates of the wrench on the base that the model lacks."""


@dataclass(frozen=True, eq=False)
class Case:
    """Robot, law and declared start of a task.

    Parameters
    ----------
    flier : Flier
        Numbers of the robot.
    gains : tuple of float
        kp and kd.
    momentum : numpy.ndarray
        Spatial momentum, (6,).
    formula : Formula
        Reference.
    start : numpy.ndarray
        x, ve, quaternion and place of the base, and joint angles, (25,).
    duration : float
        Length of the task (s).
    scales : tuple of numpy.ndarray
        Of the rows and columns of the decoupling matrix.
    names : Names
        Names of the claims.
    measured : bool
        Whether the law measures the base's twist.
    """

    flier: Flier
    gains: tuple[float, float]
    momentum: Floats
    formula: Formula
    start: Floats
    duration: float
    scales: tuple[Floats, Floats]
    names: Names
    measured: bool


def case_of_floater(servo: Any, reference: Any, duration: float, q0: Floats, s0: Floats) -> Case:
    """Numbers of a task; rejects what the checker does not cover."""
    model, outputs = servo.model, servo.outputs
    groups = [output.group for output in outputs]
    require(groups == ["SE3"], "law: the checker covers one output on SE(3)")
    require(outputs[0].relative_to is None, "law: the checker covers outputs in inertial axes")
    flier = flier_of(model.robot, outputs[0])
    kp, kd = gains_of(servo, [slice(0, 6)])[:, 0].tolist()
    inertia = np.asarray(servo.inertia)
    isotropic = np.array_equal(inertia, inertia[0, 0] * np.eye(6))
    require(isotropic, "law: the checker covers one number as the inertia of a law")
    names = list(model.robot.control_names)
    require(list(model.shape_names) == names == list(model.control_names), "law: other motors")
    q0, s0 = np.asarray(q0, dtype=float), np.asarray(s0, dtype=float)
    momentum, formula = np.array(model.momentum, dtype=float), Formula(reference, BALLS)
    base = q0[3:7][:, None], q0[:3][:, None]
    frame = (rotation_of(base[0]), base[1])
    arm = arm_of(flier, q0[7:][:, None])
    carried_by = times("ij,j->i", arm.lower, s0[:, None])
    inner = times("ij,j->i", arm.screws, s0[:, None])
    rest = turned(frame, momentum[:, None]) - carried_by
    # M (V + S s) + N s is the momentum.
    twist = np.linalg.solve(arm.whole[..., 0], rest)[:, 0][:, None]
    hand = fetched(arm.hand, twist)
    pose, aim, _ = (np.asarray(part).ravel() for part in formula.plain(0.0))
    require(inner.shape == twist.shape, "law: other motors")
    turn = (frame[0][..., 0] @ arm.hand[0][..., 0]).T
    place = frame[0][..., 0] @ arm.hand[1][:, 0] + frame[1][:, 0]
    wanted = rotation_of(pose[3:][:, None])[..., 0]
    x = _logarithm(turn @ wanted, turn @ (pose[:3] - place))
    ve = hand - carried(exponential(x[:, None]), aim[:, None])
    start = np.concatenate([x, ve[:, 0], q0[3:7], q0[:3], q0[7:]])
    scales = (np.asarray(servo.margins.scales[0]), np.asarray(servo.margins.scales[1]))
    made = Names(names, names, names, [outputs[0].name], float(servo.margins.refused_below))
    return Case(
        flier, (kp, kd), momentum, formula, start, float(duration), scales, made,
        bool(servo.use_measured_velocity),
    )  # fmt: skip


def _logarithm(turn: Floats, place: Floats) -> Floats:
    """Twist x of a pose exp(x) with an angle below pi, in floats."""
    half = np.array([turn[2, 1] - turn[1, 2], turn[0, 2] - turn[2, 0], turn[1, 0] - turn[0, 1]]) / 2
    angle = np.arctan2(np.linalg.norm(half), (np.trace(turn) - 1) / 2)
    require(bool(angle < 3.0), "start: the hand is turned away from its reference")
    w = half * (angle / np.sin(angle) if angle > 1e-8 else 1.0)
    columns = [exponential(np.concatenate([e, w])[:, None])[1][:, 0] for e in np.eye(3)]
    return np.concatenate([np.linalg.solve(np.array(columns).T, place), w])


def verify_floater(
    case: Case, stored: Stored, progress: Callable[[float], None] | None = None
) -> None:
    """Verify a file; return if all is confirmed.

    Parameters
    ----------
    case, stored
        Robot, law and start of the task; content of the file.
    progress : callable, optional
        Called with the share of the work that is done.

    Raises
    ------
    Rejection
        With the first thing that is not confirmed.
    """
    step = _grid(case, stored)
    claimed, count = claims(case.names, stored), stored.count
    edges = (np.arange(count) + 0.5) * step
    case.formula.continuous(edges, np.full(count, step / 2 * (1 + 1e-9)))
    values, cubics = curve(lambda t, y: _rate(case, t, y), case.start, count, step)
    require(bool(np.isfinite(values).all()), "the declared motion cannot be followed")
    guess = (values[19:, :-1] + values[19:, 1:]) / 2
    blocks = [np.arange(k, min(k + BLOCK, count)) for k in range(0, count, BLOCK)]
    ways = [course(case.formula, case.momentum, cubics, guess, some, step) for some in blocks]
    linear = [_linear(case, way) for way in ways]
    matrices, rest = (np.concatenate([part[k] for part in linear]) for k in (0, 1))
    require(bool(np.isfinite(matrices).all()), "the declared motion is singular")
    flow, given = Flow(matrices, step), stored.statement
    start = np.array([given.place[0], given.heading, given.speed[0]]) + 1e-11
    forcing, errors = np.zeros((3, count)), np.zeros((2, count))
    parts, before = list[Needs](), None
    missing = np.zeros((2, 1)) if _is_wrong(given) else None
    for k, (some, way) in enumerate(zip(blocks, ways, strict=True)):
        push = np.zeros((3, len(some)))
        push[1:] = rest[some], stored.disturbance[0][some]
        here = _closed(case, way, some, flow, start, given, forcing, errors, push, matrices)
        _check_branch(here, before, case.start[19:])
        before = here
        parts.append(_needs(case, way, here, push[2], given.masses, missing))
        if missing is not None:
            missing = given.masses * parts[-1].wrenches[:, -1:]
        if progress:
            progress((k + 1) / len(blocks))
    found = {
        name: np.concatenate([np.atleast_2d(getattr(part, name)) for part in parts], axis=-1)
        for name in vars(parts[0])
    }
    total = _disturbance(stored, found, step)
    bad = ~(total < stored.disturbance[0])
    if bad.any():
        first = int(np.flatnonzero(bad)[0])
        raise Rejection(
            f"segment {first}: the disturbance may reach {total[first]:.6g} m/s^2, which is not "
            f"below D, {stored.disturbance[0, first]:.6g}"
        )
    confirm(claimed, {name: np.where(np.isnan(v), np.inf, v) for name, v in found.items()})


def _grid(case: Case, stored: Stored) -> float:
    """Length of a segment, with the work bounded before it is done."""
    count, given = stored.count, stored.statement
    require(0 < count <= SEGMENTS, f"the file has no segments, or more than {SEGMENTS}")
    step = case.duration / count
    require(step <= LONGEST, f"segments are longer than {LONGEST} s")
    whole = np.array_equal(stored.first, np.arange(count)) and not len(stored.leaves)
    require(whole, "segments do not cover the time without a gap")
    stored.require_disturbance(1)
    sizes = [len(part) for part in (given.place, given.speed)]
    sizes += [len(given.push) or 1, len(given.torque_error) or 6]
    require(sizes == [1, 1, 1, 6], "the statement has other entries than the robot")
    more = (given.reading, given.ground, given.clearance, *given.expressions)
    require(all(part is None for part in more), "the statement has entries of other robots")
    tries = 2 * WRENCHES if _is_wrong(given) else 1
    spend(count * (STATE * (ROUNDS + 1) + NEEDS * tries) + PAIR * count**2)
    return step


def _is_wrong(given: Any) -> bool:
    """Whether masses or momentum differ from those of the model."""
    return given.masses > 0.0 or any(given.momentum_error)


def _needs(
    case: Case, way: Course, here: State, push: Floats, masses: float, missing: Floats | None
) -> Needs:
    """Bounds of segments; those of the wrench are sought from `missing` (2, 1) on, if any.

    For each state and masses the wrench is affine in itself: it stays within radii that this map
    takes to their inside.
    """
    given = (case.flier, case.gains, case.scales, way, here, push)
    if missing is None:
        return needs(*given)
    least = LEAST_OF_MASS * sum(own.mass for link in case.flier.parts for own in link)
    radii = np.repeat(missing, len(push), axis=1) * 1.1 + least
    for _ in range(WRENCHES):
        found = needs(*given, radii, case.measured)
        wanted = masses * found.wrenches * (1 + 1e-12)
        if (wanted < radii).all():
            return found
        radii = np.where(wanted < radii, radii, 1.1 * wanted + least)
    raise Rejection("the wrench on the base by wrong masses has no bound")


def _rate(case: Case, t: float, y: Floats) -> Floats:
    """Rate of x, ve, quaternion, place and angles of the declared motion, in floats."""
    x, ve, q, place, phi = (part[:, None] for part in np.split(y, (6, 12, 16, 19)))
    twist = np.asarray(case.formula.plain(t)[1]).ravel()[:, None]
    arm, turn = arm_of(case.flier, phi), rotation_of(q)
    zeta = carried(arm.hand, ve + carried(exponential(x), twist))
    momentum = turned((turn, place), case.momentum[:, None])
    rest = (momentum - times("ij,j->i", arm.whole, zeta))[:, 0]
    s = np.linalg.lstsq(arm.lower[..., 0], rest, rcond=None)[0]
    base = zeta[:, 0] - arm.screws[..., 0] @ s
    v, w, omega = q[:3, 0], q[3, 0], base[3:]
    spin = np.concatenate([w * omega + np.cross(v, omega), [-v @ omega]]) / 2
    kp, kd = case.gains
    change = -pulled(x, ve)[:, 0], (pushed(x, x) * kp - ve * kd)[:, 0]
    return np.concatenate([*change, spin, turn[..., 0] @ base[:3], s])


def _linear(case: Case, way: Course) -> tuple[Floats, Floats]:
    """Any A_k near the linear part of the rates, (b, 18, 18), and eta's rate at y = 0, (b,)."""
    radii = np.full((3, way.guess.shape[1]), LEAST)
    here = state(case.flier, case.gains, way, radii, np.zeros_like(radii[:2]))
    rows = [np.moveaxis(m.padded(19).g[1:19], -1, 0).transpose(0, 2, 1) for m in here.rates]
    found = np.concatenate(rows, axis=1) / LEAST
    eta = here.rates[1].padded(19)
    g, h = eta.g.copy(), eta.h.copy()
    g[1:19] = 0.0
    h[(eta.blocks.second[: len(h)] > 0) & (eta.blocks.second[: len(h)] < 19)] = 0.0
    still = norm(Balls(eta.blocks, eta.c, g, h, eta.r, eta.size))
    return np.where(here.sound[:, None, None], found, np.nan), still


def _closed(
    case: Case,
    way: Course,
    some: np.ndarray,
    flow: Flow,
    start: Floats,
    given: Any,
    forcing: Floats,
    errors: Floats,
    push: Floats,
    matrices: Floats,
) -> State:
    """States of segments within a tube that closes; `forcing` and `errors` get their bounds there.

    `push` (3, b) bounds what the rates are at y = 0, and the disturbance; `errors` (2, n) bound
    the error of the momentum.
    """
    forcing[:, some] = forcing[:, [max(some[0] - 1, 0)]]
    errors[:, some] = errors[:, [max(some[0] - 1, 0)]]
    forcing[2, some] += np.where(some[0] > 0, 0.0, push[2])
    radii = flow.reached(start, forcing, some) * 1.02 + LEAST
    for _ in range(ROUNDS):
        here = state(case.flier, case.gains, way, radii, errors[:, some])
        where = f"near {some[0] * flow.step:.3g} s"
        require(bool(here.sound.all()), f"no unique joint angles are found in the tube {where}")
        forcing[:, some] = _forcing(way, here, matrices[some], radii) + push
        require(bool(np.isfinite(forcing).all()), f"the base's twist has no bound {where}")
        found, wanted = flow.reached(start, forcing, some), _errors(given, way, here, radii[1])
        if (found < radii).all() and (wanted <= errors[:, some]).all():
            return here
        radii = np.where(found < radii, radii, found * 1.02 + LEAST)
        errors[:, some] = np.where(wanted <= errors[:, some], errors[:, some], 1.05 * wanted)
    raise Rejection(f"the tube does not close {where}")


def _errors(given: Any, way: Course, here: State, eta: Floats) -> Floats:
    """Bounds of the momentum's error, linear and angular (2, b), zero without wrong numbers.

    For each state and masses it is affine in itself, as the wrench.
    """
    linear, angular = given.momentum_error or (0.0, 0.0)
    found = np.array([linear + 0.0 * eta, angular + linear * (way.far + eta)])
    for body in single(here.arm) if given.masses else ():
        own = momentum_of(body, here.base, here.s)
        found += given.masses * np.array([norm(own[:3]), norm(own[3:])])
    return found * (1 + 1e-12)


def _forcing(way: Course, here: State, matrices: Floats, radii: Floats) -> Floats:
    """Bounds of what the rates are beyond A y, by blocks, (3, b), of eta's but that at y = 0.

    By the mean value theorem eta's rate grows by the mean of its slopes on the way to y and to the
    error of the momentum, times both.
    """
    found = np.empty((3, len(matrices)))
    mean = slopes(way, here).averaged(1, 25)
    apart = mean[:, :18] - np.moveaxis(matrices[:, 6:12], 0, -1)
    away = joined([BALLS.ball(k + 1, radii[k]) for k in range(3)])
    found[1] = norm(times("ij,j->i", apart, away))
    found[1] += norm(times("ij,j->i", mean[:, 18:], here.error))
    for k in (0, 2):
        rest = here.rates[k].padded(19)
        own = np.moveaxis(matrices[:, 6 * k : 6 * k + 6], 0, 2).transpose(1, 0, 2)
        share = own * np.repeat(radii, 6, axis=0)[:, None]
        g = rest.g.copy()
        g[1:19] -= share
        more = 1e-15 * np.abs(share).sum(axis=0)
        size = rest.size + np.abs(share).sum(axis=0)
        found[k] = norm(Balls(rest.blocks, rest.c, g, rest.h, rest.r + more, size))
    return found


def _check_branch(here: State, before: State | None, start: Floats) -> None:
    """Reject segments whose joint angles are not the continuation of those before."""
    first, last = (_at_ends(here, sign) for sign in (-1.0, 1.0))
    gap = np.abs(last[:, :-1] - first[:, 1:]) + here.radius[:, :-1]
    same = (gap + 1e-12 <= here.unique[1:]).all()
    if before is None:
        apart, error = np.abs(first[:, 0] - start), 0.0 * start
    else:
        apart, error = np.abs(_at_ends(before, 1.0)[:, -1] - first[:, 0]), before.radius[:, -1]
    same = same and (apart + error + 1e-12 <= here.unique[0]).all()
    require(bool(same), "the joint angles may be on another branch")


def _at_ends(here: State, sign: float) -> Floats:
    """Polynomials of the angles without deviations at an end of the segments, (6, b)."""
    m = here.polynomial
    return np.asarray(m.c + sign * m.g[0] + m.h[0])


def _disturbance(stored: Stored, found: dict[str, Floats], step: float) -> Floats:
    """Bound of |d| in each segment (b,)."""
    given, count = stored.statement, stored.count
    hold = given.period + given.delay
    reach = int(min(np.ceil(hold / step * (1 + 1e-9)), count))

    def late(values: Floats) -> Floats:
        """Largest values over the segments that held torques may come from."""
        back = [np.maximum(np.arange(count) - k, 0) for k in range(reach + 1)]
        return np.asarray(np.max([values[..., own] for own in back], axis=0))

    total = hold * late(found["held"])[0]
    turned = late(found["response_rate"]) * late(found["torque_rate"])
    total = total + hold**2 * turned.sum(axis=0)
    if given.torque_error:
        total = total + np.array(given.torque_error) @ found["response"]
    if given.push:
        total = total + given.push[0]
    total = total + given.masses * found["weights"][0] + found["unseen"][0]
    return np.asarray(total * (1 + 1e-12))
