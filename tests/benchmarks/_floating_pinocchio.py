"""The law of a floating hand, its plant and closed loop over Pinocchio's Python interface.

Written for speed as far as Python goes: each quantity is computed once, linear systems go to
LAPACK directly, the small products of poses and twists are the library's own. One composite-body
pass, one Newton-Euler pass, one kinematic pass and the Jacobians make one call.
"""

from __future__ import annotations

import numpy as np
import pinocchio as pin
from scipy.linalg.lapack import dgesv, dposv, dpotrs

import concur as cc
from tests.benchmarks._floating_job import FloatingJob
from tests.benchmarks._pinocchio_model import build

LOCAL = pin.ReferenceFrame.LOCAL


class PinocchioFloatingLaw:
    """The law of the servo; configurations and velocities are the same as ours.

    Parameters
    ----------
    job : FloatingJob
        A floating arm with as many joints as the pose of its hand has coordinates.
    """

    def __init__(self, job: FloatingJob) -> None:
        self.model = build(job.robot)
        self.data = self.model.createData()
        self.hand = self.model.getFrameId(job.output.body)
        self.momentum = pin.Force(job.momentum)
        # The gains are diagonal: products by entries.
        self.stiffness, self.damping = np.diag(job.stiffness).copy(), np.diag(job.damping).copy()
        self.right = np.zeros((6, 7), order="F")
        self.v, self.drift, self.vdot = np.zeros((3, 12))
        self.wanted, self.ahead = pin.Motion.Zero(), pin.Motion.Zero()

    def lift(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Mass matrix, factor of the base's block, connection and locked velocity."""
        mass = pin.crba(self.model, self.data, q)
        right = self.right
        right[:, :6] = mass[:6, 6:]
        right[:, 6] = pin.XYZQUATToSE3(q[:7]).actInv(self.momentum).vector
        factor, solved, _ = dposv(mass[:6, :6], right)
        return mass, factor, solved[:, :6], solved[:, 6]

    def torque(
        self,
        q: np.ndarray,
        v: np.ndarray,
        bases: tuple[np.ndarray, np.ndarray, np.ndarray],
        demand: tuple[np.ndarray, np.ndarray, np.ndarray],
    ) -> tuple[np.ndarray, np.ndarray]:
        """Torques and bias forces, for the velocities of the whole robot."""
        model, data, hand = self.model, self.data, self.hand
        mass, factor, connection = bases
        bias = pin.nonLinearEffects(model, data, q, v)
        drift, vdot = self.drift, self.vdot
        # Momentum is kept, so the base's rows of the forces are zero.
        drift[:6] = -dpotrs(factor, bias[:6])[0]
        pin.forwardKinematics(model, data, q, v, drift)
        pin.computeJointJacobians(model, data)
        here = pin.updateFramePlacement(model, data, hand)
        velocity = pin.getFrameVelocity(model, data, hand, LOCAL)
        rate = pin.getFrameAcceleration(model, data, hand, LOCAL)
        jacobian = pin.getFrameJacobian(model, data, hand, LOCAL)

        pose, twist, acceleration = demand
        error = here.actInv(pin.XYZQUATToSE3(pose))
        self.wanted.vector, self.ahead.vector = twist, acceleration
        carried = error.act(self.wanted)
        ahead = error.act(self.ahead) - velocity.cross(carried) - rate
        push = self.stiffness * pin.log6(error).vector
        command = (
            push.dot(pin.Jlog6(error.inverse()))
            - self.damping * (velocity - carried).vector
            + ahead.vector
        )
        decoupling = jacobian[:, 6:] - jacobian[:, :6].dot(connection)
        sdot = dgesv(decoupling, command)[2]
        vdot[:6] = drift[:6] - connection.dot(sdot)
        vdot[6:] = sdot
        return mass[6:].dot(vdot) + bias[6:], bias

    def __call__(self, q: np.ndarray, s: np.ndarray, sample: cc.ReferenceSample) -> np.ndarray:
        mass, factor, connection, locked = self.lift(q)
        v = self.v
        v[:6] = locked - connection.dot(s)
        v[6:] = s
        demand = sample.pose, sample.twist, sample.acceleration
        return self.torque(q, v, (mass, factor, connection), demand)[0]


class PinocchioFloatingLoop:
    """The law on the full-order plant, by the classic Runge-Kutta method in Python.

    Law and plant share one mass matrix, one bias and the velocities of the state.
    """

    def __init__(self, law: PinocchioFloatingLaw) -> None:
        self.law = law

    def rate(self, z: np.ndarray, demand: tuple[np.ndarray, np.ndarray, np.ndarray]) -> np.ndarray:
        """Rates of coordinates and velocities together, shape (25,)."""
        law = self.law
        q, v = z[:13].copy(), z[13:]
        q[3:7] /= np.sqrt(q[3:7].dot(q[3:7]))
        mass, factor, connection, _ = law.lift(q)
        u, bias = law.torque(q, v, (mass, factor, connection), demand)
        rates = np.empty(25)
        x, y, z_, w = q[3:7]
        wx, wy, wz = v[3:6]
        rates[:3] = pin.XYZQUATToSE3(q[:7]).rotation.dot(v[:3])
        rates[3] = 0.5 * (w * wx + y * wz - z_ * wy)
        rates[4] = 0.5 * (w * wy + z_ * wx - x * wz)
        rates[5] = 0.5 * (w * wz + x * wy - y * wx)
        rates[6] = -0.5 * (x * wx + y * wy + z_ * wz)
        rates[7:13] = v[6:]
        force = -bias
        force[6:] += u
        rates[13:] = dposv(mass, force)[1]
        return rates

    def __call__(
        self, reference: cc.references.Reference, duration: float, q0: np.ndarray, s0: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Simulate in steps of 1 ms; configurations and velocities at the steps."""
        h = 1e-3
        steps = round(duration / h)
        poses, twists, accelerations = reference.sample(np.arange(2 * steps + 1) * (h / 2))
        demands = list(zip(poses, twists, accelerations, strict=True))
        _, _, connection, locked = self.law.lift(q0)
        z = np.concatenate([q0, locked - connection.dot(s0), s0])
        states = np.empty((steps + 1, 25))
        states[0] = z
        rate = self.rate
        for k in range(steps):
            begin, middle, end = demands[2 * k : 2 * k + 3]
            k1 = rate(z, begin)
            k2 = rate(z + (h / 2) * k1, middle)
            k3 = rate(z + (h / 2) * k2, middle)
            k4 = rate(z + h * k3, end)
            z = z + (h / 6) * (k1 + 2 * (k2 + k3) + k4)
            z[3:7] /= np.sqrt(z[3:7].dot(z[3:7]))
            states[k + 1] = z
        return states[:, :13], states[:, 13:]


class PinocchioFloatingFunctions:
    """Single functions, called with our configurations."""

    def __init__(self, law: PinocchioFloatingLaw) -> None:
        self.law = law
        self.still = np.zeros(12)
        self.horizontal = np.eye(12)[:, 6:]

    def lift(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Lift of shape velocities and velocity without them: v = H s + h."""
        _, _, connection, locked = self.law.lift(q)
        horizontal, drift = self.horizontal.copy(), self.still.copy()
        horizontal[:6], drift[:6] = -connection, locked
        return horizontal, drift
