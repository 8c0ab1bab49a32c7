"""Matrices of the law as functions of the joints that matter, enclosed over boxes.

With the shape velocities s and the body momentum P of the base, w = (s, P), the velocities of the
robot are v = H s + N P, and the terms of the law are polynomials in w and the command nu:

    Mhat sdot + chat = H^T B u,      J H sdot = nu - b,
    chat = sum_k C_k m_k(w),         b = sum_k B_k m_k(w),

m_k the products of at most two entries of w. H, N, Mhat, J H, H^T B, C and B depend on the
configuration alone. Where a displacement of the whole robot does not affect the law, they do not
depend on the base pose either and are evaluated at the neutral one. Outputs along inertial axes
turn with the base, by a rotation that changes no length. C and B are computed from values of chat
and b at several w.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf, nextafter
from typing import Any

import casadi as ca
import numpy as np

from concur._polynomials import Space, heading
from concur._polynomials import Walker as PolynomialWalker
from concur.certify._arrays import array, matrix
from concur.certify._checks import check_groups
from concur.certify._intervals import PRECISION, Walker, flint
from concur.codegen import Array, Vector, constant, unit_span
from concur.control import Servo
from concur.errors import OutputError, ReductionError
from concur.robot import solve_positive_definite

SAMPLES = 4
"""Random configurations that test the dependence on a coordinate."""

_WIDTH = 2.0**-44
"""Relative width of the balls around a sample's numbers: more than the graph's constants round.

Entries of two placements differ by structure only if their balls are disjoint. A ball is as wide
as the terms that cancel in its entry, in whatever units they are.
"""


@dataclass(frozen=True, eq=False)
class Parts:
    """The matrices of the law, or their changes, in balls.

    Parameters
    ----------
    decoupling : flint.arb_mat
        D J H with the rows' factors D of `Servo.margins`, shape (size, ns).
    mass : flint.arb_mat
        Mhat, shape (ns, ns).
    actuation : flint.arb_mat
        H^T B, shape (ns, nu).
    drift : flint.arb_mat
        D B, shape (size, m): one column for each product of speeds, in units of their bounds.
    bias : flint.arb_mat
        C, shape (ns, m), likewise.
    velocity : flint.arb_mat
        Output velocity as a matrix of w, shape (size, nw), likewise.
    """

    decoupling: Any
    mass: Any
    actuation: Any
    drift: Any
    bias: Any
    velocity: Any


@dataclass(frozen=True, eq=False)
class Enclosure:
    """Enclosure of the matrices over a box: here + sum_k d_k changes[k], |d_k| <= 1.

    Parameters
    ----------
    here : Parts
        Matrices near the middle of the box.
    changes : list of Parts
        First-order changes by coordinate, those by pairs, and last the remainder.
    to_blame : numpy.ndarray
        Whether a coordinate contributes to a change, shape (coordinates, changes).
    """

    here: Parts
    changes: list[Parts]
    to_blame: np.ndarray


def regular(servo: Servo, q: Vector) -> ca.SX:
    """Bound of the margin beside that of the decoupling matrix: of the lift and of H^T B."""
    model = servo.model
    if model.driven_directly:
        return ca.SX(model.regularity(q))
    return ca.fmin(model.regularity(q), model.leverage_bound(q))


class Graph:
    """Matrices of the law over the coordinates that matter.

    Parameters
    ----------
    servo : Servo
        A servo that takes shape velocities.
    named : sequence of int
        Indices in q of coordinates to keep even if they do not matter.
    speeds : numpy.ndarray or None
        Bounds of the entries of w, shape (nw,); None to bound only the margin.
    where : str
        Place for error messages.

    Raises
    ------
    OutputError
        If the law has conditionals, or depends on the orientation of a body in space.
    ReductionError
        If the velocities follow from the momentum of a joint other than the base.
    """

    def __init__(
        self, servo: Servo, named: Sequence[int], speeds: np.ndarray | None, where: str
    ) -> None:
        check_groups(where, servo.outputs)
        self.servo = servo
        model = servo.model
        self.neutral = np.array(model.robot.neutral(), dtype=float)
        self.speeds = np.zeros(0) if speeds is None else speeds
        given, self.products = _directions(0 if speeds is None else len(speeds))
        # The products of floats exactly as the walker receives them, in units of the bounds.
        self._given = given if speeds is None else speeds[:, None] * given
        # Where a speed is zero, any size shows the dependence on it.
        self._typical = np.where(self.speeds > 0.0, self.speeds, 1.0)
        q, w = ca.SX.sym("q", model.nq), ca.SX.sym("w", len(given))
        parts = [ca.densify(part) for part in self._parts(q, w)]
        whole = ca.Function("whole", [q, w], parts, {"cse": True})
        rng = np.random.default_rng(20)
        samples = [np.asarray(model.robot.random(rng), dtype=float) for _ in range(SAMPLES)]
        base = model.robot.q_slice(model.robot.base.name)
        kept = set(named)
        self.mixing = np.eye(servo.size, dtype=bool)
        if not kept & set(range(*base.indices(model.nq))):
            mixing = self._mixing(Walker(whole), samples, base)
            if mixing is not None:
                self.mixing = mixing
                placed = ca.SX(q)
                placed[base] = ca.DM(self.neutral[base])
                whole = ca.Function("whole", [q, w], _listed(whole(placed, w)), {"cse": True})
        self.matters = _matters(whole, samples, self._typical)
        self.coordinates = tuple(i for i in range(model.nq) if i in self.matters | kept)
        turned = {k for at in map(unit_span, model.quaternions) for k in range(at.start, at.stop)}
        if turned & set(self.coordinates):
            raise OutputError(
                where,
                expected="a law independent of orientations in space, joints with real coordinates",
                came="a law that depends on the orientation of a body in space",
                cure="Use outputs whose velocities turn with the base: R3 with all its axes, SO3, "
                "R3xSO3 or SE3; and joints of one or more real coordinates.",
            )
        self._x = ca.SX.sym("x", len(self.coordinates))
        self._placed = ca.SX(ca.DM(self.neutral))
        self._placed[list(self.coordinates)] = self._x
        values = [ca.densify(part) for part in _listed(whole(self._placed, w))]
        self._walker = PolynomialWalker(
            ca.Function("values", [self._x, w], values, {"cse": True}),
            where,
            {ca.OP_ATAN2: heading},
        )
        self._space = Space((1,) * len(self.coordinates))

    @cached_property
    def regularity(self) -> Walker | None:
        """Regularity of the model, or leverage of the controls if less; None if 1 everywhere."""
        q = ca.SX.sym("q", self.servo.nq)
        value = regular(self.servo, q)
        if value.is_constant() and float(value) == 1.0:
            return None
        whole = ca.Function("regularity", [q], [value])
        return Walker(ca.Function("regularity", [self._x], [whole(self._placed)], {"cse": True}))

    def coefficients(self, q: Vector, w: Vector) -> list[Array]:
        """Return D J H, Mhat and H^T B; the output velocity as a matrix of w; and D B above C."""
        *plain, velocity, both = self._parts(q, w)
        if not w.shape[0]:
            return plain
        zero = ca.DM.zeros(w.shape)
        first = ca.jacobian(both, w)
        columns = []
        for product in self.products:
            if not product:
                columns.append(both)
            elif len(product) == 1:
                columns.append(first[:, product[0]])
            else:
                i, j = product
                second = ca.jacobian(first[:, i], w[j])
                columns.append(second / 2 if i == j else second)
        parts = [velocity, ca.horzcat(*columns)]
        return [*plain, *(ca.substitute(part, w, zero) for part in parts)]

    def configuration(self, x: np.ndarray) -> np.ndarray:
        """Configuration with the given relevant coordinates, neutral in all others."""
        q = self.neutral.copy()
        q[list(self.coordinates)] = x
        return q

    def enclose(self, lower: np.ndarray, upper: np.ndarray) -> Enclosure:
        """Enclose the matrices over a box; balls are NaN where one may be undefined."""
        middle = (lower + upper) / 2
        half = np.maximum(middle - lower, upper - middle)
        half = np.array([nextafter(h, inf) if h else 0.0 for h in half])
        box = [
            self._space.symbol(k, h, m) for k, (h, m) in enumerate(zip(half, middle, strict=True))
        ]
        *plain, velocity, both = self._walker(box, list(self._given), space=self._space)
        with np.errstate(all="ignore"):
            plain = [self._numbers(part)[..., 0] for part in (*plain, velocity * self.speeds)]
            products = self._numbers(both[:, :1], self._weights)
        decoupling, mass, actuation, moving = plain
        columns, size = products[:, 0].swapaxes(1, 2), self.servo.size
        with flint().ctx.workprec(PRECISION):
            found = (decoupling, mass, actuation, columns[:size], columns[size:], moving)
            layers = [Parts(*parts) for parts in zip(*map(_split, found), strict=True)]
        return Enclosure(layers[0], layers[1:], self._involved)

    @cached_property
    def _involved(self) -> np.ndarray:
        """Whether a coordinate is in each term but the constant, shape (coordinates, terms)."""
        one = np.eye(self._space.size, dtype=bool)
        first, second, *_ = self._space.pairs(self._space.size)
        return np.hstack([one, one[:, first] | one[:, second]])

    def _numbers(self, part: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
        """Coefficients and remainder of each entry, (rows, columns, 1 + terms + 1, sums)."""
        n = self._space.size
        sums = 1 if weights is None else weights.shape[1]
        found = np.zeros((*part.shape, 2 + n + self._space.rows(n), sums))
        for place, entry in np.ndenumerate(part):
            model = entry.take(np.zeros(1, dtype=int)) if weights is None else entry.mixed(weights)
            found[place] = np.vstack([model.c, *model.padded(n), model.r])
        return found

    @cached_property
    def _weights(self) -> np.ndarray:
        """Weights of the polynomial's values at `_given` in the coefficient of each product."""
        n = len(self._given)
        found = np.zeros((self._given.shape[1], len(self.products)))
        for k, product in enumerate(self.products):
            if not product:
                found[0, k] = 1.0
            elif len(product) == 1:
                found[[1 + product[0], 1 + n + product[0]], k] = 0.5, -0.5
            elif product[0] == product[1]:
                found[[1 + product[0], 1 + n + product[0], 0], k] = 0.5, 0.5, -1.0
            else:
                # As many products are behind the pairs as values behind those along one speed.
                i, j = product
                found[[k, 1 + i, 1 + j, 0], k] = 1.0, -1.0, -1.0, 1.0
        return found

    def _parts(self, q: Vector, w: Vector) -> list[Array]:
        servo, model = self.servo, self.servo.model
        rows = constant(np.diag(servo.margins.scales[0]))
        parts = [rows @ servo.decoupling(q), model.mass_matrix(q), model.input_matrix(q)]
        if not w.shape[0]:
            return [*parts, ca.SX(servo.size, 0), ca.SX(0, 1)]
        horizontal, carried = model.lift(q)[0], ca.SX(model.nv, 0)
        if w.shape[0] > model.ns:
            nb = len(model.dependent)
            own = solve_positive_definite(model.locked_inertia(q), ca.SX.eye(nb))
            carried = ca.vertcat(own, ca.SX(model.ns, nb))
        v = ca.horzcat(horizontal, carried) @ w
        velocity, drift = servo.motion(q, v)
        forces = model.shape_forces(q, v, ca.SX.zeros(model.ns))
        return [*parts, ca.jacobian(velocity, w), ca.vertcat(rows @ drift, forces)]

    def _mixing(self, walker: Walker, samples: list[np.ndarray], base: slice) -> np.ndarray | None:
        """Output components that the base orientation mixes; None if it has another effect."""
        size = self.servo.size
        mixing = np.eye(size, dtype=bool)
        speeds = np.random.default_rng(7).normal(size=(len(samples), len(self._typical)))
        for q, w in zip(samples, speeds * self._typical, strict=True):
            placed = q.copy()
            placed[base] = self.neutral[base]
            there, here = ([*map(array, walker([_balls(at), _balls(w)]))] for at in (q, placed))
            turn = self._turn(q, placed)
            if not np.allclose(turn @ turn.T, np.eye(size), atol=1e-9):
                return None
            turned = _spread(turn)
            expected = [turned @ here[0], *here[1:]]
            if len(here[4]):
                expected[3] = turned @ here[3]
                expected[4] = np.vstack([turned @ here[4][:size], here[4][size:]])
            for a, b in zip(there, expected, strict=True):
                if not all(_same(x, y) for x, y in zip(a.flat, b.flat, strict=True)):
                    return None
            mixing |= (np.abs(turn) > 1e-9) | (np.abs(turn.T) > 1e-9)
        return mixing

    def _turn(self, q: np.ndarray, placed: np.ndarray) -> np.ndarray:
        """Rotation of output components along inertial axes with the base."""
        robot = self.servo.model.robot
        there, here = (robot.pose(at, robot.base.name)[:3, :3] for at in (q, placed))
        turn, blocks = there @ here.T, []
        for output in self.servo.outputs:
            block = np.eye(output.dim)
            if output.relative_to is not None:
                pass
            elif output.axes is not None:
                chosen = ["xyz".index(axis) for axis in output.axes]
                block = turn[np.ix_(chosen, chosen)]
            elif output.group == "R3xSO3":
                block[:3, :3] = turn
            blocks.append(block)
        size = np.cumsum([0, *map(len, blocks)])
        whole = np.zeros((size[-1], size[-1]))
        for a, b, block in zip(size[:-1], size[1:], blocks, strict=True):
            whole[a:b, a:b] = block
        return whole


def _listed(values: Any) -> list[Any]:
    return list(values) if isinstance(values, (tuple, list)) else [values]


def momentum_size(servo: Servo, where: str) -> int:
    """Count the entries of the body momentum among the speeds; zero at zero momentum.

    A momentum of a joint other than the base is rejected.
    """
    model = servo.model
    if model.takes_momentum and not model.stages:
        return len(model.dependent) if any(model.momentum) else 0
    rng = np.random.default_rng(4)
    drifts = [model.lift(np.asarray(model.robot.random(rng)))[1] for _ in range(SAMPLES)]
    if np.abs(drifts).max(initial=0.0) > 0.0:
        raise ReductionError(
            where,
            expected="velocities from speeds or from the momentum of a floating base",
            came=f"{model.kind} reduction with a momentum of another joint",
            cure="Set the momentum of the stages to zero.",
        )
    return 0


def _balls(values: np.ndarray, width: float = _WIDTH) -> list[Any]:
    """Balls of a relative width around numbers."""
    arb = flint().arb
    return [arb(float(v), width * abs(float(v))) for v in values]


def _spread(turn: np.ndarray) -> np.ndarray:
    """A rotation matrix, widened by rounding."""
    spread = np.empty(turn.shape, dtype=object)
    for place, value in np.ndenumerate(turn):
        spread[place] = flint().arb(float(value), _WIDTH)
    return spread


def _same(a: Any, b: Any) -> bool:
    return bool(a.is_finite() and b.is_finite() and a.overlaps(b))


def _matters(whole: ca.Function, samples: list[np.ndarray], typical: np.ndarray) -> set[int]:
    """Coordinates with a nonzero slope, decided by balls at random configurations.

    A random sum of all entries represents them: an analytic function with a nonzero slope has one
    almost everywhere, and so have almost all such sums. Each entry is in units of its terms, which
    is what the width of its ball measures.
    """
    q, w = (ca.SX.sym(name, whole.numel_in(k)) for k, name in enumerate("qw"))
    entries = ca.vertcat(*map(ca.vec, _listed(whole(q, w))))
    mix = ca.SX.sym("mix", entries.shape[0])
    slopes = ca.densify(ca.gradient(ca.dot(mix, entries), q))
    values = Walker(ca.Function("values", [q, w], [ca.densify(entries)], {"cse": True}))
    walker = Walker(ca.Function("slopes", [q, w, mix], [slopes], {"cse": True}))
    rng = np.random.default_rng(9)
    matters: set[int] = set()
    for sample in samples:
        speeds = rng.uniform(0.5, 1.5, len(typical)) * typical
        point = [_balls(sample), _balls(speeds)]
        sizes = np.array([_terms(v) for v in values(point)[0].entries()])
        signs = rng.choice([-1.0, 1.0], len(sizes))
        weights = rng.uniform(1.0, 2.0, len(sizes)) * signs / np.where(sizes > 0.0, sizes, 1.0)
        slope = walker([*point, _balls(weights, 0.0)])[0].entries()
        matters |= {i for i, v in enumerate(slope) if not (v.is_finite() and v.contains(0))}
    return matters


def _terms(value: Any) -> float:
    """Size of the terms of an entry."""
    return float(value.rad()) / _WIDTH or abs(float(value.mid()))


def _directions(size: int) -> tuple[np.ndarray, list[tuple[int, ...]]]:
    """Points that determine polynomials of second degree, and the products of their terms."""
    one = np.eye(size)
    pairs = [(i, j) for i in range(size) for j in range(i + 1, size)]
    across = [one[i] + one[j] for i, j in pairs]
    points = np.array([np.zeros(size), *one, *-one, *across])
    single: list[tuple[int, ...]] = [(i,) for i in range(size)]
    return points.T, [(), *single, *((i, i) for i in range(size)), *pairs]


def _split(values: np.ndarray) -> list[Any]:
    """Coefficients, each as a matrix, and a ball for the remainder."""
    arb, layers = flint().arb, np.moveaxis(values, 2, 0)
    sound = np.isfinite(layers).all(axis=0)
    rest = np.empty(sound.shape, dtype=object)
    for place, r in np.ndenumerate(layers[-1]):
        rest[place] = arb(0, float(r)) if sound[place] else arb.nan()
    return [*map(matrix, layers[:-1]), matrix(rest)]
