"""The links of a rig: what the loop needs of an open bus, and all buses of a rig together.

A further kind of link
----------------------
A class that has the attributes and methods of `Link` carries the frames of its drives as messages
of python-can: `send` takes a command, or the frame that opens a cycle, and `receive` gives the
reports, whatever travels on the wire. Register how to open it under the name that the rig file
gives in `interface` (`KINDS`), and the arithmetic of its load in `hil.rig.busload.LOADS`.

>>> from dataclasses import replace
>>> from hil.bus import open_bus
>>> def opened(settings, clock):  # a link that sends nothing
...     link = open_bus(replace(settings, interface="virtual"), clock)
...     link.silent = True
...     return link
>>> KINDS["mute"] = LinkKind(opened, may_have_drives=lambda settings: False)
"""

from __future__ import annotations

import select
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from hil._ethercat_bus import INTERFACE, open_ethercat
from hil._registries import registry
from hil.bus import STANDSTILL, STEP, can_have_drives, open_bus
from hil.clock import Clock, MonotonicClock, SteppedClock

if TYPE_CHECKING:
    import can

    from hil.settings import BusSettings, Rig


class Link(Protocol):
    """An open bus, with the loop's clock.

    Attributes
    ----------
    clock : Clock
        Clock of all waits.
    silent : bool
        While true, nothing is sent.
    echoes : bool or None
        Whether sent frames come back; None: unknown.
    watch : callable or None
        Called with each sent or received frame, and whether it was sent.
    refused : int
        Number of frames that were not accepted for sending.
    """

    clock: Clock
    silent: bool
    echoes: bool | None
    watch: Callable[[can.Message, bool], None] | None
    refused: int

    @property
    def has_descriptor(self) -> bool:
        """Whether the loop in C can send and receive the frames by a file descriptor."""
        ...

    @property
    def is_off(self) -> bool:
        """Whether no more frames are carried."""
        ...

    def descriptor(self) -> int:
        """File descriptor for the loop in C."""
        ...

    def fileno(self) -> int:
        """File descriptor that becomes readable when a frame arrives; -1: none."""
        ...

    def send(self, frame: can.Message) -> bool:
        """Send a frame without waiting.

        Parameters
        ----------
        frame : can.Message
            The frame; its sender may reuse it.

        Returns
        -------
        bool
            Whether it was accepted.
        """
        ...

    def receive(self, until: float = 0.0) -> can.Message | None:
        """Receive the next frame.

        Parameters
        ----------
        until : float
            Instant of the clock up to which to wait, s; a past instant: do not wait.

        Returns
        -------
        can.Message or None
            The frame; None if none arrived in time.
        """
        ...

    def close(self) -> None:
        """Close the bus."""
        ...


@dataclass(frozen=True)
class LinkKind:
    """A kind of link, by the `interface` of a rig file.

    Parameters
    ----------
    open : callable
        Opens a bus, from its settings and a clock.
    may_have_drives : callable
        Whether a bus with some settings may have motors.
    """

    open: Callable[[BusSettings, Clock | None], Link]
    may_have_drives: Callable[[BusSettings], bool]


CAN = LinkKind(open_bus, can_have_drives)
"""The interfaces of python-can."""

KINDS = registry({INTERFACE: LinkKind(open_ethercat, may_have_drives=lambda settings: True)})
"""Kinds of links by interface; all other interfaces are those of python-can."""


def kind_of(settings: BusSettings) -> LinkKind:
    """Kind of the link of a bus.

    Parameters
    ----------
    settings : BusSettings
        The bus.

    Returns
    -------
    LinkKind
        Its kind.
    """
    return KINDS.get(settings.interface, CAN)


def may_have_drives(rig: Rig) -> bool:
    """Whether a bus of a rig may have motors: all but those that are surely software only.

    Parameters
    ----------
    rig : Rig
        The rig.

    Returns
    -------
    bool
        True if one of its buses may.
    """
    return any(kind_of(bus).may_have_drives(bus) for bus in rig.buses)


def open_links(rig: Rig, clock: Clock | None = None) -> Links:
    """Open the buses of a rig.

    Parameters
    ----------
    rig : Rig
        The rig.
    clock : Clock, optional
        The loop's clock; the machine's monotonic clock if not given.

    Returns
    -------
    Links
        All links; close them after use.

    Raises
    ------
    BusError
        If one cannot be opened; then none stays open.
    """
    clock = clock or MonotonicClock()
    opened: list[Link] = []
    try:
        for bus in rig.buses:
            opened.append(kind_of(bus).open(bus, clock))
    except BaseException:
        for link in opened:
            with suppress(Exception):  # what failed first is raised
                link.close()
        raise
    return Links(opened, rig.bus_of)


class Links:
    """The links of a rig, in the order of its buses.

    Parameters
    ----------
    links : sequence of Link
        The open links.
    bus_of : sequence of int
        Index of the link of each axis.
    """

    def __init__(self, links: Sequence[Link], bus_of: Sequence[int]) -> None:
        self._links, self.bus_of = tuple(links), tuple(bus_of)
        self._turn = 0  # link to ask first
        self.clock = self._links[0].clock
        self._expect = getattr(self.clock, "expect", None)  # of clocks that stop with an emulation

    def __iter__(self) -> Iterator[Link]:
        return iter(self._links)

    def __len__(self) -> int:
        return len(self._links)

    def __getitem__(self, index: int) -> Link:
        return self._links[index]

    def of(self, axis: int) -> Link:
        """Link of an axis.

        Parameters
        ----------
        axis : int
            Index of the axis.

        Returns
        -------
        Link
            Its link.
        """
        return self._links[self.bus_of[axis]]

    @property
    def silent(self) -> bool:
        """Whether nothing is sent, on any link."""
        return all(link.silent for link in self._links)

    @silent.setter
    def silent(self, silent: bool) -> None:
        for link in self._links:
            link.silent = silent

    @property
    def refused(self) -> int:
        """Number of frames that were not accepted for sending."""
        return sum(link.refused for link in self._links)

    @property
    def off(self) -> int:
        """Index of a link that carries no more frames, or -1."""
        return next((k for k, link in enumerate(self._links) if link.is_off), -1)

    @property
    def echo(self) -> bool:
        """Whether sent frames may come back on a link."""
        return any(link.echoes is not False for link in self._links)

    def receive(self, until: float = 0.0) -> tuple[int, can.Message] | None:
        """Receive the next frame of any link.

        Parameters
        ----------
        until : float
            Instant of the clock up to which to wait, s; a past instant: do not wait.

        Returns
        -------
        (int, can.Message) or None
            Index of the link, and the frame; None if none arrived in time.
        """
        links, clock, size, same = self._links, self.clock, len(self._links), 0
        if size == 1:
            frame = links[0].receive(until)
            return None if frame is None else (0, frame)
        before = clock.now()
        while True:
            for k in range(self._turn, self._turn + size):
                frame = links[k % size].receive()
                if frame is not None:
                    self._turn = (k + 1) % size  # a babbling node must not mute the others
                    return k % size, frame
            now = clock.now()
            if now >= until or same >= STANDSTILL:
                return None
            self._wait(until)
            now = clock.now()
            same, before = same + 1 if now == before else 0, now

    def _wait(self, until: float) -> None:
        """Wait for a frame of any link, or for a time after which to look for one."""
        clock = self.clock
        now = clock.now()
        if self._expect is not None:
            self._expect(until)
        if isinstance(clock, SteppedClock):
            clock.step(STEP, until)
            return
        waiting = [link.fileno() for link in self._links]
        if isinstance(clock, MonotonicClock) and min(waiting) >= 0:
            select.select(waiting, [], [], max(until - now, 0.0))
        else:
            clock.sleep_until(min(now + STEP, until))

    def close(self) -> None:
        """Close all links, those after one that fails too."""
        with ExitStack() as stack:
            for link in reversed(self._links):
                stack.callback(link.close)

    def __enter__(self) -> Links:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
