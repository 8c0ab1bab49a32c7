"""The terminal view of a running loop, and the keys that keep it running or stop it.

Runs in a process of its own: it reads the ring and sends the operator's datagrams. Should it hang
or die, the heartbeat stays away and the rig stops.
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
"""Updates of the view in a second."""

GRIP = 0.7
"""Time for which one key press counts as holding, s: keyboards repeat only after half a second."""

BEAT = 0.05
"""Time between heartbeats, s."""


@dataclass(frozen=True)
class Heartbeat:
    """Where heartbeats go, and what they rest on.

    Parameters
    ----------
    host, port, token : str, int, str
        The loop's operator channel.
    by : {"keys", "auto", "none"}
        The space bar held in this terminal; by itself, for emulated rigs only; or another
        program's.
    """

    host: str
    port: int
    token: str
    by: str = "keys"


@dataclass(frozen=True)
class Facts:
    """What the view knows beside the ring.

    Parameters
    ----------
    title : str
        Name of the rig and the mode.
    axes : tuple of str
        Names of the axes.
    torque_limits : tuple of float
        Their torque limits, N m.
    outputs : tuple of (str, int)
        Names of the outputs, and how many error coordinates each has.
    duration : float
        Length of the run, s.
    """

    title: str
    axes: tuple[str, ...]
    torque_limits: tuple[float, ...]
    outputs: tuple[tuple[str, int], ...]
    duration: float


def facts_of(rig: Rig, outputs: tuple[tuple[str, int], ...], mode: str, duration: float) -> Facts:
    """What the view has to know of a rig.

    Parameters
    ----------
    rig : Rig
        The rig.
    outputs : tuple of (str, int)
        Names of the outputs, and how many error coordinates each has.
    mode : str
        Name of the mode.
    duration : float
        Length of the run, s.

    Returns
    -------
    Facts
        What does not change during the run.
    """
    return Facts(
        f"{rig.name}, {mode}",
        tuple(axis.name for axis in rig.axes),
        tuple(axis.torque_limit for axis in rig.axes),
        outputs,
        duration,
    )


def start_console(facts: Facts, ring: str, heartbeat: Heartbeat, live: bool) -> BaseProcess:
    """Show a loop in this terminal, from a process of its own.

    Parameters
    ----------
    facts : Facts
        What is shown.
    ring : str
        Name of the loop's ring.
    heartbeat : Heartbeat
        Where the operator's word goes.
    live : bool
        Whether to draw; without it only heartbeats are sent.

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


def picture(facts: Facts, row: dict[str, NDArray[np.float64]], hint: str = "") -> RenderableType:
    """One picture of the loop's state.

    Parameters
    ----------
    facts : Facts
        What does not change.
    row : dict of str to numpy.ndarray
        The last row by names, as `Layout.views` gives it.
    hint : str
        What the person may do.

    Returns
    -------
    rich.console.RenderableType
        Something to print.
    """
    from rich.console import Group
    from rich.panel import Panel
    from rich.table import Table
    from rich.text import Text

    def number(name: str) -> float:
        return float(row[name][0])

    # A row that says nonsense is shown as that: the heartbeat must not end for it.
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
        f"stale {number('stale'):.0f}, clipped {number('clipped'):.0f}; "
        f"last cycle began {(number('time') - number('deadline')) * 1e6:.0f} us after its "
        f"deadline and computed for {number('compute') * 1e6:.0f} us"
    )
    if hint:
        lines.append(f"\n{hint}", style="bold")
    return Panel(Group(head, axes, lines), title=facts.title)


def _serve(facts: Facts, name: str, heartbeat: Heartbeat, live: bool) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the loop decides what an interrupt means
    # In order, or the terminal would stay without echo.
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
        "keys": "hold SPACE: go on    any other key: stop",
        "auto": "any key: stop (the heartbeat goes by itself: this rig is emulated)",
    }.get(heartbeat.by, "any key: stop")
    gripped = next_picture = 0.0
    shown: Any = Live(refresh_per_second=RATE, transient=True) if live else contextlib.nullcontext()
    with shown as view:
        while os.getppid() == parent and not ring.closed:
            pressed = _pressed(keys, BEAT)
            if pressed is None:  # the terminal is gone: nobody holds a key, nobody can
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
                    view.update(picture(facts, layout.views(last), hint))


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
        # Now, not once all has been written: a terminal that is held up would hold up the end.
        with contextlib.suppress(termios.error):
            termios.tcsetattr(terminal, termios.TCSANOW, before)
        os.close(terminal)


def _pressed(keys: int | None, wait: float) -> str | None:
    """Keys that were pressed meanwhile; None if the terminal is gone."""
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


def terminal_is_there() -> bool:
    """Whether somebody looks at this program's output."""
    return sys.stdout.isatty()
