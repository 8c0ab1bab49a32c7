"""The dashboard: the robot in a browser, measurements of the loop, and a stop button.

It runs in a separate process, reads the ring, and sends only the operator's datagrams to the loop:
a dashboard that hangs or dies cannot block the loop. A separate server (`hil.views._gate`) provides
the page and its button: they appear before the robot is drawn, and remain if the viewer fails. The
page loads nothing from other machines.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
import time
from html import escape
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hil._concur import Scene, add_plot, drawable, silenced, start_server
from hil.operator import OperatorSender
from hil.reasons import State
from hil.record.ring import Ring
from hil.record.rows import Layout
from hil.views._gate import Gate
from hil.views._page import ASKED, SILENCE, axes_table, card, member, quality_table, silence

if TYPE_CHECKING:
    from hil.settings import Rig

PORT = 8080
"""Default port of the page."""

RATE = 12.0
"""Updates of the robot per second."""

WORDS = 4.0
"""Updates of text and curves per second."""

SHOWN = 10.0
"""Duration shown by the curves, s."""

POINTS = 250
"""Number of points of a curve."""


class Dashboard:
    """A page that shows a running loop; `run` serves it.

    Parameters
    ----------
    rig : Rig
        The rig.
    ring : Ring
        Ring that the loop writes, attached.
    sender : OperatorSender or None
        Sends the stop to the loop; None if the loop accepts no operator input.
    host, port : str, int
        Address of the page; default: this machine only.
    duration : float, optional
        Duration of the run, s; default: that of the task.

    Raises
    ------
    RigError
        If the port is in use.
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
        self.rig, self.ring, self.sender = rig, ring, sender
        self.duration = rig.task.duration if duration is None else duration
        self.layout: Layout = ring.layout
        self.words = dict.fromkeys(("card", "answer", "axes", "quality"), "")
        self.gate = Gate(
            rig.name, host, port, lambda: self.words, None if sender is None else self.stop
        )
        try:
            self.server = start_server(host, 0, rig.name)
        except BaseException:
            self.gate.close()
            raise
        self.gate.viewer = self.server.get_port()
        self._scene: Scene | None = None
        self._since = self._beat = 0
        self._last: dict[str, NDArray[np.float64]] | None = None
        self._history = np.empty((0, self.layout.width))
        self._stride = max(round(SHOWN * rig.loop.rate / POINTS), 1)
        self._asked: float | None = None  # instant of the stop request; None once stopped
        self._trouble = ""
        self._build()
        self._show_words()

    def _build(self) -> None:
        gui = self.server.gui
        gui.configure_theme(show_logo=False, show_share_button=False)
        gui.set_panel_label("Curves of the last 10 s")
        gui.main_panel.dock_right()
        gui.main_panel.set_width(380)
        self._follow = gui.add_checkbox("Camera follows the robot", True)
        outputs = self.rig.task.outputs
        names = [f"{o.name} {c}" for o in outputs for c in o.coordinate_names]
        with gui.add_folder("Tracking error (mm, mrad)"):
            self._errors = add_plot(gui, names, (-SHOWN, 0.0))
        with gui.add_folder("Torque sent (N m)"):
            self._torques = add_plot(gui, self.layout.axes, (-SHOWN, 0.0))
        bin_ms = 1e3 * self._stride * self.rig.loop.period
        with gui.add_folder(f"Cycle (µs), the largest of each {bin_ms:.0f} ms"):
            self._cycles = add_plot(gui, ["lateness", "computing"], (-SHOWN, 0.0))

    def draw(self) -> None:
        """Draw the robot; slow, and not needed for the stop button."""
        task = self.rig.task
        self._scene = Scene(self.server, task.robot, task.outputs, np.asarray(task.q0, dtype=float))

    def stop(self) -> bool:
        """Request a stop of the loop; `update` repeats the request until the loop has stopped.

        Returns
        -------
        bool
            Whether the datagram was sent.
        """
        if self.sender is None:
            return False
        if self._asked is None:
            self._asked = time.monotonic()
        return self.sender.stop()

    def update(self, words: bool = True) -> bool:
        """Show the rows that the loop has written since the last update.

        Parameters
        ----------
        words : bool
            Whether to update text and curves too, in addition to the robot.

        Returns
        -------
        bool
            Whether there were new rows.
        """
        with np.errstate(all="ignore"):  # non-finite values are shown as such
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
        """Repeat a requested stop until the loop reports that it has stopped."""
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
        self.words["card"] = card(
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
        self.words["answer"] = self._answered() + (
            f'<p class="hil-note hil-bad">{escape(self._trouble)}</p>' if self._trouble else ""
        )
        if row is None:
            return
        limits = [axis.torque_limit for axis in self.rig.axes]
        self.words["axes"] = axes_table(self.layout.axes, limits, row)
        recent = self.layout.views(self._history[-max(round(self.rig.loop.rate), 1) :])
        kept = self.layout.active(recent) if self.layout.limits else None
        self.words["quality"] = quality_table(row, recent, kept)

    def _answered(self) -> str:
        note = (
            '<p class="hil-note">STOP brakes by software, category 1 or 2. The emergency stop, '
            "which removes power at once, must be wired.</p>"
        )
        if self.sender is None:
            note = '<p class="hil-note">This run accepts no operator input: Ctrl-C ends it.</p>'
        elif self._asked is not None:
            since = time.monotonic() - self._asked
            if since > SILENCE:
                note = (
                    '<p class="hil-note hil-bad">STOP was requested '
                    f"{since:.0f} s ago, and the loop has not stopped. Use the emergency "
                    "stop.</p>"
                )
            else:
                note = '<p class="hil-note">STOP was requested.</p>'
        return note

    def _show_curves(self) -> None:
        # Bins begin at fixed row numbers, so that moving curves do not flicker.
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
            plot.data = drawable(times, columns)

    def run(self, ended: threading.Event) -> None:
        """Serve the page until an event is set; draw the robot after the first update.

        Parameters
        ----------
        ended : threading.Event
            Ends the dashboard when set.
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
            # This process serves the stop button: an error of the display must not end it.
            except Exception as error:
                self._trouble = f"The display is incomplete: {type(error).__name__}: {error}"
            ended.wait(1.0 / RATE)

    def say_goodbye(self) -> None:
        """Show the last cycle and the end of the session."""
        with contextlib.suppress(Exception):
            self._asked = None
            self.update()
        self.gate.stop = None
        self.words["card"] = card(self.rig.name, self._last, self.duration, "", None)
        self.words["answer"] = (
            '<p class="hil-note"><b>The session has ended.</b> This is its last '
            "cycle; the page is no longer updated.</p>"
        )
        self.server.flush()

    def close(self) -> None:
        """Close the page."""
        self.gate.close()
        with silenced():
            self.server.stop()


def start_dashboard(
    rig_path: Path,
    ring: str,
    operator: int,
    host: str = "127.0.0.1",
    port: int = PORT,
    duration: float | None = None,
) -> BaseProcess:
    """Serve the page from a separate process.

    Parameters
    ----------
    rig_path : Path
        The rig file.
    ring : str
        Name of the loop's ring.
    operator : int
        Port of the loop for the operator's datagrams; 0: the loop accepts no operator input.
    host, port : str, int
        Address of the page.
    duration : float, optional
        Duration of the run, s; default: that of the task.

    Returns
    -------
    multiprocessing.Process
        The process; terminate it to close the page.

    Raises
    ------
    RigError
        If the port is in use.
    """
    Gate("", host, port, dict, None).close()  # raises here, rather than in the other process
    process = multiprocessing.get_context("spawn").Process(
        target=_serve,
        args=(rig_path, ring, operator, host, port, duration),
        name="dashboard",
        daemon=True,
    )
    process.start()
    return process


def _serve(
    rig_path: Path,
    ring: str,
    operator: int,
    host: str,
    port: int,
    duration: float | None,
) -> None:
    from hil.rig import load_rig

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the loop handles the interrupt
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    if hasattr(os, "nice"):
        os.nice(10)
    parent = os.getppid()
    rig = load_rig(rig_path)
    sender = None
    if operator:
        sender = OperatorSender(rig.operator.host, operator)  # without a token: may only stop
    with Ring.attach(ring) as attached:
        dashboard = Dashboard(rig, attached, sender, host, port, duration)
        try:
            watch = threading.Thread(target=_end_with, args=(parent, ended), daemon=True)
            watch.start()
            dashboard.run(ended)
            dashboard.say_goodbye()
            time.sleep(2.0 * ASKED)  # browsers fetch the last content
        finally:
            dashboard.close()


def _end_with(parent: int, ended: threading.Event) -> None:
    while os.getppid() == parent and not ended.is_set():
        time.sleep(0.5)
    ended.set()
