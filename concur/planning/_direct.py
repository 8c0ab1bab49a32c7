"""A first motion to a goal: all outputs go straight there, without limits of torques.

The rows of the goal shrink along a quintic course of time from 1 to 0. The rates of the shape that
do this follow at each instant by damped least squares, with the base and its drift in the reduced
kinematics; so wheels roll, and momentum counts. Goals on the way end legs of the motion.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from concur.planning._graphs import FINE, STEPS
from concur.planning._transcription import Start, Transcription

DAMPING = 1e-3
"""Damping of the least squares, relative to the largest squared effect of a joint."""

FEEDBACK = 10.0
"""Rate at which rows come back to their course, in durations."""

PASSES = 3
"""Times that the motion is taken again, with a duration from its own largest speed."""

FIRST = 2.0
"""First duration, s."""

PEAK = 0.9
"""Largest share of a speed limit in the guess."""

MOST = 10.0
"""Largest speed of a joint in the guess, in speed limits: goals out of reach ask for any."""

LEAST_LEG = 0.1
"""Least share of the duration between goals on the way."""

Floats = NDArray[np.float64]


def direct_guess(
    form: Transcription, start: Start, wanted: Floats, duration: float | None
) -> Floats:
    """Unknowns of a motion whose rows of the goal go straight to zero."""
    speeds = np.where(np.isfinite(form.bounds.speeds), form.bounds.speeds, 1.0)
    time = duration or FIRST
    for _ in range(PASSES):
        shapes = _shapes(form, start, wanted, time, speeds)
        if duration is not None:
            break
        peak = float((np.abs(np.diff(shapes, axis=0)) * STEPS / speeds).max())
        if abs(peak / PEAK - time) < 0.05 * time:
            break
        time = max(peak / PEAK, 0.5)
    return _fitted(form, start, shapes, time)


def rest_of(form: Transcription, before: Start, unknowns: Floats, start: Start) -> Floats:
    """Unknowns of what is left of a motion from the state of it that is nearest to a start."""
    time, speeds = float(unknowns[-1]), form.bounds.speeds
    speeds = np.where(np.isfinite(speeds), speeds, 1.0)
    points, places = form.points(before, unknowns), np.linspace(0.0, 1.0, FINE * STEPS + 1)
    r, d, _ = form.splines.at(places) @ points
    away = np.square((r - start.r) / (speeds * time)) + np.square((d / time - start.s) / speeds)
    begin = float(places[int(np.argmin(away.sum(axis=1)))])
    left = np.linspace(min(begin, 1.0 - 1.0 / STEPS), 1.0, STEPS + 1)
    shapes = form.splines.at(left)[0] @ points
    return _fitted(form, start, shapes, (1.0 - float(left[0])) * time)


def _fitted(form: Transcription, start: Start, shapes: Floats, time: float) -> Floats:
    """Unknowns of a motion of a duration through shapes at its points, as near as it gets."""
    values = form.splines.at(np.linspace(0.0, 1.0, STEPS + 1))[0]
    first = values @ form.splines.start @ start.parts(time)
    fit = values @ form.splines.inner
    if not form.ends_moving:
        fit = fit[:, :-1]
    table = np.linalg.lstsq(fit, shapes - first, rcond=None)[0]
    last = len(table) - 1 if form.ends_moving else len(table)
    table[:last] = np.clip(table[:last], form.bounds.low, form.bounds.high)
    if not form.ends_moving:
        table = np.vstack([table, np.zeros(form.model.ns)])
    return np.concatenate([table.ravel(), [time]])


def _shapes(
    form: Transcription, start: Start, wanted: Floats, time: float, speeds: Floats
) -> Floats:
    """Shapes at the points of a motion of a duration."""
    bounds, x, r = form.bounds, start.x, start.r
    weight, ns, nx = speeds**2, form.model.ns, start.x.size
    found, still = [r], np.zeros(ns)
    course = np.linspace(0.0, 1.0, STEPS + 1)
    left, leg, begin = _left(course), 0, 0
    ends = [*form.places, STEPS]
    for k in range(STEPS):
        if k == begin:
            first, _ = form.to_goal(x, r, wanted, leg)
            left[begin : ends[leg] + 1] = _left(np.linspace(0.0, 1.0, ends[leg] - begin + 1))
        e, slopes = form.to_goal(x, r, wanted, leg)
        drift, by_rate = form.flow(x, r, still, time)
        effect = slopes[:, :nx] @ by_rate + slopes[:, nx:]
        change = (left[k + 1] - left[k]) * STEPS * first + FEEDBACK * (left[k] * first - e)
        change -= slopes[:, :nx] @ drift
        free = np.ones(ns, dtype=bool)
        for _ in range(2):
            own = effect * (weight * free)
            square = own @ effect.T
            damping = DAMPING * max(float(np.trace(square)), 1e-12) * np.eye(len(e))
            rate = own.T @ np.linalg.solve(square + damping, change)
            rate = np.clip(rate, -MOST * time * speeds, MOST * time * speeds)
            ahead = r + rate / STEPS
            free = (ahead >= bounds.low) & (ahead <= bounds.high)
            if free.all():
                break
        x, r = x + (drift + by_rate @ rate) / STEPS, np.clip(ahead, bounds.low, bounds.high)
        found.append(r)
        if k + 1 == ends[leg]:
            leg, begin = leg + 1, k + 1
    return np.array(found)


def _left(course: Floats) -> Floats:
    """Share of the way that is left, with ends at rest."""
    return 1.0 - course**3 * (10.0 - 15.0 * course + 6.0 * course**2)


def legs_of(form: Transcription, start: Start, wanted: Floats) -> tuple[int, ...]:
    """Points at which a motion passes the goals on its way, by what the speeds of legs need."""
    count = len(form.vias)
    even = np.linspace(0, STEPS, count + 2)[1:-1].round().astype(int)
    speeds = np.where(np.isfinite(form.bounds.speeds), form.bounds.speeds, 1.0)
    shapes = _shapes(replace(form, places=tuple(even.tolist())), start, wanted, FIRST, speeds)
    needed = (np.abs(np.diff(shapes, axis=0)) / speeds).max(axis=1)
    legs = np.array([part.sum() for part in np.split(needed, even)])
    legs = np.maximum(legs / max(legs.sum(), 1e-12), LEAST_LEG)
    found = np.cumsum(legs / legs.sum())[:-1] * STEPS
    return tuple(int(k) for k in np.clip(found.round(), 1, STEPS - 1))
