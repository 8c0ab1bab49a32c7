"""Inverse kinematics of joints that follow others."""

from __future__ import annotations

import numpy as np
import pytest

import concur as cc
from concur.errors import OutputError
from tests.control._inverse_kinematics_cases import ABOUT_Z, SMALL, TIP


def gripper(multiplier: float = -0.5, limits: object = None) -> cc.Mechanism:
    """Planar arm whose last joint follows the one before it, with an offset of 0.2 rad."""
    bodies = [
        cc.Body("ground", cc.joints.Fixed()),
        cc.Body("upper", ABOUT_Z, "ground", inertia=SMALL),
        cc.Body("fore", ABOUT_Z, "upper", cc.Pose((1, 0, 0)), SMALL),
        cc.Body("finger", ABOUT_Z, "fore", cc.Pose((0.7, 0, 0)), SMALL, limits),
    ]
    follows = cc.robot.Mimic("finger", of="fore", multiplier=multiplier, offset=0.2)
    return cc.Mechanism("gripper", bodies, mimics=[follows])


FINGER = cc.Output("tip", "finger", "R2", point=(0.3, 0, 0))


def tip(upper: float, fore: float, finger: float) -> np.ndarray:
    """Tip of the gripper, from complex numbers."""
    turns = np.exp(1j * np.cumsum([upper, fore, finger]))
    place = turns @ [1.0, 0.7, 0.3]
    return np.array([place.real, place.imag])


def test_joints_that_follow_others_move_with_them():
    robot = gripper()
    for upper, fore in ((0.3, 0.9), (-1.1, 0.4), (2.0, -1.2)):
        target = tip(upper, fore, 0.2 - 0.5 * fore)
        found = cc.inverse_kinematics(robot, [FINGER], target)
        assert found.solved, found.why
        q = dict(zip(robot.freedom_names, found.q, strict=True))
        assert q["finger"] == pytest.approx(0.2 - 0.5 * q["fore"], abs=1e-12)
        assert tip(q["upper"], q["fore"], q["finger"]) == pytest.approx(target, abs=1e-9)


def test_limits_of_a_joint_that_follows_limit_the_one_it_follows():
    # The finger between 0 and 0.1 rad lets the forearm turn between 0.2 and 0.4 rad.
    robot = gripper(limits=(0.0, 0.1))
    inside, outside = (tip(0.5, fore, 0.2 - 0.5 * fore) for fore in (0.399, 0.401))
    assert cc.inverse_kinematics(
        robot, [FINGER], inside, robot.coupled(np.array([0.4, 0.3, 0]))
    ).solved
    found = cc.inverse_kinematics(robot, [FINGER], outside, starts=5)
    assert not found.solved
    assert "fore at its upper limit 0.4" in found.why


def test_bodies_that_stand_still_hold_the_joints_coupled_to_them():
    robot = gripper()
    upper = cc.inverse_kinematics(robot, [TIP], [1.0, 1.0], fixed=("upper",), starts=1)
    assert upper.q[0] == 0.0
    jaws = [
        cc.Body("hand", cc.joints.Fixed()),
        *(cc.Body(side, ABOUT_Z, "hand", inertia=SMALL) for side in ("left", "right")),
    ]
    pair = cc.Mechanism("jaws", jaws, mimics=[cc.robot.Mimic("right", of="left")])
    for moved, fixed in (("left", "right"), ("right", "left")):
        output = cc.Output("tip", moved, "R2", point=(0.1, 0, 0))
        assert cc.inverse_kinematics(pair, [output], [0.0, 0.1]).solved
        with pytest.raises(OutputError, match="joints coupled to bodies in `fixed`"):
            cc.inverse_kinematics(pair, [output], [0.0, 0.1], fixed=(fixed,))
