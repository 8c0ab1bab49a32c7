"""The dashboard: the robot in a browser, what the loop measures, and a stop button.

Runs in a process of its own, reads the ring, and talks to the loop by the operator's datagrams
only: a dashboard that hangs, or dies, cannot hold the loop up. The page and its button are there
before the robot is drawn, and stay when something cannot be shown. Nothing is fetched from other
machines.
"""

from __future__ import annotations

import contextlib
import io
import math
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Sequence
from enum import IntEnum
from html import escape
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from concur.plotting.style import PALETTE
from hil.errors import RigError
from hil.guard import Flag
from hil.latch import Reason, State
from hil.operator import OperatorSender
from hil.record.ring import Ring
from hil.record.rows import Layout
from hil.views.scene import Scene

if TYPE_CHECKING:
    import viser

    from hil.rig import Rig

PORT = 8080
"""Default port of the page."""

RATE = 12.0
"""Movements of the robot in a second."""

WORDS = 4.0
"""Updates of words and curves in a second."""

SHOWN = 10.0
"""Length of the curves, s."""

POINTS = 250
"""Points of a curve."""

SILENCE = 0.5
"""Time without a new cycle after which the page says so, s."""

OLD = 3.0
"""Time without news after which the page in the browser calls itself frozen, s."""

_Member = TypeVar("_Member", bound=IntEnum)

_COLORS = {
    State.DISARMED: "#5f6b76",
    State.ARMED: "#b26a00",
    State.RUN: "#1b7f3b",
    State.STOP: "#b71c1c",
}
_DONE = "#1f5fa8"
_STYLE = f"""<style>
@keyframes hil-old {{ 0%, 99% {{ visibility: hidden; }} 100% {{ visibility: visible; }} }}
.hil-old {{ animation: hil-old {OLD}s linear forwards; position: absolute; inset: 0;
  background: #ffd400; color: #000; padding: 0.7em; border-radius: 6px; font-weight: 700; }}
.hil-card {{ position: relative; color: #fff; padding: 0.7em 0.9em; border-radius: 6px;
  margin: 0 0.6em 0.6em; min-height: 6.2em; }}
.hil-card h2 {{ margin: 0; font-size: 1.7em; line-height: 1.2; }}
.hil-note {{ font-size: 0.85em; line-height: 1.35; }}
p.hil-note {{ margin: 0.6em 0.8em; }}
.hil-bad {{ color: #b71c1c; font-weight: 700; }}
.hil-table {{ width: calc(100% - 1.6em); margin: 0 0.8em 0.6em; border-collapse: collapse;
  font-size: 0.82em; line-height: 1.5; font-variant-numeric: tabular-nums; }}
.hil-table th {{ text-align: right; font-weight: 600; border-bottom: 1px solid #bbb; }}
.hil-table td {{ text-align: right; }}
.hil-table th:first-child, .hil-table td:first-child {{ text-align: left; }}
.mantine-Button-root {{ height: 4.2rem !important; font-size: 2rem !important;
  font-weight: 800 !important; letter-spacing: 0.1em; }}
</style>"""


class Dashboard:
    """A page that shows a running loop; `run` serves it.

    Parameters
    ----------
    rig : Rig
        The rig.
    ring : Ring
        Ring that the loop writes, attached.
    sender : OperatorSender or None
        Takes the stop button's word to the loop; None where the loop listens to nobody.
    host, port : str, int
        Where the page is served; by default for this machine only.
    duration : float, optional
        Length of the run, s; that of the task if not given.

    Raises
    ------
    RigError
        If the port is taken.
    """

    def __init__(
        self,
        rig: Rig,
        ring: Ring,
        sender: OperatorSender | None,
        host: str = "127.0.0.1",
        port: int = PORT,
        duration: float | None = None,
    ) -> None:
        import viser

        _check_port(host, port)
        self.rig, self.ring, self.sender = rig, ring, sender
        self.duration = rig.task.duration if duration is None else duration
        self.layout: Layout = ring.layout
        with _hushed():
            self.server = viser.ViserServer(host=host, port=port, label=rig.name, verbose=False)
        self._scene: Scene | None = None
        self._since = self._beat = 0
        self._last: dict[str, NDArray[np.float64]] | None = None
        self._history = np.empty((0, self.layout.width))
        self._stride = max(round(SHOWN * rig.loop.rate / POINTS), 1)
        self._asked: float | None = None  # when the button was pressed, until the loop has stopped
        self._trouble = ""
        self._build()
        self._show_words()

    def _build(self) -> None:
        gui = self.server.gui
        gui.configure_theme(show_logo=False, show_share_button=False)
        gui.set_panel_label("Curves of the last 10 s")
        gui.main_panel.dock_right()
        gui.main_panel.set_width(380)
        # A panel of its own: the button must not be scrolled away with the curves.
        panel = gui.add_panel()
        with panel.add_tab("State"):
            gui.add_html(_STYLE)
            self._card = gui.add_html("")
            self._button = gui.add_button("STOP", color=(200, 0, 0), disabled=self.sender is None)
            self._button.on_click(self._pressed)
            self._answer = gui.add_html("")
            self._axes = gui.add_html("")
            self._quality = gui.add_html("")
            self._follow = gui.add_checkbox("Camera follows the robot", True)
        panel.dock_left()
        panel.set_width(330)
        outputs = self.rig.task.outputs
        names = [f"{o.name} {c}" for o in outputs for c in o.coordinate_names]
        with gui.add_folder("Tracking error (mm, mrad)"):
            self._errors = self._plot(names)
        with gui.add_folder("Torque sent (N m)"):
            self._torques = self._plot(list(self.layout.axes))
        bin_ms = 1e3 * self._stride * self.rig.loop.period
        with gui.add_folder(f"Cycle (µs), the largest of each {bin_ms:.0f} ms"):
            self._cycles = self._plot(["lateness", "computing"])

    def _plot(self, names: list[str]) -> viser.GuiUplotHandle:
        from viser import uplot

        dashes: tuple[tuple[float, ...], ...] = ((), (6.0, 4.0), (2.0, 3.0))
        series = [uplot.Series(label="time (s)")] + [
            uplot.Series(
                label=name,
                stroke=PALETTE[k % len(PALETTE)],
                width=1.5,
                dash=dashes[k // len(PALETTE) % len(dashes)],
                points=uplot.Series_Points(show=False),
            )
            for k, name in enumerate(names)
        ]
        return self.server.gui.add_uplot(
            data=_nothing(len(names)),
            series=tuple(series),
            scales={"x": uplot.Scale(time=False, range=(-SHOWN, 0.0))},
            axes=(uplot.Axis(size=32.0), uplot.Axis(size=62.0)),
            legend=uplot.Legend(show=True, live=False),
            height=165,
        )

    def draw(self) -> None:
        """Draw the robot; takes a while, and is not needed to stop it."""
        task = self.rig.task
        self._scene = Scene(self.server, task.robot, task.outputs, np.asarray(task.q0, dtype=float))

    def _pressed(self, _: object) -> None:
        self.stop()

    def stop(self) -> bool:
        """Ask the loop to stop; goes on asking until it has.

        Returns
        -------
        bool
            Whether the machine took the word.
        """
        if self.sender is None:
            return False
        if self._asked is None:
            self._asked = time.monotonic()
        return self.sender.stop()

    def update(self, words: bool = True) -> bool:
        """Show what the loop has written since the last time.

        Parameters
        ----------
        words : bool
            Whether to renew words and curves, beside moving the robot.

        Returns
        -------
        bool
            Whether there was anything new.
        """
        with np.errstate(all="ignore"):  # what is not finite is shown as such
            return self._update(words)

    def _update(self, words: bool) -> bool:
        rows, self._since, lost = self.ring.take(self._since)
        if len(rows):
            # Rows are numbered from the ring's start; curves are thinned on that grid.
            kept = rows if lost else np.concatenate([self._history, rows])
            self._history = kept[-self._stride * POINTS :]
            self._last = self.layout.views(rows[-1])
        self._insist()
        if words:
            self._show_words()
            if len(self._history):
                self._show_curves()
        if self._scene is not None and self._last is not None and len(rows):
            self._scene.follow = bool(self._follow.value)
            self._scene.update(self._last["q"], self._last["pose"])
        return bool(len(rows))

    def _insist(self) -> None:
        """A stop that was asked for is asked for again until the loop says that it has stopped."""
        if self._asked is None or self.sender is None:
            return
        if self._state is State.STOP or self.ring.closed:
            self._asked = None
        else:
            self.sender.stop()

    @property
    def _state(self) -> State | None:
        return None if self._last is None else member(State, self._last["state"][0])

    def _show_words(self) -> None:
        self._beat += 1
        row = self._last
        silent = time.monotonic() - self.ring.heartbeat
        self._card.content = card(
            self.rig.name,
            row,
            self.duration,
            silence(
                self.ring.written,
                self.ring.closed,
                self.ring.writer_alive,
                silent,
                self._state,
            ),
            self._beat,
        )
        self._answer.content = self._answered() + (
            f'<p class="hil-note hil-bad">{escape(self._trouble)}</p>' if self._trouble else ""
        )
        if row is None:
            return
        limits = [axis.torque_limit for axis in self.rig.axes]
        self._axes.content = axes_table(self.layout.axes, limits, row)
        recent = self.layout.views(self._history[-max(round(self.rig.loop.rate), 1) :])
        self._quality.content = quality_table(row, recent)

    def _answered(self) -> str:
        note = (
            '<p class="hil-note">STOP brakes by software, category 1 or 2. The emergency stop, '
            "which removes power at once, must be wired.</p>"
        )
        if self.sender is None:
            note = '<p class="hil-note">This run listens to nobody: Ctrl-C ends it.</p>'
        elif self._asked is not None:
            since = time.monotonic() - self._asked
            if since > SILENCE:
                note = (
                    '<p class="hil-note hil-bad" id="hil-answer">STOP was asked for '
                    f"{since:.0f} s ago, and the loop has not stopped. Use the emergency "
                    "stop.</p>"
                )
            else:
                note = '<p class="hil-note" id="hil-answer">STOP has been asked for.</p>'
        return note

    def _show_curves(self) -> None:
        # Bins that begin at fixed numbers of rows: a curve does not flicker as it moves on.
        stride, first = self._stride, self._since - len(self._history)
        rows = self._history[-first % stride :]
        bins = -(-len(rows) // stride)
        if not bins:
            return
        ends = np.minimum(np.arange(1, bins + 1) * stride, len(rows)) - 1
        parts = self.layout.views(rows[ends])
        times = parts["time"][:, 0] - parts["time"][-1, 0]
        if not np.isfinite(times).all():
            times = (ends - ends[-1]) / self.rig.loop.rate
        whole = self.layout.views(rows)
        pace = 1e6 * np.hstack([whole["time"] - whole["deadline"], whole["compute"]])
        pace = np.fmax.reduceat(pace, np.arange(bins) * stride, axis=0)
        for plot, columns in (
            (self._errors, 1e3 * parts["error"]),
            (self._torques, parts["torque"]),
            (self._cycles, pace),
        ):
            plot.data = _drawable(times, columns)

    def run(self, ended: threading.Event) -> None:
        """Serve the page until told to end; the robot is drawn on the way.

        Parameters
        ----------
        ended : threading.Event
            Set by whoever wants the end.
        """
        drawn, words = False, 0.0
        while not ended.is_set():
            now = time.monotonic()
            try:
                if not drawn and self._beat > 1:  # the state is shown before the robot
                    drawn = True
                    self.draw()
                renew = now >= words
                if renew:
                    words = now + 1.0 / WORDS
                self.update(renew)
            # The stop button lives in this process: nothing that cannot be shown may end it.
            except Exception as error:
                self._trouble = f"Not everything can be shown: {type(error).__name__}: {error}"
            ended.wait(1.0 / RATE)

    def say_goodbye(self) -> None:
        """Show the last cycle, and that the page is at its end."""
        with contextlib.suppress(Exception):
            self._asked = None
            self.update()
        self._card.content = card(self.rig.name, self._last, self.duration, "", None)
        self._button.disabled = True
        self._answer.content = (
            '<p class="hil-note" id="hil-answer"><b>The session has ended.</b> This is its last '
            "cycle; the page will not change any more.</p>"
        )
        self.server.flush()

    def close(self) -> None:
        """Close the page."""
        with _hushed():
            self.server.stop()


def member(kind: type[_Member], value: float) -> _Member | None:
    """The member of an enumeration that a number of a row means.

    Parameters
    ----------
    kind : type
        The enumeration.
    value : float
        The number.

    Returns
    -------
    IntEnum or None
        None if the number means none, NaN for one.
    """
    try:
        return kind(int(value))
    except (ValueError, OverflowError):
        return None


def number(value: float, form: str = ".3f") -> str:
    """A number for people.

    Parameters
    ----------
    value : float
        The number.
    form : str
        How to write it, if it is finite.

    Returns
    -------
    str
        A dash if it is not.
    """
    return format(value, form) if math.isfinite(value) else "–"


def silence(written: int, closed: bool, alive: bool, silent: float, state: State | None) -> str:
    """What is to be said of a loop from which nothing new comes.

    Parameters
    ----------
    written : int
        Cycles so far.
    closed : bool
        Whether the loop has said that no more come.
    alive : bool
        Whether its process is there.
    silent : float
        Time since the last cycle, s.
    state : State or None
        State in the last cycle.

    Returns
    -------
    str
        "" if all is well.
    """
    if not alive and not closed:
        return "The controller's process is gone. The drives stop by their own watchdogs."
    if closed or (state is State.STOP and silent > SILENCE):
        return "The loop has ended; this is its last cycle."
    if not written:
        return "No cycle yet: the run is being prepared."
    if silent > SILENCE:
        return f"No new cycle for {silent:.1f} s: the loop hangs, or waits."
    return ""


def card(
    name: str,
    row: dict[str, NDArray[np.float64]] | None,
    duration: float,
    note: str,
    beat: int | None,
) -> str:
    """The state in plain words, as HTML.

    Parameters
    ----------
    name : str
        Name of the rig.
    row : dict of str to numpy.ndarray or None
        The last row by names; None before the first.
    duration : float
        Length of the run, s.
    note : str
        What `silence` says.
    beat : int or None
        A number that changes each time: a card that stays the same for a while calls itself
        frozen. None: it may stay.

    Returns
    -------
    str
        HTML.
    """
    state = None if row is None else member(State, row["state"][0])
    reason = None if row is None else member(Reason, row["reason"][0])
    paint = _COLORS[State.DISARMED if state is None else state]
    lines = []
    if row is None:
        title = "NOT ARMED YET"
    elif state is None:
        title = "STATE UNKNOWN"
    else:
        title = state.name
        if state is State.STOP and reason is Reason.END:
            title, paint = "STOP: task done", _DONE
        lines.append(_sentence(state.sentence))
        if reason:
            lines.append(f"<b>{reason.name}</b>: {reason.sentence}.")
        elapsed = row["elapsed"][0]
        if math.isfinite(elapsed):
            lines.append(f"{elapsed:.1f} s of {duration:.1f} s")
    if note:
        lines.append(f"<b>{note}</b>")
        paint = paint if state is State.STOP or row is None else "#b71c1c"
    frozen = ""
    if beat is not None:
        frozen = (
            f'<div class="hil-old" data-beat="{beat}">FROZEN: no news from the dashboard. What '
            "you see is old, and the button may reach nobody. Use the emergency stop.</div>"
        )
    body = "".join(f'<div class="hil-note">{line}</div>' for line in lines)
    return (
        f'<div class="hil-card" style="background:{paint}"><div class="hil-note">{escape(name)}'
        f'</div><h2 id="hil-state">{title}</h2>'
        f"{body}{frozen}</div>"
    )


def axes_table(
    names: Sequence[str], limits: Sequence[float], row: dict[str, NDArray[np.float64]]
) -> str:
    """Positions, torques and drives, as HTML.

    Parameters
    ----------
    names : sequence of str
        The axes.
    limits : sequence of float
        Their torque limits, N m.
    row : dict of str to numpy.ndarray
        A row by names.

    Returns
    -------
    str
        HTML.
    """
    lines = []
    for k, name in enumerate(names):
        torque = row["torque"][k]
        share, fault = abs(torque) / limits[k], row["fault"][k]
        drive = "on" if row["enabled"][k] == 1.0 else "off"
        if fault:  # NaN too
            code = f"0x{int(fault):X}" if math.isfinite(fault) else "?"
            drive = f'<span class="hil-bad">fault {code}</span>'
        bad = ' class="hil-bad"' if not share < 0.95 else ""
        lines.append(
            f'<tr data-axis="{escape(name)}"><td>{escape(name)}</td>'
            f"<td>{number(row['position'][k])}</td><td>{number(torque)}</td>"
            f"<td{bad}>{number(100.0 * share, '.0f')} % of {limits[k]:g}</td><td>{drive}</td></tr>"
        )
    return (
        '<table class="hil-table" id="hil-axes"><tr><th>axis</th><th>rad</th><th>N m</th>'
        f"<th>limit</th><th>drive</th></tr>{''.join(lines)}</table>"
    )


def quality_table(
    row: dict[str, NDArray[np.float64]], recent: dict[str, NDArray[np.float64]]
) -> str:
    """Counters, cycle times and what the guard does, as HTML.

    Parameters
    ----------
    row : dict of str to numpy.ndarray
        The last row by names.
    recent : dict of str to numpy.ndarray
        The rows of the last second by names.

    Returns
    -------
    str
        HTML.
    """

    def pair(values: NDArray[np.float64]) -> str:
        known = 1e6 * values[np.isfinite(values)]
        return f"{np.median(known):.0f}, at most {known.max():.0f} µs" if known.size else "–"

    words = {
        name: number(row[column][0], ".0f")
        for name, column in (
            ("cycles", "cycle"),
            ("late cycles", "late"),
            ("lost reports", "lost"),
            ("stale reports", "stale"),
            ("clipped cycles", "clipped"),
        )
    }
    flags = recent["flags"][np.isfinite(recent["flags"])].astype(int)
    seen = Flag(int(np.bitwise_or.reduce(flags))) if flags.size else Flag.NONE
    names = [str(flag.name).lower().replace("_", " ") for flag in seen]
    words["guard, last second"] = ", ".join(names) or "nothing changed"
    words["lateness, last second"] = pair(recent["time"] - recent["deadline"])
    words["computing, last second"] = pair(recent["compute"])
    if math.isfinite(row["pose_age"][0]):
        words["age of the external pose"] = f"{1e3 * row['pose_age'][0]:.1f} ms"
    lines = "".join(
        f'<tr data-name="{name}"><td>{name}</td><td>{value}</td></tr>'
        for name, value in words.items()
    )
    return f'<table class="hil-table" id="hil-quality">{lines}</table>'


def start_dashboard(
    rig_path: Path,
    ring: str,
    token: str,
    operator: int,
    host: str = "127.0.0.1",
    port: int = PORT,
    duration: float | None = None,
) -> BaseProcess:
    """Serve the page from a process of its own.

    Parameters
    ----------
    rig_path : Path
        The rig file.
    ring : str
        Name of the loop's ring.
    token : str
        The operator's token.
    operator : int
        Port at which the loop listens to the operator; 0: it listens to nobody.
    host, port : str, int
        Where the page is served.
    duration : float, optional
        Length of the run, s; that of the task if not given.

    Returns
    -------
    multiprocessing.Process
        The process; terminate it to close the page.

    Raises
    ------
    RigError
        If the port is taken.
    """
    _check_port(host, port)
    process = multiprocessing.get_context("spawn").Process(
        target=_serve,
        args=(rig_path, ring, token, operator, host, port, duration),
        name="dashboard",
        daemon=True,
    )
    process.start()
    return process


def _serve(
    rig_path: Path,
    ring: str,
    token: str,
    operator: int,
    host: str,
    port: int,
    duration: float | None,
) -> None:
    from hil.rig import load_rig

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the loop decides what an interrupt means
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    if hasattr(os, "nice"):
        os.nice(10)
    parent = os.getppid()
    rig = load_rig(rig_path)
    sender = None
    if operator:
        sender = OperatorSender(rig.operator.host, operator, token, "dashboard")
    with Ring.attach(ring) as attached:
        dashboard = Dashboard(rig, attached, sender, host, port, duration)
        try:
            watch = threading.Thread(target=_end_with, args=(parent, ended), daemon=True)
            watch.start()
            dashboard.run(ended)
            dashboard.say_goodbye()
            time.sleep(0.3)  # for the last words to reach the browsers
        finally:
            dashboard.close()


def _end_with(parent: int, ended: threading.Event) -> None:
    while os.getppid() == parent and not ended.is_set():
        time.sleep(0.5)
    ended.set()


def _hushed() -> contextlib.redirect_stdout[io.StringIO]:
    """No word of the server in between what the loop prints, which may be JSON."""
    return contextlib.redirect_stdout(io.StringIO())


def _nothing(curves: int) -> tuple[NDArray[np.float64], ...]:
    """Data of a plot without anything in it."""
    return (np.array([-SHOWN, 0.0]), *(np.zeros(2) for _ in range(curves)))


def _drawable(
    times: NDArray[np.float64], columns: NDArray[np.float64]
) -> tuple[NDArray[np.float64], ...]:
    """Data of a plot: what is not finite leaves a gap."""
    known = np.where(np.isfinite(columns), columns, np.nan)
    return (np.ascontiguousarray(times), *(np.ascontiguousarray(part) for part in known.T))


def _sentence(words: str) -> str:
    return f"{words[0].upper()}{words[1:]}."


def _check_port(host: str, port: int) -> None:
    import socket

    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise RigError(
                f"dashboard at {host}:{port}",
                expected="a free port of this machine",
                came=f"{error.strerror}",
                cure="Give another with `--dashboard`, or close what uses it.",
            ) from error
