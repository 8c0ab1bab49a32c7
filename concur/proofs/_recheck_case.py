"""Numbers of robot, law and start of a rover, for the checker of proofs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from concur.proofs._recheck_arm import Rover, forward, rover_of
from concur.proofs._recheck_leaves import ROWS
from concur.proofs._recheck_motion import Channel, Motion
from concur.proofs._recheck_numbers import gains_of
from concur.proofs._recheck_smooth import Floats, constant, require


@dataclass(frozen=True, eq=False)
class Case:
    """Robot, law and declared start of a task."""

    robot: Any
    rover: Rover
    gains: Floats
    motion: Motion
    heading: float
    angles: Floats
    duration: float
    scales: tuple[Floats, Floats]
    refused_below: float
    controls: list[str]
    shape: list[str]
    joints: list[int]
    outputs: list[str]


def case_of(servo: Any, reference: Any, duration: float, q0: Floats, s0: Floats) -> Case:
    """Numbers of a task; rejects what the checker does not cover."""
    model = servo.model
    robot = model.robot
    rover = rover_of(robot, servo.outputs)
    require(
        not servo.use_measured_velocity,
        "law: the checker covers a servo without use_measured_velocity",
    )
    gains = gains_of(servo, ROWS)
    channels = [Channel(float(kp), float(kd)) for kp, kd in gains.T]
    names = [body.name for body in robot.bodies[1:]]
    labels = [body.joint_label for body in robot.bodies[1:]]
    require(list(model.shape_names) == labels == list(model.control_names), "law: other motors")
    joints = [names.index(name) for name in rover.names[3:]]
    q0, s0 = np.asarray(q0, dtype=float), np.asarray(s0, dtype=float)
    angles = q0[3:][joints]
    theta = float(q0[2])
    at = forward(rover, constant(angles[:, None], 3))
    # From the axle, in axes of the base.
    rates = np.linalg.solve(rover.speeds, s0)
    hand = at.hand.c[:, 0]
    speed = np.array([rates[0], 0, 0]) + rates[1] * np.array([-hand[1], hand[0], 0])
    speed = speed + at.jacobian.c[:, :, 0] @ rates[2:]
    c, s = np.cos(theta), np.sin(theta)
    turn = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])
    axle = np.array([*q0[:2], 0.0]) - turn @ [rover.ahead, 0, 0]
    lead = np.array([rover.lead, 0, 0])
    place = np.concatenate([(axle + turn @ lead)[:2], axle + turn @ hand])
    moving = np.concatenate([(turn @ [rates[0], rover.lead * rates[1], 0])[:2], turn @ speed])
    pieces = reference.pieces()
    require(pieces is not None, "reference: it has no formula")
    initial = [row[0] for row in pieces.rows(np.zeros(1))]
    pose, twist = (np.asarray(p).ravel() for p in pieces.function(0.0, *initial)[:2])
    motion = Motion(reference, channels, np.array([pose - place, moving - twist]))
    return Case(
        robot,
        rover,
        gains,
        motion,
        theta,
        angles,
        float(duration),
        (np.asarray(servo.margins.scales[0]), np.asarray(servo.margins.scales[1])),
        float(servo.margins.refused_below),
        list(model.control_names),
        names,
        joints,
        [output.name for output in servo.outputs],
    )
