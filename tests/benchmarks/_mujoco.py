"""The same law over MuJoCo's Python interface.

The planar base is two slides and a hinge, so its velocity is in inertial axes and the lift turns
with the heading. Of the library's pipeline only those stages run that the law needs; Newton-Euler
with accelerations replaces assembling the mass matrix.
"""

from __future__ import annotations

import math
from typing import Any

import mujoco
import numpy as np
from scipy.linalg.lapack import dgesv

import concur as cc
from tests.benchmarks._job import lift


def build(robot: cc.Mechanism, outputs: tuple[cc.Output, ...]) -> mujoco.MjModel:
    """Build the rover with an arm, coordinates in our order, a site for each output."""
    spec = mujoco.MjSpec()
    spec.option.gravity = np.array(robot.gravity)
    hinge, slide = mujoco.mjtJoint.mjJNT_HINGE, mujoco.mjtJoint.mjJNT_SLIDE
    made: dict[str | None, Any] = {None: spec.worldbody}
    for body in robot.bodies:
        own = made[body.parent].add_body(name=body.name, pos=body.placement.translation)
        own.mass, own.ipos = body.inertia.mass, body.inertia.com
        own.inertia = np.diag(body.inertia.tensor)
        own.explicitinertial = True
        if isinstance(body.joint, cc.joints.Revolute):
            own.add_joint(type=hinge, axis=body.joint.axis)
        else:  # the planar base
            own.add_joint(type=slide, axis=(1, 0, 0))
            own.add_joint(type=slide, axis=(0, 1, 0))
            own.add_joint(type=hinge, axis=(0, 0, 1))
        made[body.name] = own
    for output in outputs:
        made[output.body].add_site(name=output.name, pos=output.point)
    return spec.compile()


class MujocoLaw:
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
        self.model = build(robot, outputs)
        self.data = data = mujoco.MjData(self.model)
        self.bodies = [self.model.body(output.body).id for output in outputs]
        # Views of the library's own memory.
        self.q, self.v, self.vdot = data.qpos, data.qvel, data.qacc
        self.sites = [data.site_xpos[self.model.site(output.name).id] for output in outputs]
        self.stiffness, self.damping = np.diag(stiffness).copy(), np.diag(damping).copy()
        self.lift = lift(robot)
        self.forward = self.lift[0, 0]
        self.position = np.zeros(5)
        # Three rows for the point of the base, of which those of the hand then cover the last.
        self.jacobian, self.change = np.zeros((5, 8)), np.zeros((5, 8))
        self.turning = np.zeros(2)
        self.force = np.zeros(8)

    def __call__(self, q: np.ndarray, s: np.ndarray, sample: cc.ReferenceSample) -> np.ndarray:
        model, data, horizontal = self.model, self.data, self.lift
        c, sn = math.cos(q[2]), math.sin(q[2])
        horizontal[0, :2], horizontal[1, :2] = self.forward * c, self.forward * sn
        v = horizontal.dot(s)
        self.q[:], self.v[:] = q, v
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        mujoco.mj_comVel(model, data)
        (base, hand), (at_base, at_hand) = self.bodies, self.sites
        jacobian, change, position = self.jacobian, self.change, self.position
        mujoco.mj_jac(model, data, jacobian[:3], None, at_base, base)
        mujoco.mj_jac(model, data, jacobian[2:], None, at_hand, hand)
        mujoco.mj_jacDot(model, data, change[:3], None, at_base, base)
        mujoco.mj_jacDot(model, data, change[2:], None, at_hand, hand)
        position[:2], position[2:] = at_base[:2], at_hand
        # Hdot s: the forward velocity turns with the heading.
        turning = self.turning
        turning[0], turning[1] = -v[2] * v[1], v[2] * v[0]
        drift = change.dot(v) + jacobian[:, :2].dot(turning)
        # Transposed, it lies in memory the way LAPACK wants it.
        decoupling = horizontal.T.dot(jacobian.T)
        command = (
            self.stiffness * (sample.pose - position)
            + self.damping * (sample.twist - s.dot(decoupling))
            + sample.acceleration
            - drift
        )
        vdot = horizontal.dot(dgesv(decoupling.T, command, 1, 1)[2])
        vdot[:2] += turning
        self.vdot[:] = vdot
        mujoco.mj_rne(model, data, 1, self.force)
        return self.force.dot(horizontal)
