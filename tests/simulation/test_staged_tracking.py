"""Tracking with unactuated joints, their momenta known or measured; the plant is whole.

The plant is independent of stages: it is of full order, with multipliers.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from concur import robots
from concur.control import Servo
from concur.errors import SimulationError
from concur.outputs import Output, references
from concur.reduction import reduce
from concur.robot import Mechanism
from concur.simulation import RealPlant, Run, simulate
from tests.oracles import Constrained, Pinocchio, crane_rows
from tests.reduction._reduced import Reference
from tests.reduction._staged import satellite

THETA = 60.0
MU = np.array([0.6, -0.4, 0.3, 0.1, -0.2, 0.15])
OFFSET = np.array([0.05, -0.05])
THETAS = {"rotor": 0.3, "second": -0.08}


def free_crane() -> Mechanism:
    robot = robots.crane_car()
    return replace(robot, actuated=("steering", "left_wheel", "boom"))


def crane_servo(theta: float = THETA, robot: Mechanism | None = None, **options) -> Servo:
    """The car's nose on the road and the boom's tip at a height: three drives."""
    outputs = [
        Output("nose", "steering", "R2", point=(0.5, 0, 0)),
        Output("tip", "boom", "R", point=(2.0, 0, 0), axes="z"),
    ]
    model = reduce(robot or free_crane(), stages={"column": theta})
    return Servo(model, outputs, 1.0, 2.0, **options)


def crane_reference() -> references.Reference:
    times = [0.0, 8.0, 16.0, 24.0]
    road = references.waypoints(times, [[3, 0], [11, 1], [19, 0], [27, -1]], [[1, 0], [1, 0]])
    return references.stack(road, references.waypoints(times, [2.5, 2.9, 2.3, 2.7]))


CRANE_START = np.array([-0.2, -0.2, 0.1, -0.1, 0.8, 0.0, 0.0, -0.4])


def crane_start(servo: Servo) -> np.ndarray:
    speeds = {"left_wheel": 2.7}
    return np.array([speeds.get(name, 0.0) for name in servo.model.shape_names])


def column_momentum(robot: Mechanism, run: Run) -> np.ndarray:
    """Momentum of the column on the rolling car, from rows by hand and Pinocchio."""
    full = Constrained(Pinocchio(robot), crane_rows(2.5, 0.3, 0.7))
    first = Reference(full, shape=[3, 4, 5, 7], dependent=[0, 1, 2, 6])
    states = zip(run.q[::50], run.v[::50], strict=True)
    return np.array([first.lift(q)[:, 1] @ full.oracle.mass_matrix(q) @ v for q, v in states])


@pytest.fixture(scope="module")
def crane_run() -> Run:
    servo = crane_servo()
    start = crane_start(servo)
    return simulate(free_crane(), servo, crane_reference(), 20.0, CRANE_START, start, dt=0.004)


def deviation(run: Run) -> float:
    return float(np.abs(run.error - run.ideal).max())


def test_a_car_tracks_while_its_crane_turns_freely(crane_run: Run) -> None:
    assert np.abs(crane_run.error[0]).max() > 0.15
    assert np.abs(crane_run.error[-1]).max() < 1e-6
    assert deviation(crane_run) < 1e-8
    assert crane_run.margin.min() > 0.05
    # The column turns a long way, faster while the boom is raised.
    assert np.ptp(crane_run.q[:, 4]) > 10.0


def test_the_crane_keeps_its_momentum(crane_run: Run) -> None:
    assert_allclose(column_momentum(free_crane(), crane_run), THETA, rtol=1e-8)


def test_the_momentum_of_a_car_is_not_for_a_run_to_set() -> None:
    servo = crane_servo()
    start = crane_start(servo)
    with pytest.raises(SimulationError, match="`momentum`"):
        simulate(
            free_crane(),
            servo,
            crane_reference(),
            1.0,
            CRANE_START,
            start,
            plant=RealPlant(momentum=MU),
        )


def satellite_servo(momentum: np.ndarray = MU, **options) -> Servo:
    model = reduce(satellite(), momentum=momentum, stages=THETAS)
    hand = Output("hand", "elbow", "R2", point=(0.5, 0, 0.2), axes="yz")
    return Servo(model, [hand], 9.0, 6.0, **options)


SATELLITE = np.array([0, 0, 0, 0, 0, 0, 1, 0.2, 0.7, 0.0, 0.0])


def satellite_reference(servo: Servo) -> references.Reference:
    place = np.asarray(servo.output(SATELLITE)) + OFFSET
    drift = MU[[1, 2]] / satellite().total_mass
    return references.polynomial([place, drift])


def satellite_momenta(run: Run) -> np.ndarray:
    oracle = Pinocchio(satellite())
    states = zip(run.q[::50], run.v[::50], strict=True)
    return np.array([oracle.mass_matrix(q)[[8, 9]] @ v for q, v in states])


@pytest.mark.extended
@pytest.mark.parametrize("measured", [False, True])
def test_a_satellite_tracks_while_its_rotors_turn_freely(measured: bool) -> None:
    servo = satellite_servo(use_measured_velocity=measured)
    reference = satellite_reference(servo)
    run = simulate(satellite(), servo, reference, 4.0, SATELLITE, np.zeros(2), dt=0.005)
    assert deviation(run) < 1e-8
    assert np.abs(run.error[-1]).max() < 1e-3 * np.abs(run.error[0]).max()
    assert run.momentum_drift.max() < 1e-8
    assert_allclose(satellite_momenta(run), np.tile([0.3, -0.08], (len(run.t[::50]), 1)), rtol=1e-8)
    assert np.abs(run.v[:, 8]).min() > 3.0  # the rotor spins
