"""Demanded poses as matrices: converted once, where the sample is made."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from concur import robots
from concur.control import Servo
from concur.errors import ShapeError
from concur.groups import se3
from concur.outputs import Output, ReferenceSample
from concur.reduction import reduce
from tests.control._floating_cases import CHECK_A_MOMENTUM, CHECK_A_Q0, CHECK_A_S0
from tests.export._fmu_cases import flyer

STILL = np.zeros(6)


def demanded() -> np.ndarray:
    """Where the hand is, and a little further."""
    pose = flyer().model.robot.pose(CHECK_A_Q0, "tool")
    return pose @ se3.exp([0.02, -0.01, 0.03, 0.1, 0.0, -0.2])


def test_a_matrix_is_refused_where_its_numbers_fit_by_chance() -> None:
    model = reduce(robots.free_flyer(), momentum=CHECK_A_MOMENTUM)
    outputs = [Output("turn", "tool", "SO3"), Output("place", "tool", "R3")]
    servo = Servo(model, outputs, 4.0, 2.8)
    tick = servo.compile(interpreted=True)
    sample = ReferenceSample(demanded(), STILL, STILL)
    for call in (tick, servo.torque):
        with pytest.raises(ShapeError, match="full pose"):
            call(CHECK_A_Q0, CHECK_A_S0, sample)
    flat = ReferenceSample(servo.output(CHECK_A_Q0), STILL, STILL)
    assert_allclose(tick(CHECK_A_Q0, CHECK_A_S0, flat), servo.torque(CHECK_A_Q0, CHECK_A_S0, flat))
