"""The process of one emulated drive: its own bus, its own clock readings, nothing of the robot."""

from __future__ import annotations

import contextlib
import heapq
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count
from multiprocessing.connection import Connection
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import can

from hil.emulator._drive import DriveSettings, EmulatedDrive, Outgoing
from hil.emulator._faults import Fault, Faults
from hil.emulator._inbox import Inbox
from hil.emulator._shared import ORPHAN_CHECK, Block, Stopped, hurry

FARTHEST = 0.1
"""Longest time over which a position is carried on by its velocity, s: should the process of the
robot be kept waiting, encoders do not stand still."""

ORDERS = 0.01
"""Time between two looks for commanded faults, s."""

OWN_KINDS = ("cia402", "mit")
"""Kinds of drives that need no file of `drive_modules`."""

GREED = 64
"""Frames taken before anything else is looked at."""


@dataclass(frozen=True)
class DriveJob:
    """What the process of a drive is given.

    Parameters
    ----------
    index : int
        Place of the axis.
    kind : str
        "cia402", "mit", or one that a file of `modules` registers.
    axis : mapping
        Fields of the axis; not the class, the import of which takes long.
    settings : DriveSettings
        How the drive differs from that.
    bus : mapping
        Arguments of `can.Bus`.
    latency, loss : float
        Delay of every frame, s; share of frames that are lost.
    seed : int
        Of the random numbers.
    faults : tuple of Fault
        What goes wrong, in time since all processes were ready.
    modules : tuple of Path
        Files that register kinds of drives of one's own.
    rig_file : Path
        The rig file that names them, for errors.
    parent : int
        Process whose death ends this one.
    priority : int
        Of SCHED_FIFO, taken where it is permitted; 0: none.
    """

    index: int
    kind: str
    axis: Mapping[str, Any]
    settings: DriveSettings
    bus: Mapping[str, Any]
    latency: float
    loss: float
    seed: int
    parent: int
    priority: int = 0
    faults: tuple[Fault, ...] = field(default_factory=tuple)
    modules: tuple[Path, ...] = ()
    rig_file: Path = Path()


def run_drive(job: DriveJob, plant: Block, block: Block, begin: Block, orders: Connection) -> None:
    """Be a drive until asked to end.

    Parameters
    ----------
    job : DriveJob
        Which one.
    plant : Block
        What the plant's process says.
    block : Block
        What this process says.
    begin : Block
        When all processes were ready.
    orders : multiprocessing.connection.Connection
        Where faults are commanded.
    """
    stopped = Stopped(job.parent)
    bus = can.Bus(**job.bus)
    try:
        runner = _Runner(job, plant, block, begin, bus, orders)
        hurry(job.priority)
        try:
            runner.run(stopped)
        finally:
            runner.inbox.close()
    finally:
        bus.shutdown()


class _Runner:
    def __init__(
        self,
        job: DriveJob,
        plant: Block,
        block: Block,
        begin: Block,
        bus: can.BusABC,
        orders: Connection,
    ) -> None:
        self.job, self.plant, self.block, self.bus, self.orders = job, plant, block, bus, orders
        self.begin = begin
        self.start = math.inf
        axis: Any = SimpleNamespace(**job.axis)
        self.inbox = Inbox(bus, job.bus["interface"])
        self.drive: EmulatedDrive
        if job.kind == "mit":
            from hil.emulator._mit import EmulatedMit

            self.drive = EmulatedMit(axis, job.settings)
        elif job.kind == "cia402":
            from hil.emulator._cia402 import EmulatedCia402

            self.drive = EmulatedCia402(axis, job.settings)
        else:
            from hil.emulator._world import emulated_drive
            from hil.rig import Axis
            from hil.rig._modules import import_drives

            import_drives(job.modules, job.rig_file)
            self.drive = emulated_drive(Axis(**job.axis), job.settings)
        self.faults = Faults(axis.name, job.faults, job.seed, job.loss)
        self._queue: list[tuple[float, int, bool, can.Message]] = []
        self._order = count()
        self._look_at = 0.0
        self._delivered = self._ignored = self._sent = 0
        self._instant = plant.place("instant")
        self._position = plant.place("position") + job.index
        self._velocity = plant.place("velocity") + job.index
        self._draft = {name: block.draft(name) for name, _ in block.names}

    def run(self, stopped: Stopped) -> None:
        """Take frames and send frames until asked to end."""
        drive, faults = self.drive, self.faults
        self._publish(time.monotonic())
        while not stopped:
            now = time.monotonic()
            due = min(drive.next_event, faults.next_event + self.start, now + ORPHAN_CHECK)
            if self._queue:
                due = min(due, self._queue[0][0])
            if drive.springy:
                due = min(due, now + 1e-3)
            self._listen(due)
            now = time.monotonic()
            if now >= self._look_at and self.orders.poll(0):  # looking is not cheap
                fault: Fault = self.orders.recv()
                at = max(self._since(now), 0.0) + fault.at
                faults.add(Fault(**(vars(fault) | {"at": at})))
            elif now >= self._look_at:
                self._look_at = now + ORDERS
            since = self._since(now)
            if faults.next_event <= since:
                self._answer(faults.strike(drive, since, now), now)
            while self._queue and self._queue[0][0] <= now:
                _, _, to_host, frame = heapq.heappop(self._queue)
                if to_host:
                    self._send(frame)
                else:
                    self._sense(now)
                    self._answer(drive.receive(frame, now), now)
            if drive.next_event <= now:
                self._sense(now)
                self._answer(drive.poll(now), now)
            if drive.springy:
                self._sense(now)
            self._publish(now)

    def _since(self, now: float) -> float:
        """Time since all processes were ready, s; below zero before."""
        if self.start == math.inf:
            self.start = float(self.begin.read()["instant"][0]) or math.inf
        return now - self.start

    def _listen(self, until: float) -> None:
        """Wait for frames for this drive; those of others are dropped by their identifier."""
        heard, taken = self.drive.heard, 0
        now = time.monotonic()
        while taken < GREED:
            wait = 0.0 if taken else max(until - now, 0.0)
            frame = self.inbox.take(wait, heard)
            now = time.monotonic()
            if isinstance(frame, can.Message):
                taken += 1
                since = self._since(now)
                for due, passed in self.faults.to_drive(frame, now + self.job.latency, since):
                    heapq.heappush(self._queue, (due, next(self._order), False, passed))
            elif frame or (not taken and now < until):
                self._ignored += frame is True
            else:
                break
        self._delivered += taken

    def _answer(self, frames: Outgoing, now: float) -> None:
        since = self._since(now)
        for due, frame in frames:
            for when, passed in self.faults.to_host(frame, due + self.job.latency, since):
                heapq.heappush(self._queue, (when, next(self._order), True, passed))

    def _send(self, frame: can.Message) -> None:
        with contextlib.suppress(can.CanError, OSError):
            self.bus.send(frame)
            self._sent += 1

    def _sense(self, now: float) -> None:
        if self.faults.is_frozen(self._since(now)):
            return
        numbers = self.plant.snapshot()
        position, velocity = float(numbers[self._position]), float(numbers[self._velocity])
        age = min(max(now - float(numbers[self._instant]), 0.0), FARTHEST)
        self.drive.sense(position + velocity * age, velocity)

    def _publish(self, now: float) -> None:
        draft, drive = self._draft, self.drive
        draft["torque"][0] = drive.torque(now)
        draft["until"][0] = drive.torque_until
        draft["command"][0] = drive.last_command
        draft["enabled"][0] = drive.enabled
        draft["alive"][0] = now
        draft["delivered"][0] = self._delivered
        draft["ignored"][0] = self._ignored
        draft["sent"][0] = self._sent
        draft["cpu"][0] = time.process_time()
        draft["ready"][0] = 1.0
        self.block.publish()
