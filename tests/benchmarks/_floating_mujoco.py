"""The law of a floating hand over MuJoCo's Python interface, and its loop by the library's steps.

The library's free joint has its linear velocity in inertial axes, so base, momentum and mass
matrix are written in these. Of its pipeline only those stages run that the law needs. It has
neither logarithm nor adjoint of poses: they are written here with NumPy.
"""

from __future__ import annotations

import math

import mujoco
import numpy as np
from scipy.linalg.lapack import dgesv, dposv, dpotrs

import concur as cc
from tests.benchmarks._floating_job import FloatingJob
from tests.benchmarks._mujoco_model import build

SERIES = 0.3
"""Angle below which the coefficients of the logarithm are taken from their series, rad."""


class MujocoFloatingLaw:
    """The law of the servo.

    Parameters
    ----------
    job : FloatingJob
        A floating arm with as many joints as the pose of its hand has coordinates.
    """

    def __init__(self, job: FloatingJob) -> None:
        self.model = build(job.robot)
        self.data = data = mujoco.MjData(self.model)
        site = self.model.site(job.output.body).id
        self.body = int(self.model.site_bodyid[site])
        # Views of the library's own memory.
        self.q, self.v = data.qpos, data.qvel
        self.place, self.turn = data.site_xpos[site], data.site_xmat[site].reshape(3, 3)
        self.carrier, self.own_turn = data.xquat[self.body], self.model.site_quat[site]
        self.base_turn = data.xmat[1].reshape(3, 3)
        self.force, self.torque_about_origin = job.momentum[:3].copy(), job.momentum[3:].copy()
        # The gains are diagonal: products by entries.
        self.stiffness, self.damping = np.diag(job.stiffness).copy(), np.diag(job.damping).copy()
        self.mass, self.bias = np.zeros((12, 12)), np.zeros(12)
        self.right = np.zeros((6, 7), order="F")
        self.right[:3, 6] = self.force
        self.velocity, self.vdot = np.zeros(12), np.zeros(12)
        self.jacobian, self.change = np.zeros((6, 12)), np.zeros((6, 12))
        self.attitude, self.inverse, self.wanted, self.between = np.zeros((4, 4))
        self.x = np.zeros(6)
        self.flat_turn = np.zeros(9)
        self.wanted_turn = self.flat_turn.reshape(3, 3)
        self.demands = np.zeros((6, 2), order="F")
        self.adjoint, self.bracket = np.zeros((6, 6)), np.zeros((6, 6))

    def place_robot(self, q: np.ndarray) -> None:
        """Our configuration in the library's: quaternions with the scalar first."""
        own = self.q
        own[:3], own[3], own[4:7], own[7:] = q[:3], q[6], q[3:6], q[7:]

    def configuration(self) -> np.ndarray:
        """Our configuration, from the library's memory."""
        own = self.q
        return np.concatenate([own[:3], own[4:7], own[3:4], own[7:]])

    def lift(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Factor of the base's block, connection and locked velocity; fills the mass matrix."""
        model, data, right = self.model, self.data, self.right
        mujoco.mj_fullM(model, data, self.mass)
        px, py, pz = self.q[:3].tolist()
        fx, fy, fz = self.force.tolist()
        torque = self.torque_about_origin - (
            py * fz - pz * fy,
            pz * fx - px * fz,
            px * fy - py * fx,
        )
        right[:, :6] = self.mass[:6, 6:]
        right[3:, 6] = torque.dot(self.base_turn)
        factor, solved, _ = dposv(self.mass[:6, :6], right)
        return factor, solved[:, :6], solved[:, 6]

    def command(self, velocity: np.ndarray, sample: cc.ReferenceSample) -> np.ndarray:
        """Wanted rate of the hand's body twist, for that twist."""
        x, turn = self.x, self.turn
        mujoco.mju_mulQuat(self.attitude, self.carrier, self.own_turn)
        mujoco.mju_negQuat(self.inverse, self.attitude)
        pose, wanted = sample.pose, self.wanted
        wanted[0], wanted[1:] = pose[6], pose[3:6]
        mujoco.mju_mulQuat(self.between, self.inverse, wanted)
        mujoco.mju_quat2Vel(x[3:], self.between, 1.0)
        mujoco.mju_quat2Mat(self.flat_turn, self.between)
        offset = (pose[:3] - self.place).dot(turn)

        phi = x[3:]
        straight, slope = _coefficients(math.sqrt(phi.dot(phi)))
        cross = _skew(np.zeros((3, 3)), phi)
        square = cross.dot(cross)
        inverse = _IDENTITY - 0.5 * cross + straight * square
        x[:3] = inverse.dot(offset)
        mixed = _skew(np.zeros((3, 3)), x[:3])
        coupling = (
            straight * (cross.dot(mixed) + mixed.dot(cross))
            - 0.5 * mixed
            + (slope * phi.dot(x[:3])) * square
        )
        push = self.stiffness * x
        push[3:] = push[3:].dot(inverse) + push[:3].dot(coupling)
        push[:3] = push[:3].dot(inverse)

        adjoint, bracket, demands = self.adjoint, self.bracket, self.demands
        adjoint[:3, :3] = adjoint[3:, 3:] = self.wanted_turn
        adjoint[:3, 3:] = _skew(mixed, offset).dot(self.wanted_turn)
        demands[:, 0], demands[:, 1] = sample.twist, sample.acceleration
        carried, ahead = adjoint.dot(demands).T
        _skew(bracket[:3, 3:], velocity[:3])
        bracket[:3, :3] = bracket[3:, 3:] = _skew(cross, velocity[3:])
        return push - self.damping * (velocity - carried) + ahead - bracket.dot(carried)

    def torque(
        self, factor: np.ndarray, connection: np.ndarray, v: np.ndarray, sample: cc.ReferenceSample
    ) -> np.ndarray:
        """Torques for the velocities of the whole robot, once mass matrix and bias are there."""
        model, data, turn, bias = self.model, self.data, self.turn, self.bias
        jacobian, change, vdot = self.jacobian, self.change, self.vdot
        # Momentum is kept, so the base's rows of the forces are zero.
        drift = -dpotrs(factor, bias[:6])[0]
        mujoco.mj_jac(model, data, jacobian[:3], jacobian[3:], self.place, self.body)
        mujoco.mj_jacDot(model, data, change[:3], change[3:], self.place, self.body)
        moved = jacobian.dot(v)
        velocity = moved.reshape(2, 3).dot(turn).ravel()
        wanted = self.command(velocity, sample).reshape(2, 3).dot(turn.T).ravel()
        # The rate of a twist in body axes is not that of its parts in inertial axes.
        ax, ay, az, wx, wy, wz = moved.tolist()
        wanted[:3] += (wy * az - wz * ay, wz * ax - wx * az, wx * ay - wy * ax)
        onto_base = jacobian[:, :6]
        rest = wanted - change.dot(v) - onto_base.dot(drift)
        sdot = dgesv(jacobian[:, 6:] - onto_base.dot(connection), rest)[2]
        vdot[:6] = drift - connection.dot(sdot)
        vdot[6:] = sdot
        return self.mass[6:].dot(vdot) + bias[6:]

    def __call__(self, q: np.ndarray, s: np.ndarray, sample: cc.ReferenceSample) -> np.ndarray:
        model, data, v = self.model, self.data, self.velocity
        self.place_robot(q)
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        mujoco.mj_crb(model, data)
        factor, connection, locked = self.lift()
        v[:6] = locked - connection.dot(s)
        v[6:] = s
        self.v[:] = v
        mujoco.mj_comVel(model, data)
        mujoco.mj_rne(model, data, 0, self.bias)
        return self.torque(factor, connection, v, sample)


class MujocoFloatingLoop:
    """The law called back from the library's own Runge-Kutta step.

    When it is called, the library has mass matrix, bias forces and velocities of the stage.
    """

    def __init__(self, law: MujocoFloatingLaw) -> None:
        self.law = law
        law.bias = law.data.qfrc_bias

    def __call__(
        self, reference: cc.references.Reference, duration: float, q0: np.ndarray, s0: np.ndarray
    ) -> np.ndarray:
        """Simulate in steps of 1 ms; configurations at the steps, in our coordinates."""
        law, model, data = self.law, self.law.model, self.law.data
        h = model.opt.timestep
        steps = round(duration / h)
        samples = [
            cc.ReferenceSample(*numbers)
            for numbers in zip(*reference.sample(np.arange(2 * steps + 1) * (h / 2)), strict=True)
        ]
        mujoco.mj_resetData(model, data)
        law.place_robot(q0)
        mujoco.mj_forward(model, data)
        _, connection, locked = law.lift()
        law.v[:6], law.v[6:] = locked - connection.dot(s0), s0

        def drive(model: mujoco.MjModel, data: mujoco.MjData) -> None:
            factor, connection, _ = law.lift()
            sample = samples[round(2 * data.time / h)]
            data.qfrc_applied[6:] = law.torque(factor, connection, law.v, sample)

        states = np.empty((steps + 1, 13))
        states[0] = law.configuration()
        mujoco.set_mjcb_control(drive)
        try:
            for k in range(steps):
                mujoco.mj_step(model, data)
                states[k + 1] = law.configuration()
        finally:
            mujoco.set_mjcb_control(None)
        return states


_IDENTITY = np.eye(3)


def _skew(matrix: np.ndarray, vector: np.ndarray) -> np.ndarray:
    x, y, z = vector.tolist()
    matrix[0, 1], matrix[0, 2], matrix[1, 2] = -z, y, -x
    matrix[1, 0], matrix[2, 0], matrix[2, 1] = z, -y, x
    return matrix


def _coefficients(angle: float) -> tuple[float, float]:
    """Return c = 1/a^2 - cot(a/2)/(2a) of the logarithm's differential, and its slope over a."""
    t = angle * angle
    if angle < SERIES:
        c = 1 / 12 + t * (1 / 720 + t * (1 / 30240 + t * (1 / 1209600 + t / 47900160)))
        return c, 1 / 360 + t * (1 / 7560 + t * (1 / 201600 + t / 5987520))
    half = angle / 2
    cot = 1 / math.tan(half)
    slope = -2 / (t * angle) + cot / (2 * t) + (1 + cot * cot) / (4 * angle)
    return 1 / t - cot / (2 * angle), slope / angle
