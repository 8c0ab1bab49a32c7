"""The same law, plant and closed loop over Pinocchio's Python interface.

Written for speed as far as Python goes: arrays are allocated once, what does not change (the
lift, the constraint rows) is computed once, the linear systems go to LAPACK directly, one pass
gives kinematics, velocity products and Jacobians, and no quantity is computed twice.
"""

from __future__ import annotations

import math

import numpy as np
import pinocchio as pin
from scipy.linalg.lapack import dgesv

import concur as cc
from tests.benchmarks._job import lift, rolling
from tests.benchmarks._pinocchio_model import build

WORLD_AXES = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED


class PinocchioLaw:
    """The law of the servo.

    Parameters
    ----------
    robot : Mechanism
        Bodies and wheels are read.
    outputs : sequence of Output
        A point of the chassis in the plane, a point of the forearm in space.
    stiffness, damping : numpy.ndarray
        Gains (5, 5).
    """

    def __init__(
        self,
        robot: cc.Mechanism,
        outputs: tuple[cc.Output, ...],
        stiffness: np.ndarray,
        damping: np.ndarray,
    ) -> None:
        self.model = build(robot)
        base, hand = (
            self.model.addFrame(
                pin.Frame(
                    output.name,
                    self.model.getJointId(output.body),
                    pin.SE3(np.eye(3), np.array(output.point)),
                    pin.FrameType.OP_FRAME,
                )
            )
            for output in outputs
        )
        self.data = self.model.createData()
        self.base, self.hand = base, hand
        # The gains are diagonal: products by entries.
        self.stiffness, self.damping = np.diag(stiffness).copy(), np.diag(damping).copy()
        self.lift = lift(robot)
        self.lift_transposed = np.ascontiguousarray(self.lift.T)
        self.q = np.zeros(9)
        self.still = np.zeros(8)
        self.position, self.drift = np.zeros(5), np.zeros(5)
        self.jacobian = np.zeros((5, 8))

    def configuration(self, q: np.ndarray) -> np.ndarray:
        """Our configuration in the library's: cosine and sine for the heading."""
        heading = q[2]
        own = self.q
        own[:2] = q[:2]
        own[2], own[3] = math.cos(heading), math.sin(heading)
        own[4:] = q[3:]
        return own

    def acceleration(
        self,
        q: np.ndarray,
        v: np.ndarray,
        s: np.ndarray,
        pose: np.ndarray,
        twist: np.ndarray,
        rate: np.ndarray,
    ) -> np.ndarray:
        """Commanded acceleration of the robot, for a configuration of the library."""
        model, data = self.model, self.data
        position, drift, jacobian = self.position, self.drift, self.jacobian
        pin.forwardKinematics(model, data, q, v, self.still)
        pin.computeJointJacobians(model, data)
        position[:2] = pin.updateFramePlacement(model, data, self.base).translation[:2]
        position[2:] = pin.updateFramePlacement(model, data, self.hand).translation
        jacobian[:2] = pin.getFrameJacobian(model, data, self.base, WORLD_AXES)[:2]
        jacobian[2:] = pin.getFrameJacobian(model, data, self.hand, WORLD_AXES)[:3]
        turning = pin.getFrameClassicalAcceleration(model, data, self.base, WORLD_AXES)
        drift[:2] = turning.linear[:2]
        turning = pin.getFrameClassicalAcceleration(model, data, self.hand, WORLD_AXES)
        drift[2:] = turning.linear
        # Transposed, it lies in memory the way LAPACK wants it.
        decoupling = self.lift_transposed.dot(jacobian.T)
        command = (
            self.stiffness * (pose - position)
            + self.damping * (twist - s.dot(decoupling))
            + rate
            - drift
        )
        return self.lift.dot(dgesv(decoupling.T, command, 1, 1)[2])

    def __call__(self, q: np.ndarray, s: np.ndarray, sample: cc.ReferenceSample) -> np.ndarray:
        own, v = self.configuration(q), self.lift.dot(s)
        vdot = self.acceleration(own, v, s, sample.pose, sample.twist, sample.acceleration)
        return self.lift_transposed.dot(pin.rnea(self.model, self.data, own, v, vdot))


class PinocchioLoop:
    """The law on the full-order plant, by the classic Runge-Kutta method in Python.

    The plant is ``M vdot + c = B u + C^T lambda``, ``C vdot = -stabilisation C v``, with C
    written by hand. Law and plant share one mass matrix and one bias, so the torque costs two
    products instead of a Newton-Euler pass.

    Parameters
    ----------
    law : PinocchioLaw
        The law.
    robot : Mechanism
        Its wheels are read.
    """

    def __init__(self, law: PinocchioLaw, robot: cc.Mechanism, stabilisation: float = 10.0) -> None:
        self.law = law
        self.rows = rolling(robot)
        self.decay = -stabilisation * self.rows
        self.system = np.zeros((11, 11), order="F")
        self.system[:8, 8:] = -self.rows.T
        self.system[8:, :8] = self.rows
        self.right = np.zeros(11)

    def rate(
        self,
        q: np.ndarray,
        v: np.ndarray,
        pose: np.ndarray,
        twist: np.ndarray,
        acceleration: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Rates of our coordinates and of the velocities."""
        law = self.law
        own = law.configuration(q)
        wanted = law.acceleration(own, v, v[3:], pose, twist, acceleration)
        mass = pin.crba(law.model, law.data, own)
        bias = pin.nonLinearEffects(law.model, law.data, own, v)
        u = law.lift_transposed.dot(mass.dot(wanted) + bias)
        vdot = self.plant(mass, bias, v, u)
        qdot = v.copy()
        c, s = own[2], own[3]
        qdot[0], qdot[1] = c * v[0] - s * v[1], s * v[0] + c * v[1]
        return qdot, vdot

    def plant(self, mass: np.ndarray, bias: np.ndarray, v: np.ndarray, u: np.ndarray) -> np.ndarray:
        """Acceleration of the full-order plant under control forces."""
        self.system[:8, :8] = mass
        right = self.right
        right[:8] = -bias
        right[3:8] += u
        right[8:] = self.decay.dot(v)
        return dgesv(self.system, right)[2][:8]

    def __call__(
        self, reference: cc.references.Reference, duration: float, q0: np.ndarray, s0: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Simulate in steps of 1 ms; configurations and velocities at the steps."""
        h = 1e-3
        steps = round(duration / h)
        poses, twists, accelerations = reference.sample(np.arange(2 * steps + 1) * (h / 2))
        demands = list(zip(poses, twists, accelerations, strict=True))
        qs, vs = np.zeros((steps + 1, 8)), np.zeros((steps + 1, 8))
        q, v = np.array(q0, dtype=float), self.law.lift.dot(s0)
        qs[0], vs[0] = q, v
        rate = self.rate
        for k in range(steps):
            begin, middle, end = demands[2 * k : 2 * k + 3]
            q1, v1 = rate(q, v, *begin)
            q2, v2 = rate(q + (h / 2) * q1, v + (h / 2) * v1, *middle)
            q3, v3 = rate(q + (h / 2) * q2, v + (h / 2) * v2, *middle)
            q4, v4 = rate(q + h * q3, v + h * v3, *end)
            q = q + (h / 6) * (q1 + 2 * (q2 + q3) + q4)
            v = v + (h / 6) * (v1 + 2 * (v2 + v3) + v4)
            qs[k + 1], vs[k + 1] = q, v
        return qs, vs
