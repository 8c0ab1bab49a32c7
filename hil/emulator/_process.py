"""The process of an emulated rig: robot and drives in one world that moves in real time."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

import can
import numpy as np
from numpy.typing import NDArray

from hil._machine import base_of
from hil.bus import plain_bus
from hil.drives import import_drives
from hil.emulator._drive import DriveSettings
from hil.emulator._faults import Fault
from hil.emulator._inbox import Inbox, wait_for
from hil.emulator._motion_capture import pose_sender
from hil.emulator._shared import Block, Stopped, hurry
from hil.emulator._time import LEASE, SharedTime, Timekeeper
from hil.emulator._world import World

if TYPE_CHECKING:
    from hil.settings import Rig

BEAT = 0.6 * LEASE
"""Longest time between two renewals of the lease of time, s."""

REPORTS = 5e-3
"""Time between two reports, and between two checks for commanded faults, s."""


@dataclass(frozen=True, eq=False)
class RigJob:
    """Arguments of the process of an emulated rig."""

    rig: Rig
    options: tuple[Mapping[str, Any], ...]  # arguments of `plain_bus` for each bus
    faults: tuple[Fault, ...]
    settings: Mapping[str, DriveSettings]
    q0: NDArray[np.float64] | None
    parent: int  # process whose death ends this one
    priority: int = 0  # of SCHED_FIFO, used where it is permitted; 0: normal scheduling


def report_block(axes: int, nq: int, nv: int) -> Block:
    """Memory for the reports of an emulated rig."""
    return Block(
        (
            ("instant", 1),  # of the state, s of the rig's clock
            ("torque", axes),  # acting torque, N m
            ("enabled", axes),
            ("command", axes),  # instant of the last valid command; NaN before the first
            ("free", axes),  # time from the last valid command to the end of the torque
            ("q", nq),
            ("v", nv),
            ("steps", 1),
            ("delivered", 1),  # frames that reached a drive
            ("sent", 1),
            ("cpu", 1),  # processor time, s
            ("ready", 1),
        )
    )


class _Port:
    """A bus that receives only frames with selected identifiers."""

    @classmethod
    def opened(cls, interface: str, channel: str, **options: Any) -> _Port:
        """Open a bus."""
        return cls(plain_bus(interface, channel, options), interface)

    def __init__(self, bus: can.BusABC, interface: str) -> None:
        self.bus, self.inbox = bus, Inbox(bus, interface)
        self.heard: frozenset[int] = frozenset()
        self.sent = 0

    def recv(self, timeout: float = 0.0) -> can.Message | None:
        """The next frame, or None."""
        while True:
            frame = self.inbox.take(timeout, self.heard)
            if isinstance(frame, can.Message):
                return frame
            if not frame:
                return None

    def send(self, frame: can.Message) -> None:
        """Send a frame; a frame that the bus rejects is lost."""
        with contextlib.suppress(can.CanError, OSError):
            self.bus.send(frame)
            self.sent += 1

    def shutdown(self) -> None:
        """Close the bus."""
        self.inbox.close()
        self.bus.shutdown()


def run_rig(job: RigJob, reports: Block, shared: SharedTime, orders: Connection) -> None:
    """Emulate a rig until the process is stopped."""
    stopped = Stopped(job.parent)
    import_drives(job.rig.drive_modules, job.rig.path)
    ports: list[Any] = [_Port.opened(**options) for options in job.options]
    keeper: Any = Timekeeper(shared)
    with contextlib.suppress(KeyboardInterrupt):
        # `World` builds the plant, which is slow, before it reads the time.
        base = base_of(job.rig.task.plant or job.rig.task.robot)
        send, close = pose_sender(job.rig, "" if base is None else base.name)
        try:
            with World(
                job.rig, keeper, job.faults, job.settings, job.q0, keeper.stamped(send), ports
            ) as world:
                hurry(job.priority)
                _Runner(world, ports, keeper, reports, orders).run(stopped)
        finally:
            close()


class _Runner:
    def __init__(
        self,
        world: World,
        ports: Sequence[_Port],
        keeper: Timekeeper,
        reports: Block,
        orders: Connection,
    ) -> None:
        self.world, self.ports, self.keeper = world, ports, keeper
        self.reports, self.orders = reports, orders
        self._draft = {name: reports.draft(name) for name, _ in reports.names}
        self._heard: tuple[frozenset[int], ...] = ()

    def run(self, stopped: Stopped) -> None:
        """Move the world in real time until the process is stopped."""
        world, keeper, ports = self.world, self.keeper, self.ports
        inboxes = [port.inbox for port in ports]
        due = keeper.tick()
        while not stopped:
            now = keeper.tick()
            world.move(now)
            self._listen()
            world.collect()
            if now >= due:
                due = now + REPORTS
                if self.orders.poll(0):
                    world.fault(self.orders.recv())
                self._report()
            wait_for(inboxes, min(world.wake - keeper.tick(), BEAT))

    def _listen(self) -> None:
        """Update the identifiers that the drives receive, which change during set-up."""
        heard = tuple(drive.heard for drive in self.world.drives)
        if heard != self._heard:
            self._heard = heard
            for k, port in enumerate(self.ports):
                own = [h for h, bus in zip(heard, self.world.rig.bus_of, strict=True) if bus == k]
                port.heard = frozenset().union(*own)

    def _report(self) -> None:
        draft, world = self._draft, self.world
        draft["instant"][0] = self.keeper.now()
        draft["q"][:] = world.q
        draft["v"][:] = world.v
        draft["torque"][:] = world.torque
        draft["enabled"][:] = [drive.enabled for drive in world.drives]
        draft["command"][:] = [drive.last_command for drive in world.drives]
        draft["free"][:] = [world.torque_free_after(axis.name) for axis in world.rig.axes]
        draft["steps"][0] = world.plant.steps
        draft["delivered"][0] = world.delivered
        draft["sent"][0] = sum(port.sent for port in self.ports)
        draft["cpu"][0] = time.process_time()
        draft["ready"][0] = 1.0
        self.reports.publish()
