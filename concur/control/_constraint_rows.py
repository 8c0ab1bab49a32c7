"""Distances of capsules as barriers on the shape accelerations."""

from __future__ import annotations

import casadi as ca

from concur.codegen import Array, Vector
from concur.control._core import LawCore
from concur.robot import Clearance


def distance_rows(
    servo: LawCore, clearance: Clearance, q: Vector, v: Vector
) -> tuple[tuple[str, ...], Array, Array, Array]:
    """Names, rows by the shape acceleration, drifts and lower bounds of the distances.

    With the distance d beyond the least one, ``row sdot + drift`` is d'' and is kept above
    ``-alpha^2 d - 2 alpha d'``, with the rate alpha of `approach`.
    """
    model, system, alpha = servo.model, servo.model.system, servo.approach
    at, w = ca.SX.sym("q", system.nq), ca.SX.sym("v", system.nv)
    moving = system.rate(at, w)
    beyond = clearance.seen(system, at) - ca.DM([*clearance.least.values()])
    change = ca.jtimes(beyond, at, moving)
    parts = [beyond, change, ca.jacobian(change, w), ca.jtimes(change, at, moving)]
    found = ca.Function("distances", [at, w], parts).call([q, v], True, False)
    distance, rate, slopes, carried = found
    drift = carried + slopes @ model.velocity_drift(q, v)
    names = tuple(f"distance of {name}" for name in clearance.least)
    low = -(alpha**2) * distance - 2.0 * alpha * rate
    return names, slopes @ model.lift(q)[0], drift, low
