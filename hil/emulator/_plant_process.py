"""The process of the emulated robot: the plant in real time."""

from __future__ import annotations

import contextlib
import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hil.emulator._motion_capture import MotionCapture, pose_sender
from hil.emulator._plant import RobotPlant
from hil.emulator._shared import LIFELESS, Block, Stopped, hurry

if TYPE_CHECKING:
    from hil.rig import Rig

GIVE_UP = 0.5
"""Delay beyond which the plant does not catch up, s: the machine slept, or was stopped."""


@dataclass(frozen=True, eq=False)
class PlantJob:
    """What the process of the robot is given.

    Parameters
    ----------
    rig : Rig
        The rig.
    q0 : numpy.ndarray or None
        Configuration at the start, shape (nq,).
    parent : int
        Process whose death ends this one.
    priority : int
        Of SCHED_FIFO, taken where it is permitted; 0: none.
    """

    rig: Rig
    q0: NDArray[np.float64] | None
    parent: int
    priority: int = 0


def run_plant(job: PlantJob, block: Block, drives: tuple[Block, ...]) -> None:
    """Be the robot until asked to end.

    Parameters
    ----------
    job : PlantJob
        Which one.
    block : Block
        What this process says.
    drives : tuple of Block
        What the processes of the drives say.
    """
    stopped = Stopped(job.parent)
    with contextlib.suppress(KeyboardInterrupt):
        runner = _Runner(job, block, drives)
        hurry(job.priority)  # building the plant may take its time
        runner.run(stopped)


class _Runner:
    def __init__(self, job: PlantJob, block: Block, drives: tuple[Block, ...]) -> None:
        self.plant = RobotPlant(job.rig, job.q0)
        self.block, self.drives = block, drives
        self._draft = {name: block.draft(name) for name, _ in block.names}
        self._torque = drives[0].place("torque")
        self._until = drives[0].place("until")
        self._alive = drives[0].place("alive")
        self._acted = np.full(len(drives), math.nan)
        self._late = 0
        self._lag = self._skipped = 0.0
        self._origin = time.monotonic()  # instant at which the plant's time is zero
        self._rig = job.rig

    def run(self, stopped: Stopped) -> None:
        """Step in real time until asked to end."""
        self._origin = time.monotonic()
        plant, dt = self.plant, self.plant.dt
        send, close = pose_sender(self._rig, plant.robot.base.name)
        emulator, pose = self._rig.emulator, self._rig.pose
        gives = "pose" if pose is None else pose.gives
        capture = MotionCapture(emulator, plant.robot.base.name, send, self._origin, gives)
        self._publish(capture)
        try:
            while not stopped:
                now = time.monotonic()
                lag = now - self._origin - plant.time
                if lag > GIVE_UP:
                    self._skipped += lag
                    self._origin += lag
                    continue
                if lag < dt:
                    time.sleep(dt - lag)
                    continue
                self._lag = max(self._lag, lag - dt)
                self._late += lag > 2.0 * dt
                while plant.time + dt <= now - self._origin:
                    self._load(self._origin + plant.time)
                    plant.step(dt)
                    if capture.next_event <= self._origin + plant.time:
                        capture.poll(self._origin + plant.time, plant.base_pose)
                self._publish(capture)
        finally:
            close()

    def _load(self, instant: float) -> None:
        """Take the torques that the drives have on the robot at an instant."""
        for k, drive in enumerate(self.drives):
            numbers = drive.snapshot()
            torque = float(numbers[self._torque])
            if instant >= numbers[self._until] or instant > numbers[self._alive] + LIFELESS:
                torque = 0.0
            self.plant.torque[k] = torque
            if torque != 0.0:
                self._acted[k] = instant + self.plant.dt

    def _publish(self, capture: MotionCapture) -> None:
        draft, plant = self._draft, self.plant
        draft["instant"][0] = self._origin + plant.time
        draft["position"][:] = plant.positions()
        draft["velocity"][:] = plant.velocities()
        draft["applied"][:] = plant.torque
        draft["acted"][:] = self._acted
        draft["q"][:] = plant.q
        draft["v"][:] = plant.v
        draft["steps"][0] = plant.steps
        draft["late"][0] = self._late
        draft["lag"][0] = self._lag
        draft["skipped"][0] = self._skipped
        draft["samples"][0] = capture.samples
        draft["cpu"][0] = time.process_time()
        draft["ready"][0] = 1.0
        self.block.publish()
