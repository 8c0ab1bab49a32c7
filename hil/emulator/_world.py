"""An emulated rig in one process: plant, drives, injected faults, motion capture, stepped time."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any, TypeAlias

import can
import numpy as np
from numpy.typing import ArrayLike, NDArray

from hil._concur import Latency
from hil._registries import registry
from hil.clock import Clock, SteppedClock
from hil.emulator._cia402 import EmulatedCia402
from hil.emulator._drive import DriveSettings, EmulatedDrive, Outgoing
from hil.emulator._faults import Fault, Faults
from hil.emulator._mit import EmulatedMit
from hil.emulator._moteus import EmulatedMoteus
from hil.emulator._motion_capture import MotionCapture, pose_sender
from hil.emulator._odrive import EmulatedODrive
from hil.emulator._plant import RobotPlant
from hil.errors import RigError

if TYPE_CHECKING:
    from hil.settings import Axis, BusSettings, Rig

Make: TypeAlias = "Callable[[Axis, DriveSettings], EmulatedDrive]"

KINDS = registry(
    dict[str, Make](
        cia402=EmulatedCia402, mit=EmulatedMit, moteus=EmulatedMoteus, odrive=EmulatedODrive
    )
)
"""Emulated drives by kind; add drives of a third kind here."""

_ROUNDING = 1e-9  # s: instants that are nearer to each other than this are equal


def emulated_drive(axis: Axis, settings: DriveSettings | None = None) -> EmulatedDrive:
    """Make the emulated drive of an axis.

    Parameters
    ----------
    axis : Axis
        The axis.
    settings : DriveSettings, optional
        Differences of the drive from the rig file.

    Returns
    -------
    EmulatedDrive
        The drive, with power, about to boot.

    Raises
    ------
    RigError
        If drives of this kind cannot be emulated.
    """
    kind = KINDS.get(axis.drive)
    if kind is None:
        raise RigError(
            f"axis `{axis.name}`, `drive`",
            expected=f"a kind that can be emulated: {', '.join(KINDS)}",
            came=axis.drive,
            cure="Add an emulated drive of this kind to `hil.emulator.KINDS` where the kind is "
            "registered.",
        )
    return kind(axis, settings or DriveSettings())


def scheduled_faults(rig: Rig, faults: Iterable[Fault] = ()) -> list[Fault]:
    """Faults of the rig file and further faults, checked against the axes.

    Parameters
    ----------
    rig : Rig
        The rig.
    faults : iterable of Fault
        Further faults.

    Returns
    -------
    list of Fault
        All faults.

    Raises
    ------
    RigError
        If a fault names an unknown axis.
    """
    found = [*(Fault.from_table(table) for table in rig.emulator.faults), *faults]
    for fault in found:
        check_axis(fault, [axis.name for axis in rig.axes])
    return found


def check_axis(fault: Fault, names: Iterable[str]) -> None:
    """Reject a fault of an unknown axis."""
    known = [*names, "*"]
    if fault.axis not in known:
        raise RigError(
            f"fault `{fault.kind.name.lower()}`, `axis`",
            expected=f"one of {', '.join(known)}",
            came=fault.axis,
            cure="Name an axis of the rig.",
        )


class World:
    """An emulated rig in the controller's process.

    The controller's clock advances it: sent frames travel, the plant moves with constant torques
    between events, and reports arrive after their delays. Runs with the same seed are equal. Plant
    steps end where torques change.

    Parameters
    ----------
    rig : Rig
        The rig; its buses must be "virtual" unless `buses` is given.
    clock : Clock
        The controller's clock. A `SteppedClock` without an `advance` will advance this world.
    faults : iterable of Fault
        Injected faults, in addition to those of the rig file; `fault` adds more.
    settings : mapping of str to DriveSettings
        Differences of the drives from the rig file, by axis.
    q0 : array_like, optional
        Configuration at the start, shape (nq,); default: that of the task.
    send_pose : callable, optional
        Is called with the samples of the motion capture, see `MotionCapture`; default: sends them
        to the rig's pose source.
    buses : sequence of can.BusABC, optional
        Open buses to use, one for each of the rig; default: opens those of the rig.
    held : bool
        Whether the robot is held until the first torque.

    Attributes
    ----------
    drives : tuple of EmulatedDrive
        In the order of the axes.
    torque : numpy.ndarray
        Present torque of each axis on the plant, shape (n,), N m.
    torque_ended : numpy.ndarray
        Instant at which the torque of each axis last became zero, shape (n,), s; NaN if it never
        did.
    delivered, ignored : int
        Number of frames that reached a drive, and of frames on the bus for no drive.

    Examples
    --------
    >>> from dataclasses import replace
    >>> import hil
    >>> from hil.clock import SteppedClock
    >>> rig = hil.load_rig("examples/rover_rig/rig.toml")
    >>> bus = replace(rig.buses[0], interface="virtual", channel="example", options={})
    >>> rig = replace(rig, buses=(bus,))
    >>> clock = SteppedClock()
    >>> with hil.World(rig, clock) as world:
    ...     clock.sleep_until(clock.now() + 0.01)
    ...     print(len(world.drives), world.torque)
    5 [0. 0. 0. 0. 0.]
    """

    def __init__(
        self,
        rig: Rig,
        clock: Clock,
        faults: Iterable[Fault] = (),
        settings: Mapping[str, DriveSettings] | None = None,
        q0: ArrayLike | None = None,
        send_pose: Callable[[Mapping[str, Any]], object] | None = None,
        buses: Sequence[can.BusABC] | None = None,
        held: bool = True,
    ) -> None:
        self.rig = rig
        self.clock = clock
        emulator = rig.emulator
        own = emulator.latency
        latency = 0.25 * rig.loop.receive_window if own is None else own
        self._latency = Latency(latency, emulator.jitter)
        # Number of messages and arrival of the last one: of the host, of each drive, and of the
        # host on each further bus.
        self._messages = [(0, -math.inf)] * (len(rig.buses) + len(rig.axes))
        self.plant = RobotPlant(rig, q0, held)
        changed = settings or {}
        self.drives = tuple(emulated_drive(axis, changed.get(axis.name)) for axis in rig.axes)
        scheduled = scheduled_faults(rig, faults)
        self._faults = [
            Faults(axis.name, scheduled, emulator.seed, emulator.loss) for axis in rig.axes
        ]
        self._start = self._now = clock.now()
        gives = "pose" if rig.pose is None else rig.pose.gives
        base = self.plant.base.name if self.plant.base else ""
        self._close_sender: Callable[[], object] = lambda: None
        if send_pose is None:
            send_pose, self._close_sender = pose_sender(rig, base)
        self._capture = MotionCapture(emulator, base, send_pose, self._start, gives)
        self.torque = self.plant.torque
        self.torque_ended = np.full(len(self.drives), math.nan)
        self.delivered = 0
        self.ignored = 0
        self._order = count()
        # (instant, order, drive or -1 - b for the host on bus b, frame)
        self._queue: list[tuple[float, int, int, can.Message]] = []
        self._moving = False
        self.buses = tuple(map(self._open, rig.buses) if buses is None else buses)
        self._wake = self._next_event()
        if isinstance(clock, SteppedClock) and clock.advance is None:
            clock.advance, clock.wake = self.advance, lambda: self._wake

    def _open(self, settings: BusSettings) -> can.BusABC:
        if settings.interface != "virtual":
            raise RigError(
                f"rig `{self.rig.name}`, {settings}",
                expected='interface = "virtual" for a world in the same process',
                came=settings.interface,
                cure="Run the emulator in a separate process, or replace the rig's bus.",
            )
        return can.Bus(interface="virtual", channel=settings.channel)

    # -- state ---------------------------------------------------------------------------------

    @property
    def time(self) -> float:
        """Time since the start, s."""
        return self._now - self._start

    @property
    def q(self) -> NDArray[np.float64]:
        """Present true configuration, shape (nq,)."""
        self._move(self._now)
        return self.plant.q

    @property
    def v(self) -> NDArray[np.float64]:
        """Present true velocity, shape (nv,)."""
        self._move(self._now)
        return self.plant.v

    def drive(self, axis: str) -> EmulatedDrive:
        """Drive of an axis.

        Parameters
        ----------
        axis : str
            Name of the axis.

        Returns
        -------
        EmulatedDrive
            Its drive.
        """
        return self.drives[[a.name for a in self.rig.axes].index(axis)]

    def torque_free_after(self, axis: str) -> float:
        """Time from the last valid command of an axis to the end of its torque.

        Parameters
        ----------
        axis : str
            Name of the axis.

        Returns
        -------
        float
            In s; zero if a command ended it, infinite while there is torque, NaN before the first
            torque.
        """
        index = [a.name for a in self.rig.axes].index(axis)
        if self.torque[index] != 0.0:
            return math.inf
        free = float(self.torque_ended[index] - self.drives[index].last_command)
        return free if math.isnan(free) else max(free, 0.0)

    def fault(self, fault: Fault) -> None:
        """Inject a fault, whose times count from now on.

        Parameters
        ----------
        fault : Fault
            The fault.
        """
        check_axis(fault, [axis.name for axis in self.rig.axes])
        later = Fault(**(vars(fault) | {"at": self.time + fault.at}))
        for faults in self._faults:
            faults.add(later)
        self._wake = self._next_event()

    # -- time ----------------------------------------------------------------------------------

    def advance(self, instant: float) -> None:
        """Collect sent frames, and advance to an instant of the clock.

        Parameters
        ----------
        instant : float
            In s; for a past instant only frames are collected.
        """
        if self._moving:
            return
        self._moving = True
        try:
            self.collect()  # before time passes: the frames were sent at the present instant
            self.move(instant)
        finally:
            self._moving = False

    def move(self, instant: float) -> None:
        """Advance to an instant of the clock.

        Parameters
        ----------
        instant : float
            In s; a past instant changes nothing.
        """
        while self._wake <= instant:
            self._happen(max(self._wake, self._now))
        self._now = max(self._now, instant)

    def close(self) -> None:
        """Close the bus."""
        self._close_sender()
        for bus in self.buses:
            bus.shutdown()

    def __enter__(self) -> World:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def wake(self) -> float:
        """Instant of the next event, s."""
        return self._wake

    def collect(self) -> None:
        """Receive the frames that wait at each bus: one message, which counts as sent now."""
        for number, bus in enumerate(self.buses):
            frame = bus.recv(0)
            if frame is not None:
                self._take(number, frame)
        self._wake = min(self._wake, self._queue[0][0]) if self._queue else self._wake

    def _take(self, number: int, first: can.Message) -> None:
        """Pass the waiting frames of a bus to its drives."""
        sender = len(self.drives) + number if number else 0
        due, since = self._arrival(sender, self._now), self._now - self._start
        frame: can.Message | None = first
        while frame is not None:
            heard, identifier = False, frame.arbitration_id
            for index, drive in enumerate(self.drives):
                if self.rig.bus_of[index] == number and identifier in drive.heard:
                    heard = True
                    for when, passed in self._faults[index].to_drive(frame, due, since):
                        self._push(when, index, passed)
            self.ignored += not heard
            frame = self.buses[number].recv(0)

    def _happen(self, instant: float) -> None:
        """Process all events of an instant."""
        limit = instant + _ROUNDING
        since = limit - self._start
        host: list[tuple[int, can.Message]] = []
        drives: list[tuple[int, can.Message]] = []
        while self._queue and self._queue[0][0] <= limit:
            _, _, target, frame = heapq.heappop(self._queue)
            (host if target < 0 else drives).append((target, frame))
        self._now = instant
        for target, frame in host:
            self.buses[-1 - target].send(frame)
        polled = [k for k, drive in enumerate(self.drives) if drive.next_event <= limit]
        struck = [k for k, faults in enumerate(self._faults) if faults.next_event <= since]
        captured = self._capture.next_event <= limit
        if drives or polled or struck or captured:
            self._move(instant)
            self._sense(since)
            for k in struck:
                self._report(k, self._faults[k].strike(self.drives[k], since, instant))
            for k in polled:
                self._report(k, self.drives[k].poll(limit))
            for k, frame in drives:
                self.delivered += 1
                self._report(k, self.drives[k].receive(frame, instant))
            if captured:
                self._capture.poll(instant, self.plant.base_pose)
            self._load(instant)
        self._wake = self._next_event()

    def _report(self, index: int, frames: Outgoing) -> None:
        faults, since = self._faults[index], self._now - self._start
        for due, frame in frames:
            arrival = self._arrival(1 + index, due)
            for when, passed in faults.to_host(frame, arrival, since):
                self._push(when, -1 - self.rig.bus_of[index], passed)

    def _arrival(self, sender: int, sent: float) -> float:
        """Instant at which the next message of a sender, a place in `_messages`, arrives."""
        number, before = self._messages[sender]
        due = sent + self._latency.delay
        if self._latency.jitter:
            (due,) = self._latency.arrivals(
                [sent], world=sender, seed=self.rig.emulator.seed, first=number, after=before
            ).tolist()
        self._messages[sender] = number + 1, due
        return float(due)

    def _push(self, due: float, target: int, frame: can.Message) -> None:
        heapq.heappush(self._queue, (due, next(self._order), target, frame))

    def _next_event(self) -> float:
        wake = self._queue[0][0] if self._queue else math.inf
        for drive in self.drives:
            wake = min(wake, drive.next_event)
        for faults in self._faults:
            wake = min(wake, faults.next_event + self._start)
        return min(wake, self._capture.next_event)

    # -- plant ---------------------------------------------------------------------------------

    def _move(self, instant: float) -> None:
        plant, target = self.plant, instant - self._start
        springy = any(drive.springy for drive in self.drives)
        while plant.time < target - _ROUNDING:
            if springy:
                self._sense(plant.time)
                self._load(self._start + plant.time)
            left = target - plant.time
            plant.step(left if not springy and plant.rests() else min(plant.dt, left))

    def _sense(self, since: float) -> None:
        for drive, faults, (position, velocity) in zip(
            self.drives, self._faults, self.plant.readings(), strict=True
        ):
            if not faults.is_frozen(since):
                drive.sense(position, velocity)

    def _load(self, instant: float) -> None:
        """Apply the present torques of the drives to the plant."""
        for k, (drive, before) in enumerate(zip(self.drives, self.torque.tolist(), strict=True)):
            torque = drive.torque(instant)
            if torque != before:
                self.torque[k] = torque
                if torque == 0.0:
                    self.torque_ended[k] = instant
