"""The terminal view of a running loop, and the keys that keep it running or stop it.

The view runs in a separate process: it reads the ring and sends the operator's datagrams. If it
hangs or dies, the heartbeat ends and the rig stops.
"""

from __future__ import annotations

import contextlib
import math
import multiprocessing
import os
import select
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from typing import TYPE_CHECKING, Any

from hil.operator import OperatorSender
from hil.reasons import Reason, State
from hil.record.ring import Ring
from hil.views._page import member

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from rich.console import RenderableType

    from hil.settings import Rig

RATE = 10.0
"""Updates of the view per second."""

GRIP = 0.7
"""Time for which one key press counts as holding, s: keyboards repeat after half a second."""

BEAT = 0.05
"""Time between heartbeats, s."""


@dataclass(frozen=True)
class Heartbeat:
    """Destination and source of the heartbeats.

    Parameters
    ----------
    host, port, token : str, int, str
        The loop's operator channel.
    by : {"keys", "auto", "none"}
        Source of the heartbeats. "keys": the space bar held in this terminal. "auto": automatic,
        for emulated rigs only. "none": another program.
    """

    host: str
    port: int
    token: str
    by: str = "keys"


@dataclass(frozen=True)
class Facts:
    """Constant properties of a run for the view.

    Parameters
    ----------
    title : str
        Name of the rig and the mode.
    axes : tuple of str
        Names of the axes.
    torque_limits : tuple of float
        Their torque limits, N m.
    outputs : tuple of (str, int)
        Names of the outputs, each with its number of error coordinates.
    duration : float
        Duration of the run, s.
    """

    title: str
    axes: tuple[str, ...]
    torque_limits: tuple[float, ...]
    outputs: tuple[tuple[str, int], ...]
    duration: float


def facts_of(rig: Rig, outputs: tuple[tuple[str, int], ...], mode: str, duration: float) -> Facts:
    """Collect the constant properties of a run.

    Parameters
    ----------
    rig : Rig
        The rig.
    outputs : tuple of (str, int)
        Names of the outputs, each with its number of error coordinates.
    mode : str
        Name of the mode.
    duration : float
        Duration of the run, s.

    Returns
    -------
    Facts
        The properties.
    """
    return Facts(
        f"{rig.name}, {mode}",
        tuple(axis.name for axis in rig.axes),
        tuple(axis.torque_limit for axis in rig.axes),
        outputs,
        duration,
    )


def start_console(facts: Facts, ring: str, heartbeat: Heartbeat, live: bool) -> BaseProcess:
    """Show a loop in this terminal, from a separate process.

    Parameters
    ----------
    facts : Facts
        Constant properties of the run.
    ring : str
        Name of the loop's ring.
    heartbeat : Heartbeat
        Destination and source of the heartbeats.
    live : bool
        Whether to draw; if False, the process only sends heartbeats and stops.

    Returns
    -------
    multiprocessing.Process
        The process; terminate it once the loop has ended.
    """
    process = multiprocessing.get_context("spawn").Process(
        target=_serve, args=(facts, ring, heartbeat, live), name="console", daemon=True
    )
    process.start()
    return process


def picture(
    facts: Facts, row: dict[str, NDArray[np.float64]], hint: str = "", limits: str = ""
) -> RenderableType:
    """Render the state of the loop.

    Parameters
    ----------
    facts : Facts
        Constant properties of the run.
    row : dict of str to numpy.ndarray
        The last row by column, see `Layout.views`.
    hint : str
        The operator's keys.
    limits : str
        Names of the limits of the law that are active.

    Returns
    -------
    rich.console.RenderableType
        The view, for printing.
    """
    from rich.console import Group
    from rich.panel import Panel
    from rich.table import Table
    from rich.text import Text

    def number(name: str) -> float:
        return float(row[name][0])

    # Invalid values of a row are shown as unknown: they must not end the heartbeat.
    state, reason = member(State, number("state")), member(Reason, number("reason"))
    styles: dict[State | None, str] = {State.RUN: "bold green", State.STOP: "bold red"}
    style = styles.get(state, "bold yellow")
    head = Text("state unknown" if state is None else f"{state.name}: {state.sentence}", style)
    if reason is None or reason:
        name = "reason unknown" if reason is None else f"{reason.name}: {reason.sentence}"
        head.append(f"\n{name}", style="red" if reason is not Reason.END else "green")
    axes = Table(expand=False)
    for name in ("axis", "position (rad)", "torque sent (N m)", "of limit", "drive"):
        axes.add_column(name, justify="left" if name in ("axis", "drive") else "right")
    for k, name in enumerate(facts.axes):
        torque, fault = float(row["torque"][k]), float(row["fault"][k])
        share = abs(torque) / facts.torque_limits[k]
        drive = Text("on" if row["enabled"][k] == 1.0 else "off")
        if fault:  # NaN too
            code = f"0x{int(fault):X}" if math.isfinite(fault) else "?"
            drive = Text(f"fault {code}", style="red")
        axes.add_row(
            name,
            f"{row['position'][k]:.4f}",
            f"{torque:.3f}",
            Text(f"{share:.0%}", style="" if share < 0.95 else "red"),
            drive,
        )
    errors, start = [], 0
    for name, size in facts.outputs:
        part = row["error"][start : start + size]
        errors.append(f"{name} {math.hypot(*part):.3g}")
        start += size
    elapsed = number("elapsed")
    done = f"{elapsed:.1f} of {facts.duration:.1f} s" if math.isfinite(elapsed) else "not running"
    lines = Text(
        f"{done}; tracking error (m, rad): {', '.join(errors)}\n"
        f"cycles {number('cycle'):.0f}, late {number('late'):.0f}, lost {number('lost'):.0f}, "
        f"clipped {number('clipped'):.0f}; "
        f"last cycle began {(number('time') - number('deadline')) * 1e6:.0f} us after its "
        f"deadline and computed for {number('compute') * 1e6:.0f} us"
    )
    if limits:
        lines.append(f"\nthe law keeps limits: {limits}", style="yellow")
    if hint:
        lines.append(f"\n{hint}", style="bold")
    return Panel(Group(head, axes, lines), title=facts.title)


def _serve(facts: Facts, name: str, heartbeat: Heartbeat, live: bool) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the loop handles the interrupt
    # An orderly exit restores the terminal's echo.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    ring = Ring.attach(name)
    with (
        OperatorSender(heartbeat.host, heartbeat.port, heartbeat.token) as sender,
        _keys() as keys,
    ):
        _show(facts, ring, heartbeat, sender, keys, live)
    ring.close()


def _show(
    facts: Facts,
    ring: Ring,
    heartbeat: Heartbeat,
    sender: OperatorSender,
    keys: int | None,
    live: bool,
) -> None:
    from rich.live import Live
    from rich.panel import Panel

    parent, layout = os.getppid(), ring.layout
    hint = {
        "keys": "hold SPACE: keep running    any other key: stop",
        "auto": "any key: stop (automatic heartbeat, as this rig is emulated)",
    }.get(heartbeat.by, "any key: stop")
    gripped = next_picture = 0.0
    shown: Any = Live(refresh_per_second=RATE, transient=True) if live else contextlib.nullcontext()
    with shown as view:
        while os.getppid() == parent and not ring.closed:
            pressed = _pressed(keys, BEAT)
            if pressed is None:  # the terminal has closed: no key can be held
                keys = None
            for key in pressed or "":
                if key == " " and heartbeat.by == "keys":
                    gripped = time.monotonic()
                else:
                    sender.stop()
            now = time.monotonic()
            if heartbeat.by == "auto" or (heartbeat.by == "keys" and now - gripped < GRIP):
                sender.heartbeat()
            if view is not None and now >= next_picture:
                next_picture = now + 1.0 / RATE
                last = ring.last()
                if last is None:
                    view.update(Panel(hint, title=f"{facts.title}: not armed yet"))
                else:
                    row = layout.views(last)
                    view.update(picture(facts, row, hint, layout.active(row)))


@contextlib.contextmanager
def _keys() -> Iterator[int | None]:
    """The keyboard of this terminal, key by key; None where there is no terminal."""
    try:
        import termios
        import tty

        terminal = os.open("/dev/tty", os.O_RDONLY)
    except (ImportError, OSError):
        yield None
        return
    before = termios.tcgetattr(terminal)
    try:
        tty.setcbreak(terminal)
        yield terminal
    finally:
        # TCSANOW does not wait for pending output, which a blocked terminal would never accept.
        with contextlib.suppress(termios.error):
            termios.tcsetattr(terminal, termios.TCSANOW, before)
        os.close(terminal)


def _pressed(keys: int | None, wait: float) -> str | None:
    """Keys that were pressed meanwhile; None if the terminal has closed."""
    if keys is None:
        time.sleep(wait)
        return ""
    ready, _, _ = select.select([keys], [], [], wait)
    if not ready:
        return ""
    try:
        return os.read(keys, 64).decode("latin-1") or None
    except OSError:
        return None
