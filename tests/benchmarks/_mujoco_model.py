"""Robots in MuJoCo's Python interface."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np

import concur as cc


def build(robot: cc.Mechanism) -> mujoco.MjModel:
    """Build a robot in the order of our joints; what is fixed and weightless: a site."""
    return described(robot).compile()


def described(robot: cc.Mechanism) -> mujoco.MjSpec:
    """Describe a robot; a planar base is two slides and a hinge.

    Steps are of 1 ms, by Runge and Kutta.
    """
    spec = mujoco.MjSpec()
    spec.option.gravity = np.array(robot.gravity)
    spec.option.timestep = 1e-3
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_RK4
    spec.option.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
    spec.option.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    hinge, slide = mujoco.mjtJoint.mjJNT_HINGE, mujoco.mjtJoint.mjJNT_SLIDE
    made: dict[str | None, Any] = {None: spec.worldbody}
    carrying = {body.parent for body in robot.bodies}
    for body in robot.bodies:
        x, y, z, w = body.placement.rotation
        place = {"pos": body.placement.translation, "quat": (w, x, y, z)}
        if isinstance(body.joint, cc.joints.Fixed):
            if body.name in carrying:
                made[body.name] = made[body.parent].add_body(name=body.name, **place)
                continue
            made[body.parent].add_site(name=body.name, **place)
            continue
        own = made[body.name] = made[body.parent].add_body(name=body.name, **place)
        own.mass, own.ipos = body.inertia.mass, body.inertia.com
        tensor = body.inertia.tensor
        own.fullinertia = tensor[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]
        own.explicitinertial = True
        if isinstance(body.joint, cc.joints.Revolute):
            own.add_joint(name=body.name, type=hinge, axis=body.joint.axis)
        elif isinstance(body.joint, cc.joints.Planar):
            own.add_joint(type=slide, axis=(1, 0, 0))
            own.add_joint(type=slide, axis=(0, 1, 0))
            own.add_joint(type=hinge, axis=(0, 0, 1))
        else:  # a spacecraft
            own.add_freejoint()
        own.add_site(name=body.name)
    return spec


def configuration(robot: cc.Mechanism, q: np.ndarray) -> np.ndarray:
    """Our configuration in the library's coordinates: quaternions with the scalar first."""
    if not isinstance(robot.base.joint, cc.joints.Free):
        return q
    return np.concatenate([q[:3], q[6:7], q[3:6], q[7:]])


def turned(robot: cc.Mechanism, q: np.ndarray) -> np.ndarray:
    """Map from our velocities to the library's: a base's linear one has inertial axes there."""
    size = 3 if isinstance(robot.base.joint, cc.joints.Free) else 2
    turn = np.eye(robot.nv)
    turn[:size, :size] = robot.pose(q, robot.base.name)[:size, :size]
    return turn
