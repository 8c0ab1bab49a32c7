"""An emulated rig as processes: the robot in one, each drive in one of its own."""

from __future__ import annotations

import contextlib
import math
import os
import select
import signal
import socket
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from typing import TYPE_CHECKING, Any, Protocol

import msgpack
import numpy as np
from numpy.typing import ArrayLike, NDArray

from hil.bus import may_have_drives
from hil.emulator._drive import DriveSettings
from hil.emulator._drive_process import OWN_KINDS, DriveJob, run_drive
from hil.emulator._faults import Fault
from hil.emulator._lock import BusLock
from hil.emulator._plant_process import PlantJob, run_plant
from hil.emulator._shared import DRIVE, Block, plant_block
from hil.emulator._world import check_axis, emulated_drive, scheduled_faults
from hil.errors import RigError

if TYPE_CHECKING:
    from hil.rig import Rig

START = 60.0
"""Longest time that all processes together may take to start, s: the first time ever, the plant
is compiled."""

END = 2.0
"""Time that a process has to end by itself, s."""

LONGEST = 4096
"""Bytes of a datagram that commands a fault, at most."""


class StopEvent(Protocol):
    """What `run_emulator` asks of an event, such as that of `threading`."""

    def is_set(self) -> bool:
        """Whether to end."""
        ...


@dataclass(frozen=True)
class DriveReport:
    """What a drive's process says.

    Parameters
    ----------
    axis : str
        Name of the axis.
    pid : int
        Its process.
    alive : bool
        Whether the process runs.
    enabled : bool
        Whether commands become torque.
    torque : float
        Torque on the robot, N m.
    last_command : float
        Instant of the last valid command, s of the monotonic clock; NaN before the first.
    torque_free_after : float
        Time from the last valid command to the end of the torque, s; zero if a command ended it,
        infinite while there is torque, NaN if there never was any.
    delivered, ignored, sent : int
        Frames for the drive; frames of others, as far as the system did not drop them; frames
        that it sent.
    cpu : float
        Time of the processor, s.
    """

    axis: str
    pid: int
    alive: bool
    enabled: bool
    torque: float
    last_command: float
    torque_free_after: float
    delivered: int
    ignored: int
    sent: int
    cpu: float


@dataclass(frozen=True)
class PlantReport:
    """What the robot's process says.

    Parameters
    ----------
    pid : int
        Its process.
    alive : bool
        Whether the process runs.
    time : float
        Instant of its state, s of the monotonic clock.
    q, v : numpy.ndarray
        True configuration and velocity, shapes (nq,) and (nv,).
    torque : numpy.ndarray
        Torque that acts on each axis, shape (n,), N m.
    steps, late : int
        Steps taken; those that began more than a step late.
    lag : float
        Longest delay of a step, s.
    skipped : float
        Time that was given up because the process had been halted, s.
    samples : int
        Poses that the motion capture took.
    cpu : float
        Time of the processor, s.
    """

    pid: int
    alive: bool
    time: float
    q: NDArray[np.float64]
    v: NDArray[np.float64]
    torque: NDArray[np.float64]
    steps: int
    late: int
    lag: float
    skipped: float
    samples: int
    cpu: float


class EmulatorProcesses:
    """Processes of an emulated rig; ends them at the end of the `with` block.

    Each drive opens the bus by itself and knows nothing of the robot but the encoder; the robot
    knows nothing of the drives but their torques. If this process dies, they end too.

    Parameters
    ----------
    rig : Rig
        The rig. Its bus has to join processes: "udp_multicast", "socketcan" and so on.
    faults : iterable of Fault
        What goes wrong, beside what the rig file says.
    settings : mapping of str to DriveSettings
        How the drives of some axes differ from the rig file.
    q0 : array_like, optional
        Configuration at the start, shape (nq,); that of the task if not given.

    Attributes
    ----------
    start : float
        When all processes were ready, s of the monotonic clock; NaN before. Faults count from it.

    Raises
    ------
    RigError
        If the bus is one that joins no processes, another rig is emulated on it, or a process
        does not start.

    Examples
    --------
    >>> from hil.rig import load_rig
    >>> rig = load_rig("examples/rover_rig/rig.toml")    # doctest: +SKIP
    >>> with EmulatorProcesses(rig) as emulator:    # doctest: +SKIP
    ...     emulator.fault(Fault("power_cycle", "turret"))
    """

    def __init__(
        self,
        rig: Rig,
        faults: Iterable[Fault] = (),
        settings: Mapping[str, DriveSettings] | None = None,
        q0: ArrayLike | None = None,
    ) -> None:
        if may_have_drives(rig.bus):
            raise RigError(
                f"rig `{rig.name}`, `bus.interface`",
                expected="a bus of software alone: udp_multicast, or a vcan channel of socketcan",
                came=f"{rig.bus.interface} {rig.bus.channel}, on which there may be motors",
                cure='Use interface = "udp_multicast" in a rig file for emulation: emulated drives '
                "beside real ones answer in their place.",
            )
        if rig.bus.interface == "virtual":
            raise RigError(
                f"rig `{rig.name}`, `bus.interface`",
                expected="a bus that joins processes, such as udp_multicast",
                came="virtual",
                cure='Use interface = "udp_multicast", or a `World` in the same process.',
            )
        self.rig = rig
        self._names = [axis.name for axis in rig.axes]
        self._scheduled = tuple(scheduled_faults(rig, faults))
        self._settings = {
            axis.name: _told((settings or {}).get(axis.name, DriveSettings()), axis)
            for axis in rig.axes
        }
        for axis in rig.axes:
            emulated_drive(axis, self._settings[axis.name])  # refuses what cannot be emulated
            if axis.drive not in OWN_KINDS and not rig.drive_modules:
                raise RigError(
                    f"axis `{axis.name}`, `drive`",
                    expected=f"a kind that other processes know: {', '.join(OWN_KINDS)}, or one of "
                    "a file that `drive_modules` of the rig file names",
                    came=f"{axis.drive}, registered in this process",
                    cure="Register it in a file of `drive_modules`, or emulate the rig by `World`.",
                )
        self._q0 = None if q0 is None else np.asarray(q0, dtype=float)
        robot = rig.task.plant or rig.task.robot
        self._plant_block = plant_block(len(rig.axes), robot.nq, robot.nv)
        self._blocks = tuple(Block(DRIVE) for _ in rig.axes)
        self._begun = Block((("instant", 1),))
        self._processes: list[SpawnProcess] = []
        self._orders: list[Connection] = []
        self._control: socket.socket | None = None
        self._lock = BusLock(rig.bus)
        self._spent = [0.0] * (1 + len(rig.axes))
        self.start = math.nan

    # -- beginning and end ---------------------------------------------------------------------

    def __enter__(self) -> EmulatorProcesses:
        self._lock.take()
        try:
            self._launch()
            self._listen()
            self._wait_until_ready()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _launch(self) -> None:
        context = get_context("spawn")
        rig, parent = self.rig, os.getpid()
        job = PlantJob(rig, self._q0, parent, self._priority(1))
        with _plain_main():
            self._begin(
                context.Process(
                    target=run_plant,
                    args=(job, self._plant_block, self._blocks),
                    name="emulated robot",
                    daemon=True,
                )
            )
            for index, axis in enumerate(rig.axes):
                ours, theirs = context.Pipe()
                self._orders.append(ours)
                drive = DriveJob(
                    index,
                    axis.drive,
                    asdict(axis) | {"ranges": dict(axis.ranges)},
                    self._settings[axis.name],
                    {
                        "interface": rig.bus.interface,
                        "channel": rig.bus.channel,
                        **rig.bus.options,
                    },
                    rig.emulator.latency,
                    rig.emulator.loss,
                    rig.emulator.seed,
                    parent,
                    self._priority(),
                    self._scheduled,
                    rig.drive_modules,
                    rig.path,
                )
                self._begin(
                    context.Process(
                        target=run_drive,
                        args=(drive, self._plant_block, self._blocks[index], self._begun, theirs),
                        name=f"emulated drive {axis.name}",
                        daemon=True,
                    )
                )
                theirs.close()

    def _priority(self, more: int = 0) -> int:
        """What stands for hardware does not wait for the controller, nor motors for drives."""
        wanted = self.rig.loop.priority
        return min(wanted + 10 + more, 99) if wanted else 0

    def _begin(self, process: SpawnProcess) -> None:
        process.start()
        self._processes.append(process)

    def _listen(self) -> None:
        port = self.rig.emulator.control_port
        if not port:
            return
        control = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            control.bind(("127.0.0.1", port))
        except OSError as error:
            control.close()
            raise RigError(
                f"rig `{self.rig.name}`, `emulator.control_port`",
                expected="a free UDP port",
                came=f"{port}: {error}",
                cure="Choose another one, or end the other emulator.",
            ) from error
        control.setblocking(False)
        self._control = control

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + START
        blocks = (self._plant_block, *self._blocks)
        while not all(block.read()["ready"][0] for block in blocks):
            dead = self.dead()
            if dead or time.monotonic() > deadline:
                raise RigError(
                    f"emulator of `{self.rig.name}`",
                    expected=f"processes that are ready within {START:g} s",
                    came=f"{dead[0]} has ended" if dead else "some are not",
                    cure="See what they have written above; check `[bus]` of the rig file.",
                )
            time.sleep(0.02)
        self._spent = [block.read()["cpu"][0] for block in blocks]  # on starting
        self.start = time.monotonic()
        self._begun.draft("instant")[0] = self.start
        self._begun.publish()

    def close(self) -> None:
        """End all processes."""
        for process in self._processes:
            if process.is_alive():
                process.terminate()
        deadline = time.monotonic() + END
        for process in self._processes:
            process.join(max(deadline - time.monotonic(), 0.0))
            if process.is_alive():
                process.kill()
                process.join()
        for orders in self._orders:
            orders.close()
        self._orders.clear()
        if self._control is not None:
            self._control.close()
            self._control = None
        self._lock.release()

    # -- commands ------------------------------------------------------------------------------

    def fault(self, fault: Fault) -> None:
        """Let something go wrong, its time counted from now on.

        Parameters
        ----------
        fault : Fault
            What.

        Raises
        ------
        RigError
            If it names no axis.
        """
        check_axis(fault, self._names)
        for name, orders in zip(self._names, self._orders, strict=True):
            if fault.axis in (name, "*"):
                with contextlib.suppress(OSError):  # a drive that is dead has faults enough
                    orders.send(fault)

    def poll(self, timeout: float = 0.0) -> int:
        """Carry out what came in at the control port.

        Parameters
        ----------
        timeout : float
            Time to wait for something, s.

        Returns
        -------
        int
            Faults that were commanded; what is no fault is passed over.
        """
        if self._control is None:
            time.sleep(timeout)
            return 0
        done = 0
        select.select([self._control], [], [], timeout)
        while True:
            try:
                data = self._control.recv(LONGEST)
            except (BlockingIOError, ConnectionError):
                return done
            try:
                table = msgpack.unpackb(data)
                self.fault(Fault.from_table(table))
                done += 1
            except (RigError, ValueError, TypeError, AttributeError, msgpack.UnpackException):
                continue

    # -- reports -------------------------------------------------------------------------------

    @property
    def pids(self) -> list[int]:
        """Processes: that of the robot, then those of the drives."""
        return [process.pid or 0 for process in self._processes]

    @property
    def alive(self) -> bool:
        """Whether all processes run."""
        return bool(self._processes) and not self.dead()

    def dead(self) -> list[str]:
        """Names of the processes that have ended."""
        return [process.name for process in self._processes if not process.is_alive()]

    def plant(self) -> PlantReport:
        """What the robot's process says now."""
        said, process = self._plant_block.read(), self._processes[0]
        return PlantReport(
            process.pid or 0,
            process.is_alive(),
            float(said["instant"][0]),
            said["q"],
            said["v"],
            said["applied"],
            int(said["steps"][0]),
            int(said["late"][0]),
            float(said["lag"][0]),
            float(said["skipped"][0]),
            int(said["samples"][0]),
            float(said["cpu"][0]),
        )

    def drive(self, axis: str) -> DriveReport:
        """What a drive's process says now.

        Parameters
        ----------
        axis : str
            Name of the axis.

        Returns
        -------
        DriveReport
            Its words, and what the robot has felt of it.
        """
        index = self._names.index(axis)
        said, process = self._blocks[index].read(), self._processes[1 + index]
        plant = self._plant_block.read()
        torque, acted = float(plant["applied"][index]), float(plant["acted"][index])
        command = float(said["command"][0])
        free = math.inf if torque else acted - command
        return DriveReport(
            axis,
            process.pid or 0,
            process.is_alive(),
            bool(said["enabled"][0]),
            torque,
            command,
            free if math.isnan(free) else max(free, 0.0),
            int(said["delivered"][0]),
            int(said["ignored"][0]),
            int(said["sent"][0]),
            float(said["cpu"][0]),
        )

    def drives(self) -> list[DriveReport]:
        """What all drives' processes say now, in the order of the axes."""
        return [self.drive(name) for name in self._names]

    def status(self) -> str:
        """All of it in one line."""
        plant, drives = self.plant(), self.drives()
        passed = max(time.monotonic() - self.start, 1e-3)
        robot = plant.cpu - self._spent[0]
        others = sum(drive.cpu for drive in drives) - sum(self._spent[1:])
        parts = [
            f"{passed:7.1f} s",
            f"enabled {sum(drive.enabled for drive in drives)}/{len(drives)}",
            f"largest torque {np.abs(plant.torque).max(initial=0.0):.2f}",
            f"late steps {plant.late} (at most {plant.lag * 1e3:.1f} ms)",
            f"processor {100.0 * robot / passed:.0f} % robot, "
            f"{100.0 * others / passed:.0f} % drives",
        ]
        dead = self.dead()
        if dead:
            parts.append("ended: " + ", ".join(dead))
        return " | ".join(parts)


def run_emulator(
    rig: Rig,
    stop: StopEvent | None = None,
    faults: Iterable[Fault] = (),
    settings: Mapping[str, DriveSettings] | None = None,
    report: Callable[[str], object] | None = None,
    every: float = 1.0,
) -> None:
    """Run an emulated rig until it is told to stop, or by SIGINT or SIGTERM.

    Parameters
    ----------
    rig : Rig
        The rig.
    stop : event, optional
        Ends it when set.
    faults : iterable of Fault
        What goes wrong, beside what the rig file says.
    settings : mapping of str to DriveSettings
        How the drives of some axes differ from the rig file.
    report : callable, optional
        Takes a line of status from time to time.
    every : float
        Time between two of them, s.

    Raises
    ------
    RigError
        If it cannot start, or a process of it ends by itself.
    """
    with _until_signal() as signalled, EmulatorProcesses(rig, faults, settings) as emulator:
        due = 0.0
        while not signalled() and not (stop is not None and stop.is_set()):
            emulator.poll(0.05)
            if report is not None and time.monotonic() >= due:
                due = time.monotonic() + every
                report(emulator.status())
            dead = emulator.dead()
            if dead and not signalled():
                raise RigError(
                    f"emulator of `{rig.name}`",
                    expected="processes that go on",
                    came=f"{', '.join(dead)} ended",
                    cure="See what it has written above.",
                )


def command_fault(fault: Fault, port: int, host: str = "127.0.0.1") -> None:
    """Let something go wrong in an emulator that runs elsewhere on this machine.

    Parameters
    ----------
    fault : Fault
        What; its time is counted from its arrival.
    port : int
        The emulator's `control_port`.
    host : str
        Where it runs.
    """
    table = fault.to_table()
    if math.isinf(table["lasting"]):
        del table["lasting"]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.sendto(msgpack.packb(table), (host, port))


def _told(settings: DriveSettings, axis: Any) -> DriveSettings:
    """Settings with the ranges of an MIT drive in them: its process knows no models."""
    if axis.drive != "mit" or settings.ranges is not None:
        return settings
    from hil.drives.mit_models import mit_ranges

    return replace(settings, ranges=dict(mit_ranges(axis)))


@contextlib.contextmanager
def _plain_main() -> Any:
    """Start processes without this programme's main module: they need nothing of it."""
    import sys

    main = sys.modules["__main__"]
    spec, file = getattr(main, "__spec__", None), getattr(main, "__file__", None)
    try:
        main.__spec__ = None
        if file is not None:
            del main.__file__
        yield
    finally:
        main.__spec__ = spec
        if file is not None:
            main.__file__ = file


@contextlib.contextmanager
def _until_signal() -> Any:
    """Note SIGINT and SIGTERM instead of dying of them; elsewhere than in a main thread, do not."""
    seen: list[int] = []
    before: dict[signal.Signals, Any] = {}
    for ending in (signal.SIGINT, signal.SIGTERM):
        with contextlib.suppress(ValueError):
            before[ending] = signal.signal(ending, lambda received, _: seen.append(received))
    try:
        yield lambda: bool(seen)
    finally:
        for ending, handler in before.items():
            signal.signal(ending, handler)
