"""A single body on an unactuated joint: a reduction without shape, held to Euler's laws."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pytest
from numpy.testing import assert_allclose

from concur.reduction import AuditStatus, MomentumReduction, reduce
from concur.robot import Body, Inertia, Mechanism, Pose, joints
from concur.simulation import forced_motion, reconstruct
from tests.oracles import Pinocchio, assert_close

MOMENTUM = (1.0, 2.0, 3.0, 0.1, 0.2, 0.3)
JOINTS = [
    joints.Free(),
    joints.Planar(),
    joints.Spherical(),
    joints.Cartesian(),
    joints.Revolute((0, 0.6, 0.8)),
    joints.Prismatic((1, 0, 0)),
    joints.Helical((0, 0, 1), 0.2),
]
NONE = np.zeros(0)


def _alone(joint: joints.Joint) -> MomentumReduction:
    inertia = Inertia(2.0, (0.1, 0, 0.05), (0.1, 0.12, 0.15))
    placement = Pose((0.3, -0.2, 0.4), (0.1, 0.2, 0.3, 0.927361849549570))
    body = Body("body", joint, placement=placement, inertia=inertia)
    model = reduce(Mechanism("alone", [body]), momentum=MOMENTUM)
    assert isinstance(model, MomentumReduction)
    return model


@pytest.mark.parametrize("joint", JOINTS, ids=lambda joint: type(joint).__name__)
def test_body_without_joints_keeps_its_momentum(joint: joints.Joint) -> None:
    model = _alone(joint)
    robot, q0 = model.robot, model.robot.random(np.random.default_rng(2))
    v = model.velocity(q0, NONE)
    acceleration = Pinocchio(robot).forward_dynamics(q0, v, np.zeros(robot.nv))
    assert_close(model.velocity_drift(q0, v), acceleration, 1e-10)
    moved, rate, pdot = model.hamilton_poincare(
        q0, model.body_momentum(q0), NONE, NONE, np.zeros(model.nb)
    )
    assert_allclose(moved, v, rtol=0, atol=1e-13)
    # Pi = M11 v1, and M11 of a body alone does not change.
    assert_allclose(rate, model.locked_inertia(q0) @ acceleration, rtol=0, atol=1e-12)
    assert pdot.shape == (0,)
    assert model.two_form(q0, NONE).shape == (0, 0)

    motion = forced_motion(model, None, 1.0, q0, NONE, dt=0.1)
    assert motion.momentum_drift.max() < 1e-12
    assert np.abs(motion.energy_balance).max() < 1e-10
    if isinstance(joint, joints.Free):
        plt.close(motion.plot())
    there = reconstruct(model, q0, [0.0, 1.0], lambda t: NONE)[-1]
    assert_allclose(there, motion.q[-1], rtol=0, atol=1e-9)


def test_audit_knows_that_there_is_nothing_to_drive() -> None:
    audit = _alone(joints.Free()).audit()
    assert audit.holds
    assert audit["CON2"].status is AuditStatus.HOLDS
