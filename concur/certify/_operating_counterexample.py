"""Counterexamples in an operating box: searched in floats, verified in ball arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from math import sqrt
from typing import Any

import casadi as ca
import numpy as np
from scipy.optimize import brentq, minimize

from concur.certify._arrays import above, array, below, floats, matrix
from concur.certify._intervals import PRECISION, Walker, flint, interval
from concur.certify._operating_box import law_matrix
from concur.certify._operating_graph import Graph
from concur.certify._operating_law import servo_equations

_SAMPLES = 128
_PLACES = 12
# Distance from the ends of the stated ranges, so that rounding does not leave the box.
_INSIDE = 1.0 - 1e-9
_MOST_CORNERS = 9  # speeds of which all combinations of signs are tried


@dataclass(frozen=True, eq=False)
class OperatingCounterexample:
    """State that refutes a claim about an operating box.

    Parameters
    ----------
    q : numpy.ndarray
        Configuration in the box, shape (nq,).
    margin : float or None
        Upper bound of its margin, by ball arithmetic; None if a torque exceeds its limit.
    control : str or None
        Name of the control input that exceeds its limit.
    needed, limit : float or None
        Lower bound of its torque in this direction, by ball arithmetic, and its limit.
    s, pose, twist, acceleration : numpy.ndarray
        Shape velocities and the reference at this state, as `Servo.law` takes them; empty for a
        margin.
    """

    q: np.ndarray
    margin: float | None = None
    control: str | None = None
    needed: float | None = None
    limit: float | None = None
    s: np.ndarray = field(default_factory=lambda: np.zeros(0))
    pose: np.ndarray = field(default_factory=lambda: np.zeros(0))
    twist: np.ndarray = field(default_factory=lambda: np.zeros(0))
    acceleration: np.ndarray = field(default_factory=lambda: np.zeros(0))

    def __str__(self) -> str:
        place = ", ".join(f"{v:.6g}" for v in self.q)
        if self.margin is not None:
            return f"The margin is below {self.margin:.3g} at q = ({place})."
        return (
            f"`{self.control}` needs {self.needed:.5g}, beyond its limit {self.limit:.5g}, at "
            f"q = ({place})."
        )


def singular_place(
    graph: Graph, least: float, lower: np.ndarray, upper: np.ndarray
) -> tuple[OperatingCounterexample | None, float]:
    """Search a box for a configuration with too small a margin; also return the least found."""
    servo = graph.servo
    rng = np.random.default_rng(3)
    places = [(lower + upper) / 2]
    if (upper > lower).any():
        places += [rng.uniform(lower, upper) for _ in range(_SAMPLES)]
        corners = product((0, 1), repeat=min(len(lower), 6))
        for corner in corners:
            ends = np.array([*corner, *(0,) * (len(lower) - len(corner))], dtype=bool)
            places.append(np.where(ends, upper, lower))

    def margin(x: np.ndarray) -> float:
        return servo.margin(graph.configuration(np.clip(x, lower, upper)))

    margins = np.array([margin(x) for x in places])
    best = [places[int(margins.argmin())]]
    if servo.size == servo.ns:

        def determinant(x: np.ndarray) -> float:
            scaled = servo.margins.scales[0][:, None] * servo.decoupling(graph.configuration(x))
            return float(np.linalg.det(scaled))

        signs = np.sign([determinant(x) for x in places])
        if (signs > 0).any() and (signs < 0).any():
            a, b = (places[int(np.flatnonzero(signs == sign)[0])] for sign in (1, -1))
            share = brentq(lambda t: determinant(a + t * (b - a)), 0.0, 1.0, xtol=1e-15)
            best.insert(0, np.clip(a + share * (b - a), lower, upper))
    if (upper > lower).any():
        found = minimize(
            margin, best[-1], method="Nelder-Mead", options={"maxfev": 40 * len(lower)}
        )
        best.append(np.clip(found.x, lower, upper))
    met = min(float(margins.min()), *(margin(x) for x in best))
    for x in best:
        bound = _margin_above(graph, x) if margin(x) <= least else np.inf
        if bound <= least:
            return OperatingCounterexample(graph.configuration(x), margin=bound), met
    return None, met


def _margin_above(graph: Graph, x: np.ndarray) -> float:
    """Upper bound of the margin at one configuration, from a direction in which it is small."""
    with flint().ctx.workprec(PRECISION):
        bound = np.inf
        if graph.regularity is not None:
            point = [interval(float(v), float(v)) for v in x]
            bound = above(graph.regularity([point])[0][0, 0])
        found = graph.enclose(x, x)
        swing = flint().arb(0, 1)
        decoupling = found.here.decoupling + found.changes[-1].decoupling * swing
        mass = found.here.mass + found.changes[-1].mass * swing
        own, inertia = floats(array(decoupling)), floats(array(mass))
        metric = np.linalg.solve(np.linalg.cholesky(inertia), own.T)
        direction = matrix(np.linalg.svd(metric.T)[0][:, -1:])
        pushed = decoupling.transpose() * direction
        try:
            square = array(pushed.transpose() * mass.solve(pushed))[0, 0]
        except ZeroDivisionError:
            return bound
        length = array(direction.transpose() * direction)[0, 0]
        return min(bound, sqrt(max(above(square / length), 0.0)) * (1 + 1e-12))


def strong_state(
    graph: Graph,
    limits: np.ndarray,
    places: Sequence[np.ndarray],
    stated: dict[str, np.ndarray],
) -> OperatingCounterexample | None:
    """Search given configurations for a verified state beyond a limit."""
    servo, model = graph.servo, graph.servo.model
    plain = replace(servo, torque_limits=None)
    size, speeds = servo.size, graph.speeds
    corners = _signs(servo.ns)
    fixed = np.zeros(len(speeds) - servo.ns)
    if len(fixed):
        momentum = np.asarray(model.body_momentum(graph.neutral))
        bounds = speeds[servo.ns :]
        fixed = np.divide(momentum, bounds, out=np.zeros_like(momentum), where=bounds > 0.0)
    w = np.hstack([corners, np.tile(fixed, (len(corners), 1))])
    terms = np.array([[np.prod(row[list(product_)]) for product_ in graph.products] for row in w])
    abelian = np.concatenate([np.full(o.dim, o.lie.abelian) for o in servo.outputs])
    dynamics, zero = servo.error_dynamics, np.zeros(size)
    gain_x = _matrix(lambda x: dynamics.feedback(x, zero), size) * abelian
    gain_v = _matrix(lambda ve: dynamics.feedback(zero, ve), size)
    tried: list[tuple[float, int, float, np.ndarray, tuple[np.ndarray, ...]]] = []
    for x in places:
        F = law_matrix(graph, x)
        if F is None:
            continue
        steady = terms @ F[:, size:].T
        for i, end in product(range(servo.nu), (0, 1)):
            limit, sign = limits[i, end], 1.0 if end else -1.0
            if not np.isfinite(limit):
                continue
            row = sign * F[i, :size]
            s = corners[int((sign * steady[:, i]).argmax())] * stated["speeds"] * _INSIDE
            parts = [
                np.sign(row @ gain) * stated[name] * _INSIDE
                for gain, name in (
                    (np.eye(size), "acceleration"),
                    (gain_x, "pose_error"),
                    (gain_v, "velocity_error"),
                )
            ]
            q = graph.configuration(x)
            state = _state(servo, q, s, *parts)
            u = plain.law(*state)[0]
            excess = sign * (u[i] - limit)
            if excess > 0.0:
                tried.append((float(excess) / max(abs(limit), 1e-12), i, limit, u, state))
    walker = _equations(plain) if tried else None
    for _, i, limit, u, state in sorted(tried, key=lambda one: -one[0])[:_PLACES]:
        ball = _torque(walker, state)[i]
        needed = below(ball) if u[i] > limit else above(ball)
        if (u[i] > limit and needed > limit) or (u[i] < limit and needed < limit):
            name = model.control_names[i]
            q, s, *reference = state
            return OperatingCounterexample(q, None, name, needed, float(limit), s, *reference)
    return None


def _equations(servo: Any) -> Walker:
    """Equations of the law; its elimination selects pivots, which balls cannot order."""
    given, results = servo_equations(servo)
    names = ("decoupling", "residual", "mass", "forces", "actuation")
    parts = [results[name] for name in names]
    return Walker(ca.Function("equations", given, list(map(ca.densify, parts)), {"cse": True}))


def _torque(walker: Walker | None, state: tuple[np.ndarray, ...]) -> np.ndarray:
    """Torques of the law at a state, as balls."""
    assert walker is not None
    with flint().ctx.workprec(PRECISION):
        point = [[interval(float(v), float(v)) for v in part] for part in state]
        decoupling, residual, mass, forces, actuation = walker(point)
        try:
            moved = decoupling.solve(residual)
            return array(actuation.solve(mass * moved + forces))[:, 0]
        except ZeroDivisionError:
            return np.full(actuation.ncols(), flint().arb.nan(), dtype=object)


def _signs(count: int) -> np.ndarray:
    if count <= _MOST_CORNERS:
        return np.array(list(product((-1.0, 1.0), repeat=count)))
    return np.random.default_rng(8).choice([-1.0, 1.0], size=(2**_MOST_CORNERS, count))


def _matrix(linear: Any, size: int) -> np.ndarray:
    """Slope of a function at zero by finite differences; only its signs are used."""
    step = 1e-6
    return np.array([linear(step * row) / step for row in np.eye(size)]).T


def _state(
    servo: Any,
    q: np.ndarray,
    s: np.ndarray,
    acceleration: np.ndarray,
    x: np.ndarray,
    ve: np.ndarray,
) -> tuple[np.ndarray, ...]:
    """A state with a reference that makes the errors; x on commutative groups only."""
    velocity, _ = servo.motion(q, servo.velocity(q, s))
    pose, start, place = np.array(servo.output(q)), 0, 0
    for output in servo.outputs:
        if output.lie.abelian:
            pose[place : place + output.lie.pose_size] += x[start : start + output.dim]
        start, place = start + output.dim, place + output.lie.pose_size
    return q, s, pose, velocity - ve, acceleration
