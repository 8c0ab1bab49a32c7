"""`concur-rig emulate`: emulated drives in a separate process on the bus, which move a plant."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from hil.emulator import Fault, run_emulator
from hil.errors import RigError
from hil.rig import load_rig


@dataclass(frozen=True)
class _Until:
    """An event that is set at an instant of the monotonic clock, s."""

    instant: float

    def is_set(self) -> bool:
        """Whether the instant has passed."""
        return time.monotonic() >= self.instant


def emulate_rig(path: Path, duration: float | None, faults: Sequence[str]) -> None:
    """Emulate a rig for a duration, or until interrupted."""
    if duration is not None and not 0.0 < duration < math.inf:
        raise RigError(
            "option `--duration`",
            expected="a time above zero, s",
            came=f"{duration:g}",
            cure="Omit it to emulate the rig until interrupted.",
        )
    rig, console = load_rig(path), Console()
    injected = tuple(Fault.read(text) for text in faults)
    stop = _Until(float("inf") if duration is None else time.monotonic() + duration)
    console.print(
        f"{rig.name}: {len(rig.axes)} drives on {', '.join(map(str, rig.buses))}; "
        "press Ctrl-C to end"
    )
    with console.status("starting") as status:
        run_emulator(rig, stop, injected, report=status.update)
    console.print("ended")
