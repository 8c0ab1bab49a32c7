"""What a run finds out about itself."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from concur.control import Output, Servo
from concur.control.references import hold
from concur.reduction import reduce
from concur.robots import free_flyer
from concur.simulation import Tolerances, simulate


def test_difference_of_momentum_says_whose_inertias_measured_it() -> None:
    robot = free_flyer()
    momentum = [1.0, -0.5, 0.2, 0.3, 0.4, -0.1]
    servo = Servo(reduce(robot, momentum=momentum), [Output("tool", "tool", "SO3")], 4.0, 4.0)
    q = robot.neutral()
    q[7:] = (0.1, 1.0, -1.35, 0.1, 1.0, -1.5)
    bodies = [
        replace(body, inertia=replace(body.inertia, mass=1.2 * body.inertia.mass))
        for body in robot.bodies
    ]
    reference = hold(servo.output(q), group="SO3")
    run = simulate(
        robot, servo, reference, 0.1, q, np.zeros(6), dt=0.01, plant=replace(robot, bodies=bodies)
    )
    # The momentum is the servo's, only not to a servo with wrong inertias.
    np.testing.assert_allclose(run.momentum[0], momentum, rtol=0, atol=1e-12)
    found = {finding.label: finding for finding in run.findings(Tolerances(0.05))}
    assert found["deviation from the ideal error dynamics"].note.count("momentum") == 0
    (note,) = [f.note for label, f in found.items() if label.startswith("momentum at the start")]
    assert "inertias that the servo knows" in note
