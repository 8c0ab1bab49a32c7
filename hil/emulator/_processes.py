"""An emulated rig in a separate process, on a bus that connects processes."""

from __future__ import annotations

import contextlib
import math
import os
import select
import signal
import socket
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from typing import TYPE_CHECKING, Any, Protocol

import msgpack
import numpy as np
from numpy.typing import ArrayLike, NDArray

from hil.bus import bus_options
from hil.emulator._drive import DriveSettings
from hil.emulator._faults import Fault
from hil.emulator._lock import BusLock
from hil.emulator._process import RigJob, report_block, run_rig
from hil.emulator._time import EmulationClock, SharedTime, Stalls
from hil.emulator._world import check_axis, emulated_drive, scheduled_faults
from hil.errors import RigError
from hil.links import kind_of, open_links

if TYPE_CHECKING:
    from hil.settings import Rig

OWN_KINDS = ("cia402", "mit", "moteus", "odrive")
"""Kinds of drives that need no file of `drive_modules`."""

START = 60.0
"""Largest start-up time of the process, s: the first start compiles the plant."""

END = 2.0
"""Time after SIGTERM in which the process must end, s."""

LONGEST = 4096
"""Bytes of a datagram that commands a fault, at most."""


class StopEvent(Protocol):
    """An event that stops `run_emulator`, such as `threading.Event`."""

    def is_set(self) -> bool:
        """Whether to stop."""
        ...


@dataclass(frozen=True)
class DriveReport:
    """State of an emulated drive.

    Parameters
    ----------
    axis : str
        Name of the axis.
    enabled : bool
        Whether the drive applies commanded torque.
    torque : float
        Torque on the robot, N m.
    last_command : float
        Instant of the last valid command, s of the emulation's clock; NaN before the first.
    torque_free_after : float
        Time from the last valid command to the end of the torque, s; zero if a command ended it,
        infinite while there is torque, NaN before the first torque.
    """

    axis: str
    enabled: bool
    torque: float
    last_command: float
    torque_free_after: float


@dataclass(frozen=True)
class PlantReport:
    """State of the emulated robot, and of the process that emulates the rig.

    Parameters
    ----------
    pid : int
        Number of the process.
    alive : bool
        Whether it runs.
    time : float
        Instant of the state, s of the emulation's clock.
    q, v : numpy.ndarray
        True configuration and velocity, shapes (nq,) and (nv,).
    torque : numpy.ndarray
        Torque on each axis, shape (n,), N m.
    steps : int
        Number of integration steps.
    delivered, sent : int
        Number of frames that reached a drive, and of frames that the drives sent.
    stalls : Stalls
        Standstills of the machine, during which the emulation's clock stopped too.
    cpu : float
        Processor time since the process was ready, s.
    """

    pid: int
    alive: bool
    time: float
    q: NDArray[np.float64]
    v: NDArray[np.float64]
    torque: NDArray[np.float64]
    steps: int
    delivered: int
    sent: int
    stalls: Stalls
    cpu: float


class EmulatorProcesses:
    """An emulated rig in a separate process, which ends at the end of the `with` block.

    Robot and drives are a `World` that moves in real time. Its clock stops while the machine does
    not run the process. If the parent process dies, the emulator's process ends too.

    Parameters
    ----------
    rig : Rig
        The rig. Its buses must connect processes, for example "udp_multicast" or "socketcan".
    faults : iterable of Fault
        Injected faults, in addition to those of the rig file.
    settings : mapping of str to DriveSettings
        Differences of the drives from the rig file, by axis.
    q0 : array_like, optional
        Configuration at the start, shape (nq,); default: that of the task.

    Attributes
    ----------
    clock : EmulationClock
        Clock for a controller in this process, which stops together with the clock of the emulated
        rig. A controller without it uses the machine's time.
    start : float
        Instant at which the process was ready, s of the monotonic clock; NaN before. Times of
        faults count from it.

    Raises
    ------
    RigError
        If a bus may have motors or does not connect processes, another rig is emulated on it, or
        the process does not start.

    Examples
    --------
    >>> from dataclasses import replace
    >>> import hil
    >>> rig = hil.load_rig("examples/rover_rig/rig.toml")
    >>> udp = replace(rig.buses[0], interface="udp_multicast", channel="239.255.99.9")
    >>> with hil.EmulatorProcesses(replace(rig, buses=(udp,))) as emulator:
    ...     emulator.fault(hil.Fault("power_cycle", "turret"))
    """

    def __init__(
        self,
        rig: Rig,
        faults: Iterable[Fault] = (),
        settings: Mapping[str, DriveSettings] | None = None,
        q0: ArrayLike | None = None,
    ) -> None:
        for bus in rig.buses:
            if kind_of(bus).may_have_drives(bus):
                raise RigError(
                    f"rig `{rig.name}`, `bus.interface`",
                    expected="a bus without hardware: udp_multicast, or a vcan channel of "
                    "socketcan",
                    came=f"{bus.interface} {bus.channel}, on which there may be motors",
                    cure='Use interface = "udp_multicast" in a rig file for emulation: emulated '
                    "drives would answer in place of real drives on the same bus.",
                )
            if bus.interface == "virtual":
                raise RigError(
                    f"rig `{rig.name}`, `bus.interface`",
                    expected="a bus that connects processes, such as udp_multicast",
                    came="virtual",
                    cure='Use interface = "udp_multicast", or a `World` in the same process.',
                )
        self.rig = rig
        self._names = [axis.name for axis in rig.axes]
        self._faults = tuple(faults)
        scheduled_faults(rig, self._faults)
        self._settings = dict(settings or {})
        for axis in rig.axes:
            emulated_drive(axis, self._settings.get(axis.name))  # raises if there is none
            if axis.drive not in OWN_KINDS and not rig.drive_modules:
                raise RigError(
                    f"axis `{axis.name}`, `drive`",
                    expected=f"a kind that other processes can import: {', '.join(OWN_KINDS)}, or "
                    "a kind from a file in `drive_modules` of the rig file",
                    came=f"{axis.drive}, registered in this process",
                    cure="Register it in a file of `drive_modules`, or emulate the rig with "
                    "`World`.",
                )
        self._q0 = None if q0 is None else np.asarray(q0, dtype=float)
        robot = rig.task.plant or rig.task.robot
        self._block = report_block(len(rig.axes), robot.nq, robot.nv)
        self._time = SharedTime()
        self.clock = EmulationClock(self._time, rig.loop.spin)
        self._process: SpawnProcess | None = None
        self._orders: Connection | None = None
        self._control: socket.socket | None = None
        self._locks = [BusLock(bus) for bus in rig.buses]
        self._spent = 0.0
        self.start = math.nan

    # -- beginning and end ---------------------------------------------------------------------

    def __enter__(self) -> EmulatorProcesses:
        try:
            for lock in self._locks:
                lock.take()
            open_links(self.rig).close()  # raises here, rather than in the other process
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
        rig, context = self.rig, get_context("spawn")
        job = RigJob(
            rig,
            tuple(
                {"interface": bus.interface, "channel": bus.channel, **bus_options(bus)}
                for bus in rig.buses
            ),
            self._faults,
            self._settings,
            self._q0,
            os.getpid(),
            # Emulated hardware must not wait for the controller.
            min(rig.loop.priority + 10, 99) if rig.loop.priority else 0,
        )
        self._orders, theirs = context.Pipe()
        self._process = context.Process(
            target=run_rig,
            args=(job, self._block, self._time, theirs),
            name="emulated rig",
            daemon=True,
        )
        with _plain_main():
            self._process.start()
        theirs.close()

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
                cure="Choose another port, or stop the other emulator.",
            ) from error
        control.setblocking(False)
        self._control = control

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + START
        while not self._block.read()["ready"][0]:
            if not self.alive or time.monotonic() > deadline:
                raise RigError(
                    f"emulator of `{self.rig.name}`",
                    expected=f"a process that is ready within {START:g} s",
                    came="a process that is not ready" if self.alive else "a process that ended",
                    cure="Read its output above, and check `[bus]` of the rig file.",
                )
            time.sleep(0.02)
        self._spent = self._block.read()["cpu"][0]  # processor time of the start-up
        self.start = time.monotonic()

    def close(self) -> None:
        """End the process."""
        process = self._process
        if process is not None and process.is_alive():
            process.terminate()
            process.join(END)
            if process.is_alive():
                process.kill()
                process.join()
        if self._orders is not None:
            self._orders.close()
            self._orders = None
        if self._control is not None:
            self._control.close()
            self._control = None
        for lock in self._locks:
            lock.release()

    # -- commands ------------------------------------------------------------------------------

    def fault(self, fault: Fault) -> None:
        """Inject a fault, whose times count from now on.

        Parameters
        ----------
        fault : Fault
            The fault.

        Raises
        ------
        RigError
            If it names an unknown axis.
        """
        check_axis(fault, self._names)
        if self._orders is not None:
            with contextlib.suppress(OSError):  # the process has ended
                self._orders.send(fault)

    def poll(self, timeout: float = 0.0) -> int:
        """Inject the faults that arrive at the control port.

        Parameters
        ----------
        timeout : float
            Longest time to wait for a datagram, s.

        Returns
        -------
        int
            Number of injected faults; invalid datagrams are skipped.
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
    def pid(self) -> int:
        """Number of the process; 0 before it is started."""
        return 0 if self._process is None else self._process.pid or 0

    @property
    def alive(self) -> bool:
        """Whether the process runs."""
        return self._process is not None and self._process.is_alive()

    def plant(self) -> PlantReport:
        """State of the robot now."""
        report = self._block.read()
        return PlantReport(
            self.pid,
            self.alive,
            float(report["instant"][0]),
            report["q"],
            report["v"],
            report["torque"],
            int(report["steps"][0]),
            int(report["delivered"][0]),
            int(report["sent"][0]),
            self._time.stalls,
            float(report["cpu"][0] - self._spent),
        )

    def drive(self, axis: str) -> DriveReport:
        """State of a drive now.

        Parameters
        ----------
        axis : str
            Name of the axis.

        Returns
        -------
        DriveReport
            Its state, and its torque on the robot.
        """
        index, report = self._names.index(axis), self._block.read()
        return DriveReport(
            axis,
            bool(report["enabled"][index]),
            float(report["torque"][index]),
            float(report["command"][index]),
            float(report["free"][index]),
        )

    def drives(self) -> list[DriveReport]:
        """State of all drives now, in the order of the axes."""
        return [self.drive(name) for name in self._names]

    def status(self) -> str:
        """State of the emulator in one line."""
        plant, drives = self.plant(), self.drives()
        passed = max(time.monotonic() - self.start, 1e-3)
        stalls = plant.stalls
        parts = [
            f"{passed:7.1f} s",
            f"enabled {sum(drive.enabled for drive in drives)}/{len(drives)}",
            f"largest torque {np.abs(plant.torque).max(initial=0.0):.2f}",
            f"stalls {stalls.count} (at most {stalls.longest * 1e3:.1f} ms)",
            f"processor {100.0 * plant.cpu / passed:.0f} %",
        ]
        if not plant.alive:
            parts.append("ended")
        return " | ".join(parts)


def run_emulator(
    rig: Rig,
    stop: StopEvent | None = None,
    faults: Iterable[Fault] = (),
    settings: Mapping[str, DriveSettings] | None = None,
    report: Callable[[str], object] | None = None,
    every: float = 1.0,
) -> None:
    """Run an emulated rig until `stop` is set, or until SIGINT or SIGTERM.

    Parameters
    ----------
    rig : Rig
        The rig.
    stop : event, optional
        Stops the emulator when set.
    faults : iterable of Fault
        Injected faults, in addition to those of the rig file.
    settings : mapping of str to DriveSettings
        Differences of the drives from the rig file, by axis.
    report : callable, optional
        Is called periodically with a line of status.
    every : float
        Time between two calls of `report`, s.

    Raises
    ------
    RigError
        If the emulator cannot start, or its process ends unexpectedly.
    """
    with _until_signal() as signalled, EmulatorProcesses(rig, faults, settings) as emulator:
        due = 0.0
        while not signalled() and not (stop is not None and stop.is_set()):
            emulator.poll(0.05)
            if report is not None and time.monotonic() >= due:
                due = time.monotonic() + every
                report(emulator.status())
            if not (emulator.alive or signalled()):
                raise RigError(
                    f"emulator of `{rig.name}`",
                    expected="a process that runs until it is stopped",
                    came="a process that ended",
                    cure="Read its output above.",
                )


def command_fault(fault: Fault, port: int, host: str = "127.0.0.1") -> None:
    """Inject a fault into an emulator in another process.

    Parameters
    ----------
    fault : Fault
        The fault; its times count from its arrival.
    port : int
        The emulator's `control_port`.
    host : str
        Address of the emulator.
    """
    table = fault.to_table()
    if math.isinf(table["lasting"]):
        del table["lasting"]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.sendto(msgpack.packb(table), (host, port))


@contextlib.contextmanager
def _plain_main() -> Any:
    """Start processes without importing the main module, which they do not need."""
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
    """Record SIGINT and SIGTERM instead of ending by them; in the main thread only."""
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
