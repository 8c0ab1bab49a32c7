"""The same robot in Pinocchio: rigid-body dynamics from a library of others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pinocchio as pin
from scipy.spatial.transform import Rotation

from concur import interop
from concur.robot import Body, Pose, Tree, joints


@dataclass(frozen=True)
class _Joint:
    """How one of our joints is expressed by a joint of the library."""

    model: object
    frame: np.ndarray  # rotation (3, 3) of the library's joint axes in our joint frame


def _shortest_turn(direction: np.ndarray) -> np.ndarray:
    """Rotation from z to a direction, as a rotation vector across both."""
    z = np.array([0.0, 0.0, 1.0])
    across = np.cross(z, direction)
    sine, cosine = np.linalg.norm(across), z @ direction
    if sine < 1e-12:
        return np.eye(3) if cosine > 0.0 else np.diag([1.0, -1.0, -1.0])
    return Rotation.from_rotvec(across / sine * np.arctan2(sine, cosine)).as_matrix()


def _translate(joint: joints.Joint) -> _Joint:
    # A kind of joint that is added to the package gets its line here; the keys are class names
    # so that this file can be read without the class being there.
    kinds: dict[str, Callable[[], _Joint]] = {
        "Revolute": lambda: _Joint(
            pin.JointModelRevoluteUnaligned(np.array(joint.axis)),
            np.eye(3),
        ),
        "Prismatic": lambda: _Joint(
            pin.JointModelPrismaticUnaligned(np.array(joint.axis)),
            np.eye(3),
        ),
        "Planar": lambda: _Joint(
            pin.JointModelPlanar(),
            _shortest_turn(np.array(joint.normal)),
        ),
        "Spherical": lambda: _Joint(pin.JointModelSpherical(), np.eye(3)),
        "Free": lambda: _Joint(pin.JointModelFreeFlyer(), np.eye(3)),
        "Cartesian": lambda: _Joint(pin.JointModelTranslation(), np.eye(3)),
        "Helical": lambda: _Joint(
            pin.JointModelHelicalUnaligned(np.array(joint.axis), joint.pitch),
            np.eye(3),
        ),
    }
    return kinds[type(joint).__name__]()


def _se3(pose: Pose) -> pin.SE3:
    rotation = Rotation.from_quat(pose.rotation).as_matrix()
    return pin.SE3(rotation, np.array(pose.translation))


def _turn(rotation: np.ndarray) -> pin.SE3:
    return pin.SE3(rotation, np.zeros(3))


class Pinocchio:
    """A robot in Pinocchio, spoken to in our coordinates.

    Parameters
    ----------
    tree : Tree
        Its bodies and gravity are read; nothing of it is evaluated.
    """

    def __init__(self, tree: Tree) -> None:
        self.model = pin.Model()
        self.model.gravity = pin.Motion(np.array(tree.gravity), np.zeros(3))
        self._joint: dict[str, int] = {}  # index of the library's joint that carries a body
        self._offset: dict[str, pin.SE3] = {}  # body frame in the frame of that joint
        self._at_rest: list[tuple[float, np.ndarray]] = []
        self._gravity = np.array(tree.gravity)

        children: dict[str | None, list[Body]] = {}
        self._starts: dict[str, tuple[int, int]] = {}
        self.nq = self.nv = 0
        for body in tree.bodies:
            children.setdefault(body.parent, []).append(body)
            self._starts[body.name] = (self.nq, self.nv)
            self.nq += body.joint.nq
            self.nv += body.joint.nv
        # Depth first: the library wants the joints of a subtree next to each other.
        waiting = list(reversed(children[None]))
        order = []
        while waiting:
            body = waiting.pop()
            order.append(body)
            self._add(body)
            waiting.extend(reversed(children.get(body.name, [])))
        self.data = self.model.createData()
        self._order = interop.pinocchio(tree)

        self._moving = [body for body in order if body.joint.nv]
        self._columns = np.concatenate(
            [np.arange(body.joint.nv) + self._starts[body.name][1] for body in self._moving]
        ).astype(int)

    def _add(self, body: Body) -> None:
        parent = 0 if body.parent is None else self._joint[body.parent]
        before = pin.SE3.Identity() if body.parent is None else self._offset[body.parent]
        placement = before * _se3(body.placement)
        if type(body.joint).__name__ == "Fixed":
            index, offset = parent, placement
        else:
            kind = _translate(body.joint)
            turned = _turn(kind.frame)
            index = self.model.addJoint(parent, kind.model, placement * turned, body.name)
            offset = turned.inverse()
        self._joint[body.name], self._offset[body.name] = index, offset
        com = np.array(body.inertia.com)
        moments = np.array(body.inertia.moments)
        tensor = np.diag(moments) if moments.ndim == 1 else moments
        inertia = pin.Inertia(body.inertia.mass, com, tensor)
        if index == 0:  # the library leaves out what does not move
            self._at_rest.append((body.inertia.mass, offset.act(com)))
        else:
            self.model.appendBodyToJoint(index, inertia, offset)

    def configuration(self, q: np.ndarray) -> np.ndarray:
        """Our configuration in the library's coordinates."""
        return self._order.to_q(q)

    def velocity(self, v: np.ndarray) -> np.ndarray:
        """Our velocity in the library's order."""
        return np.asarray(v, dtype=float)[self._columns]

    def _back(self, vector: np.ndarray) -> np.ndarray:
        ours = np.zeros(self.nv)
        ours[self._columns] = vector
        return ours

    def mass_matrix(self, q: np.ndarray) -> np.ndarray:
        upper = np.triu(pin.crba(self.model, self.data, self.configuration(q)))
        full = upper + np.triu(upper, 1).T
        ours = np.zeros((self.nv, self.nv))
        ours[np.ix_(self._columns, self._columns)] = full
        return ours

    def bias(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        return self._back(
            pin.nonLinearEffects(self.model, self.data, self.configuration(q), self.velocity(v))
        )

    def inverse_dynamics(self, q: np.ndarray, v: np.ndarray, vdot: np.ndarray) -> np.ndarray:
        return self._back(
            pin.rnea(
                self.model,
                self.data,
                self.configuration(q),
                self.velocity(v),
                self.velocity(vdot),
            )
        )

    def forward_dynamics(self, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> np.ndarray:
        """Acceleration by the articulated-body algorithm."""
        return self._back(
            pin.aba(
                self.model,
                self.data,
                self.configuration(q),
                self.velocity(v),
                self.velocity(tau),
            )
        )

    def pose(self, q: np.ndarray, body: str) -> np.ndarray:
        pin.forwardKinematics(self.model, self.data, self.configuration(q))
        return (self.data.oMi[self._joint[body]] * self._offset[body]).homogeneous

    def jacobian(self, q: np.ndarray, body: str) -> np.ndarray:
        ours = np.zeros((6, self.nv))
        joint = self._joint[body]
        if joint:
            own = pin.computeJointJacobian(self.model, self.data, self.configuration(q), joint)
            ours[:, self._columns] = self._offset[body].toActionMatrixInverse() @ own.reshape(6, -1)
        return ours

    def velocity_product(self, q: np.ndarray, v: np.ndarray, body: str) -> np.ndarray:
        """Derivative of the body twist at zero joint accelerations."""
        pin.forwardKinematics(
            self.model,
            self.data,
            self.configuration(q),
            self.velocity(v),
            np.zeros(self.model.nv),
        )
        return self._offset[body].actInv(self.data.a[self._joint[body]]).vector

    def momentum(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Momentum about the inertial origin, [linear; angular]."""
        pin.computeCentroidalMomentum(
            self.model, self.data, self.configuration(q), self.velocity(v)
        )
        linear, angular = self.data.hg.linear, self.data.hg.angular
        return np.concatenate([linear, angular + np.cross(self.data.com[0], linear)])

    def kinetic_energy(self, q: np.ndarray, v: np.ndarray) -> float:
        return float(
            pin.computeKineticEnergy(self.model, self.data, self.configuration(q), self.velocity(v))
        )

    def potential_energy(self, q: np.ndarray) -> float:
        energy = pin.computePotentialEnergy(self.model, self.data, self.configuration(q))
        return float(energy - sum(mass * self._gravity @ com for mass, com in self._at_rest))

    def rate(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Time derivative of our coordinates, written out joint by joint."""
        q, v = np.asarray(q, dtype=float), np.asarray(v, dtype=float)
        rate = np.zeros(self.nq)
        for body in self._moving:
            iq, iv = self._starts[body.name]
            own_q, own_v = q[iq : iq + body.joint.nq], v[iv : iv + body.joint.nv]
            rate[iq : iq + body.joint.nq] = _rate(type(body.joint).__name__, own_q, own_v)
        return rate


def _rate(kind: str, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    if kind == "Planar":
        c, s = np.cos(q[2]), np.sin(q[2])
        return np.array([c * v[0] - s * v[1], s * v[0] + c * v[1], v[2]])
    if kind == "Spherical":
        return _quaternion_rate(q, v)
    if kind == "Free":
        # q may have drifted off the unit sphere inside an integrator: the formula with the
        # quaternion's own entries would stretch, the normalised rotation does not.
        turned = Rotation.from_quat(q[3:]).apply(v[:3])
        return np.concatenate([turned, _quaternion_rate(q[3:], v[3:])])
    return v


def _quaternion_rate(q: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Half the quaternion product q * (w, 0), scalar part last."""
    return 0.5 * np.concatenate([q[3] * w + np.cross(q[:3], w), [-q[:3] @ w]])
