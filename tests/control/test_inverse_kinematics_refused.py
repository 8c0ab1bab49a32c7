"""Inverse kinematics: bad input is named."""

from __future__ import annotations

import numpy as np
import pytest

import concur as cc
from concur.errors import NonFiniteError, OutputError, ShapeError, UnknownNameError
from tests.control._cases import arm
from tests.control._inverse_kinematics_cases import HAND, TIP, two_links

# --- bad input --------------------------------------------------------------------------------

POSE = cc.Output("hand", "hand", "SE3")

BAD = {
    "target too short": (
        lambda: cc.inverse_kinematics(two_links(), [TIP], [1.0]),
        ShapeError,
        "(2,)",
    ),
    "target not finite": (
        lambda: cc.inverse_kinematics(two_links(), [TIP], [1.0, np.nan]),
        NonFiniteError,
        "target",
    ),
    "target of text": (
        lambda: cc.inverse_kinematics(two_links(), [TIP], "there"),
        ShapeError,
        "target",
    ),
    "target beyond all bounds": (
        lambda: cc.inverse_kinematics(two_links(), [TIP], [1e200, 0.0]),
        ShapeError,
        "1e+200",
    ),
    "matrix for a position": (
        lambda: cc.inverse_kinematics(two_links(), [TIP], np.eye(4)),
        ShapeError,
        "shape (2,)",
    ),
    "matrix that scales": (
        lambda: cc.inverse_kinematics(arm(), [POSE], np.diag([1.1, 1, 1, 1])),
        ShapeError,
        "rotation",
    ),
    "reflection": (
        lambda: cc.inverse_kinematics(arm(), [POSE], np.diag([-1.0, 1, 1, 1])),
        ShapeError,
        "rotation",
    ),
    "quaternion of no unit": (
        lambda: cc.inverse_kinematics(arm(), [POSE], [1, 0, 0, 0, 0, 0, 2.0]),
        ShapeError,
        "norm 2",
    ),
    "start too long": (
        lambda: cc.inverse_kinematics(two_links(), [TIP], [1, 0], [0, 0, 0]),
        ShapeError,
        "q0",
    ),
    "start not finite": (
        lambda: cc.inverse_kinematics(two_links(), [TIP], [1, 0], [0, np.inf]),
        NonFiniteError,
        "q0",
    ),
    "start outside the limits": (
        lambda: cc.inverse_kinematics(two_links(None, (0.2, 1.5)), [TIP], [1, 0], [0, 0]),
        ShapeError,
        "between 0.2 and 1.5, got q0[1] = 0",
    ),
    "unknown body": (
        lambda: cc.inverse_kinematics(two_links(), [cc.Output("o", "fort", "R2")], [1, 0]),
        UnknownNameError,
        "'fore'",
    ),
    "unknown fixed body": (
        lambda: cc.inverse_kinematics(two_links(), [TIP], [1, 0], fixed=("uper",)),
        UnknownNameError,
        "'upper'",
    ),
    "fixed as text": (
        lambda: cc.inverse_kinematics(two_links(), [TIP], [1, 0], fixed="upper"),
        OutputError,
        "comma",
    ),
    "nothing left to move": (
        lambda: cc.inverse_kinematics(two_links(), [TIP], [1, 0], fixed=("fore",)),
        OutputError,
        "stand still",
    ),
    "no outputs": (lambda: cc.inverse_kinematics(two_links(), [], []), OutputError, "at least one"),
    "one output twice": (
        lambda: cc.inverse_kinematics(two_links(), [TIP, TIP], [1, 0, 1, 0]),
        OutputError,
        "each name once",
    ),
    "an output, no list": (
        lambda: cc.inverse_kinematics(two_links(), TIP, [1, 0]),
        OutputError,
        "list of Output",
    ),
    "a model": (
        lambda: cc.inverse_kinematics(cc.reduce(cc.robots.rover_arm()), [HAND], [1, 0, 0]),
        OutputError,
        "model.robot",
    ),
    "a heading of what can tilt": (
        lambda: cc.inverse_kinematics(arm(), [cc.Output("o", "hand", "SO2")], [1.0]),
        OutputError,
        "tilt",
    ),
    "no starts": (
        lambda: cc.inverse_kinematics(two_links(), [TIP], [1, 0], starts=0),
        ShapeError,
        "starts",
    ),
    "half an iteration": (
        lambda: cc.inverse_kinematics(two_links(), [TIP], [1, 0], iterations=0.5),
        ShapeError,
        "iterations",
    ),
    "negative seed": (
        lambda: cc.inverse_kinematics(two_links(), [TIP], [1, 0], seed=-1),
        ShapeError,
        "seed",
    ),
    "no tolerance": (
        lambda: cc.inverse_kinematics(two_links(), [TIP], [1, 0], tolerance=0.0),
        ShapeError,
        "tolerance",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_named(name):
    act, kind, part = BAD[name]
    with pytest.raises(kind) as caught:
        act()
    assert part in str(caught.value)
