"""The emulated motion capture."""

import dataclasses

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from hil.clock import SteppedClock
from hil.emulator import World
from hil.emulator._motion_capture import MotionCapture
from hil.rig import EmulatorSettings, PoseSettings
from hil.state.pose_source import PoseReceiver
from tests.hil.emulator._rigs import FLOATER, virtual_rig

TURN = Rotation.from_rotvec([0.3, -0.2, 0.5])
PLACE = np.array([1.0, -2.0, 0.5])


def samples(time=10.0, gives="pose", **settings):
    came = []
    now = [100.0]
    capture = MotionCapture(
        EmulatorSettings(**settings),
        "base",
        lambda sample: came.append((now[0], sample)),
        100.0,
        gives,
    )
    while capture.next_event <= 100.0 + time:
        now[0] = capture.next_event
        capture.poll(now[0], lambda: (PLACE, TURN.as_quat()))
    return came


def test_rate_and_latency():
    came = samples(1.0, pose_rate=100.0, pose_latency=0.015)
    assert [sample["seq"] for _, sample in came] == list(range(len(came)))
    assert 98 <= len(came) <= 101
    for sent, sample in came:
        assert sent - sample["time"] == pytest.approx(0.015)
        assert sample["position"] == pytest.approx(PLACE)
        assert sample["quaternion"] == pytest.approx(TURN.as_quat())
        assert sample["body"] == "base"


def test_noise_has_its_size_and_no_mean():
    came = samples(10.0, pose_rate=200.0, pose_noise=0.01)
    apart = np.array([np.subtract(sample["position"], PLACE) for _, sample in came])
    turned = Rotation.from_quat([sample["quaternion"] for _, sample in came])
    angles = (TURN.inv() * turned).as_rotvec()
    for errors in (apart, angles):
        assert errors.std(axis=0) == pytest.approx(np.full(3, 0.01), rel=0.1)
        assert np.abs(errors.mean(axis=0)).max() < 1e-3
    sizes = [np.linalg.norm(sample["quaternion"]) for _, sample in came]
    assert sizes == pytest.approx(np.ones(len(sizes)))


def test_gaps():
    came = samples(10.0, pose_rate=100.0, pose_loss=0.3)
    numbers = [sample["seq"] for _, sample in came]
    assert 620 < len(numbers) < 780
    assert numbers == sorted(set(numbers))


def test_what_is_not_measured_is_left_out():
    assert "quaternion" not in samples(0.1, "position", pose_rate=50.0)[0][1]
    assert "position" not in samples(0.1, "attitude", pose_rate=50.0)[0][1]


def test_after_a_pause_there_is_one_sample():
    came = []
    capture = MotionCapture(EmulatorSettings(pose_rate=100.0), "base", came.append, 0.0)
    for now in (0.0, 5.0, 5.0):
        capture.poll(now, lambda: (PLACE, TURN.as_quat()))
    assert [sample["seq"] for sample in came] == [0, 1]
    assert capture.next_event == pytest.approx(5.01)


def test_none_without_a_rate():
    assert samples(pose_rate=0.0) == []


def test_the_loop_receives_what_the_world_measures():
    rig = virtual_rig(FLOATER, pose_rate=100.0)
    clock = SteppedClock()
    base = rig.task.robot.base.name
    with PoseReceiver(PoseSettings(port=0), base) as receiver:
        rig = dataclasses.replace(rig, pose=PoseSettings(port=receiver.port))
        with World(rig, clock) as world:
            taken = []
            for _ in range(25):
                clock.sleep_until(clock.now() + 0.004)
                taken += receiver.poll(clock.now())
            true, turn = world.plant.base_pose()
    assert len(taken) == 10 or len(taken) == 11
    last = taken[-1]
    assert clock.now() - 0.011 <= last.time <= clock.now()
    assert last.position == pytest.approx(true, abs=1e-3)
    assert abs(np.dot(last.quaternion, turn)) == pytest.approx(1.0, abs=1e-5)
