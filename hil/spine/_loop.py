"""The loop in C in a thread of this process, with the memory that it shares with Python."""

from __future__ import annotations

import contextlib
import ctypes
import os
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hil.drives import Cia402Drive
from hil.errors import RigError
from hil.reasons import Reason
from hil.spine._build import LIBRARY, build, has_compiler
from hil.spine._memory import DRIVE, REASONS, drives_of, reference_of, setup_of, shared_of

if TYPE_CHECKING:
    from hil._concur import TrackingLaw
    from hil._plan import Plan
    from hil.drives import Drive
    from hil.links import Links
    from hil.record.ring import Ring
    from hil.record.rows import Layout
    from hil.settings import Rig


def why_in_python(rig: Rig, law: TrackingLaw, links: Links) -> str:
    """Why the loop of a rig runs in Python; "" if it runs in C.

    Parameters
    ----------
    rig : Rig
        The rig.
    law : TrackingLaw
        Its law.
    links : Links
        The open buses.

    Returns
    -------
    str
        The reason, in words.
    """
    others = [axis.drive for axis in rig.axes if axis.drive != "cia402"]
    if not has_compiler():
        return "there is no C compiler for Linux"
    for bus, link in zip(rig.buses, links, strict=True):
        if not link.has_descriptor:
            return f"the interface {bus.interface} has no descriptor; socketcan has one"
    if others:
        return f"it has drives of kind {others[0]}; in C there are those of kind cia402"
    if rig.pose is not None:
        return "it has a source of poses"
    if getattr(law.model.system, "following", None):
        return "it has joints that follow others"
    if rig.loop.compiled is False:
        return "`compiled` of [loop] is false"
    if rig.loop.compiled is None and any(bus.interface != "datagram" for bus in rig.buses):
        return "the loop in C has not run on an adapter for CAN yet; `compiled = true` takes it"
    return ""


class LoopInC:
    """The loop of a rig in C; `start` runs it in a thread until the drives are off.

    Parameters
    ----------
    rig : Rig
        The rig.
    law : TrackingLaw
        Its law.
    layout : Layout
        Layout of the rows of its record.
    plan : Plan
        The reference, sampled at the loop's period.

    Attributes
    ----------
    shared : ctypes.Structure
        `rig_shared`: requests to the loop, and what it has done.
    code : int
        Result of the thread; 0: the loop has run to its end.
    """

    def __init__(self, rig: Rig, law: TrackingLaw, layout: Layout, plan: Plan) -> None:
        self.rig = rig
        # Copied here: a long one takes longer than the watchdogs of armed drives last.
        self._table = reference_of(plan)
        self._shared, self._drives = shared_of(rig, law), drives_of(rig)
        self.shared: Any = self._shared()
        self.code = 0
        # The library stays mapped when its folder is removed.
        with tempfile.TemporaryDirectory(prefix="concur-rig-") as name:
            build(rig, Path(name), layout, f"rig `{rig.name}`, loop in C", programs=False)
            self._library = ctypes.CDLL(str(Path(name) / LIBRARY))
        self._kept: list[Any] = []
        self._thread: threading.Thread | None = None

    def start(
        self,
        drives: Sequence[Drive],
        links: Links,
        ring: Ring,
        priority: int,
        resets: bool,
    ) -> None:
        """Take over prepared drives: start the loop.

        Parameters
        ----------
        drives : sequence of Drive
            The drives.
        links : Links
            Their buses.
        ring : Ring
            Takes a row for each cycle.
        priority : int
            Priority of SCHED_FIFO, 0: normal scheduling.
        resets : bool
            Whether faults of drives are reset while the rig is armed.
        """
        state = self._drives()
        self._library.rig_init_drives(ctypes.byref(state))
        rows = (DRIVE * len(drives)).in_dll(self._library, "rig_drive")
        for k, drive in enumerate(drives):
            assert isinstance(drive, Cia402Drive)
            values = drive.numbers(0.0)
            for (field, *_), value in zip(DRIVE._fields_[2:], values, strict=True):
                setattr(rows[k], field, value)
            counts = drive.counted
            state.located[k], state.counts[k] = counts is not None, counts or 0
            state.proved[k] = drive.proved
            state.latched[k], state.emergency[k] = drive.faults
        memory = ctypes.c_char.from_buffer(ring.memory)
        sockets = (ctypes.c_int * len(links))(*(link.descriptor() for link in links))
        setup = setup_of(self._shared, self._drives)(
            shared=ctypes.pointer(self.shared),
            reference=self._table.ctypes.data_as(ctypes.POINTER(ctypes.c_double)),
            rows=len(self._table),
            ring=ctypes.addressof(memory),
            ring_size=len(ring.memory),
            silence=self.rig.operator.timeout,
            sockets=sockets,
            links=len(links),
            drives=ctypes.pointer(state),
            resets=int(resets),
        )
        self._kept = [state, memory, sockets, setup]
        self._thread = threading.Thread(target=self._run, args=(setup, priority), daemon=True)
        self._thread.start()

    def _run(self, setup: Any, priority: int) -> None:
        if priority:
            with contextlib.suppress(OSError):
                os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))
        self.code = self._library.rig_run(ctypes.byref(setup))

    def output(self) -> Any:
        """Outputs of the last cycle, all of one cycle.

        Returns
        -------
        ctypes.Structure
            A copy of `rig_output`.
        """
        shared = self.shared
        while True:
            number = shared.writes
            copy = type(shared.output).from_buffer_copy(shared.output)
            if not number % 2 and shared.writes == number:
                return copy

    @property
    def runs(self) -> bool:
        """Whether the loop runs."""
        return self._thread is not None and self._thread.is_alive()

    def end(self) -> None:
        """Stop the loop if it runs, wait for its end, and give back the ring."""
        if self.runs:
            self.shared.stop = self.shared.stop or int(Reason.ERROR)
            self.shared.release = 1
        if self._thread is not None:
            self._thread.join()
        self._kept.clear()
        if self.code:
            raise RigError(
                f"rig `{self.rig.name}`, loop in C",
                expected="a ring with the rows of this rig",
                came=f"status {self.code}",
                cure="Report this error, with the rig file.",
            )

    @property
    def reason(self) -> Reason:
        """Reason of the stop."""
        return REASONS[self.shared.output.reason]
