"""The bus: a thin wrapper of python-can that knows the loop's clock and counts what is lost.

Frames are sent one by one by the loop and never by the periodic sender of a kernel or adapter:
that would go on feeding the watchdogs of the drives while the controller hangs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import can

from hil.clock import Clock, MonotonicClock
from hil.errors import BusError

if TYPE_CHECKING:
    from hil.rig import BusSettings

STEP = 100e-6
"""How far a stepped clock moves while a frame is waited for, s."""


def open_bus(settings: BusSettings, clock: Clock | None = None) -> Bus:
    """Open the bus of a rig.

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
    options = dict(settings.options)
    if settings.interface not in ("virtual", "udp_multicast"):
        options.setdefault("bitrate", settings.bitrate)
    try:
        bus = can.Bus(interface=settings.interface, channel=settings.channel, **options)
    except (can.CanError, OSError, ValueError, ImportError, TypeError) as error:
        raise BusError(
            f"bus `{settings.interface}`, channel `{settings.channel}`",
            expected="an interface of python-can that can be opened",
            came=f"{type(error).__name__}: {error}",
            cure="Check the cable, the adapter's driver and `[bus]` of the rig file; without "
            'hardware use interface = "udp_multicast" and `concur-rig emulate`.',
        ) from error
    return Bus(bus, clock or MonotonicClock())


class Bus:
    """A bus of python-can with the loop's clock.

    Parameters
    ----------
    bus : can.BusABC
        An open bus.
    clock : Clock
        Time in which waiting is meant.

    Attributes
    ----------
    refused : int
        Frames the interface did not take.
    silent : bool
        While true, nothing is sent: the listening modes set it, once and for all.
    """

    def __init__(self, bus: can.BusABC, clock: Clock, silent: bool = False) -> None:
        self.bus = bus
        self.clock = clock
        self.silent = silent
        self.refused = 0
        self._stepped = not isinstance(clock, MonotonicClock)

    def send(self, frame: can.Message) -> bool:
        """Send one frame, without waiting for the bus.

        Parameters
        ----------
        frame : can.Message
            The frame.

        Returns
        -------
        bool
            Whether the interface took it.
        """
        if self.silent:
            return False
        try:
            self.bus.send(frame)
        except (can.CanError, OSError):
            self.refused += 1
            return False
        return True

    def receive(self, until: float = 0.0) -> can.Message | None:
        """Take the next frame.

        Parameters
        ----------
        until : float
            Instant of the clock up to which to wait for it, s; a past one: do not wait.

        Returns
        -------
        can.Message or None
            A data frame with a standard identifier; None if none came in time. Error frames
            and remote frames are returned too: who asks decides.
        """
        clock = self.clock
        while True:
            wait = 0.0 if self._stepped else max(until - clock.now(), 0.0)
            try:
                frame = self.bus.recv(wait)
            except (can.CanError, OSError):
                self.refused += 1
                return None
            if frame is not None or not self._stepped:
                return frame
            now = clock.now()
            if now >= until:
                return None
            clock.sleep_until(min(now + STEP, until))

    def close(self) -> None:
        """Close the bus."""
        self.bus.shutdown()

    def __enter__(self) -> Bus:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
