"""The bus: a thin wrapper of python-can that uses the loop's clock and counts lost frames.

The loop sends every frame itself and never uses the periodic sender of a kernel or adapter, which
would keep feeding the watchdogs of the drives while the controller hangs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import can

from hil._datagram_bus import INTERFACE, DatagramBus
from hil.clock import Clock, MonotonicClock, SteppedClock
from hil.errors import BusError

if TYPE_CHECKING:
    from hil.settings import BusSettings

STEP = 100e-6
"""Step of a stepped clock while the loop waits for a frame, s."""
REFUSED_IN_ROW = 32
"""Consecutive frames rejected by the interface after which the bus counts as off."""
PASSED_OVER = 256
"""Largest number of irrelevant frames skipped in one call; a babbling node cannot stop the loop."""

STANDSTILL = 100
"""Consecutive waits without progress of the clock after which it counts as stopped."""

BUS_OFF, RESTARTED = 0x40, 0x100
"""Classes of Linux' error frames (linux/can/error.h)."""


def can_have_drives(settings: BusSettings) -> bool:
    """Whether a bus of python-can may have motors: all but those that are surely software only.

    Parameters
    ----------
    settings : BusSettings
        Interface and channel.

    Returns
    -------
    bool
        False for "virtual" and "datagram", for channels `vcan...` of "socketcan", and for
        "udp_multicast" whose frames do not leave this machine.
    """
    if settings.interface == "socketcan":
        return not settings.channel.startswith("vcan")
    if settings.interface == "udp_multicast":  # other machines may join it to a CAN bus
        return bool(bus_options(settings)["hop_limit"] != 0)
    return settings.interface not in ("virtual", INTERFACE)


def bus_options(settings: BusSettings) -> dict[str, Any]:
    """Options for python-can: those of the rig file, completed by defaults.

    Parameters
    ----------
    settings : BusSettings
        Interface, bit rate and options.

    Returns
    -------
    dict
        Includes the bit rate for hardware. The default `hop_limit` of multicast frames is 0: they
        do not leave the machine.
    """
    options = dict(settings.options)
    if settings.interface == "udp_multicast":
        options.setdefault("hop_limit", 0)
    elif settings.interface not in ("virtual", INTERFACE):
        options.setdefault("bitrate", settings.bitrate)
        if settings.data_bitrate:
            options.setdefault("fd", True)
            options.setdefault("data_bitrate", settings.data_bitrate)
    return options


def plain_bus(interface: str, channel: str, options: Mapping[str, Any]) -> can.BusABC:
    """Open a bus without the loop's clock.

    Parameters
    ----------
    interface : str
        Name in python-can, or "datagram".
    channel : str
        Name of the channel.
    options : mapping of str to Any
        Further arguments of `can.Bus`.

    Returns
    -------
    can.BusABC
        The bus.
    """
    if interface == INTERFACE:
        return DatagramBus(channel, **options)
    return can.Bus(interface=interface, channel=channel, **options)


def open_bus(settings: BusSettings, clock: Clock | None = None) -> Bus:
    """Open a bus of python-can.

    Parameters
    ----------
    settings : BusSettings
        Interface, channel and bit rate.
    clock : Clock, optional
        The loop's clock; the machine's monotonic clock if not given.

    Returns
    -------
    Bus
        The bus; close it after use.

    Raises
    ------
    BusError
        If python-can cannot open it.
    """
    try:
        bus = plain_bus(settings.interface, settings.channel, bus_options(settings))
    except (can.CanError, OSError, ValueError, ImportError, TypeError) as error:
        raise BusError(
            str(settings),
            expected="an interface of python-can that can be opened",
            came=f"{type(error).__name__}: {error}",
            cure="Check the cable, the adapter's driver and `[bus]` of the rig file; without "
            'hardware use interface = "udp_multicast" and `concur-rig emulate`.',
        ) from error
    return Bus(bus, clock or MonotonicClock(), has_fd=bool(settings.data_bitrate))


class Bus:
    """A bus of python-can with the loop's clock.

    Waits use the loop's clock only: `recv` of python-can uses the wall clock, and would hang if
    the wall clock were set back.

    Parameters
    ----------
    bus : can.BusABC
        An open bus.
    clock : Clock
        Clock of all waits.
    silent : bool
        Whether nothing is sent.
    has_fd : bool
        Whether frames of CAN FD, and extended identifiers, are received too.

    Attributes
    ----------
    refused : int
        Number of frames that the interface rejected.
    errors : int
        Number of error frames of the bus.
    foreign : int
        Number of skipped frames: remote frames, garbage, and unless `has_fd` is true, extended
        identifiers and CAN FD.
    silent : bool
        While true, nothing is sent: the listening modes set it permanently.
    echoes : bool or None
        Whether the adapter echoes sent frames; None before the first query to a drive.
    watch : callable or None
        Called with each sent or received frame, and whether it was sent.
    """

    def __init__(
        self, bus: can.BusABC, clock: Clock, silent: bool = False, has_fd: bool = False
    ) -> None:
        self.bus = bus
        self.has_fd = has_fd
        self.clock = clock
        self.silent = silent
        self.echoes: bool | None = None
        self.watch: Callable[[can.Message, bool], None] | None = None
        self.refused = self.errors = self.foreign = 0
        self._refused_in_row = 0
        self._off_since_error_frame = False
        self._stepped = not isinstance(clock, MonotonicClock)
        self._expect = getattr(clock, "expect", None)  # of clocks that stop with an emulation
        self._has_state_frames = type(bus).__module__.startswith("can.interfaces.socketcan")

    @property
    def has_descriptor(self) -> bool:
        """Whether frames can be sent and received by a file descriptor, as those of SocketCAN."""
        return self._has_state_frames or isinstance(self.bus, DatagramBus)

    def descriptor(self) -> int:
        """File descriptor for code that reads and writes frames of SocketCAN as datagrams.

        Returns
        -------
        int
            The descriptor.
        """
        return self.bus.connect() if isinstance(self.bus, DatagramBus) else int(self.bus.fileno())

    def fileno(self) -> int:
        """File descriptor that becomes readable when a frame arrives; -1: none."""
        try:
            return int(self.bus.fileno())
        except NotImplementedError:
            return -1

    @property
    def is_off(self) -> bool:
        """Whether the bus is dead: off after too many errors, or it accepts no more frames."""
        if self._off_since_error_frame or self._refused_in_row >= REFUSED_IN_ROW:
            return True
        try:
            return self.bus.state is can.BusState.ERROR
        except NotImplementedError:
            return False
        except (can.CanError, OSError):
            return True

    def send(self, frame: can.Message) -> bool:
        """Send one frame, without waiting for the bus.

        Parameters
        ----------
        frame : can.Message
            The frame.

        Returns
        -------
        bool
            Whether the interface accepted it. A rejected frame is counted and dropped, as the next
            cycle has a newer one.
        """
        if self.silent:
            return False
        try:
            self.bus.send(frame, timeout=0.0)
        except (can.CanError, OSError):
            self.refused += 1
            self._refused_in_row += 1
            return False
        self._refused_in_row = 0
        if self.watch is not None:
            self.watch(frame, True)
        return True

    def receive(self, until: float = 0.0) -> can.Message | None:
        """Receive the next frame.

        Parameters
        ----------
        until : float
            Instant of the clock up to which to wait, s; a past instant: do not wait.

        Returns
        -------
        can.Message or None
            A data frame: a classic one with a standard identifier unless `has_fd` is true; None if
            none arrived in time. Other frames are counted and skipped.
        """
        clock, passed, same, before = self.clock, 0, 0, 0.0
        if self._expect is not None:
            self._expect(until)
        while passed < PASSED_OVER and same < STANDSTILL:
            wait = 0.0 if self._stepped else max(until - clock.now(), 0.0)
            try:
                frame, filtered = self.bus._recv_internal(wait)
            except (can.CanError, OSError):
                self.foreign += 1
                passed += 1
                continue
            if frame is not None:
                if self._is_data(frame) and (filtered or self.bus._matches_filters(frame)):
                    if self.watch is not None:
                        self.watch(frame, False)
                    return frame
                passed += 1
                continue
            now = clock.now()
            if now >= until:
                return None
            same, before = same + 1 if now == before else 0, now
            if isinstance(clock, SteppedClock):
                clock.step(STEP, until)
            elif self._stepped:
                clock.sleep_until(min(now + STEP, until))
        if self._stepped and until > clock.now():  # a stepped clock moves only while waiting
            clock.sleep_until(min(clock.now() + STEP, until))
        return None

    def _is_data(self, frame: can.Message) -> bool:
        """Whether it is a data frame of a format of this bus; count it if not."""
        if frame.is_error_frame:
            self.errors += 1
            if self._has_state_frames:
                if frame.arbitration_id & BUS_OFF:
                    self._off_since_error_frame = True
                elif frame.arbitration_id & RESTARTED:
                    self._off_since_error_frame = False
            return False
        if frame.is_remote_frame or (not self.has_fd and (frame.is_extended_id or frame.is_fd)):
            self.foreign += 1
            return False
        return True

    def close(self) -> None:
        """Close the bus."""
        self.bus.shutdown()

    def __enter__(self) -> Bus:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
