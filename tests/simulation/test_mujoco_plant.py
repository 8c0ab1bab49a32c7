"""The loop closed over MuJoCo's dynamics: a plant by others, for robots with momentum.

The library reads a description made from ours, steps by Runge and Kutta's fourth order and asks
the law in each stage of each step. The law gets the momentum once, as a constant.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.spatial.transform import Rotation

from concur import robots
from concur.control import Servo
from concur.outputs import Output, Reference, references
from concur.reduction import reduce
from concur.robot import Mechanism
from tests.control._floating_cases import OutputOracle, Tumble, full_velocity, swing
from tests.oracles import Mujoco, Pinocchio

GOAL = 1e-5
"""Error at the end, m and rad."""

START = np.array([0.3, -0.2, 0.1, *Rotation.from_rotvec([0.2, -0.4, 0.3]).as_quat()])
BENT = [0.1, 0.4, 0.2, -1.2, 0.5, 0.3, 0.1]
ASIDE = np.array([0.05, -0.04, 0.06, 0.05, -0.05, 1.5])
SWAY = np.array([0.02, -0.03, 0.02, 0.06, 0.04, -0.05])


@dataclass(frozen=True)
class Scene:
    """A robot, what is to follow, and where it starts."""

    tumble: Tumble
    servo: Servo
    demand: Reference
    q0: np.ndarray
    s0: np.ndarray

    def run(self, duration: float, dt: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Times, and errors (k, size) in pose and velocity, found by Pinocchio and matrices."""
        robot, tick = self.servo.model.robot, self.servo.compile()
        oracle = OutputOracle(robot, self.servo.outputs)
        v0 = full_velocity(oracle.plant, self.tumble.momentum, self.q0, self.s0)

        # Stages are half a step apart, so that the demand can be had for all of them at once.
        samples = self.demand.sample(np.arange(round(2 * duration / dt) + 1) * (dt / 2))
        into = tick.buffers.pose, tick.buffers.twist, tick.buffers.acceleration

        def law(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
            stage = round(2 * t / dt)
            assert abs(t - stage * dt / 2) < 1e-9
            tick.buffers.q[:], tick.buffers.s[:] = q, v[6:]
            for buffer, part in zip(into, samples, strict=True):
                buffer[:] = part[stage]
            assert tick.run() == 0
            return tick.buffers.u

        every = round(0.25 / dt)
        t, q, v = Mujoco(robot, dt).simulate(self.q0, v0, law, duration, every)
        rows = zip(t, q, v, strict=True)
        found = [oracle.errors(*state, self.demand(time)) for time, *state in rows]
        momenta = np.array([oracle.plant.momentum(*state) for state in zip(q, v, strict=True)])
        kept = np.tile(self.tumble.momentum, (len(t), 1))
        assert_allclose(momenta, kept, rtol=0, atol=1e-7 * np.abs(kept).max())
        x, ve = map(np.array, zip(*found, strict=True))
        return t, x, ve


def make(
    robot: Mechanism,
    target: np.ndarray,
    outputs: list[Output],
    moved: dict[int, float],
    axis: int,
    spins: tuple[float, ...] = (),
) -> Scene:
    """A demand that the robot's outputs would follow with joints locked, and sway a little."""
    tumble = Tumble(robot, target, rate=0.4, axis=axis)
    servo = Servo(reduce(robot, momentum=tumble.momentum), outputs, 9.0, 5.5)
    plant = Pinocchio(robot)
    demands = [
        tumble.carried([plant.pose(target, output.body), (SWAY, swing(0.5))], output.group)
        for output in outputs
    ]
    demand = demands[0] if len(demands) == 1 else references.stack(*demands)
    q0 = target.copy()
    for index, angle in moved.items():
        q0[index] += angle
    return Scene(tumble, servo, demand, q0, np.array(spins or np.zeros(servo.ns)))


def free_flyer() -> Scene:
    target = np.array([*START, 0.1, 1.0, -1.35, 0.1, 1.0, -1.5])
    outputs = [Output("hand", "tool", "SE3")]
    return make(robots.free_flyer(), target, outputs, dict(enumerate(ASIDE, 7)), axis=2)


def two_hands() -> Scene:
    outputs = [Output("left", "left_hand", "SE3"), Output("right", "right_hand", "R3xSO3")]
    moved = {7: 0.05, 10: 0.1, 13: 1.2, 14: -0.05, 17: -0.1, 20: -0.9}
    return make(robots.servicer(), np.array([*START, *BENT, *BENT]), outputs, moved, axis=2)


def three_wheels() -> Scene:
    target = np.array([*START, 0.0, 0.0, 0.0])
    outputs = [Output("attitude", "satellite", "SO3")]
    scene = make(robots.wheel_satellite(), target, outputs, {}, axis=1, spins=(3.0, -4.0, 5.0))
    q0 = scene.q0.copy()
    q0[3:7] = (Rotation.from_quat(q0[3:7]) * Rotation.from_rotvec([1.2, -0.9, 0.8])).as_quat()
    return replace(scene, q0=q0)


@pytest.mark.extended
@pytest.mark.parametrize("scene", [free_flyer, two_hands, three_wheels])
def test_loop_over_mujoco_ends_at_the_goal(scene: Callable[[], Scene]) -> None:
    case = scene()
    assert np.linalg.norm(case.tumble.momentum[3:]) > 1e-3
    t, x, ve = case.run(5.0, 1e-2)
    assert np.linalg.norm(x[0]) > 0.1
    assert np.linalg.norm(x[-1]) < GOAL
    # All the way there the errors obey their own equation.
    oracle = OutputOracle(case.servo.model.robot, case.servo.outputs)
    ideal, rate = oracle.ideal(case.servo, x[0], ve[0], t)
    assert_allclose(x, ideal, rtol=0, atol=GOAL)
    assert_allclose(ve, rate, rtol=0, atol=10 * GOAL)


def test_loop_over_mujoco_sees_a_wrong_momentum() -> None:
    # Guards the test above.
    case = free_flyer()
    model = reduce(case.servo.model.robot, momentum=0.9 * case.tumble.momentum)
    _, x, _ = replace(case, servo=replace(case.servo, model=model)).run(2.0, 1e-2)
    assert np.linalg.norm(x[-1]) > 1e-2
