"""An external pose that froze, or that drags the base away, is not followed for long."""

import dataclasses

import numpy as np
import pytest

from hil.guard import Reason
from hil.rig import PoseSettings
from tests.hil.bench import ROVER, Bench, rig_of

AT = 250  # cycle of RUN from which on the source is wrong: the robot moves


def rig(**settings):
    made = rig_of(ROVER, emulator={"pose_rate": 100.0, "pose_noise": 0.0, "pose_latency": 0.0})
    return dataclasses.replace(made, pose=PoseSettings(port=0, **settings))


def run(spoil, duration, **settings):
    """Run with a source whose poses are spoiled, given the time since it began to be wrong."""
    with Bench(rig=rig(**settings), duration=duration) as bench:
        poll, began = bench.pose.poll, []
        bench.at(AT, lambda: began.append(bench.clock.now()))

        def spoiled(now):
            found = poll(now)
            return [spoil(m, m.time - began[0]) for m in found] if began else found

        bench.pose.poll = spoiled
        outcome = bench.run()
        return outcome, np.abs(bench.true_error()[:2]).max(), bench.controller.estimator


class Frozen:
    """Repeats its first pose with fresh stamps, with some noise."""

    def __init__(self, noise=0.0):
        self.said, self.noise = None, noise
        self.random = np.random.default_rng(3)

    def __call__(self, measurement, _):
        self.said = self.said or measurement
        position = np.array(self.said.position) + self.noise * self.random.standard_normal(3)
        return dataclasses.replace(
            self.said, time=measurement.time, position=tuple(position.tolist())
        )


class Dragged:
    """Goes away along x, down to some distance."""

    def __init__(self, distance, speed=0.3):
        self.distance, self.speed = distance, speed

    def __call__(self, measurement, since):
        x, y, z = measurement.position
        away = min(self.speed * max(since, 0.0), self.distance)
        return dataclasses.replace(measurement, position=(x + away, y, z))


@pytest.mark.by_default(1)
@pytest.mark.parametrize("required", [True, False])
@pytest.mark.parametrize("noise", [0.0, 1e-3])
def test_a_frozen_pose_with_fresh_stamps(required, noise):
    duration = 2.0 if not noise else 4.0
    outcome, error, estimator = run(Frozen(noise), duration, required=required)
    assert outcome.reason is (Reason.POSE_LOST if required else Reason.END)
    assert error < (0.15 if not noise else 0.5)
    assert estimator.poses_refused["frozen" if not noise else "drift"] > 0


@pytest.mark.extended
@pytest.mark.parametrize(("distance", "lost"), [(0.2, False), (0.6, True)])
def test_a_slow_drag(distance, lost):
    outcome, error, estimator = run(Dragged(distance), 4.0, required=True)
    assert outcome.reason is (Reason.POSE_LOST if lost else Reason.END), outcome.reason.name
    assert (estimator.poses_refused["drift"] > 0) == lost
    assert error < 0.5


@pytest.mark.extended
def test_odometry_that_is_known_to_be_bad_is_corrected_further():
    outcome, _, estimator = run(Dragged(0.6), 4.0, required=True, largest_drift=0.8)
    assert outcome.done, outcome.reason.name
    assert not estimator.poses_refused["drift"]
