"""Inputs of the checker: the content of a file, and the numbers of robot, law and start."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from concur.proofs._recheck_arm import Rover, forward, rover_of
from concur.proofs._recheck_leaves import ROWS
from concur.proofs._recheck_motion import Channel, Motion
from concur.proofs._recheck_smooth import Floats, constant, require


@dataclass(frozen=True)
class StoredBound:
    """A claimed bound; `sign` is 1 for upper bounds and -1 for lower ones."""

    kind: str
    name: str
    unit: str
    sign: float
    value: float
    limit: float | None


@dataclass(frozen=True, eq=False)
class Stored:
    """Content of a file, as arrays.

    Parameters
    ----------
    count : int
        Number of equal steps of the grid.
    edge : float
        Edge of the cells without halving (m).
    first : numpy.ndarray
        First step of each segment.
    disturbance : numpy.ndarray
        D of base and hand, (2, segments).
    leaves : list of numpy.ndarray
        Level and place of the leaves of each segment, (k, 4).
    bounds : dict
        Claims by kind and name.
    statement : Statement
        The claims.
    room : numpy.ndarray or None
        With errors of what the law reads, how far they move x and ve of both outputs at most,
        (2, 2, segments).
    """

    count: int
    edge: float
    first: np.ndarray
    disturbance: Floats
    leaves: list[np.ndarray]
    bounds: dict[tuple[str, str], StoredBound]
    statement: Any
    room: Floats | None = None


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
    options = (servo.integral, servo.torque_limits, servo.damping_threshold, servo.redundancy)
    plain = not servo.use_measured_velocity and all(option is None for option in options)
    require(plain, "law: the checker covers a plain servo only")
    gains = np.empty((2, 2))
    for i, matrix in enumerate((servo.stiffness, servo.damping)):
        own = np.linalg.solve(np.asarray(servo.inertia), np.asarray(matrix))
        for o, rows in enumerate(ROWS):
            gains[i, o] = own[rows.start, rows.start]
        diagonal = np.repeat(gains[i], (2, 3))
        same = np.abs(own - np.diag(diagonal)).max() <= 1e-14 * np.abs(own).max()
        require(bool(same), "law: the checker covers one gain for each output")
    channels = [Channel(float(kp), float(kd)) for kp, kd in gains.T]
    names = [body.name for body in robot.bodies[1:]]
    require(list(model.shape_names) == names == list(model.control_names), "law: other motors")
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
        (np.asarray(servo.scales[0]), np.asarray(servo.scales[1])),
        float(servo.refused_below),
        list(model.control_names),
        names,
        joints,
        [output.name for output in servo.outputs],
    )
