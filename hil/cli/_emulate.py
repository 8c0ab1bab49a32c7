"""`concur-rig emulate`: drives as processes on the bus, moving a plant."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from hil.emulator import EmulatorProcesses, Fault
from hil.rig import load_rig


def emulate_rig(path: Path, duration: float | None, faults: Sequence[str]) -> None:
    """Emulate a rig until the time is over, or until interrupted.

    Parameters
    ----------
    path : pathlib.Path
        Rig file.
    duration : float or None
        How long, s.
    faults : sequence of str
        Faults, as KIND,AXIS,AT,FOR.
    """
    rig, console = load_rig(path), Console()
    wrongs = tuple(Fault.read(text) for text in faults)
    with EmulatorProcesses(rig, wrongs) as emulator:
        console.print(
            f"{rig.name}: {len(rig.axes)} drives on {rig.bus.interface} {rig.bus.channel}; "
            "interrupt to end"
        )
        until = float("inf") if duration is None else time.monotonic() + duration
        try:
            with console.status("") as status:
                while time.monotonic() < until and emulator.alive:
                    status.update(emulator.status())
                    time.sleep(0.2)
        except KeyboardInterrupt:
            pass
        console.print(emulator.status())
