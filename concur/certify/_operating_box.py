"""Bounds over one box of configurations: a lower one of the margin, both of the torque.

Over a box every matrix is its value X0 near the middle plus changes, X = X0 + sum_k d_k X_k with
|d_k| <= 1, from `_operating_graph`.

Margin. With W = D J H and any X, completing a square gives

    W Mhat^-1 W^T >= W X + X^T W^T - X^T Mhat X      wherever Mhat > 0,

with equality at the middle for X = Mhat^-1 W^T. The right side is linear in the enclosed matrices;
its least eigenvalue is the square of a lower bound of the margin. A congruence computed at the
middle brings the matrix near the identity, where Gershgorin's discs are small.

Torque. With Z = W^-1 [D, -D B] and E = H^T B, the torque is u = F (nu, m_k(w)), F = E^-1 (Mhat Z +
[0, C]), linear in commands and products of speeds. Exactly,

    Z - Z0 = W^-1 ([0, -D (B - B0)] - (W - W0) Z0),
    F - F0 = E^-1 ((Mhat - Mhat0) Z0 + Mhat (Z - Z0) + [0, C - C0] - (E - E0) F0),

which is linear in the changes, with enclosed factors on the left.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, isfinite, sqrt
from typing import Any

import numpy as np

from concur.certify._arrays import (
    above,
    array,
    below,
    floats,
    inverse,
    matrix,
    positive_definite,
    sizes,
    spread,
)
from concur.certify._intervals import PRECISION, flint, interval
from concur.certify._operating_graph import Enclosure, Graph

BAND = 1e-9
"""Relative widening of bounds for rounding in coordinates that do not matter."""


_PARTS = (0.98, 0.9, 0.8, 0.65, 0.5, 0.35, 0.2, 0.1, 0.03)
"""Fractions of the squared margin at the middle that are tried as bounds over the box."""


@dataclass(frozen=True, eq=False)
class Demand:
    """Bounds of the commands to the law; they hold together.

    Parameters
    ----------
    command : numpy.ndarray
        Largest commanded acceleration nu with outputs at rest, shape (size,).
    carried : numpy.ndarray
        Largest component i of ad(e_k) ve, shape (size, size): growth of the command with the
        output velocity.
    """

    command: np.ndarray
    carried: np.ndarray


@dataclass(frozen=True, eq=False)
class Bounds:
    """Bounds over a box.

    Parameters
    ----------
    margin : float or None
        Lower bound of the margin, or None.
    lower, upper : numpy.ndarray
        Bounds of the control inputs, shape (nu,), infinite without a bound; empty when no
        torque bounds are requested.
    found : float
        Margin at the middle of the box, in floating point.
    there : numpy.ndarray
        Largest bounds of -u and u at the middle of the box alone, shape (2 nu,).
    margin_shares, torque_shares : numpy.ndarray
        Part of the looseness of the bounds by each coordinate's width, shapes (k,) and (k, nu).
    """

    margin: float | None
    lower: np.ndarray
    upper: np.ndarray
    found: float
    there: np.ndarray
    margin_shares: np.ndarray
    torque_shares: np.ndarray


def bound_box(graph: Graph, demand: Demand | None, lower: np.ndarray, upper: np.ndarray) -> Bounds:
    """Bound margin and, with a demand, torque over a box; always on the safe side."""
    with flint().ctx.workprec(PRECISION):
        found = graph.enclose(lower, upper)
        margin, there, margin_shares = _margin(found)
        if margin is not None and graph.regularity is not None:
            box = [interval(float(a), float(b)) for a, b in zip(lower, upper, strict=True)]
            regular = below(graph.regularity([box])[0][0, 0])
            margin = max(min(margin, regular), 0.0) if isfinite(regular) else None
            middle = [interval(float(x), float(x)) for x in (lower + upper) / 2]
            there = min(there, above(graph.regularity([middle])[0][0, 0]))
        if demand is None:
            none = np.zeros(0)
            shares = np.zeros((len(lower), 0))
            return Bounds(margin, none, none, there, none, margin_shares, shares)
        low, high, needed, torque_shares = _torque(graph, demand, found)
        return Bounds(margin, low, high, there, needed, margin_shares, torque_shares)


def _margin(found: Enclosure) -> tuple[float | None, float, np.ndarray]:
    """Lower bound, value at the middle, and contribution of each coordinate to the difference."""
    here, changes = found.here, found.changes
    shares = np.zeros(len(found.to_blame))
    mass, own = floats(array(here.mass)), floats(array(here.decoupling))
    try:
        X = np.linalg.solve(mass, own.T)
        values, vectors = np.linalg.eigh(own @ X)
        root = np.linalg.inv(np.linalg.cholesky(mass)).T
    except (np.linalg.LinAlgError, ValueError):
        return None, inf, shares
    if not (np.isfinite(X).all() and np.isfinite(vectors).all() and values[-1] > 0.0):
        return None, inf, shares
    middle = sqrt(max(values[0], 0.0))
    scale = vectors / np.sqrt(np.maximum(values, 1e-14 * values[-1]))
    unit, right, outer = matrix(scale), matrix(X @ scale), matrix(root)

    def quadratic(part: Any) -> Any:
        # This order keeps the balls narrow: first the exact factors.
        once = unit.transpose() * part.decoupling * right
        return once + once.transpose() - right.transpose() * part.mass * right

    def turned(part: Any) -> Any:
        return outer.transpose() * part.mass * outer

    moved, masses = [quadratic(c) for c in changes], [turned(c) for c in changes]
    each = [
        [sizes(change).sum(axis=1).max() for change in both]
        for both in zip(moved, masses, strict=True)
    ]
    shares = found.to_blame @ np.max(each, axis=1)[:-1]
    # No bound unless the mass matrix is proved positive definite.
    if not positive_definite(spread(turned(here), masses)):
        return None, middle, shares
    whole, metric = spread(quadratic(here), moved), unit.transpose() * unit
    for part in _PARTS:
        target = float(part * values[0])
        if target > 0.0 and positive_definite(whole - metric * target):
            return sqrt(target) * (1 - BAND), middle, shares
    return 0.0, middle, shares


def law_matrix(graph: Graph, x: np.ndarray) -> np.ndarray | None:
    """Matrix F (nu, size + m) of the law at one configuration, in floats.

    Its columns are commands and products of speeds in units of their bounds; None if singular.
    """
    with flint().ctx.workprec(PRECISION):
        found = _at_middle(graph, graph.enclose(x, x))
        return None if found is None else floats(array(found[1]))


def _factors(found: Enclosure) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """L and Q with L W Q near the identity, and a float inverse of the actuation."""
    mass, own = floats(array(found.here.mass)), floats(array(found.here.decoupling))
    try:
        root = np.linalg.inv(np.linalg.cholesky(mass)).T
        left, values, right = np.linalg.svd(own @ root)
        actuation = np.linalg.inv(floats(array(found.here.actuation)))
        size = np.sqrt(values)
        factors = (left / size).T, root @ (right.T / size), actuation
    except (np.linalg.LinAlgError, ValueError):
        return None
    return factors if all(np.isfinite(factor).all() for factor in factors) else None


def _at_middle(graph: Graph, found: Enclosure) -> tuple[Any, Any] | None:
    """Z and F at the middle."""
    here, factors = found.here, _factors(found)
    if factors is None:
        return None
    left, right, actuation = factors
    one = np.eye(len(actuation))
    W, E = inverse(here.decoupling, left, right), inverse(here.actuation, actuation, one)
    if W is None or E is None:
        return None
    rows, blank = _commands(graph)
    Z = matrix(right) * (W * (matrix(left) * _beside(rows, -here.drift)))
    return Z, E * (matrix(actuation) * (here.mass * Z + _beside(blank, here.bias)))


def _torque(
    graph: Graph, demand: Demand, found: Enclosure
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Lower and upper bounds, those at the middle, and contribution of each coordinate."""
    nu, here, changes = graph.servo.nu, found.here, found.changes
    none, shares = np.full(nu, inf), np.zeros((len(found.to_blame), nu))
    middle, factors = _at_middle(graph, found), _factors(found)
    if middle is None or factors is None:
        return -none, none, np.full(2 * nu, -inf), shares
    Z, F = middle
    low, high = _range(array(F), _loads(graph, demand, sizes(here.velocity)), graph.products)
    there = np.concatenate([-low, high])

    def over(name: str) -> Any:
        return spread(getattr(here, name), [getattr(change, name) for change in changes])

    left, right, actuation = factors
    W = inverse(over("decoupling"), left, right)
    E = inverse(over("actuation"), actuation, np.eye(nu))
    if W is None or E is None:
        return -none, none, there, shares
    _, blank = _commands(graph)
    loads = _loads(graph, demand, sizes(over("velocity")))
    first, force = matrix(left), E * matrix(actuation)
    gain = force * (over("mass") * matrix(right)) * W
    moved = []
    for change in changes:
        own = _beside(blank, first * -change.drift) - (first * change.decoupling) * Z
        forces = change.mass * Z + _beside(blank, change.bias) - change.actuation * F
        moved.append(gain * own + force * forces)
    shares = found.to_blame @ np.array([sizes(change) @ loads for change in moved[:-1]])
    low, high = _range(array(spread(F, moved)), loads, graph.products)
    wider = BAND * np.maximum(np.abs(low), np.abs(high))
    return low - wider, high + wider, there, shares


def _commands(graph: Graph) -> tuple[Any, Any]:
    size = graph.servo.size
    return matrix(np.diag(graph.servo.margins.scales[0])), matrix(np.zeros((size, size)))


def _beside(left: Any, right: Any) -> Any:
    return matrix(np.hstack([array(left), array(right)]))


def _loads(graph: Graph, demand: Demand, velocity: np.ndarray) -> np.ndarray:
    """Largest magnitude of each command and product of speeds, shape (size + m,)."""
    fastest = velocity.sum(axis=1) * (1 + 1e-13)
    command = demand.command + demand.carried @ fastest
    # Along inertial axes the base's heading mixes components, without changing their length.
    mixed = np.sqrt((np.where(graph.mixing, command[None, :], 0.0) ** 2).sum(axis=1))
    alone = graph.mixing.sum(axis=1) == 1
    loads = np.concatenate([np.where(alone, command, mixed), np.ones(len(graph.products))])
    return np.asarray(loads * (1 + 1e-13))  # sums in floats, rounded to the safe side


def _range(
    F: np.ndarray, loads: np.ndarray, products: list[tuple[int, ...]]
) -> tuple[np.ndarray, np.ndarray]:
    """Range of F times all loads within their bounds; the constant and squares have one sign."""
    size = len(loads) - len(products)
    low, high = np.zeros(len(F)), np.zeros(len(F))
    for i, row in enumerate(F):
        middle, radius = flint().arb(0), flint().arb(0)
        for j, (entry, load) in enumerate(zip(row, loads, strict=True)):
            product = products[j - size] if j >= size else None
            if product == ():
                middle += entry
            elif product is not None and len(product) == 2 and product[0] == product[1]:
                middle += entry / 2
                radius += abs(entry) / 2
            else:
                radius += abs(entry) * float(load)
        low[i], high[i] = below(middle - radius), above(middle + radius)
    return low, high
