"""The law of several hands of a floating robot, with joints left over, over Pinocchio in Python."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pinocchio as pin
from scipy.linalg.lapack import dposv, dpotrs

import concur as cc
from tests.benchmarks._pinocchio_model import build

REST = 2.0
"""Rate at which internal motion dies away, 1/s: the default of `cc.control.Redundancy`."""


class PinocchioHandsLaw:
    """The law of the servo, for gains that are multiples of the identity.

    Parameters
    ----------
    robot : Mechanism
        A robot on a free base.
    hands : sequence of str
        Bodies whose poses are the outputs.
    stiffness, damping : float
        Gains.
    momentum : numpy.ndarray
        About the inertial origin, shape (6,).
    """

    def __init__(
        self,
        robot: cc.Mechanism,
        hands: Sequence[str],
        stiffness: float,
        damping: float,
        momentum: np.ndarray,
    ) -> None:
        self.model = build(robot)
        self.data = self.model.createData()
        self.hands = [self.model.getFrameId(hand) for hand in hands]
        self.stiffness, self.damping = stiffness, damping
        self.momentum = pin.Force(momentum)
        self.v, self.drift, self.vdot = np.zeros((3, robot.nv))
        self.right = np.zeros((6, robot.nv - 5), order="F")
        self.size = 6 * len(hands)
        self.decoupling = np.zeros((self.size, robot.nv - 6))
        self.command = np.zeros(self.size)
        self.wanted, self.ahead = pin.Motion.Zero(), pin.Motion.Zero()

    def __call__(self, q: np.ndarray, s: np.ndarray, sample: cc.ReferenceSample) -> np.ndarray:
        model, data, right, v = self.model, self.data, self.right, self.v
        mass = pin.crba(model, data, q)
        coupling = mass[:6, 6:]
        right[:, :-1] = coupling
        right[:, -1] = pin.XYZQUATToSE3(q[:7]).actInv(self.momentum).vector
        factor, solved, _ = dposv(mass[:6, :6], right)
        connection = solved[:, :-1]
        v[:6] = solved[:, -1] - connection.dot(s)
        v[6:] = s
        bias = pin.nonLinearEffects(model, data, q, v)
        drift, vdot = self.drift, self.vdot
        drift[:6] = -dpotrs(factor, bias[:6])[0]
        pin.forwardKinematics(model, data, q, v, drift)
        pin.computeJointJacobians(model, data)
        for k, hand in enumerate(self.hands):
            self._hand(hand, sample, slice(6 * k, 6 * k + 6), 7 * k, connection)
        decoupling = self.decoupling
        upper = mass[6:, 6:] - coupling.T.dot(connection)  # the reduced mass matrix, its triangle
        pull = -REST * s
        spread = dposv(upper, decoupling.T)[1]
        square = decoupling.dot(spread)
        lacking = dposv(square, self.command - decoupling.dot(pull))[1]
        sdot = pull + spread.dot(lacking)
        vdot[:6] = drift[:6] - connection.dot(sdot)
        vdot[6:] = sdot
        return mass[6:].dot(vdot) + bias[6:]

    def _hand(
        self,
        hand: int,
        sample: cc.ReferenceSample,
        rows: slice,
        start: int,
        connection: np.ndarray,
    ) -> None:
        """Fill the rows of one hand."""
        model, data = self.model, self.data
        here = pin.updateFramePlacement(model, data, hand)
        velocity = pin.getFrameVelocity(model, data, hand, pin.LOCAL)
        rate = pin.getFrameAcceleration(model, data, hand, pin.LOCAL)
        jacobian = pin.getFrameJacobian(model, data, hand, pin.LOCAL)
        self.wanted.vector = sample.twist[rows]
        self.ahead.vector = sample.acceleration[rows]
        error = here.actInv(pin.XYZQUATToSE3(sample.pose[start : start + 7]))
        carried = error.act(self.wanted)
        ahead = error.act(self.ahead) - velocity.cross(carried) - rate
        push = self.stiffness * pin.log6(error).vector
        self.command[rows] = (
            push.dot(pin.Jlog6(error.inverse()))
            - self.damping * (velocity - carried).vector
            + ahead.vector
        )
        self.decoupling[rows] = jacobian[:, 6:] - jacobian[:, :6].dot(connection)
