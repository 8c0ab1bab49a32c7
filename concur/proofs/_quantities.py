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
from dataclasses import dataclass, replace

import casadi as ca
import numpy as np

from concur.control import Servo
from concur.control.references import Reference
from concur.dynamics import inverse_dynamics
from concur.errors import OutputError
from concur.mechanism import Inertia, joints
from concur.multibody import Mechanism, with_numbers
from concur.proofs._configurations import Configurations, Equations, inverse_matrix
from concur.proofs._errors import Channel
from concur.proofs._models import Floats, Model, Space, Walker, norm_bound
from concur.proofs._quantity import quantities_of

SPACE = Space((1, 1, 1, 1, 1, 2, 3, 2, 3, 2, 3), curved=10)
"""Relative position, time, heading; ve, x and disturbances of base and hand.

The law has no products of x and d but with the others: remainders contain them."""

CLOCK, DELTA = 3, 4
JUMP = 1e-9
"""Jump of a reference at a knot, relative, that counts as rounding."""

_V, _X, _D = (5, 6), (7, 8), (9, 10)


def _refuse(where: str, expected: str, came: str) -> OutputError:
    return OutputError(
        where,
        expected=expected,
        came=came,
        cure="Proofs of tasks cover one R2 output on a planar base with wheels, ahead of the axle, "
        "and one R3 output, with the same gains in all directions of an output.",
    )


class Robot:
    """Graphs of a robot whose base has one R2 output and whose arm has one R3 output.

    Parameters
    ----------
    servo : Servo
        The law.
    """

    def __init__(self, servo: Servo) -> None:
        self.servo = servo
        self.where = where = f"proof of `{servo.name}`"
        model, robot = servo.model, servo.model.robot
        groups = [output.group for output in servo.outputs]
        first = servo.outputs[0]
        if not (groups == ["R2", "R3"] and first.body == robot.base.name):
            raise _refuse(where, "outputs R2 of the base and R3", ", ".join(groups))
        if any(output.relative_to is not None for output in servo.outputs):
            raise _refuse(where, "outputs in inertial axes", "relative ones")
        planar = isinstance(robot.base.joint, joints.Planar)
        upright = planar and getattr(robot.base.joint, "normal", None) == (0.0, 0.0, 1.0)
        if not (upright and tuple(robot.gravity[:2]) == (0.0, 0.0)):
            raise _refuse(where, "a base on a horizontal plane", str(robot.base.joint))
        options = (servo.integral, servo.torque_limits, servo.damping_threshold, servo.redundancy)
        if servo.use_measured_velocity or any(option is not None for option in options):
            raise _refuse(where, "a plain servo", "an integral, limits, damping or redundancy")
        self.channels = [self._channel(k) for k in range(2)]
        self._build(model.robot)

    def _channel(self, k: int) -> Channel:
        rows = slice(0, 2) if k == 0 else slice(2, 5)
        scale = np.linalg.inv(self.servo.inertia)
        gains = []
        for matrix in (self.servo.stiffness, self.servo.damping):
            own = scale @ matrix
            value = own[rows.start, rows.start]
            expected = np.zeros_like(own[rows])
            expected[:, rows] = value * np.eye(rows.stop - rows.start)
            if not np.array_equal(own[rows], expected):
                raise _refuse(self.where, "one gain for each output", "several")
            gains.append(float(value))
        return Channel(gains[0], gains[1], rows)

    def _build(self, robot: Mechanism) -> None:
        servo, model, ns = self.servo, self.servo.model, self.servo.ns
        q, s = ca.SX.sym("q", servo.nq), ca.SX.sym("s", ns)
        a, true, adot = (ca.SX.sym(name, ns) for name in ("a", "true", "adot"))
        v = servo.velocity(q, s)
        lift, drift = model.lift(q)[0], model.velocity_drift(q, v)
        decoupling, mass = servo.decoupling(q), model.mass_matrix(q)
        bias = servo.output_motion(q, s)[1]
        forces = model.shape_forces(q, v, a)
        # Forces are linear in each body's mass, first and second moments alike.
        self.bodies = [body.name for body in robot.bodies]
        moving = lift @ true + drift
        weights = ca.horzcat(
            *[
                lift.T @ inverse_dynamics(_only(robot, k), q, v, moving)
                for k in range(len(self.bodies))
            ]
        )
        parts = (decoupling, mass, bias, forces, weights)
        matters = _matters(q, [s, a, true], [ca.vec(ca.densify(part)) for part in parts])
        self.arm = matters
        if len(matters) != 3:
            raise _refuse(self.where, "three joints of an arm", f"{len(matters)} coordinates")
        if not (ca.SX(model.regularity(q)).is_constant() and _is_eye(model.input_matrix(q))):
            raise _refuse(self.where, "wheels that determine the base, a motor for each joint", "")
        phi, g = ca.SX.sym("phi", 3), ca.SX.sym("g", 3)
        place = ca.SX(ca.DM(np.asarray(robot.neutral(), dtype=float)))
        for k in range(3, servo.nq):
            place[k] = 0.0 if k not in matters else place[k]
        for k, entry in enumerate(matters):
            place[entry] = phi[k]
        rate = model.robot.rate(q, v)
        position = servo.output(q)
        relative = position[2:5] - ca.vertcat(position[:2], 0)

        def at(expression: ca.SX) -> ca.SX:
            return ca.substitute(ca.densify(expression), q, place)

        decoupling, mass, bias, forces, weights, rate, relative, lift = map(
            at, (decoupling, mass, bias, forces, weights, rate, relative, lift)
        )
        along = rate[matters]
        change = ca.jtimes(forces, phi, along) + ca.jtimes(forces, s, true)
        change += ca.jtimes(forces, a, adot)
        demand = decoupling @ a + bias
        turned = ca.jtimes(demand, phi, along) + ca.jtimes(bias, s, true)
        self.equations = Equations(phi, g, relative - g, self.where)
        self.place = ca.Function("place", [phi], [relative])

        def make(given: list[ca.SX], results: list[ca.SX]) -> Walker:
            dense = [ca.densify(part) for part in results]
            return Walker(ca.Function("part", given, dense, {"cse": True}), self.where)

        slopes = [
            ca.reshape(ca.jacobian(ca.vec(part), phi[i]), ns, ns)
            for i in range(3)
            for part in (decoupling, mass)
        ]
        self.matrices = make([phi], [decoupling, mass])
        self.slopes = make([phi], slopes)
        own = ca.jacobian(along, s)
        if not own.is_constant() or not np.isin(np.asarray(ca.DM(own)), (0.0, 1.0)).all():
            raise _refuse(self.where, "joints that turn at a shape velocity each", str(own))
        self.arm_speeds = [int(k) for k in np.asarray(ca.DM(own)).argmax(axis=1)]
        self.bias = make([phi, s], [bias])
        self.forces = make([phi, s, a], [forces])
        self.weights = make([phi, s, true], [weights])
        self.demand_rate = make([phi, s, true, a], [turned])
        self.force_rate = make([phi, s, true, a, adot], [change])
        self.arm_length = self._axle(lift)
        names = [servo.model.shape_names[k] for k in self.arm_speeds]
        self.quantities = quantities_of(servo, names)

    def _axle(self, lift: ca.SX) -> float:
        """Distance l of the base's point ahead of the axle: vy + a omega = 0 for the base."""
        rows = lift[:3, :]
        if not rows.is_constant():
            raise _refuse(self.where, "wheels fixed to the base", "wheels that turn or tilt")
        base = np.asarray(ca.DM(rows))
        omega = base[2]
        behind = -(base[1] @ omega) / (omega @ omega)
        if np.abs(base[1] + behind * omega).max() > 1e-13 * np.abs(omega).max():
            raise _refuse(self.where, "an axle that keeps the base from moving across", "no axle")
        return float(self.servo.outputs[0].point[0] - behind)


def _matters(q: ca.SX, others: list[ca.SX], parts: list[ca.SX]) -> list[int]:
    """Coordinates beyond the base's that matter: at random states a slope exceeds rounding.

    By symmetry the angle of a wheel with equal moments across its axle has no effect; its slopes
    are analytic functions that vanish everywhere if they do at random states.
    """
    slopes = ca.Function("slopes", [q, *others], [ca.jacobian(ca.vertcat(*parts), q), *parts])
    rng, matters = np.random.default_rng(5), set[int]()
    for _ in range(4):
        given = [rng.uniform(-1.0, 1.0, q.shape[0]), *(rng.normal(size=o.shape[0]) for o in others)]
        slope, *values = (np.asarray(ca.DM(part)) for part in slopes(*given))
        sizes = np.concatenate([np.full(v.size, np.abs(v).max() + 1e-300) for v in values])
        found = (np.abs(slope) > 1e-12 * sizes[:, None]).any(axis=0)
        matters |= {k for k in np.flatnonzero(found).tolist() if k > 2}
    return sorted(matters)


def _only(robot: Mechanism, k: int) -> Mechanism:
    """The robot with the mass of one body only."""
    empty = Inertia(mass=0.0, com=(0.0, 0.0, 0.0), moments=(0.0, 0.0, 0.0))
    bodies = [b if i == k else replace(b, inertia=empty) for i, b in enumerate(robot.bodies)]
    return with_numbers(robot, bodies, robot.wheels, robot.drives)


def _is_eye(matrix: ca.SX) -> bool:
    return bool(matrix.is_constant() and ca.DM(matrix).is_eye())


@dataclass(frozen=True, eq=False)
class Nominal:
    """Vectors of the declared motion in axes of the base, over segments.

    Each is a list of five models (base, then hand) in the time and the heading.
    """

    x: list[Model]
    ve: list[Model]
    rate: list[Model]
    acceleration: list[Model]
    jerk: list[Model]
    relative: list[Model]

    def take(self, columns: np.ndarray) -> Nominal:
        """Some of the segments, once for each cell."""
        return Nominal(*([m.take(columns) for m in part] for part in vars(self).values()))


class Motion:
    """Reference and its derivatives as functions between knots."""

    def __init__(self, reference: Reference, where: str) -> None:
        pieces = reference.pieces()
        if pieces is None:
            raise _refuse(where, "a reference with a formula", "custom functions or a loop")
        self.pieces = pieces
        t = ca.SX.sym("t")
        rows = [ca.SX.sym(f"row{k}", table.width) for k, table in enumerate(pieces.tables)]
        pose, twist, acceleration = pieces.function(t, *rows)
        jerk = ca.jacobian(acceleration, t)
        results = [ca.densify(part) for part in (pose, twist, acceleration, jerk)]
        self._walker = Walker(ca.Function("reference", [t, *rows], results, {"cse": True}), where)
        self.where = where

    def check_continuity(self, knots: Floats) -> None:
        """Reject a reference whose position, velocity or acceleration jumps at a knot.

        A held torque would be wrong by the jump, which the bound of its rate does not contain.
        """
        for t in knots:
            sides = [
                [row[0] for row in self.pieces.rows(np.array([at]))]
                for at in (np.nextafter(t, -np.inf), t)
            ]
            before, after = (
                np.concatenate(
                    [np.asarray(part).ravel() for part in self.pieces.function(t, *side)]
                )
                for side in sides
            )
            jump = float(np.abs(after - before).max())
            if jump > JUMP * (1.0 + float(np.abs(after).max())):
                came = f"a jump by {jump:.3g} at {t:g} s"
                raise _refuse(self.where, "a reference with continuous acceleration", came)

    def models(self, space: Space, clock: int, middle: Floats, half: Floats) -> list[list[Model]]:
        """Pose, twist, acceleration and its rate over intervals without knots inside."""
        rows = [list(table.T) for table in self.pieces.rows(middle)]
        found = self._walker([space.symbol(clock, half, middle)], *rows)
        return [part.ravel().tolist() for part in found]


def turned_back(vector: Sequence[Model], cosine: Model, sine: Model) -> list[Model]:
    """R(-theta) of base (2) and hand (3) vectors."""
    found = list(vector)
    for i in (0, 2):
        x, y = vector[i], vector[i + 1]
        found[i], found[i + 1] = cosine * x + sine * y, cosine * y - sine * x
    return found


@dataclass(frozen=True, eq=False)
class Radii:
    """Radii of the balls for each cell: errors and disturbances of base and hand, (2, b)."""

    x: Floats
    ve: Floats
    d: Floats


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
    """

    phi: Configurations
    inverse: np.ndarray
    response: np.ndarray
    slopes: Floats
    margin: Floats
    pivot: Floats

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
        )


def arm(robot: Robot, phi: Configurations) -> Arm:
    """Matrices of the arm, and bounds of the decoupling margin and of the law's pivot from below.

    With A = D J H and G = A^-T Mhat A^-1 the margin is 1 / sqrt(|G|); |G| is at most that of the
    middle and the Frobenius norm of the change.
    """
    decoupling, mass = robot.matrices(phi.models)
    inverse, masses = inverse_matrix(decoupling), inverse_matrix(mass)
    rows, columns = robot.servo.scales
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
    return Arm(
        phi,
        full(inverse),
        full(response),
        np.array(slopes),
        (1 - 1e-12) / np.sqrt(largest),
        (1 - 1e-12) / np.sqrt((one**2).sum(axis=(0, 1))),
    )


def _rest(vector: Sequence[Model]) -> Floats:
    """Norm of the remainders."""
    return np.asarray(np.sqrt(sum(m.r**2 for m in vector)))


def quantities(robot: Robot, cells: Arm, nominal: Nominal, radii: Radii) -> dict[str, Floats]:
    """Bounds over cells of the arm, with the declared motion and the balls' radii; last axis cells.

    Largest |u|, |udot| and |s| as `torque`, `torque_rate` and `speed` (ns, b); largest angles of
    the arm's joints, and of their negatives, as `high` and `low` (3, b); of -margin and -pivot as
    `margin` and `pivot` (b,); of the columns of K = J H Mhat^-1 in each output as `response`, and
    of their rates as `response_rate` (2, ns, b); |K udot| of each output as `held` (2, b); and the
    sum over bodies of the acceleration of each output for a relative error 1 as `weights` (2, b).
    `held_rest` and `weights_rest` are the parts of remainders in these.
    """
    phi, inverse, response = cells.phi.models, cells.inverse, cells.response
    channels, bodies = robot.channels, len(robot.bodies)
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
    u = robot.forces(phi, s, a)[0].ravel()
    weights = response @ robot.weights(phi, s, true)[0]
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
    # Rate of the command: in base axes, less omega x nu.
    omega = ydot[1] / robot.arm_length
    vedot = [m + n for m, n in zip(back, ball["d"], strict=True)]
    change = [
        j - float(p) * v - float(d) * w
        for j, p, v, d, w in zip(nominal.jerk, kp, ve, kd, vedot, strict=True)
    ]
    for i in (0, 2):
        change[i], change[i + 1] = change[i] + omega * nu[i + 1], change[i + 1] - omega * nu[i]
    turning = robot.demand_rate(phi, s, true, a)[0].ravel()
    adot = (inverse @ (np.array(change, object) - turning)).tolist()
    udot = robot.force_rate(phi, s, true, a, adot)[0].ravel()
    held = response @ udot
    moving = found["speed"][robot.arm_speeds]
    return found | {
        "torque_rate": np.array([m.bound for m in udot]),
        "held": np.array([norm_bound(held[r]) for r in rows]),
        "held_rest": np.array([_rest(held[r]) for r in rows]),
        "response_rate": np.einsum("kcib,kb->cib", cells.slopes, moving),
    }
