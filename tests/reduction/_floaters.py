"""Floating robots on every displacement subgroup, and the same robots at full order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from scipy.spatial.transform import Rotation

import concur as cc
from concur.reduction import MomentumReduction
from concur.robot import Body, Inertia, Mechanism, Pose, Tree, joints
from tests.groups.oracles import bracket, conjugation
from tests.oracles import Pinocchio, difference_quotient

AXIS = np.array([0.36, -0.48, 0.8])
PLACEMENT = Pose((0.3, -0.2, 0.5), tuple(Rotation.from_rotvec([0.4, -0.7, 0.3]).as_quat()))

BASES: dict[str, joints.Joint] = {
    "SE(3)": joints.Free(),
    "SE(2)xR": joints.PlanarPrismatic(AXIS),
    "SE(2)": joints.Planar(AXIS),
    "SO(3)": joints.Spherical(),
    "R^3": joints.Cartesian(),
    "SO(2)xR": joints.Cylindrical(AXIS),
    "R^2": joints.Sliding(AXIS),
    "SO(2)": joints.Revolute(AXIS),
    "R": joints.Prismatic(AXIS),
    "H_p": joints.Helical(AXIS, 0.2),
}
"""First joint for each group of Table 2.1 that is one joint."""

GRAVITY = {"SE(2)": 1.0, "SO(2)": 1.0, "R^2": 1.0}
"""Groups that keep the height along their axis or normal: gravity there, in units of 9.81."""


def _inertia(mass: float, com: tuple[float, ...], size: float) -> Inertia:
    tensor = size * mass * np.array([[0.5, 0.04, -0.03], [0.04, 0.4, 0.02], [-0.03, 0.02, 0.6]])
    return Inertia(mass, com, tensor)


def floater(group: str, without: tuple[str, ...] = ()) -> Mechanism:
    """Build a robot that floats in a group: ball, plane, hinge, screw and slide, branched."""
    along = Rotation.from_quat(PLACEMENT.rotation).apply(AXIS)
    tilted = tuple(Rotation.from_rotvec([0.2, 0.5, -0.4]).as_quat())
    bodies = [
        Body("base", BASES[group], None, PLACEMENT, _inertia(5.0, (0.05, -0.1, 0.02), 0.3)),
        Body(
            "ball",
            joints.Spherical(),
            "base",
            Pose((0.3, 0.1, -0.2), tilted),
            _inertia(2.0, (0.1, 0.2, 0.05), 0.1),
        ),
        Body(
            "plate",
            joints.Planar((0.0, 0.6, 0.8)),
            "ball",
            Pose((0.1, 0.3, 0.0)),
            _inertia(1.5, (-0.1, 0.05, 0.1), 0.1),
        ),
        Body(
            "hinge",
            joints.Revolute((1, 2, -1)),
            "base",
            Pose((-0.2, 0.2, 0.3), tilted),
            _inertia(1.2, (0.2, -0.1, 0.1), 0.1),
        ),
        Body(
            "screw",
            joints.Helical((0, 1, 1), 0.15),
            "ball",
            Pose((0.0, -0.2, 0.2)),
            _inertia(0.8, (0.05, 0.1, -0.2), 0.05),
        ),
        Body(
            "slide",
            joints.Prismatic((2, 0, 1)),
            "hinge",
            Pose((0.0, 0.1, 0.3)),
            _inertia(0.7, (0.0, 0.1, 0.1), 0.05),
        ),
    ]
    kept = [body for body in bodies if body.name not in without]
    gravity = 9.81 * GRAVITY.get(group, 0.0) * along
    return Mechanism(f"floater in {group}", kept, gravity=gravity)


class FullOrder:
    """A floating robot at full order in Pinocchio, in our coordinates.

    Joints that the library does not have are made of several that it has; they commute, so
    that the velocities are the same but for their order.

    Parameters
    ----------
    robot : Mechanism
        Read, not evaluated.
    """

    def __init__(self, robot: Mechanism) -> None:
        bodies: list[Body] = []
        into_q: list[int] = []
        into_v: list[int] = []
        for body in robot.bodies:
            parts, places = _parts(body)
            bodies += parts
            starts = robot.q_slice(body.name).start, robot.v_slice(body.name).start
            into_q += [starts[0] + k for k in places or range(body.joint.nq)]
            into_v += [starts[1] + k for k in places or range(body.joint.nv)]
        self.nv, self.nb = robot.nv, robot.base.joint.nv
        self.into_q, self.into_v = np.array(into_q), np.array(into_v)
        self.oracle = Pinocchio(Tree(robot.name, bodies, gravity=robot.gravity))
        # Twists of the base's group in the inertial frame: what it conserves momentum along.
        self.symmetry = conjugation(robot.base.placement.matrix) @ robot.base.joint.basis
        self.basis = robot.base.joint.basis
        self.base = robot.base.name

    def mass_matrix(self, q: np.ndarray) -> np.ndarray:
        mass = np.empty((self.nv, self.nv))
        mass[np.ix_(self.into_v, self.into_v)] = self.oracle.mass_matrix(q[self.into_q])
        return mass

    def bias(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        bias = np.empty(self.nv)
        bias[self.into_v] = self.oracle.bias(q[self.into_q], v[self.into_v])
        return bias

    def acceleration(self, q: np.ndarray, v: np.ndarray, force: np.ndarray) -> np.ndarray:
        return np.linalg.solve(self.mass_matrix(q), force - self.bias(q, v))

    def momentum(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Spatial momentum on the twists of the base's group, shape (nb,)."""
        return self.symmetry.T @ self.oracle.momentum(q[self.into_q], v[self.into_v])

    def energy(self, q: np.ndarray, v: np.ndarray) -> float:
        theirs = q[self.into_q]
        kinetic = self.oracle.kinetic_energy(theirs, v[self.into_v])
        return kinetic + self.oracle.potential_energy(theirs)

    def rate(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        rate = np.empty(len(q))
        rate[self.into_q] = self.oracle.rate(q[self.into_q], v[self.into_v])
        return rate

    def pose(self, q: np.ndarray) -> np.ndarray:
        return self.oracle.pose(q[self.into_q], self.base)

    # Results of the reduction from the same matrices, in NumPy.

    def blocks(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Locked inertia, connection and reduced metric."""
        mass, nb = self.mass_matrix(q), self.nb
        connection = np.linalg.solve(mass[:nb, :nb], mass[:nb, nb:])
        return mass[:nb, :nb], connection, mass[nb:, nb:] - mass[nb:, :nb] @ connection

    def body_momentum(self, q: np.ndarray, mu: np.ndarray) -> np.ndarray:
        """Pi = Ad*_q1 mu on the base's twists, for a spatial momentum (6,)."""
        return self.basis.T @ conjugation(self.pose(q)).T @ mu

    def velocity(self, q: np.ndarray, s: np.ndarray, mu: np.ndarray) -> np.ndarray:
        locked, connection, _ = self.blocks(q)
        base = np.linalg.solve(locked, self.body_momentum(q, mu)) - connection @ s
        return np.concatenate([base, s])


def _parts(body: Body) -> tuple[list[Body], list[int]]:
    """Bodies with simpler joints in place of one, and where their coordinates are in its own."""
    joint, kind = body.joint, type(body.joint).__name__
    if kind == "Cylindrical":
        chain: list[joints.Joint] = [joints.Prismatic(joint.axis), joints.Revolute(joint.axis)]
        places = [0, 1]
    elif kind == "Sliding":
        first, second = joint.basis[:3].T
        chain, places = [joints.Prismatic(first), joints.Prismatic(second)], [0, 1]
    elif kind == "PlanarPrismatic":
        chain, places = [joints.Prismatic(joint.normal), joints.Planar(joint.normal)], [2, 0, 1, 3]
    else:
        return [body], []
    bare = Body(f"{body.name}'", chain[0], body.parent, body.placement, Inertia(0.0))
    unlimited = {"limits": None, "speed_limit": None, "torque_limit": None}
    own = replace(body, joint=chain[1], parent=bare.name, placement=Pose(), **unlimited)
    return [bare, own], places


class Brackets:
    """Brackets of the product of the joint groups, from the bases of the joints."""

    def __init__(self, robot: Mechanism) -> None:
        self._spans = [(body.joint.basis, robot.v_slice(body.name)) for body in robot.bodies]

    def __call__(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        turned = np.zeros(len(a))
        for basis, span in self._spans:
            if basis.shape[1] > 1:
                turn = bracket(basis @ a[span]) @ basis @ b[span]
                turned[span] = np.linalg.lstsq(basis, turn, rcond=None)[0]
        return turned

    def coadjoint(self, a: np.ndarray, momentum: np.ndarray) -> np.ndarray:
        """ad*_a P with <ad*_a P, y> = <P, [a, y]>."""
        return np.array([momentum @ self(a, unit) for unit in np.eye(len(a))])


class Formulas:
    """The reduced equations in NumPy, term by term, from matrices of the full order."""

    def __init__(self, robot: Mechanism) -> None:
        self.full, self.brackets = FullOrder(robot), Brackets(robot)
        self.nb, self.ns = robot.base.joint.nv, robot.nv - robot.base.joint.nv

    def slope(
        self, function: Callable[[np.ndarray], np.ndarray], q: np.ndarray, s: np.ndarray
    ) -> np.ndarray:
        """Left-trivialised derivative along a shape velocity."""
        qdot = self.full.rate(q, np.concatenate([np.zeros(self.nb), s]))
        return difference_quotient(lambda h: function(q + h * qdot), 2e-3)

    def slopes(self, function: Callable[[np.ndarray], np.ndarray], q: np.ndarray) -> np.ndarray:
        return np.array([self.slope(function, q, unit) for unit in np.eye(self.ns)])

    def terms(self, q: np.ndarray, pi: np.ndarray, p: np.ndarray) -> dict[str, np.ndarray]:
        """Terms of d/dt phat at zero torque; their sum is the rate."""
        nb, ns = self.nb, self.ns
        locked, connection, metric = self.full.blocks(q)
        a, s = np.linalg.solve(locked, pi), np.linalg.solve(metric, p)
        lift = np.vstack([-connection, np.eye(ns)])
        dm = self.slopes(self.full.mass_matrix, q)
        da = np.linalg.solve(locked, dm[:, :nb, nb:] - dm[:, :nb, :nb] @ connection)
        height = self.slopes(lambda x: np.array(self.full.energy(x, np.zeros(nb + ns))), q)

        def joint(x: np.ndarray) -> np.ndarray:
            return np.concatenate([np.zeros(nb), x])

        def base(x: np.ndarray) -> np.ndarray:
            return np.concatenate([x, np.zeros(ns)])

        units = np.eye(ns)
        carried = connection @ s
        return {
            "dM11": np.einsum("i,kij,j->k", a, dm[:, :nb, :nb], a) / 2,
            "dMhat": np.einsum("i,kij,j->k", lift @ s, dm, lift @ s) / 2,
            "DV": -height,
            "ad*_s p": self.brackets.coadjoint(joint(s), joint(p))[nb:],
            "D_u A": -pi @ np.einsum("l,lik->ik", s, da) + da @ s @ pi,
            "A[s, e]": np.array(
                [pi @ connection @ self.brackets(joint(s), joint(e))[nb:] for e in units]
            ),
            "[As, Ae]": np.array(
                [pi @ self.brackets(base(carried), base(connection @ e))[:nb] for e in units]
            ),
            "ad*_a Pi": -connection.T @ self.brackets.coadjoint(base(a), base(pi))[:nb],
        }

    def body_rate(self, q: np.ndarray, pi: np.ndarray, p: np.ndarray) -> np.ndarray:
        """Pidot = ad*_v1 Pi."""
        locked, connection, metric = self.full.blocks(q)
        v1 = np.linalg.solve(locked, pi) - connection @ np.linalg.solve(metric, p)
        rest = np.zeros(self.ns)
        turned = self.brackets.coadjoint(np.concatenate([v1, rest]), np.concatenate([pi, rest]))
        return turned[: self.nb]

    def without_curvature(self, q: np.ndarray, pi: np.ndarray, p: np.ndarray) -> np.ndarray:
        """d/dt phat by ad*_s of the momentum, the slope of the energy at fixed v, and dA/dt."""
        locked, connection, metric = self.full.blocks(q)
        s = np.linalg.solve(metric, p)
        v = np.concatenate([np.linalg.solve(locked, pi) - connection @ s, s])
        shape = np.concatenate([np.zeros(self.nb), s])
        momentum = np.concatenate([np.zeros(self.nb), p + connection.T @ pi])

        def height(x: np.ndarray) -> np.ndarray:
            kinetic = v @ self.full.mass_matrix(x) @ v / 2
            return np.array(kinetic - self.full.energy(x, np.zeros_like(v)))

        return (
            self.brackets.coadjoint(shape, momentum)[self.nb :]
            + self.slopes(height, q)
            - self.slope(lambda x: self.full.blocks(x)[1], q, s).T @ pi
            - connection.T @ self.body_rate(q, pi, p)
        )


def reduced(robot: Mechanism, mu: np.ndarray | None = None) -> MomentumReduction:
    model = cc.reduce(robot, momentum=mu)
    assert isinstance(model, MomentumReduction)
    return model
