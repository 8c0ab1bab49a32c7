"""Torques, speeds, margins and forces of a wheeled robot with an arm, over cells.

The state of the statement is (t, x, ve, delta): by the symmetry of the plane and of rolling, the
law in the axes of the base depends on the arm's angles and the shape velocities only (`task-proof`,
sections 0, 2 and 3). All vectors are in axes of the base; balls of errors look the same in them.

    f(phi) = rel,   J H s = ydot,   J H a = nu - b,   u = Mhat a + chat,
    nu = kp x - kd ve + gamma'',   J H sdot = nu + d - b,   udot by the chain rule,

with the disturbance d as one more ball, so that sdot is the true one.

**What holds.** Each returned bound is one for every point of the cell: every relative position rel
in the lattice cell, every time of the segment, every heading within the wall, all errors and
disturbances within their radii, taken as independent of each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from concur._polynomials import Floats, Model, Space, norm_bound
from concur.proofs._added import Added
from concur.proofs._configurations import Configurations, inverse_matrix
from concur.proofs._readings import State
from concur.proofs._wheeled import Robot

SPACE = Space((1, 1, 1, 1, 1, 2, 3, 2, 3, 2, 3), curved=10)
"""Relative position, time, heading; ve, x and disturbances of base and hand.

The law has no products of x and d but with the others: remainders contain them."""

CLOCK, DELTA = 3, 4
_V, _X, _D = (5, 6), (7, 8), (9, 10)


@dataclass(frozen=True, eq=False)
class Nominal:
    """Vectors of the declared motion in axes of the base, over segments.

    Each is a list of five models (base, then hand) in the time and the heading. `relative` is the
    place of the hand from the output of the base, `places` are those of some points in the world.
    """

    x: list[Model]
    ve: list[Model]
    rate: list[Model]
    acceleration: list[Model]
    jerk: list[Model]
    relative: list[Model]
    places: list[list[Model]]

    def take(self, columns: np.ndarray) -> Nominal:
        """Some of the segments, once for each cell."""
        names = ("x", "ve", "rate", "acceleration", "jerk", "relative")
        vectors = {name: [m.take(columns) for m in getattr(self, name)] for name in names}
        return Nominal(**vectors, places=[[m.take(columns) for m in p] for p in self.places])


def turned_back(vector: Sequence[Model], cosine: Model, sine: Model) -> list[Model]:
    """R(-theta) of base (2) and hand (3) vectors."""
    found = list(vector)
    for i in (0, 2):
        x, y = vector[i], vector[i + 1]
        found[i], found[i + 1] = cosine * x + sine * y, cosine * y - sine * x
    return found


@dataclass(frozen=True, eq=False)
class Radii:
    """Radii of the balls for each cell: errors and disturbances of base and hand, (2, b).

    `jump` are those of the reference's acceleration, which `d` contains.
    """

    x: Floats
    ve: Floats
    d: Floats
    jump: Floats


@dataclass(frozen=True, eq=False)
class Arm:
    """What depends on the arm's angles only, over lattice cells.

    Parameters
    ----------
    phi : Configurations
        Angles.
    inverse, response : numpy.ndarray
        Models of (J H)^-1 and J H Mhat^-1, shape (ns, ns).
    slopes : numpy.ndarray
        Bounds of the derivative of each output's part of `response` by each angle, by columns,
        shape (3, 2, ns, b).
    margin, pivot : numpy.ndarray
        Lower bounds of the decoupling margin and of the law's pivot, shape (b,).
    own : dict of str to numpy.ndarray
        What added quantities need; last axis cells.
    """

    phi: Configurations
    inverse: np.ndarray
    response: np.ndarray
    slopes: Floats
    margin: Floats
    pivot: Floats
    own: dict[str, Floats]

    def take(self, columns: np.ndarray) -> Arm:
        """Some of the cells."""
        pick = np.vectorize(lambda m: m.take(columns), otypes=[object])
        return Arm(
            self.phi.take(columns),
            pick(self.inverse),
            pick(self.response),
            self.slopes[..., columns],
            self.margin[columns],
            self.pivot[columns],
            {name: part[..., columns] for name, part in self.own.items()},
        )

    def joined(self, other: Arm) -> Arm:
        """These cells, then others."""
        join = np.vectorize(Model.joined, otypes=[object])
        return Arm(
            self.phi.joined(other.phi),
            join(self.inverse, other.inverse),
            join(self.response, other.response),
            np.concatenate([self.slopes, other.slopes], axis=-1),
            np.append(self.margin, other.margin),
            np.append(self.pivot, other.pivot),
            {
                name: np.concatenate([part, other.own[name]], axis=-1)
                for name, part in self.own.items()
            },
        )


def arm(robot: Robot, phi: Configurations, added: Added) -> Arm:
    """Matrices of the arm, and bounds of the decoupling margin and of the law's pivot from below.

    With A = D J H and G = A^-T Mhat A^-1 the margin is 1 / sqrt(|G|); |G| is at most that of the
    middle and the Frobenius norm of the change.
    """
    decoupling, mass = robot.matrices(phi.models)
    inverse, masses = inverse_matrix(decoupling), inverse_matrix(mass)
    rows, columns = robot.servo.margins.scales
    scaled = inverse / rows
    square = scaled.T @ mass @ scaled
    entries = np.array([[m.c for m in row] for row in square])
    change = np.array([[m.reach for m in row] for row in square])
    sound = np.isfinite(entries).all(axis=(0, 1)) & np.isfinite(change).all(axis=(0, 1))
    middle = np.linalg.norm(np.moveaxis(np.where(sound, entries, 0.0), 2, 0), 2, axis=(1, 2))
    largest = middle * (1 + 1e-12) + np.sqrt(
        (np.where(sound, change, np.inf) ** 2).sum(axis=(0, 1))
    )
    response = decoupling @ masses
    changes = robot.slopes(phi.models)
    slopes = []
    for i in range(3):
        change = (changes[2 * i] - response @ changes[2 * i + 1]) @ masses
        parts = [[norm_bound(change[c.rows, k]) for k in range(len(mass))] for c in robot.channels]
        slopes.append(parts)
    one = np.array([[m.bound for m in row] for row in scaled]) * columns[:, None, None]
    full = np.vectorize(lambda m: m.spread(len(phi.solved)), otypes=[object])
    own = added.of_arm(phi.models, inverse, mass)
    return Arm(
        phi,
        full(inverse),
        full(response),
        np.array(slopes),
        (1 - 1e-12) / np.sqrt(largest),
        (1 - 1e-12) / np.sqrt((one**2).sum(axis=(0, 1))),
        {
            name: np.broadcast_to(part, (*part.shape[:-1], len(phi.solved)))
            for name, part in own.items()
        },
    )


def _rest(vector: Sequence[Model]) -> Floats:
    """Norm of the remainders."""
    return np.asarray(np.sqrt(sum(m.r**2 for m in vector)))


def quantities(
    robot: Robot, cells: Arm, nominal: Nominal, radii: Radii, added: Added
) -> dict[str, Floats]:
    """Bounds over cells of the arm, with the declared motion and the balls' radii; last axis cells.

    Largest |u|, |udot| and |s| as `torque`, `torque_rate` and `speed` (ns, b); largest angles of
    the arm's joints, and of their negatives, as `high` and `low` (3, b); of -margin and -pivot as
    `margin` and `pivot` (b,); of the columns of K = J H Mhat^-1 in each output as `response`, and
    of their rates as `response_rate` (2, ns, b); |K udot| of each output as `held` (2, b); and the
    sum over bodies of the acceleration of each output for a relative error 1 as `weights` (2, b).
    `held_rest` and `weights_rest` are the parts of remainders in these. `added` are the bounds of
    added quantities times their signs (k, b). If the reference jumps: `jump`, that of u (ns, b).
    With errors of the measured state: those of `Readings.bounds`.
    """
    phi, inverse, response = cells.phi.models, cells.inverse, cells.response
    channels, bodies = robot.channels, len(robot.single)
    ball = {
        name: [m for k in (0, 1) for m in SPACE.block(block[k], radius[k])]
        for name, block, radius in (("x", _X, radii.x), ("ve", _V, radii.ve), ("d", _D, radii.d))
    }
    kp, kd = (
        np.repeat([getattr(c, name) for c in channels], (2, 3)) for name in ("stiffness", "damping")
    )
    x = [a + b for a, b in zip(nominal.x, ball["x"], strict=True)]
    ve = [a + b for a, b in zip(nominal.ve, ball["ve"], strict=True)]
    back = [float(p) * a - float(d) * b for p, d, a, b in zip(kp, kd, x, ve, strict=True)]
    nu = [a + b for a, b in zip(back, nominal.acceleration, strict=True)]
    ydot = [a + b for a, b in zip(nominal.rate, ball["ve"], strict=True)]
    s = (inverse @ np.array(ydot, object)).tolist()
    bias = robot.bias(phi, s)[0].ravel()
    a = (inverse @ (np.array(nu, object) - bias)).tolist()
    pushed = inverse @ np.array(ball["d"], object)
    true = (np.array(a, object) + pushed).tolist()
    u, weights, turning, *carried = added.motion(phi, s, a, true)
    u, turning, weights = u.ravel(), turning.ravel(), response @ weights
    rows = [channel.rows for channel in channels]
    each = [[weights[r, i] for i in range(bodies)] for r in rows]
    found = {
        "torque": np.array([m.bound for m in u]),
        "speed": np.array([m.bound for m in s]),
        "high": np.array([m.c + m.reach for m in phi]),
        "low": np.array([m.reach - m.c for m in phi]),
        "margin": -cells.margin,
        "pivot": -cells.pivot,
        "response": np.array([[norm_bound(response[r, i]) for i in range(len(u))] for r in rows]),
        "weights": np.array([sum(map(norm_bound, vectors)) for vectors in each]),
        "weights_rest": np.array([sum(map(_rest, part)) for part in each]),
    }
    # The base's output is at gamma - x.
    moved = ball["x"][:2]
    places = [[m[0] + moved[0], m[1] + moved[1], m[2]] for m in nominal.places]
    # Rate of the command: in base axes, less omega x nu.
    omega = ydot[1] / robot.arm_length
    vedot = [m + n for m, n in zip(back, ball["d"], strict=True)]
    change = [
        j - float(p) * v - float(d) * w
        for j, p, v, d, w in zip(nominal.jerk, kp, ve, kd, vedot, strict=True)
    ]
    for i in (0, 2):
        change[i], change[i + 1] = change[i] + omega * nu[i + 1], change[i + 1] - omega * nu[i]
    adot = (inverse @ (np.array(change, object) - turning)).tolist()
    udot = robot.force_rate(phi, s, true, a, adot)[0].ravel()
    held = response @ udot
    moving = found["speed"][robot.arm_speeds]
    if added.jumps:
        found["jump"] = np.einsum("iob,ob->ib", cells.own["inertia"], radii.jump)
    if added.readings is not None:
        state = State(phi, s, a, nu, ydot)
        found |= added.readings.bounds(state, response, cells.slopes, cells.own["inertia"])
    return found | {
        "torque_rate": np.array([m.bound for m in udot]),
        "held": np.array([norm_bound(held[r]) for r in rows]),
        "held_rest": np.array([_rest(held[r]) for r in rows]),
        "added": added.rows(phi, s, u.tolist(), carried, places, cells.own),
        "response_rate": np.einsum("kcib,kb->cib", cells.slopes, moving),
    }
