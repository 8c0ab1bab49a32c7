"""Graphs of a wheeled robot with an arm, for proofs.

By the symmetry of the plane and of rolling, the law in the axes of the base depends on the arm's
angles and the shape velocities only (`task-proof`, sections 0, 2 and 3).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np

from concur._polynomials import Walker, walker
from concur.control import Servo, given_options
from concur.errors import OutputError
from concur.proofs._configurations import Equations
from concur.proofs._errors import Channel
from concur.proofs._quantity import quantities_of
from concur.proofs._single_bodies import single_bodies
from concur.robot import Mechanism, Pose, base_wrench, inverse_dynamics, joints

OUTPUTS = (slice(0, 2), slice(2, 5))
"""Coordinates of base and hand."""


COVERED = (
    "Proofs of tasks cover one R2 output on a planar base with wheels, ahead of the axle, "
    "and one R3 output, with the same gains in all directions of an output."
)
UNSPRUNG = "Proofs bound torques of rigid bodies alone; campaigns and certificates take springs."
UNPLACED = (
    "Leave the placement out: places then count from the frame in which the base starts. Change "
    "start and references by the placement."
)


def not_covered(where: str, expected: str, came: str, cure: str = COVERED) -> OutputError:
    """Error about a robot, law or reference that proofs of wheeled robots do not cover."""
    return OutputError(
        where,
        expected=expected,
        came=came,
        cure=cure,
    )


@dataclass(frozen=True, eq=False)
class Graph:
    """Symbols of a configuration with the base at the origin.

    Parameters
    ----------
    q, place : casadi.SX
        Configuration, and what it is there.
    phi, s, a, true : casadi.SX
        Angles of the arm, shape velocities, their commanded rates and their true ones.
    v, moving : casadi.SX
        Velocity and its true rate for q.
    decoupling, bias : casadi.SX
        J H and b in terms of phi and s.
    parts : tuple of casadi.SX
        Commanded torques; forces that each body needs; rate of what the law subtracts from the
        demand; in terms of phi, s, a, true.
    """

    q: ca.SX
    place: ca.SX
    phi: ca.SX
    s: ca.SX
    a: ca.SX
    true: ca.SX
    v: ca.SX
    moving: ca.SX
    decoupling: ca.SX
    bias: ca.SX
    parts: tuple[ca.SX, ...]

    def at(self, expression: ca.SX) -> ca.SX:
        """An expression with the base at the origin."""
        return ca.substitute(ca.densify(expression), self.q, self.place)


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
            raise not_covered(where, "outputs R2 of the base and R3", ", ".join(groups))
        if any(output.relative_to is not None for output in servo.outputs):
            raise not_covered(where, "outputs in inertial axes", "relative ones")
        planar = isinstance(robot.base.joint, joints.Planar)
        upright = planar and getattr(robot.base.joint, "normal", None) == (0.0, 0.0, 1.0)
        if not (upright and tuple(robot.gravity[:2]) == (0.0, 0.0)):
            raise not_covered(where, "a base on a horizontal plane", str(robot.base.joint))
        if robot.springs:
            raise not_covered(where, "a robot without springs", robot.springs[0].name, UNSPRUNG)
        if robot.base.placement != Pose():
            came = str(robot.base.placement)
            raise not_covered(where, "a base without placement", came, UNPLACED)
        if options := given_options(servo):
            raise not_covered(where, "a servo without options", ", ".join(options))
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
                raise not_covered(self.where, "one gain for each output", "several")
            gains.append(float(value))
        return Channel(gains[0], gains[1], rows)

    def _build(self, robot: Mechanism) -> None:
        servo, model, ns = self.servo, self.servo.model, self.servo.ns
        q, s = ca.SX.sym("q", servo.nq), ca.SX.sym("s", ns)
        a, true, adot = (ca.SX.sym(name, ns) for name in ("a", "true", "adot"))
        v = servo.velocity(q, s)
        lift, drift = model.lift(q)[0], model.velocity_drift(q, v)
        decoupling, mass = servo.decoupling(q), model.mass_matrix(q)
        bias = servo.motion(q, servo.velocity(q, s))[1]
        forces = model.shape_forces(q, v, a)
        # Forces are linear in each body's mass, first and second moments alike.
        self.single = single_bodies(robot)
        moving = lift @ true + drift
        weights = ca.horzcat(*[lift.T @ inverse_dynamics(one, q, v, moving) for one in self.single])
        parts = (decoupling, mass, bias, forces, weights)
        matters = _matters(q, [s, a, true], parts)
        self.arm = matters
        if len(matters) != 3:
            raise not_covered(self.where, "three joints of an arm", f"{len(matters)} coordinates")
        if not (ca.SX(model.regularity(q)).is_constant() and _is_eye(model.input_matrix(q))):
            raise not_covered(
                self.where, "wheels that determine the base and a motor for each", "others"
            )
        phi, g = ca.SX.sym("phi", 3), ca.SX.sym("g", 3)
        place = ca.SX(ca.DM(np.asarray(robot.neutral(), dtype=float)))
        for k in range(3, servo.nq):
            place[k] = 0.0 if k not in matters else place[k]
        for k, entry in enumerate(matters):
            place[entry] = phi[k]
        rate = model.robot.rate(q, v)
        position = servo.output(q)
        relative = position[2:5] - ca.vertcat(position[:2], 0)
        decoupling, mass, bias, forces, weights, rate, relative, lift = (
            ca.substitute(ca.densify(part), q, place)
            for part in (decoupling, mass, bias, forces, weights, rate, relative, lift)
        )
        along = rate[matters]
        change = ca.jtimes(forces, phi, along) + ca.jtimes(forces, s, true)
        change += ca.jtimes(forces, a, adot)
        demand = decoupling @ a + bias
        turned = ca.jtimes(demand, phi, along) + ca.jtimes(bias, s, true)
        self.equations = Equations(phi, g, relative - g, self.where)
        self.place = ca.Function("place", [phi], [relative])
        own = forces, weights, turned
        self.graph = Graph(q, place, phi, s, a, true, v, moving, decoupling, bias, own)

        make = self.walker
        slopes = [
            ca.reshape(ca.jacobian(ca.vec(part), phi[i]), ns, ns)
            for i in range(3)
            for part in (decoupling, mass)
        ]
        self.matrices = make([phi], [decoupling, mass])
        self.slopes = make([phi], slopes)
        selects = ca.jacobian(along, s)
        if not selects.is_constant() or not np.isin(np.asarray(ca.DM(selects)), (0.0, 1.0)).all():
            came = str(selects)
            raise not_covered(self.where, "joints that turn at a shape velocity each", came)
        self.arm_speeds = [int(k) for k in np.asarray(ca.DM(selects)).argmax(axis=1)]
        self.bias = make([phi, s], [bias])
        self.force_rate = make([phi, s, true, a, adot], [change])
        self.arm_length = self._axle(lift)
        names = [servo.model.shape_names[k] for k in self.arm_speeds]
        self.quantities = quantities_of(servo, names)

    def walker(self, given: list[ca.SX], results: list[ca.SX]) -> Walker:
        """Evaluation of expressions of the arm's angles over models."""
        return walker(given, results, self.where)

    def of_arm(self, expression: ca.SX, others: Sequence[ca.SX]) -> ca.SX:
        """An expression in base axes of the configuration and others; base at the origin.

        Rejected if it depends on more than the arm's angles.
        """
        if set(_matters(self.graph.q, others, [expression])) - set(self.arm):
            raise not_covered(self.where, "wheels that are round and balanced", "others")
        return self.graph.at(expression)

    def wrenches(self) -> ca.SX:
        """Force and moment about the base's origin that move each body, (6, bodies)."""
        graph = self.graph
        parts = [base_wrench(one, graph.q, graph.v, graph.moving) for one in self.single]
        found = ca.horzcat(*[ca.vertcat(*part) for part in parts])
        return self.of_arm(found, [graph.s, graph.true])

    def _axle(self, lift: ca.SX) -> float:
        """Distance l of the base's point ahead of the axle: vy + a omega = 0 for the base."""
        rows = lift[:3, :]
        if not rows.is_constant():
            raise not_covered(self.where, "wheels fixed to the base", "wheels that turn or tilt")
        base = np.asarray(ca.DM(rows))
        omega = base[2]
        behind = -(base[1] @ omega) / (omega @ omega)
        if np.abs(base[1] + behind * omega).max() > 1e-13 * np.abs(omega).max():
            raise not_covered(self.where, "an axle that prevents lateral motion", "no axle")
        return float(self.servo.outputs[0].point[0] - behind)


def _matters(q: ca.SX, others: Sequence[ca.SX], results: Sequence[ca.SX]) -> list[int]:
    """Coordinates beyond the base's that matter: at random states a slope exceeds rounding.

    By symmetry the angle of a wheel with equal moments across its axle has no effect; its slopes
    are analytic functions that vanish everywhere if they do at random states.
    """
    parts = [ca.vec(ca.densify(part)) for part in results]
    slopes = ca.Function("slopes", [q, *others], [ca.jacobian(ca.vertcat(*parts), q), *parts])
    rng, matters = np.random.default_rng(5), set[int]()
    for _ in range(4):
        given = [rng.uniform(-1.0, 1.0, q.shape[0]), *(rng.normal(size=o.shape[0]) for o in others)]
        slope, *values = (np.asarray(ca.DM(part)) for part in slopes(*given))
        sizes = np.concatenate([np.full(v.size, np.abs(v).max() + 1e-300) for v in values])
        found = (np.abs(slope) > 1e-12 * sizes[:, None]).any(axis=0)
        matters |= {k for k in np.flatnonzero(found).tolist() if k > 2}
    return sorted(matters)


def _is_eye(matrix: ca.SX) -> bool:
    return bool(matrix.is_constant() and ca.DM(matrix).is_eye())
